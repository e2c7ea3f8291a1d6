"""A short run of the search for mechanisms that break a bound from a curve (``tests/adversary.py``)."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pytest
from adversary import BASES, DELTAS, LAWS, Family, attack, check_orders, examine, excess

from hpcalc.guarantees import ZCDP, Guarantee, RDPCurve
from hpcalc.laws import AtLeastOne, Binomial, Fixed, Poisson, Threshold, TruncatedNegativeBinomial

LOGARITHMIC = TruncatedNegativeBinomial.with_mean(10.0, eta=0.0)
CURVE = RDPCurve({1.5: 0.2, 4.0: 0.5, 16.0: 1.8})


def rounds(base: Guarantee) -> int:
    """Rounds of the search that take about a quarter of a second."""
    return 10 if isinstance(base, ZCDP) else 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "law", "delta"),
    [
        (ZCDP(0.1), Poisson(10.0), 1e-6),
        (ZCDP(0.1), Poisson(0.5), 1e-9),
        (CURVE, AtLeastOne(Poisson(1.0)), 1e-3),
        (ZCDP(0.1), Threshold(0.1), 1e-3),
    ],
)
def test_no_bound_is_broken(base, law, delta):
    case = examine(base, law, delta, seed=1, rounds=rounds(base))
    assert case.attack.value > 0.0
    assert not case.broken


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "law", "delta"),
    [
        (ZCDP(0.1), Threshold(0.1), 1e-3),
        (CURVE, Threshold(0.1), 1e-3),
        (ZCDP(0.1), Fixed(5), 1e-3),
        (ZCDP(1.0), Binomial(11, 0.9), 0.1),
        (ZCDP(0.1), TruncatedNegativeBinomial.with_mean(20.0, eta=-0.8), 0.1),
    ],
)
def test_the_lower_bound_is_no_worse_than_the_attack(base, law, delta):
    # where a search once found a better instance than the package's own
    case = examine(base, law, delta, seed=3, rounds=2 * rounds(base))
    assert not case.broken
    assert case.gain < 3e-3


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted(BASES))
def test_no_bound_is_broken_at_length(name):
    for base in BASES[name]:
        for law in LAWS:
            for delta in DELTAS:
                seed = random.Random(f"{base} {law} {delta}").getrandbits(32)
                case = examine(base, law, delta, seed, rounds(base) // 4)
                assert not case.broken, case


@pytest.mark.slow
@pytest.mark.parametrize("base", [ZCDP(0.1), RDPCurve({2.0: 0.3, 8.0: 1.0})])
def test_mechanisms_meet_their_guarantee(base):
    made = Family(base, math.log(1e-7), math.log(10.0))
    rng = np.random.default_rng(4)
    log_q, log_p = made.final(np.array([made.start(rng) for _ in range(12)]))
    assert np.allclose(np.sum(np.exp(log_q), axis=1), 1.0)
    assert np.allclose(np.sum(np.exp(log_p), axis=1), 1.0)
    orders, budget = check_orders(base, 777)
    used = budget < 600.0
    assert np.max(excess(log_q, log_p, orders[used], budget[used])) <= 1e-9


@pytest.mark.slow
def test_a_false_bound_is_broken():
    case = examine(CURVE, LOGARITHMIC, 1e-3, seed=2, rounds=100)
    assert not case.broken
    assert dataclasses.replace(case, epsilon=0.9 * case.attack.value).broken
    assert math.isinf(dataclasses.replace(case, lower=0.0).gain)


@pytest.mark.slow
def test_fifty_digits_agree():
    for law in (Poisson(5.0), LOGARITHMIC, Binomial(7, 0.5), Fixed(4)):
        found = attack(CURVE, law, math.log(1e-4), 5, 30)
        assert float(found.exact_epsilon(law, math.log(1e-4))) == pytest.approx(found.value, rel=1e-9)
