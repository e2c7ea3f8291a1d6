"""Prices of ranks for the profile bound R2: the dual of matching privacy losses to ranks.

The gain of an outcome with ``s = e^eps dQ'/dQ`` at rank u, ``F(u) - F(V(u)) s``, is supermodular in (u, s), so the best
matching is increasing: the smaller s, the better the rank. Where too many outcomes want the same ranks they queue, and
along the queue the price satisfies ``phi'(u) = F'(u) - (F o V)'(u) s(u)`` with s(u) given by the mass that fits. One
number is free, the rank at which the queue starts; it is searched. Any price is valid, so nothing here needs proof.
"""

from __future__ import annotations

import math

import numpy as np

from hpcalc.base import Base
from hpcalc.instances import region_pair
from hpcalc.logmath import Array
from hpcalc.ranks import RankCurve
from hpcalc.refined import Price, ProfileBound, RunLaw, smallest_epsilon

__all__ = ["priced_bound"]


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
    curve = bound.rank_curve
    losses = _losses(bound.base, curve)
    if losses is None:
        return epsilon, bound
    best_value, best = epsilon, bound
    for _ in range(6):
        price = _best_price(bound.base, bound.law, curve, losses, best_value)
        if price is None:
            break
        trial = ProfileBound(bound.base, bound.law, curve, price)
        value = smallest_epsilon(trial.log_delta, log_delta, best_value)
        if not value < best_value * (1.0 - 1e-5):
            break
        improved = best_value - value
        best_value, best = value, trial
        if improved < 1e-4 * best_value:
            break
    return best_value, best


def _losses(base: Base, curve: RankCurve) -> tuple[Array, Array] | None:
    """``log(dQ'/dQ)``, increasing, and the Q-mass up to each, of a pair that attains the base's profile."""
    own = getattr(base.core, "discretised_pair", None)
    if own is not None:
        log_q, log_p = own()
    else:
        inner = curve.x[np.isfinite(curve.x)]
        log_q, log_p = region_pair(base, inner)
    keep = np.isfinite(log_q) & np.isfinite(log_p)
    log_s = (log_p - log_q)[keep][::-1]
    mass = np.cumsum(np.exp(log_q[keep][::-1]))
    if log_s.size < 3:
        return None
    order = np.argsort(log_s, kind="stable")
    return np.maximum.accumulate(log_s[order]), np.cumsum(np.exp(log_q[keep][::-1][order])) if (order != np.arange(order.size)).any() else mass


def _best_price(
    base: Base, law: RunLaw, curve: RankCurve, losses: tuple[Array, Array], epsilon: float
) -> Price | None:
    """Price that makes delta at ``epsilon`` least over where the queue starts."""
    inner = np.flatnonzero(np.isfinite(curve.x))
    starts = inner[:-2]

    def score(index: int, lift: float = 0.0) -> tuple[float, Price | None]:
        price = _queue(curve, losses, epsilon, index, lift)
        if price is None:
            return math.inf, None
        return float(ProfileBound(base, law, curve, price).log_delta(epsilon)), price

    found: tuple[float, Price | None] = (float(ProfileBound(base, law, curve).log_delta(epsilon)), None)
    lo, hi, step = 0, starts.size, max(starts.size // 24, 1)
    while True:
        trials = [(score(int(starts[i])), i) for i in range(lo, hi, step)]
        (value, price), top = min(trials, key=lambda item: item[0][0])
        if value < found[0]:
            found = value, price
        if step == 1:
            break
        lo, hi, step = max(top - step, 0), min(top + step + 1, starts.size), max(step // 5, 1)
    return found[1]


def _queue(
    curve: RankCurve, losses: tuple[Array, Array], epsilon: float, start: int, lift: float
) -> Price | None:
    """Price of the queue that starts at node ``start``."""
    log_s, mass = losses
    u = np.exp(curve.rank.log_u)
    f, g = np.exp(curve.log_f), np.exp(curve.log_g)
    du, df, dg = np.diff(u), np.diff(f), np.diff(g)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.where(dg < 0.0, df / dg, np.inf)  # s = e^eps dQ'/dQ that finds this rank best
    if not (np.isfinite(wanted[start]) and wanted[start] > 0.0):
        return None
    served = float(np.interp(math.log(wanted[start]) - epsilon, log_s, mass, left=0.0))
    # outcomes by increasing s fill the ranks one after another
    filled = served + np.concatenate([[0.0], np.cumsum(du[start:])])
    s_at = np.exp(np.interp(filled, mass, log_s) + epsilon)
    slope = df[start:] - dg[start:] * 0.5 * (s_at[1:] + s_at[:-1])
    phi = lift + np.concatenate([[0.0], np.cumsum(slope)])
    below = np.flatnonzero(phi[1:] <= 0.0)
    surplus = f[start:] - phi - g[start:] * s_at
    done = np.flatnonzero(surplus[1:] <= 0.0)
    end = min([*(below[:1] + 1), *(done[:1] + 1), phi.size - 1])
    # the queue ends where its price is least after its crest
    crest = int(np.argmax(phi[: end + 1]))
    end = crest + int(np.argmin(phi[crest : end + 1]))
    if end < 1:
        return None
    value = np.maximum(phi[: end + 1], 0.0)
    if not value.any():
        return None
    return Price(curve.rank.log_u[start : start + end + 1], value)
