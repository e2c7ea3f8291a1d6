"""Panels as plain text, for terminals."""

from __future__ import annotations

import math
from itertools import pairwise

from hpcalc.output.legible import can_say, legible
from hpcalc.output.panels import Axis, Panel, Series

__all__ = ["text_chart"]

_HEIGHT = 16
_LEAST_WIDTH = 40
_MARKS = "ox+*#@%&$="
_RING = "O"


class _Scale:
    """From numbers to cells along one axis."""

    def __init__(self, axis: Axis, values: list[float], cells: int) -> None:
        self.log = axis.log
        usable = [value for value in values if value > 0.0] if axis.log else values
        low, high = min(usable, default=0.1), max(usable, default=1.0)
        low = axis.least if axis.least is not None else low
        high = axis.most if axis.most is not None else high
        if high <= low:
            spread = 0.1 * abs(low) or 1.0
            low, high = (low / 2.0, high * 2.0) if axis.log else (low - spread, high + spread)
        self.low, self.high, self.cells = low, high, cells

    def _at(self, value: float) -> float:
        return math.log(value) if self.log else value

    def place(self, value: float) -> float | None:
        """Position in cells, None outside the range."""
        if self.log and value <= 0.0:
            return None
        share = (self._at(value) - self._at(self.low)) / (self._at(self.high) - self._at(self.low))
        return share * (self.cells - 1) if -1e-9 <= share <= 1.0 + 1e-9 else None

    def ticks(self, most: int) -> list[float]:
        """Round numbers in the range, at most so many."""
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            for steps in ((1, 2, 5), (1,)):
                found = [
                    factor * 10.0**power
                    for power in range(math.floor(low), math.ceil(high) + 1)
                    for factor in steps
                    if self.low * 0.999 <= factor * 10.0**power <= self.high * 1.001
                ]
                if 2 <= len(found) <= most:
                    return found
            each = max(math.ceil(len(found) / most), 1)
            return found[::each] if len(found) >= 2 else [self.low, self.high]
        span = self.high - self.low
        unit = 10.0 ** math.floor(math.log10(span / max(most - 1, 1)))
        step = next(unit * factor for factor in (1, 2, 5, 10, 20) if span / (unit * factor) <= most - 1)
        first = math.ceil(self.low / step - 1e-9)
        return [(first + i) * step for i in range(math.floor(self.high / step + 1e-9) - first + 1)]


def _shown(value: float) -> str:
    if value == 0.0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def text_chart(panel: Panel, width: int, encoding: str = "utf-8") -> str:
    """A panel in plain text: lines of at most ``width`` columns (40 or more), with box drawing characters if
    sayable.
    """
    width = max(width, _LEAST_WIDTH)
    boxes = can_say("│─└┤┬░", encoding)
    bar, dash, corner, notch, tick, shade = "│─└┤┬░" if boxes else "|-+++."
    shaded = panel.shaded
    limit = panel.limit
    everything = [*panel.series, *([shaded] if shaded is not None else [])]
    y_scale = _Scale(panel.y, [y for series in everything for y in series.y], _HEIGHT)
    y_labels: dict[int, str] = {}
    for value in y_scale.ticks(6):
        place = y_scale.place(value)
        if place is not None:
            y_labels[round(place)] = _shown(value)
    margin = max(map(len, y_labels.values()), default=1) + 1
    columns = width - margin - 2
    x_scale = _Scale(panel.x, [x for series in everything for x in series.x] + ([limit.x] if limit else []), columns)
    cells = [[" "] * columns for _ in range(_HEIGHT)]
    if shaded is not None:
        _fill(cells, shaded, x_scale, y_scale, shade)
    column = x_scale.place(limit.x) if limit is not None else None
    for line in cells if column is not None else ():
        line[round(column or 0.0)] = bar
    for series in panel.series:
        _trace(cells, series, x_scale, y_scale)
    lines = [panel.title, panel.y.label]
    for row in reversed(range(_HEIGHT)):
        label = y_labels.get(row, "")
        lines.append(f"{label:>{margin}} {notch if label else bar}{''.join(cells[row])}")
    lines += _x_axis(x_scale, margin, columns, corner, dash, tick)
    lines.append(f"{'':{margin + 2}}{panel.x.label:^{columns}}")
    lines += _key(panel, width, shade, bar)
    return "".join(legible(line.rstrip(), encoding) + "\n" for line in lines)


def _fill(cells: list[list[str]], shaded: Series, x_scale: _Scale, y_scale: _Scale, shade: str) -> None:
    points = sorted(zip(shaded.x, shaded.y, strict=True))
    for column in range(x_scale.cells):
        x = x_scale.low + (x_scale.high - x_scale.low) * column / (x_scale.cells - 1)
        if x > points[-1][0]:
            break
        top = y_scale.place(min(_between(points, x), y_scale.high))
        for row in range(0 if top is None else int(top) + 1):
            cells[row][column] = shade


def _between(points: list[tuple[float, float]], x: float) -> float:
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x1 > x0 else y1
    return points[-1][1]


def _trace(cells: list[list[str]], series: Series, x_scale: _Scale, y_scale: _Scale) -> None:
    mark = _MARKS[series.style % len(_MARKS)]
    mark = _RING if series.ring else mark
    places = [(x_scale.place(x), y_scale.place(y)) for x, y in zip(series.x, series.y, strict=True)]
    inside = [(x, y) for x, y in places if x is not None and y is not None]
    for x, y in inside:
        cells[round(y)][round(x)] = mark
    if series.line:
        for (x0, y0), (x1, y1) in pairwise(inside):
            if series.steps:  # the value to the right holds
                y0 = y1
            steps = 2 * max(math.ceil(abs(x1 - x0)), math.ceil(abs(y1 - y0)), 1)
            for i in range(1, steps):
                column, row = round(x0 + (x1 - x0) * i / steps), round(y0 + (y1 - y0) * i / steps)
                cells[row][column] = mark


def _x_axis(scale: _Scale, margin: int, columns: int, corner: str, dash: str, tick: str) -> list[str]:
    axis, labels = [dash] * columns, [" "] * (columns + margin + 2)
    end = -1
    for value in scale.ticks(max(columns // 10, 3)):
        place = scale.place(value)
        if place is None:
            continue
        text = _shown(value)
        start = min(max(margin + 2 + round(place) - len(text) // 2, 0), len(labels) - len(text))
        if start <= end:
            continue
        axis[round(place)] = tick
        labels[start : start + len(text)] = text
        end = start + len(text)
    return [f"{'':{margin}} {corner}{''.join(axis)}", "".join(labels)]


def _key(panel: Panel, width: int, shade: str, bar: str) -> list[str]:
    """Which mark is which, as many to a line as fit."""
    entries = []
    for series in panel.series:
        if series.name:
            entries.append(f"{_RING if series.ring else _MARKS[series.style % len(_MARKS)]} {series.name}")
    if panel.shaded is not None:
        entries.append(f"{shade} {panel.shaded.name}")
    if panel.limit is not None:
        entries.append(f"{bar} {panel.limit.name}")
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + 3 + len(entry) <= width:
            lines[-1] += f"   {entry}"
        else:
            lines.append(f"  {entry}")
    return lines
