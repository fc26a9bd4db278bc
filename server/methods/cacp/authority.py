"""Which node's statement about a project, its repos and its contracts counts: the founder's, a repo
holder's, a member's (design §7)."""

from server.domain.agents import same_agent
from server.domain.authorship import signer_of
from server.domain.contract import Facts, versions_of
from server.domain.errors import Forbidden
from server.domain.identifiers import is_beginner, is_founder, names_beginner
from server.domain.registers import Weight, weight_on_repo
from server.methods.base import Context
from server.store import claims, contracts
from server.store.projects import ProjectHeader


def has_standing(ctx: Context, project_id: str, node: str) -> bool:
    """Whether a node founded the project or has signed a claim on one of its repos."""
    return is_founder(project_id, node) or claims.is_signed_by(
        ctx.db, project_id, node, ctx.node.agent_id
    )


def counts(ctx: Context, header: ProjectHeader) -> bool:
    """Whether a header was signed by a node with standing in the project."""
    node = signer(ctx, header.signature)
    return node is not None and has_standing(ctx, header.project_id, node)


def signer(ctx: Context, signature: str | None) -> str | None:
    """The node that a stored signature names; None for "", which nobody signed."""
    return None if signature == "" else signer_of(signature, ctx.node.agent_id)


def weight_of_repo(ctx: Context, project_id: str, repo_id: str, signature: str | None) -> Weight:
    """The weight of the node that signed a repo's description (`signature`)."""
    held = claims.holder(ctx.db, project_id, repo_id)
    return weight_on_repo(
        project_id,
        signer(ctx, signature),
        None if held is None else signer(ctx, held.signature),
        claims.signers(ctx.db, project_id, ctx.node.agent_id),
    )


def weight_of_contract(
    ctx: Context, project_id: str, contract_id: str, facts: Facts, signature: str | None
) -> Weight:
    """The weight of the node that signed a contract's header (`signature`). Only the node that
    began the contract counts: the one that its id names or, where the id names none, a signer of
    the contract's first version."""
    node, versions = signer(ctx, signature), versions_of(facts)
    if node is not None and names_beginner(contract_id):
        begins = is_beginner(contract_id, project_id, node)
        return Weight.FOUNDER if begins else Weight.OTHERS
    if node is None or not versions:
        return Weight.OTHERS
    begun = [fact for fact in versions if fact.version == versions[0].version]
    signatures = (
        contracts.signature_of(ctx.db, contract_id, (fact.kind, fact.key)) for fact in begun
    )
    has_begun = any(same_agent(str(signer(ctx, signed)), node) for signed in signatures)
    return Weight.FOUNDER if has_begun else Weight.OTHERS


def check_own(ctx: Context, header: ProjectHeader) -> None:
    """Raises Forbidden when the other nodes would not accept a header by this node, and so would
    keep a different one."""
    if counts(ctx, header) and not has_standing(ctx, header.project_id, ctx.node.agent_id):
        raise Forbidden(
            "You cannot change this project from this node: no local agent has joined it. Call "
            "cacp/project/join first",
            reason="no_standing",
            projectId=header.project_id,
        )
