"""Whole answers: exit codes, gates, cases, formats on every kind of stream, files beside the answer."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from goldens import COMMANDS, FOLDER, FORMATS, QUESTIONS, run
from test_cli_random import validator

from hpcalc.cli import answers

# The same questions where closed forms answer them: what is tested here is what becomes of the answer.
LIGHT = {
    **QUESTIONS,
    "bound": "bound --dist poisson --mu 10 --pure 0.3 --explain",
    "compare": "compare --pure 0.3 --mean 10 --success-rate 0.01 --law poisson --law tnb:eta=0",
    "plan": "plan --pure 0.3 --target-epsilon 2 --success-rate 0.01 --law poisson --law fixed",
}
PURE = "bound --dist tnb --eta 0 --mean 10 --pure 0.3"  # closed forms: the quickest whole search


def answer(line: str, code: int = 0) -> Any:
    """The JSON document of a command line, checked against its schema."""
    seen, out, err = run(f"{line} --format json")
    assert seen == code, err
    document = json.loads(out)
    validator().validate(document)
    return document


@pytest.mark.parametrize("command", COMMANDS)
def test_every_format_tells_the_same(command: str) -> None:
    # the golden file is what the command prints, byte for byte: that is another test's business
    texts = {fmt: (FOLDER / f"{command}.{fmt}.{suffix}").read_text("utf-8") for fmt, suffix in FORMATS.items()}
    document = json.loads(texts["json"])
    validator().validate(document)
    assert document == yaml.safe_load(texts["yaml"])
    assert len({len(row) for row in csv.reader(io.StringIO(texts["csv"]))}) == 1


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_every_answer_is_legible_on_every_stream(command: str, encoding: str) -> None:
    for fmt in FORMATS:
        code, out, _ = run(f"{LIGHT[command]} --format {fmt}", encoding=encoding)
        assert code == 0
        assert out
        if fmt == "table":
            assert "\\u" not in out
            assert "?" not in out
        if fmt == "json":
            assert json.loads(out) == json.loads(run(f"{LIGHT[command]} --format json")[1])


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_colour_is_asked_for_and_never_in_machine_formats(command: str) -> None:
    for fmt in FORMATS:
        forced = run(f"{LIGHT[command]} --format {fmt}", FORCE_COLOR="1")[1]
        assert ("\x1b[" in forced) == (fmt == "table" and command != "draw")


def test_the_gate() -> None:
    epsilon = answer(PURE)["epsilon"]
    assert 0.5 < epsilon < 0.61  # 0.3 + log((e^0.3 + gamma) / (1 + gamma e^0.3)) with gamma = 0.0269
    assert answer(f"{PURE} --max-epsilon 1")["within_budget"] is True
    over = answer(f"{PURE} --max-epsilon 0", code=1)
    assert (over["within_budget"], over["epsilon"], over["max_epsilon"]) == (False, epsilon, 0.0)


@pytest.mark.parametrize("base", ["--gaussian 0", "--zcdp inf", "--pure inf --subset .1", "--zcdp 0.1 --delta 0"])
def test_no_finite_bound_is_a_document_with_a_reason(base: str) -> None:
    document = answer(f"bound --dist poisson --mu 10 {base}", code=3)
    assert document["epsilon"] is None
    for fmt in ("table", "csv", "markdown"):
        code, out, err = run(f"bound --dist poisson --mu 10 {base} --format {fmt}")
        assert (code, err[:26]) == (3, "hpcalc: no finite answer: ")
        assert document["reason"][:20] in out


def test_warnings_are_told_twice_and_stdout_stays_one_document() -> None:
    code, out, err = run("bound --dist fixed --k 3 --pure 0.3 --delta 0.1 --format json")
    warnings = json.loads(out)["warnings"]
    assert code == 0
    assert any("delta = 0.1 is large" in warning for warning in warnings)
    assert err.splitlines() == [f"hpcalc: warning: {warning}" for warning in warnings]


def test_what_was_typed_is_what_is_echoed() -> None:
    document = answer(
        "bound --dist tnb --eta 0 --gamma 0.0269082596123456 --pure 0.123456789012345 --delta 1.23456789012e-6"
    )
    assert document["base"] == {"pure": 0.123456789012345}
    assert document["law"]["gamma"] == 0.0269082596123456
    assert document["delta"] == 1.23456789012e-6


SPEC = """\
- name: within
  pure: .3
  dist: tnb
  eta: 0
  mean: 1e1
  max-epsilon: 1
- name: "over, and quoted"
  pure: 0.3
  dist: fixed
  k: 1e1
  max-epsilon: 0
