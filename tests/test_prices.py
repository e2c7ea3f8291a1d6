"""Prices of ranks: where there are none, and what those found are worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from hpcalc import Gaussian, Poisson, PureDP, TruncatedNegativeBinomial, bound
from hpcalc.bounds.prices import _best_price, _losses, priced_bound
from hpcalc.bounds.ranks import rank_curve
from hpcalc.bounds.refined import ProfileBound
from hpcalc.laws import Fixed

DELTA = math.log(1e-6)


@dataclass(frozen=True)
class TooLarge(Gaussian):
    """A mechanism whose loss distribution does not fit into memory."""

    has_own_pair = True

    def discretised_pair(self) -> None:
        return None


def test_without_a_loss_distribution_there_is_no_price() -> None:
    unpriced = ProfileBound(TooLarge(2.0), Fixed(5))
    assert priced_bound(unpriced, 3.0, DELTA) == (3.0, unpriced)


def test_a_curve_of_few_nodes_is_given_no_price() -> None:
    base, law = Gaussian(2.0), Fixed(5)
    losses = _losses(base)
    assert losses is not None
    curve = rank_curve(base, law)
    every = np.linspace(0, curve.x.size - 1, 9).astype(int)
    few = replace(
        curve,
        x=curve.x[every],
        rank=curve.rank.take(every),
        image=curve.image.take(every),
        log_f=curve.log_f[every],
        log_g=curve.log_g[every],
        slack_g=curve.slack_g[every],
    )
    assert _best_price(base, law, few, losses, 3.0, (0.5, 0.1)) == (None, (0.5, 0.1))


def test_prices_help_a_fixed_number_of_runs_and_not_a_single_one() -> None:
    unpriced = ProfileBound(Gaussian(2.0), Fixed(5))
    plain, fine = unpriced.solve(DELTA)
    value, priced = priced_bound(fine, plain, DELTA)
    assert value < 0.99 * plain
    assert priced.price is not None
    assert float(priced.log_delta(value)) <= DELTA
    # the samples alone are no bound, and never above it
    assert float(priced.nodes.log_delta(priced.base, value)) <= float(priced.log_delta(value))
    one = ProfileBound(Gaussian(2.0), Fixed(1))
    plain, fine = one.solve(DELTA)
    assert priced_bound(fine, plain, DELTA)[0] == pytest.approx(plain, rel=1e-4)


def test_the_losses_are_the_gaussians() -> None:
    # log(dQ'/dQ) of N(0, 1) against N(1/2, 1) at x is x/2 - 1/8
    losses = _losses(Gaussian(2.0))
    assert losses is not None
    log_s, mass = losses
    for x in (-2.0, 0.0, 1.0):
        want = 0.5 * math.erfc(-x / math.sqrt(2.0))
        got = np.interp(0.5 * x - 0.125, log_s, mass)
        assert min(abs(got - want), abs(1.0 - got - want)) < 0.02


def test_poisson_runs_need_no_price() -> None:
    unpriced = ProfileBound(Gaussian(2.0), Poisson(10.0))
    plain, fine = unpriced.solve(DELTA)
    assert priced_bound(fine, plain, DELTA)[0] == pytest.approx(plain, rel=2e-3)


def test_the_steepest_laws_go_without_a_price() -> None:
    # F falls from 5e149 within a rank of 1e-300: a price that fast is no number
    answer = bound(Gaussian(10.0), TruncatedNegativeBinomial(-0.5, 1e-300))
    assert answer.lower is not None
    assert answer.lower.epsilon < answer.epsilon < 5.0


def test_a_price_moves_to_a_neighbouring_law() -> None:
    # F falls by more within a cell than the line between two knots of the price: moved as it is, it would cost all
    answer = bound(PureDP(0.3), Poisson(105_000.0))
    assert answer.best is not None
    assert answer.best.method == "refined-profile"
    assert answer.epsilon < 8.01
    assert bound(PureDP(0.3), Poisson(110_000.0)).epsilon < 8.04
