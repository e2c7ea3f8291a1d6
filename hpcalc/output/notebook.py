"""Answers in a notebook: two lines, HTML, Markdown, a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from hpcalc.output import render
from hpcalc.output.blocks import Block, Headline, Notes, view
from hpcalc.output.phrases import in_words
from hpcalc.output.plots import figure_of, plot_result


def summary(answer: Any) -> str:
    """Two lines: the answer, and what was asked."""
    document = answer.document()
    first = render(document, "table", quiet=True).strip()
    asked = [in_words(key, document[key]) for key in ("base", "from", "law") if document.get(key)]
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
    if isinstance(block, Headline):
        yield f"<p><strong>{escape(block.text)}</strong></p>"
    else:
        if block.title:
            yield f"<h4>{escape(block.title)}</h4>"
        if isinstance(block, Notes):
            mark = "☐ " if block.checklist else ""
            yield f"<ul>{''.join(f'<li>{mark}{escape(text)}</li>' for text, _ in block.items)}</ul>"
        else:
            head = [("th", block.columns)] if any(block.columns) else []
            rows = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
                    for tag, row in [*head, *(("td", row) for row in block.rows)])  # fmt: skip
            yield f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


@dataclass(frozen=True, repr=False)
class Picture:
    """A drawn answer, which a notebook shows by itself; ``svg`` is its text."""

    svg: str

    def __repr__(self) -> str:
        return f"<Picture, {len(self.svg)} characters of SVG: answer.plot('file.svg') writes a file>"

    def _repr_svg_(self) -> str:
        return self.svg


def picture(answer: Any, path: str | None = None) -> Picture | None:
    """Draw an answer, into a file or for the notebook to show; None where a file was written or nothing is drawn."""
    if path is not None:
        plot_result(answer, path)
        return None
    data = figure_of(answer, "svg")
    return Picture(data.decode("utf-8")) if data else None
