"""``compare``: laws of K side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hpcalc import __version__
from hpcalc.errors import ExitCode, InvalidInput, TargetOutOfReach
from hpcalc.guarantees import Guarantee
from hpcalc.laws import RunCount
from hpcalc.questions.oracle import CostOracle, Ticker
from hpcalc.questions.planning import Solution, law_at_epsilon, law_at_success, unreachable
from hpcalc.questions.rows import Aims, finite_mean, law_fields, quantile_or_none
from hpcalc.questions.search_cost import BoundResult, finite
from hpcalc.questions.shapes import DEFAULT_SHAPES, LawLike, Shape, shape_of, shapes_of

__all__ = ["CompareResult", "Entry", "compare", "parse_sweep"]

Progress = Callable[[int, int], None]
_DEFAULT_MEAN = 10.0
_LARGEST_SWEEP = 1000


@dataclass(frozen=True)
class Entry:
    """One law in a comparison.

    Attributes
    ----------
    shape : Shape
        The law but for its scale.
    runs : RunCount or None
        The law; None where it cannot take what was asked of it.
    cost : BoundResult or None
        What ``bound`` says.
    reason : str or None
        Why there is no law, or no finite bound.
    """

    shape: Shape
    runs: RunCount | None
    cost: BoundResult | None
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class CompareResult:
    """Laws of K side by side for one base.

    Attributes
    ----------
    base : Guarantee
        One run.
    delta : float
        δ.
    entries : tuple of Entry
        In the order the laws were named; in a sweep, law by law and mean by mean.
    footing : dict
        What the laws have in common: mean, at_epsilon, at_success or sweep.
    """

    base: Guarantee
    delta: float
    entries: tuple[Entry, ...]
    footing: dict[str, Any]
    aims: Aims

    @property
    def exit_code(self) -> ExitCode:
        """0, or 3 if no law has a finite bound."""
        good = any(entry.cost is not None and entry.cost.epsilon < math.inf for entry in self.entries)
        return ExitCode.OK if good else ExitCode.NO_FINITE_BOUND

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows under the published keys."""
        return [_row(entry, self.aims) for entry in self.entries]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know."""
        out = [*self.base.warnings, *self.aims.warnings]
        return tuple(dict.fromkeys(out))

    @property
    def _single_run(self) -> float | None:
        """ε of one run: what every row stands beside."""
        single = next((entry.cost.single_run for entry in self.entries if entry.cost is not None), None)
        return None if single is None else finite(single.value)

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys."""
        out: dict[str, Any] = {
            "hpcalc_version": __version__,
            "command": "compare",
            "base": self.base.describe(),
            "delta": self.delta,
            "single_run": {"epsilon": self._single_run},
            **self.footing,
        }
        if self.aims.success_rate is not None:
            out["success_rate"] = self.aims.success_rate
        out["rows"] = self.rows
        if self.exit_code != ExitCode.OK:
            out["reason"] = next((entry.reason for entry in self.entries if entry.reason), "no bound is finite")
        out["warnings"] = list(self.warnings)
        return out


def _row(entry: Entry, aims: Aims) -> dict[str, Any]:
    runs, cost = entry.runs, entry.cost
    if runs is None or cost is None:
        return {"dist": entry.shape.dist, "parameters": dict(entry.shape.parameters), "epsilon": None,
                "reason": entry.reason}  # fmt: skip
    out: dict[str, Any] = law_fields(runs)
    out["mean_runs"] = finite_mean(runs)
    out["p95_runs"] = quantile_or_none(runs, 0.95)
    out["prob_zero"] = runs.prob_zero
    out["epsilon"] = finite(cost.epsilon)
    out["method"] = cost.best.method if cost.best is not None else None
    if cost.lower is not None:
        out["lower_bound"] = finite(cost.lower.epsilon)
    out.update(aims.fields(runs))
    if entry.reason is not None:
        out["reason"] = entry.reason
    return out


def parse_sweep(text: str) -> list[float]:
    """Means of a sweep, ``"mean=1:1000:30"``: from, to, how many, evenly spaced in the logarithm.

    Examples
    --------
    >>> [round(mean, 6) for mean in parse_sweep("mean=1:100:3")]
    [1.0, 10.0, 100.0]
    """
    shape = 'write mean=FROM:TO:COUNT, as in "mean=1:1000:30"'
    key, equals, rest = str(text).partition("=")
    parts = rest.split(":")
    if key.strip() != "mean" or not equals or len(parts) != 3:
        raise InvalidInput("sweep", text, shape)
    try:
        low, high, count = float(parts[0]), float(parts[1]), float(parts[2])
    except ValueError:
        raise InvalidInput("sweep", text, shape) from None
    if not (0.0 < low <= high < math.inf and count == math.floor(count) and 1 <= count <= _LARGEST_SWEEP):
        raise InvalidInput("sweep", text, f"give 0 < FROM <= TO and a COUNT from 1 to {_LARGEST_SWEEP}")
    steps = int(count)
    if steps == 1:
        return [low]
    ratio = math.log(high / low) / (steps - 1)
    return [low, *(low * math.exp(i * ratio) for i in range(1, steps - 1)), high]


