"""The formulas once more, in 50-digit arithmetic: what the package's answers are held against.

Nothing here comes from the package but its data classes, whose parameters are read as exact numbers. Every function
takes and returns ``mpf``.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

from hpcalc.guarantees import ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, PureDP
from hpcalc.laws import AtLeastOne, Binomial, FinitePmf, Fixed, Law, Poisson, TruncatedNegativeBinomial
from hpcalc.logspace import Prob

mp.mp.dps = 50

mpf = mp.mpf


def log1p(x: mpf) -> mpf:
    """``log(1+x)``, for x far below the working precision too."""
    return mp.log1p(x)


def log1mexp(x: mpf) -> mpf:
    """``log(1 - e^x)`` for x < 0."""
    return mp.log(-mp.expm1(x)) if x > -1 else log1p(-mp.exp(x))


def phi_tail(x: mpf) -> mpf:
    """``P[N(0,1) > x]`` with full relative accuracy."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def log_phi(x: mpf) -> mpf:
    """Log of the normal distribution function."""
    x = mpf(x)
    return mp.log(phi_tail(-x)) if x < 0 else log1p(-phi_tail(x))


# ---------------------------------------------------------------------------------------------------------------
# laws of K, at a rank given by (log u, log(1-u)): whichever of the two is small carries the digits
# ---------------------------------------------------------------------------------------------------------------


def rank(log_u: float, log_q: float) -> tuple[mpf, mpf]:
    """``(u, 1-u)`` from a double each."""
    if log_u < -0.69:
        u = mp.exp(mpf(log_u))
        return u, 1 - u
    q = mp.exp(mpf(log_q))
    return 1 - q, q


def log_power(x: mpf, q: mpf, n: mpf) -> mpf:
    """``n log(q)`` for q = 1 - x, without cancellation; 0 log 0 is 0."""
    if n == 0:
        return mpf(0)
    return n * (log1p(-x) if x < 0.5 else (mp.log(q) if q > 0 else -mp.inf))


def tnb_log_mean(eta: mpf, log_gamma: mpf) -> mpf:
    """``log(eta (1-gamma) / (gamma (1 - gamma^eta)))``."""
    if log_gamma == 0:
        return mpf(0)
    odds = mp.log(mp.expm1(-log_gamma))
    if eta == 0:
        return odds - mp.log(-log_gamma)
    return odds + mp.log(eta / -mp.expm1(eta * log_gamma))


def log_mean(law: Law) -> mpf:
    if isinstance(law, Poisson):
        return mp.log(mpf(law.mu))
    if isinstance(law, TruncatedNegativeBinomial):
        return tnb_log_mean(mpf(law.eta), mpf(law.log_gamma))
    if isinstance(law, Binomial):
        return mp.log(mpf(law.n) * mpf(law.p))
    if isinstance(law, Fixed):
        return mp.log(mpf(law.k))
    if isinstance(law, AtLeastOne):
        return log_mean(law.law) - mp.log(survival(law.law, mpf(1), mpf(0)))
    if isinstance(law, FinitePmf):
        return mp.log(mp.fsum(k * mpf(p) for k, p in law.probabilities) / _total(law))
    raise TypeError(law)


def _total(law: FinitePmf) -> mpf:
    return mp.fsum(mpf(p) for _, p in law.probabilities)


def log_density(law: Law, u: mpf, q: mpf) -> mpf:
    """``log F(u)``, F(u) = f'(1-u)."""
    if isinstance(law, Poisson):
        return mp.log(mpf(law.mu)) - mpf(law.mu) * u
    if isinstance(law, TruncatedNegativeBinomial):
        odds = mp.expm1(-mpf(law.log_gamma))
        return log_mean(law) - (mpf(law.eta) + 1) * log1p(odds * u)
    if isinstance(law, Binomial):
        p = mpf(law.p)
        return log_mean(law) + log_power(p * u, (1 - p) + p * q, mpf(law.n - 1))
    if isinstance(law, Fixed):
        return log_mean(law) + log_power(u, q, mpf(law.k - 1))
    if isinstance(law, AtLeastOne):
        return log_density(law.law, u, q) - mp.log(survival(law.law, mpf(1), mpf(0)))
    if isinstance(law, FinitePmf):
        terms = [k * mpf(p) * mp.exp(log_power(u, q, mpf(k - 1))) for k, p in law.probabilities if k > 0]
        return mp.log(mp.fsum(terms) / _total(law)) if any(terms) else -mp.inf
    raise TypeError(law)


