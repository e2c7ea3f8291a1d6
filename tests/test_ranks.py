"""The curve of ranks: its polygon must dominate the true curve on every cell, whatever the base and the law of K."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from hpcalc.bounds import ranks
from hpcalc.bounds.ranks import RankCurve, rank_curve
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, ProfileCurve, PureDP, RDPCurve, compose
from hpcalc.laws import AtLeastOne, AtMost, Binomial, FinitePmf, Fixed, Law, Poisson, TruncatedNegativeBinomial
from hpcalc.logspace import Prob

tnb = TruncatedNegativeBinomial.with_mean

BASES: list[Guarantee] = [
    Gaussian(1.0),
    Gaussian(0.1),
    Gaussian(40.0),
    PureDP(1.0),
    PureDP(0.01),
    PureDP(60.0),
    Laplace(0.5),
    Laplace(30.0),
    ApproxDP(0.5, 1e-6),
    ApproxDP(2.0, 0.1),
    ZCDP(0.1),
    ZCDP(1e-4),
    RDPCurve({1.5: 0.2, 2.0: 0.3, 8.0: 1.0}),
    ProfileCurve({0.0: 0.3, 0.5: 0.1, 1.0: 1e-3}),
    compose(Gaussian(1.0), ApproxDP(0.0, 1e-3)),
]
LAWS: list[Law] = [
    Poisson(0.01),
    Poisson(10.0),
    Poisson(1e4),
    tnb(10.0, eta=-0.5),
    tnb(1.0 + 1e-9, eta=0.0),
    tnb(100.0, eta=0.0),
    tnb(1e4, eta=-0.99),
    tnb(1e6, eta=5.0),
    Binomial(20, 0.3),
    Binomial(3, 1.0),
    Fixed(1),
    Fixed(50),
    FinitePmf(((1, 0.5), (1000, 0.5))),
    AtMost(Poisson(5.0), 7),
    AtLeastOne(Poisson(0.5)),
]


def between(curve: RankCurve, cell: int, count: int = 7) -> Prob:
    """Ranks inside one cell."""
    left, right = curve.x[cell], curve.x[cell + 1]
    left = right - 6.0 if np.isneginf(left) else left
    right = left + 6.0 if np.isposinf(right) else right
    return Prob.from_normal(left + (right - left) * np.linspace(0.02, 0.98, count))


def assert_dominated(curve: RankCurve, cells: np.ndarray) -> None:
    """On a cell no line ``A - s B`` is higher on the curve than at the polygon's three vertices there."""
    log_b, log_a = curve.vertices
    for cell in cells:
        corner = slice(2 * cell, 2 * cell + 3)
        rank = between(curve, cell)
        log_f, log_g = curve.law.log_density(rank), curve.law.log_density(curve.base.region(rank))
        scale = max(float(log_a[corner].max()), -1e4)
        if not math.isfinite(scale):
            continue
        # lines from flat to steep, as the ratio of what the two functions change by
        ratio = scale - float(np.max(np.where(np.isfinite(log_b[corner]), log_b[corner], -1e5)))
        slopes = np.exp(np.clip(ratio + np.linspace(-12.0, 12.0, 49), -600.0, 600.0))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            a, b = np.exp(log_a[corner] - scale), np.exp(log_b[corner] - scale)
            f, g = np.exp(log_f - scale), np.exp(log_g - scale)
            top = np.max(a - np.outer(slopes, b), axis=1)
            inside = np.max(f - np.outer(slopes, g), axis=1)
            size = np.max(a + np.outer(slopes, b), axis=1)
        tolerance = 1e-11 if curve.base.region_tolerance < 1e-12 else 4e-7
        fine = np.isfinite(size) & np.isfinite(inside)
        assert np.all(inside[fine] <= top[fine] + tolerance * size[fine]), (curve.base, curve.law, curve.x[cell])


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_polygon_dominates_the_curve(base):
    rng = random.Random(repr(base))
    for law in LAWS:
        curve = rank_curve(base, law, 64)
        cells = np.array(rng.sample(range(curve.x.size - 1), 12))
        assert_dominated(curve, cells)


