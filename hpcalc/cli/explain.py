"""``--explain``: the matching draw beside what ``bound`` says of itself, and the formulas that answer the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hpcalc.catalog import NOT_DRAWN
from hpcalc.cli.case import Case
from hpcalc.cli.options import LAW

_PAPER = "Papernot and Steinke 2022"
_BOTH_WAYS = "the Renyi curve bounds the divergence in both directions at the order used"
# of a conversion by its rule, of a law by the command: the theorem, then its conditions
_SOURCES = {
    "canonne-kamath-steinke": (
        f"Canonne, Kamath and Steinke 2020, Proposition 12; Lemma 14 of {_PAPER}", _BOTH_WAYS),
    "mironov": ("Mironov 2017, Proposition 3", _BOTH_WAYS),
    "exact-profile": ("the mechanism's own privacy profile (Balle and Wang 2018 for the Gaussian)",
                      "the base is the mechanism itself, not only its Renyi curve"),
    "exact-region": ("the largest hockey-stick divergence over all pairs of events that the Renyi constraints allow",
                     "every order used is a valid constraint in both directions"),
    "pure": ("definition of pure differential privacy: it holds with every delta", "the base is pure"),
    "zcdp": ("Bun and Steinke 2016; a pure base has rho = eps tanh(eps/2)", "the bound holds at every order"),
    "rdp": ("the base's own Renyi curve (Mironov 2017)", "both directions are covered: the larger one is shown"),
    "utility": (f"{_PAPER}, Section 3.5 and Appendix A.2.1; f is the probability generating function of K",
                "the runs are independent and equally distributed", "K does not depend on their results"),
    "draw": ("inversion of the distribution function of K with 256 random bits a draw",
             "the bits come from the operating system's entropy"),
}  # fmt: skip
_UTILITY = {
    "mean_runs": "E[K] = f'(1)",
    "expected_quantile": "E[K/(K+1)] = 1 - integral of f over [0, 1]",
    "success_probability": "1 - f(1 - p), with p the success rate of one run",
    "expected_score": "sum of x (f(G(x)) - f(G(x-))) over the scores x, with G their empirical distribution",
}


def explanation(result: Any, document: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """What to say about a result beside what its document says, if there is anything."""
    command = document.get("command")
    if command == "bound":
        told: dict[str, Any] = dict(document.get("explain") or {})
        if document.get("law") and case["dist"] not in (None, *NOT_DRAWN):
            told["draw"] = case.written("draw", {key: case.options[key] for key in LAW})
    elif command == "plan" and result.best.cost is not None:
        told = replace(result.best.cost, explain=True).document()["explain"]
    elif command == "compare" and hasattr(result, "entries"):
        priced = [(entry.runs, entry.cost and entry.cost.best) for entry in result.entries]
        best = [(runs, bound) for runs, bound in priced if bound is not None and runs is not None]
        told = {
            "theorems": [
                {"law": " ".join([runs.name, *(f"{key} {value}" for key, value in runs.parameters().items())]),
                 "theorem": bound.source.citation, "order": bound.order, "conversion": bound.conversion}
                for runs, bound in best
            ],
            "conditions": [*dict.fromkeys(text for _, one in best for text in one.source.conditions)],
        }  # fmt: skip
    elif command in ("convert", "utility", "draw"):
        theorem, *conditions = _SOURCES.get(str(document.get("conversion", command)), (None,))
        told = {"theorem": theorem, "inputs": document["from" if command == "convert" else "law"]}
        told |= {key: document[key] for key in ("conversion", "order") if key in document}
        if command == "utility":
            told["formulas"] = {key: text for key, text in _UTILITY.items() if document.get(key) is not None}
        told["conditions"] = conditions
    else:
        return {}
    return {"explain": told}