"""
UNBOUNDED = "- {name: nothing, pure: inf, dist: fixed, k: 2}\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


@pytest.mark.slow
def test_a_list_of_cases_has_a_row_and_a_gate_each(spec: Path) -> None:
    document = answer(f"bound --spec {spec}", code=1)
    assert [case["name"] for case in document["cases"]] == ["within", "over, and quoted"]
    assert [case["within_budget"] for case in document["cases"]] == [True, False]
    assert document["cases"][1]["epsilon"] == pytest.approx(3.0, rel=1e-4)
    records = list(csv.DictReader(io.StringIO(run(f"bound --spec {spec} --format csv")[1])))
    assert [record["name"] for record in records] == ["within", "over, and quoted"]


@pytest.mark.slow
def test_the_worst_case_counts(spec: Path) -> None:
    assert run(f"bound --spec {spec} --max-epsilon 100")[0] == 0
    spec.write_text(SPEC + UNBOUNDED)
    assert answer(f"bound --spec {spec}", code=3)["cases"][2]["epsilon"] is None
    spec.write_text(SPEC + UNBOUNDED + "- {name: wrong, pure: -1, dist: fixed, k: 2}\n")
    code, out, err = run(f"bound --spec {spec}")
    assert (code, out) == (2, "")
    assert err.startswith(f"hpcalc: {spec}:13: pure: -1: ")
    spec.write_text(SPEC + "- {name: absent, rdp-file: absent.csv, dist: fixed, k: 2}\n")
    assert run(f"bound --spec {spec}")[:2] == (4, "")
    spec.write_text("- {name: first, pure: 1}\n")
    assert run(f"bound --spec {spec}")[2].startswith(f"hpcalc: {spec}:1: first: --dist is missing")


@pytest.mark.parametrize("command", ["bound", "convert", "utility", "draw"])
def test_a_saved_spec_asks_the_same_question(command: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved.yaml"
    line = {"bound": PURE, "convert": "convert --pure 1 --epsilon 0.5"}.get(command, QUESTIONS[command])
    first = run(f"{line} --save-spec {saved} --format json")[1]
    assert yaml.safe_load(saved.read_text())
    assert run(f"{command} --spec {saved} --format json")[1] == first


def test_output_is_a_file_in_utf_8(tmp_path: Path) -> None:
    target = tmp_path / "answer.txt"
    code, out, _ = run(f"{PURE} --max-epsilon 0 --output {target}", encoding="ascii")
    assert (code, out) == (1, "")
    assert "ε = " in target.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_explanations(command: str) -> None:
    document = json.loads(run(f"{LIGHT[command]} --explain --format json")[1])
    validator().validate(document)
    told = document["explain"]
    assert told["theorem"] if command != "compare" else all(row["theorem"] for row in told["theorems"])
    assert isinstance(told["conditions"], list)
    assert run(f"{LIGHT[command]} --explain")[0] == 0


def test_options_without_a_meaning_here_are_checked_all_the_same() -> None:
    assert run("utility --dist poisson --mu 10 --delta 1e-6 --method paper --conversion cks --orders 2")[0] == 0
    assert run("draw --dist poisson --mu 10 --delta nan")[0] == 2


def test_progress_is_shown_on_a_terminal_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(answers, "_ask", lambda question, progress: progress(1, 4))
    shown = {}
    for name, stream, delay in (("late", Terminal(), 0.0), ("early", Terminal(), 60.0), ("pipe", io.StringIO(), 0.0)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(answers, "_DELAY", delay)
        answers._watched("search_cost:bound")
        shown[name] = stream.getvalue()
    assert "[#####...............] 1/4" in shown["late"]
    assert shown["late"].endswith("\r")
    assert shown["early"] == shown["pipe"] == ""


@pytest.mark.slow
def test_selection_answers_in_every_format() -> None:
    line = "compare --selection 10 --at-epsilon 2 --law poisson --sensitivity 0.5"
    assert {row["mechanism"] for row in answer(line)["rows"]} > {"exponential-mechanism"}
    assert "Choosing one of 10 candidates" in run(f"{line} --explain")[1]


def test_conversions_read_as_sentences() -> None:
    assert "log10 δ = -535.86" in run("convert --gaussian 1 --epsilon 50")[1]
    assert "Rényi curve of one run" in run("convert --pure 1 --to rdp --orders 2,inf")[1]
    code, out, err = run("convert --zcdp 1 --to pure")
    assert (code, err[:26], out[:18]) == (3, "hpcalc: no finite answer: ", "No finite answer: ")
