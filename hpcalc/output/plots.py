"""Pictures of answers: figures by matplotlib, and charts of plain text for the terminal.

What is drawn is decided once, in :mod:`hpcalc.output.panels`; :mod:`hpcalc.output.figure` and
:mod:`hpcalc.output.textchart` only draw it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcalc.errors import InvalidInput
from hpcalc.files import write_file

__all__ = ["FORMATS", "panels_for", "plot_result"]

FORMATS = ("svg", "png", "pdf")


def plot_result(
    result: Any,
    target: str,
    *,
    width: int | None = None,
    encoding: str = "utf-8",
    size: tuple[float, float] | None = None,
) -> str:
    """Draw the answer of ``bound``, ``compare``, ``plan`` or ``utility``.

    Parameters
    ----------
    result : BoundResult, CompareResult, PlanResult or UtilityResult
    target : str
        A file name that ends in .svg, .png or .pdf; ``"-"`` for a chart of plain text, which is returned.
    width, encoding : int, str
        Columns of a text chart, 80 by default, and what the terminal can show.
    size : tuple of float, optional
        Width and height of one panel in inches.

    Raises
    ------
    InvalidInput, MissingExtra, DataFileError
        For another ending; for a figure without matplotlib; if the file cannot be written.

    Examples
    --------
    >>> from hpcalc import Poisson, utility
    >>> text = plot_result(utility(Poisson(10.0)), "-", width=60)
    >>> max(map(len, text.splitlines())) <= 60
    True
    """
    kind = Path(target).suffix.lower().lstrip(".")
    if target != "-" and kind not in FORMATS:
        raise InvalidInput("plot", target, "give a file name that ends in .svg, .png or .pdf, or - for the terminal")
    panels = panels_for(result)
    if target == "-":
        import textwrap

        from hpcalc.output.legible import legible
        from hpcalc.output.textchart import text_chart

        caption = textwrap.wrap(legible(panels[0].caption, encoding), width or 80) if panels else []
        charts = [text_chart(panel, width or 80, encoding) for panel in panels]
        return "\n".join([*("".join(f"{line}\n" for line in lines) for lines in [caption] if lines), *charts])
    if panels:
        from hpcalc.output.figure import figure_bytes

        write_file(target, figure_bytes(panels, kind, size))
    return ""


def panels_for(result: Any) -> list[Any]:
    """What is drawn of an answer; the curves of ``bound`` are evaluated here, by the room of questions."""
    from hpcalc.output.panels import panels_of
    from hpcalc.questions.curves import search_curves
    from hpcalc.questions.search_cost import BoundResult

    return list(panels_of(result, search_curves(result) if isinstance(result, BoundResult) else None))
