"""Explicit mechanisms: what no analysis can report less than.

Each function builds a pair of output laws (Q, Q') that meets the base guarantee, an order "best" on their outcomes, and
computes the hockey-stick divergence of the whole search on them exactly. Outcomes are merged into blocks; merging is
post-processing, so any discretisation gives a valid lower bound.

* Where the region V is the mechanism's own, the pair ``q = du, q' = dV`` attains it. Two orders are tried: (b) every
  outcome that the proof of the profile bound R2 can use (see :mod:`hpcalc.refined`) at its own maximising rank, the
  others by increasing loss in between; and the best merge of the largest losses with the most negative ones, of which
  order (a), the most negative losses first, up to some mass, then the rest by decreasing loss, is one.
* Where only a Rényi curve is known that pair would break it. A three-point mechanism (Papernot and Steinke 2022,
  Appendix D.3, has this shape) meets every order in both directions: a top block (u0, v0), a bad outcome (b, b'), the
  rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hpcalc.base import ZCDP, Base, Gaussian, PureDP
from hpcalc.logmath import Array, Indices, Mask, Rank, distinct, log1mexp, log_ndtr, logsubexp, logsumexp, softplus
from hpcalc.ranks import RankCurve, rank_curve
from hpcalc.refined import concave_hull
from hpcalc.runs import Law, TruncatedNegativeBinomial

__all__ = ["LowerBound", "conditional_lower_bound", "lower_bound", "region_pair"]

# Margin for the rounding of the sums below; the printed value is rounded down besides.
_MARGIN = 1e-9
# Groups of outcomes in the first, coarse search for an order.
_GROUPS = 60
# Where a search for three points starts: the top block smaller by these in log odds.
_BETTER = np.array([-6.0, -4.5, -3.0, -2.25, -1.5, -1.0, -0.5, 0.5])
_LARGE_DELTA = 1e-5
# An instance this close to the reported value needs no rival.
_CLOSE = 5e-3


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the whole search's ε at the given δ.

    Attributes
    ----------
    epsilon : float
        No analysis under the same assumptions can report less.
    instance : str
        The mechanism: ``"region-pair"``, ``"three-point"``, ``"two-point"``, ``"gaussian-pair"``,
        ``"loss-distribution"``.
    outcomes : tuple of (tuple of float, tuple of float) or None
        Of a mechanism of two or three points: log-probabilities of its outcomes under either input, best-ranked first.
    """

    epsilon: float
    instance: str
    outcomes: tuple[tuple[float, ...], tuple[float, ...]] | None = None


def lower_bound(base: Base, law: Law, log_delta: float, upper: float, curve: RankCurve) -> LowerBound | None:
    """Best lower bound among the instances that fit the base.

    Parameters
    ----------
    base : Base
        One run's guarantee.
    law : Law
        Law of K.
    log_delta : float
        Natural logarithm of δ.
    upper : float
        The reported ε (tells where to look; may be inf).
    curve : RankCurve
        Samples of F and F(V), used to choose the order "best".

    Returns
    -------
    LowerBound or None
        None where no instance is known (δ = 0 with a base that is not pure, no finite guarantee).
    """
    found: list[LowerBound] = []
    # a mechanism too large for its loss distribution is still that mechanism: no other one speaks for it
    if not base.exact_profile and not base.core.has_own_pair and math.isfinite(log_delta):
        point = _three_point_beside_slack(base, law, log_delta, upper, curve)
        if point is not None:
            found.append(point)
            if point.epsilon > upper * (1.0 - _CLOSE):
                return point
    pair = _pair(base, log_delta, law.log_mean)
    if pair is not None:
        found.append(_ordered(pair[0], law, log_delta, upper, curve, pair[1]))
    return max(found, key=lambda bound: bound.epsilon) if found else None


# ---------------------------------------------------------------------------------------------------------------
# Pairs that attain a region
# ---------------------------------------------------------------------------------------------------------------


def region_pair(base: Base, x: Array) -> tuple[Array, Array]:
    """Blocks of the pair that attains the base's region: ``(log q, log q')`` by increasing privacy loss log(q/q').

    Parameters
    ----------
    base : Base
        Its region must be a mechanism's own (``exact_profile``).
    x : ndarray
        Increasing normal scores of the ranks u at which the blocks are cut.
    """
    core = base.core
    cuts = distinct(np.concatenate([x, core.kinks]))
    u = Rank(np.concatenate([[-np.inf], log_ndtr(cuts), [0.0]]), np.concatenate([[0.0], log_ndtr(-cuts), [-np.inf]]))
    if isinstance(core, PureDP):
        log_q = _differences(u)
        low = u.log_u[1:] <= -softplus(core.epsilon) * (1.0 - 1e-12)  # the corner is a node
        log_p = log_q + np.where(low, core.epsilon, -core.epsilon)
        return _with_slack((log_q, log_p), base.slack)
    v = core.region(u)
    keep = _resolved(u, v)
    u, v = u.take(keep), v.take(keep)
    log_q, log_p = _differences(u), _differences(v)
    if v.log_u[0] > -np.inf:  # an atom that only the neighbouring input produces
        log_q, log_p = np.concatenate([[-np.inf], log_q]), np.concatenate([v.log_u[:1], log_p])
    return _with_slack((log_q, log_p), base.slack)


