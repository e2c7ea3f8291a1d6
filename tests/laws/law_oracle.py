"""Laws of K with 80 digits: probabilities by their definitions, ranks, and laws of each kind."""

import functools
import math

import exact
import mpmath as mp
import numpy as np

from hpcalc.laws import AtLeastOne, AtMost, Binomial, Clamped, FinitePmf, Fixed, Law, Poisson
from hpcalc.laws.families import TruncatedNegativeBinomial
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


@functools.cache
def exact_pmf(law, top=400):
    """Probabilities of 0..top with 80 digits."""
    if isinstance(law, (Poisson, TruncatedNegativeBinomial, Binomial)):
        return exact.pmf(law, min(top, law.max_runs or top))
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
