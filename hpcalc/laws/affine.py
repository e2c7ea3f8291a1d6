"""What Poisson, binomial and truncated negative binomial laws share: f' is a power of an affine function."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from hpcalc.laws.helpers import ONE, log_mean_exp, times
from hpcalc.laws.law import Law
from hpcalc.laws.probabilities import log_integral
from hpcalc.logspace import Array, Prob, log1mexp, logaddexp, softplus


class AffinePower(Law):
    """A law with ``F(u) = E[K] exp(-(r + s) fall(u))``, where ``fall(u) = log(1 + s x u) / s``, for s = 0 ``x u``.

    Truncated negative binomial: s = 1, r = eta, x = (1-gamma)/gamma; binomial: s = -1, r = n, x = p; Poisson: s = 0,
    r = mu, x = 1. Seen from rank u on, F is of the same kind, with ``x / (1 + s x u)`` for x; so whatever lies between
    two ranks keeps its digits.
    """

    affine_power = True

    @property
    @abstractmethod
    def _affine(self) -> tuple[int, float, float]:
        """The numbers s, r and log x."""

    def _fall(self, log_y: Array | float) -> Array:
        """``log(1 + s y) / s``; at s = -1 and y = 1 a number that is large enough."""
        s = self._affine[0]
        if s < 0:
            return -log1mexp(np.minimum(log_y, -1e-300))
        return softplus(log_y) if s else np.asarray(np.exp(log_y), dtype=float)

    def _fall_at(self, rank: Prob) -> Array:
        return self._fall(self._affine[2] + rank.log_u)

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
