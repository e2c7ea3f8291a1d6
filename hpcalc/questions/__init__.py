"""The five questions: evaluates every bound that applies, picks the smallest valid one, returns plain results.

Each result is a frozen dataclass with ``document()`` (plain data under the published keys) and ``exit_code``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcalc.questions.comparing import compare
    from hpcalc.questions.conversions import convert
    from hpcalc.questions.planning import plan
    from hpcalc.questions.search_cost import bound
    from hpcalc.questions.usefulness import utility

__all__ = ["bound", "compare", "convert", "plan", "utility"]

_HOME = {
    "bound": "search_cost",
    "compare": "comparing",
    "convert": "conversions",
    "plan": "planning",
    "utility": "usefulness",
}


def __getattr__(name: str) -> object:
    # A question loads its own machinery only: start-up time is a promise.
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"hpcalc.questions.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
