"""Solving returns values that pass, near the root, in few evaluations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcalc.errors import InvalidInput, NoFiniteBound, TargetOutOfReach
from hpcalc.solve import passing_integer, passing_value, round_passing


@given(
    st.floats(-280.0, 280.0),
    st.floats(0.05, 20.0),
    st.floats(-300.0, 300.0),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_brackets_from_any_start(log_root, power, log_start, rising):
    # (x/root)^±power = 1 at the root, over 560 orders of magnitude
    root = 10.0**log_root
    calls = 0

    def function(x: float) -> float:
        nonlocal calls
        calls += 1
        exponent = power * (math.log(x) - math.log(root)) * (1.0 if rising else -1.0)
        return math.exp(min(exponent, 700.0))

    x = passing_value(function, 1.0, 10.0**log_start, rising=rising, lower=1e-300, upper=1e300)
    assert function(x) <= 1.0
    assert x == pytest.approx(root, rel=1e-8)
    assert calls < 90


def test_steps_and_cliffs():
    x = passing_value(lambda x: 1.0 if x < 2.0 else 5.0, 3.0, 1e-5, rising=True)
    assert x < 2.0
    assert x == pytest.approx(2.0, rel=1e-9)
    x = passing_value(lambda x: math.nan if x > 7.0 else x / 100.0, 3.0, 1e9, rising=True)
    assert x <= 7.0
    assert x == pytest.approx(7.0, rel=1e-9)

    def refuses(x: float) -> float:
        if x < 0.5:
            raise NoFiniteBound("too little noise")
        return 1.0 / x

    assert passing_value(refuses, 100.0, 3.0, rising=False) == pytest.approx(0.5, rel=1e-9)


def test_ends_of_the_range():
    assert passing_value(lambda x: x, 5.0, 1.0, rising=True, upper=2.0) == 2.0
    assert passing_value(lambda x: -x, 5.0, 1.0, rising=False, lower=0.1) == 0.1
    with pytest.raises(TargetOutOfReach, match=r"no value reaches 0.5: at 1, .* it is still 1"):
        passing_value(lambda x: x, 0.5, 10.0, rising=True, lower=1.0)
    with pytest.raises(TargetOutOfReach):
        passing_value(lambda x: math.inf, 0.5, 10.0, rising=False)
    with pytest.raises(InvalidInput, match="target_epsilon: nan"):
        passing_value(lambda x: x, math.nan, 1.0, rising=True)


def test_other_exceptions_pass_through():
    def broken(x: float) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        passing_value(broken, 1.0, 1.0, rising=True)


def test_integers():
    assert passing_integer(lambda n: n <= 12345, 1, 10**12) == 12345
    assert passing_integer(lambda n: True, 1, 7) == 7
    assert passing_integer(lambda n: n <= 1, 1, 10**9) == 1
    # not monotone: 1-3 pass, 4 fails, 5 passes again
    assert passing_integer(lambda n: n != 4, 1, 100, scan=True) == 3
    with pytest.raises(TargetOutOfReach):
        passing_integer(lambda n: False, 1, 10)


@given(st.floats(1e-12, 1e12), st.booleans(), st.integers(2, 8))
@settings(max_examples=200, deadline=None)
def test_rounding_stays_on_the_safe_side(root, up, digits):
    def meets(x: float) -> bool:
        return x >= root if up else x <= root

    x = round_passing(root, meets, up=up, digits=digits)
    assert meets(x)
    assert float(f"{x:.{digits - 1}e}") == x
    unit = 10.0 ** (math.floor(math.log10(x)) - digits + 1)
    # the next number with as many digits fails (a power of ten has closer neighbours below)
    assert not meets(x - unit if up else x + unit)


def test_rounding_corrects_a_value_that_only_nearly_passed():
    assert round_passing(1.0000004, lambda x: x >= 1.00002, up=True) == 1.00002
    assert round_passing(2.5, lambda x: x <= 2.49998, up=False) == 2.49998
    # and takes what a value too careful left on the table
    assert round_passing(1.00003, lambda x: x >= 1.00001, up=True) == 1.00001
    with pytest.raises(TargetOutOfReach):
        round_passing(1.0, lambda x: False, up=True)
