"""Two or three sentences for a paper, and what to cite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpcalc.files import shipped
from hpcalc.output.digits import shown
from hpcalc.output.phrases import law_words, run_words

# what an answer has in it -> the works it rests on, in manual/works.bib
_DPSGD, _RENYI = ("abadi2016deep", "koskela2020computing"), ("mironov2017renyi",)
_WORKS = {
    "threshold": ("liu2019private",), "dpsgd": _DPSGD, "history": _DPSGD, "zcdp": ("bun2016concentrated",),
    "gaussian": ("balle2018improving",), "rdp": _RENYI, "rdp_file": _RENYI, "refined-rdp": _RENYI,
    "canonne-kamath-steinke": ("canonne2020discrete",),
}  # fmt: skip


def statement_text(document: Mapping[str, Any]) -> str:
    """What a paper says about a search, from the document of ``bound``, or of several."""
    cases = document.get("cases", [document])
    works = {"papernot2022hyperparameter": None}
    for case in cases:
        method, law = case.get("method"), case.get("law") or {}
        rules = [row.get("conversion") for row in case.get("bounds", ()) if row.get("method") == method]
        for part in (law.get("dist"), *case.get("base", {}), method, *rules):
            works |= dict.fromkeys(_WORKS.get(str(part), ()))
    entries = {entry.partition(",")[0].partition("{")[2]: entry for entry in shipped("manual/works.bib").split("\n\n")}
    told = [" ".join(_sentences(case, _neighbours(case, cases))) for case in cases]
    return "\n\n".join([*told, *(entries[work].strip() for work in works)]) + "\n"


def _neighbours(case: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]) -> str:
    """How the data sets differ that a promise speaks of; a total speaks of those of all its cases."""
    meant = [one for one in cases if one.get("name") in case["total"]] if "total" in case else [case]
    if not meant:
        return "the neighbouring data sets of each"
    units = {one.get("unit") or "one record" for one in meant}
    unit = units.pop() if len(units) == 1 else "one record"
    added = any("subset" in one or {"dpsgd", "history"} & {*_keys([one["base"], one.get("then")])} for one in meant)
    return f"the addition or removal of {unit}" if added else f"a change of {unit}"


def _keys(told: Any) -> Iterator[str]:
    """All keys in a document's mappings, however deep."""
    for key, value in told.items() if isinstance(told, Mapping) else enumerate(told if isinstance(told, list) else ()):
        yield str(key)
        yield from _keys(value)


def _sentences(case: Mapping[str, Any], near: str) -> Iterator[str]:
    name = f"{case['name']}: " if case.get("name") is not None else ""
    if case.get("epsilon") is None:
        yield f"{name}No finite guarantee: {str(case.get('reason', 'nothing valid applies')).rstrip('.')}."
        return
    base, one = case["base"], case["single_run"]["epsilon"]
    promise = f"({{}}, {shown(case['delta'])})-differential privacy"
    alone = f"satisfies {promise.format(shown(one))}" if one is not None else "has no finite guarantee at this delta"
    told = "the whole search, its result included,"
    if case.get("searches") or case.get("then"):
        more = [f"{case['searches']} such searches" if case.get("searches") else "the whole search"]
        rest = " on the records outside the sample" if case.get("then_on") == "rest" else ""
        told = f"everything released ({'; '.join([*more, *(run_words(one) + rest for one in case.get('then', ()))])})"
    if "total" in case:
        yield f"{name}Several searches were run ({', '.join(case['total'])})."
        told = "Everything they release"
    else:
        yield f"{name}One run of the training ({run_words(base)}) {alone}."
        told = f"{_chosen(case)}; {told}"
    yield f"{told} satisfies {promise.format(shown(case['epsilon']))} with respect to {near}."
    exact = "no analysis can give less" if case.get("exact") else f"bound {case.get('method')}"
    what = "This was" if "total" in case else "Both numbers were"
    yield f"{what} computed with hpcalc {case.get('hpcalc_version', '')} ({exact})."


def _chosen(case: Mapping[str, Any]) -> str:
    """How the search went, which decides what may be claimed."""
    law = case.get("law") or {}
    sample = f", on a Poisson sample of the records at rate {shown(case['subset'])}" if "subset" in case else ""
    if "density" in case:
        low, high = map(shown, case["density"])
        sample += f", proposed adaptively at {low} to {high} times the density of a fixed distribution"
    return {
        "composition": f"Hyperparameters were chosen from {law.get('k')} runs in any way{sample}, each accounted for",
        "fixed": f"Hyperparameters were chosen by releasing the best of {law.get('k')} independent runs alone{sample}",
        "threshold": f"Runs were repeated until one was accepted, which alone was released ({law_words(law)}){sample}",
    }.get(str(law.get("dist")), "Hyperparameters were chosen by releasing the best of K runs alone, with K secret "
          f"({law_words(law)}){sample}")  # fmt: skip
