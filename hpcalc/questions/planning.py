"""``plan``: the search, or the noise, that a privacy target pays for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from hpcalc import __version__
from hpcalc.catalog import GUARANTEES, load
from hpcalc.errors import ExitCode, InvalidInput, TargetOutOfReach
from hpcalc.guarantees import Guarantee, compose, repeat
from hpcalc.laws import RunCount
from hpcalc.laws.family import DEFAULT_FAMILIES, LawFamily, LawLike, families_of, family_of
from hpcalc.logspace import round_up
from hpcalc.questions.accountant import MOST_RUNS, Accountant, Progress, Ticker, cost_fields
from hpcalc.questions.eta import best_of_family
from hpcalc.questions.rows import Aims, law_document, length_fields, quantile_or_none, upper_or_none
from hpcalc.questions.search_cost import BoundResult
from hpcalc.solve import Crossing, Grid, first_true

__all__ = ["PlanResult", "Solution", "Training", "plan", "solve_runs", "solve_success", "unreachable"]

#: What ``"dpsgd-noise"`` solves for: (sampling rate, steps), or one run's guarantee as a function of the noise.
Training: TypeAlias = "tuple[float, int] | Callable[[float], Guarantee]"

_IN_TURN = 20  # numbers of runs asked one after another where ε need not rise with them


@dataclass(frozen=True)
class Solution:
    """One law, or one kind of noise, with its parameter solved.

    Attributes
    ----------
    family : LawFamily
        The law but for its open parameter.
    solved_for : str or None
        The parameter.
    value : float or None
        Its value, with at most six significant digits; None if none meets the target.
    runs : RunCount or None
        The law at that value.
    cost : BoundResult or None
        What ``bound`` says there; where there is no value, the least that the law costs.
    beyond : float or None
        The next value, one unit in the last digit bolder, that fails; None if the search ended for another reason.
    reason : str or None
        Why there is no value, or why a bolder one was not taken.
    """

    family: LawFamily
    solved_for: str | None
    value: float | None = None
    runs: RunCount | None = None
    cost: BoundResult | None = None
    beyond: float | None = None
    reason: str | None = None

    def row(self, aims: Aims) -> dict[str, Any]:
        """The solution under the published keys."""
        out: dict[str, Any] = {"dist": self.family.dist, "solved_for": self.solved_for, "value": self.value}
        if self.runs is not None and self.cost is not None:
            out["law"] = law_document(self.runs)
            out.update(length_fields(self.runs, 50, 95, 99))
            out.update(cost_fields(self.cost, lower=False))
            out.update(aims.fields(self.runs))
        else:
            out["law"] = {"dist": self.family.dist, **self.family.parameters}
            out["epsilon"] = None
        if self.reason is not None:
            out["reason"] = self.reason
        return out


@dataclass(frozen=True, eq=False)
class PlanResult:
    """Every law with its parameter solved, one of them recommended.

    Attributes
    ----------
    solutions : tuple of Solution
        The best first; what meets no target last.
    reason : str
        Why the first row is recommended.
    goal : str or None
        What the rows are ordered by, where it was a choice.
    aims : Aims
        What the search is for.
    constraints : dict
        Echo of further conditions.
    notes : tuple of str
        Warnings about the question itself.
    """

    base: Guarantee | None
    delta: float
    target_epsilon: float | None
    solutions: tuple[Solution, ...]
    reason: str
    goal: str | None
    aims: Aims
    constraints: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    exit_code = ExitCode.OK

    @property
    def best(self) -> Solution:
        """The recommended row."""
        return self.solutions[0]

    @property
    def epsilon(self) -> float:
        """What the recommended search costs."""
        assert self.best.cost is not None
        return self.best.cost.epsilon

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows under the published keys."""
        return [solution.row(self.aims) for solution in self.solutions]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about the recommendation."""
        told = self.best.cost.warnings if self.best.cost is not None else ()
        return tuple(dict.fromkeys([*told, *self.notes, *self.aims.warnings]))

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys."""
        best = self.best
        single = best.cost.single_run if best.cost is not None else None
        out: dict[str, Any] = {"hpcalc_version": __version__, "command": "plan"}
        if self.base is not None:
            out["base"] = self.base.describe()
        out["delta"] = self.delta
        out["single_run"] = {"epsilon": None if single is None else upper_or_none(single.value)}
        out["solved_for"] = best.solved_for
        out["value"] = best.value
        out["epsilon"] = upper_or_none(self.epsilon)
        if self.target_epsilon is not None:
            out["target_epsilon"] = self.target_epsilon
        out.update(self.constraints)
        if self.goal is not None:
            out["maximize"] = self.goal
        out["rows"] = self.rows
        out["recommended"] = {"row": 0, "reason": self.reason}
        out["warnings"] = list(self.warnings)
        return out


