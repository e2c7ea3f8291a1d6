"""CSV: one header line of dotted keys, one value a cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpcalc.output.legible import can_say

__all__ = ["csv_text"]


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


def _nested(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _cell(value: Any, encoding: str) -> str:
    text = _text(value)
    return text if can_say(text, encoding) else text.encode(encoding, "backslashreplace").decode(encoding)
