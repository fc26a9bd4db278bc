"""cacp/attention/overview: what is open between all agents that the caller may see."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from schemas.attention_overview import (
    PARTIES_SHOWN,
    OverviewAttentionParams,
    OverviewAttentionResult,
)
from schemas.base import iso, present, stamp_of
from schemas.plain import one_line
from server.domain.access import check_project
from server.domain.agents import identity
from server.domain.attention import overview
from server.domain.attention.claims import topic_of
from server.domain.attention.items import ItemSubject, item_id
from server.domain.attention.mail import URGENCY
from server.domain.attention.overview import (
    GROUPS,
    AwaitedParty,
    JudgedItem,
    OpenItem,
    ProjectRepos,
    Rank,
    WeighedItem,
)
from server.domain.attention.overview_actions import Rights, actions_of
from server.domain.attention.overview_text import VERBS, mark_of
from server.domain.attention.questions import BY_PRIORITY
from server.domain.errors import InvalidInput
from server.methods.acp.delivery import coordinates
from server.methods.base import Context, open_project, reads
from server.methods.cacp.attention import actor_of
from server.store import attention_overview as store
from server.store import changes, messages
from server.store.attention import APPROVALS_MAX, TITLE_WIDTH
from server.store.attention_overview import OpenHandoff

PROJECTS_MAX = 100
DEAD_LETTER_AGE = 24 * overview.HOUR
"""For how long a dead letter is shown here; `acp/deadLetters` lists all."""
WRITES_FIRST = ("accepted", "activated", "proposed", "validating")
"""States of a handoff in which its receiver is to act."""


class _Projects(NamedTuple):
    """What is open in projects, and the address of who created each."""

    items: list[WeighedItem]
    creators: dict[str, str]


@reads(
    "cacp/attention/overview",
    OverviewAttentionParams,
    OverviewAttentionResult,
    wide=True,
    reach="own",
    instead="it with a smaller limit",
)
def overview_(ctx: Context, params: OverviewAttentionParams) -> dict[str, Any]:
    """List what is open between all agents that the caller may see: who must act, who waits for it
    and since when, whether a person is needed, and what the caller can do about it. What needs a
    person comes first, then what has waited too long, then the rest; in each what unblocks most
    agents. Mail, handoffs and approvals that the caller may not see are only counted (`hidden`).
    """
    scope = _scope(ctx, params.project_id)
    now = _now(ctx)
    opened, creators = _of_projects(ctx, scope)
    home, humans = store.agents_with_keys(ctx.db)
    watched = home if ctx.caller.sees_agents else ()
    seen = {agent: max(ctx.node.last_calls.get(agent, 0), ctx.node.start.at) for agent in watched}
    away = overview.away([each.item for each in opened], now, seen)
    # Mail and handoffs are an agent's at its home node, and of no project.
    mail, hidden = _of_agents(ctx) if scope is None else ([], 0)
    added = [overview.weighed(item) for item in (*away, *mail)]
    items = overview.judged([*opened, *added], now, humans)
    groups = Counter(entry.group for entry in items)
    projects = Counter(
        (entry.item.project_id, entry.item.project) for entry in items if entry.item.project_id
    )
    after = None if params.after is None else _parsed(params.after)
    chosen = [
        entry
        for entry in items
        if (params.groups is None or entry.group in params.groups)
        and (after is None or entry.rank > after)
    ]
    page = chosen[: params.limit]
    may = _rights(ctx, creators)
    result = {
        "items": [_shown(ctx, entry, may) for entry in page],
        "groups": {group: groups[group] for group in GROUPS},
        "projects": [
            {"projectId": project_id, "project": name, "count": count}
            for (project_id, name), count in projects.most_common(PROJECTS_MAX)
        ],
        "total": len(items),
        "hidden": hidden,
        "next": _cursor(page[-1].rank) if len(chosen) > len(page) else None,
    }
    return present(result)


def _now(ctx: Context) -> int:
    """The time. A read of the dispatcher has no stamp, but its caller has just called."""
    return max((ctx.now, *ctx.node.last_calls.values()))


def _scope(ctx: Context, project_id: str | None) -> str | None:
    """The only projects that are looked at, as JSON; None for all."""
    own = ctx.caller.projects
    if project_id is not None:
        check_project(own, project_id)
        open_project(ctx, project_id)
        return orjson.dumps([project_id]).decode()
    return None if own is None else orjson.dumps(sorted(own)).decode()


def _of_projects(ctx: Context, scope: str | None) -> _Projects:
    """What is open in the projects. All of it follows from what is recorded in `changes`, so that
    it is the same until the next change."""
    key = changes.newest(ctx.db), scope
    known = ctx.node.open_items.get(key)
    if known is None:
        known = _read_projects(ctx, scope)
        # What a transaction reads may be rolled back.
        if ctx.transaction is None:
            ctx.node.open_items.put(key, known)
    return _Projects(*known)


def _read_projects(ctx: Context, scope: str | None) -> _Projects:
    groups = store.open_groups(ctx.db, scope)
    vacant = store.vacant_repos(ctx.db, scope)
    lost = store.lost_claims(ctx.db, scope)
    projects, creators = store.projects_of(
        ctx.db,
        {
            *(group.key[0] for group in groups),
            *(place[0] for place in vacant),
            *(claim.project_id for claim in lost),
        },
    )
    notes = store.notes_of(ctx.db, {group.key for group in groups}, ctx.node.open_subjects)
    items = []
    by_project: defaultdict[str | None, list[OpenItem]] = defaultdict(list)
    for group in groups:
        note, project = notes.get(group.key), projects.get(group.key[0])
        if note is not None and project is not None:
            item = overview.item_of(group.openings, group.subject_id, note, project)
            items.append(item)
            by_project[item.project_id].append(item)
    items += [
        overview.vacant(projects[project_id], repo_id, since, by_project[project_id])
        for project_id, repo_id, since in vacant
    ]
    items += _claims(ctx, lost, projects)
    return _Projects([overview.weighed(item) for item in items], creators)


def _claims(
    ctx: Context, lost: Iterable[store.LostClaim], projects: dict[str, ProjectRepos]
) -> Iterator[OpenItem]:
    """The claims that lost, until their agents hold a repo or have written to the holder."""
    for claim in lost:
        project = projects[claim.project_id]
        topic = topic_of(claim.project_id, claim.repo_id)
        holders = {party.agent for party in project.repos.values()}
        if claim.loser in holders or store.has_written_about(ctx.db, claim, topic):
            continue
        party = project.party(claim.repo_id)
        yield OpenItem(
            item_id("conflict", "claim", claim.project_id, claim.repo_id, claim.holder),
            "conflict",
            "high",
            claim.claimed_at,
            ItemSubject("repo", claim.repo_id, party.repo or claim.repo_id),
            (AwaitedParty(agent=claim.loser),),
            (party,),
            project.project_id,
            project.name,
            reason="conflict",
        )


# --- mail, handoffs, approvals ------------------------------------------------------------------


def _of_agents(ctx: Context) -> tuple[list[OpenItem], int]:
    """The mail, handoffs and approvals that the caller may see, and how many it may not."""
    shown: list[OpenItem] = []
    if ctx.caller.projects is not None:
        return shown, 0
    own, verified = identity(ctx.caller.agent_id), ctx.caller.trust == "verified"
    oversees = verified and coordinates(ctx)
    unlimited = verified and coordinates(ctx, restricted=True)
    total = 0
    for handoff in store.open_handoffs(ctx.db):
        total += 1
        parties = (handoff.from_agent, handoff.to_agent)
        if (unlimited if handoff.restricted else oversees) or (verified and own in parties):
            shown.append(_handoff(handoff))
    for message in messages.gated(ctx.db, "", APPROVALS_MAX):
        total += 1
        if verified and ctx.caller.human:
            shown.append(_gated(message))
    for query in store.mail_queries(ctx.db, iso(ctx.sure)):
        total += 1
        if oversees or (verified and own in (query.from_agent, query.recipient)):
            reads_it = own in (query.from_agent, query.recipient)
            shown.append(_query(query, reads_it or (ctx.caller.human and query.open_to_humans)))
    for box in store.unread_boxes(ctx.db):
        total += 1
        if oversees or (verified and box.address == own):
            shown.append(_unread(box))
    hidden = total - len(shown)
    letters = [
        letter
        for letter in store.dead_letters(ctx.db)
        if verified
        and _now(ctx) - letter.created_at <= DEAD_LETTER_AGE
        and (letter.from_agent == own or (ctx.caller.human and letter.open_to_humans))
    ]
    return [*shown, *_dead(letters)], hidden


def _handoff(handoff: OpenHandoff) -> OpenItem:
    sender, receiver = AwaitedParty(agent=handoff.from_agent), AwaitedParty(agent=handoff.to_agent)
    is_receivers = handoff.status in WRITES_FIRST
    kind = "approve" if handoff.needs_human and is_receivers else "handoff"
    item = OpenItem(
        item_id(kind, handoff.handoff_id, handoff.status, "overview"),
        "handoff",
        URGENCY[handoff.priority],
        handoff.since,
        ItemSubject("handoff", handoff.handoff_id, one_line(handoff.title, TITLE_WIDTH)),
        (receiver if is_receivers else sender,),
        (sender, receiver),
        by=handoff.from_agent,
        due_at=handoff.due_at,
        reason="escalated" if handoff.escalated_at is not None else None,
    )
    if kind == "approve":
        return item._replace(kind="approve", must_act=(), due_at=None, reason="approval")
    return item


def _gated(message: messages.MessageRow) -> OpenItem:
    sender = identity(message.from_agent)
    receivers = map(identity, orjson.loads(message.to_agents_json))
    waiting = dict.fromkeys([sender, *(agent for agent in receivers if agent != "*")])
    subject = message.topic or str(orjson.loads(message.payload_json)["summary"])
    return OpenItem(
        item_id("approve", "message", message.id),
        "approve",
        URGENCY[message.priority],  # type: ignore[index]
        stamp_of(message.created_at),
        ItemSubject("message", message.id, one_line(subject, TITLE_WIDTH)),
        interested=tuple(AwaitedParty(agent=agent) for agent in waiting),
        by=sender,
        reason="approval",
    )


def _query(query: store.MailQuery, with_text: bool) -> OpenItem:
    asker = AwaitedParty(agent=query.from_agent)
    return OpenItem(
        item_id("answer", "mail", query.message_id, query.recipient),
        "answer",
        BY_PRIORITY[query.priority],
        query.asked_at,
        ItemSubject(
            "message", query.message_id, query.question if with_text else "a question by mail"
        ),
        (AwaitedParty(agent=query.recipient),),
        (asker,),
        by=query.from_agent if with_text else None,
    )


def _unread(box: store.UnreadBox) -> OpenItem:
    messages_ = "1 unread message" if box.unread == 1 else f"{box.unread} unread messages"
    return OpenItem(
        item_id("mail", box.address, "overview"),
        "mail",
        "normal",
        box.oldest,
        ItemSubject("mailbox", box.address, messages_),
        (AwaitedParty(agent=box.address),),
    )


def _dead(letters: list[store.UndeliveredMail]) -> Iterator[OpenItem]:
    """The dead letters of each sender as one item."""
    by_sender: defaultdict[str, list[store.UndeliveredMail]] = defaultdict(list)
    for letter in letters:
        by_sender[letter.from_agent].append(letter)
    for sender, dead in by_sender.items():
        count = len(dead)
        shown = "1 message reached nobody" if count == 1 else f"{count} messages reached nobody"
        yield OpenItem(
            item_id("undelivered", sender, max(letter.message_id for letter in dead)),
            "undelivered",
            "high",
            min(letter.created_at for letter in dead),
            ItemSubject("mailbox", sender, shown),
            (),
            (AwaitedParty(agent=sender),),
            reason="undelivered",
        )


# --- what is shown ------------------------------------------------------------------------------


def _rights(ctx: Context, creators: dict[str, str]) -> Rights:
    caller, own = ctx.caller, identity(ctx.caller.agent_id)
    if caller.trust != "verified":
        return Rights(own)
    return Rights(
        own,
        actor_of(ctx).repos,
        caller.human,
        sends_mail=caller.projects is None,
        coordinates=coordinates(ctx),
        owns=frozenset(project_id for project_id, creator in creators.items() if creator == own),
        owns_all=caller.operator or (caller.human and caller.projects is None),
    )


def _shown(ctx: Context, entry: JudgedItem, may: Rights) -> dict[str, Any]:
    item = entry.item
    shown = {
        "id": item.id,
        "kind": item.kind,
        "group": entry.group,
        "urgency": item.urgency,
        "projectId": item.project_id,
        "project": item.project,
        "verb": VERBS[item.kind],
        "subject": {"type": item.subject.type, "id": item.subject.id, "name": item.subject.name},
        "version": item.version,
        "by": item.by,
        "mustAct": [_party(ctx, party) for party in item.must_act[:PARTIES_SHOWN]],
        "mustActCount": len(item.must_act),
        "anyOf": item.any_of,
        "blocks": [_party(ctx, party) for party in entry.blocks[:PARTIES_SHOWN]],
        "unblocks": entry.unblocks,
        "since": iso(item.since),
        "overdue": entry.is_overdue,
        "personReason": item.reason,
        "mark": mark_of(entry) or None,
        "waiting": item.waiting,
        "actions": [step._asdict() for step in actions_of(item, may)],
    }
    return present(shown)


def _party(ctx: Context, party: AwaitedParty) -> dict[str, Any]:
    seen = ctx.node.last_calls.get(party.agent or "") if ctx.caller.sees_agents else None
    shown = {
        "repoId": party.repo_id,
        "repo": party.repo,
        "agentId": party.agent,
        "lastSeen": None if seen is None else iso(seen),
    }
    return present(shown)


def _cursor(rank: Rank) -> str:
    return ".".join(map(str, rank))


def _parsed(cursor: str) -> Rank:
    *numbers, last = cursor.split(".", 4)
    digits = [part.removeprefix("-") for part in numbers]
    if len(numbers) == 4 and all(
        part.isascii() and part.isdigit() and len(part) < 19 for part in digits
    ):
        group, unblocks, urgency, since = map(int, numbers)
        return group, unblocks, urgency, since, last
    raise InvalidInput(
        "after: must be the `next` of a page of cacp/attention/overview; leave it out to begin "
        "again",
        path="after",
    )
