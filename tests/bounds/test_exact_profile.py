"""Theorem E at many epsilons at once: certified, and close to what one epsilon at a time gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpcalc.bounds.exact import ExactBound
from hpcalc.guarantees import ApproxDP, Gaussian, Laplace, PureDP
from hpcalc.laws import Fixed, Poisson, TruncatedNegativeBinomial


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "law", "epsilons", "excess"),
    [
        (Gaussian(5**0.5), TruncatedNegativeBinomial.with_mean(10.0, eta=0.0), [0.0, 1.0, 2.738, 3.5], 0.012),
        (Gaussian(5**0.5), Poisson(10.0), [0.0, 2.0, 3.65, 4.5], 0.02),
        (Gaussian(10.0), Poisson(1000.0), [1.0, 3.0, 4.0], 0.2),
        (PureDP(1.0), Poisson(10.0), [0.0, 2.0, 5.0, 5.6], 0.05),
        (Laplace(1.0), Poisson(100.0), [0.0, 5.0, 10.0], 0.03),
        (ApproxDP(1.0, 1e-6), TruncatedNegativeBinomial.with_mean(10.0, eta=1.0), [0.5, 1.5, 2.5], 0.01),
        (Gaussian(2.236), Fixed(5), [0.5, 2.0, 4.0], 0.15),
        (PureDP(1.0), Fixed(5), [0.5, 2.0, 4.9], 0.2),
    ],
)
def test_close_to_the_profile_of_one_epsilon_at_a_time(base, law, epsilons, excess):
    bound = ExactBound(base, law)
    found = bound.profile_of(0, -24.0)(np.array(epsilons))
    one = bound.log_profile_of(0, np.array(epsilons))
    assert (found <= one + excess).all()
    # and not below the mechanism that attains it, in either order of asking
    for epsilon, log_delta in zip(epsilons, found, strict=True):
        assert log_delta == -math.inf or bound.mechanism(float(log_delta)) <= epsilon * (1.0 + 1e-9) + 1e-12
    again = bound.profile_of(0, -24.0)(np.array(epsilons[::-1]))[::-1]
    np.testing.assert_array_equal(found, again)
