"""The Click classes: an option with a purpose, a command with grouped help, and the group that loads one command.

Click parses words into options and writes the help; what the words mean is decided in :mod:`hpcalc.cli.case`, by the
same code for the command line, for spec files and for the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import click

__all__ = ["Command", "Group", "Option", "flag", "show", "write_options"]


class Option(click.Option):
    """A Click option with a heading in ``--help`` (``group``) and a place in spec files (``in_spec``, ``spec_only``).

    Click is told that every option may be given more than once, so that both values of one given twice can be named;
    ``many`` says which really may.
    """

    def __init__(self, *decls: str, group: str, many: bool = False, in_spec: bool = True, **attributes: Any) -> None:
        super().__init__(decls, multiple=not attributes.get("is_flag"), **attributes)
        self.group = group
        self.many = many
        self.in_spec = in_spec
        self.fallback: Any = None  # the default, which Click is not told: it must not hide a value from elsewhere
        self.spec_only = False

    @property
    def flag(self) -> str:
        """The option as it is typed, ``--max-epsilon``."""
        return max(self.opts, key=len)

    @property
    def key(self) -> str:
        """The option's name in Python, in spec files and in errors, ``max_epsilon``."""
        assert self.name is not None
        return self.name

    @property
    def variable(self) -> str | None:
        """The environment variable that speaks for the option, if one is set."""
        return next((name for name in self.envvar or () if os.environ.get(name)), None)

    @property
    def told_default(self) -> str:
        """The default as help shows it; nothing where there is none."""
        value = "" if self.fallback is None else self.fallback
        return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)

    def read(self, text: str) -> Any:
        """One value, out of its text."""
        return self.type.read(text, self.key)  # type: ignore[attr-defined]  # every type here has it


