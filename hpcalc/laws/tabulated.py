"""Laws given by a table: any finite pmf, any law given K <= m, and min(K, m)."""

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
from hpcalc.laws.law import Echo, Law, RunCount, checked_law
from hpcalc.laws.powersums import PowerSum
from hpcalc.logspace import Array, Prob, log1mexp, logaddexp, logsumexp, softplus

_LARGEST_CUTOFF = 100_000


class _Tabular(Law):
    """A law with finitely many values, evaluated by direct sums in log space."""

    @property
    @abstractmethod
    def _table(self) -> tuple[Array, Array]:
        """Values of K, increasing, and the logarithms of their probabilities (which sum to 1)."""

    @cached_property
    def _cumulative(self) -> tuple[Array, Array, Array]:
        """``k, log P[K <= k], log P[K > k]`` at the values of K."""
        k, log_p = self._table
        p = np.exp(log_p)
        with np.errstate(divide="ignore"):
            above = np.concatenate([np.cumsum(p[::-1])[::-1][1:], [0.0]])
            return k, np.minimum(np.log(np.cumsum(p)), 0.0), np.minimum(np.log(above), 0.0)

    @property
    def log_mean(self) -> float:
        return float(self.log_density(ZERO))

    @cached_property
    def sd(self) -> float:
        k, log_p = self._table
        return math.sqrt(float(np.sum(np.exp(log_p) * (k - self.mean) ** 2)))

    @cached_property
    def log_prob_zero(self) -> float:
        # by the odds, so that it keeps its digits as P[K = 0] -> 1
        return -float(softplus(self._sums[0].log_value(ZERO.log_q) - self.log_pmf(np.zeros(()))))

    def log_sf(self, k: int) -> float:
        values, _, above = self._cumulative
        i = int(np.searchsorted(values, float(k), side="right"))
        return float(above[i - 1]) if i else 0.0

    def log_cdf(self, k: int) -> float:
        values, below, _ = self._cumulative
        i = int(np.searchsorted(values, float(k), side="right"))
        return float(below[i - 1]) if i else -math.inf

    def log_pmf(self, k: Array) -> Array:
        values, log_p = self._table
        k = np.asarray(k, dtype=float)
        i = np.minimum(np.searchsorted(values, k), values.size - 1)
        return np.where(values[i] == k, log_p[i], -np.inf)

    @cached_property
    def _sums(self) -> tuple[PowerSum, PowerSum, PowerSum]:
        """``f(x) - P[K = 0]``, ``f'(x)`` and ``f''(x)`` as sums of powers."""
        k, log_p = self._table
        some = np.maximum(k, 2.0)
        return (
            _trimmed(k, np.where(k >= 1.0, log_p, -np.inf)),
            _trimmed(k - 1.0, np.where(k >= 1.0, log_p + np.log(np.maximum(k, 1.0)), -np.inf)),
            _trimmed(k - 2.0, np.where(k >= 2.0, log_p + np.log(some) + np.log(some - 1.0), -np.inf)),
        )

    def log_density(self, rank: Prob) -> Array:
        return self._sums[1].log_value(rank.log_q)

    def log_density_slope(self, rank: Prob) -> Array:
        return self._sums[2].log_value(rank.log_q)

    def log_parts(self, rank: Prob) -> tuple[Array, Array]:
        log_f = logaddexp(self.log_prob_zero, self._sums[0].log_value(rank.log_q))
        return log_f, self._sums[0].log_drop(np.zeros(()), log_minus(*rank))

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
        p = np.exp(tilted - logsumexp(tilted))
        return FinitePmf(tuple((int(a), float(b)) for a, b in zip(k, p, strict=True)))


def _trimmed(k: Array, log_w: Array) -> PowerSum:
    """Sum of ``w x^k``, k >= 0, up to where nothing is to come of it at x = 1: for smaller x it is still less."""
    some = np.isfinite(log_w)
    k, log_w = k[some], log_w[some]
    w = np.exp(log_w - log_w.max(initial=-1e308))
    count = int(np.count_nonzero(np.cumsum(w[::-1])[::-1] > 1e-20 * np.cumsum(w)))
    return PowerSum(k[:count], log_w[:count])


@dataclass(frozen=True)
class FinitePmf(_Tabular):
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

    @property
    def mean(self) -> float:
        return math.fsum(k * p for k, p in self.probabilities)

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        k, p = np.array(self.probabilities, dtype=float).T
        return k, np.log(p)


