"""One parameter of a search solved for: how often it runs, how noisy one run is, how much of the data it sees.

Probes lead near the value at which the search costs what it may, and certified answers settle it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from hpcalc.catalog import GUARANTEES
from hpcalc.errors import InvalidInput, TargetOutOfReach
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.laws.family import LawFamily, family_of
from hpcalc.logspace import Lower, Upper, significant
from hpcalc.questions.asked import Asked
from hpcalc.questions.measures import Aims
from hpcalc.questions.release import everything, search_pair
from hpcalc.questions.rows import Priced, head, known, law_document, length_fields, quantile_or_none, upper
from hpcalc.questions.search_cost import BoundResult, Progress, search_cost
from hpcalc.solve import Crossing, Grid, first_true, last_passing

#: What can be solved for of one run, by its name: rows of the catalog.
NOISES = {row.solve_for: row for row in GUARANTEES.values() if row.solve_for is not None}
_MOST_RUNS = 1e6  # searches for a law end at this mean number of runs; the answer says so
_ROUGH = 3e-2  # of delta, where rates are only compared
_CLEARLY = 1.002  # most probes differ from the bounds by 0.1 % at most


@dataclass(frozen=True)
class Accountant:
    """Asks the same of many searches; without ``certify``, :meth:`last_within` answers with four digits by probes."""

    asked: Asked
    target: float | None = None  # what each may cost
    late: int | None = None  # the most that the 95 % quantile of K may be
    progress: Progress | None = None
    expected: int = 0  # evaluations; how many there will be is not known beforehand
    certify: bool = True
    counted: Iterator[int] = field(default_factory=lambda: itertools.count(1), compare=False)

    def tick(self) -> None:
        """Count an evaluation."""
        done = next(self.counted)
        if self.progress is not None:
            self.progress(done, max(self.expected, done + 1))

    def cost(self, base: Guarantee, runs: RunCount, *, lower: bool = False, method: str = "") -> BoundResult:
        """What ``bound`` says (by one method alone where it is named)."""
        self.tick()
        return search_cost(base, runs, replace(self.asked, method=method or self.asked.method), lower)

    def meets(self, cost: BoundResult) -> bool:
        """Whether a cost is finite and within the target, if any."""
        return cost.epsilon <= (self.target or math.inf) and cost.epsilon < math.inf

    def priced(self, base: Guarantee, item: Solution, *, lower: bool) -> Solution:
        """A law and its cost, where that is not at hand, or has no lower bound yet."""
        if item.runs is None or (item.cost is not None and not lower):
            return item
        cost = self.cost(base, item.runs, lower=lower)
        return replace(item, cost=cost, reason=cost.reason if cost.best is None else item.reason)

    def probes(self, base: Guarantee, runs: RunCount, method: str = "") -> dict[str, float]:
        """ε to three digits or more, method by method: no bounds, but cheap. The paper's are asked where alone."""
        self.tick()
        found = self.asked.bounds(base, runs, method)
        quick = [item for item in found if item.name.startswith("refined") or item.name == "composition"]
        least: dict[str, float] = {}
        for item in quick or found:  # a method may look at a guarantee in two ways
            least[item.name] = min(least.get(item.name, math.inf), item.probe(self.asked.log_delta))
        return least

    def last_within(
        self, inputs: Callable[[float], tuple[Guarantee, RunCount]], grid: Grid, start: float
    ) -> Crossing[BoundResult | None]:
        """The boldest number of a grid at which the whole search meets the target, by ``bound`` itself.

        ``inputs`` makes one run's guarantee and the law of K from the number; ``start`` is a first guess. The least
        probe leads near the answer, and ``bound`` settles it: by that method alone where no other probe comes near.
        """
        method, target = "", self.target or 0.0
        close, found, here = list[str](), None, start
        rough = replace(grid, digits=min(grid.digits, 4))

        def probed(x: float) -> tuple[float, BoundResult | None]:
            return min(self.probes(*inputs(x), method).values(), default=math.inf), None

        def priced(x: float) -> tuple[float, BoundResult | None]:
            answer = self.cost(*inputs(x), method=method)
            return answer.epsilon, answer

        for _ in range(3 if self.asked.plain else 0):
            probes = self.probes(*inputs(here))
            ranked = sorted(probes, key=probes.__getitem__)
            close = [name for name in ranked if probes[name] <= probes[ranked[0]] * _CLEARLY < math.inf]
            if found is not None and (method in close or not close):
                break
            method = close[0] if close else ""
            found = last_passing(probed, target, rough, here)
            if not self.certify:
                return found
            here = found.value or found.beyond or here
        method = close[0] if len(close) == 1 else ""
        return last_passing(priced, target, grid if self.certify else rough, here)


