"""The published JSON Schemas are those of the models (agent-threader-v2 §7, acpcomply)."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import ValidationError

import schemas
from schemas.publish import PUBLISHED, schema_text

FOLDER = Path(schemas.__file__).parent


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_schema_is_current(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert text == schema_text(name), "run: python -m schemas.publish"
    assert json.loads(text)["$id"] == name


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("task_result.v2.json", {"writes": [{"path": "a", "op": "create", "encoding": "utf8"}]}),
        ("task_result.v2.json", {"writes": [{"path": "a", "op": "create", "content": "x"}]}),
        ("task_result.v2.json", {"summary": ""}),
        ("heal_decision.v2.json", {"patches": [{"target": "task_prompt", "operation": "append",
                                                "content": "x"}]}),
        ("heal_decision.v2.json", {"patches": [{"target": "runtime_patch", "operation": "append",
                                                "content": {}}]}),
        ("heal_decision.v2.json", {"patches": [{"target": "contract_hint", "operation": "append",
                                                "content": {}}]}),
    ],
)  # fmt: skip
def test_what_the_parser_refuses_the_published_schema_refuses(
    name: str, document: dict[str, Any]
) -> None:
    whole: dict[str, dict[str, Any]] = {
        "task_result.v2.json": {"task_id": "A", "status": "DONE", "summary": "did it"},
        "heal_decision.v2.json": {"scope": "task", "decision": "RETRY", "failure_class": "x",
                                  "root_cause": "x", "patches": []},
    }  # fmt: skip
    good = {"contract_version": "2.0", **whole[name]}
    validator = Draft202012Validator(json.loads(schema_text(name)))
    PUBLISHED[name].model_validate(good)
    assert validator.is_valid(good)
    with pytest.raises(ValidationError):
        PUBLISHED[name].model_validate({**good, **document})
    assert not validator.is_valid({**good, **document})
