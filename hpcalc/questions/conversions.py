"""``convert``: from one kind of guarantee of one run to another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcalc.conversion import RULES, Conversion, delta_at, epsilon_at, log_of_delta, parameter_of
from hpcalc.errors import ExitCode, NoFiniteBound, require
from hpcalc.guarantees import Guarantee, checked_guarantee
from hpcalc.logspace import Array, distinct
from hpcalc.questions import rows

_KINDS = ("approx-dp", "rdp", "zcdp", "pure")


@dataclass(frozen=True, eq=False, repr=False)
class ConvertResult(rows.Priced):
    """A guarantee of one run in another form: its kind and numbers, and the rule and Rényi order that gave them."""

    base: Guarantee
    to: dict[str, Any]
    conversion: str | None
    reason: str | None = None  # why there is no finite answer
    order: float | None = None

    @property
    def epsilon(self) -> float:
        value = self.to.get("epsilon")
        return float("inf") if value is None else float(value)

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.OK if self.reason is None else ExitCode.NO_FINITE_BOUND

    def log_profile(self, epsilons: Array) -> Array:
        own, delta = self.base.log_profile(epsilons), self.to.get("delta")
        return np.where(epsilons >= self.epsilon, np.minimum(own, log_of_delta(delta)), own) if delta else own

    def rdp_export(self) -> list[dict[str, float | None]]:
        """The Rényi curve: at the orders asked for, else at many."""
        if self.to["kind"] == "rdp":
            return list(self.to["orders"])
        orders = distinct(np.append(rows.MANY_ORDERS, [] if self.order is None else [self.order]))
        return rows.curve_points(orders, self.base.rdp(orders))

    def document(self) -> dict[str, Any]:
        out = {**rows.head("convert"), "from": self.base.describe(), "to": self.to, "conversion": self.conversion}
        return {**out, **rows.known(order=self.order, reason=self.reason), "warnings": list(self.base.warnings)}


def convert(
    base: Guarantee,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    to: str = "approx-dp",
    conversion: str = "best",
    orders: Any = None,
) -> ConvertResult:
    """Convert the guarantee of one run.

    Parameters
    ----------
    base : Guarantee
        What is known of one run.
    delta, epsilon : float, optional
        For ``to="approx-dp"``: the δ at which ε is wanted (default 1e-6), or the ε at which δ is.
    to : {"approx-dp", "rdp", "zcdp", "pure"}
        Kind of guarantee wanted.
    conversion : {"best", "cks", "mironov", "exact"}
        Rule for Rényi curves.
    orders : sequence of float, optional
        Orders wanted (``to="rdp"``), or to which the conversion is restricted.

    Examples
    --------
    >>> from hpcalc.guarantees import Gaussian
    >>> round(convert(Gaussian(1.0), delta=1e-5, conversion="cks").to["epsilon"], 9)
    4.728386985
    """
    checked_guarantee(base)
    listed = None if orders is None else np.array([float(order) for order in orders])
    given = [] if listed is None else listed.tolist()
    require(
        ("to", to, to in _KINDS, f"give one of {', '.join(_KINDS)}"),
        ("epsilon", epsilon, delta is None or epsilon is None, "give either delta or epsilon, not both"),
        ("epsilon", epsilon, 0.0 <= float(epsilon or 0.0) < math.inf, "give a finite ε >= 0"),
        ("conversion", conversion, conversion in RULES, f"choose one of {', '.join(RULES)}"),
        *(("orders", order, order > 1.0, "give Rényi orders > 1 (inf is allowed)") for order in given),
    )
    if to == "rdp":
        at = np.array(rows.DEFAULT_ORDERS) if listed is None else listed
        values = base.rdp(at)
        pairs = zip(at.tolist(), values.tolist(), strict=True)
        points = [{"order": rows.finite(order), "epsilon": rows.upper(value)} for order, value in pairs]
        reason = None if np.isfinite(values).any() else "no finite Rényi curve is known for this base"
        return ConvertResult(base, {"kind": to, "orders": points}, to, reason)
    key = "rho" if to == "zcdp" else "epsilon"
    told: dict[str, Any] = {"kind": to, key: None}
    try:
        if to != "approx-dp":
            found = Conversion(parameter_of(base, to), to)
        elif epsilon is not None:
            found = delta_at(base, float(epsilon), conversion, listed)
            told |= {"epsilon": float(epsilon), **rows.delta_fields(found.value)}
            return ConvertResult(base, told, found.rule, None, found.order)
        else:
            told["delta"] = float(1e-6 if delta is None else delta)
            found = epsilon_at(base, log_of_delta(told["delta"]), conversion, listed)
    except NoFiniteBound as error:
        return ConvertResult(base, told, None, str(error))
    return ConvertResult(base, {**told, key: rows.upper(found.value)}, found.rule, None, found.order)
