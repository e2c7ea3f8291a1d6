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
from hpcalc.laws import AtLeastOne, Law, finite_number
from hpcalc.logspace import Array, Prob

__all__ = ["BestScore", "best_score", "success_probability"]


@dataclass(frozen=True)
class BestScore:
    """The best score a search returns, given that it runs at all.

    Attributes
    ----------
    expected, median, p5, p95 : float
        Mean and quantiles of the best score given ``K >= 1``, in the scores' own unit and orientation.
    prob_zero : float
        Probability of ``K = 0``, where there is no score: not part of the numbers above.
    single_run : float
        Mean score of one run.
    prob_top : float
        Probability, given ``K >= 1``, that the best equals the best score of the sample. Near 1 the sample is too
        small to say how much better a search of this length would do.
    count : int
        Number of single-run scores used.
    """

    expected: float
    median: float
    p5: float
    p95: float
    prob_zero: float
    single_run: float
    prob_top: float
    count: int


def success_probability(law: Law, p: float) -> float:
    """Probability ``1 - f(1-p)`` that at least one run is good, when one run is good with probability ``p``.

    Parameters
    ----------
    law : Law
        Law of the number of runs.
    p : float
        In (0, 1]; ``1/m`` for one good candidate among m equally likely ones.

    Raises
    ------
    InvalidInput
        If ``p`` is outside (0, 1].

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> round(success_probability(Poisson(10.0), 0.1), 7)
    0.6321206
    """
    rate = finite_number("success_rate", p, "give a probability with 0 < success_rate <= 1")
    if not 0.0 < rate <= 1.0:
        raise InvalidInput("success_rate", p, "give a probability with 0 < success_rate <= 1")
    return math.exp(float(law.log_survival(Prob.from_u(rate))))


def best_score(law: Law, scores: Iterable[float], *, minimize: bool = False) -> BestScore:
    """Best score of a search whose single runs score like the given sample.

    With G the sample's distribution function, the best of K scores is at most x with probability f(G(x)): the value
    ``x_i`` has the weight ``f(G_i) - f(G_{i-1})``.

    Parameters
    ----------
    law : Law
        Law of the number of runs.
    scores : iterable of float
        Scores of single runs with independently drawn candidates; finite, any order, ties allowed.
    minimize : bool
        Whether the least score is the best (losses).

    Returns
    -------
    BestScore

    Raises
    ------
    InvalidInput
        If there is no score, or one is not a finite number.

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
