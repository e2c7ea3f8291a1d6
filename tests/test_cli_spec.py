"""Spec files: what they mean, what they refuse, and that a saved one reads back."""

from __future__ import annotations

import random
from pathlib import Path

import click
import pytest
import yaml

from hpcalc.cli import main
from hpcalc.cli.app import cli
from hpcalc.cli.settings import Settings
from hpcalc.cli.spec import cases_of, spec_text
from hpcalc.errors import DataFileError, HpcalcError


def read(path: Path, *args: str, command: str = "bound") -> tuple[list[Settings], bool]:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    return cases_of(found.make_context(command, ["--spec", str(path), *args]))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return tmp_path / "spec.yaml"


def test_numbers_as_users_write_them(spec: Path) -> None:
    spec.write_text(
        "zcdp: .1\ndist: tnb\neta: -.5\nmean: 1e1\ndelta: 1e-6\norders: [1.5, 2, 1e3, .inf]\nmax_epsilon: 0\n"
    )
    (case,), listed = read(spec)
    assert not listed
    assert case["zcdp"] == (0.1,)
    assert case["eta"] == -0.5
    assert case["mean"] == 10.0
    assert case["delta"] == 1e-6
    assert case["orders"] == (1.5, 2.0, 1000.0, float("inf"))
    assert case["max_epsilon"] == 0.0
    assert case["max_epsilon"] is not None


def test_dashes_and_underscores_are_the_same_key(spec: Path) -> None:
    spec.write_text("approx-dp: [0.5, 1e-8]\nat_least_one: yes\nmax-runs: 1e2\n")
    (case,), _ = read(spec)
    assert case["approx_dp"] == ((0.5, 1e-8),)
    assert case["at_least_one"] is True
    assert case["max_runs"] == 100


def test_repeated_options_are_lists(spec: Path) -> None:
    spec.write_text(
        "zcdp: [0.1, 0.2]\ndpsgd: [[0.1, 1, 10], [0.2, 2, 20]]\nrdp: {2: 0.5, inf: 4}\nlaw: [poisson:mu=3]\n"
    )
    (case,), _ = read(spec, command="compare")
    assert case["zcdp"] == (0.1, 0.2)
    assert case["dpsgd"] == ((0.1, 1.0, 10.0), (0.2, 2.0, 20.0))
    assert case["rdp"] == ("2:0.5,inf:4",)
    assert case["law"] == ("poisson:mu=3",)


def test_laws_as_mappings(spec: Path) -> None:
    spec.write_text("law:\n- {dist: tnb, eta: -.5, mean: 1e1}\n- dist: fixed\n  k: 3\n")
    (case,), _ = read(spec, command="compare")
    assert case["law"] == ("tnb:eta=-.5,mean=1e1", "fixed:k=3")


def test_the_command_line_wins_over_the_spec_and_the_spec_over_the_environment(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCALC_BOUND_MU", "3")
    monkeypatch.setenv("HPCALC_BOUND_MEAN", "4")
    spec.write_text("mu: 5\ndelta: 1e-5\n")
    (case,), _ = read(spec, "--delta", "1e-7")
    assert (case["delta"], case["mu"], case["mean"]) == (1e-7, 5.0, 4.0)


def test_cases_have_names(spec: Path) -> None:
    spec.write_text('- {name: "a: b", zcdp: 1}\n- {zcdp: 2}\n')
    cases, listed = read(spec)
    assert listed
    assert [case.name for case in cases] == ["a: b", "case 2"]


REFUSED = {
    "detla: 1e-6": ":1: unknown key detla: did you mean delta?",
    "zcdp: 1\n\nmax_runs: 3\nmax-runs: 4": ":4: max-runs: given twice (first on line 3)",
    'delta: "0,5"': ":1: delta: 0,5: use a decimal point: 0.5",
    "mu: 010": "octal",
    "mu: 0x10": "hexadecimal",
    "mu: 1:30": "base 60",
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
    "name: [a]": "name: give one line of text",
    "explain: maybe": "give true or false",
    "dpsgd: [1, 2]": "exactly 3 values",
    "dpsgd: 3": "exactly 3 values",
    "mu: !!float 3": "tag !!float",
    "mu: !!python/object/apply:os.system [ls]": "tag !!python",
    "mu: !local 3": "tag !local",
    "mu: *nowhere": "unknown alias",
    "spec: other.yaml": "no place in a spec file",
    "- zcdp: 1\n  output: x": ":2: output: speaks for all cases",
    "- {name: a}\n- {name: a}": ":2: name: a: taken by the case on line 1",
    "- 3": "expected options",
    "3": "expected one mapping",
    "[]": "expected one mapping",
    "": "is empty",
    "# nothing": "is empty",
    "a: 1\n---\nb: 2": "a second document",
    "zcdp: [1": "not YAML",
    "\tzcdp: 1": "not YAML",
    "zcdp: 1\0": "not YAML",
    "[" * 100_000: "",
    "{a: " * 100: "",
    "[a]: 1": "an option's name must be a word",
    "k: 2.5": "k: 2.5: give an integer",
    "<<: {zcdp: 1}": "unknown key <<",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:30]))
