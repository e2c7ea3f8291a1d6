"""Quantiles, tails and draws of the laws of K."""

import math
import random
import time

import mpmath as mp
import numpy as np
import pytest
from law_oracle import LAWS, TNB, close, exact_pmf

from hpcalc.errors import InvalidInput
from hpcalc.laws import AtLeastOne, Binomial, FinitePmf, Fixed, Geometric, Poisson, Threshold

LARGE = [Poisson(1e6), Poisson(1e12), Binomial(10**12, 1e-6), Binomial(10**12, 1 - 1e-6), TNB.from_log_gamma(0, -600.0)]
LARGE += [TNB.with_mean(1e6, eta=eta) for eta in (0.0, -0.9, 0.5, 1.0, 50.0)]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_quantiles_against_enumeration(law):
    pmf = exact_pmf(law)
    cumulative = [mp.fsum(pmf[: k + 1]) for k in range(len(pmf))]
    for p in (1e-30, 1e-6, 0.01, 0.2, 0.5, 0.7, 0.95, 0.99, 1 - 1e-9, 1 - 2**-50):
        assert law.quantile(p) == next(k for k, c in enumerate(cumulative) if c >= mp.mpf(p))


def test_ties_are_reached():
    assert Fixed(7).quantile(1e-300) == Fixed(7).quantile(1 - 2**-53) == 7
    assert [Geometric(0.5).quantile(p) for p in (0.5, 0.75, 0.875)] == [1, 2, 3]
    assert [Binomial(2, 0.5).quantile(p) for p in (0.25, 0.26, 0.75, 0.76)] == [0, 1, 1, 2]
    assert [FinitePmf((0.1, 0.2, 0.7)).quantile(p) for p in (0.1, 0.3, 0.31)] == [0, 1, 2]
    for gamma, k in ((1e-3, 5000), (1e-3, 20_000), (1e-4, 6900), (1e-5, 4096), (1e-5, 4097)):  # beyond the table too
        p = float(-mp.expm1(k * mp.log1p(-mp.mpf(gamma))))  # P[K <= k] itself, to a rounding
        assert Geometric(gamma).quantile(p) == k


@pytest.mark.parametrize("law", LARGE, ids=repr)
def test_large_quantiles_bracket(law):
    for p in (1e-9, 0.05, 0.5, 0.95, 1 - 1e-9):
        k = law.quantile(p)
        assert math.exp(law.log_cdf(k)) >= p * (1 - 1e-9)
        assert k == 0 or math.exp(law.log_cdf(k - 1)) < p * (1 + 1e-9)


def test_quantiles_of_geometric_laws_of_any_size():
    for length in (12.0, 23.0, 40.0, 404.8, 600.0):
        k = Geometric.from_log_gamma(1.0, -length).quantile(0.95)
        exact = mp.ceil(mp.log(mp.mpf("0.05")) / mp.log1p(-mp.exp(-length)))
        assert k == exact if length < 30.0 else k == pytest.approx(float(exact), rel=1e-10)
    law, exact = Geometric(1e-3), mp.mpf("0.999")
    for k in (4094, 4095, 4096, 4097, 20_000):  # on both sides of the end of the table
        close(law.log_cdf(k), mp.log1p(-(exact**k)), 1e-11)
        assert law.quantile(float(-mp.expm1(mp.log(exact) * (k - mp.mpf("0.5"))))) == k
    with pytest.raises(InvalidInput, match="K is that large"):
        TNB.from_log_gamma(0.0, -900.0).quantile(0.99)
    for p in (0.0, 1.0, -0.1, 1.5, math.nan, "0.5", None):
        with pytest.raises(InvalidInput, match="^p: "):
            Poisson(3.0).quantile(p)


@pytest.mark.slow
def test_tails_against_scipy():
    from scipy import special, stats

    for k in (0, 1, 10, 9_990_000, 10_000_000, 10_010_000):
        assert Poisson(1e7).log_sf(k) == pytest.approx(stats.poisson.logsf(k, 1e7), rel=1e-7, abs=1e-9)
    for n, p in [(1000, 0.02), (1000, 0.98), (10**6, 0.5)]:
        for k in np.unique(np.clip(np.round(n * p + np.array([-3, -1, 0, 1, 3]) * math.sqrt(n * p * (1 - p))), 0, n)):
            assert math.exp(Binomial(n, p).log_sf(int(k))) == pytest.approx(stats.binom.sf(k, n, p), rel=1e-9)
            assert math.exp(Binomial(n, p).log_cdf(int(k))) == pytest.approx(stats.binom.cdf(k, n, p), rel=1e-9)
    for eta, gamma in [(0.5, 1e-6), (3.0, 1e-4), (40.0, 0.01)]:
        for k in (1, 5, 100, 5000, 10**6):
            want = special.betainc(k + 1.0, eta, 1 - gamma) / (1 - gamma**eta)
            assert math.exp(TNB(eta, gamma).log_sf(k)) == pytest.approx(want, rel=1e-9, abs=1e-12)
    law, mean, sd = TNB(1e4, 0.3), 1e4 * 0.7 / 0.3, math.sqrt(1e4 * 0.7) / 0.3  # a narrow peak, no truncation
    for k in (mean - 6 * sd, mean - sd, mean, mean + 2 * sd, mean + 8 * sd):
        assert law.log_sf(int(k)) == pytest.approx(stats.nbinom.logsf(int(k), 1e4, 0.3), rel=1e-8, abs=1e-10)


