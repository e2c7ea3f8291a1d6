"""What hpcalc costs, side by side with others in one run.

    python tests/benchmarks/run.py [--quick] [process] [calls] [conversions] [bulk]

Prints Markdown tables: whole processes against ``python -c "import click"``; the same questions to hpcalc and to
dp-accounting (whose answers are looser), and conversions also by the formula Opacus publishes, each with ε, the time of
a warm call, and the time and the peak memory of a process that asks nothing else; and work in bulk. Times are CPU
times unless they say otherwise. Nothing here is asserted: figures depend on the machine, ratios less so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Nothing of size is imported here: Linux counts a parent's memory into its children's peak.

SECTIONS = ("process", "calls", "conversions", "bulk")
BOUND = ["bound", "--dist", "poisson", "--mu", "10", "--format", "yaml"]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """One Markdown table."""
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def machine() -> str:
    """One line about where this runs."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = models[0] if models else name
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {version('numpy')}"


def process(quick: bool) -> None:
    """Whole processes: medians of runs taken in turn, as ratios to importing click."""
    print("### Whole processes\n")
    script = shutil.which("hpcalc", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    own = [script] if script else [sys.executable, "-m", "hpcalc"]
    commands = {
        'python -c "import click"': [sys.executable, "-c", "import click"],
        "hpcalc --version": [*own, "--version"],
        "hpcalc --help": [*own, "--help"],
        "hpcalc bound, zCDP": [*own, *BOUND, "--zcdp", "0.1"],
        "hpcalc bound, Gaussian": [*own, *BOUND, "--gaussian", "2.236"],
        "hpcalc bound, pure": [*own, *BOUND, "--pure", "1"],
        "hpcalc bound, DP-SGD": [*own, *BOUND, "--dpsgd", "0.01", "1.1", "200"],
        "hpcalc plan, zCDP, five laws": [*own, "plan", "--zcdp", "0.1", "--target-epsilon", "4"],
        "hpcalc compare, zCDP": [*own, "compare", "--zcdp", "0.1", "--mean", "10"],
    }
    if not quick:
        question = (
            "import dp_accounting as d; e = d.dp_event; a = d.rdp.RdpAccountant(); "
            "a.compose(e.RepeatAndSelectDpEvent(e.ZCDpEvent(0.1), 10, float('inf'))); print(a.get_epsilon(1e-6))"
        )
        commands["the same question to dp-accounting (zCDP)"] = [sys.executable, "-c", question]
    runs = 3 if quick else 9
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for count in range(runs + 1):
        for name, command in commands.items():
            used = whole_process(command)
            if count:  # the first round warms the caches, and writes a checkout's bytecode
                times[name].append(used)
    medians = {name: [statistics.median(each) for each in zip(*pairs, strict=True)] for name, pairs in times.items()}
    unit = medians['python -c "import click"']
    rows = []
    for name, (wall, cpu, peak) in medians.items():
        cells = (f"{1e3 * wall:.0f} ms", f"{wall / unit[0]:.2f}", f"{1e3 * cpu:.0f} ms", f"{cpu / unit[1]:.2f}")
        rows.append((name, *cells, f"{peak:.0f} MiB"))
    table(("process", f"wall time, median of {runs}", "ratio", "CPU time", "ratio", "peak memory"), rows)


def whole_process(command: Sequence[str]) -> tuple[float, float, float]:
    """Wall time, CPU time (both in s) and peak memory (MiB) of one process."""
    # an installed package comes with its bytecode, so a checkout may write it
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    nothing = subprocess.DEVNULL
    start = time.perf_counter()
    child = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, env=environment)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{command} ended with code {child.returncode}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, peak_of(used)


def peak_of(used: resource.struct_rusage) -> float:
    """Peak memory in MiB."""
    return used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


