"""Mechanisms of two and three outcomes, which a Rényi curve allows.

Where only a Rényi curve is known, the pair that attains the region would break it. A mechanism of three outcomes
(Papernot and Steinke 2022, Appendix D.3, has this shape) meets every order in both directions: a top block, a bad
outcome, the rest. Its ε is ``log((A - δ)/A')`` of the bad outcome, A and A' being the chances that it is the best of K.
For a fixed number of runs two outcomes do better: the bad one is then all that the top block leaves.

A candidate is Q of masses (q, b, r), and P proportional to ``(q e^t, b e^-s, r)``. It spends less at every order
where t and s are made smaller together: with the cumulant ``K(c) = log E_Q[e^(c l)]`` of its losses l, both moments
``K(-c(a-1)) + (a-1) K(c)`` and ``K(ca) - a K(c)`` of losses c l rise with c, as K is convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law
from hpcalc.logspace import Array, Prob, distinct, log1mexp, logaddexp, logsubexp, logsumexp
from hpcalc.lower.mechanism import LowerBound

# Proof: a mechanism spends less than the curve allows by this fraction. Between two orders a pair's moment lies below
# its chord, and the curve's own moment falls below its chord by a fraction of about (_STEP / 2)^2.
_MARGIN, _STEP, _LAST = 1e-5, 4e-3, 1e17
_COARSE = np.exp(np.arange(-7.0, 15.0, 0.7))
# Values as close as this are equal but for rounding: a search must not turn on the last bit.
_SAME = 1e-10


class Blocks(Protocol):
    """What the search asks of a law of K (or of acceptance)."""

    def log_block(self, lo: Prob, hi: Prob, log_width: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
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

    def spent(self, log_q: Array, log_p: Array) -> Array:
        """The largest fraction of what is allowed that each pair, shape (3, n), spends in either direction."""
        with np.errstate(invalid="ignore"):
            loss = np.max(np.where(np.isneginf(log_q), 0.0, np.abs(log_q - log_p)), axis=0)
        return np.asarray(np.maximum(np.max(self.fractions(log_q, log_p), axis=0), loss / self.largest_loss))

    def fractions(self, log_q: Array, log_p: Array) -> Array:
        """What each pair spends at each order in the worse direction, shape (m, n)."""
        return np.maximum(self._fractions(log_q, log_p), self._fractions(log_p, log_q))

    def _fractions(self, log_q: Array, log_p: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            loss = np.where(np.isneginf(log_q), 0.0, log_q - log_p)[:, None]
            power = self.less_one[:, None] * loss
            moment = logsumexp(log_q[:, None] + power, axis=0)
            if np.min(near := np.max(power, axis=0)) < 0.5:  # the outcomes are kept apart from 1 to spare cancellation
                small = np.sum(np.exp(log_q[:, None]) * np.expm1(np.minimum(power, 0.5)), axis=0)
                moment = np.where(near < 0.5, np.log1p(small), moment)
            share = np.asarray(moment / self.moment[:, None])
            return np.where(np.isnan(share), np.inf, share)

    def binding(self, log_q: Array, log_p: Array, reach: float) -> Array:
        """Orders (less 1) around those at which pairs spend most in either direction."""
        top = [np.argmax(self._fractions(*pair), axis=0) for pair in ((log_q, log_p), (log_p, log_q))]
        around = distinct(self.less_one[np.concatenate(top)])[:, None] * np.exp(reach * np.linspace(-1.0, 1.0, 9))
        return np.ravel(around)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Mechanisms by columns x, shape (3, n).

    They are log odds of the top block, log share of the bad outcome in the rest (0: two outcomes), log of the fraction
    by which the top block's loss falls short of the largest.
    """

    law: Blocks
    log_delta: float
    limits: Limits
    #: Log odds of top blocks, and how much larger V makes them.
    farthest: tuple[Array, Array]

    @classmethod
    def of(cls, base: Guarantee, law: Blocks, log_delta: float, less_one: Array, places: Array) -> Candidates:
        """With limits at some orders (less 1), and V at some log odds of the top block."""
        places = distinct(places)
        image = base.region(Prob.from_logit(places))
        return cls(law, log_delta, Limits.of(base, less_one), (places, image.log_u - image.log_q - places))

    def pair(self, x: Array, top_loss: Array, bad_loss: Array) -> tuple[Array, Array]:
        """Logarithms of Q and P, shape (3, n)."""
        top, share = Prob.from_logit(x[0]), np.minimum(x[1], 0.0)
        log_q = np.stack([top.log_u, top.log_q + share, top.log_q + log1mexp(share)])
        log_p = log_q + np.stack([top_loss, -bad_loss, np.zeros(top_loss.size)])
        return log_q, log_p - logsumexp(log_p, axis=0)

    def losses(self, x: Array) -> tuple[Array, Array]:
        """Losses of the top block, and the largest ones of the bad outcome that the limits allow, but for rounding.

        ``e^((a-1) D_a(Q||P)) = Z^(a-1) (q e^(-(a-1) t) + b e^((a-1) s) + r)``, ``Z = q e^t + b e^-s + r``; s is solved
        for order by order, Z being nearly known.
        """
        two, h = x[1] >= 0.0, self.limits.less_one[:, None]
        top = np.interp(x[0], *self.farthest) * np.where(two, 1.0, -np.expm1(np.minimum(x[2], 0.0)))
        log_q, bad = self.pair(x, top, top)[0], np.full(top.size, np.inf)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for _ in range(4):
                log_z = logsumexp(log_q + np.stack([top, -bad, 0.0 * top]), axis=0)
                rest = np.logaddexp(log_q[0] - h * top, log_q[2])
                room = self.limits.moment[:, None] - h * log_z
                bad = np.min((logsubexp(np.maximum(room, rest), rest) - log_q[1]) / h, axis=0, initial=600.0)
        return top, np.where(two, 0.0, np.clip(bad, 0.0, self.limits.largest_loss))

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

    def values(self, x: Array) -> Array:
        """ε of each candidate, or about what is left of it when it gives way to limits that it breaks."""
        losses = self.losses(x)
        pair = self.pair(x, *losses)
        value, over = self.epsilon(*pair), np.clip(self.limits.spent(*pair) - 1.0, 0.0, 9.0)
        give = np.sum(losses, axis=0) + np.where(np.isfinite(value), np.abs(value), 0.0)
        return np.asarray(value - 2.0 * over * give)


