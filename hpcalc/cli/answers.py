"""The question of :mod:`hpcalc.questions` that each command asks about a case, and what ``--explain`` says of it."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any

import click

from hpcalc.answer import Answer
from hpcalc.catalog import LAWS, NOT_DRAWN
from hpcalc.cli import inputs
from hpcalc.cli.case import Case, CommandLineError
from hpcalc.cli.command import COMMAND_LINE, ENVIRONMENT, SPEC
from hpcalc.cli.options import LAW, TRAINING
from hpcalc.datafiles import read_scores
from hpcalc.laws.family import DEFAULT_FAMILIES, MODIFIERS, make_law
from hpcalc.questions.rows import head, law_document

_DELAY = 1.0  # seconds before a bar is shown
_MOST = 10_000_000  # values of one call of draw; they are held in memory


def _ask(question: str, *given: Any, **asked: Any) -> Any:
    """A question by its module and name: each loads its own machinery only, for start-up time is a promise."""
    return resolve_name(f"hpcalc.questions.{question}")(*given, **asked)


def _watched(question: str, *given: Any, **asked: Any) -> Any:
    """The same, with a bar on stderr for what takes longer, on a terminal only."""
    terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    start = time.monotonic() + _DELAY if terminal else math.inf

    def progress(done: int, total: int) -> None:
        if total > 0 and time.monotonic() >= start:
            filled = round(20 * min(done, total) / total)
            click.echo(f"\r[{'#' * filled}{'.' * (20 - filled)}] {done}/{total}", nl=False, err=True)

    try:
        return _ask(question, *given, progress=progress, **asked)
    finally:
        if time.monotonic() >= start:
            click.echo("\r" + " " * 40 + "\r", nl=False, err=True)


def bound(case: Case) -> Any:
    """``hpcalc bound``."""
    base = inputs.guarantee(case)
    law = make_law(**inputs.law_parameters(case, base))
    return _watched("search_cost:bound", base, law, **case.chosen("max_epsilon", "explain"), **_priced(case))


def total(case: Case, others: Sequence[tuple[Case, Any]]) -> Any:
    """Everything that a list of cases releases, together."""
    if len({one["group"] for one, _ in others}) > 1:
        raise CommandLineError(f"{case.place}the cases have different --group: a total needs one privacy unit")
    deltas = {one["delta"] for one, _ in others} if case.source("delta") is None else {case["delta"]}
    if len(deltas) > 1:
        raise CommandLineError(f"{case.place}the cases have different deltas: give the total's --delta")
    results = {str(one.name): result for one, result in others}
    return _ask("release:total", results, delta=max(deltas), **case.chosen("conversion", "max_epsilon"))


def convert(case: Case) -> Any:
    """``hpcalc convert``."""
    asked = case.chosen("epsilon", "delta", "to", "conversion", "orders")
    if case["epsilon"] is not None:
        told = f"asks for a delta, which --to {case['to']} has not: leave one of them out"
        default = case.source("delta") in (None, ENVIRONMENT)
        case.require(
            ("epsilon", case["to"] == "approx-dp", told),
            ("epsilon", default, "asks for the delta of this epsilon: leave --delta out"),
        )
        asked["delta"] = None
    return _ask("conversions:convert", inputs.guarantee(case), **asked)


def utility(case: Case) -> Any:
    """``hpcalc utility``."""
    return _ask("measures:utility", make_law(**inputs.law_parameters(case)), **_scored(case))


def _priced(case: Case) -> dict[str, Any]:
    """What every question about a price is told beside the guarantee of one run and the law."""
    return {**inputs.release(case), **case.chosen("delta", "method", "conversion", "orders")}


def _scored(case: Case) -> dict[str, Any]:
    """What is known of how good a run is, and pilot scores if a file of them was given."""
    told = "speaks about scores: give --scores FILE too"
    case.require(*((key, case["scores"] or not case[key], told) for key in ("column", "minimize", "missing")))
    read = case["scores"] and read_scores(case["scores"], *case.chosen("column", "missing", "minimize").values())
    return {**case.chosen("success_rate", "minimize"), "scores": read}


def compare(case: Case) -> Any:
    """``hpcalc compare``."""
    told = "speaks about the candidates' scores: give --selection too"
    case.require(("sensitivity", case["sensitivity"] is None or case["selection"] is not None, told))
    laws = inputs.laws_named(case)
    if case["selection"] is not None:
        return _selection(case, laws)
    base = inputs.guarantee(case)
    footing = case.chosen("mean", "at_epsilon", "at_success", "sweep")
    asked = {**_scored(case), **footing, **_priced(case), "curves": case["plot"] is not None}
    if case["dist"] is not None:  # the law that a spec file states is a marked row, and its mean is everyone's
        named = asked["in_use"] = inputs.law_parameters(case, base)
        if all(value is None for value in footing.values()):
            asked["mean"] = make_law(**{key: named[key] for key in named if key not in MODIFIERS}).mean
    asked["lower"] = case["explain"] or case.format in ("yaml", "json", "csv")  # tables show none unless they explain
    return _watched("comparing:compare", base, laws, **asked)


def _selection(case: Case, laws: Any) -> Any:
    told = "does not go with --selection, which asks for the error of choosing one candidate"
    others = ("at_success", "sweep", "success_rate", "scores", "plot")
    case.require(*((key, case[key] is None, told) for key in others))
    sensitivity = case["sensitivity"] if case["sensitivity"] is not None else 1.0
    alone = inputs.guarantee(case, optional=True) is None
    case.require(("selection", alone, "makes each run a noisy score: leave out the guarantee of one run"))
    asked = {"laws": laws, **case.chosen("mean", "delta")}
    return _watched("selection:compare_selection", case["selection"], sensitivity, case["at_epsilon"], **asked)


def plan(case: Case) -> Any:
    """``hpcalc plan``."""
    goal = case["solve_for"]
    asked = case.chosen("solve_for", "maximize", "target_success", "max_runs_p95", "optimize_eta")
    asked["target_epsilon"] = case["target_epsilon"] if case["target_epsilon"] is not None else case["max_epsilon"]
    base = inputs.guarantee(case) if goal in (None, "runs") else None
    if base is None:
        told = "stands for the whole guarantee of one run: give --solve-for dpsgd-noise, or runs"
        case.require(("candidates", case["candidates"] is None or goal == "dpsgd-noise", told))
        # what a spec says of it is what another value is sought for
        described = case.without("compose", *([goal] if case.source(goal) == SPEC else []))
        if goal == "dpsgd-noise":
            asked["sampling"] = inputs.sampling(case) if case["candidates"] is None else inputs.candidates_at(case)
            described = described.without("dpsgd", "candidates", *TRAINING)
        if case["candidates"] is None:  # each of these composes by itself, and is of a group
            asked |= {"compositions": case["compose"], "group": case["group"] or 1}
        base = inputs.guarantee(described, optional=True)
    return _watched("planning:plan", base, **asked, **_laws(case, base), **_scored(case), **_priced(case))


def _laws(case: Case, base: Any) -> dict[str, Any]:
    """The law of a plan, or those it chooses from."""
    runs = case["solve_for"] in (None, "runs")
    named, laws = inputs.law_parameters(case, base, optional=True), inputs.laws_named(case)
    if named:
        if runs and case["subset"] != "auto":
            # a spec states the law that was checked; what is solved for is its scale
            scales = (*LAWS[named["dist"]].scales[:1], "mean")
            named = {key: named[key] for key in named if key not in scales or case.source(key) == COMMAND_LINE}
        return {"runs": named, "laws": laws}
    if modifiers := {key: case[key] for key in MODIFIERS if case[key]}:
        laws = [{**law, **modifiers} for law in laws or [family.document() for family in DEFAULT_FAMILIES]]
    return {"laws": laws, "mean": case["mean"]}


class Plain(Answer):
    """A result that is nothing but its document; with an ``error`` where the reason takes the answer's place."""

    def __init__(self, command: str, told: dict[str, Any], error: Exception | None = None) -> None:
        self.told = {**head(command), **told, "warnings": []}
        self.failure = error

    def document(self) -> dict[str, Any]:
        return dict(self.told)


