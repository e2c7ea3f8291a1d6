"""Laws given by a table of probabilities, and any such law."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hpcalc.errors import InvalidInput, checked_number, require
from hpcalc.laws.law import Echo, Law, whole_number
from hpcalc.logspace import Array, Prob, log1mexp, logsumexp

_WIDTH = 8  # terms of a block, where the square root of all is not more
_SPAN = 600.0  # log-range of weights a block may have: a term lost to underflow is then below 1e-40 of the first one
_CHUNK = 1 << 15  # numbers worked on at once


class Tabular(Law):
    """A law with finitely many values, evaluated by direct sums in log space."""

    _table: tuple[Array, Array]  # values of K and the logarithms of their probabilities

    def _tabulate(self, k: Array, log_p: Array) -> None:
        """Make the law from values of K, increasing, and the logarithms of their probabilities (which sum to 1)."""
        k, log_p = k[log_p > -np.inf], log_p[log_p > -np.inf]
        p = np.exp(log_p)
        mean = math.fsum((k * p).tolist())
        sd, quantile = math.sqrt(float(np.sum(p * (k - mean) ** 2))), math.fsum((p * k / (k + 1.0)).tolist())
        vars(self).update(_table=(k, log_p), max_runs=int(k[-1]), mean=mean, sd=sd, expected_quantile=quantile)
        vars(self).update(log_prob_zero=float(log_p[0]) if k[0] == 0.0 else -math.inf)

    def log_pmf(self, k: Array) -> Array:
        values, log_p = self._table
        k = np.asarray(k, dtype=float)
        i = np.minimum(np.searchsorted(values, k), values.size - 1)
        return np.where(values[i] == k, log_p[i], -np.inf)

    def log_sf(self, k: int) -> float:
        values, log_p = self._table
        return min(float(logsumexp(np.append(log_p[values > k], -np.inf))), 0.0)

    @cached_property
    def _sums(self) -> tuple[PowerSum, ...]:
        """``f(x) - P[K = 0]``, ``f'(x)`` and ``f''(x)`` as sums of powers."""
        k, log_p = self._table
        with np.errstate(divide="ignore"):
            log_first, log_second = log_p + np.log(k), log_p + np.log(k) + np.log(np.maximum(k - 1.0, 0.0))
        # from where on nothing is to come of f'' at x = 1, still less is of the others, and of all at smaller x
        v = np.exp(log_second - log_second.max(initial=-1e308))
        size = max(int(np.count_nonzero(np.cumsum(v[::-1])[::-1] > 1e-20 * v.sum())), int(np.searchsorted(k, 2.0)))
        log_w = (np.where(k > 0.0, log_p, -np.inf), log_first, log_second)
        return tuple(PowerSum(k[:size] - order, each[:size]) for order, each in enumerate(log_w))

    def log_density(self, rank: Prob) -> Array:
        return self._sums[1].log_value(rank.log_q)

    def log_density_slope(self, rank: Prob) -> Array:
        return self._sums[2].log_value(rank.log_q)

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        with np.errstate(invalid="ignore"):
            log_share = np.where(np.isneginf(log_width), -np.inf, np.minimum(log_width - lo.log_q, 0.0))
        near = np.maximum(log_share, -100.0)
        drop = self._sums[0].log_drop(lo.log_q, -log1mexp(near))
        return np.asarray(drop + (log_share - near), dtype=float)  # below e^-100 in proportion to the width

    def thin(self, log_keep: float) -> Law:
        k, log_p = self._table
        tilted = log_p + k * log_keep
        return FinitePmf(tuple(zip(k.astype(int).tolist(), np.exp(tilted - logsumexp(tilted)).tolist(), strict=True)))


@dataclass(frozen=True)
class FinitePmf(Tabular):
    """Any law on finitely many numbers of runs.

    Parameters
    ----------
    probabilities : tuple of (int, float)
        Pairs ``(k, P[K = k])``; a mapping, or a list of probabilities of 0, 1, 2, ..., is accepted too. They must sum
        to 1 within 1e-9 and are then scaled to sum to 1 exactly.

    Raises
    ------
    InvalidInput
        Naming ``pmf``: a negative or undefined probability, a repeated or fractional k, a wrong sum, or no chance of
        any run at all.

    Examples
    --------
    >>> FinitePmf(((1, 0.5), (1000, 0.5))).mean
    500.5
    """

    probabilities: tuple[tuple[int, float], ...]
    name: ClassVar[str] = "pmf"

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", _checked_pmf(self.probabilities))
        k, p = np.array(self.probabilities, dtype=float).T
        self._tabulate(k, np.log(p))

    def parameters(self) -> Echo:
        if len(self.probabilities) > 32:
            first, last = self.probabilities[0][0], self.probabilities[-1][0]
            return {"pmf": f"{len(self.probabilities)} values from {first} to {last}"}
        return {"pmf": ",".join(f"{k}={p!r}" for k, p in self.probabilities)}


