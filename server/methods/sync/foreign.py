"""cacp/*/sync: what peers send of their state (CACP 2.0, Sync Methods; design §8).

A foreign peer sends whole objects. What it changed since it last heard from us becomes
facts of its own repo (`peers.foreign`); all else in the object is no word of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel

from peers.foreign import (
    HEADER,
    Difference,
    Exchange,
    NotTheirs,
    contract_differences,
    to_facts,
)
from schemas.base import iso, stamp_of
from schemas.context import ContextPacket
from schemas.facts import VersionFact
from schemas.sync import (
    ContextSyncParams,
    ContractSyncParams,
    PeerContract,
    PeerPacket,
    PeerProject,
    PeerRepo,
    ProjectSyncParams,
    RepoSyncParams,
    SyncResult,
)
from server.auth.authenticator import Caller
from server.domain import contract as domain
from server.domain.admission import admissible, news
from server.domain.agents import check_canonical, same_agent
from server.domain.authorship import check_sendable
from server.domain.endpoints import check_endpoint
from server.domain.errors import Forbidden, Refusal
from server.domain.identifiers import names_beginner, repo_id_for
from server.domain.lineage import VERSION_JUMP_MAX
from server.methods.base import Context, open_project, writes
from server.methods.sync.deferral import defer
from server.methods.sync.merge import FactMerge
from server.methods.sync.merge_once import ImmutableMerge
from server.methods.sync.merge_project import ProjectMerge
from server.store import context_packets, contracts, deferred, mesh, peers, projects
from server.store.contracts import ContractHeader
from server.store.projects import Member, Membership, Repo
from server.util.log_once import name_once

T = TypeVar("T")
WAITS = {"status": "skipped", "reason": "the project is unknown here: it is fetched from you first"}


@dataclass(slots=True)
class SendingPeer:
    """The peer that sends, the project that it sends of, and what was passed over."""

    ctx: Context
    agent_id: str
    repo: str
    project_id: str
    is_mesh: bool = False
    """A mesh peer: it sends facts, and signs them."""
    skipped: list[dict[str, Any]] = field(default_factory=list)
    is_new: bool = False
    """Whether this call made the project: then all that it says of it counts."""
    _project: Membership | None = None

    def skip(self, what: str, id: str, reason: str) -> None:
        if what == "contract":
            # A foreign peer's agent hears nothing of it: its node asks for no answer.
            name_once("peer_contract_refused", peer=self.agent_id, contract=id, reason=reason)
        self.skipped.append({"kind": what, "id": id, "reason": reason})

    @property
    def project(self) -> Membership:
        """The project's repos and who holds them, loaded once until they change."""
        if self._project is None:
            self._project = open_project(self.ctx, self.project_id)
        return self._project

    def members_changed(self) -> None:
        self._project = None

    @property
    def repo_id(self) -> str | None:
        """The peer's own repo in the project: that of its name, unless another agent holds it."""
        own = [
            member
            for member in self.project.members
            if (
                member.name == self.repo
                if member.agent_id is None
                else same_agent(member.agent_id, self.agent_id)
            )
        ]
        named = next((member for member in own if member.name == self.repo), None)
        return (named or own[0]).repo_id if own else None

    def our_id(self, repo_id: str) -> str:
        """A repo's id here for the peer's; ours are never another's alias."""
        if any(member.repo_id == repo_id for member in self.project.members):
            return repo_id
        return projects.resolve_alias(self.ctx.db, self.project_id, repo_id) or repo_id


@writes("cacp/project/sync", ProjectSyncParams, SyncResult, access="sync", large=True)
def project_sync(ctx: Context, params: ProjectSyncParams) -> dict[str, Any]:
    """Take a project from a peer: its header, repos, contracts and context."""
    theirs = params.project
    source = _source(ctx, params.source_agent, theirs.project_id)
    if source.is_mesh:
        registers = _signed(params.registers, "registers")
        inbox = ProjectMerge(ctx, source.agent_id, params.keys)
        return result_of(inbox.skipped, *inbox.project(params, registers))
    source.is_new = projects.header(ctx.db, theirs.project_id) is None
    if source.is_new:
        _create(ctx, theirs)
    changed = _merge_header(source, theirs) or source.is_new
    for repo in theirs.repos:
        changed |= _merge_repo(source, repo)
    for contract in theirs.contracts:
        changed |= _merge_contract(source, contract)
    for packet in theirs.context_history:
        changed |= _merge_packet(source, packet)
    return result_of(source.skipped, source.is_new, changed)