def test_refusals_name_the_file_the_line_and_the_remedy(
    text: str, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.write_text(text)
    assert main(["bound", "--spec", str(spec)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert f"{spec}" in err
    assert REFUSED[text] in err


def test_a_billion_laughs_is_refused_at_once(spec: Path) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    spec.write_text("\n".join(lines))
    with pytest.raises(HpcalcError, match="too many values"):
        read(spec)


def test_wrong_encodings_and_sizes(spec: Path) -> None:
    spec.write_bytes(b"zcdp: 1\nmu: \xff\n")
    with pytest.raises(HpcalcError, match=":2: not UTF-8"):
        read(spec)
    spec.write_bytes("zcdp: 1".encode("utf-16"))
    with pytest.raises(HpcalcError, match="not UTF-8"):
        read(spec)
    spec.write_bytes("\ufeffzcdp: 1".encode())
    assert read(spec)[0][0]["zcdp"] == (1.0,)
    spec.write_bytes(b"#" * (9 * 2**20))
    with pytest.raises(HpcalcError, match="larger than"):
        read(spec)


def test_files_that_cannot_be_read_are_exit_code_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataFileError):
        read(tmp_path / "absent.yaml")
    assert main(["bound", "--spec", str(tmp_path)]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert str(tmp_path) in err


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
        assert {**one.values, "spec": None} == {**other.values, "spec": None}
    assert isinstance(yaml.safe_load(text), list)


def malformed(rng: random.Random) -> bytes:
    """A spec file that was once right, damaged."""
    good = "- name: a\n  zcdp: 0.1\n  dist: tnb\n  eta: -.5\n  mean: 10\n- name: b\n  dpsgd: [0.1, 1.1, 100]\n  mu: 3\n"
    damage = rng.randrange(7)
    if damage == 0:
        return good[: rng.randrange(len(good))].encode()
    if damage == 1:
        place = rng.randrange(len(good))
        return good[:place].encode() + bytes(rng.choices(range(256), k=rng.randint(1, 4))) + good[place:].encode()
    if damage == 2:
        return good.encode(rng.choice(["utf-16", "utf-32", "utf-16-le", "cp037"]))
    if damage == 3:
        junk = [
            "1e999",
            "nan",
            "[]",
            "{}",
            "!!float 1",
            "&a [*a]",
            "*a",
            "0o17",
            "1:1",
            '"\\xq"',
            "'",
            "- -",
            "? :",
            "|",
            ">",
        ]
        return good.replace("0.1", rng.choice(junk), 1).encode()
    if damage == 4:
        return (rng.choice("[{-?") + " ").encode() * rng.randint(1, 3000)
    if damage == 5:
        return bytes(rng.choices(range(256), k=rng.randint(1, 200)))
    words = list(good.split(" "))
    rng.shuffle(words)
    return " ".join(words).encode()


@pytest.mark.parametrize("seed", range(10))
def test_malformed_files_end_in_one_clear_line(seed: int, spec: Path) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        spec.write_bytes(malformed(rng))
        refusal: HpcalcError | None = None
        try:
            read(spec)
        except HpcalcError as error:
            refusal = error
        if refusal is not None:
            assert len(str(refusal).splitlines()) == 1
            assert str(refusal).isprintable()
            assert refusal.exit_code in (2, 4)
