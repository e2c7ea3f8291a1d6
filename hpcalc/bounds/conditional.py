"""Conditional sampling: the exact price of "run until the output is accepted".

Let one run be accepted with probability at least p under every input. For an event S inside the accepted set let
``x = Q(S)`` and y be the Q-mass of the rest of the set. Then ``A(S) = x/(x+y)``, and ``A'(S) = w/(w+z)`` with
``w = Q'(S) >= W(x)``, ``z <= V(y)`` and ``w + z >= p``, so

``δ(ε) = sup over p <= x+y <= 1 of x/(x+y) - e^ε w/(w+V(y))``, ``w = max(W(x), p - V(y))``;

a pair that attains V makes it an equality. With ``a = x/(x+y)`` and the ratio ``g = a (w + V(y))/w`` of both chances,
δ(ε) is the supremum of ``a (1 - e^ε/g)`` and ε(δ) that of ``log(g (1 - δ/a))``: one search over two variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hpcalc.bounds.bound import ProfileBound
from hpcalc.conversion import EXACT_PROFILE, PURE, Conversion
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount, Threshold
from hpcalc.logspace import Array, Prob, logsubexp

__all__ = ["RefinedConditional", "bounds", "search"]

Region: TypeAlias = Callable[[Prob], Prob]
#: From ``log a`` and ``log g`` to what is to be maximised; rises with both.
Score: TypeAlias = Callable[[Array, Array], Array]

# Knobs of speed: the number of cells at which a search ends, and rounds of splitting.
_MOST_CELLS = 50_000
_ROUNDS = 40


def search(
    region: Region, accept: float, score: Score, start: float, accuracy: float = 2e-6
) -> tuple[float, float, tuple[float, float]]:
    """Supremum of a score over events and accepted sets, from both sides.

    Parameters
    ----------
    region : callable
        V of one run.
    accept : float
        p in (0, 1].
    score : callable
        See :data:`Score`.
    start : float
        ``log x`` below which the score has no value.
    accuracy : float
        Where to end, relative to the value.

    Returns
    -------
    tuple
        Upper bound, the largest value met, and the ``(log x, log(x+y))`` where it was met.

    Notes
    -----
    On a cell of (x, x+y) a is largest at the largest x and the least x+y. ``g = (x + (x/w) V(y))/(x+y)``, where x/w is
    at most ``x/W(x)``, which never rises (W is convex), and ``V(y)`` at most y times its ratio at the least y (V is
    concave). Cells whose bound exceeds the best value are split.
    """
    log_p = math.log(accept)
    x = np.linspace(min(start, log_p - 1.0), 0.0, 65)
    m = np.linspace(log_p, 0.0, 9) if accept < 1.0 else np.zeros(2)
    low, high = np.meshgrid(x[:-1], m[:-1], indexing="ij"), np.meshgrid(x[1:], m[1:], indexing="ij")
    cells = np.stack([part.ravel() for part in (*low, *high)])
    best, at, settled, bound = -math.inf, (x[-1], m[-1]), -math.inf, np.empty(0)
    for _ in range(_ROUNDS):
        x0, m0, x1, m1 = cells = cells[:, cells[0] <= cells[3]]
        x1 = np.minimum(x1, m1)
        near = np.maximum(m0, x1)
        value = score(x1 - near, _ratio(region, log_p, x1, near))
        bound = np.maximum(value, score(np.minimum(x1 - m0, 0.0), _largest_ratio(region, log_p, x0, m0, x1, m1)))
        top = int(np.argmax(value))
        if value[top] > best:
            best, at = float(value[top]), (float(x1[top]), float(near[top]))
        live = bound > best + accuracy * max(abs(best), 1e-3)
        settled = max(settled, float(np.max(bound[~live], initial=-math.inf)))
        if not live.any() or np.count_nonzero(live) > _MOST_CELLS:
            break
        x0, m0, x1, m1 = cells[:, live]
        xs, ms = 0.5 * (x0 + x1), 0.5 * (m0 + m1)
        parts = [(x0, m0, xs, ms), (xs, m0, x1, ms), (x0, ms, xs, m1), (xs, ms, x1, m1)]
        cells = np.concatenate([np.stack(part) for part in (parts if accept < 1.0 else parts[:2])], axis=1)
    return max(settled, best, float(np.max(bound, initial=-math.inf))), best, at


def _v(region: Region, log_total: Array, log_x: Array) -> tuple[Array, Array]:
    """Logarithms of ``y = exp(log_total) - exp(log_x)`` and of V(y)."""
    log_y = logsubexp(log_total, np.minimum(log_x, log_total))
    return log_y, region(Prob.from_log_u(log_y)).log_u


def _w(region: Region, log_p: float, log_x: Array, log_v: Array) -> Array:
    """``log max(W(x), p - V(y))``."""
    rest = np.where(log_v < log_p, logsubexp(log_p, np.minimum(log_v, log_p)), -np.inf)
    return np.maximum(region(Prob.from_log_u(log_x).complement()).log_q, rest)


def _ratio(region: Region, log_p: float, log_x: Array, log_total: Array) -> Array:
    """``log g`` at points."""
    _, log_v = _v(region, log_total, log_x)
    log_w = _w(region, log_p, log_x, log_v)
    with np.errstate(invalid="ignore"):
        return np.asarray(log_x - log_total + np.logaddexp(log_w, log_v) - log_w, dtype=float)


def _largest_ratio(region: Region, log_p: float, x0: Array, m0: Array, x1: Array, m1: Array) -> Array:
    """Upper bound on ``log g`` over cells."""
    (y0, v0), (y1, v1) = _v(region, m0, x1), _v(region, m1, x0)
    log_w = _w(region, log_p, x0, np.full(x0.shape, 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        spent = x0 - log_w  # x/W(x), at most x1 over the other lower bound on w
        rest = np.where(v1 < log_p, logsubexp(log_p, np.minimum(v1, log_p)), -np.inf)
        spent = np.minimum(spent, x1 - rest)
        steep = np.logaddexp(x0, spent + v0 - y0 + y1) - np.logaddexp(x0, y1)
        plain = np.logaddexp(x0, spent + v1) - np.logaddexp(x0, y0)
    return np.fmin(np.where(np.isnan(steep), np.inf, steep), np.where(np.isnan(plain), np.inf, plain))


@dataclass(frozen=True, eq=False)
class RefinedConditional(ProfileBound):
    """The exact price of conditional sampling, for a base that knows its region.

    Examples
    --------
    >>> from hpcalc.guarantees import Gaussian
    >>> round(RefinedConditional(Gaussian(5**0.5), 0.1).epsilon(math.log(1e-6)).value, 4)
    2.9099
    """

    base: Guarantee
    accept: float
    name: str = "refined-conditional"
    citation: str = "Exact price of conditional sampling (hpcalc-theory(7)), after Proposition 15"

    @property
    def conditions(self) -> tuple[str, ...]:  # type: ignore[override]
        return (f"acceptance probability at least {self.accept:g}",)

    @property
    def pure_epsilon(self) -> float:
        """``ε + log(V(p)/p)`` for an ε-DP base, at most 2ε."""
        if not self.base.pure_epsilon < math.inf:
            return math.inf
        p = Prob.from_u(np.array([self.accept]))
        return self.base.pure_epsilon + max(float((self.base.region(p).log_u - p.log_u)[0]), 0.0)

    def log_profile(self, epsilons: Array) -> Array:
        return np.array([self._log_delta(float(epsilon)) for epsilon in np.ravel(epsilons)])

    def _log_delta(self, epsilon: float) -> float:
        if epsilon >= self.pure_epsilon:
            return -math.inf

        def score(log_a: Array, log_g: Array) -> Array:
            with np.errstate(divide="ignore"):
                return np.log(np.maximum(-np.expm1(np.minimum(epsilon - log_g, 0.0)), 0.0)) + log_a

        # below this mass δ is less than exp(-700)
        top, _, _ = search(self.base.region, self.accept, score, -700.0, 1e-4)
        return min(top + 1e-12, 0.0)

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        if log_delta == -math.inf:
            return Conversion(self.pure_epsilon, PURE)
        top, _, _ = search(self.base.region, self.accept, *epsilon_score(self.accept, log_delta))
        value = max(top, 0.0) * (1.0 + 1e-12) + 1e-12
        return Conversion(min(value if top > 0.0 else 0.0, self.pure_epsilon), EXACT_PROFILE)


def epsilon_score(accept: float, log_delta: float) -> tuple[Score, float]:
    """The score whose supremum is ε at δ, and the ``log x`` below which it has no value."""

    def score(log_a: Array, log_g: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            out = log_g + np.log1p(-np.exp(np.minimum(log_delta - log_a, 0.0)))
        return np.where(np.isnan(out), np.where(log_a > log_delta, np.inf, -np.inf), out)

    return score, math.log(accept) + log_delta


def bounds(base: Guarantee, law: RunCount, orders: Array | None = None) -> Iterator[RefinedConditional]:
    """The exact price, for conditional sampling."""
    if isinstance(law, Threshold):
        yield RefinedConditional(base, law.accept)
