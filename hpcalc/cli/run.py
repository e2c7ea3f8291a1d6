"""From parsed words to output and exit code: the path all six commands share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpcalc.catalog import LAWS
from hpcalc.cli.case import Case, CommandLineError, Layer
from hpcalc.cli.command import COMMAND_LINE, Command
from hpcalc.cli.options import command as named
from hpcalc.cli.spec import cases_of, spec_text
from hpcalc.errors import ExitCode, InvalidInput, NoFiniteBound, TargetOutOfReach
from hpcalc.files import points_text, shown, write_file
from hpcalc.output import render
from hpcalc.output.streams import complain, stdout_encoding, terminal_width, wants_colour, write_stdout


def execute(command: Command, typed: Layer) -> int:
    """Answer every case, write what was asked for, say what must be said on stderr."""
    try:
        given, several = cases_of(command, typed)
        cases = [case for case in given if case["case"] in (None, case.name)]  # others are parts of a total
        listed = several and cases[0]["case"] is None
        _check(command, cases)
        _check_files(given, cases)
        from hpcalc.cli import answers  # all of the numeric core

        results = {case: _answer(command, case) for case in given if not case["total"]}
        others = list(results.items())  # of which a total is that, wherever it stands
        answered = [(case, results[case] if case in results else _answer(command, case, others)) for case in cases]
    except CommandLineError as error:
        _annotate(str(error), *str(error).split(":")[:2])
        raise
    documents, charts = list[dict[str, Any]](), list[str | None]()
    for case, result in answered:
        document = result.document()
        if result.failure is None:
            document |= answers.explanation(result, document, case) if case["explain"] else {}
            # files beside the answer come first: if one of them fails, stdout stays empty
            for key, name, points in (("profile_out", "profile", "profile"), ("rdp_out", "rdp", "rdp_export")):
                if path := _path(case, key):
                    write_file(path, points_text(path, name, getattr(result, points)()))
            if path := _path(case, "plot"):
                charts.append(result.plot(path))
        documents.append({"name": case.name, **document} if case.name is not None else document)
    if cases[0]["save_spec"] is not None:
        write_file(cases[0]["save_spec"], spec_text(given, several))
    _write(cases, {"cases": documents} if listed else documents[0])
    for chart in filter(None, charts):
        write_stdout(f"\n{chart}")
    for (case, result), document in zip(answered, documents, strict=True):
        _tell(case, result, document)
    return max(int(result.exit_code) for _, result in answered)  # 3 no finite bound, 1 over budget, 0


def _check(command: Command, cases: Sequence[Case]) -> None:
    """What is wrong with where the answer goes, or with the list of cases."""
    first = cases[0]
    if len(cases) > 1 and command.name not in ("bound", "convert"):
        names = ", ".join(str(case.name) for case in cases)
        raise CommandLineError(f"{first.spec}: holds {len(cases)} cases: choose one with --case: {names}")
    fmt = first.format
    first.require(
        ("quiet", not first["quiet"] or fmt == "table",
         f"shows the headline alone, which --format {fmt} has not: leave one of them out"),
        ("quiet", not (first["quiet"] and first["explain"]), "leaves out what --explain asks for: keep one of them"),
        ("save_spec", first["save_spec"] != "-", "standard output is for the answer: give a file name"),
    )  # fmt: skip
    for case in cases:
        plot = case["plot"]
        case.require(
            ("plot", plot != "-" or fmt == "table", f"a chart in the terminal goes with --format table, not {fmt}"),
            ("plot", plot in (None, "-") or plot.lower().endswith((".svg", ".png", ".pdf")),
             "give a file name that ends in .svg, .png or .pdf, or - for the terminal"),
        )  # fmt: skip
        if case["require_max_epsilon"] and case["max_epsilon"] is None:
            raise CommandLineError(
                f"{case.place}max-epsilon is missing, and --require-max-epsilon is set: give a limit"
            )


_OF_ALL, _OF_ONE = ("output", "save_spec"), ("profile_out", "rdp_out", "plot")  # files that are written


def _check_files(given: Sequence[Case], cases: Sequence[Case]) -> None:
    """Refuse a file that would take the place of another one, or of what is read."""
    taken = {os.path.realpath(path): (key, f"{label} reads", "") for case in given for key, label, path in _read(case)}
    for case in cases:
        for key in (*_OF_ALL, *_OF_ONE) if case is cases[0] else _OF_ONE:
            path = _path(case, key)
            place = os.path.realpath(path or "-")
            if path in (None, "-") or (os.path.exists(path) and not os.path.isfile(path)):
                continue
            before, does, name = taken.get(place, ("", "", ""))
            told = f"{does} it too: give another file name"
            if before == key:
                told = f"the case {name} would overwrite it: put {{name}} in the file's name"
            case.require((key, not before or (before, key) == ("spec", "save_spec"), told))
            taken[place] = key, f"{case.label(key).rstrip(':=')} writes", str(case.name)


def _read(case: Case) -> Iterator[tuple[str, str, str]]:
    """Every file that a case may read: its option, how an error names that, and the path."""
    for key, value in case.values.items():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Case):
                yield from _read(one)
            elif isinstance(one, str) and key not in (*_OF_ALL, *_OF_ONE):
                named = case.options[key].metavar == "FILE"
                words = (one,) if named else re.split("[=,]", one) if key in ("then", "law") else ()
                yield from ((key, case.label(key).rstrip(":="), word) for word in words)


def _path(case: Case, key: str) -> Any:
    """A file that is written: ``{name}`` in one of each case stands for the case's name."""
    name = (case.name or "").replace("/", "-").replace("\\", "-")
    return case[key] and (case[key] if key in _OF_ALL else case[key].replace("{name}", name))


