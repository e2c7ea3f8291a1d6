"""What a person reads in an answer: a headline, short tables, what a reviewer ticks.

The answer is short: the headline, the numbers to hold it against, the law of K and one run in words, the checklist.
Every bound that was evaluated, the Rényi curve and how the answer came about are shown where they were asked for, by
``--explain``. Warnings are not shown: they go to stderr, and Markdown lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hpcalc.logspace import Lower, Upper
from hpcalc.output.digits import fixed, short, shown
from hpcalc.output.phrases import given, label, law_words, rows_of, run_words

__all__ = ["Block", "Grid", "Headline", "Notes", "Plain", "view"]


@dataclass(frozen=True)
class Headline:
    """The answer in one line; ``good`` is None where nothing was asked to be met."""

    text: str
    good: bool | None = None


@dataclass(frozen=True)
class Grid:
    """Rows under headings, or labels with their values where there are none; ``emphasis`` is the row to look at."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    emphasis: int | None = None

    @property
    def pairs(self) -> bool:
        """Whether the rows are labels with one value each."""
        return self.columns == ("", "")

    def numeric(self, index: int) -> bool:
        """Whether a column holds numbers, which stand right."""
        cells = [row[index] for row in self.rows if row[index] not in ("", "-", "none")]
        return not self.pairs and bool(cells) and all(re.fullmatch(r"[-+0-9.e]+", cell) for cell in cells)


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


Block = Headline | Grid | Notes | Plain
Document = Mapping[str, Any]


def view(document: Document, *, quiet: bool = False) -> list[Block]:
    """The blocks that show a document, or the several of a list of cases; if ``quiet`` the headlines alone."""
    cases: Sequence[Document] = document.get("cases", [document])
    blocks = [_BLOCKS[case["command"]](case) for case in cases]
    several = len(cases) > 1 and all(case["command"] == "bound" for case in cases)
    if several and not quiet:
        blocks = [_beside(case, some) for case, some in zip(cases, blocks, strict=True)]
    shown = [block for some in blocks for block in some if not quiet or isinstance(block, (Headline, Plain))]
    return [_overview(cases), *shown] if several and not quiet else shown


def _beside(case: Document, blocks: Sequence[Block]) -> list[Block]:
    """What a case has beside its line in the table: why it failed, what its reviewer ticks."""
    notes = (replace(block, title=f"{_name(case)}{block.title[:1].lower()}{block.title[1:]}")
             for block in blocks if isinstance(block, Notes))  # fmt: skip
    failed = (block for block in blocks if isinstance(block, Headline) and case.get("epsilon") is None)
    return [*failed, *notes]


def _overview(cases: Sequence[Document]) -> Grid:
    """A line and a gate for every case."""
    columns = ["case", "one run ε", "whole search ε", "lower bound", "δ"]
    rows = [[str(case.get("name", "")), _epsilon(case, "single_run"), shown(case.get("epsilon")),
             _epsilon(case, "lower_bound"), shown(case.get("delta"))] for case in cases]  # fmt: skip
    if any(case.get("max_epsilon") is not None for case in cases):
        columns += ["limit ε", "gate"]
        for case, row in zip(cases, rows, strict=True):
            good, limit = _within(case), case.get("max_epsilon")
            row += ["-", "-"] if good is None else [shown(limit), "within" if good else "OVER"]
    return Grid("", tuple(columns), tuple(map(tuple, rows)))


def _within(case: Document) -> bool | None:
    """Whether a case meets its limit; None where it has none."""
    epsilon, limit = case.get("epsilon"), case.get("max_epsilon")
    return None if limit is None else case.get("within_budget", epsilon is not None and epsilon <= limit)


def _epsilon(case: Document, key: str) -> str:
    return shown((case.get(key) or {}).get("epsilon"))


def _name(case: Document) -> str:
    return f"{case['name']}: " if case.get("name") is not None else ""


def _at(case: Document) -> str:
    return f" at δ = {shown(case['delta'])}" if case.get("delta") is not None else ""


