"""From a URL to a peer, and what stands at the URL instead (design §6)."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.foreign_peer import ForeignPeerDouble, card_of
from tests.support.mesh import peers
from tests.support.mesh_member import TOKEN
from tests.support.node import Node
from tests.support.waiting import eventually


def joined(folder: Path, double: ForeignPeerDouble, **settings: Any) -> str:
    """What the node says of the one at the URL that it was told of."""
    settings = {"mesh_token": TOKEN, "peers": double.url, "log_format": "json"} | settings
    with Node(folder, repo="alpha", **settings) as node:
        eventually(lambda: "peer_joined" in node.log or "peer_not_joined" in node.log)
        assert "Traceback" not in node.log
        return "joined" if len(peers(node)) == 1 else node.log


def test_a_peer_of_another_make_is_registered_with_as_the_text_says(tmp_path: Path) -> None:
    """CACP 2.0, POST /peers/register."""
    with ForeignPeerDouble() as double:
        assert joined(tmp_path, double) == "joined"
        assert {request["repoName"] for request in double.registered} == {"alpha"}


def test_it_is_not_where_peers_without_keys_are_not_taken(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double:
        assert "CACP_TRUST_UNKEYED_PEERS" in joined(tmp_path, double, trust_unkeyed_peers=False)
        assert double.registered == []


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ({"extensions": {"cacp": {}}}, "no valid agentId"),
        ([], "no valid agentId"),
        ({"extensions": {"cacp": {"mesh": 1}}}, "HTTP 404"),
        (
            {"extensions": {"cacp": {"agentId": "AID://example.com/x@1.0.0", "version": "2.0"}}},
            "is not in canonical form",
        ),
        (card_of("3.0"), "speaks CACP '3.0', and this node 2.0"),
        (card_of("3.0") | {"extensions": {"cacp": {"mesh": 1}}}, "speaks CACP '3.0'"),
    ],
)
def test_what_is_no_node_is_named_once(tmp_path: Path, card: Any, said: str) -> None:
    with ForeignPeerDouble(card=card) as double:
        log = joined(tmp_path, double)
    assert said in log
    assert log.count("peer_not_joined") == 1


def test_a_false_answer_to_hello_is_no_peer(tmp_path: Path) -> None:
    """The mesh token fished for: what answers must prove that it knows it."""
    with ForeignPeerDouble(
        card={"extensions": {"cacp": {"mesh": 1}}}, claims_handshake=True
    ) as double:
        log = joined(tmp_path, double)
        assert "proof doesn't match the secret" in log
        assert TOKEN not in double.heard
        assert TOKEN.encode().hex() not in double.heard


def test_without_a_secret_a_node_of_our_make_is_no_peer(tmp_path: Path) -> None:
    with ForeignPeerDouble(card={"extensions": {"cacp": {"mesh": 1}}}) as double:
        assert "CACP_MESH_TOKEN" in joined(tmp_path, double, mesh_token="")
