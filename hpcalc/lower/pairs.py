"""Pairs that attain a region, and the orders "best" on their outcomes."""

from __future__ import annotations

import math

import numpy as np

from hpcalc.bounds.refined import concave_hull
from hpcalc.bounds.renyi import Enclosure
from hpcalc.guarantees import ZCDP, Gaussian, Guarantee, PureDP
from hpcalc.laws import Law
from hpcalc.logspace import Array, Indices, Mask, Prob, distinct, log_ndtr, logsubexp, softplus
from hpcalc.lower.evaluate import DOMINATING, LowerBound, rounded_down, solve_pair
from hpcalc.lower.merges import largest_ratio, search_merges

__all__ = ["discretised_pair", "order_b", "ordered", "region_pair"]

# Logarithms closer than this differ by rounding.
_SAME = 1e-10


def region_pair(base: Guarantee, x: Array) -> tuple[Array, Array]:
    """Blocks of the pair that attains the base's region: ``(log q, log q')`` by increasing privacy loss log(q/q').

    Parameters
    ----------
    base : Guarantee
        Its region must be a mechanism's own (``exact_profile``).
    x : ndarray
        Increasing normal scores of the ranks u at which the blocks are cut.
    """
    core = base.core
    cuts = distinct(np.concatenate([x, core.kinks]))
    u = Prob(np.concatenate([[-np.inf], log_ndtr(cuts), [0.0]]), np.concatenate([[0.0], log_ndtr(-cuts), [-np.inf]]))
    if isinstance(core, PureDP):
        log_q = _differences(u)
        low = u.log_u[1:] <= -softplus(core.epsilon) * (1.0 - 1e-12)  # the corner is a node
        log_p = log_q + np.where(low, core.epsilon, -core.epsilon)
        return with_slack((log_q, log_p), base.slack)
    v = core.region(u)
    keep = _resolved(u, v)
    u, v = u.take(keep), v.take(keep)
    log_q, log_p = _differences(u), _differences(v)
    if v.log_u[0] > -np.inf:  # an atom that only the neighbouring input produces
        log_q, log_p = np.concatenate([[-np.inf], log_q]), np.concatenate([v.log_u[:1], log_p])
    return with_slack((log_q, log_p), base.slack)


def _resolved(*ranks: Prob) -> Indices:
    """Nodes far enough apart for the differences of each rank to keep their digits: blocks in between are merged."""

    def apart(i: Indices, j: Indices) -> Mask:
        out = np.ones(np.shape(i), dtype=bool)
        for rank in ranks:
            log = np.where(rank.log_u[i] > -0.5, rank.log_q[i], rank.log_u[i])
            other = np.where(rank.log_u[i] > -0.5, rank.log_q[j], rank.log_u[j])
            with np.errstate(invalid="ignore"):
                far = np.abs(other - log) > 1e-3 * (1.0 + np.minimum(np.abs(log), np.abs(other)))
            out &= far | (np.isinf(log) & np.isinf(other))
        return out

    every = np.arange(ranks[0].log_u.size)
    from_last = apart(every[:-1], every[1:])
    if from_last.all():
        return every
    keep = [0]
    for i in every[1:].tolist():
        if from_last[i - 1] if keep[-1] == i - 1 else apart(np.array(keep[-1]), np.array(i)):
            keep.append(i)  # the last node always: u = 1 is far from any other
    return np.array(keep)


def _differences(rank: Prob) -> Array:
    low = logsubexp(rank.log_u[1:], rank.log_u[:-1])
    high = logsubexp(rank.log_q[:-1], rank.log_q[1:])
    return np.where(rank.log_u[:-1] > -0.5, high, low)


def discretised_pair(base: Guarantee, log_delta: float, log_mean: float) -> tuple[tuple[Array, Array], str] | None:
    """A discretised pair that meets the base guarantee, with its name."""
    if base.core.has_own_pair:
        pair = base.core.discretised_pair()  # None where the loss distribution is too large
        return None if pair is None else (with_slack(pair, base.slack), DOMINATING)
    reach = min(math.sqrt(2.0 * (max(-log_delta, 1.0) + max(log_mean, 0.0) + 8.0)), 37.0)
    if base.exact_profile:
        width = 0.0 if not isinstance(base.core, Gaussian) else min(base.core.shift, 60.0)
        x = np.linspace(-reach - width, reach, 1200)
        return region_pair(base, x), DOMINATING
    core = base.core
    if isinstance(core, ZCDP) and 0.0 < core.rho < 1e6:  # the curve of other bases may be below their rho's line
        normal = Gaussian(1.0 / math.sqrt(2.0 * core.rho))
        pair = region_pair(normal, np.linspace(-reach - min(normal.shift, 60.0), reach, 800))
        return with_slack(pair, base.slack), "Gaussian"
    return None


