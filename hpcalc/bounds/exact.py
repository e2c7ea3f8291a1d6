"""Theorem E: the exact price of best-of-K, an upper bound and the mechanism that attains it.

**Statement.** Let one run satisfy ``Q'(S) >= W(Q(S))`` for every event S, W convex with slope ``l(x) = W'(x)``, and let
``V(u) = 1 - W(1-u)``. After a uniform tie-break let the search's law A have density at most ``FU(rank under Q)`` with
respect to Q, and A' at least ``FL(rank under Q')`` with respect to Q', FU and FL nonincreasing (best-of-K: both are
``F(u) = f'(1-u)``). Then for every ε >= 0

    delta(ε) <= sup over nondecreasing y of ∫_0^β [FU(x + y(x)) - e^ε l(x) FL(W(x) + V(y(x)))] dx          (path form)
             <= ∫_0^1 sup_{0 <= y <= 1-x} [FU(x + y) - e^ε l(x) FL(W(x) + V(y))]_+ dx                  (pointwise form)

**Proof.** For a point of S let x, w be the Q- and Q'-mass of the points of S ranked before it, y, z those of the points
not in S ranked before it: its ranks are x+y and w+z. With β = Q(S): ``A(S) <= ∫_0^β FU(x + y(x)) dx``, y nondecreasing,
and ``A'(S) >= ∫ FL(w + z(w)) dw`` over [0, Q'(S)]. (i) z <= V(y). (ii) Where S has collected the Q'-mass w, its Q-mass
is at most ``sup{x: W(x) <= w}``. (iii) ``Q'(S) >= W(β)``. FL is nonincreasing, so ``A'(S) >= ∫_0^β FL(W(x) + V(y(x)))
l(x) dx``. Subtract and take the supremum over S. K = 0 adds nothing for ε >= 0. ∎

Where one pair of laws attains W the path form is an equality: rank the outcomes of S ("winners") by increasing
likelihood ratio dQ'/dQ, between them the other outcomes ("losers") by decreasing ratio, y(x) of them before winner x.

**Why cells are enough.** W is replaced by the maximum of some of its tangents, below W, and V by the mirror image,
above V. On a piece [x0, x1] of slope l and width D, ``FU(x+y)`` lies below its chord in x and ``FL(W(x)+V)`` above its
tangent at x1, both linear in x, so the piece is at most ``D (h0 + h1)/2``, h0 and h1 the suprema over y at its ends. In
a cell of y ``FU(x+y)`` lies below its chord and ``FL(w+V(y))``, a convex function, above the tangents at the ends of
the cell: the difference is largest at an end or where the tangents meet. Cells whose bound is not above the best value
met are left alone, the others are cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from hpcalc.bounds.bound import ProfileBound
from hpcalc.bounds.renyi import rdp_of_profiles, refined_renyi
from hpcalc.conversion import Conversion
from hpcalc.guarantees import Guarantee
from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.laws import Law, RunCount
from hpcalc.laws.helpers import times
from hpcalc.logspace import Array, Indices, Mask, Prob, distinct, logsubexp

__all__ = ["ExactBound", "bounds"]

# Covers the rounding of W, V and F: an error of this relative size moves ε by as much.
_MARGIN = 1e-12

# What is left out: points that doubles cannot tell apart, and lines so steep that they limit nothing that counts.
_LEAST_MASS, _STEEPEST = 1e-300, 650.0

# Knobs of speed; any values are sound.
_FAR = -46.0  # log delta up to which a Rényi curve is taken from the profile
_CELLS, _FILL = 128, 2048
_LEAST = -80.0  # logarithm of the delta to which a profile is accurate
_COARSE, _MOST, _SHARES, _ENOUGH = 97, 700, 300, 1e-4
_DEPTH = 80.0
_CUTS, _ROUNDS = 8, 5  # into how many a cell is cut, and how often
_CLOSE = 2e-6  # relative excess over the best value met at which a cell is left alone


@dataclass(frozen=True, eq=False)
class Line:
    """A polygon by its corners: winners (x, W) below the trade-off curve or losers (y, V) above it.

    Attributes
    ----------
    x, w : ndarray, shape (n+1,)
        Corners, x from 0 to 1.
    slope : ndarray, shape (n,)
        Of the edges.
    """

    x: Array
    w: Array
    slope: Array

    def filled(self, points: Array) -> Line:
        """The same polygon with corners (of no angle) at further points."""
        x = distinct(np.concatenate([self.x, points[(points > 0.0) & (points < 1.0)]]))
        edge = np.clip(np.searchsorted(self.x, x[:-1], side="right") - 1, 0, self.slope.size - 1)
        w = np.append(self.w[edge] + self.slope[edge] * (x[:-1] - self.x[edge]), self.w[-1])
        return Line(x, w, self.slope[edge])

    def at(self, place: Array) -> tuple[Array, Array, Array, Array]:
        """Points at real-valued positions among the corners, and the slopes to their left and right."""
        left = np.minimum(place.astype(np.intp), self.slope.size - 1)
        share, after = place - left, self.slope[left]
        before = self.slope[np.maximum(np.ceil(place).astype(np.intp) - 1, 0)]
        x = self.x[left] + share * (self.x[left + 1] - self.x[left])
        return x, self.w[left] + share * (self.w[left + 1] - self.w[left]), before, after

    def tangents(self, index: Indices) -> Line:
        """The polygon of the edges to the right of the corners given: further out than this one, with fewer corners."""
        x, w, slope = self.x[index], self.w[index], self.slope[index]
        return _tangent_polygon(x, w, slope, self.x[-1], self.w[-1])


def _tangent_polygon(x: Array, w: Array, slope: Array, last_x: float, last_w: float) -> Line:
    rise = slope[1:] - slope[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (slope[1:] * np.diff(x) - np.diff(w)) / rise
    meet = np.where(rise == 0.0, x[1:], np.clip(x[:-1] + np.nan_to_num(share), x[:-1], x[1:]))
    corner = np.concatenate([x[:1], meet, [last_x]])
    height = np.concatenate([w[:1], w[:-1] + slope[:-1] * (meet - x[:-1]), [w[-1] + slope[-1] * (last_x - x[-1])]])
    return Line(corner, height, slope)


def winners(curve: Tradeoff) -> Line:
    """The maximum of the curve's tangents, a polygon on or below W."""
    keep = np.flatnonzero((np.diff(curve.x.u) > _LEAST_MASS) & (curve.log_slope[:-1] < _STEEPEST))
    x, w, slope = curve.x.u[keep], curve.w.u[keep], np.exp(curve.log_slope[keep])
    return _tangent_polygon(x, w * (1.0 - _MARGIN), slope * (1.0 - _MARGIN), 1.0, 1.0)


