"""What a reviewer ticks, and what a user must be told beside a number.

:data:`CHECKLIST` is the one place that words it: answers, tables, Markdown and the glossary of hpcalc(1) read it. Its
text is ``manual/checklist.txt``: a key, a short line, at most 74 columns long, and sentences that say what it excludes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hpcalc.files import shipped
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.questions.rows import quantile_or_none
from hpcalc.questions.setup import SearchSetup

__all__ = ["CHECKLIST", "Item", "about_delta", "assumptions", "checklist", "warnings_of"]

_LARGE_DELTA = 1e-3  # without a number of people: larger than one over any that is worth protecting
_MANY_RUNS = 1e6
_OFTEN_EMPTY = 0.01


class Item(NamedTuple):
    """One item of the checklist: the line a reviewer ticks, and what it means.

    Both may hold fields in braces, filled with the case's own numbers.
    """

    line: str
    meaning: str


def _items() -> Iterator[tuple[str, Item]]:
    for stanza in shipped("manual/checklist.txt").split("\n\n"):
        key, line, *meaning = stanza.splitlines()
        yield key, Item(line, " ".join(meaning))


CHECKLIST = dict(_items())


def checklist(base: Guarantee, runs: RunCount, delta: float, setup: SearchSetup | None = None) -> list[str]:
    """Keys of :data:`CHECKLIST` that a case asks a reviewer for, in order.

    Parameters
    ----------
    base, runs : Guarantee, RunCount
        What was asked.
    delta : float
        δ.
    setup : SearchSetup, optional
        How the search was run, and what else is released.
    """
    setup = SearchSetup() if setup is None else setup
    law, parameters = runs.name, runs.parameters()
    listed = "candidates" in base.describe()
    weighted = listed and getattr(base, "weights", None) is not None
    keys: list[str] = []
    if law == "composition":
        keys += ["any-choice"]
    else:
        keys += ["fresh" if setup.density is None else "density"]
        keys += ["weights" if weighted else "unknown-weights"] * listed
        keys += {"threshold": ["stop", "acceptance"], "fixed": ["fixed-k"]}.get(law, ["secret-k"])
        keys += [key for key in ("max-runs", "clamp-runs") if key.replace("-", "_") in parameters]
    keys += ["covered-each" if listed else "covered"]
    if law != "composition":
        keys += ["released", "score"] if law != "threshold" else ["released"]
        keys += ["order"] if law != "threshold" else []
    keys += ["searches"] * (setup.searches > 1) + ["subset"] * (setup.subset is not None)
    keys += ["then"] * bool(setup.then) + ["then-rest"] * (setup.then_on == "rest")
    keys += ["neighbours" if setup.unit is None else "unit"]
    if delta > 0.0:
        people = setup.examples
        keys += ["delta" if people is None else _against_people(delta * people)]
    return [*keys, "both"]


def _against_people(expected: float) -> str:
    return "delta-known" if expected <= 0.1 else "delta-near" if expected <= 1.0 else "delta-above"


def assumptions(base: Guarantee, runs: RunCount, delta: float, setup: SearchSetup | None = None) -> Iterator[str]:
    """What a reviewer ticks for a case: each text is the line to tick, then what it means.

    Parameters
    ----------
    base, runs, delta, setup
        As in :func:`checklist`.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> from hpcalc.laws import Poisson
    >>> next(assumptions(ZCDP(0.1), Poisson(10.0), 1e-6)).partition(". ")[0]
    'Every run draws its candidate afresh from one fixed distribution'
    """
    setup = SearchSetup() if setup is None else setup
    low, high = setup.density or (1.0, 1.0)
    runs_of_k = runs.max_runs if runs.max_runs is not None else "K"
    told = {
        "max_runs": None, "clamp_runs": None, "accept": None, **runs.parameters(), "runs": runs_of_k, "low": low,
        "high": high, "searches": setup.searches, "subset": setup.subset, "unit": setup.unit, "delta": delta,
        "examples": setup.examples,
    }  # fmt: skip
    for key in checklist(base, runs, delta, setup):
        if key in ("delta", "delta-known", "delta-near", "delta-above"):
            yield from base.notes
        yield " ".join(CHECKLIST[key]).format(**told)
    if delta == 0.0:
        yield from base.notes


def warnings_of(
    base: Guarantee,
    runs: RunCount,
    delta: float,
    *,
    epsilon: float = math.inf,
    order: float | None = None,
    setup: SearchSetup | None = None,
) -> Iterator[str]:
    """What the reader can act on, for stderr and for the document.

    Parameters
    ----------
    base, runs, delta, setup
        As in :func:`checklist`.
    epsilon : float
        The answer.
    order : float, optional
        The Rényi order it came from.
    """
    yield from base.warnings
    yield from about_delta(delta, None if setup is None else setup.examples)
    late = quantile_or_none(runs, 0.95)
    if late is None or late > _MANY_RUNS:
        yield "over 5 % of searches run more than a million times: take a law with a lighter tail, or give --max-runs"
    if runs.prob_zero > _OFTEN_EMPTY:
        yield f"with probability {runs.prob_zero:.4g} the search runs nothing: give --at-least-one, or a larger mean"
    if epsilon == 0.0 and delta > 0.0 and base.pure_epsilon != 0.0:
        yield f"epsilon is 0 because delta = {delta:g} covers all that the search can lose: give a smaller delta"
    if order is not None and base.orders is not None:
        known = base.orders[np.isfinite(base.orders)]
        if known.size > 1 and order in (known[0], known[-1]):
            end = "smallest" if order == known[0] else "largest"
            yield f"the best order is the {end} given one ({order:g}): more orders there may lower epsilon"


def about_delta(delta: float, examples: int | None) -> Iterator[str]:
    """A warning where δ is too large for the number of privacy units, as far as that is known."""
    if examples is not None and delta * examples > 1.0:
        yield f"delta = {delta:g} is above 1/N = {1.0 / examples:.3g}: give a delta well below it"
    elif examples is None and delta >= _LARGE_DELTA:
        yield f"delta = {delta:g} is large: it should be well below one over the number of people"
