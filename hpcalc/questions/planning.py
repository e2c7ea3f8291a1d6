"""``plan``: the search, or the noise, that a privacy target pays for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from hpcalc.catalog import load
from hpcalc.errors import require
from hpcalc.guarantees import Guarantee, checked_guarantee, compose, repeat
from hpcalc.laws import RunCount
from hpcalc.laws.family import DEFAULT_FAMILIES, LawFamily, LawLike, families_of, family_of
from hpcalc.logspace import Array, Lower, Upper, significant
from hpcalc.questions import rows, solving
from hpcalc.questions.asked import Asked
from hpcalc.questions.measures import Aims
from hpcalc.questions.search_cost import Progress
from hpcalc.questions.solving import NOISES, Accountant, PricedLaws, Solution
from hpcalc.solve import log_minimum

#: What ``"dpsgd-noise"`` solves for: (sampling rate, steps), or one run's guarantee as a function of the noise.
Training: TypeAlias = "tuple[float, int] | Callable[[float], Guarantee]"

_ETA_STEP = 4e-3  # of log(1 + eta); a knob of speed, like the next
_SIZE_STEP = 0.01  # of log n


@dataclass(frozen=True, eq=False, repr=False)
class PlanResult(PricedLaws):
    """Every law with its parameter solved: the recommended one first, what meets no target last."""

    target_epsilon: float | None
    reason: str  # why the first is recommended
    goal: str | None  # what they are ordered by, where it was a choice
    constraints: dict[str, float] = field(default_factory=dict)  # echo of further conditions
    notes: tuple[str, ...] = ()  # warnings about the question itself

    @property
    def best(self) -> Solution:
        """The recommended row."""
        return self.entries[0]

    @property
    def epsilon(self) -> float:
        """What the recommended search costs."""
        return math.inf if self.best.cost is None else self.best.cost.epsilon

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows under the published keys."""
        return [
            {"dist": item.family.dist, "solved_for": item.solved_for, "value": item.value}
            | item.fields(self.aims, 50, 95, 99)
            for item in self.entries
        ]

    @property
    def warnings(self) -> tuple[str, ...]:
        cost = () if self.best.cost is None else self.best.cost.warnings
        return tuple(dict.fromkeys([*cost, *self.notes, *self.aims.warnings]))

    def document(self) -> dict[str, Any]:
        return {
            **self.told("plan"),
            "solved_for": self.best.solved_for,
            "value": self.best.value,
            "epsilon": rows.upper(self.epsilon),
            **rows.known(target_epsilon=self.target_epsilon, **self.constraints, maximize=self.goal),
            "rows": self.rows,
            "recommended": {"row": 0, "reason": self.reason},
            "warnings": list(self.warnings),
        }


