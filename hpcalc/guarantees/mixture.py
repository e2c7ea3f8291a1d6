"""A run that draws one of several settings first, each with a guarantee of its own.

With fixed weights that do not depend on the data the setting drawn is part of the output, so divergences of the two
output laws are weighted sums: hockey-stick divergences order by order, Rényi moments order by order, and the trade-off
curves add where their slopes are equal. Epsilons are never averaged. Where the weights are not known, only the largest
of the settings' profiles holds, order by order (which is more than the dearest setting's epsilon).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from hpcalc.errors import InvalidInput, checked_number
from hpcalc.guarantees.composition import compose, repeat
from hpcalc.guarantees.guarantee import Guarantee, checked_orders
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.region import region_from_rdp, smaller
from hpcalc.guarantees.search import pair_of, profile_pair
from hpcalc.guarantees.tradeoff import Tails, Tradeoff
from hpcalc.logspace import Array, Prob, distinct, logsumexp

_INF = math.inf


class _Several(Guarantee):
    """What a mixture with known weights and one with unknown weights share: all but how the settings are joined."""

    parts: tuple[Guarantee, ...]
    pair: DominatingPair
    loss_attained = False

    def describe(self) -> dict[str, Any]:
        return {"candidates": [part.describe() for part in self.parts]}

    def label(self) -> str:
        return f"one of {len(self.parts)} settings"

    def _log_profile(self, t: Array) -> Array:
        directions = (0,) if self.symmetric else (0, 1)
        return np.asarray(np.max([self.log_profile_of(direction, t) for direction in directions], axis=0))

    def region(self, rank: Prob) -> Prob:
        out = super().region(rank)
        return out if self.exact_profile else smaller(out, region_from_rdp(self, rank, self.orders))

    def tradeoff(self, direction: int = 0) -> Tradeoff:
        return self.pair.tradeoff(direction)

    def loss_tails(self, loss: Array) -> Tails:
        return self.pair.loss_tails(loss)

    @cached_property
    def symmetric(self) -> bool:  # type: ignore[override]
        return all(part.symmetric for part in self.parts)

    @property
    def orders(self) -> Array | None:  # type: ignore[override]
        given = [part.orders for part in self.parts if part.orders is not None]
        return distinct(np.concatenate(given)) if given else None

    @property
    def exact_profile(self) -> bool:  # type: ignore[override]
        return all(part.exact_profile for part in self.parts)

    @property
    def pure_epsilon(self) -> float:
        return max(part.pure_epsilon for part in self.parts)

    @property
    def zcdp_rho(self) -> float:
        return max(part.zcdp_rho for part in self.parts)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(note for part in self.parts for note in part.notes))

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(warning for part in self.parts for warning in part.warnings))


@dataclass(frozen=True, eq=False)
class Mixture(_Several):
    """Each run draws one of the settings with weights that do not depend on the data; they are rescaled to sum to 1.

    >>> from hpcalc.guarantees import PureDP
    >>> both = Mixture((PureDP(1.0), PureDP(2.0)), (0.5, 0.5))
    >>> round(float(np.exp(both.log_profile(1.0))), 6)
    0.278385
    """

    parts: tuple[Guarantee, ...]
    weights: tuple[float, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.parts or len(self.parts) != len(self.weights):
            raise InvalidInput("weight", len(self.weights), f"give {len(self.parts)} weights, one for each setting")
        for weight in self.weights:
            checked_number("weight", weight, "give probabilities above 0", lambda x: 0.0 < x <= 1.0)
        total = math.fsum(self.weights)
        if not abs(total - 1.0) <= 1e-6:
            raise InvalidInput("weight", total, "the weights of all settings must sum to 1")
        object.__setattr__(self, "weights", tuple(weight / total for weight in self.weights))

    def _joined(self, values: Iterable[Array]) -> Array:
        rows = [math.log(weight) + value for weight, value in zip(self.weights, values, strict=True)]
        return logsumexp(np.stack(rows), axis=0)

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        t = np.asarray(t, dtype=float)
        return np.minimum(self._joined(part.log_profile_of(direction, t) for part in self.parts), 0.0)

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        curves = np.stack([part.rdp(order) for part in self.parts])
        h = np.where(np.isinf(order), 1.0, order) - 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            # the moments exceed 1 by little near order 1: their excess is added there
            excess = np.log1p(np.tensordot(self.weights, np.expm1(np.minimum(h * curves, 1.0)), 1))
            moment = np.where((h * curves <= 1.0).all(axis=0), excess, self._joined(h * curves))
            out = np.where(np.isinf(order), np.max(curves, axis=0), moment / h)
        out = np.minimum(np.where(np.isnan(out), _INF, out), np.max(curves, axis=0))
        return np.asarray(out, dtype=float)

    @property
    def slack(self) -> float:  # type: ignore[override]
        return math.fsum(weight * part.slack for weight, part in zip(self.weights, self.parts, strict=True))

    @cached_property
    def core(self) -> Guarantee:
        if self.slack in (0.0, 1.0):
            return self
        kept = [(part.core, w * (1.0 - part.slack)) for part, w in zip(self.parts, self.weights, strict=True)]
        total = math.fsum(weight for _, weight in kept)
        parts, weights = zip(*((part, weight / total) for part, weight in kept if weight > 0.0), strict=True)
        return Mixture(parts, weights)

    @cached_property
    def loss_attained(self) -> bool:  # type: ignore[override]
        return all(part.loss_attained and part.loss_steps() == ((part, 1),) for part in self.parts)

    def loss_tails(self, loss: Array) -> Tails:
        """Weighted sums of the settings' tails where all are known, else those of a finite pair that dominates."""
        if not self.loss_attained:
            return self.pair.loss_tails(loss)
        sides = [part.loss_tails(loss) for part in self.parts]
        return type(sides[0])(*(np.minimum(self._joined(side), 0.0) for side in zip(*sides, strict=True)))

    @cached_property
    def pair(self) -> DominatingPair:  # type: ignore[override]
        """A finite dominating pair: the outcomes of all the settings' pairs."""
        pairs = [pair_of(part) for part in self.parts]
        return self._pooled([(one.log_p, one.log_q) for one in pairs], all(one.attained for one in pairs))

    def _pooled(self, laws: Iterable[tuple[Array, Array]], attained: bool) -> DominatingPair:
        """The pair of the settings' outcomes, each law given by its log masses."""
        columns = [(w + log_p, w + log_q) for w, (log_p, log_q) in zip(np.log(self.weights), laws, strict=True)]
        log_p, log_q = (np.concatenate(masses) for masses in zip(*columns, strict=True))
        return DominatingPair.from_masses(log_p, log_q, attained)

    def attained_tradeoff(self, direction: int = 0) -> Tradeoff | None:
        """Of mechanisms that the settings' own can be post-processed to, drawn with the weights."""
        curves = [part.attained_tradeoff(direction) for part in self.parts]
        known = [curve.masses() for curve in curves if curve is not None]
        return self._pooled(known, True).tradeoff() if len(known) == len(curves) else None


