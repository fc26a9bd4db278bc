"""The input schemas of tools: plain, whole, and what their methods take."""

import json
from typing import Any

import pytest

from server.mcp_tools.catalog import MORE, TOOLS, McpTool
from server.mcp_tools.input_schema import input_schema
from server.mcp_tools.server import describe
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
    more = {MORE} if tool.has_pages else set()
    offered = input_schema(tool)["properties"].keys() - {tool.chooser, *tool.own} - more
    taken = {
        name
        for method in tool.steps.values()
        for name in METHODS[method].params.model_json_schema(by_alias=True)["properties"]
    }
    assert offered == taken - tool.left_out
    assert tool.left_out <= taken
    assert tool.fixed.keys() <= taken


def test_all_the_tools_fit_into_a_models_context() -> None:
    """At most 6,500 tokens for the whole list. Tokenizers make a token of about four characters of
    English and of five of the keywords of schemas, so 3.6 is a careful estimate; and of what is
    counted here, models see no titles and no annotations."""
    tools = [describe(tool).model_dump(by_alias=True, exclude_none=True) for tool in TOOLS.values()]
    assert len(json.dumps({"tools": tools}, separators=(",", ":"))) / 3.6 < 6_500


def test_null_means_absent_and_references_are_written_out() -> None:
    policy = input_schema(TOOLS["acp_send"])["properties"]["policy"]
    assert policy["properties"]["human_gate"]["enum"] == ["none", "required"]
    topic = input_schema(TOOLS["acp_send"])["properties"]["topic"]
    assert topic == {"type": "string"}


def test_large_params_are_outlined() -> None:
    package = input_schema(TOOLS["acp_handoff"])["properties"]["package"]
    assert package.keys() == {"type", "description"}
    assert "{task: {task_id, title, objective, success_criteria: []" in package["description"]
    assert "status: not_started|in_progress|blocked|review" in package["description"]
    repos = input_schema(TOOLS["cacp_project_create"])["properties"]["repos"]
    assert repos["type"] == "array"
    assert repos["description"].endswith(": [{name, role, language}]")


def test_a_chooser_may_have_a_default() -> None:
    schema = input_schema(TOOLS["cacp_contract_get"])
    assert schema["required"] == ["projectId", "contractId"]
    assert schema["properties"]["view"] == {
        "type": "string",
        "enum": ["contract", "timeline", "conflicts", "compare"],
        "default": "contract",
    }


def test_a_tool_of_many_steps_takes_what_any_of_them_takes() -> None:
    schema = input_schema(TOOLS["cacp_implementation_report"])
    assert schema["required"] == ["projectId", "contractId", "step"]
    assert schema["properties"]["step"]["enum"] == ["start", "complete", "verify"]
    assert schema["properties"]["plan"]["description"] == "How you will do it (for start)"
