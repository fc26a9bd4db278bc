"""The story of a contract, from what the node tells."""

import doctest
from typing import Any

import pytest

from cli import story
from cli.story import contract_moments, packet_said

NAMES = {"r1": "backend-api", "r2": "frontend-app"}


def entry(at: int, step: str, version: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "timestamp": f"2026-01-01T00:00:{at:02}.000000+00:00",
        "step": step,
        "version": version,
        "round": None,
        "repoId": "r1",
        "agentId": "a",
        "note": None,
        "details": None,
        **more,
    }


def packet(type: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": type,
        "content": content,
        "from_repo": "r2",
        "timestamp": "2026-01-01T00:00:01.500000+00:00",
        "reply_to": None,
        **more,
    }


def test_a_decision_of_any_shape_is_shown() -> None:
    assert packet_said(packet("decision", {"answer": "yes"})) == ("decides", "white", "yes")
    assert packet_said(packet("decision", {"chosen": "422"})) == ("decides", "white", "422")
    assert packet_said(packet("decision", {"a": 1, "b": 2}))[2] == '{"a": 1, "b": 2}'
    shared = packet_said(packet("decision", {"decision": "Which", "chosen": 1, "rationale": "x"}))
    assert shared[2] == "Which: 1, because x"


def test_the_examples_hold() -> None:
    assert doctest.testmod(story).failed == 0


def test_steps_and_packets_are_told_in_order_with_what_changed() -> None:
    contract = {
        "version": 2,
        "content": {"b": {"c": [1]}, "same": True},
        "history": [{"version": 1, "content": {"a": "x", "b": {}, "same": True}}],
    }
    timeline = [entry(1, "proposed"), entry(2, "updated", 2, note="better")]
    moments = contract_moments(
        contract, timeline, [packet("question", {"question": "why?"})], NAMES
    )
    assert [(one.who, one.did, one.why) for one in moments] == [
        ("backend-api", "proposes version 1", ""),
        ("frontend-app", "asks", "why?"),
        ("backend-api", "writes version 2", "better"),
    ]
    assert moments[2].diff == ("- a: x", "- b: {}", "+ b.c: [1]")


def test_later_rounds_and_unknown_steps_and_repos_are_told_too() -> None:
    contract: dict[str, Any] = {"version": 1, "content": {}, "history": []}
    timeline = [
        entry(1, "failed", round=1, details={"test": "x"}, note="broken"),
        entry(2, "completed", round=2, details=["a.py", "b.py"]),
        entry(3, "blessed", repoId="r9"),
    ]
    told = [(one.who, one.did, one.why) for one in contract_moments(contract, timeline, [], NAMES)]
    assert told == [
        ("backend-api", "verifies, and it fails", 'broken: {"test": "x"}'),
        ("backend-api", "has implemented it (round 2)", "a.py, b.py"),
        ("r9", "blessed", ""),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (packet("question", {"question": "?", "options": ["a", "b"], "urgent": True}),
         ("asks urgently", "? (a / b)")),
        (packet("decision", {"decision": "Ids", "chosen": "v7", "rationale": "order"}),
         ("decides", "Ids: v7, because order")),
        (packet("code_snippet", {"code": "x = 1"}), ("shares code snippet", "x = 1")),
        (packet("api_spec", {"answer": "yes"}, reply_to="p1"), ("answers", "yes")),
        (packet("api_spec", {"a": 1, "b": 2}), ("shares api spec", '{"a": 1, "b": 2}')),
        (packet("question", {}), ("asks", "")),
    ],
)  # fmt: skip
def test_packets(given: dict[str, Any], said: tuple[str, str]) -> None:
    did, _, why = packet_said(given)
    assert (did, why) == said
