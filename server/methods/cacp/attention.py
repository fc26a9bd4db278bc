"""cacp/attention/list: what waits for the caller (design-next N1)."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from schemas.attention import AttentionKind, ListAttentionParams, ListAttentionResult, Urgency
from schemas.base import iso, present
from server.domain.access import check_project
from server.domain.agents import identity, same_agent
from server.domain.attention.claims import FreeRepoSubject, LostClaimSubject
from server.domain.attention.derive import AttentionFacts, attention
from server.domain.attention.handoffs import HandoffSubject
from server.domain.attention.items import URGENCIES, Actor, ProjectNames, WaitingItem, rank_of
from server.domain.errors import InvalidInput, NotFound
from server.methods.base import Context, open_project, party, reads
from server.methods.cacp.handoff_evidence import KnownReceipts, problem_with
from server.store import attention as store
from server.store import handoffs as handoff_store
from server.store.attention import OpenSubject

Rank = tuple[int, int, str]
UNREAD = (
    "if its package says that tests pass, this node accepts it only when its evidence holds: get "
    "shows whether it does"
)
"""Of a handoff whose package this node has not read."""


class Waiting(NamedTuple):
    """What waits for the caller: an opening, made into an item when it is shown, or an item.
    `full` makes one item; `items_of` makes several at less cost."""

    id: str
    kind: AttentionKind
    urgency: Urgency
    since: int
    project_id: str | None
    repo_id: str | None
    source: OpenSubject | WaitingItem
    full: Callable[[], WaitingItem | None]

    @property
    def rank(self) -> Rank:
        return rank_of(self.urgency, self.since, self.id)


@reads(
    "cacp/attention/list",
    ListAttentionParams,
    ListAttentionResult,
    wide=True,
    reach="own",
    instead="it with a smaller limit",
)
def list_(ctx: Context, params: ListAttentionParams) -> dict[str, Any]:
    """List what waits for the caller: versions to respond to or to revise, contracts to implement,
    repair or verify, questions, lost races, handoffs, approvals, unread mail. Each item says who
    waits for what, and which call closes it; it is derived from the state at each call. Mail,
    handoffs and approvals are left out for a key that is limited to projects.
    """
    who = actor_of(ctx)
    _check(ctx, params, who)
    waiting = sorted(
        (
            entry
            for entry in waiting_for(ctx, who)
            if (params.project_id in (None, entry.project_id))
            and (params.repo_id in (None, entry.repo_id))
            and (params.kinds is None or entry.kind in params.kinds)
            and (entry.urgency == "urgent" or not params.urgent_only)
        ),
        key=lambda entry: entry.rank,
    )
    counts = Counter(entry.kind for entry in waiting)
    after = _place(params.after, waiting)
    rest = [entry for entry in waiting if after is None or entry.rank > after]
    page = rest[: params.limit]
    result = {
        "items": [item.wire() for item in items_of(ctx, page, who)],
        "counts": counts,
        "total": len(waiting),
        "urgent": sum(entry.urgency == "urgent" for entry in waiting),
        "next": _cursor(page[-1].rank) if len(rest) > len(page) else None,
    }
    return present(result)


def waiting_for(ctx: Context, who: Actor | None = None) -> list[Waiting]:
    """Everything that waits for the caller, in no order. `who` is `actor_of` the context."""
    who = who or actor_of(ctx)
    waiting = {
        # An agent that holds several repos of a project reads an opening once for each.
        entry.opening.id: _of_repo(ctx, entry, who)
        for entry in store.openings(ctx.db, who.agent_id)
        if entry.opening.concerns(who)
    }
    return [*waiting.values(), *map(_of_agent, attention(_own_facts(ctx), who))]


def items_of(ctx: Context, waiting: Sequence[Waiting], who: Actor) -> list[WaitingItem]:
    """The items with all that a reader needs to act, in the same order."""
    made = {
        entry.id: entry.source if isinstance(entry.source, WaitingItem) else None
        for entry in waiting
    }
    opened = [entry.source for entry in waiting if isinstance(entry.source, OpenSubject)]
    names = store.names_of(ctx.db, {entry.opening.project_id for entry in opened})
    for entry in opened:
        project = names.get(entry.opening.project_id)
        if project is not None:
            made[entry.opening.id] = _item(ctx, entry, project, who)
    return [item for item in made.values() if item is not None]


def _item(
    ctx: Context, entry: OpenSubject, project: ProjectNames, who: Actor
) -> WaitingItem | None:
    """The item of an opening: made anew when its subject or a name has changed."""
    key = (entry.opening, entry.revision, who.agent_id, who.repos[project.project_id])
    known = ctx.node.attention.get(key)
    if known is not None and known.project == project:
        return known
    subject = store.subject_of(ctx.db, entry, project)
    items = [] if subject is None else attention([subject], who)
    item = next((item for item in items if item.id == entry.opening.id), None)
    # What a transaction reads may be rolled back.
    if item is not None and ctx.transaction is None:
        ctx.node.attention.put(key, item)
    return item


def actor_of(ctx: Context) -> Actor:
    """The caller, and the repo that it acts for in each project that it may see (as `party`)."""
    caller = ctx.caller
    repos: dict[str, str] = {}
    for held in store.held_repos(ctx.db, caller.agent_id):
        if caller.projects is not None and held.project_id not in caller.projects:
            continue
        if held.name == caller.repo or (caller.is_own_agent and held.project_id not in repos):
            repos[held.project_id] = held.repo_id
    return Actor(caller.agent_id, repos, caller.human)


def _about_membership(ctx: Context) -> list[FreeRepoSubject | LostClaimSubject]:
    """The repos that wait for the caller, and those that it took in vain."""
    caller = ctx.caller
    subjects: list[FreeRepoSubject | LostClaimSubject] = [
        *store.lost_claims(ctx.db, caller.agent_id)
    ]
    if caller.trust == "verified":
        subjects += store.free_repos(ctx.db, caller.agent_id, caller.repo)
    return [
        subject
        for subject in subjects
        if caller.projects is None or subject.project.project_id in caller.projects
    ]


def _own_facts(ctx: Context) -> list[AttentionFacts]:
    """The facts that concern the agent rather than its repos."""
    address, own = identity(ctx.caller.agent_id), ctx.caller.projects
    facts: list[AttentionFacts] = [*_about_membership(ctx)]
    # Mail and handoffs are an agent's at its home node, and of no project.
    if own is not None or ctx.caller.trust != "verified":
        return facts
    facts += store.mail(ctx.db, address, iso(ctx.sure))
    receipts = KnownReceipts(ctx.db)
    handoffs = {
        entry.handoff_id: _judged(ctx, receipts, entry)
        for entry in store.waiting_handoffs(ctx.db, address)
    }
    if ctx.caller.human:
        for waiting in store.approvals(ctx.db):
            if isinstance(waiting, HandoffSubject):
                handoffs[waiting.handoff_id] = _judged(ctx, receipts, waiting)
            else:
                facts.append(waiting)
    return [*facts, *handoffs.values()]


def _of_repo(ctx: Context, entry: OpenSubject, who: Actor) -> Waiting:
    opening = entry.opening
    own = who.repos[opening.project_id]
    return Waiting(
        opening.id,
        opening.kind,
        opening.urgency,
        opening.since,
        opening.project_id,
        own,
        entry,
        partial(_alone, ctx, entry, who),
    )


def _alone(ctx: Context, entry: OpenSubject, who: Actor) -> WaitingItem | None:
    project_id = entry.opening.project_id
    project = store.names_of(ctx.db, [project_id]).get(project_id)
    return None if project is None else _item(ctx, entry, project, who)


def _of_agent(item: WaitingItem) -> Waiting:
    project_id = None if item.project is None else item.project.project_id
    return Waiting(
        item.id,
        item.kind,
        item.urgency,
        item.since,
        project_id,
        item.repo_id,
        item,
        lambda: item,
    )


def _check(ctx: Context, params: ListAttentionParams, who: Actor) -> None:
    """Raises Forbidden or NotFound for a project or repo that can't have items for the caller."""
    if params.project_id is not None:
        check_project(ctx.caller.projects, params.project_id)
        project = open_project(ctx, params.project_id)
        subjects = _about_membership(ctx)
        if not any(subject.project.project_id == params.project_id for subject in subjects):
            party(ctx, params.project_id, project)
    if params.repo_id is not None and params.repo_id not in who.repos.values():
        raise NotFound(
            f"repoId: you act for no repo {params.repo_id}; cacp/project/get shows the repos "
            "of a project and their ids",
            kind="repo",
            repoId=params.repo_id,
        )


