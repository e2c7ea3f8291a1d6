"""A bounded run of the long-running checker (``tests/certify.py``), and that the checker can fail."""

from __future__ import annotations

import math

import certify
import pytest


@pytest.mark.parametrize("room", sorted(set(certify.ROOMS) - {"questions"}))
def test_no_answer_below_the_truth(room):
    tally = certify.certify([room], inputs=20, seconds=0.3, seed=10**6)[room]
    assert tally.failures == []
    assert tally.inputs > 0


@pytest.mark.fuzz
@pytest.mark.parametrize("room", sorted(certify.ROOMS))
def test_no_answer_below_the_truth_at_length(room):
    tally = certify.certify([room], seconds=6.0, seed=2 * 10**6)[room]
    assert tally.failures == []


@pytest.mark.parametrize(
    ("answer", "fails"),
    [
        (lambda: 1.0, False),
        (lambda: 1.0 + 1e-10, False),
        (lambda: 1.0 - 1e-12, True),
        (lambda: 1.0 + 1e-8, True),
        (lambda: math.nan, True),
        (lambda: -math.inf, True),
        (lambda: 1.0 / 0.0, True),
    ],
)
def test_the_checker_sees_what_is_wrong(monkeypatch, answer, fails):
    def room(rng):
        yield certify.Check("made up", answer(), certify.mpf(1), 1e-9)

    monkeypatch.setitem(certify.ROOMS, "made-up", room)
    tally = certify.Tally()
    certify.one_input("made-up", 1, tally)
    assert bool(tally.failures) == fails
