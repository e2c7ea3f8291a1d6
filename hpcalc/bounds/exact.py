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
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise

import numpy as np

from hpcalc.bounds.bound import ProfileBound
from hpcalc.bounds.polygon import Points, Polygon, between, chords, losers, share_out, winners
from hpcalc.bounds.renyi import rdp_of_profiles, refined_renyi
from hpcalc.conversion import Conversion
from hpcalc.guarantees import Guarantee
from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.laws import BestOfK, Law, RunCount
from hpcalc.logspace import Array, Indices, Mask, Prob, distinct, logsubexp, times

# Covers the rounding of the sums below.
_MARGIN = 1e-12

# Smaller ones are left to other bounds: doubles end there.
_SMALLEST = -650.0

# Knobs of speed; any values are sound.
_COARSE, _MOST, _SHARES = 65, 700, 300  # pieces: to begin with, where cutting ends, parts of the error allowed
_EVEN = 500  # pieces where many ε are asked for
_CELLS, _PATHS = 96, 512  # cells of y to begin with, and those that paths go through
_CUTS, _ROUNDS = 8, 5  # into how many a cell is cut, and how often
_OPEN = 30_000  # cells that may be cut at once; where more are open, as where nothing is lost, all keep their bounds
_FILL = 2048  # points at which polygons may be cut, over all masses and again over those that decide most searches
_TOP = 8.0  # logit of the mass beyond which points need not be told apart
_DEPTH = 80.0  # how far below its start, in logarithm, a density is followed
_CLOSE, _LOOSE = 2e-6, 1e-3  # relative excess at which a cell is left alone; the same where many ε are asked for
_ENOUGH = 2e-4  # relative error of ε at which pieces are left alone
_EXCESS = (4e-4, 1.6e-3, 6.4e-3, 2.56e-2)  # relative excess over the best path, tried in the path form
_DONE = 1e-5  # relative excess of ε at which it is taken
_NEAR = 1e-3  # the same where no pair of laws attains the region, and a Rényi bound is mostly smaller
_FAR = -46.0  # log delta up to which a Rényi curve is taken from the profile
_LEAST = -80.0  # logarithm of the delta to which a profile is accurate
_THIN = 1e-7  # width of a block, relative to where it is, that differences of doubles still tell


@dataclass(eq=False)
class Block:
    """What the bounds of cells are made of: r rows are pieces of x, k columns cells of y or (one more) their ends."""

    piece: Indices
    #: Ends of the cells among the corners of the losers' polygon, shape (r, k+1) or (1, k+1).
    place: Array
    #: FU at the ends of the cells beside the left and the right end of the piece.
    f0: Array
    f1: Array
    #: Logarithms of FL at the piece's right end, and of what it is larger by at the left end, at least.
    log_g: Array
    log_push: Array
    #: Where in each cell the tangents of FL meet, and the logarithm of their value there, shape (r, k).
    meet: Array
    log_low: Array
    #: Whether a cell begins beyond the last loser.
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


