"""Mutation check of the numeric core: ``python tests/mutation/run.py``; see README.md beside it.

Mutants are made by mutmut's operators, one change each, and live in memory only: the tree is not written to. Each is
tried in a process forked from one that has imported everything but hpcalc, by the tests that execute the changed
statement, fastest first, until one fails.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import types
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = ["tests/test_runs.py", "tests/test_runs_properties.py"]
#: Module -> the files whose tests are to kill its mutants.
TARGETS = {
    "hpcalc/paper.py": ["tests/test_paper.py"],
    "hpcalc/convert.py": ["tests/test_convert.py"],
    "hpcalc/refined.py": ["tests/test_refined.py"],
    **{
        f"hpcalc/runs/{name}.py": RUNS
        for name in ("law", "helpers", "families", "negative_binomial", "tables", "conditioned", "naming")
    },
}
SLOWEST = 1.5  # seconds of CPU: slower tests do not take part
BUDGET = 6.0  # seconds of CPU: fastest first, what the tests of one mutant may take together without it
LIMIT = 24  # seconds of CPU for one mutant; more is a kill (nearly always an endless loop)
MEMORY = 3 << 30
OPERATORS = (
    "number", "lambda", "symmetric_string_methods_swap", "unsymmetrical_string_methods_swap", "remove_unary_ops",
    "keywords", "name", "swap_op", "augmented_assignment", "if_exp",
)  # fmt: skip
TYPING = ("strict", "repr", "dtype")  # keywords no mutant touches
#: Where arguments of calls are dropped too (mutmut's arg_removal, without its form that passes None).
DROP = ("hpcalc/paper.py", "hpcalc/convert.py")
PYTEST = ["-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=-m 'not fuzz'",
          "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: str
    line: int
    text: str  # the source line, to recognise the mutant after lines have moved
    old: str
    new: str
    nth: int  # among the equal changes of equal lines
    start: int
    end: int

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What names it."""
        return self.path, self.text, self.old, self.new, self.nth


def mutants(path: str) -> list[Mutant]:
    """All mutants of a module."""
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider
    from mutmut.mutation import mutators

    source = (ROOT / path).read_text()
    lines = source.splitlines(keepends=True)
    offsets = [0]
    for text in lines:
        offsets.append(offsets[-1] + len(text))
    chosen = [(t, f) for t, f in mutators.mutation_operators if f.__name__.removeprefix("operator_") in OPERATORS]
    found: list[Mutant] = []
    seen: dict[tuple[str, str, str], int] = {}

    class Visitor(cst.CSTVisitor):
        METADATA_DEPENDENCIES = (PositionProvider,)

        def on_visit(self, node: cst.CSTNode) -> bool:
            # texts and types: the golden files and mypy look after them
            if isinstance(node, (cst.Annotation, cst.Decorator, cst.Raise, cst.BaseString, cst.Import, cst.ImportFrom)):
                return False
            if isinstance(node, cst.Arg) and node.keyword and node.keyword.value in TYPING:
                return False
            if path in DROP and isinstance(node, cst.Call) and len(node.args) > 1:
                for i, arg in enumerate(node.args):
                    if not (arg.keyword and arg.keyword.value in TYPING):
                        self.add(node, node.with_changes(args=[*node.args[:i], *node.args[i + 1 :]]))
            for kind, operator in chosen:
                if isinstance(node, kind):
                    for new in operator(node):
                        self.add(node, new)
            return True

        def add(self, node: cst.CSTNode, new: cst.CSTNode) -> None:
            where = self.get_metadata(PositionProvider, node)
            start = offsets[where.start.line - 1] + where.start.column
            end = offsets[where.end.line - 1] + where.end.column
            old, code = source[start:end], wrapper.module.code_for_node(new)
            text = lines[where.start.line - 1].strip()
            nth = seen[text, old, code] = seen.get((text, old, code), -1) + 1
            found.append(Mutant(path, where.start.line, text, old, code, nth, start, end))

    wrapper = MetadataWrapper(cst.parse_module(source))
    wrapper.visit(Visitor())
    return [m for m in found if ast.dump(ast.parse(applied(source, m))) != ast.dump(ast.parse(source))]


