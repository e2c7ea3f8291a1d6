"""Privacy-loss distributions: the exact price of compositions that have no closed form.

One use of a mechanism is a pair of laws (P, Q); its privacy loss is ``L = log dP/dQ`` under P. Losses of independent
uses add, so a composition is a convolution. Losses are put on a grid, multiples of one step that lie further
apart where the loss is large, in two ways:

* **upwards** ("connect the dots"): the P- and Q-mass between two neighbouring grid losses are both kept by moving them
  to the two ends; the result dominates the mechanism, so its profile is an upper bound;
* **downwards**: outcomes are merged until the merged outcome has exactly a grid loss; merging is post-processing, so
  the result is a mechanism that a neighbour-level attacker could really face (used for lower bounds).

The convolution is one fast Fourier transform per *tilt*: masses are first multiplied by ``exp(alpha * loss)`` and
divided again afterwards. That moves the rounding error of the transform, which is uniform, out of the way: with the
three tilts used here the profile is right to many digits from 1 down to 1e-30, where a plain transform is noise below
1e-11. What error remains is bounded and added.

References
----------
.. [1] A. Koskela, J. Jälkö, A. Honkela, "Computing tight differential privacy guarantees using FFT", AISTATS 2020.
.. [2] V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, "Connect the dots: tighter discrete approximations
   of privacy loss distributions", PoPETs 2022.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from hpcalc.guarantees import CurveBase, Gaussian, Guarantee, Laplace, PureDP, SumOfParts
from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.logspace import (
    Array,
    Indices,
    Prob,
    distinct,
    log1mexp,
    log_expm1,
    log_ndtr,
    logaddexp,
    logsubexp,
    logsumexp,
    round_up,
    softplus,
)

__all__ = [
    "Convolution",
    "ConvolvedBase",
    "LossTable",
    "Tails",
    "compose_parts",
    "loss_pair",
    "loss_table",
    "plan_step",
]

_INF = math.inf
_MAX_CELLS = 1 << 20  # of the transform: about a tenth of a second of work
_DENSE = 1000  # grid points 0, 1, ..., 1000 steps are all used; further out they lie a thousandth of the loss apart
_LOG_TAIL = -90.0  # mass below e^-90 counts as an infinite loss
_LOG_WRAP = -38.0  # tilted mass that may wrap around in the transform; its bound is added
_CHERNOFF = tuple(0.125 * math.sqrt(2.0) ** k for k in range(14))  # exponents tried, in standard deviations
_STEEP = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # and as such: a rare huge loss is many standard deviations
# Where losses are rare and huge beside their spread (a small sampling rate), multiples of the planned step are tried in
# turn, with room for so many cells.
_COARSER, _ROOM = (4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0), 1 << 18
_EXPONENTS = (3.0, 20.0, 70.0)  # the tilts are accurate around delta = e^-3, e^-20, e^-70
_THIN = 0.01  # gap in -log delta, where that is small, between the lines of a trade-off curve
_EPS = float(np.finfo(float).eps)
_SAME = 1e-13  # relative difference below which two likelihood ratios are the same number


class Tails(NamedTuple):
    """Log-probabilities of ``L > l`` and ``L <= l`` under P and under Q, at an array of losses ``l``."""

    p_above: Array
    p_below: Array
    q_above: Array
    q_below: Array

    def reversed(self) -> Tails:
        """The same mechanism with P and Q exchanged: the loss changes its sign, so does the side of each tail."""
        return Tails(self.q_below, self.q_above, self.p_below, self.p_above)


TailFunction = Callable[[Array], Tails]


@runtime_checkable
class HasTails(Protocol):
    """A base that knows the law of its own privacy loss."""

    def loss_tails(self, loss: Array) -> Tails:
        """Tails of the loss in the direction of the larger loss ("remove")."""

    @property
    def symmetric_loss(self) -> bool:
        """Whether exchanging the two inputs leaves the law of the loss unchanged."""


def _gaussian_tails(shift: float, loss: Array) -> Tails:
    # L is N(s^2/2, s^2) under P and N(-s^2/2, s^2) under Q.
    x, half = loss / shift, 0.5 * shift
    return Tails(log_ndtr(half - x), log_ndtr(x - half), log_ndtr(-half - x), log_ndtr(x + half))


def _steps(loss: Array, at: float, inside: Callable[[Array], Array]) -> Array:
    """Log-probability of ``L > loss`` for a loss within [-at, at]."""
    return np.asarray(np.where(loss < -at, 0.0, np.where(loss >= at, -_INF, inside(loss))), dtype=float)


def _laplace_tails(c: float, loss: Array) -> Tails:
    # P = Laplace at 0, Q = Laplace at 1 (scale 1/c): L = c(1 - 2x) on [0, 1], clipped to [-c, c] outside.
    place = np.clip(loss, -c, c)
    log_half = -math.log(2.0)
    p_below = np.where(loss < -c, -_INF, np.where(loss >= c, 0.0, log_half - 0.5 * (c - place)))
    q_above = _steps(loss, c, lambda _: log_half - 0.5 * (c + place))
    return Tails(log1mexp(p_below), p_below, q_above, log1mexp(q_above))


def _response_tails(epsilon: float, loss: Array) -> Tails:
    # Randomized response: two outcomes of losses epsilon and -epsilon; it dominates every epsilon-DP mechanism.
    more, less = -float(softplus(-epsilon)), -float(softplus(epsilon))
    p_above = _steps(loss, epsilon, lambda x: np.full(x.shape, more))
    q_above = _steps(loss, epsilon, lambda x: np.full(x.shape, less))
    return Tails(p_above, log1mexp(p_above), q_above, log1mexp(q_above))


def _tail_function(part: Guarantee) -> tuple[TailFunction, bool] | None:
    """Law of the loss of one part and whether it is symmetric; None where it is not known or unbounded."""
    if isinstance(part, Gaussian):
        return (partial(_gaussian_tails, part.shift), True) if 0.0 < part.shift < 1e6 else None
    if isinstance(part, (Laplace, PureDP)):
        epsilon = part.pure_epsilon
        law = _laplace_tails if isinstance(part, Laplace) else _response_tails
        return (partial(law, epsilon), True) if 0.0 < epsilon < 1e6 else None
    if isinstance(part, HasTails):
        return part.loss_tails, part.symmetric_loss
    return None


@dataclass(frozen=True)
class _Source:
    """One part: tails of its loss, how often it is used, where (plus and minus) the loss has jumps."""

    tails: TailFunction
    count: int
    jump: float = 0.0


@dataclass(frozen=True)
class _Grid:
    """Masses (log, under P) at the losses ``loss[i] = index[i] * step``, and what lies beyond."""

    index: Indices
    loss: Array
    log_mass: Array
    infinite: float
    count: int


def _edge(tails: TailFunction, log_tail: float, sign: float) -> float:
    """A loss beyond which (in the direction of ``sign``) P has at most ``e^log_tail``, nearly the smallest."""
    x = np.concatenate([[0.0], np.geomspace(1e-9, 1e9, 64)])
    for _ in range(2):
        t = tails(sign * x)
        outside = np.flatnonzero((t.p_above if sign > 0 else t.p_below) <= log_tail)
        if outside.size == 0:
            return _INF
        first = max(int(outside[0]), 1)
        x = np.linspace(x[first - 1], x[first], 64)
    return float(x[-1])


def _range(source: _Source, log_tail: float) -> tuple[float, float]:
    """How far the loss goes below and above 0 but for ``e^log_tail`` in all uses together."""
    log_tail -= math.log(source.count)
    return _edge(source.tails, log_tail, -1.0), _edge(source.tails, log_tail, 1.0)


def _indices(source: _Source, step: float, log_tail: float) -> Indices:
    """Which multiples of the step make the grid of one source.

    A cell of width w adds at most ``w^2 / 4`` to the variance of a loss in it: a thousandth of the loss is as good far
    from 0 as one step is near it.
    """
    bottom, top = (math.ceil(x / step) for x in _range(source, log_tail))
    last = max(bottom, top, _DENSE + 1)
    far = np.ceil(_DENSE * np.exp(np.arange(0.0, math.log(last / _DENSE), 1.0 / _DENSE)))
    jump = math.floor(source.jump / step)
    ends = np.array([bottom, top, jump, jump + 1])
    out = distinct(np.concatenate([np.arange(_DENSE), far, ends]).astype(np.intp))
    return np.concatenate([-out[(out > 0) & (out <= bottom)][::-1], out[out <= top]])


def _cell_masses(tails: TailFunction, loss: Array) -> tuple[Array, Array]:
    """Log of the P- and Q-mass of ``loss[i] < L <= loss[i+1]``, from whichever tail loses fewer digits."""
    t = tails(loss)

    def between(above: Array, below: Array) -> Array:
        right = above[:-1] < below[1:]
        up = logsubexp(above[:-1], above[1:])
        return np.asarray(np.where(right, up, logsubexp(below[1:], below[:-1])), dtype=float)

    return between(t.p_above, t.p_below), between(t.q_above, t.q_below)


def _upwards(source: _Source, step: float) -> _Grid:
    """A grid of losses that dominates the mechanism (reference [2], Algorithm 1, written with cell masses)."""
    index = _indices(source, step, _LOG_TAIL)
    loss = np.asarray(index * step, dtype=float)
    log_p, log_q = _cell_masses(source.tails, loss)
    with np.errstate(invalid="ignore"):
        # a fraction w of the cell's P-mass goes to its right end so that the Q-mass is kept:
        # (1-w) e^-l + w e^-(l+width) = Q/P
        ratio = np.where(np.isneginf(log_p), 0.0, log_q - log_p + loss[:-1])
    share = np.clip(np.expm1(np.minimum(ratio, 0.0)) / np.expm1(-np.diff(loss)), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        left, right = np.log1p(-share) + log_p, np.log(share) + log_p
    low = np.array([-_INF])
    log_mass = logaddexp(np.concatenate([left, low]), np.concatenate([low, right]))
    ends = source.tails(loss[[0, -1]])
    log_mass[0] = logaddexp(log_mass[0], ends.p_below[0])  # smaller losses are moved up to the first
    return _Grid(index, loss, log_mass, float(np.exp(ends.p_above[1])), source.count)


def _downwards(source: _Source, step: float) -> _Grid:
    """A grid of losses that is a post-processing of the mechanism (a little mass may be left out)."""
    index = _indices(source, step, -42.0)
    index = index[np.abs(index) * step < 700.0]  # likelihood ratios are plain numbers below
    loss = np.asarray(index * step, dtype=float)
    fine = np.sort(np.concatenate([loss, 0.5 * (loss[1:] + loss[:-1])]))
    if source.jump > 0.0:  # the outcomes with the extreme losses are kept apart from their neighbours
        fine = distinct(np.concatenate([fine, np.nextafter([-source.jump, source.jump], -_INF)]))
    log_p, log_q = _cell_masses(source.tails, fine)
    ends = source.tails(fine[[0, -1]])
    # the tails are merged into one outcome each
    log_p = np.concatenate([ends.p_below[:1], log_p, ends.p_above[1:]])
    log_q = np.concatenate([ends.q_below[:1], log_q, ends.q_above[1:]])
    keep = np.isfinite(log_p) & np.isfinite(log_q)
    masses = _merge_to_grid(np.exp(log_p[keep]).tolist(), np.exp(log_q[keep]).tolist(), np.exp(loss).tolist())
    if not any(masses):  # every loss is smaller than the step: what reveals nothing is a post-processing of anything
        masses[int(np.flatnonzero(index == 0)[0])] = 1.0
    with np.errstate(divide="ignore"):
        return _Grid(index, loss, np.log(np.array(masses)), 0.0, source.count)


def _merge_to_grid(p: list[float], q: list[float], ratios: list[float]) -> list[float]:
    """Merge outcomes (by increasing p/q) so that every merged outcome has one of the given likelihood ratios.

    ``gap`` is p - ratio q of what is being merged: negative for outcomes of a smaller ratio. Outcomes of a larger
    ratio are added, the last one in part, until it is zero.

    Returns
    -------
    list of float
        P-mass at each ratio.
    """
    masses = [0.0] * len(ratios)
    at, size = 0, len(p)
    for i, ratio in enumerate(ratios):
        gap = mass = 0.0
        while at < size and p[at] <= ratio * q[at] * (1.0 + _SAME):
            gain = p[at] - ratio * q[at]
            if gain >= -_SAME * p[at]:
                masses[i] += p[at]
            else:
                gap += gain
                mass += p[at]
            at += 1
        while gap < 0.0 and at < size:
            gain = p[at] - ratio * q[at]
            if gap + gain <= 0.0:
                gap += gain
                mass += p[at]
                at += 1
            else:
                part = -gap / gain
                mass += part * p[at]
                p[at] *= 1.0 - part
                q[at] *= 1.0 - part
                gap = 0.0
        if gap == 0.0:
            masses[i] += mass
        elif i > 0:
            # Nothing of a larger ratio is left. One grid point lower the remainder is above the ratio, and outcomes
            # already placed below balance it.
            lower = ratios[i - 1]
            gap = mass - lower * (mass - gap) / ratio
            for k in range(i - 2, -1, -1):
                loss = masses[k] * (lower / ratios[k] - 1.0)
                part = 1.0 if loss <= gap else gap / loss
                mass += part * masses[k]
                masses[k] *= 1.0 - part
                gap = max(gap - loss, 0.0)
                if gap == 0.0:
                    masses[i - 1] += mass
                    break
    return masses


class _Tilted(NamedTuple):
    """Composition seen through one tilt: P-mass at index ``first + i`` is ``mass * exp(scale - alpha * loss)``."""

    first: int
    mass: Array
    log_error: float  # log of a bound on the error of each tilted mass
    log_lost: float  # log of a bound on the tilted mass outside the window
    alpha: float
    scale: float


def _exp(x: Array) -> tuple[float, Array]:
    """``exp`` relative to the largest element; the smallest are raised to e^-300 (denormal numbers are slow)."""
    top = float(np.max(x))
    return top, np.exp(np.maximum(x - top, -300.0))


def _mean(weight: Array, x: Array) -> float:
    # not ``weight @ x``: that wakes the threads of a BLAS library, which costs more than the sum
    return float(np.sum(weight * x))


def _log_mgf(grid: _Grid, alpha: float) -> tuple[float, Array]:
    """Log moment generating function at alpha, and the normalised tilted masses."""
    top, weight = _exp(grid.log_mass + alpha * grid.loss)
    total = float(np.sum(weight))
    return top + math.log(total), weight / total


def _exponent(grids: Sequence[_Grid], alpha: float) -> float:
    """Chernoff exponent ``alpha K'(alpha) - K(alpha)`` of the whole composition."""
    total = 0.0
    for grid in grids:
        k, weight = _log_mgf(grid, alpha)
        total += grid.count * (alpha * _mean(weight, grid.loss) - k)
    return total


