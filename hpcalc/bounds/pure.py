"""R3: the exact price of best-of-K for a pure DP base.

For an ε-DP base A is exactly ``ε + sup_u [log F(u) - log F(e^ε u)]``-DP, ``u <= 1/(1+e^ε)``; randomized response with a
split outcome attains it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hpcalc.bounds.bound import Bound
from hpcalc.conversion import PURE, Conversion
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Adaptive, Law, RunCount, TruncatedNegativeBinomial
from hpcalc.logspace import Array, Prob, log1mexp, softplus


def with_slack(base: Guarantee, law: Law) -> tuple[Guarantee, Law, float, str]:
    """Lemma 20: guarantee and law that are left without the (ε, δ) parts, log of what they add to δ, and a note."""
    if base.slack == 0.0:
        return base, law, -math.inf, ""
    added = float(law.success(Prob.from_u(np.array([base.slack]))).log_u[0])
    note = " with Lemma 20 of Papernot and Steinke 2022 for the probability set aside"
    return base.core, law.thin(math.log1p(-base.slack)), added, note


@dataclass(eq=False)
class RefinedPure(Bound):
    """``value``-DP outside an event of probability ``exp(log_added_delta)``."""

    value: float
    log_added_delta: float
    citation: str
    conditions: tuple[str, ...]
    name: str = "refined-pure"

    def rdp(self, orders: Array) -> Array:
        return np.full(np.shape(orders), self.value if self.log_added_delta == -math.inf else math.inf)

    def log_profile(self, epsilons: Array) -> Array:
        return np.where(epsilons >= self.value, self.log_added_delta, 0.0)

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        return Conversion(self.value if self.log_added_delta <= log_delta else math.inf, PURE)


def bounds(base: Guarantee, law: RunCount, orders: Array | None = None) -> Iterator[RefinedPure]:
    """R3, where one run is pure DP but for the probability it sets aside."""
    if isinstance(law, Law) and base.slack < 1.0 and base.core.pure_epsilon < math.inf:
        core, thinned, added, note = with_slack(base, law)
        where = "supremum at u = 1/(1+e^ε)" if law.affine_power else "supremum searched over certified cells"
        citation = "Refined pure-DP bound R3 (hpcalc-theory(7)), exact" + note
        yield RefinedPure(refined_pure(core.pure_epsilon, thinned), added, citation, (where,))
    if isinstance(law, Adaptive):
        # as many times the price of one run's proposal and training: (2+η), and no more than there are runs
        times = 2.0 + law.law.eta if isinstance(law.law, TruncatedNegativeBinomial) else math.inf
        times = min(times, math.inf if law.max_runs is None else law.max_runs)
        value = times * (base.pure_epsilon + math.log(law.high / law.low)) * (1.0 + 1e-14)
        citation = "(2+η)(ε + log(HIGH/LOW)), or so much a run, for proposals of bounded density (hpcalc-theory(7))"
        if value < math.inf:
            yield RefinedPure(value, -math.inf, citation, ())


def refined_pure(epsilon: float, law: Law) -> float:
    """R3: smallest ε' such that best-of-K of every ε-DP algorithm is ε'-DP."""
    if epsilon in (0.0, math.inf):
        return epsilon
    return epsilon + (law.gain_at_edge(epsilon) if law.affine_power else _searched_gain(epsilon, law))


def _searched_gain(epsilon: float, law: Law) -> float:
    """Certified ``sup log F(u) - log F(v)``, ``v = e^ε u``, over ``u <= 1/(1+e^ε)``, to about 1e-5 of it.

    ``log F`` is convex in ``log(1-u)``, with a slope m(u) that falls with u: the gain lies between ``m(v) d`` and
    ``m(u) d`` with ``d = log((1-u)/(1-v))``. On a cell between two nodes it is at most m at the left end times d at the
    right end. Also, the chord lies above ``log F(u)`` and the tangent at the left end of v below ``log F(v)``;
    ``log(1-v)`` falls ever faster beside ``log(1-u)``, so the difference of the two lines is largest at an end.
    """
    # Nodes by the log odds z of v, whose last value, at u = 1/(1+e^ε), is ε; from u = 0 on. As K <= 2^53 the supremum
    # is not in the first cell: m(0) e^-80 is far below m(v) d at z = -37.
    z = np.append(-math.inf, np.linspace(-80.0, epsilon, 257))[None, :]
    best = settled = 0.0
    for _ in range(12):
        v = Prob.from_logit(z)
        u = Prob.from_log_u(v.log_u - epsilon)
        log_f, log_g = law.log_density(u), law.log_density(v)
        rounding = 1e-15 * (10.0 + np.abs(log_f) + np.abs(log_g))  # of m, relatively; of F up to 37 times that
        m_u, m_v = (
            np.exp(law.log_density_slope(at) + at.log_q - log_density + rounding)
            for at, log_density in ((u, log_f), (v, log_g))
        )
        d = softplus(z + log1mexp(-epsilon))  # as 1 - u = (1-v) + (1 - e^-ε) v
        gain = log_f - log_g
        best = max(best, float(np.max(np.clip(gain, m_v * d, m_u * d))))
        right = log_f[:, 1:] - log_g[:, :-1] - m_v[:, :-1] * np.diff(v.log_q)
        lines = np.maximum(gain[:, :-1], right) + 50.0 * (rounding[:, :-1] + rounding[:, 1:])
        cell = np.minimum(lines, m_u[:, :-1] * d[:, 1:])
        live = cell > best * (1.0 + 1e-5)
        settled = max(settled, float(np.max(cell[~live], initial=0.0)))
        if not 0 < np.count_nonzero(live) <= 4096:
            break
        z = np.linspace(z[:, :-1][live], z[:, 1:][live], 9, axis=1)
    return max(settled, float(np.max(cell))) * (1.0 + 1e-11)
