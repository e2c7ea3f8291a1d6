"""Theorem E: the exact price of best-of-K, an upper bound and the mechanism that attains it.

**Statement.** Let one run satisfy ``Q'(S) >= W(Q(S))`` for every event S, W convex with slope ``l(x) = W'(x)``, and let
``V(u) = 1 - W(1-u)``. After a uniform tie-break let the search's law A have density at most ``FU(rank under Q)`` with
respect to Q, and A' at least ``FL(rank under Q')`` with respect to Q', FU and FL nonincreasing (best-of-K: both are
``F(u) = f'(1-u)``). Then for every ε >= 0

    delta(ε) <= sup over nondecreasing y of ∫_0^β [FU(x + y(x)) - e^ε l(x) FL(W(x) + V(y(x)))] dx          (path form)
             <= ∫_0^1 sup_{0 <= y <= 1-x} [FU(x + y) - e^ε l(x) FL(W(x) + V(y))]_+ dx                  (pointwise form)

**Proof.** For a point of S let x, w be the Q- and Q'-mass of the points of S ranked before it, y, z those of the points
not in S ranked before it: its ranks are x+y and w+z. With β = Q(S): ``A(S) <= ∫_0^β FU(x + y(x)) dx``, y nondecreasing,
and ``A'(S) >= ∫ FL(w + z(w)) dw`` over [0, Q'(S)]. (i) z <= V(y). (ii) Where S has collected the Q'-mass w, its Q-mass
is at most ``sup{x: W(x) <= w}``. (iii) ``Q'(S) >= W(β)``. FL is nonincreasing, so ``A'(S) >= ∫_0^β FL(W(x) + V(y(x)))
l(x) dx``. Subtract and take the supremum over S. K = 0 adds nothing for ε >= 0. ∎

Where one pair of laws attains W the path form is an equality: rank the outcomes of S ("winners") by increasing
likelihood ratio dQ'/dQ, between them the other outcomes ("losers") by decreasing ratio, y(x) of them before winner x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from hpcalc.bounds.bound import ProfileBound
from hpcalc.bounds.cells import CUTS, DEPTH, MARGIN, Search, falls, rank_of, spread
from hpcalc.bounds.polygon import Points, Polygon, between, chords, losers, share_out, winners
from hpcalc.bounds.renyi import rdp_of_profiles, refined_renyi
from hpcalc.conversion import Conversion
from hpcalc.guarantees import Guarantee
from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.laws import BestOfK, Law, RunCount
from hpcalc.logspace import Array, Indices, Prob, distinct, logsubexp

# Smaller ones are left to other bounds: doubles end there.
_SMALLEST = -650.0

# Knobs of speed; any values are sound.
_COARSE, _MOST, _SHARES = 65, 700, 300  # pieces: to begin with, where cutting ends, parts of the error allowed
_EVEN = 500  # pieces where many ε are asked for
_PATHS = 512  # cells that paths in the path form go through
_FILL = 2048  # points at which polygons may be cut, over all masses and again over those that decide most searches
_LOOSE = 1e-3  # relative excess at which a cell is left alone where many ε are asked for
_ENOUGH = 1e-4  # relative error of ε at which pieces are left alone
_NEAR = 2e-4  # the same where no pair of laws attains the region, and a Rényi bound is mostly smaller
_EXCESS = (4e-4, 2.5e-3, 1.6e-2, 0.1, 0.4)  # relative excess over the best path, tried in the path form
_DONE = 1e-5  # relative excess of ε at which it is taken
_FAR = -46.0  # log delta up to which a Rényi curve is taken from the profile
_LEAST = -80.0  # logarithm of the delta to which a profile is accurate
_THIN = 1e-7  # width of a block, relative to where it is, that differences of doubles still tell


@dataclass(eq=False)
class Mechanism:
    """The search over one pair of laws, its outcomes ranked along a path of Theorem E and merged into blocks.

    ``log_a`` and ``log_b`` are the log-probabilities of the winners' blocks under A and A'.
    """

    log_a: Array
    log_b: Array

    @classmethod
    def along(cls, law: BestOfK, won: Points, lost: Points) -> Mechanism:
        """Winners between neighbouring points, each block after the losers of one point.

        Events need not hold every block: those so thin that rounding makes up their likelihood ratio are left out.
        """
        use = won.x[1:] <= lost.x_rest
        for ends, above in ((won.x, won.x_rest), (won.w, won.w_rest)):
            use &= (between(ends, above) > _THIN * ends[1:]) | (ends[1:] == 0.0)

        def blocks(ends: Array, before: Array, rest: Array, density: Callable[[Prob], Array]) -> Array:
            lo, hi = (rank_of(part[use], before[use], rest[use]) for part in (ends[:-1], ends[1:]))
            with np.errstate(divide="ignore"):
                log_width = np.log(np.maximum(np.diff(ends)[use], 0.0))
            if isinstance(law, Law):
                return law.log_block(lo, hi, log_width)
            return log_width + 0.5 * (density(lo) + density(hi))

        return cls(
            blocks(won.x, lost.x, lost.x_rest, law.log_upper_density),
            blocks(won.w, lost.w, lost.w_rest, law.log_lower_density),
        )

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence of the blocks at one ε."""
        return float(np.sum(np.exp(logsubexp(self.log_a, np.minimum(self.log_b + epsilon, self.log_a)))))

    def mass(self, epsilon: float) -> float:
        """Probability under A of the best event at one ε."""
        return float(np.sum(np.exp(self.log_a[self.log_a > self.log_b + epsilon])))

    def epsilon(self, log_delta: float) -> float:
        """Least ε >= 0 whose hockey-stick divergence on the blocks is at most delta: ``max log((A(S)-δ)/A'(S))``."""
        with np.errstate(invalid="ignore"):
            loss = np.where(np.isneginf(self.log_a), -np.inf, self.log_a - self.log_b)
        order = np.argsort(-loss, kind="stable")
        a, b = np.logaddexp.accumulate(self.log_a[order]), np.logaddexp.accumulate(self.log_b[order])
        likely = a > log_delta + MARGIN
        if not likely.any():
            return 0.0
        return max(float(np.max(logsubexp(a[likely], log_delta) - b[likely])), 0.0)


