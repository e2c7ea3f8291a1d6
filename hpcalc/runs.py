"""Laws of the number of runs K.

Each law is one frozen dataclass. Bounds use it through ``F(u) = f'(1-u)`` (:meth:`Law.log_density`), ``f(1-u)``
(:meth:`Law.log_pgf`), the mean and ``P[K=0]``, f the probability generating function; utility and sampling use its
quantiles. Everything is in log space: gamma may be 1e-400 and a mean 1e12.

References
----------
Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022, Definition 1, Section 3.
"""

from __future__ import annotations

import difflib
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.logmath import Array, Rank, log1mexp, log_expm1, logaddexp, logsumexp, softplus
from hpcalc.powersums import PowerSum, log1mexp_minus
from hpcalc.tails import (
    log_beta,
    log_binomial_pmf,
    log_integral,
    log_mean_exp,
    log_poisson_pmf,
    log_sinhc_gap,
)

__all__ = [
    "DISTRIBUTIONS",
    "AtLeastOne",
    "AtMost",
    "Binomial",
    "FinitePmf",
    "Fixed",
    "Law",
    "Poisson",
    "RunCount",
    "Threshold",
    "TruncatedNegativeBinomial",
    "finite_number",
    "make_law",
    "parse_law",
]

Echo: TypeAlias = dict[str, "float | int | str | bool | dict[int, float]"]

_ONE = Rank(np.array(0.0), np.array(-math.inf))
_TIE = 1e-13  # a cumulative probability this close (relatively) to the asked one is taken to reach it
_LARGEST_INTEGER = 2**53  # integers are exact in a double up to here
_LARGEST_RUNS = 10**300
_LARGEST_CUTOFF = 100_000
_HEAD = 4096


# ---------------------------------------------------------------------------------------------------------------------
# checked numbers


def finite_number(name: str, value: object, remedy: str) -> float:
    """Return ``value`` as a finite float, or raise :class:`InvalidInput` with the remedy."""
    if isinstance(value, (bool, np.bool_, str, bytes)) or value is None:
        raise InvalidInput(name, value, remedy)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(name, value, remedy) from None
    if not math.isfinite(number):
        raise InvalidInput(name, value, remedy)
    return number


def _positive(name: str, value: object) -> float:
    number = finite_number(name, value, "give a finite number > 0")
    if not number > 0.0:
        raise InvalidInput(name, value, "give a finite number > 0")
    return number


def _integer(name: str, value: object, least: int) -> int:
    remedy = f"give a whole number >= {least}"
    number = finite_number(name, value, remedy)
    if number != math.floor(number) or number < least:
        raise InvalidInput(name, value, remedy)
    if number > _LARGEST_INTEGER:
        raise InvalidInput(name, value, "give a whole number of at most 9007199254740992 (2^53)")
    return int(number)


def _log_softplus(z: Array | float) -> Array:
    """``log log(1 + e^z)``, for ``e^z`` below the smallest double too."""
    z = np.asarray(z, dtype=float)
    return np.where(z < -40.0, z, np.log(softplus(np.maximum(z, -40.0))))


def _log_hazard(log_x: Array | float) -> Array:
    """``log(-log(1 - x))`` from ``log x <= 0``, for x below the smallest double too."""
    log_x = np.minimum(np.asarray(log_x, dtype=float), 0.0)
    with np.errstate(divide="ignore"):
        return np.where(log_x < -40.0, log_x, np.log(-log1mexp(np.maximum(log_x, -40.0))))


def _times(count: float, log_x: Array | float) -> Array:
    """``count * log_x`` where 0 times -inf is 0: the logarithm of ``x**count`` with ``0**0 = 1``."""
    log_x = np.asarray(log_x, dtype=float)
    return np.zeros_like(log_x) if count == 0 else np.asarray(count * log_x, dtype=float)


# ---------------------------------------------------------------------------------------------------------------------
# interface


class RunCount(ABC):
    """Law of the number of runs of a search.

    Subclasses are frozen dataclasses, hashable, and compare by their parameters.
    """

    name: ClassVar[str]

    @abstractmethod
    def parameters(self) -> Echo:
        """Parameters as the command line names them, in its order."""

    @property
    @abstractmethod
    def log_mean(self) -> float:
        """Natural logarithm of ``E[K]``."""

    @property
    def mean(self) -> float:
        """``E[K]`` (inf where it exceeds the largest double)."""
        return math.exp(self.log_mean) if self.log_mean < 709.78 else math.inf

    @property
    @abstractmethod
    def sd(self) -> float:
        """Standard deviation of K."""

    @property
    def log_prob_zero(self) -> float:
        """``log P[K = 0]``, ``-inf`` if K is never 0."""
        return -math.inf

    @property
    def prob_zero(self) -> float:
        """``P[K = 0]``."""
        return math.exp(self.log_prob_zero)

    @property
    def max_runs(self) -> int | None:
        """The largest possible K, or None if there is none."""
        return None

    @abstractmethod
    def cumulant(self, s: float) -> float:
        """``log E[exp(s K)]`` for ``s >= 0``: the logarithm of f(e^s); inf where that diverges."""

    @abstractmethod
    def log_pmf(self, k: Array) -> Array:
        """``log P[K = k]`` for an array of whole numbers."""

    @abstractmethod
    def log_sf(self, k: int) -> float:
        """``log P[K > k]`` for ``k >= 0``."""

    def log_cdf(self, k: int) -> float:
        """``log P[K <= k]`` for ``k >= 0``."""
        if k < 4096:
            return min(float(logsumexp(self.log_pmf(np.arange(k + 1.0)))), 0.0)
        return float(log1mexp(self.log_sf(k)))

    def quantile(self, p: float) -> int:
        """Smallest k with ``P[K <= k] >= p``.

        Parameters
        ----------
        p : float
            In (0, 1).

        Raises
        ------
        InvalidInput
            If ``p`` is outside (0, 1) or the quantile exceeds 1e300.

        Examples
        --------
        >>> Poisson(40.0).quantile(0.99)
        55
        """
        number = finite_number("p", p, "give a probability between 0 and 1")
        if not 0.0 < number < 1.0:
            raise InvalidInput("p", p, "give a probability between 0 and 1")
        if number <= 0.5:
            return self._invert(math.log(number), upper=False)
        return self._invert(math.log(1.0 - number), upper=True)

    def sample(self, rng: random.Random) -> int:
        """One draw of K by inversion of its distribution function.

        The uniform number has 256 bits counted from the nearer end, so tails far below 2^-53 are drawn too.

        Parameters
        ----------
        rng : random.Random
            Source of random bits; ``random.SystemRandom()`` for the operating system's.
        """
        upper = bool(rng.getrandbits(1))
        tail = (2 * rng.getrandbits(256) + 1) / (1 << 258)  # uniform in (0, 1/2)
        return self._invert(math.log(tail), upper=upper)

    @cached_property
    def _head(self) -> tuple[Array, Array]:
        """``P[K <= k]`` and ``P[K > k]`` for k < 4096: draws and most quantiles are a look-up."""
        p = np.exp(self.log_pmf(np.arange(float(_HEAD))))
        above = np.cumsum(np.append(p[1:], math.exp(self.log_sf(_HEAD - 1)))[::-1])[::-1]
        return np.cumsum(p), above

    def _invert(self, log_tail: float, *, upper: bool) -> int:
        """Smallest k with ``P[K > k] <= tail`` (upper) or ``P[K <= k] >= tail``."""
        below, above = self._head
        if upper:
            tail = math.exp(log_tail + _TIE)
            if above[-1] <= tail:
                return int(np.searchsorted(-above, -tail))
        else:
            tail = math.exp(log_tail - _TIE)
            if below[-1] >= tail:
                return int(np.searchsorted(below, tail))

        def reached(k: int) -> bool:
            if upper:
                return self.log_sf(k) <= log_tail + _TIE
            return self.log_cdf(k) >= log_tail - _TIE

        lo, step = _HEAD - 1, _HEAD
        while not reached(lo + step):  # lo never reaches
            lo += step
            step *= 2
            if lo > _LARGEST_RUNS:
                raise InvalidInput("quantile", f"above {float(lo):g}", "K is that large here; give a larger gamma")
        hi = lo + step
        while hi - lo > 1:
            mid = (lo + hi) // 2
            lo, hi = (lo, mid) if reached(mid) else (mid, hi)
        return hi


