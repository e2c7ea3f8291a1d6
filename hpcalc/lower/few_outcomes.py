"""Mechanisms of two and three outcomes, which a Rényi curve allows.

Where only a Rényi curve is known, the pair that attains the region would break it. A mechanism of three outcomes
(Papernot and Steinke 2022, Appendix D.3, has this shape) meets every order in both directions: a top block of masses
(u0, v0), a bad outcome (b, b'), the rest. Its ε is ``log((A - δ)/A')`` of the bad outcome, A and A' being the chances
that it is the best of K. For a fixed number of runs two outcomes do better: what is bad is then the last rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hpcalc.bounds.renyi import Enclosure, enclosure
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law
from hpcalc.logspace import Array, Mask, Prob, log1mexp, logsubexp, logsumexp
from hpcalc.lower.mechanism import LowerBound

# Proof: a mechanism stays within the curve by this relative margin.
_MARGIN = 1e-6
# Knobs. Where a search for three outcomes starts: the top block smaller by these in log odds.
_BETTER = np.array([-6.0, -4.5, -3.0, -2.25, -1.5, -1.0, -0.5, 0.5])
_LARGE_DELTA = 1e-5
#: A mechanism this close to the reported value needs no rival.
CLOSE = 5e-3
# Values as close as this are equal but for rounding.
_SAME = 1e-10


class Blocks(Protocol):
    """What the search for three outcomes asks of a law of K (or of acceptance)."""

    def log_density(self, rank: Prob) -> Array: ...
    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array: ...


class Constraints:
    """What a Rényi curve demands of a pair, at every order it speaks of.

    Between two orders a pair's moment ``(a-1) D_a`` is below its chord (it is convex in a), and the curve's own falls
    below its chord by a fraction of about ``(step / 2)^2``: where a pair comes near the curve the cell is split until
    that is far below the margin.
    """

    _NEAR = 2e-4

    def __init__(self, base: Guarantee) -> None:
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
        return np.asarray((orders - 1.0) * self._rdp(orders) * (1.0 - _MARGIN), dtype=float)

    def excess(self, log_q: Array, log_p: Array) -> tuple[float, float]:
        """Largest excess of ``(a-1) D_a(Q || P)`` over the budget, and its derivative in ``-log_p[1]`` there."""
        loss = float(np.max(log_q - log_p)) - self.largest_loss * (1.0 - _MARGIN)
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

    def met_by(self, log_q: Array, log_p: Array) -> bool:
        """Whether the pair meets the curve in both directions."""
        return self.excess(log_q, log_p)[0] <= 0.0 and self.excess(log_p, log_q)[0] <= 0.0


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


def few_outcomes_beside_slack(
    base: Guarantee, law: Law, log_delta: float, upper: float, cells: Enclosure | None
) -> LowerBound | None:
    """A mechanism of few outcomes, mixed with two best-ranked ones of probability ``slack`` that only one input has.

    The search then ends in one of these with probability ``1 - f(1-slack)``, the same under both inputs, and is the
    search on the few otherwise: Lemma 20 of Papernot and Steinke 2022 holds with equality.
    """
    if base.slack >= 1.0:
        return None
    if base.slack > 0.0:
        # a little less is subtracted than was added, so that rounding lowers epsilon
        log_added = float(law.log_survival(Prob.from_u(np.array([base.slack])))[0]) - 1e-12
        if log_added > log_delta:
            return LowerBound(math.inf, "three outcomes")
        log_delta = min(float(logsubexp(log_delta, log_added) - log1mexp(log_added)), 0.0)
        base, law = base.core, law.thin(math.log1p(-base.slack))
    cells = enclosure(base, law) if cells is None else cells
    hope, u, v = _two_outcomes(law, log_delta, cells)
    three = three_outcomes(cells, law, log_delta, upper, least=hope)
    return three if three is not None or hope <= 0.0 else _within(cells.base, law, log_delta, u, v)


def _two_outcomes(law: Law, log_delta: float, cells: Enclosure) -> tuple[float, Prob, Prob]:
    """Best mechanism of two outcomes, a top block ``(u, V(u))`` and the rest: what it may prove, and u and V(u).

    What is bad here is the last rank, which few runs in all spare: the mechanism for a fixed number of runs.
    """
    inner = slice(1, -1)
    node, image = cells.rank.take(inner), cells.image.take(inner)
    logit_u, logit_v = (part.log_u - part.log_q for part in (node, image))
    top = int(np.argmax(_last_block(law, log_delta, node, image)))
    fine = np.interp(np.linspace(top - 1.0, top + 1.0, 41), np.arange(logit_u.size), logit_u)
    u, v = Prob.from_logit(fine), Prob.from_logit(np.interp(fine, logit_u, logit_v))
    if cells.base.orders is not None:  # few orders make a region that is cheap, and has corners
        v = cells.base.region(u)
    found = _last_block(law, log_delta, u, v)
    best = slice(int(np.argmax(found)), int(np.argmax(found)) + 1)
    return float(found[best][0]), u.take(best), v.take(best)


def _last_block(law: Law, log_delta: float, u: Prob, v: Prob) -> Array:
    """``log((dA - delta)/dA')`` of what is ranked after u (after v under the other input)."""
    end = Prob(np.zeros_like(u.log_u), np.full_like(u.log_u, -np.inf))
    with np.errstate(divide="ignore", invalid="ignore"):
        return _proven(law.log_block(u, end, u.log_q), law.log_block(v, end, v.log_q), log_delta)


def _proven(log_a: Array, log_b: Array, log_delta: float) -> Array:
    """``log((A - delta)/A')``, ``-inf`` where that is not a number."""
    value = np.where(log_a > log_delta, logsubexp(np.maximum(log_a, log_delta), log_delta) - log_b, -np.inf)
    return np.asarray(np.where(np.isnan(value), -np.inf, value), dtype=float)


def _within(base: Guarantee, law: Law, log_delta: float, u: Prob, v: Prob) -> LowerBound | None:
    """Two outcomes near (u, v) that meet the curve: V was interpolated, it may fall short or lie a little above."""
    constraints = Constraints(base)
    start, far = (float((part.log_u - part.log_q)[0]) for part in (u, v))

    def image(share: float) -> Prob:
        return Prob.from_logit(np.array([start + (far - start) * share]))

    low, high = 0.99, 1.01
    if not constraints.met_by(np.concatenate(u), np.concatenate(image(low))):
        return None
    for _ in range(14):
        middle = 0.5 * (low + high)
        holds = constraints.met_by(np.concatenate(u), np.concatenate(image(middle)))
        low, high = (middle, high) if holds else (low, middle)
    epsilon = float(_last_block(law, log_delta, u, image(low))[0]) - 1e-10
    outcomes = tuple(np.concatenate(u).tolist()), tuple(np.concatenate(image(low)).tolist())
    return LowerBound(max(epsilon, 0.0), "two outcomes", outcomes)


def three_outcomes(
    cells: Enclosure,
    law: Blocks,
    log_delta: float,
    upper: float,
    logit: float | None = None,
    least: float = 0.0,
) -> LowerBound | None:
    """Best mechanism of three outcomes that proves more than ``least``, checked at every order in both directions.

    The search starts at the maximiser of R1's M (or the given log odds of the top block), and from better ranks too
    where that leaves a gap to ``upper``. It uses few orders and an interpolated region; the mechanism it finds is then
    certified, giving way a little where a constraint is broken.
    """
    base = cells.base
    order, rank = _supremum_point(base, log_delta, cells)
    # some dozens of orders around the one that binds
    orders = 1.0 + (order - 1.0) * np.exp(np.linspace(-4.5, 4.5, 61))
    if base.orders is not None:
        orders = base.orders[np.isfinite(base.orders)]
    budget = (orders - 1.0) * base.rdp(orders) * (1.0 - 2.0 * _MARGIN)
    use = np.isfinite(budget) & (budget < 600.0)
    if not use.any():
        return None
    trial = _Three(cells, law, log_delta, orders[use], budget[use])
    logit = float(rank.log_u - rank.log_q) if logit is None else logit
    best_x, best = np.zeros(3), -math.inf
    log_gain = log_delta + math.log(order / (order - 1.0))
    rounds = [_starts(law, log_gain, logit + np.zeros(1)), _starts(law, log_gain, logit + _BETTER)]
    if log_delta > math.log(_LARGE_DELTA):
        rounds.append(_large_starts(logit))
    for start in rounds:
        value = trial.values(start)
        top = _first_of_best(value)
        if value[top] > best:
            best_x, best = _climb(trial.values, start[top], float(value[top]))
        if best > upper * (1.0 - CLOSE):
            break
    if not least < best < math.inf:
        return None
    constraints = Constraints(base)
    sure = _Three(cells, law, log_delta, constraints.orders, constraints.budget)
    for give in (0.0, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1):
        x = np.array([best_x[0], best_x[1], math.log(math.exp(min(best_x[2], 0.0)) * (1.0 + give) + give)])
        certified = sure.certified(constraints, x)
        if certified is not None:
            return certified if certified.epsilon > least else None
    return None


def _large_starts(logit: float) -> Array:
    """Candidates for a large δ, where the best bad outcome is no longer small."""
    places = np.concatenate([logit + np.array([-2.0, -1.0]), np.linspace(-5.0, 1.0, 7)])
    grid = np.meshgrid(places, np.arange(-5.0, 0.0, 0.6), [-9.0, -4.0, -2.0, -1.0, -0.5], indexing="ij")
    return np.column_stack([part.ravel() for part in grid])


def _starts(law: Blocks, log_gain: float, logit: Array) -> Array:
    """Candidates with the top block up to each rank: rows of (logit u0, log b, log of the share v0 leaves)."""
    log_b = log_gain - law.log_density(Prob.from_logit(logit))
    # for small epsilon the best bad outcome is much larger than delta over its gain: scan upwards from there
    grid = np.meshgrid(np.arange(logit.size), np.arange(0.0, 9.0, 0.75), [-9.0, -6.0, -4.0, -2.5, -1.5], indexing="ij")
    place, rise, share = (part.ravel() for part in grid)
    place = place.astype(int)
    return np.column_stack([logit[place], np.minimum(log_b[place] + rise, -0.7), share])


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


def _supremum_point(base: Guarantee, log_delta: float, cells: Enclosure) -> tuple[float, Prob]:
    """Order and rank at which R1 with the usual conversion is attained (on the samples: a starting point)."""
    grid = base.orders if base.orders is not None else 1.0 + np.exp(np.arange(-4.0, 16.0, 0.1))
    grid = grid[np.isfinite(grid) & np.isfinite(base.rdp(grid))]
    h = grid[:, None] - 1.0
    inner = slice(1, -1)
    with np.errstate(invalid="ignore"):
        values = grid[:, None] * cells.log_f[inner] - h * cells.log_g[inner]
    values = np.where(np.isnan(values), -np.inf, values)
    place = np.argmax(values, axis=1)
    epsilon = (values[np.arange(grid.size), place] + h[:, 0] * base.rdp(grid) - log_delta - np.log(grid)) / h[:, 0]
    k = int(np.argmin(epsilon + np.log(h[:, 0] / grid)))
    return float(grid[k]), cells.rank.take(int(place[k]) + 1)


@dataclass(frozen=True, eq=False)
class _Three:
    """Candidates of three outcomes, rows of (logit u0, log b, log of the share of V(u0) - u0 that v0 leaves)."""

    cells: Enclosure
    law: Blocks
    log_delta: float
    orders: Array
    budget: Array

    def _masses(self, x: Array) -> tuple[Array, Array, Array, Array, Array]:
        """``(u0, v0, b, 1-u0, 1-v0)``; the region is interpolated."""
        inner = slice(1, -1)
        node, image = self.cells.rank.take(inner), self.cells.image.take(inner)
        top = Prob.from_logit(x[:, 0])
        largest = Prob.from_logit(np.interp(x[:, 0], node.log_u - node.log_q, image.log_u - image.log_q))
        u0 = np.exp(top.log_u)
        left = np.exp(np.minimum(x[:, 2], 0.0)) * np.maximum(np.exp(largest.log_u) - u0, 0.0)
        v0 = np.maximum(np.exp(largest.log_u) - left, u0)
        return u0, v0, np.exp(np.minimum(x[:, 1], 0.0)), np.exp(top.log_q), np.exp(largest.log_q) + left

    def _least_bad(self, u0: Array, v0: Array, b: Array, rest_q: Array, rest_v: Array) -> Array:
        """Log of the least b' that keeps ``D_a(Q || Q')`` within budget at every order (n x orders, fixed point)."""
        orders, h = self.orders, self.orders - 1.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_u, log_v, log_b = np.log(u0)[:, None], np.log(v0)[:, None], np.log(b)[:, None]
            log_rest = np.log(rest_q - b)[:, None]
            log_bad = np.full((u0.size, 1), -np.inf)
            for _ in range(4 if np.max(b) > 1e-3 else 2):
                left = np.log(np.maximum(rest_v[:, None] - np.exp(log_bad), 0.0))
                spent = np.logaddexp(orders * log_u - h * log_v, orders * log_rest - h * left)
                room = logsubexp(np.maximum(np.where(np.isnan(spent), np.inf, self.budget), spent), spent)
                each = (orders * log_b - room) / h
                log_bad = np.max(np.where(np.isnan(each), np.inf, each), axis=1, keepdims=True)
        return np.asarray(log_bad[:, 0], dtype=float)

    def _reverse_holds(self, u0: Array, v0: Array, b: Array, log_bad: Array, rest_q: Array, rest_v: Array) -> Mask:
        """Whether ``(a-1) D_a(Q' || Q)`` is within budget at every order."""
        orders, h = self.orders, self.orders - 1.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            terms = np.stack(
                [
                    orders * np.log(v0)[:, None] - h * np.log(u0)[:, None],
                    orders * log_bad[:, None] - h * np.log(b)[:, None],
                    orders * np.log(rest_v - np.exp(log_bad))[:, None] - h * np.log(rest_q - b)[:, None],
                ]
            )
            within: Mask = np.all(logsumexp(terms, axis=0) <= self.budget, axis=1)
        return within

    def _epsilon(self, u0: Array, v0: Array, b: Array, bad: Array, rest_q: Array, rest_v: Array) -> Array:
        """``log((dA - delta)/dA')`` of the bad outcome."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_a, log_b = (
                self.law.log_block(
                    Prob(np.log(top), np.log(rest)), Prob(np.log(top + part), np.log(rest - part)), np.log(part)
                )
                for top, part, rest in ((u0, b, rest_q), (v0, bad, rest_v))
            )
            return _proven(log_a, log_b, self.log_delta)

    def values(self, x: Array) -> Array:
        """ε of each candidate, ``-inf`` where it breaks the curve."""
        u0, v0, b, rest_q, rest_v = self._masses(x)
        fits = (b > 0.0) & (b < 0.999 * rest_q) & (v0 > 0.0) & (rest_v > 0.0)
        b = np.where(fits, b, 0.5 * rest_q)
        log_bad = self._least_bad(u0, v0, b, rest_q, rest_v)
        fits &= np.isfinite(log_bad) & (np.exp(log_bad) < rest_v) & (log_bad < np.log(b))
        with np.errstate(divide="ignore"):  # where nothing fits
            log_bad = np.where(fits, log_bad, np.log(0.5 * np.minimum(b, rest_v)))
        fits &= self._reverse_holds(u0, v0, b, log_bad, rest_q, rest_v)
        return np.where(fits, self._epsilon(u0, v0, b, np.exp(log_bad), rest_q, rest_v), -np.inf)

    def certified(self, constraints: Constraints, x: Array) -> LowerBound | None:
        """One candidate, its constraints checked at every order, b' raised until they hold."""
        u0, v0, b, rest_q, rest_v = self._masses(x[None, :])
        log_bad = self._least_bad(u0, v0, b, rest_q, rest_v)
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
        value = float(self._epsilon(u0, v0, b, np.exp(log_bad), rest_q, rest_v)[0])
        if not math.isfinite(value):
            return None
        return LowerBound(max(value - 1e-10, 0.0), "three outcomes", (tuple(log_q.tolist()), tuple(log_p.tolist())))
