"""The shape of the code: which room may import which, and how long a function or class may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import hpcalc
from hpcalc import catalog

ROOT = Path(hpcalc.__file__).parent

#: Rooms from the ground up. A room imports from lower floors and, without a circle, from its own.
FLOORS = (
    {"catalog"},
    {"errors", "answer"},
    {"solve", "logspace", "files", "datafiles"},
    {"guarantees", "laws", "conversion"},
    {"bounds", "lower"},
    {"questions", "drawing"},
    {"output"},
    {"cli"},
    {"hpcalc", "__main__", "reference"},  # the names importable from the package itself; man pages and completions
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
#: What the package knows of itself, for whoever prints it.
OWN = {"__version__", "__date__"}


@cache
def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


@cache
def imports() -> dict[str, set[str]]:
    """Modules of the package that each one imports: at its head, inside functions and for type checking alike."""
    found: dict[str, set[str]] = {name: set() for name in modules()}
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}:{node.lineno}: a relative import"
                assert node.module is not None
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in modules() else node.module for name in names]
                if node.module == "hpcalc" and {alias.name for alias in node.names} <= OWN:
                    continue
            else:
                continue
            found[module].update(name for name in names if name.split(".")[0] == "hpcalc")
    # what the package hands on under its own name it imports when it is asked for
    found["hpcalc"].update(f"hpcalc.{home}" for home in (*hpcalc._HOME, *hpcalc._OWN.values()))
    return found


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_imports_point_downwards() -> None:
    assert {room(module) for module in modules()} == set(FLOOR)
    upward = [
        f"{module} imports {other}"
        for module, others in imports().items()
        for other in others
        if FLOOR[room(other)] > FLOOR[room(module)] or FLOOR[room(other)] == FLOOR[room(module)] == len(FLOORS) - 1
    ]
    # the generator of man pages and completions reads the package it describes
    assert sorted(upward) == ["hpcalc.reference imports hpcalc"]


def test_nothing_imports_in_a_circle() -> None:
    rooms: dict[str, set[str]] = {}
    for module, others in imports().items():
        rooms.setdefault(room(module), set()).update(room(other) for other in others if room(other) != room(module))
    for graph in (imports(), rooms):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            pytest.fail(" -> ".join(error.args[1]))


def test_no_module_is_named_like_a_public_function() -> None:
    # `hpcalc.bound` would be the function or the module, whichever was imported last
    assert not {name.removeprefix("hpcalc.") for name in modules()} & set(hpcalc.__all__)


def definitions(kind: type[ast.AST]) -> Iterator[tuple[str, int]]:
    """Name and lines of each function or class, docstrings left out."""
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, kind):
                assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
                lines = (node.end_lineno or 0) - node.lineno + 1
                for inner in ast.walk(node):
                    if isinstance(inner, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(inner) is not None:
                        lines -= (inner.body[0].end_lineno or 0) - inner.body[0].lineno + 1
                yield f"{module}.{node.name}", lines


def test_functions_and_classes_fit_on_a_page_or_four() -> None:
    assert [found for found in definitions(ast.FunctionDef) if found[1] > 60] == []
    assert [found for found in definitions(ast.ClassDef) if found[1] > 200] == []


@pytest.mark.parametrize("word", ["counted_epsilon", "CostOracle", "ModuleType", "three-point", "no analysis below"])
def test_a_word_that_was_given_up_is_not_used(word: str) -> None:
    sources = [*ROOT.rglob("*.py"), *ROOT.rglob("*.json")]
    sources += [ROOT.parent / "README.md", *(ROOT.parent / "man").glob("*")] if (ROOT.parent / "man").is_dir() else []
    assert [path.name for path in sources if word in path.read_text(encoding="utf-8")] == []


def test_a_law_and_a_guarantee_of_each_kind_are_shared(laws: list[object], guarantees: list[object]) -> None:
    """The lists of ``conftest.py`` have every row of the catalog."""
    for table, examples in ((catalog.LAWS, laws), (catalog.GUARANTEES, guarantees)):
        classes = {type(example).__name__ for example in examples}
        assert {row.target.rpartition(":")[2] for row in table.values()} <= classes