def _answer(command: Command, case: Case, others: Sequence[tuple[Case, Any]] | None = None) -> Any:
    """A result; what is wrong with the input is told in the words of the command line."""
    from hpcalc.cli import answers

    try:
        return getattr(answers, str(command.name))(case) if others is None else answers.total(case, others)
    except (NoFiniteBound, TargetOutOfReach) as error:
        told: dict[str, Any] = {"epsilon": None, "reason": " ".join(str(error).split())}
        told |= {"reachable": error.reachable} if isinstance(error, TargetOutOfReach) and error.reachable else {}
        return answers.Plain(str(command.name), told, error)
    except InvalidInput as error:
        raise case.located(error) from error
    except CommandLineError as error:
        if case.spec is not None and not str(error).startswith(case.spec):
            raise CommandLineError(f"{case.place}{error}") from error
        raise


def _write(cases: Sequence[Case], document: Mapping[str, Any]) -> None:
    output, stream = cases[0]["output"], dict[str, Any]()
    if output in (None, "-"):
        stream = {"encoding": stdout_encoding(), "width": terminal_width(), "colour": wants_colour()}
    echo = frozenset(_floats([case.values for case in cases]))
    text = render(document, cases[0].format, echo=echo, quiet=cases[0]["quiet"], **stream)
    write_stdout(text) if stream else write_file(output, text)


def _floats(value: Any) -> Iterator[float]:
    """Every float a user typed, to be echoed as typed."""
    if isinstance(value, float):
        yield value
    inner = value.values if isinstance(value, Case) else value
    for item in inner.values() if isinstance(inner, dict) else inner if isinstance(inner, (list, tuple)) else ():
        yield from _floats(item)


def _tell(case: Case, result: Any, document: Mapping[str, Any]) -> None:
    """Warnings, and why a case did not pass, on stderr; in a workflow of GitHub also beside the line it is about."""
    for warning in document.get("warnings") or ():
        complain(f"hpcalc: warning: {case.name + ': ' if case.name else ''}{warning}")
    if result.failure is not None:
        text = "\n".join(" ".join(line.split()) for line in str(result.failure).splitlines())
    elif result.exit_code == ExitCode.NO_FINITE_BOUND:
        text = f"no finite answer: {document.get('reason')}"
    elif result.exit_code == ExitCode.OVER_BUDGET:
        from hpcalc.logspace import Upper
        from hpcalc.output.digits import fixed

        epsilon, limit = fixed(Upper(document["epsilon"])), shown(document["max_epsilon"])
        # the command that finds a search within the limit; no plan is known to divide a budget between cases
        scales = LAWS[case["dist"]].scales if case["dist"] in LAWS else ()
        told = case.spec is not None and case.source("max_epsilon") != COMMAND_LINE
        more = () if told else ("--target-epsilon", limit)
        leave = {"max_epsilon", "mean", *(scales or ("dist", "k", "pmf"))}
        plan = case.written("plan", named("plan").options, *more, leave=leave)
        way_out = "a case must cost less" if case["total"] else f"try {plan}"
        text = f"epsilon {epsilon} is over max-epsilon {limit}: {way_out}"
    else:
        return
    complain(f"hpcalc: {case.place}{text}")
    limited = case.given.get("max_epsilon")
    line = (limited and limited.line) or case.line
    _annotate(f"{case.place}{text}", *((case.spec, str(line)) if case.spec is not None else ()))


def _annotate(text: str, file: str = "", line: str = "") -> None:
    """An error as GitHub shows it beside a line of the spec file."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        codes: dict[str, Any] = {"%": "%25", "\r": "%0D", "\n": "%0A"}
        name = file.translate(str.maketrans({**codes, ":": "%3A", ",": "%2C"}))
        place = f" file={name},line={line}" if line.isdigit() else ""
        complain(f"::error{place}::{text.translate(str.maketrans(codes))}")
