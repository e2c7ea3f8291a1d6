"""The privacy loss of one use of a mechanism, and the two ways to put it on a grid.

The loss is ``L = log dP/dQ``; its law is told by its tails under P and under Q. On a grid of multiples of one step,
which lie further apart where the loss is large, losses are moved

* **upwards**: the P- and Q-mass between two neighbouring grid losses are both kept by moving them to the two ends; the
  result dominates the mechanism, so its profile is an upper bound (V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar,
  P. Manurangsi, "Connect the dots: tighter discrete approximations of privacy loss distributions", PoPETs 2022);
* **downwards**: outcomes are merged until the merged outcome has exactly a grid loss; merging is post-processing, so
  the result is a mechanism that an attacker could really face (used for lower bounds).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hpcalc.guarantees.guarantee import Guarantee
from hpcalc.guarantees.tradeoff import least_masses
from hpcalc.logspace import Array, Indices, distinct, logaddexp, logsubexp

_INF = math.inf
LOG_TAIL = -90.0  # mass below e^-90 counts as an infinite loss
_DENSE = 1000  # grid points 0, 1, ..., 1000 steps are all used; further out they lie a thousandth of the loss apart
_DENSE_OF_MANY = 250  # as many where there are many kinds of steps: costs a 1e-5 of the variance
_FEW = 16  # kinds of steps that are not many


class Kinds(NamedTuple):
    """How often each kind of step is used; a kind is one of the steps, or a mixture of one and the next."""

    left: Indices  # which step
    share: Array  # weight of the step after it
    uses: Array

    @property
    def total(self) -> float:
        """How many uses there are."""
        return float(np.sum(self.uses))

    def per_step(self, steps: int) -> Array:
        """Expected uses of each step."""
        ahead = self.uses * self.share
        out = np.bincount(self.left, self.uses - ahead, steps) + np.bincount(self.left + 1, ahead, steps)[:steps]
        return np.asarray(out, dtype=float)

    def mixed(self, log_value: Array) -> Array:
        """Logarithms of the kinds' values from those of the steps (rows)."""
        share = self.share.reshape(-1, *[1] * (log_value.ndim - 1))
        after = np.minimum(self.left + 1, len(log_value) - 1)
        with np.errstate(divide="ignore"):
            return logaddexp(np.log1p(-share) + log_value[self.left], np.log(share) + log_value[after])


class Losses(NamedTuple):
    """Laws of several steps on one grid: at ``multiple`` times ``step`` each (row) has the P-mass ``exp(log_mass)``."""

    multiple: Indices
    step: float
    log_mass: Array
    kinds: Kinds

    @property
    def loss(self) -> Array:
        """The losses themselves."""
        return np.asarray(self.multiple * self.step, dtype=float)

    def tilted(self, alpha: float) -> tuple[float, Array, Kinds]:
        """The total's cumulant at alpha, the steps' normalised tilted masses, and the kinds after the tilt."""
        x = self.log_mass + alpha * self.loss
        top = np.max(x, axis=1, keepdims=True)
        weight = np.exp(np.maximum(x - top, -300.0))  # denormal numbers are slow
        sums = np.sum(weight, axis=1, keepdims=True)
        left, share, uses = self.kinds
        log_moment = (top + np.log(sums))[:, 0]
        own, after = self.kinds.mixed(log_moment), np.minimum(left + 1, len(log_moment) - 1)
        gain = np.exp(np.where(share > 0.0, log_moment[after] - own, 0.0))
        return float(uses @ own), weight / sums, Kinds(left, share * gain, uses)


def sparse(bottom: int, top: int, dense: int, extra: Sequence[int] = ()) -> Indices:
    """Which multiples of the step make a grid from ``-bottom`` to ``top``.

    A cell of width w adds at most ``w^2 / 4`` to the variance of a loss in it: a thousandth of the loss is as good far
    from 0 as one step is near it.
    """
    last = max(bottom, top, dense + 1)
    far = np.ceil(dense * np.exp(np.arange(0.0, math.log(last / dense), 1.0 / dense)))
    out = distinct(np.concatenate([np.arange(dense), far, [bottom, top, *extra]]).astype(np.intp))
    return np.concatenate([-out[(out > 0) & (out <= bottom)][::-1], out[out <= top]])


