"""What is asked of a search beside one run's guarantee and the law of K: the same of every privacy question.

Then what a reviewer ticks, and what a user must be told. :data:`CHECKLIST` is the one place that words it: answers,
tables, Markdown and the glossary of hpcalc(1) read it. Its text is ``manual/checklist.txt``: a key, a short line, at
most 74 columns long, and sentences that say what it excludes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcalc.bounds import Bound, bounds_for, named_by
from hpcalc.conversion import RULES, log_of_delta
from hpcalc.errors import InvalidInput, require
from hpcalc.files import shipped
from hpcalc.guarantees import Guarantee, checked_guarantee
from hpcalc.guarantees.mixture import Mixture
from hpcalc.laws import Adaptive, AnyRuns, Law, RunCount
from hpcalc.questions.rows import known

_LARGE_DELTA = 1e-3  # without a number of people: larger than one over any that is worth protecting
_MANY_RUNS = 1_000_000
_OFTEN_EMPTY = 0.01


@dataclass(eq=False)
class Asked:
    """δ, the bounds that may be used, how the search was run and what else is released; all as ``bound`` takes it."""

    delta: float = 1e-6
    method: str = "best"
    conversion: str = "best"
    orders: Sequence[float] | None = None
    searches: int = 1
    subset: float | None = None
    then: Sequence[Guarantee | str] = ()
    then_on: str = "all"
    density: tuple[float, float] | None = None
    examples: int | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        named_by(self.method)
        self.orders = None if self.orders is None else tuple(map(float, self.orders))
        self.log_delta, self.delta = log_of_delta(self.delta), float(self.delta)
        self.then = tuple(part if part == "run" else checked_guarantee(part) for part in self.then)
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

    def beside(self, base: Guarantee) -> Asked:
        """The same with ``base`` itself where ``then`` says ``"run"``: one more run of it."""
        # the winner is chosen by the data: a further run of it costs what the dearest setting does
        again = Mixture(base.parts, None, base.names) if isinstance(base, Mixture) else base
        return replace(self, then=[again if part == "run" else part for part in self.then]) if self.then else self

    @property
    def after(self) -> tuple[Guarantee, ...]:
        """What is released after the search, where no run is left to be named."""
        return tuple(map(checked_guarantee, self.then))

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
            then=[part if isinstance(part, str) else part.describe() for part in self.then] or None,
            then_on=self.then_on if self.subset is not None and self.then else None,
            density=None if self.density is None else list(self.density),
            unit=self.unit,
            delta=self.delta,
        )


#: By key: the line that a reviewer ticks, and what it means; fields in braces are the case's own numbers.
CHECKLIST = {
    key: (line, " ".join(meaning))
    for key, line, *meaning in map(str.splitlines, shipped("manual/checklist.txt").split("\n\n"))
}


def checklist(base: Guarantee, runs: RunCount, asked: Asked) -> list[str]:
    """Keys of :data:`CHECKLIST` that a case asks a reviewer for, in its order."""
    law, cut, alone = runs.name, runs.parameters(), asked.density is None
    drawn, first, counted = law != "composition", law == "threshold", asked.examples is not None
    best = drawn and not first
    listed, weighted = "candidates" in base.describe(), getattr(base, "weights", None) is not None
    expected = asked.delta * (asked.examples or 0)
    asks = {
        "fresh": drawn and alone, "any-choice": not drawn, "density": drawn and not alone,
        "weights": drawn and listed and weighted, "unknown-weights": drawn and listed and not weighted,
        "secret-k": best and law != "fixed", "fixed-k": law == "fixed", "stop": first, "acceptance": first,
        "max-runs": "max_runs" in cut, "clamp-runs": "clamp_runs" in cut, "covered": not listed, "covered-each": listed,
        "released": drawn, "score": best, "order": best, "searches": asked.searches > 1,
        "subset": asked.subset is not None, "then": bool(asked.then), "then-rest": asked.then_on == "rest",
        "neighbours": asked.unit is None, "unit": asked.unit is not None, "delta": asked.delta > 0.0 and not counted,
        "delta-known": 0.0 < expected <= 0.1, "delta-near": 0.1 < expected <= 1.0, "delta-above": expected > 1.0,
        "both": True,
    }  # fmt: skip
    return [key for key in CHECKLIST if asks[key]]


def assumptions(base: Guarantee, runs: RunCount, asked: Asked) -> Iterator[str]:
    """What a reviewer ticks for a case: each text is the line to tick, then what it means."""
    low, high = asked.density or (1.0, 1.0)
    cut = {"max_runs": None, "clamp_runs": None, "accept": None, **runs.parameters()}
    told = {**vars(asked), **cut, "runs": runs.max_runs if runs.max_runs is not None else "K", "low": low, "high": high}
    for key in checklist(base, runs, asked):
        if key.startswith("delta"):
            yield from base.notes
        yield " ".join(CHECKLIST[key]).format(**told)
    if asked.delta == 0.0:
        yield from base.notes


def warnings_of(
    base: Guarantee, runs: RunCount, asked: Asked, epsilon: float = math.inf, order: float | None = None
) -> Iterator[str]:
    """What the reader can act on, of an answer and the Rényi order it came from; for stderr and for the document."""
    yield from base.warnings
    yield from about_delta(asked)
    # by Markov's inequality that takes a mean of a twentieth
    if runs.mean > 0.05 * _MANY_RUNS and runs.log_sf(_MANY_RUNS) > math.log(0.05):
        yield "over 5 % of searches run more than a million times: take a law with a lighter tail, or give --max-runs"
    if runs.prob_zero > _OFTEN_EMPTY:
        yield f"with probability {runs.prob_zero:.4g} the search runs nothing: give --at-least-one, or a larger mean"
    if epsilon == 0.0 and asked.delta > 0.0 and base.pure_epsilon != 0.0:
        yield f"epsilon is 0 because delta = {asked.delta:g} covers all that the search can lose: give a smaller delta"
    if order is not None and base.orders is not None:
        orders = base.orders[np.isfinite(base.orders)]
        if orders.size > 1 and order in (orders[0], orders[-1]):
            end = "smallest" if order == orders[0] else "largest"
            yield f"the best order is the {end} given one ({order:g}): more orders there may lower epsilon"


def about_delta(asked: Asked) -> Iterator[str]:
    """A warning where δ is too large for the number of privacy units, as far as that is known."""
    delta, examples = asked.delta, asked.examples
    if examples is not None and delta * examples > 1.0:
        yield f"delta = {delta:g} is above 1/N = {1.0 / examples:.3g}: give a delta well below it"
    elif examples is None and delta >= _LARGE_DELTA:
        yield f"delta = {delta:g} is large: it should be well below one over the number of people"
