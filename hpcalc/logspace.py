"""Log-space arithmetic: the only numerics every other module may assume.

Probabilities here range from 1e-400 to 1 minus as little, so they travel as logarithms, and a rank ``u`` in (0, 1)
travels with its complement (:class:`Prob`). SciPy has most of these functions; importing it costs three times what
NumPy costs, which a prompt notices, so the few that are needed stand here and are tested against mpmath.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
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


def log1mexp(x: Array | float) -> Array:
    """``log(1 - exp(x))`` for ``x <= 0``, accurate at both ends (Maechler's switch at -log 2).

    Examples
    --------
    >>> round(float(log1mexp(-1e-20)), 9)
    -46.05170186
    """
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
    """Sorted distinct elements; ``np.unique`` would load NumPy's masked arrays, a third of its own start-up.

    Examples
    --------
    >>> distinct(np.array([2.0, 1.0, 2.0]))
    array([1., 2.])
    """
    out: NDArray[_Item] = np.sort(x, axis=None)
    return np.asarray(out[np.concatenate([np.ones(min(out.size, 1), dtype=bool), out[1:] != out[:-1]])])


def softplus(x: Array | float) -> Array:
    """``log(1 + exp(x))``."""
    return np.asarray(np.logaddexp(0.0, x), dtype=float)


def _log_erfc_tail(x: Array) -> Array:
    """log Phi(-x) for x >= 10: normal density times Mills' ratio."""
    return np.asarray(-0.5 * x * x - _HALF_LOG_2PI - np.log(_mills_denominator(x)), dtype=float)


def _mills_denominator(x: Array) -> Array:
    """One over Mills' ratio for x >= 10 by its continued fraction (backward, 12 terms: exact to an ulp)."""
    fraction = np.zeros_like(x)
    for j in range(12, 0, -1):
        fraction = j / (x + fraction)
    return x + fraction


def _erfc(x: Array) -> Array:
    # math.erfc is correctly rounded to an ulp or so and, called through map, faster than loading SciPy.
    return np.fromiter(map(math.erfc, x.tolist()), dtype=float, count=x.size)


def log_ndtr(x: Array | float) -> Array:
    """Logarithm of the standard normal distribution function, to a few ulp for every argument.

    Examples
    --------
    >>> round(float(log_ndtr(-50.0)), 9)
    -1254.831361139
    """
    x = np.asarray(x, dtype=float)
    flat = x.ravel()
    upper = 0.5 * _erfc(np.abs(flat) * _SQRT_HALF)
    with np.errstate(divide="ignore"):
        out = np.where(flat > 0.0, np.log1p(-upper), np.log(np.maximum(upper, 5e-324)))
    far = flat < -10.0
    if far.any():
        with np.errstate(over="ignore", invalid="ignore"):
            tail = _log_erfc_tail(-flat[far])
        out[far] = np.where(np.isneginf(flat[far]), -np.inf, tail)
    return np.asarray(out.reshape(x.shape), dtype=float)


def log_mills(x: Array | float) -> Array:
    """Logarithm of Mills' ratio ``(1 - Phi(x)) / phi(x)``, without the cancellation of two large logarithms."""
    x = np.asarray(x, dtype=float)
    out = np.empty(x.shape)
    far = x > 10.0
    near = x[~far]
    out[~far] = np.log(0.5 * _erfc(near * _SQRT_HALF)) + 0.5 * near * near + _HALF_LOG_2PI
    if far.any():
        out[far] = -np.log(_mills_denominator(x[far]))
    return out


# Coefficients of Wichura's AS 241 (PPND16), Applied Statistics 37 (1988): Phi^-1 to about 1e-16.
_A = (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
      13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608)  # fmt: skip
_B = (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
      5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0)  # fmt: skip
_C = (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
      3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734)  # fmt: skip
_D = (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
      0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0)  # fmt: skip
_E = (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
      0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772)  # fmt: skip
_F = (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
      0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0)  # fmt: skip


def _poly(coefficients: tuple[float, ...], x: Array) -> Array:
    out = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        out = out * x + c
    return out


def ndtri_exp(log_p: Array | float) -> Array:
    """Inverse of :func:`log_ndtr`: the normal quantile of ``exp(log_p)``.

    AS 241 gives the start, one Newton step on ``log Phi`` makes it exact where ``log_p`` lies below what a double
    can hold as a probability.

    Examples
    --------
    >>> round(float(ndtri_exp(-1254.8313611394194)), 9)
    -50.0
    """
    log_p = np.asarray(log_p, dtype=float)
    flat = log_p.ravel()
    half = np.minimum(flat, log1mexp(np.minimum(flat, 0.0)))  # log of the smaller tail
    sign = np.where(flat < -_LOG2, -1.0, 1.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        p = np.exp(half)
        q = 0.5 - p
        r = np.sqrt(-half)
        centre = q * _poly(_A, 0.180625 - q * q) / _poly(_B, 0.180625 - q * q)
        near = _poly(_C, r - 1.6) / _poly(_D, r - 1.6)
        far = _poly(_E, np.minimum(r, 27.0) - 5.0) / _poly(_F, np.minimum(r, 27.0) - 5.0)
        # beyond AS 241's range Mills' ratio gives the start: x^2 = -2 (log p + log(x sqrt(2 pi)))
        guess = np.sqrt(-2.0 * half)
        guess = np.sqrt(np.maximum(-2.0 * (half + np.log(np.maximum(guess, 1.0)) + _HALF_LOG_2PI), 0.0))
        x = np.where(q <= 0.425, centre, np.where(r <= 5.0, near, np.where(r <= 26.0, far, guess)))
        tail = np.isfinite(x) & (r > 5.0)
        if tail.any():
            y = x[tail]
            for _ in range(2):
                log_cdf = log_ndtr(-y)
                log_pdf = -0.5 * y * y - _HALF_LOG_2PI
                y = y + (log_cdf - half[tail]) * np.exp(log_cdf - log_pdf)
            x[tail] = y
        x = np.where(np.isneginf(half), np.inf, x)
    return np.asarray((sign * x).reshape(log_p.shape), dtype=float)


class Prob(NamedTuple):
    """A rank ``u`` in [0, 1] kept as two logarithms, so that neither ``u`` nor ``1 - u`` loses digits.

    Attributes
    ----------
    log_u, log_q : ndarray
        Natural logarithms of ``u`` and of ``1 - u``, same shape.

    Examples
    --------
    >>> Prob.from_logit(np.array([-800.0])).log_u
    array([-800.])
    """

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

    def take(self, index: int | slice | Mask | Indices) -> Prob:
        """Select elements, as ``ndarray.__getitem__`` does."""
        return Prob(np.asarray(self.log_u[index]), np.asarray(self.log_q[index]))


def _round(value: float, digits: int, rounding: str) -> float:
    if not math.isfinite(value) or value == 0.0:
        return value
    # repr is the shortest decimal that reads back as the same double, so a number the user typed stays as typed.
    return float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value)))))


def round_up(value: float, digits: int = 10) -> float:
    """Round towards +inf to ``digits`` significant decimal digits.

    Examples
    --------
    >>> round_up(2.14193892839, 5), round_up(0.1, 3)
    (2.142, 0.1)
    """
    return _round(value, digits, ROUND_CEILING)


def round_down(value: float, digits: int = 10) -> float:
    """Round towards -inf to ``digits`` significant decimal digits.

    Examples
    --------
    >>> round_down(2.14193892839, 5)
    2.1419
    """
    return _round(value, digits, ROUND_FLOOR)


class Upper(float):
    """A number that is an upper bound: every format rounds it up. In all else it is a float."""

    __slots__ = ()


class Lower(float):
    """A number that is a lower bound: every format rounds it down. In all else it is a float."""

    __slots__ = ()
