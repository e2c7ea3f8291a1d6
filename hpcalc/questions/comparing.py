"""``compare``: laws of K side by side."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcalc.errors import ExitCode, InvalidInput, require
from hpcalc.guarantees import Guarantee, checked_guarantee
from hpcalc.laws.family import DEFAULT_FAMILIES, LawFamily, LawLike, families_of, family_of
from hpcalc.questions import solving
from hpcalc.questions.asked import Asked, about_delta
from hpcalc.questions.measures import NEEDS_RATE, Aims
from hpcalc.questions.rows import known
from hpcalc.questions.search_cost import Progress
from hpcalc.questions.solving import Accountant, PricedLaws, Solution

_DEFAULT_MEAN = 10.0
_LARGEST_SWEEP = 1000
_CURVE_MEANS = 13
_LONGEST_CURVE = 1e9  # mean number of runs beyond which a law is told, not drawn


@dataclass(frozen=True, eq=False, repr=False)
class CompareResult(PricedLaws):
    """Laws of K side by side, in the order they were named; in a sweep, law by law and mean by mean."""

    base: Guarantee
    footing: dict[str, Any]  # what the laws have in common: mean, at_epsilon, at_success or sweep
    in_use: bool = False  # whether the first is the law that the user's own search draws K from
    lower: bool = True  # whether lower bounds were asked for
    curves: tuple[Solution, ...] = ()  # each law at means around its row's, for a picture

    @property
    def epsilon(self) -> float:
        """The least ε of the laws; inf if none is finite."""
        return min((entry.cost.epsilon for entry in self.entries if entry.cost and entry.runs), default=math.inf)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows under the published keys."""
        rows = [entry.fields(self.aims, 95, lower=self.lower) for entry in self.entries]
        if self.in_use:
            rows[0] = {"law": rows[0]["law"], "in_use": True, **rows[0]}
        return rows

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.base.warnings, *about_delta(self.asked), *self.aims.warnings]))

    def document(self) -> dict[str, Any]:
        reason = next((entry.reason for entry in self.entries if entry.reason), "no bound is finite")
        return {
            **self.told("compare"),
            **self.footing,
            **known(success_rate=self.aims.success_rate),
            "rows": self.rows,
            **({"reason": reason} if self.exit_code != ExitCode.OK else {}),
            "warnings": list(self.warnings),
        }


def parse_sweep(text: str) -> list[float]:
    """Means of a sweep, ``"mean=1:1000:30"``: from, to, how many, evenly spaced in the logarithm."""
    parts = re.fullmatch(r"\s*mean\s*=([^:]+):([^:]+):([^:]+)", str(text))
    try:
        low, high, count = map(float, parts.groups() if parts else ())
    except ValueError:
        raise InvalidInput("sweep", text, 'write mean=FROM:TO:COUNT, as in "mean=1:1000:30"') from None
    if not (0.0 < low <= high < math.inf and count == math.floor(count) and 1 <= count <= _LARGEST_SWEEP):
        raise InvalidInput("sweep", text, f"give 0 < FROM <= TO and a COUNT from 1 to {_LARGEST_SWEEP}")
    return list(np.geomspace(low, high, int(count)).tolist())


