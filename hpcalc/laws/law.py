"""What a law of the number of runs offers: to everyone, and to the bounds on best-of-K."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from functools import cache, cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from hpcalc.catalog import NOT_DRAWN
from hpcalc.errors import checked_number, require
from hpcalc.logspace import ONE, ZERO, Array, Prob, log1mexp, log_integral, logaddexp, logsumexp, sharper
from hpcalc.solve import neighbours

if TYPE_CHECKING:
    import random

Echo: TypeAlias = dict[str, "float | int | str | bool"]
_HEAD = 4096  # so many probabilities of a law are tabulated
_TIE = 1e-13  # a probability this close (relatively) to the asked one is taken to reach it


def positive(name: str, value: object) -> float:
    """The value as a finite float > 0."""
    return checked_number(name, value, "give a finite number > 0", lambda x: 0.0 < x < math.inf)


def probability(name: str, value: object) -> float:
    """The value as a float in (0, 1]."""
    return checked_number(name, value, f"give a number with 0 < {name} <= 1", lambda x: 0.0 < x <= 1.0)


def mean_of_some(value: object) -> float:
    """The value as a mean of a law that runs at least once."""
    remedy = "give a number >= 1: this law runs at least once"
    return checked_number("mean", value, remedy, lambda x: 1.0 <= x < math.inf)


def whole_number(name: str, value: object, least: int) -> int:
    """The value as an int >= ``least``, up to where every integer is a double (1e3 is 1000)."""
    number = checked_number(name, value, f"give a whole number >= {least}", lambda x: x >= least and x.is_integer())
    require((name, value, number <= 2**53, "give a whole number of at most 9007199254740992 (2^53)"))
    return int(number)


def safe_exp(x: float) -> float:
    """``exp(x)``, inf where it exceeds the largest double."""
    return math.exp(x) if x < 709.78 else math.inf


def alias(path: str) -> Any:
    """An attribute that is another one, such as ``law.sd``."""
    return property(attrgetter(path))


class RunCount(ABC):
    """Law of the number of runs of a search.

    Subclasses are frozen dataclasses, hashable, and compare by their parameters. ``sd``, and ``mean`` or ``log_mean``,
    are properties or set when the law is made.
    """

    name: ClassVar[str]
    sd: float  #: standard deviation of K
    log_prob_zero: float = -math.inf  #: ``log P[K = 0]``
    max_runs: int | None = None  #: the largest possible K, or None if there is none

    def parameters(self) -> Echo:
        """Parameters as the command line names them, in its order."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]

    @cached_property
    def log_mean(self) -> float:
        """Natural logarithm of ``E[K]``; a law gives this or the next."""
        return math.log(self.mean)

    @cached_property
    def mean(self) -> float:
        """``E[K]`` (inf where it exceeds the largest double)."""
        return safe_exp(self.log_mean)

    @property
    def prob_zero(self) -> float:
        """``P[K = 0]``."""
        return math.exp(self.log_prob_zero)

    @abstractmethod
    def log_pmf(self, k: Array) -> Array:
        """``log P[K = k]`` for an array of whole numbers."""

    @abstractmethod
    def log_sf(self, k: int) -> float:
        """``log P[K > k]`` for ``k >= 0``."""

    def log_cdf(self, k: int) -> float:
        """``log P[K <= k]`` for ``k >= 0``."""
        if k < _HEAD:
            return min(float(logsumexp(self.log_pmf(np.arange(k + 1.0)))), 0.0)
        return float(log1mexp(self.log_sf(k)))

    def quantile(self, p: float) -> int:
        """Smallest k with ``P[K <= k] >= p``, p in (0, 1); refused where it exceeds 1e300.

        Examples
        --------
        >>> from hpcalc.laws import Poisson
        >>> Poisson(40.0).quantile(0.99)
        55
        """
        number = checked_number("p", p, "give a probability between 0 and 1", lambda x: 0.0 < x < 1.0)
        upper = number > 0.5
        return self._inverse(upper, math.log(1.0 - number if upper else number))

    def sample(self, rng: random.Random) -> int:
        """Draw one K by inversion of its distribution function, with random bits from ``rng``.

        The uniform number has 256 bits counted from the nearer end, so tails far below 2^-53 are drawn too.
        """
        require(("dist", self.name, self.name not in NOT_DRAWN, NOT_DRAWN.get(self.name, "")))
        upper = bool(rng.getrandbits(1))
        return self._inverse(upper, math.log((2 * rng.getrandbits(256) + 1) / (1 << 258)))  # uniform in (0, 1/2)

    @cached_property
    def _heads(self) -> tuple[Array, Array]:
        """``log P[K <= k]`` and ``-log P[K > k]`` for the first k."""
        p = np.exp(self.log_pmf(np.arange(float(_HEAD))))
        above = np.cumsum(np.append(p[1:], math.exp(self.log_sf(_HEAD - 1)))[::-1])[::-1]
        with np.errstate(divide="ignore"):
            return np.log(np.cumsum(p)), -np.log(above)

    def _inverse(self, upper: bool, log_tail: float) -> int:
        """The least k at which ``P[K > k]`` has fallen to a tail, or ``P[K <= k]`` has come up to it, 1/2 at most."""
        goal = -log_tail if upper else log_tail
        k = int(np.searchsorted(self._heads[upper], goal - _TIE))
        if k < _HEAD:
            return k

        @cache
        def excess(k: int) -> float:
            size = (-self.log_sf(k) if upper else self.log_cdf(k)) - goal + _TIE
            return size if abs(size) < 10.0 else math.copysign(math.inf, size)

        # beyond t standard deviations lies at most 1/(1 + t^2) (Cantelli); max and min pass over a NaN, inf - inf
        here, there = 1.5 * self.sd, self.sd * safe_exp(-0.5 * log_tail)
        least, most = self.mean - (here if upper else there), self.mean + (there if upper else here)
        low, high = int(max(_HEAD - 1.0, least * (1.0 - 1e-12) - 1.0)), int(min(1e300, most * (1.0 + 1e-12) + 1.0))
        low = low if excess(low) <= 0.0 else _HEAD - 1  # where a law of one's own knows its spread badly
        high = high if excess(high) > 0.0 else 10**300
        near = self.mean + (-self.sd if upper else self.sd) * float(Prob.from_log_u(log_tail).normal)
        if abs(near) < 1e300:  # most laws of many runs are nearly normal
            for k in (int(near - 0.01 * self.sd), int(near + 0.01 * self.sd)):
                if low < k < high:
                    low, high = (k, high) if excess(k) <= 0.0 else (low, k)
        require(("quantile", "above 1e+300", excess(high) > 0.0, "K is that large here; give a larger gamma"))
        return neighbours(excess, low, high, lambda low, high, share: int(low * (high / low) ** share))[1]