def draw(case: Case) -> Plain:
    """``hpcalc draw``."""
    import random  # a millisecond that every other command is spared

    case.require(("count", case["count"] <= _MOST, f"give at most {_MOST}"))
    law, entropy = make_law(**inputs.law_parameters(case)), random.SystemRandom()
    return Plain("draw", {"law": law_document(law), "runs": [law.sample(entropy) for _ in range(case["count"])]})


_PAPER = "Papernot and Steinke 2022"
_BOTH_WAYS = "the Renyi curve bounds the divergence in both directions at the order used"
# of a conversion by its rule, of a law by the command: the theorem, then its conditions
_SOURCES = {
    "canonne-kamath-steinke": (
        f"Canonne, Kamath and Steinke 2020, Proposition 12; Lemma 14 of {_PAPER}", _BOTH_WAYS),
    "mironov": ("Mironov 2017, Proposition 3", _BOTH_WAYS),
    "exact-profile": ("the mechanism's own privacy profile (Balle and Wang 2018 for the Gaussian)",
                      "each part of the base is the mechanism itself, or has a profile that its Renyi curve bounds"),
    "exact-region": ("the largest hockey-stick divergence over all pairs of events that the Renyi constraints allow",
                     "every order used is a valid constraint in both directions"),
    "pure": ("definition of pure differential privacy: it holds with every delta", "the base is pure"),
    "zcdp": ("Bun and Steinke 2016; a pure base has rho = eps tanh(eps/2)", "the bound holds at every order"),
    "rdp": ("the base's own Renyi curve (Mironov 2017)", "both directions are covered: the larger one is shown"),
    "utility": (f"{_PAPER}, Section 3.5 and Appendix A.2.1; f is the probability generating function of K",
                "the runs are independent and equally distributed", "K does not depend on their results"),
    "draw": ("inversion of the distribution function of K with 256 random bits a draw",
             "the bits come from the operating system's entropy"),
}  # fmt: skip
_UTILITY = {
    "mean_runs": "E[K] = f'(1)",
    "expected_quantile": "E[K/(K+1)] = 1 - integral of f over [0, 1]",
    "success_probability": "1 - f(1 - p), with p the success rate of one run",
    "expected_score": "sum of x (f(G(x)) - f(G(x-))) over the scores x, with G their empirical distribution",
}


