"""The curve of ranks that every bound on best-of-K walks along.

For a base guarantee with region ``V`` and a law of K with ``F(u) = f'(1-u)``, all bounds depend on the curve
``u -> (F(V(u)), F(u))``, u in [0, 1]. Here it is sampled and, between samples, enclosed: ``F`` is convex, so its chord
lies above it; ``F(V(u))`` is convex too (V is concave, F decreasing and convex), so the chords of the neighbouring
cells, prolonged, lie below it. Each cell thus has a triangle whose upper-left edges dominate the curve, with an error
of second order in the cell's width. Whatever is maximised over those edges is a certified upper bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from hpcalc.guarantees import Guarantee
from hpcalc.logspace import Array, Mask, Prob, distinct, logsubexp, ndtri_exp

__all__ = ["RankCurve", "RunLaw", "rank_curve"]


class RunLaw(Protocol):
    """What a law of K must offer to be used as best-of-K."""

    @property
    def log_mean(self) -> float: ...
    @property
    def log_prob_zero(self) -> float: ...
    @property
    def affine_power(self) -> bool: ...
    @property
    def supremum_at_edge(self) -> bool: ...
    def log_density(self, rank: Prob) -> Array: ...
    def log_mean_excess(self, rank: Prob) -> Array: ...
    def gain_at_edge(self, epsilon: float) -> float: ...


_ZERO = Prob(np.array(-math.inf), np.array(0.0))
_ONE = Prob(np.array(0.0), np.array(-math.inf))
_X_LIMIT = 42.0  # Phi(-42) = 1e-385: ranks below need no node of their own


@dataclass(frozen=True, eq=False)
class RankCurve:
    """Samples of the curve ``(F(V(u)), F(u))`` at increasing ``u``, from u = 0 to u = 1.

    Attributes
    ----------
    x : ndarray, shape (n,)
        Normal scores of the nodes, ``-inf`` and ``inf`` at the ends.
    rank, image : Prob
        ``u`` and ``V(u)`` at the nodes.
    log_f, log_g : ndarray
        ``log F(u)`` and ``log F(V(u))``.
    log_g_low : ndarray
        ``log F`` a tolerance beyond ``V(u)``, where ``region`` has one: the slack the prolonged chords need.
    """

    base: Guarantee
    law: RunLaw
    x: Array
    rank: Prob
    image: Prob
    log_f: Array
    log_g: Array
    slack_g: Array

    @cached_property
    def cells(self) -> tuple[Array, Array, Array]:
        """Per cell: ``theta`` of the triangle's corner, and log of F's chord and of the lower line there.

        Relative to the left node: ``(theta, log A(theta)/F(u_i), log B(theta)/F(V(u_i)))``.
        """
        log_width = logsubexp(self.rank.log_u[1:], self.rank.log_u[:-1])
        upper = self.rank.log_u[:-1] > -0.5
        log_width = np.where(upper, logsubexp(self.rank.log_q[:-1], self.rank.log_q[1:]), log_width)
        g = self.log_g
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            ratio_a = np.exp(self.log_f[1:] - self.log_f[:-1])
            ratio_b = np.exp(g[1:] - g[:-1])
            # left line: 1 - theta * fall, from the chord of the cell before (its far end raised by the slack)
            fall = np.full(g.size - 1, np.inf)
            fall[1:] = (np.exp(g[:-2] - g[1:-1] + self.slack_g[:-2]) - 1.0) * np.exp(log_width[1:] - log_width[:-1])
            # right line: ratio_b + (1 - theta) * rise, from the chord of the cell after
            rise = np.zeros(g.size - 1)
            beyond = np.exp(g[2:] - g[:-2] + self.slack_g[2:])
            rise[:-1] = np.maximum(ratio_b[:-1] - beyond, 0.0) * np.exp(log_width[:-1] - log_width[1:])
            rise = np.where(np.isfinite(rise), rise, 0.0)
            fall = np.where(np.isnan(fall) | (fall < 0.0), np.inf, fall)
            # Where the samples of F(V) bend the wrong way V was not found to the last digit: no lines there, the
            # cell's right end bounds F(V) from below.
            dent = fall[1:] < (1.0 - ratio_b[1:]) * (1.0 - 1e-9)
            near = np.convolve(dent, np.ones(5), mode="full")[1:-1] > 0.0 if dent.any() else np.zeros(g.size - 1, bool)
            near = near[: g.size - 1]
            fall, rise = np.where(near, np.inf, fall), np.where(near, 0.0, rise)
            theta = np.where(np.isinf(fall), 0.0, (1.0 - ratio_b - rise) / (fall - rise))
            theta = np.clip(np.where(np.isfinite(theta), theta, 0.0), 0.0, 1.0)
            low = np.minimum(np.maximum(ratio_b + (1.0 - theta) * rise, ratio_b), 1.0)
            chord = 1.0 - theta * (1.0 - ratio_a)
            # where F(V) is 0 from the left node on, that node dominates the cell
            gone = np.isneginf(g[:-1])
            theta, chord, low = np.where(gone, 0.0, theta), np.where(gone, 1.0, chord), np.where(gone, 1.0, low)
            # neither is below its value at the right node, which may be too small for a plain number
            end_a, end_b = (np.where(gone, 0.0, end) for end in (self.log_f[1:] - self.log_f[:-1], g[1:] - g[:-1]))
            return theta, np.maximum(np.log(np.minimum(chord, 1.0)), end_a), np.maximum(np.log(low), end_b)

    @cached_property
    def vertices(self) -> tuple[Array, Array]:
        """``(log F(V), log F)`` along the dominating polygon, by increasing u, relative to nothing."""
        _, corner_a, corner_b = self.cells
        n = self.log_f.size
        log_a, log_b = np.empty(2 * n - 1), np.empty(2 * n - 1)
        log_a[0::2], log_b[0::2] = self.log_f, self.log_g
        log_a[1::2], log_b[1::2] = self.log_f[:-1] + corner_a, self.log_g[:-1] + corner_b
        return log_b, log_a

    def refine(self, split: Mask, pieces: int = 2) -> RankCurve:
        """A finer curve: each marked cell is cut into equal pieces (in normal score)."""
        x = self.x
        # a cell is bounded by its neighbours' chords prolonged, which are no better than the neighbours are narrow
        width = np.diff(x)
        split = split.copy()
        split[1:] |= split[:-1] & (width[1:] > 1.5 * width[:-1])
        split[:-1] |= split[1:] & (width[:-1] > 1.5 * width[1:])
        index = np.flatnonzero(split)
        left = np.where(np.isneginf(x[index]), x[index + 1] - 2.0, x[index])
        right = np.where(np.isposinf(x[index + 1]), x[index] + 2.0, x[index + 1])
        share = np.arange(1, pieces) / pieces
        fresh = (left[:, None] + (right - left)[:, None] * share).ravel()
        fresh = distinct(fresh[(fresh > -_X_LIMIT) & (fresh < _X_LIMIT)])
        fresh = fresh[x[np.minimum(np.searchsorted(x, fresh), x.size - 1)] != fresh]
        if fresh.size == 0:
            return self
        return _merge(self, _sample(self.base, self.law, fresh))


def _sample(base: Guarantee, law: RunLaw, x: Array) -> RankCurve:
    rank, image = _region_at(base, x)
    log_g = _falling(law.log_density(image))
    slack = np.zeros_like(log_g)
    if base.region_tolerance > 1e-12:
        tight_v = image.log_u - base.region_tolerance
        tight_q = np.minimum(image.log_q + base.region_tolerance, 0.0)
        small = image.log_u < -0.5
        low = Prob.from_log_u(np.where(small, tight_v, -1.0)), Prob.from_log_q(np.where(small, -1.0, tight_q))
        lowered = Prob(np.where(small, low[0].log_u, low[1].log_u), np.where(small, low[0].log_q, low[1].log_q))
        with np.errstate(invalid="ignore"):
            slack = np.maximum(np.where(np.isfinite(log_g), law.log_density(lowered) - log_g, 0.0), 0.0)
            slack = np.where(np.isfinite(slack), slack, 0.0)
    return RankCurve(base, law, x, rank, image, law.log_density(rank), log_g, slack)


_CACHE_LIMIT = 20_000


@lru_cache(maxsize=16)
def _known_regions(base: Guarantee) -> dict[float, tuple[float, float, float, float]]:
    """Regions of one base already computed: normal score to (log u, log 1-u, log v, log 1-v).

    A region does not depend on the ranks asked for beside it, so what is remembered is what would be computed again.
    """
    return {}


def _region_at(base: Guarantee, x: Array) -> tuple[Prob, Prob]:
    """Ranks at normal scores and the base's region there; a costly region is remembered node by node."""
    if base.region_tolerance <= 1e-12:
        rank = Prob.from_normal(x)
        return rank, base.region(rank)
    known = _known_regions(base)
    missing = np.array([score for score in x.tolist() if score not in known])
    if missing.size:
        fresh = Prob.from_normal(missing)
        image = base.region(fresh)
        if len(known) > _CACHE_LIMIT:
            known.clear()
            return _region_at(base, x)
        rows = zip(*(part.tolist() for part in (*fresh, *image)), strict=True)
        known.update(zip(missing.tolist(), rows, strict=True))
    table = np.array([known[score] for score in x.tolist()]).reshape(-1, 4).T
    return Prob(table[0], table[1]), Prob(table[2], table[3])


