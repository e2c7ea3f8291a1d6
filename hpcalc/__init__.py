"""hpcalc: the differential-privacy cost of running a randomized algorithm K times and releasing the best run.

Everything public is importable from here and loaded on first use, so ``import hpcalc`` itself costs nothing.

Examples
--------
>>> import hpcalc
>>> answer = hpcalc.bound(hpcalc.ZCDP(0.1), hpcalc.Poisson(10.0), delta=1e-6)
>>> 4.2254 < answer.document()["epsilon"] < 4.24
True

References
----------
Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022 (arXiv 2110.03620).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcalc.answer import Answer as _Answer
from hpcalc.output import show as _show

__version__ = "0.2.0"
__date__ = "2026-11-28"  # of the release; printed in the man pages, which must not change from build to build

if TYPE_CHECKING:
    # isort: off
    # fmt: off
    from hpcalc.drawing import best_of_k, draw
    from hpcalc.errors import (DataFileError, ExitCode, HpcalcError, InvalidInput, MissingExtra, NoFiniteBound,
                               TargetOutOfReach)
    from hpcalc.guarantees import (ZCDP, ApproxDP, Gaussian, Guarantee, Laplace, ProfileCurve, PureDP, RDPCurve,
                                   compose, repeat)
    from hpcalc.guarantees.dpsgd import DPSGD
    from hpcalc.laws import (Adaptive, AnyRuns, AtLeastOne, AtMost, Binomial, Clamped, FinitePmf, Fixed, Geometric,
                             Law, Logarithmic, Poisson, RunCount, Threshold, TruncatedNegativeBinomial, make_law,
                             parse_law)
    from hpcalc.questions.comparing import compare
    from hpcalc.questions.conversions import convert
    from hpcalc.questions.measures import utility
    from hpcalc.questions.planning import plan
    from hpcalc.questions.search_cost import bound
    # fmt: on
    # isort: on

__all__ = [
    "DPSGD", "ZCDP", "Adaptive", "AnyRuns", "ApproxDP", "AtLeastOne", "AtMost", "Binomial", "Clamped", "DataFileError",
    "ExitCode", "FinitePmf", "Fixed", "Gaussian", "Geometric", "Guarantee", "HpcalcError", "InvalidInput", "Laplace",
    "Law", "Logarithmic", "MissingExtra", "NoFiniteBound", "Poisson", "ProfileCurve", "PureDP", "RDPCurve", "RunCount",
    "TargetOutOfReach", "Threshold", "TruncatedNegativeBinomial", "__date__", "__version__", "best_of_k", "bound",
    "compare", "compose", "convert", "draw", "make_law", "parse_law", "plan", "repeat", "utility",
]  # fmt: skip

#: The modules of public names whose rooms need not be loaded for them; all others are looked for in the next ones.
_OWN = {
    "bound": "questions.search_cost", "compare": "questions.comparing", "convert": "questions.conversions",
    "plan": "questions.planning", "utility": "questions.measures", "DPSGD": "guarantees.dpsgd",
    "best_of_k": "drawing", "draw": "drawing",
}  # fmt: skip
_HOME = ("errors", "laws", "guarantees")
# the one place that knows answers and how they are shown, so that no question imports what shows it
_Answer.show = staticmethod(_show)


def __getattr__(name: str) -> object:
    from importlib import import_module

    homes = (_OWN[name],) if name in _OWN else _HOME if name in __all__ else ()
    for module in (import_module(f"hpcalc.{home}") for home in homes):
        if hasattr(module, name):
            return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module 'hpcalc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
