"""Golden files: help, errors, and one answer per command and format.

``python -m hpcalc.reference`` rewrites ``tests/golden/``; look at the difference before committing it.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

_CLEANED = ("HPCALC_", "NO_COLOR", "FORCE_COLOR")
_ANSWERS: dict[bytes, Any] = {}
FOLDER = Path(__file__).with_name("golden")
COMMANDS = ("bound", "convert", "utility", "compare", "plan", "draw")
FORMATS = {"table": "txt", "yaml": "yaml", "json": "json", "csv": "csv", "markdown": "md"}
QUESTIONS = {
    "bound": "bound --dist poisson --mu 10 --zcdp 0.1 --delta 1e-6 --max-epsilon 4 --explain",
    "convert": "convert --gaussian 2 --compose 10 --delta 1e-6",
    "utility": "utility --dist tnb --eta 0 --mean 10 --success-rate 0.01",
    "compare": "compare --zcdp 0.1 --mean 10 --success-rate 0.01",
    "plan": "plan --zcdp 0.1 --target-epsilon 4 --success-rate 0.01",
    "draw": "draw --dist poisson --mu 10 --count 3",
}
# the command lines that errors.txt answers: a new one is written there, and answered by ``python -m hpcalc.reference``
ERRORS = re.findall(r"^\$ hpcalc (.*)$", (FOLDER / "errors.txt").read_text(encoding="utf-8"), re.MULTILINE)


def once(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Questions, each answered once however often it is asked, in whatever format."""

    def answered(question: str, *given: Any, progress: Any = None, **more: Any) -> Any:
        key = pickle.dumps((question, given, sorted(more.items())))
        if key not in _ANSWERS:
            _ANSWERS[key] = ask(question, *given, **more)
        return _ANSWERS[key]

    return answered


def run(line: str, encoding: str = "utf-8", **variables: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line, on an 80-column stream and in a clean environment."""
    from hpcalc.cli import answers, main

    kept = {key: value for key, value in os.environ.items() if not key.startswith(_CLEANED)}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="") for _ in range(2))
    with (
        mock.patch.dict(os.environ, {**kept, "COLUMNS": "80", **variables}, clear=True),
        mock.patch.object(random, "SystemRandom", return_value=random.Random(1)),
        mock.patch.object(answers, "_ask", once(answers._ask)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main(shlex.split(line))
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode(encoding))  # type: ignore[attr-defined]
    return code, texts[0], texts[1]


def goldens() -> dict[str, str]:
    """The command line behind every golden file but the one of the errors."""
    lines = {"hpcalc.help.txt": "--help"}
    lines |= {f"{name}.help.txt": f"{name} --help" for name in COMMANDS}
    for name in COMMANDS:
        lines |= {f"{name}.{fmt}.{suffix}": f"{QUESTIONS[name]} --format {fmt}" for fmt, suffix in FORMATS.items()}
    return lines


def errors() -> Iterator[str]:
    """What every wrong command line is answered with, beside the files of ``tests/errors``."""
    before = Path.cwd()
    os.chdir(Path(__file__).with_name("errors"))
    for line in ERRORS:
        code, out, err = run(line)
        yield f"$ hpcalc {line}\n{out}{err}[exit {code}]\n"
    os.chdir(before)


def text_of(name: str) -> str:
    """What a golden file should hold."""
    if name == "errors.txt":
        return "\n".join(errors())
    code, out, err = run(goldens()[name])
    assert code in (0, 1), err
    return out


def files() -> dict[str, str]:
    """Every golden file: name -> content."""
    return {name: text_of(name) for name in (*goldens(), "errors.txt")}


if __name__ == "__main__":  # with --write, as python -m hpcalc.reference does it beside the man pages
    for golden, text in files().items():
        (FOLDER / golden).write_text(text, encoding="utf-8", newline="\n")
