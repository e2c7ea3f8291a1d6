"""What a reviewer ticks, and what a user must be told beside a number.

:data:`CHECKLIST` is the one place that words it: answers, tables, Markdown and the glossary of hpcalc(1) read it. Its
text is ``manual/checklist.txt``: a key, a short line, at most 74 columns long, and sentences that say what it excludes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from hpcalc.files import shipped
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.questions.asked import Asked

_LARGE_DELTA = 1e-3  # without a number of people: larger than one over any that is worth protecting
_MANY_RUNS = 1_000_000
_OFTEN_EMPTY = 0.01


#: By key: the line that a reviewer ticks, and what it means; fields in braces are the case's own numbers.
CHECKLIST = {
    key: (line, " ".join(meaning))
    for key, line, *meaning in map(str.splitlines, shipped("manual/checklist.txt").split("\n\n"))
}


def checklist(base: Guarantee, runs: RunCount, asked: Asked) -> list[str]:
    """Keys of :data:`CHECKLIST` that a case asks a reviewer for, in its order."""
    law, cut, alone = runs.name, runs.parameters(), asked.density is None
    drawn, first, known = law != "composition", law == "threshold", asked.examples is not None
    best = drawn and not first
    listed, weighted = "candidates" in base.describe(), getattr(base, "weights", None) is not None
    expected = asked.delta * (asked.examples or 0)
    asks = {
        "fresh": drawn and alone, "any-choice": not drawn, "density": drawn and not alone,
        "weights": drawn and listed and weighted, "unknown-weights": drawn and listed and not weighted,
        "secret-k": best and law != "fixed", "fixed-k": law == "fixed", "stop": first, "acceptance": first,
        "max-runs": "max_runs" in cut, "clamp-runs": "clamp_runs" in cut, "covered": not listed, "covered-each": listed,
        "released": drawn, "score": best, "order": best, "searches": asked.searches > 1,
        "subset": asked.subset is not None, "then": bool(asked.then), "then-rest": asked.then_on == "rest",
        "neighbours": asked.unit is None, "unit": asked.unit is not None, "delta": asked.delta > 0.0 and not known,
        "delta-known": 0.0 < expected <= 0.1, "delta-near": 0.1 < expected <= 1.0, "delta-above": expected > 1.0,
        "both": True,
    }  # fmt: skip
    return [key for key in CHECKLIST if asks[key]]


def assumptions(base: Guarantee, runs: RunCount, asked: Asked) -> Iterator[str]:
    """What a reviewer ticks for a case: each text is the line to tick, then what it means."""
    low, high = asked.density or (1.0, 1.0)
    cut = {"max_runs": None, "clamp_runs": None, "accept": None, **runs.parameters()}
    told = {**vars(asked), **cut, "runs": runs.max_runs if runs.max_runs is not None else "K", "low": low, "high": high}
    for key in checklist(base, runs, asked):
        if key.startswith("delta"):
            yield from base.notes
        yield " ".join(CHECKLIST[key]).format(**told)
    if asked.delta == 0.0:
        yield from base.notes


def warnings_of(
    base: Guarantee, runs: RunCount, asked: Asked, epsilon: float = math.inf, order: float | None = None
) -> Iterator[str]:
    """What the reader can act on, of an answer and the Rényi order it came from; for stderr and for the document."""
    yield from base.warnings
    yield from about_delta(asked)
    # by Markov's inequality that takes a mean of a twentieth
    if runs.mean > 0.05 * _MANY_RUNS and runs.log_sf(_MANY_RUNS) > math.log(0.05):
        yield "over 5 % of searches run more than a million times: take a law with a lighter tail, or give --max-runs"
    if runs.prob_zero > _OFTEN_EMPTY:
        yield f"with probability {runs.prob_zero:.4g} the search runs nothing: give --at-least-one, or a larger mean"
    if epsilon == 0.0 and asked.delta > 0.0 and base.pure_epsilon != 0.0:
        yield f"epsilon is 0 because delta = {asked.delta:g} covers all that the search can lose: give a smaller delta"
    if order is not None and base.orders is not None:
        known = base.orders[np.isfinite(base.orders)]
        if known.size > 1 and order in (known[0], known[-1]):
            end = "smallest" if order == known[0] else "largest"
            yield f"the best order is the {end} given one ({order:g}): more orders there may lower epsilon"


def about_delta(asked: Asked) -> Iterator[str]:
    """A warning where δ is too large for the number of privacy units, as far as that is known."""
    delta, examples = asked.delta, asked.examples
    if examples is not None and delta * examples > 1.0:
        yield f"delta = {delta:g} is above 1/N = {1.0 / examples:.3g}: give a delta well below it"
    elif examples is None and delta >= _LARGE_DELTA:
        yield f"delta = {delta:g} is large: it should be well below one over the number of people"
