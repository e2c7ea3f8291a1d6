"""Markdown for a review, and HTML for a notebook: the answer, the numbers beside it, the checklist with boxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from hpcalc.output.blocks import LABELLED, Block, Headline, Notes, view


def markdown_text(document: Mapping[str, Any]) -> str:
    """A document as Markdown (GitHub's dialect, for its tables, task lists and footnotes), with its warnings."""
    cases = document.get("cases", [document])
    footnotes: dict[str, int] = {}
    parts = [f"## hpcalc {cases[0].get('hpcalc_version', '')} {cases[0]['command']}"]
    # it goes into a review, where nobody sees stderr
    told = [(f"{case['name']}: {item}" if case.get("name") else str(item), "")
            for case in cases for item in case.get("warnings") or ()]  # fmt: skip
    warnings = [Notes("Warnings", tuple(told))] if told else []
    parts += ["\n".join(_markdown(block, footnotes)) for block in (*view(document), *warnings)]
    parts += ["\n".join(f"[^{number}]: {_inline(text)}" for text, number in footnotes.items())]
    return "\n\n".join(parts).strip("\n") + "\n"


def _markdown(block: Block, footnotes: dict[str, int]) -> Iterator[str]:
    if isinstance(block, Headline):
        yield block.text.rstrip("\n") if block.bare else f"**{_inline(block.text)}**"
        return
    if block.title:
        yield f"### {block.title}\n"
    if isinstance(block, Notes):
        for text, more in block.items:
            mark = f"[^{footnotes.setdefault(more, len(footnotes) + 1)}]" if more else ""
            yield f"- {'[ ] ' if block.checklist else ''}{_inline(text)}{mark}"
    elif block.columns == LABELLED:
        yield from (f"- {_inline(name)}: {_inline(value)}" for name, value in block.rows)
    else:
        yield f"| {' | '.join(map(_inline, block.columns))} |"
        yield f"|{'|'.join(' ---: ' if block.numeric(i) else ' --- ' for i in range(len(block.columns)))}|"
        yield from (f"| {' | '.join(map(_inline, row))} |" for row in block.rows)


def _inline(text: str) -> str:
    # only what would break the line or the table: the words themselves stay as they are
    return " ".join(text.split("\n")).replace("|", "\\|")


def html_text(document: Mapping[str, Any]) -> str:
    """A document as HTML, without a style of its own."""
    lines: list[str] = []
    for block in view(document):
        if isinstance(block, Headline):
            lines.append(f"<p><strong>{escape(block.text)}</strong></p>")
            continue
        lines += [f"<h4>{escape(block.title)}</h4>"] if block.title else []
        if isinstance(block, Notes):
            mark = "☐ " if block.checklist else ""
            lines.append(f"<ul>{''.join(f'<li>{mark}{escape(text)}</li>' for text, _ in block.items)}</ul>")
        else:
            rows = [("th", block.columns)] if any(block.columns) else []
            rows += [("td", row) for row in block.rows]
            cells = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in rows)
            lines.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")
    return "\n".join(lines) + "\n"
