"""Theorem E by a plain double grid: what the search over one pair of laws costs at least, in a page of NumPy.

Outcomes of the pair are ranked along the best nondecreasing path: winners by increasing likelihood ratio dQ'/dQ, losers
by decreasing ratio in between. Every number errs downwards by construction (F is convex, so midpoints under-estimate
the winners' mass under A, and chords over-estimate that under A'), so the result is a true lower bound on delta up to
rounding, and close to delta where the grid is fine. Of the package only the parameters of its data classes are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from exact import density
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri_exp

from hpcalc.guarantees import ApproxDP, Gaussian, Guarantee, Laplace, PureDP
from hpcalc.laws import Law

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """Corners of winners (x, w) and losers (y, v), cumulative masses under Q and Q'; the increments beside them."""

    x: Floats
    w: Floats
    dx: Floats
    dw: Floats
    y: Floats
    v: Floats


def grid_of(base: Guarantee, law: Law, log_least: float = -60.0, pieces: int = 1000, cells: int = 700) -> Grid:
    """Of a guarantee with a closed form; masses down to about ``exp(log_least)``."""
    if isinstance(base, (Gaussian, Laplace)):
        s = 1.0 / (base.sigma if isinstance(base, Gaussian) else base.scale)
        below = ndtr if isinstance(base, Gaussian) else _laplace_cdf
        reach = -float(ndtri_exp(log_least)) if isinstance(base, Gaussian) else -log_least
        z = np.unique(np.concatenate([np.linspace(-reach - s, reach + s, 40_000), [0.0, s, -s]]))
        corners = z if isinstance(base, Gaussian) else np.array([0.0, s, -s])
        corners = corners[:0] if isinstance(base, Gaussian) else corners
        z, y = (_shared(z, corners, below(z), below(move), law, n) for move, n in ((z - s, pieces), (z + s, cells)))
        return Grid(below(z), below(z - s), _between(below, z), _between(below, z - s), below(y), below(y + s))
    if isinstance(base, (PureDP, ApproxDP)):
        low, high = 1.0 / (1.0 + math.exp(base.epsilon)), 1.0 / (1.0 + math.exp(-base.epsilon))
        delta = base.slack
        q = [delta, (1.0 - delta) * high, (1.0 - delta) * low, 0.0]
        return grid_of_pair(q, q[::-1], law, log_least, pieces, cells)
    raise TypeError(base)


def grid_of_pair(
    q: Sequence[float],
    q_prime: Sequence[float],
    law: Law,
    log_least: float = -60.0,
    pieces: int = 1000,
    cells: int = 700,
) -> Grid:
    """Of two laws on finitely many outcomes."""
    outcomes = [(a, b) for a, b in zip(q, q_prime, strict=True) if a > 0.0 or b > 0.0]
    outcomes.sort(key=lambda ab: ab[1] / ab[0] if ab[0] > 0.0 else math.inf)
    some = np.array([ab for ab in outcomes if ab[0] > 0.0])  # those of Q' alone are the first losers, and no winners
    jump = math.fsum(b for a, b in outcomes if a == 0.0)
    made = []
    for (a, b), first, count in ((some.T, 0.0, pieces), (some[::-1].T, jump, cells)):
        corners, image = (np.concatenate([[0.0], np.cumsum(part)]) for part in (a, b))
        score = np.concatenate([np.linspace(log_least, -log_least, 4000), np.linspace(-8.0, 8.0, 8000)])
        near, far = (1.0 / (1.0 + np.exp(sign * score)) for sign in (1.0, -1.0))
        inner = (corners[:-1, None] * near + corners[1:, None] * far).ravel()
        inner = np.unique(np.concatenate([inner[(inner > 0.0) & (inner < corners[-1])], corners]))
        out = first + np.interp(inner, corners, image)
        chosen = _shared(inner, corners, inner, out, law, count)
        edge = np.clip(np.searchsorted(corners, chosen[:-1], side="right") - 1, 0, a.size - 1)
        made.append((chosen, first + np.interp(chosen, corners, image), np.diff(chosen) * b[edge] / a[edge]))
    (x, w, dw), (y, v, _) = made
    return Grid(x, w, np.diff(x), dw, y, v)


def _shared(points: Floats, corners: Floats, mass: Floats, image: Floats, law: Law, count: int) -> Floats:
    """About ``count`` of the points, equally many in equal parts of the ways in which F and the masses change."""
    total = np.zeros(points.size)
    values = [
        density(law, mass, m=np),
        density(law, np.minimum(image, 1.0), m=np),
        mass / (1.0 - np.minimum(mass, 1.0 - 1e-9)),
        image,
    ]
    for value in [*(np.log(np.maximum(value, 1e-18 * np.max(value))) for value in values), mass, *values[:2]]:
        change = np.append(0.0, np.cumsum(np.abs(np.diff(value))))
        total += change / max(change[-1], 1e-300)
    at = np.unique(np.searchsorted(total, np.linspace(0.0, total[-1], count)).clip(0, points.size - 1))
    return np.unique(np.concatenate([points[at], corners]))


def _laplace_cdf(x: Floats) -> Floats:
    return np.where(x < 0.0, 0.5 * np.exp(np.minimum(x, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(x, 0.0)))


def _between(below: Callable[[Floats], Floats], z: Floats) -> Floats:
    return np.where(z[:-1] > 0.0, below(-z[:-1]) - below(-z[1:]), below(z[1:]) - below(z[:-1]))


def least_delta(grid: Grid, law: Law, epsilon: float) -> float:
    """What the hockey-stick divergence of the search is at least, at one epsilon >= 0."""
    factor = math.exp(epsilon)
    total = np.zeros(grid.y.size)
    for start in range(0, grid.dx.size, 256):
        part = slice(start, min(start + 256, grid.dx.size))
        x0, w0 = grid.x[:-1][part, None], grid.w[:-1][part, None]
        dx, dw = grid.dx[part, None], grid.dw[part, None]
        above = dx * density(law, np.minimum(x0 + 0.5 * dx + grid.y, 1.0), m=np)
        left, right = (density(law, np.minimum(w + grid.v, 1.0), m=np) for w in (w0, w0 + dw))
        gain = np.maximum(above - factor * dw * 0.5 * (left + right), 0.0)
        gain[x0 + dx + grid.y > 1.0 + 1e-15] = 0.0
        for row in gain:  # the best nondecreasing path so far that ends at each loser
            total = np.maximum.accumulate(total + row)
    return float(total[-1])
