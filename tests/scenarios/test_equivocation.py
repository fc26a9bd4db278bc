"""A node that says different things to different nodes: the others end alike (design §7)."""

from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from server.domain.agents import identity
from tests.support.located import connect
from tests.support.mesh import Mesh, equal, holds, join, peers, project
from tests.support.mesh_member import MeshMember
from tests.support.node import Node
from tests.support.waiting import eventually

EARLY = "2024-01-01T00:00:00.000000+00:00"


@pytest.fixture
def pair(mesh: Mesh) -> tuple[Node, Node, str]:
    """Two nodes that are peers, and a project of both, with a repo for a third."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    shared = project(alpha)
    join(alpha, shared, "alpha")
    eventually(lambda: holds(beta, shared))
    return alpha, beta, shared


def two_faced(alpha: Node, beta: Node) -> tuple[MeshMember, MeshMember]:
    """One node, with one key, that is a peer of both."""
    one, other = MeshMember(alpha, "gamma"), MeshMember(beta, "gamma")
    other.signing = one.signing
    return one.register(), other.register()


def packet(face: MeshMember, shared: str, packet_id: str, **content: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "packet_id": packet_id,
        "from_repo": face.version(shared)["repo_id"],
        "from_agent": face.agent,
        "timestamp": EARLY,
        "type": "question",
        "content": content,
        "related_contracts": [],
        "reply_to": None,
    }
    return {"packet": body, "signature": face.signed("packet", shared, body)}


def test_nodes_that_hold_different_packets_of_one_id_see_it_and_end_alike(
    pair: tuple[Node, Node, str],
) -> None:
    """Equal digests were equal ids: what each was shown stayed, and nobody knew."""
    alpha, beta, shared = pair
    faces = two_faced(alpha, beta)
    for face in faces:
        face.project(shared)
    told = str(uuid4())
    for face, word in zip(faces, ("yes", "no"), strict=True):
        sent = packet(face, shared, told, word=word)
        assert face.call("cacp/context/sync", projectId=shared, **sent)["status"] == "created"
    eventually(lambda: equal(alpha, beta))
    shown = {
        str(node.call("cacp/context/list", projectId=shared)["packets"]) for node in (alpha, beta)
    }
    assert len(shown) == 1
    for node in (alpha, beta):
        eventually(lambda node=node: node.get("/health").json().get("reason") == "equivocation")  # type: ignore[misc]
        assert f'node="{identity(faces[0].agent)}"' in node.get("/metrics").text


def test_a_node_that_was_shown_one_of_them_learns_of_the_other(
    pair: tuple[Node, Node, str],
) -> None:
    """Who takes what it hears in place of what it was told has nothing left to tell."""
    alpha, beta, shared = pair
    gamma = MeshMember(alpha, "gamma").register()
    gamma.project(shared)
    told = str(uuid4())
    for word in ("yes", "no"):
        gamma.call("cacp/context/sync", projectId=shared, **packet(gamma, shared, told, word=word))
    eventually(lambda: equal(alpha, beta))
    eventually(lambda: beta.get("/health").json().get("reason") == "equivocation")
    [one] = beta.query("SELECT node FROM equivocations")
    assert one == (identity(gamma.agent),)


def test_what_a_disk_has_changed_is_named_on_both_and_nobody_is_accused(
    pair: tuple[Node, Node, str],
) -> None:
    """The wrong text is passed on to nobody: its signature doesn't hold."""
    alpha, beta, shared = pair
    alpha.call("cacp/context/askQuestion", projectId=shared, question="Why?")
    eventually(lambda: equal(alpha, beta))
    # Counted, too: what a disk changes before that is what was counted.
    eventually(lambda: len({node.get("/mesh").json()["digest"] for node in (alpha, beta)}) == 1)
    with closing(connect(beta.db)) as db:
        db.execute("UPDATE packets SET document = replace(document, 'Why?', 'Aha?')")
    eventually(lambda: beta.get("/health").json().get("reason") == "content_corrupt")
    beta.stop()
    with closing(connect(beta.db)) as db:
        db.execute("UPDATE meta SET value = '0' WHERE name = 'digest_cursor'")
        db.execute("DELETE FROM alarms")
    beta.start()
    for node in (alpha, beta):
        eventually(lambda node=node: node.get("/health").json().get("reason") == "content_differs")  # type: ignore[misc]
    [shown] = alpha.call("cacp/context/list", projectId=shared)["packets"]
    assert "Why?" in str(shown)
    assert "cacp_equivocations{" not in alpha.get("/metrics").text + beta.get("/metrics").text
