"""The last printable number that meets a target.

A plan's answer is printed with six significant digits, so only such numbers are ever tried: they are counted off in
order, and the search ends with two neighbours of which one passes and the next does not. Both were asked through the
same function, so the answer needs no rounding and no second check.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Crossing", "Grid", "last_passing"]

T = TypeVar("T")
_FLAT = 60.0  # stands for the logarithm of zero or infinity
_MOST = 200


@dataclass(frozen=True)
class Grid:
    """Numbers of a few significant digits, or whole numbers, counted off from the safest to the boldest.

    Parameters
    ----------
    safest, boldest : float
        Ends, > 0.
    digits : int
        Significant digits; 0 for whole numbers.
    """

    safest: float
    boldest: float
    digits: int = 6

    @property
    def _sign(self) -> int:
        return 1 if self.boldest >= self.safest else -1

    def _count(self, x: float) -> int:
        """Position of the last printable number that is not above ``x``."""
        if self.digits == 0:
            return math.floor(x)
        unit = int(10 ** (self.digits - 1))
        # through the decimal text: logarithms are not exact at powers of ten
        mantissa, _, exponent = f"{x:.{self.digits - 1}e}".partition("e")
        count = int(exponent) * 9 * unit + round(float(mantissa) * unit) - unit
        return count if self._number(count) <= x else count - 1

    def _number(self, count: int) -> float:
        if self.digits == 0:
            return float(count)
        unit = int(10 ** (self.digits - 1))
        exponent, rest = divmod(count, 9 * unit)
        return float(f"{rest + unit}e{exponent - self.digits + 1}")

    def value(self, index: int) -> float:
        """The number at a position; larger positions are bolder."""
        return self._number(self._sign * index)

    def index(self, x: float) -> int:
        """Position of the boldest printable number not bolder than ``x``."""
        count = self._count(x)
        if self._sign > 0:
            return count
        return -count if self._number(count) == x else -(count + 1)

    @property
    def first(self) -> int:
        """Position of the safest number in the range."""
        index = self.index(self.safest)
        return index if self._sign * self.value(index) >= self._sign * self.safest else index + 1

    @property
    def last(self) -> int:
        """Position of the boldest number in the range."""
        return self.index(self.boldest)


@dataclass(frozen=True)
class Crossing(Generic[T]):
    """Two printable neighbours at the target.

    Attributes
    ----------
    value : float or None
        The boldest number that passes; None if none does.
    answer : T or None
        What the function returned there.
    beyond : float or None
        The next number, which fails; None if the range ends first.
    refused : T or None
        What the function returned there.
    """

    value: float | None
    answer: T | None
    beyond: float | None
    refused: T | None


def last_passing(
    function: Callable[[float], tuple[float, T]],
    target: float,
    grid: Grid,
    start: float,
) -> Crossing[T]:
    """The boldest number of a grid at which ``function`` stays at or below ``target``.

    Parameters
    ----------
    function : callable
        From a number to ``(epsilon, anything)``; epsilon rises towards bolder numbers, up to small noise.
    target : float
        > 0.
    grid : Grid
        What may be tried.
    start : float
        First guess.

    Returns
    -------
    Crossing

    Notes
    -----
    Secant steps on ``log epsilon`` against ``log value``, kept inside the bracket. When one end of the bracket stays,
    the next probe goes past the estimated root by a growing margin, so that both ends close in; every few steps the
    bracket is halved. About eight evaluations for a smooth function.

    Examples
    --------
    >>> found = last_passing(lambda x: (x * x, None), 2.0, Grid(1e-300, 1e300), 1.0)
    >>> found.value, found.beyond
    (1.41421, 1.41422)
    """
    first, last = grid.first, grid.last
    seen: dict[int, tuple[float, T]] = {}

    def gap(index: int) -> float:
        if index not in seen:
            seen[index] = function(grid.value(index))
        value = seen[index][0]
        if not value <= target:  # NaN fails
            over = math.log(value / target) if 0.0 < value < math.inf else _FLAT
            return max(over, 1e-300)
        return max(math.log(value / target), -_FLAT) if value > 0.0 else -_FLAT

    def place(index: int) -> float:
        return math.log(grid.value(index)) * (1.0 if grid.boldest >= grid.safest else -1.0)

    def near(x: float) -> int:
        x = x if grid.boldest >= grid.safest else -x
        return grid.index(min(max(math.exp(min(max(x, -700.0), 700.0)), 1e-300), 1e300))

    def done(passing: int | None, failing: int | None) -> Crossing[T]:
        here = None if passing is None else seen[passing]
        there = None if failing is None else seen[failing]
        return Crossing(
            None if passing is None else grid.value(passing),
            None if here is None else here[1],
            None if failing is None else grid.value(failing),
            None if there is None else there[1],
        )

    passing: int | None = None
    failing: int | None = None
    index = min(max(grid.index(start), first), last)
    trail: list[tuple[float, float]] = []  # (place, gap), the newest last
    widths: list[int] = []
    stale, margin, side = 0, 0, 0
    for _ in range(_MOST):
        value = gap(index)
        trail.append((place(index), value))
        if value <= 0.0:
            passing = index
            stale, side = (stale + 1 if side < 0 else 0), -1
            if passing == last:
                return done(passing, None)
        else:
            failing = index
            stale, side = (stale + 1 if side > 0 else 0), 1
            if failing == first:
                return done(None, failing)
        if passing is not None and failing is not None and failing - passing == 1:
            break
        guess = _root(trail)
        if passing is None or failing is None:
            step = 1.0 + 2.0 ** max(stale - 1, 0)  # grows while nothing is bracketed
            here = trail[-1][0]
            towards = 1.0 if failing is None else -1.0
            blind = min(20.0 * abs(value) + 1e-3, 1.0) * step  # a first guess that is near is not left by far
            move = blind if guess is None or (guess - here) * towards <= 0.0 else (guess - here) * towards * 1.05
            ahead = near(here + towards * min(max(move, 1e-5), 2.0 * step))
            index = max(ahead, index + 1) if failing is None else min(ahead, index - 1)
            index = min(max(index, first), last)
            continue
        middle = (passing + failing) // 2
        widths.append(failing - passing)
        if guess is None or (len(widths) > 3 and widths[-1] > 0.5 * widths[-4]):
            # where noise misleads the estimates, halving still ends
            index = middle
            widths.clear()
            continue
        margin = 0 if stale == 0 else max(4 * margin, 1)
        # `near` rounds to the safe side; a margin then leans towards the end that has not moved
        index = near(guess) + (margin if side < 0 else -margin)
        if not passing < index < failing:
            index = passing + 1 if index <= passing else failing - 1
            if margin > 4:
                index = middle
    return done(passing, failing)


def _root(trail: list[tuple[float, float]]) -> float | None:
    """Where the line, or the inverse parabola, through the points nearest to zero crosses it."""
    usable = sorted((point for point in trail if abs(point[1]) < _FLAT), key=lambda point: abs(point[1]))
    if len(usable) < 2:
        return None
    (x0, g0), (x1, g1) = usable[:2]
    if g0 == g1:
        return None
    line = x0 - g0 * (x1 - x0) / (g1 - g0)
    if len(usable) > 2:
        x2, g2 = usable[2]
        if g2 not in (g0, g1) and abs(g2) < 0.7:
            curve = (
                x0 * g1 * g2 / ((g0 - g1) * (g0 - g2))
                + x1 * g0 * g2 / ((g1 - g0) * (g1 - g2))
                + x2 * g0 * g1 / ((g2 - g0) * (g2 - g1))
            )
            if abs(curve - line) < 0.5 * abs(x1 - x0):
                return curve
    return line
