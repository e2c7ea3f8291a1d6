"""R1: reference values, brute force on dense grids, closed forms, and what every bound must satisfy."""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from mechanisms import random_mechanism, searches

from hpcalc.bounds import paper
from hpcalc.bounds.pure import refined_pure
from hpcalc.bounds.renyi import enclosure, rdp_of_profiles, refined_renyi
from hpcalc.conversion import epsilon_at
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, ProfileCurve, PureDP, RDPCurve
from hpcalc.laws import AtLeastOne, AtMost, Binomial, FinitePmf, Fixed, Law, Poisson, TruncatedNegativeBinomial
from hpcalc.logspace import Prob
from hpcalc.questions.search_cost import bound

tnb = TruncatedNegativeBinomial.with_mean


def at(base: Guarantee, law: Law, order: float) -> float:
    """R1 at one order, its supremum found to 1e-6."""
    return float(refined_renyi(base, law).sharpened(np.array([order])).curve.rdp(np.array([order]))[0])


ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "reference" / "best_of_k.json").read_text("utf-8")
)


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
    assert row["lower"] * (1.0 - 1e-4) <= answer.epsilon <= row["best"] * (1.0 + 1e-2)
    assert answer.lower is not None
    assert answer.epsilon * (1.0 - 5e-3) <= answer.lower.epsilon <= answer.epsilon
    # each method by itself, not only the smallest
    assert row["refined_rdp"] * (1.0 - 1e-4) <= by_name["refined-rdp"] <= row["refined_rdp"] * (1.0 + 1e-3)
    # Theorem E is never above what shifted profiles gave
    assert by_name["refined-region"] <= row["profile"] * (1.0 + 1e-3)
    if "paper" in row:
        name = "theorem-6" if row["dist"] == "poisson" else "theorem-2"
        assert by_name[name] == pytest.approx(row["paper"], rel=1e-6)
    assert answer.epsilon <= min(by_name[name] for name in by_name if not name.startswith("refined"))


def test_published_examples():
    """One 0.1-zCDP run, mean 10, order 2: Theorem 2 gives 4.22."""
    law = TruncatedNegativeBinomial(1.0, 0.1)
    assert float(paper.theorem_2(ZCDP(0.1), law).rdp(np.array([2.0]))[0]) == pytest.approx(4.22, abs=0.005)
    assert at(ZCDP(0.1), law, 2.0) == pytest.approx(1.33522, abs=5e-5)
    assert at(Gaussian(5**0.5), law, 2.0) == pytest.approx(1.26673, abs=5e-5)


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


def test_renyi_bound_is_finite_next_to_order_one():
    for base in (ZCDP(0.1), Gaussian(1.0), PureDP(0.5)):
        for law in (Poisson(0.5), Poisson(20.0), tnb(10.0, eta=0.0)):
            value = refined_renyi(base, law).rdp(np.array([1.0 + 1e-9, 1.0 + 1e-6, 1.0 + 1e-3, 1.01]))
            assert np.isfinite(value).all()
            assert value[0] == pytest.approx(value[2], rel=0.05)


def test_renyi_bound_at_order_infinity():
    law = tnb(10.0, eta=0.0)
    assert refined_renyi(ZCDP(0.1), law).rdp(np.array([math.inf]))[0] == math.inf
    assert refined_renyi(PureDP(1.0), law).rdp(np.array([2.0, math.inf]))[1] == pytest.approx(
        refined_pure(1.0, law), rel=1e-12
    )


def test_supremum_where_f_vanishes():
    """F(1) = 0 with the region reaching (1, 1): the last cell is bounded by the base's own moment."""
    for law in (Fixed(2), Fixed(50), FinitePmf(((7, 0.5), (9, 0.5)))):
        for base in (Gaussian(1.0), ZCDP(0.3)):
            cells = enclosure(base, law)
            for order in (1.5, 2.0, 4.0):
                top = float(cells.log_supremum(np.array([order]))[0])
                assert math.isfinite(top)
                rank = Prob.from_log_q(-np.geomspace(1e-3, 80.0, 400))
                with np.errstate(divide="ignore", invalid="ignore"):
                    value = order * law.log_density(rank) - (order - 1.0) * law.log_density(base.region(rank))
                assert np.nanmax(value) <= top + 1e-9
    # F(V) = 0 before u = 1 leaves no bound
    assert enclosure(ApproxDP(0.5, 0.1), Fixed(3)).log_supremum(np.array([2.0]))[0] == math.inf
    assert math.isinf(at(RDPCurve({1.5: 0.2, 2.0: 0.3}), Fixed(3), 1.5))


