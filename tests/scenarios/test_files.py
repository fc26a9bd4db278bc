"""Files between nodes: everyone knows of them, and gets their content from who has it (§6)."""

import base64
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from tests.support.located import connect
from tests.support.mesh import Mesh, equal, holds, join, peers, project
from tests.support.node import Node, RpcError
from tests.support.shared_files import get, inline, share, times_named
from tests.support.waiting import eventually

MEBIBYTE = 1024 * 1024


def two(mesh: Mesh, **settings: object) -> tuple[Node, Node, str]:
    """Two nodes and their project."""
    alpha = mesh.add("alpha", **settings)
    beta = mesh.add("beta", alpha, **settings)
    shared = project(alpha)
    join(beta, shared, "beta")
    eventually(lambda: equal(alpha, beta))
    return alpha, beta, shared


def lists(node: Node, project_id: str) -> Any:
    """All that a node tells of a project's files."""
    at = {"projectId": project_id}
    return [node.call(f"cacp/file/{name}", **at) for name in ("list", "listRequests")]


def refused(node: Node, project_id: str, file_id: str) -> RpcError:
    with pytest.raises(RpcError) as error:
        get(node, project_id, file_id)
    return error.value


def copies(node: Node) -> list[tuple[str, int]]:
    """Which files' contents a node has a copy of, and their sizes."""
    sql = "SELECT file_id, size FROM file_contents WHERE used_at IS NOT NULL ORDER BY used_at"
    return node.query(sql)


def change(node: Node, sql: str, *values: object) -> None:
    """Change a node's file from outside."""
    with closing(connect(node.db)) as db:
        db.execute(sql, values)


def test_a_file_of_10_mb_is_known_everywhere_and_comes_when_it_is_asked_for(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh)
    content = os.urandom(10 * MEBIBYTE)
    file = share(alpha, shared, content, purpose="The logo")
    eventually(lambda: equal(alpha, beta))
    assert lists(alpha, shared) == lists(beta, shared)
    [listed] = lists(beta, shared)[0]["files"]
    assert (listed["fileId"], listed["holder"]) == (file, "aid://example.com/alpha")
    assert copies(beta) == [], "nobody has asked for it yet"
    assert alpha.get("/mesh").json()["digest"] == beta.get("/mesh").json()["digest"]
    with ThreadPoolExecutor(4) as pool:
        given = list(pool.map(lambda _: get(beta, shared, file), range(4)))
    assert given == [content] * 4
    assert copies(beta) == [(file, len(content))]
    assert "cacp_files_fetched_total 1.0" in beta.get("/metrics").text, "once for all who ask"
    assert "cacp_file_copies_bytes 1.048576e+07" in beta.get("/metrics").text
    alpha.kill()
    assert get(beta, shared, file) == content, "the copy does without its holder"
    beta.stop()
    beta.start()
    assert get(beta, shared, file) == content


def test_what_is_asked_for_on_one_node_is_given_on_another(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh)
    asked = alpha.call("cacp/file/request", projectId=shared, description="The logo")["requestId"]
    eventually(lambda: lists(beta, shared)[1]["requests"] != [])
    assert lists(alpha, shared) == lists(beta, shared)
    with alpha.events(kind="file,file_request") as events:
        done = beta.call("cacp/file/fulfillRequest", requestId=asked, file=inline(b"logo"))
        heard = {(one["event"], one["data"]["entityId"]) for one in (next(events), next(events))}
    assert heard == {("file", done["fileId"]), ("file_request", asked)}
    assert lists(alpha, shared)[1]["requests"] == []
    assert get(alpha, shared, done["fileId"]) == b"logo"
    with pytest.raises(RpcError) as error:
        alpha.call("cacp/file/fulfillRequest", requestId=asked, file=inline(b"again"))
    assert error.value.reason == "already_fulfilled"


