"""What the pictures show: series of numbers with axes, whoever draws them. Nothing here evaluates a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from hpcalc.laws import Law
from hpcalc.laws.derived import modified
from hpcalc.laws.family import LawFamily, family_of
from hpcalc.logspace import Prob, Upper, distinct
from hpcalc.output.digits import fixed, short
from hpcalc.output.phrases import law_words, released, run_words
from hpcalc.questions.comparing import CompareResult
from hpcalc.questions.curves import profile_curves, renyi_curves
from hpcalc.questions.measures import Aims, UtilityResult
from hpcalc.questions.planning import PlanResult
from hpcalc.questions.rows import law_document, quantile_or_none
from hpcalc.questions.search_cost import BoundResult

_LARGEST_MEAN = 1e9  # what lies beyond is told, not drawn
_SQUASHED = 5.0  # an axis is logarithmic where the largest row is this many times the middle one
#: Style of what a search is held against.
ONE_RUN = 0
# One style a law, in every picture.
_STYLES = {"poisson": 1, "tnb:eta=-0.5": 2, "tnb:eta=0": 3, "logarithmic": 3, "tnb:eta=0.5": 4, "tnb:eta=1": 5,
           "geometric": 5, "fixed": 6, "composition": 6, "binomial": 7}  # fmt: skip
_OTHERS = (8, 9, 7, 6, 5, 4, 3, 2, 1)

Point = tuple[float | None, float | None]


class Axis(NamedTuple):
    """A label with its unit, the scale, and what range must be shown at least."""

    label: str
    log: bool = False
    least: float | None = None
    most: float | None = None


class Series(NamedTuple):
    """What is drawn; the same thing has the same ``style`` in every picture.

    A ``line`` is joined; ``steps`` hold up to their x from the x before; ``points`` stand alone, a ``ring`` is the one
    to look at; nothing can be in an ``area``, below its points; a ``limit`` is a line across the panel at its x.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...] = ()
    style: int = ONE_RUN
    kind: str = "line"


