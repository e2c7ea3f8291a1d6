"""What the pictures show: series of numbers with axes, whoever draws them. Nothing here evaluates a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcalc.laws import Law, RunCount
from hpcalc.logspace import Prob, Upper
from hpcalc.output.digits import fixed, short
from hpcalc.output.phrases import law_words, run_words
from hpcalc.questions.comparing import CompareResult, Entry
from hpcalc.questions.curves import SearchCurves
from hpcalc.questions.planning import PlanResult
from hpcalc.questions.rows import Aims, law_document, quantile_or_none
from hpcalc.questions.search_cost import BoundResult
from hpcalc.questions.usefulness import UtilityResult

__all__ = ["ONE_RUN", "Axis", "Limit", "Panel", "Series", "panels_of"]

_LARGEST_MEAN = 1e9  # what lies beyond is told, not drawn
_SQUASHED = 5.0  # an axis is logarithmic where the largest row is this many times the middle one
#: Style of what a search is held against.
ONE_RUN = 0
# One style a law, in every picture.
_STYLES = {"poisson": 1, "tnb:eta=-0.5": 2, "tnb:eta=0": 3, "logarithmic": 3, "tnb:eta=0.5": 4, "tnb:eta=1": 5,
           "geometric": 5, "fixed": 6, "composition": 6, "binomial": 7}  # fmt: skip
_OTHERS = (8, 9, 7, 6, 5, 4, 3, 2, 1)


@dataclass(frozen=True)
class Axis:
    """A label with its unit, the scale, and what range must be shown at least."""

    label: str
    log: bool = False
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Series:
    """One curve, or single points.

    Series of the same thing have the same ``style`` in every picture. The points of a ``line`` are joined; ``steps``
    hold up to their x from the x before, as the distribution of whole numbers does; a ``ring`` is the point to look at.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: int = ONE_RUN
    line: bool = True
    steps: bool = False
    ring: bool = False


@dataclass(frozen=True)
class Limit:
    """A line across the panel at one value of x."""

    name: str
    x: float


@dataclass(frozen=True)
class Panel:
    """One picture: below the ``shaded`` curve nothing can be, ``limit`` is what was asked to be met, ``caption`` what
    was asked.
    """

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    shaded: Series | None = None
    limit: Limit | None = None
    caption: str = ""


def panels_of(result: Any, curves: SearchCurves | None = None) -> list[Panel]:
    """The pictures of an answer, with the ``curves`` of a ``BoundResult``; none for an answer that has none."""
    if isinstance(result, BoundResult):
        found = _bound(result, curves) if curves is not None else []
    elif isinstance(result, CompareResult):
        found = _compare(result)
    elif isinstance(result, PlanResult):
        found = _plan(result)
    elif isinstance(result, UtilityResult):
        found = _utility(result)
    else:
        found = []
    return [panel for panel in found if any(series.x for series in panel.series)]


def _series(
    name: str, points: Iterable[tuple[float | None, float | None]], style: int, line: bool = True, **marks: bool
) -> Series:
    kept = [(x, y) for x, y in points if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)]
    return Series(name, tuple(x for x, _ in kept), tuple(y for _, y in kept), style, line, **marks)


def _style(dist: str, parameters: dict[str, Any]) -> int:
    eta = parameters.get("eta")
    return _STYLES.get(f"{dist}:eta={eta:g}" if isinstance(eta, (int, float)) else dist, _OTHERS[0])


def _styles(families: Iterable[Any]) -> dict[str, int]:
    """A style for every law: its own in every picture, a free one for what has none."""
    out: dict[str, int] = {}
    for family in families:
        if family.label in out:
            continue
        style = _style(family.dist, dict(family.parameters))
        out[family.label] = style if style not in out.values() else next(
            (other for other in _OTHERS if other not in out.values()), style)  # fmt: skip
    return out


# bound


