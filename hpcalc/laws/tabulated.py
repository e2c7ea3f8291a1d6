"""Laws given by a table of probabilities, and any such law."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.laws.helpers import ZERO, checked_keep, finite_number, log_minus, whole_number
from hpcalc.laws.law import Echo, Law
from hpcalc.laws.powersums import PowerSum
from hpcalc.logspace import Array, Prob, log1mexp, logsumexp, softplus


class Tabular(Law):
    """A law with finitely many values, evaluated by direct sums in log space."""

    @property
    @abstractmethod
    def _table(self) -> tuple[Array, Array]:
        """Values of K, increasing, and the logarithms of their probabilities (which sum to 1)."""

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
    def _sums(self) -> tuple[PowerSum, PowerSum, PowerSum]:
        """``f(x) - P[K = 0]``, ``f'(x)`` and ``f''(x)`` as sums of powers."""
        k, log_p = self._table
        with np.errstate(divide="ignore"):
            first, second = log_p + np.log(k), log_p + np.log(k) + np.log(np.maximum(k - 1.0, 0.0))
        return _trimmed(k, np.where(k > 0.0, log_p, -np.inf)), _trimmed(k - 1.0, first), _trimmed(k - 2.0, second)

    def log_density(self, rank: Prob) -> Array:
        return self._sums[1].log_value(rank.log_q)

    def log_density_slope(self, rank: Prob) -> Array:
        return self._sums[2].log_value(rank.log_q)

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        base = np.asarray(lo.log_q, dtype=float)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isneginf(log_width), -np.inf, np.asarray(log_width) - base)
        out = self._sums[0].log_drop(np.where(np.isneginf(base), 0.0, base), log_minus(share, log1mexp(share)))
        return np.asarray(np.where(np.isneginf(base), -np.inf, out), dtype=float)

    @property
    def expected_quantile(self) -> float:
        k, log_p = self._table
        return math.fsum((np.exp(log_p) * k / (k + 1.0)).tolist())

    def thin(self, log_keep: float) -> Law:
        k, log_p = self._table
        tilted = log_p + k * checked_keep(log_keep)
        return FinitePmf(tuple(zip(k.astype(int).tolist(), np.exp(tilted - logsumexp(tilted)).tolist(), strict=True)))


def _trimmed(k: Array, log_w: Array) -> PowerSum:
    """Sum of ``w x^k``, k >= 0, up to where nothing is to come of it at x = 1: for smaller x it is still less."""
    some = np.isfinite(log_w)
    k, log_w = k[some], log_w[some]
    w = np.exp(log_w - log_w.max(initial=-1e308))
    count = int(np.count_nonzero(np.cumsum(w[::-1])[::-1] > 1e-20 * np.cumsum(w)))
    return PowerSum(k[:count], log_w[:count])


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

    @property
    def max_runs(self) -> int | None:
        return self.probabilities[-1][0]

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
        p = finite_number("pmf", value, remedy, lambda number: 0.0 <= number <= 1.0 + 1e-9)
        if k in out:
            raise InvalidInput("pmf", f"{k} given twice", "give each number of runs once")
        out[k] = p
    total = math.fsum(out.values())
    if not abs(total - 1.0) <= 1e-9:
        raise InvalidInput("pmf", f"a sum of {total!r}", "give probabilities that sum to 1")
    kept = tuple((k, out[k] / total) for k in sorted(out) if out[k] > 0.0)
    if kept[-1][0] == 0:
        raise InvalidInput("pmf", "no run at all", "give some probability to 1 run or more")
    return kept
