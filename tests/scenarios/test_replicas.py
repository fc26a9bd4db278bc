"""Replicas of one node on one PostgreSQL: what only one may do is done once, whatever happens to
who does it, and all of them show the same."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from peers import handshake
from peers.signing import SigningKey
from schemas.mesh import Hello, Introduction, Welcome
from server.domain.duty import LEASE, SECOND
from server.domain.location import DatabaseUrl
from server.http.rate_limit import PARTS
from server.store import keys
from server.store.connection import Connection
from server.store.opening import connect
from tests.support.mail_agent import MailAgent, agent
from tests.support.node import Node, RpcError
from tests.support.postgresql import database, execute
from tests.support.pushing_node import PushingNode
from tests.support.waiting import PATIENCE, eventually
from tests.support.webhook_receiver import receiver

PUBLIC = "http://127.0.0.1:9"
PEER = "aid://example.com/peer@1.0.0"
PARTS_OF_60 = 60 // PARTS
LEASE_SECONDS = LEASE / SECOND
"""Of the product; nodes of tests have shorter ones (`tests.support.pace`)."""


class Replica(PushingNode):
    """A node on a database that others use too."""

    def __init__(self, folder: Path, url: DatabaseUrl, **settings: object) -> None:
        folder.mkdir()
        self.location = url
        super().__init__(folder, database_url=str(url), **{"public_url": PUBLIC} | settings)

    @property
    def works(self) -> bool:
        """Whether it has the background duty."""
        return self.metric("cacp_background_duty") == 1

    def pause(self) -> None:
        """Let its process stand still, as a machine does that gives it no time."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def reader(self) -> Connection:
        return connect(self.location)


@contextmanager
def replicas(folder: Path, count: int = 2, **settings: object) -> Iterator[list[Replica]]:
    """Replicas on a fresh database; the first has the background duty."""
    with database() as url, ExitStack() as stack:
        made = [
            stack.enter_context(Replica(folder / f"r{number}", url, **settings))
            for number in range(count)
        ]
        for node in made:
            stack.callback(node.resume)
        yield made


def holder(location: DatabaseUrl) -> tuple[str, int]:
    [(replica, epoch)] = execute(location, "SELECT holder, epoch FROM duties")
    return replica, epoch


def at(node: Node, who: MailAgent) -> MailAgent:
    """The same agent at another replica."""
    return MailAgent(node, who.id, who.key)


def posted(sender: MailAgent, to: MailAgent) -> str:
    return str(sender.send(to, priority="high")["message"]["id"])


TAKEN = 'cacp_mail_pushes_taken_total{channel="channel"} 1'


def test_webhooks_are_posted_once_though_their_replica_stands_still_and_wakes(
    tmp_path: Path,
) -> None:
    """It wakes with a lease that has ended, believing that it does the background work."""
    with replicas(tmp_path) as [one, other], receiver() as hook:
        anna, bert = agent(one, "anna"), agent(one, "bert")
        bert.call("subscribe", url=hook.url)
        assert one.works
        assert not other.works
        first = posted(at(other, anna), bert)
        eventually(lambda: hook.ids == [first])
        # One that stands still before it has recorded a push leaves it to be made again.
        eventually(lambda: TAKEN in one.get("/metrics").text)
        one.pause()
        sent = [first] + [posted(at(other, anna), bert) for _ in range(3)]
        eventually(lambda: other.works, LEASE_SECONDS + PATIENCE)
        assert holder(one.location)[1] == 2
        eventually(lambda: hook.ids == sent)
        one.resume()
        eventually(lambda: "background_duty_lost" in one.log)
        assert not one.works
        sent.append(anna.send(bert, priority="high")["message"]["id"])
        eventually(lambda: hook.ids == sent)
        assert other.works
        assert holder(one.location)[1] == 2
        assert [each["type"] for each in bert.inbox()["messages"]] == ["knowledge.push"] * 5
        for node in (one, other):
            # The server has ended connections of the one that stood still; it says so for a moment.
            eventually(lambda node=node: node.get("/health").json()["status"] == "healthy")


