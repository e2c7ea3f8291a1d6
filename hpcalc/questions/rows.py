"""What one row of a comparison or a plan tells about a law of K, and what it is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hpcalc.errors import InvalidInput
from hpcalc.laws import Law, RunCount
from hpcalc.logspace import Upper
from hpcalc.questions.measures import best_score, success_probability

__all__ = ["Aims", "finite", "law_document", "length_fields", "quantile_or_none", "upper_or_none"]

_LARGEST_INTEGER = 2**53
_MEASURES = {"quantile": "expected_quantile", "success": "success_probability", "score": "expected_score"}

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

    def goal(self, maximize: str | None) -> str:
        """What is maximized: as asked, else the score if scores were given, else success, else the quantile."""
        if maximize is None:
            return "score" if self.scores is not None else "success" if self.success_rate is not None else "quantile"
        if maximize not in (*_MEASURES, "runs"):
            raise InvalidInput("maximize", maximize, f"give one of {', '.join((*_MEASURES, 'runs'))}")
        if maximize == "success" and self.success_rate is None:
            raise InvalidInput("maximize", maximize, "needs the chance that one run is good: give --success-rate")
        if maximize == "score" and self.scores is None:
            raise InvalidInput("maximize", maximize, "needs scores of single runs: give --scores")
        return maximize

    def worth(self, goal: str, runs: RunCount) -> float:
        """How much a law is worth under a goal (more is better; -inf where it cannot be said)."""
        if goal == "runs":
            return runs.log_mean
        value = self.fields(runs).get(_MEASURES[goal], -math.inf)
        return -value if goal == "score" and self.minimize else value

    def told(self, goal: str, runs: RunCount) -> tuple[str, str, str]:
        """The goal in words: a superlative, the measure, a law's value."""
        worth = self.worth(goal, runs)
        return {
            "quantile": ("highest", "expected quantile", f"{worth:.4f}"),
            "success": ("highest", "chance of success", f"{worth:.4f}"),
            "score": ("best", "expected score", f"{-worth if self.minimize else worth:.5g}"),
            "runs": ("largest", "mean number of runs", f"{runs.mean:.4g}"),
        }[goal]


def quantile_or_none(runs: RunCount, p: float) -> int | float | None:
    """Quantile of K; a float where it is too large for others to read as a whole number, None beyond 1e300."""
    try:
        count = runs.quantile(p)
    except InvalidInput:
        return None
    return count if count <= _LARGEST_INTEGER else float(count)


def finite(value: float) -> float | None:
    """The number, None where it is infinite."""
    return value if math.isfinite(value) else None


def upper_or_none(epsilon: float) -> Upper | None:
    """An upper bound for a document; None where it is infinite."""
    return Upper(epsilon) if math.isfinite(epsilon) else None


def law_document(runs: RunCount) -> dict[str, Any]:
    """A law of K under the published keys: its name, its parameters, its mean, and the chance of no run."""
    return {"dist": runs.name, **runs.parameters(), "mean": finite(runs.mean), "prob_zero": runs.prob_zero}


def length_fields(runs: RunCount, *percents: int) -> dict[str, Any]:
    """How long a search takes: the mean of K, quantiles of it, and the chance of no run."""
    late = {f"p{percent}_runs": quantile_or_none(runs, percent / 100.0) for percent in percents}
    return {"mean_runs": finite(runs.mean), **late, "prob_zero": runs.prob_zero}
