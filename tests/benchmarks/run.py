"""What hpcalc costs, side by side with others in one run.

    python tests/benchmarks/run.py [--quick] [process] [calls] [conversions] [bulk]

Prints Markdown tables: whole processes against ``python -c "import click"``; the same questions to hpcalc and to
dp-accounting (whose answers are looser), and conversions also by the formula Opacus publishes, each with ε, the time of
a warm call, and the time and the peak memory of a process that asks nothing else; and work in bulk. Times are CPU
times unless they say otherwise. Nothing here is asserted: figures depend on the machine, ratios less so.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version

# Nothing of size is imported here: Linux counts a parent's memory into its children's peak.


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """One Markdown table."""
    for row in (heads, ["---"] * len(heads), *rows):
        print(f"| {' | '.join(row)} |")
    print()


def used(command: Sequence[str], runs: int = 1) -> list[float]:
    """Wall and CPU time (s) and peak memory (MiB) of one process, medians of several runs."""
    # an installed package comes with its bytecode, so a checkout may write it
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    nothing = subprocess.DEVNULL
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        child = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise RuntimeError(f"{command} ended with code {child.returncode}")
        peak = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        found.append((time.perf_counter() - start, usage.ru_utime + usage.ru_stime, peak))
    return [statistics.median(each) for each in zip(*found, strict=True)]


def process(quick: bool) -> None:
    """Whole processes, as ratios to importing click."""
    script = shutil.which("hpcalc", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    own = [script] if script else [sys.executable, "-m", "hpcalc"]
    bound = "bound --dist poisson --mu 10 --format yaml"
    asked = {
        "version": "--version",
        "help": "--help",
        "bound, zCDP": f"{bound} --zcdp 0.1",
        "bound, Gaussian": f"{bound} --gaussian 2.236",
        "bound, pure": f"{bound} --pure 1",
        "bound, DP-SGD": f"{bound} --dpsgd 0.01 1.1 200",
        "plan, zCDP, five laws": "plan --zcdp 0.1 --target-epsilon 4",
        "compare, zCDP": "compare --zcdp 0.1 --mean 10",
    }
    commands = {'python -c "import click"': [sys.executable, "-c", "import click"]}
    commands |= {f"hpcalc {name}": [*own, *line.split()] for name, line in asked.items()}
    if not quick:
        question = f"{OTHER}ask(e.RepeatAndSelectDpEvent(e.ZCDpEvent(0.1), 10, float('inf')))"
        commands["the same question to dp-accounting (zCDP)"] = [sys.executable, "-c", question]
    for command in commands.values():
        used(command)  # warms the caches, and writes a checkout's bytecode
    medians = {name: used(command, 3 if quick else 9) for name, command in commands.items()}
    unit = next(iter(medians.values()))[0]
    rows = [
        (name, f"{1e3 * wall:.0f} ms", f"{wall / unit:.2f}", f"{1e3 * cpu:.0f} ms", f"{peak:.0f} MiB")
        for name, (wall, cpu, peak) in medians.items()
    ]
    table(("process", "wall time", "ratio", "CPU time", "peak memory"), rows)


#: ε, and the median CPU time of a call after a warm-up: other work on the machine disturbs it least.
WARM = """
import statistics, sys, time
answer, times = question(), []
for _ in range(int(sys.argv[1])):
    start = time.process_time()
    question()
    times.append(time.process_time() - start)
print(answer, statistics.median(times))
"""
#: Every call asks about another base (but for the last digits): nothing remembered of an earlier one answers.
OWN = """
import itertools
from hpcalc import DPSGD, ZCDP, Gaussian, Laplace, Poisson, PureDP, TruncatedNegativeBinomial, bound, convert
count = itertools.count()
def about(x): return x * (1.0 + 1e-9 * next(count))
poisson, tnb = Poisson(10.0), TruncatedNegativeBinomial.with_mean(10.0, eta=0.0)
"""
OTHER = """
import dp_accounting as d
from dp_accounting.rdp import RdpAccountant
e = d.dp_event
def ask(event):
    accountant = RdpAccountant()
    accountant.compose(event)
    return accountant.get_epsilon(1e-6)
"""
#: ``opacus.accountants.analysis.rdp.get_privacy_spent`` for the Gaussian mechanism at its default orders, as published
#: in Opacus 1.6: 1 + x/10 for x in 1..99 and the integers 12..63.
OPACUS = """
import numpy as np
orders = np.array([1 + x / 10.0 for x in range(1, 100)] + list(range(12, 64)))
def ask(sigma, delta=1e-6):
    rdp = orders / (2.0 * sigma**2)
    eps = rdp - (np.log(delta) + np.log(orders)) / (orders - 1) + np.log((orders - 1) / orders)
    return eps[np.nanargmin(eps)]
