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

import sys
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__date__ = "2026-11-28"  # of the release; printed in the man pages, which must not change from build to build

if TYPE_CHECKING:
    from hpcalc.analysis import bound, compare, convert, plan, utility
    from hpcalc.base import (
        ZCDP,
        ApproxDP,
        Base,
        Gaussian,
        Laplace,
        ProfileCurve,
        PureDP,
        RDPCurve,
        compose,
        repeat,
    )
    from hpcalc.dpsgd import DPSGD
    from hpcalc.errors import (
        DataFileError,
        ExitCode,
        HpcalcError,
        InvalidInput,
        MissingExtra,
        NoFiniteBound,
        TargetOutOfReach,
    )
    from hpcalc.runs import (
        AtLeastOne,
        AtMost,
        Binomial,
        FinitePmf,
        Fixed,
        Law,
        Poisson,
        RunCount,
        Threshold,
        TruncatedNegativeBinomial,
        make_law,
        parse_law,
    )

__all__ = [
    "DPSGD",
    "ZCDP",
    "ApproxDP",
    "AtLeastOne",
    "AtMost",
    "Base",
    "Binomial",
    "DataFileError",
    "ExitCode",
    "FinitePmf",
    "Fixed",
    "Gaussian",
    "HpcalcError",
    "InvalidInput",
    "Laplace",
    "Law",
    "MissingExtra",
    "NoFiniteBound",
    "Poisson",
    "ProfileCurve",
    "PureDP",
    "RDPCurve",
    "RunCount",
    "TargetOutOfReach",
    "Threshold",
    "TruncatedNegativeBinomial",
    "__date__",
    "__version__",
    "bound",
    "compare",
    "compose",
    "convert",
    "make_law",
    "parse_law",
    "plan",
    "repeat",
    "utility",
]

_HOME = {
    "analysis": ("bound", "compare", "convert", "plan", "utility"),
    "base": (
        "ApproxDP",
        "Base",
        "Gaussian",
        "Laplace",
        "ProfileCurve",
        "PureDP",
        "RDPCurve",
        "ZCDP",
        "compose",
        "repeat",
    ),
    "dpsgd": ("DPSGD",),
    "errors": (
        "DataFileError",
        "ExitCode",
        "HpcalcError",
        "InvalidInput",
        "MissingExtra",
        "NoFiniteBound",
        "TargetOutOfReach",
    ),
    "runs": (
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
        "make_law",
        "parse_law",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'hpcalc' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"hpcalc.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """``hpcalc.convert`` and ``hpcalc.utility`` are functions; the modules of those names must not take their place.

    Importing a submodule binds it as an attribute of its package, which here would hide the public function of the
    same name. The modules stay reachable as ``from hpcalc.convert import ...``.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
