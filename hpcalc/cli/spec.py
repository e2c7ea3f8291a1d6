"""Spec files: the options of one question, or of a list of named cases, in YAML.

A value in a spec file is read by the very code that reads it on the command line, so ``1e-6``, ``-.5`` and ``1e3`` are
numbers (YAML 1.1 alone takes them for strings) and every refusal is the same. PyYAML supplies the events only: no tag
is ever constructed, an alias is followed at most as often as the size limit allows, and nesting is shallow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from hpcalc.cli.option import Option
from hpcalc.cli.settings import CommandLineError, Settings, shown
from hpcalc.cli.types import Integer, Number, Orders, nearest
from hpcalc.errors import DataFileError, InvalidInput
from hpcalc.output.streams import read_stdin

if TYPE_CHECKING:
    import yaml

__all__ = ["cases_of", "spec_text"]

_MAX_BYTES = 8 * 2**20
_MAX_NODES = 1_000_000
_MAX_DEPTH = 8
_LONGEST_PATH = 4096  # a file is named in full: a path that is cut cannot be opened
_WHOLE_FILE_ONLY = ("format", "output")  # of one invocation, not of one case
_NOT_TEXT = re.compile(r"(?i)(~|null|true|false|yes|no|on|off|y|n)?")
_OCTAL = re.compile(r"[+-]?0[0-9_]+|[+-]?0[xob][0-9a-f_]+", re.IGNORECASE)
_SEXAGESIMAL = re.compile(r"[+-]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")


@dataclass(frozen=True)
class _Node:
    """A piece of YAML: text (``kind`` "scalar"), items ("list") or pairs of nodes ("mapping")."""

    kind: str
    line: int
    text: str = ""
    plain: bool = False
    children: tuple[Any, ...] = ()


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark is not None else 1


def _short(tag: str) -> str:
    prefix = "tag:yaml.org,2002:"
    return f"!!{tag[len(prefix) :]}" if tag.startswith(prefix) else tag


class _Reader:
    """Builds nodes from YAML events, within limits."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.anchors: dict[str, _Node] = {}
        self.sizes: dict[int, int] = {}
        self.nodes = 0

    def refuse(self, line: int, text: str) -> NoReturn:
        raise CommandLineError(f"{self.name}:{line}: {text}")

    def read(self, data: bytes) -> _Node:
        if len(data) > _MAX_BYTES:
            raise CommandLineError(f"{self.name}: larger than {_MAX_BYTES >> 20} MiB: split it into several spec files")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self.refuse(line, "not UTF-8 text: save the file as UTF-8")
        import yaml

        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            events = yaml.parse(text, Loader=loader)
            root = self._document(events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self.refuse(
                mark.line + 1 if mark else 1, f"not YAML: {shown(error.problem or error.context or 'cannot be parsed')}"
            )
        except yaml.YAMLError as error:
            line = 1 + text.count("\n", 0, getattr(error, "position", 0) or 0)
            self.refuse(line, f"not YAML: {getattr(error, 'reason', None) or 'cannot be parsed'}")
        return root

    def _document(self, events: Iterator[yaml.Event]) -> _Node:
        import yaml

        root: _Node | None = None
        for event in events:
            if isinstance(event, yaml.NodeEvent):
                if root is not None:
                    self.refuse(_line(event), "a second document: keep one, or make a list of cases")
                root = self._node(event, events, 0)
        if root is None:
            raise CommandLineError(f"{self.name}: is empty: write options such as 'zcdp: 0.1'")
        return root

    def _node(self, event: yaml.NodeEvent, events: Iterator[yaml.Event], depth: int) -> _Node:
        import yaml

        line = _line(event)
        before = self.nodes
        self._count(1, line)
        if isinstance(event, yaml.AliasEvent):
            name = str(event.anchor)
            if name not in self.anchors:
                self.refuse(line, f"unknown alias *{shown(name)}")
            target = self.anchors[name]
            # an alias costs what a copy would, so that a few lines cannot stand for millions of nodes
            self._count(self.sizes[id(target)], line)
            return target
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            self.refuse(line, f"tag {shown(_short(str(tag)))}: tags are not read here; write the value alone")
        if depth > _MAX_DEPTH:
            self.refuse(line, "nested too deeply: a spec is one mapping or a list of mappings")
        if isinstance(event, yaml.ScalarEvent):
            node = _Node("scalar", line, event.value, event.style is None or event.style == "")
        elif isinstance(event, yaml.SequenceStartEvent):
            items = tuple(self._children(yaml.SequenceEndEvent, events, depth))
            node = _Node("list", line, children=items)
        else:
            flat = tuple(self._children(yaml.MappingEndEvent, events, depth))
            node = _Node("mapping", line, children=tuple(zip(flat[::2], flat[1::2], strict=True)))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
            self.sizes[id(node)] = self.nodes - before
        return node

    def _children(self, end: type[yaml.Event], events: Iterator[yaml.Event], depth: int) -> Iterator[_Node]:
        import yaml

        for event in events:
            if isinstance(event, end):
                return
            if isinstance(event, yaml.NodeEvent):
                yield self._node(event, events, depth + 1)

    def _count(self, nodes: int, line: int) -> None:
        self.nodes += nodes
        if self.nodes > _MAX_NODES:
            self.refuse(line, "stands for too many values: use fewer aliases, or several spec files")


class _Case:
    """One mapping of a spec file, read against the options of a command."""

    def __init__(self, reader: _Reader, ctx: click.Context, alone: bool) -> None:
        self.reader = reader
        self.ctx = ctx
        self.alone = alone
        self.options = {param.key: param for param in ctx.command.params if isinstance(param, Option) and param.in_spec}

    def read(self, node: _Node, default_name: str | None) -> Settings:
        """Settings of one case: the command line first, then the case, then the environment and the defaults."""
        if node.kind != "mapping":
            self.reader.refuse(node.line, "expected options such as 'zcdp: 0.1'")
        values = dict(self.ctx.params)
        lines: dict[str, int] = {}
        name = default_name
        for key_node, value_node in node.children:
            if key_node.kind != "scalar":
                self.reader.refuse(key_node.line, "an option's name must be a word")
            key = key_node.text.replace("-", "_")
            if key in lines:
                self.reader.refuse(
                    key_node.line, f"{shown(key_node.text)}: given twice (first on line {lines[key]}): keep one"
                )
            lines[key] = key_node.line
            if key == "name":
                name = self._name(value_node)
                continue
            value = self._value(key, key_node, value_node)
            if self.ctx.get_parameter_source(key) is not ParameterSource.COMMANDLINE:
                values[key] = value
        lines.pop("name", None)
        overruled = [key for key in lines if self.ctx.get_parameter_source(key) is ParameterSource.COMMANDLINE]
        for key in overruled:
            del lines[key]
        return Settings(self.ctx, values, lines, self.reader.name, name)

    def _name(self, node: _Node) -> str:
        if node.kind != "scalar" or not node.text.strip() or "\n" in node.text:
            self.reader.refuse(node.line, "name: give one line of text")
        if node.plain and _NOT_TEXT.fullmatch(node.text):
            self.reader.refuse(
                node.line, f"name: {node.text}: YAML reads it as something else than text: put it in quotes"
            )
        return node.text

    def _value(self, key: str, key_node: _Node, node: _Node) -> Any:
        option = self.options.get(key)
        if option is None:
            if any(isinstance(param, Option) and param.key == key for param in self.ctx.command.params):
                self.reader.refuse(key_node.line, f"{key}: has no place in a spec file: give it as --{key_node.text}")
            near = nearest(key, (*self.options, "name"))
            hint = f"did you mean {near.replace('_', '-')}?" if near else "see --help for the options"
            self.reader.refuse(key_node.line, f"unknown key {shown(key_node.text)}: {hint}")
        if key in _WHOLE_FILE_ONLY and not self.alone:
            self.reader.refuse(key_node.line, f"{key}: speaks for all cases: give it as --{key}")
        try:
            raw = _Shape(option, self.reader).raw(node)
            if option.is_flag:
                return option.read_flag(raw)
            return option.type_cast_value(self.ctx, raw)
        except InvalidInput as error:
            raise Settings(self.ctx, {}, {key: key_node.line}, self.reader.name).located(error) from error


class _Shape:
    """Brings a node into the form in which Click hands an option's text to its type."""

    def __init__(self, option: Option, reader: _Reader) -> None:
        self.option = option
        self.reader = reader
        self.numeric = isinstance(option.type, (Number, Integer, Orders))

    def raw(self, node: _Node) -> Any:
        option = self.option
        if option.is_flag:
            return self._scalar(node, flag=True)
        if isinstance(option.type, Orders):
            return ",".join(map(self._scalar, node.children)) if node.kind == "list" else self._scalar(node)
        if option.nargs > 1:
            groups = node.children if self._nested(node) else (node,)
            values = [self._group(group) for group in groups]
            return values if option.multiple else values[0]
        if option.multiple:
            return [self._text(item) for item in (node.children if node.kind == "list" else (node,))]
        return self._text(node)

    def _nested(self, node: _Node) -> bool:
        return node.kind == "list" and bool(node.children) and node.children[0].kind == "list"

    def _group(self, node: _Node) -> tuple[str, ...]:
        if node.kind != "list" or len(node.children) != self.option.nargs:
            self._refuse(node, f"give a list of exactly {self.option.nargs} values: [{self.option.metavar}]")
        return tuple(self._scalar(child) for child in node.children)

    def _text(self, node: _Node) -> str:
        """One text; a mapping is allowed where the command line has its own little grammar."""
        if node.kind == "mapping" and self.option.key == "rdp":
            return ",".join(f"{self._scalar(order)}:{self._scalar(value)}" for order, value in node.children)
        if node.kind == "mapping" and self.option.key == "law":
            pairs = [(self._scalar(key), self._scalar(value, loose=True)) for key, value in node.children]
            name = next((value for key, value in pairs if key == "dist"), "")
            rest = ",".join(f"{key}={value}" for key, value in pairs if key != "dist")
            return f"{name}:{rest}" if rest else name
        return self._scalar(node)

    def _scalar(self, node: _Node, flag: bool = False, loose: bool = False) -> str:
        if node.kind != "scalar":
            self._refuse(node, f"a {node.kind} where one value is expected")
        text = node.text
        if flag or loose:
            return text
        if node.plain and _NOT_TEXT.fullmatch(text):
            if text in ("", "~") or text.lower() == "null":
                self._refuse(node, "has no value: give one or leave the key out")
            if not self.numeric:
                raise InvalidInput(self.option.key, text, "YAML reads it as true or false: put it in quotes")
        if self.numeric and _OCTAL.fullmatch(text.strip()):
            raise InvalidInput(self.option.key, text, "YAML reads it as octal or hexadecimal: write a decimal number")
        if self.numeric and _SEXAGESIMAL.fullmatch(text.strip()):
            raise InvalidInput(self.option.key, text, "YAML reads it as base 60: write a decimal number")
        return text

    def _refuse(self, node: _Node, text: str) -> NoReturn:
        self.reader.refuse(node.line, f"{self.option.key.replace('_', '-')}: {text}")


def cases_of(ctx: click.Context) -> tuple[list[Settings], bool]:
    """The questions a command line asks, and whether they are a list of cases.

    Raises
    ------
    HpcalcError
        If the spec file cannot be read (exit code 4) or is wrong (exit code 2).
    """
    path = ctx.params.get("spec")
    if path is None:
        return [Settings(ctx, ctx.params)], False
    reader = _Reader("standard input" if path == "-" else shown(path, longest=_LONGEST_PATH))
    root = reader.read(_read(path))
    if root.kind == "mapping":
        return [_Case(reader, ctx, alone=True).read(root, None)], False
    if root.kind != "list" or not root.children:
        reader.refuse(root.line, "expected one mapping of options, or a list of them")
    case = _Case(reader, ctx, alone=False)
    settings = [case.read(node, f"case {index}") for index, node in enumerate(root.children, 1)]
    seen: dict[str | None, int] = {}
    for node, one in zip(root.children, settings, strict=True):
        if one.name in seen:
            reader.refuse(node.line, f"name: {one.name}: taken by the case on line {seen[one.name]}")
        seen[one.name] = node.line
    return settings, True


def _read(path: str) -> bytes:
    if path == "-":
        return read_stdin()
    try:
        with open(path, "rb") as stream:
            return stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise DataFileError(f"--spec {shown(path, longest=_LONGEST_PATH)}: {error.strerror or error}") from error


def spec_text(cases: list[Settings], listed: bool) -> str:
    """The same questions as a spec file that reads back.

    Options at their defaults are left out, except delta, which a gate should state; files that the answer is written
    to are left out too.
    """
    from hpcalc.files import yaml_text

    mappings: list[dict[str, Any]] = []
    for case in cases:
        mapping: dict[str, Any] = {}
        if case.name is not None and (listed or case.spec is not None):
            mapping["name"] = case.name
        for param in case.ctx.command.params:
            if not isinstance(param, Option) or not param.in_spec or param.group in ("Help", "Output"):
                continue
            if case.given(param.key) or (param.key == "delta" and not param.hidden):
                mapping[param.flag.lstrip("-")] = _plain(case[param.key])
        mappings.append(mapping)
    return yaml_text(mappings if listed else mappings[0])


def _plain(value: Any) -> Any:
    """A parsed value as a spec file holds it: text for what only hpcalc reads, such as an infinite order."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf"
    if isinstance(value, tuple):
        parts = [_plain(part) for part in value]
        return parts[0] if len(parts) == 1 and not isinstance(value[0], tuple) else parts
    return value