def _choose_alpha(grids: Sequence[_Grid], scale: float, exponent: float) -> float:
    """Largest tilt (nearly) whose Chernoff exponent stays below the wanted one.

    Below, because the exponent may jump: past a certain tilt a single step with a rare huge loss outweighs all others.
    """
    low, high = 0.0, 2.0 * math.sqrt(2.0 * exponent) / scale
    for _ in range(12):
        mid = 0.5 * (low + high)
        found = _exponent(grids, mid)
        low, high = (mid, high) if found <= exponent else (low, mid)
        if abs(found / exponent - 1.0) < 0.05:
            return mid
    return low


def _smooth_size(n: int) -> int:
    """Smallest 2^k, 3*2^k or 5*2^k that is at least n (fast transform lengths)."""
    return min(f << max(0, math.ceil(math.log2(max(n, 1) / f))) for f in (1, 3, 5))


def _convolve(grids: Sequence[_Grid], step: float, alpha: float, most: int) -> _Tilted | None:
    """All the grids, each its number of times, convolved under one tilt; None if that needs too many cells."""
    tilted = [(grid, *_log_mgf(grid, alpha)) for grid in grids]
    square = sum(grid.count * _mean(weight, (grid.loss - _mean(weight, grid.loss)) ** 2) for grid, _, weight in tilted)
    spread = math.sqrt(square) + step

    def reach(sign: float) -> float:
        """Chernoff bound on how far from 0 the tilted sum goes, in the direction of ``sign``."""
        best = sum(grid.count * sign * float(grid.loss[-1 if sign > 0 else 0]) for grid in grids)
        for beta in (*(c / spread for c in _CHERNOFF), *_STEEP):
            k = sum(grid.count * (_log_mgf(grid, alpha + sign * beta)[0] - at) for grid, at, _ in tilted)
            best = min(best, (k - _LOG_WRAP) / beta)
        return best

    first, last = math.floor(-reach(-1.0) / step) - 1, math.ceil(reach(1.0) / step) + 1
    if last - first + 1 > most:
        return None
    size = _smooth_size(last - first + 1)
    spectrum: Any = 1.0
    offset = 0
    for grid, _, weight in tilted:
        start = int(grid.index[0])
        factor = np.fft.rfft(np.bincount((grid.index - start) % size, weight, size))
        # most of the power vanishes: the sum is smooth
        some = np.abs(factor) > math.exp(-100.0 / grid.count)
        factor[some] **= grid.count
        factor[~some] = 0.0
        spectrum = factor * spectrum
        offset += grid.count * start
    out = np.roll(np.fft.irfft(spectrum, size), -((first - offset) % size))[: last - first + 1]
    count = sum(grid.count for grid in grids)
    # Rounding: each factor of the spectrum is off by a few ulp, a power multiplies that by the exponent.
    error = 4.0 * _EPS * (count + math.log2(size)) * float(np.mean(np.abs(spectrum))) + len(grids) * math.exp(-100.0)
    scale = sum(grid.count * k for grid, k, _ in tilted)
    return _Tilted(first, np.maximum(out, 0.0), math.log(error), _LOG_WRAP + math.log(2.0), alpha, scale)


