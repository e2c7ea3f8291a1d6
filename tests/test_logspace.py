"""Log-space arithmetic against mpmath with 60 digits, over the whole range of a double."""

from __future__ import annotations

import itertools
import math
import random

import mpmath as mp
import numpy as np
import pytest

from hpcalc.logspace import (
    Lower,
    Prob,
    Upper,
    log1mexp,
    log_expm1,
    log_mills,
    log_ndtr,
    logaddexp,
    logsubexp,
    logsumexp,
    significant,
    softplus,
)

mpf = mp.mpf


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


def sizes(low: float, high: float, count: int = 60) -> list[float]:
    """Numbers of every size, the ends included."""
    return np.geomspace(low, high, count).tolist()


def close(found: float, true: mp.mpf, tolerance: float = 4e-15) -> bool:
    if mp.isinf(true):
        return found == float(true)
    return abs(mpf(found) - true) <= tolerance * max(abs(true), mpf("1e-300"))


def tail(x: mp.mpf) -> mp.mpf:
    """P[N(0,1) > x]."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def test_logarithms_of_exponentials():
    for x in [*sizes(1e-300, 700.0), math.log(2.0), 745.2, 1e300]:
        true = mp.log(-mp.expm1(-mpf(x))) if x < 60 else mp.log1p(-mp.exp(-mpf(x)))
        assert close(float(log1mexp(-x)), true, 1e-14), x
        # next to log 2 the result crosses 0: there an absolute error of an ulp of x remains
        true = mp.log(mp.expm1(mpf(x))) if x < 1e4 else mpf(x)
        assert abs(mpf(float(log_expm1(x))) - true) <= 4e-15 * abs(true) + 4e-16, x
    for x in [*sizes(1e-300, 1e300, 30), *(-x for x in sizes(1e-300, 700.0, 30))]:
        assert close(float(softplus(x)), mp.log1p(mp.exp(mpf(x))) if x < 1e4 else mpf(x), 1e-14), x


def test_sums_and_differences_of_exponentials():
    rng = random.Random(1)
    for _ in range(300):
        a = rng.uniform(-1000.0, 1000.0)
        b = a - 10.0 ** rng.uniform(-12.0, 3.0)
        gap = mpf(a) - mpf(b)
        both, found = float(logaddexp(a, b)), float(logsubexp(a, b))
        assert abs(mpf(both) - (mpf(a) + mp.log1p(mp.exp(-gap)))) <= 4e-16 * max(abs(a), 1.0)
        assert abs(mpf(found) - (mpf(a) + mp.log(-mp.expm1(-gap)))) <= 4e-16 * max(abs(a), abs(found), 1.0)
        assert float(logsumexp(np.array([b, a, -np.inf]))) == pytest.approx(both, rel=1e-15, abs=1e-15)
    x = np.log(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert np.exp(logsumexp(x, axis=0)) == pytest.approx([5.0, 7.0, 9.0])
    assert np.exp(logsumexp(x)) == pytest.approx([6.0, 15.0])


def test_infinities():
    inf = math.inf
    assert logaddexp(-inf, -inf) == logsubexp(-inf, -inf) == logsumexp(np.array([-inf, -inf])) == -inf
    assert logaddexp(inf, 0.0) == logsumexp(np.array([inf, 0.0])) == inf
    assert (logsubexp(0.0, -inf), logsubexp(1.0, 1.0)) == (0.0, -inf)
    assert logsubexp(1.0, 1.0 + 1e-15) == -inf  # rounding may put the smaller one above
    assert (log1mexp(0.0), log1mexp(-inf)) == (-inf, 0.0)
    assert (Prob.from_log_u(-inf).normal, Prob.from_log_u(0.0).normal) == (-inf, inf)
    assert Prob.from_log_u(np.array([[-1.0, -2.0]])).normal.shape == (1, 2)


@pytest.mark.parametrize("x", [0.0, *sizes(1e-12, 1e6, 50), *(-x for x in sizes(1e-12, 1e6, 50)), 9.999, -10.001])
def test_normal_distribution_function(x):
    if x < -1e4:
        true = -(mpf(x) ** 2) / 2 - mp.log(-mpf(x)) - mp.log(2 * mp.pi) / 2 + mp.log1p(-1 / mpf(x) ** 2)
    else:
        true = mp.log(tail(-mpf(x))) if x <= 0 else mp.log1p(-tail(mpf(x))) if x < 40 else mpf(0)
    found = float(log_ndtr(x))
    # the upper tail's relative error is that of its exponent x^2/2
    assert close(found, true, 5e-15 + 3e-16 * (x * x if 0 < x < 40 else 0)) or abs(mpf(found) - true) < mpf("1e-320")


@pytest.mark.parametrize("x", [*sizes(1e-6, 1e4, 40), *(-x for x in sizes(1e-6, 30.0, 20)), 0.0])
def test_mills_ratio(x):
    true = mp.log(tail(mpf(x))) + mpf(x) ** 2 / 2 + mp.log(2 * mp.pi) / 2
    assert abs(mpf(float(log_mills(x))) - true) <= 1e-14 * max(abs(true), 1) * (1 + x * x if -5 < x < 10 else 1)


@pytest.mark.parametrize("log_p", [-x for x in sizes(1e-15, 1e7, 60)] + [-math.log(2.0), -1e-18, -1e-100])
def test_normal_quantile(log_p):
    x = mpf(float(Prob.from_log_u(log_p).normal))
    # backward error: the score's own probability, against the one asked for
    log_small = mpf(log_p) if log_p < -math.log(2.0) else mp.log(-mp.expm1(mpf(log_p)))
    found = mp.log(tail(abs(x)))
    assert abs(found - log_small) <= 2e-14 * max(abs(log_small), 1)
    assert (x < 0) == (log_p < -math.log(2.0)) or x == 0


@pytest.mark.parametrize("z", [-1e4, -800.0, -40.0, -1.0, -1e-9, 0.0, 1e-9, 3.0, 40.0, 800.0])
def test_ranks_keep_both_tails(z):
    rank = Prob.from_logit(z)
    assert close(float(rank.log_u), -mp.log1p(mp.exp(-mpf(z))), 1e-14)
    assert close(float(rank.log_q), -mp.log1p(mp.exp(mpf(z))), 1e-14)
    assert rank.complement() == Prob(rank.log_q, rank.log_u)
    again = Prob.from_log_u(rank.log_u) if z < 0 else Prob.from_log_q(rank.log_q)
    assert float(again.log_u) == pytest.approx(float(rank.log_u), rel=1e-13)
    assert float(again.log_q) == pytest.approx(float(rank.log_q), rel=1e-13)


def test_ranks_of_plain_and_normal_numbers():
    rank = Prob.from_u(np.array([0.0, 1e-300, 0.25, 1.0]))
    assert rank.log_u[0] == -math.inf
    assert rank.log_q[3] == -math.inf
    assert rank.log_q[1] == -1e-300
    assert rank.u == pytest.approx([0.0, 1e-300, 0.25, 1.0], rel=1e-12)
    normal = Prob.from_normal(np.array([-50.0, 50.0]))
    assert normal.log_u[0] == normal.log_q[1] == pytest.approx(-1254.831361139, abs=1e-8)
    assert normal.take(slice(1, None)).log_u.shape == (1,)


def test_what_was_typed_or_has_no_digits_is_not_rounded():
    for kind, special in itertools.product((Upper, Lower), (0.0, math.inf, -math.inf, 0.1, 2.5e-7)):
        assert significant(kind(special), 2) == special
    assert math.isnan(significant(math.nan, 2))
