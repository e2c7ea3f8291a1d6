"""What hpcalc costs, side by side with others in one run.

    python tests/benchmarks/run.py [--quick] [process] [calls] [conversions] [bulk]

Prints Markdown tables: whole processes against ``python -c "import click"``, warm calls beside dp-accounting's (a
looser answer to the same question), conversions beside dp-accounting and the formula Opacus publishes, and work in
bulk with its peak memory. Nothing here is asserted: figures depend on the machine, ratios less so.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hpcalc import ZCDP, Gaussian, Laplace, Poisson, PureDP, TruncatedNegativeBinomial, bound, convert
from hpcalc.dpsgd import DPSGD

SECTIONS = ("process", "calls", "conversions", "bulk")
BOUND = ["bound", "--dist", "poisson", "--mu", "10", "--format", "yaml"]


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median CPU time of one call after a warm-up: other work on the machine disturbs it least."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


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
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}"


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
    }
    if not quick:
        question = (
            "import dp_accounting as d; e = d.dp_event; a = d.rdp.RdpAccountant(); "
            "a.compose(e.RepeatAndSelectDpEvent(e.ZCDpEvent(0.1), 10, float('inf'))); print(a.get_epsilon(1e-6))"
        )
        commands["the same question to dp-accounting (zCDP)"] = [sys.executable, "-c", question]
        commands["hpcalc plan, zCDP, five laws"] = [*own, "plan", "--zcdp", "0.1", "--target-epsilon", "4"]
    runs = 3 if quick else 9
    # an installed package comes with its bytecode; the first round writes it for a checkout
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for count in range(runs + 1):
        for name, command in commands.items():
            start, used = time.perf_counter(), cpu_of_children()
            subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL, env=environment)
            if count:  # the first round warms the caches
                times[name].append((time.perf_counter() - start, cpu_of_children() - used))
    medians = {name: [statistics.median(each) for each in zip(*pairs, strict=True)] for name, pairs in times.items()}
    unit = medians['python -c "import click"']
    rows = []
    for name, (wall, cpu) in medians.items():
        rows.append(
            (name, f"{1e3 * wall:.0f} ms", f"{wall / unit[0]:.2f}", f"{1e3 * cpu:.0f} ms", f"{cpu / unit[1]:.2f}")
        )
    table(("process", f"wall time, median of {runs}", "ratio", "CPU time", "ratio"), rows)


def cpu_of_children() -> float:
    """CPU time of the finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def accountant(event: Any, delta: float) -> Callable[[], float]:
    """The same question to dp-accounting's Rényi accountant."""
    from dp_accounting.rdp import RdpAccountant

    def ask() -> float:
        ledger = RdpAccountant()
        ledger.compose(event)
        return float(ledger.get_epsilon(delta))

    return ask


def calls(quick: bool) -> None:
    """Warm calls in one process."""
    import dp_accounting.dp_event as events

    print("### Warm calls (CPU time), K of mean 10 and delta 1e-6\n")
    counter = itertools.count(1)

    def fresh() -> float:
        """One but for the last digits: nothing remembered of an earlier base answers."""
        return 1.0 + 1e-9 * next(counter)

    poisson, tnb = Poisson(10.0), TruncatedNegativeBinomial.with_mean(10.0, eta=0.0)
    cases: list[tuple[str, Callable[[], Any], Any, Any]] = [
        ("Gaussian, Poisson", lambda: Gaussian(5**0.5 * fresh()), poisson, events.GaussianDpEvent(5**0.5)),
        ("Gaussian, tnb 0", lambda: Gaussian(5**0.5 * fresh()), tnb, events.GaussianDpEvent(5**0.5)),
        ("zCDP, Poisson", lambda: ZCDP(0.1 * fresh()), poisson, events.ZCDpEvent(0.1)),
        ("zCDP, tnb 0", lambda: ZCDP(0.1 * fresh()), tnb, events.ZCDpEvent(0.1)),
        ("pure, Poisson", lambda: PureDP(fresh()), poisson, None),
        ("Laplace, tnb 0", lambda: Laplace(fresh()), tnb, events.LaplaceDpEvent(1.0)),
    ]
    if not quick:
        step = events.PoissonSampledDpEvent(256 / 60000, events.GaussianDpEvent(1.1))
        sgd = DPSGD(256 / 60000, 1.1, 14062)  # one mechanism, remembered: composing it takes seconds
        cases.append(("DP-SGD of the paper again, tnb 0", lambda: sgd, tnb, events.SelfComposedDpEvent(step, 14062)))
    rows = []
    for name, make, law, event in cases:
        repeats = 3 if quick else 9
        answer = bound(make(), law)
        row = [
            name,
            f"{1e3 * seconds(lambda b=make, k=law: bound(b(), k, lower=False), repeats):.1f} ms",
            f"{1e3 * seconds(lambda b=make, k=law: bound(b(), k), repeats):.1f} ms",
            f"{answer.epsilon:.4f}",
            f"{answer.lower.epsilon:.4f}" if answer.lower else "",
        ]
        if event is None:
            row += ["", ""]
        else:
            shape = float("inf") if law is poisson else 0.0
            ask = accountant(events.RepeatAndSelectDpEvent(event, 10.0, shape), 1e-6)
            row += [f"{1e3 * seconds(ask, 3):.1f} ms", f"{ask():.4f}"]
        rows.append(row)
    heads = ("question", "bound", "with lower bound", "epsilon", "lower bound", "dp-accounting", "its epsilon")
    table(heads, rows)
    answer = bound(Gaussian(5**0.5), tnb)
    grid = np.linspace(0.0, 8.0, 100)
    print(f"100 points of the whole search's profile: {1e3 * seconds(lambda: answer.log_profile(grid), 9):.1f} ms\n")


