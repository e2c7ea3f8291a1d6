"""Rarely made calls of the questions: each says what is wrong, or answers what others answer too."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpcalc import InvalidInput
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Laplace, ProfileCurve, PureDP, RDPCurve
from hpcalc.laws import Fixed, Poisson, Threshold
from hpcalc.questions import bound, compare, convert, utility


@pytest.mark.parametrize(
    ("base", "law", "method"),
    [
        (ZCDP(0.1), Poisson(5.0), "refined-rdp"),
        (ZCDP(0.1), Poisson(5.0), "theorem-6"),
        (Gaussian(2.0), Fixed(3), "refined-region"),
        (Gaussian(2.0), Fixed(3), "best"),
        (PureDP(0.5), Poisson(5.0), "refined-pure"),
        (ApproxDP(0.5, 1e-9), Poisson(5.0), "refined-region"),
        (ProfileCurve({0.5: 1e-3, 2.0: 1e-7}), Poisson(5.0), "best"),
        (RDPCurve({2.0: 0.3, 8.0: 1.0}), Poisson(5.0), "refined-rdp"),
        (Laplace(2.0), Threshold(0.3), "refined-conditional"),
        (Laplace(2.0), Threshold(0.3), "best"),
        (ZCDP(0.1), Threshold(0.3), "paper"),
    ],
    ids=repr,
)
def test_the_exported_profile_falls_and_agrees_with_the_answer(base, law, method):
    answer = bound(base, law, method=method, delta=1e-4, lower=False)
    assert math.isfinite(answer.epsilon)
    asked = np.array([0.0, 0.5 * answer.epsilon, answer.epsilon, 2.0 * answer.epsilon + 1.0])
    points = answer.profile(asked)
    assert [point["epsilon"] for point in points] == asked.tolist()
    log_delta = answer.log_profile(asked)
    assert np.all(log_delta[1:] <= log_delta[:-1] + 1e-12)
    assert log_delta[2] <= math.log(1e-4) + 1e-9
    assert np.all(log_delta <= 0.0)
    # every point is an answer of its own: asked for that δ, no larger ε is needed
    if -30.0 < log_delta[1] < -1e-3:
        again = bound(base, law, method=method, delta=math.exp(log_delta[1]), lower=False).epsilon
        assert again <= asked[1] * (1.0 + 1e-4) + 1e-6  # each is certified to 1e-4


def test_orders_asked_for_are_the_orders_exported():
    answer = bound(ZCDP(0.1), Poisson(5.0), orders=[2.0, 4.0], lower=False)
    assert answer.rdp_export() == answer.rdp_curve()
    assert [row["order"] for row in answer.rdp_export()] == [2.0, 4.0]


def test_a_conversion_asks_for_one_thing():
    for given, told in (
        ({"to": "renyi"}, "to: renyi"),
        ({"delta": 0.1, "epsilon": 1.0}, "either delta or epsilon"),
        ({"to": "rdp", "orders": [2.0, 1.0]}, "orders: 1.0"),
    ):
        with pytest.raises(InvalidInput, match=told):
            convert(Gaussian(1.0), **given)


def test_given_orders_restrict_a_conversion():
    base = ZCDP(0.1)
    free, one = convert(base, delta=1e-6), convert(base, delta=1e-6, orders=[8.0])
    log_delta = math.log(1e-6)
    by_hand = 0.8 + math.log(7.0 / 8.0) - (log_delta + math.log(8.0)) / 7.0
    cks = convert(base, delta=1e-6, orders=[8.0], conversion="cks")
    assert cks.to["epsilon"] == pytest.approx(by_hand, rel=1e-12)
    assert free.to["epsilon"] <= one.to["epsilon"] <= cks.to["epsilon"]


def test_scores_are_for_the_best_of_k():
    with pytest.raises(InvalidInput, match="releases the first accepted run"):
        utility(Threshold(0.2), scores=[1.0, 2.0])


def test_a_law_with_a_mean_of_its_own_keeps_it():
    laws = [{"dist": "pmf", "pmf": {1: 0.5, 10: 0.5}}, "poisson"]
    own, poisson = compare(PureDP(1.0), laws, mean=3.0, lower=False).document()["rows"]
    assert own["epsilon"] is None or own["mean_runs"] == 5.5
    assert poisson["mean_runs"] == pytest.approx(3.0)


def test_a_sweep_of_one_mean():
    rows = compare(PureDP(1.0), ["fixed"], sweep="mean=5:5:1", lower=False).document()["rows"]
    assert [row["mean_runs"] for row in rows] == [5.0]
