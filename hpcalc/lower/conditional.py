"""Explicit mechanisms for "run until accepted"."""

from __future__ import annotations

import math

import numpy as np

from hpcalc.bounds.renyi import enclosure
from hpcalc.guarantees import Guarantee
from hpcalc.laws import TruncatedNegativeBinomial
from hpcalc.logspace import Array, Prob, logsubexp
from hpcalc.lower.evaluate import LowerBound, rounded_down
from hpcalc.lower.few_points import three_point
from hpcalc.lower.pairs import discretised_pair

__all__ = ["conditional_lower_bound"]


class _Accepted:
    """The search "run until accepted", where the best-ranked outcomes up to some mass are the accepted ones.

    Parameters
    ----------
    accept : float
        The least mass that either input must accept.
    """

    def __init__(self, accept: float) -> None:
        self._log_accept = math.log(accept)

    def log_density(self, rank: Prob) -> Array:
        return -np.maximum(rank.log_u, self._log_accept)

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        """Chance of the last accepted block; NaN where too little is accepted."""
        return np.where(hi.log_u >= self._log_accept, log_width - hi.log_u, np.nan)


def conditional_lower_bound(
    base: Guarantee, accept: float, log_delta: float, upper: float = math.inf
) -> LowerBound | None:
    """Lower bound for "run until accepted".

    Where the region is a mechanism's own, the accepted set holds some of the highest losses and else the lowest; where
    only a Rényi curve is known, the top block and the bad outcome of a three-point mechanism.

    Parameters
    ----------
    base : Guarantee
        One run.
    accept : float
        The acceptance probability that every input has at least.
    log_delta : float
        Natural logarithm of δ.
    upper : float
        The reported ε, where the search may stop.
    """
    found: list[LowerBound] = []
    if not base.exact_profile and not base.core.has_own_pair and base.slack == 0.0 and math.isfinite(log_delta):
        curve = enclosure(base, TruncatedNegativeBinomial.from_gamma(1.0, accept))
        logit = math.log(accept) - math.log1p(-accept) + 1e-9 if accept < 1.0 else 30.0
        point = three_point(base, _Accepted(accept), log_delta, upper, curve, logit)
        if point is not None:
            found.append(point)
    pair = discretised_pair(base, log_delta, -math.log(accept))
    if pair is not None:
        found.append(LowerBound(rounded_down(_conditional_pair(*pair[0], accept, log_delta), log_delta), pair[1]))
    return max(found, key=lambda bound: bound.epsilon) if found else None


def _conditional_pair(log_q: Array, log_p: Array, accept: float, log_delta: float) -> float:
    """Best accepted set that holds the largest losses up to some mass and the most negative ones up to ``accept``.

    The largest losses are the event that proves ε. An outcome at the edge of either part is split by a coin, which is a
    finer output of the same loss, so that every mass is met.
    """
    below_q, below_p = (np.append(0.0, np.cumsum(np.exp(mass))) for mass in (log_q, log_p))
    above = [np.append(-np.inf, np.logaddexp.accumulate(mass[::-1])) for mass in (log_q, log_p)]

    def proven(at: Array) -> Array:
        cut = np.minimum(np.floor(at).astype(int), log_q.size - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.log(at - cut)
            event_q, event_p = (
                np.logaddexp(top[cut], part + mass[::-1][cut]) for top, mass in zip(above, (log_q, log_p), strict=True)
            )
            rest = np.interp(accept - np.exp(event_q), below_q, below_p)
            accepted = np.exp(event_p) + rest
            value = logsubexp(np.maximum(event_q - math.log(accept), log_delta), log_delta) - event_p + np.log(accepted)
        usable = (event_q <= math.log(accept)) & (accepted >= accept) & ~np.isnan(value)
        return np.where(usable, value, -np.inf)

    every = np.arange(1.0, log_q.size + 1.0)
    top = every[int(np.argmax(proven(every)))]
    return max(float(np.max(proven(np.linspace(max(top - 1.0, 0.0), min(top + 1.0, log_q.size), 41)))), 0.0)