def _decayed_sums(mass: Array, decay: float) -> Array:
    """``sum over i >= j of mass[i] exp(-decay (i-j))`` for every j; ``decay >= 0``."""
    out = np.empty(mass.size)
    width = min(int(300.0 / max(decay, 1e-300)) + 1, mass.size)  # weights below e^-300 would lose digits
    weight = np.exp(-decay * np.arange(width))
    carried = 0.0
    for stop in range(mass.size, 0, -width):
        start = max(stop - width, 0)
        block = mass[start:stop] * weight[: stop - start]
        block[-1] += carried * math.exp(-decay) * weight[stop - start - 1]
        out[start:stop] = np.cumsum(block[::-1])[::-1] / weight[: stop - start]
        carried = float(out[start])
    return out


def _tilt_profile(view: _Tilted, step: float, length: int) -> Array:
    """Upper bound on the log profile at ``t = 0, step, ..., (length-1) * step`` from one tilt."""
    start = max(0, 1 - view.first)  # no other masses count for t >= 0
    target = view.first + np.arange(start, view.mass.size) - 1
    # With C_j = sum_{i >= j} P_i e^{-(i-j) step}: delta at index j-1 = (1 - e^-step) (C_j + C_{j+1} + ...), all
    # terms positive.
    total = _decayed_sums(_decayed_sums(view.mass[start:], (view.alpha + 1.0) * step), view.alpha * step)
    out = np.full(length, -_INF)
    with np.errstate(divide="ignore"):
        out[target] = np.log(total) + (view.scale + float(log1mexp(-step))) - view.alpha * step * (target + 1.0)
    out[: max(0, min(length, view.first - 1))] = _INF  # below the window this tilt says nothing
    t = np.arange(length) * step
    # sum over l > t of e^(scale - alpha l) times the error per mass, and what lies outside the window
    size = float(view.mass.size)
    cells = min(size, 1.0 / (view.alpha * step) + 1.0) if view.alpha > 0.0 else size
    log_slip = logaddexp(view.log_error + math.log(cells), view.log_lost) + view.scale - view.alpha * t
    return logaddexp(out, log_slip)


