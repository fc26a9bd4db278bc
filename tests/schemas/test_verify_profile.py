"""`verify_profile.v2` (agent-threader-v2 §7)."""

import json
from typing import Any

import jsonschema_rs
import pytest
from pydantic import ValidationError

from schemas.publish import schema_text
from schemas.verify_profile import VerifyRegistry, VerifyStep


def test_the_specifications_example_is_valid() -> None:
    registry = VerifyRegistry.model_validate(
        {
            "profiles": {
                "build_and_test": {
                    "steps": [
                        {"name": "build", "cmd": "pnpm build", "cwd": ".", "timeout_sec": 300},
                        {"name": "test", "cmd": "pnpm test", "cwd": ".", "timeout_sec": 600},
                    ],
                    "rollback_on_failure": True,
                }
            }
        }
    )
    assert [step.layer for step in registry.profiles["build_and_test"].steps] == ["build", "test"]


@pytest.mark.parametrize(
    ("name", "kind", "layer"),
    [
        ("compile", None, "build"),
        ("unit tests", None, "test"),
        ("e2e tests", None, "smoke"),
        ("eslint", None, "lint"),
        ("anything", "smoke", "smoke"),
    ],
)
def test_layers(name: str, kind: str | None, layer: str) -> None:
    step = VerifyStep.model_validate({"name": name, "cmd": "x", "timeout_sec": 1, "kind": kind})
    assert step.layer == layer


PROBE = {"base_url": "http://127.0.0.1:8000"}


def test_a_probe_runs_what_was_built() -> None:
    step = VerifyStep.model_validate({"name": "test the build", "probe": PROBE})
    assert step.layer == "smoke"
    assert VerifyStep.model_validate({"name": "x", "probe": PROBE, "kind": "test"}).layer == "test"


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({}, "either cmd or probe"),
        ({"cmd": "make", "probe": PROBE}, "either cmd or probe"),
        ({"probe": {}}, "base_url"),
        ({"probe": {"base_url": "localhost:8000"}}, "base_url"),
        ({"probe": PROBE | {"cases": 0}}, "cases"),
        ({"probe": PROBE | {"headers": []}}, "headers"),
    ],
)
def test_a_step_is_a_command_or_a_probe(step: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        VerifyStep.model_validate({"name": "x", **step})
    schema = json.loads(schema_text("verify_profile.v2.json"))
    published = jsonschema_rs.validator_for(schema)
    profile = {"profiles": {"p": {"steps": [{"name": "x", **step}]}}}
    assert not published.is_valid(profile)


@pytest.mark.parametrize("step", [{"cmd": "make"}, {"probe": PROBE}])
def test_either_is_valid_by_the_published_schema(step: dict[str, Any]) -> None:
    published = jsonschema_rs.validator_for(json.loads(schema_text("verify_profile.v2.json")))
    assert published.is_valid({"profiles": {"p": {"steps": [{"name": "x", **step}]}}})


def test_step_names_differ() -> None:
    step = {"name": "build", "cmd": "true", "timeout_sec": 1}
    with pytest.raises(ValidationError, match="build occurs more than once"):
        VerifyRegistry.model_validate({"profiles": {"p": {"steps": [step, step]}}})


def test_a_step_without_a_time_limit_has_ten_minutes() -> None:
    assert VerifyStep.model_validate({"name": "build", "cmd": "true"}).timeout_sec == 600