@writes("cacp/contract/sync", ContractSyncParams, SyncResult, access="sync", large=True)
def contract_sync(ctx: Context, params: ContractSyncParams) -> dict[str, Any]:
    """Take a contract from a peer."""
    source = _source(ctx, params.source_agent, params.project_id)
    if source.is_mesh:
        facts = _signed(params.facts, "facts")
        inbox = FactMerge(ctx, source.agent_id, params.keys)
        return result_of(inbox.skipped, *inbox.contract(params, facts))
    if _waits_for_project(source, params):
        return WAITS
    open_project(ctx, params.project_id)
    contract_id = params.contract.contract_id
    created = contracts.header_of(ctx.db, params.project_id, contract_id) is None
    changed = _merge_contract(source, params.contract)
    return result_of(source.skipped, created, changed)


@writes("cacp/context/sync", ContextSyncParams, SyncResult, access="sync", large=True)
def context_sync(ctx: Context, params: ContextSyncParams) -> dict[str, Any]:
    """Take a context packet from a peer."""
    source = _source(ctx, params.source_agent, params.project_id)
    if source.is_mesh:
        signature = _signed(params.signature, "signature")
        inbox = ImmutableMerge(ctx, source.agent_id, params.keys)
        return result_of(inbox.skipped, *inbox.context(params, signature))
    if _waits_for_project(source, params):
        return WAITS
    open_project(ctx, params.project_id)
    changed = _merge_packet(source, params.packet)
    return result_of(source.skipped, changed, changed)


@writes("cacp/repo/sync", RepoSyncParams, SyncResult, access="sync")
def repo_sync(ctx: Context, params: RepoSyncParams) -> dict[str, Any]:
    """Take a repository, and the peer's claim on it, from a peer."""
    source = _source(ctx, params.source_agent, params.project_id)
    if source.is_mesh:
        _signed(None, "registers of cacp/project/sync")
    if _waits_for_project(source, params):
        return WAITS
    created = all(member.name != params.repo.name for member in source.project.members)
    changed = _merge_repo(source, params.repo)
    return result_of(source.skipped, created, changed)


def _source(ctx: Context, source_agent: str, project_id: str) -> SendingPeer:
    """The peer that sends: registered here, and authenticated as `source_agent` (design §6).

    Foreign peers may send no credentials; where an unkeyed peer is taken at its word, a call
    that comes without any is taken at the word of its `source_agent`.
    """
    caller = ctx.caller
    if caller.via != "local":
        if not same_agent(caller.agent_id, source_agent):
            raise Forbidden(
                f"source_agent must be who calls, which is {caller.agent_id}",
                reason="source_agent_mismatch",
            )
        memo = ctx.transaction.memo if ctx.transaction is not None else {}
        is_mesh = memo.get(("mesh", caller.agent_id))
        if is_mesh is None:
            known = peers.find(ctx.db, caller.agent_id)
            if known is None:
                raise Forbidden(
                    f"{caller.agent_id} is no peer here: register it by POST /peers/register",
                    reason="unknown_peer",
                )
            is_mesh = known.secret is not None
            memo["mesh", caller.agent_id] = is_mesh
        return SendingPeer(ctx, caller.agent_id, caller.repo, project_id, is_mesh)
    check_canonical(source_agent, "source_agent")
    peer = peers.find(ctx.db, source_agent)
    keyed = mesh.is_known_by_key(ctx.db, source_agent, ctx.node.agent_id)
    if peer is None or peer.trust != "unkeyed" or keyed or not ctx.node.takes_unkeyed_peers:
        raise Forbidden(
            f"{source_agent} is no peer that may sync without a key: register it, or send its key",
            reason="unknown_peer",
        )
    # The change is the peer's own, and not told to it again.
    itself = replace(ctx, caller=Caller(peer.agent_id, peer.repo_name or "", "unkeyed", "peer"))
    return SendingPeer(itself, peer.agent_id, peer.repo_name or "", project_id)


