"""What a bound is: an object that answers for its Rényi curve, its privacy profile and its epsilon.

A Rényi bound is given by its curve, and the conversion derives the rest; a profile bound is given by its privacy
profile, and one root search derives its epsilon. Whatever lists, exports, explains or draws bounds is one loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from hpcalc.conversion import Conversion
from hpcalc.logspace import Array

__all__ = ["Bound"]


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
