"""What every guarantee of one run answers, and what its classes share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hpcalc.errors import InvalidInput, checked_number
from hpcalc.guarantees.tradeoff import UNKNOWN, Tails, Tradeoff, from_masses, least_masses
from hpcalc.logspace import Array, Prob, distinct, log1mexp, logaddexp


class Guarantee(ABC):
    """What one run of the base algorithm guarantees, for every pair of neighbouring inputs.

    A kind of guarantee is a subclass with :meth:`describe`, :meth:`rdp` and ``_log_profile``. What else it knows better
    than these say, :meth:`tradeoff` and :meth:`region` above all, it overrides.

    Attributes
    ----------
    orders : ndarray or None
        Orders at which a finite curve is known; None where ``rdp`` is known at every order.
    exact_profile : bool
        Whether the profile is the mechanism's own, not derived from the Rényi curve.
    slack : float
        Probability set aside by (ε, δ) parts; :attr:`core` is the rest of the guarantee.
    symmetric : bool
        Whether exchanging the two inputs changes nothing: then direction 0 says all.
    notes, warnings : tuple of str
        Sentences for a reviewer about this base, and what the user should know about the computation.
    pure_epsilon, zcdp_rho : float
        Smallest known ε with which one run is ε-DP, and ρ with which it is ρ-zCDP (inf if none).
    loss_jump : float
        Where (plus and minus) the privacy loss of :meth:`loss_tails` has jumps.
    loss_attained : bool
        Whether :meth:`loss_tails` is the law of a mechanism with this guarantee, not of one that dominates it.

    Examples
    --------
    >>> from hpcalc.guarantees import Gaussian
    >>> base = Gaussian(2.0)
    >>> float(base.rdp(3.0)), round(float(np.exp(base.log_profile(1.0))), 6)
    (0.375, 0.00683)
    """

    orders: Array | None = None
    exact_profile: bool = True
    slack: float = 0.0
    symmetric: bool = True
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    pure_epsilon: float = math.inf
    zcdp_rho: float = math.inf
    loss_jump: float = 0.0
    loss_attained: bool = True

    @property
    def views(self) -> tuple[Guarantee, ...]:
        """Guarantees that all hold and together say what this one does: itself first."""
        return (self,)

    @property
    def directions(self) -> tuple[int, ...]:
        """The directions that say all."""
        return (0,) if self.symmetric else (0, 1)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What was given, as plain data under the names of the command-line options."""

    def group(self, size: int) -> Guarantee:
        """The guarantee for all the records of a group (of one person) at once, at most ``size`` >= 1 of them.

        Raises
        ------
        InvalidInput
            If the size is not a whole number >= 1, or the guarantee of one record does not tell the group's.
        """
        if checked_group(size) == 1:
            return self
        remedy = "give the guarantee as --pure, --zcdp, --gaussian, --laplace or --dpsgd"
        raise InvalidInput("group", size, f"nothing follows for groups from a curve or an (ε, δ) alone: {remedy}")

    @abstractmethod
    def rdp(self, orders: Array | float) -> Array:
        """Rényi divergence bound, in nats, at orders in (1, inf] of any shape; inf where no finite bound is known."""

    @abstractmethod
    def _log_profile(self, t: Array) -> Array:
        """``log_profile`` for ``t >= 0``."""

    def region(self, rank: Prob) -> Prob:
        """Largest probability v under one input of an event of probability u under a neighbour; any shape."""
        images = [(self.tradeoff(side) or UNKNOWN).region(rank) for side in self.directions]
        return Prob(np.max([v.log_u for v in images], axis=0), np.min([v.log_q for v in images], axis=0))

    def log_profile(self, t: Array | float) -> Array:
        """Logarithm of the privacy profile ``delta(t)`` at ε = t, any real numbers; ``-inf`` where delta is zero."""
        t = np.asarray(t, dtype=float)
        out = np.minimum(self._log_profile(np.asarray(np.abs(t))), 0.0)
        return np.where(t < 0.0, mirrored(t, out), out)

    def log_profile_of(self, direction: int, t: Array | float) -> Array:
        """Log profile of one direction (0: as given, 1: the inputs exchanged); by default the larger of both."""
        return self.log_profile(t)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        """Points of the trade-off curve of one direction, on the safe side; None where no profile is known."""
        if not self.finite:
            return None
        t = np.concatenate([[0.0], np.geomspace(1e-6, min(self.pure_epsilon, 1e4), 400)])
        ahead, back = ((t, self.log_profile_of(side, t)) for side in (direction, 1 - direction))
        return from_masses(*least_masses(ahead, back))

    def attained_tradeoff(self, direction: int = 0) -> Tradeoff | None:
        """Points of the trade-off curve of a mechanism with this guarantee; None where none is known."""
        curve = self.tradeoff(direction)
        return curve if curve is not None and curve.attained else None

    @property
    def loss_kind(self) -> Hashable:
        """What steps have in common that :meth:`thinned` takes together."""
        return type(self)

    @classmethod
    def thinned(
        cls, uses: Sequence[tuple[Any, int]], upper: bool
    ) -> tuple[list[Guarantee], list[tuple[int, float, float]]]:
        """Steps that stand for many of this kind: together they dominate these, or else are dominated by them.

        With which of them is used, the weight with which the one after it is drawn instead, and how often.
        """
        return [part for part, _ in uses], [(i, 0.0, float(count)) for i, (_, count) in enumerate(uses)]

    def loss_steps(self) -> tuple[tuple[Guarantee, int], ...] | None:
        """Mechanisms with known privacy losses that compose to this one, and their uses; None where not known."""
        return None if type(self).loss_tails is Guarantee.loss_tails else ((self, 1),)

    def loss_tails(self, loss: Array) -> Tails:
        """Tails of the privacy loss in direction 0, for what :meth:`loss_steps` names."""
        raise NotImplementedError(f"the law of the privacy loss of {self.describe()} is not known")

    @property
    def core(self) -> Guarantee:
        """The guarantee that holds outside the :attr:`slack`."""
        return self

    @cached_property
    def finite(self) -> bool:
        """Whether any finite guarantee is given at all."""
        probe, core = np.array([1.0 + 1e-6, 1.5, 2.0, 8.0]) if self.orders is None else self.orders, self.core
        return self.slack < 1.0 and bool(np.isfinite(core.rdp(probe)).any() or core.log_profile(1e12) <= -1e-12)

    @property
    def region_tolerance(self) -> float:
        """Relative error of ``log_v`` that ``region`` may have (it then errs upwards)."""
        return 1e-13 if self.exact_profile else 1e-8


