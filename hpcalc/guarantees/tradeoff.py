"""The trade-off curve of one run, by points: how little of Q' an event of a given Q-mass can have.

For an event S let ``x = Q(S)`` and ``W(x)`` the least mass ``Q'(S)``. W is convex, ``W(x) <= x``, and
``V(u) = 1 - W(1 - u)`` is the privacy region of Kairouz, Oh and Viswanath: one minus the trade-off function of Dong,
Roth and Su. All that the exact price of a search needs are points of W, each with a line that nowhere lies above W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hpcalc.logspace import Array, Prob, log1mexp, logaddexp, logsubexp, logsumexp

_RAISE = 1e-11  # added to log delta at each node: more than the rounding of slopes and masses takes away
_ROUNDING = -30.0  # logarithm of the relative error of a mass


class Tails(NamedTuple):
    """Log-probabilities of ``L > l`` and ``L <= l`` under P and under Q, at an array of losses ``l``."""

    p_above: Array
    p_below: Array
    q_above: Array
    q_below: Array


@dataclass(eq=False)
class Tradeoff:
    """Points of W with supporting slopes, by increasing x from 0 to 1; the points are on or below W.

    The line of slope ``exp(log_slope[i])`` through point i lies nowhere above W; slopes never decrease. At the first
    point it is the slope to its right, ``-inf`` where W starts flat; at the last any from the slope to its left on.
    """

    x: Prob  # Q-mass of each event
    w: Prob  # its Q'-mass
    log_slope: Array
    attained: bool = False  # whether one pair of laws has all the points, which then make a mechanism, a lower bound

    def masses(self) -> tuple[Array, Array]:
        """Log masses of the outcomes between the points, under Q and Q', and of what Q' alone may have."""
        log_x, log_w = (distance(p.take(slice(None, -1)), p.take(slice(1, None))) for p in (self.x, self.w))
        return np.append(log_x, -math.inf), np.append(log_w, self.w.log_q[-1])

    def region(self, rank: Prob) -> Prob:
        """``V(u) = 1 - W(1-u)`` as far as the lines of the two points beside it limit it."""
        x = rank.complement()
        right = np.clip(np.searchsorted(self.x.logit, x.logit, side="left"), 1, self.log_slope.size - 1)
        (x0, w0, slope0), (x1, w1, slope1) = (
            (self.x.take(i), self.w.take(i), self.log_slope[i]) for i in (right - 1, right)
        )
        rise, fall = slope0 + distance(x0, x), np.minimum(slope1, 1e300) + distance(x, x1)  # 0 times inf is 0
        # both W and V by both lines: each has its digits where it is small, and a difference pays for its rounding
        log_w = np.maximum(logaddexp(w0.log_u, rise), logsubexp(w1.log_u, logaddexp(fall, w1.log_u + _ROUNDING)))
        log_v = np.minimum(logaddexp(logsubexp(w0.log_q, rise), w0.log_q + _ROUNDING), logaddexp(w1.log_q, fall))
        return Prob(np.clip(log_v, rank.log_u, 0.0), np.minimum(log_w, rank.log_q))


def distance(low: Prob, high: Prob) -> Array:
    """Logarithm of ``high - low``, by masses or by their complements, whichever are small."""
    return np.where(high.log_u < high.log_q, logsubexp(high.log_u, low.log_u), logsubexp(low.log_q, high.log_q))


def from_points(x: Prob, w: Prob, log_slope: Array, attained: bool = False, ends: float = math.inf) -> Tradeoff:
    """A curve through (0, 0), the points given and (1, 1); ``ends`` is the largest slope there is, as a logarithm."""
    zero, one = np.array([-math.inf]), np.array([0.0])
    x, w = (Prob(np.concatenate([zero, p.log_u, one]), np.concatenate([one, p.log_q, zero])) for p in (x, w))
    return Tradeoff(x, w, np.concatenate([[-ends], log_slope, [ends]]), attained)


#: The curve of no guarantee at all.
UNKNOWN = from_points(Prob.from_u(np.empty(0)), Prob.from_u(np.empty(0)), np.empty(0))


def from_masses(loss: Array, log_p: Array, log_q: Array, attained: bool = False) -> Tradeoff:
    """The curve of two laws P, Q on finitely many outcomes, by increasing ``loss = log(p/q)``: W is least Q-mass."""
    first = int(np.isneginf(loss).sum())  # outcomes of Q alone are part of no event of least Q-mass
    events = slice(None, first - 1 if first else None, -1)  # outcomes by decreasing likelihood ratio
    none = np.array([-math.inf])
    x, w = (
        Prob(
            np.minimum(np.append(np.logaddexp.accumulate(log_mass[::-1])[::-1], none), 0.0),
            np.minimum(np.append(none, np.logaddexp.accumulate(log_mass)), 0.0),
        ).take(events)
        for log_mass in (log_p, log_q)
    )
    slope = -loss[first:][::-1]
    return Tradeoff(x, w, np.append(slope, slope[-1:]), attained)


def least_masses(forward: tuple[Array, Array], backward: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """Losses and log masses of P and Q, the pair whose profiles are the lower convex hulls of nodes, raised by 1e-11.

    The nodes are distinct increasing ``t >= 0`` and upper bounds on ``log delta`` there, of direction 0 and of 1. A
    convex, nonincreasing H with ``H(0) = 1`` and ``H(a) >= max(0, 1 - a)`` is the hockey-stick curve of a pair of laws
    (Zhu, Dong and Wang 2022): slopes jump at the nodes, each jump is the Q-mass of one outcome. Orders below 1 are
    those of the other direction with the roles of P and Q exchanged. Their masses are computed there:
    ``1 - a (1 - delta)`` has no digits of ``delta`` left where ``a`` is small.
    """
    sides = [(t, np.minimum(np.minimum.accumulate(log_delta) + _RAISE, 0.0)) for t, log_delta in (forward, backward)]
    log_total = _least_at_one(*sides)  # total variation is the same in both directions
    (t, up_q, up_infinite), (s, down_p, down_infinite) = (_jumps(*side, log_total) for side in sides)
    none = np.array([-math.inf])
    loss = np.concatenate([none, -s[::-1], [0.0], t, -none])
    log_p = np.concatenate([none, down_p[::-1], none, up_q + t, [up_infinite]])
    log_q = np.concatenate([[down_infinite], (down_p + s)[::-1], none, up_q, none])
    # an outcome of loss 0 takes the rest of both laws
    log_p[1 + s.size] = log_q[1 + s.size] = log1mexp(min(float(max(logsumexp(log_p), logsumexp(log_q))), 0.0))
    keep = np.isfinite(log_p) | np.isfinite(log_q)
    return loss[keep], log_p[keep], log_q[keep]


def _least_at_one(*sides: tuple[Array, Array]) -> float:
    """Log of the least value at order 1 of nodes there and of chords between nodes of either direction.

    As points ``x = tanh(t/2)``, mirrored for the other direction, and ``y = x + (1 - x) delta`` both are one curve with
    straight chords from (-1, 1) to (1, 1). Tangents from either end in turn find the chord below which no node lies.
    """
    at_one = [float(log_delta[0]) for t, log_delta in sides if t[0] == 0.0]
    x, z = (np.append(np.tanh(0.5 * t[t > 0.0]), 1.0) for t, _ in sides)
    y, w = (place + (1.0 - place) * np.append(np.exp(log_delta[t > 0.0]), 1.0)
            for place, (t, log_delta) in zip((x, z), sides, strict=True))  # fmt: skip
    i, least, value = 0, math.inf, 1.0
    while value < least:
        least = value
        j = int(np.argmin((y[i] * z + w * x[i]) / (x[i] + z)))
        chords = (y * z[j] + w[j] * x) / (x + z[j])
        i = int(np.argmin(chords))
        value = float(chords[i])
    return min([math.log(least), *at_one])


def _jumps(t: Array, log_delta: Array, log_total: float) -> tuple[Array, Array, float]:
    """Corners ``t > 0`` of the hull of the nodes and ``(0, log_total)``, the logs of its slope's jumps, and the end."""
    t, log_delta = np.append(t, 2.0 * t[-1] + 1.0), np.append(log_delta, log_delta[-1])
    log_delta = np.append(log_total, np.minimum(log_delta[t > 0.0], log_total))
    t = np.append(0.0, t[t > 0.0])
    while True:
        slope = logsubexp(log_delta[:-1], log_delta[1:]) - logsubexp(t[1:], t[:-1])
        # what is above a chord is no part of the hull
        corner = np.concatenate([[True], slope[1:] < slope[:-1], [True]])
        if corner.all():
            return t[1:-1], logsubexp(slope[:-1], slope[1:]), float(log_delta[-1])
        t, log_delta = t[corner], log_delta[corner]
