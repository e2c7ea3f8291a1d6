"""Log-space arithmetic: the only numerics every other module may assume.

Probabilities here range from 1e-400 to 1 minus as little, so they travel as logarithms, and a rank ``u`` in (0, 1)
travels with its complement (:class:`Prob`). SciPy has most of these functions; importing it costs three times what
NumPy costs, which a prompt notices, so the few that are needed stand here and are tested against mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]
_Item = TypeVar("_Item", bound=np.generic)
_LOG2 = math.log(2.0)
_SQRT_HALF = math.sqrt(0.5)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_legendre = cache(lambda: np.polynomial.legendre.leggauss(20))  # loaded where it is used: not on the quick path


def log1mexp(x: Array | float) -> Array:
    """``log(1 - exp(x))`` for ``x <= 0``, accurate at both ends (Maechler's switch at -log 2)."""
    x = np.asarray(x, dtype=float)
    with np.errstate(divide="ignore"):
        return np.where(x > -_LOG2, np.log(-np.expm1(np.minimum(x, 0.0))), np.log1p(-np.exp(np.minimum(x, -_LOG2))))


def log_expm1(x: Array | float) -> Array:
    """``log(exp(x) - 1)`` for ``x >= 0`` without overflow."""
    x = np.asarray(x, dtype=float)
    return x + log1mexp(-x)


def logaddexp(a: Array | float, b: Array | float) -> Array:
    """``log(exp(a) + exp(b))``; -inf and +inf are allowed."""
    return np.asarray(np.logaddexp(a, b), dtype=float)


def logsubexp(a: Array | float, b: Array | float) -> Array:
    """``log(exp(a) - exp(b))`` for ``a >= b``; -inf where they are equal (or where rounding put ``b`` above)."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    with np.errstate(invalid="ignore"):
        out = a + log1mexp(np.minimum(b - a, 0.0))
    return np.asarray(np.where(np.isneginf(a), -np.inf, out), dtype=float)


def logsumexp(x: Array, axis: int = -1) -> Array:
    """``log(sum(exp(x)))`` along an axis; all -inf gives -inf, any +inf gives +inf."""
    x = np.asarray(x, dtype=float)
    top = np.max(x, axis=axis, keepdims=True)
    anchor = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        out = np.log(np.sum(np.exp(x - anchor), axis=axis)) + np.squeeze(anchor, axis=axis)
    return np.asarray(out, dtype=float)


def distinct(x: NDArray[_Item]) -> NDArray[_Item]:
    """Sorted distinct elements; ``np.unique`` would load NumPy's masked arrays, a third of its own start-up."""
    out: NDArray[_Item] = np.sort(x, axis=None)
    return np.asarray(out[np.concatenate([np.ones(min(out.size, 1), dtype=bool), out[1:] != out[:-1]])])


def log_integral(log_g: Callable[[Array], Array], lo: float, hi: float, peak: float, bend: float) -> float:
    """``log`` of the integral of ``exp(log_g)`` over ``[lo, hi]`` for a concave ``log_g`` with its maximum at ``peak``.

    Around ``bend`` its slope may change over a distance of 1. The absolute error is about 1e-14; the integral itself
    may lie far below the smallest double.
    """
    if not lo < hi:
        return -math.inf
    peak = min(max(peak, lo), hi)
    parts = []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        top = log_g(np.array([peak]))
        for end in (lo, hi):
            # how far from the peak the integrand counts: the first distance, doubling, at which it has fallen by e^-45
            reach = peak + (end - peak) * 0.5 ** np.arange(200.0)[::-1]
            fallen = top - log_g(reach) > 45.0
            last = float(reach[np.argmax(fallen)]) if fallen.any() else end
            near = np.clip(bend + np.arange(-40.0, 41.0), min(peak, last), max(peak, last))
            cuts = distinct(np.concatenate([np.linspace(peak, last, 11), near]))
            half = 0.5 * np.diff(cuts)[:, None]
            nodes, weights = _legendre()
            points = cuts[:-1, None] + half * (nodes + 1.0)
            parts.append(log_g(points.ravel()) + np.log(half * weights).ravel())
    return float(logsumexp(np.concatenate(parts)))


def softplus(x: Array | float) -> Array:
    """``log(1 + exp(x))``."""
    return np.asarray(np.logaddexp(0.0, x), dtype=float)


def sharper(log_x: Array, log_rest: Array) -> Array:
    """``log x`` given with ``log(1 - x)``, each good where it is not near 0: from the latter where x > 1/2."""
    return np.asarray(np.where(log_rest < log_x, log1mexp(log_rest), log_x), dtype=float)


def times(count: Array | float, log_x: Array | float) -> Array:
    """``count * log_x`` where 0 times -inf is 0: the logarithm of ``x**count`` with ``0**0 = 1``."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.equal(count, 0.0), 0.0, np.multiply(count, log_x)), dtype=float)


def log_ndtr(x: Array | float) -> Array:
    """Logarithm of the standard normal distribution function, to a few ulp for every argument."""
    x = np.asarray(x, dtype=float)
    with np.errstate(over="ignore"):
        tail = log_mills(np.abs(x)) - 0.5 * x * x - _HALF_LOG_2PI
    return np.where(x > 0.0, log1mexp(tail), tail)


def log_mills(x: Array | float) -> Array:
    """Logarithm of Mills' ratio ``(1 - Phi(x)) / phi(x)``, without the cancellation of two large logarithms."""
    x = np.asarray(x, dtype=float)
    out = np.empty(x.shape)
    far = x > 10.0
    near = x[~far]
    # math.erfc is correct to an ulp or so and, called through map, faster than loading SciPy
    erfc = np.fromiter(map(math.erfc, (near * _SQRT_HALF).tolist()), dtype=float, count=near.size)
    out[~far] = np.log(0.5 * erfc) + 0.5 * near * near + _HALF_LOG_2PI
    out[far] = -np.log(x[far] + mills_fraction(x[far]))
    return out


def mills_fraction(x: Array) -> Array:
    """The continued fraction that Mills' ratio is one over, less ``x >= 10``: 12 terms are exact to an ulp."""
    fraction = np.zeros_like(x)
    for j in range(12, 0, -1):
        fraction = j / (x + fraction)
    return fraction


class Prob(NamedTuple):
    """A rank ``u`` in [0, 1] kept as logarithms of ``u`` and of ``1 - u``, so that neither loses digits."""

    log_u: Array
    log_q: Array

    @classmethod
    def from_u(cls, u: Array | float) -> Prob:
        """From plain probabilities (``1 - u`` is then only as good as ``u`` in a double)."""
        u = np.asarray(u, dtype=float)
        with np.errstate(divide="ignore"):
            return cls(np.log(u), np.log1p(-u))

    @classmethod
    def from_log_u(cls, log_u: Array | float) -> Prob:
        """From ``log u <= 0``."""
        log_u = np.asarray(log_u, dtype=float)
        return cls(log_u, log1mexp(log_u))

    @classmethod
    def from_log_q(cls, log_q: Array | float) -> Prob:
        """From ``log(1 - u) <= 0``."""
        return cls.from_log_u(log_q).complement()

    @classmethod
    def from_logit(cls, z: Array | float) -> Prob:
        """From ``z = log(u / (1 - u))``."""
        z = np.asarray(z, dtype=float)
        return cls(-softplus(-z), -softplus(z))

    @classmethod
    def from_normal(cls, x: Array | float) -> Prob:
        """From ``x = Phi^-1(u)``."""
        x = np.asarray(x, dtype=float)
        return cls(log_ndtr(x), log_ndtr(-x))

    def complement(self) -> Prob:
        """The rank ``1 - u``."""
        return Prob(self.log_q, self.log_u)

    @property
    def u(self) -> Array:
        """Plain ``u`` (may underflow)."""
        return np.asarray(np.exp(self.log_u), dtype=float)

    @property
    def logit(self) -> Array:
        """``log(u / (1 - u))``."""
        return self.log_u - self.log_q

    @property
    def normal(self) -> Array:
        """``Phi^-1(u)``: from the smaller tail, by three steps of Halley's method, to an ulp or two of ``1 + |x|``."""
        small = np.minimum(self.log_u, self.log_q)
        half = np.maximum(small, -8e307)
        x = np.sqrt(np.maximum(-2.0 * (half + _LOG2), 0.0))
        x = x * (x + 2.0) / (x + 2.5)
        for _ in range(3):
            log_ratio = log_mills(x)
            ratio = np.exp(log_ratio)
            newton = (log_ratio - 0.5 * x * x - _HALF_LOG_2PI - half) * ratio
            x = x + newton / (1.0 + 0.5 * newton * (1.0 / ratio - x))
        far = np.where(np.isneginf(small), np.inf, x)
        return np.where(self.log_u < self.log_q, -far, far)

    def take(self, index: int | slice | Mask | Indices) -> Prob:
        """Select elements, as ``ndarray.__getitem__`` does."""
        return Prob(np.asarray(self.log_u[index]), np.asarray(self.log_q[index]))


ZERO = Prob(np.array(-math.inf), np.array(0.0))
ONE = ZERO.complement()


class Upper(float):
    """A number that is an upper bound: every format rounds it up. In all else it is a float."""


class Lower(float):
    """A number that is a lower bound: every format rounds it down. In all else it is a float."""


def direction(value: float) -> str:
    """How a number is rounded: an ``Upper`` bound up, a ``Lower`` one down, any other to nearest."""
    return ROUND_CEILING if isinstance(value, Upper) else ROUND_FLOOR if isinstance(value, Lower) else ROUND_HALF_EVEN


def significant(value: float, digits: int) -> float:
    """A number rounded to significant decimal digits; its shortest decimal form counts, so ``0.1`` stays ``0.1``."""
    if not math.isfinite(value) or value == 0.0:
        return float(value)
    out = float(Context(prec=digits, rounding=direction(value)).create_decimal(Decimal(repr(float(value)))))
    # at the ends of the range the nearest double of the rounded decimal is infinite, or 0
    return out if math.isfinite(out) and out != 0.0 else float(value)