# ---------------------------------------------------------------------------------------------------------------------
# three ways to solve for one parameter, over one search


def solve_runs(
    ask: Accountant, base: Guarantee, family: LawFamily, target: float, late: int | None = None, start: float = 10.0
) -> Solution:
    """The boldest law of a family within a target.

    Parameters
    ----------
    ask : Accountant
    base : Guarantee
        One run.
    family : LawFamily
        A law without an open parameter is taken as it is.
    target : float
        ε of the whole search.
    late : int, optional
        What the 95 % quantile of K may be at most.
    start : float
        Mean number of runs to start from.
    """
    if family.scale is None:
        return _as_given(ask, base, family, target)
    span = _span(family, late)
    if isinstance(span, str):
        return Solution(family, family.scale, reason=span)
    grid, limit = span

    def inputs(x: float) -> tuple[Guarantee, RunCount]:
        return base, family.at(x)

    found = _in_turn(ask, base, family, target, grid) if family.whole and base.slack > 0.0 else None
    if found is None or (found.beyond is None and found.value != grid.boldest):
        found = ask.last_within(inputs, target, grid, family.scale_at(start) if found is None else found.value or 1.0)
    if found.value is None:
        least = found.refused.epsilon if found.refused is not None else math.inf
        why = f"the least it can cost, at {family.scale} = {found.beyond:g}, is ε = {round_up(least, 5):g}"
        return Solution(family, family.scale, cost=found.refused, reason=why)
    reason = f"every {family.scale} meets the target{limit}" if found.beyond is None else None
    if found.refused is not None and found.refused.epsilon == math.inf:
        reason = f"one step further there is no finite ε at δ = {ask.delta:g}"
    return Solution(family, family.scale, found.value, family.at(found.value), found.answer, found.beyond, reason)


def solve_success(
    ask: Accountant | None,
    base: Guarantee | None,
    family: LawFamily,
    success: float,
    aims: Aims,
    target: float | None = None,
    late: int | None = None,
) -> Solution:
    """The law of a family with the fewest runs that reaches a chance of success, if a target allows its cost.

    Parameters
    ----------
    ask, base : optional
        None where the cost is not asked.
    family, target, late
        As in :func:`solve_runs`.
    success : float
        The chance to reach.
    aims : Aims
        With the chance that one run is good.
    """
    if family.scale is None:
        return Solution(family, None, reason=f"{family.dist} has no parameter to solve for")
    span = _span(family, late)
    if isinstance(span, str):
        return Solution(family, family.scale, reason=span)
    grid, limit = span

    def chance(index: int) -> float:
        return aims.success(family.at(grid.value(index))) or 0.0

    top = chance(grid.last)
    if not top >= success:
        why = f"its success probability ends at {top:.6g}{limit}" if top > 0.0 else "it has no success probability"
        return Solution(family, family.scale, reason=why)
    value = grid.value(first_true(lambda index: chance(index) >= success, grid.first, grid.last))
    runs = family.at(value)
    if ask is None or base is None:
        return Solution(family, family.scale, value, runs)
    cost = ask.cost(base, runs)
    if not ask.meets(cost, target):
        price = f"costs ε = {round_up(cost.epsilon, 5):g}" if cost.epsilon < math.inf else "has no finite bound"
        why = f"the success probability needs {family.scale} = {value:g}, which {price}"
        return Solution(family, family.scale, cost=cost, reason=why)
    return Solution(family, family.scale, value, runs, cost)


