"""Quantiles of a law of K: a table of the first 4096 probabilities, and beyond it Newton's method on the tails."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Protocol

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.logspace import Array

HEAD = 4096
_TIE = 1e-13  # a cumulative probability this close (relatively) to the asked one is taken to reach it
_LARGEST_RUNS = 10**300


class Tails(Protocol):
    """What is asked of a law of K."""

    def log_pmf(self, k: Array) -> Array:
        """``log P[K = k]``."""

    def log_sf(self, k: int) -> float:
        """``log P[K > k]``."""

    def log_cdf(self, k: int) -> float:
        """``log P[K <= k]``."""


class Inverse:
    """The smallest k at which ``P[K <= k]`` comes up, or (``upper``) ``P[K > k]`` down, to what is asked."""

    def __init__(self, law: Tails, *, upper: bool) -> None:
        self._law, self._upper = law, upper
        p = np.exp(law.log_pmf(np.arange(float(HEAD))))
        above = np.cumsum(np.append(p[1:], math.exp(law.log_sf(HEAD - 1)))[::-1])[::-1]
        self._table = -above if upper else np.cumsum(p)
        # tails looked at beyond the table, as functions that increase with k: a thousand draws need few looks each
        self._k: list[int] = []
        self._reach: list[float] = []

    def _look(self, k: int) -> float:
        """``-log P[K > k]`` or ``log P[K <= k]``."""
        i = bisect_left(self._k, k)
        if i == len(self._k) or self._k[i] != k:
            self._k.insert(i, k)
            self._reach.insert(i, -self._law.log_sf(k) if self._upper else self._law.log_cdf(k))
        return self._reach[i]

    def _step(self, k: int, missing: float, least: int) -> int:
        """Newton's step in log k from a look that is short by ``missing``; -1 where there is no slope."""
        log_tail = -self._look(k) if self._upper else self._look(k)
        log_slope = math.log(k) + float(self._law.log_pmf(np.array(float(k)))) - log_tail
        if not math.isfinite(missing + log_slope):
            return -1
        far = math.copysign(min(math.exp(min(math.log(abs(missing) + 1e-300) - log_slope, 700.0)), 30.0), missing)
        jump = int(k * math.expm1(far))
        return k + (max(jump + 1, least) if missing > 0.0 else min(jump, -least))

    def __call__(self, log_tail: float) -> int:
        """Smallest k with ``P[K > k] <= tail`` (upper) or ``P[K <= k] >= tail``."""
        limit = log_tail + (_TIE if self._upper else -_TIE)
        k = int(np.searchsorted(self._table, -math.exp(limit) if self._upper else math.exp(limit)))
        if k < HEAD:
            return k
        goal = -limit if self._upper else limit
        i = bisect_left(self._reach, goal)
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
        least = _apart(lo)
        while hi - lo > _apart(lo):
            near = min(lo, hi, key=lambda k: abs(goal - self._look(k)))
            k = self._step(near, goal - self._look(near), least)
            if not lo < k < hi:
                k = math.isqrt(lo * hi) if hi > 4 * lo else (lo + hi) // 2
            lo, hi = (lo, k) if self._look(k) >= goal else (k, hi)
            least *= 2  # steps that stay on one side end in halvings
        return hi


def _apart(k: int) -> int:
    """How far numbers are apart that the tails, logarithms with errors of 1e-14, tell from each other."""
    return 1 if k < 1 << 53 else k >> 35
