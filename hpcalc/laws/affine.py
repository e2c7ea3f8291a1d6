"""What Poisson, binomial and truncated negative binomial laws share: f' is a power of an affine function."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from hpcalc.laws.helpers import ONE, ZERO, times
from hpcalc.laws.law import Law
from hpcalc.logspace import Array, Prob, logaddexp


class AffinePower(Law):
    """A law with ``F(u) = E[K] (1 + X u)^-(1+r)``, or its exponential limit (Poisson: X -> 0, r X -> mu).

    Truncated negative binomial: r = eta, X = (1-gamma)/gamma; binomial: r = -n, X = -p. Seen from rank u on, F is of
    the same kind, with ``X/(1 + X u)`` for X; so whatever lies between two ranks keeps its digits.
    """

    @property
    def affine_power(self) -> bool:
        return True

    @abstractmethod
    def _decay(self, rank: Prob) -> Array:
        """``log F(0) - log F(u)``."""

    @property
    @abstractmethod
    def _bend(self) -> tuple[float, float]:
        """``log((1+r) X)``, the logarithm of ``-F'(0)/F(0)``, and (2+r)/(1+r)."""

    @abstractmethod
    def _log_ahead(self, rank: Prob, log_width: Array) -> Array:
        """``log`` of the integral over ``[u, u + width]`` of ``F(t)/F(u)``."""

    def log_density(self, rank: Prob) -> Array:
        return np.asarray(self.log_mean - self._decay(rank), dtype=float)

    def log_density_slope(self, rank: Prob) -> Array:
        log_bend, ratio = self._bend
        return np.asarray(self.log_mean + log_bend + times(-ratio, self._decay(rank)), dtype=float)

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        log_width = np.asarray(log_width, dtype=float)
        with np.errstate(invalid="ignore"):
            out = self.log_density(lo) + self._log_ahead(lo, log_width)
        return np.asarray(np.where(np.isneginf(log_width), -np.inf, out), dtype=float)

    def log_parts(self, rank: Prob) -> tuple[Array, Array]:
        above = self.log_block(ZERO, rank, rank.log_u)
        return logaddexp(self.log_prob_zero, self.log_block(rank, ONE, rank.log_q)), above
