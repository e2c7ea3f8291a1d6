"""A dominating pair of finitely many outcomes, as a guarantee like any other.

A pair (P, Q) dominates a mechanism when no hockey-stick divergence of the mechanism's output laws exceeds the pair's at
the same order, whatever the order. Dominating pairs compose, adaptively too, and mix, so whatever is known of a
mechanism, a search or the answer of a search may be carried on as one (Y. Zhu, J. Dong, Y.-X. Wang, "Optimal accounting
of differential privacy via characteristic function", AISTATS 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.guarantees.guarantee import Guarantee, checked_orders, mirrored
from hpcalc.guarantees.mechanisms import PureDP
from hpcalc.guarantees.tradeoff import Tails, Tradeoff, from_masses
from hpcalc.logspace import Array, logsubexp, logsumexp

_INF = math.inf
_NEAR_ONE = 1e-4  # below order 1 + this the divergence of the order above is given: it does not fall with the order
_MARGIN = 4e-14  # covers the rounding of a moment's logarithm, times its order


@dataclass(eq=False)
class DominatingPair(Guarantee):
    """A pair of laws (P, Q) with finitely many outcomes that dominates one run; direction 1 is (Q, P).

    ``loss`` is ``log(p/q)`` of each outcome, nondecreasing: ``-inf`` where only Q, ``inf`` where only P has mass. Where
    the laws are a real mechanism's (``attained``) the pair also gives lower bounds.

    >>> response = DominatingPair.from_masses(np.log([0.25, 0.75]), np.log([0.75, 0.25]))
    >>> round(float(np.exp(response.log_profile(0.0))), 6), round(response.pure_epsilon, 6)
    (0.5, 1.098612)
    """

    loss: Array
    log_p: Array
    log_q: Array
    attained: bool = False

    def __post_init__(self) -> None:
        for log_mass in (self.log_p, self.log_q):
            if not abs(math.expm1(float(logsumexp(log_mass)))) < 1e-6:
                raise InvalidInput("pair", float(np.exp(logsumexp(log_mass))), "the masses of each law must sum to 1")

    @classmethod
    def from_masses(cls, log_p: Array, log_q: Array, attained: bool = False) -> DominatingPair:
        """From the masses of outcomes in any order."""
        keep = np.isfinite(log_p) | np.isfinite(log_q)
        log_p, log_q = log_p[keep], log_q[keep]
        order = np.argsort(log_p - log_q, kind="stable")
        return cls((log_p - log_q)[order], log_p[order], log_q[order], attained)

    def describe(self) -> dict[str, Any]:
        return {}

    def reversed(self) -> DominatingPair:
        """The pair (Q, P)."""
        return DominatingPair(-self.loss[::-1], self.log_q[::-1], self.log_p[::-1], self.attained)

    @cached_property
    def symmetric(self) -> bool:  # type: ignore[override]
        back = slice(None, None, -1)
        return np.array_equal(self.loss, -self.loss[back]) and np.array_equal(self.log_p, self.log_q[back])

    @property
    def loss_attained(self) -> bool:  # type: ignore[override]
        return self.attained

    @cached_property
    def _profiles(self) -> list[tuple[Array, Array, Array, Array, Array]]:
        """Both profiles, ``exp(top) (end + rise (1 - e^(t - breakpoint)))`` before each breakpoint."""
        out = []
        for one in (self, self.reversed()):
            t, log_slope, log_delta = breakpoints(one.loss, one.log_p, one.log_q)
            top = np.maximum(np.maximum(log_delta, log_slope + t), -1e300)
            out.append((t, log_delta, top, np.exp(log_delta - top), np.exp(log_slope + t - top)))
        return out

    @cached_property
    def _curves(self) -> tuple[Tradeoff, ...]:
        return tuple(from_masses(one.loss, one.log_p, one.log_q, one.attained) for one in (self, self.reversed()))

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        """Log hockey-stick divergence of order ``e^t`` of (P, Q), or of (Q, P) where ``direction`` is 1, at any t."""
        t = np.asarray(t, dtype=float)
        out, low = np.empty(t.shape), t < 0.0
        out[~low] = self._at(direction, t[~low])
        out[low] = mirrored(t[low], self._at(1 - direction, -t[low]))
        return out

    def _at(self, direction: int, t: Array) -> Array:
        """The profile at ``t >= 0``."""
        points, log_delta, top, end, rise = self._profiles[direction]
        right = np.minimum(np.searchsorted(points, t, side="left"), points.size - 1)
        gap = -np.expm1(np.minimum(t - points[right], 0.0))
        with np.errstate(divide="ignore"):
            out = top[right] + np.log(end[right] + rise[right] * gap)
        return np.asarray(np.minimum(np.maximum(out, log_delta[right]), 0.0), dtype=float)

    def _log_profile(self, t: Array) -> Array:
        return np.maximum(self.log_profile_of(0, t), self.log_profile_of(1, t))

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        if self.pure_epsilon == _INF:
            return np.full(order.shape, _INF)
        h = np.maximum(np.minimum(order, 1e15) - 1.0, _NEAR_ONE)
        sides = ((self.loss, self.log_p), (-self.loss, self.log_q))
        moment = np.max([logsumexp(log_p + h[..., None] * loss) for loss, log_p in sides], axis=0)
        out = np.maximum((moment + _MARGIN * (1.0 + h)) / h, 0.0)
        return np.where(np.isinf(order), self.pure_epsilon, np.minimum(out, self.pure_epsilon))

    @cached_property
    def _split(self) -> tuple[float, DominatingPair]:
        infinite = [logsumexp(np.append(x[np.isinf(self.loss)], -_INF)) for x in (self.log_p, self.log_q)]
        slack = math.exp(float(max(infinite)))
        if slack == 0.0 or slack >= 1.0:
            return slack, self
        # the law that gives less away by infinite losses may give away as much: splitting outcomes dominates
        finite = np.isfinite(self.loss)
        log_p, log_q = (x[finite] - logsumexp(x[finite]) for x in (self.log_p, self.log_q))
        return slack, DominatingPair(log_p - log_q, log_p, log_q, self.attained and bool(infinite[0] == infinite[1]))

    @property
    def slack(self) -> float:  # type: ignore[override]
        return self._split[0]

    @property
    def core(self) -> DominatingPair:
        """The pair given that no loss is infinite."""
        return self._split[1]

    @cached_property
    def pure_epsilon(self) -> float:  # type: ignore[override]
        return float(np.max(np.abs(self.loss), initial=0.0))

    @property
    def zcdp_rho(self) -> float:  # type: ignore[override]
        return PureDP(self.pure_epsilon).zcdp_rho

    def tradeoff(self, direction: int = 0) -> Tradeoff:
        """The curve W of (P, Q), or of (Q, P) where ``direction`` is 1: outcomes by decreasing likelihood ratio."""
        return self._curves[direction]

    def loss_tails(self, loss: Array) -> Tails:
        above = self.loss.size - np.searchsorted(self.loss, np.asarray(loss, dtype=float), side="right")
        curve = self.tradeoff()
        return Tails(*curve.x.take(above), *curve.w.take(above))


def breakpoints(loss: Array, log_p: Array, log_q: Array) -> tuple[Array, Array, Array]:
    """Where the profile of (P, Q) has corners at ``t >= 0``, its log slope before each, and its logarithm there.

    In ``e^t`` it is linear between them: each value is that at the next breakpoint plus a positive term, the gap times
    the Q-mass of the losses from there on.
    """
    inside = np.isfinite(loss) & (loss > 0.0)
    t = np.concatenate([[0.0], loss[inside]])
    log_slope = np.logaddexp.accumulate(np.concatenate([[-_INF], log_q[inside]])[::-1])[::-1]
    falls = log_slope[1:] + logsubexp(t[1:], t[:-1])
    infinite = logsumexp(np.concatenate([[-_INF], log_p[np.isposinf(loss)]]))
    return t, log_slope, np.logaddexp.accumulate(np.concatenate([[infinite], falls[::-1]]))[::-1]