def few_outcomes_beside_slack(base: Guarantee, law: Law, log_delta: float) -> LowerBound | None:
    """A mechanism of few outcomes, mixed with two best-ranked ones of probability ``slack`` that only one input has.

    The search then ends in one of these with probability ``1 - f(1-slack)``, the same under both inputs, and is the
    search on the few otherwise: Lemma 20 of Papernot and Steinke 2022 holds with equality.
    """
    if base.slack >= 1.0:
        return None
    if base.slack > 0.0:
        # a little less is subtracted than was added, so that rounding lowers epsilon
        log_added = float(law.log_survival(Prob.from_u(np.array([base.slack])))[0]) - 1e-12
        if log_added > log_delta:
            return LowerBound(math.inf, "three outcomes")
        log_delta = min(float(logsubexp(log_delta, log_added) - log1mexp(log_added)), 0.0)
        base, law = base.core, law.thin(math.log1p(-base.slack))
    logit = np.linspace(-700.0, 5.0, 2821)
    falling = logit[law.log_density(Prob.from_logit(logit)) < law.log_mean - 0.02]
    first = min(float(falling[0]) if falling.size else 0.0, 0.0)
    return few_outcomes(base, law, log_delta, np.linspace(first - 3.0, max(first + 9.0, 3.0), 12))


def few_outcomes(base: Guarantee, law: Blocks, log_delta: float, places: Array) -> LowerBound | None:
    """Best mechanism found from some log odds of the top block, then made to meet every order in both directions."""
    around = np.linspace(places[0] - 9.0, places[-1] + 3.0, 120)
    trial = Candidates.of(base, law, log_delta, _COARSE, around)
    if trial.limits.less_one.size == 0:
        return None
    shares, short = np.linspace(max(log_delta - 6.0, -600.0), 0.0, 9), np.array([-6.0, -1.5, -0.4])
    x = np.stack(np.meshgrid(places, shares, short, indexing="ij")).reshape(3, -1)
    value, three = trial.values(x), x[1] < 0.0
    best = _first_of_best(np.where(three, value, -np.inf))
    far = np.abs(x[0] - x[0, best]) > 1.5
    x = x[:, [best, *(_first_of_best(np.where(some, value, -np.inf)) for some in (three & far, ~three))]]
    sure = Limits.of(base, np.exp(np.arange(math.log(1e-6), math.log(_LAST) + _STEP, _STEP)))
    binding = _COARSE[::3]
    for finest in (0.1, 0.02, 0.02):
        x = _climb(trial.values, x, finest)
        before, binding = binding, sure.binding(*trial.pair(x, *trial.losses(x)), finest**0.5)
        less_one = np.concatenate([_COARSE[::3], before, binding])  # those before still bind
        around = np.ravel(x[0] + finest * np.arange(-16.0, 16.5, 0.5)[:, None])
        trial = Candidates.of(base, law, log_delta, less_one, around)
        top = _first_of_best(trial.values(x))
        x = x[:, top : top + 1]
    losses = np.stack(trial.losses(x))
    for _ in range(60):
        pair = trial.pair(x, *losses)
        over = float(sure.spent(*pair)[0]) - 1.0
        if over <= 0.0:
            epsilon = float(trial.epsilon(*pair)[0]) - 1e-10
            q, p = (tuple(part[np.isfinite(part)].tolist()) for part in pair)
            return LowerBound(max(epsilon, 0.0), "two outcomes" if len(q) == 2 else "three outcomes", (q, p))
        losses = losses / (1.0 + over + 1e-9)
    return None


def _first_of_best(value: Array) -> int:
    """The first of the largest values that are equal but for rounding."""
    top = float(np.max(value))
    return int(np.argmax(value >= top - _SAME * abs(top))) if math.isfinite(top) else int(np.argmax(value))


def _climb(values: Callable[[Array], Array], x: Array, finest: float) -> Array:
    """Pattern search: the best of the 27 points around each, then around that; smaller steps where none is better."""
    around = np.stack(np.meshgrid(*[np.array([0.0, -1.0, 1.0])] * 3, indexing="ij")).reshape(3, -1)
    width = np.outer([4.0, 10.0, 10.0], np.full(x.shape[1], finest))
    for _ in range(40):
        points = x[:, None] + around[:, :, None] * width[:, None]
        points[1] = np.where(x[1] >= 0.0, 0.0, np.minimum(points[1], -1e-9))
        points[2] = np.clip(points[2], max(math.log(finest) - 5.0, -9.0), -1e-3)
        value = values(points.reshape(3, -1)).reshape(points.shape[1:])
        top = np.array([_first_of_best(column) for column in value.T])
        x = points[:, top, np.arange(top.size)]
        width = np.where(top == 0, 0.5, 1.0) * width
        if np.all(width[0] < finest):
            break
    return x