def _signed(said: T | None, member: str) -> T:
    """What a member of the mesh vouches for. Raises Forbidden for a whole object without it: this
    node would have to sign it in the other's name, which no third node believes."""
    if said is None:
        raise Forbidden(f"A member of a mesh signs what it says: send {member}", reason="unsigned")
    return said


def _waits_for_project(source: SendingPeer, params: BaseModel) -> bool:
    """Keep a call for a project that is unknown here, until it is fetched from its peer (§6)."""
    ctx = source.ctx
    if projects.header(ctx.db, source.project_id) is not None or ctx.caller.projects is not None:
        return False
    if peers.find(ctx.db, source.agent_id) is None:
        return False
    text = params.model_dump_json(by_alias=True, exclude_none=True)
    message = deferred.DeferredMessage(source.agent_id, ctx.method, text, text)
    return defer(ctx, message, "project", source.project_id, due=0)


def result_of(skipped: list[dict[str, Any]], created: bool, changed: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"status": "skipped"}
    if changed:
        result["status"] = "created" if created else "updated"
    else:
        result["reason"] = skipped[0]["reason"] if skipped else "nothing new"
    if skipped:
        result["skipped"] = skipped
    return result


# --- project header and repos -------------------------------------------------------------------


def _create(ctx: Context, theirs: PeerProject) -> None:
    header = projects.ProjectHeader(
        project_id=theirs.project_id,
        name=theirs.name,
        objective=theirs.objective,
        status=theirs.status,
        agreement_policy="any",
        created_at=_past(theirs.created_at, ctx.stamp),
        stamp=ctx.stamp,
    )
    projects.insert(ctx.db, header, [])
    ctx.record("project", theirs.project_id, theirs.project_id, "created")


def _merge_header(source: SendingPeer, theirs: PeerProject) -> bool:
    """Apply what the peer changed in the header since it was last exchanged. What it leaves out
    it has not changed."""
    ctx = source.ctx
    if not source.is_new and source.repo_id is None:
        source.skip("project", theirs.project_id, "The peer holds no repo of this project")
        return False
    said = theirs.model_dump(include=set(HEADER), exclude_unset=True)
    last = peers.exchanged(ctx.db, source.agent_id, theirs.project_id)
    before = orjson.loads(last) if last is not None else {}
    known = orjson.dumps(before | said).decode()
    peers.put_exchanged(ctx.db, source.agent_id, theirs.project_id, known)
    header = projects.header(ctx.db, theirs.project_id)
    if header is None:
        return False
    changed = {
        name: value
        for name, value in said.items()
        if value not in (before.get(name, value), getattr(header, name))
    }
    if not changed:
        return False
    header = header._replace(**changed, stamp=ctx.after(header.stamp), signature=None)
    projects.update_header(ctx.db, header)
    ctx.record("project", theirs.project_id, theirs.project_id, header.status)
    return True


def _merge_repo(source: SendingPeer, theirs: PeerRepo) -> bool:
    """Add a repo that is unknown here, and the peer's claim on its own."""
    ctx, project_id = source.ctx, source.project_id
    member = next((one for one in source.project.members if one.name == theirs.name), None)
    fresh = member is None
    if member is None:
        if not source.is_new and source.repo_id is None:
            source.skip("repo", theirs.repo_id, "The peer holds no repo of this project")
            return False
        repo = Repo(
            repo_id=repo_id_for(project_id, theirs.name),
            name=theirs.name,
            role=theirs.role,
            language=theirs.language,
            relevant_paths=orjson.dumps(theirs.relevant_paths or []).decode(),
            url=theirs.url,
            stamp=ctx.stamp,
        )
        projects.insert_repo(ctx.db, project_id, repo)
        ctx.record("repo", repo.repo_id, project_id, "added")
        source.members_changed()
        member = Member(repo.repo_id, repo.name, None)
    fresh_id = all(theirs.repo_id != one.repo_id for one in source.project.members)
    if fresh_id and not projects.add_alias(ctx.db, project_id, theirs.repo_id, member.repo_id):
        source.skip("repo", theirs.repo_id, f"Repo {member.name} has too many ids already")
    if theirs.agent_id is not None and same_agent(theirs.agent_id, source.agent_id):
        fresh |= _merge_claim(source, member, theirs)
    return fresh


