"""Small finite mechanisms by brute force: what mixtures, samples and compositions of them cost, outcome by outcome.

A mechanism is the pair of its output laws with and without one record. Nothing here knows of dominating pairs: the
output laws of the whole are written down, joint outcome by joint outcome, and the hockey-stick divergence is a sum.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hpcalc.guarantees import Guarantee
from hpcalc.guarantees.pair import DominatingPair

Law = NDArray[np.float64]
Two = tuple[Law, Law]  # output laws with and without the record


def random_two(rng: Generator, outcomes: int | None = None, zeros: float = 0.15) -> Two:
    """Two random laws on a few outcomes; some outcomes are impossible under one of them."""
    n = int(rng.integers(2, 6)) if outcomes is None else outcomes
    base = rng.dirichlet(np.full(n, 0.7)) + 1e-12
    spread = np.exp(rng.normal(0.0, rng.uniform(0.05, 2.5), n))
    p, q = base / base.sum(), base * spread / np.sum(base * spread)
    for law in (p, q):
        if rng.random() < zeros and n > 2:
            law[int(rng.integers(n))] = 0.0
            law /= law.sum()
    return p, q


def divergence(two: Two, order: float) -> float:
    """Hockey-stick divergence ``sum (p - order q)_+``."""
    return float(np.sum(np.maximum(two[0] - order * two[1], 0.0)))


def exchanged(two: Two) -> Two:
    return two[1], two[0]


def renyi(two: Two, order: float) -> float:
    p, q = two
    if np.any((p > 0.0) & (q == 0.0)):
        return np.inf
    some = p > 0.0
    return float(np.logaddexp.reduce(order * np.log(p[some]) + (1.0 - order) * np.log(q[some])) / (order - 1.0))


def mixed(parts: list[Two], weights: Law) -> Two:
    """Draw a setting, run it, release both."""
    p, q = (np.concatenate([w * part[i] for part, w in zip(parts, weights, strict=True)]) for i in (0, 1))
    return p, q


def followed(first: Two, finals: list[Two]) -> Two:
    """Release an outcome of the first, then one of the mechanism that this outcome chooses."""
    p, q = (np.concatenate([first[i][k] * final[i] for k, final in enumerate(finals)]) for i in (0, 1))
    return p, q


def sampled_then_rest(search: Two, finals: list[Two], rate: float) -> Two:
    """The record is in the sample with probability ``rate``, else among the rest, which the final run sees."""
    outcomes = len(search[0])
    with_record = [
        rate * search[0][k] * finals[k][1] + (1.0 - rate) * search[1][k] * finals[k][0] for k in range(outcomes)
    ]
    return np.concatenate(with_record), np.concatenate([search[1][k] * finals[k][1] for k in range(outcomes)])


def sampled_then_all(search: Two, finals: list[Two], rate: float) -> Two:
    """The record is in the sample with probability ``rate``; the final run sees all records."""
    sample = rate * search[0] + (1.0 - rate) * search[1]
    return followed((sample, search[1]), finals)


def weakened(rng: Generator, two: Two) -> Two:
    """A random post-processing: a mechanism that the given one dominates."""
    kernel = rng.dirichlet(np.full(3, 0.5), len(two[0]))
    return two[0] @ kernel, two[1] @ kernel


ORDERS = np.concatenate([np.exp(np.linspace(-4.0, 4.0, 33)), [1.0]])


def as_pair(two: Two, attained: bool = True) -> DominatingPair:
    with np.errstate(divide="ignore"):
        return DominatingPair.from_masses(np.log(two[0]), np.log(two[1]), attained)


def excess(guarantee: Guarantee, two: Two) -> Law:
    """Reported minus true hockey-stick divergence, relative to the truth, at all orders in both directions."""
    out = []
    for direction, laws in enumerate((two, exchanged(two))):
        reported = np.exp(guarantee.log_profile_of(direction, np.log(ORDERS)))
        true = np.array([divergence(laws, order) for order in ORDERS])
        # sums of doubles that should be 0 or 1 are off by an ulp or two
        out.append((reported - true + 1e-14) / np.maximum(true, 1e-9))
    return np.concatenate(out)
