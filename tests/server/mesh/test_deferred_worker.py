"""What is deferred, on a real node: taken in, refused for good, or asked for again."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from peers.errors import CallError, PeerRefused, PeerUnreachable
from peers.signing import SigningKey
from server.domain.errors import Forbidden, InvalidInput, RateLimited
from server.mesh.deferred_worker import DeferredWorker, is_temporary
from server.node import Node as Methods
from server.store import deferred
from server.store import peers as registered
from server.store.database import Database
from tests.support.foreign_peer import AGENT, ForeignPeerDouble
from tests.support.located import connect, location_of, prepare
from tests.support.mesh import holds, peers
from tests.support.node import Node
from tests.support.waiting import eventually, until


def test_a_deferred_message_outlasts_what_may_pass(tmp_path: Path) -> None:
    """Its peer can't say what the project is: it is told once, and asked again."""
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        double.refuses["cacp/project/get"] = {"code": -32000, "message": "Server error: busy"}
        shared = unheard_of(node, double)
        tell(node, double, shared)
        eventually(lambda: "deferred_waits" in node.log)
        hurry(node)
        eventually(lambda: double.calls.count("cacp/project/get") >= 2)
        assert node.get("/mesh").json()["deferred"] == 1
        assert node.log.count("deferred_waits") == 1
        double.refuses.clear()
        hurry(node)
        eventually(lambda: holds(node, shared))
        eventually(lambda: node.get("/mesh").json()["deferred"] == 0)
        listed = node.call("cacp/contract/list", projectId=shared)["contracts"]
        assert [one["name"] for one in listed] == ["Theirs"]


def test_a_deferred_message_is_dropped_when_it_is_refused_for_good(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        tell(node, double, "nowhere")
        eventually(lambda: "deferred_refused" in node.log)
        eventually(lambda: node.get("/mesh").json()["deferred"] == 0)
        assert "cacp_deferred_dropped_total 1.0" in node.get("/metrics").text
        assert f'"peer": "{AGENT}"' in node.log


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (PeerUnreachable("down"), True),
        (PeerRefused("refuses (HTTP 503)", status=503), True),
        (PeerRefused("refuses: Server error", status=200, code=-32000), True),
        (PeerRefused("refuses: no key", status=401), True),
        (PeerRefused("refuses: Project p not found", status=200, code=-32602), False),
        (RateLimited("Too many calls"), True),
        (InvalidInput("no"), False),
        (Forbidden("no"), False),
        (ValueError("no"), False),
    ],
)
def test_what_may_pass(error: CallError, passes: bool) -> None:
    assert is_temporary(error) is passes


def unheard_of(node: Node, double: ForeignPeerDouble) -> str:
    """A project of the peer that this node has not heard of."""
    refused = node.url + "/nowhere"
    return double.create(refused, "alpha")


def tell(node: Node, double: ForeignPeerDouble, project_id: str) -> None:
    contract = double.contract_of()
    told = double.send(node.url, "cacp/contract/sync", projectId=project_id, contract=contract)
    assert told["result"]["status"] == "skipped"


def hurry(node: Node) -> None:
    """Have what waits be due now."""
    db = connect(node.db)
    db.execute("UPDATE set_aside SET due = 0")
    db.close()


def test_a_deferred_message_that_fails_holds_up_none_behind_it(tmp_path: Path) -> None:
    """A row that can't be read is nothing that its peer did: it stays, and is shown."""

    def write(sql: str, *values: object) -> None:
        with closing(connect(node.db)) as other:
            other.execute(sql, values)

    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        double.refuses["cacp/project/get"] = {"code": -32000, "message": "Server error: busy"}
        broken, shared = unheard_of(node, double), unheard_of(node, double)
        tell(node, double, broken)
        [(params,)] = node.query("SELECT params FROM set_aside")
        write("UPDATE set_aside SET params = '{', due = 0")
        eventually(lambda: node.get("/health").json().get("reason") == "loop_failing")
        tell(node, double, shared)
        double.refuses.clear()
        hurry(node)
        eventually(lambda: holds(node, shared))
        eventually(lambda: node.get("/mesh").json()["deferred"] == 1)
        write("UPDATE set_aside SET params = ?, due = 0", params)
        eventually(lambda: holds(node, broken))
        eventually(lambda: node.get("/health").json()["status"] == "healthy")


def test_what_waits_long_is_shown_and_expires(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        double.refuses["cacp/project/get"] = {"code": -32000, "message": "Server error: busy"}
        shared = unheard_of(node, double)
        tell(node, double, shared)
        eventually(lambda: "deferred_waits" in node.log)
        assert node.get("/health").json()["status"] == "healthy"
        with closing(connect(node.db)) as other:
            other.execute("UPDATE set_aside SET deferred_at = deferred_at - 60000000")
        eventually(lambda: node.get("/health").json().get("reason") == "deferred")
        assert "1 message of a peer waits" in node.get("/health").json()["detail"]
        with closing(connect(node.db)) as other:
            other.execute("UPDATE set_aside SET deferred_at = 1")
        node.restart()
        eventually(lambda: "deferred_expired" in node.log)
        assert "cacp_deferred_dropped_total 1.0" in node.get("/metrics").text
        assert node.get("/mesh").json()["deferred"] == 0


@pytest.mark.sqlite
def test_a_peer_that_gives_no_answer_is_asked_once_and_holds_up_no_other(tmp_path: Path) -> None:
    gone, other = "aid://example.com/gone@1.0.0", "aid://example.com/other@1.0.0"
    happened: list[str] = []

    class Others:
        """Of both sides: a peer that is silent, and what is taken in."""

        async def call(self, *_: object, **__: object) -> Any:
            happened.append("asked")
            await until(lambda: len(happened) > 3)
            happened.append("gave up")
            raise PeerUnreachable("gives no answer")

        async def take(self, source: registered.Peer, message: Any) -> Any:
            happened.append(f"taken from {source.agent_id}")

    async def run() -> None:
        prepare(tmp_path / "node.db")
        database = Database(location_of(tmp_path / "node.db"))
        await database.open(1)

        now = database.now()

        def put(to: Any) -> None:
            for agent in (gone, other):
                registered.put(to.connection, agent, "http://x", None, "unkeyed", 1)
            for source, params in ((gone, '{"projectId": "p"}'), (other, "{}")):
                for number in range(3):
                    sent = deferred.DeferredMessage(
                        source, "cacp/contract/sync", params, f"{number}"
                    )
                    deferred.put(to.connection, sent, "project", "p", due=number, now=now)

        await database.write(put)
        node = Methods("aid://example.com/own@1.0.0", "own", True, True, SigningKey(b"k" * 32))
        others = cast(Any, Others())
        turns = DeferredWorker(database, node, others, others).run()
        assert await anext(turns) is None
        await database.close()
        assert happened == ["asked", *[f"taken from {other}"] * 3, "gave up"]
        assert deferred_of(tmp_path / "node.db") == {gone}

    asyncio.run(run())


def deferred_of(path: Path) -> set[str]:
    with closing(connect(path)) as db:
        return {row[0] for row in db.execute("SELECT source FROM set_aside")}
