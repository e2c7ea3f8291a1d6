"""Man pages: current, complete, clean, legible, and found by man once the wheel is installed."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from goldens import COMMANDS
from shells import ROOT, option_names, program

from hpcalc import __date__, __version__, reference
from hpcalc.cli import main
from hpcalc.cli.app import cli
from hpcalc.cli.command import Option
from hpcalc.cli.options import command
from hpcalc.cli.spec import cases_of
from hpcalc.datafiles import read_pmf, read_rdp

PAGES = sorted(path.name for path in (ROOT / "man").iterdir())


def _run(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    # a locale of its own, and no MANROFFOPT, MANWIDTH or MANPATH of the caller's
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAN", "LC_", "LANG"))}
    return subprocess.run(
        [program(argv[0]), *argv[1:]], env={**clean, "LC_ALL": "C.UTF-8", **env},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def _shown(page: Path) -> str:
    """A page as a terminal shows it, without bold and underline."""
    done = _run("mandoc", "-T", "ascii", "-O", "width=100", str(page))
    assert done.returncode == 0, done.stderr
    return re.sub(".\b", "", done.stdout)


def test_there_is_a_page_for_everything() -> None:
    others = ("hpcalc.1", "hpcalc-searches.7", "hpcalc-spec.5", "hpcalc-theory.7")
    assert sorted([*others, *(f"hpcalc-{name}.1" for name in COMMANDS)]) == PAGES


def _regenerate(root: Path, *words: str) -> Any:
    return CliRunner().invoke(reference.main, [*words, "--root", str(root)])


def test_regenerating_changes_no_byte(tmp_path: Path) -> None:
    assert _regenerate(tmp_path).exit_code == 0
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    committed = {
        path.relative_to(ROOT): path.read_bytes() for name in ("man", "completions") for path in (ROOT / name).iterdir()
    }
    assert written == committed


def test_check_names_what_is_out_of_date(tmp_path: Path) -> None:
    _regenerate(tmp_path)
    assert _regenerate(tmp_path, "--check").exit_code == 0
    (tmp_path / "man" / "hpcalc.1").write_text("old")
    (tmp_path / "man" / "hpcalc-gone.1").write_text("gone")
    (tmp_path / "completions" / "_hpcalc").unlink()
    told = _regenerate(tmp_path, "--check")
    stale = ["completions/_hpcalc", "man/hpcalc-gone.1", "man/hpcalc.1"]
    assert (told.exit_code, [line.split(":")[0] for line in told.stderr.splitlines()]) == (1, stale)
    _regenerate(tmp_path)
    assert _regenerate(tmp_path, "--check").exit_code == 0


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_every_option_of_help_is_in_the_page(name: str | None) -> None:
    asked = cli if name is None else command(name)
    with click.Context(asked, info_name="hpcalc") as context:
        expected = option_names(asked.get_help(context))
    assert "--help" in expected
    shown = _shown(ROOT / "man" / (f"hpcalc-{name}.1" if name else "hpcalc.1"))
    documented = re.findall(r"^ +(--[a-z0-9-]+)", shown.split("\nOPTIONS")[1].split("\nENVIRONMENT")[0], re.MULTILINE)
    assert sorted(documented) == expected
    words = " ".join(shown.split())
    for option in (one for one in asked.params if isinstance(one, Option) and not one.hidden):
        assert " ".join((option.help or "").split()) in words
        assert not option.told_default or f"The default is {option.told_default}." in words


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_clean(page: str) -> None:
    path = ROOT / "man" / page
    text = path.read_text(encoding="ascii")
    assert not re.search(r"[ \t]$|\t", text, re.MULTILINE)
    lint = _run("mandoc", "-T", "lint", "-W", "warning", str(path))
    assert (lint.returncode, lint.stdout + lint.stderr) == (0, "")
    name = page.rsplit(".", 1)[0]
    assert _run("lexgrog", str(path)).stdout.startswith(f'{path}: "{name} - ')
    for encoding in ("UTF-8", "ascii"):
        shown = _run("man", "--warnings", "-E", encoding, "-l", str(path), MANWIDTH="80")
        assert (shown.returncode, shown.stderr) == (0, "")
        assert __version__ in shown.stdout
        assert __date__ in shown.stdout


HOSTILE = [
    r"1e-6\n is a number, \fBnot bold\fR, C:\new\table",
    ".SH not a heading",
    "'br not a request",
    "...and so on",
    r"\" not a comment",
    "\"quoted\" `ticked` 'single' ^ ~ -- - --long-option",
    r"\(aq \[u0041] \*(Aq \n(.s",
]


def test_text_is_shown_as_it_is_written(tmp_path: Path) -> None:
    page = tmp_path / "demo.1"
    lines = ['.TH DEMO 1 2020-01-01 "demo" "demo"', ".SH NAME", r"demo \- demo", ".SH TEXT"]
    page.write_text("\n".join([*lines, *map(reference.escape, HOSTILE)]) + "\n")
    done = _run("man", "--warnings", "-E", "ascii", "-l", str(page), MANWIDTH="100")
    assert done.stderr == ""
    for shown in (_shown(page), re.sub(".\b", "", done.stdout)):
        assert all(" ".join(text.split()) in " ".join(shown.split()) for text in HOSTILE)


def test_what_an_ascii_terminal_cannot_show_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        reference.escape("\u03b5")


def test_prose_markup() -> None:
    source = (
        "= ONE-TWO\nplain `--bold`\n.dot\n\n; term\n  body\n\n* item\n  more\n\n"
        "    code \\\n\n    .more\n\nlast\n@options\n"
    )
    wanted = r"""
