"""What the pictures show: series of numbers with axes, whoever draws them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcalc.conversion import delta_at
from hpcalc.errors import HpcalcError
from hpcalc.laws import Law, RunCount
from hpcalc.logspace import Prob, round_up
from hpcalc.questions.comparing import CompareResult, Entry
from hpcalc.questions.planning import PlanResult
from hpcalc.questions.rows import Aims, quantile_or_none
from hpcalc.questions.search_cost import BoundResult
from hpcalc.questions.usefulness import UtilityResult

__all__ = ["Axis", "Panel", "Series", "panels_of"]

_LOG10 = math.log(10.0)
_LARGEST_MEAN = 1e9  # what lies beyond is told, not drawn


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

    Attributes
    ----------
    name : str
        For the legend.
    x, y : tuple of float
    style : int
        Series of the same thing have the same style in every panel.
    line : bool
        Whether the points are joined.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: int = 0
    line: bool = True


@dataclass(frozen=True)
class Panel:
    """One picture.

    Attributes
    ----------
    shaded : Series or None
        A curve below which nothing can be: the area under it is shaded.
    """

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    shaded: Series | None = None


def panels_of(result: Any) -> list[Panel]:
    """The pictures of an answer; none for an answer that has none."""
    if isinstance(result, BoundResult):
        found = _bound(result)
    elif isinstance(result, CompareResult):
        found = _compare(result)
    elif isinstance(result, PlanResult):
        found = _plan(result)
    elif isinstance(result, UtilityResult):
        found = _utility(result)
    else:
        found = []
    return [panel for panel in found if any(series.x for series in panel.series)]


def _series(name: str, points: Iterable[tuple[float | None, float | None]], style: int, line: bool = True) -> Series:
    kept = [(x, y) for x, y in points if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)]
    return Series(name, tuple(x for x, _ in kept), tuple(y for _, y in kept), style, line)


# bound


def _bound(result: BoundResult) -> list[Panel]:
    if result.best is None:
        return []
    found = [_profile(result)]
    if result.base.slack == 0.0:
        orders = 1.0 + np.exp(np.linspace(math.log(0.1), math.log(255.0), 41))
        if result.base.orders is not None:
            orders = result.base.orders[np.isfinite(result.base.orders)]
        whole = [(row["order"], row["epsilon"]) for row in result.rdp_curve(orders)]
        one = zip(orders.tolist(), np.asarray(result.base.rdp(orders)).tolist(), strict=True)
        found.insert(
            0,
            Panel(
                "Rényi curve",
                Axis("order λ", log=True),
                Axis("Rényi divergence (nats)", log=True),
                (_series("whole search", whole, 0), _series("one run", one, 1)),
            ),
        )
    return found


def _profile(result: BoundResult) -> Panel:
    epsilon = result.epsilon
    top = 1.6 * epsilon if epsilon > 0.0 else 1.0
    grid = np.linspace(0.0, top, 49)
    whole = result.log_profile(grid) / _LOG10
    one = np.array([_one_run(result, float(e)) for e in grid])
    log_delta = math.log10(result.delta) if result.delta > 0.0 else -6.0
    floor = max(2.0 * log_delta - 1.0, -300.0)
    shown = [
        _series(name, ((float(e), float(d)) for e, d in zip(grid, log, strict=True) if d >= floor), style)
        for name, log, style in (("whole search", whole, 0), ("one run", one, 1))
    ]
    name = f"ε = {round_up(epsilon, 4):g} at δ = {result.delta:g}".replace("e-0", "e-")
    asked = Series(name, (epsilon,), (log_delta,), 2, line=False) if result.delta > 0.0 else None
    return Panel(
        "Privacy profile",
        Axis("ε", least=0.0),
        Axis("log10 δ", most=0.0, least=floor),
        (*shown, *((asked,) if asked is not None else ())),
        None,
    )


def _one_run(result: BoundResult, epsilon: float) -> float:
    try:
        return delta_at(result.base, epsilon, result.conversion).value / _LOG10
    except HpcalcError:
        return math.inf


# compare


def _compare(result: CompareResult) -> list[Panel]:
    swept = "sweep" in result.footing
    curves = result.entries if swept else result.curves
    labels = list(dict.fromkeys(entry.family.label for entry in result.entries))

    def series(pick: Any) -> tuple[Series, ...]:
        out = []
        for style, label in enumerate(labels):
            line = [pick(entry) for entry in curves if entry.family.label == label and _drawn(entry)]
            marks = [pick(entry) for entry in result.entries if entry.family.label == label and _drawn(entry)]
            if line:
                out.append(_series(label, line, style))
            if marks and not swept:
                out.append(_series("" if line else label, marks, style, line=False))
        return tuple(out)

    costs = [entry.cost.epsilon for entry in result.entries if _drawn(entry) and entry.cost is not None]
    top = max((cost for cost in costs if math.isfinite(cost)), default=None)
    # curves go on far beyond the rows; where there are rows, they are what is looked at
    return _trade_offs(series, result.aims, None if swept or not top else 1.3 * top)


def _drawn(entry: Entry) -> bool:
    return entry.runs is not None and entry.cost is not None and entry.runs.mean <= _LARGEST_MEAN


def _trade_offs(series: Any, aims: Aims, most: float | None) -> list[Panel]:
    """Cost against length, and what the search finds against cost: the paper's Figures 2 to 6."""

    def cost(entry: Entry) -> float | None:
        return entry.cost.epsilon if entry.cost is not None else None

    def found(key: str) -> Any:
        return lambda entry: (cost(entry), aims.fields(entry.runs).get(key) if entry.runs is not None else None)

    epsilon = Axis("ε of the whole search", least=0.0, most=most)
    runs = Axis("mean number of runs E[K]", log=True)
    lengths = series(lambda entry: (entry.runs.mean if entry.runs is not None else None, cost(entry)))
    quantile = Axis("expected quantile", most=1.0)
    panels = [
        Panel("Cost" if most is None else "Cost (large marks: the rows)", runs, epsilon, lengths),
        Panel("Quantile of the best run", epsilon, quantile, series(found("expected_quantile"))),
    ]
    if aims.success_rate is not None:
        title, chance = f"Success (one run: {aims.success_rate:g})", Axis("chance of success", least=0.0)
        panels.append(Panel(title, epsilon, chance, series(found("success_probability"))))
    if aims.scores is not None:
        panels.append(Panel("Best score", epsilon, Axis("expected best score"), series(found("expected_score"))))
    return panels