@dataclass(frozen=True)
class Solution:
    """A law of K and what a search with it costs; in a plan, with one parameter of the search solved for."""

    family: LawFamily
    runs: RunCount | None = None  # None where nothing meets what was asked
    cost: BoundResult | None = None  # without a law the least that it costs
    reason: str | None = None  # why there is no law, no finite bound, or no bolder value
    solved_for: str | None = None
    value: float | None = None  # at most six significant digits
    beyond: float | None = None  # the next value, one unit in the last digit bolder, that fails

    def same_law(self, other: Solution) -> bool:
        """Whether both laws are one, but for the last digits of a scale."""
        if self.runs is None or other.runs is None or self.family.scale is None:
            return self.runs == other.runs
        return self.family.label == other.family.label and f"{self.runs.mean:.9g}" == f"{other.runs.mean:.9g}"

    def fields(self, aims: Aims, *percents: int, lower: bool = False) -> dict[str, Any]:
        """The law, how long the search takes, what it costs and what it finds, under the published keys."""
        if self.runs is None or self.cost is None:
            return {"law": self.family.document(), "epsilon": None, **known(reason=self.reason)}
        best, floor = self.cost.best, math.inf if self.cost.lower is None else self.cost.lower.epsilon
        return {
            "law": law_document(self.runs),
            **length_fields(self.runs, *percents),
            "epsilon": upper(self.cost.epsilon),
            "method": None if best is None else best.method,
            **({"exact": self.cost.exact, "lower_bound": Lower(floor) if floor < math.inf else None} if lower else {}),
            **aims.fields(self.runs),
            **known(reason=self.reason),
        }


@dataclass(frozen=True, eq=False, repr=False)
class PricedLaws(Priced):
    """Laws of K and what a search with each costs."""

    base: Guarantee | None
    asked: Asked
    entries: tuple[Solution, ...]
    aims: Aims

    def told(self, command: str) -> dict[str, Any]:
        """The first keys of a document: what was asked, and what one run costs."""
        single = next((entry.cost.single_run.value for entry in self.entries if entry.cost is not None), math.inf)
        base = None if self.base is None else self.base.describe()
        first = {**head(command), **known(base=base), **self.asked.document()}
        return {**first, "single_run": {"epsilon": upper(single)}}


def too_dear(told: str, cost: BoundResult | None) -> str:
    """Why a cost is out of reach: ``told`` and the price, rounded up; its own reason where no price is finite."""
    if cost is None or not cost.epsilon < math.inf:
        return (None if cost is None else cost.reason) or "no bound is finite at this delta"
    return f"{told} ε = {significant(Upper(cost.epsilon), 5):g}"


def unfit(runs: RunCount, aims: Aims, success: float | None, late: int | None) -> str | None:
    """Why a law that is given whole is not one that was asked for, if it is not."""
    if _too_long(runs, late):
        return f"its 95 % quantile of runs exceeds {late}"
    chance = aims.success(runs)
    if success is not None and not (chance or 0.0) >= success:
        return "it has no success probability" if chance is None else f"its success probability is {chance:.6g}"
    return None


