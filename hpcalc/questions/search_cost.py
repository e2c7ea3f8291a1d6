"""``bound``: what the whole search costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hpcalc import __version__
from hpcalc.bounds import paper
from hpcalc.bounds.refined import ProfileBound, RefinedRDP, conditional_log_profile, refined_pure
from hpcalc.conversion import (
    Conversion,
    Curve,
    delta_from_rdp,
    epsilon_at,
    epsilon_from_profile,
    epsilon_from_rdp,
    log_of_delta,
)
from hpcalc.errors import ExitCode, InvalidInput, NoFiniteBound
from hpcalc.guarantees import ZCDP, Gaussian, Guarantee, repeat
from hpcalc.laws import Law, RunCount, Threshold
from hpcalc.logspace import Array, distinct, log1mexp, logsubexp
from hpcalc.lower import LowerBound, conditional_lower_bound, lower_bound
from hpcalc.questions.assumptions import assumptions, warnings_of
from hpcalc.questions.methods import Evaluated, Question, evaluate, wanted

__all__ = ["BoundResult", "bound"]

#: Orders at which the whole search's Rényi curve is listed unless others are asked for.
DEFAULT_ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
_PREFERENCE = ("refined-pure", "composition", "refined-conditional", "refined-profile", "refined-rdp", "corollary-4")


@dataclass(frozen=True, eq=False)
class BoundResult:
    """Cost of the whole search, beside one run's.

    Attributes
    ----------
    base, runs : Guarantee, RunCount
        What was asked.
    delta : float
        δ.
    bounds : tuple of Evaluated
        Every bound that was evaluated, the paper's first.
    lower : LowerBound or None
        What no analysis under the same assumptions can report less than.
    max_epsilon : float or None
        The gate.
    """

    base: Guarantee
    runs: RunCount
    delta: float
    bounds: tuple[Evaluated, ...]
    lower: LowerBound | None
    question: Question = field(repr=False)
    method: str = "best"
    orders: tuple[float, ...] = DEFAULT_ORDERS
    max_epsilon: float | None = None
    explain: bool = False
    reason: str | None = None

    @cached_property
    def single_run(self) -> Conversion | None:
        """ε of one run (None if it has none at this δ)."""
        if not self.base.finite:
            return None
        try:
            return epsilon_at(self.base, self.question.log_delta, self.question.rule)
        except NoFiniteBound:
            return None

    @cached_property
    def composition(self) -> tuple[int, float]:
        """Runs and ε of naive composition of the mean number of runs."""
        return _composition(self.base, self.runs, self.question.log_delta, self.question.rule)

    @cached_property
    def best(self) -> Evaluated | None:
        """The smallest valid bound; None if none is finite."""
        finite = [bound for bound in self.bounds if bound.epsilon < math.inf]
        if not finite:
            return None
        least = min(bound.epsilon for bound in finite)
        # of bounds equal but for rounding, name the one that needs the least machinery
        level = [bound for bound in finite if bound.epsilon <= least * (1.0 + 1e-9)]
        for name in _PREFERENCE:
            level = [bound for bound in level if bound.method == name] or level
        return level[0]

    @property
    def epsilon(self) -> float:
        """ε of the whole search (inf if no bound is finite)."""
        return self.best.epsilon if self.best is not None else math.inf

    @property
    def exit_code(self) -> ExitCode:
        """0, 1 over ``max_epsilon``, 3 without a finite bound."""
        if self.best is None:
            return ExitCode.NO_FINITE_BOUND
        over = self.max_epsilon is not None and not self.epsilon <= self.max_epsilon
        return ExitCode.OVER_BUDGET if over else ExitCode.OK

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about this answer."""
        lower = self.lower if self.method == "best" else None
        return tuple(warnings_of(self.base, self.runs, self.delta, self.best, lower))

    def rdp_curve(self, orders: Array | None = None) -> list[dict[str, float | None]]:
        """Rényi curve of the whole search: the smallest of the curves evaluated, at each order.

        Empty where part of the guarantee is an (ε, δ) one: then no Rényi curve exists.
        """
        asked = np.array(self.orders if orders is None else orders, dtype=float)
        value = self._rdp(asked)
        return [
            {"order": float(order), "epsilon": float(eps) if math.isfinite(eps) else None}
            for order, eps in zip(asked, value, strict=True)
            if math.isfinite(order) or math.isfinite(eps)
        ]

    def rdp_export(self) -> list[dict[str, float | None]]:
        """The Rényi curve for others to compose: at the orders asked for, else at a hundred and the best one."""
        if self.question.orders is not None:
            return self.rdp_curve()
        best = self.best.order if self.best is not None and self.best.order is not None else 2.0
        dense = 1.0 + np.exp(np.arange(-3.0, math.log(4096.0), 0.1))
        return self.rdp_curve(distinct(np.concatenate([DEFAULT_ORDERS, dense, [best, math.inf]])))

    def _rdp(self, asked: Array) -> Array:
        if self.base.slack > 0.0 or not self.base.finite:
            return np.full(asked.shape, np.inf)
        include = wanted(self.method)
        grid = distinct(np.concatenate([asked, _ladder(asked)]))
        out = np.full(grid.shape, np.inf)
        for curve in paper.curves(self.base, self.runs, orders=None):
            if include(curve.method):
                usable = np.isfinite(grid)
                value = np.full(grid.shape, curve.pure_epsilon)
                value[usable] = np.minimum(curve.rdp(grid[usable]), curve.pure_epsilon)
                out = np.fmin(out, value)
        if isinstance(self.runs, Law) and include("refined-rdp"):
            refined = RefinedRDP(self.base, self.runs, self.question.curve)
            listed = asked[np.isfinite(asked)]
            out = np.fmin(out, (refined.sharpen(listed, 1e-4) if listed.size else refined).rdp(grid))
        if isinstance(self.runs, Law) and include("refined-pure") and self.base.pure_epsilon < math.inf:
            out = np.fmin(out, refined_pure(self.base.pure_epsilon, self.runs))
        # Rényi divergence never decreases with the order (Remark 5)
        out = np.minimum.accumulate(out[::-1])[::-1]
        return np.asarray(out[np.searchsorted(grid, asked)], dtype=float)

    def profile(self, epsilons: Array | None = None) -> list[dict[str, float | None]]:
        """Privacy profile of the whole search: the smallest δ of the evaluated methods at each ε.

        Parameters
        ----------
        epsilons : ndarray, optional
            Default: 100 values from 0 to well beyond the ε at this δ, and that ε.
        """
        if epsilons is None:
            some = math.isfinite(self.epsilon) and self.epsilon > 0.0
            epsilons = np.linspace(0.0, 3.0 * self.epsilon if some else 10.0, 101)
            if some:  # the answer itself, so that a reader of the points finds it again
                epsilons = distinct(np.append(epsilons, self.epsilon))
        log_delta = self.log_profile(np.asarray(epsilons, dtype=float))
        out: list[dict[str, float | None]] = []
        for eps, log_d in zip(epsilons.tolist(), log_delta.tolist(), strict=True):
            out.append({"epsilon": eps, **delta_fields(log_d)})
        return out

    def log_profile(self, epsilons: Array) -> Array:
        """Log of δ of the whole search at each ε (the smallest over the methods in use)."""
        include = wanted(self.method)
        out = np.zeros(epsilons.shape)
        base, runs = self.base, self.runs
        if isinstance(runs, Threshold):
            if include("refined-conditional"):
                out = np.minimum(out, conditional_log_profile(base, runs.accept, epsilons))
        elif isinstance(runs, Law):
            if include("refined-profile"):
                for source in (ProfileBound(base, runs, self.question.curve), *(item.source for item in self.bounds)):
                    if source is not None:
                        out = np.minimum(out, source.log_delta(epsilons))
            if include("refined-pure") and base.pure_epsilon < math.inf:
                out = np.where(epsilons >= refined_pure(base.pure_epsilon, runs), -np.inf, out)
            if include("refined-rdp") and base.slack == 0.0:
                renyi = RefinedRDP(base, runs, self.question.curve)
                grid = _ladder(np.empty(0)) if base.orders is None else base.orders[np.isfinite(base.orders)]
                value = renyi.rdp(grid)
                use = np.isfinite(value)
                if use.any():
                    h = grid[use] - 1.0
                    lines = h * (value[use] - epsilons[:, None]) - np.log(grid[use]) - h * np.log1p(1.0 / h)
                    out = np.minimum(out, np.min(lines, axis=1))
        for curve in paper.curves(base, runs, orders=self.question.orders):
            if include(curve.method) and self.method != "best":
                each = [delta_from_rdp(curve, float(eps), "cks").value for eps in epsilons]
                out = np.minimum(out, np.array(each))
        out = np.where(epsilons >= self.epsilon, np.minimum(out, self.question.log_delta), out)
        return np.asarray(np.minimum(out, 0.0), dtype=float)

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys (full precision; infinite values are None)."""
        best = self.best
        out: dict[str, Any] = {
            "hpcalc_version": __version__,
            "command": "bound",
            "base": self.base.describe(),
            "repetitions": repetitions(self.runs),
            "delta": self.delta,
            "epsilon": finite(self.epsilon),
        }
        if best is None:
            out["reason"] = self.reason or "no bound is finite under this guarantee"
        out["method"] = best.method if best is not None else None
        out["single_run"] = {"epsilon": finite(self.single_run.value) if self.single_run is not None else None}
        out["composition"] = {"runs": self.composition[0], "epsilon": finite(self.composition[1])}
        if self.lower is None:
            out["lower_bound"] = {"epsilon": None, "instance": None}
        else:
            out["lower_bound"] = {"epsilon": finite(self.lower.epsilon), "instance": self.lower.instance}
        if self.max_epsilon is not None:
            out["max_epsilon"] = self.max_epsilon
            out["within_budget"] = self.exit_code == ExitCode.OK
        out["bounds"] = [_row(bound) for bound in self.bounds]
        out["rdp"] = self.rdp_curve()
        out["assumptions"] = list(assumptions(self.base, self.runs, self.delta))
        out["warnings"] = list(self.warnings)
        if self.explain:
            out["explain"] = self._explanation()
        return out

    def _explanation(self) -> dict[str, Any]:
        best = self.best
        if best is None:
            return {"theorem": None, "conditions": []}
        out: dict[str, Any] = {
            "theorem": best.citation,
            "inputs": {**self.base.describe(), **repetitions(self.runs), "delta": self.delta},
        }
        how = getattr(self.base, "how", None)
        if how is not None:
            out["composed"] = how
        out["order"] = best.order
        out["conversion"] = best.conversion
        out["conditions"] = list(best.conditions)
        if best.source is not None and best.source.price is None:
            samples = best.source.samples_epsilon(self.question.log_delta, best.epsilon * (1.0 - 1e-4))
            out["discretisation"] = {
                "nodes": best.nodes,
                "epsilon_of_samples": samples,
                "relative": best.epsilon / samples - 1.0 if samples > 0.0 else 0.0,
            }
        single = self.single_run
        out["single_run_conversion"] = single.rule if single is not None else None
        if self.lower is not None and self.lower.epsilon > 0.0:
            out["relative_gap"] = best.epsilon / self.lower.epsilon - 1.0
        return out


def _row(bound: Evaluated) -> dict[str, Any]:
    out: dict[str, Any] = {"method": bound.method, "epsilon": finite(bound.epsilon)}
    if bound.order is not None:
        out["order"] = bound.order
    if bound.conversion is not None:
        out["conversion"] = bound.conversion
    return out


def finite(value: float) -> float | None:
    """None in place of an infinite value: documents hold plain numbers."""
    return float(value) if math.isfinite(value) else None


def delta_fields(log_delta: float) -> dict[str, float | None]:
    """``delta`` and ``log10_delta``; a δ below 1e-308 is None beside its logarithm."""
    log10 = log_delta / math.log(10.0)
    delta = math.exp(log_delta) if log10 > -308.0 else None
    return {"delta": 0.0 if log_delta == -math.inf else delta, "log10_delta": finite(log10)}


def repetitions(runs: RunCount) -> dict[str, Any]:
    """Echo of the law of K."""
    return {"dist": runs.name, **runs.parameters(), "mean": runs.mean, "prob_zero": runs.prob_zero}


def _ladder(asked: Array) -> Array:
    top = max(float(np.max(asked[np.isfinite(asked)], initial=64.0)), 2.0)
    return np.asarray(1.0 + np.exp(np.arange(-3.0, math.log(top * 64.0), 0.25)), dtype=float)


def bound(
    base: Guarantee,
    runs: RunCount,
    *,
    delta: float = 1e-6,
    method: str = "best",
    conversion: str = "best",
    orders: Any = None,
    max_epsilon: float | None = None,
    explain: bool = False,
    lower: bool = True,
) -> BoundResult:
    """Privacy cost of a whole search: K runs, K random, the best one released.

    Parameters
    ----------
    base : Guarantee
        Guarantee of one run.
    runs : RunCount
        Law of the number of runs.
    delta : float
        δ in [0, 1); 0 only where pure DP gives a finite answer.
    method : str
        A method's name, or ``"paper"``, ``"refined"``, ``"best"``.
    conversion : {"best", "cks", "mironov", "exact"}
        Rule for Rényi curves.
    orders : sequence of float, optional
        Orders at which Rényi curves are used and listed.
    max_epsilon : float, optional
        A limit; the result's ``exit_code`` says whether it is met.
    explain : bool
        Add how the answer came about to the document.
    lower : bool
        Also evaluate explicit mechanisms for a lower bound.

    Returns
    -------
    BoundResult

    Raises
    ------
    InvalidInput
        For values outside their range.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> from hpcalc.laws import Poisson
    >>> answer = bound(ZCDP(0.1), Poisson(10.0))
    >>> round(answer.epsilon, 3), answer.best.method, round(answer.lower.epsilon, 3)
    (4.226, 'refined-rdp', 4.225)
    """
    include = wanted(method)
    if conversion not in ("best", "cks", "mironov", "exact"):
        raise InvalidInput("conversion", conversion, "give best, cks, mironov or exact")
    listed = tuple(float(order) for order in (DEFAULT_ORDERS if orders is None else orders))
    for order in listed:
        if not order > 1.0:
            raise InvalidInput("orders", order, "give Rényi orders > 1 (inf is allowed)")
    if max_epsilon is not None and not max_epsilon >= 0.0:
        raise InvalidInput("max_epsilon", max_epsilon, "give a limit >= 0")
    log_delta = log_of_delta(delta)
    restrict = None if orders is None else np.array(sorted(set(listed)))
    question = Question(base, runs, log_delta, conversion, restrict)
    reason = _why_not(base, log_delta, method)
    found: list[Evaluated] = []
    floor: LowerBound | None = None
    if base.finite:
        found = evaluate(question, include)
        best = min((item.epsilon for item in found), default=math.inf)
        if lower:
            floor = _lower(question, best)
        if isinstance(runs, Law) and include("refined-profile") and floor is not None:
            from hpcalc.questions.prices import priced

            found = priced(question, found, floor)
    return BoundResult(
        base,
        runs,
        float(delta),
        tuple(found),
        floor,
        question,
        method,
        listed,
        None if max_epsilon is None else float(max_epsilon),
        explain,
        reason,
    )


def _why_not(base: Guarantee, log_delta: float, method: str) -> str:
    if not base.finite:
        return f"one run has no finite privacy guarantee ({_shown(base)}): give noise > 0 and finite parameters"
    if log_delta == -math.inf and base.pure_epsilon == math.inf:
        return "delta = 0 needs a pure guarantee (--pure, --laplace, an RDP point at order inf): give delta > 0"
    if method != "best":
        return f"--method {method} gives no finite bound for this base and law of K: try --method best"
    return "no bound is finite at this delta: give a larger delta"


def _shown(base: Guarantee) -> str:
    return ", ".join(f"{key} {value}" for key, value in base.describe().items())


def _lower(question: Question, best: float) -> LowerBound | None:
    if isinstance(question.runs, Threshold):
        return conditional_lower_bound(question.base, question.runs.accept, question.log_delta, best)
    return lower_bound(question.base, question.law, question.log_delta, best, question.curve)


def _composition(base: Guarantee, runs: RunCount, log_delta: float, rule: str) -> tuple[int, float]:
    """Naive composition of the mean number of runs, rounded up."""
    count = math.ceil(runs.mean * (1.0 - 1e-12)) if math.isfinite(runs.mean) else 10**15
    count = max(count, 1)
    if not base.finite:
        return count, math.inf
    core = base.core
    try:
        if isinstance(core, (Gaussian, ZCDP)) and count <= 10**15:
            return count, epsilon_at(repeat(base, count), log_delta, rule).value
        log_slack = float(log1mexp(count * math.log1p(-base.slack)))
        convolved = math.inf
        if rule in ("best", "exact") and math.isfinite(log_delta) and log_slack < log_delta:
            left = float(logsubexp(log_delta, log_slack) - log1mexp(log_slack))
            profile = core.repeated_profile(count, left)
            convolved = math.inf if profile is None else epsilon_from_profile(profile, left)
        curve = Curve(
            lambda a: np.asarray(count * core.rdp(a), dtype=float),
            "composition",
            "composition of Rényi curves",
            core.orders,
            log_added_delta=log_slack,
            pure_epsilon=count * core.pure_epsilon,
        )
        return count, min(epsilon_from_rdp(curve, log_delta, rule if rule != "exact" else "cks").value, convolved)
    except NoFiniteBound:
        return count, math.inf
