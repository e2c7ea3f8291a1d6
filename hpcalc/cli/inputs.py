"""From a case to the objects of the numeric core: one run's guarantee, the law of K, what else is released, scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hpcalc.catalog import DISTS, LAWS, load
from hpcalc.catalog import GUARANTEES as KINDS
from hpcalc.cli.case import Case, CommandLineError, Given, shown
from hpcalc.cli.options import GUARANTEES, LAW, TRAINING, every
from hpcalc.errors import InvalidInput

if TYPE_CHECKING:
    from hpcalc.guarantees import Guarantee
    from hpcalc.laws import RunCount

__all__ = ["accounting", "guarantee", "law", "law_parameters", "laws_named", "release", "scores", "some_guarantee",
           "training"]  # fmt: skip


def guarantee(case: Case) -> Guarantee:
    """The guarantee of one run: everything that was given, composed."""
    base = some_guarantee(case)
    if base is not None:
        return base
    if case.gives("compose"):
        case.refuse("compose", "there is nothing to compose: give a guarantee too, e.g. --zcdp 0.1")
    choices = ", ".join(f"--{name}" for name in GUARANTEES if name.replace("-", "_") in case.options)
    raise CommandLineError(
        f"{case.place}no guarantee for one run: give one of {choices},\n"
        "or --noise-multiplier with --sample-rate (or --examples and --batch-size) and --steps (or --epochs)"
    )


def some_guarantee(case: Case) -> Guarantee | None:
    """As :func:`guarantee`; None where nothing was given (a plan may solve for the guarantee itself)."""
    from hpcalc.guarantees import compose

    if case["group"] is not None and case["subset"] is not None:
        case.refuse("group", "does not go with --subset: the records of one person are sampled one by one")
    parts = list(_parts(case))
    for part in case["run"] or ():
        if not isinstance(part, Case):
            case.refuse("run", "give a list of guarantees, e.g. - {dpsgd: [0.01, 1.1, 1000], times: 3}")
        parts.append(_item(part))
    if case["candidates"] is not None:
        if parts:
            case.refuse("candidates", "stands for the whole guarantee of one run: leave the others out")
        return _candidates(case)
    if not parts:
        return None
    return _times(compose(*(_grouped(case, part) for part in parts)), case["compose"])


def _times(part: Guarantee, times: int | None) -> Guarantee:
    from hpcalc.guarantees import repeat

    return part if times is None else repeat(part, times)


def _grouped(case: Case, part: Guarantee) -> Guarantee:
    """The guarantee for the records of one person, of which there are up to ``--group``."""
    if case["group"] is None:
        return part
    if not hasattr(part, "group"):
        case.refuse("group", "is not there yet for this guarantee: scale it by hand, e.g. zcdp by the square")
    try:
        grouped: Guarantee = part.group(case["group"])
        return grouped
    except InvalidInput as error:
        raise case.located(error) from error


def _parts(case: Case) -> Iterator[Guarantee]:
    """Every guarantee that was given, in the order of the table."""
    for name, row in KINDS.items():
        make, reader = load(row.target), _READERS.get(name)
        for value in case[name.replace("-", "_")] or ():
            if reader is not None:
                yield make(load(f"hpcalc.datafiles.{reader}")(value), echo={name.replace("-", "_"): value})
            else:
                yield make(*value) if isinstance(value, tuple) else make(value)
    for path in case["history"] or ():
        yield _history(path)
    shape = training(case, noise=True)
    if shape is not None:
        from hpcalc.guarantees.dpsgd import DPSGD

        noise = case["noise_multiplier"]
        try:
            yield DPSGD(shape[0], noise, shape[1])
        except InvalidInput as error:  # it knows these numbers as those of --dpsgd
            raise InvalidInput("noise_multiplier", noise, error.remedy) from error


_READERS = {"rdp": "parse_rdp_text", "rdp-file": "read_rdp", "profile-file": "read_profile"}


def _history(path: str) -> Guarantee:
    from hpcalc.datafiles import read_history
    from hpcalc.guarantees import compose
    from hpcalc.guarantees.dpsgd import DPSGD

    return compose(*(DPSGD(rate, noise, steps) for rate, noise, steps in read_history(path)))


def _item(part: Case, *, times: bool = True) -> Guarantee:
    """One guarantee within a case, ``times`` times unless that is somebody else's affair."""
    from hpcalc.guarantees import compose

    try:
        parts = list(_parts(part))
        if not parts:
            names = ", ".join(name for name in GUARANTEES if name != "candidates")
            raise CommandLineError(f"{_at(part)}no guarantee: give one of {names}")
        return _times(compose(*parts), part.beside.get("times") if times else None)
    except InvalidInput as error:
        if error.parameter not in part.given:
            raise CommandLineError(f"{_at(part)}{error}") from error
        raise part.located(error) from error


