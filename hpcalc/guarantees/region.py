"""The region V(u): how likely a neighbouring input may make an event of probability u.

A test is post-processing, so a guarantee of one run limits the pair (u, v) of probabilities of any event under two
neighbouring inputs. From a Rényi curve every order is a constraint on two-outcome laws; from a privacy profile every
point is a line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from hpcalc.guarantees.tradeoff import Tradeoff, from_points
from hpcalc.logspace import Array, Indices, Mask, Prob, distinct, log1mexp, logsubexp, softplus

__all__ = ["RenyiCurve", "region_from_rdp", "search_orders", "times_expm1", "tradeoff_from_rdp"]


class RenyiCurve(Protocol):
    """Anything hashable with a Rényi curve."""

    def rdp(self, orders: Array) -> Array: ...

    def __hash__(self) -> int: ...


def search_orders() -> Array:
    """Orders on which searches over all orders start."""
    # 1.06 apart in order-1: the region is refined between them, a profile's delta is off by < 1e-3 of its value.
    return np.asarray(1.0 + np.exp(np.arange(math.log(1e-4), math.log(1e8), 0.06)), dtype=float)


def _log_moment(order: Array, side: Array, log_v: Array, log_qv: Array, point: Prob) -> tuple[Array, Array]:
    """``log E[(dP/dR)^(order-1)]`` of two-outcome laws P, R, and the first outcome's share of it.

    ``side`` +1: P = Bern(v), R = Bern(u); -1: the other way round.
    """
    h = order - 1.0
    a = np.where(side > 0, order, -h)  # power of v
    first = a * log_v + (1.0 - a) * point.log_u
    second = a * log_qv + (1.0 - a) * point.log_q
    with np.errstate(over="ignore", invalid="ignore"):
        plain = np.logaddexp(first, second)
        share = np.exp(first - plain)
        small = np.abs(plain) < 0.05
        if small.any():  # close to 0 the two outcomes are kept apart from 1 to spare cancellation
            parts: list[Any] = [side * h, side > 0, log_v, log_qv, *point]
            power, forward, v, qv, u, q = (
                (part if part.shape == plain.shape else np.broadcast_to(part, plain.shape))[small] for part in parts
            )
            gain = times_expm1(np.where(forward, v, u), power * (v - u))
            loss = times_expm1(np.where(forward, qv, q), power * (qv - q))
            plain[small] = np.log1p(gain + loss)
    return plain, share


def times_expm1(log_p: Any, x: Any) -> Array:
    """``p (e^x - 1)``; for large x the factors may leave the range of a double where the product does not."""
    return np.asarray(
        np.where(x > 1.0, np.exp(log_p + x) - np.exp(log_p), np.exp(log_p) * np.expm1(np.minimum(x, 1.0)))
    )


def _fixed_point(order: Array, budget: Array, side: Array, point: Prob, rounds: int) -> tuple[Array, Array]:
    """Upper bounds on v from one order, by iterating downwards from a bound that drops one outcome.

    ``budget`` is ``(order-1) rdp``. From ``v^a u^(1-a) <= e^budget - (1-v)^a (1-u)^(1-a)`` or the mirrored inequality:
    an upper bound for v put on the right gives a smaller upper bound, so every iterate is valid.
    """
    h = order - 1.0
    log_u, log_q = point
    forward = side > 0
    log_v = np.where(forward, np.minimum((budget + h * log_u) / order, 0.0), 0.0)
    log_qv = np.where(forward, -np.inf, np.minimum((order * log_q - budget) / h, 0.0))
    for _ in range(rounds):
        log_qv = np.where(forward, log1mexp(log_v), log_qv)
        log_v = np.where(forward, log_v, log1mexp(log_qv))
        other = np.where(forward, order * log_qv - h * log_q, order * log_u - h * log_v)
        rest = logsubexp(np.maximum(budget, other), other)
        log_v = np.where(forward, np.minimum(log_v, (rest + h * log_u) / order), log_v)
        log_qv = np.where(forward, log_qv, np.maximum(log_qv, (order * log_q - rest) / h))
    return np.where(forward, log_v, log1mexp(log_qv)), np.where(forward, log1mexp(log_v), log_qv)


def _solve_order(order: Array, budget: Array, side: Array, point: Prob, start: Array | None = None) -> Array:
    """Logit of the largest v that one order allows in one direction, from above (exact to a few ulp).

    Newton from ``start`` first where it is given; whatever that does not certify is bisected.
    """
    lo = point.log_u - point.log_q
    top_v, top_q = _fixed_point(order, budget, side, point, 1 if start is None else 0)
    with np.errstate(invalid="ignore"):
        known = top_v - top_q
        far = 800.0 + np.maximum(lo, 0.0)
        hi = np.maximum(np.where(np.isnan(known), 800.0, np.where(np.isposinf(known), far, known)), lo)
        # the search ends where the order is known to break, or else far out: if it holds even there it limits nothing
        unlimited = ~np.isfinite(known)
        if unlimited.any():
            unlimited &= ~(_log_moment(order, side, -softplus(-hi), -softplus(hi), point)[0] >= budget)
    if start is None:
        return np.where(unlimited, np.inf, _bisect_order(order, budget, side, point, lo, hi))
    z = np.clip(start, lo, hi)
    power = np.where(side > 0, order, 1.0 - order)
    close, slope = np.zeros(z.shape, dtype=bool), np.zeros(z.shape)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for _ in range(10):
            log_v, log_qv = -softplus(-z), -softplus(z)
            moment, share = _log_moment(order, side, log_v, log_qv, point)
            value = moment - budget
            # what is close is left alone: the answer for one rank is the same in any company
            slope = np.where(close, slope, power * (share * np.exp(log_qv) - (1.0 - share) * np.exp(log_v)))
            z = np.where(close, z, np.clip(np.where(slope > 0.0, z - value / slope, hi), lo, hi))
            close |= np.abs(value) < 1e-9 * np.minimum(budget, 1.0)
            if close.all():
                break
        z = np.minimum(z + 4e-15 * (1.0 + np.abs(z)) + 1e-14 / np.maximum(np.nan_to_num(slope), 1e-6), hi)
        excess = _log_moment(order, side, -softplus(-z), -softplus(z), point)[0] - budget
        # the end of the search is the answer only where the order breaks there and not before
        found = np.where(z >= hi, excess < 1e-9 * np.minimum(budget, 1.0), close & (excess >= 0.0))
    open_ = np.flatnonzero(~(found | unlimited))
    if open_.size:
        part = Prob(point.log_u[open_], point.log_q[open_])
        z[open_] = _bisect_order(order[open_], budget[open_], side[open_], part, lo[open_], hi[open_])
    return np.where(unlimited, np.inf, z)


def _bisect_order(order: Array, budget: Array, side: Array, point: Prob, lo: Array, hi: Array) -> Array:
    for _ in range(54):
        mid = 0.5 * (lo + hi)
        over = ~(_log_moment(order, side, -softplus(-mid), -softplus(mid), point)[0] < budget)
        hi = np.where(over, mid, hi)
        lo = np.where(over, lo, mid)
    return hi


def region_from_rdp(base: RenyiCurve, rank: Prob, orders: Array | None) -> Prob:
    """Region allowed by a Rényi curve: every order is a constraint on two-outcome events (data processing).

    Parameters
    ----------
    base : Guarantee
        Its ``rdp`` is the curve.
    rank : Prob
        Probabilities ``u``, any shape.
    orders : ndarray or None
        Orders to use; None searches all orders for the one that allows the least ``v``, for each ``u``.

    Returns
    -------
    Prob
        Upper bounds on ``v``; any choice of orders gives a valid one.

    Notes
    -----
    ``D(Bern(v) || Bern(u)) <= rdp`` and ``D(Bern(u) || Bern(v)) <= rdp`` at every order, because a test is
    post-processing. The second is the first mirrored (u to 1-v, v to 1-u): it binds on the other half of the curve.
    """
    shape = rank.log_u.shape
    log_u, log_q = (np.ravel(part).astype(float) for part in rank)
    inside = np.isfinite(log_u) & np.isfinite(log_q)
    out_v, out_q = log_u.copy(), log_q.copy()
    if inside.any():
        point = Prob(log_u[inside], log_q[inside])
        z = _solve_region(base, point, orders).z
        out_v[inside] = np.maximum(-softplus(-z), point.log_u)
        out_q[inside] = np.minimum(-softplus(z), point.log_q)
    return Prob(out_v.reshape(shape), out_q.reshape(shape))


def tradeoff_from_rdp(base: RenyiCurve, orders: Array | None) -> Tradeoff | None:
    """The trade-off curve that a Rényi curve allows, each point with the tangent of the order that binds there.

    One order allows a convex set of points (u, v), so its tangent at the point found limits all of the region.
    """
    scores = np.concatenate([np.arange(-38.0, -9.0, 0.25), np.arange(-9.0, 9.0, 0.03), np.arange(9.0, 38.1, 0.25)])
    point = Prob.from_normal(scores)
    found = _solve_region(base, point, orders)
    keep = np.isfinite(found.z)
    point, v, side = point.take(keep), Prob.from_logit(found.z[keep]), found.side[keep]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        h = np.exp(found.x[keep])
        # of the constraint v^a u^(1-a) + (1-v)^a (1-u)^(1-a) = const, a = 1+h or -h
        ahead, back = v.log_u - point.log_u, v.log_q - point.log_q
        ahead, back = np.where(side > 0, ahead, -back), np.where(side > 0, back, -ahead)
        turn = logsubexp((1.0 + h) * ahead, (1.0 + h) * back) - logsubexp(h * ahead, h * back)
        log_slope = np.where(side > 0, turn + np.log(h) - np.log1p(h), np.log1p(h) - np.log(h) - turn)
    sound = np.isfinite(log_slope) & (v.log_u >= point.log_u)
    if not sound.any():
        return None
    point, v, log_slope = point.take(sound), v.take(sound), log_slope[sound]
    back_ = slice(None, None, -1)
    x, w = point.complement().take(back_), v.complement().take(back_)
    log_slope = np.maximum.accumulate(log_slope[back_])
    return from_points(x, w, log_slope)


class _Solved(NamedTuple):
    """Logit of v, log(order-1) and direction of the order that binds."""

    z: Array
    x: Array
    side: Array


def _solve_region(base: RenyiCurve, point: Prob, orders: Array | None) -> _Solved:
    return _continuous_region(base, point) if orders is None else _discrete_region(base, point, orders)


def _discrete_region(base: RenyiCurve, point: Prob, orders: Array) -> _Solved:
    finite = orders[np.isfinite(orders)]
    budget = (finite - 1.0) * base.rdp(finite)
    finite, budget = finite[np.isfinite(budget)], budget[np.isfinite(budget)]
    best = _Solved(np.full(point.log_u.shape, np.inf), np.zeros(point.log_u.shape), np.ones(point.log_u.shape))
    if finite.size == 0:
        return best
    wide = Prob(point.log_u[:, None], point.log_q[:, None])

    def improve(some: Indices, column: Indices, sign: float) -> Mask:
        found = _solve_order(finite[column], budget[column], np.full(column.shape, sign), point.take(some))
        better = found < best.z[some]
        for kept, new in zip(best, (found, np.log(finite[column] - 1.0), np.full(column.shape, sign)), strict=True):
            kept[some[better]] = new[better]
        return better

    for sign in (1.0, -1.0):
        guess_v, guess_q = _fixed_point(finite, budget, np.array(sign), wide, 6)
        improve(np.arange(best.z.size), np.argmin(np.where(guess_v < -0.7, guess_v, -1.4 - guess_q), axis=1), sign)
    # then the order that the v found breaks most, until none is broken
    for _ in range(12):
        broken = False
        for sign in (1.0, -1.0):
            log_v, log_qv = -softplus(-best.z)[:, None], -softplus(best.z)[:, None]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                excess = _log_moment(finite, np.array(sign), log_v, log_qv, wide)[0] / budget - 1.0
            column = np.argmax(np.where(np.isnan(excess), -np.inf, excess), axis=1)
            worse = np.flatnonzero(excess[np.arange(column.size), column] > 1e-9)
            broken |= bool(worse.size and improve(worse, column[worse], sign).any())
        if not broken:
            break
    return best


def _continuous_region(base: RenyiCurve, point: Prob) -> _Solved:
    """Logit of the least v over all orders, each found by Newton's method on the order.

    The best order changes slowly with logit u: it is taken from points solved before, or from a sample of these, and
    improved; at the least v the moment is stationary in the order. Any order is valid, only tightness depends on the
    search. Between the points solved for every base the answer at a rank does not depend on the others asked for.
    """
    logit = point.log_u - point.log_q
    out = _Solved(*(np.empty(logit.shape) for _ in range(3)))
    left = np.ones(logit.shape, dtype=bool)

    def fill(some: Mask, seeds: _Seeds) -> None:
        for kept, new in zip(out, _from_seeds(base, point.take(some), logit[some], seeds), strict=True):
            kept[some] = new

    for scores in _SEED_SCORES:
        if left.any():
            seeds = _seeds(base, scores)
            within = left & (logit >= seeds.place[0]) & (logit <= seeds.place[-1])
            if within.any():
                fill(within, seeds)
            left &= ~within
    if left.any():
        place = np.sort(logit[left])
        seeds = _solve_afresh(base, place[distinct(np.linspace(0, place.size - 1, 60).astype(int))])
        fill(left, seeds)
    return out


#: Normal scores of the points solved for every base: the usual range, and beyond it as far as grids of ranks go.
_SEED_SCORES = (tuple(range(-40, 25)), (*range(-86, -40, 2), *range(-40, 25, 8), *range(26, 88, 2)))  # in halves


@dataclass(frozen=True, eq=False)
class _Seeds:
    """Solved points by increasing logit u: log(order-1), direction and logit v."""

    place: Array
    x: Array
    side: Array
    z: Array


@lru_cache(maxsize=32)
def _seeds(base: RenyiCurve, scores: tuple[int, ...]) -> _Seeds:
    """Points solved once for each base: always the same ones, so that answers do not depend on earlier questions."""
    rank = Prob.from_normal(0.5 * np.array(scores))
    return _solve_afresh(base, rank.log_u - rank.log_q)


def _solve_afresh(base: RenyiCurve, place: Array) -> _Seeds:
    """Solve points, given by increasing logit u, from nothing: a grid of orders, then Newton."""
    sample = Prob.from_logit(place)
    grid = search_orders()[::8]
    budget = (grid - 1.0) * base.rdp(grid)
    usable = np.isfinite(budget) & (budget < 1e15)
    grid, budget = grid[usable], budget[usable]
    wide = Prob(sample.log_u[:, None], sample.log_q[:, None])
    guesses = []
    for sign in (1.0, -1.0):
        log_v, log_qv = _fixed_point(grid, budget, np.array(sign), wide, 4)
        score = np.where(log_v < -0.7, log_v, -1.4 - np.maximum(log_qv, -1e300))
        index = np.argmin(score, axis=1)
        guess = (log_v - log_qv)[np.arange(index.size), index]
        guesses.append((np.log(grid[index] - 1.0), np.nan_to_num(guess, nan=np.inf, posinf=np.inf)))
    (x1, z1), (x2, z2) = guesses
    # the guesses are a little above the truth: only a direction far above the other one is left out
    least = np.minimum(z1, z2) + 1.0
    x, z = np.concatenate([x1, x2]), np.concatenate([z1, z2])
    use = np.flatnonzero(z <= np.tile(least, 2))
    side = np.repeat([1.0, -1.0], place.size)
    solved = np.full(z.shape, np.inf)
    twice = Prob(np.tile(sample.log_u, 2), np.tile(sample.log_q, 2))
    x[use], solved[use] = _newton_orders(base, x[use], side[use], twice.take(use), z[use], 12, use % place.size)
    forward, backward = np.split(solved, 2)
    ahead = forward <= backward
    x1, x2 = np.split(x, 2)
    return _Seeds(place, np.where(ahead, x1, x2), np.where(ahead, 1.0, -1.0), np.minimum(forward, backward))


def _from_seeds(base: RenyiCurve, point: Prob, logit: Array, seeds: _Seeds) -> _Solved:
    """What binds at points that lie between solved ones."""
    # Where the binding direction changes hands the best order passes through 1: signed, it is smooth there.
    # Far from there its logarithm is.
    signed = seeds.side * np.exp(seeds.x)
    h = np.abs(np.interp(logit, seeds.place, signed))
    same = np.interp(logit, seeds.place, seeds.side)
    log_h = np.interp(logit, seeds.place, seeds.x)
    seed = np.where((np.abs(same) == 1.0) & (log_h > -1.0), log_h, np.log(np.maximum(h, 1e-5)))
    start = np.interp(logit, seeds.place, np.minimum(seeds.z, 800.0))
    # between points that differ, try both directions
    forward, backward = np.flatnonzero(same > -1.0), np.flatnonzero(same < 1.0)
    use = np.concatenate([forward, backward])
    side = np.repeat([1.0, -1.0], [forward.size, backward.size])
    x, found = _newton_orders(base, seed[use], side, point.take(use), start[use], 30, use)
    out = _Solved(np.full(logit.shape, np.inf), seed.copy(), np.ones(logit.shape))
    for part in (slice(0, forward.size), slice(forward.size, None)):
        better = found[part] < out.z[use[part]]
        for kept, new in zip(out, (found[part], x[part], side[part]), strict=True):
            kept[use[part][better]] = new[better]
    return out


def _newton_orders(
    base: RenyiCurve, x: Array, side: Array, point: Prob, z: Array, rounds: int, owner: Indices
) -> tuple[Array, Array]:
    """Improve ``x = log(order-1)``; returns it with the logit of v at the best order met.

    Searches of one ``owner`` (a point's two directions) are rivals: one that will not come below the other is given up.
    """
    best, best_x = np.full(x.shape, np.inf), x.copy()
    least = np.full(int(owner.max()) + 1, np.inf)
    x, z = x.copy(), z.copy()
    active = np.arange(x.size)
    for left in range(rounds, -1, -1):
        part, here, way = point.take(active), x[active], side[active]
        stencil = 1.0 + np.exp(np.stack([here - _STEP, here, here + _STEP]))
        spend = (stencil - 1.0) * base.rdp(stencil)
        solved = _solve_order(stencil[1], spend[1], way, part, z[active])
        better = solved < best[active]
        best[active[better]], best_x[active[better]] = solved[better], here[better]
        np.minimum.at(least, owner[active], solved)
        if left == 0:
            break
        with np.errstate(invalid="ignore"):
            move, slope = _newton_move(stencil[1], spend, way, part, solved)
            # what the step would still gain; where an order limits nothing, a lower one may
            idle = np.isinf(solved)
            move = np.maximum(np.where(idle, -0.7, move), _LEAST - here)
            gain = np.abs(slope * move)
            # a long step foretells nothing of those after it
            beaten = (solved - 8.0 * gain > least[owner[active]]) & (np.abs(move) < 0.5)
            promising = gain > _GAIN * np.maximum(1.0, 0.01 * np.abs(solved))
            keep = (idle | (promising & ~beaten)) & (here > _LEAST)
            # next to order 1 the derivatives are noise where little is spent: what leads there ends at one order
            further = np.where((here + move < _NEXT_TO_ONE) & (spend[1] < 0.01), _LEAST, here + move)
            x[active], z[active] = further, solved + 0.5 * slope * move
        active = active[keep]
        if active.size == 0:
            break
    return best_x, best


_GAIN = 1e-10  # in the logit of v: what a further step must promise
_STEP = 1e-3
_NEXT_TO_ONE = math.log(1e-4)
_LEAST = math.log(1e-8)  # closer to order 1 nothing is gained, and the differences of the budget lose their digits


def _newton_move(order: Array, spend: Array, side: Array, point: Prob, z: Array) -> tuple[Array, Array]:
    """Newton step in log(order-1) towards the least z, and the derivative of z by it.

    ``G(x, z) = moment - budget = 0`` defines z(x): implicit differentiation, with the derivatives of the budget
    ``(order-1) rdp`` by differences.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_v, log_qv = -softplus(-z), -softplus(z)
        _, share = _log_moment(order, side, log_v, log_qv, point)
        v, qv, both = np.exp(log_v), np.exp(log_qv), share * (1.0 - share)
        gain, loss = side * (log_v - point.log_u), side * (log_qv - point.log_q)
        h = order - 1.0
        power = np.where(side > 0, order, -h)
        tilt = share * qv - (1.0 - share) * v
        g_h = share * gain + (1.0 - share) * loss
        g_x = h * g_h - (spend[2] - spend[0]) / (2.0 * _STEP)
        g_xx = h * h * both * (gain - loss) ** 2 + h * g_h - (spend[2] - 2.0 * spend[1] + spend[0]) / _STEP**2
        g_z, g_zz = power * tilt, power * (power * both - v * qv)
        g_xz = h * (side * tilt + both * power * (gain - loss))
        slope = -g_x / g_z
        bend = -(g_xx + 2.0 * g_xz * slope + g_zz * slope * slope) / g_z
        move = np.where(bend > 0.0, -slope / bend, -np.sign(slope) * 0.7)
        # close to order 1 all is smooth in the order, and the best one may be 1 itself
        curved = bend - slope
        low = np.log1p(np.clip(np.where(curved > 0.0, -slope / curved, -np.sign(slope)), -0.99, 9.0))
        move = np.where(h * np.abs(gain - loss) < 0.1, low, np.clip(move, -0.7, 0.7))
    return np.nan_to_num(move), np.nan_to_num(slope)