def _falling(log_g: Array) -> Array:
    """F(V) never rises with u: where a region is found less well than at a later rank, the later value holds too."""
    return np.asarray(np.maximum.accumulate(log_g[::-1])[::-1], dtype=float)


def _merge(a: RankCurve, b: RankCurve) -> RankCurve:
    order = np.argsort(np.concatenate([a.x, b.x]), kind="stable")

    def join(one: Array, two: Array) -> Array:
        return np.concatenate([one, two])[order]

    return RankCurve(
        a.base,
        a.law,
        join(a.x, b.x),
        Prob(join(a.rank.log_u, b.rank.log_u), join(a.rank.log_q, b.rank.log_q)),
        Prob(join(a.image.log_u, b.image.log_u), join(a.image.log_q, b.image.log_q)),
        join(a.log_f, b.log_f),
        _falling(join(a.log_g, b.log_g)),
        join(a.slack_g, b.slack_g),
    )


def _score_where(law: RunLaw, drop: float) -> float:
    """Normal score of the rank at which F has fallen by the factor exp(-drop) from F(0)."""
    lo, hi = -_X_LIMIT, _X_LIMIT
    for _ in range(4):
        x = np.linspace(lo, hi, 65)
        fallen = law.log_mean - law.log_density(Prob.from_normal(x)) > drop
        first = int(np.argmax(fallen)) if fallen.any() else x.size - 1
        lo, hi = float(x[max(first - 1, 0)]), float(x[first])
    return hi


