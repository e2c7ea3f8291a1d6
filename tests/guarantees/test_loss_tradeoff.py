"""Trade-off curves of convolved losses: both directions, the safe side and the attained one, beside dp-accounting."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpcalc.guarantees import ApproxDP, Gaussian, Laplace, PureDP, compose
from hpcalc.guarantees.convolved import Convolution
from hpcalc.guarantees.dpsgd import DPSGD

DELTAS = (1e-2, 1e-5, 1e-8, 1e-12)
BASES = {
    "paper": DPSGD(256 / 60000, 1.1, 14062),
    "few": DPSGD(0.01, 0.8, 100),
    "with-laplace": compose(DPSGD(0.01, 1.0, 200), Laplace(1.0)),
    "with-failure": compose(DPSGD(0.01, 1.0, 200), ApproxDP(0.5, 1e-13)),
    "symmetric": compose(Gaussian(2.0), Laplace(1.234567)),
    "responses": Convolution(((PureDP(0.1), 50),)),
}


def epsilon(log_delta_of, log_delta):
    low, high = 0.0, 1000.0
    for _ in range(60):
        mid = 0.5 * (low + high)
        low, high = (low, mid) if log_delta_of(mid) <= log_delta else (mid, high)
    return high


def of_corners(curve):
    """Log profile of the polygon through the points: ``sup x - e^t w`` is taken at one of them."""

    def log_delta(t):
        with np.errstate(divide="ignore", over="ignore"):
            return np.log(max(np.max(np.exp(curve.x.log_u) - np.exp(t + curve.w.log_u)), 0.0))

    return log_delta


@pytest.mark.slow
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("direction", [0, 1])
def test_safe_and_attained_curves_enclose_the_profile_of_their_direction(name, direction):
    base = BASES[name]
    safe, attained = base.tradeoff(direction), base.attained_tradeoff(direction)
    assert attained.attained
    assert safe.x.log_u.size < 12_000
    for delta in DELTAS:
        own = epsilon(lambda t: base.log_profile_of(direction, np.array([t]))[0], math.log(delta))
        above, below = (epsilon(of_corners(curve), math.log(delta)) for curve in (safe, attained))
        assert own * (1.0 - 1e-9) <= above <= own * (1.0 + 5e-5)
        assert own * (1.0 - 2e-4) <= below <= own * (1.0 + 1e-9)
    if not base.symmetric:
        larger = np.maximum(*(base.log_profile_of(way, np.array([0.3, 1.0])) for way in (0, 1)))
        assert larger == pytest.approx(base.log_profile(np.array([0.3, 1.0])), abs=1e-12)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("kind", ["tradeoff", "attained_tradeoff"])
def test_points_are_convex_and_their_lines_support_them(name, kind):
    for direction in (0, 1):
        curve = getattr(BASES[name], kind)(direction)
        for rising in (curve.log_slope, curve.x.log_u, -curve.x.log_q, curve.w.log_u, -curve.w.log_q):
            assert np.all(rising[1:] >= rising[:-1] - 1e-9)
        assert curve.x.log_u[0] == -math.inf
        assert curve.x.log_q[-1] == -math.inf
        x, rest_x, w, rest_w = (np.exp(v) for v in (*curve.x, *curve.w))
        for i in range(1, x.size - 1, 41):  # w >= w_i + s (x - x_i), each side in the digits it has
            s = math.exp(curve.log_slope[i])
            if s < 1.0:
                assert np.all(w - w[i] - s * (x - x[i]) >= -1e-9 * w[i] - 1e-14)
            else:
                assert np.all((rest_w[i] - rest_w) / s - (rest_x[i] - rest_x) >= -1e-9 * rest_x[i] - 1e-14)


@pytest.mark.slow
def test_both_directions_agree_with_dp_accounting():
    accounting = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    base = DPSGD(0.01, 0.8, 100)
    reference = accounting.from_gaussian_mechanism(0.8, sampling_prob=0.01, value_discretization_interval=1e-4)
    reference = reference.self_compose(100)
    for direction, pmf in enumerate((reference._pmf_remove, reference._pmf_add)):
        for t in (0.0, 0.1, 0.3, 0.5):
            expected = math.log(pmf.get_delta_for_epsilon(t))
            assert base.log_profile_of(direction, np.array([t]))[0] == pytest.approx(expected, abs=2e-3)


@pytest.mark.slow
def test_negative_epsilons_follow_from_the_other_direction():
    base = BASES["few"]
    t = np.array([0.1, 0.3])
    for direction in (0, 1):
        other = np.exp(base.log_profile_of(1 - direction, t))
        assert np.exp(base.log_profile_of(direction, -t)) == pytest.approx(1.0 - np.exp(-t) * (1.0 - other))


@pytest.mark.slow
def test_a_curve_and_its_reverse_are_the_two_directions():
    base = BASES["few"]
    one, other = base.attained_tradeoff(0), base.attained_tradeoff(1)  # an event becomes its complement
    assert one.w.log_q[::-1] == pytest.approx(other.x.log_u, abs=1e-9)
    assert one.x.log_u[::-1] == pytest.approx(other.w.log_q, abs=1e-9)
