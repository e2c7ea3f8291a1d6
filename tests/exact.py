"""The formulas once more, in 50-digit arithmetic: what the package's answers are held against.

Nothing here comes from the package but its data classes, whose parameters are read as exact numbers. Every function
takes and returns ``mpf``, but for laws of K, which NumPy can be asked for instead (``m=np``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np

from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, PureDP
from hpcalc.laws import AtLeastOne, AtMost, Binomial, Clamped, FinitePmf, Fixed, Law, Poisson, TruncatedNegativeBinomial
from hpcalc.logspace import Prob

mp.mp.dps = 50

mpf = mp.mpf


def log1p(x: mpf) -> mpf:
    """``log(1+x)``, for x far below the working precision too."""
    return mp.log1p(x)


def phi_tail(x: mpf) -> mpf:
    """``P[N(0,1) > x]`` with full relative accuracy."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def log_phi(x: mpf) -> mpf:
    """Log of the normal distribution function."""
    x = mpf(x)
    return mp.log(phi_tail(-x)) if x < 0 else log1p(-phi_tail(x))


def log(x: mpf) -> mpf:
    """-inf at 0."""
    return mp.log(x) if x else -mp.inf


# laws of K by their textbook forms, at a rank u from the best; who needs digits of 1 - f or near u = 1 asks for more


def rank(log_u: float, log_q: float) -> tuple[mpf, mpf]:
    """``(u, 1-u)`` from a double each: whichever of the two is small carries the digits."""
    if log_u < -0.69:
        u = mp.exp(mpf(log_u))
        return u, 1 - u
    q = mp.exp(mpf(log_q))
    return 1 - q, q


def rank_of(point: Prob, index: int = 0) -> tuple[mpf, mpf]:
    """``(u, 1-u)`` of one entry of a Prob."""
    return rank(float(point.log_u.ravel()[index]), float(point.log_q.ravel()[index]))


def tnb_mean(eta: mpf, log_gamma: mpf) -> mpf:
    """``eta (1-gamma) / (gamma (1 - gamma^eta))``, and its limits."""
    if log_gamma == 0:
        return mpf(1)
    return mp.expm1(-log_gamma) * (eta / -mp.expm1(eta * log_gamma) if eta else 1 / -log_gamma)


def pmf(law: Law, last: int) -> list[mpf]:
    """P[K = 0], ..., P[K = last], by each law's recurrence."""
    if isinstance(law, Poisson):
        first, ratio = [mp.exp(-mpf(law.mu))], lambda k: mpf(law.mu) / k
    elif isinstance(law, TruncatedNegativeBinomial):
        eta, gamma = mpf(law.eta), mp.exp(mpf(law.log_gamma))
        first = [mpf(0), tnb_mean(eta, mpf(law.log_gamma)) * gamma ** (eta + 1)]
        ratio = lambda k: (1 - gamma) * (eta + k - 1) / k  # noqa: E731
    else:
        assert isinstance(law, Binomial)
        return [mp.binomial(law.n, k) * mpf(law.p) ** k * (1 - mpf(law.p)) ** (law.n - k) for k in range(last + 1)]
    for k in range(len(first), last + 1):
        first.append(first[-1] * ratio(k))
    return first[: last + 1]


@cache
def _terms(law: Law, digits: int) -> list[tuple[int, mpf]]:
    """Numbers of runs and their probabilities, where there are finitely many."""
    with mp.workdps(digits):
        if isinstance(law, FinitePmf):
            found = [(k, mpf(p)) for k, p in law.probabilities]
        else:
            assert isinstance(law, (AtMost, Clamped))
            masses = pmf(law.law, law.m)
            if isinstance(law, Clamped):
                masses[-1] += 1 - mp.fsum(masses)
            found = [(k, p) for k, p in enumerate(masses) if p]
        total = mp.fsum(p for _, p in found)
        return [(k, p / total) for k, p in found]


