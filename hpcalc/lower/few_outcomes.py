"""Mechanisms of two and three outcomes, which a Rényi curve allows.

Where only a Rényi curve is known, the pair that attains the region would break it. A mechanism of three outcomes
(Papernot and Steinke 2022, Appendix D.3, has this shape) meets every order in both directions: a top block, a bad
outcome, the rest. Its ε is ``log((A - δ)/A')`` of the bad outcome, A and A' being the chances that it is the best of K.
For a fixed number of runs two outcomes do better: the bad one is then all that the top block leaves.

A candidate is Q of masses (q, b, r), and P proportional to ``Q e^l`` for ``l = (t, -s, 0)``: with ``Z = E_Q[e^l]`` the
orders a of P against Q limit t by ``E_Q[e^(a l)]/Z^a``, those of Q against P limit s by ``Z^(a-1) E_Q[e^(-(a-1) l)]``.
It spends less at every order where t and s are made smaller together: with the cumulant ``K(c) = log E_Q[e^(c l)]``
both moments ``K(-c(a-1)) + (a-1) K(c)`` and ``K(ca) - a K(c)`` rise with c, as K is convex. So the last step shrinks
them until every order is met.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law
from hpcalc.logspace import Array, Indices, Prob, distinct, log1mexp, logaddexp, logsubexp, logsumexp
from hpcalc.lower.mechanism import LowerBound

# Proof: a mechanism spends less than the curve allows by this fraction. Between two orders a pair's moment lies below
# its chord, and the curve's own moment falls below its chord by a fraction of about (step / 2)^2, the step being that
# of the logarithm. Of orders _STRIDE steps apart it is 1e-3: what is further from the limits there is so in between.
_MARGIN, _STEP, _LAST = 1e-5, 4e-3, 1e17
_STRIDE, _NEAR = 16, 0.9
# Values as close as this are equal but for rounding: a search must not turn on the last bit.
_SAME = 1e-10
# Knobs of speed. Where the search begins: orders (less 1) and the last two coordinates of `Candidates`; then, stage by
# stage, how far around the orders that bind more of them are taken, and the steps of the search.
_COARSE = np.exp(np.append(-10.0, np.arange(-7.0, 15.0, 0.7)))
_CHANCES, _SHORT = (np.linspace(0.4, 6.0, 8), np.array([np.inf])), np.array([-6.0, -2.5, -0.7])
_STAGES = ((0.7, (0.5, 0.2)), (0.12, (0.1, 0.04)), (0.05, (0.015,)))
_ROUNDS = 3  # of lowering losses


class Blocks(Protocol):
    """What the search asks of a law of K (or of acceptance)."""

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array: ...

    def log_density(self, rank: Prob) -> Array: ...


@dataclass(eq=False)
class Limits:
    """What a Rényi curve allows at some orders: orders less 1, moments ``(a-1) D_a``, and the largest loss."""

    less_one: Array
    moment: Array
    largest_loss: float

    @classmethod
    def of(cls, base: Guarantee, less_one: Array) -> Limits:
        """At these orders, or at those that are given."""
        largest = base.pure_epsilon
        if base.orders is not None:
            less_one = base.orders[np.isfinite(base.orders)] - 1.0
        else:  # this limits what comes beyond the last order
            largest = min(largest, float(base.rdp(np.array([_LAST]))[0]))
        rdp = base.rdp(1.0 + less_one)
        less_one, rdp = less_one[np.isfinite(rdp)], rdp[np.isfinite(rdp)]
        return cls(less_one, less_one * rdp * (1.0 - _MARGIN), largest * (1.0 - _MARGIN))

    def at(self, index: Indices | slice) -> Limits:
        """At some of the orders."""
        return Limits(self.less_one[index], self.moment[index], self.largest_loss)

    def spent(self, log_q: Array, log_p: Array, stride: int) -> float:
        """The largest fraction of what is allowed that one pair, shape (3, 1), spends in either direction.

        All orders near those, ``stride`` apart, at which it spends much are looked at.
        """
        much = self.at(slice(None, None, stride)).fractions(log_q, log_p)[:, 0] > _NEAR
        near = np.flatnonzero(np.repeat(np.convolve(much, np.ones(3), "same") > 0.0, stride)[: self.less_one.size])
        with np.errstate(invalid="ignore"):
            loss = np.max(np.where(np.isneginf(log_q), 0.0, np.abs(log_q - log_p)))
        most = np.max(self.at(near).fractions(log_q, log_p), initial=_NEAR)
        return float(max(most, loss / self.largest_loss))

    def fractions(self, log_q: Array, log_p: Array) -> Array:
        """What each pair, shape (3, n), spends at each order in the worse direction, shape (m, n)."""
        return np.maximum(self._fractions(log_q, log_p), self._fractions(log_p, log_q))

    def _fractions(self, log_q: Array, log_p: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            loss = np.where(np.isneginf(log_q), 0.0, log_q - log_p)[:, None]
            power = self.less_one[:, None] * loss
            moment = logsumexp(log_q[:, None] + power, axis=0)
            if power.size and np.min(near := np.max(power, axis=0)) < 0.5:  # kept apart from 1 to spare cancellation
                small = np.sum(np.exp(log_q[:, None]) * np.expm1(np.minimum(power, 0.5)), axis=0)
                moment = np.where(near < 0.5, np.log1p(small), moment)
            share = np.asarray(moment / self.moment[:, None])
            return np.where(np.isnan(share), np.inf, share)

    def around(self, log_q: Array, log_p: Array, reach: float) -> Array:
        """Orders (less 1) around those at which pairs spend most in either direction."""
        top = [np.argmax(self._fractions(*pair), axis=0) for pair in ((log_q, log_p), (log_p, log_q))]
        return np.ravel(distinct(self.less_one[np.concatenate(top)])[:, None] * np.exp(np.linspace(-reach, reach, 9)))

    def largest_losses(self, logit: Array) -> Array:
        """Losses t that a top block may have where there are two outcomes, nearly."""
        q, h, moment = Prob.from_logit(logit), self.less_one[:, None], self.moment[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # what one outcome alone allows
            ahead = Prob.from_log_u(np.minimum((moment + h * q.log_u) / (1.0 + h), 0.0)).logit
            back = Prob.from_log_q(np.minimum(((1.0 + h) * q.log_q - moment) / h, 0.0)).logit
        top, log_q = np.min(np.minimum(ahead, back), axis=0, initial=1400.0) - logit, np.stack([q.log_u, q.log_q])
        for _ in range(_ROUNDS):
            moments = [_log_moment(log_q, np.stack([top, 0.0 * top]), power) for power in (1.0 + h, -h)]
            top = _lowered(top, np.max(np.maximum(*moments) / moment, axis=0))
        return np.asarray(top)

    def losses(self, log_q: Array, top: Array) -> Array:
        """Losses l that the limits allow, nearly, for a t at most as given.

        s is solved for order by order, its effect on Z by Newton's method; then t is lowered for the other direction.
        """
        h, moment, rest = self.less_one[:, None], self.moment[:, None], np.exp(log_q[2])
        loss = np.stack([top, 0.0 * top, 0.0 * top])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for _ in range(_ROUNDS):
                log_z = _log_sum(log_q + loss)
                room = moment - h * log_z
                left = 1.0 - np.exp(np.minimum(np.log(np.exp(log_q[0] - h * loss[0]) + rest) - room, 0.0))
                bad = (room + np.log(left) - log_q[1]) / h
                slope = 1.0 - np.exp(log_q[1] + loss[1] - log_z) / left
                bad = np.min((bad + loss[1]) / np.maximum(slope, 0.2) - loss[1], axis=0, initial=600.0)
                loss[1] = np.where(rest > 0.0, -np.clip(bad, 0.0, self.largest_loss), 0.0)
                loss[0] = _lowered(loss[0], np.max(_log_moment(log_q, loss, 1.0 + h) / moment, axis=0))
        return loss


def _log_sum(parts: Array) -> Array:
    """``logsumexp`` along the first axis where not all are -inf."""
    top = np.max(parts, axis=0)
    return np.asarray(top + np.log(np.sum(np.exp(parts - top), axis=0)))


def _log_moment(log_q: Array, loss: Array, power: Array) -> Array:
    """``log E_Q[(P/Q)^power]``, P being proportional to ``Q e^loss``, shape (m, n)."""
    return _log_sum(log_q[:, None] + power * loss[:, None]) - power * _log_sum(log_q + loss)


def _lowered(loss: Array, spent: Array) -> Array:
    """Losses lowered where too much is spent, which rises about like their square, or quicker."""
    return np.asarray(loss * np.clip(spent, 1.0, 1e3) ** -0.4)


def _posterior(log_q: Array, loss: Array) -> Array:
    """Logarithms of P, proportional to ``Q e^loss``."""
    log_p = log_q + loss
    return log_p - logsumexp(log_p, axis=0)


@dataclass(eq=False)
class Candidates:
    """Mechanisms by columns x, shape (3, n).

    They are log odds of the top block, about ``log(A/δ)`` of the bad outcome (inf: two outcomes), log of the fraction
    by which the top block's loss falls short of the largest.
    """

    law: Blocks
    log_delta: float

    def masses_and_losses(self, x: Array, limits: Limits) -> tuple[Array, Array]:
        """Logarithms of Q, and l, shape (3, n)."""
        top, two, places = Prob.from_logit(x[0]), np.isposinf(x[1]), distinct(x[0])
        bad = np.minimum(self.log_delta + x[1] - self.law.log_density(top), top.log_q - np.where(two, 0.0, 0.1))
        log_q = np.stack([top.log_u, bad, logsubexp(top.log_q, bad)])
        largest = limits.largest_losses(places)[np.searchsorted(places, x[0])]
        return log_q, limits.losses(log_q, largest * np.where(two, 1.0, -np.expm1(x[2])))

    def epsilon(self, log_q: Array, log_p: Array) -> Array:
        """``log((A - δ)/A')`` of the bad outcome; -inf where that is not a number."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_a, log_b = (
                self.law.log_block(
                    Prob(top, logaddexp(bad, rest)), Prob(np.minimum(logaddexp(top, bad), 0.0), rest), bad
                )
                for top, bad, rest in (log_q, log_p)
            )
            value = logsubexp(np.maximum(log_a, self.log_delta), self.log_delta) - log_b
        return np.where(np.isnan(value) | np.isposinf(value), -np.inf, value)

    def best(self, x: Array, limits: Limits) -> Array:
        """The best of the columns, shape (3, 1): the first of those that are equal but for rounding."""
        log_q, loss = self.masses_and_losses(x, limits)
        value = self.epsilon(log_q, _posterior(log_q, loss))
        top = float(np.max(value))
        first = int(np.argmax(value >= top - _SAME * abs(top))) if top > -math.inf else 0
        return x[:, first : first + 1]

    def better(self, x: Array, limits: Limits, step: float) -> Array:
        """The best of the points around a candidate."""
        few, many = step * np.array([0.0, -1.0, 1.0]), step * np.array([0.0, -1.0, 1.0, -2.0, 2.0])
        points = x + np.stack(np.meshgrid(many, many, 2.0 * few)).reshape(3, -1)
        points[2] = np.clip(points[2], -9.0, -1e-3)
        return self.best(points, limits)


