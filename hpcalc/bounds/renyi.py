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
from hpcalc.conversion import Conversion, RenyiCurve, epsilon_from_rdp
from hpcalc.guarantees import Guarantee, cks_log_delta
from hpcalc.guarantees.region import SCORES
from hpcalc.guarantees.tradeoff import distance
from hpcalc.laws import Law, RunCount
from hpcalc.logspace import Array, Indices, Prob, distinct, log_expm1, logaddexp, logsubexp, softplus

# Knobs of speed: how often sharpening cuts cells, into how many pieces at most, the number of nodes at which it ends.
_ROUNDS, _PIECES = 15, 32
_LARGEST = 20_000


@dataclass(eq=False)
class Enclosure:
    """The curve ``u -> (F(V(u)), F(u))`` at increasing u from 0 to 1, and a polygon that dominates it.

    ``F`` is convex, so its chord lies above it; ``F(V(u))`` is convex too (V is concave, F decreasing and convex), so
    the chords of the neighbouring cells, prolonged, lie below it. Each cell thus has a triangle whose upper-left edges
    dominate the curve, with an error of second order in the cell's width. ``rank`` and ``image`` are u and V(u).
    """

    base: Guarantee
    law: Law
    rank: Prob
    image: Prob
    affine: bool  # whether to make use of f' being a power of an affine function

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
        """What ``log_g`` may be too small by: V is found to a tolerance only, and errs upwards."""
        small = np.minimum(self.image.log_u, self.image.log_q)
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.exp(self.law.log_density_slope(self.image) + small - self.log_g) * np.maximum(1.0, -small)
            error *= 2.0 * self.base.region_tolerance
        return np.where(error < 0.1, error, np.inf)

    @cached_property
    def _corners(self) -> tuple[Array, Array]:
        """Logarithms of the chord of F and of the lower bound on F(V), where the two lower lines of each cell meet.

        In units of the left node.
        """
        start, stop = self.rank.take(slice(None, -1)), self.rank.take(slice(1, None))
        slack = self.slack
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            drop = np.diff(self.log_g)
            wider = np.exp(np.diff(distance(start, stop)))  # a cell's width in units of the one before
            # how far the lines fall in a cell: from the chord of the cell before, and from that of the cell after
            fall = np.append(np.inf, np.expm1(slack[:-2] - drop[:-1]) * wider)
            rise = np.append(-np.expm1(drop[1:] + slack[2:]) * np.exp(drop[:-1]) / wider, 0.0)
            # Where the samples of F(V) bend the wrong way V was not found to the last digit: no lines there, the
            # cell's right end bounds F(V) from below.
            own = -np.expm1(drop)
            dent = np.convolve(~(fall >= own * (1.0 - 1e-9)), np.ones(5), "same") > 0.0
            fall, rise = np.where(dent, np.inf, fall), np.where(dent | ~(rise > 0.0), 0.0, np.minimum(rise, own))
            theta = np.clip(np.nan_to_num((own - rise) / (fall - rise)), 0.0, 1.0)
            low = np.logaddexp(drop, np.log((1.0 - theta) * rise))
            chord = np.logaddexp(np.log1p(-theta), np.log(theta) + np.diff(self.log_f))
        # where F(V) is 0 from the left node on, that node dominates the cell
        return np.minimum(chord, 0.0), np.where(np.isnan(low), 0.0, np.minimum(low, 0.0))

    def at_nodes(self, orders: Array) -> Array:
        """``log sup_u F(u)^a F(V(u))^(1-a)`` over the nodes for each order a: no bound, but close to one.

        Where F(1) = 0 the curve ends in (0, 0) and the last cell has a bound of its own, which is in it.
        """
        value = np.max(_power(orders, self.log_f, self.log_g), axis=1)
        return np.asarray(np.maximum(value, self._last_cell(orders)) if np.isneginf(self.log_f[-1]) else value)

    def at_corners(self, orders: Array) -> Array:
        """The same inside each other cell, at most, shape (orders, cells).

        On each edge of the polygon both functions are linear in u, and ``A^a B^(1-a)`` is convex in (A, B): its maximum
        is at a corner.
        """
        corner_a, corner_b = self._corners
        out = _power(orders, self.log_f[:-1] + corner_a, self.log_g[:-1] + corner_b)
        out[:, -1] = -np.inf if np.isneginf(self.log_f[-1]) else out[:, -1]
        return out

    def log_supremum(self, orders: Array) -> Array:
        """Certified upper bound on the logarithm of the supremum over all u for each order."""
        return np.asarray(np.maximum(self.at_nodes(orders), np.max(self.at_corners(orders), axis=1)))

    def divergence(self, orders: Array, log_m: Array) -> Array:
        """The bounds of the module's docstring from ``log M`` at finite orders."""
        h = orders - 1.0
        with np.errstate(invalid="ignore", over="ignore"):
            moment = h * self.base.rdp(orders)
            if self.affine:
                value = softplus(log_m + log_expm1(moment)) / h
            else:
                # the logarithm is close to 0 next to order 1: its rounding, divided by h, must err upwards
                value = (logaddexp(self.law.log_prob_zero, log_m + moment) + 4e-15) / h
        # 1e-12 covers the rounding of the logarithms above; the divergence itself is never negative
        return np.asarray(np.maximum(np.where(np.isnan(value), np.inf, value), 0.0) * (1.0 + 1e-12), dtype=float)

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
        for _ in range(_ROUNDS):
            known = out.at_nodes(orders)[:, None]
            enough = target * np.maximum(1.0, np.abs(known)) + 4.0 * (orders[:, None] - 1.0) * out.slack[:-1]
            with np.errstate(invalid="ignore"):  # a supremum that is inf stays so: no corner is above that
                above = np.max(np.nan_to_num((out.at_corners(orders) - known) / enough), axis=0, initial=0.0)
            if not (above > 1.0).any() or above.size > _LARGEST:
                break
            # what a cell is above by falls with the square of its width
            most = max(min(_PIECES, _LARGEST / (4.0 * np.count_nonzero(above > 1.0))), 2.0)
            out = out._cut(np.where(above > 1.0, np.clip(2.0 * np.sqrt(above), 2.0, most), 1.0).astype(np.intp))
        return out

    def _cut(self, pieces: Indices) -> Enclosure:
        """Cells, and those whose chords bound them, are cut into equal pieces (in log odds)."""
        z = self.rank.logit
        parts = np.ones_like(pieces)
        parts[1:-1] = np.max([pieces[:-2], pieces[1:-1], pieces[2:]], axis=0)  # not those at the ends
        cell, k = np.flatnonzero(parts > 1), np.arange(1, _PIECES)[:, None]
        fresh = distinct((z[cell] + (z[cell + 1] - z[cell]) * (k / parts[cell]))[k < parts[cell]])
        fresh = fresh[z[np.minimum(np.searchsorted(z, fresh), z.size - 1)] != fresh]
        rank = Prob.from_logit(fresh)
        order = np.argsort(np.concatenate([z, fresh]), kind="stable")
        both = (self.rank, rank), (self.image, self.base.region(rank))
        rank, image = (Prob(*map(np.concatenate, zip(*pair, strict=True))).take(order) for pair in both)
        return replace(self, rank=rank, image=image)