def losers(curve: Tradeoff) -> Line:
    """The minimum of the mirrored tangents, a polygon on or above V."""
    back = slice(None, None, -1)
    y, v = np.exp(curve.x.log_q[back]), np.exp(curve.w.log_q[back])
    keep = np.flatnonzero((np.append(np.diff(y), 1.0) > _LEAST_MASS) & (curve.log_slope[back] < _STEEPEST))
    y, v, slope = y[keep], v[keep] * (1.0 + _MARGIN), np.exp(curve.log_slope[back][keep])
    # the line through the first point, prolonged to y = 0
    v0 = max(v[0] - slope[0] * y[0], 0.0)
    y, v, slope = np.append(0.0, y), np.append(v0, v), np.append(slope[0], slope)
    line = _tangent_polygon(y, v, slope, 1.0, 1.0)
    return Line(line.x, np.minimum(line.w, 1.0), line.slope)


def share_out(measures: list[Array], count: int) -> Indices:
    """About ``count`` indices of points, equally many in equal parts of every measure of the gaps between points."""
    total = np.zeros(measures[0].size + 1)
    for measure in measures:
        whole = float(np.sum(measure))
        if whole > 0.0:
            total[1:] += np.cumsum(measure / whole)
    return distinct(np.searchsorted(total, np.linspace(0.0, total[-1], count)).clip(0, total.size - 1))


