"""DP-SGD and convolved privacy losses, against exact sums, quadrature with 40 digits, and dp-accounting."""

from __future__ import annotations

import functools
import math

import mpmath
import numpy as np
import pytest
from scipy import special

from hpcalc import bound, conversion
from hpcalc.errors import InvalidInput
from hpcalc.guarantees import ApproxDP, Gaussian, Laplace, PureDP, RDPCurve, cks_log_delta, compose, repeat
from hpcalc.guarantees.convolved import Convolution
from hpcalc.guarantees.dpsgd import DPSGD, sampled_gaussian_rdp
from hpcalc.laws import Binomial, Fixed, Poisson, TruncatedNegativeBinomial
from hpcalc.logspace import Prob

PAPER = DPSGD(256 / 60000, 1.1, 14062)
LOG_1E5 = math.log(1e-5)


def epsilon_from_profile(base, log_delta):
    return conversion.epsilon_from_profile(base.log_profile, log_delta)


def epsilon_from_rdp(base, log_delta):
    return conversion.epsilon_from_rdp(base, log_delta).value


def exact_moment(rate, sigma, order):
    """log E[w^order] / (order - 1), 40 digits: the binomial sum for integers, quadrature otherwise."""
    with mpmath.workdps(60):
        q, s = mpmath.mpf(rate), mpmath.mpf(sigma)
        if order == int(order):
            a = int(order)
            total = mpmath.fsum(
                mpmath.binomial(a, k) * (1 - q) ** (a - k) * q**k * mpmath.exp((k * k - k) / (2 * s * s))
                for k in range(a + 1)
            )
        else:
            a = mpmath.mpf(order)

            def density(x):
                w = 1 - q + q * mpmath.exp((2 * x - 1) / (2 * s * s))
                return mpmath.npdf(x, 0, s) * w**a

            total = mpmath.quad(density, [i * (a + 30 * s) / 40 - 15 * s for i in range(41)])
        return float(mpmath.log(total) / (a - 1))


# -- Rényi divergence --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "sigma", "order"),
    [(0.01, 1.0, a) for a in (2, 3, 7, 32, 100)]
    + [(256 / 60000, 1.1, a) for a in (2, 8, 64, 500)]
    + [(0.4, 12.0, 59), (0.4, 12.0, 500), (1e-8, 1.0, 2), (1e-8, 1.0, 5), (1e-3, 0.3, 2), (1e-3, 0.3, 9)]
    + [(0.01, 50.0, 2048), (0.5, 0.05, 2), (0.5, 0.05, 3), (1e-12, 20.0, 100), (0.999999, 1.0, 4), (0.1, 1000.0, 3)],
)
def test_integer_orders_match_the_binomial_sum(rate, sigma, order):
    value = sampled_gaussian_rdp(rate, sigma, (float(order),))[0]
    assert value == pytest.approx(exact_moment(rate, sigma, order), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "sigma", "order"),
    [(0.4, 12.0, 58.9), (1e-6, 1.0, 3.7), (0.2, 0.5, 1.01)],
)
def test_fractional_orders_match_quadrature(rate, sigma, order):
    value = sampled_gaussian_rdp(rate, sigma, (order,))[0]
    assert value == pytest.approx(exact_moment(rate, sigma, order), rel=1e-8)


def test_known_values():
    cliff = DPSGD(0.00033, 4.0, 10000)  # the best order is 256; at 257 epsilon is 0.767
    for delta, expected in ((1.1e-18, 0.145757812), (1.13e-18, 0.145652292)):
        order = np.array([256.0])
        epsilon = float(cliff.rdp(order)[0]) + math.log(255 / 256) - (math.log(delta) + math.log(256)) / 255
        assert epsilon == pytest.approx(expected, rel=1e-8)
        assert epsilon_from_rdp(cliff, math.log(delta)) == pytest.approx(expected, rel=1e-3)
    assert epsilon_from_rdp(PAPER, LOG_1E5) == pytest.approx(2.5966, abs=1e-4)
    at_32 = float(cks_log_delta(np.array([32.0]), DPSGD(1e-7, 1.0, 10**9).rdp(np.array([32.0])), 0.6080)[0])
    assert at_32 == pytest.approx(math.log(1e-9), abs=0.01)


