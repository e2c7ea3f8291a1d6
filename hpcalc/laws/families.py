"""Poisson, binomial and fixed numbers of runs, and runs until acceptance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from hpcalc.errors import InvalidInput
from hpcalc.laws.affine import AffinePower
from hpcalc.laws.helpers import checked_keep, mean_of_some, positive, probability, whole_number
from hpcalc.laws.law import Echo, SameCount
from hpcalc.laws.negative_binomial import Geometric
from hpcalc.laws.probabilities import log_binomial_pmf, log_poisson_pmf
from hpcalc.logspace import Array, Prob


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

    @property
    def mean(self) -> float:
        return self.mu

    @property
    def sd(self) -> float:
        return math.sqrt(self.mu)

    @property
    def log_prob_zero(self) -> float:
        return -self.mu

    @property
    def _affine(self) -> tuple[int, float, float]:
        return 0, self.mu, 0.0

    def log_pmf(self, k: Array) -> Array:
        return log_poisson_pmf(k, self.mu)

    def thin(self, log_keep: float) -> Poisson:
        return Poisson(self.mu * math.exp(checked_keep(log_keep)))


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

    @property
    def mean(self) -> float:
        return self.n * self.p

    @property
    def sd(self) -> float:
        return math.sqrt(self.n * self.p * (1.0 - self.p))

    @property
    def log_prob_zero(self) -> float:
        return self.n * math.log1p(-self.p) if self.p < 1.0 else -math.inf

    @property
    def max_runs(self) -> int | None:
        return self.n

    @property
    def _affine(self) -> tuple[int, float, float]:
        return -1, self.n, math.log(self.p)

    def _fall_at(self, rank: Prob) -> Array:
        return -rank.log_q if self.p == 1.0 else super()._fall_at(rank)

    def log_pmf(self, k: Array) -> Array:
        return log_binomial_pmf(k, self.n, self.p)

    def log_sf(self, k: int) -> float:
        if k >= self.n:
            return -math.inf
        return 0.0 if self.p == 1.0 else super().log_sf(k)

    def gain_at_edge(self, epsilon: float) -> float:
        return (self.n - 1.0) * epsilon if self.p == 1.0 else super().gain_at_edge(epsilon)

    def thin(self, log_keep: float) -> Binomial:
        keep = math.exp(checked_keep(log_keep))
        if self.p == 1.0:
            return self
        if keep == 0.0:
            raise InvalidInput("log_keep", log_keep, "give a delta0 further from 1")
        return Binomial(self.n, self.p * keep / ((1.0 - self.p) + self.p * keep))


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

    @property
    def mean(self) -> float:
        return 1.0 / self.accept
