"""Guarantees of one run: Rényi curve, privacy profile and region against mpmath, closed forms and brute force."""

from __future__ import annotations

import itertools
import math
import random

import exact
import mpmath as mp
import numpy as np
import pytest

from hpcalc.conversion import epsilon_at
from hpcalc.errors import InvalidInput
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Laplace, ProfileCurve, PureDP, RDPCurve, compose, repeat
from hpcalc.guarantees.composition import Composition
from hpcalc.guarantees.convolved import Convolution
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.guarantees.guarantee import Guarantee
from hpcalc.logspace import Prob

mpf = mp.mpf
LOSSES = [1e-9, 1e-4, 0.05, 1.0, 7.0, 100.0]
ORDERS = [1.0 + 1e-15, 1.0 + 1e-9, 1.001, 1.5, 2.0, 7.3, 64.0, 1e4, 1e12]

PLAIN: list[Guarantee] = [
    *(PureDP(x) for x in LOSSES),
    *(Gaussian(1.0 / x) for x in LOSSES),
    *(Laplace(1.0 / x) for x in LOSSES),
    *(ApproxDP(x, d) for x in LOSSES for d in (1e-12, 0.01)),
]
CURVES: list[Guarantee] = [
    *(ZCDP(x) for x in (1e-8, 1e-3, 0.1, 1.0, 20.0)),
    RDPCurve({2.0: 0.5}),
    RDPCurve({1.5: 0.2, 2.0: 0.3, 8.0: 1.0, 64.0: 9.0}),
    RDPCurve({2.0: 1.0, math.inf: 1.2}),
    RDPCurve({math.inf: 0.7}),
]
MORE: list[Guarantee] = [
    ProfileCurve({0.0: 0.3, 0.5: 0.1, 1.0: 1e-3, 2.0: 1e-9}),
    ProfileCurve({0.5: 0.1, 1.0: 0.0}),
    ProfileCurve({1.0: 1e-6}),
    compose(Gaussian(2.0), Gaussian(1.0)),
    compose(ZCDP(0.1), Gaussian(2.0), ApproxDP(0.5, 1e-6)),
    compose(Gaussian(1.0), ApproxDP(0.0, 0.01)),
    compose(ApproxDP(0.5, 1e-6), ApproxDP(0.1, 1e-3)),
    repeat(ZCDP(0.01), 7),
    DPSGD(0.01, 0.8, 100),
]
EVERYTHING = [*PLAIN, *CURVES, *MORE]


def pairs() -> Prob:
    """Ranks over the whole range, both tails."""
    z = np.concatenate([-np.geomspace(1e3, 0.1, 25), [0.0], np.geomspace(0.1, 700.0, 25)])
    return Prob.from_logit(z)


@pytest.mark.parametrize("base", [b for b in PLAIN if not isinstance(b, ApproxDP)], ids=repr)
def test_divergence_against_mpmath(base):
    found = base.rdp(np.array(ORDERS))
    for order, value in zip(ORDERS, found, strict=True):
        true = exact.rdp(base, order)
        assert abs(mpf(float(value)) - true) <= mpf("1e-12") * true, order
    if base.pure_epsilon < math.inf:
        assert base.rdp(math.inf) == base.pure_epsilon
    assert np.all(np.diff(found) >= -4e-15 * found[1:])  # the divisions by order - 1 round


def test_divergence_of_zcdp_and_slack():
    assert ZCDP(0.1).rdp([2.0, math.inf]).tolist() == [0.2, math.inf]
    assert ZCDP(0.0).rdp([2.0, math.inf]).tolist() == [0.0, 0.0]
    assert ApproxDP(1.0, 1e-9).rdp(2.0) == math.inf
    assert ApproxDP(1.0, 0.0).rdp(2.0) == PureDP(1.0).rdp(2.0)
    assert compose(ZCDP(0.1), ApproxDP(0.0, 1e-9)).rdp(2.0) == math.inf
    assert compose(ZCDP(0.1), ApproxDP(0.0, 1e-9)).core.rdp(2.0) == pytest.approx(0.2)


