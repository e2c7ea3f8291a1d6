"""The Click classes of an option and of a command.

Click parses words into options and writes the help; what the words mean is decided in :mod:`hpcalc.cli.case`, by the
same code for the command line, for spec files and for the environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple, NoReturn

import click

from hpcalc.catalog import LAWS, PARAMETERS
from hpcalc.errors import InvalidInput
from hpcalc.output.streams import write_stdout


class Option(click.Option):
    """An option: several words in ``metavar`` are several values, none is a flag.

    Click is told that every option may be given more than once, so that both values of one given twice can be named
    (``many`` says which really may), and no ``default``: it must not hide a value from elsewhere. ``words`` are offered
    by TAB; a spec file may hold the option where it is ``in_spec``, and nothing else may where it is ``spec_only``.
    """

    group = "Help"  # its heading in --help
    spec_only = False

    def __init__(
        self, key: str, metavar: str, kind: Any, help: str, *,
        words: tuple[str, ...] = (), many: bool = False, default: str = "", in_spec: bool = True, short: str = "",
    ) -> None:  # fmt: skip
        value: dict[str, Any] = {"nargs": len(metavar.split()), "multiple": True} if metavar else {"is_flag": True}
        if metavar:  # which Click's types are for: words to offer, and file names as the shell knows them
            value["type"] = click.Path() if metavar == "FILE" else click.Choice(words) if words else click.STRING
        self.flag = f"--{key.replace('_', '-')}"
        super().__init__([self.flag, *short.split()], metavar=metavar or None, help=help, **value)
        self.key, self.kind, self.words, self.many, self.in_spec = key, kind, words, many, in_spec
        self.told_default = default
        self.fallback = self.read(default) if default else None if metavar else False

    def values(self, entry: Any) -> tuple[str, ...]:
        """The texts of one occurrence; where several are needed, one text may hold them, with blanks or commas."""
        if isinstance(entry, tuple) or self.nargs == 1:
            return entry if isinstance(entry, tuple) else (entry,)
        return tuple(entry.split(",") if entry.count(",") == self.nargs - 1 else entry.split())

    def read(self, entry: Any) -> Any:
        """The value of one occurrence, of a text or several; True and what a spec file holds are values already."""
        if not isinstance(entry, (str, tuple)):
            return entry
        texts = self.values(entry)
        if len(texts) != self.nargs:
            raise InvalidInput(self.key, entry, f"give exactly {self.nargs} values: {self.metavar}")
        read = tuple(self.kind(text, self) for text in texts)
        return read if self.nargs > 1 else read[0]


SUMMARIES = {
    "bound": "Privacy cost of a whole hyperparameter search, beside one run's.",
    "convert": "From one kind of guarantee to another.",
    "utility": "What a random number of runs is worth, and how long it takes.",
    "compare": "Laws of the number of runs side by side.",
    "plan": "Solve for the law, or the noise, that meets a privacy target.",
    "draw": "Draw the number of runs for one search.",
}
COMMAND_LINE, SPEC, ENVIRONMENT = range(3)

# Headings of --help, and what stands below them: what an option may be repeated for, and every law in full.
SGD, RUNS = "DP-SGD, one training run", "The number of runs K"
NOTES: dict[str, Any] = {
    SGD: "Guarantees may be given more than once; all of them happen in one run, so they compose.",
    RUNS: [(" ".join([name, *(f"--{key} {PARAMETERS[key].metavar}" for key in row.parameters)]), f"{row.title}.")
           for name, row in LAWS.items()],
}  # fmt: skip


class Given(NamedTuple):
    """An option as it was given in one place."""

    texts: tuple[Any, ...]  # one for every time: a text, several, True for a flag, what a spec holds (Case, Node)
    label: str  # how an error names it: --zcdp, HPCALC_BOUND_ZCDP= or privacy.yaml:3: zcdp:
    source: int = COMMAND_LINE
    line: int | None = None


# kept out of the environment: a stray HPCALC_HELP must not silence an answer
HELP = Option("help", "", None, "Show this message and exit.", in_spec=False, short="-h")


def tell(ctx: click.Context, text: str) -> NoReturn:
    """Print something and end."""
    write_stdout(text.rstrip("\n") + "\n")
    ctx.exit()


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Options under the headings of their purpose, in the order of their declaration."""
    shown = [param for param in command.params if isinstance(param, Option) and not param.hidden]
    for heading, options in groupby(shown, lambda option: option.group):
        with formatter.section(heading):
            note = NOTES.get(heading)
            if isinstance(note, str):
                formatter.write_text(note)
                formatter.write_text("")
            rows = [
                (f"{', '.join(option.opts)} {option.metavar or ''}".rstrip(),
                 f"{option.help}" + (f" [default: {option.told_default}]" if option.told_default else ""))
                for option in options
            ]  # fmt: skip
            formatter.write_dl(rows, col_max=26)
            if isinstance(note, list):
                formatter.write_text("")
                formatter.write_dl(note, col_max=26)


class Command(click.Command):
    """One of the six questions, with grouped help; :mod:`hpcalc.cli.answers` has the function of its name."""

    format_options = write_options

    def __init__(self, name: str, options: Sequence[Option], help: str, examples: Sequence[str]) -> None:
        self.options, self.examples = {option.key: option for option in [*options, HELP]}, examples
        typed: list[click.Parameter] = [option for option in self.options.values() if not option.spec_only]
        super().__init__(name, params=typed, help=help, short_help=SUMMARIES[name], add_help_option=False)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words apart; what they mean is for :class:`~hpcalc.cli.case.Case`."""
        with click.core.augment_usage_errors(ctx):  # the parser leaves the context out of some
            found, rest, _ = self.make_parser(ctx).parse_args(self._split(args))
        # lists of raw texts, True for a flag; Click before 8.3 leaves None where there is nothing
        ctx.obj = {
            key: Given((True,) if value is True else tuple(value), self.options[key].flag)
            for key, value in found.items() if value is True or isinstance(value, list)
        }  # fmt: skip
        if ctx.resilient_parsing:  # so that TAB offers again only what may be given again
            for key in ctx.obj:
                self.options[key].multiple = self.options[key].many
                ctx.set_parameter_source(key, click.core.ParameterSource.COMMANDLINE)
            return []
        if "help" in ctx.obj:
            tell(ctx, ctx.get_help())
        if rest:
            raise click.UsageError(f"unexpected argument {rest[0]}: every value follows its option, as in --mu 10", ctx)
        return []

    def _split(self, args: Sequence[str]) -> list[str]:
        """The words, with ``--approx-dp 2,1e-5`` taken for the two values that are meant."""
        several = {option.flag: option.nargs for option in self.options.values() if option.nargs > 1}
        out: list[str] = []
        for word in args:
            flag, equals, joined = word.partition("=")
            if not equals:
                flag, joined = out[-1] if out else "", word
            if joined.count(",") == several.get(flag, 0) - 1:
                out += [flag, *joined.split(",")] if equals else joined.split(",")
            else:
                out.append(word)
        return out

    def invoke(self, ctx: click.Context) -> tuple[Command, dict[str, Given]]:
        """What is asked, for whoever answers it: this command and what was typed."""
        return self, ctx.obj

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            # not wrapped: they must survive being copied
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
        formatter.write_paragraph()
        formatter.write_text(
            f"Every option has an environment variable, HPCALC_{str(self.name).upper()}_OPTION (and HPCALC_FORMAT, "
            "HPCALC_DELTA for every command); the command line wins over a spec file, the spec file over the "
            "environment."
        )
