"""``hpcalc compare``: laws of K side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcalc.cli.command import Command
from hpcalc.cli.options import BASE, COMMON, PRIVACY, select

if TYPE_CHECKING:
    from hpcalc.cli.settings import Settings

_FOOTING = ("mean", "at_epsilon", "at_success", "sweep")


def _answer(settings: Settings) -> Any:
    from hpcalc.cli.build import accounting, base_from, laws_named, scores_from
    from hpcalc.cli.execute import Progress
    from hpcalc.questions import compare

    asked = [key for key in _FOOTING if settings[key] is not None]
    if len(asked) > 1 and not (settings["selection"] is not None and set(asked) == {"mean", "at_epsilon"}):
        settings.refuse(asked[1], f"compares on another footing than --{asked[0].replace('_', '-')}: keep one of them")
    if settings["sensitivity"] is not None and settings["selection"] is None:
        settings.refuse("sensitivity", "speaks about the candidates' scores: give --selection too")
    with Progress() as progress:
        if settings["selection"] is not None:
            return _selection(settings, progress)
        return compare(
            base_from(settings),
            laws_named(settings),
            success_rate=settings["success_rate"],
            scores=scores_from(settings),
            minimize=bool(settings["minimize"]),
            curves=settings["plot"] is not None,
            progress=progress,
            **{key: settings[key] for key in _FOOTING},
            **accounting(settings),
        )


def _selection(settings: Settings, progress: Any) -> Any:
    from hpcalc.cli.build import base_or_none, laws_named
    from hpcalc.questions.selection import compare_selection

    for key in ("at_success", "sweep", "success_rate", "scores", "plot"):
        if settings[key] is not None:
            settings.refuse(key, "does not go with --selection, which asks for the error of choosing one candidate")
    return compare_selection(
        settings["selection"],
        settings["sensitivity"] if settings["sensitivity"] is not None else 1.0,
        settings["at_epsilon"],
        base=base_or_none(settings),
        laws=laws_named(settings),
        mean=settings["mean"],
        delta=settings["delta"],
        progress=progress,
    )


command = Command(
    "compare",
    _answer,
    select(
        "compare",
        BASE,
        "law",
        "mean",
        "at-epsilon",
        "at-success",
        "sweep",
        "selection",
        "sensitivity",
        "success-rate",
        "scores",
        "column",
        "minimize",
        PRIVACY,
        "plot",
        COMMON,
    ),
    help="Laws of the number of runs side by side: at one mean, at one epsilon, or at one success probability. Without "
    "--law: Poisson, TNB with eta -0.5, 0, 0.5 and 1, and a fixed number of runs.",
    example="hpcalc compare --zcdp 0.1 --mean 10 --success-rate 0.01",
)
