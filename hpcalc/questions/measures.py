"""``utility``: what a random number of runs is worth, and how long the search takes.

Everything follows from the law of K alone: a good candidate is found unless every run misses it, and the best of K
scores is distributed as ``f`` of one run's distribution function, f the probability generating function of K.

References
----------
Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022, Section 3.5, Appendix A.2.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcalc.answer import Answer
from hpcalc.errors import InvalidInput, checked_number, require
from hpcalc.laws import Law, RunCount, checked_law, modified
from hpcalc.logspace import Prob
from hpcalc.questions.rows import finite, head, known, law_document, length_fields

_SCORES_COST = (
    "scores measured on the private data are not free: take them from public data, or count their cost in the "
    "guarantee of one run"
)
NEEDS_RATE = "needs the chance that one run is good: give --success-rate"
#: What a plan may maximize: its key, and a superlative, its name and its digits for people.
_GOALS = {
    "quantile": ("expected_quantile", "highest", "expected quantile", ".4f"),
    "success": ("success_probability", "highest", "chance of success", ".4f"),
    "score": ("expected_score", "best", "expected score", ".5g"),
    "runs": ("mean_runs", "largest", "mean number of runs", ".4g"),
}


@dataclass(frozen=True)
class BestScore:
    """The best score a search returns, given that it runs at all."""

    expected: float
    median: float
    p5: float
    p95: float
    single_run: float  # mean score of one run
    count: int
    prob_best_given: float  # that it equals the sample's best: near 1 the sample says little about so long a search


def best_score(law: Law, scores: Iterable[float], *, minimize: bool = False) -> BestScore:
    """Best score of a search whose single runs score like the given sample: any order, ties allowed.

    With G the sample's distribution function, the best of K scores is at most x with probability f(G(x)): the value
    ``x_i`` has the weight ``f(G_i) - f(G_{i-1})``.
    """
    try:
        sample = np.array([float(x) for x in scores], dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput("scores", scores, "give numbers") from None
    require(("scores", "no score", sample.size > 0, "give at least one single-run score"))
    bad = next((x for x in sample.tolist() if not math.isfinite(x)), None)
    require(("scores", bad, bad is None, "give finite scores: a run that failed counts as the worst score"))
    values, counts = np.unique(-sample if minimize else sample, return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])
    with np.errstate(divide="ignore"):
        edges = Prob(np.log((sample.size - below) / sample.size), np.log(below / sample.size))
    given, log_width = modified(law, at_least_one=True), np.log(counts / sample.size)
    weights = np.exp(given.log_block(edges.take(slice(1, None)), edges.take(slice(None, -1)), log_width))
    weights /= weights.sum()
    top = float(weights[-1])
    if minimize:
        values, weights = -values[::-1], weights[::-1]
    # rounding in the sum must not push a quantile to the next score
    places = np.searchsorted(np.cumsum(weights), np.array([0.5, 0.05, 0.95]) * (1.0 - 1e-12))
    median, low, high = values[np.minimum(places, values.size - 1)].tolist()
    # summed from the best end, the differences to one fixed score keep their digits
    shift = float(values[-1])
    expected = shift + math.fsum(((values - shift) * weights).tolist())
    single = math.fsum(sample.tolist()) / sample.size
    return BestScore(expected, median, low, high, single, int(sample.size), top)


@dataclass(frozen=True)
class Aims:
    """What a search is run for: the chance that one run is good, scores of single runs, whether the least is best."""

    success_rate: float | None = None
    scores: tuple[float, ...] | None = None
    minimize: bool = False

    @classmethod
    def of(cls, success_rate: float | None, scores: Iterable[float] | None, minimize: bool) -> Aims:
        """Check what was given."""
        if success_rate is not None:
            remedy = "give a probability with 0 < success_rate <= 1"
            success_rate = checked_number("success_rate", success_rate, remedy, lambda x: 0.0 < x <= 1.0)
        return cls(success_rate, None if scores is None else tuple(scores), minimize)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be said beside scores."""
        return () if self.scores is None else (_SCORES_COST,)

    def success(self, runs: RunCount) -> float | None:
        """Chance ``1 - f(1-p)`` that the search finds a good run, when each is good with probability p."""
        if self.success_rate is None or not isinstance(runs, Law):
            return None
        return math.exp(float(runs.success(Prob.from_u(self.success_rate)).log_u))

    def score(self, runs: RunCount) -> BestScore | None:
        """The best score."""
        if self.scores is None or not isinstance(runs, Law):
            return None
        return best_score(runs, self.scores, minimize=self.minimize)

    def fields(self, runs: RunCount) -> dict[str, float]:
        """The measures that were asked for, by their published keys."""
        score = self.score(runs)
        return known(
            expected_quantile=runs.expected_quantile if isinstance(runs, Law) else None,
            success_probability=self.success(runs),
            expected_score=None if score is None else score.expected,
        )

    def goal(self, maximize: str | None) -> str:
        """What is maximized: as asked, else the score if scores were given, else success, else the quantile."""
        if maximize is None:
            return "score" if self.scores is not None else "success" if self.success_rate is not None else "quantile"
        rate, scores = self.success_rate is not None, self.scores is not None
        require(
            ("maximize", maximize, maximize in _GOALS, f"give one of {', '.join(_GOALS)}"),
            ("maximize", maximize, maximize != "success" or rate, NEEDS_RATE),
            ("maximize", maximize, maximize != "score" or scores, "needs scores of single runs: give --scores"),
        )
        return maximize

    def worth(self, goal: str, runs: RunCount) -> float:
        """How much a law is worth under a goal (more is better; -inf where it cannot be said)."""
        if goal == "runs":
            return runs.log_mean
        value = self.fields(runs).get(_GOALS[goal][0], -math.inf)
        return -value if goal == "score" and self.minimize else value

    def told(self, goal: str, runs: RunCount) -> tuple[str, str, str]:
        """The goal in words: a superlative, the measure, a law's value."""
        key, most, name, digits = _GOALS[goal]
        return most, name, f"{runs.mean if goal == 'runs' else self.fields(runs).get(key, -math.inf):{digits}}"


