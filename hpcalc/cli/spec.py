"""Spec files: the options of one question, or of a list of named cases, in YAML.

A case is a command line: every mapping becomes a layer of texts, which :mod:`hpcalc.cli.case` reads as it reads words.
One file serves every command: keys that only other commands know are left to them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from hpcalc.cli.case import Case, CommandLineError, Layer, environment, merged
from hpcalc.cli.command import SPEC, Command, Given, Option
from hpcalc.cli.options import OPTIONS, PART
from hpcalc.cli.types import HINTS, NUMERIC, orders
from hpcalc.files import OCTAL, Node, Source, did_you_mean, nearest, read_tree, shown, yaml_text
from hpcalc.output.streams import complain


class _Spec(Source):
    """A spec file, its mappings as layers of texts; errors name the file and the line as compilers do."""

    remedy = "see --help for the options"  # of an unknown key that is like none

    def refuse(self, text: str, at: Node | int = 0) -> NoReturn:
        line = at.line if isinstance(at, Node) else at
        raise CommandLineError(f"{self.name}:{f'{line}:' if line else ''} {text}")

    def layer(self, node: Node, known: Mapping[str, Option]) -> dict[str, Given]:
        """The options of a mapping."""
        self.require(node.kind == "mapping", "expected options such as 'zcdp: 0.1'", node)
        layer: dict[str, Given] = {}
        for name, value in node.children:
            key = name.text.strip().replace("-", "_")
            if key in layer:
                self.refuse(f"{shown(name.text)}: given twice (first on line {layer[key].line}): keep one", name)
            if key not in known:
                flag, misplaced = key.replace("_", "-"), key in OPTIONS and not OPTIONS[key].in_spec
                self.require(not misplaced, f"{key}: has no place in a spec file: give it as --{flag}", name)
                near = did_you_mean(flag, [one.replace("_", "-") for one in known]).strip()
                self.refuse(f"unknown key {shown(name.text)}: {HINTS.get(flag, near) or self.remedy}", name)
            label = f"{self.name}:{name.line}: {key.replace('_', '-')}:"
            layer[key] = Given(tuple(self.texts(known[key], value)), label, SPEC, name.line)
        return layer

    def texts(self, option: Option, node: Node) -> list[Any]:
        """What the command line would hand over for each time the option is given."""
        items = node.children if node.kind == "list" else (node,)
        if option.key in ("then", "run") and node.kind != "scalar":
            return [  # a guarantee within a case, or text with a grammar of its own such as run
                item.text if item.kind == "scalar" else Case(PART, self.layer(item, PART), None, self.name, item.line)
                for item in items
            ]
        if option.key == "candidates" and node.kind == "list":
            return [node]
        between = "," if option.kind is orders else " " if option.nargs > 1 else None  # of several values in one text
        if not option.many or (between and not (items and items[0].kind == "list")):
            items = (node,)
        parts = [item.children if between and item.kind == "list" else (item,) for item in items]
        return [(between or "").join(self.text(part, option) for part in each) for each in parts]

    def text(self, node: Node, option: Option) -> str:
        """One text; a mapping is allowed where the command line has its own little grammar."""
        if node.kind == "mapping" and option.key == "rdp":
            return ",".join(f"{self.text(order, option)}:{self.text(value, option)}" for order, value in node.children)
        if node.kind == "mapping" and option.key == "law":
            pairs = {key.text: value.text for key, value in node.children}
            name = pairs.pop("dist", "")
            return f"{name}:{','.join(f'{key}={value}' for key, value in pairs.items())}" if pairs else name
        key, numeric = option.flag[2:], option.kind in NUMERIC
        self.require(node.kind == "scalar", f"{key}: a {node.kind} where one value is expected", node)
        if not option.is_flag and node.plain and re.fullmatch("(?i)(~|null|true|false|yes|no|on|off|y|n)?", node.text):
            self.require(not node.empty, f"{key}: has no value: give one or leave the key out", node)
            self.require(numeric, f"{key}: {node.text}: YAML reads it as true or false: put it in quotes", node)
        octal = numeric and OCTAL.fullmatch(node.text.strip())
        self.require(not octal, f"{key}: {node.text}: YAML reads it as octal: write a decimal number", node)
        return node.text


# What the command line says of a total too; the rest is about the other cases.
_OF_A_TOTAL = ("delta", "format", "output", "quiet", "explain", "spec", "case", "save_spec",
               "require_max_epsilon", "method", "conversion", "orders", "profile_out", "rdp_out")  # fmt: skip


def cases_of(command: Command, typed: Layer) -> tuple[list[Case], bool]:
    """The questions a command line asks, and whether they are a list of cases.

    Where the spec's own total is the one that ``--case`` names, the cases that it is the sum of stand beside it.
    """
    options = command.options
    surroundings = environment(options)
    asked = merged([typed, surroundings])
    if "spec" not in asked:
        case = Case(options, asked)
        told = "speaks about the cases of a spec file: give --spec too"
        case.require(*((key, not case[key], told) for key in ("case", "total")))
        return [case], False
    spec = _Spec("spec", Case({"spec": options["spec"]}, asked)["spec"])
    rows, listed = _rows(spec)
    rows = [row for row in rows if "total" in options or "total" not in row[2]]
    about = Case({key: options[key] for key in ("case", "total") if key in options}, asked)
    whole, chosen = about["total"], about["case"]
    told = f"is all cases together, and --case {shown(chosen)} is one: leave --case or --total out"
    about.require(("total", not whole or chosen is None, told))
    some = not all("total" in layer for *_, layer in rows)
    spec.require(some, "a total stands beside the cases it is the sum of: there are none")
    if whole and not any("total" in layer for *_, layer in rows):
        spec.require(listed, "--total: is for a list of cases, and this is one", rows[0][1])
        rows.append(("total", rows[0][1], {"total": asked["total"]}))
    cases = []
    summed = any(name == chosen and "total" in layer for name, _, layer in rows)
    alone = {"max_epsilon"} if whole or summed else set()  # then it is the total's
    layers = [{key: one for key, one in layer.items() if key != "total"} for layer in (typed, surroundings)]
    for name, node, every in rows:
        layer = {key: one for key, one in every.items() if key in options}  # others are for other commands
        heard = {*_OF_A_TOTAL, *alone} if "total" in layer else typed.keys() - alone
        above = {key: one for key, one in layers[0].items() if key in heard}
        cases.append(Case(options, merged([above, layer, layers[1]]), name, spec.name, node.line))
    found = [case for case in cases if summed or chosen in (None, case.name)]
    if not found:
        names = ", ".join(str(case.name) for case in cases)
        raise CommandLineError(f"--case {shown(chosen)}: {spec.name} has no case of that name: choose {names}")
    return found, listed and (summed or chosen is None)


def _rows(spec: _Spec) -> tuple[list[tuple[str | None, Node, dict[str, Given]]], bool]:
    """Name, place and options of every case of a spec file, and whether it is a list of them."""
    root = read_tree(spec)
    listed = root.kind == "list"
    legal = root.children if listed else root.kind == "mapping"
    spec.require(legal, "expected one mapping of options, or a list of them", root)
    known = {"name": PART["name"], **{key: option for key, option in OPTIONS.items() if option.in_spec}}
    rows: list[tuple[str | None, Node, dict[str, Given]]] = []
    for index, node in enumerate(root.children if listed else (root,), 1):
        layer = spec.layer(node, known)
        for word in (word for word in ("format", "output") if listed and word in layer):
            spec.refuse(f"{word}: speaks for all cases: give it as --{word}", layer[word].line or 0)
        about = Case({key: known[key] for key in ("name", "total")}, layer)
        name = about["name"] or (f"case {index}" if listed else None)
        for taken, at, _ in rows:
            spec.require(taken != name, f"name: {name}: taken by the case on line {at.line}", node)
        for key, one in layer.items() if about["total"] else ():
            own = key in ("name", "total", "delta", "max_epsilon")
            spec.require(own, f"{key}: a total holds name, delta and max-epsilon only", one.line or 0)
        if not about["total"]:
            layer.pop("total", None)
        rows.append((name, node, layer))
    return rows, listed


def settings_of(case: Case) -> tuple[list[Case], tuple[float, ...] | None, bool]:
    """The ``--candidates``: each a guarantee with a name, their weights (None: unknown), and whether those were given.

    In a table, blanks separate the values of a cell, and a column that is no option is a hyperparameter.
    """
    given = case["candidates"]
    inline = isinstance(given, Node)
    spec = _Spec("candidates", str(case.spec) if inline else given)
    spec.remedy = "put hyperparameters under params"
    tree = given if inline else read_tree(spec)
    settings = tree.kind == "list" and tree.children and all(item.kind == "mapping" for item in tree.children)
    spec.require(settings, "expected a list of settings, each a mapping of options", tree)
    table = not inline and not given.lower().endswith((".yaml", ".yml", ".json"))
    known = [*PART, "weight", "params"]
    shared = {"examples": case.given["examples"]} if "examples" in case.given else {}
    rows, weights, params = [], list[Node](), list[str]()
    for number, item in enumerate(tree.children, 1):
        children = []
        for name, value in item.children:
            key = name.key
            if value.empty:
                continue
            if key == "weight":
                weights.append(value)
            elif key == "params":
                spec.require(value.kind == "mapping", "params: give a mapping of hyperparameters", value)
                params += [name.text for name, _ in value.children]
            elif table and key not in known and nearest(key, known, cutoff=0.8) is None:
                params.append(name.text)
            else:
                parts = tuple(Node("scalar", value.line, part) for part in value.text.split())
                several = table and len(parts) > 1 and key in PART and PART[key].many
                node = Node("list", value.line, children=parts) if several else value
                children.append((Node("scalar", value.line, key) if key in PART else name, node))
        layer = spec.layer(replace(item, children=tuple(children)), PART)
        name = Case({"name": PART["name"]}, layer)["name"] or f"setting {number}"
        rows.append(Case(PART, {**shared, **layer}, name, spec.name, item.line))
    if params and not inline:
        names = ", ".join(map(shown, dict.fromkeys(params)))
        complain(f"hpcalc: {shown(given, 4096)}: taken for hyperparameters, which no guarantee depends on: {names}")
    return rows, _weights(spec, weights, len(rows)), bool(weights)


def _weights(source: Source, given: Sequence[Node], count: int) -> tuple[float, ...] | None:
    """Weights that sum to 1, None where they are unknown; equal ones where none is given."""
    if not given:
        return (1.0 / count,) * count
    some = f"{len(given)} of {count} settings have a weight: give all of them one, or none"
    source.require(len(given) == count, some, given[0])
    unknown = [node for node in given if node.text.strip().lower() == "unknown"]
    if len(unknown) == count:
        return None
    source.require(not unknown, "weight unknown: give all weights as numbers, or all as unknown", (unknown or given)[0])
    weights = [source.number(node, "weight") for node in given]
    for node, weight in zip(given, weights, strict=True):
        source.require(weight > 0.0, f"weight {weight:g}: give probabilities above 0", node)
    total = math.fsum(weights)
    source.require(abs(total - 1.0) <= 1e-6, f"the weights sum to {total:.10g}, not to 1: give probabilities", given[0])
    return tuple(weight / total for weight in weights)


def spec_text(cases: Sequence[Case], listed: bool) -> str:
    """The same questions as a spec file that reads back: no defaults but delta, which a gate should state."""
    mappings = []
    for case in cases:
        # nor the files that the answer is written to, nor a delta that is asked for
        idle = "delta" if case["epsilon"] is not None else ""
        left = (key for key, one in case.options.items() if not one.in_spec or one.group == "Output" or key == idle)
        kept = case.without(*left)
        always = () if idle or kept.options["delta"].hidden else ("delta",)
        mappings.append(({} if case.name is None else {"name": case.name}) | kept.plain(*always))
    return yaml_text(mappings if listed else mappings[0])
