"""Explicit mechanisms: no analysis under the same assumptions can report less than what one of them costs.

Each function builds a pair of output laws (Q, Q') that meets the base guarantee, an order "best" on their outcomes, and
computes the hockey-stick divergence of the whole search on them. Outcomes are merged into blocks; merging is
post-processing, so any discretisation gives a valid lower bound.

May import bounds, guarantees, laws, conversion and what is below them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hpcalc.bounds import Bound
from hpcalc.guarantees import ZCDP, Composition, Gaussian, Guarantee, Laplace, PureDP
from hpcalc.guarantees.mechanisms import OneNumber
from hpcalc.guarantees.mixture import Mixture
from hpcalc.laws import Law, RunCount, Threshold
from hpcalc.lower.conditional import conditional_lower_bound
from hpcalc.lower.few_outcomes import few_outcomes_beside_slack
from hpcalc.lower.mechanism import LowerBound, path_lower_bound

__all__ = ["LowerBound", "conditional_lower_bound", "lower_bound"]


def lower_bound(base: Guarantee, law: RunCount, log_delta: float, bounds: Sequence[Bound] = ()) -> LowerBound | None:
    """Best lower bound on the search's ε at δ among the mechanisms that fit the base; ``bounds`` are those at hand.

    None where no mechanism is known (δ = 0 with a base that is not pure, no finite guarantee).
    """
    met, alone = realized(base), list[Guarantee]()
    if isinstance(base, Composition) and met is not base:  # of a curve alone: the other parts may reveal nothing
        alone = [part for part, _ in base.parts if not (_known(part) or (isinstance(part, OneNumber) and part.grouped))]
    found = [_of_mechanism(one, law, log_delta, bounds if one is base else ()) for one in dict.fromkeys([met, *alone])]
    return max(filter(None, found), key=lambda low: low.epsilon, default=None)


def _of_mechanism(met: Guarantee, law: RunCount, log_delta: float, bounds: Sequence[Bound]) -> LowerBound | None:
    if isinstance(law, Threshold):
        return conditional_lower_bound(met, law.accept, log_delta)
    if not isinstance(law, Law):
        return None
    own = path_lower_bound(met, law, log_delta, bounds)
    # a mechanism too large for its loss distribution is still that mechanism, and a mixture is more than its curve: no
    # other one speaks for it
    if own is not None or _known(met) or log_delta == -math.inf:
        return own
    return few_outcomes_beside_slack(met, law, log_delta)


def realized(base: Guarantee) -> Guarantee:
    """The base by mechanisms of its parts, and of single records where it is of a group.

    What meets the sum of several curves need not be made of parts that meet each, and what is ε-DP for a group need not
    come from a mechanism that is so for each record. So a Gaussian stands for zCDP and a Laplace mechanism for the pure
    DP of groups, beside parts that one pair attains; of other curves, alone, the first one.
    """
    if isinstance(base, Mixture):
        settings = tuple(map(realized, base.parts))
        return base if settings == base.parts else replace(base, parts=settings)
    parts = [*base.parts] if isinstance(base, Composition) else [(base, 1)]
    parts = [(part, n) for part, n in parts if part.core.pure_epsilon > 0.0 or part.slack > 0.0]
    alone = sum(n for part, n in parts if part.core.pure_epsilon > 0.0) <= 1
    if (_known(base) or alone) and not any(isinstance(part, OneNumber) and part.grouped for part, _ in parts):
        return base
    made = [(_mechanism(part), n) for part, n in parts]
    made = [(part, n) for part, n in made if _known(part)]
    return Composition(tuple(made)) if made else parts[0][0]


def _known(part: Guarantee) -> bool:
    """Whether a mechanism is known, not only a curve."""
    return part.exact_profile or part.core.loss_steps() is not None


def _mechanism(part: Guarantee) -> Guarantee:
    if isinstance(part, ZCDP):
        return Gaussian((2.0 * part.rho) ** -0.5)
    return Laplace(1.0 / part.epsilon) if isinstance(part, PureDP) and part.grouped else part