def test_polygon_dominates_after_refinement():
    rng = random.Random(5)
    for base, law in ((Gaussian(1.0), Poisson(10.0)), (ApproxDP(1.0, 1e-3), Fixed(7)), (ZCDP(0.1), tnb(10.0, eta=0.0))):
        curve = rank_curve(base, law, 32)
        for _ in range(4):
            curve = curve.refine(np.array([rng.random() < 0.3 for _ in range(curve.x.size - 1)]))
        assert_dominated(curve, np.arange(curve.x.size - 1))


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_nodes(law):
    for base in BASES:
        curve = rank_curve(base, law, 64)
        assert np.all(np.diff(curve.x[1:-1]) > 0.0)
        assert curve.x[0] == -math.inf
        assert curve.x[-1] == math.inf
        assert np.isin(base.kinks, curve.x).all()
        assert curve.log_f[0] == pytest.approx(law.log_mean, rel=1e-13, abs=1e-13)
        for values in (curve.log_f, curve.log_g):
            assert not np.isnan(values).any()
            assert np.all(values[1:] <= values[:-1] + 1e-9)
        assert np.all(curve.log_g <= curve.log_f + 1e-9)
        for part in curve.cells:
            assert not np.isnan(part).any()
            assert np.all(part <= 1.0)


def test_nodes_reach_every_rank_that_matters():
    """Below the first node neither F nor F(V) has moved; between nodes both move little."""
    for law in (tnb(1e4, eta=-0.99), tnb(1e15, eta=0.0), Poisson(1e12), Fixed(10**6), Poisson(1e-6)):
        for base in (Gaussian(1.0), PureDP(1.0), ZCDP(0.1)):
            curve = rank_curve(base, law)
            # below exp(-800) no node is set: there gamma is out of a normal score's reach
            if law.log_mean < 600.0 and float(curve.rank.log_u[1]) > -800.0:
                assert curve.log_g[0] - curve.log_g[1] < 0.2
            moving = (curve.log_f[:-1] > law.log_mean - 1.0) & (np.arange(curve.x.size - 1) > 0)
            assert np.max((curve.log_f[:-1] - curve.log_f[1:])[moving], initial=0.0) < 3.0


def test_refinement_splits_what_is_marked():
    curve = rank_curve(Gaussian(1.0), Poisson(10.0), 32)
    split = np.zeros(curve.x.size - 1, dtype=bool)
    assert curve.refine(split) is curve
    split[5] = split[8] = True
    finer = curve.refine(split)
    assert finer.x.size == curve.x.size + 2
    assert set(curve.x.tolist()) < set(finer.x.tolist())
    assert curve.x[5] < finer.x[6] < curve.x[6]
    ends = np.zeros(curve.x.size - 1, dtype=bool)
    ends[0] = ends[-1] = True
    wider = curve.refine(ends)
    assert wider.x[1] < curve.x[1]
    assert wider.x[-2] > curve.x[-2]


def test_refining_lowers_the_polygon():
    """A finer grid's polygon lies below the coarse one: bounds only get better."""
    base, law = Gaussian(1.0), tnb(10.0, eta=0.5)
    slopes = np.exp(np.linspace(-3.0, 12.0, 30))

    def heights(size: int) -> np.ndarray:
        log_b, log_a = rank_curve(base, law, size).vertices
        return np.max(np.exp(log_a) - np.outer(slopes, np.exp(log_b)), axis=1) / np.maximum(slopes, 10.0)

    coarse, fine, finest = heights(40), heights(320), heights(5000)
    assert np.all(fine <= coarse + 1e-12)
    assert np.all(finest <= fine + 1e-12)
    assert np.all(fine - finest <= 2e-3)


def test_a_full_memory_of_regions_is_cleared_and_changes_nothing(monkeypatch):
    base = ZCDP(0.1234)
    before = rank_curve(base, Poisson(3.0))
    monkeypatch.setattr(ranks, "_CACHE_LIMIT", 100)
    rank_curve(base, Poisson(30.0))
    after = rank_curve(base, Poisson(3.0))
    assert len(ranks._known_regions(base)) <= 100 + after.x.size
    np.testing.assert_array_equal(before.x, after.x)
    np.testing.assert_array_equal(before.log_g, after.log_g)


def test_grids_reach_as_far_as_the_density_falls():
    # F(u) = P[K=1] + 2 P[K=2] (1-u): still falling at Phi(20), where 1-u is 1e-89
    law = FinitePmf(((1, 1e-100), (2, 1.0 - 1e-100)))
    curve = rank_curve(Gaussian(1.0), law)
    assert curve.x[-2] >= 30.0
    assert rank_curve(Gaussian(1.0), Poisson(10.0)).x[-2] < 30.0
