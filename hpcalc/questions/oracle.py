"""ε as a function of one number, for searches that ask it many times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from hpcalc.bounds.ranks import rank_curve
from hpcalc.bounds.refined import ProfileBound, smallest_epsilon
from hpcalc.conversion import log_of_delta
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law, RunCount
from hpcalc.logspace import Array
from hpcalc.questions.methods import Question, evaluate, wanted
from hpcalc.questions.prices import WIDE_GAP, improved, with_price
from hpcalc.questions.search_cost import BoundResult, bound
from hpcalc.solve import Crossing, Grid, last_passing

__all__ = ["CostOracle", "Ticker"]

Inputs = Callable[[float], tuple[Guarantee, RunCount]]
_Guesses = dict[str, dict[float, float]]
_SAMPLES = 512
_ROUGH = 2e-3  # guesses nearer to each other than this do not tell which bound is smaller

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

    def full(self, base: Guarantee, runs: RunCount, *, lower: bool = False, prices: bool | None = None) -> BoundResult:
        """What the public function says.

        Prices (bounds.prices) are tried where a lower bound leaves a gap, so a base they apply to needs it,
        unless ``prices`` says whether they are tried. Without them the answer is valid, if larger than need be.
        """
        self.tick()
        apply = wanted(self.method)("refined-profile") and base.exact_profile
        answer = bound(
            base,
            runs,
            delta=self.delta,
            method=self.method,
            conversion=self.conversion,
            orders=self.orders,
            lower=lower or (prices is None and apply),
        )
        if not (prices and apply):
            return answer
        return replace(answer, bounds=tuple(improved(answer.question, list(answer.bounds))))

    def quick(self, base: Guarantee, runs: RunCount, method: str) -> float:
        """ε by some of the methods only: never below what :meth:`full` says, inf where they do not apply."""
        include = wanted(method)
        free = self.method == "best"  # the exact bound for a pure base costs nothing
        if not base.finite:
            return math.inf
        found = evaluate(self._question(base, runs), lambda name: include(name) or (free and name == "refined-pure"))
        return min((item.epsilon for item in found), default=math.inf)

    def solve(
        self,
        inputs: Callable[[float], tuple[Guarantee, RunCount]],
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
        prices: bool | None = None  # whether they are tried near the target, once that is known

        def full(x: float) -> tuple[float, None]:
            nonlocal prices
            if x not in answers:
                answers[x] = self.full(*inputs(x), prices=prices)
                if prices is None and abs(answers[x].epsilon / target - 1.0) < 0.015:
                    prices = _prices_nearby(answers[x])
            return answers[x].epsilon, None

        def last() -> Crossing[BoundResult]:
            """Of a law that is out of reach in practice anyway no sharper look is taken."""
            return Crossing(bold, self.full(*inputs(bold), prices=False if far(bold) else None), None, None)

        bold = grid.value(grid.last)
        if wanted(self.method)("refined-pure") and self.quick(*inputs(bold), "refined-pure") <= target:
            return last()
        guesses: _Guesses = {"refined-rdp": {}, "refined-profile": {}}
        here = grid.value(min(max(grid.index(start), grid.first), grid.last))
        here, slope = self._locate(inputs, target, grid, here, guesses)
        if here == bold and guesses["refined-rdp"].get(bold, math.inf) <= target:
            return last()
        full(here)
        if _is_priced(answers[here]):
            if far(here) and answers[here].epsilon <= target:
                return Crossing(here, answers[here], None, None)
            # prices take nearly the same share off everywhere near
            share = answers[here].epsilon / self._guess(*inputs(here), "refined-profile")
            here, slope = _roughly(lambda x: share * self._guess(*inputs(x), "refined-profile"), target, grid, here)
            full(here)
        cheap = self._cheaper(inputs, here, answers[here], guesses["refined-rdp"])
        if cheap is None:
            found = last_passing(full, target, grid, here, slope)
        else:
            found = last_passing(cheap, target, _coarse(grid) if far(here) else grid, here, slope)
            if far(here) and found.beyond is not None and not far(found.beyond):
                found = last_passing(cheap, target, grid, found.beyond, slope)
            if found.value == bold and found.beyond is None:
                return last()
            # every method has its say at the two neighbours: what one alone refused, another may let pass
            if found.value is not None and not full(found.value)[0] <= target:
                found = last_passing(full, target, grid, found.value, slope)
            elif found.beyond is not None and full(found.beyond)[0] <= target:
                if far(found.beyond):
                    return Crossing(found.beyond, answers[found.beyond], None, None)
                found = last_passing(full, target, grid, found.beyond, slope)
        for x in (found.value, found.beyond):
            if x is not None:
                full(x)
        return Crossing(
            found.value,
            None if found.value is None else answers[found.value],
            found.beyond,
            None if found.beyond is None else answers[found.beyond],
        )

    def _locate(
        self, inputs: Inputs, target: float, grid: Grid, start: float, guesses: _Guesses
    ) -> tuple[float, float | None]:
        """Where the target is met, to three digits and unconfirmed, and the slope there.

        By the bound that is smaller at the start, and again by the other one if that is smaller where this one leads.
        """
        here, slope = start, None
        left = list(guesses) if self.method == "best" else []

        def guess(name: str, x: float) -> float:
            if x not in guesses[name]:
                guesses[name][x] = self._guess(*inputs(x), name)
            return guesses[name][x]

        while left:
            name = min(left, key=lambda name: guess(name, here))
            rival = min((guess(other, here) for other in guesses if other not in left), default=math.inf)
            if guess(name, here) == math.inf or guess(name, here) > rival * (1.0 - _ROUGH):
                break
            left.remove(name)
            here, slope = _roughly(partial(guess, name), target, grid, here)
        return here, slope

    def _guess(self, base: Guarantee, runs: RunCount, name: str) -> float:
        """ε by R1, or of R2's samples: no bound, but within 0.1 % of it at a tenth of its cost."""
        if not (base.finite and isinstance(runs, Law)):
            return math.inf
        self.tick()
        if name == "refined-profile":
            return _of_samples(ProfileBound(base, runs, rank_curve(base, runs, _SAMPLES)), log_of_delta(self.delta))
        return self.quick(base, runs, name)

    def _cheaper(
        self, inputs: Inputs, here: float, answer: BoundResult, by_renyi: dict[float, float]
    ) -> Callable[[float], tuple[float, None]] | None:
        """What gave an answer, alone; None if that is not to be had for less."""
        best = answer.best
        if self.method != "best" or best is None or best.method not in _CHEAPER:
            return None
        name, priced = best.method, _is_priced(answer)
        known = {here: answer.epsilon}
        if name == "refined-rdp":
            known = by_renyi
            if here not in known:
                known[here] = self.quick(*inputs(here), name)
            if known[here] > answer.epsilon * (1.0 + 1e-9):
                return None  # counting events made it smaller

        def cheap(x: float) -> tuple[float, None]:
            if x not in known:
                self.tick()
                if priced:
                    question = self._question(*inputs(x))
                    plain = evaluate(question, lambda method: method == name)[0]
                    known[x] = with_price(question, plain, complete=True).epsilon
                else:
                    known[x] = self.quick(*inputs(x), name)
            return known[x], None

        return cheap

    def rough(
        self,
        inputs: Callable[[float], tuple[Guarantee, RunCount]],
        target: float,
        grid: Grid,
        start: float,
    ) -> float | None:
        """As :meth:`solve`, the number alone, by the cheaper methods that win near it; not confirmed by the others."""
        bold = grid.value(grid.last)
        if wanted(self.method)("refined-pure") and self.quick(*inputs(bold), "refined-pure") <= target:
            return bold
        guesses: _Guesses = {"refined-rdp": {}, "refined-profile": {}}
        here = grid.value(min(max(grid.index(start), grid.first), grid.last))
        here, slope = self._locate(inputs, target, grid, here, guesses)
        least = min(known.get(here, math.inf) for known in guesses.values())
        names = [name for name, known in guesses.items() if known.get(here, math.inf) <= least * (1.0 + _ROUGH)]
        if self.method != "best" or least == math.inf:
            names = [self.method]

        def cheap(x: float) -> tuple[float, None]:
            self.tick()
            return min(self.quick(*inputs(x), name) for name in names), None

        return last_passing(cheap, target, grid, here, slope).value

    def _question(self, base: Guarantee, runs: RunCount) -> Question:
        return Question(base, runs, log_of_delta(self.delta), self.conversion, self._orders, thorough=False)

    @property
    def _orders(self) -> Array | None:
        return None if self.orders is None else np.array(sorted({float(order) for order in self.orders}))


