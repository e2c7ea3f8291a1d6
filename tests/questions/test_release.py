"""What everything released costs: reference values, and searches enumerated together with what follows them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from enumerated import Two, as_pair, divergence, exchanged, followed, random_two, sampled_then_all, sampled_then_rest

from hpcalc.bounds import bounds_for, exact
from hpcalc.bounds.exact import ExactBound
from hpcalc.conversion import epsilon_from_profile
from hpcalc.guarantees import ZCDP, Gaussian, PureDP
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.guarantees.mixture import Mixture
from hpcalc.laws import FinitePmf, Fixed, Poisson, TruncatedNegativeBinomial
from hpcalc.questions.asked import Asked
from hpcalc.questions.release import everything, search_pair, total
from hpcalc.questions.search_cost import search_cost

pytestmark = pytest.mark.slow
LOG_DELTA = math.log(1e-6)
BASE = Gaussian(math.sqrt(5.0))
LAWS = {
    "logarithmic": TruncatedNegativeBinomial.with_mean(10.0, eta=0.0),
    "geometric": TruncatedNegativeBinomial.with_mean(10.0, eta=1.0),
    "poisson": Poisson(10.0),
}


def cost(law: str, **more: object) -> float:
    return everything([ExactBound(BASE, LAWS[law])], Asked(**more)).epsilon(LOG_DELTA).value


@pytest.mark.parametrize(("law", "then", "two"), [("logarithmic", 3.707, 4.492), ("poisson", 4.537, 6.140)])
def test_a_search_and_one_final_run_and_two_searches(law, then, two):
    assert cost(law, then=(BASE,)) == pytest.approx(then, abs=1.5e-3)
    # the reference is an upper bound by coarser nodes
    assert two - 3e-3 < cost(law, searches=2) < two + 1.5e-3


@pytest.mark.parametrize(
    ("law", "rate", "rest", "everything"),
    [
        ("logarithmic", 0.5, 2.056, 3.044),
        ("poisson", 0.01, 1.985, 1.996),
        pytest.param("logarithmic", 0.01, 1.985, 1.995, marks=pytest.mark.fuzz),
        pytest.param("geometric", 0.5, 2.195, 3.171, marks=pytest.mark.fuzz),
        pytest.param("geometric", 0.1, 1.896, 2.117, marks=pytest.mark.fuzz),
        pytest.param("poisson", 0.5, 2.916, 3.791, marks=pytest.mark.fuzz),
        pytest.param("poisson", 0.1, 1.898, 2.338, marks=pytest.mark.fuzz),
    ],
)
def test_tuning_on_a_sample(law, rate, rest, everything):
    assert cost(law, subset=rate, then=(BASE,), then_on="rest") == pytest.approx(rest, abs=1.5e-3)
    assert cost(law, subset=rate, then=(BASE,)) == pytest.approx(everything, abs=1.5e-3)


@pytest.mark.parametrize(("share", "epsilon"), [(0.5, 2.544), (0.1, 2.189)])
def test_screen_then_finish_splits_the_budget_of_one_run(share, epsilon):
    # a Gaussian run splits into a short one and the rest: their 1/sigma^2 add up to the whole run's
    short, rest = Gaussian(math.sqrt(5.0 / share)), Gaussian(math.sqrt(5.0 / (1.0 - share)))
    found = everything([ExactBound(short, LAWS["logarithmic"])], Asked(then=(rest,))).epsilon(LOG_DELTA).value
    assert found == pytest.approx(epsilon, abs=1.5e-3)


def test_one_more_run_of_dp_sgd_costs_less_than_by_renyi_curves():
    base = DPSGD(0.0213, 1.5, 1840)
    found = everything([ExactBound(base, Poisson(15.0))], Asked(1e-5, then=(base,))).epsilon(math.log(1e-5)).value
    assert 6.5 < found < 8.02


def test_what_more_is_released_costs_more():
    alone = cost("logarithmic")
    search = ExactBound(BASE, LAWS["logarithmic"]).epsilon(LOG_DELTA).value
    assert search <= alone <= search * (1.0 + 1e-3)
    sampled = cost("logarithmic", subset=0.3)
    assert sampled < alone < cost("logarithmic", then=(PureDP(0.1),)) < alone + 0.1 + 1e-3
    # the rest of a screened run is charged the maximum of the candidates' profiles
    either = cost("logarithmic", then=(Mixture((BASE, Gaussian(4.0))),))
    assert either == pytest.approx(3.707, abs=1.5e-3)


def test_curves_add_where_they_are_all_that_is_known():
    bounds = bounds_for(ZCDP(0.1), Poisson(10.0))
    one = min(bound.epsilon(LOG_DELTA).value for bound in bounds)
    both = everything(bounds, Asked(then=(ZCDP(0.1),)))
    assert one < both.epsilon(LOG_DELTA).value < one + 2.142
    assert np.isfinite(both.rdp(np.array([2.0, 5.0]))).all()
    assert everything(bounds, Asked(subset=0.1, then=(ZCDP(0.1),))).rdp(np.array([2.0])) is None


def best_of(two: Two, law: dict[int, float]) -> Two:
    """Output laws of best-of-K: outcomes ranked by index, ties to the earlier run; the last one says that K = 0."""
    out = []
    for single in two:
        below = np.cumsum(np.append(0.0, single))
        masses = sum(p * np.diff(below**k) for k, p in law.items() if k > 0)
        out.append(np.append(masses, law.get(0, 0.0)))
    return out[0], out[1]


def check(rng: np.random.Generator) -> None:
    two, final = random_two(rng, int(rng.integers(2, 4))), random_two(rng)
    runs = {int(k): 0.0 for k in rng.integers(1, 8, 2)}
    shares = rng.dirichlet(np.ones(len(runs)))
    runs = dict(zip(runs, shares / shares.sum(), strict=True))
    law = FinitePmf(runs) if len(runs) > 1 else Fixed(next(iter(runs)))
    bounds, rate = [ExactBound(as_pair(two), law)], float(rng.uniform(0.05, 0.9))
    then = (as_pair(final),)
    cases = {
        (): lambda one: one,
        ("then",): lambda one: followed(one, [final] * len(one[0])),
        ("searches",): lambda one: followed(one, [one] * len(one[0])),
        ("subset", "then"): lambda one: sampled_then_all(one, [final] * len(one[0]), rate),
        ("subset", "then", "then_on"): lambda one: sampled_then_rest(one, [final] * len(one[0]), rate),
    }
    log_delta = float(rng.uniform(-8.0, -1.0))
    options = {"then": then, "searches": 2, "subset": rate, "then_on": "rest"}
    ranked = [[part[list(order)] for part in two] for order in itertools.permutations(range(len(two[0])))]
    for names, joint in cases.items():
        asked = Asked(math.exp(log_delta), **{name: options[name] for name in names})
        epsilon = everything(bounds, asked).epsilon(asked.log_delta).value
        if not math.isfinite(epsilon):
            continue
        for p, q in ranked:
            whole = joint(best_of((p, q), runs))
            for laws in (whole, exchanged(whole)):
                assert divergence(laws, math.exp(epsilon)) <= asked.delta * (1.0 + 1e-9), (names, two, runs)


@pytest.mark.parametrize("rounds", [1, pytest.param(25, marks=pytest.mark.fuzz)])
def test_enumerated_searches_with_what_follows_them(rounds, monkeypatch):
    monkeypatch.setattr(exact, "_EVEN", 60)  # any number is sound
    rng = np.random.default_rng(33)
    for _ in range(rounds):
        check(rng)


def test_a_search_becomes_a_pair_that_gives_its_epsilon_back():
    bound = ExactBound(PureDP(1.0), Poisson(10.0))
    pair = search_pair([bound], math.log(1e-3))
    found = epsilon_from_profile(pair.log_profile, math.log(1e-3))
    # two certificates of one number, each right to 1e-4
    assert bound.mechanism(math.log(1e-3)) <= found <= 5.4760 * (1.0 + 1e-3)
    assert found == pytest.approx(bound.epsilon(math.log(1e-3)).value, rel=1e-4)


def test_a_total_is_what_its_parts_compose_to():
    one = search_cost(BASE, LAWS["logarithmic"], Asked(method="refined-region"), lower=False)
    both = total({"a": one, "b": one}, delta=1e-6).epsilon
    assert both == pytest.approx(cost("logarithmic", searches=2), rel=1e-4)
    assert total({"a": one}, delta=1e-6).epsilon == cost("logarithmic")
