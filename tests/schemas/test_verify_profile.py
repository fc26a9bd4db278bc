"""`verify_profile.v2` (agent-threader-v2 §7)."""

import pytest
from pydantic import ValidationError

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


def test_step_names_differ() -> None:
    step = {"name": "build", "cmd": "true", "timeout_sec": 1}
    with pytest.raises(ValidationError, match="build occurs more than once"):
        VerifyRegistry.model_validate({"profiles": {"p": {"steps": [step, step]}}})


def test_a_step_without_a_time_limit_has_ten_minutes() -> None:
    assert VerifyStep.model_validate({"name": "build", "cmd": "true"}).timeout_sec == 600
