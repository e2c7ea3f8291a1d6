"""Bounds beyond the paper: R1 (Rényi), R2 (privacy profile), R3 (pure DP, exact) and R4 (conditional sampling).

Notation: Q, Q' are the output laws of one run on neighbouring inputs, A, A' those of the whole search;
``F(u) = f'(1-u)`` for the PGF f of K; V is the base's region, delta_Q its privacy profile. Refine the outputs by a
uniform tie-break, so that under Q the rank u (probability of ranking at or above an output) is uniform on [0, 1], and
let v be the same probability under Q'. On K >= 1, A has density F(u) with respect to Q and A' density F(v) with
respect to Q', and ``u <= V(v)``, ``v <= V(u)``.

**R1.** ``exp((a-1) D_a(A||A')) = f(0) + ∫ w dR`` with ``w = F(u)^a F(v)^(1-a) <= M`` and ``dR = dQ^a dQ'^(1-a)``,
``∫ dR <= exp((a-1) rdp(a)) =: E``; hence the bound ``log(f(0) + M E)/(a-1)`` for every law. Where f' is a power of an
affine function ``s = c + b x`` (or its exponential limit), w is a function of ``z = s^a s'^(1-a)``, and the tangent
inequality ``x^a y^(1-a) >= a r^(a-1) x - (a-1) r^a y`` at ``r = s/s'`` gives ``dR >= dz/b``, an exact differential.
So ``∫ (M-w) dR >= ∫ (M-w) dz/b = M - (1-f(0))`` and the bound improves to ``log(1 + M (E-1))/(a-1)``.

**R2.** ``H_{e^eps}(A||A') = ∫ [F(u) dQ - e^eps F(v) dQ']_+ <= ∫ h(e^eps dQ'/dQ) dQ`` with
``h(s) = max_u [F(u) - F(V(u)) s]_+``. h is convex and decreasing, so it is a mixture of hinges ``J_j (c_j - s)_+``,
and each hinge integrates to ``J_j c_j`` times the base's hockey-stick divergence of order ``e^eps / c_j``: with
``w_j = J_j c_j`` and ``s_j = log c_j``, ``delta_A(eps) <= sum_j w_j delta_Q(eps - s_j)``.

**R3.** For an ε-DP base A is exactly ``ε + sup_u [log F(u) - log F(e^ε u)]``-DP, ``u <= 1/(1+e^ε)``; randomized
response with a split outcome attains it.

**R4.** Conditioning on an event of probability at least p: ``delta_A(eps) <= delta_Q(eps - log(V(p)/p)) / p``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcalc.bounds.ranks import RankCurve, RunLaw, rank_curve
from hpcalc.guarantees import Guarantee
from hpcalc.logspace import (
    Array,
    Indices,
    Prob,
    log1mexp,
    log_expm1,
    logaddexp,
    logsubexp,
    logsumexp,
    softplus,
)

__all__ = [
    "LARGEST_EPSILON",
    "Envelope",
    "Price",
    "ProfileBound",
    "RefinedRDP",
    "conditional_log_profile",
    "conditional_pure",
    "log_supremum",
    "refined_pure",
]

#: Where the search for an epsilon that meets a delta ends.
LARGEST_EPSILON = 1e9


# ---------------------------------------------------------------------------------------------------------------
# R1
# ---------------------------------------------------------------------------------------------------------------


def log_supremum(curve: RankCurve, orders: Array) -> Array:
    """Certified upper bound on ``log sup_u F(u)^a F(V(u))^(1-a)`` for each order a.

    Parameters
    ----------
    curve : RankCurve
        Samples of F and F(V).
    orders : ndarray, shape (m,)
        Orders > 1.

    Returns
    -------
    ndarray, shape (m,)

    Notes
    -----
    On each edge of the curve's dominating polygon both functions are linear in u, and ``A^a B^(1-a)`` is convex in
    (A, B): its maximum is at a corner.
    """
    return np.asarray(np.max(_corners(curve, np.atleast_1d(np.asarray(orders, dtype=float))), axis=1), dtype=float)


def _corners(curve: RankCurve, orders: Array) -> Array:
    """Per order and corner of the polygon ``a log A - (a-1) log B``; nodes and tips of triangles take turns."""
    log_b, log_a = curve.vertices
    order = orders[:, None]
    with np.errstate(invalid="ignore"):
        out = np.where(np.isneginf(log_a), -np.inf, order * log_a - (order - 1.0) * log_b)
    if np.isposinf(out[:, -2]).any():
        # An F with F(1) = 0 ends in (0, 0), beside a tip that may be (A, 0): the argument below bounds that cell.
        out[:, -2] = _tail_bound(curve, orders)
    return out


def _tail_bound(curve: RankCurve, orders: Array) -> Array:
    """Bound on the last cell when F vanishes at u = 1 like ``c q^(m-1)``, q = 1-u, m = the least possible K.

    ``F(u) / q^(m-1)`` is a power series in q without negative terms: it lies between c and its value where the cell
    begins. The base's own Rényi bound on tests at order 2a, ``q^(2a) q_v^(1-2a) <= e^((2a-1) rdp(2a))``, bounds the
    ratio q/q_v.
    """
    far = Prob(np.zeros(2), np.array([-690.0, -700.0]))
    log_far = curve.law.log_density(far)
    power = round(float(log_far[0] - log_far[1]) / 10.0)
    rounding = 1e-12  # of the sums of hundreds
    log_c = float(log_far[1]) + 700.0 * power - rounding
    h, h2 = orders - 1.0, 2.0 * orders - 1.0
    log_q = float(curve.rank.log_q[-2])
    log_top = float(curve.log_f[-2]) - power * log_q + rounding
    with np.errstate(invalid="ignore"):
        moment = h * curve.base.rdp(2.0 * orders) + log_q * (1.0 - h / h2)
        out = orders * log_top - h * log_c + power * moment
    return np.asarray(np.where(np.isfinite(out), out, np.inf), dtype=float)


# Into how many pieces sharpening cuts cells, round by round, and the number of nodes at which it ends.
_PIECES = (8, 8, 4, *(2,) * 12)
_LARGEST = 20_000


@dataclass(frozen=True, eq=False)
class RefinedRDP:
    """R1: Rényi curve of the whole search.

    Parameters
    ----------
    base : Guarantee
        One run. Needs a finite Rényi curve.
    law : RunLaw
        Law of K.
    curve : RankCurve, optional
        Shared samples of F and F(V).

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> from hpcalc.laws import TruncatedNegativeBinomial
    >>> law = TruncatedNegativeBinomial.from_gamma(1.0, 0.1)
    >>> round(float(RefinedRDP(ZCDP(0.1), law).sharpen(2.0).rdp(2.0)), 4)
    1.3352
    """

    base: Guarantee
    law: RunLaw
    curve: RankCurve | None = None

    method = "refined-rdp"

    @cached_property
    def _curve(self) -> RankCurve:
        return self.curve if self.curve is not None else rank_curve(self.base, self.law)

    @property
    def orders(self) -> Array | None:
        """Orders at which the curve is known; None for all."""
        return self.base.orders

    def log_m(self, orders: Array) -> Array:
        """``log M`` of the module's docstring at each order (certified from above)."""
        return log_supremum(self._curve, orders)

    def rdp(self, orders: Array | float) -> Array:
        """Bound on the whole search's Rényi divergence at each order (shape kept)."""
        order = np.asarray(orders, dtype=float)
        flat = order.ravel()
        finite = np.isfinite(flat)
        out = np.full(flat.shape, np.inf)
        if finite.any():
            out[finite] = self._from_log_m(flat[finite], self.log_m(flat[finite]))
        if not finite.all():
            out = np.minimum(out, refined_pure(self.base.pure_epsilon, self.law))
        return out.reshape(order.shape)

    def estimate(self, orders: Array) -> Array:
        """The same on the samples alone: no bound, but close to the value that :meth:`sharpen` at an order leads to."""
        return self._from_log_m(orders, np.max(_corners(self._curve, orders)[:, 0::2], axis=1))

    def _from_log_m(self, order: Array, log_m: Array) -> Array:
        h = order - 1.0
        with np.errstate(invalid="ignore", over="ignore"):
            moment = h * self.base.rdp(order)
            if self.law.affine_power:
                value = softplus(log_m + log_expm1(moment)) / h
            else:
                # the logarithm is close to 0 next to order 1: its rounding, divided by h, must err upwards
                value = (logaddexp(self.law.log_prob_zero, log_m + moment) + 4e-15) / h
        # 1e-12 covers the rounding of the logarithms above; the divergence itself is never negative
        value = np.where(np.isnan(value), np.inf, value)
        return np.asarray(np.maximum(value, 0.0) * (1.0 + 1e-12), dtype=float)

    def sharpen(self, orders: float | Array, target: float = 1e-6) -> RefinedRDP:
        """The same bound with the curve refined where its suprema at the given orders lie."""
        curve = self._curve
        order = np.atleast_1d(np.asarray(orders, dtype=float))
        for pieces in _PIECES:
            corners = _corners(curve, order)
            nodes, tips = corners[:, 0::2], corners[:, 1::2]
            top, known = np.max(tips, axis=1), np.max(nodes, axis=1)
            with np.errstate(invalid="ignore"):  # a supremum that is inf stays so: no tip is above that
                enough = known + np.maximum(0.1 * (top - known), target * np.maximum(1.0, np.abs(known)))
            finer = curve.refine((tips > enough[:, None]).any(axis=0), pieces) if curve.x.size <= _LARGEST else curve
            if finer is curve:
                break
            curve = finer
        return RefinedRDP(self.base, self.law, curve)


