"""What a person reads in a result: titled fields, grids and notes, for tables and Markdown alike.

Every key of a document is shown. The keys a reader looks for first have a place of their own; whatever else a document
holds follows in its own order, so that a new key needs no change here to be seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpcalc.output.digits import ECHO, MACHINE_DIGITS, NEAREST, direction, fixed, significant

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
    """Rows under headings; ``emphasis`` is the index of the row to look at first."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    emphasis: int | None = None


@dataclass(frozen=True)
class Notes:
    """Sentences; a ``checklist`` is ticked by a reviewer."""

    title: str
    items: tuple[str, ...]
    checklist: bool = False


@dataclass(frozen=True)
class Plain:
    """Payload that must stay bare, such as the number ``draw`` prints."""

    text: str


Block = Headline | Fields | Grid | Notes | Plain

_LABELS = {
    "epsilon": "ε",
    "delta": "δ",
    "log10_delta": "log10 δ",
    "rho": "ρ",
    "sigma": "σ",
    "prob_zero": "P[K = 0]",
    "mean_runs": "mean K",
    "sd_runs": "sd K",
    "p5": "5 %",
    "p50": "median",
    "p50_runs": "50 % K",
    "p95": "95 %",
    "p95_runs": "95 % K",
    "p99": "99 %",
    "p99_runs": "99 % K",
    "expected_quantile": "E[quantile]",
    "success_probability": "P[success]",
    "expected_score": "E[best score]",
    "target_epsilon": "target ε",
    "max_epsilon": "limit ε",
    "at_epsilon": "ε",
    "at_success": "P[success]",
    "mu": "μ",
    "eta": "η",
    "gamma": "γ",
    "dist": "law",
    "lower_bound": "lower bound",
    "rdp": "Rényi curve of the whole search",
    "bounds": "Every bound evaluated",
    "law": "Runs K",
    "base": "One run",
    "explain": "How the answer came about",
}
_METHODS = {
    "theorem-2": "Theorem 2",
    "theorem-2-sharper": "Theorem 2, the sharper last line of its proof",
    "theorem-6": "Theorem 6",
    "corollary-3": "Corollary 3",
    "corollary-4": "Corollary 4",
    "lemma-7": "Lemma 7",
    "lemma-20": "Lemma 20",
    "lemma-22": "Lemma 22",
    "proposition-15": "Proposition 15",
    "composition": "composition of every run",
    "refined-rdp": "refined Rényi bound",
    "refined-region": "exact from the privacy region",
    "refined-pure": "refined pure-DP bound, exact",
    "refined-conditional": "refined bound for conditional sampling",
}


def view(document: Mapping[str, Any], echo: frozenset[float] = frozenset()) -> list[Block]:
    """The blocks that show a document, or the several documents of a list of cases."""
    writer = _Writer(echo)
    if "cases" not in document:
        return writer.document(document)
    cases: Sequence[Mapping[str, Any]] = document["cases"]
    if cases and all(case.get("command") == "bound" for case in cases):
        return writer.bounds(cases)
    return [block for case in cases for block in writer.document(case)]


