"""The six commands: which options each has, and which question of :mod:`hpcalc.questions` they ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hpcalc import __version__
from hpcalc.cli.case import COMMAND_LINE, ENVIRONMENT, SPEC, Case, CommandLineError
from hpcalc.cli.command import Command
from hpcalc.cli.options import ACCOUNTING, GUARANTEES, LAW, NOTES, OUTPUT, RELEASE, TRAINING, select
from hpcalc.errors import ExitCode

if TYPE_CHECKING:
    from hpcalc.laws import RunCount

__all__ = ["command", "total"]

_BASE = (*GUARANTEES, *TRAINING, "examples", "compose", "group")
_SCORES = ("success-rate", "scores", "column", "missing", "minimize")
_MOST = 10_000_000  # values of one call of draw; they are held in memory


def _bound(case: Case) -> Any:
    from hpcalc.cli import inputs
    from hpcalc.cli.progress import Progress
    from hpcalc.questions import bound

    base = inputs.guarantee(case)
    law = inputs.law(case, base)
    limits = {"max_epsilon": case["max_epsilon"], "explain": bool(case["explain"])}
    with Progress() as progress:
        return bound(base, law, **limits, **inputs.release(case, base), **inputs.accounting(case), progress=progress)


def total(case: Case, others: Sequence[tuple[Case, Any]]) -> Any:
    """Everything that a list of cases releases, together."""
    if len({one["group"] for one, _ in others}) > 1:
        raise CommandLineError(f"{case.place}the cases have different --group: a total needs one privacy unit")
    deltas = {one["delta"] for one, _ in others}
    if case.source("delta") is None and len(deltas) > 1:
        raise CommandLineError(f"{case.place}the cases have different deltas: give the total's --delta")
    from hpcalc.questions.everything import total as together

    delta = case["delta"] if case.source("delta") is not None else max(deltas)
    results = {str(one.name): result for one, result in others}
    return together(results, delta=delta, conversion=case["conversion"], max_epsilon=case["max_epsilon"])


def _convert(case: Case) -> Any:
    from hpcalc.cli import inputs
    from hpcalc.questions import convert

    epsilon = case["epsilon"]
    if epsilon is not None:
        if case["to"] != "approx-dp":
            case.refuse("epsilon", f"asks for a delta, which --to {case['to']} has not: leave one of them out")
        if case.source("delta") not in (None, ENVIRONMENT):
            case.refuse("epsilon", "asks for the delta of this epsilon: leave --delta out")
    delta = case["delta"] if epsilon is None else None
    asked = {key: case[key] for key in ("to", "conversion", "orders")}
    return convert(inputs.guarantee(case), delta=delta, epsilon=epsilon, **asked)


def _utility(case: Case) -> Any:
    from hpcalc.cli import inputs
    from hpcalc.questions import utility

    law = inputs.law(case)
    return utility(law, success_rate=case["success_rate"], scores=inputs.scores(case), minimize=bool(case["minimize"]))


_FOOTING = ("mean", "at_epsilon", "at_success", "sweep")


def _compare(case: Case) -> Any:
    from hpcalc.cli import inputs
    from hpcalc.cli.progress import Progress
    from hpcalc.questions import compare

    asked = [key for key in _FOOTING if case[key] is not None]
    if len(asked) > 1 and not (case["selection"] is not None and set(asked) == {"mean", "at_epsilon"}):
        case.refuse(asked[1], f"compares on another footing than --{asked[0].replace('_', '-')}: keep one of them")
    if case["sensitivity"] is not None and case["selection"] is None:
        case.refuse("sensitivity", "speaks about the candidates' scores: give --selection too")
    laws, footing = inputs.laws_named(case), {key: case[key] for key in _FOOTING}
    with Progress() as progress:
        if case["selection"] is not None:
            return _selection(case, laws, progress)
        base = inputs.guarantee(case)
        return compare(
            base,
            laws,
            success_rate=case["success_rate"],
            scores=inputs.scores(case),
            minimize=bool(case["minimize"]),
            curves=case["plot"] is not None,
            progress=progress,
            **_own_law(case, laws, footing),
            **inputs.release(case, base),
            **inputs.accounting(case),
        )


def _own_law(case: Case, laws: Any, footing: dict[str, Any]) -> dict[str, Any]:
    """The footing, and the law that a spec file states: it is a marked row, and its mean is everyone's."""
    from hpcalc.cli import inputs

    if case["dist"] is None:
        return footing
    parameters = inputs.law_parameters(case)
    assert parameters is not None
    if all(value is None for value in footing.values()):
        from hpcalc.laws import make_law

        plain = {
            key: value for key, value in parameters.items() if key not in ("max_runs", "clamp_runs", "at_least_one")
        }
        footing = {**footing, "mean": make_law(**plain).mean}
    return {**footing, "in_use": parameters}


