"""Lower bounds: the mechanisms meet the guarantee, the divergence is what they have, and no bound lies below it."""

from __future__ import annotations

import itertools
import math
import random

import mpmath as mp
import numpy as np
import pytest
from mechanisms import best_of_k, hockey_stick, pgf_of, renyi

from hpcalc.bounds import paper
from hpcalc.bounds.ranks import rank_curve
from hpcalc.bounds.refined import ProfileBound, conditional_log_profile, refined_pure, smallest_epsilon
from hpcalc.guarantees import (
    ZCDP,
    ApproxDP,
    Gaussian,
    Guarantee,
    Laplace,
    ProfileCurve,
    PureDP,
    RDPCurve,
    compose,
    repeat,
)
from hpcalc.laws import AtMost, Binomial, FinitePmf, Fixed, Law, Poisson, TruncatedNegativeBinomial
from hpcalc.lower import LowerBound, conditional_lower_bound, lower_bound, merges, region_pair
from hpcalc.questions import bound

tnb = TruncatedNegativeBinomial.with_mean
mpf = mp.mpf


def lower(base: Guarantee, law: Law, delta: float) -> LowerBound:
    found = bound(base, law, delta=delta).lower
    assert found is not None
    return found


# ---------------------------------------------------------------------------------------------------------------
# mechanisms of two or three points, rebuilt from their probabilities
# ---------------------------------------------------------------------------------------------------------------


