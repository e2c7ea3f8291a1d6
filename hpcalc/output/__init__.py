"""One result document, seven ways to read it: table, YAML, JSON, CSV, Markdown, HTML, a statement for a paper.

Nothing here evaluates a bound. A number is rounded once, in the direction its type declares
(:mod:`hpcalc.output.digits`). May import :mod:`hpcalc.questions`, whose results :mod:`hpcalc.output.panels` draws.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def render(
    document: Mapping[str, Any], format: str, *, echo: Collection[float] = (),
    encoding: str = "utf-8", width: int | None = None, colour: bool = False, quiet: bool = False,
) -> str:  # fmt: skip
    """A result's ``document()``, or ``{"cases": [...]}`` of several, as text that ends in a newline.

    Machine formats write numbers of ``echo``, which the user typed, as typed; ``width`` (None for no limit) and
    ``colour`` are for tables; ``quiet`` leaves the headlines of tables and Markdown alone.
    """
    if format in ("yaml", "json", "csv"):
        from hpcalc.files import json_text, yaml_text
        from hpcalc.output.digits import rounded
        from hpcalc.output.machine import csv_text

        plain = rounded(document, frozenset(echo))
        return csv_text(plain) if format == "csv" else {"yaml": yaml_text, "json": json_text}[format](plain, encoding)
    if format == "statement":
        from hpcalc.output.statement import statement_text

        return statement_text(document)
    from hpcalc.output.blocks import view

    blocks = view(document, quiet=quiet)
    if format in ("markdown", "html"):
        from hpcalc.output.markup import html_text, markdown_text

        return html_text(blocks) if format == "html" else markdown_text(document, blocks)
    from hpcalc.output.table import table_text

    return table_text(blocks, encoding=encoding, width=10_000 if quiet else width, colour=colour)


def show(answer: Any, how: str, path: str | None = None) -> Any:
    """An answer by itself: a ``summary`` of two lines, ``html``, ``markdown``, or a ``picture``, also as a file."""
    if how == "picture":
        from hpcalc.output.plots import picture

        return picture(answer, path)
    document = answer.document()
    if how != "summary":
        return render(document, how)
    from hpcalc.output.phrases import in_words

    asked = [in_words(key, document[key]) for key in ("base", "from", "law") if document.get(key)]
    asked += [f"{len(document['rows'])} rows"] if document.get("rows") is not None else []
    return f"{render(document, 'table', quiet=True).strip()}\n{type(answer).__name__}: {'; '.join(asked)}"
