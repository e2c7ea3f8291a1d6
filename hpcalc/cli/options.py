"""Every option of every command, declared once.

A command is a list of option names (:func:`select`); the parser, ``--help``, the environment variables, the spec
files, the man pages and the completions all read the same declarations. Help text is plain ASCII: it must be legible
on every stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from hpcalc.catalog import DISTS
from hpcalc.catalog import METHODS as BOUNDS
from hpcalc.cli.option import GROUPS, Option
from hpcalc.cli.types import Choice, File, Integer, Number, Orders, Text

__all__ = ["BASE", "COMMON", "DISTS", "FORMATS", "GROUPS", "METHODS", "PRIVACY", "RUNS", "Option", "select"]

FORMATS = ("table", "yaml", "json", "csv", "markdown")
METHODS = ("best", "paper", "refined", *BOUNDS)

_BASE, _SGD, _RUNS, _QUESTION, _UTILITY, _ACCOUNTING, _OUTPUT, _SPEC, _HELP = GROUPS


def _number(**attributes: Any) -> dict[str, Any]:
    return {"type": Number(infinite=attributes.pop("infinite", False)), **attributes}


# name -> what Click needs to know. Order is the order of --help within a group.
_DECLARED: dict[str, dict[str, Any]] = {
    # One run. An infinite loss is legal input: it means "no guarantee", and the answer says so (exit 3).
    "pure": _number(infinite=True, group=_BASE, metavar="EPS", multiple=True, help="EPS-differential privacy."),
    "zcdp": _number(
        infinite=True, group=_BASE, metavar="RHO", multiple=True, help="RHO-zero-concentrated differential privacy."
    ),
    "approx-dp": _number(
        infinite=True,
        group=_BASE,
        metavar="EPS DELTA",
        nargs=2,
        multiple=True,
        help="(EPS, DELTA)-differential privacy.",
    ),
    "gaussian": _number(
        group=_BASE,
        metavar="SIGMA",
        multiple=True,
        help="Gaussian mechanism; SIGMA is the noise multiplier, noise standard deviation / L2 sensitivity.",
    ),
    "laplace": _number(
        group=_BASE, metavar="SCALE", multiple=True, help="Laplace mechanism; SCALE is noise scale / L1 sensitivity."
    ),
    "rdp": {
        "type": Text(),
        "group": _BASE,
        "metavar": "ORDER:EPS,...",
        "multiple": True,
        "help": "Points of a Renyi curve, e.g. 2:0.5,8:1.9,inf:4.",
    },
    "rdp-file": {
        "type": File(),
        "group": _BASE,
        "metavar": "FILE",
        "multiple": True,
        "help": "Points of a Renyi curve from a YAML, JSON or CSV file, as other accountants export them.",
    },
    "profile-file": {
        "type": File(),
        "group": _BASE,
        "metavar": "FILE",
        "multiple": True,
        "help": "Points (epsilon, delta) of a privacy profile from a YAML, JSON or CSV file.",
    },
    "compose": {
        "type": Integer(1),
        "group": _BASE,
        "metavar": "N",
        "help": "One run is N compositions of everything given above.",
    },
    "dpsgd": _number(
        group=_SGD,
        metavar="RATE SIGMA STEPS",
        nargs=3,
        multiple=True,
        help="Poisson-sampled DP-SGD: sampling rate, noise multiplier, number of steps.",
    ),
    "noise-multiplier": _number(
        group=_SGD, metavar="SIGMA", help="DP-SGD in the words of a training script; with the options below."
    ),
    "examples": {"type": Integer(1), "group": _SGD, "metavar": "N", "help": "Size of the training set."},
    "batch-size": {
        "type": Integer(1),
        "group": _SGD,
        "metavar": "B",
        "help": "Expected batch size, before accumulation.",
    },
    "epochs": _number(group=_SGD, metavar="E", help="Passes over the training set; steps are rounded up and echoed."),
    "accumulation": {
        "type": Integer(1),
        "group": _SGD,
        "metavar": "A",
        "help": "Batches accumulated for one noisy step: the rate is A B / N.",
    },
    # The number of runs.
    "dist": {"type": Choice(DISTS), "group": _RUNS, "metavar": "LAW", "help": f"Law of K: {', '.join(DISTS)}."},
    "mu": _number(group=_RUNS, metavar="M", help="poisson: the mean."),
    "eta": _number(group=_RUNS, metavar="H", help="tnb: the shape, above -1 (0 is logarithmic, 1 is geometric)."),
    "gamma": _number(group=_RUNS, metavar="G", help="tnb, geometric, logarithmic: the scale, in (0, 1)."),
    "n": {"type": Integer(1), "group": _RUNS, "metavar": "N", "help": "binomial: the number of coins."},
    "p": _number(group=_RUNS, metavar="P", help="binomial: the probability of each coin."),
    "k": {"type": Integer(1), "group": _RUNS, "metavar": "K", "help": "fixed: the number of runs."},
    "pmf": {
        "type": File(),
        "group": _RUNS,
        "metavar": "FILE",
        "help": "pmf: probabilities of K from a YAML, JSON or CSV file.",
    },
    "accept": _number(
        group=_RUNS,
        metavar="P",
        help="threshold: runs repeat until one is accepted; P is a lower bound on its acceptance, or the stop coin.",
    ),
    "mean": _number(group=_RUNS, metavar="M", help="The mean of K in place of the law's scale parameter."),
    "max-runs": {"type": Integer(1), "group": _RUNS, "metavar": "M", "help": "K given K <= M."},
    "at-least-one": {"is_flag": True, "group": _RUNS, "help": "K given K >= 1."},
    "law": {
        "type": Text(),
        "group": _RUNS,
        "metavar": "LAW",
        "multiple": True,
        "help": 'A law to consider, e.g. "tnb:eta=0,mean=10"; may be repeated.',
    },
    # Questions.
    "max-epsilon": _number(
        group=_QUESTION, metavar="EPS", help="Gate: exit code 1 if the whole search costs more than EPS."
    ),
    "epsilon": _number(group=_QUESTION, metavar="EPS", help="Answer with the delta of this epsilon."),
    "to": {
        "type": Choice(("approx-dp", "rdp", "zcdp", "pure")),
        "group": _QUESTION,
        "metavar": "KIND",
        "default": "approx-dp",
        "help": "Guarantee to convert to: approx-dp, rdp, zcdp or pure.",
    },
    "at-epsilon": _number(group=_QUESTION, metavar="EPS", help="Compare the laws at this epsilon of the whole search."),
    "at-success": _number(
        group=_QUESTION, metavar="BETA", help="Compare the laws at this success probability (with --success-rate)."
    ),
    "sweep": {
        "type": Text(),
        "group": _QUESTION,
        "metavar": "mean=A:B:N",
        "help": "Curves: N means from A to B, log-spaced, e.g. mean=1:1000:30.",
    },
    "selection": {
        "type": Integer(1),
        "group": _QUESTION,
        "metavar": "M",
        "help": "Choosing one of M candidates: against the exponential mechanism and report-noisy-max.",
    },
    "sensitivity": _number(
        group=_QUESTION, metavar="S", help="Sensitivity of the candidates' scores, for --selection."
    ),
    "target-epsilon": _number(group=_QUESTION, metavar="EPS", help="What the whole search may cost at --delta."),
    "solve-for": {
        "type": Choice(("runs", "zcdp", "pure", "gaussian", "laplace", "dpsgd-noise")),
        "group": _QUESTION,
        "metavar": "WHAT",
        "help": "What to solve for: runs (the law's scale parameter), or the base's zcdp, pure, gaussian, laplace or "
        "dpsgd-noise with the law given.",
    },
    "maximize": {
        "type": Choice(("quantile", "success", "score", "runs")),
        "group": _QUESTION,
        "metavar": "GOAL",
        "help": "Order of the rows and the recommendation: quantile, success, score or runs.",
    },
    "optimize-eta": {"is_flag": True, "group": _QUESTION, "help": "Search the whole TNB family for the best eta."},
    "target-success": _number(
        group=_QUESTION, metavar="BETA", help="The cheapest law that reaches this success probability."
    ),
    "max-runs-p95": {
        "type": Integer(1),
        "group": _QUESTION,
        "metavar": "N",
        "help": "Only plans whose 95 % quantile of K is at most N.",
    },
    "count": {
        "type": Integer(1),
        "group": _QUESTION,
        "metavar": "N",
        "default": 1,
        "help": "How many values of K to draw.",
    },
    # Utility.
    "success-rate": _number(group=_UTILITY, metavar="P", help="Probability that a single run is good."),
    "scores": {
        "type": File(),
        "group": _UTILITY,
        "metavar": "FILE",
        "help": "Scores of single runs from public pilot data: CSV, or one number a line.",
    },
    "column": {"type": Text(), "group": _UTILITY, "metavar": "NAME", "help": "Column of --scores."},
    "minimize": {"is_flag": True, "group": _UTILITY, "help": "Scores are losses: the smallest is best."},
    # Accounting.
    "delta": _number(group=_ACCOUNTING, metavar="DELTA", default=1e-6, help="Delta of the reported guarantee."),
    "method": {
        "type": Choice(METHODS),
        "group": _ACCOUNTING,
        "metavar": "NAME",
        "default": "best",
        "help": "Bounds to use: best, paper, refined, or one method by name.",
    },
    "conversion": {
        "type": Choice(("best", "cks", "mironov", "exact")),
        "group": _ACCOUNTING,
        "metavar": "RULE",
        "default": "best",
        "help": "From Renyi to (epsilon, delta): best, cks (Canonne-Kamath-Steinke), mironov or exact.",
    },
    "orders": {
        "type": Orders(),
        "group": _ACCOUNTING,
        "metavar": "LIST",
        "help": "Renyi orders, comma-separated, each above 1; replaces the continuous search.",
    },
    # Output.
    "format": {
        "type": Choice(FORMATS),
        "group": _OUTPUT,
        "metavar": "FORMAT",
        "default": "table",
        "help": "table, yaml, json, csv or markdown (with the reviewer's checklist).",
    },
    "explain": {
        "is_flag": True,
        "group": _OUTPUT,
        "help": "Say which theorem, inputs, order and conditions gave the answer.",
    },
    "output": {
        "type": File(),
        "group": _OUTPUT,
        "metavar": "FILE",
        "help": "Write to FILE, whole or not at all.",
    },
    "profile-out": {
        "type": File(),
        "group": _OUTPUT,
        "metavar": "FILE",
        "help": "Also write the privacy profile (epsilon, delta) of the whole search.",
    },
    "rdp-out": {
        "type": File(),
        "group": _OUTPUT,
        "metavar": "FILE",
        "help": "Also write the Renyi curve of the whole search.",
    },
    "plot": {
        "type": File(),
        "group": _OUTPUT,
        "metavar": "FILE",
        "help": "Also draw the answer: .svg, .png or .pdf (needs hpcalc[plot]); - is a chart in the terminal.",
    },
    # Spec files.
    "spec": {
        "type": File(),
        "group": _SPEC,
        "metavar": "FILE",
        "in_spec": False,
        "help": "Read options from a YAML file: one mapping, or a list of cases with a name each.",
    },
    "save-spec": {
        "type": File(),
        "group": _SPEC,
        "metavar": "FILE",
        "in_spec": False,
        "help": "Also write these options as a spec file.",
    },
}

BASE = (
    "pure",
    "zcdp",
    "approx-dp",
    "gaussian",
    "laplace",
    "rdp",
    "rdp-file",
    "profile-file",
    "compose",
    "dpsgd",
    "noise-multiplier",
    "examples",
    "batch-size",
    "epochs",
    "accumulation",
)
RUNS = ("dist", "mu", "eta", "gamma", "n", "p", "k", "pmf", "accept", "mean", "max-runs", "at-least-one")
PRIVACY = ("delta", "method", "conversion", "orders")
COMMON = ("format", "explain", "output", "spec", "save-spec")

# HPCALC_FORMAT and HPCALC_DELTA speak to every command; the command's own variable wins over them.
_SHARED_VARIABLES = ("format", "delta")


def select(command: str, *names: str | Sequence[str], hidden: Sequence[str] = ()) -> list[click.Parameter]:
    """The options of a command.

    Parameters
    ----------
    command : str
        Name of the command; it decides the names of the environment variables.
    names : str or sequence of str
        Option names, or groups of them such as :data:`BASE`.
    hidden : sequence of str
        Options that are accepted but mean nothing to this command, so that one set of options serves them all.
    """
    flat = [name for entry in names for name in ((entry,) if isinstance(entry, str) else entry)]
    options: list[click.Parameter] = []
    for name in [*flat, *hidden]:
        attributes = dict(_DECLARED[name])
        variable = name.upper().replace("-", "_")
        variables = [f"HPCALC_{command.upper()}_{variable}"]
        if name in _SHARED_VARIABLES:
            variables.append(f"HPCALC_{variable}")
        options.append(Option(f"--{name}", envvar=variables, hidden=name in hidden, **attributes))
    return options
