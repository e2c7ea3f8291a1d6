"""Man pages, completion scripts and golden files, written from the command line's own declarations.

``python -m hpcalc.reference`` writes ``man/``, ``completions/`` and ``tests/golden/``; ``--check`` tells what is stale.
The prose of each page stands in ``hpcalc/manual/NAME.SECTION.txt``, its first line being what the page is about; the
output depends on the sources and on the release only. In the prose, a line begins with ``= TITLE`` (a section),
``== Title`` (a subsection), ``; term`` (its text indented below), ``* item`` (continued on indented lines), four blanks
(verbatim), ``@include NAME`` (the shared text ``_NAME.txt``) or the likes of ``@options`` (a generated block); what is
bold stands in backquotes.
"""

from __future__ import annotations

import re
import runpy
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import click

import hpcalc
from hpcalc.cli.app import cli
from hpcalc.cli.command import NOTES, SUMMARIES, Option
from hpcalc.cli.options import command
from hpcalc.cli.types import choice
from hpcalc.files import shipped
from hpcalc.questions.asked import CHECKLIST

# Typed characters that roff would turn into typographic ones, or act on.
_ESCAPES = str.maketrans({"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"})


def escape(text: str) -> str:
    r"""One line of ASCII text as roff input that prints exactly that text: ``-`` becomes ``\-``."""
    text.encode("ascii")  # what an ASCII terminal cannot show has no place in the manual
    safe = text.translate(_ESCAPES)
    return rf"\&{safe}" if safe.startswith(".") else safe


def _inline(text: str) -> str:
    """Escape a line of prose; ```code``` becomes bold."""
    parts = re.split(r"`([^`]+)`", text)
    # \% keeps the word that follows in one piece; escape() protects the line's beginning
    return "".join(rf"\fB\%{escape(part)}\fR" if index % 2 else escape(part) for index, part in enumerate(parts))


# Verbatim text with its blank lines; a heading or a directive; a tag or an item, its text indented below; a paragraph.
_BLOCK = re.compile(
    r"(?:^ {4}.*\n(?:\n+(?= {4}))?)+|^(?:==? |@).*\n|^[;*] .*\n(?:^ .*\n)*|(?:^(?!==? |@|[;*] )\S.*\n)+", re.MULTILINE
)


