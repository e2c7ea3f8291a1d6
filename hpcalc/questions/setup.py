"""How a search was run, and what else is released: what every privacy question may be told beside base and law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hpcalc.errors import InvalidInput
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Adaptive, AnyRuns, Law, RunCount

__all__ = ["SearchSetup"]


@dataclass(frozen=True)
class SearchSetup:
    """How a search was run, and what else is released.

    Parameters
    ----------
    searches : int
        So many searches with a K of their own, each released.
    subset : float, optional
        Rate in (0, 1) of the Poisson sample of the records that all searches ran on.
    then : tuple of Guarantee
        Released afterwards.
    then_on : {"all", "rest"}
        Whether ``then`` saw all records or those outside the sample.
    density : tuple of (float, float), optional
        Least and largest density of a run's proposals relative to one fixed prior.
    examples : int, optional
        Number of privacy units N, to hold δ against.
    unit : str, optional
        The privacy unit in words.

    Raises
    ------
    InvalidInput
        For a value outside its range.
    """

    searches: int = 1
    subset: float | None = None
    then: tuple[Guarantee, ...] = ()
    then_on: str = "all"
    density: tuple[float, float] | None = None
    examples: int | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "then", tuple(self.then))
        if not (self.searches == int(self.searches) and self.searches >= 1):
            raise InvalidInput("searches", self.searches, "give a whole number >= 1")
        if self.subset is not None and not 0.0 < self.subset < 1.0:
            raise InvalidInput("subset", self.subset, "give a sampling rate between 0 and 1, e.g. 0.1")
        if self.then_on not in ("all", "rest"):
            raise InvalidInput("then_on", self.then_on, "give all or rest")
        if self.then_on == "rest" and (self.subset is None or not self.then):
            raise InvalidInput("then_on", self.then_on, "needs a subset, and what is released after the search")
        if self.density is not None and not 0.0 < self.density[0] <= 1.0 <= self.density[1]:
            raise InvalidInput("density", self.density, "give LOW and HIGH with 0 < LOW <= 1 <= HIGH")
        if self.examples is not None and not self.examples >= 1:
            raise InvalidInput("examples", self.examples, "give a number >= 1")

    @property
    def plain(self) -> bool:
        """Whether one plain search is all that is released."""
        return self.searches == 1 and self.subset is None and not self.then

    def law(self, runs: RunCount) -> RunCount:
        """The law of K, with the densities that proposals may have."""
        if self.density is None or isinstance(runs, AnyRuns):  # chosen in any way at all
            return runs
        if not isinstance(runs, Law):
            raise InvalidInput("density", self.density, f"does not go with {runs.name}: its runs follow no prior")
        return Adaptive(runs, *self.density)

    def document(self) -> dict[str, Any]:
        """What was said, under the published keys."""
        out: dict[str, Any] = {"searches": self.searches} if self.searches > 1 else {}
        out |= {} if self.subset is None else {"subset": self.subset}
        out |= {"then": [part.describe() for part in self.then]} if self.then else {}
        out |= {} if self.subset is None or not self.then else {"then_on": self.then_on}
        out |= {} if self.density is None else {"density": list(self.density)}
        return out | ({} if self.unit is None else {"unit": self.unit})

    @property
    def no_mechanism(self) -> str:
        """Why no explicit mechanism stands beside the answer; empty where one may."""
        if self.density is not None:
            return "no mechanism is known that attains the price of adaptive proposals"
        return "" if self.plain else "no mechanism is known for a search together with what else is released"
