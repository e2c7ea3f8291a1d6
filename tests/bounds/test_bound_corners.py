"""Bounds at the ends of their range: answers that were once wrong, most of them too small."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from hpcalc.bounds.bound import RenyiBound
from hpcalc.bounds.paper import lemma_22
from hpcalc.bounds.pure import refined_pure
from hpcalc.conversion import RenyiCurve, epsilon_from_rdp
from hpcalc.guarantees import Laplace, RDPCurve
from hpcalc.laws import AtLeastOne, AtMost, Binomial, FinitePmf, Poisson, TruncatedNegativeBinomial
from hpcalc.logspace import Prob
from hpcalc.questions.search_cost import bound

mp.mp.dps = 50


@pytest.mark.parametrize("epsilon", [1e-12, 1.77e-8, 1e-3, 1.0, 40.0, 7e5])
def test_refined_pure_keeps_its_digits_at_both_ends(epsilon):
    # it is the difference of two values of log F, which are -1.4e6 here beside a difference of 1e-2
    e = mp.mpf(epsilon)
    mu, n, p, eta, gamma = 1398153.9914017916, 1140095697, 0.1415757250627715, 3.5, 1e-9
    p_, g_ = mp.mpf(p), mp.mpf(gamma)
    cases = [
        (Poisson(mu), e + mp.mpf(mu) * mp.tanh(e / 2)),
        (AtLeastOne(Poisson(mu)), e + mp.mpf(mu) * mp.tanh(e / 2)),
        (Binomial(n, p), e + (n - 1) * mp.log((1 + mp.exp(e) - p_) / (1 + mp.exp(e) - p_ * mp.exp(e)))),
        (
            TruncatedNegativeBinomial(eta, gamma),
            e + (1 + mp.mpf(eta)) * mp.log((mp.exp(e) + g_) / (1 + g_ * mp.exp(e))),
        ),
    ]
    for law, true in cases:
        assert refined_pure(epsilon, law) == pytest.approx(float(true), rel=1e-13)


def test_refined_pure_of_a_table_of_runs():
    # K = k for certain costs k epsilon, tiny and huge epsilon included (it was infinite, or ten times that)
    for k in (1, 10, 91, 5000):
        for epsilon in (1e-10, 2.4e-5, 0.1, 1.0, 1583.0, 1e6):
            value = refined_pure(epsilon, FinitePmf(((k, 1.0),)))
            assert k * epsilon * (1 - 1e-12) <= value <= k * epsilon * (1 + 1e-4)
    # K = 1 or 1000: well inside the ranks, not at 1/(1+e)
    assert refined_pure(1.0, FinitePmf(((1, 0.5), (1000, 0.5)))) == pytest.approx(4.7305, abs=1e-3)
    rng = np.random.default_rng(5)
    for epsilon in (1e-6, 0.0075, 0.3, 3.0):
        law = FinitePmf(((1, 0.2347), (13, 0.4913), (975, 0.274)))
        # cells that cannot matter by more than 1e-5 are not looked into again, but count
        u = np.concatenate([np.exp(rng.uniform(-12.0, 0.0, 20000)), [1.0]]) / (1 + math.exp(epsilon))
        drop = law.log_density(Prob.from_u(u)) - law.log_density(Prob.from_u(u * math.exp(epsilon)))
        found = epsilon + float(np.max(drop))
        assert found * (1 - 1e-8) <= refined_pure(epsilon, law) <= found * (1 + 1e-4)
    # by 50-digit golden section; a cell set aside too early made it 6e-8 too small
    law = FinitePmf(((1, 0.05935253722077149), (112, 0.9406474627792285)))
    assert 13.632148000209698 <= refined_pure(6.1787032045224235, law) <= 13.632148000209698 * (1 + 2e-5)


def test_lemma_22_where_k_rarely_ends_below_the_cutoff():
    # P[K <= 77] = e^-646 and E[K; K > 77]/E[K] = 1 - e^-1200: the bound was infinite
    law = AtMost(Poisson(855.1379071318836), 77)
    pmf = [mp.exp(-mp.mpf(law.law.mu)) * mp.mpf(law.law.mu) ** k / mp.factorial(k) for k in range(78)]
    mass, mean = mp.fsum(pmf), mp.fsum(k * p for k, p in enumerate(pmf))
    true = mp.log(1 / mass) + mp.log(mp.mpf(law.law.mu) / mean)
    flat = RenyiBound("test", "test", RenyiCurve(lambda a: np.zeros(np.shape(a))))
    assert float(lemma_22(law, flat).rdp(np.array([2.0]))[0]) == pytest.approx(float(true), rel=1e-12)


@pytest.mark.slow
def test_a_loss_of_hundreds_of_units():
    # one mechanism has delta 0.2 at epsilon 752
    base, law = Laplace(0.118482862253726), Binomial(558, 0.7579899359918868)
    assert bound(base, law, delta=0.0116, method="refined-region", lower=False).epsilon > 753.0


@pytest.mark.slow
@pytest.mark.parametrize("count", [6520605112000, 10**15])
def test_an_exact_conversion_where_ranks_are_too_far_out_to_be_told_apart(count):
    one = RDPCurve({2.0: 0.5, 8.0: 1.9, 32.0: 7.0})
    whole = RenyiCurve(lambda a: count * one.rdp(a), one.orders)
    exact, cks = (epsilon_from_rdp(whole, math.log(1e-5), rule).value for rule in ("best", "cks"))
    assert 0.99 * cks <= exact <= cks
