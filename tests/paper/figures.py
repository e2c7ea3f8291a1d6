"""Figures 2 to 8 of the paper, from hpcalc's own answers.

Each figure has two halves: a function that returns its numbers (checked by the test suite) and one that draws them,
once with the paper's bounds and once with the refined upper bounds, shaded down to the lower bounds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import digits
import numpy as np
import plotting
from claims import divergence  # which puts tests/ on the path
from numpy.typing import NDArray
from statements import corollary_16

import hpcalc
from hpcalc.bounds import paper
from hpcalc.bounds.bound import monotone
from hpcalc.bounds.renyi import refined_renyi
from hpcalc.conversion import RenyiCurve, epsilon_from_rdp
from hpcalc.logspace import Prob, log_ndtr

Array = NDArray[np.float64]

RHO = 0.1
ZCDP = hpcalc.ZCDP(RHO)
DELTA = 1e-6
MEAN = 10.0
SUCCESS_RATE = 0.01
LAW_LABELS = {
    "poisson": "Poisson",
    "eta=1": "η = 1 (geometric)",
    "eta=0.5": "η = 0.5",
    "eta=0": "η = 0 (logarithmic)",
    "eta=-0.5": "η = −0.5",
}
"""The five laws of the paper's figures; the keys are names of line styles."""
FIGURE_2_MEANS = (2.0, 10.0, 100.0, 1000.0)
FIGURE_7_MEANS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


@dataclass(frozen=True, eq=False)
class Grid:
    """Where the curves are computed."""

    orders: Array
    means: tuple[float, ...]
    naive_runs: tuple[int, ...]
    search_means: tuple[float, ...]
    accepts: tuple[float, ...]
    rejection_orders: Array


FULL = Grid(
    orders=np.unique(
        np.concatenate([np.geomspace(1.02, 2.0, 8), np.linspace(2.0, 8.0, 13), np.linspace(8.0, 20.0, 13)])
    ),
    means=(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 40.0, 100.0, 300.0, 1000.0),
    naive_runs=(1, 2, 3, 5, 10, 20, 40, 60, 100, 160),
    search_means=FIGURE_7_MEANS,
    accepts=tuple(float(p) for p in np.geomspace(1e-3, 0.9, 10)),
    rejection_orders=np.linspace(2.0, 20.0, 37),
)
QUICK = Grid(
    orders=np.array([2.0, 20.0]),
    means=(10.0,),
    naive_runs=(1, 10, 100),
    search_means=(8.0,),
    accepts=(0.1,),
    rejection_orders=np.array([2.0, 5.0, 10.0, 20.0]),
)
"""A few points of each curve: for the test that the whole command works."""


class Curve(NamedTuple):
    """One line: what is on both axes."""

    x: Any
    y: Any

    def at(self, x: float) -> float:
        """Value at the grid point nearest to x."""
        return float(self.y[int(np.argmin(np.abs(self.x - x)))])


Curves = dict[tuple[Any, str], Curve]
"""By what the line is of, and "paper", "refined" or "lower"."""


def law_with_mean(name: str, mean: float) -> hpcalc.Law:
    """One of the five laws with the given mean (mean 1: exactly one run, but for the Poisson law)."""
    if name == "poisson":
        return hpcalc.Poisson(mean)
    return hpcalc.TruncatedNegativeBinomial.with_mean(eta=float(name.removeprefix("eta=")), mean=mean)


# Figures 2 and 3: Rényi curves


def paper_bound(base: hpcalc.Guarantee, law: hpcalc.RunCount) -> RenyiCurve:
    """The theorem that the paper states for the law, read with Remark 5 (a larger order's bound holds too)."""
    if isinstance(law, hpcalc.Threshold):
        return paper.proposition_15(base, law).curve
    theorem = paper.theorem_6 if isinstance(law, hpcalc.Poisson) else paper.theorem_2
    return monotone(theorem(base, law).curve)


def renyi_curve(law: hpcalc.Law, method: str, orders: Array = FULL.orders) -> Curve:
    """Rényi bound of the whole search over the 0.1-zCDP base, by the "paper" or "refined", or "lower"."""
    if method == "paper":
        return Curve(orders, paper_bound(ZCDP, law).rdp(orders))
    if method == "lower":
        return Curve(orders, np.array([renyi_floor(law, float(order)) for order in orders]))
    bound = refined_renyi(ZCDP, law)
    each = [np.array([order]) for order in orders]
    values = np.array([float(bound.sharpened(order).curve.rdp(order)[0]) for order in each])
    return Curve(orders, np.minimum.accumulate(values[::-1])[::-1])


