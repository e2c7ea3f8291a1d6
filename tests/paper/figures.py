"""Figures 2 to 8 of the paper, from hpcalc's own answers.

Each figure has two halves: a function that returns its numbers (checked by the test suite) and one that draws them,
once with the paper's bounds and once with the refined upper bounds and the lower bounds beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import digits
import numpy as np
import plotting
from numpy.typing import NDArray

import hpcalc
from hpcalc.bounds import paper
from hpcalc.bounds.bound import monotone
from hpcalc.bounds.renyi import refined_renyi
from hpcalc.conversion import RenyiCurve, epsilon_from_rdp
from hpcalc.logspace import Prob

Array = NDArray[np.float64]

RHO = 0.1
DELTA = 1e-6
MEAN = 10.0
SUCCESS_RATE = 0.01
ETAS = (1.0, 0.5, 0.0, -0.5)
LAW_LABELS = {
    "poisson": "Poisson",
    "eta=1": "η = 1 (geometric)",
    "eta=0.5": "η = 0.5",
    "eta=0": "η = 0 (logarithmic)",
    "eta=-0.5": "η = −0.5",
}
"""The five laws of the paper's figures; the keys are names of line styles."""


ORDERS = np.unique(np.concatenate([np.geomspace(1.02, 2.0, 8), np.linspace(2.0, 8.0, 13), np.linspace(8.0, 20.0, 13)]))
MEANS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 40.0, 100.0, 300.0, 1000.0)
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
    orders=ORDERS,
    means=MEANS,
    naive_runs=(1, 2, 3, 5, 10, 20, 40, 60, 100, 160),
    search_means=FIGURE_7_MEANS,
    accepts=tuple(float(p) for p in np.geomspace(1e-3, 0.9, 10)),
    rejection_orders=np.linspace(2.0, 20.0, 37),
)
QUICK = Grid(
    orders=np.array([2.0, 5.0, 20.0]),
    means=(10.0,),
    naive_runs=(1, 10, 100),
    search_means=(8.0,),
    accepts=(0.1,),
    rejection_orders=np.array([2.0, 5.0, 10.0, 20.0]),
)
"""A few points of each curve: for the test that the whole command works."""


@dataclass(frozen=True)
class Curve:
    """One line: what is on both axes."""

    x: Array
    y: Array


def law_with_mean(name: str, mean: float) -> hpcalc.Law:
    """One of the five laws with the given mean (mean 1: exactly one run, but for the Poisson law)."""
    if name == "poisson":
        return hpcalc.Poisson(mean)
    if name == "fixed":
        return hpcalc.Fixed(round(mean))
    eta = float(name.removeprefix("eta="))
    return hpcalc.TruncatedNegativeBinomial.with_mean(eta=eta, mean=mean)


# ---------------------------------------------------------------------------------------------------------------
# Figures 2 and 3: Rényi curves
# ---------------------------------------------------------------------------------------------------------------


def paper_bound(base: hpcalc.Guarantee, law: hpcalc.RunCount) -> RenyiCurve:
    """The theorem that the paper states for the law, read with Remark 5 (a larger order's bound holds too)."""
    if isinstance(law, hpcalc.Poisson):
        return monotone(paper.theorem_6(base, law).curve)
    if isinstance(law, hpcalc.Threshold):
        return paper.proposition_15(base, law).curve
    return monotone(paper.theorem_2(base, law).curve)


def renyi_curve(law: hpcalc.Law, method: str, orders: Array = ORDERS) -> Curve:
    """Rényi bound of the whole search over the 0.1-zCDP base, by the "paper" or "refined"."""
    base = hpcalc.ZCDP(RHO)
    if method == "paper":
        return Curve(orders, paper_bound(base, law).rdp(orders))
    bound = refined_renyi(base, law)
    each = [np.array([order]) for order in orders]
    values = np.array([float(bound.sharpened(order).curve.rdp(order)[0]) for order in each])
    return Curve(orders, np.minimum.accumulate(values[::-1])[::-1])


