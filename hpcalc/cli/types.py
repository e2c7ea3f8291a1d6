"""What the value of an option may look like: numbers, words, lists and file names, wherever it was typed.

Ranges belong to the objects built from the values, which check them once for every caller.
"""

from __future__ import annotations

import math
import re
from typing import Any

from hpcalc.cli.command import Option
from hpcalc.errors import InvalidInput, require
from hpcalc.files import INFINITE, NUMBER, did_you_mean, vanishes

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
write --dist LAW: law distribution
write --spec FILE: file config input
write --clamp-runs M for min(K, M), --max-runs M for K given K <= M: max-k cap
there is none, for K is drawn from the operating system's entropy and must not be guessed: seed random-state
the best several of one search are not covered, so run as many searches and give --searches N: top-k topk best-m
"""
HINTS = {
    word: hint for hint, _, words in (line.rpartition(": ") for line in _FOREIGN.splitlines()) for word in words.split()
}


def text(text: str, option: Option) -> str:
    """A name, or text that is taken apart later, where its grammar is known (``--rdp``, ``--sweep``)."""
    if not text.strip() or "\n" in text:
        raise InvalidInput(option.key, repr(text), "give one line of text")
    return text.strip()


def choice(text: str, option: Option) -> str:
    """One of the option's words; an unknown one is answered with what it is called here, or the nearest, and them."""
    if text not in option.words:
        near = did_you_mean(text.lower(), option.words)
        raise InvalidInput(option.key, text, f"{near}choose from {', '.join(option.words)}")
    return text


def flag(text: str, option: Option) -> bool:
    """A flag, which in a file or a variable is a word."""
    words = ("1", "true", "yes", "on", "0", "false", "no", "off")
    if text.strip().lower() not in words:
        raise InvalidInput(option.key, text, "give true or false")
    return text.strip().lower() in words[:4]


def number(text: str, option: Option) -> float:
    """A finite real number."""
    clean = text.strip()
    if not NUMBER.fullmatch(clean):
        remedy = "give a number such as 0.5 or 1e-6" if clean else "give a number"
        comma = re.fullmatch(r"[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?", clean)
        raise InvalidInput(option.key, text, f"use a decimal point: {clean.replace(',', '.')}" if comma else remedy)
    require(
        (option.key, text, not math.isinf(float(clean)), "give a number below 1e308"),
        (option.key, text, not vanishes(clean), "too small to be told from 0: give 0 or at least 1e-307"),
    )
    return float(clean)


def loss(text: str, option: Option) -> float:
    """A number, or infinity: "no guarantee", and the answer says so (exit code 3)."""
    return math.inf if INFINITE.fullmatch(text.strip()) else number(text, option)


def rate(text: str, option: Option) -> Any:
    """A sampling rate, or ``auto``."""
    return "auto" if text.strip() == "auto" else number(text, option)


def integer(text: str, option: Option) -> int:
    """An integer of at least 1; ``1e6`` and ``1000.0`` are integers too, ``2.5`` is not."""
    clean = text.strip()
    value = float(clean) if NUMBER.fullmatch(clean) else math.nan
    require(
        (option.key, text, not abs(value) > 1e18, "give an integer of at most 1e18"),
        (option.key, text, value.is_integer() and not vanishes(clean), "give an integer such as 100 or 1e6"),
        (option.key, text, value >= 1.0, "give an integer of at least 1"),
    )
    # a double does not hold every integer of 17 digits
    return int(clean) if clean.isdigit() else int(value)


def orders(text: str, option: Option) -> tuple[float, ...]:
    """A comma-separated list of Renyi orders, each above 1; ``inf`` is pure DP."""
    orders = tuple(loss(part, option) for part in text.split(","))
    remedy = "every order must be above 1, e.g. 1.5,2,4,inf"
    require(*((option.key, f"{order:g}", order > 1.0, remedy) for order in orders))
    return orders


def file(text: str, option: Option) -> str:
    """A file name, with one of the endings ``words`` if there are any; whether it can be read shows when it is."""
    if not text or "\0" in text:
        raise InvalidInput(option.key, repr(text), "give a file name")
    if option.words and not text.lower().endswith(option.words):
        *most, last = option.words
        raise InvalidInput(option.key, text, f"give a file name that ends in {', '.join(most)} or {last}")
    return text


NUMERIC = (number, loss, rate, integer, orders)