@pytest.mark.parametrize("base", PLAIN, ids=repr)
def test_profile_against_mpmath(base):
    loss = float(exact.loss_of(base))
    spread = loss if isinstance(base, Gaussian) else 0.2 * loss
    times = [0.0, 0.1 * loss, 0.999 * loss, *(loss * loss / 2.0 + x * spread for x in (0.5, 1.0, 3.0, 10.0, 35.0))]
    found = base.log_profile(np.array(times))
    for t, value in zip(times, found, strict=True):
        true = exact.log_profile(base, t)
        if mp.isinf(true) or mp.isinf(mpf(float(value))):
            assert float(value) == float(true), t
        else:
            # the distance t - loss, on which the pure profile depends, has the rounding of t
            near = 1e-15 * (1.0 + loss / abs(t - loss)) if not isinstance(base, Gaussian) else 1e-14
            assert abs(mpf(float(value)) - true) <= mpf("3e-12") * max(1, abs(true)) + mpf(near), t


def test_profile_of_negative_arguments():
    for base in (*PLAIN[1::3], ZCDP(0.1), compose(Gaussian(1.0), ApproxDP(0.1, 1e-3))):
        t = np.array([0.01, 0.5, 3.0])
        forward, backward = np.exp(base.log_profile(t)), np.exp(base.log_profile(-t))
        assert backward == pytest.approx(1.0 - np.exp(-t) * (1.0 - forward), rel=1e-12)
        assert base.log_profile(np.array([-math.inf]))[0] == 0.0


@pytest.mark.parametrize("base", [b for b in PLAIN if not isinstance(b, Gaussian)], ids=repr)
def test_region_against_mpmath(base):
    rank = pairs()
    image = base.region(rank)
    for log_u, log_q, log_v, log_qv in zip(*(x.tolist() for x in (*rank, *image)), strict=True):
        u, q = exact.rank(log_u, log_q)
        v, qv = exact.region(base, u, q)
        for found, true in ((log_v, v), (log_qv, qv)):
            if true <= 0:
                assert found < -30.0 or found == -math.inf
            else:
                spread = 1 if u < 0.99 or not isinstance(base, ApproxDP) else 1 / float(abs(q - base.delta) + 1e-18)
                assert abs(mpf(found) - mp.log(true)) <= mpf("2e-12") * (1 + abs(mp.log(true))) * spread, (log_u, log_q)


@pytest.mark.parametrize("sigma", [0.02, 0.5, 1.0, 3.0, 1e3, 1e9])
def test_region_of_the_gaussian(sigma):
    x = np.array([-37.0, -20.0, -5.0, -1.0, 0.0, 1.0, 5.0, 20.0, 37.0])
    image = Gaussian(sigma).region(Prob.from_normal(x))
    for score, log_v, log_qv in zip(x, image.log_u, image.log_q, strict=True):
        moved = mpf(float(score)) + 1 / mpf(sigma)
        for found, true in ((log_v, exact.log_phi(moved)), (log_qv, exact.log_phi(-moved))):
            assert abs(mpf(float(found)) - true) <= mpf("1e-13") * (1 + moved**2)


@pytest.mark.parametrize("base", EVERYTHING, ids=repr)
def test_region_is_concave_increasing_and_above_u(base):
    rank = Prob.from_normal(np.linspace(-9.0, 9.0, 73))
    image = base.region(rank)
    assert np.all(image.log_u >= rank.log_u)
    assert np.all(image.log_q <= rank.log_q)
    assert not np.isnan(image.log_u).any()
    v, u = np.exp(image.log_u), np.exp(rank.log_u)
    tolerance = 3e-6 if base.region_tolerance > 1e-12 else 1e-12
    assert np.all(np.diff(image.log_u) >= -tolerance)
    left = (v[1:-1] - v[:-2]) * (u[2:] - u[1:-1])
    right = (v[2:] - v[1:-1]) * (u[1:-1] - u[:-2])
    assert np.all(left >= right - tolerance * v[2:] * (u[2:] - u[:-2]))
    # one neighbour may take the other's place: 1 - u is in the image of 1 - v
    back = base.region(image.complement())
    assert np.all(back.log_u >= rank.log_q - (3e-4 if base.slack else 1e-5) - 1e-12 * np.abs(rank.log_q))
    ends = base.region(Prob(np.array([-np.inf, 0.0]), np.array([0.0, -np.inf])))
    assert ends.log_u[1] == pytest.approx(0.0, abs=1e-15)
    assert ends.log_q[1] == -math.inf
    # what a table of losses does not follow, and rounding of a profile's points, count as given away
    least = math.log(base.slack) if base.slack else -math.inf
    assert ends.log_u[0] == pytest.approx(least) or isinstance(base, ProfileCurve) or ends.log_u[0] < -60.0