def _at(part: Case) -> str:
    return f"{part.spec}:{part.line}: " if part.spec else ""


# -- candidates -------------------------------------------------------------------------------------------------------


def _candidates(case: Case) -> Guarantee:
    """Settings with guarantees of their own, of which every run draws one; under ``composition`` the runs."""
    from hpcalc.cli.spec import settings_of
    from hpcalc.guarantees.mixture import Listed, Mixture, WorstOf

    rows, weights, stated = settings_of(case)
    # each row's own times are for the list alone
    parts = [_times(_grouped(case, _item(row, times=False)), case["compose"]) for row in rows]
    names = tuple(row.name or str(i + 1) for i, row in enumerate(rows))
    if case["dist"] == "composition":
        if stated:
            case.refuse("candidates", "with --dist composition every row is a run: leave the weights out")
        listed = Listed(tuple(parts), names, tuple(row.beside.get("times", 1) for row in rows))
        if case["k"] not in (None, listed.total):
            case.refuse("k", f"the candidates are {listed.total} runs: leave --k out")
        return listed
    if any("times" in row.beside for row in rows):
        case.refuse("candidates", "times is for --dist composition, where every row is a run: give weights")
    return WorstOf(tuple(parts), names) if weights is None else Mixture(tuple(parts), weights, names)


def candidates_at(case: Case) -> Callable[[float], Guarantee]:
    """The candidates as trainings that share one noise multiplier, which is yet to be found."""
    from hpcalc.cli.spec import settings_of
    from hpcalc.guarantees.dpsgd import DPSGD
    from hpcalc.guarantees.mixture import Mixture, WorstOf

    rows, weights, _ = settings_of(case)
    shapes = [training(row.without("noise_multiplier"), noise=False) for row in rows]
    shapes = [(row["dpsgd"][0][0], int(row["dpsgd"][0][2])) if row["dpsgd"] else shape
              for row, shape in zip(rows, shapes, strict=True)]  # fmt: skip
    if None in shapes:
        case.refuse("candidates", "--solve-for dpsgd-noise needs the sampling rate and the steps of every setting")

    def made(noise: float) -> Guarantee:
        parts = tuple(_times(DPSGD(rate, noise, steps), case["compose"]) for rate, steps in filter(None, shapes))
        return WorstOf(parts) if weights is None else Mixture(parts, weights)

    return made


# -- DP-SGD in the words of a training script -------------------------------------------------------------------------


