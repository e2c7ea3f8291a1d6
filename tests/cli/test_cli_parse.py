"""Options, numbers, environment variables and the errors they end in."""

from __future__ import annotations

import math
import os
from typing import Any

import pytest
from goldens import COMMANDS

import hpcalc
from hpcalc.cli import main
from hpcalc.cli.case import Case
from hpcalc.cli.command import Option
from hpcalc.cli.options import command
from hpcalc.cli.spec import cases_of
from hpcalc.cli.types import integer, loss, number, orders, rate
from hpcalc.cli.types import text as one_line
from hpcalc.errors import HpcalcError, InvalidInput


def parsed(name: str, *args: str) -> Case:
    return cases_of(command(name), command(name).make_context(name, list(args)).obj)[0][0]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (name for name in os.environ if name.startswith("HPCALC_")):
        monkeypatch.delenv(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_explains_itself(name: str) -> None:
    # which there are is pinned by the golden --help
    for option in (option for option in command(name).options.values() if not option.spec_only):
        assert option.help
        assert option.help.isascii()
        assert option.is_flag or option.metavar
        if option.group == "Help":
            assert not option.envvar
        else:
            assert option.envvar[0] == f"HPCALC_{name.upper()}_{option.key.upper()}"
    for example in command(name).examples:
        words = example.split()
        assert words[:2] == ["hpcalc", name]
        assert parsed(name, *words[2:]).values


READ = {
    number: {"1e-6": 1e-6, "-.5": -0.5, "1e3": 1000.0, "2.": 2.0, " 7 ": 7.0, "0e5": 0.0, "+3": 3.0},
    loss: {"inf": math.inf},
    orders: {"1.5,2,inf": (1.5, 2.0, math.inf)},
    integer: {"1e3": 1000, "1e6": 10**6, "2.50e1": 25, "7.0": 7, "1e18": 10**18,
              "123456789012345678": 123456789012345678},
    rate: {"auto": "auto", "0.1": 0.1},
}  # fmt: skip
REFUSED = {
    number: ["nan", "NaN", "inf", "-inf", "0,5", "1_000", "0x10", "1e999", "1e-999", "", " ", "one", "1 2", "١", "1e",
             "--mu"],
    loss: ["-inf"],
    integer: ["25e-1e0", "2.5", "1e99", "nan", "1e-400", "-1", "1e-99999999999"],
    orders: ["0.9,2", "1", "2,nan", "2,,3", "", "-2"],
    one_line: ["", "a\nb"],
}  # fmt: skip


@pytest.mark.parametrize("kind", READ)
def test_values_as_people_write_them(kind: Any) -> None:
    option = Option("x", "X", kind, "")
    assert {text: option.read(text) for text in READ[kind]} == READ[kind]


@pytest.mark.parametrize("kind", REFUSED)
def test_values_nobody_should_rely_on(kind: Any) -> None:
    for text in REFUSED[kind]:
        with pytest.raises(InvalidInput):
            Option("x", "X", kind, "").read(text)


def test_several_values_may_be_joined_by_commas() -> None:
    pair = command("bound").options["approx_dp"]
    assert [pair.read(text) for text in ("2,1e-5", "2 1e-5")] == [(2.0, 1e-5)] * 2
    for text in ("2", "2,1e-5,3", "0,5 1e-5", "2 1e-5 3", ""):  # a decimal comma is never taken for two numbers
        with pytest.raises(InvalidInput):
            pair.read(text)
    for words in (["--approx-dp", "2,1e-5"], ["--approx-dp=2,1e-5"], ["--approx-dp", "2", "1e-5"]):
        assert parsed("bound", *words)["approx_dp"] == ((2.0, 1e-5),)


def test_repeated_guarantees_are_all_kept() -> None:
    case = parsed("bound", "--zcdp", "0.1", "--zcdp", "0.2", "--approx-dp", "1", "1e-8")
    assert (case["zcdp"], case["approx_dp"]) == ((0.1, 0.2), ((1.0, 1e-8),))


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("BOUND_DPSGD", "0.1 1.0 1e2"), ("BOUND_AT_LEAST_ONE", "true"), ("BOUND_RDP_FILE", "a b:c.csv"),
                       ("DELTA", "1e-5"), ("FORMAT", "json"), ("BOUND_FORMAT", "yaml"),
                       ("BOUND_HELP", "1"), ("HELP", "1"), ("VERSION", "1")):  # fmt: skip
        monkeypatch.setenv(f"HPCALC_{name}", text)
    case = parsed("bound")
    assert {key: case[key] for key in ("dpsgd", "at_least_one", "rdp_file", "delta", "format")} == {
        "dpsgd": ((0.1, 1.0, 100.0),), "at_least_one": True, "rdp_file": ("a b:c.csv",), "delta": 1e-5, "format": "yaml"
    }  # fmt: skip
    assert parsed("convert")["format"] == "json"
    assert parsed("bound", "--delta", "1e-3")["delta"] == 1e-3


@pytest.mark.parametrize(
    ("variable", "text", "told"),
    [
        ("HPCALC_BOUND_DPSGD", "0.1 1.0", "HPCALC_BOUND_DPSGD=0.1 1.0: give exactly 3 values"),
        ("HPCALC_BOUND_DPSGD", "0.1 1.0 100 7", "exactly 3 values"),
        ("HPCALC_BOUND_APPROX_DP", "1", "exactly 2 values"),
        ("HPCALC_BOUND_ZCDP", "nan", "HPCALC_BOUND_ZCDP=nan"),
        ("HPCALC_DELTA", "x", "HPCALC_DELTA=x"),
        ("HPCALC_BOUND_EXPLAIN", "maybe", "HPCALC_BOUND_EXPLAIN=maybe: give true or false"),
    ],
)
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, text: str, told: str) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(HpcalcError, match=told):
        parsed("bound")


def test_what_a_user_types_cannot_break_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", "--zcdp", "\x1b[31m\n1", "--mu"]) == 2
    assert main(["bound", "--zcdp", "\x1b[31m\n1"]) == 2
    assert main(["bound", "--\x1b[31m", "1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1b" not in err
    assert len(err.splitlines()) <= 5


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--version", "-V"):
        assert main([flag]) == 0
        assert capsys.readouterr().out == f"hpcalc {hpcalc.__version__}\n"
    for name in COMMANDS:
        for flag in ("--help", "-h"):
            assert main([name, flag]) == 0
            text = capsys.readouterr().out
            assert text.isascii()  # legible on every stream
            assert all(example in text for example in command(name).examples)
        assert main(["help", name]) == 0
        assert capsys.readouterr().out == text
    assert main(["help"]) == 0
    assert "Commands" in capsys.readouterr().out