def _merge_claim(source: SendingPeer, member: Member, theirs: PeerRepo) -> bool:
    """The peer claims a repo. One that another agent holds is kept as a conflict (design §5)."""
    ctx = source.ctx
    if source.repo and member.name != source.repo:
        source.skip("repo", member.repo_id, f"The peer is of repo {source.repo}")
        return False
    endpoint = theirs.agent_endpoint
    try:
        if endpoint is not None:
            check_endpoint(endpoint, loopback_allowed=ctx.node.loopback)
    except Refusal as refusal:
        source.skip("repo", member.repo_id, refusal.message)
        endpoint = None
    claim = (source.project_id, member.repo_id, source.agent_id, endpoint, ctx.stamp)
    if member.agent_id is not None:
        if same_agent(member.agent_id, source.agent_id):
            return _renew_endpoint(source, member, endpoint)
        projects.keep_lost_claim(ctx.db, *claim)
        source.skip("repo", member.repo_id, f"Repo {member.name} is held by another agent")
        return False
    projects.update_claim(ctx.db, *claim)
    ctx.record("repo", member.repo_id, source.project_id, "joined")
    source.members_changed()
    return True


def _renew_endpoint(source: SendingPeer, member: Member, endpoint: str | None) -> bool:
    ctx, project_id = source.ctx, source.project_id
    known = {repo.repo_id: repo for repo in projects.repos(ctx.db, project_id)}
    repo = known[member.repo_id]
    if endpoint is None or repo.agent_endpoint == endpoint:
        return False
    claimed_at = repo.claimed_at or ctx.stamp
    projects.update_claim(ctx.db, project_id, repo.repo_id, source.agent_id, endpoint, claimed_at)
    ctx.record("repo", repo.repo_id, project_id, "joined")
    return True


# --- contracts ----------------------------------------------------------------------------------


def _merge_contract(source: SendingPeer, theirs: PeerContract) -> bool:
    """Apply what the peer itself changed of a contract, as far as its repo may say so."""
    ctx, project_id = source.ctx, source.project_id
    repo_id = source.repo_id
    if repo_id is None:
        source.skip("contract", theirs.contract_id, "The peer holds no repo of this project")
        return False
    if contracts.project_of(ctx.db, theirs.contract_id) not in (None, project_id):
        source.skip("contract", theirs.contract_id, "That contract is of another project")
        return False
    theirs = _with_our_ids(source, theirs)
    ours = _ours(ctx, project_id, theirs.contract_id)
    if ours is None and names_beginner(theirs.contract_id):
        source.skip("contract", theirs.contract_id, "A node of the mesh began it, and brings it")
        return False
    if theirs.version > (ours.version if ours else 0) + VERSION_JUMP_MAX:
        source.skip("contract", theirs.contract_id, "Its version is too far ahead")
        return False
    exchange = Exchange.of(peers.exchanged(ctx.db, source.agent_id, theirs.contract_id))
    try:
        differences = contract_differences(ours, exchange, theirs, repo_id, check_sendable)
    except (NotTheirs, Refusal) as error:
        source.skip("contract", theirs.contract_id, str(error))
        return False
    heard = exchange.after_hearing(theirs).model_dump_json()
    peers.put_exchanged(ctx.db, source.agent_id, theirs.contract_id, heard)
    return bool(differences) and _apply(source, repo_id, theirs, differences)


