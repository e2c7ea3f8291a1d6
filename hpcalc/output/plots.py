"""Pictures of answers: the panels of :mod:`hpcalc.output.panels` by matplotlib."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hpcalc.errors import InvalidInput, MissingExtra
from hpcalc.files import write_file
from hpcalc.output.panels import Axis, Panel, Series, panels_of
from hpcalc.output.streams import stdout_encoding, terminal_width
from hpcalc.output.textchart import text_charts

# Okabe and Ito's palette and two more: told apart in grey, too, by line styles and markers. The first is what a search
# is held against; the others are the laws of hpcalc.output.panels.
_COLOURS = ("#000000", "#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#009E73", "#7A5C00", "#56B4E9", "#882255",
            "#777700")  # fmt: skip
_LINES: tuple[Any, ...] = (":", "-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)), (0, (3, 3)),
                           (0, (8, 2, 1, 2)), (0, (2, 1)))  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*", "<", ">")
_PANEL = (3.7, 3.1)  # inches
# endings, and what makes the same answer the same bytes
_KINDS: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
# not the user's own, and a font that comes with matplotlib: the same picture everywhere
_SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9.0, "axes.spines.top": False,
    "axes.spines.right": False, "axes.unicode_minus": False, "svg.hashsalt": "hpcalc", "svg.fonttype": "path",
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#dddddd", "grid.linewidth": 0.6,
}  # fmt: skip


class Picture(NamedTuple):
    """A drawn answer, which a notebook shows by itself; ``svg`` is its text."""

    svg: str

    def __repr__(self) -> str:
        return f"<Picture, {len(self.svg)} characters of SVG: answer.plot('file.svg') writes a file>"

    def _repr_svg_(self) -> str:
        return self.svg


def picture(answer: Any, path: str | None = None) -> Picture | str | None:
    """Draw an answer into a file, for ``"-"`` as a chart of text, else for a notebook; None where nothing is left."""
    panels, buffer = panels_of(answer), io.BytesIO()
    if path == "-":
        return text_charts(panels, terminal_width() or 80, stdout_encoding())
    kind = "svg" if path is None else Path(path).suffix.lower().lstrip(".")
    if kind not in _KINDS:
        raise InvalidInput("plot", path, "give a file name that ends in .svg, .png or .pdf, or - for the terminal")
    if not panels:
        return None
    with make_figure(panels) as figure:
        figure.savefig(buffer, format=kind, metadata=_KINDS[kind])
    if path is None:
        return Picture(buffer.getvalue().decode())
    write_file(path, buffer.getvalue())
    return None


@contextmanager
def make_figure(panels: Sequence[Panel]) -> Iterator[Any]:
    """The figure itself, while matplotlib has the settings it needs."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra('--plot needs matplotlib: pip install "hpcalc[plot]"') from error
    settings: Any = {**mpl.rcParamsDefault, **_SETTINGS, "backend": mpl.rcParams["backend"]}
    with mpl.rc_context(settings):
        width = _PANEL[0] * len(panels)
        caption = textwrap.wrap(panels[0].caption.replace(" = ", "\xa0=\xa0"), max(int(width / 0.075), 20))
        names = {series.name for panel in panels for series in panel.series if series.name}
        columns = max(1, min(len(names), int(width / (0.062 * max(map(len, names), default=1) + 0.65))))
        # the panels keep their size
        height = _PANEL[1] + 0.17 * len(caption) + 0.19 * -(-len(names) // columns)
        figure = Figure(figsize=(width, height), layout="constrained", dpi=160)
        figure.suptitle("\n".join(caption), fontsize="medium")
        handles: dict[str, Any] = {}
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _draw(axes, panel)
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(name, handle)
        # one legend below all panels: it can cover nothing
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, frameon=False,
                      handlelength=3.5)  # fmt: skip
        yield figure


def _draw(axes: Any, panel: Panel) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set(title=panel.title, xlabel=panel.x.label, ylabel=panel.y.label)
    for series in panel.series:
        _add(axes, series, panel.y)
    for axis, side, scale in ((axes.xaxis, panel.x, axes.set_xscale), (axes.yaxis, panel.y, axes.set_yscale)):
        if side.log:
            scale("log")
            low, high = axis.get_data_interval()
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,), numticks=6))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
    axes.set_xlim(panel.x.least, panel.x.most)
    axes.set_ylim(panel.y.least, panel.y.most)


def _add(axes: Any, series: Series, y: Axis) -> None:
    style, marker = series.style, _MARKERS[series.style]
    # markers of neighbouring lines do not fall on each other
    every = (style % 4, max(len(series.x) // 5, 1)) if len(series.x) > 6 else 1
    looks: dict[str, dict[str, Any]] = {
        "line": {"linewidth": 1.5, "linestyle": _LINES[style], "marker": marker, "markevery": every, "markersize": 4.5},
        "steps": {"linewidth": 1.5, "drawstyle": "steps-pre"},
        "points": {"linestyle": "none", "zorder": 3.0, "clip_on": False, "marker": marker, "markersize": 8.0,
                   "markeredgecolor": "white", "markeredgewidth": 0.8},
        "ring": {"linestyle": "none", "zorder": 3.0, "clip_on": False, "marker": "o", "markersize": 11.0,
                 "markerfacecolor": "none", "markeredgewidth": 1.6},
    }  # fmt: skip
    if series.kind == "area":
        bottom = y.least if y.least is not None else min(series.y)
        axes.fill_between(series.x, series.y, bottom, color="#d9d9d9", linewidth=0.0, label=series.name)
    elif series.kind == "limit":
        axes.axvline(series.x[0], color="#b00000", linewidth=1.2, linestyle=(0, (6, 3)), label=series.name)
    else:
        axes.plot(series.x, series.y, color=_COLOURS[style], label=series.name or "_", **looks[series.kind])