def _bound(result: BoundResult, curves: SearchCurves) -> list[Panel]:
    law = law_document(result.runs)
    style = _style(str(law["dist"]), law)
    caption = f"{run_words(result.base.describe())}; {law_words(law)}; δ = {short(result.delta)}"
    answer = [curves.answer] if curves.answer is not None else []
    told = f"ε = {fixed(Upper(result.epsilon))} at δ = {short(result.delta)}"
    floor = min(y for _, y in curves.profile) if curves.profile else None
    asked = result.max_epsilon
    limit = Limit(f"limit ε = {short(asked)}", asked) if asked is not None and asked <= curves.widest else None
    low = curves.out_of_reach
    profile = Panel(
        "Privacy profile",
        Axis("ε", least=0.0, most=curves.widest),
        Axis("log10 δ", most=0.0, least=floor),
        (
            _series("whole search", curves.profile, style),
            _series("one run", curves.one_profile, ONE_RUN),
            *([_series(told, answer, style, False, ring=True)] if answer else []),
        ),
        _series("out of reach: a mechanism costs this", low, ONE_RUN) if low else None,
        limit,
        caption,
    )
    if not curves.renyi:
        return [profile]
    best = [curves.best] if curves.best is not None else []
    renyi = Panel(
        "Rényi curve",
        Axis("order λ", log=True),
        Axis("Rényi divergence (nats)", log=True),
        (
            _series("whole search", curves.renyi, style),
            _series("one run", curves.one_renyi, ONE_RUN),
            *([_series(f"order {best[0][0]:.4g} decides", best, style, False, ring=True)] if best else []),
        ),
        caption=caption,
    )
    return [renyi, profile]


# compare


