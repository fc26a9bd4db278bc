"""How entities reach a foreign peer: as whole objects, each in a request of its own (design §8).

The peer's project is read and merged first. What it lacks is sent as `peers.foreign_plan` writes
it, so that the peer takes it only if it has changed nothing since. Where it has, it says `skipped`,
and is read, merged and written to once more. So nothing of it is replaced unmerged, and what counts
as delivered was taken, or is shown.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import structlog
from pydantic import ValidationError

from peers.client import Client
from peers.digest import Name
from peers.errors import CallError, Refused
from peers.foreign import HEADER, says_same
from peers.foreign_plan import (
    Shown,
    as_foreign,
    lacks_claim,
    over,
    repo_over,
    whole_over,
    with_ids,
)
from schemas.errors import ErrorCode
from schemas.sync import PeerContract
from server.domain.canonical import digest
from server.domain.errors import Refusal, Unavailable
from server.domain.invalid import invalid_input
from server.mesh.foreign_exchange import (
    Ours,
    held,
    holds_repo,
    lacking,
    may_read_parts,
    our_ids,
    sending,
    sent,
    sent_whole,
    unheard,
    whole_held,
    written_for,
)
from server.mesh.foreign_peer import ForeignPeer
from server.node import Node
from server.rpc.sync_batch import Message, is_fault
from server.store import projects
from server.store.database import Database
from server.store.peers import Peer
from server.util.log_once import LogOnce
from server.util.loops import Turns, each, together

log = structlog.get_logger()

STEPS = (1, 1_000, 1_000_000)
"""Microseconds that an object is written ahead of what the peer showed, try by try: a peer may keep
coarser times than it takes. So many tries are made at once; then it waits its turn."""
MERGED_AT_ONCE = 100
ONE_BY_ONE_MAX = 8
"""Entities that are read one by one; more of a project are read with the whole of it."""
FOUND_AT_ONCE = 20
"""Projects that are unknown here and read in one round of following a peer."""
NAMED_AT_ONCE = 20
SAID_MAX = 200

Document = dict[str, Any]
TakeAll = Callable[[Peer, list[Message]], Awaitable[Sequence[object]]]


class NotTaken(Exception):
    """The peer answers, but has not taken an entity. `again`: to read it anew may help; then
    `crossed` is what to send besides. `code` is that of its JSON-RPC error, if it is one."""

    def __init__(
        self, reason: str, *, again: bool, crossed: Sequence[Name] = (), code: int = 0
    ) -> None:
        super().__init__(reason)
        self.again = again
        self.crossed = crossed
        self.code = code


class ForeignChannel:
    """To a foreign peer."""

    def __init__(
        self, client: Client, database: Database, node: Node, peer: Peer, take_all: TakeAll
    ) -> None:
        self._at = ForeignPeer(client, node, peer)
        self._database = database
        self._node = node
        self._peer = peer
        self._take_all = take_all
        self.heard: Callable[[], None] = lambda: None
        self.lost: Callable[[Any], None] = lambda error: None
        self.owes: Callable[[Name, str], None] = lambda name, reason: None
        """Told of an entity that the peer had and has no more, and why it is to be sent."""
        self._met = False
        self._shown: dict[str, Shown] = {}
        """The repos of each project as the peer showed them last, to read its contracts alone."""
        self._told: dict[Name, str] = {}
        """What both said of a contract when the peer was last found to lack some of it. It may show
        the same again: there are peers that can't show all, and once is enough for these."""
        self._passed: set[str] = set()
        """Projects that the peer lists, and that are none to take from it."""
        self._failed: list[Exception] = []
        """What could not be merged, by a fault of this node, since the last look."""
        self._notices = LogOnce()
        self._one_at_a_time = asyncio.Lock()
        """What is merged must be what the peer holds after what was sent, not before."""

    async def follow(self, seconds: float) -> Turns:
        """Read now and then what the peer holds, for it tells a change but once, whether it is
        heard or not. Yields after each look; never ends."""
        while True:
            found: list[Exception | None] = []
            try:
                await self._meet()
                held = self._database.read(partial(projects.held_by, agent_id=self._peer.agent_id))
                found.append(await each(held, self._look, stops=(CallError,)))
                found.append(await self._find())
            except CallError as error:
                self._met = False
                self.lost(error)
            failed, self._failed = self._failed, []
            yield together([*failed, *(one for one in found if one is not None)])
            chance = random.random()  # noqa: S311 - no secret
            await asyncio.sleep(seconds * (0.5 + chance))

    async def _look(self, project_id: str) -> None:
        """Merge a project as the peer holds it, or have it sent to a peer that holds it no more.

        Raises CallError when it answers nothing at all.
        """
        try:
            async with self._one_at_a_time:
                shown = await self._read(project_id)
                if shown is not None:
                    await self._merge(project_id, shown)
                    await self._tell_lacking(project_id, shown)
        except Refused as refused:
            self._name_refused(project_id, refused)
        else:
            if shown is None:
                self._met = False
                self.owes(Name("project", project_id, project_id), "holds the project no more")
        self.heard()

    async def _tell_lacking(self, project_id: str, shown: Shown) -> None:
        """Have sent what the peer had and has lost: one that reads its copy, takes what this node
        sends, and writes its own step over both, tells that step and no more."""
        found = await self._database.read_wide(partial(lacking, project_id, shown))
        before = self._told
        others = {name: told for name, told in before.items() if name.project_id != project_id}
        self._told = others | found
        for name, told in found.items():
            if before.get(name) != told:
                self.owes(name, "shows not all that it was sent")

    async def _find(self) -> Exception | None:
        """Take in projects in which the peer holds a repo, and of which it never told this node;
        what failed for some of them."""
        if not self._at.knows("cacp/project/list"):
            return None
        listed = await self._at.listed()
        self.heard()
        known = self._database.read(partial(projects.known_of, ids=listed))
        unknown = [one for one in listed if one not in known]
        fresh = [one for one in unknown if one not in self._passed]
        # Those that were passed over are looked at again once all others were.
        self._passed = self._passed.intersection(unknown) if fresh else set()
        return await each(fresh[:FOUND_AT_ONCE], self._take_found, stops=(CallError,))

    async def _take_found(self, project_id: str) -> None:
        self._passed.add(project_id)
        try:
            async with self._one_at_a_time:
                shown = await self._read(project_id)
                if shown is not None and holds_repo(self._peer, shown):
                    await self._merge(project_id, shown)
                else:
                    self._shown.pop(project_id, None)
        except Refused as refused:
            self._name_refused(project_id, refused)

    def _name_refused(self, project_id: str, refused: Refused) -> None:
        self._name_unmerged(Name("project", project_id, project_id), str(refused))

    def _name_unmerged(self, name: Name, reason: str) -> None:
        self._notices.refused(
            "peer_not_merged",
            (name, reason),
            peer=self._peer.agent_id,
            project=name.project_id,
            entity=name.entity,
            id=name.entity_id,
            reason=reason,
        )

    async def deliver(self, names: Mapping[Name, int]) -> dict[Name, str]:
        """Bring the peer entities as they are now; those that it has not taken, each with why.

        Raises CallError when it takes nothing at all.
        """
        try:
            await self._meet()
            untaken = await self._deliver(names)
            await self._meet()
            return untaken
        except CallError:
            self._met = False
            raise

    async def _deliver(self, names: Mapping[Name, int]) -> dict[Name, str]:
        untaken: dict[Name, str] = {}
        for project_id in dict.fromkeys(name.project_id for name in names):
            wanted = [name for name in names if name.project_id == project_id]
            try:
                async with self._one_at_a_time:
                    found = await self._bring(project_id, wanted)
                for name, reason in found.items():
                    untaken[name if name in names else wanted[0]] = reason
            except Refused as refused:
                untaken |= dict.fromkeys(wanted, str(refused))
            except Unavailable as fault:
                untaken |= dict.fromkeys(wanted, f"can't be told now: {fault.message}")
        return untaken

    async def _meet(self) -> None:
        """At the start, and whenever it was away or has forgotten something."""
        async with self._one_at_a_time:
            if not self._met:
                await self._at.meet()
                self._met = True

    async def _bring(self, project_id: str, names: list[Name]) -> dict[Name, str]:
        """Bring it entities of one project, reading what it holds before each try."""
        untaken: dict[Name, str] = {}
        left = dict.fromkeys(sorted(names, key=lambda name: name.entity != "project"), "")
        for step in STEPS:
            shown = await self._read_part(project_id, left) if step == STEPS[0] else None
            shown = shown or await self._read(project_id)
            unmerged = {} if shown is None else await self._merge(project_id, shown)
            tried, left = list(left), {}
            read = (
                partial(whole_held, self._peer, project_id)
                if shown is None
                else partial(held, self._peer, project_id, tried)
            )
            ours = await self._database.read_wide(read)
            if ours is None:
                return {}
            for name in tried:
                try:
                    whole = await self._send(name, ours, shown, unmerged, step)
                except NotTaken as why:
                    those = tried if shown is None else [name]
                    kept = left if why.again else untaken
                    kept |= dict.fromkeys([*those, *why.crossed], str(why))
                    whole = shown is None
                if whole:
                    # All that is tried goes with it, or stays.
                    untaken |= {one: unmerged[one] for one in tried if one in unmerged}
                    break
            if not left:
                break
        return untaken | left

    # --- what it holds ------------------------------------------------------------------------

    async def _read(self, project_id: str) -> Shown | None:
        """The project as the peer holds it; None when it has none. Raises CallError."""
        shown = await self._at.project(project_id)
        had = self._shown.pop(project_id, None)
        if shown is not None:
            self._shown[project_id] = shown.part({})
        elif had is not None:
            # What has forgotten a project may have forgotten this node as well.
            self._met = False
        return shown

    async def _read_part(self, project_id: str, names: Collection[Name]) -> Shown | None:
        """The contracts among a few entities, as the peer holds them; None where the whole project
        is to be read. Raises CallError."""
        shown = self._shown.get(project_id)
        if (
            shown is None
            or len(names) > ONE_BY_ONE_MAX
            or any(name.entity == "project" for name in names)
            or not self._at.knows("cacp/contract/get")
            or not self._database.read(partial(may_read_parts, self._peer, project_id, shown))
        ):
            return None
        found: dict[str, Document] = {}
        for name in names:
            if name.entity != "contract":
                continue
            try:
                contract = await self._at.contract(project_id, name.entity_id)
            except Refused:
                return None
            if contract is not None:
                found[name.entity_id] = contract
        return shown.part(found)

    async def _merge(self, project_id: str, shown: Shown) -> dict[Name, str]:
        """Take in what the peer has said since, as if it had sent it; what could not be taken, and
        why, which stops what would replace it."""
        new = await self._database.read_wide(partial(unheard, self._peer, project_id, shown))
        outcomes: list[object] = []
        messages = list(new.values())
        for start in range(0, len(messages), MERGED_AT_ONCE):
            page = messages[start : start + MERGED_AT_ONCE]
            outcomes += await self._take_all(self._peer, page)
        self._failed += [one for one in outcomes if isinstance(one, Exception) and is_fault(one)]
        unmerged = {
            name: f"shows what can't be merged here: {_said(outcome)}"
            for name, outcome in zip(new, outcomes, strict=True)
            if isinstance(outcome, Exception)
        }
        for name, reason in islice(unmerged.items(), NAMED_AT_ONCE):
            self._name_unmerged(name, reason)
        return unmerged

    # --- what is sent -------------------------------------------------------------------------

    async def _send(
        self, name: Name, ours: Ours, shown: Shown | None, unmerged: dict[Name, str], step: int
    ) -> bool:
        """Whether the whole project went. Raises NotTaken, and CallError."""
        if name in unmerged:
            raise NotTaken(unmerged[name], again=False)
        if shown is None:
            await self._send_whole(ours, as_foreign(ours.project))
            return True
        if name.entity == "project":
            return await self._send_project(ours, shown, unmerged, step)
        if name.entity == "contract" and name.entity_id in ours.contracts:
            await self._send_contract(name, ours, shown, step)
        elif name.entity_id in ours.packets and name.entity_id not in shown.packets:
            packet = written_for(ours.packets[name.entity_id], ours, shown)
            params = {"projectId": name.project_id, "packet": packet}
            await self._take("cacp/context/sync", params)
        return False

    async def _send_contract(self, name: Name, ours: Ours, shown: Shown, step: int) -> None:
        document, theirs = ours.contracts[name.entity_id], shown.contracts.get(name.entity_id)
        if theirs is not None and _shows(document, with_ids(theirs, our_ids(ours, shown))):
            return
        written = over(written_for(document, ours, shown), theirs, step)
        params = {"projectId": name.project_id, "contract": written}
        if theirs is not None:
            await self._database.write(partial(sending, self._peer, name, ours, written))
        await self._take("cacp/contract/sync", params)
        if await self._database.write(partial(sent, self._peer, name, ours, written)):
            raise NotTaken("changes it at the same time", again=True)

    async def _send_project(
        self, ours: Ours, shown: Shown, unmerged: Mapping[Name, str], step: int
    ) -> bool:
        """Its header, by the whole project, in which what could not be merged stays as it is;
        otherwise the repos and claims that it lacks. Whether the whole project went."""
        same = all(ours.project[member] == shown.project.get(member) for member in HEADER)
        if same and await self._send_claims(ours, shown):
            return False
        whole = await self._database.read_wide(
            partial(whole_held, self._peer, ours.project["project_id"])
        )
        if whole is not None:
            kept = {name.entity_id for name in unmerged if name.entity == "contract"}
            written = written_for(whole.project, whole, shown)
            told = {one: document for one, document in whole.contracts.items() if one not in kept}
            whole = whole._replace(contracts=told)
            await self._send_whole(whole, whole_over(written, shown, step, kept))
        return True

    async def _send_claims(self, ours: Ours, shown: Shown) -> bool:
        """False when it knows no cacp/repo/sync, which the specification names but once."""
        for repo in ours.project["repos"]:
            theirs = shown.repos.get(repo["name"])
            if not lacks_claim(repo, theirs):
                continue
            written = repo_over(written_for(repo, ours, shown), theirs)
            params = {"projectId": ours.project["project_id"], "repo": written}
            try:
                await self._take("cacp/repo/sync", params)
            except NotTaken as why:
                if why.code == ErrorCode.METHOD_NOT_FOUND:
                    return False
                raise
        return True

    async def _send_whole(self, ours: Ours, written: Document) -> None:
        await self._take("cacp/project/sync", {"project": written})
        crossed = await self._database.write(partial(sent_whole, self._peer, ours, written))
        if crossed:
            raise NotTaken("changes it at the same time", again=True, crossed=crossed)

    async def _take(self, method: str, params: Document) -> None:
        """Raises NotTaken unless the peer says that it took what was sent; a refusal may be a
        result."""
        given = params | {"source_agent": self._node.agent_id}
        try:
            result = await self._at.call(method, given)
        except Refused as refused:
            said = str(refused)[:SAID_MAX]
            raise NotTaken(said, again=False, code=refused.code) from None
        status = result.get("status") if isinstance(result, dict) else None
        if status in ("skipped", "error"):
            why = str(result.get("reason") or "")[:SAID_MAX]
            raise NotTaken(f"answers {method} with {status}: {why}", again=True)


def _shows(held: Document, theirs: Document) -> bool:
    """Whether the peer shows a contract as we hold it. Raises NotTaken when it shows what can't be
    compared, and so was not merged."""
    try:
        said = PeerContract.model_validate(theirs)
        return says_same(PeerContract.model_validate(held), said, digest)
    except (ValidationError, Refusal) as error:
        why = f"shows what can't be merged here: {_said(error)}"
        raise NotTaken(why, again=False) from None


def _said(problem: Exception) -> str:
    if isinstance(problem, ValidationError):
        problem = invalid_input(problem)
    return (problem.message if isinstance(problem, Refusal) else str(problem))[:SAID_MAX]
