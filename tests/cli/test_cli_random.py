"""Random command lines, valid and broken, from a grammar of every option: the promises that hold whatever is typed."""

from __future__ import annotations

import csv
import io
import json
import random
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from goldens import COMMANDS

from hpcalc.catalog import LAWS
from hpcalc.cli import main
from hpcalc.cli.options import FORMATS, METHODS, command

BROKEN = ("nan", "inf", "-1", "0", "x", "", "1e999", "0,5", "1:30", "é", "--mu", "2.5.1", "\x1b[31m")
_LAWS = """poisson --mu {m}/poisson --mean {m}/tnb --eta {h} --mean {m}/tnb --eta {h} --gamma {g}/geometric --gamma {g}/
logarithmic --mean {m}/binomial --n {k} --p {g}/fixed --k {k}/pmf --pmf pmf.csv/threshold --accept {g}/
poisson --mu {m} --max-runs {k}/tnb --eta {h} --mean {m} --at-least-one"""
_BASES = """zcdp {e}/pure {e}/gaussian {m}/laplace {m}/approx-dp {e} 1e-9/rdp 2:{e},8:{m}/zcdp {e} --pure {e}/zcdp inf/
gaussian {m} --compose {k}/rdp-file rdp.csv/profile-file profile.yaml/gaussian 0/dpsgd 0.01 {m} 100/
zcdp {e} --gaussian {m}/candidates candidates.csv"""
GOOD_LAWS, GOOD_BASES = _LAWS.replace("\n", "").split("/"), _BASES.replace("\n", "").split("/")
FILES = {
    "pmf.csv": "k,probability\n1,0.5\n10,0.5\n",
    "rdp.csv": "order,epsilon\n2,0.5\n8,1.9\n32,7\n",
    "profile.yaml": "profile:\n- {epsilon: 0.5, delta: 1e-3}\n- {epsilon: 2, delta: 1e-7}\n",
    "scores.txt": "0.5\n0.7\n0.6\n0.9\n",
    "candidates.csv": "name,zcdp,weight\na,0.1,0.5\nb,0.2,0.5\n",
    "broken.csv": "order,epsilon\n2,nan\n",
    "spec.yaml": "delta: 1e-5\n",
    "broken.yaml": "detla: 1e-5\n",
}
# What a command cannot do without, apart from a base and a law.
NEEDS = {
    "compare": ("--mean {m}", "--at-epsilon {m}", "", "--law poisson:mu={m} --law tnb:eta={h},mean={m}"),
    "plan": tuple("--target-epsilon {m} " + more for more in
                  ("", "--maximize quantile", "--success-rate 0.01", "--solve-for zcdp --mean 5")),
}  # fmt: skip
# Some of which may be added: an option and its values, separated by slashes.
EXTRAS = """--delta 1e-6/1e-5/1e-12/0.1/0
--explain
--orders 1.5,2,8/2/1.01,64,inf
--conversion best/cks/mironov/exact
--max-epsilon 0/1/100
--to approx-dp/rdp/zcdp/pure
--epsilon 0/1/50
--success-rate 0.01/0.5
--scores scores.txt
--count 1/5/1e2
--spec spec.yaml
--save-spec saved.yaml
--max-runs-p95 100
--group 1/3
--examples 1e5/100
--unit patient
--density 0.9 1.1/0.5 1
--searches 2/3
--subset 0.1/0.5
--then run/gaussian=5/approx-dp=0.5,1e-8/rdp=2:0.1,8:0.9
--then-on rest/all
--method """ + "/".join(METHODS)