@dataclass(eq=False)
class Search:
    """Best-of-K on polygons: winners by their pieces, losers by cells."""

    law: BestOfK
    pieces: Polygon
    #: Losers, with corners where cells may begin.
    lattice: Polygon
    #: Error of delta that cells may be left with.
    enough: float
    #: Logarithm of a mass below which points need not be told apart.
    log_tail: float
    #: Cells of y to begin with.
    count: int = _CELLS
    close: float = _CLOSE

    def log_f(self, x: Array, y: Points) -> Array:
        """``log FU(x + y)``."""
        return self.law.log_upper_density(_sum(x, y.x, y.x_rest))

    def log_g(self, w: Array, y: Points) -> Array:
        """``log FL(w + V(y))``."""
        return self.law.log_lower_density(_sum(w, y.w, y.w_rest))

    @cached_property
    def width(self) -> Array:
        """Q-masses of the pieces."""
        return np.asarray(np.maximum(np.diff(self.pieces.corner.x), 0.0))  # next to 1 rounding may turn one round

    @cached_property
    def cells(self) -> Indices:
        """The corners of the losers' polygon between which the cells lie at first."""
        corner = self.lattice.corner
        zero = np.zeros(1)
        f, g = self.log_f(zero, corner), self.log_g(zero, corner)
        return share_out([_spread(corner, self.log_tail), _falls(f, _DEPTH), _falls(g, 2.0 * _DEPTH)], self.count + 1)

    def block(self, piece: Indices, place: Array) -> Block:
        """What the bound is made of on the cells between points of the losers' polygon, one row of them a piece."""
        corner = self.pieces.corner
        x0, x1, w1 = corner.x[piece][:, None], corner.x[piece + 1][:, None], corner.w[piece + 1][:, None]
        y, before, after = self.lattice.at(place)
        rank = _sum(w1, y.w, y.w_rest)
        log_g = self.law.log_lower_density(rank)
        log_fall = np.where(rank.log_q > -np.inf, self.law.log_lower_density_slope(rank), -np.inf)
        width = between(y.x, y.x_rest)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scale = log_g[:, :-1]
            end = np.exp(log_g[:, 1:] - scale)
            here = np.exp(log_fall[:, :-1] - scale) * after[:, :-1] * width
            there = np.exp(log_fall[:, 1:] - scale) * before[:, 1:] * width
            meet = np.clip(np.nan_to_num((1.0 - end - there) / (here - there)), 0.0, 1.0)
            low = np.fmax(np.fmin(1.0 - here * meet, end + there * (1.0 - meet)), end)
            log_low = np.where(np.isneginf(scale), -np.inf, scale + np.log(np.minimum(low, 1.0)))
            log_push = log_fall + np.log(self.pieces.slope[piece] * self.width[piece])[:, None]
        f0, f1 = np.exp(self.log_f(x0, y)), np.exp(self.log_f(x1, y))
        return Block(piece, place, f0, f1, log_g, log_push, meet, log_low, y.x_rest[:, :-1] <= x0)

    @cached_property
    def _at_cells(self) -> tuple[Array, Array, Array]:
        """FU at all corners beside the first cells, its logarithm before, and that of FL but for the first corner."""
        corner, y = self.pieces.corner, self.lattice.corner.take(self.cells)
        log_f = self.log_f(corner.x[:, None], y)
        return log_f, np.exp(log_f), self.log_g(corner.w[1:, None], y)

    def log_c(self, epsilon: float) -> Array:
        """Logarithms of ``e^ε`` times the slopes of the pieces."""
        with np.errstate(divide="ignore"):
            return np.asarray(epsilon + np.log(self.pieces.slope))

    @cached_property
    def _known(self) -> dict[float, Array]:
        return {}

    def suprema(self, epsilon: float) -> Array:
        """Certified upper bounds on the suprema over y at the left and right ends of the pieces, shape (2, n)."""
        if epsilon not in self._known:
            self._known[epsilon] = self._suprema(epsilon)
        return self._known[epsilon]

    def _suprema(self, epsilon: float) -> Array:
        log_c, cells, row = self.log_c(epsilon), self.cells, np.arange(self.width.size)
        slack = self.enough / (self.width.size * np.maximum(self.width, 1e-300))
        _, f, log_g = self._at_cells
        with np.errstate(over="ignore"):
            g = np.exp(np.minimum(log_c[:, None] + log_g, 709.0))
        # values near the best corner leave few cells to look at more closely than by their corners
        near = np.clip(np.argmax(f[1:] - g, axis=1)[:, None] + np.arange(-1, 2), 0, cells.size - 1)
        value = self.block(row, cells[near].astype(float)).values(log_c)[0]
        best = np.maximum([np.max(part, axis=1) for part in value], 0.0)
        inside = self.lattice.corner.x_rest[cells[:-1]] > self.pieces.corner.x[:-1, None]
        bound = [np.where(inside, part[:, :-1] - g[:, 1:], 0.0) for part in (f[:-1], f[1:])]
        bound = self._smaller(row, [f[:-1], f[1:]], bound, epsilon, best[1][:, None])
        limit = best * (1.0 + self.close) + slack
        closed = (bound[0] <= limit[0][:, None]) & (bound[1] <= limit[1][:, None])
        out = np.array([np.max(np.where(closed, part, 0.0), axis=1, initial=0.0) for part in bound])
        row, cell = np.nonzero(~closed)
        block = self.block(row, np.stack([cells[cell], cells[cell + 1]], axis=1).astype(float))
        for last in (*(False,) * _ROUNDS, True):
            value, bound = block.values(log_c)
            for side in (0, 1):
                np.maximum.at(best[side], block.piece, np.max(value[side], axis=1))
            least = best[:, block.piece, None]
            bound = self._smaller(block.piece, [block.f0, block.f1], bound, epsilon, least[1])
            closed = np.full(block.outside.shape, True)
            for side in (0, 1):
                closed &= bound[side] <= least[side] * (1.0 + self.close) + slack[block.piece][:, None]
            closed |= last or np.count_nonzero(~closed) > _OPEN
            for side in (0, 1):
                np.maximum.at(out[side], block.piece, np.max(np.where(closed, bound[side], 0.0), axis=1))
            row, cell = np.nonzero(~closed)
            if row.size == 0:
                break
            ends = np.broadcast_to(block.place, (block.piece.size, block.place.shape[1]))
            left, right = ends[row, cell][:, None], ends[row, cell + 1][:, None]
            block = self.block(block.piece[row], left + (right - left) * (np.arange(_CUTS + 1) / _CUTS))
        return out

    def _smaller(self, piece: Indices, f: list[Array], bound: list[Array], epsilon: float, known: Array) -> list[Array]:
        """The bounds of cells, or others where those are smaller and K is limited.

        ``W(x) + V(y) <= 1 - l (1-u)`` for u = x+y and the slope l of the piece, so the integrand is at most
        ``F(u) (1 - e^ε l^K)``, K the largest possible. Either bound is linear in x, so one holds for both ends.
        """
        most = self.law.max_runs
        if most is None or not isinstance(self.law, Law):
            return bound
        log_c = self.log_c(epsilon)[piece]
        top = -np.expm1(np.minimum(log_c + times(most - 1.0, log_c - epsilon), 0.0))[:, None]
        share = [top * part[:, :-1] for part in f]
        less = (share[0] <= bound[0]) & (share[1] <= np.maximum(bound[1], known))
        return [np.where(less, share[side], bound[side]) for side in (0, 1)]

    def log_delta(self, epsilon: float) -> float:
        """Certified upper bound on the logarithm of delta at one epsilon."""
        return _log(float(np.sum(0.5 * self.width * np.sum(self.suprema(epsilon), axis=0))))

    def within(self, epsilon: float, delta: float) -> bool:
        """Whether delta holds in the path form: losers before a piece are losers before the next one too.

        Cells through which no path gains more are left out, the others cut.
        """
        log_c, ends, pieces = self.log_c(epsilon), self.cells.astype(float), self.width.size
        highest, half = self.suprema(epsilon), 0.5 * self.width
        piece = np.repeat(np.arange(pieces), ends.size - 1)
        place = np.tile(np.stack([ends[:-1], ends[1:]], axis=1), (pieces, 1))
        for _ in range(_ROUNDS):
            block = self.block(piece, place)
            bound = self._smaller(piece, [block.f0, block.f1], block.values(log_c)[1], epsilon, np.array(-np.inf))
            gain = np.clip([part[:, 0] for part in bound], -1e300, highest[:, piece]) * half[piece]
            open_ = _through(piece, place, gain) * (1.0 + _MARGIN) > delta
            if not open_.any():
                return True
            if np.count_nonzero(open_) > _OPEN:
                break
            left, width = place[open_, :1, None], np.diff(place[open_])[..., None]
            place = (left + width * ((np.arange(_CUTS)[:, None] + np.arange(2)) / _CUTS)).reshape(-1, 2)
            piece = np.repeat(piece[open_], _CUTS)
        return False

    def losers_before(self, epsilon: float, rounds: int = 2) -> Points:
        """For each piece the losers that are best ranked before it, never fewer than before the piece to its left.

        They are found among the ends of the cells, then ``rounds`` times more closely.
        """
        log_c, corner = self.log_c(epsilon)[:, None], self.pieces.corner
        x1, w1 = corner.x[1:, None], corner.w[1:, None]

        def gain(log_f: Array, f: Array, log_g: Array, rest: Array) -> Array:
            """What a winner adds; where that is nothing, the logarithm by which it falls short."""
            with np.errstate(over="ignore", invalid="ignore"):
                log_g = log_c + log_g
                short = log_f - log_g
                value = np.where(short > 0.0, f - np.exp(np.minimum(log_g, 709.0)), short)
            return np.where((rest < x1) | np.isnan(short), -np.inf, value)

        log_f, f, log_g = self._at_cells
        value = gain(log_f[1:], f[1:], log_g, self.lattice.corner.x_rest[self.cells][None, :])
        at, rows = np.argmax(value, axis=1), np.arange(value.shape[0])
        winning = value[rows, at] > 0.0
        if np.any((np.maximum.accumulate(np.where(winning, at, 0)) - at > 1) & winning):
            at = _monotone_path(np.maximum(value, 0.0) * self.width[:, None])
        left, right = (self.cells[np.clip(at + k, 0, self.cells.size - 1)].astype(float) for k in (-1, 1))
        place = self.cells[None, :].astype(float)
        for _ in range(rounds):
            place = left[:, None] + (right - left)[:, None] * (np.arange(17) / 16.0)
            y = self.lattice.at(place)[0]
            log_f = self.log_f(x1, y)
            value = gain(log_f, np.exp(log_f), self.log_g(w1, y), y.x_rest)
            at = np.argmax(value, axis=1)
            left, right = place[rows, np.maximum(at - 1, 0)], place[rows, np.minimum(at + 1, 16)]
        best = np.broadcast_to(place, value.shape)[rows, at]
        return self.lattice.at(np.maximum.accumulate(np.where(value[rows, at] > 0.0, best, 0.0)))[0]


