"""``hpcalc draw``: one number of runs, from the operating system's entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpcalc import __version__
from hpcalc.cli.command import Command
from hpcalc.cli.options import COMMON, PRIVACY, RUNS, select
from hpcalc.errors import ExitCode

if TYPE_CHECKING:
    from hpcalc.cli.settings import Settings
    from hpcalc.laws import RunCount

_MOST = 10_000_000  # values of one call; they are held in memory


@dataclass(frozen=True)
class DrawResult:
    """Drawn values of K.

    Attributes
    ----------
    law : RunCount
        The law they were drawn from.
    runs : tuple of int
        The values.
    """

    law: RunCount
    runs: tuple[int, ...]

    exit_code = ExitCode.OK

    def document(self) -> dict[str, Any]:
        """Plain document, as every result has it."""
        return {
            "hpcalc_version": __version__,
            "command": "draw",
            "law": {"dist": self.law.name, **self.law.parameters()},
            "runs": list(self.runs),
            "warnings": [],
        }


def _answer(settings: Settings) -> DrawResult:
    import random

    from hpcalc.cli.build import runs_from

    if settings["count"] > _MOST:
        settings.refuse("count", f"give at most {_MOST}")
    law = runs_from(settings)
    entropy = random.SystemRandom()
    return DrawResult(law, tuple(law.sample(entropy) for _ in range(settings["count"])))


command = Command(
    "draw",
    _answer,
    select("draw", RUNS, "count", COMMON, hidden=PRIVACY),
    help="Draw the number of runs K of one search from its law, with the operating system's entropy. The guarantee "
    "holds for a K that is drawn fresh, once, and never revealed.",
    example="hpcalc draw --dist poisson --mu 10",
)