@pytest.mark.parametrize("base", EVERYTHING, ids=repr)
def test_profile_falls_and_is_convex_in_the_odds(base):
    t = np.linspace(0.0, 6.0, 61)
    delta = np.exp(base.log_profile(t))
    assert not np.isnan(delta).any()
    assert np.all((delta >= 0.0) & (delta <= 1.0))
    assert np.all(np.diff(delta) <= 1e-15)
    odds = np.exp(t)
    if base.exact_profile:
        slope = np.diff(delta) / np.diff(odds)
        assert np.all(np.diff(slope) >= -1e-10)


@pytest.mark.parametrize("base", EVERYTHING, ids=repr)
def test_profile_and_region_agree(base):
    """``sup_u V(u) - e^t u`` is the profile where both are the mechanism's own, and at most it elsewhere."""
    count = 4001 if base.exact_profile else 301
    u = Prob.from_normal(np.linspace(-12.0, 12.0, count))
    v = base.region(u)
    for t in (0.0, 0.3, 1.0, 2.5):
        best = float(np.max(np.exp(v.log_u) - np.exp(t + u.log_u)))
        bound = math.exp(float(base.log_profile(t)))
        assert best <= bound * (1.0 + 1e-4) + 1e-13  # a region follows fewer points of a convolved profile
        if base.exact_profile:
            assert best >= bound - 5e-3  # the nodes miss corners by at most half a step


def test_echo():
    assert PureDP(1).describe() == {"pure": 1.0}
    assert ApproxDP(1.0, 1e-9).describe() == {"approx_dp": [1.0, 1e-9]}
    assert RDPCurve({2.0: 1.0}).describe() == {"rdp": [[2.0, 1.0]]}
    assert compose(ZCDP(0.1), ZCDP(0.2), Laplace(3.0)).describe() == {"zcdp": [0.1, 0.2], "laplace": 3.0}
    assert repeat(Gaussian(4.0), 12).describe() == {"gaussian": 4.0, "compose": 12}


def log_binary_moment(order: np.ndarray, p: float, r: float) -> np.ndarray:
    """``log sum p^a r^(1-a)`` over an event and its complement."""
    return np.logaddexp(
        order * math.log(p) + (1.0 - order) * math.log(r), order * math.log1p(-p) + (1.0 - order) * math.log1p(-r)
    )


@pytest.mark.parametrize("base", [ZCDP(0.01), ZCDP(0.3), *CURVES[5:]], ids=repr)
def test_region_from_renyi_by_brute_force(base):
    """Largest v with every order's constraint met in both directions, on a fine grid of orders."""
    orders = 1.0 + np.exp(np.linspace(-7.0, 7.0, 1121)) if base.orders is None else base.orders
    budget = (orders - 1.0) * base.rdp(orders)
    for u in (1e-9, 1e-4, 0.03, 0.4, 0.9, 0.999):
        low, high = u, 1.0 - 1e-14
        for _ in range(60):
            mid = 0.5 * (low + high)
            fine = np.all(log_binary_moment(orders, mid, u) <= budget + 1e-13) and np.all(
                log_binary_moment(orders, u, mid) <= budget + 1e-13
            )
            low, high = (mid, high) if fine else (low, mid)
        if base.pure_epsilon < math.inf:
            low = min(low, math.exp(base.pure_epsilon) * u, 1.0 - math.exp(-base.pure_epsilon) * (1.0 - u))
        found = float(base.region(Prob.from_u(np.array([u]))).u[0])
        # a grid of orders allows a little more than all of them do; the product, at most its tolerance more than they
        assert found == pytest.approx(low, rel=3e-5)
        assert found <= low * (1.0 + 1e-6)


