"""What one question was asked with: a text for every option and where it came from, and the value that makes.

The command line, a mapping of a spec file and the environment are three layers of texts, merged by one rule and read
by one function, so that an option means the same wherever it is written.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from hpcalc.cli.command import COMMAND_LINE, ENVIRONMENT, SPEC, Given, Option
from hpcalc.cli.options import GUARANTEES, LAW, TRAINING
from hpcalc.errors import HpcalcError, InvalidInput
from hpcalc.files import Node, shown

_SUFFIXES = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".csv": "csv", ".md": "markdown"}


class CommandLineError(HpcalcError):
    """An input error whose text already says where the value came from."""


Layer = Mapping[str, Given]


def environment(options: Mapping[str, Option]) -> dict[str, Given]:
    """The layer of the environment: of the variables that speak for an option, the first that is set."""
    found = {key: next(filter(os.environ.get, option.envvar or ()), None) for key, option in options.items()}
    return {key: Given((os.environ[name],), f"{name}=", ENVIRONMENT) for key, name in found.items() if name}


_SCALES = ("mean", "mu", "gamma", "p", "accept")
_OTHERS = (*GUARANTEES, "run", "compose")
_INSTEAD = (  # what says the same thing in other words: the higher layer's words replace the lower layer's
    (("dist",), LAW),
    ((*GUARANTEES, "run"), (*_OTHERS, *TRAINING)),
    (("sample_rate",), ("batch_size", "accumulation")),
    (("batch_size", "accumulation"), ("sample_rate",)),
    (("epsilon",), ("delta",)),
    (("delta",), ("epsilon",)),
    (("at_epsilon", "at_success", "sweep"), ("mean", "at_epsilon", "at_success", "sweep")),
    *((alike, alike) for alike in (_SCALES, ("steps", "epochs"), ("max_runs", "clamp_runs"))),
)


def merged(layers: Sequence[Layer]) -> dict[str, Given]:
    """Layers, the highest first, as one: a law or a guarantee in a higher layer replaces those in the lower ones."""
    out: dict[str, Given] = {}
    replaced: set[str] = set()
    for index, layer in enumerate(layers):
        out |= {key: given for key, given in layer.items() if key not in out and key not in replaced}
        for words, instead in _INSTEAD:
            if not layer.keys().isdisjoint(words):
                replaced |= set(instead)
        below = {key for lower in layers[index + 1 :] for key in lower}
        # the words of a training override word by word; where there is none, they are a guarantee instead of others
        if not layer.keys().isdisjoint(TRAINING) and below.isdisjoint(TRAINING):
            replaced |= set(_OTHERS)
    return out


class Case:
    """The options of one question, or of one guarantee within it (a candidate, what is released afterwards)."""

    def __init__(
        self, options: Mapping[str, Option], given: Layer,
        name: str | None = None, spec: str | None = None, line: int = 1,
    ) -> None:  # fmt: skip
        self.options = options
        # other keys are options of other commands
        self.given = {key: given[key] for key in options if key in given}
        self.name, self.spec, self.line = name, spec, line
        self.values: dict[str, Any] = {}
        for key, one in self.given.items():
            try:
                values = tuple(map(options[key].read, one.texts))
            except InvalidInput as error:
                raise self.located(error) from error
            if len(values) > 1 and not options[key].many:
                both = " and ".join(shown(text) for text in one.texts[:2])
                raise CommandLineError(f"{one.label.rstrip(':=')}: given twice, {both}: keep one")
            self.values[key] = values if options[key].many else values[0]

    def __getitem__(self, key: str) -> Any:
        option = self.options.get(key)
        return self.values.get(key, option.fallback if option is not None else None)

    def chosen(self, *keys: str) -> dict[str, Any]:
        """The values of some options."""
        return {key: self[key] for key in keys}

    def source(self, key: str) -> int | None:
        """Where the option's value comes from; None where it is the default."""
        return self.given[key].source if key in self.given else None

    @property
    def format(self) -> str:
        """The format: as typed, else by the output file's suffix, else as the spec or the environment has it."""
        suffix = os.path.splitext(self["output"] or "")[1].lower()
        named: dict[str, str] = {} if self.source("format") == COMMAND_LINE else _SUFFIXES
        return named.get(suffix, str(self["format"]))

    def without(self, *keys: str) -> Case:
        """The case, some options left out."""
        given = {key: one for key, one in self.given.items() if key not in keys}
        return Case(self.options, given, self.name, self.spec, self.line)

    @property
    def place(self) -> str:
        """What comes before a sentence about the whole case: where it stands."""
        named = f" {self.name}:" if self.name is not None else ""
        return f"{self.spec}:{self.line}:{named} " if self.spec else ""

    def label(self, key: str) -> str:
        """How an error names the option: as typed, as a variable, or as a place in the spec file."""
        if key in self.given:
            return self.given[key].label
        return self.options[key].flag if key in self.options else f"{self.place}{key.replace('_', '-')}:"

    def located(self, error: InvalidInput) -> CommandLineError:
        """The same error, naming the option as the user gave it."""
        label = self.label(error.parameter)
        if error.value in (None, "(missing)"):
            return CommandLineError(f"{label.rstrip(':=')} is missing: {error.remedy}")
        return CommandLineError(f"{label}{'' if label.endswith('=') else ' '}{shown(error.value, 200)}: {error.remedy}")

    def refuse(self, key: str, remedy: str) -> NoReturn:
        """Refuse an option whose value is fine but out of place."""
        value = self.values.get(key)
        first = value[0] if isinstance(value, tuple) else value
        if first is None or isinstance(first, (bool, Case, Node)):
            raise CommandLineError(f"{self.label(key).rstrip(':=')}: {remedy}")
        raise self.located(InvalidInput(key, value, remedy))

    def require(self, *rules: tuple[str, object, str]) -> None:
        """Refuse the first (key, whether it is in its place, remedy) that is not."""
        for key, legal, remedy in rules:
            if not legal:
                self.refuse(key, remedy)

    def written(self, command: str, options: Mapping[str, Option], *more: str, leave: Iterable[str] = ()) -> str:
        """A command line that asks another command, whose ``options`` these are, about the same case, and ``more``."""
        import shlex  # only a failed gate and --explain pay for it

        words = ["hpcalc", command]
        if self.spec is not None:
            words += ["--spec", "-" if self.spec == "standard input" else self.spec]
            words += ["--case", self.name] if self.name is not None else []
        for key, given in self.given.items():
            aside = key not in options or key in leave or options[key].group in ("Output", "Spec files")
            if not aside and (self.spec is None or given.source != SPEC):
                for entry in given.texts:
                    words += [options[key].flag, *(() if entry is True else options[key].values(entry))]
        return " ".join(map(shlex.quote, [*words, *more]))

    def plain(self, *always: str) -> dict[str, Any]:
        """The options as a spec file holds them; ``always``: keys that are told at their default too."""
        told = [(key, one) for key, one in self.options.items() if key in self.values or key in always]
        return {one.flag.lstrip("-"): _plain(self[key]) for key, one in told}


def _plain(value: Any) -> Any:
    """A value as a spec file holds it: text for what only hpcalc reads, such as an infinite order."""
    if isinstance(value, Case):
        return value.plain()
    if isinstance(value, Node) and value.kind == "mapping":
        return {name.text: _plain(part) for name, part in value.children}
    if isinstance(value, Node):
        return [_plain(part) for part in value.children] if value.kind == "list" else value.text
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    if isinstance(value, tuple):
        parts = [_plain(part) for part in value]
        return parts[0] if len(parts) == 1 and not isinstance(value[0], (tuple, Case)) else parts
    return value
