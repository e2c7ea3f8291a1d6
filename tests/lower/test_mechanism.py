"""The mechanism of Theorem E's path: a real one, never above the bound, and as dear as the best one there is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from enumerated import as_pair, random_two
from grid import grid_of, grid_of_pair, least_delta

from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Laplace, PureDP, RDPCurve, compose
from hpcalc.laws import AtLeastOne, Binomial, FinitePmf, Fixed, Poisson, TruncatedNegativeBinomial
from hpcalc.lower.mechanism import path_lower_bound
from hpcalc.questions.search_cost import bound

tnb = TruncatedNegativeBinomial.with_mean

QUESTIONS = [
    (Gaussian(5**0.5), Poisson(10.0), 1e-6),
    (Gaussian(10.0), tnb(50.0, eta=-0.5), 1e-3),
    (Gaussian(1.0), Fixed(4), 1e-5),
    (Laplace(1.0), tnb(10.0, eta=0.0), 1e-2),
    (PureDP(1.0), Poisson(10.0), 1e-3),
    (ApproxDP(0.5, 1e-5), Binomial(11, 0.9), 1e-2),
]


@pytest.mark.parametrize(("base", "law", "delta"), QUESTIONS, ids=repr)
def test_the_best_mechanism_is_found(base, law, delta):
    found = path_lower_bound(base, law, math.log(delta))
    assert found is not None
    assert found.mechanism == "dominating pair"
    grid = grid_of(base, law, pieces=1600, cells=1000)
    # a plain grid falls short of delta by some 0.1 %, never exceeds it
    assert least_delta(grid, law, found.epsilon * (1.0 + 1e-3)) <= delta
    assert least_delta(grid, law, found.epsilon * (1.0 - 1e-3)) >= delta * (1.0 - 3e-3)


@pytest.mark.slow
def test_the_best_order_of_few_outcomes_is_found():
    rng = np.random.default_rng(3)
    checked = 0
    for law in (Poisson(5.0), tnb(10.0, eta=0.0), Binomial(8, 0.5), AtLeastOne(Poisson(0.5))):
        for _ in range(2):
            two = random_two(rng, zeros=0.0)
            found = path_lower_bound(as_pair(two), law, math.log(1e-2))
            assert found is not None
            sides = [grid_of_pair(a.tolist(), b.tolist(), law, pieces=700, cells=500) for a, b in (two, two[::-1])]
            assert max(least_delta(grid, law, found.epsilon * (1.0 + 1e-3) + 1e-6) for grid in sides) <= 1e-2
            if found.epsilon > 0.0:
                checked += 1
                assert max(least_delta(grid, law, found.epsilon * (1.0 - 1e-3)) for grid in sides) >= 0.99e-2
    assert checked > 4


def test_where_no_pair_attains_the_guarantee_there_is_no_path():
    for base in (ZCDP(0.1), RDPCurve({2.0: 0.5}), as_pair((np.array([0.5, 0.5]), np.array([0.75, 0.25])), False)):
        assert path_lower_bound(base, Poisson(3.0), math.log(1e-6)) is None


def test_at_delta_zero_the_pure_price():
    found = path_lower_bound(PureDP(1.0), Poisson(10.0), -math.inf)
    assert found is not None
    assert found.epsilon == pytest.approx(1.0 + 10.0 * math.tanh(0.5), rel=1e-8)
    for log_delta in (-60.0, -70.0):  # nor is a smaller delta any dearer, where doubles tell no thin blocks
        assert path_lower_bound(PureDP(1.0), Poisson(10.0), log_delta).epsilon <= 1.0 + 10.0 * math.tanh(0.5)
    assert path_lower_bound(Gaussian(1.0), Poisson(10.0), -math.inf) is None
    for base in (Laplace(1.0), compose(PureDP(0.5), PureDP(0.3))):  # which cost less than randomized response
        found, most = path_lower_bound(base, Poisson(10.0), -math.inf), bound(base, Poisson(10.0), delta=0.0).epsilon
        assert 0.999 * most < found.epsilon <= most


def test_a_search_rarer_than_delta_costs_nothing():
    found = path_lower_bound(Gaussian(1.0), FinitePmf(((0, 0.9), (2, 0.1))), math.log(0.2))
    assert found is not None
    assert found.epsilon == 0.0
