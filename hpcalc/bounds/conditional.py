"""Conditional sampling: the exact price of "run until the output is accepted".

Let one run be accepted with probability at least p under every input. For an event S inside the accepted set let
``x = Q(S)`` and y be the Q-mass of the rest of the set. Then ``A(S) = x/(x+y)``, and ``A'(S) = w/(w+z)`` with
``w = Q'(S) >= W(x)``, ``z <= V(y)`` and ``w + z >= p``, so

``δ(ε) = sup over p <= x+y <= 1 of x/(x+y) - e^ε w/(w+V(y))``, ``w = max(W(x), p - V(y))``;

a pair that attains V makes it an equality. In ``a = x/(x+y)`` and the ratio ``g = a (w + V(y))/w`` of both chances δ(ε)
is the supremum of ``a (1 - e^ε/g)`` and ε(δ) that of ``log(g (1 - δ/a))``: one search serves both, and in one variable.
For at given a, with ``m = x+y``, ``g = a + (1-a) (V(y)/y) (x/w)``: where ``w = W(x)`` it falls with m, for V is concave
and W convex, and where ``w = p - V(y)`` it rises. So m is the larger of p and the mass at which ``W(x) + V(y) = p``.
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
from hpcalc.guarantees.curves import CurveBase
from hpcalc.guarantees.guarantee import smallest
from hpcalc.laws import RunCount, Threshold
from hpcalc.logspace import Array, Mask, Prob, log1mexp, logsubexp

Region: TypeAlias = Callable[[Prob], Prob]
#: From ``log a`` and ``log g`` to what is to be maximised, one row a question; rises with both.
Score: TypeAlias = Callable[[Array, Array], Array]

# Knobs of speed: the number of cells at which a search ends, and rounds of splitting.
_MOST_CELLS = 20_000
_ROUNDS = 60


def search(region: Region, accept: float, score: Score, start: float, accuracy: float = 2e-6) -> tuple[Array, Array]:
    """Suprema of a score over events and accepted sets, from above and from below, one for each question.

    ``region`` is V of one run, ``accept`` p in (0, 1], ``start`` the ``log a`` below which the score has no value; the
    search ends at ``accuracy`` relative to the value.

    Notes
    -----
    On a cell of a, ``g <= a + (1-a) (V(y)/y) (x/W(x))`` with a, x and y as small as the cell allows: both ratios never
    rise, and their product is at least 1. Cells whose bound exceeds the best value are cut in four.
    """
    log_p = math.log(accept)
    edges = np.linspace(min(start, -1.0), 0.0, 129)
    low, high = edges[:-1], edges[1:]
    best = settled = np.array([[-math.inf]])
    bound = np.full((1, low.size), math.inf)
    for _ in range(_ROUNDS):
        # p stands for m first; what that leaves open is looked at closely
        for least in (lambda a, rest: np.full(a.shape, log_p), lambda a, rest: _least_mass(region, log_p, a, rest)):
            value = np.atleast_2d(score(high, _ratio(region, log_p, high, least(high, _rest(high)))))
            rough = score(high, _largest_ratio(region, low, high, least(high, _rest(low))))
            bound = np.minimum(bound, np.maximum(value, rough))
            best = np.maximum(best, np.max(value, axis=1, keepdims=True))
            with np.errstate(invalid="ignore"):
                live = np.any(bound > best + accuracy * np.maximum(np.abs(best), 1e-3), axis=0)
            settled = np.maximum(settled, np.max(bound[:, ~live], axis=1, initial=-math.inf, keepdims=True))
            low, high, bound = low[live], high[live], bound[:, live]
            if low.size == 0:
                return np.maximum(settled, best)[:, 0], best[:, 0]
        if low.size > _MOST_CELLS:
            break
        cuts = low + (high - low) * np.arange(5)[:, None] / 4.0
        cuts[-1] = high
        low, high, bound = cuts[:-1].ravel(), cuts[1:].ravel(), np.tile(bound, (1, 4))
    return np.maximum(np.maximum(settled, best)[:, 0], np.max(bound, axis=1)), best[:, 0]


def _rest(log_a: Array) -> Array:
    """``log(1 - a)``."""
    return log1mexp(np.minimum(log_a, 0.0))


def _w(region: Region, log_x: Array) -> Array:
    """``log W(x)``, ``W(x) = 1 - V(1-x)``."""
    return region(Prob.from_log_u(log_x).complement()).log_q


def _least_mass(region: Region, log_p: float, log_a: Array, rest: Array) -> Array:
    """Log of the largest m, at least p, below which ``W(a m) + V((1-a) m) < p``; ``rest`` is ``log(1-a)``."""

    def short(log_m: Array) -> Mask:
        v = region(Prob.from_log_u(rest + log_m)).log_u
        return np.asarray(np.logaddexp(_w(region, log_a + log_m), v) < log_p, dtype=bool)

    out = np.full(log_a.shape, log_p)
    some = np.flatnonzero(short(out)) if log_p < 0.0 else np.empty(0, dtype=np.intp)
    log_a, rest = log_a[some], rest[some]
    low, high = out[some], np.zeros(some.size)
    for _ in range(30 if some.size else 0):
        middle = 0.5 * (low + high)
        less = short(middle)
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    out[some] = low
    return out


def _ratio(region: Region, log_p: float, log_a: Array, log_m: Array) -> Array:
    """``log g`` at points."""
    v = region(Prob.from_log_u(_rest(log_a) + log_m)).log_u
    w = np.maximum(_w(region, log_a + log_m), logsubexp(log_p, np.minimum(v, log_p)))
    with np.errstate(invalid="ignore"):
        return np.asarray(log_a + np.logaddexp(w, v) - w, dtype=float)


def _largest_ratio(region: Region, low: Array, high: Array, log_m: Array) -> Array:
    """Upper bound on ``log g`` over cells of a, m at least as given."""
    log_x, log_y = low + log_m, _rest(high) + log_m
    with np.errstate(invalid="ignore", divide="ignore"):
        spent = log_x - _w(region, log_x)
        steep = spent + region(Prob.from_log_u(log_y)).log_u - log_y
        steep = np.logaddexp(low, _rest(low) + steep)
        # where y may be 0: V(y) and 1/m as large as they may be
        plain = np.logaddexp(high, spent + region(Prob.from_log_u(_rest(low))).log_u - log_m)
    return np.fmin(np.fmin(steep, plain), np.inf)


@dataclass(eq=False)
class RefinedConditional(ProfileBound):
    """The exact price of conditional sampling, for a base that knows its region."""

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
        rows = np.array_split(np.ravel(epsilons), 1 + np.size(epsilons) // 64)
        return np.concatenate([self._log_deltas(row[:, None]) for row in rows])

    def _log_deltas(self, epsilons: Array) -> Array:
        def score(log_a: Array, log_g: Array) -> Array:
            with np.errstate(divide="ignore"):
                return np.log(np.maximum(-np.expm1(np.minimum(epsilons - log_g, 0.0)), 0.0)) + log_a

        # below this mass δ is less than exp(-700)
        top, _ = search(self._near_region, self.accept, score, -700.0, 1e-4)
        return np.where(epsilons[:, 0] >= self.pure_epsilon, -math.inf, np.minimum(top + 1e-12, 0.0))

    def _near_region(self, rank: Prob) -> Prob:
        """V, of a curve by the lines that bound it: a fifth of the work, and near enough but far in the tail."""
        if not isinstance(self.base.core, CurveBase):
            return self.base.region(rank)
        return smallest(Guarantee.region(view, rank) for view in self.base.views)

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        if log_delta == -math.inf:
            return Conversion(self.pure_epsilon, PURE)
        (top,), _ = search(self.base.region, self.accept, *epsilon_score(log_delta))
        value = max(float(top), 0.0) * (1.0 + 1e-12) + 1e-12
        return Conversion(min(value if top > 0.0 else 0.0, self.pure_epsilon), EXACT_PROFILE)


def epsilon_score(log_delta: float) -> tuple[Score, float]:
    """The score whose supremum is ε at δ, and the ``log a`` below which it has no value."""

    def score(log_a: Array, log_g: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            out = log_g + np.log1p(-np.exp(np.minimum(log_delta - log_a, 0.0)))
        return np.where(np.isnan(out), np.where(log_a > log_delta, np.inf, -np.inf), out)

    return score, log_delta


def bounds(base: Guarantee, law: RunCount, orders: Array | None = None) -> Iterator[RefinedConditional]:
    """The exact price, for conditional sampling."""
    if isinstance(law, Threshold):
        yield RefinedConditional(base, law.accept)
