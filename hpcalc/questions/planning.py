"""``plan``: the search, or the noise, that a privacy target pays for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hpcalc import __version__
from hpcalc.errors import ExitCode, InvalidInput, TargetOutOfReach
from hpcalc.guarantees import ZCDP, Gaussian, Guarantee, Laplace, PureDP, compose, repeat
from hpcalc.laws import RunCount
from hpcalc.logspace import round_up
from hpcalc.questions.eta import best_of_family
from hpcalc.questions.oracle import CostOracle, Ticker
from hpcalc.questions.rows import Aims, finite_mean, quantile_or_none
from hpcalc.questions.search_cost import BoundResult, finite
from hpcalc.questions.shapes import DEFAULT_SHAPES, LawLike, Shape, shape_of, shapes_of
from hpcalc.solve import Crossing, Grid

__all__ = ["PlanResult", "Solution", "plan"]

Progress = Callable[[int, int], None]
_GOALS = ("quantile", "success", "score", "runs")
_NOISES = ("zcdp", "pure", "gaussian", "laplace", "dpsgd-noise")
_MANY = 1e6
_IN_TURN = 20  # numbers of runs asked one after another where ε need not rise with them


@dataclass(frozen=True)
class Solution:
    """One law, or one kind of noise, with its parameter solved.

    Attributes
    ----------
    shape : Shape
        The law but for its open parameter.
    solved_for : str or None
        The parameter.
    value : float or None
        Its value, with at most six significant digits; None if none meets the target.
    runs : RunCount or None
        The law at that value.
    cost : BoundResult or None
        What ``bound`` says there.
    beyond : float or None
        The next value, one unit in the last digit bolder, that fails; None if the search ended for another reason.
    reason : str or None
        Why there is no value, or why a bolder one was not taken.
    """

    shape: Shape
    solved_for: str | None
    value: float | None
    runs: RunCount | None
    cost: BoundResult | None
    beyond: float | None = None
    reason: str | None = None

    @property
    def feasible(self) -> bool:
        """Whether the target is met."""
        return self.runs is not None


@dataclass(frozen=True, eq=False)
class PlanResult:
    """Every law with its parameter solved, one of them recommended.

    Attributes
    ----------
    rows : tuple of Solution
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
    def rows(self) -> list[dict[str, Any]]:
        """Rows under the published keys."""
        return [_row(solution, self.aims) for solution in self.solutions]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about the recommendation."""
        out = [*(self.base.warnings if self.base is not None else ()), *self.notes, *self.aims.warnings]
        runs = self.best.runs
        if runs is not None:
            late = quantile_or_none(runs, 0.95)
            if late is None or late > _MANY or not runs.mean <= _MANY:
                out.append("the recommended search may run more than a million times: give --max-runs-p95")
            if runs.prob_zero > 0.01:
                out.append(f"with probability {runs.prob_zero:.4g} the recommended search runs nothing")
        return tuple(out)

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys."""
        best = self.best
        out: dict[str, Any] = {"hpcalc_version": __version__, "command": "plan"}
        if self.base is not None:
            out["base"] = self.base.describe()
        out["delta"] = self.delta
        single = best.cost.single_run if best.cost is not None else None
        out["single_run"] = {"epsilon": None if single is None else finite(single.value)}
        out["solved_for"] = best.solved_for
        out["value"] = best.value
        out["epsilon"] = best.cost.epsilon if best.cost is not None else None
        if self.target_epsilon is not None:
            out["target_epsilon"] = self.target_epsilon
        out.update(self.constraints)
        if self.goal is not None:
            out["maximize"] = self.goal
        out["rows"] = self.rows
        out["recommended"] = {"row": 0, "reason": self.reason}
        out["warnings"] = list(self.warnings)
        return out


def _row(solution: Solution, aims: Aims) -> dict[str, Any]:
    runs, cost = solution.runs, solution.cost
    out: dict[str, Any] = {"dist": solution.shape.dist}
    out["parameters"] = dict(runs.parameters() if runs is not None else solution.shape.parameters)
    out["solved_for"] = solution.solved_for
    out["value"] = solution.value
    if runs is not None and cost is not None:
        out["mean_runs"] = finite_mean(runs)
        for percent in (50, 95, 99):
            out[f"p{percent}_runs"] = quantile_or_none(runs, percent / 100.0)
        out["prob_zero"] = runs.prob_zero
        out["epsilon"] = cost.epsilon
        out["method"] = cost.best.method if cost.best is not None else None
        out.update(aims.fields(runs))
    else:
        out["epsilon"] = None
    if solution.reason is not None:
        out["reason"] = solution.reason
    return out


