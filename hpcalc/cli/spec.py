"""Spec files: the options of one question, or of a list of named cases, in YAML.

A case is a command line: every mapping becomes a layer of texts, as the words of a command line do, and
:mod:`hpcalc.cli.case` reads both. So ``1e-6``, ``-.5`` and ``1e3`` are numbers (YAML 1.1 alone takes them for strings),
every refusal is the same, and one file serves every command: keys that only other commands know are left to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from hpcalc.cli.case import SPEC, Case, CommandLineError, Given, command_line, environment, located, merged, shown
from hpcalc.cli.command import Command, Option
from hpcalc.cli.options import GUARANTEES, TRAINING, every
from hpcalc.cli.types import HINTS, Integer, LawText, Number, Orders
from hpcalc.errors import InvalidInput
from hpcalc.files import Node, Source, nearest, read_tree

__all__ = ["cases_of", "settings_of", "spec_text"]

_WHOLE_FILE_ONLY = ("format", "output")  # of one invocation, not of one case
_NOT_TEXT = re.compile(r"(?i)(~|null|true|false|yes|no|on|off|y|n)?")
_OCTAL = re.compile(r"[+-]?0[0-9_]+|[+-]?0[xob][0-9a-f_]+", re.IGNORECASE)
_SEXAGESIMAL = re.compile(r"[+-]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")
# Keys of a guarantee within a case: of a candidate, of one part of a run, of what is released afterwards.
PART = tuple(name.replace("-", "_") for name in (*GUARANTEES, *TRAINING, "examples") if name != "candidates")


class _Spec(Source):
    """A spec file: errors name the file and the line as compilers do."""

    def refuse(self, text: str, at: Node | int = 0) -> NoReturn:
        line = at.line if isinstance(at, Node) else at
        raise CommandLineError(f"{shown(self.name, 4096)}:{f'{line}:' if line else ''} {text}")


class _Reader:
    """Turns mappings into layers of texts."""

    def __init__(self, source: Source, spec: str | None) -> None:
        self.source = source
        self.spec = spec

    def layer(self, node: Node, known: Sequence[str], beside: Sequence[str]) -> tuple[dict[str, Given], dict[str, Any]]:
        """The options of a mapping, and what stands beside them."""
        if node.kind != "mapping":
            self.source.refuse("expected options such as 'zcdp: 0.1'", node)
        layer: dict[str, Given] = {}
        extras: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for name, value in node.children:
            key = name.text.strip().replace("-", "_")
            if key in lines:
                self.source.refuse(f"{shown(name.text)}: given twice (first on line {lines[key]}): keep one", name)
            lines[key] = name.line
            if key in beside:
                extras[key] = self.beside(key, value)
            elif key in known:
                layer[key] = self.given(every()[key], value, name.line)
            else:
                self.unknown(name, key, [*known, *beside])
        return layer, extras

    def given(self, option: Option, node: Node, line: int) -> Given:
        label = f"{self.spec}:{line}: {option.key.replace('_', '-')}:" if self.spec else f"line {line}:"
        try:
            return Given(tuple(self.texts(option, node)), label, SPEC, line)
        except InvalidInput as error:
            raise located(error, label) from error

    def unknown(self, name: Node, key: str, choices: Sequence[str]) -> NoReturn:
        option = every().get(key)
        if option is not None and not option.in_spec:
            self.source.refuse(f"{key}: has no place in a spec file: give it as {option.flag}", name)
        near = nearest(key, choices)
        hint = HINTS.get(key.replace("_", "-")) or (
            f"did you mean {near.replace('_', '-')}?" if near else "see --help for the options"
        )
        self.source.refuse(f"unknown key {shown(name.text)}: {hint}", name)

    def beside(self, key: str, node: Node) -> Any:
        if key == "name":
            return self.name(node)
        if key == "total":
            return self.text(node, "total").lower() == "true"
        text = self.text(node, key).strip()
        try:
            return Integer().read(text, key)
        except InvalidInput as error:
            self.source.refuse(f"{key} {shown(error.value)}: {error.remedy}", node)

    def name(self, node: Node) -> str:
        if node.kind != "scalar" or not node.text.strip() or "\n" in node.text:
            self.source.refuse("name: give one line of text", node)
        if node.plain and _NOT_TEXT.fullmatch(node.text):
            self.source.refuse(f"name: {node.text}: YAML reads it as something else than text: put it in quotes", node)
        return node.text

    # the form in which the command line would hand an option's text to its type

    def texts(self, option: Option, node: Node) -> list[Any]:
        if option.key in ("then", "run") and node.kind != "scalar":
            return [self.part(item) for item in (node.children if node.kind == "list" else (node,))]
        if option.key == "candidates" and node.kind == "list":
            return [node]
        if isinstance(option.type, Orders):
            many = node.kind == "list"
            return [",".join(self.text(item, option) for item in node.children) if many else self.text(node, option)]
        if option.nargs > 1:
            nested = node.kind == "list" and bool(node.children) and node.children[0].kind == "list"
            return [self.values(option, group) for group in (node.children if nested else (node,))]
        if option.many:
            return [self.little(option, item) for item in (node.children if node.kind == "list" else (node,))]
        return [self.little(option, node)]

    def values(self, option: Option, node: Node) -> tuple[str, ...]:
        """The values of an option that takes several: a list, or (as in a variable) words in one text."""
        words = node.text.split() if node.kind == "scalar" else ()
        if len(words) == option.nargs:
            return tuple(words)
        if node.kind != "list" or len(node.children) != option.nargs:
            self.refuse(option, node, f"give a list of exactly {option.nargs} values: [{option.metavar}]")
        return tuple(self.text(child, option) for child in node.children)

    def little(self, option: Option, node: Node) -> str:
        """One text; a mapping is allowed where the command line has its own little grammar."""
        if node.kind == "mapping" and option.key == "rdp":
            return ",".join(f"{self.text(order, option)}:{self.text(value, option)}" for order, value in node.children)
        if node.kind == "mapping" and isinstance(option.type, LawText):
            pairs = [(key.text, value.text) for key, value in node.children]
            rest = ",".join(f"{key}={value}" for key, value in pairs if key != "dist")
            name = next((value for key, value in pairs if key == "dist"), "")
            return f"{name}:{rest}" if rest else name
        return self.text(node, option)

    def part(self, node: Node) -> Any:
        """A guarantee within a case: a mapping of options, or text with a grammar of its own such as ``run``."""
        if node.kind == "scalar":
            return node.text
        layer, extras = self.layer(node, PART, ("name", "times"))
        return Case({key: every()[key] for key in PART}, layer, extras.get("name"), self.spec, node.line, extras)

    def text(self, node: Node, option: Option | str) -> str:
        if isinstance(option, str):
            if node.kind != "scalar" or node.empty:
                self.source.refuse(f"{option}: give one value", node)
            return node.text
        if node.kind != "scalar":
            self.refuse(option, node, f"a {node.kind} where one value is expected")
        text = node.text
        numeric = isinstance(option.type, (Number, Integer, Orders))
        if not option.is_flag and node.plain and _NOT_TEXT.fullmatch(text):
            if node.empty:
                self.refuse(option, node, "has no value: give one or leave the key out")
            if not numeric:
                raise InvalidInput(option.key, text, "YAML reads it as true or false: put it in quotes")
        for pattern, kind in ((_OCTAL, "octal or hexadecimal"), (_SEXAGESIMAL, "base 60")):
            if numeric and pattern.fullmatch(text.strip()):
                raise InvalidInput(option.key, text, f"YAML reads it as {kind}: write a decimal number")
        return text

    def refuse(self, option: Option, node: Node, text: str) -> NoReturn:
        self.source.refuse(f"{option.key.replace('_', '-')}: {text}", node)


def cases_of(command: Command, words: Mapping[str, Any]) -> tuple[list[Case], bool]:
    """The questions a command line asks, and whether they are a list of cases."""
    options = command.options
    typed, surroundings = command_line(options, words), environment(options)
    asked = merged([typed, surroundings])
    if "spec" not in asked:
        case = Case(options, asked)
        for key in ("case", "total"):
            if case[key]:
                case.refuse(key, "speaks about the cases of a spec file: give --spec too")
        return [case], False
    path = Case({"spec": options["spec"]}, asked)["spec"]
    source = _Spec("spec", path)
    reader = _Reader(source, shown(source.name, 4096))
    root = read_tree(source)
    if root.kind != "mapping" and (root.kind != "list" or not root.children):
        source.refuse("expected one mapping of options, or a list of them", root)
    listed = root.kind == "list"
    known = [key for key, option in every().items() if option.in_spec]
    cases = []
    seen: dict[str, int] = {}
    for index, node in enumerate(root.children if listed else (root,), 1):
        layer, beside = reader.layer(node, known, ("name", "total"))
        for key in _WHOLE_FILE_ONLY if listed else ():
            if key in layer:
                source.refuse(f"{key}: speaks for all cases: give it as --{key}", layer[key].line or 0)
        name = beside.pop("name", f"case {index}" if listed else None)
        if name in seen:
            source.refuse(f"name: {name}: taken by the case on line {seen[name]}", node)
        seen[name] = node.line
        total = bool(beside.get("total"))
        for key, one in layer.items() if total else ():
            if key not in ("delta", "max_epsilon"):
                source.refuse(f"{key}: a total holds name, delta and max-epsilon only", one.line or 0)
        aside = _ASIDE if "total" in typed else ()
        above = {key: one for key, one in typed.items() if key in _OF_A_TOTAL or (not total and key not in aside)}
        cases.append(Case(options, merged([above, layer, surroundings]), name, reader.spec, node.line, beside))
    if "total" in typed and not any(case.beside.get("total") for case in cases):
        if not listed:
            source.refuse("--total: is for a list of cases, and this is one", root)
        above = {key: one for key, one in typed.items() if key in (*_OF_A_TOTAL, "max_epsilon")}
        cases.append(Case(options, merged([above, surroundings]), "total", reader.spec, root.line, {"total": True}))
    chosen = cases[0]["case"]
    if chosen is not None:
        names = ", ".join(str(case.name) for case in cases)
        cases = [case for case in cases if case.name == chosen]
        if not cases:
            raise CommandLineError(f"--case {shown(chosen)}: {reader.spec} has no case of that name: choose {names}")
        return cases, False
    return cases, listed


_ASIDE = ("max_epsilon",)  # what speaks of the total alone
_OF_A_TOTAL = ("delta", "format", "output", "quiet", "explain", "spec", "case", "save_spec", "total",
               "require_max_epsilon", "method", "conversion", "orders")  # fmt: skip


def settings_of(case: Case) -> tuple[list[Case], tuple[float, ...] | None, bool]:
    """The ``--candidates``: each a guarantee with a name, their weights (None: unknown), and whether those were given.

    What the case says of every training (``--examples``) goes for each.
    """
    from hpcalc.datafiles import candidates_of, read_candidates

    given = case["candidates"]
    words = (*PART, "times")
    if isinstance(given, Node):
        source: Source = _Spec("candidates", str(case.spec))
        found = candidates_of(source, given, words)
    else:
        source = Source("candidates", given)
        found = read_candidates(given, words)
        if params := ", ".join(dict.fromkeys(shown(key) for row in found.rows for key in row.params)):
            from hpcalc.output.streams import complain

            complain(f"hpcalc: {shown(given)}: taken for hyperparameters, which no guarantee depends on: {params}")
    reader = _Reader(source, shown(source.name))
    shared = {"examples": case.given["examples"]} if "examples" in case.given else {}
    rows = []
    for row in found.rows:
        nodes = dict(row.options)
        beside: dict[str, Any] = {"params": row.params} if row.params else {}
        if "times" in nodes:
            beside["times"] = reader.beside("times", nodes.pop("times"))
        layer = {key: reader.given(every()[key], node, node.line) for key, node in nodes.items()}
        options = {key: every()[key] for key in PART}
        rows.append(Case(options, {**shared, **layer}, row.name, reader.spec, row.line, beside))
    return rows, found.weights, found.stated


def spec_text(cases: Sequence[Case], listed: bool) -> str:
    """The same questions as a spec file that reads back.

    Options at their defaults are left out, except delta, which a gate should state; files that the answer is written
    to are left out too.
    """
    from hpcalc.files import yaml_text

    mappings: list[dict[str, Any]] = []
    for case in cases:
        kept = case.without(*(key for key, one in case.options.items() if not one.in_spec or one.group == "Output"))
        mapping = {"name": case.name} if case.name is not None else {}
        mapping |= kept.plain(*(["delta"] if not kept.options["delta"].hidden else []))
        mappings.append(mapping)
    return yaml_text(mappings if listed else mappings[0])
