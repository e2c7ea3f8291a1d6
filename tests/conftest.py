"""A law of K and a guarantee of each kind, for every room: as lists, and one at a time.

``guarantee`` runs a test once for each; ``laws`` and ``guarantees`` are for tests that loop. Of a test with many cases
the quick tests take the first, but for those of ``guarantee``: the others are marked slow.
"""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does: threads of two workers would only wait

import numpy as np

import hpcalc as hp

LAWS: tuple[hp.RunCount, ...] = (
    hp.Poisson(0.5), hp.Poisson(10.0), hp.TruncatedNegativeBinomial.with_mean(10.0, eta=-0.5), hp.Geometric(0.1),
    hp.Logarithmic.with_mean(10.0), hp.Binomial(20, 0.3), hp.Fixed(4), hp.FinitePmf(((0, 0.1), (1, 0.4), (30, 0.5))),
    hp.AtMost(hp.Poisson(5.0), 7), hp.Clamped(hp.Poisson(5.0), 7), hp.AtLeastOne(hp.Poisson(0.5)),
    hp.Adaptive(hp.Poisson(10.0), 0.9, 1.1), hp.Threshold(0.1), hp.AnyRuns(3),
)  # fmt: skip
GUARANTEES: tuple[hp.Guarantee, ...] = (
    hp.PureDP(1.0), hp.ZCDP(0.1), hp.ApproxDP(0.5, 1e-8), hp.Gaussian(2.0), hp.Laplace(2.0),
    hp.RDPCurve({1.5: 0.2, 2.0: 0.3, 8.0: 1.0}), hp.ProfileCurve({0.0: 0.3, 0.5: 0.05, 1.5: 1e-3, 3.0: 1e-8}),
    hp.DPSGD(0.01, 1.0, 100), hp.compose(hp.ZCDP(0.1), hp.ApproxDP(0.1, 1e-9)),
)  # fmt: skip


@pytest.fixture
def laws() -> list[hp.RunCount]:
    return list(LAWS)


@pytest.fixture
def guarantees() -> list[hp.Guarantee]:
    return list(GUARANTEES)


@pytest.fixture(params=GUARANTEES, ids=repr)
def guarantee(request: pytest.FixtureRequest) -> hp.Guarantee:
    given: hp.Guarantee = request.param
    return given


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave one case of each test to the quick tests."""
    seen: set[str] = set()
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in seen and "guarantee" not in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
        elif item.get_closest_marker("slow") is None:
            seen.add(name)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(21)