def test_of_two_that_fulfil_a_request_apart_the_first_has(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh)
    asked = alpha.call("cacp/file/request", projectId=shared, description="d")["requestId"]
    eventually(lambda: equal(alpha, beta))
    beta.stop()
    first = alpha.call("cacp/file/fulfillRequest", requestId=asked, file=inline(b"1"))["fileId"]
    alpha.stop()
    beta.start()
    second = beta.call("cacp/file/fulfillRequest", requestId=asked, file=inline(b"2"))["fileId"]
    alpha.start()
    eventually(lambda: equal(alpha, beta))
    for node in (alpha, beta):
        listed = [one["fileId"] for one in lists(node, shared)[0]["files"]]
        assert (listed, lists(node, shared)[1]) == ([first, second], {"requests": []})
        with pytest.raises(RpcError) as error:
            node.call("cacp/file/fulfillRequest", requestId=asked, file=inline(b"3"))
        assert error.value.data["fileId"] == first


def test_who_holds_it_is_away_and_comes_back(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh)
    file = share(alpha, shared, b"logo")
    eventually(lambda: equal(alpha, beta))
    alpha.kill()
    error = refused(beta, shared, file)
    assert (error.code, error.reason) == (-32000, "node_away")
    assert error.data["node"] == "aid://example.com/alpha"
    assert "Try again later" in error.message
    alpha.start()
    assert get(beta, shared, file) == b"logo"


def test_a_holder_that_was_removed_is_named(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh)
    file = share(alpha, shared, b"logo")
    eventually(lambda: equal(alpha, beta))
    beta.stop()
    change(beta, "DELETE FROM peers")
    beta.settings["peers"] = ""
    beta.start()
    error = refused(beta, shared, file)
    assert (error.reason, "is not a peer of this node now" in error.message) == ("node_away", True)


def test_content_that_is_not_what_its_digest_says_is_never_shown(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh)
    file = share(alpha, shared, b"logo")
    eventually(lambda: equal(alpha, beta))
    for wrong in (b"evil", b"evil and longer", b"bad"):
        change(alpha, "UPDATE file_contents SET content = ?", wrong)
        error = refused(beta, shared, file)
        assert (error.code, error.reason) == (-32602, "content_corrupt")
        assert error.data["node"] == "aid://example.com/alpha"
    assert copies(beta) == []
    assert times_named(alpha) == 1
    assert "cacp_files_not_fetched_total 3.0" in beta.get("/metrics").text
    change(alpha, "UPDATE file_contents SET content = ?", b"logo")
    assert get(beta, shared, file) == b"logo"


def test_lost_content_comes_back_from_a_copy_and_is_called_lost_without_one(mesh: Mesh) -> None:
    """A holder that was restored from an older backup knows its files from the others again."""
    alpha, beta, shared = two(mesh)
    kept, lost = share(alpha, shared, b"kept"), share(alpha, shared, b"lost")
    eventually(lambda: equal(alpha, beta))
    assert get(beta, shared, kept) == b"kept"
    alpha.stop()
    change(alpha, "DELETE FROM file_contents")
    alpha.start()
    eventually(lambda: all(one["sync"]["health"] == "up" for one in peers(alpha)))
    for node in (alpha, beta):
        error = refused(node, shared, lost)
        assert (error.code, error.reason) == (-32602, "content_lost")
    assert get(alpha, shared, kept) == b"kept"
    assert copies(alpha) == [], "it is its own again, and stays"
    beta.kill()
    assert get(alpha, shared, kept) == b"kept"


