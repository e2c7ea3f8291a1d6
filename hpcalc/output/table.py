"""Tables for a terminal, at any width: a grid that does not fit becomes a list, and no number is ever cut."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hpcalc.output.blocks import Block, Fields, Grid, Headline, Notes, Plain
from hpcalc.output.legible import can_say, legible
from hpcalc.output.markdown import numeric
from hpcalc.output.phrases import sentence

__all__ = ["table_text"]

_FALLBACK_WIDTH = 100  # for sentences in a pipe or a file; grids there are as wide as they are
_GAP = 2
_MOST_PARTS = 3


def table_text(
    blocks: Sequence[Block], *, encoding: str = "utf-8", width: int | None = None, colour: bool = False
) -> str:
    """Blocks as text for a stream of an encoding and a width (None where there is no terminal), with escape codes if
    asked.

    Greek letters become names where the encoding lacks them, and lines become ASCII.
    """
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=10_000,  # nothing below is left to the console to wrap or to cut
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    painter = _Painter(console, encoding, width)
    for index, block in enumerate(blocks):
        apart = not isinstance(block, Headline) or not isinstance(blocks[index - 1], Headline)
        if index and apart and not isinstance(block, Plain):
            console.print()
        painter.paint(block)
    lines = stream.getvalue().split("\n")
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"


class _Painter:
    def __init__(self, console: Console, encoding: str, width: int | None) -> None:
        self.console = console
        self.encoding = encoding
        self.limit = width  # of grids
        self.width = max(width or _FALLBACK_WIDTH, 1)  # of sentences
        self.rule = "─" if can_say("─", encoding) else "-"

    def say(self, text: str) -> str:
        """Text for this stream: what it can show, and no control characters (a name must not send escape codes)."""
        safe = "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)
        return legible(safe, self.encoding)

    def line(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style), soft_wrap=True)

    def paragraph(self, text: str, first: str = "", rest: str = "", style: str = "") -> None:
        width = max(self.width, len(rest) + 1)
        wrapped = textwrap.wrap(
            self.say(text),
            width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,  # 1e-06 is one word
        )
        for line in wrapped or [first]:
            self.line(line, style)

    def title(self, text: str) -> None:
        if text:
            self.paragraph(text, style="bold")

    def paint(self, block: Block) -> None:
        if isinstance(block, Plain):
            self.line(block.text.rstrip("\n"))
        elif isinstance(block, Headline):
            style = "bold" if block.good is None else "bold green" if block.good else "bold red"
            self.paragraph(block.text, style=style)
        elif isinstance(block, Fields):
            self.title(block.title)
            self.fields(block)
        elif isinstance(block, Grid):
            self.title(block.title)
            self.grid(block)
        elif isinstance(block, Notes):
            self.title(block.title)
            for item in block.items:
                # the rest of what a reviewer should know stands in Markdown, YAML and JSON
                text, first = (sentence(item)[0], "[ ] ") if block.checklist else (item, "- ")
                self.paragraph(text, first, " " * len(first))

    def fields(self, block: Fields) -> None:
        """Labels and values in two columns where there is room, below one another where not."""
        items = [(self.say(name), self.say(value)) for name, value in block.items]
        indent = max(cell_len(name) for name, _ in items) + _GAP
        longest = max(len(word) for _, value in items for word in value.split() or [""])
        for name, value in items:
            if indent + longest <= self.width:
                self.paragraph(value, name.ljust(indent + len(name) - cell_len(name)), " " * indent)
            else:
                self.paragraph(f"{name}:")
                self.paragraph(value, "  ", "  ")

    def grid(self, block: Grid) -> None:
        columns = [self.say(name) for name in block.columns]
        rows = [[self.say(cell) for cell in row] for row in block.rows]
        widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
        parts = self.split(widths)
        if not parts:
            self.stacked(columns, rows)
            return
        for index, part in enumerate(parts):
            if index:
                self.console.print()
            some = [[row[column] for column in part] for row in rows]
            self.lines([columns[column] for column in part], some, [widths[column] for column in part], block.emphasis)

    def split(self, widths: list[int]) -> list[list[int]]:
        """Columns of one grid, or of a few that repeat the first column; none if that does not fit."""
        if self.limit is None:
            return [list(range(len(widths)))]
        parts: list[list[int]] = []
        for column in range(1, len(widths)):
            if parts and sum(widths[one] + _GAP for one in parts[-1]) + widths[column] <= self.limit:
                parts[-1].append(column)
            elif widths[0] + _GAP + widths[column] <= self.limit:
                parts.append([0, column])
            else:
                return []
        return parts if len(parts) <= _MOST_PARTS else []

    def lines(self, columns: list[str], rows: list[list[str]], widths: list[int], emphasis: int | None) -> None:
        """A grid that fits."""
        table = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0), pad_edge=False)
        for index in range(len(columns)):
            table.add_column(justify="right" if numeric(rows, index) else "left", no_wrap=True)
        if any(columns):
            table.add_row(*(Text(name, style="dim") for name in columns))
            table.add_row(*(Text(self.rule * width, style="dim") for width in widths))
        for index, row in enumerate(rows):
            style = "bold" if index == emphasis else ""
            table.add_row(*(Text(cell, style=style) for cell in row))
        self.console.print(table)

    def stacked(self, columns: list[str], rows: list[list[str]]) -> None:
        """Every row as a little list: its first cell, then a line for each further one."""
        for row in rows:
            self.paragraph(" ".join(part for part in (columns[0], row[0]) if part), style="bold")
            for name, cell in zip(columns[1:], row[1:], strict=True):
                if cell:
                    text = f"{name}: {cell}" if name else cell
                    self.paragraph(text, "  ", "    ")