def test_renyi_formula_is_rounded_up():
    """From the same supremum and the same curve of one run, with 50 digits."""
    orders = np.array([1.0 + 1e-9, 1.0 + 1e-6, 1.1, 2.0, 30.0])
    coins = [FinitePmf((p, 1.0 - p)) for p in np.linspace(0.03, 0.97, 25)]
    with mp.workdps(50):
        for base in (PureDP(1e-3), Gaussian(3.0), ZCDP(0.2)):
            for law in (*coins, MIXED, AtMost(Poisson(3.0), 9), Poisson(10.0), tnb(10.0, eta=0.0), Binomial(9, 0.3)):
                plain = refined_renyi(base, law)
                log_m, moments = plain.cells.log_supremum(orders), (orders - 1.0) * base.rdp(orders)
                for order, m, moment, value in zip(orders, log_m, moments, plain.curve.rdp(orders), strict=True):
                    h, big, gain = mp.mpf(order) - 1, mp.exp(mp.mpf(m)), mp.expm1(mp.mpf(moment))
                    if law.affine_power:
                        want = mp.log1p(big * gain) / h
                    else:
                        want = mp.log(mp.mpf(law.prob_zero) + big * (1 + gain)) / h
                    assert want <= value
                    assert value <= want * (1 + mp.mpf("1e-11")) + mp.mpf("1e-14") / h


def test_profile_and_epsilon_agree():
    bound_ = refined_renyi(ZCDP(0.1), Poisson(10.0))
    epsilon = bound_.epsilon(math.log(1e-6)).value
    assert bound_.log_profile(np.array([epsilon]))[0] == pytest.approx(math.log(1e-6), rel=5e-3)
    pure = refined_renyi(PureDP(0.5), Poisson(3.0))
    assert pure.log_profile(np.array([10.0]))[0] == -math.inf


#: How far a discretised bound may move the wrong way.
SLACK = 2e-4


def by(method: str, base: Guarantee, law: Law, log_delta: float) -> float:
    (found,) = bound(base, law, delta=math.exp(log_delta), method=method, lower=False).bounds
    return found.epsilon


