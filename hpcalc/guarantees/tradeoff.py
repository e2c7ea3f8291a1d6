"""The trade-off curve of one run, by points: how little of Q' an event of a given Q-mass can have.

For an event S let ``x = Q(S)`` and ``W(x)`` the least mass ``Q'(S)``. W is convex, ``W(x) <= x``, and
``V(u) = 1 - W(1 - u)`` is the privacy region of Kairouz, Oh and Viswanath: one minus the trade-off function of Dong,
Roth and Su. All that the exact price of a search needs are points of W, each with a line that nowhere lies above W.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcalc.logspace import Array, Prob

__all__ = ["Tradeoff"]


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """Points of W with supporting slopes, by increasing x.

    Attributes
    ----------
    x, w : Prob, shape (n,)
        Q- and Q'-mass of the n events; ``x`` runs from 0 to 1. Each mass is kept as the logarithms of itself and of its
        complement, so that both ends keep their digits.
    log_slope : ndarray, shape (n,)
        Logarithms of slopes, never decreasing: the line of slope ``exp(log_slope[i])`` through point i lies nowhere
        above W. At the first point the slope to its right, ``-inf`` where W starts flat; at the last point anything
        from the slope to its left on.
    attained : bool
        Whether one pair of laws has all the points: then the same points also make a mechanism, and a lower bound.
        Otherwise the points are only on the safe side (on or below W).
    """

    x: Prob
    w: Prob
    log_slope: Array
    attained: bool = False

    def reversed(self) -> Tradeoff:
        """The same pair of laws with Q and Q' exchanged: an event becomes its complement."""
        back = slice(None, None, -1)
        return Tradeoff(
            self.w.complement().take(back), self.x.complement().take(back), -self.log_slope[back], self.attained
        )
