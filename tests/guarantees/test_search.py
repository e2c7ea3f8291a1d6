"""Dominating pairs from nodes of a profile: the hull of the nodes, in both directions, and what is made of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from enumerated import as_pair, divergence, excess, exchanged, followed, random_two, renyi, weakened

from hpcalc.conversion import delta_at, epsilon_at, epsilon_from_profile
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Laplace, ProfileCurve, PureDP, RDPCurve, compose, search
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.guarantees.mixture import Mixture
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.search import composed, pair_of
from hpcalc.guarantees.tradeoff import least_masses
from hpcalc.laws import AnyRuns, Fixed, Poisson
from hpcalc.questions.search_cost import bound


def dominating_pair(*sides):
    return DominatingPair(*least_masses(*sides))


def nodes_of(two, rng):
    """Nodes at random places, with 0 or without."""
    t = np.sort(rng.uniform(0.0, 4.0, int(rng.integers(1, 12))))
    t[0] = t[0] if rng.random() < 0.5 else 0.0
    with np.errstate(divide="ignore"):
        return t, np.log([divergence(two, math.exp(x)) for x in t])


@pytest.mark.slow
def test_nodes_of_a_convex_profile_come_back(rng):
    for _ in range(300):
        two = random_two(rng)
        sides = [nodes_of(laws, rng) for laws in (two, exchanged(two))]
        pair = dominating_pair(*sides)
        for direction, (t, log_delta) in enumerate(sides):
            inner = (t > 0.0) & (log_delta > -30.0)  # at 0 the other direction's nodes may know better
            np.testing.assert_allclose(pair.log_profile_of(direction, t[inner]), log_delta[inner], rtol=0, atol=1e-9)
        assert (excess(pair, two) > -1e-12).all()


def test_nodes_above_the_hull_are_lowered_to_it():
    # the middle node is above the chord of its neighbours (in e^t)
    t = np.log([1.0, 2.0, 3.0])
    pair = dominating_pair((t, np.log([0.5, 0.4, 0.1])), (t, np.log([0.5, 0.4, 0.1])))
    assert math.exp(pair.log_profile(t[1])) == pytest.approx(0.3, rel=1e-9)


def test_one_point_is_the_worst_case_of_approximate_dp():
    zero = (np.array([0.0]), np.log(np.array([0.25])))
    assert np.exp(dominating_pair(zero, zero).log_profile([0.0, 5.0])) == pytest.approx([0.25, 0.25])
    point = (np.array([1.0]), np.log(np.array([1e-6])))
    pair, known = dominating_pair(point, point), ApproxDP(1.0, 1e-6)
    t = np.linspace(0.0, 2.0, 21)
    np.testing.assert_allclose(pair.log_profile(t), known.log_profile(t), atol=1e-9)
    assert pair.slack == pytest.approx(1e-6)


def test_a_direction_of_which_little_is_known_is_bounded_by_the_other(rng):
    for _ in range(200):
        two = random_two(rng)
        sides = [nodes_of(laws, rng) for laws in (two, exchanged(two))]
        loose = rng.uniform(0.0, 1.0)
        t, log_delta = sides[1]
        sides[1] = t, np.logaddexp(np.log(loose), np.log1p(-loose) + log_delta)
        assert (excess(dominating_pair(*sides), two) > -1e-12).all()
    point, nothing = (np.array([2.0]), np.log([1e-3])), (np.array([0.0]), np.zeros(1))
    pair = dominating_pair(point, nothing)
    assert float(np.exp(pair.log_profile_of(1, 0.0))) == pytest.approx(1.0 - 0.999 * math.exp(-2.0), rel=1e-9)


@pytest.mark.parametrize(
    "base", [Gaussian(2.0), Gaussian(0.3), Gaussian(100.0), Laplace(1.0), PureDP(1.0), ApproxDP(0.5, 1e-7), ZCDP(0.1)]
)
def test_the_pair_of_a_guarantee_is_never_below_it_and_hardly_above(base):
    pair = pair_of(base)
    assert pair.log_profile(1e6) <= -100.0 or base.slack
    for log_delta in (math.log(0.01), math.log(1e-6), -40.0):
        true, found = (epsilon_from_profile(x.log_profile, log_delta) for x in (base, pair))
        assert found == true == math.inf or true <= found + 1e-12 <= true * (1.0 + 2e-4) + 1e-9
    t = np.linspace(0.0, 5.0, 201)
    if base.exact_profile:  # a profile converted from a Rényi curve need not be convex: its hull is smaller
        assert (pair.log_profile(t) >= base.log_profile(t) - 1e-12).all()


def test_a_composition_listed_and_by_nodes_dominates_adaptive_mechanisms(rng, monkeypatch):
    for few in (search.FEW, 0):
        monkeypatch.setattr(search, "FEW", few)
        for _ in range(40 if few else 10):
            first, final = random_two(rng), random_two(rng)
            pair = composed(as_pair(first), as_pair(final))
            alone = followed(first, [final] * len(first[0]))
            found = excess(pair, alone)
            assert (found > -1e-12).all()
            assert few == 0 or (found < 1e-4).all()
            assert (excess(pair, followed(first, [weakened(rng, final) for _ in first[0]])) > -1e-12).all()


@pytest.mark.slow
def test_points_of_a_profile_compose_with_everything():
    # a pure guarantee written as one point, beside what it was written from
    points, pure = ProfileCurve({1.0: 0.0}), PureDP(1.0)
    gaussians, both = composed(pair_of(Gaussian(2.0)), pair_of(Gaussian(3.0))), compose(Gaussian(2.0), Gaussian(3.0))
    found, true = (epsilon_from_profile(x.log_profile, math.log(1e-6)) for x in (gaussians, both))
    assert true <= found <= true * (1.0 + 1e-4)
    for other in (Gaussian(2.0), Laplace(2.0), ZCDP(0.1), ApproxDP(0.5, 1e-7), points):
        found, true = (
            epsilon_from_profile(compose(part, other).log_profile, math.log(1e-5)) for part in (points, pure)
        )
        assert math.isfinite(found)
        assert true - 1e-5 <= found <= true * (1.0 + 1e-3)


def test_a_curve_beside_a_mechanism_has_both_of_its_directions():
    # direction 0 alone, which does not dominate here, once said 1.8042
    part = compose(DPSGD(0.02, 0.345, 3), PureDP(1.9))
    least, more = bound(part, Fixed(1), delta=0.08).lower.epsilon, compose(part, ZCDP(1e-9))
    for base, then in ((Mixture((more,), (1.0,)), ()), (ZCDP(1e-9), (more,))):
        assert least <= bound(base, Fixed(1), delta=0.08, then=then, lower=False).epsilon <= least * 1.01


def test_a_curve_beside_pure_dp_covers_enumerated_mechanisms(rng):
    response, orders = (np.array([0.75, 0.25]), np.array([0.25, 0.75])), 1.0 + np.geomspace(1e-3, 1e3, 300)
    for _ in range(10):
        two = random_two(rng, 3, 0.0)
        curve = RDPCurve(orders, [max(renyi(two, x), renyi(exchanged(two), x)) for x in orders])
        assert (excess(compose(PureDP(math.log(3.0)), curve), followed(response, [two, two])) > -1e-9).all()


@pytest.mark.parametrize("other", [Gaussian(3.0), Laplace(2.0), DPSGD(0.05, 1.2, 40)], ids=repr)
def test_a_curve_beside_a_mechanism_is_a_pair_too(other):
    both, real, t = compose(other, ZCDP(0.02)), compose(other, Gaussian(5.0)), np.linspace(-1.0, 4.0, 11)
    assert all((both.log_profile_of(side, t) >= real.log_profile_of(side, t) - 1e-4).all() for side in (0, 1))
    assert delta_at(both, 0.3).value >= delta_at(real, 0.3).value - 1e-4
    assert bound(both, Fixed(3), lower=False).epsilon <= bound(both, AnyRuns(3), lower=False).epsilon * (1.0 + 1e-12)
    nearly = compose(other, ZCDP(1e-9), ApproxDP(0.0, 1e-12))
    for price in (lambda base: bound(base, Poisson(10.0)).epsilon, lambda base: epsilon_at(base, -14.0).value):
        assert price(other) * (1.0 - 1e-4) <= price(nearly) <= price(other) * 1.002
