"""Compositions without a closed form, DP-SGD among them: their privacy losses are convolved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from hpcalc.guarantees.curves import CurveBase
from hpcalc.guarantees.guarantee import Guarantee, checked_orders
from hpcalc.guarantees.loss_distribution import (
    MAX_CELLS,
    LossTable,
    attained_by,
    finite_pair,
    loss_table,
    tradeoff_of,
)
from hpcalc.guarantees.loss_grid import LOG_TAIL, Cells, Source, cells, downwards, reaches, upwards
from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.logspace import Array, Prob, distinct, log1mexp, round_up

__all__ = ["Convolution", "plan_step"]

_INF = math.inf
_EPS = float(np.finfo(float).eps)
_ROOM = 1 << 18  # cells of a transform for a lower bound on a coarser grid than planned
_COARSER = (4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)

Steps: TypeAlias = "tuple[tuple[Guarantee, int], ...]"


def _sources(steps: Steps, *, shrink: float | None = None) -> list[Source]:
    """The losses of all steps.

    ``shrink`` is a grid step to which the jumps of the loss (at plus and minus the pure epsilon) are rounded down:
    Laplace and randomized response with a smaller epsilon are post-processings of those with a larger one, and a jump
    on the grid costs the downward grid nothing.
    """
    out: list[Source] = []
    for part, count in steps:
        jump = part.loss_jump
        if shrink is not None and jump > 0.0:
            jump = math.floor(jump / shrink * (1.0 + 4.0 * _EPS)) * shrink
            if jump <= 0.0:
                continue
            part = part.weakened(jump)
        out.append(Source(part.loss_tails, count, jump))
    return out


@lru_cache(maxsize=64)
def _scale_of(steps: Steps) -> float:
    """Standard deviation of the total loss, roughly: twice the Kullback-Leibler divergence is its square."""
    near_one = np.array([1.0 + 1e-4])
    return math.sqrt(2.0 * sum(count * float(part.rdp(near_one)[0]) for part, count in steps))


@lru_cache(maxsize=64)
def plan_step(steps: Steps) -> float | None:
    """Grid step of a convolution, from the parameters alone; None where it is impossible or too large to be of use.

    Moving losses to a grid adds at most ``count * step^2 / 4`` to the variance of the total loss, a 1/10000 of it at
    the first choice. Where that does not fit, six times the step is accepted, then the answer is None.
    """
    sources = _sources(steps)
    if not sources:
        return None
    scale = _scale_of(steps)
    count = sum(source.count for source in sources)
    if not 0.0 < scale < _INF:
        return None
    fine = scale / max(48.0 * math.sqrt(count), 1000.0)
    if any(source.jump > 0.0 for source in sources):  # which a round step may hit
        fine = min(fine, max(1e-4, scale / 8000.0))
    step = max(fine, 40.0 * scale / MAX_CELLS)
    known = step <= 6.0 * fine and math.isfinite(max(reaches(sources, LOG_TAIL)))
    return round_up(step, 6) if known else None


@lru_cache(maxsize=2)
def _cells(steps: Steps, step: float) -> Cells:
    # both directions ask for the same
    return cells(_sources(steps), step)


def _pair(steps: Steps) -> tuple[Array, Array] | None:
    """A finite pair of laws that a composition can be post-processed to; None if not possible or too large."""
    planned = plan_step(steps)
    if planned is None or not all(part.loss_attained for part, _ in steps):
        return None
    scale = _scale_of(steps)
    for times in (1.0, *_COARSER):
        step = times * planned
        sources = _sources(steps, shrink=step)
        if sources:
            least = math.ceil(100.0 * scale / step)
            most = min(MAX_CELLS, least if times == 1.0 else max(least, _ROOM))
            pair = finite_pair(downwards(sources, step), scale, most)
            if pair is not None:
                return pair
    return None


@dataclass(frozen=True)
class Convolution(CurveBase):
    """Several mechanisms in one run: Rényi curves add, privacy losses are convolved.

    Where a loss is not known, or a convolution would take too long or too much memory (decided from the parameters;
    :attr:`warnings` then says so), the Rényi curve answers everything. No attribute starts a convolution; what is asked
    of the profile, the region or the trade-off curve does, once.
    """

    parts: tuple[tuple[Guarantee, int], ...]

    def describe(self) -> dict[str, Any]:
        return {key: value for part, _ in self.parts for key, value in part.describe().items()}

    def loss_steps(self) -> Steps | None:
        out: dict[Guarantee, int] = {}
        for part, count in self.parts:
            steps = part.loss_steps()
            if steps is None:
                return None
            for step, uses in steps:
                out[step] = out.get(step, 0) + uses * count
        return tuple(out.items())

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        total = np.zeros(order.shape)
        uses = self.loss_steps() or self.parts
        for kind in dict.fromkeys(type(part) for part, _ in uses):
            total = total + kind.rdp_of_many([use for use in uses if type(use[0]) is kind], order)
        return total

    @cached_property
    def orders(self) -> Array | None:  # type: ignore[override]
        sets = [part.orders for part, _ in self.parts if part.orders is not None]
        if not sets:
            return None
        merged = distinct(np.concatenate(sets))
        return merged[np.isfinite(self.rdp(merged))]

    @property
    def pure_epsilon(self) -> float:
        return math.fsum(count * part.pure_epsilon for part, count in self.parts)

    @property
    def zcdp_rho(self) -> float:
        return math.fsum(count * part.zcdp_rho for part, count in self.parts)

    @property
    def has_own_pair(self) -> bool:  # type: ignore[override]
        return self.loss_steps() is not None

    @property
    def exact_profile(self) -> bool:  # type: ignore[override]
        steps = self.loss_steps()
        return steps is not None and plan_step(steps) is not None

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        if self.exact_profile or not self.has_own_pair:
            return ()
        return (
            "the privacy-loss distribution of this base would take too long or too much memory; "
            "its Rényi curve is used instead, which is valid but less tight",
        )

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return all(part.symmetric for part, _ in self.loss_steps() or ())

    @cached_property
    def tables(self) -> tuple[LossTable, LossTable] | None:
        """Profiles of both directions; None where the Rényi curve must do."""
        steps = self.loss_steps()
        step = None if steps is None else plan_step(steps)
        if steps is None or step is None:
            return None
        scale = _scale_of(steps)
        one = loss_table(lambda at: upwards(_cells(steps, at)), step, scale)
        other = one if self.symmetric else loss_table(lambda at: upwards(_cells(steps, at).reversed()), step, scale)
        return None if one is None or other is None else (one, other)

    @cached_property
    def _larger(self) -> LossTable | None:
        return None if self.tables is None else self.tables[0].larger(self.tables[1])

    def _log_profile(self, t: Array) -> Array:
        return self._with_curve(self._larger, np.asarray(t, dtype=float))

    def _with_curve(self, table: LossTable | None, t: Array) -> Array:
        if table is None:
            return super()._log_profile(t)
        out = table.log_profile(t)
        deep = (out < -60.0) | (t > table.t[-1])
        if deep.any():  # near the floor of the table the Rényi curve may be smaller
            out[deep] = np.minimum(out[deep], super()._log_profile(t[deep]))
        return out

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        t = np.asarray(t, dtype=float)
        tables = self.tables or (None, None)
        ahead, back = (self._with_curve(tables[way], np.abs(t)) for way in (direction, 1 - direction))
        return np.where(t >= 0.0, ahead, log1mexp(np.minimum(t + log1mexp(back), 0.0)))

    def region(self, rank: Prob) -> Prob:
        return super().region(rank) if self._larger is None else self._larger.region(rank)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        if self.tables is None:
            return super().tradeoff(direction)
        return tradeoff_of(self.tables[direction], self.tables[1 - direction])

    @cached_property
    def discretised_pair(self) -> tuple[Array, Array] | None:
        """A finite mechanism this base can be post-processed to, None if that is too large."""
        return _pair(self.loss_steps() or ())

    def attained_tradeoff(self, direction: int = 0) -> Tradeoff | None:
        return None if self.discretised_pair is None else attained_by(*self.discretised_pair[:: -1 if direction else 1])