def _checked_pmf(data: object) -> tuple[tuple[int, float], ...]:
    remedy = "give probabilities of 0, 1, 2, ... runs, or a mapping from the number of runs to its probability"
    if isinstance(data, Mapping):
        pairs: list[tuple[object, object]] = list(data.items())
    elif isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise InvalidInput("pmf", data, remedy)
    else:
        items = list(data)
        paired = [isinstance(x, (list, tuple)) for x in items]
        if any(paired) and not all(isinstance(x, (list, tuple)) and len(x) == 2 for x in items):
            raise InvalidInput("pmf", data, remedy)
        pairs = [(x[0], x[1]) for x in items] if any(paired) else list(enumerate(items))
    out: dict[int, float] = {}
    for key, value in pairs:
        if isinstance(key, str):  # JSON has no other keys
            try:
                key = float(key)
            except ValueError:
                raise InvalidInput("pmf", key, "give the number of runs as a whole number >= 0") from None
        k = whole_number("pmf", key, 0)
        p = finite_number("pmf", value, f"give a probability between 0 and 1 for {k} runs")
        if not 0.0 <= p <= 1.0 + 1e-9:
            raise InvalidInput("pmf", value, f"give a probability between 0 and 1 for {k} runs")
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


class _Cut(_Tabular):
    """A law of numbers of runs up to m, from 1 to 100000, made of another law."""

    law: Law
    m: int
    _option: ClassVar[str]

    def __post_init__(self) -> None:
        cutoff = whole_number(self._option, self.m, 1)
        if not isinstance(checked_law(self.law), Law):
            raise InvalidInput(self._option, cutoff, "leave it out: it applies to best-of-K searches only")
        if cutoff > _LARGEST_CUTOFF:
            raise InvalidInput(self._option, cutoff, f"give at most {_LARGEST_CUTOFF}, or leave it out")
        object.__setattr__(self, "m", cutoff)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the law before the cut."""
        return self.law.name

    def parameters(self) -> Echo:
        return {**self.law.parameters(), self._option: self.m}

    @property
    def max_runs(self) -> int | None:
        return self.m if self.law.max_runs is None else min(self.m, self.law.max_runs)


@dataclass(frozen=True)
class AtMost(_Cut):
    """A law given ``K <= m`` (Papernot and Steinke 2022, Lemma 22): K drawn again while it is larger.

    :func:`at_most` returns the law itself where it never exceeds m anyway. A mean given with it (``--mean`` beside
    ``--max-runs``) is the mean before the condition.

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> law = AtMost(Poisson(10.0), 30)
    >>> law.max_runs, 9.99 < law.mean < 10.0
    (30, True)
    """

    law: Law
    m: int
    _option: ClassVar[str] = "max_runs"

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.isinf(self.log_kept):
            raise InvalidInput("max_runs", self.m, f"give more: K <= {self.m} has probability 0")
        if not float(logsumexp(self._table[1][1:])) > -math.inf:
            raise InvalidInput("max_runs", self.m, f"give more: K <= {self.m} leaves only K = 0")

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        k = np.arange(self.m + 1.0)
        return k, self.law.log_pmf(k) - self.log_kept

    @cached_property
    def log_kept(self) -> float:
        """``log P[K <= m]`` under the law before the condition."""
        return float(logsumexp(self.law.log_pmf(np.arange(self.m + 1.0))))

    def thin(self, log_keep: float) -> AtMost:
        return AtMost(self.law.thin(log_keep), self.m)


@dataclass(frozen=True)
class Clamped(_Cut):
    """The law of ``min(K, m)``: what a sampler draws that cuts K off instead of drawing it again.

    Another law than :class:`AtMost`, and usually dearer: all of the tail is at m.

    Examples
    --------
    >>> from hpcalc.laws import Geometric
    >>> law = Clamped(Geometric(0.01), 20)
    >>> law.max_runs, round(float(np.exp(law.log_pmf(np.array(20.0)))), 6)  # 0.99^19
    (20, 0.826169)
    """

    law: Law
    m: int
    _option: ClassVar[str] = "clamp_runs"

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        k = np.arange(self.m + 1.0)
        return k, np.append(self.law.log_pmf(k[:-1]), self.law.log_sf(self.m - 1))


def at_most(law: RunCount, m: int) -> Law:
    """The law given ``K <= m``: the law itself where it never exceeds m, else :class:`AtMost`."""
    return _cut(AtMost, law, m)


def clamp(law: RunCount, m: int) -> Law:
    """The law of ``min(K, m)``: the law itself where it never exceeds m, else :class:`Clamped`."""
    return _cut(Clamped, law, m)


def _cut(kind: type[AtMost] | type[Clamped], law: RunCount, m: int) -> Law:
    cutoff = whole_number(kind._option, m, 1)
    if isinstance(law, Law) and law.max_runs is not None and law.max_runs <= cutoff:
        return law
    return kind(law, cutoff)  # type: ignore[arg-type]  # which checks it
