"""Utility of a search: against enumeration over K and over every outcome of the runs."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from hpcalc.errors import InvalidInput
from hpcalc.laws import AtLeastOne, AtMost, Binomial, FinitePmf, Fixed, Poisson, Threshold, TruncatedNegativeBinomial
from hpcalc.questions.measures import Aims, best_score, utility
from hpcalc.questions.rows import quantile_or_none

TNB = TruncatedNegativeBinomial
LAWS = [
    Poisson(0.5), Poisson(10.0), TNB.with_mean(1.5, eta=-0.5), TNB.with_mean(5.0, eta=0.0), TNB.with_mean(5.0, eta=3.0),
    TNB(0.0, 1.0), Binomial(6, 0.4), Fixed(4), FinitePmf((0.25, 0.25, 0.0, 0.5)), AtMost(Poisson(10.0), 12),
    AtLeastOne(Poisson(0.5)),
]  # fmt: skip


def pmf(law, top=600):
    return np.exp(law.log_pmf(np.arange(top + 1.0)))


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_success_and_quantile_by_summing_over_k(law):
    p = pmf(law)
    k = np.arange(p.size)
    for rate in (1e-6, 0.01, 0.3, 0.999, 1.0):
        want = float(np.sum(p * -np.expm1(k * math.log1p(-rate)) if rate < 1 else p * (k > 0)))
        assert Aims(rate).success(law) == pytest.approx(want, rel=1e-9)
    assert law.expected_quantile == pytest.approx(float(np.sum(p * k / (k + 1))), rel=1e-9)


@pytest.mark.parametrize("bad", [0, -0.1, 1.5, math.nan, True, "0.1"])
def test_success_rate_is_checked(bad):
    with pytest.raises(InvalidInput) as caught:
        utility(Poisson(1.0), success_rate=bad)
    assert caught.value.parameter == "success_rate"


def exact_best(weights_of_k, scores, best):
    """Distribution of the best score given K >= 1, over every sequence of runs, in exact arithmetic."""
    out = Counter()
    for k, weight in weights_of_k.items():
        if k:
            for draw in itertools.product(scores, repeat=k):
                out[best(draw)] += Fraction(weight) / len(scores) ** k
    total = sum(out.values())
    return {x: w / total for x, w in out.items()}


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("scores", [[1, 2, 3], [0.5, 0.5, -2.0, 7.0], [4.0], [2, 2, 2]])
@pytest.mark.parametrize("weights", [{1: 1}, {3: 1}, {0: 0.5, 2: 0.25, 4: 0.25}, {1: 0.5, 5: 0.5}])
def test_best_score_over_every_outcome(weights, scores, minimize):
    law = FinitePmf(tuple((k, float(w)) for k, w in weights.items()))
    exact = exact_best(weights, [Fraction(x) for x in scores], min if minimize else max)
    got = best_score(law, scores, minimize=minimize)
    assert got.expected == pytest.approx(float(sum(x * w for x, w in exact.items())), rel=1e-12)
    for p, value in [(0.05, got.p5), (0.5, got.median), (0.95, got.p95)]:
        total = Fraction(0)
        for x in sorted(exact):
            total += exact[x]
            if total >= Fraction(p).limit_denominator(100):
                assert value == float(x)
                break
    top = min(exact) if minimize else max(exact)
    assert got.prob_best_given == pytest.approx(float(exact[top]), rel=1e-12)
    assert got.single_run == pytest.approx(sum(scores) / len(scores))
    assert got.count == len(scores)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_best_score_by_summing_over_k(law):
    rng = np.random.default_rng(5)
    scores = np.round(rng.normal(size=50), 1)
    p = pmf(law)
    k = np.arange(p.size)
    values = np.unique(scores)
    share = np.array([np.mean(scores <= x) for x in values])
    cdf = np.array([np.sum((p * g**k)[1:]) for g in share]) / np.sum(p[1:])
    weights = np.diff(np.concatenate([[0.0], cdf]))
    got = best_score(law, scores)
    assert got.expected == pytest.approx(float(np.sum(weights * values)), rel=1e-8)
    assert got.median == values[np.searchsorted(cdf, 0.5)]
    # losses are scores turned around
    turned = best_score(law, -scores, minimize=True)
    assert turned.expected == pytest.approx(-got.expected, rel=1e-13)
    assert turned.prob_best_given == pytest.approx(got.prob_best_given)
    assert got.p5 <= got.median <= got.p95


def test_one_run_and_a_million():
    scores = list(range(100))
    one = best_score(Fixed(1), scores)
    assert one.expected == pytest.approx(one.single_run) == 49.5
    many = best_score(Fixed(10**6), scores)
    assert (many.expected, many.prob_best_given) == (99.0, 1.0)
    assert best_score(Poisson(1e-9), scores).expected == pytest.approx(49.5)


@pytest.mark.parametrize("bad", [[], [math.nan, 1.0], [math.inf], ["x"], None, [None]])
def test_scores_are_checked(bad):
    with pytest.raises(InvalidInput) as caught:
        best_score(Poisson(1.0), bad if bad is not None else [None])
    assert caught.value.parameter == "scores"


def test_how_long_a_search_takes():
    assert [quantile_or_none(Poisson(1.0), p) for p in (0.5, 0.95, 0.99)] == [1, 3, 4]
    assert quantile_or_none(TNB.from_log_gamma(0.0, -900.0), 0.99) is None


def test_scores_are_for_the_best_of_k():
    with pytest.raises(InvalidInput, match="releases the first accepted run"):
        utility(Threshold(0.2), scores=[1.0, 2.0])