def _power(orders: Array, log_a: Array, log_b: Array) -> Array:
    """Logarithm of ``A^a B^(1-a)``, 0 where A is 0, in a row for each order."""
    a = orders[:, None]
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(log_a), -np.inf, a * log_a - (a - 1.0) * log_b)


@lru_cache(maxsize=8)
def _nodes(base: Guarantee) -> tuple[Prob, Prob]:
    """Ranks and their V, the same for every law of K that a search tries."""
    rank = Prob.from_normal(np.concatenate([[-np.inf], SCORES, np.arange(39.0, 60.0), [np.inf]]))
    return rank, base.region(rank)


def enclosure(base: Guarantee, law: Law, affine: bool = False) -> Enclosure:
    """Enclosure with nodes where F or F(V) changes."""
    whole = Enclosure(base, law, *_nodes(base), affine)
    with np.errstate(invalid="ignore"):
        moves = (whole.log_g[0] - whole.log_g > 1e-4) & (whole.log_f - whole.log_f[-1] > 1e-4)
    moves[[0, -1]] = True
    keep = np.convolve(moves, np.ones(5), "same") > 0.0
    return replace(whole, rank=whole.rank.take(keep), image=whole.image.take(keep))


@dataclass(eq=False)
class RefinedRenyi(RenyiBound):
    """A Rényi bound from an enclosure, which gives ``curve`` its values and is refined where an answer needs it."""

    cells: Enclosure = field(kw_only=True)

    def __post_init__(self) -> None:
        self.curve = self._curve(self.cells.log_supremum)

    def _curve(self, log_m: Callable[[Array], Array]) -> RenyiCurve:
        return replace(self.curve, rdp=lambda orders: self.cells.divergence(orders, log_m(orders)))

    def sharpened(self, orders: Array, target: float = 1e-6) -> RefinedRenyi:
        """The same bound with the suprema at the given finite orders found to the target."""
        return replace(self, cells=self.cells.sharpened(orders, target))

    def rdp(self, orders: Array) -> Array:
        """The curve, its suprema refined to 2e-5."""
        return RenyiBound.rdp(self.sharpened(orders[np.isfinite(orders)], 2e-5), orders)

    def log_profile(self, epsilons: Array) -> Array:
        orders = 1.0 + np.exp(np.arange(-3.0, 9.0, 0.06)) if self.curve.orders is None else self.curve.orders
        orders = orders[np.isfinite(orders)]
        values = self.sharpened(orders[:: 1 + orders.size // 60], 1e-4).curve.rdp(orders)
        return RenyiBound("", "", replace(self.curve, rdp=lambda _: values, orders=orders)).log_profile(epsilons)

    def probe(self, log_delta: float) -> float:
        # the nodes are close where V is smooth; that of pure DP has a corner between them
        smooth = self.cells.base.pure_epsilon == math.inf
        return epsilon_from_rdp(self._curve(self.cells.at_nodes) if smooth else self.curve, log_delta, "cks").value

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        """Epsilon: the order is searched on the nodes, and the enclosure refined at that order, until it settles."""
        sharp, given, here = self, self.curve.orders, np.array([math.inf])
        for _ in range(4):
            rough = replace(sharp._curve(sharp.cells.at_nodes), pure_epsilon=math.inf)
            order = epsilon_from_rdp(rough, log_delta, "cks").order
            if order is None:
                return epsilon_from_rdp(self.curve, log_delta, rule)
            before, here = here, np.array([order])
            sharp = sharp.sharpened(here)
            if abs(float(before[0]) / order - 1.0) < 1e-2:
                break
        answer = epsilon_from_rdp(replace(sharp.curve, orders=here, pure_epsilon=math.inf), log_delta, "cks")
        if rule == "cks" or (rule == "best" and given is None and log_delta <= math.log(1e-3)):
            return answer
        # the other rules take orders around that one too
        around = 1.0 + (here - 1.0) * 2.0 ** np.arange(-9.0, 10.0) if given is None else given[np.isfinite(given)]
        other = epsilon_from_rdp(sharp.sharpened(around, 1e-4).curve, log_delta, rule)
        return answer if rule == "best" and answer.value < other.value else other


def refined_renyi(base: Guarantee, law: Law, orders: Array | None = None) -> RefinedRenyi:
    """R1 of a base with a Rényi curve; the probability that it sets aside is added by Lemma 20."""
    core, thinned, added, note = with_slack(base, law)
    form = "f' is a power of an affine function" if law.affine_power else "any law of K, with its mass at K = 0"
    pure = refined_pure(core.pure_epsilon, thinned)
    curve = RenyiCurve(core.rdp, core.orders if orders is None else orders, added, pure)
    citation = "Refined Rényi bound R1 (hpcalc-theory(7)), after Lemma 7 of Papernot and Steinke 2022" + note
    return RefinedRenyi("refined-rdp", citation, curve, (form,), cells=enclosure(core, thinned, law.affine_power))


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
    order = np.where(np.isfinite(orders), orders, 2.0)[:, None]
    t = np.linspace(0.0, max(reach, 1e-12), pieces + 1)
    log_delta = [np.minimum.accumulate(np.minimum(profile(t), 0.0)) for profile in profiles]
    far = distinct(np.concatenate([1.0 + np.exp(np.arange(-3.0, 9.0, 0.25)), *(order * (1.05, 1.3, 2.0))]))
    if tail.curve.orders is not None:
        far = tail.curve.orders[np.isfinite(tail.curve.orders)]
    log_far = cks_log_delta(far, tail.rdp(far), t[:, None])  # shape (t, far)
    gap, both = (far - order)[:, None], []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # beyond t: e^((a-1)t) δ(t), which falls like e^((a-b)t), over b - a
        rest = np.where(gap > 0.0, log_far + ((order - 1.0) * t)[:, :, None] - np.log(gap), np.inf)
        rest = np.where(t >= tail.curve.pure_epsilon, -np.inf, np.fmin.reduce(rest, axis=2, initial=np.inf))
        for one, other in zip(log_delta, log_delta[::-1], strict=True):
            last = other - order * t - np.log(order)  # at t >= 0 both weights and e^(-at) δ_2 <= e^(-at)
            parts = _below(order - 1.0, t, one), _below(-order, t, other), rest, last
            both.append(np.min(np.nan_to_num(np.logaddexp.reduce(parts), nan=np.inf, posinf=np.inf), axis=1))
    order = order[:, 0]
    value = np.logaddexp(0.0, np.max(both, axis=0) + np.log(order * (order - 1.0)) + 1e-11) / (order - 1.0)
    return np.where(np.isfinite(orders), value * (1.0 + 1e-12), np.inf)


def _below(power: Array, t: Array, log_delta: Array) -> Array:
    """Log of ``∫_0^t e^(power t) δ(t) dt`` up to every t, by chords in ``e^t``; power has shape (m, 1)."""
    width = -np.diff(t)
    share, share_up = -np.expm1(power * width) / power, -np.expm1((power + 1.0) * width) / (power + 1.0)
    drop = logsubexp(log_delta[:-1], np.minimum(log_delta[1:], log_delta[:-1])) - np.log(-np.expm1(width))
    # δ = δ_right + S (1 - e^(t - t_right)) on the chord, S its slope in units of its right end
    curved = np.maximum(share - share_up, 0.0) * (1.0 + 1e-9) + 1e-16 * share
    part = power * t[1:] + np.logaddexp(log_delta[1:] + np.log(share), drop + np.log(curved))
    return np.concatenate([np.full((power.shape[0], 1), -np.inf), np.logaddexp.accumulate(part, axis=1)], axis=1)