@dataclass(eq=False)
class _Located:
    """What a search on some pieces found: ε, delta and the losers before each piece, the error that is small enough."""

    epsilon: float
    delta: float
    before: Points
    enough: float


class Direction:
    """One direction of a search: A against A'.

    ``own`` is what one run guarantees, winners and losers; ``inner`` are points that one pair of laws has.
    """

    def __init__(self, law: BestOfK, own: tuple[Polygon, Polygon], inner: Tradeoff | None) -> None:
        self.law = law
        self.own = own
        self.inner = None if inner is None or not isinstance(law, Law) else chords(inner)
        # the Q-mass of outcomes that Q' does not have
        self.log_lost = (
            -math.inf if inner is None else float(np.max(inner.x.log_u[np.isneginf(inner.w.log_u)], initial=-math.inf))
        )
        self.enough = _NEAR if self.inner is None else _ENOUGH

    def solve(self, log_delta: float, enough: float) -> tuple[float, float]:
        """Lower bound (0 without a mechanism) and certified upper bound on ε, which need not be below ``enough``."""
        if log_delta < _SMALLEST:
            return 0.0, math.inf
        search, found = self._adapted(log_delta - 9.0 - self.law.log_mean, self._path(log_delta, enough))
        low = self._lower(search, found, log_delta)
        if found.enough == math.inf:
            return low, enough
        if found.epsilon == math.inf:  # more than delta lies where W is 0, or less than a double can tell from 0
            if isinstance(self.law, Law) and self.law.success(Prob.from_log_u(self.log_lost)).log_u > log_delta:
                low = math.inf
            return low, math.inf
        # -dε/dlog(delta) near the answer
        fall = math.exp(log_delta) * self.enough * max(found.epsilon, 1e-3) / found.enough
        high = _least_epsilon(search.log_delta, log_delta, found.epsilon, fall, 60 if self.inner is None else 6)
        near = max(found.epsilon * (1.0 + _EXCESS[0]), enough)
        if high > near and self.inner is not None:  # the pointwise form may be larger than the path form
            finer, delta = replace(search, count=_PATHS), math.exp(log_delta)
            found = self._path(log_delta)(finer, found)
            low = max(low, self._lower(finer, found, log_delta))
            tried = (max(found.epsilon * (1.0 + excess), enough) for excess in _EXCESS)
            passing = (min(epsilon, high) for epsilon in tried if epsilon >= high or search.within(epsilon, delta))
            high = next(passing, math.inf)
            if high == math.inf:
                high = _least_epsilon(search.log_delta, log_delta, found.epsilon, fall, 60)
        return low, max(low, high) if low <= high * (1.0 + MARGIN) else high  # equal but for rounding

    def _lower(self, search: Search, found: _Located, log_delta: float) -> float:
        """ε of the mechanism on the path found; 0 without a mechanism."""
        if self.inner is None:
            return 0.0
        made = self._mechanism(search, found.before, self.inner)
        # what doubles call 0 has at most this probability
        low = Mechanism(made.log_a, np.maximum(made.log_b, self.law.log_mean - 690.0)).epsilon(log_delta)
        # likelihood ratios of blocks are told to 1e-9, which counts where delta is below the rounding of a probability
        return low if log_delta > -30.0 else max(low - 1e-8, 0.0)

    def estimate(self, log_delta: float) -> float:
        """ε of the best path on few pieces: no bound."""
        if log_delta < _SMALLEST:
            return math.inf
        return self._adapted(log_delta - 9.0 - self.law.log_mean, self._path(log_delta), certify=False)[1].epsilon

    def profile(self, floor: float) -> Callable[[Array], Array]:
        """Certified log delta at arrays of ε, quicker than one by one; to be accurate down to log delta ``floor``."""
        log_tail = floor - 9.0 - self.law.log_mean
        line, lattice = _filled(self.own, math.floor(log_tail))
        search = Search(
            self.law, line.coarser(self._first(line, _EVEN, log_tail)), lattice, 0.0, log_tail, close=_LOOSE
        )
        return lambda epsilons: np.array([search.log_delta(float(epsilon)) for epsilon in epsilons])

    def log_delta(self, epsilon: float) -> float:
        """Certified upper bound on the logarithm of delta."""

        def located(search: Search, before: _Located | None) -> _Located:
            lost = search.losers_before(epsilon)
            made = self._mechanism(search, lost, self.own)
            delta = made.delta(epsilon)
            return _Located(epsilon, delta, lost, self.enough * max(delta, math.exp(_LEAST)))

        return self._adapted(_LEAST - self.law.log_mean, located)[0].log_delta(epsilon)

    def _path(self, log_delta: float, least: float = 0.0) -> Callable[[Search, _Located | None], _Located]:
        """The best path at delta: from a path to the ε that it attains, from there to the path that is best at it.

        Any error is small enough where ``least`` is certified: no smaller ε is asked for.
        """

        def located(search: Search, before: _Located | None) -> _Located:
            epsilon, below = 0.0 if before is None else before.epsilon, 0.5 * self.enough
            rounds = 0 if before is None else 2
            for _ in range(20):
                # just below ε, or as far below that what is best there still adds something
                lost = search.losers_before(epsilon * (1.0 - below), rounds)
                made = self._mechanism(search, lost, self.own)
                found = made.epsilon(log_delta)
                if found < epsilon * (1.0 - 10.0 * self.enough) and below < 0.5:
                    below *= 10.0
                # what is left is of the order of the square of the last step
                elif found <= epsilon * (1.0 + (10.0 if rounds else 200.0) * self.enough) or found == math.inf:
                    if rounds:
                        break
                    rounds = 2
                else:
                    epsilon = found
            epsilon = max(epsilon, found)
            if epsilon == math.inf:
                return _Located(epsilon, 0.0, lost, 0.0)
            if epsilon <= least < math.inf and search.log_delta(least) <= log_delta:
                return _Located(epsilon, math.exp(log_delta), lost, math.inf)
            # an error of delta, divided by this, is one of ε
            delta = math.exp(log_delta)
            weight = max(made.mass(epsilon) - delta, delta)
            return _Located(epsilon, delta, lost, self.enough * max(epsilon, 1e-3) * weight)

        return located

    def _adapted(
        self, log_tail: float, located: Callable[[Search, _Located | None], _Located], certify: bool = True
    ) -> tuple[Search, _Located]:
        """A search with pieces cut until their errors are small (or once, to certify nothing), and what is on it."""
        line, lattice = _filled(self.own, math.floor(log_tail))
        chosen, found = self._first(line, _COARSE, log_tail), None
        enough = math.exp(log_tail + self.law.log_mean)  # about 1e-4 of delta
        first = True
        while True:
            search = Search(self.law, line.coarser(chosen), lattice, enough, log_tail)
            found = located(search, found)
            enough = found.enough
            if found.epsilon == math.inf or not (certify or first):
                return search, found
            first = False
            for certified in (False, True) if certify else (False,):
                more = distinct(np.concatenate([chosen, _cuts(search, found, line.corner.logit[:-1], certified)]))
                if more.size > chosen.size:
                    break
            else:
                return search, found
            chosen = more

    def _first(self, line: Polygon, count: int, log_tail: float) -> Indices:
        """Pieces spread over all masses, slopes and densities."""
        corner = line.corner.take(slice(None, -1))
        f = self.law.log_upper_density(rank_of(np.zeros(1), corner.x, corner.x_rest))
        g = self.law.log_lower_density(rank_of(np.zeros(1), corner.w, corner.w_rest))
        with np.errstate(divide="ignore"):
            steep = np.maximum(np.log(line.slope), -DEPTH)
        measures = [spread(corner, log_tail), np.abs(np.diff(steep)), falls(f, DEPTH), falls(g, DEPTH)]
        return share_out(measures, count)

    def _mechanism(self, search: Search, before: Points, polygons: tuple[Polygon, Polygon]) -> Mechanism:
        points = search.pieces.corner, before
        won, lost = (line.over(part.x, part.x_rest) for line, part in zip(polygons, points, strict=True))
        return Mechanism.along(self.law, won, lost)


