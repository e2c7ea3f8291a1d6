"""Programs the tests of the man pages and the completions drive: real shells, mandoc and man."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def program(name: str) -> str:
    """Path of a program. Where all of them are installed on purpose (CI), a missing one is a failure, not a skip."""
    path = shutil.which(name)
    if path is None:
        required = [variable for variable in ("CI", "HPCALC_REQUIRE_SHELLS") if os.environ.get(variable)]
        if required:
            pytest.fail(f"{name} is not installed, and {required[0]} is set")
        pytest.skip(f"{name} is not installed")
    return path


def put_hpcalc(folder: Path) -> None:
    """Put a program named hpcalc, this checkout's, into a folder."""
    script = folder / "hpcalc"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m hpcalc "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def environment(folder: Path, **extra: str) -> dict[str, str]:
    """An environment in which hpcalc is the one of ``folder``, and nothing of the caller's shells is left."""
    return {
        "PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
        **extra,
    }


def option_names(help_text: str) -> list[str]:
    """The options a ``--help`` lists (at the beginning of a line, behind their indent)."""
    return sorted(set(re.findall(r"^ {2,4}(--[a-z0-9][a-z0-9-]*)", help_text, flags=re.MULTILINE)))