def _polynomial(terms: list[tuple[int, Any]], q: Any) -> Any:
    """Sum of ``weight q^power``, from the largest power down."""
    total, last = 0 * q, terms[-1][0]
    for power, weight in reversed(terms):
        total, last = total * q ** (last - power) + weight, power
    return total * q**last


def pgf(law: Law, u: Any, q: Any = None, m: Any = mp) -> Any:
    """``f(q) = E[q^K]`` at q = 1 - u."""
    q = 1 - u if q is None else q
    number = float if m is np else mpf
    if isinstance(law, Poisson):
        return m.exp(-number(law.mu) * u)
    if isinstance(law, TruncatedNegativeBinomial) and law.log_gamma < 0:
        eta, gamma = number(law.eta), m.exp(number(law.log_gamma))
        inside = gamma + (1 - gamma) * u if m is np else 1 - (1 - gamma) * q  # 1 exactly at q = 0
        return (inside**-eta - 1) / (gamma**-eta - 1) if eta else m.log(inside) / m.log(gamma)
    if isinstance(law, Binomial):
        return (1 - number(law.p) + number(law.p) * q) ** law.n
    if isinstance(law, AtLeastOne):
        zero = number(pgf(law.law, mpf(1)))
        return (pgf(law.law, u, q, m) - zero) / (1 - zero)
    if isinstance(law, (Fixed, TruncatedNegativeBinomial)):
        return q ** (law.k if isinstance(law, Fixed) else 1)
    return _polynomial([(k, number(p)) for k, p in _terms(law, mp.mp.dps)], q)


def survival(law: Law, u: Any, m: Any = mp) -> Any:
    """``1 - f(1-u)``: the probability that some run has a rank below u."""
    return 1 - pgf(law, u, m=m)


def density(law: Law, u: Any, q: Any = None, m: Any = mp) -> Any:
    """``F(u) = f'(q)`` at q = 1 - u."""
    q = 1 - u if q is None else q
    number = float if m is np else mpf
    if isinstance(law, Poisson):
        return number(law.mu) * pgf(law, u, q, m)
    if isinstance(law, TruncatedNegativeBinomial):
        mean, gamma = (number(x) for x in (tnb_mean(mpf(law.eta), mpf(law.log_gamma)), mp.exp(mpf(law.log_gamma))))
        return mean * (gamma / (gamma + (1 - gamma) * u)) ** (number(law.eta) + 1)
    if isinstance(law, Binomial):
        return law.n * number(law.p) * (1 - number(law.p) + number(law.p) * q) ** (law.n - 1)
    if isinstance(law, Fixed):
        return law.k * q ** (law.k - 1)
    if isinstance(law, AtLeastOne):
        return density(law.law, u, q, m) / number(survival(law.law, mpf(1)))
    return _polynomial([(k - 1, number(k * p)) for k, p in _terms(law, mp.mp.dps) if k], q)


def log_density(law: Law, u: mpf, q: mpf | None = None) -> mpf:
    return log(density(law, u, q))


def log_mean(law: Law) -> mpf:
    return log_density(law, mpf(0))


def log_prob_zero(law: Law) -> mpf:
    return log(pgf(law, mpf(1)))


# one run


def loss_of(base: Guarantee) -> mpf:
    """The scale of one run's loss: ε, 1/sigma, 1/scale or ρ."""
    if isinstance(base, (PureDP, ApproxDP)):
        return mpf(base.epsilon)
    if isinstance(base, Gaussian):
        return 1 / mpf(base.sigma)
    if isinstance(base, Laplace):
        return 1 / mpf(base.scale)
    if isinstance(base, ZCDP):
        return mpf(base.rho)
    raise TypeError(base)