@dataclass(frozen=True)
class Tool:
    """One way to ask a question: what to import and define first, and the expression for ε."""

    setup: str
    expression: str

    def cells(self, repeats: int) -> list[str]:
        """ε, median time of a warm call, and time and peak memory of a process that asks once."""
        question = f"{self.setup}\ndef question(): return float({self.expression})\n"
        warm = subprocess.run(
            [sys.executable, "-c", question + WARM, str(repeats)], capture_output=True, text=True, check=True
        )
        answer, call = map(float, warm.stdout.split())
        used = [whole_process([sys.executable, "-c", question + "question()"]) for _ in range(repeats)]
        cpu, peak = (statistics.median(each) for each in list(zip(*used, strict=True))[1:])
        return [f"{answer:.6f}", f"{1e3 * call:.2f} ms", f"{1e3 * cpu:.0f} ms", f"{peak:.0f} MiB"]


#: ε, and the median CPU time of a call after a warm-up: other work on the machine disturbs it least.
WARM = """\
import statistics, sys, time
answer, times = question(), []
for _ in range(int(sys.argv[1])):
    start = time.process_time()
    question()
    times.append(time.process_time() - start)
print(answer, statistics.median(times))
"""
#: Every call asks about another base (but for the last digits): nothing remembered of an earlier one answers.
OWN = """\
import itertools
from hpcalc import ZCDP, Gaussian, Laplace, Poisson, PureDP, TruncatedNegativeBinomial, bound, convert
from hpcalc.guarantees.dpsgd import DPSGD
count = itertools.count()
def about(x): return x * (1.0 + 1e-9 * next(count))
poisson, tnb = Poisson(10.0), TruncatedNegativeBinomial.with_mean(10.0, eta=0.0)
"""
OTHER = """\
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
OPACUS = """\
import numpy as np
orders = np.array([1 + x / 10.0 for x in range(1, 100)] + list(range(12, 64)))
def ask(sigma, delta=1e-6):
    rdp = orders / (2.0 * sigma**2)
    eps = rdp - (np.log(delta) + np.log(orders)) / (orders - 1) + np.log((orders - 1) / orders)
    return eps[np.nanargmin(eps)]
