"""What the node does for handoffs and teamspaces by itself, beside its callers.

| duty      | when                            | does                                               |
|-----------|---------------------------------|----------------------------------------------------|
| verify    | a handoff is validating         | reads its artifacts, then accepts or rejects it    |
| escalate  | the SLA of one is over          | tells the coordinator, once (§7.2 rule 5)          |
|           | an offer was not accepted       | ends it, so that its task is free                  |
| workq     | one was accepted                | releases and claims its items at the gateway       |
| journal   | a teamspace's log has new lines | appends them to its files (§8.2)                   |

Each follows from what the database holds, so that it goes on after a crash where it was. Files and
network are waited for between transactions, never inside one: the writer is everybody's.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import structlog

from peers.backoff import delay
from peers.errors import Refused, Unreachable
from server.methods.base import Session
from server.methods.handoff.automatic import (
    escalate,
    expire,
    settle_checked,
    workq_given_up,
    workq_moved,
)
from server.node import Node
from server.settings import Settings
from server.store import handoffs, teams
from server.store.database import Database
from server.store.handoffs import Intent
from server.util.loops import Loops, Turns, cancel, each
from server.util.outgoing_client import make_client
from server.util.wait_first import first
from server.workers.artifact_check import check_all
from server.workers.teamspace_log import TeamspaceLog
from server.workers.workq_client import ATTEMPTS, WorkqClient

log = structlog.get_logger()

PAUSE = 0.05
"""Seconds between two looks, however much is committed."""
LOOK = 1.0
"""Seconds until the next look when nothing is committed."""
LINES = 500

Duty = Callable[[], Awaitable[Exception | None]]
"""Sees to all that is due; what failed for some of it."""


class HandoffWorker:
    """Runs the duties that the settings ask for, from `start` to `stop`."""

    def __init__(self, settings: Settings, database: Database, node: Node, loops: Loops) -> None:
        self._settings = settings
        self._loops = loops
        self._database = database
        self._session = Session(database, node.caller, node, "acp/handoff", asyncio.Event())
        self._tasks: list[asyncio.Task[None]] = []
        self._files: dict[tuple[str, str], TeamspaceLog] = {}
        self._journalled = 0
        key = settings.workq_key
        self._gateway = (
            WorkqClient(
                make_client(loopback_allowed=settings.loopback),
                settings.workq_url,
                key.get_secret_value() if key else None,
            )
            if settings.workq_url
            else None
        )

    def start(self) -> None:
        # What waits to be verified since a start with other settings is seen to as well.
        duties: dict[str, Duty] = {"escalate": self._escalate, "verify": self._verify}
        if self._gateway is not None:
            duties["workq"] = self._move
        if self._settings.teamspaces_root is not None:
            duties["journal"] = partial(self._write_journal, self._settings.teamspaces_root)
        self._tasks = [
            self._loops.start(name, partial(self._again, duty)) for name, duty in duties.items()
        ]

    async def stop(self) -> None:
        await cancel(self._tasks)
        if self._gateway is not None:
            await self._gateway.close()

    async def _again(self, duty: Duty) -> Turns:
        """Look at each commit, and now and then."""
        while True:
            commit = self._database.next_commit
            failed = await duty()
            yield failed
            await asyncio.sleep(LOOK if failed else PAUSE)
            await first(commit, seconds=LOOK)

    # --- handoffs -----------------------------------------------------------------------------

    async def _escalate(self) -> Exception | None:
        due = self._database.read(partial(handoffs.due, now=self._database.clock.sure()))
        return await each(due, self._escalate_one)

    async def _escalate_one(self, handoff_id: str) -> None:
        if await self._session.write(partial(escalate, handoff_id=handoff_id)):
            log.warning("handoff_escalated", handoff=handoff_id)
        elif await self._session.write(partial(expire, handoff_id=handoff_id)):
            log.warning("handoff_expired", handoff=handoff_id)

    async def _verify(self) -> Exception | None:
        return await each(self._database.read(handoffs.to_check), self._verify_one)

    async def _verify_one(self, handoff_id: str) -> None:
        found = self._database.read(partial(handoffs.find, handoff_id=handoff_id))
        if found is None:
            return
        settings = self._settings
        checks = await asyncio.to_thread(
            check_all, found.package, settings.artifact_roots, settings.artifact_bytes
        )
        await self._session.write(partial(settle_checked, handoff_id=handoff_id, checks=checks))

    async def _move(self) -> Exception | None:
        now = self._database.now()
        intents = self._database.read(partial(handoffs.open_intents, now=now))
        return await each(intents, self._call_workq)

    async def _call_workq(self, intent: Intent) -> None:
        assert self._gateway is not None
        try:
            await self._gateway.call(intent)
        except Unreachable as error:
            problem = f"workq {error}"
            if intent.attempts + 1 < ATTEMPTS:
                await self._postpone(intent, problem)
                return
        except Refused as error:
            problem = f"workq {error}"
        else:
            await self._session.write(partial(workq_moved, intent=intent))
            return
        log.warning("workq_by_hand", handoff=intent.handoff_id, error=problem)
        await self._session.write(partial(workq_given_up, intent=intent, problem=problem))

    async def _postpone(self, intent: Intent, problem: str) -> None:
        seconds = delay(intent.attempts + 1, random.random())  # noqa: S311 - no secret
        due = self._database.now() + int(seconds * 1_000_000)
        await self._database.write(
            lambda to: handoffs.intent_failed(to.connection, intent, due, problem)
        )

    # --- the journal --------------------------------------------------------------------------

    async def _write_journal(self, root: Path) -> Exception | None:
        whole = self._database.read(teams.log_newest)
        if whole == self._journalled:
            return None
        heads = await self._database.read_wide(teams.log_heads)
        failed = await each(heads, partial(self._write_log, root))
        if failed is None:
            self._journalled = whole
        return failed

    async def _write_log(self, root: Path, head: tuple[str, str, int]) -> None:
        """One log of a teamspace, up to its newest line."""
        team, name, newest = head
        file = self._files.get((team, name))
        if file is None:
            file = await asyncio.to_thread(TeamspaceLog, root, team, name)
            self._files[team, name] = file
        try:
            while file.last < newest:
                rows = await self._database.read_wide(
                    partial(teams.log_after, team=team, name=name, seq=file.last, limit=LINES)
                )
                if not rows:
                    break
                await asyncio.to_thread(file.append, rows)
        except BaseException:
            # How far it came is read from the file anew.
            del self._files[team, name]
            raise
