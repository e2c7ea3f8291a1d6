"""``bound``: what the whole search costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hpcalc.bounds import Bound, ProfileBound, bounds_for
from hpcalc.bounds.paper import EveryRun
from hpcalc.conversion import Conversion
from hpcalc.errors import require
from hpcalc.guarantees import Guarantee, checked_guarantee
from hpcalc.guarantees.mixture import Mixture, chosen
from hpcalc.laws import AnyRuns, Fixed, Law, RunCount, checked_law
from hpcalc.logspace import Array, Lower, Upper, distinct, significant
from hpcalc.lower import LowerBound, lower_bound
from hpcalc.questions.asked import Asked, assumptions, warnings_of
from hpcalc.questions.rows import DEFAULT_ORDERS, MANY_ORDERS, Priced, head, known, law_document, upper

#: Of bounds equal but for rounding, the one that needs the least machinery is named.
_PREFERENCE = ("refined-pure", "composition", "refined-conditional", "refined-region", "refined-rdp", "corollary-4")
#: A bound this close to an explicit mechanism is the price itself.
_EXACT = 5e-4
_MOST = 10**15  # compositions that are paid for

Progress = Callable[[int, int], None]


class Evaluated:
    """One bound at the δ asked for: its ε (inf if it gives none), with the Rényi order and conversion rule it has."""

    def __init__(self, source: Bound, log_delta: float, rule: str) -> None:
        answer = source.epsilon(log_delta, rule)
        self.source, self.method, self.epsilon, self.order = source, source.name, answer.value, answer.order
        self.conversion = None if isinstance(source, ProfileBound) else answer.rule

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys."""
        named = known(order=self.order, conversion=self.conversion)
        return {"method": self.method, "epsilon": upper(self.epsilon), **named}


@dataclass(frozen=True, eq=False, repr=False)
class BoundResult(Priced):
    """Cost of the whole search, beside one run's."""

    base: Guarantee
    runs: RunCount
    asked: Asked
    bounds: tuple[Evaluated, ...]  # every bound that was evaluated, the paper's first
    lower: LowerBound | None  # what an explicit mechanism costs: no analysis under the same assumptions can report less
    single_run: Conversion  # ε of one run, inf if it has none at this δ
    composition: tuple[int, float] | None  # runs and ε of naive composition of the mean number of runs, if asked for
    search: float | None = None  # ε of one search alone, where more than that is released
    candidates: tuple[dict[str, Any], ...] = ()  # each setting with a guarantee of its own, alone
    max_epsilon: float | None = None
    explain: bool = False

    @property
    def best(self) -> Evaluated | None:
        """The smallest valid bound; None if none is finite."""
        least = min((bound.epsilon for bound in self.bounds), default=math.inf)
        level = [bound for bound in self.bounds if bound.epsilon <= least * (1.0 + 1e-9) < math.inf]
        return min(level, key=lambda bound: [*_PREFERENCE, bound.method].index(bound.method), default=None)

    @property
    def epsilon(self) -> float:
        return math.inf if self.best is None else self.best.epsilon

    @cached_property
    def reason(self) -> str | None:
        """Why no bound is finite; found out where it is asked for, as a search for the smallest δ takes long."""
        if self.best is not None:
            return None
        if self.search is not None and self.search < math.inf:
            return "what else is released has no finite bound at this delta: give a larger delta"
        return _why_not(self.base, self.asked, self.asked.bounds(self.base, self.runs))

    @property
    def exact(self) -> bool:
        """Whether an explicit mechanism costs as much: then this is the price, not a bound."""
        return self.lower is not None and self.epsilon <= self.lower.epsilon * (1.0 + _EXACT) < math.inf

    @property
    def warnings(self) -> tuple[str, ...]:
        order = None if self.best is None else self.best.order
        return tuple(dict.fromkeys(warnings_of(self.base, self.runs, self.asked, self.epsilon, order)))

    def __reduce__(self) -> tuple[Any, ...]:
        # bounds are functions, which no pickle holds: it holds the question
        asked = self.base, self.runs, self.asked, self.composition is not None
        return search_cost, asked, {"max_epsilon": self.max_epsilon, "explain": self.explain}

    def rdp_curve(self, orders: Array | None = None, exact: bool = False) -> list[dict[str, float | None]]:
        """Rényi curve of the whole search: the smallest known; with ``exact`` also from profiles, which takes longer.

        Not finite where part of the guarantee is an (ε, δ) one: then no Rényi curve exists.
        """
        listed = self.asked.orders if orders is None else orders
        asked = np.array(DEFAULT_ORDERS if listed is None else listed, dtype=float)
        top = float(np.max(asked[np.isfinite(asked)], initial=64.0))
        grid = distinct(np.concatenate([asked, 1.0 + np.exp(np.arange(-3.0, math.log(top * 64.0), 0.25))]))
        out = np.full(grid.shape, np.inf)
        for source in (item.source for item in self.bounds if self.base.slack == 0.0 and self.base.finite):
            profile = isinstance(source, ProfileBound)
            value = source.rdp(asked if profile else grid) if exact or not profile else None
            if value is not None:
                place = np.searchsorted(grid, asked) if profile else slice(None)
                out[place] = np.fmin(out[place], value)
        # Rényi divergence never decreases with the order (Remark 5)
        values = np.minimum.accumulate(out[::-1])[::-1][np.searchsorted(grid, asked)]
        pairs = zip(asked.tolist(), values.tolist(), strict=True)
        return [{"order": x, "epsilon": upper(y)} for x, y in pairs if math.isfinite(x) or math.isfinite(y)]

    def rdp_export(self) -> list[dict[str, float | None]]:
        """The Rényi curve for others to compose: at the orders asked for, else at a hundred and the best one."""
        if self.asked.orders is not None:
            return self.rdp_curve(exact=True)
        best = self.best.order if self.best is not None and self.best.order is not None else 2.0
        return self.rdp_curve(distinct(np.concatenate([MANY_ORDERS, [best, math.inf]])), exact=True)

    def log_profile(self, epsilons: Array) -> Array:
        refined = [item for item in self.bounds if item.method.startswith("refined")]
        used = refined if self.asked.method == "best" and refined else self.bounds
        out: Array = np.min([np.zeros(epsilons.shape), *(item.source.log_profile(epsilons) for item in used)], axis=0)
        return np.where(epsilons >= self.epsilon, np.minimum(out, self.asked.log_delta), out)

    def document(self) -> dict[str, Any]:
        best, search = self.best, None if self.search is None else {"epsilon": upper(self.search)}
        rows: dict[str, Evaluated] = {}  # a method that looks at the guarantee in two ways has one row
        for item in self.bounds:
            rows[item.method] = min(rows.get(item.method, item), item, key=lambda row: row.epsilon)
        paid = self.composition and {"runs": self.composition[0], "epsilon": upper(self.composition[1])}
        return {
            **head("bound"), "base": self.base.describe(), "law": law_document(self.runs), **self.asked.document(),
            "epsilon": upper(self.epsilon), **known(reason=self.reason),
            "method": None if best is None else best.method, "exact": self.exact,
            "single_run": {"epsilon": upper(self.single_run.value)}, **known(composition=paid),
            "lower_bound": _lower_document(self.lower, self.asked.no_mechanism),
            **known(search=search, candidates=list(self.candidates) or None), **self.limit(),
            "bounds": [row.document() for row in rows.values()], "rdp": self.rdp_curve(),
            "assumptions": list(assumptions(self.base, self.runs, self.asked)), "warnings": list(self.warnings),
            **({"explain": _explanation(self)} if self.explain else {}),
        }  # fmt: skip


