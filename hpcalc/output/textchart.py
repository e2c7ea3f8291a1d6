"""Panels as plain text, for terminals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np

from hpcalc.logspace import Array
from hpcalc.output.panels import Axis, Panel, Series
from hpcalc.output.streams import legible

_HEIGHT = 16
_LEAST_WIDTH = 40
_MARKS = "ox+*#@%&$="  # of the styles
_KINDS = {"area": "░", "limit": "│", "line": "", "steps": "", "points": "", "ring": "O"}  # marks; later ones lie above
_WHOLE = "\N{NO-BREAK SPACE}"
_FINE = 200  # points that a line has between two of its own


class _Scale:
    """From numbers to cells along one axis."""

    def __init__(self, axis: Axis, values: Sequence[float], cells: int) -> None:
        self.log, self.cells = axis.log, cells
        usable = [value for value in values if value > 0.0 or not axis.log]
        low = axis.least if axis.least is not None else min(usable, default=0.1)
        high = axis.most if axis.most is not None else max(usable, default=1.0)
        if high <= low:
            spread = 0.1 * abs(low) or 1.0
            low, high = (low / 2.0, high * 2.0) if axis.log else (low - spread, high + spread)
        self.ends = low, high

    def place(self, values: Sequence[float]) -> Array:
        """Positions in cells, below 0 or above the last cell outside the range."""
        with np.errstate(divide="ignore", invalid="ignore"):
            at, (low, high) = (np.log(numbers) if self.log else np.array(numbers) for numbers in (values, self.ends))
        return np.asarray((at - low) / (high - low) * (self.cells - 1))

    def ticks(self, most: int) -> list[tuple[int, str]]:
        """Cells of round numbers in the range, at most so many, with their labels."""
        low, high = self.ends
        if self.log:
            decades = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for factors in ((1.0, 2.0, 5.0), (1.0,)):
                values = np.outer(decades, factors).ravel()
                values = values[(values >= 0.999 * low) & (values <= 1.001 * high)]
                if 2 <= values.size <= most:
                    break
            values = values[:: max(math.ceil(values.size / most), 1)]
            values = values if values.size >= 2 else np.array(self.ends)
        else:
            rough = (high - low) / (most - 1)
            unit = 10.0 ** math.floor(math.log10(rough))
            step = unit * next(factor for factor in (1, 2, 5, 10, 20) if unit * factor >= rough)
            values = step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
        cells = np.round(self.place(values.tolist())).astype(int).clip(0, self.cells - 1)
        texts = (f"{value:.4g}".replace("e+0", "e").replace("e-0", "e-") for value in values.tolist())
        return list(zip(cells.tolist(), texts, strict=True))


def text_charts(panels: Sequence[Panel], width: int, encoding: str = "utf-8") -> str:
    """All panels below what was asked."""
    asked = [textwrap.fill(legible(panel.caption, encoding), width) + "\n" for panel in panels[:1]]
    return legible("\n".join([*asked, *(text_chart(panel, width) for panel in panels)]), encoding)


def text_chart(panel: Panel, width: int) -> str:
    """A panel in lines of at most ``width`` columns (40 or more)."""
    width = max(width, _LEAST_WIDTH)
    y_scale = _Scale(panel.y, [y for series in panel.series for y in series.y], _HEIGHT)
    y_labels = dict(y_scale.ticks(6))
    margin = max(map(len, y_labels.values()), default=1) + 1
    columns = width - margin - 2
    x_scale = _Scale(panel.x, [x for series in panel.series for x in series.x], columns)
    cells = np.full((_HEIGHT, columns), " ")

    def mark(series: Series) -> str:  # points without a name stand on the line of theirs
        return _KINDS[series.kind] or (_MARKS[series.style] if series.name else _KINDS["ring"])

    for series in sorted(panel.series, key=lambda series: list(_KINDS).index(series.kind)):
        for column, row in _cells(series, x_scale, y_scale):
            rows = {"area": slice(row + 1), "limit": slice(None)}.get(series.kind, slice(row, row + 1))
            cells[rows, column] = mark(series)
    lines = [panel.title, panel.y.label]
    for row in reversed(range(_HEIGHT)):
        label = y_labels.get(row, "")
        lines.append(f"{label:>{margin}} {'┤' if label else '│'}{''.join(cells[row])}")
    axis, labels, end = ["─"] * columns, [" "] * width, -1
    for column, text in x_scale.ticks(max(columns // 10, 3)):
        start = min(max(margin + 2 + column - len(text) // 2, 0), width - len(text))
        if start > end:
            axis[column], end = "┬", start + len(text)
            labels[start:end] = text
    lines += [f"{'':{margin}} └{''.join(axis)}", "".join(labels), f"{'':{margin + 2}}{panel.x.label:^{columns}}"]
    named = (f"{mark(series)} {series.name}".replace(" ", _WHOLE) for series in panel.series if series.name)
    lines += textwrap.wrap("   ".join(named), width, initial_indent="  ", subsequent_indent="  ",
                           break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return "".join(line.replace(_WHOLE, " ").rstrip() + "\n" for line in lines)


def _cells(series: Series, x_scale: _Scale, y_scale: _Scale) -> set[tuple[int, int]]:
    """The cells of a series, along its line where it has one."""
    x, y = x_scale.place(series.x), y_scale.place(series.y or [y_scale.ends[0]])
    if series.kind == "steps":  # the value to the right holds
        x, y = np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]
    if series.kind in ("line", "steps", "area"):
        at, fine = np.arange(x.size), np.linspace(0.0, x.size - 1.0, _FINE * (x.size - 1) + 1)
        x, y = np.interp(fine, at, x), np.interp(fine, at, y)
    inside = (x > -0.5) & (x < x_scale.cells - 0.5) & (y > -0.5) & (y < y_scale.cells - 0.5)
    return {(column, row) for column, row in np.stack([x[inside], y[inside]], axis=1).round().astype(int).tolist()}
