"""Files in and out: one reader for YAML, JSON and CSV, one writer.

A file is untrusted text, read into a tree of texts that know their line: no YAML tag is constructed, no key is taken
twice, sizes, nesting and aliases are limited. A number is read from its own text, so that ``1e-6`` is one in YAML too.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from hpcalc.catalog import HINTS
from hpcalc.errors import DataFileError, InvalidInput

_MAX_BYTES = 16 * 2**20
_MAX_VALUES = 1_000_000
_MAX_DEPTH = 8
SMALLEST = 5e-324  #: what a positive number becomes that is too small for a double
# ASCII digits only, and no underscores: float() reads more than what other tools read back
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INFINITE = re.compile(r"\+?\.?inf(inity)?", re.IGNORECASE)
OCTAL = re.compile(r"[+-]?0[0-9_]+")  #: to other readers of YAML
# what YAML takes plain values for; a tag of any other kind was written by hand
_TAGS = ("!", "str", "int", "float", "bool", "null", "timestamp", "value", "merge", "seq", "map")


@dataclass(eq=False)
class Node:
    """A piece of a file: a ``scalar``, a ``list`` or a ``mapping``."""

    kind: str
    line: int  # from 1; 0 where there are no lines
    text: str = ""  # of a scalar, as it stands in the file
    plain: bool = False  # whether it stands there without quotes
    children: tuple[Any, ...] = ()  # nodes of a list, pairs of nodes, key and value, of a mapping
    size: int = 1  # how many nodes it would be if every alias were written out

    @property
    def key(self) -> str:
        """A word as a key: ``Noise multiplier`` and ``noise-multiplier`` are one."""
        return self.text.strip().lower().replace("-", "_").replace(" ", "_")

    @property
    def empty(self) -> bool:
        """Whether a scalar says nothing: an empty cell, ``null`` or ``~``."""
        return self.kind == "scalar" and (not self.text.strip() or (self.plain and self.text.lower() in ("null", "~")))

    @property
    def numeric(self) -> bool:
        """Whether a scalar is a number, infinity included."""
        text = self.text.strip()
        return self.kind == "scalar" and bool(NUMBER.fullmatch(text) or INFINITE.fullmatch(text))


class Source:
    """A file being read, ``-`` is standard input: which option named it (``"rdp_file"``) and how it is refused."""

    def __init__(self, parameter: str, path: str) -> None:
        self.parameter = parameter
        self.path = str(path)
        self.name = "standard input" if self.path == "-" else shown(self.path, 4096)

    def refuse(self, text: str, at: Node | int = 0) -> NoReturn:
        """Say what is wrong, and on which line."""
        line = at.line if isinstance(at, Node) else at
        raise InvalidInput(self.parameter, self.name, f"line {line}: {text}" if line else text)

    def require(self, legal: object, text: str, at: Node | int = 0) -> None:
        """Refuse what is not legal."""
        if not legal:
            self.refuse(text, at)

    def number(self, node: Node, what: str, *, infinite: bool = False) -> float:
        """A number, never NaN; what underflows is raised to the smallest double, which is the safe side."""
        self.require(node.kind == "scalar", f"{what} must be one number, not a {node.kind}", node)
        text = node.text.strip()
        if infinite and INFINITE.fullmatch(text):
            return math.inf
        if not NUMBER.fullmatch(text) or OCTAL.fullmatch(text) or math.isinf(float(text)):
            legal = f"must be a finite decimal number such as 0.5 or 1e-6, not {shown(text)}"
            self.refuse(f"{what} {'is missing' if node.empty else legal}", node)
        return math.copysign(SMALLEST, float(text)) if vanishes(text) else float(text)


def vanishes(text: str) -> bool:
    """Whether a number is not zero, but too small for a double."""
    return float(text) == 0.0 and re.search("[1-9]", re.split("[eE]", text)[0]) is not None


def shown(value: object, longest: int = 40) -> str:
    """A value as one would type it, or a piece of a file: fit for one line of an error."""
    if isinstance(value, (tuple, list)):
        return " ".join(shown(part, longest) for part in value)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text.removesuffix(".0") if isinstance(value, float) else text
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= longest else text[: longest - 3] + "..."


def did_you_mean(word: str, known: Collection[str]) -> str:
    """``"did you mean ...? "``, or nothing where no known word is near."""
    near = HINTS.get(word)
    near = near if near in known else nearest(word, known)
    return f"did you mean {near}? " if near else ""


def nearest(word: str, choices: Collection[str], cutoff: float = 0.6) -> str | None:
    """The choice most like ``word``, if any is."""
    from difflib import get_close_matches  # only a typing error pays for it

    return next(iter(get_close_matches(word, list(choices), n=1, cutoff=cutoff)), None)


def shipped(name: str) -> str:
    """Text of a file that comes with the package, such as ``"schema.json"``."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as stream:
        return stream.read()


