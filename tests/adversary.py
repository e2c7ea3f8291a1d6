"""A search for mechanisms that break a bound from a Rényi curve, or beat its lower bound.

Where only a curve is known no one pair attains the region, and the package's lower bounds come from mechanisms of two
or three outcomes. This is coordinate ascent over mechanisms of a few outcomes, their order included, that meet every
constraint of the curve. Run by hand it prints its best attack beside the lower bound and ε::

    python tests/adversary.py --rounds 1000 zcdp

The best-of-K laws come from differences of the generating function. An apparent violation is computed again in 50
digits before it is believed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np
from exact import mpf
from mechanisms import best_of_k as best_of_k_exactly

from hpcalc.guarantees import ZCDP, Guarantee, RDPCurve
from hpcalc.laws import AtMost, Binomial, FinitePmf, Fixed, Law, Poisson, Threshold, TruncatedNegativeBinomial
from hpcalc.logspace import Array, Prob, logsubexp, logsumexp
from hpcalc.questions.search_cost import bound

#: Log-probabilities ``(log q, log q')`` of many mechanisms, shape (m, outcomes), outcomes unordered.
Pair = tuple[Array, Array]


@dataclass
class Family:
    """Mechanisms that meet a curve: points of a box (masses, then tilts), and what is built from them."""

    base: Guarantee
    small: float  # logarithm of the smallest masses to start from
    log_mean: float  # of the number of runs
    outcomes: int = 5

    def start(self, rng: np.random.Generator) -> Array:
        logits = rng.normal(0.0, 2.0, self.outcomes)
        logits[rng.integers(self.outcomes)] = self.small + rng.uniform(-1.0, 10.0)
        logits[rng.integers(self.outcomes)] = -max(self.log_mean, 0.0) + rng.normal(0.0, 2.0)
        return np.concatenate([logits, rng.uniform(-1.5, 1.5, self.outcomes)])

    def build(self, x: Array, count: int = 60) -> Pair:
        """The second law is the first one tilted as far as every order allows; few orders will do on the way."""
        orders, budget = check_orders(self.base, count)
        half = self.outcomes
        logits, tilt = np.clip(x[:, :half], -700.0, 50.0), np.clip(x[:, half:], -4.0, 4.0)
        log_q = logits - logsumexp(logits, axis=1)[:, None]

        def tilted(scale: Array) -> Array:
            log_p = log_q - scale * tilt
            return log_p - logsumexp(log_p, axis=1)[:, None]

        lo, hi = np.full((x.shape[0], 1), -30.0), np.full((x.shape[0], 1), 7.0)
        for _ in range(36):
            mid = 0.5 * (lo + hi)
            over = excess(log_q, tilted(np.exp(mid)), orders, budget * (1.0 - 3e-6))[:, None] > 0.0
            lo, hi = np.where(over, lo, mid), np.where(over, mid, hi)
        return log_q, tilted(np.exp(lo))

    def final(self, x: Array) -> Pair:
        """The same, meeting the curve at thousands of orders."""
        return self.build(x, 4000)


def check_orders(base: Guarantee, count: int) -> tuple[Array, Array]:
    """Orders and what the guarantee allows there, ``(a-1) rdp(a)``."""
    if base.orders is not None:
        orders = base.orders[np.isfinite(base.orders)]
    else:
        orders = 1.0 + np.exp(np.linspace(-9.0, 12.0, count))
    budget = (orders - 1.0) * base.rdp(orders)
    return orders[np.isfinite(budget)], budget[np.isfinite(budget)]


def excess(log_q: Array, log_p: Array, orders: Array, budget: Array) -> Array:
    """Largest relative excess of a pair's divergences over the budget, over orders and directions."""
    h = (orders - 1.0)[:, None]
    loss = (log_q - log_p)[:, None, :]
    with np.errstate(over="ignore", invalid="ignore"):
        ways = [(log_q[:, None, :], h * loss), (log_p[:, None, :], -h * loss)]
        # sum p (e^x - 1) keeps its digits where the moment is close to one
        near = [np.log1p(np.sum(np.exp(log) * np.expm1(np.minimum(x, 30.0)), axis=2)) for log, x in ways]
        far = [logsumexp(log + x, axis=2) for log, x in ways]
    found = [np.where(np.abs(b) < 0.1, a, b) / budget for a, b in zip(near, far, strict=True)]
    return np.max(np.where(np.isnan(found), np.inf, found), axis=(0, 2)) - 1.0


# What a mechanism proves


