"""Best-of-K on small mechanisms, enumerated exactly: the oracle that no bound may fall below.

A mechanism is a pair of output laws on a handful of outcomes, ranked from worst to best. Everything that comes out of
a search is computed in 50-digit arithmetic from closed forms of the generating function that are written down here
again, apart from the package, so neither rounding nor a shared mistake can hide or invent a violation.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import mpmath as mp

from hpcalc.runs import (
    AtLeastOne,
    AtMost,
    Binomial,
    FinitePmf,
    Fixed,
    Law,
    Poisson,
    Threshold,
    TruncatedNegativeBinomial,
)

mp.mp.dps = 50

Pgf = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Mechanism:
    """Output laws of one run on two neighbouring inputs, outcomes from worst to best."""

    q: tuple[mp.mpf, ...]
    q_prime: tuple[mp.mpf, ...]

    def swapped(self) -> Mechanism:
        return Mechanism(self.q_prime, self.q)

    def rdp(self, order: float) -> mp.mpf:
        """Rényi divergence, the larger of the two directions."""
        return max(renyi(self.q, self.q_prime, order), renyi(self.q_prime, self.q, order))

    def pure_epsilon(self) -> mp.mpf:
        return max(abs(mp.log(a / b)) for a, b in zip(self.q, self.q_prime, strict=True))

    def profile(self, epsilon: float) -> mp.mpf:
        return max(hockey_stick(self.q, self.q_prime, epsilon), hockey_stick(self.q_prime, self.q, epsilon))

    def zcdp_rho(self) -> mp.mpf:
        """Upper bound on ``sup rdp(a)/a``: on each cell of a grid the divergence at its right end, over its left."""
        epsilon = self.pure_epsilon()
        grid = [mp.mpf(1) + mp.mpf(10) ** (mp.mpf(k) / 12 - 3) for k in range(73)]
        values = [self.rdp(a) for a in grid]
        cells = [values[0], *(value / left for left, value in zip(grid[:-1], values[1:], strict=True))]
        return max(*cells, epsilon / grid[-1])


def renyi(p: Sequence[mp.mpf], q: Sequence[mp.mpf], order: float) -> mp.mpf:
    """D_order(p || q); inf where p is not dominated."""
    a = mp.mpf(order)
    total = mp.mpf(0)
    for x, y in zip(p, q, strict=True):
        if x > 0:
            if y == 0:
                return mp.inf
            total += x**a * y ** (1 - a)
    return mp.log(total) / (a - 1)


def hockey_stick(p: Sequence[mp.mpf], q: Sequence[mp.mpf], epsilon: float) -> mp.mpf:
    factor = mp.exp(mp.mpf(epsilon))
    return mp.fsum(max(x - factor * y, mp.mpf(0)) for x, y in zip(p, q, strict=True))


def best_of_k(pgf: Pgf, q: Sequence[mp.mpf]) -> tuple[mp.mpf, ...]:
    """Law of the best of K runs; the first entry is "no run at all"."""
    out, below, f_below = [pgf(mp.mpf(0))], mp.mpf(0), pgf(mp.mpf(0))
    for i, probability in enumerate(q):
        below = mp.mpf(1) if i == len(q) - 1 else below + probability
        f_here = pgf(below)
        out.append(f_here - f_below)
        f_below = f_here
    return tuple(out)


def accepted(q: Sequence[mp.mpf], first: int) -> tuple[mp.mpf, ...]:
    """Law of a run conditioned on one of the outcomes from ``first`` on."""
    mass = mp.fsum(q[first:])
    return tuple(x / mass for x in q[first:])


def pgf_of(law: Law) -> Pgf:
    """E[x^K] from the textbook form of each law."""
    if isinstance(law, AtMost):
        pmf = pmf_of(law.law, law.m)
        mass = mp.fsum(pmf)
        return lambda x: mp.polyval([p / mass for p in reversed(pmf)], x)
    if isinstance(law, AtLeastOne):
        inner = pgf_of(law.law)
        zero = inner(mp.mpf(0))
        return lambda x: (inner(x) - zero) / (1 - zero)
    if isinstance(law, Poisson):
        mu = mp.mpf(law.mu)
        return lambda x: mp.exp(mu * (x - 1))
    if isinstance(law, TruncatedNegativeBinomial):
        gamma, eta = mp.exp(mp.mpf(law.log_gamma)), mp.mpf(law.eta)
        if eta == 0:
            return lambda x: mp.log(1 - (1 - gamma) * x) / mp.log(gamma)
        return lambda x: ((1 - (1 - gamma) * x) ** (-eta) - 1) / (gamma ** (-eta) - 1)
    if isinstance(law, Binomial):
        n, p = law.n, mp.mpf(law.p)
        return lambda x: (1 - p + p * x) ** n
    if isinstance(law, Fixed):
        return lambda x: x**law.k
    if isinstance(law, FinitePmf):
        pairs = [(k, mp.mpf(p)) for k, p in law.probabilities]
        total = mp.fsum(p for _, p in pairs)
        return lambda x: mp.fsum(p * x**k for k, p in pairs) / total
    raise TypeError(law)


def pmf_of(law: Law, last: int) -> list[mp.mpf]:
    """P[K = 0], ..., P[K = last] (the generating function's Taylor coefficients, by each law's recurrence)."""
    if isinstance(law, Poisson):
        out = [mp.exp(-mp.mpf(law.mu))]
        for k in range(1, last + 1):
            out.append(out[-1] * mp.mpf(law.mu) / k)
        return out
    if isinstance(law, TruncatedNegativeBinomial):
        gamma, eta = mp.exp(mp.mpf(law.log_gamma)), mp.mpf(law.eta)
        first = (1 - gamma) * (-1 / mp.log(gamma) if eta == 0 else eta / (gamma ** (-eta) - 1))
        out = [mp.mpf(0), first]
        for k in range(2, last + 1):
            out.append(out[-1] * (1 - gamma) * (eta + k - 1) / k)
        return out[: last + 1]
    if isinstance(law, Binomial):
        p = mp.mpf(law.p)
        return [mp.binomial(law.n, k) * p**k * (1 - p) ** (law.n - k) for k in range(last + 1)]
    raise TypeError(law)


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


def searches(mechanism: Mechanism, law: Law) -> Iterator[tuple[tuple[mp.mpf, ...], tuple[mp.mpf, ...]]]:
    """Output laws of best-of-K on the two inputs, in both orders of the inputs and both rankings of the outcomes."""
    pgf = pgf_of(law)
    for turn in (1, -1):
        a, b = best_of_k(pgf, mechanism.q[::turn]), best_of_k(pgf, mechanism.q_prime[::turn])
        yield a, b
        yield b, a


def conditional_searches(
    mechanism: Mechanism, law: Threshold
) -> Iterator[tuple[tuple[mp.mpf, ...], tuple[mp.mpf, ...]]]:
    """The same for "run until accepted", for every accepted set of best outcomes that is likely enough."""
    for turn in (1, -1):
        q, q_prime = mechanism.q[::turn], mechanism.q_prime[::turn]
        for first in range(len(q)):
            if min(mp.fsum(q[first:]), mp.fsum(q_prime[first:])) >= law.accept:
                a, b = accepted(q, first), accepted(q_prime, first)
                yield a, b
                yield b, a
