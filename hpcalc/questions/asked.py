"""What is asked of a search beside one run's guarantee and the law of K: the same of every privacy question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcalc.bounds import Bound, bounds_for, named_by
from hpcalc.conversion import RULES, log_of_delta
from hpcalc.errors import InvalidInput, require
from hpcalc.guarantees import Guarantee, checked_guarantee
from hpcalc.laws import Adaptive, AnyRuns, Law, RunCount
from hpcalc.questions.rows import known


@dataclass(eq=False)
class Asked:
    """δ, the bounds that may be used, how the search was run and what else is released; all as ``bound`` takes it."""

    delta: float = 1e-6
    method: str = "best"
    conversion: str = "best"
    orders: Sequence[float] | None = None
    searches: int = 1
    subset: float | None = None
    then: Sequence[Guarantee] = ()
    then_on: str = "all"
    density: tuple[float, float] | None = None
    examples: int | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        named_by(self.method)
        self.orders = None if self.orders is None else tuple(map(float, self.orders))
        self.log_delta, self.delta = log_of_delta(self.delta), float(self.delta)
        self.then = tuple(map(checked_guarantee, self.then))
        low, high = self.density or (1.0, 1.0)
        rest = self.then_on == "rest" and (self.subset is None or not self.then)
        share = self.subset is None or 0.0 < self.subset < 1.0
        whole = self.searches == int(self.searches) and self.searches >= 1
        require(
            ("conversion", self.conversion, self.conversion in RULES, "give best, cks, mironov or exact"),
            *(("orders", order, order > 1.0, "give Rényi orders > 1 (inf is allowed)") for order in self.orders or ()),
            ("searches", self.searches, whole, "give a whole number >= 1"),
            ("subset", self.subset, share, "give a sampling rate between 0 and 1, e.g. 0.1"),
            ("then_on", self.then_on, self.then_on in ("all", "rest"), "give all or rest"),
            ("then_on", self.then_on, not rest, "needs a subset, and what is released after the search"),
            ("density", self.density, 0.0 < low <= 1.0 <= high, "give LOW and HIGH with 0 < LOW <= 1 <= HIGH"),
            ("examples", self.examples, self.examples is None or self.examples >= 1, "give a number >= 1"),
        )

    @property
    def plain(self) -> bool:
        """Whether one plain search is all that is released."""
        return self.searches == 1 and self.subset is None and not self.then

    @property
    def no_mechanism(self) -> str:
        """Why no explicit mechanism stands beside the answer; empty where one may."""
        if self.density is not None:
            return "no mechanism is known that attains the price of adaptive proposals"
        return "" if self.plain else "no mechanism is known for a search together with what else is released"

    def bounds(self, base: Guarantee, runs: RunCount, method: str = "") -> list[Bound]:
        """The bounds that may be used on one search, or the one that is named."""
        orders = None if self.orders is None else np.array(sorted(set(self.orders)))
        return bounds_for(base, self.law(runs), orders, method or self.method)

    def law(self, runs: RunCount) -> RunCount:
        """The law of K, with the densities that proposals may have."""
        if self.density is None or isinstance(runs, AnyRuns):  # chosen in any way at all
            return runs
        if not isinstance(runs, Law):
            raise InvalidInput("density", self.density, f"does not go with {runs.name}: its runs follow no prior")
        return Adaptive(runs, *self.density)

    def document(self) -> dict[str, Any]:
        """What was asked, how the search was run and what else is released, under the published keys."""
        return known(
            searches=self.searches if self.searches > 1 else None,
            subset=self.subset,
            then=[part.describe() for part in self.then] or None,
            then_on=self.then_on if self.subset is not None and self.then else None,
            density=None if self.density is None else list(self.density),
            unit=self.unit,
            delta=self.delta,
        )
