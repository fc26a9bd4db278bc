"""Expiry and retention on a node that runs; it goes on after a restart where it was."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from peers.signing import SigningKey
from schemas.base import iso
from server.auth.authenticator import Caller
from server.domain.acp.drafts import Draft
from server.methods.acp import mail, retention
from server.methods.base import CallSession
from server.node import Node
from server.store import messages
from server.store.database import Database
from server.util.loops import Loops
from server.workers.mail_sweeper import MailSweeper
from tests.support.located import connect, location_of, prepare
from tests.support.waiting import until

AGENT = "aid://example.com/anna@1.0.0"
NODE = Node(AGENT, "mail", True, True, SigningKey(bytes(32)))
SECOND = 1_000_000
PENDING = "SELECT id FROM messages WHERE status = 'pending' ORDER BY id"


async def statuses(path: Path, *, send: bool) -> list[str]:
    """Start on a file, send when asked to what expires at once, wait until all has expired."""
    prepared = prepare(path)
    database = Database(location_of(path))
    await database.open(prepared.last_stamp)
    caller = Caller(AGENT, "mail", "verified", "local")
    session = CallSession(database, caller, NODE, "acp/send", asyncio.Event())
    if send:
        for _ in range(3):
            await session.write(
                lambda ctx: mail.post(
                    ctx,
                    Draft(
                        type="knowledge.push",
                        to=[AGENT],
                        payload={"summary": "s"},
                        expires_at=iso(ctx.stamp + SECOND // 100),
                    ),
                )
            )
    else:
        mail_sweeper = MailSweeper(database, NODE, Loops())
        await mail_sweeper.start()
        while await session.read(lambda ctx: messages.next_expiry(ctx.db)) is not None:
            await asyncio.sleep(0.005)
        await mail_sweeper.stop()
    found = await session.read(
        lambda ctx: messages.search(
            ctx.db, address="aid://example.com/anna", human=False, before=None,
            **dict.fromkeys(
                ("id", "thread_id", "type", "status", "topic", "team", "held", "agent", "since",
                 "until")
            ),
            urgent=False,
            limit=10,
        )
    )  # fmt: skip
    await database.close()
    return [message.status for message in found]


def test_what_expired_while_the_node_was_down_expires_when_it_is_up(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    assert asyncio.run(statuses(path, send=True)) == ["pending"] * 3
    assert asyncio.run(statuses(path, send=False)) == ["expired"] * 3


def test_a_message_that_can_not_be_ended_holds_up_no_other(tmp_path: Path) -> None:
    """It is named as long as it is so, and ends once it is mended."""
    path = tmp_path / "cacp.db"
    asyncio.run(statuses(path, send=True))
    with closing(connect(path)) as db:
        [(first, policy)] = db.execute("SELECT id, policy_json FROM messages ORDER BY id LIMIT 1")
        db.execute("UPDATE messages SET policy_json = '{' WHERE id = ?", (first,))

    async def run() -> None:
        database = Database(location_of(path))
        await database.open(prepare(path).last_stamp)
        loops = Loops()
        mail_sweeper = MailSweeper(database, NODE, loops)
        await mail_sweeper.start()

        def left() -> list[str]:
            with closing(connect(path)) as db:
                return [message_id for (message_id,) in db.execute(PENDING).fetchall()]

        await until(lambda: left() == [first])
        await until(lambda: loops.failing == ["mail_sweeper"])
        with closing(connect(path)) as db:
            db.execute("UPDATE messages SET policy_json = ? WHERE id = ?", (policy, first))
        await until(lambda: left() == [] and loops.failing == [])
        await mail_sweeper.stop()
        await database.close()

    asyncio.run(run())


def test_messages_that_stay_as_they_are_are_no_endless_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cacp.db"
    asyncio.run(statuses(path, send=True))
    idle = retention.EXPIRE._replace(end=lambda ctx, message_id: 0)
    monkeypatch.setattr(retention, "EXPIRE", idle)

    async def run() -> None:
        database = Database(location_of(path))
        await database.open(prepare(path).last_stamp)
        loops = Loops()
        mail_sweeper = MailSweeper(database, NODE, loops)
        await mail_sweeper.start()
        await until(lambda: loops.failing == ["mail_sweeper"])
        await mail_sweeper.stop()
        await database.close()

    asyncio.run(run())
