"""``bound``: what the whole search costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hpcalc import __version__
from hpcalc.answer import Answer
from hpcalc.bounds import Bound, ProfileBound, bounds_for, named_by
from hpcalc.bounds.exact import ExactBound
from hpcalc.bounds.paper import EveryRun
from hpcalc.conversion import Conversion, RenyiCurve, epsilon_at, epsilon_from_profile, epsilon_from_rdp, log_of_delta
from hpcalc.errors import ExitCode, InvalidInput, NoFiniteBound
from hpcalc.guarantees import ZCDP, Gaussian, Guarantee, repeat
from hpcalc.guarantees.mixture import Listed, Mixture, WorstOf
from hpcalc.laws import AnyRuns, Law, RunCount, checked_law
from hpcalc.logspace import Array, Lower, Prob, Upper, distinct, log1mexp, logsubexp, round_up
from hpcalc.lower import LowerBound, lower_bound
from hpcalc.questions.assumptions import assumptions, warnings_of
from hpcalc.questions.rows import law_document
from hpcalc.questions.setup import SearchSetup

__all__ = ["BoundResult", "Evaluated", "bound"]

#: Orders at which the whole search's Rényi curve is listed unless others are asked for.
DEFAULT_ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
#: Of bounds equal but for rounding, the one that needs the least machinery is named.
_PREFERENCE = ("refined-pure", "composition", "refined-conditional", "refined-region", "refined-rdp", "corollary-4")
#: A bound this close to an explicit mechanism is the price itself.
EXACT = 5e-4


@dataclass(frozen=True)
class Evaluated:
    """One bound at the δ asked for.

    Attributes
    ----------
    method : str
        Name as in the answers.
    epsilon : float
        Valid ε of the whole search (inf if the bound gives none).
    citation : str
        Where it is proved.
    order, conversion : optional
        Rényi order and conversion rule, where the bound has them.
    conditions : tuple of str
        What was checked or assumed.
    source : Bound
        The bound itself.
    """

    method: str
    epsilon: float
    citation: str
    order: float | None
    conversion: str | None
    conditions: tuple[str, ...]
    source: Bound = field(compare=False, repr=False)


@dataclass(frozen=True)
class Candidate:
    """A setting with a guarantee of its own: ε of one run of it, and of a search over it alone.

    ``weight`` is None where it is unknown.
    """

    name: str
    weight: float | None
    single_run: float
    epsilon: float

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys."""
        known = {"name": self.name, "weight": self.weight}
        return {**known, "single_run": upper(self.single_run), "epsilon": upper(self.epsilon)}


def _evaluated(source: Bound, log_delta: float, rule: str) -> Evaluated:
    answer = source.epsilon(log_delta, rule)
    named = answer.rule if not isinstance(source, ProfileBound) else None
    return Evaluated(source.name, answer.value, source.citation, answer.order, named, source.conditions, source)