class Law(RunCount):
    """A law used to run K times and release the best output.

    In what follows u is the rank of an output, f the generating function of K.
    """

    @abstractmethod
    def log_density(self, rank: Rank) -> Array:
        """``log F(u)``, ``F(u) = f'(1-u)``; ``-inf`` at u = 1 if ``P[K = 1] = 0``."""

    @abstractmethod
    def log_pgf(self, rank: Rank) -> Array:
        """``log f(1-u)``: the probability that no run reaches rank u."""

    @abstractmethod
    def log_survival(self, rank: Rank) -> Array:
        """``log(1 - f(1-u))``, with full relative accuracy as ``u -> 0``."""

    @abstractmethod
    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
        """``log(f(1-lo) - f(1-hi))``: the probability that the best output has a rank between ``lo`` and ``hi``.

        Parameters
        ----------
        lo, hi : Rank
            Ends of the blocks, ``lo.u <= hi.u``.
        log_width : ndarray
            ``log(hi.u - lo.u)``, from the caller who knows it without cancellation.
        """

    @property
    @abstractmethod
    def expected_quantile(self) -> float:
        """``E[K/(K+1)]``: mean rank of the best of K independent uniform scores."""

    @property
    def affine_power(self) -> bool:
        """Whether ``f'`` is a power of an affine function, or the exponential limit of one."""
        return True

    @property
    def supremum_at_edge(self) -> bool:
        """Whether ``-u F'(u)/F(u)`` never decreases."""
        return True

    @abstractmethod
    def thin(self, log_keep: float) -> Law:
        """Law of K given that every run was kept, each being kept with probability ``exp(log_keep)``.

        ``P[K' = k]`` is proportional to ``P[K = k] exp(k log_keep)``: K' of Papernot and Steinke 2022, Lemma 20.

        Parameters
        ----------
        log_keep : float
            ``log(1 - delta0)``, finite and <= 0.
        """

    @abstractmethod
    def log_tail_mean(self, m: int) -> float:
        """``log E[K; K > m]``, m >= 0."""

    # Both below serve AtLeastOne, whose moments would lose digits as P[K = 0] -> 1.
    @property
    @abstractmethod
    def _log_mean_given_run(self) -> float:
        """``log E[K | K >= 1]``."""

    @property
    @abstractmethod
    def _second_factorial(self) -> float:
        """``E[K (K-1)]``."""

    @cached_property
    def _log_prob_run(self) -> float:
        """``log P[K >= 1]``."""
        return float(self.log_survival(_ONE))


def _check_keep(log_keep: float) -> float:
    if not (math.isfinite(log_keep) and log_keep <= 0.0):
        raise InvalidInput("log_keep", log_keep, "give log(1 - delta0) with 0 <= delta0 < 1")
    return log_keep


# ---------------------------------------------------------------------------------------------------------------------
# the families


@dataclass(frozen=True)
class Poisson(Law):
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
        object.__setattr__(self, "mu", _positive("mu", self.mu))

    @classmethod
    def with_mean(cls, mean: float) -> Poisson:
        """Poisson law of the given mean, > 0."""
        return cls(_positive("mean", mean))

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
        return self.mu * math.expm1(s) if s < 700.0 else math.inf

    def log_pmf(self, k: Array) -> Array:
        return log_poisson_pmf(k, self.mu)

    def log_sf(self, k: int) -> float:
        # P[K > k] = integral over [0, mu] of the Poisson probability of k as a function of its mean
        return min(log_integral(lambda t: log_poisson_pmf(float(k), t), 0.0, self.mu, float(k)), 0.0)

    def log_cdf(self, k: int) -> float:
        top = max(self.mu, float(k))
        far = top + 12.0 * math.sqrt(top) + 150.0
        return min(log_integral(lambda t: log_poisson_pmf(float(k), t), self.mu, far, float(k)), 0.0)

    def log_density(self, rank: Rank) -> Array:
        return np.asarray(self.log_mean - self.mu * np.exp(rank.log_u), dtype=float)

    def log_pgf(self, rank: Rank) -> Array:
        return np.asarray(-self.mu * np.exp(rank.log_u), dtype=float)

    def log_survival(self, rank: Rank) -> Array:
        return log1mexp_minus(self.log_mean + rank.log_u)

    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
        return self.log_pgf(lo) + log1mexp_minus(self.log_mean + np.asarray(log_width))

    @property
    def expected_quantile(self) -> float:
        return -math.expm1(float(log_mean_exp(self.mu)))

    def thin(self, log_keep: float) -> Poisson:
        return Poisson(self.mu * math.exp(_check_keep(log_keep)))

    def log_tail_mean(self, m: int) -> float:
        return self.log_mean + (self.log_sf(m - 1) if m > 0 else 0.0)

    @property
    def _log_mean_given_run(self) -> float:
        return -float(log_mean_exp(self.mu))

    @property
    def _second_factorial(self) -> float:
        return self.mu * self.mu