def renyi_floor(law: hpcalc.Law, order: float, rho: float = RHO) -> float:
    """Divergence that one ρ-zCDP mechanism, a Gaussian with a chosen ordering of its outputs, really has.

    N(0, 1) against N(s, 1), ``s = sqrt(2ρ)``. Outputs above a cut c rank first, as one outcome; the rest follows by
    decreasing privacy loss. The best cut is searched on a grid: any cut gives a valid lower bound.
    """
    from hpcalc.logspace import log_ndtr

    s = math.sqrt(2.0 * rho)
    cuts = np.linspace(-2.0, 7.0, 91)[:, None]
    x = np.linspace(-order * s - 9.0, 8.0, 1201)[None, :]
    inside = x < cuts
    log_u = np.minimum(np.logaddexp(log_ndtr(-cuts), log_ndtr(x)), -1e-300)
    log_v = np.minimum(np.logaddexp(log_ndtr(s - cuts), log_ndtr(x - s)), -1e-300)
    log_w = order * law.log_density(Prob.from_log_u(log_u)) + (1.0 - order) * law.log_density(Prob.from_log_u(log_v))
    centre = (1.0 - order) * s
    log_base = order * (order - 1.0) * s * s / 2.0 - 0.5 * (x - centre) ** 2 - 0.5 * math.log(2.0 * math.pi)
    step = float(x[0, 1] - x[0, 0])
    rest = np.logaddexp.reduce(np.where(inside, log_w + log_base, -np.inf), axis=1) + math.log(step)
    top = order * law.log_survival(Prob.from_log_u(log_ndtr(-cuts[:, 0])))
    top = top + (1.0 - order) * law.log_survival(Prob.from_log_u(log_ndtr(s - cuts[:, 0])))
    total = np.logaddexp(law.log_prob_zero, np.logaddexp(top, rest))
    return float(np.max(total)) / (order - 1.0)


@lru_cache(maxsize=1)
def figure_2(grid: Grid = FULL) -> dict[tuple[float, str], Curve]:
    """Logarithmic law, several means: (mean, "paper" | "refined" | "lower") to Rényi curve."""
    out = {}
    for mean in FIGURE_2_MEANS:
        law = law_with_mean("eta=0", mean)
        for method in ("paper", "refined"):
            out[mean, method] = renyi_curve(law, method, grid.orders)
        out[mean, "lower"] = Curve(grid.orders, np.array([renyi_floor(law, float(o)) for o in grid.orders]))
    return out


@lru_cache(maxsize=1)
def figure_3(grid: Grid = FULL) -> dict[tuple[str, str], Curve]:
    """Five laws at mean 10: (law, "paper" | "refined" | "lower") to Rényi curve; ("naive", "paper") is composition."""
    out = {
        ("naive", "paper"): Curve(grid.orders, MEAN * RHO * grid.orders),
        ("single", "paper"): Curve(grid.orders, RHO * grid.orders),
    }
    for name in LAW_LABELS:
        law = law_with_mean(name, MEAN)
        for method in ("paper", "refined"):
            out[name, method] = renyi_curve(law, method, grid.orders)
        out[name, "lower"] = Curve(grid.orders, np.array([renyi_floor(law, float(o)) for o in grid.orders]))
    return out


# ---------------------------------------------------------------------------------------------------------------
# Figures 4 to 6: (ε, δ) against runs, quantile and success
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What one search costs and what it finds."""

    mean: float
    paper: float
    refined: float
    lower: float
    quantile: float
    success: float


def cost(base: hpcalc.Guarantee, law: hpcalc.Law, delta: float = DELTA, success_rate: float = SUCCESS_RATE) -> Cost:
    """ε by the paper's bounds, by the best bound and from below, with the utility of the search."""
    best = hpcalc.bound(base, law, delta=delta).document()
    found = hpcalc.utility(law, success_rate=success_rate).document()
    return Cost(
        law.mean,
        paper_epsilon(base, law, delta),
        best["epsilon"],
        best["lower_bound"]["epsilon"],
        found["expected_quantile"],
        found["success_probability"],
    )


