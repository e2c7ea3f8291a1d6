"""The region V(u) that a Rényi curve allows: how likely a neighbouring input may make an event of probability u.

A test is post-processing, so a guarantee of one run limits the pair (u, v) of probabilities of any event under two
neighbouring inputs: ``D(Bern(v) || Bern(u)) <= rdp`` and ``D(Bern(u) || Bern(v)) <= rdp`` at every order. The second is
the first mirrored (u to 1-v, v to 1-u): it binds on the other half of the curve. Any order gives a valid bound; which
ones are tried is only a matter of tightness.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hpcalc.guarantees.guarantee import Guarantee
from hpcalc.guarantees.mechanisms import PureDP
from hpcalc.guarantees.tradeoff import Tradeoff, from_points
from hpcalc.logspace import Array, Indices, Prob, logsubexp, softplus

#: Normal scores of the points that are solved for every base, and of the few among them that are solved afresh.
SCORES = np.concatenate([np.arange(-38.0, -9.0, 0.25), np.arange(-9.0, 9.0, 0.03), np.arange(9.0, 38.1, 0.25)])
_FAR = np.geomspace(39.0, 1e4, 24)
_SPARSE = np.concatenate([-_FAR[::-1], np.arange(-38.0, 38.1, 0.5), _FAR])
#: Orders on which searches over all orders start, 1.06 apart in order-1: a profile's delta is off by less than 1e-3.
SEARCH_ORDERS: Array = 1.0 + np.exp(np.arange(math.log(1e-4), math.log(1e8), 0.06))
_STEP = 1e-3  # of the differences of a Rényi curve, relative to order - 1
_LEAST = 1e-8  # closer to order 1 nothing is gained, and these differences lose their digits
_MOST = 1e8
_ROUNDS = 20


class _Solved(NamedTuple):
    """Logit of v at each point, order - 1 and direction (1: v against u, -1: u against v) of what binds there."""

    z: Array
    h: Array
    side: Array

    def lower(self, where: Indices, other: _Solved) -> Indices:
        """Take over what is smaller in ``other``, the answers at ``where``; returns which of them."""
        better: Indices = np.flatnonzero(other.z < self.z[where])
        for mine, new in zip(self, other, strict=True):
            mine[where[better]] = new[better]
        return better


def times_expm1(log_p: Any, x: Any) -> Array:
    """``p (e^x - 1)``; for large x the factors may leave the range of a double where the product does not."""
    product: Array = np.where(x > 1.0, np.exp(log_p + x) - np.exp(log_p), np.exp(log_p) * np.expm1(np.minimum(x, 1.0)))
    return product


def _log_moment(h: Array, side: Any, v: Prob, u: Prob) -> tuple[Array, Array]:
    """``log E_P[(dP/dR)^h]``, P = Bern(v) and R = Bern(u) (side -1: exchanged), and the first outcome's share of it."""
    forward = side > 0
    log_p, log_pq = (np.where(forward, *parts) for parts in zip(v, u, strict=True))
    rise, fall = side * h * (v.log_u - u.log_u), side * h * (v.log_q - u.log_q)
    with np.errstate(over="ignore", invalid="ignore"):
        out = np.logaddexp(log_p + rise, log_pq + fall)
        share = np.exp(log_p + rise - out)
        small = np.abs(out) < 0.05
        if small.any():  # close to 0 the two outcomes are kept apart from 1 to spare cancellation
            out = np.where(small, np.log1p(times_expm1(log_p, rise) + times_expm1(log_pq, fall)), out)
    return out, share