def _is_priced(answer: BoundResult) -> bool:
    best = answer.best
    return best is not None and best.source is not None and best.source.price is not None


def _prices_nearby(answer: BoundResult) -> bool | None:
    """Whether prices are tried for questions next to an answer's; None where that is not certain."""
    if answer.lower is None or answer.best is None or not answer.lower.epsilon > 0.0:
        return None
    gap = answer.epsilon / answer.lower.epsilon
    if gap < 0.99 * WIDE_GAP:
        return False
    return True if gap > 1.01 * WIDE_GAP and _is_priced(answer) else None


def _coarse(grid: Grid) -> Grid:
    return Grid(grid.safest, grid.boldest, 3) if grid.digits else grid


def _roughly(guess: Callable[[float], float], target: float, grid: Grid, start: float) -> tuple[float, float | None]:
    """Where a guess meets the target, to three digits, and its slope there."""
    trail: dict[float, float] = {}

    def function(x: float) -> tuple[float, None]:
        if x not in trail:
            trail[x] = guess(x)
        return trail[x], None

    found = last_passing(function, target, _coarse(grid), start)
    here = found.value or found.beyond or start
    return here, _slope(trail, here)


def _of_samples(bound: ProfileBound, log_delta: float) -> float:
    if not math.isfinite(log_delta):
        return math.inf
    return smallest_epsilon(lambda epsilon: bound.nodes.log_delta(bound.base, epsilon), log_delta, accuracy=1e-4)


def _slope(trail: dict[float, float], here: float) -> float | None:
    """Rise of ``log ε`` per unit of ``log x`` around a number, from evaluations that are not too near each other."""
    known = {math.log(x / here): math.log(value) for x, value in trail.items() if 0.0 < value < math.inf}
    away = [place for place in known if abs(place) > 1e-3]
    near = min(known, key=abs, default=None)
    if near is None or not away:
        return None
    other = min(away, key=abs)
    return (known[other] - known[near]) / (other - near) if other != near else None
