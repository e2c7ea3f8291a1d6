"""One parameter of a search solved for: how often it runs, how noisy one run is, how much of the data it sees."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcalc.bounds import bounds_for
from hpcalc.catalog import GUARANTEES
from hpcalc.conversion import log_of_delta
from hpcalc.errors import TargetOutOfReach
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.laws.family import LawFamily, family_of
from hpcalc.logspace import round_down, round_up
from hpcalc.questions.accountant import MOST_RUNS, Accountant, cost_fields
from hpcalc.questions.release import released, search_pair
from hpcalc.questions.rows import Aims, law_document, length_fields, quantile_or_none, upper_or_none
from hpcalc.questions.search_cost import BoundResult
from hpcalc.questions.setup import SearchSetup
from hpcalc.solve import Crossing, Grid, first_true

__all__ = ["NOISES", "Solution", "solve_noise", "solve_runs", "solve_subset", "solve_success", "unreachable"]

_ROUGH = 3e-2  # of delta, where rates are only compared
_IN_TURN = 20  # numbers of runs asked one after another where ε need not rise with them


@dataclass(frozen=True)
class Solution:
    """One law, or one kind of noise, with its parameter solved.

    Attributes
    ----------
    family : LawFamily
        The law but for its open parameter.
    solved_for : str or None
        The parameter.
    value : float or None
        Its value, with at most six significant digits; None if none meets the target.
    runs : RunCount or None
        The law at that value.
    cost : BoundResult or None
        What ``bound`` says there; where there is no value, the least that the law costs.
    beyond : float or None
        The next value, one unit in the last digit bolder, that fails; None if the search ended for another reason.
    reason : str or None
        Why there is no value, or why a bolder one was not taken.
    """

    family: LawFamily
    solved_for: str | None
    value: float | None = None
    runs: RunCount | None = None
    cost: BoundResult | None = None
    beyond: float | None = None
    reason: str | None = None

    def row(self, aims: Aims) -> dict[str, Any]:
        """The solution under the published keys."""
        out: dict[str, Any] = {"dist": self.family.dist, "solved_for": self.solved_for, "value": self.value}
        if self.runs is not None and self.cost is not None:
            out["law"] = law_document(self.runs)
            out.update(length_fields(self.runs, 50, 95, 99))
            out.update(cost_fields(self.cost, lower=False))
            out.update(aims.fields(self.runs))
        else:
            out["law"] = {"dist": self.family.dist, **self.family.parameters}
            out["epsilon"] = None
        if self.reason is not None:
            out["reason"] = self.reason
        return out


def solve_runs(
    ask: Accountant, base: Guarantee, family: LawFamily, target: float, late: int | None = None, start: float = 10.0
) -> Solution:
    """The boldest law of a family within a target.

    Parameters
    ----------
    ask : Accountant
    base : Guarantee
        One run.
    family : LawFamily
        A law without an open parameter is taken as it is.
    target : float
        ε of the whole search.
    late : int, optional
        What the 95 % quantile of K may be at most.
    start : float
        Mean number of runs to start from.
    """
    if family.scale is None:
        return _as_given(ask, base, family, target)
    span = _span(family, late)
    if isinstance(span, str):
        return Solution(family, family.scale, reason=span)
    grid, limit = span

    def inputs(x: float) -> tuple[Guarantee, RunCount]:
        return base, family.at(x)

    found = _in_turn(ask, base, family, target, grid) if family.whole and base.slack > 0.0 else None
    if found is None or (found.beyond is None and found.value != grid.boldest):
        found = ask.last_within(inputs, target, grid, family.scale_at(start) if found is None else found.value or 1.0)
    if found.value is None:
        least = found.refused.epsilon if found.refused is not None else math.inf
        why = f"the least it can cost, at {family.scale} = {found.beyond:g}, is ε = {round_up(least, 5):g}"
        return Solution(family, family.scale, cost=found.refused, reason=why)
    reason = f"every {family.scale} meets the target{limit}" if found.beyond is None else None
    if found.refused is not None and found.refused.epsilon == math.inf:
        reason = f"one step further there is no finite ε at δ = {ask.delta:g}"
    return Solution(family, family.scale, found.value, family.at(found.value), found.answer, found.beyond, reason)


def solve_success(
    ask: Accountant | None,
    base: Guarantee | None,
    family: LawFamily,
    success: float,
    aims: Aims,
    target: float | None = None,
    late: int | None = None,
) -> Solution:
    """The law of a family with the fewest runs that reaches a chance of success, if a target allows its cost.

    Parameters
    ----------
    ask, base : optional
        None where the cost is not asked.
    family, target, late
        As in :func:`solve_runs`.
    success : float
        The chance to reach.
    aims : Aims
        With the chance that one run is good.
    """
    if family.scale is None:
        return Solution(family, None, reason=f"{family.dist} has no parameter to solve for")
    span = _span(family, late)
    if isinstance(span, str):
        return Solution(family, family.scale, reason=span)
    grid, limit = span

    def chance(index: int) -> float:
        return aims.success(family.at(grid.value(index))) or 0.0

    top = chance(grid.last)
    if not top >= success:
        why = f"its success probability ends at {top:.6g}{limit}" if top > 0.0 else "it has no success probability"
        return Solution(family, family.scale, reason=why)
    value = grid.value(first_true(lambda index: chance(index) >= success, grid.first, grid.last))
    runs = family.at(value)
    if ask is None or base is None:
        return Solution(family, family.scale, value, runs)
    cost = ask.cost(base, runs)
    if not ask.meets(cost, target):
        price = f"costs ε = {round_up(cost.epsilon, 5):g}" if cost.epsilon < math.inf else "has no finite bound"
        why = f"the success probability needs {family.scale} = {value:g}, which {price}"
        return Solution(family, family.scale, cost=cost, reason=why)
    return Solution(family, family.scale, value, runs, cost)


def solve_noise(
    ask: Accountant, runs: RunCount, kind: str, one_run: Callable[[float], Guarantee], target: float
) -> Solution:
    """The least noise of one run for a law of K.

    Parameters
    ----------
    ask : Accountant
    runs : RunCount
        Law of K.
    kind : str
        A name in ``NOISES``.
    one_run : callable
        From the noise to the guarantee of one run, with whatever else happens in it.
    target : float
        ε of the whole search.
    """
    family, noise = family_of(runs), NOISES[kind]
    found = ask.last_within(lambda x: (one_run(x), runs), target, noise.grid, noise.start)
    if found.value is None:
        least = found.refused.epsilon if found.refused is not None else math.inf
        why = f"even {kind} {found.beyond:g} costs ε = {round_up(least, 5):g}"
        return Solution(family, kind, cost=found.refused, reason=why)
    reason = None if found.beyond is not None else f"every {kind} up to here meets the target"
    return Solution(family, kind, found.value, runs, found.answer, found.beyond, reason)


def solve_subset(ask: Accountant, base: Guarantee, runs: RunCount, target: float | None = None) -> Solution:
    """The sampling rate of the records at which a search and what follows it cost least.

    ε is not monotone in the rate, so rates are scanned.

    Parameters
    ----------
    ask : Accountant
        Its ``release`` says what follows the search.
    base, runs : Guarantee, RunCount
        One run, and the law of K.
    target : float, optional
        What everything released may cost.
    """
    setup = SearchSetup(**{**ask.release, "subset": 0.5})  # at any rate
    log_delta, costs = log_of_delta(ask.delta), dict[float, float]()
    orders = None if ask.orders is None else np.array(sorted({float(order) for order in ask.orders}))
    bounds = bounds_for(base, setup.law(runs), orders, ask.method)
    # the search is the same at every rate; what follows it is rough until the rate is found
    search = search_pair(bounds, log_delta) if bounds else None

    def cost(rate: float) -> float:
        if rate not in costs:
            ask.tick()
            whole = released(
                bounds, log_delta, searches=setup.searches, subset=rate, then=setup.then, then_on=setup.then_on,
                search=search, tolerance=_ROUGH,
            )  # fmt: skip
            costs[rate] = whole.epsilon(ask.conversion).value
        return costs[rate]

    rate = best_rate(cost)[0] if search is not None else 0.1
    found = replace(ask, release={**ask.release, "subset": rate}).cost(base, runs)
    family = family_of(runs)
    if not ask.meets(found, target):
        why = f"the least it can cost, at subset = {rate:g}, is ε = {round_up(found.epsilon, 5):g}"
        return Solution(family, "subset", cost=found, reason=why)
    return Solution(family, "subset", rate, runs, found)


def best_rate(cost: Callable[[float], float]) -> tuple[float, float]:
    """The sampling rate of two digits, from 0.002 to 0.95, that costs least, and its cost.

    Examples
    --------
    >>> best_rate(lambda rate: (rate - 0.23) ** 2)
    (0.23, 0.0)
    """
    rates = [round_down(rate, 2) for rate in np.geomspace(0.002, 0.95, 13).tolist()]
    for width in (0.2, 0.06, 0.02):
        best = min(rates, key=cost)
        rates += [round_down(best * (1.0 + step * width), 2) for step in (-1, 1)]
        rates = [rate for rate in dict.fromkeys(rates) if rate < 1.0]
    best = min(rates, key=cost)
    return best, cost(best)


@dataclass(frozen=True)
class Noise:
    """A parameter of one run that can be solved for.

    Attributes
    ----------
    grid : Grid
        Values to try.
    start : float
        A first guess.
    target : str or None
        The guarantee's class where the parameter is all it takes.
    """

    grid: Grid
    start: float
    target: str | None


def _noises() -> dict[str, Noise]:
    """What ``solve_for`` may name, from the catalog."""
    found = {}
    for row in GUARANTEES.values():
        if row.solve_for is not None:
            plain = row.arity == 1
            grid = Grid(1e-12, 1e6) if row.safe == "down" else Grid(1e12, 1e-6) if plain else Grid(1e4, 1e-2)
            found[row.solve_for] = Noise(grid, 0.1 if row.safe == "down" else 2.0, row.target if plain else None)
    return found


NOISES = _noises()


def _span(family: LawFamily, late: int | None) -> tuple[Grid, str] | str:
    """Values with a mean from one run to a million within the run-time limit, and what ends them; or why none is left.

    ε alone is no reason to look below one run: a search that runs nothing costs nothing.
    """
    whole = Grid(*family.range, digits=0 if family.whole else 6)
    first, last = whole.first, whole.last
    end = ""

    def law(index: int) -> RunCount:
        return family.at(whole.value(index))

    far = whole.index(family.scale_at(MOST_RUNS))
    if far < last:
        last, end = far, f": at a mean of {MOST_RUNS:g} runs the search ends"
    if not law(first).mean >= 1.0 - 1e-12:
        if not law(last).mean >= 1.0 - 1e-12:
            return "its mean stays below one run"
        first = first_true(lambda index: law(index).mean >= 1.0 - 1e-12, first, last)
    if late is not None:

        def too_long(index: int) -> bool:
            return (quantile_or_none(law(index), 0.95) or math.inf) > late

        if too_long(first):
            return f"its 95 % quantile of runs exceeds {late} even at a mean of one run"
        if too_long(last):
            last = first_true(too_long, first, last) - 1
            often = "once" if late == 1 else f"{late} times"
            end = f": one step further, over 5 % of searches run more than {often}"
    return Grid(whole.value(first), whole.value(last), whole.digits), end


def _in_turn(ask: Accountant, base: Guarantee, family: LawFamily, target: float, grid: Grid) -> Crossing[BoundResult]:
    """With (ε, δ) parts the bound need not rise with a fixed number of runs: small ones are asked in turn."""
    passed: tuple[float | None, BoundResult | None] = None, None
    for index in range(grid.first, min(grid.last, grid.first + _IN_TURN) + 1):
        value = grid.value(index)
        cost = ask.cost(base, family.at(value))
        if not cost.epsilon <= target:
            return Crossing(*passed, value, cost)
        passed = value, cost
    return Crossing(*passed, None, None)


def _as_given(ask: Accountant, base: Guarantee, family: LawFamily, target: float) -> Solution:
    """A law without a parameter to solve for: it meets the target or it does not."""
    assert family.given is not None
    cost = ask.cost(base, family.given)
    why = f"{family.dist} has no parameter to solve for"
    if not ask.meets(cost, target):
        return Solution(family, None, cost=cost, reason=f"{why}, and costs ε = {round_up(cost.epsilon, 5):g}")
    return Solution(family, None, None, family.given, cost, reason=why)


def unreachable(
    found: list[Solution],
    target: float | None,
    success: float | None,
    delta: float,
    option: str = "--target-epsilon",
) -> TargetOutOfReach:
    """What can be said where no law meets a target: the nearest that one does."""
    costs = [(item.cost.epsilon, item) for item in found if item.cost is not None and item.cost.epsilon < math.inf]
    if target is not None and costs:
        least, item = min(costs, key=lambda pair: pair[0])
        aim = "the search" if success is None else f"a success probability of {success:g}"
        shown = round_up(least, 5)
        return TargetOutOfReach(
            f"target ε = {target:g} at δ = {delta:g} is out of reach: the least {aim} can cost is {shown:g} "
            f"({item.family.label});\ngive {option} {shown:g} or more, or a run that loses less (more noise)",
            reachable={"low": upper_or_none(least), "high": None},
        )
    reasons = "; ".join(f"{item.family.label}: {item.reason}" for item in found)
    hint = "" if success is None else ";\ngive a smaller --target-success, or other laws"
    return TargetOutOfReach(f"no law meets the target: {reasons}{hint}")