def three_points(found: LowerBound) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Probabilities under either input, best-ranked first; the last one is what the others leave."""
    assert found.outcomes is not None
    out = []
    for logs in found.outcomes:
        points = [mp.exp(mpf(x)) for x in logs]
        assert abs(mp.fsum(points) - 1) < mpf("1e-12")
        out.append([*points[:-1], 1 - mp.fsum(points[:-1])])
    return out[0], out[1]


def worst_order(p: list[mp.mpf], q: list[mp.mpf], base: Guarantee) -> float:
    """Largest of ``D_a(p || q) - rdp(a)``, relative to rdp(a), over thousands of orders and around the worst ones."""
    if base.orders is None:
        orders = 1.0 + np.exp(np.linspace(math.log(1e-7), math.log(1e9), 4000))
    else:
        orders = base.orders
    log_p, log_q = (np.array([float(mp.log(x)) for x in side]) for side in (p, q))

    def excess(order: np.ndarray) -> np.ndarray:
        a = order[:, None]
        return (np.logaddexp.reduce(a * log_p - (a - 1.0) * log_q, axis=1) / (order - 1.0)) / base.rdp(order) - 1.0

    value = excess(orders)
    # next to order 1 doubles cancel: those orders are repeated in 50 digits
    worst = -math.inf
    for i in {*np.argsort(value)[-3:].tolist(), *np.flatnonzero(orders < 1.01)[::40].tolist()}:
        near = [orders[i]]
        if base.orders is None and 0 < i < orders.size - 1:
            near = np.linspace(orders[i - 1], orders[i + 1], 41).tolist()
        for order in near:
            # rdp is a closed form in doubles: exact to an ulp
            worst = max(worst, float(renyi(p, q, order) / mpf(float(base.rdp(order))) - 1))
    assert np.max(value[orders > 1.01], initial=-1.0) <= max(worst, 0.0) + 1e-7
    return worst


THREE_POINT = [
    (ZCDP(0.1), Poisson(10.0), 1e-6),
    (ZCDP(0.1), tnb(10.0, eta=-0.5), 1e-6),
    (ZCDP(0.1), Poisson(100.0), 1e-6),
    (ZCDP(0.005), tnb(50.0, eta=0.0), 1e-5),
    (ZCDP(1.0), tnb(10.0, eta=1.0), 1e-9),
    (ZCDP(0.012), tnb(42.7, eta=1.0), 1.9e-10),
    (ZCDP(0.0747), tnb(1.314, eta=1.0), 7.9e-11),
    (ZCDP(3.0), Binomial(20, 0.3), 1e-5),
    (ZCDP(1e-4), tnb(10.0, eta=0.0), 1e-6),
    (RDPCurve({1.5: 0.2, 2.0: 0.3, 8.0: 1.0, 64.0: 9.0}), Poisson(5.0), 1e-5),
    (RDPCurve({2.0: 0.5, math.inf: 1.2}), tnb(10.0, eta=0.0), 1e-5),
    (compose(ZCDP(0.05), ZCDP(0.02)), tnb(10.0, eta=0.0), 1e-6),
    (ZCDP(0.1), tnb(20.0, eta=-0.8), 0.1),
]
# the last rank is the bad one
TWO_POINT = [
    (ZCDP(0.1), Fixed(5), 1e-6),
    (ZCDP(0.005), Fixed(5), 1e-3),
    (RDPCurve({1.5: 0.2, 4.0: 0.5, 16.0: 1.8}), Fixed(5), 1e-9),
]


@pytest.mark.parametrize(("base", "law", "delta"), THREE_POINT + TWO_POINT, ids=lambda x: repr(x)[:40])
def test_mechanism_of_few_points_meets_every_order(base, law, delta):
    found = lower(base, law, delta)
    assert found.instance == ("two-point" if (base, law, delta) in TWO_POINT else "three-point")
    q, p = three_points(found)
    for one, other in ((q, p), (p, q)):
        assert worst_order(one, other, base) <= 0.0
    if base.pure_epsilon < math.inf:
        ratios = [mp.log(a / b) for a, b in zip(q, p, strict=True)]
        assert max(abs(x) for x in ratios) <= mpf(base.pure_epsilon)
    # the whole search on it, enumerated: worst-ranked first, and "no run" as an outcome of its own
    pgf = pgf_of(law)
    a, b = (best_of_k(pgf, side[::-1]) for side in (q, p))
    assert hockey_stick(a, b, found.epsilon) >= mpf(delta) * (1 - mpf("1e-12"))
    assert hockey_stick(a, b, found.epsilon * (1.0 + 1e-5)) < mpf(delta)


def test_three_point_mechanism_beside_slack():
    """Two more outcomes, each of one input only, in the best ranks: Lemma 20 with equality."""
    slack, delta, law = 1e-8, 1e-6, tnb(10.0, eta=0.0)
    base = compose(ZCDP(0.1), ApproxDP(0.0, slack))
    found = lower(base, law, delta)
    assert found.instance == "three-point"
    q, p = three_points(found)
    keep = 1 - mpf(slack)
    q, p = [mpf(slack), mpf(0), *(keep * x for x in q)], [mpf(0), mpf(slack), *(keep * x for x in p)]
    pgf = pgf_of(law)
    a, b = (best_of_k(pgf, side[::-1]) for side in (q, p))
    assert hockey_stick(a, b, found.epsilon) >= mpf(delta) * (1 - mpf("1e-9"))
    assert bound(base, law, delta=delta).epsilon <= found.epsilon * 1.005
    # where the slack alone exceeds delta nothing finite holds
    assert lower(base, law, 1e-8).epsilon == math.inf


def test_gaussian_is_an_instance_of_its_own_curve_only():
    """A pure part's curve lies below the line of its zCDP constant, which a Gaussian would fill."""
    base = compose(ZCDP(0.0044), PureDP(0.66))
    law, delta = Binomial(235, 0.97), 4.9e-6
    answer = bound(base, law, delta=delta)
    assert answer.lower is not None
    assert answer.lower.epsilon <= answer.epsilon


# ---------------------------------------------------------------------------------------------------------------
# pairs that attain a region
# ---------------------------------------------------------------------------------------------------------------

PAIRS: list[Guarantee] = [
    Gaussian(1.0),
    Gaussian(20.0),
    PureDP(1.0),
    Laplace(0.7),
    ApproxDP(0.5, 1e-3),
    ProfileCurve({0.0: 0.3, 0.5: 0.1, 1.0: 1e-3, 2.0: 1e-9}),
    repeat(Gaussian(4.0), 3),
]


