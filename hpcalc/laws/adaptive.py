"""Searches whose proposals adapt to what was seen, within bounds on their density."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.laws.helpers import finite_number, sharper
from hpcalc.laws.law import BestOfK, Echo, Law, SameCount, checked_law
from hpcalc.logspace import Array, Prob, logaddexp, logsubexp


@dataclass(frozen=True)
class Adaptive(SameCount, BestOfK):
    """Best-of-K where every candidate's law has a density in [low, high] relative to one fixed prior.

    A run's candidate may depend on everything seen before, the data included; K itself must not depend on outcomes.
    One run is a run under the prior. With F(u) = f'(1-u) the output has density at most ``high F(low u)``, because
    each other run ranks at or above with probability at least ``low u``, and at least
    ``low F(min(high v, 1 - low (1 - v)))``. No mechanism is known to reach the price that follows.

    Parameters
    ----------
    law : Law
        Law of K.
    low, high : float
        Bounds on the density, ``0 < low <= 1 <= high``.

    References
    ----------
    Wang, Gao, Zhang, Su, Shen, "DP-HyPO: an adaptive private framework for hyperparameter optimization", NeurIPS 2023.

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> law = Adaptive(Poisson(10.0), 0.9, 1.1)
    >>> round(float(np.exp(law.log_upper_density(Prob.from_u(0.0)))), 9)
    11.0
    """

    law: Law
    low: float
    high: float

    def __post_init__(self) -> None:
        remedy = "give two numbers LOW HIGH with 0 < LOW <= 1 <= HIGH"
        low, high = (finite_number("density", value, remedy) for value in (self.low, self.high))
        if not 0.0 < low <= 1.0 <= high:
            raise InvalidInput("density", f"{self.low} {self.high}", remedy)
        if not isinstance(checked_law(self.law), Law):
            raise InvalidInput("density", f"{low:g} {high:g}", "leave it out: it applies to best-of-K searches only")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the law of K."""
        return self.law.name

    def parameters(self) -> Echo:
        return self.law.parameters()

    def _shrunk(self, rank: Prob) -> Prob:
        """The rank ``low u``."""
        log_low = math.log(self.low)
        log_rest = math.log1p(-self.low) if self.low < 1.0 else -math.inf
        log_u = np.asarray(log_low + rank.log_u, dtype=float)
        return Prob(log_u, sharper(logaddexp(log_rest, log_low + rank.log_q), log_u))

    def _stretched(self, rank: Prob) -> Prob:
        """The rank ``high v``, at most 1."""
        log_high = math.log(self.high)
        log_v = np.minimum(log_high + rank.log_u, 0.0)
        far = logsubexp(log_high + rank.log_q, math.log(self.high - 1.0) if self.high > 1.0 else -math.inf)
        return Prob(log_v, sharper(far, log_v))

    def _lower_rank(self, rank: Prob) -> Prob:
        """The rank ``min(high v, 1 - low (1 - v))``."""
        slow, fast = self._shrunk(rank.complement()).complement(), self._stretched(rank)
        first = fast.log_u < slow.log_u
        return Prob(np.where(first, fast.log_u, slow.log_u), np.where(first, fast.log_q, slow.log_q))

    def log_upper_density(self, rank: Prob) -> Array:
        return math.log(self.high) + self.law.log_density(self._shrunk(rank))

    def log_lower_density(self, rank: Prob) -> Array:
        return math.log(self.low) + self.law.log_density(self._lower_rank(rank))

    def log_lower_density_slope(self, rank: Prob, *, left: bool = False) -> Array:
        bend = math.log(self.low) + self.law.log_density_slope(self._lower_rank(rank))
        log_v, log_end = rank.log_u, np.log(self.density_breakpoints)
        before = (log_v <= log_end if left else log_v < log_end) if log_end.size else np.zeros(np.shape(log_v), bool)
        return np.asarray(bend + np.where(before, math.log(self.high), math.log(self.low)), dtype=float)

    @property
    def density_breakpoints(self) -> Array:
        if self.low == 1.0:  # high v >= v = 1 - low (1 - v) throughout
            return np.zeros(0)
        return np.array([(1.0 - self.low) / (self.high - self.low)])
