"""What this node holds of a foreign peer's projects, and what was exchanged with it (design §8)."""

from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from peers.digest import Name
from peers.foreign import HEADER, ContractExchange, differing, says_same
from peers.foreign_plan import Document, Shown, as_foreign, with_ids
from schemas.sync import PeerContract
from server.domain.agents import same_agent
from server.domain.canonical import digest
from server.domain.errors import Refusal
from server.rpc.sync_batch import Message
from server.store import context_packets, contracts, peers, projects
from server.store.connection import Connection
from server.store.group_commit import Transaction
from server.store.peers import Peer


class LocalProject(NamedTuple):
    """What this node holds of a project, with its own ids; contracts and packets by id.

    `exchanged` is what was exchanged with the peer about each of the contracts, as stored.
    """

    project: Document
    contracts: dict[str, Document]
    packets: dict[str, Document]
    exchanged: dict[str, str | None]


# --- reading the store --------------------------------------------------------------------------


def load_entities(
    peer: Peer, project_id: str, names: list[Name], db: Connection
) -> LocalProject | None:
    """The project with some of its contracts and packets; None when it is not here."""
    header = projects.header(db, project_id)
    if header is None:
        return None
    loaded: dict[str, dict[str, Document]] = {"contract": {}, "context": {}}
    for name in names:
        document: object = None
        if name.entity == "contract":
            document = contracts.document(db, project_id, name.entity_id, history=True)
        elif name.entity == "context" and (
            row := context_packets.signed(db, project_id, name.entity_id)
        ):
            document = orjson.Fragment(row[0])
        if document is not None:
            loaded[name.entity][name.entity_id] = _parsed(document)
    project = _parsed(projects.bare(header, projects.repos(db, project_id)))
    return _with_exchanged(peer, project, loaded["contract"], loaded["context"], db)


def load_project(peer: Peer, project_id: str, db: Connection) -> LocalProject | None:
    """The project with all its contracts and packets; None when it is not here."""
    header = projects.header(db, project_id)
    if header is None:
        return None
    project = _parsed(projects.whole(db, header))
    by_id = {contract["contract_id"]: contract for contract in project["contracts"]}
    packets = {packet["packet_id"]: packet for packet in project["context_history"]}
    return _with_exchanged(peer, project, by_id, packets, db)


def _with_exchanged(
    peer: Peer,
    project: Document,
    by_id: dict[str, Document],
    packets: dict[str, Document],
    db: Connection,
) -> LocalProject:
    exchanged = {id: peers.exchanged(db, peer.agent_id, id) for id in by_id}
    return LocalProject(project, by_id, packets, exchanged)


def _parsed(value: object) -> Document:
    document: Document = orjson.loads(orjson.dumps(value))
    return document


# --- the ids of both ----------------------------------------------------------------------------


def written_for(document: Document, local: LocalProject, shown: Shown) -> Document:
    """A document of this node as the peer writes it, with the peer's ids for repos it knows."""
    peer_ids = shown.ids
    ids = {
        repo["repo_id"]: peer_ids[repo["name"]]
        for repo in local.project["repos"]
        if repo["name"] in peer_ids
    }
    written: Document = as_foreign(with_ids(document, ids))
    return written


def local_ids(local: LocalProject, shown: Shown) -> dict[str, str]:
    """This node's ids of the peer's repos, by the peer's ids."""
    return shown.ids_among({repo["name"]: repo["repo_id"] for repo in local.project["repos"]})


def _stored_ids(project_id: str, shown: Shown, db: Connection) -> dict[str, str]:
    return shown.ids_among({repo.name: repo.repo_id for repo in projects.repos(db, project_id)})


# --- what the peer shows ------------------------------------------------------------------------


def may_read_parts(peer: Peer, project_id: str, shown: Shown, db: Connection) -> bool:
    """Whether single contracts can be read and written by the repos that the peer has shown: it
    holds one of them, so that it is read now and then, and they are all that are known here."""
    repos = projects.repos(db, project_id)
    holds = any(repo.agent_id and same_agent(repo.agent_id, peer.agent_id) for repo in repos)
    return holds and all(repo.name in shown.repos for repo in repos)


def holds_repo(peer: Peer, shown: Shown) -> bool:
    """Whether a project, as the peer shows it, has a repo of the peer's agent."""
    agents = [repo.get("agent_id") or repo.get("assigned_agent") for repo in shown.repos.values()]
    return any(isinstance(agent, str) and same_agent(agent, peer.agent_id) for agent in agents)


