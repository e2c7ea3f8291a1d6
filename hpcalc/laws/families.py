"""Laws whose f' is a power of an affine function: Poisson, binomial, and negative binomial in L = log(1/gamma).

Probabilities are evaluated by Loader's saddle-point form (a deviance plus Stirling corrections), which keeps all its
digits where a difference of log-gammas has none left.

References
----------
C. Loader, "Fast and accurate computation of binomial probabilities", 2000.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hpcalc.errors import InvalidInput, checked_number, require
from hpcalc.laws.law import Echo, Law, mean_of_some, positive, probability, safe_exp, whole_number
from hpcalc.logspace import ONE, Array, Prob, log1mexp, log_expm1, log_integral, logaddexp, softplus, times

if TYPE_CHECKING:
    from typing_extensions import Self

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
# Bernoulli numbers B_2j / (2j (2j-1)), from j = 8 down to 1: enough for an ulp from x = 10 on.
_STIRLING = (-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_ATANH = 1.0 / np.arange(21.0, 2.0, -2.0)  # (atanh v - v) / v^3 as powers of v^2


class AffinePower(Law):
    """A law with ``F(u) = E[K] exp(-(r + s) fall(u))``, where ``fall(u) = log(1 + s x u) / s``, for s = 0 ``x u``.

    Truncated negative binomial: s = 1, r = eta, x = (1-gamma)/gamma; binomial: s = -1, r = n, x = p; Poisson: s = 0,
    r = mu, x = 1. Seen from rank u on, F is of the same kind, with ``x / (1 + s x u)`` for x; so whatever lies between
    two ranks keeps its digits.
    """

    affine_power = True
    _affine: tuple[int, float, float]  # s, r and log x

    def _fall(self, log_y: Array | float) -> Array:
        """``log(1 + s y) / s``; at s = -1 and y = 1 a number that is large enough."""
        s = self._affine[0]
        if s < 0:
            return -log1mexp(np.minimum(log_y, -1e-300))
        return softplus(log_y) if s else np.asarray(np.exp(log_y), dtype=float)

    def _fall_at(self, rank: Prob) -> Array:
        s, _, log_x = self._affine
        return -rank.log_q if s < 0 and log_x == 0.0 else self._fall(log_x + rank.log_u)

    def _log_x_at(self, rank: Prob) -> Array:
        """``log(x / (1 + s x u))``."""
        s, _, log_x = self._affine
        return -logaddexp(rank.log_u, -log_x) if s > 0 else np.asarray(log_x - s * self._fall_at(rank), dtype=float)

    def log_density(self, rank: Prob) -> Array:
        s, r, _ = self._affine
        return np.asarray(self.log_mean - times(r + s, self._fall_at(rank)), dtype=float)

    def log_density_slope(self, rank: Prob) -> Array:
        s, r, log_x = self._affine
        if r + s == 0.0:  # a single run
            return np.full(np.shape(rank.log_u), -np.inf)
        at_zero = self.log_mean + math.log(r + s) + log_x
        return np.asarray(at_zero - times(r + 2 * s, self._fall_at(rank)), dtype=float)

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        # the integral over [u, u + width] of F(t)/F(u) is (1 - e^-z) / (r x), with x as seen from u and z = r fall
        log_width = np.asarray(log_width, dtype=float)
        with np.errstate(invalid="ignore", divide="ignore"):
            log_x = self._log_x_at(lo)
            fall = self._fall(log_x + log_width)
            log_first = np.where(log_x + log_width < -40.0, log_width, np.log(fall) - log_x)
            z = self._affine[1] * fall
            out = self.log_density(lo) + log_first + np.maximum(-z, 0.0) + log_mean_exp(np.abs(z))
        return np.asarray(np.where(np.isneginf(log_width), -np.inf, out), dtype=float)

    def gain_at_edge(self, epsilon: float) -> float:
        edge = Prob.from_logit(-epsilon)
        log_width = float(log1mexp(-epsilon) - softplus(-epsilon))  # log tanh(ε/2)
        return sum(self._affine[:2]) * float(self._fall(self._log_x_at(edge) + log_width))

    def _log_remainder(self, k: int, lo: float, hi: float) -> float:
        """``log`` of P[K > k] (``lo`` = -inf, ``hi`` = 0), or of a part of the same integral over ``log u``.

        Derivatives of f are powers of the same affine function, so Taylor's formula at 0 says that P[K > k] is
        ``n P[K = n]``, n = k+1, times the integral over [0, 1] of ``u^k ((1 + s x u)/(1 + s x))^-(r/s + n)``. In
        ``v = log u`` the logarithm of the integrand is concave. If nothing is truncated, the integral over all u > 0 at
        which it is defined makes 1, and from u = 1 on P[K <= k].
        """
        n, (s, r, log_x) = k + 1.0, self._affine
        log_end, whole = float(self._log_x_at(ONE)), float(self._fall(log_x))

        def log_g(v: Array) -> Array:
            close = v > -1.0
            y = np.exp(log_end + np.log(np.abs(np.expm1(v)))) * np.sign(v)
            near = np.log1p(np.maximum(s * y, -1.0 + 1e-16)) / s if s else y
            fall = np.where(close, near, self._fall(log_x + v) - whole)
            rest = s * fall - v
            if s > 0:  # the same, where a heavy tail leaves little of it
                near = np.log1p(np.exp(-whole) * np.expm1(-v))
                rest = np.where(close, near, softplus(-log_x - v) - softplus(-log_x))
            return np.asarray(-r * fall - n * rest, dtype=float)

        bend = math.log(n) - log_x - math.log(max(r, 1.0))
        peak = math.log(n) - log_x - math.log(r) if r > 0.0 else 0.0
        lo = max(lo, min(peak, bend, 0.0) - 60.0)
        value = log_integral(log_g, lo, hi, min(peak, 0.0), bend)
        return min(math.log(n) + float(self.log_pmf(np.array(n))) + value, 0.0)

    def log_sf(self, k: int) -> float:
        s, _, log_x = self._affine
        if s > 0 or k >= self.mean:
            return self._log_remainder(k, -math.inf, 0.0)
        return float(log1mexp(self._log_remainder(k, 0.0, -log_x if s else 700.0)))


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
        mu = positive("mu", self.mu)
        vars(self).update(mu=mu, mean=mu, sd=math.sqrt(mu), log_prob_zero=-mu, _affine=(0, mu, 0.0))

    @classmethod
    def with_mean(cls, mean: float) -> Poisson:
        """Poisson law of the given mean, > 0."""
        return cls(positive("mean", mean))

    def log_pmf(self, k: Array) -> Array:
        return log_poisson_pmf(k, self.mu)

    def thin(self, log_keep: float) -> Poisson:
        return Poisson(self.mu * math.exp(log_keep))


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
        n, p = whole_number("n", self.n, 1), probability("p", self.p)
        vars(self).update(n=n, p=p, mean=n * p, sd=math.sqrt(n * p * (1.0 - p)), max_runs=n)
        log_prob_zero = n * math.log1p(-p) if p < 1.0 else -math.inf
        vars(self).update(log_prob_zero=log_prob_zero, _affine=(-1, n, math.log(p)))

    @classmethod
    def with_mean(cls, mean: float, *, n: int) -> Binomial:
        """The law with ``p = mean / n``; the mean is > 0 and at most n."""
        number, count = positive("mean", mean), whole_number("n", n, 1)
        require(("mean", mean, number <= count, f"give at most n = {count}, or a larger n"))
        return cls(count, number / count)

    def log_pmf(self, k: Array) -> Array:
        return log_binomial_pmf(k, self.n, self.p)

    def log_sf(self, k: int) -> float:
        return super().log_sf(k) if k < self.n else -math.inf

    def gain_at_edge(self, epsilon: float) -> float:
        return (self.n - 1.0) * epsilon if self.p == 1.0 else super().gain_at_edge(epsilon)

    def thin(self, log_keep: float) -> Binomial:
        return Binomial(self.n, self.p / (self.p + (1.0 - self.p) * math.exp(-log_keep)))


class Fixed(Binomial):
    """A fixed number of fresh draws: the binomial law of p = 1.

    Its cost is that of composition (Papernot and Steinke 2022, Section 3.2). A list or grid of k candidates is not k
    fresh draws: :class:`AnyRuns`.

    Parameters
    ----------
    k : int
        Number of runs, >= 1.
    """

    name = "fixed"
    k: ClassVar[int]  # set when made

    def __init__(self, k: int) -> None:
        super().__init__(whole_number("k", k, 1), 1.0)
        vars(self).update(k=self.n)

    def __repr__(self) -> str:
        return f"Fixed(k={self.k})"

    def parameters(self) -> Echo:
        return {"k": self.k}


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


def _log_mean(eta: float, size: float) -> float:
    """``log(eta (1-gamma) / (gamma (1 - gamma^eta)))`` at ``gamma = exp(-size)``."""
    other, less = abs(eta) * size, (1.0 + eta) * size
    if eta < -0.5:  # the same, without the difference of what is nearly alike
        return less + math.log1p((1.0 + eta) * math.expm1(log_mean_exp(less) - log_mean_exp(other) - other))
    return float(min(1.0 + eta, 1.0) * size + log_mean_exp(size) - log_mean_exp(other))


def log_mean_exp(x: Array | float) -> Array:
    """``log((1 - exp(-x)) / x)`` for ``x >= 0``: the mean of ``exp(-t)`` over ``[0, x]``; all digits near 0 too."""
    x = np.maximum(x, 1e-300)
    series = x * (x * (1.0 - np.minimum(x, 1.0) ** 2 / 120.0) / 24.0 - 0.5)
    return np.asarray(np.where(x < 0.01, series, np.log(-np.expm1(-x) / x)), dtype=float)


def stirling_correction(x: Array | float) -> Array:
    """``log Gamma(x) - (x - 1/2) log x + x - log(2 pi)/2`` for ``x > 0``."""
    x = np.asarray(x, dtype=float)
    inverse = 1.0 / np.maximum(x, 10.0)  # whose square may underflow, where that of x would overflow
    out = np.asarray(np.polyval(_STIRLING, inverse * inverse) * inverse, dtype=float)
    small = x < 10.0
    if small.any():
        y = x[small]
        exact = np.array([math.lgamma(each) for each in y.tolist()])
        out[small] = exact - (y - 0.5) * np.log(y) + y - _HALF_LOG_2PI
    return out


def deviance(x: Array | float, m: Array | float) -> Array:
    """``x log(x/m) + m - x`` for ``x, m > 0``, without cancellation near ``x = m`` (Loader's ``bd0``)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap = np.asarray(x - m, dtype=float)
        v = gap / (x + m)
        near = gap * v + 2.0 * x * v**3 * np.polyval(_ATANH, v * v)
        far = x * (np.log(x) - np.log(m)) - gap
    return np.asarray(np.where(np.abs(v) < 0.1, near, far), dtype=float)


def log_beta(a: Array, b: float) -> Array:
    """Logarithm of the beta function for ``a, b > 0``."""
    big, small = np.maximum(a, b), np.minimum(a, b)
    with np.errstate(over="ignore"):
        powers = (0.5 - big) * np.log1p(small / big) - small * np.log1p(big / small) - 0.5 * np.log(small)
        corrections = stirling_correction(big) + stirling_correction(small) - stirling_correction(big + small)
    return np.asarray(powers + _HALF_LOG_2PI + corrections, dtype=float)


def log_poisson_pmf(k: Array, mu: float) -> Array:
    """Log of the Poisson probability of ``k`` (an integer >= 0) at mean ``mu``."""
    k = np.asarray(k, dtype=float)
    some = np.maximum(k, 1.0)
    out = -deviance(some, mu) - stirling_correction(some) - 0.5 * np.log(some) - _HALF_LOG_2PI
    return np.asarray(np.where(k == 0.0, -mu, out), dtype=float)


def log_binomial_pmf(k: Array, n: int, p: float) -> Array:
    """Log of the binomial probability of ``k`` in ``n`` trials: of two Poisson numbers, given that they add up to n."""
    k = np.asarray(k, dtype=float)
    parts = log_poisson_pmf(k, n * p) + log_poisson_pmf(np.maximum(n - k, 0.0), n * (1.0 - p))
    return np.where(k <= n, parts - log_poisson_pmf(np.array(n), n), -np.inf)
