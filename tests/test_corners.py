"""Where a search finds nothing, a sum is empty or a number leaves the doubles: answers stay sound, or say why not."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from mechanisms import outcomes_of, worst_order

from hpcalc.bounds.renyi import enclosure
from hpcalc.conversion import RenyiCurve, epsilon_from_rdp
from hpcalc.errors import InvalidInput
from hpcalc.guarantees import (
    ZCDP,
    ApproxDP,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
    RDPCurve,
    compose,
    dpsgd,
    loss_grid,
    repeat,
)
from hpcalc.guarantees.convolved import Convolution
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.laws import AtMost, Binomial, FinitePmf, Fixed, Law, Poisson, Threshold
from hpcalc.lower import LowerBound, conditional_lower_bound, lower_bound
from hpcalc.questions import bound, selection

# ---------------------------------------------------------------------------------------------------------------------
# explicit mechanisms
# ---------------------------------------------------------------------------------------------------------------------


def found_instance(base: Guarantee, law: Law, delta: float, of: Guarantee | None = None) -> LowerBound | None:
    """The lower bound, looked for by the curve of ``of`` and without an upper bound to compare with."""
    return lower_bound(base, law, math.log(delta), math.inf)


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
    found = found_instance(base, law, delta)
    if found is None:
        return
    assert 0.0 <= found.epsilon <= bound(base, law, delta=delta, lower=False).epsilon
    if found.outcomes is not None:
        q, p = outcomes_of(found)
        assert max(worst_order(q, p, base), worst_order(p, q, base)) <= 0.0


@pytest.mark.parametrize("law", [Fixed(5), Poisson(10.0)], ids=repr)
def test_a_mechanism_is_valid_whatever_curve_it_was_looked_for_by(law):
    # these ranks promise more than the base allows
    base = RDPCurve({1.5: 0.05, 4.0: 0.12, 16.0: 0.6})
    found = found_instance(base, law, 1e-4, of=ZCDP(0.3))
    if found is not None:
        q, p = outcomes_of(found)
        assert max(worst_order(q, p, base), worst_order(p, q, base)) <= 0.0
        assert found.epsilon <= bound(base, law, delta=1e-4, lower=False).epsilon


def test_a_budget_that_demands_nothing_of_outcomes_of():
    base = RDPCurve({2.0: 700.0})
    found = found_instance(base, Poisson(3.0), 1e-6)
    assert found is not None
    assert found.outcomes is not None
    q, p = (np.array(side) for side in found.outcomes)
    assert max(np.logaddexp.reduce(2.0 * a - b) for a, b in ((q, p), (p, q))) <= 700.0
    assert found.epsilon <= bound(base, Poisson(3.0), delta=1e-6, lower=False).epsilon


def test_no_mechanism_speaks_for_what_fails_always():
    base = compose(ZCDP(0.1), repeat(ApproxDP(0.1, 0.9), 1000))
    assert base.slack == 1.0
    assert found_instance(base, Poisson(2.0), 0.5) is None


@pytest.mark.parametrize("base", [PureDP(0.2), ApproxDP(0.2, 1e-5), Gaussian(3.0)], ids=repr)
def test_a_search_that_rarely_runs_proves_nothing_at_a_delta_above_that(base):
    # K = 0 with probability e^-0.1: no event of the search is as likely as δ
    law = Poisson(0.1)
    found = found_instance(base, law, 0.979)
    assert found is not None
    assert found.epsilon == 0.0
    assert bound(base, law, delta=0.979).epsilon == 0.0


def test_an_order_of_outcomes_where_no_rank_is_worth_anything():
    # F(V) is 0 at every rank: nothing tells one from another
    base, law = DPSGD(0.51, 0.53, 536), Fixed(490)
    found = lower_bound(base, law, math.log(5e-51), 3.5)
    assert found is not None
    assert 0.0 < found.epsilon <= bound(base, law, delta=5e-51, lower=False).epsilon


@pytest.mark.parametrize(
    ("base", "delta"), [(RDPCurve({1.0021: 0.0343}), 0.99), (RDPCurve({2.0: 700.0}), 1e-6), (ZCDP(1e-11), 1e-200)]
)
def test_conditional_sampling_where_three_points_prove_nothing(base, delta):
    found = conditional_lower_bound(base, 0.5, math.log(delta))
    assert found is None or found.epsilon <= bound(base, Threshold(0.5), delta=delta, lower=False).epsilon


# ---------------------------------------------------------------------------------------------------------------------
# convolutions of losses
# ---------------------------------------------------------------------------------------------------------------------


def divergence(p: list[float], q: list[float], factor: float) -> float:
    return sum(max(x - factor * y, 0.0) for x, y in zip(p, q, strict=True))


def test_outcomes_merged_to_given_ratios_are_a_post_processing():
    """Whatever the outcomes and the ratios: no divergence grows, in either direction, and no mass is made."""
    rng = random.Random(5)
    for _ in range(400):
        m = rng.randint(1, 6)
        p, q = ([rng.random() ** 3 + 1e-9 for _ in range(m)] for _ in range(2))
        p, q = ([x / sum(part) for x in part] for part in (p, q))
        pairs = sorted(zip(p, q, strict=True), key=lambda pair: pair[0] / pair[1])
        p, q = ([pair[i] for pair in pairs] for i in (0, 1))
        ratios = sorted(math.exp(rng.uniform(-4.0, 4.0)) for _ in range(rng.randint(1, 7)))
        if rng.random() < 0.5:  # some outcome has the ratio of the grid exactly
            ratios = sorted([*ratios, p[0] / q[0]])
        merged = loss_grid._merge_to_grid(list(p), list(q), ratios)
        other = [mass / ratio for mass, ratio in zip(merged, ratios, strict=True)]
        assert min(merged) >= 0.0
        assert sum(merged) <= 1.0 + 1e-12
        assert sum(other) <= 1.0 + 1e-12
        for factor in np.geomspace(1e-3, 1e3, 25):
            assert divergence(merged, other, factor) <= divergence(p, q, factor) + 1e-12
            assert divergence(other, merged, factor) <= divergence(q, p, factor) + 1e-12


@pytest.mark.parametrize(
    "base",
    [
        compose(Gaussian(1e-5), Laplace(1.0)),  # losses beyond any grid
        DPSGD(4e-4, 0.11, 643),  # a rare huge loss in a single step
    ],
    ids=repr,
)
def test_what_is_not_convolved_has_the_answers_of_its_curve(base):
    epsilon = bound(base, Poisson(3.0), delta=1e-6).epsilon
    assert 0.0 <= epsilon <= bound(base, Poisson(3.0), delta=1e-6, method="paper").epsilon * (1.0 + 1e-9)


def test_one_direction_may_need_another_table():
    # with the record a step's loss is rarely huge; without it never is
    base = DPSGD(2.3e-5, 0.2975, 496)
    assert base.table(0) is not None
    assert base.warnings == ()
    rare, usual = DPSGD(0.0025244091504536586, 41.05960752344159, 918), DPSGD(0.0012190333355670908, 0.27, 204)
    both = Convolution(((rare, 1), (usual, 1)))
    log_p, log_q = both.discretised_pair()
    for t in (0.0, 0.1, 1.0):
        own = math.log(max(float(np.sum(np.maximum(np.exp(log_p) - np.exp(t + log_q), 0.0))), 1e-300))
        assert own <= float(both.log_profile(np.array([t]))[0]) + 1e-9


def test_no_grid_for_losses_below_the_doubles():
    base = DPSGD(1e-200, 1.0, 10)
    assert base.rdp(2.0) == 0.0
    assert base.discretised_pair() is None
    assert base.table() is None
    assert any("Rényi curve is used instead" in warning for warning in base.warnings)


@pytest.mark.parametrize(
    "parts",
    [
        (Laplace(1500.0), Gaussian(1.0)),
        (PureDP(1e-7), Gaussian(1.0)),
    ],
    ids=repr,
)
def test_a_part_that_reveals_next_to_nothing_changes_next_to_nothing(parts):
    whole, alone = (bound(base, Fixed(3), delta=1e-5) for base in (compose(*parts), parts[1]))
    assert whole.lower is not None
    assert whole.epsilon == pytest.approx(alone.epsilon, rel=2e-3)
    assert whole.lower.epsilon <= whole.epsilon
    assert whole.epsilon >= alone.lower.epsilon


@pytest.mark.parametrize("base", [DPSGD(4.4e-6, 0.31, 861), DPSGD(6e-6, 0.285, 523)], ids=repr)
def test_steps_whose_losses_are_mostly_smaller_than_the_grid(base):
    # far out the table's region is found less well at some ranks than at later ones
    log_g = enclosure(base, Fixed(3)).log_g
    assert np.all(log_g[1:] <= log_g[:-1])
    answer = bound(base, Fixed(3), delta=1e-5)
    assert answer.epsilon > 0.0
    if answer.lower is not None:
        assert answer.lower.epsilon <= answer.epsilon


def test_steps_that_take_everyone_are_gaussian_steps():
    full, plain = DPSGD(1.0, 2.0, 10), Gaussian(2.0 / math.sqrt(10.0))
    assert full.loss_steps() == ((plain, 1),)
    together, want = (compose(base, Laplace(1.0)) for base in (full, plain))
    assert bound(together, Poisson(3.0)).epsilon == pytest.approx(bound(want, Poisson(3.0)).epsilon, rel=1e-9)


def test_many_orders_beyond_the_table_are_computed_one_by_one():
    base = DPSGD(0.01, 30.0, 5)
    orders = np.geomspace(1.5, 1e6, 1100)
    found = base.rdp(orders)
    for i in (0, 400, 900, 1000, 1099):
        one = float(DPSGD(0.01, 30.0, 5).rdp(orders[i]))
        assert one <= found[i] * (1.0 + 1e-12)
        assert found[i] == pytest.approx(one, rel=4e-5)


def test_an_undefined_divergence_is_refused(monkeypatch):
    monkeypatch.setattr(dpsgd, "_one_step", lambda rate, sigma, orders: np.full(len(orders) // 8, math.nan))
    with pytest.raises(FloatingPointError, match="negative or undefined"):
        DPSGD(0.01, 1.0, 10).rdp(2.0)


def test_a_composition_describes_its_parts():
    parts = ((DPSGD(0.01, 1.0, 10), 1), (Laplace(2.0), 3))
    told = Convolution(parts).describe()
    assert told == {**DPSGD(0.01, 1.0, 10).describe(), **Laplace(2.0).describe()}


# ---------------------------------------------------------------------------------------------------------------------
# laws and selection
# ---------------------------------------------------------------------------------------------------------------------


def test_a_binomial_of_which_nothing_is_kept_is_refused():
    with pytest.raises(InvalidInput, match="further from 1"):
        Binomial(5, 0.3).thin(-800.0)


def test_a_failure_that_no_gap_mends_has_an_infinite_error():
    assert selection._smallest_gap(lambda gap: 0.06, 0.05, 1e3) == math.inf
    assert selection._smallest_gap(lambda gap: math.exp(-gap), 0.05, 1e3) == pytest.approx(math.log(20.0), rel=1e-8)


@pytest.mark.parametrize("count", [6520605112000, 10**15])
def test_an_exact_conversion_where_ranks_are_too_far_out_to_be_told_apart(count):
    one = RDPCurve({2.0: 0.5, 8.0: 1.9, 32.0: 7.0})
    whole = RenyiCurve(lambda a: count * one.rdp(a), one.orders)
    exact, cks = (epsilon_from_rdp(whole, math.log(1e-5), rule).value for rule in ("best", "cks"))
    assert 0.99 * cks <= exact <= cks
