"""Privacy-loss distributions: compositions that have no closed form, from above and from below.

One use of a mechanism is a pair of laws (P, Q); its privacy loss is ``L = log dP/dQ`` under P. Losses of independent
uses add, so a composition is a convolution of losses on a grid (:mod:`hpcalc.guarantees.loss_grid`). Losses that were
moved up give a pair that dominates, losses that were moved down a pair that the composition can be post-processed to;
all that is done here has one of the two directions (``up``).

The convolution (A. Koskela, J. Jälkö, A. Honkela, "Computing tight differential privacy guarantees using FFT", AISTATS
2020) is one transform per *tilt*: masses are first multiplied by ``exp(alpha * loss)`` and divided again afterwards.
That moves the rounding error of the transform, which is uniform, out of the way: with the tilts used here the profile
is right to many digits from 1 down to 1e-30, where a plain transform is noise below 1e-11. What error remains is
bounded, and added to each mass or taken off. Tilt -1 turns P into Q, so the tilt ``-1 - alpha`` looks after the left
tail as ``alpha`` does after the right one.

No tilt serves where a single step may, rarely, have a loss larger than all others together (a small sampling rate):
then steps with such a jump are counted apart. With S the law of the smaller losses and B that of the jumps, ``T`` steps
are the sum over j of ``binomial(T, j)`` times S convolved ``T - j`` and B convolved j times; jumps are so rare that a
few j suffice, and sums of positive terms have no rounding error to speak of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hpcalc.guarantees.guarantee import Guarantee
from hpcalc.guarantees.loss_grid import LOG_TAIL, Kinds, Losses, downwards, sparse, upwards
from hpcalc.guarantees.pair import DominatingPair, breakpoints
from hpcalc.guarantees.tradeoff import least_masses
from hpcalc.logspace import Array, distinct, logaddexp, logsumexp

_INF = math.inf
MAX_CELLS = 1 << 20  # of a transform: about a tenth of a second of work
_ROOM = 1 << 19  # as many on coarser grids and where jumps are counted apart
_LOG_WRAP = -38.0  # tilted mass on either side that may be outside the window, and wraps around in the transform
_CHERNOFF = (0.5, 2.0, 4.0, 8.0, 12.0)  # exponents tried, in standard deviations
_STEEP = (1.0, 4.0, 16.0)  # and as such: a rare huge loss is many standard deviations
_UP, _DOWN = (3.0, 20.0, 70.0), (12.0,)  # the tilts are accurate around delta = e^-3, e^-20, e^-70
_SMALLER = (1.0, 0.9, 0.8, 0.7)  # parts of a tilt that are tried in turn
_COARSER = (1.0, 2.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)  # multiples of the grid step tried in turn
_DIRECT = 1 << 20  # terms of the Fourier sums of one step that are summed without a fast transform
_RARE = {True: 1e-5, False: 1e-3}  # expected number of steps with a jump, where they are counted apart
_REST = {True: 1e-33, False: 1e-18}  # expected number of sums of jumps that are left out
_LEAST = -100.0  # logarithm of the least mass that is followed
_MANY = 1000.0  # steps of one kind: they differ little from one less
_DENSE = 400  # a grid of losses with jumps is a 400th of three standard deviations or of the loss fine
_THIN = 0.003  # gap in -log delta, where that is small, between the nodes of a profile
_OUTCOMES = 4000  # about so many of a pair from below; neighbours are merged
_SUMS = 1e-9  # covers the rounding of a logarithm of a sum of a million terms, one by one
_EPS = float(np.finfo(float).eps)


class _View(NamedTuple):
    """Composition seen through one tilt: P-mass at index ``first + i`` is ``mass * exp(scale - alpha * loss)``."""

    first: int
    mass: Array
    error: float  # bound on the rounding of each tilted mass
    alpha: float
    scale: float


class _Law(NamedTuple):
    """Losses with bounds on their log P-masses; upwards also on the P-mass above all of them, the Q-mass below."""

    loss: Array
    log_p: Array
    ends: tuple[float, float] = (-_INF, -_INF)


def composed_losses(
    sources: Sequence[Guarantee], kinds: Kinds, step: float, scale: float, *, up: bool, symmetric: bool
) -> DominatingPair | None:
    """The pair of a composition by convolution, which dominates it or, downwards, is attained; None if too large.

    Losses are multiples of ``step`` or, where that is too fine, of coarser ones; ``scale`` is the standard deviation of
    the total loss, roughly.
    """
    for times in _COARSER:
        losses = (upwards if up else downwards)(sources, kinds, times * step)
        least = math.ceil(100.0 * scale / losses.step)
        most = min(MAX_CELLS, least if times == 1.0 else max(least, _ROOM))
        tilts, reached = _tilts(losses, scale, up=up, symmetric=symmetric)
        law = _law(losses, tilts, most, up=up) if reached else None
        law = law or _with_jumps(losses, scale, up=up, symmetric=symmetric)
        if law is not None:
            break
    else:
        return None
    if not up:
        return _attained(law, losses.step)
    log_p = law.log_p + _SUMS
    above, below = np.logaddexp(law.ends, LOG_TAIL + math.log(2.0))  # losses that left the grid count as infinite
    # upper bounds on all masses are 1 together, or doubles have lost some of them
    wholes = np.append(log_p, above), np.append(log_p - law.loss, below)
    if any(float(logsumexp(whole)) < 0.0 for whole in wholes[: 1 if symmetric else 2]):
        return None
    ahead = _nodes(law.loss, log_p, above)
    back = ahead if symmetric else _nodes(-law.loss[::-1], (log_p - law.loss)[::-1], below)
    return DominatingPair(*least_masses(ahead, back))


def _tilts(losses: Losses, scale: float, *, up: bool, symmetric: bool) -> tuple[list[float], bool]:
    """Tilts for either tail, or for the right one where they are alike; and whether the exponents are reached there."""
    exponents = _UP if up else _DOWN
    right = [_choose_alpha(losses, scale, exponent, 1.0) for exponent in exponents]
    left = [] if up and symmetric else [_choose_alpha(losses, scale, exponent, -1.0) for exponent in exponents]
    middle = [] if up else [0.0, -1.0]
    return middle + [alpha for alpha, _ in right + left], all(reached for _, reached in right)


def _choose_alpha(losses: Losses, scale: float, exponent: float, side: float) -> tuple[float, bool]:
    """Largest tilt (nearly) whose Chernoff exponent ``alpha K'(alpha) - K(alpha)`` stays below the wanted one.

    Under Q on the left side. The exponent may jump: past a certain tilt a single step with a rare huge loss outweighs
    all others. The second answer says that it does not.
    """
    low, high, reached = 0.0, 2.0 * math.sqrt(2.0 * exponent) / scale, 0.0
    for _ in range(12):
        mid = 0.5 * (low + high)
        k, weight, kinds = losses.tilted(mid if side > 0.0 else -1.0 - mid)
        found = mid * side * float(kinds.per_step(len(weight)) @ (weight @ losses.loss)) - k
        if found > exponent * 1.05:
            high = mid
        else:
            low, reached = mid, found
        if abs(found / exponent - 1.0) < 0.05:
            break
    alpha = low if side > 0.0 else -1.0 - low
    return alpha, reached > 0.6 * exponent or high > 1.9 * math.sqrt(2.0 * exponent) / scale


def _window(losses: Losses, alpha: float, own: float, spread: float) -> tuple[int, int]:
    """First and last index of the tilted sum but for ``e^_LOG_WRAP`` on either side, by Chernoff bounds."""
    ends = []
    for sign in (-1.0, 1.0):
        best = sign * losses.kinds.total * float(losses.loss[-1 if sign > 0 else 0])
        for beta in (*(c / spread for c in _CHERNOFF), *_STEEP):
            best = min(best, (losses.tilted(alpha + sign * beta)[0] - own - _LOG_WRAP) / beta)
        ends.append(math.ceil(best / losses.step) + 1)
    return -ends[0], ends[1]


def _convolve(losses: Losses, alpha: float, most: int) -> _View | None:
    """All the steps, each its number of times, convolved under one tilt; None if that needs too many cells."""
    scale, weight, kinds = losses.tilted(alpha)
    mean = weight @ losses.loss
    variance = np.maximum(weight @ losses.loss**2 - mean**2, 0.0)
    spread = math.sqrt(float(kinds.per_step(len(weight)) @ variance)) + losses.step
    first, last = _window(losses, alpha, scale, spread)
    cells = last - first + 1
    if cells > most:
        return None
    size = min(f << max(0, math.ceil(math.log2(cells / f))) for f in (1, 3, 5))  # lengths of fast transforms
    place = (losses.multiple - losses.multiple[0]) % size
    spectrum: Any = np.ones(size // 2 + 1)  # as far as it does not vanish: the sum is smooth
    spectra: Any = None  # of all the steps, once few frequencies are left

    @lru_cache(maxsize=2)
    def seen(step: int) -> Any:
        return np.fft.rfft(np.bincount(place, weight[step], size)) if spectra is None else spectra[step]

    for left, share, uses in zip(*(column.tolist() for column in kinds), strict=True):
        end = spectrum.size
        if spectra is None and end * place.size <= min(_DIRECT, 20 * size):
            turns = place[:, None] * np.arange(end) % size
            spectra = weight @ np.exp(-2j * math.pi / size * turns)
        factor = seen(left)[:end]
        if share > 0.0:
            factor = factor + share * (seen(left + 1)[:end] - factor)
        large = np.abs(factor) > math.exp(-100.0 / max(uses, 1.0))
        spectrum = spectrum * np.power(factor, uses, out=np.zeros(end, dtype=complex), where=large)
        spectrum = spectrum[: int(np.flatnonzero(np.abs(spectrum) > math.exp(-100.0))[-1]) + 1]
    offset = int(kinds.total) * int(losses.multiple[0])
    out = np.roll(np.fft.irfft(spectrum, size), -((first - offset) % size))[:cells]
    # Rounding: each factor of the spectrum is off by a few ulp, a power multiplies that by the exponent.
    slip = 4.0 * _EPS * (kinds.total + math.log2(size))
    error = slip * float(np.sum(np.abs(spectrum))) * 2.0 / size + 2.0 * kinds.uses.size * math.exp(-100.0)
    return _View(first, np.maximum(out, 0.0), error, alpha, scale)


def _law(losses: Losses, tilts: Sequence[float], most: int, *, up: bool) -> _Law | None:
    """The best bound of any tilt on each mass; None where not all tilts, or somewhat smaller ones, are possible.

    Close to the tilt at which rare huge losses take over the tilted sum spreads widely; a little less will do.
    Rounding, and what may have wrapped around in the transform, is added or taken off.
    """
    views = []
    for alpha in tilts:
        plain = 0.0 if alpha >= 0.0 else -1.0  # the tilt of P, or of Q
        tried = (_convolve(losses, plain + part * (alpha - plain), most) for part in _SMALLER)
        view = next((view for view in tried if view is not None), None)
        if view is None:
            return None
        views.append(view)
    first, last = min(view.first for view in views), max(view.first + view.mass.size for view in views)
    if last - first > 16 * MAX_CELLS:  # P and Q lie too far apart for one table
        return None
    loss = np.asarray(np.arange(first, last) * losses.step, dtype=float)
    lost, log_p = 2.0 * math.exp(_LOG_WRAP), np.full(loss.size, _INF if up else -_INF)
    for view in views:
        mass = view.mass + view.error if up else np.maximum(view.mass - view.error - lost, 0.0)
        bound = np.full(loss.size, math.log(lost) if up else -_INF)  # outside the window nothing else is left
        with np.errstate(divide="ignore"):
            bound[view.first - first : view.first - first + mass.size] = np.log(mass)
        bound += view.scale - view.alpha * loss
        (np.minimum if up else np.maximum)(log_p, bound, out=log_p)
    seen = np.maximum(log_p, log_p - loss) > _LEAST
    if not up:
        return _Law(loss[seen], log_p[seen]) if seen.any() else None
    ends = []
    for end, plain, sign in ((-1, 0.0, 1.0), (0, -1.0, -1.0)):  # P-mass above, and Q-mass below
        bounds = [view.scale - (view.alpha - plain) * loss[end] for view in views if sign * (view.alpha - plain) >= 0.0]
        all_seen = sign * loss[end] > sign * losses.kinds.total * losses.loss[end]
        beyond = -_INF if all_seen else min(bounds, default=_INF) + _LOG_WRAP
        ends.append(float(logaddexp(beyond, _LEAST + math.log(loss.size))))
    return _Law(loss[seen], log_p[seen], (ends[0], ends[1]))


def _nodes(loss: Array, log_p: Array, infinite: float) -> tuple[Array, Array]:
    """Some thousand nodes of an upper bound on a profile: enough for epsilon to six digits at every delta.

    Nodes that are left out cost the square of the gap in ``-log delta`` between those that stay, beside the slope of
    ``log delta`` in ``log epsilon``, which grows as ``-log delta`` itself.
    """
    if loss[0] > 0.0:  # all that is below the window is moved up to its start
        log_p = np.append(logaddexp(log_p[0], 0.0), log_p[1:])
    log_p, log_q = np.append(log_p, infinite), np.append(log_p - loss, -_INF)
    t, log_slope, log_delta = breakpoints(np.append(loss, _INF), log_p, log_q)
    log_delta = np.minimum(log_delta, 0.0)
    gaps = np.floor(2.0 * np.sqrt(1.0 - log_delta) / _THIN)
    corners = log_slope[1:] < log_slope[:-1] - 0.05
    keep = np.append(True, np.diff(gaps) > 0.0) | np.append(corners, True)
    keep[max(2, int(np.count_nonzero(log_delta > max(log_delta[-1] + 1.0, -80.0))) + 1) :] = False
    return t[keep], log_delta[keep]


def _attained(law: _Law, step: float) -> DominatingPair:
    """The pair of a law from below: what was given up joins the outcome of loss nearest 0, where it is harmless."""
    loss, log_p = law.loss, law.log_p
    if loss.size > _OUTCOMES:  # edges are multiples of their width: they must not turn on the last mass that is seen
        low, high = round(float(loss[0]) / step), round(float(loss[-1]) / step)
        width = math.ceil((high - low + 1) / _OUTCOMES)
        edges = np.asarray((np.arange(low - low % width, high + width + 1, width) - 0.5) * step, dtype=float)
        loss, log_p = _moved(loss, log_p, edges, up=False)
    log_q = log_p - loss
    home = int(np.argmin(np.abs(loss)))
    for x in (log_p, log_q):
        rest = -math.expm1(min(float(logsumexp(x)), 0.0))
        x[home] = np.logaddexp(x[home], math.log(rest) if rest > 0.0 else -_INF)
    return DominatingPair.from_masses(log_p, log_q, attained=True)


def _moved(loss: Array, log_p: Array, grid: Array, *, up: bool) -> tuple[Array, Array]:
    """Outcomes moved up to the two losses of a grid beside each, or merged where no loss of the grid is between."""
    loss, log_p = loss.ravel(), log_p.ravel()
    if up:
        grid = distinct(np.concatenate([grid, [np.min(loss), np.max(loss)]]))
        right = np.clip(np.searchsorted(grid, loss), 1, grid.size - 1)
        share = np.clip(np.expm1(grid[right - 1] - loss) / np.expm1(grid[right - 1] - grid[right]), 0.0, 1.0)
        sums = np.full(grid.size, -_INF)
        with np.errstate(divide="ignore"):
            np.logaddexp.at(sums, right, log_p + np.log(share))
            np.logaddexp.at(sums, right - 1, log_p + np.log1p(-share))
        some = sums > -_INF
        return grid[some], sums[some]
    place, both = np.searchsorted(grid, loss), np.full((2, grid.size + 1), -_INF)
    for row, log_mass in zip(both, (log_p, log_p - loss), strict=True):
        np.logaddexp.at(row, place, log_mass)
    log_p, log_q = both[:, np.isfinite(both).all(axis=0)]
    return log_p - log_q, log_p


def _split(losses: Losses, *, up: bool) -> tuple[Losses, Array, Array, int | None, float]:
    """The smaller losses; the jumps and logarithms of their expected numbers, of all steps or of a kind; their shift.

    Upwards they are those of all steps, downwards those of the kind that has the most. Upwards of several kinds (None)
    all the steps' smaller losses S are taken beside j jumps, as if no step had jumped. That dominates: ``S^(T-j)`` is
    at most ``S^T / s^j`` at a profile's argument smaller by ``j log(Q_S / P_S)``, s being the P-mass of S.
    """
    kinds, weight = losses.kinds, np.exp(losses.log_mass)
    uses = kinds.per_step(len(weight))
    beyond = uses[:, None] * np.cumsum(weight[:, ::-1], axis=1)[:, ::-1]
    zero = int(np.flatnonzero(losses.multiple == 0)[0])
    column = max(int(np.count_nonzero(np.sum(beyond, axis=0) > _RARE[up])), zero + 1)
    rows = np.arange(uses.size)
    if not up and column < losses.multiple.size:
        rows = rows[[int(np.argmax(beyond[:, column]))]]
    alike = kinds.uses.size == 1 and kinds.total <= _MANY
    small = losses._replace(log_mass=losses.log_mass.copy())
    small.log_mass[rows, column:] = -_INF
    number, shift = uses[rows] @ weight[rows, column:], 0.0
    if up:
        inside = logsumexp(losses.log_mass[:, :column], axis=1)
        back = logsumexp(losses.log_mass[:, :column] - losses.loss[:column], axis=1)
        number, shift = number / math.exp(float(np.min(inside))), max(float(np.max(back - inside)), 0.0) + 1e-15
    with np.errstate(divide="ignore"):
        return small, losses.loss[column:], np.log(number), int(rows[0]) if alike or not up else None, shift


def _sums(loss: Array, log_number: Array, steps: float, grid: Array, *, up: bool) -> list[tuple[Array, Array]]:
    """Sums of one jump, of two, ..., of so many steps: their losses, and logarithms of their expected numbers."""
    log_total, rest = float(logsumexp(log_number)), math.log(_REST[up])
    sums = [_moved(loss, log_number, grid, up=up)]
    base = power = _moved(loss, log_number, grid[::3], up=up)  # several at once are rarer still
    for j in range(2, int(min(steps, 100.0)) + 1):
        if j * log_total - math.lgamma(j + 1) < rest:
            break
        loss, log_number = (np.add.outer(one, other) for one, other in zip(power, base, strict=True))
        power = _moved(loss, log_number + math.log((1.0 - (j - 1.0) / steps) / j), grid[::3], up=up)
        sums.append(power)
    return sums


def _with_jumps(losses: Losses, scale: float, *, up: bool, symmetric: bool) -> _Law | None:
    """All the ways in which none or some of the steps have a rare large loss; None where that is too large."""
    small, jumps, log_number, kind, shift = _split(losses, up=up)
    tilts, _ = _tilts(small, scale, up=up, symmetric=symmetric)
    tilts = [0.0, *tilts] if up else tilts
    law = rest = _law(small, tilts, _ROOM, up=up)
    if law is None or not np.isfinite(log_number).any():
        return law
    unit = 3.0 * scale / _DENSE
    below, top = max(-float(law.loss[0]), 0.0), max(float(law.loss[-1]), 0.0) + 6.0 * float(jumps[-1])
    grid = np.asarray(sparse(math.ceil(below / unit), math.ceil(top / unit), _DENSE) * unit, dtype=float)
    sums = _sums(jumps, log_number, _INF if kind is None else float(small.kinds.uses[kind]), grid, up=up)
    shift *= len(sums)
    if up:
        loss, log_number = (np.concatenate(x) for x in zip(*sums, strict=True))
        sums = [_moved(loss, log_number, grid, up=True)]
    parts, ends = [law[:2]], np.logaddexp(law.ends, math.log(_REST[True]))
    for j, (jump, log_number) in enumerate(sums, start=1):
        if kind is not None:
            uses = small.kinds.uses - j * (np.arange(small.kinds.uses.size) == kind)
            rest = _law(small._replace(kinds=small.kinds._replace(uses=uses)), tilts, _ROOM, up=up)
        if rest is None:
            return None
        loss, log_p = _moved(rest.loss, rest.log_p, grid[::4], up=up)
        seen, some = np.maximum(log_p, log_p - loss) > 0.75 * _LEAST, log_number > 0.75 * _LEAST
        together = np.add.outer(jump[some], loss[seen] + shift), np.add.outer(log_number[some], log_p[seen])
        if together[0].size:
            parts.append(_moved(*together, grid, up=up))
        ends = np.logaddexp(ends, rest.ends)
    loss, log_p = (np.concatenate(x) for x in zip(*parts, strict=True))
    if not up:
        return _Law(*_moved(loss, log_p - _SUMS, grid, up=False))
    order = np.argsort(loss, kind="stable")
    return _Law(loss[order], log_p[order], (float(ends[0]), float(ends[1])))
