"""What a bound is: an object that answers for its Rényi curve, its privacy profile and its epsilon.

A Rényi bound is given by its curve, and the conversion derives the rest; a profile bound is given by its privacy
profile, and one root search derives its epsilon. Whatever lists, exports, explains or draws bounds is one loop.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from hpcalc.conversion import (
    EXACT_PROFILE,
    Conversion,
    RenyiCurve,
    delta_from_rdp,
    epsilon_from_profile,
    epsilon_from_rdp,
    minimise_over_orders,
)
from hpcalc.logspace import Array


class Bound(ABC):
    """An upper bound on what a whole search costs.

    Attributes
    ----------
    name : str
        As in the answers, e.g. ``"theorem-2"``.
    citation : str
        Where it is proved.
    conditions : tuple of str
        What was checked or assumed, one short sentence each.
    """

    name: str
    citation: str
    conditions: tuple[str, ...] = ()

    @abstractmethod
    def rdp(self, orders: Array) -> Array | None:
        """Rényi curve of the search at each order (inf where it is not finite); None where the bound has none."""

    @abstractmethod
    def log_profile(self, epsilons: Array) -> Array:
        """Logarithm of the search's delta at each epsilon >= 0, at most 0."""

    @abstractmethod
    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        """Epsilon of the search at delta, with the Rényi order and the conversion rule where there are any.

        ``value`` is inf where the bound gives none.
        """

    def probe(self, log_delta: float) -> float:
        """Roughly the epsilon at delta, for a search that asks many times and certifies only its last question."""
        return self.epsilon(log_delta).value


@dataclass(eq=False)
class RenyiBound(Bound):
    """A bound given by the Rényi curve of the whole search; the rest follows by conversion."""

    name: str
    citation: str
    curve: RenyiCurve
    conditions: tuple[str, ...] = ()

    def rdp(self, orders: Array) -> Array:
        """The curve, at most the pure guarantee; it holds outside the probability set aside."""
        order = np.asarray(orders, dtype=float)
        out = np.full(order.shape, self.curve.pure_epsilon)
        finite = np.isfinite(order)
        out[finite] = np.fmin(self.curve.rdp(order[finite]), out[finite])
        return out

    def log_profile(self, epsilons: Array) -> Array:
        return np.array([delta_from_rdp(self.curve, float(epsilon)).value for epsilon in epsilons])

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        return epsilon_from_rdp(self.curve, log_delta, rule)


class ProfileBound(Bound):
    """A bound given by its privacy profile; it has no Rényi curve unless it says so."""

    def rdp(self, orders: Array) -> Array | None:
        return None

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        return Conversion(epsilon_from_profile(self.log_profile, log_delta), EXACT_PROFILE)


def monotone(curve: RenyiCurve) -> RenyiCurve:
    """Rényi divergence never decreases with the order, so the least value at any larger order holds too (Remark 5)."""
    known = curve.orders
    if known is None:
        order = minimise_over_orders(curve.rdp, None)[1]
        known = np.array([] if order is None else [order])
    values = curve.rdp(known)

    def rdp(orders: Array) -> Array:
        larger = np.min(np.where(known >= orders[..., None], values, math.inf), axis=-1, initial=math.inf)
        return np.asarray(np.minimum(curve.rdp(orders), larger), dtype=float)

    return replace(curve, rdp=rdp)
