"""ε as a function of one number, for searches that ask it many times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hpcalc.bounds import bounds_for, probe_epsilon
from hpcalc.conversion import log_of_delta
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.questions.search_cost import BoundResult, bound
from hpcalc.solve import Crossing, Grid, last_passing

__all__ = ["CostOracle", "Ticker"]

Inputs = Callable[[float], tuple[Guarantee, RunCount]]


@dataclass
class Ticker:
    """Counts evaluations for a progress bar whose end is not known beforehand."""

    report: Callable[[int, int], None] | None
    expected: int
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        if self.report is not None:
            self.expected = max(self.expected, self.done + 1)
            self.report(self.done, self.expected)


@dataclass
class CostOracle:
    """Asks ``bound`` with one set of options.

    Attributes
    ----------
    delta, method, conversion, orders
        As in ``bound``.
    tick : Ticker
        Told of every evaluation.
    """

    delta: float
    method: str = "best"
    conversion: str = "best"
    orders: Any = None
    tick: Ticker = field(default_factory=lambda: Ticker(None, 0))

    def full(self, base: Guarantee, runs: RunCount, *, lower: bool = False) -> BoundResult:
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
        )

    def quick(self, base: Guarantee, runs: RunCount, method: str) -> float:
        """ε by one method: never below what :meth:`full` says, inf where it does not apply."""
        found = bounds_for(base, runs, method=method)
        return min((item.epsilon(log_of_delta(self.delta)).value for item in found), default=math.inf)

    def _probe(self, base: Guarantee, runs: RunCount) -> float:
        self.tick()
        if self.conversion != "best" or self.orders is not None:
            return self.full(base, runs).epsilon
        return probe_epsilon(base, runs, log_of_delta(self.delta), self.method)

    def solve(
        self, inputs: Inputs, target: float, grid: Grid, start: float, far: Callable[[float], bool] = lambda x: False
    ) -> Crossing[BoundResult]:
        """The boldest number at which the whole search costs at most ``target``, by :meth:`full`."""
        answers: dict[float, BoundResult] = {}

        def full(x: float) -> tuple[float, BoundResult]:
            if x not in answers:
                answers[x] = self.full(*inputs(x))
            return answers[x].epsilon, answers[x]

        bold = grid.value(grid.last)
        if self.method in ("best", "refined") and self.quick(*inputs(bold), "refined-pure") <= target:
            return Crossing(bold, full(bold)[1], None, None)
        here = self.rough(inputs, target, grid, start) or start
        return last_passing(full, target, grid, here)

    def rough(self, inputs: Inputs, target: float, grid: Grid, start: float) -> float | None:
        """As :meth:`solve`, the number alone and not confirmed."""
        return last_passing(lambda x: (self._probe(*inputs(x)), None), target, grid, start).value
