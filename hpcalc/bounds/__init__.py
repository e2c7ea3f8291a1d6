"""Upper bounds on what a whole search costs: each is an object, and :func:`bounds_for` yields those that apply.

May import guarantees, laws, conversion and what is below them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from hpcalc.bounds import conditional, exact, paper, pure, renyi
from hpcalc.bounds.bound import Bound, ProfileBound, RenyiBound
from hpcalc.catalog import METHODS
from hpcalc.errors import InvalidInput
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.logspace import Array

__all__ = ["SOURCES", "Bound", "ProfileBound", "RenyiBound", "bounds_for", "named_by", "probe_epsilon"]

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
    """Whether a bound's name belongs to what ``--method`` selects.

    Raises
    ------
    InvalidInput
        For a name that is neither a method nor a group.
    """
    if method in ("best", "all"):
        return lambda name: True
    if method in ("paper", "refined"):
        return lambda name: name in METHODS and METHODS[name].group == method
    if method in METHODS:
        return lambda name: name == method
    raise InvalidInput("method", method, f"give best, paper, refined or one of {', '.join(METHODS)}")


def bounds_for(guarantee: Guarantee, law: RunCount, orders: Array | None = None, method: str = "best") -> list[Bound]:
    """Every bound that applies, the paper's first.

    Parameters
    ----------
    guarantee : Guarantee
        One run.
    law : RunCount
        Law of the number of runs.
    orders : ndarray, optional
        Restrict Rényi orders to these; default all, or the guarantee's given ones.
    method : str
        A bound's name, or ``"paper"``, ``"refined"``, ``"best"``.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> from hpcalc.laws import Poisson
    >>> [bound.name for bound in bounds_for(ZCDP(0.1), Poisson(10.0))]
    ['theorem-6', 'refined-rdp', 'refined-region']
    """
    include = named_by(method)
    if not guarantee.finite:
        return []
    if method == "lemma-7":  # laws with a theorem of their own need it only where it is asked for by name
        return [bound for bound in paper.bounds(guarantee, law, orders, lemma_7_too=True) if include(bound.name)]
    return [bound for source in SOURCES for bound in source(guarantee, law, orders) if include(bound.name)]


def probe_epsilon(guarantee: Guarantee, law: RunCount, log_delta: float, method: str = "best") -> float:
    """Roughly the smallest epsilon at delta, for a search that asks many times: close to the bounds, but none itself.

    Parameters
    ----------
    guarantee, law, method
        As in :func:`bounds_for`. With ``"best"`` and a refined bound at hand the paper's theorems are not asked.
    log_delta : float
        Natural logarithm of delta.

    Returns
    -------
    float
        inf where no bound is finite.
    """
    found = bounds_for(guarantee, law, method=method)
    quick = [bound for bound in found if bound.name.startswith("refined") or bound.name == "composition"]
    return min((bound.probe(log_delta) for bound in quick or found), default=math.inf)
