"""cacp/project/board: a project at a glance, and who must act for it to go on."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from schemas.base import iso, present
from schemas.plain import one_line
from schemas.project_board import BoardParams, ProjectBoard
from server.domain import project_board as domain
from server.domain.agent_list import AWAKE
from server.domain.agents import identity
from server.domain.project_board import BoardCard, CardColumn, RepoLoad
from server.methods.base import Context, cursor_after, no_project, open_project, parse_cursor, reads
from server.store import context_packets, lifecycle, projects
from server.store import project_board as store
from server.store.projects import Repo, RepoMember

QUESTIONS_MAX = 10
DECISIONS_MAX = 5
TEXT_WIDTH = 500
"""Characters of a text of an agent that a board or a timeline shows."""
Json = dict[str, Any]


class Members(NamedTuple):
    """A project's repos by id, for what shows their names and holders."""

    by_id: Mapping[str, RepoMember]

    @classmethod
    def of(cls, members: Iterable[RepoMember]) -> "Members":
        return cls({member.repo_id: member for member in members})

    def name(self, repo_id: str) -> str | None:
        member = self.by_id.get(repo_id)
        return member and member.name

    def holder(self, repo_id: str) -> str | None:
        member = self.by_id.get(repo_id)
        return member and member.agent_id


@reads(
    "cacp/project/board",
    BoardParams,
    ProjectBoard,
    wide=True,
    instead="it with a smaller limit",
)
def board(ctx: Context, params: BoardParams) -> Json:
    """Return a project as a board: its contracts by status with the steps that they wait for, the
    repos with their agents and how much waits for each, open questions, recent decisions, and the
    progress. A column shows the contracts that have waited longest; `status` with the column's
    `nextCursor` as `cursor` continues it.
    """
    project = open_project(ctx, params.project_id)
    header = projects.header(ctx.db, params.project_id)
    if header is None:
        raise no_project(ctx, params.project_id)
    members = Members.of(project.members)
    cards = store.cards(ctx.db, params.project_id)
    after = None if params.cursor is None else parse_cursor(params.cursor)
    columns = domain.columns(cards, params.limit, status=params.status, after=after)
    questions, question_count = store.open_questions(ctx.db, params.project_id, QUESTIONS_MAX)
    register = lifecycle.find(ctx.db, params.project_id) if project.is_archived else None
    shown = {
        "projectId": header.project_id,
        "name": header.name,
        "objective": header.objective,
        "status": header.status,
        "agreementPolicy": header.agreement_policy,
        "verificationPolicy": header.verification_policy,
        "createdAt": iso(header.created_at),
        "archivedBy": register and register.by,
        "archivedAt": register and iso(register.stamp),
        "progress": progress(cards),
        "columns": [shown_column(column, members) for column in columns],
        "repos": _repos(ctx, params.project_id, domain.loads(cards)),
        "questions": [_question(packet, members) for packet in questions],
        "questionCount": question_count,
        "decisions": _decisions(ctx, params.project_id, members),
    }
    return present(shown)


def progress(cards: list[BoardCard]) -> Json:
    """The ProjectProgress object."""
    return {
        "contractCount": len(cards),
        "verifiedCount": sum(card.status == "verified" for card in cards),
        "waitingCount": sum(bool(card.steps) for card in cards),
    }


def shown_column(column: CardColumn, members: Members) -> Json:
    """The BoardColumn object."""
    cursor = cursor_after(*column.cards[-1].rank) if column.more else None
    contracts = [_contract(card, members) for card in column.cards]
    shown = {"status": column.status, "count": column.total, "contracts": contracts}
    return present({**shown, "nextCursor": cursor})


def _contract(card: BoardCard, members: Members) -> Json:
    since = card.waiting_since
    return present(
        {
            "contractId": card.contract_id,
            "type": card.type,
            "name": card.name,
            "version": card.version,
            "status": card.status,
            "proposedBy": card.proposed_by,
            "proposedByName": members.name(card.proposed_by),
            "updatedAt": iso(card.updated_at),
            "waitingSince": None if since is None else iso(since),
            "isInConflict": any(step.kind == "conflict" for step in card.steps),
            "awaitedSteps": [
                present(
                    {
                        "kind": step.kind,
                        "repoId": step.repo_id,
                        "name": members.name(step.repo_id),
                        "agentId": members.holder(step.repo_id),
                        "since": iso(step.since),
                    }
                )
                for step in card.steps
            ],
        }
    )


def _repos(ctx: Context, project_id: str, loads: Mapping[str, RepoLoad]) -> list[Json]:
    """The repos with their agents: the one that most contracts wait for comes first."""
    calls = ctx.node.last_calls if ctx.caller.sees_agents else {}
    # A read may have no time of its own; its caller has just called.
    now = max(ctx.now, max(calls.values(), default=0))

    def shown(repo: Repo) -> Json:
        load = loads.get(repo.repo_id)
        seen = repo.agent_id and calls.get(identity(repo.agent_id))
        return present(
            {
                "repoId": repo.repo_id,
                "name": repo.name,
                "role": repo.role,
                "agentId": repo.agent_id,
                "lastSeen": iso(seen) if seen else None,
                "isAwake": now - seen <= AWAKE if seen else None,
                "steps": load.steps if load else {},
                "contractCount": load.contracts if load else 0,
                "waitingSince": iso(load.since) if load else None,
            }
        )

    listed = [shown(repo) for repo in projects.repos(ctx.db, project_id)]
    return sorted(listed, key=lambda repo: (-repo["contractCount"], repo.get("waitingSince", "")))


def _question(packet: Json, members: Members) -> Json:
    content = packet["content"]
    return _by(packet, members) | {
        "askedAt": packet["timestamp"],
        "question": excerpt(content.get("question", content)),
        "isUrgent": content.get("urgent") is True,
    }


def _decisions(ctx: Context, project_id: str, members: Members) -> list[Json]:
    """The newest decisions first."""
    packets = context_packets.recent(
        ctx.db,
        project_id,
        type="decision",
        contract_id=None,
        since=-1,
        before=None,
        limit=DECISIONS_MAX,
    )
    return [_decision(orjson.loads(orjson.dumps(packet)), members) for packet in reversed(packets)]


def _decision(packet: Json, members: Members) -> Json:
    content = packet["content"]
    chosen = content.get("chosen")
    shown = {
        "decidedAt": packet["timestamp"],
        "decision": excerpt(content.get("decision", content)),
        "chosen": None if chosen is None else excerpt(chosen),
    }
    return _by(packet, members) | present(shown)


def _by(packet: Json, members: Members) -> Json:
    return present(
        {
            "packetId": packet["packet_id"],
            "repoId": packet["from_repo"],
            "name": members.name(packet["from_repo"]),
            "agentId": packet["from_agent"],
        }
    )


def excerpt(value: Any) -> str:
    """A value of an agent on one line, cut to TEXT_WIDTH characters."""
    return one_line(value if isinstance(value, str) else orjson.dumps(value).decode(), TEXT_WIDTH)
