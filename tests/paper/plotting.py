"""How every figure here looks: one line style per law, readable in greyscale, saved as SVG and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Dark to light, and no two neighbours share a dash pattern or a marker: the lines stay apart without colour.
STYLES: dict[str, dict[str, Any]] = {
    "naive": {"color": "0.45", "linestyle": (0, (1, 1.2)), "marker": "x"},
    "fixed": {"color": "0.45", "linestyle": (0, (1, 1.2)), "marker": "x"},
    "poisson": {"color": "#d55e00", "linestyle": (0, (6, 2)), "marker": "o"},
    "eta=1": {"color": "#0072b2", "linestyle": (0, (6, 2, 1, 2)), "marker": "s"},
    "eta=0.5": {"color": "#009e73", "linestyle": (0, (3, 1.5)), "marker": "^"},
    "eta=0": {"color": "#7a3b7a", "linestyle": "-", "marker": "D"},
    "eta=-0.5": {"color": "#222222", "linestyle": (0, (8, 2, 1, 2, 1, 2)), "marker": "v"},
    "single": {"color": "black", "linestyle": (0, (1, 3)), "marker": ""},
}


def apply() -> None:
    """Set matplotlib up: no display, text as text in the SVG, the same bytes on every run."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({
        "axes.grid": True, "axes.labelsize": 11, "axes.titlesize": 11, "axes.spines.right": False,
        "axes.spines.top": False, "figure.constrained_layout.use": True, "font.size": 10, "grid.color": "0.88",
        "grid.linewidth": 0.6, "legend.fontsize": 9, "legend.framealpha": 0.9, "lines.linewidth": 1.6,
        "lines.markersize": 4.5, "savefig.dpi": 130, "svg.fonttype": "none", "svg.hashsalt": "hpcalc",
    })  # fmt: skip


def line(ax: Axes, style: str, x: Any, y: Any, label: str) -> None:
    """One curve in the style of its law, with about eight markers whatever the number of points."""
    ax.plot(x, y, **STYLES[style], markevery=max(1, len(x) // 8), label=label)


def shade(ax: Axes, style: str, upper: tuple[Any, Any], lower: tuple[Any, Any]) -> None:
    """What lies between two curves, which may differ in x or in y, with a thin edge."""
    ends = [[*above, *below[::-1]] for above, below in zip(upper, lower, strict=True)]
    color = STYLES[style]["color"]
    ax.fill(*ends, facecolor=color, alpha=0.18, linewidth=0)
    ax.plot(*lower, color=color, linewidth=0.5)


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name.svg`` and ``name.png`` and forget the figure."""
    import matplotlib.pyplot as plt

    paths = [folder / f"{name}.svg", folder / f"{name}.png"]
    for path in paths:
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
    return paths
