"""Rounding, by what a number is.

A :class:`~hpcalc.logspace.Upper` is an upper bound and rounds up, a :class:`~hpcalc.logspace.Lower` rounds down. Any
other float describes (a mean, a quantile, an order, what the user typed) and rounds to nearest. The name of a key
never decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from hpcalc.logspace import Lower, Upper

__all__ = ["fixed", "rounded", "short", "shown", "significant"]

MACHINE_DIGITS = 10
PEOPLE_DIGITS = 6


def _mode(value: float) -> str:
    return ROUND_CEILING if isinstance(value, Upper) else ROUND_FLOOR if isinstance(value, Lower) else ROUND_HALF_EVEN


def significant(value: float, digits: int) -> float:
    """``value`` rounded to significant decimal digits; its shortest decimal form counts, so ``0.1`` stays ``0.1``.

    Examples
    --------
    >>> significant(Upper(2.14193892839), 5), significant(Lower(2.14193892839), 5), significant(2.14193892839, 5)
    (2.142, 2.1419, 2.1419)
    """
    if not math.isfinite(value) or value == 0.0:
        return float(value)
    out = float(Context(prec=digits, rounding=_mode(value)).create_decimal(Decimal(repr(value))))
    # at the ends of the range the nearest double of the rounded decimal is infinite, or 0
    return out if math.isfinite(out) and out != 0.0 else float(value)


def rounded(document: Any, echo: frozenset[float] = frozenset()) -> Any:
    """The document with every float at ten significant digits, as the machine formats write it.

    A float that is not finite becomes None: no format says Infinity or NaN. A number among ``echo``, which the user
    typed, stays as it was typed.
    """
    if isinstance(document, bool) or document is None or isinstance(document, (int, str)):
        return document
    if isinstance(document, float):
        if not math.isfinite(document):
            return None
        return float(document) if document in echo else significant(document, MACHINE_DIGITS)
    if isinstance(document, Mapping):
        return {str(key): rounded(value, echo) for key, value in document.items()}
    return [rounded(value, echo) for value in document]


def fixed(value: float, decimals: int = 4, digits: int = 4) -> str:
    """A number for people: at least four decimals and four significant digits, rounded to its safe side.

    Examples
    --------
    >>> fixed(Upper(4.22580123)), fixed(Lower(4.22580123)), fixed(0.00045399), fixed(Upper(4.5399e-9)), fixed(Upper(2))
    ('4.2259', '4.2258', '0.0004540', '4.540e-9', '2.0000')
    """
    exact, rounding = Decimal(repr(float(value))), _mode(value)
    place = exact.adjusted() if exact else 0  # 10**place <= |value| < 10**(place + 1)
    if not -5 <= place <= 8:
        kept = digits if place < 0 else max(digits, decimals + 1)
        return f"{Context(prec=kept, rounding=rounding).create_decimal(exact):.{kept - 1}e}"
    places = max(decimals, digits - 1 - place)
    return f"{exact.quantize(Decimal(1).scaleb(-places), rounding=rounding):f}"


def short(value: float) -> str:
    """A number as one would type it, with at most six significant digits.

    Examples
    --------
    >>> short(10.000000000000002), short(1e-06), short(0.0269084283928409), short(1e300)
    ('10', '1e-6', '0.0269084', '1e300')
    """
    text = repr(significant(float(value), PEOPLE_DIGITS)).removesuffix(".0")
    return text.replace("e-0", "e-").replace("e+", "e")


def shown(value: Any) -> str:
    """A leaf of a document as people read it.

    Bounds have four decimals, whole numbers too. What describes is as short as it is, with four decimals where it has
    more digits than six.

    Examples
    --------
    >>> shown(Upper(2.0)), shown(10.0), shown(0.951625819640405), shown(None), shown(True)
    ('2.0000', '10', '0.9516', 'none', 'yes')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return "none"
    if isinstance(value, (Upper, Lower)):
        return fixed(value)
    near = significant(value, MACHINE_DIGITS)
    if near.is_integer() and abs(near) < 1e15:
        return str(int(near))
    return short(value) if near == significant(value, PEOPLE_DIGITS) else fixed(value)
