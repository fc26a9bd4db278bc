"""Keeps this node and a foreign peer equal, by whole objects (design §8).

Before anything is sent, the peer's project is read and merged. What the peer lacks is written so
that it takes it only if it has changed nothing since; otherwise it answers `skipped`, and is read,
merged and written to once more. So nothing of the peer's is replaced unmerged, and what counts as
delivered was taken by the peer, or is shown by it.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from peers.client import HttpClient
from peers.digest import Name
from peers.errors import CallError, PeerRefused
from peers.foreign_plan import Shown
from server.domain.errors import Unavailable
from server.mesh.foreign_exchange import (
    differing_contracts,
    holds_repo,
    load_entities,
    load_project,
)
from server.mesh.foreign_peer import ForeignPeer
from server.mesh.foreign_reader import ForeignReader, TakeAll
from server.mesh.foreign_writer import ForeignWriter, NotTaken
from server.node import Node
from server.store import projects
from server.store.database import Database
from server.store.peers import Peer
from server.util.loops import Turns, grouped, run_each

STEPS = (1, 1_000, 1_000_000)
"""How many microseconds after the peer's time an object is written, attempt by attempt: a peer may
store coarser times than it accepts. After these attempts the entity waits for its retry."""
FOUND_AT_ONCE = 20
"""Projects unknown here that are read in one round of following a peer."""


class SendAttempt(NamedTuple):
    """Entities that the peer did not take in one attempt, each with why: those to `retry` once it
    was read again, and those that it `refused`."""

    retry: dict[Name, str]
    refused: dict[Name, str]


class ForeignChannel:
    """Brings entities to a foreign peer (`deliver`), and follows what the peer changes (`follow`).

    `on_contact` is called when the peer answers, `on_failure` when it doesn't, and `on_missing`
    with an entity that the peer has lost, and the reason.
    """

    def __init__(
        self, client: HttpClient, database: Database, node: Node, peer: Peer, take_all: TakeAll
    ) -> None:
        self._database = database
        self._peer = peer
        self._remote = ForeignPeer(client, node, peer)
        self._reader = ForeignReader(database, peer, self._remote, take_all)
        self._writer = ForeignWriter(database, node, peer, self._remote)
        self.on_contact: Callable[[], None] = lambda: None
        self.on_failure: Callable[[Any], None] = lambda error: None
        self.on_missing: Callable[[Name, str], None] = lambda name, reason: None
        self._differing: dict[Name, str] = {}
        """The contracts that the peer lacked some of when last looked at, each with the state of
        both. Each state is sent once: some peers never show all that they hold."""
        self._passed: set[str] = set()
        """Projects that the peer lists and that are not to be taken from it."""
        self._one_at_a_time = asyncio.Lock()
        """Held from reading a project to writing it: what is merged must be what the peer held
        before."""

    # --- following the peer -------------------------------------------------------------------

    async def follow(self, seconds: float) -> Turns:
        """Read about every `seconds` what the peer holds: it sends a change only once, whether it
        arrives or not. Yields after each look; never ends."""
        while True:
            failed: list[Exception | None] = []
            try:
                await self._meet()
                held = await self._database.read(
                    partial(projects.held_by, agent_id=self._peer.agent_id)
                )
                failed.append(await run_each(held, self._look_at, stops=(CallError,)))
                failed.append(await self._find_projects())
            except CallError as error:
                self._remote.is_met = False
                self.on_failure(error)
            faults = self._reader.take_faults()
            yield grouped([*faults, *(error for error in failed if error is not None)])
            chance = random.random()  # noqa: S311 - no secret
            await asyncio.sleep(seconds * (0.5 + chance))

    async def _look_at(self, project_id: str) -> None:
        """Merge a project as the peer holds it, or send it to a peer that has lost it.

        Raises CallError when the peer doesn't answer.
        """
        try:
            async with self._one_at_a_time:
                shown = await self._reader.read(project_id)
                if shown is not None:
                    await self._reader.merge(project_id, shown)
                    await self._enqueue_differing(project_id, shown)
        except PeerRefused as refused:
            self._log_refused(project_id, refused)
        else:
            if shown is None:
                self._remote.is_met = False
                self.on_missing(
                    Name("project", project_id, project_id), "no longer holds the project"
                )
        self.on_contact()

    async def _enqueue_differing(self, project_id: str, shown: Shown) -> None:
        """Send again what the peer has lost: a peer may read its copy, take what this node sends,
        and write its own step over both."""
        differing = await self._database.read_wide(partial(differing_contracts, project_id, shown))
        before = self._differing
        others = {name: state for name, state in before.items() if name.project_id != project_id}
        self._differing = others | differing
        for name, state in differing.items():
            if before.get(name) != state:
                self.on_missing(name, "does not show all that was sent to it")

    async def _find_projects(self) -> Exception | None:
        """Take in projects in which the peer holds a repo and that it never sent. Returns what
        failed for some of them."""
        if not self._remote.knows("cacp/project/list"):
            return None
        listed = await self._remote.listed()
        self.on_contact()
        known = await self._database.read(partial(projects.known_of, ids=listed))
        unknown = [project_id for project_id in listed if project_id not in known]
        fresh = [project_id for project_id in unknown if project_id not in self._passed]
        # Those that were passed over are looked at again once all others were.
        self._passed = self._passed.intersection(unknown) if fresh else set()
        return await run_each(fresh[:FOUND_AT_ONCE], self._take_project, stops=(CallError,))

    async def _take_project(self, project_id: str) -> None:
        self._passed.add(project_id)
        try:
            async with self._one_at_a_time:
                shown = await self._reader.read(project_id)
                if shown is not None and holds_repo(self._peer, shown):
                    await self._reader.merge(project_id, shown)
                else:
                    self._reader.forget(project_id)
        except PeerRefused as refused:
            self._log_refused(project_id, refused)

    def _log_refused(self, project_id: str, refused: PeerRefused) -> None:
        self._reader.log_unmerged(Name("project", project_id, project_id), str(refused))

    # --- delivering to the peer ---------------------------------------------------------------

    async def deliver(self, names: Mapping[Name, int]) -> dict[Name, str]:
        """Bring the peer entities as they are now. Returns those that it has not taken, each with
        why. Raises CallError when it takes nothing at all."""
        try:
            await self._meet()
            untaken = await self._deliver(names)
            await self._meet()
            return untaken
        except CallError:
            self._remote.is_met = False
            raise

    async def _deliver(self, names: Mapping[Name, int]) -> dict[Name, str]:
        untaken: dict[Name, str] = {}
        for project_id in dict.fromkeys(name.project_id for name in names):
            wanted = [name for name in names if name.project_id == project_id]
            try:
                async with self._one_at_a_time:
                    reasons = await self._send_entities(project_id, wanted)
                for name, reason in reasons.items():
                    untaken[name if name in names else wanted[0]] = reason
            except PeerRefused as refused:
                untaken |= dict.fromkeys(wanted, str(refused))
            except Unavailable as fault:
                untaken |= dict.fromkeys(wanted, f"can't be sent now: {fault.message}")
        return untaken

    async def _meet(self) -> None:
        """Register with the peer at the start, and when it was away or has forgotten something."""
        async with self._one_at_a_time:
            if not self._remote.is_met:
                await self._remote.meet()

    async def _send_entities(self, project_id: str, names: list[Name]) -> dict[Name, str]:
        """Send entities of one project, in up to three attempts. Returns those that the peer has
        not taken, each with why. Nothing is sent of a deleted project: a foreign peer knows no
        deletion, and keeps its copy."""
        if await self._database.read(partial(projects.header, project_id=project_id)) is None:
            return {}
        refused: dict[Name, str] = {}
        retry = dict.fromkeys(sorted(names, key=lambda name: name.entity != "project"), "")
        for step in STEPS:
            attempt = await self._try_once(project_id, list(retry), step)
            if attempt is None:
                return {}
            refused |= attempt.refused
            retry = attempt.retry
            if not retry:
                break
        return refused | retry

    async def _try_once(self, project_id: str, names: list[Name], step: int) -> SendAttempt | None:
        """Read and merge what the peer holds, then send it what it lacks. Returns None when there
        is nothing here to send."""
        shown = await self._reader.read_part(project_id, names) if step == STEPS[0] else None
        shown = shown or await self._reader.read(project_id)
        unmerged = {} if shown is None else await self._reader.merge(project_id, shown)
        load = (
            partial(load_project, self._peer, project_id)
            if shown is None
            else partial(load_entities, self._peer, project_id, names)
        )
        local = await self._database.read_wide(load)
        if local is None:
            return None
        attempt = SendAttempt({}, {})
        for name in names:
            try:
                is_whole = await self._writer.send(name, local, shown, unmerged, step)
            except NotTaken as problem:
                is_whole = shown is None
                failed = [*(names if is_whole else [name]), *problem.crossed]
                reasons = dict.fromkeys(failed, str(problem))
                if problem.again:
                    attempt.retry.update(reasons)
                else:
                    attempt.refused.update(reasons)
            if is_whole:
                # The whole project was sent, or refused, and all the other entities with it.
                attempt.refused.update({name: unmerged[name] for name in names if name in unmerged})
                break
        return attempt
