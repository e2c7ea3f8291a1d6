"""Branch coverage of the plain suite, and whether it is enough.

    python tests/covered.py [PYTEST-ARGUMENT...]

Runs ``coverage run -m pytest -n 2`` (processes that tests start count too), prints what is not covered, and ends with
exit code 1 if a test fails, or if less than 98 % of the numeric core's statements and branches are covered, or less
than 95 % of the whole package's.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CORE = ("logspace", "solve", "conversion", "laws/*", "guarantees/*", "bounds/*", "lower/*", "questions/measures")
LEAST_CORE, LEAST = 98.0, 95.0


def coverage(*arguments: str) -> int:
    """Run coverage.py in the checkout."""
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=False).returncode


def percent(*arguments: str) -> float:
    """Percentage of statements and branches, in one."""
    report = [sys.executable, "-m", "coverage", "report", "--format=total", "--precision=2", "--fail-under=0"]
    return float(subprocess.run([*report, *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Run the suite and look."""
    coverage("erase")
    failed = coverage("run", "-m", "pytest", *(sys.argv[1:] or ["-n", "2", "-q"]))
    coverage("combine", "--quiet")
    coverage("report", "--show-missing", "--skip-covered", "--fail-under=0")
    core, whole = percent(f"--include={','.join(f'hpcalc/{name}.py' for name in CORE)}"), percent()
    print(f"\nof statements and branches: numeric core {core:.2f} %, whole package {whole:.2f} %")
    return 1 if failed or core < LEAST_CORE or whole < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
