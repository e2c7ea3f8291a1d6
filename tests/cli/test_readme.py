"""What the README shows is what happens: its transcripts are run, its files read, its commands found by .ci/run.

``PYTHONPATH=tests python tests/cli/test_readme.py`` writes the transcripts anew.
"""

from __future__ import annotations

import math
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from goldens import COMMANDS
from shells import ROOT, environment, option_names, program, put_hpcalc

import hpcalc
from hpcalc.cli.app import cli

README = (ROOT / "README.md").read_text(encoding="utf-8")
SPEC = "dist: {dist}\nmu: 10\nzcdp: 0.1\nmax-epsilon: {limit}\n"

Run = Callable[[list[str]], "subprocess.CompletedProcess[str]"]


def _blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def _value(block: str) -> Any:
    """What the last line of a block of Python evaluates to."""
    *statements, last = block.strip().splitlines()
    names: dict[str, object] = {"__name__": "readme"}
    exec(compile("\n".join(statements), "example", "exec", dont_inherit=True), names)
    return eval(last, names)


def _commands(block: str) -> list[tuple[str, str]]:
    """The command lines of a transcript and the output shown below each."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def _transcripts() -> list[tuple[str, str]]:
    return [pair for block in _blocks("console") for pair in _commands(block)]


def _run(argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    put_hpcalc(tmp_path)

    return lambda argv: _run(argv, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "output"), _transcripts())
def test_transcripts_are_real(command: str, output: str, run: Run) -> None:
    done = run(shlex.split(command))
    assert done.stderr == ""
    assert done.stdout == output


def test_set_up_commands_are_where_ci_looks() -> None:
    (main_job,) = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    (tests,) = re.findall(r"^\.venv/bin/pip install .* && .*pytest.*$", README, re.MULTILINE)
    assert main_job.count(" && ") == 2
    assert tests.count(" && ") == 1
    assert [main_job + "\n", tests + "\n"] == _blocks("sh")


class _Study:
    """As much of an Optuna study as the recipe asks for: one trial, drawn afresh."""

    def optimize(self, objective: Callable[[object], float], n_trials: int) -> None:
        assert n_trials == 1
        self.best_trial = SimpleNamespace(params={})
        rate = random.SystemRandom().uniform(1e-4, 1.0)
        self.best_trial.suggest_float = lambda name, *_, **__: self.best_trial.params.setdefault(name, rate)
        self.best_trial.value = objective(self.best_trial)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("index", "good"),
    [
        (0, lambda value: 3.73 < value < 3.75),
        (1, lambda value: 1e-4 <= value["rate"] <= 1.0),
        (2, lambda value: value < hpcalc.bound(hpcalc.ZCDP(0.06), hpcalc.Poisson(10.0), delta=1e-6).epsilon),
    ],
    ids=["first", "optuna", "own guarantee"],
)
def test_python_blocks_run(index: int, good: Callable[[Any], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    optuna: Any = ModuleType("optuna")
    optuna.create_study = lambda direction, sampler: _Study()
    optuna.samplers = SimpleNamespace(RandomSampler=lambda: None)
    monkeypatch.setitem(sys.modules, "optuna", optuna)
    blocks = _blocks("python")
    assert len(blocks) == 3
    assert good(_value(blocks[index]))


@pytest.mark.slow
def test_a_law_of_ones_own_answers_as_its_table_does() -> None:
    (block,) = _blocks("python", (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    table = {k: math.exp(-9.0) * 9.0 ** (k - 1) / math.factorial(k - 1) for k in range(1, 80)}
    assert _value(block) == pytest.approx(hpcalc.bound(hpcalc.Gaussian(2.0), hpcalc.FinitePmf(table)).epsilon, rel=1e-9)


@pytest.mark.slow
def test_spec_block_is_a_spec(tmp_path: Path, run: Run) -> None:
    (spec,) = (block for block in _blocks("yaml") if block.startswith("# privacy.yaml"))
    (tmp_path / "privacy.yaml").write_text(spec)
    done = run(["hpcalc", "bound", "--require-max-epsilon", "--spec", "privacy.yaml", "--format", "json"])
    assert (done.returncode, done.stderr) == (0, "")
    assert run(["hpcalc", "draw", "--spec", "privacy.yaml"]).stdout.strip().isdigit()


def test_files_it_links_to_are_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_options_it_names_exist() -> None:
    known = {name for command in COMMANDS for name in option_names(_help(command))}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert named - known <= {"--version"}


def _help(command: str) -> str:
    return CliRunner().invoke(cli, [command, "--help"]).output


def _hpcalc_lines(node: object) -> list[str]:
    if isinstance(node, str):
        return [line for line in node.splitlines() if line.startswith("hpcalc ")]
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return [line for child in children for line in _hpcalc_lines(child)]


@pytest.mark.slow
def test_ci_jobs_gate(tmp_path: Path, run: Run) -> None:
    """The GitHub step and the GitLab job are YAML, and their commands fail over budget and pass within it."""
    lines = [line for block in _blocks("yaml") for line in _hpcalc_lines(yaml.safe_load(block))]
    assert len(lines) == 2
    for limit, code in ((1.0, 1), (5.0, 0)):
        (tmp_path / "privacy.yaml").write_text(SPEC.format(dist="poisson", limit=limit))
        for line in lines:
            done = run(["sh", "-c", f"GITHUB_STEP_SUMMARY=summary.md; {line}"])
            assert done.returncode == code
            assert ("is over max-epsilon" in done.stderr) == (code == 1)
    for name in ("summary.md", "privacy.md"):
        assert "- [ ]" in (tmp_path / name).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("specs", "code"),
    [
        ([("poisson", 5.0)], 0),
        ([("poisson", 5.0), ("poisson", 6.0)], 0),
        ([("poisson", 1.0), ("poisson", 5.0)], 1),
        ([("poisson", 5.0), ("poison", 5.0)], 2),
    ],
)
def test_pre_commit_hook_gates_each_file(tmp_path: Path, run: Run, specs: list[tuple[str, float]], code: int) -> None:
    program("bash")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    names = []
    for index, (dist, limit) in enumerate(specs):
        names.append(f"model {index}.privacy.yaml")
        (tmp_path / names[-1]).write_text(SPEC.format(dist=dist, limit=limit))
        assert re.search(hook["files"], names[-1])
    assert run([*shlex.split(hook["entry"]), *names]).returncode == code


def test_pre_commit_hook_looks_at_specs_only() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    specs, others = ("privacy.yaml", "a/b/resnet-privacy.yml"), ("README.md", "ci.yaml", "noprivacy.yaml")
    assert {name for name in (*specs, *others) if re.search(hook["files"], name)} == {*specs}


def test_ci_script_is_bash() -> None:
    script = str(ROOT / ".ci" / "run")
    assert subprocess.run([program("bash"), "-n", script], capture_output=True, timeout=60, check=True).stderr == b""


def _rewrite() -> None:
    with tempfile.TemporaryDirectory() as name:
        put_hpcalc(Path(name))

        def transcript(match: re.Match[str]) -> str:
            shown = ((command, _run(shlex.split(command), Path(name)).stdout) for command, _ in _commands(match[1]))
            return "```console\n" + "".join(f"$ {command}\n{output}" for command, output in shown) + "```"

        text = re.sub(r"^```console\n(.*?)^```$", transcript, README, flags=re.DOTALL | re.MULTILINE)
    (ROOT / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _rewrite()
