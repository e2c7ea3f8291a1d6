"""Runs that draw their setting first: every divergence is the weighted sum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from enumerated import as_pair, excess, exchanged, mixed, random_two, renyi

from hpcalc.bounds.conditional import RefinedConditional
from hpcalc.conversion import epsilon_from_profile
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, PureDP, compose
from hpcalc.guarantees.mixture import Mixture
from hpcalc.laws import Poisson
from hpcalc.logspace import Prob
from hpcalc.lower import lower_bound
from hpcalc.lower.conditional import conditional_lower_bound


def random_mixture(rng):
    parts = [random_two(rng) for _ in range(int(rng.integers(2, 5)))]
    weights = rng.dirichlet(np.ones(len(parts))) + 1e-9
    return parts, weights / weights.sum()


def check(rng) -> None:
    parts, weights = random_mixture(rng)
    whole = mixed(parts, weights)
    mixture = Mixture(tuple(as_pair(part) for part in parts), tuple(weights))
    for found in (excess(mixture, whole), excess(mixture.pair, whole)):
        assert (found > -1e-12).all()
        assert (found < 1e-4).all()
    for order in (1.5, 2.0, 20.0):
        sides = [renyi(whole, order), renyi(exchanged(whole), order)]
        if math.isfinite(max(sides)):
            assert float(mixture.rdp(order)) >= max(sides) - 1e-12
    # the curve at equal slopes, from tradeoff points of the settings
    for direction in (0, 1):
        points, known = mixture.attained_tradeoff(direction), as_pair(whole).tradeoff(direction)
        w = np.interp(points.x.u, known.x.u, known.w.u)
        np.testing.assert_allclose(points.w.u, w, atol=1e-9)


@pytest.mark.slow
def test_mixtures_of_random_mechanisms(rng):
    for _ in range(60):
        check(rng)


def test_unknown_weights_are_charged_every_mixture(rng):
    for _ in range(30):
        parts, weights = random_mixture(rng)
        worst = Mixture(tuple(as_pair(part) for part in parts))
        assert (excess(worst, mixed(parts, weights)) > -1e-12).all()
        assert (excess(worst.pair, mixed(parts, weights)) > -1e-12).all()
        assert worst.attained_tradeoff() is None
        assert conditional_lower_bound(worst, 0.1, math.log(1e-6)) is None


def test_equal_settings_are_one_setting():
    mixture = Mixture((Gaussian(2.0), Gaussian(2.0)), (0.25, 0.75))
    t = np.linspace(-3.0, 3.0, 13)
    np.testing.assert_allclose(mixture.log_profile(t), Gaussian(2.0).log_profile(t), atol=1e-12)
    np.testing.assert_allclose(mixture.rdp([1.0001, 2.0, 1e6]), Gaussian(2.0).rdp([1.0001, 2.0, 1e6]), rtol=1e-9)
    u = Prob.from_u(np.array([1e-9, 0.01, 0.5]))
    np.testing.assert_allclose(mixture.region(u).log_u, Gaussian(2.0).region(u).log_u, atol=3e-3)
    # a pair that only dominates proves no lower bound
    most = RefinedConditional(Gaussian(2.0), 0.1).epsilon(math.log(1e-6)).value
    assert most * (1.0 - 1e-3) < conditional_lower_bound(mixture, 0.1, math.log(1e-6)).epsilon < most


def test_settings_known_by_their_curve_only():
    mixture = Mixture((ZCDP(0.1), ZCDP(0.2)), (0.5, 0.5))
    assert float(mixture.rdp(3.0)) == pytest.approx(math.log(0.5 * (math.exp(0.6) + math.exp(1.2))) / 2.0, rel=1e-12)
    assert mixture.zcdp_rho == 0.2
    # which is more than its Rényi curve says: a mechanism of that curve proves nothing
    assert lower_bound(mixture, Poisson(3.0), math.log(1e-6)) is None
    u = Prob.from_u(np.array([1e-6, 0.1]))
    lower, upper = ZCDP(0.1).region(u), ZCDP(0.2).region(u)
    assert (mixture.region(u).log_u >= lower.log_u).all()
    assert (mixture.region(u).log_u <= upper.log_u + 1e-9).all()


def test_slack_of_the_settings_is_set_aside_by_weight():
    mixture = Mixture((ApproxDP(1.0, 1e-3), PureDP(1.0)), (0.25, 0.75))
    assert mixture.slack == pytest.approx(2.5e-4)
    assert mixture.core.pure_epsilon == 1.0
    assert float(np.exp(mixture.log_profile(1.0))) == pytest.approx(2.5e-4)


def test_mixtures_compose():
    mixture = Mixture((Gaussian(1.0), Gaussian(4.0)), (0.1, 0.9))
    twice = epsilon_from_profile(compose(mixture, mixture).log_profile, math.log(1e-6))
    once = epsilon_from_profile(mixture.log_profile, math.log(1e-6))
    worst = epsilon_from_profile(Gaussian(1.0 / math.sqrt(2.0)).log_profile, math.log(1e-6))
    assert once < twice < worst
    # the law of the loss is a mechanism's own, so the composition is attained
    assert compose(mixture, mixture).attained_tradeoff() is not None
    unknown = Mixture((Gaussian(1.0), Gaussian(4.0)))
    assert compose(unknown, unknown).attained_tradeoff() is None
    assert epsilon_from_profile(compose(unknown, unknown).log_profile, math.log(1e-6)) >= twice
