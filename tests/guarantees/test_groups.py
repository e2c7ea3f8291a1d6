"""Guarantees for all the records of one person, against enumeration, quadrature and dp-accounting."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from hpcalc.errors import InvalidInput
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Laplace, ProfileCurve, PureDP, RDPCurve, compose, repeat
from hpcalc.guarantees.dpsgd import DPSGD, sampled_gaussian_rdp


def binomial(size, rate):
    return [math.comb(size, j) * rate**j * (1.0 - rate) ** (size - j) for j in range(size + 1)]


def test_closed_forms():
    assert PureDP(0.5).group(4) == PureDP(2.0)
    assert ZCDP(0.1).group(3).zcdp_rho == pytest.approx(0.9)
    assert Gaussian(6.0).group(3) == Gaussian(2.0)
    assert Laplace(6.0).group(3) == Laplace(2.0)
    assert DPSGD(1.0, 6.0, 4).group(3).log_profile(0.7) == pytest.approx(Gaussian(1.0).log_profile(0.7))
    both = repeat(compose(PureDP(0.5), Gaussian(6.0)), 2).group(3)
    assert both == repeat(compose(PureDP(1.5), Gaussian(2.0)), 2)
    assert DPSGD(0.1, 1.0, 5).group(2).group(3) == DPSGD(0.1, 1.0, 5).group(6)


@pytest.mark.parametrize(
    "base",
    [ApproxDP(1.0, 1e-6), RDPCurve({2.0: 1.0}), ProfileCurve({1.0: 1e-5}), compose(PureDP(1.0), ApproxDP(1.0, 1e-6))],
)
def test_what_a_curve_does_not_tell_is_refused_with_the_reason(base):
    assert base.group(1) == base
    with pytest.raises(InvalidInput, match="group: 2 .* from a curve or an"):
        base.group(2)


@pytest.mark.parametrize("size", [0, -1, 1.5, math.nan, "x", True])
def test_sizes_are_whole_numbers(size):
    for base in (PureDP(1.0), DPSGD(0.1, 1.0, 5), RDPCurve({2.0: 1.0})):
        with pytest.raises(InvalidInput, match="group"):
            base.group(size)


def test_one_step_has_the_profile_of_its_mixture_in_both_directions():
    rate, sigma, size = 0.05, 1.5, 3
    base, weight = DPSGD(rate, sigma, 1).group(size), binomial(size, rate)
    x = np.linspace(-15.0, 20.0, 200_001)
    density = np.exp(-0.5 * (x / sigma) ** 2) / (sigma * math.sqrt(2.0 * math.pi))
    other = density * sum(b * np.exp((j * x - 0.5 * j * j) / sigma**2) for j, b in enumerate(weight))
    for t in (0.0, 0.05, 0.1, 0.5, 2.0):
        for direction, (p, q) in enumerate(((other, density), (density, other))):
            exact = float(np.sum(np.maximum(p - math.exp(t) * q, 0.0)) * (x[1] - x[0]))
            found = float(np.exp(base.log_profile_of(direction, np.array([t]))[0]))
            assert exact * (1.0 - 1e-6) - 1e-13 <= found <= exact * 1.001 + 1e-13


# from_mixture_gaussian_mechanism(sigma, range(size + 1), binomial(size, rate), value_discretization_interval=1e-4)
# .self_compose(steps) of dp-accounting 0.6.0 at delta = 1e-3 and 1e-5; it takes a minute
REFERENCE = {
    (0.01, 1.0, 200, 2): (1.1242752, 1.9465539),
    (0.01, 1.0, 200, 5): (3.3888038, 5.3052677),
    (0.1, 3.0, 50, 3): (2.2579340, 3.3206682),
    (0.004, 1.1, 2000, 20): (20.7835825, 26.4290627),
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", REFERENCE)
def test_steps_compose_as_dp_accounting_says(setting):
    base = DPSGD(*setting[:3]).group(setting[3])
    for delta, expected in zip((1e-3, 1e-5), REFERENCE[setting], strict=True):
        at = base.log_profile(np.array([expected * (1.0 - 1e-4), expected * (1.0 + 1e-4)]))
        assert at[1] <= math.log(delta) <= at[0]


@pytest.mark.slow
def test_the_curve_is_the_larger_direction_of_the_mixture():
    weight = binomial(3, 0.05)
    with mpmath.workdps(16):

        def ratio(x):
            return mpmath.fsum(b * mpmath.exp((j * x - mpmath.mpf(j * j) / 2) / 2.25) for j, b in enumerate(weight))

        for order in (2.0, 3.5):
            powers = [
                mpmath.quad(lambda x, p=p: mpmath.npdf(x, 0, 1.5) * ratio(x) ** p, list(range(-25, 40, 5)))
                for p in (order, 1.0 - order)
            ]
            exact = float(mpmath.log(max(powers)) / (order - 1.0))
            assert sampled_gaussian_rdp(0.05, 1.5, (order,), 3)[0] == pytest.approx(exact, rel=1e-8)