def solve_noise(
    ask: Accountant, runs: RunCount, kind: str, one_run: Callable[[float], Guarantee], target: float
) -> Solution:
    """The least noise of one run for a law of K.

    Parameters
    ----------
    ask : Accountant
    runs : RunCount
        Law of K.
    kind : str
        A name in ``NOISES``.
    one_run : callable
        From the noise to the guarantee of one run, with whatever else happens in it.
    target : float
        ε of the whole search.
    """
    family, noise = family_of(runs), NOISES[kind]
    found = ask.last_within(lambda x: (one_run(x), runs), target, noise.grid, noise.start)
    if found.value is None:
        least = found.refused.epsilon if found.refused is not None else math.inf
        why = f"even {kind} {found.beyond:g} costs ε = {round_up(least, 5):g}"
        return Solution(family, kind, cost=found.refused, reason=why)
    reason = None if found.beyond is not None else f"every {kind} up to here meets the target"
    return Solution(family, kind, found.value, runs, found.answer, found.beyond, reason)


@dataclass(frozen=True)
class Noise:
    """A parameter of one run that can be solved for.

    Attributes
    ----------
    grid : Grid
        Values to try.
    start : float
        A first guess.
    target : str or None
        The guarantee's class where the parameter is all it takes.
    """

    grid: Grid
    start: float
    target: str | None


def _noises() -> dict[str, Noise]:
    """What ``solve_for`` may name, from the catalog."""
    found = {}
    for row in GUARANTEES.values():
        if row.solve_for is not None:
            plain = row.arity == 1
            grid = Grid(1e-12, 1e6) if row.safe == "down" else Grid(1e12, 1e-6) if plain else Grid(1e4, 1e-2)
            found[row.solve_for] = Noise(grid, 0.1 if row.safe == "down" else 2.0, row.target if plain else None)
    return found


NOISES = _noises()


def _span(family: LawFamily, late: int | None) -> tuple[Grid, str] | str:
    """Values with a mean from one run to a million within the run-time limit, and what ends them; or why none is left.

    ε alone is no reason to look below one run: a search that runs nothing costs nothing.
    """
    whole = Grid(*family.range, digits=0 if family.whole else 6)
    first, last = whole.first, whole.last
    end = ""

    def law(index: int) -> RunCount:
        return family.at(whole.value(index))

    far = whole.index(family.scale_at(MOST_RUNS))
    if far < last:
        last, end = far, f": at a mean of {MOST_RUNS:g} runs the search ends"
    if not law(first).mean >= 1.0 - 1e-12:
        if not law(last).mean >= 1.0 - 1e-12:
            return "its mean stays below one run"
        first = first_true(lambda index: law(index).mean >= 1.0 - 1e-12, first, last)
    if late is not None:

        def too_long(index: int) -> bool:
            return (quantile_or_none(law(index), 0.95) or math.inf) > late

        if too_long(first):
            return f"its 95 % quantile of runs exceeds {late} even at a mean of one run"
        if too_long(last):
            last = first_true(too_long, first, last) - 1
            often = "once" if late == 1 else f"{late} times"
            end = f": one step further, over 5 % of searches run more than {often}"
    return Grid(whole.value(first), whole.value(last), whole.digits), end


def _in_turn(ask: Accountant, base: Guarantee, family: LawFamily, target: float, grid: Grid) -> Crossing[BoundResult]:
    """With (ε, δ) parts the bound need not rise with a fixed number of runs: small ones are asked in turn."""
    passed: tuple[float | None, BoundResult | None] = None, None
    for index in range(grid.first, min(grid.last, grid.first + _IN_TURN) + 1):
        value = grid.value(index)
        cost = ask.cost(base, family.at(value))
        if not cost.epsilon <= target:
            return Crossing(*passed, value, cost)
        passed = value, cost
    return Crossing(*passed, None, None)