def _too_long(runs: RunCount, late: int | None) -> bool:
    return late is not None and (quantile_or_none(runs, 0.95) or math.inf) > late


def at_mean(family: LawFamily, mean: float) -> Solution:
    """A law at a mean, or at the scale that was given; its cost is not asked."""
    if family.given is not None:
        return Solution(family, family.given)
    try:
        return Solution(family, family.with_mean(mean))
    except InvalidInput as error:
        if error.parameter == "mean" and family.scale is not None and mean > 0.0:
            return Solution(family, reason=f"no mean of {mean:g}: {error.remedy}")
        raise


def solve_runs(ask: Accountant, base: Guarantee, family: LawFamily, start: float = 10.0) -> Solution:
    """The boldest law of a family within the target and the limit on K, looked for from a mean ``start`` on."""
    grid, limit = _span(family, ask.late)
    if grid is None:
        cost = ask.cost(base, family.given) if family.scale is None and family.given is not None else None
        if cost is not None and ask.meets(cost):
            return Solution(family, family.given, cost, limit)
        why = limit if cost is None else too_dear(f"{limit}, and costs", cost)
        return Solution(family, None, cost, why, family.scale)
    found = ask.last_within(lambda x: (base, family.at(x)), grid, family.scale_at(start))
    if found.value is None:
        why = too_dear(f"the least it can cost, at {family.scale} = {found.beyond:g}, is", found.refused)
        return Solution(family, None, found.refused, why, family.scale)
    reason = f"every {family.scale} meets the target{limit}" if found.beyond is None else None
    if found.refused is not None and found.refused.epsilon == math.inf:
        reason = f"one step further there is no finite ε at δ = {ask.asked.delta:g}"
    return Solution(family, family.at(found.value), found.answer, reason, family.scale, found.value, found.beyond)


def law_of_success(family: LawFamily, success: float, aims: Aims, late: int | None = None) -> Solution:
    """The law of a family with the fewest runs that reaches a chance of success; its cost is not asked."""
    grid, limit = _span(family, late)
    if grid is None:
        return Solution(family, reason=limit, solved_for=family.scale)

    def chance(index: int) -> float:
        return aims.success(family.at(grid.value(index))) or 0.0

    top = chance(grid.last)
    if not top >= success:
        why = f"its success probability ends at {top:.6g}{limit}" if top > 0.0 else "it has no success probability"
        return Solution(family, reason=why, solved_for=family.scale)
    value = grid.value(first_true(lambda index: chance(index) >= success, grid.first, grid.last))
    return Solution(family, family.at(value), solved_for=family.scale, value=value)


def solve_noise(ask: Accountant, runs: RunCount, kind: str, one_run: Callable[[float], Guarantee]) -> Solution:
    """The least noise, by its name in ``NOISES``, at which a search of ``one_run`` of it meets the target."""
    row, family = NOISES[kind], family_of(runs)
    grid = Grid(1e-12, 1e6) if row.safe == "down" else Grid(1e12, 1e-6) if row.arity == 1 else Grid(1e4, 1e-2)
    found = ask.last_within(lambda x: (one_run(x), runs), grid, 0.1 if row.safe == "down" else 2.0)
    if found.value is None:
        why = too_dear(f"even {kind} {found.beyond:g} costs", found.refused)
        return Solution(family, None, found.refused, why, kind)
    reason = None if found.beyond is not None else f"every {kind} up to here meets the target"
    return Solution(family, runs, found.answer, reason, kind, found.value, found.beyond)


