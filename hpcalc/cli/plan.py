"""``hpcalc plan``: the search, or the noise, that a privacy target pays for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hpcalc.cli.command import Command
from hpcalc.cli.options import BASE, COMMON, PRIVACY, RUNS, select

if TYPE_CHECKING:
    from hpcalc.cli.settings import Settings


def _answer(settings: Settings) -> Any:
    from hpcalc.cli.build import accounting, base_from, base_or_none, law_parameters, laws_named, scores_from
    from hpcalc.cli.execute import Progress
    from hpcalc.questions import plan

    noise = settings["solve_for"] not in (None, "runs")
    sampling = None
    if noise:
        settings, compositions = _without(settings, "compose")
        if settings["solve_for"] == "dpsgd-noise":
            settings, sampling = _sampling(settings)
        options: dict[str, Any] = {"compositions": compositions, "sampling": sampling}
    else:
        options = {}
    modifiers = {key: settings[key] for key in ("max_runs", "at_least_one") if settings[key]}
    named, laws = law_parameters(settings, optional=True), laws_named(settings)
    if named is None:
        if noise:
            options["mean"] = settings["mean"]
        elif settings["mean"] is not None:
            settings.refuse("mean", "is what plan solves for: leave it out")
        if modifiers:
            from hpcalc.questions.family import default_laws

            laws = [{**law, **modifiers} for law in laws or default_laws()]
    with Progress() as progress:
        return plan(
            base_or_none(settings) if noise else base_from(settings),
            named,
            laws=laws,
            success_rate=settings["success_rate"],
            scores=scores_from(settings),
            minimize=bool(settings["minimize"]),
            optimize_eta=bool(settings["optimize_eta"]),
            progress=progress,
            **{key: settings[key] for key in _QUESTION},
            **options,
            **accounting(settings),
        )


_QUESTION = ("target_epsilon", "solve_for", "maximize", "target_success", "max_runs_p95")
_TRAINING = ("dpsgd", "noise_multiplier", "examples", "batch_size", "epochs", "accumulation")


def _without(settings: Settings, *keys: str) -> tuple[Settings, Any]:
    """The settings without some options, and the first one's value."""
    values = {key: None if key in keys else value for key, value in settings.values.items()}
    return replace(settings, values=values), settings[keys[0]]


def _sampling(settings: Settings) -> tuple[Settings, tuple[float, int] | None]:
    """Rate and steps of the training whose noise is solved for; the noise given with them, if any, is not used."""
    from hpcalc.cli.build import sgd_shape

    shape = sgd_shape(settings, needs_noise=False)
    given = settings["dpsgd"] or ()
    if len(given) + (shape is not None) > 1:
        settings.refuse("dpsgd", "--solve-for dpsgd-noise solves for one training: describe one")
    if given:
        rate, _, steps = given[0]
        shape = (rate, int(steps))
    return _without(settings, *_TRAINING)[0], shape


command = Command(
    "plan",
    _answer,
    select(
        "plan",
        BASE,
        RUNS,
        "law",
        "target-epsilon",
        "solve-for",
        "maximize",
        "optimize-eta",
        "target-success",
        "max-runs-p95",
        "success-rate",
        "scores",
        "column",
        "minimize",
        PRIVACY,
        "plot",
        COMMON,
    ),
    help="Solve for the law of K that meets a privacy target, or, with --solve-for and a law, for the least noise of "
    "the base. What is printed meets the target when it is fed back to 'hpcalc bound'.",
    example="hpcalc plan --zcdp 0.1 --target-epsilon 4 --success-rate 0.01",
)
