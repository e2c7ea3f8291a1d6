"""Guarantees of ONE run of the base algorithm.

Each class answers three questions, whatever it was given as:

* ``rdp(orders)``: Rényi divergence bound at each order (Mironov 2017),
* ``log_profile(t)``: log of the privacy profile, the largest hockey-stick divergence of order ``exp(t)`` in either
  direction,
* ``region(u)``: the largest probability ``v`` that a neighbouring input may give to an event of probability ``u``
  (one minus the trade-off curve of Dong, Roth and Su 2019). It is concave, increasing and at least ``u``.

Every bound on a whole search needs nothing else, so a new kind of guarantee is one new class here.

References
----------
.. [1] I. Mironov, "Rényi differential privacy", CSF 2017.
.. [2] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS-B 84 (2022).
.. [3] C. L. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
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