def training(case: Case, *, noise: bool) -> tuple[float, int] | None:
    """Sampling rate and number of steps of a training script, None if none was described."""
    words = [name.replace("-", "_") for name in TRAINING]
    asked = [key for key in words if case[key] is not None]
    if not asked:
        return None
    if noise and case["noise_multiplier"] is None:
        raise CommandLineError(f"{_at(case)}--noise-multiplier is missing beside {case.label(asked[0]).rstrip(':=')}")
    for one, others in (("sample_rate", ("batch_size", "accumulation")), ("steps", ("epochs",))):
        for other in others:
            if case[one] is not None and case[other] is not None:
                case.refuse(other, f"says what --{one.replace('_', '-')} says already: keep one of them")
    if case["sample_rate"] is None and (case["examples"] is None or case["batch_size"] is None):
        raise CommandLineError(f"{_at(case)}DP-SGD needs --sample-rate, or --examples and --batch-size")
    if case["steps"] is None and case["epochs"] is None:
        raise CommandLineError(f"{_at(case)}DP-SGD needs --steps or --epochs")
    from hpcalc.guarantees.dpsgd import steps_from_epochs

    rate, steps = case["sample_rate"], case["steps"]
    if rate is None:
        shape = (case["examples"], case["batch_size"], case["epochs"] or 1.0, case["accumulation"] or 1)
        rate, counted = steps_from_epochs(*shape)
        return rate, steps or counted
    if not 0.0 < rate <= 1.0:
        raise InvalidInput("sample_rate", rate, "give a probability in (0, 1]: expected batch size / training set")
    if steps is None:
        if not case["epochs"] > 0.0:
            raise InvalidInput("epochs", case["epochs"], "give a number > 0")
        steps = -int(-Fraction(str(case["epochs"])) / Fraction(str(rate)) // 1)
    return rate, steps


# -- the law of K -----------------------------------------------------------------------------------------------------


def law_parameters(case: Case, base: Guarantee | None = None, *, optional: bool = False) -> dict[str, Any] | None:
    """The law of K as keyword arguments of :func:`hpcalc.laws.make_law`; its scale may still be open.

    Under ``composition`` the candidates of ``base`` are the runs.
    """
    keys = [name.replace("-", "_") for name in LAW if name != "dist"]
    parameters = {key: case[key] for key in keys if case[key] is not None and case[key] is not False}  # 0 is an eta
    dist = case["dist"]
    if dist is None:
        # a cutoff or a mean alone says something about laws that the command chooses itself
        loose = ("mean", "max_runs", "clamp_runs", "at_least_one") if optional else ()
        for key in parameters:
            if key not in loose:
                case.refuse(key, "belongs to a law of K: name it with --dist")
        if optional:
            return None
        raise CommandLineError(f"{case.place}--dist is missing: choose the law of K: {', '.join(DISTS)}")
    if "clamp_runs" in parameters and "max_runs" in parameters:
        case.refuse("clamp_runs", "is another law than --max-runs: keep one of them")
    if dist == "composition" and case["candidates"] is not None:
        parameters["k"] = getattr(base, "total", 1)
    if "pmf" in parameters:
        from hpcalc.datafiles import read_pmf

        parameters["pmf"] = read_pmf(parameters["pmf"])
    return {"dist": dist, **parameters}


def law(case: Case, base: Guarantee | None = None) -> RunCount:
    """The law of K, every parameter of it known."""
    from hpcalc.laws import make_law

    parameters = law_parameters(case, base)
    assert parameters is not None
    return make_law(**parameters)


def laws_named(case: Case) -> list[dict[str, Any]] | None:
    """What every ``--law`` names, as :func:`law_parameters`; None if none, so that the command takes its own laws."""
    from hpcalc.laws import parse_law

    laws = [dict(parse_law(text)) for text in case["law"] or ()]
    for one in laws:
        if isinstance(one.get("pmf"), str):
            from hpcalc.datafiles import read_pmf

            one["pmf"] = read_pmf(str(one["pmf"]))
    return laws or None


def open_scale(parameters: dict[str, Any]) -> dict[str, Any]:
    """A law's parameters without those that set how often a search runs."""
    scales = (*LAWS[parameters["dist"]].scales[:1], "mean")
    return {key: value for key, value in parameters.items() if key not in scales}


# -- what else is released, and how the search was run ----------------------------------------------------------------


def release(case: Case, base: Guarantee | None) -> dict[str, Any]:
    """Keyword arguments of the privacy questions: only what was given."""
    out = {key: case[key] for key in ("searches", "density", "examples", "unit") if case[key] is not None}
    if case["subset"] is not None:
        out["subset"] = _subset(case)
    if case.gives("then"):
        out["then"] = [_then(case, item, base) for item in case["then"]]
    if case.gives("then_on"):
        if "then" not in out or "subset" not in out:
            case.refuse("then_on", "says what --then saw of the records beside a --subset: give both")
        out["then_on"] = case["then_on"]
    if "density" in out:
        low, high = out["density"]
        if not 0.0 < low <= 1.0 <= high:
            case.refuse("density", "give LOW and HIGH with 0 < LOW <= 1 <= HIGH")
        if case["dist"] in ("threshold", "composition"):
            case.refuse("density", f"does not go with --dist {case['dist']}: its runs are not draws from one prior")
    if case["method"] == "paper" and ("subset" in out or "density" in out):
        case.refuse(
            "method", f"the paper has no bound for --{'subset' if 'subset' in out else 'density'}: leave it out"
        )
    return out


def _subset(case: Case) -> float | str:
    text = str(case["subset"]).strip()
    if text == "auto":
        if "target_epsilon" not in case.options:
            case.refuse("subset", "auto is for 'hpcalc plan', which looks for the best rate: give a number")
        return text
    from hpcalc.cli.types import Number

    try:
        rate = Number().read(text, "subset")
    except InvalidInput as error:
        raise case.located(error) from error
    if not 0.0 < rate < 1.0:
        case.refuse("subset", "give a sampling rate between 0 and 1, e.g. 0.1")
    return rate


def _then(case: Case, item: Any, base: Guarantee | None) -> Guarantee:
    """What is released after the search: ``run``, ``NAME=VALUES`` or a mapping of options."""
    if isinstance(item, Case):
        part = item
    elif str(item).strip() == "run":
        if base is None:
            case.refuse("then", "there is no run to repeat: name the guarantee, e.g. gaussian=5")
        from hpcalc.guarantees.mixture import Mixture, WorstOf

        # the winner is chosen by the data: a further run of it costs what the dearest setting does
        return WorstOf(base.parts, base.names) if isinstance(base, Mixture) else base
    else:
        part = _written(case, str(item))
    return _grouped(case, _item(part))


def _written(case: Case, text: str) -> Case:
    """``NAME=VALUES`` as a guarantee: a file's name or points are the whole rest, numbers are separated by commas."""
    name, equals, rest = text.partition("=")
    key = name.strip().removeprefix("--").replace("-", "_")
    known = {one.replace("-", "_") for one in GUARANTEES if one != "candidates"}
    label = case.label("then")
    if not equals or key not in known:
        from hpcalc.files import nearest

        near = nearest(key, sorted(known))
        hint = f"did you mean {near.replace('_', '-')}=? " if near and near != key else ""
        raise CommandLineError(f"{label} {shown(text)}: {hint}write run or NAME=VALUES, e.g. dpsgd=0.01,1.1,1000")
    option = every()[key]
    count = option.nargs
    words: Any = rest
    if count > 1:
        words = tuple(rest.split(","))
        if len(words) != count:
            raise CommandLineError(f"{label} {shown(text)}: give exactly {count} values: {option.metavar}")
    return Case({key: option}, {key: Given((words,), f"{label} {name.strip()}=")})


# -- the rest ---------------------------------------------------------------------------------------------------------


def scores(case: Case) -> Any:
    """Pilot scores, if a file of them was given."""
    if case["scores"] is None:
        for key in ("column", "minimize", "missing"):
            if case[key]:
                case.refuse(key, "speaks about scores: give --scores FILE too")
        return None
    from hpcalc.datafiles import read_scores

    return read_scores(case["scores"], case["column"], case["missing"], bool(case["minimize"]))


def accounting(case: Case) -> dict[str, Any]:
    """Keyword arguments that every privacy question shares."""
    return {key: case[key] for key in ("delta", "method", "conversion", "orders")}
