"""What applies is listed once, and whatever is listed answers every question about itself."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hpcalc import bounds as room
from hpcalc.bounds import Bound, ProfileBound, bounds_for
from hpcalc.catalog import METHODS
from hpcalc.errors import InvalidInput
from hpcalc.guarantees import ZCDP, Gaussian, PureDP
from hpcalc.laws import Poisson, TruncatedNegativeBinomial
from hpcalc.questions.search_cost import bound

tnb = TruncatedNegativeBinomial.with_mean


@pytest.mark.slow
def test_every_bound_answers_for_itself(guarantee, laws):
    epsilons = np.array([0.0, 0.5, 3.0])
    orders = np.array([1.5, 4.0])
    for law in laws:
        found = bounds_for(guarantee, law)
        assert found
        assert len({(item.name, repr(getattr(item, "guarantee", None))) for item in found}) == len(found)
        for item in found:
            assert item.name in METHODS
            assert item.citation
            assert all(isinstance(line, str) for line in item.conditions)
            profile = item.log_profile(epsilons)
            assert profile.shape == epsilons.shape
            assert np.all(profile <= 0.0)
            assert all(b <= a for a, b in itertools.pairwise(profile)), (item.name, law)
            if not isinstance(item, ProfileBound):
                curve = item.rdp(orders)
                assert curve is None or (curve.shape == orders.shape and np.all(curve >= 0.0))
            values = [item.epsilon(math.log(delta)).value for delta in (1e-6, 1e-3)]
            assert 0.0 <= values[1] <= values[0]


@pytest.mark.slow
@pytest.mark.parametrize("base", [PureDP(1.0), ZCDP(0.1), Gaussian(2.0)], ids=repr)
def test_probe_is_close_to_the_answer(base, laws):
    for law in laws:
        found = bounds_for(base, law)
        answer = min(item.epsilon(math.log(1e-6)).value for item in found)
        assert min(item.probe(math.log(1e-6)) for item in found) == pytest.approx(answer, rel=1e-2)


def test_methods_and_groups_select_by_name():
    for method in METHODS:
        assert {item.name for item in bounds_for(ZCDP(0.1), tnb(10.0, eta=0.0), method=method)} <= {method}
    assert [item.name for item in bounds_for(ZCDP(0.1), Poisson(3.0), method="lemma-7")] == ["lemma-7"]
    for group in ("paper", "refined"):
        found = bounds_for(ZCDP(0.1), tnb(10.0, eta=0.0), method=group)
        assert found
        assert all(METHODS[item.name] == group for item in found)
    with pytest.raises(InvalidInput, match="method"):
        bounds_for(ZCDP(0.1), Poisson(3.0), method="theorem-7")
    assert bounds_for(Gaussian(0.0), Poisson(3.0)) == []


class Trivial(ProfileBound):
    """A bound of one's own: a factor of two on one run's epsilon."""

    name, citation = "twice", "a test"

    def __init__(self, base):
        self.base = base

    def log_profile(self, epsilons):
        return self.base.log_profile(np.asarray(epsilons) / 2.0)


def test_a_bound_of_ones_own_works_everywhere(monkeypatch):
    monkeypatch.setattr(room, "SOURCES", [*room.SOURCES, lambda base, law, orders: [Trivial(base)]])
    monkeypatch.setitem(METHODS, "twice", "refined")
    answer = bound(Gaussian(1.0), Poisson(30.0), delta=1e-6)
    assert "twice" in [item.method for item in answer.bounds]
    alone = bound(Gaussian(1.0), Poisson(30.0), delta=1e-6, method="twice", explain=True)
    assert alone.best is not None
    assert alone.best.method == "twice"
    assert alone.single_run is not None
    assert alone.epsilon == pytest.approx(2.0 * alone.single_run.value, rel=1e-9)
    assert alone.document()["explain"]["theorem"] == "a test"
    assert alone.profile()
    assert all(row["epsilon"] is None for row in alone.rdp_curve())
    assert issubclass(Trivial, Bound)