@dataclass(frozen=True)
class TruncatedNegativeBinomial(Law):
    """Truncated negative binomial number of runs (Papernot and Steinke 2022, Definition 1).

    Parameters
    ----------
    eta : float
        Shape, > -1. 0 is the logarithmic law, 1 the geometric.
    log_gamma : float
        Natural logarithm of gamma, <= 0. At 0 the law is the point mass K = 1.
    label : str
        ``"tnb"``, ``"geometric"`` or ``"logarithmic"``: the name to report.

    Examples
    --------
    >>> law = TruncatedNegativeBinomial.with_mean(40.0, eta=-0.5)
    >>> round(law.gamma, 15)
    0.000160230732254
    """

    eta: float
    log_gamma: float
    label: str = "tnb"
    given_gamma: float | None = field(default=None, compare=False, repr=False)  # as typed, for the echo

    def __post_init__(self) -> None:
        eta = finite_number("eta", self.eta, "give a number > -1")
        if not eta > -1.0:
            raise InvalidInput("eta", self.eta, "give a number > -1")
        log_gamma = finite_number("gamma", self.log_gamma, "give log gamma <= 0, finite")
        if log_gamma > 0.0:
            raise InvalidInput("gamma", self.log_gamma, "give log gamma <= 0, finite")
        if self.label not in ("tnb", "geometric", "logarithmic"):
            raise InvalidInput("dist", self.label, "give tnb, geometric or logarithmic")
        object.__setattr__(self, "eta", eta + 0.0)  # -0.0 and 0.0 are one law
        object.__setattr__(self, "log_gamma", log_gamma + 0.0)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The law's name as ``--dist``."""
        return self.label

    @classmethod
    def from_gamma(cls, eta: float, gamma: float, label: str = "tnb") -> TruncatedNegativeBinomial:
        """From gamma in (0, 1]; 1 is the point mass K = 1."""
        number = finite_number("gamma", gamma, "give a number with 0 < gamma <= 1")
        if not 0.0 < number <= 1.0:
            raise InvalidInput("gamma", gamma, "give a number with 0 < gamma <= 1")
        return cls(eta, math.log(number), label, number)

    @classmethod
    def with_mean(cls, mean: float, *, eta: float, label: str = "tnb") -> TruncatedNegativeBinomial:
        """The law of the given mean, >= 1 (exactly 1: the point mass).

        Raises
        ------
        InvalidInput
            If the mean is below 1, which no law of this family has.
        """
        number = finite_number("mean", mean, "give a number >= 1: this law runs at least once")
        if number < 1.0:
            raise InvalidInput("mean", mean, "give a number >= 1: this law runs at least once")
        shape = cls(eta, 0.0, label).eta
        if number == 1.0:
            return cls(shape, 0.0, label)
        target = math.log1p(number - 1.0)
        # log E[K] increases with L = -log gamma: bracket by doubling, halve (ratio, then distance) to the last bit
        lo = hi = 1.0
        while _tnb_log_mean(shape, hi) < target:
            lo, hi = hi, 2.0 * hi
        while _tnb_log_mean(shape, lo) >= target:
            lo *= 0.5 if lo > 0.125 else lo
        while True:
            mid = math.sqrt(lo) * math.sqrt(hi) if hi > 2.0 * lo else 0.5 * (lo + hi)
            if not lo < mid < hi:
                break
            lo, hi = (mid, hi) if _tnb_log_mean(shape, mid) < target else (lo, mid)
        best = min((lo, hi), key=lambda x: abs(_tnb_log_mean(shape, x) - target))
        return cls(shape, -best, label)

    @property
    def gamma(self) -> float:
        """Gamma itself; 0.0 where it lies below the smallest double (``log_gamma`` keeps it)."""
        return math.exp(self.log_gamma) if self.given_gamma is None else self.given_gamma

    def parameters(self) -> Echo:
        # below the normal doubles gamma has lost its digits: echo what still determines the law
        scale: Echo = {"gamma": self.gamma} if self.log_gamma > -708.0 else {"log_gamma": self.log_gamma}
        return {"eta": self.eta, **scale} if self.label == "tnb" else scale

    @property
    def _length(self) -> float:
        """L = log(1/gamma)."""
        return -self.log_gamma

    @cached_property
    def _log_not_gamma(self) -> float:
        return float(log1mexp(self.log_gamma))

    @cached_property
    def _log_odds(self) -> float:
        """``log((1 - gamma)/gamma)``."""
        return float(log_expm1(self._length)) if self._length > 0.0 else -math.inf

    @cached_property
    def log_mean(self) -> float:
        return _tnb_log_mean(self.eta, self._length)

    @cached_property
    def sd(self) -> float:
        # Var = E[K] (E[K(K-1)]/E[K] + 1 - E[K]), E[K(K-1)]/E[K] = (1+eta) X with X = (1-gamma)/gamma
        size, eta = self._length, self.eta
        if size == 0.0:
            return 0.0
        if size * max(abs(eta), 1.0) <= 1.0 or eta < -0.5:
            log_x = self._log_odds + math.log1p(eta)
            if log_x > 600.0:
                return _exp(0.5 * (self.log_mean + log_x))
            return math.sqrt(self.mean * (math.exp(log_x) - math.expm1(self.log_mean)))
        # the same with E[K] = eta X / (1 - gamma^eta) inserted: 1 + X - eta X / (gamma^-eta - 1)
        part = math.exp(-math.log(size) - self._log_growth(size))  # eta / (gamma^-eta - 1)
        log_ratio = size + math.log1p(-part * float(np.exp(self._log_not_gamma)))
        return _exp(0.5 * (self.log_mean + log_ratio))

    def _log_growth(self, x: float) -> float:
        """``log((exp(eta x) - 1) / (eta x))``."""
        return max(self.eta, 0.0) * x + float(log_mean_exp(abs(self.eta) * x))

    @property
    def max_runs(self) -> int | None:
        return 1 if self._length == 0.0 else None

    def cumulant(self, s: float) -> float:
        if self._length == 0.0 or s == 0.0:
            return s
        log_share = self._log_odds + float(log_expm1(s))
        if log_share >= 0.0:  # e^s is beyond the radius 1/(1-gamma)
            return math.inf
        # y = -log(1 - (1-gamma) e^s) lies beyond L; f is the ratio of (e^(eta y) - 1) to its value at L
        size, step = self._length, -float(log1mexp(log_share))
        growth = float(log_mean_exp(abs(self.eta) * (size + step)) - log_mean_exp(abs(self.eta) * size))
        return math.log1p(step / size) + max(self.eta, 0.0) * step + growth

    def log_pmf(self, k: Array) -> Array:
        k = np.asarray(k, dtype=float)
        if self._length == 0.0:
            return np.where(k == 1.0, 0.0, -np.inf)
        some = np.maximum(k, 1.0)
        # (1-gamma)^k / (gamma^-eta - 1) * Gamma(k+eta) / (Gamma(eta) k!), the coefficient through the beta function
        out = (
            some * self._log_not_gamma
            - math.log(self._length)
            - self._log_growth(self._length)
            - np.log(some)
            - np.log(some + self.eta)
            - log_beta(some, 1.0 + self.eta)
        )
        return np.asarray(np.where(k >= 1.0, out, -np.inf), dtype=float)

    def _log_tail(self, k: float, power: float) -> float:
        """``log`` of the integral over [0, L] of ``(1 - e^-r)^k e^(-power r)``: an incomplete beta function."""
        size = self._length
        peak = math.log1p(k / power) if power > 0.0 and k < power * 1e300 else size
        # beyond the end (1 - e^-r)^k is 1 to the last bit and what is left is an exponential
        end = min(size, math.log(max(k, 1.0)) + 37.0) if k > 0.0 else 0.0
        body = log_integral(lambda r: k * log1mexp(-r) - power * r, 0.0, end, peak, 1.0)
        if end == size:
            return body
        rest = size - end
        start = end if power >= 0.0 else size
        far = math.log(rest) - power * start + float(log_mean_exp(abs(power) * rest))
        return float(logaddexp(body, far))

    def log_sf(self, k: int) -> float:
        if k <= 0:
            return 0.0
        if self._length == 0.0:
            return -math.inf
        if self.eta == 1.0:
            return k * self._log_not_gamma
        n = float(k)
        coefficient = -math.log(n + 1.0 + self.eta) - float(log_beta(n + 1.0, 1.0 + self.eta))
        scale = math.log(self._length) + self._log_growth(self._length) - self.eta * self._length
        return min(coefficient + self._log_tail(n, self.eta) - scale, 0.0)

    def log_tail_mean(self, m: int) -> float:
        if m <= 0:
            return self.log_mean
        if self._length == 0.0:
            return -math.inf
        # K P[K] / E[K] is the law of 1 + an untruncated negative binomial of shape eta + 1
        share = self._log_tail(m - 1.0, self.eta + 1.0) - float(log_beta(float(m), self.eta + 1.0))
        return self.log_mean + min(share, 0.0)

    def log_density(self, rank: Rank) -> Array:
        return np.asarray(self.log_mean - (self.eta + 1.0) * softplus(rank.log_u + self._log_odds), dtype=float)

    def _depth(self, rank: Rank) -> tuple[Array, Array]:
        """Logarithms of ``w = -log(gamma + (1-gamma) u)`` and of ``d = L - w``, each without cancellation."""
        log_x = self._log_not_gamma + np.asarray(rank.log_q, dtype=float)
        with np.errstate(divide="ignore"):
            far = np.log(np.maximum(-logaddexp(self.log_gamma, self._log_not_gamma + rank.log_u), 0.0))
        return np.where(log_x < -0.5, _log_hazard(log_x), far), _log_softplus(rank.log_u + self._log_odds)

    def _raw(self, rank: Rank) -> tuple[Array, Array]:
        """``log f`` and ``log(1 - f)``, each good where it is not near 0."""
        log_w, log_d = self._depth(rank)
        w, d = np.exp(log_w), np.exp(log_d)
        size, h = self._length, abs(self.eta)
        base = -math.log(size) - float(log_mean_exp(h * size))
        log_f, log_s = base + log_w + log_mean_exp(h * w), base + log_d + log_mean_exp(h * d)
        return (log_f - h * d, log_s) if self.eta >= 0.0 else (log_f, log_s - h * w)

    def log_pgf(self, rank: Rank) -> Array:
        if self._length == 0.0:
            return np.asarray(rank.log_q, dtype=float)
        log_f, log_s = self._raw(rank)
        return np.asarray(np.where(log_s < -0.7, log1mexp(np.minimum(log_s, 0.0)), log_f), dtype=float)

    def log_survival(self, rank: Rank) -> Array:
        if self._length == 0.0:
            return np.asarray(rank.log_u, dtype=float)
        log_f, log_s = self._raw(rank)
        return np.asarray(np.where(log_f < -0.7, log1mexp(np.minimum(log_f, 0.0)), log_s), dtype=float)

    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
        log_width = np.asarray(log_width, dtype=float)
        if self._length == 0.0:
            return log_width
        log_w, log_d = self._depth(lo)
        log_step = _log_softplus(self._log_not_gamma + log_width + np.exp(log_w))  # of w(lo) - w(hi)
        size, h = self._length, abs(self.eta)
        out = log_step - math.log(size) + log_mean_exp(h * np.exp(log_step)) - float(log_mean_exp(h * size))
        tilt = log_d if self.eta >= 0.0 else self._depth(hi)[0]
        return np.asarray(out - h * np.exp(tilt), dtype=float)

    @cached_property
    def expected_quantile(self) -> float:
        size, eta = self._length, self.eta
        if size == 0.0:
            return 0.5
        if abs(eta) >= 0.25:
            # (1 - G((1-eta)L)/G(L)) / (1 - e^(-eta L)) with G(x) = (e^x - 1)/x
            x = (1.0 - eta) * size
            if max(abs(x), size) <= 1.0:
                gap = -0.5 * eta * size - log_sinhc_gap(size, eta)
            else:
                gap = float(log_mean_exp(abs(x))) - float(log_mean_exp(size)) + (-eta * size if x >= 0.0 else -size)
            if eta > 0.0:
                return math.expm1(gap) / math.expm1(-eta * size)
            return math.exp(eta * size + math.log(math.expm1(gap)) - math.log(-math.expm1(eta * size))) \
                if gap < 700.0 else math.exp(eta * size + gap)  # fmt: skip
        # Near eta = 0 that is 0/0: integrate 1 - f over the rank, in d = log(1 + X u), du = e^d / (e^L - 1) dd

        def integrand(d: Array) -> Array:
            h = abs(eta)
            log_s = np.log(d / size) + log_mean_exp(h * d) - float(log_mean_exp(h * size))
            return np.asarray(log_s - (h * (size - d) if eta < 0.0 else 0.0) + d - size, dtype=float)

        return math.exp(log_integral(integrand, 0.0, size, size) - float(log1mexp(-size)))

    def thin(self, log_keep: float) -> TruncatedNegativeBinomial:
        lost = float(log1mexp(_check_keep(log_keep)))
        if self._length == 0.0 or math.isinf(lost):
            return self
        log_gamma = float(logaddexp(self.log_gamma, self._log_not_gamma + lost))
        if log_gamma > -0.5:
            log_gamma = float(log1mexp(self._log_not_gamma + log_keep))
        return TruncatedNegativeBinomial(self.eta, min(log_gamma, 0.0), self.label)

    @property
    def _log_mean_given_run(self) -> float:
        return self.log_mean

    @property
    def _second_factorial(self) -> float:
        return _exp(self.log_mean + math.log1p(self.eta) + self._log_odds)


