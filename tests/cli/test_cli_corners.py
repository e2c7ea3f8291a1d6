"""Rarely typed command lines and rarely made calls: each says what is wrong, or answers what others answer too."""

from __future__ import annotations

from pathlib import Path

import pytest
from goldens import run
from test_cli_answers import answer

from hpcalc import HpcalcError
from hpcalc.cli import main
from hpcalc.guarantees import PureDP
from hpcalc.laws import FinitePmf
from hpcalc.questions.search_cost import bound


def test_a_debugging_run_shows_where(monkeypatch):
    monkeypatch.setenv("HPCALC_DEBUG", "1")
    with pytest.raises(HpcalcError, match="--zcdp -1: "):
        main(["bound", "--zcdp", "-1", "--dist", "fixed", "--k", "2"])


def test_a_law_in_a_file_is_the_law_on_the_line(tmp_path: Path, monkeypatch):
    (tmp_path / "law.csv").write_text("k,probability\n1,0.5\n10,0.5\n")
    monkeypatch.chdir(tmp_path)
    want = bound(PureDP(1.0), FinitePmf(((1, 0.5), (10, 0.5)))).epsilon
    rows = answer("compare --pure 1 --law pmf:pmf=law.csv")["rows"]
    for row in (answer("bound --pure 1 --dist pmf --pmf law.csv"), *rows):
        assert want <= row["epsilon"] <= want * (1.0 + 1e-9)


@pytest.mark.slow
def test_laws_that_a_plan_chooses_take_its_modifiers():
    for row in answer("plan --zcdp 0.05 --target-epsilon 3 --max-runs 20 --at-least-one")["rows"]:
        if row["value"] is not None:
            assert row["law"]["max_runs"] == 20
            assert row["law"].get("at_least_one", row["dist"] == "tnb")
            assert row["prob_zero"] == 0.0


def test_a_number_of_runs_too_large_to_show():
    document = answer("utility --dist poisson --mu 5e300")
    assert document["p99_runs"] is None
    assert document["reason"] == "a number of runs above 1e300 is shown as null"


CHARTS = {
    "bound --approx-dp 0.5 1e-9 --dist poisson --mu 3 --method paper --plot -": "δ",
    "bound --pure 1 --dist threshold --accept 0.3 --method paper --plot -": "ε",
    "compare --pure 1 --mean 3 --law fixed --law poisson --scores scores.txt --method paper --plot -": "score",
    "plan --pure 1 --target-epsilon 3 --law fixed --scores scores.txt --method paper --plot -": "score",
    "utility --dist poisson --mu 3 --scores scores.txt --minimize --plot -": "score",
    "utility --dist fixed --k 1 --scores same.txt --plot -": "score",
}


@pytest.mark.slow
@pytest.mark.parametrize("line", CHARTS)
def test_a_chart_in_the_terminal_names_its_axes(line, tmp_path: Path, monkeypatch):
    (tmp_path / "scores.txt").write_text("0.5\n0.7\n0.6\n0.9\n")
    (tmp_path / "same.txt").write_text("0.5\n0.5\n")
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(line)
    assert code == 0
    plain = run(line.removesuffix(" --plot -"))[1]
    assert out.startswith(plain)
    assert CHARTS[line] in out[len(plain) :]


@pytest.mark.parametrize("fmt", ["table", "markdown", "csv"])
@pytest.mark.parametrize(
    "line",
    [
        "bound --approx-dp 0.1 0.9 --compose 1000 --dist poisson --mu 30",
        "utility --dist threshold --accept 0.2",
        "utility --dist poisson --mu 5e300",
        "convert --approx-dp 1 1e-9 --to rdp",
        "plan --pure 1 --target-epsilon 0.5 --law fixed",
        "plan --gaussian 2.459 --law pmf:1=0.5,10=0.5 --target-epsilon 11.63",
        "plan --zcdp 0.254 --target-epsilon 20 --delta 0 --at-least-one",
    ],
)
def test_an_answer_without_numbers_reads_well(line, fmt):
    code, out, err = run(f"{line} --format {fmt}")
    assert code in (0, 3)
    assert out.strip()
    assert "None" not in out
    assert "nan" not in out.split()
    assert (code == 0) == (err == "" or "warning" in err)
