"""R3: closed forms, and the search for other laws against brute force."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from hpcalc.bounds.pure import bounds, refined_pure
from hpcalc.guarantees import ZCDP, ApproxDP, PureDP
from hpcalc.laws import AtLeastOne, AtMost, Binomial, FinitePmf, Fixed, Poisson, TruncatedNegativeBinomial
from hpcalc.logspace import Prob

tnb = TruncatedNegativeBinomial.with_mean

MIXED = FinitePmf(((0, 0.1), (1, 0.4), (30, 0.5)))


def log_f(law: FinitePmf, rank: Prob) -> np.ndarray:
    """``log f'(1-u)`` written down again."""
    terms = [math.log(k * p) + (k - 1) * np.maximum(rank.log_q, -1e300) for k, p in law.probabilities if k]
    return np.logaddexp.reduce(terms, axis=0)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0])
def test_pure_closed_forms(epsilon):
    with mp.workdps(50):
        e = mp.exp(mp.mpf(epsilon))
        eps = mp.mpf(epsilon)
        for eta in (-0.99, -0.5, 0.0, 1e-12, 1.0, 5.0):
            for log_gamma in (-700.0, -5.0, -1e-9):
                law = TruncatedNegativeBinomial.from_log_gamma(eta, log_gamma)
                gamma = mp.exp(mp.mpf(log_gamma))
                true = eps + (1 + mp.mpf(eta)) * mp.log((e + gamma) / (1 + gamma * e))
                assert refined_pure(epsilon, law) == pytest.approx(float(true), rel=1e-9)
                assert refined_pure(epsilon, law) <= (2.0 + eta) * epsilon * (1.0 + 1e-12)
        for mu in (1e-3, 1.0, 500.0):
            assert refined_pure(epsilon, Poisson(mu)) == pytest.approx(float(eps + mu * mp.tanh(eps / 2)), rel=1e-9)
        for n, p in ((1, 0.5), (20, 0.3), (7, 1.0)):
            true = eps + (n - 1) * mp.log((1 + e - mp.mpf(p)) / (1 + e - mp.mpf(p) * e))
            assert refined_pure(epsilon, Binomial(n, p)) == pytest.approx(float(true), rel=1e-9)
        for k in (1, 2, 200):
            assert refined_pure(epsilon, Fixed(k)) == pytest.approx(k * epsilon, rel=1e-9)


def test_pure_known_values():
    assert refined_pure(1.0, Poisson(10.0)) == pytest.approx(5.62117157260, rel=1e-9)
    assert refined_pure(1.0, tnb(10.0, eta=0.0)) == pytest.approx(1.93924, abs=5e-6)
    half = FinitePmf(((1, 0.5), (1000, 0.5)))
    assert refined_pure(1.0, half) == pytest.approx(4.73, abs=5e-3)


@pytest.mark.slow
def test_pure_search_among_thousands_of_runs():
    """Many cells hold nearly the supremum there, for a small ε."""
    law = FinitePmf(((2, 0.3127), (26, 0.4613), (1706, 0.1826), (8978, 0.0434)))
    terms = [(k - 1, k * mp.mpf(p)) for k, p in law.probabilities]

    def log_density(log_q: mp.mpf) -> mp.mpf:
        return mp.log(mp.fsum(w * mp.exp(k * log_q) for k, w in terms))

    def gain(z: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
        """By the log odds z of v."""
        v = 1 / (1 + mp.exp(-z))
        return log_density(mp.log1p(-mp.exp(-epsilon) * v)) - log_density(-mp.log1p(mp.exp(z)))

    with mp.workdps(40):
        for epsilon in (1e-9, 1e-4, 1e-3, 0.0033, 0.03, 0.1, 1.0):
            e, true = mp.mpf(epsilon), mp.mpf(0)
            grid = [e - mp.mpf(k) / 4 for k in range(60)]
            values = [gain(z, e) for z in grid]
            for i, z in enumerate(grid):  # up every hill
                if values[i] >= max(values[max(i - 1, 0) : i + 2]):
                    for step in (mp.mpf(4) ** -n for n in range(2, 12)):
                        z = max((z + k * step for k in range(-4, 5) if z + k * step <= e), key=lambda z: gain(z, e))
                    true = max(true, e + gain(z, e))
            assert true * (1.0 - 1e-15) <= refined_pure(epsilon, law) <= true * (1.0 + 1.1e-5)


@pytest.mark.parametrize("k", [1000, 2_230_744, 10**9])
def test_pure_search_of_one_number_of_runs_rounds_upwards(k):
    for epsilon in (1e-9, 1.0665180572311555e-08, 0.001, 1.0, 300.0):
        assert k * epsilon <= refined_pure(epsilon, FinitePmf(((k, 1.0),))) <= k * epsilon * (1.0 + 2e-11 + 2e-15 * k)


def test_pure_answer_does_not_depend_on_the_chance_of_no_run():
    """F of a law given K >= 1 is a multiple of F."""
    for law in (FinitePmf((0.9, 0.0, 0.1)), AtMost(Poisson(0.3), 3), MIXED, Poisson(2.0), Binomial(9, 0.3)):
        for epsilon in (0.1, 1.0, 30.0):
            assert refined_pure(epsilon, AtLeastOne(law)) == pytest.approx(refined_pure(epsilon, law), rel=2e-5)


def test_as_a_bound():
    (found,) = bounds(PureDP(1.0), Poisson(10.0))
    value = 1.0 + 10.0 * math.tanh(0.5)
    assert found.epsilon(-math.inf).value == pytest.approx(value, rel=1e-12)
    assert found.rdp(np.array([2.0, math.inf])) == pytest.approx([value, value], rel=1e-12)
    assert found.log_profile(np.array([1.0, 6.0])).tolist() == [0.0, -math.inf]
    # the (ε, δ) part fails somewhere in the search with probability 1 - f(1-δ), which δ must cover
    (found,) = bounds(ApproxDP(1.0, 1e-8), Poisson(10.0))
    added = math.log(-math.expm1(-1e-7))
    assert found.epsilon(added * (1.0 + 1e-9)).value == math.inf
    assert found.epsilon(added * (1.0 - 1e-9)).value == pytest.approx(value, rel=1e-6)
    assert np.all(np.isinf(found.rdp(np.array([2.0]))))
    assert list(bounds(ZCDP(0.1), Poisson(10.0))) == []
