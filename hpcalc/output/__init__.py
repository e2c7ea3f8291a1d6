"""One result document, five ways to read it: table, YAML, JSON, CSV and Markdown.

The numeric core returns plain documents with full-precision floats; everything that rounds, aligns or escapes is in
this package. A number is rounded once, to the safe side (:mod:`hpcalc.output.digits`), then written by the format.

Examples
--------
>>> print(render({"command": "convert", "epsilon": 2.14193892839}, "json"), end="")
{
  "command": "convert",
  "epsilon": 2.141938929
}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["render"]


def render(
    document: Mapping[str, Any],
    format: str,
    *,
    echo: Collection[float] = (),
    encoding: str = "utf-8",
    width: int | None = None,
    colour: bool = False,
) -> str:
    """A result document as text, ending in a newline.

    Parameters
    ----------
    document : mapping
        As ``document()`` of a result, or ``{"cases": [...]}`` of several.
    format : {"table", "yaml", "json", "csv", "markdown"}
        How to write it.
    echo : collection of float
        Numbers the user typed: shown as typed, never rounded.
    encoding : str
        Of the stream; what it cannot say is written in ASCII.
    width : int, optional
        Columns of the terminal; None leaves lines as long as they are.
    colour : bool
        Whether tables may use escape codes. The other formats never do.
    """
    if format in ("yaml", "json", "csv"):
        from hpcalc.output.digits import rounded

        plain = rounded(document, frozenset(echo))
        if format == "csv":
            from hpcalc.output.machine import csv_text

            return csv_text(plain, encoding)
        from hpcalc.files import json_text, yaml_text

        return json_text(plain, encoding) if format == "json" else yaml_text(plain, encoding)
    from hpcalc.output.views import view

    blocks = view(document, frozenset(echo))
    if format == "markdown":
        from hpcalc.output.markdown import markdown_text

        first = document["cases"][0] if document.get("cases") else document
        words = ("hpcalc", first.get("hpcalc_version"), first.get("command"))
        return markdown_text(blocks, " ".join(str(word) for word in words if word))
    from hpcalc.output.table import table_text

    return table_text(blocks, encoding=encoding, width=width, colour=colour)