@dataclass(frozen=True, eq=False, repr=False)
class BoundResult(Answer):
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
        What an explicit mechanism costs: no analysis under the same assumptions can report less.
    single_run : Conversion or None
        ε of one run (None if it has none at this δ).
    composition : tuple of (int, float) or None
        Runs and ε of naive composition of the mean number of runs; None where that was not asked for.
    method, conversion : str
        As asked.
    orders : tuple of float
        Orders at which the Rényi curve is listed.
    restricted : bool
        Whether these orders were asked for.
    max_epsilon : float or None
        The gate.
    explain : bool
        Whether the document says how the answer came about.
    reason : str or None
        Why no bound is finite.
    setup : SearchSetup
        How the search was run, and what else is released.
    search : float or None
        ε of one search alone, where more than that is released.
    candidates : tuple of Candidate
        Settings with guarantees of their own, each as if it were the only one.
    """

    base: Guarantee
    runs: RunCount
    delta: float
    bounds: tuple[Evaluated, ...]
    lower: LowerBound | None
    single_run: Conversion | None
    composition: tuple[int, float] | None
    method: str = "best"
    conversion: str = "best"
    orders: tuple[float, ...] = DEFAULT_ORDERS
    restricted: bool = False
    max_epsilon: float | None = None
    explain: bool = False
    reason: str | None = None
    setup: SearchSetup = field(default_factory=SearchSetup)
    search: float | None = None
    candidates: tuple[Candidate, ...] = ()

    @property
    def best(self) -> Evaluated | None:
        """The smallest valid bound; None if none is finite."""
        finite = [bound for bound in self.bounds if bound.epsilon < math.inf]
        if not finite:
            return None
        least = min(bound.epsilon for bound in finite)
        level = [bound for bound in finite if bound.epsilon <= least * (1.0 + 1e-9)]
        for name in _PREFERENCE:
            level = [bound for bound in level if bound.method == name] or level
        return level[0]

    @property
    def epsilon(self) -> float:
        """ε of the whole search (inf if no bound is finite)."""
        return self.best.epsilon if self.best is not None else math.inf

    @property
    def exact(self) -> bool:
        """Whether an explicit mechanism costs as much: then this is the price, not a bound."""
        return self.lower is not None and self.epsilon <= self.lower.epsilon * (1.0 + EXACT) < math.inf

    @property
    def exit_code(self) -> ExitCode:
        """0, 1 over ``max_epsilon``, 3 without a finite bound."""
        if self.best is None:
            return ExitCode.NO_FINITE_BOUND
        over = self.max_epsilon is not None and not self.epsilon <= self.max_epsilon
        return ExitCode.OVER_BUDGET if over else ExitCode.OK

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about this answer."""
        order = None if self.best is None else self.best.order
        found = warnings_of(self.base, self.runs, self.delta, epsilon=self.epsilon, order=order, setup=self.setup)
        return tuple(dict.fromkeys(found))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # bounds are functions, which no pickle holds: it holds the question
        options = {"delta": self.delta, "method": self.method, "conversion": self.conversion}
        options |= {"orders": self.orders if self.restricted else None, "max_epsilon": self.max_epsilon}
        options |= {"lower": self.composition is not None, "explain": self.explain, **vars(self.setup)}
        return _asked_again, (self.base, self.runs, options)

    def rdp_curve(self, orders: Array | None = None, exact: bool = False) -> list[dict[str, float | None]]:
        """Rényi curve of the whole search: the smallest of the curves evaluated, at each order.

        Empty where part of the guarantee is an (ε, δ) one: then no Rényi curve exists.

        Parameters
        ----------
        orders : ndarray, optional
            Default: those asked for.
        exact : bool
            Also take the curve that follows from a privacy profile, which takes longer.
        """
        asked = np.array(self.orders if orders is None else orders, dtype=float)
        value = self._rdp(asked, exact)
        return [
            {"order": float(order), "epsilon": Upper(eps) if math.isfinite(eps) else None}
            for order, eps in zip(asked, value, strict=True)
            if math.isfinite(order) or math.isfinite(eps)
        ]

    def rdp_export(self) -> list[dict[str, float | None]]:
        """The Rényi curve for others to compose: at the orders asked for, else at a hundred and the best one."""
        if self.restricted:
            return self.rdp_curve(exact=True)
        best = self.best.order if self.best is not None and self.best.order is not None else 2.0
        return self.rdp_curve(distinct(np.concatenate([many_orders(), [best, math.inf]])), exact=True)

    def _rdp(self, asked: Array, exact: bool) -> Array:
        if self.base.slack > 0.0 or not self.base.finite:
            return np.full(asked.shape, np.inf)
        top = max(float(np.max(asked[np.isfinite(asked)], initial=64.0)), 2.0)
        grid = distinct(np.concatenate([asked, 1.0 + np.exp(np.arange(-3.0, math.log(top * 64.0), 0.25))]))
        out = np.full(grid.shape, np.inf)
        for source in (item.source for item in self.bounds):
            profile = isinstance(source, ProfileBound)
            value = source.rdp(asked if profile else grid) if exact or not profile else None
            if value is not None:
                place = np.searchsorted(grid, asked) if profile else slice(None)
                out[place] = np.fmin(out[place], value)
        # Rényi divergence never decreases with the order (Remark 5)
        out = np.minimum.accumulate(out[::-1])[::-1]
        return np.asarray(out[np.searchsorted(grid, asked)], dtype=float)

    def profile(self, epsilons: Array | None = None) -> list[dict[str, float | None]]:
        """Privacy profile of the whole search: the smallest δ of the evaluated methods at each ε.

        Parameters
        ----------
        epsilons : ndarray, optional
            Default: 50 values from 0 to well beyond the ε at this δ, and that ε.
        """
        return points_of(self.log_profile, self.epsilon, epsilons)

    def log_profile(self, epsilons: Array) -> Array:
        """Log of δ of the whole search at each ε (the smallest over the bounds evaluated)."""
        out = np.zeros(epsilons.shape)
        refined = [item for item in self.bounds if item.method.startswith("refined")]
        for item in refined if self.method == "best" and refined else self.bounds:
            out = np.minimum(out, item.source.log_profile(epsilons))
        out = np.where(epsilons >= self.epsilon, np.minimum(out, _log(self.delta)), out)
        return np.asarray(np.minimum(out, 0.0), dtype=float)

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys (full precision; infinite values are None)."""
        best = self.best
        out: dict[str, Any] = {
            "hpcalc_version": __version__,
            "command": "bound",
            "base": self.base.describe(),
            "law": law_document(self.runs),
            **self.setup.document(),
            "delta": self.delta,
            "epsilon": upper(self.epsilon),
        }
        if best is None:
            out["reason"] = self.reason or "no bound is finite under this guarantee"
        out["method"] = best.method if best is not None else None
        out["exact"] = self.exact
        out["single_run"] = {"epsilon": upper(self.single_run.value) if self.single_run is not None else None}
        if self.composition is not None:
            out["composition"] = {"runs": self.composition[0], "epsilon": upper(self.composition[1])}
        out["lower_bound"] = _lower_row(self.lower, self.setup.no_mechanism)
        if self.search is not None:
            out["search"] = {"epsilon": upper(self.search)}
        if self.candidates:
            out["candidates"] = [item.document() for item in self.candidates]
        if self.max_epsilon is not None:
            out["max_epsilon"] = self.max_epsilon
            out["within_budget"] = self.exit_code == ExitCode.OK
        out["bounds"] = [_row(bound) for bound in self.bounds]
        out["rdp"] = self.rdp_curve()
        out["assumptions"] = list(assumptions(self.base, self.runs, self.delta, self.setup))
        out["warnings"] = list(self.warnings)
        if self.explain:
            out["explain"] = self.explanation()
        return out

    def explanation(self) -> dict[str, Any]:
        """How the answer came about."""
        best = self.best
        if best is None:
            return {"theorem": None, "conditions": []}
        out: dict[str, Any] = {
            "theorem": best.citation,
            "inputs": {**self.base.describe(), **law_document(self.runs), "delta": self.delta},
        }
        how = getattr(self.base, "how", None)
        if how is not None:
            out["composed"] = how
        out["order"] = best.order
        out["conversion"] = best.conversion
        out["conditions"] = list(best.conditions)
        out["single_run_conversion"] = self.single_run.rule if self.single_run is not None else None
        if self.lower is not None and self.lower.epsilon > 0.0:
            out["relative_gap"] = Upper(best.epsilon / self.lower.epsilon - 1.0)
        return out


def _row(bound: Evaluated) -> dict[str, Any]:
    out: dict[str, Any] = {"method": bound.method, "epsilon": upper(bound.epsilon)}
    if bound.order is not None:
        out["order"] = bound.order
    if bound.conversion is not None:
        out["conversion"] = bound.conversion
    return out


def _lower_row(lower: LowerBound | None, reason: str) -> dict[str, Any]:
    if lower is None:
        reason = reason or "no mechanism is known that meets this guarantee and costs more than nothing"
        return {"epsilon": None, "mechanism": None, "reason": reason}
    return {
        "epsilon": Lower(lower.epsilon) if math.isfinite(lower.epsilon) else None,
        "mechanism": lower.mechanism,
        **({} if math.isfinite(lower.epsilon) else {"reason": "the mechanism has no finite epsilon at this delta"}),
    }


def many_orders() -> Array:
    """Orders at which a Rényi curve is exported: a hundred, dense enough for others to compose."""
    return distinct(np.concatenate([DEFAULT_ORDERS, 1.0 + np.exp(np.arange(-3.0, math.log(4096.0), 0.1))]))


def points_of(log_profile: Callable[[Array], Array], epsilon: float, at: Array | None = None) -> list[dict[str, Any]]:
    """Points of a privacy profile: by default 51 to well beyond an answer ``epsilon``, and at that itself."""
    if at is None:
        some = math.isfinite(epsilon) and epsilon > 0.0
        at = np.linspace(0.0, 3.0 * epsilon if some else 10.0, 51)
        at = distinct(np.append(at, epsilon)) if some else at  # so that a reader of the points finds it again
    asked = np.asarray(at, dtype=float)
    log_delta = log_profile(asked).tolist()
    return [{"epsilon": eps, **delta_fields(log_d)} for eps, log_d in zip(asked.tolist(), log_delta, strict=True)]


def finite(value: float) -> float | None:
    """None in place of an infinite value: documents hold plain numbers."""
    return float(value) if math.isfinite(value) else None


def upper(value: float) -> float | None:
    """The same for an upper bound."""
    return Upper(value) if math.isfinite(value) else None


def delta_fields(log_delta: float) -> dict[str, float | None]:
    """``delta`` and ``log10_delta``; a δ below 1e-308 is None beside its logarithm."""
    log10 = log_delta / math.log(10.0)
    delta = Upper(math.exp(log_delta)) if log10 > -308.0 else None
    return {"delta": 0.0 if log_delta == -math.inf else delta, "log10_delta": upper(log10)}


def _asked_again(base: Guarantee, runs: RunCount, options: dict[str, Any]) -> BoundResult:
    return bound(base, runs, **options)


def _log(delta: float) -> float:
    return math.log(delta) if delta > 0.0 else -math.inf


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
    searches: int = 1,
    subset: float | None = None,
    then: Sequence[Guarantee] = (),
    then_on: str = "all",
    density: tuple[float, float] | None = None,
    examples: int | None = None,
    unit: str | None = None,
    progress: Callable[[int, int], None] | None = None,
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
        Also evaluate what stands beside the answer: explicit mechanisms for a lower bound, and every run paid for.
    searches : int
        So many searches with a K of their own, each released.
    subset : float, optional
        Rate in (0, 1) of the Poisson sample of the records that the searches ran on.
    then : sequence of Guarantee
        Released after the searches.
    then_on : {"all", "rest"}
        Whether ``then`` saw all records or those outside the sample.
    density : tuple of (float, float), optional
        Least and largest density of a run's proposals relative to one fixed prior: adaptive searches.
    examples : int, optional
        Number of privacy units N: δ is held against 1/N.
    unit : str, optional
        The privacy unit in words, for the checklist.
    progress : callable, optional
        Called with (done, expected) steps, where ``base`` has several settings.

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
    named_by(method)
    listed = _checked(conversion, DEFAULT_ORDERS if orders is None else orders, max_epsilon)
    log_delta = log_of_delta(delta)
    restrict = None if orders is None else np.array(sorted(set(listed)))
    setup = SearchSetup(searches, subset, tuple(then), then_on, density, examples, unit)
    law = setup.law(checked_law(runs))
    sources = bounds_for(base, law, restrict, method)
    found = [_evaluated(source, log_delta, conversion) for source in sources]
    best = min((item.epsilon for item in found), default=math.inf)
    single = _single_run(base, log_delta, conversion)
    if method == "best" and single is not None and isinstance(law, Law) and law.prob_zero == 0.0:
        # equal scores make the search one run, so what holds for every search holds for one run
        single = replace(single, value=min(single.value, best))
    reason = None if best < math.inf else _why_not(base, runs, log_delta, method, sources)
    known = lower and base.finite and not setup.no_mechanism
    settings = _candidates(base, law, log_delta, conversion, progress or (lambda *_: None)) if lower else ()
    alone = None if setup.plain else best
    if not setup.plain and best < math.inf:
        whole = _everything(sources, log_delta, setup)
        found = [_evaluated(whole, log_delta, conversion)]
    return BoundResult(
        base,
        runs,
        float(delta),
        tuple(found),
        lower_bound(base, runs, log_delta, best, sources) if known else None,
        single,
        _composition(base, runs, log_delta, conversion) if lower and setup.plain else None,
        method,
        conversion,
        listed,
        orders is not None,
        None if max_epsilon is None else float(max_epsilon),
        explain,
        reason,
        setup,
        alone,
        settings,
    )


def _checked(conversion: str, orders: Any, max_epsilon: float | None) -> tuple[float, ...]:
    """The orders, where they and the other settings are legal."""
    if conversion not in ("best", "cks", "mironov", "exact"):
        raise InvalidInput("conversion", conversion, "give best, cks, mironov or exact")
    listed = tuple(float(order) for order in orders)
    for order in listed:
        if not order > 1.0:
            raise InvalidInput("orders", order, "give Rényi orders > 1 (inf is allowed)")
    if max_epsilon is not None and not max_epsilon >= 0.0:
        raise InvalidInput("max_epsilon", max_epsilon, "give a limit >= 0")
    return listed


def _candidates(
    base: Guarantee, law: RunCount, log_delta: float, rule: str, progress: Callable[[int, int], None]
) -> tuple[Candidate, ...]:
    """What each setting would cost if it were the only one."""
    if not isinstance(base, (Mixture, WorstOf)) or not base.finite:
        return ()
    out: list[Candidate] = []
    count = len(base.parts)
    for i, part in enumerate(base.parts):
        single = _single_run(part, log_delta, rule)
        one = math.inf if single is None else single.value
        whole = one if isinstance(law, AnyRuns) else _alone(part, law, log_delta, rule)
        weight = base.weights[i] if isinstance(base, Mixture) else None
        out.append(Candidate(base.names[i] if base.names else str(i + 1), weight, one, whole))
        progress(i + 1, count + 1)
    return tuple(out)


def _alone(part: Guarantee, law: RunCount, log_delta: float, rule: str) -> float:
    """ε of a search over one setting; where Theorem E is attained no other bound is asked."""
    bounds = bounds_for(part, law)
    exact = [bound for bound in bounds if isinstance(bound, ExactBound) and bound.attained and log_delta > -math.inf]
    found = min((bound.epsilon(log_delta, rule).value for bound in exact), default=math.inf)
    return found if found < math.inf else min((one.epsilon(log_delta, rule).value for one in bounds), default=found)


def _everything(sources: list[Bound], log_delta: float, setup: SearchSetup) -> Bound:
    from hpcalc.questions.release import WholeRelease, released

    whole = released(
        sources, log_delta, searches=setup.searches, subset=setup.subset, then=setup.then, then_on=setup.then_on
    )
    return WholeRelease(whole)


def _why_not(base: Guarantee, runs: RunCount, log_delta: float, method: str, sources: list[Bound]) -> str:
    if not base.finite:
        return f"one run has no finite privacy guarantee ({_shown(base)}): give noise > 0 and finite parameters"
    if log_delta == -math.inf and base.pure_epsilon == math.inf:
        return "delta = 0 needs a pure guarantee (--pure, --laplace, an RDP point at order inf): give delta > 0"
    least = least_delta(base, runs, sources)
    if least is not None and _log(least) > log_delta:
        return f"the smallest delta with a finite answer is {least:g}: give --delta {least:g} or more"
    if method != "best":
        return f"--method {method} gives no finite bound for this base and law of K: try --method best"
    return "no bound is finite at this delta: give a larger delta"


def least_delta(base: Guarantee, runs: RunCount, sources: list[Bound]) -> float | None:
    """The smallest δ with a finite ε, rounded up to three digits so that it has one; None where that is not known.

    Some run falls, with probability ``1 - f(1-δ0)``, where the other input never does: δ0 is what one run's δ stays
    above at every ε.
    """
    floor = math.exp(float(base.log_profile(np.array([1e9]))[0]))
    if not 0.0 < floor < 1.0:
        return None
    known = [float(source.log_profile(np.array([1e9]))[0]) for source in sources if isinstance(source, ProfileBound)]
    if isinstance(runs, Law):
        known.append(float(runs.log_survival(Prob.from_u(np.array([floor])))[0]))
    for log_least in sorted(known):
        least = round_up(math.exp(log_least), 3)
        for _ in range(2):
            if least < 1.0 and any(source.epsilon(math.log(least)).value < math.inf for source in sources):
                return least
            least = round_up(least * (1.0 + 1e-9), 3)
    return None


def _shown(base: Guarantee) -> str:
    return ", ".join(f"{key} {value}" for key, value in base.describe().items())


def _single_run(base: Guarantee, log_delta: float, rule: str) -> Conversion | None:
    try:
        return epsilon_at(base, log_delta, rule) if base.finite else None
    except NoFiniteBound:
        return None


def _composition(base: Guarantee, runs: RunCount, log_delta: float, rule: str) -> tuple[int, float]:
    """Naive composition of the mean number of runs, rounded up."""
    count = math.ceil(runs.mean * (1.0 - 1e-12)) if math.isfinite(runs.mean) else 10**15
    count = max(count, 1)
    if isinstance(base, Listed) and base.total == count:
        return count, EveryRun(base, count).epsilon(log_delta, rule).value
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
            whole = repeat(core, count).core
            known = core.has_own_pair and whole.exact_profile
            convolved = epsilon_from_profile(whole.log_profile, left) if known else math.inf
        curve = RenyiCurve(
            lambda a: np.asarray(count * core.rdp(a), dtype=float), core.orders, log_slack, count * core.pure_epsilon
        )
        return count, min(epsilon_from_rdp(curve, log_delta, rule if rule != "exact" else "cks").value, convolved)
    except NoFiniteBound:
        return count, math.inf
