"""From one kind of guarantee to another, each rule named and cited.

A Rényi curve turns into (ε, δ) by one of these rules, from loose to tight:

* ``mironov``: ``ε = rdp - log(δ)/(a-1)`` (I. Mironov, "Rényi differential privacy", CSF 2017, Proposition 3),
* ``cks``: ``ε = rdp + log(1-1/a) - (log δ + log a)/(a-1)`` (C. L. Canonne, G. Kamath, T. Steinke, "The discrete
  Gaussian for differential privacy", NeurIPS 2020, Proposition 12, which is Papernot and Steinke 2022, Lemma 14),
* ``exact``: the mechanism's own privacy profile where it is known, else the best that the Rényi curve alone allows (of
  a single order: J. Liao and others, "Three variants of differential privacy", IEEE JSAIT 2, 2021).

Every order gives a valid answer, so the search over orders can only cost tightness, never soundness. Everything is in
logarithms: a δ of 1e-534 is an answer, 0.0 is not.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcalc.errors import NoFiniteBound, checked_number
from hpcalc.guarantees import Guarantee, RDPCurve, cks_log_delta
from hpcalc.logspace import Array, Prob, logsubexp
from hpcalc.solve import log_minimum

_INF = math.inf

#: Names of the rules as answers carry them.
CKS, MIRONOV, EXACT_PROFILE, EXACT_REGION, PURE = (
    "canonne-kamath-steinke", "mironov", "exact-profile", "exact-region", "pure",
)  # fmt: skip
RULES = ("best", "cks", "mironov", "exact")  # what ``--conversion`` accepts

# from this δ on, the exact conversion of a curve known at every order gains more than 1e-3 over ``cks``
_LARGE_LOG_DELTA = math.log(1e-3)
_PURE_PREFERENCE = 1.0 - 1e-3  # orders must beat the pure guarantee by this factor to be reported instead of it


@dataclass(frozen=True)
class RenyiCurve:
    """A Rényi curve of a whole search, outside an event of probability ``exp(log_added_delta)`` (Lemma 20)."""

    rdp: Callable[[Array], Array]  # orders in (1, inf], any shape, to divergence bounds in nats
    orders: Array | None = None  # at which it is worth evaluating; None means all of them
    log_added_delta: float = -_INF
    pure_epsilon: float = _INF  # outside that event
    run: Guarantee | None = None  # the one run that has this curve outside that event, where it is no search


def _curve_of(base: Guarantee | RenyiCurve, orders: Array | None) -> RenyiCurve:
    """The curve of one run, to be tried at these orders (None: at its own)."""
    if isinstance(base, RenyiCurve):
        return base
    core = base.core
    return RenyiCurve(core.rdp, core.orders if orders is None else orders, _log(base.slack), core.pure_epsilon, core)


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0.0 else -_INF


@dataclass(eq=False)
class Conversion:
    """An answer (ε, or log δ where a δ was asked for), the rule that gave it, and the Rényi order that it used."""

    value: float
    rule: str
    order: float | None = None


def log_of_delta(delta: Any) -> float:
    """Natural logarithm of a δ in [0, 1) that a user gave; 0 gives ``-inf``, which only a pure guarantee answers."""
    remedy = "give 0 < δ < 1, well below 1/(number of people), for example 1e-6"
    return _log(checked_number("delta", delta, remedy, lambda x: 0.0 <= x < 1.0))


# log(order - 1): where the search starts, and how far it goes, beyond which order - 1 is not a double, or 1e300
_LOG_ORDERS = np.arange(math.log(1e-9), math.log(1e9), 0.25)
_REACH = (-50 * math.log(2.0), 690.0)


def minimise_over_orders(objective: Callable[[Array], Array], orders: Array | None) -> tuple[float, float | None]:
    """Least value of an objective (NaN never wins), and the order that has it: None if it is nowhere finite.

    ``orders`` are those to try; None searches all of (1, inf), to about 1e-14 of a smooth objective.
    """

    def values(order: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            out = objective(order)
        return np.where(np.isnan(out), _INF, out)

    if orders is not None:
        finite = orders[np.isfinite(orders)]
        found = values(finite) if finite.size else np.array([_INF])
        best = int(found.argmin())
        return (float(found[best]), float(finite[best])) if found[best] < _INF else (_INF, None)
    place, value = log_minimum(lambda x: values(1.0 + np.exp(x)), _LOG_ORDERS, accuracy=1e-6, reach=_REACH, parts=16)
    if value == _INF:
        return _INF, None
    order = 1.0 + math.exp(place)
    # of orders as good but for rounding, one that reads well: a flat minimum has no digits beyond
    short = float(f"{order:.7g}")
    low = float(values(np.array([short]))[0]) if short > 1.0 else _INF
    return (low, short) if low - value <= 1e-12 * abs(value) < _INF else (value, order)


def cks_epsilon(orders: Array, rdp: Array, log_delta: float) -> Array:
    """ε at δ from each order, before clamping at 0 (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    h = orders - 1.0
    return np.asarray(rdp - np.log1p(1.0 / h) - (log_delta + np.log(orders)) / h, dtype=float)


def remaining(log_delta: float, log_slack: float) -> float | None:
    """``log((δ - slack)/(1 - slack))``: what is left of δ outside an event of that probability, or None."""
    if log_delta < log_slack:
        return None
    return float(logsubexp(log_delta, log_slack)) - math.log1p(-math.exp(log_slack))


def epsilon_from_rdp(
    base: Guarantee | RenyiCurve, log_delta: float, rule: str = "cks", orders: Array | None = None
) -> Conversion:
    """ε at δ from a Rényi curve; inf if it allows none. What is set aside (``slack``) is taken from δ first.

    ``"exact"`` is the best any analysis can do that knows only the curve. ``"best"`` tries it where it gains: at given
    orders, and from δ = 1e-3 on for curves known at every order. ``orders`` restricts those that are tried.
    """
    curve = _curve_of(base, orders)
    left, pure = remaining(log_delta, curve.log_added_delta), curve.pure_epsilon
    named = MIRONOV if rule == MIRONOV else CKS
    if left is None:
        return Conversion(_INF, named)
    if left == -_INF:
        return Conversion(pure, PURE)

    def epsilon(order: Array) -> Array:
        rdp = curve.rdp(order)
        return rdp - left / (order - 1.0) if rule == MIRONOV else cks_epsilon(order, rdp, left)

    value, order = minimise_over_orders(epsilon, curve.orders)
    answer = Conversion(max(value, 0.0), named, order)
    # hundreds of orders are as good as all of them
    few = curve.orders is not None and curve.orders.size < 200 and value <= pure * _PURE_PREFERENCE
    if rule == "exact" or (rule == "best" and value > 0.0 and (few or left > _LARGE_LOG_DELTA)):
        # the least ε with V(u) <= e^ε u + δ for every test, from above: in the last digits the other may be smaller
        exact = max(_supremum(curve, lambda u, v: logsubexp(np.maximum(v, left), left) - u, left), 0.0)
        answer = Conversion(exact, EXACT_REGION) if exact < answer.value else answer
    if pure < _INF and answer.value > pure * _PURE_PREFERENCE:
        # the pure guarantee holds at every δ; Rényi orders can shave only of the order of δ off it
        return Conversion(pure, PURE)
    return answer


def delta_from_rdp(
    base: Guarantee | RenyiCurve, epsilon: float, rule: str = "cks", orders: Array | None = None
) -> Conversion:
    """Log of δ (at most 0, ``-inf`` for 0) at ε >= 0 from a Rényi curve; the rules are those of ε."""
    curve = _curve_of(base, orders)
    log_slack, pure = curve.log_added_delta, curve.pure_epsilon
    if epsilon >= pure:
        return Conversion(log_slack, PURE)

    def log_delta(order: Array) -> Array:
        rdp = curve.rdp(order)
        mironov = (order - 1.0) * (rdp - epsilon)
        value = mironov if rule == MIRONOV else cks_log_delta(order, rdp, np.asarray(epsilon))
        # a few ulp of both are multiplied by order-1: next to a pure ε, where the best order is huge, they count
        return value + 1e-15 * (order - 1.0) * (rdp + epsilon)

    value, order = minimise_over_orders(log_delta, curve.orders)
    answer = Conversion(value, MIRONOV if rule == MIRONOV else CKS, order)
    if rule == "exact" or (rule == "best" and (curve.orders is not None or value > _LARGE_LOG_DELTA)):
        floor = min(value, 0.0) - 12.0
        exact = _supremum(curve, lambda u, v: logsubexp(np.maximum(v, epsilon + u), epsilon + u), floor)
        answer = Conversion(max(exact, floor), EXACT_REGION) if exact < value else answer
    whole = float(np.logaddexp(log_slack, min(answer.value, 0.0) + math.log1p(-math.exp(log_slack))))
    return Conversion(min(whole, 0.0), answer.rule, answer.order)


def _supremum(curve: RenyiCurve, score: Callable[[Array, Array], Array], floor: float) -> float:
    """Upper bound on ``sup score(log u, log V(u))`` over all u with ``log V(u) >= floor``, V as the curve allows.

    ``score`` increases in v and is quasi-concave along the concave curve V: its supremum lies beside the best node. V
    at the right end and u at the left end of each of the last cells bound it there.
    """
    # where v^a u^(1-a) <= e^((a-1) rdp) and v <= e^ε u keep V below the floor
    gap, _ = minimise_over_orders(lambda a: curve.rdp(a) - (a / (a - 1.0)) * floor, curve.orders)
    gap = min(gap, curve.pure_epsilon - floor)
    if not math.isfinite(gap):
        return _INF
    run = curve.run
    if run is None:
        # A whole search's curve takes long to evaluate: it is read once, at orders near enough to each other for V to
        # be stationary between them.
        orders = 1.0 + np.exp(np.arange(-7.0, 14.0, 0.12)) if curve.orders is None else curve.orders
        value = np.maximum(np.nan_to_num(curve.rdp(orders), nan=_INF, posinf=_INF), 0.0)
        run = RDPCurve(orders.tolist(), value.tolist())
    tolerance = max(run.region_tolerance, 1e-12)
    low = min(-gap - 1e-6 * max(gap, 1.0), -1.0)
    z = np.linspace(max(low, -60.0), 40.0, 257)
    z = np.concatenate([-np.geomspace(60.0, -low, 129)[:0:-1], z]) if low < -60.0 else z
    for _ in range(11):
        rank = Prob.from_logit(z)
        log_u, log_v = rank.log_u, run.region(rank).log_u
        value = score(log_u, log_v)
        best = np.flatnonzero(value == np.max(value))  # more than one where V is flat
        left, right = max(int(best[0]) - 1, 0), min(int(best[-1]) + 1, z.size - 1)
        z = np.linspace(z[left], z[right], 17)
    top = np.minimum(log_v + 2.0 * (tolerance * np.abs(log_v) + 1e-14), 0.0)
    return float(np.max(score(log_u[left:right], top[left + 1 : right + 1])))


_LADDER = np.concatenate([[0.0], np.exp(np.arange(math.log(1e-15), math.log(1e15), 0.5))])
_HIGH_LADDER = np.exp(np.arange(math.log(1e14), math.log(1e300), 2.0))


def epsilon_from_profile(log_profile: Callable[[Array], Array], log_delta: float) -> float:
    """Least ε >= 0 with ``profile(ε) <= δ``, to 1e-14 from the side that meets it; inf if the profile stays above δ.

    ``log_profile`` does not rise; it takes ε >= 0 (1-D array) to log δ.
    """

    def first_passing(grid: Array) -> int:
        """Index after the last point that fails: rounding can never make an earlier lucky point the answer."""
        fails = np.flatnonzero(~(log_profile(grid) <= log_delta))
        return int(fails[-1]) + 1 if fails.size else 0

    for grid in (_LADDER, _HIGH_LADDER):
        place = first_passing(grid)
        if place < grid.size:
            break
    if place in (0, grid.size):
        return _INF if place else float(grid[0])
    low, high = grid[place - 1 : place + 1].tolist()
    while high - low > 1e-15 * high:
        grid = np.append(low + (high - low) * np.arange(32) / 32.0, high)
        place = min(max(first_passing(grid), 1), 32)
        low, high = grid[place - 1 : place + 1].tolist()
    return float(high)


def epsilon_at(base: Guarantee, log_delta: float, rule: str = "best", orders: Array | None = None) -> Conversion:
    """ε of one run at δ; ``"best"`` is the smallest valid answer. NoFiniteBound says why there is none."""
    if log_delta == -_INF:
        if base.pure_epsilon == _INF:
            raise NoFiniteBound("delta: 0 needs a pure guarantee (--pure, --laplace, RDP at order inf); give δ > 0")
        return Conversion(base.pure_epsilon, PURE)
    if rule in ("best", "exact") and base.exact_profile:
        answer = Conversion(epsilon_from_profile(base.log_profile, log_delta), EXACT_PROFILE)
    else:
        answer = epsilon_from_rdp(base, log_delta, rule, orders)
        for view in base.views[1:] if rule in ("best", "exact") else ():
            known = epsilon_from_profile(view.log_profile, log_delta)
            answer = Conversion(known, EXACT_PROFILE) if known < answer.value else answer
    if rule in ("best", "exact") and _log(base.slack) <= log_delta:
        stated = base.core.pure_epsilon  # a search for it would round up
        answer = Conversion(stated, EXACT_PROFILE if base.slack else PURE) if stated < answer.value else answer
    if not answer.value < _INF:
        why = "the base gives no finite privacy guarantee"
        if _log(base.slack) >= log_delta:
            why = f"the base alone fails with probability {base.slack:.6g}; give a larger δ"
        raise NoFiniteBound(f"no finite ε holds at delta {math.exp(log_delta):.6g}: {why}")
    return answer


def delta_at(base: Guarantee, epsilon: float, rule: str = "best", orders: Array | None = None) -> Conversion:
    """Log of δ of one run at ε >= 0: 0 where nothing better than δ = 1 holds, ``-inf`` for δ = 0."""
    if epsilon >= base.pure_epsilon:
        return Conversion(-_INF, PURE)
    if rule in ("best", "exact") and base.exact_profile:
        return Conversion(min(float(base.log_profile(np.array([epsilon]))[0]), 0.0), EXACT_PROFILE)
    answer = delta_from_rdp(base, epsilon, rule, orders)
    for view in base.views[1:] if rule in ("best", "exact") else ():
        known = float(view.log_profile(np.array([epsilon]))[0])
        answer = Conversion(known, EXACT_PROFILE) if known < answer.value else answer
    return replace(answer, value=max(answer.value, -sys.float_info.max))  # beyond the doubles it is not 0 either


def parameter_of(base: Guarantee, kind: str) -> float:
    """Smallest known ρ of ``"zcdp"``, or ε of ``"pure"`` DP, of one run; NoFiniteBound if none is known."""
    value = base.zcdp_rho if kind == "zcdp" else base.pure_epsilon
    if value < _INF:
        return value
    if kind == "zcdp":
        raise NoFiniteBound("no finite ρ is known for this base; --pure, --zcdp, --gaussian and --laplace have one")
    raise NoFiniteBound("this base is not known to be ε-DP for any finite ε; --pure and --laplace are")