def paper_epsilon(base: hpcalc.Guarantee, law: hpcalc.RunCount, delta: float) -> float:
    """ε of the paper's theorem for this law."""
    return epsilon_from_rdp(paper_bound(base, law), math.log(delta)).value


def naive_epsilon(runs: int) -> float:
    """ε of composing the 0.1-zCDP run ``runs`` times."""
    return epsilon_from_rdp(hpcalc.repeat(hpcalc.ZCDP(RHO), runs), math.log(DELTA)).value


@lru_cache(maxsize=1)
def costs(grid: Grid = FULL) -> dict[str, list[Cost]]:
    """Every law at every mean; "naive" runs a fixed number of times and pays for each run."""
    out = {name: [cost(hpcalc.ZCDP(RHO), law_with_mean(name, mean)) for mean in grid.means] for name in LAW_LABELS}
    naive = []
    for runs in grid.naive_runs:
        epsilon = naive_epsilon(runs)
        found = hpcalc.utility(hpcalc.Fixed(runs), success_rate=SUCCESS_RATE).document()
        naive.append(Cost(runs, epsilon, epsilon, math.nan, found["expected_quantile"], found["success_probability"]))
    return {**out, "naive": naive}


# ---------------------------------------------------------------------------------------------------------------
# Figure 7: a real search
# ---------------------------------------------------------------------------------------------------------------

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
    prob_zero: float


def dpsgd_base() -> hpcalc.Guarantee:
    """One recorded training run: its Rényi curve for the paper's bounds, its privacy loss for the refined ones."""
    return hpcalc.DPSGD(digits.BATCH / digits.TRAIN_EXAMPLES, digits.NOISE_MULTIPLIER, digits.STEPS)


def simulate(law: hpcalc.Law, accuracies: Array, seed: int, searches: int = SEARCHES) -> tuple[float, float]:
    """Mean winner of simulated searches among recorded runs, and the half-width of its 95 % interval.

    A run picks a learning rate at random, then one of its recorded models at random: every learning rate has equally
    many, so that is one entry of the table at random. Searches that draw K = 0 release nothing and are drawn again.
    """
    import random

    dice = random.Random(seed)
    rng = np.random.default_rng(seed)
    winners = []
    while len(winners) < searches:
        runs = law.sample(dice)
        if runs:
            winners.append(float(np.max(rng.choice(accuracies, size=runs))))
    return float(np.mean(winners)), float(1.96 * np.std(winners, ddof=1) / math.sqrt(searches))


def expected_best(law: hpcalc.Law, accuracies: Array) -> float:
    """Expected accuracy of the winner, given at least one run, by hpcalc's utility."""
    kept = hpcalc.AtLeastOne(law) if law.prob_zero > 0.0 else law
    return float(hpcalc.utility(kept, scores=[float(a) for a in accuracies]).document()["expected_score"])


@lru_cache(maxsize=1)
def figure_7(grid: Grid = FULL) -> dict[str, list[Search]]:
    """Five laws: cost and winner of the search over the recorded digits models."""
    base = dpsgd_base()
    _, accuracies = digits.read_scores()
    out: dict[str, list[Search]] = {}
    for row, name in enumerate(LAW_LABELS):
        out[name] = []
        for column, mean in enumerate(grid.search_means):
            law = law_with_mean(name, mean)
            best = hpcalc.bound(base, law, delta=FIGURE_7_DELTA).document()
            mean_best, half = simulate(law, accuracies, seed=1000 * row + column)
            out[name].append(
                Search(
                    mean=mean,
                    paper=paper_epsilon(base, law, FIGURE_7_DELTA),
                    refined=best["epsilon"],
                    lower=best["lower_bound"]["epsilon"],
                    expected=expected_best(law, accuracies),
                    simulated=mean_best,
                    half_width=half,
                    prob_zero=law.prob_zero,
                )
            )
    return out


