"""The five questions: evaluates every bound that applies, picks the smallest valid one, returns plain results.

Each result is a frozen dataclass with ``document()`` (plain data under the published keys) and ``exit_code``.
"""

from __future__ import annotations

from typing import Any

from hpcalc.catalog import load

_HOME = {
    "bound": "search_cost", "compare": "comparing", "compare_selection": "selection", "convert": "conversions",
    "plan": "planning", "total": "release", "utility": "measures",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:  # a question loads its own machinery only: start-up time is a promise
        return load(f"hpcalc.questions.{_HOME[name]}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