def _exp(x: float) -> float:
    return math.exp(x) if x < 709.78 else math.inf


def _tnb_log_mean(eta: float, size: float) -> float:
    """``log(eta (1-gamma) / (gamma (1 - gamma^eta)))`` at ``gamma = exp(-size)``; relatively accurate near 0 too."""
    h = 1.0 + eta
    if size * max(abs(eta), 1.0) <= 1.0:
        return 0.5 * h * size + log_sinhc_gap(size, h)
    if eta <= -0.5:
        # log of (e^L - 1)/(e^(-eta L) - 1) times -eta, around L (1 + eta)
        return h * size + math.log1p(-math.expm1(-h * size) / -math.expm1(eta * size) * math.exp(eta * size)) \
            + math.log1p(-h)  # fmt: skip
    low = min(eta, 0.0)
    return (1.0 + low) * size + float(log_mean_exp(size)) - float(log_mean_exp(abs(eta) * size))


@dataclass(frozen=True)
class Binomial(Law):
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
        object.__setattr__(self, "n", _integer("n", self.n, 1))
        number = finite_number("p", self.p, "give a number with 0 < p <= 1")
        if not 0.0 < number <= 1.0:
            raise InvalidInput("p", self.p, "give a number with 0 < p <= 1")
        object.__setattr__(self, "p", number)

    @classmethod
    def with_mean(cls, mean: float, *, n: int) -> Binomial:
        """The law with ``p = mean / n``; the mean is > 0 and at most n."""
        number, count = _positive("mean", mean), _integer("n", n, 1)
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
        return -math.inf if k >= self.n else self._log_tail(k, upper=True)

    def log_cdf(self, k: int) -> float:
        return 0.0 if k >= self.n else self._log_tail(k, upper=False)

    def _log_fail(self, rank: Rank) -> Array:
        """``log(1 - p u)``: a run is not made, or stays below rank u."""
        log_pu = math.log(self.p) + rank.log_u
        with np.errstate(over="ignore"):
            near = np.log1p(-np.exp(np.minimum(log_pu, -0.6)))
        return np.asarray(
            np.where(log_pu < -0.6, near, logaddexp(self._log_miss, math.log(self.p) + rank.log_q)), dtype=float
        )

    def log_density(self, rank: Rank) -> Array:
        return np.asarray(self.log_mean + _times(self.n - 1, self._log_fail(rank)), dtype=float)

    def log_pgf(self, rank: Rank) -> Array:
        return np.asarray(self.n * self._log_fail(rank), dtype=float)

    def log_survival(self, rank: Rank) -> Array:
        log_pu = math.log(self.p) + rank.log_u
        with np.errstate(divide="ignore"):
            far = np.log(-self._log_fail(rank))
        hazard = np.where(log_pu < -36.0, log_pu, far)
        return log1mexp_minus(math.log(self.n) + hazard)

    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
        base = self._log_fail(lo)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isneginf(log_width), -np.inf, math.log(self.p) + np.asarray(log_width) - base)
            out = self.n * base + log1mexp_minus(math.log(self.n) + _log_hazard(share))
        return np.asarray(np.where(np.isneginf(base), -np.inf, out), dtype=float)

    @property
    def expected_quantile(self) -> float:
        if self.p == 1.0:
            return self.n / (self.n + 1.0)
        x = -self._log_miss
        return -math.expm1(float(log_mean_exp((self.n + 1.0) * x)) - float(log_mean_exp(x)))

    def thin(self, log_keep: float) -> Binomial:
        keep = math.exp(_check_keep(log_keep))
        if keep == 0.0:
            raise InvalidInput("log_keep", log_keep, "give a delta0 further from 1")
        return Binomial(self.n, min(self.p * keep / ((1.0 - self.p) + self.p * keep), 1.0))

    def log_tail_mean(self, m: int) -> float:
        if m >= self.n:
            return -math.inf
        if m <= 0:
            return self.log_mean
        return self.log_mean + Binomial(self.n - 1, self.p).log_sf(m - 1)

    @property
    def _log_mean_given_run(self) -> float:
        if self.p == 1.0:
            return self.log_mean
        x = -self._log_miss
        return float(log_mean_exp(x)) - float(log_mean_exp(self.n * x))

    @property
    def _second_factorial(self) -> float:
        return self.n * (self.n - 1.0) * self.p * self.p


