"""Several searches and what follows them, all released: one answer beside the cases' own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpcalc import __version__
from hpcalc.answer import Answer
from hpcalc.conversion import Conversion, log_of_delta
from hpcalc.errors import ExitCode, NoFiniteBound
from hpcalc.logspace import Upper
from hpcalc.questions import release
from hpcalc.questions.search_cost import BoundResult, many_orders, points_of

__all__ = ["TotalResult", "total"]


@dataclass(frozen=True, eq=False, repr=False)
class TotalResult(Answer):
    """What several cases cost together.

    Attributes
    ----------
    parts : tuple of str
        The cases' names.
    delta : float
        δ of everything.
    whole : Everything
        What is known of it.
    answer : Conversion
        ε, and the rule that gave it.
    max_epsilon : float or None
        The gate.
    """

    parts: tuple[str, ...]
    delta: float
    whole: release.Everything
    answer: Conversion
    max_epsilon: float | None

    @property
    def epsilon(self) -> float:
        """ε of everything."""
        return self.answer.value

    @property
    def exit_code(self) -> ExitCode:
        """0, 1 over ``max_epsilon``, 3 without a finite bound."""
        if not self.epsilon < math.inf:
            return ExitCode.NO_FINITE_BOUND
        over = self.max_epsilon is not None and self.epsilon > self.max_epsilon
        return ExitCode.OVER_BUDGET if over else ExitCode.OK

    def profile(self) -> list[dict[str, float | None]]:
        """Points of the privacy profile of everything, the answer among them."""
        return points_of(self.whole.log_profile, self.epsilon)

    def rdp_export(self) -> list[dict[str, float | None]]:
        """The Rényi curve of everything; empty where none is known."""
        orders = many_orders()
        pairs = zip(orders.tolist(), self.whole.rdp(orders).tolist(), strict=True)
        return [{"order": order, "epsilon": Upper(value)} for order, value in pairs if math.isfinite(value)]

    def document(self) -> dict[str, Any]:
        """Plain data under the keys of a bound."""
        epsilon = Upper(self.epsilon) if self.epsilon < math.inf else None
        out: dict[str, Any] = {
            "hpcalc_version": __version__,
            "command": "bound",
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
    results: Mapping[str, BoundResult],
    *,
    delta: float,
    conversion: str = "best",
    max_epsilon: float | None = None,
) -> TotalResult:
    """What several answers of ``bound`` cost together, where all of them are released.

    Parameters
    ----------
    results : mapping from str to BoundResult
        Answers by name.
    delta : float
        δ of everything.
    conversion : str
        Rule for Rényi curves.
    max_epsilon : float, optional
        A limit; the result's ``exit_code`` says whether it is met.

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
        whole = sources[0].whole if isinstance(sources[0], release.WholeRelease) else None
        parts.append(whole if whole is not None else release.released(sources, log_delta))
    everything = release.total(parts, log_delta)
    return TotalResult(tuple(results), delta, everything, everything.epsilon(conversion), max_epsilon)