@pytest.mark.parametrize("base", [PAPER, DPSGD(1e-7, 1.0, 10**9), DPSGD(0.3, 0.05, 7), DPSGD(0.02, 200.0, 1000)])
def test_the_curve_is_finite_positive_and_never_decreases(base):
    orders = 1.0 + np.exp(np.arange(math.log(1e-12), math.log(1e9), 0.05))
    dense = base.rdp(orders)
    one_by_one = np.array([float(base.rdp(order)) for order in orders[::20]])
    for curve in (dense, one_by_one):
        assert np.all(np.isfinite(curve))
        assert np.all(curve > 0.0)
        assert np.all(np.diff(curve) >= -1e-9 * curve[1:])
    assert dense[::20] == pytest.approx(one_by_one, rel=1e-9)
    assert base.rdp(math.inf) == math.inf


@pytest.mark.slow
def test_large_orders_use_a_valid_closed_form():
    for rate, sigma, order in ((0.01, 1.0, 3000), (0.5, 0.1, 60), (1e-4, 0.05, 40)):
        value = float(sampled_gaussian_rdp(rate, sigma, (float(order),))[0])
        exact = exact_moment(rate, sigma, order)
        assert exact * (1.0 - 1e-12) <= value <= exact * 1.0001


def test_a_billion_steps_cost_nothing():
    base = DPSGD(1e-7, 1.0, 10**9)
    epsilon = epsilon_from_rdp(base, math.log(1e-9))
    assert 0.5 < epsilon <= 0.5437859
    assert not base.exact_profile
    assert any("Rényi" in warning for warning in base.warnings)
    assert np.isfinite(base.log_profile(np.array([0.6]))).all()


# -- what goes in -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "sigma", "steps"),
    [
        *((rate, 1.0, 1) for rate in (1.5, -0.1, math.nan, math.inf, "x", True, None)),
        *((0.1, sigma, 1) for sigma in (-1.0, math.nan, math.inf)),
        *((0.1, 1.0, steps) for steps in (-1, 1.5, math.nan, math.inf)),
    ],
)
def test_wrong_parameters_are_refused(rate, sigma, steps):
    with pytest.raises(InvalidInput, match="dpsgd.*batch size / data set size" if sigma == steps == 1 else "dpsgd"):
        DPSGD(rate, sigma, steps)


def test_no_sampling_no_steps_no_noise():
    t, rank = np.array([-1.0, 0.0, 0.5, 3.0]), Prob.from_u(np.array([0.01, 0.5]))
    for nothing in (DPSGD(0.0, 1.0, 10), DPSGD(0.5, 1.0, 0), DPSGD(0.0, 0.0, 10)):
        assert nothing.rdp(5.0) == 0.0
        assert nothing.pure_epsilon == nothing.zcdp_rho == 0.0
        assert np.exp(nothing.log_profile(t)) == pytest.approx([1.0 - math.exp(-1.0), 0.0, 0.0, 0.0])
        assert nothing.region(rank).u == pytest.approx(rank.u)
        assert nothing.warnings == ()
    naked = DPSGD(0.1, 0.0, 10)
    assert naked.rdp(2.0) == math.inf
    assert not naked.finite
    assert naked.log_profile(t) == pytest.approx(0.0, abs=1e-15)
    every = DPSGD(1.0, 2.0, 4)
    assert every.log_profile(t) == pytest.approx(Gaussian(1.0).log_profile(t))
    assert every.region(rank).u == pytest.approx(Gaussian(1.0).region(rank).u)
    assert every.exact_profile