def _prose(text: str, generated: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Translate the prose of one page to roff lines."""
    paragraph: tuple[str, ...] = ()  # after a heading it would be empty, and mandoc says so
    for found in _BLOCK.findall(f"{text}\n"):
        block = found.splitlines()
        first, mark = block[0], block[0][:2]
        if first.startswith("@include "):
            yield from _prose(shipped(f"manual/_{first.split()[1]}.txt"), generated)
        elif first.startswith("@"):
            yield from generated[first[1:]]
        elif mark in ("= ", "=="):
            yield f".{'SH' if mark == '= ' else 'SS'} {escape(first.lstrip('= '))}"
        elif mark == "; ":
            yield from (".TP", rf"\fB{_inline(first[2:])}\fR", *map(_inline, map(str.strip, block[1:])))
        elif mark == "* ":
            yield from (r".IP \(bu 2", *map(_inline, map(str.strip, [first[2:], *block[1:]])))
        elif first.startswith("    "):
            lines = map(escape, textwrap.dedent(found).strip("\n").splitlines())
            yield from (*paragraph, ".RS 4", ".EX", *lines, ".EE", ".RE")
        else:
            yield from (*paragraph, *map(_inline, block))
        paragraph = () if mark in ("= ", "==") else (".PP",)


def _options(command: click.Command) -> Iterator[str]:
    """OPTIONS: every option of a command under the heading of its purpose, in the order of ``--help``."""
    options = [option for option in command.params if isinstance(option, Option) and not option.hidden]
    yield ".SH OPTIONS"
    for heading, group in groupby(options, lambda option: option.group):
        if command is not cli:
            yield f".SS {escape(heading)}"
        for option in group:
            names = ", ".join(rf"\fB{escape(name)}\fR" for name in option.opts)
            yield from (".TP", names if option.is_flag else rf"{names} \fI{escape(option.metavar or 'VALUE')}\fR")
            text = option.help or ""
            yield escape(text)
            choices = option.words if option.kind is choice else ()
            if not all(word in text for word in choices):
                yield escape(f"{option.metavar} is one of {', '.join(choices)}.")
            if option.many and "repeated" not in text:
                yield "May be given more than once."
            if option.told_default:
                yield escape(f"The default is {option.told_default}.")
        laws = NOTES.get(heading)
        for name, title in laws if isinstance(laws, list) else ():
            yield from (".TP", rf"\fB{escape(name)}\fR", escape(title))


def _glossary() -> Iterator[str]:
    """Every line of the checklist, and its meaning; a case's own numbers stand as their names."""
    for item in CHECKLIST.values():
        line, meaning = (re.sub(r"\{(\w+)[^}]*\}", lambda field: field[1].upper(), text) for text in item)
        yield from (".TP", escape(line), escape(meaning))


def _page(name: str, section: str) -> str:
    """A man page: its prose, and what is generated from the command of its name."""
    about, _, text = shipped(f"manual/{name}.{section}.txt").partition("\n")
    word = name.removeprefix("hpcalc-")
    asked = command(word) if word in SUMMARIES else cli
    called = rf"\fBhpcalc {word}\fR" if asked is not cli else r"\fBhpcalc\fR \fICOMMAND\fR"
    commands = [(".TP", rf"\fBhpcalc\-{each}\fR(1)", escape(summary)) for each, summary in SUMMARIES.items()]
    generated = {
        "synopsis": [".SH SYNOPSIS", rf"{called} [\fIOPTION\fR]..."],
        "commands": [".SH COMMANDS", *(line for each in commands for line in each)],
        "options": [*_options(asked)],
        "glossary": [*_glossary()],
        "example": [".RS 4", ".EX", *map(escape, getattr(asked, "examples", ())), ".EE", ".RE"],
    }
    lines = [
        rf".\" Written by python -m hpcalc.reference; the prose is hpcalc/manual/{name}.{section}.txt.",
        f'.TH {escape(name.upper())} {section} {hpcalc.__date__} "hpcalc {hpcalc.__version__}" "hpcalc manual"',
        # neither hyphenated nor stretched: option names and formulas are read, and copied, as they are
        ".nh",
        ".ad l",
        ".SH NAME",
        rf"{escape(name)} \- {escape(about)}",
        *_prose(text, generated),
    ]
    return "\n".join(lines) + "\n"


def build() -> dict[str, str]:
    """Every man page and completion script: path relative to the repository -> content."""
    scripts = {"hpcalc.bash": "bash", "_hpcalc": "zsh", "hpcalc.fish": "fish"}
    files = {f"completions/{name}": shipped(f"manual/hpcalc.{shell}") for name, shell in scripts.items()}
    for path in (Path(__file__).parent / "manual").glob("*.[157].txt"):
        name, section, _ = path.name.split(".")
        files[f"man/{name}.{section}"] = _page(name, section)
    return files


@click.command()
@click.option("--check", is_flag=True, help="Say which files are out of date, and write none.")
@click.option("--root", type=click.Path(path_type=Path), default=Path(__file__).parent.parent, help="The repository.")
def main(check: bool, root: Path) -> None:
    """Write what is generated; with --check, exit code 1 where something is out of date."""
    texts, script = build(), root / "tests" / "goldens.py"
    if script.is_file():
        texts |= {f"tests/golden/{name}": text for name, text in runpy.run_path(str(script))["files"]().items()}
    wanted = {name: text.encode() for name, text in texts.items()}
    paths = [path for folder in {name.rpartition("/")[0] for name in wanted} for path in (root / folder).glob("*")]
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    stale = sorted(name for name in wanted.keys() | found if wanted.get(name) != found.get(name))
    for name in stale:
        if check:
            click.echo(f"{name}: out of date; run python -m hpcalc.reference", err=True)
        elif name in wanted:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(wanted[name])
        else:
            (root / name).unlink()
    sys.exit(int(check and stale != []))


if __name__ == "__main__":
    main()
