"""What is open between all agents: what needs a person, what has waited too long, and the order.

| urgency or kind            | too long after |
|----------------------------|----------------|
| urgent                     | 10 minutes     |
| high, normal               | 1 hour         |
| implement, repair, verify  | 4 hours        |
| low                        | 24 hours       |
| a handoff                  | its deadline (SLA, or the end of its offer); without one, as above |

A person is needed for what only a human's key decides, what is asked of a human, conflicts,
escalated handoffs, messages that reached nobody, repos that nobody took in time, and agents that
are away while something has waited too long for them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from schemas.attention import Urgency
from schemas.attention_overview import OverviewGroup, OverviewKind, PersonReason
from server.domain.attention.items import URGENCIES, ItemSubject, Opening, item_id

MINUTE = 60 * 1_000_000
HOUR = 60 * MINUTE
PATIENCE: dict[Urgency, int] = {
    "urgent": 10 * MINUTE,
    "high": HOUR,
    "normal": HOUR,
    "low": 24 * HOUR,
}
WORK: frozenset[OverviewKind] = frozenset({"implement", "repair", "verify"})
WORK_PATIENCE = 4 * HOUR
AWAY = HOUR
"""Microseconds since its last call after which an agent counts as away."""
GROUPS: tuple[OverviewGroup, ...] = ("person", "overdue", "in_time")

Rank = tuple[int, int, int, int, str]


class AwaitedParty(NamedTuple):
    """A repo and its agent, by address; either may be missing."""

    repo_id: str | None = None
    repo: str | None = None
    agent: str | None = None

    @property
    def holder(self) -> str | None:
        """Whom the step is expected of: the agent, or the repo while nobody holds it."""
        return self.agent or self.repo_id


class OpenItem(NamedTuple):
    """Something that is open. `must_act` are those who may take the next step; it is empty if only
    a person can. `interested` wait for the outcome. `due_at` is a stamp, where a deadline is kept.
    """

    id: str
    kind: OverviewKind
    urgency: Urgency
    since: int
    subject: ItemSubject
    must_act: tuple[AwaitedParty, ...] = ()
    interested: tuple[AwaitedParty, ...] = ()
    project_id: str | None = None
    project: str | None = None
    version: int | None = None
    by: str | None = None
    any_of: bool = False
    due_at: int | None = None
    reason: PersonReason | None = None
    waiting: int | None = None


class WeighedItem(NamedTuple):
    """An item with who waits for it, and how many agents that are."""

    item: OpenItem
    blocks: tuple[AwaitedParty, ...]
    unblocks: int


class JudgedItem(NamedTuple):
    """An item with what follows from the time."""

    rank: Rank
    item: OpenItem
    blocks: tuple[AwaitedParty, ...]
    unblocks: int
    is_overdue: bool

    @property
    def group(self) -> OverviewGroup:
        return GROUPS[self.rank[0]]


@dataclass(frozen=True, slots=True)
class OpenSubjectNote:
    """What the overview shows of a contract or a question. `interested` are ids of repos; `author`
    is the repo that proposed or asked, `by` its agent."""

    name: str
    author: str
    by: str | None = None
    version: int | None = None
    interested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectRepos:
    """A project's repos, each with its name and its agent's address."""

    project_id: str
    name: str
    repos: Mapping[str, AwaitedParty]

    def party(self, repo_id: str) -> AwaitedParty:
        """A repo; with its id for a name while it is unknown here."""
        return self.repos.get(repo_id) or AwaitedParty(repo_id, repo_id)


def item_of(
    openings: list[Opening], subject_id: str, note: OpenSubjectNote, project: ProjectRepos
) -> OpenItem:
    """The openings of one kind on one subject, as one item."""
    first = openings[0]
    asks = first.kind == "answer"
    must_act: tuple[AwaitedParty, ...]
    if asks:
        must_act = tuple(
            party
            for repo_id, party in project.repos.items()
            if repo_id != first.not_repo and party.agent and party.agent != note.by
        )
    elif len(openings) == 1:
        must_act = (project.party(first.repo_id),)
    else:
        parties = [project.party(opening.repo_id) for opening in openings]
        must_act = tuple(sorted(parties, key=lambda party: party.repo or ""))
    interested: tuple[AwaitedParty, ...] = ()
    if first.kind != "conflict":
        interested = tuple([project.party(repo_id) for repo_id in note.interested])
    return OpenItem(
        first.id,
        first.kind,
        first.urgency,
        min(opening.since for opening in openings) if len(openings) > 1 else first.since,
        ItemSubject("question" if asks else "contract", subject_id, note.name),
        must_act,
        interested,
        project.project_id,
        project.name,
        note.version,
        note.by,
        any_of=asks or first.kind == "verify",
        reason="conflict" if first.kind == "conflict" else None,
    )


def blocked(item: OpenItem) -> tuple[AwaitedParty, ...]:
    """Who waits for the item: those interested for whom somebody else must act."""
    if not item.must_act:
        return item.interested
    first = item.must_act[0].holder
    if any(party.holder != first for party in item.must_act[1:]):
        return item.interested
    return tuple([party for party in item.interested if party.holder != first])


def is_overdue(item: OpenItem, now: int) -> bool:
    """Whether it has waited too long."""
    if item.due_at is not None:
        return now > item.due_at
    patience = PATIENCE[item.urgency]
    if item.kind in WORK:
        patience = max(patience, WORK_PATIENCE)
    return now - item.since > patience


def weighed(item: OpenItem) -> WeighedItem:
    """An item with who waits for it."""
    blocks = blocked(item)
    return WeighedItem(item, blocks, len({party.agent for party in blocks} - {None}))


def judged(items: Iterable[WeighedItem], now: int, humans: frozenset[str]) -> list[JudgedItem]:
    """The items in their order. `humans` are the addresses of people."""
    return sorted([_judged(each, now, humans) for each in items])


def _judged(each: WeighedItem, now: int, humans: frozenset[str]) -> JudgedItem:
    item, blocks, unblocks = each
    overdue = is_overdue(item, now)
    if item.reason is None:
        if humans and not item.any_of and any(party.agent in humans for party in item.must_act):
            item = item._replace(reason="asked")
    elif item.reason == "vacant" and not overdue:
        # Agents that could take it get the time to do so.
        item = item._replace(reason=None)
    group = 0 if item.reason is not None else 1 if overdue else 2
    rank = group, -unblocks, URGENCIES.index(item.urgency), item.since, item.id
    return JudgedItem(rank, item, blocks, unblocks, overdue)


def vacant(project: ProjectRepos, repo_id: str, since: int, items: Iterable[OpenItem]) -> OpenItem:
    """A repo that nobody holds, with those who wait for it among the items of its project."""
    party = project.party(repo_id)
    return _lack(
        OpenItem(
            item_id("join", project.project_id, repo_id, "overview"),
            "join",
            "normal",
            since,
            ItemSubject("repo", repo_id, party.repo or repo_id),
            (party,),
            project_id=project.project_id,
            project=project.name,
            reason="vacant",
        ),
        [item for item in items if party in item.must_act and not item.any_of],
    )


def away(items: Iterable[OpenItem], now: int, last_seen: Mapping[str, int]) -> Iterator[OpenItem]:
    """The agents for which something has waited too long while they are away. `last_seen` has the
    agents whose home is this node, each with the stamp of its last call or of the node's start."""
    late: dict[AwaitedParty, list[OpenItem]] = {}
    for item in items:
        if (item.any_of and len(item.must_act) > 1) or not is_overdue(item, now):
            continue
        for party in item.must_act:
            if party.repo_id and party.agent and now - last_seen.get(party.agent, now) > AWAY:
                late.setdefault(party, []).append(item)
    for party, waiting in late.items():
        first = min(waiting, key=lambda item: item.since)
        yield _lack(
            OpenItem(
                item_id("absent", first.project_id, *party),
                "absent",
                "high",
                first.since,
                ItemSubject("repo", party.repo_id or "", party.repo or ""),
                (party,),
                project_id=first.project_id,
                project=first.project,
                reason="absent",
            ),
            waiting,
        )


def _lack(item: OpenItem, waiting: list[OpenItem]) -> OpenItem:
    """The item for a missing agent, with those who wait for it."""
    blocks = dict.fromkeys(party for entry in waiting for party in blocked(entry))
    return item._replace(interested=tuple(blocks), waiting=len(waiting))
