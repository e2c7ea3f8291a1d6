"""What one row of a comparison or a plan tells about a law of K."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hpcalc.errors import InvalidInput
from hpcalc.laws import Law, RunCount
from hpcalc.questions.measures import best_score, success_probability

__all__ = ["Aims", "finite_mean", "law_fields", "quantile_or_none", "readable"]

_LARGEST_INTEGER = 2**53

SCORES_COST = (
    "scores measured on the private data are not free: take them from public data, or count their cost in the "
    "guarantee of one run"
)


@dataclass(frozen=True)
class Aims:
    """What a search is run for.

    Attributes
    ----------
    success_rate : float or None
        Chance that one run is good.
    scores : tuple of float or None
        Scores of single runs.
    minimize : bool
        Whether the least score is best.
    """

    success_rate: float | None = None
    scores: tuple[float, ...] | None = None
    minimize: bool = False

    @classmethod
    def of(cls, success_rate: float | None, scores: Iterable[float] | None, minimize: bool) -> Aims:
        """Check what was given."""
        if success_rate is not None and not 0.0 < success_rate <= 1.0:
            raise InvalidInput("success_rate", success_rate, "give a probability with 0 < success_rate <= 1")
        return cls(success_rate, None if scores is None else tuple(scores), minimize)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be said beside scores."""
        return () if self.scores is None else (SCORES_COST,)

    def success(self, runs: RunCount) -> float | None:
        """Chance that the search finds a good run."""
        if self.success_rate is None or not isinstance(runs, Law):
            return None
        return success_probability(runs, self.success_rate)

    def score(self, runs: RunCount) -> float | None:
        """Expected best score."""
        if self.scores is None or not isinstance(runs, Law):
            return None
        return best_score(runs, self.scores, minimize=self.minimize).expected

    def fields(self, runs: RunCount) -> dict[str, float]:
        """The measures that were asked for, by their published keys."""
        found = {
            "expected_quantile": runs.expected_quantile if isinstance(runs, Law) else None,
            "success_probability": self.success(runs),
            "expected_score": self.score(runs),
        }
        return {key: value for key, value in found.items() if value is not None}


def quantile_or_none(runs: RunCount, p: float) -> int | float | None:
    """Quantile of K; a float where it is too large for others to read as a whole number, None beyond 1e300."""
    try:
        return readable(runs.quantile(p))
    except InvalidInput:
        return None


def readable(count: int) -> int | float:
    """The number itself up to 2^53, a float beyond."""
    return count if count <= _LARGEST_INTEGER else float(count)


def law_fields(runs: RunCount) -> dict[str, Any]:
    """``dist`` and ``parameters``."""
    return {"dist": runs.name, "parameters": dict(runs.parameters())}


def finite_mean(runs: RunCount) -> float | None:
    """``E[K]``, None where it exceeds the largest double."""
    return runs.mean if math.isfinite(runs.mean) else None