def _cap(h: Array, budget: Array, side: Any, u: Prob) -> Array:
    """Logit of an upper bound on v from one order, ``budget = h rdp``: what one of the two outcomes alone allows."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        forward = Prob.from_log_u(np.minimum((budget + h * u.log_u) / (1.0 + h), 0.0))
        backward = Prob.from_log_q(np.minimum(((1.0 + h) * u.log_q - budget) / h, 0.0))
        out = np.where(side > 0, forward.logit, backward.logit)
    return np.where(np.isnan(out), math.inf, out)


def _solve_order(h: Array, budget: Array, side: Array, u: Prob, start: Array) -> Array:
    """Logit of the largest v that one order allows in one direction, from above; inf where it allows all.

    Newton's method between bounds, halved where it leaves them. An answer is a v that the order does not allow.
    """
    lo, cap = u.logit, _cap(h, budget, side, u)
    # the cap, which may be infinite, may be the answer: it should lie inside
    hi = out = np.maximum(cap + 1e-12 * (1.0 + np.abs(np.where(np.isfinite(cap), cap, 0.0))), lo)
    active = np.flatnonzero(np.isfinite(hi))
    h, budget, side, u, lo, hi = h[active], budget[active], side[active], u.take(active), lo[active], hi[active]
    z = np.clip(start[active], lo, hi)
    power = np.where(side > 0, 1.0 + h, -h)
    noise = 2e-15 * (budget - h * (u.log_u + u.log_q)) + 1e-12 * np.minimum(budget, 1.0)
    for _ in range(90):
        v = Prob.from_logit(z)
        moment, share = _log_moment(h, side, v, u)
        value = moment - budget
        below = value < 0.0
        lo, hi = np.where(below, z, lo), np.where(below, hi, z)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            move = (value - 0.5 * noise) / (power * (share * np.exp(v.log_q) - (1.0 - share) * np.exp(v.log_u)))
        z = np.where((z - move > lo) & (z - move < hi), z - move, 0.5 * (lo + hi))
        left = (below | (value > noise)) & (hi - lo > 4e-15 * (1.0 + np.abs(hi)))
        out[active] = hi
        if not left.any():
            break
        if not left.all():
            active, u = active[left], u.take(left)
            kept = (part[left] for part in (h, budget, side, lo, hi, z, power, noise))
            h, budget, side, lo, hi, z, power, noise = kept
    return out


def region_from_rdp(base: Guarantee, rank: Prob, known: Prob) -> Prob:
    """Upper bounds on v at each rank u, any shape, at most the ``known`` ones."""
    inside = np.isfinite(rank.log_u) & np.isfinite(rank.log_q)
    z = np.full(inside.shape, math.inf)
    if base.pure_epsilon > 0.0 and base.finite and inside.any():
        z[inside] = _solved(base, rank.take(inside)).z
    v = Prob.from_logit(z)
    log_u, log_q = np.maximum(v.log_u, rank.log_u), np.minimum(v.log_q, rank.log_q)
    return Prob(np.minimum(log_u, known.log_u), np.maximum(log_q, known.log_q))


@lru_cache(maxsize=8)
def tradeoff_from_rdp(base: Guarantee) -> Tradeoff | None:
    """The trade-off curve that a Rényi curve allows, each point with the tangent of the order that binds there.

    One order allows a convex set of points (u, v), so its tangent at the point found limits all of the region.
    """
    u, epsilon = Prob.from_normal(SCORES), base.pure_epsilon
    z, h, side = _solved(base, u)
    v = Prob.from_logit(np.minimum(z, 1e300))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # of the constraint v^a u^(1-a) + (1-v)^a (1-u)^(1-a) = const, a = 1+h or -h
        ahead, back = v.log_u - u.log_u, v.log_q - u.log_q
        ahead, back = np.where(side > 0, ahead, -back), np.where(side > 0, back, -ahead)
        turn = logsubexp((1.0 + h) * ahead, (1.0 + h) * back) - logsubexp(h * ahead, h * back)
        log_slope = side * (turn + np.log(h) - np.log1p(h))
    sound = np.isfinite(z) & np.isfinite(log_slope) & (v.log_u >= u.log_u)
    if not sound.any():
        return PureDP(epsilon).tradeoff()
    # at every point the smaller V, with its slope
    pure = PureDP(epsilon).region(u)
    own = sound & (v.log_q > pure.log_q)
    v = Prob(*(np.where(own, mine, other) for mine, other in zip(v, pure, strict=True)))
    log_slope = np.where(own, log_slope, np.where(u.log_q < -softplus(-epsilon), -epsilon, epsilon))
    known = np.flatnonzero(own | (epsilon < math.inf))[::-1]
    x, w = (p.complement().take(known) for p in (u, v))
    return from_points(x, w, np.maximum.accumulate(log_slope[known]), ends=epsilon)


def _solved(base: Guarantee, u: Prob) -> _Solved:
    return _improved(base, u, *_nodes(base)) if base.orders is None else _of_orders(base, u, base.orders)


def _of_orders(base: Guarantee, u: Prob, orders: Array) -> _Solved:
    """The least v over the orders given: from one order to the one that its v breaks most, until none is broken."""
    limit = base.rdp(orders)
    binding = limit < PureDP(base.pure_epsilon).rdp(orders)  # the others are implied by pure DP
    h, limit = orders[binding] - 1.0, limit[binding]
    budget = h * limit
    best = _Solved(np.full(u.log_u.shape, math.inf), np.ones(u.log_u.shape), np.ones(u.log_u.shape))
    left = np.arange(best.z.size)
    for step in range(16 if h.size else 0):
        point = u.take(left)
        wide = Prob(point.log_u[:, None], point.log_q[:, None])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            v = Prob.from_logit(best.z[left][:, None])
            sides = [_log_moment(h, side, v, wide)[0] / budget - 1.0 if step else -_cap(h, budget, side, wide)
                     for side in (1.0, -1.0)]  # fmt: skip
        score = np.concatenate(sides, axis=1)
        choice = np.argmax(np.where(np.isnan(score), -math.inf, score), axis=1)
        broken = score[np.arange(left.size), choice] > (1e-9 if step else -math.inf)
        left, choice, point = left[broken], choice[broken], point.take(broken)
        column, side = choice % h.size, np.where(choice < h.size, 1.0, -1.0)
        found = _solve_order(h[column], budget[column], side, point, best.z[left])
        left = left[best.lower(left, _Solved(found, h[column], side))]
        if left.size == 0:
            break
    return best


@lru_cache(maxsize=32)
def _nodes(base: Guarantee) -> tuple[Array, _Solved]:
    """Logits of points solved over all orders: always the same ones, so that answers do not turn on other questions."""
    u = Prob.from_normal(_SPARSE)
    return u.logit, _improved(base, u, u.logit, _of_orders(base, u, SEARCH_ORDERS[::12]))


def _improved(base: Guarantee, u: Prob, logit: Array, near: _Solved) -> _Solved:
    """What binds among all orders, starting from the points solved ``near`` these, given by increasing ``logit`` u.

    At the least v no order is broken, and the best one just not: Newton's method on h = order - 1 finds the order that
    the v at hand breaks most, which gives the next v.
    """
    at = u.logit
    # Where the binding direction changes hands the best order passes through 1: signed, it is smooth there, and either
    # direction may bind. Far from there its logarithm is.
    same = np.interp(at, logit, np.convolve(np.pad(near.side, 1, "edge"), np.full(3, 1.0 / 3.0), "valid").round(9))
    signed, log_h = (np.interp(at, logit, values) for values in (near.side * near.h, np.log(near.h)))
    h = np.where((np.abs(same) == 1.0) & (log_h > -1.0), np.exp(log_h), np.maximum(np.abs(signed), _LEAST))
    z = np.interp(at, logit, np.minimum(near.z, 800.0))
    ways = [np.flatnonzero(way * same > -1.0) for way in (1.0, -1.0)]
    where, side = np.concatenate(ways), np.repeat([1.0, -1.0], [way.size for way in ways])
    h, z = h[where], z[where]
    best = _Solved(*np.ones((3, at.size)))
    best.z[:] = math.inf
    for _ in range(_ROUNDS):
        point = u.take(where)
        stencil = h * np.array([[1.0 - _STEP], [1.0], [1.0 + _STEP]])
        spend = stencil * base.rdp(1.0 + stencil)
        z = _solve_order(h, spend[1], side, point, z)
        for _ in range(2):  # a point may be there twice, once in either direction
            best.lower(where, _Solved(z, h, side))
        v = Prob.from_logit(np.minimum(z, 1e300))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            _, share = _log_moment(h, side, v, point)
            gain, loss = side * (v.log_u - point.log_u), side * (v.log_q - point.log_q)
            slope = share * gain + (1.0 - share) * loss - (spend[2] - spend[0]) / (2.0 * _STEP * h)
            bend = share * (1.0 - share) * (gain - loss) ** 2 - np.diff(spend, 2, axis=0)[0] / (_STEP * h) ** 2
            bend = bend * h - 2.0 * slope  # of the divergence less its limit: the moment less the budget, by h
            step = np.where(bend < 0.0, -slope / bend, np.sign(slope) * math.inf)
            # close to order 1 all is smooth in the order, and the best one may be 1 itself
            least = np.where(h * np.abs(gain - loss) < 0.1, -1.0, -0.8)
            step = np.where(np.isfinite(z), np.clip(np.nan_to_num(step), least, 3.0), -0.8)  # no order: a lower one
        moved = np.clip(h * (1.0 + step), _LEAST, _MOST)
        left = np.abs(moved - h) > 1e-5 * h
        if not left.any():
            break
        where, side, h, z = where[left], side[left], moved[left], z[left]
    return best
