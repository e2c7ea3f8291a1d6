"""Key points of every reproduced figure against formulas written here a second time, and every claim of the paper.

Theory is checked to 1e-4 against closed forms, mpmath or a plain numerical search; experiments within confidence
intervals. Nothing here takes hpcalc's word for hpcalc.
"""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import exact
import mpmath
import numpy as np
import pytest
import scipy  # its optimize when it is asked for
from mechanisms import best_of_k, renyi
from scipy.special import ndtr

import hpcalc

PAPER = Path(__file__).with_name("paper")
if str(PAPER) not in sys.path:
    sys.path.append(str(PAPER))

import claims  # noqa: E402
import digits  # noqa: E402
import figures  # noqa: E402
import svm  # noqa: E402

RHO = 0.1
DELTA = 1e-6
TO_FOUR_DIGITS = {"rel": 0.0, "abs": 1e-4}


# The formulas, once more


def least(function, low, high, accuracy):
    bounds = {"bounds": (low, high), "method": "bounded", "options": {"xatol": accuracy}}
    return float(scipy.optimize.minimize_scalar(function, **bounds).fun)


def root(function, low, high):
    return float(scipy.optimize.brentq(function, low, high, xtol=1e-14))


def cks(curve, delta=DELTA):
    """Smallest ε that Canonne, Kamath and Steinke's conversion gives over all orders."""

    def at(log_h):
        order = 1.0 + math.exp(log_h)
        return curve(order) + math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)

    start = min(np.linspace(-6.0, 9.0, 301), key=at)
    return least(at, start - 0.1, start + 0.1, 1e-10)


def theorem(name, mean):
    """Theorem 6 or 2 over the 0.1-zCDP base at the best free order, which is sqrt(log(1/γ)/ρ) where that is above 1."""
    law = figures.law_with_mean(name, mean)
    if name != "poisson":
        free = max(1.0, math.sqrt(-law.log_gamma / RHO))
        extra = (1 + law.eta) * (RHO * (free - 1.0) - law.log_gamma / free)
        return lambda order: RHO * order + extra + math.log(mean) / (order - 1.0)

    orders = 1.0 + np.exp(np.linspace(-8.0, 6.0, 2001))
    at_zero = (orders - 1.0) * (RHO * orders + np.log1p(-1.0 / orders)) - np.log(orders)

    def at(order):
        hat = math.log1p(1.0 / (order - 1.0))
        log_delta = float(np.min(at_zero - (orders - 1.0) * hat))  # of the base at hat, by the same conversion
        return RHO * order + mean * math.exp(log_delta) + math.log(mean) / (order - 1.0)

    return at


def monotone(curve, orders):
    """Remark 5: the least value over larger orders."""
    return [min(least(curve, x, 200.0, 1e-9), curve(x)) for x in orders]


GRID = np.concatenate([1.0 + np.geomspace(1e-3, 1.0, 150), np.linspace(2.0, 60.0, 400)])


def _log_moment(order, a, b):
    """log of Σ p^order q^(1 - order) for Bernoulli laws with success probabilities a and b."""
    return np.logaddexp(
        order * math.log(a) + (1 - order) * math.log(b), order * math.log1p(-a) + (1 - order) * math.log1p(-b)
    )


def region(u):
    """Largest v that 0.1-zCDP allows for u, both ways round."""

    def excess(logit):
        v = 1.0 / (1.0 + math.exp(-logit))
        budget = (GRID - 1.0) * RHO * GRID
        return float(np.max(np.maximum(_log_moment(GRID, u, v), _log_moment(GRID, v, u)) - budget))

    start = math.log(u / (1.0 - u))
    return 1.0 / (1.0 + math.exp(-root(excess, start + 1e-9, start + 30.0)))


def refined_rdp(law, order):
    """The refined Rényi bound log(1 + M (e^((λ-1)ρλ) - 1))/(λ - 1), M searched directly."""

    def log_density(u):
        return math.log(exact.density(law, u, m=np))

    def minus_log_w(logit):
        u = 1.0 / (1.0 + math.exp(-logit))
        return -(order * log_density(u) + (1.0 - order) * log_density(region(u)))

    start = min(np.linspace(-14.0, 0.0, 29), key=minus_log_w)
    log_m = -least(minus_log_w, start - 0.6, start + 0.6, 1e-6)
    return math.log1p(math.exp(log_m) * math.expm1((order - 1.0) * RHO * order)) / (order - 1.0)


