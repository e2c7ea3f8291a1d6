"""``bound`` end to end: documents, known cases, and how far ε can still be above what no analysis can undercut."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from hpcalc.bounds import paper
from hpcalc.bounds.renyi import refined_renyi
from hpcalc.errors import ExitCode, InvalidInput
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Laplace, ProfileCurve, PureDP, RDPCurve
from hpcalc.laws import Binomial, Fixed, Poisson, Threshold, TruncatedNegativeBinomial
from hpcalc.logspace import Lower, Upper
from hpcalc.questions.search_cost import bound

tnb = TruncatedNegativeBinomial.with_mean


# -- the document

KEYS = [
    "hpcalc_version", "command", "base", "law", "delta", "epsilon", "method", "exact", "single_run", "composition",
    "lower_bound", "bounds", "rdp", "assumptions", "warnings",
]  # fmt: skip


def numbers(node: Any) -> list[float]:
    if isinstance(node, dict):
        return [x for value in node.values() for x in numbers(value)]
    if isinstance(node, list):
        return [x for value in node for x in numbers(value)]
    return [node] if isinstance(node, (int, float)) and not isinstance(node, bool) else []


def plain(node: Any) -> bool:
    """Only types that every format can say, exactly (no NumPy scalars)."""
    if isinstance(node, dict):
        return all(type(key) is str and plain(value) for key, value in node.items())
    if isinstance(node, list):
        return all(plain(value) for value in node)
    return node is None or type(node) in (str, int, float, bool, Upper, Lower)


def test_document():
    answer = bound(ZCDP(0.1), Poisson(10.0), delta=1e-6)
    document = answer.document()
    assert list(document) == KEYS
    assert (document["command"], document["base"], document["delta"]) == ("bound", {"zcdp": 0.1}, 1e-6)
    assert document["law"] == {"dist": "poisson", "mu": 10.0, "mean": 10.0, "prob_zero": pytest.approx(4.539993e-05)}
    assert document["epsilon"] == pytest.approx(4.2258, rel=1e-4)
    assert (document["method"], document["exact"]) == ("refined-rdp", True)
    assert document["single_run"] == {"epsilon": pytest.approx(2.1419389, rel=1e-7)}
    assert document["composition"] == {"runs": 10, "epsilon": pytest.approx(7.7662, abs=5e-5)}
    assert document["lower_bound"] == {"epsilon": pytest.approx(4.225, abs=1e-3), "mechanism": "three outcomes"}
    rows = {row["method"]: row for row in document["bounds"]}
    assert list(rows["theorem-6"]) == ["method", "epsilon", "order", "conversion"]
    assert rows["theorem-6"]["epsilon"] == pytest.approx(4.6074, abs=5e-5)
    assert rows["theorem-6"]["order"] == pytest.approx(10.84, abs=0.1)
    assert isinstance(document["epsilon"], Upper)
    assert isinstance(document["lower_bound"]["epsilon"], Lower)
    assert rows["refined-region"]["epsilon"] >= document["epsilon"]
    assert all(list(row) == ["order", "epsilon"] for row in document["rdp"])
    assert [row["order"] for row in document["rdp"]][:3] == [1.5, 2.0, 3.0]
    assert document["warnings"] == []
    assert all(isinstance(line, str) and line.endswith(".") for line in document["assumptions"])
    assert answer.exit_code is ExitCode.OK


def test_hardly_any_noise_takes_no_more_memory():
    assert bound(Laplace(1e-300), Poisson(5.0)).epsilon == pytest.approx(1e300)


def test_one_run_has_one_price_whatever_the_search():
    base = RDPCurve({2.0: 1e-6, math.inf: 0.5})
    answers = [bound(base, law, delta=1e-7, lower=False) for law in (Fixed(1), Fixed(2), Poisson(0.01))]
    assert [one.single_run.value for one in answers] == pytest.approx([answers[0].epsilon] * 3, rel=5e-4)


@pytest.mark.slow
def test_every_document_is_plain_and_consistent(guarantee, laws):
    for runs in laws[::3]:
        answer = bound(guarantee, runs, delta=1e-6, max_epsilon=3.0, explain=True)
        document = answer.document()
        assert plain(document)
        keys = list(document)
        given = document.pop("base")  # as typed: an infinite ρ stays one until it is written
        assert given == guarantee.describe()
        assert all(math.isfinite(x) for x in numbers({**document, "explain": None}))
        json.dumps({**document, "explain": None}, allow_nan=False)
        assert answer.exit_code == (ExitCode.OK if document["epsilon"] <= 3.0 else ExitCode.OVER_BUDGET)
        assert [key for key in keys if key in KEYS] == KEYS
        assert document["explain"]["theorem"]
        assert document["within_budget"] == (document["epsilon"] <= 3.0)
        rows = document["bounds"]
        finite = {row["method"]: row["epsilon"] for row in rows if row["epsilon"] is not None}
        assert document["epsilon"] == pytest.approx(min(finite.values()), rel=1e-8)
        assert document["method"] in finite
        assert len(rows) == len({row["method"] for row in rows})
        lower = document["lower_bound"]["epsilon"]
        assert lower is None or 0.0 <= lower <= document["epsilon"]
        curve = [row["epsilon"] for row in document["rdp"] if row["epsilon"] is not None]
        assert all(b >= a for a, b in itertools.pairwise(curve))


@pytest.mark.parametrize("base", [Gaussian(0.0), ZCDP(math.inf)], ids=repr)
def test_no_guarantee_is_told(base, laws):
    for runs in laws[::4]:
        answer = bound(base, runs, max_epsilon=3.0)
        document = answer.document()
        keys = list(document)
        assert (document["epsilon"], document["method"], document["within_budget"]) == (None, None, False)
        assert keys[keys.index("epsilon") + 1] == "reason"
        assert answer.exit_code is ExitCode.NO_FINITE_BOUND


@pytest.mark.slow
def test_method_restricts_what_is_reported():
    everything = bound(ZCDP(0.1), tnb(10.0, eta=0.0))
    names = [item.method for item in everything.bounds]
    assert {"theorem-2", "refined-rdp", "refined-region"} <= set(names)
    for name in names[::2]:
        one = bound(ZCDP(0.1), tnb(10.0, eta=0.0), method=name, max_epsilon=3.2)
        assert [item.method for item in one.bounds] == [name]
        assert one.best.method == name
        assert one.lower.epsilon == pytest.approx(everything.lower.epsilon, rel=0.02)
        assert one.exit_code == (ExitCode.OK if one.epsilon <= 3.2 else ExitCode.OVER_BUDGET)
    for group, chosen in (("paper", False), ("refined", True)):
        some = bound(ZCDP(0.1), tnb(10.0, eta=0.0), method=group)
        assert some.bounds
        assert all(item.method.startswith("refined") is chosen for item in some.bounds)


def test_orders_restrict_renyi_bounds_and_are_listed():
    answer = bound(ZCDP(0.1), Poisson(10.0), orders=[2.0, 4.0])
    for item in answer.bounds:
        assert item.order in (2.0, 4.0, None)
    assert [row["order"] for row in answer.document()["rdp"]] == [2.0, 4.0]
    assert answer.epsilon >= bound(ZCDP(0.1), Poisson(10.0)).epsilon
    one = bound(ZCDP(0.1), Poisson(10.0), orders=[2.0, 4.0], method="refined-rdp", lower=False)
    assert one.rdp_export() == one.rdp_curve()


def test_rules_are_named():
    for rule, name in (("cks", "canonne-kamath-steinke"), ("mironov", "mironov")):
        answer = bound(ZCDP(0.1), tnb(10.0, eta=0.0), conversion=rule)
        renyi = next(item for item in answer.bounds if item.method == "refined-rdp")
        assert renyi.conversion == name
    assert bound(ZCDP(0.1), Poisson(10.0), conversion="mironov", method="refined-rdp").epsilon > 4.226


@pytest.mark.parametrize("limit", [-1.0, math.nan])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(InvalidInput, match="max_epsilon"):
        bound(ZCDP(0.1), Poisson(10.0), max_epsilon=limit)


def test_gate():
    assert bound(ZCDP(0.1), Poisson(10.0), max_epsilon=0.0).exit_code is ExitCode.OVER_BUDGET
    assert bound(ZCDP(0.0), Poisson(10.0), max_epsilon=0.0).exit_code is ExitCode.OK
    answer = bound(ZCDP(0.1), Poisson(10.0))
    assert bound(ZCDP(0.1), Poisson(10.0), max_epsilon=answer.epsilon).exit_code is ExitCode.OK


def test_delta_zero():
    pure = bound(PureDP(1.0), Poisson(10.0), delta=0.0)
    assert pure.epsilon == pytest.approx(1.0 + 10.0 * math.tanh(0.5), rel=1e-9)
    none = bound(ZCDP(0.1), Poisson(10.0), delta=0.0)
    assert none.exit_code is ExitCode.NO_FINITE_BOUND
    assert "delta" in none.document()["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "law", "method"),
    [
        (ZCDP(0.1), Poisson(5.0), "refined-rdp"),
        (ZCDP(0.1), Poisson(5.0), "theorem-6"),
        (Gaussian(2.0), Fixed(3), "best"),
        (PureDP(0.5), Poisson(5.0), "refined-pure"),
        (ApproxDP(0.5, 1e-9), Poisson(5.0), "refined-region"),
        (ProfileCurve({0.5: 1e-3, 2.0: 1e-7}), Poisson(5.0), "best"),
        (RDPCurve({2.0: 0.3, 8.0: 1.0}), Poisson(5.0), "refined-rdp"),
        (Laplace(2.0), Threshold(0.3), "best"),
        (ZCDP(0.1), Threshold(0.3), "paper"),
    ],
    ids=repr,
)
def test_the_exported_profile_falls_and_agrees_with_the_answer(base, law, method):
    answer = bound(base, law, method=method, delta=1e-4, lower=False)
    asked = np.array([0.0, 0.5 * answer.epsilon, answer.epsilon, 2.0 * answer.epsilon + 1.0])
    log_delta = answer.log_profile(asked)
    assert np.all(log_delta[1:] <= log_delta[:-1] + 1e-12)
    assert log_delta[2] <= math.log(1e-4) + 1e-9
    assert np.all(log_delta <= 0.0)
    # every point is an answer of its own: asked for that δ, no larger ε is needed
    if -30.0 < log_delta[1] < -1e-3:
        again = bound(base, law, method=method, delta=math.exp(log_delta[1]), lower=False).epsilon
        assert again <= asked[1] * (1.0 + 1e-4) + 1e-6  # each is certified to 1e-4


# -- known cases


def test_fixed_trials_have_no_small_bound():
    """Randomized response has a log ratio of 200 after 200 runs, so no bound for a random K may be applied."""
    answer = bound(PureDP(1.0), Fixed(200), delta=0.0)
    assert answer.epsilon == pytest.approx(200.0, rel=1e-12)
    assert not any(item.method in ("theorem-2", "theorem-6", "corollary-3") for item in answer.bounds)
    approximate = bound(PureDP(1.0), Fixed(200), delta=1e-6)
    assert approximate.lower is not None
    assert 20.0 < approximate.lower.epsilon <= approximate.epsilon < 100.0


@pytest.mark.parametrize("eta", [-0.9, -0.5, 0.0, 1e-12, 0.5, 1.0, 5.0])
def test_mean_one_is_one_run(eta):
    answer = bound(ZCDP(0.1), tnb(1.0, eta=eta), delta=1e-6)
    assert answer.epsilon == pytest.approx(2.14193892839, rel=1e-9)
    paper = {item.method: item.epsilon for item in answer.bounds}
    assert paper["theorem-2"] == pytest.approx(2.14193892839, rel=1e-9)
    assert answer.lower.epsilon <= answer.epsilon
    assert answer.composition == (1, pytest.approx(2.14193892839, rel=1e-9))


def test_slack_is_counted():
    """Setting δ0 aside costs 1 - f(1-δ0): what is left below it has no finite answer."""
    law = Poisson(10.0)
    added = -math.expm1(-10.0 * 1e-8)
    answer = bound(ApproxDP(1.0, 1e-8), law, delta=2e-7)
    assert math.isfinite(answer.epsilon)
    inner = bound(PureDP(1.0), Poisson(10.0 * (1.0 - 1e-8)), delta=2e-7 - added)
    assert answer.epsilon <= inner.epsilon * (1.0 + 1e-3)
    none = bound(ApproxDP(1.0, 1e-8), law, delta=0.99 * added)
    assert none.exit_code is ExitCode.NO_FINITE_BOUND
    assert none.lower is not None
    assert none.lower.epsilon == math.inf
    assert none.document()["lower_bound"]["epsilon"] is None


@pytest.mark.slow
def test_epsilon_never_rises_with_delta():
    for base in (Gaussian(1.0), ZCDP(0.1), PureDP(1.0), ApproxDP(0.5, 1e-10)):
        for law in (Poisson(10.0), tnb(10.0, eta=0.0)):
            values = [bound(base, law, delta=delta, lower=False).epsilon for delta in (1e-12, 1e-9, 1e-6, 1e-4, 5e-3)]
            assert all(b <= a * (1.0 + 2e-4) for a, b in itertools.pairwise(values)), (base, law)


@pytest.mark.slow
def test_answers_do_not_depend_on_what_was_asked_before():
    first = bound(ZCDP(0.037), tnb(7.0, eta=0.5), delta=1e-7).document()
    for law in (Poisson(3.0), tnb(400.0, eta=0.0), Fixed(9)):
        bound(ZCDP(0.037), law, delta=1e-9)
    assert bound(ZCDP(0.037), tnb(7.0, eta=0.5), delta=1e-7).document() == first


def test_reported_number_is_the_curves_conversion():
    """ε of R1 from its own published curve: the same conversion in 50 digits at the order named."""
    answer = bound(ZCDP(0.1), tnb(10.0, eta=0.0), delta=1e-6, method="refined-rdp")
    (item,) = answer.bounds
    assert item.order is not None
    a = mp.mpf(item.order)
    here = np.array([item.order])
    value = mp.mpf(float(refined_renyi(ZCDP(0.1), tnb(10.0, eta=0.0)).sharpened(here).curve.rdp(here)[0]))
    epsilon = value + mp.log((a - 1) / a) - (mp.log(mp.mpf(1e-6)) + mp.log(a)) / (a - 1)
    assert item.epsilon == pytest.approx(float(epsilon), rel=1e-6)
    assert paper.theorem_2(ZCDP(0.1), tnb(10.0, eta=0.0)).epsilon(math.log(1e-6), "cks").value > item.epsilon


# -- what any analysis could still gain


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-5, 1e-10])
@pytest.mark.parametrize(
    "base", [Gaussian(0.5), Gaussian(1.2), Gaussian(3.0), ZCDP(0.005), ZCDP(0.07), ZCDP(1.0)], ids=repr
)
def test_gap_is_small(base, delta):
    least = 1.2e-2 if isinstance(base, ZCDP) else 5e-3
    for law in (tnb(2.0, eta=-0.5), tnb(50.0, eta=-0.5), tnb(50.0, eta=5.0), tnb(100.0, eta=5.0), Poisson(1.0),
                Poisson(10.0), Binomial(34, 0.3)):  # fmt: skip
        answer = bound(base, law, delta=delta)
        assert answer.lower.epsilon <= answer.epsilon <= answer.lower.epsilon * (1.0 + least), law


@pytest.mark.slow
def test_the_smallest_delta_with_a_finite_answer_is_said():
    """1 - f(1-δ0) for an (ε, δ0) base, rounded up so that it works."""
    for base, law, delta, least in (
        (ApproxDP(2.71, 1e-5), TruncatedNegativeBinomial(0.0, 0.05), 1e-5, "6.35e-05"),
        (ApproxDP(1.0, 1e-6), tnb(1000.0, eta=1.0), 1e-6, "0.001"),
        (ProfileCurve({0.0: 0.3, 0.5: 0.05, 1.5: 1e-3, 3.0: 1e-6}), Poisson(10.0), 1e-6, "1e-05"),
    ):
        document = bound(base, law, delta=delta).document()
        assert document["epsilon"] is None
        assert f"the smallest delta with a finite answer is {least}" in document["reason"]
        assert bound(base, law, delta=float(least), lower=False).epsilon < math.inf


@pytest.mark.slow
@pytest.mark.parametrize("law", [Poisson(10.0), TruncatedNegativeBinomial(0.0, 0.01)], ids=str)
@pytest.mark.parametrize("rho", [1e-9, 1e-7, 1e-5, 1e4, 1e7], ids=str)
def test_the_order_is_found_where_samples_are_far_apart_or_it_is_next_to_1(rho, law):
    """R1 alone stays below the paper's theorem where the best order is in the ten thousands, or 1 + 1e-5."""
    answer = bound(ZCDP(rho), law, delta=1e-6, lower=False)
    paper = min(item.epsilon for item in answer.bounds if not item.method.startswith("refined"))
    (refined,) = (item.epsilon for item in answer.bounds if item.method == "refined-rdp")
    assert refined <= paper * (1.0 + 1e-6)