def test_a_killed_replica_s_work_is_taken_over_and_a_stopped_one_s_at_once(
    tmp_path: Path,
) -> None:
    with replicas(tmp_path, 3) as [one, other, third], receiver() as hook:
        anna, bert = agent(third, "anna"), agent(third, "bert")
        bert.call("subscribe", url=hook.url)
        one.stop()
        eventually(lambda: other.works or third.works, LEASE_SECONDS / 2)
        working, idle = (other, third) if other.works else (third, other)
        eventually(lambda: idle.metric("cacp_replicas") == 2)
        working.kill()
        message = posted(at(idle, anna), at(idle, bert))
        eventually(lambda: hook.ids == [message], LEASE_SECONDS + PATIENCE)
        assert idle.works
        eventually(lambda: idle.metric("cacp_replicas") == 1)
        working.start()
        one.start()


def test_a_stream_is_followed_at_another_replica_without_a_gap_or_a_repetition(
    tmp_path: Path,
) -> None:
    with replicas(tmp_path) as [one, other]:
        made = [
            (one, other)[number % 2].call("cacp/project/create", name=f"p{number}", objective="o")
            for number in range(6)
        ]
        made, seen = [each["projectId"] for each in made], list[str]()
        last = "0"
        for number in range(3):
            node = (one, other)[number % 2]
            with node.events(last_event_id=last, kind="project") as stream:
                for _ in range(2):
                    event = next(stream)
                    last = event["id"]
                    seen.append(event["data"]["entityId"])
        assert seen == made


def test_a_waiting_inbox_is_woken_by_mail_at_another_replica(tmp_path: Path) -> None:
    with replicas(tmp_path) as [one, other]:
        anna, bert = agent(one, "anna"), agent(one, "bert")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(at(other, bert).inbox, wait=30)
            eventually(lambda: other.metric("cacp_connections") >= 2)
            began = time.monotonic()
            message = posted(anna, bert)
            answer = waiting.result()
            assert time.monotonic() - began < PATIENCE
        assert [each["id"] for each in answer["messages"]] == [message]


def test_a_key_revoked_at_one_replica_is_refused_at_once_at_another(tmp_path: Path) -> None:
    with replicas(tmp_path) as [one, other]:
        anna = agent(one, "anna")
        at(other, anna).inbox()
        with closing(connect(one.location)) as db:
            [(key_id,)] = db.execute("SELECT key_id FROM keys WHERE agent_id = ?", (anna.id,))
            keys.revoke(db, key_id, now=1)
        for node in (one, other):
            with pytest.raises(RpcError) as refused:
                at(node, anna).inbox()
            assert refused.value.reason == "revoked_key"


def test_who_called_one_replica_is_awake_at_each(tmp_path: Path) -> None:
    with replicas(tmp_path) as [one, other]:
        anna = agent(one, "anna")
        anna.inbox()

        def awake() -> bool:
            listed = other.call("cacp/agent/overview")["agents"]
            return any(each["agentId"] == anna.address and each["isAwake"] for each in listed)

        eventually(awake)


def test_a_replica_of_another_node_does_not_start(tmp_path: Path) -> None:
    with replicas(tmp_path, 1) as [one]:
        other = Replica(tmp_path / "other", one.location, public_url="http://127.0.0.1:10")
        with pytest.raises(AssertionError, match="the node ended at once"):
            other.start()
        assert f"their CACP_PUBLIC_URL is {PUBLIC}" in other.log
        other.http.close()


