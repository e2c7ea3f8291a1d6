"""Root finding, all of it: the last printable value that passes, the least value that passes, the least of a function.

A solver returns a value that passes, never the middle of a bracket. A plan's answer is printed with six significant
digits, so only such numbers are tried, counted off in order, until two neighbours are found of which one passes and the
next does not.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from hpcalc.logspace import Array, Lower, Upper, significant

T = TypeVar("T")
_PATIENCE = 40  # evaluations after which only halving is left: a knob of speed


@dataclass(eq=False)
class Grid:
    """Numbers of ``digits`` significant digits (0: whole numbers) > 0, counted off from the safest to the boldest."""

    safest: float
    boldest: float
    digits: int = 6

    def __post_init__(self) -> None:
        self.sign = 1 if self.boldest >= self.safest else -1  # 1 where larger numbers are bolder
        first, self.last = self.index(self.safest), self.index(self.boldest)  # positions of the ends
        self.first = first if self.value(first) == self.safest else first + 1

    def value(self, index: int) -> float:
        """The number at a position; larger positions are bolder."""
        if self.digits == 0:
            return float(self.sign * index)
        least = int(10 ** (self.digits - 1))  # the least mantissa
        exponent, rest = divmod(self.sign * index, 9 * least)
        return float(f"{rest + least}e{exponent - self.digits + 1}")

    def index(self, x: float) -> int:
        """Position of the boldest printable number not bolder than ``x``."""
        if self.digits == 0:
            return math.floor(self.sign * x)
        safe, least = Lower(x) if self.sign > 0 else Upper(x), int(10 ** (self.digits - 1))
        # through the decimal text: logarithms are not exact at powers of ten
        mantissa, _, exponent = f"{significant(safe, self.digits):.{self.digits - 1}e}".partition("e")
        return self.sign * (int(exponent) * 9 * least + round(float(mantissa) * least) - least)


@dataclass(eq=False)
class Crossing(Generic[T]):
    """The boldest printable number that passes, and the next, which fails, each with its answer, or None."""

    value: float | None
    answer: T | None
    beyond: float | None
    refused: T | None


def last_passing(function: Callable[[float], tuple[float, T]], target: float, grid: Grid, start: float) -> Crossing[T]:
    """The boldest number of a grid at which the first of ``function``'s two answers stays at or below ``target`` > 0.

    It rises towards bolder numbers, up to small noise. Secant steps on its logarithm against that of the number, from
    ``start`` on, bracket the answer, and :func:`neighbours` settles it.
    """
    first, last, sign = grid.first, grid.last, grid.sign
    answers: dict[int, tuple[float, T]] = {}

    def excess(index: int) -> float:
        """``log(epsilon / target)``, above 0 exactly where the number fails; infinite where there is no logarithm."""
        if index not in answers:
            answers[index] = function(grid.value(index))
        value = answers[index][0]
        passes, ratio = value <= target, value / target  # NaN fails
        size = math.log(ratio) if 0.0 < ratio < math.inf else -math.inf if passes else math.inf
        return min(size, 0.0) if passes else max(size, 1e-300)

    def place(index: int) -> float:
        return sign * math.log(grid.value(index))

    def position(x: float) -> int:
        return min(max(grid.index(math.exp(min(max(sign * x, -708.0), 708.0))), first), last)

    # the boldest that passed and the safest that failed; at first beyond the ends, which are not asked
    low, high, index = first - 1, last + 1, min(max(grid.index(start), first), last)
    while low < index < high and (low < first or high > last):
        low, high = (index, high) if excess(index) <= 0.0 else (low, index)
        towards = 1.0 if high > last else -1.0
        ahead = position(_next_place([(place(i), excess(i)) for i in answers], towards))
        index = max(ahead, low + 1) if high > last else min(ahead, high - 1)
    if first <= low and high <= last:
        low, high = neighbours(
            excess, low, high, lambda low, high, share: position(place(low) + share * (place(high) - place(low)))
        )
    found = [(grid.value(i), answers[i][1]) if i in answers else (None, None) for i in (low, high)]
    return Crossing(*found[0], *found[1])


def _next_place(trail: list[tuple[float, float]], towards: float) -> float:
    """Where to look next while nothing brackets the answer: a little beyond where the secant crosses zero."""
    here, size = trail[-1]
    widest = 1.0 + 2.0 ** max(len(trail) - 2, 0)
    usable = sorted((point for point in trail if math.isfinite(point[1])), key=lambda point: abs(point[1]))
    if len(usable) > 1 and usable[0][1] != usable[1][1]:
        (x0, g0), (x1, g1) = usable[:2]
        reach = (x0 - g0 * (x1 - x0) / (g1 - g0) - here) * towards
        if reach > 0.0:
            return here + towards * min(max(1.05 * reach, 1e-5), 100.0 * widest)
    return here + towards * min(20.0 * abs(size) + 1e-5, 1.0) * widest  # a first guess that is close is not left by far


def neighbours(
    excess: Callable[[int], float], low: int, high: int, between: Callable[[int, int, float], int]
) -> tuple[int, int]:
    """The last place that passes, with an excess <= 0, and the first that fails; beyond 2^53, to ten digits.

    False position with the Illinois rule (Dowell and Jarratt, BIT 11, 1971), ``between`` being the place at a share of
    the way; plain halving where an end is infinite or where it takes too long, so that noise and jumps cost little.
    """
    below, above, kept, looks = excess(low), excess(high), 0, 0
    while (least := 1 if low < 1 << 53 else low >> 35) < high - low:
        share = below / (below - above) if math.isfinite(below - above) and looks < _PATIENCE else 0.5
        index = min(max(between(low, high, share), low + least), high - least)
        size, looks = excess(index), looks + 1
        if size <= 0.0:
            low, below, above, kept = index, size, above / (2.0 if kept > 0 else 1.0), 1
        else:
            high, above, below, kept = index, size, below / (2.0 if kept < 0 else 1.0), -1
    return low, high


def first_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Smallest whole number in [low, high] that holds, given that ``high`` does and that holding is monotone."""
    return low + bisect_left(range(low, high), True, key=holds)


