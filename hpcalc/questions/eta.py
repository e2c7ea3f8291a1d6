"""The best member of the truncated negative binomial family, its limits included.

The family runs from eta near -1 (mostly one run, now and then very many) over the logarithmic and the geometric law to
large eta, where it becomes Poisson given K >= 1; past infinity, at eta = -n, lie the binomial laws, and n = E[K] is a
fixed number of runs. What a law is worth at a target is smooth along this path but may have more than one peak, so the
path is sampled first and only then followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hpcalc.laws.family import LawFamily, family_of
from hpcalc.logspace import Array, round_down
from hpcalc.solve import log_minimum

__all__ = ["best_of_family"]

_ETA_STEP = 4e-3  # of log(1 + eta); a knob of speed, like the next
_SIZE_STEP = 0.01  # of log n


def best_of_family(worth: Callable[[LawFamily], float], poisson_mean: float | None) -> LawFamily:
    """The law family whose solved law is worth most.

    Parameters
    ----------
    worth : callable
        Worth of a family's law once its scale is solved for; -inf if the target is out of its reach.
    poisson_mean : float or None
        Mean that a Poisson law has at the target: sizes of binomials are sought around it.
    """
    found = {family: worth(family) for family in (family_of("poisson"), family_of("poisson:at-least-one"))}

    def values(families: list[LawFamily]) -> Array:
        for family in families:
            if family not in found:
                found[family] = worth(family)
        return np.array([-found[family] for family in families])

    # log(1 + eta) from eta = -0.95 to 1000, eta with four significant digits
    log_minimum(lambda x: values([_negative_binomial(float(each)) for each in x]), np.arange(-3.0, 7.0, 0.6),
                accuracy=_ETA_STEP)  # fmt: skip
    if poisson_mean is not None:
        least = math.log(max(math.ceil(poisson_mean), 1))
        log_minimum(
            lambda x: values([family_of({"dist": "binomial", "n": math.ceil(math.exp(each))}) for each in x]),
            least + np.arange(0.02, 3.4, 0.4),
            accuracy=_SIZE_STEP,
        )
    return max(found, key=found.__getitem__)


def _negative_binomial(x: float) -> LawFamily:
    return family_of({"dist": "tnb", "eta": round_down(math.expm1(x), 4)})