# ---------------------------------------------------------------------------------------------------------------
# R2
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Envelope:
    """``delta_A(eps) <= sum_j w_j delta_Q(eps - s_j)``: the weights and shifts of R2.

    Attributes
    ----------
    log_weights, shifts : ndarray, shape (m,)
        ``log w_j`` and ``s_j``; a shift of ``inf`` is a constant.
    """

    log_weights: Array
    shifts: Array

    def log_delta(self, base: Guarantee, epsilon: Array | float) -> Array:
        """Log of the bound on the whole search's delta at each epsilon (shape kept)."""
        eps = np.asarray(epsilon, dtype=float)
        with np.errstate(invalid="ignore"):
            terms = base.log_profile(np.subtract.outer(eps, self.shifts)) + self.log_weights
        return np.asarray(np.minimum(logsumexp(terms), 0.0), dtype=float)


def envelope(log_b: Array, log_a: Array, log_mean: float) -> Envelope:
    """Upper envelope of the lines ``a - b s`` for points (b, a) given by logarithms in order of increasing rank.

    The envelope of lines is the conjugate of the concave hull of the points: each hull edge with rise (db, da) is a
    hinge of weight ``da`` at ``s = da/db``.
    """
    log_a, log_b = np.append(-np.inf, log_a[::-1] - log_mean), np.append(-np.inf, log_b[::-1] - log_mean)
    # rounding of huge logarithms must not make b decrease; a line of a smaller b is a larger one
    log_b = np.minimum.accumulate(log_b[::-1])[::-1]
    keep = concave_hull(log_b, log_a)
    log_a, log_b = log_a[keep], log_b[keep]
    rise_a, rise_b = logsubexp(log_a[1:], log_a[:-1]), logsubexp(log_b[1:], log_b[:-1])
    return Envelope(rise_a + log_mean, rise_a - rise_b)


