"""What a picture of a search's cost shows: its Rényi curve and its privacy profile beside one run's."""

from __future__ import annotations

import math

import numpy as np

from hpcalc.conversion import delta_at
from hpcalc.logspace import distinct
from hpcalc.lower import lower_bound
from hpcalc.questions.search_cost import BoundResult

Points = list[tuple[float, float]]

_LOG10 = math.log(10.0)
_LEVELS = 9
_WIDE = 3.0  # orders are shown up to this multiple of the one that decides
_HIGH = 5.0  # and divergences up to this multiple of the one there
_FAR = 3.0  # a limit beyond this multiple of the answer is not shown
_MOST = 256.0  # orders are shown up to here, whatever decides


def profile_curves(result: BoundResult) -> tuple[Points, Points, Points, float]:
    """Log10 of δ by ε, of an answer that has one, of one run, of explicit mechanisms; the largest ε looked at."""
    epsilon, limit = result.epsilon, result.max_epsilon or 0.0
    top = max(1.6 * epsilon, 1.2 * limit if limit <= _FAR * epsilon else 0.0) or 1.0
    near = epsilon * (1.0 - np.array([0.0, 0.001, 0.003, 0.01, 0.03]))  # where a bounded loss ends, a profile falls off
    grid = distinct(np.append(np.linspace(0.0, top, 49), near))
    floor = max(2.0 * math.log10(result.asked.delta) - 1.0, -300.0) if result.asked.delta > 0.0 else -13.0
    whole = (result.log_profile(grid) / _LOG10).tolist()
    alone = [delta_at(result.base, x, result.asked.conversion).value / _LOG10 for x in grid.tolist()]
    profile, one_profile = (
        [(x, y) for x, y in zip(grid.tolist(), values, strict=True) if floor <= y <= 0.0] for values in (whole, alone)
    )
    costs: Points = []
    if result.lower is not None and len(profile) > 1:
        sources = [bound.source for bound in result.bounds]
        for level in np.linspace(-0.5, max(floor, profile[-1][1]), _LEVELS).tolist():
            low = lower_bound(result.base, result.runs, level * _LOG10, sources)
            costs += [(low.epsilon, level)] if low is not None and 0.0 < low.epsilon < math.inf else []
    return profile, one_profile, costs, top


def renyi_curves(result: BoundResult) -> tuple[Points, Points, Points]:
    """Rényi divergence by order, of the whole search, of one run, at the order that decides.

    They end where nothing is decided any more: far above that order, sampled mechanisms explode.
    """
    if result.base.slack > 0.0 or not result.base.finite:
        return [], [], []
    used = sorted((bound.epsilon, bound.order) for bound in result.bounds if math.isfinite(bound.order or math.inf))
    decides = [order for _, order in used[:1] if order is not None and order <= _MOST]
    top = min([max(_WIDE * x, 8.0) for x in decides] + [_MOST])
    orders = distinct(np.append(1.0 + np.exp(np.linspace(math.log(0.1), math.log(top - 1.0), 41)), decides))
    if result.base.orders is not None:
        given = result.base.orders[np.isfinite(result.base.orders)]
        orders = given[given <= top] if np.any(given <= top) else given
    rows = [(row["order"], row["epsilon"]) for row in result.rdp_curve(orders)]
    whole = [(x, y) for x, y in rows if x is not None and y is not None]
    best = [point for point in whole if point[0] in decides]
    most = best[0][1] * _HIGH if best else math.inf
    alone = zip(orders.tolist(), np.asarray(result.base.rdp(orders)).tolist(), strict=True)
    shown = [point for point in alone if math.isfinite(point[1]) and point[1] <= most]
    return [point for point in whole if point[1] <= most], shown, best
