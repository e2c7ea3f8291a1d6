"""Saying in ASCII what a stream cannot say otherwise."""

from __future__ import annotations

__all__ = ["can_say", "legible"]

_NAMES = {
    "ε": "eps", "δ": "delta", "ρ": "rho", "σ": "sigma", "μ": "mu", "η": "eta", "γ": "gamma", "λ": "lambda",
    "φ": "phi", "β": "beta", "α": "alpha", "Δ": "Delta", "Φ": "Phi", "é": "e", "ö": "oe", "ü": "ue", "≤": "<=",
    "≥": ">=", "≠": "!=", "±": "+/-", "×": "x", "·": "*", "√": "sqrt ", "∞": "inf", "–": "-", "—": "-", "−": "-",
    "…": "...", "→": "->", "‘": "'", "’": "'", "“": '"', "”": '"', "²": "^2", "⁻": "^-", "½": "1/2", "≈": "~",
    "∫": "integral ", "Σ": "sum ", "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip


def can_say(text: str, encoding: str) -> bool:
    """Whether an encoding has every character of the text."""
    try:
        text.encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


def legible(text: str, encoding: str) -> str:
    """The text with every character the encoding lacks replaced: Greek letters by their names, the rest by escapes."""
    return (
        text
        if can_say(text, encoding)
        else "".join(
            char if can_say(char, encoding) else _NAMES.get(char, char.encode("ascii", "backslashreplace").decode())
            for char in text
        )
    )
