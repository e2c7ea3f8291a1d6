"""CSV: one header line of dotted keys, one value a cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpcalc.output.legible import can_say

__all__ = ["csv_text"]

# numbers that stand in a fixed order
_NAMES = {"dpsgd": ("rate", "noise", "steps"), "approx_dp": ("epsilon", "delta")}


def csv_text(document: Mapping[str, Any], encoding: str = "utf-8") -> str:
    """One header line of dotted keys, then one line a case, or a row where the answer has rows."""
    import csv
    import io

    records = [record for case in document.get("cases", [document]) for record in _records(case)]
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
    rows = [{"runs": run} for run in case["runs"]] if case.get("command") == "draw" and "runs" in case else None
    rows = case.get("rows", rows)
    shared = {"name": case["name"]} if "name" in case else {}
    if not rows:  # one answer, or none: then the reason is the answer
        yield {**shared, **dict(_flatten({key: value for key, value in case.items() if key != "rows"}, ""))}
        return
    chosen = case.get("recommended")
    for index, row in enumerate(rows):
        record = {**shared, **dict(_flatten(row, ""))}
        if isinstance(chosen, Mapping):
            record["recommended"] = chosen.get("row") == index
        yield record


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


def _flatten_list(items: Sequence[Any], path: str) -> Iterator[tuple[str, Any]]:
    names = _NAMES.get(path.rpartition(".")[2], ())
    flat = not any(isinstance(item, (Mapping, list, tuple)) for item in items)
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        label = names[index] if flat and len(names) == len(items) else str(index)
        if isinstance(item, Mapping):
            # bounds are known by their method and curve points by their order: columns keep their meaning across cases
            key = next((key for key in ("method", "order") if key in item), None)
            if key is not None:
                label = _text(item[key])
                item = {name: part for name, part in item.items() if name != key}
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