# ---------------------------------------------------------------------------------------------------------------
# Figure 8: conditional sampling
# ---------------------------------------------------------------------------------------------------------------

ACCEPT = 0.1


@dataclass(frozen=True)
class Rejection:
    """Three outcomes: two that are accepted, (a, a e^-s) and (p - a, (p - a) e^t), and one that is not."""

    s: float
    t: float
    log_q: Array
    log_q_other: Array

    def exact(self, order: float) -> float:
        """Divergence of the first accepted output."""
        accepted = np.logaddexp(*self.log_q[:2])
        accepted_other = np.logaddexp(*self.log_q_other[:2])
        return _divergence(order, self.log_q[:2] - accepted, self.log_q_other[:2] - accepted_other)


def _divergence(order: float, log_p: Array, log_q: Array) -> float:
    return float(np.logaddexp.reduce(order * log_p + (1.0 - order) * log_q)) / (order - 1.0)


def _bisect(function: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(200):
        middle = 0.5 * (low + high)
        if function(middle) < 0.0:
            low = middle
        else:
            high = middle
    return low


def rejection(order: float, accept: float = ACCEPT, rdp: float | None = None) -> Rejection:
    """Choose s and t so that both divergences of one run are ``rdp`` (0.1 λ) at this order (Appendix D.2)."""
    budget = RHO * order if rdp is None else rdp
    log_a = math.log(accept) - 30.0
    log_b = math.log(accept) + math.log1p(-math.exp(-30.0))

    def laws(s: float, t: float) -> tuple[Array, Array]:
        kept = math.exp(log_a - s) + math.exp(log_b + t)
        return (
            np.array([log_a, log_b, math.log1p(-accept)]),
            np.array([log_a - s, log_b + t, math.log1p(-kept)]),
        )

    t = _bisect(lambda t: _divergence(order, *laws(700.0, t)[::-1]) - budget, 0.0, -math.log(accept) - 1e-9)
    s = _bisect(lambda s: _divergence(order, *laws(s, t)) - budget, 0.0, 700.0)
    return Rejection(s, t, *laws(s, t))


def _line_2(base: hpcalc.Guarantee, accept: float, order: Array) -> Array:
    """Corollary 16, line 2, at orders of at least 2."""
    h = order - 1.0
    test = np.where(h > 1.0, (1.0 - 1.0 / h) * base.rdp(np.maximum(h, 1.0 + 1e-12)), 0.0)
    return np.asarray(base.rdp(order) + test - 2.0 * math.log(accept) / h, dtype=float)


@lru_cache(maxsize=1)
def figure_8(grid: Grid = FULL) -> dict[str, Curve]:
    """Rényi divergence of conditional sampling over a run of which one order is known, both ways round.

    "upper" is Corollary 16's second line, "free" Proposition 15 with its best orders, "exact" the mechanism's value.
    """
    law = hpcalc.Threshold(ACCEPT)
    line_2, free, exact = [], [], []
    for order in grid.rejection_orders:
        at = np.array([order])
        base = hpcalc.RDPCurve({float(order): RHO * float(order)})
        line_2.append(float(_line_2(base, law.accept, at)[0]))
        free.append(float(paper.proposition_15(base, law).curve.rdp(at)[0]))
        exact.append(rejection(float(order)).exact(float(order)))
    return {
        "upper": Curve(grid.rejection_orders, np.array(line_2)),
        "free": Curve(grid.rejection_orders, np.array(free)),
        "exact": Curve(grid.rejection_orders, np.array(exact)),
        "single": Curve(grid.rejection_orders, RHO * grid.rejection_orders),
    }


@lru_cache(maxsize=1)
def figure_8_epsilon(grid: Grid = FULL) -> dict[str, Curve]:
    """ε at δ = 1e-6 of conditional sampling over the 0.1-zCDP base: "paper", "refined", "lower"."""
    out: dict[str, list[float]] = {"paper": [], "refined": [], "lower": []}
    for accept in grid.accepts:
        law = hpcalc.Threshold(accept)
        out["paper"].append(paper_epsilon(hpcalc.ZCDP(RHO), law, DELTA))
        best = hpcalc.bound(hpcalc.ZCDP(RHO), law, delta=DELTA).document()
        out["refined"].append(best["epsilon"])
        out["lower"].append(best["lower_bound"]["epsilon"])
    return {name: Curve(np.array(grid.accepts), np.array(values)) for name, values in out.items()}


# ---------------------------------------------------------------------------------------------------------------
# Drawing
# ---------------------------------------------------------------------------------------------------------------


def _axes(width: float = 6.4, height: float = 4.4) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height))