@dataclass(frozen=True, eq=False)
class WorstOf(_Several):
    """Each run uses one of the settings, drawn with weights that are not known or whose choice nothing is known of.

    >>> from hpcalc.guarantees import PureDP
    >>> WorstOf((PureDP(1.0), PureDP(2.0))).pure_epsilon
    2.0
    """

    parts: tuple[Guarantee, ...]
    names: tuple[str, ...] = ()

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        t = np.asarray(t, dtype=float)
        return np.asarray(np.max([part.log_profile_of(direction, t) for part in self.parts], axis=0), dtype=float)

    def rdp(self, orders: Array | float) -> Array:
        return np.asarray(np.max([part.rdp(orders) for part in self.parts], axis=0), dtype=float)

    @cached_property
    def pair(self) -> DominatingPair:  # type: ignore[override]
        """A finite pair that dominates every setting."""
        directions = (0,) if self.symmetric else (0, 1)
        profiles = [partial(self.log_profile_of, direction) for direction in directions]
        return profile_pair(profiles, breakpoints=[part.core.pure_epsilon for part in self.parts])


@dataclass(frozen=True, eq=False)
class Listed(WorstOf):
    """Runs of a list, each setting so many times: one of them costs at most what the dearest setting does.

    >>> from hpcalc.guarantees import PureDP
    >>> runs = Listed((PureDP(1.0), PureDP(2.0)), counts=(3, 1))
    >>> runs.total, runs.every_run.pure_epsilon
    (4, 5.0)
    """

    counts: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """Number of runs."""
        return sum(self.counts)

    @cached_property
    def every_run(self) -> Guarantee:
        """All of them together."""
        return compose(*(repeat(part, count) for part, count in zip(self.parts, self.counts, strict=True)))
