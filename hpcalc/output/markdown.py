"""Markdown for a review: the answer, the numbers beside it, the checklist with boxes and a footnote for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hpcalc.output.blocks import Block, Fields, Grid, Headline, Plain
from hpcalc.output.phrases import sentence

__all__ = ["markdown_text", "numeric"]


def markdown_text(blocks: Sequence[Block], title: str = "") -> str:
    """Blocks as Markdown (GitHub's dialect, for its tables, task lists and footnotes)."""
    footnotes: dict[str, int] = {}
    parts = [f"## {title}"] if title else []
    parts += ["\n".join(_lines(block, footnotes)) for block in blocks]
    if footnotes:
        parts.append("\n".join(f"[^{number}]: {_inline(text)}" for text, number in footnotes.items()))
    return "\n\n".join(parts).strip("\n") + "\n"


def _lines(block: Block, footnotes: dict[str, int]) -> Iterator[str]:
    if isinstance(block, Plain):
        yield block.text.rstrip("\n")
        return
    if isinstance(block, Headline):
        yield f"**{_inline(block.text)}**"
        return
    if block.title:
        yield f"### {block.title}"
        yield ""
    if isinstance(block, Fields):
        yield from (f"- {_inline(name)}: {_inline(value)}" for name, value in block.items)
    elif isinstance(block, Grid):
        count = len(block.columns)
        yield "| " + " | ".join(map(_inline, block.columns)) + " |"
        yield "|" + "|".join(" ---: " if numeric(block.rows, index) else " --- " for index in range(count)) + "|"
        yield from ("| " + " | ".join(map(_inline, row)) + " |" for row in block.rows)
    elif block.checklist:
        for item in block.items:
            text, more = sentence(item)
            mark = f"[^{footnotes.setdefault(more, len(footnotes) + 1)}]" if more else ""
            yield f"- [ ] {_inline(text)}{mark}"
    else:
        yield from (f"- {_inline(item)}" for item in block.items)


def numeric(rows: Sequence[Sequence[str]], index: int) -> bool:
    """Whether a column holds numbers, which stand right."""
    cells = [row[index] for row in rows if row[index] not in ("", "-", "none")]
    return bool(cells) and all(re.fullmatch(r"[-+0-9.e]+", cell) for cell in cells)


def _inline(text: str) -> str:
    # only what would break the line or the table: the words themselves stay as they are
    return " ".join(text.split("\n")).replace("|", "\\|")