def _checked_pmf(data: Any) -> tuple[tuple[int, float], ...]:
    """Numbers of runs and their probabilities, increasing, without zeros, scaled to sum to 1."""
    remedy = "give probabilities of 0, 1, 2, ... runs, or a mapping from the number of runs to its probability"
    require(("pmf", data, isinstance(data, Iterable) and not isinstance(data, (str, bytes)), remedy))
    items = list(data.items() if isinstance(data, Mapping) else data)
    if not any(isinstance(item, (list, tuple)) for item in items):
        items = list(enumerate(items))
    require(("pmf", data, all(isinstance(item, (list, tuple)) and len(item) == 2 for item in items), remedy))
    out: dict[int, float] = {}
    for key, value in items:
        if isinstance(key, str):  # JSON has no other keys
            try:
                key = float(key)
            except ValueError:
                raise InvalidInput("pmf", key, "give the number of runs as a whole number >= 0") from None
        k = whole_number("pmf", key, 0)
        remedy = f"give a probability between 0 and 1 for {k} runs"
        p = checked_number("pmf", value, remedy, lambda x: 0.0 <= x <= 1.0 + 1e-9)
        require(("pmf", f"{k} given twice", k not in out, "give each number of runs once"))
        out[k] = p
    total = math.fsum(out.values())
    require(("pmf", f"a sum of {total!r}", abs(total - 1.0) <= 1e-9, "give probabilities that sum to 1"))
    kept = tuple((k, out[k] / total) for k in sorted(out) if out[k] > 0.0)
    require(("pmf", "no run at all", kept[-1][0] > 0, "give some probability to 1 run or more"))
    return kept


class PowerSum:
    """``sum_k w_k x^k``, k increasing whole numbers, from the logarithms of the weights; where those are -inf any k.

    A law of K cut at 100000 needs such sums at thousands of ranks, x anywhere from 1 down to 1e-300 and below. Term by
    term that is a billion exponentials. Here the powers are split, x^(c+i) = x^c x^i, so that a block of consecutive k
    costs one row of a matrix product; blocks whose weights span too many decades for that are summed term by term.
    """

    def __init__(self, k: Array, log_w: Array) -> None:
        k, log_w = k[log_w > -np.inf], log_w[log_w > -np.inf]
        width = min(k.size, max(_WIDTH, math.isqrt(k.size))) if k.size and k[-1] - k[0] == k.size - 1 else 1
        table = np.append(log_w, np.full(-k.size % width, -np.inf)).reshape(-1, width)
        top, low = table.max(axis=1), np.where(np.isfinite(table), table, np.inf).min(axis=1)
        good = top - low <= _SPAN
        rest = np.repeat(~good, width)[: k.size]
        # blocks of consecutive powers, then the terms that go one by one: first power, largest weight, the weights
        # relative to it
        blocks = k[::width][good], top[good], np.exp(table[good] - top[good][:, None])
        rows = (blocks, (k[rest], log_w[rest], np.ones((rest.sum(), 1))))
        self._parts = [(starts[:, None], tops[:, None], weights) for starts, tops, weights in rows if starts.size]

    def log_value(self, log_x: Array) -> Array:
        """``log sum_k w_k x^k`` at ``log x <= 0``; ``-inf`` is x = 0."""
        return self.log_drop(log_x, None)

    def log_drop(self, log_x: Array, h: Array | None) -> Array:
        """``log sum_k w_k (x^k - (x e^-h)^k)``, accurate for h from 1e-100 to inf; None: ``log sum_k w_k x^k``."""
        # at h = 1e4 nothing is left of the second power
        log_x, step = np.broadcast_arrays(np.asarray(log_x, dtype=float), np.minimum(1e4 if h is None else h, 1e4))
        # beyond -1e299 there is nothing left of x, whose 0th power is 1
        x, step, sums = np.maximum(log_x.ravel(), -1e300), step.ravel(), np.empty((len(self._parts), log_x.size))
        for (starts, tops, weights), out in zip(self._parts, sums, strict=True):
            i, size = np.arange(float(weights.shape[1]))[:, None], 1 + _CHUNK // max(weights.shape)
            for first in range(0, x.size, size):
                point, gap = x[first : first + size], step[first : first + size]
                powers = np.exp(i * point)
                with np.errstate(divide="ignore"):
                    inside = np.log(weights @ powers)
                    if h is not None:
                        # x^(c+i) - y^(c+i) = (x^c - y^c) x^i + y^c (x^i - y^i), both parts positive
                        rise = np.expm1(-i * gap) / np.expm1(-gap)  # from 0 to i: no product gets too small
                        second = np.log(weights @ (powers * rise)) + log1mexp(-gap) - starts * gap
                        inside = np.logaddexp(inside + log1mexp(-starts * gap), second)
                out[first : first + size] = logsumexp(tops + starts * point + inside, axis=0)
        out = np.logaddexp.reduce(sums, axis=0)
        return np.where(out < -1e299, -np.inf, out).reshape(log_x.shape)
