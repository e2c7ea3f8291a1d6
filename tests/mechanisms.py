"""Best-of-K on small mechanisms, enumerated exactly: the oracle that no bound may fall below.

A mechanism is a pair of output laws on a handful of outcomes, ranked from worst to best. Everything that comes out of
a search is computed in 50-digit arithmetic from the generating functions of ``tests/exact.py``, so neither rounding nor
a mistake shared with the package can hide or invent a violation.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import mpmath as mp
import numpy as np
from exact import pgf

from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law, Threshold
from hpcalc.logspace import Array
from hpcalc.lower import LowerBound

Probabilities: TypeAlias = Sequence[mp.mpf]


@dataclass(frozen=True)
class Mechanism:
    """Output laws of one run on two neighbouring inputs, outcomes from worst to best."""

    q: tuple[mp.mpf, ...]
    q_prime: tuple[mp.mpf, ...]

    @property
    def sides(self) -> Pairs:
        """The two directions of one run."""
        return Pairs([(self.q, self.q_prime), (self.q_prime, self.q)])

    def rdp(self, orders: Array) -> Array:
        """Rényi divergence, the larger of the two directions, in doubles that err upwards."""
        return np.maximum(self.sides.renyi(orders), 0.0) + 1e-15 / (np.asarray(orders) - 1.0)

    def pure_epsilon(self) -> float:
        return self.sides.largest_loss()

    def profile(self, epsilon: float) -> float:
        return self.sides.hockey_stick(epsilon)

    def zcdp_rho(self) -> float:
        """Upper bound on ``sup rdp(a)/a``: on each cell of a grid the divergence at its right end, over its left."""
        grid = 1.0 + np.geomspace(1e-3, 1e3, 400)
        values = self.rdp(grid)
        return float(max(values[0], np.max(values[1:] / grid[:-1]), self.pure_epsilon() / grid[-1]))


class Pairs:
    """Pairs of output laws; every question is answered for the worst pair.

    The answers are in doubles, from probabilities that are exact to the last digit; ``exact_*`` repeat a question in 50
    digits, which is what an apparent violation must pass.
    """

    def __init__(self, pairs: Iterable[tuple[Probabilities, Probabilities]]) -> None:
        self.pairs = [
            tuple(zip(*((x, y) for x, y in zip(a, b, strict=True) if x > 0 or y > 0), strict=True)) for a, b in pairs
        ]
        with np.errstate(divide="ignore"):
            self.logs = [tuple(np.log(np.array(side, dtype=float)) for side in pair) for pair in self.pairs]

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def renyi(self, orders: Array) -> Array:
        a = np.asarray(orders, dtype=float)[:, None]
        return np.max([np.logaddexp.reduce(a * p - (a - 1.0) * q, axis=1) for p, q in self.logs], axis=0) / (
            np.asarray(orders) - 1.0
        )

    def hockey_stick(self, epsilon: float) -> float:
        return max(float(np.sum(np.maximum(np.exp(p) - np.exp(epsilon + q), 0.0))) for p, q in self.logs)

    def largest_loss(self) -> float:
        return max(float(np.max(np.abs(p - q))) for p, q in self.logs)

    def exact_renyi(self, order: float) -> mp.mpf:
        return max(renyi(a, b, order) for a, b in self.pairs)

    def exact_hockey_stick(self, epsilon: float) -> mp.mpf:
        return max(hockey_stick(a, b, epsilon) for a, b in self.pairs)

    def assert_renyi_at_most(self, orders: Array, claimed: Array, context: object) -> None:
        assert not np.isnan(claimed).any(), context
        suspects = ~(self.renyi(orders) <= claimed * (1.0 + 1e-11))
        for order, value in zip(np.asarray(orders)[suspects], claimed[suspects], strict=True):
            true = self.exact_renyi(float(order))
            assert true <= mp.mpf(float(value)) * (1 + mp.mpf("1e-11")) + mp.mpf("1e-15"), (
                float(order),
                float(true),
                float(value),
                context,
            )

    def assert_delta_at_most(self, epsilon: float, delta: float, context: object) -> None:
        assert not math.isnan(epsilon), context
        assert not math.isnan(delta), context
        if epsilon < math.inf and not self.hockey_stick(epsilon) <= delta:
            true = self.exact_hockey_stick(epsilon)
            assert true <= mp.mpf(delta) * (1 + mp.mpf("1e-10")) + mp.mpf("1e-30"), (
                epsilon,
                float(true),
                delta,
                context,
            )


def renyi(p: Probabilities, q: Probabilities, order: float) -> mp.mpf:
    """D_order(p || q); inf where p is not dominated."""
    a = mp.mpf(order)
    total = mp.mpf(0)
    for x, y in zip(p, q, strict=True):
        if x > 0:
            if y == 0:
                return mp.inf
            total += x**a * y ** (1 - a)
    return mp.log(total) / (a - 1)


def hockey_stick(p: Probabilities, q: Probabilities, epsilon: float) -> mp.mpf:
    factor = mp.exp(mp.mpf(epsilon))
    return mp.fsum(max(x - factor * y, mp.mpf(0)) for x, y in zip(p, q, strict=True))


def best_of_k(law: Law, q: Probabilities) -> tuple[mp.mpf, ...]:
    """Law of the best of K runs; the first entry is "no run at all"."""
    below = [mp.mpf(0), *itertools.accumulate(q[:-1]), mp.mpf(1)]
    reached = [mp.mpf(0), *(pgf(law, 1 - x) for x in below)]
    return tuple(b - a for a, b in itertools.pairwise(reached))


def accepted(q: Probabilities, first: int) -> tuple[mp.mpf, ...]:
    """Law of a run conditioned on one of the outcomes from ``first`` on."""
    mass = mp.fsum(q[first:])
    return tuple(x / mass for x in q[first:])


def random_law_of_outcomes(rng: random.Random, size: int) -> list[mp.mpf]:
    """Probabilities of very different sizes, now and then almost zero."""
    weights = [
        mp.mpf(rng.random() ** rng.choice((1, 1, 3, 8))) + mp.mpf(10) ** -rng.randint(6, 12) for _ in range(size)
    ]
    total = mp.fsum(weights)
    return [w / total for w in weights]


def random_mechanism(rng: random.Random, largest_loss: float = 3.0) -> Mechanism:
    """Two to six outcomes; the second law tilts the first by losses of random size."""
    size = rng.randint(2, 6)
    q = random_law_of_outcomes(rng, size)
    loss = largest_loss * rng.random() ** 2
    tilt = [mp.exp(mp.mpf(rng.choice((-loss, loss, loss * (2 * rng.random() - 1))))) for _ in range(size)]
    weights = [a * b for a, b in zip(q, tilt, strict=True)]
    total = mp.fsum(weights)
    return Mechanism(tuple(q), tuple(w / total for w in weights))


def searches(mechanism: Mechanism, law: Law) -> Pairs:
    """Output laws of best-of-K on the two inputs, in both orders of the inputs and both rankings of the outcomes."""

    def pairs() -> Iterator[tuple[Probabilities, Probabilities]]:
        for turn in (1, -1):
            a, b = best_of_k(law, mechanism.q[::turn]), best_of_k(law, mechanism.q_prime[::turn])
            yield a, b
            yield b, a

    return Pairs(pairs())


def conditional_searches(mechanism: Mechanism, law: Threshold) -> Pairs:
    """The same for "run until accepted", for every set of best outcomes that is likely enough to be accepted."""

    def pairs() -> Iterator[tuple[Probabilities, Probabilities]]:
        for turn in (1, -1):
            q, q_prime = mechanism.q[::turn], mechanism.q_prime[::turn]
            for first in range(len(q)):
                if min(mp.fsum(q[first:]), mp.fsum(q_prime[first:])) >= law.accept:
                    a, b = accepted(q, first), accepted(q_prime, first)
                    yield a, b
                    yield b, a

    return Pairs(pairs())


def outcomes_of(found: LowerBound) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Probabilities under either input, best-ranked first; the last one is what the others leave."""
    assert found.outcomes is not None
    out = []
    for logs in found.outcomes:
        masses = [mp.exp(mp.mpf(x)) for x in logs]
        assert abs(mp.fsum(masses) - 1) < mp.mpf("1e-12")
        out.append([*masses[:-1], 1 - mp.fsum(masses[:-1])])
    return out[0], out[1]


