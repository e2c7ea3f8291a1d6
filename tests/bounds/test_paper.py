"""The paper's theorems: worked by hand, against published values and against another accountant."""

from __future__ import annotations

import math
from dataclasses import replace

import exact
import mpmath as mp
import numpy as np
import pytest
from statements import corollary_16, corollary_21, proposition_17

from hpcalc import AtLeastOne, AtMost, Binomial, FinitePmf, Fixed, Poisson, Threshold, TruncatedNegativeBinomial
from hpcalc.bounds.bound import RenyiBound, monotone
from hpcalc.bounds.paper import (
    bounds,
    composition,
    corollary_3,
    corollary_4,
    lemma_7,
    lemma_20,
    lemma_22,
    proposition_15,
    theorem_2,
    theorem_6,
)
from hpcalc.conversion import RenyiCurve, epsilon_at, epsilon_from_rdp
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Laplace, PureDP, RDPCurve

LOG = math.log


def tnb(eta: float, mean: float) -> TruncatedNegativeBinomial:
    return TruncatedNegativeBinomial.with_mean(mean, eta=eta)


def at(bound: RenyiBound | RenyiCurve, order: float) -> float:
    return float(curve_of(bound).rdp(np.array([order]))[0])


def curve_of(bound: RenyiBound | RenyiCurve) -> RenyiCurve:
    return bound.curve if isinstance(bound, RenyiBound) else bound


def epsilon(curve, delta: float = 1e-6) -> float:
    return epsilon_from_rdp(curve_of(curve), LOG(delta)).value


@pytest.mark.parametrize(
    ("mean", "poisson", "by_eta"),
    [
        (10, 4.6074, {-0.5: 3.0657, 0.0: 3.4508, 0.5: 3.7780, 1.0: 4.0678}),
        (100, 18.7588, {-0.5: 3.5173, 0.0: 4.0477, 0.5: 4.5575, 1.0: 5.0529}),
    ],
)
def test_table_of_the_whole_search(mean, poisson, by_eta):
    assert epsilon(theorem_6(ZCDP(0.1), Poisson(mean))) == pytest.approx(poisson, abs=5e-5)
    for eta, expected in by_eta.items():
        assert epsilon(theorem_2(ZCDP(0.1), tnb(eta, mean))) == pytest.approx(expected, abs=5e-5)


def test_mean_one_is_one_run():
    single = epsilon_at(ZCDP(0.1), LOG(1e-6), "cks").value
    assert single == pytest.approx(2.14193892839, rel=1e-11)
    for eta in (-0.9, -0.5, 0.0, 0.5, 1.0, 5.0):
        for sharper in (False, True):
            value = epsilon(theorem_2(ZCDP(0.1), tnb(eta, 1.0), sharper=sharper))
            assert value == pytest.approx(single, rel=1e-11)


def test_remark_5_by_hand():
    law = TruncatedNegativeBinomial(1.0, 0.025)
    plain = theorem_2(ZCDP(0.1), law)
    assert at(plain, 2.0) == pytest.approx(6.118325302, abs=1e-9)
    # 0.1 a + log(40)/(a-1) is least at a = 1 + sqrt(log(40)/0.1) = 7.073..., and that value holds at order 2
    flat = monotone(plain.curve)
    assert at(flat, 2.0) == pytest.approx(3.544168771, abs=1e-9)
    assert at(flat, 9.0) == at(plain, 9.0)
    assert at(flat, 1.0 + math.sqrt(LOG(40.0) / 0.1)) == pytest.approx(at(flat, 1.5), rel=1e-12)
    given = monotone(theorem_2(ZCDP(0.1), law, orders=np.array([2.0, 6.0, 20.0])).curve)
    assert at(given, 2.0) == at(given, 6.0) == pytest.approx(at(theorem_2(ZCDP(0.1), law, orders=given.orders), 6.0))


def test_corollary_3_does_not_depend_on_gamma():
    for gamma in (1e-300, 1e-3, 0.5, 1.0 - 1e-9):
        curve = corollary_3(PureDP(1.0), TruncatedNegativeBinomial(0.0, gamma))
        for delta in (1e-6, 0.0):
            assert epsilon_from_rdp(curve.curve, LOG(delta) if delta else -math.inf).value == 2.0
    curve = corollary_3(Laplace(2.0), tnb(1.0, 10))
    assert curve.curve.pure_epsilon == 1.5
    assert curve.rdp(np.array([1.5, math.inf])).tolist() == [1.5, 1.5]
    assert np.array_equal(curve.curve.orders, [math.inf])


