"""cacp/contract/*: interface agreements (CACP 2.0, Contract Methods; design §5, §7)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from contracts.changes import ContractComparison
from contracts.plain_endpoint import is_plain_endpoint
from schemas.base import iso, present
from schemas.contract import (
    Contract,
    ContractParams,
    ContractStatus,
    ContractType,
    GetContractParams,
    ListConflictsParams,
    ListConflictsResult,
    ListContractsParams,
    ListContractsResult,
    ProposeParams,
    ProposeResult,
    RespondParams,
    RespondResult,
    TimelineResult,
    UpdateContractParams,
    UpdateContractResult,
)
from schemas.dialect import DialectName, Verdict
from schemas.facts import Fact, VersionFact, members_of
from schemas.verification import PartyRole
from server.domain import contract as domain
from server.domain import contract_steps as steps
from server.domain.authorship import check_record, check_sendable
from server.domain.canonical import digest
from server.domain.contract import Facts
from server.domain.contract_steps import Party
from server.domain.errors import InvalidInput, NotFound, TooLarge
from server.domain.identifiers import begun_by
from server.domain.terms import VersionTerms, terms_of
from server.domain.timeline import timeline_of
from server.methods.base import (
    CallSession,
    Context,
    free_id,
    open_project,
    page_of,
    party,
    reads,
    writes,
)
from server.methods.cacp import content_reading
from server.store import contracts
from server.store.contracts import ContractHeader
from server.store.projects import Membership

HISTORY_MAX = 4_000_000
"""Characters of former versions beyond which a contract accepts no update: reads of the whole
contract carry all of them."""


@dataclass(slots=True)
class OpenContract:
    """A contract loaded for a step, with its facts and the party that acts."""

    ctx: Context
    project_id: str
    contract_id: str
    project: Membership
    who: Party
    header: ContractHeader
    facts: Facts

    def terms(self, parties: Sequence[str], named: Mapping[str, PartyRole] | None) -> VersionTerms:
        """The terms of the next version. Raises InvalidInput for roles that don't fit."""
        current = domain.current_of(self.facts)
        first_author = domain.line_of(self.facts)[0].repo_id
        project = self.project.terms
        return terms_of(
            project, self.header.type, parties, named, first_author=first_author, before=current
        )

    def apply(self, more: Iterable[Fact]) -> ContractStatus:
        """Add a step's facts and record the change; returns the contract's status afterwards.

        Known facts, as a retry gives them, are not recorded again.
        """
        ctx = self.ctx
        news = [fact for fact in more if self.facts.get((fact.kind, fact.key)) != fact]
        for fact in news:
            check_record(members_of(fact), "params")
        if not news:
            return domain.status_of(self.facts)
        self.facts = contracts.add(
            ctx.db, self.project_id, self.contract_id, self.header, self.facts, news
        )
        status = domain.status_of(self.facts)
        ctx.record("contract", self.contract_id, self.project_id, status)
        return status


def open_contract(ctx: Context, params: ContractParams) -> OpenContract:
    """Load a contract for a step by the caller.

    Raises NotFound, and Forbidden when the caller holds no repo of the project.
    """
    project = open_project(ctx, params.project_id)
    header = contracts.header_of(ctx.db, params.project_id, params.contract_id)
    if header is None:
        raise no_contract(params)
    return OpenContract(
        ctx,
        params.project_id,
        params.contract_id,
        project,
        party(ctx, params.project_id, project),
        header,
        contracts.facts_of(ctx.db, params.contract_id),
    )


def no_contract(params: ContractParams) -> NotFound:
    return NotFound(
        f"There is no contract {params.contract_id} in project {params.project_id}",
        kind="contract",
        contractId=params.contract_id,
    )


