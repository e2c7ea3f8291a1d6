"""Laws of the number of runs K.

Each law is one frozen dataclass. Bounds use it through ``F(u) = f'(1-u)`` (:meth:`Law.log_density`), ``f(1-u)``
(:meth:`Law.success`), the mean and ``P[K=0]``, f the probability generating function; utility and sampling use its
quantiles. Everything is in log space: gamma may be 1e-400 and a mean 1e12. A law is one class here and one row of
:data:`hpcalc.catalog.LAWS`. This room imports solve, logspace, files, errors and catalog only, and never SciPy: a draw,
a comparison and a plan need its quantiles at a prompt, and SciPy has no incomplete beta function at eta <= 0.

References
----------
Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022, Definition 1, Section 3.
"""

from __future__ import annotations

from hpcalc.laws.derived import Adaptive, AnyRuns, AtLeastOne, AtMost, BestOfK, Clamped, Threshold, modified
from hpcalc.laws.families import Binomial, Fixed, Geometric, Logarithmic, Poisson, TruncatedNegativeBinomial
from hpcalc.laws.family import make_law, parse_law
from hpcalc.laws.law import Law, RunCount, checked_law
from hpcalc.laws.tabulated import FinitePmf

__all__ = [
    "Adaptive", "AnyRuns", "AtLeastOne", "AtMost", "BestOfK", "Binomial", "Clamped", "FinitePmf", "Fixed", "Geometric",
    "Law", "Logarithmic", "Poisson", "RunCount", "Threshold", "TruncatedNegativeBinomial", "checked_law",
    "make_law", "modified", "parse_law",
]  # fmt: skip
