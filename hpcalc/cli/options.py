"""Every option there is, one line each.

A command is a list of keys; the parser, ``--help``, the environment variables, the spec files, the man pages and the
completions all read the same declarations. Help text is plain ASCII: it must be legible on every stream.
"""

from __future__ import annotations

from typing import Any

from hpcalc.catalog import DISTS, LAWS, PARAMETERS
from hpcalc.catalog import GUARANTEES as KINDS
from hpcalc.catalog import METHODS as BOUNDS
from hpcalc.cli.command import Option
from hpcalc.cli.types import Choice, File, Flag, Integer, Line, Number, Orders, Rate, Text

__all__ = ["ACCOUNTING", "FORMATS", "GUARANTEES", "LAW", "METHODS", "NOTES", "OPTIONS", "OUTPUT", "PART", "RELEASE",
           "TRAINING"]  # fmt: skip

FORMATS = ("table", "yaml", "json", "csv", "markdown")
METHODS = ("best", "paper", "refined", *BOUNDS)

_SGD = "DP-SGD, one training run"
_BASE = "Other guarantees of one run"
_RELEASE = "The search and what else is released"
_RUNS = "The number of runs K"
_ACCOUNTING = "Accounting"

flag, num, whole, file, text = Flag(), Number(), Integer(), File(), Text()
# An infinite loss is legal input: it means "no guarantee", and the answer says so (exit code 3).
loss, curve, law = Number(infinite=True), File(".csv", ".json", ".yaml", ".yml"), Text(*DISTS)
to, goal = Choice("approx-dp", "rdp", "zcdp", "pure"), Choice("quantile", "success", "score", "runs")
solve = Choice("runs", *(row.solve_for for row in KINDS.values() if row.solve_for))
method, rule, formats = Choice(*METHODS), Choice("best", "cks", "mironov", "exact"), Choice(*FORMATS)
_FIRST = ("gaussian", "laplace", "zcdp", "pure", "approx-dp")  # of the guarantees that are no DP-SGD; others follow


def _or(choice: Choice) -> str:
    *most, last = choice.words
    return f"{', '.join(most)} or {last}"


def _kind(name: str) -> Option:
    """The option of a guarantee, as the catalog has it."""
    row = KINDS[name]
    kind = file if row.metavar == "FILE" else loss if row.infinite else num if row.arity else text
    return Option(name.replace("-", "_"), row.metavar, kind, row.help, many=True)


