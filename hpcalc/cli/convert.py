"""``hpcalc convert``: from one kind of guarantee to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcalc.cli.command import Command
from hpcalc.cli.options import BASE, COMMON, select

if TYPE_CHECKING:
    from hpcalc.cli.settings import Settings


def _answer(settings: Settings) -> Any:
    from hpcalc.cli.build import base_from
    from hpcalc.questions import convert

    epsilon = settings["epsilon"]
    if epsilon is not None:
        if settings["to"] != "approx-dp":
            settings.refuse("epsilon", f"asks for a delta, which --to {settings['to']} has not: leave one of them out")
        if settings.stated("delta"):
            settings.refuse("epsilon", "asks for the delta of this epsilon: leave --delta out")
    return convert(
        base_from(settings),
        delta=settings["delta"] if epsilon is None else None,
        epsilon=epsilon,
        to=settings["to"],
        conversion=settings["conversion"],
        orders=settings["orders"],
    )


command = Command(
    "convert",
    _answer,
    select("convert", BASE, "epsilon", "to", "delta", "conversion", "orders", COMMON, hidden=("method",)),
    help="Convert the guarantee of one run: to (epsilon, delta) at --delta or at --epsilon, to a Renyi curve, to zCDP "
    "or to pure DP. The smallest valid answer is given, with the rule that gave it.",
    example="hpcalc convert --gaussian 2 --compose 10 --delta 1e-6",
)
