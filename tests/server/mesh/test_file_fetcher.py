"""The content of other nodes' files (design §7): asked for once, checked, and never half."""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from peers.errors import CallError, NotConnected, PeerRefused
from peers.signing import SigningKey
from schemas.file_mesh import PIECE_MAX
from server.domain.errors import NodeAway, NotFound, Refusal, Unavailable
from server.mesh import file_fetcher
from server.mesh.file_fetcher import FileFetcher
from server.mesh.mesh_channel import MeshChannel
from server.node import Node
from server.store import files
from server.store.database import Database
from server.store.files import File
from tests.support.located import location_of, prepare

ALPHA, BETA, GAMMA = (f"aid://example.com/{name}" for name in ("alpha", "beta", "gamma"))
NODE = Node(f"{ALPHA}@1.0.0", "alpha", True, True, SigningKey(bytes(32)))
CONTENT = bytes(range(256)) * 8_192
"""Two pieces."""


def file(content: bytes = CONTENT, holder: str | None = BETA, file_id: str = "f1") -> File:
    signature = None if holder is None else f'{{"node":"{holder}@2.0.0","value":"v"}}'
    sha256 = hashlib.sha256(content).hexdigest()
    return File(file_id, "n", "t", len(content), sha256, None, "[]", "r", "a", None, 1, signature)


class Peer:
    """Gives the pieces of `content`, or fails; waits for `gate` first."""

    def __init__(self, content: bytes | Exception | str, gate: asyncio.Event | None = None) -> None:
        self.content = content
        self.gate = gate
        self.asked: list[dict[str, Any]] = []

    async def ask(self, method: str, **params: Any) -> Any:
        assert method == "cacp/sync/file"
        self.asked.append(params)
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.content, Exception):
            raise self.content
        if isinstance(self.content, str):
            return {"content": self.content}
        at = params["offset"]
        return {"content": base64.b64encode(self.content[at : at + PIECE_MAX]).decode()}


Story = Callable[[FileFetcher, Database], Awaitable[Any]]


def play(folder: Path, story: Story, *, room: int = 10**9, down: str = "", **peers: Peer) -> Any:
    """What a story gives, on a fetcher whose peers are these."""

    async def run() -> Any:
        prepare(folder / "cacp.db")
        database = Database(location_of(folder / "cacp.db"))
        await database.open(1)
        links = {f"aid://example.com/{name}": cast(MeshChannel, one) for name, one in peers.items()}
        fetcher = FileFetcher(
            database, NODE, links, lambda node: not node.endswith(down or "-"), room
        )
        try:
            return await story(fetcher, database)
        finally:
            await fetcher.stop()
            await database.close()

    return asyncio.run(run())


def fetched(folder: Path, wanted: File, *, direct: bool = False, **peers: Any) -> Any:
    return play(folder, lambda one, _: one.fetch("p", wanted, direct=direct), **peers)


async def kept(database: Database, wanted: File) -> files.FileContent | None:
    return await database.read(lambda db: files.content(db, "p", wanted))


def no_content() -> PeerRefused:
    return PeerRefused("refuses", status=200, code=-32602, data={"reason": "no_content"})


def test_it_comes_in_pieces_and_is_kept(tmp_path: Path) -> None:
    beta = Peer(CONTENT)

    async def story(fetcher: FileFetcher, database: Database) -> None:
        assert await fetcher.fetch("p", file()) == CONTENT
        found = await kept(database, file())
        assert found is not None
        assert (found.data, found.used_at is not None) == (CONTENT, True)
        assert (fetcher.fetched, fetcher.failed) == (1, 0)
        # Whose turns they were is not remembered: peers name as many holders as they like.
        assert not fetcher._at_once

    play(tmp_path, story, beta=beta)
    assert [(one["offset"], one["relay"]) for one in beta.asked] == [(0, False), (PIECE_MAX, False)]


def test_many_who_ask_are_served_by_one_fetching(tmp_path: Path) -> None:
    beta = Peer(CONTENT)

    async def story(fetcher: FileFetcher, _: Database) -> list[bytes]:
        return await asyncio.gather(*(fetcher.fetch("p", file()) for _ in range(5)))

    assert play(tmp_path, story, beta=beta) == [CONTENT] * 5
    assert len(beta.asked) == 2


def test_an_empty_file_needs_no_peer(tmp_path: Path) -> None:
    assert fetched(tmp_path, file(b""), beta=Peer(NotConnected("x"))) == b""


def test_without_room_it_is_given_and_not_kept(tmp_path: Path) -> None:
    async def story(fetcher: FileFetcher, database: Database) -> None:
        assert await fetcher.fetch("p", file()) == CONTENT
        assert await kept(database, file()) is None

    play(tmp_path, story, room=0, beta=Peer(CONTENT))


def test_what_this_node_held_itself_is_its_own_again(tmp_path: Path) -> None:
    async def story(fetcher: FileFetcher, database: Database) -> None:
        own = file(holder=None)
        assert await fetcher.fetch("p", own) == CONTENT
        assert await kept(database, own) == (CONTENT, None)

    play(tmp_path, story, room=0, beta=Peer(CONTENT))