def _as_given(ask: Accountant, base: Guarantee, family: LawFamily, target: float) -> Solution:
    """A law without a parameter to solve for: it meets the target or it does not."""
    assert family.given is not None
    cost = ask.cost(base, family.given)
    why = f"{family.dist} has no parameter to solve for"
    if not ask.meets(cost, target):
        return Solution(family, None, cost=cost, reason=f"{why}, and costs ε = {round_up(cost.epsilon, 5):g}")
    return Solution(family, None, None, family.given, cost, reason=why)


# ---------------------------------------------------------------------------------------------------------------------
# the question


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
    delta: float = 1e-6,
    method: str = "best",
    conversion: str = "best",
    orders: Any = None,
    compositions: int | None = None,
    sampling: Training | None = None,
    progress: Progress | None = None,
    **release: Any,
) -> PlanResult:
    """Solve for the search, or for the noise of one run, that a privacy target pays for.

    Parameters
    ----------
    base : Guarantee or None
        Guarantee of one run. With ``solve_for`` a noise: what else happens in the same run, if anything.
    runs : RunCount, str or mapping, optional
        A law of K; see ``laws``.
    laws : iterable of RunCount, str or mapping, optional
        Laws to consider; each one's scale parameter (mu, gamma, p, k, n, accept) is solved for, whatever value it has.
        Default: Poisson and the truncated negative binomial with eta -0.5, 0, 0.5 and 1.
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
    delta, method, conversion, orders
        As in ``bound``.
    compositions : int, optional
        With ``solve_for`` a noise: one run is that many compositions of ``base`` and the noise.
    sampling : (float, int) or callable, optional
        For ``"dpsgd-noise"``: sampling rate and steps, or a function from the noise multiplier to the guarantee of one
        run (several trainings, candidates with rates and steps of their own).
    progress : callable, optional
        Called with (done, expected) evaluations.
    **release
        Further arguments of ``bound``: what else is released, and how the search was run.

    Returns
    -------
    PlanResult

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
    goal = aims.goal(maximize)
    kind = _checked(solve_for, target_epsilon, target_success, max_runs_p95, success_rate)
    named = [*([runs] if runs is not None else []), *(laws if laws is not None else [])]
    families = families_of(named, DEFAULT_FAMILIES)
    ask = Accountant(delta, method, conversion, orders, release, Ticker(progress, 12 * len(families)))
    conditions: dict[str, float | None] = {}
    order: str | None = goal
    if kind != "runs":
        if target_epsilon is None:
            raise InvalidInput("target_epsilon", None, "say what the whole search may cost, e.g. 4")
        one_run = _one_run(base, kind, compositions, sampling)
        found = [solve_noise(ask, law, kind, one_run, target_epsilon) for law in _complete(families, mean, kind)]
        order = maximize
        conditions.update(compositions=compositions, mean=mean)
        if isinstance(sampling, tuple):
            conditions.update(sampling_rate=sampling[0], steps=sampling[1])
    else:
        if mean is not None:
            raise InvalidInput("mean", mean, "is what plan solves for: leave it out")
        if base is None:
            raise InvalidInput("zcdp", None, "say what one run guarantees, e.g. --zcdp 0.1")
        solve = _Solver(ask, base, aims, goal, target_epsilon, target_success, max_runs_p95)
        found = [solve(family) for family in families]
        if optimize_eta:
            found += _best_eta(solve, found)
        order = goal if target_success is None else None
    found.sort(key=lambda item: _rank(item, order, aims, kind))
    if found[0].runs is None:
        raise unreachable(found, target_epsilon, target_success, delta)
    conditions.update(target_success=target_success, max_runs_p95=max_runs_p95, success_rate=success_rate)
    reason = _reason(found, order, aims, target_epsilon, kind)
    constraints = {key: value for key, value in conditions.items() if value is not None}
    unused = _not_used(named) if kind == "runs" else ()
    return PlanResult(base, delta, target_epsilon, tuple(found), reason, order, aims, constraints, unused)


def _checked(
    solve_for: str | None, target: float | None, success: float | None, late: int | None, rate: float | None
) -> str:
    """What is solved for, once everything that was asked for makes sense together."""
    kind = "runs" if solve_for is None else solve_for
    if kind != "runs" and kind not in NOISES:
        raise InvalidInput("solve_for", solve_for, f"give one of runs, {', '.join(NOISES)}")
    if target is None and success is None:
        raise InvalidInput("target_epsilon", None, "say what the whole search may cost, e.g. 4")
    if target is not None and not (target > 0.0 and math.isfinite(target)):
        raise InvalidInput("target_epsilon", target, "give a finite number > 0")
    if success is not None:
        if not 0.0 < success < 1.0:
            raise InvalidInput("target_success", success, "give a probability between 0 and 1")
        if rate is None:
            raise InvalidInput("target_success", success, "needs the chance of one run: give --success-rate")
    if late is not None and late < 1:
        raise InvalidInput("max_runs_p95", late, "give a whole number >= 1")
    return kind


@dataclass(frozen=True)
class _Solver:
    """Solves for the runs of any law, with a success target or without."""

    ask: Accountant
    base: Guarantee
    aims: Aims
    goal: str
    target: float | None
    success: float | None
    late: int | None

    def __call__(self, family: LawFamily, start: float = 10.0) -> Solution:
        if self.success is not None:
            return solve_success(self.ask, self.base, family, self.success, self.aims, self.target, self.late)
        assert self.target is not None
        return solve_runs(self.ask, self.base, family, self.target, self.late, start)


def _best_eta(solve: _Solver, known: list[Solution]) -> list[Solution]:
    """The best law of the whole family, and Poisson to hold it against, unless they are known already."""
    poisson = next((item for item in known if item.family == family_of("poisson")), None)
    poisson = poisson if poisson is not None else solve(family_of("poisson"))
    means = [item.runs.mean for item in (poisson, *known) if item.runs is not None]
    solve.ask.tick.expected += 40 * 10
    rough = replace(solve, ask=replace(solve.ask, certify=False))

    def worth(family: LawFamily) -> float:
        item = rough(family, means[-1] if means else 10.0)
        if item.runs is None:
            return -math.inf
        means.append(item.runs.mean)
        if solve.success is not None and item.cost is not None:
            return -item.cost.epsilon
        return solve.aims.worth(solve.goal, item.runs)

    best = best_of_family(worth, poisson.runs.mean if poisson.runs is not None else None)
    fresh = [] if any(item.family == best for item in known) else [solve(best)]
    return fresh if poisson in known or best == poisson.family else [*fresh, poisson]


def _complete(families: Iterable[LawFamily], mean: float | None, kind: str) -> list[RunCount]:
    """The laws, at the mean where their scale is open."""
    for family in families:
        if family.given is None and mean is None:
            raise InvalidInput("mean", None, f"--solve-for {kind} needs the number of runs: give --mean, e.g. 10")
    return [family.given or family.with_mean(mean or 1.0) for family in families]


def _one_run(
    base: Guarantee | None, kind: str, compositions: int | None, sampling: Training | None
) -> Callable[[float], Guarantee]:
    """One run's guarantee as a function of its noise, beside whatever else happens in it."""
    target = NOISES[kind].target
    if target is not None:
        make = load(target)
    elif sampling is None:
        remedy = "give the sampling rate and the steps: --sample-rate and --steps, or --examples and --epochs"
        raise InvalidInput("solve_for", kind, remedy)
    else:
        make = sampling if callable(sampling) else _training(*sampling)

    def one_run(x: float) -> Guarantee:
        whole = make(x) if base is None else compose(base, make(x))
        return whole if compositions is None else repeat(whole, compositions)

    return one_run