def best_of_k(law: Law, log_mass: Array) -> Array:
    """Logs of the probabilities that each outcome is the best, outcomes from best to worst (last axis)."""
    zero = np.full((*log_mass.shape[:-1], 1), -np.inf)
    below = np.concatenate([zero, np.logaddexp.accumulate(log_mass, axis=-1)], axis=-1)
    above = np.concatenate([zero, np.logaddexp.accumulate(log_mass[..., ::-1], axis=-1)], axis=-1)[..., ::-1]
    rank = Prob(np.minimum(below, 0.0), np.minimum(above, 0.0))
    lo, hi = Prob(rank.log_u[..., :-1], rank.log_q[..., :-1]), Prob(rank.log_u[..., 1:], rank.log_q[..., 1:])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isneginf(log_mass), -np.inf, law.log_block(lo, hi, log_mass))


def accepted(log_mass: Array, first: Array) -> tuple[Array, Array]:
    """Conditional law on the outcomes before ``first`` (others get nothing), and log of their mass."""
    keep = np.arange(log_mass.shape[-1]) < first[..., None]
    kept = np.where(keep, log_mass, -np.inf)
    total = logsumexp(kept)
    anchor = np.where(np.isneginf(total), 0.0, total)  # of nothing accepted there is no law: all stay at probability 0
    return kept - anchor[..., None], total


def proven_epsilon(log_a: Array, log_b: Array, log_delta: float) -> Array:
    """Largest ``log((A(S) - δ) / A'(S))`` over sets of outcomes; the best ones are led by the largest losses."""
    with np.errstate(invalid="ignore"):
        loss = np.where(np.isneginf(log_a), -np.inf, log_a - log_b)
    order = np.argsort(-loss, axis=-1, kind="stable")
    a = np.logaddexp.accumulate(np.take_along_axis(log_a, order, -1), axis=-1)
    b = np.logaddexp.accumulate(np.take_along_axis(log_b, order, -1), axis=-1)
    with np.errstate(invalid="ignore"):
        value = np.where(a > log_delta, logsubexp(np.maximum(a, log_delta), log_delta) - b, -np.inf)
    return np.max(np.where(np.isnan(value), -np.inf, value), axis=-1, initial=-1e3)


@dataclass
class Attack:
    """The best mechanism found: outcomes from best to worst, and what it proves (ε at δ, or a divergence)."""

    value: float
    log_q: Array
    log_p: Array

    def exact_epsilon(self, law: Law, log_delta: float) -> mpf:
        """ε again, in 50 digits."""
        with mp.workdps(60 + int(-2.0 * min(np.min(self.log_q[self.log_q > -np.inf]), 0.0))):
            sides = [[mp.exp(mpf(float(x))) for x in log_mass[::-1]] for log_mass in (self.log_q, self.log_p)]
            laws = (best_of_k_exactly(law, [x / mp.fsum(side) for x in side]) for side in sides)
            pairs = sorted(zip(*laws, strict=True), key=lambda ab: -ab[0] / ab[1] if ab[1] > 0 else -mp.inf)
            reached = zip(*(itertools.accumulate(side) for side in zip(*pairs, strict=True)), strict=True)
            delta = mp.exp(mpf(log_delta))
            return max((mp.log((a - delta) / b) for a, b in reached if a > delta and b > 0), default=-mp.inf)


Score = Callable[[Array, Array], Array]


def search(made: Family, score: Score, rng: np.random.Generator, rounds: int) -> Attack:
    """Coordinate ascent with restarts; the order of the outcomes is one more coordinate.

    Rounds are counted, not seconds: what is found does not depend on the machine.
    """
    best = Attack(-math.inf, np.zeros(0), np.zeros(0))
    while rounds > 0:
        x, order, used = _ascend(made, score, rng, rounds)
        rounds -= used
        log_q, log_p = (part[:, order] for part in made.final(x[None, :]))
        value = float(score(log_q, log_p)[0])
        if value > best.value:
            best = Attack(value, log_q[0], log_p[0])
    return best