@dataclass(frozen=True, eq=False, repr=False)
class UtilityResult(Answer):
    """What a law of K is worth; what is None was not asked, or not known where the first accepted run is released."""

    runs: RunCount
    aims: Aims
    expected_quantile: float | None  # E[K/(K+1)]
    success_probability: float | None = None
    score: BestScore | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        empty, score = self.runs.prob_zero, self.score
        out = [f"with probability {empty:.4g} the search runs nothing"] if empty > 0.5 else []
        out += self.aims.warnings
        if score is not None and score.prob_best_given > 0.5:
            reached = f"the best score given is reached with probability {score.prob_best_given:.3g}"
            out.append(f"{reached}: {score.count} scores say little about a search of this length")
        return tuple(out)

    def document(self) -> dict[str, Any]:
        told = {**vars(self.score), "best_is": "smallest" if self.aims.minimize else "largest"} if self.score else {}
        found = known(
            expected_quantile=self.expected_quantile, success_rate=self.aims.success_rate,
            success_probability=self.success_probability, expected_score=told.pop("expected", None), score=told or None,
        )  # fmt: skip
        out: dict[str, Any] = {
            **head("utility"), "law": law_document(self.runs), "mean_runs": finite(self.runs.mean),
            "sd_runs": finite(self.runs.sd), "prob_zero": self.runs.prob_zero, **length_fields(self.runs, 50, 95, 99),
            **found,
        }  # fmt: skip
        if None in (out["mean_runs"], out["sd_runs"], out["p99_runs"]):
            out["reason"] = "a number of runs above 1e300 is shown as null"
        return {**out, "warnings": list(self.warnings)}


def utility(
    runs: RunCount, *, success_rate: float | None = None, scores: Iterable[float] | None = None, minimize: bool = False
) -> UtilityResult:
    """What a random number of runs is worth, and how long it takes.

    Parameters
    ----------
    runs : RunCount
        Law of the number of runs.
    success_rate : float, optional
        Probability in (0, 1] that one run is good.
    scores : iterable of float, optional
        Scores of single runs, from public data or pilot runs that were paid for.
    minimize : bool
        Whether the least score is the best.

    Raises
    ------
    InvalidInput
        For values outside their range, and for scores of a search that stops at the first accepted run.

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> answer = utility(Poisson(10.0), success_rate=0.01)
    >>> round(answer.expected_quantile, 6), round(answer.success_probability, 6)
    (0.900005, 0.095163)
    """
    first = f"{checked_law(runs).name} releases the first accepted run, not the best of K"
    given = {"success_rate": success_rate, "scores": scores}
    require(*((name, "given", isinstance(runs, Law) or value is None, first) for name, value in given.items()))
    aims = Aims.of(success_rate, scores, minimize)
    quantile = runs.expected_quantile if isinstance(runs, Law) else None
    return UtilityResult(runs, aims, quantile, aims.success(runs), aims.score(runs))
