"""Checked numbers, and the logarithms that several laws need."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hpcalc.errors import InvalidInput, checked_number
from hpcalc.logspace import Array, Prob, log1mexp

ZERO = Prob(np.array(-math.inf), np.array(0.0))
ONE = ZERO.complement()
_LARGEST_INTEGER = 2**53  # integers are exact in a double up to here


def finite_number(name: str, value: object, remedy: str, legal: Callable[[float], bool] = math.isfinite) -> float:
    """Return ``value`` as a finite float that is legal, or raise :class:`InvalidInput` with the remedy."""
    return checked_number(name, value, remedy, lambda number: math.isfinite(number) and legal(number))


def positive(name: str, value: object) -> float:
    """Return ``value`` as a finite float > 0, or raise :class:`InvalidInput`."""
    return finite_number(name, value, "give a finite number > 0", lambda number: number > 0.0)


def probability(name: str, value: object) -> float:
    """Return ``value`` as a float in (0, 1], or raise :class:`InvalidInput`."""
    return finite_number(name, value, f"give a number with 0 < {name} <= 1", lambda number: 0.0 < number <= 1.0)


def mean_of_some(value: object) -> float:
    """Return ``value`` as a mean of a law that runs at least once, or raise :class:`InvalidInput`."""
    remedy = "give a number >= 1: this law runs at least once"
    return finite_number("mean", value, remedy, lambda number: number >= 1.0)


def whole_number(name: str, value: object, least: int) -> int:
    """Return ``value`` as an int >= ``least`` (1e3 is 1000), or raise :class:`InvalidInput`."""
    remedy = f"give a whole number >= {least}"
    number = finite_number(name, value, remedy, lambda number: number == math.floor(number) >= least)
    if number > _LARGEST_INTEGER:
        raise InvalidInput(name, value, "give a whole number of at most 9007199254740992 (2^53)")
    return int(number)


def checked_keep(log_keep: float) -> float:
    """Return ``log_keep`` if it is the logarithm of a probability > 0, or raise :class:`InvalidInput`."""
    return finite_number("log_keep", log_keep, "give log(1 - delta0) with 0 <= delta0 < 1", lambda x: x <= 0.0)


def log_mean_exp(x: Array | float) -> Array:
    """``log((1 - exp(-x)) / x)`` for ``x >= 0``: the mean of ``exp(-t)`` over ``[0, x]``; all digits near 0 too."""
    x = np.maximum(x, 1e-300)
    series = x * (x * (1.0 - np.minimum(x, 1.0) ** 2 / 120.0) / 24.0 - 0.5)
    return np.asarray(np.where(x < 0.01, series, np.log(-np.expm1(-x) / x)), dtype=float)


def sharper(log_x: Array, log_rest: Array) -> Array:
    """``log x`` given with ``log(1 - x)``, each good where it is not near 0: from the latter where x > 1/2."""
    return np.asarray(np.where(log_rest < log_x, log1mexp(log_rest), log_x), dtype=float)


def times(count: Array | float, log_x: Array | float) -> Array:
    """``count * log_x`` where 0 times -inf is 0: the logarithm of ``x**count`` with ``0**0 = 1``."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.equal(count, 0.0), 0.0, np.multiply(count, log_x)), dtype=float)