def _pair(width: float = 11.0, height: float = 4.4) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(1, 2, figsize=(width, height))


MEAN_STYLES = ("eta=-0.5", "eta=0", "eta=1", "poisson")


def _band(ax: Any, style: str, upper: Curve, lower: Curve, label: str) -> None:
    """A refined bound as the law's line, the lower bound as a shade that hangs from it."""
    plotting.line(ax, style, upper.x, upper.y, label)
    ax.fill_between(upper.x, lower.y, upper.y, color=plotting.STYLES[style]["color"], alpha=0.18, linewidth=0)


def draw_2(folder: Path, grid: Grid = FULL) -> list[Path]:
    data = figure_2(grid)
    fig, ax = _axes()
    for mean, style in reversed(list(zip(FIGURE_2_MEANS, MEAN_STYLES, strict=True))):
        plotting.line(ax, style, *_xy(data[mean, "paper"]), f"E[K] = {mean:g}")
    plotting.line(ax, "single", grid.orders, RHO * grid.orders, "one run (0.1-zCDP)")
    _renyi_labels(ax, "Logarithmic law (η = 0), Theorem 2")
    paths = plotting.save(fig, folder, "figure-2")

    fig, ax = _axes()
    for mean, style in reversed(list(zip(FIGURE_2_MEANS, MEAN_STYLES, strict=True))):
        _band(ax, style, data[mean, "refined"], data[mean, "lower"], f"E[K] = {mean:g}")
        ax.plot(*_xy(data[mean, "paper"]), color=plotting.STYLES[style]["color"], linewidth=0.9, alpha=0.6)
    plotting.line(ax, "single", grid.orders, RHO * grid.orders, "one run (0.1-zCDP)")
    _renyi_labels(ax, "Logarithmic law: refined bound, shaded down to a lower bound;\nthin: Theorem 2")
    return paths + plotting.save(fig, folder, "figure-2-refined")


def draw_3(folder: Path, grid: Grid = FULL) -> list[Path]:
    data = figure_3(grid)
    fig, ax = _axes()
    plotting.line(ax, "naive", *_xy(data["naive", "paper"]), "composition of 10 runs")
    for name, label in LAW_LABELS.items():
        plotting.line(ax, name, *_xy(data[name, "paper"]), label)
    plotting.line(ax, "single", grid.orders, RHO * grid.orders, "one run (0.1-zCDP)")
    _renyi_labels(ax, "E[K] = 10, Theorems 2 and 6")
    ax.set_ylim(0.0, 8.0)
    paths = plotting.save(fig, folder, "figure-3")

    fig, ax = _axes()
    plotting.line(ax, "naive", *_xy(data["naive", "paper"]), "composition of 10 runs")
    for name, label in LAW_LABELS.items():
        _band(ax, name, data[name, "refined"], data[name, "lower"], label)
    plotting.line(ax, "single", grid.orders, RHO * grid.orders, "one run (0.1-zCDP)")
    _renyi_labels(ax, "E[K] = 10: refined bound, shaded down to a lower bound")
    ax.set_ylim(0.0, 8.0)
    return paths + plotting.save(fig, folder, "figure-3-refined")


