"""Dominating pairs from privacy profiles: of a search, of a curve given by points, of any guarantee, of compositions.

Upper values of a hockey-stick curve at finitely many orders, joined by their lower convex hull, lie above the true
curve and are the curve of a finite pair (:func:`hpcalc.guarantees.tradeoff.least_masses`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from hpcalc.guarantees.guarantee import Guarantee
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.tradeoff import least_masses
from hpcalc.logspace import Array, distinct, log1mexp, logaddexp, logsubexp, logsumexp

_INF = math.inf
FLOOR = -100.0  # profiles are followed down to this log delta; what is left counts as an infinite loss
_FAR = 2.0**30  # a loss beyond all others
_ROUNDS = 30
FEW = 3000  # so many joint outcomes are listed
LogProfile = Callable[[Array], Array]


def _nodes(
    log_profile: LogProfile, tolerance: float, corners: list[float], floor: float, pieces: int
) -> tuple[Array, Array]:
    """Nodes (t, log delta) of a profile, so dense that chords in ``e^t`` are nowhere much too large."""
    lowest = float(log_profile(np.array([_FAR]))[0])
    top = max(corners) if corners and lowest == -_INF else _end(log_profile, max(floor, lowest + 1e-9))
    t = distinct(np.concatenate([np.linspace(0.0, top, pieces + 1), corners]))
    log_delta = log_profile(t)
    rough = np.ones(t.size - 1, dtype=bool)  # pieces that may have to be halved
    for _ in range(_ROUNDS):
        left = np.flatnonzero(rough & (np.diff(t) > 1e-7 * (1e-3 * top + t[1:])) & (log_delta[:-1] > floor))
        if left.size == 0:
            break
        middle = 0.5 * (t[left] + t[left + 1])
        value = log_profile(middle)
        share = logsubexp(middle, t[left]) - logsubexp(t[left + 1], t[left])
        chord = logaddexp(log1mexp(share) + log_delta[left], share + log_delta[left + 1])
        with np.errstate(invalid="ignore"):
            # half the width, a quarter of the error
            coarse = chord - value > 4.0 * tolerance * np.where(chord < 0.65 * floor, 10.0, 1.0)
        rough[:] = False
        rough[left] = coarse
        rough = np.insert(rough, left + 1, coarse)
        t, log_delta = np.insert(t, left + 1, middle), np.insert(log_delta, left + 1, value)
    return t, log_delta


def _end(log_profile: LogProfile, least: float) -> float:
    """A power of 2 at which the profile is down to ``least``, nearly the smallest."""
    t = 1.0
    while t > 1e-9 and float(log_profile(np.array([0.5 * t]))[0]) <= least:
        t *= 0.5
    while t < _FAR and float(log_profile(np.array([t]))[0]) > least:
        t *= 2.0
    return t


def profile_pair(
    profiles: Sequence[LogProfile],
    tolerance: float = 1e-3,
    breakpoints: Iterable[float] = (),
    floor: float = FLOOR,
    pieces: int = 32,
) -> DominatingPair:
    """A dominating pair from the log profiles of direction 0 and 1 (of one only where they are the same).

    The relative error of delta is at most about ``tolerance``, ten times as much in the tail. At ``breakpoints`` the
    profiles have corners. They are followed down to the log delta ``floor``; what is left counts as an infinite loss.
    """
    corners = [x for x in breakpoints if 0.0 < x < _INF]
    nodes = [_nodes(profile, tolerance, corners, floor, pieces) for profile in profiles]
    return DominatingPair(*least_masses(nodes[0], nodes[-1]))


def pair_of(guarantee: Guarantee, tolerance: float = 1e-3) -> DominatingPair:
    """A finite dominating pair of any guarantee."""
    known = getattr(guarantee, "pair", guarantee)
    if isinstance(known, DominatingPair):
        return known
    profiles = [partial(guarantee.log_profile_of, side) for side in guarantee.directions]
    return profile_pair(profiles, tolerance, (guarantee.core.pure_epsilon,))


def composed(first: DominatingPair, second: DominatingPair, floor: float = FLOOR) -> DominatingPair:
    """A dominating pair of both, the second one possibly chosen by what the first released.

    All pairs of outcomes where they are few, else nodes of ``delta(t) = E[delta_1(t - loss_2)]`` (under P).
    """
    if first.loss.size * second.loss.size <= FEW:
        log_p, log_q = np.add.outer(first.log_p, second.log_p), np.add.outer(first.log_q, second.log_q)
        return DominatingPair.from_masses(log_p.ravel(), log_q.ravel(), first.attained and second.attained)

    def profile(one: DominatingPair, other: DominatingPair) -> LogProfile:
        some = np.isfinite(other.log_p)
        loss, log_p = other.loss[some], other.log_p[some]
        return lambda t: sum_in_rows(t, lambda row: log_p + one.log_profile_of(0, row - loss), loss.size)

    directions = [(first, second)]
    if not (first.symmetric and second.symmetric):
        directions.append((first.reversed(), second.reversed()))
    return profile_pair([profile(*both) for both in directions], floor=floor)


def sum_in_rows(t: Array, terms: Callable[[Array], Array], width: int) -> Array:
    """Log of the sum of ``terms`` at each t, few enough rows at a time to stay in the cache."""
    rows = max(1, (1 << 17) // width)
    parts = [logsumexp(terms(t[i : i + rows, None])) for i in range(0, t.size, rows)]
    return np.minimum(np.concatenate(parts), 0.0)
