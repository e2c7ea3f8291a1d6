"""Laws of the number of runs, against mpmath and against enumeration."""

import copy
import math
import pickle
import random
import subprocess
import sys

import mpmath as mp
import numpy as np
import pytest

from hpcalc.errors import InvalidInput
from hpcalc.laws import (
    Adaptive,
    AtLeastOne,
    AtMost,
    Binomial,
    Clamped,
    FinitePmf,
    Fixed,
    Geometric,
    Law,
    Logarithmic,
    Poisson,
    RunCount,
    Threshold,
    TruncatedNegativeBinomial,
    at_least_one,
    at_most,
    clamp,
    make_law,
    parse_law,
)
from hpcalc.logspace import Prob, logsumexp

TNB = TruncatedNegativeBinomial
DIGITS = 80


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(DIGITS):
        yield


def close(got, want, tolerance=2e-12, floor=1e-300):
    got = float(got)
    if mp.isinf(want):
        assert got == float(want)
        return
    assert math.isfinite(got)
    assert abs(mp.mpf(got) - want) <= tolerance * max(abs(want), mp.mpf(floor)), (got, mp.nstr(want, 20))


# Ranks given by u (small ones) or by q = 1 - u, so that both ends are reached with all digits.
RANKS = [(u, None) for u in ("1e-400", "1e-320", "1e-30", "1e-9", "0.01", "0.3", "0.5", "0.9")]
RANKS += [(None, q) for q in ("1e-3", "1e-12", "1e-300", "1e-350")]


def rank_of(u, q):
    """A rank, and the exact u and q that its logarithms stand for."""
    if u is not None:
        u = mp.mpf(u)
        rank = Prob(np.array([float(mp.log(u))]), np.array([float(mp.log1p(-u))]))
        log_u = mp.mpf(float(rank.log_u[0]))
        return rank, mp.exp(log_u), -mp.expm1(log_u)
    q = mp.mpf(q)
    rank = Prob(np.array([float(mp.log1p(-q))]), np.array([float(mp.log(q))]))
    log_q = mp.mpf(float(rank.log_q[0]))
    return rank, -mp.expm1(log_q), mp.exp(log_q)


def log_pair(f, s):
    """log f and log(1-f), from f and s = 1 - f."""
    return (mp.log(f) if f < 0.5 else mp.log1p(-s)), (mp.log(s) if s < 0.5 else mp.log1p(-f))


class ExactTNB:
    """Definition 1 with 80 digits, by L = log(1/gamma)."""

    def __init__(self, eta, log_gamma):
        self.eta, self.size = mp.mpf(eta), -mp.mpf(log_gamma)
        self.gamma, self.rest = mp.exp(-self.size), -mp.expm1(-self.size)

    def mean(self):
        if self.eta == 0:
            return self.rest / (self.gamma * self.size)
        return self.eta * self.rest / (self.gamma * -mp.expm1(-self.eta * self.size))

    def sd(self):
        mean = self.mean()
        return mp.sqrt(mean * (self.eta + 1) * self.rest / self.gamma + mean - mean * mean)

    def quantile_mean(self):
        eta, gamma, size = self.eta, self.gamma, self.size
        if eta == 0:
            return 1 - (1 - gamma * size / self.rest) / size
        if eta == 1:
            return 1 - (size / self.rest - 1) / (1 / gamma - 1)
        return 1 - (-mp.expm1((eta - 1) * size) / ((1 - eta) * self.rest) - 1) / mp.expm1(eta * size)

    def log_density(self, u):
        return mp.log(self.mean()) - (self.eta + 1) * mp.log1p(self.rest / self.gamma * u)

    def log_density_slope(self, u):
        odds = self.rest / self.gamma
        return mp.log(self.mean() * (self.eta + 1) * odds) - (self.eta + 2) * mp.log1p(odds * u)

    def pgf(self, u, q):
        w = -mp.log(self.gamma + self.rest * u) if u < 0.5 else -mp.log1p(-self.rest * q)
        d = mp.log1p(self.rest / self.gamma * u)
        if self.eta == 0:
            return w / self.size, d / self.size
        full = self.eta * self.size
        return mp.expm1(self.eta * w) / mp.expm1(full), mp.expm1(-self.eta * d) / mp.expm1(-full)

    def pmf(self, k):
        if self.eta == 0:
            return self.rest**k / (k * self.size)
        return self.rest**k * mp.rf(self.eta, k) / mp.factorial(k) / mp.expm1(self.eta * self.size)


ETAS = (-1 + 1e-12, -1 + 1e-6, -0.99, -0.9, -0.5, -0.3, -1e-5, -1e-12, 0.0, 1e-17, 1e-12, 1e-6, 0.24, 0.26, 0.5, 0.9,
        1.0, 2.0, 30.5, 1e3, 1e6)  # fmt: skip
LOG_GAMMAS = (-1e-15, -1e-9, -1e-3, -0.3, -1.0, -2.0, -6.9, -40.0, -300.0, -690.77, -922.0)


@pytest.mark.parametrize("eta", ETAS)
def test_truncated_negative_binomial_against_mpmath(eta):
    for log_gamma in LOG_GAMMAS:
        law, exact = TNB.from_log_gamma(eta, log_gamma), ExactTNB(eta, log_gamma)
        close(law.log_mean, mp.log(exact.mean()), 1e-12)
        if exact.mean() < 1e300:
            close(law.mean, exact.mean(), 1e-12)
        if exact.sd() < 1e300:
            close(law.sd, exact.sd(), 1e-12)
        close(law.expected_quantile, exact.quantile_mean(), 1e-12)
        for u, q in RANKS:
            rank, u, q = rank_of(u, q)
            close(law.log_density(rank)[0], exact.log_density(u), 1e-12, floor=1.0)
            close(law.log_density_slope(rank)[0], exact.log_density_slope(u), 1e-12, floor=1.0)
            log_f, log_s = log_pair(*exact.pgf(u, q))
            close(law.log_pgf(rank)[0], log_f, 1e-12)
            close(law.log_survival(rank)[0], log_s, 1e-12)


@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.5, 1.0, 10.0, 700.0, 1e6, 1e12])
def test_poisson_against_mpmath(mu):
    law, m = Poisson(mu), mp.mpf(mu)
    close(law.expected_quantile, 1 - (-mp.expm1(-m)) / m, 1e-12)
    close(law.log_prob_zero, -m)
    close(AtLeastOne(law).log_mean, mp.log(m / -mp.expm1(-m)), 1e-12)
    zero = mp.exp(-m)
    first, second = m / (1 - zero), m * m / (1 - zero)
    close(AtLeastOne(law).sd, mp.sqrt(second + first - first**2), 1e-11)
    for u, q in RANKS:
        rank, u, q = rank_of(u, q)
        close(law.log_density(rank)[0], mp.log(m) - m * u, 1e-12, floor=1.0)
        close(law.log_density_slope(rank)[0], 2 * mp.log(m) - m * u, 1e-12, floor=1.0)
        close(law.log_pgf(rank)[0], -m * u, 1e-12)
        close(law.log_survival(rank)[0], log_pair(mp.exp(-m * u), -mp.expm1(-m * u))[1], 1e-12)
        f, s = mp.exp(-m * u) * -mp.expm1(-m * q) / -mp.expm1(-m), mp.expm1(-m * u) / mp.expm1(-m)
        close(AtLeastOne(law).log_pgf(rank)[0], log_pair(f, s)[0], 2e-12)
        close(AtLeastOne(law).log_survival(rank)[0], log_pair(f, s)[1], 2e-12)


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (1, 1.0), (2, 1e-9), (20, 0.5), (1000, 1.0), (1000, 1 - 1e-12),
                                      (10**9, 1e-8), (10**12, 1e-11), (10**12, 0.5), (10**9, 1.0)])  # fmt: skip