def test_profile_of_a_curve_uses_the_best_order():
    for rho in (1e-3, 0.1, 3.0):
        for t in (0.01, 1.0, 8.0):

            def score(order: mp.mpf, rho: float = rho, t: float = t) -> mp.mpf:
                return exact.cks_log_delta(order, mpf(rho) * order, mpf(t))

            start = 1.0 + max(t / (2.0 * rho), 1e-3)
            true = min(mpf(0), exact.least(score, start, 6.0))
            found = mpf(float(ZCDP(rho).log_profile(t)))
            assert true - mpf("1e-10") <= found <= true + mpf("1e-8") + abs(true) * mpf("1e-10")


def test_curve_between_its_points():
    curve = RDPCurve({2.0: 1.0, 4.0: 1.5, 8.0: 1.4})
    # a later smaller value bounds earlier orders too
    assert curve.rdp([4.0, 8.0]).tolist() == [1.4, 1.4]
    # chord of (order-1) rdp, never above the next value
    assert curve.rdp(3.0) == pytest.approx(0.5 * (1.0 + 3.0 * 1.4) / 2.0)
    assert curve.rdp(1.0 + 1e-9) == pytest.approx(1.0)
    assert curve.rdp([9.0, math.inf]).tolist() == [math.inf, math.inf]
    # a convex curve is never undercut between its points
    truth = PureDP(2.0)
    grid = [1.3, 2.0, 3.5, 11.0]
    sampled = RDPCurve({a: float(truth.rdp(a)) for a in grid})
    between = np.linspace(1.01, 11.0, 200)
    assert np.all(sampled.rdp(between) >= truth.rdp(between) * (1.0 - 1e-12))


def test_curve_with_an_infinite_order_is_pure():
    curve = RDPCurve({2.0: 1.0, math.inf: 1.0})
    assert curve.pure_epsilon == 1.0
    assert curve.rdp([2.0, 1e9]) == pytest.approx([float(PureDP(1.0).rdp(2.0)), 1.0])
    # published case: order 2 alone would say 11.1266311 here
    assert epsilon_at(curve, math.log(1e-5)).value <= 1.0 + 1e-12
    assert epsilon_at(RDPCurve({2.0: 1.0}), math.log(1e-5), "cks").value == pytest.approx(11.1266311, abs=1e-7)


def test_points_of_a_profile():
    known = ProfileCurve({0.0: 0.3, 1.0: 0.1, 2.0: 1e-3})
    for t, delta in ((0.0, 0.3), (1.0, 0.1), (2.0, 1e-3), (9.0, 1e-3)):
        assert math.exp(float(known.log_profile(t))) == pytest.approx(delta, rel=1e-14)
    # chord in e^t
    share = (math.exp(1.4) - math.exp(1.0)) / (math.exp(2.0) - math.exp(1.0))
    assert math.exp(float(known.log_profile(1.4))) == pytest.approx(0.1 + share * (1e-3 - 0.1), rel=1e-12)
    assert ProfileCurve({1.0: 0.0}).pure_epsilon == 1.0
    # below the first point the chord ends in its mirror image: at t = 0 both halves of e^t weigh 1/(1+e)
    assert math.exp(float(ProfileCurve({1.0: 0.1}).log_profile(0.0))) == pytest.approx(
        (0.1 + math.e * (1.0 - 0.9 / math.e)) / (1.0 + math.e), rel=1e-12
    )


