"""The background duties for handoffs and teamspaces.

| duty      | when                            | does                                               |
|-----------|---------------------------------|----------------------------------------------------|
| verify    | a handoff is validating         | checks its artifacts, then accepts or rejects it   |
| escalate  | a handoff's SLA has passed      | notifies the coordinator, once (§7.2 rule 5)       |
|           | an offer was not accepted       | expires it, which frees its task                   |
| workq     | a handoff was accepted          | releases and claims its items at the gateway       |
| journal   | a teamspace's log has new lines | appends them to its files (§8.2)                   |

Each duty follows from the database alone, so it continues after a crash. It waits for files and
network between transactions, never inside one: all callers share the writer.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import structlog

from peers.backoff import delay
from peers.errors import PeerRefused, PeerUnreachable
from server.methods.base import CallSession
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
from server.util.loops import Loops, Turns, run_each
from server.util.outgoing_client import make_client
from server.util.service import Service
from server.util.wait_first import first
from server.workers.artifact_check import check_all
from server.workers.teamspace_log import TeamspaceLog
from server.workers.workq_client import ATTEMPTS, WorkqClient

log = structlog.get_logger()

PAUSE_SECONDS = 0.05
"""Seconds between two looks, at least."""
POLL_SECONDS = 1.0
"""Seconds between two looks while nothing is committed."""
LINES_PER_WRITE = 500

Duty = Callable[[], Awaitable[Exception | None]]
"""Does all that is due. Returns what failed for some of it."""


class HandoffWorker(Service):
    """Runs the duties that the settings ask for."""

    def __init__(self, settings: Settings, database: Database, node: Node, loops: Loops) -> None:
        super().__init__(loops)
        self._settings = settings
        self._database = database
        self._session = CallSession(database, node.caller, node, "acp/handoff", asyncio.Event())
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

    async def start(self) -> None:
        # Another replica may have written on since an earlier start.
        self._files.clear()
        self._journalled = 0
        # Verification runs without artifact roots too: a run with other settings may have left
        # work.
        duties: dict[str, Duty] = {"escalate": self._escalate, "verify": self._verify}
        if self._gateway is not None:
            duties["workq"] = self._transfer_workq_items
        if self._settings.teamspaces_root is not None:
            duties["journal"] = partial(self._write_journal, self._settings.teamspaces_root)
        for name, duty in duties.items():
            self.run(name, partial(self._at_commits, duty))

    async def close(self) -> None:
        if self._gateway is not None:
            await self._gateway.close()

    async def _at_commits(self, duty: Duty) -> Turns:
        """Do a duty after each commit, and at least each `POLL_SECONDS` seconds."""
        while True:
            commit = self._database.next_commit
            problem = await duty()
            yield problem
            await asyncio.sleep(POLL_SECONDS if problem else PAUSE_SECONDS)
            await first(commit, seconds=POLL_SECONDS)

    # --- handoffs -----------------------------------------------------------------------------

    async def _escalate(self) -> Exception | None:
        due = await self._database.read(partial(handoffs.due, now=self._database.clock.sure()))
        return await run_each(due, self._escalate_one)

    async def _escalate_one(self, handoff_id: str) -> None:
        if await self._session.write(partial(escalate, handoff_id=handoff_id)):
            log.warning("handoff_escalated", handoff=handoff_id)
        elif await self._session.write(partial(expire, handoff_id=handoff_id)):
            log.warning("handoff_expired", handoff=handoff_id)

    async def _verify(self) -> Exception | None:
        return await run_each(await self._database.read(handoffs.to_check), self._verify_one)

    async def _verify_one(self, handoff_id: str) -> None:
        handoff = await self._database.read(partial(handoffs.find, handoff_id=handoff_id))
        if handoff is None:
            return
        settings = self._settings
        checks = await asyncio.to_thread(
            check_all, handoff.package, settings.artifact_roots, settings.artifact_bytes
        )
        await self._session.write(partial(settle_checked, handoff_id=handoff_id, checks=checks))

    async def _transfer_workq_items(self) -> Exception | None:
        now = self._database.now()
        intents = await self._database.read(partial(handoffs.open_intents, now=now))
        return await run_each(intents, self._call_workq)

    async def _call_workq(self, intent: Intent) -> None:
        assert self._gateway is not None
        try:
            await self._gateway.call(intent)
        except PeerUnreachable as error:
            problem = f"workq {error}"
            if intent.attempts + 1 < ATTEMPTS:
                await self._postpone(intent, problem)
                return
        except PeerRefused as error:
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
        newest = await self._database.read(teams.log_newest)
        if newest == self._journalled:
            return None
        heads = await self._database.read_wide(teams.log_heads)
        problem = await run_each(heads, partial(self._write_log, root))
        if problem is None:
            self._journalled = newest
        return problem

    async def _write_log(self, root: Path, head: tuple[str, str, int]) -> None:
        """Append to the file of one log of a teamspace, up to the log's newest line."""
        team, name, newest = head
        file = self._files.get((team, name))
        if file is None:
            file = await asyncio.to_thread(TeamspaceLog, root, team, name)
            self._files[team, name] = file
        try:
            while file.last < newest:
                rows = await self._database.read_wide(
                    partial(
                        teams.log_after, team=team, name=name, seq=file.last, limit=LINES_PER_WRITE
                    )
                )
                if not rows:
                    break
                await asyncio.to_thread(file.append, rows)
        except BaseException:
            # The next try reads from the file how far this one came.
            del self._files[team, name]
            raise