def test_a_caller_gets_its_limit_once_not_from_each_replica(tmp_path: Path) -> None:
    with replicas(tmp_path, 3, rate_limit=60) as nodes:
        anna = agent(nodes[0], "anna")

        def spend(node: Replica) -> int:
            """How many of so many requests are admitted."""
            statuses = [node.get("/mesh", key=anna.key).status_code for _ in range(60)]
            assert set(statuses) <= {200, 429}
            return statuses.count(200)

        began = time.monotonic()
        with ThreadPoolExecutor(3) as pool:
            admitted = sum(pool.map(spend, nodes))
        took = time.monotonic() - began
        assert 60 - 3 * PARTS_OF_60 <= admitted <= 60 + took + 1


def test_a_handshake_may_end_at_another_replica(tmp_path: Path) -> None:
    """A proxy gives each request to any of them."""
    with replicas(tmp_path, 2, mesh_token="shared-secret-of-the-mesh") as [one, other]:
        hello, key, introduction = greeting("shared-secret-of-the-mesh")
        welcome = Welcome.model_validate(one.http.post("/peers/hello", json=hello).json())
        transcript = handshake.transcript(introduction, welcome.introduction)
        confirm = {
            "nonce": welcome.introduction.nonce,
            "proof": handshake.proof("shared-secret-of-the-mesh", "caller", transcript),
            "signature": key.sign(handshake.signed("caller", transcript)),
        }
        assert other.http.post("/peers/confirm", json=confirm).json()["status"] == "registered"
        assert one.http.post("/peers/confirm", json=confirm).status_code == 401
        eventually(lambda: [each["agentId"] for each in peers_of(other)] == [PEER])


def greeting(secret: str) -> tuple[dict[str, Any], SigningKey, Introduction]:
    key = SigningKey(bytes(range(32)))
    introduction = Introduction.model_validate(
        {
            "agentId": PEER,
            "endpoint": "http://127.0.0.1:9",
            "repoName": "peer",
            "publicKey": key.public,
            "nonce": "5" * 64,
        }
    )
    hello = Hello.model_construct(
        introduction=introduction, secret_id=handshake.token_tag(secret, introduction.nonce)
    )
    return hello.model_dump(by_alias=True, mode="json"), key, introduction


def is_equal(node: Node) -> bool:
    return bool(peers_of(node)[0].get("sync", {}).get("isEqual"))


def peers_of(node: Node) -> Any:
    return node.get("/peers").json()["peers"]


def test_a_replica_shows_how_the_exchange_of_another_with_a_peer_goes(tmp_path: Path) -> None:
    (tmp_path / "peer").mkdir()
    token = {"mesh_token": "shared-secret-of-the-mesh"}
    with (
        replicas(tmp_path, 2, **token) as [one, other],
        Node(tmp_path / "peer", agent_id=PEER, repo="peer", peers=one.url, **token) as far,
    ):
        eventually(lambda: [each["agentId"] for each in peers_of(other)] == [PEER])
        other.call("cacp/project/create", name="p", objective="o")
        eventually(lambda: far.call("cacp/project/list")["projects"])
        assert one.works
        for node in (one, other):
            eventually(partial(is_equal, node))
            assert peers_of(node)[0]["sync"]["health"] == "up"
            assert node.metric('cacp_peer_up{peer="' + PEER + '"}') == 1
        one.stop()
        other.call("cacp/project/create", name="q", objective="o")
        eventually(lambda: len(far.call("cacp/project/list")["projects"]) == 2)
        eventually(lambda: peers_of(other)[0]["sync"]["health"] == "up")


def test_the_page_shows_the_replicas_and_who_works(tmp_path: Path) -> None:
    with replicas(tmp_path) as [one, other]:

        def shown() -> list[tuple[str, bool, bool]]:
            listed = other.get("/ui/health.json").json()["replicas"]
            return [(each["status"], each["isOwn"], each["doesBackgroundWork"]) for each in listed]

        eventually(lambda: shown() == [("healthy", False, True), ("healthy", True, False)])
        page = other.http.get("/ui/health", headers={"accept": "text/html"})
        assert page.status_code == 200
        assert f"127.0.0.1:{one.port}" in page.text
        one.kill()
        eventually(lambda: shown()[0][0] == "away")
        one.start()
