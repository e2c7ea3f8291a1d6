"""Answers in a notebook: two lines, HTML, Markdown, a picture; equal and picklable."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from hpcalc import ZCDP, ApproxDP, Poisson, PureDP, Threshold, bound, compare, convert, plan, utility

ANSWERS: dict[str, Any] = {
    "bound": lambda delta=1e-6: bound(ZCDP(0.1), Poisson(3.0), delta=delta, max_epsilon=4.0),
    "threshold": lambda delta=1e-6: bound(PureDP(1.0), Threshold(0.3), delta=delta, lower=False),
    "no bound": lambda delta=1e-9: bound(ApproxDP(1.0, 1e-5), Poisson(3.0), delta=delta),
    "convert": lambda delta=1e-6: convert(ZCDP(0.1), delta=delta),
    "utility": lambda delta=1e-6: utility(Poisson(3.0), success_rate=max(delta, 1e-2)),
    "compare": lambda delta=1e-6: compare(PureDP(0.5), ["poisson", "tnb:eta=0"], mean=5.0, delta=delta, lower=False),
    "plan": lambda delta=1e-6: plan(PureDP(0.5), target_epsilon=2.0, laws=["poisson"], delta=delta),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_shows_itself(name: str) -> None:
    answer = ANSWERS[name]()
    told = repr(answer).splitlines()
    assert len(told) == 2
    assert told[1].startswith(type(answer).__name__)
    assert answer._repr_markdown_().startswith("## hpcalc ")
    text = answer._repr_html_()
    assert text.startswith("<p><strong>")
    assert text.count("<table>") == text.count("</table>")
    assert "<=" not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_equal_where_they_say_the_same(name: str) -> None:
    answer = ANSWERS[name]()
    for again in (ANSWERS[name](), pickle.loads(pickle.dumps(answer))):
        assert answer == again
        assert hash(answer) == hash(again)
    assert answer not in (ANSWERS[name](2e-2), 3)


@pytest.mark.slow
def test_an_answer_draws_itself(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    answer = ANSWERS["utility"]()
    picture = answer.plot()
    assert picture._repr_svg_().startswith("<?xml")
    assert "svg" in repr(picture)
    assert answer.plot(str(tmp_path / "a.svg")) is None
    assert (tmp_path / "a.svg").read_text() == picture.svg
    assert ANSWERS["convert"]().plot() is None