@dataclass(frozen=True)
class Fixed(Law):
    """A fixed number of runs (Papernot and Steinke 2022, Section 3.2: its cost is that of composition).

    Parameters
    ----------
    k : int
        Number of runs, >= 1.
    """

    k: int
    name: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _integer("k", self.k, 1))

    def parameters(self) -> Echo:
        return {"k": self.k}

    @property
    def mean(self) -> float:
        return float(self.k)

    @property
    def log_mean(self) -> float:
        return math.log(self.k)

    @property
    def sd(self) -> float:
        return 0.0

    @property
    def max_runs(self) -> int | None:
        return self.k

    def cumulant(self, s: float) -> float:
        return self.k * s

    def log_pmf(self, k: Array) -> Array:
        return np.where(np.asarray(k, dtype=float) == self.k, 0.0, -np.inf)

    def log_sf(self, k: int) -> float:
        return 0.0 if k < self.k else -math.inf

    def log_cdf(self, k: int) -> float:
        return 0.0 if k >= self.k else -math.inf

    def log_density(self, rank: Rank) -> Array:
        return self.log_mean + _times(self.k - 1, rank.log_q)

    def log_pgf(self, rank: Rank) -> Array:
        return np.asarray(self.k * np.asarray(rank.log_q), dtype=float)

    def log_survival(self, rank: Rank) -> Array:
        with np.errstate(divide="ignore"):
            hazard = np.where(np.asarray(rank.log_u) < -36.0, rank.log_u, np.log(-np.asarray(rank.log_q)))
        return log1mexp_minus(self.log_mean + hazard)

    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
        return Binomial(self.k, 1.0).log_block(lo, hi, log_width)

    @property
    def expected_quantile(self) -> float:
        return self.k / (self.k + 1.0)

    def thin(self, log_keep: float) -> Fixed:
        _check_keep(log_keep)
        return self

    def log_tail_mean(self, m: int) -> float:
        return self.log_mean if m < self.k else -math.inf

    @property
    def _log_mean_given_run(self) -> float:
        return self.log_mean

    @property
    def _second_factorial(self) -> float:
        return self.k * (self.k - 1.0)


