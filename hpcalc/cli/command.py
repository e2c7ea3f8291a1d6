"""The Click classes: commands with grouped help and one real example, loaded only when they are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from hpcalc.cli.option import GROUPS, Option

if TYPE_CHECKING:
    from hpcalc.cli.settings import Settings

__all__ = ["Command", "Group", "help_option"]


def _show_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from hpcalc.output.streams import write_stdout

        write_stdout(ctx.get_help() + "\n")
        ctx.exit()


def help_option() -> Option:
    """``--help``, kept out of the environment: a stray HPCALC_HELP must not silence an answer."""
    return Option(
        "--help",
        "-h",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_help,
        group="Help",
        in_spec=False,
        help="Show this message and exit.",
    )


def _write_options(params: Sequence[click.Parameter], formatter: click.HelpFormatter) -> None:
    for group in GROUPS:
        rows = []
        for param in params:
            if isinstance(param, Option) and param.group == group and not param.hidden:
                head = ", ".join(sorted(param.opts, key=len, reverse=True))
                rows.append(
                    (f"{head} {param.metavar}" if param.metavar else head, (param.help or "") + _default(param))
                )
        if rows:
            with formatter.section(group):
                if group == GROUPS[0]:
                    # what an option may be repeated for is said once, here
                    formatter.write_text(
                        "Guarantees may be given more than once; all of them happen in one run, so they compose."
                    )
                    formatter.write_text("")
                formatter.write_dl(rows, col_max=26)


def _default(option: Option) -> str:
    """The default at the end of an option's help; flags have none, and Click marks a missing one by an object."""
    value = option.default
    if not option.metavar or isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return f" [default: {value:g}]".replace("e-0", "e-") if isinstance(value, float) else f" [default: {value}]"


class Command(click.Command):
    """One of the six questions.

    Attributes
    ----------
    answer : callable
        From :class:`~hpcalc.cli.settings.Settings` to a result that has ``document()`` and ``exit_code``.
    example : str
        One real command line, shown under ``--help`` and in the man page.
    """

    def __init__(
        self,
        name: str,
        answer: Callable[[Settings], Any],
        params: list[click.Parameter],
        help: str,
        example: str,
    ) -> None:
        super().__init__(name, params=[*params, help_option()], help=help, add_help_option=False)
        self.allow_extra_args = True  # refused below, with a remedy
        self.answer = answer
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click does it; its parser leaves out of some errors which command they belong to."""
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise
        if rest and not ctx.resilient_parsing:
            raise click.UsageError(f"unexpected argument {rest[0]}: every value follows its option, as in --mu 10", ctx)
        return rest

    def invoke(self, ctx: click.Context) -> int:
        """Answer the question the context holds; returns the exit code."""
        from hpcalc.cli.execute import execute

        return execute(ctx, self)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options under the headings of their purpose."""
        _write_options(self.params, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The example and where the rest is told."""
        with formatter.section("Example"):
            # not wrapped: it must survive being copied
            formatter.write(f"{'':>{formatter.current_indent}}{self.example}\n")
        formatter.write_paragraph()
        name = (self.name or "").upper()
        formatter.write_text(
            f"Every option has an environment variable, HPCALC_{name}_OPTION (and HPCALC_FORMAT, HPCALC_DELTA for "
            f"every command); the command line wins over a spec file, the spec file over the environment."
        )


class Group(click.Group):
    """``hpcalc`` itself: knows the names and summaries of its commands, and loads one when it is asked for."""

    def __init__(self, summaries: dict[str, str], params: list[click.Parameter], help: str, epilog: str) -> None:
        super().__init__("hpcalc", params=[*params, help_option()], help=help, epilog=epilog, add_help_option=False)
        self.no_args_is_help = False
        self.summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order a user meets them."""
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        """Import the module of one command."""
        if cmd_name not in self.summaries:
            return None
        from importlib import import_module

        command = import_module(f"hpcalc.cli.{cmd_name}").command
        assert isinstance(command, Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As Click does it, with the nearest name in the error."""
        name = str(args[0])
        if name not in self.summaries and not ctx.resilient_parsing:
            from hpcalc.cli.types import nearest

            near = nearest(name, tuple(self.summaries))
            hint = f"did you mean {near}?" if near else f"choose {', '.join(self.summaries)}"
            raise click.UsageError(f"no command {name}: {hint}", ctx)
        return name, self.get_command(ctx, name), args[1:]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first: that is what one looks for."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))
        _write_options(self.params, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click does it, with the commands named when none is given."""
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(f"no command: choose {', '.join(self.summaries)}", ctx)
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Command names come from the summaries, without loading a command."""
        from click.shell_completion import CompletionItem

        items = [
            CompletionItem(name, help=text) for name, text in self.summaries.items() if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]