def test_another_that_has_a_copy_gives_it_and_fetches_it_if_only_it_can(tmp_path: Path) -> None:
    away = Peer(NotConnected("can't be reached"))
    gamma = Peer(CONTENT)
    assert fetched(tmp_path, file(), beta=away, gamma=gamma) == CONTENT
    assert gamma.asked[0]["relay"] is False, "the holder is our own peer: it is asked by us"
    assert fetched(tmp_path, file(), gamma=gamma) == CONTENT
    assert gamma.asked[-1]["relay"] is True


def test_only_peers_that_answer_are_asked_and_directly_none_but_the_holder(tmp_path: Path) -> None:
    for given in ({"down": "gamma"}, {"direct": True}):
        gamma = Peer(CONTENT)
        with pytest.raises(NodeAway) as refused:
            fetched(tmp_path, file(), gamma=gamma, **given)
        assert gamma.asked == []
        assert "is not a peer of this node now" in refused.value.message
        assert refused.value.data == {"reason": "node_away", "node": BETA, "degraded": True}


@pytest.mark.parametrize(
    ("answer", "refusal", "reason", "says"),
    [
        (NotConnected("can't be reached"), NodeAway, "node_away", "which can't be reached"),
        (CallError("\x1b[1mx" + "y" * 999), NodeAway, "node_away", "Try again later"),
        (PeerRefused("refuses: no", status=200, code=-32601), NodeAway, "node_away", "refuses: no"),
        ("not base64!", NodeAway, "node_away", "an invalid piece of a file"),
        (no_content(), NotFound, "content_lost", "to share the file again"),
        (bytes(len(CONTENT)), NodeAway, "content_mismatch", "doesn't match the file's SHA-256"),
        (CONTENT[:-1], NodeAway, "content_mismatch", "not shown"),
        (b"", NodeAway, "content_mismatch", "not shown"),
    ],
)
def test_what_nobody_gives_is_refused_precisely(
    tmp_path: Path, answer: Any, refusal: type[Refusal], reason: str, says: str
) -> None:
    async def story(fetcher: FileFetcher, database: Database) -> None:
        with pytest.raises(refusal) as refused:
            await fetcher.fetch("p", file())
        assert refused.value.data["reason"] == reason
        assert refused.value.data["node"] == BETA
        assert says in refused.value.message
        assert "\x1b" not in refused.value.message
        assert len(refused.value.message) < 600
        assert await kept(database, file()) is None
        await asyncio.sleep(0)
        assert (fetcher.fetched, fetcher.failed) == (0, 1)

    play(tmp_path, story, beta=Peer(answer))


def test_right_content_is_taken_from_another_when_one_gives_wrong(tmp_path: Path) -> None:
    given = fetched(tmp_path, file(), beta=Peer(bytes(len(CONTENT))), gamma=Peer(CONTENT))
    assert given == CONTENT


def test_who_does_not_wait_finds_it_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_fetcher, "PATIENCE", 0.01)

    async def story(fetcher: FileFetcher, _: Database) -> None:
        with pytest.raises(NodeAway) as refused:
            await fetcher.fetch("p", file())
        assert refused.value.data["reason"] == "being_fetched"
        gate.set()
        monkeypatch.setattr(file_fetcher, "PATIENCE", 30)
        assert await fetcher.fetch("p", file()) == CONTENT

    gate = asyncio.Event()
    beta = Peer(CONTENT, gate)
    play(tmp_path, story, beta=beta)
    assert len(beta.asked) == 2, "the same fetching went on"


def test_a_holder_that_hangs_is_given_up_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_fetcher, "SECONDS", 2)

    async def story(fetcher: FileFetcher, _: Database) -> None:
        hanging = [
            asyncio.create_task(fetcher.fetch("p", file(file_id=f"h{number}"), direct=True))
            for number in range(file_fetcher.AT_ONCE + 3)
        ]
        await asyncio.sleep(0)
        assert await fetcher.fetch("p", file(holder=GAMMA), direct=True) == CONTENT
        assert len(beta.asked) <= file_fetcher.AT_ONCE, "the others wait for their turn"
        for refused in await asyncio.gather(*hanging, return_exceptions=True):
            assert isinstance(refused, NodeAway)
            assert "did not send it within 2 s" in refused.message

    beta = Peer(CONTENT, asyncio.Event())
    play(tmp_path, story, beta=beta, gamma=Peer(CONTENT))


def test_who_waits_is_told_that_the_node_stops(tmp_path: Path) -> None:
    async def story(fetcher: FileFetcher, _: Database) -> None:
        waiting = asyncio.create_task(fetcher.fetch("p", file()))
        while not beta.asked:
            await asyncio.sleep(0)
        await fetcher.stop()
        with pytest.raises(Unavailable) as refused:
            await waiting
        assert refused.value.data["reason"] == "stopping"

    beta = Peer(CONTENT, asyncio.Event())
    play(tmp_path, story, beta=beta)