def unmerged_messages(
    peer: Peer, project_id: str, shown: Shown, db: Connection
) -> dict[Name, Message]:
    """What the peer shows and has not sent, as calls: its header and repos, the contracts that were
    not exchanged as they are, and its own packets."""
    ids = _stored_ids(project_id, shown, db)
    new: dict[Name, Message] = {}

    def add(entity: str, entity_id: str, method: str, **params: Any) -> None:
        call = {"method": method, "params": {"source_agent": peer.agent_id} | params}
        new[Name(entity, project_id, entity_id)] = call

    if shown.whole:
        bare = shown.project | {"contracts": [], "context_history": []}
        add("project", project_id, "cacp/project/sync", project=bare)
    for id, contract in shown.contracts.items():
        if not _was_exchanged(peers.exchanged(db, peer.agent_id, id), with_ids(contract, ids)):
            add("contract", id, "cacp/contract/sync", projectId=project_id, contract=contract)
    for id, packet in shown.packets.items():
        author = packet.get("from_agent")
        is_own = isinstance(author, str) and same_agent(author, peer.agent_id)
        if is_own and not context_packets.exists(db, project_id, id):
            add("context", id, "cacp/context/sync", projectId=project_id, packet=packet)
    return new


def _was_exchanged(exchanged: str | None, contract: Document) -> bool:
    if exchanged is None:
        return False
    try:
        shown = PeerContract.model_validate(contract)
    except ValidationError:
        return False
    return ContractExchange.of(exchanged).has_seen(shown)


def differing_contracts(project_id: str, shown: Shown, db: Connection) -> dict[Name, str]:
    """The contracts that a peer shows otherwise than this node holds them, once all that it shows
    is merged; each with a digest of the state of both."""
    ids = _stored_ids(project_id, shown, db)
    states: dict[Name, str] = {}
    for id, contract in shown.contracts.items():
        document = contracts.document(db, project_id, id, history=False)
        if document is None:
            continue
        try:
            local = PeerContract.model_validate(_parsed(document))
            state = differing(local, PeerContract.model_validate(with_ids(contract, ids)), digest)
        except (ValidationError, Refusal):
            # The log names it as not merged.
            continue
        if state is not None:
            states[Name("contract", project_id, id)] = state
    return states


# --- what the peer was sent ---------------------------------------------------------------------


def note_sending(
    peer: Peer, name: Name, local: LocalProject, written: Document, to: Transaction
) -> None:
    """Remember what is sent to the peer before it is: the peer may take and change it, and be read
    again, before its answer comes."""
    kept = peers.exchanged(to.connection, peer.agent_id, name.entity_id)
    after = ContractExchange.of(kept).before_sending(_as_sent(name, local, written))
    peers.put_exchanged(to.connection, peer.agent_id, name.entity_id, after.model_dump_json())


def note_sent(
    peer: Peer, name: Name, local: LocalProject, written: Document, transaction: Transaction
) -> bool:
    """Remember what the peer has taken: later differences are its own changes.

    Returns whether the two have crossed: the peer has sent something of the contract since it was
    read. That stays its last word, for it took before what was sent to it; and the contract is to
    be sent once more if it differs here by now.
    """
    db = transaction.connection
    exchange = ContractExchange.of(peers.exchanged(db, peer.agent_id, name.entity_id))
    sent = _as_sent(name, local, written)
    document = contracts.document(db, name.project_id, name.entity_id, history=False)
    now = None if document is None else PeerContract.model_validate(_parsed(document))
    known = ContractExchange.of(local.exchanged[name.entity_id])
    crossed = exchange.model_copy(update={"pending": known.pending}) != known and not (
        now is not None and says_same(sent, now, digest)
    )
    after = exchange.after_crossing(sent) if crossed else exchange.after_sending(sent)
    peers.put_exchanged(db, peer.agent_id, name.entity_id, after.model_dump_json())
    return crossed


def note_sent_project(
    peer: Peer, local: LocalProject, written: Document, transaction: Transaction
) -> list[Name]:
    """Remember the same of a project's header and contracts. Returns what has crossed."""
    db, project_id = transaction.connection, local.project["project_id"]
    by_id = {contract["contract_id"]: contract for contract in written["contracts"]}
    crossed = [
        name
        for name in [Name("contract", project_id, id) for id in local.contracts]
        if note_sent(peer, name, local, by_id[name.entity_id], transaction)
    ]
    sent = {member: local.project[member] for member in HEADER}
    peers.put_exchanged(db, peer.agent_id, project_id, orjson.dumps(sent).decode())
    header = projects.header(db, project_id)
    if header is not None and any(getattr(header, name) != sent[name] for name in HEADER):
        crossed.append(Name("project", project_id, project_id))
    return crossed


def _as_sent(name: Name, local: LocalProject, written: Document) -> PeerContract:
    """A contract of this node with the time that was written to the peer."""
    sent = local.contracts[name.entity_id] | {"updated_at": written["updated_at"]}
    return PeerContract.model_validate(sent)
