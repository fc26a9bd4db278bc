"""The table of tools: few, well described, and each over a method that is there."""

from typing import Any

import pytest

from schemas.acp_payloads import PAYLOADS
from server.mcp_tools.catalog import TOOLS, McpTool
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
def test_a_tool_is_well_described(tool: McpTool) -> None:
    assert 40 <= len(tool.description) <= 400
    assert tool.description.endswith(".")
    assert set(tool.steps.values()) <= METHODS.keys()
    assert bool(tool.chooser) == (len(tool.steps) > 1)


@every_tool
def test_a_tool_that_only_reads_says_so(tool: McpTool) -> None:
    methods = [METHODS[one] for one in tool.steps.values()]
    assert tool.reads == all(not one.writes and not one.waits for one in methods)


def test_a_payloads_required_members_are_in_the_description() -> None:
    described = TOOLS["acp_send"].about["payload"]
    for type, model in PAYLOADS.items():
        if type.startswith("handoff."):
            continue
        required = [name for name, member in model.model_fields.items() if member.is_required()]
        for name in required:
            assert f"{name} (required)" in described, (type, name)


@pytest.mark.parametrize(
    ("tool", "given", "repeats"),
    [
        ("cacp_contract_get", {}, True),
        ("acp_inbox", {"ack": ["m"]}, True),
        ("acp_handoff", {"action": "get"}, True),
        ("acp_handoff", {"action": "accept"}, False),
        ("acp_team", {"action": "log"}, True),
        ("acp_send", {}, False),
    ],
)
def test_calls_that_can_be_repeated(tool: str, given: dict[str, Any], repeats: bool) -> None:
    assert TOOLS[tool].may_repeat(given) == repeats