def _sum(a: Array, b: Array, rest: Array) -> Prob:
    """The probability a + b, from b and 1 - b; a sum above 1 is 1."""
    with np.errstate(divide="ignore"):
        return Prob(np.minimum(np.log(a + b), 0.0), np.log(np.maximum(rest - a, 0.0)))


def _log(total: float) -> float:
    return min(math.log(total * (1.0 + _MARGIN)), 0.0) if total > 0.0 else -math.inf


def _spread(corner: Points, log_tail: float) -> Array:
    """Differences of logits, as far as masses matter."""
    return np.asarray(np.diff(np.clip(corner.logit, log_tail, _TOP)))


def _falls(values: Array, depth: float) -> Array:
    """How far a falling function of points falls from each to the next, as far as ``depth`` below its start."""
    return np.asarray(np.abs(np.diff(np.maximum(values, values[0] - depth))))


def _through(piece: Indices, place: Array, gain: Array) -> Array:
    """The most that a nondecreasing path through each cell gains; the cells by piece, then by y.

    A path's cells in a piece never go back. What it gains there is a mean over s in [0, 1] of ``1 - s`` times the value
    of its cell at the left end and s times that at the right end, and most of the weight s lies later: coupled
    monotonely it is a mean of pairs, a cell at the left end and the same or a later one at the right end. So a piece is
    two steps, ``gain`` of shape (2, n) what each cell adds in either.
    """
    (left, right), ends = place.T, np.append(np.flatnonzero(np.diff(piece, prepend=-1)), piece.size)
    steps = [(side, slice(*cells)) for cells in pairwise(ends) for side in (0, 1)]
    before, after = np.zeros((2, *gain.shape))
    for last, step in pairwise(steps):
        best = np.append(-np.inf, np.maximum.accumulate(before[last] + gain[last]))
        before[step] = best[np.searchsorted(left[last[1]], right[step[1]])]
    for step, following in pairwise(steps[::-1]):
        best = np.append(np.maximum.accumulate((after[step] + gain[step])[::-1])[::-1], 0.0)
        after[following] = np.maximum(best[np.searchsorted(right[step[1]], left[following[1]], side="right")], 0.0)
    return np.asarray(np.max(before + gain + after, axis=0))


