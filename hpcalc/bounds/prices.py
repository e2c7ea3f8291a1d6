"""Prices of ranks for the profile bound R2: the dual of matching privacy losses to ranks.

The gain of an outcome with ``s = e^eps dQ'/dQ`` at rank u, ``F(u) - F(V(u)) s``, is supermodular in (u, s), so the best
matching is increasing: the smaller s, the better the rank. Where too many outcomes want the same ranks they queue, and
along the queue the price satisfies ``phi'(u) = F'(u) - (F o V)'(u) s(u)`` with s(u) given by the mass that fits. Two
numbers are free, the rank at which the queue ends and the s served last; they are searched, and the price follows
backwards from there. Any price is valid, so nothing here needs proof.
"""

from __future__ import annotations

import math

import numpy as np

from hpcalc.bounds.ranks import RankCurve, RunLaw, rank_curve
from hpcalc.bounds.refined import Price, ProfileBound, smallest_epsilon
from hpcalc.guarantees import Guarantee
from hpcalc.logspace import Array, distinct
from hpcalc.lower import region_pair

__all__ = ["priced_bound"]

_LINES = 1000  # vertices of the curve that a rough delta is taken over


def priced_bound(bound: ProfileBound, epsilon: float, log_delta: float) -> tuple[float, ProfileBound]:
    """The profile bound with a price found for ``log_delta``.

    Parameters
    ----------
    bound : ProfileBound
        Without a price; its curve should be fine enough.
    epsilon : float
        Its ε.
    log_delta : float
        Natural logarithm of δ.

    Returns
    -------
    tuple of (float, ProfileBound)
        ε and the bound; the one given where no price helps.
    """
    losses = _losses(bound.base)
    if losses is None:
        return epsilon, bound
    # The search mostly needs the shape of the price, so few nodes do; the last step is taken on the fine curve.
    coarse = rank_curve(bound.base, bound.law)
    best_value, best = epsilon, bound
    hint: tuple[float, float] | None
    for curve, rounds in ((coarse, 6), (bound.rank_curve, 3)):
        hint = None  # both look everywhere once: there may be several places to end a queue
        for _ in range(rounds):
            price, hint = _best_price(bound.base, bound.law, curve, losses, best_value, hint)
            if price is None:
                break
            trial = ProfileBound(bound.base, bound.law, bound.rank_curve, price)
            value = smallest_epsilon(trial.log_delta, log_delta, best_value, accuracy=1e-6)
            if not value < best_value * (1.0 - 1e-5):
                break
            improved = best_value - value
            best_value, best = value, trial
            if improved < 5e-4 * best_value:
                break
    return best_value, best


def _losses(base: Guarantee) -> tuple[Array, Array] | None:
    """``log(dQ'/dQ)``, increasing, and the Q-mass up to each, of a pair that attains the base's profile."""
    # far beyond the curve's own ranks: rare losses are what a small delta is made of
    own = base.core.has_own_pair
    pair = base.core.discretised_pair() if own else region_pair(base, np.linspace(-37.0, 37.0, 4000))
    if pair is None:  # a loss distribution that is too large
        return None
    log_q, log_p = pair
    keep = np.isfinite(log_q) & np.isfinite(log_p)
    log_q, log_p = log_q[keep], log_p[keep]
    log_s = log_p - log_q
    order = np.argsort(log_s, kind="stable")
    return (log_s[order], np.cumsum(np.exp(log_q[order]))) if log_s.size > 2 else None


