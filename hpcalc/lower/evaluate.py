"""ε of an explicit mechanism: the whole search on its outcomes in a given order of ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hpcalc.laws import Law
from hpcalc.logspace import Array, Indices, Prob, logsubexp

__all__ = ["DOMINATING", "LowerBound", "log_running_sum", "pair_epsilon", "rounded_down", "solve_pair"]

DOMINATING = "the dominating pair"
# Margin for the rounding of the sums below; the printed value is rounded down besides.
_MARGIN = 1e-9


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the whole search's ε at the given δ.

    Attributes
    ----------
    epsilon : float
        No analysis under the same assumptions can report less.
    mechanism : str
        What it is: ``"the dominating pair"``, ``"three outcomes"``, ``"two outcomes"``, ``"Gaussian"``.
    outcomes : tuple of (tuple of float, tuple of float) or None
        Of a mechanism of two or three points: log-probabilities of its outcomes under either input, best-ranked first.
    """

    epsilon: float
    mechanism: str
    outcomes: tuple[tuple[float, ...], tuple[float, ...]] | None = None


def solve_pair(law: Law, log_q: Array, log_p: Array, order: Indices, log_delta: float) -> float:
    """ε of one ordered pair at δ (0 if none is positive, inf if δ is never reached)."""
    log_a, log_b = _whole_search(law, log_q, log_p, order)
    if log_delta == -math.inf:
        some = ~np.isneginf(log_a)
        return float(np.max((log_a - log_b)[some]))
    return pair_epsilon(log_a, log_b, log_delta)


def pair_epsilon(log_a: Array, log_b: Array, log_delta: float) -> float:
    """Least ε >= 0 whose hockey-stick divergence is at most δ: the largest ``log((A(S) - δ) / A'(S))`` over events S.

    The best events hold the outcomes of largest loss.
    """
    with np.errstate(invalid="ignore"):
        loss = np.where(np.isneginf(log_a), -np.inf, log_a - log_b)
    order = np.argsort(-loss, kind="stable")
    a, b = np.logaddexp.accumulate(log_a[order]), np.logaddexp.accumulate(log_b[order])
    likely = a > log_delta
    if not likely.any():
        return 0.0
    return max(float(np.max(logsubexp(a[likely], log_delta) - b[likely])), 0.0)


def _whole_search(law: Law, log_q: Array, log_p: Array, order: Indices) -> tuple[Array, Array]:
    """Block probabilities of the whole search under both inputs, ``(log dA, log dA')``, in rank order."""
    return _blocks(law, log_q[order]), _blocks(law, log_p[order])


def _blocks(law: Law, log_mass: Array) -> Array:
    below, above = log_running_sum(log_mass), log_running_sum(log_mass[::-1])[::-1]
    total = float(below[-1])
    # whichever of u, 1-u is small carries the digits
    rank = Prob(np.minimum(below - total, 0.0), np.minimum(above - total, 0.0))
    with np.errstate(divide="ignore"):
        out = law.log_block(rank.take(slice(None, -1)), rank.take(slice(1, None)), log_mass - total)
    return np.asarray(np.where(np.isneginf(log_mass), -np.inf, out), dtype=float)


def log_running_sum(log_mass: Array) -> Array:
    """Logarithms of 0 and the sums of the first 1, 2, ... masses."""
    if np.min(log_mass[log_mass > -np.inf], initial=0.0) < -700.0:
        # summed as plain numbers these would be 0, and so would the chance of the outcomes ranked beside them
        sums = np.logaddexp.accumulate(log_mass)
    else:
        with np.errstate(divide="ignore"):
            sums = np.log(np.cumsum(np.exp(log_mass)))
    return np.concatenate([[-np.inf], sums])


def rounded_down(epsilon: float, log_delta: float) -> float:
    """ε less what rounding may have added: outcomes that matter have log-probabilities down to some log δ - 50."""
    size = 50.0 - log_delta if log_delta > -math.inf else 800.0
    return max(epsilon * (1.0 - _MARGIN) - 1e-13 * (size + epsilon), 0.0) if epsilon < math.inf else epsilon
