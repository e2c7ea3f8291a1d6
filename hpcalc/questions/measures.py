"""What a random number of runs is worth.

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

import numpy as np
from numpy.typing import NDArray

from hpcalc.errors import InvalidInput
from hpcalc.laws import AtLeastOne, Law, RunCount, finite_number
from hpcalc.logspace import Array, Prob

__all__ = ["SCORES_COST", "Aims", "BestScore", "best_score", "success_probability"]

SCORES_COST = (
    "scores measured on the private data are not free: take them from public data, or count their cost in the "
    "guarantee of one run"
)
_MEASURES = {"quantile": "expected_quantile", "success": "success_probability", "score": "expected_score"}


def success_probability(law: Law, p: float) -> float:
    """Probability ``1 - f(1-p)`` that at least one run is good, when one run is good with probability ``p`` in (0, 1].

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> round(success_probability(Poisson(10.0), 0.1), 7)
    0.6321206
    """
    return math.exp(float(law.log_survival(Prob.from_u(_rate(p)))))


def _rate(p: float) -> float:
    remedy = "give a probability with 0 < success_rate <= 1"
    rate = finite_number("success_rate", p, remedy)
    if not 0.0 < rate <= 1.0:
        raise InvalidInput("success_rate", p, remedy)
    return rate


@dataclass(frozen=True)
class BestScore:
    """The best score a search returns, given that it runs at all."""

    expected: float
    median: float
    p5: float
    p95: float
    prob_zero: float  # of K = 0, where there is no score: no part of the numbers above
    single_run: float  # mean score of one run
    #: Probability that the best equals the best score of the sample: near 1 the sample is too small to say how much
    #: better a search of this length would do.
    prob_top: float
    count: int


def best_score(law: Law, scores: Iterable[float], *, minimize: bool = False) -> BestScore:
    """Best score of a search whose single runs score like the given sample: any order, ties allowed.

    With G the sample's distribution function, the best of K scores is at most x with probability f(G(x)): the value
    ``x_i`` has the weight ``f(G_i) - f(G_{i-1})``.

    Examples
    --------
    >>> from hpcalc.laws import Fixed
    >>> best_score(Fixed(2), [0.0, 1.0]).expected
    0.75
    """
    try:
        sample = np.array([float(x) for x in scores], dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput("scores", scores, "give numbers") from None
    if sample.size == 0:
        raise InvalidInput("scores", "no score", "give at least one single-run score")
    if not np.isfinite(sample).all():
        bad = sample[~np.isfinite(sample)][0]
        raise InvalidInput("scores", bad, "give finite scores: a run that failed counts as the worst score")
    values, counts = np.unique(-sample if minimize else sample, return_counts=True)
    weights = _weights(law, counts)
    top = float(weights[-1])
    if minimize:
        values, weights = -values[::-1], weights[::-1]
    cumulative = np.cumsum(weights)

    def at(p: float) -> float:
        # rounding in the sum must not push a quantile to the next score
        index = int(np.searchsorted(cumulative, p * (1.0 - 1e-12)))
        return float(values[min(index, values.size - 1)])

    # summed from the best end, the differences to one fixed score keep their digits
    shift = float(values[-1])
    expected = shift + math.fsum(((values - shift) * weights).tolist())
    single = math.fsum(sample.tolist()) / sample.size
    return BestScore(expected, at(0.5), at(0.05), at(0.95), law.prob_zero, single, top, int(sample.size))


def _weights(law: Law, counts: NDArray[np.int_]) -> Array:
    """Probability, given K >= 1, that the best of K lies in each of the ordered groups, the worst first."""
    given = law if law.prob_zero == 0.0 else AtLeastOne(law)
    total = int(counts.sum())
    below = np.concatenate([[0], np.cumsum(counts)])
    with np.errstate(divide="ignore"):
        log_q, log_u = np.log(below / total), np.log((total - below) / total)
    edges = Prob(log_u, log_q)
    log_width = np.log(counts / total)
    log_weight = given.log_block(edges.take(slice(1, None)), edges.take(slice(None, -1)), log_width)
    weights = np.exp(log_weight)
    return np.asarray(weights / weights.sum(), dtype=float)


@dataclass(frozen=True)
class Aims:
    """What a search is run for: the chance that one run is good, scores of single runs, whether the least is best."""

    success_rate: float | None = None
    scores: tuple[float, ...] | None = None
    minimize: bool = False

    @classmethod
    def of(cls, success_rate: float | None, scores: Iterable[float] | None, minimize: bool) -> Aims:
        """Check what was given."""
        rate = None if success_rate is None else _rate(success_rate)
        return cls(rate, None if scores is None else tuple(scores), minimize)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be said beside scores."""
        return () if self.scores is None else (SCORES_COST,)

    def success(self, runs: RunCount) -> float | None:
        """Chance that the search finds a good run."""
        if self.success_rate is None or not isinstance(runs, Law):
            return None
        return success_probability(runs, self.success_rate)

    def score(self, runs: RunCount) -> BestScore | None:
        """The best score."""
        if self.scores is None or not isinstance(runs, Law):
            return None
        return best_score(runs, self.scores, minimize=self.minimize)

    def fields(self, runs: RunCount) -> dict[str, float]:
        """The measures that were asked for, by their published keys."""
        score = self.score(runs)
        found = {
            "expected_quantile": runs.expected_quantile if isinstance(runs, Law) else None,
            "success_probability": self.success(runs),
            "expected_score": None if score is None else score.expected,
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
