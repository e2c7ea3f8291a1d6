"""The five questions: evaluates every bound that applies, picks the smallest valid one, returns plain results.

Each result is a frozen dataclass with ``document()`` (plain data under the published keys) and ``exit_code``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcalc.catalog import load

if TYPE_CHECKING:
    from hpcalc.questions.comparing import compare
    from hpcalc.questions.conversions import convert
    from hpcalc.questions.measures import utility
    from hpcalc.questions.planning import plan
    from hpcalc.questions.search_cost import bound

__all__ = ["bound", "compare", "convert", "plan", "utility"]

_HOME = {
    "bound": "search_cost", "compare": "comparing", "convert": "conversions", "plan": "planning", "utility": "measures",
}  # fmt: skip


def __getattr__(name: str) -> object:
    # A question loads its own machinery only: start-up time is a promise.
    if name in _HOME:
        return load(f"hpcalc.questions.{_HOME[name]}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
