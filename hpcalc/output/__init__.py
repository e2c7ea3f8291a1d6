"""One result document, seven ways to read it: table, YAML, JSON, CSV, Markdown, HTML, a statement for a paper.

Nothing here evaluates a bound. A number is rounded once, in the direction its type declares
(:mod:`hpcalc.output.digits`). May import :mod:`hpcalc.questions`, whose results :mod:`hpcalc.output.panels` draws.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

#: What writes a document in each format, loaded when it is asked for: start-up time is a promise.
_WRITERS = {
    "table": "hpcalc.output.table.table_text", "yaml": "hpcalc.files.yaml_text", "json": "hpcalc.files.json_text",
    "csv": "hpcalc.output.machine.csv_text", "statement": "hpcalc.output.statement.statement_text",
    "markdown": "hpcalc.output.markup.markdown_text", "html": "hpcalc.output.markup.html_text",
}  # fmt: skip


def render(
    document: Mapping[str, Any], format: str, *, echo: Collection[float] = (),
    encoding: str = "utf-8", width: int | None = None, colour: bool = False, quiet: bool = False,
) -> str:  # fmt: skip
    """A result's ``document()``, or ``{"cases": [...]}`` of several, as text that ends in a newline.

    Machine formats write numbers of ``echo``, which the user typed, as typed; ``width`` (None for no limit), ``colour``
    and ``quiet``, which leaves the headlines alone, are for tables.
    """
    from pkgutil import resolve_name

    stream: dict[str, Any] = {"encoding": encoding} if format in ("table", "yaml", "json") else {}
    if format == "table":
        stream |= {"width": width, "colour": colour, "quiet": quiet}
    elif format in ("yaml", "json", "csv"):
        document = resolve_name("hpcalc.output.digits.rounded")(document, frozenset(echo))
    text = str(resolve_name(_WRITERS[format])(document, **stream))
    # the others escape what is no text where they write it
    return resolve_name("hpcalc.output.streams.printable")(text) if format in ("csv", "markdown", "statement") else text


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