def _monotone_path(gain: Array) -> Indices:
    """The nondecreasing choice of one column in each row with the largest sum."""
    total = np.zeros(gain.shape[1])
    chosen = np.empty(gain.shape, dtype=np.intp)
    columns = np.arange(gain.shape[1])
    for i, row in enumerate(gain):
        value = total + row
        total = np.maximum.accumulate(value)
        chosen[i] = np.maximum.accumulate(np.where(value == total, columns, 0))
    out = np.empty(gain.shape[0], dtype=np.intp)
    at = gain.shape[1] - 1
    for i in range(gain.shape[0] - 1, -1, -1):
        at = out[i] = chosen[i, at]
    return out


@dataclass(eq=False)
class Mechanism:
    """The search over one pair of laws, its outcomes ranked along a path of Theorem E and merged into blocks.

    ``log_a`` and ``log_b`` are the log-probabilities of the winners' blocks under A and A'.
    """

    log_a: Array
    log_b: Array

    @classmethod
    def along(cls, law: BestOfK, won: Points, lost: Points) -> Mechanism:
        """Winners between neighbouring points, each block after the losers of one point.

        Events need not hold every block: those so thin that rounding makes up their likelihood ratio are left out.
        """
        use = won.x[1:] <= lost.x_rest
        for ends, above in ((won.x, won.x_rest), (won.w, won.w_rest)):
            use &= (between(ends, above) > _THIN * np.minimum(ends[1:], above[:-1])) | (ends[1:] == 0.0)

        def blocks(ends: Array, before: Array, rest: Array, density: Callable[[Prob], Array]) -> Array:
            lo, hi = (_sum(part[use], before[use], rest[use]) for part in (ends[:-1], ends[1:]))
            with np.errstate(divide="ignore"):
                log_width = np.log(np.maximum(np.diff(ends)[use], 0.0))
            if isinstance(law, Law):
                return law.log_block(lo, hi, log_width)
            return log_width + 0.5 * (density(lo) + density(hi))

        return cls(
            blocks(won.x, lost.x, lost.x_rest, law.log_upper_density),
            blocks(won.w, lost.w, lost.w_rest, law.log_lower_density),
        )

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
        likely = a > log_delta + _MARGIN
        if not likely.any():
            return 0.0
        return max(float(np.max(logsubexp(a[likely], log_delta) - b[likely])), 0.0)


