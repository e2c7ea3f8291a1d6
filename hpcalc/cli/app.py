"""The ``hpcalc`` group and the one place where every failure becomes a line on stderr and an exit code."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from hpcalc import __version__
from hpcalc.cli.command import Command, Group, flag, show
from hpcalc.errors import ExitCode, HpcalcError
from hpcalc.output.streams import complain, discard, help_width

__all__ = ["CLOSED_PIPE", "INTERNAL_ERROR", "cli", "run"]

CLOSED_PIPE = 141  # 128 + SIGPIPE, as the shell reports tools that die of it
INTERNAL_ERROR = 70  # EX_SOFTWARE: a bug, never to be taken for the gate's 1 or for the user's mistake

_SUMMARIES = {
    "bound": "Privacy cost of a whole hyperparameter search, beside one run's.",
    "convert": "From one kind of guarantee to another.",
    "utility": "What a random number of runs is worth, and how long it takes.",
    "compare": "Laws of the number of runs side by side.",
    "plan": "Solve for the law, or the noise, that meets a privacy target.",
    "draw": "Draw the number of runs for one search.",
}


def _schema(ctx: click.Context) -> str:
    from hpcalc.files import shipped

    return shipped("schema.json").rstrip("\n")


def _load(name: str) -> Command:
    from hpcalc.cli.commands import command

    return command(name)


cli = Group(
    _SUMMARIES,
    _load,
    params=[
        flag("--version", "-V", told=show(lambda ctx: f"hpcalc {__version__}"), help="Show the version and exit."),
        flag("--schema", told=show(_schema), help="Show the JSON schema of every answer and exit."),
    ],
    help="Differential-privacy cost of running a randomized algorithm a random number of times and releasing only the "
    "best run, after Papernot and Steinke (ICLR 2022), with refined bounds and lower bounds beside them.",
    epilog="Exit codes: 0 done, 1 over --max-epsilon, 2 wrong input, 3 no finite bound or target out of reach, "
    "4 a file or stream failed. 'hpcalc COMMAND --help' tells the rest.",
)


def run(argv: Sequence[str]) -> int:
    """Parse, answer, and turn whatever happens into an exit code."""
    try:
        instruction = os.environ.get("_HPCALC_COMPLETE")
        if instruction:
            from click.shell_completion import shell_complete

            from hpcalc.cli.completion import register

            register()
            return int(shell_complete(cli, {}, "hpcalc", "_HPCALC_COMPLETE", instruction))
        with cli.make_context("hpcalc", list(argv), terminal_width=help_width()) as ctx:
            command, words = cli.invoke(ctx)
            from hpcalc.cli.run import execute

            return execute(command, words)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        discard(1)
        return CLOSED_PIPE
    except Exception as error:
        if os.environ.get("HPCALC_DEBUG"):
            raise
        message, code = _told(error)
        complain(message)
        return code


def _told(error: Exception) -> tuple[str, int]:
    """What to print about an error, and its exit code."""
    if isinstance(error, HpcalcError):
        return f"hpcalc: {error}", error.exit_code
    if isinstance(error, click.UsageError):
        return _usage(error), ExitCode.WRONG_INPUT
    if isinstance(error, click.ClickException):
        return f"hpcalc: {_one_line(error.format_message())}", ExitCode.WRONG_INPUT
    if isinstance(error, OSError):
        discard(1)
        place = f"{error.filename}: " if error.filename else ""
        return f"hpcalc: {place}{error.strerror or error}", ExitCode.FILE_ERROR
    if isinstance(error, MemoryError):
        return "hpcalc: out of memory: the question is too large for this machine", INTERNAL_ERROR
    kind = type(error).__name__
    return (
        f"hpcalc: internal error: {kind}: {_one_line(str(error))}\nPlease report it; HPCALC_DEBUG=1 shows where.",
        INTERNAL_ERROR,
    )


def _usage(error: click.UsageError) -> str:
    """A usage error in two lines: what is wrong, and where help is."""
    command = error.ctx.command if error.ctx is not None else cli
    text = _one_line(error.format_message())
    if isinstance(error, click.NoSuchOption):
        text = f"no option {_one_line(error.option_name)}"
        from hpcalc.cli.types import HINTS

        hint = HINTS.get(error.option_name.lstrip("-").lower())
        if hint:
            text += f": {hint}"
        elif error.possibilities:
            text += f": did you mean {error.possibilities[0]}?"
    elif isinstance(error, click.BadOptionUsage) and isinstance(command, Command):
        for option in command.options.values():
            if error.option_name in option.opts and not option.is_flag:
                count = "a value" if option.nargs == 1 else f"{option.nargs} values"
                text = f"{error.option_name}: needs {count}: {option.metavar}"
    path = error.ctx.command_path if error.ctx is not None else "hpcalc"
    return f"hpcalc: {text}\nTry '{path} --help'."


def _one_line(text: str) -> str:
    return " ".join(text.split()) if text.isprintable() else ascii(text)[1:-1]