def _best_price(
    base: Guarantee,
    law: RunLaw,
    curve: RankCurve,
    losses: tuple[Array, Array],
    epsilon: float,
    hint: tuple[float, float] | None,
) -> tuple[Price | None, tuple[float, float] | None]:
    """Price that makes delta at ``epsilon`` least over where the queue ends, with that place as the next hint."""
    # the first and last nodes stay free, so that a price can fall to zero on both sides
    ends = np.flatnonzero(np.isfinite(curve.x))[2:-1]
    if ends.size < 8:
        return None, hint
    queue = _Queue(curve, losses, epsilon)
    best, at, level = queue.delta(np.zeros(curve.x.size)), -1, 0.0

    def attempt(index: int, spare: float) -> None:
        nonlocal best, at, level
        phi = queue.price(int(ends[index]), spare)
        if phi is not None:
            value = queue.delta(phi)
            if value < best:
                best, at, level = value, index, spare

    lo, hi, step = 0, ends.size, max(ends.size // 20, 1)
    spares = [0.0, 0.03, 0.1, 0.3, 1.0]
    if hint is not None:
        near = int(np.searchsorted(curve.x[ends], hint[0]))
        lo, hi, step = max(near - 2 * step, 0), min(near + 2 * step + 1, ends.size), max(step // 2, 1)
        spares = [hint[1] / 1.3, hint[1], hint[1] * 1.3]
    while True:
        for index in range(lo, hi, step):
            for spare in spares:
                attempt(index, spare)
        if step == 1 or at < 0:
            break
        lo, hi, step = max(at - step, 0), min(at + step + 1, ends.size), max(step // 4, 1)
        spares = [level / 1.5, level, level * 1.5] if level > 0.0 else [0.0, 0.005]
    for width in (1.3, 1.1, 1.03):
        if at >= 0:
            for spare in (level / width, level * width):
                attempt(at, spare)
    if at < 0:
        return None, hint
    phi = queue.price(int(ends[at]), level)
    return (None if phi is None else Price(curve.rank.log_u, phi)), (float(curve.x[ends[at]]), level)


class _Queue:
    """Prices of queues at one epsilon, and roughly what delta each gives: any of them is valid, so rough will do.

    Parameters
    ----------
    curve : RankCurve
        Its nodes are the knots.
    losses : tuple of ndarray
        As from :func:`_losses`.
    epsilon : float
        >= 0.
    """

    def __init__(self, curve: RankCurve, losses: tuple[Array, Array], epsilon: float) -> None:
        self.curve, self.epsilon = curve, epsilon
        self.log_s, self.mass = losses
        self.u, self.f, self.g = np.exp(curve.rank.log_u), np.exp(curve.log_f), np.exp(curve.log_g)
        self.du, self.df, self.dg = np.diff(self.u), np.diff(self.f), np.diff(self.g)
        self.low, self.high = (np.exp(part) for part in curve.vertices)
        self.some = distinct(np.linspace(0, self.high.size - 1, min(self.high.size, _LINES)).astype(int))
        self.s, self.weight = self._outcomes()
        with np.errstate(over="ignore"):  # a line that falls to -inf gains nothing
            self.lost = np.outer(self.low[self.some], self.s)

    def _outcomes(self) -> tuple[Array, Array]:
        """Outcomes that gain anything, about a hundred: ``s = e^eps dQ'/dQ`` and their Q-mass."""
        s = np.exp(np.minimum(self.log_s + self.epsilon, 700.0))
        weight = np.diff(self.mass, prepend=0.0)
        some = np.arange(0, s.size, max(s.size // 300, 1))
        with np.errstate(over="ignore"):
            lost = np.outer(self.low[self.some], s[some])
        gain = weight[some] * np.max(self.high[self.some, None] - lost, axis=0, initial=0.0)
        used = np.flatnonzero(gain > 1e-7 * np.max(gain))
        if used.size == 0:
            return s[:1], weight[:1]
        first, last = some[max(used[0] - 1, 0)], some[min(used[-1] + 1, some.size - 1)]
        cuts = np.arange(first, last + 1, max((last + 1 - first) // 80, 1))
        total = np.add.reduceat(weight[: last + 1], cuts)
        mean = np.add.reduceat((weight * s)[: last + 1], cuts) / np.maximum(total, 1e-300)
        return mean, total

    def delta(self, phi: Array) -> float:
        """Roughly delta at a price."""
        paid = float(np.sum(0.5 * self.du * (phi[1:] + phi[:-1])))
        net = self.high.copy()
        net[0::2] -= phi
        net[1::2] -= phi[:-1] + self.curve.cells[0] * np.diff(phi)
        # each outcome gains max_u [F - phi - F(V) s]_+
        return paid + float(np.max(net[self.some, None] - self.lost, axis=0, initial=0.0) @ self.weight)

    def price(self, end: int, spare: float) -> Array | None:
        """Price at the nodes of the queue that ends at node ``end``; None if it is 0.

        The last outcome served there gains nothing more; its ``log s`` is ``spare`` below what would still gain at a
        price of 0. Ranks beyond cost just enough that the outcomes after it stay away: ``phi = F - s F(V)``.
        """
        if not (self.g[end] > 0.0 and self.f[end] > 0.0):
            return None
        last = float(self.curve.log_f[end] - self.curve.log_g[end]) - spare
        with np.errstate(over="ignore"):  # far ranks of a steep F cost nothing
            phi = np.maximum(self.f - self.g * math.exp(min(last, 700.0)), 0.0)
        served = float(np.interp(last - self.epsilon, self.log_s, self.mass, left=0.0))
        # outcomes by increasing s = e^eps dQ'/dQ fill the ranks one after another, up to that one
        filled = served - (self.u[end] - self.u[: end + 1])
        s_at = np.exp(np.minimum(np.interp(filled, self.mass, self.log_s) + self.epsilon, 700.0))
        s_at = np.where(filled > 0.0, s_at, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = self.df[:end] - self.dg[:end] * 0.5 * (s_at[1:] + s_at[:-1])
            phi[:end] = phi[end] - np.cumsum(slope[::-1])[::-1]
        stop = np.flatnonzero(phi[:end] <= 0.0)
        start = int(stop[-1]) if stop.size else 0
        phi[: start + 1] = phi[-1] = 0.0
        phi = np.maximum(phi, 0.0)
        rise = np.diff(phi)
        with np.errstate(over="ignore", invalid="ignore"):
            steep = rise[self.du > 0.0] / self.du[self.du > 0.0]
        # none for the steepest laws: their prices rise faster than a number can say
        return phi if rise.any() and np.all(np.isfinite(steep)) else None