@dataclass(eq=False)
class _Located:
    """What a search on some pieces found: ε, delta and the losers before each piece, the error that is small enough."""

    epsilon: float
    delta: float
    before: Points
    enough: float


class Direction:
    """One direction of a search: A against A'.

    ``own`` is what one run guarantees, winners and losers; ``inner`` are points that one pair of laws has.
    """

    def __init__(self, law: BestOfK, own: tuple[Polygon, Polygon], inner: Tradeoff | None) -> None:
        self.law = law
        self.own = own
        self.inner = None if inner is None or not isinstance(law, Law) else chords(inner)
        # the Q-mass of outcomes that Q' does not have
        self.log_lost = (
            -math.inf if inner is None else float(np.max(inner.x.log_u[np.isneginf(inner.w.log_u)], initial=-math.inf))
        )
        self.enough = _ENOUGH if self.inner is not None else _NEAR

    def solve(self, log_delta: float) -> tuple[float, float]:
        """Lower bound (0 without a mechanism) and certified upper bound on ε."""
        if log_delta < _SMALLEST:
            return 0.0, math.inf
        search, found = self._adapted(log_delta - 9.0 - self.law.log_mean, self._path(log_delta))
        low = self._lower(search, found, log_delta)
        if found.epsilon == math.inf:  # more than delta lies where W is 0, or less than a double can tell from 0
            if isinstance(self.law, Law) and self.law.success(Prob.from_log_u(self.log_lost)).log_u > log_delta:
                low = math.inf
            return low, math.inf
        # -dε/dlog(delta) near the answer
        fall = math.exp(log_delta) * self.enough * max(found.epsilon, 1e-3) / found.enough
        high = _least_epsilon(search.log_delta, log_delta, found.epsilon, fall)
        if high > found.epsilon * (1.0 + 2.0 * self.enough):  # the pointwise form may be larger than the path form
            search = replace(search, count=_PATHS)
            found = self._path(log_delta)(search, found)
            low = max(low, self._lower(search, found, log_delta))
            search, delta = replace(search, count=_CELLS), math.exp(log_delta)
            tried = (found.epsilon * (1.0 + excess) for excess in _EXCESS)
            high = next((epsilon for epsilon in tried if epsilon >= high or search.within(epsilon, delta)), high)
        return low, max(low, high) if low <= high * (1.0 + _MARGIN) else high  # equal but for rounding

    def _lower(self, search: Search, found: _Located, log_delta: float) -> float:
        """ε of the mechanism on the path found; 0 without a mechanism."""
        if self.inner is None:
            return 0.0
        made = self._mechanism(search, found.before, self.inner)
        # what doubles call 0 has at most this probability
        return Mechanism(made.log_a, np.maximum(made.log_b, self.law.log_mean - 690.0)).epsilon(log_delta)

    def estimate(self, log_delta: float) -> float:
        """ε of the best path on few pieces: no bound."""
        if log_delta < _SMALLEST:
            return math.inf
        return self._adapted(log_delta - 9.0 - self.law.log_mean, self._path(log_delta), certify=False)[1].epsilon

    def profile(self, floor: float) -> Callable[[Array], Array]:
        """Certified log delta at arrays of ε, quicker than one by one; to be accurate down to log delta ``floor``."""
        log_tail = floor - 9.0 - self.law.log_mean
        line, lattice = _filled(self.own, math.floor(log_tail))
        search = Search(
            self.law, line.coarser(self._first(line, _EVEN, log_tail)), lattice, 0.0, log_tail, close=_LOOSE
        )
        return lambda epsilons: np.array([search.log_delta(float(epsilon)) for epsilon in epsilons])

    def log_delta(self, epsilon: float) -> float:
        """Certified upper bound on the logarithm of delta."""

        def located(search: Search, before: _Located | None) -> _Located:
            lost = search.losers_before(epsilon)
            made = self._mechanism(search, lost, self.own)
            delta = made.delta(epsilon)
            return _Located(epsilon, delta, lost, self.enough * max(delta, math.exp(_LEAST)))

        return self._adapted(_LEAST - self.law.log_mean, located)[0].log_delta(epsilon)

    def _path(self, log_delta: float) -> Callable[[Search, _Located | None], _Located]:
        """The best path at delta: from a path to the ε that it attains, from there to the path that is best at it."""

        def located(search: Search, before: _Located | None) -> _Located:
            epsilon, below = 0.0 if before is None else before.epsilon, 0.5 * self.enough
            rounds = 0 if before is None else 2
            for _ in range(20):
                # just below ε, or as far below that what is best there still adds something
                lost = search.losers_before(epsilon * (1.0 - below), rounds)
                made = self._mechanism(search, lost, self.own)
                found = made.epsilon(log_delta)
                if found < epsilon * (1.0 - 10.0 * self.enough) and below < 0.5:
                    below *= 10.0
                # what is left is of the order of the square of the last step
                elif found <= epsilon * (1.0 + (10.0 if rounds else 200.0) * self.enough) or found == math.inf:
                    if rounds:
                        break
                    rounds = 2
                else:
                    epsilon = found
            epsilon = max(epsilon, found)
            if epsilon == math.inf:
                return _Located(epsilon, 0.0, lost, 0.0)
            if epsilon == 0.0 and search.log_delta(0.0) <= log_delta:
                return _Located(epsilon, math.exp(log_delta), lost, math.inf)
            # an error of delta, divided by this, is one of ε
            delta = math.exp(log_delta)
            weight = max(made.mass(epsilon) - delta, delta)
            return _Located(epsilon, delta, lost, self.enough * max(epsilon, 1e-3) * weight)

        return located

    def _adapted(
        self, log_tail: float, located: Callable[[Search, _Located | None], _Located], certify: bool = True
    ) -> tuple[Search, _Located]:
        """A search with pieces cut until their errors are small (or once, to certify nothing), and what is on it."""
        line, lattice = _filled(self.own, math.floor(log_tail))
        chosen, found = self._first(line, _COARSE, log_tail), None
        enough = math.exp(log_tail + self.law.log_mean)  # about 1e-4 of delta
        first = True
        while True:
            search = Search(self.law, line.coarser(chosen), lattice, enough, log_tail)
            found = located(search, found)
            enough = found.enough
            if found.epsilon == math.inf or not (certify or first):
                return search, found
            first = False
            for certified in (False, True) if certify else (False,):
                more = distinct(np.concatenate([chosen, _cuts(search, found, line.corner.logit[:-1], certified)]))
                if more.size > chosen.size:
                    break
            else:
                return search, found
            chosen = more

    def _first(self, line: Polygon, count: int, log_tail: float) -> Indices:
        """Pieces spread over all masses, slopes and densities."""
        corner = line.corner.take(slice(None, -1))
        f = self.law.log_upper_density(_sum(np.zeros(1), corner.x, corner.x_rest))
        g = self.law.log_lower_density(_sum(np.zeros(1), corner.w, corner.w_rest))
        with np.errstate(divide="ignore"):
            steep = np.maximum(np.log(line.slope), -_DEPTH)
        measures = [_spread(corner, log_tail), np.abs(np.diff(steep)), _falls(f, _DEPTH), _falls(g, _DEPTH)]
        return share_out(measures, count)

    def _mechanism(self, search: Search, before: Points, polygons: tuple[Polygon, Polygon]) -> Mechanism:
        points = search.pieces.corner, before
        won, lost = (line.over(part.x, part.x_rest) for line, part in zip(polygons, points, strict=True))
        return Mechanism.along(self.law, won, lost)


