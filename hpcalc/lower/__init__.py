"""Explicit mechanisms: what no analysis can report less than.

Each function builds a pair of output laws (Q, Q') that meets the base guarantee, an order "best" on their outcomes, and
computes the hockey-stick divergence of the whole search on them exactly. Outcomes are merged into blocks; merging is
post-processing, so any discretisation gives a valid lower bound.

* Where the region V is the mechanism's own, the pair ``q = du, q' = dV`` attains it. Two orders are tried: (b) every
  outcome that the proof of the profile bound R2 can use (hpcalc.bounds.refined) at its own maximising rank, the
  others by increasing loss in between; and the best merge of the largest losses with the most negative ones, of which
  order (a), the most negative losses first, up to some mass, then the rest by decreasing loss, is one.
* Where only a Rényi curve is known that pair would break it. A three-point mechanism (Papernot and Steinke 2022,
  Appendix D.3, has this shape) meets every order in both directions: a top block (u0, v0), a bad outcome (b, b'), the
  rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hpcalc.bounds import Bound
from hpcalc.bounds.renyi import RefinedRenyi, enclosure
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law, RunCount, Threshold
from hpcalc.lower.conditional import conditional_lower_bound
from hpcalc.lower.evaluate import LowerBound
from hpcalc.lower.few_points import CLOSE, few_points_beside_slack
from hpcalc.lower.pairs import discretised_pair, ordered, region_pair

__all__ = ["LowerBound", "conditional_lower_bound", "lower_bound", "region_pair"]


def lower_bound(
    base: Guarantee, law: RunCount, log_delta: float, upper: float = math.inf, bounds: Sequence[Bound] = ()
) -> LowerBound | None:
    """Best lower bound among the mechanisms that fit the base.

    Parameters
    ----------
    base : Guarantee
        One run's guarantee.
    law : RunCount
        Law of K.
    log_delta : float
        Natural logarithm of δ.
    upper : float
        The reported ε (tells where to look; may be inf).
    bounds : sequence of Bound
        Bounds at hand, which tell where to look.

    Returns
    -------
    LowerBound or None
        None where no mechanism is known (δ = 0 with a base that is not pure, no finite guarantee).
    """
    if isinstance(law, Threshold):
        return conditional_lower_bound(base, law.accept, log_delta, upper)
    if not isinstance(law, Law):
        return None
    at_hand = [bound.cells for bound in bounds if isinstance(bound, RefinedRenyi) and base.slack == 0.0]
    curve = at_hand[0] if at_hand and at_hand[0] is not None else enclosure(base, law)
    found: list[LowerBound] = []
    # a mechanism too large for its loss distribution is still that mechanism: no other one speaks for it
    if not base.exact_profile and not base.core.has_own_pair and math.isfinite(log_delta):
        point = few_points_beside_slack(base, law, log_delta, upper, curve)
        if point is not None:
            found.append(point)
            if point.epsilon > upper * (1.0 - CLOSE):
                return point
    pair = discretised_pair(base, log_delta, law.log_mean)
    if pair is not None:
        found.append(ordered(pair[0], law, log_delta, upper, curve, pair[1]))
    return max(found, key=lambda bound: bound.epsilon) if found else None
