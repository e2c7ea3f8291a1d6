"""Figure 1: tuning on the data itself leaks, measured on a soft-margin support vector machine.

Two Gaussian classes, 200 training points, with or without eight outliers that carry the wrong label. The weight α of
the hinge loss (scikit-learn's ``C``) is tuned on held-out points: the best α with the outliers in is about a hundredth
of the best α without them, so whoever sees nothing but the winning α can tell which it was.

Then the same tuning as the paper proposes: every run releases a differentially private model, the number of runs is
drawn from the logarithmic law, and only the winner is shown.

The private run. ``w`` minimises ``|w|²/2 + α Σ max(0, 1 - y <w, x>)`` over points of norm at most ``RADIUS`` (the
constant feature included). The objective is 1-strongly convex and one record changes its subgradient by at most
``α RADIUS``, so ``w`` moves by at most ``α RADIUS``. Gaussian noise of ``σ α RADIUS`` per coordinate makes one run a
Gaussian mechanism with noise multiplier σ, whatever α: one guarantee for every candidate. Eight outliers differ by
eight records, where the noise multiplier is σ/8. The score uses held-out points only.
"""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SEED = 20211007
POINTS = 200
OUTLIERS = 8
MEAN = np.array([1.0, 0.0])
COVARIANCE = np.array([[1.0, 0.8], [0.8, 1.0]])
OUTLIER_CENTRE = np.array([3.0, 3.0])
OUTLIER_SPREAD = 0.3
HELD_OUT = 4000
RADIUS = 5.0
ALPHAS = np.logspace(-4, 1, 21)
NOISE_MULTIPLIERS = (4.0, 8.0, 16.0, 32.0)
MEAN_RUNS = 10.0


@dataclass(frozen=True)
class Guess:
    """How often an observer of the winning α guesses right whether the outliers were in (0.5 is a coin)."""

    accuracy: float
    half_width: float
    """Of the 95 % confidence interval; the data sets, not the searches, are the independent units."""


@dataclass(frozen=True)
class Curves:
    """Held-out accuracy, shape (2, data sets, alphas): row 0 without the outliers, row 1 with them."""

    accuracy: Array
    weights: Array
    """Trained (w1, w2, bias), shape (2, data sets, alphas, 3): what the private runs add noise to."""
    features: Array
    """Held-out points with their constant feature times their label, shape (data sets, HELD_OUT, 3)."""

    @property
    def best(self) -> NDArray[np.int64]:
        """Index of the winning α, shape (2, data sets); the smallest α among equals."""
        return np.argmax(self.accuracy, axis=2)


