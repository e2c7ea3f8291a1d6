"""Guarantees whose worst case is a mechanism in closed form: randomized response, Gaussian and Laplace noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from hpcalc.errors import checked_number
from hpcalc.guarantees.guarantee import Guarantee, checked_group, checked_orders
from hpcalc.guarantees.tradeoff import Tails, Tradeoff, from_points
from hpcalc.logspace import Array, Prob, distinct, log1mexp, log_mills, log_ndtr, logsubexp, mills_fraction, softplus

_INF = math.inf
_LOG2 = math.log(2.0)
_FAR_OUT = 1e6  # scores beyond which a Gaussian's tail is bounded


class OneNumber(Guarantee):
    """A guarantee that is one number, the only field of the class, between 0 and ``most``."""

    option = ""  # which gives it
    remedy = ""
    most = _INF
    power: ClassVar[int] = 1  # of a group's size by which the number grows
    grouped = False  # whether it is of a group, from that of one record

    def __post_init__(self) -> None:
        value = checked_number(self.option, self._given, self.remedy, lambda x: 0.0 <= x <= self.most)
        object.__setattr__(self, fields(self)[0].name, value)  # type: ignore[arg-type]  # subclasses are data classes

    @property
    def _given(self) -> Any:
        return getattr(self, fields(self)[0].name)  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        return {self.option: self._given}

    def group(self, size: int) -> Guarantee:
        factor = checked_group(size) ** abs(self.power)
        made = type(self)(self._given * factor if self.power > 0 else self._given / factor)  # type: ignore[call-arg]
        vars(made)["grouped"] = self.grouped or factor > 1
        return made


class _Mechanism(OneNumber):
    """A mechanism described by its ``loss``: nothing is lost where that is 0, nothing is kept where it is infinite."""

    @property
    def loss(self) -> float:
        """The pure ε, or the distance of the Gaussian's two normals in standard deviations."""
        given = float(self._given)
        return given if self.power > 0 else 1.0 / given if given > 0.0 else _INF

    @abstractmethod
    def _rdp(self, order: Array) -> Array:
        """``rdp`` at finite orders, for a loss that is neither 0 nor infinite."""

    @property
    def pure_epsilon(self) -> float:  # type: ignore[override]
        return self.loss

    loss_jump = pure_epsilon

    @property
    def zcdp_rho(self) -> float:  # type: ignore[override]
        # ε tanh(ε/2) <= ε²/2: the exact zCDP constant of randomized response
        return self.loss * math.tanh(self.loss / 2.0) if self.loss < _INF else _INF

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value = np.clip(self._rdp(np.where(np.isinf(order), 2.0, order)), 0.0, self.pure_epsilon)
        return np.where(np.isinf(order), self.pure_epsilon, value)

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

    option, remedy = "pure", "give ε >= 0, for example 1.0"

    def _rdp(self, order: Array) -> Array:
        # log((e^{aε} + e^{(1-a)ε}) / (1 + e^ε)) / (a-1): what the moment exceeds 1 by is the product
        # (e^{(a-1)ε} - 1) (1 - e^{-aε}) / (1 + e^-ε) of positive terms, none of which cancels
        h, eps = order - 1.0, self.epsilon
        term = h * eps + log1mexp(-h * eps) + log1mexp(-order * eps) - softplus(-eps)
        return np.where(h * eps > 0.0, softplus(term) / h, 0.0)

    def _log_profile(self, t: Array) -> Array:
        gap = np.minimum(t, 1e300) - self.epsilon
        return np.asarray(log1mexp(np.minimum(gap, 0.0)) - softplus(-self.epsilon), dtype=float)

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        if self.epsilon == _INF:
            return None
        corner = Prob.from_log_q(np.array([-float(softplus(self.epsilon))]))
        return from_points(corner, corner.complement(), np.array([self.epsilon]), attained=True, ends=self.epsilon)

    def loss_tails(self, loss: Array) -> Tails:
        """Losses ε and -ε."""
        often, rarely = -softplus(-self.epsilon), -softplus(self.epsilon)
        p_above, q_above = (_within(loss, self.epsilon, (0.0, x, -_INF)) for x in (often, rarely))
        p_below, q_below = (_within(loss, self.epsilon, (-_INF, x, 0.0)) for x in (rarely, often))
        return Tails(p_above, p_below, q_above, q_below)


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

    option, most, power = "gaussian", 1e300, -1
    remedy = "give a noise multiplier >= 0 (noise standard deviation / L2 sensitivity)"
    pure_epsilon, loss_jump = _INF, 0.0

    @property
    def zcdp_rho(self) -> float:  # type: ignore[override]
        return 0.5 * self.loss * self.loss if self.loss < 1e150 else _INF

    def _rdp(self, order: Array) -> Array:
        return order * self.zcdp_rho

    def _log_profile(self, t: Array) -> Array:
        s = self.loss
        if s == _INF:
            return np.zeros(t.shape)
        # Phi(-y) - e^t Phi(-y-s) with y = t/s - s/2, as phi(y) (m(y) - m(y+s)), m = Mills' ratio: no e^t, no overflow;
        # where y < -38 delta is 1 to the last digit
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.clip(t / s - 0.5 * s, -38.0, 1e150)
            # far out, where doubles see no difference, its bound s/y^2: m falls by 1 - y m(y) <= 1/y^2
            far = math.log(s) - 2.0 * np.log(np.maximum(y, _FAR_OUT))
            mills = np.where(y > _FAR_OUT, far, log_mills_difference(np.minimum(y, _FAR_OUT), s))
            return mills - 0.5 * y * y - 0.5 * math.log(2.0 * math.pi)

    def region(self, rank: Prob) -> Prob:
        return Prob.from_normal(rank.normal + min(self.loss, 1e300))

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        s = self.loss
        if s == _INF:
            return None
        z = distinct(np.concatenate([_SCORES, s + _SCORES]))  # normal scores of x and, shifted, of W
        return from_points(Prob.from_normal(z), Prob.from_normal(z - s), s * z - 0.5 * s * s, attained=True)

    def loss_tails(self, loss: Array) -> Tails:
        """The loss is ``N(s^2/2, s^2)`` under P and ``N(-s^2/2, s^2)`` under Q."""
        x, half = loss / self.loss, 0.5 * self.loss
        return Tails(log_ndtr(half - x), log_ndtr(x - half), log_ndtr(-half - x), log_ndtr(x + half))