def plan(
    base: Guarantee | None,
    runs: LawLike | None = None,
    *,
    laws: Iterable[LawLike] | None = None,
    mean: float | None = None,
    target_epsilon: float | None = None,
    solve_for: str | None = None,
    maximize: str | None = None,
    optimize_eta: bool = False,
    target_success: float | None = None,
    max_runs_p95: int | None = None,
    success_rate: float | None = None,
    scores: Iterable[float] | None = None,
    minimize: bool = False,
    compositions: int | None = None,
    sampling: Training | None = None,
    progress: Progress | None = None,
    **asked: Any,
) -> PlanResult:
    """Solve for the search, or for the noise of one run, that a privacy target pays for.

    Parameters
    ----------
    base : Guarantee or None
        Guarantee of one run. With ``solve_for`` a noise: what else happens in the same run, if anything.
    runs, laws : RunCount, str or mapping, or iterable of them, optional
        Laws of K to consider; each one's scale parameter (mu, gamma, p, k, n, accept) is solved for, whatever value it
        has. Default: Poisson and the truncated negative binomial with eta -0.5, 0, 0.5 and 1.
    mean : float, optional
        With ``solve_for`` a noise: the mean of every law whose scale is open.
    target_epsilon : float
        What the whole search may cost at ``delta``; may be left out beside ``target_success``.
    solve_for : {"runs", "zcdp", "pure", "gaussian", "laplace", "dpsgd-noise"}, optional
        Default ``"runs"``. Otherwise the least noise of one run is solved for, law by law.
    maximize : {"quantile", "success", "score", "runs"}, optional
        Order of the rows. Default: the score if scores were given, else success if its rate was, else the quantile;
        with ``solve_for`` a noise, the least noise first.
    optimize_eta : bool
        Also search the whole truncated negative binomial family, its limits included, for the best eta.
    target_success : float, optional
        Solve for the fewest runs that succeed with this probability, and order by ε.
    max_runs_p95 : int, optional
        Keep the 95 % quantile of K within this.
    success_rate, scores, minimize
        As in ``utility``.
    compositions : int, optional
        With ``solve_for`` a noise: one run is that many compositions of ``base`` and the noise.
    sampling : (float, int) or callable, optional
        For ``"dpsgd-noise"``: sampling rate and steps, or a function from the noise multiplier to the guarantee of one
        run (several trainings, candidates with rates and steps of their own).
    progress : callable, optional
        Called with (done, expected) evaluations.
    **asked
        As in ``bound``: ``delta``, ``method``, ``conversion``, ``orders``, how the search was run, what else is
        released. ``subset="auto"`` looks for the sampling rate at which a complete law costs least.

    Raises
    ------
    TargetOutOfReach
        If nothing meets the target; text and ``reachable`` say what does.
    InvalidInput
        For values outside their range, and for questions that lack a part.

    Notes
    -----
    Every value has six significant digits, was itself given to ``bound`` and met the target; the next one did not. The
    mean number of runs is at least 1, and at most a million.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> best = plan(ZCDP(0.1), "tnb:eta=0", target_epsilon=4.0).best
    >>> best.solved_for, best.cost.epsilon <= 4.0
    ('gamma', True)
    """
    aims = Aims.of(success_rate, scores, minimize)
    goal, kind = aims.goal(maximize), solve_for or "runs"
    if asked.get("subset") == "auto":
        kind, asked["subset"] = "subset", 0.5  # any rate will do until one is found
    named = [*([runs] if runs is not None else []), *(laws if laws is not None else [])]
    families = families_of(named, DEFAULT_FAMILIES)
    target, success, late = target_epsilon, target_success, max_runs_p95
    free = target is not None or kind == "subset" or (kind == "runs" and success is not None)
    rate = success is None or aims.success_rate is not None
    complete = kind == "runs" or mean is not None or all(family.given is not None for family in families)
    option = "--subset auto" if kind == "subset" else f"--solve-for {kind}"
    require(
        ("solve_for", kind, kind in (*NOISES, "runs", "subset"), f"give one of runs, {', '.join(NOISES)}"),
        ("zcdp", None, base is not None or kind in NOISES, "say what one run guarantees, e.g. --zcdp 0.1"),
        ("target_epsilon", None, free, "say what the whole search may cost, e.g. 4"),
        ("target_epsilon", target, target is None or 0.0 < target < math.inf, "give a finite number > 0"),
        ("target_success", success, success is None or 0.0 < success < 1.0, "give a probability between 0 and 1"),
        ("target_success", success, rate, "needs the chance of one run: give --success-rate"),
        ("max_runs_p95", late, late is None or late >= 1, "give a whole number >= 1"),
        ("mean", mean, mean is None or kind != "runs", "is what plan solves for: leave it out"),
        ("mean", None, complete, f"{option} needs the number of runs: give --mean, e.g. 10"),
    )
    one_run = _noisy(kind, base, compositions, sampling) if kind in NOISES else lambda _: checked_guarantee(base)
    ask = Accountant(Asked(**asked), progress, 12 * len(families) + 400 * optimize_eta)
    order = maximize if kind != "runs" else None if success is not None else goal
    planner = _Planner(ask, one_run, aims, order, kind, target, success, late)
    found = (
        planner.laws(families, optimize_eta) if kind == "runs" else [planner.run(family, mean) for family in families]
    )
    found.sort(key=planner.rank)
    best = found[0]
    if best.runs is None or best.cost is None:
        raise solving.unreachable(found, target, success, ask.asked)
    training = sampling if kind == "dpsgd-noise" and isinstance(sampling, tuple) else (None, None)
    echo = rows.known(
        mean=mean, compositions=compositions, sampling_rate=training[0], steps=training[1],
        target_success=success, max_runs_p95=late, success_rate=success_rate,
    )  # fmt: skip
    notes, told = _not_used(named) if kind == "runs" else (), planner.reason(found)
    return PlanResult(base, best.cost.asked, tuple(found), aims, target, told, order, echo, notes)


