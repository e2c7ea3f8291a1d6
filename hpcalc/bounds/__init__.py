"""Upper bounds on what a whole search costs: each is an object, and :func:`bounds_for` yields those that apply.

May import guarantees, laws, conversion and what is below them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hpcalc.bounds import conditional, exact, paper, pure, renyi
from hpcalc.bounds.bound import Bound, ProfileBound, RenyiBound
from hpcalc.catalog import METHODS
from hpcalc.errors import InvalidInput
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.logspace import Array

__all__ = ["SOURCES", "Bound", "ProfileBound", "RenyiBound", "bounds_for", "named_by"]

#: Where bounds come from: each yields those of its kind that apply to a guarantee and a law of K, over the orders
#: asked for. A new kind of bound is one more entry.
SOURCES: list[Callable[[Guarantee, RunCount, Array | None], Iterable[Bound]]] = [
    paper.bounds,
    conditional.bounds,
    pure.bounds,
    renyi.bounds,
    exact.bounds,
]


def named_by(method: str) -> Callable[[str], bool]:
    """Whether a bound's name belongs to what ``--method`` selects; InvalidInput for neither a method nor a group."""
    if method in ("best", "all"):
        return lambda name: True
    if method in ("paper", "refined"):
        return lambda name: METHODS.get(name) == method
    if method in METHODS:
        return lambda name: name == method
    raise InvalidInput("method", method, f"give best, paper, refined or one of {', '.join(METHODS)}")


def bounds_for(guarantee: Guarantee, law: RunCount, orders: Array | None = None, method: str = "best") -> list[Bound]:
    """Every bound that applies, the paper's first, over all Rényi orders or those given.

    ``method`` is a bound's name, or ``"paper"``, ``"refined"``, ``"best"``.
    """
    include = named_by(method)
    if not guarantee.finite:
        return []
    if method == "lemma-7":  # laws with a theorem of their own need it only where it is asked for by name
        return [bound for bound in paper.bounds(guarantee, law, orders, lemma_7_too=True) if include(bound.name)]
    refined = METHODS.get(method, method) == "refined"
    sources = [source for source in SOURCES if not (refined and source is paper.bounds)]
    return [bound for source in sources for bound in source(guarantee, law, orders) if include(bound.name)]
