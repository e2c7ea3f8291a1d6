"""``hpcalc plan``: the search, or the noise, that a privacy target pays for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcalc.cli.command import Command
from hpcalc.cli.options import BASE, COMMON, PRIVACY, RUNS, select

if TYPE_CHECKING:
    from hpcalc.cli.settings import Settings


def _answer(settings: Settings) -> Any:
    from hpcalc.analysis import plan
    from hpcalc.cli.build import accounting, base_from, laws_from, runs_from, scores_from

    return plan(
        base_from(settings, optional=settings["solve_for"] not in (None, "runs")),
        runs_from(settings, optional=True),
        laws=laws_from(settings),
        target_epsilon=settings["target_epsilon"],
        success_rate=settings["success_rate"],
        scores=scores_from(settings),
        **accounting(settings),
    )


command = Command(
    "plan",
    _answer,
    select(
        "plan",
        BASE,
        RUNS,
        "law",
        "target-epsilon",
        "solve-for",
        "maximize",
        "optimize-eta",
        "target-success",
        "max-runs-p95",
        "success-rate",
        "scores",
        "column",
        "minimize",
        PRIVACY,
        "plot",
        COMMON,
    ),
    help="Solve for the law of K that meets a privacy target, or, with --solve-for and a law, for the least noise of "
    "the base. What is printed meets the target when it is fed back to 'hpcalc bound'.",
    example="hpcalc plan --zcdp 0.1 --target-epsilon 4 --success-rate 0.01",
)
