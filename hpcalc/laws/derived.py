"""Laws made of another one: given K >= 1 or K <= m, or min(K, m); and other searches with the same number of runs."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hpcalc.errors import checked_number, require
from hpcalc.laws.families import Fixed, Geometric
from hpcalc.laws.law import Echo, Law, RunCount, alias, checked_law, mean_of_some, probability, safe_exp, whole_number
from hpcalc.laws.tabulated import Tabular
from hpcalc.logspace import ONE, Array, Prob, log1mexp, logaddexp, logsubexp, logsumexp, sharper

_LARGEST_CUTOFF = 100_000


def _check(law: object, option: str, value: object) -> None:
    """Refuse what is not the law of a best-of-K search."""
    remedy = "leave it out: it applies to best-of-K searches only"
    require((option, value, isinstance(checked_law(law), Law), remedy))


@dataclass(frozen=True)
class AtLeastOne(Law):
    """A law given ``K >= 1``: the same search, drawn again until it runs at all.

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> AtLeastOne(Poisson(1.0)).prob_zero
    0.0
    """

    law: Law
    name = alias("law.name")
    max_runs = alias("law.max_runs")
    affine_power = alias("law.affine_power")
    gain_at_edge = alias("law.gain_at_edge")
    _log_run: ClassVar[float]  # log P[K >= 1] under the law itself, set when made

    def __post_init__(self) -> None:
        _check(self.law, "at_least_one", True)
        law = self.law
        log_run = float(law.success(ONE).log_u)
        log_mean, spread = law.log_mean - log_run, law.sd / math.exp(0.5 * log_run)
        sd = math.sqrt(max(spread**2 - safe_exp(log_mean) ** 2 * law.prob_zero, 0.0)) if law.prob_zero else law.sd
        vars(self).update(log_mean=log_mean, sd=sd, _log_run=log_run)

    def parameters(self) -> Echo:
        return {**self.law.parameters(), "at_least_one": True}

    def log_pmf(self, k: Array) -> Array:
        k = np.asarray(k, dtype=float)
        return np.where(k >= 1.0, self.law.log_pmf(k) - self._log_run, -np.inf)

    def log_sf(self, k: int) -> float:
        return min(self.law.log_sf(k) - self._log_run, 0.0)

    def log_density(self, rank: Prob) -> Array:
        return np.asarray(self.law.log_density(rank) - self._log_run, dtype=float)

    def log_density_slope(self, rank: Prob) -> Array:
        return np.asarray(self.law.log_density_slope(rank) - self._log_run, dtype=float)

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        return np.asarray(self.law.log_block(lo, hi, log_width) - self._log_run, dtype=float)

    def thin(self, log_keep: float) -> AtLeastOne:
        return AtLeastOne(self.law.thin(log_keep))


@dataclass(frozen=True)
class _Cut(Tabular):
    """A law of numbers of runs up to m, from 1 to 100000, made of another law."""

    law: Law
    m: int
    option: ClassVar[str]
    name = alias("law.name")

    def __post_init__(self) -> None:
        m = whole_number(self.option, self.m, 1)
        _check(self.law, self.option, m)
        require((self.option, m, m <= _LARGEST_CUTOFF, f"give at most {_LARGEST_CUTOFF}, or leave it out"))
        object.__setattr__(self, "m", m)
        k = np.arange(m + 1.0)
        self._tabulate(k, self._cut(self.law.log_pmf(k)))

    @abstractmethod
    def _cut(self, log_p: Array) -> Array:
        """``log`` of the probabilities of 0, 1, ..., m, from those before the cut."""

    def parameters(self) -> Echo:
        return {**self.law.parameters(), self.option: self.m}


@dataclass(frozen=True)
class AtMost(_Cut):
    """A law given ``K <= m`` (Papernot and Steinke 2022, Lemma 22): K drawn again while it is larger.

    A mean given with it (``--mean`` beside ``--max-runs``) is the mean before the condition.

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> law = AtMost(Poisson(10.0), 30)
    >>> law.max_runs, 9.99 < law.mean < 10.0
    (30, True)
    """

    option: ClassVar[str] = "max_runs"
    log_kept: ClassVar[float]  # log P[K <= m] under the law before the condition, set when made

    def _cut(self, log_p: Array) -> Array:
        log_kept = float(logsumexp(log_p))
        left = "has probability 0" if math.isinf(log_kept) else "leaves only K = 0"
        require(("max_runs", self.m, bool(np.isfinite(log_p[1:]).any()), f"give more: K <= {self.m} {left}"))
        vars(self).update(log_kept=log_kept)
        return log_p - log_kept


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

    option: ClassVar[str] = "clamp_runs"

    def _cut(self, log_p: Array) -> Array:
        return np.append(log_p[:-1], self.law.log_sf(self.m - 1))


def modified(law: Law, max_runs: Any = None, clamp_runs: Any = None, at_least_one: bool = False) -> Law:
    """The law given K <= ``max_runs``, of min(K, ``clamp_runs``), or given K >= 1; itself where that is so."""
    for kind, m in ((AtMost, max_runs), (Clamped, clamp_runs)):  # no table where K never exceeds m
        if m is not None and (law.max_runs or math.inf) > whole_number(kind.option, m, 1):
            law = kind(law, m)
    return AtLeastOne(law) if at_least_one and law.log_prob_zero > -math.inf else law


def _scaled(rank: Prob, factor: float) -> Prob:
    """The rank ``min(c u, 1)``, c the factor."""
    log_c = math.log(factor)
    log_u = np.minimum(log_c + rank.log_u, 0.0)
    log_gap = log1mexp(-abs(log_c)) + max(log_c, 0.0)  # of |1 - c|, where 1 - c u = c (1 - u) + 1 - c
    log_q = (logaddexp if factor < 1.0 else logsubexp)(log_c + rank.log_q, log_gap)
    return Prob(log_u, sharper(log_q, log_u))


class SameCount(RunCount):
    """A search whose K has the law of another one, ``law``."""

    law: RunCount
    log_mean = alias("law.log_mean")
    mean = alias("law.mean")
    sd = alias("law.sd")
    log_prob_zero = alias("law.log_prob_zero")
    max_runs = alias("law.max_runs")
    log_pmf = alias("law.log_pmf")
    log_sf = alias("law.log_sf")


@dataclass(frozen=True)
class AnyRuns(SameCount):
    """k runs chosen in any way, with whatever was seen before: a grid, a list, by hand, Bayesian optimisation.

    Not a law of best-of-K: every run is paid for.

    Parameters
    ----------
    k : int
        Number of runs, >= 1.
    """

    k: int
    name: ClassVar[str] = "composition"

    def __post_init__(self) -> None:
        law = Fixed(self.k)
        vars(self).update(k=law.k, law=law)


@dataclass(frozen=True)
class Threshold(SameCount):
    """Runs until an output is accepted (Papernot and Steinke 2022, Proposition 15): not a best-of-K law.

    Parameters
    ----------
    accept : float
        Lower bound, for every input, on the probability that one run is accepted (or the probability of a stop coin),
        in (0, 1]. The law of K given here is the one at that bound: geometric.

    Examples
    --------
    >>> round(Threshold(0.1).mean, 12)
    10.0
    """

    accept: float
    name: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        accept = probability("accept", self.accept)
        vars(self).update(accept=accept, law=Geometric(accept))

    @classmethod
    def with_mean(cls, mean: float) -> Threshold:
        """The law of the given mean number of runs, >= 1."""
        return cls(1.0 / mean_of_some(mean))


@dataclass(frozen=True)
class Adaptive(SameCount):
    """Best-of-K where every candidate's law has a density in [low, high] relative to one fixed prior.

    A run's candidate may depend on everything seen before, the data included; K itself must not depend on outcomes.
    One run is a run under the prior. With F(u) = f'(1-u) the output has density at most ``high F(low u)``, because
    each other run ranks at or above with probability at least ``low u``, and at least
    ``low F(min(high v, 1 - low (1 - v)))``. No mechanism is known to reach the price that follows.

    Parameters
    ----------
    law : Law
        Law of K.
    low, high : float
        Bounds on the density, ``0 < low <= 1 <= high``.

    References
    ----------
    Wang, Gao, Zhang, Su, Shen, "DP-HyPO: an adaptive private hyperparameter optimization framework", NeurIPS 2023.

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> law = Adaptive(Poisson(10.0), 0.9, 1.1)
    >>> round(float(np.exp(law.log_upper_density(Prob.from_u(0.0)))), 9)
    11.0
    """

    law: Law
    low: float
    high: float
    name = alias("law.name")
    parameters = alias("law.parameters")

    def __post_init__(self) -> None:
        remedy = "give two numbers LOW HIGH with 0 < LOW <= 1 <= HIGH"
        low, high = (checked_number("density", value, remedy) for value in (self.low, self.high))
        require(("density", f"{self.low} {self.high}", 0.0 < low <= 1.0 <= high, remedy))
        _check(self.law, "density", f"{low:g} {high:g}")
        vars(self).update(low=low, high=high)

    def _lower_rank(self, rank: Prob) -> tuple[Prob, Array]:
        """The rank ``min(high v, 1 - low (1 - v))``, and the logarithm of its derivative."""
        fast, slow = _scaled(rank, self.high), _scaled(rank.complement(), self.low).complement()
        first = fast.log_u < slow.log_u
        lower = Prob(*(np.where(first, *pair) for pair in zip(fast, slow, strict=True)))
        return lower, np.where(first, math.log(self.high), math.log(self.low))

    def log_upper_density(self, rank: Prob) -> Array:
        return math.log(self.high) + self.law.log_density(_scaled(rank, self.low))

    def log_lower_density(self, rank: Prob) -> Array:
        return math.log(self.low) + self.law.log_density(self._lower_rank(rank)[0])

    def log_lower_density_slope(self, rank: Prob) -> Array:
        lower, log_slope = self._lower_rank(rank)
        return math.log(self.low) + self.law.log_density_slope(lower) + log_slope


#: A law with what is known of the winner's rank, ties broken at random: what the exact price of best-of-K is made of.
BestOfK: TypeAlias = Law | Adaptive
