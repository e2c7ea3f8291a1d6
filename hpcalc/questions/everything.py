"""Several searches and what follows them, all released: one answer beside the cases' own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpcalc.answer import Answer
from hpcalc.conversion import Conversion, log_of_delta
from hpcalc.errors import ExitCode, NoFiniteBound
from hpcalc.questions.asked import Asked
from hpcalc.questions.release import Everything, everything, together
from hpcalc.questions.rows import curve_points, gate, head, many_orders, profile_points, upper
from hpcalc.questions.search_cost import BoundResult

__all__ = ["TotalResult", "total"]


@dataclass(frozen=True, eq=False, repr=False)
class TotalResult(Answer):
    """What several cases cost together, at one δ of everything."""

    parts: tuple[str, ...]
    delta: float
    whole: Everything
    answer: Conversion
    max_epsilon: float | None

    @property
    def epsilon(self) -> float:
        """ε of everything."""
        return self.answer.value

    @property
    def exit_code(self) -> ExitCode:
        """0, 1 over ``max_epsilon``, 3 without a finite bound."""
        return gate(self.epsilon, self.max_epsilon)

    def profile(self) -> list[dict[str, float | None]]:
        """Points of the privacy profile of everything, the answer among them."""
        return profile_points(self.whole.log_profile, self.epsilon)

    def rdp_export(self) -> list[dict[str, float | None]]:
        """The Rényi curve of everything; empty where none is known."""
        values = self.whole.rdp(many_orders())
        return [] if values is None else curve_points(many_orders(), values)

    def document(self) -> dict[str, Any]:
        """Plain data under the keys of a bound."""
        epsilon = upper(self.epsilon)
        out: dict[str, Any] = {
            **head("bound"),
            "base": {"cases": list(self.parts)},
            "delta": self.delta,
            "epsilon": epsilon,
            "method": "refined-region",
            "single_run": {"epsilon": None},
            "lower_bound": {"epsilon": None, "mechanism": None, "reason": "no mechanism of a total is known"},
            "bounds": [{"method": "refined-region", "epsilon": epsilon, "conversion": self.answer.rule}],
            "total": list(self.parts),
        }
        if self.max_epsilon is not None:
            out |= {"max_epsilon": self.max_epsilon, "within_budget": self.exit_code == ExitCode.OK}
        if epsilon is None:
            out["reason"] = "no bound is finite at this delta: give a larger delta"
        item = "Each case's list holds, and nothing but what the cases release is released."
        return {**out, "assumptions": [item], "warnings": []}


def total(
    results: Mapping[str, BoundResult], *, delta: float, conversion: str = "best", max_epsilon: float | None = None
) -> TotalResult:
    """What several answers of ``bound``, by name, cost together, where all of them are released.

    Raises
    ------
    NoFiniteBound
        If one of the answers is not finite.

    Examples
    --------
    >>> from hpcalc.guarantees import PureDP
    >>> from hpcalc.laws import Poisson
    >>> from hpcalc.questions import bound
    >>> one = bound(PureDP(0.1), Poisson(3.0), delta=1e-3)
    >>> one.epsilon < total({"a": one, "b": one}, delta=1e-3).epsilon < 2.0 * one.epsilon
    True
    """
    log_delta = log_of_delta(delta)
    parts = []
    for name, result in results.items():
        sources = [item.source for item in getattr(result, "bounds", ())]
        if not sources:
            raise NoFiniteBound(f"no finite total: {name} has no finite bound")
        # what a case releases beside one search stands behind its one bound already
        known = sources[0]
        parts.append(known if isinstance(known, Everything) else everything(sources, Asked(delta)))
    whole = together(parts, log_delta)
    return TotalResult(tuple(results), delta, whole, whole.epsilon(log_delta, conversion), max_epsilon)
