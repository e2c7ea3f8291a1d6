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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from hpcalc.bounds import Bound, RenyiBound
from hpcalc.bounds.exact import ExactBound
from hpcalc.bounds.renyi import RefinedRenyi
from hpcalc.conversion import EXACT_PROFILE, Conversion, RenyiCurve, epsilon_from_profile, epsilon_from_rdp
from hpcalc.guarantees import Guarantee, compose
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.sampled import on_a_sample, then_on_the_rest
from hpcalc.guarantees.search import composed, pair_of, profile_pair
from hpcalc.logspace import Array

__all__ = ["Everything", "WholeRelease", "released", "search_pair", "total"]

_BEYOND = 14.0  # log delta is followed so much further down than asked; what is left is added to delta
_TOLERANCE = 3e-3  # of delta, between nodes of a search's profile


@dataclass(frozen=True, eq=False)
class Everything:
    """What is known of everything released.

    Attributes
    ----------
    pair : DominatingPair
        Accurate about ``log_delta``, valid everywhere.
    curves : tuple of RenyiCurve
        Rényi curves, each valid; none where a sample was taken.
    log_delta : float
        Natural logarithm of the delta asked about.
    """

    pair: DominatingPair
    curves: tuple[RenyiCurve, ...]
    log_delta: float

    def rdp(self, orders: Array) -> Array:
        """Rényi curve: the least known at each order, inf where none is."""
        none = np.full(np.shape(orders), math.inf)
        return np.asarray(np.min([none, *(curve.rdp(orders) for curve in self.curves)], axis=0), dtype=float)

    def log_profile(self, epsilons: Array) -> Array:
        """Log delta at each epsilon >= 0, the larger of both directions."""
        return self.pair.log_profile(epsilons)

    def epsilon(self, rule: str = "best") -> Conversion:
        """Epsilon at the delta asked about, by the profile or by a Rényi curve, whichever is less."""
        found = [Conversion(epsilon_from_profile(self.log_profile, self.log_delta), EXACT_PROFILE)]
        found += [epsilon_from_rdp(curve, self.log_delta, rule) for curve in self.curves]
        return min(found, key=lambda answer: answer.value)


class WholeRelease(Bound):
    """Everything released, as a bound at the delta it was built for."""

    name = "refined-region"
    citation = "composition of dominating pairs (Zhu, Dong and Wang 2022) of what is released (hpcalc-theory(7))"
    conditions = ("each part holds its guarantee whatever the parts before it released",)

    def __init__(self, whole: Everything) -> None:
        self.whole = whole

    def rdp(self, orders: Array) -> Array | None:
        return self.whole.rdp(orders) if self.whole.curves else None

    def log_profile(self, epsilons: Array) -> Array:
        return self.whole.log_profile(epsilons)

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        return self.whole.epsilon(rule)


def search_pair(bounds: Sequence[Bound], log_delta: float) -> DominatingPair:
    """A dominating pair of a search, from certified profiles of its bounds.

    Theorem E speaks for itself where a mechanism attains it; elsewhere the best of the others may be smaller.

    Parameters
    ----------
    bounds : sequence of Bound
        At least one.
    log_delta : float
        Log of the delta about which it is accurate.
    """
    floor = log_delta - _BEYOND
    exact = [bound for bound in bounds if isinstance(bound, ExactBound)]
    others = [bound for bound in bounds if not isinstance(bound, ExactBound)]
    if others and not any(bound.attained for bound in exact):
        others = [min(others, key=lambda bound: bound.epsilon(log_delta).value)]
    elif exact:
        others = []
    sides = range(max([len(bound.directions) for bound in exact], default=1))

    def profile(known: Sequence[Callable[[Array], Array]], epsilons: Array) -> Array:
        return np.asarray(np.min([one(epsilons) for one in known], axis=0), dtype=float)

    theirs = [bound.log_profile for bound in others]
    profiles = [partial(profile, [*(one.profile_of(i, floor) for one in exact), *theirs]) for i in sides]
    return profile_pair(profiles, _TOLERANCE, floor=floor, pieces=12)


def released(
    bounds: Sequence[Bound],
    log_delta: float,
    *,
    searches: int = 1,
    subset: float | None = None,
    then: Sequence[Guarantee] = (),
    then_on: str = "all",
    search: DominatingPair | None = None,
    tolerance: float = 1e-3,
) -> Everything:
    """Everything that is released: searches, on a sample of the records or not, then other runs.

    Parameters
    ----------
    bounds : sequence of Bound
        Those that apply to one search, at least one.
    log_delta : float
        Natural logarithm of delta.
    searches : int
        So many searches with a K of their own, each released.
    subset : float, optional
        Rate in (0, 1) of the Poisson sample that all searches ran on.
    then : sequence of Guarantee
        Released afterwards, each possibly chosen by the searches' answers.
    then_on : {"all", "rest"}
        Whether ``then`` saw all records or those outside the sample.
    search : DominatingPair, optional
        :func:`search_pair` of the bounds, where it is at hand.
    tolerance : float
        Relative error of delta that is aimed at for what follows; any is sound.

    Returns
    -------
    Everything

    Examples
    --------
    >>> from hpcalc.bounds import bounds_for
    >>> from hpcalc.guarantees import PureDP
    >>> from hpcalc.laws import Poisson
    >>> search = bounds_for(PureDP(0.1), Poisson(10.0))
    >>> one, two = (released(search, math.log(1e-3), searches=n).epsilon().value for n in (1, 2))
    >>> one < two < 2 * one
    True
    """
    floor = log_delta - _BEYOND
    out = _repeated(search_pair(bounds, log_delta) if search is None else search, searches, floor)
    final = pair_of(compose(*then), tolerance) if then else None
    if subset is not None and final is not None and then_on == "rest":
        return Everything(then_on_the_rest(out, final, subset, floor=floor), (), log_delta)
    out = out if subset is None else on_a_sample(out, subset)
    out = out if final is None else composed(out, final, floor=floor)

    def everything(one: RenyiCurve) -> RenyiCurve:
        def rdp(orders: Array) -> Array:
            return np.asarray(sum((part.rdp(orders) for part in then), searches * one.rdp(orders)), dtype=float)

        return RenyiCurve(rdp, one.orders)

    curves = []
    for bound in bounds if subset is None else ():
        # a curve that holds outside an event only does not add up like the others
        if isinstance(bound, RenyiBound) and bound.curve.log_added_delta == -math.inf:
            order = epsilon_from_rdp(everything(bound.curve), log_delta).order
            if isinstance(bound, RefinedRenyi) and order is not None:
                bound = bound.sharpened(np.array([order]))
            curves.append(everything(bound.curve))
    return Everything(out, tuple(curves), log_delta)


def _repeated(pair: DominatingPair, count: int, floor: float) -> DominatingPair:
    """The pair composed with itself, by doubling."""
    out = pair
    for bit in bin(count)[3:]:
        out = composed(out, out, floor=floor)
        out = composed(out, pair, floor=floor) if bit == "1" else out
    return out


def total(parts: Sequence[Everything], log_delta: float) -> Everything:
    """Several such things, all released.

    Parameters
    ----------
    parts : sequence of Everything
        At least one, accurate about ``log_delta``.
    log_delta : float
        Natural logarithm of the total's delta.
    """
    pair = reduce(partial(composed, floor=log_delta - _BEYOND), [part.pair for part in parts])

    def rdp(orders: Array) -> Array:
        return np.asarray(sum(part.rdp(orders) for part in parts), dtype=float)

    curves = (RenyiCurve(rdp),) if all(part.curves for part in parts) else ()
    return Everything(pair, curves, log_delta)
