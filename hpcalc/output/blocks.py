"""What a person reads in an answer: a headline, short tables, what a reviewer ticks.

The answer is short: the headline, the numbers to hold it against, the law of K and one run in words, the checklist.
Every bound that was evaluated, the Rényi curve and how the answer came about are shown where they were asked for, by
``--explain``. Warnings are not shown: they go to stderr, and Markdown lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpcalc.logspace import Lower, Upper
from hpcalc.output.digits import fixed, short, shown
from hpcalc.output.phrases import label, law_words, rows_of, run_words

__all__ = ["Block", "Fields", "Grid", "Headline", "Notes", "Plain", "view"]


@dataclass(frozen=True)
class Headline:
    """The answer in one line; ``good`` is None where nothing was asked to be met."""

    text: str
    good: bool | None = None


@dataclass(frozen=True)
class Fields:
    """Labels with one value each."""

    title: str
    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Grid:
    """Rows under headings, none where all are empty; ``emphasis`` is the index of the row to look at first."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    emphasis: int | None = None


@dataclass(frozen=True)
class Notes:
    """Sentences; a ``checklist`` is ticked by a reviewer, who reads the first sentence of each."""

    title: str
    items: tuple[str, ...]
    checklist: bool = False


@dataclass(frozen=True)
class Plain:
    """Payload that must stay bare, such as the number ``draw`` prints."""

    text: str


Block = Headline | Fields | Grid | Notes | Plain
Document = Mapping[str, Any]


def view(document: Document, *, quiet: bool = False) -> list[Block]:
    """The blocks that show a document, or the several of a list of cases; if ``quiet`` the headlines alone."""
    cases: Sequence[Document] = document.get("cases", [document])
    blocks = [_BLOCKS.get(str(case.get("command")), _other)(case) for case in cases]
    if quiet:
        return [block for some in blocks for block in some if isinstance(block, (Headline, Plain))]
    if "cases" in document and len(cases) > 1 and all(case.get("command") == "bound" for case in cases):
        return [_overview(cases), *(block for case, some in zip(cases, blocks, strict=True)
                                    for block in _case(case, some))]  # fmt: skip
    return [block for some in blocks for block in some]


def _case(case: Document, blocks: Sequence[Block]) -> list[Block]:
    """What a case has beside its line in the table: why it failed, what its reviewer ticks."""
    kept: list[Block] = []
    for block in blocks:
        if isinstance(block, Headline) and case.get("epsilon") is None:
            kept.append(block)
        elif isinstance(block, Notes):
            kept.append(Notes(f"{case.get('name')}: {block.title[:1].lower()}{block.title[1:]}", block.items,
                              block.checklist))  # fmt: skip
    return kept


def _overview(cases: Sequence[Document]) -> Grid:
    """A line and a gate for every case."""
    gated = any(case.get("max_epsilon") is not None for case in cases)
    columns = ["case", "one run ε", "whole search ε", "lower bound", "δ", *["limit ε", "gate"] * gated]
    rows = []
    for case in cases:
        lower = case.get("lower_bound")
        row = [str(case.get("name", "")), shown((case.get("single_run") or {}).get("epsilon")),
               shown(case.get("epsilon")), shown(lower.get("epsilon") if isinstance(lower, Mapping) else lower),
               shown(case.get("delta"))]  # fmt: skip
        if gated:
            limit = case.get("max_epsilon")
            row += ["-", "-"] if limit is None else [short(limit), "within" if _within(case) else "OVER"]
        rows.append(tuple(row))
    return Grid("", tuple(columns), tuple(rows))


def _within(case: Document) -> bool:
    told = case.get("within_budget")
    epsilon = case.get("epsilon")
    return bool(told) if told is not None else epsilon is not None and bool(epsilon <= case["max_epsilon"])


def _name(case: Document) -> str:
    return f"{case['name']}: " if case.get("name") is not None else ""


def _at(case: Document) -> str:
    return f" at δ = {shown(case['delta'])}" if case.get("delta") is not None else ""