def test_binomial_and_fixed_against_mpmath(n, p):
    law, prob = Binomial(n, p), mp.mpf(p)
    close(law.mean, n * prob)
    close(law.log_mean, mp.log(n * prob), floor=1.0)
    with mp.workdps(500):
        close(law.expected_quantile, 1 - (1 - (1 - prob) ** (n + 1)) / ((n + 1) * prob), 1e-12)
    for u, q in RANKS:
        rank, u, q = rank_of(u, q)
        miss = mp.log1p(-prob * u) if u < 0.5 else mp.log((1 - prob) + prob * q)
        close(law.log_density(rank)[0], mp.log(n * prob) + (n - 1) * miss, 1e-12, floor=1.0)
        bend = mp.log(n * (n - 1) * prob**2) + (n - 2) * miss if n > 1 else mp.mpf("-inf")
        close(law.log_density_slope(rank)[0], bend, 1e-12, floor=1.0)
        close(law.log_pgf(rank)[0], n * miss, 1e-12)
        close(law.log_survival(rank)[0], log_pair(mp.exp(n * miss), -mp.expm1(n * miss))[1], 1e-12)
        if p == 1.0:
            fixed = Fixed(n)
            for method in ("log_density", "log_density_slope", "log_pgf", "log_survival"):
                close(getattr(fixed, method)(rank)[0], mp.mpf(float(getattr(law, method)(rank)[0])))


def exact_pmf(law, top=400):
    """Probabilities of 0..top with 80 digits, from the definition."""
    if isinstance(law, Poisson):
        mu = mp.mpf(law.mu)
        return [mp.exp(-mu) * mu**k / mp.factorial(k) for k in range(top + 1)]
    if isinstance(law, TruncatedNegativeBinomial):
        if law.log_gamma == 0:
            return [mp.mpf(int(k == 1)) for k in range(top + 1)]
        exact = ExactTNB(law.eta, law.log_gamma)
        return [mp.mpf(0)] + [exact.pmf(k) for k in range(1, top + 1)]
    if isinstance(law, Binomial):
        p = mp.mpf(law.p)
        return [mp.binomial(law.n, k) * p**k * (1 - p) ** (law.n - k) for k in range(law.n + 1)]
    if isinstance(law, Fixed):
        return [mp.mpf(int(k == law.k)) for k in range(law.k + 1)]
    if isinstance(law, FinitePmf):
        given = {k: mp.mpf(p) for k, p in law.probabilities}
        return [given.get(k, mp.mpf(0)) for k in range(max(given) + 1)]
    inner = exact_pmf(law.law, top)
    if isinstance(law, Clamped):
        return [*inner[: law.m], mp.fsum(inner[law.m :])]
    inner = inner[: law.m + 1] if isinstance(law, AtMost) else [mp.mpf(0), *inner[1:]]
    total = mp.fsum(inner)
    return [p / total for p in inner]