def test_corollary_4_and_its_condition():
    # rho = 0.5 > log(1/gamma) = log(1.01): the closed form would give 4.5057, below one run's 5.2215
    base, law = ZCDP(0.5), tnb(1.0, 1.01)
    assert epsilon_at(base, LOG(1e-6), "cks").value == pytest.approx(5.2215344444, rel=1e-10)
    assert epsilon(theorem_2(base, law)) == pytest.approx(5.24346248, rel=2e-9)
    curve = corollary_4(base, law)
    assert epsilon(curve) == pytest.approx(5.24346248, rel=2e-9)
    assert "does not apply" in curve.conditions[0]
    # elsewhere it is Theorem 2 with Remark 5, at every order
    for eta in (-0.5, 0.0, 2.0):
        for mean in (1.001, 3.0, 1e4):
            for rho in (1e-4, 0.1, 3.0):
                orders = np.array([1.01, 1.5, 2.0, 5.0, 30.0, 1e3])
                closed = corollary_4(ZCDP(rho), tnb(eta, mean)).rdp(orders)
                assert closed == pytest.approx(
                    monotone(theorem_2(ZCDP(rho), tnb(eta, mean)).curve).rdp(orders), rel=1e-9
                )


def test_theorem_6_for_few_runs():
    # At mu < 1 and no privacy loss at all the paper's formula is log(mu)/(a-1) < 0.
    for mu in (1e-6, 0.3, 0.5, 0.999):
        curve = theorem_6(ZCDP(0.0), Poisson(mu))
        assert at(curve, 2.0) == 0.0
        assert "false" in curve.conditions[0]
        assert at(theorem_6(ZCDP(0.1), Poisson(mu)), 2.0) >= 0.2
    assert theorem_6(ZCDP(0.1), Poisson(1.0)).conditions == ()
    # rho = 0.1, a = 2, mu = 0.5: the formula alone would be 0.2 + 0.5 delta + log(0.5) < 0
    assert LOG(0.5) + 0.2 + 0.5 < 0.01
    assert at(lemma_7(ZCDP(0.1), Poisson(0.5)), 2.0) > 0.0


def test_proposition_15_is_never_above_a_line_of_corollary_16():
    orders = np.array([1.05, 1.5, 2.0, 3.0, 8.0, 50.0])
    for base in (ZCDP(0.1), ZCDP(3.0), PureDP(0.5), Gaussian(0.7)):
        for accept in (1e-6, 0.1, 0.9, 1.0):
            best = proposition_15(base, Threshold(accept)).rdp(orders)
            for line in (1, 2, 3, 4, 5):
                assert np.all(best <= corollary_16(base, Threshold(accept), line).rdp(orders) * (1 + 1e-12))


def test_approximate_dp_by_hand_poisson():
    # eps0 = 0.5, delta0 = 1e-8, K Poisson with mean 10, by Theorem 6 at order 3. All runs keep to the guarantee with
    # probability e^(-10 delta0), and K' is Poisson with mean mu' = 10 (1 - delta0); rdp(3) = 0.302406375056,
    # delta_hat = (e^0.5 - 1.5)/(1 + e^0.5) = 0.056148328005; rdp(3) + mu' delta_hat + log(mu')/2:
    base, law = ApproxDP(0.5, 1e-8), Poisson(10.0)
    curve = corollary_21(base, law)
    assert curve.name == "lemma-20"
    assert math.exp(curve.curve.log_added_delta) == pytest.approx(9.999999500000017e-8, rel=1e-9)
    assert at(curve, 3.0) == pytest.approx(2.015182190984776, abs=1e-9)
    # what the added delta leaves of 1e-6 is 9.00000095e-7: 2.015182190985 + log(2/3) - log(3 * 9.00000095e-7)/2
    only_3 = lemma_20(base, law, lambda core, thin: theorem_6(core, thin, orders=np.array([3.0])))
    by_order = epsilon_from_rdp(replace(only_3.curve, pure_epsilon=math.inf), LOG(1e-6))
    assert by_order.value == pytest.approx(8.020846422575829, abs=1e-9)