def _apply(
    source: SendingPeer, repo_id: str, theirs: PeerContract, differences: Sequence[Difference]
) -> bool:
    """Join the facts that the differences stand for, but those that the peer may not write."""
    ctx, project_id = source.ctx, source.project_id
    header = contracts.header_of(ctx.db, project_id, theirs.contract_id)
    facts = contracts.facts_of(ctx.db, theirs.contract_id) if header else {}
    current = domain.current_of(facts) if facts else None
    new = to_facts(
        differences,
        current,
        repo_id=repo_id,
        agent_id=source.agent_id,
        parties=tuple(member.repo_id for member in source.project.members),
        policy=source.project.agreement_policy,
        round_number=domain.round_of(facts, current) if current else 1,
        stamp=ctx.stamp,
    )
    if header is None:
        first, *new = new
        assert isinstance(first, VersionFact)
        header = ContractHeader(theirs.type, theirs.name, _past(theirs.created_at, ctx.stamp))
        contracts.insert(ctx.db, project_id, theirs.contract_id, header, first)
        facts = {(first.kind, first.key): first}
    if current is not None and not (new := news(facts, new)):
        return False
    admitted = admissible(facts, new)
    if current is not None and not admitted:
        source.skip("contract", theirs.contract_id, "Not for this repo to say, or not yet")
        return False
    joined = contracts.add(ctx.db, project_id, theirs.contract_id, header, facts, admitted)
    ctx.record("contract", theirs.contract_id, project_id, domain.status_of(joined))
    return not _name_conflict(source, theirs, facts, joined)


def _name_conflict(
    source: SendingPeer, theirs: PeerContract, facts: domain.Facts, joined: domain.Facts
) -> bool:
    """Say so to both when a version has lost: by the stream here, in the answer to the peer.

    True when it is the peer's: kept, but not what counts.
    """
    if not domain.has_lost(facts, joined):
        return False
    # The peer is its origin, as with mesh peers: it is counted for that peer.
    found = replace(source.ctx, origin=source.agent_id)
    found.record("conflict", theirs.contract_id, source.project_id, "version_lost")
    current = domain.current_of(joined)
    if current.version <= theirs.version:
        return False
    said = f"Version {theirs.version} is kept as a conflict: it lost to version {current.version}"
    source.skipped.append({"kind": "contract", "id": theirs.contract_id, "reason": said})
    return True


def _ours(ctx: Context, project_id: str, contract_id: str) -> PeerContract | None:
    document = contracts.document(ctx.db, project_id, contract_id, history=False)
    return None if document is None else PeerContract.model_validate_json(orjson.dumps(document))


def _with_our_ids(source: SendingPeer, theirs: PeerContract) -> PeerContract:
    return theirs.model_copy(
        update={
            "proposed_by": source.our_id(theirs.proposed_by) if theirs.proposed_by else None,
            "implementations": [
                work.model_copy(update={"repo_id": source.our_id(work.repo_id)})
                for work in theirs.implementations
            ],
        }
    )


# --- context ------------------------------------------------------------------------------------


def _merge_packet(source: SendingPeer, theirs: PeerPacket) -> bool:
    """Add a packet that is unknown here. A peer speaks for its own repo only."""
    ctx, project_id = source.ctx, source.project_id
    if context_packets.exists(ctx.db, project_id, theirs.packet_id):
        return False
    from_repo = source.our_id(theirs.from_repo)
    if from_repo != source.repo_id or not same_agent(theirs.from_agent, source.agent_id):
        source.skip("context", theirs.packet_id, "Another repo's packet: its own peer sends it")
        return False
    try:
        check_sendable(theirs.content)
    except Refusal as refusal:
        source.skip("context", theirs.packet_id, refusal.message)
        return False
    packet = ContextPacket.model_construct(
        packet_id=theirs.packet_id,
        from_repo=from_repo,
        from_agent=theirs.from_agent,
        timestamp=iso(_past(theirs.timestamp, ctx.stamp)),
        type=theirs.type,
        content=theirs.content,
        related_contracts=theirs.related_contracts or [],
        reply_to=theirs.reply_to,
    )
    context_packets.insert(ctx.db, project_id, packet)
    ctx.record("context", packet.packet_id, project_id, packet.type)
    return True


def _past(time: str | None, now: int) -> int:
    """A peer's time as a stamp; absent, or ahead of our clock, it is now."""
    return now if time is None else min(stamp_of(time), now)