def _xy(curve: Curve) -> tuple[Array, Array]:
    return curve.x, curve.y


def _renyi_labels(ax: Any, title: str) -> None:
    ax.set_xlabel("order λ")
    ax.set_ylabel("Rényi divergence bound ε(λ)")
    ax.set_title(title)
    ax.set_xlim(1.0, float(ORDERS[-1]))
    ax.set_ylim(bottom=0.0)
    ax.legend()


def _cost_curve(rows: Sequence[Cost], x: str, y: str) -> tuple[Array, Array]:
    return np.array([getattr(row, x) for row in rows]), np.array([getattr(row, y) for row in rows])


def _draw_costs(
    folder: Path, grid: Grid, number: int, x: str, y: str, finish: Callable[[Any], None], title: str
) -> list[Path]:
    """Figures 4 to 6 differ in what is on the axes; the cost is ``x`` or ``y``, named "cost" here."""
    paths = []
    for suffix, which in (("", "paper"), ("-refined", "refined")):
        fig, ax = _axes()
        names = {"naive": "composition, fixed K", **LAW_LABELS}
        for name, label in names.items():
            rows = costs(grid)[name]
            xs, ys = _cost_curve(rows, which if x == "cost" else x, which if y == "cost" else y)
            plotting.line(ax, name, xs, ys, label, markevery=1)
            if which == "refined" and name != "naive":
                low_x, low_y = _cost_curve(rows, "lower" if x == "cost" else x, "lower" if y == "cost" else y)
                ax.plot(low_x, low_y, color=plotting.STYLES[name]["color"], linewidth=0.7, linestyle="-")
        ax.set_title(title if which == "paper" else f"{title}:\nrefined bounds; thin solid lines: lower bounds")
        finish(ax)
        paths += plotting.save(fig, folder, f"figure-{number}{suffix}")
    return paths


def draw_4(folder: Path, grid: Grid = FULL) -> list[Path]:
    def finish(ax: Any) -> None:
        ax.set_xscale("log")
        ax.set_xlim(1.0, 1000.0)
        ax.set_ylim(2.0, 10.0)
        ax.set_xlabel("expected number of runs E[K]")
        ax.set_ylabel("ε of the whole search, δ = 1e-6")
        ax.legend(loc="upper left")

    return _draw_costs(folder, grid, 4, "mean", "cost", finish, "Privacy against the number of runs, 0.1-zCDP base")


def draw_5(folder: Path, grid: Grid = FULL) -> list[Path]:
    def finish(ax: Any) -> None:
        ax.set_xlim(2.0, 8.0)
        ax.set_ylim(0.3, 1.0)
        ax.set_xlabel("ε of the whole search, δ = 1e-6")
        ax.set_ylabel("expected quantile of the released run")
        ax.legend(loc="lower right")

    return _draw_costs(folder, grid, 5, "cost", "quantile", finish, "Expected quantile against privacy, 0.1-zCDP base")


def draw_6(folder: Path, grid: Grid = FULL) -> list[Path]:
    def finish(ax: Any) -> None:
        ax.set_xlim(2.0, 10.0)
        ax.set_ylim(0.0, 1.0)
        ax.set_xlabel("ε of the whole search, δ = 1e-6")
        ax.set_ylabel("probability β of a good result")
        ax.legend(loc="upper right")

    return _draw_costs(folder, grid, 6, "cost", "success", finish, "Success against privacy, one good candidate in 100")


