"""Sums ``sum_k w_k x^k`` with positive weights, for many x at once, without loss of small terms.

A law of K cut at 100000 needs such sums at thousands of ranks, x anywhere from 1 down to 1e-300 and below. Term by
term that is a billion exponentials. Here the powers are split, ``x^(c + i) = x^c x^i``, so that a block of consecutive
k costs one row of a matrix product; blocks whose weights span too many decades for that are summed term by term.
"""

from __future__ import annotations

import math

import numpy as np

from hpcalc.logspace import Array, log1mexp, logsumexp

_DENSE = 64  # fewer terms than this are summed one by one
_SPAN = 200.0  # log-range of weights a block may have: a term lost to underflow is then below 1e-200 of the block
_CHUNK = 1 << 19


def log1mexp_minus(log_x: Array | float) -> Array:
    """``log(1 - exp(-x))`` from ``log x``, for x of any size (x below the smallest double included)."""
    log_x = np.asarray(log_x, dtype=float)
    with np.errstate(over="ignore"):
        return np.where(log_x < -40.0, log_x, log1mexp(-np.exp(np.maximum(log_x, -40.0))))


def _scaled(k: Array, log_x: Array) -> Array:
    """``k log x`` for every pair, 0 where k is 0 and x too."""
    with np.errstate(invalid="ignore"):
        return np.where(k[None, :] == 0.0, 0.0, k[None, :] * log_x[:, None])


class PowerSum:
    """``sum_k w_k x^k``.

    ``k`` are increasing whole numbers >= 0, ``log_w`` the logarithms of their weights (``-inf`` is allowed).

    Examples
    --------
    >>> total = PowerSum(np.array([0.0, 2.0]), np.log([1.0, 3.0]))
    >>> np.exp(total.log_value(np.log([0.5, 1.0])))
    array([1.75, 4.  ])
    """

    def __init__(self, k: Array, log_w: Array) -> None:
        consecutive = k.size >= _DENSE and k[-1] - k[0] == k.size - 1
        width = math.isqrt(k.size) if consecutive else 1
        table = np.append(log_w, np.full(-k.size % width, -np.inf)).reshape(-1, width)
        top, low = table.max(axis=1), np.where(np.isfinite(table), table, np.inf).min(axis=1)
        # where x is nearly 0 the first power of a block is all that is left of it
        good = np.isfinite(table[:, 0]) & (top - low <= _SPAN)
        rest = np.repeat(~good & np.isfinite(top), width)[: k.size]
        # blocks of consecutive powers, then the terms that go one by one: first power, largest weight, the weights
        # relative to it
        blocks = k[::width][good], top[good], np.exp(table[good] - top[good][:, None])
        self._parts = [part for part in (blocks, (k[rest], log_w[rest], np.ones((rest.sum(), 1)))) if part[0].size]

    def log_value(self, log_x: Array) -> Array:
        """``log sum_k w_k x^k`` at ``log x <= 0``; ``-inf`` is x = 0."""
        return self._gather(np.asarray(log_x, dtype=float), None)

    def log_drop(self, log_x: Array, log_h: Array) -> Array:
        """``log sum_k w_k (x^k - (x e^-h)^k)``, accurate however small h is; every k >= 1, ``log x`` finite."""
        return self._gather(*np.broadcast_arrays(np.asarray(log_x, dtype=float), np.asarray(log_h, dtype=float)))

    def _gather(self, log_x: Array, log_h: Array | None) -> Array:
        x, h = log_x.ravel(), None if log_h is None else log_h.ravel()
        out = np.full(x.size, -np.inf)
        for starts, tops, weights in self._parts:
            size = max(1, _CHUNK // max(starts.size, weights.shape[1]))
            for start in range(0, x.size, size):
                part = slice(start, start + size)
                terms = _log_terms(starts, weights, x[part], None if h is None else h[part])
                out[part] = np.logaddexp(out[part], logsumexp(tops + terms, axis=1))
        return out.reshape(log_x.shape)


def _log_terms(starts: Array, weights: Array, log_x: Array, log_h: Array | None) -> Array:
    """``log sum_i w_i x^(c+i)`` for every x and every start c; with h, of ``x^(c+i) - (x e^-h)^(c+i)`` instead."""
    i = np.arange(float(weights.shape[1]))
    powers, outer = np.exp(_scaled(i, log_x)), _scaled(starts, log_x)
    with np.errstate(divide="ignore"):
        inner = np.log(powers @ weights.T)
    if log_h is None:
        return np.asarray(outer + inner, dtype=float)
    # x^(c+i) - y^(c+i) = (x^c - y^c) x^i + y^c (x^i - y^i), both parts positive
    h = np.exp(log_h)[:, None]
    tiny, huge = h < 1e-200, np.isinf(h)  # huge: y = 0
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        fall = np.where(tiny, i, np.where(huge, i > 0.0, -np.expm1(-i * h) / np.where(tiny, 1.0, h)))
        scale = np.where(huge, 0.0, log_h[:, None])
        first = inner + log1mexp_minus(np.log(starts) + log_h[:, None])
        second = np.log((powers * fall) @ weights.T) + scale - starts * h
    return np.asarray(outer + np.logaddexp(first, second), dtype=float)
