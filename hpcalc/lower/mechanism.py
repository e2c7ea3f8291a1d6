"""What an explicit mechanism proves, and the mechanism of Theorem E's best path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hpcalc.bounds import Bound
from hpcalc.bounds.exact import ExactBound
from hpcalc.bounds.pure import refined_pure
from hpcalc.guarantees import Guarantee, PureDP
from hpcalc.laws import Law

DOMINATING = "dominating pair"
# Margin for the rounding of sums over outcomes; the printed value is rounded down besides.
_MARGIN = 1e-9
_TINY = -30.0  # log delta that stands for delta = 0, where as much is lost at least


@dataclass(eq=False)
class LowerBound:
    """A lower bound on the whole search's ε at the given δ: no analysis under the same assumptions can report less."""

    epsilon: float
    #: ``"dominating pair"``, ``"three outcomes"``, ``"two outcomes"`` or ``"Gaussian"``.
    mechanism: str
    #: Of a mechanism of few outcomes: log-probabilities of these under either input, best-ranked first.
    outcomes: tuple[tuple[float, ...], tuple[float, ...]] | None = None


def rounded_down(epsilon: float, log_delta: float) -> float:
    """ε less what rounding may have added: outcomes that matter have log-probabilities down to some log δ - 50."""
    size = 50.0 - log_delta if log_delta > -math.inf else 800.0
    return max(epsilon * (1.0 - _MARGIN) - 1e-13 * (size + epsilon), 0.0) if epsilon < math.inf else epsilon


def path_lower_bound(
    guarantee: Guarantee, law: Law, log_delta: float, bounds: Sequence[Bound] = ()
) -> LowerBound | None:
    """ε of the search over the guarantee's own dominating pair; None where no one pair attains the guarantee."""
    if log_delta == -math.inf:
        if guarantee.pure_epsilon in (0.0, math.inf):
            return None
        if isinstance(guarantee.core, PureDP):  # R3 is attained by randomized response with a split outcome
            return LowerBound(refined_pure(guarantee.pure_epsilon, law) * (1.0 - _MARGIN), DOMINATING)
        log_delta = _TINY
    exact = next((bound for bound in bounds if isinstance(bound, ExactBound)), None) or ExactBound(guarantee, law)
    if not exact.attained and guarantee.pure_epsilon > 0.0:  # what reveals nothing attains its bound
        return None
    return LowerBound(exact.mechanism(log_delta) * (1.0 - _MARGIN), DOMINATING)