def renyi_floor(law: hpcalc.Law, order: float, rho: float = RHO) -> float:
    """Divergence that one ρ-zCDP mechanism, a Gaussian with a chosen ordering of its outputs, really has.

    N(0, 1) against N(s, 1), ``s = sqrt(2ρ)``. Outputs above a cut c rank first, as one outcome; the rest follows by
    decreasing privacy loss. The best cut is searched on a grid: any cut gives a valid lower bound.
    """
    s = math.sqrt(2.0 * rho)
    cuts = np.linspace(-2.0, 7.0, 91)[:, None]
    x = np.linspace(-order * s - 9.0, 8.0, 1201)[None, :]
    first, first_other = log_ndtr(-cuts), log_ndtr(s - cuts)

    def moment(ask: Any, u: Array, v: Array) -> Array:
        return np.asarray(order * ask(Prob.from_log_u(u)) + (1.0 - order) * ask(Prob.from_log_u(v)))

    log_u = np.minimum(np.logaddexp(first, log_ndtr(x)), -1e-300)
    log_v = np.minimum(np.logaddexp(first_other, log_ndtr(x - s)), -1e-300)
    centre = (1.0 - order) * s
    log_base = order * (order - 1.0) * s * s / 2.0 - 0.5 * (x - centre) ** 2 - 0.5 * math.log(2.0 * math.pi)
    terms = np.where(x < cuts, moment(law.log_density, log_u, log_v) + log_base, -np.inf)
    rest = np.logaddexp.reduce(terms, axis=1) + math.log(float(x[0, 1] - x[0, 0]))
    top = moment(lambda rank: law.success(rank).log_u, first[:, 0], first_other[:, 0])
    total = np.logaddexp(law.log_prob_zero, np.logaddexp(top, rest))
    return float(np.max(total)) / (order - 1.0)


def renyi_curves(laws: dict[Any, hpcalc.Law], orders: Array) -> Curves:
    """Curves of several laws by each method, and of one run."""
    out = {
        (key, kind): renyi_curve(law, kind, orders)
        for key, law in laws.items()
        for kind in ("paper", "refined", "lower")
    }
    return {**out, ("single", "paper"): Curve(orders, RHO * orders)}


@lru_cache(maxsize=1)
def figure_2(grid: Grid = FULL) -> Curves:
    """The logarithmic law with several means."""
    return renyi_curves({mean: law_with_mean("eta=0", mean) for mean in FIGURE_2_MEANS}, grid.orders)


@lru_cache(maxsize=1)
def figure_3(grid: Grid = FULL) -> Curves:
    """Five laws at mean 10; "naive" is composition."""
    out = renyi_curves({name: law_with_mean(name, MEAN) for name in LAW_LABELS}, grid.orders)
    return {**out, ("naive", "paper"): Curve(grid.orders, MEAN * RHO * grid.orders)}


# Figures 4 to 6: (ε, δ) against runs, quantile and success


def paper_epsilon(base: hpcalc.Guarantee, law: hpcalc.RunCount, delta: float = DELTA) -> float:
    """ε of the paper's theorem for this law."""
    return epsilon_from_rdp(paper_bound(base, law), math.log(delta)).value


def prices(base: hpcalc.Guarantee, law: hpcalc.RunCount, delta: float = DELTA) -> tuple[float, float, float]:
    """ε of the whole search by the paper's bounds, by the best bound and from below."""
    best = hpcalc.bound(base, law, delta=delta).document()
    return paper_epsilon(base, law, delta), best["epsilon"], best["lower_bound"]["epsilon"]


@dataclass(frozen=True)
class Cost:
    """What one search costs and what it finds."""

    mean: float
    paper: float
    refined: float
    lower: float
    quantile: float
    success: float


def found(law: hpcalc.Law) -> tuple[float, float]:
    """Expected quantile of the released run, and the probability that it is a good one."""
    answer = hpcalc.utility(law, success_rate=SUCCESS_RATE).document()
    return answer["expected_quantile"], answer["success_probability"]


def cost(name: str, mean: float) -> Cost:
    """One of the five laws over the 0.1-zCDP base."""
    law = law_with_mean(name, mean)
    return Cost(law.mean, *prices(ZCDP, law), *found(law))


def naive_epsilon(runs: int) -> float:
    """ε of composing the 0.1-zCDP run ``runs`` times."""
    return epsilon_from_rdp(hpcalc.repeat(ZCDP, runs), math.log(DELTA)).value


