"""Rounding to the safe side.

A reported epsilon, delta or rho is an upper bound and rounds up; a lower bound rounds down; a description (a mean, a
quantile, an order) rounds to nearest; what the user typed is echoed as typed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

__all__ = ["DOWN", "ECHO", "NEAREST", "UP", "direction", "fixed", "rounded", "significant"]

UP, DOWN, NEAREST, ECHO = "up", "down", "nearest", "echo"
_MODES = {UP: ROUND_CEILING, DOWN: ROUND_FLOOR, NEAREST: ROUND_HALF_EVEN}
_BOUNDS = frozenset({"epsilon", "delta", "log10_delta", "rho", "error"})
_AS_GIVEN = frozenset({"base", "from", "target_epsilon", "max_epsilon", "at_epsilon", "at_success", "success_rate",
                       "target_success", "value", "confidence", "sensitivity"})  # fmt: skip
MACHINE_DIGITS = 10


def direction(path: tuple[str, ...]) -> str:
    """Which way the number at a path of a document is rounded.

    Examples
    --------
    >>> direction(("epsilon",)), direction(("lower_bound", "epsilon")), direction(("base", "zcdp"))
    ('up', 'down', 'echo')
    """
    if any(key in _AS_GIVEN for key in path) or path == ("delta",):
        return ECHO
    if "lower_bound" in path:
        return DOWN
    return UP if path and path[-1] in _BOUNDS else NEAREST


def significant(value: float, digits: int, mode: str) -> float:
    """``value`` rounded to significant decimal digits; its shortest decimal form counts, so ``0.1`` stays ``0.1``.

    Examples
    --------
    >>> significant(2.14193892839, 5, UP), significant(2.14193892839, 5, DOWN)
    (2.142, 2.1419)
    """
    if mode == ECHO or not math.isfinite(value) or value == 0.0:
        return value
    exact = Decimal(repr(value))
    out = float(Context(prec=digits, rounding=_MODES[mode]).create_decimal(exact))
    # at the ends of the range the nearest double of the rounded decimal is infinite, or 0
    return out if math.isfinite(out) and out != 0.0 else value


def rounded(document: Mapping[str, Any], echo: frozenset[float] = frozenset()) -> dict[str, Any]:
    """The document with every float at ten significant digits, ready to be written by any machine format.

    A float that is not finite becomes None: no format says Infinity or NaN.
    """
    return {key: _rounded(value, (key,), echo) for key, value in document.items()}


def _rounded(value: Any, path: tuple[str, ...], echo: frozenset[float]) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return value if value in echo else significant(value, MACHINE_DIGITS, direction(path))
    if isinstance(value, Mapping):
        return {str(key): _rounded(item, (*path, str(key)), echo) for key, item in value.items()}
    if path == ("cases",):
        return [rounded(item, echo) for item in value]
    return [_rounded(item, path, echo) for item in value]


def fixed(value: float, mode: str, decimals: int = 4, digits: int = 4) -> str:
    """A number for people: at least four decimals and four significant digits, rounded to the safe side.

    Examples
    --------
    >>> fixed(4.22580123, UP), fixed(4.22580123, DOWN), fixed(0.00045399, NEAREST), fixed(4.5399e-9, UP)
    ('4.2259', '4.2258', '0.0004540', '4.540e-9')
    """
    exact = Decimal(repr(value))
    if exact == 0:
        return "0"
    rounding = _MODES.get(mode, ROUND_HALF_EVEN)
    place = exact.adjusted()  # 10**place <= |value| < 10**(place + 1)
    if not -5 <= place <= 8:
        kept = digits if place < 0 else max(digits, decimals + 1)
        return f"{Context(prec=kept, rounding=rounding).create_decimal(exact):.{kept - 1}e}"
    places = max(decimals, digits - 1 - place)
    return f"{exact.quantize(Decimal(1).scaleb(-places), rounding=rounding):f}"
