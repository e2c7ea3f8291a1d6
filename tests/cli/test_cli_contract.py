"""What a user is promised of files, gates and specs: nothing is overwritten, every gate has its limit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from goldens import run
from test_cli_answers import answer

from hpcalc.cli import main

TWO = """\
- name: coarse
  pure: 0.1
  dist: poisson
  mu: 3
  max-epsilon: 0.1
- {name: fine, pure: 0.2, dist: poisson, mu: 5}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "privacy.yaml").write_text(TWO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(line: str, **variables: str) -> str:
    """The one or two lines of a refusal."""
    code, out, err = run(line, **variables)
    assert (code, out) == (2, ""), err
    assert 1 <= len(err.splitlines()) <= 2
    return err


def test_a_case_without_a_limit_is_an_error_where_limits_are_required(folder: Path) -> None:
    err = told("bound --spec privacy.yaml --require-max-epsilon")
    assert err == (
        "hpcalc: privacy.yaml:6: fine: max-epsilon is missing, and --require-max-epsilon is set: give a limit\n"
    )
    assert run("bound --spec privacy.yaml --require-max-epsilon --max-epsilon 9")[0] == 0


def test_a_failed_gate_names_everything_and_the_way_out_works(folder: Path) -> None:
    code, _, err = run("bound --spec privacy.yaml --case coarse --format json")
    assert code == 1
    line, _, way_out = err.splitlines()[-1].partition(": try hpcalc ")
    assert line.startswith("hpcalc: privacy.yaml:1: coarse: epsilon 0.2")
    assert line.endswith(" is over max-epsilon 0.1")
    assert way_out == "plan --spec privacy.yaml --case coarse"
    assert answer(f"{way_out} --solve-for pure")["epsilon"] <= 0.1
    # without a spec the question itself is written out
    _, _, err = run("bound --gaussian 2 --compose 3 --dist tnb --eta 0 --mean 10 --max-epsilon 1 --delta 1e-5 -q")
    way_out = err.splitlines()[-1].partition(": try ")[2]
    assert way_out == "hpcalc plan --gaussian 2 --compose 3 --dist tnb --eta 0 --delta 1e-5 --target-epsilon 1"


def test_github_shows_the_line_of_the_limit(folder: Path) -> None:
    _, _, err = run("bound --spec privacy.yaml --max-epsilon 0.3", GITHUB_ACTIONS="true")
    assert "::error file=privacy.yaml,line=1::privacy.yaml:1: coarse: " not in err
    _, _, err = run("bound --spec privacy.yaml", GITHUB_ACTIONS="true")
    (annotation,) = [line for line in err.splitlines() if line.startswith("::error")]
    assert annotation.startswith("::error file=privacy.yaml,line=5::privacy.yaml:1: coarse: epsilon 0.2")
    (folder / "wrong.yaml").write_text("pure: 1\ndetla: 1\n")
    err = told("bound --spec wrong.yaml", GITHUB_ACTIONS="true")
    assert err.splitlines()[0].startswith("::error file=wrong.yaml,line=2::wrong.yaml:2: unknown key detla")


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--rdp-out", "--profile-out"])
def test_several_cases_never_overwrite_one_file(folder: Path, option: str) -> None:
    (folder / "privacy.yaml").write_text(TWO.replace("poisson", "composition").replace("mu", "k"))
    err = told(f"bound --spec privacy.yaml --max-epsilon 9 {option} out.csv")
    assert f"{option} out.csv: the case coarse would overwrite it: put {{name}} in the file's name" in err
    assert not (folder / "out.csv").exists()
    assert run(f"bound --spec privacy.yaml --max-epsilon 9 {option} 'out {{name}}.csv'")[0] == 0
    assert {path.name for path in folder.glob("out*")} == {"out coarse.csv", "out fine.csv"}


ONE = "bound --pure 1 --dist fixed --k 2"
SHARED = {
    f"{ONE} -o a.json --save-spec a.json": "--save-spec a.json: --output writes it too",
    f"{ONE} --plot link.svg -o data.csv": "--plot link.svg: --output writes it too",
    f"{ONE} --rdp-out y.csv --profile-out ./y.csv": "--rdp-out y.csv: --profile-out writes it too",
    f"{ONE} --then rdp-file=data.csv -o data.csv": "--output data.csv: --then reads it too",
    "convert --rdp-file ./data.csv --rdp-out data.csv": "--rdp-out data.csv: --rdp-file reads it too",
    f"{ONE} --save-spec -": "--save-spec -: standard output is for the answer",
    "bound --spec privacy.yaml -o privacy.yaml": "--output privacy.yaml: --spec reads it too",
}


@pytest.mark.parametrize("line", SHARED)
def test_no_file_takes_the_place_of_another(folder: Path, line: str) -> None:
    (folder / "data.csv").write_text("order,epsilon\n2,0.5\n")
    (folder / "link.svg").symlink_to("data.csv")
    before = {path: path.read_text() for path in folder.iterdir()}
    assert f"{SHARED[line]}: give " in told(line)
    assert {path: path.read_text() for path in folder.iterdir()} == before


def test_a_suffix_chooses_the_format(folder: Path) -> None:
    line = "bound --pure 1 --dist poisson --mu 3"
    for suffix, start in (("json", "{"), ("yaml", "hpcalc_version"), ("md", "## "), ("csv", "hpcalc_version,")):
        assert run(f"{line} -o answer.{suffix}", HPCALC_FORMAT="table")[0] == 0
        assert (folder / f"answer.{suffix}").read_text().startswith(start)
    assert run(f"{line} -o answer.json --format yaml")[0] == 0
    assert (folder / "answer.json").read_text().startswith("hpcalc_version")


def test_quiet_is_one_line_a_case(folder: Path) -> None:
    _, out, _ = run("bound --spec privacy.yaml -q")
    assert len(out.splitlines()) == 2


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$id"]


@pytest.mark.slow
def test_the_law_that_was_checked_is_the_law_that_is_drawn(folder: Path) -> None:
    (folder / "one.yaml").write_text("zcdp: 0.1\ndist: tnb\neta: 0\nmean: 10\nclamp-runs: 4\nmax-epsilon: 9\n")
    document = answer("draw --spec one.yaml --count 50")
    assert document["law"]["clamp_runs"] == 4
    assert max(document["runs"]) <= 4
    line = answer("bound --spec one.yaml --explain")["explain"]["draw"]
    assert line == "hpcalc draw --spec one.yaml"
    line = answer("bound --pure 1 --dist tnb --eta 0 --mean 10 --explain")["explain"]["draw"]
    assert line == "hpcalc draw --dist tnb --mean 10 --eta 0"
    assert run(line.removeprefix("hpcalc "))[0] == 0
    rows = answer("compare --spec one.yaml --law fixed")["rows"]
    assert any(row["law"].get("clamp_runs") == 4 for row in rows)


OPACUS = {"history": [[1.1, 0.01, 1000], [0.9, 0.01, 500]], "mechanism": "rdp"}
SAME = {
    "--history opacus.json": "--dpsgd 0.01 1.1 1000 --dpsgd 0.01 0.9 500",
    "--noise-multiplier 1.1 --sample-rate 0.01 --steps 1000": "--dpsgd 0.01 1.1 1000",
    "--noise-multiplier 1.1 --sample-rate 0.01 --epochs 3": "--dpsgd 0.01 1.1 300",
    "--noise-multiplier 1.1 --examples 1000 --batch-size 10 --steps 7": "--dpsgd 0.01 1.1 7",
    "--noise-multiplier 1.1 --examples 60000 --batch-size 256 --epochs 60": f"--dpsgd {256 / 60000!r} 1.1 14063",
    "--noise-multiplier 1.1 --examples 1000 --batch-size 5 --accumulation 4 --epochs 1": "--dpsgd 0.02 1.1 50",
    "--noise-multiplier 1.1 --examples 1000 --batch-size 10 --epochs 0.3": "--dpsgd 0.01 1.1 30",
    "--noise-multiplier 1.1 --examples 7 --batch-size 7 --epochs 5": "--dpsgd 1 1.1 5",
    "--spec run.yaml": "--dpsgd 0.01 1.1 100 --dpsgd 0.01 1.1 100 --zcdp 0.1",
}


@pytest.mark.slow
@pytest.mark.parametrize("words", SAME)
def test_one_training_in_several_words(words: str, folder: Path) -> None:
    (folder / "opacus.json").write_text(json.dumps(OPACUS))
    (folder / "run.yaml").write_text("run:\n- {dpsgd: [0.01, 1.1, 100], times: 2}\n- zcdp: 0.1\n")
    answers = [answer(f"convert {line} --delta 1e-5") for line in (words, SAME[words])]
    assert answers[0]["to"]["epsilon"] == pytest.approx(answers[1]["to"]["epsilon"], rel=1e-6)


@pytest.mark.slow
def test_a_grid_of_settings(folder: Path) -> None:
    (folder / "grid.csv").write_text("lr,batch_size,noise_multiplier,epochs\n0.1,10,1.1,6\n0.5,20,1.2,6\n")
    line = "bound --candidates grid.csv --examples 1000 --delta 1e-5 --format json"
    code, out, err = run(f"{line} --dist poisson --mu 4")
    assert code == 0, err
    assert "grid.csv: taken for hyperparameters, which no guarantee depends on: lr" in err
    alone = [f"--dpsgd {rate} {noise} {steps}" for rate, noise, steps in ((0.01, 1.1, 600), (0.02, 1.2, 300))]
    costs = [answer(f"bound {one} --dist poisson --mu 4 --delta 1e-5")["epsilon"] for one in alone]
    assert min(costs) < json.loads(out)["epsilon"] < max(costs) * 1.001
    every_run = json.loads(run(f"{line} --dist composition")[1])["epsilon"]
    together = answer(f"convert {' '.join(alone)} --delta 1e-5")["to"]["epsilon"]
    assert every_run == pytest.approx(together, rel=1e-3)


@pytest.mark.slow
def test_a_total_is_one_more_case_with_a_limit_of_its_own(folder: Path) -> None:
    *cases, total = answer("bound --spec privacy.yaml --total --max-epsilon 0.3", code=1)["cases"]
    assert [case.get("max_epsilon") for case in cases] == [0.1, None]
    assert total["name"] == "total"
    assert max(case["epsilon"] for case in cases) < total["epsilon"] < sum(case["epsilon"] for case in cases) * 1.001
    assert "total: epsilon 0." in run("bound --spec privacy.yaml --total --max-epsilon 0.3")[2]
    (folder / "t.yaml").write_text(TWO + "- {name: both, total: true, max-epsilon: 9}\n")
    assert answer("bound --spec t.yaml", code=1)["cases"][2]["epsilon"] == total["epsilon"]
    (folder / "t.yaml").write_text("- {name: both, total: true, max-epsilon: 9}\n")
    assert "beside the cases" in told("bound --spec t.yaml")
    (folder / "t.yaml").write_text("- {pure: 1, group: 2, dist: poisson, mu: 2}\n- {pure: 1, dist: poisson, mu: 2}\n")
    assert "different --group" in told("bound --spec t.yaml --total")
    (folder / "t.yaml").write_text("- {pure: 1, delta: 1e-5, dist: fixed, k: 2}\n- {pure: 1, dist: fixed, k: 2}\n")
    assert "different deltas" in told("bound --spec t.yaml --total")


@pytest.mark.parametrize("case", ["coarse", "both", "total"])
def test_a_total_is_of_all_cases_and_no_case_is_chosen_beside_it(folder: Path, case: str) -> None:
    err = told(f"bound --spec privacy.yaml --case {case} --total --max-epsilon 1")
    assert err.endswith(f"--case {case} is one: leave --case or --total out\n")


def test_a_total_that_is_chosen_is_of_cases_that_are_not_shown(folder: Path) -> None:
    (folder / "t.yaml").write_text(TWO.replace("poisson\n  mu", "fixed\n  k") + "- {name: both, total: true}\n")
    whole = answer("bound --spec t.yaml --case both --rdp-out curve.csv --save-spec again.yaml")
    assert whole == {"name": "both", **answer("bound --spec again.yaml", code=1)["cases"][2]}
    assert (folder / "curve.csv").exists()
    assert answer("bound --spec t.yaml --case both --max-epsilon 0.4", code=1)["within_budget"] is False
    assert answer("bound --spec t.yaml --case coarse --max-epsilon 0.4")["max_epsilon"] == 0.4
    assert run("bound --spec t.yaml -q", HPCALC_BOUND_TOTAL="1")[1].count("\n") == 3
