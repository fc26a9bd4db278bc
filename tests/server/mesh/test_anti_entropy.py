"""Comparing costs what differs, not what is there (design §7)."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import orjson

from peers import digest
from peers.clock import Reading
from peers.signing import SigningKey
from server.auth.authenticator import Caller
from server.mesh.anti_entropy import Comparison
from server.methods import METHODS
from server.methods.base import CallSession, Context
from server.node import Node
from server.store import changes, digests, peers
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.peers import Peer
from tests.support.located import connect, location_of, prepare

ALPHA, BETA = "aid://example.com/alpha@1.0.0", "aid://example.com/beta@1.0.0"
ENTITIES = 2_000


class Direct:
    """A link that calls the methods of the other node's database, and counts the messages."""

    def __init__(self, database: Database, node: Node, caller: Caller) -> None:
        self._database = database
        self._node = node
        self._caller = caller
        self.calls: list[str] = []

    async def call(self, name: str, newer: Any = None, **params: Any) -> Any:
        self.calls.append(name)
        method = METHODS[name]
        whole = params | (newer or {}) | {"source_agent": self._caller.agent_id}
        given = method.params.model_validate(whole)
        if method.waits:
            session = CallSession(self._database, self._caller, self._node, name, asyncio.Event())
            return orjson.loads(orjson.dumps(await method.run(session, given)))

        def run(one: Transaction) -> Any:
            context = Context(one.connection, self._caller, self._node, name, one.stamp, one)
            return method.run(context, given)

        return await self._database.write(run)


class Asked(asyncio.Lock):
    """A lock that tells when somebody wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        self.asked.set()
        return await super().acquire()


def fill(path: Path, node: Node, other: str, packets: int) -> None:
    prepare(path)
    with closing(connect(path)) as db:
        db.execute("BEGIN IMMEDIATE")
        peers.put(db, other, "http://x", "x", "verified", 1)
        peers.put_keys(db, other, "secret", "key")
        for number in range(packets):
            changes.append(
                db,
                at=1,
                origin=node.agent_id,
                actor=node.agent_id,
                action="m",
                entity="context",
                entity_id=f"packet {number}",
                project_id="p",
                outcome="x",
            )
        while not digests.catch_up(db):
            pass
        db.execute("COMMIT")


def give_sums(of: Path, to: Path) -> None:
    """Have one node believe that the other's sums are its own, as if they were."""
    with closing(connect(of)) as other:
        sums = other.execute("SELECT prefix, digest FROM digest_sums").fetchall()
    with closing(connect(to)) as db:
        db.execute("DELETE FROM digest_sums")
        db.executemany("INSERT INTO digest_sums (prefix, digest) VALUES (?, ?)", sums)


def compare(
    tmp_path: Path,
    ours: int,
    theirs: int,
    *,
    other_fetches: bool = False,
    exactly: int | None = None,
) -> tuple[list[str], list[Any]]:
    """The calls of one comparison, and what was taken in.

    With `other_fetches`, one is begun before while much is fetched from another peer. With
    `exactly`, the place from which on it is compared whatever the sums are, these are equal.
    """

    async def run() -> tuple[list[str], list[Any]]:
        taken: list[Any] = []
        heard: list[Reading] = []

        async def take_all(peer: Peer, messages: list[Any]) -> list[Any]:
            taken.extend(messages)
            return [{"status": "created"}] * len(messages)

        ours_db, theirs_db = (
            Database(location_of(tmp_path / "a.db")),
            Database(location_of(tmp_path / "b.db")),
        )
        await ours_db.open(1)
        await theirs_db.open(1)
        caller = Caller(ALPHA, "alpha", "verified", "key")
        link = Direct(theirs_db, beta, caller)
        peer = Peer(BETA, "http://x", "beta", "verified", 1, 1, "secret", "key")
        fetching = Asked()
        comparison = Comparison(
            ours_db,
            alpha,
            peer,
            link,  # type: ignore[arg-type]
            60,
            take_all,
            fetching,
        )
        if exactly is not None:
            comparison.walk.places = digest.places(exactly)
        if other_fetches:
            async with fetching:
                waiting = asyncio.create_task(comparison.round(heard.append))
                fetching.asked.clear()
                await fetching.asked.wait()
            assert not await waiting
            assert "cacp/sync/pull" not in link.calls
        assert await comparison.round(heard.append)
        if exactly is None:
            missing = {"context": theirs - ours} if theirs > ours else {}
            assert comparison.last is not None
            assert comparison.last.is_equal == (ours == theirs)
            assert comparison.last.differing == missing
        apart = heard[-1].at(heard[-1].received, ours_db.now() - ours_db.clock.steady())
        assert apart is not None
        assert abs(apart.middle) < 5_000_000
        await ours_db.close()
        await theirs_db.close()
        return link.calls, taken

    alpha = Node(ALPHA, "alpha", True, True, SigningKey(bytes(32)))
    beta = Node(BETA, "beta", True, True, SigningKey(bytes(32)))
    fill(tmp_path / "a.db", alpha, BETA, ours)
    fill(tmp_path / "b.db", beta, ALPHA, theirs)
    if exactly is not None:
        give_sums(tmp_path / "a.db", tmp_path / "b.db")
    return asyncio.run(run())


def test_an_empty_node_needs_no_message_for_each_entity(tmp_path: Path) -> None:
    calls, _ = compare(tmp_path, 0, ENTITIES)
    assert len(calls) < 30
    assert calls.count("cacp/sync/pull") == ENTITIES / 500


def test_much_is_fetched_from_one_peer_at_a_time(tmp_path: Path) -> None:
    """It may be the same: who waited compares anew before it fetches."""
    calls, _ = compare(tmp_path, 0, ENTITIES, other_fetches=True)
    assert calls.count("cacp/sync/pull") == ENTITIES / 500


def test_what_only_the_peer_lacks_makes_them_unequal_too(tmp_path: Path) -> None:
    calls, _ = compare(tmp_path, ENTITIES + 1, ENTITIES)
    assert "cacp/sync/pull" not in calls
