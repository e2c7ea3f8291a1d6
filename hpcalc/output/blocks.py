"""What a person reads in an answer: a headline, short tables, what a reviewer ticks.

Every bound that was evaluated, the Rényi curve and how the answer came about are shown where ``--explain`` asked for
them. Warnings are not shown: they go to stderr, and Markdown lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

from hpcalc.logspace import Lower, Upper
from hpcalc.output.digits import fixed, short, shown
from hpcalc.output.phrases import in_words, label, law_words, released, run_words, spelled

LABELLED = ("", "")  # the headings of labels with one value each


class Headline(NamedTuple):
    """The answer in one line; ``good`` where a limit was to be met, ``bare`` if it must stay as it is."""

    text: str
    good: bool | None = None
    bare: bool = False


class Grid(NamedTuple):
    """Rows under headings, or ``LABELLED`` values; ``emphasis`` is the row to look at."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    emphasis: int | None = None

    def numeric(self, index: int) -> bool:
        """Whether a column holds numbers, which stand right."""
        cells = [row[index] for row in self.rows if row[index] not in ("", "-", "none")]
        return self.columns != LABELLED and bool(cells) and all(re.fullmatch(r"[-+0-9.e]+", cell) for cell in cells)


class Notes(NamedTuple):
    """Sentences, each with what stands in a footnote; a ``checklist`` is ticked by a reviewer."""

    title: str
    items: tuple[tuple[str, str], ...]
    checklist: bool = False


Block = Headline | Grid | Notes
Document = Mapping[str, Any]
Told = tuple[str, list[Block]]  # of one command: the headline, and what stands below
_ASKED = ("then", "then_on", "subset", "searches", "density", "unit")  # how a search was run, and what is released


def view(document: Document, *, quiet: bool = False) -> list[Block]:
    """The blocks that show a document, or the several of a list of cases; if ``quiet`` the headlines alone."""
    cases: Sequence[Document] = document.get("cases", [document])
    several = len(cases) > 1 and all(case["command"] == "bound" for case in cases) and not quiet
    blocks: list[Block] = [_overview(cases)] if several else []
    for case in cases:
        failed = case["command"] in ("compare", "plan") and not case.get("rows")
        nothing: Told = (f"No answer: {str(case.get('reason', '')).rstrip('.')}.", [])
        text, below = nothing if failed else _COMMANDS[case["command"]](case)
        name = f"{case['name']}: " if case.get("name") is not None else ""
        below = [*below, *_explained(case), *_notes("A reviewer ticks", case.get("assumptions"), checklist=True)]
        if several:  # what a case has beside its line in the table: why it failed, what its reviewer ticks
            below = [block._replace(title=f"{name}{block.title[:1].lower()}{block.title[1:]}")
                     for block in below if isinstance(block, Notes)]  # fmt: skip
        if not several or case.get("epsilon") is None:
            blocks.append(Headline(name + text, case.get("within_budget"), bare=case["command"] == "draw" and not name))
        blocks += [] if quiet else below
    return blocks


def _overview(cases: Sequence[Document]) -> Block:
    """A line and a gate for every case."""
    gates = {None: "-", True: "within", False: "OVER"}
    rows = [{"case": str(case.get("name", "")), "one run ε": _epsilon(case, "single_run"),
             "whole search ε": shown(case.get("epsilon")), "lower bound": _epsilon(case, "lower_bound"),
             "δ": shown(case.get("delta")), "limit ε": shown(case.get("max_epsilon", "-")),
             "gate": gates[case.get("within_budget")]} for case in cases]  # fmt: skip
    gated = any("within_budget" in case for case in cases)
    return _grid("", rows if gated else [{key: row[key] for key in [*row][:-2]} for row in rows])


def _epsilon(case: Document, key: str) -> str:
    return shown((case.get(key) or {}).get("epsilon"))


def _at(case: Document) -> str:
    return f" at δ = {shown(case['delta'])}" if case.get("delta") is not None else ""


def _pairs(case: Document, keys: Iterable[str], title: str = "") -> list[Block]:
    """Labels with their values, those that were told."""
    kept = tuple((label(key), in_words(key, case[key])) for key in keys if case.get(key) not in (None, "", [], {}))
    return [Grid(title, LABELLED, kept)] if kept else []