def show(text: Callable[[click.Context], str]) -> Callable[[click.Context, click.Parameter, bool], None]:
    """The callback of a flag of ``hpcalc`` itself that prints something and ends."""

    def callback(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            from hpcalc.output.streams import write_stdout

            write_stdout(text(ctx) + "\n")
            ctx.exit()

    return callback


def help_option() -> Option:
    """``--help``, kept out of the environment: a stray HPCALC_HELP must not silence an answer."""
    told = show(lambda ctx: ctx.get_help())
    return flag("--help", "-h", told=told, help="Show this message and exit.")


def flag(*decls: str, told: Callable[[click.Context, click.Parameter, bool], None], help: str) -> Option:
    """A flag that prints something and ends."""
    return Option(
        *decls, is_flag=True, is_eager=True, expose_value=False, callback=told, group="Help", in_spec=False, help=help
    )


def write_options(params: Sequence[click.Parameter], formatter: click.HelpFormatter, notes: dict[str, Any]) -> None:
    """Options under the headings of their purpose, in the order of their declaration; ``notes`` go below a heading."""
    shown = [param for param in params if isinstance(param, Option) and not param.hidden]
    for group in dict.fromkeys(option.group for option in shown):
        with formatter.section(group):
            note = notes.get(group)
            if isinstance(note, str):
                formatter.write_text(note)
                formatter.write_text("")
            rows = [(_head(one), _told(one)) for one in shown if one.group == group]
            formatter.write_dl(rows, col_max=26)
            if isinstance(note, list):
                formatter.write_text("")
                formatter.write_dl(note, col_max=26)


def _head(option: Option) -> str:
    names = ", ".join(sorted(option.opts, key=len, reverse=True))
    return f"{names} {option.metavar}" if option.metavar else names


def _told(option: Option) -> str:
    default = f" [default: {option.told_default}]" if option.told_default else ""
    return f"{option.help}{default}"


class Command(click.Command):
    """One of the six questions: ``answer`` makes a result (``document()``, ``exit_code``) of a case."""

    def __init__(
        self,
        name: str,
        answer: Callable[[Any], Any],
        params: Sequence[Option],
        help: str,
        examples: tuple[str, ...],
        notes: dict[str, Any],
    ) -> None:
        typed: list[click.Parameter] = [param for param in params if not param.spec_only]
        super().__init__(name, params=[*typed, help_option()], help=help, add_help_option=False)
        self.answer = answer
        self.examples = examples
        self.notes = notes
        self.options: dict[str, Option] = {option.key: option for option in [*params, help_option()]}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words apart; what they mean is for :class:`~hpcalc.cli.case.Case`."""
        try:
            found, rest, _ = self.make_parser(ctx).parse_args(self._split(args))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # Click's parser leaves it out of some errors
            raise
        # lists of raw texts, True for a flag; Click before 8.3 leaves None where there is nothing
        ctx.obj = {key: value for key, value in found.items() if isinstance(value, list) or value is True}
        if ctx.resilient_parsing:
            return []
        if "help" in ctx.obj:
            from hpcalc.output.streams import write_stdout

            write_stdout(ctx.get_help() + "\n")
            ctx.exit()
        if rest:
            raise click.UsageError(f"unexpected argument {rest[0]}: every value follows its option, as in --mu 10", ctx)
        return []

    def _split(self, args: Sequence[str]) -> list[str]:
        """The words, with ``--approx-dp 2,1e-5`` taken for the two values that are meant."""
        several = {param.flag: param.nargs for param in self.options.values() if param.nargs > 1}
        out: list[str] = []
        wanted = 0
        for word in args:
            name, equals, value = word.partition("=")
            if equals and name in several and value.count(",") == several[name] - 1:
                out += [name, *value.split(",")]
                wanted = 0
                continue
            out += word.split(",") if wanted and word.count(",") == wanted - 1 else [word]
            wanted = several.get(word, 0)
        return out

    def invoke(self, ctx: click.Context) -> tuple[Command, dict[str, Any]]:
        """What is asked, for whoever answers it: this command and its words."""
        return self, ctx.obj

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options under the headings of their purpose."""
        write_options(self.params, formatter, self.notes)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples and where the rest is told."""
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            # not wrapped: they must survive being copied
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
        formatter.write_paragraph()
        name = (self.name or "").upper()
        formatter.write_text(
            f"Every option has an environment variable, HPCALC_{name}_OPTION (and HPCALC_FORMAT, HPCALC_DELTA for "
            f"every command); the command line wins over a spec file, the spec file over the environment."
        )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Options that may still be given, once a dash is typed."""
        from click.shell_completion import CompletionItem

        given = ctx.obj or {}
        return [
            CompletionItem(name, help=option.help)
            for option in self.options.values()
            if not option.hidden and not option.spec_only and (option.many or option.key not in given)
            for name in sorted(option.opts, key=len, reverse=True)
            if incomplete.startswith("-") and name.startswith(incomplete)
        ]


class Group(click.Group):
    """``hpcalc`` itself: knows the names and summaries of its commands, and loads one when it is asked for."""

    def __init__(
        self,
        summaries: dict[str, str],
        load: Callable[[str], Command],
        params: list[click.Parameter],
        help: str,
        epilog: str,
    ) -> None:
        super().__init__("hpcalc", params=[*params, help_option()], help=help, epilog=epilog, add_help_option=False)
        self.no_args_is_help = False
        self.summaries = summaries
        self.load = load

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order a user meets them."""
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        """One of the six commands."""
        return self.load(cmd_name) if cmd_name in self.summaries else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As Click does it, with the nearest name in the error; ``help COMMAND`` is ``COMMAND --help``."""
        name = str(args[0])
        if name == "help" and not ctx.resilient_parsing:
            if len(args) < 2:
                from hpcalc.output.streams import write_stdout

                write_stdout(ctx.get_help() + "\n")
                ctx.exit()
            name, args = args[1], [*args[1:2], "--help"]
        if name not in self.summaries and not ctx.resilient_parsing:
            from hpcalc.files import nearest

            near = nearest(name, tuple(self.summaries))
            hint = f"did you mean {near}?" if near else f"choose {', '.join(self.summaries)}"
            raise click.UsageError(f"no command {name}: {hint}", ctx)
        return name, self.get_command(ctx, name), args[1:]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first: that is what one looks for."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))
        write_options(self.params, formatter, {})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click does it, with the commands named when none is given."""
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(f"no command: choose {', '.join(self.summaries)}", ctx)
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Command names come from the summaries, without loading a command."""
        from click.shell_completion import CompletionItem

        items = [
            CompletionItem(name, help=text)
            for name, text in {**self.summaries, "help": "Show the help of a command."}.items()
            if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]