class Grammar:
    """Command lines of one command."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name, self.rng = name, rng
        options = command(name).options.values()
        self.options = [option for option in options if option.group != "Help" and not option.spec_only]

    def fill(self, template: str) -> list[str]:
        rng = self.rng
        values = {
            "e": f"{10 ** rng.uniform(-2, 0.7):.4g}",
            "m": f"{10 ** rng.uniform(0.1, 1.5):.4g}",
            "h": rng.choice(["-0.5", "0", "0.5", "1", "-.9", "2"]),
            "g": f"{10 ** rng.uniform(-4, -0.1):.4g}",
            "k": str(rng.randint(1, 30)),
        }
        return template.format(**values).split()

    def likely_right(self) -> list[str]:
        rng, keys = self.rng, {option.flag for option in self.options}
        words: list[str] = []
        if "--zcdp" in keys:
            words += self.fill(f"--{rng.choice(GOOD_BASES)}")
        if "--dist" in keys and (self.name != "plan" or rng.random() < 0.3):
            words += self.fill(f"--dist {rng.choice(GOOD_LAWS)}")
        words += self.fill(rng.choice(NEEDS.get(self.name, ("",))))
        for extra in rng.sample(EXTRAS.splitlines(), rng.randint(0, 3)):
            option, _, values = extra.partition(" ")
            if option in keys:
                words += [option, *(rng.choice(values.split("/")).split() if values else ())]
        return words

    def damaged(self) -> list[str]:
        """A line that was likely right, with options of any kind added or words replaced."""
        rng = self.rng
        words = self.likely_right()
        for _ in range(rng.randint(1, 2)):
            if rng.random() < 0.5 and words:
                words[rng.randrange(len(words))] = rng.choice(BROKEN)
            else:
                option = rng.choice(self.options)
                if option.key in ("output", "plot", "save_spec", "case", "total", "profile_out", "rdp_out"):
                    continue
                count = 0 if option.is_flag else option.nargs if rng.random() < 0.9 else 0
                pool = (*BROKEN, "0.1", "3", "1e1", *LAWS, "broken.csv", "broken.yaml", "poisson:mu=3")
                words += [option.flag, *(rng.choice(pool) for _ in range(count))]
        return words

    def line(self) -> list[str]:
        words = self.likely_right() if self.rng.random() < 0.5 else self.damaged()
        if self.rng.random() < 0.8:
            words += ["--format", self.rng.choice(FORMATS)]
        return [self.name, *words]


def validator() -> jsonschema.Draft202012Validator:
    """The one schema of every answer."""
    schema = json.loads((files("hpcalc") / "schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def check(args: list[str], code: int, out: str, err: str, schema: jsonschema.Draft202012Validator) -> None:
    told = err.splitlines()
    said = [line for line in told if line.startswith("hpcalc: ")]
    if "No such file" in err:
        assert (code, out, len(told)) == (4, "", 1)
        return
    assert code in (0, 1, 2, 3)
    assert "Traceback" not in err
    assert "\x1b" not in out + err
    if code == 2:
        assert out == ""
        assert 1 <= len(told) <= 2
        assert told[0].startswith("hpcalc: ")
        return
    fmt = [*args, "table"][len(args) if "--format" not in args else len(args) - 1 - args[::-1].index("--format") + 1]
    document: Any = None
    if fmt == "yaml":
        document = yaml.safe_load(out)
    elif fmt == "json":
        document = json.loads(out, parse_constant=refuse_constant)
    elif fmt == "csv":
        rows = list(csv.reader(io.StringIO(out)))
        assert len(rows) >= 2
        assert len({len(row) for row in rows}) == 1
        assert len(set(rows[0])) == len(rows[0])
    else:
        assert out.strip()
    if document is not None:
        schema.validate(document)
        assert "np." not in out
        assert len(said) == len(document["warnings"]) + (code != 0)
    assert len(told) - len(said) <= (code == 3)  # what is within reach stands on a second line
    assert told or code == 0


def run_lines(name: str, seed: int, count: int, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HPCALC_DEBUG", raising=False)
    schema, grammar = validator(), Grammar(name, random.Random(seed))
    for index in range(count):
        args = grammar.line()
        capsys.readouterr()
        code = main(args)
        out, err = capsys.readouterr()
        try:
            check(args, code, out, err, schema)
        except Exception as failure:
            raise AssertionError(f"line {index}: hpcalc {shlex.join(args)}\nexit {code}\n{err}\n{failure}") from failure


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_random_command_lines(name: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a plan or a comparison is worth a dozen bounds
    run_lines(name, 1, {"bound": 12, "compare": 3, "plan": 2}.get(name, 30), capsys, tmp_path, monkeypatch)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(2, 7))
@pytest.mark.parametrize("name", COMMANDS)
def test_hundreds_of_random_command_lines(
    name: str, seed: int, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_lines(name, seed, {"compare": 20, "plan": 12}.get(name, 100), capsys, tmp_path, monkeypatch)
