"""What the tests of a run have made at a node is removed, or named."""

import asyncio
from typing import Any

import pytest
from pydantic import JsonValue

from comply.cleanup import MadeThings, NodeCaller, rules

ANA = NodeCaller("http://node", (("authorization", "Bearer a"),))
BEN = ANA._replace(credentials=())


def made(*requests: tuple[str, dict[str, Any]], caller: NodeCaller = ANA) -> MadeThings:
    things = MadeThings()
    for request, exchanged in requests:
        things.note(caller, request, exchanged)
    return things


def project(id: str) -> tuple[str, dict[str, Any]]:
    return "cacp/project/create", {"params": {}, "result": {"projectId": id}}


def team(action: str, team: str = "t") -> tuple[str, dict[str, Any]]:
    return "acp/team", {"params": {"action": action, "team": team}, "result": {}}


def message(id: str) -> tuple[str, dict[str, Any]]:
    return "acp/send", {"params": {}, "result": {"message": {"id": id}}}


class NodeDouble:
    """Answers each call with the next of `answers`, or with success."""

    def __init__(self, *answers: JsonValue | OSError) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, JsonValue]] = []

    async def __call__(self, url: str, by: Any, method: str, params: JsonValue) -> JsonValue:
        assert url == "http://node"
        self.calls.append((method, params))
        answer = self.answers.pop(0) if self.answers else {"result": {}}
        if isinstance(answer, OSError):
            raise answer
        return answer


def removed(things: MadeThings, node: NodeDouble, methods: list[str] | None = None) -> list[str]:
    return asyncio.run(things.remove(node, methods))


def test_what_was_made_last_is_removed_first() -> None:
    node = NodeDouble()
    things = made(project("one"), project("two"), team("create"))
    assert removed(things, node) == ["removed 1 teamspaces, 2 projects"]
    assert node.calls == [
        ("acp/team", {"action": "close", "team": "t"}),
        ("cacp/project/delete", {"projectId": "two"}),
        ("cacp/project/delete", {"projectId": "one"}),
    ]
    assert removed(things, node) == [], "nothing is left"


def test_what_a_test_removed_itself_is_not_removed_again() -> None:
    subscribed = ("acp/subscribe", {"params": {"url": "u"}, "result": {}})
    unsubscribed: tuple[str, dict[str, Any]] = ("acp/unsubscribe", {"params": {}, "result": {}})
    things = made(team("create"), team("close"), team("get"), subscribed, unsubscribed)
    assert removed(things, NodeDouble()) == []


def test_what_stays_is_counted_with_the_reason() -> None:
    refused: JsonValue = {"error": {"code": -32003, "message": "one may not be deleted by you"}}
    away = OSError("the node does not answer: ConnectError")
    things = made(project("one"), project("two"), message("m"), message("n"))
    assert removed(things, NodeDouble(away, refused)) == [
        "not removed: 2 messages: no method removes mail; the node archives it after its time",
        "not removed: 1 projects: the node does not answer: ConnectError",
        "not removed: 1 projects: … may not be deleted by you",
    ]


def test_a_node_without_the_method_is_not_asked() -> None:
    node = NodeDouble()
    things = made(project("one"), project("two"))
    assert removed(things, node, ["cacp/project/create"]) == [
        "not removed: 2 projects: the node has no cacp/project/delete"
    ]
    assert node.calls == []


def test_a_node_that_is_busy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    busy: JsonValue = {"error": {"code": -32029, "message": "b", "data": {"retryAfter": 0.01}}}
    assert removed(made(project("one")), NodeDouble(busy)) == ["removed 1 projects"]
    monkeypatch.setattr("comply.cleanup.SECONDS", 0.005)
    assert removed(made(project("one")), NodeDouble(busy)) == ["not removed: 1 projects: b"]


def test_every_rule_removes_or_says_why_not() -> None:
    for rule in rules():
        assert bool(rule.stays) != (rule.remove is not None), rule.request