@pytest.mark.parametrize("base", PAIRS, ids=repr)
def test_pairs_meet_the_profile(base):
    """Both directions of the blocks' divergence stay below the base's profile, and come close."""
    log_q, log_p = region_pair(base, np.linspace(-9.0, 9.0, 2000))
    q, p = np.exp(log_q), np.exp(log_p)
    assert np.sum(q) == pytest.approx(1.0, abs=1e-12)
    assert np.sum(p) == pytest.approx(1.0, abs=1e-12)
    for t in (0.0, 0.2, 0.7, 1.5):
        allowed = math.exp(float(base.log_profile(t)))
        for one, other in ((q, p), (p, q)):
            found = float(np.sum(np.maximum(one - math.exp(t) * other, 0.0)))
            assert found <= allowed * (1.0 + 1e-9) + 1e-14
            assert found >= allowed - 2e-3
    with np.errstate(invalid="ignore", divide="ignore"):
        losses = log_q - log_p
    assert np.all(losses[1:] >= losses[:-1] - 1e-6)


def enumerated(base: Guarantee, law: Law, epsilon: float, order: list[int], q: np.ndarray, p: np.ndarray) -> mp.mpf:
    pgf = pgf_of(law)
    sides = []
    for side in (q, p):
        exact = [mpf(float(x)) for x in side[order]]
        total = mp.fsum(exact)
        sides.append(best_of_k(pgf, [x / total for x in exact][::-1]))
    return hockey_stick(sides[0], sides[1], epsilon)


@pytest.mark.parametrize("law", [Poisson(6.0), tnb(10.0, eta=-0.5), Binomial(8, 0.5), Fixed(3)], ids=repr)
def test_no_ordering_of_a_pair_beats_the_bound(law):
    """Random orders of the outcomes, the product's own among the good ones: always below the reported ε."""
    rng = random.Random(repr(law))
    for base in (Gaussian(1.0), PureDP(1.0), Laplace(0.7), ApproxDP(0.5, 1e-3)):
        delta = 1e-2
        answer = bound(base, law, delta=delta)
        log_q, log_p = region_pair(base, np.linspace(-4.0, 4.0, 16))
        q, p = np.exp(log_q), np.exp(log_p)
        size = q.size
        orders = [list(range(size)), list(range(size))[::-1]]
        for _ in range(12):
            cut = rng.randrange(size)
            orders.append([*range(cut), *reversed(range(cut, size))])
            orders.append(rng.sample(range(size), size))
        for order in orders:
            assert enumerated(base, law, answer.epsilon, order, q, p) <= mpf(delta) * (1 + mpf("1e-9"))


@pytest.mark.parametrize("law", [Poisson(6.0), tnb(10.0, eta=-0.5), Binomial(8, 0.5), Fixed(3)], ids=repr)
@pytest.mark.parametrize("delta", [0.05, 1e-3])
def test_the_best_merge_of_two_ends(law, delta):
    """All merges of six outcomes, enumerated: dynamic programming finds the best one."""
    base, epsilon = Gaussian(1.0), 1.0
    pair = region_pair(base, np.linspace(-2.0, 1.0, 5))
    size = pair[0].size
    q, p = (np.exp(part) for part in pair)

    def proven(order: list[int]) -> mp.mpf:
        return enumerated(base, law, epsilon, order, q, p)

    values = {}
    for low in itertools.product([True, False], repeat=size - 1):
        first, last, order = 0, size - 1, []
        for is_low in low:
            order.append(first if is_low else last)
            first, last = (first + 1, last) if is_low else (first, last - 1)
        values[(*order, first)] = proven([*order, first])
    order = merges.Merges(law, pair, np.arange(size + 1), math.log(delta)).best(epsilon)
    assert float(values[tuple(order.tolist())]) == pytest.approx(float(max(values.values())), rel=1e-9)
    # the search ends where the best merge at its epsilon has a divergence of delta
    found = merges.search_merges(law, pair, math.log(delta), 0.0)
    epsilon = found
    reached = max(proven(list(order)) for order in values)
    assert reached <= mpf(delta) * (1 + mpf("1e-4")) or found == 0.0
    epsilon = found * 0.999
    assert found == 0.0 or max(proven(list(order)) for order in values) >= mpf(delta)


