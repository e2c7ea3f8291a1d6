"""Choosing one of m candidates: closed forms, simulation, and the order of the mechanisms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpcalc import Fixed, Gaussian, InvalidInput, Laplace, Poisson, Threshold, TruncatedNegativeBinomial, bound
from hpcalc.questions.selection import (
    best_of_k_error,
    compare_selection,
    exponential_mechanism_error,
    report_noisy_max_error,
)


@pytest.mark.parametrize("m", [2, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_exponential_mechanism_fails_as_often_as_allowed(m: int, epsilon: float) -> None:
    sensitivity, fail = 3.0, 0.05
    error = exponential_mechanism_error(m, epsilon, sensitivity, fail)
    weight = (m - 1) * math.exp(-epsilon * error / (2.0 * sensitivity))
    assert weight / (1.0 + weight) == pytest.approx(fail)


def test_report_noisy_max_of_two_candidates() -> None:
    # the difference of two Laplace variables exceeds t with probability exp(-t)(2 + t)/4
    epsilon, fail = 0.7, 0.1
    t = report_noisy_max_error(2, epsilon, 1.0, fail) * epsilon / 2.0
    assert math.exp(-t) * (2.0 + t) / 4.0 == pytest.approx(fail, rel=1e-6)


def test_report_noisy_max_against_simulation() -> None:
    m, epsilon, fail, trials = 20, 1.0, 0.2, 40_000
    error = report_noisy_max_error(m, epsilon, 1.0, fail)
    noise = np.random.default_rng(1).laplace(scale=2.0 / epsilon, size=(trials, m))
    noise[:, 1:] -= error
    assert (noise.argmax(axis=1) != 0).mean() == pytest.approx(fail, abs=5.0 * math.sqrt(fail / trials))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "law",
    [Poisson(20.0), Fixed(12), TruncatedNegativeBinomial(1.0, 0.02)],
    ids=lambda law: law.name,
)
def test_best_of_k_against_simulation(law: object, noise: str) -> None:
    m, fail, trials, scale = 4, 0.25, 10_000, 1.7
    error = best_of_k_error(law, m, scale, noise, fail)
    assert error is not None
    rng = np.random.default_rng(7)
    p = np.exp(law.log_pmf(np.arange(20_000.0)))
    runs = rng.choice(p.size, size=trials, p=p / p.sum())
    failures = 0
    for k in runs.tolist():
        drawn = rng.integers(m, size=k)
        noisy = np.where(drawn == 0, 0.0, -error)
        noisy = noisy + (rng.laplace(scale=scale, size=k) if noise == "laplace" else rng.normal(scale=scale, size=k))
        failures += k == 0 or drawn[noisy.argmax()] != 0
    assert failures / trials == pytest.approx(fail, abs=5.0 * math.sqrt(fail / trials))


@pytest.mark.slow
def test_every_row_costs_what_it_says() -> None:
    answer = compare_selection(10, 2.0, 1.0, laws=["tnb:eta=1"], delta=1e-6)
    rows = [choice for choice in answer.choices if choice.mechanism == "best-of-k"]
    assert [choice.noise for choice in rows] == ["laplace", "gaussian"]
    for choice in rows:
        assert choice.runs is not None
        assert choice.scale is not None
        if choice.noise == "laplace":
            # pure: the scores need no delta
            assert bound(Laplace(choice.scale / 2.0), choice.runs, delta=0.0, lower=False).epsilon <= 1.0 + 1e-9
        else:
            assert bound(Gaussian(choice.scale / 2.0), choice.runs, lower=False).epsilon <= 1.0


@pytest.mark.parametrize(
    ("arguments", "options", "parameter"),
    [
        ((1, 1.0, 1.0), {}, "selection"),
        ((10, 0.0, 1.0), {}, "sensitivity"),
        ((10, 1.0, None), {}, "at_epsilon"),
        ((10, 1.0, -1.0), {}, "at_epsilon"),
        ((10, 1.0, math.nan), {}, "at_epsilon"),
        ((10, 1.0, 1.0), {"delta": 1.0}, "delta"),
        ((10, 1.0, 1.0), {"confidence": 1.0}, "confidence"),
    ],
)
def test_wrong_questions_name_the_parameter(arguments: tuple, options: dict, parameter: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        compare_selection(*arguments, **options)
    assert caught.value.parameter == parameter


def test_no_gap_is_needed_where_failing_half_the_time_is_allowed() -> None:
    # of two equal candidates the right one wins half the time
    assert best_of_k_error(Fixed(12), 2, 1.0, "laplace", 0.9) == 0.0


def test_missing_the_best_candidate_as_often_as_allowed_leaves_nothing_for_the_noise() -> None:
    # two draws miss one of two candidates with probability 1/4 whatever the gap
    assert best_of_k_error(Fixed(2), 2, 1.0, "laplace", 0.25) is None
    error = best_of_k_error(Fixed(2), 2, 1.0, "laplace", 0.25 * (1.0 + 1e-9))
    assert error > 20.0


def test_given_laws_and_means_are_taken_as_they_are() -> None:
    (best,) = compare_selection(10, 1.0, 2.0, laws=[Poisson(40.0)], delta=0.0).choices[2:]
    assert best.runs == Poisson(40.0)
    assert best.error == pytest.approx(best_of_k_error(Poisson(40.0), 10, best.scale), rel=1e-9)
    (mean,) = compare_selection(10, 1.0, 2.0, laws=["poisson"], mean=40.0, delta=0.0).choices[2:]
    assert mean.error == best.error


@pytest.mark.parametrize(
    ("laws", "mean", "reason"),
    [
        (["tnb:eta=1"], 0.5, "no mean of 0.5: give a number >= 1"),
        ([Threshold(0.1)], None, "it releases the first accepted run"),
        ([Fixed(2)], None, "it misses the best candidate too often"),
        ([Poisson(1e306)], None, "no noise is enough for this ε"),
    ],
)
def test_why_best_of_k_has_no_error(laws: list, mean: float | None, reason: str) -> None:
    (choice,) = compare_selection(1000, 1.0, 1.0, laws=laws, mean=mean, delta=0.0).choices[2:]
    assert choice.error is None
    assert choice.reason is not None
    assert reason in choice.reason


def test_the_document() -> None:
    answer = compare_selection(1000, 7.0, 1.0, laws=["tnb:eta=-0.5", "tnb:eta=1"], delta=0.0)
    document, (exponential, _, _, geometric) = answer.document(), (choice.error for choice in answer.choices)
    assert [row["mechanism"] for row in document["rows"]][:2] == ["exponential-mechanism", "report-noisy-max"]
    assert document["rows"][2]["error"] is None
    assert "too often" in document["rows"][2]["reason"]
    # noise three times one run's against twice: the leading terms are 3 log m and 2 log m over epsilon
    assert 1.3 < geometric / exponential < 1.7
