"""Pictures of a mesh, from what its nodes answered."""

import dataclasses
import json
from itertools import pairwise
from typing import Any

import pytest

from cli.mesh_view import (
    NodeView,
    PeerEvent,
    as_json,
    equal,
    exchanges,
    lines,
    peer_events,
    picture,
    say,
    settled,
    verdict,
)
from tests.cli.test_views import drawn

SAME, OTHER = "ab" * 16, "cd" * 16


def held(digest: str = SAME, **more: Any) -> dict[str, Any]:
    counts = {"projects": 1, "contracts": 2, "packets": 3, "conflicts": 0, "deferred": 0}
    return {"agentId": "aid://h/x@1.0.0", "digest": digest, "behind": False, **counts, **more}


def peer(name: str, health: str = "up", backlog: int = 0, lag: float = 0.0, **more: Any) -> Any:
    sync = {"health": health, "backlog": backlog, "lagSeconds": lag, "lastError": "no route"}
    rounds = {"retries": 4, "digestRounds": 5}
    return {
        "agentId": f"aid://h/{name}@1.0.0",
        "endpoint": f"http://{name}",
        "sync": sync | rounds | more,
    }


def node(name: str, digest: str = SAME, *peers: Any, **more: Any) -> NodeView:
    return NodeView(name, f"http://{name}", 7, "healthy", held(digest, **more), list(peers))


DOWN = NodeView("c", "http://c")


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("a"), node("b")], "All 2 nodes hold the same"),
        ([node("a"), node("b"), DOWN], "a and b hold the same; c is down"),
        ([node("a"), node("b", OTHER)], "not equal yet: a | b"),
        ([node("a"), node("b"), node("c", OTHER)], "not equal yet: a and b | c"),
        ([node("a"), node("b", behind=True)], "not equal yet: a | b"),
        ([node("a"), DOWN], "c is down"),
        ([node("a", behind=True), node("b", behind=True)], "not equal yet: a and b"),
    ],
)
def test_who_holds_the_same_is_said_in_a_sentence(nodes: list[NodeView], said: str) -> None:
    assert verdict(nodes) == said
    assert equal(nodes) is said.startswith("All")


def test_a_mesh_is_settled_once_each_exchanges_with_each() -> None:
    one, other = node("a", SAME, peer("b")), node("b", SAME, peer("a", "unknown"))
    assert not settled([one, other])
    assert settled([one, dataclasses.replace(other, peers=[peer("a")])])


def test_the_picture_fits_a_small_terminal() -> None:
    nodes = [
        node("backend", SAME, peer("frontend"), peer("mobile", "down", 1_234, 3_600)),
        node("frontend", SAME, peer("backend"), peer("mobile", "down", 1, 0.5)),
        NodeView("mobile", "http://mobile"),
    ]
    shown = drawn(picture(nodes, 80), 80)
    assert max(map(len, shown.splitlines())) <= 80
    assert len(shown.splitlines()) <= 14
    for words in (["● down", "1234", "3600.0 s"], ["abababab"], ["mobile", "● down"]):
        assert any(all(word in line for word in words) for line in shown.splitlines()), words
    wide = drawn(picture(nodes, 160), 160)
    assert SAME in wide
    assert "no route" in wide


def test_a_peer_that_is_just_entered_has_no_exchange_yet() -> None:
    entered = {"agentId": "aid://h/b@1.0.0", "endpoint": "http://b", "sync": None}
    assert "starting" in drawn(exchanges([("a", [entered])], {}, 80), 80)


def test_what_a_peer_says_can_not_draw() -> None:
    said = peer("b", "down", lastError="\x1b[2Jgone\nfor good")
    assert "\x1b" not in drawn(exchanges([("a", [said])], {}, 160), 160)
    [event] = [one for one in peer_events(node("a"), node("a", SAME, said)) if one.what == "down"]
    assert "\x1b" not in lines([node("a")], [node("a", SAME, said)])[0] + event.what


def test_what_happens_to_peers_is_told_once() -> None:
    steps = [
        node("a"),
        node("a", SAME, peer("b", "unknown")),
        node("a", SAME, peer("b")),
        node("a", SAME, peer("b", "down", 2, 1.0)),
        node("a", SAME, peer("b", "down", 9, 8.0), conflicts=2),
        node("a", SAME, peer("b"), conflicts=2, deferred=1),
        node("a", SAME, conflicts=2, deferred=0),
    ]
    told = [
        [(event.what, event.peer is not None) for event in peer_events(before, after)]
        for before, after in pairwise(steps)
    ]
    assert told == [
        [("joined", True)],
        [("up", True)],
        [("down", True)],
        [("conflict", False)],
        [("up", True), ("caught_up", True), ("deferred", False)],
        [("removed", True)],
    ]


def test_events_are_sentences() -> None:
    assert say(PeerEvent("joined", "aid://h/b@1.0.0", "at http://b")) == "b has joined: at http://b"
    assert say(PeerEvent("removed", "aid://h/b@1.0.0", "")) == "b is removed"
    assert say(PeerEvent("deferred", None, "1 more")) == "deferred: 1 more"


def test_lines_tell_of_nodes_and_of_the_whole() -> None:
    before = [node("a"), node("b")]
    assert lines([], before) == [
        "a is healthy (http://a, pid 7)",
        "b is healthy (http://b, pid 7)",
        "All 2 nodes hold the same",
    ]
    assert lines(before, before) == []
    down = NodeView("b", "http://b")
    assert lines(before, [node("a"), down]) == ["b is down (http://b)", "b is down"]


def test_the_same_as_json() -> None:
    given = json.loads(json.dumps(as_json([node("a"), DOWN])))
    assert given["equal"] is False
    assert [one["health"] for one in given["nodes"]] == ["healthy", "down"]
    assert given["nodes"][0]["held"]["contracts"] == 2
