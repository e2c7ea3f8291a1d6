"""The trade-off curve of one run, by points: how little of Q' an event of a given Q-mass can have.

For an event S let ``x = Q(S)`` and ``W(x)`` the least mass ``Q'(S)``. W is convex, ``W(x) <= x``, and
``V(u) = 1 - W(1 - u)`` is the privacy region of Kairouz, Oh and Viswanath: one minus the trade-off function of Dong,
Roth and Su. All that the exact price of a search needs are points of W, each with a line that nowhere lies above W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hpcalc.logspace import Array, Indices, Prob, log1mexp, logaddexp, logsubexp

__all__ = ["Tradeoff", "from_lines", "from_points"]


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """Points of W with supporting slopes, by increasing x.

    Attributes
    ----------
    x, w : Prob, shape (n,)
        Q- and Q'-mass of the n events; ``x`` runs from 0 to 1. Each mass is kept as the logarithms of itself and of its
        complement, so that both ends keep their digits.
    log_slope : ndarray, shape (n,)
        Logarithms of slopes, never decreasing: the line of slope ``exp(log_slope[i])`` through point i lies nowhere
        above W. At the first point the slope to its right, ``-inf`` where W starts flat; at the last point anything
        from the slope to its left on.
    attained : bool
        Whether one pair of laws has all the points: then the same points also make a mechanism, and a lower bound.
        Otherwise the points are only on the safe side (on or below W).
    """

    x: Prob
    w: Prob
    log_slope: Array
    attained: bool = False

    def reversed(self) -> Tradeoff:
        """The same pair of laws with Q and Q' exchanged: an event becomes its complement."""
        back = slice(None, None, -1)
        return Tradeoff(
            self.w.complement().take(back), self.x.complement().take(back), -self.log_slope[back], self.attained
        )


def from_points(x: Prob, w: Prob, log_slope: Array, attained: bool = False, ends: float = math.inf) -> Tradeoff:
    """A curve through (0, 0), the points given and (1, 1); ``ends`` is the largest slope there is, as a logarithm."""
    zero, one = np.array([-math.inf]), np.array([0.0])
    x, w = (Prob(np.concatenate([zero, p.log_u, one]), np.concatenate([one, p.log_q, zero])) for p in (x, w))
    return Tradeoff(x, w, np.concatenate([[-ends], log_slope, [ends]]), attained)


def from_lines(t: Array, log_delta: Array, attained: bool = False) -> Tradeoff:
    """The curve that a privacy profile allows: ``W(x) >= e^-t (x - delta(t))`` for every real t.

    Parameters
    ----------
    t : ndarray, shape (n,)
        Increasing real numbers.
    log_delta : ndarray, shape (n,)
        Where ``t >= 0`` logarithms of the profile. Where ``t < 0`` those of the *other* direction's profile at ``-t``,
        whose line ``1 - W(x) <= delta'(-t) + e^-t (1 - x)`` is the same one without cancellation.
    attained : bool
        Whether one pair of laws has the corners of the lines' maximum as points: a profile of finitely many outcomes,
        given at each of its breakpoints.

    Returns
    -------
    Tradeoff
        The corners of the maximum of the lines and 0.

    Examples
    --------
    >>> curve = from_lines(np.array([-1.0, 1.0]), np.array([-np.inf, -np.inf]))
    >>> curve.x.u.round(4), curve.w.u.round(4)
    (array([0.    , 0.7311, 1.    ]), array([0.    , 0.2689, 1.    ]))
    """
    t, log_delta = t[::-1], log_delta[::-1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # each line twice: w = s (x - d) and 1 - w = a + s (1 - x), which keep their digits near 0 and near 1
        log_d = np.where(t >= 0.0, log_delta, log1mexp(np.minimum(t + log1mexp(log_delta), 0.0)))
        log_a = np.where(t >= 0.0, log1mexp(np.minimum(log1mexp(log_delta) - t, 0.0)), log_delta)
        keep = _envelope(-t, log_d, log_a)
        slope, log_d, log_a = -t[keep], log_d[keep], log_a[keep]
        x = _meet(slope, log_d, log_a)
        w = _both(slope[:-1] + logsubexp(x.log_u, log_d[:-1]), logaddexp(log_a[:-1], slope[:-1] + x.log_q))
    flat = [True] if log_d[0] > -math.inf else []  # W is 0 up to where the first line starts
    start = _both(log_d[: len(flat)], log1mexp(log_d[: len(flat)]))
    zero = np.array([-math.inf])
    xs = [np.concatenate([zero, start.log_u, x.log_u, [0.0]]), np.concatenate([[0.0], start.log_q, x.log_q, zero])]
    first = np.full(1 + len(flat), -math.inf)
    ws = [np.concatenate([first, w.log_u, log1mexp(log_a[-1:])]), np.concatenate([first, w.log_q, log_a[-1:]])]
    ws[1][: 1 + len(flat)] = 0.0
    slopes = np.concatenate([first[1:], slope, slope[-1:]])
    return Tradeoff(Prob(*xs), Prob(*ws), slopes, attained)


def _both(log_u: Array, log_q: Array) -> Prob:
    """A probability from estimates of both its logarithms: each is taken from the other where that is the smaller."""
    log_u, log_q = np.minimum(log_u, 0.0), np.minimum(log_q, 0.0)
    low = log_u <= log_q
    return Prob(np.where(low, log_u, log1mexp(log_q)), np.where(low, log1mexp(log_u), log_q))


def _meet(slope: Array, log_d: Array, log_a: Array) -> Prob:
    """Where neighbouring lines meet: ``x = (s2 d2 - s1 d1)/(s2 - s1)``, ``1 - x = (a1 - a2)/(s2 - s1)``."""
    steeper = logsubexp(slope[1:], slope[:-1])
    return _both(
        logsubexp(slope[1:] + log_d[1:], slope[:-1] + log_d[:-1]) - steeper, logsubexp(log_a[:-1], log_a[1:]) - steeper
    )


def _envelope(slope: Array, log_d: Array, log_a: Array) -> Indices:
    """Which lines, by increasing slope, are part of their maximum on [0, 1]."""
    kept: list[int] = []
    starts: list[float] = []  # logit of x from which on each kept line is the largest
    for i in range(slope.size):
        at = -math.inf
        while kept:
            pair = np.array([kept[-1], i])
            x = _meet(slope[pair], log_d[pair], log_a[pair])
            at = float(x.log_u[0] - x.log_q[0])
            if at > starts[-1]:
                break
            kept.pop()
            starts.pop()
            at = -math.inf
        if at < math.inf:
            kept.append(i)
            starts.append(at)
    return np.array(kept, dtype=np.intp)
