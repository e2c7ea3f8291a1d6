"""Guarantees given as a curve: zCDP, Rényi curves, privacy profiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hpcalc.errors import InvalidInput, checked_number
from hpcalc.guarantees.guarantee import Guarantee, checked_orders
from hpcalc.guarantees.mechanisms import OneNumber, PureDP
from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.region import SEARCH_ORDERS, region_from_rdp, tradeoff_from_rdp
from hpcalc.guarantees.tradeoff import Tradeoff, least_masses
from hpcalc.logspace import Array, Prob, distinct

_INF = math.inf

#: A table, its pairs, or its first column (the second is then given beside it).
Points: TypeAlias = "Mapping[float, float] | Iterable[tuple[float, float]] | Iterable[float]"


def cks_log_delta(orders: Array, rdp: Array, t: Array) -> Array:
    """``log delta`` at ``epsilon = t`` from each order of a Rényi curve (Canonne, Kamath and Steinke, Proposition 12).

    ``log delta = (order-1)(rdp - t) - log order + (order-1) log(1 - 1/order)``; arguments broadcast.
    """
    h = orders - 1.0
    # log(1 - 1/order) as -log1p(1/h): h times the rounding of h/order would be added to log delta at large orders
    return np.asarray(h * (rdp - t) - np.log(orders) - h * np.log1p(1.0 / h))


class CurveBase(Guarantee):
    """Shared by guarantees of which only the Rényi curve is known: profile and region follow from it."""

    exact_profile = False

    @cached_property
    def _profile_lines(self) -> tuple[Array, Array]:
        """Slopes and values at 0 of the lines in t that bound the log of the profile, one for each order."""
        # a profile is asked thousands of times, and some curves take milliseconds
        grid = SEARCH_ORDERS if self.orders is None else self.orders[np.isfinite(self.orders)]
        curve = self.rdp(grid)
        keep = np.isfinite(curve)
        return grid[keep] - 1.0, cks_log_delta(grid[keep], curve[keep], np.zeros(1))

    def _log_profile(self, t: Array) -> Array:
        slopes, lines = self._profile_lines
        out = np.min(lines - slopes * np.minimum(t[..., None], 1e300), axis=-1, initial=0.0)
        return np.asarray(np.minimum(out, PureDP(self.pure_epsilon)._log_profile(t)), dtype=float)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        return tradeoff_from_rdp(self)

    def region(self, rank: Prob) -> Prob:
        return region_from_rdp(self, rank, PureDP(self.pure_epsilon).region(rank))


@dataclass(frozen=True)
class ZCDP(OneNumber, CurveBase):
    """ρ-zero-concentrated differential privacy (Bun and Steinke 2016): Rényi divergence at most ``ρ * order``.

    Parameters
    ----------
    rho : float
        ρ >= 0.

    Examples
    --------
    >>> ZCDP(0.1).rdp([2.0, 10.0])
    array([0.2, 1. ])
    """

    rho: float

    option, remedy, power = "zcdp", "give ρ >= 0, for example 0.1", 2

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        return np.zeros(order.shape) if self.rho == 0.0 else np.asarray(self.rho * order, dtype=float)

    def _log_profile(self, t: Array) -> Array:
        if self.rho in (0.0, _INF):
            return np.full(t.shape, -_INF if self.rho == 0.0 else 0.0)
        # The derivative in the order, rho (2a-1) - t + log(1-1/a), is increasing: Newton on log(a-1), any order valid.
        # It starts where log(1-1/a) is replaced by -1/a. The cap on t keeps e^x finite for every rho; it is far beyond
        # any t whose delta is not zero.
        capped = np.minimum(t, 1e100 * min(self.rho, 1.0)) / (4.0 * self.rho)
        x = np.log(capped + np.sqrt(capped * capped + 0.5 / self.rho))
        with np.errstate(over="ignore"):
            for _ in range(10):
                h = np.exp(x)
                slope = self.rho * (2.0 * h + 1.0) - t - np.log1p(1.0 / h)
                move = slope / (2.0 * self.rho * h + 1.0 / (1.0 + h))
                x = np.maximum(x - np.clip(move, -2.0, 2.0), -36.0)
                if np.max(np.abs(move), initial=0.0) < 1e-7:  # the value is stationary in x
                    break
            order = 1.0 + np.exp(x)
            return cks_log_delta(order, self.rho * order, t)

    @property
    def zcdp_rho(self) -> float:  # type: ignore[override]
        return self.rho

    @property
    def pure_epsilon(self) -> float:  # type: ignore[override]
        return 0.0 if self.rho == 0.0 else _INF


@dataclass(frozen=True, init=False)
class _Points(Guarantee):
    """What is known at some points (x, y): pairs, two columns, or the rows of a file."""

    points: tuple[tuple[float, float], ...]
    echo: dict[str, Any] | None = field(default=None, compare=False, repr=False)

    option = ""  # which gives the points
    remedies: ClassVar[tuple[str, ...]] = ()  # for x, for y at an x, for a point given twice, and where none is given
    legal: ClassVar[tuple[Callable[[float], bool], ...]] = ()  # of x and of y

    def __init__(self, points: Points, values: Iterable[float] | None = None, *, echo: Any = None) -> None:
        object.__setattr__(self, "echo", echo)
        object.__setattr__(self, "warnings", tuple(getattr(points, "warnings", ())))  # what the reader of a file says
        if values is not None:
            firsts, seconds = list(points), list(values)
            if len(firsts) != len(seconds):
                raise InvalidInput(self.option, len(seconds), f"give as many values as points, {len(firsts)}")
            points = zip(firsts, seconds, strict=True)  # type: ignore[arg-type]  # what is no number is refused below
        clean: dict[float, float] = {}
        for point in points.items() if isinstance(points, Mapping) else points:
            x, y = point  # type: ignore[misc]
            x = checked_number(self.option, x, self.remedies[0], self.legal[0])
            y = checked_number(self.option, y, self.remedies[1].format(x), self.legal[1])
            if clean.setdefault(x, y) != y:
                raise InvalidInput(self.option, x, self.remedies[2])
        if not clean:
            raise InvalidInput(self.option, "(empty)", self.remedies[3])
        object.__setattr__(self, "points", tuple(sorted(clean.items())))

    @classmethod
    def from_file(cls, path: str) -> Guarantee:
        """Read the points from a YAML, JSON or CSV file, as the option for a file does."""
        from hpcalc import datafiles

        return cls(getattr(datafiles, f"read_{cls.option}")(path), echo={f"{cls.option}_file": path})

    def describe(self) -> dict[str, Any]:
        if self.echo is not None:
            return dict(self.echo)
        return {self.option: [[x if x < _INF else "inf" for x in point] for point in self.points]}


class RDPCurve(_Points, CurveBase):
    """A Rényi curve known at finitely many orders.

    Between given orders the chord of ``(order-1) * rdp`` is used: that function is convex and vanishes at order 1.
    Above the largest order nothing is known, unless order inf (pure DP) is among the points.

    Parameters
    ----------
    points : mapping, iterable of pairs, or array_like of float
        Order in (1, inf] to ε >= 0; or the orders alone.
    values : array_like of float, optional
        The ε at each order, where ``points`` are the orders alone.

    Examples
    --------
    >>> curve = RDPCurve({2.0: 1.0, 4.0: 1.5})
    >>> [round(float(x), 4) for x in curve.rdp([1.5, 2.0, 3.0, 5.0])]
    [1.0, 1.0, 1.375, inf]
    >>> curve == RDPCurve([2.0, 4.0], [1.0, 1.5])
    True
    """

    option = "rdp"
    remedies = ("give Rényi orders > 1 (inf means pure DP)", "give ε >= 0 at order {:g}",
                "this order is given twice with different values; keep one",
                "give at least one point ORDER:EPSILON")  # fmt: skip
    legal = (lambda x: x > 1.0, lambda y: y >= 0.0)

    @cached_property
    def _finite_points(self) -> tuple[Array, Array]:
        order, value = np.array([point for point in self.points if max(point) < _INF]).reshape(-1, 2).T
        # rdp never decreases with the order, so a later smaller value is a valid bound for earlier orders too
        return order, np.minimum.accumulate(np.minimum(value, self.pure_epsilon)[::-1])[::-1]

    @property
    def orders(self) -> Array | None:  # type: ignore[override]
        given = self._finite_points[0]
        return given if self.pure_epsilon == _INF else distinct(np.concatenate([given, SEARCH_ORDERS]))

    @property
    def pure_epsilon(self) -> float:  # type: ignore[override]
        return min((e for o, e in self.points if o == _INF), default=_INF)

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        known, value = self._finite_points
        out = PureDP(self.pure_epsilon).rdp(order)
        if not known.size:
            return out
        place = np.minimum(order, known[-1])
        chord = np.interp(place, np.append(1.0, known), np.append(0.0, (known - 1.0) * value)) / (place - 1.0)
        # the next larger order's value bounds this one too (and takes off the margin for the rounding of the chord)
        between = np.minimum(chord * (1.0 + 1e-15), value[np.searchsorted(known, place)])
        return np.where(order <= known[-1], np.minimum(between, out), out)


class ProfileCurve(_Points, DominatingPair):
    """A privacy profile known at finitely many points (ε, δ).

    Between points the chord in ``e^ε`` is used (the profile is convex in it), below the first the chord to its mirror
    image ``(-ε, 1 - e^-ε (1 - δ))``, above the last the last δ.

    Parameters
    ----------
    points : mapping, iterable of pairs, or array_like of float
        ε >= 0 to δ in [0, 1]; or the ε alone.
    values : array_like of float, optional
        The δ at each ε, where ``points`` are the ε alone.

    Examples
    --------
    >>> known = ProfileCurve({0.5: 1e-3, 1.0: 1e-5})
    >>> [round(float(x), 6) for x in np.exp(known.log_profile([0.5, 0.75, 1.0]))]
    [0.001, 0.000567, 1e-05]
    """

    option = "profile"
    remedies = ("give ε >= 0", "give δ in [0, 1] at ε = {:g}", "this ε is given twice with different δ; keep one",
                "give at least one point (epsilon, delta)")  # fmt: skip
    legal = (lambda x: 0.0 <= x <= 1e300, lambda y: 0.0 <= y <= 1.0)
    symmetric = True
    attained = True

    def __init__(self, points: Points, values: Iterable[float] | None = None, *, echo: Any = None) -> None:
        super().__init__(points, values, echo=echo)
        for name, value in zip(("loss", "log_p", "log_q"), least_masses(self._arrays, self._arrays), strict=True):
            object.__setattr__(self, name, value)

    @cached_property
    def _arrays(self) -> tuple[Array, Array]:
        t, delta = np.array(self.points).T
        with np.errstate(divide="ignore"):
            return t, np.log(np.minimum.accumulate(delta))

    @property
    def slack(self) -> float:  # type: ignore[override]
        return min(super().slack, math.exp(self._arrays[1][-1]))

    def _log_profile(self, t: Array) -> Array:
        known, log_delta = self._arrays
        before = np.searchsorted(known, t, side="right") - 1  # whose delta holds too, to the last digit as given
        out = super()._log_profile(t)
        return np.where(before >= 0, np.minimum(out, log_delta[before]), out)
