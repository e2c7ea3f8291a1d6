"""The truncated negative binomial family, written in L = log(1/gamma).

Every quantity is a difference of logarithms of ``(1 - e^-x)/x``, which is smooth through x = 0: so are the laws
through eta = 0 and gamma = 1.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.laws.affine import AffinePower
from hpcalc.laws.helpers import checked_keep, finite_number, log_softplus, mean_of_some, probability, safe_exp
from hpcalc.laws.law import Echo
from hpcalc.laws.tails import log_beta, log_integral, log_mean_exp, log_ratio_of_means
from hpcalc.logspace import Array, Prob, log1mexp, log_expm1, logaddexp, softplus

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
        Scale, in (0, 1]; 1 is the point mass K = 1. Below 1e-308: :meth:`from_log_gamma`.

    Attributes
    ----------
    log_gamma : float
        Natural logarithm of gamma, which keeps its digits wherever gamma has none left.

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
    _typed: float | None = field(compare=False)  # gamma as given, for the echo
    name: ClassVar[str] = "tnb"
    _shape: ClassVar[float | None] = None  # eta, where the law's name says it

    def __init__(self, eta: float, gamma: float) -> None:
        number = probability("gamma", gamma)
        self._set(eta, math.log(number), number)

    def _set(self, eta: float, log_gamma: float, typed: float | None = None) -> None:
        shape = finite_number("eta", eta, "give a number > -1")
        if not shape > -1.0:
            raise InvalidInput("eta", eta, "give a number > -1")
        if self._shape is not None and shape != self._shape:
            raise InvalidInput("eta", eta, f"a {self.name} law has eta {self._shape:g}: leave it out")
        number = finite_number("gamma", log_gamma, "give log gamma <= 0, finite")
        if number > 0.0:
            raise InvalidInput("gamma", log_gamma, "give log gamma <= 0, finite")
        for key, value in (("eta", shape + 0.0), ("log_gamma", number + 0.0), ("_typed", typed)):  # no -0.0
            object.__setattr__(self, key, value)

    @classmethod
    def from_log_gamma(cls, eta: float, log_gamma: float) -> Self:
        """From the natural logarithm of gamma, finite and <= 0."""
        law = cls.__new__(cls)
        law._set(eta, log_gamma)
        return law

    def __repr__(self) -> str:
        scale = self.parameters()
        maker = "" if "gamma" in scale else ".from_log_gamma"
        values = scale if self._shape is None or maker == "" else {"eta": self.eta, **scale}
        return f"{type(self).__name__}{maker}({', '.join(f'{key}={value!r}' for key, value in values.items())})"

    @classmethod
    def with_mean(cls, mean: float, *, eta: float | None = None) -> Self:
        """The law of the given mean, >= 1 (exactly 1: the point mass); eta is given where the name leaves it open.

        Raises
        ------
        InvalidInput
            If the mean is below 1, which no law of this family has.
        """
        shape = cls.from_log_gamma(cls._shape if eta is None else eta, 0.0).eta  # type: ignore[arg-type]  # checked
        target = math.log1p(mean_of_some(mean) - 1.0)
        # The least double L = -log gamma, by its bits, for which log E[K] is not below: it increases with L. Even at
        # eta = -1 + 2^-53 the largest mean has L < 2^64.
        bits = bisect_left(range(1087 << 52), target, key=lambda bits: _log_mean(shape, _double(bits)))
        return cls.from_log_gamma(shape, -_double(bits))

    @property
    def gamma(self) -> float:
        """Gamma itself; 0.0 where it lies below the smallest double (``log_gamma`` keeps it)."""
        return math.exp(self.log_gamma) if self._typed is None else self._typed

    def parameters(self) -> Echo:
        # below the normal doubles gamma has lost its digits: echo what still determines the law
        scale: Echo = {"gamma": self.gamma} if self.log_gamma > -708.0 else {"log_gamma": self.log_gamma}
        return {"eta": self.eta, **scale} if self._shape is None else scale

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
        return float(log_expm1(self._length))

    @cached_property
    def log_mean(self) -> float:
        return _log_mean(self.eta, self._length)

    @cached_property
    def sd(self) -> float:
        # Var / E[K] = E[K(K-1)]/E[K] + 1 - E[K] = 1/gamma - eta X / (gamma^-eta - 1) with X = (1-gamma)/gamma, whose
        # last term is gamma^eta E[K]
        size = self._length
        if size == 0.0:
            return 0.0
        log_share = float(log1mexp(self.log_mean - (1.0 + self.eta) * size))
        return safe_exp(0.5 * (self.log_mean + size + log_share))

    def _log_growth(self, x: float) -> float:
        """``log((exp(eta x) - 1) / (eta x))``."""
        return max(self.eta, 0.0) * x + float(log_mean_exp(abs(self.eta) * x))

    @property
    def max_runs(self) -> int | None:
        return 1 if self._length == 0.0 else None

    def cumulant(self, s: float) -> float:
        if self._length == 0.0:
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
        peak = math.log1p(k / power) if power > 0.0 else size
        # beyond the end (1 - e^-r)^k is 1 to the last bit and what is left is an exponential
        end = min(size, math.log(k) + 37.0) if k > 0.0 else 0.0
        body = log_integral(lambda r: k * log1mexp(-r) - power * r, 0.0, end, peak, 1.0)
        if end == size:
            return body
        rest = size - end
        far = math.log(rest) - power * end + max(-power * rest, 0.0) + float(log_mean_exp(abs(power) * rest))
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

    def _decay(self, rank: Prob) -> Array:
        return np.asarray((self.eta + 1.0) * softplus(rank.log_u + self._log_odds), dtype=float)

    @property
    def _bend(self) -> tuple[float, float]:
        return math.log1p(self.eta) + self._log_odds, (self.eta + 2.0) / (self.eta + 1.0)

    def _log_ahead(self, rank: Prob, log_width: Array) -> Array:
        if self._length == 0.0:
            return np.asarray(log_width, dtype=float)
        log_x = self._log_odds - softplus(rank.log_u + self._log_odds)
        log_step = log_softplus(log_x + log_width)  # of log(1 + x width)
        y = self.eta * np.exp(log_step)
        return np.asarray(log_step - log_x + np.maximum(-y, 0.0) + log_mean_exp(np.abs(y)), dtype=float)

    @cached_property
    def expected_quantile(self) -> float:
        # (1 - G((1-eta)L)/G(L)) / (1 - e^(-eta L)) with G(x) = (e^x - 1)/x
        size = self._length
        if size == 0.0:
            return 0.5
        eta = math.copysign(max(abs(self.eta), 1e-30 / size), self.eta)  # nearer to 0 it is the limit
        gap = log_ratio_of_means(size, eta)
        if eta < 0.0:  # the same over e^(-eta L), which may be beyond a double
            scale = log_mean_exp(size - eta * size) - log_mean_exp(size)
            return math.exp(float(scale)) * math.expm1(gap) / math.expm1(eta * size)
        return math.expm1(-gap) / math.expm1(-eta * size)

    def gain_at_edge(self, epsilon: float) -> float:
        # (e^ε + γ)/(1 + γ e^ε) = 1 + (1-γ)(1 - e^-ε)/(e^-ε + γ)
        log_excess = self._log_not_gamma + log1mexp(-epsilon) - logaddexp(-epsilon, self.log_gamma)
        return (1.0 + self.eta) * float(softplus(log_excess))

    def thin(self, log_keep: float) -> Self:
        if checked_keep(log_keep) == 0.0:
            return self  # gamma as typed
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


def _log_mean(eta: float, size: float) -> float:
    """``log(eta (1-gamma) / (gamma (1 - gamma^eta)))`` at ``gamma = exp(-size)``; relatively accurate near 0 too."""
    return log_ratio_of_means(size, 1.0 + eta)


def _double(bits: int) -> float:
    """The double >= 0 with these bits."""
    return float(struct.unpack("d", struct.pack("q", bits))[0])
