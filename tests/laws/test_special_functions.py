"""Probabilities, integrals and power sums kept as logarithms, where nothing is left of them, against mpmath."""

import math

import mpmath as mp
import numpy as np
import pytest

from hpcalc.laws.families import log_binomial_pmf, stirling_correction
from hpcalc.laws.tabulated import PowerSum
from hpcalc.logspace import log_integral


@pytest.mark.parametrize("n", [1, 7, 40, 10**6])
@pytest.mark.parametrize("p", [1e-12, 0.3, 0.5, 1.0 - 1e-12])
def test_binomial_probabilities(n, p):
    k = np.unique(np.linspace(0, n, 9).astype(int))
    got = log_binomial_pmf(k.astype(float), n, p)
    with mp.workdps(40):
        for index, j in enumerate(k.tolist()):
            share = mp.loggamma(n + 1) - mp.loggamma(j + 1) - mp.loggamma(n - j + 1)
            want = share + j * mp.log(p) + (n - j) * mp.log(1 - mp.mpf(p) if p < 0.9 else mp.mpf(1.0 - p))
            assert got[index] == pytest.approx(float(want), rel=2e-13, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("x", [1e-300, 0.3, 9.999, 10.0, 1e3, 1e100, 1e160, 1e300])
def test_what_stirling_leaves_out(x):
    with mp.workdps(640 if x > 10.0 else 40):
        exact = mp.loggamma(x) - (mp.mpf(x) - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2
    assert float(stirling_correction(x)) == pytest.approx(float(exact), rel=1e-13, abs=1e-14 if x < 10.0 else 0.0)


def test_integrals():
    assert log_integral(lambda x: np.full(x.shape, -math.inf), 0.0, 1.0, 0.5, 0.0) == -math.inf
    assert log_integral(lambda x: -x, 1.0, 1.0, 1.0, 0.0) == -math.inf
    got = log_integral(lambda x: -5000.0 - x, 0.0, 2.0, 0.0, 0.0)  # below the doubles
    assert got == pytest.approx(-5000.0 + math.log(-math.expm1(-2.0)), rel=1e-15)


RNG = np.random.default_rng(7)


def tables():
    size = 400
    k = np.arange(1.0, size + 1)
    yield "heavy tail", k, -1.5 * np.log(k)
    yield "from zero", k - 1, -1.5 * np.log(k)
    yield "poisson", k, k * math.log(250.0) - np.array([math.lgamma(x + 1) for x in k]) - 250.0
    yield "steep", k, 30.0 * k  # no block may be multiplied out
    yield "steep at first", k, np.where(k < 100, -40.0 * (100.0 - k), 0.0)
    gaps = np.where(RNG.random(size) < 0.5, -np.inf, -RNG.random(size) * 900)
    gaps[:25] = -np.inf
    yield "gaps", k, gaps
    yield "few", np.array([1.0, 5.0, 1000.0]), np.log([0.2, 0.3, 0.5])


@pytest.mark.parametrize(("k", "log_w"), [t[1:] for t in tables()], ids=[t[0] for t in tables()])
def test_against_mpmath(k, log_w):
    total = PowerSum(k, log_w)
    log_x = np.array([0.0, -1e-9, -1e-3, -0.1, -40.0])
    h = np.array([1e-100, 1e-13, 0.002, 1.6, math.inf])
    with mp.workdps(50):
        weights = [(int(a), mp.exp(mp.mpf(float(b)))) for a, b in zip(k, log_w, strict=True) if b > -math.inf]
        with np.errstate(all="raise", under="ignore"):
            values = total.log_value(log_x)
            drops = total.log_drop(log_x[:, None], h[None, :]) if k[0] >= 1 else None
        for i, x in enumerate(log_x):
            powers = [(a, w * mp.exp(a * mp.mpf(float(x)))) for a, w in weights]
            want = mp.log(mp.fsum(p for _, p in powers))
            assert values[i] == pytest.approx(float(want), rel=1e-13, abs=3e-13)
            for j, step in enumerate(h.tolist()):
                if drops is not None:
                    want = mp.log(mp.fsum(p * (1 if step == mp.inf else -mp.expm1(-a * step)) for a, p in powers))
                    assert drops[i, j] == pytest.approx(float(want), rel=1e-13, abs=3e-13)


def test_at_zero_only_the_constant_is_left():
    k = np.arange(0.0, 4000.0)
    assert PowerSum(k, np.zeros(k.size)).log_value(np.array(-math.inf)) == 0.0
    assert np.isneginf(PowerSum(k + 1, np.zeros(k.size)).log_value(np.array([-math.inf]))).all()
