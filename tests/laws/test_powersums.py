"""Blocked power sums against mpmath, with weights and arguments over hundreds of decades."""

import math

import mpmath as mp
import numpy as np
import pytest

from hpcalc.laws.powersums import PowerSum, log1mexp_minus

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
def test_against_mpmath(k, log_w, monkeypatch):
    monkeypatch.setattr("hpcalc.laws.powersums._DENSE", 100)
    total = PowerSum(k, log_w)
    log_x = np.array([0.0, -1e-9, -1e-3, -0.1, -40.0])
    log_h = np.array([-900.0, -30.0, -6.0, 0.5, math.inf])
    with mp.workdps(50):
        weights = [(int(a), mp.exp(mp.mpf(float(b)))) for a, b in zip(k, log_w, strict=True) if b > -math.inf]
        with np.errstate(all="raise", under="ignore"):
            values = total.log_value(log_x)
            drops = total.log_drop(log_x[:, None], log_h[None, :]) if k[0] >= 1 else None
        for i, x in enumerate(log_x):
            powers = [(a, w * mp.exp(a * mp.mpf(float(x)))) for a, w in weights]
            want = mp.log(mp.fsum(p for _, p in powers))
            assert values[i] == pytest.approx(float(want), rel=1e-13, abs=3e-13)
            for j, h in enumerate(log_h):
                if drops is not None:
                    step = mp.exp(mp.mpf(float(h))) if math.isfinite(h) else mp.inf
                    want = mp.log(mp.fsum(p * (1 if step == mp.inf else -mp.expm1(-a * step)) for a, p in powers))
                    assert drops[i, j] == pytest.approx(float(want), rel=1e-13, abs=3e-13)


def test_at_zero_only_the_constant_is_left():
    k = np.arange(0.0, 4000.0)
    total = PowerSum(k, np.zeros(k.size))
    assert total.log_value(np.array(-math.inf)) == 0.0
    assert np.isneginf(PowerSum(k + 1, np.zeros(k.size)).log_value(np.array([-math.inf]))).all()


def test_log1mexp_minus():
    assert log1mexp_minus(-1000.0) == -1000.0
    assert log1mexp_minus(math.inf) == 0.0
    assert log1mexp_minus(0.0) == pytest.approx(math.log(1 - math.exp(-1)), rel=1e-15)