def _notes(title: str, items: Iterable[Any] | None, checklist: bool = False) -> list[Block]:
    """Sentences, each once; of a checklist all but the first sentence of each is for a footnote."""
    parts = [item.partition(". ") if checklist else (item, "", "") for item in dict.fromkeys(map(str, items or ()))]
    return [Notes(title, tuple((text + stop.strip(), rest) for text, stop, rest in parts), checklist)] if parts else []


def _explained(case: Document) -> list[Block]:
    """Where it was asked for: every bound, the Rényi curve, how the answer came about."""
    told: Document = case.get("explain") or {}
    listed = {key: value for key, value in told.items() if isinstance(value, (list, tuple))}
    blocks = [_listed(label(key), case.get(key)) for key in ("bounds", "rdp") if told]
    blocks.append(_pairs(told, (key for key in told if key not in listed), label("explain")))
    blocks += [_listed(label(key).capitalize(), value) for key, value in listed.items()]
    return list(chain.from_iterable(blocks))


def _listed(title: str, value: Any) -> list[Block]:
    return [_grid(title, value)] if value and isinstance(value[0], Mapping) else _notes(title, value)


def _bound(case: Document) -> Told:
    """The numbers to hold the answer against."""
    epsilon, good, one = case.get("epsilon"), case.get("within_budget"), _epsilon(case, "single_run")
    told = released(case)
    text = f"{told[:1].upper()}{told[1:]} costs ε = {shown(epsilon)}{_at(case)}"
    text += "." if "total" in case else f"; one run costs ε = {one}."
    if epsilon is None:
        text = f"No finite bound{_at(case)}: {str(case.get('reason', 'nothing valid applies')).rstrip('.')}."
    if good is not None:
        text += f" {'Within' if good else 'OVER'} the limit of {shown(case['max_epsilon'])}."
    method = f"{case.get('method') or '-'}{' (exact)' if case.get('exact') else ''}"
    composed, lower = case.get("composition") or {}, case.get("lower_bound") or {}
    how = lower.get("reason") if lower.get("epsilon") is None else lower.get("mechanism")
    numbers = [(told.removeprefix("the "), shown(epsilon), method), ("the search alone", _epsilon(case, "search"), ""),
               ("one run", one, ""),
               ("every run paid for", _epsilon(case, "composition"), f"{composed.get('runs')} runs composed"),
               ("lower bound", _epsilon(case, "lower_bound"), str(how or "").replace("-", " "))]  # fmt: skip
    known = (True, "search" in case, "total" not in case, composed, lower)
    inputs = _pairs(case, ("base", "law", *_ASKED))
    settings = _listed("Candidates", case.get("candidates"))
    return text, [Grid("", ("", "", ""), tuple(compress(numbers, known)), 0), *inputs, *settings]


def _convert(case: Document) -> Told:
    """The guarantee that came out, and the rule that gave it."""
    to = dict(case.get("to") or {})
    kind, rule = to.pop("kind", ""), case.get("conversion")
    by = f" ({rule})" if rule not in (None, kind) else ""
    inputs = _pairs({**case, "converted to": f"{kind}{by}"}, ("from", "converted to"))
    if case.get("reason") is not None:
        return f"No finite answer: {case['reason']}.", inputs
    if "orders" in to:
        return "Rényi curve of one run", [*inputs, _grid("", to["orders"])]
    if to.get("delta", 0) is None:
        del to["delta"]  # too small for a number: its logarithm speaks
    elif to.get("delta") is not None and not -300 < (to.get("log10_delta") or 0) < -5:
        to.pop("log10_delta", None)
    if "epsilon" in to and float(fixed(to["epsilon"])) == to["epsilon"]:  # also the one at which δ was asked for
        to["epsilon"] = fixed(to["epsilon"])
    return "One run: " + ", ".join(f"{label(key)} = {shown(value)}" for key, value in to.items()), inputs