@dataclass
class _Planner:
    """One question's fixed part."""

    base: Guarantee | None
    aims: Aims
    oracle: CostOracle
    target: float | None
    success: float | None
    late: int | None

    # laws

    def solve_law(self, shape: Shape, start: float = 10.0) -> Solution:
        """The boldest law of a shape within the target; with a success target, the safest that reaches it."""
        base = self.base
        assert base is not None
        if self.success is not None:
            return self._reach(shape)
        if shape.scale is None:
            return self._as_given(shape)
        span = self._span(shape)
        if isinstance(span, str):
            return Solution(shape, shape.scale, None, None, None, reason=span)
        grid, limited = span
        assert self.target is not None
        guess = _scale_value(shape, start, grid)
        if shape.whole and base.slack > 0.0:
            scanned = self._scan(shape, grid)
            if scanned.value is None or scanned.beyond is not None or grid.index(scanned.value) == grid.last:
                return self._solution(shape, scanned, limited)
            guess = 2.0 * scanned.value
        found = self.oracle.solve(
            lambda x: (base, shape.law(x)), self.target, grid, guess, lambda x: shape.law(x).mean > _MANY
        )
        if found.value is not None and found.beyond is None and grid.index(found.value) < grid.last:
            limited = f"a bolder {shape.scale} may pass too: beyond a mean of {_MANY:g} runs it is not sought"
        return self._solution(shape, found, limited)

    def _scan(self, shape: Shape, grid: Grid) -> Crossing[BoundResult]:
        """With (ε, δ) parts the bound need not rise with a fixed number of runs: small ones are asked in turn."""
        assert self.base is not None
        assert self.target is not None
        value, answer = None, None
        for index in range(grid.first, min(grid.last, grid.first + _IN_TURN) + 1):
            cost = self.oracle.full(self.base, shape.law(grid.value(index)))
            if not cost.epsilon <= self.target:
                return Crossing(value, answer, grid.value(index), cost)
            value, answer = grid.value(index), cost
        return Crossing(value, answer, None, None)

    def _solution(self, shape: Shape, found: Crossing[BoundResult], limited: str | None) -> Solution:
        if found.value is None:
            least = found.refused.epsilon if found.refused is not None else math.inf
            why = f"the least it can cost, at {shape.scale} = {found.beyond:g}, is ε = {round_up(least, 5):g}"
            return Solution(shape, shape.scale, None, None, found.refused, reason=why)
        value, cost = found.value, found.answer
        reason: str | None = None
        if found.refused is not None and found.refused.epsilon == math.inf:
            reason = f"one step further there is no finite ε at δ = {self.oracle.delta:g}"
        if found.beyond is None:
            reason = limited
            if limited is None:
                reason = f"every {shape.scale} meets the target"
                shown = _affordable(shape, value)
                if shown != value:
                    assert self.base is not None
                    value, cost = shown, self.oracle.full(self.base, shape.law(shown))
                    reason += f"; shown at a mean of {_MANY:g} runs"
        return Solution(shape, shape.scale, value, shape.law(value), cost, found.beyond, reason)

    def _as_given(self, shape: Shape) -> Solution:
        """A law without a parameter to solve for: it meets the target or it does not."""
        runs = shape.given
        assert runs is not None
        assert self.base is not None
        cost = self.oracle.full(self.base, runs)
        why = f"{shape.dist} has no parameter to solve for"
        if self.target is not None and not cost.epsilon <= self.target:
            return Solution(shape, None, None, None, cost, reason=f"{why}, and costs ε = {round_up(cost.epsilon, 5):g}")
        return Solution(shape, None, None, runs, cost, reason=why)

    def _span(self, shape: Shape) -> tuple[Grid, str | None] | str:
        """Values with a mean of at least one run within the run-time limit, and what ends them; or why none is left."""
        grid = Grid(*shape.range, digits=0 if shape.whole else 6)
        first, last = grid.first, grid.last

        def enough(index: int) -> bool:
            return shape.law(grid.value(index)).mean >= 1.0 - 1e-12

        if shape.scale == "mu" and not shape.parameters:
            first = grid.index(1.0)
        elif not enough(first):
            if not enough(last):
                return "its mean stays below one run"
            first = _first_true(enough, first, last)
        limited = None
        if self.late is not None:
            limit = self.late

            def short(index: int) -> bool:
                late = quantile_or_none(shape.law(grid.value(index)), 0.95)
                return late is not None and late <= limit

            if not short(first):
                return f"its 95 % quantile of runs exceeds {limit} even at a mean of one run"
            if not short(last):
                last = _first_true(lambda index: not short(index), first, last) - 1
                often = "once" if limit == 1 else f"{limit} times"
                limited = f"one step further, over 5 % of searches run more than {often}"
        return Grid(grid.value(first), grid.value(last), grid.digits), limited

    def reach(self, shape: Shape) -> tuple[RunCount | None, str | None]:
        """The law with the fewest runs that reaches the success probability, or why there is none."""
        goal = self.success
        assert goal is not None
        if shape.scale is None:
            return None, f"{shape.dist} has no parameter to solve for"
        span = self._span(shape)
        if isinstance(span, str):
            return None, span
        grid, limited = span

        def reached(index: int) -> bool:
            chance = self.aims.success(shape.law(grid.value(index)))
            return chance is not None and chance >= goal

        if not reached(grid.last):
            top = self.aims.success(shape.law(grid.value(grid.last)))
            shown = f"its success probability ends at {top:.6g}" if top is not None else "it has no success probability"
            return None, f"{shown}: {limited}" if limited is not None else shown
        return shape.law(grid.value(_first_true(reached, grid.first, grid.last))), None

    def _reach(self, shape: Shape) -> Solution:
        """The fewest runs that reach the success probability, if the target allows their cost."""
        assert self.base is not None
        runs, reason = self.reach(shape)
        if runs is None or shape.scale is None:
            return Solution(shape, shape.scale, None, None, None, reason=reason)
        value = float(str(runs.parameters()[shape.scale]))
        cost = self.oracle.full(self.base, runs)
        if not cost.epsilon < math.inf or (self.target is not None and not cost.epsilon <= self.target):
            price = f"costs ε = {round_up(cost.epsilon, 5):g}" if cost.epsilon < math.inf else "has no finite bound"
            reason = f"the success probability needs {shape.scale} = {value:g}, which {price}"
            return Solution(shape, shape.scale, None, None, cost, reason=reason)
        return Solution(shape, shape.scale, value, runs, cost)

    # the best eta

    def best_eta(self, known: list[Solution], goal: str) -> list[Solution]:
        """The best law of the whole family, unless it is one of those known already."""
        poisson = next((item for item in known if item.shape == shape_of("poisson")), None)
        poisson = poisson if poisson is not None else self.solve_law(shape_of("poisson"))
        self.oracle.tick.expected += 40 * 10
        starts: list[float] = [item.runs.mean for item in known if item.runs is not None]

        def worth(shape: Shape) -> float:
            runs, cost = self._rough(shape, starts[-1] if starts else 10.0)
            if runs is None:
                return -math.inf
            starts.append(runs.mean)
            return -cost if self.success is not None else _worth(goal, self.aims, runs)

        best = best_of_family(worth, poisson.runs.mean if poisson.runs is not None else None)
        fresh = [] if any(item.shape == best for item in known) else [self.solve_law(best)]
        return fresh if poisson in known or best == poisson.shape else [*fresh, poisson]

    def _rough(self, shape: Shape, start: float) -> tuple[RunCount | None, float]:
        """The law of a shape at the target to five digits, unconfirmed, and its ε."""
        base = self.base
        assert base is not None
        if self.success is not None:
            runs, _ = self.reach(shape)
            cost = math.inf if runs is None else self.oracle.quick(base, runs, self.oracle.method)
            return (runs, cost) if cost < math.inf and not (self.target and cost > self.target) else (None, math.inf)
        span = self._span(shape)
        if isinstance(span, str):
            return None, math.inf
        assert self.target is not None
        grid = Grid(span[0].safest, span[0].boldest, 5)
        value = self.oracle.rough(lambda x: (base, shape.law(x)), self.target, grid, _scale_value(shape, start, grid))
        if value is None:
            return None, math.inf
        everything = value == grid.value(grid.last) and span[1] is None
        return shape.law(_affordable(shape, value) if everything else value), self.target

    # noise

    def solve_noise(self, shape: Shape, kind: str, count: int | None, sampling: tuple[float, int] | None) -> Solution:
        """The least noise of one run for a law of K."""
        runs = shape.given
        assert runs is not None
        assert self.target is not None
        make, grid, start = _noise(kind, sampling)

        def inputs(x: float) -> tuple[Guarantee, RunCount]:
            parts = [make(x)] if self.base is None else [self.base, make(x)]
            one = compose(*parts) if len(parts) > 1 else parts[0]
            return (repeat(one, count) if count is not None else one), runs

        found = self.oracle.solve(inputs, self.target, grid, start)
        if found.value is None:
            least = found.refused.epsilon if found.refused is not None else math.inf
            why = f"even {kind} {found.beyond:g} costs ε = {round_up(least, 5):g}"
            return Solution(shape, kind, None, None, found.refused, reason=why)
        reason = None if found.beyond is not None else f"every {kind} up to here meets the target"
        return Solution(shape, kind, found.value, runs, found.answer, found.beyond, reason)