def _noisy(
    kind: str, base: Guarantee | None, compositions: int | None, sampling: Training | None
) -> Callable[[float], Guarantee]:
    """One run by its noise, with whatever else happens in it."""
    remedy = "give the sampling rate and the steps: --sample-rate and --steps, or --examples and --epochs"
    require(("solve_for", kind, NOISES[kind].arity == 1 or sampling is not None, remedy))
    make: Callable[[float], Guarantee] = sampling if callable(sampling) else load(NOISES[kind].target)
    if isinstance(sampling, tuple):
        make = partial(load(NOISES[kind].target), sampling[0], steps=sampling[1])

    def one_run(x: float) -> Guarantee:
        whole = make(x) if base is None else compose(base, make(x))
        return whole if compositions is None else repeat(whole, compositions)

    return one_run


def _not_used(named: Iterable[LawLike]) -> tuple[str, ...]:
    """What to say of scales that were given: an object cannot leave its scale open, a law in words could have."""
    written = [family_of(law) for law in named if not isinstance(law, (RunCount, LawFamily))]
    told = "{}: its {} is solved for, the value given is not used"
    return tuple(told.format(law.label, law.scale) for law in written if law.given is not None and law.scale)


@dataclass(frozen=True)
class _Planner:
    """Solves law by law, ranks what was found and says why the first is recommended."""

    ask: Accountant
    one_run: Callable[[float], Guarantee]  # by its noise, where that is solved for
    aims: Aims
    order: str | None  # the goal that the rows are ordered by; None for the least noise, or the least ε
    kind: str  # what is solved for: "runs", "subset" or a noise
    target: float | None
    success: float | None
    late: int | None

    def run(self, family: LawFamily, mean: float | None) -> Solution:
        """The noise of one run, or the part of the records, for a law at the mean where its scale is open."""
        law = family.given or family.with_mean(mean or 1.0)
        if self.kind == "subset":
            return solving.solve_subset(self.ask, self.one_run(0.0), law, self.target)
        return solving.solve_noise(self.ask, law, self.kind, self.one_run, self.target or 0.0)

    def law(self, family: LawFamily, start: float = 10.0) -> Solution:
        """A law's scale: as bold as the target allows, or as safe as the chance of success allows."""
        base = self.one_run(0.0)
        if self.success is None:
            return solving.solve_runs(self.ask, base, family, self.target or 0.0, self.late, start)
        found = solving.law_of_success(family, self.success, self.aims, self.late)
        cost = None if found.runs is None else self.ask.cost(base, found.runs)
        if cost is None or solving.meets(cost, self.target):
            return replace(found, cost=cost)
        price = f"costs {solving.price(cost)}" if cost.epsilon < math.inf else "has no finite bound"
        why = f"the success probability needs {family.scale} = {found.value:g}, which {price}"
        return Solution(family, None, cost, why, family.scale)

    def laws(self, families: Sequence[LawFamily], optimize_eta: bool) -> list[Solution]:
        """Every law, and the best of the whole family and Poisson to hold it against where that was asked for."""
        plain = family_of("poisson")
        more = [plain] if optimize_eta and plain not in families else []
        found = [self.law(family) for family in (*families, *more)]
        if not optimize_eta:
            return found
        poisson = next(item.runs for item in found if item.family == plain)
        means = [runs.mean for runs in (poisson, *(item.runs for item in found)) if runs is not None]
        rough = replace(self, ask=replace(self.ask, certify=False))

        def worth(family: LawFamily) -> float:
            item = rough.law(family, means[-1] if means else 10.0)
            means.extend([] if item.runs is None else [item.runs.mean])
            return -self.rank(item)[0]

        best = _best_of_family(worth, None if poisson is None else poisson.mean)
        return found if any(item.family == best for item in found) else [*found, self.law(best)]

    def rank(self, item: Solution) -> tuple[float, float]:
        """What the rows are sorted by: the goal, else the least noise, else the least ε."""
        if item.runs is not None and self.order is not None:
            return -self.aims.worth(self.order, item.runs), item.runs.log_mean
        if item.runs is None or item.cost is None:
            return math.inf, math.inf
        if self.kind in ("runs", "subset"):
            return item.cost.epsilon, item.runs.log_mean
        assert item.value is not None
        return item.value if NOISES[self.kind].safe == "up" else -item.value, 0.0

    def reason(self, found: list[Solution]) -> str:
        """Why the first row is recommended, and what speaks for another one."""
        fit = [item for item in found if item.runs is not None]
        best, cost = fit[0].runs, fit[0].cost
        assert best is not None
        within = f"ε <= {self.target:g}" if self.target is not None else "the target"
        several = f" of the {len(fit)} laws that meet {within}"
        only = f"the only one of {len(found)} laws that meets {within}" if len(found) > 1 else f"the law meets {within}"
        if self.order is not None and math.isfinite(self.aims.worth(self.order, best)):
            most, measure, value = self.aims.told(self.order, best)
            return f"the {most} {measure}, {value},{several}" if len(fit) > 1 else f"{only}; {measure} {value}"
        if self.kind == "subset":
            told = "the least ε, at the best of the sampling rates looked at"
            if cost is None or cost.single_run is None:
                return told
            run, alone = "one run that is not tuned", cost.single_run.value
            price, less = f"ε = {significant(Upper(alone), 5):g}", cost.epsilon < alone
            return f"{told}; it costs less than {run}, {price}" if less else f"{told}; {run} costs {price}"
        if self.kind != "runs":
            more = f"{several}{self._against_quality(fit)}" if len(fit) > 1 else f" that meets {within}"
            return f"the least noise{more}"
        what = "first" if self.order is not None else "smallest ε"
        return f"the {what}{several}" if len(fit) > 1 else only

    def _against_quality(self, fit: list[Solution]) -> str:
        """What less noise is traded for: how good and how long the search is, and the noise of laws that find more."""
        goal, most, told = self.aims.goal(None), -math.inf, []
        for item in fit:  # by rising noise: of these, laws that find more than any before
            worth = -math.inf if item.runs is None else self.aims.worth(goal, item.runs)
            if item.runs is not None and worth > most:
                most = worth
                _, measure, value = self.aims.told(goal, item.runs)
                late = rows.quantile_or_none(item.runs, 0.95)
                told.append((measure, value, late, f"{value} at {item.value:g} ({item.family.label})"))
        measure, value, late, _ = told[0]
        here = f", with {measure} {value} and 95 % of searches ending by {late} runs"
        more = ", ".join(words for *_, words in told[1:])
        return f"{here}; more costs more noise: {more}" if more else here


