"""What a search costs, asked many times with one set of options: where its ε meets a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hpcalc.bounds import bounds_for, named_by
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
_CLEARLY = 1.002  # probes lie below the bounds, by 0.1 % at most
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


def _slope(probed: Mapping[float, float], here: float) -> float | None:
    """Rise of ``log epsilon`` per unit of ``log x`` at a number that was probed, from the nearest other one."""
    known = {math.log(x / here): value for x, value in probed.items() if 0.0 < value < math.inf}
    away = [place for place in known if abs(place) > 1e-4]
    if 0.0 not in known or not away:
        return None
    other = min(away, key=abs)
    return math.log(known[other] / known[0.0]) / other


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

    def cost(self, base: Guarantee, runs: RunCount, *, lower: bool = False, method: str | None = None) -> BoundResult:
        """What the public function says (by one method alone where it is named)."""
        self.tick()
        return bound(
            base,
            runs,
            delta=self.delta,
            method=self.method if method is None else method,
            conversion=self.conversion,
            orders=self.orders,
            lower=lower,
            **self.release,
        )

    def probes(self, base: Guarantee, runs: RunCount, method: str | None = None) -> dict[str, float]:
        """ε to three digits or more, method by method: no bounds, but cheap. The paper's are asked where alone."""
        self.tick()
        orders = None if self.orders is None else np.array(sorted({float(order) for order in self.orders}))
        found = bounds_for(base, runs, orders, self.method if method is None else method)
        quick = [item for item in found if item.name.startswith("refined") or item.name == "composition"]
        log_delta = log_of_delta(self.delta)
        return {item.name: item.probe(log_delta) for item in quick or found}

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

        Notes
        -----
        Probes of the method that wins lead near the answer. The certified answer differs from its probe by nearly the
        same share everywhere around, so two or three certified answers settle the last digit; where they do not agree
        with the probes, certified answers alone are searched.
        """
        answers: dict[float, BoundResult] = {}
        probed: dict[tuple[str, float], float] = {}
        method: str | None = None

        def full(x: float) -> tuple[float, BoundResult]:
            if x not in answers:
                answers[x] = self.cost(*inputs(x), method=method)
            return answers[x].epsilon, answers[x]

        def probe(name: str, x: float) -> float:
            if (name, x) not in probed:
                probed[name, x] = self.probes(*inputs(x), name).get(name, math.inf)
            return probed[name, x]

        def led_by(name: str, among: Grid, share: float = 1.0) -> tuple[Crossing[None], float]:
            found = last_passing(lambda x: (share * probe(name, x), None), target, among, here)
            return found, found.value or found.beyond or here

        here = grid.value(min(max(grid.index(start), grid.first), grid.last))
        if self.release.keys() - _ONLY_SAID:
            return last_passing(full, target, grid, here)
        # the Rényi bound is the cheapest to ask, and leads near where another one wins
        winner: str | None = "refined-rdp" if named_by(self.method)("refined-rdp") else None
        rivals: dict[str, float] = {}
        for _ in range(3):
            if winner is not None and probe(winner, here) < math.inf:
                guess, here = led_by(winner, _coarse(grid))
                here = grid.value(grid.last) if guess.beyond is None else here
            rivals = self.probes(*inputs(here))
            best = min(rivals, key=rivals.__getitem__, default=None)
            if best == winner:
                break
            winner = best
        if winner is None or not 0.0 < rivals[winner] < math.inf:
            return last_passing(full, target, grid, here)
        if not self.certify:
            return Crossing(guess.value, None, guess.beyond, None)
        # a method that is far from winning needs no certificate
        if all(value > rivals[winner] * _CLEARLY for name, value in rivals.items() if name != winner):
            method = winner
        level, slope = full(here)[0], _slope({x: value for (name, x), value in probed.items() if name == winner}, here)
        if slope is None:
            guess, here = led_by(winner, grid, level / rivals[winner])
        else:
            middle = here
            guess = last_passing(lambda x: (level * (x / middle) ** slope, None), target, grid, here)
            here = guess.value or guess.beyond or here
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
