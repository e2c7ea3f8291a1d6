"""Markdown for a review: the answer, the numbers beside it, and the checklist with boxes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hpcalc.output.views import Block, Fields, Grid, Headline, Notes, Plain

__all__ = ["markdown_text"]


def markdown_text(blocks: Sequence[Block], title: str = "") -> str:
    """Blocks as Markdown (GitHub's dialect, for its tables and task lists)."""
    head = [f"## {title}"] if title else []
    return "\n\n".join([*head, *("\n".join(_lines(block)) for block in blocks)]).strip("\n") + "\n"


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Plain):
        yield block.text.rstrip("\n")
    elif isinstance(block, Headline):
        yield f"**{_inline(block.text)}**"
    elif isinstance(block, Fields):
        yield from _title(block.title)
        for name, value in block.items:
            yield f"- {_inline(name)}: {_inline(value)}"
    elif isinstance(block, Grid):
        yield from _title(block.title)
        yield "| " + " | ".join(_inline(name) for name in block.columns) + " |"
        yield (
            "|" + "|".join(" ---: " if _numeric(block, index) else " --- " for index in range(len(block.columns))) + "|"
        )
        for row in block.rows:
            yield "| " + " | ".join(_inline(cell) for cell in row) + " |"
    elif isinstance(block, Notes):
        yield from _title(block.title)
        for item in block.items:
            yield f"- {'[ ] ' if block.checklist else ''}{_inline(item)}"


def _title(title: str) -> Iterator[str]:
    if title:
        yield f"### {title}"
        yield ""


def _numeric(grid: Grid, index: int) -> bool:
    cells = [row[index] for row in grid.rows if row[index] not in ("", "-", "none")]
    return bool(cells) and all(re.fullmatch(r"[-+0-9.e]+", cell) for cell in cells)


def _inline(text: str) -> str:
    # only what would break the line or the table: the words themselves stay as they are
    return " ".join(text.split("\n")).replace("|", "\\|")
