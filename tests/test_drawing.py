"""The search as it should be run: K from the law, the best run by a fixed order, nothing else."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from unittest import mock

import pytest

import hpcalc

Run = Callable[[], object]


def _runs(*results: object) -> Run:
    """Runs that return these one after the other; an exception among them is raised."""
    left = iter(results)

    def run() -> object:
        result = next(left)
        if isinstance(result, BaseException):
            raise result
        return result

    return run


@pytest.mark.parametrize(("results", "best"), [
    ([1, 3, 2], 3), ([ValueError(), 1, 2], 2), ([-1.0, ValueError()], -1.0), ([math.nan, 0.25, math.nan], 0.25),
    ([ValueError(), math.nan], None)])  # fmt: skip
def test_the_best_run_is_returned_and_a_crash_ranks_last(results: list[object], best: object) -> None:
    assert hpcalc.best_of_k(_runs(*results), hpcalc.Fixed(len(results))) == best


def test_no_run_gives_nothing() -> None:
    assert hpcalc.best_of_k(_runs(), hpcalc.Poisson(1e-300)) is None


def test_the_key_decides_and_of_equals_the_earlier_run() -> None:
    results = [("a", 1), ("b", 2), ("c", 2), ("d",)]  # a score that raises ranks last
    assert hpcalc.best_of_k(_runs(*results), hpcalc.Fixed(4), key=lambda result: result[1]) == ("b", 2)


def test_scores_that_cannot_be_compared_are_a_mistake_not_a_crash() -> None:
    with pytest.raises(TypeError):
        hpcalc.best_of_k(_runs("a", 1), hpcalc.Fixed(2))


def test_an_interrupt_is_not_a_run() -> None:
    with pytest.raises(KeyboardInterrupt):
        hpcalc.best_of_k(_runs(1, KeyboardInterrupt()), hpcalc.Fixed(2))


def test_exactly_k_runs_are_made() -> None:
    calls = Counter[str]()
    law = hpcalc.Geometric(0.2)
    with mock.patch("random.SystemRandom", return_value=random.Random(5)):
        hpcalc.best_of_k(lambda: calls.update(["run"]) or 0, law)
    assert calls["run"] == law.sample(random.Random(5))


def test_draws_follow_the_law() -> None:
    law = hpcalc.TruncatedNegativeBinomial(eta=0.5, gamma=0.1)
    draws = [hpcalc.draw(law) for _ in range(2000)]
    assert all(type(k) is int and k >= 1 for k in draws)
    assert abs(sum(draws) / len(draws) - law.mean) < 6.0 * law.sd / len(draws) ** 0.5


@pytest.mark.parametrize("call", [hpcalc.draw, lambda law: hpcalc.best_of_k(_runs(1), law)])
def test_what_is_no_law_is_refused(call: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="law"):
        call(10)
    for law, why in ((hpcalc.Threshold(0.1), "until a run is accepted"), (hpcalc.AnyRuns(10), "every one is paid for")):
        with pytest.raises(hpcalc.InvalidInput, match=why):
            call(law)