def rdp(base: Guarantee, order: float) -> mpf:
    a, x = mpf(order), loss_of(base)
    if isinstance(base, ZCDP):
        return x * a
    if isinstance(base, Gaussian):
        return a * x * x / 2
    if a == mp.inf:
        return x
    # log1p of what the moment exceeds 1 by keeps its digits while loss and order are small
    if isinstance(base, PureDP):
        excess = mp.expm1(a * x) * -mp.expm1((1 - a) * x) / (1 + mp.exp(x))
    elif isinstance(base, Laplace):
        excess = (a * mp.expm1((a - 1) * x) + (a - 1) * mp.expm1(-a * x)) / (2 * a - 1)
    else:
        raise TypeError(base)
    return log1p(excess) / (a - 1)


def log_profile(base: Guarantee, t: float) -> mpf:
    """Log of the mechanism's own privacy profile at ``t >= 0``."""
    t, x = mpf(t), loss_of(base)
    if isinstance(base, (PureDP, ApproxDP)):
        delta = -mp.expm1(t - x) / (1 + mp.exp(-x)) if t < x else mpf(0)
        if isinstance(base, ApproxDP):
            delta = mpf(base.delta) + (1 - mpf(base.delta)) * delta
    elif isinstance(base, Laplace):
        delta = -mp.expm1((t - x) / 2) if t < x else mpf(0)
    elif isinstance(base, Gaussian):
        y = t / x - x / 2
        extra = int(max(0, mp.log(1 / x, 10))) + int(max(0, mp.log(abs(y) + 1, 10)))
        with mp.extradps(2 * extra + 20):
            delta = phi_tail(y) - mp.exp(t) * phi_tail(y + x)
    else:
        raise TypeError(base)
    return mp.log(delta) if delta > 0 else -mp.inf


def region(base: Guarantee, u: mpf, q: mpf) -> tuple[mpf, mpf]:
    """``(V(u), 1 - V(u))`` in closed form (not for a Gaussian, which is sampled by its normal score)."""
    x = loss_of(base)
    if isinstance(base, PureDP):
        if u <= 1 / (1 + mp.exp(x)):
            v = mp.exp(x) * u
            return v, 1 - v
        return 1 - mp.exp(-x) * q, mp.exp(-x) * q
    if isinstance(base, Laplace):
        if u <= mp.exp(-x) / 2:
            v = mp.exp(x) * u
            return v, 1 - v
        qv = mp.exp(-x) / (4 * u) if u <= mpf(1) / 2 else mp.exp(-x) * q
        return 1 - qv, qv
    if isinstance(base, ApproxDP):
        delta = mpf(base.delta)
        if u >= 1 - delta:
            return mpf(1), mpf(0)
        v, qv = region(PureDP(base.epsilon), u / (1 - delta), (q - delta) / (1 - delta))
        return delta + (1 - delta) * v, (1 - delta) * qv
    raise TypeError(base)


# conversions and the paper


def cks_epsilon(order: mpf, divergence: mpf, log_delta: mpf) -> mpf:
    a = mpf(order)
    return divergence + mp.log((a - 1) / a) - (log_delta + mp.log(a)) / (a - 1)


def cks_log_delta(order: mpf, divergence: mpf, epsilon: mpf) -> mpf:
    a = mpf(order)
    return (a - 1) * (divergence - epsilon) - mp.log(a) + (a - 1) * mp.log((a - 1) / a)


def least(objective: Callable[[mpf], mpf], start: float, width: float = 3.0, rounds: int = 90) -> mpf:
    """Minimum of a unimodal function of ``log(order - 1)`` around ``log(start - 1)``, by golden section."""
    ratio = (mp.sqrt(5) - 1) / 2
    centre = mp.log(mpf(start) - 1)
    lo, hi = centre - width, centre + width

    def f(x: mpf) -> mpf:
        return objective(1 + mp.exp(x))

    a, b = hi - ratio * (hi - lo), lo + ratio * (hi - lo)
    fa, fb = f(a), f(b)
    for _ in range(rounds):
        if fa < fb:
            hi, b, fb = b, a, fa
            a = hi - ratio * (hi - lo)
            fa = f(a)
        else:
            lo, a, fa = a, b, fb
            b = lo + ratio * (hi - lo)
            fb = f(b)
    return min(fa, fb)