LAWS: list[Law] = [
    Poisson(0.3),
    Poisson(10.0),
    TNB.with_mean(1.5, eta=-0.5),
    TNB.with_mean(3.0, eta=0.0),
    TNB.with_mean(4.0, eta=1.0),
    TNB.with_mean(4.0, eta=6.5),
    TNB.from_log_gamma(0.7, 0.0),
    TNB.from_log_gamma(0.5, -1.0),
    TNB.from_log_gamma(2.0, -1.0),
    Binomial(7, 0.2),
    Binomial(3, 1.0),
    Fixed(1),
    Fixed(5),
    FinitePmf(((0, 0.25), (1, 0.25), (40, 0.5))),
    FinitePmf(((3, 0.25), (4, 0.75))),
    AtMost(Poisson(10.0), 30),
    AtMost(Poisson(10.0), 4),
    AtMost(TNB.with_mean(10.0, eta=0.0), 12),
    AtMost(Binomial(7, 0.2), 6),
    Clamped(Poisson(10.0), 12),
    Clamped(TNB.with_mean(4.0, eta=1.0), 3),
    AtLeastOne(Poisson(0.3)),
    AtLeastOne(Binomial(7, 0.2)),
    AtLeastOne(AtMost(Poisson(0.3), 3)),
    AtMost(AtLeastOne(Poisson(2.0)), 3),
    AtLeastOne(FinitePmf((0.9, 0.0, 0.1))),
    AtLeastOne(TNB.with_mean(4.0, eta=1.0)),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_everything_against_enumeration(law):
    pmf = exact_pmf(law)
    support = range(len(pmf))
    mean = mp.fsum(k * p for k, p in zip(support, pmf, strict=True))
    close(law.mean, mean, 1e-13)
    close(law.log_mean, mp.log(mean), 1e-12, floor=1.0)
    close(law.sd, mp.sqrt(mp.fsum((k - mean) ** 2 * p for k, p in zip(support, pmf, strict=True))), 1e-12, floor=1e-9)
    close(law.prob_zero, pmf[0], 1e-13)
    close(law.log_prob_zero, mp.log(pmf[0]) if pmf[0] else mp.mpf("-inf"), 1e-13, floor=1.0)
    close(law.expected_quantile, mp.fsum(p * k / (k + 1) for k, p in zip(support, pmf, strict=True)), 1e-13)
    with np.errstate(all="raise"):
        got = law.log_pmf(np.arange(20.0))
    for k in range(20):
        want = pmf[k] if k < len(pmf) else mp.mpf(0)
        close(got[k], mp.log(want) if want else mp.mpf("-inf"), 1e-12, floor=1.0)
    for k in range(8):
        above = mp.fsum(pmf[k + 1 :])
        close(math.exp(law.log_sf(k)), above, 1e-11, floor=1e-30)
        close(math.exp(law.log_cdf(k)), mp.fsum(pmf[: k + 1]), 1e-11)
        tail = mp.fsum(j * pmf[j] for j in range(k + 1, len(pmf)))
        close(math.exp(law.log_tail_mean(k)), tail, 1e-11, floor=1e-30)
    for u, q in [*RANKS, ("0", None), (None, "0")]:
        if "0" in (u, q):
            rank = Prob(np.array(-math.inf if u else 0.0), np.array(0.0 if u else -math.inf))
            u, q = (mp.mpf(0), mp.mpf(1)) if u else (mp.mpf(1), mp.mpf(0))
        else:
            rank, u, q = rank_of(u, q)
        with np.errstate(all="raise", under="ignore"):
            density, pgf, survival = law.log_density(rank), law.log_pgf(rank), law.log_survival(rank)
            bend = law.log_density_slope(rank)
        assert density.shape == bend.shape == rank.log_u.shape
        steep = mp.fsum(k * (k - 1) * p * q ** (k - 2) for k, p in zip(support, pmf, strict=True) if k > 1)
        close(bend.item(), mp.log(steep) if steep else mp.mpf("-inf"), 2e-12, floor=1.0)
        slope = mp.fsum(k * p * q ** (k - 1) for k, p in zip(support, pmf, strict=True) if k)
        close(density.item(), mp.log(slope) if slope else mp.mpf("-inf"), 2e-12, floor=1.0)
        log_q = mp.log1p(-u) if u < 0.5 else (mp.log(q) if q else mp.mpf("-inf"))
        lost = mp.fsum(p * (-mp.expm1(k * log_q)) for k, p in zip(support, pmf, strict=True) if k)
        left = pmf[0] + mp.fsum(p * q**k for k, p in zip(support, pmf, strict=True) if k)
        log_f = mp.log1p(-lost) if lost < 0.5 else (mp.log(left) if left else mp.mpf("-inf"))
        close(pgf.item(), log_f, 2e-12, floor=1e-299)
        if left == 0 or left > 1e-290:  # below, 1 - f rounds to 1
            close(survival.item(), mp.log(lost) if lost else mp.mpf("-inf"), 2e-12, floor=1e-3)


@pytest.mark.parametrize(
    "law",
    [
        *LAWS,
        Poisson(1e6),
        TNB.from_log_gamma(-0.99, -920.0),
        TNB.from_log_gamma(0.0, -690.0),
        TNB.from_log_gamma(5.0, -1e-9),
    ],
    ids=repr,
)
def test_narrow_blocks_keep_their_digits(law):
    heavy = isinstance(law, TruncatedNegativeBinomial | Poisson)
    for u, relative in [("1e-200", "1e-30"), ("1e-6", "1e-20"), ("0.3", "1e-20"), ("0.3", "1"), ("0.999", "1e-9")]:
        lo, u, q = rank_of(u, None)
        width = u * mp.mpf(relative)
        top = u + width
        hi = Prob(np.array([float(mp.log(top))]), np.array([float(mp.log1p(-top))]))
        if isinstance(law, Poisson):
            want = mp.exp(-law.mu * u) * -mp.expm1(-law.mu * width)
        elif isinstance(law, TruncatedNegativeBinomial) and law.log_gamma < 0 and heavy:
            with mp.workdps(700):
                exact = ExactTNB(law.eta, law.log_gamma)
                want = exact.pgf(u, 1 - u)[1] - exact.pgf(top, 1 - top)[1]
                want = -want
        else:
            pmf = exact_pmf(law)
            step = mp.log1p(-width / q)
            want = mp.fsum(p * q**k * -mp.expm1(k * step) for k, p in enumerate(pmf) if k)
        close(law.log_block(lo, hi, np.array([float(mp.log(width))]))[0], mp.log(want), 2e-12, floor=1.0)
    # no width, no probability
    same = Prob.from_u(np.array([0.0, 0.25, 1.0]))
    assert np.all(np.isneginf(law.log_block(same, same, np.full(3, -np.inf))))


@pytest.mark.parametrize(
    "law", [Poisson(10.0), TNB.with_mean(3.0, eta=0.0), Fixed(5), Clamped(Poisson(3.0), 7)], ids=repr
)
@pytest.mark.parametrize(("low", "high"), [(0.9, 1.1), (0.75, 4 / 3), (1.0, 1.5), (0.5, 1.0), (1.0, 1.0), (1e-3, 1e3)])
def test_bounds_on_densities_of_adaptive_searches(law, low, high):
    """C f'(1 - c u) from above, c f'(1 - min(C v, 1 - c (1 - v))) from below, and its slope on both sides."""
    adaptive, c, most = Adaptive(law, low, high), mp.mpf(low), mp.mpf(high)
    pmf = exact_pmf(law)

    def density(q, order=1):
        return mp.fsum(mp.ff(k, order) * p * q ** (k - order) for k, p in enumerate(pmf) if k >= order)

    ends = adaptive.density_breakpoints.tolist()
    for u in (0.0, 1e-300, 1e-9, 0.1, 0.3, 0.9, 0.999, *ends, 1.0):
        rank, v = Prob.from_u(np.array([u])), mp.mpf(u)
        near = 1e-9 if u in ends else 1e-12  # where 1 - C v is small
        close(adaptive.log_upper_density(rank)[0], mp.log(most * density(1 - c * v)), near, floor=1.0)
        rest = max(1 - most * v, c * (1 - v))
        want = c * density(rest)
        close(adaptive.log_lower_density(rank)[0], mp.log(want) if want else mp.mpf("-inf"), near, floor=1.0)
        for left in (False, True):
            before = bool(ends) and (u <= ends[0] if left else u < ends[0])
            want = c * density(rest, 2) * (most if before else c)
            got = adaptive.log_lower_density_slope(rank, left=left)[0]
            close(got, mp.log(want) if want else mp.mpf("-inf"), near, floor=1.0)
    assert adaptive.log_mean == law.log_mean
    assert adaptive.quantile(0.9) == law.quantile(0.9)
    if low == high == 1.0:
        np.testing.assert_array_equal(adaptive.log_upper_density(rank), law.log_lower_density(rank))


def test_a_range_of_densities_holds_one():
    for low, high in ((1.1, 1.2), (0.5, 0.9), (0.0, 1.0), (math.nan, 2.0), (-1.0, 2.0), (0.5, math.inf)):
        with pytest.raises(InvalidInput, match="^density: "):
            Adaptive(Poisson(3.0), low, high)
    with pytest.raises(InvalidInput, match="^density: "):
        Adaptive(Threshold(0.5), 0.5, 2.0)  # type: ignore[arg-type]
    for change in (lambda: Adaptive(10, 0.5, 2.0), lambda: AtMost(10, 3), lambda: AtLeastOne(10)):
        with pytest.raises(TypeError, match="give a law of K"):
            change()


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_probabilities_up_to_a_tail(law):
    k, log_p, log_rest = law.up_to_tail(math.log(1e-9))
    assert log_rest <= math.log(1e-9) * (1 - 1e-12)
    assert math.fsum(np.exp(log_p)) + math.exp(log_rest) == pytest.approx(1.0, abs=1e-12)
    assert np.sum(k * np.exp(log_p)) <= law.mean * (1 + 1e-12)
    assert Poisson(100.0).up_to_tail(-50.0, most=9)[0].tolist() == list(range(10))


def test_known_means_and_gammas():
    # E[K] at gamma = 1e-3 (mpmath): eta = 0, 1e-12 and 1e-17 agree to 12 digits
    for eta, mean in [(-0.9, 1.797526885), (-0.5, 16.3113883), (0, 144.620062474), (1e-12, 144.620062474),
                      (1e-17, 144.620062474)]:  # fmt: skip
        assert TNB.from_gamma(eta, 1e-3).mean == pytest.approx(mean, rel=1e-9)
    assert TNB.with_mean(40.0, eta=-0.5).gamma == pytest.approx(1.60230732254e-4, rel=1e-11)
    for eta, gamma in [(0, 0.00462933671), (0.5, 0.01397784944), (1, 0.025), (2, 0.04772255751)]:
        assert TNB.with_mean(40.0, eta=eta).gamma == pytest.approx(gamma, rel=1e-9)
    assert TNB.with_mean(1e4, eta=-0.99).log_gamma / math.log(10) == pytest.approx(math.log10(4) - 401, abs=0.1)
    assert Poisson(1.0).prob_zero == pytest.approx(0.36787944117144233, rel=1e-15)
    assert Poisson(10.0).prob_zero == pytest.approx(4.5399929762484854e-05, rel=1e-14)


@pytest.mark.parametrize("eta", [-1 + 1e-9, -0.99, -0.5, -1e-12, 0.0, 1e-17, 0.5, 1.0, 5.0, 1e6])
@pytest.mark.parametrize("mean", [1 + 2**-52, 1 + 1e-9, 1.01, 2.0, 40.0, 1e4, 1e9, 1e15])
def test_gamma_from_mean(eta, mean):
    law = TNB.with_mean(mean, eta=eta)
    # of the doubles around log gamma, none has a mean nearer to the wanted one than rounding in the mean itself
    want = mp.log(mp.mpf(mean))
    got = mp.log(ExactTNB(eta, law.log_gamma).mean())
    assert abs(got - want) <= 4e-16 * max(abs(want), abs(got)) * max(1, 1 if mean < 2 else 8)


def test_mean_one_is_one_run():
    for eta in (-0.5, 0.0, 1.0, 7.0):
        law = TNB.with_mean(1.0, eta=eta)
        assert law == TNB.from_log_gamma(eta, 0.0)
        assert (law.mean, law.sd, law.log_mean, law.gamma, law.expected_quantile) == (1.0, 0.0, 0.0, 1.0, 0.5)
        assert law.quantile(0.999) == law.sample(random.Random(1)) == law.max_runs == 1
        rank = Prob.from_u(np.array([0.0, 0.1, 1.0]))
        assert np.all(law.log_density(rank) == 0.0)
        np.testing.assert_allclose(law.log_survival(rank), rank.log_u)


def test_continuous_in_eta_at_zero():
    rank = Prob.from_logit(np.linspace(-60.0, 60.0, 41))
    for log_gamma in (-1e-12, -0.5, -7.0, -690.0):
        middle = TNB.from_log_gamma(0.0, log_gamma)
        for eta in (-1e-17, 1e-17, -1e-13, 1e-13):
            law = TNB.from_log_gamma(eta, log_gamma)
            for name in ("log_density", "log_pgf", "log_survival"):
                one, other = getattr(law, name)(rank), getattr(middle, name)(rank)
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-300, err_msg=name)
            assert law.expected_quantile == pytest.approx(middle.expected_quantile, rel=1e-9)
            assert law.sd == pytest.approx(middle.sd, rel=1e-9)


# -- quantiles and draws -----------------------------------------------------------------------------------------------


