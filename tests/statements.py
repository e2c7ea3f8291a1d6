"""Statements of the paper that the product does not need, for what reproduces or checks it."""

from __future__ import annotations

import math

import numpy as np

from hpcalc.bounds.bound import RenyiBound
from hpcalc.bounds.paper import corollary_3, lemma_20, theorem_6
from hpcalc.conversion import RenyiCurve
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law, Poisson, RunCount, Threshold
from hpcalc.logspace import Array, softplus


def corollary_16(base: Guarantee, law: RunCount, line: int) -> RenyiBound:
    """Corollary 16: Proposition 15 at five fixed choices of its orders (b, c); :func:`proposition_15` takes the best.

    With ``L = log(1/p)``:

    ====  =========  ========  ========================================================
    line  b          c         bound at order a
    ====  =========  ========  ========================================================
    1     1          a         ``rdp(a) + L a/(a-1)``
    2     a-1        a         ``rdp(a) + (a-2)/(a-1) rdp(a-1) + 2 L/(a-1)``
    3     a-1        2a-1      ``rdp(2a-1) + (a-2)/(a-1) rdp(a-1) + 3/2 L/(a-1)``
    4     inf        a         ``rdp(a) + rdp(inf) + L/(a-1)``
    5     a-1        inf       ``rdp(inf) + (a-2)/(a-1) rdp(a-1) + L/(a-1)``
    ====  =========  ========  ========================================================

    Lines 2, 3 and 5 need ``a >= 2`` so that ``b >= 1``; smaller orders take the value at order 2 (Remark 5).
    """
    assert isinstance(law, Threshold)
    log_inverse_p = -math.log(law.accept)
    pure = base.pure_epsilon

    def rdp(orders: Array) -> Array:
        a = np.asarray(orders, dtype=float)
        if line in (2, 3, 5):
            a = np.maximum(a, 2.0)
        h = a - 1.0
        # (1 - 1/b) rdp(b) at b = a - 1; at b = 1 nothing is left of it
        test = np.where(h > 1.0, (1.0 - 1.0 / h) * base.rdp(np.maximum(h, 1.0 + 1e-12)), 0.0)
        first, second, times = {
            1: (base.rdp(a), log_inverse_p, 1.0),
            2: (base.rdp(a), test, 2.0),
            3: (base.rdp(2.0 * a - 1.0), test, 1.5),
            4: (base.rdp(a), pure, 1.0),
            5: (pure, test, 1.0),
        }[line]
        return np.asarray(first + second + times * log_inverse_p / h, dtype=float)

    return RenyiBound(f"corollary-16-line-{line}", f"Corollary 16, line {line}", RenyiCurve(rdp, base.orders))


def proposition_17(epsilon: float, runs: int, orders: Array | float) -> Array:
    """Proposition 17: lower bound on the Rényi divergence of best-of-k, k fixed, of some ε-DP algorithm.

    ``k ε - k log(1+e^-ε)/(a-1)``: composition cannot be beaten by more than that, so no bound for a random K may be
    applied to a fixed one.
    """
    order = np.asarray(orders, dtype=float)
    return np.asarray(runs * (epsilon - float(softplus(-epsilon)) / (order - 1.0)), dtype=float)


def corollary_21(base: Guarantee, law: Law) -> RenyiBound:
    """Corollary 21: an (ε0, δ0)-DP base, by Corollary 3 (truncated negative binomial K) or Theorem 6 (Poisson K)."""
    return lemma_20(base, law, theorem_6 if isinstance(law, Poisson) else corollary_3)
