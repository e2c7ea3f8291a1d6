"""Theorem E at many ε at once: the certified profile of a search, from which it becomes a guarantee in its turn.

The polygons are those of :mod:`hpcalc.bounds.exact`, with pieces and cells fixed once instead of adapted to one ε. On a
cell of losers the bound is the largest of a few lines in ``c = e^ε l``, so an ε costs one pass over the table of their
coefficients. The bound of a piece falls with c: a piece that contributes nothing at one ε is left out at larger ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hpcalc.bounds.exact import Direction, ExactBound, Search, gaps, logit, share_out
from hpcalc.logspace import Array, Prob

__all__ = ["certified_profile"]

# Knobs of speed; any values are sound.
_PIECES, _CELLS, _FILL = 800, 320, 4000
_HALF = 8.0  # logit of the mass beyond which winners and losers no longer matter much
_BEYOND = 24.0  # how much further than the log delta of interest cells of losers reach


def certified_profile(bound: ExactBound, direction: int, floor: float) -> Callable[[Array], Array]:
    """Log of the certified delta of one direction as a function of arrays of ε >= 0.

    Parameters
    ----------
    bound : ExactBound
        Of the search.
    direction : int
        0 (A against A') or 1.
    floor : float
        Log delta down to which the profile is to be accurate; it is certified everywhere.

    Returns
    -------
    callable
        Epsilons, shape (n,), to ``log delta``, same shape; about 5 ms each.

    Examples
    --------
    >>> from hpcalc.guarantees import Gaussian
    >>> from hpcalc.laws import Poisson
    >>> bound = ExactBound(Gaussian(5**0.5), Poisson(10.0))
    >>> profile = certified_profile(bound, 0, -20.0)
    >>> bool(0.0 <= profile(np.array([3.65]))[0] - math.log(1e-6) < 0.02)
    True
    """
    sides = bound.directions
    if not sides:
        return lambda epsilons: np.zeros(epsilons.shape)
    table = _Table(_search(sides[direction % len(sides)], floor), floor)
    return table.log_profile


def _search(side: Direction, floor: float) -> Search:
    law = side.law
    log_tail = max(floor - 9.0 - law.log_mean, -690.0)
    z = np.concatenate([np.linspace(log_tail, 37.0, _FILL), np.linspace(-18.0, 6.0, _FILL)])
    fill = np.asarray(1.0 / (1.0 + np.exp(-z)), dtype=float)
    line, lattice = side.won.filled(fill), side.lost.filled(fill)
    x, w = line.x[:-1], line.w[:-1]
    with np.errstate(divide="ignore"):
        steep = np.maximum(np.log(line.slope), 2.0 * log_tail)
    falls = [gaps(law.log_density(Prob.from_u(part)), _BEYOND - floor) for part in (x, w)]
    chosen = share_out([np.diff(np.clip(logit(x), log_tail, _HALF)), np.abs(np.diff(steep)), *falls], _PIECES)
    return Search(law, line.tangents(chosen), lattice, 0.0)


class _Table:
    """Coefficients of the lines in c: one row for each piece of winners, one column for each cell of losers."""

    def __init__(self, search: Search, floor: float) -> None:
        pieces, lattice, depth = search.pieces, search.lattice, _BEYOND - floor
        place = np.clip(logit(lattice.x), floor - 9.0 - search.law.log_mean, _HALF)
        falls = [gaps(search.log_f(lattice.x), depth), gaps(search.log_g(lattice.w), 1.5 * depth)]
        cells = share_out([np.diff(place), *falls], _CELLS)
        block = search.block(np.arange(pieces.slope.size), cells[None, :].astype(float))
        top = np.maximum(block.log_g[:, :1], -700.0)  # of its row
        with np.errstate(divide="ignore"):
            log_slope = np.log(pieces.slope)[:, None]
        self.most = search.law.max_runs
        with np.errstate(over="ignore"):
            both = [
                np.exp(np.minimum(part - top, 690.0)) for part in (block.log_g, block.log_low, block.log_push[:, 1:])
            ]
        for f in (block.f0, block.f1):  # at a cell's left end, its right end and where the tangents of G meet
            at = f[:, :-1], f[:, 1:], f[:, :-1] + block.meet * np.diff(f)
            both += [np.where(block.outside, -math.inf, value) for value in at]
        self.rows = [np.diff(pieces.x)[:, None], log_slope, log_slope + top, *both]

    def log_profile(self, epsilons: Array) -> Array:
        """The bound at each ε."""
        out, rows = np.empty(epsilons.shape), self.rows
        for i in np.argsort(epsilons, kind="stable"):
            epsilon = float(epsilons[i])
            width, log_slope, log_scale, g, low, push, *ends = rows
            c = np.exp(np.minimum(epsilon + log_scale, 700.0))
            with np.errstate(over="ignore"):
                left, right, low, push = c * g[:, :-1], c * g[:, 1:], c * low, c * push
            value = np.zeros(c.size)
            for (start, stop, meet), lost in ((ends[:3], push), (ends[3:], 0.0)):
                inside = np.maximum(np.maximum(start - left, stop - right), meet - low)
                value += np.maximum(np.max(np.minimum(inside, start - right) - lost, axis=1), 0.0)
            if self.most is not None:  # F(u) <= c F(1 - slope (1-u)) at every u
                value[log_slope[:, 0] >= -epsilon / self.most] = 0.0
            total = 0.5 * float(np.sum(width[:, 0] * value)) * (1.0 + 1e-12)
            out[i] = min(math.log(total), 0.0) if total > 0.0 else -math.inf
            if np.count_nonzero(value) < 0.8 * value.size:
                rows = [row[value > 0.0] for row in rows]
        return out