@pytest.mark.slow
def test_nothing_revealed_costs_nothing_and_no_sampling_is_the_gaussian():
    tnb, poisson = TruncatedNegativeBinomial.with_mean(10.0, eta=0.5), Poisson(10.0)
    for law in (tnb, poisson, Fixed(5)):
        pure = bound(PureDP(0.0), law, delta=1e-5)
        for nothing in (DPSGD(0.0, 1.1, 100), DPSGD(0.3, 1.1, 0), compose(DPSGD(0.0, 1.1, 100), DPSGD(0.1, 1.0, 0))):
            answer = bound(nothing, law, delta=1e-5)
            assert answer.epsilon == pure.epsilon == 0.0
            assert [row.epsilon for row in answer.bounds] == [row.epsilon for row in pure.bounds]
            assert vars(answer.lower) == vars(pure.lower)
            assert answer.composition == pure.composition
    for base, gaussian in ((DPSGD(1.0, 2.0, 4), Gaussian(1.0)), (repeat(DPSGD(1.0, 2.0, 2), 2), Gaussian(1.0))):
        answer, expected = bound(base, tnb, delta=1e-5), bound(gaussian, tnb, delta=1e-5)
        assert answer.epsilon == pytest.approx(expected.epsilon, rel=1e-9)
        assert answer.lower.epsilon == pytest.approx(expected.lower.epsilon, rel=1e-6)
        assert answer.composition[1] == pytest.approx(expected.composition[1], rel=1e-12)
    both = compose(DPSGD(1.0, 2.0, 4), DPSGD(0.0, 1.0, 9), Gaussian(1.0))
    assert both.core.sigma == pytest.approx(math.sqrt(0.5))


# -- privacy-loss distributions ---------------------------------------------------------------------------------------


def test_the_papers_model():
    assert epsilon_from_profile(PAPER, LOG_1E5) == pytest.approx(2.3817, abs=5e-5)
    assert PAPER.exact_profile
    assert PAPER.warnings == ()
    assert PAPER.core.step == pytest.approx(1e-4, rel=0.05)


@pytest.mark.slow
def test_the_gap_is_small_for_every_law():
    for law in (TruncatedNegativeBinomial.with_mean(10.0, eta=0.0), Poisson(10.0)):
        answer = bound(PAPER, law, delta=1e-5)
        assert answer.lower is not None
        assert 0.99 * answer.epsilon < answer.lower.epsilon <= answer.epsilon


@pytest.mark.slow
def test_the_naive_composition_is_convolved_too():
    accounting = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    base = DPSGD(0.01, 1.0, 200)
    reference = _reference(base, accounting).self_compose(10).get_epsilon_for_delta(1e-5)
    runs, epsilon = bound(base, Poisson(10.0), delta=1e-5).composition
    assert runs == 10
    assert epsilon == pytest.approx(reference, rel=1e-3)
    assert epsilon > epsilon_from_profile(repeat(base, 10), LOG_1E5) * (1.0 - 1e-9)
    # with an (epsilon, delta) part its delta is set aside ten times
    both = repeat(compose(base, ApproxDP(0.0, 1e-7)), 10)
    assert epsilon_from_profile(both, LOG_1E5) == pytest.approx(
        epsilon_from_profile(repeat(base, 10), math.log(9e-6)), rel=1e-3
    )


@pytest.mark.slow
def test_a_training_run_with_a_noisy_score():
    both = compose(PAPER, Gaussian(20.0))
    assert epsilon_from_profile(both, LOG_1E5) == pytest.approx(2.39117, abs=2e-5)
    assert both.rdp(8.0) == pytest.approx(float(PAPER.rdp(8.0)) + 8.0 / 800.0)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 50.0])
def test_convolved_gaussians_match_the_closed_form(sigma):
    whole, parts = Gaussian(sigma), Convolution(((Gaussian(sigma * 2.0), 4),))
    scale = 1.0 / sigma
    # losses in standard deviations from the mean, out to where delta is about 1e-25
    t = np.maximum(0.5 * scale**2 + scale * np.arange(-3.0, 10.0, 0.37), 0.0)
    exact, table = whole.log_profile(t), parts.log_profile(t)
    assert np.all(table >= exact - 1e-9)
    assert np.all(table <= exact + 2e-3)


def _response_profile(epsilon, count, t):
    with mpmath.workdps(50):
        p = mpmath.exp(epsilon) / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        losses = [(2 * k - count) * mpmath.mpf(epsilon) for k in range(count + 1)]
        terms = [
            mpmath.binomial(count, k) * p**k * (1 - p) ** (count - k) * (1 - mpmath.exp(t - x))
            for k, x in enumerate(losses)
            if x > t
        ]
        return float(mpmath.log(mpmath.fsum(terms)))


def test_randomized_response_matches_the_binomial_sum():
    base = Convolution(((PureDP(0.1), 50),))
    for t in (0.0, 0.55, 2.0, 3.31, 4.5, 4.95):
        exact = _response_profile(0.1, 50, t)
        assert exact - 1e-9 <= base.log_profile(np.array([t]))[0] <= exact + 1e-6


