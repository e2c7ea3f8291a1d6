"""Spec files: the options of one question, or of a list of named cases, in YAML.

A case is a command line: every mapping becomes a layer of texts, as the words of a command line do, and
:mod:`hpcalc.cli.case` reads both. So ``1e-6``, ``-.5`` and ``1e3`` are numbers (YAML 1.1 alone takes them for strings),
every refusal is the same, and one file serves every command: keys that only other commands know are left to them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from hpcalc.cli.case import SPEC, Case, CommandLineError, Given, command_line, environment, located, merged, shown
from hpcalc.cli.command import Command, Option
from hpcalc.cli.options import OPTIONS, PART
from hpcalc.cli.types import HINTS, Integer, Number, Orders
from hpcalc.errors import InvalidInput
from hpcalc.files import Node, Source, nearest, read_tree
from hpcalc.output.streams import complain

__all__ = ["cases_of", "settings_of", "spec_text"]

_NOT_TEXT = re.compile(r"(?i)(~|null|true|false|yes|no|on|off|y|n)?")
_OCTAL = re.compile(r"[+-]?0[0-9_]+|[+-]?0[xob][0-9a-f_]+", re.IGNORECASE)
_SEXAGESIMAL = re.compile(r"[+-]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")


class _Spec(Source):
    """A spec file: errors name the file and the line as compilers do."""

    def refuse(self, text: str, at: Node | int = 0) -> NoReturn:
        line = at.line if isinstance(at, Node) else at
        raise CommandLineError(f"{shown(self.name, 4096)}:{f'{line}:' if line else ''} {text}")


class _Reader:
    """Turns mappings into layers of texts, in the form in which the command line would hand them over."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.spec = shown(source.name, 4096)

    def layer(
        self, node: Node, known: Collection[str], beside: Collection[str]
    ) -> tuple[dict[str, Given], dict[str, Node]]:
        """The options of a mapping, and what stands beside them."""
        if node.kind != "mapping":
            self.source.refuse("expected options such as 'zcdp: 0.1'", node)
        layer: dict[str, Given] = {}
        others: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for name, value in node.children:
            key = name.text.strip().replace("-", "_")
            if key in lines:
                self.source.refuse(f"{shown(name.text)}: given twice (first on line {lines[key]}): keep one", name)
            lines[key] = name.line
            if key in beside:
                others[key] = value
            elif key in known:
                label = f"{self.spec}:{name.line}: {key.replace('_', '-')}:"
                try:
                    layer[key] = Given(tuple(self.texts(OPTIONS[key], value)), label, SPEC, name.line)
                except InvalidInput as error:
                    raise located(label, error) from error
            else:
                self.unknown(name, key, [*known, *beside])
        return layer, others

    def unknown(self, name: Node, key: str, choices: Sequence[str]) -> NoReturn:
        if key in OPTIONS and not OPTIONS[key].in_spec:
            self.source.refuse(f"{key}: has no place in a spec file: give it as {OPTIONS[key].flag}", name)
        near = nearest(key, choices)
        hint = f"did you mean {near.replace('_', '-')}?" if near else "see --help for the options"
        self.source.refuse(f"unknown key {shown(name.text)}: {HINTS.get(key.replace('_', '-'), hint)}", name)

    def name(self, node: Node) -> str:
        if node.kind != "scalar" or not node.text.strip() or "\n" in node.text:
            self.source.refuse("name: give one line of text", node)
        if node.plain and _NOT_TEXT.fullmatch(node.text):
            self.source.refuse(f"name: {node.text}: YAML reads it as something else than text: put it in quotes", node)
        return node.text

    def word(self, key: str, node: Node) -> str:
        if node.kind != "scalar" or node.empty:
            self.source.refuse(f"{key}: give one value", node)
        return node.text.strip()

    def times(self, node: Node) -> int:
        try:
            return Integer().read(self.word("times", node), "times")
        except InvalidInput as error:
            self.source.refuse(f"times {shown(error.value)}: {error.remedy}", node)

    def texts(self, option: Option, node: Node) -> list[Any]:
        items = node.children if node.kind == "list" else (node,)
        if option.key in ("then", "run") and node.kind != "scalar":
            return [self.part(item) for item in items]
        if option.key == "candidates" and node.kind == "list":
            return [node]
        if isinstance(option.kind, Orders):
            return [",".join(self.text(item, option) for item in items)]
        if option.nargs > 1:
            nested = node.kind == "list" and bool(items) and items[0].kind == "list"
            return [self.values(option, group) for group in (items if nested else (node,))]
        return [self.text(item, option) for item in (items if option.many else (node,))]

    def values(self, option: Option, node: Node) -> tuple[str, ...]:
        """The values of an option that takes several: a list, or (as in a variable) words in one text."""
        words = node.text.split() if node.kind == "scalar" else ()
        if len(words) == option.nargs:
            return tuple(words)
        if node.kind != "list" or len(node.children) != option.nargs:
            self.refuse(option, node, f"give a list of exactly {option.nargs} values: [{option.metavar}]")
        return tuple(self.text(child, option) for child in node.children)

    def part(self, node: Node) -> Any:
        """A guarantee within a case: a mapping of options, or text with a grammar of its own such as ``run``."""
        if node.kind == "scalar":
            return node.text
        layer, others = self.layer(node, PART, ("name", "times"))
        name = self.name(others["name"]) if "name" in others else None
        beside = {"times": self.times(others["times"])} if "times" in others else {}
        return Case(PART, layer, name, self.spec, node.line, beside)

    def text(self, node: Node, option: Option) -> str:
        """One text; a mapping is allowed where the command line has its own little grammar."""
        if node.kind == "mapping" and option.key == "rdp":
            return ",".join(f"{self.text(order, option)}:{self.text(value, option)}" for order, value in node.children)
        if node.kind == "mapping" and option.key == "law":
            pairs = {key.text: value.text for key, value in node.children}
            name = pairs.pop("dist", "")
            return f"{name}:{','.join(f'{key}={value}' for key, value in pairs.items())}" if pairs else name
        if node.kind != "scalar":
            self.refuse(option, node, f"a {node.kind} where one value is expected")
        numeric = isinstance(option.kind, (Number, Integer))
        if not option.is_flag and node.plain and _NOT_TEXT.fullmatch(node.text):
            if node.empty:
                self.refuse(option, node, "has no value: give one or leave the key out")
            if not numeric:
                raise InvalidInput(option.key, node.text, "YAML reads it as true or false: put it in quotes")
        for pattern, kind in ((_OCTAL, "octal or hexadecimal"), (_SEXAGESIMAL, "base 60")) if numeric else ():
            if pattern.fullmatch(node.text.strip()):
                raise InvalidInput(option.key, node.text, f"YAML reads it as {kind}: write a decimal number")
        return node.text

    def refuse(self, option: Option, node: Node, text: str) -> NoReturn:
        self.source.refuse(f"{option.key.replace('_', '-')}: {text}", node)


