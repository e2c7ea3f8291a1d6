"""Lower bounds: the mechanisms meet the guarantee, the divergence is what they have, and no bound lies below it."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from mechanisms import best_of_k, hockey_stick, outcomes_of, worst_order

from hpcalc.bounds.pure import refined_pure
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, PureDP, RDPCurve, compose
from hpcalc.laws import Binomial, Fixed, Law, Poisson, TruncatedNegativeBinomial
from hpcalc.lower import LowerBound
from hpcalc.questions.search_cost import bound

tnb = TruncatedNegativeBinomial.with_mean
mpf = mp.mpf


def lower(base: Guarantee, law: Law, delta: float) -> LowerBound:
    found = bound(base, law, delta=delta).lower
    assert found is not None
    return found


FEW = [
    (ZCDP(0.1), Poisson(10.0), 1e-6),
    (ZCDP(0.005), tnb(50.0, eta=0.0), 1e-5),
    (ZCDP(0.012), tnb(42.7, eta=1.0), 1.9e-10),
    (ZCDP(0.0747), tnb(1.314, eta=1.0), 7.9e-11),
    (ZCDP(3.0), Binomial(20, 0.3), 1e-5),
    (ZCDP(1e-4), tnb(10.0, eta=0.0), 1e-6),
    (RDPCurve({1.5: 0.2, 2.0: 0.3, 8.0: 1.0, 64.0: 9.0}), Poisson(5.0), 1e-5),
    (RDPCurve({2.0: 0.5, math.inf: 1.2}), tnb(10.0, eta=0.0), 1e-5),
    (compose(ZCDP(0.07), PureDP(0.0)), tnb(10.0, eta=0.0), 1e-6),
    (ZCDP(0.1), tnb(20.0, eta=-0.8), 0.1),
    (ZCDP(0.1), Fixed(5), 1e-6),
    (RDPCurve({1.5: 0.2, 4.0: 0.5, 16.0: 1.8}), Fixed(5), 1e-9),
]


@pytest.mark.slow
@pytest.mark.parametrize(("base", "law", "delta"), FEW, ids=lambda x: repr(x)[:40])
def test_mechanism_of_few_outcomes_meets_every_order(base, law, delta):
    found = lower(base, law, delta)
    q, p = outcomes_of(found)
    assert found.mechanism == ("two outcomes" if len(q) == 2 else "three outcomes")
    for one, other in ((q, p), (p, q)):
        assert worst_order(one, other, base) <= 0.0
    if base.pure_epsilon < math.inf:
        ratios = [mp.log(a / b) for a, b in zip(q, p, strict=True)]
        assert max(abs(x) for x in ratios) <= mpf(base.pure_epsilon)
    # the whole search on it, enumerated: worst-ranked first, and "no run" as an outcome of its own
    a, b = (best_of_k(law, side[::-1]) for side in (q, p))
    assert hockey_stick(a, b, found.epsilon) >= mpf(delta) * (1 - mpf("1e-12"))
    assert hockey_stick(a, b, found.epsilon * (1.0 + 1e-5)) < mpf(delta)


@pytest.mark.slow
def test_three_outcomes_beside_slack():
    """Two more outcomes, each of one input only, in the best ranks: Lemma 20 with equality."""
    slack, delta, law = 1e-8, 1e-6, tnb(10.0, eta=0.0)
    base = compose(ZCDP(0.1), ApproxDP(0.0, slack))
    found = lower(base, law, delta)
    assert found.mechanism == "three outcomes"
    q, p = outcomes_of(found)
    keep = 1 - mpf(slack)
    q, p = [mpf(slack), mpf(0), *(keep * x for x in q)], [mpf(0), mpf(slack), *(keep * x for x in p)]
    a, b = (best_of_k(law, side[::-1]) for side in (q, p))
    assert hockey_stick(a, b, found.epsilon) >= mpf(delta) * (1 - mpf("1e-9"))
    assert bound(base, law, delta=delta).epsilon <= found.epsilon * 1.005
    # where the slack alone exceeds delta nothing finite holds
    assert lower(base, law, 1e-8).epsilon == math.inf


def test_gaussian_is_a_mechanism_of_its_own_curve_only():
    """A pure part's curve lies below the line of its zCDP constant, which a Gaussian would fill."""
    base = compose(ZCDP(0.0044), PureDP(0.66))
    law, delta = Binomial(235, 0.97), 4.9e-6
    answer = bound(base, law, delta=delta)
    assert answer.lower is not None
    assert answer.lower.epsilon <= answer.epsilon


@pytest.mark.parametrize("law", [Poisson(10.0), tnb(10.0, eta=0.0), Binomial(10, 0.4), Fixed(6)], ids=repr)
def test_pure_dp_is_attained(law):
    for eps in (0.1, 1.0, 4.0):
        answer = bound(PureDP(eps), law, delta=0.0)
        assert answer.lower is not None
        assert answer.epsilon == pytest.approx(refined_pure(eps, law), rel=1e-9)
        assert answer.lower.epsilon <= answer.epsilon
        assert answer.lower.epsilon >= answer.epsilon * 0.99


def test_no_mechanism_without_a_guarantee():
    assert bound(Gaussian(0.0), Poisson(1.0)).lower is None
