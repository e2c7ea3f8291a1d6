"""From parsed words to output and exit code: the path all six commands share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpcalc import __version__
from hpcalc.cli.case import COMMAND_LINE, Case, CommandLineError, shown
from hpcalc.cli.command import Command
from hpcalc.cli.spec import cases_of, spec_text
from hpcalc.errors import ExitCode, InvalidInput, NoFiniteBound, TargetOutOfReach
from hpcalc.files import points_text, write_file
from hpcalc.output import render
from hpcalc.output.streams import complain, stdout_encoding, terminal_width, wants_colour, write_stdout

__all__ = ["execute"]

_WORST_FIRST = (ExitCode.FILE_ERROR, ExitCode.WRONG_INPUT, ExitCode.NO_FINITE_BOUND, ExitCode.OVER_BUDGET, ExitCode.OK)
_SUFFIXES = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".csv": "csv", ".md": "markdown"}
_PICTURES = (".svg", ".png", ".pdf")
_FILES = ("profile_out", "rdp_out", "plot")  # one of each for every case


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
            **({"reachable": reachable} if reachable else {}),
            "warnings": [],
        }


def execute(command: Command, words: Mapping[str, Any]) -> int:
    """Answer every case, write what was asked for, say what must be said on stderr."""
    try:
        cases, listed = cases_of(command, words)
        _check(command, cases, listed)
        results = _answers(command, cases)
    except CommandLineError as error:
        _annotate(str(error))
        raise
    documents = [_document(result, case) for result, case in zip(results, cases, strict=True)]
    # files beside the answer come first: if one of them fails, stdout stays empty
    for case, result in zip(cases, results, strict=True):
        if not isinstance(result, Failed):
            _side_files(case, result)
    if cases[0]["save_spec"] is not None:
        write_file(cases[0]["save_spec"], spec_text(cases, listed))
    _write(cases[0], documents, listed, cases)
    for case, result in zip(cases, results, strict=True):
        if case["plot"] == "-" and not isinstance(result, Failed):
            write_stdout("\n" + _plot(result, "-"))
    for case, result, document in zip(cases, results, documents, strict=True):
        _tell(case, result, document)
    codes = {ExitCode(result.exit_code) for result in results}
    return next(code for code in _WORST_FIRST if code in codes)


def _format(case: Case) -> str:
    """The format: as typed, else by the output file's suffix, else as the spec or the environment has it."""
    output = case["output"]
    suffix = os.path.splitext(output)[1].lower() if output else ""
    if case.source("format") != COMMAND_LINE and suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    return str(case["format"])


# -- before anything is computed --------------------------------------------------------------------------------------


def _check(command: Command, cases: Sequence[Case], listed: bool) -> None:
    """What is wrong with where the answer goes, or with the list of cases."""
    first = cases[0]
    if len(cases) > 1 and command.name != "bound" and command.name != "convert":
        names = ", ".join(str(case.name) for case in cases)
        raise CommandLineError(f"{first.spec}: holds {len(cases)} cases: choose one with --case: {names}")
    fmt = _format(first)
    if first["quiet"] and fmt != "table":
        first.refuse("quiet", f"shows the headline alone, which --format {fmt} has not: leave one of them out")
    if first["quiet"] and first["explain"]:
        first.refuse("quiet", "leaves out what --explain asks for: keep one of them")
    files: dict[str, str] = {}
    for case in cases:
        if case["plot"] == "-" and fmt != "table":
            case.refuse("plot", f"a chart in the terminal goes with --format table, not {fmt}")
        if case["plot"] not in (None, "-") and not case["plot"].lower().endswith(_PICTURES):
            case.refuse("plot", "give a file name that ends in .svg, .png or .pdf, or - for the terminal")
        if case["require_max_epsilon"] and case["max_epsilon"] is None:
            where = f"{case.spec}:{case.line}: {case.name}: " if listed else case.place
            raise CommandLineError(f"{where}max-epsilon is missing, and --require-max-epsilon is set: give a limit")
        for key in _FILES:
            path = _path(case, key)
            if path is None or path == "-":
                continue
            if path in files:
                case.refuse(key, f"{files[path]} would overwrite it: put {{name}} in the file's name")
            files[path] = f"the case {case.name}" if listed else f"--{key.replace('_', '-')}"


def _path(case: Case, key: str) -> str | None:
    """A file of one case: ``{name}`` in it stands for the case's name."""
    path: str | None = case[key]
    if path is None or "{name}" not in path:
        return path
    return path.replace("{name}", (case.name or "").replace("/", "-").replace("\\", "-"))


# -- answers ----------------------------------------------------------------------------------------------------------


def _answers(command: Command, cases: Sequence[Case]) -> list[Any]:
    """A result for every case; a total is that of the other cases."""
    results: dict[int, Any] = {}
    for totals in (False, True):  # a total comes after what it is the sum of, wherever it stands
        for index, case in enumerate(cases):
            if bool(case.beside.get("total")) == totals:
                others = [(cases[i], result) for i, result in results.items() if not cases[i].beside.get("total")]
                results[index] = _answer(command, case, others if totals else None)
    return [results[index] for index in range(len(cases))]