def read_tree(source: Source) -> Node:
    """Contents of a YAML, JSON or CSV file, by its extension, else by its looks; a row under a header is a mapping."""
    try:
        if source.path == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with open(source.path, "rb") as stream:
                data = stream.read(_MAX_BYTES + 1)
    except (OSError, ValueError, AttributeError) as error:  # a path with a NUL is a ValueError, no stdin the last
        option = source.parameter.replace("_", "-")
        told = "is closed" if isinstance(error, AttributeError) else getattr(error, "strerror", None) or error
        raise DataFileError(f"--{option} {source.name}: {told}") from error
    source.require(len(data) <= _MAX_BYTES, "is larger than 16 MiB: split it, or give fewer points")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        source.refuse("is not UTF-8 text: save it as UTF-8", data.count(b"\n", 0, error.start) + 1)
    if bad := re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text):
        source.refuse("holds control characters: it is not a text file", text.count("\n", 0, bad.start()) + 1)
    source.require(text.strip(), "is empty")
    suffix = os.path.splitext(source.path)[1].lower()
    head = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    tree = suffix in (".json", ".yaml", ".yml") or source.parameter == "spec" or text.lstrip()[:1] in "{["
    if suffix in (".csv", ".tsv", ".txt") or not (tree or re.match(r"\s*(- |---|[^,;\t]+:(\s|$))", head)):
        return _table(source, text, next((mark for mark in ";\t" if mark in head), ","))
    return _yaml(source, text)


def _yaml(source: Source, text: str) -> Node:
    import json  # only a YAML or JSON file pays for them

    import yaml

    kind = "JSON" if source.path.lower().endswith(".json") else "YAML"
    if text.lstrip()[:1] in "{[":
        # what JSON allows and YAML does not: tabs between values, characters written as two escapes
        pairs = r"\\u(?i:d[89ab][0-9a-f]{2})\\u(?i:d[c-f][0-9a-f]{2})"
        text = re.sub(pairs, lambda pair: str(json.loads(f'"{pair[0]}"')), text.replace("\t", " "))
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError) as error:
        told = vars(error)
        problem = str(told.get("problem") or told.get("context") or told.get("reason") or "cannot be parsed")
        source.require("nesting" not in problem, "is nested too deeply")
        if "document" in f"{problem} {told.get('context')}":
            problem = "a second document: keep one"
        mark = told.get("problem_mark") or told.get("context_mark")
        line = mark.line if mark else text.count("\n", 0, told.get("position", 0))
        source.refuse(f"is not {kind}: {shown(problem)}", line + 1)
    source.require(root is not None, "is empty")
    return _converted(source, root)


def _converted(source: Source, root: Any) -> Node:
    """PyYAML's nodes as ours, each once however many aliases name it."""
    done: dict[int, Node] = {}

    def convert(given: Any, depth: int) -> Node:
        if id(given) in done:
            return done[id(given)]
        line = given.start_mark.line + 1
        kind = type(given).__name__.removesuffix("Node").lower().replace("sequence", "list")
        source.require(depth <= _MAX_DEPTH, "is nested too deeply", line)
        tag = str(given.tag).removeprefix("tag:yaml.org,2002:")
        if tag not in _TAGS:
            tag = f"!!{tag}" if tag != given.tag else tag
            source.refuse(f"tag {shown(tag)}: tags are not read here; write the value alone", line)
        size, children, lines = 1, [], dict[str, int]()
        for part in given.value if kind != "scalar" else ():
            nodes = tuple(convert(one, depth + 1) for one in (part if kind == "mapping" else (part,)))
            size, name = size + sum(node.size for node in nodes), nodes[0]
            many = f"stands for more than {_MAX_VALUES} values: give fewer, or fewer aliases"
            source.require(size <= _MAX_VALUES, many, line)
            source.require(kind != "mapping" or name.kind == "scalar", "a key must be a word or a number", line)
            if kind == "mapping" and name.text in lines:
                first = f" (first on line {lines[name.text]})" if lines[name.text] != name.line else ""
                source.refuse(f"{shown(name.text)}: given twice{first}: keep one", name.line)
            lines[name.text] = name.line
            children.append(nodes if kind == "mapping" else name)
        text = given.value if kind == "scalar" else ""
        done[id(given)] = Node(kind, line, text, kind == "scalar" and not given.style, tuple(children), size)
        return done[id(given)]

    return convert(root, 0)