def reaches(sources: Sequence[Guarantee], count: float, log_tail: float) -> tuple[float, float]:
    """How far below and above 0 the losses go but for ``e^log_tail`` in all uses together; inf beyond any grid."""
    x, far = np.geomspace(1e-9, 1e9, 400), np.zeros(2, dtype=int)
    for source in sources:
        tails = source.loss_tails(np.concatenate([-x, x]))
        inside = np.stack([tails.q_below[: x.size], tails.p_above[x.size :]]) > log_tail - math.log(count)
        far = np.maximum(far, np.count_nonzero(inside, axis=1))
    bottom, top = np.append(x, _INF)[far].tolist()
    return bottom, top


def _grid(sources: Sequence[Guarantee], count: float, step: float, log_tail: float) -> Indices:
    bottom, top = (math.ceil(x / step) for x in reaches(sources, count, log_tail))
    jumps = [math.floor(source.loss_jump / step) + i for source in sources for i in (0, 1)]
    return sparse(bottom, top, _DENSE if len(sources) <= _FEW else _DENSE_OF_MANY, jumps)


def _cell_masses(source: Guarantee, loss: Array) -> tuple[Array, Array]:
    """Log of the P- and Q-mass in each ``loss[i] < L <= loss[i+1]``, from whichever tails lose fewer digits."""
    t = source.loss_tails(loss)

    def between(above: Array, below: Array) -> Array:
        right = above[:-1] < below[1:]
        return logsubexp(np.where(right, above[:-1], below[1:]), np.where(right, above[1:], below[:-1]))

    return between(t.p_above, t.p_below), between(t.q_above, t.q_below)


def upwards(sources: Sequence[Guarantee], kinds: Kinds, step: float) -> Losses:
    """A grid of losses that dominates each step ("Connect the dots", Algorithm 1), but for ``e^LOG_TAIL`` beyond it."""
    index = _grid(sources, kinds.total, step, LOG_TAIL)
    loss = np.asarray(index * step, dtype=float)
    log_p, log_q = np.stack([_cell_masses(source, loss) for source in sources], axis=1)
    with np.errstate(invalid="ignore"):
        # a fraction w of the cell's P-mass goes to its right end so that the Q-mass is kept:
        # (1-w) e^-l + w e^-(l+width) = Q/P
        share = np.where(np.isneginf(log_p), 0.0, log_q - log_p + loss[:-1])
    share = np.clip(np.expm1(np.minimum(share, 0.0)) / np.expm1(-np.diff(loss)), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        log_mass = np.concatenate([np.log1p(-share) + log_p, np.full((len(sources), 1), -_INF)], axis=1)
        log_mass[:, 1:] = logaddexp(log_mass[:, 1:], np.log(share) + log_p)
    return Losses(index, step, log_mass, kinds)


def downwards(sources: Sequence[Guarantee], kinds: Kinds, step: float) -> Losses:
    """A grid of losses that is a post-processing of each step: its hockey-stick curve is nowhere larger.

    In each cell the step's curve is above its tangent at the cell's middle (or at its end, where the other is below 0
    there). At each order of the grid the lower of the tangents of the two cells beside it is taken: chords between
    these values are below the tangents, and so is their convex hull.
    """
    index = _grid(sources, kinds.total, step, -42.0)
    loss = np.asarray(index * step, dtype=float)
    zero = int(np.flatnonzero(index == 0)[0])
    log_mass = np.full((len(sources), index.size), -_INF)
    for row, source in zip(log_mass, sources, strict=True):
        up, down = ((t, _below(source, sign, t)) for sign, t in ((1.0, loss[zero:]), (-1.0, -loss[zero::-1])))
        losses, log_p, _ = least_masses(up, down)
        finite = np.isfinite(losses)
        row[np.searchsorted(index, np.rint(losses[finite] / step))] = log_p[finite]
    return Losses(index, step, log_mass, kinds)


def _below(source: Guarantee, sign: float, t: Array) -> Array:
    """Lower bounds on the log profile of (P, Q), sign 1, or (Q, P) at t, 0 at the last, by two events of each cell."""

    def event(at: Array) -> tuple[Array, Array]:
        tails = source.loss_tails(sign * at)
        return (tails.p_above, tails.q_above) if sign > 0.0 else (tails.q_below, tails.p_below)

    (log_p, log_q), (end_p, end_q) = event(0.5 * (t[1:] + t[:-1])), event(t[1:])
    at_middle = log_p >= t[1:] + log_q
    log_p, log_q = np.where(at_middle, log_p, end_p), np.where(at_middle, log_q, end_q)
    first, second = (logsubexp(log_p, np.minimum(at + log_q, log_p)) for at in (t[:-1], t[1:]))
    out = np.append(np.minimum(first, np.append(_INF, second[:-1])), -_INF)
    rounding = np.append(log_p, -_INF) - 33.0
    return logsubexp(np.maximum(out, rounding), rounding)