# Order is the order of --help.
_GROUPS: dict[str, tuple[Option, ...]] = {
    _SGD: (
        Option("noise_multiplier", "SIGMA", num, "Noise standard deviation / clipping norm, as in a training script."),
        Option("sample_rate", "RATE", num, "Chance of an example to be in a batch; or --examples and --batch-size."),
        Option("examples", "N", whole, "Size of the training set; beside any guarantee, what delta is held against."),
        Option("batch_size", "B", whole, "Expected batch size, before accumulation."),
        Option("accumulation", "A", whole, "Batches accumulated for one noisy step: the rate is A B / N."),
        Option("steps", "T", whole, "Noisy steps of one run; or --epochs."),
        Option("epochs", "E", num, "Passes over the training set; steps are rounded up and echoed."),
        _kind("dpsgd"),
        Option("history", "FILE", file, "DP-SGD as Opacus keeps it, history: [[noise, rate, steps], ...].", many=True),
    ),
    _BASE: (
        *(_kind(name) for name in _FIRST),
        *(_kind(name) for name in KINDS if name not in ("dpsgd", *_FIRST)),
        Option("candidates", "FILE", file, "Settings with guarantees of their own (YAML, JSON, CSV): a run draws one."),
        Option("run", "LIST", text, "Guarantees that compose in one run, each with its times (spec files).", many=True),
        Option("compose", "N", whole, "One run is N compositions of everything given above."),
        Option("group", "K", whole, "The privacy unit owns up to K records."),
    ),
    _RUNS: (
        Option("dist", "LAW", Choice(*DISTS), "Law of K, one of those below."),
        Option("mean", "M", num, "The mean of K in place of the law's scale parameter."),
        *(Option(key, row.metavar, {"whole": whole, "file": file}.get(row.domain, num), row.help)
          for key, row in PARAMETERS.items()),
        Option("max_runs", "M", whole, "K given K <= M: drawn again while larger."),
        Option("clamp_runs", "M", whole, "min(K, M): a search that is stopped at M runs."),
        Option("at_least_one", "", flag, "K given K >= 1."),
        Option("law", "LAW", law, 'A law to consider, e.g. "tnb:eta=0,mean=10"; may be repeated.', many=True),
    ),
    _RELEASE: (
        Option("then", "NAME=VALUES", text, "Released afterwards: gaussian=5, dpsgd=0.01,1.1,1000 or run.", many=True),
        Option("searches", "N", whole, "So many such searches, each released."),
        Option("subset", "Q", Rate(), "The whole search ran on a Poisson sample of the records at rate Q."),
        Option("then_on", "WHICH", Choice("all", "rest"),
               "With --subset, what --then saw: all records, or the rest.", default="all"),
        Option("density", "LOW HIGH", num, "Adaptive proposals, their density within [LOW, HIGH] of one fixed prior."),
        Option("unit", "TEXT", text, 'The privacy unit in words, e.g. "one patient".'),
    ),
    "Question": (
        Option("max_epsilon", "EPS", num, "Gate: exit code 1 if everything released costs more than EPS."),
        Option("require_max_epsilon", "", flag, "A case without a max-epsilon is an error.", in_spec=False),
        Option("epsilon", "EPS", num, "Answer with the delta of this epsilon."),
        Option("to", "KIND", to, f"Guarantee to convert to: {_or(to)}.", default="approx-dp"),
        Option("at_epsilon", "EPS", num, "Compare the laws at this epsilon of the whole search."),
        Option("at_success", "BETA", num, "Compare the laws at this success probability (with --success-rate)."),
        Option("sweep", "mean=A:B:N", text, "Curves: N means from A to B, log-spaced, e.g. mean=1:1000:30."),
        Option("selection", "M", whole, "Choosing one of M: against the exponential mechanism and report-noisy-max."),
        Option("sensitivity", "S", num, "Sensitivity of the candidates' scores, for --selection."),
        Option("target_epsilon", "EPS", num, "What everything released may cost at --delta."),
        Option("solve_for", "WHAT", solve, f"What to solve for: the law's scale, or the base's noise: {_or(solve)}."),
        Option("maximize", "GOAL", goal, f"Order of the rows and the recommendation: {_or(goal)}."),
        Option("optimize_eta", "", flag, "Search the whole TNB family for the best eta."),
        Option("target_success", "BETA", num, "The cheapest law that reaches this success probability."),
        Option("max_runs_p95", "N", whole, "Only plans whose 95 % quantile of K is at most N."),
        Option("count", "N", whole, "How many values of K to draw.", default=1),
    ),
    "Utility": (
        Option("success_rate", "P", num, "Probability that a single run is good."),
        Option("scores", "FILE", file, "Scores of single runs from public pilot data: CSV, or one number a line."),
        Option("column", "NAME", text, "Column of --scores."),
        Option("missing", "WHAT", Choice("worst", "skip"),
               "Runs without a score in --scores: worst (they rank last) or skip."),
        Option("minimize", "", flag, "Scores are losses: the smallest is best."),
    ),
    _ACCOUNTING: (
        Option("delta", "DELTA", num, "Delta of the reported guarantee.", default=1e-6),
        Option("method", "NAME", method, "Bounds to use: best, paper, refined, or one by its name.", default="best"),
        Option("conversion", "RULE", rule, f"From Renyi to (epsilon, delta): {_or(rule)}.", default="best"),
        Option("orders", "LIST", Orders(),
               "Renyi orders, comma-separated, each above 1, in place of the search for one."),
    ),
    "Output": (
        Option("format", "FORMAT", formats, f"{_or(formats)}.", default="table"),
        Option("explain", "", flag, "Say which theorem, inputs, order and conditions gave the answer."),
        Option("quiet", "", flag, "The headline alone, one line a case.", in_spec=False, short="-q"),
        Option("output", "FILE", file,
               "Write to FILE, whole or not at all; its suffix chooses the format.", short="-o"),
        Option("profile_out", "FILE", curve, "Also write the privacy profile (epsilon, delta): .csv, .json or .yaml."),
        Option("rdp_out", "FILE", curve, "Also write the Renyi curve: .csv, .json or .yaml."),
        Option("plot", "FILE", file,
               "Also draw the answer: .svg, .png, .pdf (needs hpcalc[plot]), - for a text chart."),
    ),
    "Spec files": (
        Option("spec", "FILE", file, "Read options from a YAML file, one mapping or a list of cases.", in_spec=False),
        Option("case", "NAME", text, "The case of --spec that is meant.", in_spec=False),
        Option("total", "", flag, "One more case, all of them together; --max-epsilon is its limit."),
        Option("save_spec", "FILE", file, "Also write these options as a spec file.", in_spec=False),
    ),
}  # fmt: skip
OPTIONS = {option.key: option for options in _GROUPS.values() for option in options}
for _heading, _options in _GROUPS.items():
    for _option in _options:
        _option.group = _heading

# The words of a training script describe one guarantee; every other option of these groups is one of its own.
TRAINING = ("noise_multiplier", "sample_rate", "batch_size", "accumulation", "steps", "epochs")
_ASIDE = (*TRAINING, "examples", "compose", "group", "run")
GUARANTEES = tuple(one.key for one in (*_GROUPS[_SGD], *_GROUPS[_BASE]) if one.key not in _ASIDE)
# Of a guarantee within a case: of a candidate, of one part of a run, of what is released afterwards.
PART = {key: OPTIONS[key] for key in (*GUARANTEES, *TRAINING, "examples") if key != "candidates"}
PART |= {"name": Option("name", "TEXT", Line(), ""), "times": Option("times", "N", whole, "")}
LAW = tuple(option.key for option in _GROUPS[_RUNS] if option.key != "law")
RELEASE = tuple(option.key for option in _GROUPS[_RELEASE])
ACCOUNTING = tuple(option.key for option in _GROUPS[_ACCOUNTING])
OUTPUT = ("format", "explain", "quiet", "output", "spec", "case", "save_spec")

# What stands below a heading of --help: what an option may be repeated for, and every law in full.
NOTES: dict[str, Any] = {
    _SGD: "Guarantees may be given more than once; all of them happen in one run, so they compose.",
    _RUNS: [(" ".join([name, *(f"--{key} {PARAMETERS[key].metavar}" for key in row.parameters)]), f"{row.title}.")
            for name, row in LAWS.items()],
}  # fmt: skip