def survival(law: Law, u: mpf, q: mpf) -> mpf:
    """``1 - f(1-u)``."""
    if isinstance(law, Poisson):
        return -mp.expm1(-mpf(law.mu) * u)
    if isinstance(law, TruncatedNegativeBinomial):
        eta, log_gamma = mpf(law.eta), mpf(law.log_gamma)
        if log_gamma == 0:
            return u
        depth = log1p(mp.expm1(-log_gamma) * u)  # L - w
        if eta == 0:
            return depth / -log_gamma
        return -mp.expm1(-eta * depth) / -mp.expm1(eta * log_gamma)
    if isinstance(law, Binomial):
        p = mpf(law.p)
        return -mp.expm1(log_power(p * u, (1 - p) + p * q, mpf(law.n)))
    if isinstance(law, Fixed):
        return -mp.expm1(log_power(u, q, mpf(law.k)))
    if isinstance(law, AtLeastOne):
        return survival(law.law, u, q) / survival(law.law, mpf(1), mpf(0))
    if isinstance(law, FinitePmf):
        parts = [mpf(p) * -mp.expm1(log_power(u, q, mpf(k))) for k, p in law.probabilities]
        return mp.fsum(parts) / _total(law)
    raise TypeError(law)


def log_pgf(law: Law, u: mpf, q: mpf) -> mpf:
    """``log f(1-u)``."""
    if isinstance(law, Poisson):
        return -mpf(law.mu) * u
    if isinstance(law, TruncatedNegativeBinomial):
        eta, log_gamma = mpf(law.eta), mpf(law.log_gamma)
        if log_gamma == 0:
            return mp.log(q)
        w = -mp.log(mp.exp(log_gamma) - mp.expm1(log_gamma) * u) if u < 0.5 else -log1p(mp.expm1(log_gamma) * q)
        if eta == 0:
            return mp.log(w / -log_gamma)
        return mp.log(mp.expm1(eta * w) / mp.expm1(-eta * log_gamma))
    if isinstance(law, Binomial):
        p = mpf(law.p)
        return log_power(p * u, (1 - p) + p * q, mpf(law.n))
    if isinstance(law, Fixed):
        return log_power(u, q, mpf(law.k))
    if isinstance(law, FinitePmf):
        return mp.log(mp.fsum(mpf(p) * mp.exp(log_power(u, q, mpf(k))) for k, p in law.probabilities) / _total(law))
    if isinstance(law, AtLeastOne):
        zero = log_pgf(law.law, mpf(1), mpf(0))
        return zero + mp.log(mp.expm1(log_pgf(law.law, u, q) - zero) / -mp.expm1(zero))
    raise TypeError(law)


def log_prob_zero(law: Law) -> mpf:
    if isinstance(law, (Poisson, Binomial)):
        return log_pgf(law, mpf(1), mpf(0))
    if isinstance(law, FinitePmf) and law.probabilities[0][0] == 0:
        return mp.log(mpf(law.probabilities[0][1]) / _total(law))
    return -mp.inf


# ---------------------------------------------------------------------------------------------------------------
# one run
# ---------------------------------------------------------------------------------------------------------------


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


def bernoulli_log_moment(order: mpf, p: tuple[mpf, mpf], r: tuple[mpf, mpf]) -> mpf:
    """``log sum p^a r^(1-a)`` over two outcomes."""
    total = mpf(0)
    for x, y in zip(p, r, strict=True):
        if x > 0:
            total += x**order * y ** (1 - order) if y > 0 else mp.inf
    return mp.log(total)


# ---------------------------------------------------------------------------------------------------------------
# conversions and the paper
# ---------------------------------------------------------------------------------------------------------------


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


def rank_of(point: Prob, index: int = 0) -> tuple[mpf, mpf]:
    """``(u, 1-u)`` of one entry of a Prob."""
    return rank(float(point.log_u.ravel()[index]), float(point.log_q.ravel()[index]))