def _cursor(rank: Rank) -> str:
    return f"{rank[0]}.{rank[1]}.{rank[2]}"


def _place(cursor: str | None, waiting: list[Waiting]) -> Rank | None:
    """The rank after which a page begins. Raises InvalidInput."""
    if cursor is None:
        return None
    item = next((entry for entry in waiting if entry.id == cursor), None)
    return _parsed(cursor) if item is None else item.rank


def _parsed(cursor: str) -> Rank:
    urgency, _, rest = cursor.partition(".")
    since, _, item_id = rest.partition(".")
    numbers = f"{urgency}{since}"
    if not (numbers.isascii() and numbers.isdigit() and urgency and since and len(since) < 19):
        urgency = ""
    if urgency not in map(str, range(len(URGENCIES))) or not item_id:
        raise InvalidInput(
            "after: must be the `next` of a page of cacp/attention/list, or the id of an item that "
            "still waits; leave it out to begin again",
            path="after",
        )
    return int(urgency), int(since), item_id


def _judged(ctx: Context, receipts: KnownReceipts, subject: HandoffSubject) -> HandoffSubject:
    """A handoff with why the caller can't accept it yet, where this node asks for evidence. Of one
    that another node holds, the package is not known here."""
    receives = same_agent(subject.to_agent, ctx.caller.agent_id)
    if not ctx.node.handoffs.asks_evidence or subject.status != "proposed" or not receives:
        return subject
    handoff = handoff_store.find(ctx.db, subject.handoff_id)
    if handoff is None:
        return replace(subject, note=UNREAD)
    return replace(subject, unproven=problem_with(receipts, handoff.handoff_id, handoff.package))