def _table(source: Source, text: str, delimiter: str) -> Node:
    import csv
    import io

    rows: list[tuple[Node, ...]] = []
    many = text.count(delimiter) + text.count("\n") > _MAX_VALUES
    source.require(not many, f"holds more than {_MAX_VALUES} values: give fewer points")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if not any(cell.strip() for cell in row) or row[0].lstrip().startswith("#"):
                continue
            texts = [cell.strip() for cell in row]
            if delimiter == ";":  # then a comma is the decimal point of half the world
                texts = [re.sub(r"^([+-]?[0-9]*),([0-9]+([eE][+-]?[0-9]+)?)$", r"\1.\2", text) for text in texts]
            rows.append(tuple(Node("scalar", reader.line_num, text) for text in texts))
    except csv.Error as error:
        source.refuse(f"is not CSV: {error}", reader.line_num)
    source.require(rows, "is empty")
    header = rows[0]
    for cells in rows:
        told = f"{len(cells)} cells where the first line has {len(header)}"
        source.require(len(cells) == len(header), told, cells[0])
    if all(cell.numeric or re.fullmatch(r"(?i)[+-]?\.?nan", cell.text) for cell in header):
        lists = (cells[0] if len(header) == 1 else Node("list", cells[0].line, children=cells) for cells in rows)
        return Node("list", 1, children=tuple(lists))
    source.require(len(rows) > 1, "has a header but no rows")
    named = [i for i, name in enumerate(header) if name.text]  # a column without a name is an index
    pairs = (tuple((header[i], row[i]) for i in named) for row in rows[1:])
    return Node("list", 1, children=tuple(Node("mapping", cells[0][1].line, children=cells) for cells in pairs))


def json_text(value: Any, encoding: str = "utf-8") -> str:
    """A plain value as JSON, in ASCII where the encoding does not have every letter."""
    import json  # as much start-up as all of this module

    return json.dumps(value, indent=2, ensure_ascii=not encoding.lower().startswith("utf"), allow_nan=False) + "\n"


def yaml_text(value: Any, encoding: str = "utf-8") -> str:
    """A plain value as YAML, sentences one a line; every reader takes numbers for numbers and texts for texts."""
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
            block = bool(sequence) and all(isinstance(item, str) for item in sequence)
            return super().represent_sequence(tag, sequence, False if block else flow_style)

    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(rf"^{NUMBER.pattern}$"), list("+-.0123456789"))
    Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("^[+-]?0o[0-7]+$"), list("+-0"))
    Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))
    utf = encoding.lower().startswith("utf")
    return str(yaml.dump(value, None, Dumper, allow_unicode=utf, sort_keys=False, default_flow_style=None, width=110))


def points_text(path: str, name: str, points: Sequence[Mapping[str, float | None]]) -> str:
    """Points of a curve under their ``name``, as the suffix of ``path`` says; None: a δ too small, an ε unknown."""
    unknown = math.inf if name == "rdp" else None
    rows = [{key: unknown if value is None else float(value) for key, value in point.items()} for point in points]
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".csv":
        cells = (["" if value is None else repr(value) for value in row.values()] for row in rows)
        return "".join(",".join(line) + "\n" for line in (rows[0] if rows else (), *cells))
    if suffix == ".json":  # has no infinity: the word stands for it
        return json_text({name: [{k: "inf" if v == math.inf else v for k, v in row.items()} for row in rows]})
    return yaml_text({name: rows})


def write_file(path: str, text: str | bytes) -> None:
    """Write a file whole or not at all: a temporary file beside it, then a rename.

    It keeps its permissions, a symbolic link stays one, and what is not a regular file is written to as it is.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    try:
        target, old = os.path.realpath(path), os.path.exists(path)  # the real path of a pipe names nothing
        if old and not (os.path.isfile(path) and os.access(path, os.W_OK)):
            with open(path, "wb") as stream:  # which a file that must not be written refuses
                stream.write(data)
            return
        if path.endswith(("/", os.sep)):
            raise FileNotFoundError(2, "the folder does not exist")
        temporary = os.path.join(os.path.dirname(target), f".hpcalc-{os.urandom(6).hex()}")
        try:
            with open(temporary, "xb") as stream:
                if old:
                    os.chmod(temporary, os.stat(target).st_mode & 0o7777)
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise DataFileError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error
