"""The truncated negative binomial family, written in L = log(1/gamma).

Every quantity is a difference of logarithms of ``(1 - e^-x)/x``, which is smooth through x = 0: so are the laws
through eta = 0 and gamma = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.logmath import Array, Rank, log1mexp, log_expm1, logaddexp, softplus
from hpcalc.runs.helpers import checked_keep, finite_number, log_hazard, log_softplus, safe_exp, sharper
from hpcalc.runs.law import Echo, Law
from hpcalc.tails import log_beta, log_integral, log_mean_exp, log_sinhc_gap

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
        if number == 1.0:
            return cls(shape, 0.0, label)
        target = math.log1p(number - 1.0)
        # log E[K] increases with L = -log gamma: bracket by doubling, halve (ratio, then distance) to the last bit
        lo = hi = 1.0
        while _log_mean(shape, hi) < target:
            lo, hi = hi, 2.0 * hi
        while _log_mean(shape, lo) >= target:
            lo *= 0.5 if lo > 0.125 else lo
        while True:
            mid = math.sqrt(lo) * math.sqrt(hi) if hi > 2.0 * lo else 0.5 * (lo + hi)
            if not lo < mid < hi:
                break
            lo, hi = (mid, hi) if _log_mean(shape, mid) < target else (lo, mid)
        best = min((lo, hi), key=lambda x: abs(_log_mean(shape, x) - target))
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
        return float(log_expm1(self._length))

    @cached_property
    def log_mean(self) -> float:
        return _log_mean(self.eta, self._length)

    @cached_property
    def sd(self) -> float:
        # Var = E[K] (E[K(K-1)]/E[K] + 1 - E[K]), E[K(K-1)]/E[K] = (1+eta) X with X = (1-gamma)/gamma
        size, eta = self._length, self.eta
        if size == 0.0:
            return 0.0
        if size * max(abs(eta), 1.0) <= 1.0 or eta < -0.5:
            log_x = self._log_odds + math.log1p(eta)
            if log_x > 600.0:
                return safe_exp(0.5 * (self.log_mean + log_x))
            return math.sqrt(self.mean * (math.exp(log_x) - math.expm1(self.log_mean)))
        # the same with E[K] = eta X / (1 - gamma^eta) inserted: 1 + X - eta X / (gamma^-eta - 1)
        part = math.exp(-math.log(size) - self._log_growth(size))  # eta / (gamma^-eta - 1)
        log_ratio = size + math.log1p(-part * float(np.exp(self._log_not_gamma)))
        return safe_exp(0.5 * (self.log_mean + log_ratio))

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
        return np.where(log_x < -0.5, log_hazard(log_x), far), log_softplus(rank.log_u + self._log_odds)

    def _raw(self, rank: Rank) -> tuple[Array, Array]:
        """``log f`` and ``log(1 - f)``, each good where it is not near 0."""
        log_w, log_d = self._depth(rank)
        w, d = np.exp(log_w), np.exp(log_d)
        size, h = self._length, abs(self.eta)
        base = -math.log(size) - float(log_mean_exp(h * size))
        log_f, log_s = base + log_w + log_mean_exp(h * w), base + log_d + log_mean_exp(h * d)
        return log_f - max(self.eta, 0.0) * d, log_s + min(self.eta, 0.0) * w

    def log_pgf(self, rank: Rank) -> Array:
        if self._length == 0.0:
            return np.asarray(rank.log_q, dtype=float)
        return sharper(*self._raw(rank))

    def log_survival(self, rank: Rank) -> Array:
        if self._length == 0.0:
            return np.asarray(rank.log_u, dtype=float)
        log_f, log_s = self._raw(rank)
        return sharper(log_s, log_f)

    def log_block(self, lo: Rank, hi: Rank, log_width: Array) -> Array:
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
        size, eta = self._length, self.eta
        if size == 0.0:
            return 0.5
        if eta >= 0.25:
            # (1 - G((1-eta)L)/G(L)) / (1 - e^(-eta L)) with G(x) = (e^x - 1)/x
            x = (1.0 - eta) * size
            if max(abs(x), size) <= 1.0:
                gap = -0.5 * eta * size - log_sinhc_gap(size, eta)
            else:
                gap = float(log_mean_exp(abs(x))) - float(log_mean_exp(size)) + (-eta * size if x >= 0.0 else -size)
            return math.expm1(gap) / math.expm1(-eta * size)
        # Near eta = 0 that is 0/0: integrate 1 - f over the rank, in d = log(1 + X u), du = e^d / (e^L - 1) dd

        def integrand(d: Array) -> Array:
            h = abs(eta)
            log_s = np.log(d / size) + log_mean_exp(h * d) - float(log_mean_exp(h * size))
            return np.asarray(log_s + min(eta, 0.0) * (size - d) + d - size, dtype=float)

        return math.exp(log_integral(integrand, 0.0, size, size) - float(log1mexp(-size)))

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
    h = 1.0 + eta
    if size * max(abs(eta), 1.0) <= 1.0:
        return 0.5 * h * size + log_sinhc_gap(size, h)
    if eta <= -0.5:
        # log of (e^L - 1)/(e^(-eta L) - 1) times -eta, around L (1 + eta)
        return h * size + math.log1p(-math.expm1(-h * size) / -math.expm1(eta * size) * math.exp(eta * size)) \
            + math.log1p(-h)  # fmt: skip
    low = min(eta, 0.0)
    return (1.0 + low) * size + _log_mean_exp(size) - _log_mean_exp(abs(eta) * size)


def _log_mean_exp(x: float) -> float:
    """:func:`log_mean_exp` of one number: solving for a mean asks for a hundred."""
    if x == 0.0:
        return 0.0
    return math.log1p(-math.exp(-x)) - math.log(x) if x > 1.0 else float(log_mean_exp(x))