def concave_hull(log_b: Array, log_a: Array) -> Indices:
    """Indices of the rising part of the upper concave hull of points (b, a), b never decreasing, from the first point.

    Points are given by logarithms, and slopes compared by theirs: F spans hundreds of decades for some laws.
    """
    highest = np.maximum.accumulate(log_a)
    keep = np.append(0, 1 + np.flatnonzero(log_a[1:] > highest[:-1]))
    # A point that is no higher than the chord of its neighbours is no corner, and every second one may go at a time:
    # arrays are quicker than what looks at points one by one, and mostly nothing is left for that to do.
    for _ in range(_SWEEPS):
        x, y = log_b[keep], log_a[keep]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slope = y[1:] - x[1:] + np.log(np.expm1(y[:-1] - y[1:]) / np.expm1(x[:-1] - x[1:]))
        slope[x[1:] == x[:-1]] = np.inf
        low = np.flatnonzero(slope[:-1] <= slope[1:]) + 1
        if low.size == 0:
            return keep
        keep = np.delete(keep, low[::2])
    x, y = log_b[keep].tolist(), log_a[keep].tolist()
    corners, slopes = [0], [math.nan]  # of the edges that end in the corners; none is steeper than the first point's
    for i in range(1, len(x)):
        slope = _log_slope(x, y, corners[-1], i)
        while slope >= slopes[-1]:
            corners.pop()
            slopes.pop()
            slope = _log_slope(x, y, corners[-1], i)
        corners.append(i)
        slopes.append(slope)
    return np.asarray(keep[corners])


_SWEEPS = 8


def _log_slope(x: list[float], y: list[float], i: int, j: int) -> float:
    """Log of the slope from point i up to point j."""
    if x[i] == x[j]:
        return math.inf
    return y[j] - x[j] + math.log(math.expm1(y[i] - y[j]) / math.expm1(x[i] - x[j]))