def test_quantiles_at_mean_40():
    assert Poisson(40.0).quantile(0.99) == 55
    for eta, want in [(1.0, 182), (0.5, 243), (0.0, 416)]:
        assert TNB.with_mean(40.0, eta=eta).quantile(0.99) == want


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_quantiles_against_enumeration(law):
    pmf = exact_pmf(law)
    cumulative, total = [], mp.mpf(0)
    for p in pmf:
        total += p
        cumulative.append(total)
    for p in (1e-30, 1e-6, 0.01, 0.2, 0.5, 0.7, 0.95, 0.99, 1 - 1e-9, 1 - 2**-50):
        want = next(k for k, c in enumerate(cumulative) if c >= mp.mpf(p))
        assert law.quantile(p) == want


def test_ties_are_reached():
    assert [TNB.from_gamma(1.0, 0.5).quantile(p) for p in (0.5, 0.75, 0.875)] == [1, 2, 3]
    assert [Binomial(2, 0.5).quantile(p) for p in (0.25, 0.26, 0.75, 0.76)] == [0, 1, 1, 2]
    assert [FinitePmf((0.1, 0.2, 0.7)).quantile(p) for p in (0.1, 0.3, 0.31)] == [0, 1, 2]
    assert [Threshold(0.5).quantile(p) for p in (0.5, 0.75)] == [1, 2]


LARGE: list[Law] = [
    Poisson(1e6),
    Poisson(1e12),
    Binomial(10**12, 1e-6),
    Binomial(10**12, 1 - 1e-6),
    TNB.with_mean(1e6, eta=0.0),
    TNB.with_mean(1e6, eta=-0.9),
    TNB.with_mean(1e6, eta=0.5),
    TNB.with_mean(1e6, eta=1.0),
    TNB.with_mean(1e6, eta=50.0),
    TNB.from_log_gamma(0.0, -600.0),
]


@pytest.mark.parametrize("law", LARGE, ids=repr)
def test_large_quantiles_bracket(law):
    for p in (1e-9, 0.05, 0.5, 0.95, 1 - 1e-9):
        k = law.quantile(p)
        assert math.exp(law.log_cdf(k)) >= p * (1 - 1e-9)
        assert k == 0 or math.exp(law.log_cdf(k - 1)) < p * (1 + 1e-9)


def test_tails_against_scipy():
    from scipy import special, stats

    for k in (0, 1, 10, 9_990_000, 10_000_000, 10_010_000):
        law = Poisson(1e7)
        assert law.log_sf(k) == pytest.approx(stats.poisson.logsf(k, 1e7), rel=1e-7, abs=1e-9)
    for n, p in [(1000, 0.02), (1000, 0.98), (10**6, 0.5)]:
        for k in np.unique(np.clip(np.round(n * p + np.array([-3, -1, 0, 1, 3]) * math.sqrt(n * p * (1 - p))), 0, n)):
            assert math.exp(Binomial(n, p).log_sf(int(k))) == pytest.approx(stats.binom.sf(k, n, p), rel=1e-9)
            assert math.exp(Binomial(n, p).log_cdf(int(k))) == pytest.approx(stats.binom.cdf(k, n, p), rel=1e-9)
    for eta, gamma in [(0.5, 1e-6), (3.0, 1e-4), (40.0, 0.01)]:
        law = TNB.from_gamma(eta, gamma)
        for k in (1, 5, 100, 5000, 10**6):
            want = special.betainc(k + 1.0, eta, 1 - gamma) / (1 - gamma**eta)
            assert math.exp(law.log_sf(k)) == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_tails_of_heavy_laws_against_mpmath():
    for eta, gamma in [(-0.9, "1e-3"), (-0.5, "1e-8"), (0.0, "1e-2"), (0.0, "1e-30")]:
        law = TNB.from_log_gamma(eta, float(mp.log(mp.mpf(gamma))))
        exact = ExactTNB(eta, law.log_gamma)
        for k in (1, 17, 300):
            head = mp.fsum(exact.pmf(j) for j in range(1, k + 1))
            close(math.exp(law.log_sf(k)), 1 - head, 1e-12)
            close(math.exp(law.log_cdf(k)), head, 1e-12)
            first = mp.fsum(j * exact.pmf(j) for j in range(1, k + 1))
            close(law.log_tail_mean(k), mp.log(exact.mean() - first), 1e-12, floor=1.0)


def test_quantile_beyond_1e300_is_refused():
    law = TNB.from_log_gamma(0.0, -900.0)
    assert law.quantile(0.5) > 1e190
    with pytest.raises(InvalidInput, match="K is that large"):
        law.quantile(0.99)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_draws_follow_the_law(law):
    rng = random.Random(20221)
    count = 1500
    draws = np.array([law.sample(rng) for _ in range(count)])
    p = np.exp(law.log_pmf(np.arange(60.0)))
    seen = np.bincount(draws, minlength=60)[:60]
    expected = count * p
    pool = expected >= 5
    chi = float(np.sum((seen[pool] - expected[pool]) ** 2 / expected[pool]))
    rest = (count - seen[pool].sum(), max(count - expected[pool].sum(), 0.0))
    if rest[1] >= 5:
        chi += (rest[0] - rest[1]) ** 2 / rest[1]
    else:
        assert rest[0] <= rest[1] + 5 * math.sqrt(rest[1]) + 1
    freedom = max(int(pool.sum()) - 1 + (rest[1] >= 5), 1)
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
    half = TNB.from_gamma(1.0, 0.5)
    assert [half.sample(Bits(first, bit)) for first in (0, 1) for bit in (0, 1)] == [1, 1, 258, 1]
    tenth = TNB.from_gamma(1.0, 0.1)
    rarest = math.ceil(258 * math.log(2.0) / -math.log(0.9))
    assert [tenth.sample(Bits(first, bit)) for first in (0, 1) for bit in (0, 1)] == [1, 7, rarest, 7]


def test_draws_of_large_laws():
    system = random.SystemRandom()
    for law in LARGE:
        draw = law.sample(system)
        assert isinstance(draw, int)
        assert draw >= 0
    rng = random.Random(3)
    draws = [Poisson(1e6).sample(rng) for _ in range(60)]
    assert abs(np.mean(draws) - 1e6) < 5 * 1e3 / math.sqrt(60)


# -- thinning, truncation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("log_keep", [0.0, -1e-12, -0.1, -2.0])
def test_thinned_law_is_tilted(law, log_keep):
    k = np.arange(0.0, 300.0)
    tilted = law.log_pmf(k) + k * log_keep
    want = tilted - logsumexp(tilted)
    got = law.thin(log_keep).log_pmf(k)
    count = np.count_nonzero(np.exp(want) > 1e-12) + 5
    if law.max_runs is None and log_keep > -0.05:  # the sum above misses the far tail
        want = want + math.log1p(-math.exp(law.log_sf(299)))
    np.testing.assert_allclose(np.exp(got[:count]), np.exp(want[:count]), rtol=1e-9, atol=1e-13)
    assert type(law.thin(log_keep)) is type(law) or isinstance(law, Clamped)


def test_thinning_closed_forms():
    delta = 1e-8
    keep = math.log1p(-delta)
    assert Poisson(10.0).thin(keep).mu == pytest.approx(10 * (1 - delta), rel=1e-15)
    law = TNB.from_gamma(0.0, 0.02)
    assert law.thin(keep).gamma == pytest.approx(1 - 0.98 * (1 - delta), rel=1e-14)
    assert TNB.from_log_gamma(0.0, -900.0).thin(keep).gamma == pytest.approx(delta, rel=1e-8)
    assert TNB.from_log_gamma(0.0, -1e-12).thin(math.log(0.5)).log_gamma == pytest.approx(-0.5e-12, rel=1e-11)
    for log_gamma in (-1e-12, -0.1, -0.6, -5.0, -690.0, -900.0):
        for log_keep in (-1e-300, -1e-20, -0.3, -50.0):
            with mp.workdps(700):
                want = mp.log1p(mp.expm1(log_gamma) * mp.exp(log_keep))
            close(TNB.from_log_gamma(0.5, log_gamma).thin(log_keep).log_gamma, want, 1e-12)
    law = TNB.from_gamma(0.0, 0.0269)
    assert law.thin(0.0).gamma == 0.0269
    assert law.thin(0.0) is law
    assert Binomial(9, 0.3).thin(keep).p == pytest.approx(0.3 * (1 - delta) / (1 - 0.3 * delta), rel=1e-15)
    for bad in (0.1, -math.inf, math.nan):
        with pytest.raises(InvalidInput):
            Poisson(1.0).thin(bad)