# Figures 2 and 3


@pytest.mark.parametrize(
    ("name", "mean"), [("eta=0", 2.0), ("eta=0", 1000.0), *((name, 10.0) for name in figures.LAW_LABELS)]
)
def test_figures_2_and_3_paper(name, mean):
    orders = np.array([1.5, 2.0, 5.0, 20.0])
    drawn = figures.renyi_curve(figures.law_with_mean(name, mean), "paper", orders)
    assert drawn.y == pytest.approx(monotone(theorem(name, mean), orders), **TO_FOUR_DIGITS)


def test_figure_2_is_flat_and_then_rises():
    flat_end = 1.0 + math.sqrt(math.log(1000.0) / RHO)
    orders = np.array([1.1, 4.0, flat_end, 60.0, 61.0])
    y = figures.renyi_curve(figures.law_with_mean("eta=0", 1000.0), "paper", orders).y
    assert y[:3] == pytest.approx([y[0]] * 3, abs=1e-6)
    assert y[4] - y[3] == pytest.approx(RHO, abs=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "order"), [("eta=0", 2.0), ("eta=1", 2.0), ("poisson", 5.0)])
def test_figures_2_and_3_refined_and_lower(name, order):
    law = figures.law_with_mean(name, 10.0)
    drawn = float(figures.renyi_curve(law, "refined", np.array([order])).y[0])
    assert drawn == pytest.approx(refined_rdp(law, order), **TO_FOUR_DIGITS)
    lower = figures.renyi_floor(law, order)
    assert RHO * order < lower <= drawn


def test_the_lower_bound_of_one_run_is_the_run():
    assert figures.renyi_floor(hpcalc.Fixed(1), 3.0) == pytest.approx(0.3, abs=1e-6)


def test_the_lower_bound_by_plain_quadrature():
    """Geometric K, one cut, every factor in plain floats: the search over cuts cannot end below it."""
    gamma, order, s, cut = 0.1, 2.0, math.sqrt(2.0 * RHO), 2.0
    x = np.linspace(-12.0, cut, 200_001)
    u, v = ndtr(-cut) + ndtr(x), ndtr(s - cut) + ndtr(x - s)

    def pdf(x):
        return np.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)

    def density(r):
        return gamma / (gamma + (1 - gamma) * r) ** 2

    def survival(r):
        return r / (gamma + (1 - gamma) * r)

    p, q = density(u) * pdf(x), density(v) * pdf(x - s)
    total = np.sum(p**order * q ** (1 - order)) * (x[1] - x[0])
    total += survival(ndtr(-cut)) ** order * survival(ndtr(s - cut)) ** (1 - order)
    law = hpcalc.TruncatedNegativeBinomial(1.0, gamma)
    assert figures.renyi_floor(law, order) >= math.log(total) / (order - 1.0) - 1e-4


# Figures 4 to 6

# (law, mean): (refined ε, ε of an explicit 0.1-zCDP mechanism) at δ = 1e-6, both from a separate program that searches
# the rank curve and the three-point mechanisms directly, without hpcalc's grids or its safety margins.
KNOWN = {
    ("poisson", 10.0): (4.2257786623, 4.2254445634),
    ("eta=-0.5", 10.0): (2.8311840508, 2.8310259006),
    ("eta=1", 100.0): (4.1301215, 4.1299026),
}


@pytest.mark.parametrize("name", figures.LAW_LABELS)
@pytest.mark.parametrize("mean", [1.0, 10.0, 300.0])
def test_figure_4_paper(name, mean):
    one_run = mean == 1.0 and name != "poisson"
    expected = cks((lambda order: RHO * order) if one_run else theorem(name, mean))
    law = figures.law_with_mean(name, mean)
    assert figures.paper_epsilon(figures.ZCDP, law) == pytest.approx(expected, **TO_FOUR_DIGITS)