def _first_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Smallest index that holds, given that ``high`` does and that holding is monotone."""
    if holds(low):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _affordable(shape: Shape, value: float) -> float:
    """The value itself, or that of a mean somebody could still afford where the law could run for ever."""
    if not shape.law(value).mean > _MANY:
        return value
    grid = Grid(*shape.range, digits=0 if shape.whole else 6)
    return grid.value(grid.index(_parameter(shape, _MANY)))


def _parameter(shape: Shape, mean: float) -> float:
    """The open parameter at a mean."""
    assert shape.scale is not None
    value = shape.with_mean(mean).parameters().get(shape.scale)
    return float(value) if isinstance(value, (int, float)) else 1e-300


def _scale_value(shape: Shape, mean: float, grid: Grid) -> float:
    try:
        return _parameter(shape, mean)
    except InvalidInput:  # a mean beyond a binomial's n
        return grid.boldest


def _noise(kind: str, sampling: tuple[float, int] | None) -> tuple[Callable[[float], Guarantee], Grid, float]:
    if kind == "zcdp":
        return ZCDP, Grid(1e-12, 1e6), 0.1
    if kind == "pure":
        return PureDP, Grid(1e-12, 1e6), 0.3
    if kind == "gaussian":
        return Gaussian, Grid(1e9, 1e-6), 2.0
    if kind == "laplace":
        return Laplace, Grid(1e12, 1e-6), 3.0
    if sampling is None:
        raise InvalidInput(
            "solve_for", kind, "give the sampling rate and the steps: --examples, --batch-size and --epochs"
        )
    from hpcalc.guarantees.dpsgd import DPSGD

    rate, steps = sampling
    return (lambda sigma: DPSGD(rate, sigma, steps)), Grid(1e4, 1e-2), 1.0


def _goal(maximize: str | None, aims: Aims) -> str:
    if maximize is None:
        return "score" if aims.scores is not None else "success" if aims.success_rate is not None else "quantile"
    if maximize not in _GOALS:
        raise InvalidInput("maximize", maximize, f"give one of {', '.join(_GOALS)}")
    if maximize == "success" and aims.success_rate is None:
        raise InvalidInput("maximize", maximize, "needs the chance that one run is good: give --success-rate")
    if maximize == "score" and aims.scores is None:
        raise InvalidInput("maximize", maximize, "needs scores of single runs: give --scores")
    return maximize


def _worth(goal: str, aims: Aims, runs: RunCount) -> float:
    """What is maximized."""
    if goal == "runs":
        return runs.log_mean
    key = {"quantile": "expected_quantile", "success": "success_probability", "score": "expected_score"}[goal]
    value = aims.fields(runs).get(key, -math.inf)
    return -value if goal == "score" and aims.minimize else value


def plan(
    base: Guarantee | None,
    runs: LawLike | None = None,
    *,
    laws: Iterable[LawLike] | None = None,
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
    sampling: tuple[float, int] | None = None,
    progress: Progress | None = None,
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
    target_epsilon : float
        What the whole search may cost at ``delta``; may be left out beside ``target_success``.
    solve_for : {"runs", "zcdp", "pure", "gaussian", "laplace", "dpsgd-noise"}, optional
        Default ``"runs"``. Otherwise the laws must be complete, and the least noise of one run is solved for.
    maximize : {"quantile", "success", "score", "runs"}, optional
        Order of the rows. Default: the score if scores were given, else success if its rate was, else the quantile.
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
    sampling : tuple of (float, int), optional
        Sampling rate and steps for ``"dpsgd-noise"``.
    progress : callable, optional
        Called with (done, expected) evaluations.

    Returns
    -------
    PlanResult

    Raises
    ------
    TargetOutOfReach
        If nothing meets the target; the text says what is reachable.
    InvalidInput
        For values outside their range, and for questions that lack a part.

    Notes
    -----
    Every value has six significant digits (three where the search runs more than a million times on average), was
    itself given to ``bound`` and met the target; the next one did not.
    The mean number of runs is at least 1.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> best = plan(ZCDP(0.1), "tnb:eta=0", target_epsilon=4.0).best
    >>> best.solved_for, best.cost.epsilon <= 4.0
    ('gamma', True)
    """
    aims = Aims.of(success_rate, scores, minimize)
    goal = _goal(maximize, aims)
    kind = "runs" if solve_for is None else solve_for
    if kind != "runs" and kind not in _NOISES:
        raise InvalidInput("solve_for", solve_for, f"give one of runs, {', '.join(_NOISES)}")
    if target_epsilon is None and (target_success is None or kind != "runs"):
        raise InvalidInput("target_epsilon", None, "say what the whole search may cost, e.g. 4")
    if target_epsilon is not None and not (target_epsilon > 0.0 and math.isfinite(target_epsilon)):
        raise InvalidInput("target_epsilon", target_epsilon, "give a finite number > 0")
    if target_success is not None:
        if not 0.0 < target_success < 1.0:
            raise InvalidInput("target_success", target_success, "give a probability between 0 and 1")
        if success_rate is None:
            raise InvalidInput("target_success", target_success, "needs the chance of one run: give --success-rate")
    if max_runs_p95 is not None and max_runs_p95 < 1:
        raise InvalidInput("max_runs_p95", max_runs_p95, "give a whole number >= 1")
    named = [*([runs] if runs is not None else []), *(laws if laws is not None else [])]
    shapes = shapes_of(named, DEFAULT_SHAPES)
    # a law that is an object cannot leave its scale open; one in words could have
    written = [] if kind != "runs" else [law for law in named if not isinstance(law, (RunCount, Shape))]
    unused = tuple(
        f"{shape.label}: its {shape.scale} is solved for, the value given is not used"
        for shape in shapes_of(written, ())
        if shape.given is not None and shape.scale is not None
    )
    ticker = Ticker(progress, 16 * len(shapes))
    oracle = CostOracle(delta, method, conversion, orders, ticker)
    planner = _Planner(base, aims, oracle, target_epsilon, target_success, max_runs_p95)
    if kind != "runs":
        if not named:
            raise InvalidInput("dist", None, f"--solve-for {kind} needs the law of K, e.g. --dist poisson --mu 10")
        for shape in shapes:
            if shape.given is None:
                raise InvalidInput(shape.scale or "dist", None, f"--solve-for {kind} needs a complete law of K")
        found = [planner.solve_noise(shape, kind, compositions, sampling) for shape in shapes]
        bold = 1.0 if kind in ("zcdp", "pure") else -1.0
        found.sort(key=lambda item: -bold * item.value if item.value is not None else math.inf)
    else:
        if base is None:
            raise InvalidInput("zcdp", None, "say what one run guarantees, e.g. --zcdp 0.1")
        found = [planner.solve_law(shape) for shape in shapes]
        if optimize_eta:
            found += planner.best_eta(found, goal)

        def order(item: Solution) -> tuple[float, float]:
            if item.runs is None or item.cost is None:
                return (math.inf, math.inf)
            first = item.cost.epsilon if target_success is not None else -_worth(goal, aims, item.runs)
            return (first, item.runs.log_mean)

        found.sort(key=order)
    if not found[0].feasible:
        raise TargetOutOfReach(unreachable(found, target_epsilon, target_success, delta))
    constraints: dict[str, float] = {}
    asked: dict[str, float | None] = {"compositions": compositions if kind != "runs" else None}
    if kind == "dpsgd-noise" and sampling is not None:
        asked.update(sampling_rate=sampling[0], steps=sampling[1])
    asked.update(target_success=target_success, max_runs_p95=max_runs_p95, success_rate=success_rate)
    constraints.update({key: value for key, value in asked.items() if value is not None})
    reason = _reason(found, goal, aims, planner, kind)
    shown = goal if kind == "runs" and target_success is None else None
    return PlanResult(base, delta, target_epsilon, tuple(found), reason, shown, aims, constraints, unused)


