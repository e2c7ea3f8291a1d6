"""A search for mechanisms that break a bound: coordinate ascent over small mechanisms and the order of their outcomes.

Run by hand it prints, for a grid of bases, laws and δ, its best attack beside the package's lower bound and ε::

    python tests/adversary.py --rounds 1000 gaussian laplace

A mechanism is a pair of laws on a few outcomes that meets the base guarantee by construction: randomized responses for
a pure guarantee, merged intervals of the real line for additive noise, tilts scaled until every Rényi constraint holds
for a curve. The best-of-K laws come from differences of the generating function. An apparent violation is computed
again in 50 digits before it is believed.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

import exact
import mpmath as mp
import numpy as np
from exact import mpf

from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, PureDP, RDPCurve
from hpcalc.laws import (
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
from hpcalc.logspace import Array, Prob, log_ndtr, logsubexp, logsumexp
from hpcalc.questions import bound

#: Log-probabilities ``(log q, log q')`` of many mechanisms, shape (m, outcomes), outcomes unordered.
Pair = tuple[Array, Array]
Build = Callable[[Array], Pair]


@dataclass
class Family:
    """Mechanisms that meet one base guarantee: points of a box, and what is built from them."""

    outcomes: int
    start: Callable[[np.random.Generator], Array]
    build: Build
    final: Build | None = None  # the same, meeting the guarantee at every order and not at a few dozen only


# ---------------------------------------------------------------------------------------------------------------
# Mechanisms that meet a guarantee
# ---------------------------------------------------------------------------------------------------------------


def family(base: Guarantee, log_delta: float, log_mean: float, outcomes: int = 5) -> Family:
    """The family for a base; small outcomes start at sizes around δ."""
    core = base.core
    small = log_delta - max(log_mean, 0.0)

    def masses(rng: np.random.Generator) -> Array:
        logits = rng.normal(0.0, 2.0, outcomes)
        logits[rng.integers(outcomes)] = small + rng.uniform(-1.0, 10.0)
        logits[rng.integers(outcomes)] = -max(log_mean, 0.0) + rng.normal(0.0, 2.0)
        return logits

    if isinstance(core, (Gaussian, Laplace)):
        cdf = _normal_cdf if isinstance(core, Gaussian) else _laplace_cdf
        shift = core.shift if isinstance(core, Gaussian) else core.pure_epsilon
        reach = math.sqrt(2.0 * (8.0 - small)) if isinstance(core, Gaussian) else 8.0 - small

        def start(rng: np.random.Generator) -> Array:
            return np.sort(rng.uniform(-reach, reach + shift, outcomes - 1))

        def cut(x: Array) -> Pair:
            cuts = np.sort(x, axis=1)
            return _between(*cdf(cuts)), _between(*cdf(cuts - shift))

        made = Family(outcomes, start, cut)
    else:

        def tilted(rng: np.random.Generator) -> Array:
            return np.concatenate([masses(rng), rng.uniform(-1.5, 1.5, outcomes)])

        if isinstance(core, PureDP):
            made = Family(outcomes, tilted, _responses(core.epsilon))
        else:
            made = Family(outcomes, tilted, _tilts(core, 60), _tilts(core, 4000))
    if base.slack == 0.0:
        return made
    assert made.final is None, "parts with a delta are mixed with bases that meet their guarantee by construction only"

    def with_slack(x: Array) -> Pair:
        log_q, log_p = made.build(x)
        ends = np.full((x.shape[0], 1), math.log(base.slack)), np.full((x.shape[0], 1), -np.inf)
        keep = math.log1p(-base.slack)
        return np.hstack([log_q + keep, ends[0], ends[1]]), np.hstack([log_p + keep, ends[1], ends[0]])

    return Family(outcomes + 2, made.start, with_slack)


def _normal_cdf(x: Array) -> Pair:
    return log_ndtr(x), log_ndtr(-x)


def _laplace_cdf(x: Array) -> Pair:
    half = math.log(0.5)
    low = half - np.abs(x)
    with np.errstate(divide="ignore"):
        high = np.log1p(-np.exp(low))
    return np.where(x < 0.0, low, high), np.where(x < 0.0, high, low)


def _between(log_below: Array, log_above: Array) -> Array:
    """Logs of the masses between cuts, from the logs of what lies below and above each."""
    rows = log_below.shape[0]
    zero, one = np.full((rows, 1), -np.inf), np.zeros((rows, 1))
    low, high = np.hstack([zero, log_below, one]), np.hstack([one, log_above, zero])
    use_high = low[:, :-1] > -0.7
    return np.where(use_high, logsubexp(high[:, :-1], high[:, 1:]), logsubexp(low[:, 1:], low[:, :-1]))


def _split(x: Array) -> tuple[Array, Array]:
    """Log-masses and tilts from the halves of a point."""
    half = x.shape[1] // 2
    logits = np.clip(x[:, :half], -700.0, 50.0)
    return logits - logsumexp(logits, axis=1)[:, None], np.clip(x[:, half:], -4.0, 4.0)


def _responses(epsilon: float) -> Build:
    """Losses in [-ε, ε]: the tilts, shifted until the second law sums to one."""

    def build(x: Array) -> Pair:
        log_q, tilt = _split(x)
        lo, hi = np.full((x.shape[0], 1), -5.0), np.full((x.shape[0], 1), 5.0)
        for _ in range(50):
            mid = 0.5 * (lo + hi)
            total = logsumexp(log_q - epsilon * np.clip(tilt + mid, -1.0, 1.0), axis=1)[:, None]
            lo, hi = np.where(total > 0.0, mid, lo), np.where(total > 0.0, hi, mid)
        # rounding of the sum is spread over outcomes that are not at the ends
        return log_q, log_q - epsilon * np.clip(tilt + 0.5 * (lo + hi), -1.0, 1.0)

    return build


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


def _tilts(base: Guarantee, count: int) -> Build:
    """The second law tilted as far as every order allows."""
    orders, budget = check_orders(base, count)

    def tilt_by(log_q: Array, tilt: Array, scale: Array) -> Array:
        log_p = log_q - scale * tilt
        return log_p - logsumexp(log_p, axis=1)[:, None]

    def build(x: Array) -> Pair:
        log_q, tilt = _split(x)
        lo, hi = np.full((x.shape[0], 1), -30.0), np.full((x.shape[0], 1), 7.0)
        for _ in range(36):
            mid = 0.5 * (lo + hi)
            over = excess(log_q, tilt_by(log_q, tilt, np.exp(mid)), orders, budget * (1.0 - 3e-6))[:, None] > 0.0
            lo, hi = np.where(over, lo, mid), np.where(over, mid, hi)
        return log_q, tilt_by(log_q, tilt, np.exp(lo))

    return build


# ---------------------------------------------------------------------------------------------------------------
# What a mechanism proves
# ---------------------------------------------------------------------------------------------------------------


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


def proven_divergence(log_a: Array, log_b: Array, order: float, log_zero: float) -> Array:
    """Rényi divergence of the two laws, the chance ``e^log_zero`` of no run included."""
    with np.errstate(invalid="ignore"):
        terms = np.where(np.isneginf(log_a), -np.inf, order * log_a - (order - 1.0) * log_b)
    total = np.logaddexp(logsumexp(terms), log_zero)
    return np.where(np.isnan(total), -np.inf, total) / (order - 1.0)


@dataclass
class Attack:
    """The best mechanism found: outcomes from best to worst, and what it proves (ε at δ, or a divergence)."""

    value: float
    log_q: Array
    log_p: Array

    def exact_epsilon(self, law: Law, log_delta: float) -> mpf:
        """ε again, in 50 digits."""
        with mp.workdps(60 + int(-2.0 * min(np.min(self.log_q[self.log_q > -np.inf]), 0.0))):
            laws = []
            for log_mass in (self.log_q, self.log_p):
                mass = [mp.exp(mpf(float(x))) if x > -np.inf else mpf(0) for x in log_mass]
                mass = [x / mp.fsum(mass) for x in mass]
                reached, u, out = mpf(0), mpf(0), []
                for x in mass:
                    u += x
                    now = exact.survival(law, u, 1 - u)
                    out.append(now - reached)
                    reached = now
                laws.append(out)
            pairs = sorted(zip(*laws, strict=True), key=lambda ab: -ab[0] / ab[1] if ab[1] > 0 else -mp.inf)
            a = b = mpf(0)
            best = -mp.inf
            for x, y in pairs:
                a, b = a + x, b + y
                if a > mp.exp(mpf(log_delta)) and b > 0:
                    best = max(best, mp.log((a - mp.exp(mpf(log_delta))) / b))
            return best


Score = Callable[[Array, Array], Array]


def search(made: Family, score: Score, rng: np.random.Generator, rounds: int) -> Attack:
    """Coordinate ascent with restarts; the order of the outcomes is one more coordinate.

    Rounds are counted, not seconds: what is found does not depend on the machine.
    """
    best = Attack(-math.inf, np.zeros(0), np.zeros(0))
    while rounds > 0:
        x, order, used = _ascend(made, score, rng, rounds)
        rounds -= used
        log_q, log_p = (part[:, order] for part in (made.final or made.build)(x[None, :]))
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
    points, orders = [x], [order]
    for i in range(x.size):
        for sign in (1.0, -1.0):
            moved = x.copy()
            moved[i] += sign * step[i]
            points.append(moved)
            orders.append(order)
    for i in range(order.size):
        rest = np.delete(order, i)
        for place in range(order.size):
            if place != i:
                points.append(x)
                orders.append(np.insert(rest, place, order[i]))
    return np.array(points), np.array(orders)


def attack(
    base: Guarantee, law: Law | Threshold, log_delta: float, seed: int, rounds: int, outcomes: int = 5
) -> Attack:
    """Best attack on ε at δ."""
    made = family(base, log_delta, law.log_mean, outcomes)
    rng = np.random.default_rng(seed)
    if isinstance(law, Threshold):
        return search(made, lambda q, p: _conditional_epsilon(law, q, p, log_delta), rng, rounds)
    score = lambda q, p: proven_epsilon(best_of_k(law, q), best_of_k(law, p), log_delta)  # noqa: E731
    return search(made, score, rng, rounds)


def renyi_attack(base: Guarantee, law: Law, order: float, seed: int, rounds: int, outcomes: int = 5) -> Attack:
    """Best attack on the whole search's Rényi divergence at an order."""
    made = family(base, -12.0, law.log_mean, outcomes)
    zero = law.log_prob_zero

    def score(q: Array, p: Array) -> Array:
        return proven_divergence(best_of_k(law, q), best_of_k(law, p), order, zero)

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


