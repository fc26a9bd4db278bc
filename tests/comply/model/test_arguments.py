"""Arguments for a tool by its own schema."""

from typing import Any

import pytest

from comply.model.arguments import fitted, least

PATH: Any = {"(absolute_?|file_?)?path": "${folder}/${path}", "content": "${content}"}
VALUES = {"folder": "/w", "path": "out.txt", "content": "hello"}


def schema(*required: str, **properties: Any) -> Any:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize("name", ["path", "filePath", "file_path", "absolute_path"])
def test_a_property_is_found_by_its_name(name: str) -> None:
    tool = schema(name, **{name: {"type": "string"}, "content": {"type": "STRING"}, "mode": {}})
    assert fitted(PATH, tool, VALUES) == {name: "/w/out.txt", "content": "hello"}


def test_what_is_required_and_not_named_has_a_value_that_the_schema_takes() -> None:
    tool = schema(
        "path",
        "lines",
        "safe",
        path={},
        lines={"type": "integer", "minimum": 1},
        safe={"type": "boolean"},
    )
    assert fitted(PATH, tool, VALUES) == {"path": "/w/out.txt", "lines": 1, "safe": False}


def test_lists_are_made_by_the_schema_of_their_items() -> None:
    item = schema(
        "step", "id", step={"type": "string"}, id={"type": "string"}, status={"enum": ["todo"]}
    )
    template: Any = {
        "todos|plan": [{"step|content": "a", "status": "pending"}, {"step|content": "b"}]
    }
    tool = schema("plan", plan={"type": "array", "items": item})
    assert fitted(template, tool, {}) == {
        "plan": [
            {"step": "a", "id": "comply", "status": "todo"},
            {"step": "b", "id": "comply"},
        ]
    }


def test_text_where_a_list_should_be_is_its_one_element() -> None:
    tool = schema("command", command={"type": "array", "items": {"type": "string"}})
    assert fitted({"command": "ls"}, tool, {}) == {"command": ["ls"]}


def test_a_schema_that_names_nothing_takes_all() -> None:
    template: Any = {"name": "x", "arguments": {"todos": [{"content": "${path}"}]}}
    assert fitted(template, {"type": "object"}, VALUES) == {
        "name": "x",
        "arguments": {"todos": [{"content": "out.txt"}]},
    }


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        ({"type": "string"}, "comply"),
        ({"type": ["null", "string"]}, None),
        ({"const": 3}, 3),
        ({"enum": ["b", "a"]}, "b"),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, False),
        ({"type": "array", "items": {"type": "number"}, "minItems": 2}, [0, 0]),
        (schema("a", a={"type": "array"}, b={"type": "string"}), {"a": []}),
        ({}, "comply"),
    ],
)
def test_the_least_value_of_a_schema(shape: Any, value: Any) -> None:
    assert least(shape) == value
