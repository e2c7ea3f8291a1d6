"""ε as a function of one number, for searches that ask it many times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hpcalc.analysis.crossing import Crossing, Grid, last_passing
from hpcalc.analysis.search_cost import BoundResult, bound
from hpcalc.base import Base
from hpcalc.errors import NoFiniteBound
from hpcalc.runs import RunCount

__all__ = ["Pricer", "Ticker"]

# Where one of these gave the smallest bound, it alone is asked while a search closes in; each costs a fraction of all.
_CHEAPER = ("refined-rdp", "refined-profile")


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
class Pricer:
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

    def full(self, base: Base, runs: RunCount, *, lower: bool = False) -> BoundResult:
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

    def quick(self, base: Base, runs: RunCount, method: str) -> float:
        """ε by one method only: never below what :meth:`full` says."""
        self.tick()
        return bound(
            base,
            runs,
            delta=self.delta,
            method=method,
            conversion=self.conversion,
            orders=self.orders,
            lower=False,
        ).epsilon

    def solve(
        self,
        inputs: Callable[[float], tuple[Base, RunCount]],
        target: float,
        grid: Grid,
        start: float,
    ) -> Crossing[BoundResult]:
        """The boldest number at which the whole search costs at most ``target``.

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

        Returns
        -------
        Crossing
            Its ``answer`` and ``refused`` come from :meth:`full`.
        """
        answers: dict[float, BoundResult] = {}

        def full(x: float) -> tuple[float, None]:
            if x not in answers:
                try:
                    answers[x] = self.full(*inputs(x))
                except NoFiniteBound:
                    return math.inf, None
            return answers[x].epsilon, None

        found: Crossing[None] | None = None
        for _ in range(3):
            here = start if found is None or found.value is None else found.value
            here = grid.value(min(max(grid.index(here), grid.first), grid.last))
            first = full(here)
            winner = answers[here].best if here in answers else None
            if self.method != "best" or winner is None or winner.method not in _CHEAPER:
                found = last_passing(full, target, grid, here)
                break
            name = winner.method

            def cheap(x: float) -> tuple[float, None]:
                if x in answers:
                    return answers[x].epsilon, None
                return self.quick(*inputs(x), name), None

            assert first is not None
            found = last_passing(cheap, target, grid, here)
            # every method has its say at the two neighbours: what one alone refused, another may let pass
            sound = found.value is None or full(found.value)[0] <= target
            if sound and (found.beyond is None or not full(found.beyond)[0] <= target):
                break
        else:
            assert found is not None
            found = last_passing(full, target, grid, here if found.value is None else found.value)
        assert found is not None
        for x in (found.value, found.beyond):
            if x is not None:
                full(x)
        return Crossing(
            found.value,
            None if found.value is None else answers[found.value],
            found.beyond,
            None if found.beyond is None else answers.get(found.beyond),
        )
