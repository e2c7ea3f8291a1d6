"""Two or three sentences for a paper, and what to cite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpcalc.output.digits import shown
from hpcalc.output.phrases import law_words, run_words

__all__ = ["statement_text"]

# key, authors, title, venue, year
_WORKS = {
    "search": ("papernot2022hyperparameter", "Nicolas Papernot and Thomas Steinke",
               "Hyperparameter Tuning with {R}enyi Differential Privacy",
               "International Conference on Learning Representations (ICLR)", 2022),
    "conditional": ("liu2019private", "Jingcheng Liu and Kunal Talwar", "Private Selection from Private Candidates",
                    "ACM Symposium on Theory of Computing (STOC)", 2019),
    "dpsgd": ("abadi2016deep", "Mart{\\'i}n Abadi and Andy Chu and Ian Goodfellow and H. Brendan McMahan and Ilya "
              "Mironov and Kunal Talwar and Li Zhang", "Deep Learning with Differential Privacy",
              "ACM Conference on Computer and Communications Security (CCS)", 2016),
    "losses": ("koskela2020computing", "Antti Koskela and Joonas J{\\\"a}lk{\\\"o} and Antti Honkela",
               "Computing Tight Differential Privacy Guarantees Using {FFT}",
               "International Conference on Artificial Intelligence and Statistics (AISTATS)", 2020),
    "zcdp": ("bun2016concentrated", "Mark Bun and Thomas Steinke",
             "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds",
             "Theory of Cryptography Conference (TCC)", 2016),
    "rdp": ("mironov2017renyi", "Ilya Mironov", "{R}{\\'e}nyi Differential Privacy",
            "IEEE Computer Security Foundations Symposium (CSF)", 2017),
    "gaussian": ("balle2018improving", "Borja Balle and Yu-Xiang Wang", "Improving the {G}aussian Mechanism for "
                 "Differential Privacy: Analytical Calibration and Optimal Denoising",
                 "International Conference on Machine Learning (ICML)", 2018),
    "canonne-kamath-steinke": ("canonne2020discrete", "Cl{\\'e}ment L. Canonne and Gautam Kamath and Thomas Steinke",
                               "The Discrete {G}aussian for Differential Privacy",
                               "Advances in Neural Information Processing Systems (NeurIPS)", 2020),
}  # fmt: skip


def statement_text(document: Mapping[str, Any]) -> str:
    """What a paper says about a search, from the document of ``bound``, or of several."""
    cases = document.get("cases", [document])
    told = [" ".join(_sentences(case)) for case in cases]
    works = dict.fromkeys(work for case in cases for work in _rests_on(case))
    return "\n\n".join([*told, *map(_entry, works)]) + "\n"


def _sentences(case: Mapping[str, Any]) -> Iterator[str]:
    epsilon, delta = case.get("epsilon"), shown(case.get("delta"))
    name = f"{case['name']}: " if case.get("name") is not None else ""
    if epsilon is None:
        yield f"{name}No finite guarantee: {str(case.get('reason', 'nothing valid applies')).rstrip('.')}."
        return
    one = (case.get("single_run") or {}).get("epsilon")
    unit, base = case.get("unit") or "one record", case.get("base", {})
    near = f"the addition or removal of {unit}" if "dpsgd" in base else f"a change of {unit}"
    law = law_words(case.get("law") or case.get("repetitions") or {})
    yield f"{name}One run of the training ({run_words(base)}) satisfies ({shown(one)}, {delta})-differential privacy."
    yield (
        f"Hyperparameters were chosen by releasing the best of K runs alone, with K secret ({law}); the whole search, "
        f"its result included, satisfies ({shown(epsilon)}, {delta})-differential privacy with respect to {near}."
    )
    exact = "no analysis can give less" if case.get("exact") else f"bound {case.get('method')}"
    yield f"Both numbers were computed with hpcalc {case.get('hpcalc_version', '')} ({exact})."


def _rests_on(case: Mapping[str, Any]) -> Iterator[str]:
    base, law = case.get("base", {}), case.get("law") or case.get("repetitions") or {}
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


def _entry(work: str) -> str:
    key, authors, title, venue, year = _WORKS[work]
    rows = {"author": authors, "title": title, "booktitle": venue, "year": year}
    body = "".join(f"  {name} = {{{value}}},\n" for name, value in rows.items())
    return f"@inproceedings{{{key},\n{body}}}"
