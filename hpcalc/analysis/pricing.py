"""ε as a function of one number, for searches that ask it many times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hpcalc.analysis.methods import Question, evaluate, wanted
from hpcalc.analysis.search_cost import BoundResult, bound
from hpcalc.base import Base
from hpcalc.convert import log_of_delta
from hpcalc.logmath import Array
from hpcalc.runs import RunCount
from hpcalc.solve import Crossing, Grid, last_passing

__all__ = ["Pricer", "Ticker"]

# Where one of these gave the smallest bound, it alone is asked while a search closes in; each costs a fraction of all.
_CHEAPER = ("refined-pure", "refined-rdp", "refined-profile")


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

    def full(self, base: Base, runs: RunCount, *, lower: bool = False, prices: bool = True) -> BoundResult:
        """What the public function says.

        Prices (see ``hpcalc.prices``) are tried where a lower bound leaves a gap, so a base they apply to needs it.
        Without them the answer is valid, if larger than need be.
        """
        self.tick()
        return bound(
            base,
            runs,
            delta=self.delta,
            method=self.method,
            conversion=self.conversion,
            orders=self.orders,
            lower=lower or (prices and wanted(self.method)("refined-profile") and base.exact_profile),
        )

    def quick(self, base: Base, runs: RunCount, method: str) -> float:
        """ε by some of the methods only: never below what :meth:`full` says, inf where they do not apply."""
        question = Question(base, runs, log_of_delta(self.delta), self.conversion, self._orders, thorough=False)
        include = wanted(method)
        free = self.method == "best"  # the exact bound for a pure base costs nothing
        if not base.finite:
            return math.inf
        found = evaluate(question, lambda name: include(name) or (free and name == "refined-pure"))
        return min((item.epsilon for item in found), default=math.inf)

    def solve(
        self,
        inputs: Callable[[float], tuple[Base, RunCount]],
        target: float,
        grid: Grid,
        start: float,
        far: Callable[[float], bool] = lambda x: False,
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
        far : callable
            Whether a number is too bold for anybody to look closely: there three digits do, and the search ends where
            the quicker bounds do.

        Returns
        -------
        Crossing
            Its ``answer`` and ``refused`` come from :meth:`full`. Where a number that is too far may still pass,
            ``beyond`` is None.
        """
        answers: dict[float, BoundResult] = {}
        trail: dict[float, float] = {}

        def full(x: float) -> tuple[float, None]:
            if x not in answers:
                answers[x] = self.full(*inputs(x))
            return answers[x].epsilon, None

        here = grid.value(min(max(grid.index(start), grid.first), grid.last))
        full(here)
        winner = answers[here].best
        if self.method == "best" and winner is not None and winner.method in _CHEAPER:
            name = winner.method

            def cheap(x: float) -> tuple[float, None]:
                if x not in trail:
                    self.tick()
                    trail[x] = answers[x].epsilon if x in answers else self.quick(*inputs(x), name)
                return trail[x], None

            # three digits first: whether the winner at the start still wins near the answer is seen there
            coarse = Grid(grid.safest, grid.boldest, 3) if grid.digits else grid
            found = last_passing(cheap, target, coarse, here)
            if found.beyond is not None and full(found.beyond)[0] < trail[found.beyond] * (1.0 - 1e-9):
                if far(found.beyond) and full(found.beyond)[0] <= target:
                    return Crossing(found.beyond, answers[found.beyond], None, None)
                found = last_passing(full, target, grid, found.beyond, _slope(trail, found.beyond))
            else:
                if found.beyond is None or not far(found.beyond):
                    near = found.beyond or found.value or here
                    found = last_passing(cheap, target, grid, near, _slope(trail, near))
                else:
                    grid = coarse
                if found.value is not None and found.beyond is None:
                    # everything passes, as far as values go: nothing is to be gained by a sharper look
                    return Crossing(found.value, self.full(*inputs(found.value), prices=False), None, None)
                # every method has its say at the two neighbours: what one alone refused, another may let pass
                if found.value is not None and not full(found.value)[0] <= target:
                    found = last_passing(full, target, grid, found.value, _slope(trail, found.value))
                elif found.beyond is not None and full(found.beyond)[0] <= target:
                    if far(found.beyond):
                        return Crossing(found.beyond, answers[found.beyond], None, None)
                    found = last_passing(full, target, grid, found.beyond, _slope(trail, found.beyond))
        else:
            found = last_passing(full, target, grid, here)
        for x in (found.value, found.beyond):
            if x is not None:
                full(x)
        return Crossing(
            found.value,
            None if found.value is None else answers[found.value],
            found.beyond,
            None if found.beyond is None else answers[found.beyond],
        )

    def rough(
        self,
        inputs: Callable[[float], tuple[Base, RunCount]],
        target: float,
        grid: Grid,
        start: float,
    ) -> float | None:
        """As :meth:`solve`, the number alone, by the method that wins at the start; not confirmed by the others."""
        here = grid.value(min(max(grid.index(start), grid.first), grid.last))
        method = self.method
        if method == "best":
            base, runs = inputs(here)
            self.tick()
            question = Question(base, runs, log_of_delta(self.delta), self.conversion, self._orders, thorough=False)
            found = evaluate(question, wanted(method)) if base.finite else []
            winner = min(found, key=lambda item: item.epsilon, default=None)
            if winner is not None and winner.method in _CHEAPER:
                method = winner.method

        def cheap(x: float) -> tuple[float, None]:
            self.tick()
            return self.quick(*inputs(x), method), None

        return last_passing(cheap, target, grid, here).value

    @property
    def _orders(self) -> Array | None:
        return None if self.orders is None else np.array(sorted({float(order) for order in self.orders}))


def _slope(trail: dict[float, float], here: float) -> float | None:
    """Rise of ``log ε`` per unit of ``log x`` around a number, from evaluations that are not too near each other."""
    known = {math.log(x / here): math.log(value) for x, value in trail.items() if 0.0 < value < math.inf}
    away = [place for place in known if abs(place) > 1e-3]
    near = min(known, key=abs, default=None)
    if near is None or not away:
        return None
    other = min(away, key=abs)
    return (known[other] - known[near]) / (other - near) if other != near else None