def _answer(command: Command, case: Case, others: Sequence[tuple[Case, Any]] | None) -> Any:
    """A result; what is wrong with the input is told in the words of the command line."""
    try:
        if others is not None:
            from hpcalc.cli.commands import total

            return total(case, others)
        return command.answer(case)
    except (NoFiniteBound, TargetOutOfReach) as error:
        return Failed(command.name or "", error)
    except InvalidInput as error:
        raise case.located(error) from error
    except CommandLineError as error:
        if case.spec is not None and not str(error).startswith(case.spec):
            raise CommandLineError(f"{case.place}{error}") from error
        raise


def _document(result: Any, case: Case) -> dict[str, Any]:
    document: dict[str, Any] = result.document()
    if case["explain"] and not isinstance(result, Failed):
        from hpcalc.cli.explain import explanation

        told = explanation(result, document, case)
        if told is not None:
            document["explain"] = told
    return {"name": case.name, **document} if case.name is not None else document


# -- what is written --------------------------------------------------------------------------------------------------


def _write(first: Case, documents: list[dict[str, Any]], listed: bool, cases: Sequence[Case]) -> None:
    whole = {"cases": documents} if listed else documents[0]
    fmt, output = _format(first), first["output"]
    echo = frozenset(_floats([case.values for case in cases]))
    quiet = bool(first["quiet"])
    if output in (None, "-"):
        encoding, width = stdout_encoding(), terminal_width()
        text = render(whole, fmt, echo=echo, encoding=encoding, width=width, colour=wants_colour(), quiet=quiet)
    else:
        text = render(whole, fmt, echo=echo, quiet=quiet)
    if output in (None, "-"):
        write_stdout(text)
    else:
        write_file(output, text)


def _floats(value: Any) -> Iterator[float]:
    """Every float a user typed, to be echoed as typed."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _floats(item)
    elif isinstance(value, Case):
        yield from _floats(value.values)
    elif isinstance(value, Mapping):
        yield from _floats(list(value.values()))


def _side_files(case: Case, result: Any) -> None:
    path = _path(case, "profile_out")
    if path is not None:
        write_file(path, points_text(path, "profile", result.profile()))
    path = _path(case, "rdp_out")
    if path is not None:
        write_file(path, points_text(path, "rdp", result.rdp_export()))
    path = _path(case, "plot")
    if path not in (None, "-"):
        _plot(result, str(path))


def _plot(result: Any, path: str) -> str:
    from hpcalc.output.plots import plot_result

    return plot_result(result, path, width=terminal_width(), encoding=stdout_encoding()) or ""


# -- what is said -----------------------------------------------------------------------------------------------------


def _tell(case: Case, result: Any, document: Mapping[str, Any]) -> None:
    """Warnings, and why a case did not pass, on stderr; in a workflow of GitHub also beside the line it is about."""
    for warning in document.get("warnings") or ():
        complain(f"hpcalc: warning: {case.name + ': ' if case.name else ''}{warning}")
    if result.exit_code == ExitCode.NO_FINITE_BOUND:
        text = str(document.get("reason"))
        if isinstance(result, Failed):
            text = "\n".join(" ".join(line.split()) for line in str(result.error).splitlines())
        else:
            text = f"no finite answer: {text}"
    elif result.exit_code == ExitCode.OVER_BUDGET:
        from hpcalc.logspace import Upper
        from hpcalc.output.digits import fixed

        epsilon, limit = fixed(Upper(document["epsilon"])), shown(document["max_epsilon"])
        text = f"epsilon {epsilon} is over max-epsilon {limit}"
        # no plan is known to divide a budget between cases
        text += ": a case must cost less" if case.beside.get("total") else f": try {_way_out(case, limit)}"
    else:
        return
    complain(f"hpcalc: {case.place}{text}")
    _annotate(f"{case.place}{text}", case)


def _way_out(case: Case, limit: str) -> str:
    """The command that finds a search within the limit."""
    from hpcalc.catalog import LAWS
    from hpcalc.cli.commands import command

    leave = {"max_epsilon", "mean"}
    row = LAWS.get(case["dist"])
    scales = row.scales if row is not None else ()
    leave |= set(scales) if scales else {"dist", "k", "pmf"}
    told = case.spec is not None and case.source("max_epsilon") != COMMAND_LINE
    more = () if told else ("--target-epsilon", limit)
    return case.written("plan", command("plan").options, *more, leave=leave)


def _annotate(text: str, case: Case | None = None) -> None:
    """An error as GitHub shows it beside a line of the spec file."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    place = ""
    if case is not None and case.spec is not None:
        line = case.given["max_epsilon"].line if "max_epsilon" in case.given else None
        file = case.spec.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
        place = f" file={file},line={line or case.line}"
    elif case is None:
        file, _, rest = text.partition(":")
        line_text = rest.partition(":")[0]
        place = f" file={file},line={line_text}" if line_text.isdigit() else ""
    message = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    complain(f"::error{place}::{message}")
