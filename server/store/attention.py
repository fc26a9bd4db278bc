"""What waits for an agent: the facts that `server.domain.attention` decides on."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple, get_args

import orjson

from schemas.acp import ACPPriority
from schemas.attention import AttentionKind
from schemas.base import stamp_of
from schemas.handoff import HandoffStatus
from schemas.plain import one_line
from server.domain.agents import identity, same_agent
from server.domain.attention.claims import FreeRepoSubject, LostClaimSubject, topic_of
from server.domain.attention.contract_view import ContractSubject
from server.domain.attention.derive import AttentionFacts
from server.domain.attention.handoffs import HandoffSubject
from server.domain.attention.items import Opening, ProjectNames
from server.domain.attention.mail import GatedSubject, UnreadSubject
from server.domain.attention.questions import MailQuestionSubject, QuestionSubject
from server.domain.contract import current_of, status_of
from server.store import attention_index, changes, contracts, handoffs, messages, teams
from server.store.connection import Connection
from server.store.handoffs import Handoff
from server.store.sql import SQL

RULES = "1"
"""Changes with the rules of `server.domain.attention`: the next start then derives all openings
anew."""
_RULES_KEY = "attention_rules"

# Run for each hook of each agent: as text, which is faster than aiosql's own call.
_HELD: str = SQL.repos_held_by.sql
_OPENINGS: str = SQL.openings_for.sql
_NAMES: str = SQL.names_of_projects.sql
_FREE: str = SQL.free_repos.sql
_LOST_CLAIMS: str = SQL.lost_claims_of.sql
_QUERIES: str = SQL.queries_to.sql
_UNREAD: str = SQL.unread_by_priority.sql
_HANDOFFS: str = SQL.handoffs_waiting_for.sql
_ELSEWHERE: str = SQL.handoffs_elsewhere_waiting_for.sql

TITLE_WIDTH = 120
RELATED_MAX = 20
"""The most contracts that the answer to a question is said to be about."""
APPROVALS_MAX = 200
"""The most messages, and the most handoffs, that are listed for a human's approval."""


FREE_MAX = 20
"""The most free repos that an agent is asked to join, in the newest projects."""


class HeldRepo(NamedTuple):
    """A repo that an agent holds. `stamp` orders the repos of a project."""

    project_id: str
    repo_id: str
    name: str
    agent_id: str
    stamp: int


class OpenSubject(NamedTuple):
    """An opening, and the id of the contract or question on which it is. `revision` differs
    whenever the subject does."""

    subject_id: str
    opening: Opening
    revision: int


def held_repos(db: Connection, agent_id: str) -> list[HeldRepo]:
    """The repos that an agent holds, in the order of each project's repos."""
    rows = db.execute(_HELD, {"identity": identity(agent_id)})
    return [HeldRepo(*row) for row in rows]


def openings(db: Connection, agent_id: str) -> list[OpenSubject]:
    """The openings on contracts and questions for any repo that an agent holds."""
    rows = db.execute(_OPENINGS, {"identity": identity(agent_id)})
    return [OpenSubject(row[0], Opening(*row[2:]), row[1]) for row in rows]


def subject_of(
    db: Connection, entry: OpenSubject, project: ProjectNames
) -> ContractSubject | QuestionSubject | None:
    """The subject of an opening with all its facts; None when it is not stored."""
    if entry.opening.kind == "answer":
        return _question(db, entry.subject_id, project)
    return _contract(db, entry.subject_id, project)


def _contract(db: Connection, contract_id: str, project: ProjectNames) -> ContractSubject | None:
    header = contracts.header_of(db, project.project_id, contract_id)
    if header is None:
        return None
    facts = contracts.facts_of(db, contract_id)
    return ContractSubject(project, contract_id, header.name, header.type, facts)