def opacus(sigma: float, delta: float) -> float:
    """ε as Opacus publishes it for the Gaussian mechanism (``opacus.accountants.analysis.rdp.get_privacy_spent``).

    Its default orders are 1 + x/10 for x in 1..99 and the integers 12..63.
    """
    orders = np.array([1 + x / 10.0 for x in range(1, 100)] + list(range(12, 64)))
    rdp = orders / (2.0 * sigma * sigma)
    return float(np.nanmin(rdp - (math.log(delta) + np.log(orders)) / (orders - 1) + np.log((orders - 1) / orders)))


def conversions(quick: bool) -> None:
    """One run at delta 1e-6."""
    import dp_accounting.dp_event as events

    print("### Conversions (CPU time), Gaussian mechanism, delta 1e-6\n")
    rows = []
    for sigma in (0.5, 2.0, 50.0):
        repeats = 3 if quick else 9
        ask = accountant(events.GaussianDpEvent(sigma), 1e-6)
        rows.append(
            [
                f"{sigma:g}",
                f"{convert(Gaussian(sigma)).to['epsilon']:.6f}",
                f"{1e3 * seconds(lambda s=sigma: convert(Gaussian(s)), repeats):.2f} ms",
                f"{convert(Gaussian(sigma), conversion='cks').to['epsilon']:.6f}",
                f"{1e3 * seconds(lambda s=sigma: convert(Gaussian(s), conversion='cks'), repeats):.2f} ms",
                f"{ask():.6f}",
                f"{1e3 * seconds(ask, repeats):.2f} ms",
                f"{opacus(sigma, 1e-6):.6f}",
                f"{1e3 * seconds(lambda s=sigma: opacus(s, 1e-6), repeats):.2f} ms",
            ]
        )
    heads = ("sigma", "hpcalc", "time", "hpcalc, CKS", "time", "dp-accounting, RDP", "time", "Opacus' formula", "time")
    table(heads, rows)


def bulk(quick: bool) -> None:
    """Many questions through the Python API."""
    print("### In bulk\n")
    rng = np.random.default_rng(0)
    count = 200 if quick else 10_000
    etas = rng.choice([-0.5, 0.0, 0.5, 1.0], count)
    means, rhos = np.exp(rng.uniform(0.1, 5.0, count)), np.exp(rng.uniform(-5.0, 0.0, count))
    laws: list[Any] = [
        Poisson(float(mean)) if index % 5 == 0 else TruncatedNegativeBinomial.with_mean(float(mean), eta=float(eta))
        for index, (eta, mean) in enumerate(zip(etas, means, strict=True))
    ]
    start = time.process_time()
    for rho, law in zip(rhos.tolist(), laws, strict=True):
        bound(ZCDP(rho), law, method="paper", lower=False)
    paper = time.process_time() - start
    some = 20 if quick else 1_000
    sigmas = np.exp(rng.uniform(-0.5, 1.5, some))
    start = time.process_time()
    for sigma, law in zip(sigmas.tolist(), laws, strict=False):
        bound(Gaussian(sigma), law, method="refined-profile", lower=False)
    refined = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = [
        (
            f"{count} bounds by the paper's theorems, zCDP, mixed laws",
            f"{paper:.1f} s",
            f"{1e3 * paper / count:.2f} ms",
        ),
        (f"{some} refined profile bounds, Gaussian, mixed laws", f"{refined:.1f} s", f"{1e3 * refined / some:.2f} ms"),
    ]
    table(("work", "CPU time", "each"), rows)
    print(f"Peak memory of this process: {peak:.0f} MiB\n")


def main() -> None:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="few repetitions, small loads")
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {unknown[0]!r}: choose among {', '.join(SECTIONS)}")
    print(f"{machine()}; `python tests/benchmarks/run.py {' '.join(sys.argv[1:])}`".rstrip(" `") + "`\n")
    for name in options.sections or SECTIONS:
        globals()[name](options.quick)


if __name__ == "__main__":
    main()
