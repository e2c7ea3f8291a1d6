"""Laws whose f' is a power of an affine function: what they share, the Poisson and the binomial law, and any k runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hpcalc.errors import require
from hpcalc.laws.law import Echo, Law, SameCount, positive, probability, whole_number
from hpcalc.laws.probabilities import ONE, log_binomial_pmf, log_integral, log_mean_exp, log_poisson_pmf, times
from hpcalc.logspace import Array, Prob, log1mexp, logaddexp, softplus


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
