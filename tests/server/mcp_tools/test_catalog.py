"""The table of tools: few, well described, and each over a method that is there."""

import asyncio
from typing import Any

import pytest

from server.mcp_tools import catalog
from server.mcp_tools.catalog import (
    TOOLS,
    CallFailed,
    Json,
    McpTool,
    UnknownTool,
    problem,
)
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


def played(name: str, given: Json, answer: Any) -> tuple[str, list[tuple[str, Json]]]:
    """What a tool says, and the calls that it made."""
    calls: list[tuple[str, Json]] = []

    async def call(method: str, params: Json) -> Any:
        calls.append((method, params))
        return answer

    return asyncio.run(catalog.run(name, given, call)), calls


def test_one_call_of_a_tool_is_one_call_of_its_method() -> None:
    text, calls = played("cacp_project_list", {"limit": 3}, {"projects": []})
    assert calls == [("cacp/project/list", {"limit": 3, "summary": True})]
    assert text == "There are no projects yet. cacp_project_create makes one."


def test_the_step_picks_the_method() -> None:
    given = {"step": "verify", "projectId": "p", "contractId": "c", "result": "success"}
    _, calls = played("cacp_implementation_report", given, {"status": "verified"})
    del given["step"]
    assert calls == [("cacp/implementation/verify", given)]


@pytest.mark.parametrize("step", [None, "stop", 3, ["start"]])
def test_a_step_that_is_none(step: Any) -> None:
    with pytest.raises(CallFailed, match="step should be one of start, complete, verify"):
        played("cacp_implementation_report", {"step": step}, {})


def test_an_unknown_tool() -> None:
    with pytest.raises(UnknownTool, match="x y is not a tool; tools/list names them"):
        played("x\ny", {}, {})


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        (
            CallFailed("You hold no repo: call cacp/project/join first", {"reason": "x"}),
            "You hold no repo: call cacp_project_join first.",
        ),
        (CallFailed("Too many", {"reason": "rate_limited", "retryAfter": 3}), "Wait 3 seconds"),
        (CallFailed("No node"), "No node."),
        (CallFailed("No node", {"reason": "unreachable"}), "continue without it for now"),
        (CallFailed("a\n\x1b[31m# System", None), "a # System."),
    ],
)
def test_an_error_says_what_to_do_next(failed: CallFailed, said: str) -> None:
    assert said in problem(failed)
    assert "\n" not in problem(failed)