def compare(
    base: Guarantee,
    laws: Iterable[LawLike] | None = None,
    *,
    mean: float | None = None,
    at_epsilon: float | None = None,
    at_success: float | None = None,
    sweep: str | Iterable[float] | None = None,
    in_use: LawLike | None = None,
    success_rate: float | None = None,
    scores: Iterable[float] | None = None,
    minimize: bool = False,
    lower: bool = True,
    curves: bool = False,
    progress: Progress | None = None,
    **asked: Any,
) -> CompareResult:
    """Laws of K side by side: at one mean, at one ε, or at one chance of success.

    Parameters
    ----------
    base : Guarantee
        Guarantee of one run.
    laws : iterable of RunCount, str or mapping, optional
        Default: Poisson, the truncated negative binomial with eta -0.5, 0, 0.5 and 1, and the composition of every run,
        which is what a grid costs.
    mean : float, optional
        Common mean; that of the law in use, else 10, by default. A law whose own scale was given keeps it.
    at_epsilon : float, optional
        Solve every law's scale so that the whole search costs at most this.
    at_success : float, optional
        Solve every law's scale for the fewest runs with this chance of success; needs ``success_rate``.
    sweep : str or iterable of float, optional
        ``"mean=1:1000:30"``, or means: a row for each law and mean.
    in_use : RunCount, str or mapping, optional
        The law that K is drawn from so far: a marked row, as it is, above the others.
    success_rate, scores, minimize
        As in ``utility``.
    lower, curves : bool
        Also evaluate lower bounds; also price each law at means around its row's, for a picture.
    progress : callable, optional
        Called with (done, expected) evaluations.
    **asked
        As in ``bound``: ``delta``, ``method``, ``conversion``, ``orders``, how the search was run, what else is
        released.

    Examples
    --------
    >>> from hpcalc.guarantees import ZCDP
    >>> rows = compare(ZCDP(0.1), ["poisson", "tnb:eta=0"], mean=10.0).rows
    >>> [(row["law"]["dist"], round(row["epsilon"], 3)) for row in rows]
    [('poisson', 4.226), ('tnb', 2.991)]
    """
    whole = Asked(**asked).beside(checked_guarantee(base))
    aims = Aims.of(success_rate, scores, minimize)
    footing = known(mean=mean, at_epsilon=at_epsilon, at_success=at_success, sweep=sweep)
    first, *more = footing or [""]
    require(
        *((key, footing[key], False, f"compares on another footing than {first}: keep one of them") for key in more),
        ("at_epsilon", at_epsilon, 0.0 < footing.get("at_epsilon", 1.0) < math.inf, "give a finite number > 0"),
        ("at_success", at_success, 0.0 < footing.get("at_success", 0.5) < 1.0, "give a probability between 0 and 1"),
        ("at_success", at_success, at_success is None or success_rate is not None, NEEDS_RATE),
    )
    families = families_of(laws, (*DEFAULT_FAMILIES, family_of("composition")))
    used = None if in_use is None else family_of(in_use).given
    if not footing and all(family.given is None for family in families):
        footing = {"mean": used.mean if used is not None and math.isfinite(used.mean) else _DEFAULT_MEAN}
    means = [] if sweep is None else parse_sweep(sweep) if isinstance(sweep, str) else [float(x) for x in sweep]
    expected = len(means) if means else 1 if at_epsilon is None else 10
    ask = Accountant(whole, at_epsilon, None, progress, expected * len(families))
    present = [] if used is None else [Solution(family_of(used), used)]
    if sweep is not None:
        found = [item for family in families for item in _swept(family, means)]
        footing = {"sweep": sweep if isinstance(sweep, str) else means}
    elif at_epsilon is not None:
        found = [solving.solve_runs(ask, base, family) for family in families]
        if all(item.runs is None for item in found):
            raise solving.unreachable(ask, found, option="--at-epsilon")
    elif at_success is not None:
        found = [solving.law_of_success(family, at_success, aims) for family in families]
    else:
        found = [solving.at_mean(family, footing.get("mean", _DEFAULT_MEAN)) for family in families]
        found = [item for item in found if not any(item.same_law(other) for other in present)]
    entries = tuple(ask.priced(base, item, lower=lower) for item in (*present, *found))
    around = _around(entries) if curves and sweep is None else ()
    drawn = tuple(ask.priced(base, item, lower=False) for item in around)
    return CompareResult(base, whole, entries, aims, footing, bool(present), lower, drawn)


def _swept(family: LawFamily, means: Iterable[float]) -> Iterable[Solution]:
    """A law at each mean that it can have; whole numbers of runs meet some means twice."""
    free = family if family.scale is None else replace(family, given=None)
    found = (solving.at_mean(free, each) for each in means)
    return {item.runs: item for item in found if item.runs is not None}.values()


def _around(entries: Iterable[Solution]) -> Iterator[Solution]:
    """Each law at means around its row's, the row among them, so that the row can be seen on its curve."""
    for entry in entries:
        if entry.family.scale is not None and entry.runs is not None and entry.runs.mean <= _LONGEST_CURVE:
            means = np.geomspace(1.0, max(3.0 * entry.runs.mean, 30.0), _CURVE_MEANS).tolist()
            points = [*_swept(entry.family, means), entry]
            yield from sorted(points, key=lambda point: math.inf if point.runs is None else point.runs.mean)