def compare(
    base: Guarantee,
    laws: Iterable[LawLike] | None = None,
    *,
    mean: float | None = None,
    at_epsilon: float | None = None,
    at_success: float | None = None,
    sweep: str | Iterable[float] | None = None,
    success_rate: float | None = None,
    scores: Iterable[float] | None = None,
    minimize: bool = False,
    delta: float = 1e-6,
    method: str = "best",
    conversion: str = "best",
    orders: Any = None,
    lower: bool = True,
    progress: Progress | None = None,
) -> CompareResult:
    """Laws of K side by side: at one mean, at one ε, or at one chance of success.

    Parameters
    ----------
    base : Guarantee
        Guarantee of one run.
    laws : iterable of RunCount, str or mapping, optional
        Default: Poisson, the truncated negative binomial with eta -0.5, 0, 0.5 and 1, and a fixed number of runs.
    mean : float, optional
        Common mean, 10 by default. A law whose own scale was given keeps it.
    at_epsilon : float, optional
        Solve every law's scale so that the whole search costs at most this.
    at_success : float, optional
        Solve every law's scale for the fewest runs with this chance of success; needs ``success_rate``.
    sweep : str or iterable of float, optional
        ``"mean=1:1000:30"``, or means: a row for each law and mean.
    success_rate, scores, minimize
        As in ``utility``.
    delta, method, conversion, orders
        As in ``bound``.
    lower : bool
        Also evaluate lower bounds.
    progress : callable, optional
        Called with (done, expected) evaluations.

    Returns
    -------
    CompareResult

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> rows = compare(ZCDP(0.1), ["poisson", "tnb:eta=0"], mean=10.0).rows
    >>> [(row["dist"], round(row["epsilon"], 3)) for row in rows]
    [('poisson', 4.226), ('tnb', 2.991)]
    """
    aims = Aims.of(success_rate, scores, minimize)
    footings: dict[str, Any] = {"mean": mean, "at_epsilon": at_epsilon, "at_success": at_success, "sweep": sweep}
    asked = {key: value for key, value in footings.items() if value is not None}
    if len(asked) > 1:
        first, second = list(asked)[:2]
        raise InvalidInput(second, asked[second], f"compares on another footing than {first}: keep one of them")
    if at_success is not None and success_rate is None:
        raise InvalidInput("at_success", at_success, "needs the chance that one run is good: give --success-rate")
    shapes = shapes_of(laws, (*DEFAULT_SHAPES, shape_of("fixed")))
    if not asked and all(shape.given is None for shape in shapes):
        asked = {"mean": _DEFAULT_MEAN}
    looks = 1 if at_epsilon is None else 17
    oracle = CostOracle(delta, method, conversion, orders, Ticker(progress, looks * len(shapes)))
    entries: list[Entry] = []
    solved: list[Solution] = []
    if sweep is not None:
        means = parse_sweep(sweep) if isinstance(sweep, str) else [float(x) for x in sweep]
        oracle.tick.expected = len(means) * len(shapes)
        for shape in shapes:
            seen: set[RunCount] = set()
            for each in means:
                entry = _at_mean(base, shape, each, oracle, lower=lower)
                # a fixed number of runs meets some means twice; where there is no law at a mean, there is no row
                if entry.runs is not None and entry.runs not in seen:
                    seen.add(entry.runs)
                    entries.append(entry)
        asked = {"sweep": sweep if isinstance(sweep, str) else means}
    else:
        for shape in shapes:
            if at_epsilon is not None:
                solved.append(law_at_epsilon(base, shape, at_epsilon, oracle))
                entries.append(_found(shape, (solved[-1].runs, solved[-1].reason), base, oracle, lower))
            elif at_success is not None:
                entries.append(_found(shape, law_at_success(base, shape, at_success, aims), base, oracle, lower))
            elif shape.given is not None:
                entries.append(Entry(shape, shape.given, oracle.full(base, shape.given, lower=lower)))
            else:
                entries.append(_at_mean(base, shape, asked.get("mean", _DEFAULT_MEAN), oracle, lower=lower))
    if at_epsilon is not None and not any(entry.runs is not None for entry in entries):
        raise TargetOutOfReach(unreachable(solved, at_epsilon, None, delta, "--at-epsilon"))
    return CompareResult(base, float(delta), tuple(entries), asked, aims)


def _at_mean(base: Guarantee, shape: Shape, mean: float, oracle: CostOracle, *, lower: bool) -> Entry:
    try:
        runs = shape.with_mean(mean)
    except InvalidInput as error:
        if error.parameter == "mean" and shape.scale is not None and mean > 0.0:
            return Entry(shape, None, None, f"no mean of {mean:g}: {error.remedy}")
        raise
    return _priced(shape, runs, oracle.full(base, runs, lower=lower))


def _priced(shape: Shape, runs: RunCount, cost: BoundResult, reason: str | None = None) -> Entry:
    if cost.best is None:
        reason = cost.reason
    return Entry(shape, runs, cost, reason)


def _found(
    shape: Shape, found: tuple[RunCount | None, str | None], base: Guarantee, oracle: CostOracle, lower: bool
) -> Entry:
    runs, reason = found
    if runs is None:
        return Entry(shape, None, None, reason)
    return _priced(shape, runs, oracle.full(base, runs, lower=lower), reason)
