"""A run that draws one of several settings first, each with a guarantee of its own.

With fixed weights that do not depend on the data the setting drawn is part of the output, so divergences of the two
output laws are weighted sums: hockey-stick divergences order by order, Rényi moments order by order, and the trade-off
curves add where their slopes are equal. Epsilons are never averaged. Where the weights are not known, only the largest
of the settings' profiles holds, order by order (which is more than the dearest setting's epsilon).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from hpcalc.guarantees.composition import ApproxDP, compose, repeat
from hpcalc.guarantees.guarantee import Guarantee, all_orders, checked_orders, over_parts, sentences
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.region import region_from_rdp
from hpcalc.guarantees.search import pair_of, profile_pair
from hpcalc.guarantees.tradeoff import Tails, Tradeoff
from hpcalc.logspace import Array, Prob, logsumexp

_INF = math.inf


def chosen(base: Guarantee) -> Guarantee:
    """A base whose setting is not drawn but chosen in any way: weights say nothing then; as it is if it lists runs."""
    if not isinstance(base, Mixture) or base.counts:
        return base
    slack, cores = max(part.slack for part in base.parts), tuple(part.core for part in base.parts)
    return replace(base, weights=None) if slack == 0.0 else compose(ApproxDP(0.0, slack), Mixture(cores))


@dataclass(eq=False)
class Mixture(Guarantee):
    """Each run draws one of the settings, with ``weights`` > 0 that do not depend on the data and sum to 1.

    Where they are not known, or nothing is known of how a setting is chosen, they are None. ``counts`` say how many
    runs each setting has where these are a list: one of them costs at most what the dearest setting does.
    """

    parts: tuple[Guarantee, ...]
    weights: tuple[float, ...] | None = None
    names: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()

    symmetric, exact_profile = over_parts("symmetric", all), over_parts("exact_profile", all)
    pure_epsilon, zcdp_rho = over_parts("pure_epsilon", max), over_parts("zcdp_rho", max)
    notes, warnings = over_parts("notes", sentences), over_parts("warnings", sentences)
    orders = over_parts("orders", all_orders)

    def describe(self) -> dict[str, Any]:
        return {"candidates": [part.describe() for part in self.parts]}

    @cached_property
    def every_run(self) -> Guarantee:
        """All runs of the list together."""
        return compose(*(repeat(part, count) for part, count in zip(self.parts, self.counts, strict=True)))

    def _joined(self, values: Iterable[Array]) -> Array:
        """The weighted sum of the settings' values, all as logarithms; the largest where no weights are known."""
        if self.weights is None:
            return np.asarray(np.max(list(values), axis=0), dtype=float)
        rows = [math.log(weight) + value for weight, value in zip(self.weights, values, strict=True)]
        return logsumexp(np.stack(rows), axis=0)

    def _log_profile(self, t: Array) -> Array:
        return np.asarray(np.max([self.log_profile_of(side, t) for side in self.directions], axis=0), dtype=float)

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        t = np.asarray(t, dtype=float)
        return np.minimum(self._joined(part.log_profile_of(direction, t) for part in self.parts), 0.0)

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        curves = np.stack([part.rdp(order) for part in self.parts])
        most = np.asarray(np.max(curves, axis=0), dtype=float)
        if self.weights is None:
            return most
        h = np.where(np.isinf(order), 1.0, order) - 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            # the moments exceed 1 by little near order 1: their excess is added there
            excess = np.log1p(np.tensordot(self.weights, np.expm1(np.minimum(h * curves, 1.0)), 1))
            moment = np.where((h * curves <= 1.0).all(axis=0), excess, self._joined(h * curves))
            return np.asarray(np.fmin(np.where(np.isinf(order), most, moment / h), most), dtype=float)

    def region(self, rank: Prob) -> Prob:
        known = super().region(rank)
        return known if self.exact_profile else region_from_rdp(self, rank, known)

    @property
    def slack(self) -> float:  # type: ignore[override]
        return math.fsum(weight * part.slack for weight, part in zip(self.weights or (), self.parts, strict=False))

    @cached_property
    def core(self) -> Guarantee:
        if self.weights is None or self.slack in (0.0, 1.0):
            return self
        kept = [(part.core, w * (1.0 - part.slack)) for part, w in zip(self.parts, self.weights, strict=True)]
        total = math.fsum(weight for _, weight in kept)
        parts, weights = zip(*((part, weight / total) for part, weight in kept if weight > 0.0), strict=True)
        return Mixture(parts, weights)

    @cached_property
    def loss_attained(self) -> bool:  # type: ignore[override]
        own = all(part.loss_attained and part.loss_steps() == ((part, 1),) for part in self.parts)
        return own and self.weights is not None

    def loss_tails(self, loss: Array) -> Tails:
        """Weighted sums of the settings' tails where all are known, else those of a finite pair that dominates."""
        if not self.loss_attained:
            return self.pair.loss_tails(loss)
        sides = [part.loss_tails(loss) for part in self.parts]
        return Tails(*(np.minimum(self._joined(side), 0.0) for side in zip(*sides, strict=True)))

    @cached_property
    def pair(self) -> DominatingPair:
        """A finite dominating pair: the outcomes of all the settings' pairs, or one that dominates every setting."""
        if self.weights is None:
            profiles = [partial(self.log_profile_of, side) for side in self.directions]
            return profile_pair(profiles, breakpoints=[part.core.pure_epsilon for part in self.parts])
        pairs = [pair_of(part) for part in self.parts]
        return self._pooled([(one.log_p, one.log_q) for one in pairs], all(one.attained for one in pairs))

    def _pooled(self, laws: Iterable[tuple[Array, Array]], attained: bool) -> DominatingPair:
        """The pair of the settings' outcomes, each law given by its log masses."""
        columns = [(w + log_p, w + log_q) for w, (log_p, log_q) in zip(np.log(self.weights or ()), laws, strict=True)]
        log_p, log_q = (np.concatenate(masses) for masses in zip(*columns, strict=True))
        return DominatingPair.from_masses(log_p, log_q, attained)

    def tradeoff(self, direction: int = 0) -> Tradeoff:
        return self.pair.tradeoff(direction)

    def attained_tradeoff(self, direction: int = 0) -> Tradeoff | None:
        """Of mechanisms that the settings' own can be post-processed to, drawn with the weights."""
        curves = [part.attained_tradeoff(direction) for part in self.parts if self.weights is not None]
        known = [curve.masses() for curve in curves if curve is not None]
        return self._pooled(known, True).tradeoff() if len(known) == len(self.parts) else None