@dataclass(frozen=True, eq=False)
class Price:
    """A price of ranks ``phi(u) >= 0``, linear in u between knots: R2 with prices.

    Every outcome wants the rank that serves it best, but the ranks under Q are uniform. For any ``phi >= 0``,
    ``[x]_+ <= phi + [x - phi]_+`` gives ``delta_A(eps) <= ∫ phi du + sum_j w_j delta_Q(eps - s_j)`` with the envelope
    of ``F(u) - phi(u) - F(V(u)) s``. The best price is the dual of a transport problem; any price is valid.

    Attributes
    ----------
    log_u : ndarray, shape (m,)
        Increasing logarithms of the knots, among the nodes of the curve it is used with.
    value : ndarray, shape (m,)
        phi at the knots, >= 0, and 0 at the first and last; phi is 0 outside them.
    """

    log_u: Array
    value: Array

    def __post_init__(self) -> None:
        if not (self.value[0] == 0.0 == self.value[-1] and np.all(self.value >= 0.0)):
            raise ValueError("a price must be >= 0 and end in zeros: its integral would miss a piece")

    @cached_property
    def log_total(self) -> float:
        """Log of ``∫ phi du`` (trapezoids are exact)."""
        width = np.diff(np.exp(self.log_u))
        total = float(np.sum(0.5 * width * (self.value[1:] + self.value[:-1]))) * (1.0 + 1e-12)
        return math.log(total) if total > 0.0 else -math.inf

    def on(self, curve: RankCurve) -> Price:
        """Nearly the same price with its knots at the nodes of a curve."""
        value = self.at_nodes(curve)
        value[0] = value[-1] = 0.0
        return Price(curve.rank.log_u, value)

    def moved(self, before: RankCurve, curve: RankCurve) -> Price:
        """The price of another law: the same share of F wherever F has fallen by the same factor.

        Parameters
        ----------
        before : RankCurve
            The curve that this price was made for.
        curve : RankCurve
            Its nodes become the knots.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            # more than F nobody pays: without this, where F has all but vanished a line between knots would cost all
            share = np.minimum(np.nan_to_num(self.at_nodes(before) * np.exp(-before.log_f)), 1.0)
            fallen, known = (part.law.log_mean - part.log_f for part in (curve, before))
            value = np.nan_to_num(np.interp(fallen, known, share) * np.exp(curve.log_f))
        value[0] = value[-1] = 0.0
        return Price(curve.rank.log_u, value)

    def at_nodes(self, curve: RankCurve) -> Array:
        """phi at the nodes of a curve."""
        u = np.exp(curve.rank.log_u)
        return np.interp(u, np.exp(self.log_u), self.value, left=0.0, right=0.0)

    def at_vertices(self, curve: RankCurve) -> Array:
        """phi at the vertices of the curve's polygon (its knots are nodes, so it is linear on every cell)."""
        node = self.at_nodes(curve)
        theta = curve.cells[0]
        out = np.empty(2 * node.size - 1)
        out[0::2] = node
        out[1::2] = node[:-1] + theta * (node[1:] - node[:-1])
        return out


def _less(log_a: Array, phi: Array) -> Array:
    """``log(max(a - phi, 0))``."""
    with np.errstate(divide="ignore"):
        log_phi = np.log(phi)
    return logsubexp(np.maximum(log_a, log_phi), log_phi)


