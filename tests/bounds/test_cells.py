"""What paths through cells may gain, against paths followed in small steps."""

from __future__ import annotations

import numpy as np
import pytest

from hpcalc.bounds.cells import _through

STEPS = 64  # in which a path crosses a piece


def followed(left: np.ndarray, right: np.ndarray) -> float:
    """The most that a nondecreasing path gains, of values linear along each piece, shape (pieces, cells)."""
    total, best = np.zeros(left.shape[1]), 0.0
    middle = (np.arange(STEPS) + 0.5) / STEPS
    for at_left, at_right in zip(left, right, strict=True):
        for share in middle:
            total = np.maximum.accumulate(total) + ((1.0 - share) * at_left + share * at_right) / STEPS
            best = max(best, float(np.max(total)))
    return best


def bounded(left: np.ndarray, right: np.ndarray) -> float:
    pieces, cells = left.shape
    place = np.stack([np.arange(cells), np.arange(1.0, cells + 1.0)], axis=1)
    gain = 0.5 * np.stack([left.ravel(), right.ravel()])
    through = _through(np.repeat(np.arange(pieces), cells), np.tile(place, (pieces, 1)), gain)
    return max(float(np.max(through)), 0.0)  # no event, no gain


@pytest.mark.parametrize("seed", range(40))
def test_no_path_gains_more_than_its_cells_allow(seed):
    rng = np.random.default_rng(seed)
    left, right = rng.normal(0.2, 1.0, (2, int(rng.integers(1, 6)), int(rng.integers(1, 6))))
    assert followed(left, right) <= bounded(left, right) * (1.0 + 1e-12) + 1e-12


def test_a_path_may_change_cells_inside_a_piece():
    left, right = np.array([[10.0, 0.0]]), np.array([[0.0, 10.0]])
    assert followed(left, right) == pytest.approx(7.5)  # either cell alone gives 5
    assert bounded(left, right) == 10.0


def test_values_that_do_not_change_along_pieces_are_exact():
    values = np.array([[3.0, 1.0, 0.5], [0.5, 2.0, -1.0], [-4.0, -2.0, -1.0], [5.0, 1.0, 9.0]])
    assert bounded(values, values) == pytest.approx(3.0 + 2.0 - 1.0 + 9.0)
    assert followed(values, values) == pytest.approx(13.0)