def test_sampled_profile_never_undercuts_its_source():
    rng = random.Random(8)
    for source in (Gaussian(1.0), Laplace(2.0), ApproxDP(1.0, 1e-3)):
        for _ in range(20):
            points = sorted(rng.uniform(0.0, 4.0) for _ in range(rng.randint(1, 9)))
            known = ProfileCurve({t: math.exp(float(source.log_profile(t))) for t in points})
            t = np.linspace(0.0, 6.0, 100)
            assert np.all(np.exp(known.log_profile(t)) >= np.exp(source.log_profile(t)) - 1e-13)
            rank = pairs()
            assert np.all(known.region(rank).log_u >= source.region(rank).log_u - 1e-12)
            assert np.all(known.region(rank).log_q <= source.region(rank).log_q + 1e-12)


def test_gaussians_merge():
    both = compose(Gaussian(2.0), Gaussian(1.0))
    merged = Gaussian(1.0 / math.sqrt(1.0 / 4.0 + 1.0))
    t = np.linspace(0.0, 9.0, 10)
    assert both.log_profile(t) == pytest.approx(merged.log_profile(t), rel=1e-12)
    assert repeat(Gaussian(2.0), 4).core == Gaussian(1.0)
    assert epsilon_at(repeat(Gaussian(2.8284271247), 5), math.log(1e-5)).value == pytest.approx(3.341409469, abs=1e-9)


def test_what_composes_to_one_of_its_kind():
    both = compose(ZCDP(0.1), Gaussian(2.0), ZCDP(0.05))
    assert both.core == ZCDP(both.zcdp_rho) == ZCDP(math.fsum([0.1, 0.125, 0.05]))
    one = compose(compose(ZCDP(0.1), ZCDP(0.2)), ZCDP(0.3))
    assert isinstance(one, Composition)
    assert len(one.parts) == 3
    assert repeat(repeat(ZCDP(0.1), 2), 3).zcdp_rho == pytest.approx(0.6)
    assert compose(ZCDP(0.1)) == repeat(ZCDP(0.1), 1) == ZCDP(0.1)
    alone = Composition(((ApproxDP(1.0, 1e-6), 1),))
    assert alone.core == PureDP(1.0)
    assert repeat(PureDP(0.0), 5).warnings == ()


def test_slack_of_parts_is_set_aside_together():
    parts = (ApproxDP(0.5, 1e-6), ApproxDP(0.1, 1e-3), Gaussian(3.0))
    both = compose(*parts)
    with mp.workdps(40):
        true = 1 - (1 - mpf(1e-6)) * (1 - mpf(1e-3))
        assert abs(mpf(both.slack) - true) < mpf("1e-18")
    assert repeat(ApproxDP(0.0, 1e-9), 1000).slack == pytest.approx(-math.expm1(1000 * math.log1p(-1e-9)), rel=1e-14)
    assert both.core.slack == 0.0
    inner = compose(PureDP(0.5), PureDP(0.1), Gaussian(3.0))
    orders = np.array([1.5, 2.0, 8.0])
    assert both.core.rdp(orders) == pytest.approx(inner.rdp(orders))


def test_mixed_curves_add():
    both, orders = compose(ZCDP(0.1), PureDP(0.5), Laplace(3.0)), np.array([1.5, 2.0, 8.0])
    assert both.rdp(orders) == pytest.approx(sum(part.rdp(orders) for part, _ in both.parts))
    given = compose(RDPCurve({2.0: 1.0, 4.0: 1.5}), RDPCurve({2.0: 0.1, 3.0: 0.2}), ZCDP(0.1))
    assert given.orders is not None
    # order 4 is beyond what the second part knows
    assert (set(given.orders.tolist()) > {2.0, 3.0}, max(given.orders)) == (True, 3.0)
    assert given.rdp(2.0) == pytest.approx(1.0 + 0.1 + 0.2)
    far = compose(RDPCurve({1.1: 0.1, 64.0: 6.0}), ZCDP(0.1))  # the best order lies between
    one_order = [epsilon_at(far, -20.0, "cks", np.array([order])).value for order in (1.1, 5.0, 8.0, 11.0, 15.0, 64.0)]
    assert epsilon_at(far, -20.0).value <= min(one_order) * 1.001 < 0.5 * max(one_order[0], one_order[-1])