"""
HEADS = ("epsilon", "warm call", "whole process", "peak memory")


def side_by_side(questions: dict[str, dict[str, Tool]], repeats: int) -> None:
    """One row for each question and tool."""
    rows = [(name, who, *tool.cells(repeats)) for name, tools in questions.items() for who, tool in tools.items()]
    table(("question", "by", *HEADS), rows)


def calls(quick: bool) -> None:
    """Whole searches."""
    print("### Whole searches, K of mean 10, delta 1e-6\n")
    bases = {
        "Gaussian": ("Gaussian(about(5**0.5))", "e.GaussianDpEvent(5**0.5)"),
        "zCDP": ("ZCDP(about(0.1))", "e.ZCDpEvent(0.1)"),
        "pure": ("PureDP(about(1.0))", None),
        "Laplace": ("Laplace(about(1.0))", "e.LaplaceDpEvent(1.0)"),
    }
    if not quick:
        step = "e.PoissonSampledDpEvent(256 / 60000, e.GaussianDpEvent(1.1))"
        bases["DP-SGD of the paper"] = (
            "DPSGD(256 / 60000, 1.1, 14062)",  # remembered in warm calls: composing it takes seconds
            f"e.SelfComposedDpEvent({step}, 14062)",
        )
    questions: dict[str, dict[str, Tool]] = {}
    for name, (own, other) in bases.items():
        for law, shape in (("poisson", "float('inf')"), ("tnb", "0.0")):
            if name.startswith("DP-SGD") and law == "poisson":
                continue
            tools = {
                "hpcalc": Tool(OWN, f"bound({own}, {law}, lower=False).epsilon"),
                "hpcalc, lower bound": Tool(OWN, f"bound({own}, {law}).lower.epsilon"),
            }
            if other is not None:
                tools["dp-accounting"] = Tool(OTHER, f"ask(e.RepeatAndSelectDpEvent({other}, 10.0, {shape}))")
            questions[f"{name}, {'tnb 0' if law == 'tnb' else law}"] = tools
    side_by_side(questions, 1 if quick else 5)


def conversions(quick: bool) -> None:
    """One run."""
    print("### Conversions, Gaussian mechanism, delta 1e-6\n")
    questions = {
        f"sigma {sigma:g}": {
            "hpcalc": Tool(OWN, f"convert(Gaussian(about({sigma}))).to['epsilon']"),
            "hpcalc, CKS": Tool(OWN, f"convert(Gaussian(about({sigma})), conversion='cks').to['epsilon']"),
            "dp-accounting, RDP": Tool(OTHER, f"ask(e.GaussianDpEvent({sigma}))"),
            "Opacus' formula": Tool(OPACUS, f"ask({sigma})"),
        }
        for sigma in ((2.0,) if quick else (0.5, 2.0, 50.0))
    }
    side_by_side(questions, 1 if quick else 5)


def bulk(quick: bool) -> None:
    """Many questions in one process: each row is a process of its own, so that its peak memory is its own."""
    print("### In bulk\n")
    rows = []
    for name, (text, count) in BULK.items():
        number = count // 50 if quick else count
        done = subprocess.run(
            [sys.executable, __file__, "--bulk", name, str(number)], capture_output=True, text=True, check=True
        )
        used, peak = map(float, done.stdout.split())
        rows.append((f"{number} {text}", f"{used:.1f} s", f"{1e3 * used / number:.2f} ms", f"{peak:.0f} MiB"))
    table(("work", "CPU time", "each", "peak memory"), rows)


#: Name, description and size of each bulk load.
BULK = {
    "paper": ("bounds by the paper's theorems, zCDP, mixed laws", 10_000),
    "refined": ("Theorem E, Gaussian, mixed laws", 1_000),
    "spec": ("cases of one --spec list, the paper's theorems with lower bounds, whole process", 200),
}


def one_bulk(name: str, count: int) -> None:
    """Do one bulk load here; print its CPU time in s and the process' peak memory in MiB."""
    import numpy as np

    from hpcalc import ZCDP, Gaussian, Poisson, TruncatedNegativeBinomial, bound

    rng = np.random.default_rng(0)
    etas = rng.choice([-0.5, 0.0, 0.5, 1.0], count).tolist()
    means, rhos = np.exp(rng.uniform(0.1, 5.0, count)).tolist(), np.exp(rng.uniform(-5.0, 0.0, count)).tolist()
    if name == "spec":
        laws = [{"dist": "tnb", "eta": eta, "mean": mean} for eta, mean in zip(etas, means, strict=True)]
        cases = [{"zcdp": rho, "method": "paper", **law} for rho, law in zip(rhos, laws, strict=True)]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "cases.json"
            file.write_text(json.dumps(cases), encoding="utf-8")
            _, used, peak = whole_process(
                [sys.executable, "-m", "hpcalc", "bound", "--spec", str(file), "--format", "json"]
            )
        print(used, peak)
        return
    runs: list[Any] = [
        Poisson(mean) if index % 5 == 0 else TruncatedNegativeBinomial.with_mean(mean, eta=eta)
        for index, (eta, mean) in enumerate(zip(etas, means, strict=True))
    ]
    sigmas = np.exp(rng.uniform(-0.5, 1.5, count)).tolist()
    start = time.process_time()
    for rho, sigma, law in zip(rhos, sigmas, runs, strict=True):
        if name == "paper":
            bound(ZCDP(rho), law, method="paper", lower=False)
        else:
            bound(Gaussian(sigma), law, method="refined-region", lower=False)
    print(time.process_time() - start, peak_of(resource.getrusage(resource.RUSAGE_SELF)))


def main() -> None:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="few repetitions, small loads")
    parser.add_argument("--bulk", nargs=2, metavar=("NAME", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bulk:
        one_bulk(options.bulk[0], int(options.bulk[1]))
        return
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {unknown[0]!r}: choose among {', '.join(SECTIONS)}")
    print(f"{machine()}; `python tests/benchmarks/run.py {' '.join(sys.argv[1:])}`".rstrip(" `") + "`\n")
    for name in options.sections or SECTIONS:
        globals()[name](options.quick)


if __name__ == "__main__":
    main()
