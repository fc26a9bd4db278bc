"""cacp/contract/overview: a contract as the agent that works on it needs it."""

from collections.abc import Mapping
from typing import Any

from schemas.base import iso, present
from schemas.contract import ContractType
from schemas.contract_overview import ContractOverview, OverviewParams
from schemas.facts import ResponseFact, VerificationFact
from schemas.verification import PartyRole
from server.domain import contract as domain
from server.domain.attention.contract_view import ContractSubject
from server.domain.attention.contracts import openings
from server.domain.attention.derive import attention
from server.domain.attention.items import ProjectNames, WaitingItem
from server.domain.content_diff import bounded_diff
from server.domain.contract import Facts
from server.domain.contract_overview import (
    compared_version,
    knows_current,
    responses_to,
    verifications_of,
)
from server.methods.base import Context, open_project, reads
from server.methods.cacp import content_reading
from server.methods.cacp.attention import actor_of
from server.methods.cacp.contract import no_contract
from server.methods.cacp.receipt import shown_receipts, unproven_of
from server.node import Node
from server.store import contracts, projects
from server.store.projects import Repo


@reads(
    "cacp/contract/overview",
    OverviewParams,
    ContractOverview,
    wide=True,
    instead="it without includeHistory",
)
def overview(ctx: Context, params: OverviewParams) -> dict[str, Any]:
    """Return a contract with the caller's next steps (`ownSteps`), the steps of all repos that it
    waits for (`awaitedSteps`), the responses to its current version, its verifications (by an
    agent's word) and receipts (a runner's proof), and what changed since the version that the
    caller's repo agreed to. `conflicts` counts the versions that lost a race, which
    cacp/contract/conflicts lists.
    """
    project = open_project(ctx, params.project_id)
    header = contracts.header_of(ctx.db, params.project_id, params.contract_id)
    document = contracts.document(
        ctx.db, params.project_id, params.contract_id, history=params.include_history
    )
    if header is None or document is None:
        raise no_contract(params)
    facts = contracts.facts_of(ctx.db, params.contract_id)
    current = domain.current_of(facts)
    who = actor_of(ctx)
    own = who.repos.get(params.project_id)
    members = {repo.repo_id: repo for repo in projects.repos(ctx.db, params.project_id)}
    names = ProjectNames(
        params.project_id, project.name, {member.repo_id: member.name for member in project.members}
    )
    name_of = names.repos.get
    subject = ContractSubject(names, params.contract_id, header.name, header.type, facts)
    shown = {
        "contract": document,
        "projectName": project.name,
        "changeNote": current.note,
        "agreementPolicy": current.policy,
        "verificationPolicy": current.verification or "word",
        "parties": _parties(header.type, facts, members),
        "round": domain.round_of(facts, current),
        "ownSteps": [_own_step(item) for item in attention([subject], who)],
        "awaitedSteps": [
            present(
                {
                    "id": step.id,
                    "kind": step.kind,
                    "since": iso(step.since),
                    "repoId": step.repo_id,
                    "name": name_of(step.repo_id),
                }
            )
            for step in openings(params.project_id, params.contract_id, facts)
        ],
        "responses": [_response(fact, names) for fact in responses_to(facts, current)],
        "verifications": [_verification(fact, names) for fact in verifications_of(facts, current)],
        "receipts": shown_receipts(ctx, params.contract_id, project, header, facts),
        "unproven": unproven_of(facts, names.repos),
        "changesSince": _changes(ctx.node, header.type, facts, own),
        "conflicts": len(domain.conflicts_of(facts)),
    }
    return present(shown)


OWN_STEP = ("id", "kind", "urgency", "since", "summary", "next")
"""The members of an attention item of an own step."""


def _own_step(item: WaitingItem) -> dict[str, Any]:
    wire = item.wire()
    return {name: wire[name] for name in OWN_STEP}


def _parties(type: ContractType, facts: Facts, members: Mapping[str, Repo]) -> list[dict[str, Any]]:
    """The OverviewParty objects of the current version."""
    repo_roles = {repo_id: member.role for repo_id, member in members.items()}
    roles = domain.roles_in(type, facts, domain.current_of(facts), repo_roles)
    return [_party(repo_id, members.get(repo_id), role) for repo_id, role in roles.items()]


def _party(repo_id: str, member: Repo | None, side: PartyRole) -> dict[str, Any]:
    return present(
        {
            "repoId": repo_id,
            "name": member and member.name,
            "role": member and member.role,
            "side": side,
            "agentId": member and member.agent_id,
        }
    )


def _response(fact: ResponseFact, names: ProjectNames) -> dict[str, Any]:
    return _author(fact, names) | present(
        {
            "action": fact.action,
            "comment": fact.comment,
            "suggestedChange": fact.suggested_change,
        }
    )


def _verification(fact: VerificationFact, names: ProjectNames) -> dict[str, Any]:
    return _author(fact, names) | present(
        {
            "round": fact.round,
            "result": fact.result,
            "notes": fact.notes,
            "failureDetails": fact.details,
        }
    )


def _author(fact: ResponseFact | VerificationFact, names: ProjectNames) -> dict[str, Any]:
    return present(
        {
            "repoId": fact.repo_id,
            "name": names.repos.get(fact.repo_id),
            "agentId": fact.agent_id,
            "timestamp": iso(fact.stamp),
        }
    )


def _changes(
    node: Node, type: ContractType, facts: Facts, repo_id: str | None
) -> dict[str, Any] | None:
    """The ChangesSince object for a reader, who may hold no repo."""
    if repo_id is not None and knows_current(facts, repo_id):
        return None
    compared = compared_version(facts, repo_id or "")
    if compared is None:
        return None
    current = domain.current_of(facts)
    diff = bounded_diff(compared.version.content, current.content)
    return {
        **content_reading.compared(node, type, compared.version, current).wire(),
        "version": compared.version.version,
        "basis": compared.basis,
        "lines": diff.lines,
        "more": diff.more,
    }
