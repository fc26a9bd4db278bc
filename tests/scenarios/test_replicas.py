"""Replicas of one node on one PostgreSQL: what only one may do is done once, whatever happens to
who does it, and all of them show the same."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from server.domain.duty import LEASE, SECOND
from server.domain.location import DatabaseUrl
from server.store import keys
from server.store.opening import connect
from tests.support.mail_agent import MailAgent, agent
from tests.support.node import Node, RpcError
from tests.support.postgresql import database, execute
from tests.support.pushing_node import PushingNode
from tests.support.waiting import PATIENCE, eventually
from tests.support.webhook_receiver import receiver

PUBLIC = "http://127.0.0.1:9"
LEASE_SECONDS = LEASE / SECOND


class Replica(PushingNode):
    """A node on a database that others use too."""

    def __init__(self, folder: Path, url: DatabaseUrl, **settings: object) -> None:
        folder.mkdir()
        self.location = url
        super().__init__(folder, database_url=str(url), **{"public_url": PUBLIC} | settings)

    @property
    def works(self) -> bool:
        """Whether it has the background duty."""
        return metric(self, "cacp_background_duty") == 1

    def pause(self) -> None:
        """Let its process stand still, as a machine does that gives it no time."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def key(
        self, agent: str, repo: str, trust: keys.KeyTrust = "verified", *, human: bool = False
    ) -> str:
        made = keys.new_key()
        with closing(connect(self.location)) as db:
            now = time.time_ns() // 1000
            keys.add(db, made, agent_id=agent, repo=repo, trust=trust, now=now, human=human)
        return made


def metric(node: Node, name: str) -> float:
    lines = node.get("/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


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
        assert [node.get("/health").json()["status"] for node in (one, other)] == ["healthy"] * 2


def test_a_killed_replica_s_work_is_taken_over_and_a_stopped_one_s_at_once(
    tmp_path: Path,
) -> None:
    with replicas(tmp_path, 3) as [one, other, third], receiver() as hook:
        anna, bert = agent(third, "anna"), agent(third, "bert")
        bert.call("subscribe", url=hook.url)
        one.stop()
        eventually(lambda: other.works or third.works, LEASE_SECONDS / 2)
        working, idle = (other, third) if other.works else (third, other)
        eventually(lambda: metric(idle, "cacp_replicas") == 2)
        working.kill()
        message = posted(at(idle, anna), at(idle, bert))
        eventually(lambda: hook.ids == [message], LEASE_SECONDS + PATIENCE)
        assert idle.works
        eventually(lambda: metric(idle, "cacp_replicas") == 1)
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
            eventually(lambda: metric(other, "cacp_connections") >= 2)
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
