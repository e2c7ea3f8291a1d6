"""Answers in a notebook: two lines, HTML, Markdown, a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from hpcalc.output import render
from hpcalc.output.blocks import Block, Fields, Grid, Headline, Notes, Plain, view
from hpcalc.output.phrases import law_words, run_words, sentence

__all__ = ["Picture", "html", "markdown", "picture", "summary"]


def summary(answer: Any) -> str:
    """Two lines: the answer, and what was asked."""
    document = answer.document()
    first = render(document, "table", quiet=True).strip() or str(document.get("command"))
    base, law = document.get("base") or document.get("from"), document.get("law")
    asked = [*([run_words(base)] if base else []), *([law_words(law)] if law else [])]
    if document.get("rows") is not None:
        asked.append(f"{len(document['rows'])} rows")
    return f"{first}\n{type(answer).__name__}: {'; '.join(asked)}"


def markdown(answer: Any) -> str:
    """The answer as ``--format markdown`` writes it."""
    return render(answer.document(), "markdown")


def html(answer: Any) -> str:
    """The answer as HTML, without a style of its own."""
    return "\n".join(line for block in view(answer.document()) for line in _html(block))


def _html(block: Block) -> Iterator[str]:
    title = getattr(block, "title", "")
    if title:
        yield f"<h4>{escape(title)}</h4>"
    if isinstance(block, Headline):
        yield f"<p><strong>{escape(block.text)}</strong></p>"
    elif isinstance(block, Plain):
        yield f"<pre>{escape(block.text)}</pre>"
    elif isinstance(block, Fields):
        yield from _table((), [[name, value] for name, value in block.items])
    elif isinstance(block, Grid):
        yield from _table(block.columns if any(block.columns) else (), block.rows)
    elif isinstance(block, Notes):
        items = (sentence(item)[0] if block.checklist else item for item in block.items)
        yield "<ul>" + "".join(f"<li>{'☐ ' if block.checklist else ''}{escape(item)}</li>" for item in items) + "</ul>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table>"
    if head:
        yield "<tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>"
    yield from ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    yield "</table>"


class Picture:
    """A drawn answer, which a notebook shows by itself.

    Attributes
    ----------
    svg : str
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def __repr__(self) -> str:
        return f"<Picture, {len(self.svg)} characters of SVG: answer.plot('file.svg') writes a file>"

    def _repr_svg_(self) -> str:
        return self.svg


def picture(answer: Any, path: str | None = None) -> Picture | None:
    """Draw an answer, into a file or for the notebook to show; None where a file was written or nothing is drawn."""
    from hpcalc.output.plots import panels_for, plot_result

    if path is not None:
        plot_result(answer, path)
        return None
    from hpcalc.output.figure import figure_bytes

    panels = panels_for(answer)
    return Picture(figure_bytes(panels, "svg").decode("utf-8")) if panels else None
