"""A call of a tool: one call of its method, with arguments that the tool has."""

import asyncio
import json
import re
from typing import Any

import pytest

from server.mcp_tools import calls
from server.mcp_tools.calls import problem
from server.mcp_tools.catalog import CallFailed, Json, UnknownTool
from server.mcp_tools.pages import PAGE_MAX

INBOX: Json = {
    "messages": [],
    "deliveries": [],
    "counts": {"unread": 0},
    "cursor": "e:0",
    "more": False,
    "restarted": False,
    "capabilities": {},
}


def played(name: str, given: Json, answer: Any) -> tuple[str, list[tuple[str, Json]]]:
    """What a tool says, and the calls that it made."""
    made: list[tuple[str, Json]] = []

    async def call(method: str, params: Json) -> Any:
        made.append((method, params))
        return answer

    return asyncio.run(calls.run(name, given, call)), made


def test_one_call_of_a_tool_is_one_call_of_its_method() -> None:
    text, made = played("cacp_project_list", {"limit": 3}, {"projects": []})
    assert made == [("cacp/project/list", {"limit": 3, "summary": True})]
    assert "There are no active projects" in text
    assert "cacp_project_create" in text
    assert "archived" in text


def test_the_step_picks_the_method() -> None:
    given = {"step": "verify", "projectId": "p", "contractId": "c", "result": "success"}
    _, made = played("cacp_implementation_report", given, {"status": "verified"})
    del given["step"]
    assert made == [("cacp/implementation/verify", given)]


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
        (
            CallFailed("Fetch it with cacp/contract/get", {"reason": "stale_version"}),
            "Fetch it with cacp_contract_get.",
        ),
        (
            CallFailed("There is no teamspace x", {"reason": "not_found", "kind": "teamspace"}),
            "There is no teamspace x. acp_team with action list shows yours.",
        ),
        (CallFailed("Too many", {"reason": "rate_limited", "retryAfter": 3}), "Wait 3 seconds"),
        (CallFailed("No node"), "No node."),
        (CallFailed("No node", {"reason": "unreachable"}), "continue without it for now"),
        (CallFailed("It broke off", {"reason": "unanswered"}), "It may be done"),
        (CallFailed("a\n\x1b[31m# System", None), "a # System."),
    ],
)
def test_an_error_says_what_to_do_next(failed: CallFailed, said: str) -> None:
    assert said in problem(failed)
    assert "\n" not in problem(failed)


def test_an_argument_that_the_tool_does_not_have() -> None:
    with pytest.raises(CallFailed) as refused:
        played("cacp_contract_get", {"project_id": "p", "contractId": "c"}, {})
    assert problem(refused.value) == (
        "project_id is not a param of cacp_contract_get. Did you mean projectId? It takes "
        "projectId (required), contractId (required), includeHistory, from, to, content, "
        "dialect, more, view. Correct the arguments and call again."
    )
    with pytest.raises(CallFailed, match=r"^sender is not a param of acp_send\. It takes to \(r"):
        played("acp_send", {"sender": "me"}, {})
    _, made = played("acp_inbox", {"from": "aid://x", "bodies": True}, INBOX)
    assert made == [("acp/inbox", {"from": "aid://x"})], "the node refuses it, and notes the abuse"


def test_a_long_answer_is_cut_and_says_how_to_go_on() -> None:
    projects = [
        {"name": f"P{number}", "projectId": f"p{number}", "status": "planning"}
        | {"repoCount": 1, "contractCount": 0}
        for number in range(500)
    ]
    result = {"projects": projects}
    text, _ = played("cacp_project_list", {"limit": 500}, result)
    assert len(text) <= PAGE_MAX
    step = re.search(r"The rest: cacp_project_list with `(.*)`\]$", text)
    assert step is not None
    given = json.loads(step[1])
    assert given.keys() == {"limit", "more"}
    rest, made = played("cacp_project_list", given, result)
    assert rest.startswith("[Continued.]\n- ")
    assert made == [("cacp/project/list", {"limit": 500, "summary": True})]
    for wrong in ("x", 3, ""):
        with pytest.raises(CallFailed, match="more: should be the value that the answer before"):
            played("cacp_project_list", given | {"more": wrong}, result)


def test_a_step_that_was_taken_is_not_taken_again_for_the_rest() -> None:
    receipt = {"recipient": "aid://example.com/somebody", "status": "pending"}
    message = {"id": "m-1", "thread_id": "t", "status": "pending"}
    sent = {"message": message, "duplicate": False, "capabilities": {}}
    text, _ = played("acp_send", {}, sent | {"receipts": [receipt] * 1_000})
    assert len(text) <= PAGE_MAX
    assert text.endswith('The rest: acp_query with `{"message_id": "m-1", "bodies": true}`]')
    with pytest.raises(CallFailed, match="only an answer that was cut has more"):
        played("acp_handoff", {"action": "accept", "more": "1.00000000"}, {})
