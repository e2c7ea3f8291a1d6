"""The checklist: one list per case, short lines, full sentences, and warnings that the reader can act on."""

from __future__ import annotations

import math

import pytest

from hpcalc import ZCDP, Fixed, Gaussian, InvalidInput, Poisson, PureDP, RDPCurve, Threshold, bound
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.guarantees.mixture import Mixture
from hpcalc.laws import make_law
from hpcalc.questions.asked import CHECKLIST, Asked, assumptions, checklist

_SEARCH = ["fresh", "secret-k", "covered", "released", "score", "order", "neighbours", "delta", "both"]
_RELEASE = Asked(
    searches=3, subset=0.1, then=(Gaussian(2.0),), then_on="rest", density=(0.9, 1.1), examples=60000,
    unit="one patient",
)  # fmt: skip
_CASES = {
    "plain": (ZCDP(0.1), Poisson(10.0), Asked()),
    "fixed": (ZCDP(0.1), Fixed(5), Asked()),
    "composition": (ZCDP(0.1), make_law("composition", k=5), Asked()),
    "threshold": (ZCDP(0.1), Threshold(0.1), Asked()),
    "cut": (ZCDP(0.1), make_law("poisson", mu=10, max_runs=20), Asked()),
    "clamped": (ZCDP(0.1), make_law("poisson", mu=10, clamp_runs=20), Asked()),
    "sgd": (DPSGD(0.01, 1.0, 10), Poisson(10.0), Asked()),
    "mixture": (Mixture((ZCDP(0.1), ZCDP(0.2)), (0.5, 0.5)), Poisson(10.0), Asked()),
    "worst": (Mixture((ZCDP(0.1), ZCDP(0.2))), Poisson(10.0), Asked()),
    "everything": (ZCDP(0.1), Poisson(10.0), _RELEASE),
}


def _keys(name: str) -> list[str]:
    return checklist(*_CASES[name])


def test_each_line_fits_and_is_one_sentence() -> None:
    for key, (text, meaning) in CHECKLIST.items():
        line = text.format(
            runs=10, low=0.9, high=1.1, accept=0.01, max_runs=100, clamp_runs=100, searches=5, subset=0.01,
            unit="one patient", delta=1e-6, examples=1000000,
        )  # fmt: skip
        assert len(line) <= 74, key
        assert line.endswith("."), key
        assert ". " not in line, key
        assert meaning.endswith("."), key


@pytest.mark.parametrize("name", _CASES)
def test_every_case_has_a_list_of_its_own_without_a_gap(name: str) -> None:
    base, runs, asked = _CASES[name]
    told = list(assumptions(base, runs, asked))
    assert len(told) == len(set(told)) == len(_keys(name)) + len(base.notes)
    assert not any("{" in text or "None" in text for text in told)
    assert set(_keys(name)) <= set(CHECKLIST)
    assert told == bound(base, runs, lower=False).document()["assumptions"] or name == "everything"


def test_what_differs_from_a_plain_search() -> None:
    assert _keys("plain") == _SEARCH
    assert _keys("sgd") == _SEARCH
    assert set(_keys("fixed")) ^ set(_SEARCH) == {"fixed-k", "secret-k"}
    assert "--dist composition" in CHECKLIST["fixed-k"][1]
    assert _keys("composition") == ["any-choice", "covered", "neighbours", "delta", "both"]
    assert {"stop", "acceptance"} <= set(_keys("threshold")) - {"secret-k"}
    assert [key for key in _keys("cut") + _keys("clamped") if "runs" in key] == ["max-runs", "clamp-runs"]
    assert set(_keys("mixture")) - set(_SEARCH) == {"weights", "covered-each"}
    assert set(_keys("worst")) - set(_SEARCH) == {"unknown-weights", "covered-each"}
    assert {"density", "searches", "subset", "then", "then-rest", "unit", "delta-known"} <= set(_keys("everything"))
    assert "fresh" not in _keys("everything")
    assert any("Poisson sample of the training records" in text for text in assumptions(*_CASES["sgd"]))


@pytest.mark.parametrize(
    ("delta", "key", "warned"), [(1e-7, "known", False), (1e-5, "near", False), (1e-3, "above", True)]
)
def test_delta_is_held_against_the_number_of_people(delta: float, key: str, warned: bool) -> None:
    assert f"delta-{key}" in checklist(ZCDP(0.1), Poisson(10.0), Asked(delta, examples=60000))
    answer = bound(ZCDP(0.1), Poisson(10.0), delta=delta, examples=60000, unit="one patient", lower=False)
    assert any("above 1/N" in text for text in answer.warnings) == warned
    assert any("one patient" in text for text in answer.document()["assumptions"])
    assert "delta" not in " ".join(checklist(PureDP(0.1), Poisson(10.0), Asked(0.0)))


@pytest.mark.parametrize(
    ("base", "runs", "delta", "text"),
    [
        (ZCDP(0.1), Poisson(1.0), 1e-6, "the search runs nothing"),
        (ZCDP(0.1), make_law("tnb", eta=0, gamma=1e-9), 1e-6, "more than a million times"),
        (ZCDP(0.1), Poisson(10.0), 0.01, "should be well below one over the number of people"),
        (ZCDP(1e-6), Poisson(10.0), 0.1, "epsilon is 0 because delta = 0.1"),
        (RDPCurve({2.0: 0.1, 64.0: 0.4}), Poisson(10.0), 1e-9, "the best order is the largest given one"),
    ],
)
def test_warnings_are_what_the_reader_can_act_on(base: object, runs: object, delta: float, text: str) -> None:
    assert any(text in warning for warning in bound(base, runs, delta=delta, lower=False).warnings)


def test_an_ordinary_question_has_no_warning() -> None:
    assert bound(ZCDP(0.1), Poisson(10.0)).warnings == ()
    assert bound(Gaussian(2.0), Fixed(10), delta=1e-10).warnings == ()


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"method": "theorem-7"}, "method"),
        ({"conversion": "best-of-all"}, "conversion"),
        ({"orders": [1.0]}, "orders"),
        ({"orders": [math.nan]}, "orders"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"searches": 0}, "searches"),
        ({"subset": 1.0}, "subset"),
        ({"subset": math.nan}, "subset"),
        ({"then_on": "rest"}, "then_on"),
        ({"then_on": "some"}, "then_on"),
        ({"density": (1.1, 2.0)}, "density"),
        ({"examples": 0}, "examples"),
    ],
)
def test_wrong_questions_name_the_parameter(given: dict[str, object], parameter: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Asked(**given)
    assert caught.value.parameter == parameter
