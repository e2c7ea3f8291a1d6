"""The truncated negative binomial family, written in L = log(1/gamma), and runs until acceptance."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hpcalc.errors import InvalidInput, checked_number
from hpcalc.laws.families import AffinePower
from hpcalc.laws.law import Echo, SameCount, mean_of_some, probability, safe_exp
from hpcalc.laws.probabilities import log_beta, log_mean_exp, times
from hpcalc.logspace import Array, log1mexp, log_expm1

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, init=False, repr=False)
class TruncatedNegativeBinomial(AffinePower):
    """Truncated negative binomial number of runs (Papernot and Steinke 2022, Definition 1).

    Parameters
    ----------
    eta : float
        Shape, > -1. 0 is the logarithmic law, 1 the geometric.
    gamma : float
        Scale, in (0, 1]; 1 is the point mass K = 1. Below 1e-308: :meth:`from_log_gamma`; ``log_gamma`` keeps its
        digits wherever gamma has none left.

    Examples
    --------
    >>> law = TruncatedNegativeBinomial(eta=0.0, gamma=0.02)
    >>> round(law.mean, 6)
    12.525489
    >>> round(TruncatedNegativeBinomial.with_mean(40.0, eta=-0.5).gamma, 15)
    0.000160230732254
    """

    eta: float
    log_gamma: float
    gamma: float = field(compare=False)  # as typed; 0.0 where it lies below the smallest double
    name: ClassVar[str] = "tnb"
    _shape: ClassVar[float | None] = None  # eta, where the law's name says it
    _log_not_gamma: ClassVar[float]  # set when made

    def __init__(self, eta: float, gamma: float) -> None:
        number = probability("gamma", gamma)
        self._set(eta, math.log(number), number)

    def _set(self, eta: float, log_gamma: float, gamma: float) -> None:
        shape = checked_number("eta", eta, "give a number > -1", lambda x: -1.0 < x < math.inf)
        if self._shape is not None and shape != self._shape:
            raise InvalidInput("eta", eta, f"a {self.name} law has eta {self._shape:g}: leave it out")
        number = checked_number("gamma", log_gamma, "give log gamma <= 0, finite", lambda x: -math.inf < x <= 0.0)
        log_mean = _log_mean(shape, -number)
        # Var / E[K] = E[K(K-1)]/E[K] + 1 - E[K] = 1/gamma - eta X / (gamma^-eta - 1) with X = (1-gamma)/gamma, whose
        # last term is gamma^eta E[K]
        share = -math.expm1(min(log_mean + (1.0 + shape) * number, 0.0))
        sd = safe_exp(0.5 * (log_mean - number)) * math.sqrt(share)
        vars(self).update(eta=shape + 0.0, log_gamma=number + 0.0, gamma=gamma)  # no -0.0
        vars(self).update(log_mean=log_mean, sd=sd, max_runs=1 if number == 0.0 else None)
        vars(self).update(_affine=(1, shape, float(log_expm1(-number))), _log_not_gamma=float(log1mexp(number)))

    @classmethod
    def from_log_gamma(cls, eta: float, log_gamma: float) -> Self:
        """From the natural logarithm of gamma, finite and <= 0."""
        law = cls.__new__(cls)
        law._set(eta, log_gamma, safe_exp(log_gamma))
        return law

    def __repr__(self) -> str:
        scale = self.parameters()
        maker, values = ("", scale) if "gamma" in scale else (".from_log_gamma", {"eta": self.eta, **scale})
        return f"{type(self).__name__}{maker}({', '.join(f'{key}={value!r}' for key, value in values.items())})"

    @classmethod
    def with_mean(cls, mean: float, *, eta: float | None = None) -> Self:
        """The law of the given mean, >= 1 (exactly 1: the point mass); eta is given where the name leaves it open."""
        shape = cls.from_log_gamma(cls._shape if eta is None else eta, 0.0).eta  # type: ignore[arg-type]  # checked
        target = math.log1p(mean_of_some(mean) - 1.0)
        # The least double L = -log gamma, by its bits, for which log E[K] is not below: it increases with L. Even at
        # eta = -1 + 2^-53 the largest mean has L < 2^64.
        doubles = range(1087 << 52)
        bits = bisect_left(doubles, target, key=lambda bits: _log_mean(shape, float(np.int64(bits).view(float))))
        return cls.from_log_gamma(shape, -float(np.int64(bits).view(float)))

    def parameters(self) -> Echo:
        # below the normal doubles gamma has lost its digits: echo what still determines the law
        scale: Echo = {"gamma": self.gamma} if self.log_gamma > -708.0 else {"log_gamma": self.log_gamma}
        return {"eta": self.eta, **scale} if self._shape is None else scale

    def log_pmf(self, k: Array) -> Array:
        k = np.asarray(k, dtype=float)
        some, shape = np.maximum(k, 1.0), 1.0 + self.eta
        # K P[K] / E[K] is the law of 1 + an untruncated negative binomial of shape eta + 1
        biased = shape * self.log_gamma + times(some - 1.0, self._log_not_gamma) - np.log(some + self.eta)
        out = self.log_mean - np.log(some) + biased - log_beta(some, shape)
        return np.asarray(np.where(k >= 1.0, out, -np.inf), dtype=float)

    def log_sf(self, k: int) -> float:
        if self.eta == 1.0 or self.log_gamma == 0.0:
            return float(times(k, self._log_not_gamma))
        return super().log_sf(k)

    def thin(self, log_keep: float) -> Self:
        return self.from_log_gamma(self.eta, float(log1mexp(self._log_not_gamma + log_keep)))


class Geometric(TruncatedNegativeBinomial):
    """Geometric number of runs: the truncated negative binomial of eta 1.

    Parameters
    ----------
    gamma : float
        Probability of stopping after each run, in (0, 1].

    Examples
    --------
    >>> Geometric(0.1), round(Geometric(0.1).mean, 12)
    (Geometric(gamma=0.1), 10.0)
    """

    name = "geometric"
    _shape = 1.0

    def __init__(self, gamma: float) -> None:
        super().__init__(1.0, gamma)


class Logarithmic(TruncatedNegativeBinomial):
    """Logarithmic number of runs: the truncated negative binomial of eta 0.

    Parameters
    ----------
    gamma : float
        Scale, in (0, 1].

    Examples
    --------
    >>> Logarithmic.with_mean(10.0).quantile(0.95)
    41
    """

    name = "logarithmic"
    _shape = 0.0

    def __init__(self, gamma: float) -> None:
        super().__init__(0.0, gamma)


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
        accept = probability("accept", self.accept)
        vars(self).update(accept=accept, law=Geometric(accept))

    @classmethod
    def with_mean(cls, mean: float) -> Threshold:
        """The law of the given mean number of runs, >= 1."""
        return cls(1.0 / mean_of_some(mean))


def _log_mean(eta: float, size: float) -> float:
    """``log(eta (1-gamma) / (gamma (1 - gamma^eta)))`` at ``gamma = exp(-size)``."""
    other, less = abs(eta) * size, (1.0 + eta) * size
    if eta < -0.5:  # the same, without the difference of what is nearly alike
        return less + math.log1p((1.0 + eta) * math.expm1(log_mean_exp(less) - log_mean_exp(other) - other))
    return float(min(1.0 + eta, 1.0) * size + log_mean_exp(size) - log_mean_exp(other))
