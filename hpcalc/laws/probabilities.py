"""Probabilities of discrete laws and their tail integrals, in log space, without SciPy.

Probabilities are evaluated by Loader's saddle-point form (a deviance plus Stirling corrections), which keeps all its
digits where a difference of log-gammas has none left. A tail is the integral of a log-concave function, by
Gauss-Legendre panels around its peak, so its cost does not grow with the mean.

References
----------
C. Loader, "Fast and accurate computation of binomial probabilities", 2000.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from hpcalc.logspace import HALF_LOG_2PI, Array, Prob, distinct, logsumexp

ZERO = Prob(np.array(-math.inf), np.array(0.0))
ONE = ZERO.complement()
# Bernoulli numbers B_2j / (2j (2j-1)), from j = 8 down to 1: enough for an ulp from x = 10 on.
_STIRLING = (-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_ATANH = 1.0 / np.arange(21.0, 2.0, -2.0)  # (atanh v - v) / v^3 as powers of v^2


def log_mean_exp(x: Array | float) -> Array:
    """``log((1 - exp(-x)) / x)`` for ``x >= 0``: the mean of ``exp(-t)`` over ``[0, x]``; all digits near 0 too."""
    x = np.maximum(x, 1e-300)
    series = x * (x * (1.0 - np.minimum(x, 1.0) ** 2 / 120.0) / 24.0 - 0.5)
    return np.asarray(np.where(x < 0.01, series, np.log(-np.expm1(-x) / x)), dtype=float)


def stirling_correction(x: Array | float) -> Array:
    """``log Gamma(x) - (x - 1/2) log x + x - log(2 pi)/2`` for ``x > 0``."""
    x = np.asarray(x, dtype=float)
    inverse = 1.0 / np.maximum(x, 10.0)  # whose square may underflow, where that of x would overflow
    out = np.asarray(np.polyval(_STIRLING, inverse * inverse) * inverse, dtype=float)
    small = x < 10.0
    if small.any():
        y = x[small]
        exact = np.array([math.lgamma(each) for each in y.tolist()])
        out[small] = exact - (y - 0.5) * np.log(y) + y - HALF_LOG_2PI
    return out


def deviance(x: Array | float, m: Array | float) -> Array:
    """``x log(x/m) + m - x`` for ``x, m > 0``, without cancellation near ``x = m`` (Loader's ``bd0``)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap = np.asarray(x - m, dtype=float)
        v = gap / (x + m)
        near = gap * v + 2.0 * x * v**3 * np.polyval(_ATANH, v * v)
        far = x * (np.log(x) - np.log(m)) - gap
    return np.asarray(np.where(np.abs(v) < 0.1, near, far), dtype=float)


def log_beta(a: Array, b: float) -> Array:
    """Logarithm of the beta function for ``a, b > 0``."""
    big, small = np.maximum(a, b), np.minimum(a, b)
    with np.errstate(over="ignore"):
        powers = (0.5 - big) * np.log1p(small / big) - small * np.log1p(big / small) - 0.5 * np.log(small)
        corrections = stirling_correction(big) + stirling_correction(small) - stirling_correction(big + small)
    return np.asarray(powers + HALF_LOG_2PI + corrections, dtype=float)


def log_poisson_pmf(k: Array, mu: float) -> Array:
    """Log of the Poisson probability of ``k`` (an integer >= 0) at mean ``mu``."""
    k = np.asarray(k, dtype=float)
    some = np.maximum(k, 1.0)
    out = -deviance(some, mu) - stirling_correction(some) - 0.5 * np.log(some) - HALF_LOG_2PI
    return np.asarray(np.where(k == 0.0, -mu, out), dtype=float)


def log_binomial_pmf(k: Array, n: int, p: float) -> Array:
    """Log of the binomial probability of ``k`` in ``n`` trials: of two Poisson numbers, given that they add up to n."""
    k = np.asarray(k, dtype=float)
    parts = log_poisson_pmf(k, n * p) + log_poisson_pmf(np.maximum(n - k, 0.0), n * (1.0 - p))
    return np.where(k <= n, parts - log_poisson_pmf(np.array(n), n), -np.inf)


@cache
def _legendre() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(20)  # loaded where it is used, which is not on the quick path
    return nodes, weights


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
