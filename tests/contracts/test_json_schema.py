from typing import Any

import pytest

from contracts.json_schema import (
    draft_of,
    is_json_schema,
    is_shorthand_model,
    read_json_schema,
    read_shorthand,
)
from contracts.model import Located


@pytest.mark.parametrize(
    ("name", "draft"),
    [
        ("https://json-schema.org/draft/2020-12/schema", "2020-12"),
        ("http://json-schema.org/draft-07/schema#", "draft-07"),
        ("http://json-schema.org/draft-04/schema#", None),
        ("mine", None),
        (7, None),
    ],
)
def test_drafts(name: Any, draft: str | None) -> None:
    assert draft_of({"$schema": name}) == draft


def test_a_schema_is_what_the_provider_emits() -> None:
    content = {"type": "object", "properties": {"a": {"type": "string"}}}
    interface = read_json_schema(content, "data_model")
    (operation,) = interface.operations
    assert (operation.key, operation.kind) == ("model", "model")
    assert operation.responses["message"].bodies == {"application/json": Located(content, ())}
    assert read_json_schema(content, "event_schema").operations[0].kind == "event"


def test_a_draft_that_is_not_known_is_a_problem() -> None:
    (problem,) = read_json_schema({"$schema": "mine"}, None).problems
    assert problem.path == ("$schema",)
    assert 'this is "mine"' in problem.why


def test_a_schema_is_checked() -> None:
    (problem,) = read_json_schema({"type": "text"}, None).problems
    assert problem.path == ("type",)


def test_shorthand_becomes_a_schema() -> None:
    interface = read_shorthand({"a": "string", "b": "int?"}, None)
    (body,) = interface.operations[0].responses["message"].bodies.values()
    assert body.schema["required"] == ["a"]
    assert interface.dialect == "shorthand"
    assert [problem.path for problem in read_shorthand({"a": "words"}, None).problems] == [("a",)]


@pytest.mark.parametrize(
    ("content", "schema", "shorthand"),
    [
        ({"type": "object"}, True, True),
        ({"a": "string", "x-files": {"b.json": 1}}, False, True),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "mine": 1}, True, False),
        ({"a": "words"}, False, False),
    ],
)
def test_recognition(content: dict[str, Any], schema: bool, shorthand: bool) -> None:
    assert is_json_schema(content) is schema
    assert is_shorthand_model(content) is shorthand