# plan


def _plan(result: PlanResult) -> list[Panel]:
    solved = [item for item in result.solutions if item.runs is not None]

    def series(key: str) -> tuple[Series, ...]:
        out = []
        for style, item in enumerate(solved):
            assert item.runs is not None
            late = quantile_or_none(item.runs, 0.95)
            if late is not None and late <= _LARGEST_MEAN:
                point = (float(max(late, 1)), result.aims.fields(item.runs).get(key))
                out.append(_series(item.family.label, [point], style, line=False))
        return tuple(out)

    runs = Axis("runs, 95 % quantile", log=True)
    wanted = [("expected_quantile", "Quantile of the best run", Axis("expected quantile", most=1.0))]
    if result.aims.success_rate is not None:
        wanted.append(("success_probability", "Chance of success", Axis("chance of success", least=0.0)))
    if result.aims.scores is not None:
        wanted.append(("expected_score", "Best score", Axis("expected best score")))
    return [Panel(title, runs, axis, series(key)) for key, title, axis in wanted]


# utility


def _utility(result: UtilityResult) -> list[Panel]:
    found = [_run_time(result.runs)]
    if isinstance(result.runs, Law):
        found.append(_chance(result.runs, result.success_rate))
        if result.score is not None and result.scores is not None:
            found.append(_scores(result.runs, result.scores, result.minimize))
    return found


def _run_time(runs: RunCount) -> Panel:
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
        (_series("P[K ≥ k]", more, 0), _series("50, 95, 99 % of searches end by", marks, 2, line=False)),
    )


def _chance(law: Law, rate: float | None) -> Panel:
    low = min(1e-3, 0.1 * rate) if rate is not None else 1e-3
    share = np.exp(np.linspace(math.log(low), 0.0, 49))
    chance = np.exp(law.log_survival(Prob.from_u(share)))
    series = [
        _series(f"best of K, E[K] = {law.mean:.4g}", zip(share.tolist(), chance.tolist(), strict=True), 0),
        _series("one run", ((float(u), float(u)) for u in share), 1),
    ]
    if rate is not None:
        series.append(_series("the rate given", [(rate, float(np.exp(law.log_survival(Prob.from_u(rate)))))], 2, False))
    return Panel(
        "Chance of a good run",
        Axis("share of good candidates", log=True),
        Axis("chance to find a good one", least=0.0, most=1.0),
        tuple(series),
    )


def _scores(law: Law, scores: Sequence[float], minimize: bool) -> Panel:
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
            _series("best of K", zip(ordered[keep].tolist(), best[keep].tolist(), strict=True), 0),
            _series("one run", zip(ordered[keep].tolist(), below[keep].tolist(), strict=True), 1),
        ),
    )