@pytest.mark.parametrize(
    ("law", "delta"), [(Poisson(10.0), 1e-6), (tnb(30.0, eta=0.0), 1e-4), (tnb(5.0, eta=2.0), 1e-9)], ids=repr
)
def test_bounds_meet_for_a_gaussian(law, delta):
    for sigma in (0.5, 1.0, 3.0):
        epsilon = ProfileBound(Gaussian(sigma), law).epsilon(math.log(delta))
        found = lower(Gaussian(sigma), law, delta)
        assert found.instance == "region-pair"
        assert epsilon * (1.0 - 3e-3) <= found.epsilon <= epsilon


@pytest.mark.parametrize("law", [Poisson(10.0), tnb(10.0, eta=0.0), Binomial(10, 0.4), Fixed(6)], ids=repr)
def test_pure_dp_is_attained(law):
    for eps in (0.1, 1.0, 4.0):
        answer = bound(PureDP(eps), law, delta=0.0)
        assert answer.lower is not None
        assert answer.epsilon == pytest.approx(refined_pure(eps, law), rel=1e-9)
        assert answer.lower.epsilon <= answer.epsilon
        assert answer.lower.epsilon >= answer.epsilon * 0.99


def test_no_instance_without_a_guarantee():
    assert bound(Gaussian(0.0), Poisson(1.0)).lower is None
    curve = rank_curve(ZCDP(0.1), Poisson(10.0))
    assert lower_bound(ZCDP(0.1), Poisson(10.0), -math.inf, math.inf, curve) is not None


# ---------------------------------------------------------------------------------------------------------------
# everything at random: never above the reported ε
# ---------------------------------------------------------------------------------------------------------------


def random_base(rng: random.Random) -> Guarantee:
    def size(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    rho = size(1e-4, 5.0)
    orders = sorted({1.0 + size(0.01, 300.0) for _ in range(rng.randint(1, 8))})
    points = {order: rho * order * rng.uniform(0.9, 1.1) for order in orders}
    return rng.choice(
        [
            Gaussian(size(0.05, 100.0)),
            ZCDP(size(1e-6, 20.0)),
            ZCDP(size(1e-3, 1.0)),
            PureDP(size(1e-3, 20.0)),
            ApproxDP(size(1e-3, 5.0), size(1e-12, 1e-4)),
            Laplace(size(0.1, 50.0)),
            RDPCurve(points),
            compose(ZCDP(rho), ApproxDP(size(0.01, 1.0), 1e-9)),
            compose(ZCDP(rho), PureDP(size(0.1, 1.0))),
        ]
    )


def random_law(rng: random.Random) -> Law:
    mean = 10.0 ** rng.uniform(0.0, 2.5)
    return rng.choice(
        [
            Poisson(mean * 0.2),
            tnb(mean, eta=rng.choice([-0.9, -0.5, 0.0, 1e-12, 0.5, 1.0, 5.0])),
            Binomial(rng.randint(1, 60), rng.uniform(0.01, 1.0)),
            Fixed(rng.randint(1, 30)),
            FinitePmf(((1, 0.5), (rng.randint(2, 200), 0.5))),
            AtMost(Poisson(5.0), rng.randint(1, 20)),
        ]
    )


def check_random(seed: int, count: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        base, law = random_base(rng), random_law(rng)
        delta = 10.0 ** rng.uniform(-12.0, -2.0)
        answer = bound(base, law, delta=delta)
        context = (base, law, delta)
        assert not math.isnan(answer.epsilon), context
        if answer.lower is not None:
            assert answer.lower.epsilon <= answer.epsilon, context
            if answer.lower.outcomes is not None and base.slack == 0.0:
                q, p = three_points(answer.lower)
                assert max(worst_order(q, p, base), worst_order(p, q, base)) <= 0.0, context


def test_random_instances_are_valid():
    check_random(0, 8)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(1, 9))
def test_random_instances_are_valid_at_length(seed):
    check_random(seed, 80)


# ---------------------------------------------------------------------------------------------------------------
# the paper's own examples
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [1, 3, 20, 200])
@pytest.mark.parametrize("eps", [0.1, 1.0])
def test_proposition_17(runs, eps):
    """Randomized response, k runs: the best outcome of all k has probability (e^eps/(1+e^eps))^k or (1/(1+e^eps))^k."""
    e = mp.exp(mpf(eps))
    q = [1 / (1 + e), e / (1 + e)]  # worst first
    a, b = (best_of_k(lambda x: x**runs, side) for side in (q, q[::-1]))
    for order in (1.5, 2.0, 10.0, 1e3):
        true = max(renyi(a, b, order), renyi(b, a, order))
        claimed = float(paper.proposition_17(eps, runs, order))
        assert claimed == pytest.approx(runs * eps - runs * math.log1p(math.exp(-eps)) / (order - 1.0), rel=1e-9)
        assert true >= mpf(claimed) * (1 - mpf("1e-12"))
    assert max(abs(mp.log(x / y)) for x, y in zip(a[1:], b[1:], strict=True)) == pytest.approx(runs * eps, rel=1e-12)
    # so the pure price of fixed K is k eps, and the lower bound says so
    answer = bound(PureDP(eps), Fixed(runs), delta=0.0)
    assert answer.lower is not None
    assert answer.epsilon == pytest.approx(runs * eps, rel=1e-9)
    assert answer.lower.epsilon == pytest.approx(runs * eps, rel=1e-6)


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
    assert found.epsilon <= float(bound_conditional(PureDP(eps), accept, 0.0)) + 1e-12
    assert found.epsilon >= 1.9 * eps


