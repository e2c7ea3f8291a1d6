"""What everything released costs, through ``bound`` and ``plan``: reference values of hpcalc-theory(7)."""

from __future__ import annotations

import json
import math
import pickle

import jsonschema
import numpy as np
import pytest

from hpcalc import ZCDP, ApproxDP, FinitePmf, Fixed, Gaussian, PureDP, Threshold, bound, compare, make_law, plan
from hpcalc.errors import ExitCode, InvalidInput, NoFiniteBound, TargetOutOfReach
from hpcalc.files import shipped
from hpcalc.laws import AnyRuns
from hpcalc.output import render
from hpcalc.questions.release import total

_RUN = Gaussian(math.sqrt(5.0))
_SCHEMA = jsonschema.Draft202012Validator(json.loads(shipped("schema.json")))
_LAW = make_law("tnb", eta=0.0, mean=10.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"then": [_RUN]}, 3.707),
        ({"searches": 2}, 4.492),
        ({"subset": 0.1, "then": [_RUN], "then_on": "rest"}, 1.896),
        ({"subset": 0.1, "then": [_RUN]}, 2.084),
        ({"subset": 0.28, "then": [_RUN], "then_on": "rest"}, 1.7288),
    ],
    ids=str,
)
def test_reference_values(options: dict[str, object], expected: float) -> None:
    answer = bound(_RUN, _LAW, **options)
    assert answer.epsilon == pytest.approx(expected, rel=1e-3)
    document = answer.document()
    # the search alone stands beside it, and nothing is claimed that is not known
    assert document["search"]["epsilon"] == pytest.approx(2.7384, abs=1e-3)
    assert document["lower_bound"]["epsilon"] is None
    assert document["lower_bound"]["reason"]
    assert document["exact"] is False
    # gates and exports mean everything
    assert bound(_RUN, _LAW, max_epsilon=expected - 0.01, **options).exit_code == ExitCode.OVER_BUDGET
    point = next(row for row in answer.profile() if row["epsilon"] == answer.epsilon)
    assert point["delta"] == pytest.approx(1e-6, rel=1e-3)
    assert (answer.rdp_curve() != [] and answer.rdp_curve()[0]["epsilon"] is not None) == ("subset" not in options)


def test_everything_pure_has_an_answer_without_delta() -> None:
    base, law = PureDP(0.5), make_law("geometric", mean=2.0)
    search = bound(base, law, delta=0.0).epsilon
    two = {"searches": 2}, 2.0 * search
    sampled = {"subset": 0.5}, math.log(0.5 + 0.5 * math.exp(search))
    for options, expected in (two, sampled, ({"then": [PureDP(0.1)]}, search + 0.1)):
        assert expected * (1.0 - 1e-12) <= bound(base, law, delta=0.0, **options).epsilon <= expected * (1.0 + 1e-7)
    every, one_more = (bound(ZCDP(0.1), AnyRuns(k), then=[ZCDP(0.1)] * (4 - k), lower=False).epsilon for k in (4, 3))
    assert every <= one_more <= every * (1.0 + 1e-6)
    assert "give a larger delta" in (bound(base, law, delta=0.0, then=[_RUN]).reason or "")


def test_what_is_released_is_in_every_number_or_none_is_told() -> None:
    # the search has no finite price at this delta, what follows it has; once the exports and the total left that out
    answer = bound(ApproxDP(0.5, 1e-4), Fixed(20), then=[Gaussian(0.5)], lower=False)
    assert math.isinf(answer.epsilon)
    assert "smallest delta" in (answer.reason or "")
    assert np.all(answer.log_profile(np.array([0.0, 2.0])) >= Gaussian(0.5).log_profile([0.0, 2.0]))
    assert all(row["epsilon"] is None for row in answer.rdp_curve())
    with pytest.raises(NoFiniteBound, match="first has no finite bound"):
        total({"first": answer}, delta=1e-2)


def test_a_total_and_its_profile_agree_and_it_names_the_neighbours_of_its_cases() -> None:
    case = bound(ZCDP(0.0015), Threshold(1.0), searches=2, subset=0.5, unit="one patient", lower=False)
    both = total({"a": case}, delta=1e-5)
    assert both.log_profile(np.array([both.epsilon]))[0] <= math.log(1e-5)
    told = render({"cases": [case.document() | {"name": "a"}, both.document() | {"name": "b"}]}, "statement")
    assert told.count("with respect to the addition or removal of one patient") == 2
    assert "with respect to the neighbouring data sets of each." in render(both.document(), "statement")


@pytest.mark.slow
def test_an_answer_about_everything_is_pickled() -> None:
    answer = bound(_RUN, _LAW, searches=2, lower=False)
    assert pickle.loads(pickle.dumps(answer)).epsilon == answer.epsilon


def test_one_search_and_nothing_else_is_a_plain_answer() -> None:
    assert "search" not in bound(_RUN, _LAW, searches=1, examples=10**6, unit="one patient").document()


def test_a_density_is_of_runs_that_follow_a_prior() -> None:
    with pytest.raises(InvalidInput, match="^density: "):
        bound(_RUN, Threshold(0.1), density=(0.9, 1.1))


@pytest.mark.slow
def test_plans_and_comparisons_say_what_else_is_released() -> None:
    asked = {"searches": 2, "subset": 0.1, "then": [_RUN], "then_on": "rest", "unit": "one patient"}
    base, law = PureDP(0.5), FinitePmf([0.0, 0.5, 0.5])
    for answer in (plan(base, law, target_epsilon=6.0, **asked), compare(base, [law], **asked)):
        document = answer.document()
        _SCHEMA.validate(document)
        assert {key: document[key] for key in asked} == {**asked, "then": [_RUN.describe()]}
        for text in (render(document, "table"), render(document, "markdown"), repr(answer)):
            assert "everything released" in text
            assert "whole search" not in text
    with pytest.raises(TargetOutOfReach, match="the least everything released can cost"):
        plan(base, law, target_epsilon=0.01, **asked)


def test_a_plan_of_noise_is_an_answer_of_the_schema() -> None:
    document = plan(ZCDP(0.01), "poisson", solve_for="zcdp", target_epsilon=4.0, mean=10.0, compositions=2).document()
    _SCHEMA.validate(document)
    assert "for the whole search" in render(document, "table")