#: Normal scores of the points of a trade-off curve: 0.02 apart, the tangents err by (0.02 shift)^2/8 in log W.
_SCORES = np.linspace(-38.0, 38.0, 3801)


def log_mills_difference(y: Array, s: float) -> Array:
    """``log(m(y) - m(y + s))`` for Mills' ratio ``m(x) = (1 - Phi(x)) / phi(x)``, ``s > 0``.

    For small ``s`` the difference is the integral of ``-m' = 1 - x m(x)``. All its even derivatives are positive, as m
    is a mean of ``e^(-xt)``, so Simpson's rule errs upwards.
    """
    if s > 1e-3:
        return logsubexp(log_mills(y), log_mills(y + s))
    x = y[..., None] + s * np.array([0.0, 0.5, 1.0])
    near, rest = np.minimum(x, 10.0), mills_fraction(np.maximum(x, 10.0))
    with np.errstate(over="ignore", divide="ignore"):
        fall = np.where(x > 10.0, rest / (x + rest), 1.0 - near * np.exp(log_mills(near)))
        return np.asarray(math.log(s / 6.0) + np.log(fall @ np.array([1.0, 4.0, 1.0])), dtype=float)


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

    option, most, power = "laplace", 1e300, -1
    remedy = "give a scale >= 0 (noise scale / L1 sensitivity)"

    def _rdp(self, order: Array) -> Array:
        # Mironov 2017, Table II: log((a e^{(a-1)c} + (a-1) e^{-ac}) / (2a-1)) / (a-1)
        h, c = order - 1.0, self.loss
        far = np.logaddexp(np.log(order) + h * c, np.log(h) - order * c) - np.log(2.0 * order - 1.0)
        excess = (order * exp_minus_line(h * c) + h * exp_minus_line(-order * c)) / (2.0 * order - 1.0)
        return np.asarray(np.where(h * c < 1.0, np.log1p(np.where(h * c < 1.0, excess, 0.0)), far) / h)

    def _log_profile(self, t: Array) -> Array:
        return log1mexp(0.5 * np.minimum(np.minimum(t, 1e300) - self.loss, 0.0))

    def region(self, rank: Prob) -> Prob:
        c = min(self.loss, 1e300)
        first = rank.log_u <= -c - _LOG2
        log_v = np.minimum(rank.log_u + c, 0.0)
        log_qv = np.where(~first & (rank.log_u <= -_LOG2), -c - 2.0 * _LOG2 - rank.log_u, rank.log_q - c)
        return Prob(np.where(first, log_v, log1mexp(np.minimum(log_qv, 0.0))), np.where(first, log1mexp(log_v), log_qv))

    def tradeoff(self, direction: int = 0) -> Tradeoff | None:
        if self.loss == _INF:
            return None
        # between two straight ends 4 w (1-x) = e^-c, with the slope w/(1-x) from e^-c to e^c
        c = self.loss
        t = np.linspace(-c, c, int(np.clip(200.0 * c, 800.0, 1e5)))  # beyond e^700 no double tells the ends apart
        x, w = Prob.from_log_q(-0.5 * (t + c) - _LOG2), Prob.from_log_u(0.5 * (t - c) - _LOG2)
        return from_points(x, w, t, attained=True, ends=c)

    def loss_tails(self, loss: Array) -> Tails:
        """P = Laplace at 0, Q = Laplace at 1 (scale 1/c): the loss is ``c (1 - 2x)`` on [0, 1], c or -c outside."""
        c = self.loss
        place = np.clip(loss, -c, c)
        p_below = _within(loss, c, (-_INF, -_LOG2 - 0.5 * (c - place), 0.0))
        q_above = _within(loss, c, (0.0, -_LOG2 - 0.5 * (c + place), -_INF))
        return Tails(log1mexp(p_below), p_below, q_above, log1mexp(q_above))


def _within(loss: Array, at: float, values: tuple[float, Array, float]) -> Array:
    """A tail of a loss within [-at, at]: before these, between them and from the last on."""
    before, inside, after = values
    return np.asarray(np.where(loss < -at, before, np.where(loss >= at, after, inside)), dtype=float)


_TAYLOR = [1.0 / math.factorial(k) for k in range(12, 1, -1)]


def exp_minus_line(x: Array) -> Array:
    """``e^x - 1 - x`` without cancellation near 0 (Taylor below 0.1)."""
    near = np.abs(x) < 0.1
    with np.errstate(over="ignore"):
        return np.where(near, x * x * np.polyval(_TAYLOR, np.where(near, x, 0.0)), np.expm1(x) - x)
