"""The paper's bounds: one function per theorem, lemma and corollary.

Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022 (arXiv 2110.03620). Each
function takes the guarantee of one run and the law of K, and where it says so the Rényi orders to restrict it to
(default: all, or the base's given ones); it returns the Rényi curve of the whole search. ``a`` is the order, ``rdp``
the curve of one run, ``f`` the probability generating function of K.

Where a statement of the paper holds under a condition that it does not state (Corollary 4, Theorem 6, Lemma 7), the
condition is checked and a sound replacement is used outside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hpcalc.bounds.bound import Bound, RenyiBound, monotone
from hpcalc.bounds.pure import with_slack
from hpcalc.bounds.renyi import RefinedRenyi, enclosure
from hpcalc.conversion import PURE, Conversion, RenyiCurve, delta_at, epsilon_at, minimise_over_orders
from hpcalc.errors import NoFiniteBound
from hpcalc.guarantees import Guarantee, repeat
from hpcalc.guarantees.mixture import Mixture, chosen
from hpcalc.laws import AnyRuns, AtMost, Fixed, Law, Poisson, RunCount, Threshold, TruncatedNegativeBinomial
from hpcalc.logspace import Array, log_expm1, softplus

_INF = math.inf
_PAPER = "Papernot and Steinke 2022, "


def _bound(name: str, cited: str, curve: RenyiCurve, conditions: tuple[str, ...] = ()) -> RenyiBound:
    return RenyiBound(name, _PAPER + cited, curve, conditions)


def _at_one_order(base: Guarantee, log_inverse: float, orders: Array | None, sharper: bool = False) -> float:
    """Least of ``((b-1) rdp(b) + L)/b`` over the free order b, L = ``log_inverse``.

    The sharper form is ``log(1 + (e^L - 1) e^((b-1) rdp(b)))/b``.
    """

    def cost(b: Array) -> Array:
        moment = (b - 1.0) * base.rdp(b)
        return np.asarray((softplus(log_expm1(log_inverse) + moment) if sharper else moment + log_inverse) / b)

    # b = 1 leaves the logarithm (no divergence of order 1 is needed), b = inf leaves the pure guarantee
    return min(minimise_over_orders(cost, orders)[0], log_inverse, base.pure_epsilon)


def _smallest(found: Sequence[RenyiBound]) -> RenyiBound:
    """Pointwise minimum of one or more bounds that hold together, the first at all orders that matter."""
    curves = [bound.curve for bound in found]
    names = dict.fromkeys(bound.citation.removeprefix(_PAPER).split(",")[0] for bound in found)
    pure = min(curve.pure_epsilon for curve in curves)
    curve = RenyiCurve(lambda a: np.min([one.rdp(a) for one in curves], axis=0), curves[0].orders, pure_epsilon=pure)
    notes = tuple(dict.fromkeys(condition for bound in found for condition in bound.conditions))
    return _bound(found[0].name, " / ".join(names), curve, notes)


def theorem_2(
    base: Guarantee, law: TruncatedNegativeBinomial, *, sharper: bool = False, orders: Array | None = None
) -> RenyiBound:
    """Theorem 2: K truncated negative binomial, any η > -1.

    ``rdp_A(a) = rdp(a) + (1+η)(1-1/b) rdp(b) + (1+η) log(1/γ)/b + log(E[K])/(a-1)``, least over the free order
    ``b >= 1``. ``sharper`` keeps the last line of the theorem's proof, ``(1+η)/b log(1 + (1/γ-1) e^((b-1) rdp(b)))``,
    instead of the two terms in b. It is never larger, and gives a single run back at E[K] = 1.
    """
    orders = base.orders if orders is None else orders
    name, cited = ("theorem-2-sharper", "Theorem 2, last line of its proof") if sharper else ("theorem-2", "Theorem 2")
    extra = (1.0 + law.eta) * _at_one_order(base, -law.log_gamma, orders, sharper)
    curve = RenyiCurve(lambda a: base.rdp(a) + extra + law.log_mean / (a - 1.0), orders)
    return _bound(name, cited, replace(curve, pure_epsilon=base.pure_epsilon + extra))


def corollary_3(base: Guarantee, law: TruncatedNegativeBinomial) -> RenyiBound:
    """Corollary 3: best-of-K of an ε-DP algorithm, K truncated negative binomial, is ``(2+η)ε``-DP for every γ."""
    epsilon = (2.0 + law.eta) * base.pure_epsilon
    curve = RenyiCurve(lambda a: np.full(a.shape, epsilon), np.array([_INF]), pure_epsilon=epsilon)
    return _bound("corollary-3", "Corollary 3", curve)


def corollary_4(base: Guarantee, law: TruncatedNegativeBinomial) -> RenyiBound:
    """Corollary 4: Theorem 2 in closed form for a ρ-zCDP base.

    With ``c = 2(1+η) sqrt(ρ log(1/γ)) - ηρ``: ``ρ(a-1) + log(E[K])/(a-1) + c``, flat (Remark 5) below the order
    ``a = 1 + sqrt(log(E[K])/ρ)`` where that is least. It takes the free order ``b = sqrt(log(1/γ)/ρ)``, which must be
    at least 1: for ``ρ > log(1/γ)`` the best legal b is 1 and ``c = ρ + (1+η) log(1/γ)``.
    """
    rho, eta, log_inverse_gamma = base.zcdp_rho, law.eta, -law.log_gamma
    constant = 2.0 * (1.0 + eta) * math.sqrt(rho * log_inverse_gamma) - eta * rho
    notes: tuple[str, ...] = ()
    if rho > log_inverse_gamma:
        constant = rho + (1.0 + eta) * log_inverse_gamma
        notes = ("ρ > log(1/γ): the closed form of Corollary 4 does not apply, Theorem 2 at free order 1 does",)
    log_mean = max(law.log_mean, 0.0)
    knee = math.sqrt(log_mean / rho) if rho > 0.0 else _INF

    def rdp(a: Array) -> Array:
        h = np.maximum(a - 1.0, knee)
        return np.asarray((rho * h + log_mean / h if rho > 0.0 else np.zeros(a.shape)) + constant, dtype=float)

    return _bound("corollary-4", "Corollary 4", RenyiCurve(rdp), notes)


def theorem_6(base: Guarantee, law: Poisson, *, orders: Array | None = None) -> RenyiBound:
    """Theorem 6: K Poisson with mean μ, ``rdp_A(a) = rdp(a) + μ δ̂ + log(μ)/(a-1)``, δ̂ at ``ε̂ = log(1 + 1/(a-1))``.

    δ̂ is the base's own profile where that is known. For μ < 1 the statement is false (for two equal output laws it
    claims a negative divergence): the sound ``rdp(a) + max(0, μ δ̂ + log(μ)/(a-1))`` replaces it.

    Notes
    -----
    With ``M = sup F(u)^a F(v)^(1-a)``, the theorem's proof shows ``log M <= x (a-1)`` for ``x = μ δ̂ + log(μ)/(a-1)``.
    The whole integral, K = 0 included, is at most ``1 + M (e^((a-1) rdp(a)) - 1)`` (R1). Where
    M >= 1, always so for μ >= 1, that is at most ``M e^((a-1) rdp(a))``, the theorem; where M < 1 it is at most
    ``e^((a-1) rdp(a))``.
    """

    def rdp(a: Array) -> Array:
        extra = law.mu * np.exp(base.log_profile(np.log1p(1.0 / (a - 1.0)))) + math.log(law.mu) / (a - 1.0)
        return np.asarray(base.rdp(a) + np.maximum(extra, 0.0), dtype=float)  # never negative for μ >= 1

    at_infinity = law.mu * math.exp(float(base.log_profile(0.0)))
    notes = ("μ < 1: Theorem 6 as stated is false there, a sound form replaces it",) if law.mu < 1.0 else ()
    orders = base.orders if orders is None else orders
    curve = RenyiCurve(rdp, orders, pure_epsilon=base.pure_epsilon + at_infinity)
    return _bound("theorem-6", "Theorem 6", curve, notes)


def lemma_7(base: Guarantee, law: Law, *, orders: Array | None = None) -> RenyiBound:
    """Lemma 7, any law of K: ``rdp_A(a) = log(f(0) + e^((a-1) rdp(a)) M)/(a-1)``.

    ``M = sup f'(q)^a f'(q')^(1-a)`` over the pairs of probabilities q, q' that the base's region allows. The paper
    states it for K >= 1; where K may be 0, that outcome adds its probability f(0).
    """
    curve = RenyiCurve(base.rdp, base.orders if orders is None else orders)
    return RefinedRenyi("lemma-7", _PAPER + "Lemma 7", curve, cells=enclosure(base, law))


def composition(base: Guarantee, count: int) -> RenyiBound:
    """Releasing all of at most ``count`` runs, and with them the best: ``k rdp(a)`` (Section 3.2, Appendix D.1)."""
    curve = RenyiCurve(lambda a: count * base.rdp(a), base.orders, pure_epsilon=count * base.pure_epsilon)
    return _bound("composition", "Section 3.2", curve)


@dataclass(eq=False)
class EveryRun(Bound):
    """k runs chosen in any way, each paid for: their composition, adaptive if need be, releases the best among them."""

    base: Guarantee
    count: int
    name: str = "composition"
    citation: str = "Adaptive composition (Papernot and Steinke 2022, Section 3.2)"

    @cached_property
    def _all(self) -> Guarantee:
        if isinstance(self.base, Mixture) and sum(self.base.counts) == self.count:
            return self.base.every_run
        return repeat(self.base, self.count)

    @property
    def curve(self) -> RenyiCurve:
        """The sum of the runs' curves."""
        return RenyiCurve(self._all.rdp, self._all.orders)

    def rdp(self, orders: Array) -> Array | None:
        return self._all.rdp(orders)

    def log_profile(self, epsilons: Array) -> Array:
        if len(self._all.views) > 1:  # the best conversion of the curve, beside losses, is not worth a second
            return self._all.log_profile(epsilons)
        return np.array([delta_at(self._all, float(epsilon)).value for epsilon in epsilons])

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        found = [Conversion(_INF, PURE)]
        for each in (rule, "cks") if rule == "best" else (rule,):  # a sum of curves may be below what is convolved
            with suppress(NoFiniteBound):
                found.append(epsilon_at(self._all, log_delta, each))
        return min(found, key=lambda answer: answer.value)


def lemma_20(base: Guarantee, law: Law, inner: Callable[[Guarantee, Law], RenyiBound]) -> RenyiBound:
    """Lemma 20: a base that holds only outside an event of probability ``base.slack`` = δ0.

    With K runs all of them avoid the event with probability ``f(1-δ0)``; given that, K follows the law thinned by
    ``1-δ0`` and every run satisfies the rest of the guarantee. So ``inner``, a bound such as :func:`theorem_2`, holds
    for that law and that rest, and ``1 - f(1-δ0)`` is added to δ.
    """
    core, thinned, added, _ = with_slack(base, law)
    found = inner(core, thinned)
    note = f"with probability {math.exp(added):.6g} some run leaves the guarantee; this is part of δ"
    cited = f"Lemma 20 on {found.citation.removeprefix(_PAPER)}"
    return _bound("lemma-20", cited, replace(found.curve, log_added_delta=added), (*found.conditions, note))


def lemma_22(law: AtMost, inner: RenyiBound) -> RenyiBound:
    """Lemma 22: K conditioned on ``K <= m``, from a bound for ``law.law``, its K = 0 part included.

    Adds ``log(1/P[K<=m])/(a-1) + log(1 + E[K; K>m]/(E[K] - E[K; K>m]))``.

    Notes
    -----
    With P = P[K <= m], the truncated f' is at most f'/P everywhere and at least ``f'(x) (E[K] - E[K; K>m]) / (E[K] P)``
    (their ratio falls in x, so it is least at x = 1), and f(0) becomes f(0)/P. Each part of ``e^((a-1) D)`` grows by at
    most ``P^-1 (E[K]/(E[K] - E[K; K>m]))^(a-1)``.
    """
    # E[K] - E[K; K > m] is P times the mean of the cut law; 1e-13 covers the rounding of sums of up to 1e5 terms
    log_inverse_mass = 1e-13 - law.log_kept
    shift = max(law.law.log_mean - law.log_mean - law.log_kept, 0.0) + 1e-13
    curve = replace(inner.curve, rdp=lambda a: inner.curve.rdp(a) + log_inverse_mass / (a - 1.0) + shift)
    curve = replace(curve, pure_epsilon=inner.curve.pure_epsilon + shift)
    return _bound("lemma-22", f"Lemma 22 on {inner.citation.removeprefix(_PAPER)}", curve, inner.conditions)


def proposition_15(base: Guarantee, law: Threshold, *, orders: Array | None = None) -> RenyiBound:
    """Proposition 15: run until the output is accepted, each run being accepted with probability at least p.

    Notes
    -----
    Let S be the accepted set, ``L = log(1/Q(S))`` and Q_S the conditional law. Then
    ``e^((a-1) D_a(Q_S||Q'_S)) = Q(S)^-a Q'(S)^(a-1) ∫_S dQ^a dQ'^(1-a)``. Hölder's inequality with exponent t bounds
    the integral by ``Q(S)^(1-1/t) e^((a-1) D_c(Q||Q'))``, ``c = 1 + t(a-1)``; the test S bounds
    ``Q'(S) <= (Q(S) e^(D_b(Q'||Q)))^(1-1/b)`` for every ``b >= 1``. Together, for all ``c >= a`` and ``b >= 1``,

    ``D_a(Q_S||Q'_S) <= D_c(Q||Q') + L/(c-1) + (1-1/b) D_b(Q'||Q) + L/b``,

    in which b and c are chosen independently of one another; the bound rises with L.
    """
    log_inverse_p, pure = -math.log(law.accept), base.pure_epsilon
    orders = base.orders if orders is None else orders
    second = _at_one_order(base, log_inverse_p, orders)
    first = monotone(RenyiCurve(lambda c: base.rdp(c) + log_inverse_p / (c - 1.0), orders))
    curve = RenyiCurve(lambda a: np.minimum(first.rdp(a), pure) + second, orders, pure_epsilon=pure + second)
    return _bound("proposition-15", "Proposition 15", curve)


def bounds(base: Guarantee, law: RunCount, orders: Array | None = None, lemma_7_too: bool = False) -> list[Bound]:
    """The paper's bounds for this base and this law, each sound; some may be infinite, and there may be none.

    A law with a theorem of its own is answered by that theorem, any other by Lemma 7 (``lemma_7_too``: beside it).
    """
    if isinstance(law, Threshold):
        return [proposition_15(base, law, orders=orders)]
    if isinstance(law, AnyRuns):
        return [EveryRun(chosen(base), law.k)]
    if not isinstance(law, Law) or base.slack >= 1.0:
        return []
    # where curves stand beside mechanisms more is known of all runs together than the sum of the curves
    every = [EveryRun(base, law.k)] if isinstance(law, Fixed) and len(base.views) > 1 else []
    if base.slack > 0.0:
        return [lemma_20(base, law, lambda core, thinned: _smallest(_theorems(core, thinned, orders))), *every]
    return [*_theorems(base, law, orders, lemma_7_too), *every]


def _theorems(base: Guarantee, law: Law, orders: Array | None, lemma_7_too: bool = False) -> list[RenyiBound]:
    """The theorems for a base that sets no probability aside."""
    found: list[RenyiBound] = []
    inner = law.law if isinstance(law, AtMost) else law
    if isinstance(inner, TruncatedNegativeBinomial):
        found = [theorem_2(base, inner, orders=orders), theorem_2(base, inner, sharper=True, orders=orders)]
        if base.pure_epsilon < _INF:
            found.append(corollary_3(base, inner))
        elif base.zcdp_rho < _INF:
            found.append(corollary_4(base, inner))
    elif isinstance(inner, Poisson):
        found = [theorem_6(base, inner, orders=orders)]
    if isinstance(law, AtMost) and found:
        found = [lemma_22(law, _smallest(found))]
    if not found or lemma_7_too:
        found.append(lemma_7(base, law, orders=orders))
    if law.max_runs is not None:
        found.append(composition(base, law.max_runs))
    return found
