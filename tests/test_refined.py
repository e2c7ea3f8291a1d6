"""R1 to R4: reference values, brute force on dense grids, closed forms, and what every bound must satisfy."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hpcalc.bounds.prices import priced_bound
from mechanisms import random_mechanism, searches

from hpcalc.bounds import paper
from hpcalc.bounds.ranks import rank_curve
from hpcalc.bounds.refined import (
    Envelope,
    Price,
    ProfileBound,
    RefinedRDP,
    _corners,
    _tail_bound,
    concave_hull,
    conditional_log_profile,
    conditional_pure,
    envelope,
    log_supremum,
    refined_pure,
    smallest_epsilon,
)
from hpcalc.conversion import Curve, epsilon_at, epsilon_from_rdp
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, ProfileCurve, PureDP, RDPCurve
from hpcalc.laws import (
    AtLeastOne,
    AtMost,
    Binomial,
    FinitePmf,
    Fixed,
    Law,
    Poisson,
    Threshold,
    TruncatedNegativeBinomial,
)
from hpcalc.logspace import Prob
from hpcalc.questions import bound

tnb = TruncatedNegativeBinomial.with_mean
from_gamma = TruncatedNegativeBinomial.from_gamma

# ---------------------------------------------------------------------------------------------------------------
# reference values: converged numbers computed once by other code, one object a row
# ---------------------------------------------------------------------------------------------------------------

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "reference" / "best_of_k.json").read_text("utf-8"))


def base_of(row: dict[str, Any]) -> Guarantee:
    ((kind, value),) = row["base"].items()
    return {"zcdp": ZCDP, "gaussian": Gaussian, "pure": PureDP}[kind](value)


def law_of(row: dict[str, Any]) -> Law:
    first, *rest = row["params"]
    if row["dist"] == "poisson":
        return Poisson(first)
    return tnb(rest[0], eta=first) if row["dist"] == "tnb-mean" else Binomial(int(first), rest[0])


def name_of(row: dict[str, Any]) -> str:
    return f"{row['base']} {row['dist']} {row['params']}"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_reference(row):
    base, law = base_of(row), law_of(row)
    answer = bound(base, law, delta=row["delta"])
    by_name = {item.method: item.epsilon for item in answer.bounds}
    if "pure" in row["base"]:
        assert by_name["refined-pure"] == pytest.approx(row["best"], rel=1e-9)
        assert row["best"] * 0.98 <= answer.epsilon <= row["best"] * (1.0 + 1e-9)
        return
    assert row["lower"] * (1.0 - 1e-4) <= answer.epsilon <= row["best"] * (1.0 + 1e-3)
    assert answer.lower is not None
    assert row["best"] * (1.0 - 5e-3) <= answer.lower.epsilon <= answer.epsilon
    # each method by itself, not only the smallest
    assert row["refined_rdp"] * (1.0 - 1e-4) <= by_name["refined-rdp"] <= row["refined_rdp"] * (1.0 + 1e-3)
    profile = ProfileBound(base, law).epsilon(math.log(row["delta"]))
    # (a tighter region than the reference's may lower R2 on a curve a little)
    assert row["profile"] * (1.0 - 1e-3) <= profile <= row["profile"] * (1.0 + 1e-3)
    if "paper" in row:
        name = "theorem-6" if row["dist"] == "poisson" else "theorem-2"
        assert by_name[name] == pytest.approx(row["paper"], rel=1e-6)
    assert answer.epsilon <= min(by_name[name] for name in by_name if not name.startswith("refined"))


def test_published_examples():
    """One 0.1-zCDP run, mean 10, order 2: Theorem 2 gives 4.22."""
    law = from_gamma(1.0, 0.1)
    assert float(paper.theorem_2(ZCDP(0.1), law).rdp(np.array([2.0]))[0]) == pytest.approx(4.22, abs=0.005)
    assert float(RefinedRDP(ZCDP(0.1), law).sharpen(2.0).rdp(2.0)) == pytest.approx(1.33522, abs=5e-5)
    assert float(RefinedRDP(Gaussian(5**0.5), law).sharpen(2.0).rdp(2.0)) == pytest.approx(1.26673, abs=5e-5)


# ---------------------------------------------------------------------------------------------------------------
# R1 against a dense grid
# ---------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def dense(base: Guarantee) -> tuple[Prob, Prob]:
    """Ranks far finer than the product's nodes, and the region there (closed forms, tested elsewhere)."""
    count = 20_001 if base.region_tolerance < 1e-12 else 6001
    x = np.unique(np.concatenate([np.linspace(-8.0, 5.0, count), np.linspace(-37.0, -8.0, 500), base.kinks]))
    x = np.concatenate([[-np.inf], x, [np.inf]])
    rank = Prob.from_normal(x)
    return rank, base.region(rank)


def log_f(law: Law, rank: Prob) -> np.ndarray:
    """``log f'(1-u)`` written down again."""
    u, log_q = np.exp(rank.log_u), rank.log_q
    if isinstance(law, Poisson):
        return math.log(law.mu) - law.mu * u
    if isinstance(law, TruncatedNegativeBinomial):
        gamma, eta = math.exp(law.log_gamma), law.eta
        mean = (1 / gamma - 1) / -law.log_gamma if eta == 0 else eta * (1 - gamma) / (gamma * (1 - gamma**eta))
        return math.log(mean) - (eta + 1) * np.log1p((1 / gamma - 1) * u)
    if isinstance(law, Binomial):
        with np.errstate(divide="ignore"):
            return math.log(law.n * law.p) + (law.n - 1) * np.log1p(-np.minimum(law.p * u, 1.0))
    if isinstance(law, FinitePmf):
        terms = [math.log(k * p) + (k - 1) * np.maximum(log_q, -1e300) for k, p in law.probabilities if k]
        return np.logaddexp.reduce(terms, axis=0)
    raise TypeError(law)


MIXED = FinitePmf(((0, 0.1), (1, 0.4), (30, 0.5)))
LAWS: list[Law] = [
    Poisson(0.3),
    Poisson(10.0),
    tnb(10.0, eta=-0.5),
    tnb(40.0, eta=0.0),
    tnb(1.01, eta=1.0),
    tnb(100.0, eta=5.0),
    Binomial(20, 0.5),
    MIXED,
]
BASES: list[Guarantee] = [
    Gaussian(1.0),
    Gaussian(10.0),
    PureDP(1.0),
    Laplace(0.7),
    ZCDP(0.1),
    RDPCurve({1.5: 0.2, 2.0: 0.3, 8.0: 1.0}),
]
ORDERS = np.array([1.05, 1.5, 2.0, 5.0, 8.0])


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_renyi_bound_by_brute_force(base):
    rank, image = dense(base)
    for law in LAWS:
        plain = RefinedRDP(base, law)
        for order in ORDERS:
            value = order * log_f(law, rank) - (order - 1.0) * log_f(law, image)
            log_m = float(np.nanmax(value))
            gain = math.exp((order - 1.0) * float(base.rdp(order)))
            if isinstance(law, FinitePmf):
                true = math.log(0.1 + math.exp(log_m) * gain) / (order - 1.0)
            else:
                true = math.log1p(math.exp(log_m) * (gain - 1.0)) / (order - 1.0)
            sharp = plain.sharpen(order)
            assert float(log_supremum(plain._curve, np.array([order]))[0]) >= log_m - 1e-9
            assert float(plain.rdp(order)) >= float(sharp.rdp(order)) - 1e-12
            assert true * (1.0 - 1e-7) <= float(sharp.rdp(order)) <= true * (1.0 + 5e-4) + 1e-9, (law, order)


def test_renyi_bound_is_finite_next_to_order_one():
    for base in (ZCDP(0.1), Gaussian(1.0), PureDP(0.5)):
        for law in (Poisson(0.5), Poisson(20.0), tnb(10.0, eta=0.0)):
            value = RefinedRDP(base, law).rdp(np.array([1.0 + 1e-9, 1.0 + 1e-6, 1.0 + 1e-3, 1.01]))
            assert np.isfinite(value).all()
            assert value[0] == pytest.approx(value[2], rel=0.05)


