"""Answers that were once wrong, most of them too small: each stands for its kind."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from hpcalc.bounds.bound import RenyiBound
from hpcalc.bounds.paper import lemma_22
from hpcalc.bounds.pure import refined_pure
from hpcalc.conversion import RenyiCurve
from hpcalc.guarantees import ZCDP, Laplace, PureDP, RDPCurve, cks_log_delta
from hpcalc.laws import AtLeastOne, AtMost, Binomial, FinitePmf, Poisson, TruncatedNegativeBinomial
from hpcalc.logspace import Prob
from hpcalc.lower import lower_bound
from hpcalc.questions import bound

mp.mp.dps = 50


def test_delta_at_a_huge_order_keeps_its_digits():
    # (a-1) log(1-1/a) is -1 + 1/(2a) + ...; with log((a-1)/a) from a rounded quotient it was off by 1e-5 at a = 1e11
    order = np.array([1e11])
    true = -mp.log(mp.mpf(10) ** 11) + (mp.mpf(10) ** 11 - 1) * mp.log(1 - mp.mpf(10) ** -11)
    assert float(cks_log_delta(order, np.zeros(1), np.zeros(1))[0]) == pytest.approx(float(true), rel=1e-15)


def test_profile_of_a_tiny_rho_near_zero():
    # the best order, about sqrt(1/(2 rho)), was not reached from a start at order 27
    base, t = ZCDP(2.4e-10), 1.29e-8
    orders = 1.0 + np.exp(np.linspace(0.0, 20.0, 20001))
    best = float(np.min(cks_log_delta(orders, base.rdp(orders), np.array(t))))
    assert float(base.log_profile(np.array([t]))[0]) == pytest.approx(best, rel=1e-9)


def test_pure_curve_near_order_one_with_a_large_epsilon():
    # the exponentials of 35009 and of a 35009 cancelled
    base, order = PureDP(35009.41179853145), 1.0000000051927074
    a, e = mp.mpf(order), mp.mpf(base.epsilon)
    true = mp.log((mp.exp(a * e) + mp.exp((1 - a) * e)) / (1 + mp.exp(e))) / (a - 1)
    assert float(base.rdp(order)) == pytest.approx(float(true), rel=1e-14)


@pytest.mark.parametrize(("rho", "log_u"), [(1793.9, -111.6), (209561.0, -52.8), (48105.0, -151.0)])
def test_region_of_a_weak_curve_reaches_beyond_800(rho, log_u):
    # 1 - v may be as small as e^-rho, it was cut at e^-800
    image = ZCDP(rho).region(Prob.from_log_u(np.array([log_u])))
    assert -rho * (1 + 1e-5) < float(image.log_q[0]) < -rho * (1 - 1e-5)


def test_region_of_given_orders_uses_every_order():
    orders = [1.0023, 1.0052, 1.0125, 1.0554, 1.0557, 1.4005, 1.4627, 6.13, 37.7, 271.2, 763.8, 1200.8]
    curve = RDPCurve([(a, 0.797 * a) for a in orders])
    u = Prob.from_log_u(np.array([-1.61953398]))
    together = float(curve.region(u).log_u[0])
    alone = [float(RDPCurve([(a, 0.797 * a)]).region(u).log_u[0]) for a in orders]
    assert together == pytest.approx(min(alone), rel=1e-9)
    assert RDPCurve([(2.0, math.inf), (3.0, math.inf)]).region(u).log_u[0] == 0.0


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
            TruncatedNegativeBinomial.from_gamma(eta, gamma),
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


def test_no_lower_bound_from_an_outcome_that_underflows():
    # probabilities of e^-1000 summed to 0, and the instance seemed to give an infinite loss
    base, law = ZCDP(331.4621844156407), AtMost(Poisson(39.50432329603897), 655)
    found = lower_bound(base, law, math.log(1.118321845212705e-267), math.inf)
    assert found is None or math.isfinite(found.epsilon)


def test_a_loss_of_hundreds_of_units():
    # one mechanism has delta 0.2 at epsilon 752
    base, law = Laplace(0.118482862253726), Binomial(558, 0.7579899359918868)
    assert bound(base, law, delta=0.0116, method="refined-region", lower=False).epsilon > 753.0
