"""Guarantees made of others: outside an event that is set aside, and several in one run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hpcalc.errors import InvalidInput, checked_number
from hpcalc.guarantees.curves import ZCDP
from hpcalc.guarantees.guarantee import Guarantee, checked_count, checked_guarantee, checked_orders, sentences, smallest
from hpcalc.guarantees.mechanisms import Gaussian, PureDP
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.search import pair_of
from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.logspace import Array, Prob, logaddexp

_INF = math.inf


def _log_keep(slack: float) -> float:
    return math.log1p(-slack) if slack < 1.0 else -_INF


def _of_core(name: str) -> Any:
    """An attribute that the event set aside does not change."""
    return property(lambda self: getattr(self.core, name))


def _unless_slack(name: str) -> Any:
    """A number that is infinite where an event gives everything away."""
    return property(lambda self: getattr(self.core, name) if self.slack == 0.0 else _INF)


class WithCore(Guarantee):
    """A guarantee (:attr:`core`) that holds outside an event of probability :attr:`slack`."""

    exact_profile, orders, symmetric = map(_of_core, ("exact_profile", "orders", "symmetric"))
    pure_epsilon, zcdp_rho = map(_unless_slack, ("pure_epsilon", "zcdp_rho"))
    #: What is to be said beside what the core says.
    own_warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        return sentences([self.core.warnings, self.own_warnings])

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        return self.core.rdp(order) if self.slack == 0.0 else np.full(order.shape, _INF)

    def loss_steps(self) -> tuple[tuple[Guarantee, int], ...] | None:
        return self.core.loss_steps() if self.slack == 0.0 else None

    def _log_profile(self, t: Array) -> Array:
        return self._mixed(self.core._log_profile(t))

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        return self._mixed(self.core.log_profile_of(direction, t))

    def _mixed(self, inner: Array) -> Array:
        """Profile ``slack + (1 - slack) core``: the mixture with an event that gives everything away."""
        if self.slack == 0.0:
            return inner
        log_slack = math.log(self.slack)
        # the slack itself only where nothing is added: rounding must not swallow what is
        more = np.where(np.isneginf(inner), 0.0, 1e-15 * (10.0 - log_slack))
        return np.minimum(logaddexp(log_slack, _log_keep(self.slack) + inner) + more, 0.0)

    def region(self, rank: Prob) -> Prob:
        return self.core.region(rank) if self.slack == 0.0 else super().region(rank)

    @cached_property
    def _tradeoffs(self) -> dict[int, Tradeoff | None]:
        return {}

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        if direction not in self._tradeoffs:
            self._tradeoffs[direction] = self._beside(self.core.tradeoff(direction))
        return self._tradeoffs[direction]

    def attained_tradeoff(self, direction: int = 0) -> Tradeoff | None:
        return self._beside(self.core.attained_tradeoff(direction))

    def _beside(self, inner: Tradeoff | None) -> Tradeoff | None:
        """Its curve: the event that gives everything away comes first, and is no part of the other input's."""
        if inner is None or self.slack == 0.0:
            return inner
        keep, log_slack = _log_keep(self.slack), math.log(self.slack)
        log_x = np.minimum(logaddexp(log_slack, keep + inner.x.log_u), 0.0)
        log_w_rest = np.minimum(logaddexp(log_slack, keep + inner.w.log_q), 0.0)
        x = Prob(np.append(-_INF, log_x), np.append(0.0, keep + inner.x.log_q))
        w = Prob(np.append(-_INF, keep + inner.w.log_u), np.append(0.0, log_w_rest))
        return Tradeoff(x, w, np.append(-_INF, inner.log_slope), inner.attained)