def test_tails_of_heavy_laws():
    for eta, gamma in [(-0.9, "1e-3"), (-0.5, "1e-8"), (0.0, "1e-2"), (0.0, "1e-30")]:
        law = TNB.from_log_gamma(eta, float(mp.log(mp.mpf(gamma))))
        for k in (1, 17, 300):
            head = mp.fsum(exact_pmf(law)[: k + 1])
            close(math.exp(law.log_sf(k)), 1 - head, 1e-12)
            close(math.exp(law.log_cdf(k)), head, 1e-12)
    for log_gamma in (-1.0, -8.0):  # eta = 0: the incomplete beta function B(k+1, 0), over L
        z = -mp.expm1(log_gamma)
        for k in (7, 10**4):
            want = z ** (k + 1) / (k + 1) * mp.hyp2f1(k + 1, 1, k + 2, z) / -mp.mpf(log_gamma)
            close(TNB.from_log_gamma(0.0, log_gamma).log_sf(k), mp.log(want), 1e-11, floor=1.0)


NEARLY_SURE = [Poisson(m) for m in (40.0, 700.0, 3e3)] + [Binomial(n, 0.4) for n in (60, 5000)]
NEARLY_SURE += [FinitePmf(dict.fromkeys(range(1, n), 1 / (n - 1))) for n in (7, 24, 50)]
NEARLY_SURE += [AtLeastOne(TNB(5.0, 1e-4)), *(TNB.from_log_gamma(eta, -30.0) for eta in (-0.1, 0.3, 5.0))]


@pytest.mark.parametrize("law", [*LAWS, Threshold(0.3), *NEARLY_SURE], ids=repr)
def test_probabilities_never_exceed_one(law):
    for k in (0, 1, 2, 3, 5, 9, 17, 40, 41, 100, 1000):
        assert max(law.log_cdf(k), law.log_sf(k)) <= 0.0
        assert math.exp(law.log_cdf(k)) + math.exp(law.log_sf(k)) == pytest.approx(1.0, abs=1e-12)


# -- draws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_draws_follow_the_law(law):
    rng, count = random.Random(20221), 1500
    draws = np.array([law.sample(rng) for _ in range(count)])
    expected = count * np.exp(law.log_pmf(np.arange(60.0)))
    seen = np.bincount(draws, minlength=60)[:60]
    pool = expected >= 5
    seen, expected = (np.append(x[pool], count - x[pool].sum()) for x in (seen, expected))  # the last: all others
    gap, room = np.abs(seen - expected), np.maximum(expected, 1e-9)
    assert gap[-1] <= 5 * math.sqrt(room[-1]) + 1
    chi, freedom = float(np.sum((gap**2 / room)[room >= 5])), max(int(np.sum(room >= 5)) - 1, 1)
    assert chi <= freedom + 5 * math.sqrt(2 * freedom) + 5


class Bits(random.Random):
    """A source whose bits are all alike, but for the first one asked for alone."""

    def __new__(cls, first: int, bit: int) -> "Bits":
        return super().__new__(cls)  # in Python 3.10 it takes a seed and no more

    def __init__(self, first: int, bit: int) -> None:
        self.first, self.bit = first, bit

    def getrandbits(self, k: int) -> int:
        return self.first if k == 1 else self.bit * ((1 << k) - 1)


def test_the_rarest_draws():
    """The uniform number has 256 bits: half of the draws count from each end, from 2^-258 to just below 1/2."""
    rarest = math.ceil(258 * math.log(2.0) / -math.log(0.9))
    for gamma, draws in ((0.5, [1, 1, 258, 1]), (0.1, [1, 7, rarest, 7])):
        assert [Geometric(gamma).sample(Bits(first, bit)) for first in (0, 1) for bit in (0, 1)] == draws


@pytest.mark.slow
@pytest.mark.parametrize("law", [*LARGE, TNB.with_mean(1e4, eta=-0.99)], ids=repr)
def test_a_thousand_draws_take_seconds(law):
    rng, count = random.Random(3), 200
    start = time.process_time()
    draws = [law.sample(rng) for _ in range(count)]
    assert time.process_time() - start < 1.5  # 0.6 on an idle machine
    assert all(isinstance(draw, int) and draw >= 0 for draw in draws)
    if law.sd < law.mean:
        assert abs(np.mean(draws) - law.mean) < 5 * law.sd / math.sqrt(count)
