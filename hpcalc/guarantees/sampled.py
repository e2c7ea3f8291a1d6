"""A search on a Poisson sample of the records, then a final run on the rest or on all of them.

The sample is fresh and secret, taken at a rate fixed in advance; the search's runs and scores see the sample only.
Neighbouring data sets differ by one record, direction 0 of every pair being "with the record" against "without".

Given which of the other records were sampled, the record is in the sample with probability ``rate``. Its influence on
what is released is then the likelihood ratio ``rate r_search + (1 - rate) r_final`` when the final run sees the rest,
and ``(1 - rate) + rate r_search`` for the search's answer alone. Hockey-stick divergences in either direction are
expectations of convex functions of that ratio, and domination is the convex order of ratios, so dominating pairs may
stand for the search and for the final run, however the latter depends on the search's answer.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from hpcalc.guarantees.pair import DominatingPair
from hpcalc.guarantees.search import FEW, FLOOR, profile_pair, sum_in_rows
from hpcalc.logspace import Array, logaddexp, logsubexp, logsumexp


def on_a_sample(search: DominatingPair, rate: float) -> DominatingPair:
    """The search on a sample of the records at ``rate``, 0 < rate < 1."""
    log_in, log_out = math.log(rate), math.log1p(-rate)
    finite = np.isfinite(search.log_q)
    loss = logaddexp(log_out, log_in + search.loss)  # an infinite loss stays one, with less mass
    log_p = np.where(finite, search.log_q + np.where(finite, loss, 0.0), log_in + search.log_p)
    return DominatingPair(loss, log_p, search.log_q)


def then_on_the_rest(
    search: DominatingPair, final: DominatingPair, rate: float, floor: float = FLOOR
) -> DominatingPair:
    """The search on a sample at ``rate``, and the final run on the records that are not in it, down to ``floor``."""
    log_in, log_out = math.log(rate), math.log1p(-rate)
    if search.loss.size * final.loss.size <= FEW:
        log_q = np.add.outer(search.log_q, final.log_q).ravel()
        from_sample = log_in + np.add.outer(search.log_p, final.log_q).ravel()
        return DominatingPair.from_masses(
            logaddexp(from_sample, log_out + np.add.outer(search.log_q, final.log_p).ravel()), log_q
        )
    some = np.isfinite(final.log_q)  # outcomes with r_final < inf, by their ratios; the others are added apart
    log_q, share = final.log_q[some], log_out + final.loss[some]
    infinite = log_out + logsumexp(np.append(final.log_p[~some], -math.inf))

    def forward(row: Array) -> Array:
        """``E[(rate r_search + (1-rate) r_final - e^t)_+]``, by outcomes of the final run."""
        above = row >= share  # then only large r_search count
        gap = np.where(above, logsubexp(np.maximum(row, share), np.minimum(share, row)), 0.0) - log_in
        # else all do: rate + ((1-rate) r_final - e^t)
        everything = logaddexp(log_in, logsubexp(np.maximum(share, row), row))
        return np.asarray(log_q + np.where(above, log_in + search.log_profile_of(0, gap), everything), dtype=float)

    def backward(row: Array) -> Array:
        """``E[(1 - e^t (rate r_search + (1-rate) r_final))_+]``."""
        below = share < -row  # the others give nothing
        log_gap = np.where(below, logsubexp(np.maximum(-row, share), share), 0.0)
        missing = log_gap + row + search.log_profile_of(1, log_in - log_gap)
        return np.asarray(np.where(below, log_q + missing, -math.inf), dtype=float)

    def profile(t: Array) -> Array:
        return logaddexp(sum_in_rows(t, forward, log_q.size), infinite)

    return profile_pair((profile, partial(sum_in_rows, terms=backward, width=log_q.size)), floor=floor)
