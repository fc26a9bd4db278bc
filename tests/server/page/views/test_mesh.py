"""The view of the mesh: is it equal, and what is the matter with whom?"""

import time
from collections.abc import Iterator
from contextlib import closing
from html import escape
from types import SimpleNamespace
from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.bans import BanStatement
from server.domain.errors import Forbidden
from server.page.views.mesh import mesh_
from server.store import alarms, bans, mesh, peers
from server.store.alarms import Alarm
from tests.support.located import connect
from tests.support.node import Node, free_port
from tests.support.waiting import eventually

BROWSER = {"accept": "text/html"}
NOW = time.time_ns() // 1000
BETA, GAMMA = "aid://example.com/beta@1.0.0", "aid://example.com/gamma@1.0.0"
HOSTILE = "<script>alert(1)</script>\u202e" + "x" * 250


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with a mesh node that is down, a foreign peer, and one problem of each kind."""
    with Node(tmp_path_factory.mktemp("mesh")) as node:
        with closing(connect(node.db)) as db:
            peers.put(db, BETA, f"http://127.0.0.1:{free_port()}", "beta", "verified", NOW)
            peers.put_keys(db, BETA, f"cacp_sk_live_{'x' * 43}", "key")
            peers.put(db, GAMMA, f"http://127.0.0.1:{free_port()}", None, "unkeyed", NOW)
            statement = BanStatement("aid://example.com/x", "aid://a/b", None, True, NOW, HOSTILE)
            bans.put(db, statement)
            alarms.begin(db, Alarm("content_differs", "aid://example.com/beta", "run `x`", NOW))
            db.execute(
                "INSERT INTO undelivered (peer, entity, project_id, entity_id, seq, tries, reason)"
                " VALUES (?, 'contract', 'p', 'c1', 1, 5, ?)",
                (BETA, HOSTILE),
            )
            db.execute(
                "INSERT INTO set_aside (digest, due, source, method, params, reason, deferred_at)"
                f" VALUES ('d', {2 * NOW}, '{BETA}', 'm', '{{}}', 'project', {NOW})"
            )
            mesh.want(db, "http://127.0.0.1:1/<b>")
        yield node


def test_the_problems_are_told_and_nothing_hostile_runs(troubled: Node) -> None:
    twin: dict[str, Any] = {}

    def down() -> bool:
        twin.update(troubled.http.get("/ui/mesh.json").json())
        return {peer["standing"] for peer in twin["peers"]} == {"down"}

    eventually(down)
    assert twin["verdict"]["state"] == "unknown"
    assert twin["verdict"]["sentence"] == "Equal with 0 of 1 other node; beta does not answer"
    assert {peer["kind"] for peer in twin["peers"]} == {"mesh", "foreign"}
    [ban] = twin["bans"]
    assert (ban["holdsHere"], ban["reason"]) == (False, HOSTILE)
    page = troubled.http.get("/ui/mesh", headers=BROWSER).text
    shown = ("foreign", "Differences that stay", "Deferred here", "Bans", "<code>x</code>")
    for words in (*shown, escape(HOSTILE), "http://127.0.0.1:1/&lt;b&gt;"):
        assert words in page, words
    assert "<script>alert" not in page


def test_a_node_alone(node: Node) -> None:
    twin = node.http.get("/ui/mesh.json").json()
    assert twin["verdict"]["state"] in ("alone", "unknown")
    assert twin["node"]["digest"]


def test_a_key_that_is_limited_to_projects_does_not_see_it() -> None:
    limited = Caller("a", "r", "verified", "key", projects=frozenset({"p"}))
    call: Any = SimpleNamespace(caller=limited)
    with pytest.raises(Forbidden):
        mesh_(call)
