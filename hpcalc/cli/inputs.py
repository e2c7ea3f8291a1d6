"""From a case to the objects of the numeric core: one run's guarantee, the law of K, what else is released, scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pkgutil import resolve_name
from typing import Any

from hpcalc.catalog import GUARANTEES as KINDS
from hpcalc.catalog import LAWS
from hpcalc.cli.case import Case, CommandLineError
from hpcalc.cli.command import Given
from hpcalc.cli.options import GUARANTEES, LAW, PART, TRAINING
from hpcalc.cli.spec import settings_of
from hpcalc.datafiles import parse_rdp_text, read_history, read_pmf, read_profile, read_rdp
from hpcalc.errors import InvalidInput
from hpcalc.files import did_you_mean, shown
from hpcalc.guarantees import Guarantee, compose, repeat
from hpcalc.guarantees.mixture import Mixture
from hpcalc.laws import parse_law


def guarantee(case: Case, *, optional: bool = False) -> Any:
    """The guarantee of one run: everything that was given, composed; None where it is ``optional`` and not given."""
    case.require(
        ("group", None in (case["group"], case["subset"]),
         "does not go with --subset: the records of one person are sampled one by one"),
        ("run", all(isinstance(part, Case) for part in case["run"] or ()),
         "give a list of guarantees, e.g. - {dpsgd: [0.01, 1.1, 1000], times: 3}"),
    )  # fmt: skip
    parts = [*_parts(case), *map(_item, case["run"] or ())]
    if case["candidates"] is not None:
        case.require(("candidates", not parts, "stands for the whole guarantee of one run: leave the others out"))
        return _candidates(case)
    if parts:
        return repeat(compose(*(part.group(case["group"] or 1) for part in parts)), case["compose"] or 1)
    if optional:
        return None
    told = "there is nothing to compose: give a guarantee too, e.g. --zcdp 0.1"
    case.require(("compose", "compose" not in case.given, told))
    choices = ", ".join(case.options[key].flag for key in GUARANTEES if key in case.options)
    raise CommandLineError(
        f"{case.place}no guarantee for one run: give one of {choices},\n"
        "or --noise-multiplier with --sample-rate (or --examples and --batch-size) and --steps (or --epochs)"
    )


_READERS = {"rdp": parse_rdp_text, "rdp_file": read_rdp, "profile_file": read_profile}


def _made(name: str, *values: Any, **more: Any) -> Guarantee:
    """A guarantee of the table: few command lines need what its module loads."""
    made: Guarantee = resolve_name(KINDS[name].target)(*values, **more)
    return made


def _parts(case: Case) -> Iterator[Guarantee]:
    """Every guarantee that was given, in the order of the table."""
    for name in KINDS:
        key = name.replace("-", "_")
        for value in case[key] or ():
            if key in _READERS:
                yield _made(name, _READERS[key](value), echo={key: value})
            else:
                yield _made(name, *(value if isinstance(value, tuple) else (value,)))
    for path in case["history"] or ():
        yield compose(*(_made("dpsgd", *entry) for entry in read_history(path)))
    shape, noise = _training(case, noise=True), case["noise_multiplier"]
    if shape is not None:
        try:
            yield _made("dpsgd", shape[0], noise, shape[1])
        except InvalidInput as error:  # it knows these numbers as those of --dpsgd
            raise InvalidInput("noise_multiplier", noise, error.remedy) from error


def _item(part: Case) -> Guarantee:
    """One guarantee within a case."""
    try:
        if parts := list(_parts(part)):
            return repeat(compose(*parts), part["times"] or 1)
    except InvalidInput as error:
        raise part.located(error) from error
    names = ", ".join(key.replace("_", "-") for key in GUARANTEES if key in PART)
    raise CommandLineError(f"{part.place}no guarantee: give one of {names}")


def _candidates(case: Case) -> Guarantee:
    """Settings with guarantees of their own, of which every run draws one; under ``composition`` the runs."""
    rows, weights, stated = settings_of(case)
    # each row's own times are for the list alone
    each = (_item(row.without("times")).group(case["group"] or 1) for row in rows)
    parts = tuple(repeat(part, case["compose"] or 1) for part in each)
    names = tuple(str(row.name) for row in rows)
    if case["dist"] == "composition":
        counts = tuple(row["times"] or 1 for row in rows)
        case.require(
            ("candidates", not stated, "with --dist composition every row is a run: leave the weights out"),
            ("k", case["k"] in (None, sum(counts)), f"the candidates are {sum(counts)} runs: leave --k out"),
        )
        return Mixture(parts, None, names, counts)
    told = "times is for --dist composition, where every row is a run: give weights"
    case.require(("candidates", not any(row["times"] for row in rows), told))
    return Mixture(parts, weights, names)


def candidates_at(case: Case) -> Callable[[float], Guarantee]:
    """The candidates as trainings that share one noise multiplier, which is yet to be found."""
    rows, weights, _ = settings_of(case)
    shapes = [sampling(row) for row in rows]
    told = "--solve-for dpsgd-noise needs the sampling rate and the steps of every setting"
    listed = "with --dist composition every row is a run: --solve-for dpsgd-noise needs another law"
    case.require(("candidates", None not in shapes, told), ("candidates", case["dist"] != "composition", listed))

    def made(noise: float) -> Guarantee:
        each = (_made("dpsgd", rate, noise, steps).group(case["group"] or 1) for rate, steps in filter(None, shapes))
        return Mixture(tuple(repeat(training, case["compose"] or 1) for training in each), weights)

    return made


def sampling(case: Case) -> tuple[float, int] | None:
    """Rate and steps of the training whose noise is solved for; the noise given with them, if any, is not used."""
    shape, given = _training(case, noise=False), case["dpsgd"] or ()
    alone = len(given) + (shape is not None) <= 1
    case.require(("dpsgd", alone, "--solve-for dpsgd-noise solves for one training: describe one"))
    return (given[0][0], int(given[0][2])) if given else shape


def _training(case: Case, *, noise: bool) -> tuple[float, int] | None:
    """Sampling rate and number of steps of a training script, which needs its ``noise``; None if none was described."""
    asked = [key for key in TRAINING if case[key] is not None and (noise or key != "noise_multiplier")]
    if not asked:
        return None
    if noise and case["noise_multiplier"] is None:
        raise CommandLineError(f"{case.place}--noise-multiplier is missing beside {case.label(asked[0]).rstrip(':=')}")
    from fractions import Fraction

    rate, steps, epochs = case["sample_rate"], case["steps"], case["epochs"]
    said = "says what {} says already: keep one of them".format
    case.require(
        ("batch_size", None in (rate, case["batch_size"]), said("--sample-rate")),
        ("accumulation", None in (rate, case["accumulation"]), said("--sample-rate")),
        ("epochs", None in (steps, epochs), said("--steps")),
    )
    if rate is None and None in (case["examples"], case["batch_size"]):
        raise CommandLineError(f"{case.place}DP-SGD needs --sample-rate, or --examples and --batch-size")
    if steps is None and epochs is None:
        raise CommandLineError(f"{case.place}DP-SGD needs --steps or --epochs")
    # a decimal is what was typed: 0.1 epochs are 1/10, not 0.1000000000000000055
    batches, examples = case["accumulation"] or 1, case["examples"]
    exact = Fraction(case["batch_size"] * batches, examples) if rate is None else Fraction(repr(rate))
    large = f"{'a batch' if batches == 1 else f'{batches} batches'} cannot be larger than the data set of {examples}"
    case.require(
        ("batch_size", rate is not None or exact <= 1, f"{large} examples (sampling rate > 1)"),
        ("sample_rate", 0 < exact <= 1, "give a probability in (0, 1]: expected batch size / training set"),
        ("epochs", steps is not None or 0.0 < epochs <= 1e12, "give a number > 0"),
    )
    return float(exact), steps or math.ceil(Fraction(repr(epochs)) / exact)


def law_parameters(case: Case, base: Guarantee | None = None, *, optional: bool = False) -> dict[str, Any]:
    """The law of K for :func:`hpcalc.laws.make_law`, its scale may be open; ``base`` may be the runs themselves."""
    dist, *keys = LAW
    parameters = {key: case[key] for key in keys if case[key] is not None and case[key] is not False}  # 0 is an eta
    if case[dist] is None:
        # a cutoff or a mean alone says something about laws that the command chooses itself
        loose = ("mean", "max_runs", "clamp_runs", "at_least_one") if optional else ()
        told = "belongs to a law of K: name it with --dist"
        case.require(*((key, key in loose, told) for key in parameters))
        if optional:
            return {}
        raise CommandLineError(f"{case.place}--dist is missing: choose the law of K: {', '.join(LAWS)}")
    if case[dist] == "composition" and case["candidates"] is not None:
        parameters["k"] = sum(base.counts) if isinstance(base, Mixture) else 1
    if "pmf" in parameters:
        parameters["pmf"] = read_pmf(parameters["pmf"])
    return {"dist": case[dist], **parameters}


def laws_named(case: Case) -> list[dict[str, Any]] | None:
    """What every ``--law`` names, as :func:`law_parameters`; None if none, so that the command takes its own laws."""
    laws: list[dict[str, Any]] = [parse_law(text) for text in case["law"] or ()]
    return [law | {"pmf": read_pmf(law["pmf"])} if isinstance(law.get("pmf"), str) else law for law in laws] or None


def release(case: Case) -> dict[str, Any]:
    """Keyword arguments of the privacy questions: only what was given."""
    out = {key: case[key] for key in ("searches", "density", "examples", "unit", "subset") if case[key] is not None}
    case.require(
        ("subset", case["subset"] != "auto" or "target_epsilon" in case.options,
         "auto is for 'hpcalc plan', which looks for the best rate: give a number"),
        ("then_on", {"then", "subset"} <= case.given.keys() or "then_on" not in case.given,
         "says what --then saw of the records beside a --subset: give both"),
        ("density", "density" not in out or case["dist"] not in ("threshold", "composition"),
         f"does not go with --dist {case['dist']}: its runs are not draws from one prior"),
        *(("method", case["method"] != "paper" or key not in out, f"the paper has no bound for --{key}: leave it out")
          for key in ("subset", "density")),
    )  # fmt: skip
    if "then" in case.given:
        out["then"] = [_then(case, item) for item in case["then"]]
    return out | ({"then_on": case["then_on"]} if "then_on" in case.given else {})


def _then(case: Case, item: Case | str) -> Guarantee | str:
    """What is released after the search: ``run``, a mapping of options, or ``NAME=VALUES`` as on the command line."""
    if isinstance(item, str) and item.strip() == "run":
        return "run"
    if isinstance(item, str):  # a file's name or points are the whole rest, numbers are separated by commas
        name, equals, rest = item.partition("=")
        key, label = name.strip().removeprefix("--").replace("-", "_"), case.label("then")
        if not equals or key not in GUARANTEES or key not in PART:
            near = did_you_mean(key.replace("_", "-"), [one.replace("_", "-") for one in GUARANTEES if one != key])
            told = f"{near}write run or NAME=VALUES, e.g. dpsgd=0.01,1.1,1000"
            raise CommandLineError(f"{label} {shown(item, 200)}: {told}")
        item = Case({key: PART[key]}, {key: Given((rest,), f"{label} {name.strip()}=")})
    return _item(item).group(case["group"] or 1)