def test_truncation_tail():
    # Poisson 10 given K <= 30, by hand: P[K > 30] and E[K; K > 30] = 10 P[K > 29]
    law = AtMost(Poisson(10.0), 30)
    pmf = exact_pmf(Poisson(10.0))
    close(math.exp(law.log_tail_mass), mp.fsum(pmf[31:]), 1e-12)
    close(math.exp(law.law.log_tail_mean(30)), 10 * mp.fsum(pmf[30:]), 1e-12)
    assert not law.affine_power
    assert not law.supremum_at_edge


def test_a_cut_that_changes_nothing_is_the_law_itself():
    """A table up to here would not fit into memory."""
    for inner in (Fixed(10), Binomial(7, 0.2), AtLeastOne(Binomial(7, 0.2)), TNB(0.5, 1.0)):
        assert at_most(inner, 10**9) is inner
        assert clamp(inner, 10**9) is inner
    assert at_most(Fixed(10), 10) == clamp(Fixed(10), 10) == Fixed(10)
    assert at_least_one(TNB(0.0, 0.1)) == TNB(0.0, 0.1)
    assert at_least_one(Poisson(1.0)) == AtLeastOne(Poisson(1.0))
    with pytest.raises(InvalidInput, match="probability 0"):
        at_most(Fixed(10), 9)


def test_truncation_at_the_limit_is_quick_and_bounded():
    law = AtMost(TNB.with_mean(1e4, eta=0.0), 100_000)
    rank = Prob.from_logit(np.linspace(-30.0, 5.0, 64))
    inner = law.law.log_density(rank) - math.log1p(-math.exp(law.log_tail_mass))
    got = law.log_density(rank)
    assert np.all(got <= inner + 1e-12)
    assert got[40] == pytest.approx(inner[40], abs=1e-9)
    with pytest.raises(InvalidInput, match="100000"):
        AtMost(Poisson(10.0), 100_001)
    with pytest.raises(InvalidInput, match="probability 0"):
        AtMost(Fixed(5), 4)
    with pytest.raises(InvalidInput, match="only K = 0"):
        AtMost(FinitePmf(((0, 0.5), (9, 0.5))), 4)


# -- input -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"dist": "poisson", "mu": math.inf}, "mu"),
        ({"dist": "poisson", "mu": math.nan}, "mu"),
        ({"dist": "poisson", "mu": True}, "mu"),
        ({"dist": "poisson", "mu": 0.0}, "mu"),
        ({"dist": "poisson", "mu": "3"}, "mu"),
        ({"dist": "poisson"}, "mu"),
        ({"dist": "poisson", "mu": 1.0, "mean": 1.0}, "mean"),
        ({"dist": "poisson", "mu": 1.0, "eta": 0.0}, "eta"),
        ({"dist": "poisson", "mean": 0.0}, "mean"),
        ({"dist": "poisson", "mu": 1.0, "max_runs": 0}, "max_runs"),
        ({"dist": "poisson", "mu": 1.0, "max_runs": 2.5}, "max_runs"),
        ({"dist": "poisson", "mu": 1.0, "max_runs": True}, "max_runs"),
        ({"dist": "poisson", "mu": 1.0, "at_least_one": 2}, "at_least_one"),
        ({"dist": "tnb", "eta": -1.0, "gamma": 0.5}, "eta"),
        ({"dist": "tnb", "eta": math.nan, "gamma": 0.5}, "eta"),
        ({"dist": "tnb", "eta": math.inf, "mean": 5.0}, "eta"),
        ({"dist": "tnb", "gamma": 0.5}, "eta"),
        ({"dist": "tnb", "eta": 0.0}, "gamma"),
        ({"dist": "tnb", "eta": 0.0, "gamma": 0.0}, "gamma"),
        ({"dist": "tnb", "eta": 0.0, "gamma": 1.5}, "gamma"),
        ({"dist": "tnb", "eta": 0.0, "gamma": math.nan}, "gamma"),
        ({"dist": "tnb", "eta": 0.0, "mean": 0.5}, "mean"),
        ({"dist": "tnb", "eta": 0.0, "mean": math.inf}, "mean"),
        ({"dist": "geometric", "eta": 1.0, "gamma": 0.5}, "eta"),
        ({"dist": "binomial", "n": 2.5, "p": 0.5}, "n"),
        ({"dist": "binomial", "n": 0, "p": 0.5}, "n"),
        ({"dist": "binomial", "n": 5, "p": 0.0}, "p"),
        ({"dist": "binomial", "n": 5, "p": 1.01}, "p"),
        ({"dist": "binomial", "n": 5, "mean": 6}, "mean"),
        ({"dist": "binomial", "mean": 6}, "n"),
        ({"dist": "fixed", "k": 2.5}, "k"),
        ({"dist": "fixed", "k": 0}, "k"),
        ({"dist": "fixed", "k": math.inf}, "k"),
        ({"dist": "fixed", "k": 1e300}, "k"),
        ({"dist": "fixed", "mean": 3}, "mean"),
        ({"dist": "pmf", "pmf": [0.5, 0.6]}, "pmf"),
        ({"dist": "pmf", "pmf": [1.5, -0.5]}, "pmf"),
        ({"dist": "pmf", "pmf": [math.nan, 1.0]}, "pmf"),
        ({"dist": "pmf", "pmf": [[1, 0.5], [1, 0.5]]}, "pmf"),
        ({"dist": "pmf", "pmf": {1.5: 1.0}}, "pmf"),
        ({"dist": "pmf", "pmf": {-1: 1.0}}, "pmf"),
        ({"dist": "pmf", "pmf": {"1": 0.5, "one": 0.5}}, "pmf"),
        ({"dist": "pmf", "pmf": [1.0]}, "pmf"),
        ({"dist": "pmf", "pmf": []}, "pmf"),
        ({"dist": "pmf", "pmf": 0.5}, "pmf"),
        ({"dist": "pmf", "pmf": "file"}, "pmf"),
        ({"dist": "pmf", "pmf": [[1, 0.5], 0.5]}, "pmf"),
        ({"dist": "threshold", "accept": 0.0}, "accept"),
        ({"dist": "threshold", "accept": 2.0}, "accept"),
        ({"dist": "threshold", "accept": 0.5, "max_runs": 3}, "max_runs"),
        ({"dist": "threshold", "accept": 0.5, "at_least_one": True}, "at_least_one"),
        ({"dist": "threshold", "mean": 0.5}, "mean"),
        ({"dist": "poison", "mu": 1.0}, "dist"),
        ({"dist": ["poisson"]}, "dist"),
    ],
    ids=str,
)
def test_wrong_input_names_its_option(params, name):
    with pytest.raises(InvalidInput) as caught:
        make_law(**params)
    assert caught.value.parameter == name
    assert len(str(caught.value).splitlines()) == 1


def test_whole_numbers_may_be_floats():
    assert make_law("fixed", k=1e3) == Fixed(1000)
    assert make_law("binomial", n=1e2, p=1) == Binomial(100, 1.0)
    assert type(Fixed(1e3).k) is int


