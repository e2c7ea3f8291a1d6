"""Laws given by a table of probabilities, and any such law."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hpcalc.errors import InvalidInput, checked_number, require
from hpcalc.laws.law import Echo, Law, checked_keep, whole_number
from hpcalc.laws.probabilities import ZERO, times
from hpcalc.logspace import Array, Prob, log1mexp, logsumexp, softplus

_DENSE = 16  # fewer terms than this are summed one by one
_WIDTH = 64  # terms of a block, where the square root of all is not more
_SPAN = 600.0  # log-range of weights a block may have: a term lost to underflow is then below 1e-40 of the first one
_CHUNK = 1 << 16


class Tabular(Law):
    """A law with finitely many values, evaluated by direct sums in log space."""

    @property
    @abstractmethod
    def _table(self) -> tuple[Array, Array]:
        """Values of K, increasing, and the logarithms of their probabilities (which sum to 1)."""

    @property
    def max_runs(self) -> int | None:
        return int(self._table[0][-1])

    @cached_property
    def mean(self) -> float:
        k, log_p = self._table
        return math.fsum((k * np.exp(log_p)).tolist())

    @cached_property
    def sd(self) -> float:
        k, log_p = self._table
        return math.sqrt(float(np.sum(np.exp(log_p) * (k - self.mean) ** 2)))

    @cached_property
    def log_prob_zero(self) -> float:
        # by the odds, so that it keeps its digits as P[K = 0] -> 1
        return -float(softplus(self._sums[0].log_value(ZERO.log_q) - self.log_pmf(np.zeros(()))))

    def log_pmf(self, k: Array) -> Array:
        values, log_p = self._table
        k = np.asarray(k, dtype=float)
        i = np.minimum(np.searchsorted(values, k), values.size - 1)
        return np.where(values[i] == k, log_p[i], -np.inf)

    @cached_property
    def _log_beyond(self) -> Array:
        """``log`` of the probability of all but the first i values of K, for every i."""
        with np.errstate(divide="ignore"):
            beyond = np.append(np.cumsum(np.exp(self._table[1])[::-1])[::-1], 0.0)
            return np.asarray(np.minimum(np.log(beyond), 0.0), dtype=float)

    def log_sf(self, k: int) -> float:
        return float(self._log_beyond[np.searchsorted(self._table[0], float(k), side="right")])

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

    @property
    def expected_quantile(self) -> float:
        k, log_p = self._table
        return math.fsum((np.exp(log_p) * k / (k + 1.0)).tolist())

    def thin(self, log_keep: float) -> Law:
        k, log_p = self._table
        tilted = log_p + k * checked_keep(log_keep)
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

    def parameters(self) -> Echo:
        if len(self.probabilities) > 32:
            first, last = self.probabilities[0][0], self.probabilities[-1][0]
            return {"pmf": f"{len(self.probabilities)} values from {first} to {last}"}
        return {"pmf": ",".join(f"{k}={p!r}" for k, p in self.probabilities)}

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        k, p = np.array(self.probabilities, dtype=float).T
        return k, np.log(p)


def _checked_pmf(data: object) -> tuple[tuple[int, float], ...]:
    """Numbers of runs and their probabilities, increasing, without zeros, scaled to sum to 1."""
    remedy = "give probabilities of 0, 1, 2, ... runs, or a mapping from the number of runs to its probability"
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise InvalidInput("pmf", data, remedy)
    items = list(data.items() if isinstance(data, Mapping) else data)
    if not any(isinstance(item, (list, tuple)) for item in items):
        items = list(enumerate(items))
    elif not all(isinstance(item, (list, tuple)) and len(item) == 2 for item in items):
        raise InvalidInput("pmf", data, remedy)
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


# -- sums of powers
#
# A law of K cut at 100000 needs such sums at thousands of ranks, x anywhere from 1 down to 1e-300 and below. Term by
# term that is a billion exponentials. Here the powers are split, x^(c+i) = x^c x^i, so that a block of consecutive k
# costs one row of a matrix product; blocks whose weights span too many decades for that are summed term by term.


class PowerSum:
    """``sum_k w_k x^k``, k increasing whole numbers, from the logarithms of the weights; where those are -inf any k."""

    def __init__(self, k: Array, log_w: Array) -> None:
        k, log_w = k[log_w > -np.inf], log_w[log_w > -np.inf]
        consecutive = k.size >= _DENSE and k[-1] - k[0] == k.size - 1
        width = min(k.size, max(_WIDTH, math.isqrt(k.size))) if consecutive else 1
        table = np.append(log_w, np.full(-k.size % width, -np.inf)).reshape(-1, width)
        top, low = table.max(axis=1), np.where(np.isfinite(table), table, np.inf).min(axis=1)
        good = top - low <= _SPAN
        rest = np.repeat(~good, width)[: k.size]
        # blocks of consecutive powers, then the terms that go one by one: first power, largest weight, the weights
        # relative to it
        blocks = k[::width][good], top[good], np.exp(table[good] - top[good][:, None])
        self._parts = [part for part in (blocks, (k[rest], log_w[rest], np.ones((rest.sum(), 1)))) if part[0].size]

    def log_value(self, log_x: Array) -> Array:
        """``log sum_k w_k x^k`` at ``log x <= 0``; ``-inf`` is x = 0."""
        return self._gather(np.asarray(log_x, dtype=float), None)

    def log_drop(self, log_x: Array, h: Array) -> Array:
        """``log sum_k w_k (x^k - (x e^-h)^k)``, accurate for h from 1e-100 to inf; every k >= 1."""
        # at h = 1e4 nothing is left of the second power
        return self._gather(*np.broadcast_arrays(np.asarray(log_x, dtype=float), np.minimum(h, 1e4)))

    def _gather(self, log_x: Array, h: Array | None) -> Array:
        x, step = log_x.ravel(), None if h is None else h.ravel()
        out = np.full(x.size, -np.inf)
        for starts, tops, weights in self._parts:
            size = max(1, _CHUNK // max(starts.size, 1 if h is None else weights.shape[1]))
            for start in range(0, x.size, size):
                part = slice(start, start + size)
                terms = _log_terms(starts, weights, x[part], None if step is None else step[part])
                out[part] = np.logaddexp(out[part], logsumexp(tops[:, None] + terms, axis=0))
        return out.reshape(log_x.shape)


def _log_terms(starts: Array, weights: Array, log_x: Array, h: Array | None) -> Array:
    """``log sum_i w_i x^(c+i)`` for every start c and every x; with h, of ``x^(c+i) - (x e^-h)^(c+i)`` instead."""
    x, starts = np.exp(log_x), starts[:, None]
    value = np.zeros((starts.size, x.size))
    for each in weights.T[::-1]:  # Horner's rule: no digits are lost, as all terms are positive
        value *= x
        value += each[:, None]
    with np.errstate(divide="ignore"):
        outer, inner = times(starts, log_x), np.log(value)
        if h is None:
            return np.asarray(outer + inner, dtype=float)
        # x^(c+i) - y^(c+i) = (x^c - y^c) x^i + y^c (x^i - y^i), both parts positive
        i = np.arange(float(weights.shape[1]))[:, None]
        second = np.log(weights @ (np.exp(times(i, log_x)) * -np.expm1(-i * h))) - starts * h
    return np.asarray(outer + np.logaddexp(inner + log1mexp(-starts * h), second), dtype=float)