MIXES = {
    "dpsgd": (DPSGD(0.01, 0.8, 100),),
    "dpsgd-small": (DPSGD(0.00033, 4.0, 10000),),
    "dpsgd-rare": (DPSGD(0.001, 1.0, 20000),),  # once in a while one step has a loss as large as all others together
    "dpsgd-laplace": (DPSGD(0.01, 1.0, 200), Laplace(1.0)),
    "dpsgd-pure": (DPSGD(0.05, 2.0, 100), PureDP(0.5)),
    "gaussian-laplace": (Gaussian(2.0), Laplace(1.234567)),
    "all": (DPSGD(0.02, 1.5, 200), Gaussian(3.0), Laplace(2.0), PureDP(0.123)),
}


@functools.cache
def mixed(name):
    return Convolution(tuple((part, 1) for part in MIXES[name]))


def _reference(part, accounting):
    if isinstance(part, DPSGD):
        one = accounting.from_gaussian_mechanism(
            part.sigma, sampling_prob=part.rate, value_discretization_interval=1e-4
        )
        return one.self_compose(part.steps)
    if isinstance(part, Gaussian):
        return accounting.from_gaussian_mechanism(part.sigma, value_discretization_interval=1e-4)
    if isinstance(part, Laplace):
        return accounting.from_laplace_mechanism(part.scale, value_discretization_interval=1e-4)
    flip = 2.0 / (1.0 + math.exp(part.epsilon))
    return accounting.from_randomized_response(flip, 2, value_discretization_interval=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dpsgd-rare", "gaussian-laplace", "all"])
def test_compositions_agree_with_dp_accounting(name):
    accounting = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    parts = MIXES[name]
    reference = _reference(parts[0], accounting)
    for part in parts[1:]:
        reference = reference.compose(_reference(part, accounting))
    base = mixed(name)
    for delta in (1e-3, 1e-5, 1e-8):
        assert epsilon_from_profile(base, math.log(delta)) == pytest.approx(
            reference.get_epsilon_for_delta(delta), rel=1e-3
        )


def _lower(log_p, log_q, t):
    with np.errstate(over="ignore"):
        return [math.fsum(np.maximum(np.exp(a) - np.exp(b + t), 0.0)) for a, b in ((log_p, log_q), (log_q, log_p))]


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXES)
def test_the_finite_pair_lies_just_below_the_profile(name):
    base = mixed(name)
    log_p, log_q = base.attained_pair.log_p, base.attained_pair.log_q
    assert log_p.size <= 4001
    assert math.fsum(np.exp(log_p)) == pytest.approx(1.0, abs=1e-9)
    assert math.fsum(np.exp(log_q)) == pytest.approx(1.0, abs=1e-9)
    for delta in (0.1, 1e-3, 1e-5, 1e-8, 1e-11):
        t = epsilon_from_profile(base, math.log(delta))
        if t < 1e-9:  # delta(0) is smaller
            continue
        below = math.log(max(_lower(log_p, log_q, t)))
        assert math.log(delta) - 0.02 <= below <= math.log(delta) + 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3])
def test_a_rare_huge_loss_is_part_of_the_finite_pair(steps):
    """A few steps against sums over all their outcomes, and never above them."""
    rate, sigma, cells = 0.005, 0.6, 120
    edges = np.linspace(-5.0 * sigma, 1.0 + 9.0 * sigma, cells + 1)
    base, plain = (np.diff(special.ndtr((mean - edges[::-1]) / sigma)) for mean in (1.0, 0.0))
    one = (1.0 - rate) * plain + rate * base, plain
    p, q = one
    for _ in range(steps - 1):  # merged cells: a lower bound
        p, q = (np.multiply.outer(x, y).ravel() for x, y in zip((p, q), one, strict=True))
    pair, core = DPSGD(rate, sigma, steps).core.attained_pair, DPSGD(rate, sigma, steps).core
    for t in (0.5, 2.0, 5.0, 8.0):
        direct = math.fsum(np.maximum(p - math.exp(t) * q, 0.0))
        below, above = (math.exp(float(x.log_profile_of(0, np.array([t]))[0])) for x in (pair, core))
        assert 0.995 * direct <= below <= above * (1.0 + 1e-9)
        back = [float(x.log_profile_of(1, np.array([0.1 / steps * t]))[0]) for x in (pair, core)]
        assert back[0] <= back[1] + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "law", "delta"),
    [
        (DPSGD(0.0011, 0.679, 278), Binomial(20, 0.1317), 3e-7),
        (DPSGD(3.3e-5, 0.4, 542), Fixed(1), 1e-8),
        (compose(DPSGD(0.0038, 0.7, 64), Gaussian(5.9)), Fixed(1), 1e-9),
    ],
    ids=repr,
)
def test_a_search_of_runs_with_rare_huge_losses_costs_at_least_as_much(base, law, delta):
    answer = bound(base, law, delta=delta)
    assert 0.9995 * answer.epsilon <= answer.lower.epsilon <= answer.epsilon