def test_in_a_line_the_node_between_gives_it(mesh: Mesh) -> None:
    """A–B–C: C can't reach A, and B fetches for it, if it keeps copies."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    gamma = mesh.add("gamma", beta)
    shared = project(alpha)
    content = os.urandom(2 * MEBIBYTE + 1)
    file = share(alpha, shared, content)
    eventually(lambda: holds(gamma, shared) and equal(alpha, beta, gamma))
    assert len(peers(gamma)) == 1
    assert get(gamma, shared, file) == content
    assert [one for one, _ in copies(beta)] == [file]
    alpha.kill()
    change(gamma, "DELETE FROM file_contents")
    assert get(gamma, shared, file) == content, "who has a copy gives it"


def test_copies_have_the_room_that_the_operator_gives_them(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh, file_copies_bytes=2_500)
    content = [os.urandom(1_000) for _ in range(3)]
    made = [share(alpha, shared, one) for one in content]
    large = share(alpha, shared, bytes(2_501))
    eventually(lambda: equal(alpha, beta))
    for file, one in zip(made, content, strict=True):
        assert get(beta, shared, file) == one
    assert [file for file, _ in copies(beta)] == made[1:]
    assert get(beta, shared, large) == bytes(2_501), "given, and not kept"
    assert [file for file, _ in copies(beta)] == made[1:]
    own = alpha.query("SELECT count(*) FROM file_contents WHERE used_at IS NULL")
    assert own == [(4,)], "what is shared here is no copy"


@pytest.mark.parametrize("victim", ["holder", "fetcher"])
def test_a_node_killed_while_content_is_fetched_leaves_nothing_half(
    mesh: Mesh, victim: str
) -> None:
    alpha, beta, shared = two(mesh)
    content = os.urandom(10 * MEBIBYTE)
    file = share(alpha, shared, content)
    eventually(lambda: equal(alpha, beta))
    killed = alpha if victim == "holder" else beta
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(get, beta, shared, file)
        eventually(lambda: asked_for(alpha) >= 1)
        killed.kill()
        error = asking.exception(60)
    # It may have been done just before.
    assert error is None or victim == "fetcher" or isinstance(error, RpcError)
    for node, size in beta.query("SELECT file_id, length(content) FROM file_contents"):
        assert (node, size) == (file, len(content))
    killed.start()
    assert get(beta, shared, file) == content


def asked_for(node: Node) -> float:
    """How often a node was asked for a piece of a file."""
    name = 'cacp_calls_total{method="cacp/sync/file",outcome="ok"} '
    found = [line for line in node.get("/metrics").text.splitlines() if line.startswith(name)]
    return float(found[0].removeprefix(name)) if found else 0.0


def test_a_file_is_read_through_its_own_project(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh)
    other = project(alpha)
    file = share(alpha, other, b"secret")
    eventually(lambda: equal(alpha, beta))
    key = beta.key("aid://example.com/reader@1.0.0", "reader")
    assert base64.b64decode(
        beta.call("cacp/file/get", key=key, projectId=other, fileId=file)["content"]
    ) == (b"secret")
    with pytest.raises(RpcError) as error:
        beta.call("cacp/file/get", projectId=shared, fileId=file)
    assert error.value.reason == "not_found", "a file is read through its own project"


@pytest.mark.sqlite
def test_what_a_disk_changed_reaches_no_peer_and_comes_back_from_a_copy(mesh: Mesh) -> None:
    """Neither the holder's nor a copy of it is given on; whoever has it right mends the other."""
    alpha, beta, shared = two(mesh)
    spoil = "UPDATE file_contents SET content = zeroblob(4)"
    lost, kept = share(alpha, shared, b"lost"), share(alpha, shared, b"kept")
    eventually(lambda: equal(alpha, beta))
    assert get(beta, shared, kept) == b"kept"
    change(alpha, spoil)
    error = refused(beta, shared, lost)
    assert (error.reason, error.data["node"]) == ("content_corrupt", "aid://example.com/alpha")
    assert alpha.get("/health").json()["reason"] == "content_corrupt"
    assert refused(alpha, shared, lost).reason == "content_corrupt"
    assert get(alpha, shared, kept) == b"kept", "beta has a copy"
    change(beta, spoil)
    assert get(beta, shared, kept) == b"kept", "alpha has it again"
    change(alpha, "DELETE FROM file_contents WHERE content = zeroblob(4)")
    assert refused(alpha, shared, lost).reason == "content_lost"
