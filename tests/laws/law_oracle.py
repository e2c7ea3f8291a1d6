"""Laws of K with 80 digits, from their definitions: what the tests of laws compare with."""

import functools
import math

import mpmath as mp
import numpy as np

from hpcalc.laws import (
    AtLeastOne,
    AtMost,
    Binomial,
    Clamped,
    FinitePmf,
    Fixed,
    Law,
    Poisson,
    TruncatedNegativeBinomial,
)
from hpcalc.logspace import Prob

TNB = TruncatedNegativeBinomial


def close(got, want, tolerance=2e-12, floor=1e-300):
    got = float(got)
    if mp.isinf(want):
        assert got == float(want)
        return
    assert math.isfinite(got)
    assert abs(mp.mpf(got) - want) <= tolerance * max(abs(want), mp.mpf(floor)), (got, mp.nstr(want, 20))


# Ranks given by u (small ones) or by q = 1 - u, so that both ends are reached with all digits.
RANKS = [(u, None) for u in ("1e-400", "1e-320", "1e-30", "1e-9", "0.01", "0.3", "0.5", "0.9")]
RANKS += [(None, q) for q in ("1e-3", "1e-12", "1e-300", "1e-350")]


def rank_of(u, q):
    """A rank, and the exact u and q that its logarithms stand for."""
    if "0" in (u, q):
        log_u, log_q = ((-math.inf, 0.0), (0.0, -math.inf))[u is None]
        return Prob(np.array([log_u]), np.array([log_q])), mp.exp(log_u), mp.exp(log_q)
    if u is not None:
        u = mp.mpf(u)
        rank = Prob(np.array([float(mp.log(u))]), np.array([float(mp.log1p(-u))]))
        log_u = mp.mpf(float(rank.log_u[0]))
        return rank, mp.exp(log_u), -mp.expm1(log_u)
    q = mp.mpf(q)
    rank = Prob(np.array([float(mp.log1p(-q))]), np.array([float(mp.log(q))]))
    log_q = mp.mpf(float(rank.log_q[0]))
    return rank, -mp.expm1(log_q), mp.exp(log_q)


def log_or_none(x):
    """log x, -inf at 0."""
    return mp.log(x) if x else mp.mpf("-inf")


def log_pair(f, s):
    """log f and log(1-f), from f and s = 1 - f."""
    return (mp.log(f) if f < 0.5 else mp.log1p(-s)), (mp.log(s) if s < 0.5 else mp.log1p(-f))


class ExactTNB:
    """Definition 1 with 80 digits, by L = log(1/gamma)."""

    def __init__(self, eta, log_gamma):
        self.eta, self.size = mp.mpf(eta), -mp.mpf(log_gamma)
        self.gamma, self.rest = mp.exp(-self.size), -mp.expm1(-self.size)

    def mean(self):
        if self.eta == 0:
            return self.rest / (self.gamma * self.size)
        return self.eta * self.rest / (self.gamma * -mp.expm1(-self.eta * self.size))

    def sd(self):
        mean = self.mean()
        return mp.sqrt(mean * (self.eta + 1) * self.rest / self.gamma + mean - mean * mean)

    def quantile_mean(self):
        eta, gamma, size = self.eta, self.gamma, self.size
        if eta == 0:
            return 1 - (1 - gamma * size / self.rest) / size
        if eta == 1:
            return 1 - (size / self.rest - 1) / (1 / gamma - 1)
        return 1 - (-mp.expm1((eta - 1) * size) / ((1 - eta) * self.rest) - 1) / mp.expm1(eta * size)

    def log_density(self, u):
        return mp.log(self.mean()) - (self.eta + 1) * mp.log1p(self.rest / self.gamma * u)

    def log_density_slope(self, u):
        odds = self.rest / self.gamma
        return mp.log(self.mean() * (self.eta + 1) * odds) - (self.eta + 2) * mp.log1p(odds * u)

    def pgf(self, u, q):
        w = -mp.log(self.gamma + self.rest * u) if u < 0.5 else -mp.log1p(-self.rest * q)
        d = mp.log1p(self.rest / self.gamma * u)
        if self.eta == 0:
            return w / self.size, d / self.size
        full = self.eta * self.size
        return mp.expm1(self.eta * w) / mp.expm1(full), mp.expm1(-self.eta * d) / mp.expm1(-full)

    def pmf(self, k):
        if self.eta == 0:
            return self.rest**k / (k * self.size)
        return self.rest**k * mp.rf(self.eta, k) / mp.factorial(k) / mp.expm1(self.eta * self.size)


@functools.cache
def exact_pmf(law, top=400):
    """Probabilities of 0..top with 80 digits, from the definition."""
    if isinstance(law, Poisson):
        mu = mp.mpf(law.mu)
        return [mp.exp(-mu) * mu**k / mp.factorial(k) for k in range(top + 1)]
    if isinstance(law, TruncatedNegativeBinomial):
        if law.log_gamma == 0:
            return [mp.mpf(int(k == 1)) for k in range(top + 1)]
        exact = ExactTNB(law.eta, law.log_gamma)
        return [mp.mpf(0)] + [exact.pmf(k) for k in range(1, top + 1)]
    if isinstance(law, Binomial):
        p = mp.mpf(law.p)
        return [mp.binomial(law.n, k) * p**k * (1 - p) ** (law.n - k) for k in range(law.n + 1)]
    if isinstance(law, Fixed):
        return [mp.mpf(int(k == law.k)) for k in range(law.k + 1)]
    if isinstance(law, FinitePmf):
        given = {k: mp.mpf(p) for k, p in law.probabilities}
        return [given.get(k, mp.mpf(0)) for k in range(max(given) + 1)]
    inner = exact_pmf(law.law, top)
    if isinstance(law, Clamped):
        return [*inner[: law.m], mp.fsum(inner[law.m :])]
    inner = inner[: law.m + 1] if isinstance(law, AtMost) else [mp.mpf(0), *inner[1:]]
    total = mp.fsum(inner)
    return [p / total for p in inner]


LAWS: list[Law] = [
    Poisson(0.3),
    Poisson(10.0),
    TNB.with_mean(1.5, eta=-0.5),
    TNB.with_mean(3.0, eta=0.0),
    TNB.with_mean(4.0, eta=1.0),
    TNB.with_mean(4.0, eta=6.5),
    TNB.from_log_gamma(0.7, 0.0),
    TNB.from_log_gamma(0.5, -1.0),
    TNB.from_log_gamma(2.0, -1.0),
    Binomial(7, 0.2),
    Binomial(3, 1.0),
    Fixed(1),
    Fixed(5),
    FinitePmf(((0, 0.25), (1, 0.25), (40, 0.5))),
    FinitePmf(((3, 0.25), (4, 0.75))),
    AtMost(Poisson(10.0), 30),
    AtMost(Poisson(10.0), 4),
    AtMost(TNB.with_mean(10.0, eta=0.0), 12),
    AtMost(Binomial(7, 0.2), 6),
    Clamped(Poisson(10.0), 12),
    Clamped(TNB.with_mean(4.0, eta=1.0), 3),
    AtLeastOne(Poisson(0.3)),
    AtLeastOne(Binomial(7, 0.2)),
    AtLeastOne(AtMost(Poisson(0.3), 3)),
    AtMost(AtLeastOne(Poisson(2.0)), 3),
    AtLeastOne(FinitePmf((0.9, 0.0, 0.1))),
    AtLeastOne(TNB.with_mean(4.0, eta=1.0)),
]
