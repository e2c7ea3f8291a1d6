"""The table of bounds: which theorems apply to a base and a law of K, and what each says at a δ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from hpcalc.bounds import paper
from hpcalc.bounds.counted import counted_epsilon
from hpcalc.bounds.ranks import RankCurve, rank_curve
from hpcalc.bounds.refined import (
    ProfileBound,
    RefinedRDP,
    conditional_log_profile,
    conditional_pure,
    refined_pure,
    smallest_epsilon,
)
from hpcalc.catalog import METHODS
from hpcalc.conversion import CKS, PURE, Conversion, Curve, cks_epsilon, epsilon_from_rdp
from hpcalc.errors import InvalidInput
from hpcalc.guarantees import Guarantee
from hpcalc.laws import Law, RunCount, Threshold
from hpcalc.logspace import Array, Prob, logsubexp

__all__ = ["METHODS", "Evaluated", "Question", "evaluate", "wanted"]

_R1 = "Refined Rényi bound R1 (hpcalc-theory(7)), after Lemma 7 of Papernot and Steinke 2022"
_R2 = "Refined privacy-profile bound R2 (hpcalc-theory(7))"
_R3 = "Refined pure-DP bound R3 (hpcalc-theory(7)), exact"
_R4 = "Refined bound for conditional sampling R4 (hpcalc-theory(7)), after Proposition 15"
_LEMMA_20 = " with Lemma 20 of Papernot and Steinke 2022 for the probability set aside"


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
    nodes : int or None
        Number of samples.
    source : ProfileBound or None
        The bound itself, where it gives a whole privacy profile.
    """

    method: str
    epsilon: float
    citation: str
    order: float | None = None
    conversion: str | None = None
    conditions: tuple[str, ...] = ()
    nodes: int | None = None
    source: ProfileBound | None = field(default=None, compare=False, repr=False)


def wanted(method: str) -> Callable[[str], bool]:
    """Whether a method's name belongs to what ``--method`` selects.

    Raises
    ------
    InvalidInput
        For a name that is neither a method nor a group.
    """
    if method in ("best", "all"):
        return lambda name: True
    if method == "refined":
        return lambda name: name.startswith("refined")
    if method == "paper":  # as published: the sharper line is in Theorem 2's proof, not in its statement
        return lambda name: not name.startswith("refined") and name != "theorem-2-sharper"
    if method in METHODS:
        return lambda name: name == method
    raise InvalidInput("method", method, f"give best, paper, refined or one of {', '.join(METHODS)}")


@dataclass(frozen=True, eq=False)
class Question:
    """A base, a law of K and a δ, with what several bounds share.

    Attributes
    ----------
    base : Guarantee
        One run.
    runs : RunCount
        Law of the number of runs.
    log_delta : float
        Natural logarithm of δ.
    rule : str
        Conversion rule for Rényi curves.
    orders : ndarray or None
        Orders to restrict Rényi bounds to.
    thorough : bool
        Whether to count events, which takes a while; without it an answer may be larger than need be.
    """

    base: Guarantee
    runs: RunCount
    log_delta: float
    rule: str = "best"
    orders: Array | None = None
    thorough: bool = True

    @property
    def law(self) -> Law:
        """The law, where it is one of best-of-K."""
        assert isinstance(self.runs, Law)
        return self.runs

    @cached_property
    def curve(self) -> RankCurve:
        """Samples of F and F(V) for the whole base."""
        return rank_curve(self.base, self.law)

    @cached_property
    def core(self) -> tuple[Guarantee, Law, float]:
        """Guarantee, law and log of the remaining δ once the (ε, δ) parts are set aside (Lemma 20)."""
        slack = self.base.slack
        if slack == 0.0:
            return self.base, self.law, self.log_delta
        if slack >= 1.0:
            return self.base, self.law, -math.inf
        added = float(self.law.log_survival(Prob.from_u(np.array([slack])))[0])
        left = float(logsubexp(self.log_delta, added)) if added < self.log_delta else -math.inf
        return self.base.core, self.law.thin(math.log1p(-slack)), left

    @cached_property
    def core_curve(self) -> RankCurve:
        """Samples for :attr:`core`."""
        return self.curve if self.base.slack == 0.0 else rank_curve(self.core[0], self.core[1])

    @property
    def core_exhausted(self) -> bool:
        """Whether setting the (ε, δ) parts aside leaves nothing of δ."""
        return self.base.slack > 0.0 and self.core[2] == -math.inf


def evaluate(question: Question, include: Callable[[str], bool]) -> list[Evaluated]:
    """Every bound that applies, the paper's first.

    Parameters
    ----------
    question : Question
    include : callable
        Selects methods by name, see :func:`wanted`.
    """
    found = list(_paper(question, include))
    best = min((bound.epsilon for bound in found), default=math.inf)
    if isinstance(question.runs, Threshold):
        if include("refined-conditional"):
            found.append(_conditional(question))
        return found
    for name, method in (("refined-pure", _pure), ("refined-rdp", _renyi)):
        if include(name):
            bound = method(question)
            if bound is not None:
                found.append(bound)
                best = min(best, bound.epsilon)
    if include("refined-profile") and math.isfinite(question.log_delta):
        found.append(_profile(question, best))
    return found


