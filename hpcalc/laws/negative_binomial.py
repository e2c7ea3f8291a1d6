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

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.laws.helpers import checked_keep, finite_number, log_hazard, log_softplus, safe_exp, sharper
from hpcalc.laws.law import Echo, Law
from hpcalc.laws.tails import log_beta, log_integral, log_mean_exp, log_ratio_of_means
from hpcalc.logspace import Array, Prob, log1mexp, log_expm1, logaddexp, softplus

__all__ = ["TruncatedNegativeBinomial"]


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
        target = math.log1p(number - 1.0)
        # The least double L = -log gamma, by its bits, for which log E[K] is not below: it increases with L. Even at
        # eta = -1 + 2^-53 the largest mean has L < 2^64.
        bits = bisect_left(range(1087 << 52), target, key=lambda bits: _log_mean(shape, _double(bits)))
        return cls(shape, -_double(bits), label)

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

    def log_density(self, rank: Prob) -> Array:
        return np.asarray(self.log_mean - (self.eta + 1.0) * softplus(rank.log_u + self._log_odds), dtype=float)

    def log_density_slope(self, rank: Prob) -> Array:
        start = self.log_mean + math.log1p(self.eta) + self._log_odds
        return np.asarray(start - (self.eta + 2.0) * softplus(rank.log_u + self._log_odds), dtype=float)

    def _depth(self, rank: Prob) -> tuple[Array, Array]:
        """Logarithms of ``w = -log(gamma + (1-gamma) u)`` and of ``d = L - w``, each without cancellation."""
        log_x = self._log_not_gamma + np.asarray(rank.log_q, dtype=float)
        log_rest = np.minimum(logaddexp(self.log_gamma, self._log_not_gamma + rank.log_u), 0.0)
        with np.errstate(divide="ignore"):
            log_w = np.where(log_x < log_rest, log_hazard(log_x), np.log(-log_rest))
        return log_w, log_softplus(rank.log_u + self._log_odds)

    def _raw(self, rank: Prob) -> tuple[Array, Array]:
        """``log f`` and ``log(1 - f)``, each good where it is not near 0."""
        log_w, log_d = self._depth(rank)
        w, d = np.exp(log_w), np.exp(log_d)
        size, h = self._length, abs(self.eta)
        base = -math.log(size) - float(log_mean_exp(h * size))
        log_f, log_s = base + log_w + log_mean_exp(h * w), base + log_d + log_mean_exp(h * d)
        return log_f - max(self.eta, 0.0) * d, log_s + min(self.eta, 0.0) * w

    def log_pgf(self, rank: Prob) -> Array:
        if self._length == 0.0:
            return np.asarray(rank.log_q, dtype=float)
        return sharper(*self._raw(rank))

    def log_survival(self, rank: Prob) -> Array:
        if self._length == 0.0:
            return np.asarray(rank.log_u, dtype=float)
        log_f, log_s = self._raw(rank)
        return sharper(log_s, log_f)

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        log_width = np.asarray(log_width, dtype=float)
        if self._length == 0.0:
            return log_width
        log_w, log_d = self._depth(lo)
        log_step = log_softplus(self._log_not_gamma + log_width + np.exp(log_w))  # of w(lo) - w(hi)
        size, h = self._length, abs(self.eta)
        out = log_step - math.log(size) + log_mean_exp(h * np.exp(log_step)) - float(log_mean_exp(h * size))
        tilt = log_d if self.eta >= 0.0 else self._depth(hi)[0]
        return np.asarray(out - h * np.exp(tilt), dtype=float)

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

    def thin(self, log_keep: float) -> TruncatedNegativeBinomial:
        if checked_keep(log_keep) == 0.0:
            return self  # gamma as typed
        return TruncatedNegativeBinomial(self.eta, float(log1mexp(self._log_not_gamma + log_keep)), self.label)

    @property
    def log_mean_given_run(self) -> float:
        return self.log_mean

    @property
    def second_factorial(self) -> float:
        return safe_exp(self.log_mean + math.log1p(self.eta) + self._log_odds)


def _log_mean(eta: float, size: float) -> float:
    """``log(eta (1-gamma) / (gamma (1 - gamma^eta)))`` at ``gamma = exp(-size)``; relatively accurate near 0 too."""
    return log_ratio_of_means(size, 1.0 + eta)


def _double(bits: int) -> float:
    """The double >= 0 with these bits."""
    return float(struct.unpack("d", struct.pack("q", bits))[0])