def gaps(values: Array, depth: float) -> Array:
    """How far a falling function of the points falls from each to the next, as far as ``depth`` below its start."""
    return np.asarray(np.abs(np.diff(np.maximum(values, values[0] - depth))))


def logit(u: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(u) - np.log1p(-np.minimum(u, 1.0 - 1e-16)), -700.0, 37.0), dtype=float)


@dataclass(frozen=True, eq=False)
class Search:
    """Best-of-K on polygons: winners by their pieces, losers by their cells, and F on all pairs of them.

    Parameters
    ----------
    law : Law
        Law of K.
    pieces : Line
        Winners as they are summed.
    lattice : Line
        Losers, with points at which they may be cut.
    enough : float
        Error of delta that cells may be left with.
    """

    law: Law
    pieces: Line
    lattice: Line
    enough: float

    @cached_property
    def cells(self) -> Indices:
        """The lattice points between which the cells lie at first."""
        y, v = self.lattice.x, self.lattice.w
        f, g = self.log_f(y), self.log_g(v)
        return share_out([np.diff(logit(y)), gaps(f, _DEPTH), gaps(g, 2.0 * _DEPTH)], _CELLS + 1)

    def log_f(self, u: Array) -> Array:
        return self.law.log_density(Prob.from_u(np.minimum(u, 1.0)))

    def log_g(self, v: Array) -> Array:
        return self.law.log_density(Prob.from_u(np.minimum(v, 1.0)))

    def log_fall(self, v: Array) -> Array:
        return np.where(v < 1.0, self.law.log_density_slope(Prob.from_u(np.minimum(v, 1.0))), -np.inf)

    def block(self, piece: Indices, nodes: Array) -> Block:
        """What the bound is made of on the cells between lattice points (one row of them a piece)."""
        pieces, lattice = self.pieces, self.lattice
        x0, x1, w1 = pieces.x[piece][:, None], pieces.x[piece + 1][:, None], pieces.w[piece + 1][:, None]
        y, v, before, after = lattice.at(nodes)
        log_g, log_fall = self.log_g(w1 + v), self.log_fall(w1 + v)
        width = np.diff(y)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scale = log_g[:, :-1]
            end = np.exp(log_g[:, 1:] - scale)
            here = np.exp(log_fall[:, :-1] - scale) * after[:, :-1] * width
            there = np.exp(log_fall[:, 1:] - scale) * before[:, 1:] * width
            meet = np.clip(np.nan_to_num((1.0 - end - there) / (here - there)), 0.0, 1.0)
            low = np.minimum(1.0 - here * meet, end + there * (1.0 - meet))
            log_low = np.where(np.isneginf(scale), -np.inf, scale + np.log(np.clip(low, end, 1.0)))
            # F(V) is larger by at least so much at the piece's left end
            log_push = log_fall + np.log(pieces.slope[piece][:, None] * (x1 - x0))
        f0, f1 = np.exp(self.log_f(x0 + y)), np.exp(self.log_f(x1 + y))
        outside = y[:, :-1] >= 1.0 - x0  # the cell begins beyond the last loser
        return Block(piece, nodes, f0, f1, log_g, meet, log_low, log_push, outside)

    @cached_property
    def whole(self) -> Block:
        """All pieces with all cells."""
        return self.block(np.arange(self.pieces.slope.size), self.cells[None, :].astype(float))

    def suprema(self, epsilon: float) -> tuple[Array, Array]:
        """Certified upper bounds on the suprema over y at the left and right ends of the pieces."""
        with np.errstate(divide="ignore"):
            log_c = epsilon + np.log(self.pieces.slope)
            slack = self.enough / (self.pieces.slope.size * np.maximum(np.diff(self.pieces.x), 1e-300))
            # W(x) + V(y) <= 1 - l (1-u) for u = x+y, so the integrand is at most F(u) (1 - e^ε l^K), K the largest
            most = self.law.max_runs
            top = (
                np.ones(log_c.size)
                if most is None
                else -np.expm1(np.minimum(log_c + times(most - 1.0, log_c - epsilon), 0.0))
            )
        block = self.whole
        best, out = np.zeros((2, slack.size)), np.zeros((2, slack.size))
        for last in (*(False,) * _ROUNDS, True):
            value, bound = block.values(log_c)
            for side in (0, 1):
                np.maximum.at(best[side], block.piece, np.max(value[side], axis=1))
            least = best[:, block.piece, None]
            # either bound of a cell holds; both are linear in x, so one is taken for both ends of the piece
            share = [
                np.where(block.outside, -np.inf, top[block.piece][:, None] * f[:, :-1]) for f in (block.f0, block.f1)
            ]
            less = (share[0] <= bound[0]) & (share[1] <= np.maximum(bound[1], least[1]))
            bound = [np.where(less, share[side], bound[side]) for side in (0, 1)]
            closed = np.full(block.outside.shape, True)
            for side in (0, 1):
                closed &= bound[side] <= least[side] * (1.0 + _CLOSE) + slack[block.piece][:, None]
            closed |= last
            for side in (0, 1):
                np.maximum.at(out[side], block.piece, np.max(np.where(closed, bound[side], 0.0), axis=1))
            row, cell = np.nonzero(~closed)
            if row.size == 0:
                break
            ends = np.broadcast_to(block.nodes, (block.piece.size, block.nodes.shape[1]))
            left, right = ends[row, cell][:, None], ends[row, cell + 1][:, None]
            block = self.block(block.piece[row], left + (right - left) * (np.arange(_CUTS + 1) / _CUTS))
        return out[0], out[1]

    def log_delta(self, epsilon: float) -> float:
        """Certified upper bound on the logarithm of delta at one epsilon."""
        left, right = self.suprema(epsilon)
        total = float(np.sum(0.5 * np.diff(self.pieces.x) * (left + right))) * (1.0 + _MARGIN)
        return min(math.log(total), 0.0) if total > 0.0 else -math.inf

    def losers_before(self, epsilon: float) -> Indices:
        """For each piece the lattice point up to which losers are best ranked before it, never decreasing."""
        with np.errstate(divide="ignore"):
            log_c = (epsilon + np.log(self.pieces.slope))[:, None]
        block, pieces, lattice = self.whole, self.pieces, self.lattice
        with np.errstate(over="ignore"):
            value = block.f1 - np.exp(np.minimum(log_c + block.log_g, 709.0))
        x1, w1 = pieces.x[1:, None], pieces.w[1:, None]
        value[lattice.x[self.cells][None, :] > 1.0 - x1] = -np.inf
        at = np.argmax(value, axis=1)
        winning = value[np.arange(at.size), at] > 0.0
        top = np.maximum.accumulate(np.where(winning, at, 0))
        if np.any((top - at > 1) & winning):
            return self.cells[_monotone_path(np.maximum(value, 0.0) * np.diff(pieces.x)[:, None])]
        left, right = self.cells[np.maximum(at - 1, 0)], self.cells[np.minimum(at + 1, self.cells.size - 1)]
        while np.any(right - left > 1):
            nodes = left[:, None] + ((right - left)[:, None] * np.arange(17)) // 16
            y, v = lattice.x[nodes], lattice.w[nodes]
            with np.errstate(over="ignore"):
                value = np.exp(self.log_f(x1 + y)) - np.exp(np.minimum(log_c + self.log_g(w1 + v), 709.0))
            value[y > 1.0 - x1] = -np.inf
            best = np.argmax(value, axis=1)
            rows = np.arange(best.size)
            left, right = nodes[rows, np.maximum(best - 1, 0)], nodes[rows, np.minimum(best + 1, 16)]
            if np.all(right - left <= 2):
                left = nodes[rows, best]
                break
        return np.asarray(np.maximum.accumulate(np.where(winning, left, 0)))


