"""What documents are made of: numbers that others can read, laws, the length of a search, points of curves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hpcalc import __version__
from hpcalc.answer import Answer
from hpcalc.errors import ExitCode, InvalidInput
from hpcalc.laws import RunCount
from hpcalc.logspace import Array, Upper, distinct

#: Orders at which the whole search's Rényi curve is listed unless others are asked for.
DEFAULT_ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
#: Orders at which a Rényi curve is exported: a hundred, dense enough for others to compose.
MANY_ORDERS = distinct(np.concatenate([DEFAULT_ORDERS, 1.0 + np.exp(np.arange(-3.0, math.log(4096.0), 0.1))]))


def head(command: str) -> dict[str, Any]:
    """The first keys of every document."""
    return {"hpcalc_version": __version__, "command": command}


def known(**fields: Any) -> dict[str, Any]:
    """Those of the fields that are not None."""
    return {key: value for key, value in fields.items() if value is not None}


def finite(value: float) -> float | None:
    """The number, None where it is infinite."""
    return float(value) if math.isfinite(value) else None


def upper(epsilon: float) -> Upper | None:
    """An upper bound for a document, None where it is infinite."""
    return Upper(epsilon) if math.isfinite(epsilon) else None


def quantile_or_none(runs: RunCount, p: float) -> int | float | None:
    """Quantile of K; a float where it is too large for others to read as a whole number, None beyond 1e300."""
    try:
        count = runs.quantile(p)
    except InvalidInput:
        return None
    return count if count <= 2**53 else float(count)


def law_document(runs: RunCount) -> dict[str, Any]:
    """A law of K under the published keys: its name, its parameters, its mean, and the chance of no run."""
    return {"dist": runs.name, **runs.parameters(), "mean": finite(runs.mean), "prob_zero": runs.prob_zero}


def length_fields(runs: RunCount, *percents: int) -> dict[str, Any]:
    """How long a search takes: the mean of K, quantiles of it, and the chance of no run."""
    late = {f"p{percent}_runs": quantile_or_none(runs, percent / 100.0) for percent in percents}
    return {"mean_runs": finite(runs.mean), **late, "prob_zero": runs.prob_zero}


def curve_points(orders: Array, values: Array) -> list[dict[str, float | None]]:
    """Points of a Rényi curve, where it is finite."""
    pairs = zip(orders.tolist(), values.tolist(), strict=True)
    return [{"order": order, "epsilon": Upper(value)} for order, value in pairs if math.isfinite(value)]


def delta_fields(log_delta: float) -> dict[str, float | None]:
    """``delta`` and ``log10_delta``; a δ below 1e-308 is None beside its logarithm."""
    log10 = log_delta / math.log(10.0)
    delta = Upper(math.exp(log_delta)) if log10 > -308.0 else None
    return {"delta": 0.0 if log_delta == -math.inf else delta, "log10_delta": upper(log10)}


class Priced(Answer):
    """An answer with an ε and, for some, a limit and a privacy profile."""

    max_epsilon: float | None = None

    @property
    def epsilon(self) -> float:
        """ε; inf where none is finite."""
        raise NotImplementedError

    @property
    def exit_code(self) -> ExitCode:
        if not self.epsilon < math.inf:
            return ExitCode.NO_FINITE_BOUND
        over = self.max_epsilon is not None and self.epsilon > self.max_epsilon
        return ExitCode.OVER_BUDGET if over else ExitCode.OK

    def limit(self) -> dict[str, Any]:
        """The limit, and whether it is met, under the published keys."""
        met = self.exit_code == ExitCode.OK
        return {} if self.max_epsilon is None else {"max_epsilon": self.max_epsilon, "within_budget": met}

    def log_profile(self, epsilons: Array) -> Array:
        """Log of δ at each ε."""
        raise NotImplementedError

    def profile(self) -> list[dict[str, float | None]]:
        """Points of the privacy profile: at 51 values of ε from 0 to well beyond the answer, and at that."""
        answered = math.isfinite(self.epsilon) and self.epsilon > 0.0
        at = np.linspace(0.0, 3.0 * self.epsilon if answered else 10.0, 51)
        at = distinct(np.append(at, self.epsilon)) if answered else at  # a reader finds the answer again
        points = zip(at.tolist(), self.log_profile(at).tolist(), strict=True)
        return [{"epsilon": epsilon, **delta_fields(log_delta)} for epsilon, log_delta in points]
