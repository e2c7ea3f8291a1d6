"""The class of every option; apart from the declarations, which ``hpcalc --help`` need not load."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from hpcalc.errors import InvalidInput

__all__ = ["GROUPS", "Option"]

GROUPS = (
    "One run of the base algorithm",
    "DP-SGD as the base",
    "The number of runs K",
    "Question",
    "Utility",
    "Accounting",
    "Output",
    "Spec files",
    "Help",
)


class Option(click.Option):
    """A Click option with a purpose (``group``) and a place in spec files.

    Attributes
    ----------
    group : str
        Heading in ``--help`` and in the man page, one of :data:`GROUPS`.
    in_spec : bool
        Whether a spec file may hold it.
    """

    def __init__(self, *decls: str, group: str, in_spec: bool = True, **attributes: Any) -> None:
        super().__init__(decls, **attributes)
        self.group = group
        self.in_spec = in_spec

    @property
    def flag(self) -> str:
        """The option as it is typed, ``--max-epsilon``."""
        return max(self.opts, key=len)

    @property
    def key(self) -> str:
        """The option's name in Python, in spec files and in errors, ``max_epsilon``."""
        assert self.name is not None
        return self.name

    def label(self, ctx: click.Context) -> str:
        """How an error names the option: as it is typed, or the environment variable that set it."""
        source = ctx.get_parameter_source(self.key)
        # Click has recorded no source yet when the variable itself does not have the right shape
        if source is ParameterSource.ENVIRONMENT or (source is None and self.variable):
            return f"{self.variable}="
        return self.flag

    @property
    def variable(self) -> str | None:
        """The environment variable that speaks for the option, if one is set."""
        return next((name for name in self.envvar or () if os.environ.get(name)), None)

    def value_from_envvar(self, ctx: click.Context) -> Any:
        """An environment variable gives an option once, with exactly as many values as the option takes.

        Click drops the values that are left over after the last whole group and splits file names at colons; before
        8.2.2 it takes a flag's variable for true whatever it says.
        """
        text = click.Parameter.resolve_envvar_value(self, ctx)
        if text is None:
            return None
        if self.is_flag:
            return self.read_flag(text) if not ctx.resilient_parsing else False
        value: Any = text
        if self.nargs > 1:
            value = text.split()
            if len(value) != self.nargs and not ctx.resilient_parsing:
                raise InvalidInput(self.key, text, f"give exactly {self.nargs} values: {self.metavar}")
        return [value] if self.multiple else value

    def read_flag(self, text: str) -> bool:
        """A flag in words, where it cannot just be left out."""
        word = text.strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
        raise InvalidInput(self.key, text, "give true or false")

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """As Click does it; an error names where the value came from."""
        try:
            return super().handle_parse_result(ctx, opts, args)
        except InvalidInput as error:
            from hpcalc.cli.settings import Settings

            raise Settings(ctx, {}).located(error) from error