def worst_order(p: list[mp.mpf], q: list[mp.mpf], base: Guarantee) -> float:
    """Largest of ``D_a(p || q) - rdp(a)``, relative to rdp(a), over thousands of orders and around the worst ones."""
    if base.orders is None:
        orders = 1.0 + np.exp(np.linspace(math.log(1e-7), math.log(1e9), 4000))
    else:
        orders = base.orders
    log_p, log_q = (np.array([float(mp.log(x)) for x in side]) for side in (p, q))

    def excess(order: np.ndarray) -> np.ndarray:
        a = order[:, None]
        return (np.logaddexp.reduce(a * log_p - (a - 1.0) * log_q, axis=1) / (order - 1.0)) / base.rdp(order) - 1.0

    value = excess(orders)
    # next to order 1 doubles cancel: those orders are repeated in 50 digits
    worst = -math.inf
    for i in {*np.argsort(value)[-3:].tolist(), *np.flatnonzero(orders < 1.01)[::40].tolist()}:
        near = [orders[i]]
        if base.orders is None and 0 < i < orders.size - 1:
            near = np.linspace(orders[i - 1], orders[i + 1], 41).tolist()
        for order in near:
            # rdp is a closed form in doubles: exact to an ulp
            worst = max(worst, float(renyi(p, q, order) / mp.mpf(float(base.rdp(order))) - 1))
    assert np.max(value[orders > 1.01], initial=-1.0) <= max(worst, 0.0) + 1e-7
    return worst
