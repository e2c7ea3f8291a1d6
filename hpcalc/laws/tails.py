"""Tails and coefficients of discrete laws, in log space, without SciPy.

Probabilities are evaluated by Loader's saddle-point form (a deviance plus Stirling corrections), which keeps all its
digits where a difference of log-gammas has none left; tail sums are written as integrals of a log-concave function
and integrated by Gauss-Legendre panels around its peak, so their cost does not grow with the mean.

References
----------
C. Loader, "Fast and accurate computation of binomial probabilities", 2000.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from hpcalc.logspace import Array, logsumexp

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
# 1/12, -1/360, 1/1260, ...: Bernoulli numbers B_2j / (2j (2j-1)), enough for an ulp from x = 10 on.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def log_mean_exp(x: Array | float) -> Array:
    """``log((1 - exp(-x)) / x)`` for ``x >= 0``: the mean of ``exp(-t)`` over ``[0, x]``; 0 at ``x = 0``."""
    x = np.asarray(x, dtype=float)
    small = np.minimum(x, 1.0)
    y = 0.25 * small * small
    term, total = np.ones_like(y), np.zeros_like(y)
    for j in range(1, 9):
        term = term * y / ((2 * j) * (2 * j + 1))
        total = total + term
    large = np.maximum(x, 1.0)
    return np.asarray(
        np.where(x <= 1.0, np.log1p(total) - 0.5 * small, np.log1p(-np.exp(-large)) - np.log(large)), dtype=float
    )


def _log_mean_exp(x: float) -> float:
    """:func:`log_mean_exp` of one number: solving for a mean asks for a hundred."""
    return float(log_mean_exp(x)) if x <= 1.0 else math.log1p(-math.exp(-x)) - math.log(x)


def log_ratio_of_means(x: float, h: float) -> float:
    """``h x + m(x) - m((1-h) x)`` with ``m(y) = log((1 - exp(-y)) / y)``, for ``x >= 0`` and any h.

    It has the sign of h. Relatively accurate as x or h goes to 0.
    """
    other = abs(1.0 - h) * x
    if abs(h) >= 0.5:
        return min(h, 1.0) * x + _log_mean_exp(x) - _log_mean_exp(other)
    if max(x, other) <= 1.0:
        return 0.5 * h * x + _log_sinhc_gap(x, h)
    # m(x) - m((1-h) x) = log((1 - e^-x) / (1 - e^-(1-h)x)) + log(1-h)
    step = math.copysign(math.expm1(-abs(h) * x) / math.expm1(-other), h) * math.exp(-min(x, other))
    return h * x + math.log1p(step) + math.log1p(-h)


def _log_sinhc_gap(x: float, h: float) -> float:
    """``S(x) - S((1-h) x)`` for ``S(x) = log(sinh(x/2) / (x/2))``, ``|x|, |(1-h) x| <= 1``.

    Relatively accurate as x or h goes to 0.
    """
    y = 0.25 * x * x
    term, gap, base = 1.0, 0.0, 0.0
    ratio = 1.0 - h
    for j in range(1, 9):
        term *= y / ((2 * j) * (2 * j + 1))
        power = ratio ** (2 * j)
        gap += term * (-math.expm1(2 * j * math.log1p(-h)) if abs(h) < 0.5 else 1.0 - power)
        base += term * power
    return math.log1p(gap / (1.0 + base))


def stirling_correction(x: Array | float) -> Array:
    """``log Gamma(x) - (x - 1/2) log x + x - log(2 pi)/2`` for ``x > 0``."""
    x = np.asarray(x, dtype=float)
    flat = x.ravel()
    out = np.zeros_like(flat)
    large = flat >= 10.0
    z = flat[large]
    inverse = 1.0 / z  # whose square may underflow, where that of z would overflow
    total = np.zeros_like(z)
    for c in reversed(_STIRLING):
        total = total * (inverse * inverse) + c
    out[large] = total * inverse
    rest = flat[~large]
    exact = np.fromiter(map(math.lgamma, rest.tolist()), dtype=float, count=rest.size)
    out[~large] = exact - (rest - 0.5) * np.log(rest) + rest - _HALF_LOG_2PI
    return np.asarray(out.reshape(x.shape), dtype=float)


def deviance(x: Array | float, m: Array | float) -> Array:
    """``x log(x/m) + m - x`` for ``x, m > 0``, without cancellation near ``x = m`` (Loader's ``bd0``)."""
    x, m = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(m, dtype=float))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap = x - m
        v = gap / (x + m)
        square = v * v
        series = np.zeros_like(v)
        for j in range(10, 0, -1):
            series = (series + 1.0 / (2 * j + 1)) * square
        near = gap * v + 2.0 * x * v * series
        far = x * (np.log(x) - np.log(m)) - gap
    return np.asarray(np.where(np.abs(v) < 0.1, near, far), dtype=float)