class Panel(NamedTuple):
    """One picture; the ``caption`` says what was asked."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    caption: str = ""


def panels_of(result: Any) -> list[Panel]:
    """The pictures of an answer; none for an answer that has none."""
    drawn = _PANELS[type(result)](result) if type(result) in _PANELS else []
    drawn = [panel._replace(series=tuple(one for one in panel.series if one.x)) for panel in drawn]
    return [panel for panel in drawn if any(one.y for one in panel.series)]


def _series(name: str, points: Iterable[Point], style: int = ONE_RUN, kind: str = "line") -> Series:
    kept = [(x, y) for x, y in points if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)]
    return Series(name, tuple(x for x, _ in kept), tuple(y for _, y in kept), style, kind)


def _limit(words: str, x: float | None) -> Series:
    return Series("", ()) if x is None else Series(words.format(short(x)), (float(x),), kind="limit")


def _looks(*families: LawFamily) -> dict[str, tuple[str, int]]:
    """Name and style of every law: its own style in every picture, a free one for what has none."""
    looks: dict[str, tuple[str, int]] = {}
    for family in families:
        eta = family.parameters.get("eta")
        own = _STYLES.get(family.dist if eta is None else f"{family.dist}:eta={eta:g}", _OTHERS[0])
        free = (style for style in (own, *_OTHERS) if all(style != taken for _, taken in looks.values()))
        title = law_words(family.document(), brief=True).removeprefix("truncated ")
        looks.setdefault(family.label, (title, next(free, own)))
    return looks


def _bound(result: BoundResult) -> list[Panel]:
    if not math.isfinite(result.epsilon):
        return []
    ((_, style),) = _looks(family_of(result.runs)).values()
    delta, asked = short(result.asked.delta), result.max_epsilon
    whole = released(result.asked.document()).removeprefix("the ")
    caption = f"{run_words(result.base.describe())}; {law_words(law_document(result.runs))}; δ = {delta}"
    profile, one, costs, widest = profile_curves(result)
    answer = [point for point in profile if point[0] == result.epsilon and result.asked.delta > 0.0]
    # every smaller ε is out of reach as well
    below = [(0.0, costs[0][1]), *costs] if len(costs) > 1 else []
    drawn = [Panel(
        "Privacy profile",
        Axis("ε", least=0.0, most=widest),
        Axis("log10 δ", most=0.0, least=min((y for _, y in profile), default=None)),
        (_series(whole, profile, style), _series("one run", one),
         _series("out of reach: a mechanism costs this", below, kind="area"),
         _limit("limit ε = {}", asked if asked is not None and asked <= widest else None),
         _series(f"ε = {fixed(Upper(result.epsilon))} at δ = {delta}", answer, style, "ring")),
        caption,
    )]  # fmt: skip
    curve, one, best = renyi_curves(result)
    if curve:
        series = (_series(whole, curve, style), _series("one run", one),
                  _series("".join(f"order {x:.4g} decides" for x, _ in best), best, style, "ring"))  # fmt: skip
        axes = Axis("order λ", log=True), Axis("Rényi divergence (nats)", log=True)
        drawn.insert(0, Panel("Rényi curve", *axes, series, caption))
    return drawn


def _compare(result: CompareResult) -> list[Panel]:
    """Cost against length, and what the search finds against cost: the paper's Figures 2 to 6."""
    swept, aims = "sweep" in result.footing, result.aims
    rows, curves = ([(at.family.label, {"runs": at.runs.mean, "cost": at.cost.epsilon, **aims.fields(at.runs)})
                     for at in entries if at.runs is not None and at.cost is not None and at.runs.mean <= _LARGEST_MEAN]
                    for entries in (result.entries, result.entries if swept else result.curves))  # fmt: skip

    def series(x: str, y: str) -> tuple[Series, ...]:
        out = []
        for law, (name, style) in _looks(*(entry.family for entry in result.entries)).items():
            line, marks = ([(at[x], at.get(y)) for label, at in some if label == law] for some in (curves, rows))
            out.append(_series(name, line, style))
            out += [] if swept else [_series("" if line else name, marks, style, "points")]
        return tuple(out)

    costs = sorted(at["cost"] for _, at in rows if math.isfinite(at["cost"]))
    log = bool(costs) and costs[-1] > _SQUASHED * costs[(len(costs) - 1) // 2] and costs[0] > 0.0
    at_epsilon = result.footing.get("at_epsilon")
    # curves go on far beyond the rows; where there are rows, they are what is looked at
    most = None if swept or not costs else max(1.3 * costs[-1], at_epsilon or 0.0)
    epsilon = Axis(f"ε of {released(result.asked.document())}", log, None if log else 0.0, most)
    told = f"{run_words(result.base.describe())}; δ = {short(result.asked.delta)}"
    told += "" if swept else "; large marks: the rows"
    worth = _worth(aims, epsilon, lambda key: (*series("cost", key), _limit("ε = {}", at_epsilon)), told)
    return [Panel("Cost", Axis("mean number of runs E[K]", log=True), epsilon, series("runs", "cost"), told), *worth]


def _worth(aims: Aims, x: Axis, series: Callable[[str], tuple[Series, ...]], caption: str) -> list[Panel]:
    """What a search finds; what was not asked for has no points, and no panel."""
    found = {"expected_quantile": ("Quantile of the best run", Axis("expected quantile", most=1.0)),
             "success_probability": (f"Success (one run: {aims.success_rate or 0.0:g})",
                                     Axis("chance of success", least=0.0)),
             "expected_score": ("Best score", Axis("expected best score"))}  # fmt: skip
    return [Panel(title, x, axis, series(key), caption) for key, (title, axis) in found.items()]


def _plan(result: PlanResult) -> list[Panel]:
    late = [(item, item.runs, quantile_or_none(item.runs, 0.95)) for item in result.entries if item.runs is not None]
    by_runs = all(item.solved_for in runs.parameters() for item, runs, _ in late)  # else each law has its own noise
    drawn = [(item, {"x": max(float(count), 1.0) if by_runs else item.value, **result.aims.fields(runs)})
             for item, runs, count in late if count is not None and count <= _LARGEST_MEAN]  # fmt: skip
    looks = _looks(*(item.family for item, _ in drawn))

    def series(key: str) -> tuple[Series, ...]:
        points = [(item is result.best, *looks[item.family.label], [(at["x"], at.get(key))]) for item, at in drawn]
        best = [_series(f"recommended: {name}", point, kind="ring") for first, name, _, point in points if first]
        return *best, *(_series(name, point, style, "points") for _, name, style, point in points), limit

    limit = _limit("limit {} runs", result.constraints.get("max_runs_p95") if by_runs else None)
    target = f"ε <= {short(result.target_epsilon)} at " if result.target_epsilon is not None else ""
    run = f"{run_words(result.base.describe())}; " if result.base is not None else ""
    solved = Axis("runs, 95 % quantile", log=True) if by_runs else Axis(f"value of {result.best.solved_for}")
    return _worth(result.aims, solved, series, f"{run}{target}δ = {short(result.asked.delta)}")


def _utility(result: UtilityResult) -> list[Panel]:
    """How long a search takes, and, of the best of K, the chance that it is good and the distribution of its score."""
    law, aims, caption = result.runs, result.aims, law_words(law_document(result.runs))
    ((_, style),) = _looks(family_of(law)).values()
    late = quantile_or_none(law, 0.999)
    top = min(float(late if late is not None else math.inf), _LARGEST_MEAN)
    counts = np.geomspace(1.0, top, 60).round() if top > 60.0 else np.arange(1.0, max(top, 2.0) + 2.0)
    more = [(k, math.exp(law.log_sf(int(k) - 1))) for k in distinct(counts).tolist()]
    marks = [(quantile_or_none(law, p), 1.0 - p) for p in (0.5, 0.95, 0.99)]
    series = [_series("P[K ≥ k]", more, style, "steps"),
              _series("50, 95, 99 % of searches end by", marks, style, "ring")]  # fmt: skip
    axes = Axis("number of runs k", top > 60.0), Axis("chance of at least k runs", False, 0.0, 1.0)
    drawn = [Panel("Run time", *axes, tuple(series), caption)]
    if isinstance(law, Law):
        rates = [] if aims.success_rate is None else [aims.success_rate]
        share = np.geomspace(min([1e-3, *(0.1 * rate for rate in rates)]), 1.0, 49).tolist()
        best, given = ([(x, math.exp(law.success(Prob.from_u(x)).log_u)) for x in some] for some in (share, rates))
        series = [_series("best of K", best, style), _series("one run", zip(share, share, strict=True)),
                  _series("the rate given", given, style, "ring")]  # fmt: skip
        axes = Axis("share of good candidates", True), Axis("chance to find a good one", False, 0.0, 1.0)
        drawn.append(Panel("Chance of a good run", *axes, tuple(series), caption))
    if isinstance(law, Law) and aims.scores:
        ordered = np.sort(np.array(aims.scores, dtype=float))
        keep = distinct(np.linspace(0, ordered.size - 1, min(ordered.size, 60)).round()).astype(int)
        x, below = ordered[keep].tolist(), (keep + 1.0) / ordered.size
        # P[best <= x] = 1 - f(P[score > x]) where the least is best, else f(P[score <= x]), given K >= 1
        ahead = modified(law, at_least_one=True).success(Prob.from_u(below if aims.minimize else 1.0 - below))
        reached = np.exp(ahead.log_u if aims.minimize else ahead.log_q).tolist()
        series = [_series("best of K", zip(x, reached, strict=True), style),
                  _series("one run", zip(x, below.tolist(), strict=True))]  # fmt: skip
        drawn.append(Panel("Scores", Axis("score"), Axis("share at or below", False, 0.0, 1.0), tuple(series), caption))
    return drawn


_PANELS: dict[type, Callable[[Any], list[Panel]]] = {
    BoundResult: _bound, CompareResult: _compare, PlanResult: _plan, UtilityResult: _utility,
}  # fmt: skip