# ---------------------------------------------------------------------------------------------------------------------
# laws given by a table


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
        keep = (k >= 1.0) & (log_p > -np.inf)
        k, log_p = k[keep], log_p[keep]
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
        k, log_p = self._table
        return min(float(log_p[0]), 0.0) if k[0] == 0.0 else -math.inf

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

    def log_density(self, rank: Rank) -> Array:
        return self._sums[1].log_value(rank.log_q)

    def log_survival(self, rank: Rank) -> Array:
        log_u = np.asarray(rank.log_u, dtype=float)
        with np.errstate(divide="ignore"):
            hazard = np.where(log_u < -36.0, log_u, np.log(-np.asarray(rank.log_q)))
        return np.minimum(self._sums[0].log_drop(np.zeros(()), hazard), 0.0)

    def log_pgf(self, rank: Rank) -> Array:
        direct = logaddexp(self.log_prob_zero, self._sums[0].log_value(rank.log_q))
        lost = self.log_survival(rank)
        return np.asarray(np.where(lost < -0.7, log1mexp(lost), np.minimum(direct, 0.0)), dtype=float)

    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
        base = np.asarray(lo.log_q, dtype=float)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isneginf(log_width), -np.inf, np.asarray(log_width) - base)
        out = self._sums[0].log_drop(np.where(np.isneginf(base), 0.0, base), _log_hazard(share))
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
    def _log_mean_given_run(self) -> float:
        k, log_p = self._some
        p = np.exp(log_p - log_p.max())
        return math.log1p(float(np.sum(p * (k - 1.0)) / np.sum(p)))

    @property
    def _second_factorial(self) -> float:
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
        tilted = log_p + k * _check_keep(log_keep)
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
        k = _integer("pmf", key, 0)
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


