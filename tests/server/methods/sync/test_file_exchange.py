"""Files that mesh peers tell of, and hostile ones (design §6, §7)."""

import base64
import hashlib
import time
from typing import Any
from uuid import uuid4

import pytest

from schemas.file_mesh import PIECE_MAX
from server.domain.identifiers import repo_id_for
from tests.support.mesh_member import SOME_TIME, MeshMember, pulled
from tests.support.node import Node, RpcError, bearer
from tests.support.shared_files import get, share

CONTENT = b"logo"
KINDS = ["project", "contract", "context", "file", "file_request"]


def file(beta: MeshMember, project_id: str, **more: Any) -> dict[str, Any]:
    """A file of beta's own."""
    return {
        "file_id": str(uuid4()),
        "name": "logo.png",
        "content_type": "image/png",
        "size": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "purpose": None,
        "related_contracts": [],
        "from_repo": repo_id_for(project_id, "beta"),
        "from_agent": beta.agent,
        "fulfils": None,
        "stamp": SOME_TIME,
    } | more


def request(beta: MeshMember, project_id: str, **more: Any) -> dict[str, Any]:
    return {
        "request_id": str(uuid4()),
        "requested_by": repo_id_for(project_id, "beta"),
        "from_agent": beta.agent,
        "description": "The logo",
        "suggested_format": None,
        "stamp": SOME_TIME,
    } | more


def tell(beta: MeshMember, project_id: str, body: dict[str, Any], **more: Any) -> Any:
    """Send a file or a request, signed by beta."""
    kind = "file" if "file_id" in body else "file_request"
    method, member = {
        "file": ("cacp/file/sync", "file"),
        "file_request": ("cacp/file/syncRequest", "request"),
    }[kind]
    signature = more.pop("signature", None) or beta.signed(kind, project_id, body)
    return beta.call(method, projectId=project_id, signature=signature, **{member: body}, **more)