def _fields(*items: tuple[str, Any]) -> list[Block]:
    kept = tuple((name, value if isinstance(value, str) else shown(value)) for name, value in items if value)
    return [Fields("", kept)] if kept else []


def _no_answer(case: Document) -> list[Block]:
    return [Headline(f"{_name(case)}No answer: {str(case.get('reason', '')).rstrip('.')}."), *_explained(case)]


def _bound(case: Document) -> list[Block]:
    """The headline and the numbers to hold it against."""
    epsilon, limit = case.get("epsilon"), case.get("max_epsilon")
    one = shown((case.get("single_run") or {}).get("epsilon"))
    good = None if limit is None else _within(case)
    if epsilon is None:
        text = (
            f"{_name(case)}No finite bound{_at(case)}: {str(case.get('reason', 'nothing valid applies')).rstrip('.')}."
        )
    else:
        text = f"{_name(case)}The whole search costs ε = {shown(epsilon)}{_at(case)}; one run costs ε = {one}."
    if good is not None:
        text += f" {'Within' if good else 'OVER'} the limit of {short(limit)}."  # type: ignore[arg-type]
    exact = " (exact)" if case.get("exact") else ""
    released = "everything released" if any(case.get(key) for key in ("search", "then", "searches")) else "whole search"
    rows = [(released, shown(epsilon), str(case.get("method") or "-") + exact)]
    if isinstance(case.get("search"), Mapping):
        rows.append(("the search alone", shown(case["search"].get("epsilon")), ""))
    rows.append(("one run", one, ""))
    composed, lower = case.get("composition"), case.get("lower_bound")
    if isinstance(composed, Mapping):
        rows.append(("every run paid for", shown(composed.get("epsilon")), f"{composed.get('runs')} runs composed"))
    if isinstance(lower, Mapping):
        how = lower.get("mechanism") or lower.get("reason") or ""
        rows.append(("lower bound", shown(lower.get("epsilon")), str(how).replace("-", " ")))
    then = rows_of(case.get("then"))
    given = [("then", "; ".join(map(run_words, then)) if then is not None else case.get("then"))]
    given += [(label(key), case.get(key)) for key in ("then_on", "subset", "searches", "density", "unit")]
    given = [(name, value if value is None else _words(value)) for name, value in given]
    blocks: list[Block] = [Headline(text, good), Grid("", ("", "", ""), tuple(rows), 0)]
    blocks += _fields(
        ("one run", run_words(case.get("base", {}))), ("law of K", law_words(case.get("law", {}))), *given
    )
    if rows_of(case.get("candidates")) is not None:
        blocks.append(_grid(label("candidates"), case["candidates"]))
    return [*blocks, *_explained(case), *_checklist(case)]


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{label(str(key))} {_words(item)}".removesuffix(" yes") for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    return shown(value)


def _checklist(case: Document) -> list[Block]:
    items = tuple(map(str, case.get("assumptions") or ()))
    return [Notes("A reviewer ticks", items, checklist=True)] if items else []


def _explained(case: Document) -> list[Block]:
    """Where it was asked for: every bound, the Rényi curve, how the answer came about."""
    told = case.get("explain")
    if not isinstance(told, Mapping):
        return []
    blocks: list[Block] = [_grid(label(key), case[key]) for key in ("bounds", "rdp") if rows_of(case.get(key))]
    items = []
    notes: list[Block] = []
    for key, value in told.items():
        rows = rows_of(value)
        if rows is not None:
            notes.append(_grid(label(key).capitalize(), rows))
        elif isinstance(value, (list, tuple)) and value and all(isinstance(part, str) for part in value):
            notes.append(Notes(label(key).capitalize(), tuple(value)))
        elif value not in (None, [], {}):
            items.append((label(key), _words(value)))
    return [*blocks, *([Fields(label("explain"), tuple(items))] if items else []), *notes]


