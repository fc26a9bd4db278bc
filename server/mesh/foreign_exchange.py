"""What this node holds of a foreign peer's projects, and what was exchanged with it (design §8)."""

import sqlite3
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from peers.digest import Name
from peers.foreign import HEADER, Exchange, differing, says_same
from peers.foreign_plan import Shown, as_foreign, with_ids
from schemas.sync import PeerContract
from server.domain.agents import same_agent
from server.domain.canonical import digest
from server.domain.errors import Refusal
from server.rpc.sync_batch import Message
from server.store import context_packets, contracts, peers, projects
from server.store.database import Transaction
from server.store.peers import Peer

Document = dict[str, Any]


class Ours(NamedTuple):
    """What this node holds of a project, with its own ids, and what was exchanged with the peer
    about its contracts."""

    project: Document
    contracts: dict[str, Document]
    packets: dict[str, Document]
    exchanged: dict[str, str | None]


def written_for(document: Document, ours: Ours, shown: Shown) -> Document:
    """A document of ours as the peer writes it, with its ids for the repos that it knows."""
    ids = {repo["repo_id"]: shown.ids.get(repo["name"]) for repo in ours.project["repos"]}
    known = {one: theirs for one, theirs in ids.items() if theirs is not None}
    written: Document = as_foreign(with_ids(document, known))
    return written


def our_ids(ours: Ours, shown: Shown) -> dict[str, str]:
    return shown.ids_among({repo["name"]: repo["repo_id"] for repo in ours.project["repos"]})


def held(peer: Peer, project_id: str, names: list[Name], db: sqlite3.Connection) -> Ours | None:
    """What this node holds of some entities of a project; None when it has no such project."""
    header = projects.header(db, project_id)
    if header is None:
        return None
    found: dict[str, dict[str, Document]] = {"contract": {}, "context": {}}
    for name in names:
        document: object = None
        if name.entity == "contract":
            document = contracts.document(db, project_id, name.entity_id, history=True)
        elif name.entity == "context" and (
            row := context_packets.signed(db, project_id, name.entity_id)
        ):
            document = orjson.Fragment(row[0])
        if document is not None:
            found[name.entity][name.entity_id] = _parsed(document)
    project = _parsed(projects.bare(header, projects.repos(db, project_id)))
    return _with_exchanged(peer, project, found["contract"], found["context"], db)


def whole_held(peer: Peer, project_id: str, db: sqlite3.Connection) -> Ours | None:
    """The same of all that is in a project."""
    header = projects.header(db, project_id)
    if header is None:
        return None
    project = _parsed(projects.whole(db, header))
    by_id = {one["contract_id"]: one for one in project["contracts"]}
    said = {one["packet_id"]: one for one in project["context_history"]}
    return _with_exchanged(peer, project, by_id, said, db)


def _with_exchanged(
    peer: Peer,
    project: Document,
    by_id: dict[str, Document],
    said: dict[str, Document],
    db: sqlite3.Connection,
) -> Ours:
    return Ours(
        project, by_id, said, {one: peers.exchanged(db, peer.agent_id, one) for one in by_id}
    )


def _parsed(value: object) -> Document:
    found: Document = orjson.loads(orjson.dumps(value))
    return found


def may_read_parts(peer: Peer, project_id: str, shown: Shown, db: sqlite3.Connection) -> bool:
    """Whether the repos that a peer has shown suffice to read and write single contracts: it holds
    one of them, so that it is read now and then, and they are all that are known here."""
    repos = projects.repos(db, project_id)
    holds = any(repo.agent_id and same_agent(repo.agent_id, peer.agent_id) for repo in repos)
    return holds and all(repo.name in shown.repos for repo in repos)


def holds_repo(peer: Peer, shown: Shown) -> bool:
    """Whether a project, as the peer shows it, has a repo of the peer's agent."""
    agents = [repo.get("agent_id") or repo.get("assigned_agent") for repo in shown.repos.values()]
    return any(isinstance(one, str) and same_agent(one, peer.agent_id) for one in agents)


