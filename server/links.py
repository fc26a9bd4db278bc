"""How entities reach a peer: in batches with facts, or whole and one by one (design §6)."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import orjson
import structlog

from peers.client import CallError, Client, Refused, result_of
from peers.digest import Name
from peers.foreign import HEADER, Exchange
from schemas.sync import PeerContract
from server.domain.errors import Refusal
from server.methods.base import Node
from server.notices import Notices
from server.outbox import Composer
from server.store import contracts, packets, peers, projects
from server.store.database import Database, Transaction
from server.store.peers import Peer

log = structlog.get_logger()

BATCH_MESSAGES = 100
"""As many as a node takes by default; a peer that takes fewer says so."""
BATCH_BYTES = 512 * 1024
MADE_AT_ONCE = 100
TOO_LARGE = 413
UNAVAILABLE = -32000
"""The peer's own fault: it may take the same message later."""

Wanted = list[tuple[Name, int | None]]
Making = asyncio.Task[tuple[list[tuple[Name, bytes]], Wanted]]
Heard = Callable[[], None]
Lost = Callable[[CallError], None]


class MeshLink:
    """To a node of our own make."""

    def __init__(
        self,
        client: Client,
        node: Node,
        peer: Peer,
        composer: Composer,
        rejoin: Callable[[Peer], Awaitable[None]],
    ) -> None:
        self._client = client
        self._node = node
        self._peer = peer
        self._composer = composer
        self._rejoin = rejoin
        self._notices = Notices()
        self._batch_messages = BATCH_MESSAGES
        self.heard: Heard = lambda: None
        self.lost: Lost = lambda error: None

    async def call(self, method: str, **params: Any) -> Any:
        """The result of a call in this node's name. Raises CallError, which also counts."""
        try:
            result = await self.ask(method, **params)
        except CallError as error:
            self.lost(error)
            raise
        self.heard()
        return result

    async def ask(self, method: str, **params: Any) -> Any:
        """The same, without counting for whether the peer is up."""
        given = params | {"source_agent": self._node.agent_id}
        try:
            return await self._client.call(
                self._peer.endpoint, method, given, key=self._peer.secret
            )
        except CallError as error:
            await self._renew_keys(error)
            raise

    async def deliver(self, names: Mapping[Name, int]) -> None:
        """Send entities, each as it was after a change or later; returns once the peer has taken or
        refused each. Raises CallError."""
        missing = await self._send(names)
        if missing:
            # The peer lacks the project or a claim: these first, then what needed them.
            wanted = {Name("project", name.project_id, name.project_id) for name in missing}
            await self._send(dict.fromkeys(sorted(wanted)))
            for name in await self._send({name: names[name] for name in missing}):
                log.info("peer_lacks_project", peer=self._peer.agent_id, project=name.project_id)

    async def _send(self, names: Mapping[Name, int | None]) -> list[Name]:
        """Those of the entities that the peer can't take before it has their project.

        While it takes a batch, the next is made.
        """
        missing: list[Name] = []
        making: Making | None = asyncio.create_task(self._make(list(names.items())))
        while making is not None:
            made, rest = await making
            making = asyncio.create_task(self._make(rest)) if rest else None
            try:
                for batch in _batches(made, self._batch_messages):
                    missing += await self._send_batch(batch)
            except BaseException:
                if making is not None:
                    making.cancel()
                raise
        return missing

    async def _make(self, names: Wanted) -> tuple[list[tuple[Name, bytes]], Wanted]:
        """Messages of the first of these entities, and those that are left."""
        found = await self._composer.messages(dict(names[:MADE_AT_ONCE]))
        return [(name, text) for name, text in found if text is not None], names[len(found) :]

    async def _send_batch(self, batch: list[tuple[Name, bytes]]) -> list[Name]:
        numbered = (_request(number, message) for number, (_, message) in enumerate(batch))
        body = b"[" + b",".join(numbered) + b"]"
        try:
            answers = await self._client.post(self._peer.endpoint, body, key=self._peer.secret)
        except Refused as error:
            if error.status == TOO_LARGE and len(batch) > 1:
                self._batch_messages = len(batch) // 2
                return [
                    name
                    for half in _batches(batch, self._batch_messages)
                    for name in await self._send_batch(half)
                ]
            await self._renew_keys(error)
            raise
        return self._missing(batch, answers)

    def _missing(self, batch: list[tuple[Name, bytes]], answers: Any) -> list[Name]:
        if not isinstance(answers, list) or len(answers) != len(batch):
            raise Refused("doesn't answer each member of a batch", status=200)
        missing = []
        for answer in answers:
            number = answer.get("id") if isinstance(answer, dict) else None
            if not isinstance(number, int) or not 0 <= number < len(batch):
                raise Refused("answers what was not asked", status=200)
            try:
                result_of(answer)
            except Refused as refused:
                if refused.code == UNAVAILABLE:
                    raise
                if refused.data.get("kind") in ("project", "claim"):
                    missing.append(batch[number][0])
                else:
                    self._name(refused)
        return missing

    def _name(self, refused: Refused) -> None:
        cause = (refused.code, refused.data.get("reason"))
        reason = str(refused)[:200]
        self._notices.refused("peer_refuses", cause, peer=self._peer.agent_id, reason=reason)

    async def _renew_keys(self, error: CallError) -> None:
        if isinstance(error, Refused) and error.status == 401:
            try:
                await self._rejoin(self._peer)
            except (CallError, Refusal, ValueError) as failed:
                log.debug("rejoin_failed", peer=self._peer.agent_id, error=str(failed))


