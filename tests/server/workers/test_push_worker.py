"""The push worker: one push to a target at a time, each settled on disk, none lost (§10)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from peers.signing import SigningKey
from server.auth.authenticator import Caller
from server.domain.acp.drafts import Draft
from server.domain.acp.pushes import Terms
from server.domain.acp.routing import CHANNELS, capabilities
from server.domain.acp.rules import MailRules
from server.methods.acp import mail
from server.methods.acp.push import Parcel
from server.methods.base import CallSession
from server.node import Node
from server.store import pushes
from server.store.database import Database
from server.store.pushes import Webhook
from server.util.loops import Loops
from server.workers.push_worker import PushWorker
from tests.support.located import location_of, prepare
from tests.support.waiting import PATIENCE, until

AGENT = "aid://example.com/anna@1.0.0"
ANNA = "aid://example.com/anna"
EVERY = frozenset(CHANNELS)
RULES = MailRules(limits={}, capabilities=capabilities(EVERY, EVERY), pushes=Terms(retry=1_000))
NODE = Node(AGENT, "mail", True, True, SigningKey(bytes(32)), acp=RULES)


class Hand:
    """A transport that answers as a test says, and keeps what it was given."""

    seconds = 1.0

    def __init__(self, answer: Callable[[int], str | None]) -> None:
        self.answer = answer
        self.ids: list[str] = []
        self.at_once = 0
        self.busy = 0
        self.closed = False

    async def push(self, parcel: Parcel) -> str | None:
        self.busy += 1
        self.at_once = max(self.at_once, self.busy)
        self.ids.append(parcel.envelope["id"])
        await asyncio.sleep(0.001)
        self.busy -= 1
        return self.answer(len(self.ids))

    async def close(self) -> None:
        self.closed = True


async def run(
    path: Path,
    hand: Hand,
    play: Callable[[CallSession, PushWorker], Awaitable[None]],
    node: Node = NODE,
) -> None:
    prepared = prepare(path)
    database = Database(location_of(path))
    await database.open(prepared.last_stamp)
    session = CallSession(
        database, Caller(AGENT, "mail", "verified", "local"), node, "acp/send", asyncio.Event()
    )
    await session.write(
        lambda ctx: pushes.put_webhook(ctx.db, ANNA, Webhook("w", "http://a.example", "2026"))
    )
    push_worker = PushWorker(database, node, Loops(), {"channel": hand})
    await push_worker.start()
    try:
        async with asyncio.timeout(PATIENCE):
            await play(session, push_worker)
    finally:
        await push_worker.stop()
        await push_worker.close()
        await database.close()


async def post(session: CallSession) -> str:
    draft = Draft(type="knowledge.push", to=[AGENT], payload={"summary": "s"}, priority="high")
    return str((await session.write(lambda ctx: mail.post(ctx, draft)))["id"])


def test_a_target_is_pushed_to_one_by_one(tmp_path: Path) -> None:
    hand, sent = Hand(lambda count: None), []

    async def play(session: CallSession, push_worker: PushWorker) -> None:
        sent.extend([await post(session) for _ in range(5)])
        await until(lambda: push_worker.taken["channel"] == 5)

    asyncio.run(run(tmp_path / "cacp.db", hand, play))
    assert hand.ids == sent
    assert hand.at_once == 1
    assert hand.closed


def test_what_fails_is_tried_again_in_its_turn(tmp_path: Path) -> None:
    hand = Hand(lambda count: "no" if count < 4 else None)

    async def play(session: CallSession, push_worker: PushWorker) -> None:
        await post(session)
        await until(lambda: push_worker.taken["channel"] == 1)
        assert push_worker.failed["channel"] == 3

    asyncio.run(run(tmp_path / "cacp.db", hand, play))
    assert len(set(hand.ids)) == 1


def test_a_carrier_that_breaks_breaks_no_courier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its push comes back when the lease of the attempt ends."""
    monkeypatch.setattr("server.workers.push_worker.TROUBLE_SECONDS", 0.01)
    monkeypatch.setattr("server.workers.push_worker.MARGIN", 0.1)

    def answer(count: int) -> str | None:
        if count == 1:
            raise RuntimeError
        return None

    hand = Hand(answer)
    hand.seconds = 0.1

    async def play(session: CallSession, push_worker: PushWorker) -> None:
        await post(session)
        await until(lambda: push_worker.taken["channel"] == 1)

    asyncio.run(run(tmp_path / "cacp.db", hand, play))
    assert len(hand.ids) == 2


def test_it_goes_on_after_a_start_where_it_was(tmp_path: Path) -> None:
    sent: list[str] = []

    async def only_send(session: CallSession, push_worker: PushWorker) -> None:
        await push_worker.stop()
        sent.append(await post(session))

    async def wait(session: CallSession, push_worker: PushWorker) -> None:
        await until(lambda: push_worker.taken["channel"] == 1)

    asyncio.run(run(tmp_path / "cacp.db", Hand(lambda count: None), only_send))
    hand = Hand(lambda count: None)
    asyncio.run(run(tmp_path / "cacp.db", hand, wait))
    assert hand.ids == sent


def test_who_has_no_carrier_waits_and_holds_up_nobody(tmp_path: Path) -> None:
    node = replace(NODE, acp=replace(RULES, wakes=frozenset({ANNA})))
    hand = Hand(lambda count: None)

    async def play(session: CallSession, push_worker: PushWorker) -> None:
        await post(session)
        await until(lambda: push_worker.taken["channel"] == 1)
        assert push_worker.taken["wake"] == 0

    asyncio.run(run(tmp_path / "cacp.db", hand, play, node))
