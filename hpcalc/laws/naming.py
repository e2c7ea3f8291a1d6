"""Laws by name: from the options of the command line, and from one line of text."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from hpcalc.catalog import HINTS, LAWS, load
from hpcalc.errors import InvalidInput
from hpcalc.files import nearest
from hpcalc.laws.derived import at_least_one, at_most, clamp
from hpcalc.laws.law import RunCount

_MODIFIERS = ("max_runs", "clamp_runs", "at_least_one")


def make_law(dist: str, **params: object) -> RunCount:
    """Law of K from its name and its options, as on the command line.

    Parameters
    ----------
    dist : str
        One of :data:`hpcalc.catalog.LAWS`.
    **params
        ``mu, eta, gamma, n, p, k, accept, pmf`` as the law needs them; ``mean`` in place of its scale parameter;
        ``max_runs`` (K given K <= max_runs), ``clamp_runs`` (min(K, clamp_runs), another law) and ``at_least_one`` (K
        given K >= 1); the mean is the one before any of these. None stands for not given.

    Raises
    ------
    InvalidInput
        For an unknown law, and for parameters that are missing, superfluous or out of range.

    Examples
    --------
    >>> make_law("poisson", mean=10, max_runs=30).parameters()
    {'mu': 10.0, 'max_runs': 30}
    """
    _check_name("dist", dist, str(dist))
    row = LAWS[dist]
    given = {key: value for key, value in params.items() if value is not None}
    _check_keys(dist, given)
    maker, named = load(row.target), {key: given[key] for key in row.parameters if key in given}
    law: RunCount = maker.with_mean(given["mean"], **named) if "mean" in given else maker(*named.values())
    some = given.get("at_least_one", False)
    if not isinstance(some, (bool, np.bool_)):
        raise InvalidInput("at_least_one", some, "give true or false")
    for key, change in (("max_runs", at_most), ("clamp_runs", clamp)):
        if key in given:
            law = change(law, given[key])  # type: ignore[arg-type]  # which checks it
    return at_least_one(law) if some else law


def _check_name(option: str, value: object, dist: str) -> None:
    if dist not in LAWS:
        raise InvalidInput(option, value, f"{did_you_mean(dist, LAWS)}the laws are {', '.join(LAWS)}")


def _check_keys(dist: str, given: dict[str, object]) -> None:
    row = LAWS[dist]
    wanted, mean = " and ".join(row.parameters), given.get("mean")
    scale = row.scales[0] if row.has_mean else None
    for key, value in given.items():
        if key not in (*row.parameters, *_MODIFIERS, "mean"):
            raise InvalidInput(key, value, f"{dist} takes {wanted}; leave {key} out")
        if key in _MODIFIERS and not row.cuttable and value is not False:
            raise InvalidInput(key, value, f"it means nothing for {dist} ({row.title}): leave it out")
    if mean is not None and scale is None:
        raise InvalidInput("mean", mean, f"{dist} takes no mean, it has one; give {wanted} only")
    if mean is not None and scale in given:
        raise InvalidInput("mean", mean, f"give either mean or {scale}, not both")
    for key in row.parameters:
        if key not in given and not (key == scale and mean is not None):
            raise InvalidInput(key, "(missing)", f"{dist} needs {key}{' or mean' if key == scale else ''}")
    if "max_runs" in given and "clamp_runs" in given:
        raise InvalidInput("clamp_runs", given["clamp_runs"], "give either max_runs or clamp_runs: two different laws")


def did_you_mean(word: str, known: Collection[str]) -> str:
    """``"did you mean ...? "``, or nothing where no known word is near."""
    near = HINTS.get(word) or nearest(word, known)
    return f"did you mean {near}? " if near in known else ""


def parse_law(text: str) -> dict[str, object]:
    """Read ``"tnb:eta=0,mean=10"``: keyword arguments for :func:`make_law` (``-`` and ``_`` alike).

    ``at-least-one`` stands alone or as ``at-least-one=true``. A pmf may be given in place (``pmf:1=0.5,1000=0.5``) or
    as a file name (``pmf:pmf=FILE``), which the caller reads.

    Raises
    ------
    InvalidInput
        Naming ``law``.

    Examples
    --------
    >>> parse_law("tnb:eta=0,mean=10")
    {'dist': 'tnb', 'eta': 0.0, 'mean': 10.0}
    """
    form = 'write NAME:option=value,..., as in "tnb:eta=0,mean=10"'
    if not isinstance(text, str):
        raise InvalidInput("law", text, form)
    dist, _, rest = (part.strip() for part in text.partition(":"))
    _check_name("law", text, dist)
    known = (*LAWS[dist].parameters, "mean", *_MODIFIERS)
    out: dict[str, object] = {"dist": dist}
    table: dict[str, float] = {}
    for item in rest.split(",") if rest else []:
        word, equals, raw = (part.strip() for part in item.partition("="))
        key = word.replace("-", "_")
        if key in out or word in table:
            raise InvalidInput("law", text, f"give {word} once")
        if key == "at_least_one":
            if raw.lower() not in ("", "true", "false"):
                raise InvalidInput("law", text, f"give {word} alone, or as true or false")
            out[key] = raw.lower() != "false"
        elif not equals or not raw:
            raise InvalidInput("law", text, form)
        elif dist == "pmf" and key == "pmf":
            out[key] = raw
        elif dist == "pmf" and key.isdigit():
            table[word] = _number(text, word, raw)
        elif key in known:
            out[key] = _number(text, word, raw)
        else:
            raise InvalidInput("law", text, f"{did_you_mean(key, known)}{dist} takes {', '.join(known)}, not {word}")
    if table and "pmf" in out:
        raise InvalidInput("law", text, "give the probabilities in place or as a file, not both")
    return {**out, "pmf": table} if table else out


def _number(text: str, word: str, raw: str) -> float:
    try:
        return float(raw)
    except ValueError:
        raise InvalidInput("law", text, f"give a number for {word}, not {raw!r}") from None