def unheard(
    peer: Peer, project_id: str, shown: Shown, db: sqlite3.Connection
) -> dict[Name, Message]:
    """What the peer shows and did not say before: its header and repos, contracts that were not
    exchanged as they are, and packets of its own."""
    ids = shown.ids_among({repo.name: repo.repo_id for repo in projects.repos(db, project_id)})
    given = {"source_agent": peer.agent_id}
    new: dict[Name, Message] = {}
    if shown.whole:
        bare = shown.project | {"contracts": [], "context_history": []}
        message = {"method": "cacp/project/sync", "params": given | {"project": bare}}
        new[Name("project", project_id, project_id)] = message
    for one, theirs in shown.contracts.items():
        if not _has_seen(peers.exchanged(db, peer.agent_id, one), with_ids(theirs, ids)):
            params = given | {"projectId": project_id, "contract": theirs}
            message = {"method": "cacp/contract/sync", "params": params}
            new[Name("contract", project_id, one)] = message
    for one, packet in shown.packets.items():
        author = packet.get("from_agent")
        if (
            isinstance(author, str)
            and same_agent(author, peer.agent_id)
            and not context_packets.exists(db, project_id, one)
        ):
            params = given | {"projectId": project_id, "packet": packet}
            new[Name("context", project_id, one)] = {
                "method": "cacp/context/sync",
                "params": params,
            }
    return new


def _has_seen(exchanged: str | None, theirs: Document) -> bool:
    if exchanged is None:
        return False
    try:
        said = PeerContract.model_validate(theirs)
    except ValidationError:
        return False
    return Exchange.of(exchanged).has_seen(said)


def lacking(project_id: str, shown: Shown, db: sqlite3.Connection) -> dict[Name, str]:
    """The contracts that a peer shows otherwise than this node holds them, once all that it says
    is merged; each with what both say of it."""
    ids = shown.ids_among({repo.name: repo.repo_id for repo in projects.repos(db, project_id)})
    found: dict[Name, str] = {}
    for one, document in shown.contracts.items():
        held = contracts.document(db, project_id, one, history=False)
        if held is None:
            continue
        try:
            theirs = PeerContract.model_validate(with_ids(document, ids))
            told = differing(PeerContract.model_validate(_parsed(held)), theirs, digest)
        except (ValidationError, Refusal):
            # It is named as what can't be merged.
            continue
        if told is not None:
            found[Name("contract", project_id, one)] = told
    return found


def sending(peer: Peer, name: Name, ours: Ours, written: Document, to: Transaction) -> None:
    """Remember what goes to the peer, before it does: what it answers may be overtaken by what it
    does with that."""
    kept = peers.exchanged(to.connection, peer.agent_id, name.entity_id)
    after = Exchange.of(kept).before_sending(_said_of(name, ours, written))
    peers.put_exchanged(to.connection, peer.agent_id, name.entity_id, after.model_dump_json())


def _said_of(name: Name, ours: Ours, written: Document) -> PeerContract:
    """A contract of ours with the time that the peer is told."""
    sent = ours.contracts[name.entity_id] | {"updated_at": written["updated_at"]}
    return PeerContract.model_validate(sent)


def sent(peer: Peer, name: Name, ours: Ours, written: Document, transaction: Transaction) -> bool:
    """Remember what the peer has taken: later differences are its own doing.

    True when it has said something of the contract since it was read. Then that stays its last
    word, for what was sent it took before; and it is to be told once more if ours differs by now.
    """
    db = transaction.connection
    kept = peers.exchanged(db, peer.agent_id, name.entity_id)
    exchange = Exchange.of(kept)
    said = _said_of(name, ours, written)
    document = contracts.document(db, name.project_id, name.entity_id, history=False)
    now = None if document is None else PeerContract.model_validate(_parsed(document))
    known = Exchange.of(ours.exchanged[name.entity_id])
    crossed = exchange.model_copy(update={"pending": known.pending}) != known and not (
        now is not None and says_same(said, now, digest)
    )
    after = exchange.after_crossing(said) if crossed else exchange.after_sending(said)
    peers.put_exchanged(db, peer.agent_id, name.entity_id, after.model_dump_json())
    return crossed


def sent_whole(peer: Peer, ours: Ours, written: Document, transaction: Transaction) -> list[Name]:
    """The same for a project's header and its contracts: what is to be told once more."""
    db, project_id = transaction.connection, ours.project["project_id"]
    times = {one["contract_id"]: one for one in written["contracts"]}
    names = [Name("contract", project_id, one) for one in ours.contracts]
    crossed = [name for name in names if sent(peer, name, ours, times[name.entity_id], transaction)]
    said = {member: ours.project[member] for member in HEADER}
    peers.put_exchanged(db, peer.agent_id, project_id, orjson.dumps(said).decode())
    header = projects.header(db, project_id)
    if header is not None and any(getattr(header, name) != said[name] for name in HEADER):
        crossed.append(Name("project", project_id, project_id))
    return crossed
