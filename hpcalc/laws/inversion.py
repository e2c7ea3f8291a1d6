"""Where a function of whole numbers comes up to a value: quantiles of a law of K."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.logspace import Array

HEAD = 4096
_TIE = 1e-13  # a probability this close (relatively) to the asked one is taken to reach it
_LARGEST_RUNS = 10**300


class Inverse:
    """The least k >= 0 at which ``reach(k)``, which increases, is at least what is asked.

    ``head`` are its first :data:`HEAD` values. Looks beyond them are kept: a thousand draws need few each.
    """

    def __init__(self, head: Array, reach: Callable[[int], float]) -> None:
        self._head, self._reach = head, reach
        self._k: list[int] = []
        self._values: list[float] = []

    def _look(self, k: int) -> float:
        i = bisect_left(self._k, k)
        if i == len(self._k) or self._k[i] != k:
            self._k.insert(i, k)
            self._values.insert(i, self._reach(k))
        return self._values[i]

    def __call__(self, asked: float) -> int:
        goal = asked - _TIE
        k = int(np.searchsorted(self._head, goal))
        if k < HEAD:
            return k
        i = bisect_left(self._values, goal)
        lo, hi = self._k[i - 1] if i else HEAD - 1, self._k[i] if i < len(self._k) else 0
        bits = 1
        while not hi:  # magnitudes first, for a plan asks for quantiles of 1e170 runs
            k = min(lo << bits, _LARGEST_RUNS)
            if self._look(k) >= goal:
                hi = k
            elif k == _LARGEST_RUNS:
                raise InvalidInput("quantile", f"above {float(k):g}", "K is that large here; give a larger gamma")
            else:
                lo, bits = k, 2 * bits
        return self._between(lo, hi, goal)

    def _between(self, lo: int, hi: int, goal: float) -> int:
        """Halving of the logarithm far from the goal; near it false position with the Illinois rule."""
        below, above, kept = self._look(lo) - goal, self._look(hi) - goal, 0
        while (step := _apart(lo)) < hi - lo:
            if max(-below, above) > 10.0:
                k = math.isqrt(lo * hi)
            else:
                share = below / (below - above)
                k = lo + int(lo * math.expm1(share * math.log1p((hi - lo) / lo)))
            k = max(min(k, hi - step), lo + step)
            excess = self._look(k) - goal
            if excess >= 0.0:
                hi, above, below, kept = k, excess, below / (2.0 if kept > 0 else 1.0), 1
            else:
                lo, below, above, kept = k, excess, above / (2.0 if kept < 0 else 1.0), -1
        return hi


def _apart(k: int) -> int:
    """How far numbers are apart that the tails, logarithms with errors of 1e-14, tell from each other."""
    return 1 if k < 1 << 53 else k >> 35