def test_laws_by_name():
    assert make_law("tnb", eta=0, mean=10).parameters() == {"eta": 0.0, "gamma": TNB.with_mean(10.0, eta=0.0).gamma}
    assert make_law("logarithmic", gamma=0.5).parameters() == {"gamma": 0.5}
    assert make_law("geometric", mean=4).mean == pytest.approx(4.0)
    for p in (0.3, 0.7, 1.0):
        one = Binomial(1, p)
        assert [one.log_sf(k) for k in (0, 1, 2)] == [pytest.approx(math.log(p)), -math.inf, -math.inf]
        assert [one.log_tail_mean(k) for k in (0, 1, 2)] == [pytest.approx(math.log(p)), -math.inf, -math.inf]
        assert one.log_cdf(0) == pytest.approx(math.log1p(-p) if p < 1.0 else -math.inf)
    assert Binomial.with_mean(0.5, n=1) == Binomial(1, 0.5)
    assert Binomial.with_mean(7.0, n=7) == Binomial(7, 1.0)
    assert [make_law(d, gamma=0.5).name for d in ("geometric", "logarithmic")] == ["geometric", "logarithmic"]
    assert make_law("binomial", n=20, mean=10) == Binomial(20, 0.5)
    assert make_law("threshold", mean=10).parameters() == {"accept": 0.1}
    both = make_law("poisson", mean=0.5, max_runs=3, at_least_one=True)
    assert both == AtLeastOne(AtMost(Poisson(0.5), 3))
    assert both.parameters() == {"mu": 0.5, "max_runs": 3, "at_least_one": True}
    assert make_law("poisson", mu=1, at_least_one=False, max_runs=None) == Poisson(1.0)
    assert make_law("pmf", pmf={"1": 0.5, "1000": 0.5}) == FinitePmf(((1, 0.5), (1000, 0.5)))
    assert make_law("pmf", pmf=[0, 0.5, 0.5]).parameters() == {"pmf": "1=0.5,2=0.5"}
    assert TNB.from_log_gamma(-0.99, -922.0).parameters() == {"eta": -0.99, "log_gamma": -922.0}
    for law in (*LAWS, Threshold(0.3)):
        assert isinstance(law, RunCount)
        assert hash(law) == hash(law)
        assert isinstance(law.name, str)


def test_gamma_reads_back_as_typed():
    for gamma in (0.0269, 1e-300, 0.1, 0.5, 0.02):
        assert make_law("tnb", eta=0, gamma=gamma).parameters()["gamma"] == gamma


def test_parse_law():
    assert parse_law("tnb:eta=0,mean=10") == {"dist": "tnb", "eta": 0.0, "mean": 10.0}
    assert parse_law(" poisson : mu = 1e1, max-runs=30, at-least-one") == {
        "dist": "poisson", "mu": 10.0, "max_runs": 30.0, "at_least_one": True,
    }  # fmt: skip
    assert parse_law("fixed:k=1e3") == {"dist": "fixed", "k": 1000.0}
    assert parse_law("tnb") == {"dist": "tnb"}
    assert parse_law("pmf:1=0.5,1000=0.5") == {"dist": "pmf", "pmf": {"1": 0.5, "1000": 0.5}}
    assert parse_law("pmf:pmf=k.yaml") == {"dist": "pmf", "pmf": "k.yaml"}
    assert make_law(**parse_law("pmf:1=0.5,1000=0.5")).mean == 500.5
    for law in LAWS:
        text = ",".join(k if v is True else f"{k}={v}" for k, v in law.parameters().items() if k != "pmf")
        pmf = law.parameters().get("pmf")
        text = f"{law.name}:" + ",".join(x for x in (pmf, text) if x)
        nested = isinstance(law, AtMost) and isinstance(law.law, AtLeastOne)
        if not nested and not (isinstance(law, AtLeastOne) and law.law.prob_zero == 0.0):
            assert make_law(**parse_law(text)).parameters() == law.parameters()


@pytest.mark.parametrize("text", ["", "poison:mu=1", "tnb:etta=1", "tnb:eta", "tnb:eta=", "tnb:eta=x",
                                  "tnb:eta=0,eta=1", "poisson:mu=1,,", "poisson:eta=1", "pmf:1=0.5,1=0.5",
                                  "pmf:1=0.5,pmf=f", "poisson:mu=1,at-least-one=maybe", None])  # fmt: skip
def test_parse_law_refuses(text):
    with pytest.raises(InvalidInput) as caught:
        parse_law(text)
    assert caught.value.parameter == "law"


def test_what_a_line_of_text_may_hold():
    assert parse_law("poisson:at-least-one,mu=1") == {"dist": "poisson", "at_least_one": True, "mu": 1.0}
    assert parse_law("pmf:pmf=k.yaml,max-runs=3") == {"dist": "pmf", "pmf": "k.yaml", "max_runs": 3.0}
    for text, message in (("tnb:3=1", "not 3"), ("tnb:eta=", "write NAME"), ("tnb:eta", "write NAME"),
                          ("tnb:=1", "not $"), ("pmf:0.5=1", "not 0.5"), ("tnb:eta=one", "not 'one'")):  # fmt: skip
        with pytest.raises(InvalidInput, match=message):
            parse_law(text)
    for params, message in (({"dist": "poisson"}, "needs mu or mean$"), ({"dist": "tnb", "mean": 2}, "needs eta$"),
                            ({"dist": "binomial", "p": 0.5}, "needs n$"), ({"dist": "fixed"}, "needs k$")):  # fmt: skip
        with pytest.raises(InvalidInput, match=message):
            make_law(**params)


def test_nearest_name_is_offered():
    with pytest.raises(InvalidInput, match="did you mean poisson"):
        parse_law("poison:mu=1")
    with pytest.raises(InvalidInput, match="did you mean eta"):
        parse_law("tnb:etta=1")


# -- what the bounds and the conditions ask of a law -------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_cumulants_against_enumeration(law):
    pmf = exact_pmf(law)
    for s in (0.0, 1e-12, 1e-3, 0.05):
        growth = mp.fsum(p * mp.expm1(mp.mpf(s) * k) for k, p in enumerate(pmf))
        close(law.cumulant(s), mp.log1p(growth), 2e-12, floor=1e-3)
    if law.max_runs is not None:
        for s in (3.0, 800.0):
            close(law.cumulant(s), mp.log(mp.fsum(p * mp.exp(mp.mpf(s) * k) for k, p in enumerate(pmf))), 2e-12)


def test_cumulants_end_at_the_radius_of_convergence():
    # f(x) is finite for x < 1/(1-gamma) only
    for eta in (-0.5, 0.0, 1.0, 3.0):
        law = TNB.from_gamma(eta, 0.5)
        assert law.cumulant(math.log(2.0) * (1 + 1e-12)) == law.cumulant(5.0) == math.inf
        s, gamma = mp.mpf("0.69"), mp.mpf("0.5")
        left = 1 - (1 - gamma) * mp.exp(s)
        if eta == 0:
            f = mp.log(left) / mp.log(gamma)
        else:
            f = (left**-eta - 1) / (gamma**-eta - 1)
        close(law.cumulant(0.69), mp.log(f), 1e-12)
    assert Threshold(0.5).cumulant(math.log(2.0) * (1 + 1e-12)) == math.inf
    close(Threshold(0.5).cumulant(0.69), mp.log(mp.exp(s) / 2 / (1 - mp.exp(s) / 2)), 1e-12)
    assert (Threshold(0.5).cumulant(0.0), Threshold(1.0).cumulant(3.0)) == (0.0, 3.0)
    assert (TNB.from_log_gamma(0.5, 0.0).cumulant(3.0), TNB.from_log_gamma(0.5, -1.0).cumulant(0.0)) == (3.0, 0.0)
    close(Poisson(2.0).cumulant(699.0), 2 * mp.expm1(699), 1e-12)
    assert Poisson(2.0).cumulant(710.0) == math.inf
    for s in (699.0, 701.0):
        close(Binomial(3, 0.25).cumulant(s), 3 * (mp.log(0.25) + mp.mpf(s)), 1e-12)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_moments_given_a_run(law):
    pmf = exact_pmf(law)
    run = mp.fsum(pmf[1:])
    if law.max_runs is not None:
        assert law.max_runs == (law.law.max_runs if isinstance(law, AtLeastOne) else max(
            k for k, p in enumerate(pmf) if p or isinstance(law, AtMost)))  # fmt: skip
    close(law.log_prob_run, mp.log(run), 1e-12, floor=1e-3)
    close(law.log_mean_given_run, mp.log(mp.fsum(k * p for k, p in enumerate(pmf)) / run), 2e-12, floor=1e-3)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_gain_at_the_edge_against_enumeration(law):
    pmf = exact_pmf(law)

    def density(q):
        return mp.fsum(k * p * q ** (k - 1) for k, p in enumerate(pmf) if k)

    for epsilon in (1e-9, 0.3, 2.0, 60.0):
        u = 1 / (1 + mp.exp(mp.mpf(epsilon)))
        want = mp.log(density(1 - u) / density(u))
        close(law.gain_at_edge(epsilon), want, 2e-12, floor=1e-3)
    assert law.affine_power == law.supremum_at_edge
    # the excess: the mean of K - 1 under the weights k p_k (1-u)^(k-1)
    for u, q in RANKS[3:8]:
        rank, u, q = rank_of(u, q)
        excess = mp.fsum(k * (k - 1) * p * q ** (k - 1) for k, p in enumerate(pmf) if k) / density(q)
        got = float(law.log_mean_excess(rank)[0])
        if got == math.inf:  # no bound: none is needed
            assert law.supremum_at_edge
        else:
            close(got, mp.log(excess), 2e-12, floor=1.0)


