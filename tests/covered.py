"""Branch coverage of the plain suite, and whether it is enough.

    python tests/covered.py [PYTEST-ARGUMENT...]

Runs ``coverage run -m pytest -n 2`` (processes that tests start count too), prints what is not covered, and ends with
exit code 1 if a test fails, or if less than 98 % of the numeric core's branches are covered, or less than 95 % of the
whole package.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
CORE = ("logspace", "solve", "conversion", "laws/*", "guarantees/*", "bounds/*", "lower/*", "questions/measures")
LEAST_CORE, LEAST = 98.0, 95.0


def coverage(*arguments: str) -> int:
    """Run coverage.py in the checkout."""
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=False).returncode


def measured(*arguments: str) -> tuple[float, float]:
    """Percentage of statements and branches together, and of branches alone."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        coverage("json", "--quiet", "--fail-under=0", "-o", str(file), *arguments)
        totals = json.loads(file.read_text())["totals"]
    return totals["percent_covered"], 100.0 * totals["covered_branches"] / max(totals["num_branches"], 1)


def main() -> int:
    """Run the suite and look."""
    coverage("erase")
    failed = coverage("run", "-m", "pytest", *(sys.argv[1:] or ["-n", "2", "-q"]))
    coverage("combine", "--quiet")
    coverage("report", "--show-missing", "--skip-covered", "--fail-under=0")
    core, core_branches = measured(f"--include={','.join(f'hpcalc/{name}.py' for name in CORE)}")
    whole, branches = measured()
    print(f"\nnumeric core: {core:.2f} % of statements and branches, {core_branches:.2f} % of branches")
    print(f"whole package: {whole:.2f} % of statements and branches, {branches:.2f} % of branches")
    return 1 if failed or min(core, core_branches) < LEAST_CORE or whole < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