# What the command line says of a total too; the rest is about the other cases.
_OF_A_TOTAL = ("delta", "format", "output", "quiet", "explain", "spec", "case", "save_spec", "total",
               "require_max_epsilon", "method", "conversion", "orders")  # fmt: skip


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
    reader = _Reader(_Spec("spec", Case({"spec": options["spec"]}, asked)["spec"]))
    rows, listed = _rows(reader)
    if "total" in typed and not any(total for *_, total in rows):
        if not listed:
            reader.source.refuse("--total: is for a list of cases, and this is one", rows[0][1])
        rows.append(("total", rows[0][1], {}, True))
    cases = []
    for name, node, layer, total in rows:
        above = {key: one for key, one in typed.items() if not total or key in _OF_A_TOTAL}
        if "total" in typed and "max_epsilon" in typed:  # then it is the total's alone
            above = {key: one for key, one in above.items() if key != "max_epsilon"}
            above |= {"max_epsilon": typed["max_epsilon"]} if total else {}
        beside = {"total": True} if total else {}
        cases.append(Case(options, merged([above, layer, surroundings]), name, reader.spec, node.line, beside))
    chosen = cases[0]["case"]
    if chosen is None:
        return cases, listed
    found = [case for case in cases if case.name == chosen]
    if not found:
        names = ", ".join(str(case.name) for case in cases)
        raise CommandLineError(f"--case {shown(chosen)}: {reader.spec} has no case of that name: choose {names}")
    return found, False


def _rows(reader: _Reader) -> tuple[list[tuple[str | None, Node, dict[str, Given], bool]], bool]:
    """Name, place and options of every case of a spec file and whether it is a total, and whether it is a list."""
    source = reader.source
    root = read_tree(source)
    if root.kind != "mapping" and (root.kind != "list" or not root.children):
        source.refuse("expected one mapping of options, or a list of them", root)
    listed = root.kind == "list"
    known = [key for key, option in OPTIONS.items() if option.in_spec]
    rows: list[tuple[str | None, Node, dict[str, Given], bool]] = []
    for index, node in enumerate(root.children if listed else (root,), 1):
        layer, others = reader.layer(node, known, ("name", "total"))
        for key in ("format", "output") if listed else ():
            if key in layer:
                source.refuse(f"{key}: speaks for all cases: give it as --{key}", layer[key].line or 0)
        name = reader.name(others["name"]) if "name" in others else f"case {index}" if listed else None
        for taken, at, *_ in rows:
            if taken == name:
                source.refuse(f"name: {name}: taken by the case on line {at.line}", node)
        total = "total" in others and reader.word("total", others["total"]).lower() == "true"
        for key, one in layer.items() if total else ():
            if key not in ("delta", "max_epsilon"):
                source.refuse(f"{key}: a total holds name, delta and max-epsilon only", one.line or 0)
        rows.append((name, node, layer, total))
    return rows, listed


