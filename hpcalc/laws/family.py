"""Laws of K by name: from options, from one line of text, and with one parameter left open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, TypeAlias

import numpy as np

from hpcalc.catalog import LAWS, PARAMETERS
from hpcalc.errors import InvalidInput, require
from hpcalc.files import did_you_mean
from hpcalc.laws.derived import modified
from hpcalc.laws.law import RunCount, checked_law
from hpcalc.solve import Grid

#: A law as the public functions take it: an object, the text of ``--law``, or keyword arguments of ``make_law``.
LawLike: TypeAlias = "RunCount | LawFamily | str | Mapping[str, Any]"

_RANGES = {"whole": (1.0, 2.0**53), "probability": (1e-300, 1.0)}
MODIFIERS = ("max_runs", "clamp_runs", "at_least_one")


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
    maker, named = resolve_name(row.target), {key: given[key] for key in row.parameters if key in given}
    changes: dict[str, Any] = {key: given[key] for key in MODIFIERS if key in given}
    law = maker.with_mean(given["mean"], **named) if "mean" in given else maker(*named.values())
    return modified(law, **changes)


def _check_name(option: str, value: object, dist: str) -> None:
    if dist not in LAWS:
        raise InvalidInput(option, value, f"{did_you_mean(dist, LAWS)}the laws are {', '.join(LAWS)}")


def _domain(key: str | None) -> str:
    """The kind of number that a parameter is."""
    return PARAMETERS[key].domain if key in PARAMETERS else "positive"


def _check_keys(dist: str, given: dict[str, object]) -> None:
    row = LAWS[dist]
    known, wanted, mean = (*row.parameters, *MODIFIERS, "mean"), " and ".join(row.parameters), given.get("mean")
    scale = next((key for key in row.scales[:1] if _domain(key) != "whole"), None)  # a whole number is its own mean
    uncut = f"it means nothing for {dist} ({row.title}): leave it out"
    clamped, some = given.get("clamp_runs"), given.get("at_least_one", False)
    once = clamped is None or "max_runs" not in given
    require(
        *((key, value, key in known, f"{dist} takes {wanted}; leave {key} out") for key, value in given.items()),
        *((key, given[key], row.cuttable or given[key] is False, uncut) for key in MODIFIERS if key in given),
        ("mean", mean, mean is None or scale is not None, f"{dist} takes no mean, it has one; give {wanted} only"),
        ("mean", mean, mean is None or scale not in given, f"give either mean or {scale}, not both"),
        *((key, "(missing)", key in given or (key == scale and mean is not None),
           f"{dist} needs {key}{' or mean' if key == scale else ''}") for key in row.parameters),
        ("clamp_runs", clamped, once, "is another law than --max-runs: keep one of them"),
        ("at_least_one", some, isinstance(some, (bool, np.bool_)), "give true or false"),
    )  # fmt: skip


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
    known = (*LAWS[dist].parameters, "mean", *MODIFIERS)
    out: dict[str, object] = {"dist": dist}
    table: dict[str, object] = {}
    for item in rest.split(",") if rest else []:
        word, equals, raw = (part.strip() for part in item.partition("="))
        key = word.replace("-", "_")
        require(("law", text, key not in out and word not in table, f"give {word} once"))
        if key == "at_least_one":
            if raw.lower() not in ("", "true", "false"):
                raise InvalidInput("law", text, f"give {word} alone, or as true or false")
            out[key] = raw.lower() != "false"
        elif not equals or not raw:
            raise InvalidInput("law", text, form)
        elif dist == "pmf" and key == "pmf":
            out[key] = raw
        elif key in known or (dist == "pmf" and key.isdigit()):
            try:
                (out if key in known else table)[key] = float(raw)
            except ValueError:
                raise InvalidInput("law", text, f"give a number for {word}, not {raw!r}") from None
        else:
            raise InvalidInput("law", text, f"{did_you_mean(key, known)}{dist} takes {', '.join(known)}, not {word}")
    require(("law", text, not (table and "pmf" in out), "give the probabilities in place or as a file, not both"))
    return {**out, "pmf": table} if table else out


@dataclass(frozen=True)
class LawFamily:
    """A law of K but for its scale parameter."""

    dist: str  # its name, as --dist
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)  # what is fixed, as make_law takes it
    scale: str | None = None  # the open parameter; None if the law has none (a pmf, a law of one's own)
    given: RunCount | None = None  # the law itself, where the open parameter was given too

    def at(self, value: float) -> RunCount:
        """The law whose open parameter is ``value``."""
        return make_law(**{**self.document(), str(self.scale): value})

    def with_mean(self, mean: float) -> RunCount:
        """The law of a mean, before it is cut or conditioned; a whole number of runs is the nearest one."""
        require(("mean", mean, self.scale is not None, f"{self.dist} has a mean of its own: leave --mean out"))
        if _domain(self.scale) == "whole":
            return self.at(max(round(mean / self.parameters.get("p", 1.0)), 1))
        return make_law(**self.document(), mean=mean)

    def scale_at(self, mean: float) -> float:
        """The open parameter at a mean; the boldest there is where the law has no such mean."""
        try:
            return float(self.with_mean(mean).parameters().get(str(self.scale), 1e-300))  # a gamma below the doubles
        except InvalidInput:  # a mean beyond a binomial's n
            return self.grid.boldest

    @property
    def grid(self) -> Grid:
        """Legal values of the open parameter, from the safest to the boldest."""
        domain = _domain(self.scale)
        low, high = _RANGES.get(domain, (1e-300, 1e100))
        ends = (high, low) if LAWS[self.dist].safe == "up" else (low, high)
        return Grid(*ends, digits=0 if domain == "whole" else 6)

    def document(self) -> dict[str, Any]:
        """Its name and what is fixed, under the published keys."""
        return {"dist": self.dist, **self.parameters}

    @property
    def label(self) -> str:
        """The law as ``--law`` writes it, without the open parameter."""
        shown = {key.replace("_", "-"): value for key, value in self.parameters.items() if value is not False}
        numbers = {name: value for name, value in shown.items() if isinstance(value, (int, float))}
        words = (name if value is True else f"{name}={value:g}" for name, value in numbers.items())
        return ":".join(filter(None, (self.dist, ",".join(words))))


def family_of(law: LawLike) -> LawFamily:
    """The family of a law given as an object, as text (``"tnb:eta=0"``) or as a mapping of its parameters."""
    if isinstance(law, LawFamily):
        return law
    given = None
    if not isinstance(law, (str, Mapping)):
        given = checked_law(law)
        law = {"dist": given.name, **given.parameters()}
    named = parse_law(law) if isinstance(law, str) else law
    parameters = {key: value for key, value in named.items() if value is not None}
    dist = str(parameters.pop("dist"))
    if dist not in LAWS or not LAWS[dist].scales:
        return LawFamily(dist, given=given or make_law(dist, **parameters))
    scales = LAWS[dist].scales
    # the scale is open, unless only another of the parameters that could be is not there (a binomial's n)
    scale = next((key for key in scales[1:] if key not in parameters), scales[0])
    if given is None and (scale in parameters or "mean" in parameters):
        given = make_law(dist, **parameters)
    fixed = {key: value for key, value in parameters.items() if key not in (scale, f"log_{scale}", "mean")}
    family = LawFamily(dist, fixed, scale, given)
    if given is None:
        family.at(family.grid.safest if scale == scales[0] else 1.0)  # what is fixed must be legal
    return family


def families_of(laws: Iterable[LawLike] | LawLike | None, default: tuple[LawFamily, ...]) -> tuple[LawFamily, ...]:
    """Families of what the caller named, or the default ones."""
    if laws is None:
        return default
    single = isinstance(laws, (str, Mapping)) or not isinstance(laws, Iterable)
    return tuple(map(family_of, [laws] if single else laws)) or default  # type: ignore[arg-type]


#: What is considered unless other laws are named.
DEFAULT_FAMILIES = tuple(family_of(text) for row in LAWS.values() for text in row.defaults)
