"""R1 with its event counted: outcomes that reveal much share the ranks and the base's budget with each other.

R1 lets every outcome stand at the best rank and spend the whole Rényi budget of one run. Let S be the event that
decides the δ of the whole search at ε: the outcomes with ``F(q) dQ > e^ε F(q') dQ'``, at ranks (q, q') under the two
inputs. With ``b = Q(S)``, ``m`` the part of ``∫ dQ^a dQ'^(1-a)`` that lies in S, and, for an outcome of S, (u, v) the
probabilities of the outcomes outside S that rank before it, and β the Q-mass of S that ranks before it:

1. ``dQ' <= r dQ`` on S with ``r = e^-ε max F(u)/F(V(u))``; hence ``b' = Q'(S) <= r b``, and the outcome's ranks are
   ``u + β`` and at most ``v + r β``.
2. Merging what ranks before it, S, and what ranks after it gives three outcomes, (u, v), (b, b') and the rest, whose
   Rényi divergence every order limits in both directions. Where the rest's ratio is at least r, b' = r b is the mildest
   case, and the limits grow with b. At the order a itself, S counts with m. So (u, v) lies in a convex set W(b, m)
   inside the base's region.
3. ``F(u) - G s <= F(u) - c κ^(1/a) G^((a-1)/a) + κ s^(1-a)`` for all s > 0, with ``c = a (a-1)^(1/a-1)``, so that for
   every ``κ > 0``

       δ <= ∫_0^b α(β) dβ + κ e^(-(a-1)ε) m,   α(β) = sup_W [F(u+β) - c κ^(1/a) F(v+rβ)^((a-1)/a)].

   (R1 with the usual conversion takes α = 0, for which κ = M, and m = the whole budget.) In β the supremum lies below
   a convex function, hence below its chord: F lies below its own, and above the line through its values at ``v+rb`` and
   ``v+2rb``.

δ is at most the largest right side over all b and m. They are covered by cells ``[b0, b1] x [m0, m1]``, on which W is
taken at the lower and the rest at the upper ends, and cells that matter are divided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hpcalc.bounds.ranks import RankCurve, RunLaw
from hpcalc.guarantees import Guarantee
from hpcalc.logspace import Array, Mask, Prob

__all__ = ["counted_epsilon"]

# Depth (in log M) of the ranks at which W is sought; the others keep the base's whole region.
_DEPTH = 1.5
_NODES = 120
# Orders at which the three outcomes are checked, for curves known at all orders.
_ORDERS = (1.01, 1.5, 2.0, 3.0, 5.0, 9.0)
# log κ beside the one at which α = 0 without counting.
_LOG_KAPPAS = np.concatenate([[-2.5, -1.7, -1.2], np.arange(-0.9, 0.21, 0.1)])
# Ends of the pieces of [0, b], in units of the usual event.
_ENDS = np.concatenate([[0.0, 0.4, 0.8, 1.3], 2.0 ** np.arange(1.0, 5.0, 0.5), 2.0 ** np.arange(5.0, 1000.0)])
# Rounds, in each of which so many of the worst cells are halved, until three bring less than the relative gain.
_ROUNDS, _AT_ONCE, _WORTHWHILE = 6, 4, 2e-5
# Counting is phased in between these gains: where it brings less it is not worth its time, and ε must not jump.
_PAYS, _PAYS_FULLY = 1e-3, 2e-3


@dataclass(frozen=True)
class _Budget:
    """Limits of the base: ``(∫ dP^a dR^(1-a) - 1)/(a-1) <= limit`` either way, and the moment at the order used."""

    order: float
    log_moment: float
    orders: Array
    limits: Array


@dataclass(frozen=True)
class _Ranks:
    """Ranks in plain numbers, and F in units of its value where R1 has its supremum.

    Attributes
    ----------
    u, v : ndarray, shape (n,)
        Nodes at which W is sought, and V there.
    far : tuple of ndarray, shape (m,)
        The other nodes and V there, increasing.
    joint : int
        The cell of the others in which those of W lie.
    slack : float
        Relative accuracy of F(v).
    log_unit, log_m : float
        The unit, and R1's M in it.
    usual : float
        Q(S) of the mechanism that R1 has in mind.
    """

    law: RunLaw
    u: Array
    v: Array
    far: tuple[Array, Array]
    joint: int
    slack: float
    log_unit: float
    log_m: float
    usual: float

    def density(self, u: Array) -> Array:
        """F in units, at plain probabilities (beyond 1: at 1)."""
        return np.asarray(np.exp(self.law.log_density(Prob.from_u(np.minimum(u, 1.0))) - self.log_unit))


def counted_epsilon(
    base: Guarantee, law: RunLaw, log_delta: float, order: float, epsilon: float, curve: RankCurve
) -> float:
    """Smaller ε than R1's at the order given, where counting pays; otherwise R1's.

    Parameters
    ----------
    base : Guarantee
        One run; its Rényi curve holds for both directions.
    law : RunLaw
        Law of K.
    log_delta : float
        Natural logarithm of δ.
    order : float
        Rényi order, the one at which R1 gives its ε.
    epsilon : float
        ε of R1 by the conversion of Canonne, Kamath and Steinke at that order.
    curve : RankCurve
        Samples of F and F(V).

    Returns
    -------
    float
        A valid ε, at most ``epsilon``.
    """
    log_moment = (order - 1.0) * float(base.rdp(np.array([order]))[0])
    if (
        not (0.0 < epsilon < math.inf and math.isfinite(log_moment))
        or _spread(log_delta, order, curve) < 4e-3 * epsilon
    ):
        return epsilon
    curve, near = _fine_around_supremum(curve, order)
    budget = _budget(base, order, log_moment)
    # The last ranks may have no bounded F(u)/F(V(u)), where they hold next to nothing: they are left out of S.
    left_out = curve.log_f + curve.rank.log_q < log_delta + math.log(1e-4)
    log_delta -= 1.1e-4
    log_b, log_a = (part[: 2 * int(np.argmax(left_out)) + 1] for part in curve.vertices)
    steepest = float(np.max(log_a - log_b)) if np.all(log_b > -np.inf) else math.inf
    if budget.orders.size == 0 or not math.isfinite(steepest):
        return epsilon
    ranks = _ranks(curve, law, order, log_delta, near, math.exp(min(steepest - 0.9 * epsilon, 0.0)))
    if ranks is None:
        return epsilon
    guess = min(epsilon, _typical(ranks, budget, math.exp(min(steepest - epsilon, 0.0)), log_delta))
    # r follows from an ε that the answer is not allowed to fall below
    floor = guess * (1.0 - 2e-4)
    ratio = math.exp(steepest - floor)
    if not (0.9 * epsilon <= floor < epsilon * (1.0 - _PAYS) and ratio < 1.0):
        return epsilon
    counted = max(_largest(ranks, budget, ratio, log_delta), floor)
    gain = max(1.0 - counted / epsilon, 0.0)
    return epsilon * (1.0 - gain * min(max((gain - _PAYS) / (_PAYS_FULLY - _PAYS), 0.0), 1.0))


def _log_w(curve: RankCurve, order: float) -> Array:
    """``log F^a F(V)^(1-a)`` at the nodes; the ends, of which no neighbour stands on both sides, take no part."""
    with np.errstate(invalid="ignore"):
        value = order * curve.log_f - (order - 1.0) * curve.log_g
    value[[0, -1]] = -np.inf
    return value


def _spread(log_delta: float, order: float, curve: RankCurve) -> float:
    """How much log F changes over the ranks of the usual event: several times what counting can bring."""
    top = int(np.nanargmax(_log_w(curve, order)))
    event = order * math.exp(min(log_delta - float(curve.log_f[top]), 0.0))
    u = np.exp(curve.rank.log_u[top - 1 : top + 2])
    if u[0] < 1e-12 or not u[2] - u[0] > 1e-12:  # ranks as rare as that, or as common, are no matter of plain numbers
        return 0.0
    return event * float(curve.log_f[top - 1] - curve.log_f[top + 1]) / float(u[2] - u[0])


def _fine_around_supremum(curve: RankCurve, order: float) -> tuple[RankCurve, slice]:
    """The curve with enough nodes where ``F^a F(V)^(1-a)`` is within reach of its supremum, and their range."""

    def reach(curve: RankCurve) -> tuple[int, int]:
        value = _log_w(curve, order)
        close = np.flatnonzero(value >= np.nanmax(value) - _DEPTH)
        return max(int(close[0]) - 3, 1), min(int(close[-1]) + 3, value.size - 2)

    first, last = reach(curve)
    pieces = math.ceil(_NODES / max(last - first, 1))
    if 1 < pieces < 32:
        wide = np.zeros(curve.x.size - 1, dtype=bool)
        wide[first:last] = True
        curve = curve.refine(wide, pieces)
        first, last = reach(curve)
    return curve, slice(first, last + 1)


def _budget(base: Guarantee, order: float, log_moment: float) -> _Budget:
    orders = np.array(_ORDERS) if base.orders is None else base.orders[np.isfinite(base.orders)][:8]
    h = orders - 1.0
    exponent = h * base.rdp(orders)
    use = np.isfinite(exponent) & (exponent < 40.0) & (h > 1e-3)
    # the three outcomes' moments are sums of numbers near 1: a little is added for their rounding
    return _Budget(order, log_moment, orders[use], (np.expm1(exponent[use]) + 1e-14) / h[use])


def _ranks(curve: RankCurve, law: RunLaw, order: float, log_delta: float, near: slice, ratio: float) -> _Ranks | None:
    # b' = r b is the mildest case only where what ranks after has at least that ratio
    steep = np.exp(curve.image.log_q) < ratio * np.exp(curve.rank.log_q)
    stop = min(near.stop, int(np.argmax(steep)) if steep.any() else near.stop)
    if stop - near.start < 10:
        return None
    log_b, log_a = curve.vertices
    with np.errstate(invalid="ignore"):
        value = order * log_a - (order - 1.0) * log_b
    top = int(np.nanargmax(value))
    unit = float(log_a[top])
    if unit < log_delta + math.log(order):  # so rare a rank needs more than all outcomes for a gain of δ
        return None
    u, v = np.exp(curve.rank.log_u), np.exp(curve.image.log_u)
    # the cells of W are those of the near nodes but the outermost, whose neighbours' chords are none of W's
    far = np.concatenate([np.arange(near.start + 2), np.arange(stop - 2, u.size)])
    return _Ranks(
        law,
        u[near.start : stop],
        v[near.start : stop],
        (u[far], v[far]),
        near.start + 1,
        float(np.max(curve.slack_g[np.isfinite(curve.log_g)])) + 1e-12,
        unit,
        float(value[top]) - unit,
        order * math.exp(log_delta - unit),
    )


def _typical(ranks: _Ranks, budget: _Budget, cap: float, log_delta: float) -> float:
    """ε if S is a single outcome: not a bound, it tells where the answer will lie."""
    b = np.repeat(ranks.usual * np.array([0.5, 0.7, 1.0, 1.4, 2.0]), 3)
    m = np.tile([0.9, 0.95, 0.98], b.size // 3)
    ratio = np.exp((np.log(b) - np.log(m) - budget.log_moment) / (budget.order - 1.0))
    cells = _Cells(ranks, budget, cap, log_delta)
    return float(np.max(cells.values(np.column_stack([b, b, m, m]), np.minimum(ratio, cap))))


def _largest(ranks: _Ranks, budget: _Budget, ratio: float, log_delta: float) -> float:
    """ε at which no cell of (b, m) gives more than δ."""
    top = _largest_event(budget, ratio)
    cuts = np.array([0.0, 0.125, 0.35, 0.7, 1.0, 1.4, 2.0, 2.8, *2.0 ** np.arange(2.0, 60.0)]) * ranks.usual
    cuts = np.append(cuts[cuts < top], top)
    levels = np.array([0.0, 0.8, 0.93, 0.97, 1.0])
    cells = np.array([(*b, *m) for b in pairwise(cuts) for m in pairwise(levels)])
    # far from the usual event the whole moment is taken at once
    crowd = (cells[:, 0] >= 0.3 * ranks.usual) & (cells[:, 1] <= 4.5 * ranks.usual)
    whole = cells[(~crowd) & (cells[:, 2] == 0.0)]
    whole[:, 3] = 1.0
    cells = np.concatenate([cells[crowd], whole])
    evaluate = _Cells(ranks, budget, ratio, log_delta).values
    value, idle = evaluate(cells), 0
    for _ in range(_ROUNDS):
        largest = float(np.max(value))
        worst = np.argsort(-value)[:_AT_ONCE]
        along_b = 0.15 * _log_ratio(cells[worst, 1], cells[worst, 0]) > _log_ratio(cells[worst, 3], cells[worst, 2])
        finer = np.concatenate([_halved(cells[i], bool(b)) for i, b in zip(worst, along_b, strict=True)])
        within = np.minimum(evaluate(finer), np.repeat(value[worst], 2))  # what holds for a cell holds for its halves
        cells = np.concatenate([np.delete(cells, worst, axis=0), finer])
        value = np.concatenate([np.delete(value, worst), within])
        idle = 0 if np.max(value) < largest * (1.0 - _WORTHWHILE) else idle + 1
        if idle == 3:
            break
    return float(np.max(value)) * (1.0 + 1e-9)


def _log_ratio(high: Array, low: Array) -> Array:
    return np.asarray(np.log(high / np.maximum(low, 1e-300)))


def _halved(cell: Array, along_b: bool) -> Array:
    lo, hi = (cell[0], cell[1]) if along_b else (cell[2], cell[3])
    mid = math.sqrt(lo * hi) if along_b and lo > 0.0 else 0.5 * (lo + hi)
    if along_b:
        return np.array([[lo, mid, cell[2], cell[3]], [mid, hi, cell[2], cell[3]]])
    return np.array([[cell[0], cell[1], lo, mid], [cell[0], cell[1], mid, hi]])


def _largest_event(budget: _Budget, ratio: float) -> float:
    """An upper bound on b: the event and the rest alone already break a limit beyond it."""
    lo, hi = 1e-12, 1.0
    h = budget.orders - 1.0
    for _ in range(40):
        b = math.sqrt(lo * hi)
        rest = (1.0 - b) * ((1.0 - ratio * b) / (1.0 - b)) ** -h
        broken = (b * ratio**-h + rest - 1.0) / h > budget.limits * (1.0 + 1e-9)
        lo, hi = (lo, b) if bool(np.any(broken)) else (b, hi)
    return hi


class _Cells:
    """What a cell of (b, m) allows.

    Parameters
    ----------
    ranks, budget
        The curve and the base's limits.
    cap : float
        r, for the ranks at which W is not sought.
    log_delta : float
        Natural logarithm of δ.
    """

    def __init__(self, ranks: _Ranks, budget: _Budget, cap: float, log_delta: float) -> None:
        self._ranks, self._budget = ranks, budget
        self._delta = math.exp(log_delta - ranks.log_unit)
        order, h = budget.order, budget.order - 1.0
        self._power = h / order
        log_c = math.log(order) - h / order * math.log(h)
        self._log_kappas = ranks.log_m - order * log_c + _LOG_KAPPAS
        self._k = np.exp(log_c + self._log_kappas / order)
        self._ends = _ENDS[_ENDS * ranks.usual < 4.0] * ranks.usual
        self._near_f = [ranks.density(ranks.u)]
        self._far: list[tuple[Array, Array]] = []
        self._region: list[tuple[Array, Array]] = []
        self._cap = cap

    def values(self, cells: Array, ratio: Array | None = None) -> Array:
        """For each cell (b0, b1, m0, m1) the ε at which it gives δ; m in units of the base's moment.

        Parameters
        ----------
        cells : ndarray, shape (n, 4)
        ratio : ndarray, shape (n,), optional
            r of each cell instead of the common one.
        """
        r = np.full((len(cells), 1), self._cap) if ratio is None else ratio[:, None]
        b0, b1, m0, m1 = cells.T
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            v, settled = _good_before(self._ranks, self._budget, r, b0[:, None], m0[:, None])
            sound = _sound_cells(v, settled)
            total = np.zeros((self._k.size, len(cells)))
            for j in range(int(np.searchsorted(self._ends, np.max(b1)))):
                lo, hi = self._ends[j], self._ends[j + 1]
                width = np.clip(b1 - lo, 0.0, hi - lo)
                first, last = self._piece(j, v, sound, r)
                # below the chord, up to where the event ends
                total += width * (first + 0.5 * (last - first) * (width / (hi - lo)))
            left = self._delta - total
            value = self._log_kappas[:, None] + self._budget.log_moment + np.log(m1) - np.log(np.maximum(left, 0.0))
            return np.asarray(np.min(np.where(left > 0.0, value, np.inf), axis=0) / (self._budget.order - 1.0))

    def _piece(self, j: int, v: Array, sound: Mask, ratio: Array) -> tuple[Array, Array]:
        """Upper bounds on α at both ends of a piece of [0, b], per κ and cell."""
        ranks, (start, end, beyond) = self._ranks, self._ends[j : j + 3]
        steep = (end - start) / (beyond - end)
        if j == len(self._far):
            u, far_v = ranks.far
            cells = np.arange(u.size - 1) != ranks.joint
            far_f = [ranks.density(u + here) for here in (start, end)]
            g, g_beyond = (ranks.density(far_v + self._cap * here)[None, :] for here in (end, beyond))
            self._far.append(self._suprema(u, far_f, (g, steep * (g - g_beyond)), cells))
            # where W is no help
            g, g_beyond = (ranks.density(ranks.v + self._cap * here)[None, :] for here in (end, beyond))
            self._region.append((g, steep * (g - g_beyond)))
            self._near_f.append(ranks.density(ranks.u + end))
        g, g_beyond = ranks.density(v + ratio * end), ranks.density(v + ratio * beyond)
        cells = np.ones(ranks.u.size - 1, dtype=bool)
        cells[[0, -1]] = False  # no chords of W beside them
        lines = g, steep * (g - g_beyond)
        near = self._suprema(ranks.u, self._near_f[j : j + 2], lines, cells, sound, self._region[j])
        return np.maximum(near[0], self._far[j][0]), np.maximum(near[1], self._far[j][1])

    def _suprema(
        self,
        u: Array,
        f: list[Array],
        lines: tuple[Array, Array],
        cells: Mask,
        sound: Mask | None = None,
        region: tuple[Array, Array] | None = None,
    ) -> tuple[Array, Array]:
        """Largest ``F(u+β) - c κ^(1/a) F(v+rβ)^((a-1)/a)``, at least 0, at both ends of a piece, over some cells.

        F(v+rβ) is replaced by the line through its values at the ends of this and the next piece, which lies below it:
        ``lines`` are its value at the end and what it adds at the start, which is least at a cell's right end. Cells
        that are not ``sound`` have the lines of the region instead.
        """

        def enclosed(value: Array, fall: Array) -> list[Array]:
            theta, low = _corners(u, value, self._ranks.slack)
            return [theta, value[:, :-1], low, value[:, 1:], fall[:, 1:]]

        parts = enclosed(*lines)
        if sound is not None and region is not None and not sound.all():
            plain = enclosed(*region)
            parts = [np.where(sound, one, other) for one, other in zip(parts, plain, strict=True)]
        theta, left, low, right, fall = parts
        out = []
        for a, more in ((f[0], fall), (f[1], np.zeros_like(fall))):
            a_left = np.broadcast_to(a[:-1], left.shape)
            a_right = np.broadcast_to(a[1:], left.shape)
            a_all = (a_left, a_left + theta * (a_right - a_left), a_right)
            tops = np.concatenate([part[:, cells] for part in a_all], axis=1)
            powers = np.concatenate([(part + more)[:, cells] for part in (left, low, right)], axis=1)
            powers = np.maximum(powers, 0.0) ** self._power
            matter = (tops > self._k[0] * powers).any(axis=0)
            tops, powers = tops[:, matter], powers[:, matter]
            out.append(np.array([np.max(tops - k * powers, axis=1, initial=0.0) for k in self._k]))
        return out[0], out[1]


def _good_before(ranks: _Ranks, budget: _Budget, ratio: Array, b: Array, m: Array) -> tuple[Array, Mask]:
    """Largest v with (u, v) in W(b, m), per cell and node, by Newton's method from V down; and where it came to rest.

    Each limit is convex in v, so every step from above ends above the largest v it allows: any iterate is valid.
    """
    u = ranks.u
    v = np.minimum(np.broadcast_to(ranks.v, (b.size, u.size)), 1.0 - ratio * b - 1e-12)
    a = budget.orders[:, None, None]
    h, limit = a - 1.0, budget.limits[:, None, None]
    event = np.stack([b * ratio**-h, b * ratio**a])  # (direction, order, cell, 1)
    rest_u = np.maximum(1.0 - u - b, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_u, log_rest = np.log(u), np.log(rest_u)
        for _ in range(6):
            loss, rest_loss = log_u - np.log(v), log_rest - np.log(1.0 - v - ratio * b)
            forward = (u * np.exp(h * loss) + event[0] + rest_u * np.exp(h * rest_loss) - 1.0) / h - limit
            slope_forward = np.exp(a * rest_loss) - np.exp(a * loss)
            back = (u * np.exp(-a * loss) + event[1] + rest_u * np.exp(-a * rest_loss) - 1.0) / h - limit
            slope_back = a / h * (np.exp(-h * loss) - np.exp(-h * rest_loss))
            # S counts with m here, and leaves at least (1-v) to the rest
            o, o1 = budget.order, budget.order - 1.0
            tail = log_rest - np.log1p(-v)
            moment = (
                u * np.exp(o1 * loss - budget.log_moment) + rest_u * np.exp(o1 * tail - budget.log_moment) + m - 1.0
            )
            slope_moment = o1 * (np.exp(o * tail - budget.log_moment) - np.exp(o * loss - budget.log_moment))
            step, lost = np.zeros(v.shape), np.zeros(v.shape, dtype=bool)
            for excess, slope in ((forward, slope_forward), (back, slope_back), (moment[None], slope_moment[None])):
                broken = excess > 0.0
                lost |= np.any(broken & ~(slope > 0.0), axis=0)  # no v at all meets this limit
                step = np.maximum(step, np.max(np.where(broken & (slope > 0.0), excess / slope, 0.0), axis=0))
            stuck = lost | ~(step < v)
            settled = (step < 1e-7 * v) & ~stuck
            v = v - np.where(stuck, 0.0, step)
            if (settled | stuck).all():
                break
    return v, settled


def _sound_cells(v: Array, settled: Mask) -> Mask:
    """Cells between nodes where v is W's own (concave) at the four nodes around, and still rises after them."""
    sound = np.zeros((v.shape[0], v.shape[1] - 1), dtype=bool)
    sound[:, 1:-1] = settled[:, :-3] & settled[:, 1:-2] & settled[:, 2:-1] & settled[:, 3:] & (v[:, 3:] >= v[:, 2:-1])
    return sound


def _corners(u: Array, g: Array, slack: float) -> tuple[Array, Array]:
    """Where the neighbouring chords of convex samples g(u), prolonged into a cell, meet: share of the cell and value.

    Where the samples bend the wrong way, and in the outermost cells, the cell's right end serves.
    """
    width = np.diff(u)
    theta, low = np.zeros((g.shape[0], width.size)), g[:, 1:].copy()
    left, right = g[:, 1:-2], g[:, 2:-1]
    # falls per width of the cell; the lines' far ends are raised by what the samples may be too low
    fall = (g[:, :-3] * (1.0 + slack) - left) * (width[1:-1] / width[:-2])
    rise = np.maximum(right - g[:, 3:] * (1.0 + slack), 0.0) * (width[1:-1] / width[2:])
    meet = np.clip((left - right - rise) / np.maximum(fall - rise, 1e-300), 0.0, 1.0)
    meet = np.where(fall >= left - right, meet, 0.0)
    theta[:, 1:-1] = meet
    low[:, 1:-1] = np.where(meet > 0.0, np.maximum(right + (1.0 - meet) * rise, right), right)
    return theta, low
