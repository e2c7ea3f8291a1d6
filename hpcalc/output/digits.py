"""Rounding, by what a number is: an ``Upper`` bound up, a ``Lower`` one down, any other float to nearest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

from hpcalc.logspace import Lower, Upper, direction, significant

_MACHINE_DIGITS = 10
_PEOPLE_DIGITS = 6


def rounded(document: Any, echo: frozenset[float] = frozenset()) -> Any:
    """A document with floats at ten digits, unless they are in ``echo``; those that are not finite are None."""
    if isinstance(document, float):
        number = float(document) if document in echo else significant(document, _MACHINE_DIGITS)
        return number if math.isfinite(number) else None
    if isinstance(document, Mapping):
        return {str(key): rounded(value, echo) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [rounded(value, echo) for value in document]
    return document


def fixed(value: float) -> str:
    """A number for people: at least four decimals and four significant digits, rounded to its safe side."""
    exact, rounding = Decimal(repr(float(value))), direction(value)
    place = exact.adjusted() if exact else 0  # 10**place <= |value| < 10**(place + 1)
    if not -5 <= place <= 8:
        kept = 4 if place < 0 else 5
        return f"{Context(prec=kept, rounding=rounding).create_decimal(exact):.{kept - 1}e}"
    return f"{exact.quantize(Decimal(1).scaleb(-max(4, 3 - place)), rounding=rounding):f}"


def short(value: Any) -> str:
    """A value as one would type it, a number with at most six significant digits: ``1e-6``, ``0.0269084``."""
    if not isinstance(value, float):
        return str(value)
    text = repr(significant(value, _PEOPLE_DIGITS)).removesuffix(".0")
    return text.replace("e-0", "e-").replace("e+", "e")


def shown(value: Any) -> str:
    """A leaf as people read it: bounds have four decimals, what describes is short, or has four decimals as well."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "none"
    if not isinstance(value, float):
        return str(value)
    if isinstance(value, (Upper, Lower)):
        return fixed(value)
    near = significant(value, _MACHINE_DIGITS)
    if near.is_integer() and abs(near) < 1e15:
        return str(int(near))
    return short(value) if near == significant(value, _PEOPLE_DIGITS) else fixed(value)