@dataclass(frozen=True, eq=False)
class ProfileBound:
    """R2: privacy profile of the whole search.

    Parameters
    ----------
    base : Guarantee
        One run.
    law : RunLaw
        Law of K.
    curve : RankCurve, optional
        Shared samples of F and F(V).

    Examples
    --------
    >>> from hpcalc.guarantees import Gaussian
    >>> from hpcalc.laws import Poisson
    >>> round(ProfileBound(Gaussian(5**0.5), Poisson(10.0)).epsilon(math.log(1e-6)), 3)
    3.65
    """

    base: Guarantee
    law: RunLaw
    curve: RankCurve | None = None
    price: Price | None = None

    method = "refined-profile"

    @cached_property
    def _curve(self) -> RankCurve:
        return self.curve if self.curve is not None else rank_curve(self.base, self.law)

    @property
    def rank_curve(self) -> RankCurve:
        """The samples this bound stands on."""
        return self._curve

    @cached_property
    def safe(self) -> Envelope:
        """The certified envelope (of F less the price, where there is one)."""
        log_b, log_a = self._curve.vertices
        if self.price is not None:
            log_a = _less(log_a, self.price.at_vertices(self._curve))
        return envelope(log_b, log_a, self.law.log_mean)

    @cached_property
    def nodes(self) -> Envelope:
        """The envelope of the samples alone: not a bound, it tells how much the certification costs."""
        log_a = self._curve.log_f
        if self.price is not None:
            log_a = _less(log_a, self.price.at_nodes(self._curve))
        return envelope(self._curve.log_g, log_a, self.law.log_mean)

    def log_delta(self, epsilon: Array | float) -> Array:
        """Log of the bound on delta at each ``epsilon >= 0`` (shape kept)."""
        # 1e-11 covers the rounding of the sums
        out = self.safe.log_delta(self.base, epsilon) + 1e-11
        if self.price is not None:
            out = logaddexp(out, self.price.log_total)
        return np.asarray(np.minimum(out, 0.0), dtype=float)

    def epsilon(self, log_delta: float, tolerance: float = 1e-4) -> float:
        """Smallest epsilon the bound gives at ``log_delta``, after refining until certification costs little.

        Parameters
        ----------
        log_delta : float
            Natural logarithm of delta.
        tolerance : float
            Relative difference between the certified epsilon and that of the samples alone.
        """
        return self.solve(log_delta, tolerance)[0]

    def samples_epsilon(self, log_delta: float, start: float | None = None) -> float:
        """Epsilon of the samples alone: not a bound, it tells what the certification costs."""
        return smallest_epsilon(lambda epsilon: self.nodes.log_delta(self.base, epsilon), log_delta, start)

    def solve(self, log_delta: float, tolerance: float = 1e-4, enough: float = math.inf) -> tuple[float, ProfileBound]:
        """Epsilon, and the refined bound that gives it; refining stops early once the samples alone exceed `enough`.

        (Then no refinement can bring the bound below another one that gives `enough`.)
        """
        bound = self
        start: float | None = None
        for _ in range(6):
            # where to refine needs only a rough epsilon; the last round is exact
            value = smallest_epsilon(bound.log_delta, log_delta, start, accuracy=1e-3)
            curve = bound._curve
            if not math.isfinite(value) or value == 0.0 or curve.x.size > 6000:
                break
            floor = enough * (1.0 - tolerance)
            if floor < value and float(bound.nodes.log_delta(self.base, floor)) > log_delta:
                break  # no refinement can bring this bound more than the tolerance below the other one
            here, before = bound.nodes.log_delta(self.base, value * np.array([1.0, 1.0 - 10.0 * tolerance]))
            if float(bound.log_delta(value)) < float(0.9 * here + 0.1 * before):
                break  # what the certification adds to delta moves epsilon by less than the tolerance
            cost = bound._cell_costs(value)
            finer = curve.refine(cost > np.sum(cost) / (8.0 * cost.size), 3)
            if finer is curve:
                break
            start = value
            bound = ProfileBound(self.base, self.law, finer)
        return smallest_epsilon(bound.log_delta, log_delta, value), bound

    def _cell_costs(self, epsilon: float) -> Array:
        """What each cell's triangle adds to delta over its chord (in units of delta when that is representable)."""
        curve = self._curve
        log_b, log_a = curve.vertices
        scale = self.law.log_mean
        a, b = np.exp(log_a - scale), np.exp(log_b - scale)

        def cost(first: int, step: int) -> Array:
            a1, a0 = a[first : a.size - step : 2], a[first + step :: 2]
            b1, b0 = b[first : b.size - step : 2], b[first + step :: 2]
            rise = np.maximum(a1 - a0, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                shift = np.nan_to_num(np.log(rise) - np.log(np.maximum(b1 - b0, 0.0)))  # any where nothing rises
                out = np.log(rise) + scale + self.base.log_profile(epsilon - shift)
            return np.asarray(np.exp(out), dtype=float)

        halves = cost(0, 1) + cost(1, 1)
        return np.maximum(halves - cost(0, 2), 0.0)


def smallest_epsilon(
    log_profile: Callable[[Array], Array], log_delta: float, start: float | None = None, accuracy: float = 1e-12
) -> float:
    """Smallest epsilon >= 0 with ``log_profile(epsilon) <= log_delta``, from the side that meets it.

    Parameters
    ----------
    log_profile : callable
        Must not increase.
    log_delta : float
        Natural logarithm of delta.
    start : float, optional
        A guess.
    accuracy : float
        Relative width of the final bracket, whose upper end is returned.

    Returns
    -------
    float
        inf if nothing up to :data:`LARGEST_EPSILON` meets it.
    """

    def excess(epsilon: float) -> float:
        return float(log_profile(np.asarray(epsilon))) - log_delta

    lo, f_lo = 0.0, math.inf
    if start is not None and 0.0 < start < math.inf:
        hi, f_hi = start, excess(start)
        near = start * (1.0 - 2e-3)
        if f_hi <= 0.0:
            f_near = excess(near)
            lo, f_lo, hi, f_hi = (near, f_near, hi, f_hi) if f_near > 0.0 else (lo, f_lo, near, f_near)
    else:
        hi, f_hi = 1.0, excess(1.0)
    growth = 1.01 if start is not None else 2.0
    while f_hi > 0.0:
        lo, f_lo = hi, f_hi
        hi *= growth
        growth = 2.0
        if hi > LARGEST_EPSILON:
            return math.inf
        f_hi = excess(hi)
    if lo == 0.0:
        f_lo = excess(0.0)
        if f_lo <= 0.0:
            return 0.0
    # Regula falsi with the Illinois weights; every few steps a bisection, so that it always ends. The square root of
    # -log delta is nearly a line for most profiles; aiming a little below log_delta ends on the side that meets it.
    window = max(accuracy, 1e-11)

    def bent(value: float) -> float:
        return math.sqrt(max(window - log_delta, 0.0)) - math.sqrt(max(0.5 * window - log_delta - value, 0.0))

    side = 0
    g_lo, g_hi = bent(f_lo), bent(f_hi)
    for count in range(200):
        if hi - lo <= accuracy * hi:
            break
        if count % 6 == 5 or math.isinf(g_hi):
            mid = 0.5 * (lo + hi)
        else:
            mid = lo - g_lo * (hi - lo) / (g_hi - g_lo)
        value = excess(mid)
        if value > 0.0:
            lo, g_lo = mid, bent(value)
            if side == 1:
                g_hi *= 0.5
            side = 1
        else:
            hi, g_hi = mid, bent(value)
            if value > -window:
                break
            if side == -1:
                g_lo *= 0.5
            side = -1
    return hi


# ---------------------------------------------------------------------------------------------------------------
# R3 and R4
# ---------------------------------------------------------------------------------------------------------------


def refined_pure(epsilon: float, law: RunLaw) -> float:
    """R3: smallest ε' such that best-of-K of every ε-DP algorithm is ε'-DP.

    Parameters
    ----------
    epsilon : float
        ε of one run, >= 0.
    law : RunLaw
        Law of K. Where ``-u F'(u)/F(u)`` never decreases (``law.supremum_at_edge``) the supremum is at
        ``u = 1/(1+e^ε)``; otherwise it is searched over certified cells.

    Returns
    -------
    float

    Examples
    --------
    >>> from hpcalc.laws import Fixed
    >>> round(refined_pure(1.0, Fixed(200)), 9)
    200.0
    """
    if epsilon in (0.0, math.inf):
        return epsilon
    return epsilon + (law.gain_at_edge(epsilon) if law.supremum_at_edge else _searched_gain(epsilon, law))


def _searched_gain(epsilon: float, law: RunLaw) -> float:
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
        m_u, m_v = np.exp(law.log_mean_excess(u) + rounding), np.exp(law.log_mean_excess(v) + rounding)
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


def conditional_pure(epsilon: float, accept: float) -> float:
    """R4 for an ε-DP base: ``ε + log(V(p)/p)``, at most 2ε; p is a lower bound on the acceptance probability."""
    from hpcalc.guarantees import PureDP

    rank = Prob.from_u(np.array([accept]))
    return epsilon + max(float(PureDP(epsilon).region(rank).log_u[0] - rank.log_u[0]), 0.0)


def conditional_log_profile(base: Guarantee, accept: float, epsilon: Array | float) -> Array:
    """R4: log of the bound on delta of "run until the output is accepted" at each epsilon.

    Parameters
    ----------
    base : Guarantee
        One run.
    accept : float
        Lower bound p in (0, 1] on one run's acceptance probability, for every input.
    epsilon : array_like
        Any shape.
    """
    rank = Prob.from_u(np.array([accept]))
    shift = max(float(base.region(rank).log_u[0] - rank.log_u[0]), 0.0)
    out = base.log_profile(np.asarray(epsilon, dtype=float) - shift) - math.log(accept)
    return np.asarray(np.minimum(out, 0.0), dtype=float)
