"""Any law given that the search runs at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.laws.helpers import ONE
from hpcalc.laws.law import Echo, Law, RunCount, checked_law
from hpcalc.logspace import Array, Prob


@dataclass(frozen=True)
class AtLeastOne(Law):
    """A law given ``K >= 1``: the same search, drawn again until it runs at all.

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> AtLeastOne(Poisson(1.0)).prob_zero
    0.0
    """

    law: Law

    def __post_init__(self) -> None:
        if not isinstance(checked_law(self.law), Law):
            raise InvalidInput("at_least_one", True, "leave it out: it applies to laws of a best-of-K search only")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the law before the condition."""
        return self.law.name

    def parameters(self) -> Echo:
        return {**self.law.parameters(), "at_least_one": True}

    @property
    def _shift(self) -> float:
        return self.law.log_prob_run

    @property
    def log_mean(self) -> float:
        return self.law.log_mean - self._shift

    @property
    def sd(self) -> float:
        if math.isinf(self.law.log_prob_zero):
            return self.law.sd
        spread = self.law.sd / math.exp(0.5 * self._shift)
        return math.sqrt(max(spread**2 - self.mean**2 * self.law.prob_zero, 0.0))

    @property
    def max_runs(self) -> int | None:
        return self.law.max_runs

    def log_pmf(self, k: Array) -> Array:
        k = np.asarray(k, dtype=float)
        return np.where(k >= 1.0, self.law.log_pmf(k) - self._shift, -np.inf)

    def log_sf(self, k: int) -> float:
        return 0.0 if k <= 0 else min(self.law.log_sf(k) - self._shift, 0.0)

    def log_density(self, rank: Prob) -> Array:
        return np.asarray(self.law.log_density(rank) - self._shift, dtype=float)

    def log_density_slope(self, rank: Prob) -> Array:
        return np.asarray(self.law.log_density_slope(rank) - self._shift, dtype=float)

    def log_parts(self, rank: Prob) -> tuple[Array, Array]:
        log_f = self.law.log_block(rank, ONE, np.asarray(rank.log_q, dtype=float)) - self._shift
        log_s = self.law.log_survival(rank) - self._shift
        return log_f, log_s

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array:
        return np.asarray(self.law.log_block(lo, hi, log_width) - self._shift, dtype=float)

    @property
    def affine_power(self) -> bool:
        return self.law.affine_power

    def gain_at_edge(self, epsilon: float) -> float:
        return self.law.gain_at_edge(epsilon)

    def thin(self, log_keep: float) -> AtLeastOne:
        return AtLeastOne(self.law.thin(log_keep))


def at_least_one(law: RunCount) -> Law:
    """The law given ``K >= 1``: the law itself where K is never 0, else :class:`AtLeastOne`."""
    return law if isinstance(law, Law) and law.log_prob_zero == -math.inf else AtLeastOne(law)  # type: ignore[arg-type]
