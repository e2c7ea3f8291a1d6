"""``plan``: the search, or the noise, that a privacy target pays for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pkgutil import resolve_name
from typing import Any, TypeAlias

import numpy as np

from hpcalc.errors import require
from hpcalc.guarantees import Guarantee, checked_guarantee, compose, repeat
from hpcalc.laws import RunCount
from hpcalc.laws.family import DEFAULT_FAMILIES, LawFamily, LawLike, families_of, family_of
from hpcalc.logspace import Array, Lower, Upper, significant
from hpcalc.questions import rows, solving
from hpcalc.questions.asked import Asked
from hpcalc.questions.measures import NEEDS_RATE, Aims
from hpcalc.questions.search_cost import Progress
from hpcalc.questions.solving import NOISES, Accountant, PricedLaws, Solution
from hpcalc.solve import log_minimum

#: What ``"dpsgd-noise"`` solves for: (sampling rate, steps), or one run's guarantee as a function of the noise.
Training: TypeAlias = "tuple[float, int] | Callable[[float], Guarantee]"

_POISSON = family_of("poisson")
_ETA_STEP = 4e-3  # of log(1 + eta); a knob of speed, like the next
_SIZE_STEP = 0.01  # of log n


@dataclass(frozen=True, eq=False, repr=False)
class PlanResult(PricedLaws):
    """Every law with its parameter solved: the recommended one first, what meets no target last."""

    target_epsilon: float | None
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

    @property
    def reason(self) -> str:
        """Why the first row is recommended, and what speaks for another one."""
        fit = [(item, item.runs) for item in self.entries if item.runs is not None]
        (best, runs), several = fit[0], len(fit) > 1
        within = f"ε <= {self.target_epsilon:g}" if self.target_epsilon is not None else "the target"
        of = f" of the {len(fit)} laws that meet {within}"
        laws = len(self.entries)
        only = f"the only one of {laws} laws that meets {within}" if laws > 1 else f"the law meets {within}"
        if self.goal is not None and math.isfinite(self.aims.worth(self.goal, runs)):
            most, measure, value = self.aims.told(self.goal, runs)
            return f"the {most} {measure}, {value},{of}" if several else f"{only}; {measure} {value}"
        if best.solved_for == "subset":
            told = "the least ε, at the best of the sampling rates looked at"
            single = math.inf if best.cost is None else best.cost.single_run.value
            if single == math.inf:
                return told
            run, alone = "one run that is not tuned", f"ε = {significant(Upper(single), 5):g}"
            less = self.epsilon < single
            return f"{told}; it costs less than {run}, {alone}" if less else f"{told}; {run} costs {alone}"
        if best.solved_for in NOISES:
            return f"the least noise{of}{self._quality(fit)}" if several else f"the least noise that meets {within}"
        return f"the {'first' if self.goal is not None else 'smallest ε'}{of}" if several else only

    def _quality(self, fit: Sequence[tuple[Solution, RunCount]]) -> str:
        """What less noise is traded for: how good and how long the search is, and the noise of laws that find more."""
        goal, most, told = self.aims.goal(None), -math.inf, list[str]()
        for item, runs in fit:  # by rising noise: of these, laws that find more than any before
            worth, (_, measure, value) = self.aims.worth(goal, runs), self.aims.told(goal, runs)
            if not told:
                late = rows.quantile_or_none(runs, 0.95)
                told.append(f", with {measure} {value} and 95 % of searches ending by {late} runs")
            elif worth > most:
                told.append(f"{value} at {item.value:g} ({item.family.label})")
            most = max(most, worth)
        return f"{told[0]}; more costs more noise: {', '.join(told[1:])}" if len(told) > 1 else told[0]

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
    group: int = 1,
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
        Keep the 95 % quantile of K within this; like ``target_success``, also of laws that are given whole.
    success_rate, scores, minimize
        As in ``utility``.
    compositions : int, optional
        With ``solve_for`` a noise: one run is that many compositions of ``base`` and the noise.
    group : int
        With ``solve_for`` a noise: the noise protects that many records at once; ``base`` is what it is for them.
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
    goal, kind = aims.goal(maximize), "subset" if asked.get("subset") == "auto" else solve_for or "runs"
    asked |= {"subset": 0.5} if kind == "subset" else {}  # any rate will do until one is found
    named = [*([runs] if runs is not None else []), *(laws if laws is not None else [])]
    families = families_of(named, DEFAULT_FAMILIES)
    target, success, late = target_epsilon, target_success, max_runs_p95
    free = target is not None or kind == "subset" or (kind == "runs" and success is not None)
    complete = kind == "runs" or mean is not None or all(family.given is not None for family in families)
    option = "--subset auto" if kind == "subset" else f"--solve-for {kind}"
    require(
        ("solve_for", solve_for, solve_for is None or kind != "subset", "--subset auto is solved for: leave one out"),
        ("optimize_eta", True, kind == "runs" or not optimize_eta, f"{option} takes a law as it is: leave one out"),
        ("solve_for", kind, kind in (*NOISES, "runs", "subset"), f"give one of runs, {', '.join(NOISES)}"),
        ("zcdp", None, base is not None or kind in NOISES, "say what one run guarantees, e.g. --zcdp 0.1"),
        ("target_epsilon", None, free, "say what the whole search may cost, e.g. 4"),
        ("target_epsilon", target, target is None or 0.0 < target < math.inf, "give a finite number > 0"),
        ("target_success", success, success is None or 0.0 < success < 1.0, "give a probability between 0 and 1"),
        ("target_success", success, success is None or aims.success_rate is not None, NEEDS_RATE),
        ("max_runs_p95", late, late is None or late >= 1, "give a whole number >= 1"),
        ("mean", mean, mean is None or kind != "runs", "is what plan solves for: leave it out"),
        ("mean", None, complete, f"{option} needs the number of runs: give --mean, e.g. 10"),
    )
    ask = Accountant(Asked(**asked), target, late, progress, 12 * len(families) + 400 * optimize_eta)
    order = maximize if kind != "runs" else None if success is not None else goal
    rank = partial(_rank, order, aims)
    one_run = _noisy(kind, base, compositions, sampling, group) if kind in NOISES else lambda _: checked_guarantee(base)
    solve = partial(_solved, kind, one_run, mean, aims, success)
    found = [solve(ask, family) for family in families]
    if kind == "runs" and optimize_eta:
        best = _best_of_family(partial(solve, replace(ask, certify=False)), rank)
        found += [solve(ask, family) for family in {_POISSON: 0, best: 0} if family not in families]
    found.sort(key=rank)
    if found[0].runs is None or (cost := found[0].cost) is None:
        raise solving.unreachable(ask, found, success)
    rate, steps = sampling if kind == "dpsgd-noise" and isinstance(sampling, tuple) else (None, None)
    echo = rows.known(mean=mean, compositions=compositions, group=group if group > 1 else None, sampling_rate=rate,
                      steps=steps, target_success=success, max_runs_p95=late, success_rate=success_rate)  # fmt: skip
    notes = _not_used(named) if kind == "runs" else ()
    return PlanResult(base, ask.asked if kind in NOISES else cost.asked, tuple(found), aims, target, order, echo, notes)


def _noisy(
    kind: str, base: Guarantee | None, compositions: int | None, sampling: Training | None, group: int
) -> Callable[[float], Guarantee]:
    """One run by its noise, with whatever else happens in it."""
    remedy = "give the sampling rate and the steps: --sample-rate and --steps, or --examples and --epochs"
    require(("solve_for", kind, NOISES[kind].arity == 1 or sampling is not None, remedy))
    make: Callable[[float], Guarantee] = sampling if callable(sampling) else resolve_name(NOISES[kind].target)
    if isinstance(sampling, tuple):
        make = partial(resolve_name(NOISES[kind].target), sampling[0], steps=sampling[1])

    def one_run(x: float) -> Guarantee:
        noisy = make(x).group(group)
        whole = noisy if base is None else compose(base, noisy)
        return whole if compositions is None else repeat(whole, compositions)

    return one_run


def _not_used(named: Iterable[LawLike]) -> tuple[str, ...]:
    """What to say of scales that were given: an object cannot leave its scale open, a law in words could have."""
    written = [family_of(law) for law in named if not isinstance(law, (RunCount, LawFamily))]
    told = "{}: its {} is solved for, the value given is not used"
    return tuple(told.format(law.label, law.scale) for law in written if law.given is not None and law.scale)


def _solved(
    kind: str, one_run: Callable[[float], Guarantee], mean: float | None, aims: Aims, success: float | None,
    ask: Accountant, family: LawFamily, start: float = 10.0,
) -> Solution:  # fmt: skip
    """The noise of one run or the part of the records, for a law at the mean where its scale is open; else the scale.

    That is as bold as the target allows, or as safe as the chance of success allows.
    """
    law = None if kind == "runs" and family.scale is not None else family.given or family.with_mean(mean or 1.0)
    if law is not None and (why := solving.unfit(law, aims, success, ask.late)):
        return Solution(family, None, None, why, family.scale if kind == "runs" else kind)
    if law is not None and kind != "runs":
        noise = kind in NOISES
        return solving.solve_noise(ask, law, kind, one_run) if noise else solving.solve_subset(ask, one_run(0.0), law)
    base = one_run(0.0)
    if success is None or law is not None:
        return solving.solve_runs(ask, base, family, start)
    found = solving.law_of_success(family, success, aims, ask.late)
    cost = None if found.runs is None else ask.cost(base, found.runs)
    if cost is None or ask.meets(cost):
        return replace(found, cost=cost)
    why = solving.too_dear(f"the success probability needs {family.scale} = {found.value:g}, which costs", cost)
    return Solution(family, None, cost, why, family.scale)


def _rank(goal: str | None, aims: Aims, item: Solution) -> tuple[float, float]:
    """What the rows are sorted by: the goal, else the least noise, else the least ε."""
    if item.runs is not None and goal is not None:
        return -aims.worth(goal, item.runs), item.runs.log_mean
    if item.runs is None or item.cost is None:
        return math.inf, math.inf
    if item.solved_for in NOISES and item.value is not None:
        return item.value if NOISES[item.solved_for].safe == "up" else -item.value, 0.0
    return item.cost.epsilon, item.runs.log_mean


def _best_of_family(solve: Callable[..., Solution], rank: Callable[[Solution], tuple[float, float]]) -> LawFamily:
    """The best of the truncated negative binomial family, limits included, by the rank of its law once solved for.

    The family runs from eta near -1 (mostly one run, now and then very many) over the logarithmic and the geometric
    law to large eta, where it becomes Poisson given K >= 1; past infinity, at eta = -n, lie the binomial laws, which
    are sought around the Poisson law's mean, and n = E[K] is a fixed number of runs. The rank is smooth along this
    path but may have more than one peak, so the path is sampled first and only then followed.
    """
    found: dict[LawFamily, Solution] = {}
    means = [10.0]

    def loss(law: Callable[[Any], LawLike], places: Iterable[Any]) -> Array:
        families = [family_of(law(place)) for place in places]
        for family in families:
            if family not in found:
                found[family] = solve(family, means[-1])
                means.extend(runs.mean for runs in [found[family].runs] if runs is not None)
        return np.array([rank(found[family])[0] for family in families])

    negative_binomial = partial(loss, lambda x: {"dist": "tnb", "eta": significant(Lower(math.expm1(x)), 4)})
    binomial = partial(loss, lambda x: {"dist": "binomial", "n": math.ceil(math.exp(x))})
    loss(family_of, [_POISSON, "poisson:at-least-one"])
    # log(1 + eta) from eta = -0.95 to 1000, eta with four significant digits
    log_minimum(negative_binomial, np.arange(-3.0, 7.0, 0.6), accuracy=_ETA_STEP)
    poisson = found[_POISSON].runs
    if poisson is not None:
        least = math.log(max(math.ceil(poisson.mean), 1))
        log_minimum(binomial, least + np.arange(0.02, 3.4, 0.4), accuracy=_SIZE_STEP)
    return min(found, key=lambda family: rank(found[family])[0])