def log_beta(a: Array | float, b: Array | float) -> Array:
    """Logarithm of the beta function for ``a, b > 0``."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    big, small = np.maximum(a, b), np.minimum(a, b)
    with np.errstate(over="ignore"):
        return np.asarray(
            (0.5 - big) * np.log1p(small / big)
            - small * np.log1p(big / small)
            - 0.5 * np.log(small)
            + _HALF_LOG_2PI
            + stirling_correction(big)
            + stirling_correction(small)
            - stirling_correction(big + small),
            dtype=float,
        )


def log_poisson_pmf(k: Array | float, mu: Array | float) -> Array:
    """Log of the Poisson probability of ``k`` (an integer >= 0) at mean ``mu``."""
    k, mu = np.broadcast_arrays(np.asarray(k, dtype=float), np.asarray(mu, dtype=float))
    some = np.maximum(k, 1.0)
    out = -deviance(some, mu) - stirling_correction(some) - 0.5 * np.log(some) - _HALF_LOG_2PI
    return np.asarray(np.where(k == 0.0, -mu, out), dtype=float)


def log_binomial_pmf(k: Array | float, n: float, p: Array | float, q: Array | float) -> Array:
    """Log of the binomial probability of ``k`` in ``n`` trials; ``q = 1 - p`` is given to keep its digits."""
    k, p, q = np.broadcast_arrays(np.asarray(k, float), np.asarray(p, float), np.asarray(q, float))
    inner = (k > 0.0) & (k < n)
    some = np.where(inner, k, 0.5 * n)
    rest = n - some
    with np.errstate(divide="ignore", invalid="ignore"):
        none = np.where(p <= 0.5, np.log1p(-np.minimum(p, 0.5)), np.log(q))
        all_ = np.where(q <= 0.5, np.log1p(-np.minimum(q, 0.5)), np.log(p))
        if n == 0:
            return np.where(k == 0.0, 0.0, -np.inf)
        out = (
            float(stirling_correction(n)) - stirling_correction(some) - stirling_correction(rest)
            - deviance(some, n * p) - deviance(rest, n * q)
            + 0.5 * (math.log(n) - np.log(some) - np.log(rest)) - _HALF_LOG_2PI
        )  # fmt: skip
        edge = np.where(k == 0.0, n * none, n * all_)
        out = np.where((p <= 0.0) | (q <= 0.0), -np.inf, out)
    return np.asarray(np.where(inner, out, np.where((k < 0) | (k > n), -np.inf, edge)), dtype=float)


@lru_cache(maxsize=1)
def _panel() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(20)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def log_integral(log_g: Callable[[Array], Array], lo: float, hi: float, peak: float, scale: float = math.inf) -> float:
    """``log`` of the integral of ``exp(log_g)`` over ``[lo, hi]`` for a concave ``log_g`` with its maximum at ``peak``.

    ``scale`` is the distance over which ``log_g`` may change its slope where that is less than it takes to fall by 45.
    The absolute error is about 1e-14; the integral itself may lie far below the smallest double.
    """
    if not lo < hi:
        return -math.inf
    peak = min(max(peak, lo), hi)
    top = float(log_g(np.array([peak]))[0])
    if math.isinf(top):  # a peak on an end where log_g is -inf by rounding only
        return -math.inf
    nodes, weights = _panel()
    parts = []
    for side, room in ((-1.0, peak - lo), (1.0, hi - peak)):
        if room <= 0.0:
            continue
        # how far from the peak the integrand counts: the first distance, doubling, at which it has fallen by e^-45
        reach = room * 0.5 ** np.arange(1074.0 if room > 1e200 else 200.0)[::-1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            fallen = top - log_g(peak + side * reach) > 45.0
        length = float(reach[int(np.argmax(fallen))]) if fallen.any() else room
        cuts = length * np.linspace(0.0, 1.0, 1 + max(10, math.ceil(min(length / scale, 500.0))))
        width = np.diff(cuts)
        points = cuts[:-1, None] + width[:, None] * nodes
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = log_g(peak + side * points.ravel()) + np.log(width[:, None] * weights).ravel()
        parts.append(values)
    return float(logsumexp(np.concatenate(parts)))
