"""Help, errors and answers are what they were; ``python -m hpcalc.reference`` when a change is meant."""

from __future__ import annotations

import math
import re

import pytest
from goldens import FOLDER, goldens, text_of


def golden(name: str) -> str:
    return (FOLDER / name).read_bytes().decode("utf-8")


# Bounds found on adaptive grids may differ in late digits from one processor, or one NumPy, to the next.
SAMPLED = ("bound.", "compare.", "plan.")
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")


def marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if name.startswith(("compare.", "plan.", "errors.")) and ".help." not in name else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in (*goldens(), "errors.txt")])
def test_golden_file(name: str) -> None:
    text, kept = text_of(name), golden(name)
    if text != kept and name.startswith(SAMPLED) and ".help." not in name:
        assert NUMBER.sub("#", text) == NUMBER.sub("#", kept)
        pairs = zip(NUMBER.findall(text), NUMBER.findall(kept), strict=True)
        far = [(a, b) for a, b in pairs if not math.isclose(float(a), float(b), rel_tol=1e-4, abs_tol=1e-5)]
        assert not far
        return
    assert text == kept


def test_no_golden_file_is_stale() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*goldens(), "errors.txt"}


def test_errors_are_short_and_leave_stdout_empty() -> None:
    for answer in golden("errors.txt").split("$ hpcalc ")[1:]:
        line, *err, code = answer.rstrip("\n").splitlines()
        assert code in ("[exit 2]", "[exit 4]"), line
        assert 1 <= len(err) <= 2, line
        assert all(text.isprintable() and len(text) <= 300 for text in err), line
        assert err[0].startswith("hpcalc: "), line