def listed(node: Node, project_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.call("cacp/file/list", projectId=project_id)["files"]
    return found


def pieces(beta: MeshMember, project_id: str, file_id: str, sha256: str) -> bytes:
    """A file's content as a peer fetches it."""
    data, piece = b"", None
    while piece != b"":
        at = {"projectId": project_id, "fileId": file_id, "sha256": sha256}
        given = beta.call("cacp/sync/file", **at, offset=len(data))["content"]
        piece = base64.b64decode(given)
        data += piece
    return data


def test_a_file_and_a_request_come_once(alpha: Node, beta: MeshMember, shared: str) -> None:
    asked, made = request(beta, shared), file(beta, shared)
    for body in (asked, made):
        assert tell(beta, shared, body)["status"] == "created"
        assert tell(beta, shared, body) == {"status": "skipped", "reason": "nothing new"}
    [one] = listed(alpha, shared)
    assert (one["fileId"], one["holder"]) == (made["file_id"], "aid://example.com/beta")
    [open_] = alpha.call("cacp/file/listRequests", projectId=shared)["requests"]
    assert open_["requestId"] == asked["request_id"]
    tell(beta, shared, file(beta, shared, fulfils=asked["request_id"]))
    assert alpha.call("cacp/file/listRequests", projectId=shared)["requests"] == []


def test_a_file_for_a_request_that_is_not_known_counts_for_itself_alone(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    """Digests cover what is there; the request may come later, or never."""
    asked = request(beta, shared)
    tell(beta, shared, file(beta, shared, fulfils=asked["request_id"]))
    alpha.get("/mesh")
    counted = "SELECT 1 FROM digests WHERE entity_id = ?"
    assert alpha.query(counted, asked["request_id"]) == []
    tell(beta, shared, asked)
    alpha.get("/mesh")
    assert alpha.query(counted, asked["request_id"]) == [(1,)]
    told = alpha.query("SELECT outcome FROM changes WHERE entity_id = ?", asked["request_id"])
    assert told == [("fulfilled",)]
    assert alpha.call("cacp/file/listRequests", projectId=shared)["requests"] == []


def test_its_content_is_where_its_node_is_and_that_is_away(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    made = file(beta, shared)
    tell(beta, shared, made)
    with pytest.raises(RpcError) as error:
        get(alpha, shared, made["file_id"])
    assert (error.value.reason, error.value.data["node"]) == (
        "node_away",
        "aid://example.com/beta",
    )


def test_what_was_not_signed_by_its_authors_node_is_refused(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    made = file(beta, shared)
    signature = beta.signed("file", shared, made)
    for changed in ({"sha256": "0" * 64}, {"name": "evil"}, {"size": 5}, {"fulfils": "x"}):
        result = tell(beta, shared, made | changed, signature=signature)
        assert "signature does not match the key of" in result["skipped"][0]["reason"]
    moved = beta.signed("file", str(uuid4()), made)
    assert tell(beta, shared, made, signature=moved)["status"] == "skipped"
    own = file(beta, shared, from_repo=repo_id_for(shared, "alpha"), from_agent=agent_of(alpha))
    assert "doesn't speak for" in tell(beta, shared, own)["skipped"][0]["reason"]
    assert listed(alpha, shared) == []


def agent_of(node: Node) -> str:
    return str(node.settings["agent_id"])


def test_a_file_needs_a_claim_and_a_project(beta: MeshMember, shared: str) -> None:
    repo = repo_id_for(shared, "alpha")
    for body in (file(beta, shared, from_repo=repo), request(beta, shared, requested_by=repo)):
        with pytest.raises(RpcError) as error:
            tell(beta, shared, body)
        assert error.value.data["kind"] == "claim"
    with pytest.raises(RpcError) as error:
        tell(beta, str(uuid4()), file(beta, shared))
    assert error.value.data["kind"] == "project"


def test_of_two_with_one_id_the_earlier_stays_and_no_content_is_lost(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    own = share(alpha, shared, CONTENT)
    later = file(beta, shared, file_id=own, stamp=time.time_ns() // 1000)
    assert "id already in use" in tell(beta, shared, later)["skipped"][0]["reason"]
    assert get(alpha, shared, own) == CONTENT
    assert tell(beta, shared, file(beta, shared, file_id=own, sha256="0" * 64))["skipped"]
    [one] = listed(alpha, shared)
    assert (one["fromAgent"], one["sha256"]) == (beta.agent, "0" * 64)
    [(kept,)] = alpha.query("SELECT content FROM file_contents WHERE file_id = ?", own)
    assert kept == CONTENT


def test_what_is_stamped_ahead_waits(alpha: Node, beta: MeshMember, shared: str) -> None:
    ahead = time.time_ns() // 1000 + 172_800_000_000
    for body in (file(beta, shared, stamp=ahead), request(beta, shared, stamp=ahead)):
        assert tell(beta, shared, body)["status"] == "skipped"
    assert listed(alpha, shared) == []
    assert alpha.call("cacp/file/listRequests", projectId=shared)["requests"] == []


def test_a_peer_fetches_content_piece_by_piece(alpha: Node, beta: MeshMember, shared: str) -> None:
    content = bytes(range(256)) * (PIECE_MAX // 256) + b"rest"
    made = share(alpha, shared, content)
    sha256 = hashlib.sha256(content).hexdigest()
    assert pieces(beta, shared, made, sha256) == content
    carried = pulled(beta, "file", shared, made)
    assert (carried["file"]["sha256"], "content" in carried["file"]) == (sha256, False)
    for wrong in ({"sha256": "0" * 64}, {"fileId": "nothing"}, {"projectId": str(uuid4())}):
        at = {"projectId": shared, "fileId": made, "sha256": sha256} | wrong
        error = beta.refused("cacp/sync/file", **at)
        assert error.reason in ("no_content", "not_found")


def test_only_a_peer_in_its_own_name_may_tell_and_fetch(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    made = share(alpha, shared, CONTENT)
    at = {"projectId": shared, "fileId": made, "sha256": hashlib.sha256(CONTENT).hexdigest()}
    agent_key = alpha.key("aid://example.com/agent@1.0.0", "agent")
    for key, source, reason in (
        (beta.key, agent_of(alpha), "unknown_peer"),
        (agent_key, beta.agent, "not_a_peer"),
        (None, beta.agent, "unknown_peer"),
    ):
        params = at | {"source_agent": source}
        body = {"jsonrpc": "2.0", "method": "cacp/sync/file", "params": params, "id": 1}
        answer = alpha.http.post("/", json=body, headers=bearer(key)).json()
        assert answer["error"]["data"]["reason"] == reason
    theirs = file(beta, shared)
    signature = beta.signed("file", shared, theirs)
    error = beta.refused(
        "cacp/file/sync",
        source_agent=agent_of(alpha),
        projectId=shared,
        file=theirs,
        signature=signature,
    )
    assert error.reason == "unknown_peer"


def test_a_peer_that_knows_no_files_is_told_of_none(beta: MeshMember, shared: str) -> None:
    """One of an older release: it would take no answer with kinds that it doesn't know."""
    tell(beta, shared, file(beta, shared))
    places = [f"{place:03x}" for place in range(4096)]

    def kinds(**params: Any) -> set[str]:
        found = [
            leaf["entity"]
            for at in range(0, len(places), 256)
            for leaf in beta.call("cacp/sync/digest", prefixes=places[at : at + 256], **params)[
                "leaves"
            ]
        ]
        return set(found)

    assert "file" in kinds(kinds=[*KINDS, "from a later release"])
    assert kinds() <= {"project", "contract", "context"}