def test_fixed_k_needs_composition():
    # randomized response with epsilon = 1, 200 runs: a log ratio of 200 is attained, composition gives 200
    assert composition(PureDP(1.0), 200).curve.pure_epsilon == 200.0
    assert float(proposition_17(1.0, 200, math.inf)) == 200.0
    order = 50.0
    lower, upper = float(proposition_17(1.0, 200, order)), at(composition(PureDP(1.0), 200), order)
    assert lower <= upper
    assert {curve.name for curve in bounds(PureDP(1.0), Fixed(200))} == {"lemma-7", "composition"}


def test_lemma_7_counts_the_search_that_runs_nothing():
    # K = 0 or 1 with probability 1/2: the divergence is log(1/2 + e^((a-1) rdp)/2)/(a-1), and F is constant 1/2,
    # so M = 1/2 and Lemma 7 gives exactly that
    law = FinitePmf(((0, 0.5), (1, 0.5)))
    for order in (1.5, 2.0, 10.0):
        exact = LOG(0.5 + 0.5 * math.exp((order - 1.0) * 0.1 * order)) / (order - 1.0)
        assert at(lemma_7(ZCDP(0.1), law), order) == pytest.approx(exact, rel=1e-9)


def test_pure_guarantees_survive_at_delta_zero():
    for law, expected in ((tnb(0.0, 10), 2.0), (tnb(1.0, 10), 3.0)):
        assert min(curve.curve.pure_epsilon for curve in bounds(PureDP(1.0), law)) == pytest.approx(expected)
    # Theorem 6 at order inf: epsilon + mu (e^eps - 1)/(e^eps + 1)
    assert theorem_6(PureDP(1.0), Poisson(3.0)).curve.pure_epsilon == pytest.approx(1.0 + 3.0 * math.tanh(0.5))


def test_what_applies():
    names = {
        "theorem-2 theorem-2-sharper corollary-4": bounds(ZCDP(0.1), tnb(0.0, 10)),
        "theorem-2 theorem-2-sharper corollary-3": bounds(PureDP(0.1), tnb(0.0, 10)),
        "theorem-6": bounds(ZCDP(0.1), Poisson(10)),
        "lemma-7 composition": bounds(ZCDP(0.1), Binomial(10, 0.5)),
        "lemma-22 composition": bounds(ZCDP(0.1), AtMost(tnb(0.0, 10), 99)),
        "lemma-7": bounds(ZCDP(0.1), AtLeastOne(Poisson(2.0))),
        "lemma-20": bounds(ApproxDP(0.1, 1e-9), Poisson(2.0)),
        "proposition-15": bounds(ZCDP(0.1), Threshold(0.5)),
        "": bounds(ApproxDP(0.1, 1.0), Poisson(2.0)),
    }
    for expected, found in names.items():
        assert " ".join(curve.name for curve in found) == expected
        for curve in found:
            assert curve.citation.startswith("Papernot and Steinke 2022, ")
            assert epsilon(curve) > 0.0


def test_curves_are_finite_only_where_they_know():
    base = RDPCurve({2: 0.5, 8: 1.0})
    for law in (tnb(0.0, 10), Poisson(10.0), Fixed(3)):
        for curve in bounds(base, law):
            assert np.array_equal(curve.curve.orders, [2.0, 8.0])
            assert at(curve, 9.0) == math.inf
            assert math.isfinite(epsilon(curve))
    for base in (ZCDP(math.inf), Gaussian(0.0), PureDP(math.inf)):
        for law in (tnb(0.0, 10), Poisson(10.0)):
            for curve in bounds(base, law):
                assert epsilon(curve) == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("eta", [0.0, 1.0, 2.5, math.inf])
@pytest.mark.parametrize("mean", [1.5, 10.0, 100.0])
@pytest.mark.parametrize("sigma", [1.0, 5**0.5, 10.0])
def test_agrees_with_dp_accounting(sigma, mean, eta):
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    rdp = pytest.importorskip("dp_accounting.rdp")
    orders = 1.0 + np.exp(np.linspace(LOG(0.01), LOG(1e4), 150))
    accountant = rdp.RdpAccountant(orders=orders.tolist())
    accountant.compose(dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(float(sigma)), mean, eta))
    peer = accountant.get_epsilon(1e-6)
    base = ZCDP(Gaussian(sigma).zcdp_rho)
    curve = theorem_6(base, Poisson(mean)) if eta == math.inf else theorem_2(base, tnb(eta, mean))
    ours = epsilon(curve)
    assert ours * (1.0 - 1e-9) <= peer <= ours * 1.02


