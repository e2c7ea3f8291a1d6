"""The ``hpcalc`` program and the one place where every failure becomes a line on stderr and an exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import click

from hpcalc import __version__
from hpcalc.cli.command import HELP, SUMMARIES, Command, Option, tell, write_options
from hpcalc.errors import ExitCode, HpcalcError
from hpcalc.files import did_you_mean, shipped, shown
from hpcalc.output.streams import complain, discard, terminal_width, write_stdout

CLOSED_PIPE = 141  # 128 + SIGPIPE, as the shell reports tools that die of it
INTERNAL_ERROR = 70  # EX_SOFTWARE: a bug, never to be taken for the gate's 1 or for the user's mistake


class Program(click.Group):
    """``hpcalc`` itself: knows the names and summaries of its commands, and loads one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        if cmd_name in SUMMARIES:
            from hpcalc.cli.options import command

            return command(cmd_name)
        if ctx.resilient_parsing:
            return None
        hint = did_you_mean(cmd_name, SUMMARIES).strip() or f"choose {', '.join(SUMMARIES)}"
        raise click.UsageError(f"no command {cmd_name}: {hint}", ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click does it, with the commands named where none is; ``help COMMAND`` is ``COMMAND --help``."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        if not args:
            raise click.UsageError(f"no command: choose {', '.join(SUMMARIES)}", ctx)
        rest = super().parse_args(ctx, [*args[1:2], "--help"] if args[0] == "help" else args)
        texts: dict[str, Callable[[], str]] = {"help": ctx.get_help, "version": lambda: f"hpcalc {__version__}"}
        texts["schema"] = lambda: shipped("schema.json")
        for key, text in texts.items():
            if ctx.params[key]:
                tell(ctx, text())
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first: that is what one looks for."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))
        write_options(self, ctx, formatter)


cli = Program(
    "hpcalc",
    params=[
        Option("version", "", None, "Show the version and exit.", short="-V"),
        Option("schema", "", None, "Show the JSON schema of every answer and exit."),
        HELP,
    ],
    help="Differential-privacy cost of running a randomized algorithm a random number of times and releasing only the "
    "best run, after Papernot and Steinke (ICLR 2022), with refined bounds and lower bounds beside them.",
    epilog="Exit codes: 0 done, 1 over --max-epsilon, 2 wrong input, 3 no finite bound or target out of reach, "
    "4 a file or stream failed. 'hpcalc COMMAND --help' tells the rest.",
    add_help_option=False,
    no_args_is_help=False,
)


def run(argv: Sequence[str]) -> int:
    """Parse, answer, and turn whatever happens into an exit code."""
    try:
        shell, _, action = os.environ.get("_HPCALC_COMPLETE", "").partition("_")
        if action == "source" and shell in ("bash", "zsh", "fish"):
            # Click's own scripts complain where the program is absent and need bash 4.4
            write_stdout(shipped(f"manual/hpcalc.{shell}"))
            return ExitCode.OK
        if shell:
            from click.shell_completion import shell_complete

            return shell_complete(cli, {}, "hpcalc", "_HPCALC_COMPLETE", f"{shell}_{action}")
        # asking Click for the width would load shutil and four compression modules
        width = max(min(terminal_width() or 80, 80) - 2, 50)
        with cli.make_context("hpcalc", list(argv), terminal_width=width) as ctx:
            command, typed = cli.invoke(ctx)
            from hpcalc.cli.run import execute

            return execute(command, typed)
    except click.exceptions.Exit as stop:
        return stop.exit_code
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
    if isinstance(error, OSError):
        discard(1)
        place = f"{error.filename}: " if error.filename else ""
        return f"hpcalc: {place}{error.strerror or error}", ExitCode.FILE_ERROR
    if isinstance(error, MemoryError):
        return "hpcalc: out of memory: the question is too large for this machine", INTERNAL_ERROR
    text = f"hpcalc: internal error: {type(error).__name__}: {shown(str(error), 4096)}"
    return f"{text}\nPlease report it; HPCALC_DEBUG=1 shows where.", INTERNAL_ERROR


def _usage(error: click.UsageError) -> str:
    """A usage error in two lines: what is wrong, and where help is."""
    command = error.ctx.command if error.ctx is not None else cli
    text = shown(error.format_message(), 4096)
    if isinstance(error, click.NoSuchOption):
        from hpcalc.cli.types import HINTS

        near = f"did you mean {error.possibilities[0]}?" if error.possibilities else ""
        hint = HINTS.get(error.option_name.lstrip("-").lower(), near)
        text = f"no option {shown(error.option_name, 4096)}" + (f": {hint}" if hint else "")
    elif isinstance(error, click.BadOptionUsage):
        for option in command.params:
            if isinstance(option, Option) and error.option_name in option.opts and not option.is_flag:
                count = "a value" if option.nargs == 1 else f"{option.nargs} values"
                text = f"{error.option_name}: needs {count}: {option.metavar}"
    path = error.ctx.command_path if error.ctx is not None else "hpcalc"
    return f"hpcalc: {text}\nTry '{path} --help'."
