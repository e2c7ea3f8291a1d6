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

from hpcalc.output import render
from hpcalc.output.digits import DOWN, ECHO, NEAREST, UP, direction, fixed, rounded, significant
from hpcalc.output.legible import legible

BOUND: dict[str, Any] = {
    "hpcalc_version": "0.1.0",
    "command": "bound",
    "base": {"zcdp": 0.1},
    "repetitions": {"dist": "poisson", "mu": 10.0, "mean": 10.0, "prob_zero": 4.5399929762484854e-05},
    "delta": 1e-6,
    "epsilon": 4.22580123456789,
    "method": "refined-rdp",
    "single_run": {"epsilon": 2.14193892839},
    "composition": {"runs": 10, "epsilon": 7.766231234567},
    "lower_bound": {"epsilon": 4.22541234567891, "instance": "three-point"},
    "bounds": [
        {"method": "theorem-6", "epsilon": 4.60741, "order": 4.9, "conversion": "canonne-kamath-steinke"},
        {"method": "refined-rdp", "epsilon": 4.22580123456789, "order": 5.5, "conversion": "canonne-kamath-steinke"},
    ],
    "rdp": [{"order": 2.0, "epsilon": 1.3}, {"order": 4.0, "epsilon": 2.3}],
    "assumptions": ["K is drawn fresh from the stated law and never revealed", "δ is well below 1/(number of people)"],
    "warnings": ["δ = 0.1 is large"],
}
UNBOUNDED: dict[str, Any] = {**BOUND, "epsilon": None, "method": None, "reason": "σ = 0 gives no privacy", "bounds": []}
ROWS: dict[str, Any] = {
    "hpcalc_version": "0.1.0",
    "command": "compare",
    "base": {"zcdp": 0.1},
    "delta": 1e-6,
    "rows": [
        {
            "dist": "poisson",
            "parameters": {"mu": 10.0},
            "mean_runs": 10.0,
            "epsilon": 4.2258012,
            "lower_bound": 4.2254123,
        },
        {
            "dist": "tnb",
            "parameters": {"eta": 0.0, "gamma": 0.0269},
            "mean_runs": 10.0,
            "epsilon": None,
            "reason": "none",
        },
    ],
    "warnings": [],
}


@pytest.mark.parametrize(
    ("path", "way"),
    [
        ("epsilon", UP),
        ("single_run.epsilon", UP),
        ("composition.epsilon", UP),
        ("bounds.epsilon", UP),
        ("bounds.order", NEAREST),
        ("to.delta", UP),
        ("to.log10_delta", UP),
        ("to.rho", UP),
        ("rdp.epsilon", UP),
        ("rows.epsilon", UP),
        ("rows.lower_bound", DOWN),
        ("lower_bound.epsilon", DOWN),
        ("repetitions.prob_zero", NEAREST),
        ("rows.expected_quantile", NEAREST),
        ("base.zcdp", ECHO),
        ("from.approx_dp", ECHO),
        ("delta", ECHO),
        ("target_epsilon", ECHO),
        ("value", ECHO),
    ],
)
def test_every_number_is_rounded_to_its_safe_side(path: str, way: str) -> None:
    assert direction(tuple(path.split("."))) == way


finite = st.floats(allow_nan=False, allow_infinity=False)
# how long an example takes is the machine's affair
UNTIMED = settings(deadline=None)


@UNTIMED
@given(finite, st.integers(1, 12))
def test_rounding_up_never_lies_below_and_rounding_down_never_above(value: float, digits: int) -> None:
    assert significant(value, digits, UP) >= value
    assert significant(value, digits, DOWN) <= value
    if 1e-300 < abs(value) < 1e300:
        assert math.isclose(significant(value, digits, UP), value, rel_tol=10.0 ** (1 - digits))
        assert len(Decimal(repr(significant(value, digits, UP))).normalize().as_tuple().digits) <= digits


@UNTIMED
@given(finite)
def test_numbers_for_people_keep_four_decimals_four_digits_and_the_direction(value: float) -> None:
    up, down = fixed(value, UP), fixed(value, DOWN)
    assert Decimal(up) >= Decimal(repr(value)) >= Decimal(down)
    for text in (up, down):
        if value == 0:
            continue
        mantissa = text.lstrip("-").partition("e")[0]
        digits = mantissa.replace(".", "").lstrip("0")
        # 9.9999 rounded up may gain a digit and lose none
        assert len(digits) >= 4 or Decimal(text) == 0
        assert len(mantissa.partition(".")[2]) >= (3 if "e-" in text else 4)


def test_what_was_typed_is_echoed_as_typed() -> None:
    gamma = 0.0269084283928409
    document = {"repetitions": {"gamma": gamma}, "base": {"zcdp": 0.123456789012345}, "delta": 1.23456789012e-6}
    assert rounded(document, frozenset([gamma])) == document
    assert rounded(document)["repetitions"] == {"gamma": 0.02690842839}


def test_ten_significant_digits() -> None:
    out = rounded(BOUND)
    assert out["epsilon"] == 4.225801235
    assert out["lower_bound"]["epsilon"] == 4.225412345
    assert out["single_run"]["epsilon"] == 2.141938929
    assert out["repetitions"]["prob_zero"] == 4.539992976e-05


