"""Plans: every printed value meets the target through ``bound``, the next one does not, nothing better is missed."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest

from hpcalc import ZCDP, ApproxDP, Gaussian, Laplace, ProfileCurve, PureDP, RDPCurve, bound, compose, plan, repeat
from hpcalc.errors import InvalidInput, TargetOutOfReach
from hpcalc.guarantees import Guarantee
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.guarantees.mixture import Mixture
from hpcalc.laws import Binomial, Fixed, Poisson, TruncatedNegativeBinomial
from hpcalc.questions.measures import Aims
from hpcalc.questions.solving import best_rate

# -- laws

_TRAINING = DPSGD(256 / 60000, 1.1, 14062)  # Papernot and Steinke 2022, Section 3.5: at delta = 1e-5
_QUICK = [(ZCDP(0.01), 1.0), (ZCDP(0.1), 0.5), (ZCDP(0.1), 4.0), (Gaussian(2.0), 4.0), (PureDP(0.3), 1.0)]
_LONG = [(ZCDP(0.01), 8.0), (Gaussian(2.0), 8.0), (PureDP(0.3), 2.0), (PureDP(0.3), 8.0)]
_TRAINED = [(_TRAINING, target) for target in (0.5, 2.0, 8.0)]
_TNB = TruncatedNegativeBinomial.with_mean(10.0, eta=0.0)
_LATER = [pytest.param(*case, marks=pytest.mark.fuzz) for case in (*_LONG, *_TRAINED)]


@pytest.mark.slow
@pytest.mark.parametrize(("base", "target"), [*_QUICK, *_LATER])
def test_what_is_printed_meets_the_target_and_one_step_further_does_not(base: Guarantee, target: float) -> None:
    delta = 1e-5 if base is _TRAINING else 1e-6
    if bound(base, Fixed(1), delta=delta, lower=False).epsilon > target:
        # not even one run on average is within reach
        assert bound(base, Poisson(1.0), delta=delta, lower=False).epsilon > target
        with pytest.raises(TargetOutOfReach, match="out of reach"):
            plan(base, target_epsilon=target, delta=delta)
        return
    for item in plan(base, target_epsilon=target, delta=delta).entries:
        if item.runs is None:
            assert item.value is None
            assert item.reason
            continue
        assert float(f"{item.value:.5e}") == item.value
        assert item.runs.mean >= 1.0 - 1e-12
        again = bound(base, item.family.at(item.value), delta=delta, lower=False).epsilon
        assert again <= target
        assert again == pytest.approx(item.cost.epsilon, rel=1e-12)
        if item.beyond is not None:
            step = bound(base, item.family.at(item.beyond), delta=delta, lower=False).epsilon
            assert step > target * (1.0 - 1e-4)  # certificates are that fine
        else:
            assert " meets the target: at a mean of" in item.reason
            assert item.runs.mean == pytest.approx(1e6, rel=1e-4)


_ANY_BASE = [
    ZCDP(0.05), Gaussian(8.0), Gaussian(3.0), PureDP(0.4), Laplace(4.0), Laplace(1.0), ApproxDP(0.3, 1e-9),
    RDPCurve({2.0: 0.1, 4.0: 0.2, 8.0: 0.5, 32.0: 2.0}), compose(Gaussian(4.0), ApproxDP(0.1, 1e-9)),
    ProfileCurve({0.0: 0.1, 0.5: 1e-3, 1.0: 1e-7, 2.0: 1e-12}),
]  # fmt: skip
_ANY_LAW = ["poisson", "tnb:eta=-0.5", "tnb:eta=3", "binomial:n=20", "binomial:p=0.3", "fixed", "poisson:max-runs=30",
            "tnb:eta=0,at-least-one", "geometric", "threshold"]  # fmt: skip


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_asked_the_answer_is_the_last_that_meets_the_target(seed: int) -> None:
    draw = random.Random(seed)
    base, shape = draw.choice(_ANY_BASE), draw.choice(_ANY_LAW)
    target = draw.choice([0.5, 1.0, 1.5, 3.0, 5.0, 9.0, 15.0])
    options = {
        "delta": draw.choice([1e-9, 1e-6, 1e-5, 1e-3]),
        "method": draw.choice(["best"] * 6 + ["refined", "paper", "refined-region", "refined-rdp"]),
        "conversion": draw.choice(["best"] * 3 + ["cks", "mironov", "exact"]),
    }
    try:
        best = plan(base, shape, target_epsilon=target, **options).best
    except TargetOutOfReach:
        return
    assert best.runs is not None
    assert best.cost is not None
    again = bound(base, best.runs, lower=False, **options).epsilon
    assert again <= target
    assert again == pytest.approx(best.cost.epsilon, rel=1e-9)
    if best.beyond is not None:
        assert bound(base, best.family.at(best.beyond), lower=False, **options).epsilon > target * (1.0 - 1e-4)


def test_rows_have_the_published_keys_in_order() -> None:
    document = plan(ZCDP(0.1), target_epsilon=3.0, success_rate=0.01).document()
    assert list(document)[2:] == [
        "base", "delta", "single_run", "solved_for", "value", "epsilon", "target_epsilon", "success_rate", "maximize",
        "rows", "recommended", "warnings",
    ]  # fmt: skip
    for row in document["rows"]:
        assert list(row) == [
            "dist", "solved_for", "value", "law", "mean_runs", "p50_runs", "p95_runs", "p99_runs", "prob_zero",
            "epsilon", "method", "expected_quantile", "success_probability",
        ]  # fmt: skip
        assert row["law"][row["solved_for"]] == row["value"]
    chosen = document["rows"][document["recommended"]["row"]]
    assert (chosen["value"], chosen["epsilon"]) == (document["value"], document["epsilon"])
    assert document["recommended"]["reason"].startswith("the highest chance of success")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("maximize", "key"), [("quantile", "expected_quantile"), ("success", "success_probability"), ("runs", "mean_runs")]
)
def test_rows_are_sorted_by_the_goal(maximize: str, key: str) -> None:
    rows = plan(ZCDP(0.1), target_epsilon=3.5, success_rate=0.02, maximize=maximize).rows
    assert [row[key] for row in rows] == sorted((row[key] for row in rows), reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("minimize", [False, True])
def test_scores_are_a_goal(minimize: bool) -> None:
    scores = [0.1 * i for i in range(40)]
    answer = plan(ZCDP(0.1), target_epsilon=3.5, scores=scores, minimize=minimize)
    worth = [row["expected_score"] for row in answer.rows]
    assert worth == sorted(worth, reverse=not minimize)
    assert "the best expected score" in answer.reason


@pytest.mark.slow
def test_the_run_time_limit_holds_and_is_the_reason() -> None:
    answer = plan(ZCDP(0.1), target_epsilon=4.0, max_runs_p95=100)
    for item in answer.entries:
        assert item.runs is not None
        assert item.runs.quantile(0.95) <= 100
        if item.beyond is None:
            grid = item.family.grid
            bolder = item.family.at(grid.value(grid.index(item.value) + 1))
            assert bolder.quantile(0.95) > 100
            assert "100 times" in item.reason
    assert {item.beyond is None for item in answer.entries} == {True, False}


@pytest.mark.slow
def test_a_fixed_number_of_runs_and_binomials_are_solved_in_whole_numbers() -> None:
    fixed = plan(ZCDP(0.1), "fixed", target_epsilon=4.0).best
    assert (fixed.value, fixed.beyond) == (3.0, 4.0)
    coins = plan(ZCDP(0.1), "binomial:p=0.5", target_epsilon=4.0).best
    assert coins.solved_for == "n"
    assert bound(ZCDP(0.1), Binomial(int(coins.value), 0.5)).epsilon <= 4.0
    assert bound(ZCDP(0.1), Binomial(int(coins.value) + 1, 0.5)).epsilon > 4.0
    chance = plan(ZCDP(0.1), {"dist": "binomial", "n": 30}, target_epsilon=4.0).best
    assert chance.solved_for == "p"


@pytest.mark.slow
def test_an_unreachable_target_names_one_that_works() -> None:
    laws = ["poisson", "tnb:eta=0"]
    with pytest.raises(TargetOutOfReach, match="give --target-epsilon") as caught:
        plan(ZCDP(0.1), laws=laws, target_epsilon=1.5)
    offered = float(str(caught.value).split("--target-epsilon ")[1].split()[0])
    assert offered < 2.143  # one run costs 2.1420
    assert caught.value.reachable is not None
    assert offered - 1e-3 < caught.value.reachable["low"] <= offered
    assert plan(ZCDP(0.1), laws=laws, target_epsilon=offered).best.value is not None


@pytest.mark.slow
def test_a_success_out_of_reach_names_what_it_would_cost() -> None:
    with pytest.raises(TargetOutOfReach, match="give --target-epsilon") as caught:
        plan(ZCDP(0.01), target_success=0.9, success_rate=0.01, target_epsilon=1.0)
    offered = float(str(caught.value).split("--target-epsilon ")[1].split()[0])
    assert plan(ZCDP(0.01), target_success=0.9, success_rate=0.01, target_epsilon=offered).best.runs is not None
    with pytest.raises(TargetOutOfReach, match="smaller --target-success"):
        plan(ZCDP(0.01), "tnb:eta=-0.5", target_success=0.9, success_rate=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "law", "target", "reason"),
    [
        # eta = -0.5 never costs more than 1.5 epsilon of a pure base
        (PureDP(0.3), "tnb:eta=-0.5", 0.46, "every gamma meets the target: at a mean of 1e+06 runs the search ends"),
        (ApproxDP(0.5, 1e-8), "tnb:eta=1", 3.0, "one step further there is no finite ε at δ = 1e-06"),
        (ZCDP(0.1), "pmf:1=0.5,10=0.5", 4.0, "pmf has no parameter to solve for"),
    ],
)
def test_why_a_search_ends(base: Guarantee, law: str, target: float, reason: str) -> None:
    assert plan(base, law, target_epsilon=target).best.reason == reason


def test_a_complete_law_that_costs_too_much_is_no_plan() -> None:
    with pytest.raises(TargetOutOfReach):
        plan(ZCDP(0.1), "pmf:1=0.5,10=0.5", target_epsilon=2.5)


@pytest.mark.parametrize("limit", [{"max_runs_p95": 9}, {"target_success": 0.5, "success_rate": 0.01}])
@pytest.mark.parametrize("asked", [{"subset": "auto"}, {"solve_for": "zcdp"}, {}])
def test_a_law_that_is_given_is_held_to_limits(asked: dict[str, object], limit: dict[str, object]) -> None:
    law = _TNB if asked else "pmf:1=0.5,10=0.5"
    with pytest.raises(TargetOutOfReach, match=r"(quantile of runs exceeds 9|success probability is 0\.\d+);\ngive a "):
        plan(ZCDP(0.1), law, target_epsilon=9.0, **asked, **limit)


@pytest.mark.parametrize("asked", [{}, {"runs": Fixed(2), "solve_for": "zcdp"}, {"runs": _TNB, "subset": "auto"}])
def test_what_is_infinite_says_why(asked: dict[str, object]) -> None:
    with pytest.raises(TargetOutOfReach, match="(tnb:eta=1|fixed|tnb:eta=0): delta = 0 needs a pure guarantee"):
        plan(ZCDP(0.1), target_epsilon=2.0, delta=0.0, **asked)


def test_a_value_that_is_not_used_is_told() -> None:
    with_value = plan(ZCDP(0.1), "tnb:eta=0,mean=10", target_epsilon=3.0)
    assert with_value.best.value == plan(ZCDP(0.1), "tnb:eta=0", target_epsilon=3.0).best.value
    assert any("not used" in warning for warning in with_value.warnings)


@pytest.mark.slow
def test_the_fewest_runs_for_a_chance_of_success() -> None:
    answer = plan(ZCDP(0.01), target_success=0.9, success_rate=0.01)
    costs = [row["epsilon"] for row in answer.rows if row["epsilon"] is not None]
    assert costs == sorted(costs)
    for item in answer.entries:
        if item.value is None:
            assert "its success probability ends at 0." in item.reason
            continue
        grid = item.family.grid
        index = grid.index(item.value)
        assert Aims(0.01).success(item.runs) >= 0.9
        assert Aims(0.01).success(item.family.at(grid.value(index - 1))) < 0.9
    # a limit on the cost leaves out what exceeds it
    cheap = plan(ZCDP(0.01), target_success=0.9, success_rate=0.01, target_epsilon=1.6)
    assert {item.family.label for item in cheap.entries if item.value} == {"tnb:eta=0.5", "tnb:eta=1"}


# -- noise


@pytest.mark.parametrize(
    ("target", "sigma"), [(1000.0, 0.0250995891), (50.0, 0.161980055), (1.0, 4.53087712), (1e-4, 20398.0634)]
)
def test_noise_of_one_gaussian_run(target: float, sigma: float) -> None:
    best = plan(
        None, Fixed(1), solve_for="gaussian", target_epsilon=target, method="composition", conversion="cks"
    ).best
    assert best.value == pytest.approx(sigma, rel=1e-5)
    assert best.value >= sigma * (1.0 - 1e-9)


def _candidates(sigma: float) -> Guarantee:
    return Mixture((Gaussian(sigma), Gaussian(2.0 * sigma)), (0.5, 0.5))


_NOISES = {
    "zcdp": (ZCDP, {}), "pure": (PureDP, {}), "gaussian": (Gaussian, {}), "laplace": (Laplace, {}),
    "dpsgd-noise": (lambda sigma: DPSGD(0.05, sigma, 100), {"sampling": (0.05, 100)}),
    "candidates": (_candidates, {"sampling": _candidates}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "runs"),
    [
        ("zcdp", Poisson(10.0)),
        ("pure", Fixed(3)),
        ("gaussian", Poisson(10.0)),
        ("laplace", _TNB),
        ("candidates", _TNB),
        pytest.param("dpsgd-noise", Poisson(5.0), marks=pytest.mark.slow),
        pytest.param("gaussian", Fixed(3), marks=pytest.mark.fuzz),
        pytest.param("laplace", Poisson(10.0), marks=pytest.mark.fuzz),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_least_noise_meets_the_target_and_less_does_not(kind: str, runs: object) -> None:
    make, more = _NOISES[kind]
    kind = "dpsgd-noise" if kind == "candidates" else kind
    answer = plan(None, runs, solve_for=kind, target_epsilon=2.0, **more)
    best = answer.best
    assert (best.beyond > best.value) == (kind in ("zcdp", "pure"))
    assert bound(make(best.value), runs, lower=False).epsilon <= 2.0
    assert bound(make(best.beyond), runs, lower=False).epsilon > 2.0 * (1.0 - 1e-4)
    assert "steps" not in answer.document() or answer.document()["steps"] == 100


@pytest.mark.slow
def test_noise_beside_what_else_one_run_does() -> None:
    rest, runs = ZCDP(0.001), Poisson(5.0)
    best = plan(rest, runs, solve_for="gaussian", target_epsilon=1.0, compositions=4).best
    assert bound(repeat(compose(rest, Gaussian(best.value)), 4), runs, lower=False).epsilon <= 1.0
    with pytest.raises(TargetOutOfReach, match="out of reach"):
        plan(ZCDP(1.0), runs, solve_for="gaussian", target_epsilon=1.0)


@pytest.mark.slow
def test_noise_for_every_default_law_is_told_beside_what_the_search_finds() -> None:
    answer = plan(None, solve_for="gaussian", mean=30.0, target_epsilon=3.0)
    assert [row["mean_runs"] for row in answer.rows] == pytest.approx([30.0] * 5)
    noises = [row["value"] for row in answer.rows]
    assert noises == sorted(noises)
    assert all(row["epsilon"] <= 3.0 and row["expected_quantile"] > 0.6 for row in answer.rows)
    # the recommendation says what the least noise is traded for
    assert f"95 % of searches ending by {answer.rows[0]['p95_runs']} runs" in answer.reason
    best = max(answer.rows, key=lambda row: row["expected_quantile"])
    assert f"{best['expected_quantile']:.4f} at {best['value']:g} (poisson)" in answer.reason
    # asked for quality instead, the rows follow it
    rows = plan(None, solve_for="gaussian", mean=30.0, target_epsilon=3.0, maximize="quantile").rows
    assert rows[0]["law"]["dist"] == "poisson"


def test_the_best_rate_of_a_sample_is_scanned_for() -> None:
    for least in (0.0021, 0.037, 0.15, 0.5, 0.93):
        assert abs(math.log(best_rate(lambda x, least=least: (math.log(x / least)) ** 2) / least)) < 0.1
    # two valleys: the deeper one, though the other one is wider
    assert best_rate(lambda x: min((x - 0.7) ** 2, 30.0 * (x - 0.01) ** 2 - 0.1)) == pytest.approx(0.01, abs=0.002)


# -- the best eta


def _best_on_a_grid(base: object, target: float, etas: list[float], key: str, **options: object) -> float:
    laws = [{"dist": "tnb", "eta": eta} for eta in etas]
    answer = plan(base, laws=laws, target_epsilon=target, **options)
    return max(row[key] for row in answer.rows if row["value"] is not None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "rate", "method", "many"),
    [
        (4.0, 0.01, "paper", 12),
        (4.0, None, "best", 5),
        *(pytest.param(*case, "paper", 30, marks=pytest.mark.fuzz) for case in ((3.0, None), (6.0, None), (3.2, 0.1))),
        *(pytest.param(4.0, rate, "best", 200, marks=pytest.mark.fuzz) for rate in (None, 0.01)),
    ],
)
def test_no_eta_on_a_fine_grid_is_better(target: float, rate: float | None, method: str, many: int) -> None:
    etas = [math.expm1(x) for x in np.linspace(math.log(0.05), math.log(30.0), many)]
    key = "expected_quantile" if rate is None else "success_probability"
    options = {"method": method, "success_rate": rate}
    best = plan(ZCDP(0.1), target_epsilon=target, optimize_eta=True, **options)
    assert best.rows[0][key] >= _best_on_a_grid(ZCDP(0.1), target, etas, key, **options) - 2e-5
    # and the limits of the family are in the list that it was chosen from
    assert best.rows[0][key] >= max(row[key] for row in best.rows)


@pytest.mark.slow
def test_the_cheapest_eta_for_a_chance_of_success() -> None:
    best = plan(ZCDP(0.01), target_success=0.9, success_rate=0.01, optimize_eta=True, method="paper")
    etas = [math.expm1(x) for x in np.linspace(math.log(0.5), math.log(20.0), 20)]
    grid = plan(
        ZCDP(0.01), laws=[{"dist": "tnb", "eta": eta} for eta in etas], target_success=0.9, success_rate=0.01,
        method="paper",
    )  # fmt: skip
    assert best.rows[0]["epsilon"] <= grid.rows[0]["epsilon"] * (1.0 + 2e-5)


# -- what cannot be asked


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({}, "target_epsilon"),
        ({"target_epsilon": 0.0}, "target_epsilon"),
        ({"target_epsilon": math.nan}, "target_epsilon"),
        ({"target_epsilon": math.inf}, "target_epsilon"),
        ({"target_epsilon": 4.0, "maximize": "speed"}, "maximize"),
        ({"target_epsilon": 4.0, "maximize": "score"}, "maximize"),
        ({"target_epsilon": 4.0, "maximize": "success"}, "maximize"),
        ({"target_epsilon": 4.0, "solve_for": "gaussian"}, "mean"),
        ({"target_epsilon": 4.0, "solve_for": "noise"}, "solve_for"),
        ({"target_epsilon": 4.0, "solve_for": "gaussian", "laws": ["tnb:eta=0"]}, "mean"),
        ({"target_epsilon": 4.0, "mean": 10.0}, "mean"),
        ({"subset": "auto", "runs": Poisson(2.0), "solve_for": "runs"}, "solve_for"),
        ({"subset": "auto", "runs": Poisson(2.0), "optimize_eta": True}, "optimize_eta"),
        ({"target_epsilon": 4.0, "solve_for": "dpsgd-noise", "laws": [Poisson(2.0)]}, "solve_for"),
        ({"target_success": 0.9}, "target_success"),
        ({"target_success": 1.5, "success_rate": 0.1}, "target_success"),
        ({"target_epsilon": 4.0, "success_rate": 0.0}, "success_rate"),
        ({"target_epsilon": 4.0, "max_runs_p95": 0}, "max_runs_p95"),
        ({"target_epsilon": 4.0, "laws": ["tnb"]}, "eta"),
        ({"target_epsilon": 4.0, "laws": ["tnb:eta=-2"]}, "eta"),
    ],
)
def test_wrong_questions_name_the_parameter(options: dict[str, object], parameter: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan(ZCDP(0.1), **options)
    assert caught.value.parameter == parameter


@pytest.mark.slow
def test_progress_is_told_and_ends_below_its_total() -> None:
    seen: list[tuple[int, int]] = []
    plan(ZCDP(0.1), "poisson", target_epsilon=3.0, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert all(done <= total for done, total in seen)


@pytest.mark.slow
@pytest.mark.parametrize("base", [ZCDP(0.1), Gaussian(2.0)], ids=repr)
def test_a_full_plan_is_quick(base: Guarantee) -> None:
    start = time.process_time()
    assert plan(base, target_epsilon=4.0).best.runs is not None
    assert time.process_time() - start < 8.0  # about 1 s on an idle machine; the processor of a busy one is slower
