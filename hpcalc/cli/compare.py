"""``hpcalc compare``: laws of K side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcalc.cli.command import Command
from hpcalc.cli.options import BASE, COMMON, PRIVACY, select

if TYPE_CHECKING:
    from hpcalc.cli.settings import Settings

_FOOTING = ("mean", "at_epsilon", "at_success")


def _answer(settings: Settings) -> Any:
    from hpcalc.analysis import compare
    from hpcalc.cli.build import accounting, base_from, laws_from, scores_from

    asked = [key for key in _FOOTING if settings[key] is not None]
    if len(asked) > 1:
        settings.refuse(asked[1], f"compares on another footing than --{asked[0].replace('_', '-')}: keep one of them")
    return compare(
        base_from(settings),
        laws_from(settings),
        success_rate=settings["success_rate"],
        scores=scores_from(settings),
        sweep=settings["sweep"],
        selection=settings["selection"],
        **{key: settings[key] for key in _FOOTING},
        **accounting(settings),
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