@lru_cache(maxsize=8)
def _filled(own: tuple[Polygon, Polygon], log_tail: int) -> tuple[Polygon, Polygon]:
    """Winners and losers with points at which they may be cut: the same for every law of K that a search tries."""
    z = np.linspace(max(log_tail, -690.0), 37.0, _FILL), np.linspace(-18.0, 6.0, _FILL)
    won, lost = (polygon.filled(np.concatenate(z)) for polygon in own)
    return won, lost


def _cuts(search: Search, found: _Located, places: Array, certified: bool) -> Indices:
    """Where to cut pieces, at some of the places given, so that all err about equally.

    The error is that of the certified bound, or of the path found, which is quicker and nearly always the same.
    """
    corner, before = search.pieces.corner, found.before
    start, stop = corner.take(slice(None, -1)), corner.take(slice(1, None))
    f0, f1 = search.log_f(start.x, before), search.log_f(stop.x, before)
    g0, g1 = search.log_g(start.w, before), search.log_g(stop.w, before)
    if certified:
        left, right = search.suprema(found.epsilon)
        if 0.5 * np.sum(search.width * (left + right)) <= found.delta + 2.0 * found.enough:
            return np.empty(0, dtype=np.intp)
    else:
        log_c = search.log_c(found.epsilon)
        left, right = (np.exp(logsubexp(f, np.minimum(log_c + g, f))) for f, g in ((f0, g0), (f1, g1)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bend = np.nan_to_num((f1 - f0) ** 2 + 2.0 * (g1 - g0) ** 2, nan=np.inf) / 12.0
        step = np.nan_to_num(np.log(left[1:] / right[:-1]) ** 2, nan=0.0, posinf=np.inf) / 6.0
        fall = np.nan_to_num(np.log(left / right) ** 2, nan=0.0, posinf=np.inf) / 12.0
        change = np.maximum(fall, np.maximum(np.append(step, 0.0), np.append(0.0, step)))
        value = 0.5 * (left + right)
        error = search.width * np.minimum(np.nan_to_num(np.exp(f0) * bend + value * change, nan=0.0), value)
    error[0] = 0.0
    if np.sum(error) <= found.enough or error.size >= _MOST * (1 + certified):
        return np.empty(0, dtype=np.intp)
    parts = np.ceil(np.cbrt(np.minimum(error * (_SHARES / max(found.enough, 1e-300)), 1e6))).clip(1, CUTS)
    first, last = (np.searchsorted(places, part.logit) for part in (start, stop))
    out = [first + ((last - first) * (k / parts)).astype(np.intp) for k in range(CUTS)]
    cuts = np.concatenate([part[k < parts] for k, part in enumerate(out)])
    return np.asarray(np.minimum(cuts, places.size - 1))


def _least_epsilon(
    log_profile: Callable[[float], float], log_delta: float, epsilon: float, fall: float, rounds: int
) -> float:
    """Least ε, nearly, whose certified delta is at most the one asked; ``fall`` is ``-dε/dlog(delta)``."""
    low, high, above = 0.0, math.inf, math.nan
    for _ in range(rounds):
        value = log_profile(epsilon) - log_delta
        if value <= 0.0:
            high = epsilon
            if epsilon == 0.0 or high - low <= _DONE * high or value > -_DONE * max(high, 1e-6) / fall:
                break
        else:
            if low > 0.0 and value < above:
                fall = max(fall, (epsilon - low) / (above - value))
            low, above = epsilon, value
        ahead = epsilon + fall * value + (0.5 * _DONE * epsilon if value > 0.0 else 0.0)
        epsilon = ahead if low < ahead < high else (0.5 * (low + high) if high < math.inf else 2.0 * epsilon + 1e-9)
    return high


@lru_cache(maxsize=8)
def _known(guarantee: Guarantee, side: int) -> tuple[tuple[Polygon, Polygon], Tradeoff | None] | None:
    """What is known of one direction, and what is attained: the same for every law of K that a search tries."""
    outer = guarantee.tradeoff(side)
    return None if outer is None else ((winners(outer), losers(outer)), guarantee.attained_tradeoff(side))


class ExactBound(ProfileBound):
    """Theorem E for a guarantee with a trade-off curve: exact where one pair of laws attains that.

    Examples
    --------
    >>> from hpcalc.guarantees import Gaussian
    >>> from hpcalc.laws import Poisson
    >>> bound = ExactBound(Gaussian(5**0.5), Poisson(10.0))
    >>> round(bound.epsilon(math.log(1e-6)).value, 3), round(bound.mechanism(math.log(1e-6)), 3)
    (3.65, 3.65)
    """

    name = "refined-region"
    citation = "Theorem E: exact price of best-of-K from the privacy region (hpcalc-theory(7))"
    conditions = ("every event of one run lies in the region; ranks are shared by a uniform tie-break",)

    def __init__(self, guarantee: Guarantee, law: BestOfK) -> None:
        self.guarantee, self.law = guarantee, law

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        found = []
        for side in (0,) if self.guarantee.symmetric else (0, 1):
            known = _known(self.guarantee, side)
            if known is None:
                return ()
            found.append(Direction(self.law, *known))
        return tuple(found)

    @cached_property
    def _solved(self) -> dict[float, tuple[float, float]]:
        return {}

    def _solve(self, log_delta: float) -> tuple[float, float]:
        """Lower and upper bound, each the larger of both directions."""
        if self.guarantee.pure_epsilon == 0.0 and isinstance(self.law, Law):
            return 0.0, 0.0
        if log_delta not in self._solved:
            answer = 0.0, 0.0
            for direction in self.directions:
                low, high = direction.solve(log_delta, answer[1])
                answer = max(low, answer[0]), max(high, answer[1])
            self._solved[log_delta] = answer if self.directions else (0.0, math.inf)
        return self._solved[log_delta]

    def rdp(self, orders: Array) -> Array | None:
        if self.guarantee.slack > 0.0 or not self.directions or not isinstance(self.law, Law):
            return None
        profiles = [partial(self.log_profile_of, side) for side in range(len(self.directions))]
        return rdp_of_profiles(profiles, refined_renyi(self.guarantee, self.law), orders, self.probe(_FAR))

    def epsilon(self, log_delta: float, rule: str = "best") -> Conversion:
        return Conversion(self._solve(log_delta)[1], "exact")

    @property
    def attained(self) -> bool:
        """Whether a mechanism is known in every direction."""
        return bool(self.directions) and all(direction.inner is not None for direction in self.directions)

    def probe(self, log_delta: float) -> float:
        if not self.directions or log_delta == -math.inf:
            return math.inf
        return max(direction.estimate(log_delta) for direction in self.directions)

    def mechanism(self, log_delta: float) -> float:
        """Lower bound on ε from the mechanism of the best path; 0 where no mechanism is known."""
        return self._solve(log_delta)[0]

    def log_profile_of(self, direction: int, epsilons: Array) -> Array:
        """Log of the certified delta of one direction (0: A against A', 1: A' against A) at each epsilon >= 0."""
        if not self.directions:
            return np.zeros(np.shape(epsilons))
        chosen = self.directions[direction % len(self.directions)]
        return np.array([chosen.log_delta(float(epsilon)) for epsilon in np.ravel(epsilons)]).reshape(
            np.shape(epsilons)
        )

    def profile_of(self, direction: int, floor: float) -> Callable[[Array], Array]:
        """The same for many epsilons, accurate down to log delta ``floor``: a function of arrays, shape (n,)."""
        if not self.directions:
            return lambda epsilons: np.zeros(np.shape(epsilons))
        return self.directions[direction % len(self.directions)].profile(floor)

    def log_profile(self, epsilons: Array) -> Array:
        sides = range(max(len(self.directions), 1))
        return np.asarray(np.max([self.log_profile_of(side, epsilons) for side in sides], axis=0), dtype=float)


def bounds(guarantee: Guarantee, law: RunCount, orders: Array | None = None) -> Iterator[ExactBound]:
    """Where K is a law of best-of-K, of every view of the guarantee."""
    if isinstance(law, BestOfK):
        yield from (ExactBound(view, law) for view in guarantee.views)