def with_slack(pair: tuple[Array, Array], slack: float) -> tuple[Array, Array]:
    """The pair mixed with two outcomes of probability ``slack``, each of which only one input produces."""
    if slack == 0.0:
        return pair
    ends = np.array([-np.inf]), np.array([math.log(slack)])
    log_q, log_p = (part + math.log1p(-slack) for part in pair)
    return np.concatenate([ends[0], log_q, ends[1]]), np.concatenate([ends[1], log_p, ends[0]])


def ordered(
    pair: tuple[Array, Array], law: Law, log_delta: float, upper: float, curve: Enclosure, name: str
) -> LowerBound:
    """The best of order (b) and, where that leaves a gap, the merges."""
    log_q, log_p = pair
    best = solve_pair(law, log_q, log_p, order_b(log_q, log_p, curve, upper), log_delta)
    if best > 0.0 and best < upper * (1.0 - 1e-4):
        best = max(best, solve_pair(law, log_q, log_p, order_b(log_q, log_p, curve, best), log_delta))
    if best < upper * (1.0 - 1e-3) and best < math.inf:
        if log_delta == -math.inf:
            best = max(best, largest_ratio(law, log_q, log_p))
        else:
            best = max(best, search_merges(law, pair, log_delta, best))
    return LowerBound(rounded_down(best, log_delta), name)


def order_b(log_q: Array, log_p: Array, curve: Enclosure, epsilon: float) -> Indices:
    """Order (b): outcomes that can profit at their own maximising rank, the others by increasing loss."""
    if not math.isfinite(epsilon):
        return np.arange(log_q.size)
    scale = float(curve.law.log_mean)
    log_a, log_b = (np.append(-np.inf, part[::-1] - scale) for part in (curve.log_f, curve.log_g))
    log_u = np.concatenate([[0.0], curve.rank.log_u[::-1]])
    keep = concave_hull(log_b, log_a)
    with np.errstate(invalid="ignore"):
        # Where V is parallel to u, F/F(V) of a Poisson law is the same at many nodes: rounding must not choose one.
        ratio = log_a[1:] - log_b[1:]
        same = 1 + np.flatnonzero(ratio >= np.nanmax(ratio) - _SAME)
        keep = np.concatenate([[0, same[0]], keep[keep > same[-1]]])
        # decreasing along the hull
        log_slope = logsubexp(log_a[keep][1:], log_a[keep][:-1]) - logsubexp(log_b[keep][1:], log_b[keep][:-1])
    middle = 0.5 * (np.maximum(log_u[keep][1:], -745.0) + log_u[keep][:-1])
    usable = np.isfinite(log_slope)
    log_slope, middle = log_slope[usable][::-1], middle[usable][::-1]
    with np.errstate(invalid="ignore"):
        log_s = epsilon + np.where(np.isneginf(log_q), np.inf, log_p - log_q)
    if log_slope.size == 0:
        return np.arange(log_q.size)
    profits = log_s < log_slope[-1]
    # by decreasing loss, so by increasing rank wanted
    takers = np.flatnonzero(profits)[::-1]
    fillers = np.flatnonzero(~profits)
    mass = np.exp(log_q)
    wanted = np.exp(np.interp(log_s[takers], log_slope, middle))
    before = np.concatenate([[0.0], np.cumsum(mass[takers])[:-1]])
    need = np.maximum.accumulate(np.maximum(wanted - before, 0.0)) if takers.size else before[:0]
    start = np.concatenate([[0.0], np.cumsum(mass[fillers])[:-1]]) if fillers.size else np.empty(0)
    keys = np.concatenate([need, start])
    return np.concatenate([takers, fillers])[np.argsort(keys, kind="stable")]