def test_renyi_bound_at_order_infinity():
    law = tnb(10.0, eta=0.0)
    assert RefinedRDP(ZCDP(0.1), law).rdp(math.inf) == math.inf
    assert RefinedRDP(PureDP(1.0), law).rdp([2.0, math.inf])[1] == pytest.approx(refined_pure(1.0, law), rel=1e-12)


def test_poisson_below_mean_one_is_sound_and_positive():
    """The paper's formula is negative here, because it drops the chance of no run at all."""
    value = float(RefinedRDP(ZCDP(0.1), Poisson(0.5)).sharpen(2.0).rdp(2.0))
    rank, image = dense(ZCDP(0.1))
    log_m = float(np.max(2.0 * log_f(Poisson(0.5), rank) - log_f(Poisson(0.5), image)))
    assert value == pytest.approx(math.log1p(math.exp(log_m) * math.expm1(0.2)), rel=1e-4)
    assert value > 0.0
    assert 0.2 + math.log(0.5) < 0.0


# ---------------------------------------------------------------------------------------------------------------
# R2 against numerical integration of the envelope
# ---------------------------------------------------------------------------------------------------------------


def integrated(
    law: Law, base: Guarantee, losses: np.ndarray, mass: np.ndarray, epsilon: float, price: Price | None
) -> float:
    """``∫ phi + ∫ max_u [F(u) - phi(u) - F(V(u)) e^eps dQ'/dQ]_+ dQ``, the maximum taken on a dense grid."""
    rank, image = dense(base)
    f, g = np.exp(log_f(law, rank)), np.exp(log_f(law, image))
    total = 0.0
    if price is not None:
        knots = np.exp(price.log_u)
        total = float(np.sum(np.diff(knots) * 0.5 * (price.value[1:] + price.value[:-1])))
        f = f - np.interp(np.exp(rank.log_u), knots, price.value)
    for s, q in zip(np.exp(epsilon - losses), mass, strict=True):
        total += q * max(float(np.max(f - g * s)), 0.0)
    return total


