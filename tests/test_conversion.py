"""Conversions against 40-digit values, closed forms and independent arithmetic."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from hpcalc import convert
from hpcalc.conversion import (
    CKS,
    EXACT_PROFILE,
    EXACT_REGION,
    MIRONOV,
    PURE,
    RenyiCurve,
    cks_epsilon,
    delta_at,
    delta_from_rdp,
    epsilon_at,
    epsilon_from_profile,
    epsilon_from_rdp,
    log_of_delta,
    minimise_over_orders,
    parameter_of,
)
from hpcalc.errors import InvalidInput, NoFiniteBound
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Laplace, ProfileCurve, PureDP, RDPCurve, compose
from hpcalc.guarantees.mixture import Mixture

LOG = math.log
LOG10 = math.log(10.0)


def cks_reference(rho: float, delta: float) -> mp.mpf:
    """min over a of rho a + log(1-1/a) - log(a delta)/(a-1) with 40 digits.

    Its derivative is ``rho + log(a delta)/(a-1)^2`` (the terms 1/(a(a-1)) cancel), so at the minimum
    ``rho (a-1)^2 = -log(a delta)``; the left side rises and the right side falls in a. Bisected in log(a-1).
    """
    with mp.workdps(40):
        rho, delta = mp.mpf(rho), mp.mpf(delta)
        low, high = mp.mpf(-800), mp.mpf(800)
        for _ in range(200):
            mid = (low + high) / 2
            h = mp.exp(mid)
            low, high = (mid, high) if rho * h**2 < -mp.log((1 + h) * delta) else (low, mid)
        h = mp.exp(low)
        a = 1 + h
        return max(mp.mpf(0), rho * a + mp.log(h / a) - mp.log(a * delta) / h)


def gaussian_profile(sigma: float, epsilon: mp.mpf) -> mp.mpf:
    s = 1 / mp.mpf(sigma)
    return mp.ncdf(-epsilon / s + s / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / s - s / 2)


@pytest.mark.parametrize(
    ("sigma", "delta", "cks", "order", "exact"),
    [
        (50.0, 1e-6, 0.0777359737, 206.949, 0.0709606830),
        (0.05, 1e-5, 293.4275283, 1.23769, 284.3918495),
        (1.0, 1e-5, 4.728386985, None, 4.377178096),
        (5**0.5, 1e-6, 2.1419389284, None, 1.9945269),
    ],
)
def test_optimum_is_never_the_end_of_a_grid(sigma, delta, cks, order, exact):
    answer = epsilon_at(Gaussian(sigma), LOG(delta), "cks")
    assert answer.value == pytest.approx(cks, rel=2e-10)
    assert answer.rule == CKS
    if order is not None:
        assert answer.order == pytest.approx(order, rel=1e-5)
    best = epsilon_at(Gaussian(sigma), LOG(delta))
    assert best.value == pytest.approx(exact, rel=2e-9)
    assert best.rule == EXACT_PROFILE


def test_one_curve_several_rules():
    # sigma = 1, delta = 1e-5; Mironov: min over a of a/2 + log(1e5)/(a-1) = 1/2 + sqrt(2 log 1e5)
    values = [epsilon_at(Gaussian(1.0), LOG(1e-5), rule) for rule in ("mironov", "cks", "exact")]
    assert [v.value for v in values] == pytest.approx([5.298525912, 4.728386985, 4.377178096], rel=2e-10)
    assert values[0].value == pytest.approx(0.5 + math.sqrt(2.0 * LOG(1e5)), rel=1e-14)
    assert [v.rule for v in values] == [MIRONOV, CKS, EXACT_PROFILE]
    with pytest.raises(InvalidInput, match="conversion: tightest .*choose one of best, cks, mironov, exact"):
        convert(Gaussian(1.0), delta=1e-5, conversion="tightest")


@pytest.mark.parametrize("rho", [1e-9, 1e-3, 0.1, 50.0, 1e6])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.1, 0.5])
def test_cks_minimum_to_machine_precision(rho, delta):
    expected = cks_reference(rho, delta)
    assert epsilon_from_rdp(ZCDP(rho), LOG(delta)).value == pytest.approx(float(expected), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("delta", [1, 1.0, 1.5, -1e-5, math.nan, math.inf, "0,5", None, True])
def test_delta_out_of_range_names_the_option(delta):
    with pytest.raises(InvalidInput, match="^delta: ") as caught:
        log_of_delta(delta)
    assert str(delta) in str(caught.value)


def test_delta_zero_needs_pure_dp():
    assert log_of_delta(0) == -math.inf
    assert epsilon_at(PureDP(1.0), -math.inf).value == 1.0
    assert epsilon_at(Laplace(2.0), -math.inf).value == 0.5
    for base in (ZCDP(0.1), Gaussian(1.0), ApproxDP(1.0, 1e-9)):
        with pytest.raises(NoFiniteBound, match="delta: 0"):
            epsilon_at(base, -math.inf)


def test_delta_below_what_a_double_holds():
    assert delta_at(Gaussian(1.0), 38.0, "cks").value / LOG10 == pytest.approx(-307.3775234, abs=5e-8)
    assert delta_at(Gaussian(1.0), 50.0, "cks").value / LOG10 == pytest.approx(-534.1983712, abs=5e-8)
    assert delta_at(Gaussian(1.0), 50.0).value / LOG10 == pytest.approx(-535.8625342, abs=5e-8)
    far = delta_at(Gaussian(1.0), 1e4, "cks").value
    assert -1e8 < far < -4e7
    # and back again: epsilon at that delta
    assert epsilon_at(Gaussian(1.0), far, "cks").value == pytest.approx(1e4, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("rule", ["mironov", "cks", "exact", "best"])
def test_delta_and_epsilon_are_inverse(epsilon, rule):
    for base in (ZCDP(0.1), Gaussian(1.0), RDPCurve({1.5: 0.1, 4: 0.5, 32: 3.0})):
        log_delta = delta_at(base, epsilon, rule).value
        if log_delta == 0.0:
            continue
        assert epsilon_at(base, log_delta, rule).value == pytest.approx(epsilon, rel=2e-6, abs=2e-6)


def test_pure_to_zcdp_and_renyi():
    assert parameter_of(PureDP(1.0), "zcdp") == pytest.approx(math.tanh(0.5), rel=1e-15)
    assert parameter_of(PureDP(1.0), "zcdp") <= 0.5
    assert PureDP(1.0).rdp([2.0, 64.0]) == pytest.approx([0.7353256641, 0.9950276], rel=1e-7)
    assert parameter_of(Gaussian(2.0), "zcdp") == 0.125
    assert parameter_of(compose(PureDP(1.0), Laplace(2.0)), "pure") == 1.5
    for base in (RDPCurve({2: 0.5}), ApproxDP(1.0, 1e-9), ProfileCurve({1.0: 1e-5})):
        with pytest.raises(NoFiniteBound):
            parameter_of(base, "zcdp")
    with pytest.raises(NoFiniteBound):
        parameter_of(Gaussian(1.0), "pure")


def test_slack_comes_off_delta_first():
    # (0.5, 1e-8): delta = 1e-8 + (1 - 1e-8) delta', so at delta = 1e-6 the pure part has 9.9e-7/(1 - 1e-8) left
    base = ApproxDP(0.5, 1e-8)
    left = (1e-6 - 1e-8) / (1.0 - 1e-8)
    # (e^0.5 - e^eps)/(1 + e^0.5) = left
    expected = LOG(math.exp(0.5) - left * (1.0 + math.exp(0.5)))
    assert epsilon_at(base, LOG(1e-6)).value == pytest.approx(expected, rel=1e-12)
    # by Rényi orders nothing below 0.5 is worth reporting
    assert epsilon_at(base, LOG(1e-6), "cks").value == 0.5
    for delta in (1e-8 * (1 - 1e-9), 1e-9):
        with pytest.raises(NoFiniteBound, match="1e-08"):
            epsilon_at(base, LOG(delta))
    curve = RenyiCurve(lambda a: 0.1 * a, log_added_delta=LOG(4e-7))
    rest = (1e-6 - 4e-7) / (1.0 - 4e-7)
    assert epsilon_from_rdp(curve, LOG(1e-6)).value == pytest.approx(
        epsilon_from_rdp(ZCDP(0.1), LOG(rest)).value, rel=1e-13
    )
    assert epsilon_from_rdp(curve, LOG(3.9e-7)).value == math.inf
    total = delta_from_rdp(curve, 2.0).value
    inner = math.exp(delta_from_rdp(ZCDP(0.1), 2.0).value)
    assert math.exp(total) == pytest.approx(4e-7 + (1 - 4e-7) * inner, rel=1e-12)


def test_no_loss_costs_nothing():
    for base in (ZCDP(0.0), PureDP(0.0), RDPCurve({2: 0.0})):
        assert epsilon_at(base, LOG(0.3)).value == 0.0
    assert epsilon_at(ZCDP(0.0), LOG(1e-6)).value == 0.0
    assert delta_at(PureDP(0.0), 0.0).value == -math.inf


@pytest.mark.parametrize("sigma", [0.05, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("delta", [1e-200, 1e-6, 0.01])
def test_gaussian_profile_inverse_meets_delta(sigma, delta):
    value = epsilon_at(Gaussian(sigma), LOG(delta)).value
    # e^value and two tails that nearly cancel: digits enough for both
    with mp.workdps(300):
        at, below = (gaussian_profile(sigma, mp.mpf(value) * (1 + k * mp.mpf("1e-9"))) for k in (1, -1))
        assert at <= delta
        assert value == 0.0 or below >= delta


@pytest.mark.slow
def test_epsilon_never_rises_with_delta():
    for base in (
        ZCDP(0.1),
        Gaussian(0.7),
        RDPCurve({2: 0.5, 16: 2.0}),
        Laplace(0.5),
        RDPCurve({4: 1.0, math.inf: 2.0}),
    ):
        deltas = np.concatenate([np.geomspace(1e-12, 0.5, 20), [9.99e-4, 1e-3, 1.001e-3]])
        values = [epsilon_at(base, LOG(d)).value for d in sorted(deltas)]
        assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(values))


def test_search_stops_at_a_cliff():
    value, order = minimise_over_orders(lambda a: np.where(a <= 256.0, cks_epsilon(a, 1e-6 * a, -40.0), math.inf), None)
    assert order <= 256.0
    assert value == pytest.approx(float(cks_epsilon(np.array([256.0]), np.array([256e-6]), -40.0)[0]), rel=1e-6)


@pytest.mark.parametrize("target", [-30.1, -21.2, -20.75, -20.6, 20.6, 20.75, 21.3, 41.0, 123.4])
def test_search_finds_the_digits_beyond_its_first_grid(target):
    value, order = minimise_over_orders(lambda a: 1.0 + (np.log(a - 1.0) - target) ** 2, None)
    # order - 1 has the digits that order leaves it
    assert value == pytest.approx(1.0, abs=1e-12 if target > -25.0 else 1e-6)
    assert math.log(order - 1.0) == pytest.approx(target, abs=1e-5 if target > -25.0 else 2e-3)


def flat(value: float, orders: tuple[float, ...] | None = (4.0,), **fields) -> RenyiCurve:
    """A curve of one value."""
    known = None if orders is None else np.array(orders)
    return RenyiCurve(lambda a: np.full(np.shape(a), value), known, **fields)


def test_rules_of_one_order_by_hand():
    # order 4, rdp 1: cks 1 + log(3/4) - log(4 delta)/3, mironov 1 - log(delta)/3
    log_delta = LOG(1e-4)
    for rule, value in (
        ("mironov", 1.0 - log_delta / 3.0),
        ("cks", 1.0 + LOG(0.75) - (log_delta + LOG(4.0)) / 3.0),
    ):
        answer = epsilon_from_rdp(flat(1.0), log_delta, rule)
        assert (answer.value, answer.order) == (pytest.approx(value, rel=1e-14), 4.0)
        assert answer.rule == {"mironov": MIRONOV, "cks": CKS}[rule]
        back = delta_from_rdp(flat(1.0), value, rule)
        assert (back.value, back.rule, back.order) == (pytest.approx(log_delta, rel=1e-14), answer.rule, 4.0)
    # cks is the default
    assert epsilon_from_rdp(flat(1.0), log_delta).rule == delta_from_rdp(flat(1.0), 2.0).rule == CKS
    # what leaves no budget is infinite, under the rule that was asked for
    for rule, name in (("mironov", MIRONOV), ("cks", CKS)):
        none = epsilon_from_rdp(flat(1.0, log_added_delta=LOG(2e-4)), log_delta, rule)
        assert (none.value, none.rule, none.order) == (math.inf, name, None)
        unknown = epsilon_from_rdp(flat(math.inf), log_delta, rule)
        assert (unknown.value, unknown.order) == (math.inf, None)
    # clamped: at delta = 0.9 the formula is negative
    assert epsilon_from_rdp(flat(0.01), LOG(0.9)).value == 0.0
    assert delta_from_rdp(flat(50.0), 1.0).value == 0.0


def test_pure_guarantee_is_preferred_unless_orders_gain_a_thousandth():
    log_delta = LOG(1e-4)
    value = epsilon_from_rdp(flat(1.0), log_delta).value
    own = epsilon_from_rdp(flat(1.0, pure_epsilon=value / 0.9985), log_delta)
    assert (own.value, own.rule, own.order) == (value, CKS, 4.0)
    pure = epsilon_from_rdp(flat(1.0, pure_epsilon=value / 0.9995), log_delta)
    assert (pure.value, pure.rule, pure.order) == (value / 0.9995, PURE, None)
    # all of delta set aside leaves delta = 0 for the rest, which the pure guarantee answers
    edge = epsilon_from_rdp(flat(1.0, pure_epsilon=7.0, log_added_delta=log_delta), log_delta)
    assert (edge.value, edge.rule) == (7.0, PURE)
    assert epsilon_from_rdp(flat(1.0, pure_epsilon=7.0), -math.inf).value == 7.0
    none = epsilon_from_rdp(ZCDP(0.1), -math.inf)
    assert (none.value, none.rule) == (math.inf, PURE)
    # and delta above it is what was set aside
    for epsilon in (7.0, 8.0):
        answer = delta_from_rdp(flat(9.0, pure_epsilon=7.0, log_added_delta=-3.0), epsilon)
        assert (answer.value, answer.rule) == (-3.0, PURE)
    assert delta_from_rdp(ApproxDP(0.5, 1e-8), 0.5).value == LOG(1e-8)
    assert delta_from_rdp(PureDP(0.5), 0.5).value == -math.inf


@pytest.mark.parametrize("delta", [1e-9, 0.05, 0.3])
def test_laplace_profile_answers_where_it_is_better(delta):
    # delta = 1 - e^((t - x)/2), x = 1/scale
    base, exactly = Laplace(0.5), 2.0 + 2.0 * math.log1p(-delta)
    for rule in ("best", "exact"):
        answer = epsilon_at(base, LOG(delta), rule)
        assert (answer.value, answer.rule) == (pytest.approx(exactly, rel=1e-13), EXACT_PROFILE)
        assert answer.order is None
        back = delta_at(base, exactly, rule)
        assert back.value >= float(mp.log(-mp.expm1((mp.mpf(exactly) - 2) / 2))) - 1e-14
        assert (back.value, back.rule, back.order) == (pytest.approx(LOG(delta), rel=1e-6), EXACT_PROFILE, None)
    by_orders = epsilon_from_rdp(base, LOG(0.3), "cks")
    assert by_orders.value > 2.0 + 2.0 * math.log1p(-0.3)
    assert delta_from_rdp(base, 1.0, "cks").value > math.log(-math.expm1(-0.5))


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("rule", ["mironov", "cks", "exact", "best"])
def test_delta_next_to_a_pure_epsilon_is_never_too_small(rule, gap):
    # the best order is about 1/gap, and multiplies the rounding of rdp - epsilon
    t = 2.0 - gap
    below = 2 - mp.mpf(t)
    laplace = mp.log(-mp.expm1(-below / 2))
    pure = mp.log(-mp.expm1(-below) / (1 + mp.exp(-2)))
    for base, true in ((Laplace(0.5), laplace), (PureDP(2.0), pure)):
        found = delta_at(base, t, rule).value
        assert found >= float(true) - 1e-14
        if rule in ("exact", "best"):
            assert found <= float(true) + 1e-13


def test_best_tries_the_region_where_it_gains():
    # known at every order: from delta = 1e-3 on
    below, above = (epsilon_from_rdp(ZCDP(0.1), LOG(d), "best") for d in (0.99e-3, 1.01e-3))
    assert (below.rule, above.rule) == (CKS, EXACT_REGION)
    assert above.value < epsilon_from_rdp(ZCDP(0.1), LOG(1.01e-3), "cks").value
    assert vars(below) == vars(epsilon_from_rdp(ZCDP(0.1), LOG(0.99e-3), "cks"))
    assert epsilon_from_rdp(ZCDP(0.1), LOG(0.99e-3), "exact").rule == EXACT_REGION
    best, cks = (delta_from_rdp(RDPCurve({2: 0.5}), 9.0, rule) for rule in ("best", "cks"))
    assert (best.rule, cks.rule) == (EXACT_REGION, CKS)
    assert (best.order, cks.order) == (None, 2.0)
    assert best.value < cks.value
    # a pure guarantee derived from the curve is no profile of the mechanism
    both = epsilon_from_rdp(RDPCurve({2: 0.5, math.inf: 1.4}), LOG(0.02), "best")
    assert both.rule == EXACT_REGION


@pytest.mark.parametrize("base", [Gaussian(1.0), Laplace(0.5), PureDP(1.5), ZCDP(0.1), RDPCurve({2: 0.5})])
def test_slack_mixes_into_delta(base):
    # outside an event of probability s: delta = s + (1-s) delta'
    mixed = compose(base, ApproxDP(0.0, 0.01))
    for rule in ("mironov", "cks", "exact", "best"):
        inner = math.exp(delta_from_rdp(base, 1.0, rule).value)
        found = delta_from_rdp(mixed, 1.0, rule)
        assert math.exp(found.value) == pytest.approx(0.01 + 0.99 * inner, rel=1e-5)
    assert math.exp(delta_at(mixed, 1.0).value) == pytest.approx(
        0.01 + 0.99 * math.exp(delta_at(base, 1.0).value), rel=1e-5
    )


def image_of_order_two(u: np.ndarray, rdp: float) -> np.ndarray:
    """Largest v with ``v²/u + (1-v)²/(1-u)`` and ``u²/v + (1-u)²/(1-v)`` at most ``e^rdp``: two quadratics."""
    c = math.expm1(rdp)
    one = u + np.sqrt(c * u * (1.0 - u))
    p = 2.0 * u + c
    other = (p + np.sqrt(np.maximum(p * p - 4.0 * (1.0 + c) * u * u, 0.0))) / (2.0 * (1.0 + c))
    return np.minimum(np.minimum(one, other), 1.0)


def highest(objective) -> float:
    """Largest value over u in (0, 1] of a function with one peak, its grid refined about it."""
    grid = np.concatenate([np.exp(np.linspace(-40.0, -1.0, 4000)), np.linspace(0.37, 1.0, 4000)])
    for _ in range(4):
        with np.errstate(divide="ignore"):
            best = int(np.argmax(objective(grid)))
        grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)], 4000)
    return float(np.max(objective(grid)))


def known_at_two(rdp: float, base: bool):
    if base:
        return RDPCurve({2: rdp})
    return RenyiCurve(lambda a: np.where(a <= 2.0, rdp, math.inf), np.array([2.0]))


@pytest.mark.parametrize("rule", ["exact", "best"])
@pytest.mark.parametrize("base", [True, False])
@pytest.mark.parametrize("rdp", [1e-3, 0.5, 3.0])
def test_best_epsilon_of_order_two_in_closed_form(rdp, base, rule):
    for delta in (1e-7, 1e-3, 0.03, 0.4, 0.9):
        true = highest(lambda u: np.log(np.maximum(image_of_order_two(u, rdp) - delta, 0.0) / u))
        answer = epsilon_from_rdp(known_at_two(rdp, base), LOG(delta), rule)
        assert max(true, 0.0) - 1e-9 <= answer.value <= max(true, 0.0) + 1e-5


@pytest.mark.parametrize("rule", ["exact", "best"])
@pytest.mark.parametrize("base", [True, False])
@pytest.mark.parametrize("rdp", [1e-3, 0.5, 3.0])
def test_best_delta_of_order_two_in_closed_form(rdp, base, rule):
    for epsilon in (0.0, 0.3, 2.0, 7.0):
        true = highest(lambda u: image_of_order_two(u, rdp) - math.exp(epsilon) * u)
        answer = delta_from_rdp(known_at_two(rdp, base), epsilon, rule)
        assert true * (1.0 - 1e-9) <= math.exp(answer.value) <= true * (1.0 + 1e-5)
        assert answer.rule == EXACT_REGION


@pytest.mark.parametrize("rho", [1e-3, 0.1, 2.0])
def test_region_of_a_curve_known_at_every_order(rho):
    # a whole search's curve is read at a table of orders, which costs little
    curve = RenyiCurve(lambda a: rho * a)
    for delta in (1e-6, 0.01, 0.2):
        base, table = (epsilon_from_rdp(g, LOG(delta), "exact").value for g in (ZCDP(rho), curve))
        assert base - 1e-9 <= table <= base * (1.0 + 2e-3) + 1e-9
    base, table = (delta_from_rdp(g, 3.0 * rho, "exact").value for g in (ZCDP(rho), curve))
    assert base - 1e-9 <= table <= base + 1e-2


def test_regions_of_curves_that_know_nothing_or_lose_nothing():
    # knows nothing, or sets everything free
    for unknown in (RenyiCurve(lambda a: np.full(np.shape(a), math.inf)), flat(math.inf)):
        assert epsilon_from_rdp(unknown, LOG(0.1), "exact").value == math.inf
        assert delta_from_rdp(unknown, 1.0, "exact").value == 0.0
    assert delta_from_rdp(ZCDP(0.0), 0.5, "exact").value == -math.inf
    assert epsilon_from_rdp(ZCDP(0.0), LOG(0.1), "exact").value == 0.0


@pytest.mark.parametrize("root", [1e-16, 1e-15, 3e-10, 0.7, 1.0, 5e5, 2e14, 8e14, 3e15, 1e77, 1e299])
def test_profile_inverse_over_the_whole_range(root):
    for log_profile in (
        lambda t: -t / root,
        lambda t: -(np.minimum(t / root, 1e9) ** 2),
        lambda t: np.where(t < root, 0.0, -2.0),
    ):
        answer = epsilon_from_profile(log_profile, -1.0)
        assert answer == pytest.approx(root, rel=1e-14)
        assert log_profile(np.array([answer]))[0] <= -1.0  # from the side that meets it


def test_profile_inverse_trusts_no_lucky_point():
    # rises above delta again after a dip
    for low, high in ((0.1, 0.2), (0.25, 0.27), (0.23, 0.29)):
        answer = epsilon_from_profile(lambda t: np.where((t > low) & (t < high) | (t >= 0.3), -9.0, -0.5), -1.0)
        assert answer == pytest.approx(0.3, rel=1e-14)
    assert epsilon_from_profile(lambda t: np.where(t < 0.3, math.nan, -9.0), -1.0) == pytest.approx(0.3, rel=1e-14)
    # met with equality
    assert epsilon_from_profile(lambda t: np.full_like(t, -1.0), -1.0) == 0.0


def test_one_run_says_why_nothing_is_finite():
    for base, rule, why in (
        (ApproxDP(0.5, 1e-3), "best", "base alone fails with probability 0.001"),
        (ApproxDP(0.5, 1e-6), "cks", "base alone fails"),
        (compose(Gaussian(3.0), ApproxDP(0.1, 1e-7)), "best", "base alone fails"),  # all of delta is spent
        (ProfileCurve({1.0: 1e-5}), "best", "base alone fails with probability 1e-05"),
        (ZCDP(math.inf), "exact", "no finite privacy guarantee"),
        (Mixture((compose(ProfileCurve({1.0: 1.0}), RDPCurve({2.0: 0.1})), ZCDP(0.1))), "best", "no finite privacy"),
        (compose(ZCDP(0.1), ApproxDP(0.0, 1e-7)), "best", "base alone fails with probability 1e-07"),
    ):
        with pytest.raises(NoFiniteBound, match=why):
            epsilon_at(base, LOG(1e-7), rule)
    with pytest.raises(NoFiniteBound, match="delta 1e-07"):
        epsilon_at(ZCDP(math.inf), LOG(1e-7))
    # where the base fails as often as delta allows, what is left is delta = 0
    assert epsilon_at(ApproxDP(0.5, 1e-7), LOG(1e-7)).value == 0.5


def test_one_run_by_its_own_rules():
    # a profile of its own
    for rule in ("best", "exact"):
        answer = delta_at(Gaussian(1.0), 1.0, rule)
        with mp.workdps(40):
            assert answer.value == pytest.approx(float(mp.log(gaussian_profile(1.0, mp.mpf(1)))), rel=1e-13)
        assert answer.rule == EXACT_PROFILE
        assert epsilon_at(Gaussian(1.0), LOG(1e-5), rule).rule == EXACT_PROFILE
    assert delta_at(Gaussian(1.0), 1.0, "cks").rule == CKS
    assert delta_at(Gaussian(0.0), 1.0).value == 0.0
    assert epsilon_at(ZCDP(0.1), LOG(0.1)).rule == delta_at(ZCDP(0.1), 0.1).rule == EXACT_REGION
    for epsilon in (-1e-9, math.inf, math.nan):
        with pytest.raises(InvalidInput, match="^epsilon: "):
            convert(Gaussian(1.0), epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, math.pi, 50.0])
def test_a_pure_guarantee_is_never_exceeded_by_its_profile(epsilon):
    for log_delta in (-5.0, -50.0, -1e3, -1e300):
        assert 0.0 < epsilon_at(PureDP(epsilon), log_delta).value <= epsilon


def test_nan_never_wins_the_search_over_orders():
    def partly(a):
        return np.where(a < 3.0, math.nan, a + 10.0 / (a - 1.0))

    value, order = minimise_over_orders(partly, None)
    assert value == pytest.approx(1.0 + 2.0 * math.sqrt(10.0), rel=1e-12)
    assert order == pytest.approx(1.0 + math.sqrt(10.0), rel=5e-7)  # to seven digits
    assert minimise_over_orders(partly, np.array([2.0, 4.0, 5.0])) == (4.0 + 10.0 / 3.0, 4.0)
    assert minimise_over_orders(partly, np.array([2.0, math.inf])) == (math.inf, None)
