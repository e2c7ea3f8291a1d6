"""R2 with prices, tried only where the plain bounds leave a gap to the lower bound."""

from __future__ import annotations

import math
from functools import lru_cache

from hpcalc.bounds.ranks import rank_curve
from hpcalc.bounds.refined import ProfileBound, smallest_epsilon
from hpcalc.errors import InvalidInput
from hpcalc.guarantees import Gaussian, Guarantee
from hpcalc.laws import Law
from hpcalc.lower import LowerBound
from hpcalc.questions.methods import Evaluated, Question
from hpcalc.questions.shapes import shape_of

__all__ = ["priced"]

# The best price depends on epsilon and takes a search, so it comes after the plain bound and only where it can matter.
WIDE_GAP = 1.02


def priced(question: Question, found: list[Evaluated], floor: LowerBound) -> list[Evaluated]:
    """The bounds found, with the profile bound improved by prices where the gap to the lower bound is wide.

    Parameters
    ----------
    question : Question
    found : list of Evaluated
        With or without the profile bound; returned as it is where prices do not apply or do not help.
    floor : LowerBound

    Notes
    -----
    The price is the one that suits the question with its scales rounded to two digits. Any price is valid, neighbouring
    questions want nearly the same one, and between two roundings ε is then a smooth function of the scale.
    """
    best = min((bound.epsilon for bound in found), default=math.inf)
    plain = next((bound for bound in found if bound.method == "refined-profile"), None)
    if plain is None or not question.base.exact_profile or not math.isfinite(question.log_delta):
        return found
    if not best > floor.epsilon * WIDE_GAP:
        return found
    return improved(question, found)


def improved(question: Question, found: list[Evaluated]) -> list[Evaluated]:
    """The bounds found, a profile bound among them, with that one improved by a price if it can be."""
    plain = next(bound for bound in found if bound.method == "refined-profile")
    others = min((bound.epsilon for bound in found if bound is not plain), default=math.inf)
    better = with_price(question, plain, plain.epsilon < others * (1.0 - 1e-3))
    return [better if bound is plain else bound for bound in found]


def with_price(question: Question, plain: Evaluated, complete: bool) -> Evaluated:
    """The profile bound with the price that suits the question, if that makes it smaller.

    Parameters
    ----------
    question : Question
    plain : Evaluated
        The bound without a price.
    complete : bool
        Whether its curve was refined to the end: it is not where another bound made that pointless.
    """
    base, law, log_delta = question.base, question.law, question.log_delta
    near = price_near(question)
    if near is None or near.price is None:
        return plain
    if complete and plain.source is not None:
        epsilon, bound = plain.epsilon, plain.source
    else:
        epsilon, bound = ProfileBound(base, law, question.curve).solve(log_delta)
    if not math.isfinite(epsilon):
        return plain
    curve = bound.rank_curve
    value, better = epsilon, bound
    for price in (near.price.on(curve), near.price.moved(near.rank_curve, curve)):
        trial = ProfileBound(base, law, curve, price)
        if float(trial.log_delta(value * (1.0 - 1e-9))) < log_delta:
            value, better = smallest_epsilon(trial.log_delta, log_delta, value), trial
    if not value < plain.epsilon:
        return plain
    return Evaluated(
        "refined-profile",
        value,
        plain.citation + ", with prices of ranks",
        conditions=(*plain.conditions, "ranks priced: outcomes cannot all use the same best rank"),
        nodes=curve.x.size,
        source=better,
    )


def price_near(question: Question) -> ProfileBound | None:
    """The bound with the best price found for the question with its scales rounded to two digits."""
    return _priced(_round_base(question.base), _round_law(question.law), question.log_delta)


@lru_cache(maxsize=64)
def _priced(base: Guarantee, law: Law, log_delta: float) -> ProfileBound | None:
    """The bound with the best price found for a question."""
    from hpcalc.bounds.prices import priced_bound

    epsilon, bound = ProfileBound(base, law, rank_curve(base, law)).solve(log_delta)
    return priced_bound(bound, epsilon, log_delta)[1] if math.isfinite(epsilon) else None


def _round(value: float) -> float:
    return float(f"{value:.1e}")


def _round_base(base: Guarantee) -> Guarantee:
    return Gaussian(_round(base.sigma)) if type(base) is Gaussian else base


def _round_law(law: Law) -> Law:
    shape = shape_of(law)
    value = law.parameters().get(shape.scale or "")
    if not isinstance(value, (int, float)):
        return law
    try:
        near = shape.law(_round(value))
    except InvalidInput:
        return law
    return near if isinstance(near, Law) else law