def checked_law(value: object) -> RunCount:
    """Return ``value`` if it is a law of K, or raise TypeError with what to give instead."""
    if not isinstance(value, RunCount):
        raise TypeError(f"give a law of K, such as Poisson(10.0) or Fixed(10), not {value!r}")
    return value


class Law(RunCount):
    """A law used to run K times, each on a candidate drawn afresh, and to release the best output.

    In what follows u is the rank of an output, f the generating function of K.

    Examples
    --------
    >>> from hpcalc.laws import Fixed
    >>> Fixed(3).log_density(Prob.from_u(1.0))  # F(u) = 3 (1-u)^2
    array(-inf)
    """

    #: ``log`` of the most that the winner's density, relative to one run, may be where a run ranks above with u, and of
    #: the least on a neighbouring input, convex and falling, with its slope on one side of a kink; all from a rank.
    log_upper_density = alias("log_density")
    log_lower_density = alias("log_density")
    log_lower_density_slope = alias("log_density_slope")

    @abstractmethod
    def log_density(self, rank: Prob) -> Array:
        """``log F(u)``, ``F(u) = f'(1-u)``; ``-inf`` at u = 1 if ``P[K = 1] = 0``."""

    @abstractmethod
    def log_density_slope(self, rank: Prob) -> Array:
        """``log(-F'(u))``, accurate relative to it: ``log E[K (K-1) (1-u)^(K-2)]``, ``-inf`` where that is 0."""

    def success(self, rank: Prob) -> Prob:
        """The chance that some run reaches rank u, ``1 - f(1-u)``, and its complement ``f(1-u)``, to all digits."""
        log_missed = logaddexp(self.log_prob_zero, self.log_block(rank, ONE, rank.log_q))
        log_reached = self.log_block(ZERO, rank, rank.log_u)
        return Prob(sharper(log_reached, log_missed), sharper(log_missed, log_reached))

    @abstractmethod
    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        """``log(f(1-lo) - f(1-hi))``: the probability that the best output has a rank between ``lo`` and ``hi``.

        ``log_width`` is ``log(hi.u - lo.u)``, from the caller who knows it without cancellation.
        """

    @cached_property
    def expected_quantile(self) -> float:
        """``E[K/(K+1)]``: mean rank of the best of K independent uniform scores."""

        # the integral of 1 - f(1-u) over [0, 1], by the log odds of u
        def log_g(z: Array) -> Array:
            rank = Prob.from_logit(z)
            return np.asarray(self.success(rank).log_u + rank.log_u + rank.log_q, dtype=float)

        return math.exp(log_integral(log_g, -50.0, 50.0, 0.0, 0.0))

    #: Whether ``f'`` is a power of an affine function, or the exponential limit of one: -u F'(u)/F(u) never decreases.
    affine_power: bool = False
    #: For such a law ``log F(u) - log F(1-u)`` at ``u = 1/(1+e^ε)``, from ε: what best-of-K adds to ε.
    gain_at_edge: Callable[[float], float]

    @abstractmethod
    def thin(self, log_keep: float) -> Law:
        """Law of K given that every run was kept, each being kept with probability ``exp(log_keep)``.

        ``P[K' = k]`` is proportional to ``P[K = k] exp(k log_keep)``: K' of Papernot and Steinke 2022, Lemma 20.
        """