# ---------------------------------------------------------------------------------------------------------------
# The grid
# ---------------------------------------------------------------------------------------------------------------

BASES: dict[str, tuple[Guarantee, ...]] = {
    "pure": (PureDP(0.1), PureDP(1.0), PureDP(4.0)),
    "approx": (ApproxDP(0.5, 1e-8), ApproxDP(1.0, 1e-4)),
    "gaussian": (Gaussian(5**0.5), Gaussian(0.7), Gaussian(10.0)),
    "laplace": (Laplace(2.0), Laplace(0.5)),
    "zcdp": (ZCDP(0.1), ZCDP(1.0), ZCDP(0.005)),
    "rdp": (RDPCurve({2.0: 0.5}), RDPCurve({1.5: 0.2, 4.0: 0.5, 16.0: 1.8})),
}
LAWS: tuple[Law | Threshold, ...] = (
    Poisson(10.0),
    Poisson(0.5),
    TruncatedNegativeBinomial.with_mean(10.0, eta=0.0),
    TruncatedNegativeBinomial.with_mean(20.0, eta=-0.8),
    TruncatedNegativeBinomial.with_mean(10.0, eta=1.0),
    TruncatedNegativeBinomial.with_mean(3.0, eta=5.0),
    Binomial(11, 0.9),
    Binomial(100, 0.05),
    Fixed(5),
    FinitePmf(((0, 0.3), (1, 0.3), (20, 0.4))),
    AtLeastOne(Poisson(1.0)),
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


def examine(base: Guarantee, law: Law | Threshold, delta: float, seed: int, rounds: int, outcomes: int = 5) -> Case:
    """Attack one question and set it beside the answer; the smallest of all bounds is the one to break."""
    answer = bound(base, law, delta=delta)
    found = attack(base, law, math.log(delta), seed, rounds, outcomes)
    least = min(answer.bounds, key=lambda item: item.epsilon)
    lower = None if answer.lower is None else answer.lower.epsilon
    return Case(base, law, delta, found, lower, least.epsilon, least.method)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bases", nargs="*", help=f"of {', '.join(BASES)} (default: all)")
    parser.add_argument("--rounds", type=int, default=400, help="of ascent for each question")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--outcomes", type=int, default=5)
    given = parser.parse_args()
    broken = better = count = 0
    head = f"{'base':34s}{'law':46s}{'delta':>8s}{'attack':>12s}{'lower':>12s}{'epsilon':>12s}"
    print(head)
    for name in given.bases or BASES:
        for base in BASES[name]:
            for law in LAWS:
                for delta in DELTAS:
                    seed = random.Random(f"{given.seed} {base} {law} {delta}").getrandbits(32)
                    case = examine(base, law, delta, seed, given.rounds, given.outcomes)
                    count += 1
                    broken += case.broken
                    better += case.gain > 1e-3
                    mark = " BROKEN" if case.broken else f" lower +{100 * case.gain:.2g} %" if case.gain > 1e-3 else ""
                    lower = "-" if case.lower is None else f"{case.lower:.6g}"
                    print(
                        f"{str(base)[:33]:34s}{str(law)[:45]:46s}{delta:8.0e}{case.attack.value:12.6g}"
                        f"{lower:>12s}{case.epsilon:12.6g} {case.smallest}{mark}",
                        flush=True,
                    )
    print(f"{count} questions, {broken} broken, the attack beats the lower bound by 0.1 % or more in {better}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
