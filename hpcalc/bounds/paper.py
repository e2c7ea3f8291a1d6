"""The paper's bounds: one function per theorem, lemma and corollary.

Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022 (arXiv 2110.03620). Each
function returns the Rényi curve of the whole search as a :class:`~hpcalc.conversion.Curve`, which
``hpcalc.conversion`` turns into (ε, δ). ``a`` is the order, ``rdp`` the curve of one run, ``f`` the probability
generating function of K.

Where a statement of the paper holds under a condition that it does not state, the condition is checked and a sound
replacement is used outside it:

* Corollary 4 needs ``ρ <= log(1/γ)``; beyond it the free order of Theorem 2 is 1.
* Theorem 6 needs ``μ >= 1``: the atom K = 0 carries divergence 0, not ``log(μ)/(a-1) < 0``.
* Lemma 7 needs the term ``f(0)`` where K may be 0.
* Three lines of Corollary 16 need ``a >= 2``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from hpcalc.bounds.ranks import RankCurve, rank_curve
from hpcalc.bounds.refined import log_supremum
from hpcalc.conversion import Curve, minimise_over_orders
from hpcalc.errors import InvalidInput
from hpcalc.guarantees import Guarantee
from hpcalc.laws import AtMost, Law, Poisson, RunCount, Threshold, TruncatedNegativeBinomial
from hpcalc.logspace import Array, Prob, distinct, log1mexp, log_expm1, logaddexp, softplus

__all__ = [
    "Bound",
    "composition",
    "corollary_3",
    "corollary_4",
    "corollary_16",
    "corollary_21",
    "curves",
    "lemma_7",
    "lemma_20",
    "lemma_22",
    "monotone",
    "proposition_15",
    "proposition_17",
    "smallest",
    "theorem_2",
    "theorem_6",
]

_INF = math.inf
_PAPER = "Papernot and Steinke 2022"

#: A bound as :func:`lemma_20` takes it.
Bound: TypeAlias = Callable[[Guarantee, Law], Curve]


def _tnb(law: RunCount, theorem: str) -> TruncatedNegativeBinomial:
    if not isinstance(law, TruncatedNegativeBinomial):
        raise InvalidInput("dist", law.name, f"{theorem} covers tnb, geometric and logarithmic only")
    return law


def _over_h(value: float, orders: Array) -> Array:
    """``value / (a - 1)``, 0 at order inf."""
    return np.asarray(value / (orders - 1.0), dtype=float)


def smallest(found: Sequence[Curve], method: str, citation: str) -> Curve:
    """Pointwise minimum of one or more curves that hold together and set the same probability aside."""

    def rdp(orders: Array) -> Array:
        return np.asarray(np.min([curve.rdp(orders) for curve in found], axis=0), dtype=float)

    free = any(curve.orders is None for curve in found)
    given = [curve.orders for curve in found if curve.orders is not None]
    return Curve(
        rdp,
        method,
        citation,
        None if free or not given else distinct(np.concatenate(given)),
        tuple(dict.fromkeys(condition for curve in found for condition in curve.conditions)),
        max(curve.log_added_delta for curve in found),
        min(curve.pure_epsilon for curve in found),
    )


def _smallest_of(found: Sequence[Curve]) -> Curve:
    names = dict.fromkeys(curve.citation.removeprefix(f"{_PAPER}, ").split(",")[0] for curve in found)
    return smallest(found, found[0].method, f"{_PAPER}, {' / '.join(names)}")


def monotone(curve: Curve) -> Curve:
    """Remark 5: Rényi divergence never decreases with the order, so the least value at any larger order holds too.

    Parameters
    ----------
    curve : Curve
        Any bound; only ``rdp`` changes.

    Returns
    -------
    Curve

    Notes
    -----
    With the overall minimum at order a*, orders below a* take that minimum, orders above keep their own value. Over
    given orders the minimum runs over all larger ones.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> law = TruncatedNegativeBinomial.from_gamma(1.0, 0.025)
    >>> plain = theorem_2(ZCDP(0.1), law)
    >>> [round(float(curve.rdp(np.array([2.0]))[0]), 9) for curve in (plain, monotone(plain))]
    [6.118325302, 3.544168771]
    """
    if curve.orders is None:
        value, order = minimise_over_orders(curve.rdp, None)
        known, best = np.array([-_INF if order is None else order]), np.array([value])
    else:
        known = distinct(curve.orders)
        best = np.minimum.accumulate(curve.rdp(known)[::-1])[::-1]

    def rdp(orders: Array) -> Array:
        place = np.searchsorted(known, orders)
        larger = np.where(place < known.size, best[np.minimum(place, known.size - 1)], _INF)
        return np.asarray(np.minimum(curve.rdp(orders), larger), dtype=float)

    return Curve(
        rdp,
        curve.method,
        f"{curve.citation}, Remark 5",
        curve.orders,
        curve.conditions,
        curve.log_added_delta,
        curve.pure_epsilon,
    )


# ---------------------------------------------------------------------------------------------------------------
# Truncated negative binomial K
# ---------------------------------------------------------------------------------------------------------------


def theorem_2(base: Guarantee, law: RunCount, *, sharper: bool = False, orders: Array | None = None) -> Curve:
    """Theorem 2: K truncated negative binomial.

    ``rdp_A(a) = rdp(a) + (1+η)(1-1/b) rdp(b) + (1+η) log(1/γ)/b + log(E[K])/(a-1)``, least over the free order
    ``b >= 1``.

    Parameters
    ----------
    base : Guarantee
        One run.
    law : TruncatedNegativeBinomial
        Law of K, any η > -1.
    sharper : bool
        Keep the last line of the theorem's proof, ``(1+η)/b log(1 + (1/γ-1) e^((b-1) rdp(b)))`` instead of the two
        terms in b. It is never larger, and gives a single run back at E[K] = 1.
    orders : ndarray, optional
        Restrict both orders to these; default all, or the base's given ones.

    Returns
    -------
    Curve

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> from hpcalc.conversion import epsilon_from_rdp
    >>> law = TruncatedNegativeBinomial.from_gamma(1.0, 0.1)
    >>> round(epsilon_from_rdp(theorem_2(ZCDP(0.1), law), math.log(1e-6)).value, 4)
    4.0678
    """
    law = _tnb(law, "Theorem 2")
    eta, log_inverse_gamma = law.eta, -law.log_gamma
    orders = base.orders if orders is None else orders
    pure = base.pure_epsilon

    if sharper:
        log_ratio = float(log_expm1(log_inverse_gamma))

        def terms(b: Array) -> Array:
            return np.asarray(softplus(log_ratio + (b - 1.0) * base.rdp(b)) / b, dtype=float)

    else:

        def terms(b: Array) -> Array:
            return np.asarray((1.0 - 1.0 / b) * base.rdp(b) + log_inverse_gamma / b, dtype=float)

    least, _ = minimise_over_orders(terms, orders)
    # b = 1 leaves log(1/γ) (no divergence of order 1 is needed), b = inf leaves the pure guarantee
    constant = (1.0 + eta) * min(least, log_inverse_gamma, pure)

    def rdp(a: Array) -> Array:
        return np.asarray(base.rdp(a) + constant + _over_h(law.log_mean, a), dtype=float)

    return Curve(
        rdp,
        "theorem-2-sharper" if sharper else "theorem-2",
        f"{_PAPER}, Theorem 2{', last line of its proof' if sharper else ''}",
        orders,
        pure_epsilon=pure + constant,
    )


def corollary_3(base: Guarantee, law: RunCount) -> Curve:
    """Corollary 3: best-of-K of an ε-DP algorithm, K truncated negative binomial, is ``(2+η)ε``-DP for every γ.

    Examples
    --------
    >>> from hpcalc.guarantees import PureDP
    >>> corollary_3(PureDP(1.0), TruncatedNegativeBinomial.from_gamma(0.0, 1e-3)).pure_epsilon
    2.0
    """
    law = _tnb(law, "Corollary 3")
    epsilon = (2.0 + law.eta) * base.pure_epsilon

    def rdp(a: Array) -> Array:
        return np.full(np.shape(a), epsilon)

    return Curve(rdp, "corollary-3", f"{_PAPER}, Corollary 3", np.array([_INF]), pure_epsilon=epsilon)


def corollary_4(base: Guarantee, law: RunCount) -> Curve:
    """Corollary 4: Theorem 2 in closed form for a ρ-zCDP base.

    With ``c = 2(1+η) sqrt(ρ log(1/γ)) - ηρ``: ``ρ(a-1) + log(E[K])/(a-1) + c``, flat (Remark 5) below the order
    ``a = 1 + sqrt(log(E[K])/ρ)`` where that is least. It takes the free order ``b = sqrt(log(1/γ)/ρ)``, which must be
    at least 1: for ``ρ > log(1/γ)`` the best legal b is 1 and ``c = ρ + (1+η) log(1/γ)``.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> curve = corollary_4(ZCDP(0.1), TruncatedNegativeBinomial.from_gamma(1.0, 0.025))
    >>> round(float(curve.rdp(np.array([2.0]))[0]), 9)
    3.544168771
    """
    law = _tnb(law, "Corollary 4")
    rho, eta, log_inverse_gamma = base.zcdp_rho, law.eta, -law.log_gamma
    valid = rho <= log_inverse_gamma
    if valid:
        constant = 2.0 * (1.0 + eta) * math.sqrt(rho * log_inverse_gamma) - eta * rho
    else:
        constant = rho + (1.0 + eta) * log_inverse_gamma
    log_mean = max(law.log_mean, 0.0)
    knee = math.sqrt(log_mean / rho) if rho > 0.0 else _INF

    def rdp(a: Array) -> Array:
        h = np.maximum(np.asarray(a, dtype=float) - 1.0, knee)
        with np.errstate(invalid="ignore"):
            value = np.where(np.isinf(h), _INF, rho * h + log_mean / h) if rho > 0.0 else np.zeros(np.shape(a))
        return np.asarray(value + constant, dtype=float)

    note = (
        ()
        if valid
        else ("ρ > log(1/γ): the closed form of Corollary 4 does not apply, Theorem 2 at free order 1 does",)
    )
    return Curve(rdp, "corollary-4", f"{_PAPER}, Corollary 4", None, note)


# ---------------------------------------------------------------------------------------------------------------
# Poisson K
# ---------------------------------------------------------------------------------------------------------------


def theorem_6(base: Guarantee, law: RunCount, *, orders: Array | None = None) -> Curve:
    """Theorem 6: K Poisson with mean μ.

    ``rdp_A(a) = rdp(a) + μ δ̂ + log(μ)/(a-1)``, δ̂ the base's δ at ``ε̂ = log(1 + 1/(a-1))``.

    Parameters
    ----------
    base : Guarantee
        One run; its own profile is used where it is known.
    law : Poisson
        Law of K. For μ < 1 the statement is false (for two equal output laws it claims a negative divergence): the
        sound ``rdp(a) + max(0, μ δ̂ + log(μ)/(a-1))`` replaces it.
    orders : ndarray, optional
        Restrict the orders to these; default all, or the base's given ones.

    Returns
    -------
    Curve

    Notes
    -----
    With ``M = sup F(u)^a F(v)^(1-a)``, the theorem's proof shows ``log M <= x (a-1)`` for ``x = μ δ̂ + log(μ)/(a-1)``.
    The whole integral, K = 0 included, is at most ``1 + M (e^((a-1) rdp(a)) - 1)`` (R1). Where
    M >= 1, always so for μ >= 1, that is at most ``M e^((a-1) rdp(a))``, the theorem; where M < 1 it is at most
    ``e^((a-1) rdp(a))``.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> from hpcalc.conversion import epsilon_from_rdp
    >>> round(epsilon_from_rdp(theorem_6(ZCDP(0.1), Poisson(10.0)), math.log(1e-6)).value, 4)
    4.6074
    """
    if not isinstance(law, Poisson):
        raise InvalidInput("dist", law.name, "Theorem 6 covers poisson only")
    mu = law.mu
    orders = base.orders if orders is None else orders

    def rdp(a: Array) -> Array:
        a = np.asarray(a, dtype=float)
        delta = np.exp(base.log_profile(np.log1p(1.0 / (a - 1.0))))
        extra = np.maximum(mu * delta + _over_h(math.log(mu), a), 0.0)  # never negative for μ >= 1
        return np.asarray(base.rdp(a) + extra, dtype=float)

    pure = base.pure_epsilon
    at_infinity = mu * float(np.exp(base.log_profile(np.array([0.0]))[0]))
    note = ("μ < 1: Theorem 6 as stated is false there, a sound form replaces it",) if mu < 1.0 else ()
    return Curve(rdp, "theorem-6", f"{_PAPER}, Theorem 6", orders, note, pure_epsilon=pure + at_infinity)


# ---------------------------------------------------------------------------------------------------------------
# Any K
# ---------------------------------------------------------------------------------------------------------------


def lemma_7(base: Guarantee, law: Law, *, orders: Array | None = None, samples: RankCurve | None = None) -> Curve:
    """Lemma 7, any law of K: ``rdp_A(a) = log(f(0) + e^((a-1) rdp(a)) M)/(a-1)``.

    ``M = sup f'(q)^a f'(q')^(1-a)`` over the pairs of probabilities q, q' that the base's region allows. The paper
    states it for K >= 1; where K may be 0, that outcome adds its probability f(0).

    Parameters
    ----------
    base : Guarantee
        One run.
    law : Law
        Law of K.
    orders : ndarray, optional
        Restrict the orders to these; default all, or the base's given ones.
    samples : RankCurve, optional
        Samples of the region under this law, if they are at hand. M is an upper bound over the cells between them.
    """
    samples = rank_curve(base, law) if samples is None else samples
    log_zero = law.log_prob_zero

    def rdp(a: Array) -> Array:
        a = np.asarray(a, dtype=float)
        flat = a.ravel()
        out = np.full(flat.shape, _INF)
        finite = np.isfinite(flat)
        if finite.any():
            order = flat[finite]
            h = order - 1.0
            one_run = base.rdp(order)
            with np.errstate(invalid="ignore", over="ignore"):
                log_m = log_supremum(samples, order)
                value = one_run + log_m / h
                if log_zero > -_INF:
                    value = logaddexp(log_zero, h * one_run + log_m) / h
                # the logarithms carry a few ulp each; next to order 1 dividing by a-1 makes them count
                value = np.maximum(value, 0.0) + 1e-15 * (1.0 + np.abs(log_m) + h * one_run) / h
            out[finite] = np.where(np.isnan(value), _INF, value)
        return out.reshape(a.shape)

    return Curve(rdp, "lemma-7", f"{_PAPER}, Lemma 7", base.orders if orders is None else orders)


def composition(base: Guarantee, law: RunCount) -> Curve:
    """Releasing all of at most k runs, and with them the best: ``k rdp(a)`` (Section 3.2, Appendix D.1).

    Parameters
    ----------
    base : Guarantee
        One run.
    law : RunCount
        A law with a largest possible K.
    """
    if law.max_runs is None:
        raise InvalidInput("dist", law.name, "composition needs a largest number of runs: fixed, pmf or --max-runs")
    count = float(law.max_runs)

    def rdp(a: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.asarray(count * base.rdp(a), dtype=float)

    return Curve(rdp, "composition", f"{_PAPER}, Section 3.2", base.orders, pure_epsilon=count * base.pure_epsilon)


def proposition_17(epsilon: float, runs: int, orders: Array | float) -> Array:
    """Proposition 17: lower bound on the Rényi divergence of best-of-k, k fixed, of some ε-DP algorithm.

    ``k ε - k log(1+e^-ε)/(a-1)``: composition cannot be beaten by more than that, so no bound for a random K may be
    applied to a fixed one.

    Parameters
    ----------
    epsilon : float
        ε of one run, >= 0.
    runs : int
        k >= 1.
    orders : array_like
        Orders > 1.

    Examples
    --------
    >>> round(float(proposition_17(1.0, 200, 1e9)), 6)
    200.0
    """
    order = np.asarray(orders, dtype=float)
    return np.asarray(runs * (epsilon - float(softplus(-epsilon)) / (order - 1.0)), dtype=float)


def lemma_20(base: Guarantee, law: Law, inner: Bound) -> Curve:
    """Lemma 20: a base that holds only outside an event of probability δ0.

    With K runs all of them avoid the event with probability ``f(1-δ0)``; given that, K follows the law thinned by
    ``1-δ0`` and every run satisfies the rest of the guarantee. So a bound for that law and that rest holds, and
    ``1 - f(1-δ0)`` is added to δ.

    Parameters
    ----------
    base : Guarantee
        One run, with ``base.slack`` = δ0. Several parts are composed before they come here.
    law : Law
        Law of K.
    inner : callable
        Bound for ``(base.core, thinned law)``, e.g. :func:`theorem_2`.

    Returns
    -------
    Curve
        With ``log_added_delta = log(1 - f(1-δ0))``.
    """
    if base.slack == 0.0:
        return inner(base, law)
    if base.slack >= 1.0:
        raise InvalidInput("approx_dp", base.slack, "give δ < 1: at 1 a run may reveal everything")
    found = inner(base.core, law.thin(math.log1p(-base.slack)))
    added = float(law.log_survival(Prob.from_u(np.array([base.slack])))[0])
    note = (f"with probability {math.exp(added):.6g} some run leaves the guarantee; this is part of δ",)
    citation = f"{_PAPER}, Lemma 20 on {found.citation.removeprefix(_PAPER + ', ')}"
    return Curve(found.rdp, "lemma-20", citation, found.orders, (*found.conditions, *note), added, found.pure_epsilon)


def corollary_21(base: Guarantee, law: Law) -> Curve:
    """Corollary 21: an (ε0, δ0)-DP base, by Corollary 3 (truncated negative binomial K) or Theorem 6 (Poisson K).

    Examples
    --------
    >>> from hpcalc.guarantees import ApproxDP
    >>> curve = corollary_21(ApproxDP(0.5, 1e-8), TruncatedNegativeBinomial.from_gamma(0.0, 0.5))
    >>> curve.pure_epsilon, round(math.exp(curve.log_added_delta) * 1e8, 4)
    (1.0, 1.4427)
    """
    return lemma_20(base, law, theorem_6 if isinstance(law, Poisson) else corollary_3)


def lemma_22(law: AtMost, inner: Curve) -> Curve:
    """Lemma 22: K conditioned on ``K <= m``.

    Adds ``log(1/P[K<=m])/(a-1) + log(1 + E[K; K>m]/(E[K] - E[K; K>m]))`` to a bound for the untruncated law.

    Parameters
    ----------
    law : AtMost
        The truncated law.
    inner : Curve
        A bound on the whole search with ``law.law``, its K = 0 part included.

    Notes
    -----
    With P = P[K <= m], the truncated f' is at most f'/P everywhere and at least ``f'(x) (E[K] - E[K; K>m]) / (E[K] P)``
    (their ratio falls in x, so it is least at x = 1), and f(0) becomes f(0)/P. Each part of ``e^((a-1) D)`` grows by at
    most ``P^-1 (E[K]/(E[K] - E[K; K>m]))^(a-1)``.
    """
    tail, tail_share = law.log_tail_mass, law.law.log_tail_mean(law.m) - law.law.log_mean
    # 1 + t/(E - t) = 1/(1 - t/E) with t = E[K; K > m]; where K rarely ends below m the head has the digits
    log_inverse_mass = -float(log1mexp(tail)) if tail < -0.7 else -law.log_kept
    shift = -float(log1mexp(tail_share)) if tail_share < -0.7 else law.law.log_mean - law.log_mean - law.log_kept

    def rdp(a: Array) -> Array:
        return np.asarray(inner.rdp(a) + _over_h(log_inverse_mass, a) + shift, dtype=float)

    citation = f"{_PAPER}, Lemma 22 on {inner.citation.removeprefix(_PAPER + ', ')}"
    return Curve(
        rdp, "lemma-22", citation, inner.orders, inner.conditions, inner.log_added_delta, inner.pure_epsilon + shift
    )


# ---------------------------------------------------------------------------------------------------------------
# Conditional sampling
# ---------------------------------------------------------------------------------------------------------------


def proposition_15(base: Guarantee, law: RunCount, *, orders: Array | None = None) -> Curve:
    """Proposition 15: run until the output is accepted, each run being accepted with probability at least p.

    Parameters
    ----------
    base : Guarantee
        One run.
    law : Threshold
        Carries p: a lower bound on the probability of acceptance for every input, or that of the stop coin tossed
        before each run.
    orders : ndarray, optional
        Restrict all orders to these; default all, or the base's given ones.

    Notes
    -----
    Let S be the accepted set, ``L = log(1/Q(S))`` and Q_S the conditional law. Then
    ``e^((a-1) D_a(Q_S||Q'_S)) = Q(S)^-a Q'(S)^(a-1) ∫_S dQ^a dQ'^(1-a)``. Hölder's inequality with exponent t bounds
    the integral by ``Q(S)^(1-1/t) e^((a-1) D_c(Q||Q'))``, ``c = 1 + t(a-1)``; the test S bounds
    ``Q'(S) <= (Q(S) e^(D_b(Q'||Q)))^(1-1/b)`` for every ``b >= 1``. Together, for all ``c >= a`` and ``b >= 1``,

    ``D_a(Q_S||Q'_S) <= D_c(Q||Q') + L/(c-1) + (1-1/b) D_b(Q'||Q) + L/b``,

    in which b and c are chosen independently of one another; the bound rises with L.

    Examples
    --------
    >>> from hpcalc.guarantees import PureDP
    >>> round(proposition_15(PureDP(1.0), Threshold(0.1)).pure_epsilon, 9)
    2.0
    """
    log_inverse_p = _log_inverse_accept(law)
    orders = base.orders if orders is None else orders
    pure = base.pure_epsilon

    def first(c: Array) -> Array:
        return np.asarray(base.rdp(c) + _over_h(log_inverse_p, c), dtype=float)

    least, _ = minimise_over_orders(lambda b: (1.0 - 1.0 / b) * base.rdp(b) + log_inverse_p / b, orders)
    second = min(least, log_inverse_p, pure)
    by_order = monotone(Curve(first, "proposition-15", f"{_PAPER}, Proposition 15", orders))

    def rdp(a: Array) -> Array:
        return np.asarray(np.minimum(by_order.rdp(a), pure) + second, dtype=float)

    return Curve(rdp, "proposition-15", f"{_PAPER}, Proposition 15", orders, pure_epsilon=pure + second)


def corollary_16(base: Guarantee, law: RunCount, line: int) -> Curve:
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

    Parameters
    ----------
    base : Guarantee
        One run.
    law : Threshold
        Carries p.
    line : int
        1 to 5.
    """
    log_inverse_p = _log_inverse_accept(law)
    if line not in (1, 2, 3, 4, 5):
        raise InvalidInput("line", line, "Corollary 16 has lines 1 to 5")
    pure = base.pure_epsilon

    def rdp(orders: Array) -> Array:
        a = np.asarray(orders, dtype=float)
        if line in (2, 3, 5):
            a = np.maximum(a, 2.0)
        h = a - 1.0
        if line == 1:
            return np.asarray(base.rdp(a) + log_inverse_p + log_inverse_p / h, dtype=float)
        if line == 4:
            return np.asarray(base.rdp(a) + pure + log_inverse_p / h, dtype=float)
        # (1 - 1/b) rdp(b) at b = a - 1; at b = 1 nothing is left of it
        test = np.where(h > 1.0, (1.0 - 1.0 / h) * base.rdp(np.maximum(h, 1.0 + 1e-12)), 0.0)
        if line == 2:
            return np.asarray(base.rdp(a) + test + 2.0 * log_inverse_p / h, dtype=float)
        if line == 3:
            return np.asarray(base.rdp(2.0 * a - 1.0) + test + 1.5 * log_inverse_p / h, dtype=float)
        return np.asarray(pure + test + log_inverse_p / h, dtype=float)

    return Curve(rdp, f"corollary-16-line-{line}", f"{_PAPER}, Corollary 16, line {line}", base.orders)


def _log_inverse_accept(law: RunCount) -> float:
    if not isinstance(law, Threshold):
        raise InvalidInput("dist", law.name, "conditional sampling is threshold")
    return -math.log(law.accept)


# ---------------------------------------------------------------------------------------------------------------
# What applies
# ---------------------------------------------------------------------------------------------------------------


def curves(
    base: Guarantee,
    law: RunCount,
    *,
    orders: Array | None = None,
    samples: RankCurve | None = None,
    sharper: bool = True,
) -> list[Curve]:
    """The paper's bounds for this base and this law, each sound.

    A law with a theorem of its own is answered by that theorem, any other by Lemma 7.

    Parameters
    ----------
    base : Guarantee
        One run.
    law : RunCount
        Law of the number of runs.
    orders : ndarray, optional
        Restrict the orders to these.
    samples : RankCurve, optional
        Samples of the region under this law, which Lemma 7 needs, if they are at hand.
    sharper : bool
        Give the last line of Theorem 2's proof beside the theorem (bounds made of others use it in any case).

    Returns
    -------
    list of Curve
        Some may be infinite everywhere; empty only where a run may reveal everything (``base.slack`` is 1).
    """
    if isinstance(law, Threshold):
        return [proposition_15(base, law, orders=orders)]
    if not isinstance(law, Law):
        raise InvalidInput("dist", law.name, "no bound of the paper covers this law")
    if base.slack >= 1.0:
        return []
    if base.slack > 0.0:
        return [lemma_20(base, law, lambda core, thinned: _smallest_of(curves(core, thinned, orders=orders)))]
    found: list[Curve] = []
    inner = law.law if isinstance(law, AtMost) else law
    if isinstance(inner, TruncatedNegativeBinomial):
        found.append(theorem_2(base, inner, orders=orders))
        if sharper or isinstance(law, AtMost):
            found.append(theorem_2(base, inner, sharper=True, orders=orders))
        if base.pure_epsilon < _INF:
            found.append(corollary_3(base, inner))
        elif base.zcdp_rho < _INF:
            found.append(corollary_4(base, inner))
    elif isinstance(inner, Poisson):
        found.append(theorem_6(base, inner, orders=orders))
    else:
        found.append(lemma_7(base, law, orders=orders, samples=samples))
    if isinstance(law, AtMost) and isinstance(inner, (TruncatedNegativeBinomial, Poisson)):
        found = [lemma_22(law, _smallest_of(found))]
    if law.max_runs is not None:
        found.append(composition(base, law))
    return found
