"""Laws of the number of runs, against mpmath and against enumeration."""

import itertools
import math
import random

import exact
import mpmath as mp
import numpy as np
import pytest
from law_oracle import LAWS, RANKS, TNB, close, exact_pmf, log_or_none, rank_of

from hpcalc import Adaptive, AnyRuns, AtLeastOne, AtMost, Binomial, Clamped, FinitePmf, Fixed, Poisson, Threshold
from hpcalc.errors import InvalidInput
from hpcalc.laws import TruncatedNegativeBinomial, modified
from hpcalc.logspace import ONE, ZERO, Prob, logsumexp

ETAS = (-1 + 1e-12, -1 + 1e-6, -0.99, -0.5, -1e-5, -1e-12, 0.0, 1e-17, 1e-12, 1e-6, 0.24, 0.5, 1.0, 2.0, 30.5, 1e6)
LOG_GAMMAS = (-1e-15, -1e-9, -1e-3, -0.3, -6.9, -690.77, -922.0)


CLOSED = [[Poisson(mu) for mu in (1e-9, 0.5, 10.0, 700.0, 1e12)]]
CLOSED += [[AtLeastOne(law) for law in CLOSED[0]]]
CLOSED += [[Binomial(n, p) for n, p in ((1, 0.3), (1, 1.0), (2, 1e-9), (20, 0.5), (1000, 1.0), (1000, 1 - 1e-12),
                                        (10**12, 1e-11), (10**12, 0.5), (10**9, 1.0))]]  # fmt: skip
CLOSED += [[TNB.from_log_gamma(eta, log_gamma) for log_gamma in LOG_GAMMAS[i % 2 :: 2]] for i, eta in enumerate(ETAS)]


@pytest.mark.slow
@pytest.mark.parametrize("laws", CLOSED, ids=lambda laws: repr(laws[0]))
def test_closed_forms(laws):
    for law, at in itertools.product(laws, RANKS[::2]):
        with mp.workdps(900):
            rank, u, q = rank_of(*at)
            density, f = exact.log_density(law, u, q), exact.pgf(law, u, q)
            log_f, log_s = mp.log(f), mp.log1p(-f)
        close(law.log_mean, exact.log_mean(law), 1e-12, floor=1.0)
        close(law.log_density(rank)[0], density, 1e-12, floor=1.0)
        close(law.log_density_slope(rank)[0], density + log_or_none(steepness(law, u, q)), 1e-12, floor=1.0)
        for got, want in zip(law.success(rank), (log_s, log_f), strict=True):
            close(got[0], want, 2e-12)


def steepness(law, u, q):
    """-F'(u)/F(u)."""
    if isinstance(law, AtLeastOne):
        law = law.law
    if isinstance(law, Poisson):
        return mp.mpf(law.mu)
    if isinstance(law, Binomial):
        return (law.n - 1) * mp.mpf(law.p) / (1 - law.p + law.p * q)
    odds = mp.expm1(-mp.mpf(law.log_gamma))
    return (1 + mp.mpf(law.eta)) * odds / (1 + odds * u)