def _training(rate: float, steps: int) -> Callable[[float], Guarantee]:
    from hpcalc.guarantees.dpsgd import DPSGD

    return lambda sigma: DPSGD(rate, sigma, steps)


def _not_used(named: Iterable[LawLike]) -> tuple[str, ...]:
    """What to say of scales that were given: an object cannot leave its scale open, a law in words could have."""
    written = [family_of(law) for law in named if not isinstance(law, (RunCount, LawFamily))]
    return tuple(
        f"{family.label}: its {family.scale} is solved for, the value given is not used"
        for family in written
        if family.given is not None and family.scale is not None
    )


def _rank(item: Solution, goal: str | None, aims: Aims, kind: str) -> tuple[float, float]:
    """What the rows are sorted by: the goal, else the least noise, else the least ε."""
    if item.runs is None or item.cost is None:
        return math.inf, math.inf
    if goal is not None:
        return -aims.worth(goal, item.runs), item.runs.log_mean
    if kind == "runs":
        return item.cost.epsilon, item.runs.log_mean
    assert item.value is not None
    return -NOISES[kind].grid.sign * item.value, 0.0


def _reason(found: list[Solution], goal: str | None, aims: Aims, target: float | None, kind: str) -> str:
    """Why the first row is recommended, and what speaks for another one."""
    fit = [item for item in found if item.runs is not None]
    best = fit[0].runs
    assert best is not None
    within = f"ε <= {target:g}" if target is not None else "the target"
    several = f"of the {len(fit)} laws that meet {within}"
    only = f"the only one of {len(found)} laws that meets {within}" if len(found) > 1 else f"the law meets {within}"
    if kind != "runs" and goal is None:
        if len(fit) == 1:
            return f"the least noise that meets {within}"
        return f"the least noise {several}{_against_quality(fit, aims)}"
    if goal is None:
        return f"the smallest ε {several}" if len(fit) > 1 else only
    if not math.isfinite(aims.worth(goal, best)):
        return f"the first {several}" if len(fit) > 1 else only
    most, measure, value = aims.told(goal, best)
    return f"the {most} {measure}, {value}, {several}" if len(fit) > 1 else f"{only}; {measure} {value}"