@lru_cache(maxsize=1)
def costs(grid: Grid = FULL) -> dict[str, list[Cost]]:
    """Every law at every mean; "naive" runs a fixed number of times and pays for each run."""
    out = {name: [cost(name, mean) for mean in grid.means] for name in LAW_LABELS}
    out["naive"] = [
        Cost(runs, naive_epsilon(runs), naive_epsilon(runs), math.nan, *found(hpcalc.Fixed(runs)))
        for runs in grid.naive_runs
    ]
    return out


# Figure 7: a real search

FIGURE_7_DELTA = 1e-5
SEARCHES = 500


@dataclass(frozen=True)
class Search:
    """One law and mean: ε of the whole search and the accuracy of its winner, computed and simulated."""

    mean: float
    paper: float
    refined: float
    lower: float
    expected: float
    """From ``utility --scores``; where K may be 0, given that at least one run happened."""
    simulated: float
    half_width: float
    """Of the 95 % interval of the mean of ``SEARCHES`` simulated searches."""


def dpsgd_base() -> hpcalc.Guarantee:
    """One recorded training run: its Rényi curve for the paper's bounds, its privacy loss for the refined ones."""
    return hpcalc.DPSGD(digits.BATCH / digits.TRAIN_EXAMPLES, digits.NOISE_MULTIPLIER, digits.STEPS)


def simulate(law: hpcalc.Law, accuracies: Array, seed: int) -> tuple[float, float]:
    """Mean winner of simulated searches among recorded runs, and the half-width of its 95 % interval.

    A run picks a learning rate at random, then one of its recorded models at random: every learning rate has equally
    many, so that is one entry of the table at random. Searches that draw K = 0 release nothing and are drawn again.
    """
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    winners: list[float] = []
    while len(winners) < SEARCHES:
        runs = law.sample(dice)
        if runs:
            winners.append(float(np.max(rng.choice(accuracies, size=runs))))
    return float(np.mean(winners)), float(1.96 * np.std(winners, ddof=1) / math.sqrt(SEARCHES))


def expected_best(law: hpcalc.Law, accuracies: Array) -> float:
    """Expected accuracy of the winner, given at least one run, by hpcalc's utility."""
    kept = hpcalc.AtLeastOne(law) if law.prob_zero > 0.0 else law
    return float(hpcalc.utility(kept, scores=accuracies.tolist()).document()["expected_score"])


@lru_cache(maxsize=1)
def figure_7(grid: Grid = FULL) -> dict[str, list[Search]]:
    """Five laws: cost and winner of the search over the recorded digits models."""
    base, (_, accuracies) = dpsgd_base(), digits.read_scores()
    out: dict[str, list[Search]] = {}
    for row, name in enumerate(LAW_LABELS):
        for column, mean in enumerate(grid.search_means):
            law = law_with_mean(name, mean)
            winner = expected_best(law, accuracies), *simulate(law, accuracies, seed=1000 * row + column)
            out.setdefault(name, []).append(Search(mean, *prices(base, law, FIGURE_7_DELTA), *winner))
    return out


# Figure 8: conditional sampling

ACCEPT = 0.1


@dataclass(frozen=True)
class Rejection:
    """Three outcomes: two that are accepted, (a, a e^-s) and (p - a, (p - a) e^t), and one that is not."""

    t: float
    log_q: Array
    log_q_other: Array

    def exact(self, order: float) -> float:
        """Divergence of the first accepted output."""
        return divergence(order, *(log[:2] - np.logaddexp(*log[:2]) for log in (self.log_q, self.log_q_other)))


def rejection(order: float) -> Rejection:
    """Choose s and t so that both divergences of one run are 0.1 λ at this order (Appendix D.2)."""
    from scipy.optimize import brentq

    log_a, log_b = math.log(ACCEPT) - 30.0, math.log(ACCEPT) + math.log1p(-math.exp(-30.0))

    def laws(s: float, t: float) -> tuple[Array, Array]:
        kept = math.exp(log_a - s) + math.exp(log_b + t)
        return np.array([log_a, log_b, math.log1p(-ACCEPT)]), np.array([log_a - s, log_b + t, math.log1p(-kept)])

    def root(excess: Any, high: float) -> float:
        return float(brentq(lambda x: excess(x) - RHO * order, 0.0, high, xtol=1e-14))

    t = root(lambda t: divergence(order, *laws(700.0, t)[::-1]), -math.log(ACCEPT) - 1e-9)
    s = root(lambda s: divergence(order, *laws(s, t)), 700.0)
    return Rejection(t, *laws(s, t))