@pytest.mark.slow
def test_a_part_whose_losses_are_smaller_than_the_grid_is_no_part_of_the_pair():
    parts = (DPSGD(4e-6, 1.24, 300_000), 1), (PureDP(0.158), 39)
    pair = Convolution(parts).attained_pair
    alone = Convolution(parts[1:]).attained_pair
    for t in (0.5, 1.0, 3.0):
        assert max(_lower(pair.log_p, pair.log_q, t)) == pytest.approx(
            max(_lower(alone.log_p, alone.log_q, t)), rel=1e-3
        )


@pytest.mark.slow
def test_the_rényi_curve_never_promises_less_than_the_profile():
    """The profile, exact but for the grid, lies below what the Rényi curve gives, and not far below."""
    for base in (PAPER, mixed("dpsgd"), mixed("dpsgd-laplace")):
        for delta in (1e-4, 1e-6, 1e-9):
            exact, curve = epsilon_from_profile(base, math.log(delta)), epsilon_from_rdp(base, math.log(delta))
            assert 0.6 * curve < exact < curve


def test_profile_is_monotone_and_deep():
    t = np.linspace(0.0, 12.0, 4001)
    curve = PAPER.log_profile(t)
    assert np.all(np.diff(curve) <= 1e-12)
    assert curve[-1] < math.log(1e-36)
    assert np.all(np.isfinite(curve))
    # far beyond the table the Rényi curve takes over
    assert PAPER.log_profile(np.array([40.0]))[0] < -90.0
    assert PAPER.log_profile(np.array([-2.0]))[0] == pytest.approx(
        math.log(-math.expm1(-2.0 + math.log1p(-math.exp(PAPER.log_profile(np.array([2.0]))[0]))))
    )


def test_what_cannot_be_convolved_falls_back_to_the_curve():
    for part, other in (
        (DPSGD(1e-7, 1.0, 10**9), Laplace(1.0)),
        (RDPCurve({2.0: 1.0}), Laplace(1.0)),
        (Gaussian(0.0), Laplace(1.0)),
        (PureDP(0.0), PureDP(0.0)),
    ):
        assert not Convolution(((part, 1), (other, 1))).exact_profile
        assert Convolution(((part, 1), (other, 1))).pair is None
    mixed = compose(DPSGD(1e-7, 1.0, 10**9), Laplace(1.0))
    assert mixed.rdp(2.0) == pytest.approx(float(DPSGD(1e-7, 1.0, 10**9).rdp(2.0)) + float(Laplace(1.0).rdp(2.0)))
    assert any("Rényi" in warning for warning in mixed.warnings)


@pytest.mark.slow
def test_repetition_merges_steps():
    twice = repeat(DPSGD(0.01, 1.0, 100), 2)
    once = DPSGD(0.01, 1.0, 200)
    t = np.array([0.3, 1.0, 2.0, 4.0])
    assert twice.log_profile(t) == pytest.approx(once.log_profile(t), abs=1e-9)
    assert twice.rdp(7.0) == pytest.approx(float(once.rdp(7.0)))


def test_numbers_that_look_swapped_are_told():
    assert DPSGD(0.01, 0.5, 10).warnings == ()
    for base in (DPSGD(0.9, 0.01, 10), compose(PureDP(0.1), DPSGD(0.9, 0.01, 10))):
        (warning,) = base.warnings
        assert "swapped" in warning