.SH ONE\-TWO|plain \fB\%\-\-bold\fR|\&.dot|.TP|\fBterm\fR|body|.IP \(bu 2|item|more
|.PP|.RS 4|.EX|code \e||\&.more|.EE|.RE|.PP|last|.SH OPTIONS
"""
    assert list(reference._prose(source, {"options": [".SH OPTIONS"]})) == wanted.replace("\n", "").split("|")


def _examples() -> list[tuple[str, str]]:
    """Command lines that stand verbatim in the pages."""
    found = []
    for page in PAGES:
        text = (ROOT / "man" / page).read_text()
        for block in re.findall(r"^\.EX\n(.*?)^\.EE$", text, re.DOTALL | re.MULTILINE):
            plain = block.replace(r"\-", "-").replace(r"\(aq", "'").replace("\\e\n", " ").replace(r"\&", "")
            found += [(page, line) for line in plain.splitlines() if line.startswith("hpcalc ")]
    return found


@pytest.mark.parametrize(("page", "line"), _examples())
def test_examples_parse(page: str, line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    if name != "help":
        command(name).make_context(name, arguments)


def _verbatim(page: str) -> list[str]:
    """The verbatim blocks of a page's prose."""
    source = (ROOT / "hpcalc" / "manual" / f"{page}.txt").read_text()
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", source, re.MULTILINE)
    return [textwrap.dedent(block).strip("\n") + "\n" for block in blocks]


def _block(page: str, start: str) -> str:
    (block,) = (block for block in _verbatim(page) if block.startswith(start))
    return block


def test_files_of_the_page_are_read(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    for start, limits in (("# privacy.yaml", [4.0]), ("- name:", [3.5, 2.5])):
        path.write_text(_block("hpcalc-spec.5", start))
        cases, listed = cases_of(command("bound"), command("bound").make_context("", ["--spec", str(path)]).obj)
        assert ([case["max_epsilon"] for case in cases], listed) == (limits, len(limits) > 1)
    table, document = _block("hpcalc-spec.5", "order,epsilon").split("\n\n")
    for name, text, curve in (
        ("curve.csv", table, {1.5: 0.31, 2.0: 0.42, math.inf: 3.1}),
        ("curve.json", document, {1.5: 0.31, 2.0: 0.42, 64.0: 2.9}),
    ):
        (tmp_path / name).write_text(text)
        assert read_rdp(str(tmp_path / name)) == curve
    path.write_text(_block("hpcalc-spec.5", "{1: 0.5"))
    assert read_pmf(str(path)) == {1: 0.5, 4: 0.25, 16: 0.25}


class _Recorded:
    """What the one-liners ask of another accountant; Gaussian noise of multiplier 2, three times."""

    DEFAULT_ALPHAS = (1.5, 2.0, 64.0)
    history = ((2.0, 1.0, 1), (2.0, 1.0, 2))
    orders, rdp = np.array(DEFAULT_ALPHAS), 3.0 * np.array(DEFAULT_ALPHAS) / 8.0

    @staticmethod
    def compute_rdp(q: float, noise_multiplier: float, steps: int, orders: tuple[float, ...]) -> Any:
        return steps * np.array(orders) / (2 * noise_multiplier**2)

    def get_RDP(self, order: float) -> Any:
        return np.float64(3 * order / 8)


@pytest.mark.parametrize("word", ['"alphas"', "mech", "acc.orders"])
def test_one_liners_of_the_page_write_curves_that_are_read(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = (block for block in _verbatim("hpcalc-spec.5") if block.startswith("Path(") and word in block)
    other = {"acc": _Recorded(), "mech": _Recorded(), "compute_rdp": _Recorded.compute_rdp}
    exec(block, {"json": json, "Path": Path, **other})
    curve = read_rdp("curve.json")
    assert (curve[2.0], curve[64.0]) == (pytest.approx(0.75), pytest.approx(24.0))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data files of the wheel, where an installation puts them below its prefix."""
    from hatchling.build import build_wheel

    folder = tmp_path_factory.mktemp("wheel")
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        wheel = build_wheel(str(folder))
    finally:
        os.chdir(before)
    with zipfile.ZipFile(folder / wheel) as archive:
        archive.extractall(folder)
    return folder / f"hpcalc-{__version__}.data" / "data"


def test_wheel_holds_every_page_and_script(installed: Path) -> None:
    placed = {path.relative_to(installed).as_posix() for path in installed.rglob("*") if path.is_file()}
    assert placed == {
        *(f"share/man/man{name[-1]}/{name}" for name in PAGES),
        "share/bash-completion/completions/hpcalc",
        "share/zsh/site-functions/_hpcalc",
        "share/fish/vendor_completions.d/hpcalc.fish",
    }


@pytest.mark.parametrize("page", PAGES)
def test_man_finds_every_page(installed: Path, page: str) -> None:
    name, section = page.split(".")
    words = name.split("-", 1) if section == "1" else [section, name]  # man hpcalc bound
    done = _run("man", "-M", str(installed / "share" / "man"), *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub(".\b", "", done.stdout).startswith(f"{name.upper()}({section})")


# one of each kind: lines that differ by their numbers ask the same question
SEARCHES = {re.sub(r"[\d.]+", "#", line): line for page, line in _examples() if page == "hpcalc-searches.7"}.values()


@pytest.fixture(scope="module")
def shown_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that hpcalc-searches(7) shows, under the names it gives them."""
    folder = tmp_path_factory.mktemp("searches")
    source = (ROOT / "hpcalc" / "manual" / "hpcalc-searches.7.txt").read_text().partition("= FILES")[2]
    for name, block in re.findall(r"^([a-z]+\.[a-z]+), .*?:\n\n((?:    .*\n|\n(?=    ))+)", source, re.MULTILINE):
        (folder / name).write_text(textwrap.dedent(block))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("line", SEARCHES)
def test_every_command_of_the_table_of_searches_answers(
    line: str, shown_files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shown_files)
    assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out
