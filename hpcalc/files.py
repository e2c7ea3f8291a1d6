"""Files with points of a curve, a law of K or scores: YAML, JSON and CSV, in the shapes other tools write.

A file is untrusted text. Every number is read from its own text by one function, so that ``1e-6`` is a number in YAML
too, ``nan`` never passes, a positive number too small for a double stays positive, and an error can name the line. No
YAML tag is constructed, aliases and nesting are limited, sizes are bounded.

What is harmless is put right (order of the points, a point given twice alike); what is not is refused (a point given
twice with different values, a Rényi curve that decreases, a profile that increases, negative values, NaN).
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from hpcalc.errors import DataFileError, InvalidInput

__all__ = [
    "parse_rdp_text",
    "profile_text",
    "rdp_text",
    "read_pmf",
    "read_profile",
    "read_rdp",
    "read_scores",
]

_MAX_BYTES = 16 * 2**20
_MAX_VALUES = 1_000_000
_MAX_DEPTH = 6
_SMALLEST = 5e-324
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"\+?\.?inf(inity)?", re.IGNORECASE)
_OCTAL = re.compile(r"[+-]?0[0-9]+")

_ORDER = ("order", "orders", "alpha", "alphas", "lambda")
_RENYI = ("rdp", "epsilon", "eps", "epsilons", "rdp_epsilon")
_EPSILON = ("epsilon", "eps", "epsilons")
_DELTA = ("delta", "deltas")
_LOG_DELTA = ("log10_delta",)
_RUNS = ("k", "runs", "value")
_PROBABILITY = ("probability", "p", "prob", "pmf", "probabilities")
_WRAPPERS = ("rdp", "profile", "points", "curve", "data", "pmf", "scores")


@dataclass(frozen=True)
class _Leaf:
    """One value as it stands in the file."""

    text: str
    place: str
    empty: bool = False


@dataclass(frozen=True)
class _Pairs:
    """A mapping with its keys in order, duplicates included."""

    items: tuple[tuple[_Leaf, _Value], ...]
    place: str


@dataclass(frozen=True)
class _Table:
    """Rows of cells, the header first."""

    rows: list[list[_Leaf]]


_Value: TypeAlias = "_Leaf | _Pairs | list[_Value]"
_Row: TypeAlias = "tuple[_Value, ...]"


class _File:
    """A file being read: what it is called, which option named it."""

    def __init__(self, parameter: str, path: str) -> None:
        self.parameter = parameter
        self.path = str(path)
        self.name = "standard input" if self.path == "-" else self.path
        self.values = 0

    def refuse(self, text: str, place: str = "") -> NoReturn:
        raise InvalidInput(self.parameter, self.name, f"{place}: {text}" if place else text)

    def count(self, number: int = 1) -> None:
        self.values += number
        if self.values > _MAX_VALUES:
            self.refuse(f"holds more than {_MAX_VALUES} values: give fewer points")

    # -- bytes to values ------------------------------------------------------------------------------------------

    def text(self) -> str:
        try:
            if self.path == "-":
                data = sys.stdin.buffer.read(_MAX_BYTES + 1)
            else:
                with open(self.path, "rb") as stream:
                    data = stream.read(_MAX_BYTES + 1)
        except (OSError, ValueError, AttributeError) as error:  # a path with a NUL is a ValueError, no stdin the last
            reason = getattr(error, "strerror", None) or error
            raise DataFileError(f"--{self.parameter.replace('_', '-')} {self.name!r}: {reason}") from error
        if len(data) > _MAX_BYTES:
            self.refuse(f"is larger than {_MAX_BYTES >> 20} MiB: give fewer points")
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            self.refuse("is UTF-16 text: save it as UTF-8")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self.refuse("is not UTF-8 text: save it as UTF-8", f"line {line}")
        bad = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text)
        if bad:
            self.refuse(
                "holds control characters: it is not a text file", f"line {text.count(chr(10), 0, bad.start()) + 1}"
            )
        if not text.strip():
            self.refuse("is empty")
        return text

    def load(self) -> _Value | _Table:
        """Contents of a YAML, JSON or CSV file."""
        text = self.text()
        kind = self._kind(text)
        if kind == "json":
            return self._json(text)
        return self._yaml(text) if kind == "yaml" else self._table(text)

    def _kind(self, text: str) -> str:
        suffix = self.path.lower().rpartition(".")[2] if "." in self.path else ""
        if suffix in ("json", "csv", "yaml"):
            return suffix
        if suffix == "yml":
            return "yaml"
        if suffix in ("tsv", "txt"):
            return "csv"
        start = text.lstrip()[:1]
        if start in ("{", "["):
            return "json" if self._is_json(text) else "yaml"
        first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
        return "yaml" if re.match(r"\s*(- |---|[^,;\t]+:(\s|$))", first) else "csv"

    @staticmethod
    def _is_json(text: str) -> bool:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return False
        return True

    def _json(self, text: str) -> _Value:
        def leaf(token: str) -> _Leaf:
            self.count()
            return _Leaf(token, "")

        try:
            # numbers stay text; a bare true, false or null, and strings, are told apart below
            raw = json.loads(text, parse_float=leaf, parse_int=leaf, parse_constant=leaf, object_pairs_hook=_JsonObject)
        except json.JSONDecodeError as error:
            self.refuse(f"is not JSON: {error.msg}", f"line {error.lineno}")
        except RecursionError:
            self.refuse("is nested too deeply")
        except ValueError as error:
            self.refuse(f"is not JSON: {error}")
        return self._from_json(raw, "", 0)

    def _from_json(self, raw: Any, place: str, depth: int) -> _Value:
        if depth > _MAX_DEPTH:
            self.refuse("is nested too deeply")
        if isinstance(raw, _Leaf):
            return _Leaf(raw.text, place)
        if isinstance(raw, _JsonObject):
            return _Pairs(
                tuple(
                    (_Leaf(key, place), self._from_json(value, place or f"key {_shown(key)}", depth + 1))
                    for key, value in raw
                ),
                place,
            )
        if isinstance(raw, list):
            where = f"{place}, entry" if place and not place.startswith("entry") else "entry"
            return [
                self._from_json(item, place if "entry" in place else f"{where} {i}", depth + 1)
                for i, item in enumerate(raw, 1)
            ]
        self.count()
        if raw is None:
            return _Leaf("null", place, empty=True)
        return _Leaf(str(raw).lower() if isinstance(raw, bool) else str(raw), place)

    def _yaml(self, text: str) -> _Value:
        import yaml  # only a YAML file pays for it

        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            return _YamlReader(self, yaml).document(yaml.parse(text, Loader=loader))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = _shown(str(error.problem or error.context or "cannot be parsed"))
            self.refuse(f"is not YAML: {problem}", f"line {mark.line + 1}" if mark else "")
        except yaml.YAMLError as error:
            line = 1 + text.count("\n", 0, getattr(error, "position", 0) or 0)
            self.refuse(f"is not YAML: {getattr(error, 'reason', None) or 'cannot be parsed'}", f"line {line}")

    def _table(self, text: str) -> _Table:
        lines = [line for line in text.splitlines() if line.strip()]
        head = next((line for line in lines if not line.startswith("#")), "")
        delimiter = max(",;\t", key=head.count)
        rows: list[list[_Leaf]] = []
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if not any(cell.strip() for cell in row) or row[0].lstrip().startswith("#"):
                    continue
                self.count(len(row))
                rows.append([_Leaf(cell.strip(), f"line {reader.line_num}", not cell.strip()) for cell in row])
        except csv.Error as error:
            self.refuse(f"is not CSV: {error}", f"line {reader.line_num}")
        if not rows:
            self.refuse("is empty")
        return _Table(rows)

    # -- values to numbers ----------------------------------------------------------------------------------------

    def number(self, leaf: _Value, what: str, *, infinite: bool = False) -> float:
        """A number, never NaN; what underflows is raised to the smallest double, which is the safe side."""
        if not isinstance(leaf, _Leaf):
            place = leaf.place if isinstance(leaf, _Pairs) else ""
            self.refuse(f"{what} must be one number, not a {'mapping' if isinstance(leaf, _Pairs) else 'list'}", place)
        text = leaf.text.strip()
        if leaf.empty or not text:
            self.refuse(f"{what} is missing", leaf.place)
        if _INFINITE.fullmatch(text):
            if infinite:
                return math.inf
            self.refuse(f"{what} must be finite, not {text}", leaf.place)
        if text.lstrip("+-.").lower() == "nan":
            self.refuse(f"{what} is not a number (nan)", leaf.place)
        if not _NUMBER.fullmatch(text):
            hint = ": write a decimal point" if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", text) else ""
            self.refuse(f"{what} must be a number, not {_shown(text)}{hint}", leaf.place)
        if _OCTAL.fullmatch(text):
            self.refuse(f"{what} {text} looks octal: write a decimal number without leading zeros", leaf.place)
        value = float(text)
        if math.isinf(value):
            self.refuse(f"{what} {_shown(text)} is too large for a number", leaf.place)
        if value == 0.0 and re.search(r"[1-9]", re.split("[eE]", text)[0]):
            return _SMALLEST if not text.startswith("-") else -_SMALLEST
        return value


class _JsonObject(list[Any]):
    """Pairs of a JSON object; a type of its own, so that it is not taken for a JSON list."""


def _shown(text: str) -> str:
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 40 else text[:37] + "..."


class _YamlReader:
    """Builds values from YAML events, so that no tag is constructed and no depth or alias runs away."""

    def __init__(self, file: _File, yaml: Any) -> None:
        self.file = file
        self.yaml = yaml
        self.anchors: dict[str, tuple[_Value, int]] = {}

    def document(self, events: Iterator[Any]) -> _Value:
        root: _Value | None = None
        for event in events:
            if isinstance(event, self.yaml.NodeEvent):
                if root is not None:
                    self.file.refuse("a second YAML document: keep one", self._place(event))
                root = self._node(event, events, 0)
        if root is None:
            self.file.refuse("is empty")
        return root

    @staticmethod
    def _place(event: Any) -> str:
        return f"line {event.start_mark.line + 1}"

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> _Value:
        yaml, place = self.yaml, self._place(event)
        before = self.file.values
        self.file.count()
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                self.file.refuse(f"unknown alias *{_shown(event.anchor)}", place)
            value, size = self.anchors[event.anchor]
            self.file.count(size)  # an alias costs what a copy would
            return value
        if getattr(event, "tag", None) not in (None, "!"):
            self.file.refuse(f"YAML tag {_shown(event.tag)}: write the value alone", place)
        if depth > _MAX_DEPTH:
            self.file.refuse("is nested too deeply", place)
        value = self._content(event, events, depth, place)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, self.file.values - before)
        return value

    def _content(self, event: Any, events: Iterator[Any], depth: int, place: str) -> _Value:
        yaml = self.yaml
        if isinstance(event, yaml.ScalarEvent):
            plain = event.style is None or event.style == ""
            text = event.value
            if plain and re.fullmatch(r"[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?", text):
                self.file.refuse(f"{text} is a number in base 60 to YAML: write a decimal number", place)
            return _Leaf(text, place, plain and text.lower() in ("", "~", "null"))
        children: list[_Value] = []
        for inner in events:
            if isinstance(inner, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
                break
            children.append(self._node(inner, events, depth + 1))
        if isinstance(event, yaml.SequenceStartEvent):
            return children
        pairs: list[tuple[_Leaf, _Value]] = []
        for key, value in zip(children[::2], children[1::2], strict=True):
            if not isinstance(key, _Leaf):
                self.file.refuse("a key must be a word or a number", place)
            pairs.append((key, value))
        return _Pairs(tuple(pairs), place)


# ---------------------------------------------------------------------------------------------------------------------
# Columns
# ---------------------------------------------------------------------------------------------------------------------


def _key(leaf: _Leaf) -> str:
    return leaf.text.strip().lower().replace("-", "_").replace(" ", "_")


def _find(file: _File, names: Sequence[_Leaf], wanted: Sequence[str], what: str, *, needed: bool = True) -> int:
    """Index of the one column that goes by one of the wanted names; -1 where there is none and none is needed."""
    hits = [i for i, name in enumerate(names) if _key(name) in wanted]
    if len(hits) > 1:
        both = " and ".join(_shown(names[i].text) for i in hits[:2])
        file.refuse(f"has two columns for the {what}, {both}: keep one", names[hits[0]].place)
    if not hits and needed:
        have = ", ".join(_shown(name.text) for name in names[:8]) or "none"
        file.refuse(
            f"no column for the {what}: call it {' or '.join(wanted[:3])} (columns: {have})",
            names[0].place if names else "",
        )
    return hits[0] if hits else -1


def _columns(file: _File, wanted: Sequence[tuple[Sequence[str], str, bool]]) -> Iterator[_Row]:
    """Rows of the wanted columns (names, description, needed), whatever the shape of the file."""
    value = file.load()
    return _from_table(file, value, wanted) if isinstance(value, _Table) else _from_tree(file, value, wanted, 0)


def _from_table(file: _File, table: _Table, wanted: Sequence[tuple[Sequence[str], str, bool]]) -> Iterator[_Row]:
    header, *body = table.rows
    if all(_NUMBER.fullmatch(cell.text) or _INFINITE.fullmatch(cell.text) for cell in header):
        names = ",".join(names[0] for names, _, needed in wanted if needed)
        file.refuse(f"the first line must name the columns, for example {names}", header[0].place)
    places = [_find(file, header, names, what, needed=needed) for names, what, needed in wanted]
    if not body:
        file.refuse("has a header but no rows")
    for row in body:
        if len(row) != len(header):
            file.refuse(f"{len(row)} cells under {len(header)} column names", row[0].place)
        yield tuple(row[i] if i >= 0 else _Leaf("", row[0].place, True) for i in places)


def _from_tree(
    file: _File, value: _Value, wanted: Sequence[tuple[Sequence[str], str, bool]], depth: int
) -> Iterator[_Row]:
    if isinstance(value, _Pairs):
        yield from _from_pairs(file, value, wanted, depth)
        return
    if isinstance(value, _Leaf):
        file.refuse("expected a list of points", value.place)
    if not value:
        file.refuse("holds no points")
    shape = "{" + ", ".join(f"{names[0]}: ..." for names, _, needed in wanted if needed) + "}"
    for i, item in enumerate(value, 1):
        if isinstance(item, _Pairs):
            names = [key for key, _ in item.items]
            row = [_find(file, names, options, what, needed=needed) for options, what, needed in wanted]
            yield tuple(item.items[j][1] if j >= 0 else _Leaf("", item.place, True) for j in row)
        elif isinstance(item, list) and len(item) == 2:
            yield (*item, *(_Leaf("", "", True) for _ in wanted[2:]))
        else:
            place = item.place if isinstance(item, _Leaf) else f"entry {i}"
            file.refuse(f"a point must be a pair or {shape}", place)


def _from_pairs(
    file: _File, value: _Pairs, wanted: Sequence[tuple[Sequence[str], str, bool]], depth: int
) -> Iterator[_Row]:
    if not value.items:
        file.refuse("holds no points")
    names = [key for key, _ in value.items]
    known = {_key(name) for name in names}
    if known & set(wanted[0][0]):  # two lists of the same length
        lists: list[list[_Value]] = []
        for options, what, needed in wanted:
            j = _find(file, names, options, what, needed=needed)
            if j < 0:
                continue
            column = value.items[j][1]
            if not isinstance(column, list):
                file.refuse(f"{_shown(names[j].text)} must be a list", names[j].place)
            lists.append(column)
        if len({len(column) for column in lists}) != 1:
            file.refuse(f"the lists have different lengths ({', '.join(str(len(x)) for x in lists)})", value.place)
        if not lists[0]:
            file.refuse("holds no points")
        missing = [_Leaf("", value.place, True)] * (len(wanted) - len(lists))
        for row in zip(*lists, strict=True):
            yield (*row, *missing)
        return
    inner = [v for key, v in value.items if _key(key) in _WRAPPERS and not isinstance(v, _Leaf)]
    if len(inner) == 1 and depth == 0:
        yield from _from_tree(file, inner[0], wanted, 1)
        return
    for key, item in value.items:
        if not (_NUMBER.fullmatch(key.text.strip()) or _INFINITE.fullmatch(key.text.strip())):
            options = " and ".join(f"'{wanted[i][0][0]}'" for i in (0, 1))
            file.refuse(
                f"unknown key {_shown(key.text)}: give {options}, or a mapping of numbers to numbers", key.place
            )
        yield (key, item, *(_Leaf("", key.place, True) for _ in wanted[2:]))


def _place_of(value: _Value) -> str:
    return value.place if isinstance(value, (_Leaf, _Pairs)) else ""


# ---------------------------------------------------------------------------------------------------------------------
# What is read
# ---------------------------------------------------------------------------------------------------------------------


def _add(file: _File, points: dict[float, float], x: float, y: float, what: str, place: str) -> None:
    if x in points and points[x] != y:
        file.refuse(f"{what} {x:g} is given twice with different values ({points[x]!r} and {y!r}): keep one", place)
    points[x] = y


def _checked_curve(file: _File, rows: Iterable[_Row]) -> dict[float, float]:
    points: dict[float, float] = {}
    for order_leaf, value_leaf, *_ in rows:
        order = file.number(order_leaf, "order", infinite=True)
        place = _place_of(order_leaf)
        if not order > 1.0:
            file.refuse(f"order {order!r}: Rényi orders are larger than 1", place)
        value = file.number(value_leaf, f"epsilon at order {order:g}", infinite=True)
        if value < 0.0:
            file.refuse(f"epsilon {value!r} at order {order:g} is negative: a Rényi divergence never is", place)
        _add(file, points, order, value, "order", place)
    curve = dict(sorted(points.items()))
    before = (1.0, 0.0)
    for order, value in curve.items():
        # accountants differ in the last digits from order to order; more than that is another quantity
        if value < before[1] * (1.0 - 1e-6) and math.isfinite(before[1]):
            file.refuse(
                f"epsilon falls from {before[1]!r} at order {before[0]:g} to {value!r} at order {order:g}, "
                "but a Rényi divergence never decreases: give RDP values, not epsilons converted at a delta"
            )
        if math.isfinite(value):
            before = (order, value)
    return curve


def read_rdp(path: str) -> dict[float, float]:
    """Points of a Rényi curve.

    Parameters
    ----------
    path : str
        YAML, JSON or CSV file (by its extension, else by its contents), ``-`` for standard input. Columns
        ``order`` (or ``alpha``, ``alphas``, ``orders``) and ``epsilon`` (or ``rdp``, ``eps``).

    Returns
    -------
    dict
        Order to ε in increasing order; order ``inf`` is pure differential privacy, ε ``inf`` an order at which
        nothing is known.

    Raises
    ------
    DataFileError
        If the file cannot be read.
    InvalidInput
        If its contents are not a Rényi curve; the text names the line.
    """
    file = _File("rdp_file", path)
    return _checked_curve(file, _columns(file, ((_ORDER, "order", True), (_RENYI, "Rényi divergence", True))))


def parse_rdp_text(text: str) -> dict[float, float]:
    """Points written as ``ORDER:EPSILON,...``.

    Examples
    --------
    >>> parse_rdp_text("4:0.5, 2:0.25, inf:3")
    {2.0: 0.25, 4.0: 0.5, inf: 3.0}
    """
    file = _File("rdp", text)
    rows: list[_Row] = []
    for piece in str(text).split(","):
        order, colon, value = piece.partition(":")
        if not colon or ":" in value:
            file.refuse(f"{_shown(piece.strip()) or 'an empty entry'}: write ORDER:EPSILON,... such as 2:0.25,inf:3")
        rows.append((_Leaf(order, ""), _Leaf(value, "")))
    return _checked_curve(file, rows)


def read_profile(path: str) -> dict[float, float]:
    """Points of a privacy profile.

    Parameters
    ----------
    path : str
        YAML, JSON or CSV file with the columns ``epsilon`` (or ``eps``) and ``delta``. Where ``delta`` is empty or
        null, ``log10_delta`` stands for it. What ``bound --profile-out`` writes is read back.

    Returns
    -------
    dict
        ε >= 0 to δ in [0, 1], in increasing order of ε.

    Raises
    ------
    DataFileError, InvalidInput
        As :func:`read_rdp`.
    """
    file = _File("profile_file", path)
    points: dict[float, float] = {}
    columns = ((_EPSILON, "epsilon", True), (_DELTA, "delta", True), (_LOG_DELTA, "log10_delta", False))
    for epsilon_leaf, delta_leaf, log_leaf in _columns(file, columns):
        epsilon = file.number(epsilon_leaf, "epsilon")
        place = _place_of(epsilon_leaf)
        if epsilon < 0.0:
            file.refuse(f"epsilon {epsilon!r} is negative: a profile starts at epsilon 0", place)
        if isinstance(delta_leaf, _Leaf) and delta_leaf.empty and isinstance(log_leaf, _Leaf) and not log_leaf.empty:
            log_delta = file.number(log_leaf, "log10_delta")
            # a delta below the smallest double is not zero: zero would claim pure differential privacy
            delta = max(10.0 ** max(min(log_delta, 1.0), -400.0), _SMALLEST)
        else:
            delta = file.number(delta_leaf, f"delta at epsilon {epsilon:g}")
        if not 0.0 <= delta <= 1.0:
            file.refuse(f"delta {delta!r} at epsilon {epsilon:g} is not between 0 and 1", place)
        _add(file, points, epsilon, delta, "epsilon", place)
    profile = dict(sorted(points.items()))
    before = (0.0, 1.0)
    for epsilon, delta in profile.items():
        if delta > before[1] * (1.0 + 1e-9):
            file.refuse(
                f"delta rises from {before[1]!r} at epsilon {before[0]:g} to {delta!r} at epsilon {epsilon:g}, "
                "but a privacy profile never increases: are the columns exchanged?"
            )
        before = (epsilon, delta)
    return profile


def read_pmf(path: str) -> dict[int, float]:
    """A law of the number of runs.

    Parameters
    ----------
    path : str
        YAML, JSON or CSV file: a mapping from k to its probability, pairs, or the columns ``k`` and ``probability``;
        in YAML and JSON also a plain list, whose first entry is the probability of 0 runs.

    Returns
    -------
    dict
        Number of runs (a whole number >= 0) to probability; they sum to 1.

    Raises
    ------
    DataFileError, InvalidInput
        As :func:`read_rdp`.
    """
    file = _File("pmf", path)
    out: dict[int, float] = {}
    for k_leaf, p_leaf, *_ in _pmf_rows(file):
        place = _place_of(k_leaf)
        number = file.number(k_leaf, "the number of runs")
        if number < 0.0 or number != int(number) or number > 1e15:
            file.refuse(f"{number!r} runs: give whole numbers >= 0", place)
        k = int(number)
        p = file.number(p_leaf, f"the probability of {k} runs")
        if not 0.0 <= p <= 1.0 + 1e-9:
            file.refuse(f"the probability {p!r} of {k} runs is not between 0 and 1", place)
        if k in out:
            file.refuse(f"{k} runs are given twice: keep one", place)
        out[k] = p
    total = math.fsum(out.values())
    if abs(total - 1.0) > 1e-9:
        file.refuse(f"the probabilities sum to {total!r}, not to 1")
    return dict(sorted(out.items()))


def _pmf_rows(file: _File) -> Iterator[_Row]:
    wanted = ((_RUNS, "number of runs", True), (_PROBABILITY, "probability", True))
    value = file.load()
    if isinstance(value, _Table):
        return _from_table(file, value, wanted)
    if isinstance(value, list) and value and all(isinstance(item, _Leaf) for item in value):
        return iter([(_Leaf(str(k), _place_of(p)), p) for k, p in enumerate(value)])
    return _from_tree(file, value, wanted, 0)


def read_scores(path: str, column: str | None = None) -> list[float]:
    """Scores of single runs.

    Parameters
    ----------
    path : str
        One number a line, or CSV with a header, or a YAML or JSON list.
    column : str, optional
        Name of the column; needed where the file has several.

    Returns
    -------
    list of float
        At least one finite score, in the order of the file.

    Raises
    ------
    DataFileError, InvalidInput
        As :func:`read_rdp`; a wrong column names those there are.
    """
    file = _File("scores", path)
    value = file.load()
    if isinstance(value, _Table):
        leaves = _scores_table(file, value.rows, column)
    else:
        leaves = _scores_tree(file, value, column)
    scores = [file.number(leaf, "a score") for leaf in leaves]
    if not scores:
        file.refuse("holds no scores")
    return scores


def _pick(file: _File, names: Sequence[_Leaf], column: str | None) -> int:
    have = ", ".join(_shown(name.text) for name in names[:20])
    if column is None:
        if len(names) == 1:
            return 0
        file.refuse(f"has several columns: choose one with --column ({have})")
    hits = [i for i, name in enumerate(names) if name.text.strip() == column.strip()]
    hits = hits or [i for i, name in enumerate(names) if _key(name) == column.strip().lower().replace("-", "_")]
    if len(hits) != 1:
        problem = "no column" if not hits else "several columns"
        raise InvalidInput("column", column, f"{file.name} has {problem} of that name: it has {have}")
    return hits[0]


def _scores_table(file: _File, rows: list[list[_Leaf]], column: str | None) -> Iterator[_Value]:
    header = rows[0]
    bare = all(_NUMBER.fullmatch(c.text) or c.text.lstrip("+-.").lower() in ("inf", "nan") for c in header)
    if bare and len(header) == 1 and column is None:
        at, body = 0, rows
    elif bare:
        file.refuse("the first line must name the columns", header[0].place)
    else:
        at, body = _pick(file, header, column), rows[1:]
    for row in body:
        if len(row) != len(header):
            file.refuse(f"{len(row)} cells where the first line has {len(header)}", row[0].place)
        yield row[at]


def _scores_tree(file: _File, value: _Value, column: str | None) -> Iterator[_Value]:
    if isinstance(value, _Pairs):
        lists = [(key, item) for key, item in value.items if isinstance(item, list)]
        if not lists:
            file.refuse("expected a list of numbers", value.place)
        yield from lists[_pick(file, [key for key, _ in lists], column)][1]
    elif isinstance(value, list) and value and isinstance(value[0], _Pairs):
        for item in value:
            if not isinstance(item, _Pairs) or not item.items:
                file.refuse("expected a list of mappings", _place_of(item))
            yield item.items[_pick(file, [key for key, _ in item.items], column)][1]
    elif isinstance(value, list):
        if column is not None:
            raise InvalidInput("column", column, f"{file.name} is a plain list of numbers: leave it out")
        yield from value
    else:
        file.refuse("expected a list of numbers", _place_of(value))


# ---------------------------------------------------------------------------------------------------------------------
# What is written
# ---------------------------------------------------------------------------------------------------------------------


def profile_text(path: str, points: Iterable[Mapping[str, float | None]]) -> str:
    """Text of a profile file in the format that the extension of ``path`` names (YAML where it names none).

    Parameters
    ----------
    path : str
        Only its extension is looked at: ``.json``, ``.csv``, anything else is YAML.
    points : iterable of mappings
        ``epsilon``, ``delta`` (None where it is below the smallest double) and ``log10_delta``.

    Examples
    --------
    >>> print(profile_text("p.csv", [{"epsilon": 1.0, "delta": 1e-6, "log10_delta": -6.0}]), end="")
    epsilon,delta,log10_delta
    1.0,1e-06,-6.0
    """
    return _points_text(path, "profile", list(points))


def rdp_text(path: str, points: Iterable[Mapping[str, float | None]]) -> str:
    """Text of a Rényi curve, ``order`` and ``epsilon`` (infinite where it is None); see :func:`profile_text`.

    Examples
    --------
    >>> print(rdp_text("-", [{"order": 2.0, "epsilon": 1e-6}, {"order": float("inf"), "epsilon": 1.0}]), end="")
    rdp:
    - {order: 2.0, epsilon: 1.0e-06}
    - {order: .inf, epsilon: 1.0}
    """
    known = [{key: math.inf if value is None else value for key, value in point.items()} for point in points]
    return _points_text(path, "rdp", known)


def _points_text(path: str, name: str, points: Sequence[Mapping[str, float | None]]) -> str:
    suffix = str(path).lower().rpartition(".")[2]
    rows = [{key: None if value is None else float(value) for key, value in point.items()} for point in points]
    if suffix == "json":
        # JSON has no infinity: the word stands for it
        plain = [{key: "inf" if value == math.inf else value for key, value in row.items()} for row in rows]
        lines = ",\n".join("  " + json.dumps(row, allow_nan=False) for row in plain)
        return f'{{"{name}": [\n{lines}\n]}}\n'
    if suffix == "csv":
        header = list(rows[0]) if rows else []
        body = [",".join("" if row[key] is None else repr(row[key]) for key in header) for row in rows]
        return "\n".join([",".join(header), *body]) + "\n"
    items = ["- {" + ", ".join(f"{key}: {_yaml_number(value)}" for key, value in row.items()) + "}" for row in rows]
    return "\n".join([f"{name}:", *items]) + "\n"


def _yaml_number(value: float | None) -> str:
    if value is None:
        return "null"
    text = repr(value)
    if "inf" in text:
        return text.replace("inf", ".inf")
    mantissa, e, exponent = text.partition("e")
    # YAML 1.1 takes 1e-06 for text
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}" if e else text