def applied(source: str, mutant: Mutant) -> str:
    """The module's source with the change made."""
    return source[: mutant.start] + mutant.new + source[mutant.end :]


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a given source."""

    def __init__(self, path: str, source: str) -> None:
        self.name, self.path, self.source = path.removesuffix(".py").replace("/", "."), str(ROOT / path), source

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def create_module(self, spec):
        return None

    def exec_module(self, module) -> None:
        exec(compile(self.source, self.path, "exec"), module.__dict__)


class Select:
    """Keeps the given tests, in the given order."""

    def __init__(self, wanted: list[str]) -> None:
        self.rank = {name: i for i, name in enumerate(wanted)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items) -> None:
        items[:] = sorted((x for x in items if x.nodeid in self.rank), key=lambda x: self.rank[x.nodeid])

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self.failed = report.nodeid


class Measure:
    """Records which lines each test executes, and its CPU time."""

    def __init__(self, coverage) -> None:
        self.coverage = coverage
        self.times: dict[str, float] = {}

    def pytest_runtest_logstart(self, nodeid) -> None:
        self.coverage.switch_context(nodeid)
        self.times[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid) -> None:
        self.times[nodeid] += time.process_time()
        self.coverage.switch_context("")


def forked(work) -> tuple[int, str]:
    """Run ``work() -> str`` in a fork; its wait status and what it returned."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            os.write(write, work().encode()[:60000])
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        out = pipe.read().decode()
    return os.waitpid(pid, 0)[1], out


def baseline(files: list[str], out: Path) -> None:
    """Run the tests once without a mutant; write what each executes and how long it takes."""

    def work() -> str:
        import coverage
        import pytest

        cov = coverage.Coverage(data_file=None, source=[str(ROOT / "hpcalc")], config_file=False)
        cov.start()
        measure = Measure(cov)
        code = pytest.main([*PYTEST, *files], plugins=[measure])
        cov.stop()
        data = cov.get_data()
        lines = {}
        for name in data.measured_files():
            lines[str(Path(name).relative_to(ROOT))] = data.contexts_by_lineno(name)
        if code == 0:
            out.write_text(json.dumps({"times": measure.times, "lines": lines}))
        return str(int(code))

    status, code = forked(work)
    if status or code != "0":
        sys.exit(f"the tests do not pass without a mutant: {status} {code} {files}")


def covering(
    source: str, lines: dict[str, list[str]], times: dict[str, float], mutant: Mutant
) -> tuple[list[str], bool]:
    """The tests that execute the changed statement or use the changed constant, fastest first; whether imports do."""
    tree = ast.parse(source)

    def span(node: ast.AST) -> tuple[int, int]:
        body = getattr(node, "body", None)
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        last = body[0].lineno - 1 if isinstance(body, list) and body[0].lineno > node.lineno else node.end_lineno
        return first, last

    statements = [x for x in ast.walk(tree) if isinstance(x, (ast.stmt, ast.ExceptHandler))]
    around = [x for x in statements if span(x)[0] <= mutant.line <= span(x)[1]]
    inner = max(around, key=lambda x: (span(x)[0], -span(x)[1]))
    wanted = set(range(span(inner)[0], span(inner)[1] + 1))
    imported = any("" in lines.get(str(line), []) for line in wanted)
    if isinstance(inner, ast.FunctionDef):  # a default value
        wanted = set(range(inner.lineno, inner.end_lineno + 1))
    elif inner in tree.body and isinstance(inner, (ast.Assign, ast.AnnAssign)):  # a constant of the module
        names = {x.id for x in ast.walk(inner) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
        wanted = {x.lineno for x in ast.walk(tree) if isinstance(x, ast.Name) and x.id in names}
    tests = {name for line in wanted for name in lines.get(str(line), []) if name}
    if not tests and imported:
        tests = set(times)
    chosen, total = [], 0.0
    for test in sorted((t for t in tests if times[t] <= SLOWEST), key=lambda t: times[t]):
        total += times[test]
        if total <= BUDGET:
            chosen.append(test)
    return chosen, imported


def verdict_of(mutant: Mutant, tests: list[str], work) -> dict[str, object]:
    """Try to kill one mutant by ``work``, in a fork."""

    def limited() -> str:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.alarm(10 * LIMIT)
        return work()

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    status, answer = forked(limited) if tests else (0, "untested ")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    verdict, _, by = answer.partition(" ")
    if status:
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)
        verdict = "timeout" if late else "killed"
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**asdict(mutant), "verdict": verdict, "by": by, "tests": len(tests), "cpu": round(cpu, 2)}


class Forge:
    """Tries mutants within a pytest session whose tests are collected: each in a fork, by swapping code objects."""

    def __init__(self, todo: list[tuple[Mutant, list[str]]], source: str, done) -> None:
        self.todo, self.source, self.done = todo, source, done
        self.failed = False

    def pytest_runtest_logreport(self, report) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session) -> bool:
        items = {item.nodeid: item for item in session.items}
        name = str(ROOT / self.todo[0][0].path)
        live = [f for f in gc.get_objects() if isinstance(f, types.FunctionType) and f.__code__.co_filename == name]
        functions = {(f.__code__.co_name, f.__code__.co_firstlineno): f for f in live}
        old = codes(compile(self.source, name, "exec"))
        gc.freeze()
        for mutant, tests in self.todo:

            def work() -> str:
                new = codes(compile(applied(self.source, mutant), name, "exec"))
                changed = [key for key in old if key in functions and new.get(key) != old[key]]
                if not changed:
                    return "unplaced "
                for key in changed:
                    functions[key].__code__ = new[key]
                for test, after in zip(tests, [*tests[1:], None], strict=True):
                    session.config.hook.pytest_runtest_protocol(item=items[test], nextitem=items.get(after))
                    if self.failed:
                        return f"killed {test}"
                return "survived "

            self.done(verdict_of(mutant, tests, work))
        return True


