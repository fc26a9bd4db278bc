"""cacp/*/sync: what peers send of their state (CACP 2.0, Sync Methods; design §8).

A mesh peer sends facts and registers, which are joined (`merge_contract`, `merge_project`,
`merge_immutable`). A foreign peer sends whole objects. What it changed since the last exchange with
it becomes facts of its own repo (`foreign_contract`, `foreign_project`, `foreign_context`); the
rest of an object is ignored, because the peer has no authority over it.
"""

from typing import Any, TypeVar

from schemas.sync import (
    ContextSyncParams,
    ContractSyncParams,
    ProjectSyncParams,
    RepoSyncParams,
    SyncResult,
)
from server.domain.errors import Forbidden
from server.methods.base import Context, open_project, writes
from server.methods.sync.foreign_context import merge_packet
from server.methods.sync.foreign_contract import merge_contract
from server.methods.sync.foreign_project import create_project, merge_header, merge_repo
from server.methods.sync.merge_contract import ContractMerge
from server.methods.sync.merge_immutable import ImmutableMerge
from server.methods.sync.merge_project import ProjectMerge
from server.methods.sync.peer_message import PeerMessage
from server.methods.sync.sending_peer import sending_peer
from server.store import contracts, projects

T = TypeVar("T")
WAITS = {
    "status": "skipped",
    "reason": "the project is unknown here and will be fetched from you first",
}


@writes("cacp/project/sync", ProjectSyncParams, SyncResult, access="sync", large=True)
def project_sync(ctx: Context, params: ProjectSyncParams) -> dict[str, Any]:
    """Take a project from a peer: its header, repos, contracts and context."""
    project = params.project
    source = sending_peer(ctx, params.source_agent, project.project_id)
    if source.is_mesh:
        registers = _required(params.registers, "registers")
        message = PeerMessage(ctx, source.agent_id, params.keys)
        return result_of(message.skipped, *ProjectMerge(message).project(params, registers))
    source.is_new = projects.header(ctx.db, project.project_id) is None
    if source.is_new:
        create_project(ctx, source, project)
    changed = merge_header(source, project) or source.is_new
    for repo in project.repos:
        changed |= merge_repo(source, repo)
    for contract in project.contracts:
        changed |= merge_contract(source, contract)
    for packet in project.context_history:
        changed |= merge_packet(source, packet)
    return result_of(source.skipped, source.is_new, changed)


@writes("cacp/contract/sync", ContractSyncParams, SyncResult, access="sync", large=True)
def contract_sync(ctx: Context, params: ContractSyncParams) -> dict[str, Any]:
    """Take a contract from a peer."""
    source = sending_peer(ctx, params.source_agent, params.project_id)
    if source.is_mesh:
        facts = _required(params.facts, "facts")
        message = PeerMessage(ctx, source.agent_id, params.keys)
        return result_of(message.skipped, *ContractMerge(message).contract(params, facts))
    if source.defer_until_fetched(params):
        return WAITS
    open_project(ctx, params.project_id)
    contract_id = params.contract.contract_id
    created = contracts.header_of(ctx.db, params.project_id, contract_id) is None
    changed = merge_contract(source, params.contract)
    return result_of(source.skipped, created, changed)


@writes("cacp/context/sync", ContextSyncParams, SyncResult, access="sync", large=True)
def context_sync(ctx: Context, params: ContextSyncParams) -> dict[str, Any]:
    """Take a context packet from a peer."""
    source = sending_peer(ctx, params.source_agent, params.project_id)
    if source.is_mesh:
        signature = _required(params.signature, "signature")
        message = PeerMessage(ctx, source.agent_id, params.keys)
        return result_of(message.skipped, *ImmutableMerge(message).context(params, signature))
    if source.defer_until_fetched(params):
        return WAITS
    open_project(ctx, params.project_id)
    changed = merge_packet(source, params.packet)
    return result_of(source.skipped, changed, changed)


@writes("cacp/repo/sync", RepoSyncParams, SyncResult, access="sync")
def repo_sync(ctx: Context, params: RepoSyncParams) -> dict[str, Any]:
    """Take a repository, and the peer's claim on it, from a peer."""
    source = sending_peer(ctx, params.source_agent, params.project_id)
    if source.is_mesh:
        _required(None, "registers of cacp/project/sync")
    if source.defer_until_fetched(params):
        return WAITS
    created = all(member.name != params.repo.name for member in source.project.members)
    changed = merge_repo(source, params.repo)
    return result_of(source.skipped, created, changed)


def _required(signed: T | None, member: str) -> T:
    """What a mesh peer has signed. Raises Forbidden for a whole object without it: this node would
    have to sign it in the peer's name, which no third node believes."""
    if signed is None:
        raise Forbidden(
            f"Mesh nodes must sign what they send: {member} is missing", reason="unsigned"
        )
    return signed


def result_of(skipped: list[dict[str, Any]], created: bool, changed: bool) -> dict[str, Any]:
    """The SyncResult of a message of which `skipped` was not taken."""
    result: dict[str, Any] = {"status": "skipped"}
    if changed:
        result["status"] = "created" if created else "updated"
    else:
        result["reason"] = skipped[0]["reason"] if skipped else "nothing new"
    if skipped:
        result["skipped"] = skipped
    return result