def gaussian_losses(sigma: float, count: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Privacy losses log(dQ/dQ') and masses of N(0,1) against N(1/sigma,1) at midpoints."""
    s = 1.0 / sigma
    edges = np.linspace(-12.0, 12.0, count + 1)
    y = 0.5 * (edges[1:] + edges[:-1])
    density = np.exp(-0.5 * y * y) / math.sqrt(2.0 * math.pi)
    return s * s / 2.0 - s * y, density * np.diff(edges)


@pytest.mark.parametrize("sigma", [0.7, 2.0])
@pytest.mark.parametrize("law", [Poisson(10.0), tnb(10.0, eta=0.0), Binomial(20, 0.3), MIXED], ids=repr)
def test_profile_bound_of_a_gaussian_by_integration(sigma, law):
    base = Gaussian(sigma)
    losses, mass = gaussian_losses(sigma)
    for delta in (1e-2, 1e-6):
        epsilon, sharp = ProfileBound(base, law).solve(math.log(delta))
        true = integrated(law, base, losses, mass, epsilon, None)
        assert true * (1.0 - 1e-5) <= delta
        # delta may be looser by what the tolerance of epsilon (and the integral's error) makes of it
        steepness = -float(sharp.log_delta(epsilon * 1.001) - sharp.log_delta(epsilon)) / (0.001 * epsilon)
        assert true >= delta * (1.0 - 5e-4 * epsilon * steepness - 2e-4)


def test_profile_bound_of_randomized_response_by_hand():
    """Two outcomes of losses +eps0 and -eps0: the envelope is evaluated at two points only."""
    eps0, law = 1.0, tnb(10.0, eta=0.5)
    base = PureDP(eps0)
    p = math.exp(eps0) / (1.0 + math.exp(eps0))
    losses, mass = np.array([eps0, -eps0]), np.array([p, 1.0 - p])
    for epsilon in (0.2, 1.0, 2.0):
        sharp = ProfileBound(base, law, rank_curve(base, law, 4000))
        true = integrated(law, base, losses, mass, epsilon, None)
        found = math.exp(float(sharp.log_delta(epsilon)))
        assert true * (1.0 - 1e-7) <= min(found, 1.0) or true > 1.0
        assert found <= true * (1.0 + 2e-3)


def test_profile_bound_with_a_price_by_integration():
    base, law, delta = Gaussian(10.0), Poisson(100.0), 1e-6
    epsilon, plain = ProfileBound(base, law).solve(math.log(delta))
    value, priced = priced_bound(plain, epsilon, math.log(delta))
    assert epsilon == pytest.approx(2.514, abs=2e-3)
    assert value <= 2.40
    losses, mass = gaussian_losses(10.0)
    assert priced.price is not None
    true = integrated(law, base, losses, mass, value, priced.price)
    assert true * (1.0 - 1e-3) <= delta
    assert true >= delta * 0.9
    # any price at all is valid
    rng = random.Random(2)
    curve = rank_curve(base, law)
    for _ in range(5):
        first = rng.randrange(1, curve.x.size - 40)
        phi = np.array([0.0, *(rng.uniform(0.0, 20.0) for _ in range(30)), 0.0])
        price = Price(curve.rank.log_u[first : first + phi.size], phi)
        found = math.exp(float(ProfileBound(base, law, curve, price).log_delta(2.4)))
        assert found >= min(integrated(law, base, losses, mass, 2.4, price), 1.0) * (1.0 - 1e-4)


def test_price_must_close():
    u = np.log([0.1, 0.2, 0.3])
    for bad in ([0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, -1.0, 0.0]):
        with pytest.raises(ValueError, match="price"):
            Price(u, np.array(bad))
    assert Price(u, np.array([0.0, 1.0, 0.0])).log_total == pytest.approx(math.log(0.1))


def test_envelope_of_lines():
    """The mixture of hinges is the upper envelope itself."""
    rng = random.Random(4)
    for _ in range(20):
        a = np.sort([rng.uniform(0.0, 5.0) for _ in range(12)])[::-1]
        b = np.minimum(np.sort([rng.uniform(0.0, 5.0) for _ in range(12)])[::-1], a)
        found = envelope(np.log(b), np.log(a), math.log(a[0]))
        weight, shift = np.exp(found.log_weights), np.exp(found.shifts)
        for s in np.geomspace(1e-3, 1e3, 60):
            direct = max(float(np.max(a - b * s)), 0.0)
            hinges = float(np.sum(weight * np.maximum(1.0 - s / shift, 0.0)))
            assert hinges == pytest.approx(direct, rel=1e-9, abs=1e-12)


def test_weights_add_up_to_the_mean():
    for law in (Poisson(10.0), tnb(10.0, eta=0.0), Fixed(7), AtMost(Poisson(3.0), 5)):
        found = ProfileBound(Gaussian(1.0), law).safe
        assert float(np.sum(np.exp(found.log_weights))) == pytest.approx(law.mean, rel=1e-9)


def test_where_a_law_may_vanish():
    """F(1) = 0 (fixed k), a region that reaches 1 (slack): sound, finite and never NaN."""
    for base in (ApproxDP(0.5, 1e-6), ProfileCurve({0.0: 0.3, 0.5: 0.1, 1.0: 1e-9}), Gaussian(1.0), PureDP(60.0)):
        for law in (Fixed(50), Fixed(1), Binomial(3, 1.0), FinitePmf(((7, 0.5), (9, 0.5)))):
            profile = ProfileBound(base, law)
            value = profile.log_delta(np.array([0.0, 1.0, 5.0, 50.0, 5000.0]))
            assert not np.isnan(value).any()
            assert np.all(np.diff(value) <= 1e-12)
            assert not np.isnan(RefinedRDP(base, law).rdp(np.array([1.1, 2.0, 30.0]))).any()
    # one run is one run, to the certification's margin
    assert ProfileBound(ApproxDP(0.5, 1e-6), Fixed(1)).epsilon(math.log(1e-3)) == pytest.approx(
        epsilon_at(ApproxDP(0.5, 1e-6), math.log(1e-3)).value, rel=2e-4
    )


# ---------------------------------------------------------------------------------------------------------------
# R3: closed forms and the search for other laws
# ---------------------------------------------------------------------------------------------------------------


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


def test_pure_search_by_brute_force():
    rng = random.Random(7)
    for _ in range(25):
        ks = sorted(rng.sample(range(1, 300), rng.randint(1, 4)))
        weights = [rng.random() + 0.01 for _ in ks]
        law = FinitePmf(tuple((k, w / math.fsum(weights)) for k, w in zip(ks, weights, strict=True)))
        epsilon = 10.0 ** rng.uniform(-2.0, 1.0)
        edge = 1.0 / (1.0 + math.exp(epsilon))
        u = np.concatenate([edge * np.geomspace(1e-9, 1.0, 20_000), np.linspace(0.0, edge, 20_000)])
        gain = log_f(law, Prob.from_u(u)) - log_f(law, Prob.from_u(np.exp(epsilon) * u))
        true = epsilon + float(np.max(gain))
        assert true * (1.0 - 1e-9) <= refined_pure(epsilon, law) <= true * (1.0 + 1e-5)


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


class Asked:
    """A law, and how many ranks it was asked for."""

    supremum_at_edge = False

    def __init__(self, law: Law) -> None:
        self.law, self.ranks = law, 0

    def log_density(self, rank: Prob) -> np.ndarray:
        self.ranks += rank.log_u.size
        return self.law.log_density(rank)

    def log_mean_excess(self, rank: Prob) -> np.ndarray:
        return self.law.log_mean_excess(rank)


def test_pure_search_asks_little():
    """It walks a grid of 256 cells, and cuts what may hold the supremum into eighths."""
    cases: list[tuple[tuple[tuple[int, float], ...], float, int]] = [  # the last: how many cells it cuts, at most
        (((1, 1.0),), 1.0, 0),
        (((7, 1.0),), 1.0, 0),
        (((1, 0.5), (1000, 0.5)), 1.0, 6),
        (((2, 0.5), (60, 0.5)), 0.3, 8),
        (((1, 0.4), (30, 0.4), (900, 0.2)), 4.0, 6),
        (((2, 0.3127), (26, 0.4613), (1706, 0.1826), (8978, 0.0434)), 0.0033, 78),
        (((3, 0.5), (40, 0.5)), 1e-9, 1),
    ]
    for pmf, epsilon, most in cases:
        law = Asked(FinitePmf(pmf))
        refined_pure(epsilon, law)
        assert law.ranks <= 2 * (258 + 9 * most), (pmf, law.ranks)


@pytest.mark.parametrize("k", [1000, 2_230_744, 10**9])
def test_pure_search_of_one_number_of_runs_rounds_upwards(k):
    for epsilon in (1e-9, 1.0665180572311555e-08, 0.001, 1.0, 300.0):
        assert k * epsilon <= refined_pure(epsilon, FinitePmf(((k, 1.0),))) <= k * epsilon * (1.0 + 2e-11 + 2e-15 * k)


def test_pure_answer_does_not_depend_on_the_chance_of_no_run():
    """F of a law given K >= 1 is a multiple of F."""
    for law in (FinitePmf((0.9, 0.0, 0.1)), AtMost(Poisson(0.3), 3), MIXED, Poisson(2.0), Binomial(9, 0.3)):
        for epsilon in (0.1, 1.0, 30.0):
            assert refined_pure(epsilon, AtLeastOne(law)) == pytest.approx(refined_pure(epsilon, law), rel=2e-5)


def test_pure_answer_is_attained_by_randomized_response():
    """A split outcome gives the log ratio in the limit, so nothing smaller holds."""
    law, epsilon = from_gamma(0.0, 0.05), 1.0
    p = mp.exp(1) / (1 + mp.exp(1))

    def f(x: mp.mpf) -> mp.mpf:
        return mp.log(1 - (1 - mp.mpf("0.05")) * x) / mp.log(mp.mpf("0.05"))

    # outcomes by rank: the likelier under Q' first, but for a sliver of the other one, ranked in between
    top_q, top_p, sliver = 1 - p, p, mp.mpf("1e-12")
    block_q = f(1 - top_q) - f(1 - top_q - sliver)
    block_p = f(1 - top_p) - f(1 - top_p - sliver * mp.exp(-1))
    assert float(mp.log(block_q / block_p)) == pytest.approx(refined_pure(epsilon, law), rel=1e-9)


# ---------------------------------------------------------------------------------------------------------------
# R4
# ---------------------------------------------------------------------------------------------------------------


def test_conditional_sampling():
    for accept in (1e-6, 0.01, 0.4, 1.0):
        for eps in (0.1, 1.0, 5.0):
            v = min(math.exp(eps) * accept, 1.0 - math.exp(-eps) * (1.0 - accept))
            assert conditional_pure(eps, accept) == pytest.approx(eps + math.log(v / accept), rel=1e-9)
            assert conditional_pure(eps, accept) <= 2.0 * eps * (1.0 + 1e-12)
        base = Gaussian(1.0)
        v = float(mp.ncdf(mp.erfinv(2 * mp.mpf(accept) - 1) * mp.sqrt(2) + 1)) if accept < 1.0 else 1.0
        for t in (0.0, 1.0, 6.0):
            direct = float(base.log_profile(t - math.log(v / accept))) - math.log(accept)
            found = float(conditional_log_profile(base, accept, t))
            assert found == pytest.approx(min(direct, 0.0), rel=1e-9, abs=1e-12)


# ---------------------------------------------------------------------------------------------------------------
# the pieces, one by one
# ---------------------------------------------------------------------------------------------------------------


def polygon(rng: random.Random, corners: int, deepest: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of two functions that fall along the corners of a polygon, by steps of very different sizes."""
    steps = np.array([[10.0 ** rng.uniform(-6.0, deepest) for _ in range(corners)] for _ in range(2)])
    log_b, log_a = np.array([[rng.uniform(-3.0, 3.0)], [rng.uniform(-3.0, 3.0)]]) - np.cumsum(steps, axis=1)
    return log_b, log_a


def test_supremum_on_a_polygon_by_brute_force():
    rng = random.Random(21)
    share = np.concatenate([[0.0, 1.0], np.linspace(0.0, 1.0, 801), np.geomspace(1e-9, 0.1, 200)])
    share = np.concatenate([share, 1.0 - share])
    orders = np.array([1.01, 1.5, 2.0, 7.0, 64.0])
    for _ in range(40):
        log_b, log_a = polygon(rng, 2 * rng.randint(1, 12) + 1, rng.choice([-1.0, 0.3]))
        curve: Any = SimpleNamespace(vertices=(log_b, log_a))
        corners = _corners(curve, orders)
        assert corners.shape == (5, log_a.size)
        a = np.log1p(share[:, None] * np.expm1(np.diff(log_a))) + log_a[:-1]
        b = np.log1p(share[:, None] * np.expm1(np.diff(log_b))) + log_b[:-1]
        for order, row in zip(orders, corners, strict=True):
            value = order * a - (order - 1.0) * b
            direct = value.max(axis=0)
            # no point of an edge is above both its ends
            np.testing.assert_allclose(np.maximum(row[1:], row[:-1]), direct, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(row, order * log_a - (order - 1.0) * log_b, rtol=1e-12)
        np.testing.assert_array_equal(log_supremum(curve, orders), corners.max(axis=1))
    # an end in (0, 0) adds nothing; F(V) = 0 before the last cell leaves no bound
    none = -math.inf
    ending: Any = SimpleNamespace(
        vertices=(np.array([0.0, -1.0, -3.0, -9.0, none]), np.array([0.0, 0.5, 0.2, -7.0, none]))
    )
    assert log_supremum(ending, np.array([2.0]))[0] == pytest.approx(3.4, rel=1e-12)
    early = rank_curve(ApproxDP(0.5, 0.1), Fixed(3))
    assert log_supremum(early, np.array([2.0]))[0] == math.inf


def test_supremum_where_f_vanishes():
    """Only the last two edges are open; F = 0 earlier counts as nothing, and no end is a NaN."""
    for law in (Fixed(2), Fixed(50), FinitePmf(((7, 0.5), (9, 0.5)))):
        ks = [law.k] if isinstance(law, Fixed) else [k for k, _ in law.probabilities]
        least = min(ks)
        c = law.mean if isinstance(law, Fixed) else 3.5
        for base in (Gaussian(1.0), ZCDP(0.3)):
            curve = rank_curve(base, law)
            for order in (1.5, 2.0, 4.0):
                h, h2 = order - 1.0, 2.0 * order - 1.0
                log_q = float(curve.rank.log_q[-2])
                moment = h * float(base.rdp(np.array(2.0 * order))) + log_q * (1.0 - h / h2)
                # F(u) / q^(m-1) at the last node; all of it is m P[K=m] where the other terms are far below rounding
                first = float(curve.log_f[-2]) - (least - 1) * log_q
                assert first == pytest.approx(math.log(c), abs=1e-9)
                want = order * first - h * math.log(c) + (least - 1) * moment
                tail = float(_tail_bound(curve, np.array([order]))[0])
                assert tail == pytest.approx(want, rel=1e-9)
                corners = _corners(curve, np.array([order]))
                assert corners[0, -1] == -math.inf
                assert np.isfinite(corners[0, :-1]).all()
                if curve.vertices[0][-2] == -math.inf:
                    assert corners[0, -2] == tail
                # the bound holds beyond the last node but one
                rank = Prob.from_log_q(np.linspace(log_q, log_q - 30.0, 50))
                with np.errstate(divide="ignore", invalid="ignore"):
                    value = order * law.log_density(rank) - h * law.log_density(base.region(rank))
                assert np.nanmax(value) <= tail + 1e-9
    unknown = rank_curve(RDPCurve({1.5: 0.2, 2.0: 0.3}), Fixed(3))
    assert _tail_bound(unknown, np.array([1.5]))[0] == math.inf


def test_renyi_bound_keeps_shapes_and_never_goes_below_zero():
    law = tnb(10.0, eta=0.0)
    plain = RefinedRDP(Gaussian(1.0), law)
    grid = np.array([[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = plain.rdp(grid)
    assert found.shape == (2, 3)
    assert plain.rdp(2.0).shape == ()
    assert found[0, 1] == plain.rdp(2.0)
    assert plain.orders is None
    assert RefinedRDP(RDPCurve({1.5: 0.2, 2.0: 0.3}), law).orders is not None
    mixed = RefinedRDP(PureDP(0.5), law).rdp([1.5, math.inf])
    assert mixed[1] == pytest.approx(refined_pure(0.5, law), rel=1e-12)
    assert mixed[0] == pytest.approx(min(float(RefinedRDP(PureDP(0.5), law).rdp(1.5)), mixed[1]), rel=1e-9)
    # a law with no effect and a base with no loss
    nothing = RefinedRDP(PureDP(0.0), FinitePmf((0.5, 0.5))).rdp([1.0 + 1e-9, 2.0])
    assert np.all((nothing >= 0.0) & (nothing <= 1e-5))
    assert np.all(RefinedRDP(PureDP(0.0), Fixed(1)).rdp([1.5, 2.0]) == 0.0)


def test_renyi_formula_is_rounded_up():
    """From the same supremum and the same curve of one run, with 50 digits."""
    orders = np.array([1.0 + 1e-9, 1.0 + 1e-6, 1.1, 2.0, 30.0])
    coins = [FinitePmf((p, 1.0 - p)) for p in np.linspace(0.03, 0.97, 25)]
    with mp.workdps(50):
        for base in (PureDP(1e-3), Gaussian(3.0), ZCDP(0.2)):
            for law in (*coins, MIXED, AtMost(Poisson(3.0), 9), Poisson(10.0), tnb(10.0, eta=0.0), Binomial(9, 0.3)):
                plain = RefinedRDP(base, law, rank_curve(base, law, 32))
                log_m, moments, found = plain.log_m(orders), (orders - 1.0) * base.rdp(orders), plain.rdp(orders)
                for order, m, moment, value in zip(orders, log_m, moments, found, strict=True):
                    h, big, gain = mp.mpf(order) - 1, mp.exp(mp.mpf(m)), mp.expm1(mp.mpf(moment))
                    if law.affine_power:
                        want = mp.log1p(big * gain) / h
                    else:
                        want = mp.log(mp.mpf(law.prob_zero) + big * (1 + gain)) / h
                    assert want <= value
                    assert value <= want * (1 + mp.mpf("1e-11")) + mp.mpf("1e-14") / h


def test_one_run_costs_what_it_costs():
    """K = 1 has F = 1, so R1 is the base's own curve but for an allowance for rounding, upwards."""
    for base in (ZCDP(0.1), Gaussian(0.7), PureDP(1.0)):
        for law in (from_gamma(0.5, 1.0), FinitePmf(((1, 1.0),))):
            orders = np.array([1.0 + 1e-9, 1.1, 2.0, 30.0, 1e4])
            found, true = RefinedRDP(base, law).rdp(orders), base.rdp(orders)
            assert np.all(found >= true)
            assert np.all(found <= true * (1.0 + 3e-12) + 5e-15 / (orders - 1.0))


def test_sharpening_closes_the_gap():
    for base, law in ((ZCDP(0.1), tnb(40.0, eta=0.0)), (Gaussian(0.7), Poisson(10.0)), (Laplace(1.0), MIXED)):
        for target in (1e-6, 1e-3):
            orders = np.array([1.3, 4.0])
            sharp = RefinedRDP(base, law).sharpen(orders, target)
            corners = _corners(sharp._curve, orders)
            top, known = corners.max(axis=1), corners[:, 0::2].max(axis=1)
            assert np.all(top <= known + target * np.maximum(1.0, np.abs(known)) * 1.0000001)
            assert sharp._curve.x.size < 1500
        coarse = rank_curve(base, law)
        rough = RefinedRDP(base, law, coarse).sharpen(orders, 1e3)
        assert rough._curve is coarse


def test_samples_alone_lie_below_the_bound():
    orders = np.array([1.3, 2.0, 4.0])
    for base, law in ((ZCDP(0.1), tnb(40.0, eta=0.0)), (Gaussian(0.7), Poisson(10.0)), (Laplace(1.0), MIXED)):
        found = RefinedRDP(base, law, rank_curve(base, law, 40))
        samples, true = found.estimate(orders), found.sharpen(orders).rdp(orders)
        assert np.all(samples <= true)
        assert np.all(samples >= 0.98 * true)
        assert np.any(found.rdp(orders) > true * (1.0 + 1e-5))


def test_sharpening_goes_no_further_than_asked():
    """The target is relative to log M where that is above 1, absolute below."""
    orders = np.array([6.0])
    for base, law in ((ZCDP(0.1), tnb(1e6, eta=0.0)), (ZCDP(1e-3), tnb(1.5, eta=0.0))):
        coarse = rank_curve(base, law, 40)
        corners = _corners(coarse, orders)[0]
        known = float(corners[0::2].max())
        gap, size = float(corners.max()) - known, max(1.0, abs(known))
        assert gap > 0.0
        assert not 0.45 < known < 5.0
        assert RefinedRDP(base, law, coarse).sharpen(orders, 1.01 * gap / size)._curve is coarse
        assert RefinedRDP(base, law, coarse).sharpen(orders, 0.9 * gap / size)._curve is not coarse
    # a curve of many thousands of nodes stays as it is
    fine = rank_curve(Gaussian(2.0), tnb(40.0, eta=0.0), 25_000)
    assert RefinedRDP(Gaussian(2.0), fine.law, fine).sharpen(orders, 0.0)._curve is fine


def hull_by_definition(b: list[Any], a: list[Any]) -> list[int]:
    """Corners of the upper hull of exact points: those above every chord of two others around them."""
    keep = []
    for j in range(len(b)):
        below = any(
            (a[j] - a[i]) * (b[k] - b[i]) <= (a[k] - a[i]) * (b[j] - b[i])
            for i in range(j)
            for k in range(j + 1, len(b))
        )
        if not below:
            keep.append(j)
    return keep


def test_hull_by_definition():
    rng = random.Random(5)
    for deep in (0.0, 400.0):  # far below the doubles, logarithms only
        for size in (2, 3, 9, 24):
            for _ in range(6):
                b = sorted(rng.uniform(-2.0, 2.0) - deep for _ in range(size))
                a = [rng.uniform(-2.0, 2.0) - deep for _ in range(size)]
                if rng.random() < 0.5:
                    a.sort()
                with mp.workdps(60):
                    want = hull_by_definition([mp.exp(x) for x in b], [mp.exp(x) for x in a])
                rising = [i for i in want if a[i] == max(a[: i + 1])]
                assert concave_hull(np.array(b), np.array(a)).tolist() == rising
    # points that span hundreds of decades, and zeros first
    b = np.array([-math.inf, -900.0, -500.0, -100.0, -1.0])
    a = np.array([-math.inf, -800.0, -450.0, -90.0, -0.5])
    with mp.workdps(900):
        want = hull_by_definition([mp.exp(x) for x in b.tolist()], [mp.exp(x) for x in a.tolist()])
    assert concave_hull(b, a).tolist() == want
    # F less a price may be 0 anywhere, and samples may repeat: the corners' coordinates are what counts
    for deep in (0.0, 400.0):
        for _ in range(30):
            xs = [rng.choice([0.0, 0.5, 1.0, 1.5, 2.0, 2.5]) - deep for _ in range(rng.randint(3, 12))]
            pairs = [(x, rng.choice([-math.inf, 0.1 - deep, 0.7 - deep, x, x])) for x in xs]
            rows = sorted([*pairs, rng.choice(pairs), (-math.inf, -math.inf)])
            with mp.workdps(60):
                corners = sorted({(x, max(y for z, y in rows if z == x)) for x, _ in rows})
                exact = [[mp.exp(c) for c in part] for part in zip(*corners, strict=True)]
                want = [corners[i] for i in hull_by_definition(*exact)]
            want = [want[0], *(c for i, c in enumerate(want[1:]) if c[1] > max(y for _, y in want[: i + 1]))]  # rising
            kept = concave_hull(*(np.array(part) for part in zip(*rows, strict=True))).tolist()
            found = [rows[i] for i in kept]
            assert [c for c in want if c not in found] == [], (rows, found)
            assert len(set(found)) == len(found)


def test_hull_of_a_line_and_of_steps():
    # on one line only the ends stay
    line = np.log(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert concave_hull(line, line).tolist() == [0, 4]
    assert concave_hull(line[:1], line[:1]).tolist() == [0]
    # of points above each other the highest; no point that rises no more
    b = np.array([-math.inf, -math.inf, -math.inf, -2.0, -1.0, -1.0, 0.0])
    a = np.array([-math.inf, -5.0, -4.0, -4.0, -3.0, -1.0, -1.0])
    assert concave_hull(b, a).tolist() == [0, 2, 5]


def test_envelope_of_lines_far_below_the_doubles():
    rng = random.Random(14)
    for _ in range(4):
        log_a = np.sort([rng.uniform(-700.0, 0.0) for _ in range(15)])[::-1]
        log_b = np.minimum(np.sort([rng.uniform(-700.0, 0.0) for _ in range(15)])[::-1], log_a)
        found = envelope(log_b, log_a, float(log_a[0]))
        with mp.workdps(400):
            a, b = ([mp.exp(mp.mpf(x)) for x in part.tolist()] for part in (log_a, log_b))
            for log_s in (-600.0, -90.0, 0.0, 30.0, 500.0):
                s = mp.exp(log_s)
                direct = max([x - y * s for x, y in zip(a, b, strict=True)] + [mp.mpf(0)])
                hinges = mp.fsum(
                    mp.exp(w) * max(1 - s * mp.exp(-mp.mpf(c)), 0)
                    for w, c in zip(found.log_weights.tolist(), found.shifts.tolist(), strict=True)
                )
                assert abs(hinges - direct) <= 1e-9 * direct


def test_envelope_evaluates_the_base_at_shifted_epsilons():
    base = Gaussian(0.8)
    weights, shifts = np.log([0.5, 2.0, 1e-3]), np.array([-1.0, 0.7, math.inf])
    found = Envelope(weights, shifts)
    eps = np.array([[0.0, 1.0], [2.0, 9.0]])
    got = found.log_delta(base, eps)
    assert got.shape == (2, 2)
    for index, e in np.ndenumerate(eps):
        sums = [0.5 * math.exp(float(base.log_profile(np.array(e + 1.0))))]
        sums += [2.0 * math.exp(float(base.log_profile(np.array(e - 0.7)))), 1e-3]
        assert got[index] == pytest.approx(min(math.log(math.fsum(sums)), 0.0), rel=1e-12, abs=1e-15)
    assert float(Envelope(np.log([3.0]), np.array([math.inf])).log_delta(base, 1.0)) == 0.0


def test_price_is_piecewise_linear_in_rank():
    base, law = Gaussian(1.0), Poisson(10.0)
    curve = rank_curve(base, law, 40)
    u = np.exp(curve.rank.log_u)
    phi = np.array([0.0, 1.0, 4.0, 0.5, 0.0])
    price = Price(curve.rank.log_u[10:15], phi)
    want = float(np.sum(np.diff(u[10:15]) * (phi[1:] + phi[:-1]) / 2.0))
    assert want <= math.exp(price.log_total) <= want * (1.0 + 1e-11)
    node = price.at_nodes(curve)
    assert node[10:15] == pytest.approx(phi, rel=1e-12)
    assert np.all(node[:10] == 0.0)
    assert np.all(node[15:] == 0.0)
    vertex = price.at_vertices(curve)
    assert vertex.size == 2 * u.size - 1 == curve.vertices[0].size
    assert np.array_equal(vertex[0::2], node)
    corner = u[:-1] + curve.cells[0] * np.diff(u)
    np.testing.assert_allclose(vertex[1::2], np.interp(corner, u, node), rtol=1e-9, atol=1e-12)
    other = rank_curve(base, tnb(10.0, eta=0.0), 60)
    moved = price.on(other)
    assert np.array_equal(moved.log_u, other.rank.log_u)
    assert moved.value[1:-1] == pytest.approx(np.interp(np.exp(other.rank.log_u), u, node)[1:-1], rel=1e-12)
    assert moved.value[0] == moved.value[-1] == 0.0
    high = Price(curve.rank.log_u[[0, 1, -2, -1]], np.array([0.0, 2.0, 2.0, 0.0])).on(other)
    assert np.max(high.value) == 2.0
    assert high.value[1] > 0.0
    assert high.value[-2] > 0.0
    flat = Price(curve.rank.log_u[3:6], np.zeros(3))
    assert flat.log_total == -math.inf
    # a price of nothing changes nothing, one above F leaves nothing of F
    plain = ProfileBound(base, law, curve)
    margin = float(plain.log_delta(9.0)) - float(plain.safe.log_delta(base, 9.0))
    assert 0.9e-11 < margin < 1.1e-11  # what the rounding of the sums may take
    assert ProfileBound(base, law, curve, flat).log_delta(1.0) == pytest.approx(plain.log_delta(1.0), rel=1e-12)
    for part, bound_ in (("safe", curve.vertices), ("nodes", (curve.log_g, curve.log_f))):
        at = price.at_vertices(curve) if part == "safe" else node
        a = np.maximum(np.exp(bound_[1]) - at, 0.0)
        envelope_ = getattr(ProfileBound(base, law, curve, price), part)
        for s in (0.01, 0.5, 1.0, 3.0):
            direct = float(np.max(np.maximum(a - np.exp(bound_[0]) * s, 0.0)))
            hinges = float(np.sum(np.exp(envelope_.log_weights) * np.maximum(1.0 - s / np.exp(envelope_.shifts), 0.0)))
            assert hinges == pytest.approx(direct, rel=1e-9, abs=1e-12)
    total = math.exp(price.log_total) + math.exp(
        float(ProfileBound(base, law, curve, price).safe.log_delta(base, np.array(9.0)))
    )
    found = math.exp(float(ProfileBound(base, law, curve, price).log_delta(9.0)))
    assert min(total, 1.0) <= found <= min(total, 1.0) * (1.0 + 1e-10)


def test_price_moves_to_another_law():
    """The same share of F wherever F has fallen by the same factor: of Poisson laws, at the same ``mu u``."""
    base = Gaussian(1.0)
    before, after = rank_curve(base, Poisson(10.0), 300), rank_curve(base, Poisson(30.0), 300)
    u = np.exp(before.rank.log_u)
    share = np.interp(u, [0.0, 0.02, 0.1, 0.3, 1.0], [0.0, 0.0, 0.6, 0.0, 0.0])
    price = Price(before.rank.log_u, share * np.exp(before.log_f))
    moved = price.moved(before, after)
    assert np.array_equal(moved.log_u, after.rank.log_u)
    other = np.exp(after.rank.log_u)
    want = np.interp(other * 3.0, u, share) * 30.0 * np.exp(-30.0 * other)
    want[other > 1.0 / 3.0] = 0.0
    np.testing.assert_allclose(moved.value, want, rtol=1e-6, atol=2e-3)
    assert np.max(want) > 3.0
    np.testing.assert_allclose(price.moved(before, before).value, price.value, rtol=1e-9, atol=1e-9)
    # no price above F is kept; where F vanishes at an end no share is known, and the price is 0
    fixed = rank_curve(base, Fixed(5), 100)
    tent = Price(fixed.rank.log_u, np.interp(np.arange(fixed.x.size), [0, 8, 20], [0.0, 1.0, 0.0]))
    kept = np.minimum(tent.value, np.exp(fixed.log_f))
    assert 1 < np.count_nonzero(kept < tent.value) < 9
    np.testing.assert_allclose(tent.moved(fixed, fixed).value, kept, rtol=1e-9, atol=1e-9)
    assert np.isfinite(tent.moved(fixed, before).value).all()


class Counted:
    """A profile, and how often it was asked for."""

    def __init__(self, profile: Callable[[float], float]) -> None:
        self.profile, self.calls = profile, 0

    def __call__(self, epsilon: np.ndarray) -> np.ndarray:
        self.calls += 1
        return np.asarray(self.profile(float(epsilon)))


def test_solver_is_right_and_quick():
    profiles = {
        "gauss": (lambda e: -0.5 * e * e, lambda y: math.sqrt(-2.0 * y)),
        "line": (lambda e: -3.0 * e, lambda y: -y / 3.0),
        "root": (lambda e: -math.sqrt(e), lambda y: y * y),
    }
    for name, (profile, inverse) in profiles.items():
        for log_delta in (-1e-3, -0.5, -13.8, -700.0):
            want = inverse(log_delta)
            for start in (None, 0.0, *(want * factor for factor in (1.0, 1.0015, 0.9985, 1.3, 0.7, 50.0, 0.02))):
                for accuracy in (1e-12, 1e-3):
                    counted = Counted(profile)
                    found = smallest_epsilon(counted, log_delta, start, accuracy)
                    assert profile(found) <= log_delta
                    assert want * (1.0 - 1e-14) <= found, (name, log_delta, start)
                    short = profile(found) < log_delta - max(1.1 * accuracy, 1.1e-11)
                    assert not short or found <= want * (1.0 + 1.01 * accuracy), (name, log_delta, start)
                    assert counted.calls <= (45 if accuracy < 1e-9 else 30), (name, log_delta, start, counted.calls)


def test_solver_asks_little():
    """How often a profile is asked, at most: it is what a bound's time goes into."""
    profiles: list[tuple[Callable[[float], float], Callable[[float], float]]] = [
        (lambda e: -0.5 * e * e, lambda y: math.sqrt(-2.0 * y)),
        (lambda e: -3.0 * e, lambda y: -y / 3.0),
        (lambda e: -math.sqrt(e), lambda y: y * y),
        (lambda e: -((e / 3.0) ** 8), lambda y: 3.0 * (-y) ** 0.125),
        (lambda e: -10.0 * math.log1p(e), lambda y: math.expm1(-y / 10.0)),
    ]
    # by the guess, in units of the answer: for each profile, and for all digits and for three
    most = {
        None: [(6, 6), (12, 9), (21, 17), (14, 12), (17, 13)],
        1.0: [(3, 3)] * 5,
        1.0015: [(3, 3), (6, 3), (6, 3), (6, 3), (6, 3)],
        0.9985: [(3, 3), (6, 3), (6, 3), (7, 4), (6, 3)],
        1.3: [(5, 5), (11, 8), (12, 9), (14, 11), (16, 13)],
        0.7: [(4, 4), (11, 7), (11, 7), (12, 8), (13, 7)],
        50.0: [(5, 5), (14, 11), (16, 13), (43, 41), (19, 16)],
        0.02: [(9, 9), (16, 12), (16, 12), (18, 15), (16, 12)],
    }
    for factor, row in most.items():
        for (profile, inverse), limits in zip(profiles, row, strict=True):
            for accuracy, limit in zip((1e-12, 1e-3), limits, strict=True):
                for log_delta in (-0.5, -13.8, -50.0):
                    counted = Counted(profile)
                    smallest_epsilon(counted, log_delta, factor and factor * inverse(log_delta), accuracy)
                    assert counted.calls <= limit, (factor, accuracy, log_delta)


def test_solver_at_its_ends():
    assert smallest_epsilon(lambda e: np.asarray(-1.0 - e), -1.0) == 0.0
    for start in (math.inf, math.nan, -3.0):  # no guess at all
        assert smallest_epsilon(lambda e: np.asarray(-e), -7.0, start) == pytest.approx(7.0, rel=1e-9)
    assert smallest_epsilon(lambda e: np.asarray(-1.0 - e), -0.5, 3.0) == 0.0
    assert smallest_epsilon(lambda e: np.asarray(-1.0 - 0.0 * e), -2.0) == math.inf
    assert smallest_epsilon(lambda e: np.asarray(-1.0 - 0.0 * e), -2.0, 5.0) == math.inf
    # the largest answer, and a little more
    assert smallest_epsilon(lambda e: np.asarray(-e), -0.4e9) == pytest.approx(0.4e9, rel=1e-9)
    assert smallest_epsilon(lambda e: np.asarray(-e), -2.1e9) == math.inf
    # a profile that drops to nearly nothing at once: only halving finds the place
    steep = smallest_epsilon(lambda e: np.asarray(-1e12 if e >= 0.3 else -1.0), -13.8)
    assert 0.3 <= steep <= 0.3 * (1.0 + 1e-11)
    # a profile that drops to nothing at once
    cliff = smallest_epsilon(lambda e: np.asarray(-math.inf if e >= 0.3 else -1.0), -20.0)
    assert 0.3 <= cliff <= 0.3 * (1.0 + 1e-11)


def test_refining_stops_when_it_cannot_win():
    base, law, log_delta = Gaussian(0.5), tnb(40.0, eta=0.0), math.log(1e-6)
    rough = ProfileBound(base, law)
    first = smallest_epsilon(rough.log_delta, log_delta)
    epsilon, sharp = rough.solve(log_delta)
    assert sharp.rank_curve.x.size > rough.rank_curve.x.size
    assert epsilon < first
    samples = sharp.samples_epsilon(log_delta)
    assert samples <= epsilon <= samples * (1.0 + 1.5e-4)
    assert rough.samples_epsilon(log_delta, 3.0) == pytest.approx(rough.samples_epsilon(log_delta), rel=1e-9)
    # another bound already gives half of it: the first curve will do, and its own epsilon is the answer
    value, same = rough.solve(log_delta, 1e-4, 0.5 * epsilon)
    assert same.rank_curve is rough.rank_curve
    assert value == pytest.approx(first, rel=1e-9)
    # nor does one that only further refining can tell from this one, though it gives less than the first curve
    assert rough.solve(log_delta, 1e-4, 0.5 * (epsilon + first))[0] == pytest.approx(epsilon, rel=1e-9)
    # one that gives more than this one stops nothing
    assert rough.solve(log_delta, 1e-4, 2.0 * epsilon)[0] == pytest.approx(epsilon, rel=1e-9)
    # a tolerance of everything asks for no refinement
    assert rough.solve(log_delta, 1.0)[1].rank_curve is rough.rank_curve
    assert rough.epsilon(log_delta) == epsilon
    # nothing to refine for where the answer is 0, or none at all
    for bound_, delta, answer in (
        (ProfileBound(Gaussian(9.0), Poisson(0.5)), 0.7, 0.0),
        (ProfileBound(ApproxDP(0.5, 0.1), law), 1e-6, math.inf),
    ):
        value, same = bound_.solve(math.log(delta))
        assert value == answer
        assert same is bound_


def test_cell_costs_are_what_a_triangle_adds():
    base, law, epsilon = Gaussian(1.0), Poisson(10.0), 2.0
    bound_ = ProfileBound(base, law, rank_curve(base, law, 64))
    log_b, log_a = bound_.rank_curve.vertices
    a, b = np.exp(log_a), np.exp(log_b)

    def hinge(i: int, j: int) -> float:
        """∫ of one hull edge: its rise times the base's delta at its slope."""
        rise, run = a[i] - a[j], b[i] - b[j]
        if rise <= 0.0:
            return 0.0
        shift = math.log(rise / run) if run > 0.0 else math.inf
        return rise * math.exp(float(base.log_profile(np.array(epsilon - shift))))

    cost = bound_._cell_costs(epsilon)
    assert cost.shape == (bound_.rank_curve.x.size - 1,)
    for cell in range(0, cost.size, 3):
        i = 2 * cell
        want = max(hinge(i, i + 1) + hinge(i + 1, i + 2) - hinge(i, i + 2), 0.0)
        assert cost[cell] == pytest.approx(want, rel=1e-6, abs=1e-12)


def test_pure_search_is_certified_and_close():
    """Against a far finer grid, for laws that fall sharply, at epsilons from tiny to huge."""
    laws = [
        FinitePmf(((1, 0.5), (1000, 0.5))),
        FinitePmf(((1, 1 - 1e-9), (10_000, 1e-9))),
        FinitePmf(((2, 0.9), (3, 0.05), (500, 0.05))),
        AtMost(Poisson(3.0), 5),
    ]
    for law in laws:
        pmf = dict(law.probabilities) if isinstance(law, FinitePmf) else {
            k: math.exp(-3.0) * 3.0**k / math.factorial(k) for k in range(6)}  # fmt: skip
        ks, log_w = np.array([k for k in pmf if k], dtype=float), np.log([k * p for k, p in pmf.items() if k])

        def log_density(log_q: np.ndarray) -> np.ndarray:
            return np.logaddexp.reduce(log_w[:, None] + (ks - 1.0)[:, None] * log_q, axis=0)

        for epsilon in (1e-9, 1e-3, 1.0, 45.0, 300.0):
            log_edge = -epsilon - math.log1p(math.exp(-epsilon))
            log_u = log_edge - np.geomspace(1e-12, 60.0, 40_000)
            log_u = np.concatenate([log_u, [log_edge]])
            # 1 - v = 1 - e^ε u; at the edge 1 - v = u exactly
            with np.errstate(divide="ignore"):
                log_qv = np.log1p(-np.exp(np.minimum(log_u + epsilon, 0.0)))
            log_qv[-1] = log_edge
            gain = log_density(np.log1p(-np.exp(log_u))) - log_density(np.maximum(log_qv, log_edge))
            true = float(np.max(gain))
            found = refined_pure(epsilon, law) - epsilon
            assert found >= true * (1.0 - 1e-9) - 1e-15
            assert found <= true * (1.0 + 2e-5) + 2e-11 * epsilon + 1e-12
    # the searched bound of a fixed number of runs is k ε, and never less
    for k in (2, 7, 1000):
        for epsilon in (1e-6, 0.1, 1.0, 12.0):
            assert k * epsilon <= refined_pure(epsilon, FinitePmf(((k, 1.0),))) <= k * epsilon * (1.0 + 1e-10)
    assert [refined_pure(e, laws[0]) for e in (0.0, math.inf)] == [0.0, math.inf]


def test_conditional_bounds_of_a_sure_event_change_nothing():
    base = Gaussian(1.3)
    eps = np.array([[0.0, 0.5], [1.0, 4.0]])
    got = conditional_log_profile(base, 1.0, eps)
    assert got.shape == (2, 2)
    np.testing.assert_allclose(got, base.log_profile(eps), rtol=1e-12)
    assert conditional_pure(0.7, 1.0) == 0.7
    assert conditional_log_profile(base, 1e-12, 0.0) == 0.0


# ---------------------------------------------------------------------------------------------------------------
# what every bound must satisfy
# ---------------------------------------------------------------------------------------------------------------

#: How far a discretised bound may move the wrong way.
SLACK = 2e-4


def renyi_epsilon(base: Guarantee, law: Law, log_delta: float) -> float:
    (found,) = bound(base, law, delta=math.exp(log_delta), method="refined-rdp", lower=False).bounds
    return found.epsilon


def profile_epsilon(base: Guarantee, law: Law, log_delta: float) -> float:
    return ProfileBound(base, law).epsilon(log_delta)


METHODS = [renyi_epsilon, profile_epsilon]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("law", [Poisson(10.0), tnb(10.0, eta=-0.5), Binomial(10, 0.3)], ids=repr)
def test_more_loss_or_less_delta_never_gives_less(method, law):
    losses = np.geomspace(0.02, 2.0, 5)
    for family in (lambda x: Gaussian(1.0 / x), lambda x: ZCDP(x), lambda x: PureDP(x)):
        values = [method(family(float(x)), law, math.log(1e-6)) for x in losses]
        assert all(b >= a * (1.0 - SLACK) for a, b in itertools.pairwise(values))
    for base in (Gaussian(1.0), ZCDP(0.1)):
        values = [method(base, law, log_delta) for log_delta in np.linspace(math.log(1e-2), math.log(1e-15), 5)]
        assert all(b >= a * (1.0 - SLACK) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("method", METHODS)
def test_more_runs_never_give_less(method):
    means = np.geomspace(1.0, 200.0, 5).tolist()
    for base in (Gaussian(1.0), ZCDP(0.1)):
        for make in (lambda m: tnb(m, eta=0.0), lambda m: tnb(m, eta=1.0), Poisson):
            values = [method(base, make(mean), math.log(1e-6)) for mean in means]
            assert all(b >= a * (1.0 - SLACK) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("base", [Gaussian(1.0), Gaussian(20.0), ZCDP(0.1), ZCDP(1e-3), Laplace(1.0)], ids=repr)
@pytest.mark.parametrize("eta", [-0.9, 0.0, 3.0])
def test_gamma_one_gives_back_the_single_run(base, eta):
    log_delta = math.log(1e-6)
    cks = epsilon_at(base, log_delta, "cks").value
    best = epsilon_at(base, log_delta).value
    for law in (tnb(1.0, eta=eta), TruncatedNegativeBinomial.from_log_gamma(eta, -1e-13), Fixed(1), Binomial(1, 1.0)):
        assert renyi_epsilon(base, law, log_delta) == pytest.approx(cks, rel=5e-6)
        assert profile_epsilon(base, law, log_delta) == pytest.approx(best, rel=SLACK)
        orders = np.array([1.5, 2.0, 20.0])
        assert RefinedRDP(base, law).rdp(orders) == pytest.approx(base.rdp(orders), rel=1e-9)
        if base.pure_epsilon < math.inf:
            assert refined_pure(base.pure_epsilon, law) == pytest.approx(base.pure_epsilon, rel=1e-9)


def test_between_one_run_and_the_paper():
    """Never above the paper's bound by the same conversion, and with at least one run never below one run."""
    rng = random.Random(11)
    for _ in range(12):
        rho = 10.0 ** rng.uniform(-3.0, 0.5)
        base = rng.choice([ZCDP(rho), Gaussian(1.0 / math.sqrt(2.0 * rho))])
        eta = rng.choice([-0.9, -0.5, 0.0, 0.5, 1.0, 5.0])
        law = rng.choice([tnb(10.0 ** rng.uniform(0.0, 3.0), eta=eta), Poisson(10.0 ** rng.uniform(0.0, 2.0))])
        log_delta = math.log(10.0) * rng.uniform(-12.0, -4.0)
        renyi, profile = renyi_epsilon(base, law, log_delta), profile_epsilon(base, law, log_delta)
        for curve in paper.curves(base, law):
            assert renyi <= epsilon_from_rdp(curve, log_delta, "cks").value * (1.0 + SLACK), (base, law, curve.method)
        if law.prob_zero == 0.0:
            assert renyi >= epsilon_at(base, log_delta, "cks").value * (1.0 - 1e-6)
            assert profile >= epsilon_at(base, log_delta).value * (1.0 - 1e-6)
        orders = np.array([1.1, 2.0, 10.0])
        if isinstance(law, TruncatedNegativeBinomial):
            sharper = paper.theorem_2(base, law, sharper=True).rdp(orders)
            found = np.array([float(RefinedRDP(base, law).sharpen(a).rdp(a)) for a in orders])
            assert np.all(found <= sharper * (1.0 + SLACK))


def test_no_bound_is_below_an_enumerated_search():
    """Finite mechanisms, their exact guarantee, and every output law of the search in 50 digits."""
    rng = random.Random(13)
    orders = np.array([1.2, 2.0, 6.0])
    for _ in range(40):
        mechanism = random_mechanism(rng)
        up = 1.0 + 1e-13
        grid = np.array([1.1, 1.5, 2.0, 3.0, 6.0, 12.0])
        base: Guarantee = rng.choice(
            [
                PureDP(mechanism.pure_epsilon() * up),
                RDPCurve(dict(zip(grid.tolist(), (mechanism.rdp(grid) * up).tolist(), strict=True))),
                ProfileCurve({t: min(mechanism.profile(t) * up, 1.0) for t in (0.0, 0.1, 0.3, 0.7, 1.5, 3.5)}),
            ]
        )
        law = rng.choice([*LAWS, Fixed(9), AtMost(Poisson(5.0), 6), AtLeastOne(Poisson(0.7))])
        pairs = searches(mechanism, law)
        if np.isfinite(base.rdp(orders)).any():
            use = orders[np.isfinite(base.rdp(orders))]
            pairs.assert_renyi_at_most(use, RefinedRDP(base, law).rdp(use), (base, law))
        sharp = ProfileBound(base, law).solve(math.log(0.01))[1]
        for epsilon in (0.0, 0.2, 1.0, 3.0):
            claimed = math.exp(float(sharp.log_delta(epsilon)))
            pairs.assert_delta_at_most(epsilon, claimed, (base, law))
        if base.pure_epsilon < math.inf:
            assert pairs.largest_loss() <= refined_pure(base.pure_epsilon, law) * (1.0 + 1e-11) + 1e-14


def test_extreme_laws_stay_finite():
    log_delta = math.log(1e-6)
    for law in (
        tnb(1e4, eta=-0.99),
        TruncatedNegativeBinomial.from_log_gamma(0.0, -690.0),
        Poisson(1e-9),
        Poisson(1e5),
        Fixed(1000),
    ):
        for base in (Gaussian(2.0), ZCDP(0.01), PureDP(0.5), Laplace(3.0)):
            for method in METHODS:
                value = method(base, law, log_delta)
                assert value >= 0.0
                assert math.isfinite(value), (law, base)


def test_a_bound_is_left_once_its_samples_alone_lose():
    base, law, log_delta = Gaussian(1.0), Poisson(10.0), math.log(1e-6)
    coarse = rank_curve(base, law, 24)
    inner = ProfileBound(base, law, coarse).samples_epsilon(log_delta)
    for share, left in ((1.005, True), (1.02, False)):
        value, bound_ = ProfileBound(base, law, coarse).solve(log_delta, 0.01, enough=share * inner)
        assert value >= inner
        assert (bound_.rank_curve is coarse) == left


def test_a_bound_is_no_probability_above_one():
    assert ProfileBound(PureDP(5.0), Fixed(1000)).log_delta(0.0) == 0.0


def test_envelopes_bracket_and_agree():
    """The certified envelope and the samples' own differ by no more than the tolerance asked for."""
    for base in (Gaussian(1.0), ZCDP(0.1), Laplace(1.0)):
        for law in (Poisson(10.0), tnb(30.0, eta=0.0), Fixed(5)):
            epsilon, sharp = ProfileBound(base, law).solve(math.log(1e-6))
            inner = smallest_epsilon(lambda e: sharp.nodes.log_delta(base, e), math.log(1e-6))
            assert inner <= epsilon <= inner * (1.0 + 2e-4)
            assert float(sharp.log_delta(epsilon)) <= math.log(1e-6) + 1e-9


def test_solver_returns_a_value_that_meets_delta():
    steps = [(0.0, -1.0), (1.0, -2.0), (7.5, -20.0), (1e6, -1e4)]

    def stairs(epsilon: np.ndarray) -> np.ndarray:
        return np.array([y for x, y in steps if x <= float(epsilon)][-1])

    for log_delta, least in ((-0.5, 0.0), (-1.0, 0.0), (-1.5, 1.0), (-10.0, 7.5), (-1e3, 1e6)):
        found = smallest_epsilon(stairs, log_delta)
        assert stairs(np.array(found)) <= log_delta
        assert found == pytest.approx(least, rel=1e-9)
    assert smallest_epsilon(stairs, -1e5) == math.inf
    smooth = smallest_epsilon(lambda e: -0.5 * np.asarray(e) ** 2, -18.0)
    assert smooth == pytest.approx(6.0, rel=1e-9)
    assert -0.5 * smooth**2 <= -18.0


def test_curve_of_the_whole_search_converts_like_any_other():
    law = Poisson(10.0)
    curve = Curve(RefinedRDP(ZCDP(0.1), law).rdp, "refined-rdp", "R1", None)
    assert epsilon_from_rdp(curve, math.log(1e-6), "cks").value == pytest.approx(4.2258, rel=2e-3)


def test_threshold_has_only_conditional_bounds():
    answer = bound(PureDP(1.0), Threshold(0.1), delta=0.0)
    assert answer.best is not None
    assert answer.best.method == "refined-conditional"
    assert answer.epsilon == pytest.approx(conditional_pure(1.0, 0.1), rel=1e-9)