def test_known_values():
    # optimum past the end of a grid, large losses, large budgets, deep tails
    for sigma, delta, value in ((50.0, 1e-6, 0.0709606830), (0.05, 1e-5, 284.3918495), (1.0, 1e-5, 4.377178096)):
        assert epsilon_at(Gaussian(sigma), math.log(delta)).value == pytest.approx(value, rel=1e-9)
    assert math.exp(float(Gaussian(0.4998886197).log_profile(10.0))) == pytest.approx(1e-5, rel=1e-7)
    assert math.exp(float(Gaussian(0.4845).log_profile(10.0))) > 2e-5
    assert float(Gaussian(1.0).log_profile(50.0)) / math.log(10.0) == pytest.approx(-535.8625342, abs=1e-7)
    assert float(ZCDP(0.5).log_profile(38.0)) / math.log(10.0) == pytest.approx(-307.3775234, abs=1e-6)
    assert float(ZCDP(0.5).log_profile(50.0)) / math.log(10.0) == pytest.approx(-534.1983712, abs=1e-6)
    # pure DP: never eps^2 order / 8
    assert PureDP(1.0).rdp([2.0, 64.0]) == pytest.approx([0.7353256641, 0.9950276], abs=1e-7)
    assert PureDP(1.0).zcdp_rho == pytest.approx(0.46211715726)
    assert Gaussian(2.0).zcdp_rho == 0.125
    assert Laplace(2.0).pure_epsilon == 0.5


@pytest.mark.parametrize("sigma", [1e-3, 2.0, 1e4])
def test_a_gaussian_profile_far_out_is_small_and_not_zero(sigma):
    scores = np.array([1e6 * (1.0 - 1e-9), 1e6 * (1.0 + 1e-9), 1e9, 1e60])
    log_delta = Gaussian(sigma).log_profile(scores / sigma)
    assert log_delta == pytest.approx(-0.5 * scores**2, rel=1e-2)
    assert np.all(np.diff(log_delta) < 0.0)


def test_zcdp_of_randomized_response_is_its_exact_constant():
    orders = 1.0 + np.geomspace(1e-6, 1e6, 400)
    for eps in (1e-3, 0.5, 2.0, 20.0):
        assert np.all(PureDP(eps).rdp(orders) <= PureDP(eps).zcdp_rho * orders * (1.0 + 1e-12))
        assert np.all(Laplace(1.0 / eps).rdp(orders) <= Laplace(1.0 / eps).zcdp_rho * orders * (1.0 + 1e-12))


def test_nothing_and_everything():
    rank = pairs()
    for nothing in (PureDP(0.0), ZCDP(0.0)):
        assert nothing.region(rank).log_u == pytest.approx(rank.log_u)
        assert nothing.log_profile(0.0) == -math.inf
        assert nothing.finite
    for everything in (PureDP(math.inf), ZCDP(math.inf), Gaussian(0.0), Laplace(0.0), ApproxDP(1.0, 1.0)):
        assert np.all(everything.region(rank).log_u == 0.0)
        assert everything.log_profile(5.0) == 0.0
        assert not everything.finite
        assert everything.region(Prob(np.array([-np.inf]), np.array([0.0]))).log_u[0] in (-math.inf, 0.0)
    unknown = RDPCurve({2.0: math.inf})
    assert np.all(unknown.log_profile(np.array([0.0, 1.0, 1e6])) == 0.0)
    assert not unknown.finite


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: PureDP(x), "pure"),
        (lambda x: ZCDP(x), "zcdp"),
        (lambda x: Gaussian(x), "gaussian"),
        (lambda x: Laplace(x), "laplace"),
        (lambda x: ApproxDP(x, 1e-6), "approx_dp"),
        (lambda x: ApproxDP(1.0, x), "approx_dp"),
        (lambda x: RDPCurve({2.0: x}), "rdp"),
        (lambda x: RDPCurve({x: 1.0}), "rdp"),
        (lambda x: ProfileCurve({x: 0.1}), "profile"),
        (lambda x: ProfileCurve({1.0: x}), "profile"),
        (lambda x: repeat(ZCDP(0.1), x), "compose"),
    ],
)
@pytest.mark.parametrize("value", [math.nan, -1.0, "x", None, True, -math.inf])
def test_wrong_numbers_name_their_option(make, name, value):
    with pytest.raises(InvalidInput) as caught:
        make(value)
    assert caught.value.parameter == name
    assert str(value) in str(caught.value)


