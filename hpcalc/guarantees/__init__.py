"""Guarantees of ONE run of the base algorithm.

Each class answers three questions, whatever it was given as, and every bound on a whole search needs nothing else:

* ``rdp(orders)``: Rényi divergence bound at each order (I. Mironov, "Rényi differential privacy", CSF 2017),
* ``log_profile(t)``: log of the privacy profile, the largest hockey-stick divergence of order ``exp(t)`` in either
  direction,
* ``region(u)``: the largest probability ``v`` that a neighbouring input may give to an event of probability ``u``, one
  minus the trade-off curve (J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS-B 84, 2022).
"""

from __future__ import annotations

from hpcalc.guarantees.composition import ApproxDP, Composition, compose, repeat
from hpcalc.guarantees.curves import ZCDP, CurveBase, ProfileCurve, RDPCurve, cks_log_delta
from hpcalc.guarantees.guarantee import Guarantee, checked_guarantee, checked_orders
from hpcalc.guarantees.mechanisms import Gaussian, Laplace, PureDP

__all__ = [
    "ZCDP", "ApproxDP", "Composition", "CurveBase", "Gaussian", "Guarantee", "Laplace", "ProfileCurve", "PureDP",
    "RDPCurve", "checked_guarantee", "checked_orders", "cks_log_delta", "compose", "repeat",
]  # fmt: skip
