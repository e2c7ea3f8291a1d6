"""What a Rényi curve demands of a mechanism of few outcomes."""

from __future__ import annotations

import math

import numpy as np

from hpcalc.guarantees import Guarantee
from hpcalc.logspace import Array

__all__ = ["Constraints"]


class Constraints:
    """What a Rényi curve demands of a pair, at every order it speaks of.

    Between two orders a pair's moment ``(a-1) D_a`` is below its chord (it is convex in a), and the curve's own falls
    below its chord by a fraction of about ``(step / 2)^2``: where a pair comes near the curve the cell is split until
    that is far below the margin.
    """

    _MARGIN = 1e-6
    _NEAR = 2e-4

    def __init__(self, base: Guarantee) -> None:
        self._rdp = base.rdp
        self._continuous = base.orders is None
        if base.orders is not None:
            orders = base.orders[np.isfinite(base.orders)]
        else:
            top = math.log(1e8)
            while float(base.rdp(np.array([math.exp(top)]))[0]) < 50.0 and top < 40.0:
                top += 4.0  # a large budget at the last order leaves nothing to check beyond
            orders = 1.0 + np.exp(np.arange(math.log(1e-6), top, 0.01))
        rdp = base.rdp(orders)
        self.orders = orders[np.isfinite(rdp)]
        self.budget = self._budget(self.orders)
        self.largest_loss = base.pure_epsilon
        if self._continuous and base.pure_epsilon == math.inf and self.orders.size:
            self.largest_loss = float(base.rdp(self.orders[-1:])[0])

    def _budget(self, orders: Array) -> Array:
        return np.asarray((orders - 1.0) * self._rdp(orders) * (1.0 - self._MARGIN), dtype=float)

    def excess(self, log_q: Array, log_p: Array) -> tuple[float, float]:
        """Largest excess of ``(a-1) D_a(Q || P)`` over the budget, and its derivative in ``-log_p[1]`` there."""
        loss = float(np.max(log_q - log_p)) - self.largest_loss * (1.0 - self._MARGIN)
        if loss > 0.0:
            return loss, 1.0
        value, slope = _moment_excess(self.orders, self.budget, log_q, log_p)
        if self._continuous and np.max(value) <= 0.0:
            near = value > -self._NEAR * self.budget
            cells = np.flatnonzero(near[1:] | near[:-1])
            if cells.size:
                x = np.log(self.orders - 1.0)
                inner = x[cells] + (x[cells + 1] - x[cells]) * np.linspace(0.0, 1.0, 25)[1:-1, None]
                orders = 1.0 + np.exp(inner.ravel())
                more, more_slope = _moment_excess(orders, self._budget(orders), log_q, log_p)
                value, slope = np.concatenate([value, more]), np.concatenate([slope, more_slope])
        top = int(np.argmax(value))
        return float(value[top]), float(slope[top])


def _moment_excess(orders: Array, budget: Array, log_q: Array, log_p: Array) -> tuple[Array, Array]:
    """Per order ``log sum q^a p^(1-a) - budget``, and what it loses per unit of ``log p`` of the second outcome."""
    h = orders - 1.0
    losses = h * (log_q - log_p)[:, None]
    terms = log_q[:, None] + losses
    top = np.max(terms, axis=0)
    with np.errstate(under="ignore"):
        moment = top + np.log(np.sum(np.exp(terms - top), axis=0))
        share = np.exp(terms[1] - moment)
        # close to 0 the outcomes are kept apart from 1 to spare cancellation
        near = np.max(losses, axis=0) < 0.5
        if near.any():
            moment[near] = np.log1p(np.exp(log_q) @ np.expm1(losses[:, near]))
    return moment - budget, h * share
