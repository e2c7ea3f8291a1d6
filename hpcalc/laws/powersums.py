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
_FEW = 12  # terms that are quicker added one by one than as a table
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
    >>> import numpy as np
    >>> total = PowerSum(np.array([0.0, 2.0]), np.log([1.0, 3.0]))
    >>> np.exp(total.log_value(np.log([0.5, 1.0])))
    array([1.75, 4.  ])
    """

    def __init__(self, k: Array, log_w: Array) -> None:
        self._k, self._log_w = k, log_w
        self._starts = self._tops = np.zeros(0)
        self._weights = np.zeros((0, 1))
        if k.size < _DENSE or k[-1] - k[0] != k.size - 1:
            return
        width = math.isqrt(k.size)
        rows = -(-k.size // width)
        padded = np.full(rows * width, -np.inf)
        padded[: k.size] = log_w
        table = padded.reshape(rows, width)
        top = table.max(axis=1)
        low = np.where(np.isfinite(table), table, np.inf).min(axis=1)
        # where x is nearly 0 the first power of a block is all that is left of it
        good = np.isfinite(table[:, 0]) & (top - low <= _SPAN)
        self._starts, self._tops = k[0] + width * np.flatnonzero(good), top[good]
        self._weights = np.exp(table[good] - self._tops[:, None])
        rest = np.repeat(~good & np.isfinite(top), width)[: k.size]
        self._k, self._log_w = k[rest], log_w[rest]

    def log_value(self, log_x: Array) -> Array:
        """``log sum_k w_k x^k`` at ``log x <= 0``; ``-inf`` is x = 0."""
        flat = np.asarray(log_x, dtype=float).ravel()
        return self._gather(flat, None).reshape(np.shape(log_x))

    def log_drop(self, log_x: Array, log_h: Array) -> Array:
        """``log sum_k w_k (x^k - (x e^-h)^k)``, accurate however small h is; every k >= 1, ``log x`` finite."""
        x, h = np.broadcast_arrays(np.asarray(log_x, dtype=float), np.asarray(log_h, dtype=float))
        return self._gather(x.ravel(), h.ravel()).reshape(x.shape)

    def _gather(self, log_x: Array, log_h: Array | None) -> Array:
        out = np.empty_like(log_x)
        size = max(1, _CHUNK // max(self._weights.shape[1], self._starts.size, min(self._k.size, _DENSE), 1))
        for start in range(0, log_x.size, size):
            part = slice(start, start + size)
            x, h = log_x[part], None if log_h is None else log_h[part]
            total = self._one_by_one(x, h)
            out[part] = np.logaddexp(total, self._blocks(x, h)) if self._starts.size else total
        return out

    def _one_by_one(self, log_x: Array, log_h: Array | None) -> Array:
        total = np.full(log_x.size, -np.inf)
        if self._k.size <= _FEW and log_h is None:
            for k, log_w in zip(self._k, self._log_w, strict=True):
                total = np.logaddexp(total, log_w + _scaled(np.array([k]), log_x)[:, 0])
            return total
        for start in range(0, self._k.size, _DENSE):
            k, log_w = self._k[start : start + _DENSE], self._log_w[start : start + _DENSE]
            terms = log_w[None, :] + _scaled(k, log_x)
            if log_h is not None:
                with np.errstate(divide="ignore"):
                    terms = terms + log1mexp_minus(np.log(k)[None, :] + log_h[:, None])
            total = np.logaddexp(total, logsumexp(terms, axis=1))
        return total

    def _blocks(self, log_x: Array, log_h: Array | None) -> Array:
        i = np.arange(float(self._weights.shape[1]))
        powers = np.exp(_scaled(i, log_x))
        outer = self._tops[None, :] + _scaled(self._starts, log_x)
        with np.errstate(divide="ignore"):
            inner = np.log(powers @ self._weights.T)
        if log_h is None:
            return logsumexp(outer + inner, axis=1)
        # x^(c+i) - y^(c+i) = (x^c - y^c) x^i + y^c (x^i - y^i), both parts positive
        h = np.exp(log_h)[:, None]
        tiny, huge = h < 1e-200, np.isinf(h)  # huge: y = 0
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            fall = np.where(tiny, i, np.where(huge, i > 0.0, -np.expm1(-i * h) / np.where(tiny, 1.0, h)))
            scale = np.where(huge, 0.0, log_h[:, None])
            first = inner + log1mexp_minus(np.log(self._starts) + log_h[:, None])
            second = np.log((powers * fall) @ self._weights.T) + scale - self._starts * h
        return np.asarray(
            np.logaddexp(logsumexp(outer + first, axis=1), logsumexp(outer + second, axis=1)), dtype=float
        )