@dataclass(frozen=True)
class LossTable:
    """Upper bounds on the log profile on the grid ``t = 0, step, 2 step, ...``.

    Between grid points the chord in ``e^t`` is used, which is valid because a profile is convex in ``e^t``.
    """

    step: float
    log_delta: Array

    def log_profile(self, t: Array) -> Array:
        """Log profile for ``t >= 0``; beyond the end the last value."""
        last = self.log_delta.size - 1
        t = np.minimum(t, (last + 1.0) * self.step)
        place = np.minimum(t / self.step, float(last))
        left = np.minimum(np.floor(place), max(last - 1, 0)).astype(int)
        right = np.minimum(left + 1, last)
        part = np.clip(t - left * self.step, 0.0, self.step)
        with np.errstate(divide="ignore"):
            log_w = np.minimum(log_expm1(part) - float(log_expm1(self.step)), 0.0)
        return logaddexp(self.log_delta[left] + log1mexp(log_w), self.log_delta[right] + log_w)

    @cached_property
    def _breaks(self) -> tuple[Array, Array]:
        """Where the best grid point changes, as -log u (first form) and -log(1-u) (second form), increasing."""
        d, t = self.log_delta, np.arange(self.log_delta.size) * self.step
        slope = logsubexp(d[:-1], np.minimum(d[1:], d[:-1])) - t[:-1] - float(log_expm1(self.step))
        intercept = logaddexp(d[:-1], t[:-1] + slope)
        return np.maximum.accumulate(-slope), np.maximum.accumulate(-intercept)

    def region(self, rank: Prob) -> Prob:
        """``V(u) = min_t min(e^t u + delta(t), 1 - e^-t (1 - u - delta(t)))`` over the grid.

        The minimum over ``t`` is a Legendre transform: the breakpoints are known, so each ``u`` looks up its grid
        point. Any grid point gives a valid bound.
        """
        log_u, log_q = np.ravel(rank.log_u), np.ravel(rank.log_q)
        by_u, by_q = self._breaks
        j = np.searchsorted(by_u, -log_u)
        log_v = logaddexp(j * self.step + log_u, self.log_delta[j])
        k = np.searchsorted(by_q, -log_q)
        d = self.log_delta[k]
        log_qv = logsubexp(np.maximum(log_q, d), d) - k * self.step
        log_v = np.clip(np.minimum(log_v, log1mexp(np.minimum(log_qv, 0.0))), log_u, 0.0)
        log_qv = np.minimum(np.maximum(log_qv, log1mexp(log_v)), log_q)
        return Prob(log_v.reshape(rank.log_u.shape), log_qv.reshape(rank.log_u.shape))