class _Writer:
    def __init__(self, echo: frozenset[float]) -> None:
        self.echo = echo

    # values

    def text(self, value: Any, path: tuple[str, ...]) -> str:
        """A leaf as people read it."""
        if value is None:
            return "none"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float):
            if not math.isfinite(value):
                return "none"
            way = direction(path)
            if value in self.echo or way == ECHO:
                return repr(value).removesuffix(".0")
            if path[0] in ("law", "parameters"):
                return repr(significant(value, 6, NEAREST)).removesuffix(".0")
            if way == NEAREST and abs(value) < 1e15:
                short = significant(value, MACHINE_DIGITS, NEAREST)
                if short.is_integer():  # a mean of 10.000000000000002 is 10
                    return repr(short).removesuffix(".0")
            return fixed(value, way)
        if isinstance(value, Mapping):
            # of one run "rdp" names points that were given; of a whole search, a curve
            names = {"rdp": "Rényi points"} if path in (("base",), ("from",)) else {}
            return ", ".join(
                f"{names.get(str(key), label(str(key)))} {self.text(item, (*path, str(key)))}".removesuffix(" yes")
                for key, item in value.items()
            )
        if isinstance(value, (list, tuple)):
            return ", ".join(self.text(item, path) for item in value)
        return str(value)

    # one document

    def document(self, document: Mapping[str, Any]) -> list[Block]:
        command = document.get("command")
        rest = {key: value for key, value in document.items() if key not in ("hpcalc_version", "command")}
        blocks: list[Block] = []
        if command == "draw" and "name" not in rest:
            return [Plain("".join(f"{run}\n" for run in rest["runs"]))]
        if command == "bound":
            blocks = self._bound(rest)
        elif command == "plan":
            blocks = self._plan(rest)
        elif command == "utility":
            blocks = self._utility(rest)
        elif command == "compare":
            blocks = self._compare(rest)
        elif command == "convert":
            blocks = self._convert(rest)
        elif "name" in rest:
            blocks = [Headline(str(rest.pop("name")))]
        if not blocks and rest.get("epsilon", 0) is None and "reason" in rest:
            name = f"{rest.pop('name')}: " if "name" in rest else ""
            del rest["epsilon"]
            blocks = [Headline(f"{name}No answer: {rest.pop('reason')}.")]
        return [*blocks, *self._generic(rest)]

    def _bound(self, rest: dict[str, Any]) -> list[Block]:
        """The headline and the numbers to hold it against; takes what it shows out of ``rest``."""
        delta, limit = rest.pop("delta", None), rest.pop("max_epsilon", None)
        epsilon, method = rest.pop("epsilon", None), rest.pop("method", None)
        single, composed, lower = (
            rest.pop("single_run", None),
            rest.pop("composition", None),
            rest.pop("lower_bound", None),
        )
        reason = rest.pop("reason", None)
        within = rest.pop("within_budget", None)
        at = f" at δ = {self.text(delta, ('delta',))}" if delta is not None else ""
        name = f"{rest.pop('name')}: " if "name" in rest else ""
        cost = self.cost(epsilon)
        one = self.cost((single or {}).get("epsilon"))
        headline = f"{name}The whole search costs ε = {cost}{at}; one run costs ε = {one}."
        if epsilon is None:
            headline = f"{name}No finite bound{at}: {reason or 'nothing valid applies'}."
        good: bool | None = None
        if limit is not None:
            good = within if within is not None else epsilon is not None and epsilon <= limit
            headline += f" {'Within' if good else 'OVER'} the limit of {self.text(limit, ('max_epsilon',))}."
        rows = [("whole search", cost, _METHODS.get(str(method), str(method or "-")))]
        rows.append(("one run", one, self._extra(single)))
        if composed is not None:
            rows.append(("naive composition", self.cost(composed.get("epsilon")), self._extra(composed)))
        if lower is not None:
            number = lower.get("epsilon") if isinstance(lower, Mapping) else lower
            rows.append(("no analysis below", self.cost(number, lower=True), self._extra(lower)))
        blocks: list[Block] = [Headline(headline, good), Grid("", ("", "ε", "by"), tuple(rows), 0)]
        inputs = [(label(key), self.text(rest.pop(key), (key,))) for key in ("base", "law") if key in rest]
        if inputs:
            blocks.append(Fields("", tuple(inputs)))
        return blocks

    def _convert(self, rest: dict[str, Any]) -> list[Block]:
        """The guarantee that came out, and the rule that gave it."""
        to = dict(rest.pop("to", {}))
        kind, reason = to.pop("kind", ""), rest.pop("reason", None)
        rule, given = rest.pop("conversion", None), rest.pop("from", {})
        name = f"{rest.pop('name')}: " if "name" in rest else ""
        by = f" ({rule})" if rule not in (None, kind) else ""
        inputs = Fields("", (("one run", self.text(given, ("from",))), ("converted to", f"{kind}{by}")))
        if reason is not None:
            return [Headline(f"{name}No finite answer: {reason}."), inputs]
        if "orders" in to:
            return [Headline(f"{name}Rényi curve of one run"), inputs, self.grid("orders", to["orders"])]
        if to.get("delta", 0) is None:
            del to["delta"]  # too small for a number: its logarithm speaks
        elif to.get("delta") is not None and not -300 < (to.get("log10_delta") or 0) < -5:
            to.pop("log10_delta", None)
        words = ", ".join(f"{label(key)} = {self.text(value, ('to', key))}" for key, value in to.items())
        return [Headline(f"{name}One run: {words}"), inputs]

    def cost(self, epsilon: Any, lower: bool = False) -> str:
        """An epsilon, or the words for having none."""
        if epsilon is None:
            return "none"
        return self.text(float(epsilon), ("lower_bound", "epsilon") if lower else ("epsilon",))

    def _extra(self, part: Any) -> str:
        if not isinstance(part, Mapping):
            return "-"
        words = [
            f"{label(str(key))} {self.text(value, (str(key),))}"
            for key, value in part.items()
            if key != "epsilon" and value is not None
        ]
        return ", ".join(words) or "-"

    def _utility(self, rest: dict[str, Any]) -> list[Block]:
        """The worth of the search and its length in a sentence; the numbers follow as they are."""
        name = f"{rest.pop('name')}: " if "name" in rest else ""
        parts = []
        if rest.get("expected_quantile") is not None:
            quantile = self.text(rest["expected_quantile"], ("expected_quantile",))
            parts.append(f"the best run is expected at quantile {quantile} of a single run's")
        if rest.get("success_probability") is not None:
            chance = self.text(rest["success_probability"], ("success_probability",))
            parts.append(f"a good run is found with probability {chance}")
        if rest.get("expected_score") is not None:
            parts.append(f"its expected score is {self.text(rest['expected_score'], ('expected_score',))}")
        late = rest.get("p95_runs")
        if late is not None:
            parts.append(f"95 % of searches take at most {late} runs")
        text = "; ".join(parts)
        return [Headline(f"{name}{text[:1].upper()}{text[1:]}.")] if text else []

    def _compare(self, rest: dict[str, Any]) -> list[Block]:
        """What the laws have in common, then the laws."""
        if not rest.get("rows") and "reason" in rest:
            return []
        shared = [key for key in ("mean", "at_epsilon", "at_success", "sweep") if rest.get(key) is not None]
        footing = "".join(f" at {label(key)} {self.text(rest.pop(key), (key,))}" for key in shared)
        at = f" at δ = {self.text(rest.pop('delta'), ('delta',))}" if "delta" in rest else ""
        name = f"{rest.pop('name')}: " if "name" in rest else ""
        headline = f"{name}Laws of K{footing}; ε is the cost of the whole search{at}."
        if "selection" in rest:
            confidence = self.text(rest.pop("confidence", None), ("confidence",))
            headline = (
                f"{name}Choosing one of {rest.pop('selection')} candidates{footing}{at}: "
                f"the error stays below the one shown with probability {confidence}."
            )
        if rest.get("reason"):
            headline = f"{name}No law has a finite bound{at}: {rest.pop('reason')}"
        inputs = [(label(key), self.text(rest.pop(key), (key,))) for key in ("base", "success_rate") if key in rest]
        given: list[Block] = [Fields("", tuple(inputs))] if inputs else []
        return [Headline(headline), *given, *self.rows(rest.pop("rows", []))]

    def rows(self, rows: Sequence[Mapping[str, Any]], emphasis: int | None = None) -> list[Block]:
        """Laws as a grid: name and parameters in one cell, no column that is empty throughout, sentences below."""
        joined = []
        remarks = []
        # what was solved for is a parameter of the law, unless it is the noise
        shown = all(
            "value" in row and (row.get("law") or {}).get(row.get("solved_for")) == row["value"] for row in rows
        )
        for row in rows:
            of_k = row.get("law") or {}
            law = str(of_k.get("dist", ""))
            parameters = {key: value for key, value in of_k.items() if key not in ("dist", "mean", "prob_zero")}
            if parameters:
                law += f" {self.text(parameters, ('parameters',)).removeprefix(f'{law} ')}"
            if row.get("reason"):
                remarks.append(f"{law or row.get('mechanism', '')}: {row['reason']}")
            hidden = ("dist", "law", "reason", *(("solved_for", "value") if shown else ()))
            rest = {key: value for key, value in row.items() if key not in hidden}
            if "mechanism" in rest:  # the first cell must tell rows apart, for a grid in parts repeats it
                kind = (rest.pop("mechanism"), law, rest.pop("noise", ""))
                joined.append({"mechanism": ", ".join(word for word in kind if word), **rest})
            else:
                joined.append({"law": law, **rest})
        used = {key for row in joined for key, value in row.items() if value is not None}
        grid = self.grid("rows", [{key: row.get(key) for key in row if key in used} for row in joined], emphasis)
        return [grid, *([Notes("Remarks", tuple(dict.fromkeys(remarks)))] if remarks else [])]

    def _plan(self, rest: dict[str, Any]) -> list[Block]:
        chosen = rest.get("recommended")
        rows = rest.get("rows")
        if not isinstance(chosen, Mapping) or not rows or chosen.get("row") is None:
            return []
        rest.pop("recommended")
        index = int(chosen["row"])
        text = f"{rest.get('solved_for')} = {self.text(rest.get('value'), ('value',))}"
        cost = self.cost(rest.get("epsilon"))
        headline = f"{rows[index].get('dist', '')}: {text} gives ε = {cost} for the whole search."
        for key in ("solved_for", "value", "epsilon"):
            rest.pop(key, None)
        grid = self.rows(rest.pop("rows"), index)
        reason = (Notes("Recommended", (str(chosen["reason"]),)),) if chosen.get("reason") else ()
        return [Headline(headline), *grid, *reason]

    # anything else

    def _generic(self, rest: Mapping[str, Any]) -> list[Block]:
        blocks: list[Block] = []
        leaves: list[tuple[str, str]] = []
        tail: list[Block] = []
        for key, value in rest.items():
            if key in ("assumptions", "warnings"):
                if value:
                    title = "A reviewer ticks" if key == "assumptions" else "Warnings"
                    tail.append(Notes(title, tuple(map(str, value)), checklist=key == "assumptions"))
            elif isinstance(value, (list, tuple)) and all(isinstance(item, Mapping) for item in value):
                # a grid without a number (nothing was finite) says nothing that the headline has not said
                if any(part is not None for item in value for name, part in item.items() if name != "order"):
                    blocks.append(self.grid(key, value))
            elif key == "explain" and isinstance(value, Mapping):
                blocks.extend(self._explain(value))
            elif value is not None or key != "reason":
                leaves.append((label(key), self.text(value, (key,))))
        first: list[Block] = [Fields("", tuple(leaves))] if leaves else []
        return [*first, *blocks, *tail]

    def _explain(self, value: Mapping[str, Any]) -> list[Block]:
        items: list[tuple[str, str]] = []
        notes: list[Block] = []
        for key, item in value.items():
            if isinstance(item, (list, tuple)) and all(isinstance(part, Mapping) for part in item):
                notes.extend([self.grid(key, item)] if item else [])
            elif isinstance(item, (list, tuple)) and item and all(isinstance(part, str) for part in item):
                notes.append(Notes(label(key).capitalize(), tuple(item)))
            else:
                items.append((label(key), self.text(item, ("explain", key))))
        return [*([Fields(label("explain"), tuple(items))] if items else []), *notes]

    def grid(self, key: str, rows: Sequence[Mapping[str, Any]], emphasis: int | None = None) -> Grid:
        """A list of mappings as a grid whose columns are the union of their keys."""
        columns = list(dict.fromkeys(name for row in rows for name in row))
        cells = tuple(
            tuple("" if row.get(name) is None else self.text(row[name], (key, name)) for name in columns)
            for row in rows
        )
        return Grid("" if key == "rows" else label(key), tuple(label(name) for name in columns), cells, emphasis)

    # lists of cases

    def bounds(self, cases: Sequence[Mapping[str, Any]]) -> list[Block]:
        """A line and a gate for every case, then what their reviewers share."""
        gated = any(case.get("max_epsilon") is not None for case in cases)
        columns = ["case", "one run ε", "whole search ε", "lower bound", "δ", "method"] + ["limit ε", "gate"] * gated
        rows = []
        for case in cases:
            lower = case.get("lower_bound")
            row = [
                str(case.get("name", "")),
                self.cost((case.get("single_run") or {}).get("epsilon")),
                self.cost(case.get("epsilon")),
                self.cost(lower.get("epsilon") if isinstance(lower, Mapping) else lower, lower=True),
                self.text(case.get("delta"), ("delta",)),
                str(case.get("method") or "-"),
            ]
            if gated:
                limit, epsilon = case.get("max_epsilon"), case.get("epsilon")
                row.append("-" if limit is None else self.text(limit, ("max_epsilon",)))
                row.append("-" if limit is None else "within" if epsilon is not None and epsilon <= limit else "OVER")
            rows.append(tuple(row))
        blocks: list[Block] = [Grid("", tuple(columns), tuple(rows))]
        assumptions = tuple(dict.fromkeys(str(item) for case in cases for item in case.get("assumptions", ())))
        warnings = tuple(f"{case.get('name')}: {item}" for case in cases for item in case.get("warnings", ()))
        reasons = tuple(f"{case.get('name')}: {case['reason']}" for case in cases if case.get("reason"))
        if reasons:
            blocks.append(Notes("No finite bound", reasons))
        if assumptions:
            blocks.append(Notes("A reviewer ticks", assumptions, checklist=True))
        if warnings:
            blocks.append(Notes("Warnings", warnings))
        return blocks


def label(key: str) -> str:
    """A key as a heading."""
    return _LABELS.get(key, key.replace("_", " "))
