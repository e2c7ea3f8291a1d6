"""What each path may load. Start-up is felt at every prompt and in every CI job, and imports are nearly all of it.

scipy costs three times what NumPy does, rich as much as NumPy, yaml a third of it; none of them is needed to say what
options there are, and a machine format needs no table.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import pytest

import hpcalc

HEAVY = ("numpy", "scipy", "rich", "yaml", "matplotlib", "dp_accounting")
NO_TABLE = ("scipy", "rich", "yaml", "matplotlib", "dp_accounting", "mpmath", "numpy.ma")
SEARCH = "bound --dist poisson --mu 10 --delta 1e-6"
# command line -> modules it must not load, and why
PATHS = {
    "--version": (HEAVY, "prints a string"),
    "--help": ((*HEAVY, "hpcalc.cli.options", "hpcalc.cli.types", "shutil"), "prints names and summaries"),
    "bound --help": (HEAVY, "prints the declarations of the options"),
    "bound --zcdp nan": (HEAVY, "a typing error is answered before anything is computed"),
    "bnd": (HEAVY, "a typing error is answered before anything is computed"),
    f"{SEARCH} --zcdp 0.1 --format yaml": (("scipy", "rich"), "the common question: NumPy is enough"),
    f"{SEARCH} --zcdp 0.1 --format json": (NO_TABLE, "as above, without a YAML writer"),
    f"{SEARCH} --gaussian 2 --format csv": (NO_TABLE, "hpcalc.logspace has the normal distribution"),
    "bound --dist tnb --eta 0 --mean 10 --gaussian 2 --format markdown": (NO_TABLE, "Markdown is plain text"),
    f"{SEARCH} --zcdp 0.1": (("scipy", "yaml", "matplotlib"), "a table needs rich, not scipy"),
    "convert --gaussian 2 --format json": (NO_TABLE, "one closed form"),
    "utility --dist tnb --eta 0.5 --mean 10 --format json": (NO_TABLE, "closed forms"),
    "draw --dist poisson --mu 10 --format json": (NO_TABLE, "a look-up"),
}
PROGRAM = """
import sys
from hpcalc.cli import main
code = main(sys.argv[1:])
print("\\nloaded:", *sorted(sys.modules))
"""


def python(program: str, *args: str, **options: Any) -> str:
    words = [sys.executable, "-c", program, *args]
    done = subprocess.run(words, capture_output=True, text=True, check=True, **options)
    assert "internal error" not in done.stderr
    return done.stdout


def loaded(*args: str) -> set[str]:
    return set(python(PROGRAM, *args).rpartition("loaded:")[2].split())


# What older releases of the dependencies load whatever they are asked: Click before 8.5, NumPy before 2.
UNASKED = {
    "shutil": "from click.formatting import HelpFormatter; HelpFormatter(width=78)",
    "numpy.ma": "import numpy",
}


@functools.lru_cache
def unasked() -> set[str]:
    checks = {name: f"import sys; {program}; print({name!r} in sys.modules)" for name, program in UNASKED.items()}
    return {name for name, program in checks.items() if python(program).strip() == "True"}


@pytest.mark.slow
@pytest.mark.parametrize("line", PATHS)
def test_modules_that_a_path_must_not_load(line: str) -> None:
    forbidden, reason = PATHS[line]
    assert not loaded(*line.split()) & (set(forbidden) - unasked()), reason


def test_completion_loads_no_numbers() -> None:
    program = (
        "import os, sys; os.environ.update(_HPCALC_COMPLETE='bash_complete', COMP_WORDS='hpcalc bound --dist ',"
        " COMP_CWORD='3'); from hpcalc.cli import main; main([]); print('loaded:', *sys.modules)"
    )
    words, _, modules = python(program).rpartition("loaded:")
    assert "plain,poisson" in words
    assert not set(modules.split()) & set(HEAVY), "TAB must feel instant"


def test_importing_the_package_costs_nothing() -> None:
    program = "import sys; before = set(sys.modules); import hpcalc; print(*(set(sys.modules) - before))"
    assert not {name.partition(".")[0] for name in python(program).split()} & {"click", *HEAVY}


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'bond'"):
        hpcalc.bond  # noqa: B018 - the access is the test


def test_one_blas_thread_unless_the_user_says_otherwise() -> None:
    program = "import os; from hpcalc.cli import main; main(['--version']); print(os.environ['OPENBLAS_NUM_THREADS'])"
    for given, seen in ((None, "1"), ("7", "7")):
        env = {"PATH": "", **({"OPENBLAS_NUM_THREADS": given} if given else {})}
        assert python(program, env=env).split()[-1] == seen
