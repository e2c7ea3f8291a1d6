"""A law of K and a guarantee of each kind, for every room: as lists, and one at a time.

``guarantee`` runs a test once for each; ``laws`` and ``guarantees`` are for tests that loop. Of a test with many cases
the quick tests take the first, but for those of ``guarantee``: the others are marked slow.
"""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does: threads of two workers would only wait

from hpcalc import (
    DPSGD,
    ZCDP,
    Adaptive,
    AnyRuns,
    ApproxDP,
    AtLeastOne,
    AtMost,
    Binomial,
    Clamped,
    FinitePmf,
    Fixed,
    Gaussian,
    Geometric,
    Guarantee,
    Laplace,
    Logarithmic,
    Poisson,
    ProfileCurve,
    PureDP,
    RDPCurve,
    RunCount,
    Threshold,
    TruncatedNegativeBinomial,
    compose,
)

LAWS: tuple[RunCount, ...] = (
    Poisson(0.5),
    Poisson(10.0),
    TruncatedNegativeBinomial.with_mean(10.0, eta=-0.5),
    Geometric(0.1),
    Logarithmic.with_mean(10.0),
    Binomial(20, 0.3),
    Fixed(4),
    FinitePmf(((0, 0.1), (1, 0.4), (30, 0.5))),
    AtMost(Poisson(5.0), 7),
    Clamped(Poisson(5.0), 7),
    AtLeastOne(Poisson(0.5)),
    Adaptive(Poisson(10.0), 0.9, 1.1),
    Threshold(0.1),
    AnyRuns(3),
)

GUARANTEES: tuple[Guarantee, ...] = (
    PureDP(1.0),
    ZCDP(0.1),
    ApproxDP(0.5, 1e-8),
    Gaussian(2.0),
    Laplace(2.0),
    RDPCurve({1.5: 0.2, 2.0: 0.3, 8.0: 1.0}),
    ProfileCurve({0.0: 0.3, 0.5: 0.05, 1.5: 1e-3, 3.0: 1e-8}),
    DPSGD(0.01, 1.0, 100),
    compose(ZCDP(0.1), ApproxDP(0.1, 1e-9)),
)


@pytest.fixture
def laws() -> list[RunCount]:
    return list(LAWS)


@pytest.fixture
def guarantees() -> list[Guarantee]:
    return list(GUARANTEES)


@pytest.fixture(params=GUARANTEES, ids=repr)
def guarantee(request: pytest.FixtureRequest) -> Guarantee:
    given: Guarantee = request.param
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
