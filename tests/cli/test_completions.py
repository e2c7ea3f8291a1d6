"""Completion in real bash, zsh and fish, by the scripts that are installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pexpect
import pytest
from goldens import COMMANDS, FOLDER
from shells import ROOT, environment, option_names, program, put_hpcalc

from hpcalc.catalog import LAWS
from hpcalc.cli.options import FORMATS, METHODS

COMPLETIONS = ROOT / "completions"
READY = "ready> "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with hpcalc on the PATH and two files with telling names."""
    path = tmp_path_factory.mktemp("home")
    put_hpcalc(path)
    (path / "pilot-scores.csv").write_text("score\n0.5\n")
    (path / "sub dir").mkdir()
    return path


class Terminal:
    """An interactive bash or zsh; ``tab(line)`` types a line and TAB and returns what the terminal then shows."""

    # The two parts of the prompt, and of the mark below, keep it apart from the echo of the line that sets it.
    SETUP: ClassVar[dict[str, tuple[list[str], list[str]]]] = {
        "bash": (
            ["--norc", "--noprofile", "-i"],
            [
                "bind 'set show-all-if-ambiguous on'; bind 'set page-completions off'; bind 'set bell-style none'",
                "bind 'set completion-query-items 0'; bind 'set enable-bracketed-paste off'",
                f"source '{COMPLETIONS}/hpcalc.bash'; PS1='rea''dy> '",
            ],
        ),
        "zsh": (
            ["-f", "-i"],
            [
                f"fpath=('{COMPLETIONS}' $fpath); autoload -Uz compinit; compinit -u -D; unset zle_bracketed_paste",
                "setopt no_beep interactive_comments no_list_ambiguous; unsetopt prompt_sp; LISTMAX=9999",
                # zsh lists nothing while keys are waiting, so it has to say when it is done
                "tab-and-tell() { zle expand-or-complete; zle -R; print -n '@''@' >/dev/tty }; zle -N tab-and-tell",
                "bindkey '^I' tab-and-tell; PS1='rea''dy> '",
            ],
        ),
    }

    def __init__(self, shell: str, folder: Path) -> None:
        arguments, setup = self.SETUP[shell]
        # bash answers keys in order: what is typed after TAB is echoed when TAB is done
        self.mark = "@@" if shell == "bash" else ""
        self.child = pexpect.spawn(
            program(shell), arguments, env=environment(folder), cwd=str(folder),
            encoding="utf-8", timeout=60, dimensions=(500, 200),
        )  # fmt: skip
        self.child.delaybeforesend = None
        for line in setup:
            self.child.sendline(line)
        self.child.expect_exact(READY)

    def tab(self, line: str) -> str:
        """Complete a line; Ctrl-A and a # then make it a comment, so that nothing runs."""
        self.child.send(f"{line}\t{self.mark}")
        self.child.expect_exact("@@")
        shown = self.child.before
        self.child.send("\x01#\r")
        self.child.expect_exact(READY)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x07\x0f]", "", shown)

    def run(self, line: str) -> None:
        """Run a command."""
        self.child.sendline(line)
        self.child.expect_exact(READY)

    def close(self) -> None:
        self.child.close(force=True)


@pytest.fixture(scope="module")
def bash(folder: Path) -> Iterator[Terminal]:
    with closing(Terminal("bash", folder)) as shell:
        yield shell


@pytest.fixture(scope="module")
def zsh(folder: Path) -> Iterator[Terminal]:
    with closing(Terminal("zsh", folder)) as shell:
        yield shell


