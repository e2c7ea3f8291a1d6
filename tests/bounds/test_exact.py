"""Theorem E against oracles that share no code with it: enumeration of all orders, a plain grid, 50 digits, a table."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import exact
import mpmath as mp
import numpy as np
import pytest
from enumerated import Two, as_pair, exchanged, random_two
from grid import grid_of, grid_of_pair, least_delta

from hpcalc.bounds.exact import ExactBound
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, ProfileCurve, PureDP, compose
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.laws import AtLeastOne, AtMost, Binomial, Clamped, FinitePmf, Fixed, Law, Poisson, make_law
from hpcalc.laws.families import TruncatedNegativeBinomial
from hpcalc.questions.search_cost import bound

mpf = mp.mpf
tnb = TruncatedNegativeBinomial.with_mean
S5 = 5**0.5

#: Laws for which the pointwise form of the theorem is attained, as far as is known.
LAWS: list[Law] = [
    Poisson(0.3),
    Poisson(8.0),
    tnb(20.0, eta=-0.8),
    tnb(6.0, eta=-0.5),
    tnb(10.0, eta=0.0),
    tnb(10.0, eta=1.0),
    tnb(4.0, eta=3.0),
    Binomial(11, 0.9),
    Binomial(40, 0.05),
    Fixed(1),
    Fixed(2),
    Fixed(7),
    AtLeastOne(Poisson(1.5)),
    AtLeastOne(Binomial(5, 0.2)),
]
#: And laws for which it need not be.
OTHERS: list[Law] = [
    FinitePmf(((0, 0.3), (1, 0.3), (20, 0.4))),
    FinitePmf(((2, 0.395), (30, 0.605))),
    AtMost(Poisson(5.0), 6),
    AtMost(tnb(10.0, eta=0.0), 15),
    Clamped(tnb(10.0, eta=1.0), 8),
]


def price(base: Guarantee, law: Law, delta: float) -> tuple[float, float]:
    """Lower and upper bound on ε."""
    found = ExactBound(base, law)
    return found.mechanism(math.log(delta)), found.epsilon(math.log(delta)).value


def worst_order(two: Two, law: Law, epsilon: float) -> float:
    """Largest hockey-stick divergence of the search over all orders of the outcomes, each kept whole."""
    orders = np.array(list(itertools.permutations(range(len(two[0])))))
    zero = np.zeros((orders.shape[0], 1))
    a, b = (
        np.diff(exact.survival(law, np.hstack([zero, np.minimum(np.cumsum(side[orders], axis=1), 1.0)]), np), axis=1)
        for side in two
    )
    return float(np.max(np.sum(np.maximum(a - math.exp(epsilon) * b, 0.0), axis=1)))


def check_pair(two: Two, law: Law, epsilons: tuple[float, ...], attained: bool) -> None:
    found = ExactBound(as_pair(two), law)
    for side, laws in enumerate((two, exchanged(two))):
        for epsilon, log_delta in zip(epsilons, found.log_profile_of(side, np.array(epsilons)), strict=True):
            context = (two, law, epsilon, side)
            certified = math.exp(log_delta)
            assert worst_order(laws, law, epsilon) <= certified * (1.0 + 1e-9) + 1e-14, context
            if certified > 1e-9:  # outcomes may be split, too
                grid = grid_of_pair(laws[0].tolist(), laws[1].tolist(), law, pieces=700, cells=500)
                least = least_delta(grid, law, epsilon)
                assert least <= certified * (1.0 + 1e-9), context
                if attained:
                    assert certified <= least * (1.0 + 3e-3), context


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS + OTHERS, ids=repr)
def test_no_order_of_up_to_six_outcomes_is_above(law):
    rng = np.random.default_rng(5)
    for outcomes, epsilon in ((2, 1.3), (4, 0.0), (6, 0.4)):
        check_pair(random_two(rng, outcomes), law, (epsilon,), attained=law in LAWS)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(20))
def test_no_order_is_above_at_length(seed):
    rng = np.random.default_rng(1000 + seed)
    for _ in range(10):
        law = (LAWS + OTHERS)[int(rng.integers(len(LAWS + OTHERS)))]
        check_pair(random_two(rng), law, (float(rng.uniform(0.0, 2.0)),), attained=law in LAWS)


# K = 10 or 300, and K = 2 or 30: maximised for each piece alone, the losers do not come in order
COUNTEREXAMPLES = [
    (FinitePmf(((10, 0.83666), (300, 0.16334))), (0.111224, 0.888776), (0.056160, 0.943840), 0.1, 0.19192, 0.19711),
    (FinitePmf(((2, 0.395), (30, 0.605))), (0.6103, 0.3897), (0.6303, 0.3697), 0.0, 0.022639, 0.022836),
]


@pytest.mark.parametrize(("law", "q", "p", "epsilon", "path", "pointwise"), COUNTEREXAMPLES)
def test_where_the_losers_do_not_come_in_order(law, q, p, epsilon, path, pointwise):
    two = np.array(q), np.array(p)
    certified = math.exp(ExactBound(as_pair(two), law).log_profile_of(0, np.array([epsilon]))[0])
    least = least_delta(grid_of_pair(q, p, law), law, epsilon)
    assert least == pytest.approx(path, rel=1e-3)
    assert least <= certified <= pointwise * (1.0 + 1e-3)


@pytest.mark.slow
def test_the_path_is_the_price():
    law, q, p, epsilon, path, _ = COUNTEREXAMPLES[0]
    two = np.array(q), np.array(p)
    low, high = price(as_pair(two), law, path)
    assert epsilon * (1.0 - 2e-3) <= low <= high
    sides = [grid_of_pair(*map(np.ndarray.tolist, laws), law) for laws in (two, exchanged(two))]
    assert max(least_delta(grid, law, high) for grid in sides) <= path * (1.0 + 1e-9)
    assert max(least_delta(grid, law, high * (1.0 - 5e-3)) for grid in sides) >= path * (1.0 - 2e-3)


KNOWN = [
    (Gaussian(S5), Poisson(10.0), 3.6),
    (Gaussian(10.0), Poisson(100.0), 2.1),
    (Gaussian(10.0), tnb(1000.0, eta=-0.9), 0.4),
    (Gaussian(1.0), Binomial(11, 0.9), 6.0),
    (Gaussian(2.0), Fixed(5), 2.0),
    (Laplace(1.0), Poisson(100.0), 10.5),
    (Laplace(3.0), tnb(10.0, eta=3.0), 0.7),
    (PureDP(1.0), Poisson(10.0), 5.4),
    (PureDP(0.1), tnb(10.0, eta=1.0), 0.12),
    (ApproxDP(1.0, 1e-6), tnb(10.0, eta=1.0), 2.5),
    (ApproxDP(0.1, 1e-4), Poisson(10.0), 0.15),
    (Gaussian(S5), FinitePmf(((1, 0.5), (20, 0.5))), 2.0),
]


@pytest.mark.parametrize(("base", "law", "epsilon"), KNOWN, ids=repr)
def test_a_plain_grid_is_below_and_near(base, law, epsilon):
    certified = math.exp(ExactBound(base, law).log_profile_of(0, np.array([epsilon]))[0])
    least = least_delta(grid_of(base, law, pieces=1600, cells=1000), law, epsilon)
    assert least <= certified * (1.0 + 1e-9)
    assert certified <= least * (1.0 + 2e-3)


@pytest.mark.parametrize("law", [Poisson(10.0), tnb(10.0, eta=0.0), tnb(5.0, eta=2.0), Binomial(9, 0.4), Fixed(3)])
@pytest.mark.parametrize("loss", [0.1, 1.0])
def test_the_pure_price_is_the_limit(law, loss):
    e = mp.exp(mpf(loss))
    u = 1 / (1 + e)
    limit = mpf(loss) + exact.log_density(law, u) - exact.log_density(law, 1 - u)
    low, high = price(PureDP(loss), law, 1e-14)
    assert low <= limit * (1 + mpf("1e-9"))
    assert high >= limit * (1 - mpf("1e-4"))


#: ε, certified between an explicit mechanism and the bound to the digits given.
TABLE = [
    (Gaussian(S5), Poisson(10.0), 1e-6, 3.6496),
    (Gaussian(10.0), Poisson(100.0), 1e-6, 2.1144),
    (Gaussian(2.236), tnb(10.0, eta=0.0), 1e-6, 2.73837),
    (Gaussian(S5), tnb(10.0, eta=1.0), 1e-6, 2.8893),
    (Gaussian(S5), tnb(100.0, eta=-0.5), 1e-3, 2.26740),
    (Gaussian(S5), tnb(20.0, eta=-0.8), 1e-5, 2.30214),
    (Gaussian(50.0), tnb(100.0, eta=-0.5), 1e-5, 0.106579),
    (Gaussian(S5), Binomial(11, 0.9), 1e-5, 4.7603),
    (Gaussian(S5), tnb(1000.0, eta=-0.9), 1e-6, 2.28302),
    (Gaussian(5.0), Poisson(100.0), 1e-2, 1.7245),
    (Gaussian(50.0), tnb(10.0, eta=1.0), 1e-2, 0.015765),
    (Gaussian(S5), Fixed(2), 1e-6, 2.9216),
    (Gaussian(S5), Fixed(3), 1e-6, 3.5730),
    (Gaussian(S5), Fixed(5), 1e-6, 4.5438),
    (Gaussian(S5), Fixed(10), 1e-6, 6.1564),
    (Gaussian(S5), Fixed(20), 1e-6, 8.128),
    (Laplace(1.0), Poisson(100.0), 1e-3, 10.54),
    (PureDP(1.0), Poisson(10.0), 1e-3, 5.4760),
    (PureDP(0.1), tnb(10.0, eta=1.0), 1e-2, 0.1243),
    (ApproxDP(1.0, 1e-6), tnb(10.0, eta=1.0), 1e-4, 2.5607),
    (ApproxDP(0.1, 1e-4), Poisson(10.0), 1e-2, 0.1801),
]


def check_value(base: Guarantee, law: Law, delta: float, epsilon: float, half_digit: float) -> None:
    low, high = price(base, law, delta)
    assert low <= high
    assert epsilon * (1.0 - 3e-4) - half_digit <= high <= epsilon * (1.0 + 5e-4) + half_digit
    assert epsilon * (1.0 - 5e-4) - half_digit <= low <= epsilon * (1.0 + 3e-4) + half_digit


@pytest.mark.slow
@pytest.mark.parametrize(("base", "law", "delta", "epsilon"), TABLE, ids=repr)
def test_table(base, law, delta, epsilon):
    half = 0.5 * 10.0 ** -len(str(epsilon).partition(".")[2])
    check_value(base, law, delta, epsilon, half)


def test_a_long_search_with_little_noise_in_delta():
    low, high = price(Gaussian(10.0), Poisson(1000.0), 1e-10)
    assert 5.619 * (1.0 - 5e-4) <= low <= high <= 5.623 * (1.0 + 5e-4)


# Recipe: a double grid (4000 pieces in normal score, 3000 losers), refined until it is converged to 1e-4 of ε.
REFERENCE = json.loads((Path(__file__).parent.parent / "reference" / "exact.json").read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("row", REFERENCE, ids=lambda row: "-".join(map(str, row.values())))
def test_reference(row):
    ((kind, given),) = row["base"].items()
    classes = {"gaussian": Gaussian, "laplace": Laplace, "pure": PureDP, "approx-dp": ApproxDP}
    base = classes[kind](*(given if isinstance(given, list) else [given]))
    parameters = {name: row[name] for name in ("mu", "eta", "mean", "n", "p", "k") if name in row}
    check_value(base, make_law(row["dist"], **parameters), row["delta"], row["epsilon"], 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "one", "both"),
    [
        (tnb(10.0, eta=1.0), 3.548, 3.548),
        (tnb(10.0, eta=0.0), 3.358, 3.358),
        (Poisson(10.0), 4.497, 4.497),
        (Poisson(100.0), 14.91, 15.07),
    ],
    ids=repr,
)
def test_training(law, one, both):
    base = DPSGD(256 / 60000, 1.1, 14062)
    low, high = price(base, law, 1e-5)
    assert both * (1.0 - 1e-3) <= low <= high <= both * (1.0 + 1e-3)
    if one < both:
        profile = [ExactBound(base, law).log_profile_of(side, np.array([0.998 * one, 1.002 * one])) for side in (0, 1)]
        smaller = min(profile, key=lambda values: float(values[0]))
        assert smaller[1] <= math.log(1e-5) <= smaller[0]


@pytest.mark.parametrize(
    ("base", "law", "delta", "epsilon"),
    [
        (ZCDP(0.1), Poisson(100.0), 1e-6, 15.638),
        (ZCDP(0.1), tnb(20.0, eta=-0.8), 1e-3, 1.7397),
        (ZCDP(0.01), tnb(20.0, eta=-0.8), 1e-2, 0.2683),
        (ZCDP(0.1), Poisson(10.0), 1e-6, 4.2469),
    ],
    ids=repr,
)
def test_a_region_from_a_curve(base, law, delta, epsilon):
    found = ExactBound(base, law)
    assert not found.attained
    assert found.epsilon(math.log(delta)).value == pytest.approx(epsilon, rel=2e-3)


STEP = 1e-4  # what is certified is this near to the price


def assert_rises(values: list[float]) -> None:
    assert all(math.isfinite(value) and value >= 0.0 for value in values), values
    assert all(b >= a * (1.0 - STEP) - 1e-12 for a, b in itertools.pairwise(values)), values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "law"),
    [
        (Gaussian(2.0), Poisson(10.0)),
        (Laplace(1.0), tnb(10.0, eta=0.0)),
        (PureDP(0.5), Fixed(4)),
        (ApproxDP(0.5, 1e-8), tnb(30.0, eta=-0.5)),
        (Gaussian(2.0), FinitePmf(((0, 0.3), (1, 0.3), (20, 0.4)))),
        (ZCDP(0.1), Poisson(3.0)),
        (compose(Gaussian(3.0), Laplace(2.0)), Poisson(3.0)),
    ],
    ids=repr,
)
def test_epsilon_never_rises_with_delta(base, law):
    assert_rises([price(base, law, delta)[1] for delta in (0.3, 1e-2, 1e-6)])


@pytest.mark.parametrize(
    "laws",
    [
        [Poisson(mu) for mu in (0.1, 3.0, 100.0)],
        [tnb(mean, eta=0.0) for mean in (1.01, 3.0, 100.0)],
        [tnb(mean, eta=-0.8) for mean in (1.01, 3.0, 100.0)],
        [Binomial(n, 0.3) for n in (1, 3, 50)],
        [Binomial(10, p) for p in (0.01, 0.4, 1.0)],
        [Fixed(k) for k in (1, 2, 20)],
    ],
    ids=lambda laws: repr(laws[0]),
)
def test_epsilon_grows_with_the_law(laws):
    for base, delta in ((Gaussian(3.0), 1e-6), (PureDP(0.4), 1e-3)):
        assert_rises([price(base, law, delta)[1] for law in laws])


@pytest.mark.slow
def test_epsilon_grows_with_the_loss_of_one_run():
    for law in (Poisson(5.0), tnb(10.0, eta=1.0), Fixed(3)):
        assert_rises([price(Gaussian(sigma), law, 1e-5)[1] for sigma in (50.0, 5.0, 1.0)])
        assert_rises([price(PureDP(loss), law, 1e-4)[1] for loss in (0.01, 0.3, 3.0)])
        assert_rises([price(ApproxDP(0.3, slack), law, 1e-2)[1] for slack in (1e-9, 1e-6, 1e-4)])


@pytest.mark.slow
@pytest.mark.parametrize("base", [Gaussian(1.5), Laplace(1.0), PureDP(0.7), ApproxDP(0.5, 1e-7)], ids=repr)
def test_one_run_at_least(base):
    for delta in (1e-6, 1e-2):
        single = bound(base, Fixed(1), delta=delta).single_run
        assert single is not None
        for law in (Fixed(1), tnb(1.000001, eta=0.5), tnb(2.0, eta=-0.9), AtLeastOne(Poisson(0.01))):
            assert price(base, law, delta)[1] >= single.value * (1.0 - 1e-9)
        for law in (Fixed(1), tnb(1.0 + 1e-9, eta=0.5)):  # gamma -> 1 is one run
            assert price(base, law, delta)[1] <= single.value * (1.0 + 5e-4) + 1e-9


def test_eta_near_zero_is_eta_zero():
    want = price(Gaussian(2.0), tnb(10.0, eta=0.0), 1e-6)
    for eta in (1e-12, -1e-12, 1e-6):
        assert price(Gaussian(2.0), tnb(10.0, eta=eta), 1e-6) == pytest.approx(want, rel=2e-5)


def test_no_cliff_where_a_profile_ends():
    points = {0.0: 0.3, 0.5: 0.05, 1.5: 1e-3, 3.0: 1e-6}
    values = [price(ProfileCurve(points), Poisson(10.0), delta)[1] for delta in (1.5e-5, 1.2e-5, 1e-5)]
    assert values[2] == pytest.approx(5.8268, rel=1e-3)
    assert_rises(values)
    assert values[2] < 1.1 * values[0]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.999, 1e-12, 1e-100])
@pytest.mark.parametrize("base", [Gaussian(2.0), Laplace(1.0), PureDP(1.0), PureDP(30.0)], ids=repr)
def test_any_delta_has_an_answer(base, delta):
    for law in (Poisson(0.01), tnb(10.0, eta=0.0), Fixed(2), FinitePmf(((0, 0.5), (2, 0.5)))):
        low, high = price(base, law, delta)
        assert 0.0 <= low <= high
        assert not math.isnan(high)


@pytest.mark.parametrize("base", [Gaussian(30.0), Laplace(3.0), DPSGD(0.01, 1.0, 1000)], ids=repr)
@pytest.mark.parametrize("law", [Poisson(10.0), Fixed(10), FinitePmf(((3, 0.5), (60, 0.5)))], ids=repr)
def test_what_is_enough_is_certified_before_it_is_taken(base, law):
    """Less than a mechanism attains is never enough, however near."""
    for direction in ExactBound(base, law).directions:
        low, _ = direction.solve(math.log(1e-5), 0.0)
        for part in (0.99, 0.9999):
            assert direction.solve(math.log(1e-5), low * part)[1] >= low * (1.0 - 1e-9)


def test_what_cannot_happen_costs_nothing():
    low, high = price(Gaussian(3.0), Poisson(0.001), 0.5)  # the search is empty but for less than delta
    assert (low, high) == (0.0, 0.0)


@pytest.mark.slow
def test_the_path_is_found_where_the_last_outcomes_decide():
    # just below the answer no winner adds anything; the search must look further below
    law = FinitePmf(((3, 0.35), (6, 0.3017), (37, 0.0347), (90, 0.1904), (163, 8.5e-5), (234, 0.123115)))
    low, high = price(PureDP(0.49374495300325455), law, 1e-9)
    assert 1.7 < low <= high <= low * 1.005


def test_masses_that_rounding_turns_round_warn_of_nothing():
    base = compose(Gaussian(17.46701723782331), PureDP(0.5142902134088719))
    low, high = price(base, Fixed(5), 0.010992757228883245)
    assert 0.0 < low <= high <= low * (1.0 + 5e-4)