# ---------------------------------------------------------------------------------------------------------------------
# modifiers


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
    >>> law = AtMost(Poisson(10.0), 30)
    >>> law.max_runs, 9.99 < law.mean < 10.0
    (30, True)
    """

    law: Law
    m: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", _integer("max_runs", self.m, 1))
        if not isinstance(self.law, Law):
            raise InvalidInput("max_runs", self.m, "leave it out: it applies to laws of a best-of-K search only")
        if self._plain is None:
            if self.m > _LARGEST_CUTOFF:
                raise InvalidInput("max_runs", self.m, f"give at most {_LARGEST_CUTOFF}, or leave it out")
            if math.isinf(self._log_kept):
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
    def _log_kept(self) -> float:
        """``log P[K <= m]`` under the inner law."""
        return float(logsumexp(self._raw_table[1]))

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        k, log_p = self._raw_table
        return k, log_p - self._log_kept

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
        return _exp(self.law.log_tail_mean(self.m))

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
    def _log_mean_given_run(self) -> float:
        return super()._log_mean_given_run if self._plain is None else self._plain._log_mean_given_run

    @property
    def _second_factorial(self) -> float:
        return super()._second_factorial if self._plain is None else self._plain._second_factorial

    def cumulant(self, s: float) -> float:
        return super().cumulant(s) if self._plain is None else self._plain.cumulant(s)

    def log_pmf(self, k: Array) -> Array:
        return super().log_pmf(k) if self._plain is None else self._plain.log_pmf(k)

    def log_sf(self, k: int) -> float:
        return super().log_sf(k) if self._plain is None else self._plain.log_sf(k)

    def log_cdf(self, k: int) -> float:
        return super().log_cdf(k) if self._plain is None else self._plain.log_cdf(k)

    def log_density(self, rank: Rank) -> Array:
        return super().log_density(rank) if self._plain is None else self._plain.log_density(rank)

    def log_pgf(self, rank: Rank) -> Array:
        return super().log_pgf(rank) if self._plain is None else self._plain.log_pgf(rank)

    def log_survival(self, rank: Rank) -> Array:
        return super().log_survival(rank) if self._plain is None else self._plain.log_survival(rank)

    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
        if self._plain is None:
            return super().log_block(lo, hi, log_width)
        return self._plain.log_block(lo, hi, log_width)

    def log_tail_mean(self, m: int) -> float:
        return super().log_tail_mean(m) if self._plain is None else self._plain.log_tail_mean(m)

    def thin(self, log_keep: float) -> AtMost:
        return AtMost(self.law.thin(log_keep), self.m)


@dataclass(frozen=True)
class AtLeastOne(Law):
    """A law given ``K >= 1``: the same search, drawn again until it runs at all.

    Parameters
    ----------
    law : Law
        The law before the condition.

    Examples
    --------
    >>> AtLeastOne(Poisson(1.0)).prob_zero
    0.0
    """

    law: Law

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            raise InvalidInput("at_least_one", True, "leave it out: it applies to laws of a best-of-K search only")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the law before the condition."""
        return self.law.name

    def parameters(self) -> Echo:
        return {**self.law.parameters(), "at_least_one": True}

    @property
    def _shift(self) -> float:
        return self.law._log_prob_run

    @property
    def log_mean(self) -> float:
        return self.law._log_mean_given_run

    @property
    def sd(self) -> float:
        if math.isinf(self.law.log_prob_zero):
            return self.law.sd
        share = math.exp(self._shift)
        if share > 0.7:
            return math.sqrt(max(self.law.sd**2 / share - self.law.mean**2 * self.law.prob_zero / share**2, 0.0))
        growth = self.law._second_factorial / share
        return math.sqrt(max(growth - self.mean * math.expm1(self.log_mean), 0.0))

    @property
    def max_runs(self) -> int | None:
        return self.law.max_runs

    def cumulant(self, s: float) -> float:
        whole = self.law.cumulant(s)
        return whole + float(log1mexp(min(self.law.log_prob_zero - whole, 0.0))) - self._shift

    def log_pmf(self, k: Array) -> Array:
        k = np.asarray(k, dtype=float)
        return np.where(k >= 1.0, self.law.log_pmf(k) - self._shift, -np.inf)

    def log_sf(self, k: int) -> float:
        return 0.0 if k <= 0 else min(self.law.log_sf(k) - self._shift, 0.0)

    def log_density(self, rank: Rank) -> Array:
        return np.asarray(self.law.log_density(rank) - self._shift, dtype=float)

    def _raw(self, rank: Rank) -> tuple[Array, Array]:
        """``log f`` and ``log(1 - f)``, each good where it is not near 0; f is the block from u to 1."""
        log_f = self.law.log_block(rank, _ONE, np.asarray(rank.log_q, dtype=float)) - self._shift
        log_s = self.law.log_survival(rank) - self._shift
        return np.minimum(log_f, 0.0), np.minimum(log_s, 0.0)

    def log_pgf(self, rank: Rank) -> Array:
        log_f, log_s = self._raw(rank)
        return np.asarray(np.where(log_s < -0.7, log1mexp(log_s), log_f), dtype=float)

    def log_survival(self, rank: Rank) -> Array:
        log_f, log_s = self._raw(rank)
        return np.asarray(np.where(log_f < -0.7, log1mexp(log_f), log_s), dtype=float)

    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
        return np.asarray(self.law.log_block(lo, hi, log_width) - self._shift, dtype=float)

    @property
    def expected_quantile(self) -> float:
        return self.law.expected_quantile / math.exp(self._shift)

    @property
    def affine_power(self) -> bool:
        return self.law.affine_power

    @property
    def supremum_at_edge(self) -> bool:
        return self.law.supremum_at_edge

    def thin(self, log_keep: float) -> AtLeastOne:
        return AtLeastOne(self.law.thin(log_keep))

    def log_tail_mean(self, m: int) -> float:
        return self.law.log_tail_mean(m) - self._shift

    @property
    def _log_mean_given_run(self) -> float:
        return self.log_mean

    @property
    def _second_factorial(self) -> float:
        return self.law._second_factorial / math.exp(self._shift)


# ---------------------------------------------------------------------------------------------------------------------
# conditional sampling


@dataclass(frozen=True)
class Threshold(RunCount):
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
        number = finite_number("accept", self.accept, "give a probability with 0 < accept <= 1")
        if not 0.0 < number <= 1.0:
            raise InvalidInput("accept", self.accept, "give a probability with 0 < accept <= 1")
        object.__setattr__(self, "accept", number)

    @classmethod
    def with_mean(cls, mean: float) -> Threshold:
        """The law of the given mean number of runs, >= 1."""
        number = finite_number("mean", mean, "give a number >= 1: this law runs at least once")
        if number < 1.0:
            raise InvalidInput("mean", mean, "give a number >= 1: this law runs at least once")
        return cls(1.0 / number)

    def parameters(self) -> Echo:
        return {"accept": self.accept}

    @property
    def mean(self) -> float:
        return 1.0 / self.accept

    @property
    def log_mean(self) -> float:
        return -math.log(self.accept)

    @property
    def sd(self) -> float:
        return math.sqrt(1.0 - self.accept) / self.accept

    @property
    def max_runs(self) -> int | None:
        return 1 if self.accept == 1.0 else None

    @property
    def _log_reject(self) -> float:
        return math.log1p(-self.accept) if self.accept < 1.0 else -math.inf

    def cumulant(self, s: float) -> float:
        if self.accept == 1.0 or s == 0.0:
            return s
        log_share = self._log_reject - math.log(self.accept) + float(log_expm1(s))
        return s - float(log1mexp(log_share)) if log_share < 0.0 else math.inf

    def log_pmf(self, k: Array) -> Array:
        k = np.asarray(k, dtype=float)
        if self.accept == 1.0:
            return np.where(k == 1.0, 0.0, -np.inf)
        return np.where(k >= 1.0, (k - 1.0) * self._log_reject + math.log(self.accept), -np.inf)

    def log_sf(self, k: int) -> float:
        return k * self._log_reject if k > 0 else 0.0


# ---------------------------------------------------------------------------------------------------------------------
# by name

# Every law by name: the options it needs or may take, the first group being its scale (one of them, or --mean).
DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "poisson": ("mu",),
    "tnb": ("eta", "gamma"),
    "geometric": ("gamma",),
    "logarithmic": ("gamma",),
    "binomial": ("n", "p"),
    "fixed": ("k",),
    "pmf": ("pmf",),
    "threshold": ("accept",),
}
_SCALE = {"poisson": "mu", "tnb": "gamma", "geometric": "gamma", "logarithmic": "gamma", "binomial": "p",
          "threshold": "accept"}  # fmt: skip