def _selection(case: Case, laws: Any, progress: Any) -> Any:
    from hpcalc.cli import inputs
    from hpcalc.questions.selection import compare_selection

    for key in ("at_success", "sweep", "success_rate", "scores", "plot"):
        if case[key] is not None:
            case.refuse(key, "does not go with --selection, which asks for the error of choosing one candidate")
    return compare_selection(
        case["selection"],
        case["sensitivity"] if case["sensitivity"] is not None else 1.0,
        case["at_epsilon"],
        base=inputs.some_guarantee(case),
        laws=laws,
        mean=case["mean"],
        delta=case["delta"],
        progress=progress,
    )


_GOALS = ("solve_for", "maximize", "target_success", "max_runs_p95")


def _plan(case: Case) -> Any:
    from hpcalc.cli import inputs
    from hpcalc.cli.progress import Progress
    from hpcalc.questions import plan

    noise = case["solve_for"] not in (None, "runs")
    options: dict[str, Any] = {}
    described = case
    if noise:
        options["compositions"], described = case["compose"], case.without("compose")
        if case["candidates"] is not None:
            options["compositions"] = None  # each candidate composes by itself
        if case.source(case["solve_for"]) == SPEC:  # what the spec says of it is what another value is sought for
            described = described.without(case["solve_for"])
        if case["solve_for"] == "dpsgd-noise":
            options["sampling"] = _sampling(case) if case["candidates"] is None else inputs.candidates_at(case)
            described = described.without(*(name.replace("-", "_") for name in ("dpsgd", "candidates", *TRAINING)))
    named, laws = inputs.law_parameters(case, optional=True), inputs.laws_named(case)
    if named is None:
        if case["mean"] is not None:
            if not noise:
                case.refuse("mean", "is what plan solves for: leave it out")
            options["mean"] = case["mean"]
        modifiers = {key: case[key] for key in ("max_runs", "clamp_runs", "at_least_one") if case[key]}
        if modifiers:
            from hpcalc.laws.family import default_laws

            laws = [{**law, **modifiers} for law in laws or default_laws()]
    elif not noise and case["subset"] != "auto":
        # a spec states the law that was checked; what is solved for is its scale
        kept = {key for key in named if case.source(key) == COMMAND_LINE}
        named = {key: value for key, value in named.items() if key in kept or key in inputs.open_scale(named)}
    base = inputs.some_guarantee(described) if noise else inputs.guarantee(described)
    target = case["target_epsilon"] if case["target_epsilon"] is not None else case["max_epsilon"]
    with Progress() as progress:
        return plan(
            base,
            named,
            laws=laws,
            target_epsilon=target,
            success_rate=case["success_rate"],
            scores=inputs.scores(case),
            minimize=bool(case["minimize"]),
            optimize_eta=bool(case["optimize_eta"]),
            progress=progress,
            **{key: case[key] for key in _GOALS},
            **options,
            **inputs.release(case, base),
            **inputs.accounting(case),
        )


def _sampling(case: Case) -> tuple[float, int] | None:
    """Rate and steps of the training whose noise is solved for; the noise given with them, if any, is not used."""
    from hpcalc.cli import inputs

    shape = inputs.training(case.without("noise_multiplier"), noise=False)
    given = case["dpsgd"] or ()
    if len(given) + (shape is not None) > 1:
        case.refuse("dpsgd", "--solve-for dpsgd-noise solves for one training: describe one")
    return (given[0][0], int(given[0][2])) if given else shape


@dataclass(frozen=True)
class DrawResult:
    """Drawn values of K.

    Attributes
    ----------
    law : RunCount
        The law they were drawn from.
    runs : tuple of int
        The values.
    """

    law: RunCount
    runs: tuple[int, ...]

    exit_code = ExitCode.OK

    def document(self) -> dict[str, Any]:
        """Plain document, as every result has it."""
        law = {"dist": self.law.name, **self.law.parameters(), "mean": self.law.mean, "prob_zero": self.law.prob_zero}
        answer = {"hpcalc_version": __version__, "command": "draw", "law": law}
        return {**answer, "runs": list(self.runs), "warnings": []}


