"""R1 with its event counted: never above R1, never below an explicit mechanism, W against 50-digit arithmetic."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from adversary import examine

from hpcalc.bounds import counted
from hpcalc.bounds.refined import RefinedRDP
from hpcalc.guarantees import ZCDP, Gaussian, Guarantee, RDPCurve
from hpcalc.laws import Binomial, FinitePmf, Fixed, Law, Poisson, TruncatedNegativeBinomial
from hpcalc.lower import lower_bound
from hpcalc.questions.methods import Question, evaluate, wanted


def tnb(mean: float, eta: float) -> TruncatedNegativeBinomial:
    return TruncatedNegativeBinomial.with_mean(mean, eta=eta)


CURVE = RDPCurve({1.5: 0.0054, 2.0: 0.0072, 4.0: 0.0144, 8.0: 0.0288, 16.0: 0.0576, 32.0: 0.1152, 64.0: 0.2304})

CASES: list[tuple[Guarantee, Law, float]] = [
    (ZCDP(0.005), Binomial(34, 0.3), 1e-5),
    (ZCDP(0.005), Poisson(10.0), 1e-5),
    (ZCDP(0.02), Binomial(34, 0.3), 1e-5),
    (ZCDP(0.01), tnb(50.0, 5.0), 1e-5),
    (ZCDP(0.005), tnb(20.0, -0.5), 1e-5),
    (ZCDP(2.0), tnb(30.0, 0.0), 0.03),
    (ZCDP(0.01), tnb(40.0, -0.2), 1e-3),
    (ZCDP(0.02), Fixed(12), 1e-4),
    (ZCDP(0.01), FinitePmf(((0, 0.2), (3, 0.5), (30, 0.3))), 1e-4),
    (CURVE, Poisson(5.0), 4e-4),
]


def plain_and_counted(base: Guarantee, law: Law, delta: float, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float]:
    question = Question(base, law, math.log(delta))
    (found,) = evaluate(question, wanted("refined-rdp"))
    monkeypatch.setattr("hpcalc.questions.methods.counted_epsilon", lambda *given: given[4])
    (plain,) = evaluate(question, wanted("refined-rdp"))
    monkeypatch.undo()
    return plain.epsilon, found.epsilon


@pytest.mark.parametrize(("base", "law", "delta"), CASES)
def test_between_the_explicit_mechanism_and_r1(base, law, delta, monkeypatch):
    plain, found = plain_and_counted(base, law, delta, monkeypatch)
    assert found <= plain
    assert (found < plain) == isinstance(law, Poisson | Binomial | TruncatedNegativeBinomial)  # it pays there
    question = Question(base, law, math.log(delta))
    instance = lower_bound(base, law, math.log(delta), plain, question.curve)
    assert instance is not None
    assert instance.epsilon <= found * (1.0 + 1e-9)


@pytest.mark.parametrize(("base", "law", "delta"), CASES[:3] + CASES[5:7] + CASES[9:])
def test_no_attack_breaks_it(base, law, delta):
    assert not examine(base, law, delta, seed=2, rounds=8).broken


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(6))
def test_no_explicit_mechanism_beats_it_at_random(seed):
    rng = random.Random(seed)
    for _ in range(40):
        rho, delta = 10.0 ** rng.uniform(-4.0, 1.0), 10.0 ** rng.uniform(-6.0, -0.5)
        mean = 10.0 ** rng.uniform(0.05, 2.5)
        law = rng.choice([Poisson(mean), tnb(mean, rng.uniform(-0.9, 5.0)), Binomial(40, min(mean / 40.0, 1.0))])
        question = Question(ZCDP(rho), law, math.log(delta))
        (found,) = evaluate(question, wanted("refined-rdp"))
        instance = lower_bound(ZCDP(rho), law, math.log(delta), found.epsilon, question.curve)
        assert instance is not None
        assert instance.epsilon <= found.epsilon * (1.0 + 1e-9), (rho, law, delta)


@pytest.mark.parametrize("law", [Poisson(10.0), tnb(30.0, 0.0), Binomial(34, 0.3)], ids=repr)
def test_monotone_where_counting_is_phased_in(law):
    """ε falls with δ and grows with ρ, within the tolerance of the discretisation."""

    def epsilon(rho: float, delta: float) -> float:
        (found,) = evaluate(Question(ZCDP(rho), law, math.log(delta)), wanted("refined-rdp"))
        return found.epsilon

    by_delta = [epsilon(0.02, delta) for delta in np.geomspace(1e-7, 1e-2, 26)]
    by_rho = [epsilon(rho, 1e-5) for rho in np.geomspace(2e-3, 0.2, 26)]
    assert all(b <= a * (1.0 + 2e-4) for a, b in pairwise(by_delta))
    assert all(b >= a * (1.0 - 2e-4) for a, b in pairwise(by_rho))


def test_where_it_cannot_pay_r1_stays():
    base, law = ZCDP(0.1), Poisson(10.0)
    question = Question(base, law, math.log(1e-9))
    bound = RefinedRDP(base, law, question.curve)
    assert bound.orders is None
    value = counted.counted_epsilon(base, law, question.log_delta, 12.0, 6.5, question.curve)
    assert value == 6.5
    # a profile of its own decides for a Gaussian
    (found,) = evaluate(Question(Gaussian(10.0), law, math.log(1e-5)), wanted("refined-rdp"))
    assert "counted" not in found.citation


def _three_outcomes(u: mp.mpf, v: mp.mpf, b: mp.mpf, r: mp.mpf, order: float, backward: bool) -> mp.mpf:
    first, second = (u, b, 1 - u - b), (v, r * b, 1 - v - r * b)
    if backward:
        first, second = second, first
    a = mp.mpf(order)
    return (sum(x**a * y ** (1 - a) for x, y in zip(first, second, strict=True)) - 1) / (a - 1)


def test_what_ranks_before_the_event_meets_every_limit_and_no_more():
    """v by Newton's method is the largest that 50-digit arithmetic allows."""
    base, law, order = ZCDP(0.005), Binomial(34, 0.3), 34.3
    question = Question(base, law, math.log(1e-5))
    curve, near = counted._fine_around_supremum(question.curve, order)
    budget = counted._budget(base, order, order * (order - 1.0) * 0.005)
    ratio, b, m = 0.75, 0.003, 0.95
    ranks = counted._ranks(curve, law, order, math.log(1e-5), near, ratio)
    assert ranks is not None
    v, settled = counted._good_before(ranks, budget, np.full((1, 1), ratio), np.array([[b]]), np.array([[m]]))
    assert settled.all()
    checked = 0
    for u, most, whole in zip(ranks.u[::9], v[0, ::9], ranks.v[::9], strict=True):

        def excess(v: mp.mpf, u: float = float(u)) -> mp.mpf:
            x = mp.mpf(u)
            sides = [
                _three_outcomes(x, v, mp.mpf(b), mp.mpf(ratio), float(a), back)
                - mp.expm1((a - 1) * a * 0.005) / (a - 1)
                for a in map(mp.mpf, budget.orders.tolist())
                for back in (False, True)
            ]
            a = mp.mpf(order)
            moment = mp.exp(a * (a - 1) * mp.mpf(0.005))
            good = x**a * v ** (1 - a) + (1 - x - b) ** a * (1 - v) ** (1 - a)
            return max(*sides, (good / moment + m - 1) * mp.mpf(0.01))

        assert excess(mp.mpf(float(most)) * (1 - mp.mpf("1e-8"))) <= 1e-10
        if most < whole * (1.0 - 1e-6):
            assert excess(mp.mpf(float(most)) * (1 + mp.mpf("1e-8"))) > 0
            checked += 1
    assert checked > 3


def test_lines_stay_below_a_convex_function():
    u = np.sort(np.random.default_rng(0).uniform(0.1, 0.6, 30))
    values = np.exp(-9.0 * u)[None, :]
    theta, low = counted._corners(u, values, 0.0)
    corner = u[:-1] + theta[0] * np.diff(u)
    assert np.all(low[0] <= np.exp(-9.0 * corner) * (1.0 + 1e-12))
    # and close to it, of second order in the width
    inner = slice(1, -1)
    assert np.all(low[0][inner] >= np.exp(-9.0 * corner)[inner] * (1.0 - 50.0 * (np.max(np.diff(u))) ** 2))
