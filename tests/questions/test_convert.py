"""``convert``: one thing at a time, at the orders asked for."""

import math

import pytest

from hpcalc import ZCDP, Gaussian, InvalidInput, convert


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"to": "renyi"}, "to: renyi"),
        ({"delta": 0.1, "epsilon": 1.0}, "either delta or epsilon"),
        ({"to": "rdp", "orders": [2.0, 1.0]}, "orders: 1.0"),
    ],
)
def test_a_conversion_asks_for_one_thing(given, told):
    with pytest.raises(InvalidInput, match=told):
        convert(Gaussian(1.0), **given)


@pytest.mark.parametrize("epsilon", [1e50, 1e160])  # where the profile is lost to rounding, and the logarithm overflows
def test_a_delta_too_small_to_show_is_not_0(epsilon):
    told = convert(Gaussian(2.0), epsilon=epsilon).to
    assert (told["delta"], told["log10_delta"] < -1e90) == (None, True)


def test_given_orders_restrict_a_conversion():
    base = ZCDP(0.1)
    free, one = convert(base, delta=1e-6), convert(base, delta=1e-6, orders=[8.0])
    by_hand = 0.8 + math.log(7.0 / 8.0) - (math.log(1e-6) + math.log(8.0)) / 7.0
    cks = convert(base, delta=1e-6, orders=[8.0], conversion="cks")
    assert cks.to["epsilon"] == pytest.approx(by_hand, rel=1e-12)
    assert free.to["epsilon"] * (1.0 - 1e-6) <= one.to["epsilon"] <= cks.to["epsilon"]  # best is exact at given orders
