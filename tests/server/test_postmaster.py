"""Expiry and retention on a node that runs; it goes on after a restart where it was."""

import asyncio
from pathlib import Path

from peers.signing import SigningKey
from schemas.base import iso
from server.identity import Caller
from server.methods.acp import mail
from server.methods.acp.mail import Draft
from server.methods.base import Node, Session
from server.postmaster import Postmaster
from server.store import messages
from server.store.database import Database
from server.store.migrate import prepare

AGENT = "aid://example.com/anna@1.0.0"
NODE = Node(AGENT, "mail", True, True, SigningKey(bytes(32)))
SECOND = 1_000_000


async def statuses(path: Path, *, send: bool) -> list[str]:
    """Start on a file, send when asked to what expires at once, wait until all has expired."""
    prepared = prepare(path)
    database = Database(path)
    await database.open(prepared.last_stamp)
    caller = Caller(AGENT, "mail", "verified", "local")
    session = Session(database, caller, NODE, "acp/send", asyncio.Event())
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
        postmaster = Postmaster(database, NODE)
        postmaster.start()
        async with asyncio.timeout(20):
            while session.read(lambda ctx: messages.next_expiry(ctx.db)) is not None:
                await asyncio.sleep(0.02)
        await postmaster.stop()
    found = session.read(
        lambda ctx: messages.found(
            ctx.db, address="aid://example.com/anna", human=False, before=None,
            **dict.fromkeys(
                ("id", "thread_id", "type", "status", "topic", "team", "held", "agent", "since",
                 "until")
            ),
            limit=10,
        )
    )  # fmt: skip
    await database.close()
    return [message.status for message in found]


def test_what_expired_while_the_node_was_down_expires_when_it_is_up(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    assert asyncio.run(statuses(path, send=True)) == ["pending"] * 3
    assert asyncio.run(statuses(path, send=False)) == ["expired"] * 3