METHODS = ["refined-rdp", "refined-region"]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("law", [Poisson(10.0), tnb(10.0, eta=-0.5), Binomial(10, 0.3)], ids=repr)
def test_more_loss_or_less_delta_never_gives_less(method, law):
    losses = np.geomspace(0.02, 2.0, 5)
    for family in (lambda x: Gaussian(1.0 / x), lambda x: ZCDP(x), lambda x: PureDP(x)):
        values = [by(method, family(float(x)), law, math.log(1e-6)) for x in losses]
        assert all(b >= a * (1.0 - SLACK) for a, b in itertools.pairwise(values))
    for base in (Gaussian(1.0), ZCDP(0.1)):
        values = [by(method, base, law, log_delta) for log_delta in np.linspace(math.log(1e-2), math.log(1e-15), 5)]
        assert all(b >= a * (1.0 - SLACK) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("base", [Gaussian(1.0), Gaussian(20.0), ZCDP(0.1), ZCDP(1e-3), Laplace(1.0)], ids=repr)
@pytest.mark.parametrize("eta", [-0.9, 0.0, 3.0])
def test_gamma_one_gives_back_the_single_run(base, eta):
    log_delta = math.log(1e-6)
    cks = epsilon_at(base, log_delta, "cks").value
    best = epsilon_at(base, log_delta).value
    for law in (tnb(1.0, eta=eta), TruncatedNegativeBinomial.from_log_gamma(eta, -1e-13), Fixed(1), Binomial(1, 1.0)):
        assert by("refined-rdp", base, law, log_delta) == pytest.approx(cks, rel=5e-6)
        assert by("refined-region", base, law, log_delta) == pytest.approx(best, rel=SLACK)
        orders = np.array([1.5, 2.0, 20.0])
        assert refined_renyi(base, law).curve.rdp(orders) == pytest.approx(base.rdp(orders), rel=1e-9)
        if base.pure_epsilon < math.inf:
            assert refined_pure(base.pure_epsilon, law) == pytest.approx(base.pure_epsilon, rel=1e-9)


@pytest.mark.slow
def test_between_one_run_and_the_paper():
    """Never above the paper's bound by the same conversion, and with at least one run never below one run."""
    rng = random.Random(11)
    for _ in range(12):
        rho = 10.0 ** rng.uniform(-3.0, 0.5)
        base = rng.choice([ZCDP(rho), Gaussian(1.0 / math.sqrt(2.0 * rho))])
        eta = rng.choice([-0.9, -0.5, 0.0, 0.5, 1.0, 5.0])
        law = rng.choice([tnb(10.0 ** rng.uniform(0.0, 3.0), eta=eta), Poisson(10.0 ** rng.uniform(0.0, 2.0))])
        log_delta = math.log(10.0) * rng.uniform(-12.0, -4.0)
        renyi, profile = by("refined-rdp", base, law, log_delta), by("refined-region", base, law, log_delta)
        for theorem in paper.bounds(base, law):
            assert renyi <= theorem.epsilon(log_delta, "cks").value * (1.0 + SLACK), (base, law, theorem.name)
        if law.prob_zero == 0.0:
            assert renyi >= epsilon_at(base, log_delta, "cks").value * (1.0 - 1e-6)
            assert profile >= epsilon_at(base, log_delta).value * (1.0 - 1e-6)
        orders = np.array([1.1, 2.0, 10.0])
        if isinstance(law, TruncatedNegativeBinomial):
            sharper = paper.theorem_2(base, law, sharper=True).rdp(orders)
            found = np.array([at(base, law, float(a)) for a in orders])
            assert np.all(found <= sharper * (1.0 + SLACK))


@pytest.mark.slow
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
            pairs.assert_renyi_at_most(use, refined_renyi(base, law).curve.rdp(use), (base, law))
        answer = bound(base, law, delta=0.01, method="refined-region", lower=False)
        for epsilon in (0.0, 0.2, 1.0, 3.0):
            claimed = math.exp(float(answer.log_profile(np.array([epsilon]))[0]))
            pairs.assert_delta_at_most(epsilon, claimed, (base, law))
        if base.pure_epsilon < math.inf:
            assert pairs.largest_loss() <= refined_pure(base.pure_epsilon, law) * (1.0 + 1e-11) + 1e-14


@pytest.mark.slow
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
                value = by(method, base, law, log_delta)
                assert value >= 0.0
                # doubles end before the masses that decide over 1e297 runs do
                assert math.isfinite(value) or (method == "refined-region" and law.log_mean > 600.0), (law, base)


def test_curve_from_profiles_is_above_the_truth_and_close():
    orders = np.array([1.01, 1.5, 2.0, 4.0, 8.0])
    for base, reach, most in ((Gaussian(5**0.5), 8.0, 1.01), (PureDP(1.0), 1.0, 1.0 + 1e-9), (Laplace(1.0), 1.0, 1.03)):
        tail = refined_renyi(base, Fixed(1))
        found = rdp_of_profiles([base.log_profile], tail, orders, reach, 80)
        true = base.rdp(orders)
        assert np.all(found >= true * (1.0 - 1e-12))
        assert np.all(found <= true * most)
    # where nothing takes over, nothing finite follows
    none = refined_renyi(RDPCurve({2.0: 0.3}), Fixed(1))
    assert rdp_of_profiles([lambda t: np.full(t.shape, -3.0)] * 2, none, np.array([3.0]), 5.0)[0] == math.inf