def _pairs(title: str, items: Iterable[tuple[str, Any]]) -> list[Block]:
    """Labels with their values, those that were told."""
    kept = tuple((label(key), value if isinstance(value, str) else _words(value))
                 for key, value in items if value not in (None, "", [], {}))  # fmt: skip
    return [Grid(title, ("", ""), kept)] if kept else []


def _told(case: Document, *keys: str) -> list[tuple[str, Any]]:
    return [(key, case.get(key)) for key in keys]


def _no_answer(case: Document) -> list[Block]:
    return [Headline(f"{_name(case)}No answer: {str(case.get('reason', '')).rstrip('.')}."), *_explained(case)]


def _bound(case: Document) -> list[Block]:
    """The headline and the numbers to hold it against."""
    good, one = _within(case), _epsilon(case, "single_run")
    if case.get("epsilon") is None:
        text = f"No finite bound{_at(case)}: {str(case.get('reason', 'nothing valid applies')).rstrip('.')}."
    else:
        text = f"The whole search costs ε = {shown(case['epsilon'])}{_at(case)}; one run costs ε = {one}."
    if good is not None:
        text += f" {'Within' if good else 'OVER'} the limit of {shown(case['max_epsilon'])}."
    released = "everything released" if any(case.get(key) for key in ("search", "then", "searches")) else "whole search"
    method = f"{case.get('method') or '-'}{' (exact)' if case.get('exact') else ''}"
    composed, lower = case.get("composition") or {}, case.get("lower_bound") or {}
    how = str(lower.get("mechanism") or lower.get("reason") or "").replace("-", " ")
    numbers = [(released, shown(case.get("epsilon")), method)]
    if "search" in case:
        numbers.append(("the search alone", _epsilon(case, "search"), ""))
    numbers.append(("one run", one, ""))
    if composed:
        numbers.append(("every run paid for", shown(composed["epsilon"]), f"{composed['runs']} runs composed"))
    if lower:
        numbers.append(("lower bound", shown(lower["epsilon"]), how))
    inputs = [("base", run_words(case.get("base", {}))), ("law", law_words(case.get("law", {}))),
              ("then", "; ".join(map(run_words, case.get("then", ())))),
              *_told(case, "then_on", "subset", "searches", "density", "unit")]  # fmt: skip
    listed = [_grid("Candidates", case["candidates"])] if rows_of(case.get("candidates")) else []
    return [Headline(_name(case) + text, good), Grid("", ("", "", ""), tuple(numbers), 0), *_pairs("", inputs), *listed,
            *_explained(case), *_checklist(case)]  # fmt: skip


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
    told: Document = case.get("explain") or {}
    if not told:
        return []
    blocks: list[Block] = [_grid(label(key), case[key]) for key in ("bounds", "rdp") if rows_of(case.get(key))]
    notes: list[Block] = []
    plain = []
    for key, value in told.items():
        if rows_of(value):
            notes.append(_grid(label(key).capitalize(), value))
        elif isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
            notes += [Notes(label(key).capitalize(), tuple(value))] * bool(value)
        else:
            plain.append((key, value))
    return [*blocks, *_pairs(label("explain"), plain), *notes]


def _convert(case: Document) -> list[Block]:
    """The guarantee that came out, and the rule that gave it."""
    to = dict(case.get("to") or {})
    kind, rule = to.pop("kind", ""), case.get("conversion")
    by = f" ({rule})" if rule not in (None, kind) else ""
    inputs = _pairs("", [("base", run_words(case.get("from", {}))), ("converted to", f"{kind}{by}")])
    if case.get("reason") is not None:
        text = f"No finite answer: {case['reason']}."
    elif "orders" in to:
        text = "Rényi curve of one run"
        inputs.append(_grid("", to["orders"]))
    else:
        if to.get("delta", 0) is None:
            del to["delta"]  # too small for a number: its logarithm speaks
        elif to.get("delta") is not None and not -300 < (to.get("log10_delta") or 0) < -5:
            to.pop("log10_delta", None)
        text = "One run: " + ", ".join(f"{label(key)} = {shown(value)}" for key, value in to.items())
    return [Headline(_name(case) + text), *inputs, *_explained(case)]


