"""Every option there is, and the six commands, which are lists of their keys: the one declaration that parser, help,
environment, spec files, man pages and completions read. Help text is plain ASCII, legible on every stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import click

from hpcalc import catalog
from hpcalc.cli.command import RUNS, SGD, Command, Option
from hpcalc.cli.types import choice, file, flag, loss, orders, rate, text
from hpcalc.cli.types import integer as whole
from hpcalc.cli.types import number as num

FORMATS = ("table", "yaml", "json", "csv", "markdown")
METHODS = ("best", "paper", "refined", *catalog.METHODS)
_CURVE = (".csv", ".json", ".yaml", ".yml")

_BASE = "Other guarantees of one run"
_RELEASE = "The search and what else is released"
_ACCOUNTING = "Accounting"

_FIRST = ("gaussian", "laplace", "zcdp", "pure", "approx-dp")  # of the guarantees that are no DP-SGD; others follow


def _choice(key: str, metavar: str, help: str, *words: str, default: str = "") -> Option:
    """An option whose value is one of some words, which stand in its help for ``{}``."""
    listed = f"{', '.join(words[:-1])} or {words[-1]}"
    return Option(key, metavar, choice, help.format(listed), words=words, default=default)


def _kind(name: str) -> Option:
    """The option of a guarantee, as the catalog has it."""
    row = catalog.GUARANTEES[name]
    kind = file if row.metavar == "FILE" else loss if row.infinite else num if row.arity else text
    return Option(name.replace("-", "_"), row.metavar, kind, row.help, many=True)


# Order is the order of --help.
_GROUPS: dict[str, tuple[Option, ...]] = {
    SGD: (
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
        *(_kind(name) for name in catalog.GUARANTEES if name not in ("dpsgd", *_FIRST)),
        Option("candidates", "FILE", file, "Settings with guarantees of their own (YAML, JSON, CSV): a run draws one."),
        Option("run", "LIST", text, "Guarantees that compose in one run, each with its times (spec files).", many=True),
        Option("compose", "N", whole, "One run is N compositions of everything given above."),
        Option("group", "K", whole, "The privacy unit owns up to K records."),
    ),
    RUNS: (
        _choice("dist", "LAW", "Law of K, one of those below.", *catalog.LAWS),
        Option("mean", "M", num, "The mean of K in place of the law's scale parameter."),
        *(Option(key, row.metavar, {"whole": whole, "file": file}.get(row.domain, num), row.help)
          for key, row in catalog.PARAMETERS.items()),
        Option("max_runs", "M", whole, "K given K <= M: drawn again while larger."),
        Option("clamp_runs", "M", whole, "min(K, M): a search that is stopped at M runs."),
        Option("at_least_one", "", flag, "K given K >= 1."),
        Option("law", "LAW", text, 'A law to consider, e.g. "tnb:eta=0,mean=10"; may be repeated.',
               words=tuple(catalog.LAWS), many=True),
    ),
    _RELEASE: (
        Option("then", "NAME=VALUES", text, "Released afterwards: gaussian=5, dpsgd=0.01,1.1,1000 or run.", many=True),
        Option("searches", "N", whole, "So many such searches, each released."),
        Option("subset", "Q", rate, "The whole search ran on a Poisson sample of the records at rate Q."),
        _choice("then_on", "WHICH", "With --subset, what --then saw: all records, or the rest.", "all", "rest",
                default="all"),
        Option("density", "LOW HIGH", num, "Adaptive proposals, their density within [LOW, HIGH] of one fixed prior."),
        Option("unit", "TEXT", text, 'The privacy unit in words, e.g. "one patient".'),
    ),
    "Question": (
        Option("max_epsilon", "EPS", num, "Gate: exit code 1 if everything released costs more than EPS."),
        Option("require_max_epsilon", "", flag, "A case without a max-epsilon is an error.", in_spec=False),
        Option("epsilon", "EPS", num, "Answer with the delta of this epsilon."),
        _choice("to", "KIND", "Guarantee to convert to: {}.", "approx-dp", "rdp", "zcdp", "pure", default="approx-dp"),
        Option("at_epsilon", "EPS", num, "Compare the laws at this epsilon of the whole search."),
        Option("at_success", "BETA", num, "Compare the laws at this success probability (with --success-rate)."),
        Option("sweep", "mean=A:B:N", text, "Curves: N means from A to B, log-spaced, e.g. mean=1:1000:30."),
        Option("selection", "M", whole, "Choosing one of M: against the exponential mechanism and report-noisy-max."),
        Option("sensitivity", "S", num, "Sensitivity of the candidates' scores, for --selection."),
        Option("target_epsilon", "EPS", num, "What everything released may cost at --delta."),
        _choice("solve_for", "WHAT", "What to solve for: the law's scale, or the base's noise: {}.", "runs",
                *(row.solve_for for row in catalog.GUARANTEES.values() if row.solve_for)),
        _choice("maximize", "GOAL", "Order of the rows and the recommendation: {}.", "quantile", "success", "score",
                "runs"),
        Option("optimize_eta", "", flag, "Search the whole TNB family for the best eta."),
        Option("target_success", "BETA", num, "The cheapest law that reaches this success probability."),
        Option("max_runs_p95", "N", whole, "Only plans whose 95 % quantile of K is at most N."),
        Option("count", "N", whole, "How many values of K to draw.", default="1"),
    ),
    "Utility": (
        Option("success_rate", "P", num, "Probability that a single run is good."),
        Option("scores", "FILE", file, "Scores of single runs from public pilot data: CSV, or one number a line."),
        Option("column", "NAME", text, "Column of --scores."),
        _choice("missing", "WHAT", "Runs without a score in --scores: worst (they rank last) or skip.", "worst",
                "skip"),
        Option("minimize", "", flag, "Scores are losses: the smallest is best."),
    ),
    _ACCOUNTING: (
        Option("delta", "DELTA", num, "Delta of the reported guarantee.", default="1e-6"),
        _choice("method", "NAME", "Bounds to use: best, paper, refined, or one by its name.", *METHODS, default="best"),
        _choice("conversion", "RULE", "From Renyi to (epsilon, delta): {}.", "best", "cks", "mironov", "exact",
                default="best"),
        Option("orders", "LIST", orders,
               "Renyi orders, comma-separated, each above 1, in place of the search for one."),
    ),
    "Output": (
        _choice("format", "FORMAT", "{}.", *FORMATS, default="table"),
        Option("explain", "", flag, "Say which theorem, inputs, order and conditions gave the answer."),
        Option("quiet", "", flag, "The headline alone, one line a case.", in_spec=False, short="-q"),
        Option("output", "FILE", file,
               "Write to FILE, whole or not at all; its suffix chooses the format.", short="-o"),
        Option("profile_out", "FILE", file, "Also write the privacy profile (epsilon, delta): .csv, .json or .yaml.",
               words=_CURVE),
        Option("rdp_out", "FILE", file, "Also write the Renyi curve: .csv, .json or .yaml.", words=_CURVE),
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
_KEYS = {heading: tuple(option.key for option in options) for heading, options in _GROUPS.items()}
for _heading, _options in _GROUPS.items():
    for _option in _options:
        _option.group = _heading

# The words of a training script describe one guarantee; every other option of these groups is one of its own.
TRAINING = ("noise_multiplier", "sample_rate", "batch_size", "accumulation", "steps", "epochs")
_ASIDE = (*TRAINING, "examples", "compose", "group", "run")
GUARANTEES = tuple(key for key in (*_KEYS[SGD], *_KEYS[_BASE]) if key not in _ASIDE)
# Of a guarantee within a case: of a candidate, of one part of a run, of what is released afterwards.
PART = {key: OPTIONS[key] for key in (*GUARANTEES, *TRAINING, "examples") if key != "candidates"}
PART |= {"name": Option("name", "TEXT", text, ""), "times": Option("times", "N", whole, "")}
LAW = _KEYS[RUNS][:-1]  # of one law; --law names several
_OUTPUT = ("format", "explain", "quiet", "output", "spec", "case", "save_spec")

_ONE_RUN = (*GUARANTEES, *TRAINING, "examples", "run", "compose", "group")
_SCORES = ("success_rate", "scores", "column", "missing", "minimize")


class _Row(NamedTuple):
    """What a command is declared with: keys of :data:`OPTIONS`, and what its help says."""

    options: Sequence[str]
    help: str
    examples: tuple[str, ...]
    spec: Sequence[str] = ()  # only a spec file holds them


_COMMANDS = {
    "bound": _Row(
        (*_ONE_RUN, *LAW, *_KEYS[_RELEASE], "max_epsilon", "require_max_epsilon", *_KEYS[_ACCOUNTING],
         "profile_out", "rdp_out", "plot", "total"),
        "Privacy cost of running the base algorithm K times and releasing only the best run, beside the cost of one "
        "run, of paying for every run, and of an explicit mechanism: no analysis can report less.",
        (
            "hpcalc bound --dist tnb --eta 0 --mean 10 --noise-multiplier 1.1 --sample-rate 0.0042667 --steps 14062",
            "hpcalc bound --dist poisson --mu 10 --zcdp 0.1 --delta 1e-6 --max-epsilon 5",
        ),
    ),
    "convert": _Row(
        (*_ONE_RUN, "epsilon", "to", "delta", "conversion", "orders", "profile_out", "rdp_out"),
        "Convert the guarantee of one run: to (epsilon, delta) at --delta or at --epsilon, to a Renyi curve, to zCDP "
        "or to pure DP. The smallest valid answer is given, with the rule that gave it.",
        ("hpcalc convert --gaussian 2 --compose 10 --delta 1e-6",),
    ),
    "utility": _Row(
        (*LAW, *_SCORES, "plot"),
        "What the best of K runs is worth, and how long it takes: expected quantile, chance of a good run, expected "
        "best score, and the quantiles of K itself.",
        ("hpcalc utility --dist poisson --mu 10 --success-rate 0.01",),
    ),
    "compare": _Row(
        (*_ONE_RUN, *_KEYS[_RELEASE], "law", "mean", "at_epsilon", "at_success", "sweep", "selection", "sensitivity",
         *_SCORES, *_KEYS[_ACCOUNTING], "plot"),
        "Laws of the number of runs side by side: at one mean, at one epsilon, or at one success probability. Without "
        "--law: Poisson, TNB with eta -0.5, 0, 0.5 and 1, and what a fixed number of runs costs.",
        ("hpcalc compare --zcdp 0.1 --mean 10 --success-rate 0.01",),
        spec=[key for key in LAW if key != "mean"],
    ),
    "plan": _Row(
        (*_ONE_RUN, *LAW, *_KEYS[_RELEASE], "law", "target_epsilon", "solve_for", "maximize", "optimize_eta",
         "target_success", "max_runs_p95", *_SCORES, *_KEYS[_ACCOUNTING], "plot"),
        "Solve for the law of K that meets a privacy target, or, with --solve-for and a law, for the least noise of "
        "the base. What is printed meets the target when it is fed back to 'hpcalc bound'.",
        ("hpcalc plan --zcdp 0.1 --target-epsilon 4 --success-rate 0.01",),
        spec=("max_epsilon",),
    ),
    "draw": _Row(
        (*LAW, "count"),
        "Draw the number of runs K of one search from its law, with the operating system's entropy. The guarantee "
        "holds for a K that is drawn fresh, once, and never revealed.",
        ("hpcalc draw --dist poisson --mu 10",),
    ),
}  # fmt: skip


def command(name: str) -> Command:
    """One of the six commands, its options in the order of the table."""
    row, options = _COMMANDS[name], []
    shown = {*row.options, *_OUTPUT} - {"run"}
    # how to account is accepted everywhere, also where nothing is to account
    for key in (key for key in OPTIONS if key in {*row.options, *_OUTPUT, *_KEYS[_ACCOUNTING], *row.spec}):
        option = copy(OPTIONS[key])
        option.hidden, option.spec_only = key not in shown, key == "run" or key in row.spec
        if not option.spec_only:
            # HPCALC_FORMAT and HPCALC_DELTA speak to every command; the command's own variable wins over them
            shared = [f"HPCALC_{key.upper()}"] if key in ("format", "delta") else []
            option.envvar = [f"HPCALC_{name.upper()}_{key.upper()}", *shared]
        if key == "format" and name == "bound":
            option.words = (*FORMATS, "statement")
            option.type = click.Choice(option.words)
        options.append(option)
    return Command(name, options, row.help, row.examples)