def _monotone_path(gain: Array) -> Indices:
    """The nondecreasing choice of one column in each row with the largest sum."""
    total = np.zeros(gain.shape[1])
    chosen = np.empty(gain.shape, dtype=np.intp)
    columns = np.arange(gain.shape[1])
    for i, row in enumerate(gain):
        value = total + row
        top = np.maximum.accumulate(value)
        chosen[i] = np.maximum.accumulate(np.where(value == top, columns, 0))
        total = top
    out = np.empty(gain.shape[0], dtype=np.intp)
    at = gain.shape[1] - 1
    for i in range(gain.shape[0] - 1, -1, -1):
        at = chosen[i, at]
        out[i] = at
    return out


@dataclass(frozen=True, eq=False)
class Mechanism:
    """The search over one pair of laws, its outcomes ranked along a path of Theorem E and merged into blocks.

    Attributes
    ----------
    log_a, log_b : ndarray, shape (n,)
        Logarithms of the probabilities of the winners' blocks under A and A'.
    """

    log_a: Array
    log_b: Array

    @classmethod
    def along(cls, law: Law, x: Array, w: Array, y: Array, v: Array) -> Mechanism:
        """Winners between corners (x, w), the i-th of them after losers of masses (y[i], v[i])."""
        use = (np.diff(x) > 0.0) & (x[1:] + y <= 1.0)

        def blocks(ends: Array, before: Array) -> Array:
            with np.errstate(divide="ignore"):
                width = np.log(np.diff(ends)[use])
            lo, hi = (np.minimum(part[use] + before[use], 1.0) for part in (ends[:-1], ends[1:]))
            return law.log_block(Prob.from_u(lo), Prob.from_u(hi), width)

        return cls(blocks(x, y), blocks(w, v))

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence of the blocks at one ε."""
        return float(np.sum(np.exp(logsubexp(self.log_a, np.minimum(self.log_b + epsilon, self.log_a)))))

    def mass(self, epsilon: float) -> float:
        """Probability under A of the best event at one ε."""
        return float(np.sum(np.exp(self.log_a[self.log_a > self.log_b + epsilon])))

    def epsilon(self, log_delta: float) -> float:
        """Least ε >= 0 whose hockey-stick divergence on the blocks is at most delta: ``max log((A(S)-δ)/A'(S))``."""
        with np.errstate(invalid="ignore"):
            loss = np.where(np.isneginf(self.log_a), -np.inf, self.log_a - self.log_b)
        order = np.argsort(-loss, kind="stable")
        a, b = np.logaddexp.accumulate(self.log_a[order]), np.logaddexp.accumulate(self.log_b[order])
        likely = a > log_delta
        if not likely.any():
            return 0.0
        return max(float(np.max(logsubexp(a[likely], log_delta) - b[likely])), 0.0)


@dataclass(frozen=True, eq=False)
class Block:
    """What the bounds of cells are made of: rows are pieces of x, columns cells of y or (one more) their ends."""

    piece: Indices
    nodes: Array
    f0: Array
    f1: Array
    log_g: Array
    meet: Array
    log_low: Array
    log_push: Array
    outside: Mask

    def values(self, log_c: Array) -> tuple[list[Array], list[Array]]:
        """For the left and right end of the piece: the better value at the cell's ends; bounds for the whole cell."""
        c = log_c[self.piece][:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            g, low, push = (np.exp(np.minimum(c + part, 709.0)) for part in (self.log_g, self.log_low, self.log_push))
            best, bound = [], []
            for f, more in ((self.f0, push), (self.f1, np.zeros((1, 2)))):
                fa, fb, ga, gb, least = f[:, :-1], f[:, 1:], g[:, :-1], g[:, 1:], more[:, 1:]
                inside = np.maximum(np.maximum(fa - ga, fb - gb), fa + self.meet * (fb - fa) - low)
                best.append(np.where(self.outside, -np.inf, np.maximum(fa - ga - more[:, :-1], fb - gb - least)))
                bound.append(np.where(self.outside, -np.inf, np.minimum(inside, fa - gb) - least))
        return best, bound


def _fill(log_tail: float) -> Array:
    """Masses at which polygons may be cut: even in the logit, denser where most searches are decided."""
    z = np.concatenate([np.linspace(log_tail, 37.0, _FILL), np.linspace(-18.0, 6.0, _FILL)])
    return np.asarray(1.0 / (1.0 + np.exp(-z)), dtype=float)


def _cuts(search: Search, epsilon: float, before: Indices, enough: float, x: Array) -> Indices | None:
    """Where to cut pieces, at some of the points x, so that all err about equally; None where that is done."""
    pieces, lattice = search.pieces, search.lattice
    left, right = search.suprema(epsilon)
    width, y, v = np.diff(pieces.x), lattice.x[before], lattice.w[before]
    f0, f1 = search.log_f(pieces.x[:-1] + y), search.log_f(pieces.x[1:] + y)
    g0, g1 = search.log_g(pieces.w[:-1] + v), search.log_g(pieces.w[1:] + v)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bend = np.nan_to_num((f1 - f0) ** 2 + 2.0 * (g1 - g0) ** 2, nan=np.inf) / 12.0
        step = np.nan_to_num(np.log(left[1:] / right[:-1]) ** 2, nan=0.0, posinf=np.inf) / 6.0
        fall = np.nan_to_num(np.log(left / right) ** 2, nan=0.0, posinf=np.inf) / 12.0
        change = np.maximum(fall, np.maximum(np.append(step, 0.0), np.append(0.0, step)))
        value = 0.5 * (left + right)
        error = width * np.minimum(np.nan_to_num(np.exp(f0) * bend + value * change, nan=0.0), value)
    error[0] = 0.0
    if np.sum(error) <= enough or width.size >= _MOST:
        return None
    parts = np.ceil(np.cbrt(np.minimum(error * (_SHARES / max(enough, 1e-300)), 1e6))).clip(1, _CUTS)
    first, last = np.searchsorted(x, pieces.x[:-1]), np.searchsorted(x, pieces.x[1:])
    out = [first + ((last - first) * (k / parts)).astype(np.intp) for k in range(_CUTS)]
    return distinct(np.concatenate([part[k < parts] for k, part in enumerate(out)]))


class Direction:
    """One direction of a search: A against A'.

    Parameters
    ----------
    law : Law
        Law of K.
    outer : Tradeoff
        What one run guarantees.
    inner : Tradeoff or None
        Points that one pair of laws has.
    """

    def __init__(self, law: Law, outer: Tradeoff, inner: Tradeoff | None) -> None:
        self.law = law
        self.won, self.lost = winners(outer), losers(outer)
        self.inner = None if inner is None else _chords(inner)

    def solve(self, log_delta: float) -> tuple[float, float]:
        """Lower bound (0 without a mechanism) and certified upper bound on ε."""
        delta = math.exp(log_delta)

        def located(search: Search, epsilon: float) -> tuple[float, Indices, float]:
            epsilon, before, weight = self._path(search, log_delta, epsilon)
            # an error of delta, divided by this weight, is one of ε
            return epsilon, before, _ENOUGH * max(epsilon, 1e-3) * weight

        search, epsilon, before, enough = self._adapted(log_delta - 9.0 - self.law.log_mean, located, 1e-4 * delta)
        low = self._mechanism(search, before, self.inner).epsilon(log_delta) if self.inner is not None else 0.0
        if epsilon == math.inf:  # more than delta lies where W is 0, or less than a double can tell from 0
            return low, math.inf
        fall = delta * _ENOUGH * max(epsilon, 1e-3) / enough
        return low, self._certified(search, log_delta, epsilon, fall)

    def estimate(self, log_delta: float) -> float:
        """ε of the best path on few pieces: no bound."""
        fill = _fill(max(log_delta - 9.0 - self.law.log_mean, -690.0))
        lattice, line = self.lost.filled(fill), self.won.filled(fill)
        first = self._first(line)
        search = Search(self.law, line.tangents(first), lattice, 0.0)
        epsilon, before, weight = self._path(search, log_delta, 0.0)
        if epsilon == math.inf:
            return epsilon
        cuts = _cuts(search, epsilon, before, 10.0 * _ENOUGH * max(epsilon, 1e-3) * weight, line.x[:-1])
        if cuts is None:
            return epsilon
        search = Search(self.law, line.tangents(distinct(np.concatenate([first, cuts]))), lattice, 0.0)
        return self._path(search, log_delta, epsilon)[0]

    def log_delta(self, epsilon: float) -> float:
        """Certified upper bound on the logarithm of delta."""

        def located(search: Search, _: float) -> tuple[float, Indices, float]:
            before = search.losers_before(epsilon)
            made = self._mechanism(search, before, (self.won, self.lost))
            return epsilon, before, _ENOUGH * made.delta(epsilon)

        search = self._adapted(_LEAST - self.law.log_mean, located, 0.0)[0]
        return search.log_delta(epsilon)

    def _adapted(
        self, log_tail: float, located: Callable[[Search, float], tuple[float, Indices, float]], enough: float
    ) -> tuple[Search, float, Indices, float]:
        """A search with pieces cut until their errors are small, and what was located on it."""
        fill = _fill(max(log_tail, -690.0))
        lattice, line = self.lost.filled(fill), self.won.filled(fill)
        chosen, epsilon = self._first(line), 0.0
        while True:
            search = Search(self.law, line.tangents(chosen), lattice, enough)
            epsilon, before, enough = located(search, epsilon)
            if epsilon == math.inf:
                return search, epsilon, before, enough
            cuts = _cuts(search, epsilon, before, enough, line.x[:-1])
            more = chosen if cuts is None else distinct(np.concatenate([chosen, cuts]))
            if more.size == chosen.size:
                return search, epsilon, before, enough
            chosen = more

    def _first(self, line: Line) -> Indices:
        x, w = line.x[:-1], line.w[:-1]
        density, image = (self.law.log_density(Prob.from_u(np.minimum(part, 1.0))) for part in (x, w))
        with np.errstate(divide="ignore"):
            steep = np.maximum(np.log(line.slope), -_DEPTH)
        measures = [np.diff(logit(x)), np.abs(np.diff(steep)), gaps(density, _DEPTH), gaps(image, _DEPTH)]
        return share_out(measures, _COARSE)

    def _path(self, search: Search, log_delta: float, epsilon: float) -> tuple[float, Indices, float]:
        """ε of the best path, the path, and how fast delta falls there.

        From a path to the ε that it attains, and from there to the path that is best at it.
        """
        own = (self.won, self.lost)
        for _ in range(20):
            before = search.losers_before(epsilon)
            made = self._mechanism(search, before, own)
            found = made.epsilon(log_delta)
            if found <= epsilon * (1.0 + 1e-6) or found == math.inf:
                break
            epsilon = found
        return max(epsilon, found), before, max(made.mass(epsilon) - math.exp(log_delta), math.exp(log_delta))

    def _mechanism(self, search: Search, before: Indices, lines: tuple[Line, Line]) -> Mechanism:
        x, y = search.pieces.x, search.lattice.x[before]
        w, v = np.interp(x, lines[0].x, lines[0].w), np.interp(y, lines[1].x, lines[1].w)
        return Mechanism.along(self.law, x, w, y, v)

    def _certified(self, search: Search, log_delta: float, epsilon: float, fall: float) -> float:
        """Least ε, nearly, whose certified delta is at most the one asked; ``fall`` is ``-dε/dlog(delta)``."""
        low, high, above = 0.0, math.inf, math.nan
        for _ in range(60):
            value = search.log_delta(epsilon) - log_delta
            if value <= 0.0:
                high = epsilon
                if high - low <= _CLOSE * high or value > -_CLOSE * max(high, 1e-6) / fall:
                    break
            else:
                if low > 0.0 and value < above:
                    fall = max(fall, (epsilon - low) / (above - value))
                low, above = epsilon, value
            if epsilon == 0.0 and value <= 0.0:
                break
            ahead = epsilon + fall * value + (0.5 * _CLOSE * epsilon if value > 0.0 else 0.0)
            epsilon = ahead if low < ahead < high else (0.5 * (low + high) if high < math.inf else 2.0 * epsilon + 1e-9)
        return high


def _chords(curve: Tradeoff) -> tuple[Line, Line]:
    """Winners and losers of the mechanism that has the curve's points and mixes between them."""
    back = slice(None, None, -1)
    out = []
    for x, w in ((curve.x.u, curve.w.u), (np.exp(curve.x.log_q[back]), np.exp(curve.w.log_q[back]))):
        out.append(Line(x, w, np.empty(0)))
    return out[0], out[1]


class ExactBound(ProfileBound):
    """Theorem E for a guarantee with a trade-off curve: exact where one pair of laws attains that.

    Parameters
    ----------
    guarantee : Guarantee
        One run. Its ``tradeoff`` says what is known of it.
    law : Law
        Law of K.

    Examples
    --------
    >>> from hpcalc.guarantees import Gaussian
    >>> from hpcalc.laws import Poisson
    >>> bound = ExactBound(Gaussian(5**0.5), Poisson(10.0))
    >>> round(bound.epsilon(math.log(1e-6)).value, 3), round(bound.mechanism(math.log(1e-6)), 3)
    (3.65, 3.65)
    """

    name = "refined-region"
    citation = "Theorem E: exact price of best-of-K from the privacy region (hpcalc-theory(7))"
    conditions = ("every event of one run lies in the region; ranks are shared by a uniform tie-break",)

    def __init__(self, guarantee: Guarantee, law: Law) -> None:
        self.guarantee, self.law = guarantee, law

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        found = []
        for side in (0,) if self.guarantee.symmetric else (0, 1):
            outer = self.guarantee.tradeoff(side)
            if outer is None:
                return ()
            found.append(Direction(self.law, outer, self.guarantee.attained_tradeoff(side)))
        return tuple(found)

    @cached_property
    def _solved(self) -> dict[float, tuple[float, float]]:
        return {}

    def _solve(self, log_delta: float) -> tuple[float, float]:
        """Lower and upper bound, each the larger of both directions."""
        if log_delta not in self._solved:
            found = [direction.solve(log_delta) for direction in self.directions if log_delta > -math.inf]
            low, high = zip(*found, strict=True) if found else ((0.0,), (math.inf,))
            self._solved[log_delta] = max(low), max(high)
        return self._solved[log_delta]

    def rdp(self, orders: Array) -> Array | None:
        if self.guarantee.slack > 0.0 or not self.directions:
            return None
        profiles = [partial(self.log_profile_of, side) for side in range(len(self.directions))]
        return rdp_of_profiles(profiles, refined_renyi(self.guarantee, self.law), orders, self.probe(_FAR))

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        return Conversion(self._solve(log_delta)[1], "exact")

    @property
    def attained(self) -> bool:
        """Whether a mechanism is known in every direction."""
        return bool(self.directions) and all(direction.inner is not None for direction in self.directions)

    def probe(self, log_delta: float) -> float:
        if not self.directions or log_delta == -math.inf:
            return math.inf
        return max(direction.estimate(log_delta) for direction in self.directions)

    def mechanism(self, log_delta: float) -> float:
        """Lower bound on ε from the mechanism of the best path; 0 where no mechanism is known."""
        return self._solve(log_delta)[0]

    def log_profile_of(self, direction: int, epsilons: Array) -> Array:
        """Log of the certified delta of one direction (0: A against A', 1: A' against A) at each epsilon >= 0."""
        if not self.directions:
            return np.zeros(np.shape(epsilons))
        chosen = self.directions[direction % len(self.directions)]
        return np.array([chosen.log_delta(float(epsilon)) for epsilon in np.ravel(epsilons)]).reshape(
            np.shape(epsilons)
        )

    def log_profile(self, epsilons: Array) -> Array:
        sides = range(max(len(self.directions), 1))
        return np.asarray(np.max([self.log_profile_of(side, epsilons) for side in sides], axis=0), dtype=float)


def bounds(guarantee: Guarantee, law: RunCount, orders: Array | None = None) -> Iterator[ExactBound]:
    """Where K is a law of best-of-K."""
    if isinstance(law, Law):
        yield ExactBound(guarantee, law)
