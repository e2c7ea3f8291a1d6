"""Guarantees whose privacy losses are convolved: compositions without a closed form, DP-SGD among them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
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
from hpcalc.guarantees.loss_grid import LOG_TAIL, Cells, Losses, Source, cells, downwards, reaches, upwards
from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.logspace import Array, Prob, log1mexp, round_up

__all__ = ["Convolution", "ConvolvedBase", "fits", "plan_step"]

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


def fits(steps: Steps | None) -> bool:
    """Whether the losses are known and few enough to be convolved; decided from the parameters."""
    return steps is not None and plan_step(steps) is not None


@lru_cache(maxsize=2)
def _cells(steps: Steps, step: float) -> Cells:
    # both directions ask for the same
    return cells(_sources(steps), step)


def _table(steps: Steps, direction: int, exponents: tuple[float, ...] | None = None, rise: float = 1.0) -> Any:
    step = plan_step(steps)
    if step is None:
        return None

    def losses(at: float) -> Losses:
        known = _cells(steps, at)
        return upwards(known.reversed() if direction else known)

    more = () if exponents is None else (exponents,)
    return loss_table(losses, rise * step, _scale_of(steps), *more)


def _symmetric(steps: Steps) -> bool:
    return all(part.symmetric for part, _ in steps)


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


class ConvolvedBase(CurveBase):
    """A base whose profile and region come from a convolved loss distribution, its Rényi curve from summation.

    Where the convolution would take too long or too much memory (decided from the parameters) the Rényi curve
    answers everything, and :attr:`warnings` says so. No attribute starts a convolution; what is asked of the profile,
    the region or the trade-off curve does, once.
    """

    has_own_pair = True

    @abstractmethod
    def loss_steps(self) -> Steps | None:
        """The mechanisms to convolve, each with its number of uses."""

    @cached_property
    def _convolved(self) -> list[Any]:
        """What was convolved so far: the tables of both directions, the larger of them, the finite pair."""
        return [None, None, None, None]

    def table(self, direction: int | None = None) -> LossTable | None:
        """Convolve (once): the profile of one direction, or the larger of both; None where the Rényi curve must do."""
        steps = self.loss_steps()
        if steps is None or not fits(steps):
            return None
        known = self._convolved
        for way in (0, 1) if direction is None else (direction,):
            if known[way] is None:
                twin = known[1 - way] if _symmetric(steps) else None
                known[way] = twin or _table(steps, way)
        if direction is not None:
            return known[direction]  # type: ignore[no-any-return]
        if known[2] is None and known[0] is not None and known[1] is not None:
            known[2] = known[0].larger(known[1])
        return known[2]  # type: ignore[no-any-return]

    @property
    def exact_profile(self) -> bool:  # type: ignore[override]
        return fits(self.loss_steps())

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        if self.pure_epsilon == 0.0 or not self.finite or self.exact_profile:
            return ()
        return (
            "the privacy-loss distribution of this base would take too long or too much memory; "
            "its Rényi curve is used instead, which is valid but less tight",
        )

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        steps = self.loss_steps()
        return steps is None or _symmetric(steps)

    def _log_profile(self, t: Array) -> Array:
        return self._with_curve(self.table(), np.asarray(t, dtype=float))

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
        out = np.empty(t.shape)
        ahead = t >= 0.0
        if ahead.any():
            out[ahead] = self._with_curve(self.table(direction), t[ahead])
        if not ahead.all():
            other = self._with_curve(self.table(1 - direction), -t[~ahead])
            out[~ahead] = log1mexp(np.minimum(t[~ahead] + log1mexp(other), 0.0))
        return out

    def region(self, rank: Prob) -> Prob:
        table = self.table()
        return super().region(rank) if table is None else table.region(rank)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        one, other = self.table(direction), self.table(1 - direction)
        return super().tradeoff(direction) if one is None or other is None else tradeoff_of(one, other)

    def attained_tradeoff(self, direction: int = 0) -> Tradeoff | None:
        pair = self.discretised_pair()
        return None if pair is None else attained_by(*pair[:: -1 if direction else 1])

    def repeated_profile(self, count: int, log_delta: float) -> Callable[[Array], Array] | None:
        steps = tuple((part, count * uses) for part, uses in self.loss_steps() or ())
        tables = [
            _table(steps, way, (max(-log_delta, 1.0),), rise=2.0) for way in ((0,) if _symmetric(steps) else (0, 1))
        ]
        if any(table is None for table in tables):
            return None
        whole: LossTable = tables[0].larger(tables[-1])
        return whole.log_profile

    def discretised_pair(self) -> tuple[Array, Array] | None:
        """A finite mechanism this base can be post-processed to, None if that is too large."""
        if self._convolved[3] is None:
            self._convolved[3] = _pair(self.loss_steps() or ()) or ()
        return self._convolved[3] or None


class SumOfParts(Guarantee):
    """Parts whose Rényi curves, pure epsilons and zCDP parameters add.

    Attributes
    ----------
    parts : tuple of (Guarantee, int)
        Each part with its number of uses.
    """

    parts: tuple[tuple[Guarantee, int], ...]

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        total = np.zeros(order.shape)
        for kind in dict.fromkeys(type(part) for part, _ in self.parts):
            total = total + kind.rdp_of_many([use for use in self.parts if type(use[0]) is kind], order)
        return total

    @property
    def pure_epsilon(self) -> float:
        return math.fsum(count * part.pure_epsilon for part, count in self.parts)

    @property
    def zcdp_rho(self) -> float:
        return math.fsum(count * part.zcdp_rho for part, count in self.parts)


@dataclass(frozen=True)
class Convolution(SumOfParts, ConvolvedBase):
    """Several mechanisms in one run, composed by convolving their privacy losses.

    Parameters
    ----------
    parts : tuple of (Guarantee, int)
        Gaussian, Laplace, pure or DP-SGD parts, each with its number of uses.
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