def _sources(
    parts: Sequence[tuple[Guarantee, int]], *, reverse: bool = False, shrink: float | None = None
) -> list[_Source] | None:
    """The losses of all parts; None where one is not known.

    ``reverse`` exchanges the two inputs. ``shrink`` is a grid step to which the jumps of the loss (at plus and minus
    the pure epsilon) are rounded down: Laplace and randomized response with a smaller epsilon are post-processings
    of those with a larger one, and a jump on the grid costs the downward grid nothing.
    """
    out: list[_Source] = []
    for part, count in parts:
        if part.pure_epsilon == 0.0 or count == 0:
            continue
        if shrink is not None and isinstance(part, (Laplace, PureDP)):
            epsilon = math.floor(part.pure_epsilon / shrink * (1.0 + 4.0 * _EPS)) * shrink
            if epsilon <= 0.0:
                continue
            law = _laplace_tails if isinstance(part, Laplace) else _response_tails
            out.append(_Source(partial(law, epsilon), count, epsilon))
            continue
        known = _tail_function(part)
        if known is None:
            return None
        tails, symmetric = known
        jump = part.pure_epsilon if isinstance(part, (Laplace, PureDP)) else 0.0
        out.append(_Source(_reverse(tails) if reverse and not symmetric else tails, count, jump))
    return out


def _reverse(tails: TailFunction) -> TailFunction:
    return lambda loss: tails(-loss).reversed()


def _scale_of(parts: Sequence[tuple[Guarantee, int]]) -> float:
    """Standard deviation of the total loss, roughly: twice the Kullback-Leibler divergence is its square."""
    near_one = np.array([1.0 + 1e-4])
    return math.sqrt(2.0 * sum(count * float(part.rdp(near_one)[0]) for part, count in parts))


@lru_cache(maxsize=64)
def plan_step(parts: tuple[tuple[Guarantee, int], ...]) -> float | None:
    """Grid step of a convolution, from the parameters alone; None where it is impossible or too large to be of use.

    Moving losses to a grid adds at most ``count * step^2 / 4`` to the variance of the total loss, a 1/10000 of it at
    the first choice. Where that does not fit, six times the step is accepted, then the answer is None.
    """
    forward = _sources(parts)
    if not forward:
        return None
    scale = _scale_of(parts)
    count = sum(source.count for source in forward)
    if not 0.0 < scale < _INF:
        return None
    fine = scale / max(48.0 * math.sqrt(count), 1000.0)
    if any(source.jump > 0.0 for source in forward):  # which a round step may hit
        fine = min(fine, max(1e-4, scale / 8000.0))
    step = max(fine, 40.0 * scale / _MAX_CELLS)
    back = _sources(parts, reverse=True) or []
    known = all(math.isfinite(max(_range(source, _LOG_TAIL))) for source in (*forward, *back))
    return round_up(step, 6) if known and step <= 6.0 * fine else None


def _fitting(grids: Sequence[_Grid], step: float, scale: float, alpha: float, room: int) -> _Tilted | None:
    """Convolution under the given tilt, or one a little smaller, in a hundred deviations or ``room`` cells.

    Close to the tilt at which single steps with a rare huge loss take over, the tilted sum spreads widely and the
    transform becomes large. A little less tilt serves nearly as well.
    """
    most = min(_MAX_CELLS, max(math.ceil(100.0 * scale / step), room))
    views = (_convolve(grids, step, shrink * alpha, most) for shrink in (1.0, 0.9, 0.8, 0.7, 0.5, 0.25, 0.0))
    return next((view for view in views if view is not None), None)


