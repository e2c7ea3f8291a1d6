"""Root finding: what is returned passes, the next one does not, and it takes few evaluations."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from hpcalc.solve import Grid, first_true, last_passing, least_passing, log_minimum


def test_a_grid_counts_printable_numbers_in_order() -> None:
    up, down = Grid(1e-3, 1e3, 3), Grid(1.0, 1e-300, 6)
    assert [up.value(up.index(9.98) + i) for i in range(4)] == [9.98, 9.99, 10.0, 10.1]
    assert [down.value(down.index(0.100001) + i) for i in range(3)] == [0.100001, 0.1, 0.0999999]
    assert (up.value(up.first), up.value(up.last)) == (1e-3, 1e3)
    assert (down.value(down.first), down.value(down.last)) == (1.0, 1e-300)
    whole = Grid(1, 10, 0)
    assert [whole.value(i) for i in range(whole.first, whole.last + 1)] == list(range(1, 11))
    # between two printable numbers the safer one is taken
    assert up.value(up.index(1.2345)) == 1.23
    assert down.value(down.index(0.12345678)) == 0.123457


@pytest.mark.parametrize("seed", range(40))
def test_the_crossing_is_exact_and_cheap(seed: int) -> None:
    draw = random.Random(seed)
    scale, power, noise = math.exp(draw.uniform(-20, 20)), draw.uniform(0.05, 2.0), draw.choice([0.0, 1e-5])
    rising = draw.random() < 0.5
    asked = 0

    def function(x: float) -> tuple[float, None]:
        nonlocal asked
        asked += 1
        wobble = 1.0 + noise * math.sin(7.7 * math.floor(50.0 * math.log(x)))
        return scale * (x**power if rising else x**-power) * wobble, None

    grid = Grid(1e-300, 1e300) if rising else Grid(1e300, 1e-300)
    found = last_passing(function, 3.0, grid, 0.1)
    assert found.value is not None
    assert found.beyond is not None
    count = asked
    assert function(found.value)[0] <= 3.0 < function(found.beyond)[0]
    assert grid.index(found.beyond) == grid.index(found.value) + 1
    assert count <= 25


def test_the_crossing_at_the_ends_of_the_range() -> None:
    grid = Grid(1.0, 100.0)
    assert last_passing(lambda x: (x, None), 1e6, grid, 3.0).beyond is None
    assert last_passing(lambda x: (x, None), 0.5, grid, 3.0).value is None
    assert last_passing(lambda x: (math.nan, None), 0.5, grid, 3.0).value is None
    assert last_passing(lambda x: (math.inf if x > 7.0 else 0.0, None), 1.0, grid, 3.0).value == 7.0


def test_the_least_number_that_passes() -> None:
    for root in (1e-300, 3.7, 1e200):
        found = least_passing(lambda x, root=root: x >= root, 1.0, 1e201)  # type: ignore[misc]
        assert root <= found <= root * (1.0 + 2e-12)
    assert first_true(lambda n: n >= 17, 0, 10**6) == 17
    assert first_true(lambda n: True, 3, 9) == 3


@pytest.mark.parametrize("top", [-25.3, -2.0, 0.37, 17.9])
def test_the_minimum_is_found_inside_the_grid_and_beyond_it(top: float) -> None:
    place, value = log_minimum(lambda x: np.cosh(x - top), np.arange(-3.0, 4.0), accuracy=1e-3, reach=(-40.0, 40.0))
    assert place == pytest.approx(top, abs=1e-3)
    assert value == pytest.approx(1.0, abs=1e-6)
    # without leave to move, the end of the grid is the answer
    if abs(top) > 3.0:
        assert log_minimum(lambda x: np.cosh(x - top), np.arange(-3.0, 4.0), 1e-3)[0] == math.copysign(3.0, top)
    assert log_minimum(lambda x: np.full(x.shape, np.inf), np.arange(3.0), 1e-3)[1] == math.inf