def _fish(folder: Path, line: str) -> list[str]:
    quoted = line.replace("\\", "\\\\").replace("'", "\\'")
    done = subprocess.run(
        [program("fish"), "--no-config", "-c", f"source '{COMPLETIONS}/hpcalc.fish'; complete -C '{quoted}'"],
        env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def fish(folder: Path) -> Callable[[str], str]:
    return lambda line: "\n".join(_fish(folder, line))


@pytest.fixture(params=["bash", "zsh", "fish"])
def tab(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """What a shell shows after a line and TAB."""
    shell = request.getfixturevalue(request.param)
    return shell.tab if isinstance(shell, Terminal) else shell


def _words(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])-{0,2}[a-z0-9][a-z0-9.-]*", text))


# every command, and every shell twice: the words come from one program
@pytest.mark.parametrize(
    ("tab", "command"),
    [
        ("bash", "bound"),
        ("bash", "draw"),
        ("zsh", "plan"),
        ("zsh", "utility"),
        ("fish", "compare"),
        ("fish", "convert"),
    ],
    indirect=["tab"],
)
def test_every_option_of_help_completes(tab: Callable[[str], str], command: str) -> None:
    expected = option_names((FOLDER / f"{command}.help.txt").read_text(encoding="utf-8"))
    assert "--format" in expected
    assert not set(expected) - _words(tab(f"hpcalc {command} --"))


# after a line and TAB: words that are offered, and words that are not
OFFERED = {
    "hpcalc ": (COMMANDS, ()),
    "hpcalc bound --zcdp 0.1 --method ": (METHODS, ()),
    "hpcalc bound --then gaussian=1 --format=": (FORMATS, ()),
    "hpcalc compare --law ": (tuple(LAWS), ()),
    "hpcalc bound --dist geo": (["geometric"], ["poisson"]),
    "hpcalc bound --dist=geo": (["--dist=geometric"], ["poisson"]),
    "hpcalc utility --mu 3 --": (["--dist", "--scores"], ["--zcdp", "--delta", "--max-epsilon", "--mu"]),
    "hpcalc bound --mu ": ([], ["--zcdp", "pilot-scores.csv"]),
    "hpcalc bound --spec pil": (["pilot-scores.csv"], []),
    "hpcalc bound --output=pil": (["--output=pilot-scores.csv"], []),
}


@pytest.mark.parametrize("line", OFFERED)
def test_what_is_offered(tab: Callable[[str], str], line: str) -> None:
    offered, others = OFFERED[line]
    shown = tab(line)
    words = _words(shown) | set(shown.split())
    assert set(offered) <= words
    assert not words - set(line.split()) & set(others)


def test_zsh_and_fish_tell_what_a_choice_means(zsh: Terminal, fish: Callable[[str], str]) -> None:
    for text in (zsh.tab("hpcalc "), fish("hpcalc ")):
        assert "Draw the number of runs" in text
    for text in (zsh.tab("hpcalc bound --"), fish("hpcalc bound --")):
        assert "noise standard deviation / L2 sensitivity" in text
        assert "2:0.5,8:1.9,inf:4" in text  # colons and commas are told apart from the protocol's own


def test_bash_keeps_the_order_of_the_answer(bash: Terminal) -> None:
    shown = bash.tab("hpcalc bound --dist ")
    assert shown.index("tnb") < shown.index("geometric") < shown.index("logarithmic") < shown.index("fixed")


@pytest.mark.slow
def test_zsh_script_may_be_sourced(folder: Path) -> None:
    with closing(Terminal("zsh", folder)) as shell:
        shell.run("compdef -d hpcalc; unfunction _hpcalc")
        assert "bound" not in _words(shell.tab("hpcalc b"))
        shell.run('eval "$(_HPCALC_COMPLETE=zsh_source hpcalc)"')
        assert "bound" in _words(shell.tab("hpcalc b"))


def test_a_path_to_the_program_completes(bash: Terminal, zsh: Terminal) -> None:
    assert set(COMMANDS) <= _words(bash.tab("./hpcalc "))
    assert set(COMMANDS) <= _words(zsh.tab("./hpcalc "))


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_silent_where_hpcalc_is_absent(shell: str, tmp_path: Path) -> None:
    line = "hpcalc bound --dist "
    if shell == "fish":
        assert _fish(tmp_path, line) == []
        return
    with closing(Terminal(shell, tmp_path)) as terminal:
        shown = terminal.tab(line)
    # zsh echoes the first letter twice while it looks for its highlighting
    assert shown.replace("h\b", "").split() == line.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "options"),
    [("(3 2 57)", "-o default -F"), ("(4 3 48)", "-F"), ("(4 4 0)", "-o nosort -F"), ("(5 2 15)", "-o nosort -F")],
)
def test_bash_options_by_version(version: str, options: str) -> None:
    """bash 3.2, still the one of macOS, knows neither nosort nor compopt and would complain at every start."""
    script = (COMPLETIONS / "hpcalc.bash").read_text().replace("BASH_VERSINFO", "VERSION_HERE")
    program_text = f'VERSION_HERE={version}; complete() {{ echo "$@"; }}\n{script}'
    words = [program("bash"), "--norc", "-c", program_text]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert done.stdout == f"{options} _hpcalc_completion hpcalc\n"


@pytest.mark.slow
@pytest.mark.parametrize(("shell", "name"), [("bash", "hpcalc.bash"), ("zsh", "_hpcalc"), ("fish", "hpcalc.fish")])
def test_hpcalc_prints_the_script_that_is_installed(shell: str, name: str) -> None:
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "_HPCALC_COMPLETE": f"{shell}_source"}
    done = subprocess.run([sys.executable, "-m", "hpcalc"], env=variables, capture_output=True, timeout=60, check=True)
    # Click before 8.5 ends it with a blank line
    assert done.stdout.rstrip() == (COMPLETIONS / name).read_bytes().rstrip()