texts = st.text(st.characters(codec="utf-8"), max_size=30)
words = st.one_of(
    texts,
    st.sampled_from(
        [
            "yes",
            "no",
            "null",
            "~",
            "true",
            "1e-6",
            "0.1",
            "1:30",
            "010",
            "0x1f",
            "-",
            "a:",
            "b",
            "#c",
            "[x]",
            "{y}",
            "&",
            "*",
            "!",
            "|",
            ">",
            "'",
            '"',
            "%",
            "@",
            "`",
            ".inf",
            "<<=",
            "2001-01-01",
            "0.1.0",
            "=",
            "y",
            "N",
            "1_000",
            "+1",
            "-.5",
            ".5",
            "1.",
            "1e3",
            "0o7",
            "?",
            "--",
            "---",
            "...",
            "a,b",
        ]
    ),
)
leaves = st.one_of(st.none(), st.booleans(), st.integers(-(10**18), 10**18), finite, words)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=25
)
documents = st.dictionaries(words.filter(lambda key: key != "cases"), trees, min_size=1, max_size=5)


@settings(UNTIMED, max_examples=200)
@given(documents, st.sampled_from(["utf-8", "ascii", "cp1252"]))
def test_yaml_and_json_read_back_identical(document: dict[str, Any], encoding: str) -> None:
    expected = rounded(document)
    as_yaml = render(document, "yaml", encoding=encoding)
    as_json = render(document, "json", encoding=encoding)
    as_yaml.encode(encoding)
    as_json.encode(encoding)
    assert same(yaml.safe_load(as_yaml), expected)
    assert same(json.loads(as_json), expected)


def same(a: Any, b: Any) -> bool:
    """Equal values of equal types: 1 is not 1.0 and not True."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def test_infinities_are_null_in_every_machine_format() -> None:
    document = {"epsilon": math.inf, "rows": [{"epsilon": math.nan, "dist": "x"}]}
    assert json.loads(render(document, "json"))["epsilon"] is None
    assert yaml.safe_load(render(document, "yaml"))["epsilon"] is None
    assert "inf" not in render(document, "csv") + render(document, "table") + render(document, "markdown")


def test_yaml_looks_like_the_manual() -> None:
    text = render(BOUND, "yaml", echo=[0.1, 1e-6, 10.0])
    assert text.startswith("hpcalc_version: 0.1.0\ncommand: bound\nbase: {zcdp: 0.1}\n")
    assert "\ndelta: 1.0e-06\n" in text
    assert "\n- {method: theorem-6, epsilon: 4.60741, order: 4.9, conversion: canonne-kamath-steinke}\n" in text


def test_csv_has_one_header_and_a_line_a_case_or_row() -> None:
    (record,) = csv.DictReader(io.StringIO(render(BOUND, "csv")))
    assert record["epsilon"] == "4.225801235"
    assert record["base.zcdp"] == "0.1"
    assert record["bounds.theorem-6.epsilon"] == "4.60741"
    assert record["rdp.2.0"] == "1.3"
    cases = [{"name": "a,b", **BOUND}, {"name": "c", **UNBOUNDED}]
    first, second = csv.DictReader(io.StringIO(render({"cases": cases}, "csv")))
    assert (first["name"], second["name"], second["epsilon"]) == ("a,b", "c", "")
    rows = list(csv.DictReader(io.StringIO(render(ROWS, "csv"))))
    assert [row["dist"] for row in rows] == ["poisson", "tnb"]
    assert rows[0]["lower_bound"] == "4.2254123"
    assert rows[1]["parameters.gamma"] == "0.0269"


def test_the_table_never_shows_a_bare_epsilon() -> None:
    text = render(BOUND, "table")
    head = text.splitlines()[0]
    assert "whole search costs ε = 4.2259" in head
    assert "one run costs ε = 2.1420" in head
    for shown in (
        "4.2254",
        "7.7663",
        "4.6075",
        "theorem-6",
        "refined Rényi bound",
        "δ = 0.1 is large",
        "[ ] K is drawn",
    ):
        assert shown in text


def test_the_gate_is_told_and_zero_is_a_limit() -> None:
    assert "OVER the limit of 0." in render({**BOUND, "max_epsilon": 0.0}, "table")
    assert "Within the limit of 5." in render({**BOUND, "max_epsilon": 5.0}, "table")
    assert "OVER" not in render(BOUND, "table")


def test_an_unbounded_answer_says_why() -> None:
    for fmt in ("table", "markdown"):
        assert "σ = 0 gives no privacy" in render(UNBOUNDED, fmt)
        assert "σ = 0 gives no privacy" in render({"cases": [{"name": "x", **UNBOUNDED}]}, fmt)


NUMBERS = re.compile(r"(?<![\w.])[0-9]+\.[0-9]{4,}(?:e-?[0-9]+)?(?![\w.])")


@pytest.mark.parametrize(
    "document", [BOUND, UNBOUNDED, ROWS, {"cases": [{"name": "a", **BOUND}, {"name": "b", **UNBOUNDED}]}]
)
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
    assert text.startswith("## hpcalc 0.1.0 bound\n")
    assert text.count("- [ ] ") == 2
    assert "| whole search | 4.2259 | refined Rényi bound |" in text


def test_greek_has_ascii_names() -> None:
    assert legible("ε, δ = 1e-06, Rényi, 中", "ascii") == "eps, delta = 1e-06, Renyi, \\u4e2d"
    assert legible("Rényi, ε", "cp1252") == "Rényi, eps"