def few_outcomes_beside_slack(base: Guarantee, law: Law, log_delta: float) -> LowerBound | None:
    """A mechanism of few outcomes, mixed with two best-ranked ones of probability ``slack`` that only one input has.

    The search then ends in one of these with probability ``1 - f(1-slack)``, the same under both inputs, and is the
    search on the few otherwise: Lemma 20 of Papernot and Steinke 2022 holds with equality.
    """
    if base.slack >= 1.0:
        return None
    if base.slack > 0.0:
        # a little less is subtracted than was added, so that rounding lowers epsilon
        log_added = float(law.success(Prob.from_u(np.array([base.slack]))).log_u[0]) - 1e-12
        if log_added > log_delta:
            return LowerBound(math.inf, "three outcomes")
        log_delta = min(float(logsubexp(log_delta, log_added) - log1mexp(log_added)), 0.0)
        base, law = base.core, law.thin(math.log1p(-base.slack))
    logit = np.linspace(-700.0, 5.0, 2821)
    falling = logit[law.log_density(Prob.from_logit(logit)) < law.log_mean - 0.02]
    first = min(float(falling[0]) if falling.size else 0.0, 0.0)
    return few_outcomes(base, law, log_delta, np.linspace(first - 3.0, max(first + 9.0, 3.0), 12))