@pytest.mark.parametrize("runs", [1, 10, 100])
def test_figure_4_composition(runs):
    assert figures.naive_epsilon(runs) == pytest.approx(cks(lambda order: runs * RHO * order), **TO_FOUR_DIGITS)


@pytest.mark.parametrize(("name", "mean"), list(KNOWN))
def test_figures_4_to_6_refined_and_lower(name, mean):
    refined, lower = KNOWN[name, mean]
    row, law = figures.cost(name, mean), figures.law_with_mean(name, mean)
    assert row.refined == pytest.approx(refined, **TO_FOUR_DIGITS)
    assert lower * (1.0 - 5e-4) <= row.lower <= row.refined
    assert row.refined < row.paper
    with mpmath.workdps(20):
        quantile = 1 - mpmath.quad(lambda x: exact.pgf(law, 1 - x, x), [0, 0.5, 0.9, 0.99, 1])
    assert row.quantile == pytest.approx(float(quantile), **TO_FOUR_DIGITS)
    assert row.success == pytest.approx(float(exact.survival(law, mpmath.mpf("0.01"))), **TO_FOUR_DIGITS)


# Figure 7


def test_scores_are_what_the_experiment_needs():
    rates, counts = np.unique(digits.read_scores()[0], return_counts=True)
    assert rates == pytest.approx(digits.LEARNING_RATES)
    assert rates[-1] / rates[0] == pytest.approx(40.0)
    assert set(counts.tolist()) == {digits.RUNS}


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 700, 1223])
def test_a_recorded_run_can_be_run_again(index):
    pytest.importorskip("sklearn", reason="the dependency group paper is not installed")
    rates, accuracies = digits.read_scores()
    seed = digits.run_seed(*divmod(index, digits.RUNS))
    assert digits.train(rates[index], seed) == pytest.approx(accuracies[index], abs=5e-3)


def test_without_noise_the_model_learns_the_digits():
    pytest.importorskip("sklearn", reason="the dependency group paper is not installed")
    assert digits.train(1.0, 1, noise_multiplier=0.0) > 0.93


