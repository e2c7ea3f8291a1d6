"""Laws of the number of runs K.

Each law is one frozen dataclass. Bounds use it through ``F(u) = f'(1-u)`` (:meth:`Law.log_density`), ``f(1-u)``
(:meth:`Law.log_pgf`), the mean and ``P[K=0]``, f the probability generating function; utility and sampling use its
quantiles. Everything is in log space: gamma may be 1e-400 and a mean 1e12.

References
----------
Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022, Definition 1, Section 3.
"""

from __future__ import annotations

from hpcalc.laws.conditioned import AtLeastOne
from hpcalc.laws.families import Binomial, Fixed, Poisson, Threshold
from hpcalc.laws.helpers import finite_number
from hpcalc.laws.law import Law, RunCount
from hpcalc.laws.naming import DISTRIBUTIONS, make_law, parse_law
from hpcalc.laws.negative_binomial import TruncatedNegativeBinomial
from hpcalc.laws.tabulated import AtMost, FinitePmf

__all__ = [
    "DISTRIBUTIONS",
    "AtLeastOne",
    "AtMost",
    "Binomial",
    "FinitePmf",
    "Fixed",
    "Law",
    "Poisson",
    "RunCount",
    "Threshold",
    "TruncatedNegativeBinomial",
    "finite_number",
    "make_law",
    "parse_law",
]
