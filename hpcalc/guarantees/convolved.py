"""Compositions without a closed form, DP-SGD among them: their privacy losses are convolved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from hpcalc.guarantees.curves import CurveBase
from hpcalc.guarantees.guarantee import Guarantee, checked_orders
from hpcalc.guarantees.loss_distribution import MAX_CELLS, LossTable, finite_pair, loss_table
from hpcalc.guarantees.loss_grid import LOG_TAIL, Kinds, Losses, downwards, reaches, upwards
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.tradeoff import Tradeoff, from_masses, least_masses
from hpcalc.logspace import Array, Prob, distinct, log1mexp, log_expm1, round_up, softplus

__all__ = ["Convolution", "plan_step"]

_INF = math.inf
_EPS = float(np.finfo(float).eps)
_ROOM = 1 << 18  # cells of a transform for a lower bound on a coarser grid than planned
_COARSER = (4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)

Steps: TypeAlias = "tuple[tuple[Guarantee, int], ...]"


def _kinds(steps: Steps, *, upper: bool = True) -> tuple[list[Guarantee], Kinds]:
    """The steps to look at, and how often they are used; ``upper`` says on which side simplifications are."""
    nodes: list[Guarantee] = []
    kinds = Kinds.apart([])
    for kind in dict.fromkeys(type(part) for part, _ in steps):
        some, own = kind.thinned([use for use in steps if type(use[0]) is kind], upper)
        kinds = kinds.joined(own, len(nodes))
        nodes += some
    return nodes, kinds


def _summed_rdp(steps: Steps, order: Array) -> Array:
    nodes, kinds = _kinds(steps)
    h = np.where(np.isinf(order), 1.0, order - 1.0)
    curves = np.stack([node.rdp(order) for node in nodes])
    mixed = kinds.share > 0.0
    out = np.tensordot(kinds.count[~mixed], curves[kinds.left[~mixed]], 1)
    if mixed.any():  # moments add: by what they exceed 1
        moments = softplus(kinds.take(mixed).mixed(log_expm1(h * np.where(np.isinf(order), 0.0, curves))))
        out = out + np.where(np.isinf(order), _INF, np.tensordot(kinds.count[mixed], moments, 1) / h * (1.0 + 1e-12))
    return np.asarray(out, dtype=float)


@lru_cache(maxsize=64)
def _scale_of(steps: Steps) -> float:
    """Standard deviation of the total loss, roughly: twice the Kullback-Leibler divergence is its square."""
    return math.sqrt(2.0 * float(_summed_rdp(steps, np.array([1.0 + 1e-4]))[0]))


@lru_cache(maxsize=64)
def plan_step(steps: Steps) -> float | None:
    """Grid step of a convolution, from the parameters alone; None where it is impossible or too large to be of use.

    Moving losses to a grid adds at most ``count * step^2 / 4`` to the variance of the total loss, a 1/10000 of it at
    the first choice. Where that does not fit, six times the step is accepted, then the answer is None.
    """
    scale = _scale_of(steps) if steps else 0.0
    if not 0.0 < scale < _INF:
        return None
    nodes, kinds = _kinds(steps)
    fine = scale / max(48.0 * math.sqrt(kinds.total), 1000.0)
    if any(node.loss_jump > 0.0 for node in nodes):  # which a round step may hit
        fine = min(fine, max(1e-4, scale / 8000.0))
    step = max(fine, 40.0 * scale / MAX_CELLS)
    known = step <= 6.0 * fine and math.isfinite(max(reaches(nodes, kinds.total, LOG_TAIL)))
    return round_up(step, 6) if known else None


@lru_cache(maxsize=2)
def _upwards(steps: Steps, step: float) -> Losses:
    # both directions ask for the same
    nodes, kinds = _kinds(steps)
    return upwards(nodes, kinds, step)


def _pair(steps: Steps) -> DominatingPair | None:
    """A finite pair of laws that a composition can be post-processed to; None if not possible or too large."""
    planned = plan_step(steps)
    if planned is None or not all(part.loss_attained for part, _ in steps):
        return None
    scale = _scale_of(steps)
    for times in (1.0, *_COARSER):
        step = times * planned
        # Laplace and randomized response with a smaller epsilon are post-processings of those with a larger one, and a
        # jump on the grid costs the downward grid nothing
        jumps = [math.floor(part.loss_jump / step * (1.0 + 4.0 * _EPS)) * step for part, _ in steps]
        uses = [
            (part.weakened(jump) if part.loss_jump > 0.0 else part, count)
            for (part, count), jump in zip(steps, jumps, strict=True)
            if jump > 0.0 or part.loss_jump == 0.0
        ]
        if uses:
            nodes, kinds = _kinds(tuple(uses), upper=False)
            least = math.ceil(100.0 * scale / step)
            most = min(MAX_CELLS, least if times == 1.0 else max(least, _ROOM))
            pair = finite_pair(downwards(nodes, kinds, step), scale, most)
            if pair is not None:
                return DominatingPair.from_masses(*pair, attained=True)
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
        return _summed_rdp(self.loss_steps() or self.parts, checked_orders(orders))

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
        one = other = loss_table(lambda at: _upwards(steps, at), step, scale)
        if not self.symmetric:
            other = loss_table(lambda at: _upwards(steps, at).reversed(), step, scale)
        return None if one is None or other is None else (one, other)

    def _log_profile(self, t: Array) -> Array:
        directions = dict.fromkeys(self.tables or (None,))
        return np.asarray(np.max([self._with_curve(table, t) for table in directions], axis=0), dtype=float)

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
        return super().region(rank) if self.tables is None else Guarantee.region(self, rank)

    @cached_property
    def _curves(self) -> list[Tradeoff]:
        ends = [table.lines() for table in self.tables or ()]
        return [from_masses(*least_masses(one, other)) for one, other in zip(ends, ends[::-1], strict=True)]

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        return self._curves[direction] if self.tables is not None else super().tradeoff(direction)

    @cached_property
    def attained_pair(self) -> DominatingPair | None:
        """A finite mechanism this base can be post-processed to, None if that is too large."""
        return _pair(self.loss_steps() or ())

    def attained_tradeoff(self, direction: int = 0) -> Tradeoff | None:
        return None if self.attained_pair is None else self.attained_pair.tradeoff(direction)