def _ascend(made: Family, score: Score, rng: np.random.Generator, rounds: int) -> tuple[Array, Array, int]:
    """One ascent from a random start, until no step of any size helps, and how many rounds it took."""
    x, order = made.start(rng), rng.permutation(made.outcomes)
    value, step, used = -math.inf, np.full(x.size, 1.0), 0
    while used < min(rounds, 200):
        used += 1
        points, orders = _neighbours(x, order, step)
        log_q, log_p = made.build(points)
        log_q, log_p = np.take_along_axis(log_q, orders, 1), np.take_along_axis(log_p, orders, 1)
        values = score(log_q, log_p)
        top = int(np.argmax(values))
        if values[top] > value and not values[top] <= value + 1e-9 * abs(value):
            value = float(values[top])
            if 0 < top <= 2 * x.size:
                step[(top - 1) // 2] *= 1.6
            x, order = points[top], orders[top]
        else:
            step *= 0.4
            if step.max() < 1e-4:
                break
    return x, order, used


def _neighbours(x: Array, order: Array, step: Array) -> tuple[Array, Array]:
    """The point itself, every coordinate moved up and down, and every outcome moved to every other place."""
    moves = np.kron(np.diag(step), [[1.0], [-1.0]])
    size = range(order.size)
    turned = [np.insert(np.delete(order, i), place, order[i]) for i in size for place in size if place != i]
    points = np.vstack([x, x + moves, *[x] * len(turned)])
    return points, np.vstack([*[order] * (1 + len(moves)), *turned])


def attack(base: Guarantee, law: Law | Threshold, log_delta: float, seed: int, rounds: int) -> Attack:
    """Best attack on ε at δ."""

    def score(q: Array, p: Array) -> Array:
        if isinstance(law, Threshold):
            return _conditional_epsilon(law, q, p, log_delta)
        return proven_epsilon(best_of_k(law, q), best_of_k(law, p), log_delta)

    made = Family(base, log_delta - max(law.log_mean, 0.0), law.log_mean)
    return search(made, score, np.random.default_rng(seed), rounds)


def _conditional_epsilon(law: Threshold, log_q: Array, log_p: Array, log_delta: float) -> Array:
    """The best accepted set of leading outcomes that both inputs reach often enough."""
    least = math.log(law.accept)
    best = np.full(log_q.shape[0], -np.inf)
    for first in range(1, log_q.shape[1] + 1):
        count = np.full(log_q.shape[0], first)
        (a, mass_a), (b, mass_b) = accepted(log_q, count), accepted(log_p, count)
        value = proven_epsilon(a, b, log_delta)
        best = np.maximum(best, np.where((mass_a >= least) & (mass_b >= least), value, -np.inf))
    return best


BASES: dict[str, tuple[Guarantee, ...]] = {
    "zcdp": (ZCDP(0.1), ZCDP(1.0), ZCDP(0.005)),
    "rdp": (RDPCurve({2.0: 0.5}), RDPCurve({1.5: 0.2, 4.0: 0.5, 16.0: 1.8})),
}
LAWS: tuple[Law | Threshold, ...] = (
    Poisson(10.0),
    Poisson(0.5),
    TruncatedNegativeBinomial.with_mean(10.0, eta=0.0),
    TruncatedNegativeBinomial.with_mean(20.0, eta=-0.8),
    TruncatedNegativeBinomial.with_mean(3.0, eta=5.0),
    Binomial(11, 0.9),
    Fixed(5),
    FinitePmf(((0, 0.3), (1, 0.3), (20, 0.4))),
    AtMost(Poisson(10.0), 12),
    Threshold(0.1),
)
DELTAS = (1e-9, 1e-6, 1e-3, 0.1)


@dataclass
class Case:
    """One row of the report."""

    base: Guarantee
    law: Law | Threshold
    delta: float
    attack: Attack
    lower: float | None
    epsilon: float
    smallest: str

    @property
    def gain(self) -> float:
        """How far the attack exceeds the package's lower bound, relatively (0 where it does not)."""
        if not self.lower:
            return math.inf if self.attack.value > 1e-9 else 0.0
        return max(self.attack.value / self.lower - 1.0, 0.0)

    @property
    def broken(self) -> bool:
        """Whether some bound lies below what the attack proves, confirmed in 50 digits."""
        if self.attack.value <= self.epsilon * (1.0 + 1e-9) + 1e-12:
            return False
        if isinstance(self.law, (Threshold, AtMost)):
            return True
        return bool(self.attack.exact_epsilon(self.law, math.log(self.delta)) > mpf(self.epsilon) * (1 + mpf(1e-12)))


def examine(base: Guarantee, law: Law | Threshold, delta: float, seed: int, rounds: int) -> Case:
    """Attack one question and set it beside the answer; the smallest of all bounds is the one to break."""
    answer = bound(base, law, delta=delta)
    found = attack(base, law, math.log(delta), seed, rounds)
    least = min(answer.bounds, key=lambda item: item.epsilon)
    lower = None if answer.lower is None else answer.lower.epsilon
    return Case(base, law, delta, found, lower, least.epsilon, least.method)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bases", nargs="*", help=f"of {', '.join(BASES)} (default: all)")
    parser.add_argument("--rounds", type=int, default=400, help="of ascent for each question")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    broken = better = count = 0
    for base, law, delta in (
        (base, law, delta) for name in given.bases or BASES for base in BASES[name] for law in LAWS for delta in DELTAS
    ):
        case = examine(
            base, law, delta, random.Random(f"{given.seed} {base} {law} {delta}").getrandbits(32), given.rounds
        )
        count, broken, better = count + 1, broken + case.broken, better + (case.gain > 1e-3)
        mark = " BROKEN" if case.broken else f" lower +{100 * case.gain:.2g} %" if case.gain > 1e-3 else ""
        print(
            f"{base!r:40.40s}{law!r:46.46s}{delta:8.0e}{case.attack.value:12.6g}"
            f"{case.epsilon:12.6g} {case.smallest}{mark}",
            flush=True,
        )
    print(f"{count} questions, {broken} broken, the attack beats the lower bound by 0.1 % or more in {better}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
