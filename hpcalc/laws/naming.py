"""Laws by name: from the options of the command line, and from one line of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from hpcalc.errors import InvalidInput
from hpcalc.laws.conditioned import AtLeastOne
from hpcalc.laws.families import Binomial, Fixed, Poisson, Threshold
from hpcalc.laws.law import Law, RunCount
from hpcalc.laws.negative_binomial import TruncatedNegativeBinomial
from hpcalc.laws.tabulated import AtMost, FinitePmf

__all__ = ["DISTRIBUTIONS", "make_law", "parse_law"]


# Every law by name, and the options it needs; the one in _SCALE may be given as the mean instead.
DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "poisson": ("mu",),
    "tnb": ("eta", "gamma"),
    "geometric": ("gamma",),
    "logarithmic": ("gamma",),
    "binomial": ("n", "p"),
    "fixed": ("k",),
    "pmf": ("pmf",),
    "threshold": ("accept",),
}
_SCALE = {"poisson": "mu", "tnb": "gamma", "geometric": "gamma", "logarithmic": "gamma", "binomial": "p",
          "threshold": "accept"}  # fmt: skip
_MODIFIERS = ("max_runs", "at_least_one")
_ETA = {"geometric": 1.0, "logarithmic": 0.0}


def make_law(dist: str, **params: object) -> RunCount:
    """Law of K from its name and its options, as on the command line.

    Parameters
    ----------
    dist : str
        One of poisson, tnb, geometric, logarithmic, binomial, fixed, pmf, threshold.
    **params
        ``mu, eta, gamma, n, p, k, accept, pmf`` as the law needs them; ``mean`` in place of its scale parameter;
        ``max_runs`` (K given K <= max_runs; the mean is the one before that condition) and ``at_least_one``. None
        stands for not given.

    Raises
    ------
    InvalidInput
        For an unknown law, and for parameters that are missing, superfluous or out of range.

    Examples
    --------
    >>> make_law("tnb", eta=0, gamma=1).mean
    1.0
    >>> make_law("poisson", mean=10, max_runs=30).parameters()
    {'mu': 10.0, 'max_runs': 30}
    """
    if str(dist) not in DISTRIBUTIONS:
        hint = _did_you_mean(str(dist), DISTRIBUTIONS)
        raise InvalidInput("dist", dist, f"{hint}the laws are {', '.join(DISTRIBUTIONS)}")
    given = {key: value for key, value in params.items() if value is not None}
    allowed = DISTRIBUTIONS[dist]
    scale = _SCALE.get(dist)
    for key, value in given.items():
        if key not in (*allowed, *_MODIFIERS, "mean"):
            raise InvalidInput(key, value, f"{dist} takes {' and '.join(allowed)}; leave {key} out")
    mean = given.get("mean")
    if mean is not None:
        if scale is None:
            raise InvalidInput("mean", mean, f"{dist} takes no mean, it has one; give {' and '.join(allowed)} only")
        if scale in given:
            raise InvalidInput("mean", mean, f"give either mean or {scale}, not both")
    for key in allowed:
        if key not in given and not (key == scale and mean is not None):
            other = " or mean" if key == scale else ""
            raise InvalidInput(key, "(missing)", f"{dist} needs {key}{other}")
    law = _plain_law(dist, given)
    most, some = given.get("max_runs"), given.get("at_least_one", False)
    if not isinstance(some, (bool, np.bool_)):
        raise InvalidInput("at_least_one", some, "give true or false")
    if most is not None:
        if not isinstance(law, Law):
            raise InvalidInput("max_runs", most, f"{dist} runs until acceptance; leave max_runs out")
        law = AtMost(law, most)  # type: ignore[arg-type]
    if some:
        if not isinstance(law, Law):
            raise InvalidInput("at_least_one", True, f"{dist} always runs; leave it out")
        law = AtLeastOne(law)
    return law


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    import difflib  # a slip of the pen alone needs it

    near = difflib.get_close_matches(word, list(known))
    return f"did you mean {near[0]}? " if near else ""


def _plain_law(dist: str, given: Mapping[str, object]) -> RunCount:
    value: dict[str, float] = given  # type: ignore[assignment]  # every constructor checks what it gets
    mean = value.get("mean")
    if dist == "poisson":
        return Poisson(value["mu"]) if mean is None else Poisson.with_mean(mean)
    if dist in ("tnb", "geometric", "logarithmic"):
        eta = value["eta"] if dist == "tnb" else _ETA[dist]
        if mean is None:
            return TruncatedNegativeBinomial.from_gamma(eta, value["gamma"], dist)
        return TruncatedNegativeBinomial.with_mean(mean, eta=eta, label=dist)
    if dist == "binomial":
        n: int = value["n"]  # type: ignore[assignment]
        return Binomial(n, value["p"]) if mean is None else Binomial.with_mean(mean, n=n)
    if dist == "fixed":
        return Fixed(value["k"])  # type: ignore[arg-type]
    if dist == "pmf":
        return FinitePmf(value["pmf"])  # type: ignore[arg-type]
    return Threshold(value["accept"]) if mean is None else Threshold.with_mean(mean)


def parse_law(text: str) -> dict[str, object]:
    """Read ``"tnb:eta=0,mean=10"``: a law's name, then its options (``-`` and ``_`` alike).

    ``at-least-one`` stands alone or as ``at-least-one=true``. A pmf may be given in place (``pmf:1=0.5,1000=0.5``) or
    as a file name (``pmf:pmf=FILE``), which the caller reads.

    Returns
    -------
    dict
        Keyword arguments for :func:`make_law`.

    Raises
    ------
    InvalidInput
        Naming ``law``.

    Examples
    --------
    >>> parse_law("tnb:eta=0,mean=10")
    {'dist': 'tnb', 'eta': 0.0, 'mean': 10.0}
    """
    shape = 'write NAME:option=value,..., as in "tnb:eta=0,mean=10"'
    if not isinstance(text, str):
        raise InvalidInput("law", text, shape)
    name, _, rest = text.strip().partition(":")
    dist = name.strip()
    if dist not in DISTRIBUTIONS:
        hint = _did_you_mean(dist, DISTRIBUTIONS)
        raise InvalidInput("law", text, f"{hint}the laws are {', '.join(DISTRIBUTIONS)}")
    known = (*DISTRIBUTIONS[dist], "mean", *_MODIFIERS)
    out: dict[str, object] = {"dist": dist}
    table: dict[str, float] = {}
    for item in rest.split(",") if rest.strip() else []:
        key, equals, raw = (part.strip() for part in item.partition("="))
        raw_key, key = key, key.replace("-", "_")
        if key in out or raw_key in table:
            raise InvalidInput("law", text, f"give {raw_key} once")
        if key == "at_least_one":
            if raw.lower() not in ("", "true", "false"):
                raise InvalidInput("law", text, f"give {raw_key} alone, or as true or false")
            out[key] = raw.lower() != "false"
            continue
        if not equals or not raw:
            raise InvalidInput("law", text, shape)
        if key == "pmf" and dist == "pmf":
            out[key] = raw
            continue
        inline = dist == "pmf" and key.isdigit()
        if key not in known and not inline:
            hint = _did_you_mean(key, known)
            raise InvalidInput("law", text, f"{hint}{dist} takes {', '.join(known)}, not {raw_key}")
        try:
            number = float(raw)
        except ValueError:
            raise InvalidInput("law", text, f"give a number for {raw_key}, not {raw!r}") from None
        if inline:
            table[raw_key] = number
        else:
            out[key] = number
    if table:
        if "pmf" in out:
            raise InvalidInput("law", text, "give the probabilities in place or as a file, not both")
        out["pmf"] = table
    return out
