"""Explicit mechanisms: no analysis under the same assumptions can report less than what one of them costs.

Each function builds a pair of output laws (Q, Q') that meets the base guarantee, an order "best" on their outcomes, and
computes the hockey-stick divergence of the whole search on them. Outcomes are merged into blocks; merging is
post-processing, so any discretisation gives a valid lower bound.

May import bounds, guarantees, laws, conversion and what is below them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hpcalc.bounds import Bound
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law, RunCount, Threshold
from hpcalc.lower.conditional import conditional_lower_bound
from hpcalc.lower.few_outcomes import few_outcomes_beside_slack
from hpcalc.lower.mechanism import LowerBound, path_lower_bound

__all__ = ["LowerBound", "conditional_lower_bound", "lower_bound"]


def lower_bound(base: Guarantee, law: RunCount, log_delta: float, bounds: Sequence[Bound] = ()) -> LowerBound | None:
    """Best lower bound on the search's ε at δ among the mechanisms that fit the base; ``bounds`` are those at hand.

    None where no mechanism is known (δ = 0 with a base that is not pure, no finite guarantee).
    """
    if isinstance(law, Threshold):
        return conditional_lower_bound(base, law.accept, log_delta)
    if not isinstance(law, Law):
        return None
    own = path_lower_bound(base, law, log_delta, bounds)
    # a mechanism too large for its loss distribution is still that mechanism, and a mixture is more than its curve: no
    # other one speaks for it
    if own is not None or base.exact_profile or base.core.loss_steps() is not None or log_delta == -math.inf:
        return own
    return few_outcomes_beside_slack(base, law, log_delta)