# -- candidates -------------------------------------------------------------------------------------------------------


def settings_of(case: Case) -> tuple[list[Case], tuple[float, ...] | None, bool]:
    """The ``--candidates``: each a guarantee with a name, their weights (None: unknown), and whether those were given.

    In a table, a cell of several values separates them by spaces, an empty cell is absent, and a column that is no
    option is a hyperparameter. What the case says of every training (``--examples``) goes for each setting.
    """
    given = case["candidates"]
    inline = isinstance(given, Node)
    source = _Spec("candidates", str(case.spec)) if inline else Source("candidates", given)
    tree = given if inline else read_tree(source)
    if tree.kind != "list" or not tree.children or any(item.kind != "mapping" for item in tree.children):
        source.refuse("expected a list of settings, each a mapping of options", tree)
    table = not inline and not given.lower().endswith((".yaml", ".yml", ".json"))
    reader = _Settings(source)
    shared = {"examples": case.given["examples"]} if "examples" in case.given else {}
    rows, weights = [], []
    params: list[str] = []
    for number, item in enumerate(tree.children, 1):
        node, ignored = _options(item, table)
        layer, others = reader.layer(node, PART, _BESIDE)
        name = others["name"].text.strip() if "name" in others else f"setting {number}"
        if not layer:
            source.refuse(f"{shown(name, 40)} has no guarantee: give one such as noise-multiplier or zcdp", item)
        if "params" in others and others["params"].kind != "mapping":
            source.refuse("params: give a mapping of hyperparameters", others["params"])
        params += [*ignored, *(key.text for key, _ in others["params"].children)] if "params" in others else ignored
        weights += [others["weight"]] if "weight" in others else []
        beside = {"times": reader.times(others["times"])} if "times" in others else {}
        rows.append(Case(PART, {**shared, **layer}, name, reader.spec, item.line, beside))
    if params and not inline:
        names = ", ".join(map(shown, dict.fromkeys(params)))
        complain(f"hpcalc: {shown(given)}: taken for hyperparameters, which no guarantee depends on: {names}")
    return rows, _weights(source, weights, len(rows)), bool(weights)


_BESIDE = ("name", "weight", "params", "times")


def _options(item: Node, table: bool) -> tuple[Node, list[str]]:
    """A setting with its keys as options are called and without what is empty, and its columns that are no option."""
    children, ignored, known = [], [], [*PART, *_BESIDE]
    for name, value in item.children:
        key = name.text.strip().lower().replace("-", "_").replace(" ", "_")
        if value.empty:
            continue
        if table and key not in known and nearest(key, known, cutoff=0.8) is None:
            ignored.append(name.text)
            continue
        parts = tuple(Node("scalar", value.line, part) for part in value.text.split())
        several = table and len(parts) > 1 and key in PART
        name = Node("scalar", value.line, key) if key in known else name
        children.append((name, Node("list", value.line, children=parts) if several else value))
    return replace(item, children=tuple(children)), ignored


class _Settings(_Reader):
    """Settings with a word of their own for what is unknown."""

    def unknown(self, name: Node, key: str, choices: Sequence[str]) -> NoReturn:
        near = nearest(key, choices)
        hint = f"did you mean {near.replace('_', '-')}?" if near else "put hyperparameters under params"
        self.source.refuse(f"unknown word {shown(name.text, 40)}: {hint}", name)


def _weights(source: Source, given: Sequence[Node], count: int) -> tuple[float, ...] | None:
    """Weights that sum to 1, None where they are unknown; equal ones where none is given."""
    if not given:
        return (1.0 / count,) * count
    if len(given) != count:
        source.refuse(f"{len(given)} of {count} settings have a weight: give all of them one, or none", given[0])
    unknown = [node.text.strip().lower() == "unknown" for node in given]
    if all(unknown):
        return None
    if any(unknown):
        source.refuse("weight unknown beside known ones: give all of them, or unknown for every setting", given[0])
    weights = [source.number(node, "weight") for node in given]
    for node, weight in zip(given, weights, strict=True):
        if weight < 0.0:
            source.refuse(f"weight {weight:g}: give probabilities >= 0", node)
    total = math.fsum(weights)
    if abs(total - 1.0) > 1e-6:
        source.refuse(f"the weights sum to {total:.10g}, not to 1: give probabilities", given[0])
    return tuple(weight / total for weight in weights)


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
