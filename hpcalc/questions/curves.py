"""What a picture of a search's cost shows: its Rényi curve and its privacy profile beside one run's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hpcalc.conversion import delta_at
from hpcalc.logspace import distinct
from hpcalc.lower import lower_bound
from hpcalc.questions.search_cost import BoundResult

Points = tuple[tuple[float, float], ...]

_LOG10 = math.log(10.0)
_LEVELS = 9
_WIDE = 3.0  # orders are shown up to this multiple of the one that decides
_HIGH = 5.0  # and divergences up to this multiple of the one there
_FAR = 3.0  # a limit beyond this multiple of the answer is not shown
_MOST = 256.0  # orders are shown up to here, whatever decides


@dataclass(frozen=True)
class SearchCurves:
    """Points of curves, evaluated once: pairs of ε and log10 δ, for Rényi curves of order and divergence in nats."""

    profile: Points
    one_profile: Points
    renyi: Points
    one_renyi: Points
    answer: Points  # of ``profile``, the one that was asked for
    best: Points  # the order that decides, and the divergence there
    out_of_reach: Points  # what an explicit mechanism costs
    widest: float  # the largest ε looked at


def search_curves(result: BoundResult) -> SearchCurves | None:
    """The curves of an answer; None where no bound is finite."""
    epsilon = result.epsilon
    if not math.isfinite(epsilon):
        return None
    limit = result.max_epsilon or 0.0
    top = max(1.6 * epsilon, 1.2 * limit if limit <= _FAR * epsilon else 0.0) or 1.0
    near = epsilon * (1.0 - np.array([0.0, 0.001, 0.003, 0.01, 0.03]))  # where a bounded loss ends, a profile falls off
    grid = distinct(np.append(np.linspace(0.0, top, 49), near))
    log_delta = math.log10(result.delta) if result.delta > 0.0 else -6.0
    floor = max(2.0 * log_delta - 1.0, -300.0)
    whole = (result.log_profile(grid) / _LOG10).tolist()
    alone = [delta_at(result.base, x, result.asked.conversion).value / _LOG10 for x in grid.tolist()]
    profile, one_profile = (
        tuple((x, y) for x, y in zip(grid.tolist(), values, strict=True) if floor <= y <= 0.0)
        for values in (whole, alone)
    )
    answer = tuple(point for point in profile if point[0] == epsilon and result.delta > 0.0)
    renyi, one_renyi, best = _renyi(result)
    low = _out_of_reach(result, profile, floor)
    return SearchCurves(profile, one_profile, renyi, one_renyi, answer, best, low, top)


def _renyi(result: BoundResult) -> tuple[Points, Points, Points]:
    """Rényi curves at the orders that matter: far above the one that decides, sampled mechanisms explode."""
    if result.base.slack > 0.0 or not result.base.finite:
        return (), (), ()
    used = sorted((bound.epsilon, bound.order) for bound in result.bounds if math.isfinite(bound.order or math.inf))
    decides = [order for _, order in used[:1] if order is not None and order <= _MOST]
    top = min([max(_WIDE * x, 8.0) for x in decides] + [_MOST])
    orders = distinct(np.append(1.0 + np.exp(np.linspace(math.log(0.1), math.log(top - 1.0), 41)), decides))
    if result.base.orders is not None:
        given = result.base.orders[np.isfinite(result.base.orders)]
        orders = given[given <= top] if np.any(given <= top) else given
    rows = [(row["order"], row["epsilon"]) for row in result.rdp_curve(orders)]
    renyi = [(x, y) for x, y in rows if x is not None and y is not None]
    best = tuple(point for point in renyi if point[0] in decides)
    most = _HIGH * best[0][1] if best else math.inf
    one = zip(orders.tolist(), np.asarray(result.base.rdp(orders)).tolist(), strict=True)
    shown = tuple(point for point in one if math.isfinite(point[1]) and point[1] <= most)
    return tuple(point for point in renyi if point[1] <= most), shown, best


def _out_of_reach(result: BoundResult, profile: Points, floor: float) -> Points:
    """What explicit mechanisms cost at several δ."""
    if result.lower is None or len(profile) < 2:
        return ()
    points = []
    sources = [bound.source for bound in result.bounds]
    for level in np.linspace(-0.5, max(floor, profile[-1][1]), _LEVELS).tolist():
        low = lower_bound(result.base, result.runs, level * _LOG10, sources)
        if low is not None and 0.0 < low.epsilon < math.inf:
            points.append((low.epsilon, level))
    return tuple(points) if len(points) > 1 else ()