_MODIFIERS = ("max_runs", "at_least_one")
_ETA = {"geometric": 1.0, "logarithmic": 0.0}


def make_law(dist: str, **params: object) -> RunCount:
    """Law of K from its name and its options, as on the command line.

    Parameters
    ----------
    dist : str
        One of poisson, tnb, geometric, logarithmic, binomial, fixed, pmf, threshold.
    **params
        ``mu, eta, gamma, n, p, k, accept, pmf`` as the law needs them; ``mean`` in place of its scale parameter;
        ``max_runs`` (K given K <= max_runs; the mean is the one before that condition) and ``at_least_one``. None
        stands for not given.

    Raises
    ------
    InvalidInput
        For an unknown law, and for parameters that are missing, superfluous or out of range.

    Examples
    --------
    >>> make_law("tnb", eta=0, gamma=1).mean
    1.0
    >>> make_law("poisson", mean=10, max_runs=30).parameters()
    {'mu': 10.0, 'max_runs': 30}
    """
    if str(dist) not in DISTRIBUTIONS:
        near = difflib.get_close_matches(str(dist), DISTRIBUTIONS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InvalidInput("dist", dist, f"{hint}the laws are {', '.join(DISTRIBUTIONS)}")
    given = {key: value for key, value in params.items() if value is not None}
    allowed = DISTRIBUTIONS[dist]
    scale = _SCALE.get(dist)
    for key, value in given.items():
        if key not in (*allowed, *_MODIFIERS, "mean"):
            raise InvalidInput(key, value, f"{dist} takes {' and '.join(allowed)}; leave {key} out")
    mean = given.get("mean")
    if mean is not None:
        if scale is None:
            raise InvalidInput("mean", mean, f"{dist} takes no mean, it has one; give {' and '.join(allowed)} only")
        if scale in given:
            raise InvalidInput("mean", mean, f"give either mean or {scale}, not both")
    for key in allowed:
        if key not in given and not (key == scale and mean is not None):
            other = " or mean" if key == scale else ""
            raise InvalidInput(key, "(missing)", f"{dist} needs {key}{other}")
    law = _plain_law(dist, given)
    most, some = given.get("max_runs"), given.get("at_least_one", False)
    if not isinstance(some, (bool, np.bool_)):
        raise InvalidInput("at_least_one", some, "give true or false")
    if most is not None:
        if not isinstance(law, Law):
            raise InvalidInput("max_runs", most, f"{dist} runs until acceptance; leave max_runs out")
        law = AtMost(law, most)  # type: ignore[arg-type]
    if some:
        if not isinstance(law, Law):
            raise InvalidInput("at_least_one", True, f"{dist} always runs; leave it out")
        law = AtLeastOne(law)
    return law


def _plain_law(dist: str, given: Mapping[str, object]) -> RunCount:
    value: dict[str, float] = given  # type: ignore[assignment]  # every constructor checks what it gets
    mean = value.get("mean")
    if dist == "poisson":
        return Poisson(value["mu"]) if mean is None else Poisson.with_mean(mean)
    if dist in ("tnb", "geometric", "logarithmic"):
        eta = value["eta"] if dist == "tnb" else _ETA[dist]
        if mean is None:
            return TruncatedNegativeBinomial.from_gamma(eta, value["gamma"], dist)
        return TruncatedNegativeBinomial.with_mean(mean, eta=eta, label=dist)
    if dist == "binomial":
        n: int = value["n"]  # type: ignore[assignment]
        return Binomial(n, value["p"]) if mean is None else Binomial.with_mean(mean, n=n)
    if dist == "fixed":
        return Fixed(value["k"])  # type: ignore[arg-type]
    if dist == "pmf":
        return FinitePmf(value["pmf"])  # type: ignore[arg-type]
    return Threshold(value["accept"]) if mean is None else Threshold.with_mean(mean)


def parse_law(text: str) -> dict[str, object]:
    """Read ``"tnb:eta=0,mean=10"``: a law's name, then its options (``-`` and ``_`` alike).

    ``at-least-one`` stands alone or as ``at-least-one=true``. A pmf may be given in place (``pmf:1=0.5,1000=0.5``) or
    as a file name (``pmf:pmf=FILE``), which the caller reads.

    Returns
    -------
    dict
        Keyword arguments for :func:`make_law`.

    Raises
    ------
    InvalidInput
        Naming ``law``.

    Examples
    --------
    >>> parse_law("tnb:eta=0,mean=10")
    {'dist': 'tnb', 'eta': 0.0, 'mean': 10.0}
    """
    shape = 'write NAME:option=value,..., as in "tnb:eta=0,mean=10"'
    if not isinstance(text, str):
        raise InvalidInput("law", text, shape)
    name, _, rest = text.strip().partition(":")
    dist = name.strip()
    if dist not in DISTRIBUTIONS:
        near = difflib.get_close_matches(dist, DISTRIBUTIONS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InvalidInput("law", text, f"{hint}the laws are {', '.join(DISTRIBUTIONS)}")
    known = (*DISTRIBUTIONS[dist], "mean", *_MODIFIERS)
    out: dict[str, object] = {"dist": dist}
    table: dict[str, float] = {}
    for item in rest.split(",") if rest.strip() else []:
        key, equals, raw = (part.strip() for part in item.partition("="))
        raw_key, key = key, key.replace("-", "_")
        if key in out or raw_key in table:
            raise InvalidInput("law", text, f"give {raw_key} once")
        if key == "at_least_one":
            if raw.lower() not in ("", "true", "false"):
                raise InvalidInput("law", text, f"give {raw_key} alone, or as true or false")
            out[key] = raw.lower() != "false"
            continue
        if not equals or not raw:
            raise InvalidInput("law", text, shape)
        if key == "pmf" and dist == "pmf":
            out[key] = raw
            continue
        inline = dist == "pmf" and key.isdigit()
        if key not in known and not inline:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise InvalidInput("law", text, f"{hint}{dist} takes {', '.join(known)}, not {raw_key}")
        try:
            number = float(raw)
        except ValueError:
            raise InvalidInput("law", text, f"give a number for {raw_key}, not {raw!r}") from None
        if inline:
            table[raw_key] = number
        else:
            out[key] = number
    if table:
        if "pmf" in out:
            raise InvalidInput("law", text, "give the probabilities in place or as a file, not both")
        out["pmf"] = table
    return out
