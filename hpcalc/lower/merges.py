"""Orders of a pair's outcomes that merge the largest losses with the most negative ones."""

from __future__ import annotations

import math

import numpy as np

from hpcalc.laws import Law
from hpcalc.logspace import Array, Indices, Mask, Prob, distinct
from hpcalc.lower.evaluate import log_running_sum, solve_pair

__all__ = ["Merges", "largest_ratio", "search_merges"]

# Groups of outcomes in the first, coarse search for an order.
_GROUPS = 60
# Values of paths that differ by no more are equal but for rounding.
_SAME = 1e-11


class Merges:
    """The outcomes in a few groups, ranked from their two ends: next comes the least loss left, or the largest left.

    Two neighbouring outcomes of which one gains (``dA > e^eps dA'``) are best ranked by whether the product of their
    ratios ``dQ'/dQ`` exceeds a threshold of the rank; so a good order is a merge of the outcomes that gain, the largest
    losses first, with the others, the most negative losses first. A merge is a path over the pairs (i, j) of numbers
    of groups taken from either end, and the gain of a step depends on nothing but where it is taken: the best path
    follows by dynamic programming. Order (a) is a path of a single turn.

    Parameters
    ----------
    law : Law
        Law of K.
    pair : tuple of ndarray
        ``(log q, log q')``, by increasing loss.
    edges : ndarray of int
        Where the groups begin, and the number of outcomes.
    log_delta : float
        Gains are counted in units of δ.
    """

    def __init__(self, law: Law, pair: tuple[Array, Array], edges: Indices, log_delta: float) -> None:
        self.edges = edges
        self._gains = [_step_gains(law, np.logaddexp.reduceat(mass, edges[:-1])) - log_delta for mass in pair]

    def best(self, epsilon: float) -> Indices:
        """Groups in the order that makes the divergence at ε largest."""
        taken, given = (np.exp(np.minimum(part, 600.0)) for part in (self._gains[0], self._gains[1] + epsilon))
        gain = np.maximum(taken - given, 0.0)
        m = gain.shape[1]
        along = np.concatenate([np.zeros((m + 1, 1)), np.cumsum(gain, axis=1)], axis=1)
        value = along.copy()
        for i in range(1, m + 1):
            value[i] += np.maximum.accumulate(value[i - 1] - along[i])
        every = np.arange(m + 1)
        ends = value[every, m - every]
        # of paths that are equal but for rounding always the same one
        i = int(np.argmax(ends >= np.max(ends) * (1.0 - _SAME)))
        j = m - i
        order = np.empty(m, dtype=np.intp)
        for k in range(m - 1, -1, -1):
            if j > 0 and (i == 0 or value[i, j - 1] + gain[i, j - 1] > value[i - 1, j] * (1.0 + _SAME)):
                j -= 1
                order[k] = m - 1 - j
            else:
                i -= 1
                order[k] = i
        return order

    @staticmethod
    def outcomes(order: Indices, edges: Indices) -> Indices:
        """The outcomes between the edges of the groups in order."""
        pairs = zip(order.tolist(), _from_low(order).tolist(), strict=True)
        return np.concatenate([np.arange(edges[g], edges[g + 1])[:: 1 if low else -1] for g, low in pairs])

    def refined(self, order: Indices, limit: int) -> Indices:
        """New edges: groups beside a turn of the path are split, others joined in pairs."""
        low = _from_low(order)
        turn = np.flatnonzero(low[1:] != low[:-1])
        beside = np.zeros(order.size, dtype=bool)
        beside[order[turn]] = beside[order[turn + 1]] = True
        pieces = min(max(1 + (limit - order.size) // max(int(np.sum(beside)), 1), 2), 4)
        left, width = self.edges[:-1][beside], np.diff(self.edges)[beside]
        fresh = left + width * np.arange(1, pieces)[:, None] // pieces
        joined = ~(beside[:-1] | beside[1:]) & (np.arange(1, order.size) % 2 == 1)
        kept = self.edges[np.concatenate([[True], ~joined, [True]])]
        return distinct(np.concatenate([kept, fresh.ravel()]))


def _from_low(order: Indices) -> Mask:
    """Which of the groups, in a merge of two ends, were taken from the low end."""
    # the low end has advanced by as many groups as were taken below the groups still to come
    return np.asarray(order < np.append(np.minimum.accumulate(order[::-1])[::-1][1:], order.size), dtype=bool)


def _step_gains(law: Law, log_mass: Array) -> Array:
    """Log of the chance that the best run falls in the next group from the top, after i and j groups of either end."""
    m = log_mass.size
    i, j = np.nonzero(np.add.outer(np.arange(m), np.arange(m)) < m)
    # what lies between keeps its digits where little is left
    inner = np.where(np.arange(m)[:, None] <= np.arange(m), log_mass, -np.inf)
    between = np.full((m + 1, m + 1), -np.inf)
    between[:m, 1:] = np.logaddexp.accumulate(inner, axis=1)
    low = between[0]
    high = np.concatenate([[-np.inf], np.logaddexp.accumulate(log_mass[::-1])])

    def rank(i: Indices, j: Indices) -> Prob:
        return Prob(np.minimum(np.logaddexp(low[i], high[j]), 0.0), np.minimum(between[i, m - j], 0.0))

    width = log_mass[m - 1 - j]
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = law.log_block(rank(i, j), rank(i, j + 1), width)
    out = np.full((m + 1, m), -np.inf)
    out[i, j] = np.where(np.isneginf(width), -np.inf, chance)
    return out


def search_merges(law: Law, pair: tuple[Array, Array], log_delta: float, floor: float) -> float:
    """Best ε over merges, from ``floor`` on: the order that is best at the ε of the last, on finer and finer groups."""
    starts = np.arange(0, pair[0].size, max(pair[0].size // 1000, 1))  # a thousand outcomes tell where to turn
    few = np.logaddexp.reduceat(pair[0], starts), np.logaddexp.reduceat(pair[1], starts)
    edges = distinct(np.linspace(0.0, starts.size, _GROUPS + 1).astype(np.intp))
    best = at = floor
    for level in range(6):
        merges, before = Merges(law, few, edges, log_delta), at
        for step in range(5):
            order = merges.best(at)
            value = solve_pair(law, *few, merges.outcomes(order, edges), log_delta)
            # coarse groups may reach less than the floor: then they start from what they reach
            improved = value > at * (1.0 + 2e-5) or (step == 0 and value < at)
            at, best = value, max(best, value)
            if not improved or best == math.inf:
                break
        finer = merges.refined(order, 2 * _GROUPS)
        if best == math.inf or (level >= 2 and at <= before * (1.0 + 1e-4)) or finer.size > 3 * _GROUPS:
            break
        edges = finer
    ends = np.append(starts, pair[0].size)[merges.edges]
    return max(best, solve_pair(law, *pair, merges.outcomes(order, ends), log_delta))


def largest_ratio(law: Law, log_q: Array, log_p: Array) -> float:
    """Largest loss of the search where the outcome of largest loss is ranked below some of the most negative ones."""
    chances = []
    for mass in (log_q, log_p):
        below, above = log_running_sum(mass[:-1]), log_running_sum(mass[:-1][::-1])[::-1]
        lo = Prob(np.minimum(below, 0.0), np.minimum(np.logaddexp(above, mass[-1]), 0.0))
        hi = Prob(np.minimum(np.logaddexp(below, mass[-1]), 0.0), np.minimum(above, 0.0))
        with np.errstate(divide="ignore"):
            chances.append(law.log_block(lo, hi, np.full(below.size, mass[-1])))
    return float(np.max(chances[0] - chances[1]))
