"""From a parsed command line to output and exit code: the path all six commands share."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hpcalc import __version__
from hpcalc.cli.settings import CommandLineError, Settings
from hpcalc.errors import ExitCode, InvalidInput, NoFiniteBound, TargetOutOfReach
from hpcalc.files import write_file
from hpcalc.output import render
from hpcalc.output.streams import complain, stdout_encoding, terminal_width, wants_colour, write_stdout

if TYPE_CHECKING:
    from hpcalc.cli.command import Command

__all__ = ["Failed", "Progress", "execute"]

_WORST_FIRST = (ExitCode.FILE_ERROR, ExitCode.WRONG_INPUT, ExitCode.NO_FINITE_BOUND, ExitCode.OVER_BUDGET, ExitCode.OK)
_CHART_FORMAT = "table"
_PICTURES = (".svg", ".png", ".pdf")


class Failed:
    """The document of a question that has no answer: the reason takes the answer's place."""

    exit_code = ExitCode.NO_FINITE_BOUND

    def __init__(self, command: str, error: Exception) -> None:
        self.command = command
        self.error = error

    def document(self) -> dict[str, Any]:
        """Plain document, as a result has it."""
        reachable = getattr(self.error, "reachable", None)
        return {
            "hpcalc_version": __version__,
            "command": self.command,
            "epsilon": None,
            "reason": " ".join(str(self.error).split()),
            **({"reachable": reachable} if reachable is not None else {}),
            "warnings": [],
        }


def execute(ctx: click.Context, command: Command) -> int:
    """Answer every case, write what was asked for, say what must be said on stderr."""
    path = ctx.params.get("spec")
    listed = False
    if path is None:
        cases = [Settings(ctx, ctx.params)]
    else:
        from hpcalc.cli.spec import cases_of

        cases, listed = cases_of(ctx)
    for case in cases:
        _refuse_chart(case)
    results = [_answer(command, case) for case in cases]
    documents = [_document(result, case) for result, case in zip(results, cases, strict=True)]
    _side_files(ctx, cases, results, documents, listed)

    whole = {"cases": documents} if listed else documents[0]
    fmt, output = cases[0]["format"], cases[0]["output"]
    echo = frozenset(_floats([case.values for case in cases]))
    if output is not None and output != "-":
        write_file(output, render(whole, fmt, echo=echo))
    else:
        text = render(whole, fmt, echo=echo, encoding=stdout_encoding(), width=terminal_width(), colour=wants_colour())
        write_stdout(text)
    for case in cases:
        if case["plot"] == "-":
            _plot(case, results, documents, cases)
    for document, result in zip(documents, results, strict=True):
        place = f"{document['name']}: " if listed else ""
        for warning in document.get("warnings") or ():
            complain(f"hpcalc: warning: {place}{warning}")
        said = isinstance(result, Failed)
        if result.exit_code == ExitCode.NO_FINITE_BOUND and not said:
            complain(f"hpcalc: {place}no finite answer: {document.get('reason')}")
        elif result.exit_code == ExitCode.OVER_BUDGET:
            complain(f"hpcalc: {place}the whole search costs more than --max-epsilon {document['max_epsilon']:g}")
    codes = {ExitCode(result.exit_code) for result in results}
    return next(code for code in _WORST_FIRST if code in codes)


def _refuse_chart(case: Settings) -> None:
    if case["plot"] == "-" and case["format"] != _CHART_FORMAT:
        case.refuse("plot", f"a chart in the terminal goes with --format table, not {case['format']}")
    if case["plot"] not in (None, "-") and not case["plot"].lower().endswith(_PICTURES):
        case.refuse("plot", "give a file name that ends in .svg, .png or .pdf, or - for the terminal")


def _answer(command: Command, case: Settings) -> Any:
    """A result; what is wrong with the input is told in the words of the command line."""
    try:
        return command.answer(case)
    except (NoFiniteBound, TargetOutOfReach) as error:
        complain(f"hpcalc: {_place(case)}{' '.join(str(error).split())}")
        return Failed(command.name or "", error)
    except InvalidInput as error:
        raise case.located(error) from error
    except CommandLineError as error:
        if case.name is not None and case.spec is not None and not str(error).startswith(case.spec):
            raise CommandLineError(f"{_place(case)}{error}") from error
        raise


def _place(case: Settings) -> str:
    return f"{case.spec}: {case.name}: " if case.name is not None and case.spec is not None else ""


def _document(result: Any, case: Settings) -> dict[str, Any]:
    document: dict[str, Any] = result.document()
    if case["explain"] and "explain" not in document and not isinstance(result, Failed):
        from hpcalc.cli.explain import explanation

        told = explanation(result, document)
        if told is not None:
            document["explain"] = told
    return {"name": case.name, **document} if case.name is not None else document


def _floats(value: Any) -> Iterator[float]:
    """Every float a user typed, to be echoed as typed."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _floats(item)
    elif hasattr(value, "values"):
        yield from _floats(list(value.values()))


def _side_files(
    ctx: click.Context, cases: list[Settings], results: list[Any], documents: list[dict[str, Any]], listed: bool
) -> None:
    """Files beside the answer come first: if one of them fails, stdout stays empty."""
    for case, result in zip(cases, results, strict=True):
        for key, write in (("profile_out", _write_profile), ("rdp_out", _write_rdp)):
            if case[key] is not None:
                write(case[key], result)
        if case["plot"] not in (None, "-"):
            _plot(case, results, documents, cases)
    save = ctx.params.get("save_spec")
    if save is not None:
        from hpcalc.cli.spec import spec_text

        write_file(save, spec_text(cases, listed))


def _write_profile(path: str, result: Any) -> None:
    from hpcalc.files import points_text

    write_file(path, points_text(path, "profile", result.profile()))


def _write_rdp(path: str, result: Any) -> None:
    from hpcalc.files import points_text

    write_file(path, points_text(path, "rdp", result.rdp_export()))


def _plot(case: Settings, results: list[Any], documents: list[dict[str, Any]], cases: list[Settings]) -> None:
    from hpcalc.output.plots import plot_result

    index = next(i for i, other in enumerate(cases) if other is case)
    text = plot_result(results[index], case["plot"], width=terminal_width(), encoding=stdout_encoding())
    if text:
        write_stdout("\n" + text)


class Progress:
    """A bar on stderr for what takes over a second, on a terminal only.

    Examples
    --------
    >>> with Progress() as progress:
    ...     progress(1, 2)
    """

    def __init__(self, delay: float = 1.0) -> None:
        import os

        self.delay = delay
        self.start = time.monotonic()
        self.shown = False
        self.active = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` steps are behind."""
        if not self.active or total <= 0 or time.monotonic() - self.start < self.delay:
            return
        filled = round(20 * min(done, total) / total)
        self._write(f"\r[{'#' * filled}{'.' * (20 - filled)}] {done}/{total}")
        self.shown = True

    def __exit__(self, *exc: object) -> None:
        if self.shown:
            self._write("\r" + " " * 40 + "\r")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self.active = False
