"""What is open between all agents: the rows that `server.domain.attention.overview` decides on."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from schemas.acp import ACPPriority
from schemas.base import stamp_of
from schemas.handoff import HandoffStatus
from schemas.plain import one_line
from server.domain.agents import identity
from server.domain.attention.items import ItemCache, Opening
from server.domain.attention.overview import AwaitedParty, OpenSubjectNote, ProjectRepos
from server.domain.attention.questions import SHOWN_WIDTH, first_line
from server.store.connection import Connection
from server.store.sql import SQL

_OPENINGS: str = SQL.openings_everywhere.sql
_REPOS: str = SQL.repos_of_projects.sql

_SUBJECT_AND_KIND = itemgetter(6, 0, 1, 3)
"""Of a row: the project, the subject, its revision, and the kind."""

ROWS_MAX = 2_000
"""The most rows of each kind of mail, and of handoffs, that an overview is made from."""
SCARCE_MAX = 200
"""The most repos without an agent, lost claims and dead letters; the newest."""

Notes = ItemCache[OpenSubjectNote]
SubjectKey = tuple[str, str, int, bool]
"""Project, contract or question, revision, and whether it is a question."""


class OpenGroup(NamedTuple):
    """The openings of one kind on one subject."""

    key: SubjectKey
    openings: list[Opening]

    @property
    def subject_id(self) -> str:
        return self.key[1]


class MailQuery(NamedTuple):
    """A question by mail that nobody has answered, and one of its recipients."""

    message_id: str
    from_agent: str
    recipient: str
    asked_at: int
    priority: ACPPriority
    question: str
    open_to_humans: bool


class UnreadBox(NamedTuple):
    """A mailbox with unread mail; `oldest` is a stamp."""

    address: str
    unread: int
    oldest: int


class OpenHandoff(NamedTuple):
    """A handoff that has not ended. `since` is the stamp of its last step."""

    handoff_id: str
    title: str
    status: HandoffStatus
    from_agent: str
    to_agent: str
    priority: ACPPriority
    restricted: bool
    needs_human: bool
    due_at: int | None
    escalated_at: int | None
    since: int


class UndeliveredMail(NamedTuple):
    """A message that did not reach a recipient."""

    message_id: str
    from_agent: str
    recipient: str
    created_at: int
    open_to_humans: bool


class LostClaim(NamedTuple):
    """A claim that lost to the holder's; agents are addresses, `claimed_at` is a stamp."""

    project_id: str
    repo_id: str
    loser: str
    holder: str
    claimed_at: int


def open_groups(db: Connection, projects: str | None) -> list[OpenGroup]:
    """All openings by subject and kind. `projects` is JSON, a list of the only ones, or None."""
    groups = []
    rows = db.execute(_OPENINGS, {"projects": projects}).fetchall()
    for (project_id, subject_id, revision, kind), members in groupby(rows, _SUBJECT_AND_KIND):
        key = project_id, subject_id, revision, kind == "answer"
        groups.append(OpenGroup(key, [Opening(*row[2:]) for row in members]))
    return groups


def notes_of(
    db: Connection, keys: Iterable[SubjectKey], cache: Notes
) -> dict[SubjectKey, OpenSubjectNote]:
    """What is shown of contracts and questions. What is not in the cache is put there."""
    notes: dict[SubjectKey, OpenSubjectNote] = {}
    missing: dict[tuple[str, str, bool], SubjectKey] = {}
    for key in keys:
        known = cache.get(key)
        if known is None:
            missing[key[0], key[1], key[3]] = key
        else:
            notes[key] = known
    for place, note in _read_notes(db, missing):
        notes[missing[place]] = note
        cache.put(missing[place], note)
    return notes


def _read_notes(
    db: Connection, places: Iterable[tuple[str, str, bool]]
) -> Iterator[tuple[tuple[str, str, bool], OpenSubjectNote]]:
    contracts = orjson.dumps([place[:2] for place in places if not place[2]]).decode()
    for project_id, contract_id, name, author, version, fact in SQL.contract_notes(
        db, keys=contracts
    ):
        parties, by = orjson.loads(fact) if fact else ([], None)
        interested = tuple(dict.fromkeys([*parties, author]))
        note = OpenSubjectNote(name, author, by and identity(by), version, interested)
        yield (project_id, contract_id, False), note
    questions = orjson.dumps([place[:2] for place in places if place[2]]).decode()
    for project_id, packet_id, author, by, document in SQL.question_notes(db, keys=questions):
        content = orjson.loads(document)
        text = first_line(content.get("question"), content)
        note = OpenSubjectNote(text, author, identity(by), interested=(author,))
        yield (project_id, packet_id, True), note


