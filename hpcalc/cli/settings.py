"""What one question was asked with: a value for every option, and where each came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from hpcalc.cli.option import Option
from hpcalc.errors import HpcalcError, InvalidInput

__all__ = ["CommandLineError", "Settings", "shown"]


class CommandLineError(HpcalcError):
    """An input error whose text already says where the value came from."""


def shown(value: object, longest: int = 80) -> str:
    """A value as the user would have typed it, safe to print on one line and cut where it is very long."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, (tuple, list)):
        return " ".join(shown(part) for part in value)
    text = str(value)
    if not text.isprintable():
        text = ascii(text)[1:-1]
    return text if len(text) <= longest else text[: longest - 3] + "..."


@dataclass(frozen=True)
class Settings:
    """The options of one question.

    Attributes
    ----------
    ctx : click.Context
        Parsed command line.
    values : mapping
        Option key to value; what was not given holds its default or None.
    lines : mapping
        Line in the spec file for every key that comes from there.
    spec : str or None
        Name of the spec file.
    name : str or None
        Name of the case.
    """

    ctx: click.Context
    values: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict)
    spec: str | None = None
    name: str | None = None

    def __getitem__(self, key: str) -> Any:
        return self.values.get(key)

    def given(self, key: str) -> bool:
        """Whether a user asked for this option, here or in the spec file or in the environment."""
        if key in self.lines:
            return True
        source = self.ctx.get_parameter_source(key)
        return source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)

    def stated(self, key: str) -> bool:
        """As :meth:`given`, but a variable of the environment is a wish, not a statement."""
        return key in self.lines or self.ctx.get_parameter_source(key) is ParameterSource.COMMANDLINE

    def option(self, key: str) -> Option | None:
        """The declaration behind a key."""
        for param in self.ctx.command.params:
            if isinstance(param, Option) and param.key == key:
                return param
        return None

    def label(self, key: str) -> str:
        """How an error names the option: as typed, as a variable, or as a place in the spec file."""
        if key in self.lines:
            return f"{self.spec}:{self.lines[key]}: {key.replace('_', '-')}:"
        option = self.option(key)
        if option is None:
            place = f"{self.spec}: {self.name}: " if self.name and self.spec else ""
            return f"{place}{key.replace('_', '-')}:"
        return option.label(self.ctx)

    def located(self, error: InvalidInput) -> CommandLineError:
        """The same error, naming the option as the user gave it."""
        label = self.label(error.parameter)
        if error.value in (None, "(missing)"):
            return CommandLineError(f"{label.rstrip(':=')} is missing: {error.remedy}")
        joint = "" if label.endswith("=") else " "
        return CommandLineError(f"{label}{joint}{shown(error.value)}: {error.remedy}")

    def refuse(self, key: str, remedy: str) -> NoReturn:
        """Refuse an option whose value is fine but out of place."""
        value = self[key]
        option = self.option(key)
        label = self.label(key)
        if option is not None and (option.is_flag or value in (None, ())):
            raise CommandLineError(f"{label.rstrip(':=')}: {remedy}")
        joint = "" if label.endswith("=") else " "
        raise CommandLineError(f"{label}{joint}{shown(value)}: {remedy}")