def _direction_table(
    sources: Sequence[_Source], step: float, scale: float, exponents: Sequence[float], room: int
) -> Array | None:
    known = [_upwards(source, step) for source in sources]
    views: list[_Tilted] = []
    for exponent in exponents:
        alpha = _choose_alpha(known, scale, exponent)
        view = _fitting(known, step, scale, alpha, room)
        if view is None:
            return None
        views.append(view)
        if view.alpha < alpha:  # and so would the next tilt be
            break
    length = max(2, *(view.first + view.mass.size for view in views))
    out = np.zeros(length)
    for view in views:
        out = np.minimum(out, _tilt_profile(view, step, length))
    infinite = -math.expm1(sum(grid.count * math.log1p(-grid.infinite) for grid in known))
    out = logaddexp(out, math.log(infinite) if infinite > 0.0 else -_INF)
    # a profile never increases: an upper bound at a smaller t is one at every larger t
    out = np.minimum.accumulate(np.minimum(out, 0.0))
    return out[: max(2, int(np.count_nonzero(out > out[-1] + 1.0)) + 1, int(np.count_nonzero(out > -80.0)) + 1)]


def loss_tables(
    parts: tuple[tuple[Guarantee, int], ...], exponents: Sequence[float] = _EXPONENTS, rise: float = 1.0
) -> tuple[LossTable, LossTable] | None:
    """Profiles of a composition by convolution, one for each direction (twice the same where they do not differ).

    Parameters
    ----------
    parts : tuple of (Guarantee, int)
        The mechanisms with the number of times each is used.
    exponents : sequence of float
        The table is accurate around ``log delta = -exponent``, an upper bound everywhere.
    rise : float
        Grid step as a multiple of the planned one.

    Returns
    -------
    (LossTable, LossTable) or None
        None if the loss of a part is not known or the convolution is too large.
    """
    step = plan_step(parts)
    if step is None:
        return None
    steps = [(rise, 0), (2.0, 0), (4.0, 0), *((times, _ROOM) for times in _COARSER)]
    tables = (_tables_at(parts, times * step, exponents, room) for times, room in steps)
    return next((table for table in tables if table is not None), None)


def loss_table(
    parts: tuple[tuple[Guarantee, int], ...], exponents: Sequence[float] = _EXPONENTS, rise: float = 1.0
) -> LossTable | None:
    """Profile of a composition by convolution, the larger of both directions; see :func:`loss_tables`."""
    tables = loss_tables(parts, exponents, rise)
    return None if tables is None else _larger(*tables)


def _larger(table: LossTable, other: LossTable) -> LossTable:
    if other.log_delta.size > table.log_delta.size:
        table, other = other, table
    short = other.log_delta
    padded = np.concatenate([short, np.full(table.log_delta.size - short.size, short[-1])])
    return LossTable(table.step, np.maximum(table.log_delta, padded))


def _tables_at(
    parts: tuple[tuple[Guarantee, int], ...], step: float, exponents: Sequence[float], room: int
) -> tuple[LossTable, LossTable] | None:
    scale = _scale_of(parts)
    table = other = _direction_table(_sources(parts) or [], step, scale, exponents, room)
    if not _symmetric(parts):
        other = _direction_table(_sources(parts, reverse=True) or [], step, scale, exponents, room)
    return None if table is None or other is None else (LossTable(step, table), LossTable(step, other))


def _symmetric(parts: Sequence[tuple[Guarantee, int]]) -> bool:
    return all(known[1] for part, _ in parts if (known := _tail_function(part)) is not None)


def _lines(table: LossTable) -> tuple[Array, Array]:
    """A few thousand points ``(t, log delta)`` of the table: enough for epsilon to five digits at every delta.

    Lines that are left out cost the square of the gap in ``-log delta`` between those that stay, beside the slope of
    ``log delta`` in ``log epsilon``, which grows as ``-log delta`` itself.
    """
    place = np.floor(2.0 * np.sqrt(1.0 - table.log_delta) / _THIN)
    keep = np.flatnonzero(np.concatenate([[True], np.diff(place) > 0.0]) | (np.arange(place.size) == place.size - 1))
    t, d = keep * table.step, table.log_delta[keep]
    while True:  # lines in convex position: each cuts the next at less Q'-mass
        cut = logsubexp(d[:-1], d[1:]) - t[:-1] - log_expm1(np.diff(t))
        spare = np.flatnonzero(np.diff(cut) >= 0.0) + 1
        if spare.size == 0:
            return np.asarray(t, dtype=float), d
        spare = spare[np.concatenate([[True], np.diff(spare) > 1])]
        t, d = np.delete(t, spare), np.delete(d, spare)


def _end(t: Array, log_delta: Array) -> tuple[Array, Array]:
    """Logarithms of x and w where the lines ``w = e^-t (x - delta)`` meet their neighbours, by increasing x from 0."""
    log_w = logsubexp(log_delta[:-1], log_delta[1:]) - t[:-1] - log_expm1(np.diff(t))
    log_x = np.minimum(logaddexp(log_delta[:-1], t[:-1] + log_w), 0.0)
    flat = [-_INF] if log_delta[-1] > -_INF else []  # W stays 0 up to the last delta
    return np.array([*flat, log_delta[-1], *log_x[::-1]]), np.array([*flat, -_INF, *np.minimum(log_w, log_x)[::-1]])


