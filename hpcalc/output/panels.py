"""What the pictures show: series of numbers with axes, whoever draws them. Nothing here evaluates a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hpcalc.laws import Law, RunCount
from hpcalc.laws.family import LawFamily, family_of
from hpcalc.logspace import Prob, Upper
from hpcalc.output.digits import fixed, short
from hpcalc.output.phrases import law_words, run_words
from hpcalc.questions.comparing import CompareResult, Entry
from hpcalc.questions.curves import search_curves
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

Point = tuple[float | None, float | None]
_NOWHERE: Point = (None, None)


class Axis(NamedTuple):
    """A label with its unit, the scale, and what range must be shown at least."""

    label: str
    log: bool = False
    least: float | None = None
    most: float | None = None


class Limit(NamedTuple):
    """A line across the panel at one value of x."""

    name: str
    x: float


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
class Panel:
    """One picture: nothing can be below the ``shaded`` curve, ``limit`` is to be met, ``caption`` is what was asked."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    shaded: Series | None = None
    limit: Limit | None = None
    caption: str = ""


def panels_of(result: Any) -> list[Panel]:
    """The pictures of an answer; none for an answer that has none."""
    drawn = _PANELS[type(result)](result) if type(result) in _PANELS else []
    drawn = [replace(panel, series=tuple(one for one in panel.series if one.x)) for panel in drawn]
    return [panel for panel in drawn if panel.series]


def _series(name: str, points: Iterable[Point], style: int, line: bool = True, **marks: bool) -> Series:
    kept = [(x, y) for x, y in points if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)]
    return Series(name, tuple(x for x, _ in kept), tuple(y for _, y in kept), style, line, **marks)


def _looks(*families: LawFamily) -> dict[str, tuple[str, int]]:
    """Name and style of every law: its own style in every picture, a free one for what has none."""
    looks: dict[str, tuple[str, int]] = {}
    for family in families:
        eta = family.parameters.get("eta")
        own = _STYLES.get(family.dist if eta is None else f"{family.dist}:eta={eta:g}", _OTHERS[0])
        taken = {style for _, style in looks.values()}
        style = next((style for style in (own, *_OTHERS) if style not in taken), own)
        looks.setdefault(family.label, (family.title.removeprefix("truncated ").replace(", eta", ", η"), style))
    return looks


def _style(runs: RunCount) -> int:
    return next(style for _, style in _looks(family_of(runs)).values())


def _bound(result: BoundResult) -> list[Panel]:
    curves = search_curves(result)
    if curves is None:
        return []
    style = _style(result.runs)
    delta = short(result.delta)
    caption = f"{run_words(result.base.describe())}; {law_words(law_document(result.runs))}; δ = {delta}"
    asked = result.max_epsilon
    # every smaller ε is out of reach as well
    low = [(0.0, y) for _, y in curves.out_of_reach[:1]] + list(curves.out_of_reach)
    answer = f"ε = {fixed(Upper(result.epsilon))} at δ = {delta}"
    best = "" if curves.best is None else f"order {curves.best[0]:.4g} decides"
    profile = Panel(
        "Privacy profile",
        Axis("ε", least=0.0, most=curves.widest),
        Axis("log10 δ", most=0.0, least=min((y for _, y in curves.profile), default=None)),
        (_series("whole search", curves.profile, style), _series("one run", curves.one_profile, ONE_RUN),
         _series(answer, [curves.answer or _NOWHERE], style, False, ring=True)),
        _series("out of reach: a mechanism costs this", low, ONE_RUN) if low else None,
        Limit(f"limit ε = {short(asked)}", asked) if asked is not None and asked <= curves.widest else None,
        caption,
    )  # fmt: skip
    renyi = Panel(
        "Rényi curve",
        Axis("order λ", log=True),
        Axis("Rényi divergence (nats)", log=True),
        (_series("whole search", curves.renyi, style), _series("one run", curves.one_renyi, ONE_RUN),
         _series(best, [curves.best or _NOWHERE], style, False, ring=True)),
        caption=caption,
    )  # fmt: skip
    return [renyi, profile] if curves.renyi else [profile]


