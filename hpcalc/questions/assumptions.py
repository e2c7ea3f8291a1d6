"""What a reviewer ticks, and what a user must be told beside a number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hpcalc.guarantees import Guarantee
from hpcalc.laws import Fixed, RunCount, Threshold

if TYPE_CHECKING:
    from hpcalc.lower import LowerBound
    from hpcalc.questions.search_cost import Evaluated

__all__ = ["assumptions", "warnings_of"]

_LARGE_DELTA = 1e-3
_WIDE_GAP = 0.02


def assumptions(base: Guarantee, runs: RunCount, delta: float) -> Iterator[str]:
    """One short sentence each.

    Parameters
    ----------
    base, runs : Guarantee, RunCount
        What was asked.
    delta : float
        δ.
    """
    if isinstance(runs, Threshold):
        yield "Runs repeat until one is accepted; how many runs that took is never revealed."
        yield f"Every input accepts a run with probability at least {runs.accept:g}."
    elif isinstance(runs, Fixed):
        yield "The number of runs is fixed in advance, whatever the data."
    else:
        yield f"K is drawn fresh from the stated {runs.name} law, independently of the data, and never revealed."
    yield (
        "Candidates are chosen independently of the data and of earlier runs (random, not Bayesian or adaptive search)."
    )
    yield "Every candidate satisfies the stated guarantee of one run."
    yield "Only the best run is released; the other runs and their scores stay secret."
    yield "The score's own cost is inside the base guarantee, or it was computed on public or held-out data."
    yield "A total order, fixed in advance, decides which run is best (ties broken by a fixed rule)."
    yield "The neighbouring relation is symmetric, and the privacy unit (example, user) is stated beside the number."
    yield from base.notes
    if delta > 0.0:
        yield f"delta = {delta:g} is well below one over the number of people."
    yield "Both numbers are stated: one run and the whole search."


def warnings_of(
    base: Guarantee, runs: RunCount, delta: float, best: Evaluated | None, lower: LowerBound | None
) -> Iterator[str]:
    """Sentences for stderr and for the document."""
    yield from base.warnings
    if delta >= _LARGE_DELTA:
        yield f"delta = {delta:g} is large: it should be well below one over the number of people"
    if runs.prob_zero > 0.5:
        yield f"with probability {runs.prob_zero:.4g} the search runs nothing"
    if best is None:
        return
    orders = base.orders
    if best.order is not None and orders is not None:
        known = orders[np.isfinite(orders)]
        if known.size > 1 and best.order in (known[0], known[-1]):
            end = "smallest" if best.order == known[0] else "largest"
            yield f"the best order is the {end} given one ({best.order:g}): more orders there may lower epsilon"
    if lower is None:
        return
    if lower.epsilon > 0.0 and math.isfinite(best.epsilon) and best.epsilon > lower.epsilon * (1.0 + _WIDE_GAP):
        gap = best.epsilon / lower.epsilon - 1.0
        yield f"epsilon is {100.0 * gap:.2g} % above the best lower bound known: a tighter analysis may exist"
