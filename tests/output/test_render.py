"""Rounding to the safe side, and five formats that read back."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from decimal import Decimal
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcalc import ZCDP, Gaussian, Poisson, bound, compare
from hpcalc.logspace import Lower, Upper, significant
from hpcalc.output import render
from hpcalc.output.digits import fixed, rounded, short, shown
from hpcalc.output.phrases import run_words
from hpcalc.output.streams import legible

BOUND: dict[str, Any] = bound(ZCDP(0.1), Poisson(10.0)).document() | {"warnings": ["δ = 0.1 is large"]}
UNBOUNDED: dict[str, Any] = bound(Gaussian(0.0), Poisson(10.0)).document()
ROWS: dict[str, Any] = compare(ZCDP(0.1), ["poisson", "tnb:eta=0"], mean=10.0).document()
CASES: dict[str, Any] = {"cases": [{"name": "a,b", **BOUND}, {"name": "c", **UNBOUNDED}]}

finite = st.floats(allow_nan=False, allow_infinity=False)
# how long an example takes is the machine's affair
UNTIMED = settings(deadline=None)


@UNTIMED
@given(finite, st.integers(1, 12))
def test_an_upper_bound_never_rounds_down_and_a_lower_bound_never_up(value: float, digits: int) -> None:
    assert significant(Upper(value), digits) >= value
    assert significant(Lower(value), digits) <= value
    if 1e-300 < abs(value) < 1e300:
        assert math.isclose(significant(Upper(value), digits), value, rel_tol=10.0 ** (1 - digits))
        assert len(Decimal(repr(significant(Upper(value), digits))).normalize().as_tuple().digits) <= digits


@UNTIMED
@given(finite)
def test_numbers_for_people_keep_four_decimals_four_digits_and_the_direction(value: float) -> None:
    up, down = fixed(Upper(value)), fixed(Lower(value))
    assert Decimal(up) >= Decimal(repr(value)) >= Decimal(down)
    for text in (up, down):
        mantissa = text.lstrip("-").partition("e")[0]
        digits = mantissa.replace(".", "").lstrip("0")
        # 9.9999 rounded up may gain a digit and lose none
        assert len(digits) >= 4 or Decimal(text) == 0
        assert len(mantissa.partition(".")[2]) >= (3 if "e-" in text else 4)


@UNTIMED
@given(finite)
def test_a_short_number_has_six_digits(value: float) -> None:
    assert math.isclose(float(short(value)), value, rel_tol=5.1e-6, abs_tol=5e-324)
    assert len(Decimal(short(value)).normalize().as_tuple().digits) <= 6


def test_numbers_for_people() -> None:
    values = (Upper(4.22580123), Lower(4.22580123), 0.00045399, Upper(4.5399e-9), Upper(2))
    assert [*map(fixed, values)] == ["4.2259", "4.2258", "0.0004540", "4.540e-9", "2.0000"]
    values = (10.000000000000002, 1e-06, 0.0269084283928409, 1e300)
    assert [*map(short, values)] == ["10", "1e-6", "0.0269084", "1e300"]


def test_the_type_of_a_number_decides_and_never_its_key() -> None:
    document = {"x": Upper(1.23456789012), "epsilon": [Lower(1.23456789016)], "y": 1.23456789012, "n": 3}
    assert rounded(document) == {"x": 1.234567891, "epsilon": [1.23456789], "y": 1.23456789, "n": 3}
    assert shown(Upper(2.0)) == "2.0000"
    assert shown(Upper(0.0)) == "0.0000"
    assert shown(Upper(1.00001)) == "1.0001"


def test_what_was_typed_is_echoed_as_typed() -> None:
    gamma = 0.0269084283928409
    document = {"law": {"gamma": gamma}, "base": {"zcdp": 0.123456789012345}, "delta": 1.23456789012e-6}
    assert rounded(document, frozenset([gamma, 0.123456789012345, 1.23456789012e-6])) == document
    assert rounded(document)["law"] == {"gamma": 0.02690842839}


texts = st.text(st.characters(codec="utf-8"), max_size=30)
# what some reader of YAML or CSV takes for something else than text
ODD = """yes no null ~ true 1e-6 0.1 1:30 010 0x1f - a: b #c [x] {y} & * ! | > ' " % @ ` .inf <<= 2001-01-01 0.1.0 = y N
1_000 +1 -.5 .5 1. 1e3 0o7 ? -- --- ... a,b"""
words = st.one_of(texts, st.sampled_from(ODD.split()))
leaves = st.one_of(st.none(), st.booleans(), st.integers(-(10**18), 10**18), finite, words)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=25
)
documents = st.dictionaries(words.filter(lambda key: key != "cases"), trees, min_size=1, max_size=5)


@pytest.mark.slow
@settings(UNTIMED, max_examples=100)
@given(documents, st.sampled_from(["utf-8", "ascii", "cp1252"]))
def test_yaml_and_json_read_back_identical(document: dict[str, Any], encoding: str) -> None:
    expected = rounded(document)
    for fmt, read in (("yaml", yaml.safe_load), ("json", json.loads)):
        text = render(document, fmt, encoding=encoding)
        text.encode(encoding)
        assert repr(read(text)) == repr(expected)  # equal values of equal types: 1 is not 1.0 and not True


def test_infinities_are_null_in_every_machine_format() -> None:
    document = {"command": "compare", "epsilon": math.inf, "rows": [{"epsilon": math.nan, "law": {"dist": "x"}}]}
    assert json.loads(render(document, "json"))["epsilon"] is None
    assert yaml.safe_load(render(document, "yaml"))["epsilon"] is None
    assert "inf" not in render(document, "csv") + render(document, "table") + render(document, "markdown")


def test_yaml_looks_like_the_manual() -> None:
    text = render(BOUND, "yaml", echo=[0.1, 1e-6, 10.0])
    assert text.startswith(f"hpcalc_version: {BOUND['hpcalc_version']}\ncommand: bound\nbase: {{zcdp: 0.1}}\n")
    assert "\ndelta: 1.0e-06\n" in text
    assert re.search(r"\n- {method: theorem-6, epsilon: 4.6073\d+, order: [\d.]+, conversion: canonne-[a-z-]+}\n", text)


def test_csv_has_one_header_and_a_line_a_case_or_row() -> None:
    (record,) = csv.DictReader(io.StringIO(render(BOUND, "csv")))
    exact = rounded(BOUND)
    assert record["epsilon"] == repr(exact["epsilon"])
    assert record["base.zcdp"] == "0.1"
    assert record["bounds.theorem-6.epsilon"] == repr(exact["bounds"][0]["epsilon"])
    assert record["rdp.2.0"] == repr(exact["rdp"][1]["epsilon"])
    first, second = csv.DictReader(io.StringIO(render(CASES, "csv")))
    assert (first["name"], second["name"], second["epsilon"]) == ("a,b", "c", "")
    rows = list(csv.DictReader(io.StringIO(render(ROWS, "csv"))))
    assert [row["law.dist"] for row in rows] == ["poisson", "tnb"]
    assert [float(row["lower_bound"]) for row in rows] == [row["lower_bound"] for row in rounded(ROWS)["rows"]]
    assert [row["law.gamma"][:6] for row in rows] == ["", "0.0269"]
    whole = render({"base": {"dpsgd": [0.01, 1.1, 100]}, "warnings": ["a", "b"]}, "csv")
    assert whole == "base.dpsgd.rate,base.dpsgd.noise,base.dpsgd.steps,warnings.0,warnings.1\n0.01,1.1,100,a,b\n"


def test_the_answer_for_people_is_short_and_states_both_numbers() -> None:
    text = render(BOUND, "table")
    assert text.startswith("The whole search costs ε = 4.2258 at δ = 1e-6; one run costs ε = 2.1420.\n")
    law = "Poisson, μ 10, mean 10, P[K = 0] 4.53999e-5"
    told = ("three outcomes", "7.7663  10 runs composed", "refined-rdp (exact)", "zCDP, ρ 0.1", law)
    assert [said for said in (*told, "[ ] Only the best run is released.\n") if said not in text] == []
    untold = ("4.6074", "conversion", "run times", "δ = 0.1 is large")
    assert [said for said in untold if said in text] == []
    explained = render({**BOUND, "explain": {"theorem": "R1", "conditions": ["c"]}}, "table")
    assert [said for said in ("4.6074", "conversion", "- c", "R1") if said not in explained] == []


def test_the_headline_alone() -> None:
    assert render(BOUND, "table", quiet=True).count("\n") == 1
    assert [line[:2] for line in render(CASES, "table", quiet=True, width=20).splitlines()] == ["a,", "c:"]


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ({"dpsgd": [0.0042667, 1.1, 14063], "gaussian": [20.0, 30.0]},
         "DP-SGD, rate 0.0042667, noise 1.1, 14063 steps; Gaussian mechanism, noise multiplier 20; "
         "noise multiplier 30"),
        ({"dpsgd": [[0.01, 0.55, 1], [0.01, 1.5, 2], [0.01, 1.0, 3], [0.01, 1.25, 4]]},
         "10 DP-SGD steps, rate 0.01, noise 0.55 to 1.5"),
        ({"candidates": [{"zcdp": 0.1, "compose": 3}, {"zcdp": 0.2}, {"pure": 1.0}]},
         "one of 3 settings (3 times: zCDP, ρ 0.1; zCDP, ρ 0.2; and 1 more)"),
    ],
)  # fmt: skip
def test_one_run_in_words(base: dict[str, Any], words: str) -> None:
    assert run_words(base) == words


def test_laws_are_spelled_out() -> None:
    law = {"dist": "tnb", "eta": 0.0, "gamma": 0.0269083245, "max_runs": 50, "mean": 10.0, "prob_zero": 0.0}
    text = render({**BOUND, "law": law}, "table")
    assert "truncated negative binomial, η 0, γ 0.0269083, given K <= 50, mean 10\n" in text


def test_what_else_is_released_is_said() -> None:
    more = {
        "base": {"candidates": [{"zcdp": 0.1}, {"gaussian": 2.0}]},
        "search": {"epsilon": Upper(3.5)},
        "then": [{"dpsgd": [0.01, 1.1, 100]}, {"zcdp": 0.2}],
        "then_on": "rest",
        "subset": 0.1,
        "searches": 2,
        "candidates": [{"name": "a", "weight": 0.5, "single_run": {"epsilon": Upper(1.0)}, "epsilon": Upper(2.0)}],
        "lower_bound": {"epsilon": None, "mechanism": None, "reason": "no mechanism is known"},
    }
    text = render({**BOUND, **more}, "table")
    for said in (
        "everything released  4.2258",
        "the search alone     3.5000",
        "none  no mechanism is known",
        "one of 2 settings (zCDP, ρ 0.1; Gaussian mechanism, noise multiplier 2)",
        "DP-SGD, rate 0.01, noise 1.1, 100 steps; zCDP, ρ 0.2",
    ):
        assert said in text
    assert re.search(r"a +0.5 +1.0000 +2.0000", text)


def test_a_statement_for_a_paper() -> None:
    text = render({**BOUND, "unit": "one patient"}, "statement")
    sentences, *works = text.split("\n\n")
    assert "(2.1420, 1e-6)-differential privacy" in sentences
    assert "(4.2258, 1e-6)-differential privacy with respect to a change of one patient" in sentences
    assert sentences.count(". ") == 2
    cited = " ".join(work.split("{")[1].split(",")[0] for work in works)
    assert cited == "papernot2022hyperparameter bun2016concentrated mironov2017renyi canonne2020discrete"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"law": {"dist": "composition", "k": 8}}, "from 8 runs in any way, each accounted for; the whole search, its"),
        ({"law": {"dist": "fixed", "k": 4}}, "the best of 4 independent runs alone; "),
        ({"law": {"dist": "threshold", "accept": 0.1}}, "repeated until one was accepted"),
        ({"subset": 0.1}, ", on a Poisson sample of the records at rate 0.1; "),
        ({"then": [{"gaussian": 5.0}], "searches": 2}, "everything released (2 such searches; Gaussian mechanism,"),
        ({"total": ["a", "b"]}, "Several searches were run (a, b). Everything they release satisfies (4.2258, 1e-6)"),
        ({"single_run": {"epsilon": None}}, "has no finite guarantee at this delta. "),
    ],
)
def test_a_statement_claims_what_was_done(more: dict[str, Any], said: str) -> None:
    assert said in render({**BOUND, **more}, "statement")


def test_the_gate_is_told_and_zero_is_a_limit() -> None:
    for limit, within, told in ((0.0, False, "OVER the limit of 0."), (5.0, True, "Within the limit of 5.")):
        assert told in render({**BOUND, "max_epsilon": limit, "within_budget": within}, "table")
    assert "OVER" not in render(BOUND, "table")


def test_an_unbounded_answer_says_why() -> None:
    for fmt in ("table", "markdown"):
        assert UNBOUNDED["reason"] in render(UNBOUNDED, fmt).replace("\n", " ")
        assert UNBOUNDED["reason"] in render({"cases": [{"name": "x", **UNBOUNDED}]}, fmt).replace("\n", " ")


NUMBERS = re.compile(r"(?<![\w.])[0-9]+\.[0-9]{4,}(?:e-?[0-9]+)?(?![\w.])")


@pytest.mark.parametrize("document", [BOUND, ROWS, CASES], ids=["bound", "rows", "cases"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_tables_at_every_width_keep_every_number(document: dict[str, Any], encoding: str) -> None:
    whole = set(NUMBERS.findall(render(document, "table", encoding=encoding)))
    assert len(whole) >= 2
    for width in (*range(20, 60), 80, 100, 132, 200):
        text = render(document, "table", encoding=encoding, width=width)
        text.encode(encoding)
        assert set(NUMBERS.findall(text)) == whole
        assert "\x1b" not in text
        assert "…" not in text
        longest = max(map(len, text.split()))
        # a line is longer than the screen only where a single word is
        assert max(map(len, text.splitlines())) <= max(width, longest + 4)


def test_colour_only_where_it_is_wanted() -> None:
    assert "\x1b[" in render(BOUND, "table", colour=True)
    for fmt in ("yaml", "json", "csv", "markdown"):
        assert "\x1b" not in render(BOUND, fmt, colour=True)


def test_user_text_is_verbatim_and_cannot_send_escape_codes() -> None:
    name = "[red]a[/red] :smile: *b* _c_ <d>"
    for fmt in ("table", "yaml", "json", "csv", "markdown"):
        assert name in render({"cases": [{"name": name, **BOUND}]}, fmt)
    assert "\x1b" not in render({"cases": [{"name": "\x1b[31mred", **BOUND}]}, "table")


def test_markdown_has_boxes_to_tick() -> None:
    text = render(BOUND, "markdown")
    assert text.startswith(f"## hpcalc {BOUND['hpcalc_version']} bound\n")
    assert text.count("- [ ] ") == text.count("\n[^") == len(BOUND["assumptions"])
    assert "| whole search | 4.2258 | refined-rdp (exact) |" in text
    assert "- [ ] Only the best run is released.[^4]\n" in text
    assert "- δ = 0.1 is large\n" in text


def test_greek_has_ascii_names() -> None:
    assert legible("ε, δ = 1e-06, Rényi, 中", "ascii") == "eps, delta = 1e-06, Renyi, \\u4e2d"
    assert legible("Rényi, ε", "cp1252") == "Rényi, eps"
