"""One schema describes every answer: it follows the catalog, holds nothing unused, accepts what is printed."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import jsonschema
import pytest
from goldens import COMMANDS, FOLDER

from hpcalc.catalog import LAWS, METHODS

TEXT = (files("hpcalc") / "schema.json").read_text(encoding="utf-8")
SCHEMA = json.loads(TEXT)


def test_it_is_a_schema_with_a_name_and_a_version() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert re.fullmatch(r"urn:hpcalc:answer:[0-9]+", SCHEMA["$id"])


def test_names_are_those_of_the_catalog() -> None:
    assert SCHEMA["$defs"]["dist"]["enum"] == [*LAWS]
    assert SCHEMA["$defs"]["method"]["enum"] == [*METHODS, None]


def test_every_part_is_used() -> None:
    assert set(re.findall(r"#/\$defs/(\w+)", TEXT)) == set(SCHEMA["$defs"])


@pytest.mark.parametrize("command", COMMANDS)
def test_printed_answers_are_answers(command: str) -> None:
    document = json.loads((FOLDER / f"{command}.json.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.validate(document)
    validator.validate({"cases": [{"name": "a", **document}]})
    for wrong in ({"cases": [document]}, {**document, "extra": 1}, {**document, "command": "ask"}, {}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(wrong)