"""


def side_by_side(questions: Sequence[tuple[str, str, str, str]], repeats: int) -> None:
    """One row for each question and tool: what to import and define first, and the expression for ε."""
    rows = []
    for name, who, setup, expression in questions:
        question = f"{setup}\ndef question(): return float({expression})\n"
        warm = [sys.executable, "-c", question + WARM, str(repeats)]
        answer, call = map(float, subprocess.run(warm, capture_output=True, text=True, check=True).stdout.split())
        _, cpu, peak = used([sys.executable, "-c", question + "question()"], repeats)
        rows.append((name, who, f"{answer:.6f}", f"{1e3 * call:.2f} ms", f"{1e3 * cpu:.0f} ms", f"{peak:.0f} MiB"))
    table(("question", "by", "epsilon", "warm call", "whole process", "peak memory"), rows)


def calls(quick: bool) -> None:
    """Whole searches, K of mean 10, delta 1e-6."""
    step = "e.PoissonSampledDpEvent(256 / 60000, e.GaussianDpEvent(1.1))"
    bases = {
        "Gaussian": ("Gaussian(about(5**0.5))", "e.GaussianDpEvent(5**0.5)"),
        "zCDP": ("ZCDP(about(0.1))", "e.ZCDpEvent(0.1)"),
        "pure": ("PureDP(about(1.0))", None),
        "Laplace": ("Laplace(about(1.0))", "e.LaplaceDpEvent(1.0)"),
        "DP-SGD of the paper": ("DPSGD(256 / 60000, 1.1, 14062)", f"e.SelfComposedDpEvent({step}, 14062)"),
    }
    if quick:
        del bases["DP-SGD of the paper"]
    questions = []
    for base, (own, other) in bases.items():
        for law, shape in (
            (("tnb", "0.0"),) if base.startswith("DP-SGD") else (("poisson", "float('inf')"), ("tnb", "0.0"))
        ):
            name = f"{base}, {law}"
            questions.append((name, "hpcalc", OWN, f"bound({own}, {law}, lower=False).epsilon"))
            questions.append((name, "hpcalc, lower bound", OWN, f"bound({own}, {law}).lower.epsilon"))
            if other is not None:
                event = f"e.RepeatAndSelectDpEvent({other}, 10.0, {shape})"
                questions.append((name, "dp-accounting", OTHER, f"ask({event})"))
    side_by_side(questions, 1 if quick else 5)


def conversions(quick: bool) -> None:
    """Conversions of one run, Gaussian mechanism, delta 1e-6."""
    tools = (
        ("hpcalc", OWN, "convert(Gaussian(about({}))).to['epsilon']"),
        ("hpcalc, CKS", OWN, "convert(Gaussian(about({})), conversion='cks').to['epsilon']"),
        ("dp-accounting, RDP", OTHER, "ask(e.GaussianDpEvent({}))"),
        ("Opacus' formula", OPACUS, "ask({})"),
    )
    sigmas = (2.0,) if quick else (0.5, 2.0, 50.0)
    questions = [(f"sigma {x:g}", who, setup, text.format(x)) for x in sigmas for who, setup, text in tools]
    side_by_side(questions, 1 if quick else 5)


def bulk(quick: bool) -> None:
    """Many questions in one process."""
    import numpy as np

    from hpcalc import ZCDP, Gaussian, Poisson, TruncatedNegativeBinomial, bound

    rng, rows = np.random.default_rng(0), []
    for text, number, base, method in (
        ("bounds by the paper's theorems, zCDP, mixed laws", 10_000, lambda x: ZCDP(x**-4), "paper"),
        ("Theorem E, Gaussian, mixed laws", 1_000, Gaussian, "refined-region"),
    ):
        count = number // 50 if quick else number
        etas, means = rng.choice([-0.5, 0.0, 0.5, 1.0], count), np.exp(rng.uniform(0.1, 5.0, count))
        laws = [TruncatedNegativeBinomial.with_mean(x, eta=y) for x, y in zip(means[1::2], etas, strict=False)]
        laws += map(Poisson, means[::2])
        start = time.process_time()
        for law, sigma in zip(laws, np.exp(rng.uniform(-0.5, 1.5, count)), strict=True):
            bound(base(float(sigma)), law, method=method, lower=False)
        spent = time.process_time() - start
        rows.append((f"{count} {text}", f"{spent:.1f} s", f"{1e3 * spent / count:.2f} ms"))
    table(("work", "CPU time", "each"), rows)


SECTIONS = {function.__name__: function for function in (process, calls, conversions, bulk)}


def main() -> None:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="few repetitions, small loads")
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {unknown[0]!r}: choose among {', '.join(SECTIONS)}")
    python, numpy = platform.python_version(), version("numpy")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {python}, NumPy {numpy}\n")
    for name in options.sections or SECTIONS:
        print(f"### {SECTIONS[name].__doc__}\n")
        SECTIONS[name](options.quick)


if __name__ == "__main__":
    main()
