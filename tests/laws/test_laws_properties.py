"""Properties every law of K has, over parameters no table of cases would list."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcalc.laws import AtLeastOne, AtMost, Binomial, FinitePmf, Fixed, Poisson, TruncatedNegativeBinomial
from hpcalc.logspace import Prob, logaddexp

TNB = TruncatedNegativeBinomial
quick = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)


def powers_of_ten(low, high):
    return st.floats(low, high).map(lambda x: 10.0**x)


etas = st.one_of(
    st.sampled_from([0.0, 1.0, -0.5, 1e-300, -1e-300]),
    powers_of_ten(-20, 6),
    powers_of_ten(-20, -0.01).map(lambda x: -x),
    powers_of_ten(-12, -1).map(lambda x: x - 1.0),
)
log_gammas = st.one_of(st.just(0.0), powers_of_ten(-300, 3.3).map(lambda x: -x))
pmfs = st.lists(st.floats(1e-300, 1.0), min_size=1, max_size=8).flatmap(
    lambda ws: st.lists(st.integers(1, 10**6), min_size=len(ws), max_size=len(ws), unique=True).map(
        lambda ks: FinitePmf(tuple((k, w / math.fsum(ws)) for k, w in zip(ks, ws, strict=True)))
    )
)
plain = st.one_of(
    powers_of_ten(-9, 12).map(Poisson),
    st.builds(TNB.from_log_gamma, etas, log_gammas),
    st.builds(Binomial, st.integers(1, 10**12), powers_of_ten(-12, 0)),
    st.integers(1, 10**9).map(Fixed),
    pmfs,
)
small = st.one_of(
    powers_of_ten(-6, 2).map(Poisson),
    st.builds(lambda eta, mean: TNB.with_mean(mean, eta=eta), etas, st.floats(1.0, 50.0)),
    st.builds(Binomial, st.integers(1, 200), st.floats(0.01, 1.0)),
    pmfs.map(AtLeastOne),
)


def can_stop(law, m):
    """Whether K <= m leaves some run."""
    return bool(np.exp(law.log_pmf(np.arange(1.0, m + 1))).any())


laws = st.one_of(
    plain,
    plain.map(AtLeastOne),
    st.tuples(small, st.integers(1, 3000)).filter(lambda pair: can_stop(*pair)).map(lambda pair: AtMost(*pair)),
)
GRID = np.concatenate([[-1e4, -800.0, -300.0], np.linspace(-60.0, 40.0, 81), [300.0, 800.0]])
ENDS = Prob(np.array([-math.inf, 0.0]), np.array([0.0, -math.inf]))


@pytest.mark.slow
@quick
@given(laws)
def test_curves_are_monotone_and_never_undefined(law):
    inside = Prob.from_logit(GRID)
    rank = Prob(*(np.concatenate([e[:1], i, e[1:]]) for e, i in zip(ENDS, inside, strict=True)))
    density, (survival, pgf) = law.log_density(rank), law.success(rank)
    for values in (density, pgf, survival):
        assert not np.isnan(values).any()
    slack = 1e-12 * (1.0 + np.abs(density[1:]))
    assert np.all(np.diff(density) <= np.where(np.isfinite(slack), slack, 0.0))
    assert np.all(np.diff(pgf) <= 1e-12 * (1e-300 + np.abs(pgf[:-1])))
    assert np.all(survival[1:] >= survival[:-1] - 1e-12 * (1e-300 + np.abs(survival[1:])))
    np.testing.assert_allclose(np.exp(pgf) + np.exp(survival), 1.0, rtol=1e-12)
    assert density[0] == pytest.approx(law.log_mean, rel=1e-12, abs=1e-12)
    assert (pgf[0], survival[0]) == (0.0, -math.inf)
    assert pgf[-1] == pytest.approx(law.log_prob_zero, rel=1e-12)
    # near u = 0, 1 - f(1-u) = u E[K]
    assert survival[1] == pytest.approx(GRID[0] + law.log_mean, rel=1e-9)


@quick
@given(laws, st.floats(-40.0, 20.0), st.floats(0.01, 8.0), st.floats(0.01, 8.0))
def test_density_is_convex_and_blocks_add_up(law, start, first, second):
    at = Prob.from_logit(np.array([start, start + first, start + first + second]))
    # (u_c - u_a) F(u_b) <= (u_c - u_b) F(u_a) + (u_b - u_a) F(u_c)
    log_ab, log_bc, log_ac = (
        float(at.log_u[j] + at.log_q[i] + np.log(-np.expm1(at.log_u[i] - at.log_u[j] + at.log_q[j] - at.log_q[i])))
        for i, j in ((0, 1), (1, 2), (0, 2))
    )
    f = law.log_density(at)
    right = float(logaddexp(log_bc + f[0], log_ab + f[2]))
    assert log_ac + f[1] <= right + 1e-9 * (1.0 + abs(right))
    a, b, c = (at.take(i) for i in range(3))
    parts = logaddexp(law.log_block(a, b, np.array(log_ab)), law.log_block(b, c, np.array(log_bc)))
    whole = law.log_block(a, c, np.array(log_ac))
    assert float(parts) == pytest.approx(float(whole), rel=1e-9, abs=1e-9)
    # the mean value theorem: F is between its values at the ends
    assert float(f[1]) - 1e-9 * (1 + abs(f[1])) <= float(whole) - log_ac + max(f[1] - f[2], 0.0)
    assert float(whole) <= log_ac + f[0] + 1e-9 * (1.0 + abs(f[0]))


@quick
@given(laws, st.floats(1e-12, 1 - 1e-12))
def test_quantile_is_the_least_that_reaches(law, p):
    if isinstance(law, TNB) and law.log_gamma < -600.0:
        return
    k = law.quantile(p)
    assert k >= 0
    assert math.exp(law.log_cdf(k)) >= p * (1 - 1e-9)
    if k:
        assert math.exp(law.log_cdf(k - 1)) <= p * (1 + 1e-9)


@quick
@given(laws, st.floats(-5.0, 0.0), st.floats(-5.0, 0.0))
def test_thinning_twice_is_thinning_once(law, first, second):
    twice, once = law.thin(first).thin(second), law.thin(first + second)
    rank = Prob.from_logit(np.linspace(-40.0, 10.0, 11))
    np.testing.assert_allclose(twice.log_density(rank), once.log_density(rank), rtol=1e-9, atol=1e-9)
    assert once.log_mean <= law.log_mean + 1e-12


@quick
@given(st.one_of(
    st.tuples(st.just("mu"), powers_of_ten(-9, 9), powers_of_ten(-9, 9)),
    st.tuples(st.just("log_gamma"), log_gammas, log_gammas),
    st.tuples(st.just("eta"), etas, etas),
    st.tuples(st.just("p"), powers_of_ten(-9, 0), powers_of_ten(-9, 0)),
    st.tuples(st.just("n"), st.integers(1, 10**9), st.integers(1, 10**9)),
), etas, powers_of_ten(-6, 2))  # fmt: skip
def test_more_runs_find_more(change, eta, length):
    """A law grows stochastically with mu, p, n, eta and 1/gamma: mean, chance of success and cost ratio grow."""
    name, *ends = change
    make = {
        "mu": Poisson,
        "log_gamma": lambda x: TNB.from_log_gamma(eta, x),
        "eta": lambda x: TNB.from_log_gamma(x, -length),
        "p": lambda x: Binomial(1000, x),
        "n": lambda x: Binomial(x, 0.3),
    }[name]
    less, more = map(make, sorted(ends, reverse=name == "log_gamma"))
    assert less.log_mean <= more.log_mean + 1e-12 * (1e-3 + abs(more.log_mean))
    rank = Prob.from_logit(np.linspace(-60.0, 30.0, 31))
    low, high = less.success(rank).log_u, more.success(rank).log_u
    assert np.all(low <= high + 1e-11 * (1e-300 + np.abs(high)))
    # log F(u) - log F(2u), what the bounds pay, grows too
    rank = Prob.from_logit(np.linspace(-60.0, -0.1, 31))
    far = Prob.from_u(2.0 * rank.u)
    paid = [law.log_density(rank) - law.log_density(far) for law in (less, more)]
    assert np.all(paid[0] <= paid[1] + 1e-11 * (1.0 + np.abs(more.log_density(far)) + np.abs(less.log_density(far))))
