"""Two or three sentences for a paper, and what to cite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpcalc.files import shipped
from hpcalc.output.digits import shown
from hpcalc.output.phrases import law_words, run_words

__all__ = ["statement_text"]

# what an answer rests on -> its entry in manual/works.bib
_WORKS = {
    "search": "papernot2022hyperparameter", "conditional": "liu2019private", "dpsgd": "abadi2016deep",
    "losses": "koskela2020computing", "zcdp": "bun2016concentrated", "rdp": "mironov2017renyi",
    "gaussian": "balle2018improving", "canonne-kamath-steinke": "canonne2020discrete",
}  # fmt: skip


def statement_text(document: Mapping[str, Any]) -> str:
    """What a paper says about a search, from the document of ``bound``, or of several."""
    cases = document.get("cases", [document])
    told = [" ".join(_sentences(case)) for case in cases]
    works = dict.fromkeys(work for case in cases for work in _rests_on(case))
    entries = {entry.partition(",")[0].partition("{")[2]: entry for entry in shipped("manual/works.bib").split("\n\n")}
    return "\n\n".join([*told, *(entries[_WORKS[work]].strip() for work in works)]) + "\n"


def _sentences(case: Mapping[str, Any]) -> Iterator[str]:
    epsilon, delta = case.get("epsilon"), shown(case.get("delta"))
    name = f"{case['name']}: " if case.get("name") is not None else ""
    if epsilon is None:
        yield f"{name}No finite guarantee: {str(case.get('reason', 'nothing valid applies')).rstrip('.')}."
        return
    one = (case.get("single_run") or {}).get("epsilon")
    unit, base = case.get("unit") or "one record", case.get("base", {})
    near = f"the addition or removal of {unit}" if "dpsgd" in base else f"a change of {unit}"
    law = law_words(case.get("law") or {})
    yield f"{name}One run of the training ({run_words(base)}) satisfies ({shown(one)}, {delta})-differential privacy."
    yield (
        f"Hyperparameters were chosen by releasing the best of K runs alone, with K secret ({law}); the whole search, "
        f"its result included, satisfies ({shown(epsilon)}, {delta})-differential privacy with respect to {near}."
    )
    exact = "no analysis can give less" if case.get("exact") else f"bound {case.get('method')}"
    yield f"Both numbers were computed with hpcalc {case.get('hpcalc_version', '')} ({exact})."


def _rests_on(case: Mapping[str, Any]) -> Iterator[str]:
    base, law = case.get("base", {}), case.get("law") or {}
    yield "search"
    if law.get("dist") == "threshold":
        yield "conditional"
    if "dpsgd" in base or "history" in base:
        yield from ("dpsgd", "losses")
    yield from (key for key in ("zcdp", "gaussian") if key in base)
    if "rdp" in base or "rdp_file" in base or case.get("method") == "refined-rdp":
        yield "rdp"
    rules = {row.get("conversion") for row in case.get("bounds", ()) if row.get("method") == case.get("method")}
    yield from (rule for rule in rules if rule in _WORKS)
