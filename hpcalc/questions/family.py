"""Laws of K with one parameter left open: what plans solve for and comparisons set to a common mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hpcalc.catalog import LAWS, PARAMETERS
from hpcalc.errors import InvalidInput
from hpcalc.laws import RunCount, make_law, parse_law

__all__ = ["DEFAULT_FAMILIES", "LawFamily", "LawLike", "default_laws", "families_of", "family_of"]

#: A law as the public functions take it: an object, the text of ``--law``, or keyword arguments of ``make_law``.
LawLike: TypeAlias = "RunCount | LawFamily | str | Mapping[str, Any]"

_MOST_RUNS = 2**53


@dataclass(frozen=True)
class LawFamily:
    """A law of K but for its scale parameter.

    Attributes
    ----------
    dist : str
        The law's name, as ``--dist``.
    parameters : dict
        What is fixed: eta, n, max_runs, at_least_one.
    scale : str or None
        The open parameter: mu, gamma, p, k, n or accept. None if the law has none (a pmf, a law of one's own).
    safe_up : bool
        Whether a larger value of the open parameter means fewer runs.
    given : RunCount or None
        The law itself, where the open parameter was given too.
    """

    dist: str
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    scale: str | None = None
    safe_up: bool = False
    given: RunCount | None = None

    def at(self, value: float) -> RunCount:
        """The law whose open parameter is ``value``."""
        assert self.scale is not None
        return make_law(self.dist, **{**self.parameters, self.scale: value})

    def with_mean(self, mean: float) -> RunCount:
        """The law of a mean, before ``max_runs`` and ``at_least_one``; fixed K takes the nearest whole number."""
        if self.scale is None:
            raise InvalidInput("mean", mean, f"{self.dist} has a mean of its own: leave --mean out")
        if self.whole:
            each = self.parameters["p"] if self.scale == "n" else 1.0
            return self.at(max(round(mean / each), 1))
        return make_law(self.dist, **{**self.parameters, "mean": mean})

    def scale_at(self, mean: float) -> float:
        """The open parameter at a mean; the boldest there is where the law has no such mean."""
        assert self.scale is not None
        try:
            value = self.with_mean(mean).parameters().get(self.scale)
        except InvalidInput:  # a mean beyond a binomial's n
            return self.range[1]
        return float(value) if isinstance(value, (int, float)) else 1e-300

    @property
    def whole(self) -> bool:
        """Whether the open parameter is a whole number."""
        return self.scale in PARAMETERS and PARAMETERS[self.scale].domain == "whole"

    @property
    def range(self) -> tuple[float, float]:
        """Safest and boldest legal value of the open parameter."""
        if self.safe_up:
            return 1.0, 1e-300
        if self.whole:
            return 1.0, float(_MOST_RUNS)
        return (1e-300, 1.0) if self.scale == "p" else (1e-300, 1e100)

    @property
    def label(self) -> str:
        """The law as ``--law`` writes it, without the open parameter."""
        words = [
            key.replace("_", "-") if value is True else f"{key.replace('_', '-')}={value:g}"
            for key, value in self.parameters.items()
            if isinstance(value, (int, float)) and value is not False
        ]
        return ":".join([self.dist, ",".join(words)] if words else [self.dist])


def family_of(law: LawLike) -> LawFamily:
    """The family of a law given as an object, as text (``"tnb:eta=0"``) or as a mapping of its parameters.

    Examples
    --------
    >>> family_of("tnb:eta=0.5").scale, family_of({"dist": "binomial", "p": 0.5}).scale
    ('gamma', 'n')
    """
    if isinstance(law, LawFamily):
        return law
    if isinstance(law, RunCount):
        row = LAWS.get(law.name)
        if row is None or not row.scales:
            return LawFamily(law.name, given=law)
        scale = row.scales[0]
        echo: dict[str, Any] = dict(law.parameters())
        fixed = {key: value for key, value in echo.items() if key not in (scale, f"log_{scale}")}
        return LawFamily(law.name, fixed, scale, row.safe == "up", law)
    parameters = dict(parse_law(law)) if isinstance(law, str) else dict(law)
    parameters = {key: value for key, value in parameters.items() if value is not None}
    dist = str(parameters.pop("dist"))
    row = LAWS.get(dist)
    if row is None or not row.scales:
        return LawFamily(dist, given=make_law(dist, **parameters))
    # a binomial of a given p is solved for n
    scale = next((key for key in reversed(row.scales) if key not in parameters), row.scales[0])
    given = make_law(dist, **parameters) if scale in parameters or "mean" in parameters else None
    kept = {key: value for key, value in parameters.items() if key not in (scale, "mean")}
    family = LawFamily(dist, kept, scale, row.safe == "up", given)
    if given is None:
        family.at(family.range[0] if scale != "n" else 1.0)  # what is fixed must be legal
    return family


def families_of(laws: Iterable[LawLike] | LawLike | None, default: tuple[LawFamily, ...]) -> tuple[LawFamily, ...]:
    """Families of what the caller named, or the default ones."""
    if laws is None:
        return default
    named: Iterable[LawLike] = [laws] if isinstance(laws, (RunCount, str, Mapping, LawFamily)) else laws
    families = tuple(family_of(law) for law in named)
    return families or default


def default_laws() -> list[dict[str, Any]]:
    """The laws that are considered unless others are named, as keyword arguments of ``make_law``."""
    return [dict(parse_law(text)) for row in LAWS.values() for text in row.defaults]


DEFAULT_FAMILIES = tuple(map(family_of, default_laws()))
