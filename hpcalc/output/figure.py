"""Panels as a figure, by matplotlib."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hpcalc.errors import MissingExtra
from hpcalc.output.panels import Axis, Panel, Series

__all__ = ["figure_bytes", "make_figure"]

# Okabe and Ito's palette and two more: told apart in grey, too, by line styles and markers. The first is what a search
# is held against; the others are the laws of hpcalc.output.panels.
_COLOURS = ("#000000", "#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#009E73", "#7A5C00", "#56B4E9", "#882255",
            "#777700")  # fmt: skip
_LINES: tuple[Any, ...] = (":", "-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)), (0, (3, 3)),
                           (0, (8, 2, 1, 2)), (0, (2, 1)))  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*", "<", ">")
_PANEL = (3.7, 3.1)
_DPI = 160


def figure_bytes(panels: Sequence[Panel], kind: str, size: tuple[float, float] | None = None) -> bytes:
    """The figure as a file's content (``svg``, ``png`` or ``pdf``), its panels of a size in inches; same panels, same
    bytes.
    """
    no_date: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Creator": "hpcalc"},
        "pdf": {"CreationDate": None, "Creator": "hpcalc", "Producer": "hpcalc"},
        "png": {"Software": "hpcalc"},
    }
    buffer = io.BytesIO()
    with make_figure(panels, size) as figure:
        figure.savefig(buffer, format=kind, metadata=no_date[kind])
    return buffer.getvalue()


@contextmanager
def make_figure(panels: Sequence[Panel], size: tuple[float, float] | None = None) -> Iterator[Any]:
    """The figure itself, while matplotlib has the settings it needs."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra('--plot needs matplotlib: pip install "hpcalc[plot]"') from error
    wide, high = size if size is not None else _PANEL
    settings: dict[str, Any] = {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same picture everywhere
        "font.size": 9.0 if high >= 2.8 else 8.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.unicode_minus": False,
        "svg.hashsalt": "hpcalc",
        "svg.fonttype": "path",
    }
    plain: Any = mpl.rcParamsDefault  # not the user's own: the same picture everywhere
    whole: Any = {**plain, **settings, "backend": mpl.rcParams["backend"]}
    with mpl.rc_context(whole):
        width = wide * len(panels)
        caption = textwrap.wrap(panels[0].caption, max(int(width / 0.075), 20))
        columns, lines = _legend_shape(panels, width)
        height = high + 0.17 * len(caption) + 0.19 * lines  # the panels keep their size
        figure = Figure(figsize=(width, height), layout="constrained", dpi=_DPI)
        if caption:
            figure.suptitle("\n".join(caption), fontsize="medium")
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(all_axes, panels, strict=True):
            _draw(axes, panel)
        _legend(figure, all_axes, columns)
        yield figure


def _draw(axes: Any, panel: Panel) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_title(panel.title)
    axes.set_xlabel(panel.x.label)
    axes.set_ylabel(panel.y.label)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    shaded = panel.shaded
    if shaded is not None:
        bottom = panel.y.least if panel.y.least is not None else min(shaded.y)
        # up to the left edge: every smaller ε is out of reach as well
        left = panel.x.least if panel.x.least is not None else min(shaded.x)
        x, y = (left, *shaded.x), (max(shaded.y), *shaded.y)
        axes.fill_between(x, y, bottom, color="#d9d9d9", linewidth=0.0, label=shaded.name)
    for series in panel.series:
        _add(axes, series)
    if panel.limit is not None:
        axes.axvline(panel.limit.x, color="#b00000", linewidth=1.2, linestyle=(0, (6, 3)), label=panel.limit.name)
    for axis, side, scale in ((axes.xaxis, panel.x, axes.set_xscale), (axes.yaxis, panel.y, axes.set_yscale)):
        if side.log:
            scale("log")
            low, high = axis.get_data_interval()
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,), numticks=6))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
    _limit(axes, panel.x, axes.get_xlim(), axes.set_xlim)
    _limit(axes, panel.y, axes.get_ylim(), axes.set_ylim)


def _add(axes: Any, series: Series) -> None:
    style = series.style
    colour, marker = _COLOURS[style % len(_COLOURS)], _MARKERS[style % len(_MARKERS)]
    looks: dict[str, Any]
    if series.line and series.steps:
        looks = {"linestyle": "-", "linewidth": 1.5, "drawstyle": "steps-pre", "label": series.name}
    elif series.line:
        # markers of neighbouring series do not fall on each other
        every = (style % 4, max(len(series.x) // 5, 1)) if len(series.x) > 6 else 1
        looks = {"linestyle": _LINES[style % len(_LINES)], "linewidth": 1.5, "marker": marker, "markevery": every,
                 "markersize": 4.5, "label": series.name}  # fmt: skip
    else:
        looks = {"linestyle": "none", "label": series.name or "_", "zorder": 3.0, "clip_on": False}
        looks |= {"marker": "o", "markersize": 11.0, "markerfacecolor": "none", "markeredgecolor": colour,
                  "markeredgewidth": 1.6} if series.ring else {
                  "marker": marker, "markersize": 8.0, "markerfacecolor": colour, "markeredgecolor": "white",
                  "markeredgewidth": 0.8}  # fmt: skip
    axes.plot(series.x, series.y, color=colour, **looks)


def _limit(axes: Any, axis: Axis, now: tuple[float, float], assign: Any) -> None:
    low, high = now
    assign(axis.least if axis.least is not None else low, axis.most if axis.most is not None else high)


def _legend_shape(panels: Sequence[Panel], width: float) -> tuple[int, int]:
    """Columns and lines of the legend."""
    named = [part for panel in panels for part in (*panel.series, panel.shaded, panel.limit) if part is not None]
    names = {part.name for part in named if part.name}
    longest = max(map(len, names), default=1)
    columns = max(1, min(len(names), int(width / (0.062 * longest + 0.65))))
    return columns, -(-len(names) // columns)


def _legend(figure: Any, all_axes: Sequence[Any], columns: int) -> None:
    """One legend below all panels: it can cover nothing."""
    handles: dict[str, Any] = {}
    for axes in all_axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, frameon=False, handlelength=3.5)
