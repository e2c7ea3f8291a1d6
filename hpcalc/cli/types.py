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

from hpcalc.catalog import HINTS as SYNONYMS
from hpcalc.errors import InvalidInput
from hpcalc.files import INFINITE, NUMBER, nearest

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:  # generic only in newer releases of Click
    _ParamType = click.ParamType

__all__ = ["HINTS", "Choice", "File", "Integer", "LawText", "Number", "Orders", "Text"]

_LARGEST_INTEGER = 10**18

# Options of other tools, and what is meant here: what to write, then the words that people type for it.
_FOREIGN = """
write --noise-multiplier SIGMA for DP-SGD, --gaussian SIGMA otherwise: sigma noise noise-std noise-scale
--max-epsilon is a limit, --target-epsilon what 'hpcalc plan' aims at, --pure a guarantee: eps epsilon max-eps budget
write --mean M for a random number, --dist composition --k K for a list of K: trials n-trials num-trials runs n-iter
write --sample-rate RATE: sampling-rate sample-probability sampling-probability q
write --steps T: iterations max-steps num-steps num-iterations
write --batch-size B: lot-size batch microbatch-size
write --examples N: num-examples dataset-size num-samples
write --mu M for a Poisson number of runs, --sample-rate RATE for DP-SGD: lambda rate
write --delta DELTA: target-delta
write --zcdp RHO: rho
write --spec FILE: file config input
write --clamp-runs M for min(K, M), --max-runs M for K given K <= M: max-k cap
there is none, for K is drawn from the operating system's entropy and must not be guessed: seed random-state
the best several of one search are not covered, so run as many searches and give --searches N: top-k topk best-m
"""
HINTS = {
    word: hint for hint, _, words in (line.rpartition(": ") for line in _FOREIGN.splitlines()) for word in words.split()
}


class Number(_ParamType):
    """A finite real number; infinity only where ``infinite`` says that it means something."""

    name = "number"

    def __init__(self, infinite: bool = False) -> None:
        self.infinite = infinite

    def read(self, text: str, name: str) -> float:
        """Read one number, refusing what a double cannot hold."""
        clean = text.strip()
        if NUMBER.fullmatch(clean):
            number = float(clean)
            if math.isinf(number):
                raise InvalidInput(name, text, "give a number below 1e308")
            if number == 0.0 and re.search("[1-9]", re.split("[eE]", clean)[0]):
                raise InvalidInput(name, text, "too small to be told from 0: give 0 or at least 1e-307")
            return number
        if self.infinite and INFINITE.fullmatch(clean):
            return math.inf
        if re.fullmatch(r"[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?", clean):
            raise InvalidInput(name, text, f"use a decimal point: {clean.replace(',', '.')}")
        raise InvalidInput(name, text, "give a number such as 0.5 or 1e-6" if clean else "give a number")


class Integer(_ParamType):
    """An integer of at least ``minimum``; ``1e6`` and ``1000.0`` are integers too, ``2.5`` is not."""

    name = "integer"

    def __init__(self, minimum: int = 1) -> None:
        self.minimum = minimum

    def read(self, text: str, name: str) -> int:
        """Read one integer; the size is limited before any digit is written out."""
        from fractions import Fraction

        clean = text.strip()
        like = "give an integer such as 100 or 1e6"
        if not NUMBER.fullmatch(clean):
            raise InvalidInput(name, text, like)
        if not abs(float(clean)) <= _LARGEST_INTEGER or len(clean) > 1000:
            raise InvalidInput(name, text, "give an integer of at most 1e18")
        exponent = re.split("[eE]", clean)[1:]
        # an exact fraction would need as many digits as the exponent says
        exact = Fraction(1, 2) if exponent and int(exponent[0]) < -1000 else Fraction(clean)
        if exact.denominator != 1:
            raise InvalidInput(name, text, like)
        if exact < self.minimum:
            raise InvalidInput(name, text, f"give an integer of at least {self.minimum}")
        return int(exact)


class Choice(_ParamType):
    """One word of a list; an unknown word is answered with what it is called here, or the nearest, and the list."""

    name = "choice"

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = tuple(choices)

    def read(self, text: str, name: str) -> str:
        """One of the words."""
        if text in self.choices:
            return text
        meant = SYNONYMS.get(text.lower())
        near = meant if meant in self.choices else nearest(text.lower(), self.choices)
        hint = f"{f'did you mean {near}? ' if near else ''}choose from {', '.join(self.choices)}"
        raise InvalidInput(name, text, hint)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """The words that begin like this."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self.choices if word.startswith(incomplete)]


class Orders(_ParamType):
    """A comma-separated list of Renyi orders, each above 1; ``inf`` is pure DP."""

    name = "orders"

    def read(self, text: str, name: str) -> tuple[float, ...]:
        """The orders, as typed."""
        number = Number(infinite=True)
        orders = tuple(number.read(part, name) for part in text.split(","))
        for order in orders:
            if not order > 1.0:
                raise InvalidInput(name, f"{order:g}", "every order must be above 1, e.g. 1.5,2,4,inf")
        return orders


class Text(_ParamType):
    """Text that is taken apart later, where its grammar is known (``--rdp``, ``--sweep``)."""

    name = "text"

    def read(self, text: str, name: str) -> str:
        """The text, which must say something."""
        if not text.strip():
            raise InvalidInput(name, repr(text), "is empty")
        return text


class LawText(Text):
    """A law of K on one line, ``tnb:eta=0,mean=10``; TAB completes the law's name."""

    def __init__(self, laws: Sequence[str]) -> None:
        self.laws = tuple(laws)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Names of laws."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(law) for law in self.laws if law.startswith(incomplete)]


class File(_ParamType):
    """A file name, with one of ``endings`` if there are any; whether it can be read or written shows when it is."""

    name = "file"

    def __init__(self, *endings: str) -> None:
        self.endings = endings

    def read(self, text: str, name: str) -> str:
        """The file's name."""
        if not text or "\0" in text:
            raise InvalidInput(name, repr(text), "give a file name")
        if self.endings and not text.lower().endswith(self.endings):
            *most, last = self.endings
            raise InvalidInput(name, text, f"give a file name that ends in {', '.join(most)} or {last}")
        return text

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """File names are the shell's business."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]
