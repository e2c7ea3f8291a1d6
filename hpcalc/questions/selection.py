"""Choosing one of m candidates by their scores: best-of-K against the exponential mechanism and report-noisy-max.

One run of best-of-K draws a candidate uniformly, adds noise to its score and returns both; K such runs are made and the
candidate of the best noisy score is released. At the same ε each mechanism has an error: how much the released
candidate's score falls short of the best one's, at a confidence.

The worst scores are the same for all three. If the best candidate has score 0 and an error of t or more is a failure,
raising a score below -t to -t, and lowering one between -t and 0 to -t, can only make failure likelier; so the worst
case has one candidate at 0 and m - 1 at -t. There every probability of failure is an integral of one variable.

References
----------
Papernot and Steinke 2022, Appendix D.4; McSherry and Talwar, "Mechanism Design via Differential Privacy", FOCS 2007.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcalc.answer import Answer
from hpcalc.bounds.pure import refined_pure
from hpcalc.errors import require
from hpcalc.guarantees import Gaussian
from hpcalc.laws import Fixed, Law, RunCount
from hpcalc.laws.family import DEFAULT_FAMILIES, LawFamily, LawLike, families_of
from hpcalc.logspace import Array, Prob, Upper, log_ndtr, logaddexp
from hpcalc.questions.asked import Asked
from hpcalc.questions.measures import Aims
from hpcalc.questions.rows import finite, head, known, law_document, length_fields
from hpcalc.questions.search_cost import Progress
from hpcalc.questions.solving import Accountant, Solution, at_mean, law_of_success
from hpcalc.solve import Grid, least_passing

_LEGENDRE_X, _LEGENDRE_W = np.polynomial.legendre.leggauss(8)
_LARGEST_GAP, _LARGEST_SCALE = 1e4, 1e300
_TOO_OFTEN = "it misses the best candidate too often"
_SHARES = (0.95, 0.85, 0.7, 0.5, 0.3, 0.15, 0.05)  # of the allowed failures spent on never drawing the best candidate


@dataclass(frozen=True)
class Choice:
    """One mechanism, ``exponential-mechanism``, ``report-noisy-max`` or ``best-of-k``: its noise, and its error."""

    mechanism: str
    error: float | None  # in the unit of the scores; None where no error is ever safe at this confidence
    noise: str | None = None
    scale: float | None = None  # of the noise (Laplace), or its standard deviation, in the same unit
    family: LawFamily | None = None
    runs: RunCount | None = None
    reason: str | None = None

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys."""
        law = known(law=None if self.family is None else self.family.document())
        if self.runs is not None:
            law = {"law": law_document(self.runs), **length_fields(self.runs, 95)}
        noise = {} if self.noise is None else {"noise": self.noise, "noise_scale": self.scale}
        error = None if self.error is None else Upper(self.error)
        return {"mechanism": self.mechanism, **law, **noise, "error": error, **known(reason=self.reason)}


@dataclass(frozen=True, eq=False, repr=False)
class SelectionResult(Answer):
    """Mechanisms that choose one of m candidates, all of one cost; only Gaussian scores need the delta."""

    choices: tuple[Choice, ...]
    asked: dict[str, Any]  # under the published keys; errors are exceeded with at most 1 - confidence

    def document(self) -> dict[str, Any]:
        rows = [choice.document() for choice in self.choices]
        return {**head("compare"), **self.asked, "rows": rows, "warnings": []}


def exponential_mechanism_error(candidates: int, epsilon: float, sensitivity: float = 1.0, fail: float = 0.05) -> float:
    """Error that the exponential mechanism exceeds with probability at most ``fail``, whatever the scores."""
    odds = math.log(candidates - 1) + math.log1p(-fail) - math.log(fail) if candidates > 1 else -math.inf
    return max(2.0 * sensitivity / epsilon * odds, 0.0)


def report_noisy_max_error(candidates: int, epsilon: float, sensitivity: float = 1.0, fail: float = 0.05) -> float:
    """The same for report-noisy-max with Laplace noise of scale ``2 sensitivity / epsilon``: each runs once."""
    gap = _smallest_gap(lambda gap: 1.0 - _good_wins(Fixed(candidates), 1.0 / candidates, 0.0, gap, "laplace"), fail)
    return 2.0 * sensitivity / epsilon * gap


def best_of_k_error(
    law: Law, candidates: int, scale: float, noise: str = "laplace", fail: float = 0.05
) -> float | None:
    """The same for best-of-K of uniformly drawn candidates with noisy scores; a search that runs nothing fails.

    None if no error is exceeded so rarely: the best candidate is never drawn with a probability of ``fail`` or more.
    """
    share = 1.0 / candidates
    missed = float(np.exp(law.success(Prob.from_u(np.array(share))).log_q))
    if not missed < fail * (1.0 - 1e-12):  # a few roundings
        return None
    gap = _smallest_gap(lambda gap: 1.0 - _good_wins(law, share, share, gap, noise), fail)
    return scale * gap if gap < math.inf else None


def _good_wins(law: Law, share: float, again: float, gap: float, noise: str) -> float:
    """Probability that the best noisy score is of the good candidate, whose score is ahead by ``gap`` scales.

    A run is of it with probability ``share``, and beside such a run each other one with probability ``again``.
    """
    if noise == "laplace":
        x, weight = _nodes(gap, 45.0, 745.0)
        tail, log_density = _log_laplace_tail, -np.abs(x) - math.log(2.0)
    else:
        x, weight = _nodes(gap, 12.0, 38.0)
        tail, log_density = lambda x: log_ndtr(-x), -0.5 * x * x - 0.5 * math.log(2.0 * math.pi)
    own = math.log(again) if again else -math.inf
    log_u, log_q = (
        np.minimum(logaddexp(own + tail(sign * x), math.log1p(-again) + tail(sign * (x + gap))), 0.0)
        for sign in (1.0, -1.0)
    )
    return float(np.sum(weight * np.exp(law.log_density(Prob(log_u, log_q)) + log_density + math.log(share))))


