"""The mechanism of Theorem E's best path, where one pair of laws attains the region."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hpcalc.bounds import Bound
from hpcalc.bounds.exact import ExactBound
from hpcalc.bounds.pure import refined_pure
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law
from hpcalc.lower.mechanism import LowerBound

_ROUNDING = 1e-9  # of the sums over blocks


def path_lower_bound(
    guarantee: Guarantee, law: Law, log_delta: float, bounds: Sequence[Bound] = ()
) -> LowerBound | None:
    """ε of the search over the guarantee's own dominating pair; None where no one pair attains the guarantee."""
    if log_delta == -math.inf:  # R3 is attained by randomized response with a split outcome
        pure = guarantee.pure_epsilon
        found = refined_pure(pure, law) if pure < math.inf and guarantee.exact_profile else 0.0
        return LowerBound(found * (1.0 - _ROUNDING), "dominating pair") if found > 0.0 else None
    exact = next((bound for bound in bounds if isinstance(bound, ExactBound)), None) or ExactBound(guarantee, law)
    if not exact.attained and guarantee.pure_epsilon > 0.0:  # what reveals nothing attains its bound
        return None
    return LowerBound(exact.mechanism(log_delta) * (1.0 - _ROUNDING), "dominating pair")