@pytest.mark.parametrize("eta", ETAS)
def test_spread_and_mean_rank_of_truncated_negative_binomials(eta):
    for log_gamma in LOG_GAMMAS:
        law, gamma = TNB.from_log_gamma(eta, log_gamma), mp.exp(log_gamma)
        mean = mp.exp(exact.log_mean(law))
        sd = mp.sqrt(mean * ((1 + mp.mpf(eta)) * (1 - gamma) / gamma + 1 - mean))
        for got, want, error in ((law.mean, mean, 1e-11), (law.sd, sd, 1e-11 + 1e-15 / (1.0 + eta))):
            if want < mp.mpf("1.7e308"):
                close(got, want, error, floor=1e3)
            elif want > mp.mpf("1.8e308"):
                assert got == math.inf


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_every_law_against_enumeration(law):
    pmf = exact_pmf(law)

    def total(weight):
        return mp.fsum(weight(k) * p for k, p in enumerate(pmf) if p)

    mean, run = total(lambda k: k), mp.fsum(pmf[1:])
    close(law.mean, mean, 1e-13)
    close(law.log_mean, mp.log(mean), 1e-12, floor=1.0)
    close(law.sd, mp.sqrt(total(lambda k: (k - mean) ** 2)), 1e-12, floor=1e5 if isinstance(law, AtLeastOne) else 1e-9)
    close(law.log_prob_zero, log_or_none(pmf[0]), 1e-13, floor=1.0)
    log_run = float(law.success(ONE).log_u)
    close(log_run, mp.log(run), 1e-12, floor=1e-3)
    close(law.log_mean - log_run, mp.log(mean / run), 2e-12, floor=1e-3)
    close(law.expected_quantile, total(lambda k: mp.mpf(k) / (k + 1)), 1e-13)
    with np.errstate(all="raise"):
        got = law.log_pmf(np.arange(20.0))
    for k in range(20):
        close(got[k], log_or_none(pmf[k] if k < len(pmf) else mp.mpf(0)), 1e-12, floor=1.0)
    for k in range(8):
        close(math.exp(law.log_sf(k)), mp.fsum(pmf[k + 1 :]), 1e-11, floor=1e-30)
        close(math.exp(law.log_cdf(k)), mp.fsum(pmf[: k + 1]), 1e-11)
    for epsilon in (1e-9, 0.3, 2.0, 60.0) if law.affine_power else ():
        u = 1 / (1 + mp.exp(mp.mpf(epsilon)))
        first, second = (total(lambda k: k * q ** (k - 1) if k else 0) for q in (1 - u, u))
        close(law.gain_at_edge(epsilon), mp.log(first / second), 2e-12, floor=1e-2)
    for u, q in [*RANKS, ("0", None), (None, "0")]:
        rank, u, q = rank_of(u, q)
        with np.errstate(all="raise", under="ignore"):
            density, (survival, pgf) = law.log_density(rank), law.success(rank)
            bend, upper, lower = law.log_density_slope(rank), law.log_upper_density(rank), law.log_lower_density(rank)
        assert density.shape == bend.shape == rank.log_u.shape
        assert upper == lower == density
        close(bend.item(), log_or_none(total(lambda k: k * (k - 1) * q ** (k - 2) if k > 1 else 0)), 2e-12, floor=1.0)
        close(density.item(), log_or_none(total(lambda k: k * q ** (k - 1) if k else 0)), 2e-12, floor=1.0)
        log_q = mp.log1p(-u) if u < 0.5 else log_or_none(q)
        lost = total(lambda k: -mp.expm1(k * log_q) if k else 0)
        left = pmf[0] + total(lambda k: q**k if k else 0)
        close(pgf.item(), mp.log1p(-lost) if lost < 0.5 else log_or_none(left), 2e-12, floor=1e-299)
        if left == 0 or left > 1e-290:  # below, 1 - f rounds to 1
            close(survival.item(), log_or_none(lost), 2e-12, floor=1e-3)


HUGE = [Poisson(1e6), *map(TNB.from_log_gamma, (-0.99, 0.0, 5.0), (-920.0, -690.0, -1e-9))]


@pytest.mark.parametrize("law", [*LAWS, *HUGE], ids=repr)
def test_narrow_blocks_keep_their_digits(law):
    for u, relative in [("1e-200", "1e-30"), ("1e-6", "1e-20"), ("0.3", "1e-20"), ("0.3", "1"), ("0.999", "1e-9")]:
        lo, u, q = rank_of(u, None)
        width = u * mp.mpf(relative)
        top = u + width
        hi = Prob(np.array([float(mp.log(top))]), np.array([float(mp.log1p(-top))]))
        if isinstance(law, Poisson):
            want = mp.exp(-law.mu * u) * -mp.expm1(-law.mu * width)
        elif isinstance(law, TruncatedNegativeBinomial) and law.log_gamma < 0:
            with mp.workdps(700):
                want = exact.survival(law, top) - exact.survival(law, u)
        else:
            step = mp.log1p(-width / q)
            want = mp.fsum(p * q**k * -mp.expm1(k * step) for k, p in enumerate(exact_pmf(law)) if k)
        close(law.log_block(lo, hi, np.array([float(mp.log(width))]))[0], mp.log(want), 2e-12, floor=1.0)
    same = Prob.from_u(np.array([0.0, 0.25, 1.0]))
    assert np.all(np.isneginf(law.log_block(same, same, np.full(3, -np.inf))))


