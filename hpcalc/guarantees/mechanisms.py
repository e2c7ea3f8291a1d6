"""Guarantees whose worst case is a mechanism in closed form: randomized response, Gaussian and Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcalc.guarantees.guarantee import Guarantee, certain, checked_group, checked_number, checked_orders, normal_score
from hpcalc.guarantees.loss_grid import Tails, gaussian_tails, laplace_tails, response_tails
from hpcalc.guarantees.tradeoff import Tradeoff, from_points
from hpcalc.logspace import (
    Array,
    Prob,
    distinct,
    log1mexp,
    log_expm1,
    log_mills,
    log_ndtr,
    logsubexp,
    ndtri_exp,
    softplus,
)

__all__ = [
    "Gaussian",
    "Laplace",
    "PureDP",
    "log_mills_difference",
]

_INF = math.inf


class _Mechanism(Guarantee):
    """A mechanism whose privacy loss can be convolved where it is neither nothing nor beyond any grid."""

    @property
    def loss_jump(self) -> float:  # type: ignore[override]
        return self.pure_epsilon

    def loss_steps(self) -> tuple[tuple[Guarantee, int], ...] | None:
        loss = self.pure_epsilon
        return () if loss == 0.0 else ((self, 1),) if loss < 1e6 else None


@dataclass(frozen=True)
class PureDP(_Mechanism):
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
        object.__setattr__(self, "epsilon", checked_number("pure", self.epsilon, 0.0, _INF, remedy))

    def describe(self) -> dict[str, Any]:
        return {"pure": self.epsilon}

    def label(self) -> str:
        return f"{self.epsilon:.6g}-DP"

    def group(self, size: int) -> PureDP:
        return PureDP(checked_group(size) * self.epsilon)

    def rdp(self, orders: Array | float) -> Array:
        # log((e^{a eps} + e^{(1-a) eps}) / (1 + e^eps)) / (a-1): what the moment exceeds 1 by is the product
        # (e^{(a-1) eps} - 1) (1 - e^{-a eps}) / (1 + e^-eps) of positive terms, none of which cancels.
        order = checked_orders(orders)
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

    def region(self, rank: Prob) -> Prob:
        eps = self.epsilon
        if eps == _INF:
            return certain(rank)
        # At the corner both forms hold. The second is used there, and next to it, where e^eps u has no digits of 1 - v.
        low = rank.log_u < -float(softplus(eps)) - 1e-14 * (1.0 + eps)
        log_v = np.where(low, np.minimum(rank.log_u + eps, 0.0), log1mexp(rank.log_q - eps))
        log_qv = np.where(low, log1mexp(np.minimum(rank.log_u + eps, 0.0)), rank.log_q - eps)
        return Prob(log_v, log_qv)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        if self.epsilon == _INF:
            return None
        corner = Prob.from_log_q(np.array([-float(softplus(self.epsilon))]))
        return from_points(corner, corner.complement(), np.array([self.epsilon]), attained=True, ends=self.epsilon)

    @property
    def breakpoints(self) -> Array:
        return ndtri_exp(np.array([-float(softplus(self.epsilon))])) if self.epsilon < 700.0 else np.empty(0)

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    def loss_tails(self, loss: Array) -> Tails:
        return response_tails(self.pure_epsilon, loss)

    def weakened(self, epsilon: float) -> PureDP:
        return PureDP(epsilon)

    @property
    def zcdp_rho(self) -> float:
        # eps tanh(eps/2) <= eps^2/2: the exact zCDP constant of randomized response.
        return self.epsilon * math.tanh(self.epsilon / 2.0) if self.epsilon < _INF else _INF


@dataclass(frozen=True)
class Gaussian(Guarantee):
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
        object.__setattr__(self, "sigma", checked_number("gaussian", self.sigma, 0.0, 1e300, remedy))

    @property
    def shift(self) -> float:
        """Distance of the two normals in standard deviations, 1/sigma."""
        return 1.0 / self.sigma if self.sigma > 0.0 else _INF

    def describe(self) -> dict[str, Any]:
        return {"gaussian": self.sigma}

    def label(self) -> str:
        return f"Gaussian noise {self.sigma:.6g}"

    def group(self, size: int) -> Gaussian:
        return Gaussian(self.sigma / checked_group(size))

    def rdp(self, orders: Array | float) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(checked_orders(orders) * self.zcdp_rho, dtype=float)

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

    def region(self, rank: Prob) -> Prob:
        s = self.shift
        if s == _INF:
            return certain(rank)
        x = normal_score(rank) + s
        return Prob(log_ndtr(x), log_ndtr(-x))

    def loss_steps(self) -> tuple[tuple[Guarantee, int], ...] | None:
        return () if self.shift == 0.0 else ((self, 1),) if self.shift < 1e6 else None

    def loss_tails(self, loss: Array) -> Tails:
        return gaussian_tails(self.shift, loss)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        s = self.shift
        if s == _INF:
            return None
        z = distinct(np.concatenate([_SCORES, s + _SCORES]))  # normal scores of x and, shifted, of W
        return from_points(Prob.from_normal(z), Prob.from_normal(z - s), s * z - 0.5 * s * s, attained=True)

    @property
    def zcdp_rho(self) -> float:
        return 0.5 * self.shift * self.shift if self.shift < 1e150 else _INF


#: Normal scores of the points of a trade-off curve: 0.02 apart, the tangents err by (0.02 shift)^2/8 in log W.
_SCORES = np.linspace(-38.0, 38.0, 3801)

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
class Laplace(_Mechanism):
    """The Laplace mechanism.

    Parameters
    ----------
    scale : float
        Scale of the noise divided by the L1 sensitivity, >= 0 (0 is no privacy).
    """

    scale: float

    def __post_init__(self) -> None:
        remedy = "give a scale >= 0 (noise scale / L1 sensitivity)"
        object.__setattr__(self, "scale", checked_number("laplace", self.scale, 0.0, 1e300, remedy))

    def describe(self) -> dict[str, Any]:
        return {"laplace": self.scale}

    def label(self) -> str:
        return f"Laplace noise {self.scale:.6g}"

    def group(self, size: int) -> Laplace:
        return Laplace(self.scale / checked_group(size))

    @property
    def pure_epsilon(self) -> float:
        return 1.0 / self.scale if self.scale > 0.0 else _INF

    def loss_tails(self, loss: Array) -> Tails:
        return laplace_tails(self.pure_epsilon, loss)

    def weakened(self, epsilon: float) -> Laplace:
        return Laplace(1.0 / epsilon)

    @property
    def zcdp_rho(self) -> float:
        return PureDP(self.pure_epsilon).zcdp_rho

    def rdp(self, orders: Array | float) -> Array:
        # Mironov 2017, Table II. log((a e^{(a-1)c} + (a-1) e^{-ac}) / (2a-1)) / (a-1).
        order = checked_orders(orders)
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

    def region(self, rank: Prob) -> Prob:
        c = self.pure_epsilon
        if c == _INF:
            return certain(rank)
        log2 = math.log(2.0)
        first = rank.log_u <= -c - log2
        middle = ~first & (rank.log_u <= -log2)
        log_v = np.minimum(rank.log_u + c, 0.0)
        log_qv = np.where(middle, -c - 2.0 * log2 - rank.log_u, rank.log_q - c)
        return Prob(np.where(first, log_v, log1mexp(np.minimum(log_qv, 0.0))), np.where(first, log1mexp(log_v), log_qv))

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        c, log2 = self.pure_epsilon, math.log(2.0)
        if c == _INF:
            return None
        # between two straight ends 4 w (1-x) = e^-c, with the slope w/(1-x) from e^-c to e^c
        t = np.linspace(-c, c, max(int(200.0 * c), 800))
        x = Prob.from_log_q(-0.5 * (t + c) - log2)
        w = Prob.from_log_u(0.5 * (t - c) - log2)
        return from_points(x, w, t, attained=True, ends=c)


def _exp_minus_line(x: Array) -> Array:
    """``e^x - 1 - x`` without cancellation near 0 (Taylor below 0.1)."""
    near = np.abs(x) < 0.1
    y = np.where(near, x, 0.0)
    series = np.zeros_like(y)
    for j in range(12, 2, -1):
        series = y / j * (1.0 + series)
    with np.errstate(over="ignore"):
        return np.asarray(np.where(near, 0.5 * y * y * (1.0 + series), np.expm1(x) - x), dtype=float)