def _question(db: Connection, packet_id: str, project: ProjectNames) -> QuestionSubject | None:
    at = {"project_id": project.project_id, "packet_id": packet_id}
    document = SQL.question_packet(db, **at)
    if document is None:
        return None
    packet = orjson.loads(document)
    return QuestionSubject(
        project,
        packet_id,
        packet["from_repo"],
        packet["from_agent"],
        stamp_of(packet["timestamp"]),
        packet["content"],
        # Peers write anything there; an answer may only name contracts that are here.
        tuple(
            contract_id
            for contract_id in packet["related_contracts"][:RELATED_MAX]
            if contracts.header_of(db, project.project_id, contract_id) is not None
        ),
        attention_index.replies_to(db, **at),
    )


def names_of(db: Connection, project_ids: Iterable[str]) -> dict[str, ProjectNames]:
    """The names of projects and of their repos, by project; without those unknown here."""
    ids = orjson.dumps(sorted(project_ids)).decode()
    names: dict[str, tuple[str, dict[str, str]]] = {}
    for project_id, name, repo_id, repo in db.execute(_NAMES, {"ids": ids}):
        repos = names.setdefault(project_id, (name, {}))[1]
        if repo_id is not None:
            repos[repo_id] = repo
    return {
        project_id: ProjectNames(project_id, name, repos)
        for project_id, (name, repos) in names.items()
    }


# --- what is an agent's, not a repo's -----------------------------------------------------------


def free_repos(db: Connection, agent_id: str, repo: str) -> list[FreeRepoSubject]:
    """The repos of a name that nobody holds, in projects that are not complete; without those that
    were released from the agent."""
    wanted = {"repo": repo, "identity": identity(agent_id), "limit": FREE_MAX}
    rows = db.execute(_FREE, wanted).fetchall()
    projects = names_of(db, {row[0] for row in rows}) if rows else {}
    return [
        FreeRepoSubject(projects[project_id], repo_id, objective, since)
        for project_id, repo_id, objective, since in rows
    ]


def lost_claims(db: Connection, agent_id: str) -> list[LostClaimSubject]:
    """The claims of an agent that lost to another agent's."""
    address = identity(agent_id)
    rows = db.execute(_LOST_CLAIMS, {"identity": address}).fetchall()
    projects = names_of(db, {row[0] for row in rows}) if rows else {}
    return [
        LostClaimSubject(
            projects[project_id],
            repo_id,
            loser,
            holder,
            claimed_at,
            has_written=SQL.has_written_about(
                db,
                identity=address,
                topic=topic_of(project_id, repo_id),
                holder=identity(holder),
            )
            is not None,
        )
        for project_id, repo_id, loser, holder, claimed_at in rows
        if not same_agent(loser, holder)
    ]


def mail(db: Connection, address: str, now: str) -> list[AttentionFacts]:
    """An agent's unread mail, and the questions in its mail that nobody has answered. Messages that
    have expired by `now`, ISO 8601, don't count."""
    asked: list[AttentionFacts] = [
        MailQuestionSubject(
            message_id,
            address,
            identity(from_agent),
            stamp_of(created_at),
            priority,
            topic,
            orjson.loads(payload_json),
            (),
        )
        for message_id, from_agent, created_at, priority, topic, payload_json in db.execute(
            _QUERIES, {"address": address, "now": now}
        )
    ]
    counts: Counter[Any] = Counter()
    oldest, newest = [], []
    for priority, count, first, last in db.execute(_UNREAD, {"address": address, "now": now}):
        counts[priority] = count
        oldest.append(stamp_of(first))
        newest.append(last)
    if counts:
        asked.append(UnreadSubject(address, counts, min(oldest), max(newest)))
    return asked


def waiting_handoffs(db: Connection, address: str) -> list[HandoffSubject]:
    """The handoffs in which a step of an agent may be due: as a party, as a member of their
    teamspaces, or as the receiver of one that another node holds."""
    rows = db.execute(_HANDOFFS, {"address": address}).fetchall()
    ids = [handoff_id for (handoff_id,) in rows]
    away = db.execute(_ELSEWHERE, {"address": address})
    return [*_handoff_subjects(db, ids), *(_offered(address, *row) for row in away)]


