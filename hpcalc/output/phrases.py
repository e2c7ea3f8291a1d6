"""Words for what a document states in keys: one run, the law of K."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hpcalc.catalog import LAWS
from hpcalc.output.digits import short, shown

_LABELS = {
    "epsilon": "ε", "delta": "δ", "log10_delta": "log10 δ", "rho": "ρ", "sigma": "σ", "mu": "μ", "eta": "η",
    "gamma": "γ", "log_gamma": "log γ", "prob_zero": "P[K = 0]", "mean_runs": "mean K", "sd_runs": "sd K",
    "p50_runs": "median K", "p95_runs": "95 % K", "p99_runs": "99 % K", "p5": "5 %", "p95": "95 %",
    "expected_quantile": "E[quantile]", "success_probability": "P[success]", "expected_score": "E[best score]",
    "target_epsilon": "target ε", "max_epsilon": "limit ε", "at_epsilon": "ε", "at_success": "P[success]",
    "law": "law of K", "base": "one run", "from": "one run", "rdp": "Rényi curve of the whole search",
    "bounds": "Every bound evaluated", "explain": "How the answer came about",
}  # fmt: skip
_FEW = 3  # more trainings are told by their range
# key of a guarantee -> its name, and what its numbers are
_RUNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "pure": ("pure DP", ("ε {}",)), "zcdp": ("zCDP", ("ρ {}",)), "approx_dp": ("(ε, δ)-DP", ("ε {}", "δ {}")),
    "gaussian": ("Gaussian mechanism", ("noise multiplier {}",)), "laplace": ("Laplace mechanism", ("scale {}",)),
    "dpsgd": ("DP-SGD", ("rate {}", "noise {}", "{} steps")),
}  # fmt: skip
_FILES = {"rdp_file": "Rényi curve of", "profile_file": "privacy profile of", "history": "DP-SGD history of"}


def label(key: str) -> str:
    """A key as a heading."""
    return _LABELS.get(key, key.replace("_", " "))


def run_words(base: Mapping[str, Any]) -> str:
    """What one run promises, such as ``DP-SGD, rate 0.0042667, noise 1.1, 14063 steps``."""
    text = "; ".join(_run(key, value) for key, value in base.items() if key not in ("compose", "group")) or "nothing"
    if base.get("compose") is not None:
        text = f"{base['compose']} times: {text}"
    return f"{text}; groups of {base['group']}" if base.get("group") is not None else text


def _run(key: str, value: Any) -> str:
    if key == "candidates" and isinstance(value[0], Mapping):
        more = f"; and {len(value) - 2} more" if len(value) > 2 else ""
        return f"one of {len(value)} settings ({'; '.join(map(run_words, value[:2]))}{more})"
    if key in _FILES:
        return ", ".join(f"{_FILES[key]} {one}" for one in (value if isinstance(value, (list, tuple)) else [value]))
    if key == "rdp":
        points = value if isinstance(value, str) else ", ".join(":".join(map(short, point)) for point in value)
        return f"Rényi points {points}"
    if key not in _RUNS or isinstance(value, str):
        return f"{label(key)} {spelled(value)}"
    name, words = _RUNS[key]
    rows = np.array(value, dtype=object).reshape(-1, len(words)).tolist()  # of which a whole number stays one
    if key == "dpsgd" and len(rows) > _FEW:
        *spans, steps = zip(*rows, strict=True)
        rate, noise = (" to ".join(dict.fromkeys(map(short, (min(span), max(span))))) for span in spans)
        return f"{sum(steps)} DP-SGD steps, rate {rate}, noise {noise}"
    told = (", ".join(word.format(short(number)) for word, number in zip(words, row, strict=True)) for row in rows)
    return f"{name}, {'; '.join(told)}"


def released(case: Mapping[str, Any]) -> str:
    """What a document's ε is the cost of."""
    more = any(case.get(key) for key in ("searches", "subset", "then", "total"))
    return "everything released" if more else "the whole search"


def spelled(value: Any) -> str:
    """Whatever a document holds, in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{label(str(key))} {spelled(item)}".removesuffix(" yes") for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(spelled, value))
    return shown(value)


def law_words(law: Mapping[str, Any], *, brief: bool = False) -> str:
    """A law of K in words: its name, its parameters and, unless ``brief``, its mean and the chance of no run."""
    dist = str(law.get("dist", ""))
    told = [LAWS[dist].title if dist in LAWS else dist]
    cut = {"max_runs": "given K <= {}", "clamp_runs": "cut at {}", "at_least_one": "given K >= 1"}
    for key, value in law.items():
        if key not in ("dist", "mean", "prob_zero", *cut) and value is not None:
            told.append(f"{label(key)} {short(value)}")
    told += [words.format(law[key]) for key, words in cut.items() if law.get(key)]
    if not brief and law.get("mean") is not None:
        told.append(f"mean {short(law['mean'])}")
    if not brief and law.get("prob_zero"):
        told.append(f"P[K = 0] {short(law['prob_zero'])}")
    return ", ".join(told)


def in_words(key: str, value: Any) -> str:
    """A value of a document, by its key."""
    if isinstance(value, str):
        return value
    if key == "then":
        return "; ".join("one more run" if part == "run" else run_words(part) for part in value)
    return run_words(value) if key in ("base", "from") else law_words(value) if key == "law" else spelled(value)