# -- searches whose proposals adapt ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", [Poisson(10.0), TNB.with_mean(3.0, eta=0.0), Clamped(Poisson(3.0), 7)], ids=repr)
@pytest.mark.parametrize(("low", "high"), [(0.9, 1.1), (1.0, 1.5), (0.5, 1.0), (1e-3, 1e3)])
def test_bounds_on_densities_of_adaptive_searches(law, low, high):
    """C f'(1 - c u) from above, c f'(1 - min(C v, 1 - c (1 - v))) from below, and its slope."""
    adaptive, c, most = Adaptive(law, low, high), mp.mpf(low), mp.mpf(high)
    pmf = exact_pmf(law)

    def density(q, order=1):
        return mp.fsum(mp.ff(k, order) * p * q ** (k - order) for k, p in enumerate(pmf) if k >= order)

    kink = (1.0 - low) / (high - low) if low < 1.0 else 1.0
    for u in (0.0, 1e-300, 0.1, 0.9, 0.999, kink, 1.0):
        rank, v = Prob.from_u(np.array([u])), mp.mpf(u)
        near = 1e-9 if u == kink else 1e-12  # where 1 - C v is small
        close(adaptive.log_upper_density(rank)[0], mp.log(most * density(1 - c * v)), near, floor=1.0)
        rest = max(1 - most * v, c * (1 - v))
        close(adaptive.log_lower_density(rank)[0], log_or_none(c * density(rest)), near, floor=1.0)
        want = log_or_none(c * density(rest, 2) * (most if low < 1.0 and u < kink else c))
        if u != kink:
            close(adaptive.log_lower_density_slope(rank)[0], want, near, floor=1.0)
    assert (adaptive.log_mean, adaptive.quantile(0.9)) == (law.log_mean, law.quantile(0.9))


def test_a_range_of_densities_holds_one():
    for low, high in ((1.1, 1.2), (0.5, 0.9), (0.0, 1.0), (math.nan, 2.0), (-1.0, 2.0), (0.5, math.inf)):
        with pytest.raises(InvalidInput, match="^density: "):
            Adaptive(Poisson(3.0), low, high)
    for wrap, more in ((Adaptive, (0.5, 2.0)), (AtMost, (3,)), (Clamped, (3,)), (AtLeastOne, ())):
        with pytest.raises(InvalidInput, match="leave it out"):
            wrap(Threshold(0.5), *more)
        with pytest.raises(TypeError, match="give a law of K"):
            wrap(10, *more)


# -- means, limits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [-1 + 1e-9, -0.99, -0.5, -1e-12, 0.0, 1e-17, 0.5, 1.0, 5.0, 1e6])
@pytest.mark.parametrize("mean", [1 + 2**-52, 1 + 1e-9, 1.01, 40.0, 1e9, 1e15])
def test_gamma_from_mean(eta, mean):
    law = TNB.with_mean(mean, eta=eta)
    # of the doubles around log gamma, none has a mean nearer to the wanted one than rounding in the mean itself
    want, got = mp.log(mp.mpf(mean)), exact.log_mean(law)
    assert abs(got - want) <= 4e-15 * max(abs(want), 1)


@pytest.mark.parametrize("eta", [-1 + 2e-7, -1 + 8e-6, -1 + 4e-9, -0.9, -0.5, -0.3, 0.0, 1e-9, 0.7, 3.0])
@pytest.mark.parametrize("log_gamma", [-2e-8, -5.5e-8, -1e-3, -0.0099, -0.0101, -0.2, -5.0, -164.0])
def test_the_mean_keeps_its_digits_near_one_run(eta, log_gamma):
    # Theorem 2 adds its logarithm to a cost that may be as small
    law = TNB.from_log_gamma(eta, log_gamma)
    with mp.workdps(80):
        want = exact.log_mean(law)
    assert abs(law.log_mean - want) <= 3e-13 * abs(want)


def test_mean_one_is_one_run():
    for eta in (-0.5, 0.0, 1.0, 7.0):
        law = TNB.with_mean(1.0, eta=eta)
        assert law == TNB(eta, 1.0)
        assert (law.mean, law.sd, law.log_mean, law.gamma) == (1.0, 0.0, 0.0, 1.0)
        assert law.quantile(0.999) == law.sample(random.Random(1)) == law.max_runs == 1
        assert law.expected_quantile == pytest.approx(0.5, rel=1e-14)