def _against_quality(fit: list[Solution], aims: Aims) -> str:
    """What less noise is traded for: how good and how long the search is, and the noise of laws that find more."""
    goal = aims.goal(None)
    told: list[str] = []
    last = -math.inf
    for item in fit:  # by rising noise: of these, laws that find more than any before
        assert item.runs is not None
        worth = aims.worth(goal, item.runs)
        if worth > last:
            told.append(f"{aims.told(goal, item.runs)[2]} at {item.value:g} ({item.family.label})")
            last = worth
    runs = fit[0].runs
    assert runs is not None
    _, measure, value = aims.told(goal, runs)
    here = f", with {measure} {value} and 95 % of searches ending by {quantile_or_none(runs, 0.95)} runs"
    return f"{here}; more costs more noise: {', '.join(told[1:])}" if len(told) > 1 else here


def unreachable(
    found: list[Solution],
    target: float | None,
    success: float | None,
    delta: float,
    option: str = "--target-epsilon",
) -> TargetOutOfReach:
    """What can be said where no law meets a target: the nearest that one does."""
    costs = [(item.cost.epsilon, item) for item in found if item.cost is not None and item.cost.epsilon < math.inf]
    if target is not None and costs:
        least, item = min(costs, key=lambda pair: pair[0])
        aim = "the search" if success is None else f"a success probability of {success:g}"
        shown = round_up(least, 5)
        return TargetOutOfReach(
            f"target ε = {target:g} at δ = {delta:g} is out of reach: the least {aim} can cost is {shown:g} "
            f"({item.family.label});\ngive {option} {shown:g} or more, or a run that loses less (more noise)",
            reachable={"low": upper_or_none(least), "high": None},
        )
    reasons = "; ".join(f"{item.family.label}: {item.reason}" for item in found)
    hint = "" if success is None else ";\ngive a smaller --target-success, or other laws"
    return TargetOutOfReach(f"no law meets the target: {reasons}{hint}")
