"""Every option of every command, one line each.

A command is a list of option names (:func:`select`); the parser, ``--help``, the environment variables, the spec
files, the man pages and the completions all read the same declarations. Help text is plain ASCII: it must be legible
on every stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from hpcalc.catalog import DISTS, LAWS, PARAMETERS
from hpcalc.catalog import GUARANTEES as KINDS
from hpcalc.catalog import METHODS as BOUNDS
from hpcalc.cli.command import Option
from hpcalc.cli.types import Choice, File, Integer, LawText, Number, Orders, Text

__all__ = ["ACCOUNTING", "FORMATS", "GUARANTEES", "LAW", "METHODS", "NOTES", "OPTIONS", "OUTPUT", "RELEASE", "TRAINING",
           "every", "select"]  # fmt: skip

FORMATS = ("table", "yaml", "json", "csv", "markdown")
METHODS = ("best", "paper", "refined", *BOUNDS)
CURVES = (".csv", ".json", ".yaml", ".yml")
PICTURES = (".svg", ".png", ".pdf")

_SGD = "DP-SGD, one training run"
_BASE = "Other guarantees of one run"
_RELEASE = "The search and what else is released"
_RUNS = "The number of runs K"
_QUESTION = "Question"
_UTILITY = "Utility"
_ACCOUNTING = "Accounting"
_OUTPUT = "Output"
_SPEC = "Spec files"


class _Row(NamedTuple):
    """An option: several words in ``metavar`` are several values, none is a flag."""

    name: str
    metavar: str
    type: Any
    help: str
    many: bool = False
    default: Any = None
    in_spec: bool = True
    short: str = ""


num, whole, file, text = Number(), Integer(), File(), Text()
# An infinite loss is legal input: it means "no guarantee", and the answer says so (exit code 3).
loss, curve, law, orders = Number(infinite=True), File(*CURVES), LawText(DISTS), Orders()
to = Choice(("approx-dp", "rdp", "zcdp", "pure"))
solve = Choice(("runs", *(row.solve_for for row in KINDS.values() if row.solve_for)))
goal, which, missing = (
    Choice(("quantile", "success", "score", "runs")),
    Choice(("all", "rest")),
    Choice(("worst", "skip")),
)
method, rule = Choice(METHODS), Choice(("best", "cks", "mironov", "exact"))
formats, statement = Choice(FORMATS), Choice((*FORMATS, "statement"))
_FIRST = ("gaussian", "laplace", "zcdp", "pure", "approx-dp")  # of the guarantees that are no DP-SGD; others follow


def _or(choice: Choice) -> str:
    *most, last = choice.choices
    return f"{', '.join(most)} or {last}"


def _kind(name: str) -> _Row:
    """The option of a guarantee, as the catalog has it."""
    row = KINDS[name]
    kind = file if row.metavar == "FILE" else loss if row.infinite else num if row.arity else text
    return _Row(name, row.metavar, kind, row.help, many=True)


# Order is the order of --help.
_GROUPS: dict[str, tuple[_Row, ...]] = {
    _SGD: (
        _Row("noise-multiplier", "SIGMA", num, "Noise standard deviation / clipping norm, as in a training script."),
        _Row("sample-rate", "RATE", num, "Chance of an example to be in a batch; or --examples and --batch-size."),
        _Row("examples", "N", whole, "Size of the training set; beside any guarantee, what delta is held against."),
        _Row("batch-size", "B", whole, "Expected batch size, before accumulation."),
        _Row("accumulation", "A", whole, "Batches accumulated for one noisy step: the rate is A B / N."),
        _Row("steps", "T", whole, "Noisy steps of one run; or --epochs."),
        _Row("epochs", "E", num, "Passes over the training set; steps are rounded up and echoed."),
        _kind("dpsgd"),
        _Row("history", "FILE", file, "DP-SGD as Opacus keeps it, history: [[noise, rate, steps], ...].", many=True),
    ),
    _BASE: (
        *(_kind(name) for name in _FIRST),
        *(_kind(name) for name in KINDS if name not in ("dpsgd", *_FIRST)),
        _Row("candidates", "FILE", file, "Settings with guarantees of their own (YAML, JSON, CSV): a run draws one."),
        _Row("run", "LIST", text, "Guarantees that compose in one run, each with its times (spec files).", many=True),
        _Row("compose", "N", whole, "One run is N compositions of everything given above."),
        _Row("group", "K", whole, "The privacy unit owns up to K records."),
    ),
    _RUNS: (
        _Row("dist", "LAW", Choice(DISTS), "Law of K, one of those below."),
        _Row("mean", "M", num, "The mean of K in place of the law's scale parameter."),
        *(_Row(name, row.metavar, {"whole": whole, "file": file}.get(row.domain, num), row.help)
          for name, row in PARAMETERS.items()),
        _Row("max-runs", "M", whole, "K given K <= M: drawn again while larger."),
        _Row("clamp-runs", "M", whole, "min(K, M): a search that is stopped at M runs."),
        _Row("at-least-one", "", None, "K given K >= 1."),
        _Row("law", "LAW", law, 'A law to consider, e.g. "tnb:eta=0,mean=10"; may be repeated.', many=True),
    ),
    _RELEASE: (
        _Row("then", "NAME=VALUES", text, "Released afterwards: gaussian=5, dpsgd=0.01,1.1,1000 or run.", many=True),
        _Row("searches", "N", whole, "So many such searches, each released."),
        _Row("subset", "Q", text, "The whole search ran on a Poisson sample of the records at rate Q."),
        _Row("then-on", "WHICH", which, "With --subset, what --then saw: all records, or the rest.", default="all"),
        _Row("density", "LOW HIGH", num, "Adaptive proposals, their density within [LOW, HIGH] of one fixed prior."),
        _Row("unit", "TEXT", text, 'The privacy unit in words, e.g. "one patient".'),
    ),
    _QUESTION: (
        _Row("max-epsilon", "EPS", num, "Gate: exit code 1 if everything released costs more than EPS."),
        _Row("require-max-epsilon", "", None, "A case without a max-epsilon is an error.", in_spec=False),
        _Row("epsilon", "EPS", num, "Answer with the delta of this epsilon."),
        _Row("to", "KIND", to, f"Guarantee to convert to: {_or(to)}.", default="approx-dp"),
        _Row("at-epsilon", "EPS", num, "Compare the laws at this epsilon of the whole search."),
        _Row("at-success", "BETA", num, "Compare the laws at this success probability (with --success-rate)."),
        _Row("sweep", "mean=A:B:N", text, "Curves: N means from A to B, log-spaced, e.g. mean=1:1000:30."),
        _Row("selection", "M", whole, "Choosing one of M: against the exponential mechanism and report-noisy-max."),
        _Row("sensitivity", "S", num, "Sensitivity of the candidates' scores, for --selection."),
        _Row("target-epsilon", "EPS", num, "What everything released may cost at --delta."),
        _Row("solve-for", "WHAT", solve, f"What to solve for: the law's scale, or the base's noise: {_or(solve)}."),
        _Row("maximize", "GOAL", goal, f"Order of the rows and the recommendation: {_or(goal)}."),
        _Row("optimize-eta", "", None, "Search the whole TNB family for the best eta."),
        _Row("target-success", "BETA", num, "The cheapest law that reaches this success probability."),
        _Row("max-runs-p95", "N", whole, "Only plans whose 95 % quantile of K is at most N."),
        _Row("count", "N", whole, "How many values of K to draw.", default=1),
    ),
    _UTILITY: (
        _Row("success-rate", "P", num, "Probability that a single run is good."),
        _Row("scores", "FILE", file, "Scores of single runs from public pilot data: CSV, or one number a line."),
        _Row("column", "NAME", text, "Column of --scores."),
        _Row("missing", "WHAT", missing, "Runs without a score in --scores: worst (they rank last) or skip."),
        _Row("minimize", "", None, "Scores are losses: the smallest is best."),
    ),
    _ACCOUNTING: (
        _Row("delta", "DELTA", num, "Delta of the reported guarantee.", default=1e-6),
        _Row("method", "NAME", method, "Bounds to use: best, paper, refined, or one by its name.", default="best"),
        _Row("conversion", "RULE", rule, f"From Renyi to (epsilon, delta): {_or(rule)}.", default="best"),
        _Row("orders", "LIST", orders, "Renyi orders, comma-separated, each above 1, in place of the search for one."),
    ),
    _OUTPUT: (
        _Row("format", "FORMAT", formats, f"{_or(formats)}.", default="table"),
        _Row("explain", "", None, "Say which theorem, inputs, order and conditions gave the answer."),
        _Row("quiet", "", None, "The headline alone, one line a case.", in_spec=False, short="-q"),
        _Row("output", "FILE", file, "Write to FILE, whole or not at all; its suffix chooses the format.", short="-o"),
        _Row("profile-out", "FILE", curve, "Also write the privacy profile (epsilon, delta): .csv, .json or .yaml."),
        _Row("rdp-out", "FILE", curve, "Also write the Renyi curve: .csv, .json or .yaml."),
        _Row("plot", "FILE", file, "Also draw the answer: .svg, .png, .pdf (needs hpcalc[plot]), - for a text chart."),
    ),
    _SPEC: (
        _Row("spec", "FILE", file, "Read options from a YAML file, one mapping or a list of cases.", in_spec=False),
        _Row("case", "NAME", text, "The case of --spec that is meant.", in_spec=False),
        _Row("total", "", None, "One more case, all of them together; --max-epsilon is its limit.", in_spec=False),
        _Row("save-spec", "FILE", file, "Also write these options as a spec file.", in_spec=False),
    ),
}  # fmt: skip
OPTIONS = {row.name: (group, row) for group, rows in _GROUPS.items() for row in rows}

# The words of a training script describe one guarantee; every other option of these groups is one of its own.
TRAINING = ("noise-multiplier", "sample-rate", "batch-size", "accumulation", "steps", "epochs")
_NO_GUARANTEE = (*TRAINING, "examples", "compose", "group", "run")
GUARANTEES = tuple(row.name for row in (*_GROUPS[_SGD], *_GROUPS[_BASE]) if row.name not in _NO_GUARANTEE)
LAW = tuple(row.name for row in _GROUPS[_RUNS] if row.name != "law")
RELEASE = tuple(row.name for row in _GROUPS[_RELEASE])
ACCOUNTING = tuple(row.name for row in _GROUPS[_ACCOUNTING])
OUTPUT = ("format", "explain", "quiet", "output", "spec", "case", "save-spec")

# What stands below a heading of --help: what an option may be repeated for, and every law in full.
NOTES: dict[str, Any] = {
    _SGD: "Guarantees may be given more than once; all of them happen in one run, so they compose.",
    _RUNS: [(" ".join([name, *(f"--{key} {PARAMETERS[key].metavar}" for key in row.parameters)]), f"{row.title}.")
            for name, row in LAWS.items()],
}  # fmt: skip

# HPCALC_FORMAT and HPCALC_DELTA speak to every command; the command's own variable wins over them.
_SHARED_VARIABLES = ("format", "delta")


def select(command: str, names: Iterable[str], silent: Iterable[str] = (), spec: Iterable[str] = ()) -> list[Option]:
    """The options of a command, in the order of the table.

    ``silent`` ones are accepted but stand in no help; ``spec`` ones only a spec file holds.
    """
    silent, spec = set(silent), set(spec)
    wanted = {*names, *silent, *spec}
    assert wanted <= OPTIONS.keys(), wanted - OPTIONS.keys()
    found = [_option(command, name) for name in OPTIONS if name in wanted]
    for option in found:
        name = option.flag.lstrip("-")
        option.hidden, option.spec_only = name in silent or name in spec, name in spec
        if option.spec_only:
            option.envvar = None
    return found


@lru_cache
def every() -> dict[str, Option]:
    """Every option there is by key, of whichever command: what a spec file may hold, or another command may know."""
    options = {name.replace("-", "_"): _option("", name) for name in OPTIONS}
    for option in options.values():
        option.envvar = None
    return options


def _option(command: str, name: str) -> Option:
    group, row = OPTIONS[name]
    variable = name.upper().replace("-", "_")
    shared = [f"HPCALC_{variable}"] if name in _SHARED_VARIABLES else []
    kind = statement if name == "format" and command in ("bound", "") else row.type
    value: dict[str, Any] = {"is_flag": True} if kind is None else {"type": kind, "nargs": len(row.metavar.split())}
    option = Option(
        f"--{name}",
        *([row.short] if row.short else []),
        group=group,
        many=row.many,
        in_spec=row.in_spec,
        metavar=row.metavar or None,
        help=row.help,
        envvar=[f"HPCALC_{command.upper()}_{variable}", *shared],
        **value,
    )
    option.fallback = row.default
    return option