def _convert(case: Document) -> list[Block]:
    """The guarantee that came out, and the rule that gave it."""
    to = dict(case.get("to") or {})
    kind, rule = to.pop("kind", ""), case.get("conversion")
    by = f" ({rule})" if rule not in (None, kind) else ""
    inputs = _fields(("one run", run_words(case.get("from", {}))), ("converted to", f"{kind}{by}"))
    if case.get("reason") is not None:
        return [Headline(f"{_name(case)}No finite answer: {case['reason']}."), *inputs, *_explained(case)]
    if "orders" in to:
        return [Headline(f"{_name(case)}Rényi curve of one run"), *inputs, _grid("", to["orders"]), *_explained(case)]
    if to.get("delta", 0) is None:
        del to["delta"]  # too small for a number: its logarithm speaks
    elif to.get("delta") is not None and not -300 < (to.get("log10_delta") or 0) < -5:
        to.pop("log10_delta", None)
    words = ", ".join(f"{label(key)} = {shown(value)}" for key, value in to.items())
    return [Headline(f"{_name(case)}One run: {words}"), *inputs, *_explained(case)]


def _utility(case: Document) -> list[Block]:
    """The worth of the search and its length in a sentence; the numbers follow as they are."""
    parts = []
    if case.get("expected_quantile") is not None:
        parts.append(f"the best run is expected at quantile {shown(case['expected_quantile'])} of a single run's")
    if case.get("success_probability") is not None:
        parts.append(f"a good run is found with probability {shown(case['success_probability'])}")
    if case.get("expected_score") is not None:
        parts.append(f"its expected score is {shown(case['expected_score'])}")
    if case.get("p95_runs") is not None:
        parts.append(f"95 % of searches take at most {case['p95_runs']} runs")
    text = "; ".join(parts)
    hidden = ("hpcalc_version", "command", "name", "law", "explain", "warnings", "assumptions")
    rest = [(label(key), _words(value)) for key, value in case.items() if key not in hidden and value is not None]
    headline = Headline(f"{_name(case)}{text[:1].upper()}{text[1:]}.")
    return [headline, *_fields(("law of K", law_words(case.get("law", {}))), *rest), *_explained(case)]


def _compare(case: Document) -> list[Block]:
    """What the laws have in common, then the laws."""
    if not case.get("rows"):
        return _no_answer(case)
    footing = "".join(f" at {label(key)} {_words(case[key])}" for key in ("mean", "at_epsilon", "at_success", "sweep")
                      if case.get(key) is not None)  # fmt: skip
    text = f"Laws of K{footing}; ε is the cost of the whole search{_at(case)}."
    if "selection" in case:
        text = (f"Choosing one of {case['selection']} candidates{footing}{_at(case)}: "
                f"the error stays below the one shown with probability {_words(case.get('confidence'))}.")  # fmt: skip
    if case.get("reason"):
        text = f"No law has a finite bound{_at(case)}: {case['reason']}"
    one = (case.get("single_run") or {}).get("epsilon")
    given = [(label(key), _words(case[key])) for key in ("success_rate", "sensitivity") if case.get(key) is not None]
    run = f"{run_words(case['base'])}; ε {shown(one)}" if "base" in case else ""
    return [Headline(f"{_name(case)}{text}"), *_fields(("one run", run), *given), *_laws(case),
            *_explained(case)]  # fmt: skip


def _plan(case: Document) -> list[Block]:
    """The recommended law first, then what there was to choose from."""
    chosen, rows = case.get("recommended"), case.get("rows")
    if not isinstance(chosen, Mapping) or not rows or chosen.get("row") is None:
        return _no_answer(case)
    index = int(chosen["row"])
    dist = law_words({"dist": rows[index]["law"]["dist"]})
    text = f"{dist[:1].upper()}{dist[1:]}: {label(str(case.get('solved_for')))} = {_value(case.get('value'))} gives " \
           f"ε = {shown(case.get('epsilon'))} for the whole search{_at(case)}."  # fmt: skip
    reason: list[Block] = [Notes("Recommended", (str(chosen["reason"]),))] if chosen.get("reason") else []
    known = ("target_epsilon", "target_success", "max_runs_p95", "success_rate", "maximize")
    given = [(label(key), _words(case[key])) for key in known if case.get(key) is not None]
    one = (case.get("single_run") or {}).get("epsilon")
    run = f"{run_words(case['base'])}; ε {shown(one)}" if case.get("base") else ""
    return [Headline(f"{_name(case)}{text}"), *_laws(case, index), *reason, *_fields(("one run", run), *given),
            *_explained(case)]  # fmt: skip


