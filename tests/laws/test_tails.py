"""Probabilities and integrals kept as logarithms, where nothing is left of them."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from hpcalc.laws.tails import log_binomial_pmf, log_integral, log_ratio_of_means, stirling_correction


def test_no_trials_give_no_successes() -> None:
    np.testing.assert_array_equal(log_binomial_pmf(np.array([0.0, 1.0]), 0, 0.3, 0.7), [0.0, -math.inf])


@pytest.mark.parametrize("n", [1, 7, 40, 10**6])
@pytest.mark.parametrize("p", [1e-12, 0.3, 0.5, 1.0 - 1e-12])
def test_binomial_probabilities(n: int, p: float) -> None:
    k = np.unique(np.linspace(0, n, 9).astype(int))
    got = log_binomial_pmf(k.astype(float), n, p, 1.0 - p)
    with mp.workdps(40):
        for index, j in enumerate(k.tolist()):
            share = mp.loggamma(n + 1) - mp.loggamma(j + 1) - mp.loggamma(n - j + 1)
            want = share + j * mp.log(p) + (n - j) * mp.log(1 - mp.mpf(p) if p < 0.9 else mp.mpf(1.0 - p))
            assert got[index] == pytest.approx(float(want), rel=2e-13, abs=1e-13)


@pytest.mark.parametrize("x", [1e-300, 0.3, 9.999, 10.0, 1e3, 1e100, 1e160, 1e300])
def test_what_stirling_leaves_out(x: float) -> None:
    with mp.workdps(640):
        exact = mp.loggamma(x) - (mp.mpf(x) - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2
    assert float(stirling_correction(x)) == pytest.approx(float(exact), rel=1e-13, abs=1e-14 if x < 10.0 else 0.0)


def test_integrals_of_nothing() -> None:
    assert log_integral(lambda x: np.full(x.shape, -math.inf), 0.0, 1.0, 0.5) == -math.inf
    assert log_integral(lambda x: -x, 1.0, 1.0, 1.0) == -math.inf


def test_an_integral_below_the_doubles() -> None:
    # exp(-5000 - x) over [0, 2]
    got = log_integral(lambda x: -5000.0 - x, 0.0, 2.0, 0.0)
    assert got == pytest.approx(-5000.0 + math.log(-math.expm1(-2.0)), rel=1e-15)


@pytest.mark.parametrize("x", [1e-290, 1e-9, 0.3, 0.7, 1.0, 1.5, 40.0, 1e3])
def test_ratio_of_means(x: float) -> None:
    sizes = (1e-30, 1e-9, 0.1, 0.49, 0.5, 0.51, 0.999999, 1.0, 1.000001, 2.5, 1e6)
    with mp.workdps(700):
        for h in (*sizes, *(-size for size in sizes if size < 1e3)):
            other = (1 - mp.mpf(h)) * x
            # m(-y) = y + m(y)
            size = abs(other)
            m = (mp.log((1 - mp.exp(-size)) / size) if size else mp.mpf(0)) + (size - other) / 2
            want = mp.mpf(h) * x + mp.log((1 - mp.exp(-mp.mpf(x))) / x) - m
            assert log_ratio_of_means(x, h) == pytest.approx(float(want), rel=2e-15), (x, h)
