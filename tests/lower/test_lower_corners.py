"""Where a search for a mechanism finds nothing, or a probability leaves the doubles: a sound lower bound, or none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mechanisms import outcomes_of, worst_order

from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, PureDP, RDPCurve, compose, repeat
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.guarantees.mixture import Mixture
from hpcalc.laws import AtMost, Binomial, FinitePmf, Fixed, Poisson, RunCount, Threshold
from hpcalc.lower import LowerBound, conditional_lower_bound, lower_bound
from hpcalc.questions.search_cost import bound


def lower(base: Guarantee, law: RunCount, delta: float) -> LowerBound:
    found = lower_bound(base, law, math.log(delta))
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "law", "delta"),
    [
        (ZCDP(1e-11), FinitePmf(((1, 0.5), (3, 0.5))), 1e-180),  # next to no budget and next to no delta
        (ZCDP(1e-11), AtMost(Poisson(0.1), 15), 1e-215),
        (ZCDP(1.5e-5), AtMost(Poisson(13.5), 3), 1e-284),
        (ZCDP(1.5e-4), Binomial(584, 0.55), 1.6e-9),
        (ZCDP(0.033), Fixed(697), 4.5e-4),
        (RDPCurve({1.339: 5e-6, 398.8: 455.2}), FinitePmf(((1, 0.5), (38, 0.5))), 1.9e-3),
        (RDPCurve({1.0021: 0.0343}), Fixed(669), 0.997),
    ],
    ids=repr,
)
def test_hard_searches_find_a_valid_mechanism_or_none(base, law, delta):
    found = lower_bound(base, law, math.log(delta))
    if found is None:
        return
    assert 0.0 <= found.epsilon <= bound(base, law, delta=delta, lower=False).epsilon
    if found.outcomes is not None:
        q, p = outcomes_of(found)
        assert max(worst_order(q, p, base), worst_order(p, q, base)) <= 0.0


def test_a_budget_that_demands_nothing_of_outcomes_of():
    base = RDPCurve({2.0: 700.0})
    found = lower(base, Poisson(3.0), 1e-6)
    assert found.outcomes is not None
    q, p = (np.array(side) for side in found.outcomes)
    assert max(np.logaddexp.reduce(2.0 * a - b) for a, b in ((q, p), (p, q))) <= 700.0
    assert found.epsilon <= bound(base, Poisson(3.0), delta=1e-6, lower=False).epsilon


def test_what_fails_always_has_no_finite_cost():
    base = compose(ZCDP(0.1), repeat(ApproxDP(0.1, 0.9), 1000))
    assert base.slack == 1.0
    assert lower(base, Poisson(2.0), 0.5).epsilon == math.inf


@pytest.mark.parametrize(("base", "delta"), [(Gaussian(1e5), 1e-100), (ApproxDP(0.0, 1e-100), 1e-60)], ids=repr)
def test_no_mechanism_is_above_the_price_where_delta_is_below_the_rounding_of_doubles(base, delta):
    for law in (Fixed(3), Poisson(1.0)):
        answer = bound(base, law, delta=delta)
        assert answer.lower.epsilon <= answer.epsilon


@pytest.mark.parametrize("law", [Poisson(10.0), Threshold(0.1)], ids=repr)
@pytest.mark.parametrize("base", [Gaussian(5**0.5), Laplace(1.0)], ids=repr)
def test_a_mechanism_of_the_sum_of_two_curves_need_not_be_made_of_two_parts(base, law):
    less = bound(compose(base, ApproxDP(1e-3, 1e-100)), law, lower=False).epsilon  # which 1e-9-zCDP implies
    assert less * 0.99 <= lower(compose(base, ZCDP(1e-9)), law, 1e-6).epsilon <= less
    assert lower(compose(base, ZCDP(0.2)), law, 1e-6).epsilon >= lower(ZCDP(0.2), law, 1e-6).epsilon


@pytest.mark.parametrize(("base", "made"), [(PureDP(0.5), Laplace(2.0)), (ZCDP(0.1), Gaussian(5**0.5))], ids=repr)
def test_a_group_is_attacked_by_mechanisms_of_one_record(base, made):
    group, truth = base.group(2), lower(made.group(2), Poisson(10.0), 1e-6).epsilon
    for known in (group, Mixture((group, group), (0.3, 0.7))):
        assert lower(known, Poisson(10.0), 1e-6).epsilon == pytest.approx(truth, rel=1e-3)


def test_runs_of_one_curve_cost_no_more_than_as_many_searches():
    one = RDPCurve({1000.0: 0.1})
    assert lower(repeat(one, 100), Fixed(1), 1e-6).epsilon <= bound(one, Fixed(1), searches=100).epsilon


@pytest.mark.parametrize(
    ("base", "accept", "delta"),
    [
        (compose(Gaussian(0.4), Laplace(10.0)), 0.1, 1e-6),
        (DPSGD(0.5, 0.6, 3), 0.5, 1e-6),
        (DPSGD(0.2496047705636379, 0.46416275724141265, 1, 2), 0.10137433500196136, 1.0387199448234908e-5),
    ],
)
def test_no_mechanism_that_is_accepted_is_above_the_price(base, accept, delta):
    answer = bound(base, Threshold(accept), delta=delta)
    assert answer.lower is not None
    assert answer.epsilon * 0.95 <= answer.lower.epsilon <= answer.epsilon


@pytest.mark.parametrize("base", [PureDP(0.2), ApproxDP(0.2, 1e-5), Gaussian(3.0)], ids=repr)
def test_a_search_that_rarely_runs_proves_nothing_at_a_delta_above_that(base):
    # K = 0 with probability e^-0.1: no event of the search is as likely as δ
    assert lower(base, Poisson(0.1), 0.979).epsilon == bound(base, Poisson(0.1), delta=0.979).epsilon == 0.0


def test_an_order_of_outcomes_where_no_rank_is_worth_anything():
    # F(V) is 0 at every rank: nothing tells one from another
    base, law = DPSGD(0.51, 0.53, 536), Fixed(490)
    assert 0.0 < lower(base, law, 5e-51).epsilon <= bound(base, law, delta=5e-51, lower=False).epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "delta"), [(RDPCurve({1.0021: 0.0343}), 0.99), (RDPCurve({2.0: 700.0}), 1e-6), (ZCDP(1e-11), 1e-200)]
)
def test_conditional_sampling_where_three_points_prove_nothing(base, delta):
    found = conditional_lower_bound(base, 0.5, math.log(delta))
    assert found is None or found.epsilon <= bound(base, Threshold(0.5), delta=delta, lower=False).epsilon


def test_no_lower_bound_from_an_outcome_that_underflows():
    # probabilities of e^-1000 summed to 0, and the instance seemed to give an infinite loss
    base, law = ZCDP(331.4621844156407), AtMost(Poisson(39.50432329603897), 655)
    found = lower_bound(base, law, math.log(1.118321845212705e-267))
    assert found is None or math.isfinite(found.epsilon)


@pytest.mark.parametrize(("base", "least"), [(ZCDP(0.1), 2.559), (compose(ZCDP(0.05), PureDP(0.5)), 2.409)], ids=repr)
def test_a_top_block_of_one_half_leaves_room_in_neither_direction(base, least):
    # between two orders tried there seems to be room for a bad outcome beside the largest loss of the top block
    found = conditional_lower_bound(base, 0.5, math.log(1e-6))
    assert found is not None
    assert found.epsilon >= least
