"""The six commands and the options each has; what answers them is :mod:`hpcalc.cli.answers`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

from hpcalc.cli.command import Command
from hpcalc.cli.options import ACCOUNTING, FORMATS, GUARANTEES, LAW, NOTES, OPTIONS, OUTPUT, RELEASE, TRAINING
from hpcalc.cli.types import Choice

__all__ = ["command"]

_BASE = (*GUARANTEES, *TRAINING, "examples", "compose", "group")
_SCORES = ("success_rate", "scores", "column", "missing", "minimize")


class _Row(NamedTuple):
    """What a command is declared with: keys of :data:`~hpcalc.cli.options.OPTIONS`, and what its help says."""

    options: Sequence[str]
    help: str
    examples: tuple[str, ...]
    silent: Sequence[str] = ()  # accepted, and in no help
    spec: Sequence[str] = ()  # only a spec file holds them


_COMMANDS = {
    "bound": _Row(
        (*_BASE, *LAW, *RELEASE, "max_epsilon", "require_max_epsilon", *ACCOUNTING, "profile_out", "rdp_out", "plot",
         "total"),
        "Privacy cost of running the base algorithm K times and releasing only the best run, beside the cost of one "
        "run, of paying for every run, and of an explicit mechanism: no analysis can report less.",
        (
            "hpcalc bound --dist tnb --eta 0 --mean 10 --noise-multiplier 1.1 --sample-rate 0.0042667 --steps 14062",
            "hpcalc bound --dist poisson --mu 10 --zcdp 0.1 --delta 1e-6 --max-epsilon 5",
        ),
        spec=("run",),
    ),
    "convert": _Row(
        (*_BASE, "epsilon", "to", "delta", "conversion", "orders", "profile_out", "rdp_out"),
        "Convert the guarantee of one run: to (epsilon, delta) at --delta or at --epsilon, to a Renyi curve, to zCDP "
        "or to pure DP. The smallest valid answer is given, with the rule that gave it.",
        ("hpcalc convert --gaussian 2 --compose 10 --delta 1e-6",),
        silent=("method",),
        spec=("run",),
    ),
    "utility": _Row(
        (*LAW, *_SCORES, "plot"),
        "What the best of K runs is worth, and how long it takes: expected quantile, chance of a good run, expected "
        "best score, and the quantiles of K itself.",
        ("hpcalc utility --dist poisson --mu 10 --success-rate 0.01",),
        silent=ACCOUNTING,
    ),
    "compare": _Row(
        (*_BASE, *RELEASE, "law", "mean", "at_epsilon", "at_success", "sweep", "selection", "sensitivity", *_SCORES,
         *ACCOUNTING, "plot"),
        "Laws of the number of runs side by side: at one mean, at one epsilon, or at one success probability. Without "
        "--law: Poisson, TNB with eta -0.5, 0, 0.5 and 1, and what a fixed number of runs costs.",
        ("hpcalc compare --zcdp 0.1 --mean 10 --success-rate 0.01",),
        spec=("run", *(key for key in LAW if key != "mean")),
    ),
    "plan": _Row(
        (*_BASE, *LAW, *RELEASE, "law", "target_epsilon", "solve_for", "maximize", "optimize_eta", "target_success",
         "max_runs_p95", *_SCORES, *ACCOUNTING, "plot"),
        "Solve for the law of K that meets a privacy target, or, with --solve-for and a law, for the least noise of "
        "the base. What is printed meets the target when it is fed back to 'hpcalc bound'.",
        ("hpcalc plan --zcdp 0.1 --target-epsilon 4 --success-rate 0.01",),
        spec=("run", "max_epsilon"),
    ),
    "draw": _Row(
        (*LAW, "count"),
        "Draw the number of runs K of one search from its law, with the operating system's entropy. The guarantee "
        "holds for a K that is drawn fresh, once, and never revealed.",
        ("hpcalc draw --dist poisson --mu 10",),
        silent=ACCOUNTING,
    ),
}  # fmt: skip


def command(name: str) -> Command:
    """One of the six commands, its options in the order of the table."""
    row, options = _COMMANDS[name], []
    wanted = {*row.options, *OUTPUT, *row.silent, *row.spec}
    assert wanted <= OPTIONS.keys(), wanted - OPTIONS.keys()
    for key in (key for key in OPTIONS if key in wanted):
        option = copy(OPTIONS[key])
        option.hidden, option.spec_only = key in row.silent or key in row.spec, key in row.spec
        if not option.spec_only:
            # HPCALC_FORMAT and HPCALC_DELTA speak to every command; the command's own variable wins over them
            shared = [f"HPCALC_{key.upper()}"] if key in ("format", "delta") else []
            option.envvar = [f"HPCALC_{name.upper()}_{key.upper()}", *shared]
        if key == "format" and name == "bound":
            option.kind = Choice(*FORMATS, "statement")
        options.append(option)
    return Command(name, options, row.help, row.examples, NOTES)