def _offered(
    address: str,
    handoff_id: str,
    status: HandoffStatus,
    sender: str,
    priority: ACPPriority,
    payload_json: str,
    created_at: str,
) -> HandoffSubject:
    """A handoff that another node holds and has offered to an agent here, by its offer."""
    payload = orjson.loads(payload_json)
    return HandoffSubject(
        handoff_id,
        one_line(payload["summary"], TITLE_WIDTH),
        payload["summary"],
        None,
        None,
        status,
        sender,
        address,
        priority,
        payload.get("package_hash") or "",
        stamp_of(created_at),
    )


def approvals(db: Connection) -> list[AttentionFacts]:
    """The messages and handoffs that wait for a human, the oldest first."""
    gated = [
        GatedSubject(
            message.id,
            message.from_agent,
            tuple(orjson.loads(message.to_agents_json)),
            message.type,
            message.priority,  # type: ignore[arg-type]
            message.topic or str(orjson.loads(message.payload_json)["summary"]),
            stamp_of(message.created_at),
            message.expires_at,
        )
        for message in messages.gated(db, "", APPROVALS_MAX)
    ]
    ids = [handoff.handoff_id for handoff in handoffs.unapproved(db, "", APPROVALS_MAX)]
    return [*gated, *_handoff_subjects(db, ids)]


def _handoff_subjects(db: Connection, ids: Iterable[str]) -> list[HandoffSubject]:
    read = (handoffs.find(db, handoff_id) for handoff_id in ids)
    return [_handoff_subject(db, handoff) for handoff in read if handoff is not None]


def _handoff_subject(db: Connection, handoff: Handoff) -> HandoffSubject:
    package = handoff.package
    policy, task = package["policy"], teams.task(db, handoff.task_id)
    restricted = policy["classification"] == "restricted"
    critical = package["task"]["priority"] == "critical"
    since = SQL.last_step_of(db, handoff_id=handoff.handoff_id)
    return HandoffSubject(
        handoff.handoff_id,
        handoff.title,
        handoff.reason,
        package["task"]["objective"],
        package["work_state"]["next_step"],
        handoff.status,
        handoff.from_agent,
        handoff.to_agent,
        package["task"]["priority"],
        handoff.package_hash,
        stamp_of(handoff.initiated_at) if since is None else since,
        needs_human=policy["requires_human_approval"] and handoff.human_approval is None,
        needs_team=bool(handoff.team_gate) and handoff.team_approval is None,
        restricted=restricted,
        human_approves=policy["requires_human_approval"],
        members=teams.members(db, handoff.team) if handoff.team else None,
        blocked=task is not None and task.status == "blocked",
        high_risk=restricted or critical or bool(task and task.high_risk),
    )


def open_counts(db: Connection) -> dict[str, float]:
    """How much waits for anybody, by kind: openings, unanswered questions by mail, handoffs,
    approvals, and mailboxes with unread mail."""
    counts: Counter[str] = Counter(attention_index.counts(db))
    for kind, count in SQL.waiting_of_agents(db):
        counts[kind] += count
    return {kind: counts[kind] for kind in get_args(AttentionKind)}


# --- deriving anew ------------------------------------------------------------------------------


def is_outdated(db: Connection) -> bool:
    """Whether the openings were derived by the rules of another release, or never."""
    return bool(SQL.meta_value(db, name=_RULES_KEY) != RULES)


def is_behind(db: Connection) -> bool:
    """Whether they were derived by the rules of an older release, or never. Where replicas of two
    releases run, a start of the older one leaves the newer rules alone."""
    derived = SQL.meta_value(db, name=_RULES_KEY)
    return derived is None or int(derived) < int(RULES)


def rebuild(db: Connection) -> None:
    """Derive all openings anew."""
    SQL.drop_openings(db)
    SQL.drop_opening_counts(db)
    for project_id, contract_id in list(SQL.contract_keys(db)):
        facts = contracts.facts_of(db, contract_id)
        if facts:
            current, status = current_of(facts), status_of(facts)
            attention_index.renew_contract(db, project_id, contract_id, facts, current, status)
    for project_id, packet_id in list(SQL.question_keys(db)):
        attention_index.renew_packet(db, project_id, packet_id)
    changes.put_meta(db, _RULES_KEY, RULES)