def _compare(result: CompareResult) -> list[Panel]:
    swept = "sweep" in result.footing
    curves = result.entries if swept else result.curves
    styles = _styles(entry.family for entry in result.entries)
    names = {entry.family.label: entry.family.title.removeprefix("truncated ").replace(", eta", ", η")
             for entry in result.entries}  # fmt: skip

    def series(pick: Callable[[Entry], tuple[float | None, float | None]]) -> tuple[Series, ...]:
        out = []
        for label, style in styles.items():
            line = [pick(entry) for entry in curves if entry.family.label == label and _drawn(entry)]
            marks = [pick(entry) for entry in result.entries if entry.family.label == label and _drawn(entry)]
            if line:
                out.append(_series(names[label], line, style))
            if marks and not swept:
                out.append(_series("" if line else names[label], marks, style, line=False))
        return tuple(one for one in out if one.x)

    costs = sorted(entry.cost.epsilon for entry in result.entries if _drawn(entry) and entry.cost is not None)
    costs = [cost for cost in costs if math.isfinite(cost)]
    log = bool(costs) and costs[-1] > _SQUASHED * costs[(len(costs) - 1) // 2] and costs[0] > 0.0
    # curves go on far beyond the rows; where there are rows, they are what is looked at
    most = None if swept or not costs else 1.3 * costs[-1]
    at = result.footing.get("at_epsilon")
    caption = f"{run_words(result.base.describe())}; δ = {short(result.delta)}"
    return _trade_offs(
        series,
        result.aims,
        Axis("ε of the whole search", log, None if log else 0.0, most),
        Limit(f"ε = {short(at)}", float(at)) if at is not None else None,
        caption if swept else f"{caption}; large marks: the rows",
    )


def _drawn(entry: Entry) -> bool:
    return entry.runs is not None and entry.cost is not None and entry.runs.mean <= _LARGEST_MEAN


def _trade_offs(series: Any, aims: Aims, epsilon: Axis, limit: Limit | None, caption: str) -> list[Panel]:
    """Cost against length, and what the search finds against cost: the paper's Figures 2 to 6."""

    def cost(entry: Entry) -> float | None:
        return entry.cost.epsilon if entry.cost is not None else None

    def found(key: str) -> Any:
        return lambda entry: (cost(entry), aims.fields(entry.runs).get(key) if entry.runs is not None else None)

    runs = Axis("mean number of runs E[K]", log=True)
    lengths = series(lambda entry: (entry.runs.mean if entry.runs is not None else None, cost(entry)))
    panels = [Panel("Cost", runs, epsilon, lengths, caption=caption)]
    for key, title, axis in _worth(aims):
        panels.append(Panel(title, epsilon, axis, series(found(key)), limit=limit, caption=caption))
    return panels


def _worth(aims: Aims) -> list[tuple[str, str, Axis]]:
    """What a search finds, as far as it was asked for."""
    out = [("expected_quantile", "Quantile of the best run", Axis("expected quantile", most=1.0))]
    if aims.success_rate is not None:
        title = f"Success (one run: {aims.success_rate:g})"
        out.append(("success_probability", title, Axis("chance of success", least=0.0)))
    if aims.scores is not None:
        out.append(("expected_score", "Best score", Axis("expected best score")))
    return out


# plan


def _plan(result: PlanResult) -> list[Panel]:
    solved = [item for item in result.solutions if item.runs is not None]
    styles = _styles(item.family for item in solved)

    def series(key: str) -> tuple[Series, ...]:
        out = []
        for index, item in enumerate(solved):
            assert item.runs is not None
            late = quantile_or_none(item.runs, 0.95)
            if late is None or late > _LARGEST_MEAN:
                continue
            point = (float(max(late, 1)), result.aims.fields(item.runs).get(key))
            name = item.family.title.removeprefix("truncated ").replace(", eta", ", η")
            if index == 0 and item is result.best:
                out.append(_series("recommended", [point], ONE_RUN, False, ring=True))
            out.append(_series(name, [point], styles[item.family.label], line=False))
        return tuple(out)

    most = result.constraints.get("max_runs_p95")
    limit = Limit(f"limit {most:g} runs", float(most)) if most is not None else None
    target = f"ε <= {short(result.target_epsilon)} at " if result.target_epsilon is not None else ""
    run = f"{run_words(result.base.describe())}; " if result.base is not None else ""
    caption = f"{run}{target}δ = {short(result.delta)}"
    runs = Axis("runs, 95 % quantile", log=True)
    return [Panel(title, runs, axis, series(key), limit=limit, caption=caption)
            for key, title, axis in _worth(result.aims)]  # fmt: skip


# utility


def _utility(result: UtilityResult) -> list[Panel]:
    law = law_document(result.runs)
    style = _style(str(law["dist"]), law)
    found = [_run_time(result.runs, style)]
    if isinstance(result.runs, Law):
        found.append(_chance(result.runs, result.success_rate, style))
        if result.score is not None and result.scores is not None:
            found.append(_scores(result.runs, result.scores, result.minimize, style))
    return [replace(panel, caption=law_words(law)) for panel in found]


def _run_time(runs: RunCount, style: int) -> Panel:
    late = quantile_or_none(runs, 0.999)
    top = min(float(late if late is not None else 1e9), _LARGEST_MEAN)
    many = top > 60.0
    if many:
        counts = sorted({round(math.exp(x)) for x in np.linspace(0.0, math.log(top), 60)})
    else:
        counts = list(range(1, max(int(top), 2) + 1))
    more = [(float(k), math.exp(runs.log_sf(k - 1))) for k in counts]
    marks = [(quantile_or_none(runs, p), 1.0 - p) for p in (0.5, 0.95, 0.99)]
    return Panel(
        "Run time",
        Axis("number of runs k", log=many),
        Axis("chance of at least k runs", least=0.0, most=1.0),
        (
            _series("P[K ≥ k]", more, style, steps=True),
            _series("50, 95, 99 % of searches end by", marks, style, line=False, ring=True),
        ),
    )


def _chance(law: Law, rate: float | None, style: int) -> Panel:
    low = min(1e-3, 0.1 * rate) if rate is not None else 1e-3
    share = np.exp(np.linspace(math.log(low), 0.0, 49))
    chance = np.exp(law.log_survival(Prob.from_u(share)))
    series = [
        _series(f"best of K, E[K] = {law.mean:.4g}", zip(share.tolist(), chance.tolist(), strict=True), style),
        _series("one run", ((float(u), float(u)) for u in share), ONE_RUN),
    ]
    if rate is not None:
        given = (rate, float(np.exp(law.log_survival(Prob.from_u(rate)))))
        series.append(_series("the rate given", [given], style, False, ring=True))
    return Panel(
        "Chance of a good run",
        Axis("share of good candidates", log=True),
        Axis("chance to find a good one", least=0.0, most=1.0),
        tuple(series),
    )


def _scores(law: Law, scores: Sequence[float], minimize: bool, style: int) -> Panel:
    """Distribution functions of one run's score and of the best of K given K >= 1."""
    ordered = np.sort(np.array(scores, dtype=float))
    count = ordered.size
    below = np.arange(1, count + 1) / count
    empty = math.exp(law.log_prob_zero)
    if minimize:
        # P[best <= x] = 1 - f(P[score > x])
        best = np.exp(law.log_survival(Prob.from_u(below))) / (1.0 - empty)
    else:
        best = (np.exp(law.log_pgf(Prob.from_u(np.maximum(1.0 - below, 0.0)))) - empty) / (1.0 - empty)
    keep = np.unique(np.linspace(0, count - 1, min(count, 60)).round().astype(int))
    return Panel(
        "Scores",
        Axis("score"),
        Axis("share at or below", least=0.0, most=1.0),
        (
            _series("best of K", zip(ordered[keep].tolist(), best[keep].tolist(), strict=True), style),
            _series("one run", zip(ordered[keep].tolist(), below[keep].tolist(), strict=True), ONE_RUN),
        ),
    )