def _best_of_family(worth: Callable[[LawFamily], float], poisson_mean: float | None) -> LawFamily:
    """The best of the truncated negative binomial family, limits included, by the worth of its law once solved for.

    The family runs from eta near -1 (mostly one run, now and then very many) over the logarithmic and the geometric
    law to large eta, where it becomes Poisson given K >= 1; past infinity, at eta = -n, lie the binomial laws, which
    are sought around the Poisson law's mean, and n = E[K] is a fixed number of runs. The worth is smooth along this
    path but may have more than one peak, so the path is sampled first and only then followed.
    """
    found: dict[LawFamily, float] = {}

    def loss(law: Callable[[Any], LawLike], places: Iterable[Any]) -> Array:
        families = [family_of(law(place)) for place in places]
        for family in families:
            if family not in found:
                found[family] = worth(family)
        return np.array([-found[family] for family in families])

    negative_binomial = partial(loss, lambda x: {"dist": "tnb", "eta": significant(Lower(math.expm1(x)), 4)})
    binomial = partial(loss, lambda x: {"dist": "binomial", "n": math.ceil(math.exp(x))})
    loss(family_of, ["poisson", "poisson:at-least-one"])
    # log(1 + eta) from eta = -0.95 to 1000, eta with four significant digits
    log_minimum(negative_binomial, np.arange(-3.0, 7.0, 0.6), accuracy=_ETA_STEP)
    if poisson_mean is not None:
        least = math.log(max(math.ceil(poisson_mean), 1))
        log_minimum(binomial, least + np.arange(0.02, 3.4, 0.4), accuracy=_SIZE_STEP)
    return max(found, key=found.__getitem__)
