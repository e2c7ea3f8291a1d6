"""From options to the objects of the numeric core: one run's guarantee, the law of K, pilot scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcalc.cli.options import BASE, RUNS
from hpcalc.cli.settings import CommandLineError, Settings
from hpcalc.errors import InvalidInput

if TYPE_CHECKING:
    from hpcalc.guarantees import Guarantee
    from hpcalc.laws import RunCount

__all__ = [
    "accounting",
    "base_from",
    "base_or_none",
    "law_parameters",
    "laws_named",
    "runs_from",
    "scores_from",
    "sgd_shape",
]

_TRAINING = ("noise_multiplier", "examples", "batch_size", "epochs")


def base_from(settings: Settings) -> Guarantee:
    """The guarantee of one run: everything that was given, composed.

    Raises
    ------
    HpcalcError
        If nothing was given (the options are listed), or a value is outside its range.
    """
    base = base_or_none(settings)
    if base is not None:
        return base
    if settings.given("compose"):
        settings.refuse("compose", "there is nothing to compose: give a guarantee too, e.g. --zcdp 0.1")
    rest = ("compose", "accumulation", *_words(_TRAINING))
    choices = ", ".join(f"--{name}" for name in BASE if name not in rest)
    raise CommandLineError(
        f"no guarantee for one run: give one of {choices},\n"
        "or --noise-multiplier with --examples, --batch-size and --epochs"
    )


def base_or_none(settings: Settings) -> Guarantee | None:
    """As :func:`base_from`; None where nothing was given (a plan may solve for the base itself)."""
    from hpcalc import guarantees

    parts: list[Guarantee] = [
        *map(guarantees.PureDP, settings["pure"] or ()),
        *map(guarantees.ZCDP, settings["zcdp"] or ()),
        *(guarantees.ApproxDP(epsilon, delta) for epsilon, delta in settings["approx_dp"] or ()),
        *map(guarantees.Gaussian, settings["gaussian"] or ()),
        *map(guarantees.Laplace, settings["laplace"] or ()),
    ]
    for text in settings["rdp"] or ():
        from hpcalc.datafiles import parse_rdp_text

        parts.append(guarantees.RDPCurve(parse_rdp_text(text), {"rdp": text}))
    for path in settings["rdp_file"] or ():
        from hpcalc.datafiles import read_rdp

        parts.append(guarantees.RDPCurve(read_rdp(path), {"rdp_file": path}))
    for path in settings["profile_file"] or ():
        from hpcalc.datafiles import read_profile

        parts.append(guarantees.ProfileCurve(read_profile(path), {"profile_file": path}))
    parts.extend(_trainings(settings))
    if not parts:
        return None
    whole = guarantees.compose(*parts)
    return guarantees.repeat(whole, settings["compose"]) if settings["compose"] is not None else whole


def _words(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(key.replace("_", "-") for key in keys)


def _trainings(settings: Settings) -> list[Guarantee]:
    """DP-SGD, in the accountant's words or in those of a training script."""
    bases: list[Guarantee] = []
    shape = sgd_shape(settings, needs_noise=True)
    if settings["dpsgd"] or shape:
        from hpcalc.guarantees.dpsgd import DPSGD

        bases.extend(DPSGD(rate, sigma, steps) for rate, sigma, steps in settings["dpsgd"] or ())
        if shape is not None:
            noise = settings["noise_multiplier"]
            try:
                bases.append(DPSGD(shape[0], noise, shape[1]))
            except InvalidInput as error:  # it knows these numbers as those of --dpsgd
                raise InvalidInput("noise_multiplier", noise, error.remedy) from error
    return bases


def sgd_shape(settings: Settings, *, needs_noise: bool) -> tuple[float, int] | None:
    """Sampling rate and number of steps of a training script, None if none was described."""
    asked = [key for key in (*_TRAINING, "accumulation") if settings[key] is not None]
    if not asked:
        return None
    needed = _TRAINING if needs_noise else _TRAINING[1:]
    for key in needed:
        if settings[key] is None:
            others = ", ".join(f"--{name}" for name in _words(needed))
            raise CommandLineError(f"--{key.replace('_', '-')} is missing: DP-SGD needs {others} together")
    from hpcalc.guarantees.dpsgd import steps_from_epochs

    return steps_from_epochs(
        settings["examples"], settings["batch_size"], settings["epochs"], settings["accumulation"] or 1
    )


def law_parameters(settings: Settings, *, optional: bool = False) -> dict[str, Any] | None:
    """The law of K as keyword arguments of :func:`hpcalc.laws.make_law`; its scale may still be open.

    Raises
    ------
    HpcalcError
        If no law was named (the choices are listed), or a parameter is missing, superfluous or outside its range.
    """
    parameters: dict[str, Any] = {}
    for name in RUNS:
        key = name.replace("-", "_")
        value = settings[key]
        if key != "dist" and value is not None and value is not False:
            parameters[key] = value
    dist = settings["dist"]
    if dist is None:
        # a cutoff or a mean alone says something about laws that the command chooses itself
        loose = {"mean", "max_runs", "at_least_one"} if optional else set()
        for key in parameters:
            if key not in loose:
                settings.refuse(key, "belongs to a law of K: name it with --dist")
        if optional:
            return None
        from hpcalc.cli.options import DISTS

        raise CommandLineError(f"--dist is missing: choose the law of K: {', '.join(DISTS)}")
    if "pmf" in parameters:
        from hpcalc.datafiles import read_pmf

        parameters["pmf"] = read_pmf(parameters["pmf"])
    return {"dist": dist, **parameters}


def runs_from(settings: Settings) -> RunCount:
    """The law of K, every parameter of it known."""
    from hpcalc.laws import make_law

    parameters = law_parameters(settings)
    assert parameters is not None
    return make_law(**parameters)


def laws_named(settings: Settings) -> list[dict[str, Any]] | None:
    """What every ``--law`` names, as :func:`law_parameters`; None if none, so that the command takes its own laws."""
    from hpcalc.laws import parse_law

    laws = [dict(parse_law(text)) for text in settings["law"] or ()]
    for law in laws:
        if isinstance(law.get("pmf"), str):
            from hpcalc.datafiles import read_pmf

            law["pmf"] = read_pmf(str(law["pmf"]))
    return laws or None


def scores_from(settings: Settings) -> Any:
    """Pilot scores, if a file of them was given."""
    path = settings["scores"]
    if path is None:
        for key in ("column", "minimize"):
            if settings.given(key) and settings[key]:
                settings.refuse(key, "speaks about scores: give --scores FILE too")
        return None
    from hpcalc.datafiles import read_scores

    return read_scores(path, settings["column"])


def accounting(settings: Settings) -> dict[str, Any]:
    """Keyword arguments that every privacy question shares."""
    return {
        "delta": settings["delta"],
        "method": settings["method"],
        "conversion": settings["conversion"],
        "orders": settings["orders"],
    }