@lru_cache(maxsize=1)
def figure_8(grid: Grid = FULL) -> dict[str, Curve]:
    """Rényi divergence of conditional sampling over a run of which one order is known, both ways round.

    "upper" is Corollary 16's second line, "free" Proposition 15 with its best orders, "exact" the mechanism's value.
    """
    law, rows = hpcalc.Threshold(ACCEPT), []
    for order in grid.rejection_orders.tolist():
        base, at = hpcalc.RDPCurve({order: RHO * order}), np.array([order])
        upper, free = (float(b.curve.rdp(at)[0]) for b in (corollary_16(base, law, 2), paper.proposition_15(base, law)))
        rows.append((upper, free, rejection(order).exact(order), RHO * order))
    names = ("upper", "free", "exact", "single")
    return {name: Curve(grid.rejection_orders, y) for name, y in zip(names, np.array(rows).T, strict=True)}


@lru_cache(maxsize=1)
def figure_8_epsilon(grid: Grid = FULL) -> dict[str, Curve]:
    """ε at δ = 1e-6 of conditional sampling over the 0.1-zCDP base: "paper", "refined", "lower"."""
    rows = np.array([prices(ZCDP, hpcalc.Threshold(accept)) for accept in grid.accepts]).T
    return {name: Curve(np.array(grid.accepts), y) for name, y in zip(("paper", "refined", "lower"), rows, strict=True)}


# Drawing


def picture(folder: Path, name: str, lines: Iterable[tuple[Any, ...]], legend: str = "best", **axes: Any) -> list[Path]:
    """One pair of axes: lines as style, curve and label, with a lower bound to shade down to where there is one."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(6.4, 4.4))
    for style, curve, label, *lower in lines:
        plotting.line(ax, style, *curve, label)
        for below in lower:
            plotting.shade(ax, style, curve, below)
    ax.set(**axes)
    ax.legend(loc=legend)
    return plotting.save(fig, folder, name)


def draw_twice(
    folder: Path, number: int, data: Curves, rows: Iterable[tuple[Any, str, str]], titles: tuple[str, str], **axes: Any
) -> list[Path]:
    """By the paper's bounds, and by the refined ones; rows are the key of a line, its style and its label."""
    rows, paths = list(rows), []
    for suffix, kind, title in (("", "paper", titles[0]), ("-refined", "refined", f"{titles[1]}:\n{SHADED}")):
        lines = [
            (style, data.get((key, kind), data[key, "paper"]), label)
            + ((data[key, "lower"],) if kind == "refined" and (key, "lower") in data else ())
            for key, style, label in rows
        ]
        paths += picture(folder, f"figure-{number}{suffix}", lines, title=title, **axes)
    return paths


SHADED = "refined bounds, shaded down to lower bounds"
EPSILON = "ε of the whole search, δ = 1e-6"
LAW_ROWS = [(name, name, label) for name, label in LAW_LABELS.items()]
ONE_RUN = ("single", "single", "one run (0.1-zCDP)")
RENYI_AXES = {"xlabel": "order λ", "ylabel": "Rényi divergence bound ε(λ)", "xlim": (1.0, 20.0)}


def draw_2(folder: Path, grid: Grid = FULL) -> list[Path]:
    styles = zip(FIGURE_2_MEANS, ("eta=-0.5", "eta=0", "eta=1", "poisson"), strict=True)
    rows = [*((mean, style, f"E[K] = {mean:g}") for mean, style in styles)][::-1]
    titles = "Logarithmic law (η = 0), Theorem 2", "Logarithmic law"
    return draw_twice(folder, 2, figure_2(grid), [*rows, ONE_RUN], titles, ylim=(0.0, None), **RENYI_AXES)


def draw_3(folder: Path, grid: Grid = FULL) -> list[Path]:
    rows = [("naive", "naive", "composition of 10 runs"), *LAW_ROWS, ONE_RUN]
    titles = "E[K] = 10, Theorems 2 and 6", "E[K] = 10"
    return draw_twice(folder, 3, figure_3(grid), rows, titles, ylim=(0.0, 8.0), **RENYI_AXES)


def curves_of(rows: dict[str, list[Any]], x: str, y: str) -> Curves:
    """Lines of costs or searches: "cost" on an axis stands for ε by each kind of bound."""

    def values(name: str, axis: str, kind: str) -> list[float]:
        return [getattr(row, kind if axis == "cost" else axis) for row in rows[name]]

    kinds = ("paper", "refined", "lower")
    return {(name, kind): Curve(values(name, x, kind), values(name, y, kind)) for name in rows for kind in kinds}