@lru_cache(maxsize=8)
def _filled(own: tuple[Polygon, Polygon], log_tail: int) -> tuple[Polygon, Polygon]:
    """Winners and losers with points at which they may be cut: the same for every law of K that a search tries."""
    z = np.linspace(max(log_tail, -690.0), 37.0, _FILL), np.linspace(-18.0, 6.0, _FILL)
    won, lost = (polygon.filled(np.concatenate(z)) for polygon in own)
    return won, lost


def _cuts(search: Search, found: _Located, places: Array, certified: bool) -> Indices:
    """Where to cut pieces, at some of the places given, so that all err about equally.

    The error is that of the certified bound, or of the path found, which is quicker and nearly always the same.
    """
    corner, before = search.pieces.corner, found.before
    start, stop = corner.take(slice(None, -1)), corner.take(slice(1, None))
    f0, f1 = search.log_f(start.x, before), search.log_f(stop.x, before)
    g0, g1 = search.log_g(start.w, before), search.log_g(stop.w, before)
    if certified:
        left, right = search.suprema(found.epsilon)
        if 0.5 * np.sum(search.width * (left + right)) <= found.delta + 2.0 * found.enough:
            return np.empty(0, dtype=np.intp)
    else:
        log_c = search.log_c(found.epsilon)
        left, right = (np.exp(logsubexp(f, np.minimum(log_c + g, f))) for f, g in ((f0, g0), (f1, g1)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bend = np.nan_to_num((f1 - f0) ** 2 + 2.0 * (g1 - g0) ** 2, nan=np.inf) / 12.0
        step = np.nan_to_num(np.log(left[1:] / right[:-1]) ** 2, nan=0.0, posinf=np.inf) / 6.0
        fall = np.nan_to_num(np.log(left / right) ** 2, nan=0.0, posinf=np.inf) / 12.0
        change = np.maximum(fall, np.maximum(np.append(step, 0.0), np.append(0.0, step)))
        value = 0.5 * (left + right)
        error = search.width * np.minimum(np.nan_to_num(np.exp(f0) * bend + value * change, nan=0.0), value)
    error[0] = 0.0
    if np.sum(error) <= found.enough or error.size >= _MOST * (1 + certified):
        return np.empty(0, dtype=np.intp)
    parts = np.ceil(np.cbrt(np.minimum(error * (_SHARES / max(found.enough, 1e-300)), 1e6))).clip(1, _CUTS)
    first, last = (np.searchsorted(places, part.logit) for part in (start, stop))
    out = [first + ((last - first) * (k / parts)).astype(np.intp) for k in range(_CUTS)]
    cuts = np.concatenate([part[k < parts] for k, part in enumerate(out)])
    return np.asarray(np.minimum(cuts, places.size - 1))


def _least_epsilon(
    log_profile: Callable[[float], float], log_delta: float, epsilon: float, fall: float, rounds: int = 60
) -> float:
    """Least ε, nearly, whose certified delta is at most the one asked; ``fall`` is ``-dε/dlog(delta)``."""
    low, high, above = 0.0, math.inf, math.nan
    for _ in range(rounds):
        value = log_profile(epsilon) - log_delta
        if value <= 0.0:
            high = epsilon
            if epsilon == 0.0 or high - low <= _DONE * high or value > -_DONE * max(high, 1e-6) / fall:
                break
        else:
            if low > 0.0 and value < above:
                fall = max(fall, (epsilon - low) / (above - value))
            low, above = epsilon, value
        ahead = epsilon + fall * value + (0.5 * _DONE * epsilon if value > 0.0 else 0.0)
        epsilon = ahead if low < ahead < high else (0.5 * (low + high) if high < math.inf else 2.0 * epsilon + 1e-9)
    return high


@lru_cache(maxsize=8)
def _known(guarantee: Guarantee, side: int) -> tuple[tuple[Polygon, Polygon], Tradeoff | None] | None:
    """What is known of one direction, and what is attained: the same for every law of K that a search tries."""
    outer = guarantee.tradeoff(side)
    return None if outer is None else ((winners(outer), losers(outer)), guarantee.attained_tradeoff(side))


class ExactBound(ProfileBound):
    """Theorem E for a guarantee with a trade-off curve: exact where one pair of laws attains that.

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

    def __init__(self, guarantee: Guarantee, law: BestOfK) -> None:
        self.guarantee, self.law = guarantee, law

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        found = []
        for side in (0,) if self.guarantee.symmetric else (0, 1):
            known = _known(self.guarantee, side)
            if known is None:
                return ()
            found.append(Direction(self.law, *known))
        return tuple(found)

    @cached_property
    def _solved(self) -> dict[float, tuple[float, float]]:
        return {}

    def _solve(self, log_delta: float) -> tuple[float, float]:
        """Lower and upper bound, each the larger of both directions."""
        if self.guarantee.pure_epsilon == 0.0 and isinstance(self.law, Law):
            return 0.0, 0.0
        if log_delta not in self._solved:
            found = [direction.solve(log_delta) for direction in self.directions if log_delta > -math.inf]
            low, high = zip(*found, strict=True) if found else ((0.0,), (math.inf,))
            self._solved[log_delta] = max(low), max(high)
        return self._solved[log_delta]

    def rdp(self, orders: Array) -> Array | None:
        if self.guarantee.slack > 0.0 or not self.directions or not isinstance(self.law, Law):
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

    def profile_of(self, direction: int, floor: float) -> Callable[[Array], Array]:
        """The same for many epsilons, accurate down to log delta ``floor``: a function of arrays, shape (n,)."""
        if not self.directions:
            return lambda epsilons: np.zeros(np.shape(epsilons))
        return self.directions[direction % len(self.directions)].profile(floor)

    def log_profile(self, epsilons: Array) -> Array:
        sides = range(max(len(self.directions), 1))
        return np.asarray(np.max([self.log_profile_of(side, epsilons) for side in sides], axis=0), dtype=float)


def bounds(guarantee: Guarantee, law: RunCount, orders: Array | None = None) -> Iterator[ExactBound]:
    """Where K is a law of best-of-K."""
    if isinstance(law, BestOfK):
        yield ExactBound(guarantee, law)