def _value(value: Any) -> str:
    return short(value) if isinstance(value, float) else str(value)


def _laws(case: Document, emphasis: int | None = None) -> list[Block]:
    """Laws as a grid: name and parameters in one cell, reasons below; what few look for only where it was asked for."""
    rows: Sequence[Document] = case["rows"]
    hidden = {"law", "dist", "reason", "mechanism", "noise", "mean", "exact"}
    if all("value" in row and row["law"].get(str(row.get("solved_for"))) == row["value"] for row in rows):
        hidden |= {"solved_for", "value"}  # a parameter of the law, unless it is the noise
    if case.get("mean") is not None:
        hidden.add("mean_runs")
    if "explain" not in case:
        hidden |= {"method", "lower_bound", "p50_runs", "p99_runs"}
    joined, reasons = [], []
    for row in rows:
        words = law_words(row["law"], brief=True) if row.get("law") else ""
        kind = [str(row[key]) for key in ("mechanism", "noise") if row.get(key)]
        words = ", ".join([*kind[:1], *([words] if words else []), *kind[1:]])
        if row.get("reason"):
            reasons.append(f"{words}: {row['reason']}")
        joined.append({"law": words, **{key: value for key, value in row.items() if key not in hidden}})
    used = {key for row in joined for key, value in row.items() if value is not None}
    grid = _grid("", [{key: row[key] for key in row if key in used} for row in joined], emphasis)
    return [grid, *([Notes("Remarks", tuple(dict.fromkeys(reasons)))] if reasons else [])]


def _grid(title: str, rows: Sequence[Document], emphasis: int | None = None) -> Grid:
    """A list of mappings as a grid whose columns are the union of their keys."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = zip(*(_column(key, [row.get(key) for row in rows]) for key in columns), strict=True)
    return Grid(title, tuple(label(key) for key in columns), tuple(cells), emphasis)


def _column(key: str, values: Sequence[Any]) -> list[str]:
    """Cells of a column: descriptions are as short as they are where all of them are, else they have equal decimals."""
    values = [value["epsilon"] if isinstance(value, Mapping) and "epsilon" in value else value for value in values]
    if key == "value":
        return [short(value) if isinstance(value, float) else str(value) for value in values]
    even = any(isinstance(value, float) and value != float(short(value)) for value in values)

    def cell(value: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, float) or not even:
            return _words(value)
        return "0" if value == 0.0 and not isinstance(value, (Upper, Lower)) else fixed(value)

    return [cell(value) for value in values]


def _draw(case: Document) -> list[Block]:
    if case.get("name") is None:
        return [Plain("".join(f"{run}\n" for run in case.get("runs", ())))]
    return [Headline(f"{_name(case)}{_words(case.get('runs', ()))}")]


def _other(case: Document) -> list[Block]:
    if case.get("epsilon", 0) is None and "reason" in case:
        return _no_answer(case)
    hidden = ("hpcalc_version", "command", "name", "explain", "warnings", "assumptions")
    rest = [(label(key), _words(value)) for key, value in case.items() if key not in hidden]
    return [*_fields(*rest), *_explained(case), *_checklist(case)]


_BLOCKS: dict[str, Callable[[Document], list[Block]]] = {
    "bound": _bound, "convert": _convert, "utility": _utility, "compare": _compare, "plan": _plan, "draw": _draw,
}  # fmt: skip
