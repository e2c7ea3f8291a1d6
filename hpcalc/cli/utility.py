"""``hpcalc utility``: what a random number of runs is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcalc.cli.command import Command
from hpcalc.cli.options import COMMON, PRIVACY, RUNS, select

if TYPE_CHECKING:
    from hpcalc.cli.settings import Settings


def _answer(settings: Settings) -> Any:
    from hpcalc.cli.build import runs_from, scores_from
    from hpcalc.questions import utility

    return utility(
        runs_from(settings),
        success_rate=settings["success_rate"],
        scores=scores_from(settings),
        minimize=settings["minimize"],
    )


command = Command(
    "utility",
    _answer,
    select("utility", RUNS, "success-rate", "scores", "column", "minimize", "plot", COMMON, hidden=PRIVACY),
    help="What the best of K runs is worth, and how long it takes: expected quantile, chance of a good run, expected "
    "best score, and the quantiles of K itself.",
    example="hpcalc utility --dist poisson --mu 10 --success-rate 0.01",
)