async def _reading(
    session: CallSession, params: ProposeParams, write: Callable[[], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    """A proposal, whose content is read before it is written."""
    if params.dialect is None and is_plain_endpoint(params.content):
        return await write() | content_reading.PLAIN
    interface = await content_reading.checked(params.content, params.dialect, params.type)
    return await write() | content_reading.how_read(interface)


@writes("cacp/contract/propose", ProposeParams, ProposeResult, around=_reading)
def propose(ctx: Context, params: ProposeParams) -> dict[str, Any]:
    """Propose an interface contract. Its parties are the named repos, else all of the project. The
    result says in which dialect the content was read, and what is odd in it. In a dialect that is
    declared, an invalid content is refused with reason `invalid_content`.
    """
    project = open_project(ctx, params.project_id)
    who = party(ctx, params.project_id, project)
    contract_id = free_id(
        ctx,
        partial(begun_by, ctx.node.agent_id, params.project_id),
        lambda candidate: contracts.project_of(ctx.db, candidate) is not None,
    )
    parties = _parties(project, params.parties)
    named = _roles(project, params.roles)
    terms = terms_of(project.terms, params.type, parties, named, first_author=who.repo_id)
    version = VersionFact(
        version=1,
        digest=check_sendable(params.content),
        content=params.content,
        repo_id=who.repo_id,
        agent_id=who.agent_id,
        parties=parties,
        policy=project.agreement_policy,
        verification=terms.verification,
        dialect=params.dialect,
        roles=terms.frozen,
        stamp=ctx.stamp,
    )
    check_record(members_of(version), "params")
    header = ContractHeader(params.type, params.name, ctx.stamp)
    contracts.insert(ctx.db, params.project_id, contract_id, header, version)
    ctx.record("contract", contract_id, params.project_id, "proposed")
    shown = {"contractId": contract_id, "version": 1, "status": "proposed"}
    return shown | {"roles": by_name(project, terms.roles)}


@writes("cacp/contract/respond", RespondParams, RespondResult)
def respond(ctx: Context, params: RespondParams) -> dict[str, Any]:
    """Agree to the current version, request a change, or reject it. An agreement is always
    recorded, but it returns the status `agreed` only when the contract is agreed; while a request
    for a change or a rejection by another party stands, or agreements are missing, it returns the
    contract's status. Further parties may agree to a contract that is agreed.
    """
    check_sendable(params.suggested_change, "suggestedChange")
    contract = open_contract(ctx, params)
    steps.check_version(contract.facts, params.version)
    response = steps.respond(
        contract.facts,
        contract.who,
        params.action,
        ctx.stamp,
        comment=params.comment,
        suggested_change=params.suggested_change,
    )
    status = contract.apply([response])
    return {
        "status": steps.outcome_of(params.action, status),
        "version": response.version,
        "contractStatus": status,
        "contractVersion": response.version,
    }


async def _comparing(
    session: CallSession,
    params: UpdateContractParams,
    write: Callable[[], Awaitable[dict[str, Any]]],
) -> dict[str, Any]:
    """An update, whose content is read before it is written, and compared after."""
    written_in = await session.read_wide(lambda ctx: _written_in(ctx, params))
    if written_in is None:
        # The write says what is wrong.
        return await write()
    type, known = written_in
    interface = await content_reading.checked(params.content, params.dialect or known, type)
    answer = await write()
    basis, author = answer.pop("basis"), answer.pop("author")
    comparison = await session.read_wide(lambda ctx: _compared(ctx, type, params, basis))
    return answer | {
        **content_reading.how_read(interface),
        "comparison": {
            "against": basis,
            "concerns": content_reading.concerned(comparison, answer["roles"], author),
            **comparison.wire(),
        },
    }


def _written_in(
    ctx: Context, params: ContractParams
) -> tuple[ContractType, DialectName | None] | None:
    """The type of a contract, and the dialect that its current version was declared to be in."""
    header = contracts.header_of(ctx.db, params.project_id, params.contract_id)
    if header is None:
        return None
    current = domain.current_of(contracts.facts_of(ctx.db, params.contract_id))
    return header.type, current.dialect


def _compared(
    ctx: Context, type: ContractType, params: UpdateContractParams, basis: int
) -> ContractComparison:
    """The content of an update beside a version that it replaces."""
    facts = contracts.facts_of(ctx.db, params.contract_id)
    current = domain.current_of(facts)
    before = {fact.version: fact for fact in domain.line_of(facts)}.get(basis, current)
    after = replace(
        before,
        content=params.content,
        digest=digest(params.content),
        dialect=params.dialect or before.dialect,
    )
    return content_reading.compared(ctx.node, type, before, after)


@writes("cacp/contract/update", UpdateContractParams, UpdateContractResult, around=_comparing)
def update(ctx: Context, params: UpdateContractParams) -> dict[str, Any]:
    """Write the next version of a contract that is proposed or in negotiation. The result compares
    it with the last version that was agreed, else with the one before, and names the repos that it
    burdens; with `dryRun` nothing else is done.
    """
    contract = open_contract(ctx, params)
    steps.check_version(contract.facts, params.version)
    if contracts.history_size(ctx.db, params.project_id, params.contract_id) > HISTORY_MAX:
        raise TooLarge(
            f"The contract's {len(domain.versions_of(contract.facts))} versions exceed "
            f"{HISTORY_MAX} characters: propose a new contract",
            limit=HISTORY_MAX,
        )
    parties = _parties(contract.project, params.parties)
    terms = contract.terms(parties, _roles(contract.project, params.roles))
    version = steps.update(
        contract.facts,
        contract.who,
        params.content,
        check_sendable(params.content),
        parties,
        ctx.stamp,
        params.change_note,
        terms,
        params.dialect or domain.current_of(contract.facts).dialect,
    )
    basis = domain.last_agreed(contract.facts) or domain.current_of(contract.facts)
    names = {member.repo_id: member.name for member in contract.project.members}
    answer = {
        "contractId": params.contract_id,
        "version": version.version,
        "roles": by_name(contract.project, terms.roles),
        # For the comparison, which is made when this is written.
        "basis": basis.version,
        "author": names.get(contract.who.repo_id),
    }
    if params.dry_run:
        return answer | {"status": domain.status_of(contract.facts), "dryRun": True}
    return answer | {"status": contract.apply([version])}


@reads(
    "cacp/contract/get",
    GetContractParams,
    Contract,
    wide=lambda params: params.include_history,
    instead="it without includeHistory",
)
def get(ctx: Context, params: GetContractParams) -> Any:
    """Return a contract in its current state; `includeHistory` adds its former versions."""
    document = contracts.document(
        ctx.db, params.project_id, params.contract_id, history=params.include_history
    )
    if document is None:
        open_project(ctx, params.project_id)
        raise no_contract(params)
    return document


@reads("cacp/contract/list", ListContractsParams, ListContractsResult, wide=True)
def list_(ctx: Context, params: ListContractsParams) -> dict[str, Any]:
    """List the contracts of a project in short form, by status or type."""
    open_project(ctx, params.project_id)
    rows = contracts.summaries(
        ctx.db,
        params.project_id,
        after=params.cursor or "",
        status=params.status,
        type=params.type,
        limit=params.limit + 1,
    )
    page, more = page_of(rows, params.limit, lambda row: row["contractId"])
    return {"contracts": page, **more}


@reads("cacp/contract/timeline", ContractParams, TimelineResult, wide=True)
def timeline(ctx: Context, params: ContractParams) -> dict[str, Any]:
    """List the steps of a contract: who, what, when and why; oldest first."""
    project = open_project(ctx, params.project_id)
    header = contracts.header_of(ctx.db, params.project_id, params.contract_id)
    if header is None:
        raise no_contract(params)
    names = {member.repo_id: member.name for member in project.members}
    facts = contracts.facts_of(ctx.db, params.contract_id)
    current = domain.current_of(facts)
    effects = _effects(ctx, header.type, domain.line_of(facts))
    return {
        "contractId": params.contract_id,
        "agreementPolicy": current.policy,
        "verificationPolicy": current.verification or "word",
        "parties": list(current.parties),
        "timeline": [
            present(
                {
                    "timestamp": iso(entry.at),
                    "step": entry.step,
                    "version": entry.version,
                    "round": entry.round,
                    "repoId": entry.repo_id,
                    "name": names.get(entry.repo_id),
                    "agentId": entry.agent_id,
                    "note": entry.note,
                    "effect": effects.get(entry.version) if entry.step == "updated" else None,
                    "details": entry.details,
                }
            )
            for entry in timeline_of(facts)
        ],
    }


def _effects(ctx: Context, type: ContractType, line: list[VersionFact]) -> dict[int, Verdict]:
    """What each version but the first means for consumers as built to the one before it."""
    return {
        after.version: content_reading.compared(ctx.node, type, before, after).consumer
        for before, after in pairwise(line)
    }


@reads(
    "cacp/contract/conflicts",
    ListConflictsParams,
    ListConflictsResult,
    wide=True,
    instead="it with contractId, for one contract",
)
def conflicts(ctx: Context, params: ListConflictsParams) -> dict[str, Any]:
    """List versions that lost a race, each with the current version and both contents (design
    §7)."""
    open_project(ctx, params.project_id)
    ids = contracts.updated(ctx.db, params.project_id)
    if params.contract_id is not None:
        ids = [contract_id for contract_id in ids if contract_id == params.contract_id]
    lost_races = [
        present(
            {
                "contractId": contract_id,
                "version": lost.version,
                "content": lost.content,
                "proposedBy": lost.repo_id,
                "timestamp": iso(lost.stamp),
                "changeNotes": lost.note,
                "parties": list(lost.parties),
                "currentVersion": current.version,
                "currentContent": current.content,
                "currentParties": list(current.parties),
            }
        )
        for contract_id in ids
        for lost, current in contracts.conflicts(ctx.db, contract_id)
    ]
    return {"conflicts": lost_races}


def by_name(project: Membership, roles: Mapping[str, PartyRole]) -> dict[str, PartyRole]:
    """Roles by the names of their repos."""
    names = {member.repo_id: member.name for member in project.members}
    return {names.get(repo_id, repo_id): role for repo_id, role in roles.items()}


def _roles(
    project: Membership, named: Mapping[str, PartyRole] | None
) -> dict[str, PartyRole] | None:
    """Roles by repo id, of repos that may be named by name or id. Raises InvalidInput."""
    if named is None:
        return None
    ids = _repo_ids(project, list(named), "roles")
    return dict(zip(ids, named.values(), strict=True))


def _parties(project: Membership, named: list[str] | None) -> tuple[str, ...]:
    """The repo ids of the parties, which may be named by repo name or id. Raises InvalidInput."""
    if named is None:
        return tuple(member.repo_id for member in project.members)
    return tuple(dict.fromkeys(_repo_ids(project, named, "parties")))


def _repo_ids(project: Membership, named: list[str], where: str) -> list[str]:
    """The ids of repos that are named by name or id. Raises InvalidInput for others."""
    known = {member.name: member.repo_id for member in project.members}
    known |= {member.repo_id: member.repo_id for member in project.members}
    missing = [name for name in named if name not in known]
    if missing:
        raise InvalidInput(
            f"{where}: the project has no repos {', '.join(missing)}",
            path=where,
            repos=[member.name for member in project.members],
        )
    return [known[name] for name in named]
