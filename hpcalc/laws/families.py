"""Poisson, binomial and fixed numbers of runs, and runs until acceptance."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.laws.affine import AffinePower
from hpcalc.laws.helpers import (
    checked_keep,
    log_hazard,
    mean_of_some,
    positive,
    probability,
    sharper,
    times,
    whole_number,
)
from hpcalc.laws.law import Echo, SameCount
from hpcalc.laws.negative_binomial import Geometric
from hpcalc.laws.powersums import log1mexp_minus
from hpcalc.laws.tails import log_binomial_pmf, log_integral, log_mean_exp, log_poisson_pmf
from hpcalc.logspace import Array, Prob, log1mexp, logaddexp, softplus

if TYPE_CHECKING:
    import random


@dataclass(frozen=True)
class Poisson(AffinePower):
    """Poisson number of runs (Papernot and Steinke 2022, Theorem 6).

    Parameters
    ----------
    mu : float
        Mean, > 0.

    Examples
    --------
    >>> Poisson(1.0).prob_zero
    0.36787944117144233
    """

    mu: float
    name: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive("mu", self.mu))

    @classmethod
    def with_mean(cls, mean: float) -> Poisson:
        """Poisson law of the given mean, > 0."""
        return cls(positive("mean", mean))

    def parameters(self) -> Echo:
        return {"mu": self.mu}

    @property
    def mean(self) -> float:
        return self.mu

    @property
    def log_mean(self) -> float:
        return math.log(self.mu)

    @property
    def sd(self) -> float:
        return math.sqrt(self.mu)

    @property
    def log_prob_zero(self) -> float:
        return -self.mu

    def cumulant(self, s: float) -> float:
        try:
            return self.mu * math.expm1(s)
        except OverflowError:
            return math.inf

    def log_pmf(self, k: Array) -> Array:
        return log_poisson_pmf(k, self.mu)

    def log_sf(self, k: int) -> float:
        # P[K > k] = integral over [0, mu] of the Poisson probability of k as a function of its mean
        return min(log_integral(lambda t: log_poisson_pmf(float(k), t), 0.0, self.mu, float(k)), 0.0)

    def log_cdf(self, k: int) -> float:
        end = sys.float_info.max
        return min(log_integral(lambda t: log_poisson_pmf(float(k), t), self.mu, end, float(k)), 0.0)

    def _decay(self, rank: Prob) -> Array:
        return np.asarray(self.mu * np.exp(rank.log_u), dtype=float)

    @property
    def _bend(self) -> tuple[float, float]:
        return self.log_mean, 1.0

    def _log_ahead(self, rank: Prob, log_width: Array) -> Array:
        return log1mexp_minus(self.log_mean + log_width) - self.log_mean

    @property
    def expected_quantile(self) -> float:
        return -math.expm1(float(log_mean_exp(self.mu)))

    def gain_at_edge(self, epsilon: float) -> float:
        return self.mu * math.tanh(0.5 * epsilon)

    def thin(self, log_keep: float) -> Poisson:
        return Poisson(self.mu * math.exp(checked_keep(log_keep)))

    def log_tail_mean(self, m: int) -> float:
        return self.log_mean + (self.log_sf(m - 1) if m > 0 else 0.0)

    @property
    def log_mean_given_run(self) -> float:
        return -float(log_mean_exp(self.mu))


@dataclass(frozen=True)
class Binomial(AffinePower):
    """Binomial number of runs: each of n candidates is run with probability p.

    Parameters
    ----------
    n : int
        Number of candidates, >= 1.
    p : float
        Probability of running each, in (0, 1].

    Examples
    --------
    >>> Binomial(20, 0.5).mean
    10.0
    """

    n: int
    p: float
    name: ClassVar[str] = "binomial"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", whole_number("n", self.n, 1))
        object.__setattr__(self, "p", probability("p", self.p))

    @classmethod
    def with_mean(cls, mean: float, *, n: int) -> Binomial:
        """The law with ``p = mean / n``; the mean is > 0 and at most n."""
        number, count = positive("mean", mean), whole_number("n", n, 1)
        if number > count:
            raise InvalidInput("mean", mean, f"give at most n = {count}, or a larger n")
        return cls(count, number / count)

    def parameters(self) -> Echo:
        return {"n": self.n, "p": self.p}

    @property
    def mean(self) -> float:
        return self.n * self.p

    @property
    def log_mean(self) -> float:
        return math.log(self.n) + math.log(self.p)

    @property
    def sd(self) -> float:
        return math.sqrt(self.n * self.p * (1.0 - self.p))

    @property
    def _log_miss(self) -> float:
        """``log(1 - p)``."""
        return math.log1p(-self.p) if self.p < 1.0 else -math.inf

    @property
    def log_prob_zero(self) -> float:
        return self.n * self._log_miss

    @property
    def max_runs(self) -> int | None:
        return self.n

    def cumulant(self, s: float) -> float:
        return self.n * math.log1p(self.p * math.expm1(s)) if s < 700.0 else self.n * (math.log(self.p) + s)

    def log_pmf(self, k: Array) -> Array:
        return log_binomial_pmf(k, self.n, self.p, 1.0 - self.p)

    def _log_tail(self, k: int, *, upper: bool) -> float:
        # P[K > k] = n times the integral over [0, p] of the probability of k in n-1 trials, as a function of p. It is
        # taken in the smaller of p and 1-p, so that neither loses digits.
        trials, p, q = self.n - 1, self.p, 1.0 - self.p
        if p <= 0.5:
            lo, hi, count = (0.0, p, k) if upper else (p, 1.0, k)
        else:
            lo, hi, count = (q, 1.0, trials - k) if upper else (0.0, q, trials - k)
        peak = count / trials if trials else 0.5
        value = log_integral(lambda t: log_binomial_pmf(float(count), trials, t, 1.0 - t), lo, hi, peak)
        return min(math.log(self.n) + value, 0.0)

    def log_sf(self, k: int) -> float:
        return self._log_tail(k, upper=True)

    def log_cdf(self, k: int) -> float:
        return 0.0 if k >= self.n else self._log_tail(k, upper=False)

    def _log_fail(self, rank: Prob) -> Array:
        """``log(1 - p u)``: a run is not made, or stays below rank u."""
        log_pu = math.log(self.p) + rank.log_u
        far = logaddexp(self._log_miss, math.log(self.p) + rank.log_q)
        return sharper(far, log_pu)

    def _decay(self, rank: Prob) -> Array:
        return times(1 - self.n, self._log_fail(rank))

    @property
    def _bend(self) -> tuple[float, float]:
        if self.n == 1:
            return -math.inf, 0.0
        return math.log(self.n - 1) + math.log(self.p), (self.n - 2) / (self.n - 1)

    def _log_ahead(self, rank: Prob, log_width: Array) -> Array:
        log_p = math.log(self.p) - self._log_fail(rank)  # of a run at or above what is left beyond the rank
        share = np.minimum(log_p + log_width, 0.0)
        return log1mexp_minus(math.log(self.n) + log_hazard(share)) - math.log(self.n) - log_p

    @property
    def expected_quantile(self) -> float:
        if self.p == 1.0:
            return self.n / (self.n + 1.0)
        x = -self._log_miss
        return -math.expm1(float(log_mean_exp((self.n + 1.0) * x)) - float(log_mean_exp(x)))

    def gain_at_edge(self, epsilon: float) -> float:
        # (1 + e^ε - p)/(1 + e^ε - p e^ε) = 1 + p (1 - e^-ε)/(e^-ε + 1 - p)
        log_excess = math.log(self.p) + log1mexp(-epsilon) - logaddexp(-epsilon, self._log_miss)
        return (self.n - 1.0) * float(softplus(log_excess))

    def thin(self, log_keep: float) -> Binomial:
        keep = math.exp(checked_keep(log_keep))
        if keep == 0.0:
            raise InvalidInput("log_keep", log_keep, "give a delta0 further from 1")
        return Binomial(self.n, self.p * keep / ((1.0 - self.p) + self.p * keep))

    def log_tail_mean(self, m: int) -> float:
        if m >= self.n:
            return -math.inf
        if m <= 0:
            return self.log_mean
        return self.log_mean + Binomial(self.n - 1, self.p).log_sf(m - 1)

    @property
    def log_mean_given_run(self) -> float:
        if self.p == 1.0:
            return self.log_mean
        x = -self._log_miss
        return float(log_mean_exp(x)) - float(log_mean_exp(self.n * x))


@dataclass(frozen=True, init=False, repr=False)
class Fixed(Binomial):
    """A fixed number of fresh draws: the binomial law of p = 1.

    Its cost is that of composition (Papernot and Steinke 2022, Section 3.2). A list or grid of k candidates is not k
    fresh draws: :class:`AnyRuns`.

    Parameters
    ----------
    k : int
        Number of runs, >= 1.
    """

    name: ClassVar[str] = "fixed"

    def __init__(self, k: int) -> None:
        super().__init__(whole_number("k", k, 1), 1.0)

    def __repr__(self) -> str:
        return f"Fixed(k={self.k})"

    @property
    def k(self) -> int:
        """The number of runs."""
        return self.n

    def parameters(self) -> Echo:
        return {"k": self.k}

    def cumulant(self, s: float) -> float:
        return self.k * s

    def log_sf(self, k: int) -> float:
        return 0.0 if k < self.k else -math.inf

    def log_cdf(self, k: int) -> float:
        return 0.0 if k >= self.k else -math.inf

    def gain_at_edge(self, epsilon: float) -> float:
        return (self.k - 1.0) * epsilon

    def thin(self, log_keep: float) -> Fixed:
        checked_keep(log_keep)
        return self


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
        object.__setattr__(self, "k", self.law.k)

    @cached_property
    def law(self) -> Fixed:  # type: ignore[override]
        """The law of K, which is k."""
        return Fixed(self.k)

    def parameters(self) -> Echo:
        return {"k": self.k}

    def sample(self, rng: random.Random) -> int:
        raise InvalidInput("dist", self.name, "all k runs are made and paid for: there is no K to draw")


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
    >>> Threshold(0.1).mean
    10.0
    """

    accept: float
    name: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        object.__setattr__(self, "accept", probability("accept", self.accept))

    @classmethod
    def with_mean(cls, mean: float) -> Threshold:
        """The law of the given mean number of runs, >= 1."""
        return cls(1.0 / mean_of_some(mean))

    @cached_property
    def law(self) -> Geometric:  # type: ignore[override]
        """The geometric law of K at that bound."""
        return Geometric(self.accept)

    def parameters(self) -> Echo:
        return {"accept": self.accept}

    @property
    def mean(self) -> float:
        return 1.0 / self.accept

    def sample(self, rng: random.Random) -> int:
        raise InvalidInput(
            "dist", self.name, "runs repeat until one is accepted, there is no K to draw; best of a drawn K is dearer"
        )
