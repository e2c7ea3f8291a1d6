"""``hpcalc bound``: what the whole search costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcalc.cli.command import Command
from hpcalc.cli.options import BASE, COMMON, PRIVACY, RUNS, select

if TYPE_CHECKING:
    from hpcalc.cli.settings import Settings


def _answer(settings: Settings) -> Any:
    from hpcalc.cli.build import accounting, base_from, runs_from
    from hpcalc.questions import bound

    return bound(
        base_from(settings),
        runs_from(settings),
        max_epsilon=settings["max_epsilon"],
        explain=settings["explain"],
        **accounting(settings),
    )


command = Command(
    "bound",
    _answer,
    select("bound", BASE, RUNS, "max-epsilon", PRIVACY, "profile-out", "rdp-out", "plot", COMMON),
    help="Privacy cost of running the base algorithm K times and releasing only the best run, beside the cost of one "
    "run, of naive composition, and a lower bound that no analysis can beat.",
    example="hpcalc bound --dist poisson --mu 10 --zcdp 0.1 --delta 1e-6 --max-epsilon 5",
)