@dataclass(frozen=True)
class ApproxDP(WithCore):
    """(ε, δ)-differential privacy: ε-DP outside an event of probability δ.

    Parameters
    ----------
    epsilon : float
        ε >= 0, in nats.
    delta : float
        δ in [0, 1].

    Examples
    --------
    >>> base = ApproxDP(1.0, 1e-8)
    >>> base.core, base.slack
    (PureDP(epsilon=1.0), 1e-08)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        remedy = "give ε >= 0 and δ in [0, 1), for example 1.0 1e-8"
        object.__setattr__(self, "epsilon", checked_number("approx_dp", self.epsilon, remedy, lambda x: x >= 0.0))
        object.__setattr__(self, "delta", checked_number("approx_dp", self.delta, remedy, lambda x: 0.0 <= x <= 1.0))

    def describe(self) -> dict[str, Any]:
        return {"approx_dp": [self.epsilon, self.delta]}

    @property
    def slack(self) -> float:  # type: ignore[override]
        return self.delta

    @property
    def core(self) -> Guarantee:
        return PureDP(self.epsilon)


@dataclass(frozen=True)
class Composition(WithCore):
    """All parts happen in one run (training, a noisy score on the training data, ...), so they compose.

    Rényi curves add. Gaussians merge into one Gaussian, zCDP and Gaussian parts into one zCDP guarantee, the δ of
    (ε, δ) parts is set aside (:attr:`slack`), and anything else composes by a convolved privacy-loss distribution
    where that is not too large, else through the summed Rényi curve. Curves beside mechanisms compose in both ways
    (:attr:`views`), and the better one counts.
    """

    parts: tuple[tuple[Guarantee, int], ...]

    def describe(self) -> dict[str, Any]:
        counts = {count for _, count in self.parts}
        given: dict[str, list[Any]] = {}
        for part, _ in self.parts:
            for key, value in part.describe().items():
                given.setdefault(key, []).append(value)
        out = {key: values[-1] if len(values) == 1 or key == "group" else values for key, values in given.items()}
        return out if len(counts) > 1 or counts == {1} else {**out, "compose": counts.pop()}

    def group(self, size: int) -> Composition:
        return Composition(tuple((part.group(size), count) for part, count in self.parts))

    @cached_property
    def slack(self) -> float:  # type: ignore[override]
        # the logarithms are of the probability that no (ε, δ) part gives everything away
        return -math.expm1(math.fsum(count * _log_keep(part.slack) for part, count in self.parts))

    @cached_property
    def core(self) -> Guarantee:
        cores = [(part.core, count) for part, count in self.parts]
        # the others reveal nothing, however often
        cores = [pair for pair in cores if pair[0].pure_epsilon > 0.0] or [(cores[0][0], 1)]
        gaussians = [(part, count) for part, count in cores if isinstance(part, Gaussian)]
        if sum(count for _, count in gaussians) > 1:  # they compose exactly: their 1/sigma^2 add
            total = math.fsum(count * part.loss**2 for part, count in gaussians)
            merged = Gaussian(1.0 / math.sqrt(total) if total < _INF else 0.0)
            cores = [*(pair for pair in cores if not isinstance(pair[0], Gaussian)), (merged, 1)]
        if len(cores) == 1 and cores[0][1] == 1:
            return cores[0][0]
        if all(isinstance(part, (ZCDP, Gaussian)) for part, _ in cores):
            return ZCDP(math.fsum(count * part.zcdp_rho for part, count in cores))
        from hpcalc.guarantees.convolved import Convolution  # where it is needed: it takes long to load

        return Convolution(tuple(cores))

    @cached_property
    def views(self) -> tuple[Guarantee, ...]:
        """Of parts of which some are curves alone: curves that add, and losses that compose, a pair for the curves."""
        curves = tuple(use for use in self.parts if use[0].core.loss_steps() is None)
        others = tuple(use for use in self.parts if use not in curves)
        if not curves or all(part.core.pure_epsilon == 0.0 for part, _ in others):
            return (self,)
        losses = Composition((*others, (_pair_of_curves(curves), 1)))
        return (self, losses) if losses.exact_profile else (self,)

    def _log_profile(self, t: Array) -> Array:
        known = [super()._log_profile(t), *(view._log_profile(t) for view in self.views[1:])]
        return np.asarray(np.min(known, axis=0), dtype=float)

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        known = [super().log_profile_of(direction, t), *(view.log_profile_of(direction, t) for view in self.views[1:])]
        return np.asarray(np.min(known, axis=0), dtype=float)

    def region(self, rank: Prob) -> Prob:
        return smallest([super().region(rank), *(view.region(rank) for view in self.views[1:])])

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        return sentences(part.notes for part, _ in self.parts)

    @property
    def own_warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        # what is convolved together need not be convolved apart
        return sentences(part.own_warnings if isinstance(part, WithCore) else part.warnings for part, _ in self.parts)


@lru_cache(maxsize=8)
def _pair_of_curves(parts: tuple[tuple[Guarantee, int], ...]) -> DominatingPair:
    return pair_of(Composition(parts))


def _parts_of(base: Guarantee) -> tuple[tuple[Guarantee, int], ...]:
    return base.parts if isinstance(base, Composition) else ((checked_guarantee(base), 1),)


def compose(*bases: Guarantee) -> Guarantee:
    """All the given guarantees in one run.

    Examples
    --------
    >>> compose(Gaussian(2.0), Gaussian(2.0), PureDP(0.0)).core
    Gaussian(sigma=1.414213562373095)
    """
    if not bases:
        raise InvalidInput("base", "(none)", "give at least one guarantee of one run, for example --zcdp 0.1")
    if len(bases) == 1:
        return checked_guarantee(bases[0])
    return Composition(tuple(part for base in bases for part in _parts_of(base)))


def repeat(base: Guarantee, count: int) -> Guarantee:
    """``count`` compositions of ``base`` in one run.

    Raises
    ------
    InvalidInput
        If ``count`` is not a whole number >= 1.
    """
    number = checked_count("compose", count, 1.0, 1e15, "give a whole number >= 1")
    if number == 1:
        return base
    return Composition(tuple((part, times * number) for part, times in _parts_of(base)))
