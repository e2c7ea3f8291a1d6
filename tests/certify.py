"""Certified direction: no answer below the truth, over the whole range of the inputs; and how far above it answers are.

Run by hand it goes on until the time is over, visits all rooms in turn and prints counts and failures::

    python tests/certify.py --minutes 10
    python tests/certify.py --minutes 1 --seed 7 questions laws
    python tests/certify.py questions --seed 1234 --inputs 1        # one input again

Each *room* draws inputs, asks the package, and compares with 50-digit arithmetic (``tests/exact.py``). An answer may
exceed the true value by the room's tolerance, and fall below it by no more than the rounding of a few operations in
doubles. A NaN, a warning, or any exception but the package's own errors is a failure. The room ``questions`` asks what
users ask: the answer must not lie below the mechanism of a plain grid (``tests/grid.py``) nor below its own lower
bound; how far above it lies, and how long it took, is reported.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import exact
import mpmath as mp
import numpy as np
from exact import mpf
from grid import grid_of, least_delta

from hpcalc.bounds import paper
from hpcalc.bounds.bound import RenyiBound
from hpcalc.bounds.pure import refined_pure
from hpcalc.bounds.renyi import refined_renyi
from hpcalc.conversion import RenyiCurve, delta_from_rdp, epsilon_from_rdp, minimise_over_orders
from hpcalc.errors import HpcalcError
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, PureDP, compose
from hpcalc.guarantees.dpsgd import DPSGD
from hpcalc.laws import AtLeastOne, Binomial, FinitePmf, Fixed, Law, Poisson, TruncatedNegativeBinomial, modified
from hpcalc.logspace import Prob
from hpcalc.questions.search_cost import bound

#: How far below the true value a double may fall: rounding of the answer and of the inputs it is made from.
ROUNDING = 2e-13
#: What the room of questions reports: a gap between the answer and its mechanism, and seconds.
WIDE, LONG = 1.01, 5.0
#: Laws that ``exact`` writes down.
CLOSED = (Poisson, TruncatedNegativeBinomial, Binomial, Fixed, FinitePmf, AtLeastOne)


@dataclass(frozen=True)
class Check:
    """One answer beside its true value; ``above`` and ``below`` are tolerances relative to ``scale``."""

    what: str
    value: float
    true: mpf
    above: float
    below: float = ROUNDING
    scale: mpf = field(default_factory=lambda: mpf(0))

    def error(self) -> float:
        """Signed relative error; NaN where the answer is one."""
        if math.isnan(self.value):
            return math.nan
        if math.isinf(self.value) or mp.isinf(self.true):
            return 0.0 if mpf(self.value) == self.true else (math.inf if self.value > self.true else -math.inf)
        gap = mpf(self.value) - self.true
        size = max(abs(self.true), self.scale)
        return 0.0 if gap == 0 else float(gap / size) if size > 0 else math.copysign(math.inf, gap)


Room = Callable[[random.Random], Iterator[Check]]
ROOMS: dict[str, Room] = {}


def room(function: Room) -> Room:
    ROOMS[function.__name__.replace("_", "-")] = function
    return function


# Inputs


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def a_delta(rng: random.Random) -> float:
    return log_uniform(rng, 1e-300, 0.999) if rng.random() < 0.7 else log_uniform(rng, 1e-15, 0.999)


def an_order(rng: random.Random) -> float:
    return 1.0 + log_uniform(rng, 1e-9, 1e9) if rng.random() < 0.5 else 1.0 + log_uniform(rng, 1e-2, 1e3)


def a_rank(rng: random.Random) -> Prob:
    kind = rng.random()
    if kind < 0.4:
        return Prob.from_log_u(np.array([-log_uniform(rng, 1e-17, 690.0)]))
    if kind < 0.7:
        return Prob.from_log_q(np.array([-log_uniform(rng, 1e-17, 690.0)]))
    return Prob.from_normal(np.array([rng.uniform(-12.0, 12.0)]))


def a_tnb(rng: random.Random) -> TruncatedNegativeBinomial:
    eta = rng.choice(
        (
            -1.0 + log_uniform(rng, 1e-9, 1.0),
            log_uniform(rng, 1e-9, 1e6),
            -log_uniform(rng, 1e-9, 0.99),
            rng.uniform(-0.99, 5.0),
            rng.choice((0.0, 0.5, 1.0, 2.0, -0.5)),
        )
    )
    near_one = min(1.0 - log_uniform(rng, 1e-15, 1.0), 1.0 - 1.2e-16)
    gamma = rng.choice((log_uniform(rng, 1e-300, 0.999), log_uniform(rng, 1e-6, 0.999), near_one))
    return TruncatedNegativeBinomial(eta, gamma)


def a_probability(rng: random.Random) -> float:
    return log_uniform(rng, 1e-12, 1.0) if rng.random() < 0.6 else 1.0 - log_uniform(rng, 1e-15, 1.0)


def a_pmf(rng: random.Random, most: float = 1e4) -> FinitePmf:
    support = sorted({int(log_uniform(rng, 1.0, most)) - (rng.random() < 0.2) for _ in range(rng.randint(1, 6))} | {3})
    weight = [rng.random() ** rng.choice((1, 4)) + 1e-9 for _ in support]
    return FinitePmf(tuple((k, w / math.fsum(weight)) for k, w in zip(support, weight, strict=True)))


def a_simple_law(rng: random.Random) -> Law:
    """Laws with a closed form, over all their range."""
    return rng.choice(
        (
            lambda: Poisson(log_uniform(rng, 1e-9, 1e12)),
            lambda: a_tnb(rng),
            lambda: a_tnb(rng),
            lambda: Binomial(int(log_uniform(rng, 1.0, 1e12)), a_probability(rng)),
            lambda: Fixed(int(log_uniform(rng, 1.0, 1e9))),
            lambda: AtLeastOne(Poisson(log_uniform(rng, 1e-9, 1e12))),
            lambda: a_pmf(rng),
        )
    )()


def a_renyi_base(rng: random.Random, size: float = 1e6) -> Guarantee:
    """Bases whose Rényi curve is a closed form, of any size up to the one given."""
    loss = log_uniform(rng, min(1e-12, 1.0 / size), size)
    return rng.choice(
        (lambda: ZCDP(loss), lambda: PureDP(loss), lambda: Gaussian(1 / loss), lambda: Laplace(1 / loss))
    )()


# The whole question


def a_usual_base(rng: random.Random) -> Guarantee:
    """One run as people have it."""
    return rng.choice(
        (
            lambda: PureDP(log_uniform(rng, 0.01, 5.0)),
            lambda: Gaussian(log_uniform(rng, 0.5, 60.0)),
            lambda: Gaussian(log_uniform(rng, 0.5, 60.0)),
            lambda: Laplace(log_uniform(rng, 0.3, 30.0)),
            lambda: ApproxDP(log_uniform(rng, 0.01, 5.0), log_uniform(rng, 1e-12, 1e-2)),
            lambda: a_training(rng),
            lambda: compose(a_training(rng), Gaussian(log_uniform(rng, 2.0, 60.0))),
            lambda: compose(Gaussian(log_uniform(rng, 1.0, 60.0)), Laplace(log_uniform(rng, 1.0, 30.0))),
            lambda: compose(Gaussian(log_uniform(rng, 1.0, 60.0)), PureDP(log_uniform(rng, 0.01, 1.0))),
            lambda: ZCDP(log_uniform(rng, 1e-4, 1.0)),
        )
    )()


def a_training(rng: random.Random) -> DPSGD:
    return DPSGD(log_uniform(rng, 1e-3, 0.1), log_uniform(rng, 0.6, 4.0), int(log_uniform(rng, 10, 20000)))


def a_usual_law(rng: random.Random) -> Law:
    mean = log_uniform(rng, 1.1, 1000.0)
    some = log_uniform(rng, 0.3, 100.0)
    return rng.choice(
        (
            lambda: Poisson(log_uniform(rng, 0.1, 1000.0)),
            lambda: TruncatedNegativeBinomial.with_mean(mean, eta=rng.choice((-0.9, -0.8, -0.5, 0.0, 0.5, 1.0, 3.0))),
            lambda: TruncatedNegativeBinomial.with_mean(mean, eta=rng.uniform(-0.95, 4.0)),
            lambda: Binomial(rng.randint(1, 100), rng.uniform(0.02, 0.98)),
            lambda: Fixed(rng.randint(1, 30)),
            lambda: a_pmf(rng, 300.0),
            lambda: modified(Poisson(some), rng.randint(1, 100)),
            lambda: modified(Poisson(some), clamp_runs=rng.randint(1, 100)),
            lambda: modified(TruncatedNegativeBinomial.with_mean(mean, eta=0.0), rng.randint(2, 300)),
            lambda: AtLeastOne(Poisson(some)),
        )
    )()


#: Of each answer of the room of questions: its ratio to the lower bound, seconds, and what was asked.
ANSWERS: list[tuple[float, float, str]] = []


@room
def questions(rng: random.Random) -> Iterator[Check]:
    base, law, delta = a_usual_base(rng), a_usual_law(rng), log_uniform(rng, 1e-12, 0.2)
    name = f"bound({base!r}, {law!r}, delta={delta!r})"
    start = time.process_time()
    answer = bound(base, law, delta=delta)
    seconds = time.process_time() - start
    epsilon, low = answer.epsilon, 0.0 if answer.lower is None else answer.lower.epsilon
    ratio = 1.0 if epsilon in (low, math.inf) or epsilon - low < 1e-9 else epsilon / low if low > 0.0 else math.inf
    ANSWERS.append((ratio, seconds, f"{name}: epsilon {epsilon!r}, lower {low!r}, {seconds:.2f} s"))
    for row in answer.bounds:
        yield Check(f"{name} {row.method} above the lower bound {low!r}", row.epsilon, mpf(low), math.inf, 0.0)
    if isinstance(base, (PureDP, Gaussian, Laplace, ApproxDP)) and epsilon < 600.0:
        grid = grid_of(base, law, min(-60.0, 1.5 * math.log(delta) - 10.0), 500, 400)
        found = least_delta(grid, law, epsilon)
        yield Check(f"{name} by a plain grid at {epsilon!r}", delta, mpf(found), math.inf, 1e-7)
    if not isinstance(base, ZCDP):
        yield Check(f"{name} over its lower bound {low!r}", ratio, mpf(1), WIDE - 1.0)
    yield Check(f"{name} seconds", seconds, mpf(LONG), 0.0, 1.0)


def show_answers() -> None:
    """How many answers are as good as exact, where one pair is attained and elsewhere; the widest and the slowest."""
    for what, kind in (("zCDP", True), ("others", False)):
        ratios = [ratio for ratio, _, text in ANSWERS if text.startswith("bound(ZCDP") == kind]
        if ratios:
            shares = {limit: sum(ratio <= limit for ratio in ratios) / len(ratios) for limit in (1.0005, 1.01, 1.012)}
            told = ", ".join(f"{100.0 * share:.2f} % within {limit}" for limit, share in shares.items())
            print(f"{what}, {len(ratios)}: {told}")
    for column in (0, 1):
        ordered = sorted(ANSWERS, key=lambda answer: answer[column])
        print("\n".join(f"  {answer[column]:.6g} {answer[2]}" for answer in ordered[-10:]))


# Laws


@room
def laws(rng: random.Random) -> Iterator[Check]:
    law, at = a_simple_law(rng), a_rank(rng)
    with mp.workdps(400):  # what is left of f beside 1, or beside f(0), where a rank or its complement is next to 0
        u, q = exact.rank_of(at)
        mean, density = exact.log_mean(law), exact.log_density(law, u, q)
        survival, pgf, zero = exact.survival(law, u), exact.pgf(law, u, q), exact.log_prob_zero(law)
        # a rank rounded in its last digit moves these by that share of their size
        size = max(mpf(1), abs(mean), abs(density), abs(exact.log(u)))
        name = f"{law!r} at {float(at.log_u[0])!r}, {float(at.log_q[0])!r}: "
        yield Check(f"{law!r}: log mean", law.log_mean, mean, 1e-13, 1e-13, mpf(1))
        yield Check(name + "density", float(law.log_density(at)[0]), density, 1e-12, 1e-12, size)
        yield Check(name + "survival", float(law.success(at).log_u[0]), mp.log(survival), 1e-12, 1e-12, size)
        yield Check(name + "pgf", float(law.success(at).log_q[0]), mp.log(pgf), 1e-12, 1e-12, size)
        yield Check(f"{law!r}: zero", law.log_prob_zero, zero, 1e-12, 1e-12)
        # beside p = 1 a double holds the thinned p, not 1 - p, to its last digit
        if not isinstance(law, (FinitePmf, AtLeastOne)) and not (isinstance(law, Binomial) and law.p > 1.0 - 1e-4):
            delta0 = a_delta(rng)
            keep = math.log1p(-delta0)
            thinned = law.thin(keep)
            # f'(x) of the thinned law is proportional to f'(x (1-delta0))
            kept, lost = mp.exp(mpf(keep)), -mp.expm1(mpf(keep))
            ratio = exact.log_density(law, lost + kept * u, kept * q) - exact.log_density(law, lost)
            got = float(thinned.log_density(at)[0] - thinned.log_density(Prob.from_u(np.array([0.0])))[0])
            size = max(size, abs(ratio), abs(mpf(thinned.log_mean)))
            yield Check(name + f"thinned by {delta0!r}", got, ratio, 1e-10, 1e-10, size)


# Conversions and the paper


@room
def conversion(rng: random.Random) -> Iterator[Check]:
    base, log_delta = a_renyi_base(rng), math.log(a_delta(rng))
    for rule in ("cks", "mironov"):
        answer = epsilon_from_rdp(base, log_delta, rule)
        name = f"{base!r} {rule} at log delta {log_delta!r}, order {answer.order!r}"
        if answer.order is None:
            yield Check(name, answer.value, mpf(base.pure_epsilon), 1e-15, 1e-15)
            continue

        def formula(a: mpf, rule: str = rule) -> mpf:
            if rule == "cks":
                return exact.cks_epsilon(a, exact.rdp(base, a), mpf(log_delta))
            return exact.rdp(base, a) - mpf(log_delta) / (a - 1)

        at = mpf(answer.order)
        # ε is what is left of terms that cancel
        size = max(exact.rdp(base, at), abs(mp.log((at - 1) / at)), abs(mpf(log_delta) + mp.log(at)) / (at - 1))
        yield Check(name, answer.value, max(formula(at), mpf(0)), 1e-13, 1e-13, size)
        best = max(exact.least(formula, answer.order, rounds=70), mpf(0))
        yield Check(f"{name}, the best one", answer.value, best, 1e-9, 1.0, size)
    epsilon = (answer.value or 1.0) * log_uniform(rng, 1e-2, 1e2)
    back = delta_from_rdp(base, epsilon, "cks")
    if back.order is not None and math.isfinite(back.value):
        at = mpf(back.order)
        size = max(mpf(1), (at - 1) * max(exact.rdp(base, at), mpf(epsilon)))
        true = min(exact.cks_log_delta(at, exact.rdp(base, at), mpf(epsilon)), mpf(0))
        yield Check(f"{base!r} delta at {epsilon!r}, order {back.order!r}", back.value, true, 1e-12, 1e-12, size)


@room
def theorem_2(rng: random.Random) -> Iterator[Check]:
    base, law, order = a_renyi_base(rng), a_tnb(rng), an_order(rng)
    eta, length = mpf(law.eta), -mpf(law.log_gamma)
    one_run = exact.rdp(base, order) + exact.log_mean(law) / (mpf(order) - 1)
    for sharper in (False, True):

        def terms(b: mpf, sharper: bool = sharper) -> mpf:
            if sharper:
                return exact.log1p(mp.expm1(length) * mp.exp((b - 1) * exact.rdp(base, b))) / b
            return (1 - 1 / b) * exact.rdp(base, b) + length / b

        def in_doubles(orders: np.ndarray) -> np.ndarray:
            return np.array([float(terms(mpf(float(b)))) for b in orders.ravel()]).reshape(orders.shape)

        with mp.workdps(20):
            _, start = minimise_over_orders(in_doubles, None)
        best = min(exact.least(terms, start or 2.0, 1.0, 50), length)
        if base.pure_epsilon < math.inf:
            best = min(best, exact.loss_of(base))
        got = float(paper.theorem_2(base, law, sharper=sharper).curve.rdp(np.array([order]))[0])
        yield Check(f"{base!r} {law!r} order {order!r} sharper {sharper}", got, one_run + (1 + eta) * best, 1e-9)


@room
def theorem_6(rng: random.Random) -> Iterator[Check]:
    base, law, order = a_renyi_base(rng), Poisson(log_uniform(rng, 1e-9, 1e12)), an_order(rng)
    at = mpf(order)
    hat = exact.log1p(1 / (at - 1))
    if isinstance(base, ZCDP):
        start = 1.5 + math.sqrt(1.0 / base.rho) * float(hat) / 2.0
        log_d = min(exact.least(lambda a: exact.cks_log_delta(a, exact.rdp(base, a), hat), start, 30.0, 90), mpf(0))
    else:
        log_d = exact.log_profile(base, hat)
    extra = mpf(law.mu) * mp.exp(log_d) + mp.log(mpf(law.mu)) / (at - 1)
    true = exact.rdp(base, order) + (max(extra, mpf(0)) if law.mu < 1.0 else extra)
    got = float(paper.theorem_6(base, law).curve.rdp(np.array([order]))[0])
    size = max(exact.rdp(base, order), abs(mp.log(mpf(law.mu))) / (at - 1), mpf(law.mu) * mp.exp(log_d))
    # δ̂ is known to a rounding of log δ̂
    yield Check(f"{base!r} {law!r} order {order!r}", got, true, 1e-9 * float(1 + abs(log_d)), 1e-10, size)


@room
def lemma_22(rng: random.Random) -> Iterator[Check]:
    inner = Poisson(log_uniform(rng, 1e-3, 1e4)) if rng.random() < 0.5 else a_tnb(rng)
    cutoff = int(log_uniform(rng, 1.0, 300.0))
    try:
        law = modified(inner, cutoff)
    except HpcalcError:
        return
    pmf = exact.pmf(inner, cutoff)
    mass, mean = mp.fsum(pmf), mp.fsum(k * p for k, p in enumerate(pmf))
    whole = mp.exp(exact.log_mean(inner))
    order = an_order(rng)
    true = 1 + mp.log(1 / mass) / (mpf(order) - 1) + mp.log(whole / mean)
    flat = RenyiBound("test", "test", RenyiCurve(lambda a: np.ones(np.shape(a))))
    got = float(paper.lemma_22(law, flat).curve.rdp(np.array([order]))[0])
    size = 1 + abs(mp.log(mass)) / 100  # probabilities of e^-1e7 carry their logarithm's rounding
    loose = 1e-9 + 1e-12 / (order - 1.0)  # the lemma's own allowance for the rounding of log P[K <= m]
    yield Check(f"{law!r} order {order!r}", got, true, loose, 1e-11, size)
    yield Check(f"{law!r} mean", law.log_mean, mp.log(mean / mass), 1e-11, 1e-11, size)


# Refined bounds


@room
def renyi(rng: random.Random) -> Iterator[Check]:
    """R1, whose supremum of a product is looked for by a scan in doubles and golden section in 50 digits."""
    base, law = a_renyi_base(rng, 10.0), a_usual_law(rng)
    order = 1.0 + log_uniform(rng, 1e-2, 1e2)
    if isinstance(base, ZCDP) or not isinstance(law, CLOSED):
        return
    x = np.linspace(-37.0, 37.0, 2000)
    for _ in range(3):
        at = Prob.from_normal(x)
        image = base.region(at)
        with np.errstate(invalid="ignore", over="ignore"):
            value = order * law.log_density(at) - (order - 1.0) * law.log_density(image)
        top = int(np.nanargmax(np.where(np.isfinite(value), value, -np.inf)))
        centre, step = x[top], float(np.median(np.diff(x)))
        x = np.append(np.linspace(centre - step, centre + step, 201), centre)
    (u, q), (v, qv) = (exact.rank_of(point, top) for point in (at, image))
    first, second = exact.log_density(law, u, q), exact.log_density(law, v, qv)
    log_m = max(mpf(order) * first - (mpf(order) - 1) * second, exact.log_mean(law))  # at u = 0 both are E[K]
    moment, h = (mpf(order) - 1) * exact.rdp(base, order), mpf(order) - 1
    if law.affine_power:
        true = exact.log1p(mp.exp(log_m) * mp.expm1(moment)) / h
    else:
        true = mp.log(mp.exp(exact.log_prob_zero(law)) + mp.exp(log_m + moment)) / h
    got = float(refined_renyi(base, law).sharpened(np.array([order])).curve.rdp(np.array([order]))[0])
    size = max(abs(true), abs(log_m) / h)
    loose = 1e-3 if order < 20.0 and exact.loss_of(base) * order < 15 else math.inf
    yield Check(f"{base!r} {law!r} order {order!r}", got, max(true, mpf(0)), loose, 1e-10, size)


@room
def refined_pure_dp(rng: random.Random) -> Iterator[Check]:
    epsilon, law = log_uniform(rng, 1e-12, 1e6), a_simple_law(rng)
    got = refined_pure(epsilon, law)
    e = mpf(epsilon)
    edge = 1 / (1 + mp.exp(e))

    def gain(u: mpf) -> mpf:
        v = u * mp.exp(e)
        return exact.log_density(law, u) - exact.log_density(law, v)

    at_edge = exact.log_density(law, edge) - exact.log_density(law, 1 - edge, edge)
    true = e + at_edge
    tolerance = 1e-9
    if isinstance(law, FinitePmf):
        log_u = np.linspace(-60.0 - epsilon, float(mp.log(edge)), 4000)
        f = law.log_density(Prob.from_log_u(log_u))
        g = law.log_density(Prob.from_log_u(np.minimum(log_u + epsilon, 0.0)))
        top = float(log_u[int(np.nanargmax(np.where(np.isfinite(g), f - g, -np.inf)))])
        step = mpf(log_u[1] - log_u[0])
        for _ in range(12):
            points = [x for k in range(-4, 5) if (x := mpf(top) + k * step) < mp.log(edge)]
            values = [gain(mp.exp(x)) for x in points]
            true = max(true, e + max(values, default=mpf(0)))
            top, step = (points[values.index(max(values))] if values else top), step / 4
        tolerance = 1e-3
    size = max(abs(true), abs(exact.log_mean(law)) * mpf(1e-3)) if isinstance(law, FinitePmf) else abs(true)
    yield Check(f"{epsilon!r} {law!r}", got, true, tolerance, 1e-12, size)


# The run


@dataclass
class Tally:
    """What a room has seen."""

    inputs: int = 0
    checks: int = 0
    refused: int = 0
    below: float = 0.0
    above: float = 0.0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def one_input(name: str, seed: int, tally: Tally) -> None:
    """One draw of a room; the seed alone repeats it."""
    start = time.process_time()
    tally.inputs += 1
    try:
        for check in ROOMS[name](random.Random(seed)):
            tally.checks += 1
            error = check.error()
            if math.isnan(error) or error < -check.below or error > check.above:
                true = mp.nstr(check.true, 17)
                tally.failures.append(f"{name} {seed}: {check.what}: {check.value!r}, true {true}, error {error:.3g}")
            if math.isfinite(error):
                tally.below, tally.above = min(tally.below, error), max(tally.above, error)
    except HpcalcError:
        tally.refused += 1
    except Exception:
        tally.failures.append(f"{name} {seed}: {traceback.format_exc(limit=-3)}")
    tally.seconds += time.process_time() - start


def certify(
    rooms: list[str], inputs: float = math.inf, seconds: float = math.inf, seed: int = 0, report: float = math.inf
) -> dict[str, Tally]:
    """Visit the rooms in turn, a slice of time each, until that many inputs or seconds are spent."""
    tallies = {name: Tally() for name in rooms}
    start = shown = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while True:
            for name, tally in tallies.items():
                until = time.process_time() + min(1.0, max(seconds / len(rooms), 0.05))
                while time.process_time() < until:
                    one_input(name, seed + tally.inputs, tally)
                    now = time.process_time()
                    if now - shown > report:
                        shown = now
                        show(tallies)
                    if now - start > seconds or sum(tally.inputs for tally in tallies.values()) >= inputs:
                        return tallies


def show(tallies: dict[str, Tally]) -> None:
    print(
        f"\n{'room':18s}{'inputs':>9s}{'checks':>10s}{'refused':>9s}{'lowest':>11s}{'highest':>11s}{'ms':>9s}{'failed':>8s}"
    )
    for name, tally in tallies.items():
        each = 1e3 * tally.seconds / max(tally.inputs, 1)
        print(
            f"{name:18s}{tally.inputs:9d}{tally.checks:10d}{tally.refused:9d}"
            f"{tally.below:11.2e}{tally.above:11.2e}{each:9.2f}{len(tally.failures):8d}"
        )
    inputs, checks = sum(t.inputs for t in tallies.values()), sum(t.checks for t in tallies.values())
    print(f"{'all':18s}{inputs:9d}{checks:10d}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--inputs", type=float, default=math.inf, help="in all")
    parser.add_argument("--seed", type=int, default=0, help="number of the first input of each room")
    parser.add_argument("--report", type=float, default=60.0, help="seconds between tables")
    given = parser.parse_args()
    unknown = [name for name in given.rooms if name not in ROOMS]
    if unknown:
        parser.error(f"no such room: {', '.join(unknown)}")
    tallies = certify(given.rooms or list(ROOMS), given.inputs, 60.0 * given.minutes, given.seed, given.report)
    show(tallies)
    show_answers()
    for tally in tallies.values():
        print("\n".join(tally.failures[:20]))
    return 1 if any(tally.failures for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
