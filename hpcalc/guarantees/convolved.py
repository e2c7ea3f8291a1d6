"""Compositions without a closed form, DP-SGD among them: their privacy losses are convolved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from hpcalc.guarantees.curves import CurveBase
from hpcalc.guarantees.guarantee import Guarantee, all_orders, checked_orders
from hpcalc.guarantees.loss_distribution import MAX_CELLS, composed_losses
from hpcalc.guarantees.loss_grid import LOG_TAIL, Kinds, reaches
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.logspace import Array, Prob, Upper, log_expm1, significant, softplus

_INF = math.inf

Steps: TypeAlias = "tuple[tuple[Guarantee, int], ...]"


def _kinds(steps: Steps, *, upper: bool = True) -> tuple[list[Guarantee], Kinds]:
    """The steps to look at, and how often they are used; ``upper`` says on which side simplifications are."""
    nodes: list[Guarantee] = []
    rows: list[tuple[int, float, float]] = []
    for kind in dict.fromkeys(part.loss_kind for part, _ in steps):
        alike = [use for use in steps if use[0].loss_kind == kind]
        some, own = alike[0][0].thinned(alike, upper)
        rows += [(left + len(nodes), share, count) for left, share, count in own]
        nodes += some
    left, share, count = np.array(rows).T
    return nodes, Kinds(left.astype(int), share, count)


@dataclass(frozen=True)
class Convolution(CurveBase):
    """Several mechanisms in one run: Rényi curves add, privacy losses are convolved.

    Where a loss is not known, or a convolution would take too long or too much memory (decided from the parameters;
    :attr:`warnings` then says so), the Rényi curve answers everything. No attribute starts a convolution; what is asked
    of the profile, the region or the trade-off curve does, once.
    """

    parts: Steps

    def describe(self) -> dict[str, Any]:
        return {key: value for part, _ in self.parts for key, value in part.describe().items()}

    @cached_property
    def _steps(self) -> Steps | None:
        out: dict[Guarantee, int] = {}
        for part, count in self.parts:
            steps = part.loss_steps()
            if steps is None:
                return None
            for step, uses in steps:
                out[step] = out.get(step, 0) + uses * count
        return tuple(out.items())

    def loss_steps(self) -> Steps | None:
        return self._steps

    @cached_property
    def _upper(self) -> tuple[list[Guarantee], Kinds]:
        return _kinds(self._steps or self.parts)

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        nodes, kinds = self._upper
        finite = np.where(np.isinf(order), 2.0, order)
        curves = np.stack([node.rdp(finite) for node in nodes])
        if kinds.share.any():  # moments add: by what they exceed 1
            curves = softplus(kinds.mixed(log_expm1((finite - 1.0) * curves))) / (finite - 1.0) * (1.0 + 1e-12)
        else:
            curves = curves[kinds.left]
        return np.where(np.isinf(order), self.pure_epsilon, np.tensordot(kinds.uses, curves, 1))

    @cached_property
    def orders(self) -> Array | None:  # type: ignore[override]
        merged = all_orders(part.orders for part, _ in self.parts)
        return None if merged is None else merged[np.isfinite(self.rdp(merged))]

    @property
    def pure_epsilon(self) -> float:  # type: ignore[override]
        return math.fsum(count * part.pure_epsilon for part, count in self.parts)

    @property
    def zcdp_rho(self) -> float:  # type: ignore[override]
        return math.fsum(count * part.zcdp_rho for part, count in self.parts)

    @property
    def exact_profile(self) -> bool:  # type: ignore[override]
        return self.step is not None

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        if self.exact_profile or self._steps is None:
            return ()
        return (
            "the privacy-loss distribution of this base would take too long or too much memory; "
            "its Rényi curve is used instead, which is valid but less tight",
        )

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return all(part.symmetric for part, _ in self._steps or self.parts)

    @cached_property
    def _scale(self) -> float:
        """Standard deviation of the total loss, roughly: twice the Kullback-Leibler divergence is its square."""
        return math.sqrt(2.0 * float(self.rdp(1.0 + 1e-4))) if self._steps else 0.0

    @cached_property
    def step(self) -> float | None:
        """Grid step of a convolution, from the parameters alone; None where it is impossible or too large to be of use.

        Moving losses to a grid adds at most ``count * step^2 / 4`` to the variance of the total loss, a 1/10000 of it
        at the first choice. Where that does not fit, six times the step is accepted, then the answer is None.
        """
        scale = self._scale
        if not 0.0 < scale < _INF:
            return None
        nodes, kinds = self._upper
        fine = scale / max(48.0 * math.sqrt(kinds.total), 1000.0)
        if any(node.loss_jump > 0.0 for node in nodes):  # which a round step may hit
            fine = min(fine, max(1e-4, scale / 8000.0))
        step = max(fine, 40.0 * scale / MAX_CELLS)
        known = step <= 6.0 * fine and math.isfinite(max(reaches(nodes, kinds.total, LOG_TAIL)))
        return significant(Upper(step), 6) if known else None

    def _composed(self, *, up: bool) -> DominatingPair | None:
        steps = self._steps or ()
        if self.step is None or not (up or all(part.loss_attained for part, _ in steps)):
            return None
        uses = self._upper if up else _kinds(steps, upper=False)
        return composed_losses(*uses, self.step, self._scale, up=up, symmetric=self.symmetric)

    @cached_property
    def pair(self) -> DominatingPair | None:
        """A finite pair that dominates; None where the Rényi curve must do."""
        return self._composed(up=True)

    @cached_property
    def attained_pair(self) -> DominatingPair | None:
        """A finite mechanism this base can be post-processed to, None if that is too large."""
        return self._composed(up=False)

    def _log_profile(self, t: Array) -> Array:
        if self.pair is None:
            return super()._log_profile(t)
        return np.maximum(self.log_profile_of(0, t), self.log_profile_of(1, t))

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        t = np.asarray(t, dtype=float)
        if self.pair is None:
            return self.log_profile(t)
        log_delta = self.pair.log_profile_of(direction, t)
        end = (t >= 0.0) & ((log_delta < -60.0) | (t >= min(self.pair.core.pure_epsilon, self.pure_epsilon)))
        if end.any():  # where the pair ends the Rényi curve may be smaller
            log_delta[end] = np.minimum(log_delta[end], super()._log_profile(t[end]))
        return log_delta

    def region(self, rank: Prob) -> Prob:
        return super().region(rank) if self.pair is None else Guarantee.region(self, rank)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        return super().tradeoff(direction) if self.pair is None else self.pair.tradeoff(direction)

    def attained_tradeoff(self, direction: int = 0) -> Tradeoff | None:
        return None if self.attained_pair is None else self.attained_pair.tradeoff(direction)