def _reason(found: list[Solution], goal: str, aims: Aims, planner: _Planner, kind: str) -> str:
    fit = [item for item in found if item.feasible]
    best = fit[0]
    assert best.runs is not None
    within = f"ε <= {planner.target:g}" if planner.target is not None else "the target"
    several = f"of the {len(fit)} laws that meet {within}"
    only = f"the only one of {len(found)} laws that meets {within}" if len(found) > 1 else f"the law meets {within}"
    if kind != "runs":
        return f"the least noise {several}" if len(fit) > 1 else f"the least noise that meets {within}"
    if planner.success is not None:
        return f"the smallest ε {several}" if len(fit) > 1 else only
    worth = _worth(goal, aims, best.runs)
    if not math.isfinite(worth):
        return f"the first {several}" if len(fit) > 1 else only
    most, measure, value = {
        "quantile": ("highest", "expected quantile", f"{worth:.4f}"),
        "success": ("highest", "chance of success", f"{worth:.4f}"),
        "score": ("best", "expected score", f"{-worth if aims.minimize else worth:.5g}"),
        "runs": ("largest", "mean number of runs", f"{best.runs.mean:.4g}"),
    }[goal]
    return f"the {most} {measure}, {value}, {several}" if len(fit) > 1 else f"{only}; {measure} {value}"


