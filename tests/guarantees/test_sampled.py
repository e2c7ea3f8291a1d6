"""A search on a sample, then a final run on the rest or on all records, against joint output laws written out."""

from __future__ import annotations

import math

import pytest
from enumerated import as_pair, excess, random_two, sampled_then_all, sampled_then_rest, weakened

from hpcalc.conversion import epsilon_from_profile
from hpcalc.guarantees import Gaussian, PureDP, sampled
from hpcalc.guarantees.sampled import on_a_sample, then_on_the_rest
from hpcalc.guarantees.search import composed, pair_of


def check(rng, tight: float | None) -> None:
    two, final, rate = random_two(rng), random_two(rng), float(rng.uniform(0.02, 0.98))
    search, last = as_pair(two), as_pair(final)
    fixed, chosen = [final] * len(two[0]), [weakened(rng, final) for _ in two[0]]
    for pair, joint in (
        (then_on_the_rest(search, last, rate), sampled_then_rest),
        (composed(on_a_sample(search, rate), last), sampled_then_all),
    ):
        found = excess(pair, joint(two, fixed, rate))
        assert (found > -1e-12).all()
        assert tight is None or (found < tight).all()
        # a final run that depends on the search's answer costs no more
        assert (excess(pair, joint(two, chosen, rate)) > -1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize(("few", "times", "tight"), [(sampled.FEW, 150, 1e-4), (0, 15, None)])
def test_both_variants_in_both_directions_by_outcomes_and_by_nodes(rng, monkeypatch, few, times, tight):
    monkeypatch.setattr(sampled, "FEW", few)
    for _ in range(times):
        check(rng, tight)


@pytest.mark.slow
def test_between_a_run_on_the_rest_and_the_composition_of_both():
    search, final = pair_of(Gaussian(1.0)), pair_of(Gaussian(2.0))
    log_delta = math.log(1e-6)
    epsilon = {
        rate: epsilon_from_profile(then_on_the_rest(search, final, rate).log_profile, log_delta)
        for rate in (1e-6, 0.5, 1.0 - 1e-9)
    }
    assert epsilon[1e-6] == pytest.approx(epsilon_from_profile(final.log_profile, log_delta), rel=1e-3)
    assert epsilon[1.0 - 1e-9] == pytest.approx(epsilon_from_profile(search.log_profile, log_delta), rel=1e-3)
    assert epsilon[0.5] < epsilon_from_profile(composed(search, final).log_profile, log_delta)


def test_a_sample_amplifies_pure_privacy_as_is_known():
    pair = on_a_sample(pair_of(PureDP(1.0)), 0.25)
    assert pair.pure_epsilon == pytest.approx(-math.log1p(0.25 * math.expm1(-1.0)), abs=1e-12) or (
        pair.pure_epsilon == pytest.approx(math.log1p(0.25 * math.expm1(1.0)), abs=1e-12)
    )