def test_the_accounting_of_one_training_run():
    """Integer orders of the sampled Gaussian mechanism by the binomial sum, in exact arithmetic."""
    rate = mpmath.mpf(digits.BATCH) / digits.TRAIN_EXAMPLES
    orders = [2, 8, 16]
    expected = []
    for order in orders:
        total = mpmath.fsum(
            mpmath.binomial(order, k)
            * (1 - rate) ** (order - k)
            * rate**k
            * mpmath.exp((k * k - k) / (2 * mpmath.mpf(digits.NOISE_MULTIPLIER) ** 2))
            for k in range(order + 1)
        )
        expected.append(float(digits.STEPS * mpmath.log(total) / (order - 1)))
    assert figures.dpsgd_base().rdp(np.array(orders, dtype=float)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_figure_7_accuracies_and_intervals():
    """Means by the definition; of 40 intervals of 95 % at least 34 cover (fewer has probability 0.3 %)."""
    _, accuracies = digits.read_scores()
    values, counts = np.unique(accuracies, return_counts=True)
    above = 1.0 - np.append(0.0, np.cumsum(counts)) / len(accuracies)  # ranks of the values' ends
    covered = 0
    for row, name in enumerate(figures.LAW_LABELS):
        for column, mean in enumerate(figures.FIGURE_7_MEANS):
            law = figures.law_with_mean(name, mean)
            cdf = exact.pgf(law, above, m=np)
            expected = figures.expected_best(law, accuracies)
            assert expected == pytest.approx(np.sum(values * np.diff(cdf)) / (1.0 - cdf[0]), **TO_FOUR_DIGITS)
            simulated, half_width = figures.simulate(law, accuracies, seed=1000 * row + column)
            covered += abs(simulated - expected) <= half_width
    assert covered >= 34


# Figure 8


@pytest.mark.parametrize("order", [2.0, 5.0, 20.0])
def test_figure_8_exact(order):
    """The limit a → 0 in closed form: t from one equation, s from the other, the result from both."""
    p = mpmath.mpf(figures.ACCEPT)
    goal = mpmath.exp((order - 1) * RHO * order)

    def reverse(t):
        return (p * mpmath.exp(t)) ** order * p ** (1 - order) + (1 - p * mpmath.exp(t)) ** order * (1 - p) ** (
            1 - order
        )

    t = root(lambda t: float(mpmath.log(reverse(t) / goal)), 0.0, float(-mpmath.log(p)) - 1e-9)
    grown = p * mpmath.exp(t)
    forward = p**order * grown ** (1 - order) + (1 - p) ** order * (1 - grown) ** (1 - order)
    atom = goal - forward  # a e^(s (order - 1)): what the first outcome has to carry
    inside = p**order * grown ** (1 - order) + atom
    expected = mpmath.log(inside * grown ** (order - 1) / p**order) / (order - 1)
    found = figures.rejection(order)
    assert found.t == pytest.approx(t, abs=1e-4)
    assert found.exact(order) == pytest.approx(float(expected), **TO_FOUR_DIGITS)
    for a, b in ((found.log_q, found.log_q_other), (found.log_q_other, found.log_q)):
        assert claims.divergence(order, a, b) == pytest.approx(RHO * order, abs=1e-9)


def test_figure_8_upper():
    data = figures.figure_8()
    log_inverse = math.log(1.0 / figures.ACCEPT)
    orders = data["upper"].x
    # only the order itself is known, so the smaller order of line 2 takes its value
    line_2 = RHO * orders + (orders - 2) / (orders - 1) * RHO * orders + 2 * log_inverse / (orders - 1)
    free = RHO * orders * (2 - 1 / orders) + (1 / orders + 1 / (orders - 1)) * log_inverse
    assert data["upper"].y == pytest.approx(line_2, abs=1e-9)
    assert np.all(data["free"].y <= free + 1e-9)
    assert np.all(data["exact"].y <= data["free"].y)
    assert data["free"].y[-1] - data["exact"].y[-1] < 1e-3


# Figure 1


@pytest.fixture(scope="module")
def trained():
    pytest.importorskip("sklearn", reason="the dependency group paper is not installed")
    return svm.curves(data_sets=24)


@pytest.mark.slow
def test_figure_1_the_best_weight_moves(trained):
    without, present = (np.median(svm.ALPHAS[trained.best[world]]) for world in (0, 1))
    assert without > 4.0 * present
    signal = svm.guess(trained.best)
    assert signal.accuracy - signal.half_width > 0.55


@pytest.mark.slow
def test_figure_1_private_tuning_hides_it(trained):
    law = hpcalc.TruncatedNegativeBinomial.with_mean(eta=0.0, mean=svm.MEAN_RUNS)
    winners, _ = svm.private_winners(trained, 16.0, law)
    signal = svm.guess(winners)
    assert abs(signal.accuracy - 0.5) < 0.1
    assert signal.accuracy - signal.half_width <= svm.search_limit(16.0, deltas=(0.1,)) < 0.9


def test_figure_1_one_record_moves_the_machine_by_at_most_its_radius():
    """The sensitivity behind the private run, on the points that pull hardest."""
    pytest.importorskip("sklearn", reason="the dependency group paper is not installed")
    rng = np.random.default_rng(3)
    x, labels = svm.points(rng, svm.POINTS)
    extra = svm.clip(np.array([[30.0, 30.0], [-30.0, 30.0], [3.0, 3.0]]))
    for alpha, point, label in itertools.product((1e-3, 3e-2), extra, (-1.0, 1.0)):
        moved = svm.fit(np.vstack([x, point]), np.append(labels, label), alpha) - svm.fit(x, labels, alpha)
        assert np.linalg.norm(moved) <= alpha * svm.RADIUS * 1.01


def test_best_guess_limit():
    """Randomized response with a leak of δ attains it."""
    epsilon, delta = 1.3, 0.2
    advantage = delta + (1 - delta) * (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    assert svm.best_guess_limit(epsilon, delta) == pytest.approx(0.5 + advantage / 2)
    assert svm.best_guess_limit(0.0, 0.0) == 0.5


# Claims


def best_of_two_outcomes(law, order, good, other):
    """Divergence of the search over two outcomes, the better one of probability good or other; nothing is one more."""
    a, b = (best_of_k(law, (1 - mpmath.mpf(p), mpmath.mpf(p))) for p in (good, other))
    return float(renyi(a, b, order))


@pytest.mark.parametrize("order", [2, 8])
def test_fixed_runs_by_exact_arithmetic(order):
    p = 1 / (1 + mpmath.exp(1))
    expected = best_of_two_outcomes(hpcalc.Fixed(20), order, p, 1 - p)
    assert claims.fixed_runs_exact(1.0, 20, float(order)) == pytest.approx(expected, abs=1e-9)


def test_poisson_exact_by_enumeration():
    p = 1 / (1 + mpmath.exp(mpmath.mpf("0.1")))
    expected = max(best_of_two_outcomes(hpcalc.Poisson(0.5), 2.0, x, 1 - x) for x in (p, 1 - p))
    assert claims.poisson_exact(0.1, 0.5, 2.0) == pytest.approx(expected, abs=1e-9)
    assert claims.theorem_6(0.0, -math.inf, 0.5, 2.0) == pytest.approx(-math.log(2.0))


def test_compound_pmf_by_the_definition():
    expected = [float(p) for p in exact.pmf(hpcalc.TruncatedNegativeBinomial(0.5, 0.0625), 40)[1:]]
    assert claims.compound_pmf(0.5, 0.0625, 40) == pytest.approx(expected, rel=1e-10)


def test_three_point_by_exact_arithmetic():
    order, rdp = 2.0, 0.2
    law = hpcalc.TruncatedNegativeBinomial.with_mean(eta=1.0, mean=10.0)
    cell = claims.three_point(law, order, rdp)
    with mpmath.workdps(60):
        u, v, b, b_other = (
            mpmath.mpf(x) for x in (cell.u, cell.v, mpmath.exp(cell.log_b), mpmath.exp(cell.log_b_other))
        )
        q, q_other = (1 - u - b, b, u), (1 - v - b_other, b_other, v)  # from worst to best
        assert float(renyi(q, q_other, order)) == pytest.approx(rdp, abs=1e-6)
        assert float(renyi(q_other, q, order)) <= rdp + 1e-6
        found = renyi(best_of_k(law, q), best_of_k(law, q_other), order)
    assert cell.exact == pytest.approx(float(found), **TO_FOUR_DIGITS)


def test_selection_by_simulation():
    """Random search over Laplace scores, simulated: the good candidate wins as often as the integral says."""
    rng = np.random.default_rng(11)
    candidates, epsilon, eta, mean, lead = 10, 1.0, 1.0, 100.0, 15.0
    searches = 4000
    runs = rng.geometric(1.0 / mean, size=searches)
    wins = 0
    for count in runs:
        good = rng.integers(candidates, size=count) == 0
        wins += bool(good[np.argmax(lead * good + rng.laplace(scale=(2.0 + eta) / epsilon, size=count))])
    expected = claims.search_success(candidates, epsilon, eta, mean, lead)
    assert abs(wins / searches - expected) < 3.3 * math.sqrt(expected * (1 - expected) / searches)


# The command


@pytest.mark.slow
def test_the_whole_command(tmp_path, capsys):
    """Every figure in both formats and a report whose checks all hold, on a few points of every curve."""
    pytest.importorskip("matplotlib", reason="the dependency group paper is not installed")
    pytest.importorskip("sklearn", reason="the dependency group paper is not installed")
    import reproduce

    assert reproduce.main(["--out", str(tmp_path), "--quick"]) == 0
    names = ["figure-1", *(f"figure-{n}{suffix}" for n in range(2, 9) for suffix in ("", "-refined"))]
    for name in names:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert all(f"({name}.svg)" in report for name in names)
    assert "NOT HOLD" not in report
    assert "nan" not in report.lower().split()
    assert capsys.readouterr().out == f"{tmp_path / 'report.md'}\n"