def _resolved(*ranks: Rank) -> Indices:
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
            keep.append(i)
    if keep[-1] != every[-1]:  # the last node stays, at the cost of the one before it
        keep[-1:] = [int(every[-1])] if len(keep) > 1 else [0, int(every[-1])]
    return np.array(keep)


def _differences(rank: Rank) -> Array:
    low = logsubexp(rank.log_u[1:], rank.log_u[:-1])
    high = logsubexp(rank.log_q[:-1], rank.log_q[1:])
    return np.where(rank.log_u[:-1] > -0.5, high, low)


def _pair(base: Base, log_delta: float, log_mean: float) -> tuple[tuple[Array, Array], str] | None:
    """A discretised pair that meets the base guarantee, with its name."""
    if base.core.has_own_pair:
        pair = base.core.discretised_pair()  # None where the loss distribution is too large
        return None if pair is None else (_with_slack(pair, base.slack), "loss-distribution")
    reach = min(math.sqrt(2.0 * (max(-log_delta, 1.0) + max(log_mean, 0.0) + 8.0)), 37.0)
    if base.exact_profile:
        width = 0.0 if not isinstance(base.core, Gaussian) else min(base.core.shift, 60.0)
        x = np.linspace(-reach - width, reach, 1200)
        return region_pair(base, x), "region-pair"
    core = base.core
    if isinstance(core, ZCDP) and 0.0 < core.rho < 1e6:  # the curve of other bases may be below their rho's line
        normal = Gaussian(1.0 / math.sqrt(2.0 * core.rho))
        pair = region_pair(normal, np.linspace(-reach - min(normal.shift, 60.0), reach, 800))
        return _with_slack(pair, base.slack), "gaussian-pair"
    return None


def _with_slack(pair: tuple[Array, Array], slack: float) -> tuple[Array, Array]:
    """The pair mixed with two outcomes of probability ``slack``, each of which only one input produces."""
    if slack == 0.0:
        return pair
    ends = np.array([-np.inf]), np.array([math.log(slack)])
    log_q, log_p = (part + math.log1p(-slack) for part in pair)
    return np.concatenate([ends[0], log_q, ends[1]]), np.concatenate([ends[1], log_p, ends[0]])


def _ordered(
    pair: tuple[Array, Array], law: Law, log_delta: float, upper: float, curve: RankCurve, name: str
) -> LowerBound:
    """The best of order (b) and, where that leaves a gap, the merges."""
    log_q, log_p = pair
    best = _solve(law, log_q, log_p, _order_b(log_q, log_p, curve, upper), log_delta)
    if best > 0.0 and best < upper * (1.0 - 1e-4):
        best = max(best, _solve(law, log_q, log_p, _order_b(log_q, log_p, curve, best), log_delta))
    if best < upper * (1.0 - 1e-3) and best < math.inf:
        if log_delta == -math.inf:
            best = max(best, _largest_ratio(law, log_q, log_p))
        else:
            best = max(best, _search_merges(law, pair, log_delta, best))
    return LowerBound(_rounded_down(best, log_delta), name)


def _whole_search(law: Law, log_q: Array, log_p: Array, order: Indices) -> tuple[Array, Array]:
    """Block probabilities of the whole search under both inputs, ``(log dA, log dA')``, in rank order."""
    return _blocks(law, log_q[order]), _blocks(law, log_p[order])


def _blocks(law: Law, log_mass: Array) -> Array:
    below, above = _log_running_sum(log_mass), _log_running_sum(log_mass[::-1])[::-1]
    total = float(below[-1])
    # whichever of u, 1-u is small carries the digits
    rank = Rank(np.minimum(below - total, 0.0), np.minimum(above - total, 0.0))
    with np.errstate(divide="ignore"):
        out = law.log_block(rank.take(slice(None, -1)), rank.take(slice(1, None)), log_mass - total)
    return np.asarray(np.where(np.isneginf(log_mass), -np.inf, out), dtype=float)


def _rounded_down(epsilon: float, log_delta: float) -> float:
    """ε less what rounding may have added: outcomes that matter have log-probabilities down to some log δ - 50."""
    size = 50.0 - log_delta if log_delta > -math.inf else 800.0
    return max(epsilon * (1.0 - _MARGIN) - 1e-13 * (size + epsilon), 0.0) if epsilon < math.inf else epsilon


def _log_running_sum(log_mass: Array) -> Array:
    """Logarithms of 0 and the sums of the first 1, 2, ... masses."""
    if np.min(log_mass[log_mass > -np.inf], initial=0.0) < -700.0:
        # summed as plain numbers these would be 0, and so would the chance of the outcomes ranked beside them
        sums = np.logaddexp.accumulate(log_mass)
    else:
        with np.errstate(divide="ignore"):
            sums = np.log(np.cumsum(np.exp(log_mass)))
    return np.concatenate([[-np.inf], sums])


