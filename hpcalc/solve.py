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
_PATIENCE = 60  # evaluations after which only halving is left


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
    slope: float | None = None,
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
    slope : float, optional
        Roughly the rise of ``log epsilon`` per unit of ``log value`` near the answer, where it is known.

    Returns
    -------
    Crossing

    Notes
    -----
    Secant steps on ``log epsilon`` against ``log value`` until the answer is bracketed; then inverse parabolas where
    the values look smooth and halving where they do not (Chandrupatla 1997), so that noise and jumps cost little. About
    eight evaluations for a smooth function.

    References
    ----------
    Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function without using
    derivatives", Advances in Engineering Software 28 (1997).

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
    while passing is None or failing is None:
        value = gap(index)
        trail.append((place(index), value))
        if value <= 0.0:
            passing = index
        else:
            failing = index
        if passing == last or failing == first:
            return done(passing, failing)
        towards = 1.0 if failing is None else -1.0
        step = 1.0 + 2.0 ** max(len(trail) - 2, 0)  # grows while nothing is bracketed
        here = trail[-1][0]
        guess = _secant(trail)
        if guess is None and slope and abs(value) < _FLAT:
            guess = here - value / abs(slope)
        if guess is not None and (guess - here) * towards > 0.0:
            # a little too far, to have the answer in between
            move = min(max((guess - here) * towards * 1.05, 1e-5), 100.0 * step)
        else:
            move = min(20.0 * abs(value) + 1e-3, 1.0) * step  # a first guess that is near is not left by far
        ahead = near(here + towards * move)
        index = min(max(max(ahead, index + 1) if failing is None else min(ahead, index - 1), first), last)
    at = [passing, failing] if trail[-1][1] <= 0.0 else [failing, passing]
    at.append(at[1])
    share: float | None = _secant_share(*(gap(i) for i in at[:2]))
    while failing - passing > 1:
        # at: the newest point, the one on the other side of the answer, the one before
        index = (passing + failing) // 2
        if share is not None and len(seen) < _PATIENCE:
            here, there = (place(i) for i in at[:2])
            index = near(here + share * (there - here))
            index = min(max(index, passing + 1), failing - 1)
        if gap(index) <= 0.0:
            passing = index
        else:
            failing = index
        at = [index, at[1], at[0]] if at[0] not in (passing, failing) else [index, at[0], at[1]]
        share = _parabola_share([place(i) for i in at], [gap(i) for i in at])
    return done(passing, failing)


def _secant(trail: list[tuple[float, float]]) -> float | None:
    """Where the line through the two points nearest to zero crosses it."""
    usable = sorted((point for point in trail if abs(point[1]) < _FLAT), key=lambda point: abs(point[1]))
    if len(usable) < 2 or usable[0][1] == usable[1][1]:
        return None
    (x0, g0), (x1, g1) = usable[:2]
    return x0 - g0 * (x1 - x0) / (g1 - g0)


def _secant_share(g1: float, g2: float) -> float | None:
    """Share of the way from point 1 to point 2 at which their line crosses zero."""
    return None if _FLAT in (abs(g1), abs(g2)) else g1 / (g1 - g2)


def _parabola_share(x: list[float], g: list[float]) -> float | None:
    """The same for the inverse parabola through three points; None where it is not to be trusted."""
    (x1, x2, x3), (g1, g2, g3) = x, g
    if _FLAT in (abs(g1), abs(g2), abs(g3)) or g3 in (g1, g2) or x3 == x2:
        return None
    place, level = (x1 - x2) / (x3 - x2), (g1 - g2) / (g3 - g2)
    if not (0.0 <= place <= 1.0 and 1.0 - math.sqrt(1.0 - place) < level < math.sqrt(place)):
        return None
    return g1 / (g2 - g1) * g3 / (g2 - g3) + (x3 - x1) / (x2 - x1) * g1 / (g3 - g1) * g2 / (g3 - g2)
