"""Guarantees whose worst case is a mechanism in closed form: randomized response, Gaussian and Laplace noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcalc.guarantees.guarantee import Guarantee, certain, checked_group, checked_number, checked_orders, normal_score
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
    softplus,
)

if TYPE_CHECKING:  # convolutions are loaded where something is convolved
    from hpcalc.guarantees.loss_grid import Tails

_INF = math.inf
_LOG2 = math.log(2.0)


class OneNumber(Guarantee):
    """A guarantee that is one number, the only field of the class, between 0 and ``most``."""

    option = ""  # which gives it
    words = "{}"  # for people
    remedy = ""
    most = _INF

    def __post_init__(self) -> None:
        value = checked_number(self.option, self._given, 0.0, self.most, self.remedy)
        object.__setattr__(self, fields(self)[0].name, value)  # type: ignore[arg-type]  # subclasses are data classes

    @property
    def _given(self) -> Any:
        return getattr(self, fields(self)[0].name)  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        return {self.option: self._given}

    def label(self) -> str:
        return self.words.format(self._given)


class _Mechanism(OneNumber):
    """A mechanism described by its ``loss``: nothing is lost where that is 0, nothing is kept where it is infinite."""

    loss: float  # the pure ε, or the distance of the Gaussian's two normals in standard deviations

    @abstractmethod
    def _rdp(self, order: Array) -> Array:
        """``rdp`` at finite orders, for a loss that is neither 0 nor infinite."""

    @property
    def pure_epsilon(self) -> float:
        return self.loss

    @property
    def loss_jump(self) -> float:  # type: ignore[override]
        return self.pure_epsilon if self.pure_epsilon < _INF else 0.0

    @property
    def zcdp_rho(self) -> float:
        # ε tanh(ε/2) <= ε²/2: the exact zCDP constant of randomized response
        return self.loss * math.tanh(self.loss / 2.0) if self.loss < _INF else _INF

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        if self.loss in (0.0, _INF):
            return np.full(order.shape, self.loss)
        finite = np.where(np.isinf(order), 2.0, order)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value = self._rdp(finite)
        return np.asarray(
            np.where(np.isinf(order), self.pure_epsilon, np.clip(value, 0.0, self.pure_epsilon)), dtype=float
        )

    def loss_steps(self) -> tuple[tuple[Guarantee, int], ...] | None:
        # a loss beyond any grid cannot be convolved
        return () if self.loss == 0.0 else ((self, 1),) if self.loss < 1e6 else None


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

    option, words, remedy = "pure", "{:.6g}-DP", "give ε >= 0, for example 1.0"

    @property
    def loss(self) -> float:  # type: ignore[override]
        return self.epsilon

    def group(self, size: int) -> PureDP:
        return PureDP(checked_group(size) * self.epsilon)

    def weakened(self, epsilon: float) -> PureDP:
        return PureDP(epsilon)

    def _rdp(self, order: Array) -> Array:
        # log((e^{aε} + e^{(1-a)ε}) / (1 + e^ε)) / (a-1): what the moment exceeds 1 by is the product
        # (e^{(a-1)ε} - 1) (1 - e^{-aε}) / (1 + e^-ε) of positive terms, none of which cancels
        h, eps = order - 1.0, self.epsilon
        term = log_expm1(h * eps) + log1mexp(-order * eps) - softplus(-eps)
        return np.where(h * eps > 0.0, softplus(term) / h, 0.0)

    def _log_profile(self, t: Array) -> Array:
        if self.epsilon == _INF:
            return np.zeros(t.shape)
        gap = np.minimum(t - self.epsilon, 0.0)
        return np.asarray(self.epsilon + log1mexp(gap) - softplus(self.epsilon), dtype=float)

    def region(self, rank: Prob) -> Prob:
        eps = self.epsilon
        if eps == _INF:
            return certain(rank)
        # At the corner both forms hold. The second is used there, and next to it, where e^ε u has no digits of 1 - v.
        low = rank.log_u < -float(softplus(eps)) - 1e-14 * (1.0 + eps)
        log_v, log_qv = np.minimum(rank.log_u + eps, 0.0), rank.log_q - eps
        return Prob(np.where(low, log_v, log1mexp(log_qv)), np.where(low, log1mexp(log_v), log_qv))

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        if self.epsilon == _INF:
            return None
        corner = Prob.from_log_q(np.array([-float(softplus(self.epsilon))]))
        return from_points(corner, corner.complement(), np.array([self.epsilon]), attained=True, ends=self.epsilon)

    def loss_tails(self, loss: Array) -> Tails:
        from hpcalc.guarantees.loss_grid import response_tails

        return response_tails(self.epsilon, loss)


@dataclass(frozen=True)
class Gaussian(_Mechanism):
    """The Gaussian mechanism.

    Parameters
    ----------
    sigma : float
        Noise multiplier: standard deviation of the noise divided by the L2 sensitivity, >= 0 (0 is no privacy).

    References
    ----------
    .. [1] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, Theorem 8
       (the exact privacy profile).

    Examples
    --------
    >>> float(Gaussian(2.0).rdp(3.0))
    0.375
    """

    sigma: float

    option, words, most = "gaussian", "Gaussian noise {:.6g}", 1e300
    remedy = "give a noise multiplier >= 0 (noise standard deviation / L2 sensitivity)"

    @property
    def loss(self) -> float:  # type: ignore[override]
        return 1.0 / self.sigma if self.sigma > 0.0 else _INF

    @property
    def pure_epsilon(self) -> float:
        return _INF

    @property
    def zcdp_rho(self) -> float:
        return 0.5 * self.loss * self.loss if self.loss < 1e150 else _INF

    def group(self, size: int) -> Gaussian:
        return Gaussian(self.sigma / checked_group(size))

    def _rdp(self, order: Array) -> Array:
        return order * self.zcdp_rho

    def _log_profile(self, t: Array) -> Array:
        s = self.loss
        if s == _INF:
            return np.zeros(t.shape)
        # Phi(-y) - e^t Phi(-y-s) with y = t/s - s/2, as phi(y) (m(y) - m(y+s)), m = Mills' ratio: no e^t, no overflow
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.minimum(t / s, 1e150) - 0.5 * s
            log_phi = -0.5 * y * y - 0.5 * math.log(2.0 * math.pi)
            plain = np.minimum(y, -8.0)  # there delta is close to 1 and the plain difference is exact
            near_one = logsubexp(log_ndtr(-plain), t + log_ndtr(-plain - s)) if (y < -8.0).any() else 0.0
            return np.asarray(np.where(y < -8.0, near_one, log_phi + log_mills_difference(y, s)), dtype=float)

    def region(self, rank: Prob) -> Prob:
        return certain(rank) if self.loss == _INF else Prob.from_normal(normal_score(rank) + self.loss)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        s = self.loss
        if s == _INF:
            return None
        z = distinct(np.concatenate([_SCORES, s + _SCORES]))  # normal scores of x and, shifted, of W
        return from_points(Prob.from_normal(z), Prob.from_normal(z - s), s * z - 0.5 * s * s, attained=True)

    def loss_tails(self, loss: Array) -> Tails:
        from hpcalc.guarantees.loss_grid import gaussian_tails

        return gaussian_tails(self.loss, loss)


#: Normal scores of the points of a trade-off curve: 0.02 apart, the tangents err by (0.02 shift)^2/8 in log W.
_SCORES = np.linspace(-38.0, 38.0, 3801)

_LEGENDRE = ((0.5 - math.sqrt(0.15), 5.0 / 18.0), (0.5, 8.0 / 18.0), (0.5 + math.sqrt(0.15), 5.0 / 18.0))


def log_mills_difference(y: Array, s: float) -> Array:
    """``log(m(y) - m(y + s))`` for Mills' ratio ``m(x) = (1 - Phi(x)) / phi(x)``, ``s > 0``.

    For small ``s`` the difference is the integral of ``-m' = 1 - x m(x)``, of whose continued fraction 12 terms do.
    """
    if s > 1e-3:
        return logsubexp(log_mills(y), log_mills(y + s))
    total = np.zeros_like(y)
    for node, weight in _LEGENDRE:
        x = y + s * node
        near, far, fraction = np.minimum(x, 10.0), np.maximum(x, 10.0), np.zeros_like(x)
        for j in range(12, 0, -1):
            fraction = j / (far + fraction)
        with np.errstate(over="ignore"):
            total += weight * np.where(x > 10.0, fraction / (far + fraction), 1.0 - near * np.exp(log_mills(near)))
    with np.errstate(divide="ignore"):
        return np.asarray(math.log(s) + np.log(total), dtype=float)


@dataclass(frozen=True)
class Laplace(_Mechanism):
    """The Laplace mechanism.

    Parameters
    ----------
    scale : float
        Scale of the noise divided by the L1 sensitivity, >= 0 (0 is no privacy).

    Examples
    --------
    >>> Laplace(2.0).pure_epsilon
    0.5
    """

    scale: float

    option, words, most = "laplace", "Laplace noise {:.6g}", 1e300
    remedy = "give a scale >= 0 (noise scale / L1 sensitivity)"

    @property
    def loss(self) -> float:  # type: ignore[override]
        return 1.0 / self.scale if self.scale > 0.0 else _INF

    def group(self, size: int) -> Laplace:
        return Laplace(self.scale / checked_group(size))

    def weakened(self, epsilon: float) -> Laplace:
        return Laplace(1.0 / epsilon)

    def _rdp(self, order: Array) -> Array:
        # Mironov 2017, Table II: log((a e^{(a-1)c} + (a-1) e^{-ac}) / (2a-1)) / (a-1)
        h, c = order - 1.0, self.loss
        far = np.logaddexp(np.log(order) + h * c, np.log(h) - order * c) - np.log(2.0 * order - 1.0)
        excess = (order * _exp_minus_line(h * c) + h * _exp_minus_line(-order * c)) / (2.0 * order - 1.0)
        return np.asarray(np.where(h * c < 1.0, np.log1p(np.where(h * c < 1.0, excess, 0.0)), far) / h)

    def _log_profile(self, t: Array) -> Array:
        return np.zeros(t.shape) if self.loss == _INF else log1mexp(0.5 * np.minimum(t - self.loss, 0.0))

    def region(self, rank: Prob) -> Prob:
        c = self.loss
        if c == _INF:
            return certain(rank)
        first = rank.log_u <= -c - _LOG2
        log_v = np.minimum(rank.log_u + c, 0.0)
        log_qv = np.where(~first & (rank.log_u <= -_LOG2), -c - 2.0 * _LOG2 - rank.log_u, rank.log_q - c)
        return Prob(np.where(first, log_v, log1mexp(np.minimum(log_qv, 0.0))), np.where(first, log1mexp(log_v), log_qv))

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        if self.loss == _INF:
            return None
        # between two straight ends 4 w (1-x) = e^-c, with the slope w/(1-x) from e^-c to e^c
        c = self.loss
        t = np.linspace(-c, c, max(int(200.0 * c), 800))
        x, w = Prob.from_log_q(-0.5 * (t + c) - _LOG2), Prob.from_log_u(0.5 * (t - c) - _LOG2)
        return from_points(x, w, t, attained=True, ends=c)

    def loss_tails(self, loss: Array) -> Tails:
        from hpcalc.guarantees.loss_grid import laplace_tails

        return laplace_tails(self.loss, loss)


def _exp_minus_line(x: Array) -> Array:
    """``e^x - 1 - x`` without cancellation near 0 (Taylor below 0.1)."""
    near = np.abs(x) < 0.1
    y = np.where(near, x, 0.0)
    series = np.zeros_like(y)
    for j in range(12, 2, -1):
        series = y / j * (1.0 + series)
    with np.errstate(over="ignore"):
        return np.asarray(np.where(near, 0.5 * y * y * (1.0 + series), np.expm1(x) - x), dtype=float)