def solve_subset(ask: Accountant, base: Guarantee, runs: RunCount) -> Solution:
    """The sampling rate of the records at which a search and what follows it cost least, within the target if any."""
    asked, family = ask.asked.beside(base), family_of(runs)
    bounds = asked.bounds(base, runs)
    # the search is the same at every rate; what follows it is rough until the rate is found
    priced = bounds and (asked.delta > 0.0 or base.pure_epsilon < math.inf)
    search = search_pair(bounds, asked.log_delta) if priced else None

    def cost(rate: float) -> float:
        ask.tick()
        whole = everything(bounds, replace(asked, subset=rate), search, _ROUGH)
        return whole.epsilon(asked.log_delta, asked.conversion).value

    rate = best_rate(cost) if search is not None else 0.1
    found = replace(ask, asked=replace(asked, subset=rate)).cost(base, runs)
    if ask.meets(found):
        return Solution(family, runs, found, None, "subset", rate)
    why = too_dear(f"the least it can cost, at subset = {rate:g}, is", found)
    return Solution(family, None, found, why, "subset")


def best_rate(cost: Callable[[float], float]) -> float:
    """The sampling rate of two digits, from 0.002 to 0.95, that costs least: ε is not monotone in it."""
    rates: list[float] = np.geomspace(0.002, 0.95, 13).tolist()
    cost, best = cache(cost), 0.0
    for width in (0.2, 0.06, 0.02, 0.0):
        rates = [rate for rate in (significant(Lower(rate), 2) for rate in rates) if rate < 1.0]
        best = min(rates, key=cost)
        rates += [best * (1.0 - width), best * (1.0 + width)]
    return best


def _span(family: LawFamily, late: int | None) -> tuple[Grid | None, str]:
    """Values with a mean from one run to a million within a limit, and what ends them, or why none is left."""
    if family.scale is None:
        return None, f"{family.dist} has no parameter to solve for"
    whole = family.grid
    last = min(whole.last, whole.index(family.scale_at(_MOST_RUNS)))
    end = f": at a mean of {_MOST_RUNS:g} runs the search ends" if last < whole.last else ""

    def enough(index: int) -> bool:  # ε alone is no reason to look below: no run costs nothing
        return family.at(whole.value(index)).mean >= 1.0 - 1e-12

    def too_long(index: int) -> bool:
        return _too_long(family.at(whole.value(index)), late)

    if not enough(last):
        return None, "its mean stays below one run"
    first = first_true(enough, whole.first, last)
    if too_long(first):
        return None, f"its 95 % quantile of runs exceeds {late} even at a mean of one run"
    if too_long(last):
        last = first_true(too_long, first, last) - 1
        often = "once" if late == 1 else f"{late} times"
        end = f": one step further, over 5 % of searches run more than {often}"
    return Grid(whole.value(first), whole.value(last), whole.digits), end


def unreachable(
    ask: Accountant, found: list[Solution], success: float | None = None, option: str = "--target-epsilon"
) -> TargetOutOfReach:
    """What can be said where no law meets a target: the nearest that one does."""
    costs = [(item.cost.epsilon, item.family.label) for item in found if item.cost and item.cost.epsilon < math.inf]
    if ask.target is None or not costs:
        alike = {item.reason: [one.family.label for one in found if one.reason == item.reason] for item in found}
        reasons = "; ".join(f"{', '.join(labels)}: {reason}" for reason, labels in alike.items())
        limit = "a smaller --target-success" if success is not None else ask.late and "a larger --max-runs-p95"
        hint = f";\ngive {limit}, or other laws" if limit else ""
        return TargetOutOfReach(f"no law meets the target: {reasons}{hint}")
    least, label = min(costs, key=lambda pair: pair[0])
    search = "the search" if ask.asked.plain else "everything released"
    aim = search if success is None else f"a success probability of {success:g}"
    shown = f"{significant(Upper(least), 5):g}"
    return TargetOutOfReach(
        f"target ε = {ask.target:g} at δ = {ask.asked.delta:g} is out of reach: the least {aim} can cost is {shown} "
        f"({label});\ngive {option} {shown} or more, or more noise in every run",
        {"low": upper(least), "high": None},
    )