def explanation(result: Any, document: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """What to say about a result beside what its document says, if there is anything."""
    command = document.get("command")
    if command == "bound":
        told: dict[str, Any] = dict(document.get("explain") or {})
        if document.get("law") and case["dist"] not in (None, *NOT_DRAWN):
            told["draw"] = case.written("draw", {key: case.options[key] for key in LAW})
    elif command == "plan" and result.best.cost is not None:
        told = replace(result.best.cost, explain=True).document()["explain"]
    elif command == "compare" and hasattr(result, "entries"):
        best = [(one.runs, one.cost.best) for one in result.entries if one.runs and one.cost and one.cost.best]
        told = {
            "theorems": [
                {"law": " ".join([runs.name, *(f"{key} {value}" for key, value in runs.parameters().items())]),
                 "theorem": bound.source.citation, "order": bound.order, "conversion": bound.conversion}
                for runs, bound in best
            ],
            "conditions": [*dict.fromkeys(text for _, one in best for text in one.source.conditions)],
        }  # fmt: skip
    elif command in ("convert", "utility", "draw"):
        theorem, *conditions = _SOURCES.get(str(document.get("conversion", command)), (None,))
        told = {"theorem": theorem, "inputs": document["from" if command == "convert" else "law"]}
        told |= {key: document[key] for key in ("conversion", "order") if key in document}
        if command == "utility":
            told["formulas"] = {key: text for key, text in _UTILITY.items() if document.get(key) is not None}
        told["conditions"] = conditions
    else:
        return {}
    return {"explain": told}