@lru_cache(maxsize=8)
def _limits(base: Guarantee) -> tuple[Limits, Limits]:
    """At some orders and at all: the same for every law of K."""
    return Limits.of(base, _COARSE), Limits.of(base, np.exp(np.arange(math.log(1e-6), math.log(_LAST) + _STEP, _STEP)))


def few_outcomes(base: Guarantee, law: Blocks, log_delta: float, places: Array) -> LowerBound | None:
    """Best mechanism found from some log odds of the top block, then made to meet every order in both directions."""
    limits, sure = _limits(base)
    if limits.less_one.size == 0:
        return None
    found, less_one = Candidates(law, log_delta), _COARSE[::3]
    stride = _STRIDE if base.orders is None else 1
    some = sure.at(slice(None, None, stride))  # the orders that bind may lie between those at hand
    kinds = [found.best(np.stack(np.meshgrid(places, chance, _SHORT)).reshape(3, -1), limits) for chance in _CHANCES]
    for reach, steps in _STAGES:
        log_q, loss = found.masses_and_losses(np.concatenate(kinds, axis=1), limits)
        less_one = np.concatenate([less_one, some.around(log_q, _posterior(log_q, loss), reach)])
        limits = Limits.of(base, less_one)
        for step in steps:
            kinds = [found.better(x, limits, step) for x in kinds]
        kinds = [found.best(np.concatenate(kinds, axis=1), limits)]
    log_q, loss = found.masses_and_losses(kinds[0], limits)
    for trial in range(60):
        log_p = _posterior(log_q, loss)
        over = sure.spent(log_q, log_p, stride) - 1.0
        if over <= 0.0:
            epsilon = float(found.epsilon(log_q, log_p)[0]) - 1e-10
            q, p = (tuple(part[np.isfinite(part)].tolist()) for part in (log_q, log_p))
            return LowerBound(max(epsilon, 0.0), "two outcomes" if len(q) == 2 else "three outcomes", (q, p))
        loss = loss / (1.0 + over * 2.0**trial + 1e-9)
    return None