def bound_conditional(base: Guarantee, accept: float, delta: float) -> float:
    from hpcalc.laws import Threshold

    return bound(base, Threshold(accept), delta=delta).epsilon


@pytest.mark.parametrize("base", [Gaussian(1.0), PureDP(0.7), Laplace(1.0), ZCDP(0.1), ApproxDP(0.5, 1e-7)], ids=repr)
def test_conditional_bounds_bracket(base):
    for accept, delta in itertools.product((0.3, 0.01), (1e-3, 1e-6)):
        found = conditional_lower_bound(base, accept, math.log(delta))
        upper = smallest_epsilon(lambda e: conditional_log_profile(base, accept, e), math.log(delta))
        if found is not None:
            assert 0.0 <= found.epsilon <= upper * (1.0 + 1e-9)
            if base == Gaussian(1.0):
                assert found.epsilon >= 0.7 * upper


@pytest.mark.parametrize(("accept", "delta"), [(0.1, 1e-3), (0.3, 0.1), (0.01, 1e-6)])
def test_conditional_instance_of_pure_dp(accept, delta):
    """Of the accepted mass, t has loss eps and decides, the rest has loss -eps."""
    eps = 0.8
    t = mp.linspace(mpf(delta), 1, 4001)[1:]
    best = max(mp.log((x - mpf(delta)) * (x * mp.exp(-eps) + (1 - x) * mp.exp(eps)) / (x * mp.exp(-eps))) for x in t)
    found = conditional_lower_bound(PureDP(eps), accept, math.log(delta))
    assert found is not None
    assert found.epsilon == pytest.approx(float(best), rel=1e-4)


def test_three_points_make_lemma_7_tight():
    """f' of both ranks at one point: the order's supremum is reached as the middle outcome shrinks."""
    law, eps, order = tnb(10.0, eta=1.0), 1.0, 2.0
    pgf = pgf_of(law)
    e = mp.exp(mpf(eps))
    top = 1 / (1 + e)  # rank u* = 1/(1+e^eps) goes to e^eps u*
    small = mpf("1e-10")
    q, p = [1 - top - small, small, top], [1 - e * top - small / e, small / e, e * top]
    a, b = best_of_k(pgf, q), best_of_k(pgf, p)
    mass = a[2] ** order * b[2] ** (1 - order)
    single = small**order * (small / e) ** (1 - order)
    # the middle outcome's share of the moment grows by f'(q)^a f'(q')^(1-a)
    gain = float(mp.log(mass / single))
    log_m = float(order * mp.log(mp.diff(pgf, 1 - top)) - (order - 1) * mp.log(mp.diff(pgf, 1 - e * top)))
    assert gain == pytest.approx(log_m, rel=1e-6)
