"""The input schemas of tools: plain, whole, and what their methods take."""

import json
from typing import Any

import pytest

from server.mcp_tools.catalog import TOOLS, McpTool
from server.mcp_tools.input_schema import input_schema
from server.methods import METHODS

every_tool = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


def words(schema: Any) -> list[str]:
    """Each name that a schema uses, at any depth."""
    if isinstance(schema, dict):
        return [*schema, *(word for value in schema.values() for word in words(value))]
    if isinstance(schema, list):
        return [word for value in schema for word in words(value)]
    return []


@every_tool
def test_a_schema_is_whole_and_plain(tool: McpTool) -> None:
    """Clients differ in what they make of references, unions and null."""
    schema = input_schema(tool)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert not {"$ref", "$defs", "pattern", "oneOf"} & {*words(schema)}
    assert set(schema["required"]) <= schema["properties"].keys()
    assert len(json.dumps(schema)) < 6_000


@every_tool
def test_a_schema_takes_what_the_method_takes(tool: McpTool) -> None:
    offered = input_schema(tool)["properties"].keys() - {tool.chooser}
    taken = {
        name
        for method in tool.steps.values()
        for name in METHODS[method].params.model_json_schema(by_alias=True)["properties"]
    }
    assert offered == taken - tool.left_out
    assert tool.left_out <= taken
    assert tool.fixed.keys() <= taken


def test_all_the_tools_fit_into_a_models_context() -> None:
    """About four characters make a token: the list costs some 6,600."""
    listed = [[tool.name, tool.description, input_schema(tool)] for tool in TOOLS.values()]
    assert len(json.dumps(listed)) < 27_500


def test_null_means_absent_and_references_are_written_out() -> None:
    schema = input_schema(TOOLS["cacp_project_create"])
    repo = schema["properties"]["repos"]["items"]
    assert repo["required"] == ["name", "role", "language"]
    assert repo["properties"]["url"]["type"] == "string"


def test_a_tool_of_many_steps_takes_what_any_of_them_takes() -> None:
    schema = input_schema(TOOLS["cacp_implementation_report"])
    assert schema["required"] == ["step", "projectId", "contractId"]
    assert schema["properties"]["step"]["enum"] == ["start", "complete", "verify"]
    assert schema["properties"]["plan"]["description"] == "How you will do it (for start)"
