"""Writes to a foreign peer what it lacks (design §8)."""

from collections.abc import Mapping, Sequence
from functools import partial

from pydantic import ValidationError

from peers.digest import Name
from peers.errors import PeerRefused
from peers.foreign import HEADER, says_same
from peers.foreign_plan import (
    Document,
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
from server.domain.errors import Refusal
from server.mesh.foreign_exchange import (
    LocalProject,
    load_project,
    local_ids,
    note_sending,
    note_sent,
    note_sent_project,
    written_for,
)
from server.mesh.foreign_peer import ForeignPeer
from server.mesh.foreign_reader import REASON_MAX, unmergeable
from server.node import Node
from server.store.database import Database
from server.store.peers import Peer

CHANGED_MEANWHILE = "changes it at the same time"


class NotTaken(Exception):
    """The peer answers, but has not taken an entity.

    With `again`, another try may succeed once the peer was read again; `crossed` is what to send
    besides. `code` is that of the JSON-RPC error, 0 if there is none.
    """

    def __init__(
        self, reason: str, *, again: bool, crossed: Sequence[Name] = (), code: int = 0
    ) -> None:
        super().__init__(reason)
        self.again = again
        self.crossed = crossed
        self.code = code


class ForeignWriter:
    """Sends one entity at a time, as an object that the peer takes only if it has changed nothing
    since it showed its own. Each method raises NotTaken, and CallError."""

    def __init__(self, database: Database, node: Node, peer: Peer, remote: ForeignPeer) -> None:
        self._database = database
        self._node = node
        self._peer = peer
        self._remote = remote

    async def send(
        self,
        name: Name,
        local: LocalProject,
        shown: Shown | None,
        unmerged: Mapping[Name, str],
        step: int,
    ) -> bool:
        """Send an entity. `shown` is the project as the peer showed it, None if it has none;
        `unmerged` is what can't be merged of it, and why; `step` is how many microseconds after the
        peer's time an object is written.

        Returns whether the whole project was sent.
        """
        if name in unmerged:
            raise NotTaken(unmerged[name], again=False)
        if shown is None:
            await self._send_whole(local, as_foreign(local.project))
            return True
        if name.entity == "project":
            return await self._send_project(local, shown, unmerged, step)
        if name.entity == "contract" and name.entity_id in local.contracts:
            await self._send_contract(name, local, shown, step)
        elif name.entity_id in local.packets and name.entity_id not in shown.packets:
            packet = written_for(local.packets[name.entity_id], local, shown)
            params = {"projectId": name.project_id, "packet": packet}
            await self._call("cacp/context/sync", params)
        return False

    async def _send_contract(
        self, name: Name, local: LocalProject, shown: Shown, step: int
    ) -> None:
        document, peer_document = (
            local.contracts[name.entity_id],
            shown.contracts.get(name.entity_id),
        )
        if peer_document is not None and _is_same(
            document, with_ids(peer_document, local_ids(local, shown))
        ):
            return
        written = over(written_for(document, local, shown), peer_document, step)
        params = {"projectId": name.project_id, "contract": written}
        if peer_document is not None:
            await self._database.write(partial(note_sending, self._peer, name, local, written))
        await self._call("cacp/contract/sync", params)
        if await self._database.write(partial(note_sent, self._peer, name, local, written)):
            raise NotTaken(CHANGED_MEANWHILE, again=True)

    async def _send_project(
        self, local: LocalProject, shown: Shown, unmerged: Mapping[Name, str], step: int
    ) -> bool:
        """Send the repos and claims that the peer lacks; a header that differs goes with the whole
        project, without what could not be merged. Returns whether the whole project was sent."""
        same = all(local.project[member] == shown.project.get(member) for member in HEADER)
        if same and await self._send_claims(local, shown):
            return False
        whole = await self._database.read_wide(
            partial(load_project, self._peer, local.project["project_id"])
        )
        if whole is not None:
            kept = {name.entity_id for name in unmerged if name.entity == "contract"}
            written = written_for(whole.project, whole, shown)
            sent = {id: document for id, document in whole.contracts.items() if id not in kept}
            whole = whole._replace(contracts=sent)
            await self._send_whole(whole, whole_over(written, shown, step, kept))
        return True

    async def _send_claims(self, local: LocalProject, shown: Shown) -> bool:
        """Returns False when the peer has no cacp/repo/sync, which the specification names but
        once."""
        for repo in local.project["repos"]:
            peer_repo = shown.repos.get(repo["name"])
            if not lacks_claim(repo, peer_repo):
                continue
            written = repo_over(written_for(repo, local, shown), peer_repo)
            params = {"projectId": local.project["project_id"], "repo": written}
            try:
                await self._call("cacp/repo/sync", params)
            except NotTaken as problem:
                if problem.code == ErrorCode.METHOD_NOT_FOUND:
                    return False
                raise
        return True

    async def _send_whole(self, local: LocalProject, written: Document) -> None:
        await self._call("cacp/project/sync", {"project": written})
        crossed = await self._database.write(partial(note_sent_project, self._peer, local, written))
        if crossed:
            raise NotTaken(CHANGED_MEANWHILE, again=True, crossed=crossed)

    async def _call(self, method: str, params: Document) -> None:
        """Raises NotTaken unless the result says that the peer took what was sent."""
        params = params | {"source_agent": self._node.agent_id}
        try:
            result = await self._remote.call(method, params)
        except PeerRefused as refused:
            reason = str(refused)[:REASON_MAX]
            raise NotTaken(reason, again=False, code=refused.code) from None
        status = result.get("status") if isinstance(result, dict) else None
        if status in ("skipped", "error"):
            reason = str(result.get("reason") or "")[:REASON_MAX]
            raise NotTaken(f"answers {method} with {status}: {reason}", again=True)


def _is_same(document: Document, peer_document: Document) -> bool:
    """Whether the peer shows a contract as it is here. Raises NotTaken when what it shows can't be
    compared, and so was not merged."""
    try:
        shown = PeerContract.model_validate(peer_document)
        return says_same(PeerContract.model_validate(document), shown, digest)
    except (ValidationError, Refusal) as error:
        raise NotTaken(unmergeable(error), again=False) from None
