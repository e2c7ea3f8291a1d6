"""Help, errors and answers are what they were; ``python tests/goldens.py --write`` when a change is meant."""

from __future__ import annotations

import pytest
from goldens import ERRORS, FOLDER, goldens, run, text_of


def golden(name: str) -> str:
    return (FOLDER / name).read_bytes().decode("utf-8")


@pytest.mark.parametrize("name", [*goldens(), "errors.txt"])
def test_golden_file(name: str) -> None:
    assert text_of(name) == golden(name)


def test_no_golden_file_is_stale() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*goldens(), "errors.txt"}


@pytest.mark.parametrize("line", ERRORS)
def test_errors_are_short_and_leave_stdout_empty(line: str) -> None:
    code, out, err = run(line)
    assert code in (2, 4)
    assert out == ""
    assert 1 <= len(err.splitlines()) <= 2
    assert all(len(text) <= 200 for text in err.splitlines())
