"""What a search costs, asked many times: where its ε meets a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hpcalc.bounds import bounds_for, named_by
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.logspace import Lower
from hpcalc.questions.asked import Asked
from hpcalc.questions.rows import upper
from hpcalc.questions.search_cost import BoundResult, Progress, search_cost
from hpcalc.solve import Crossing, Grid, last_passing

__all__ = ["Accountant", "Progress", "Ticker", "cost_fields"]

_CLEARLY = 1.002  # probes lie below the bounds, by 0.1 % at most


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


@dataclass
class Accountant:
    """Asks the same of many searches; without ``certify``, :meth:`last_within` answers with four digits by probes."""

    asked: Asked
    tick: Ticker = field(default_factory=Ticker)
    certify: bool = True

    def cost(self, base: Guarantee, runs: RunCount, *, lower: bool = False, method: str | None = None) -> BoundResult:
        """What ``bound`` says (by one method alone where it is named)."""
        self.tick()
        return search_cost(base, runs, replace(self.asked, method=method or self.asked.method), lower)

    def probes(self, base: Guarantee, runs: RunCount, method: str | None = None) -> dict[str, float]:
        """ε to three digits or more, method by method: no bounds, but cheap. The paper's are asked where alone."""
        self.tick()
        found = bounds_for(base, runs, self.asked.restricted, method or self.asked.method)
        quick = [item for item in found if item.name.startswith("refined") or item.name == "composition"]
        return {item.name: item.probe(self.asked.log_delta) for item in quick or found}

    def last_within(
        self, inputs: Callable[[float], tuple[Guarantee, RunCount]], target: float, grid: Grid, start: float
    ) -> Crossing[BoundResult]:
        """The boldest number of a grid at which the whole search costs at most ``target``, by ``bound`` itself.

        ``inputs`` makes one run's guarantee and the law of K from the number; ``start`` is a first guess. Probes of the
        method that wins lead near the answer. The certified answer differs from its probe by nearly the same share
        everywhere around, so two or three certified answers settle the last digit; where they do not agree with the
        probes, certified answers alone are searched.
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

        def led_by(name: str) -> Crossing[None]:
            coarse = Grid(grid.safest, grid.boldest, min(grid.digits, 4))
            return last_passing(lambda x: (probe(name, x), None), target, coarse, here)

        here = grid.value(min(max(grid.index(start), grid.first), grid.last))
        if not self.asked.plain or self.asked.density is not None:
            return last_passing(full, target, grid, here)
        # the Rényi bound is the cheapest to ask, and leads near where another one wins
        winner: str | None = "refined-rdp" if named_by(self.asked.method)("refined-rdp") else None
        rivals: dict[str, float] = {}
        for _ in range(3):
            if winner is not None and probe(winner, here) < math.inf:
                led = led_by(winner)
                here = grid.value(grid.last) if led.beyond is None else led.value or led.beyond
            rivals = self.probes(*inputs(here))
            best = min(rivals, key=rivals.__getitem__, default=None)
            if best == winner:
                break
            winner = best
        if winner is None or not 0.0 < rivals[winner] < math.inf:
            return last_passing(full, target, grid, here)
        if not self.certify:
            return Crossing(led.value, None, led.beyond, None)
        # a method that is far from winning needs no certificate
        if all(value > rivals[winner] * _CLEARLY for name, value in rivals.items() if name != winner):
            method = winner
        slope = _slope({x: value for (name, x), value in probed.items() if name == winner}, here)
        if slope is None:
            return last_passing(full, target, grid, here)
        level = full(here)[0]
        guess = last_passing(lambda x: (level * (x / here) ** slope, None), target, grid, here)
        passes = guess.value is None or full(guess.value)[0] <= target
        if not passes or (guess.beyond is not None and full(guess.beyond)[0] <= target):
            return last_passing(full, target, grid, guess.value or guess.beyond or here)
        return Crossing(guess.value, answers.get(guess.value or 0.0), guess.beyond, answers.get(guess.beyond or 0.0))


def _slope(probed: Mapping[float, float], here: float) -> float | None:
    """Rise of ``log epsilon`` per unit of ``log x`` at a number that was probed, from the nearest other one."""
    known = {math.log(x / here): value for x, value in probed.items() if 0.0 < value < math.inf}
    away = [place for place in known if abs(place) > 1e-4]
    if 0.0 not in known or not away:
        return None
    other = min(away, key=abs)
    return math.log(known[other] / known[0.0]) / other


def cost_fields(cost: BoundResult, lower: bool = True) -> dict[str, Any]:
    """What a search costs, by which bound, and beside which lower bound where one was asked for."""
    out = {"epsilon": upper(cost.epsilon), "method": None if cost.best is None else cost.best.method}
    if not lower:
        return out
    floor = math.nan if cost.lower is None else cost.lower.epsilon
    return {**out, "exact": cost.exact, "lower_bound": Lower(floor) if math.isfinite(floor) else None}