def _draw(case: Case) -> DrawResult:
    import random

    from hpcalc.catalog import NOT_DRAWN
    from hpcalc.cli import inputs

    if case["count"] > _MOST:
        case.refuse("count", f"give at most {_MOST}")
    if case["dist"] in NOT_DRAWN:
        case.refuse("dist", NOT_DRAWN[case["dist"]])
    law = inputs.law(case)
    entropy = random.SystemRandom()
    return DrawResult(law, tuple(law.sample(entropy) for _ in range(case["count"])))


# -- their options ----------------------------------------------------------------------------------------------------

# name -> what answers, its options, options accepted in silence, options only a spec may hold, help, examples
_COMMANDS: dict[str, tuple[Callable[[Case], Any], Any, Any, Any, str, tuple[str, ...]]] = {
    "bound": (
        _bound,
        (*_BASE, *LAW, *RELEASE, "max-epsilon", "require-max-epsilon", *ACCOUNTING, "profile-out", "rdp-out", "plot",
         "total"),
        (),
        ("run",),
        "Privacy cost of running the base algorithm K times and releasing only the best run, beside the cost of one "
        "run, of paying for every run, and of an explicit mechanism: no analysis can report less.",
        (
            "hpcalc bound --dist tnb --eta 0 --mean 10 --noise-multiplier 1.1 --sample-rate 0.0042667 --steps 14062",
            "hpcalc bound --dist poisson --mu 10 --zcdp 0.1 --delta 1e-6 --max-epsilon 5",
        ),
    ),
    "convert": (
        _convert,
        (*_BASE, "epsilon", "to", "delta", "conversion", "orders", "profile-out", "rdp-out"),
        ("method",),
        ("run",),
        "Convert the guarantee of one run: to (epsilon, delta) at --delta or at --epsilon, to a Renyi curve, to zCDP "
        "or to pure DP. The smallest valid answer is given, with the rule that gave it.",
        ("hpcalc convert --gaussian 2 --compose 10 --delta 1e-6",),
    ),
    "utility": (
        _utility,
        (*LAW, *_SCORES, "plot"),
        ACCOUNTING,
        (),
        "What the best of K runs is worth, and how long it takes: expected quantile, chance of a good run, expected "
        "best score, and the quantiles of K itself.",
        ("hpcalc utility --dist poisson --mu 10 --success-rate 0.01",),
    ),
    "compare": (
        _compare,
        (*_BASE, *RELEASE, "law", "mean", "at-epsilon", "at-success", "sweep", "selection", "sensitivity", *_SCORES,
         *ACCOUNTING, "plot"),
        (),
        ("run", *(name for name in LAW if name != "mean")),
        "Laws of the number of runs side by side: at one mean, at one epsilon, or at one success probability. Without "
        "--law: Poisson, TNB with eta -0.5, 0, 0.5 and 1, and what a fixed number of runs costs.",
        ("hpcalc compare --zcdp 0.1 --mean 10 --success-rate 0.01",),
    ),
    "plan": (
        _plan,
        (*_BASE, *LAW, *RELEASE, "law", "target-epsilon", "solve-for", "maximize", "optimize-eta", "target-success",
         "max-runs-p95", *_SCORES, *ACCOUNTING, "plot"),
        (),
        ("run", "max-epsilon"),
        "Solve for the law of K that meets a privacy target, or, with --solve-for and a law, for the least noise of "
        "the base. What is printed meets the target when it is fed back to 'hpcalc bound'.",
        ("hpcalc plan --zcdp 0.1 --target-epsilon 4 --success-rate 0.01",),
    ),
    "draw": (
        _draw,
        (*LAW, "count"),
        ACCOUNTING,
        (),
        "Draw the number of runs K of one search from its law, with the operating system's entropy. The guarantee "
        "holds for a K that is drawn fresh, once, and never revealed.",
        ("hpcalc draw --dist poisson --mu 10",),
    ),
}  # fmt: skip


@lru_cache
def command(name: str) -> Command:
    """One of the six commands."""
    answer, names, silent, spec, text, examples = _COMMANDS[name]
    return Command(name, answer, select(name, (*names, *OUTPUT), silent, spec), text, examples, NOTES)