def least_passing(passes: Callable[[float], bool], first: float, top: float, accuracy: float = 1e-12) -> float:
    """The least number > 0 that passes, but for a relative ``accuracy``, by doubling from a first guess.

    Whatever lies above a number that passes does too; inf where none up to ``top`` does.
    """
    low, high = 0.0, first
    while not passes(high):
        low, high = high, 2.0 * high
        if high > top:
            return math.inf
    while high - low > accuracy * high and low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def log_minimum(
    curve: Callable[[Array], Array], x: Array, accuracy: float, reach: tuple[float, float] | None = None, parts: int = 4
) -> tuple[float, float]:
    """Where a function is least, and its value there (inf where every one is), by a grid that narrows around it.

    It starts from evenly spaced ``x`` and may move within ``reach`` while the least value lies at its end; each grid is
    ``parts`` times narrower than the one before, down to steps of ``accuracy``.
    """
    low, high = reach or (float(x[0]), float(x[-1]))
    step, place, best, moving = float(x[1] - x[0]), float(x[0]), math.inf, True
    while True:
        found, width = curve(x), float(x[-1] - x[0])
        top = int(np.argmin(found))
        better = float(found[top]) < best
        if better:
            place, best = float(x[top]), float(found[top])
        room = low - float(x[0]) if top == 0 else high - float(x[-1]) if top == x.size - 1 else 0.0
        if moving and better and room != 0.0:
            x = x + min(max(room, -width), width)
        elif step < accuracy or best == math.inf:
            return place, best
        else:
            moving, step = False, step / parts
            x = place + np.arange(-parts, parts + 1.0) * step
            x = x[(x >= low) & (x <= high)]
