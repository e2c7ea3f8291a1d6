"""The profile bound in use until the exact one takes its place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hpcalc.bounds.bound import ProfileBound
from hpcalc.bounds.ranks import rank_curve
from hpcalc.bounds.refined import ProfileBound as Shifted
from hpcalc.bounds.refined import smallest_epsilon
from hpcalc.conversion import EXACT_PROFILE, Conversion
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law, RunCount
from hpcalc.logspace import Array

__all__ = ["RegionBound", "bounds"]


@dataclass(eq=False)
class RegionBound(ProfileBound):
    """Shifted privacy profiles."""

    shifted: Shifted
    name: str = "refined-region"
    citation: str = "Refined privacy-profile bound R2 (hpcalc-theory(7))"
    found: list[Shifted] = field(default_factory=list)

    def log_profile(self, epsilons: Array) -> Array:
        return np.asarray(
            np.min([bound.log_delta(epsilons) for bound in (self.shifted, *self.found)], axis=0), dtype=float
        )

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        if log_delta == -math.inf:
            return Conversion(math.inf, EXACT_PROFILE)
        value, refined = self.shifted.solve(log_delta)
        self.found.append(refined)
        return Conversion(value, EXACT_PROFILE)

    def probe(self, log_delta: float) -> float:
        bound = self.shifted
        return smallest_epsilon(lambda e: bound.nodes.log_delta(bound.base, e), log_delta, accuracy=1e-4)


def bounds(base: Guarantee, law: RunCount, orders: Array | None = None) -> Iterator[RegionBound]:
    """Where K is a law of best-of-K."""
    if isinstance(law, Law):
        yield RegionBound(Shifted(base, law, rank_curve(base, law)))