def unreachable(
    found: list[Solution],
    target: float | None,
    success: float | None,
    delta: float,
    option: str = "--target-epsilon",
) -> str:
    """What can be said where no law meets a target: the nearest that one does."""
    costs = [(item.cost.epsilon, item) for item in found if item.cost is not None and item.cost.epsilon < math.inf]
    if target is not None and costs:
        least, item = min(costs, key=lambda pair: pair[0])
        aim = "the search" if success is None else f"a success probability of {success:g}"
        return (
            f"target ε = {target:g} at δ = {delta:g} is out of reach: the least {aim} can cost is "
            f"{round_up(least, 5):g} ({item.shape.label});\n"
            f"give {option} {round_up(least, 5):g} or more, or a run that loses less"
        )
    reasons = "; ".join(f"{item.shape.label}: {item.reason}" for item in found)
    hint = "" if success is None else ";\ngive a smaller --target-success, or other laws"
    return f"no law meets the target: {reasons}{hint}"


def law_at_epsilon(base: Guarantee, shape: Shape, epsilon: float, oracle: CostOracle) -> Solution:
    """The boldest law of a shape within ε."""
    if not (epsilon > 0.0 and math.isfinite(epsilon)):
        raise InvalidInput("at_epsilon", epsilon, "give a finite number > 0")
    return _Planner(base, Aims(), oracle, epsilon, None, None).solve_law(shape)


def law_at_success(
    base: Guarantee | None, shape: Shape, success: float, aims: Aims
) -> tuple[RunCount | None, str | None]:
    """The law of a shape with the fewest runs that succeeds with a probability, and why there is none."""
    if not 0.0 < success < 1.0:
        raise InvalidInput("at_success", success, "give a probability between 0 and 1")
    planner = _Planner(base, aims, CostOracle(1e-6), None, success, None)
    return planner.reach(shape)