def tradeoff_of(table: LossTable, other: LossTable) -> Tradeoff:
    """The trade-off curve below which no pair of laws with these two profiles lies.

    Ratios from 1 on come from the profile of this direction, those below 1 from the other's with the roles exchanged:
    either has all its digits there.
    """
    (t, d), (other_t, other_d) = _lines(table), _lines(other)
    d[0] = other_d[0] = min(d[0], other_d[0])  # both directions speak of the total variation distance
    (x, w), (other_x, other_w) = _end(t, d), _end(other_t, other_d)
    other_x, other_w = other_x[-other_t.size :], other_w[-other_t.size :]  # W ends at x = 1, however small W(1)
    slope = np.concatenate([np.full(x.size - t.size, -_INF), -t[::-1], other_t[1:], other_t[-1:]])
    # each end knows the logarithm of its own small side; the complements are near 1
    return Tradeoff(_two_ends(x, other_w[::-1]), _two_ends(w, other_x[::-1]), slope)


def _two_ends(log_u: Array, log_q: Array) -> Prob:
    first, last = Prob.from_log_u(log_u), Prob.from_log_q(log_q)
    return Prob(np.concatenate([first.log_u, last.log_u]), np.concatenate([first.log_q, last.log_q]))


def attained_by(log_p: Array, log_q: Array) -> Tradeoff:
    """The trade-off curve of two laws on finitely many outcomes."""
    some = np.isfinite(log_p) | np.isfinite(log_q)
    log_p, log_q = log_p[some], log_q[some]
    order = np.argsort(log_q - log_p, kind="stable")
    last = int(np.count_nonzero(log_p > -_INF))
    curve = []
    for mass in (log_p[order], log_q[order]):
        sums, rests = np.cumsum(np.exp(mass)), np.cumsum(np.exp(mass[::-1]))[::-1]
        with np.errstate(divide="ignore"):
            below, above = np.log(np.concatenate([[0.0], sums])), np.log(np.concatenate([rests, [0.0]]))
        curve.append(Prob(np.minimum(below, 0.0), np.minimum(above, 0.0)).take(slice(last + 1)))
    slope = (log_q - log_p)[order][:last]
    return Tradeoff(curve[0], curve[1], np.concatenate([slope, slope[-1:]]), attained=True)


def loss_pair(parts: tuple[tuple[Guarantee, int], ...], outcomes: int = 4000) -> tuple[Array, Array] | None:
    """A finite pair of laws that a composition can be post-processed to; None if not possible or too large.

    Parameters
    ----------
    parts : tuple of (Guarantee, int)
        The mechanisms with the number of times each is used.
    outcomes : int
        About how many outcomes to keep; neighbouring ones are merged.

    Returns
    -------
    log_p, log_q : ndarray, shape (m,)
        Log-probabilities of each outcome with and without the record, by increasing privacy loss
        ``log_p - log_q``. Each sums to 1.
    """
    planned = plan_step(parts)
    if planned is None:
        return None
    ladder = [(planned, 0), *((times * planned, _ROOM) for times in _COARSER)]
    tried = ((step, _pair_views(parts, step, room)) for step, room in ladder)
    step, seen = next(((step, views) for step, views in tried if views), (planned, []))
    if not seen:
        return None
    first = min(view.first for view in seen)
    length = max(view.first + view.mass.size for view in seen) - first
    loss = np.asarray((first + np.arange(length)) * step, dtype=float)
    best, noise = np.full(length, -_INF), np.full(length, _INF)
    for view in seen:
        at = slice(view.first - first, view.first - first + view.mass.size)
        factor = view.scale - view.alpha * loss[at]
        log_noise = float(logaddexp(view.log_error, view.log_lost)) + factor
        better = log_noise < noise[at]
        with np.errstate(divide="ignore"):
            value = np.log(view.mass) + factor
        value = logsubexp(np.maximum(value, log_noise), log_noise)  # what the transform may have made up is left out
        best[at] = np.where(better, value, best[at])
        noise[at] = np.where(better, log_noise, noise[at])
    log_p, log_q = best, best - loss
    present = np.flatnonzero(np.maximum(log_p, log_q) > -80.0)
    if present.size == 0:
        return None
    width = max(1, math.ceil((present[-1] - present[0] + 1) / outcomes))
    # blocks begin at multiples of their width: where they do must not turn on the last mass that is seen
    cut = slice(max(present[0] - (first + present[0]) % width, 0), present[-1] + 1)
    log_p, log_q = _merge(log_p[cut], width), _merge(log_q[cut], width)
    # What was given up joins the outcome whose loss is nearest 0, where it changes nothing that matters.
    both = np.isfinite(log_p) & np.isfinite(log_q)
    home = int(np.argmin(np.where(both, np.abs(np.where(both, log_p, 0.0) - np.where(both, log_q, 0.0)), _INF)))
    for x in (log_p, log_q):
        rest = -math.expm1(min(float(logsumexp(x)), 0.0))
        x[home] = np.logaddexp(x[home], math.log(rest) if rest > 0.0 else -_INF)
    return log_p, log_q


def _pair_views(parts: tuple[tuple[Guarantee, int], ...], step: float, room: int) -> list[_Tilted]:
    """The convolutions that fit, of the losses moved down to a grid, under tilts for the middle and both tails."""
    sources = _sources(parts, shrink=step)
    if not sources:
        return []
    scale = _scale_of(parts)
    known = [_downwards(source, step) for source in sources]
    right = _choose_alpha(known, scale, 12.0)
    # tilt -1 turns P into Q, so the tilt -1-right looks after the left tail as the other does after the right one
    views = (_fitting(known, step, scale, alpha, room) for alpha in (0.0, -1.0, right, -1.0 - right))
    return [view for view in views if view is not None]