def projects_of(
    db: Connection, project_ids: Iterable[str]
) -> tuple[dict[str, ProjectRepos], dict[str, str]]:
    """Projects with their repos, and the address of who created each here."""
    ids = orjson.dumps(sorted(project_ids)).decode()
    names: dict[str, str] = {}
    creators: dict[str, str] = {}
    repos: dict[str, dict[str, AwaitedParty]] = {}
    for project_id, name, creator, repo_id, repo, agent_id in db.execute(_REPOS, {"ids": ids}):
        if project_id not in names:
            names[project_id], repos[project_id] = name, {}
            if creator:
                creators[project_id] = identity(creator)
        if repo_id is not None:
            agent = agent_id and identity(agent_id)
            repos[project_id][repo_id] = AwaitedParty(repo_id, repo, agent)
    shown = {id: ProjectRepos(id, name, repos[id]) for id, name in names.items()}
    return shown, creators


def vacant_repos(db: Connection, projects: str | None) -> list[tuple[str, str, int]]:
    """The repos that nobody holds: project, repo and the stamp since when."""
    return list(SQL.vacant_repos(db, projects=projects, limit=SCARCE_MAX))


def lost_claims(db: Connection, projects: str | None) -> list[LostClaim]:
    """The claims that lost to another agent's."""
    rows = SQL.lost_claims_everywhere(db, projects=projects, limit=SCARCE_MAX)
    claims = [LostClaim(row[0], row[1], identity(row[2]), identity(row[3]), row[4]) for row in rows]
    return [claim for claim in claims if claim.loser != claim.holder]


def has_written_about(db: Connection, claim: LostClaim, topic: str) -> bool:
    """Whether the loser of a claim has written to the holder about it."""
    asked = {"identity": claim.loser, "topic": topic, "holder": claim.holder}
    return SQL.has_written_about(db, **asked) is not None


def mail_queries(db: Connection, now: str) -> list[MailQuery]:
    """The questions by mail that wait for an answer, the oldest first. Those that have expired by
    `now`, ISO 8601, don't count."""
    return [
        MailQuery(
            message_id,
            identity(sender),
            recipient,
            stamp_of(created_at),
            priority,
            one_line(str(question or ""), SHOWN_WIDTH) or "a question",
            bool(open_to_humans),
        )
        for message_id, sender, recipient, created_at, priority, question, open_to_humans in (
            SQL.queries_everywhere(db, now=now, limit=ROWS_MAX)
        )
    ]


def unread_boxes(db: Connection) -> list[UnreadBox]:
    """The mailboxes with unread mail."""
    rows: Iterable[tuple[Any, ...]] = SQL.unread_mailboxes(db, limit=ROWS_MAX)
    return [
        UnreadBox(address, count, stamp_of(oldest))
        for address, count, oldest in rows
        if oldest is not None
    ]


def open_handoffs(db: Connection) -> list[OpenHandoff]:
    """The handoffs of this node that have not ended, without drafts."""
    return [
        OpenHandoff(
            row[0],
            row[1],
            row[2],
            identity(row[3]),
            identity(row[4]),
            row[6],
            row[7] == "restricted",
            bool(row[8]),
            row[9],
            row[10],
            stamp_of(row[5]) if row[11] is None else row[11],
        )
        for row in SQL.open_handoffs(db, limit=ROWS_MAX)
    ]


def dead_letters(db: Connection) -> list[UndeliveredMail]:
    """The newest messages that did not reach a recipient and were not sent again."""
    return [
        UndeliveredMail(id, identity(sender), recipient, stamp_of(created_at), bool(open_to_humans))
        for id, sender, recipient, created_at, open_to_humans in SQL.newest_dead_letters(
            db, limit=SCARCE_MAX
        )
    ]


def agents_with_keys(db: Connection) -> tuple[frozenset[str], frozenset[str]]:
    """The addresses of those that have a key here, and of the humans among them."""
    rows = list(SQL.agents_with_keys(db))
    everyone = frozenset(identity(agent_id) for agent_id, _ in rows)
    return everyone, frozenset(identity(agent_id) for agent_id, human in rows if human)
