"""One result document, six ways to read it: table, YAML, JSON, CSV, Markdown, a statement for a paper.

The numeric core returns plain documents with full-precision floats; everything that rounds, aligns, escapes or draws
is in this package, and nothing here evaluates a bound. A number is rounded once, in the direction its type declares
(:mod:`hpcalc.output.digits`), then written by the format. May import :mod:`hpcalc.questions`, whose results
:mod:`hpcalc.output.panels` draws, and everything below.

Examples
--------
>>> from hpcalc.logspace import Upper
>>> print(render({"command": "convert", "epsilon": Upper(2.14193892831)}, "json"), end="")
{
  "command": "convert",
  "epsilon": 2.141938929
}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["FORMATS", "render"]

FORMATS = ("table", "yaml", "json", "csv", "markdown", "statement")


def render(
    document: Mapping[str, Any],
    format: str,
    *,
    echo: Collection[float] = (),
    encoding: str = "utf-8",
    width: int | None = None,
    colour: bool = False,
    quiet: bool = False,
) -> str:
    """A result document as text, ending in a newline.

    Parameters
    ----------
    document : mapping
        As ``document()`` of a result, or ``{"cases": [...]}`` of several.
    format : {"table", "yaml", "json", "csv", "markdown", "statement"}
        How to write it.
    echo : collection of float
        Numbers the user typed: machine formats write them as typed.
    encoding : str
        Of the stream; what it cannot say is written in ASCII.
    width : int, optional
        Columns of the terminal; None leaves lines as long as they are.
    colour : bool
        Whether tables may use escape codes. The other formats never do.
    quiet : bool
        Of a table and of Markdown the headline alone, one line a case.
    """
    if format in ("yaml", "json", "csv"):
        from hpcalc.output.digits import rounded

        plain = rounded(document, frozenset(echo))
        if format == "csv":
            from hpcalc.output.machine import csv_text

            return csv_text(plain, encoding)
        from hpcalc.files import json_text, yaml_text

        return json_text(plain, encoding) if format == "json" else yaml_text(plain, encoding)
    if format == "statement":
        from hpcalc.output.legible import legible
        from hpcalc.output.statement import statement_text

        return legible(statement_text(document), encoding)
    from hpcalc.output.blocks import view

    blocks = view(document, quiet=quiet)
    if format == "markdown":
        from hpcalc.output.markdown import markdown_text

        return markdown_text([*blocks, *_warnings(document)], _title(document))
    from hpcalc.output.table import table_text

    return table_text(blocks, encoding=encoding, width=10_000 if quiet else width, colour=colour)


def _title(document: Mapping[str, Any]) -> str:
    first = document["cases"][0] if document.get("cases") else document
    return " ".join(str(word) for word in ("hpcalc", first.get("hpcalc_version"), first.get("command")) if word)


def _warnings(document: Mapping[str, Any]) -> list[Any]:
    """Markdown goes into a review, where nobody sees stderr."""
    from hpcalc.output.blocks import Notes

    told = [
        f"{case['name']}: {item}" if case.get("name") else str(item)
        for case in document.get("cases", [document])
        for item in case.get("warnings") or ()
    ]
    return [Notes("Warnings", tuple(told))] if told else []