def _merge(log_mass: Array, width: int) -> Array:
    pad = -log_mass.size % width
    return logsumexp(np.concatenate([log_mass, np.full(pad, -_INF)]).reshape(-1, width))


class ConvolvedBase(CurveBase):
    """A base whose profile and region come from a convolved loss distribution, its Rényi curve from summation.

    Where the convolution would take too long or too much memory (decided from the parameters) the Rényi curve
    answers everything, and :attr:`warnings` says so.
    """

    has_own_pair = True

    @abstractmethod
    def convolution_parts(self) -> tuple[tuple[Guarantee, int], ...]:
        """The mechanisms to convolve, each with its number of uses."""

    @cached_property
    def _tables(self) -> tuple[LossTable, LossTable] | None:
        return loss_tables(self.convolution_parts())

    @cached_property
    def _table(self) -> LossTable | None:
        return None if self._tables is None else _larger(*self._tables)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return _symmetric(self.convolution_parts())

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        if self._tables is None:
            return self.log_profile(t)
        t = np.asarray(t, dtype=float)
        return np.where(
            t >= 0.0,
            self._one_way(direction, np.maximum(t, 0.0)),
            log1mexp(np.minimum(t + log1mexp(self._one_way(1 - direction, np.maximum(-t, 0.0))), 0.0)),
        )

    def _one_way(self, direction: int, t: Array) -> Array:
        """Log profile of one direction for ``t >= 0``."""
        assert self._tables is not None
        return self._with_curve(self._tables[direction], t)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        if self._tables is None:
            return super().tradeoff(direction)
        return tradeoff_of(*self._tables[:: -1 if direction else 1])

    def attained_tradeoff(self, direction: int = 0) -> Tradeoff | None:
        if self._pair is None:
            return None
        return attained_by(*self._pair[:: -1 if direction else 1])

    @property
    def exact_profile(self) -> bool:  # type: ignore[override]
        return self._table is not None

    @property
    def region_tolerance(self) -> float:  # type: ignore[override]
        return 1e-13 if self._table is not None else 1e-7

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        if self.pure_epsilon == 0.0 or not self.finite or self._table is not None:
            return ()
        return (
            "the privacy-loss distribution of this base would take too long or too much memory; "
            "its Rényi curve is used instead, which is valid but less tight",
        )

    def _log_profile(self, t: Array) -> Array:
        table = self._table
        return super()._log_profile(t) if table is None else self._with_curve(table, np.asarray(t, dtype=float))

    def _with_curve(self, table: LossTable, t: Array) -> Array:
        out = table.log_profile(t)
        deep = (out < -60.0) | (t > table.step * (table.log_delta.size - 1))
        if deep.any():  # near the floor of the table the Rényi curve may be smaller
            out = np.where(deep, np.minimum(out, _on(deep, t, super()._log_profile)), out)
        return out

    def region(self, rank: Prob) -> Prob:
        table = self._table
        return super().region(rank) if table is None else table.region(rank)

    def repeated_profile(self, count: int, log_delta: float) -> Callable[[Array], Array] | None:
        parts = tuple((part, count * uses) for part, uses in self.convolution_parts())
        table = loss_table(parts, (max(-log_delta, 1.0),), rise=2.0)
        return None if table is None else table.log_profile

    def discretised_pair(self) -> tuple[Array, Array] | None:
        """A finite mechanism this base can be post-processed to, None if that is too large; see :func:`loss_pair`."""
        return self._pair

    @cached_property
    def _pair(self) -> tuple[Array, Array] | None:
        return loss_pair(self.convolution_parts())


def _on(mask: Array | Any, t: Array, function: Callable[[Array], Array]) -> Array:
    out = np.zeros(t.shape)
    out[mask] = function(t[mask])
    return out


@dataclass(frozen=True)
class Convolution(SumOfParts, ConvolvedBase):
    """Several mechanisms in one run, composed by convolving their privacy losses.

    Parameters
    ----------
    parts : tuple of (Guarantee, int)
        Gaussian, Laplace, pure or DP-SGD parts, each with its number of uses.
    """

    parts: tuple[tuple[Guarantee, int], ...]

    def describe(self) -> dict[str, Any]:
        return {key: value for part, _ in self.parts for key, value in part.describe().items()}

    def convolution_parts(self) -> tuple[tuple[Guarantee, int], ...]:
        return tuple(
            pair
            for part, count in self.parts
            for pair in (
                ((inner, n * count) for inner, n in part.convolution_parts())
                if isinstance(part, ConvolvedBase)
                else ((part, count),)
            )
        )


def compose_parts(parts: tuple[tuple[Guarantee, int], ...]) -> Guarantee | None:
    """Compose by convolution.

    Parameters
    ----------
    parts : tuple of (Guarantee, int)
        Each mechanism with its number of uses.

    Returns
    -------
    Guarantee or None
        None where the loss of a part is not known (a bare Rényi curve, say) or the convolution is too large.
    """
    whole = Convolution(parts)
    return whole if whole._table is not None else None
