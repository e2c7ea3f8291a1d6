"""Guarantees of ONE run of the base algorithm.

Each class answers three questions, whatever it was given as:

* ``rdp(orders)``: Rényi divergence bound at each order (Mironov 2017),
* ``log_profile(t)``: log of the privacy profile, the largest hockey-stick divergence of order ``exp(t)`` in either
  direction,
* ``region(u)``: the largest probability ``v`` that a neighbouring input may give to an event of probability ``u``
  (one minus the trade-off curve of Dong, Roth and Su 2019). It is concave, increasing and at least ``u``.

Every bound on a whole search needs nothing else, so a new kind of guarantee is one new class here.

References
----------
.. [1] I. Mironov, "Rényi differential privacy", CSF 2017.
.. [2] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS-B 84 (2022).
.. [3] C. L. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.logmath import (
    Array,
    Indices,
    Rank,
    distinct,
    log1mexp,
    log_expm1,
    log_mills,
    log_ndtr,
    logaddexp,
    logsubexp,
    ndtri_exp,
    softplus,
)
from hpcalc.region import region_from_profile, region_from_rdp, search_orders

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Base",
    "Composition",
    "Gaussian",
    "Laplace",
    "ProfileCurve",
    "PureDP",
    "RDPCurve",
    "cks_log_delta",
    "compose",
    "region_from_profile",
    "region_from_rdp",
    "repeat",
]

_INF = math.inf


def _number(parameter: str, value: Any, low: float, high: float, remedy: str, *, open_low: bool = False) -> float:
    """A float in [low, high] (or (low, high]); NaN, bools and text are refused."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(parameter, value, remedy) from None
    if not low <= number <= high or (open_low and number == low):
        raise InvalidInput(parameter, value, remedy)
    return number


def _orders(orders: Array | float) -> Array:
    out = np.asarray(orders, dtype=float)
    if not (out > 1.0).all():
        bad = out[~(out > 1.0)].ravel()[0]
        raise InvalidInput("orders", bad, "give Rényi orders > 1 (inf is allowed)")
    return out


