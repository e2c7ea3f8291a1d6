"""Laws given by a table: any finite pmf, and any law given K <= m."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.laws.helpers import checked_keep, finite_number, log_hazard, log_minus, safe_exp, sharper, whole_number
from hpcalc.laws.law import Echo, Law
from hpcalc.laws.powersums import PowerSum
from hpcalc.logspace import Array, Prob, logaddexp, logsumexp, softplus

__all__ = ["AtMost", "FinitePmf"]

_LARGEST_CUTOFF = 100_000


class _Tabular(Law):
    """A law with finitely many values, evaluated by direct sums in log space."""

    @property
    @abstractmethod
    def _table(self) -> tuple[Array, Array]:
        """Values of K, increasing, and the logarithms of their probabilities (which sum to 1)."""

    @cached_property
    def _some(self) -> tuple[Array, Array]:
        """The table over K >= 1, without the far tail that cannot change the last digit of any sum below."""
        k, log_p = self._table
        k, log_p = k[k >= 1.0], log_p[k >= 1.0]
        p = np.exp(log_p - log_p.max())
        # In every sum the term of k is at most k p_k / sum(p) of the whole, whatever the rank.
        rest = np.cumsum((k * p)[::-1])[::-1]
        count = int(np.count_nonzero(rest > 1e-20 * np.cumsum(p)))
        return k[:count], log_p[:count]

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
        return self._log_moment

    @cached_property
    def _log_moment(self) -> float:
        k, log_p = self._some
        return float(logsumexp(log_p + np.log(k)))

    @property
    def sd(self) -> float:
        return self._spread

    @cached_property
    def _spread(self) -> float:
        k, log_p = self._table
        return math.sqrt(float(np.sum(np.exp(log_p) * (k - self.mean) ** 2)))

    @property
    def log_prob_zero(self) -> float:
        return self._log_zero

    @cached_property
    def _log_zero(self) -> float:
        # by the odds, so that it keeps its digits as P[K = 0] -> 1
        return -float(softplus(logsumexp(self._some[1]) - self.log_pmf(np.zeros(()))))

    def log_sf(self, k: int) -> float:
        values, _, above = self._cumulative
        i = int(np.searchsorted(values, float(k), side="right"))
        return float(above[i - 1]) if i else 0.0

    def log_cdf(self, k: int) -> float:
        values, below, _ = self._cumulative
        i = int(np.searchsorted(values, float(k), side="right"))
        return float(below[i - 1]) if i else -math.inf

    def cumulant(self, s: float) -> float:
        k, log_p = self._table
        return float(logsumexp(log_p + k * s))

    def log_pmf(self, k: Array) -> Array:
        values, log_p = self._table
        k = np.asarray(k, dtype=float)
        i = np.minimum(np.searchsorted(values, k), values.size - 1)
        return np.where(values[i] == k, log_p[i], -np.inf)

    @cached_property
    def _sums(self) -> tuple[PowerSum, PowerSum]:
        """``sum p_k x^k`` over K >= 1, and its derivative."""
        k, log_p = self._some
        return PowerSum(k, log_p), PowerSum(k - 1.0, log_p + np.log(k))

    def log_density(self, rank: Prob) -> Array:
        return self._sums[1].log_value(rank.log_q)

    def log_density_slope(self, rank: Prob) -> Array:
        return self._slope_sum.log_value(rank.log_q)

    def gain_at_edge(self, epsilon: float) -> float:
        edge = Prob.from_logit(np.array([-epsilon, epsilon]))
        first, second = self.log_density(edge).tolist()
        return float(first - second)

    def log_mean_excess(self, rank: Prob) -> Array:
        """``log(-(1-u) F'(u) / F(u))``: log of the mean of K - 1 under the weights ``k p_k (1-u)^(k-1)``.

        It falls with u, and is the slope of ``log F`` as a (convex) function of ``log(1-u)``.
        """
        return np.asarray(self.log_density_slope(rank) + rank.log_q - self.log_density(rank), dtype=float)

    @cached_property
    def _slope_sum(self) -> PowerSum:
        k, log_p = self._table
        k, log_p = k[k >= 2.0], log_p[k >= 2.0]
        log_w = log_p + np.log(k) + np.log(k - 1.0)
        w = np.exp(log_w - log_w.max(initial=-np.inf)) if np.isfinite(log_w).any() else np.zeros(0)
        # for x < 1 the far terms count for less than at x = 1
        count = int(np.count_nonzero(np.cumsum(w[::-1])[::-1] > 1e-20 * np.cumsum(w)))
        return PowerSum(k[:count] - 2.0, log_w[:count])

    def _raw(self, rank: Prob) -> tuple[Array, Array]:
        """``log f`` and ``log(1 - f)``, each good where it is not near 0."""
        log_f = logaddexp(self.log_prob_zero, self._sums[0].log_value(rank.log_q))
        return log_f, self._sums[0].log_drop(np.zeros(()), log_minus(*rank))

    def log_survival(self, rank: Prob) -> Array:
        log_f, log_s = self._raw(rank)
        return sharper(log_s, log_f)

    def log_pgf(self, rank: Prob) -> Array:
        return sharper(*self._raw(rank))

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        base = np.asarray(lo.log_q, dtype=float)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isneginf(log_width), -np.inf, np.asarray(log_width) - base)
        out = self._sums[0].log_drop(np.where(np.isneginf(base), 0.0, base), log_hazard(share))
        return np.asarray(np.where(np.isneginf(base), -np.inf, out), dtype=float)

    @property
    def expected_quantile(self) -> float:
        k, log_p = self._table
        return math.fsum((np.exp(log_p) * k / (k + 1.0)).tolist())

    @property
    def affine_power(self) -> bool:
        return False

    @property
    def supremum_at_edge(self) -> bool:
        return False

    def log_tail_mean(self, m: int) -> float:
        k, log_p = self._table
        beyond = k > m
        return float(logsumexp(log_p[beyond] + np.log(k[beyond]))) if beyond.any() else -math.inf

    @property
    def log_mean_given_run(self) -> float:
        k, log_p = self._some
        p = np.exp(log_p - log_p.max())
        return math.log1p(float(np.sum(p * (k - 1.0)) / np.sum(p)))

    @property
    def second_factorial(self) -> float:
        k, log_p = self._some
        return float(np.sum(np.exp(log_p) * k * (k - 1.0)))


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

    def thin(self, log_keep: float) -> FinitePmf:
        k, log_p = self._table
        tilted = log_p + k * checked_keep(log_keep)
        p = np.exp(tilted - logsumexp(tilted))
        return FinitePmf(tuple((int(a), float(b)) for a, b in zip(k, p, strict=True)))


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


@dataclass(frozen=True)
class AtMost(_Tabular):
    """A law given ``K <= m`` (Papernot and Steinke 2022, Lemma 22).

    Evaluated by direct summation over the values up to m, at most 100000. Where the law never exceeds m anyway, this
    is that law. A mean given with it (``--mean`` beside ``--max-runs``) is the mean before the condition.

    Parameters
    ----------
    law : Law
        The law before truncation.
    m : int
        Largest number of runs, >= 1.

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> law = AtMost(Poisson(10.0), 30)
    >>> law.max_runs, 9.99 < law.mean < 10.0
    (30, True)
    """

    law: Law
    m: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", whole_number("max_runs", self.m, 1))
        if not isinstance(self.law, Law):
            raise InvalidInput("max_runs", self.m, "leave it out: it applies to laws of a best-of-K search only")
        if self._plain is None:
            if self.m > _LARGEST_CUTOFF:
                raise InvalidInput("max_runs", self.m, f"give at most {_LARGEST_CUTOFF}, or leave it out")
            if math.isinf(self.log_kept):
                raise InvalidInput("max_runs", self.m, f"give more: K <= {self.m} has probability 0")
            if not float(logsumexp(self._table[1][1:])) > -math.inf:
                raise InvalidInput("max_runs", self.m, f"give more: K <= {self.m} leaves only K = 0")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the law before truncation."""
        return self.law.name

    @property
    def _plain(self) -> Law | None:
        """The inner law where the truncation changes nothing."""
        return self.law if self.law.max_runs is not None and self.law.max_runs <= self.m else None

    def parameters(self) -> Echo:
        return {**self.law.parameters(), "max_runs": self.m}

    @cached_property
    def _raw_table(self) -> tuple[Array, Array]:
        k = np.arange(self.m + 1.0)
        return k, self.law.log_pmf(k)

    @cached_property
    def log_kept(self) -> float:
        """``log P[K <= m]`` under the inner law."""
        return float(logsumexp(self._raw_table[1]))

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        k, log_p = self._raw_table
        return k, log_p - self.log_kept

    @cached_property
    def log_tail_mass(self) -> float:
        """``log P[K > m]`` under the inner law."""
        return self.law.log_sf(self.m)

    @property
    def tail_mass(self) -> float:
        """``P[K > m]`` under the inner law."""
        return math.exp(self.log_tail_mass)

    @property
    def tail_mean(self) -> float:
        """``E[K; K > m]`` under the inner law."""
        return safe_exp(self.law.log_tail_mean(self.m))

    @property
    def max_runs(self) -> int | None:
        return self.m if self._plain is None else self._plain.max_runs

    @property
    def affine_power(self) -> bool:
        return self._plain is not None and self._plain.affine_power

    @property
    def supremum_at_edge(self) -> bool:
        return self._plain is not None and self._plain.supremum_at_edge

    @property
    def mean(self) -> float:
        return super().mean if self._plain is None else self._plain.mean

    @property
    def log_mean(self) -> float:
        return super().log_mean if self._plain is None else self._plain.log_mean

    @property
    def sd(self) -> float:
        return super().sd if self._plain is None else self._plain.sd

    @property
    def log_prob_zero(self) -> float:
        return super().log_prob_zero if self._plain is None else self._plain.log_prob_zero

    @property
    def expected_quantile(self) -> float:
        return super().expected_quantile if self._plain is None else self._plain.expected_quantile

    @property
    def log_mean_given_run(self) -> float:
        return super().log_mean_given_run if self._plain is None else self._plain.log_mean_given_run

    @property
    def second_factorial(self) -> float:
        return super().second_factorial if self._plain is None else self._plain.second_factorial

    def cumulant(self, s: float) -> float:
        return super().cumulant(s) if self._plain is None else self._plain.cumulant(s)

    def log_pmf(self, k: Array) -> Array:
        return super().log_pmf(k) if self._plain is None else self._plain.log_pmf(k)

    def log_sf(self, k: int) -> float:
        return super().log_sf(k) if self._plain is None else self._plain.log_sf(k)

    def log_cdf(self, k: int) -> float:
        return super().log_cdf(k) if self._plain is None else self._plain.log_cdf(k)

    def log_density(self, rank: Prob) -> Array:
        return super().log_density(rank) if self._plain is None else self._plain.log_density(rank)

    def log_density_slope(self, rank: Prob) -> Array:
        return super().log_density_slope(rank) if self._plain is None else self._plain.log_density_slope(rank)

    def log_pgf(self, rank: Prob) -> Array:
        return super().log_pgf(rank) if self._plain is None else self._plain.log_pgf(rank)

    def log_survival(self, rank: Prob) -> Array:
        return super().log_survival(rank) if self._plain is None else self._plain.log_survival(rank)

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        if self._plain is None:
            return super().log_block(lo, hi, log_width)
        return self._plain.log_block(lo, hi, log_width)

    def log_tail_mean(self, m: int) -> float:
        return super().log_tail_mean(m) if self._plain is None else self._plain.log_tail_mean(m)

    def gain_at_edge(self, epsilon: float) -> float:
        return super().gain_at_edge(epsilon) if self._plain is None else self._plain.gain_at_edge(epsilon)

    def thin(self, log_keep: float) -> AtMost:
        return AtMost(self.law.thin(log_keep), self.m)