def _request(number: int, message: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,' % number + message[1:]


def _batches(made: list[tuple[Name, bytes]], most: int) -> Iterator[list[tuple[Name, bytes]]]:
    batch: list[tuple[Name, bytes]] = []
    size = 0
    for one in made:
        if batch and (len(batch) == most or size + len(one[1]) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one[1])
    if batch:
        yield batch


class ForeignLink:
    """To a peer of another make: whole objects, one for each request, as it writes to us."""

    def __init__(
        self,
        client: Client,
        database: Database,
        node: Node,
        peer: Peer,
        apply: Callable[[Peer, dict[str, Any]], Awaitable[Any]],
    ) -> None:
        self._client = client
        self._database = database
        self._node = node
        self._peer = peer
        self._apply = apply
        self.heard: Heard = lambda: None
        self.lost: Lost = lambda error: None
        self._announced = False
        self._notices = Notices()

    async def deliver(self, names: Iterable[Name]) -> None:
        """Send entities one by one. Raises CallError when the peer doesn't answer."""
        if not self._announced:
            await self._announce()
        pushed: dict[str, bool] = {}
        for name in names:
            project_id = name.project_id
            if pushed.get(project_id) or (name.entity != "project" and await self._send(name)):
                continue
            if project_id not in pushed:
                pushed[project_id] = await self._push_project(project_id)

    async def _announce(self) -> None:
        me = {
            "agentId": self._node.agent_id,
            "endpoint": self._node.url,
            "repoName": self._node.repo,
        }
        try:
            await self._client.call(self._peer.endpoint, "cacp/peer/announce", me)
        except Refused as refused:
            log.debug("announce_refused", peer=self._peer.agent_id, error=str(refused))
        self._announced = True

    async def _send(self, name: Name) -> bool:
        """Whether the peer has taken a contract or a packet."""
        if name.entity == "contract":
            return await self._send_contract(name)
        found = self._database.read(partial(_foreign_packet, name))
        if found is None:
            return True
        params = {"projectId": name.project_id, "packet": as_foreign(found)}
        return await self._taken("cacp/context/sync", params)

    async def _send_contract(self, name: Name) -> bool:
        """Send it again for as long as the peer changes it while it is on its way."""
        crossed = True
        while crossed:
            before = self._database.read(partial(_exchanged, self._peer, name.entity_id))
            found = self._database.read(partial(_foreign_contract, name))
            if found is None:
                return True
            params = {"projectId": name.project_id, "contract": as_foreign(found)}
            if not await self._taken("cacp/contract/sync", params):
                return False
            crossed = await self._database.write(partial(_sent, self._peer, name, found, before))
        return True

    async def _push_project(self, project_id: str) -> bool:
        """Whether the peer has taken a whole project; sent again when its header has changed on
        the way. Its own contracts are part of it: what it changed of one meanwhile is sent too."""
        while True:
            await self._merge_theirs(project_id)
            read = partial(_foreign_project, self._peer, project_id)
            ours, before = await self._database.read_wide(read)
            if ours is None:
                return True
            if not await self._taken("cacp/project/sync", {"project": as_foreign(ours)}):
                return False
            for contract in ours["contracts"]:
                name = Name("contract", project_id, contract["contract_id"])
                was = before.get(name.entity_id)
                if await self._database.write(partial(_sent, self._peer, name, contract, was)):
                    await self._send_contract(name)
            if not await self._database.write(partial(_sent_header, self._peer, ours)):
                return True

    async def _merge_theirs(self, project_id: str) -> None:
        """Read and merge the peer's project before ours replaces it whole (design §6)."""
        try:
            theirs = await self._client.call(
                self._peer.endpoint, "cacp/project/get", {"projectId": project_id}
            )
            params = {"project": theirs, "source_agent": self._peer.agent_id}
            await self._apply(self._peer, {"method": "cacp/project/sync", "params": params})
        except Refused:
            pass
        except (Refusal, ValueError) as error:
            log.info("peer_project_not_merged", peer=self._peer.agent_id, reason=str(error)[:200])

    async def _taken(self, method: str, params: dict[str, Any]) -> bool:
        """Whether the peer says that it took what was sent; a refusal may be a result."""
        given = params | {"source_agent": self._node.agent_id}
        try:
            result = await self._client.call(self._peer.endpoint, method, given)
        except Refused as refused:
            reason = str(refused)[:200]
            self._notices.refused(
                "peer_refuses", (method, refused.code), peer=self._peer.agent_id, reason=reason
            )
            return False
        status = result.get("status") if isinstance(result, dict) else None
        return status not in ("skipped", "error")


def as_foreign(value: Any) -> Any:
    """An object as peers of other makes write it: no offsets, "" for an absent text, and a
    repo's agent also as `assigned_agent`. What is in `content` stays as it is."""
    if isinstance(value, list):
        return [as_foreign(item) for item in value]
    if not isinstance(value, dict):
        return value
    written: dict[str, Any] = {}
    for name, member in value.items():
        if name.endswith("_at") or name == "timestamp":
            written[name] = member.removesuffix("+00:00") if member else member
        elif name == "content":
            written[name] = member
        else:
            written[name] = "" if member is None else as_foreign(member)
    if "agent_endpoint" in value:
        written["assigned_agent"] = written.get("agent_id")
    return written


def _foreign_contract(name: Name, db: sqlite3.Connection) -> dict[str, Any] | None:
    found = contracts.document(db, name.project_id, name.entity_id, history=True)
    return None if found is None else orjson.loads(orjson.dumps(found))


def _foreign_packet(name: Name, db: sqlite3.Connection) -> dict[str, Any] | None:
    found = packets.signed(db, name.project_id, name.entity_id)
    return None if found is None else orjson.loads(found[0])


def _foreign_project(
    peer: Peer, project_id: str, db: sqlite3.Connection
) -> tuple[dict[str, Any] | None, dict[str, str | None]]:
    """A project, and what was exchanged with the peer about each of its contracts."""
    header = projects.header(db, project_id)
    if header is None:
        return None, {}
    found = orjson.loads(orjson.dumps(projects.whole(db, header)))
    ids = [one["contract_id"] for one in found["contracts"]]
    return found, {one: peers.exchanged(db, peer.agent_id, one) for one in ids}


def _exchanged(peer: Peer, entity_id: str, db: sqlite3.Connection) -> str | None:
    return peers.exchanged(db, peer.agent_id, entity_id)


def _sent(
    peer: Peer, name: Name, document: Any, before: str | None, transaction: Transaction
) -> bool:
    """Remember what the peer has confirmed: later differences are its own doing. `before` is what
    was exchanged when it was sent.

    True when the peer has changed the contract meanwhile. Then it is not known which of the two
    came last there: what it said stays the last word, and is to be compared with ours once more.
    """
    db = transaction.connection
    kept = peers.exchanged(db, peer.agent_id, name.entity_id)
    exchange = Exchange.model_validate_json(kept) if kept is not None else Exchange()
    said = PeerContract.model_validate(document)
    crossed = kept != before and said != _held(name, db)
    after = exchange.after_crossing(said) if crossed else exchange.after_sending(said)
    peers.put_exchanged(db, peer.agent_id, name.entity_id, after.model_dump_json())
    return crossed


def _held(name: Name, db: sqlite3.Connection) -> PeerContract | None:
    found = _foreign_contract(name, db)
    return None if found is None else PeerContract.model_validate(found)


def _sent_header(peer: Peer, project: dict[str, Any], transaction: Transaction) -> bool:
    """The same for the header of a project; True when it is another by now."""
    db = transaction.connection
    said = {member: project[member] for member in HEADER}
    peers.put_exchanged(db, peer.agent_id, project["project_id"], orjson.dumps(said).decode())
    header = projects.header(db, project["project_id"])
    return header is not None and any(getattr(header, name) != said[name] for name in HEADER)
