"""R1, the refined Rényi bound, and the certified supremum that it and Lemma 7 of the paper rest on.

Notation: Q, Q' are the output laws of one run on neighbouring inputs, A, A' those of the whole search;
``F(u) = f'(1-u)`` for the generating function f of K; V is the region of one run. Refine the outputs by a uniform
tie-break, let u be the probability under Q of ranking at or above an output and v the same under Q'. On K >= 1, A has
density F(u) with respect to Q and A' density F(v) with respect to Q', and ``u <= V(v)``, ``v <= V(u)``.

``exp((a-1) D_a(A||A')) = f(0) + ∫ w dR`` with ``w = F(u)^a F(v)^(1-a) <= M`` and ``dR = dQ^a dQ'^(1-a)``,
``∫ dR <= exp((a-1) rdp(a)) =: E``; hence the bound ``log(f(0) + M E)/(a-1)`` for every law. Where f' is a power of an
affine function ``s = c + b x`` (or its exponential limit), w is a function of ``z = s^a s'^(1-a)``, and the tangent
inequality ``x^a y^(1-a) >= a r^(a-1) x - (a-1) r^a y`` at ``r = s/s'`` gives ``dR >= dz/b``, an exact differential.
So ``∫ (M-w) dR >= ∫ (M-w) dz/b = M - (1-f(0))`` and the bound improves to ``log(1 + M (E-1))/(a-1)``.

M is the supremum of ``F(u)^a F(V(u))^(1-a)``: an :class:`Enclosure` bounds it from above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from hpcalc.bounds.bound import RenyiBound
from hpcalc.bounds.pure import refined_pure, with_slack
from hpcalc.conversion import (
    CKS,
    Conversion,
    RenyiCurve,
    cks_epsilon,
    epsilon_from_rdp,
    minimise_over_orders,
    remaining,
)
from hpcalc.guarantees import Guarantee, cks_log_delta
from hpcalc.laws import Law, RunCount
from hpcalc.logspace import Array, Mask, Prob, distinct, log_expm1, logaddexp, logsubexp, softplus

_LIMIT = 42.0  # Phi(-42) = 1e-385: ranks below need no node of their own
# Knobs of speed. Into how many pieces sharpening cuts cells, round by round, and the number of nodes at which it ends.
_PIECES = (8, 8, 4, *(2,) * 12)
_LARGEST = 20_000


@dataclass(eq=False)
class Enclosure:
    """The curve ``u -> (F(V(u)), F(u))`` at increasing u from 0 to 1, and a polygon that dominates it.

    ``F`` is convex, so its chord lies above it; ``F(V(u))`` is convex too (V is concave, F decreasing and convex), so
    the chords of the neighbouring cells, prolonged, lie below it. Each cell thus has a triangle whose upper-left edges
    dominate the curve, with an error of second order in the cell's width.

    ``x`` are normal scores of the nodes, shape (n,), ``-inf`` and ``inf`` at the ends, and ``image`` V(u) there.
    """

    base: Guarantee
    law: Law
    x: Array
    image: Prob

    @classmethod
    def at(cls, base: Guarantee, law: Law, x: Array) -> Enclosure:
        """With nodes at normal scores."""
        return cls(base, law, x, _region(base, x))

    @cached_property
    def rank(self) -> Prob:
        """u at the nodes."""
        return Prob.from_normal(self.x)

    @cached_property
    def log_f(self) -> Array:
        """``log F(u)``."""
        return self.law.log_density(self.rank)

    @cached_property
    def log_g(self) -> Array:
        """``log F(V(u))``, which never rises: where V is found less well than at a later rank, that value holds too."""
        value = self.law.log_density(self.image)
        return np.asarray(np.maximum.accumulate(value[::-1])[::-1], dtype=float)

    @cached_property
    def slack(self) -> Array:
        """What ``log_g`` may be too small by, where the base finds V only to a tolerance."""
        tolerance = self.base.region_tolerance
        if tolerance <= 1e-12:
            return np.zeros(self.x.size)
        small = self.image.log_u < -0.5
        low = Prob.from_log_u(np.where(small, self.image.log_u - tolerance, -1.0))
        high = Prob.from_log_q(np.where(small, -1.0, np.minimum(self.image.log_q + tolerance, 0.0)))
        lowered = Prob(*(np.where(small, *parts) for parts in zip(low, high, strict=True)))
        with np.errstate(invalid="ignore"):
            slack = np.maximum(np.where(np.isfinite(self.log_g), self.law.log_density(lowered) - self.log_g, 0.0), 0.0)
        return np.where(np.isfinite(slack), slack, 0.0)

    @cached_property
    def _corners(self) -> tuple[Array, Array]:
        """Logarithms of the chord of F and of the lower bound on F(V), where the two lower lines of each cell meet.

        In units of the left node.
        """
        log_width = logsubexp(self.rank.log_u[1:], self.rank.log_u[:-1])
        upper = self.rank.log_u[:-1] > -0.5
        log_width = np.where(upper, logsubexp(self.rank.log_q[:-1], self.rank.log_q[1:]), log_width)
        g = self.log_g
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            ratio_a, ratio_b = np.exp(np.diff(self.log_f)), np.exp(np.diff(g))
            # left line: 1 - theta * fall, from the chord of the cell before (its far end raised by the slack)
            fall = np.full(g.size - 1, np.inf)
            fall[1:] = (np.exp(g[:-2] - g[1:-1] + self.slack[:-2]) - 1.0) * np.exp(np.diff(log_width))
            # right line: ratio_b + (1 - theta) * rise, from the chord of the cell after
            rise = np.zeros(g.size - 1)
            beyond = np.exp(g[2:] - g[:-2] + self.slack[2:])
            rise[:-1] = np.maximum(ratio_b[:-1] - beyond, 0.0) * np.exp(-np.diff(log_width))
            rise = np.where(np.isfinite(rise), rise, 0.0)
            fall = np.where(np.isnan(fall) | (fall < 0.0), np.inf, fall)
            # Where the samples of F(V) bend the wrong way V was not found to the last digit: no lines there, the
            # cell's right end bounds F(V) from below.
            dent = np.append(False, fall[1:] < (1.0 - ratio_b[1:]) * (1.0 - 1e-9))
            near = np.convolve(dent, np.ones(5), mode="full")[2 : 1 + g.size] > 0.0
            fall, rise = np.where(near, np.inf, fall), np.where(near, 0.0, rise)
            theta = np.where(np.isinf(fall), 0.0, (1.0 - ratio_b - rise) / (fall - rise))
            theta = np.clip(np.where(np.isfinite(theta), theta, 0.0), 0.0, 1.0)
            low = np.minimum(np.maximum(ratio_b + (1.0 - theta) * rise, ratio_b), 1.0)
            chord = 1.0 - theta * (1.0 - ratio_a)
            # where F(V) is 0 from the left node on, that node dominates the cell
            gone = np.isneginf(g[:-1])
            chord, low = np.where(gone, 1.0, chord), np.where(gone, 1.0, low)
            # neither is below its value at the right node, which may be too small for a plain number
            ends = (np.where(gone, 0.0, np.diff(part)) for part in (self.log_f, g))
            return np.maximum(np.log(np.minimum(chord, 1.0)), next(ends)), np.maximum(np.log(low), next(ends))

    def values(self, orders: Array) -> tuple[Array, Array]:
        """``a log F - (a-1) log F(V)`` for each order a at the nodes, and at the corners, at least it inside the cells.

        On each edge of the polygon both functions are linear in u, and ``A^a B^(1-a)`` is convex in (A, B): its maximum
        is at a corner.
        """
        order = np.asarray(orders, dtype=float)[:, None]

        def value(log_a: Array, log_b: Array) -> Array:
            with np.errstate(invalid="ignore"):
                return np.where(np.isneginf(log_a), -np.inf, order * log_a - (order - 1.0) * log_b)

        corner_a, corner_b = self._corners
        corners = value(self.log_f[:-1] + corner_a, self.log_g[:-1] + corner_b)
        if np.isposinf(corners[:, -1]).any():
            # An F with F(1) = 0 ends in (0, 0), beside a corner that may be (A, 0).
            corners[:, -1] = self._last_cell(order[:, 0])
        return value(self.log_f, self.log_g), corners

    def log_supremum(self, orders: Array) -> Array:
        """Certified upper bound on ``log sup_u F(u)^a F(V(u))^(1-a)`` for each order a; shape kept (1-D)."""
        return np.asarray(np.max(np.concatenate(self.values(orders), axis=1), axis=1), dtype=float)

    def _last_cell(self, orders: Array) -> Array:
        """Bound on the last cell when F vanishes at u = 1 like ``c q^(m-1)``, q = 1-u, m = the least possible K.

        ``F(u) / q^(m-1)`` is a power series in q without negative terms: it lies between c and its value where the
        cell begins. The base's own Rényi bound on tests at order 2a, ``q^(2a) q_v^(1-2a) <= e^((2a-1) rdp(2a))``,
        bounds the ratio q/q_v.
        """
        log_far = self.law.log_density(Prob(np.zeros(2), np.array([-690.0, -700.0])))
        power = round(float(log_far[0] - log_far[1]) / 10.0)
        rounding = 1e-12  # of the sums of hundreds
        log_c = float(log_far[1]) + 700.0 * power - rounding
        h, h2 = orders - 1.0, 2.0 * orders - 1.0
        log_q = float(self.rank.log_q[-2])
        log_top = float(self.log_f[-2]) - power * log_q + rounding
        with np.errstate(invalid="ignore"):
            moment = h * self.base.rdp(2.0 * orders) + log_q * (1.0 - h / h2)
            out = orders * log_top - h * log_c + power * moment
        return np.asarray(np.where(np.isfinite(out), out, np.inf), dtype=float)

    def sharpened(self, orders: Array, target: float = 1e-6) -> Enclosure:
        """A finer enclosure, whose suprema at the orders are found to about ``target`` (relative or absolute)."""
        out = self
        for pieces in _PIECES:
            nodes, corners = out.values(orders)
            top, known = np.max(corners, axis=1), np.max(nodes, axis=1)
            with np.errstate(invalid="ignore"):  # a supremum that is inf stays so: no corner is above that
                enough = known + np.maximum(0.1 * (top - known), target * np.maximum(1.0, np.abs(known)))
            finer = out._cut((corners > enough[:, None]).any(axis=0), pieces) if out.x.size <= _LARGEST else out
            if finer is out:
                break
            out = finer
        return out

    def _cut(self, split: Mask, pieces: int) -> Enclosure:
        """Each marked cell is cut into equal pieces (in normal score)."""
        x = self.x
        # a cell is bounded by its neighbours' chords prolonged, which are no better than the neighbours are narrow
        width = np.diff(x)
        split = split.copy()
        split[1:] |= split[:-1] & (width[1:] > 1.5 * width[:-1])
        split[:-1] |= split[1:] & (width[:-1] > 1.5 * width[1:])
        index = np.flatnonzero(split)
        left = np.where(np.isneginf(x[index]), x[index + 1] - 2.0, x[index])
        right = np.where(np.isposinf(x[index + 1]), x[index] + 2.0, x[index + 1])
        fresh = (left[:, None] + (right - left)[:, None] * (np.arange(1, pieces) / pieces)).ravel()
        fresh = distinct(fresh[(fresh > -_LIMIT) & (fresh < _LIMIT)])
        fresh = fresh[x[np.minimum(np.searchsorted(x, fresh), x.size - 1)] != fresh]
        if fresh.size == 0:
            return self
        x = np.concatenate([self.x, fresh])
        order = np.argsort(x, kind="stable")
        image = (np.concatenate(parts)[order] for parts in zip(self.image, _region(self.base, fresh), strict=True))
        return Enclosure(self.base, self.law, x[order], Prob(*image))


@lru_cache(maxsize=8)
def _images(base: Guarantee) -> dict[float, tuple[float, float]]:
    """Points of the region, by normal score, that were asked for: laws that differ little share most of them."""
    return {}


def _region(base: Guarantee, x: Array) -> Prob:
    """V at normal scores."""
    if base.region_tolerance <= 1e-12:
        return base.region(Prob.from_normal(x))
    known, scores = _images(base), x.tolist()
    new = np.array([score for score in scores if score not in known])
    if new.size:
        image = base.region(Prob.from_normal(new))
        known.update(zip(new.tolist(), zip(image.log_u.tolist(), image.log_q.tolist(), strict=True), strict=True))
    return Prob(*np.array([known[score] for score in scores]).reshape(-1, 2).T)


def enclosure(base: Guarantee, law: Law, size: int = 256) -> Enclosure:
    """Enclosure with about ``size`` nodes, spread over the ranks where F or F(V) changes."""
    lo = _first_score(base, _score_where(law, 1e-4))
    last = float(law.log_density(Prob(np.array(0.0), np.array(-math.inf))))
    hi = 3.0
    if law.log_mean - last >= 1e-4:
        # up to where F is flat again, or (F(1) = 0) far into the last ranks
        scores = np.array([3.0, 5.0, 8.0, 12.0, 20.0])
        flat = law.log_density(Prob.from_normal(scores)) - last < 1e-4
        hi = float(scores[np.argmax(flat)]) if flat.any() else 38.0
    lo = max(min(lo, hi - 1.0), -_LIMIT)
    # nodes at multiples of a power of two: laws that differ little share most of them
    step = 2.0 ** round(math.log2((hi - lo) / size))
    inner = np.arange(math.floor(lo / step), math.ceil(hi / step) + 1) * step
    return Enclosure.at(base, law, distinct(np.concatenate([[-np.inf], inner, [np.inf]])))


def _score_where(law: Law, drop: float) -> float:
    """Normal score of the rank at which F has fallen by the factor exp(-drop) from F(0)."""
    lo, hi = -_LIMIT, _LIMIT
    for _ in range(4):
        x = np.linspace(lo, hi, 65)
        fallen = law.log_mean - law.log_density(Prob.from_normal(x)) > drop
        first = int(np.argmax(fallen)) if fallen.any() else x.size - 1
        lo, hi = float(x[max(first - 1, 0)]), float(x[first])
    return hi


def _first_score(base: Guarantee, score: float) -> float:
    """Normal score of the rank whose V reaches the rank at ``score``: where F(V) starts to move."""
    if base.region_tolerance > 1e-12 and base.orders is None:
        # Nearly a Gaussian's shift there; a costly region is not asked for a rank that only places the grid.
        shift = math.sqrt(float(base.rdp(np.array([2.0]))[0]))
        if math.isfinite(shift):
            return max(score - 1.3 * shift, -_LIMIT)
    # V's inverse is V mirrored
    inverse = base.region(Prob.from_normal(np.array([-score]))).complement()
    return float(np.maximum(inverse.normal[0], -_LIMIT))


@dataclass(eq=False)
class RefinedRenyi(RenyiBound):
    """R1: Rényi curve of the whole search, from an enclosure that is refined where an answer needs it."""

    cells: Enclosure = field(kw_only=True)

    def sharpened(self, orders: Array, target: float = 1e-6) -> RefinedRenyi:
        """The same bound with the suprema at the given orders found to the target."""
        return _on(self.cells.sharpened(orders, target), self)

    def rdp(self, orders: Array) -> Array:
        """The curve at orders of any shape, its suprema refined to 1e-4."""
        finite = orders[np.isfinite(orders)]
        return RenyiBound.rdp(self.sharpened(finite, 1e-4) if finite.size else self, orders)

    def log_profile(self, epsilons: Array) -> Array:
        orders = 1.0 + np.exp(np.arange(-3.0, 9.0, 0.06)) if self.curve.orders is None else self.curve.orders
        orders = orders[np.isfinite(orders)]
        value = self.sharpened(orders[::10], 1e-4).curve.rdp(orders) if orders.size else orders
        known = np.isfinite(value)
        out = np.where(epsilons >= self.curve.pure_epsilon, -np.inf, 0.0)
        if known.any():
            lines = cks_log_delta(orders[known], value[known], epsilons[:, None])
            out = np.minimum(out, np.min(lines, axis=1))
        added = self.curve.log_added_delta
        return np.asarray(np.minimum(logaddexp(added, out) if added > -math.inf else out, 0.0), dtype=float)

    def estimate(self, orders: Array) -> Array:
        """The curve from the nodes alone: no bound, but close to what :meth:`sharpened` leads to."""
        return divergence(self.cells, orders, np.max(self.cells.values(orders)[0], axis=1), self.cells.law.affine_power)

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        """Epsilon: the order is searched on the nodes, and the enclosure refined at that order."""
        left = remaining(log_delta, self.curve.log_added_delta)
        if left is None or left == -math.inf:
            return epsilon_from_rdp(self.curve, log_delta, rule)
        given = self.curve.orders

        def best_order(rdp: Callable[[Array], Array]) -> float | None:
            return minimise_over_orders(lambda a: cks_epsilon(a, rdp(a), left), given)[1]

        # Between nodes far apart the bound may be loose enough to lead the search astray; the nodes themselves lead
        # it right, unless the supremum is infinite beside the last of them.
        answer, sharp = Conversion(math.inf, CKS), self
        for rdp in (self.estimate, self.curve.rdp):
            order = best_order(rdp)
            if order is not None:
                sharp = self.sharpened(np.array([order]))
                value = float(cks_epsilon(np.array([order]), sharp.curve.rdp(np.array([order])), left)[0])
                if value < math.inf:
                    answer = Conversion(max(value, 0.0), CKS, order)
                    break
        if rule in ("exact", "mironov") or (rule == "best" and left > math.log(1e-3)):
            # these take orders around that one too
            if given is not None:
                sharp = sharp.sharpened(given[np.isfinite(given)], 1e-4)
            elif answer.order is not None:
                sharp = sharp.sharpened(1.0 + (answer.order - 1.0) * 2.0 ** np.arange(-3.0, 4.0), 1e-4)
            other = epsilon_from_rdp(sharp.curve, log_delta, rule)
            return answer if rule == "best" and answer.value < other.value else other
        return answer

    def probe(self, log_delta: float) -> float:
        left = remaining(log_delta, self.curve.log_added_delta)
        if left is None or left == -math.inf:
            return math.inf if left is None else self.curve.pure_epsilon
        value, _ = minimise_over_orders(lambda a: cks_epsilon(a, self.estimate(a), left), self.curve.orders)
        return max(value, 0.0)


def divergence(cells: Enclosure, order: Array, log_m: Array, refined: bool) -> Array:
    """The bounds of the module's docstring from ``log M`` at finite orders; ``refined`` where f' is such a power."""
    h = order - 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        moment = h * cells.base.rdp(order)
        if refined:
            value = softplus(log_m + log_expm1(moment)) / h
        else:
            # the logarithm is close to 0 next to order 1: its rounding, divided by h, must err upwards
            value = (logaddexp(cells.law.log_prob_zero, log_m + moment) + 4e-15) / h
    # 1e-12 covers the rounding of the logarithms above; the divergence itself is never negative
    value = np.where(np.isnan(value), np.inf, value)
    return np.asarray(np.maximum(value, 0.0) * (1.0 + 1e-12), dtype=float)


def _on(cells: Enclosure, like: RefinedRenyi) -> RefinedRenyi:
    """The bound that stands on these cells."""
    refined = cells.law.affine_power
    curve = replace(like.curve, rdp=lambda orders: divergence(cells, orders, cells.log_supremum(orders), refined))
    return replace(like, curve=curve, cells=cells)


def refined_renyi(base: Guarantee, law: Law, orders: Array | None = None) -> RefinedRenyi:
    """R1 of a base with a Rényi curve; the probability that it sets aside is added by Lemma 20."""
    core, thinned, added, note = with_slack(base, law)
    form = "f' is a power of an affine function" if law.affine_power else "any law of K, with its mass at K = 0"
    curve = RenyiCurve(
        core.rdp, core.orders if orders is None else orders, added, refined_pure(core.pure_epsilon, thinned)
    )
    citation = "Refined Rényi bound R1 (hpcalc-theory(7)), after Lemma 7 of Papernot and Steinke 2022" + note
    cells = enclosure(core, thinned)
    return _on(cells, RefinedRenyi("refined-rdp", citation, curve, (form,), cells=cells))


def bounds(base: Guarantee, law: RunCount, orders: Array | None = None) -> Iterator[RefinedRenyi]:
    """R1, where it applies."""
    if isinstance(law, Law) and base.slack < 1.0:
        yield refined_renyi(base, law, orders)


def rdp_of_profiles(
    profiles: Sequence[Callable[[Array], Array]], tail: RenyiBound, orders: Array, reach: float, pieces: int = 48
) -> Array:
    """Rényi curve that follows from privacy profiles, order by order, rounded up.

    ``e^((a-1) D_a(A||A')) <= 1 + a (a-1) (∫ e^((a-1)t) δ_1(t) dt + ∫ e^(-at) δ_2(t) dt)`` over t >= 0, where δ_1 is the
    profile of (A, A') and δ_2 that of (A', A). A profile is convex in ``e^t``: its chords lie above it, and what is
    linear in ``e^t`` is integrated exactly. Where ``e^((a-1)t)`` would blow up the floor of a certified profile another
    Rényi bound takes over, ``δ(t) <= (1/b)(1-1/b)^(b-1) e^((b-1)(rdp(b)-t))`` at an order b > a.

    ``profiles`` take t to upper bounds on log δ, for each direction or once for both; they are asked ``pieces`` times
    up to ``reach``, beyond which ``tail`` takes over. The curve is inf where no finite bound follows.
    """
    flat = np.ravel(orders)
    order = flat[np.isfinite(flat)]
    t = np.linspace(0.0, max(reach, 1e-12), pieces + 1)
    log_delta = [np.minimum.accumulate(np.minimum(profile(t), 0.0)) for profile in profiles]
    far = distinct(np.concatenate([1.0 + np.exp(np.arange(-3.0, 9.0, 0.25)), order * 1.05, order * 1.3, order * 2.0]))
    if tail.curve.orders is not None:
        far = tail.curve.orders[np.isfinite(tail.curve.orders)]
    log_far = cks_log_delta(far, tail.rdp(far), t[:, None])  # shape (t, far)
    out = np.full(flat.shape, np.inf)
    if order.size:
        gap = far - order[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # beyond t: e^((a-1)t) δ(t), which falls like e^((a-b)t), over b - a
            rest = log_far[None] + ((order[:, None] - 1.0) * t)[:, :, None] - np.log(gap)[:, None, :]
            rest = np.min(np.where(gap[:, None, :] > 0.0, np.nan_to_num(rest, nan=np.inf), np.inf), axis=2)
            # at t >= 0 both weights and e^(-at) δ_2 <= e^(-at)
            rest = np.where(t >= tail.curve.pure_epsilon, -np.inf, np.minimum(rest, np.inf))
            both = []
            for one, other in ((0, -1), (-1, 0))[: len(log_delta)]:
                first = _below(order[:, None] - 1.0, t, log_delta[one])
                second = _below(-order[:, None], t, log_delta[other])
                last = log_delta[other] - order[:, None] * t - np.log(order)[:, None]
                total = np.logaddexp(np.logaddexp(first, second), np.logaddexp(rest, last))
                total = np.where(np.isnan(total), np.inf, total)  # inf - inf says nothing
                both.append(np.min(total, axis=1) + np.log(order * (order - 1.0)))
        out[np.isfinite(flat)] = np.logaddexp(0.0, np.max(both, axis=0) + 1e-11) / (order - 1.0) * (1.0 + 1e-12)
    return out.reshape(np.shape(orders))


def _below(power: Array, t: Array, log_delta: Array) -> Array:
    """Log of ``∫_0^t e^(power t) δ(t) dt`` up to every t, by chords in ``e^t``; power has shape (m, 1)."""
    width = -np.diff(t)
    share, share_up = -np.expm1(power * width) / power, -np.expm1((power + 1.0) * width) / (power + 1.0)
    drop = logsubexp(log_delta[:-1], np.minimum(log_delta[1:], log_delta[:-1])) - np.log(-np.expm1(width))
    # δ = δ_right + S (1 - e^(t - t_right)) on the chord, S its slope in units of its right end
    curved = np.maximum(share - share_up, 0.0) * (1.0 + 1e-9) + 1e-16 * share
    part = power * t[1:] + np.logaddexp(log_delta[1:] + np.log(share), drop + np.log(curved))
    return np.concatenate([np.full((power.shape[0], 1), -np.inf), np.logaddexp.accumulate(part, axis=1)], axis=1)
