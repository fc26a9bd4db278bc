"""Whose word counts about a project, its repos and its contracts: that of its members, of who holds
a repo, and of who made it (design §7)."""

import orjson

from server.domain.agents import same_agent
from server.domain.contract import Facts, versions_of
from server.domain.errors import Forbidden
from server.domain.identifiers import is_beginner, is_founder, names_beginner
from server.domain.registers import Weight, weight_on_repo
from server.methods.base import Context
from server.store import claims, contracts
from server.store.projects import ProjectHeader


def has_standing(ctx: Context, project_id: str, node: str) -> bool:
    """Whether a node made the project, or has signed a claim on a repo of it."""
    return is_founder(project_id, node) or claims.is_signed_by(
        ctx.db, project_id, node, ctx.node.agent_id
    )


def counts(ctx: Context, header: ProjectHeader) -> bool:
    """Whether a header was signed by a node that may say it."""
    node = signer(ctx, header.signature)
    return node is not None and has_standing(ctx, header.project_id, node)


def signer(ctx: Context, kept: str | None) -> str | None:
    """The node that has signed, by a signature as the store keeps it; None for nobody."""
    if kept == "":
        return None
    return ctx.node.agent_id if kept is None else str(orjson.loads(kept)["node"])


def weight_of_repo(ctx: Context, project_id: str, repo_id: str, kept: str | None) -> Weight:
    """How much the word of who has signed what a repo is counts."""
    held = claims.holder(ctx.db, project_id, repo_id)
    return weight_on_repo(
        project_id,
        signer(ctx, kept),
        None if held is None else signer(ctx, held.signature),
        claims.signers(ctx.db, project_id, ctx.node.agent_id),
    )


def weight_of_contract(
    ctx: Context, project_id: str, contract_id: str, facts: Facts, kept: str | None
) -> Weight:
    """How much the word of who has signed what a contract is called counts: that of the node which
    has begun it, as its id says, and no other's. Where the id names nobody, it is that of one which
    has signed the version that it begins with."""
    node, versions = signer(ctx, kept), versions_of(facts)
    if node is not None and names_beginner(contract_id):
        begins = is_beginner(contract_id, project_id, node)
        return Weight.FOUNDER if begins else Weight.OTHERS
    if node is None or not versions:
        return Weight.OTHERS
    begun = [one for one in versions if one.version == versions[0].version]
    signed = (contracts.signature_of(ctx.db, contract_id, (one.kind, one.key)) for one in begun)
    has_begun = any(same_agent(str(signer(ctx, one)), node) for one in signed)
    return Weight.FOUNDER if has_begun else Weight.OTHERS


def check_own(ctx: Context, header: ProjectHeader) -> None:
    """Raises Forbidden when no other node would believe this one: they would end differently."""
    if counts(ctx, header) and not has_standing(ctx, header.project_id, ctx.node.agent_id):
        raise Forbidden(
            "This node has neither made the project nor does anybody hold a repo of it here, so "
            "that the other nodes would not believe it: join the project first",
            reason="no_standing",
            projectId=header.project_id,
        )
