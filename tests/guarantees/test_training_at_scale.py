"""Training at a small rate, over many steps, to a small delta: the loss distribution answers, not the Rényi curve."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hpcalc.conversion import epsilon_from_profile
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Laplace, PureDP, RDPCurve, compose, repeat
from hpcalc.guarantees.dpsgd import DPSGD, SampledGaussian
from hpcalc.logspace import logsubexp


def epsilon(base, delta):
    return epsilon_from_profile(base.log_profile, math.log(delta))


# dp-accounting 0.6.0, from_gaussian_mechanism(sigma, sampling_prob=rate, value_discretization_interval=h)
# .self_compose(steps): pessimistic (connect the dots) and optimistic epsilons, rounded outwards; h = 1e-6 or 2e-6.
# Its transform is noise at delta = 1e-12 beyond a hundred steps.
ENCLOSED = {
    (2.5e-5, 0.791, 20): [(1e-5, 0.000437, 0.0004471), (1e-8, 0.006388, 0.0063984), (1e-12, 0.063165, 0.063179)],
    (1e-4, 1.0, 1000): [(1e-5, 0.010185, 0.011187), (1e-8, 0.023045, 0.024046), (1e-10, 0.047160, 0.048167)],
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", ENCLOSED)
def test_between_the_two_estimates_of_dp_accounting(setting):
    base = DPSGD(*setting)
    for delta, below, above in ENCLOSED[setting]:
        assert below <= epsilon(base, delta) <= 1.001 * above


@pytest.mark.slow
def test_a_value_that_the_curve_alone_made_many_times_larger():
    # the Rényi curve says 2.2435, dp-accounting on a coarse grid 0.2469
    assert epsilon(DPSGD(1e-4, 1.0, 100_000), 1e-10) == pytest.approx(0.23547, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("setting", [(1.351e-4, 0.6356), (0.01, 1.0), (0.3, 5.0)])
def test_one_step_has_its_closed_form(setting):
    base = DPSGD(*setting, 1)
    t = np.array([1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5])
    for direction in (0, 1):
        tails = base.core.parts[0][0].loss_tails(t if direction == 0 else -t)
        p, q = (tails.p_above, tails.q_above) if direction == 0 else (tails.q_below, tails.p_below)
        exact = logsubexp(p, np.minimum(p, t + q))
        found = base.log_profile_of(direction, t)
        seen = exact > math.log(1e-11)
        assert np.all(found >= exact - 1e-9)
        assert found[seen] == pytest.approx(exact[seen], abs=2e-3)


SETTINGS = [(1e-4, 1.0, 1000), (3.6e-4, 0.38, 165_981), (0.0617, 8.53, 79_181)]


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_real_mechanism_is_just_below(setting):
    base = DPSGD(*setting)
    curve = base.attained_tradeoff(0)
    x, w = np.exp(curve.x.log_u), np.exp(curve.w.log_u)
    for delta, gap in ((1e-3, 0.01), (1e-5, 0.01), (1e-8, 0.02)):
        t = epsilon(base, delta)
        if t > 1e-6:
            assert np.max(x - math.exp(t) * w) <= delta
            assert np.max(x - math.exp(t * (1.0 - gap)) * w) >= delta * (1.0 - 2.0 * gap)


def random_base(rng):
    parts = []
    for _ in range(rng.integers(1, 3)):
        s, steps = 10.0 ** rng.uniform(-1, 1), int(10.0 ** rng.uniform(0, 4))
        kinds = [PureDP(s / 3.0), Gaussian(3.0 * s), Laplace(3.0 * s), ZCDP(s / 10.0), ApproxDP(s / 3.0, 1e-9)]
        kinds.append(RDPCurve({2.0: s / 5.0, 8.0: s, 32.0: 5.0 * s}))
        kinds.append(DPSGD(10.0 ** rng.uniform(-6, 0), max(s, 0.3), steps))
        parts.append(kinds[rng.integers(7)])
    return compose(*parts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_more_runs_never_cost_less(seed):
    base = random_base(np.random.default_rng(seed))
    epsilons = [epsilon(repeat(base, count), 1e-6) for count in (1, 2, 3, 20)]
    for fewer, more in itertools.pairwise(epsilons):
        assert fewer <= more * (1.0 + 1e-4)


def test_mixtures_of_some_noises_dominate_the_steps_of_a_schedule():
    def profile(step):
        tails = step.loss_tails(t)
        return np.exp(tails.p_above) - np.exp(t + tails.q_above)

    t = np.concatenate([np.linspace(-0.0105, 0.02, 200), np.linspace(0.03, 9.0, 100)])
    uses = [(SampledGaussian(0.01, 1.5 * 0.995**i), 1) for i in range(300)]
    nodes, rows = SampledGaussian.thinned(uses, True)
    assert len(nodes) < 150
    curves = np.array([profile(node) for node in nodes])
    for (step, _), (left, share, _) in zip(uses[::7], rows[::7], strict=True):
        mixed = (1.0 - share) * curves[left] + share * curves[left + 1]
        assert np.all(profile(step) <= mixed * (1.0 + 1e-9) + 1e-15)
    nodes, rows = SampledGaussian.thinned(uses, False)
    assert sum(count for _, _, count in rows) == 300
    below = sum(float(nodes[at].rdp(2.0)) * count for at, _, count in rows)
    assert below < float(sum(step.rdp(2.0) for step, _ in uses))


@pytest.mark.slow
def test_a_schedule_of_many_noises():
    base = compose(*(DPSGD(0.01, 1.5 * 0.999**i, 1) for i in range(200)))
    assert epsilon(base, 1e-5) == pytest.approx(0.48574, rel=1e-4)
    pair = base.core.attained_pair
    assert -0.01 < pair.log_profile(np.array([0.48574]))[0] - math.log(1e-5) <= 0.0
    alike = [DPSGD(0.01, noise, 100) for noise in (1.5 * 0.999**199, 1.5)]
    high, low = (epsilon(repeat(part, 2), 1e-5) for part in alike)
    assert low < epsilon(base, 1e-5) < high


def test_no_attribute_convolves(monkeypatch):
    from hpcalc.guarantees import convolved

    monkeypatch.setattr(convolved, "composed_losses", lambda *_, **__: pytest.fail("convolved"))
    base = compose(DPSGD(0.01, 1.0, 200), Laplace(1.0))
    for name in dir(type(base)):
        if isinstance(getattr(type(base), name), property):
            getattr(base, name)
    assert base.exact_profile
    assert base.core.exact_profile
    assert base.core.warnings == ()
