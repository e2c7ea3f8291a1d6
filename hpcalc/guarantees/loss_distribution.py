"""Privacy-loss distributions: the exact price of compositions that have no closed form.

One use of a mechanism is a pair of laws (P, Q); its privacy loss is ``L = log dP/dQ`` under P. Losses of independent
uses add, so a composition is a convolution of losses on a grid (:mod:`hpcalc.guarantees.loss_grid`).

The convolution is one fast Fourier transform per *tilt*: masses are first multiplied by ``exp(alpha * loss)`` and
divided again afterwards. That moves the rounding error of the transform, which is uniform, out of the way: with the
tilts used here the profile is right to many digits from 1 down to 1e-30, where a plain transform is noise below
1e-11. What error remains is bounded and added.

No tilt serves where a single step may, rarely, have a loss larger than all others together (a small sampling rate):
then steps with such a jump are counted apart. With S the law of the smaller losses and B that of the jumps, ``T`` steps
are the sum over j of ``binomial(T, j)`` times S convolved ``T - j`` and B convolved j times; jumps are so rare that a
few j suffice, and sums of positive terms have no rounding error to speak of.

References
----------
.. [1] A. Koskela, J. Jälkö, A. Honkela, "Computing tight differential privacy guarantees using FFT", AISTATS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hpcalc.guarantees.loss_grid import Losses, regrid, sparse
from hpcalc.logspace import Array, Indices, log1mexp, log_expm1, logaddexp, logsubexp, logsumexp

__all__ = ["LossTable", "finite_pair", "loss_table"]

_INF = math.inf
MAX_CELLS = 1 << 20  # of the transform: about a tenth of a second of work
_ROOM = 1 << 19  # as many where jumps are counted apart, which leaves room for coarser grids
_LOG_WRAP = -38.0  # tilted mass that may wrap around in the transform; its bound is added
_CHERNOFF = (0.5, 2.0, 4.0, 8.0, 12.0)  # exponents tried, in standard deviations
_STEEP = (1.0, 4.0, 16.0)  # and as such: a rare huge loss is many standard deviations
_EXPONENTS = (3.0, 20.0, 70.0)  # the tilts are accurate around delta = e^-3, e^-20, e^-70
_SMALLER = (1.0, 0.9, 0.8, 0.7)  # parts of a tilt that are tried in turn
_COARSER = (1.0, 2.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)  # multiples of the grid step tried in turn
_DIRECT = 1 << 20  # terms of the Fourier sums of one step that are summed without a fast transform
_RARE = 1e-5  # probability that any step has a jump, where they are counted apart
_REST = 1e-37  # expected number of sums of jumps that are left out, and the least mass that is followed
_DENSE_JUMP, _DENSE_NODES = 1000, 400  # grids of such a part of the loss, for one jump and for points of the table
_JUMPS = 900  # about so many grid points for sums of jumps
_ONE_OF_MANY = 1000.0  # so many steps of one kind differ little from one less
_THIN = 0.01  # gap in -log delta, where that is small, between the lines of a trade-off curve
_OUTCOMES = 4000  # about so many of a finite pair; neighbours are merged
_SUMS = 1e-9  # covers the rounding of a logarithm of a sum of a million terms, one by one
_EPS = float(np.finfo(float).eps)


class _Tilted(NamedTuple):
    """Composition seen through one tilt: P-mass at index ``first + i`` is ``mass * exp(scale - alpha * loss)``."""

    first: int
    mass: Array
    error: float  # bound on the error of each tilted mass
    errors: float  # and on the root of the sum of their squares
    lost: float  # bound on the tilted mass outside the window
    alpha: float
    scale: float


def _choose_alpha(losses: Losses, scale: float, exponent: float) -> tuple[float, bool]:
    """Largest tilt (nearly) whose Chernoff exponent ``alpha K'(alpha) - K(alpha)`` stays below the wanted one.

    The exponent may jump: past a certain tilt a single step with a rare huge loss outweighs all others. The second
    answer says that it does not.
    """
    low, high = 0.0, 2.0 * math.sqrt(2.0 * exponent) / scale
    reached = 0.0
    for _ in range(12):
        mid = 0.5 * (low + high)
        k, weight, kinds = losses.tilted(mid)
        found = mid * float(kinds.per_step(len(weight)) @ (weight @ losses.loss)) - k
        if found > exponent * 1.05:
            high = mid
        else:
            low, reached = mid, found
        if abs(found / exponent - 1.0) < 0.05:
            break
    return low, reached > 0.6 * exponent or high > 1.9 * math.sqrt(2.0 * exponent) / scale


def _window(losses: Losses, alpha: float, own: float, spread: float) -> tuple[int, int]:
    """First and last index of the tilted sum but for ``e^_LOG_WRAP`` on either side, by Chernoff bounds."""
    ends = []
    for sign in (-1.0, 1.0):
        best = sign * losses.kinds.total * float(losses.loss[-1 if sign > 0 else 0])
        for beta in (*(c / spread for c in _CHERNOFF), *_STEEP):
            best = min(best, (losses.tilted(alpha + sign * beta)[0] - own - _LOG_WRAP) / beta)
        ends.append(math.ceil(best / losses.step) + 1)
    return -ends[0], ends[1]


def _smooth_size(n: int) -> int:
    """Smallest 2^k, 3*2^k or 5*2^k that is at least n (fast transform lengths)."""
    return min(f << max(0, math.ceil(math.log2(max(n, 1) / f))) for f in (1, 3, 5))


def _convolve(losses: Losses, alpha: float, most: int) -> _Tilted | None:
    """All the steps, each its number of times, convolved under one tilt; None if that needs too many cells."""
    scale, weight, kinds = losses.tilted(alpha)
    mean = weight @ losses.loss
    variance = np.maximum(weight @ losses.loss**2 - mean**2, 0.0)
    spread = math.sqrt(float(kinds.per_step(len(weight)) @ variance)) + losses.step
    first, last = _window(losses, alpha, scale, spread)
    if last - first + 1 > most:
        return None
    size = _smooth_size(last - first + 1)
    place = (losses.index - losses.index[0]) % size

    spectra: Any = None  # of all the steps, once few frequencies are left

    @lru_cache(maxsize=2)
    def seen(step: int) -> Any:
        return np.fft.rfft(np.bincount(place, weight[step], size)) if spectra is None else spectra[step]

    factors: dict[int, Any] = {}  # of equally many uses
    end = size  # most of the product vanishes: the sum is smooth
    for left, share, uses in zip(kinds.left.tolist(), kinds.share.tolist(), kinds.count.tolist(), strict=True):
        count = int(uses)
        if spectra is None and end * place.size <= min(_DIRECT, 20 * size):
            turns = place[:, None] * np.arange(end) % size
            spectra = weight @ np.exp(-2j * math.pi / size * turns)
        one = seen(left)[:end]
        factor = one if share == 0.0 else one + share * (seen(left + 1)[:end] - one)
        factors[count] = factor * factors[count][:end] if count in factors else factor.copy()
        factors[count][np.abs(factors[count]) <= math.exp(-100.0 / max(count, 1))] = 0.0
        end = int(np.flatnonzero(factors[count])[-1]) + 1
    spectrum: Any = 1.0
    for count, factor in factors.items():
        some = factor[:end] != 0.0
        factor[:end][some] **= count
        spectrum = factor[:end] * spectrum
    offset = int(kinds.total) * int(losses.index[0])
    out = np.roll(np.fft.irfft(spectrum, size), -((first - offset) % size))[: last - first + 1]
    # Rounding: each factor of the spectrum is off by a few ulp, a power multiplies that by the exponent.
    slip = 4.0 * _EPS * (kinds.total + math.log2(size))
    cut = kinds.count.size * math.exp(-100.0)
    error = slip * float(np.sum(np.abs(spectrum))) * 2.0 / size + cut
    errors = slip * math.sqrt(float(np.sum(np.abs(spectrum) ** 2)) * 2.0 / size) + cut * math.sqrt(size)
    lost = 2.0 * math.exp(_LOG_WRAP)
    return _Tilted(first, np.maximum(out, 0.0), error, errors, lost, alpha, scale)


def _views(losses: Losses, tilts: Sequence[float], most: int, smaller: Sequence[float] = _SMALLER) -> list[_Tilted]:
    """Convolutions under the given tilts, or somewhat smaller ones, as far as they fit.

    Close to the tilt at which rare huge losses take over the tilted sum spreads widely; a little less will do.
    """
    tried = ((_convolve(losses, shrink * alpha, most) for shrink in smaller) for alpha in tilts)
    first = (next((view for view in views if view is not None), None) for views in tried)
    return [view for view in first if view is not None]


def _tilt_profile(view: _Tilted, step: float, first: int, length: int) -> Array:
    """Upper bound on the log profile at the indices ``first, first + 1, ...`` from one tilt."""
    start = max(0, first + 1 - view.first)
    index = view.first + np.arange(start, view.mass.size)
    # the profile falls from index j-1 to j by (e^(j step) - e^((j-1) step)) Q[L >= j step]: all terms positive
    with np.errstate(divide="ignore"):
        log_q = np.log(view.mass[start:]) + view.scale - (view.alpha + 1.0) * step * index
    falls = np.logaddexp.accumulate(log_q[::-1]) + float(log1mexp(-step)) + step * index[::-1]
    out = np.full(length, -_INF)
    out[index - 1 - first] = np.logaddexp.accumulate(falls)[::-1] + _SUMS
    out[: max(0, min(length, view.first - 1 - first))] = _INF  # below the window this tilt says nothing
    # the errors of the masses at l > t weigh at most e^(scale - alpha l): by Cauchy and Schwarz
    cells = float(view.mass.size)
    if view.alpha > 0.0:
        cells = min(cells, 1.0 / (view.alpha * step) + 1.0)
    slip = math.log(min(view.error * cells, view.errors * math.sqrt(cells)) + view.lost) + view.scale
    return logaddexp(out, np.asarray(slip - view.alpha * step * (first + np.arange(length)), dtype=float))


@dataclass(frozen=True, eq=False)
class LossTable:
    """Upper bounds on the log profile of one direction at increasing ``t``, the first of them 0.

    Between them the chord in ``e^t`` is used, which is valid because a profile is convex in ``e^t``.
    """

    t: Array
    log_delta: Array

    def log_profile(self, t: Array) -> Array:
        """Log profile for ``t >= 0``; beyond the end the last value."""
        left = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, self.t.size - 2)
        part = np.clip(t - self.t[left], 0.0, self.t[left + 1] - self.t[left])
        log_w = np.minimum(log_expm1(part) - log_expm1(self.t[left + 1] - self.t[left]), 0.0)
        return logaddexp(self.log_delta[left] + log1mexp(log_w), self.log_delta[left + 1] + log_w)

    def lines(self) -> tuple[Array, Array]:
        """A few thousand points ``(t, log delta)``: enough for epsilon to five digits at every delta.

        Lines that are left out cost the square of the gap in ``-log delta`` between those that stay, beside the slope
        of ``log delta`` in ``log epsilon``, which grows as ``-log delta`` itself.
        """
        place = np.floor(2.0 * np.sqrt(1.0 - self.log_delta) / _THIN)
        keep = np.concatenate([[True], np.diff(place) > 0.0])
        keep[-1] = True
        return self.t[keep], self.log_delta[keep]


def loss_table(losses_at: Callable[[float], Losses], step: float, scale: float) -> LossTable | None:
    """Profile of a composition by convolution; None if that is too large.

    ``losses_at`` gives the steps' losses, moved upwards to multiples of a given grid step: ``step`` or, where that is
    too fine, coarser ones; ``scale`` is the standard deviation of the total loss, roughly.
    """
    for times in _COARSER:
        losses = losses_at(times * step).trimmed()
        tilts, reached = _tilts(losses, scale, _EXPONENTS)
        if reached:
            views = _views(losses, tilts, min(MAX_CELLS, math.ceil(100.0 * scale / losses.step)))
            if len(views) == len(tilts):
                return _finished(0, _best(views, losses.step, 0), losses)
        small, jumps = _split(losses)
        tilts, _ = _tilts(small, scale, _EXPONENTS)
        tilts = [0.0, *tilts]  # arguments below 0 count too
        views = fewer = _views(small, tilts, _ROOM)
        if small.kinds.count.size == 1 and small.kinds.total <= _ONE_OF_MANY:
            fewer = _views(small.fewer(), tilts, _ROOM)
        if len(views) == len(fewer) == len(tilts):
            return _with_jumps(small, jumps, views, fewer)
    return None


def _tilts(losses: Losses, scale: float, exponents: Sequence[float]) -> tuple[list[float], bool]:
    """Tilts for the exponents, and whether all are reached."""
    found = [_choose_alpha(losses, scale, exponent) for exponent in exponents]
    return [alpha for alpha, _ in found], all(reached for _, reached in found)


def _best(views: Sequence[_Tilted], step: float, first: int) -> Array:
    length = max(2, *(view.first + view.mass.size - first for view in views))
    profiles = [_tilt_profile(view, step, first, length) for view in views]
    return np.asarray(np.min(profiles, axis=0), dtype=float)


def _finished(nodes: Indices | int, log_delta: Array, losses: Losses) -> LossTable:
    """Infinite losses added; a profile never increases: an upper bound at a smaller t is one at every larger t."""
    t = np.asarray((np.arange(log_delta.size) if isinstance(nodes, int) else nodes) * losses.step, dtype=float)
    log_delta = logaddexp(log_delta, float(log1mexp(losses.log_finite)))
    d = np.minimum.accumulate(np.minimum(log_delta, 0.0))
    end = max(2, int(np.count_nonzero(d > d[-1] + 1.0)) + 1, int(np.count_nonzero(d > -80.0)) + 1)
    return LossTable(t[:end], d[:end])


@dataclass(frozen=True)
class _Jumps:
    """Sums of one or more rare large losses: their expected number ``mass`` at ``index``."""

    index: Indices
    mass: Array
    shift: float  # to be taken off the argument of the smaller losses' profile


def _split(losses: Losses) -> tuple[Losses, _Jumps]:
    """The smaller losses, and all the ways in which one or more steps have a larger one.

    Convolving with fewer than all the steps' smaller losses costs less: ``S^(T-j)`` is at most ``S^T / s^j`` at a
    profile's argument smaller by ``j log(Q_S / P_S)``, s being the P-mass of S.
    """
    weight = np.exp(losses.log_mass)
    beyond = np.cumsum(weight[:, ::-1], axis=1)[:, ::-1]
    some = losses.uses @ beyond
    column, last = int(np.count_nonzero(some > _RARE)), losses.index.size - 1
    column = last if column >= last else min(column, last - 2)  # a grid of jumps has two points at least
    small = replace(losses, index=losses.index[: column + 1], log_mass=losses.log_mass[:, : column + 1])
    index = losses.index[column + 1 :]
    if index.size == 0:
        return small, _Jumps(index, np.empty(0), 0.0)
    inside = np.sum(weight[:, : column + 1], axis=1)
    one = losses.uses @ weight[:, column + 1 :] / float(np.min(inside))
    back = np.sum(weight[:, : column + 1] * np.exp(-small.loss), axis=1)
    shift = max(float(np.max(np.log(back / inside))), 0.0) + 1e-15
    total, uses = float(np.sum(one)), losses.kinds.total
    alike = losses.kinds.count.size == 1  # then binomial(T, j) / T^j is known, else it is at most 1 / j!
    terms = 1
    while terms < uses and math.exp((terms + 1) * math.log(total) - math.lgamma(terms + 2)) > _REST:
        terms += 1
    dense = math.ceil(_JUMPS / math.log(2.0 + index[-1] * terms / index[0]))
    fine, coarse = (sparse(0, int(index[-1]) * j, part) for j, part in ((1, _DENSE_JUMP), (terms, dense)))
    fine, coarse = (np.append(index[:1], grid[grid > index[0]]) for grid in (fine, coarse))
    first, base = regrid(index, one, fine, losses.step), regrid(index, one, coarse, losses.step)
    power, mass, factor = base, np.zeros(coarse.size), 1.0
    for j in range(2, terms + 1):
        factor *= (1.0 - (j - 1.0) / uses if alike else 1.0) / j
        left, right = np.flatnonzero(power > 1e-44), np.flatnonzero(base > 1e-44)
        sums = (coarse[left][:, None] + coarse[right][None, :]).ravel()
        power = regrid(sums, (power[left][:, None] * base[right][None, :]).ravel(), coarse, losses.step)
        mass += factor * power
    index, mass = np.concatenate([fine, coarse]), np.concatenate([first, mass])
    return small, _Jumps(index[mass > 0.0], mass[mass > 0.0], terms * shift)


def _with_jumps(small: Losses, jumps: _Jumps, views: Sequence[_Tilted], fewer: Sequence[_Tilted]) -> LossTable:
    """Profile at chosen points: of the smaller losses alone, and after each sum of jumps."""
    step = small.step
    own, first = _best(views, step, 0), fewer[0].first - 1
    plain = np.exp(np.minimum.accumulate(np.minimum(_best(fewer, step, first), 0.0)))
    nodes = sparse(0, own.size - 1 + int(np.max(jumps.index, initial=0)), _DENSE_NODES)
    order = np.argsort(jumps.index, kind="stable")
    whole = math.floor(jumps.shift / step)
    index, mass = jumps.index[order] + whole + first, jumps.mass[order]
    # a profile is convex in e^t: between two points it is below their chord
    part = math.expm1(whole * step - jumps.shift) / math.expm1(-step)
    plain[1:] = part * plain[:-1] + (1.0 - part) * plain[1:]
    plain[0] = min(plain[0] + jumps.shift, 1.0)
    # after a jump beyond the table's range the profile is 1 - (1 - delta(t0)) e^(t-t0), linear in e^t
    keep = 1.0 - min(float(plain[0]), 1.0 - _EPS)
    beyond = _suffix_sums(mass), _suffix_sums(mass * np.exp(-index * step))
    before = np.append(0.0, np.cumsum(mass))
    low, high = np.searchsorted(index, nodes - plain.size + 1), np.searchsorted(index, nodes, side="right")
    with np.errstate(divide="ignore"):
        less = keep * np.exp(np.minimum(nodes * step + np.log(beyond[1][high]), 0.0))
    total = before[low] * plain[-1] + np.maximum(beyond[0][high] - less, 0.0)
    for i, (k, a, b) in enumerate(zip(nodes.tolist(), low.tolist(), high.tolist(), strict=True)):
        total[i] += np.sum(plain[k - index[a:b]] * mass[a:b])
    with np.errstate(divide="ignore"):
        log_delta = logaddexp(own[np.minimum(nodes, own.size - 1)], np.asarray(np.log(total + _REST)))
    return _finished(nodes, log_delta, small)


def _suffix_sums(x: Array) -> Array:
    return np.append(np.cumsum(x[::-1])[::-1], 0.0)


def finite_pair(losses: Losses, scale: float, most: int) -> tuple[Array, Array] | None:
    """Log-masses of a pair of laws to which a composition of losses, moved downwards, can be post-processed.

    By increasing loss; None where no transform of at most so many cells is enough. Where a tilt is out of reach jumps
    are counted apart too, and of the two pairs that with the larger Rényi divergence is taken.
    """
    (right,), _ = _tilts(losses, scale, (12.0,))
    # tilt -1 turns P into Q, so the tilt -1-right looks after the left tail as the other does after the right one
    loss, log_p, enough = _seen(losses, (0.0, right, -1.0, -1.0 - right), most)
    found = [_merged(loss, log_p, _blocks(loss, losses.step, _OUTCOMES))] if loss.size else []
    found += [] if enough else _few_jumps(losses, scale, max(most, _ROOM))
    if not found:
        return None
    loss, log_p = max(found, key=lambda pair: float(logsumexp(pair[1] + right * pair[0])))
    log_q = log_p - loss
    # What was given up joins the outcome whose loss is nearest 0, where it changes nothing that matters.
    home = int(np.argmin(np.abs(loss)))
    for x in (log_p, log_q):
        rest = -math.expm1(min(float(logsumexp(x)), 0.0))
        x[home] = np.logaddexp(x[home], math.log(rest) if rest > 0.0 else -_INF)
    return log_p, log_q


def _seen(losses: Losses, tilts: Sequence[float], most: int) -> tuple[Array, Array, bool]:
    """Losses of a composition, log-masses that are surely there, and whether all tilts, nearly, were in reach."""
    views = _views(losses, tilts, most, (*_SMALLER, 0.5, 0.25))
    first = min((view.first for view in views), default=0)
    length = max((view.first + view.mass.size for view in views), default=0) - first
    loss = np.asarray((first + np.arange(length)) * losses.step, dtype=float)
    best, noise = np.full(length, -_INF), np.full(length, _INF)
    for view in views:
        at = slice(view.first - first, view.first - first + view.mass.size)
        factor = view.scale - view.alpha * loss[at]
        log_noise = math.log(view.error + view.lost) + factor
        better = log_noise < noise[at]
        with np.errstate(divide="ignore"):
            value = np.log(view.mass) + factor
        value = logsubexp(np.maximum(value, log_noise), log_noise)  # what the transform may have made up is left out
        best[at] = np.where(better, value, best[at])
        noise[at] = np.where(better, log_noise, noise[at])
    present = np.maximum(best, best - loss) > -80.0
    return loss[present], best[present], len(views) == len(tilts) and views[1].alpha > 0.6 * tilts[1]


def _blocks(loss: Array, step: float, most: int) -> Array:
    """Edges of about so many blocks, at multiples of their width: they must not turn on the last mass that is seen."""
    first, last = round(float(loss[0]) / step), round(float(loss[-1]) / step)
    width = max(1, math.ceil((last - first + 1) / most))
    return np.asarray((np.arange(first - first % width, last + width + 1, width) - 0.5) * step, dtype=float)


def _merged(loss: Array, log_p: Array, edges: Array) -> tuple[Array, Array]:
    """Outcomes merged where no edge is between them: losses and log-masses."""
    place, sums = np.searchsorted(edges, loss), np.full((2, edges.size + 1), -_INF)
    for row, log_mass in zip(sums, (log_p, log_p - loss), strict=True):
        np.logaddexp.at(row, place, log_mass)
    log_p, log_q = sums[:, np.isfinite(sums).all(axis=0)]
    return log_p - log_q, log_p


def _few_jumps(losses: Losses, scale: float, most: int) -> list[tuple[Array, Array]]:
    """Outcomes with at most six jumps, of one step in all its uses; none where that is too large or most are of others.

    No more of them happen but once in 1e24. ``binomial(T, j)`` times S convolved ``T - j`` and B convolved j times are
    sums over pairs of an outcome of each, and merging those is post-processing whatever their losses.
    """
    uses, weight = losses.kinds.count, np.exp(losses.log_mass)  # below, every kind is a step of its own
    beyond = uses[:, None] * np.cumsum(weight[:, ::-1], axis=1)[:, ::-1]
    out = np.sum(beyond, axis=0) < 1e-9
    tail = beyond[:, int(np.argmax(out))]
    kind = int(np.argmax(tail))
    if not out[-1] or not 0.5 * np.sum(tail) < tail[kind]:
        return []
    column = max(int(np.count_nonzero(beyond[kind] > 1e-3)), int(np.flatnonzero(losses.index == 0)[0]) + 1)
    small, jumps = replace(losses, log_mass=losses.log_mass.copy()), losses.loss[column:]
    small.log_mass[kind, column:] = -_INF
    (right,), _ = _tilts(small, scale, (12.0,))
    loss, log_p, _ = _seen(small, (0.0, right, -1.0, -1.0 - right), most)
    if loss.size == 0:
        return []
    near, far = _blocks(loss, losses.step, 3 * _JUMPS), np.geomspace(jumps[0], 6.0 * jumps[-1], _JUMPS)
    edges = np.append(near, far[far > near[-1]])
    jump = _merged(jumps, losses.log_mass[kind, column:], far)
    parts, power = [(loss, log_p)], (np.zeros(1), np.zeros(1))
    for j in range(1, min(int(uses[kind]), 6) + 1):
        log_ways = math.log((uses[kind] - j + 1.0) / j)
        power = _merged(np.add.outer(power[0], jump[0]), np.add.outer(power[1], jump[1] + log_ways), far)
        loss, log_p, _ = _seen(small.fewer(kind, j), (0.0, right), most)
        rest = _merged(loss, log_p, near[::6])  # coarse: so many are enough of what is added to jumps
        parts.append(_merged(np.add.outer(power[0], rest[0]), np.add.outer(power[1], rest[1]), edges))
    loss, log_p = (np.concatenate(x) for x in zip(*parts, strict=True))
    return [_merged(loss, log_p - _SUMS, edges)]