class Base(ABC):
    """What one run of the base algorithm guarantees, for every pair of neighbouring inputs."""

    #: Orders at which a finite curve is known; None where ``rdp`` is known at every order.
    orders: Array | None = None
    #: True where ``log_profile`` is the mechanism's own, False where it is derived from the Rényi curve.
    exact_profile: bool = True
    #: Probability set aside by (ε, δ) parts; the rest of the guarantee is :attr:`core`.
    slack: float = 0.0
    #: Relative error of ``log_v`` that ``region`` may have (it then errs upwards).
    region_tolerance: float = 1e-13
    #: Ready-made sentences for a reviewer about this base, beyond the general ones.
    notes: tuple[str, ...] = ()
    #: Things the user should know about the computation.
    warnings: tuple[str, ...] = ()

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What was given, as plain data under the names of the command-line options."""

    @abstractmethod
    def rdp(self, orders: Array | float) -> Array:
        """Rényi divergence bound at each order.

        Parameters
        ----------
        orders : array_like of float, any shape
            Orders in (1, inf].

        Returns
        -------
        ndarray
            Same shape, in nats, ``inf`` where no finite bound is known.
        """

    @abstractmethod
    def _log_profile(self, t: Array) -> Array:
        """``log_profile`` for ``t >= 0``."""

    @abstractmethod
    def region(self, rank: Rank) -> Rank:
        """Largest probability under one input of an event of probability ``u`` under a neighbour.

        Parameters
        ----------
        rank : Rank
            The probabilities ``u``.

        Returns
        -------
        Rank
            The probabilities ``v >= u``, same shape.
        """

    def log_profile(self, t: Array | float) -> Array:
        """Logarithm of the privacy profile ``delta(t)`` at ``epsilon = t``.

        Parameters
        ----------
        t : array_like of float
            Any real numbers; negative ones follow from ``delta(t) = 1 - e^t (1 - delta(-t))``.

        Returns
        -------
        ndarray
            ``log delta(t)``, ``-inf`` where delta is zero.
        """
        t = np.asarray(t, dtype=float)
        out = np.minimum(self._log_profile(np.abs(t)), 0.0)
        negative = t < 0.0
        if negative.any():
            with np.errstate(invalid="ignore"):
                mirrored = log1mexp(np.minimum(t + log1mexp(out), 0.0))
            out = np.where(negative, np.where(np.isneginf(t), 0.0, mirrored), out)
        return np.asarray(out, dtype=float)

    @property
    def pure_epsilon(self) -> float:
        """Smallest known ε with which one run is ε-DP (inf if none)."""
        return _INF

    @property
    def zcdp_rho(self) -> float:
        """Smallest known ρ with which one run is ρ-zCDP (inf if none)."""
        return _INF

    @property
    def core(self) -> Base:
        """The guarantee that holds outside the :attr:`slack`."""
        return self

    #: Whether :meth:`discretised_pair` speaks for this base (it may still be too large to answer).
    has_own_pair: bool = False

    def discretised_pair(self) -> tuple[Array, Array] | None:
        """``(log q, log q')`` of a finite mechanism this base can be post-processed to; None if none is at hand."""
        return None

    def repeated_profile(self, count: int, log_delta: float) -> Callable[[Array], Array] | None:
        """Log profile of ``count`` uses at ``t >= 0``, accurate near ``log_delta``; None if the Rényi curve must do."""
        return None

    @cached_property
    def finite(self) -> bool:
        """Whether any finite guarantee is given at all."""
        probe = np.array([1.0 + 1e-6, 1.5, 2.0, 8.0]) if self.orders is None else self.orders
        if self.slack >= 1.0:
            return False
        core = self.core
        return core.pure_epsilon < _INF or bool(np.isfinite(core.rdp(probe)).any()) or not core._vacuous_profile()

    def _vacuous_profile(self) -> bool:
        return bool(self.log_profile(np.array([1e12]))[0] > -1e-12)

    @property
    def kinks(self) -> Array:
        """Normal scores of ranks where the region has a corner (grids put a node there)."""
        return np.empty(0)


# ---------------------------------------------------------------------------------------------------------------
# From a Rényi curve
# ---------------------------------------------------------------------------------------------------------------


def cks_log_delta(orders: Array, rdp: Array, t: Array) -> Array:
    """``log delta`` at ``epsilon = t`` from each order of a Rényi curve (Canonne, Kamath and Steinke, Proposition 12).

    ``log delta = (order-1)(rdp - t) - log order + (order-1) log(1 - 1/order)``; arguments broadcast.
    """
    h = orders - 1.0
    # log(1 - 1/order) as -log1p(1/h): h times the rounding of h/order would be added to log delta at large orders
    return np.asarray(h * (rdp - t) - np.log(orders) - h * np.log1p(1.0 / h), dtype=float)


class _CurveBase(Base):
    """Shared by guarantees of which only the Rényi curve is known: profile and region follow from it."""

    exact_profile = False
    region_tolerance = 1e-7

    @cached_property
    def _profile_lines(self) -> tuple[Array, Array]:
        """Slopes and values at 0 of the lines in t that bound the log of the profile, one for each order."""
        # a profile is asked thousands of times, and some curves take milliseconds
        grid = search_orders() if self.orders is None else self.orders[np.isfinite(self.orders)]
        curve = self.rdp(grid)
        keep = np.isfinite(curve)
        return grid[keep] - 1.0, cks_log_delta(grid[keep], curve[keep], np.zeros(1))

    def _log_profile(self, t: Array) -> Array:
        slopes, lines = self._profile_lines
        if slopes.size:
            out = np.min(lines - slopes * np.minimum(t.ravel()[:, None], 1e300), axis=1).reshape(t.shape)
        else:
            out = np.zeros(t.shape)
        if self.pure_epsilon < _INF:
            out = np.minimum(out, PureDP(self.pure_epsilon)._log_profile(t))
        return np.asarray(np.minimum(out, 0.0), dtype=float)

    def region(self, rank: Rank) -> Rank:
        out = region_from_rdp(self, rank, self.orders)
        if self.pure_epsilon < _INF:
            out = _smaller(out, PureDP(self.pure_epsilon).region(rank))
        return out


def _smaller(a: Rank, b: Rank) -> Rank:
    return Rank(np.minimum(a.log_u, b.log_u), np.maximum(a.log_q, b.log_q))


# ---------------------------------------------------------------------------------------------------------------
# The guarantees
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PureDP(Base):
    """ε-differential privacy; randomized response is its worst case.

    Parameters
    ----------
    epsilon : float
        ε >= 0, in nats.

    Examples
    --------
    >>> round(float(PureDP(1.0).rdp(2.0)), 10)
    0.7353256641
    """

    epsilon: float

    def __post_init__(self) -> None:
        remedy = "give ε >= 0, for example 1.0"
        object.__setattr__(self, "epsilon", _number("pure", self.epsilon, 0.0, _INF, remedy))

    def describe(self) -> dict[str, Any]:
        return {"pure": self.epsilon}

    def rdp(self, orders: Array | float) -> Array:
        # log((e^{a eps} + e^{(1-a) eps}) / (1 + e^eps)) / (a-1): what the moment exceeds 1 by is the product
        # (e^{(a-1) eps} - 1) (1 - e^{-a eps}) / (1 + e^-eps) of positive terms, none of which cancels.
        order = _orders(orders)
        eps = self.epsilon
        if eps in (0.0, _INF):
            return np.full(order.shape, eps)
        finite = np.where(np.isinf(order), 2.0, order)
        h = finite - 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            term = log_expm1(h * eps) + log1mexp(-finite * eps) - softplus(-eps)
            value = np.where(h * eps > 0.0, softplus(term) / h, 0.0)
        return np.asarray(np.where(np.isinf(order), eps, np.minimum(value, eps)), dtype=float)

    def _log_profile(self, t: Array) -> Array:
        if self.epsilon == _INF:
            return np.zeros(t.shape)
        gap = np.minimum(t - self.epsilon, 0.0)
        return np.asarray(self.epsilon + log1mexp(gap) - softplus(self.epsilon), dtype=float)

    def region(self, rank: Rank) -> Rank:
        eps = self.epsilon
        if eps == _INF:
            return _certain(rank)
        # At the corner both forms hold. The second is used there, and next to it, where e^eps u has no digits of 1 - v.
        low = rank.log_u < -float(softplus(eps)) - 1e-14 * (1.0 + eps)
        log_v = np.where(low, np.minimum(rank.log_u + eps, 0.0), log1mexp(rank.log_q - eps))
        log_qv = np.where(low, log1mexp(np.minimum(rank.log_u + eps, 0.0)), rank.log_q - eps)
        return Rank(log_v, log_qv)

    @property
    def kinks(self) -> Array:
        return ndtri_exp(np.array([-float(softplus(self.epsilon))])) if self.epsilon < 700.0 else np.empty(0)

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    @property
    def zcdp_rho(self) -> float:
        # eps tanh(eps/2) <= eps^2/2: the exact zCDP constant of randomized response.
        return self.epsilon * math.tanh(self.epsilon / 2.0) if self.epsilon < _INF else _INF


@dataclass(frozen=True)
class ZCDP(_CurveBase):
    """ρ-zero-concentrated differential privacy (Bun and Steinke 2016): Rényi divergence at most ``ρ * order``.

    Parameters
    ----------
    rho : float
        ρ >= 0.
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _number("zcdp", self.rho, 0.0, _INF, "give ρ >= 0, for example 0.1"))

    def describe(self) -> dict[str, Any]:
        return {"zcdp": self.rho}

    def rdp(self, orders: Array | float) -> Array:
        order = _orders(orders)
        return np.zeros(order.shape) if self.rho == 0.0 else np.asarray(self.rho * order, dtype=float)

    def _log_profile(self, t: Array) -> Array:
        if self.rho == 0.0:
            return np.where(t >= 0.0, -_INF, 0.0)
        if self.rho == _INF:
            return np.zeros(t.shape)
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
            return np.asarray(np.minimum(cks_log_delta(order, self.rho * order, t), 0.0), dtype=float)

    def region(self, rank: Rank) -> Rank:
        if self.rho == 0.0:
            return rank
        return _certain(rank) if self.rho == _INF else super().region(rank)

    @property
    def zcdp_rho(self) -> float:
        return self.rho

    @property
    def pure_epsilon(self) -> float:
        return 0.0 if self.rho == 0.0 else _INF


def _certain(rank: Rank) -> Rank:
    """v = 1 for every u > 0: the region of no guarantee at all."""
    some = ~np.isneginf(rank.log_u)
    return Rank(np.where(some, 0.0, -_INF), np.where(some, -_INF, 0.0))


@dataclass(frozen=True)
class Gaussian(Base):
    """The Gaussian mechanism.

    Parameters
    ----------
    sigma : float
        Noise multiplier: standard deviation of the noise divided by the L2 sensitivity, >= 0 (0 is no privacy).

    References
    ----------
    .. [1] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, Theorem 8
       (the exact privacy profile).
    """

    sigma: float

    def __post_init__(self) -> None:
        remedy = "give a noise multiplier >= 0 (noise standard deviation / L2 sensitivity)"
        object.__setattr__(self, "sigma", _number("gaussian", self.sigma, 0.0, 1e300, remedy))

    @property
    def shift(self) -> float:
        """Distance of the two normals in standard deviations, 1/sigma."""
        return 1.0 / self.sigma if self.sigma > 0.0 else _INF

    def describe(self) -> dict[str, Any]:
        return {"gaussian": self.sigma}

    def rdp(self, orders: Array | float) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(_orders(orders) * self.zcdp_rho, dtype=float)

    def _log_profile(self, t: Array) -> Array:
        s = self.shift
        if s == _INF:
            return np.zeros(t.shape)
        # Phi(-y) - e^t Phi(-y-s) with y = t/s - s/2, as phi(y) (m(y) - m(y+s)), m = Mills' ratio: no e^t, no overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.minimum(t / s, 1e150) - 0.5 * s
            log_phi = -0.5 * y * y - 0.5 * math.log(2.0 * math.pi)
            out = log_phi + log_mills_difference(y, s)
            left = y < -8.0  # there delta is close to 1 and the plain difference is exact
            if left.any():
                plain = np.minimum(y, -8.0)
                out = np.where(left, logsubexp(log_ndtr(-plain), t + log_ndtr(-plain - s)), out)
        return np.asarray(out, dtype=float)

    def region(self, rank: Rank) -> Rank:
        s = self.shift
        if s == _INF:
            return _certain(rank)
        x = _normal_score(rank) + s
        return Rank(log_ndtr(x), log_ndtr(-x))

    @property
    def zcdp_rho(self) -> float:
        return 0.5 * self.shift * self.shift if self.shift < 1e150 else _INF


def _normal_score(rank: Rank) -> Array:
    """``Phi^-1(u)`` from the smaller of ``u`` and ``1 - u``."""
    small = rank.log_u <= rank.log_q
    value = ndtri_exp(np.where(small, rank.log_u, rank.log_q))
    return np.asarray(np.where(small, value, -value), dtype=float)


_LEGENDRE_X, _LEGENDRE_W = np.array([-0.7745966692414834, 0.0, 0.7745966692414834]), np.array([5.0, 8.0, 5.0]) / 18.0


def log_mills_difference(y: Array, s: float) -> Array:
    """``log(m(y) - m(y + s))`` for Mills' ratio ``m(x) = (1 - Phi(x)) / phi(x)``, ``s > 0``.

    For small ``s`` the difference is the integral of ``-m' = 1 - x m(x)``, which has no cancellation for ``x > 0``.
    """
    if s > 1e-3:
        near, far = log_mills(np.stack([y, y + s]))
        return logsubexp(near, far)
    total = np.zeros_like(y)
    for node, weight in zip(_LEGENDRE_X, _LEGENDRE_W, strict=True):
        x = y + s * (0.5 + 0.5 * node)
        fraction = np.zeros_like(x)
        positive = np.maximum(x, 3.0)
        for j in range(120, 0, -1):
            fraction = j / (positive + fraction)
        with np.errstate(over="ignore"):
            direct = 1.0 - x * np.exp(log_mills(np.minimum(x, 3.0)))
        total = total + weight * np.where(x >= 3.0, fraction / (positive + fraction), direct)
    with np.errstate(divide="ignore"):
        return np.asarray(math.log(s) + np.log(total), dtype=float)


@dataclass(frozen=True)
class Laplace(Base):
    """The Laplace mechanism.

    Parameters
    ----------
    scale : float
        Scale of the noise divided by the L1 sensitivity, >= 0 (0 is no privacy).
    """

    scale: float

    def __post_init__(self) -> None:
        remedy = "give a scale >= 0 (noise scale / L1 sensitivity)"
        object.__setattr__(self, "scale", _number("laplace", self.scale, 0.0, 1e300, remedy))

    def describe(self) -> dict[str, Any]:
        return {"laplace": self.scale}

    @property
    def pure_epsilon(self) -> float:
        return 1.0 / self.scale if self.scale > 0.0 else _INF

    @property
    def kinks(self) -> Array:
        c, log2 = self.pure_epsilon, math.log(2.0)
        return ndtri_exp(np.array([-c - log2, -log2])) if c < 700.0 else np.empty(0)

    @property
    def zcdp_rho(self) -> float:
        return PureDP(self.pure_epsilon).zcdp_rho

    def rdp(self, orders: Array | float) -> Array:
        # Mironov 2017, Table II. log((a e^{(a-1)c} + (a-1) e^{-ac}) / (2a-1)) / (a-1).
        order = _orders(orders)
        c = self.pure_epsilon
        if c == _INF:
            return np.full(order.shape, _INF)
        finite = np.where(np.isinf(order), 2.0, order)
        h = finite - 1.0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            far = np.logaddexp(np.log(finite) + h * c, np.log(h) - finite * c) - np.log(2.0 * finite - 1.0)
            excess = (finite * _exp_minus_line(h * c) + h * _exp_minus_line(-finite * c)) / (2.0 * finite - 1.0)
            value = np.where(h * c < 1.0, np.log1p(np.where(h * c < 1.0, excess, 0.0)), far) / h
        return np.asarray(np.where(np.isinf(order), c, np.clip(value, 0.0, c)), dtype=float)

    def _log_profile(self, t: Array) -> Array:
        c = self.pure_epsilon
        return np.zeros(t.shape) if c == _INF else log1mexp(0.5 * np.minimum(t - c, 0.0))

    def region(self, rank: Rank) -> Rank:
        c = self.pure_epsilon
        if c == _INF:
            return _certain(rank)
        log2 = math.log(2.0)
        first = rank.log_u <= -c - log2
        middle = ~first & (rank.log_u <= -log2)
        log_v = np.minimum(rank.log_u + c, 0.0)
        log_qv = np.where(middle, -c - 2.0 * log2 - rank.log_u, rank.log_q - c)
        return Rank(np.where(first, log_v, log1mexp(np.minimum(log_qv, 0.0))), np.where(first, log1mexp(log_v), log_qv))


def _exp_minus_line(x: Array) -> Array:
    """``e^x - 1 - x`` without cancellation near 0 (Taylor below 0.1)."""
    near = np.abs(x) < 0.1
    y = np.where(near, x, 0.0)
    series = np.zeros_like(y)
    for j in range(12, 2, -1):
        series = y / j * (1.0 + series)
    with np.errstate(over="ignore"):
        return np.asarray(np.where(near, 0.5 * y * y * (1.0 + series), np.expm1(x) - x), dtype=float)


class _WithSlack(Base):
    """A guarantee (:attr:`core`) that holds outside an event of probability :attr:`slack`."""

    def rdp(self, orders: Array | float) -> Array:
        order = _orders(orders)
        return self.core.rdp(order) if self.slack == 0.0 else np.full(order.shape, _INF)

    def _log_profile(self, t: Array) -> Array:
        return _slack_profile(self.slack, self.core, t)

    def region(self, rank: Rank) -> Rank:
        return _slack_region(self.slack, self.core, rank)

    @property
    def pure_epsilon(self) -> float:
        return self.core.pure_epsilon if self.slack == 0.0 else _INF

    @property
    def kinks(self) -> Array:
        return _slack_kinks(self.slack, self.core)


@dataclass(frozen=True)
class ApproxDP(_WithSlack):
    """(ε, δ)-differential privacy: ε-DP outside an event of probability δ.

    Parameters
    ----------
    epsilon : float
        ε >= 0, in nats.
    delta : float
        δ in [0, 1].
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        remedy = "give ε >= 0 and δ in [0, 1), for example 1.0 1e-8"
        object.__setattr__(self, "epsilon", _number("approx_dp", self.epsilon, 0.0, _INF, remedy))
        object.__setattr__(self, "delta", _number("approx_dp", self.delta, 0.0, 1.0, remedy))

    def describe(self) -> dict[str, Any]:
        return {"approx_dp": [self.epsilon, self.delta]}

    @property
    def slack(self) -> float:  # type: ignore[override]
        return self.delta

    @property
    def core(self) -> Base:
        return PureDP(self.epsilon)


def _slack_kinks(slack: float, core: Base) -> Array:
    """The core's corners moved into the mixture, and the rank at which v reaches 1."""
    if slack <= 0.0 or slack >= 1.0:
        return core.kinks
    moved = log_ndtr(core.kinks) + math.log1p(-slack)
    return ndtri_exp(np.concatenate([moved, [math.log1p(-slack)]]))


def _slack_profile(slack: float, core: Base, t: Array) -> Array:
    """Profile ``slack + (1 - slack) core``: the mixture with an event that gives everything away."""
    inner = core._log_profile(t)
    if slack == 0.0:
        return inner
    return logaddexp(math.log(slack), math.log1p(-slack) + inner) if slack < 1.0 else np.zeros(t.shape)


def _slack_region(slack: float, core: Base, rank: Rank) -> Rank:
    """Region ``v = slack + (1 - slack) V(u / (1 - slack))`` of the same mixture."""
    if slack == 0.0:
        return core.region(rank)
    if slack >= 1.0:
        return _certain(rank)
    keep = math.log1p(-slack)
    log_inner = np.minimum(rank.log_u - keep, 0.0)
    # 1 - u/(1-slack) = (1-u-slack)/(1-slack)
    log_inner_q = logsubexp(np.maximum(rank.log_q, math.log(slack)), math.log(slack)) - keep
    log_inner = np.where(log_inner < -0.5, log_inner, log1mexp(np.minimum(log_inner_q, 0.0)))
    inner = core.region(Rank(log_inner, np.minimum(log_inner_q, 0.0)))
    return Rank(np.minimum(logaddexp(math.log(slack), keep + inner.log_u), 0.0), keep + inner.log_q)


@dataclass(frozen=True)
class RDPCurve(_CurveBase):
    """A Rényi curve known at finitely many orders.

    Between given orders the chord of ``(order-1) * rdp`` is used: that function is convex and vanishes at order 1.
    Above the largest order nothing is known, unless order inf (pure DP) is among the points.

    Parameters
    ----------
    points : mapping or iterable of pairs
        Order in (1, inf] to ε >= 0.

    Examples
    --------
    >>> curve = RDPCurve({2.0: 1.0, 4.0: 1.5})
    >>> [round(float(x), 4) for x in curve.rdp([1.5, 2.0, 3.0, 5.0])]
    [1.0, 1.0, 1.375, inf]
    """

    points: tuple[tuple[float, float], ...]
    echo: dict[str, Any] | None = field(default=None, compare=False, repr=False)

    def __init__(
        self, points: Mapping[float, float] | Iterable[tuple[float, float]], echo: dict[str, Any] | None = None
    ) -> None:
        pairs = points.items() if isinstance(points, Mapping) else points
        clean: dict[float, float] = {}
        for order, epsilon in pairs:
            order = _number("rdp", order, 1.0, _INF, "give Rényi orders > 1 (inf means pure DP)", open_low=True)
            epsilon = _number("rdp", epsilon, 0.0, _INF, f"give ε >= 0 at order {order:g}")
            if order in clean and clean[order] != epsilon:
                raise InvalidInput("rdp", order, "this order is given twice with different values; keep one")
            clean[order] = epsilon
        if not clean:
            raise InvalidInput("rdp", "(empty)", "give at least one point ORDER:EPSILON")
        object.__setattr__(self, "points", tuple(sorted(clean.items())))
        object.__setattr__(self, "echo", echo)

    @cached_property
    def _finite_points(self) -> tuple[Array, Array]:
        finite = [(o, e) for o, e in self.points if o < _INF and e < _INF]
        order = np.array([o for o, _ in finite], dtype=float)
        # rdp never decreases with the order, so a later smaller value is a valid bound for earlier orders too.
        value = np.array([e for _, e in finite], dtype=float)
        if value.size:
            value = np.minimum.accumulate(np.minimum(value, self.pure_epsilon)[::-1])[::-1]
        return order, value

    @property
    def orders(self) -> Array | None:  # type: ignore[override]
        given = self._finite_points[0]
        return given if self.pure_epsilon == _INF else distinct(np.concatenate([given, search_orders()]))

    @property
    def pure_epsilon(self) -> float:
        return min((e for o, e in self.points if o == _INF), default=_INF)

    def describe(self) -> dict[str, Any]:
        if self.echo is not None:
            return dict(self.echo)
        return {"rdp": [[x if x < _INF else "inf" for x in point] for point in self.points]}

    def rdp(self, orders: Array | float) -> Array:
        order = _orders(orders)
        known, value = self._finite_points
        out = np.full(order.shape, _INF)
        if known.size:
            grid = np.concatenate([[1.0], known])
            chord = np.concatenate([[0.0], (known - 1.0) * value])
            inside = order <= known[-1]
            place = np.where(inside, order, known[-1])
            between = np.interp(place, grid, chord) / (place - 1.0)
            # the next larger order's value bounds this one too (and absorbs the rounding of the chord)
            index = np.minimum(np.searchsorted(known, place), known.size - 1)
            above = value[index]
            out = np.where(inside, np.minimum(between, above), _INF)
            out = np.where(known[index] == order, above, out)
        if self.pure_epsilon < _INF:
            out = np.minimum(out, PureDP(self.pure_epsilon).rdp(order))
        return np.asarray(out, dtype=float)

    def region(self, rank: Rank) -> Rank:
        if self.pure_epsilon == _INF:
            return super().region(rank)
        # the orders beside the given ones are implied by pure DP, whose region is a closed form
        known, pure = self._finite_points[0], PureDP(self.pure_epsilon).region(rank)
        return _smaller(region_from_rdp(self, rank, known), pure) if known.size else pure


@dataclass(frozen=True)
class ProfileCurve(Base):
    """A privacy profile known at finitely many points (ε, δ).

    Between points the chord in ``e^ε`` is used (the profile is convex in it), below the first the chord to its mirror
    image ``(-ε, 1 - e^-ε (1 - δ))``, above the last the last δ.

    Parameters
    ----------
    points : mapping or iterable of pairs
        ε >= 0 to δ in [0, 1].
    """

    points: tuple[tuple[float, float], ...]
    echo: dict[str, Any] | None = field(default=None, compare=False, repr=False)

    def __init__(
        self, points: Mapping[float, float] | Iterable[tuple[float, float]], echo: dict[str, Any] | None = None
    ) -> None:
        pairs = points.items() if isinstance(points, Mapping) else points
        clean: dict[float, float] = {}
        for epsilon, delta in pairs:
            epsilon = _number("profile", epsilon, 0.0, 1e300, "give ε >= 0")
            delta = _number("profile", delta, 0.0, 1.0, f"give δ in [0, 1] at ε = {epsilon:g}")
            if epsilon in clean and clean[epsilon] != delta:
                raise InvalidInput("profile", epsilon, "this ε is given twice with different δ; keep one")
            clean[epsilon] = delta
        if not clean:
            raise InvalidInput("profile", "(empty)", "give at least one point (epsilon, delta)")
        object.__setattr__(self, "points", tuple(sorted(clean.items())))
        object.__setattr__(self, "echo", echo)

    @cached_property
    def _arrays(self) -> tuple[Array, Array]:
        t = np.array([e for e, _ in self.points], dtype=float)
        delta = np.minimum.accumulate(np.array([d for _, d in self.points], dtype=float))
        with np.errstate(divide="ignore"):
            return t, np.log(delta)

    def describe(self) -> dict[str, Any]:
        return dict(self.echo) if self.echo is not None else {"profile": [list(point) for point in self.points]}

    @property
    def pure_epsilon(self) -> float:
        return min((e for e, d in self.points if d == 0.0), default=_INF)

    def rdp(self, orders: Array | float) -> Array:
        order = _orders(orders)
        pure = self.pure_epsilon
        return PureDP(pure).rdp(order) if pure < _INF else np.full(order.shape, _INF)

    def _log_profile(self, t: Array) -> Array:
        known, log_delta = self._arrays
        # chord in e^t between neighbours i and i+1: delta = (1-w) d_i + w d_{i+1}, w = (e^t-e^a)/(e^b-e^a)
        mirrored = log1mexp(np.minimum(log1mexp(log_delta[:1]) - known[:1], 0.0))
        grid = np.concatenate([-known[:1], known])
        value = np.concatenate([mirrored, log_delta])
        right = np.clip(np.searchsorted(known, t, side="left"), 0, known.size - 1)
        a, b = grid[right], grid[right + 1]
        place = np.clip(t, a, b)
        with np.errstate(invalid="ignore"):
            w = np.where(b > a, logsubexp(place, np.minimum(a, place)) - logsubexp(b, a), 0.0)
            w = np.clip(np.where(np.isnan(w), 0.0, w), -_INF, 0.0)
        mixed = logaddexp(log1mexp(w) + value[right], w + value[right + 1])
        mixed = np.clip(mixed, value[right + 1], value[right])  # so a plateau is its own value to the last digit
        out = np.where(t >= known[-1], log_delta[-1], mixed)
        pure = self.pure_epsilon
        return np.asarray(np.minimum(out, PureDP(pure)._log_profile(t) if pure < _INF else 0.0), dtype=float)

    @cached_property
    def _kinks(self) -> Array:
        # neighbouring lines e^t u + delta meet, the middle of the curve, and all of that mirrored (u to 1 - v)
        t, log_delta = self._arrays
        some: Indices = distinct(np.linspace(0, t.size - 1, min(t.size, 200)).astype(np.intp))
        t, log_delta = t[some], log_delta[some]
        meet = logsubexp(log_delta[:-1], log_delta[1:]) - logsubexp(t[1:], t[:-1])
        middle = np.max(log1mexp(log_delta) - softplus(t))
        log_u = np.minimum(np.concatenate([[-_INF], meet, [middle]]), 0.0)
        rank = Rank.from_log_u(log_u)
        x = np.concatenate([_normal_score(rank), -_normal_score(self.region(rank))])
        return np.asarray(x[np.isfinite(x)], dtype=float)

    @property
    def kinks(self) -> Array:
        return self._kinks

    def region(self, rank: Rank) -> Rank:
        out = region_from_profile(*self._arrays, rank)
        pure = self.pure_epsilon
        return _smaller(out, PureDP(pure).region(rank)) if pure < _INF else out


class SumOfParts(Base):
    """Parts whose Rényi curves, pure epsilons and zCDP parameters add.

    Attributes
    ----------
    parts : tuple of (Base, int)
        Each part with its number of uses.
    """

    parts: tuple[tuple[Base, int], ...]

    def rdp(self, orders: Array | float) -> Array:
        order = _orders(orders)
        total = np.zeros(order.shape)
        for part, count in self.parts:
            total = total + count * part.rdp(order)
        return total

    @property
    def pure_epsilon(self) -> float:
        return math.fsum(count * part.pure_epsilon for part, count in self.parts)

    @property
    def zcdp_rho(self) -> float:
        return math.fsum(count * part.zcdp_rho for part, count in self.parts)


@dataclass(frozen=True)
class _Sum(SumOfParts, _CurveBase):
    """Several different guarantees composed through their Rényi curves (curves add, pure epsilons add)."""

    parts: tuple[tuple[Base, int], ...]

    def describe(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _given(self) -> Array | None:
        sets = [part.orders for part, _ in self.parts if part.orders is not None]
        if not sets:
            return None
        merged = distinct(np.concatenate(sets))
        return merged[np.isfinite(self.rdp(merged))]

    @property
    def orders(self) -> Array | None:  # type: ignore[override]
        return self._given


@dataclass(frozen=True)
class Composition(_WithSlack):
    """All parts happen in one run (training, a noisy score on the training data, ...), so they compose.

    Rényi curves add. Gaussians merge into one Gaussian, zCDP and Gaussian parts into one zCDP guarantee, the δ of
    (ε, δ) parts is set aside (:attr:`slack`), and anything else composes by a convolved privacy-loss distribution
    where that is not too large, else through the summed Rényi curve. :attr:`how` says which.

    Parameters
    ----------
    parts : tuple of (Base, int)
        Each part with the number of times it is used.
    """

    parts: tuple[tuple[Base, int], ...]

    def describe(self) -> dict[str, Any]:
        counts = {count for _, count in self.parts}
        common = counts.pop() if len(counts) == 1 else 1
        out: dict[str, Any] = {}
        for part, _ in self.parts:
            for key, value in part.describe().items():
                if key in out:
                    earlier = out[key] if isinstance(out[key], _Several) else _Several([out[key]])
                    out[key] = _Several([*earlier, value])
                else:
                    out[key] = value
        out = {key: list(value) if isinstance(value, _Several) else value for key, value in out.items()}
        if common != 1:
            out["compose"] = common
        return out

    @cached_property
    def _merged(self) -> tuple[Base, float, str]:
        keep = 0.0  # log of the probability that no (eps, delta) part gives everything away
        cores: list[tuple[Base, int]] = []
        for part, count in self.parts:
            keep += count * (math.log1p(-part.slack) if part.slack < 1.0 else -_INF)
            cores.append((part.core, count))
        slack = -math.expm1(keep)
        cores = [pair for pair in cores if pair[0].pure_epsilon > 0.0] or cores[:1]  # the others reveal nothing
        gaussian = [(part, count) for part, count in cores if isinstance(part, Gaussian)]
        zcdp = [(part, count) for part, count in cores if isinstance(part, ZCDP)]
        if len(cores) == 1 and cores[0][1] == 1:
            return cores[0][0], slack, "single guarantee"
        if len(gaussian) == len(cores):
            return _merged_gaussian(gaussian), slack, "Gaussians merged exactly"
        if zcdp and len(gaussian) + len(zcdp) == len(cores):
            rho = math.fsum(count * part.zcdp_rho for part, count in cores)
            return ZCDP(rho), slack, "zCDP parameters added"
        from hpcalc.pld import compose_parts  # a module of its own size, loaded only where a convolution is needed

        if gaussian:  # merge the Gaussians first: fewer parts to convolve
            rest = [pair for pair in cores if not isinstance(pair[0], Gaussian)]
            cores = [*rest, (_merged_gaussian(gaussian), 1)]
        convolved = compose_parts(tuple(cores))
        if convolved is not None:
            return convolved, slack, "privacy-loss distributions convolved"
        return _Sum(tuple(cores)), slack, "Rényi curves added"

    @property
    def how(self) -> str:
        """How the parts were composed, in a few words."""
        return self._merged[2]

    @property
    def slack(self) -> float:  # type: ignore[override]
        return self._merged[1]

    @property
    def core(self) -> Base:
        return self._merged[0]

    @property
    def orders(self) -> Array | None:  # type: ignore[override]
        return self.core.orders

    @property
    def exact_profile(self) -> bool:  # type: ignore[override]
        return self.core.exact_profile

    @property
    def region_tolerance(self) -> float:  # type: ignore[override]
        return self.core.region_tolerance

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(note for part, _ in self.parts for note in part.notes))

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        inner = (*self.core.warnings, *(warning for part, _ in self.parts for warning in part.warnings))
        return tuple(dict.fromkeys(inner))

    @property
    def zcdp_rho(self) -> float:
        return self.core.zcdp_rho if self.slack == 0.0 else _INF


def _merged_gaussian(parts: Iterable[tuple[Gaussian, int]]) -> Gaussian:
    """Gaussians compose exactly: their ``1/sigma^2`` add."""
    total = math.fsum(count * part.shift**2 for part, count in parts)
    return Gaussian(1.0 / math.sqrt(total) if total < _INF else 0.0)


class _Several(list[Any]):
    """Marks values collected from repeated options, apart from options that are lists themselves."""


def compose(*bases: Base) -> Base:
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
        return bases[0]
    parts: list[tuple[Base, int]] = []
    for base in bases:
        parts.extend(base.parts if isinstance(base, Composition) else [(base, 1)])
    return Composition(tuple(parts))


def repeat(base: Base, count: int) -> Base:
    """``count`` compositions of ``base`` in one run.

    Raises
    ------
    InvalidInput
        If ``count`` is not a whole number >= 1.
    """
    remedy = "give a whole number >= 1"
    number = _number("compose", count, 1.0, 1e15, remedy)
    if number != int(number):
        raise InvalidInput("compose", count, remedy)
    if number == 1:
        return base
    parts = base.parts if isinstance(base, Composition) else ((base, 1),)
    return Composition(tuple((part, times * int(number)) for part, times in parts))
