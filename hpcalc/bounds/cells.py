"""What one search loses on polygons: suprema over the losers before each winner, by cells, and over paths of them.

**Why cells are enough.** W is replaced by the maximum of some of its tangents, below W, and V by the mirror image,
above V. On a piece [x0, x1] of slope l and width D, ``FU(x+y)`` lies below its chord in x and ``FL(W(x)+V)`` above its
tangent at x1, both linear in x, so the piece is at most ``D (h0 + h1)/2``, h0 and h1 the suprema over y at its ends. In
a cell of y ``FU(x+y)`` lies below its chord and ``FL(w+V(y))``, a convex function, above the tangents at the ends of
the cell: the difference is largest at an end or where the tangents meet. Cells whose bound is not above the best value
met are left alone, the others are cut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hpcalc.bounds.polygon import Points, Polygon, between, share_out
from hpcalc.laws import BestOfK, Law
from hpcalc.logspace import Array, Indices, Mask, Prob, times

#: Covers the rounding of sums.
MARGIN = 1e-12

# Knobs of speed; any values are sound.
_CELLS = 96  # cells of y to begin with
CUTS, _ROUNDS = 8, 5  # into how many a cell is cut, and how often
_OPEN = 30_000  # cells that may be cut at once; where more are open, as where nothing is lost, all keep their bounds
_TOP = 8.0  # logit of the mass beyond which points need not be told apart
DEPTH = 80.0  # how far below its start, in logarithm, a density is followed
_CLOSE = 2e-6  # relative excess at which a cell is left alone


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
        return self.law.log_upper_density(rank_of(x, y.x, y.x_rest))

    def log_g(self, w: Array, y: Points) -> Array:
        """``log FL(w + V(y))``."""
        return self.law.log_lower_density(rank_of(w, y.w, y.w_rest))

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
        return share_out([spread(corner, self.log_tail), falls(f, DEPTH), falls(g, 2.0 * DEPTH)], self.count + 1)

    def block(self, piece: Indices, place: Array) -> Block:
        """What the bound is made of on the cells between points of the losers' polygon, one row of them a piece."""
        corner = self.pieces.corner
        x0, x1, w1 = corner.x[piece][:, None], corner.x[piece + 1][:, None], corner.w[piece + 1][:, None]
        y, before, after = self.lattice.at(place)
        rank = rank_of(w1, y.w, y.w_rest)
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
            block = self.block(block.piece[row], left + (right - left) * (np.arange(CUTS + 1) / CUTS))
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
            # a bound is a line in x: one of two whole lines, for the smaller ends of two bound nothing between them
            line, most = np.maximum([part[:, 0] for part in bound], -1e300), highest[:, piece]
            gain = np.where((most <= line).all(axis=0), most, line) * half[piece]
            open_ = _through(piece, place, gain) * (1.0 + MARGIN) > delta
            if not open_.any():
                return True
            if np.count_nonzero(open_) > _OPEN:
                break
            left, width = place[open_, :1, None], np.diff(place[open_])[..., None]
            place = (left + width * ((np.arange(CUTS)[:, None] + np.arange(2)) / CUTS)).reshape(-1, 2)
            piece = np.repeat(piece[open_], CUTS)
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


def rank_of(a: Array, b: Array, rest: Array) -> Prob:
    """The probability a + b, from b and 1 - b; a sum above 1 is 1."""
    with np.errstate(divide="ignore"):
        return Prob(np.minimum(np.log(a + b), 0.0), np.log(np.maximum(rest - a, 0.0)))


def _log(total: float) -> float:
    return min(math.log(total * (1.0 + MARGIN)), 0.0) if total > 0.0 else -math.inf


def spread(corner: Points, log_tail: float) -> Array:
    """Differences of logits, as far as masses matter."""
    return np.asarray(np.diff(np.clip(corner.logit, log_tail, _TOP)))


def falls(values: Array, depth: float) -> Array:
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
