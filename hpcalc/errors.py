"""What can go wrong, and the exit code each kind stands for.

The text of an error is one or two lines that name the option (or parameter), the value that was given and the remedy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """Exit codes of the command line (``hpcalc(1)``, EXIT STATUS)."""

    OK = 0
    OVER_BUDGET = 1
    WRONG_INPUT = 2
    NO_FINITE_BOUND = 3
    FILE_ERROR = 4
    INTERRUPTED = 130


class HpcalcError(Exception):
    """Base of every error hpcalc raises on purpose."""

    exit_code: ExitCode = ExitCode.WRONG_INPUT


class InvalidInput(HpcalcError, ValueError):
    """A value outside its legal range, or a combination that means nothing.

    Parameters
    ----------
    parameter : str
        Name as in the Python API and, with dashes, on the command line (``"zcdp"`` is ``--zcdp``).
    value : object
        The value that was given.
    remedy : str
        What to give instead, e.g. ``"give a number > 0"``.

    Examples
    --------
    >>> str(InvalidInput("zcdp", -1.0, "give a number > 0"))
    'zcdp: -1.0 is not valid: give a number > 0'
    """

    def __init__(self, parameter: str, value: object, remedy: str) -> None:
        self.parameter, self.value, self.remedy = parameter, value, remedy
        super().__init__(parameter, value, remedy)

    def __str__(self) -> str:
        return f"{self.parameter}: {self.value} is not valid: {self.remedy}"


class MissingExtra(HpcalcError, ImportError):
    """An optional package is needed; the text says which and how to install it."""


class NoFiniteBound(HpcalcError):
    """No finite number is a valid answer (sigma = 0, infinite rho, delta = 0 without a pure bound)."""

    exit_code = ExitCode.NO_FINITE_BOUND


class TargetOutOfReach(HpcalcError):
    """No parameter meets the target; the text gives the nearest thing that works.

    Parameters
    ----------
    text : str
        What to tell the user.
    reachable : mapping, optional
        ``low`` and ``high`` of the targets that can be met; None where there is no such end.
    """

    exit_code = ExitCode.NO_FINITE_BOUND

    def __init__(self, text: str, reachable: Mapping[str, float | None] | None = None) -> None:
        self.reachable = reachable
        super().__init__(text)


class DataFileError(HpcalcError):
    """A file or stream could not be read or written (its *contents* being wrong is :class:`InvalidInput`)."""

    exit_code = ExitCode.FILE_ERROR


def checked_number(parameter: str, value: Any, remedy: str, legal: Callable[[float], bool] = math.isfinite) -> float:
    """The value as a float, if that is a legal number; NaN, truth values (NumPy's too) and text are refused."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) or "bool" in type(value).__name__ else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number) or not legal(number):
        raise InvalidInput(parameter, value, remedy)
    return number


def require(*rules: tuple[str, object, bool, str]) -> None:
    """Refuse the first (parameter, value, whether it is legal, remedy) that is not legal."""
    for parameter, value, legal, remedy in rules:
        if not legal:
            raise InvalidInput(parameter, value, remedy)
