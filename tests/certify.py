"""Certified direction: no answer below the true value of its formula, over the whole legal range of the inputs.

Run by hand it goes on until it is stopped::

    python tests/certify.py                        # all rooms, for ever
    python tests/certify.py --inputs 1000000 --seed 7
    python tests/certify.py --seconds 60 region laws

Each *room* draws inputs log-uniformly, asks the package, and compares with 50-digit arithmetic (``tests/exact.py``).
An answer may exceed the true value by the room's tolerance, and fall below it by no more than the rounding of a few
operations in doubles. A NaN, a warning, or any exception but the package's own errors is a failure.
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

from hpcalc import logspace as logmath
from hpcalc.bounds import paper
from hpcalc.bounds.ranks import rank_curve
from hpcalc.bounds.refined import ProfileBound, RefinedRDP, refined_pure
from hpcalc.conversion import (
    Conversion,
    Curve,
    cks_log_delta,
    delta_from_rdp,
    epsilon_at,
    epsilon_from_rdp,
    minimise_over_orders,
)
from hpcalc.errors import HpcalcError
from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, PureDP, RDPCurve
from hpcalc.guarantees.region import region_from_rdp
from hpcalc.laws import (
    AtLeastOne,
    AtMost,
    Binomial,
    FinitePmf,
    Fixed,
    Law,
    Poisson,
    RunCount,
    Threshold,
    TruncatedNegativeBinomial,
)
from hpcalc.logspace import Prob, round_down, round_up
from hpcalc.lower import region_pair
from hpcalc.lower.pairs import order_b
from hpcalc.questions import bound

#: How far below the true value a double may fall: rounding of the answer and of the inputs it is made from.
ROUNDING = 2e-13


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


# ---------------------------------------------------------------------------------------------------------------
# Inputs
# ---------------------------------------------------------------------------------------------------------------


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


def an_eta(rng: random.Random) -> float:
    return rng.choice(
        (
            lambda: -1.0 + log_uniform(rng, 1e-9, 1.0),
            lambda: log_uniform(rng, 1e-9, 1e6),
            lambda: -log_uniform(rng, 1e-9, 0.99),
            lambda: rng.uniform(-0.99, 5.0),
            lambda: rng.choice((0.0, 0.5, 1.0, 2.0, -0.5)),
        )
    )()


def a_gamma(rng: random.Random) -> float:
    return rng.choice(
        (
            lambda: log_uniform(rng, 1e-300, 1.0),
            lambda: log_uniform(rng, 1e-6, 1.0),
            lambda: 1.0 - log_uniform(rng, 1e-15, 1.0),
        )
    )()


def a_tnb(rng: random.Random) -> TruncatedNegativeBinomial:
    gamma = min(max(a_gamma(rng), 1e-300), 1.0 - 1.2e-16)
    return TruncatedNegativeBinomial.from_gamma(an_eta(rng), gamma)


def a_probability(rng: random.Random) -> float:
    return log_uniform(rng, 1e-12, 1.0) if rng.random() < 0.6 else 1.0 - log_uniform(rng, 1e-15, 1.0)


def a_pmf(rng: random.Random) -> FinitePmf:
    support = sorted({int(log_uniform(rng, 1.0, 1e4)) - (rng.random() < 0.2) for _ in range(rng.randint(1, 6))} | {1})
    if rng.random() < 0.5 and len(support) > 1:
        support.remove(1)
    weight = [rng.random() ** rng.choice((1, 4)) + 1e-12 for _ in support]
    total = math.fsum(weight)
    table = tuple((k, w / total) for k, w in zip(support, weight, strict=True))
    return FinitePmf(table) if table != ((0, 1.0),) else FinitePmf(((1, 1.0),))


def a_simple_law(rng: random.Random) -> Law:
    """Laws with a closed form."""
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


def a_law(rng: random.Random) -> RunCount:
    kind = rng.random()
    if kind < 0.75:
        return a_simple_law(rng)
    if kind < 0.85:
        return Threshold(a_probability(rng))
    if kind < 0.9:
        return AtLeastOne(Binomial(int(log_uniform(rng, 1.0, 1e12)), a_probability(rng)))
    inner = Poisson(log_uniform(rng, 1e-3, 1e3)) if rng.random() < 0.5 else a_tnb(rng)
    return AtMost(inner, int(log_uniform(rng, 1.0, 1e4)))


def a_moderate_law(rng: random.Random) -> Law:
    """Laws as people use them: the tolerances of tightness are promised for these."""
    return rng.choice(
        (
            lambda: Poisson(log_uniform(rng, 1e-3, 1e3)),
            lambda: TruncatedNegativeBinomial.from_gamma(rng.uniform(-0.9, 5.0), log_uniform(rng, 1e-5, 0.999)),
            lambda: Binomial(rng.randint(1, 1000), rng.uniform(0.001, 0.999)),
            lambda: Fixed(rng.randint(1, 100)),
            lambda: AtLeastOne(Poisson(log_uniform(rng, 1e-3, 1e3))),
            lambda: a_pmf(rng),
        )
    )()


def a_closed_base(rng: random.Random) -> Guarantee:
    """Bases whose own profile and region are in closed form."""
    return rng.choice(
        (
            lambda: PureDP(log_uniform(rng, 1e-12, 1e6)),
            lambda: Gaussian(log_uniform(rng, 1e-6, 1e9)),
            lambda: Laplace(log_uniform(rng, 1e-6, 1e9)),
            lambda: ApproxDP(log_uniform(rng, 1e-12, 1e6), a_delta(rng)),
        )
    )()


def a_moderate_base(rng: random.Random) -> Guarantee:
    return rng.choice(
        (
            lambda: PureDP(log_uniform(rng, 1e-3, 10.0)),
            lambda: Gaussian(log_uniform(rng, 0.1, 100.0)),
            lambda: Laplace(log_uniform(rng, 0.1, 100.0)),
        )
    )()


def a_curve(rng: random.Random) -> RDPCurve:
    """A legal Rényi curve at some orders: of a Gaussian, flattened by a pure guarantee here and there."""
    rho, cap = log_uniform(rng, 1e-9, 1e3), log_uniform(rng, 1e-6, 1e6)
    orders = sorted({1.0 + log_uniform(rng, 1e-3, 1e4) for _ in range(rng.randint(1, 12))})
    points = [(a, min(rho * a, cap)) for a in orders]
    return RDPCurve([*points, (math.inf, cap)] if rng.random() < 0.2 else points)


def a_base(rng: random.Random) -> Guarantee:
    kind = rng.random()
    if kind < 0.5:
        return a_closed_base(rng)
    return ZCDP(log_uniform(rng, 1e-12, 1e6)) if kind < 0.8 else a_curve(rng)


# ---------------------------------------------------------------------------------------------------------------
# Arithmetic, laws, one run
# ---------------------------------------------------------------------------------------------------------------


@room
def arithmetic(rng: random.Random) -> Iterator[Check]:
    x = -log_uniform(rng, 1e-300, 700.0)
    yield Check(f"log1mexp({x!r})", float(logmath.log1mexp(x)), exact.log1mexp(mpf(x)), 1e-14, 1e-14)
    y = log_uniform(rng, 1e-300, 1e4)
    yield Check(f"log_expm1({y!r})", float(logmath.log_expm1(y)), mp.log(mp.expm1(mpf(y))), 2e-15, 2e-15, mpf(1))
    z = rng.choice((1, -1)) * log_uniform(rng, 1e-10, 700.0)
    yield Check(f"softplus({z!r})", float(logmath.softplus(z)), exact.log1p(mp.exp(mpf(z))), 1e-15, 1e-15)
    w = rng.choice((1, -1)) * log_uniform(rng, 1e-10, 1e8)
    w = min(w, 37.0)  # beyond, log Phi(w) is nearer to 0 than any double
    yield Check(f"log_ndtr({w!r})", float(logmath.log_ndtr(w)), exact.log_phi(w), 3e-13, 3e-13)
    mills = mp.log(exact.phi_tail(mpf(w)) / mp.npdf(mpf(w))) if w > -40.0 else None
    if mills is not None:
        yield Check(f"log_mills({w!r})", float(logmath.log_mills(w)), mills, 1e-14, 1e-14, mpf(1))
    if w < 7.0:  # above, the log of the probability holds no more of w
        got = float(logmath.ndtri_exp(logmath.log_ndtr(w)))
        yield Check(f"ndtri_exp(log_ndtr({w!r}))", got, mpf(w), 1e-11, 1e-11, mpf(1))
    number, digits = rng.choice((1, -1)) * log_uniform(rng, 1e-300, 1e300), rng.randint(1, 17)
    up, down = round_up(number, digits), round_down(number, digits)
    yield Check(f"round_up({number!r}, {digits})", up, mpf(number), 10.0 ** (2 - digits), 0.0)
    yield Check(f"-round_down({number!r}, {digits})", -down, -mpf(number), 10.0 ** (2 - digits), 0.0)


@room
def laws(rng: random.Random) -> Iterator[Check]:
    law, at = a_simple_law(rng), a_rank(rng)
    u, q = exact.rank_of(at)
    name = f"{law!r} at {float(at.log_u[0])!r}, {float(at.log_q[0])!r}: "
    mean = exact.log_mean(law)
    yield Check(f"{law!r}: log mean", law.log_mean, mean, 1e-13, 1e-13, mpf(1))
    # a rank rounded in its last digit moves these by that share of their size
    density = exact.log_density(law, u, q)
    size = max(mpf(1), abs(mean), abs(density), abs(mp.log(u)) if u > 0 else mpf(1))
    yield Check(name + "density", float(law.log_density(at)[0]), density, 1e-12, 1e-12, size)
    survival = mp.log(exact.survival(law, u, q))
    yield Check(name + "survival", float(law.log_survival(at)[0]), survival, 1e-12, 1e-12, max(mpf(1), size))
    with mp.extradps(300):  # what is left of f beside f(0) where 1 - u is below 1e-50
        pgf = exact.log_pgf(law, *exact.rank_of(at))
    yield Check(name + "pgf", float(law.log_pgf(at)[0]), pgf, 1e-12, 1e-12, max(mpf(1), size))
    yield Check(f"{law!r}: zero", law.log_prob_zero, exact.log_prob_zero(law), 1e-12, 1e-12)
    # beside p = 1 a double holds the thinned p, not 1 - p, to its last digit
    if not isinstance(law, (FinitePmf, AtLeastOne)) and not (isinstance(law, Binomial) and law.p > 1.0 - 1e-4):
        delta0 = a_delta(rng)
        keep = math.log1p(-delta0)
        thinned = law.thin(keep)
        # f'(x) of the thinned law is proportional to f'(x (1-delta0))
        kept, lost = mp.exp(mpf(keep)), -mp.expm1(mpf(keep))
        ratio = exact.log_density(law, lost + kept * u, kept * q) - exact.log_density(law, lost, kept)
        zero = Prob.from_u(np.array([0.0]))
        got = float(thinned.log_density(at)[0] - thinned.log_density(zero)[0])
        size = max(size, abs(ratio), abs(mpf(thinned.log_mean)))
        yield Check(name + f"thinned by {delta0!r}", got, ratio, 1e-10, 1e-10, size)


@room
def divergence(rng: random.Random) -> Iterator[Check]:
    base, order = a_closed_base(rng), an_order(rng)
    if isinstance(base, ApproxDP):
        base = ZCDP(log_uniform(rng, 1e-12, 1e6))
    yield Check(f"{base!r}.rdp({order!r})", float(base.rdp(order)), exact.rdp(base, order), 1e-9)


@room
def profile(rng: random.Random) -> Iterator[Check]:
    base = a_closed_base(rng)
    loss = float(exact.loss_of(base))
    t = loss * log_uniform(rng, 1e-9, 1e3) if rng.random() < 0.7 else log_uniform(rng, 1e-12, 1e6)
    if isinstance(base, Gaussian) and t * t / (loss * loss) > 1e12:
        t = loss * log_uniform(rng, 1e-3, 1e4)
    true = exact.log_profile(base, t)
    # the distance of t from the end of a pure guarantee is known to a rounding of t
    edge = abs(t - loss) / loss if not isinstance(base, Gaussian) else 1.0
    if 0.0 < edge < 1e-5:
        return
    got = float(base.log_profile(np.array([t]))[0])
    yield Check(f"{base!r}.log_profile({t!r})", got, true, 1e-9, 1e-10, mpf(1))
    if t < 30.0 and true > -30.0:
        below = mp.log(1 - mp.exp(-mpf(t)) * (1 - mp.exp(true)))
        got = float(base.log_profile(np.array([-t]))[0])
        yield Check(f"{base!r}.log_profile({-t!r})", got, below, 1e-9, 1e-10, mpf(1))


@room
def region(rng: random.Random) -> Iterator[Check]:
    base = a_closed_base(rng)
    if isinstance(base, Gaussian):
        x, s = rng.uniform(-38.0, 38.0), exact.loss_of(base)
        at = Prob.from_normal(np.array([x]))
        got = base.region(at)
        v, qv = exact.phi_tail(-(mpf(x) + s)), exact.phi_tail(mpf(x) + s)
        # what a rounding of log u moves: x by its share of x^2/2
        size = max(mpf(1), abs(mp.log(v)), abs(mp.log(qv)), abs(x) * max(s, 1), abs(x) * 1.0)
        if base.sigma < 1e-3:
            return
    else:
        at = a_rank(rng)
        u, q = exact.rank_of(at)
        got = base.region(at)
        v, qv = exact.region(base, u, q)
        size = max(mpf(1), abs(mp.log(u)), abs(mp.log(q)), exact.loss_of(base))
        x = float(at.log_u[0])
    name = f"{base!r}.region({x!r})"
    yield Check(name + ".u", float(got.log_u[0]), mp.log(v), 1e-12, 1e-12, size)
    if qv > 0:  # 1 - v may be too large only by rounding: it is an upper bound on v
        yield Check(name + ".q", -float(got.log_q[0]), -mp.log(qv), 1e-11, 1e-11, size)


def _order_allowing(base: Guarantee, v: tuple[mpf, mpf], u: tuple[mpf, mpf]) -> mpf:
    """Largest excess of a two-outcome divergence over the curve, over orders and both directions (relative)."""
    orders = base.orders if base.orders is not None else 1.0 + np.exp(np.linspace(-25.0, 25.0, 1201))
    orders = orders[np.isfinite(orders)]
    orders = orders[np.isfinite(base.rdp(orders))]
    if orders.size == 0:
        return -mp.inf
    budget = np.maximum((orders - 1.0) * base.rdp(orders), 1e-300)
    lv, lqv, lu, lqu = (float(mp.log(x)) if x > 0 else -math.inf for x in (*v, *u))
    gain, loss = float(mp.log(v[0] / u[0])), float(mp.log(v[1] / u[1])) if v[1] > 0 else -math.inf
    best = -mp.inf
    for forward in (True, False):
        sign, p, q = (1.0, lv, lqv) if forward else (-1.0, lu, lqu)
        h = orders - 1.0
        with np.errstate(all="ignore"):
            plain = np.logaddexp(p + sign * h * gain, q + sign * h * loss)
            near = np.log1p(math.exp(p) * np.expm1(sign * h * gain) + math.exp(q) * np.expm1(sign * h * loss))
            score = np.where(np.abs(plain) < 0.1, near, plain) / budget
        score = np.where(np.isnan(score), -np.inf, score)

        def excess(a: mpf, forward: bool = forward) -> mpf:
            pair = (v, u) if forward else (u, v)
            curve = exact.rdp(base, a) if isinstance(base, ZCDP) else mpf(float(base.rdp(float(a))))
            return exact.bernoulli_log_moment(a, *pair) / ((a - 1) * curve) - 1

        if base.orders is not None:
            picks = np.argsort(score)[-6:]
            best = max(best, *(excess(mpf(float(orders[i]))) for i in picks))
        else:
            inner = np.flatnonzero((score[1:-1] >= score[:-2]) & (score[1:-1] >= score[2:])) + 1
            tops = sorted(inner.tolist(), key=lambda i: -score[i])[:2] or [int(np.argmax(score))]
            best = max(best, *(-exact.least(lambda a: -excess(a), float(orders[i]), 0.1, 50) for i in tops))
    return best


@room
def renyi_region(rng: random.Random) -> Iterator[Check]:
    base: Guarantee = ZCDP(log_uniform(rng, 1e-12, 1e6)) if rng.random() < 0.6 else a_curve(rng)
    at = a_rank(rng) if rng.random() < 0.5 else Prob.from_normal(np.array([rng.uniform(-30.0, 30.0)]))
    u = exact.rank_of(at)
    if base.pure_epsilon < math.inf or not (u[0] > 0 and u[1] > 0):
        return
    got = region_from_rdp(base, at, base.orders)
    v, qv = exact.rank_of(got)
    name = f"{base!r} region at {float(at.log_u[0])!r}, {float(at.log_q[0])!r}"
    if v == u[0] or qv == 0:
        return
    small = v < qv
    size = mp.log(v) if small else mp.log(qv)
    # just above the answer some order forbids v; well below it none does
    step = mpf(1e-12) * max(1, abs(size))
    high = (v * mp.exp(step), 1 - v * mp.exp(step)) if small else (1 - qv * mp.exp(-step), qv * mp.exp(-step))
    forbidden = _order_allowing(base, high, u)
    yield Check(name, 0.0 if forbidden > 0 else -1.0, mpf(0), 0.0, 0.0)
    gap = mp.log(v / u[0]) if small else mp.log(u[1] / qv)
    if gap > 1e-10:
        step = max(mpf(1e-5) * gap, mpf(2e-7) * abs(size))
        low = (v * mp.exp(-step), 1 - v * mp.exp(-step)) if small else (1 - qv * mp.exp(step), qv * mp.exp(step))
        if low[0] > u[0]:
            loose = _order_allowing(base, low, u)
            yield Check(name + " is loose", 0.0 if loose <= 0 else 1.0, mpf(0), 0.0, 0.0)


# ---------------------------------------------------------------------------------------------------------------
# Conversions and the paper
# ---------------------------------------------------------------------------------------------------------------


def _renyi_base(rng: random.Random) -> Guarantee:
    return rng.choice(
        (
            lambda: ZCDP(log_uniform(rng, 1e-12, 1e6)),
            lambda: Gaussian(log_uniform(rng, 1e-6, 1e9)),
            lambda: PureDP(log_uniform(rng, 1e-12, 1e6)),
            lambda: Laplace(log_uniform(rng, 1e-6, 1e9)),
        )
    )()


@room
def conversion(rng: random.Random) -> Iterator[Check]:
    base, delta = _renyi_base(rng), a_delta(rng)
    log_delta = math.log(delta)
    answer = epsilon_from_rdp(base, log_delta, "cks")
    yield from _converted(base, log_delta, answer, "cks")
    mironov = epsilon_from_rdp(base, log_delta, "mironov")
    yield from _converted(base, log_delta, mironov, "mironov")
    # and δ at an ε
    scale = answer.value if answer.value > 0.0 else 1.0
    epsilon = scale * log_uniform(rng, 1e-2, 1e2)
    back = delta_from_rdp(base, epsilon, "cks")
    if back.order is not None and math.isfinite(back.value):
        at = mpf(back.order)
        true = exact.cks_log_delta(at, exact.rdp(base, at), mpf(epsilon))
        size = max(mpf(1), (at - 1) * max(exact.rdp(base, at), mpf(epsilon)))
        yield Check(f"{base!r} delta at {epsilon!r} (order)", back.value, min(true, mpf(0)), 1e-12, 1e-12, size)
        best = exact.least(lambda a: exact.cks_log_delta(a, exact.rdp(base, a), mpf(epsilon)), back.order)
        yield Check(f"{base!r} delta at {epsilon!r}", back.value, min(best, mpf(0)), 1e-9, 1.0, size)


def _converted(base: Guarantee, log_delta: float, answer: Conversion, rule: str) -> Iterator[Check]:
    name = f"{base!r} {rule} at log delta {log_delta!r}"
    if answer.rule == "pure":
        yield Check(name, answer.value, mpf(base.pure_epsilon), 1e-15, 1e-15)
        return
    assert answer.order is not None

    def formula(a: mpf) -> mpf:
        if rule == "cks":
            return exact.cks_epsilon(a, exact.rdp(base, a), mpf(log_delta))
        return exact.rdp(base, a) - mpf(log_delta) / (a - 1)

    at = mpf(answer.order)
    terms = max(exact.rdp(base, at), abs(mp.log((at - 1) / at)), abs(mpf(log_delta) + mp.log(at)) / (at - 1))
    # ε is what is left of terms that cancel
    yield Check(f"{name}, order {answer.order!r}", answer.value, max(formula(at), mpf(0)), 1e-13, 1e-13, terms)
    best = max(exact.least(formula, answer.order, rounds=70), mpf(0))
    yield Check(name, answer.value, best, 1e-9, 1.0, terms)


@room
def gaussian_epsilon(rng: random.Random) -> Iterator[Check]:
    base, delta = Gaussian(log_uniform(rng, 1e-6, 1e9)), a_delta(rng)
    answer = epsilon_at(base, math.log(delta), "best").value
    name = f"{base!r} epsilon at {delta!r}"
    if answer == 0.0:
        yield Check(name, 0.0, exact.log_profile(base, 0.0) - mp.log(mpf(delta)), 1e9, 1e-10, mpf(1))
        return
    margin = 1e-12
    at = exact.log_profile(base, mpf(answer) * (1 + margin))
    yield Check(name + " meets it", 0.0 if at <= mp.log(mpf(delta)) else -float(at - mp.log(mpf(delta))), mpf(0), 0, 0)
    near = exact.log_profile(base, mpf(answer) * (1 - mpf(1e-9)))
    yield Check(name + " is loose", 0.0 if near > mp.log(mpf(delta)) else 1.0, mpf(0), 0.0, 0.0)


@room
def theorem_2(rng: random.Random) -> Iterator[Check]:
    base, law, order = _renyi_base(rng), a_tnb(rng), an_order(rng)
    eta, length = mpf(law.eta), -mpf(law.log_gamma)
    mean = exact.log_mean(law)
    one_run = exact.rdp(base, order) + mean / (mpf(order) - 1)
    rho = mpf(base.rho) if isinstance(base, ZCDP) else None
    for sharper in (False, True):
        curve = paper.theorem_2(base, law, sharper=sharper)
        got = float(curve.rdp(np.array([order]))[0])
        name = f"{base!r} {law!r} order {order!r} {'sharper' if sharper else ''}"

        def terms(b: mpf, sharper: bool = sharper) -> mpf:
            if sharper:
                return exact.log1p(mp.expm1(length) * mp.exp((b - 1) * exact.rdp(base, b))) / b
            return (1 - 1 / b) * exact.rdp(base, b) + length / b

        ends = [length] if base.pure_epsilon == math.inf else [length, exact.loss_of(base)]
        if rho is not None and not sharper:
            b = max(mpf(1), mp.sqrt(length / rho))
            best = terms(b) if b > 1 else length
        else:
            _, start = minimise_over_orders(lambda x: _terms_in_doubles(base, law, x, sharper), None)
            best = exact.least(terms, start or 2.0, 1.0, 50)
        best = min(best, *ends)
        yield Check(name, got, one_run + (1 + eta) * best, 1e-9)


def _terms_in_doubles(base: Guarantee, law: TruncatedNegativeBinomial, b: np.ndarray, sharper: bool) -> np.ndarray:
    length = -law.log_gamma
    if sharper:
        return np.logaddexp(0.0, logmath.log_expm1(length) + (b - 1.0) * base.rdp(b)) / b
    return (1.0 - 1.0 / b) * base.rdp(b) + length / b


@room
def corollary_4(rng: random.Random) -> Iterator[Check]:
    base, law, delta = ZCDP(log_uniform(rng, 1e-12, 1e6)), a_tnb(rng), a_delta(rng)
    eta, length, rho, mean = mpf(law.eta), -mpf(law.log_gamma), mpf(base.rho), exact.log_mean(law)
    constant = 2 * (1 + eta) * mp.sqrt(rho * length) - eta * rho if rho <= length else rho + (1 + eta) * length
    log_delta = math.log(delta)
    for name, curve in (("4", paper.corollary_4(base, law)), ("2", paper.theorem_2(base, law))):
        answer = epsilon_from_rdp(curve, log_delta)
        assert answer.order is not None

        def formula(a: mpf) -> mpf:
            h = a - 1
            here = rho * h + mean / h if name == "2" or h * h * rho >= mean else 2 * mp.sqrt(rho * mean)
            return exact.cks_epsilon(a, here + (rho if name == "2" else 0) + constant + shift, mpf(log_delta))

        # Theorem 2 keeps rdp(a) = rho a; Corollary 4 has rho (a-1) and its constant holds the rest
        shift = mpf(0)
        if name == "2":
            shift = (2 * mp.sqrt(rho * length) - rho if rho <= length else length) * (1 + eta) - constant
        at = mpf(answer.order)
        size = max(rho * at, abs(mp.log((at - 1) / at)), abs(mpf(log_delta) + mp.log(at)) / (at - 1), constant)
        best = max(exact.least(formula, answer.order, rounds=60), mpf(0))
        label = f"epsilon by {'Corollary 4' if name == '4' else 'Theorem 2'} of {base!r} {law!r} delta {delta!r}"
        yield Check(label, answer.value, best, 1e-9, 1e-12, size)


@room
def theorem_6(rng: random.Random) -> Iterator[Check]:
    base, law, order = a_base(rng), Poisson(log_uniform(rng, 1e-9, 1e12)), an_order(rng)
    if base.orders is not None or base.slack > 0.0:
        return
    at = mpf(order)
    hat = exact.log1p(1 / (at - 1))
    if isinstance(base, ZCDP):
        _, start = minimise_over_orders(lambda a: np.asarray(cks_log_delta(a, base.rdp(a), float(hat))), None)
        best = exact.least(lambda a: exact.cks_log_delta(a, exact.rdp(base, a), hat), start or 2.0, 1.0, 60)
        log_d = min(best, mpf(0))
    else:
        log_d = exact.log_profile(base, hat)
    extra = mpf(law.mu) * mp.exp(log_d) + mp.log(mpf(law.mu)) / (at - 1)
    true = exact.rdp(base, order) + (max(extra, mpf(0)) if law.mu < 1.0 else extra)
    got = float(paper.theorem_6(base, law).rdp(np.array([order]))[0])
    size = max(exact.rdp(base, order), abs(mp.log(mpf(law.mu))) / (at - 1), mpf(law.mu) * mp.exp(log_d))
    # δ̂ is known to a rounding of log δ̂
    yield Check(f"{base!r} {law!r} order {order!r}", got, true, 1e-9 * float(1 + abs(log_d)), 1e-10, size)


@room
def lemma_22(rng: random.Random) -> Iterator[Check]:
    inner = Poisson(log_uniform(rng, 1e-3, 1e4)) if rng.random() < 0.5 else a_tnb(rng)
    cutoff = int(log_uniform(rng, 1.0, 300.0))
    try:
        law = AtMost(inner, cutoff)
    except HpcalcError:
        return
    if law._plain is not None:
        return
    from mechanisms import pmf_of

    pmf = pmf_of(inner, cutoff)
    mass, mean = mp.fsum(pmf), mp.fsum(k * p for k, p in enumerate(pmf))
    whole = mp.exp(exact.log_mean(inner))
    order = an_order(rng)
    true = 1 + mp.log(1 / mass) / (mpf(order) - 1) + mp.log(whole / mean)
    flat = Curve(lambda a: np.ones(np.shape(a)), "test", "test")
    got = float(paper.lemma_22(law, flat).rdp(np.array([order]))[0])
    size = 1 + abs(mp.log(mass)) / 100  # probabilities of e^-1e7 carry their logarithm's rounding
    yield Check(f"{law!r} order {order!r}", got, true, 1e-9, 1e-11, size)
    yield Check(f"{law!r} mean", law.log_mean, mp.log(mean / mass), 1e-11, 1e-11, size)


# ---------------------------------------------------------------------------------------------------------------
# Refined bounds
# ---------------------------------------------------------------------------------------------------------------


def _score_point(base: Guarantee, x: mpf) -> tuple[tuple[mpf, mpf], tuple[mpf, mpf]]:
    """``(u, 1-u), (V, 1-V)`` at a normal score."""
    u, q = exact.phi_tail(-x), exact.phi_tail(x)
    if isinstance(base, Gaussian):
        s = exact.loss_of(base)
        return (u, q), (exact.phi_tail(-(x + s)), exact.phi_tail(x + s))
    return (u, q), exact.region(base, u, q)


def _true_log_m(base: Guarantee, law: Law, order: float) -> mpf:
    """``log sup_u F(u)^a F(V(u))^(1-a)`` from below, by a scan in doubles and golden section in 50 digits."""
    x = np.concatenate([np.linspace(-37.0, 60.0, 2000), np.asarray(base.kinks)])
    at = Prob.from_normal(x)
    with np.errstate(invalid="ignore", over="ignore"):
        value = order * law.log_density(at) - (order - 1.0) * law.log_density(base.region(at))
    start = float(x[int(np.nanargmax(value))])

    def score(z: mpf) -> mpf:
        (u, q), (v, qv) = _score_point(base, z)
        first, second = exact.log_density(law, u, q), exact.log_density(law, v, qv)
        return mpf(order) * first - (mpf(order) - 1) * second if mp.isfinite(second) and mp.isfinite(first) else -mp.inf

    lo, hi, ratio = mpf(start) - 0.05, mpf(start) + 0.05, (mp.sqrt(5) - 1) / 2
    best = score(mpf(start))
    a, b = hi - ratio * (hi - lo), lo + ratio * (hi - lo)
    fa, fb = score(a), score(b)
    for _ in range(24):
        best = max(best, fa, fb)
        if fa > fb:
            hi, b, fb = b, a, fa
            a = hi - ratio * (hi - lo)
            fa = score(a)
        else:
            lo, a, fa = a, b, fb
            b = lo + ratio * (hi - lo)
            fb = score(b)
    # at u = 0 both are E[K]
    return max(best, exact.log_mean(law))


@room
def refined_renyi(rng: random.Random) -> Iterator[Check]:
    usual = rng.random() < 0.7
    base = a_moderate_base(rng) if usual else a_closed_base(rng)
    law = a_moderate_law(rng) if usual else a_simple_law(rng)
    if base.slack > 0.0:
        return
    found = RefinedRDP(base, law)
    for _ in range(3):
        order = 1.0 + log_uniform(rng, 1e-3, 1e3)
        # far from the orders that matter for a fixed K, whose F spans thousands of decades, samples are too coarse
        spread = isinstance(law, (Fixed, FinitePmf, Binomial))
        usual = usual and not (spread and (order > 20.0 or order * exact.loss_of(base) > 15))
        name = f"{base!r} {law!r} order {order!r}"
        if not math.isfinite(float(base.rdp(order))):
            continue
        sharp = found.sharpen(order)
        log_m = float(sharp.log_m(np.array([order]))[0])
        true = _true_log_m(base, law, order)
        size = max(mpf(1), abs(exact.log_mean(law)) * mpf(order), abs(true))
        yield Check(name + " log M", log_m, true, 1e-3 if usual else math.inf, 1e-11, size)
        moment = (mpf(order) - 1) * exact.rdp(base, order)
        if law.affine_power:
            value = exact.log1p(mp.exp(true) * mp.expm1(moment)) / (mpf(order) - 1)
        else:
            value = mp.log(mp.exp(exact.log_prob_zero(law)) + mp.exp(true + moment)) / (mpf(order) - 1)
        got = float(sharp.rdp(np.array([order]))[0])
        slack = 1e-11 * float(size / (mpf(order) - 1)) if order < 1.1 else 0.0
        scale = max(abs(value), mpf(slack) * 1e11)
        yield Check(name, got, max(value, mpf(0)), 1e-3 if usual else math.inf, 1e-11, scale)


def _enumerated(law: Law, q: list[mpf], p: list[mpf], epsilon: mpf) -> mpf:
    """Exact hockey-stick divergence of best-of-K; outcomes from best to worst."""
    total, u, v = mpf(0), mpf(0), mpf(0)
    su = sv = mpf(0)
    for i, (a, b) in enumerate(zip(q, p, strict=True)):
        last = i == len(q) - 1
        u, v = (mpf(1), mpf(1)) if last else (u + a, v + b)
        nu, nv = exact.survival(law, u, 1 - u), exact.survival(law, v, 1 - v)
        total += max(nu - su - mp.exp(epsilon) * (nv - sv), mpf(0))
        su, sv = nu, nv
    return total


@room
def refined_profile(rng: random.Random) -> Iterator[Check]:
    usual = rng.random() < 0.7
    base = a_moderate_base(rng) if usual else a_closed_base(rng)
    law = a_moderate_law(rng) if usual else a_simple_law(rng)
    delta = log_uniform(rng, 1e-12, 0.1)
    curve = rank_curve(base, law)
    epsilon = ProfileBound(base, law, curve).epsilon(math.log(delta))
    name = f"{base!r} {law!r} delta {delta!r}"
    if not math.isfinite(epsilon):
        yield Check(name, 0.0 if epsilon == math.inf else math.nan, mpf(0), 0.0)
        return
    if epsilon > 3000.0:  # the enumeration would need thousands of digits
        return
    x = np.linspace(-9.0, 9.0, 40)
    log_q, log_p = region_pair(base, np.unique(np.concatenate([x, x - min(float(exact.loss_of(base)), 9.0)])))
    orders = [order_b(log_q, log_p, curve, epsilon), _random_order(rng, log_q.size)]
    worst = mpf(0)
    for sequence in orders:
        with mp.workdps(60 + int(2.0 * epsilon / math.log(10.0) - min(float(np.min(log_q[log_q > -np.inf])), 0.0))):
            q = [mp.exp(mpf(float(z))) if z > -math.inf else mpf(0) for z in log_q[sequence]]
            p = [mp.exp(mpf(float(z))) if z > -math.inf else mpf(0) for z in log_p[sequence]]
            q = [z / mp.fsum(q) for z in q]
            p = [z / mp.fsum(p) for z in p]
            worst = max(worst, _enumerated(law, q, p, mpf(epsilon)))
    yield Check(name, delta, worst, math.inf, 1e-6 if not usual else 1e-9)


def _random_order(rng: random.Random, size: int) -> np.ndarray:
    cut = rng.randint(0, size)
    sequence = np.concatenate([np.arange(cut), np.arange(cut, size)[::-1]])
    return sequence if rng.random() < 0.7 else np.array(rng.sample(range(size), size))


@room
def refined_pure_dp(rng: random.Random) -> Iterator[Check]:
    epsilon, law = log_uniform(rng, 1e-12, 1e6), a_simple_law(rng)
    got = refined_pure(epsilon, law)
    e = mpf(epsilon)
    edge = 1 / (1 + mp.exp(e))

    def gain(u: mpf) -> mpf:
        v = u * mp.exp(e)
        return exact.log_density(law, u, 1 - u) - exact.log_density(law, v, 1 / (1 + mp.exp(-e)) * 0 + (1 - v))

    at_edge = exact.log_density(law, edge, 1 - edge) - exact.log_density(law, 1 - edge, edge)
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


# ---------------------------------------------------------------------------------------------------------------
# The whole question
# ---------------------------------------------------------------------------------------------------------------


@room
def whole(rng: random.Random) -> Iterator[Check]:
    base, law, delta = a_base(rng), a_law(rng), a_delta(rng)
    name = f"bound({base!r}, {law!r}, delta={delta!r})"
    answer = bound(base, law, delta=delta)
    document = answer.document()
    for row in answer.bounds:
        yield Check(f"{name} {row.method}", 0.0 if row.epsilon >= 0.0 else math.nan, mpf(0), 0.0, 0.0)
    for value in _numbers(document):
        yield Check(f"{name} document", 0.0 if math.isfinite(value) else math.nan, mpf(0), 0.0, 0.0)
    if answer.lower is not None:
        low = answer.lower.epsilon
        yield Check(f"{name} above its lower bound {low!r}", answer.epsilon, mpf(low), math.inf, 0.0)
        for row in answer.bounds:
            yield Check(f"{name} {row.method} above the lower bound {low!r}", row.epsilon, mpf(low), math.inf, 1e-9)


def _numbers(node: object) -> Iterator[float]:
    if isinstance(node, dict):
        for value in node.values():
            yield from _numbers(value)
    elif isinstance(node, list):
        for value in node:
            yield from _numbers(value)
    elif isinstance(node, float):
        yield node


# ---------------------------------------------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------------------------------------------


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
    failed: int = 0

    def fail(self, text: str) -> None:
        self.failed += 1
        if len(self.failures) < 20:
            self.failures.append(text)


def one_input(name: str, seed: int, tally: Tally) -> None:
    """One draw of a room; the seed alone repeats it."""
    start = time.perf_counter()
    tally.inputs += 1
    try:
        for check in ROOMS[name](random.Random(seed)):
            tally.checks += 1
            error = check.error()
            if math.isnan(error) or error < -check.below or error > check.above:
                true = mp.nstr(check.true, 17)
                tally.fail(f"{name} {seed}: {check.what}: {check.value!r}, true {true}, error {error:.3g}")
            if math.isfinite(error):
                tally.below, tally.above = min(tally.below, error), max(tally.above, error)
    except HpcalcError:
        tally.refused += 1
    except Exception:
        tally.fail(f"{name} {seed}: {traceback.format_exc(limit=-3)}")
    tally.seconds += time.perf_counter() - start


def certify(
    rooms: list[str], inputs: float = math.inf, seconds: float = math.inf, seed: int = 0, report: float = math.inf
) -> dict[str, Tally]:
    """Visit the rooms in turn, a slice of time each, until that many inputs or seconds are spent."""
    tallies = {name: Tally() for name in rooms}
    counters = dict.fromkeys(rooms, seed)
    start = shown = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while True:
            for name in rooms:
                until = time.perf_counter() + min(1.0, max(seconds / len(rooms), 0.05))
                while time.perf_counter() < until:
                    one_input(name, counters[name], tallies[name])
                    counters[name] += 1
                now = time.perf_counter()
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
            f"{tally.below:11.2e}{tally.above:11.2e}{each:9.2f}{tally.failed:8d}"
        )
    inputs, checks = sum(t.inputs for t in tallies.values()), sum(t.checks for t in tallies.values())
    print(f"{'all':18s}{inputs:9d}{checks:10d}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)} (default: all)")
    parser.add_argument("--inputs", type=float, default=math.inf)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=0, help="number of the first input of each room")
    parser.add_argument("--report", type=float, default=60.0, help="seconds between tables")
    given = parser.parse_args()
    unknown = [name for name in given.rooms if name not in ROOMS]
    if unknown:
        parser.error(f"no such room: {', '.join(unknown)}")
    tallies = certify(given.rooms or list(ROOMS), given.inputs, given.seconds, given.seed, given.report)
    show(tallies)
    for tally in tallies.values():
        print("\n".join(tally.failures))
    return 1 if any(tally.failed for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