def _log_laplace_tail(x: Array) -> Array:
    """Log of the probability that standard Laplace noise exceeds x."""
    with np.errstate(over="ignore"):
        return np.where(x > 0.0, -x - math.log(2.0), np.log1p(-0.5 * np.exp(np.minimum(x, 0.0))))


def _nodes(gap: float, left: float, right: float) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on cells of width at most 1/2 near the kinks at 0 and -gap, wider far out."""
    reach = np.concatenate([np.arange(0.0, 20.0, 0.5), np.geomspace(20.0, right, 30)])
    edges = np.unique(np.clip(np.concatenate([-reach, reach, -gap - reach, -gap + reach]), -left, right))
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * _LEGENDRE_X).ravel(), (half * _LEGENDRE_W).ravel()


def _smallest_gap(failure: Callable[[float], float], fail: float) -> float:
    """Smallest gap at which failing is rare enough, from above; inf beyond the largest."""
    return 0.0 if failure(0.0) <= fail else least_passing(lambda gap: failure(gap) <= fail, 1.0, _LARGEST_GAP, 1e-9)


def compare_selection(
    candidates: int,
    sensitivity: float = 1.0,
    epsilon: float | None = None,
    *,
    laws: Iterable[LawLike] | None = None,
    mean: float | None = None,
    delta: float = 1e-6,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> SelectionResult:
    """Best-of-K with noisy scores, the exponential mechanism and report-noisy-max at one ε, each law at its best mean.

    One record changes a score by at most ``sensitivity``; each run is a noisy score.
    """
    several = candidates == math.floor(candidates) and candidates >= 2
    require(
        ("selection", candidates, several, "give a whole number of candidates >= 2"),
        ("sensitivity", sensitivity, 0.0 < sensitivity < math.inf, "give a finite number > 0"),
        ("at_epsilon", epsilon, epsilon is not None, "--selection compares at one epsilon of the whole search, e.g. 1"),
        ("at_epsilon", epsilon, 0.0 < (epsilon or 0.0) < math.inf, "give a finite number > 0"),
        ("delta", delta, 0.0 <= delta < 1.0, "give 0 <= delta < 1"),
        ("confidence", confidence, 0.0 < confidence < 1.0, "give a probability between 0 and 1"),
    )
    assert epsilon is not None
    count, unit, fail = int(candidates), float(sensitivity), 1.0 - confidence
    families = families_of(laws, DEFAULT_FAMILIES)
    ask = Accountant(Asked(delta), epsilon, None, progress, 60 * len(families))
    choices = [
        Choice("exponential-mechanism", exponential_mechanism_error(count, epsilon, unit, fail)),
        Choice("report-noisy-max", report_noisy_max_error(count, epsilon, unit, fail), "laplace", 2.0 * unit / epsilon),
    ]
    for noise in ("laplace", "gaussian") if delta > 0.0 else ("laplace",):
        choices += [_best_of_k(ask, family, mean, count, unit, fail, noise) for family in families]
    asked = {"selection": count, "sensitivity": unit, "at_epsilon": float(epsilon), "delta": float(delta)}
    return SelectionResult(tuple(choices), {**asked, "confidence": confidence})


def _best_of_k(
    ask: Accountant, family: LawFamily, mean: float | None, count: int, unit: float, fail: float, noise: str
) -> Choice:
    """Best-of-K with one kind of noise: the law of a family, of the given mean or of the best one."""

    def at(law: Solution) -> Choice:
        error, scale, reason = None, math.inf, law.reason
        if isinstance(law.runs, Law):
            ask.tick()
            scale, reason = _scale(ask, law.runs, noise) * unit, "no noise is enough for this ε"
            if scale < math.inf:
                error = best_of_k_error(law.runs, count, scale, noise, fail)
                reason = None if error is not None else _TOO_OFTEN
        elif law.runs is not None:
            reason = "it releases the first accepted run"
        return Choice("best-of-k", error, noise, finite(scale), law.family, law.runs, reason)

    if family.given is not None or mean is not None:
        return at(at_mean(family, mean or 1.0))
    aims, shares = Aims(success_rate=1.0 / count), _SHARES if noise == "laplace" else _SHARES[2::2]
    found = [at(law_of_success(family, 1.0 - share * fail, aims)) for share in shares]
    best = min(found, key=lambda choice: math.inf if choice.error is None else choice.error)
    reason = next((item.reason for item in found if item.runs is not None), f"{_TOO_OFTEN}: {found[-1].reason}")
    return best if best.error is not None else Choice("best-of-k", None, noise, family=family, reason=reason)


def _scale(ask: Accountant, law: Law, noise: str) -> float:
    """Least scale (Laplace) or standard deviation at sensitivity 1 that makes the search (ε, δ)-DP; inf if none."""
    epsilon = ask.target or 0.0
    if noise == "gaussian":
        found = ask.last_within(lambda sigma: (Gaussian(sigma), law), Grid(1e9, 1e-6), 10.0 / epsilon)
        return math.inf if found.value is None else found.value

    def enough(scale: float) -> bool:
        return refined_pure(1.0 / scale, law) <= epsilon  # exact for a pure base

    least = 1.0 / epsilon  # a search costs no less than one run
    return least if enough(least) else least_passing(enough, 2.0 * least, _LARGEST_SCALE)