def _lower_document(lower: LowerBound | None, reason: str) -> dict[str, Any]:
    if lower is not None and math.isfinite(lower.epsilon):
        return {"epsilon": Lower(lower.epsilon), "mechanism": lower.mechanism}
    if lower is not None:
        reason = "the mechanism has no finite epsilon at this delta"
    reason = reason or "no mechanism is known that meets this guarantee and costs more than nothing"
    return {"epsilon": None, "mechanism": None if lower is None else lower.mechanism, "reason": reason}


def _explanation(result: BoundResult) -> dict[str, Any]:
    """How the answer came about."""
    best, single, lower = result.best, result.single_run, result.lower
    if best is None:
        return {"theorem": None, "conditions": []}
    return {
        "theorem": best.source.citation,
        "inputs": {**result.base.describe(), **law_document(result.runs), "delta": result.asked.delta},
        **known(composed=getattr(result.base, "how", None)),
        "order": best.order,
        "conversion": best.conversion,
        "conditions": list(best.source.conditions),
        "single_run_conversion": single.rule if single.value < math.inf else None,
        **({"relative_gap": Upper(best.epsilon / lower.epsilon - 1.0)} if lower and lower.epsilon > 0.0 else {}),
    }


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
    then: Sequence[Guarantee | str] = (),
    then_on: str = "all",
    density: tuple[float, float] | None = None,
    examples: int | None = None,
    unit: str | None = None,
    progress: Progress | None = None,
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
    searches, subset : int, float
        So many searches with a K of their own, each released, on a Poisson sample of the records of rate ``subset``.
    then, then_on : sequence of Guarantee or "run", {"all", "rest"}
        Released after the searches, of all records or of those outside the sample; ``"run"``: one more run.
    density : tuple of (float, float), optional
        Least and largest density of a run's proposals relative to one fixed prior: adaptive searches.
    examples, unit : int, str
        Number of privacy units N, against which δ is held, and the privacy unit in words, for the checklist.
    progress : callable, optional
        Called with (done, expected) steps, where ``base`` has several settings.

    Raises
    ------
    InvalidInput
        For values outside their range.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> from hpcalc.laws import Poisson
    >>> answer = bound(ZCDP(0.1), Poisson(10.0))
    >>> round(answer.epsilon, 3), answer.best.method, round(answer.lower.epsilon, 3)
    (4.226, 'refined-rdp', 4.225)
    """
    asked = Asked(delta, method, conversion, orders, searches, subset, then, then_on, density, examples, unit)
    require(("max_epsilon", max_epsilon, max_epsilon is None or max_epsilon >= 0.0, "give a limit >= 0"))
    limit = None if max_epsilon is None else float(max_epsilon)
    return replace(search_cost(base, runs, asked, lower, progress), max_epsilon=limit, explain=explain)


def search_cost(
    base: Guarantee, runs: RunCount, asked: Asked, lower: bool = True, progress: Progress | None = None
) -> BoundResult:
    """The same, of what was asked."""
    question, asked = asked, asked.beside(checked_guarantee(base))
    law, log_delta, rule = asked.law(checked_law(runs)), asked.log_delta, asked.conversion
    sources = asked.bounds(base, runs)
    found, best = _evaluated(sources, asked)
    given = chosen(base) if isinstance(runs, AnyRuns) else base
    single = EveryRun(given, 1).epsilon(log_delta, rule)
    if asked.method == "best" and isinstance(law, Law) and best < single.value:
        # a search of one run is one run, and so is every search whose scores are equal, if it runs at all
        once = [source.epsilon(log_delta, rule).value for source in bounds_for(base, Fixed(1))]
        single = replace(single, value=min(single.value, *once, *[best] * (law.prob_zero == 0.0)))
    composition = None
    if lower and asked.plain:  # naive composition of the mean number of runs, rounded up
        count = max(math.ceil(runs.mean * (1.0 - 1e-12)), 1) if math.isfinite(runs.mean) else _MOST
        payable = base.finite and count <= _MOST
        composition = count, EveryRun(given, count).epsilon(log_delta, rule).value if payable else math.inf
    low = lower_bound(base, runs, log_delta, sources) if lower and base.finite and not asked.no_mechanism else None
    parts = tuple(_candidates(base, law, question, progress or (lambda *_: None))) if lower else ()
    return BoundResult(base, runs, asked, tuple(found), low, single, composition, None if asked.plain else best, parts)


def _evaluated(sources: list[Bound], asked: Asked) -> tuple[list[Evaluated], float]:
    """What bounds on one search say of all that is released, none where they are infinite, and of the search alone."""
    found = [Evaluated(source, asked.log_delta, asked.conversion) for source in sources]
    best = min((item.epsilon for item in found), default=math.inf)
    if asked.plain:
        return found, best
    if best == math.inf:
        return [], best
    from hpcalc.questions.release import everything

    return [Evaluated(everything(sources, asked), asked.log_delta, asked.conversion)], best


def _candidates(base: Guarantee, law: RunCount, asked: Asked, progress: Progress) -> Iterable[dict[str, Any]]:
    """What each setting would cost if it were the only one."""
    if not isinstance(base, Mixture) or not base.finite:
        return
    for i, part in enumerate(base.parts):
        one = EveryRun(part, 1).epsilon(asked.log_delta, asked.conversion).value
        sources = [] if isinstance(law, AnyRuns) else bounds_for(part, law)
        whole = min(
            [item.epsilon for item in _evaluated(sources, asked.beside(part))[0]] or [math.inf if sources else one]
        )
        weight = base.weights[i] if base.weights else None
        name = base.names[i] if base.names else str(i + 1)
        yield {"name": name, "weight": weight, "single_run": upper(one), "epsilon": upper(whole)}
        progress(i + 1, len(base.parts) + 1)


def _why_not(base: Guarantee, asked: Asked, sources: list[Bound]) -> str:
    """Why no bound is finite."""
    if not base.finite:
        told = ", ".join(f"{key} {value}" for key, value in base.describe().items())
        return f"one run has no finite privacy guarantee ({told}): give noise > 0 and finite parameters"
    if asked.delta == 0.0 and base.pure_epsilon == math.inf:
        return "delta = 0 needs a pure guarantee (--pure, --laplace, an RDP point at order inf): give delta > 0"
    least = _least_delta(sources)
    if least is not None and least > asked.delta:
        way_out = f"give --delta {least:g}, or the base as DP-SGD or a curve"
        return f"the smallest delta with a finite answer is {least:g}: {way_out}"
    if asked.method != "best":
        return f"--method {asked.method} gives no finite bound for this base and law of K: try --method best"
    return "no bound is finite at this delta: give a larger delta"


def _least_delta(sources: list[Bound]) -> float | None:
    """The smallest δ with a finite ε, rounded up to three digits so that it has one; None where that is not known.

    The search's δ stays above it at every ε: some run falls that often where the other input never does.
    """
    for log_least in sorted(float(source.log_profile(np.array([1e9]))[0]) for source in sources):
        least = significant(Upper(math.exp(log_least)), 3)
        for _ in range(2):
            if 0.0 < least < 1.0 and any(source.epsilon(math.log(least)).value < math.inf for source in sources):
                return least
            least = significant(Upper(least * (1.0 + 1e-9)), 3)
    return None