def _compare(result: CompareResult) -> list[Panel]:
    """Cost against length, and what the search finds against cost: the paper's Figures 2 to 6."""
    swept = "sweep" in result.footing
    rows, curves = ([entry for entry in entries if entry.runs is not None and entry.cost is not None
                     and entry.runs.mean <= _LARGEST_MEAN]
                    for entries in (result.entries, result.entries if swept else result.curves))  # fmt: skip

    def series(pick: Callable[[Entry], Point]) -> tuple[Series, ...]:
        out = []
        for label, (name, style) in _looks(*(entry.family for entry in result.entries)).items():
            line, marks = ([pick(entry) for entry in some if entry.family.label == label] for some in (curves, rows))
            out += [_series(name, line, style)] if line else []
            out += [_series("" if line else name, marks, style, line=False)] if marks and not swept else []
        return tuple(out)

    def cost(entry: Entry) -> float | None:
        return entry.cost.epsilon if entry.cost is not None else None

    def mean(entry: Entry) -> float | None:
        return entry.runs.mean if entry.runs is not None else None

    def found(key: str) -> Callable[[Entry], Point]:
        return lambda entry: (cost(entry), result.aims.fields(entry.runs).get(key) if entry.runs is not None else None)

    costs = sorted(epsilon for epsilon in map(cost, rows) if epsilon is not None and math.isfinite(epsilon))
    log = bool(costs) and costs[-1] > _SQUASHED * costs[(len(costs) - 1) // 2] and costs[0] > 0.0
    at = result.footing.get("at_epsilon")
    # curves go on far beyond the rows; where there are rows, they are what is looked at
    most = None if swept or not costs else max(1.3 * costs[-1], at or 0.0)
    epsilon = Axis("ε of the whole search", log, None if log else 0.0, most)
    limit = Limit(f"ε = {short(at)}", float(at)) if at is not None else None
    caption = (
        f"{run_words(result.base.describe())}; δ = {short(result.delta)}{'' if swept else '; large marks: the rows'}"
    )
    lengths = series(lambda entry: (mean(entry), cost(entry)))
    return [Panel("Cost", Axis("mean number of runs E[K]", log=True), epsilon, lengths, caption=caption),
            *(Panel(title, epsilon, axis, series(found(key)), limit=limit, caption=caption)
              for key, title, axis in _worth(result.aims))]  # fmt: skip


def _worth(aims: Aims) -> list[tuple[str, str, Axis]]:
    """What a search finds, as far as it was asked for."""
    out = [("expected_quantile", "Quantile of the best run", Axis("expected quantile", most=1.0))]
    if aims.success_rate is not None:
        title = f"Success (one run: {aims.success_rate:g})"
        out.append(("success_probability", title, Axis("chance of success", least=0.0)))
    if aims.scores is not None:
        out.append(("expected_score", "Best score", Axis("expected best score")))
    return out


def _plan(result: PlanResult) -> list[Panel]:
    late = [(item, quantile_or_none(item.runs, 0.95)) for item in result.solutions if item.runs is not None]
    drawn = [(item, max(float(count), 1.0)) for item, count in late if count is not None and count <= _LARGEST_MEAN]
    looks = _looks(*(item.family for item, _ in drawn))

    def series(key: str) -> tuple[Series, ...]:
        out = []
        for item, count in drawn:
            name, style = looks[item.family.label]
            point = (count, result.aims.fields(item.runs).get(key) if item.runs is not None else None)
            if item is result.best:
                out.append(_series("recommended", [point], ONE_RUN, False, ring=True))
            out.append(_series(name, [point], style, line=False))
        return tuple(out)

    most = result.constraints.get("max_runs_p95")
    limit = Limit(f"limit {most:g} runs", float(most)) if most is not None else None
    target = f"ε <= {short(result.target_epsilon)} at " if result.target_epsilon is not None else ""
    run = f"{run_words(result.base.describe())}; " if result.base is not None else ""
    return [Panel(title, Axis("runs, 95 % quantile", log=True), axis, series(key), limit=limit,
                  caption=f"{run}{target}δ = {short(result.delta)}")
            for key, title, axis in _worth(result.aims)]  # fmt: skip


def _utility(result: UtilityResult) -> list[Panel]:
    style = _style(result.runs)
    drawn = [_run_time(result.runs, style)]
    if isinstance(result.runs, Law):
        drawn.append(_chance(result.runs, result.success_rate, style))
        if result.scores is not None:
            drawn.append(_scores(result.runs, result.scores, result.minimize, style))
    return [replace(panel, caption=law_words(law_document(result.runs))) for panel in drawn]


def _run_time(runs: RunCount, style: int) -> Panel:
    late = quantile_or_none(runs, 0.999)
    top = min(float(late if late is not None else 1e9), _LARGEST_MEAN)
    many = top > 60.0
    counts = np.unique(np.geomspace(1.0, top, 60).round()) if many else np.arange(1.0, max(int(top), 2) + 1.0)
    more = [(k, math.exp(runs.log_sf(int(k) - 1))) for k in counts.tolist()]
    marks = [(quantile_or_none(runs, p), 1.0 - p) for p in (0.5, 0.95, 0.99)]
    return Panel(
        "Run time",
        Axis("number of runs k", log=many),
        Axis("chance of at least k runs", least=0.0, most=1.0),
        (_series("P[K ≥ k]", more, style, steps=True),
         _series("50, 95, 99 % of searches end by", marks, style, line=False, ring=True)),
    )  # fmt: skip


def _chance(law: Law, rate: float | None, style: int) -> Panel:
    share = np.geomspace(min(1e-3, 0.1 * rate) if rate is not None else 1e-3, 1.0, 49)
    chance = np.exp(law.log_survival(Prob.from_u(share)))
    series = [_series("best of K", zip(share.tolist(), chance.tolist(), strict=True), style),
              _series("one run", ((float(u), float(u)) for u in share), ONE_RUN)]  # fmt: skip
    if rate is not None:
        given = (rate, float(np.exp(law.log_survival(Prob.from_u(rate)))))
        series.append(_series("the rate given", [given], style, False, ring=True))
    return Panel("Chance of a good run", Axis("share of good candidates", log=True),
                 Axis("chance to find a good one", least=0.0, most=1.0), tuple(series))  # fmt: skip


def _scores(law: Law, scores: Sequence[float], minimize: bool, style: int) -> Panel:
    """Distribution functions of one run's score and of the best of K given K >= 1."""
    ordered = np.sort(np.array(scores, dtype=float))
    below = np.arange(1, ordered.size + 1) / ordered.size
    empty = math.exp(law.log_prob_zero)
    if minimize:
        # P[best <= x] = 1 - f(P[score > x])
        best = np.exp(law.log_survival(Prob.from_u(below))) / (1.0 - empty)
    else:
        best = (np.exp(law.log_pgf(Prob.from_u(np.maximum(1.0 - below, 0.0)))) - empty) / (1.0 - empty)
    keep = np.unique(np.linspace(0, ordered.size - 1, min(ordered.size, 60)).round().astype(int))
    x = ordered[keep].tolist()
    return Panel("Scores", Axis("score"), Axis("share at or below", least=0.0, most=1.0),
                 (_series("best of K", zip(x, best[keep].tolist(), strict=True), style),
                  _series("one run", zip(x, below[keep].tolist(), strict=True), ONE_RUN)))  # fmt: skip


_PANELS: dict[type, Callable[[Any], list[Panel]]] = {
    BoundResult: _bound, CompareResult: _compare, PlanResult: _plan, UtilityResult: _utility,
}  # fmt: skip
