"""R2 with prices, tried only where the plain bounds leave a gap to the lower bound."""

from __future__ import annotations

import math

from hpcalc.analysis.methods import Evaluated, Question
from hpcalc.instances import LowerBound
from hpcalc.refined import ProfileBound

__all__ = ["priced"]

# The best price depends on epsilon and takes a search, so it comes after the plain bound and only where it can matter.
_WIDE_GAP = 1.02


def priced(question: Question, found: list[Evaluated], floor: LowerBound) -> list[Evaluated]:
    """The bounds found, with the profile bound improved by prices where the gap to the lower bound is wide.

    Parameters
    ----------
    question : Question
    found : list of Evaluated
        With or without the profile bound; returned as it is where prices do not apply or do not help.
    floor : LowerBound
    """
    best = min((bound.epsilon for bound in found), default=math.inf)
    plain = next((bound for bound in found if bound.method == "refined-profile"), None)
    if plain is None or not question.base.exact_profile or not math.isfinite(question.log_delta):
        return found
    if not best > floor.epsilon * _WIDE_GAP:
        return found
    from hpcalc.prices import priced_bound

    epsilon, bound = ProfileBound(question.base, question.law, question.curve).solve(question.log_delta)
    if not math.isfinite(epsilon):
        return found
    value, better = priced_bound(bound, epsilon, question.log_delta)
    if better.price is None:
        return found
    improved = Evaluated(
        "refined-profile",
        value,
        plain.citation + ", with prices of ranks",
        conditions=(*plain.conditions, "ranks priced: outcomes cannot all use the same best rank"),
        nodes=better.rank_curve.x.size,
        source=better,
    )
    if improved.epsilon >= plain.epsilon:
        return found
    return [improved if bound_ is plain else bound_ for bound_ in found]
