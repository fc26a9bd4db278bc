"""`state.v2` as it is published (agent-threader-v2 §7)."""

from typing import Any, cast

import orjson
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from schemas.publish import schema_text
from schemas.run_state import RunState
from schemas.state import State, head, task_json
from tests.schemas.test_run_state import EXAMPLE

ROUND: dict[str, Any] = cast(Any, EXAMPLE["healing_rounds"])[0]


def problems(document: object) -> list[str]:
    validator = Draft202012Validator(orjson.loads(schema_text("state.v2.json")))
    return [error.message for error in validator.iter_errors(document)]


def test_the_specifications_example_comes_out_as_it_went_in() -> None:
    state = RunState.model_validate(EXAMPLE)
    tasks = {key: orjson.loads(task_json(task)) for key, task in state.tasks.items()}
    shown = {**head(state), "tasks": tasks}
    assert shown == EXAMPLE
    assert problems(shown) == []
    State.model_validate(shown)


def test_nothing_of_the_runners_own_is_in_it() -> None:
    state = RunState.model_validate(EXAMPLE)
    assert "revision" not in orjson.loads(task_json(state.tasks["WP-017"]))
    assert problems({**EXAMPLE, "window": None})
    assert problems({**EXAMPLE, "healing_rounds": [{**ROUND, "decision": "INVALID"}]})


def test_rounds_that_an_older_runner_called_invalid_are_left_out() -> None:
    state = RunState.model_validate(EXAMPLE)
    state.healing_rounds.append(state.healing_rounds[0].model_copy(update={"decision": "INVALID"}))
    assert len(head(state)["healing_rounds"]) == 1