def draw_7(folder: Path, grid: Grid = FULL) -> list[Path]:
    data = figure_7(grid)
    rates, accuracies = digits.read_scores()
    fig, (left, right) = _pair()
    grid = np.unique(rates)
    low, middle, high = (
        np.array([np.quantile(accuracies[rates == rate], q) for rate in grid]) for q in (0.05, 0.5, 0.95)
    )
    left.fill_between(grid, low, high, color="0.8", label="5 % to 95 % of the runs")
    left.plot(grid, middle, color="black", marker="o", label="median run")
    left.set_xscale("log")
    left.set_xlabel("learning rate")
    left.set_ylabel("held-out accuracy of one private run")
    left.set_title(f"{len(accuracies)} recorded runs of DP-SGD on the digits")
    left.legend(loc="lower center")
    for name, label in LAW_LABELS.items():
        rows = data[name]
        plotting.line(right, name, [r.paper for r in rows], [r.expected for r in rows], label, markevery=1)
        right.errorbar(
            [r.paper for r in rows],
            [r.simulated for r in rows],
            yerr=[r.half_width for r in rows],
            fmt="none",
            ecolor=plotting.STYLES[name]["color"],
            elinewidth=0.8,
            capsize=2,
        )
    right.set_xlim(2.0, 10.0)
    right.set_xlabel("ε of the whole search, δ = 1e-5 (Theorems 2 and 6)")
    right.set_ylabel("mean accuracy of the released model")
    right.set_title("Bars: 95 % intervals of 500 simulated searches")
    right.legend(loc="lower right")
    paths = plotting.save(fig, folder, "figure-7")

    fig, ax = _axes()
    for name, label in LAW_LABELS.items():
        rows = data[name]
        plotting.line(ax, name, [r.refined for r in rows], [r.expected for r in rows], label, markevery=1)
        ax.plot(
            [r.lower for r in rows],
            [r.expected for r in rows],
            color=plotting.STYLES[name]["color"],
            linewidth=0.7,
        )
    ax.set_xlim(2.0, 10.0)
    ax.set_xlabel("ε of the whole search, δ = 1e-5")
    ax.set_ylabel("mean accuracy of the released model")
    ax.set_title("Refined bounds; thin solid lines: lower bounds")
    ax.legend(loc="lower right")
    return paths + plotting.save(fig, folder, "figure-7-refined")


def draw_8(folder: Path, grid: Grid = FULL) -> list[Path]:
    data = figure_8(grid)
    fig, ax = _axes()
    plotting.line(ax, "eta=1", *_xy(data["upper"]), "Corollary 16, line 2")
    plotting.line(ax, "eta=0", *_xy(data["free"]), "Proposition 15, best orders", marker="")
    plotting.line(ax, "poisson", *_xy(data["exact"]), "exact, three-point mechanism", markevery=(3, 6))
    plotting.line(ax, "single", *_xy(data["single"]), "one run: 0.1 λ, both ways round")
    ax.set_xlabel("order λ")
    ax.set_ylabel("Rényi divergence of the accepted output")
    ax.set_title(f"Conditional sampling, acceptance probability {ACCEPT:g}")
    ax.set_ylim(bottom=0.0)
    ax.legend()
    paths = plotting.save(fig, folder, "figure-8")

    more = figure_8_epsilon(grid)
    fig, ax = _axes()
    plotting.line(ax, "eta=1", *_xy(more["paper"]), "Proposition 15")
    plotting.line(ax, "eta=0", *_xy(more["refined"]), "refined (privacy profile)")
    plotting.line(ax, "poisson", *_xy(more["lower"]), "lower bound")
    ax.set_xscale("log")
    ax.set_xlabel("acceptance probability p")
    ax.set_ylabel("ε of the accepted output, δ = 1e-6")
    ax.set_title("Conditional sampling over a 0.1-zCDP run")
    ax.legend()
    return paths + plotting.save(fig, folder, "figure-8-refined")


DRAWINGS = {2: draw_2, 3: draw_3, 4: draw_4, 5: draw_5, 6: draw_6, 7: draw_7, 8: draw_8}
