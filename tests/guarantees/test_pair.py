"""A finite dominating pair answers what its two laws say, outcome by outcome."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from enumerated import ORDERS, as_pair, divergence, excess, exchanged, random_two, renyi

from hpcalc.errors import InvalidInput
from hpcalc.guarantees import Gaussian, PureDP, compose
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.search import composed, pair_of
from hpcalc.logspace import Prob


def test_profile_is_the_hockey_stick_divergence_of_the_two_laws(rng):
    for _ in range(150):
        two = random_two(rng)
        found = excess(as_pair(two), two)
        assert (found > -1e-12).all()
        assert (found < 1e-4).all()  # 1e-14 above in sums that are themselves below 1e-9


def test_profile_keeps_its_digits_far_below_what_a_double_can_tell_from_1():
    # orders 1e-30 and 1e30 apart: 1 - a (1 - delta) would have no digits of delta left
    loss = np.array([-70.0, 0.0, 65.0])
    log_p = np.array([-72.0 - 70.0, math.log1p(-math.exp(-66.0)), -66.0])
    pair = DominatingPair(loss, log_p, log_p - loss)
    for direction, sign in ((0, 1.0), (1, -1.0)):
        for t in (1.0, 20.0, 60.0, 64.9, 66.0, 69.0):
            p, q = ([mp.exp(x) for x in log_mass] for log_mass in (log_p.tolist(), (log_p - loss).tolist()))
            p, q = (p, q) if sign > 0 else (q, p)
            true = sum(max(a - mp.exp(t) * b, mp.mpf(0)) for a, b in zip(p, q, strict=True))
            found = float(pair.log_profile_of(direction, t))
            assert found == pytest.approx(float(mp.log(true)) if true else -math.inf, abs=1e-12)


def test_renyi_divergence_is_an_upper_bound_to_ten_digits(rng):
    for _ in range(100):
        two = random_two(rng, zeros=0.0)
        pair = as_pair(two)
        for order in (1.001, 1.5, 2.0, 17.0, 1e4):
            true = max(renyi(two, order), renyi(exchanged(two), order))
            if math.isfinite(true):
                found = float(pair.rdp(order))
                assert true - 1e-13 / (order - 1.0) <= found <= true * (1.0 + 1e-9) + 1e-9
        assert float(pair.rdp(math.inf)) == pair.pure_epsilon


def test_outcomes_of_one_law_alone_leave_no_renyi_curve_but_a_core_that_has_one():
    pair = as_pair((np.array([0.5, 0.499, 0.001]), np.array([0.499, 0.501, 0.0])))
    assert float(pair.rdp(2.0)) == math.inf
    assert pair.slack == pytest.approx(0.001)
    assert math.isfinite(float(pair.core.rdp(2.0)))


def test_what_is_left_of_the_slack_dominates(rng):
    for _ in range(100):
        two = random_two(rng, zeros=0.9)
        pair = as_pair(two)
        assert (pair.reversed().log_profile_of(0, np.log(ORDERS)) == pair.log_profile_of(1, np.log(ORDERS))).all()
        for direction, laws in enumerate((two, exchanged(two))):
            core = pair.core.log_profile_of(direction, np.log(ORDERS))
            whole = pair.slack + (1.0 - pair.slack) * np.exp(core)
            assert (whole >= np.array([divergence(laws, order) for order in ORDERS]) - 1e-12).all()


def test_tradeoff_points_are_events_of_the_two_laws_in_neyman_pearson_order(rng):
    for _ in range(100):
        two = random_two(rng)
        for direction, (p, q) in enumerate((two, exchanged(two))):
            curve = as_pair(two).tradeoff(direction)
            with np.errstate(divide="ignore"):
                order = np.argsort(np.where(p > 0.0, q / np.maximum(p, 1e-300), np.inf), kind="stable")
            order = order[p[order] > 0.0]
            np.testing.assert_allclose(curve.x.u, np.append(0.0, np.cumsum(p[order])), atol=1e-12)
            np.testing.assert_allclose(curve.w.u, np.append(0.0, np.cumsum(q[order])), atol=1e-12)
            np.testing.assert_allclose(np.exp(curve.x.log_q), 1.0 - curve.x.u, atol=1e-12)
            assert curve.attained
            # each line lies nowhere above the curve
            lines = curve.w.u[:, None] + np.exp(curve.log_slope)[:, None] * (curve.x.u[None] - curve.x.u[:, None])
            assert (lines <= curve.w.u[None] + 1e-9).all()


@pytest.mark.slow
def test_region_contains_every_event_of_either_direction(rng):
    for _ in range(100):
        two = random_two(rng)
        pair = as_pair(two)
        for p, q in (two, exchanged(two)):
            for event in range(1, 2 ** len(p) - 1):
                some = np.array([event >> i & 1 for i in range(len(p))], dtype=bool)
                allowed = pair.region(Prob.from_u(np.array([min(q[some].sum(), 1.0)])))
                assert p[some].sum() <= allowed.u[0] + 1e-12


def test_pairs_compose_with_everything_and_are_laws():
    pair = pair_of(Gaussian(2.0))
    assert pair.symmetric
    both, alone = compose(pair, PureDP(0.5)), composed(pair, pair_of(PureDP(0.5)))
    np.testing.assert_allclose(*(base.log_profile(np.array([0.2, 1.0, 2.0])) for base in (both, alone)), atol=0.01)
    with pytest.raises(InvalidInput, match="sum to 1"):
        DominatingPair.from_masses(np.log([0.5, 0.4]), np.log([0.5, 0.5]))
