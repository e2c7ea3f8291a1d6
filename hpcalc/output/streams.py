"""Standard streams with the manners of a Unix tool: honest errors, quiet pipes, letters and codes they can say."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from hpcalc.errors import DataFileError

_NAMES = {
    "ε": "eps", "δ": "delta", "ρ": "rho", "σ": "sigma", "μ": "mu", "η": "eta", "γ": "gamma", "λ": "lambda",
    "φ": "phi", "β": "beta", "α": "alpha", "Δ": "Delta", "Φ": "Phi", "é": "e", "ö": "oe", "ü": "ue", "≤": "<=",
    "≥": ">=", "≠": "!=", "±": "+/-", "×": "x", "·": "*", "√": "sqrt ", "∞": "inf", "–": "-", "—": "-", "−": "-",
    "…": "...", "→": "->", "‘": "'", "’": "'", "“": '"', "”": '"', "²": "^2", "⁻": "^-", "½": "1/2", "≈": "~",
    "∫": "integral ", "Σ": "sum ", "\N{NO-BREAK SPACE}": " ", "│": "|", "─": "-", "└": "+", "┤": "+", "┬": "+",
    "░": ".",
}  # fmt: skip


def printable(text: str) -> str:
    """A text without control characters: a name must not send escape codes."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def legible(text: str, encoding: str) -> str:
    """The text with every character the encoding lacks replaced: Greek letters by their names, the rest by escapes."""
    try:
        text.encode(encoding)
    except (UnicodeError, LookupError):
        if len(text) > 1:
            return "".join(legible(char, encoding) for char in text)
        return _NAMES.get(text, text.encode("ascii", "backslashreplace").decode())
    return text


def complain(text: str) -> None:
    """Write lines to stderr; a stderr that cannot be written is not worth an error of its own."""
    if sys.stderr is None:  # then its descriptor may be another file's
        return
    try:
        sys.stderr.write(legible(printable(text.rstrip("\n")), getattr(sys.stderr, "encoding", None) or "ascii") + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        discard(2)


def discard(descriptor: int) -> None:
    """Give up on a stream that failed: the interpreter flushes it once more on exit, and would end with code 120."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


def stdout_encoding() -> str:
    """Encoding of stdout, ASCII where there is none."""
    return getattr(sys.stdout, "encoding", None) or "ascii"


def wants_colour() -> bool:
    """Whether escape codes may be written: NO_COLOR, then FORCE_COLOR, then a terminal that is not dumb."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    if forced:
        return forced.lower() not in ("0", "false", "no")
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def terminal_width() -> int | None:
    """Columns to lay a table out for; None where nobody said (a pipe or a file), so that lines need not break."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(1).columns or None
    return None


def write_stdout(text: str) -> None:
    """Write to stdout and flush; a closed pipe stays a :class:`BrokenPipeError`, anything else is exit code 4."""
    if sys.stdout is None:
        raise DataFileError("standard output is closed")
    try:
        sys.stdout.write(legible(text, stdout_encoding()))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard(1)
        raise DataFileError(f"standard output: {error.strerror or error}") from error