def _paper(question: Question, include: Callable[[str], bool]) -> Iterator[Evaluated]:
    if not any(include(name) for name in METHODS if not name.startswith("refined")):
        return
    base, runs = question.base, question.runs
    curves: list[Curve] = []
    if base.slack < 1.0:
        curves = paper.curves(base, runs, orders=question.orders, sharper=include("theorem-2-sharper"))
    unanswered = not any(include(curve.method) for curve in curves)
    if unanswered and include("lemma-7") and isinstance(runs, Law) and base.slack == 0.0:
        # laws with a theorem of their own need Lemma 7 only where it is asked for by name
        curves.append(paper.lemma_7(base, runs, orders=question.orders, samples=question.curve))
    for curve in curves:
        if include(curve.method):
            answer = epsilon_from_rdp(curve, question.log_delta, question.rule)
            yield Evaluated(
                curve.method, answer.value, curve.citation, answer.order, answer.rule, conditions=curve.conditions
            )


def _renyi(question: Question) -> Evaluated | None:
    base, law, log_delta = question.core
    if question.core_exhausted or not math.isfinite(log_delta):
        return None
    bound = RefinedRDP(base, law, question.core_curve)
    answer, sharper = _refined_epsilon(bound, log_delta, question.rule, question.orders)
    if not answer.value < math.inf:
        return None
    form = "f' is a power of an affine function" if law.affine_power else "any law of K, with its mass at K = 0"
    citation, value = _R1, answer.value
    conditions: tuple[str, ...] = (form,)
    if question.thorough and question.rule == "best" and answer.order is not None and not base.exact_profile:
        value = counted_epsilon(base, law, log_delta, answer.order, value, question.core_curve)
        if value < answer.value:
            citation += ", its event counted"
            conditions = (form, "the outcomes that decide delta share their ranks and one run's budget")
    citation += _LEMMA_20 if question.base.slack > 0.0 else ""
    nodes = sharper.curve.x.size if sharper.curve is not None else None
    return Evaluated("refined-rdp", value, citation, answer.order, answer.rule, conditions, nodes=nodes)


def _refined_epsilon(
    bound: RefinedRDP, log_delta: float, rule: str, orders: Array | None
) -> tuple[Conversion, RefinedRDP]:
    """ε of R1: the order is searched on the samples at hand, which are then refined where that order's maximum lies."""
    given = bound.orders if orders is None else orders
    # Between samples far apart the bound may be loose enough to lead the search astray; the samples themselves lead
    # it right, unless the supremum is infinite beside the last of them.
    answer, sharper = Conversion(math.inf, CKS), bound
    for rdp in (bound.estimate, bound.rdp):
        order = _best_order(partial(_converted, rdp, log_delta), given)
        if order is not None:
            sharper = bound.sharpen(order)
            value = float(_converted(sharper.rdp, log_delta, np.array([order]))[0])
            if value < math.inf:
                answer = Conversion(max(value, 0.0), CKS, order)
                break
    if rule in ("exact", "mironov") or (rule == "best" and log_delta > math.log(1e-3)):
        # these take orders around that one too
        if given is not None:
            sharper = sharper.sharpen(given[np.isfinite(given)], 1e-4)
        elif answer.order is not None:
            sharper = sharper.sharpen(1.0 + (answer.order - 1.0) * 2.0 ** np.arange(-3.0, 4.0), 1e-4)
        other = epsilon_from_rdp(Curve(sharper.rdp, "refined-rdp", _R1, given), log_delta, rule)
        return (answer if rule == "best" and answer.value < other.value else other), sharper
    return answer, sharper


def _converted(rdp: Callable[[Array], Array], log_delta: float, orders: Array) -> Array:
    out = cks_epsilon(orders, rdp(orders), log_delta)
    return np.where(np.isnan(out), np.inf, out)


def _best_order(values: Callable[[Array], Array], given: Array | None) -> float | None:
    """The order of the least value: of those given, or of all between 1 + e^-29 and 1 + e^620."""
    if given is not None:
        grid = given[np.isfinite(given)]
        return float(grid[int(np.argmin(values(grid)))]) if grid.size else None
    x, step = np.arange(-9.0, 21.0, 1.0), 1.0
    while True:
        scores = values(1.0 + np.exp(x))
        top = int(np.argmin(scores))
        if scores[top] == math.inf:
            return None
        if step == 1.0 and top == 0 and x[0] == -9.0:
            x = x - 20.0
        elif step == 1.0 and top == x.size - 1 and x[-1] < 600.0:
            x = x + 20.0
        elif step < 2e-3:
            return 1.0 + math.exp(x[top])
        else:
            step, x = step / 4.0, x[top] + np.arange(-4.0, 5.0) * (step / 4.0)


def _pure(question: Question) -> Evaluated | None:
    base, law, _ = question.core
    if base.pure_epsilon == math.inf or question.core_exhausted:
        return None
    citation = _R3 + (_LEMMA_20 if question.base.slack > 0.0 else "")
    where = "supremum at u = 1/(1+e^ε)" if law.supremum_at_edge else "supremum searched over certified cells"
    return Evaluated(
        "refined-pure", refined_pure(base.pure_epsilon, law), citation, conversion=PURE, conditions=(where,)
    )


def _profile(question: Question, best: float) -> Evaluated:
    bound = ProfileBound(question.base, question.law, question.curve)
    value, refined = bound.solve(question.log_delta, enough=best)
    size = refined.curve.x.size if refined.curve is not None else None
    return Evaluated("refined-profile", value, _R2, nodes=size, source=refined)


def _conditional(question: Question) -> Evaluated:
    base, runs = question.base, question.runs
    assert isinstance(runs, Threshold)
    values = [math.inf]
    if base.pure_epsilon < math.inf:
        values.append(conditional_pure(base.pure_epsilon, runs.accept))
    if math.isfinite(question.log_delta):
        values.append(smallest_epsilon(lambda e: conditional_log_profile(base, runs.accept, e), question.log_delta))
    condition = f"acceptance probability at least {runs.accept:g}"
    return Evaluated("refined-conditional", min(values), _R4, conditions=(condition,))