def smallest(images: Iterable[Prob]) -> Prob:
    """What several regions allow together, from their images of the same ranks."""
    log_u, log_q = zip(*images, strict=True)
    return Prob(np.min(log_u, axis=0), np.max(log_q, axis=0))


def over_parts(name: str, join: Callable[[Iterable[Any]], Any]) -> Any:
    """An attribute of a guarantee made of ``parts``: what these say, joined."""
    return property(lambda self: join(getattr(part, name) for part in self.parts))


def sentences(told: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Each sentence once."""
    return tuple(dict.fromkeys(each for some in told for each in some))


def all_orders(orders: Iterable[Array | None]) -> Array | None:
    """Orders at which several curves are looked at: all those given, more between where not all; None where none is."""
    given = [*orders]
    known = [some for some in given if some is not None]
    most = min([*(float(np.max(some, initial=1.0)) for some in known), 1e3])
    between = 1.0 + np.geomspace(1e-2, most - 1.0, 60) if most > 1.01 and len(known) < len(given) else np.empty(0)
    return distinct(np.concatenate([*known, between])) if known else None


def checked_guarantee(value: object) -> Guarantee:
    """Return ``value`` if it is a guarantee of one run, or raise TypeError with what to give instead."""
    if not isinstance(value, Guarantee):
        raise TypeError(f"give the guarantee of one run, such as ZCDP(0.1) or Gaussian(2.0), not {value!r}")
    return value


def checked_count(parameter: str, value: Any, low: float, high: float, remedy: str) -> int:
    """A whole number in [low, high]."""
    return int(checked_number(parameter, value, remedy, lambda x: low <= x <= high and x.is_integer()))


def checked_group(size: int) -> int:
    """A number of records >= 1."""
    remedy = "give the largest number of records of one person, a whole number >= 1"
    return checked_count("group", size, 1.0, 1e6, remedy)


def checked_orders(orders: Array | float) -> Array:
    """Rényi orders as an array of the same shape; one that is not above 1 is refused."""
    out = np.asarray(orders, dtype=float)
    if not (out > 1.0).all():
        bad = out[~(out > 1.0)].ravel()[0]
        raise InvalidInput("orders", bad, "give Rényi orders > 1 (inf is allowed)")
    return out


def mirrored(t: Array, log_delta: Array) -> Array:
    """Log profile at ``t < 0`` from the other direction's at ``-t``: ``1 - e^t (1 - delta)``, as a sum."""
    low = np.minimum(t, 0.0)
    return np.where(log_delta < 0.0, np.minimum(logaddexp(log1mexp(low), low + log_delta), 0.0), 0.0)
