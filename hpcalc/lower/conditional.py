"""Explicit mechanisms for "run until accepted"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from hpcalc.bounds.conditional import epsilon_score, search
from hpcalc.guarantees import ZCDP, Gaussian, Guarantee, Laplace
from hpcalc.guarantees.tradeoff import Tradeoff, distance
from hpcalc.logspace import Array, Prob
from hpcalc.lower.few_outcomes import few_outcomes
from hpcalc.lower.mechanism import DOMINATING, LowerBound, rounded_down


class _Accepted:
    """The search "run until accepted", where the best-ranked outcomes up to some mass are the accepted ones."""

    def __init__(self, accept: float) -> None:
        self._log_accept = math.log(accept)

    def log_density(self, rank: Prob) -> Array:
        """Of the last accepted ranks, if these end at the one given."""
        return -rank.log_u

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        """Chance of the last accepted block; NaN where too little is accepted."""
        return np.where(hi.log_u >= self._log_accept, log_width - hi.log_u, np.nan)


def conditional_lower_bound(base: Guarantee, accept: float, log_delta: float) -> LowerBound | None:
    """Lower bound for "run until accepted".

    Where a pair attains the region, the accepted set holds some of the highest losses and else the lowest; where only a
    Rényi curve is known, the top block and the bad outcome of a mechanism of three outcomes.
    """
    if log_delta == -math.inf:
        p = Prob.from_u(np.array([accept]))
        pairs = _attained(base) if base.pure_epsilon < math.inf else ()
        least = max((base.pure_epsilon + float((region(p).log_u - p.log_u)[0]) for region, _ in pairs), default=None)
        return None if least is None else LowerBound(rounded_down(least, log_delta), DOMINATING)
    found: list[LowerBound] = []
    if not base.exact_profile and base.core.loss_steps() is None and base.slack == 0.0:
        logit = math.log(accept) - math.log1p(-accept) + 1e-9 if accept < 1.0 else 30.0
        point = few_outcomes(base, _Accepted(accept), log_delta, np.array([logit]))
        if point is not None:
            found.append(point)
    for region, name in _attained(base):
        _, (value,) = search(region, accept, *epsilon_score(log_delta))
        found.append(LowerBound(rounded_down(max(float(value), 0.0), log_delta), name))
    return max(found, key=lambda bound: bound.epsilon, default=None)


def _attained(base: Guarantee) -> Iterator[tuple[Callable[[Prob], Prob], str]]:
    """Regions of real pairs that meet the guarantee, with their names."""
    if isinstance(base, ZCDP) and 0.0 < base.rho < 1e6:
        yield Gaussian(1.0 / math.sqrt(2.0 * base.rho)).region, "Gaussian"
    if isinstance(base, (Gaussian, Laplace)):
        yield base.region, DOMINATING
    elif base.exact_profile or base.core.loss_steps() is not None:
        for direction in (0, 1):  # a mechanism on a grid need not be symmetric where the base is
            curve = base.attained_tradeoff(direction)
            if curve is not None:
                yield partial(_polygon, curve), DOMINATING


def _polygon(curve: Tradeoff, rank: Prob) -> Prob:
    """V through the points of a curve, the outcomes between two points taken together."""
    x = rank.complement()
    right = np.clip(np.searchsorted(curve.x.logit, x.logit, side="left"), 1, curve.log_slope.size - 1)
    (x0, w0), (x1, w1) = ((curve.x.take(i), curve.w.take(i)) for i in (right - 1, right))
    width, height = distance(x0, x1), distance(w0, w1)
    with np.errstate(invalid="ignore"):  # where nothing lies between the points but Q' alone, the lower one
        share = np.where(np.isneginf(width), -math.inf, distance(x0, x) - width)
        rest = np.where(np.isneginf(width), 0.0, distance(x, x1) - width)
    # W and 1 - W, each a sum of what lies on its own side
    return Prob(np.logaddexp(w1.log_q, rest + height), np.logaddexp(w0.log_u, share + height))