@pytest.mark.parametrize("order", [1.0, 0.9, 0.0, -2.0, math.nan])
def test_orders_above_one_only(order):
    for base in (PureDP(1.0), ZCDP(0.1), Gaussian(1.0), Laplace(1.0), RDPCurve({2.0: 1.0})):
        with pytest.raises(InvalidInput, match="orders"):
            base.rdp([2.0, order])
    with pytest.raises(InvalidInput, match="rdp"):
        RDPCurve({order: 1.0})


def test_other_refusals():
    for kind, bad in itertools.product((RDPCurve, ProfileCurve), ({}, [(2.0, 1.0), (2.0, 0.5)])):
        with pytest.raises(InvalidInput, match="give at least|given twice with different"):
            kind(bad)
    assert ProfileCurve([(1.0, 1e-5), (1.0, 1e-5)]).points == ((1.0, 1e-5),)
    for count in (0, 2.5, math.inf):
        with pytest.raises(InvalidInput, match="compose"):
            repeat(ZCDP(0.1), count)
    with pytest.raises(InvalidInput, match="base"):
        compose()


def test_losses_order_the_answers():
    """A larger loss gives a larger divergence, profile and region; zCDP covers the Gaussian of the same rho."""
    rank, t, orders = pairs(), np.linspace(0.0, 5.0, 11), np.array([1.1, 2.0, 30.0])
    families = [
        [PureDP(x) for x in (0.0, 0.1, 1.0, 5.0)],
        [ZCDP(x) for x in (0.0, 0.01, 0.2, 2.0)],
        [Gaussian(x) for x in (100.0, 3.0, 1.0, 0.2)],
        [Laplace(x) for x in (100.0, 3.0, 1.0, 0.2)],
        *([Gaussian(1.0 / math.sqrt(2.0 * rho)), ZCDP(rho)] for rho in (1e-6, 0.005, 0.1, 1.0, 10.0)),
    ]
    for family in families:
        for less, more in itertools.pairwise(family):
            assert np.all(more.rdp(orders) >= less.rdp(orders) * (1.0 - 1e-12))
            assert np.all(more.log_profile(t) >= less.log_profile(t) - 1e-12)
            assert np.all(more.region(rank).log_u >= less.region(rank).log_u - 1e-12)


def test_a_sum_of_pure_parts_keeps_to_their_pure_region():
    base = Convolution(((RDPCurve({math.inf: 0.5}), 1), (Laplace(2.0), 1)))
    rank = Prob.from_normal(np.linspace(-8.0, 5.0, 40))
    found, pure = base.region(rank), PureDP(1.0).region(rank)
    assert np.all(found.log_u <= pure.log_u)
    assert np.all(found.log_q >= pure.log_q)
    assert np.any(found.log_u < pure.log_u - 1e-3)
    assert base.log_profile(np.array([1.0]))[0] == -math.inf


@pytest.mark.parametrize("base", [ZCDP(0.1), ZCDP(20.0)])
def test_regions_beyond_every_grid_are_consistent(base):
    # beyond normal scores of 43 the points are solved among themselves; what they say joins on
    rank = Prob.from_log_u(np.array([-2000.0, -1500.0, -1000.0, -930.0, -900.0, -800.0]))
    image = base.region(rank)
    lo, hi = np.array([1.0001, 5.0, 40.0, 300.0])[:, None], rank.log_u
    allowed = np.min(((lo - 1.0) * base.rdp(lo) + (lo - 1.0) * hi) / lo, axis=0)
    assert np.all(image.log_u <= np.minimum(allowed, 0.0) * (1.0 - 1e-12))
    assert np.all(np.diff(image.log_u) > 0.0)
    assert np.all(image.log_u > rank.log_u)