def test_truncated_negative_binomial_by_its_parameters():
    law = TNB.from_log_gamma(-0.0, -0.0)
    assert (repr(law.parameters()), law.name) == ("{'eta': 0.0, 'gamma': 1.0}", "tnb")
    assert math.copysign(1.0, law.log_gamma) == 1.0
    assert TNB.from_gamma(0.5, 0.02) == TNB.from_log_gamma(0.5, math.log(0.02))
    assert TNB.from_gamma(0.5, 1.0).max_runs == TNB.from_log_gamma(0.5, 0.0).max_runs == 1
    assert TNB.from_log_gamma(0.5, -1e-9).max_runs is None
    assert "given" not in repr(TNB.from_gamma(0.5, 0.02))
    assert list(TNB.from_log_gamma(0.5, -707.9).parameters()) == ["eta", "gamma"]
    assert list(TNB.from_log_gamma(0.5, -708.0).parameters()) == ["eta", "log_gamma"]
    for bad in (0.5, 1e-300, math.nan, -math.inf):
        with pytest.raises(InvalidInput, match="^gamma: "):
            TNB.from_log_gamma(0.0, bad)
    for bad in (0.0, -0.1, 1.0000001):
        with pytest.raises(InvalidInput, match="0 < gamma <= 1"):
            TNB.from_gamma(0.0, bad)
    for bad in (-1.0, -1.5, math.nan):
        with pytest.raises(InvalidInput, match="^eta: "):
            TNB.from_log_gamma(bad, -1.0)
    assert (Geometric(0.02).eta, Logarithmic(0.02).eta) == (1.0, 0.0)
    assert repr(Geometric(0.02)) == "Geometric(gamma=0.02)"
    assert (
        repr(TNB.from_log_gamma(0.5, -900.0)) == "TruncatedNegativeBinomial.from_log_gamma(eta=0.5, log_gamma=-900.0)"
    )
    assert Geometric(0.5) != TNB(1.0, 0.5)
    assert pickle.loads(pickle.dumps(Geometric(0.02))) == copy.copy(Geometric(0.02)) == Geometric(0.02)
    with pytest.raises(InvalidInput, match="^eta: .*geometric"):
        Geometric.from_log_gamma(0.5, -1.0)
    with pytest.raises(InvalidInput, match="^mean: "):
        TNB.with_mean(1.0 - 1e-12, eta=0.0)


def test_tails_of_a_narrow_law():
    """Shape 1e4: a standard deviation of 1 % of the mean, so every tail is an integral over a narrow peak."""
    from scipy import stats

    wide = TNB.from_gamma(1e6, 0.3)
    for k in (2.1e6, 2.32e6, 2.335e6):
        assert wide.log_sf(int(k)) == pytest.approx(stats.nbinom.logsf(int(k), 1e6, 0.3), rel=1e-7, abs=1e-9)
    eta, gamma = 1e4, 0.3
    law = TNB.from_gamma(eta, gamma)  # gamma^eta is 0 to every digit: the truncation does nothing
    mean, sd = eta * 0.7 / 0.3, math.sqrt(eta * 0.7) / 0.3
    assert (law.mean, law.sd) == (pytest.approx(mean, rel=1e-12), pytest.approx(sd, rel=1e-9))
    for k in (mean - 6 * sd, mean - sd, mean, mean + 2 * sd, mean + 8 * sd):
        assert law.log_sf(int(k)) == pytest.approx(stats.nbinom.logsf(int(k), eta, gamma), rel=1e-8, abs=1e-10)
        size_biased = stats.nbinom.logsf(int(k) - 1, eta + 1, gamma)
        assert law.log_tail_mean(int(k)) == pytest.approx(law.log_mean + size_biased, rel=1e-8, abs=1e-10)


def test_tails_at_huge_counts():
    """P[K > k] of the logarithmic law is an incomplete beta function B(k+1, 0), over L."""
    for log_gamma in (-1.0, -8.0):
        law = TNB.from_log_gamma(0.0, log_gamma)
        z = -mp.expm1(log_gamma)
        for k in (1, 7, 100, 10**4):
            want = z ** (k + 1) / (k + 1) * mp.hyp2f1(k + 1, 1, k + 2, z) / -mp.mpf(log_gamma)
            close(law.log_sf(k), mp.log(want), 1e-11, floor=1.0)


def test_a_run_nearly_sure_or_nearly_never():
    """Moments given a run, where P[K = 0] is near 0 and near 1."""
    for law in (Poisson(1e-9), Poisson(1.1), Poisson(1.3), Poisson(30.0), Binomial(5, 1e-9), Binomial(5, 0.2),
                Binomial(5, 0.25), Binomial(5, 0.999), FinitePmf(((0, 1 - 1e-7), (1, 5e-8), (3, 5e-8)))):  # fmt: skip
        pmf = exact_pmf(law)
        run = mp.fsum(pmf[1:])
        mean = mp.fsum(k * p for k, p in enumerate(pmf)) / run
        square = mp.fsum(k * k * p for k, p in enumerate(pmf)) / run
        some = AtLeastOne(law)
        close(some.mean, mean, 1e-12)
        close(some.sd, mp.sqrt(square - mean * mean), 1e-8)
        assert (some.log_sf(0), some.log_mean_given_run) == (0.0, some.log_mean)
        close(some.log_sf(1), mp.log(mp.fsum(pmf[2:]) / run), 1e-11, floor=1.0)


def test_threshold_is_geometric():
    for accept in (1e-9, 0.1, 0.5, 0.75, 1.0):
        law, p = Threshold(accept), mp.mpf(accept)
        close(law.mean, 1 / p, 1e-15)
        close(law.log_mean, -mp.log(p), 1e-15)
        close(law.sd, mp.sqrt(1 - p) / p, 1e-13)
        assert law.max_runs == (1 if accept == 1.0 else None)
        assert law.prob_zero == 0.0
        got = law.log_pmf(np.arange(6.0))
        assert got[0] == -math.inf
        for k in range(1, 6):
            mass, above = (1 - p) ** (k - 1) * p, (1 - p) ** k
            close(got[k], mp.log(mass) if mass else mp.mpf("-inf"), 1e-12, floor=1.0)
            close(law.log_sf(k), mp.log(above) if above else mp.mpf("-inf"), 1e-12, floor=1e-300)
        assert law.log_sf(0) == 0.0
    assert Threshold.with_mean(1.0) == Threshold(1.0)
    assert Threshold.with_mean(4.0) == Threshold(0.25)
    with pytest.raises(InvalidInput):
        Threshold.with_mean(0.999)


def test_moments_of_huge_laws():
    """Means beyond the largest double are inf, their logarithms not."""
    for log_gamma, eta in ((-709.0, 0.0), (-709.9, 1.0), (-900.0, 0.5), (-300.0, 3.0)):
        law, exact = TNB.from_log_gamma(eta, log_gamma), ExactTNB(eta, log_gamma)
        largest = mp.mpf(2) ** 1024
        close(law.log_mean, mp.log(exact.mean()), 1e-13)
        for got, want in ((law.mean, exact.mean()), (law.sd, exact.sd())):
            if want < largest * mp.mpf("0.99"):
                close(got, want, 1e-11)
            elif want > largest * mp.mpf("1.01"):
                assert got == math.inf


def test_distribution_function_where_it_is_no_longer_summed():
    law, exact = TNB.from_gamma(1.0, 1e-3), mp.mpf("0.999")
    for k in (4094, 4095, 4096, 4097, 20_000):
        close(law.log_cdf(k), mp.log1p(-(exact**k)), 1e-11)
        close(law.log_sf(k), k * mp.log(exact), 1e-11)
    # quantiles on both sides of the end of the look-up table
    q = mp.log(mp.mpf("0.999"))
    for k in (4094, 4095, 4096, 4097, 8191, 8192, 8193, 12_287, 12_288):
        p = float(-mp.expm1(q * (k - mp.mpf("0.5"))))
        assert law.quantile(p) == k


