"""Losses beyond any grid, below the doubles or next to nothing, and curves at their ends: each was once wrong."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from hpcalc import ZCDP, ApproxDP, Gaussian, Laplace, ProfileCurve, PureDP, RDPCurve, compose
from hpcalc.bounds.renyi import enclosure
from hpcalc.conversion import delta_at, epsilon_at
from hpcalc.guarantees import cks_log_delta, loss_grid
from hpcalc.guarantees.convolved import Convolution
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.laws import Fixed, Poisson
from hpcalc.logspace import Prob
from hpcalc.questions.search_cost import bound

mp.mp.dps = 50


@pytest.mark.slow
def test_a_grid_below_is_a_post_processing():
    """Whatever the outcomes and the step: no divergence grows, in either direction, and no mass is made."""
    rng, once = np.random.default_rng(5), loss_grid.Kinds(np.zeros(1, dtype=int), np.zeros(1), np.ones(1))
    for _ in range(30):
        masses = rng.random((2, rng.integers(1, 7))) ** 3 + 1e-9
        pair = DominatingPair.from_masses(*np.log(masses / masses.sum(axis=1, keepdims=True)))
        losses = loss_grid.downwards([pair], once, 10.0 ** rng.uniform(-3.0, 0.5))
        log_p = losses.log_mass[0]
        log_q = log_p - losses.loss
        assert max(np.exp(log_p).sum(), np.exp(log_q).sum()) <= 1.0 + 1e-10
        for t in np.linspace(-7.0, 7.0, 25):
            for direction, (p, q) in enumerate(((log_p, log_q), (log_q, log_p))):
                below = np.sum(np.maximum(np.exp(p) - np.exp(t + q), 0.0))
                below += max(1.0 - np.exp(p).sum() - np.exp(t) * (1.0 - np.exp(q).sum()), 0.0)
                assert below <= math.exp(float(pair.log_profile_of(direction, t))) + 1e-10


@pytest.mark.slow
# losses beyond any grid; a rare huge loss in a single step
@pytest.mark.parametrize("base", [compose(Gaussian(1e-5), Laplace(1.0)), DPSGD(4e-4, 0.11, 643)], ids=repr)
def test_what_is_not_convolved_has_the_answers_of_its_curve(base):
    epsilon = bound(base, Poisson(3.0), delta=1e-6).epsilon
    assert 0.0 <= epsilon <= bound(base, Poisson(3.0), delta=1e-6, method="paper").epsilon * (1.0 + 1e-9)


@pytest.mark.slow
def test_one_direction_may_need_another_table():
    # with the record a step's loss is rarely huge; without it never is
    base = DPSGD(2.3e-5, 0.2975, 496)
    assert base.core.pair is not None
    assert base.warnings == ()
    rare, usual = DPSGD(0.0025244091504536586, 41.05960752344159, 918), DPSGD(0.0012190333355670908, 0.27, 204)
    both = Convolution(((rare, 1), (usual, 1)))
    log_p, log_q = both.attained_pair.log_p, both.attained_pair.log_q
    for t in (0.0, 0.1, 1.0):
        own = math.log(max(float(np.sum(np.maximum(np.exp(log_p) - np.exp(t + log_q), 0.0))), 1e-300))
        assert own <= float(both.log_profile(np.array([t]))[0]) + 1e-9


def test_no_grid_for_losses_below_the_doubles():
    base = DPSGD(1e-200, 1.0, 10)
    assert base.rdp(2.0) == 0.0
    assert base.core.attained_pair is None
    assert base.core.pair is None
    assert any("Rényi curve is used instead" in warning for warning in base.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [(Laplace(1500.0), Gaussian(1.0)), (PureDP(1e-7), Gaussian(1.0))], ids=repr)
def test_a_part_that_reveals_next_to_nothing_changes_next_to_nothing(parts):
    whole, alone = (bound(base, Fixed(3), delta=1e-5) for base in (compose(*parts), parts[1]))
    assert whole.lower is not None
    assert whole.epsilon == pytest.approx(alone.epsilon, rel=2e-3)
    assert whole.lower.epsilon <= whole.epsilon
    assert whole.epsilon >= alone.lower.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("other", [DPSGD(0.01, 1.0, 100), Gaussian(3.0), Laplace(2.0), RDPCurve({1.01: 1.0})], ids=repr)
def test_a_part_of_huge_loss_keeps_it(other):
    # masses that doubles do not hold were lost, and beside DP-SGD epsilon was 0
    for epsilon in (746.0, 1e7):
        for part in (PureDP(epsilon), ProfileCurve({epsilon: 0.0}), Laplace(1.0 / epsilon), Gaussian(epsilon**-0.5)):
            with np.errstate(over="raise", invalid="raise"):
                whole = epsilon_at(compose(part, other), math.log(1e-5)).value
            assert whole >= epsilon_at(part, math.log(1e-5)).value * (1.0 - 1e-6)


def test_what_is_composed_has_no_smaller_delta_than_a_part():
    # the best event lay between two nodes, to whose left all scores are level
    base = compose(ZCDP(0.0087), DPSGD(1e-11, 1e-3, 1))
    assert delta_at(base, 0.0).value >= delta_at(Gaussian(0.0174**-0.5), 0.0).value
    twice = compose(ApproxDP(1.0, 1e-12), ApproxDP(1.0, 1e-12))
    assert delta_at(twice, 2.0).value == pytest.approx(math.log(2e-12), rel=1e-9)
    assert 1e8 < epsilon_at(DPSGD(0.11, 2.5e-5, 2), -690.0).value < math.inf  # its jumps are too rare to be followed


@pytest.mark.slow
def test_steps_whose_losses_are_mostly_smaller_than_the_grid():
    base = DPSGD(4.4e-6, 0.31, 861)
    # far out the table's region is found less well at some ranks than at later ones
    log_g = enclosure(base, Fixed(3)).log_g
    assert np.all(log_g[1:] <= log_g[:-1])
    answer = bound(base, Fixed(3), delta=1e-5)
    assert answer.epsilon > 0.0
    if answer.lower is not None:
        assert answer.lower.epsilon <= answer.epsilon


@pytest.mark.slow
def test_steps_that_take_everyone_are_gaussian_steps():
    full, plain = DPSGD(1.0, 2.0, 10), Gaussian(2.0 / math.sqrt(10.0))
    assert full.core == plain
    together, want = (compose(base, Laplace(1.0)) for base in (full, plain))
    assert bound(together, Poisson(3.0)).epsilon == pytest.approx(bound(want, Poisson(3.0)).epsilon, rel=1e-9)


def test_delta_at_a_huge_order_keeps_its_digits():
    # (a-1) log(1-1/a) is -1 + 1/(2a) + ...; with log((a-1)/a) from a rounded quotient it was off by 1e-5 at a = 1e11
    order = np.array([1e11])
    true = -mp.log(mp.mpf(10) ** 11) + (mp.mpf(10) ** 11 - 1) * mp.log(1 - mp.mpf(10) ** -11)
    assert float(cks_log_delta(order, np.zeros(1), np.zeros(1))[0]) == pytest.approx(float(true), rel=1e-15)


def test_profile_of_a_tiny_rho_near_zero():
    # the best order, about sqrt(1/(2 rho)), was not reached from a start at order 27
    base, t = ZCDP(2.4e-10), 1.29e-8
    orders = 1.0 + np.exp(np.linspace(0.0, 20.0, 20001))
    best = float(np.min(cks_log_delta(orders, base.rdp(orders), np.array(t))))
    assert float(base.log_profile(np.array([t]))[0]) == pytest.approx(best, rel=1e-9)


def test_pure_curve_near_order_one_with_a_large_epsilon():
    # the exponentials of 35009 and of a 35009 cancelled
    base, order = PureDP(35009.41179853145), 1.0000000051927074
    a, e = mp.mpf(order), mp.mpf(base.epsilon)
    true = mp.log((mp.exp(a * e) + mp.exp((1 - a) * e)) / (1 + mp.exp(e))) / (a - 1)
    assert float(base.rdp(order)) == pytest.approx(float(true), rel=1e-14)


@pytest.mark.parametrize(("rho", "log_u"), [(1793.9, -111.6), (209561.0, -52.8), (48105.0, -151.0)])
def test_region_of_a_weak_curve_reaches_beyond_800(rho, log_u):
    # 1 - v may be as small as e^-rho, it was cut at e^-800
    image = ZCDP(rho).region(Prob.from_log_u(np.array([log_u])))
    assert -rho * (1 + 1e-5) < float(image.log_q[0]) < -rho * (1 - 1e-5)