def points(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """``count`` points, half in each class, constant feature appended, clipped to ``RADIUS``."""
    labels = np.repeat([1.0, -1.0], count // 2)
    x = rng.multivariate_normal(np.zeros(2), COVARIANCE, count) + labels[:, None] * MEAN
    return clip(x), labels


def clip(x: Array) -> Array:
    """Append the constant feature and scale long points down to norm ``RADIUS``."""
    full = np.hstack([x, np.ones((len(x), 1))])
    return full * np.minimum(1.0, RADIUS / np.linalg.norm(full, axis=1, keepdims=True))


def fit(x: Array, labels: Array, alpha: float) -> Array:
    """The soft-margin support vector machine: weights (w1, w2, bias); the bias is a weight like the others."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    # the dual is the one form that the hinge loss has
    settings = {"loss": "hinge", "dual": True, "fit_intercept": False, "max_iter": 3000, "tol": 1e-3}
    machine = LinearSVC(C=alpha, random_state=0, **settings)
    with warnings.catch_warnings():
        # At large α the solver stops within a thousandth of the optimum: nothing to this figure.
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(x, labels)
    return np.asarray(machine.coef_[0], dtype=float)


def curves(data_sets: int = 60) -> Curves:
    """Train on every data set, without and with its outliers, at every α."""
    accuracy = np.empty((2, data_sets, len(ALPHAS)))
    weights = np.empty((2, data_sets, len(ALPHAS), 3))
    features = np.empty((data_sets, HELD_OUT, 3))
    for index in range(data_sets):
        rng = np.random.default_rng([SEED, index])
        x, labels = points(rng, POINTS)
        outliers = clip(OUTLIER_CENTRE + OUTLIER_SPREAD * rng.normal(size=(OUTLIERS, 2)))
        test, test_labels = points(rng, HELD_OUT)
        features[index] = test * test_labels[:, None]
        for present in (0, 1):
            if present:
                x, labels = np.vstack([x, outliers]), np.concatenate([labels, np.full(OUTLIERS, -1.0)])
            for j, alpha in enumerate(ALPHAS):
                weights[present, index, j] = fit(x, labels, float(alpha))
            accuracy[present, index] = np.mean(features[index] @ weights[present, index].T > 0.0, axis=0)
    return Curves(accuracy, weights, features)


def guess(winners: NDArray[np.int64]) -> Guess:
    """Accuracy of the best guess from the winning α; winners has shape (2, data sets) or (2, data sets, searches).

    The observer knows the law of the winning α in both worlds from the first half of the data sets (frequencies, one
    added to each, smoothed over neighbouring values) and guesses the likelier world on the second half.
    """
    winners = winners.reshape(2, winners.shape[1], -1)
    half = winners.shape[1] // 2
    kernel = np.array([0.25, 0.5, 0.25])
    counts = [np.bincount(winners[world, :half].ravel(), minlength=len(ALPHAS)) + 1.0 for world in (0, 1)]
    smooth = [np.convolve(c / c.sum(), kernel, mode="same") for c in counts]
    say_present = smooth[1] > smooth[0]
    right = 0.5 * (say_present[winners[1, half:]].mean(axis=1) + (~say_present[winners[0, half:]]).mean(axis=1))
    return Guess(float(right.mean()), float(1.96 * right.std(ddof=1) / np.sqrt(len(right))))


def private_winners(
    trained: Curves, noise_multiplier: float, law: Any, searches: int = 40
) -> tuple[NDArray[np.int64], Array]:
    """Winning α and its held-out accuracy of private searches, shapes (2, data sets, searches).

    ``law`` is a law of hpcalc: its ``sample`` draws the number of runs, as ``hpcalc draw`` does (here from a seeded
    generator, so that the figure is the same twice; a real search uses the operating system's entropy).
    """
    dice = random.Random(SEED)
    rng = np.random.default_rng([SEED, int(noise_multiplier)])
    data_sets = trained.weights.shape[1]
    winners = np.empty((2, data_sets, searches), dtype=np.int64)
    scores = np.empty((2, data_sets, searches))
    for world in (0, 1):
        for index in range(data_sets):
            runs = np.array([law.sample(dice) for _ in range(searches)])
            candidates = rng.integers(len(ALPHAS), size=int(runs.sum()))
            noise = rng.normal(size=(len(candidates), 3)) * (noise_multiplier * RADIUS * ALPHAS[candidates])[:, None]
            noisy = trained.weights[world, index, candidates] + noise
            score = np.mean(trained.features[index, ::4] @ noisy.T > 0.0, axis=0)
            for search, group in enumerate(np.split(np.arange(len(candidates)), np.cumsum(runs)[:-1])):
                best = group[np.argmax(score[group])]
                winners[world, index, search] = candidates[best]
                scores[world, index, search] = score[best]
    return winners, scores


def best_guess_limit(epsilon: float, delta: float) -> float:
    """Largest accuracy of any guess between two equally likely inputs that an (ε, δ)-DP output allows."""
    return 0.5 + 0.5 * (np.expm1(epsilon) + 2.0 * delta) / (np.exp(epsilon) + 1.0)


def search_limit(noise_multiplier: float, deltas: tuple[float, ...] = (0.1, 0.3)) -> float:
    """What hpcalc's bound for the whole search leaves to anyone who guesses whether all eight outliers were in."""
    import hpcalc

    base = hpcalc.Gaussian(noise_multiplier / OUTLIERS)
    law = hpcalc.TruncatedNegativeBinomial.with_mean(eta=0.0, mean=MEAN_RUNS)
    limits = [1.0]
    for delta in deltas:
        epsilon = hpcalc.bound(base, law, delta=delta).document()["epsilon"]
        if epsilon is not None:
            limits.append(float(best_guess_limit(epsilon, delta)))
    return min(limits)


@dataclass(frozen=True)
class Leak:
    """One noise multiplier: what an observer of the winning α achieves, what anyone could, and what it costs."""

    noise_multiplier: float
    guess: Guess
    limit: float
    accuracy: float
    """Mean held-out accuracy of the released classifier."""


@dataclass(frozen=True)
class Figure1:
    """Everything Figure 1 shows."""

    curves: Curves
    plain: Guess
    private: list[Leak]
    plain_accuracy: float

    @property
    def median_alpha(self) -> tuple[float, float]:
        """Median of the winning α without and with the outliers."""
        without, present = (float(np.median(ALPHAS[self.curves.best[world]])) for world in (0, 1))
        return without, present


def figure_1(
    data_sets: int = 60, searches: int = 40, noise_multipliers: tuple[float, ...] = NOISE_MULTIPLIERS
) -> Figure1:
    """Train, tune, guess; then the same with private searches."""
    import hpcalc

    trained = curves(data_sets)
    law = hpcalc.TruncatedNegativeBinomial.with_mean(eta=0.0, mean=MEAN_RUNS)
    private = []
    for noise_multiplier in noise_multipliers:
        winners, scores = private_winners(trained, noise_multiplier, law, searches)
        private.append(Leak(noise_multiplier, guess(winners), search_limit(noise_multiplier), float(scores.mean())))
    plain_accuracy = float(np.max(trained.accuracy, axis=2).mean())
    return Figure1(trained, guess(trained.best), private, plain_accuracy)


def draw_1(data: Figure1, folder: Any) -> list[Any]:
    """Tuning curves, winning values and the membership signal."""
    import matplotlib.pyplot as plt
    import plotting

    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4.3), width_ratios=[1.2, 1.0, 1.1])
    worlds = (("without outliers", "#0072b2", "-", "o", ""), ("with eight outliers", "#d55e00", "--", "s", "//"))
    for world, (label, color, dashes, marker, _) in enumerate(worlds):
        mean, spread = data.curves.accuracy[world].mean(axis=0), data.curves.accuracy[world].std(axis=0, ddof=1)
        left.plot(ALPHAS, mean, color=color, linestyle=dashes, marker=marker, markevery=2, label=label)
        left.fill_between(ALPHAS, mean - spread, mean + spread, color=color, alpha=0.18, linewidth=0)
    left.set(xscale="log", xlabel="weight α of the hinge loss", title="Tuning curves",
             ylabel="held-out accuracy (mean ± sd over data sets)")  # fmt: skip
    left.legend(loc="lower right")

    edges = np.arange(len(ALPHAS) + 1) - 0.5
    for world, (label, color, dashes, _, hatch) in enumerate(worlds):
        counts = np.bincount(data.curves.best[world], minlength=len(ALPHAS))
        middle.stairs(counts, edges, color=color, linestyle=dashes, fill=False, hatch=hatch, linewidth=1.6, label=label)
    ticks = np.arange(0, len(ALPHAS), 4)
    middle.set_xticks(ticks, [f"{ALPHAS[i]:g}" for i in ticks])
    middle.set_ylim(top=1.35 * middle.get_ylim()[1])
    middle.set(xlabel="best α", ylabel="data sets", title="The winning α gives the outliers away")
    middle.legend(loc="upper right")

    positions = np.arange(len(data.private) + 1)
    guesses = [data.plain, *(leak.guess for leak in data.private)]
    accuracies, widths = [g.accuracy for g in guesses], [g.half_width for g in guesses]
    bars = "guess from the winning α (95 % interval)"
    right.errorbar(positions, accuracies, yerr=widths, fmt="ko", capsize=3, label=bars)
    limits, bound = [leak.limit for leak in data.private], "limit by hpcalc's bound, any attack"
    right.plot(positions[1:], limits, color="0.35", linestyle="--", marker="v", label=bound)
    right.axhline(0.5, color="0.6", linewidth=1.0, linestyle=":")
    right.annotate("a coin", (0.0, 0.5), ha="left", va="bottom", xytext=(-8, 3), textcoords="offset points")
    right.set_xticks(positions, ["no noise", *(f"σ = {leak.noise_multiplier:g}" for leak in data.private)])
    right.set(ylim=(0.4, 1.18), yticks=np.arange(0.4, 1.05, 0.1), xlabel="noise multiplier of one run (one record)",
              ylabel="accuracy of the guess", title="Were the eight outliers in?")  # fmt: skip
    right.legend(loc="upper right")
    return plotting.save(fig, folder, "figure-1")
