"""No bound of the paper, and no conversion, below the true divergence of a best-of-K search: brute force.

Random mechanisms of two to six outcomes are enumerated exactly, in 50 digits, under every law of K, with mass at
K = 0 and fewer than one run on average included. The base guarantee is what the mechanism really has, so a bound that
drops a term, or that holds for most mechanisms only, is caught.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from mechanisms import Mechanism, Pairs, conditional_searches, random_mechanism, searches
from statements import corollary_16

from hpcalc.bounds.bound import RenyiBound, monotone
from hpcalc.bounds.paper import bounds, lemma_7, proposition_15, theorem_2
from hpcalc.conversion import delta_from_rdp, epsilon_at, epsilon_from_rdp
from hpcalc.guarantees import ZCDP, ApproxDP, Guarantee, ProfileCurve, PureDP, RDPCurve
from hpcalc.laws import AtLeastOne, AtMost, Binomial, FinitePmf, Fixed, Law, Poisson, Threshold
from hpcalc.laws.families import TruncatedNegativeBinomial

ORDERS = np.array([1.02, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 40.0])
# the guarantee is rounded up by this much, so that it holds in spite of being a double
UP = 1.0 + 1e-13


def tnb(eta: float, gamma: float) -> TruncatedNegativeBinomial:
    return TruncatedNegativeBinomial(eta, gamma)


def random_run_count(rng: random.Random, kinds: tuple[str, ...] = ()) -> Law:
    """Every law (or these kinds), over the whole range of its parameters."""
    mean = 10.0 ** rng.uniform(-2.0, 2.0)
    gamma = 10.0 ** rng.uniform(-4.0, -0.01)
    eta = rng.choice((-0.95, -0.5, 0.0, 0.0, 0.5, 1.0, 3.0))
    pmf = [rng.random() ** 3 for _ in range(rng.randint(2, 6))]
    pmf = [p if rng.random() < 0.8 else 0.0 for p in pmf[:-1]] + [max(pmf[-1], 1e-3)]
    # rounding must leave a law: the largest probability takes what is missing
    pmf = [p / math.fsum(pmf) for p in pmf]
    laws = {
        "poisson": lambda: Poisson(mean),
        "tnb": lambda: tnb(eta, gamma),
        "binomial": lambda: Binomial(rng.randint(1, 40), rng.uniform(0.01, 0.99)),
        "fixed": lambda: Fixed(rng.randint(1, 30)),
        "pmf": lambda: FinitePmf(tuple(enumerate(pmf))),
        "poisson <= m": lambda: AtMost(Poisson(mean), rng.randint(1, 20)),
        "tnb <= m": lambda: AtMost(tnb(eta, gamma), rng.randint(1, 20)),
        "binomial <= m": lambda: AtMost(Binomial(20, rng.uniform(0.01, 0.5)), rng.randint(1, 10)),
        "poisson >= 1": lambda: AtLeastOne(Poisson(mean)),
        "binomial >= 1": lambda: AtLeastOne(Binomial(rng.randint(1, 20), rng.uniform(0.01, 0.9))),
    }
    return laws[rng.choice(kinds or tuple(laws))]()


def guarantee(mechanism: Mechanism, rng: random.Random) -> Guarantee:
    """One of the ways to describe what this mechanism guarantees."""
    kind = rng.choice(("rdp", "rdp", "rdp and pure", "pure", "zcdp"))
    if kind == "pure":
        return PureDP(mechanism.pure_epsilon() * UP)
    if kind == "zcdp":
        return ZCDP(mechanism.zcdp_rho() * UP)
    points = dict(zip(ORDERS.tolist(), (mechanism.rdp(ORDERS) * UP).tolist(), strict=True))
    if kind == "rdp and pure":
        points[math.inf] = mechanism.pure_epsilon() * UP
    return RDPCurve(points)


def check_curve(bound: RenyiBound, pairs: Pairs, context: object) -> None:
    """The curve against every pair of output laws, at every order, and what it converts to."""
    curve = bound.curve
    context = (bound.name, bound.citation, context)
    pairs.assert_renyi_at_most(ORDERS, curve.rdp(ORDERS), context)
    for delta in (0.2, 1e-3):
        pairs.assert_delta_at_most(epsilon_from_rdp(curve, math.log(delta)).value, delta, context)
    if curve.log_added_delta == -math.inf:
        assert pairs.largest_loss() <= curve.pure_epsilon * (1.0 + 1e-11) + 1e-14, context


def check_searches(seed: int, count: int, kinds: tuple[str, ...] = ()) -> set[str]:
    rng = random.Random(seed)
    seen: set[str] = set()
    for number in range(count):
        mechanism = random_mechanism(rng)
        law, base = random_run_count(rng, kinds), guarantee(mechanism, rng)
        pairs, found = searches(mechanism, law), bounds(base, law)
        if number % 10 == 0:
            found.append(lemma_7(base, law))
            if isinstance(law, TruncatedNegativeBinomial):  # with Remark 5
                found.append(replace(found[0], curve=monotone(theorem_2(base, law).curve)))
        for bound in found:
            check_curve(bound, pairs, (mechanism, law, base))
            seen.add(bound.name)
    return seen


@pytest.mark.slow
def test_no_theorem_is_below_the_truth():
    seen = check_searches(0, 400, ("poisson", "tnb", "poisson <= m", "tnb <= m"))
    assert seen >= {"theorem-2", "theorem-2-sharper", "theorem-6", "lemma-22", "composition"}


def test_lemma_7_is_not_below_the_truth():
    seen = check_searches(4, 20, ("binomial", "fixed", "pmf", "binomial <= m", "poisson >= 1", "binomial >= 1"))
    assert seen >= {"lemma-7", "composition"}


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(100, 110))
def test_no_bound_is_below_the_truth_at_length(seed):
    check_searches(seed, 400)


def test_equal_laws_lose_nothing_and_no_bound_says_less():
    q = tuple(mp.mpf(x) / 10 for x in (2, 3, 5))
    mechanism = Mechanism(q, q)
    for law in (Poisson(0.01), Poisson(0.9), Binomial(3, 0.1), FinitePmf(((0, 0.9), (4, 0.1)))):
        pairs = searches(mechanism, law)
        for base in (ZCDP(0.0), PureDP(0.0), RDPCurve({2: 0.0})):
            for bound in bounds(base, law):
                check_curve(bound, pairs, (law, base))
                finite = bound.curve.rdp(ORDERS)
                assert np.all(finite >= 0.0)


@pytest.mark.slow
def test_base_that_fails_with_small_probability():
    # every outcome is split in two: with probability delta0 the run also tells which input it had
    rng = random.Random(11)
    for _ in range(25):
        inner = random_mechanism(rng, 1.5)
        slack = 10.0 ** rng.uniform(-6.0, -1.0)
        keep = 1 - mp.mpf(slack)
        place = rng.randint(0, len(inner.q))
        tell = (mp.mpf(slack), mp.mpf(0))
        q = [keep * x for x in inner.q]
        q_prime = [keep * x for x in inner.q_prime]
        q[place:place], q_prime[place:place] = tell, tell[::-1]
        mechanism = Mechanism(tuple(q), tuple(q_prime))
        law = random_run_count(rng)
        base = ApproxDP(inner.pure_epsilon() * UP, slack)
        pairs = searches(mechanism, law)
        for bound in bounds(base, law):
            for delta in (0.9, 0.01, 1e-4):
                epsilon = epsilon_from_rdp(bound.curve, math.log(delta)).value
                pairs.assert_delta_at_most(epsilon, delta, (bound.name, bound.citation, law, base))
            for epsilon in (0.3, 2.0):
                claimed = math.exp(delta_from_rdp(bound.curve, epsilon).value)
                pairs.assert_delta_at_most(epsilon, claimed, (bound.name, bound.citation, law, base))


@pytest.mark.slow
def test_conditional_sampling():
    rng = random.Random(17)
    checked = 0
    for _ in range(60):
        mechanism = random_mechanism(rng)
        base = guarantee(mechanism, rng)
        law = Threshold(rng.choice((0.001, 0.05, 0.2, 0.6, 1.0)))
        pairs = conditional_searches(mechanism, law)
        if pairs:
            checked += 1
            for bound in (proposition_15(base, law), *(corollary_16(base, law, line) for line in (1, 2, 3, 4, 5))):
                check_curve(bound, pairs, (mechanism, law, base))
    assert checked > 35


def test_best_conversion_of_a_whole_search():
    rng = random.Random(29)
    for _ in range(5):
        mechanism = random_mechanism(rng)
        law, base = random_run_count(rng, ("poisson", "tnb")), guarantee(mechanism, rng)
        pairs = searches(mechanism, law)
        bound = bounds(base, law)[0]
        for delta in (0.3, 1e-2):
            epsilon = epsilon_from_rdp(bound.curve, math.log(delta), "best").value
            pairs.assert_delta_at_most(epsilon, delta, (bound.name, mechanism, law, base))


@pytest.mark.slow
def test_conversions_of_one_run():
    rng = random.Random(23)
    for _ in range(8):
        mechanism = random_mechanism(rng)
        base = guarantee(mechanism, rng)
        for delta in (0.5, 0.05, 1e-3, 1e-6):
            for rule in ("mironov", "cks", "exact", "best"):
                epsilon = epsilon_at(base, math.log(delta), rule).value
                mechanism.sides.assert_delta_at_most(epsilon, delta, (rule, base, mechanism))
        profile = ProfileCurve({t: mechanism.profile(t) * UP for t in (0.0, 0.1, 0.5, 1.0, 3.0)})
        for delta in (0.5, 0.05, 1e-3):
            if profile.points[-1][1] <= delta:
                epsilon = epsilon_at(profile, math.log(delta)).value
                mechanism.sides.assert_delta_at_most(epsilon, delta, (profile, mechanism))