def least_sum(rho: float, log_inverse: float, floor: float = 1.0) -> mp.mpf:
    """Least of ``rho (b-1) + log_inverse/b`` over ``b >= 1``, in closed form."""
    rho, log_inverse = mp.mpf(rho), mp.mpf(log_inverse)
    b = max(mp.mpf(floor), mp.sqrt(log_inverse / rho))
    return rho * (b - 1) + log_inverse / b


@pytest.mark.parametrize("gamma", [1e-12, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("eta", [-0.7, 0.0, 2.5])
@pytest.mark.parametrize("rho", [1e-4, 0.3, 7.0])
def test_theorem_2_to_the_last_digits(rho, eta, gamma):
    law = TruncatedNegativeBinomial(eta, gamma)
    depth = -mp.mpf(law.log_gamma)
    mean = mp.log(exact.tnb_mean(mp.mpf(eta), -depth))
    constant = (1 + mp.mpf(eta)) * least_sum(rho, depth)

    def line(b: mp.mpf) -> mp.mpf:
        return mp.log(1 + mp.expm1(depth) * mp.exp((b - 1) * b * mp.mpf(rho))) / b

    sharp = (1 + mp.mpf(eta)) * min(exact.least(line, 1.0 + 1.0 / math.sqrt(rho), 20.0, 120), depth)
    assert law.log_gamma == pytest.approx(LOG(gamma), rel=1e-14)
    for order in (1.0625, 2.0, 9.0, 300.0):
        rest = mp.mpf(rho) * order + mean / (mp.mpf(order) - 1)
        assert at(theorem_2(ZCDP(rho), law), order) == pytest.approx(float(rest + constant), rel=1e-12)
        assert at(theorem_2(ZCDP(rho), law, sharper=True), order) == pytest.approx(float(rest + sharp), rel=1e-12)


def test_theorem_2_at_given_orders():
    law = TruncatedNegativeBinomial(1.0, 0.01)
    base = RDPCurve({2: 0.5, 8: 1.0, 64: 6.0})
    curve = theorem_2(base, law)
    assert np.array_equal(curve.curve.orders, base.orders)
    # b = 8 is the best of the three: 2 (7/8 * 1 + log(100)/8), and log(E[K]) = log(100)
    assert at(curve, 8.0) == pytest.approx(1.0 + 2.0 * (0.875 + LOG(100.0) / 8.0) + LOG(100.0) / 7.0, rel=1e-14)
    # with b = 2 only: 2 (1/2 * 0.5 + log(100)/2)
    two = theorem_2(base, law, orders=np.array([2.0]))
    assert np.array_equal(two.curve.orders, [2.0])
    assert at(two, 8.0) == pytest.approx(1.0 + 2.0 * (0.25 + LOG(100.0) / 2.0) + LOG(100.0) / 7.0, rel=1e-14)
    # where every given order costs more, b = 1 (log(1/gamma)) or b = inf (the pure guarantee) is taken
    costly = theorem_2(RDPCurve({2: 50.0}), law)
    assert at(costly, 2.0) == pytest.approx(50.0 + 2.0 * LOG(100.0) + LOG(100.0), rel=1e-14)
    assert at(theorem_2(PureDP(0.25), law, orders=np.array([2.0])), math.inf) == pytest.approx(0.75, rel=1e-14)
    for sharper in (False, True):
        pure = theorem_2(PureDP(0.25), law, sharper=sharper)
        assert pure.curve.pure_epsilon == pytest.approx(0.75, rel=1e-14)
        assert at(pure, math.inf) == pytest.approx(0.75, rel=1e-14)
    names = [theorem_2(base, law, sharper=s) for s in (False, True)]
    assert [curve.name for curve in names] == ["theorem-2", "theorem-2-sharper"]
    assert ["proof" in curve.citation for curve in names] == [False, True]


def test_corollary_4_at_its_ends():
    # rho = log(1/gamma) is covered: both forms give (2+eta) rho
    law = TruncatedNegativeBinomial.from_log_gamma(3.0, -0.5)
    on_edge = corollary_4(ZCDP(0.5), law)
    mean = float(mp.log(exact.tnb_mean(mp.mpf(3), mp.mpf(-0.5))))
    assert on_edge.conditions == ()
    assert at(on_edge, 40.0) == pytest.approx(0.5 * 39.0 + mean / 39.0 + 5.0 * 0.5, rel=1e-14)
    # beyond it the free order is 1: rho + (1+eta) log(1/gamma)
    beyond = corollary_4(ZCDP(0.625), law)
    assert at(beyond, 40.0) == pytest.approx(0.625 * 39.0 + mean / 39.0 + 0.625 + 4.0 * 0.5, rel=1e-14)
    assert len(beyond.conditions) == 1
    # no loss costs nothing, an infinite loss everything, order inf is not bounded
    assert np.array_equal(corollary_4(ZCDP(0.0), law).curve.rdp(np.array([1.5, 9.0, math.inf])), [0.0, 0.0, 0.0])
    assert at(corollary_4(ZCDP(math.inf), law), 2.0) == math.inf
    assert at(on_edge, math.inf) == math.inf
    # one run exactly: gamma = 1
    one = TruncatedNegativeBinomial.from_log_gamma(3.0, 0.0)
    assert at(corollary_4(ZCDP(0.5), one), 4.0) == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize("mu", [0.25, 0.95, 1.0, 1.25, 40.0])
@pytest.mark.parametrize("base", [Gaussian(1.25), PureDP(0.75), Laplace(2.0)])
def test_theorem_6_to_the_last_digits(base, mu):
    curve = theorem_6(base, Poisson(mu))
    for order in (1.0625, 1.5, 4.0, 60.0):
        delta = mp.exp(exact.log_profile(base, mp.log(1 + 1 / (mp.mpf(order) - 1))))
        extra = mu * delta + mp.log(mp.mpf(mu)) / (mp.mpf(order) - 1)
        if mu < 1.0:  # the statement as it is may be negative
            extra = max(mp.mpf(0), extra)
        assert at(curve, order) == pytest.approx(float(exact.rdp(base, order) + extra), rel=1e-12)
    at_zero = float(mu * mp.exp(exact.log_profile(base, mp.mpf(0))))
    assert curve.curve.pure_epsilon == pytest.approx(base.pure_epsilon + at_zero, rel=1e-14)
    assert len(curve.conditions) == (mu < 1.0)
    given = theorem_6(RDPCurve({2: 0.5, 8: 1.0}), Poisson(mu))
    assert np.array_equal(given.curve.orders, [2.0, 8.0])
    assert np.array_equal(theorem_6(base, Poisson(mu), orders=np.array([3.0])).curve.orders, [3.0])


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("mu", [0.5, 6.0])
def test_lemma_7_for_poisson_in_closed_form(mu, epsilon):
    # F(u)^a F(v)^(1-a) = mu e^(mu ((a-1) v - a u)); along the region of eps-DP it is greatest at u = 1/(1+e^eps),
    # v = e^eps u if e^eps > a/(a-1), else at u = 0. K = 0 adds e^-mu.
    for order in (2.0, 5.0, 30.0):
        h, e = mp.mpf(order) - 1, mp.exp(mp.mpf(epsilon))
        log_m = mp.log(mp.mpf(mu)) + max(mp.mpf(0), mp.mpf(mu) * (h * e - order) / (1 + e))
        true = mp.log(mp.exp(-mp.mpf(mu)) + mp.exp(h * exact.rdp(PureDP(epsilon), order) + log_m)) / h
        found = at(lemma_7(PureDP(epsilon), Poisson(mu)), order)
        assert float(true) <= found <= float(true) * (1.0 + 5e-3)


def test_composition_is_a_multiple():
    curve = composition(RDPCurve({2: 0.5, 8: 1.0}), 7)
    assert np.array_equal(curve.curve.orders, [2.0, 8.0])
    assert np.array_equal(curve.rdp(np.array([2.0, 8.0, 9.0])), [3.5, 7.0, math.inf])
    assert composition(PureDP(0.25), 12).curve.pure_epsilon == 3.0


@pytest.mark.parametrize("accept", [1e-9, 0.125, 0.96])
@pytest.mark.parametrize("rho", [1e-3, 0.1, 5.0])
def test_proposition_15_to_the_last_digits(rho, accept):
    # over c >= a: rho c + L/(c-1), least at c = 1 + sqrt(L/rho); over b >= 1: rho (b-1) + L/b
    log_inverse = -mp.log(mp.mpf(accept))
    curve = proposition_15(ZCDP(rho), Threshold(accept))
    for order in (1.0625, 3.0, 12.0, 900.0):
        c = max(mp.mpf(order), 1 + mp.sqrt(log_inverse / rho))
        true = rho * c + log_inverse / (c - 1) + least_sum(rho, log_inverse)
        assert at(curve, order) == pytest.approx(float(true), rel=1e-11)


def test_proposition_15_at_given_orders_and_with_a_pure_guarantee():
    law, depth = Threshold(0.125), LOG(8.0)
    base = RDPCurve({2: 0.5, 4: 0.75, 32: 9.0})
    curve = proposition_15(base, law)
    assert np.array_equal(curve.curve.orders, [2.0, 4.0, 32.0])
    # order 2 takes c = 4 (0.75 + L/3 against 0.5 + L), and b = 4 (3/4 0.75 + L/4 = 1.08 against 1.29 and L = 2.08)
    second = 0.75 * 0.75 + depth / 4.0
    assert at(curve, 2.0) == at(curve, 4.0) == pytest.approx(0.75 + depth / 3.0 + second, rel=1e-14)
    assert at(curve, 32.0) == pytest.approx(9.0 + depth / 31.0 + second, rel=1e-14)
    only_2 = proposition_15(base, law, orders=np.array([2.0]))
    assert np.array_equal(only_2.curve.orders, [2.0])
    assert at(only_2, 2.0) == pytest.approx(0.5 + depth + 0.25 + depth / 2.0, rel=1e-14)
    # b = 1 leaves L: no order pays
    assert at(proposition_15(RDPCurve({2: 30.0}), law), 2.0) == pytest.approx(30.0 + depth + depth, rel=1e-14)
    # eps-DP is 2 eps-DP in the end, at every order
    pure = proposition_15(PureDP(0.25), law)
    assert np.array_equal(pure.rdp(np.array([1.0625, 1e6, math.inf])), [0.5, 0.5, 0.5])
    only_2 = proposition_15(PureDP(0.25), law, orders=np.array([2.0]))
    assert at(only_2, math.inf) == only_2.curve.pure_epsilon == 0.5


@pytest.mark.parametrize(("gamma", "m"), [(0.5, 1), (0.5, 3), (0.25, 2), (0.01, 3), (1e-7, 2), (0.5, 40), (0.5, 60)])
def test_lemma_22_for_a_geometric_law(gamma, m):
    # P[K > m] = (1-gamma)^m, E[K; K > m] = (1-gamma)^m (m + 1/gamma), E[K] = 1/gamma
    law = AtMost(TruncatedNegativeBinomial(1.0, gamma), m)
    g = mp.mpf(gamma)
    tail = (1 - g) ** m
    shift = mp.log(1 + tail * (m + 1 / g) / (1 / g - tail * (m + 1 / g)))
    inner = RenyiBound("m", "c", RenyiCurve(lambda a: 0.5 * a, np.array([3.0, 5.0]), -20.0, 2.0), ("x",))
    curve = lemma_22(law, inner)
    assert at(curve, 3.0) == pytest.approx(float(1.5 - mp.log(1 - tail) / 2 + shift), rel=1e-9)
    assert curve.curve.pure_epsilon == pytest.approx(float(2 + shift), rel=1e-9)
    assert (curve.conditions, curve.curve.log_added_delta) == (("x",), -20.0)
    assert np.array_equal(curve.curve.orders, [3.0, 5.0])
    # the cost alone keeps its digits
    free = lemma_22(law, RenyiBound("m", "c", RenyiCurve(np.zeros_like)))
    assert at(free, 3.0) == pytest.approx(float(-mp.log(1 - tail) / 2 + shift), rel=1e-9, abs=2e-13)
    assert at(free, 1e9) == pytest.approx(float(-mp.log(1 - tail) / 1e9 + shift), rel=1e-9, abs=2e-13)
