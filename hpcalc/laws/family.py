"""Laws of K with one parameter left open: what plans solve for and comparisons set to a common mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hpcalc.catalog import LAWS, PARAMETERS, long_name
from hpcalc.errors import InvalidInput
from hpcalc.laws.law import RunCount, checked_law
from hpcalc.laws.naming import make_law, parse_law

#: A law as the public functions take it: an object, the text of ``--law``, or keyword arguments of ``make_law``.
LawLike: TypeAlias = "RunCount | LawFamily | str | Mapping[str, Any]"

_RANGES = {"whole": (1.0, 2.0**53), "probability": (1e-300, 1.0)}


@dataclass(frozen=True)
class LawFamily:
    """A law of K but for its scale parameter."""

    dist: str  # its name, as --dist
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)  # what is fixed, as make_law takes it
    scale: str | None = None  # the open parameter; None if the law has none (a pmf, a law of one's own)
    given: RunCount | None = None  # the law itself, where the open parameter was given too

    def at(self, value: float) -> RunCount:
        """The law whose open parameter is ``value``."""
        assert self.scale is not None
        return make_law(self.dist, **{**self.parameters, self.scale: value})

    def with_mean(self, mean: float) -> RunCount:
        """The law of a mean, before it is cut or conditioned; a whole number of runs is the nearest one."""
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
    def _domain(self) -> str:
        return PARAMETERS[self.scale].domain if self.scale in PARAMETERS else "positive"

    @property
    def whole(self) -> bool:
        """Whether the open parameter is a whole number."""
        return self._domain == "whole"

    @property
    def range(self) -> tuple[float, float]:
        """Safest and boldest legal value of the open parameter."""
        low, high = _RANGES.get(self._domain, (1e-300, 1e100))
        return (high, low) if LAWS[self.dist].safe == "up" else (low, high)

    @property
    def label(self) -> str:
        """The law as ``--law`` writes it, without the open parameter."""
        words = []
        for key, value in self.parameters.items():
            name = key.replace("_", "-")
            if isinstance(value, (int, float)) and value is not False:
                words.append(name if value is True else f"{name}={value:g}")
        return f"{self.dist}:{','.join(words)}" if words else self.dist

    @property
    def title(self) -> str:
        """The law for people, without the open parameter."""
        return long_name(self.dist, dict(self.parameters))


def family_of(law: LawLike) -> LawFamily:
    """The family of a law given as an object, as text (``"tnb:eta=0"``) or as a mapping of its parameters.

    Raises TypeError for what is no law at all.

    Examples
    --------
    >>> family_of("tnb:eta=0.5").scale, family_of({"dist": "binomial", "p": 0.5}).scale
    ('gamma', 'n')
    """
    if isinstance(law, LawFamily):
        return law
    if not isinstance(law, (str, Mapping)):
        known = LAWS.get(checked_law(law).name)
        if known is None or not known.scales:
            return LawFamily(law.name, given=law)
        scale = known.scales[0]
        fixed = {key: value for key, value in law.parameters().items() if key not in (scale, f"log_{scale}")}
        return LawFamily(law.name, fixed, scale, law)
    named = parse_law(law) if isinstance(law, str) else law
    parameters = {key: value for key, value in named.items() if value is not None}
    dist = str(parameters.pop("dist"))
    if dist not in LAWS or not LAWS[dist].scales:
        return LawFamily(dist, given=make_law(dist, **parameters))
    scales = LAWS[dist].scales
    # the scale is open, unless only another of the parameters that could be is not there (a binomial's n)
    scale = next((key for key in scales[1:] if key not in parameters), scales[0])
    given = make_law(dist, **parameters) if scale in parameters or "mean" in parameters else None
    family = LawFamily(dist, {key: parameters[key] for key in parameters if key not in (scale, "mean")}, scale, given)
    if given is None:
        family.at(family.range[0] if scale == scales[0] else 1.0)  # what is fixed must be legal
    return family


def families_of(laws: Iterable[LawLike] | LawLike | None, default: tuple[LawFamily, ...]) -> tuple[LawFamily, ...]:
    """Families of what the caller named, or the default ones."""
    if laws is None:
        return default
    single = isinstance(laws, (RunCount, str, Mapping, LawFamily))
    named: Iterable[LawLike] = [laws] if single or not isinstance(laws, Iterable) else laws  # type: ignore[list-item]
    return tuple(family_of(law) for law in named) or default


def default_laws() -> list[dict[str, Any]]:
    """The laws that are considered unless others are named, as keyword arguments of ``make_law``."""
    return [dict(parse_law(text)) for row in LAWS.values() for text in row.defaults]


DEFAULT_FAMILIES = tuple(map(family_of, default_laws()))
