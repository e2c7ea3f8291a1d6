"""What the value of an option may look like: numbers, words, lists and file names.

Each type reads the text a user typed, on the command line, in the environment or in a spec file, and refuses what it
cannot read with the option's name, the value and the remedy. Ranges belong to the objects built from the values
(:mod:`hpcalc.guarantees`, :mod:`hpcalc.laws`), which check them once for every caller.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hpcalc.errors import InvalidInput

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
    _Choice = click.Choice[str]
else:  # generic only in newer releases of Click
    _ParamType, _Choice = click.ParamType, click.Choice

__all__ = ["Choice", "File", "Integer", "Number", "Orders", "Text", "nearest"]

# ASCII digits only, and no underscores: float() reads more than what other tools read back.
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"\+?\.?inf(inity)?", re.IGNORECASE)
_LARGEST_INTEGER = 10**18


def nearest(word: str, choices: Sequence[str]) -> str | None:
    """The choice most like ``word``, if any is."""
    from difflib import get_close_matches  # only a typing error pays for it

    return next(iter(get_close_matches(word, choices, n=1, cutoff=0.6)), None)


def _name(param: click.Parameter | None) -> str:
    return (param.name if param is not None else None) or "value"


class Number(_ParamType):
    """A finite real number; infinity only where ``infinite`` says that it means something."""

    name = "number"

    def __init__(self, infinite: bool = False) -> None:
        self.infinite = infinite

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        return self.read(str(value), _name(param))

    def read(self, text: str, name: str) -> float:
        """Read one number, refusing what a double cannot hold."""
        clean = text.strip()
        if _NUMBER.fullmatch(clean):
            number = float(clean)
            if math.isinf(number):
                raise InvalidInput(name, text, "give a number below 1e308")
            if number == 0.0 and re.search("[1-9]", re.split("[eE]", clean)[0]):
                raise InvalidInput(name, text, "too small to be told from 0: give 0 or at least 1e-307")
            return number
        if self.infinite and _INFINITE.fullmatch(clean):
            return math.inf
        if re.fullmatch(r"[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?", clean):
            raise InvalidInput(name, text, f"use a decimal point: {clean.replace(',', '.')}")
        raise InvalidInput(name, text, "give a number such as 0.5 or 1e-6" if clean else "give a number")


class Integer(_ParamType):
    """An integer; ``1e6`` and ``1000.0`` are integers too, ``2.5`` is not."""

    name = "integer"

    def __init__(self, minimum: int | None = None) -> None:
        self.minimum = minimum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        name = _name(param)
        if isinstance(value, int) and not isinstance(value, bool):
            integer = value
        else:
            integer = self.read(str(value), name)
        if self.minimum is not None and integer < self.minimum:
            raise InvalidInput(name, value, f"give an integer of at least {self.minimum}")
        return integer

    def read(self, text: str, name: str) -> int:
        """Read one integer; the size is limited before any digit is written out."""
        clean = text.strip()
        if not _NUMBER.fullmatch(clean):
            raise InvalidInput(name, text, "give an integer such as 100 or 1e6")
        if not abs(float(clean)) <= _LARGEST_INTEGER or len(clean) > 1000:
            raise InvalidInput(name, text, "give an integer of at most 1e18")
        from fractions import Fraction

        exponent = re.split("[eE]", clean)[1:]
        if exponent and int(exponent[0]) < -1000:  # an exact fraction would need that many digits
            raise InvalidInput(name, text, "give an integer such as 100 or 1e6")
        exact = Fraction(clean)
        if exact.denominator != 1:
            raise InvalidInput(name, text, "give an integer such as 100 or 1e6")
        return int(exact)


class Choice(_Choice):
    """One word of a list; an unknown word is answered with the nearest one and the whole list."""

    def __init__(self, choices: Sequence[str]) -> None:
        self.words = tuple(choices)
        super().__init__(self.words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word = str(value)
        if word in self.words:
            return word
        near = nearest(word.lower(), self.words)
        hint = f"did you mean {near}? " if near else ""
        raise InvalidInput(_name(param), word, f"{hint}choose from {', '.join(self.words)}")


class Orders(_ParamType):
    """A comma-separated list of Renyi orders, each above 1; ``inf`` is pure DP."""

    name = "orders"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        name = _name(param)
        number = Number(infinite=True)
        orders = tuple(number.read(part, name) for part in str(value).split(","))
        for order in orders:
            if not order > 1.0:
                raise InvalidInput(name, f"{order:g}", "every order must be above 1, e.g. 1.5,2,4,inf")
        return orders


class Text(_ParamType):
    """Text that is taken apart later, where its grammar is known (``--rdp``, ``--law``, ``--sweep``)."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.strip():
            raise InvalidInput(_name(param), repr(text), "is empty")
        return text


class File(_ParamType):
    """A file name; whether it can be read or written shows when it is."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text or "\0" in text:
            raise InvalidInput(_name(param), repr(text), "give a file name")
        return text

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """File names are the shell's business."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]
