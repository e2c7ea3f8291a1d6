"""CSV: one header line of dotted keys, one value a cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# numbers that stand in a fixed order
_NAMES = {"dpsgd": ("rate", "noise", "steps"), "approx_dp": ("epsilon", "delta")}


def csv_text(document: Mapping[str, Any]) -> str:
    """One header line of dotted keys, then one line a case, or a row where the answer has rows."""
    records = []
    for case in document.get("cases", [document]):
        drawn = [{"runs": run} for run in case["runs"]] if case.get("command") == "draw" and "runs" in case else []
        shared = {"name": case["name"]} if "name" in case else {}
        chosen = case.get("recommended") or {}
        # one answer, or none: then the reason is the answer
        for index, row in enumerate(case.get("rows") or drawn or [{key: case[key] for key in case if key != "rows"}]):
            mark = {"recommended": chosen["row"] == index} if "row" in chosen else {}
            records.append(dict(_flatten({**shared, **row, **mark})))
    named = list(dict.fromkeys(key for record in records for key in record))
    # what only some rows have stands beside what the others have in its place
    groups = list(dict.fromkeys(key.partition(".")[0] for key in named))
    header = sorted(named, key=lambda key: groups.index(key.partition(".")[0]))
    out = io.StringIO()
    writer = csv.DictWriter(out, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def _flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, (Mapping, list, tuple)) or value == {}:
        yield path, None if value == {} else str(value).lower() if isinstance(value, bool) else value
        return
    for key, item in value.items() if isinstance(value, Mapping) else _labelled(value, path):
        yield from _flatten(item, f"{path}.{key}" if path else str(key))


def _labelled(items: Sequence[Any], path: str) -> Iterator[tuple[str, Any]]:
    """Parts of a list under their places, or the method or order they have: columns keep their meaning across cases."""
    names = _NAMES.get(path.rpartition(".")[2], ())
    flat = len(names) == len(items) and not any(isinstance(item, (Mapping, list, tuple)) for item in items)
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        label = names[index] if flat else str(index)
        if isinstance(item, Mapping):
            key = next((key for key in ("method", "order") if key in item), "")
            label = str(item.get(key, label))
            item = {name: part for name, part in item.items() if name != key}
            if list(item) == ["epsilon"] and path.endswith(("rdp", "orders")):
                item = item["epsilon"]
        seen[label] = seen.get(label, 0) + 1
        yield label if seen[label] == 1 else f"{label}.{seen[label]}", item
