"""What everything released costs: searches, the sample they ran on, and what follows them.

The answer of a search is a guarantee again: its certified profile, direction by direction, makes a dominating pair, and
pairs compose, adaptively too, and are sampled. In this order: the law of K and the density of proposals enter the
search's bounds; searches that are all released compose; a sample of the records concerns all of them; what is released
afterwards composes, once.

References
----------
.. [1] Y. Zhu, J. Dong, Y.-X. Wang, "Optimal accounting of differential privacy via characteristic function",
   AISTATS 2022: dominating pairs and their adaptive composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from hpcalc.bounds import Bound, RenyiBound
from hpcalc.bounds.exact import ExactBound
from hpcalc.bounds.paper import EveryRun
from hpcalc.bounds.renyi import RefinedRenyi
from hpcalc.conversion import EXACT_PROFILE, Conversion, RenyiCurve, epsilon_from_profile, epsilon_from_rdp
from hpcalc.errors import NoFiniteBound
from hpcalc.guarantees import Guarantee, compose
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.sampled import on_a_sample, then_on_the_rest
from hpcalc.guarantees.search import composed, pair_of, profile_pair
from hpcalc.logspace import Array
from hpcalc.questions.asked import Asked
from hpcalc.questions.rows import MANY_ORDERS, Priced, curve_points, head, known, upper

_BEYOND = 10.0  # log delta is followed so much further down than asked; what is left is added to delta
_NODES = 1e-2  # of delta, between nodes of a search's profile


def _floor(log_delta: float) -> float:
    """How far down a log delta is followed: no further than doubles go, where it is that of 0."""
    return max(log_delta, -745.0) - _BEYOND


@dataclass(eq=False)
class Everything(Bound):
    """What is known of everything released."""

    pair: DominatingPair  # accurate about one delta, valid at each
    curves: tuple[RenyiCurve, ...]  # each valid; none where a sample was taken

    name = "refined-region"
    citation = "composition of dominating pairs (Zhu, Dong and Wang 2022) of what is released (hpcalc-theory(7))"
    conditions = ("each part holds its guarantee whatever the parts before it released",)

    def rdp(self, orders: Array) -> Array | None:
        known = [curve.rdp(orders) for curve in self.curves]
        return np.asarray(np.min(known, axis=0), dtype=float) if known else None

    def log_profile(self, epsilons: Array) -> Array:
        return self.pair.log_profile(epsilons)

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        found = [Conversion(epsilon_from_profile(self.log_profile, log_delta), EXACT_PROFILE)]
        found += [epsilon_from_rdp(curve, log_delta, rule) for curve in self.curves]
        return min(found, key=lambda answer: answer.value)


def search_pair(bounds: Sequence[Bound], log_delta: float) -> DominatingPair:
    """A dominating pair of a search, from certified profiles of its bounds, accurate about a delta."""
    floor = _floor(log_delta)

    def best(some: Iterable[Any]) -> list[Any]:
        return sorted(some, key=lambda bound: bound.epsilon(log_delta).value)[:1]

    exact = best(bound for bound in bounds if isinstance(bound, ExactBound))
    # Theorem E speaks for itself where a mechanism attains it; elsewhere the best of the others may be smaller
    alone = any(bound.attained for bound in exact)
    least = best(bound for bound in bounds if not (alone or isinstance(bound, ExactBound)))

    def profile(side: int) -> Callable[[Array], Array]:
        known = [*(one.profile_of(side, floor) for one in exact), *(one.log_profile for one in least)]
        return lambda epsilons: np.asarray(np.min([one(epsilons) for one in known], axis=0), dtype=float)

    sides = range(max([len(bound.directions) for bound in exact], default=1))
    return profile_pair([*map(profile, sides)], _NODES, floor=floor, pieces=12)


def everything(
    bounds: Sequence[Bound], asked: Asked, search: DominatingPair | None = None, tolerance: float = 1e-3
) -> Everything:
    """Everything that is released, from the bounds on one search, and their pair where that is at hand.

    ``tolerance`` is the relative error of delta that is aimed at for what follows; any is sound.
    """
    floor = _floor(asked.log_delta)
    pair = search = search_pair(bounds, asked.log_delta) if search is None else search
    for bit in bin(asked.searches)[3:]:  # by doubling
        pair = composed(pair, pair, floor=floor)
        pair = composed(pair, search, floor=floor) if bit == "1" else pair
    final = pair_of(compose(*asked.after), tolerance) if asked.then else None
    curves = tuple(_curves(bounds, asked)) if asked.subset is None else ()
    if asked.subset is not None and final is not None and asked.then_on == "rest":
        return Everything(then_on_the_rest(pair, final, asked.subset, floor=floor), curves)
    pair = pair if asked.subset is None else on_a_sample(pair, asked.subset)
    return Everything(pair if final is None else composed(pair, final, floor=floor), curves)


def _curves(bounds: Sequence[Bound], asked: Asked) -> Iterator[RenyiCurve]:
    """Rényi curves of all searches and of what follows them."""

    def whole(one: RenyiCurve) -> RenyiCurve:
        return RenyiCurve(lambda orders: _sum(asked.searches * one.rdp(orders), asked.after, orders), one.orders)

    for bound in bounds:
        # a curve that holds outside an event only does not add up like the others
        if isinstance(bound, (RenyiBound, EveryRun)) and bound.curve.log_added_delta == -math.inf:
            order = epsilon_from_rdp(whole(bound.curve), asked.log_delta).order
            if isinstance(bound, RefinedRenyi) and order is not None:
                bound = bound.sharpened(np.array([order]))
            yield whole(bound.curve)


def _sum(first: Array | float, parts: Iterable[Guarantee | Everything], orders: Array) -> Array:
    return np.asarray(sum((np.asarray(part.rdp(orders)) for part in parts), first), dtype=float)


@dataclass(frozen=True, eq=False, repr=False)
class TotalResult(Priced):
    """What several cases cost together, at one δ of everything."""

    parts: tuple[str, ...]
    delta: float
    whole: Everything
    answer: Conversion
    max_epsilon: float | None

    @property
    def epsilon(self) -> float:
        return self.answer.value

    def log_profile(self, epsilons: Array) -> Array:
        most = np.where(epsilons >= self.epsilon, Asked(self.delta).log_delta, 0.0)
        return np.minimum(self.whole.log_profile(epsilons), most)

    def rdp_export(self) -> list[dict[str, float | None]]:
        """The Rényi curve of everything; empty where none is known."""
        values = self.whole.rdp(MANY_ORDERS)
        return [] if values is None else curve_points(MANY_ORDERS, values)

    def document(self) -> dict[str, Any]:
        epsilon, method = upper(self.epsilon), Everything.name
        lower = {"epsilon": None, "mechanism": None, "reason": "no mechanism of a total is known"}
        only = {"method": method, "epsilon": epsilon, "conversion": self.answer.rule}
        reason = "no bound is finite at this delta: give a larger delta"
        return {
            **head("bound"), "base": {"cases": list(self.parts)}, "delta": self.delta, "epsilon": epsilon,
            "method": method, "single_run": {"epsilon": None}, "lower_bound": lower, "bounds": [only],
            "total": list(self.parts), **self.limit(), **known(reason=reason if epsilon is None else None),
            "assumptions": ["Each case's list holds, and nothing but what the cases release is released."],
            "warnings": [],
        }  # fmt: skip


def total(
    results: Mapping[str, Any], *, delta: float, conversion: str = "best", max_epsilon: float | None = None
) -> TotalResult:
    """What several answers of ``bound``, by name, cost together, where all of them are released."""
    asked, parts = Asked(delta), []
    for name, result in results.items():
        sources = [item.source for item in getattr(result, "bounds", ())]
        if not sources:
            raise NoFiniteBound(f"no finite total: {name} has no finite bound")
        # what a case releases beside one search stands behind its one bound already
        parts.append(sources[0] if isinstance(sources[0], Everything) else everything(sources, asked))
    pair = reduce(partial(composed, floor=_floor(asked.log_delta)), [part.pair for part in parts])
    curve = RenyiCurve(lambda orders: _sum(0.0, parts, orders))
    whole = Everything(pair, (curve,) if all(part.curves for part in parts) else ())
    return TotalResult(tuple(results), delta, whole, whole.epsilon(asked.log_delta, conversion), max_epsilon)