def _utility(case: Document) -> list[Block]:
    """The worth of the search and its length in a sentence; the numbers follow as they are."""
    sentences = {
        "expected_quantile": "the best run is expected at quantile {} of a single run's",
        "success_probability": "a good run is found with probability {}",
        "expected_score": "its expected score is {}",
        "p95_runs": "95 % of searches take at most {} runs",
    }
    text = "; ".join(words.format(shown(case[key])) for key, words in sentences.items() if case.get(key) is not None)
    rest = [("law", law_words(case.get("law", {}))), *(item for item in case.items() if item[0] not in _ASIDE)]
    return [Headline(f"{_name(case)}{text[:1].upper()}{text[1:]}."), *_pairs("", rest), *_explained(case)]


def _compare(case: Document) -> list[Block]:
    """What the laws have in common, then the laws."""
    if not case.get("rows"):
        return _no_answer(case)
    footing = "".join(f" at {label(key)} {_words(value)}"
                      for key, value in _told(case, "mean", "at_epsilon", "at_success", "sweep")
                      if value is not None)  # fmt: skip
    text = f"Laws of K{footing}; ε is the cost of the whole search{_at(case)}."
    if "selection" in case:
        text = (f"Choosing one of {case['selection']} candidates{footing}{_at(case)}: "
                f"the error stays below the one shown with probability {_words(case.get('confidence'))}.")  # fmt: skip
    if case.get("reason"):
        text = f"No law has a finite bound{_at(case)}: {case['reason']}"
    return [Headline(_name(case) + text), *_run(case, "success_rate", "sensitivity"), *_laws(case), *_explained(case)]


def _run(case: Document, *keys: str) -> list[Block]:
    """One run beside its cost, and what else was given."""
    run = f"{run_words(case['base'])}; ε {_epsilon(case, 'single_run')}" if case.get("base") else ""
    return _pairs("", [("base", run), *_told(case, *keys)])


def _plan(case: Document) -> list[Block]:
    """The recommended law first, then what there was to choose from."""
    chosen, rows = case.get("recommended"), case.get("rows")
    if not chosen or not rows or chosen.get("row") is None:
        return _no_answer(case)
    index = int(chosen["row"])
    law = law_words({"dist": rows[index]["law"]["dist"]})
    text = (f"{law[:1].upper()}{law[1:]}: {label(str(case.get('solved_for')))} = {given(case.get('value'))} gives "
            f"ε = {shown(case.get('epsilon'))} for the whole search{_at(case)}.")  # fmt: skip
    reason = [Notes("Recommended", (str(chosen["reason"]),))] if chosen.get("reason") else []
    asked = _run(case, "target_epsilon", "target_success", "max_runs_p95", "success_rate", "maximize")
    return [Headline(_name(case) + text), *_laws(case, index), *reason, *asked, *_explained(case)]


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
        if all((row.get("prob_zero") or 0.0) < 0.01 for row in rows):  # more would be a warning
            hidden.add("prob_zero")
    joined, reasons = [], []
    for row in rows:
        words = law_words(row["law"], brief=True) if row.get("law") else ""
        named = ", ".join(str(part) for part in (row.get("mechanism"), words, row.get("noise")) if part)
        if row.get("reason"):
            reasons.append(f"{named}: {row['reason']}")
        joined.append({"law": named, **{key: value for key, value in row.items() if key not in hidden}})
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
        return [given(value) for value in values]
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


#: Keys that are told elsewhere, or not to people.
_ASIDE = ("hpcalc_version", "command", "name", "law", "explain", "warnings", "assumptions")
_BLOCKS: dict[str, Callable[[Document], list[Block]]] = {
    "bound": _bound, "convert": _convert, "utility": _utility, "compare": _compare, "plan": _plan, "draw": _draw,
}  # fmt: skip
