"""YAML, JSON and CSV: plain values that read back identical, without an escape code or a constructed type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from hpcalc.output.legible import can_say

__all__ = ["csv_text", "json_text", "yaml_text"]


def json_text(document: Mapping[str, Any], encoding: str = "utf-8") -> str:
    """The document as JSON; what the encoding cannot say is escaped."""
    import json  # as much start-up as all of this module

    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    if not can_say(text, encoding):
        text = json.dumps(document, indent=2, allow_nan=False)
    return text + "\n"


# YAML. PyYAML's own dumper takes longer than the answer, and for a list of thousands of cases much longer.

_WIDTH = 110
# Plain scalars that every YAML reader takes for text: a word that is no keyword, no number and no date.
_WORD = re.compile(
    r"[0-9]+\.[0-9]+\.[0-9]+|[A-Za-z_/][A-Za-z0-9_./+()^%'-]*( [A-Za-z0-9_./+(<>=^%'*-][A-Za-z0-9_./+()<>=,;^%'*-]*)*"
)
_KEYWORD = re.compile(r"(?i)~|null|true|false|yes|no|on|off|y|n|\.?inf|\.?nan")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def yaml_text(value: Any, encoding: str = "utf-8") -> str:
    """A document (or, for spec files, a list of mappings) as YAML; numbers are written as they are."""
    return "\n".join(_block(value, 0, encoding)) + "\n"


def _block(value: Any, indent: int, encoding: str) -> Iterator[str]:
    pad = " " * indent
    if isinstance(value, Mapping):
        for key, item in value.items():
            head = f"{pad}{_scalar(str(key), encoding)}:"
            flat = _flow(item, encoding, _WIDTH - len(head) - 1)
            if flat is not None:
                yield f"{head} {flat}"
            else:
                yield head
                # a list may stand at its key's own indentation, which keeps long answers narrow
                yield from _block(item, indent if isinstance(item, (list, tuple)) else indent + 2, encoding)
        return
    for item in value:
        flat = _flow(item, encoding, _WIDTH - indent - 2)
        if flat is not None:
            yield f"{pad}- {flat}"
            continue
        first, *rest = _block(item, indent + 2, encoding)
        yield f"{pad}- {first[indent + 2 :]}"
        yield from rest


def _flow(value: Any, encoding: str, room: int) -> str | None:
    """One line for a scalar, for a short mapping or list of scalars; None where a block reads better."""
    if isinstance(value, Mapping):
        if any(isinstance(item, (list, tuple)) and any(_nested(part) for part in item) for item in value.values()):
            return None
        text = _inner(value, encoding)
        return text if len(text) <= room or not value else None
    if isinstance(value, (list, tuple)):
        if any(_nested(item) for item in value) or (len(value) > 0 and all(isinstance(item, str) for item in value)):
            return None if value else "[]"
        text = "[" + ", ".join(_scalar(item, encoding, flow=True) for item in value) + "]"
        return text if len(text) <= room or not value else None
    return _scalar(value, encoding)


def _inner(value: Any, encoding: str) -> str:
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(
                f"{_scalar(str(key), encoding, flow=True)}: {_inner(item, encoding)}" for key, item in value.items()
            )
            + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_inner(item, encoding) for item in value) + "]"
    return _scalar(value, encoding, flow=True)


def _nested(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _scalar(value: Any, encoding: str, flow: bool = False) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = repr(value)
        # 1e-06 is text to a YAML 1.1 reader, 1.0e-06 is a number to all of them
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return _text_scalar(str(value), encoding, flow)


@lru_cache(maxsize=4096)  # keys and sentences recur in every case
def _text_scalar(text: str, encoding: str, flow: bool) -> str:
    plain = _WORD.fullmatch(text) and not _KEYWORD.fullmatch(text) and text.isascii()
    if plain and not (flow and re.search(r"[,\[\]{}]", text)):
        return text
    return '"' + "".join(_quoted(char, encoding) for char in text) + '"'


def _quoted(char: str, encoding: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if (char.isprintable() or char == " ") and char != "\ufeff" and can_say(char, encoding):
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# CSV.


def csv_text(document: Mapping[str, Any], encoding: str = "utf-8") -> str:
    """One header line of dotted keys, then one line a case, or a row where the answer has rows."""
    import csv
    import io

    records: list[dict[str, Any]] = []
    for case in document.get("cases", [document]):
        records.extend(_records(case))
    named = list(dict.fromkeys(key for record in records for key in record))
    # what only some rows have stands beside what the others have in its place
    groups = list(dict.fromkeys(key.partition(".")[0] for key in named))
    header = sorted(named, key=lambda key: groups.index(key.partition(".")[0]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for record in records:
        writer.writerow([_cell(record.get(key), encoding) for key in header])
    return out.getvalue()


def _records(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    rows = case.get("rows")
    if rows is None and case.get("command") == "draw":
        rows = [{"runs": run} for run in case["runs"]]
    if rows is None:
        yield dict(_flatten(case, ""))
        return
    shared = {"name": case["name"]} if "name" in case else {}
    chosen = case.get("recommended")
    for index, row in enumerate(rows):
        record = {**shared, **dict(_flatten(row, ""))}
        if isinstance(chosen, Mapping):
            record["recommended"] = chosen.get("row") == index
        yield record
    if not rows:  # nothing fits: the reason is the answer
        yield {**shared, **dict(_flatten({key: value for key, value in case.items() if key != "rows"}, ""))}


def _flatten(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten(item, f"{path}.{key}" if path else str(key))
        if not value:
            yield path, None
    elif isinstance(value, (list, tuple)):
        yield from _flatten_list(value, path)
    else:
        yield path, value


def _flatten_list(items: list[Any] | tuple[Any, ...], path: str) -> Iterator[tuple[str, Any]]:
    if not items and not path.endswith(("assumptions", "warnings")):
        return  # a list of mappings that happens to be empty has no column of its own
    if not any(_nested(item) for item in items):
        yield path, "; ".join(_text(item) for item in items)
        return
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        label = str(index)
        if isinstance(item, Mapping):
            # bounds are known by their method and curve points by their order: columns keep their meaning across cases
            for key in ("method", "order"):
                if key in item:
                    label = _text(item[key])
                    item = {name: part for name, part in item.items() if name != key}
                    break
            if list(item) == ["epsilon"] and path.endswith(("rdp", "orders")):
                item = item["epsilon"]
        seen[label] = seen.get(label, 0) + 1
        yield from _flatten(item, f"{path}.{label}" if seen[label] == 1 else f"{path}.{label}.{seen[label]}")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _cell(value: Any, encoding: str) -> str:
    text = _text(value)
    return text if can_say(text, encoding) else text.encode(encoding, "backslashreplace").decode(encoding)