def test_large_quantiles_take_few_looks(monkeypatch):
    asked = []
    look = TNB.log_sf
    monkeypatch.setattr(TNB, "log_sf", lambda self, k: asked.append(k) or look(self, k))
    for length, most in ((12.0, 24), (23.0, 45), (40.0, 73), (404.8, 80), (600.0, 82)):
        law = TNB.from_log_gamma(1.0, -length)
        asked.clear()
        k = law.quantile(0.95)
        exact = mp.ceil(mp.log(mp.mpf("0.05")) / mp.log1p(-mp.exp(-length)))
        assert k == exact if length < 30.0 else k == pytest.approx(float(exact), rel=1e-13)
        assert len(asked) <= most


def test_ties_beyond_the_table_are_reached():
    for gamma, k in ((1e-3, 5000), (1e-3, 20_000), (1e-4, 5000), (1e-4, 6900), (1e-5, 4096), (1e-5, 4097)):
        p = float(-mp.expm1(k * mp.log1p(-mp.mpf(gamma))))  # P[K <= k] itself, to a rounding
        assert TNB.from_gamma(1.0, gamma).quantile(p) == k


NEARLY_SURE = [Poisson(m) for m in (40.0, 200.0, 700.0, 3e3)] + [Binomial(n, 0.4) for n in (60, 300, 5000)]
NEARLY_SURE += [FinitePmf(dict.fromkeys(range(1, n), 1 / (n - 1))) for n in (7, 11, 24, 50)]
NEARLY_SURE += [AtLeastOne(TNB.from_log_gamma(eta, -9.0)) for eta in (5.0, 7.5, 11.0)]
NEARLY_SURE += [
    TNB.from_log_gamma(2.0, -100.0),
    TNB.from_log_gamma(5.0, -30.0),
    TNB.from_log_gamma(-0.1, -100.0),
    TNB.from_log_gamma(0.3, -30.0),
    AtLeastOne(Poisson(45.0)),
]


@pytest.mark.parametrize("law", [*LAWS, Threshold(0.3), *NEARLY_SURE], ids=repr)
def test_probabilities_never_exceed_one(law):
    for k in (0, 1, 2, 3, 5, 9, 17, 40, 41, 100, 1000):
        for value in (law.log_cdf(k), law.log_sf(k)):
            assert value <= 0.0
        assert math.exp(law.log_cdf(k)) + math.exp(law.log_sf(k)) == pytest.approx(1.0, abs=1e-12)
        assert not isinstance(law, TNB) or law.log_tail_mean(k) <= law.log_mean


def test_quantile_wants_a_probability():
    for p in (0.0, 1.0, -0.1, 1.5, math.nan, "0.5", None):
        with pytest.raises(InvalidInput, match="^p: "):
            Poisson(3.0).quantile(p)
    assert Fixed(7).quantile(1e-300) == Fixed(7).quantile(1 - 2**-53) == 7


def test_limits_of_whole_numbers():
    assert Fixed(2**53).k == 2**53
    assert Fixed(1).k == Binomial(1, 0.5).n == AtMost(Poisson(1.0), 1).m == 1
    for bad in (2**53 + 2, 0, -1, 0.5, None, "7", np.True_, 10**400, [3]):
        with pytest.raises(InvalidInput, match="^k: "):
            Fixed(bad)
    for bad in (math.nan, -1.0, 0.0, 10**400):
        with pytest.raises(InvalidInput, match="^mu: "):
            Poisson(bad)
    assert AtMost(Poisson(10.0), 100_000).max_runs == 100_000


def test_probabilities_may_miss_one_by_a_billionth():
    law = FinitePmf(((1, 0.5), (2, 0.5 + 9e-10)))
    assert math.fsum(p for _, p in law.probabilities) == pytest.approx(1.0, abs=2e-16)
    assert law.probabilities[1][1] / law.probabilities[0][1] == pytest.approx(1 + 1.8e-9, rel=3e-16)
    assert FinitePmf({3: 1.0 + 9e-10}).probabilities == ((3, 1.0),)
    assert FinitePmf([[3, 0.25], (1, 0.75)]).probabilities == ((1, 0.75), (3, 0.25))
    for bad in ({1: 0.5, 2: 0.5 + 3e-9}, {1: 0.5, 2: 0.5 - 3e-9}, {1: 1 + 5e-9, 2: 0.0}, {1: 1.2, 2: -0.2},
                [[1, 0.5, 0.0], [2, 0.5]], [0.5, [1, 0.5]]):  # fmt: skip
        with pytest.raises(InvalidInput, match="^pmf: "):
            FinitePmf(bad)
    for much in (1.2, 1 + 5e-9, 2.5):
        with pytest.raises(InvalidInput, match="between 0 and 1 for 3 runs"):
            FinitePmf({3: much})


def test_tables_with_all_but_nothing_at_one_number():
    """Weights below the smallest double times the largest, and tails that no sum can see."""
    some = FinitePmf(((0, 1.0), (1, 1e-300), (7, 1e-300)))
    close(some.log_mean_given_run, mp.log(4), 1e-13)
    close(some.log_mean, mp.log(8) + mp.log(mp.mpf(1e-300)), 1e-15)
    sure = FinitePmf(((1, 1e-30), (2, 1.0)))
    assert (sure.mean, sure.log_density(Prob.from_u(np.array([0.0])))[0]) == (2.0, math.log(2.0))
    far = FinitePmf(((1, 1.0), (50, 1e-40)))
    assert (far.mean, far.log_sf(1)) == (1.0, pytest.approx(math.log(1e-40)))
    holes = AtMost(FinitePmf(((0, 0.5), (3, 0.25), (9, 0.25))), 5)
    close(holes.mean, mp.mpf(1), 1e-15)
    # a number of runs too rare for the density, but all that bends it
    bend = far.log_density_slope(Prob.from_u(np.array([0.5])))[0]
    close(bend, mp.log(50 * 49 * mp.mpf(1e-40)) - 48 * mp.log(2), 1e-13)
    assert FinitePmf({0: 0.5, 1: 0.5}).log_density_slope(Prob.from_u(0.5)) == -math.inf
    close(holes.log_density(Prob.from_u(np.array([0.5])))[0], mp.log(mp.mpf(3) / 3 / 4), 1e-14)


def test_a_long_table_is_echoed_by_its_size():
    def flat(count):
        return FinitePmf(dict.fromkeys(range(1, count + 1), 1 / count))

    assert flat(33).parameters() == {"pmf": "33 values from 1 to 33"}
    assert flat(32).parameters()["pmf"].count("=") == 32


def test_options_of_make_law():
    assert make_law("fixed", k=3, max_runs=3).max_runs == 3
    assert make_law("tnb", eta=2, gamma=0.5).parameters() == {"eta": 2.0, "gamma": 0.5}
    assert make_law("logarithmic", mean=5) == Logarithmic.with_mean(5.0)
    assert make_law("geometric", mean=5) == Geometric.with_mean(5.0)
    assert make_law("threshold", accept=0.2) == Threshold(0.2)
    assert make_law("threshold", accept=0.2, at_least_one=False) == Threshold(0.2)
    assert make_law("poisson", mu=2, at_least_one=np.True_) == AtLeastOne(Poisson(2.0))
    assert parse_law("poisson:mu=1,at-least-one=false")["at_least_one"] is False
    assert parse_law("poisson:mu=1,at_least_one=TRUE")["at_least_one"] is True
    for law in (AtMost, AtLeastOne):
        with pytest.raises(InvalidInput):
            law(Threshold(0.5), 3) if law is AtMost else law(Threshold(0.5))


def test_no_scipy():
    code = (
        "import sys, random\n"
        "from hpcalc.laws import *\n"
        "for law in (Poisson(1e6), Binomial(10**9, 0.5), TruncatedNegativeBinomial.with_mean(1e6, eta=0)):\n"
        "    law.quantile(0.95), law.sample(random.SystemRandom())\n"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('scipy', 'click', 'rich', 'yaml')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
