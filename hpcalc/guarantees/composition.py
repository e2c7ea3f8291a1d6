"""Guarantees made of others: outside an event that is set aside, and several in one run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hpcalc.errors import InvalidInput, checked_number
from hpcalc.guarantees.curves import ZCDP
from hpcalc.guarantees.guarantee import Guarantee, certain, checked_count, checked_guarantee, checked_orders
from hpcalc.guarantees.mechanisms import Gaussian, PureDP
from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.logspace import Array, Prob, log1mexp, logaddexp, logsubexp

_INF = math.inf


def _log_keep(slack: float) -> float:
    return math.log1p(-slack) if slack < 1.0 else -_INF


class WithCore(Guarantee):
    """A guarantee (:attr:`core`) that holds outside an event of probability :attr:`slack`."""

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        return self.core.rdp(order) if self.slack == 0.0 else np.full(order.shape, _INF)

    @property
    def exact_profile(self) -> bool:  # type: ignore[override]
        return self.core.exact_profile

    @property
    def orders(self) -> Array | None:  # type: ignore[override]
        return self.core.orders

    #: What is to be said beside what the core says.
    own_warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys((*self.core.warnings, *self.own_warnings)))

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.core.symmetric

    def loss_steps(self) -> tuple[tuple[Guarantee, int], ...] | None:
        return self.core.loss_steps() if self.slack == 0.0 else None

    def _log_profile(self, t: Array) -> Array:
        return self._mixed(self.core._log_profile(t))

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        return self._mixed(self.core.log_profile_of(direction, t))

    def _mixed(self, inner: Array) -> Array:
        """Profile ``slack + (1 - slack) core``: the mixture with an event that gives everything away."""
        return inner if self.slack == 0.0 else logaddexp(math.log(self.slack), _log_keep(self.slack) + inner)

    def region(self, rank: Prob) -> Prob:
        """``v = slack + (1 - slack) V(u / (1 - slack))``, the region of the same mixture."""
        if self.slack in (0.0, 1.0):
            return certain(rank) if self.slack else self.core.region(rank)
        keep, log_slack = _log_keep(self.slack), math.log(self.slack)
        # 1 - u/(1-slack) = (1-u-slack)/(1-slack)
        log_q = np.minimum(logsubexp(np.maximum(rank.log_q, log_slack), log_slack) - keep, 0.0)
        log_u = np.where(rank.log_u - keep < -0.5, rank.log_u - keep, log1mexp(log_q))
        inner = self.core.region(Prob(log_u, log_q))
        return Prob(np.minimum(logaddexp(log_slack, keep + inner.log_u), 0.0), keep + inner.log_q)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        return self._beside(self.core.tradeoff(direction))

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

    @property
    def pure_epsilon(self) -> float:
        return self.core.pure_epsilon if self.slack == 0.0 else _INF

    @property
    def zcdp_rho(self) -> float:
        return self.core.zcdp_rho if self.slack == 0.0 else _INF


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

    def label(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.6g})-DP"

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
    where that is not too large, else through the summed Rényi curve. :attr:`how` says which.
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

    def label(self) -> str:
        kinds: dict[type[Guarantee], list[tuple[Guarantee, int]]] = {}
        for part, count in self.parts:
            kinds.setdefault(type(part), []).append((part, count))
        return " + ".join(kind.label_of(parts) for kind, parts in kinds.items())

    def group(self, size: int) -> Composition:
        return Composition(tuple((part.group(size), count) for part, count in self.parts))

    @cached_property
    def _merged(self) -> tuple[Guarantee, float, str]:
        # log of the probability that no (ε, δ) part gives everything away
        keep = math.fsum(count * _log_keep(part.slack) for part, count in self.parts)
        slack = -math.expm1(keep)
        cores = [(part.core, count) for part, count in self.parts]
        cores = [pair for pair in cores if pair[0].pure_epsilon > 0.0] or cores[:1]  # the others reveal nothing
        gaussian = [(part, count) for part, count in cores if isinstance(part, Gaussian)]
        zcdp = [part for part, _ in cores if isinstance(part, ZCDP)]
        if len(cores) == 1 and cores[0][1] == 1:
            return cores[0][0], slack, "single guarantee"
        if len(gaussian) == len(cores):
            return _merged_gaussian(gaussian), slack, "Gaussians merged exactly"
        if zcdp and len(gaussian) + len(zcdp) == len(cores):
            rho = math.fsum(count * part.zcdp_rho for part, count in cores)
            return ZCDP(rho), slack, "zCDP parameters added"
        if gaussian:  # merge the Gaussians first: fewer parts to convolve
            rest = [pair for pair in cores if not isinstance(pair[0], Gaussian)]
            cores = [*rest, (_merged_gaussian(gaussian), 1)]
        from hpcalc.guarantees.convolved import Convolution  # where it is needed: it takes long to load

        whole = Convolution(tuple(cores))
        how = "privacy-loss distributions convolved" if whole.exact_profile else "Rényi curves added"
        return whole, slack, how

    @property
    def how(self) -> str:
        """How the parts were composed, in a few words."""
        return self._merged[2]

    @property
    def slack(self) -> float:  # type: ignore[override]
        return self._merged[1]

    @property
    def core(self) -> Guarantee:
        return self._merged[0]

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(note for part, _ in self.parts for note in part.notes))

    @property
    def own_warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        # what is convolved together need not be convolved apart
        together = self.core.exact_profile
        told = (
            part.own_warnings if together and isinstance(part, WithCore) else part.warnings for part, _ in self.parts
        )
        return tuple(each for some in told for each in some)


def _merged_gaussian(parts: Iterable[tuple[Gaussian, int]]) -> Gaussian:
    """Gaussians compose exactly: their ``1/sigma^2`` add."""
    total = math.fsum(count * part.loss**2 for part, count in parts)
    return Gaussian(1.0 / math.sqrt(total) if total < _INF else 0.0)


def compose(*bases: Guarantee) -> Guarantee:
    """All the given guarantees in one run.

    Examples
    --------
    >>> both = compose(Gaussian(2.0), Gaussian(2.0))
    >>> round(both.core.sigma, 6), both.how
    (1.414214, 'Gaussians merged exactly')
    """
    if not bases:
        raise InvalidInput("base", "(none)", "give at least one guarantee of one run, for example --zcdp 0.1")
    if len(bases) == 1:
        return checked_guarantee(bases[0])
    parts: list[tuple[Guarantee, int]] = []
    for base in bases:
        parts.extend(base.parts if isinstance(base, Composition) else [(checked_guarantee(base), 1)])
    return Composition(tuple(parts))


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
    parts = base.parts if isinstance(base, Composition) else ((checked_guarantee(base), 1),)
    return Composition(tuple((part, times * number) for part, times in parts))
