"""The benchmark suite runs; what it prints is for people, so nothing in it is timed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "benchmarks" / "run.py"


@pytest.mark.slow
def test_the_quick_benchmark_prints_its_tables() -> None:
    command = [sys.executable, str(SCRIPT), "--quick", "conversions"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "| question | by | epsilon | warm call | whole process | peak memory |" in done.stdout
    assert "| sigma 2 | Opacus' formula | 2.419102 |" in done.stdout
    assert "nan" not in done.stdout


def test_an_unknown_section_is_named() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "speed"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no section 'speed'" in done.stderr
