"""What a reviewer ticks, and what a user must be told beside a number.

:data:`CHECKLIST` is the one place that words it: answers, tables, Markdown and the glossary of hpcalc(1) read it. Each
item is a short line, at most 74 columns long, and sentences that say what it excludes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

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


_STATE = "Say whether neighbours differ by adding or removing, or by replacing, one of them."

CHECKLIST: dict[str, Item] = {
    # how candidates are chosen
    "fresh": Item(
        "Every run draws its candidate afresh from one fixed distribution.",
        "With replacement, and independently of the data and of earlier runs: a grid or list worked off in order, a "
        "shuffled list, Bayesian or adaptive search do not qualify (then: --dist composition, or the option that "
        "describes it).",
    ),
    "any-choice": Item(
        "Runs may be chosen in any way; each of the {runs} is paid for.",
        "A grid, a list, by hand, Bayesian optimisation, with whatever was seen before: runs that crashed or were "
        "dropped count, and the choice of the next run looks at nothing but outputs of runs that are counted.",
    ),
    "density": Item(
        "Each proposal's density stays within {low:g} to {high:g} of one fixed prior.",
        "It may depend on everything seen before, the data included. Ties go to the earlier run, and the number of "
        "runs does not depend on outcomes.",
    ),
    "weights": Item(
        "Each run draws its setting with the listed weights, whatever the data.",
        "The weights are probabilities, not counts; a setting that is run a Poisson number of times, each "
        "independently, is drawn like this.",
    ),
    "unknown-weights": Item(
        "Each run draws one of the listed settings; any fixed weights are covered.",
        "The weights may be secret, but not depend on the data or on earlier runs.",
    ),
    # how many runs
    "secret-k": Item(
        "K is drawn from the stated law for this search and stays secret.",
        "It is not in logs, not in run times, not in the number of checkpoints; where the released thing itself tells "
        "K (a trial number), it is not secret.",
    ),
    "fixed-k": Item(
        "K is fixed in advance, whatever the data, and its runs are fresh draws.",
        "A grid or list of so many candidates is not fresh draws: --dist composition says what it costs.",
    ),
    "stop": Item(
        "Runs repeat until one is accepted; how many that took stays secret.",
        "The accepted run is released, not the best of several; run times and logs must not tell how many runs there "
        "were.",
    ),
    "acceptance": Item(
        "Every input accepts a run with probability at least {accept:g}.",
        "It is a lower bound that holds for every data set (or the chance of a stop coin tossed before each run), "
        "not an estimate from this one.",
    ),
    "max-runs": Item(
        "K is drawn again while it is larger than {max_runs}.",
        "A search that stops at the limit instead has min(K, {max_runs}) runs: that is another law, --clamp-runs.",
    ),
    "clamp-runs": Item(
        "The search makes min(K, {clamp_runs}) runs.",
        "Drawing K again while it is larger than the limit is another law, --max-runs.",
    ),
    # what is covered
    "covered": Item(
        "Every candidate satisfies the stated guarantee of one run.",
        "A candidate with another batch size, noise or number of epochs has a guarantee of its own: list it with it "
        "(--candidates).",
    ),
    "covered-each": Item(
        "Every candidate satisfies the guarantee listed beside it.",
        "No candidate outside the list is run.",
    ),
    "released": Item(
        "Only the best run is released.",
        "Its hyperparameters and its private score are part of it and free; other runs, learning curves and "
        "dashboards stay secret.",
    ),
    "score": Item(
        "The score is computed on public data, or its cost is inside one run.",
        "A noisy score on the training data is part of the guarantee of one run (--gaussian S beside the training); "
        "a score on held-out people protects the training people only.",
    ),
    "order": Item(
        "A total order fixed in advance decides which run is best.",
        "Ties are broken by a fixed rule; a crashed run counts as a run and ranks last.",
    ),
    # what else is released, and on which records
    "searches": Item(
        "Each of the {searches} searches has a K of its own and releases one winner.",
        "The best few runs of one search are not covered.",
    ),
    "subset": Item(
        "The search saw one Poisson sample of the records, at rate {subset:g}.",
        "The sample is fresh and secret, and so are its size and whatever is computed from it without noise; runs and "
        "scores saw the sample only, rates and normalisers were fixed in advance, and a split of fixed size is not "
        "covered.",
    ),
    "then": Item(
        "What follows holds its guarantee whatever the search released.",
        "All of the state it starts from (weights, optimiser moments) is output that the search's guarantee covers; no "
        "noise, data order or per-record quantity is carried over.",
    ),
    "then-rest": Item(
        "What follows saw only the records outside the sample.",
        "It may use the search's winner, its hyperparameters and its private score.",
    ),
    # how to state it
    "neighbours": Item("The privacy unit and the neighbouring relation are stated.", _STATE),
    "unit": Item("The privacy unit is {unit}; the neighbouring relation is stated.", _STATE),
    "delta": Item(
        "delta = {delta:g} is well below one over the number of people.",
        "With delta = 1/N a mechanism may publish one person's record; --examples N holds delta against N.",
    ),
    "delta-known": Item("delta = {delta:g} is below 1/(10 N), N = {examples}.", "N is the number of privacy units."),
    "delta-near": Item(
        "delta = {delta:g} is between 1/(10 N) and 1/N, N = {examples}: justified.",
        "It should be well below 1/N: a smaller delta costs little.",
    ),
    "delta-above": Item(
        "delta = {delta:g} is above 1/N, N = {examples}: not acceptable as it is.",
        "With delta = 1/N a mechanism may publish one person's record.",
    ),
    "both": Item(
        "Both numbers are stated: one run and the whole search.",
        "The cost of one run alone hides what choosing the best of many costs.",
    ),
}


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
