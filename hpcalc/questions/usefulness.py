"""``utility``: what the best of K runs is worth, and how long the search takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hpcalc.answer import Answer
from hpcalc.errors import ExitCode, InvalidInput
from hpcalc.laws import Law, RunCount, checked_law
from hpcalc.questions.measures import Aims, BestScore
from hpcalc.questions.rows import finite, head, known, law_document, length_fields

__all__ = ["UtilityResult", "utility"]


@dataclass(frozen=True, eq=False, repr=False)
class UtilityResult(Answer):
    """What a law of K is worth; what is None was not asked, or is not known where the first accepted run is released.

    ``expected_quantile`` is ``E[K/(K+1)]``.
    """

    runs: RunCount
    aims: Aims
    expected_quantile: float | None
    success_probability: float | None = None
    score: BestScore | None = None

    exit_code = ExitCode.OK

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about these numbers."""
        out = []
        if self.runs.prob_zero > 0.5:
            out.append(f"with probability {self.runs.prob_zero:.4g} the search runs nothing")
        out.extend(self.aims.warnings)
        if self.score is not None and self.score.prob_top > 0.5:
            out.append(
                f"the best score given is reached with probability {self.score.prob_top:.3g}: "
                f"{self.score.count} scores say little about a search of this length"
            )
        return tuple(out)

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys."""
        out: dict[str, Any] = {
            **head("utility"),
            "law": law_document(self.runs),
            "mean_runs": finite(self.runs.mean),
            "sd_runs": finite(self.runs.sd),
            "prob_zero": self.runs.prob_zero,
            **length_fields(self.runs, 50, 95, 99),
            **known(expected_quantile=self.expected_quantile),
        }
        if self.success_probability is not None:
            out |= {"success_rate": self.aims.success_rate, "success_probability": self.success_probability}
        score = self.score
        if score is not None:
            out["expected_score"] = score.expected
            out["score"] = {
                **{key: getattr(score, key) for key in ("median", "p5", "p95", "single_run", "count")},
                "prob_best_given": score.prob_top,
                "best_is": "smallest" if self.aims.minimize else "largest",
            }
        if None in (out["mean_runs"], out["sd_runs"], out["p99_runs"]):
            out["reason"] = "a number of runs above 1e300 is shown as null"
        return {**out, "warnings": list(self.warnings)}


def utility(
    runs: RunCount,
    *,
    success_rate: float | None = None,
    scores: Iterable[float] | None = None,
    minimize: bool = False,
) -> UtilityResult:
    """What a random number of runs is worth, and how long it takes.

    Parameters
    ----------
    runs : RunCount
        Law of the number of runs.
    success_rate : float, optional
        Probability in (0, 1] that one run is good.
    scores : iterable of float, optional
        Scores of single runs, from public data or pilot runs that were paid for.
    minimize : bool
        Whether the least score is the best.

    Returns
    -------
    UtilityResult

    Raises
    ------
    InvalidInput
        For values outside their range, and for scores of a search that stops at the first accepted run.

    References
    ----------
    Papernot and Steinke 2022, Section 3.5 and Appendix A.2.1.

    Examples
    --------
    >>> from hpcalc.laws import Poisson
    >>> answer = utility(Poisson(10.0), success_rate=0.01)
    >>> round(answer.expected_quantile, 6), round(answer.success_probability, 6)
    (0.900005, 0.095163)
    """
    checked_law(runs)
    if not isinstance(runs, Law):
        for name, value in (("success_rate", success_rate), ("scores", scores)):
            if value is not None:
                raise InvalidInput(name, "given", f"{runs.name} releases the first accepted run, not the best of K")
        return UtilityResult(runs, Aims(), None)
    aims = Aims.of(success_rate, scores, minimize)
    return UtilityResult(runs, aims, runs.expected_quantile, aims.success(runs), aims.score(runs))