def test_laws_that_are_not_of_best_of_k():
    for accept in (1e-9, 0.1, 0.75, 1.0):
        law, p = Threshold(accept), mp.mpf(accept)
        close(law.mean, 1 / p, 1e-15)
        close(law.sd, mp.sqrt(1 - p) / p, 1e-13)
        assert law.max_runs == (1 if accept == 1.0 else None)
        for k in range(6):
            probability = (1 - p) ** (k - 1) * p if k else p * 0
            close(law.log_pmf(np.array(float(k))), log_or_none(probability), 1e-12, floor=1.0)
            close(law.log_sf(k), log_or_none((1 - p) ** k), 1e-12, floor=1e-300)
    assert Threshold.with_mean(4.0) == Threshold(0.25)
    runs = AnyRuns(1e1)
    assert (runs.k, runs.mean, runs.max_runs, runs.quantile(0.5)) == (10, 10.0, 10, 10)
    assert runs.sd == runs.prob_zero == 0.0
    for law in (runs, Threshold(0.5)):
        with pytest.raises(InvalidInput, match=f"^dist: {law.name} .*no K to draw"):
            law.sample(random.Random(1))


# -- thinned, cut and tabulated laws -----------------------------------------------------------------------------------


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


def test_thinning_closed_forms():
    for log_gamma in (-1e-12, -0.1, -0.6, -5.0, -690.0, -900.0):
        for log_keep in (-1e-300, -1e-20, -0.3, -50.0):
            with mp.workdps(700):
                want = mp.log1p(mp.expm1(log_gamma) * mp.exp(log_keep))
            close(TNB.from_log_gamma(0.5, log_gamma).thin(log_keep).log_gamma, want, 1e-12)


def test_laws_that_are_cut():
    assert not AtMost(Poisson(10.0), 30).affine_power
    # nothing is cut: the law itself, for a table up to here would not fit into memory
    for inner in (Fixed(10), Binomial(7, 0.2), AtLeastOne(Binomial(7, 0.2)), TNB(0.5, 1.0)):
        assert modified(inner, max_runs=10**9, clamp_runs=10**9, at_least_one=inner.prob_zero == 0.0) is inner
    assert modified(Poisson(1.0), at_least_one=True) == AtLeastOne(Poisson(1.0))
    with pytest.raises(InvalidInput, match="probability 0"):
        AtMost(Fixed(10), 9)
    with pytest.raises(InvalidInput, match="only K = 0"):
        AtMost(FinitePmf(((0, 0.5), (9, 0.5))), 4)


def test_the_longest_table():
    law = AtMost(TNB.with_mean(1e4, eta=0.0), 100_000)
    rank = Prob.from_logit(np.linspace(-30.0, 5.0, 64))
    inner = law.law.log_density(rank) - law.log_kept
    got = law.log_density(rank)
    assert np.all(got <= inner + 1e-12)
    assert got[40] == pytest.approx(inner[40], abs=1e-9)


def test_tables_with_all_but_nothing_at_one_number():
    """Weights below the smallest double times the largest, and tails that no sum can see."""
    some = FinitePmf(((0, 1.0), (1, 1e-300), (7, 1e-300)))
    close(some.log_mean - some.success(ONE).log_u, mp.log(4), 1e-13)
    close(some.log_mean, mp.log(8) + mp.log(mp.mpf(1e-300)), 1e-15)
    sure = FinitePmf(((1, 1e-30), (2, 1.0)))
    assert (sure.mean, sure.log_density(ZERO)) == (2.0, math.log(2.0))
    far, half = FinitePmf(((1, 1.0), (50, 1e-40))), Prob.from_u(np.array([0.5]))
    assert (far.mean, far.log_sf(1)) == (1.0, pytest.approx(math.log(1e-40)))
    # a number of runs too rare for the density, but all that bends it
    close(far.log_density_slope(half)[0], mp.log(50 * 49 * mp.mpf(1e-40)) - 48 * mp.log(2), 1e-13)
    assert FinitePmf({0: 0.5, 1: 0.5}).log_density_slope(half) == -math.inf
    # one too rare for the generating function, but not for what it loses near x = 1
    rare = FinitePmf(((1, 1.0), (10**15, 1e-21)))
    assert rare.success(Prob.from_u(1e-40)).log_u == pytest.approx(math.log(1e-40 * (1 + 1e-6)), rel=1e-15)
    holes = AtMost(FinitePmf(((0, 0.5), (3, 0.25), (9, 0.25))), 5)
    close(holes.mean, mp.mpf(1), 1e-15)
    close(holes.log_density(half)[0], mp.log(mp.mpf(3) / 3 / 4), 1e-14)
    # a sum of probabilities may miss 1 by a billionth
    near = FinitePmf(((1, 0.5), (2, 0.5 + 9e-10)))
    assert math.fsum(p for _, p in near.probabilities) == pytest.approx(1.0, abs=2e-16)
    assert near.probabilities[1][1] / near.probabilities[0][1] == pytest.approx(1 + 1.8e-9, rel=3e-16)