def _solve(law: Law, log_q: Array, log_p: Array, order: Indices, log_delta: float) -> float:
    """ε of one ordered pair at δ (0 if none is positive, inf if δ is never reached)."""
    log_a, log_b = _whole_search(law, log_q, log_p, order)
    if log_delta == -math.inf:
        some = ~np.isneginf(log_a)
        return float(np.max((log_a - log_b)[some]))
    return _pair_epsilon(log_a, log_b, log_delta)


def _pair_epsilon(log_a: Array, log_b: Array, log_delta: float) -> float:
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


def _order_b(log_q: Array, log_p: Array, curve: RankCurve, epsilon: float) -> Indices:
    """Order (b): outcomes that can profit at their own maximising rank, the others by increasing loss."""
    if not math.isfinite(epsilon):
        return np.arange(log_q.size)
    scale = float(curve.law.log_mean)
    log_a, log_b = (np.append(-np.inf, part[::-1] - scale) for part in (curve.log_f, curve.log_g))
    log_u = np.concatenate([[0.0], curve.rank.log_u[::-1]])
    keep = concave_hull(log_b, log_a)
    with np.errstate(invalid="ignore"):  # decreasing along the hull
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


class _Merges:
    """The outcomes in a few groups, ranked from their two ends: next comes the least loss left, or the largest left.

    Two neighbouring outcomes of which one gains (``dA > e^eps dA'``) are best ranked by whether the product of their
    ratios ``dQ'/dQ`` exceeds a threshold of the rank; so a good order is a merge of the outcomes that gain, the largest
    losses first, with the others, the most negative losses first. A merge is a path over the pairs (i, j) of numbers
    of groups taken from either end, and the gain of a step depends on nothing but where it is taken: the best path
    follows by dynamic programming. Order (a) is a path of a single turn.

    Parameters
    ----------
    law : Law
        Law of K.
    pair : tuple of ndarray
        ``(log q, log q')``, by increasing loss.
    edges : ndarray of int
        Where the groups begin, and the number of outcomes.
    log_delta : float
        Gains are counted in units of δ.
    """

    def __init__(self, law: Law, pair: tuple[Array, Array], edges: Indices, log_delta: float) -> None:
        self.edges = edges
        self._gains = [_step_gains(law, np.logaddexp.reduceat(mass, edges[:-1])) - log_delta for mass in pair]

    def best(self, epsilon: float) -> Indices:
        """Groups in the order that makes the divergence at ε largest."""
        taken, given = (np.exp(np.minimum(part, 600.0)) for part in (self._gains[0], self._gains[1] + epsilon))
        gain = np.maximum(taken - given, 0.0)
        m = gain.shape[1]
        along = np.concatenate([np.zeros((m + 1, 1)), np.cumsum(gain, axis=1)], axis=1)
        value = along.copy()
        for i in range(1, m + 1):
            value[i] += np.maximum.accumulate(value[i - 1] - along[i])
        every = np.arange(m + 1)
        i = int(np.argmax(value[every, m - every]))
        j = m - i
        order = np.empty(m, dtype=np.intp)
        for k in range(m - 1, -1, -1):
            if j > 0 and (i == 0 or value[i, j - 1] + gain[i, j - 1] > value[i - 1, j]):
                j -= 1
                order[k] = m - 1 - j
            else:
                i -= 1
                order[k] = i
        return order

    @staticmethod
    def outcomes(order: Indices, edges: Indices) -> Indices:
        """The outcomes between the edges of the groups in order."""
        pairs = zip(order.tolist(), _from_low(order).tolist(), strict=True)
        return np.concatenate([np.arange(edges[g], edges[g + 1])[:: 1 if low else -1] for g, low in pairs])

    def refined(self, order: Indices, limit: int) -> Indices:
        """New edges: groups beside a turn of the path are split, others joined in pairs."""
        low = _from_low(order)
        turn = np.flatnonzero(low[1:] != low[:-1])
        beside = np.zeros(order.size, dtype=bool)
        beside[order[turn]] = beside[order[turn + 1]] = True
        pieces = min(max(1 + (limit - order.size) // max(int(np.sum(beside)), 1), 2), 4)
        left, width = self.edges[:-1][beside], np.diff(self.edges)[beside]
        fresh = left + width * np.arange(1, pieces)[:, None] // pieces
        joined = ~(beside[:-1] | beside[1:]) & (np.arange(1, order.size) % 2 == 1)
        kept = self.edges[np.concatenate([[True], ~joined, [True]])]
        return distinct(np.concatenate([kept, fresh.ravel()]))


def _from_low(order: Indices) -> Mask:
    """Which of the groups, in a merge of two ends, were taken from the low end."""
    # the low end has advanced by as many groups as were taken below the groups still to come
    return np.asarray(order < np.append(np.minimum.accumulate(order[::-1])[::-1][1:], order.size), dtype=bool)


def _step_gains(law: Law, log_mass: Array) -> Array:
    """Log of the chance that the best run falls in the next group from the top, after i and j groups of either end."""
    m = log_mass.size
    i, j = np.nonzero(np.add.outer(np.arange(m), np.arange(m)) < m)
    # what lies between keeps its digits where little is left
    inner = np.where(np.arange(m)[:, None] <= np.arange(m), log_mass, -np.inf)
    between = np.full((m + 1, m + 1), -np.inf)
    between[:m, 1:] = np.logaddexp.accumulate(inner, axis=1)
    low = between[0]
    high = np.concatenate([[-np.inf], np.logaddexp.accumulate(log_mass[::-1])])

    def rank(i: Indices, j: Indices) -> Rank:
        return Rank(np.minimum(np.logaddexp(low[i], high[j]), 0.0), np.minimum(between[i, m - j], 0.0))

    width = log_mass[m - 1 - j]
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = law.log_block(rank(i, j), rank(i, j + 1), width)
    out = np.full((m + 1, m), -np.inf)
    out[i, j] = np.where(np.isneginf(width), -np.inf, chance)
    return out


def _search_merges(law: Law, pair: tuple[Array, Array], log_delta: float, floor: float) -> float:
    """Best ε over merges, from ``floor`` on: the order that is best at the ε of the last, on finer and finer groups."""
    starts = np.arange(0, pair[0].size, max(pair[0].size // 1000, 1))  # a thousand outcomes tell where to turn
    few = np.logaddexp.reduceat(pair[0], starts), np.logaddexp.reduceat(pair[1], starts)
    edges = distinct(np.linspace(0.0, starts.size, _GROUPS + 1).astype(np.intp))
    best = at = floor
    for level in range(6):
        merges, before = _Merges(law, few, edges, log_delta), at
        for step in range(5):
            order = merges.best(at)
            value = _solve(law, *few, merges.outcomes(order, edges), log_delta)
            # coarse groups may reach less than the floor: then they start from what they reach
            improved = value > at * (1.0 + 2e-5) or (step == 0 and value < at)
            at, best = value, max(best, value)
            if not improved or best == math.inf:
                break
        finer = merges.refined(order, 2 * _GROUPS)
        if best == math.inf or (level >= 2 and at <= before * (1.0 + 1e-4)) or finer.size > 3 * _GROUPS:
            break
        edges = finer
    ends = np.append(starts, pair[0].size)[merges.edges]
    return max(best, _solve(law, *pair, merges.outcomes(order, ends), log_delta))


def _largest_ratio(law: Law, log_q: Array, log_p: Array) -> float:
    """Largest loss of the search where the outcome of largest loss is ranked below some of the most negative ones."""
    chances = []
    for mass in (log_q, log_p):
        below, above = _log_running_sum(mass[:-1]), _log_running_sum(mass[:-1][::-1])[::-1]
        lo = Rank(np.minimum(below, 0.0), np.minimum(np.logaddexp(above, mass[-1]), 0.0))
        hi = Rank(np.minimum(np.logaddexp(below, mass[-1]), 0.0), np.minimum(above, 0.0))
        with np.errstate(divide="ignore"):
            chances.append(law.log_block(lo, hi, np.full(below.size, mass[-1])))
    return float(np.max(chances[0] - chances[1]))


# ---------------------------------------------------------------------------------------------------------------
# Three-point mechanisms for Rényi curves
# ---------------------------------------------------------------------------------------------------------------


def _three_point_beside_slack(
    base: Base, law: Law, log_delta: float, upper: float, curve: RankCurve
) -> LowerBound | None:
    """A three-point mechanism, mixed with two best-ranked outcomes of probability ``slack`` that only one input has.

    The search then ends in one of these with probability ``1 - f(1-slack)``, the same under both inputs, and is the
    search on the three points otherwise: Lemma 20 of Papernot and Steinke 2022 holds with equality.
    """
    if base.slack == 0.0:
        return _few_points(base, law, log_delta, upper, curve)
    if base.slack >= 1.0:
        return None
    # a little less is subtracted than was added, so that rounding lowers epsilon
    log_added = float(law.log_survival(Rank.from_u(np.array([base.slack])))[0]) - 1e-12
    if log_added > log_delta:
        return LowerBound(math.inf, "three-point")
    log_left = float(logsubexp(log_delta, log_added) - log1mexp(log_added))
    core, thinned = base.core, law.thin(math.log1p(-base.slack))
    return _few_points(core, thinned, min(log_left, 0.0), upper, rank_curve(core, thinned))


def _few_points(base: Base, law: Law, log_delta: float, upper: float, curve: RankCurve) -> LowerBound | None:
    """The better of a three-point and a two-point mechanism."""
    hope, u, v = _two_points(law, log_delta, curve)
    three = _three_point(base, law, log_delta, upper, curve, least=hope)
    if three is not None or hope <= 0.0:
        return three
    constraints = _Constraints(base)
    start, far = (float((part.log_u - part.log_q)[0]) for part in (u, v))

    def image(share: float) -> Rank:
        return Rank.from_logit(np.array([start + (far - start) * share]))

    def holds(share: float) -> bool:
        log_q, log_p = np.concatenate(u), np.concatenate(image(share))
        return constraints.excess(log_q, log_p)[0] <= 0.0 and constraints.excess(log_p, log_q)[0] <= 0.0

    # V was interpolated: it may fall short, or lie a little above
    low, high = 0.99, 1.01
    if not holds(low):
        return None
    for _ in range(14):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    epsilon = float(_last_block(law, log_delta, u, image(low))[0]) - 1e-10
    outcomes = tuple(tuple(np.concatenate(rank).tolist()) for rank in (u, image(low)))
    return LowerBound(max(epsilon, 0.0), "two-point", (outcomes[0], outcomes[1]))


def _two_points(law: Law, log_delta: float, curve: RankCurve) -> tuple[float, Rank, Rank]:
    """Best mechanism of two outcomes, a top block ``(u, V(u))`` and the rest: what it may prove, and u and V(u).

    What is bad here is the last rank, which few runs in all spare: the instance for a fixed number of runs.
    """
    inner = slice(1, -1)
    node, image = curve.rank.take(inner), curve.image.take(inner)
    logit_u, logit_v = (part.log_u - part.log_q for part in (node, image))
    top = int(np.argmax(_last_block(law, log_delta, node, image)))
    fine = np.interp(np.linspace(top - 1.0, top + 1.0, 41), np.arange(logit_u.size), logit_u)
    u, v = Rank.from_logit(fine), Rank.from_logit(np.interp(fine, logit_u, logit_v))
    if curve.base.orders is not None:  # few orders make a region that is cheap, and has corners
        v = curve.base.region(u)
    found = _last_block(law, log_delta, u, v)
    best = slice(int(np.argmax(found)), int(np.argmax(found)) + 1)
    return float(found[best][0]), u.take(best), v.take(best)


def _last_block(law: Law, log_delta: float, u: Rank, v: Rank) -> Array:
    """``log((dA - delta)/dA')`` of what is ranked after u (after v under the other input)."""
    end = Rank(np.zeros_like(u.log_u), np.full_like(u.log_u, -np.inf))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_a, log_b = law.log_block(u, end, u.log_q), law.log_block(v, end, v.log_q)
        out = np.where(log_a > log_delta, logsubexp(np.maximum(log_a, log_delta), log_delta) - log_b, -np.inf)
    return np.asarray(np.where(np.isnan(out), -np.inf, out), dtype=float)


class _Blocks(Protocol):
    """What the three-point search asks of a law of K (or of acceptance)."""

    def log_density(self, rank: Rank) -> Array: ...
    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array: ...


def _three_point(
    base: Base,
    law: _Blocks,
    log_delta: float,
    upper: float,
    curve: RankCurve,
    logit: float | None = None,
    least: float = 0.0,
) -> LowerBound | None:
    """Best three-point mechanism that proves more than ``least``, checked at every order in both directions.

    The search starts at the maximiser of R1's M (or the given log odds of the top block), and from better ranks too
    where that leaves a gap to ``upper``. It uses few orders and an interpolated region; the instance it finds is then
    certified, giving way a little where a constraint is broken.
    """
    order, rank = _supremum_point(base, log_delta, curve)
    orders = _search_orders(base, order)
    budget = (orders - 1.0) * base.rdp(orders) * (1.0 - 2e-6)
    use = np.isfinite(budget) & (budget < 600.0)
    orders, budget = orders[use], budget[use]
    if orders.size == 0:
        return None

    def values(x: Array) -> Array:
        return _three_point_values(curve, law, log_delta, orders, budget, x)

    logit = float(rank.log_u - rank.log_q) if logit is None else logit
    best_x, best = np.zeros(3), -math.inf
    log_gain = log_delta + math.log(order / (order - 1.0))
    rounds = [_starts(law, log_gain, logit + np.zeros(1)), _starts(law, log_gain, logit + _BETTER)]
    if log_delta > math.log(_LARGE_DELTA):
        rounds.append(_large_starts(logit))
    for start in rounds:
        value = values(start)
        top = _first_of_best(value)
        if value[top] > best:
            best_x, best = _climb(values, start[top], float(value[top]))
        if best > upper * (1.0 - _CLOSE):
            break
    if not least < best < math.inf:
        return None
    constraints = _Constraints(base)
    for give in (0.0, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1):
        x = np.array([best_x[0], best_x[1], math.log(math.exp(min(best_x[2], 0.0)) * (1.0 + give) + give)])
        certified = _certified_three_point(constraints, law, log_delta, x, curve)
        if certified is not None:
            return certified if certified.epsilon > least else None
    return None


def _large_starts(logit: float) -> Array:
    """Candidates for a large δ, where the best bad outcome is no longer small."""
    places = np.concatenate([logit + np.array([-2.0, -1.0]), np.linspace(-5.0, 1.0, 7)])
    grid = np.meshgrid(places, np.arange(-5.0, 0.0, 0.6), [-9.0, -4.0, -2.0, -1.0, -0.5], indexing="ij")
    return np.column_stack([part.ravel() for part in grid])


def _starts(law: _Blocks, log_gain: float, logit: Array) -> Array:
    """Candidates with the top block up to each rank: rows of (logit u0, log b, log of the share v0 leaves)."""
    log_b = log_gain - law.log_density(Rank.from_logit(logit))
    # for small epsilon the best bad outcome is much larger than delta over its gain: scan upwards from there
    grid = np.meshgrid(np.arange(logit.size), np.arange(0.0, 9.0, 0.75), [-9.0, -6.0, -4.0, -2.5, -1.5], indexing="ij")
    place, rise, share = (part.ravel() for part in grid)
    place = place.astype(int)
    return np.column_stack([logit[place], np.minimum(log_b[place] + rise, -0.7), share])


_SAME = 1e-10


def _first_of_best(value: Array) -> int:
    """The first of the largest values that are equal but for rounding: a search must not turn on the last bit."""
    top = float(np.max(value))
    return int(np.argmax(value >= top - _SAME * abs(top))) if math.isfinite(top) else int(np.argmax(value))


def _climb(values: Callable[[Array], Array], x: Array, best: float) -> tuple[Array, float]:
    """Pattern search: the best of the 27 points around, then around that, with smaller steps where none is better."""
    widths = np.array([0.3, 0.4, 1.5])
    offsets = np.stack(np.meshgrid(*([np.array([-1.0, 0.0, 1.0])] * 3), indexing="ij"), axis=-1).reshape(-1, 3)
    for _ in range(22):
        trial = x + offsets * widths
        value = values(trial)
        top = _first_of_best(value)
        moved = value[top] > best + _SAME * abs(best)
        if moved:
            gained, best, x = float(value[top]) - best, float(value[top]), trial[top]
            if gained < 2e-5 * abs(best) and widths[0] < 0.05:
                break
        widths = widths * (1.0 if moved else 0.5)
        if widths[0] < 2e-3:
            break
    return x, best


def _search_orders(base: Base, order: float) -> Array:
    """Some dozens of orders around the one that binds."""
    if base.orders is not None:
        return base.orders[np.isfinite(base.orders)]
    return 1.0 + (order - 1.0) * np.exp(np.linspace(-4.5, 4.5, 61))


def _supremum_point(base: Base, log_delta: float, curve: RankCurve) -> tuple[float, Rank]:
    """Order and rank at which R1 with the usual conversion is attained (on the samples: a starting point)."""
    grid = base.orders if base.orders is not None else 1.0 + np.exp(np.arange(-4.0, 16.0, 0.1))
    grid = grid[np.isfinite(grid) & np.isfinite(base.rdp(grid))]
    h = grid[:, None] - 1.0
    inner = slice(1, -1)
    with np.errstate(invalid="ignore"):
        values = grid[:, None] * curve.log_f[inner] - h * curve.log_g[inner]
    values = np.where(np.isnan(values), -np.inf, values)
    place = np.argmax(values, axis=1)
    epsilon = (values[np.arange(grid.size), place] + h[:, 0] * base.rdp(grid) - log_delta - np.log(grid)) / h[:, 0]
    epsilon = epsilon + np.log(h[:, 0] / grid)
    k = int(np.argmin(epsilon))
    i = int(place[k]) + 1
    return float(grid[k]), curve.rank.take(i)


def _points(curve: RankCurve, x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """``(u0, v0, b, 1-u0, 1-v0)`` from (logit u0, log b, log of the share of V(u0) - u0 that v0 leaves)."""
    inner = slice(1, -1)
    node, image = curve.rank.take(inner), curve.image.take(inner)
    top = Rank.from_logit(x[:, 0])
    largest = Rank.from_logit(np.interp(x[:, 0], node.log_u - node.log_q, image.log_u - image.log_q))
    u0 = np.exp(top.log_u)
    left = np.exp(np.minimum(x[:, 2], 0.0)) * np.maximum(np.exp(largest.log_u) - u0, 0.0)
    v0 = np.maximum(np.exp(largest.log_u) - left, u0)
    return u0, v0, np.exp(np.minimum(x[:, 1], 0.0)), np.exp(top.log_q), np.exp(largest.log_q) + left


def _least_bad(orders: Array, budget: Array, u0: Array, v0: Array, b: Array, rest_q: Array, rest_v: Array) -> Array:
    """Log of the least b' that keeps ``D_a(Q || Q')`` within budget at every order (n x orders, fixed point)."""
    h = orders - 1.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_u, log_v, log_b = np.log(u0)[:, None], np.log(v0)[:, None], np.log(b)[:, None]
        log_rest = np.log(rest_q - b)[:, None]
        log_bad = np.full((u0.size, 1), -np.inf)
        for _ in range(4 if np.max(b) > 1e-3 else 2):
            left = np.log(np.maximum(rest_v[:, None] - np.exp(log_bad), 0.0))
            spent = np.logaddexp(orders * log_u - h * log_v, orders * log_rest - h * left)
            room = logsubexp(np.maximum(np.where(np.isnan(spent), np.inf, budget), spent), spent)
            each = (orders * log_b - room) / h
            log_bad = np.max(np.where(np.isnan(each), np.inf, each), axis=1, keepdims=True)
    return np.asarray(log_bad[:, 0], dtype=float)


def _reverse_ok(
    orders: Array, budget: Array, u0: Array, v0: Array, b: Array, log_bad: Array, rest_q: Array, rest_v: Array
) -> Array:
    """Largest excess over orders of ``(a-1) D_a(Q' || Q) - budget`` (<= 0 is fine)."""
    h = orders - 1.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = np.stack(
            [
                orders * np.log(v0)[:, None] - h * np.log(u0)[:, None],
                orders * log_bad[:, None] - h * np.log(b)[:, None],
                orders * np.log(rest_v - np.exp(log_bad))[:, None] - h * np.log(rest_q - b)[:, None],
            ]
        )
        moment = logsumexp(terms, axis=0)
    out = np.max(np.where(np.isnan(moment), np.inf, moment) - budget, axis=1)
    return np.asarray(out, dtype=float)


def _three_point_values(
    curve: RankCurve, law: _Blocks, log_delta: float, orders: Array, budget: Array, x: Array
) -> Array:
    """ε of each candidate (rows of x), ``-inf`` where it breaks the curve."""
    u0, v0, b, rest_q, rest_v = _points(curve, x)
    fits = (b > 0.0) & (b < 0.999 * rest_q) & (v0 > 0.0) & (rest_v > 0.0)
    b = np.where(fits, b, 0.5 * rest_q)
    log_bad = _least_bad(orders, budget, u0, v0, b, rest_q, rest_v)
    fits &= np.isfinite(log_bad) & (np.exp(log_bad) < rest_v) & (log_bad < np.log(b))
    with np.errstate(divide="ignore"):  # where nothing fits
        log_bad = np.where(fits, log_bad, np.log(0.5 * np.minimum(b, rest_v)))
    fits &= _reverse_ok(orders, budget, u0, v0, b, log_bad, rest_q, rest_v) <= 0.0
    value = _three_point_epsilon(law, log_delta, u0, v0, b, np.exp(log_bad), rest_q, rest_v)
    return np.asarray(np.where(fits, value, -np.inf), dtype=float)


def _three_point_epsilon(
    law: _Blocks, log_delta: float, u0: Array, v0: Array, b: Array, bad: Array, rest_q: Array, rest_v: Array
) -> Array:
    """``log((dA - delta)/dA')`` of the bad outcome."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_a = law.log_block(Rank(np.log(u0), np.log(rest_q)), Rank(np.log(u0 + b), np.log(rest_q - b)), np.log(b))
        log_b = law.log_block(
            Rank(np.log(v0), np.log(rest_v)), Rank(np.log(v0 + bad), np.log(rest_v - bad)), np.log(bad)
        )
        value = np.where(log_a > log_delta, logsubexp(np.maximum(log_a, log_delta), log_delta) - log_b, -np.inf)
    return np.asarray(np.where(np.isnan(value), -np.inf, value), dtype=float)


class _Constraints:
    """What a Rényi curve demands of a pair, at every order it speaks of.

    Between two orders a pair's moment ``(a-1) D_a`` is below its chord (it is convex in a), and the curve's own falls
    below its chord by a fraction of about ``(step / 2)^2``: where a pair comes near the curve the cell is split until
    that is far below the margin.
    """

    _MARGIN = 1e-6
    _NEAR = 2e-4

    def __init__(self, base: Base) -> None:
        self._rdp = base.rdp
        self._continuous = base.orders is None
        if base.orders is not None:
            orders = base.orders[np.isfinite(base.orders)]
        else:
            top = math.log(1e8)
            while float(base.rdp(np.array([math.exp(top)]))[0]) < 50.0 and top < 40.0:
                top += 4.0  # a large budget at the last order leaves nothing to check beyond
            orders = 1.0 + np.exp(np.arange(math.log(1e-6), top, 0.01))
        rdp = base.rdp(orders)
        self.orders = orders[np.isfinite(rdp)]
        self.budget = self._budget(self.orders)
        self.largest_loss = base.pure_epsilon
        if self._continuous and base.pure_epsilon == math.inf and self.orders.size:
            self.largest_loss = float(base.rdp(self.orders[-1:])[0])

    def _budget(self, orders: Array) -> Array:
        return np.asarray((orders - 1.0) * self._rdp(orders) * (1.0 - self._MARGIN), dtype=float)

    def excess(self, log_q: Array, log_p: Array) -> tuple[float, float]:
        """Largest excess of ``(a-1) D_a(Q || P)`` over the budget, and its derivative in ``-log_p[1]`` there."""
        loss = float(np.max(log_q - log_p)) - self.largest_loss * (1.0 - self._MARGIN)
        if loss > 0.0:
            return loss, 1.0
        value, slope = _moment_excess(self.orders, self.budget, log_q, log_p)
        if self._continuous and np.max(value) <= 0.0:
            near = value > -self._NEAR * self.budget
            cells = np.flatnonzero(near[1:] | near[:-1])
            if cells.size:
                x = np.log(self.orders - 1.0)
                inner = x[cells] + (x[cells + 1] - x[cells]) * np.linspace(0.0, 1.0, 25)[1:-1, None]
                orders = 1.0 + np.exp(inner.ravel())
                more, more_slope = _moment_excess(orders, self._budget(orders), log_q, log_p)
                value, slope = np.concatenate([value, more]), np.concatenate([slope, more_slope])
        top = int(np.argmax(value))
        return float(value[top]), float(slope[top])


def _moment_excess(orders: Array, budget: Array, log_q: Array, log_p: Array) -> tuple[Array, Array]:
    """Per order ``log sum q^a p^(1-a) - budget``, and what it loses per unit of ``log p`` of the second outcome."""
    h = orders - 1.0
    losses = h * (log_q - log_p)[:, None]
    terms = log_q[:, None] + losses
    top = np.max(terms, axis=0)
    with np.errstate(under="ignore"):
        moment = top + np.log(np.sum(np.exp(terms - top), axis=0))
        share = np.exp(terms[1] - moment)
        # close to 0 the outcomes are kept apart from 1 to spare cancellation
        near = np.max(losses, axis=0) < 0.5
        if near.any():
            moment[near] = np.log1p(np.exp(log_q) @ np.expm1(losses[:, near]))
    return moment - budget, h * share


def _certified_three_point(
    constraints: _Constraints, law: _Blocks, log_delta: float, x: Array, curve: RankCurve
) -> LowerBound | None:
    """One candidate, its constraints checked at every order, b' raised until they hold."""
    u0, v0, b, rest_q, rest_v = _points(curve, x[None, :])
    log_bad = _least_bad(constraints.orders, constraints.budget, u0, v0, b, rest_q, rest_v)
    with np.errstate(divide="ignore"):
        log_q = np.log(np.concatenate([u0, b, rest_q - b]))
    for _ in range(40):
        if not np.isfinite(log_bad[0]) or log_bad[0] >= math.log(rest_v[0]):
            return None
        log_p = np.concatenate([np.log(v0), log_bad, np.log(rest_v - np.exp(log_bad))])
        if not np.isfinite([*log_q, *log_p]).all():
            return None
        over, slope = constraints.excess(log_q, log_p)
        if over <= 0.0:
            break
        log_bad = log_bad + min(over / max(slope, 1e-3), 1.0) * (1.0 + 1e-6) + 1e-12
    else:
        return None
    if constraints.excess(log_p, log_q)[0] > 0.0:
        return None
    value = float(_three_point_epsilon(law, log_delta, u0, v0, b, np.exp(log_bad), rest_q, rest_v)[0])
    if not math.isfinite(value):
        return None
    return LowerBound(max(value - 1e-10, 0.0), "three-point", (tuple(log_q.tolist()), tuple(log_p.tolist())))


# ---------------------------------------------------------------------------------------------------------------
# Conditional sampling
# ---------------------------------------------------------------------------------------------------------------


class _Accepted:
    """The search "run until accepted", where the best-ranked outcomes up to some mass are the accepted ones.

    Parameters
    ----------
    accept : float
        The least mass that either input must accept.
    """

    def __init__(self, accept: float) -> None:
        self._log_accept = math.log(accept)

    def log_density(self, rank: Rank) -> Array:
        return -np.maximum(rank.log_u, self._log_accept)

    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
        """Chance of the last accepted block; NaN where too little is accepted."""
        return np.where(hi.log_u >= self._log_accept, log_width - hi.log_u, np.nan)


def conditional_lower_bound(base: Base, accept: float, log_delta: float, upper: float = math.inf) -> LowerBound | None:
    """Lower bound for "run until accepted".

    Where the region is a mechanism's own, the accepted set holds some of the highest losses and else the lowest; where
    only a Rényi curve is known, the top block and the bad outcome of a three-point mechanism.

    Parameters
    ----------
    base : Base
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
        curve = rank_curve(base, TruncatedNegativeBinomial.from_gamma(1.0, accept))
        logit = math.log(accept) - math.log1p(-accept) + 1e-9 if accept < 1.0 else 30.0
        point = _three_point(base, _Accepted(accept), log_delta, upper, curve, logit)
        if point is not None:
            found.append(point)
    pair = _pair(base, log_delta, -math.log(accept))
    if pair is not None:
        found.append(LowerBound(_rounded_down(_conditional_pair(*pair[0], accept, log_delta), log_delta), pair[1]))
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
