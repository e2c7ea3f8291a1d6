"""What a search costs, asked many times with one set of options: where its ε meets a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpcalc.bounds import probe_epsilon
from hpcalc.conversion import log_of_delta
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.logspace import Lower
from hpcalc.questions.rows import upper_or_none
from hpcalc.questions.search_cost import BoundResult, bound
from hpcalc.solve import Crossing, Grid, last_passing

__all__ = ["MOST_RUNS", "Accountant", "Progress", "Ticker", "cost_fields"]

Progress = Callable[[int, int], None]

#: Searches for a law end at this mean number of runs; the answer says so.
MOST_RUNS = 1e6
_ONLY_SAID = {"examples", "unit"}  # what ``bound`` is told for its checklist alone


@dataclass
class Ticker:
    """Counts evaluations for a progress bar whose end is not known beforehand."""

    report: Progress | None = None
    expected: int = 0
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        if self.report is not None:
            self.expected = max(self.expected, self.done + 1)
            self.report(self.done, self.expected)


def _coarse(grid: Grid) -> Grid:
    return Grid(grid.safest, grid.boldest, 4) if grid.digits else grid


@dataclass
class Accountant:
    """Asks :func:`bound` with one set of options.

    Attributes
    ----------
    delta, method, conversion, orders
        As in ``bound``.
    release : mapping
        Further keyword arguments of ``bound``: what else is released, and how the search was run.
    tick : Ticker
        Told of every evaluation.
    certify : bool
        Whether :meth:`last_within` asks ``bound`` for its last word; without it four digits by the probe will do.
    """

    delta: float
    method: str = "best"
    conversion: str = "best"
    orders: Any = None
    release: Mapping[str, Any] = field(default_factory=dict)
    tick: Ticker = field(default_factory=Ticker)
    certify: bool = True

    def cost(self, base: Guarantee, runs: RunCount, *, lower: bool = False) -> BoundResult:
        """What the public function says."""
        self.tick()
        return bound(
            base,
            runs,
            delta=self.delta,
            method=self.method,
            conversion=self.conversion,
            orders=self.orders,
            lower=lower,
            **self.release,
        )

    def probe(self, base: Guarantee, runs: RunCount) -> float:
        """ε to three digits or more, for a search that asks often: no bound, but cheap."""
        if self.release.keys() - _ONLY_SAID or self.conversion != "best" or self.orders is not None:
            return self.cost(base, runs).epsilon
        self.tick()
        return probe_epsilon(base, runs, log_of_delta(self.delta), self.method)

    def last_within(
        self, inputs: Callable[[float], tuple[Guarantee, RunCount]], target: float, grid: Grid, start: float
    ) -> Crossing[BoundResult]:
        """The boldest number of a grid at which the whole search costs at most ``target``, by the public function.

        Parameters
        ----------
        inputs : callable
            From the number to one run's guarantee and the law of K.
        target : float
            ε.
        grid : Grid
            Numbers that may be tried.
        start : float
            First guess.
        """
        answers: dict[float, BoundResult] = {}
        probed: dict[float, float] = {}

        def full(x: float) -> tuple[float, BoundResult]:
            if x not in answers:
                answers[x] = self.cost(*inputs(x))
            return answers[x].epsilon, answers[x]

        def probe(x: float) -> tuple[float, None]:
            if x not in probed:
                probed[x] = self.probe(*inputs(x))
            return probed[x], None

        guess = last_passing(probe, target, _coarse(grid), start)
        here = guess.value or guess.beyond or start
        if not self.certify:
            return Crossing(guess.value, None, guess.beyond, None)
        # the probe and the certified answer differ by nearly the same share everywhere around
        share = full(here)[0] / probe(here)[0] if 0.0 < probe(here)[0] < math.inf else 1.0
        guess = last_passing(lambda x: (share * probe(x)[0], None), target, grid, here)
        here = guess.value or guess.beyond or start
        passes = guess.value is None or full(guess.value)[0] <= target
        if not passes or (guess.beyond is not None and full(guess.beyond)[0] <= target):
            return last_passing(full, target, grid, here)
        return Crossing(guess.value, answers.get(guess.value or 0.0), guess.beyond, answers.get(guess.beyond or 0.0))

    def meets(self, cost: BoundResult, target: float | None) -> bool:
        """Whether a cost is finite and within a target, where there is one."""
        return cost.epsilon < math.inf and (target is None or cost.epsilon <= target)


def cost_fields(cost: BoundResult, lower: bool = True) -> dict[str, Any]:
    """What a search costs, by which bound, and beside which lower bound where one was asked for."""
    out: dict[str, Any] = {"epsilon": upper_or_none(cost.epsilon), "method": None}
    if cost.best is not None:
        out["method"] = cost.best.method
    if lower:
        floor = math.nan if cost.lower is None else cost.lower.epsilon
        out |= {"exact": cost.exact, "lower_bound": Lower(floor) if math.isfinite(floor) else None}
    return out