def codes(code: types.CodeType) -> dict[tuple[str, int], types.CodeType]:
    """All code objects inside one, by name and line."""
    out = {}
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            out.update(codes(part))
            out[part.co_name, part.co_firstlineno] = part
    return out


def try_all(todo: list[tuple[Mutant, list[str], bool]], source: str, files: list[str], done) -> None:
    """Try mutants; those of statements that imports execute are imported anew, which takes longer."""
    import pytest

    quick = [(mutant, tests) for mutant, tests, imported in todo if not imported]
    if quick:
        forked(lambda: str(int(pytest.main([*PYTEST, *files], plugins=[Forge(quick, source, done)]))))
    for mutant, tests, imported in todo:
        if not imported:
            continue

        def work() -> str:
            sys.meta_path.insert(0, Loader(mutant.path, applied(source, mutant)))
            select = Select(tests)
            code = pytest.main([*PYTEST, *files], plugins=[select])
            return f"killed {select.failed}" if code else "survived "

        done(verdict_of(mutant, tests, work))


def results(store: Path) -> dict[tuple, dict[str, object]]:
    """The last result of every mutant."""
    rows = map(json.loads, store.read_text().splitlines()) if store.exists() else []
    return {(row["path"], row["text"], row["old"], row["new"], row["nth"]): row for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(TARGETS)}; all without")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(tempfile.gettempdir()) / "hpcalc-mutation",
        help="folder for results and timings",
    )
    parser.add_argument("--survivors", action="store_true", help="only those not killed by the run before")
    parser.add_argument("--share", type=float, default=1.0, help="try a random part of the mutants (seed 0)")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    args = parser.parse_args()
    modules = args.modules or list(TARGETS)
    os.chdir(ROOT)
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    args.out.mkdir(parents=True, exist_ok=True)
    if args.list:
        for module in modules:
            for m in mutants(module):
                print(f"{m.path}:{m.line}: {m.old!r} -> {m.new!r}")
        return
    import hypothesis
    import mpmath  # noqa: F401  # all but hpcalc, once
    import numpy as np  # noqa: F401
    import pytest  # noqa: F401
    import scipy.integrate
    import scipy.special
    import scipy.stats  # noqa: F401

    hypothesis.settings.register_profile("mutation", deadline=None, derandomize=True, database=None)
    hypothesis.settings.load_profile("mutation")
    for module in modules:
        files = TARGETS[module]
        store = args.out / (module.replace("/", ".") + ".jsonl")
        base = args.out / ("-".join(Path(f).stem for f in files) + ".json")
        newest = max((ROOT / f).stat().st_mtime for f in [module, *files])
        if not base.exists() or base.stat().st_mtime < newest:
            baseline(files, base)
        measured = json.loads(base.read_text())
        source = (ROOT / module).read_text()
        todo = mutants(module)
        if args.share < 1.0:
            todo = sorted(random.Random(0).sample(todo, round(args.share * len(todo))), key=lambda m: m.start)
        before = results(store) if args.survivors else {}
        lines, times = measured["lines"].get(module, {}), measured["times"]
        again = [m for m in todo if before.get(m.key, {}).get("verdict") not in ("killed", "timeout")]
        with store.open("a", buffering=1) as log:
            try_all(
                [(m, *covering(source, lines, times, m)) for m in again],
                source,
                files,
                lambda row: log.write(json.dumps(row) + "\n"),
            )
        after = results(store)
        rows = [{**after[m.key], **asdict(m)} for m in todo]
        verdicts = ("killed", "timeout", "survived", "untested", "unplaced")
        count = {v: sum(r["verdict"] == v for r in rows) for v in verdicts}
        share = (count["killed"] + count["timeout"]) / len(rows)
        cpu = sum(float(r["cpu"]) for r in rows)
        print(f"{module}: {len(rows)} mutants, {count}, {100 * share:.1f} % killed, {cpu:.0f} s of CPU")
        for row in rows:
            if row["verdict"] not in ("killed", "timeout"):
                print(f"  {row['line']}: {row['old']!r} -> {row['new']!r}   {row['verdict']} ({row['tests']} tests)")


if __name__ == "__main__":
    main()
