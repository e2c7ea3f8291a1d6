"""Conditional sampling: published values, random finite mechanisms enumerated, and closed forms."""

from __future__ import annotations

import itertools
import math
import random

import mpmath as mp
import numpy as np
import pytest

from hpcalc.bounds.conditional import RefinedConditional
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, ProfileCurve, PureDP
from hpcalc.laws import Threshold
from hpcalc.lower.conditional import conditional_lower_bound
from hpcalc.questions.search_cost import bound

mpf = mp.mpf


def price(base: Guarantee, accept: float, delta: float) -> float:
    return RefinedConditional(base, accept).epsilon(math.log(delta)).value


@pytest.mark.parametrize(
    ("sigma", "accept", "delta", "epsilon"),
    [
        (5**0.5, 0.1, 1e-6, 2.90994),
        (5**0.5, 0.01, 1e-6, 3.50394),
        (1.0, 0.1, 1e-6, 6.70812),
        (10.0, 0.1, 1e-3, 0.43722),
        (5.0, 0.5, 1e-5, 0.90662),
    ],
)
def test_gaussian_values(sigma, accept, delta, epsilon):
    found = price(Gaussian(sigma), accept, delta)
    assert epsilon - 6e-6 <= found <= epsilon * (1.0 + 2e-5)
    low = conditional_lower_bound(Gaussian(sigma), accept, math.log(delta))
    assert low is not None
    assert found * (1.0 - 5e-5) <= low.epsilon <= found


@pytest.mark.slow
@pytest.mark.parametrize("base", [Gaussian(1.0), PureDP(0.7), Laplace(1.0), ZCDP(0.1), ApproxDP(0.5, 1e-7)], ids=repr)
def test_bracket(base):
    for accept, delta in itertools.product((1.0, 0.3, 0.01), (0.05, 1e-6)):
        upper = price(base, accept, delta)
        found = conditional_lower_bound(base, accept, math.log(delta))
        assert found is not None
        assert 0.0 <= found.epsilon <= upper
        # a curve's region is more than one mechanism can have
        assert found.epsilon >= upper * (0.5 if isinstance(base, ZCDP) else 1.0 - 1e-3) - 1e-6


def test_certain_acceptance_is_one_run():
    for base in (Gaussian(1.3), PureDP(0.7), ApproxDP(0.3, 1e-4)):
        for epsilon in (0.0, 0.2, 1.0):
            found = RefinedConditional(base, 1.0).log_profile(np.array([epsilon]))[0]
            true = float(base.log_profile(epsilon))
            assert true - 1e-9 <= found <= true + 2e-3 * abs(true) or found == true


@pytest.mark.slow
def test_profile_and_epsilon_are_inverse():
    for base in (Gaussian(2.0), Laplace(1.0), ApproxDP(0.5, 1e-7)):
        for delta in (1e-2, 1e-5):
            epsilon = price(base, 0.1, delta)
            found = RefinedConditional(base, 0.1).log_profile(np.array([epsilon]))[0]
            assert found == pytest.approx(math.log(delta), abs=5e-3)


@pytest.mark.slow
def test_no_event_of_a_finite_mechanism_is_above():
    """Every accepted set and every event inside it, for random mechanisms given by their exact profile."""
    rng = random.Random(5)
    for _ in range(10):
        size = rng.randint(2, 6)
        q, p = (np.array([rng.random() ** 3 + 1e-4 for _ in range(size)]) for _ in range(2))
        q, p = q / q.sum(), p / p.sum()
        grid = sorted({0.0, *(abs(math.log(a / b)) for a, b in zip(q, p, strict=True))})
        profile = {
            t: max(float(np.sum(np.maximum(a - math.exp(t) * b, 0.0))) for a, b in ((q, p), (p, q))) * (1 + 1e-12)
            for t in grid
        }
        base = ProfileCurve({t: max(d, 1e-300) for t, d in profile.items()})
        accept = rng.choice((0.05, 0.3, 0.6))
        for delta in (1e-3, 0.05, 0.3):
            upper = price(base, accept, delta)
            for chosen in itertools.product((0, 1, 2), repeat=size):
                inside, event = np.array(chosen) > 0, np.array(chosen) > 1
                for one, other in ((q, p), (p, q)):
                    if one[inside].sum() < accept or other[inside].sum() < accept:
                        continue
                    a, b = (x[event].sum() / x[inside].sum() for x in (one, other))
                    assert a - math.exp(upper) * b <= delta * (1.0 + 1e-9), (q, p, accept, delta, chosen)


def test_pure_guarantee_at_delta_zero():
    for accept, eps in itertools.product((1e-6, 0.01, 0.4, 1.0), (0.1, 1.0, 5.0)):
        v = min(math.exp(eps) * accept, 1.0 - math.exp(-eps) * (1.0 - accept))
        found = RefinedConditional(PureDP(eps), accept)
        assert found.epsilon(-math.inf).value == pytest.approx(eps + math.log(v / accept), rel=1e-9)
        assert found.epsilon(-math.inf).value <= 2.0 * eps * (1.0 + 1e-12)
        assert found.log_profile(np.array([2.0 * eps]))[0] == -math.inf
    assert RefinedConditional(Gaussian(1.0), 0.1).epsilon(-math.inf).value == math.inf
    answer = bound(PureDP(1.0), Threshold(0.1), delta=0.0)
    assert answer.best is not None
    assert answer.best.method == "refined-conditional"


def test_conditional_sampling_doubles_the_loss():
    """Three points: accept the best outcome, and of the rest the ones the other input likes less."""
    eps, accept = 1.0, 1e-4
    e = mp.exp(mpf(eps))
    # accepted: bad outcome b -> b e^-eps of tiny mass, and mass that grows by e^eps
    bad = mpf(accept) * mpf("1e-9")
    grows = mpf(accept) - bad
    q, p = [bad, grows], [bad / e, grows * e]
    ratio = mp.log((q[0] / mp.fsum(q)) / (p[0] / mp.fsum(p)))
    assert ratio == pytest.approx(2.0 * eps, rel=1e-6)
    found = conditional_lower_bound(PureDP(eps), accept, -math.inf)
    assert found is not None
    assert found.epsilon <= bound(PureDP(eps), Threshold(accept), delta=0.0).epsilon + 1e-12
    assert found.epsilon >= 1.9 * eps


@pytest.mark.parametrize(("accept", "delta"), [(0.1, 1e-3), (0.3, 0.1), (0.01, 1e-6)])
def test_mechanism_of_pure_dp(accept, delta):
    """Of the accepted mass, t has loss eps and decides, the rest has loss -eps."""
    eps = 0.8
    t = mp.linspace(mpf(delta), 1, 4001)[1:]
    best = max(mp.log((x - mpf(delta)) * (x * mp.exp(-eps) + (1 - x) * mp.exp(eps)) / (x * mp.exp(-eps))) for x in t)
    found = conditional_lower_bound(PureDP(eps), accept, math.log(delta))
    assert found is not None
    assert found.epsilon == pytest.approx(float(best), rel=1e-4)