def _utility(case: Document) -> Told:
    """The worth of the search and its length in a sentence; the numbers follow as they are."""
    sentences = {
        "expected_quantile": "the best run is expected at quantile {} of a single run's",
        "success_probability": "a good run is found with probability {}",
        "expected_score": "its expected score is {}",
        "p95_runs": "95 % of searches take at most {} runs",
    }
    text = "; ".join(words.format(shown(case[key])) for key, words in sentences.items() if case.get(key) is not None)
    aside = ("hpcalc_version", "command", "name", "explain", "warnings")
    return f"{text[:1].upper()}{text[1:]}.", _pairs(case, (key for key in case if key not in aside))


def _compare(case: Document) -> Told:
    """What the laws have in common, then the laws."""
    footing = "".join(f" at {label(key)} {spelled(case[key])}" for key in ("mean", "at_epsilon", "at_success", "sweep")
                      if case.get(key) is not None)  # fmt: skip
    if case.get("reason"):
        text = f"No law has a finite bound{_at(case)}: {case['reason']}"
    elif "selection" in case:
        text = (f"Choosing one of {case['selection']} candidates{footing}{_at(case)}: "
                f"the error stays below the one shown with probability {spelled(case['confidence'])}.")  # fmt: skip
    else:
        text = f"Laws of K{footing}; ε is the cost of {released(case)}{_at(case)}."
    return text, [*_run(case, "success_rate", "sensitivity"), *_laws(case)]


def _plan(case: Document) -> Told:
    """The recommended law first, then what there was to choose from."""
    index = int(case["recommended"]["row"])
    law = law_words({"dist": case["rows"][index]["law"]["dist"]})
    solved = f"{label(case['solved_for'])} = {short(case['value'])} gives " if case["solved_for"] else ""
    text = f"{law[:1].upper()}{law[1:]}: {solved}ε = {shown(case['epsilon'])} for {released(case)}{_at(case)}."
    asked = _run(case, "target_epsilon", "target_success", "max_runs_p95", "success_rate", "maximize")
    return text, [*_laws(case, index), *_notes("Recommended", [case["recommended"]["reason"]]), *asked]


def _run(case: Document, *keys: str) -> list[Block]:
    """One run beside its cost, and what else was given."""
    run = f"{run_words(case['base'])}; ε {_epsilon(case, 'single_run')}" if case.get("base") else ""
    return _pairs({**case, "base": run}, ("base", *_ASKED, *keys))


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
    used = {key for row in rows for key, value in row.items() if value is not None and key not in hidden}
    joined, reasons = [], []
    for row in rows:
        words = law_words(row["law"], brief=True) if row.get("law") else ""
        named = ", ".join(str(part) for part in (row.get("mechanism"), words, row.get("noise")) if part)
        joined.append({"law": named, **{key: value for key, value in row.items() if key in used}})
        reasons += [f"{named}: {row['reason']}"] if row.get("reason") else []
    return [_grid("", joined, emphasis), *_notes("Remarks", reasons)]


def _grid(title: str, rows: Sequence[Document], emphasis: int | None = None) -> Block:
    """A list of mappings as a grid whose columns are the union of their keys."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = zip(*(_column(key, [row.get(key) for row in rows]) for key in columns), strict=True)
    return Grid(title, tuple(map(label, columns)), tuple(cells), emphasis)


def _column(key: str, values: Sequence[Any]) -> list[str]:
    """Cells of a column: descriptions are as short as they are where all of them are, else they have equal decimals."""
    values = [value["epsilon"] if isinstance(value, Mapping) and "epsilon" in value else value for value in values]
    even = any(isinstance(value, float) and value != float(short(value)) for value in values)

    def cell(value: Any) -> str:
        if not isinstance(value, float):
            return "" if value is None else spelled(value)
        decimals = even and (value != 0.0 or isinstance(value, (Upper, Lower)))
        return short(value) if key == "value" else fixed(value) if decimals else shown(value)

    return [cell(value) for value in values]


_COMMANDS: dict[str, Callable[[Document], Told]] = {
    "bound": _bound, "convert": _convert, "utility": _utility, "compare": _compare, "plan": _plan,
    "draw": lambda case: (spelled(case["runs"]) if "name" in case else "".join(f"{run}\n" for run in case["runs"]), []),
}  # fmt: skip