def rank_curve(base: Guarantee, law: RunLaw, size: int = 256) -> RankCurve:
    """Sample the curve with about ``size`` nodes, spread over the ranks where F or F(V) changes.

    Parameters
    ----------
    base : Guarantee
        One run's guarantee.
    law : RunLaw
        Law of K.
    size : int
        Number of nodes between the ends.

    Returns
    -------
    RankCurve
    """
    lo = _first_score(base, _score_where(law, 1e-4))
    last = float(law.log_density(_ONE))
    first = law.log_mean
    if first - last < 1e-4:
        hi = 3.0
    else:
        # up to where F is flat again, or (F(1) = 0) far into the last ranks
        hi = _flat_score(law, last)
    lo = max(min(lo, hi - 1.0), -_X_LIMIT)
    # Nodes at multiples of a power of two: two laws on one base share most of them, and so the cached regions.
    step = 2.0 ** round(math.log2((hi - lo) / size))
    inner = np.arange(math.floor(lo / step), math.ceil(hi / step) + 1) * step
    return _sample(base, law, distinct(np.concatenate([[-np.inf], inner, base.kinks, [np.inf]])))


def _first_score(base: Guarantee, score: float) -> float:
    """Normal score of the rank whose V reaches the rank at ``score``: where F(V) starts to move."""
    if base.region_tolerance > 1e-12 and base.orders is None:
        # Nearly a Gaussian's shift there; a costly region is not asked for a rank that only places the grid.
        shift = math.sqrt(float(base.rdp(np.array([2.0]))[0]))
        if math.isfinite(shift):
            return max(score - 1.3 * shift, -_X_LIMIT)
    # V's inverse is V mirrored
    inverse = base.region(Prob.from_normal(np.array([-score]))).complement()
    return float(np.maximum(ndtri_exp(inverse.log_u)[0], -_X_LIMIT))


def _flat_score(law: RunLaw, last: float) -> float:
    if math.isinf(last):
        return 38.0
    for x in (3.0, 5.0, 8.0, 12.0, 20.0):
        if float(law.log_density(Prob.from_normal(np.array([x])))[0]) - last < 1e-4:
            return x
    return 38.0
