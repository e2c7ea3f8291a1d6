"""What an explicit mechanism proves."""

from __future__ import annotations

import math
from dataclasses import dataclass

DOMINATING = "dominating pair"
# Margin for the rounding of sums over outcomes; the printed value is rounded down besides.
_MARGIN = 1e-9


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the whole search's ε at the given δ.

    Attributes
    ----------
    epsilon : float
        No analysis under the same assumptions can report less.
    mechanism : str
        What it is: ``"dominating pair"``, ``"three outcomes"``, ``"two outcomes"``, ``"Gaussian"``.
    outcomes : tuple of (tuple of float, tuple of float) or None
        Of a mechanism of few outcomes: log-probabilities of its outcomes under either input, best-ranked first.
    """

    epsilon: float
    mechanism: str
    outcomes: tuple[tuple[float, ...], tuple[float, ...]] | None = None


def rounded_down(epsilon: float, log_delta: float) -> float:
    """ε less what rounding may have added: outcomes that matter have log-probabilities down to some log δ - 50."""
    size = 50.0 - log_delta if log_delta > -math.inf else 800.0
    return max(epsilon * (1.0 - _MARGIN) - 1e-13 * (size + epsilon), 0.0) if epsilon < math.inf else epsilon
