"""Spec files: what they mean, what they refuse, and that a saved one reads back."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hpcalc.cli import main
from hpcalc.cli.case import Case
from hpcalc.cli.options import command as named
from hpcalc.cli.spec import cases_of, settings_of, spec_text


def read(path: Path, *args: str, command: str = "bound") -> tuple[list[Case], bool]:
    return cases_of(named(command), named(command).make_context(command, ["--spec", str(path), *args]).obj)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return tmp_path / "spec.yaml"


READ = {
    "zcdp: .1\ndist: tnb\neta: -.5\nmean: 1e1\ndelta: 1e-6\norders: [1.5, 1e3, .inf]\nmax_epsilon: 0\n": {
        "zcdp": (0.1,), "eta": -0.5, "mean": 10.0, "delta": 1e-6, "orders": (1.5, 1e3, float("inf")), "max_epsilon": 0.0
    },
    "approx-dp: [0.5, 1e-8]\nat_least_one: yes\nmax-runs: 1e2\n": {
        "approx_dp": ((0.5, 1e-8),), "at_least_one": True, "max_runs": 100
    },
    "zcdp: [0.1, 0.2]\ndpsgd: [[0.1, 1, 10], [0.2, 2, 20]]\nrdp: {2: 0.5, inf: 4}\n": {
        "zcdp": (0.1, 0.2), "dpsgd": ((0.1, 1.0, 10.0), (0.2, 2.0, 20.0)), "rdp": ("2:0.5,inf:4",)
    },
}  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_options_as_users_write_them(text: str, spec: Path) -> None:
    spec.write_text(text)
    (case,), listed = read(spec)
    assert not listed
    assert {key: case[key] for key in READ[text]} == READ[text]


def test_laws_as_mappings_and_texts(spec: Path) -> None:
    spec.write_text("law:\n- {dist: tnb, eta: -.5, mean: 1e1}\n- dist: fixed\n  k: 3\n- poisson:mu=3\n")
    (case,), _ = read(spec, command="compare")
    assert case["law"] == ("tnb:eta=-.5,mean=1e1", "fixed:k=3", "poisson:mu=3")


def test_the_command_line_wins_over_the_spec_and_the_spec_over_the_environment(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCALC_BOUND_MU", "3")
    monkeypatch.setenv("HPCALC_BOUND_ETA", "4")
    spec.write_text("mu: 5\ndelta: 1e-5\n")
    (case,), _ = read(spec, "--delta", "1e-7")
    assert (case["delta"], case["mu"], case["eta"]) == (1e-7, 5.0, 4.0)


LAW_AND_BASE = "dist: tnb\neta: 0\nmean: 10\nmax-runs: 50\nzcdp: 0.1\ncompose: 3\ndelta: 1e-5\n"
TRAINING = "noise-multiplier: 1.1\nexamples: 1000\nbatch-size: 10\nepochs: 3\ngaussian: 20\n"


@pytest.mark.parametrize(
    ("text", "words", "left"),
    [
        # a law replaces the law, a parameter a parameter, and the mean the scale
        (LAW_AND_BASE, "--dist poisson --mu 5", {"dist": "poisson", "mu": 5.0, "zcdp": (0.1,), "compose": 3}),
        (LAW_AND_BASE, "--eta 1", {"dist": "tnb", "eta": 1.0, "mean": 10.0, "max_runs": 50}),
        (LAW_AND_BASE, "--gamma 0.5", {"dist": "tnb", "eta": 0.0, "gamma": 0.5, "mean": None}),
        # a guarantee replaces the guarantees, and what composes them
        (LAW_AND_BASE, "--gaussian 2", {"gaussian": (2.0,), "zcdp": None, "compose": None, "dist": "tnb"}),
        (TRAINING, "--zcdp 1", {"zcdp": (1.0,), "gaussian": None, "noise_multiplier": None, "epochs": None}),
        # the words of a training script are one guarantee, and override word by word
        (TRAINING, "--noise-multiplier 2", {"noise_multiplier": 2.0, "epochs": 3.0, "gaussian": (20.0,)}),
        (TRAINING, "--steps 9 --sample-rate 0.1", {"steps": 9, "epochs": None, "batch_size": None, "examples": 1000}),
        (LAW_AND_BASE, "--steps 9", {"steps": 9, "zcdp": None}),
        ("epsilon: 3\n", "--delta 1e-5", {"delta": 1e-5, "epsilon": None}),
        ("then: [{gaussian: 5}, run]\n", "--then zcdp=1", {"then": ("zcdp=1",)}),
    ],
)
def test_what_the_command_line_replaces(spec: Path, text: str, words: str, left: dict[str, object]) -> None:
    spec.write_text(text)
    (case,), _ = read(spec, *words.split())
    assert {key: case[key] for key in left} == left


def test_one_file_serves_every_command(spec: Path) -> None:
    spec.write_text(LAW_AND_BASE + "max-epsilon: 4\nsuccess-rate: 0.1\ncount: 3\nthen: {gaussian: 5, times: 2}\n")
    assert read(spec, command="draw")[0][0]["count"] == 3
    assert read(spec, command="draw")[0][0]["zcdp"] is None
    assert read(spec, command="utility")[0][0]["success_rate"] == 0.1
    assert read(spec, command="plan")[0][0]["max_epsilon"] == 4.0
    assert read(spec, command="compare")[0][0]["dist"] == "tnb"
    (case,), _ = read(spec)
    (part,) = case["then"]
    assert (part["gaussian"], part["times"]) == ((5.0,), 2)


def test_one_case_of_a_list(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text('- {name: "a: b", zcdp: 1, dist: poisson, mu: 2}\n- {zcdp: 2, dist: poisson, mu: 3}\n')
    cases, listed = read(spec)
    assert ([case.name for case in cases], listed) == (["a: b", "case 2"], True)
    (case,), listed = read(spec, "--case", "case 2")
    assert (case["mu"], listed) == (3.0, False)
    for words, told in (("draw", "with --case: a: b, case 2"), ("bound --case c", "no case of that name: choose a: b")):
        command, *rest = words.split()
        assert main([command, "--spec", str(spec), *rest]) == 2
        assert told in capsys.readouterr().err
    assert main(["bound", "--case", "b", "--zcdp", "1"]) == 2
    assert "give --spec too" in capsys.readouterr().err


REFUSED = {
    "detla: 1e-6": ":1: unknown key detla: did you mean delta?",
    "zcdp: 1\n\nmax_runs: 3\nmax-runs: 4": ":4: max-runs: given twice (first on line 3)",
    'delta: "0,5"': ":1: delta: 0,5: use a decimal point: 0.5",
    "mu: 010": "octal",
    "mu: 0x10": "give a number",
    "mu: 1:30": "give a number",
    "then: [{gausian: 5}]": ":1: unknown key gausian: did you mean gaussian?",
    "then: [{gaussian: x}]": ":1: gaussian: x:",
    "run: [{zcdp: 1, times: 0.5}]": "times: 0.5: give an integer",
    "total: true\nzcdp: 1": "a total holds name, delta and max-epsilon only",
    "candidates: [3]": "expected a list of settings",
    "mu: nan": "mu: nan:",
    "mu: .nan": "mu: .nan:",
    "mu: .inf": "mu: .inf:",
    "mu: 1_000": "mu: 1_000:",
    "mu: [1, 2]": "a list where one value is expected",
    "mu: {a: 1}": "a mapping where one value is expected",
    "mu:": "has no value",
    "mu: ~": "has no value",
    "dist: yes": "put it in quotes",
    "name: on": "put it in quotes",
    "name: [a]": "name: a list where one value is expected",
    'name: "a\\nb"': "give one line of text",
    "explain: maybe": "give true or false",
    "dpsgd: [1, 2]": "exactly 3 values",
    "dpsgd: 3": "exactly 3 values",
    "mu: !!python/object/apply:os.system [ls]": "tag !!python",
    "mu: !local 3": "tag !local",
    "mu: *nowhere": "not YAML",
    "spec: other.yaml": "no place in a spec file",
    "- zcdp: 1\n  output: x": ":2: output: speaks for all cases",
    "- {name: a}\n- {name: a}": ":2: name: a: taken by the case on line 1",
    "- 3": "expected options",
    "3": "expected one mapping",
    "[]": "expected one mapping",
    "": "is empty",
    "# nothing": "is empty",
    "mu: 1\n---\nmu: 2": "a second document",
    "zcdp: [1": "not YAML",
    "\tzcdp: 1": "not YAML",
    "zcdp: 1\0": "control characters",
    "[" * 100_000: "",
    "{a: " * 100: "",
    "[a]: 1": "a key must be a word or a number",
    "k: 2.5": "k: 2.5: give an integer",
    "zcdp: {}": "a mapping where one value is expected",
    "zcdp: '1 2'": "zcdp: 1 2: give a number",
    "mean: 1e999": "give a number below 1e308",
    "eta: 190:20:30.5": "give a number",
    "conversion: magic": "choose from best, cks, mironov, exact",
    "orders: [0.5]": "every order must be above 1",
    "dpsgd: []": "exactly 3 values",
    "<<: {zcdp: 1}": "unknown key <<",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:30]))
def test_refusals_name_the_file_the_line(text: str, spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(text)
    assert main(["bound", "--spec", str(spec)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert f"{spec}" in err
    assert REFUSED[text] in err


CANDIDATES = {
    "- {name: small, noise-multiplier: 1.1, sample-rate: 0.01, steps: 1000, weight: 0.75, params: {lr: 0.1}}\n"
    "- {approx_dp: [0.5, 1e-8], weight: 0.2500000001}\n": (["small", "setting 2"], (0.75, 0.25), True),
    "name,lr,zcdp,dpsgd\na,0.1,0.5 1,\nb,0.3,,0.01 1.1 1000\n": (["a", "b"], (0.5, 0.5), False),
    "- {zcdp: 1, weight: unknown}\n- {zcdp: 2, weight: unknown}\n": (["setting 1", "setting 2"], None, True),
}


@pytest.mark.parametrize("text", CANDIDATES)
def test_candidates(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"grid.{'csv' if text.startswith('name') else 'yaml'}"
    path.write_text(text)
    (case,), _ = cases_of(named("bound"), named("bound").make_context("bound", ["--candidates", str(path)]).obj)
    rows, weights, stated = settings_of(case)
    names, wanted, given = CANDIDATES[text]
    assert ([row.name for row in rows], stated) == (names, given)
    assert weights == (wanted and pytest.approx(wanted))
    assert ("no guarantee depends on: lr\n" in capsys.readouterr().err) == ("lr" in text)
    if "approx_dp" in text:
        assert (rows[0]["noise_multiplier"], rows[1]["approx_dp"]) == (1.1, ((0.5, 1e-8),))
    if "dpsgd" in text:
        assert [row["dpsgd"] for row in rows] == [None, ((0.01, 1.1, 1000.0),)]
        assert rows[0]["zcdp"] == (0.5, 1.0)


WRONG_CANDIDATES = {
    "- {zcdp: 1, weight: 1.5}\n- {zcdp: 2, weight: -0.5}\n": ":2: weight -0.5",
    "- {zcdp: 1, weight: 1}\n- {zcdp: 2}\n": "1 of 2 settings have a weight",
    "- {zcdp: 1, weight: unknown}\n- {zcdp: 2, weight: 1}\n": "give all weights as numbers, or all as unknown",
    "- {zcdp: 1, lr: 3}\n": "put hyperparameters under params",
    "- {zcdb: 1}\n": "did you mean zcdp",
    "- {zcdp: 1, zcdp: 2}\n": "given twice",
    "- {zcdp: 1, params: 2}\n": "give a mapping of hyperparameters",
    "- {name: a}\n": ":1: a: no guarantee",
    "zcdp: 1\n": "list of settings",
    "[]": "list of settings",
}


@pytest.mark.parametrize("text", WRONG_CANDIDATES)
def test_wrong_candidates_name_their_line(text: str, spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(text)
    assert main(["convert", "--candidates", str(spec)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"hpcalc: {spec}:")
    assert WRONG_CANDIDATES[text] in err


def test_a_saved_spec_reads_back(spec: Path, tmp_path: Path) -> None:
    spec.write_text(
        "- name: 'yes'\n  zcdp: [1e-1, .2]\n  dist: tnb\n  eta: -.5\n  mean: 1e1\n  orders: [1.5, inf]\n"
        "- name: 'ünï: \"x\"'\n  dpsgd: [4e-3, 1.1, 1e4]\n  rdp: {2: 1, inf: 2}\n  dist: poisson\n"
        "  at-least-one: true\n  mu: 10\n"
    )
    cases, listed = read(spec, "--max-epsilon", "0")
    text = spec_text(cases, listed)
    again = tmp_path / "again.yaml"
    again.write_text(text)
    back, _ = read(again)
    assert spec_text(back, True) == text
    for one, other in zip(cases, back, strict=True):
        assert one.name == other.name
        assert {**one.values, "spec": None, "delta": 1e-6} == {**other.values, "spec": None}
    assert isinstance(yaml.safe_load(text), list)
