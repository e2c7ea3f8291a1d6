"""Tables for a terminal, at any width: a grid that does not fit becomes a list, and no number is ever cut."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from hpcalc.output.blocks import Block, Grid, Headline, Notes, view
from hpcalc.output.streams import legible, printable

_FALLBACK_WIDTH = 100  # of sentences in a pipe or a file; grids there are as wide as they are
_UNLIMITED = 10_000
_GAP = 2
_NARROW = 18  # columns of words are not wrapped to less


def table_text(document: Mapping[str, Any], *, encoding: str, width: int | None, colour: bool, quiet: bool) -> str:
    """A document for a stream of an encoding and a width (None where there is no terminal)."""
    blocks, stream = view(document, quiet=quiet), io.StringIO()
    width = _UNLIMITED if quiet else width
    console = Console(file=stream, width=width or _UNLIMITED, force_terminal=colour, no_color=not colour,
                      color_system="standard" if colour else None, markup=False, highlight=False, emoji=False,
                      legacy_windows=False, _environ={})  # fmt: skip
    for index, block in enumerate(blocks):
        if index and not (isinstance(block, Headline) and isinstance(blocks[index - 1], Headline)):
            console.print()
        for part in _parts(block, encoding, width):
            console.print(part, soft_wrap=isinstance(part, Text), crop=False)
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n")).rstrip("\n") + "\n"


def _parts(block: Block, encoding: str, width: int | None) -> Iterator[Text | Table]:
    """The lines of a block, its table as one part."""

    def say(text: str) -> str:
        """What the stream can show."""
        return legible(printable(text), encoding)

    if isinstance(block, Headline):
        style = {None: "bold", True: "bold green", False: "bold red"}[block.good]
        yield from [Text(say(block.text))] if block.bare else _paragraph(say(block.text), width, style=style)
        return
    if block.title:
        yield from _paragraph(say(block.title), width, style="bold")
    if isinstance(block, Notes):
        mark = "[ ] " if block.checklist else "- "
        for text, _ in block.items:  # footnotes stand in Markdown
            yield from _paragraph(say(text), width, mark, " " * len(mark))
    else:
        columns, *rows = ([say(cell) for cell in row] for row in (block.columns, *block.rows))
        yield from _grid(block, columns, rows, width, legible("─", encoding))


def _paragraph(text: str, width: int | None, first: str = "", rest: str = "", style: str = "") -> Iterator[Text]:
    room = max(width or _FALLBACK_WIDTH, len(rest) + 1)
    # 1e-06 is one word
    lines = textwrap.wrap(text, room, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                          break_on_hyphens=False)  # fmt: skip
    yield from (Text(line, style=style) for line in lines or [first])


def _grid(
    grid: Grid, columns: list[str], rows: list[list[str]], width: int | None, rule: str
) -> Iterator[Text | Table]:
    """A table whose words are wrapped and whose numbers are not, or a little list a row where there is no room."""
    table = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0), pad_edge=False)
    least = -_GAP
    for index, cells in enumerate(zip(columns, *rows, strict=True)):
        narrow = full = max(map(cell_len, cells))
        if not grid.numeric(index) and (index or any(columns)):
            longest = max(cell_len(word) for cell in cells for word in cell.split() or [""])
            narrow = min(full, max(longest, _NARROW))
        table.add_column(justify="right" if grid.numeric(index) else "left", no_wrap=narrow == full, min_width=narrow)
        least += narrow + _GAP
    if least <= (width or _UNLIMITED):
        if any(columns):
            table.add_row(*(Text(name, style="dim") for name in columns))
            table.add_row(*[Rule(characters=rule, style="dim")] * len(columns))
        for index, row in enumerate(rows):
            table.add_row(*(Text(cell, style="bold" if index == grid.emphasis else "") for cell in row))
        yield table
        return
    for row in rows:
        yield from _paragraph(f"{columns[0]} {row[0]}".strip(), width, style="bold" if any(columns) else "")
        for name, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                yield from _paragraph(f"{name}: {cell}" if name else cell, width, "  ", "    ")