#: Figures 4 to 6: what is on the axes, the title, and how it is shown.
COSTS: dict[int, tuple[str, str, str, dict[str, Any]]] = {
    4: ("mean", "cost", "Privacy against the number of runs, 0.1-zCDP base",
        {"xscale": "log", "xlim": (1.0, 1000.0), "ylim": (2.0, 10.0), "xlabel": "expected number of runs E[K]",
         "ylabel": EPSILON, "legend": "upper left"}),
    5: ("cost", "quantile", "Expected quantile against privacy, 0.1-zCDP base",
        {"xlim": (2.0, 8.0), "ylim": (0.3, 1.0), "xlabel": EPSILON, "ylabel": "expected quantile of the released run",
         "legend": "lower right"}),
    6: ("cost", "success", "Success against privacy, one good candidate in 100",
        {"xlim": (2.0, 10.0), "ylim": (0.0, 1.0), "xlabel": EPSILON, "ylabel": "probability β of a good result",
         "legend": "upper right"}),
}  # fmt: skip


def draw_costs(number: int, folder: Path, grid: Grid = FULL) -> list[Path]:
    x, y, title, axes = COSTS[number]
    data = curves_of(costs(grid), x, y)
    del data["naive", "lower"]
    return draw_twice(
        folder, number, data, [("naive", "naive", "composition, fixed K"), *LAW_ROWS], (title, title), **axes
    )


def draw_7(folder: Path, grid: Grid = FULL) -> list[Path]:
    import matplotlib.pyplot as plt

    data, (rates, accuracies) = figure_7(grid), digits.read_scores()
    fig, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.4))
    each = np.unique(rates)
    low, middle, high = np.array([np.quantile(accuracies[rates == rate], (0.05, 0.5, 0.95)) for rate in each]).T
    left.fill_between(each, low, high, color="0.8", label="5 % to 95 % of the runs")
    left.plot(each, middle, color="black", marker="o", label="median run")
    left.set(xscale="log", xlabel="learning rate", ylabel="held-out accuracy of one private run",
             title=f"{len(accuracies)} recorded runs of DP-SGD on the digits")  # fmt: skip
    left.legend(loc="lower center")
    curves, simulated, widths = (curves_of(data, "cost", y) for y in ("expected", "simulated", "half_width"))
    for name, style, label in LAW_ROWS:
        plotting.line(right, style, *curves[name, "paper"], label)
        bars = {"fmt": "none", "ecolor": plotting.STYLES[style]["color"], "elinewidth": 0.8, "capsize": 2}
        right.errorbar(*simulated[name, "paper"], yerr=widths[name, "paper"].y, **bars)
    paper_axis = "ε of the whole search, δ = 1e-5 (Theorems 2 and 6)"
    bars_are = "Bars: 95 % intervals of 500 simulated searches"
    right.set(xlim=(2.0, 10.0), xlabel=paper_axis, ylabel="mean accuracy of the released model", title=bars_are)
    right.legend(loc="lower right")
    paths = plotting.save(fig, folder, "figure-7")
    lines = [(style, curves[name, "refined"], label, curves[name, "lower"]) for name, style, label in LAW_ROWS]
    axes = {"xlabel": "ε of the whole search, δ = 1e-5", "ylabel": "mean accuracy of the released model"}
    return paths + picture(folder, "figure-7-refined", lines, "lower right", xlim=(2.0, 10.0), title=SHADED, **axes)


def draw_8(folder: Path, grid: Grid = FULL) -> list[Path]:
    data, more = figure_8(grid), figure_8_epsilon(grid)
    lines = [
        ("eta=1", data["upper"], "Corollary 16, line 2"),
        ("eta=0", data["free"], "Proposition 15, best orders"),
        ("poisson", data["exact"], "exact, three-point mechanism"),
        ("single", data["single"], "one run: 0.1 λ, both ways round"),
    ]
    title = f"Conditional sampling, acceptance probability {ACCEPT:g}"
    axes = {"xlabel": "order λ", "ylabel": "Rényi divergence of the accepted output", "ylim": (0.0, None)}
    paths = picture(folder, "figure-8", lines, title=title, **axes)
    lines = [
        ("eta=1", more["paper"], "Proposition 15"),
        ("eta=0", more["refined"], "refined (privacy profile)"),
        ("poisson", more["lower"], "lower bound"),
    ]
    axes = {"xlabel": "acceptance probability p", "ylabel": "ε of the accepted output, δ = 1e-6", "xscale": "log"}
    return paths + picture(folder, "figure-8-refined", lines, title="Conditional sampling over a 0.1-zCDP run", **axes)


def draw(number: int, folder: Path, grid: Grid = FULL) -> list[Path]:
    """Draw one of the figures 2 to 8."""
    if number in COSTS:
        return draw_costs(number, folder, grid)
    return {2: draw_2, 3: draw_3, 7: draw_7, 8: draw_8}[number](folder, grid)
