"""cacp/project/timeline and stateAt: a project's story, and the project as it was."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from schemas.base import LIST_MAX, iso, present, stamp_of
from schemas.project_board import (
    ProjectStateAt,
    ProjectTimelineParams,
    ProjectTimelineResult,
    StateAtParams,
)
from server.domain import project_board as domain
from server.domain.agents import identity
from server.domain.errors import InvalidInput
from server.domain.history import holder_at, lost_to
from server.domain.project_board import BoardCard
from server.domain.timeline import timeline_of
from server.methods.base import (
    Context,
    cursor_after,
    open_project,
    page_of,
    parse_cursor,
    reads,
)
from server.methods.cacp.project_board import Members, excerpt, progress, shown_column
from server.store import claims, context_packets, contracts, lifecycle, projects
from server.store import project_board as store
from server.store.project_board import NEWEST, StoryMoment
from server.store.projects import Membership

Json = dict[str, Any]
CALL_SPREAD = LIST_MAX
"""Microseconds over which the repos of one call are stamped, which keeps their order."""
STEPS_MAX = 100
"""Steps that are shown of one time: a project that a foreign peer sent has a single one."""


@reads("cacp/project/timeline", ProjectTimelineParams, ProjectTimelineResult, wide=True)
def timeline(ctx: Context, params: ProjectTimelineParams) -> Json:
    """List what was done in a project, the newest first: steps on contracts, questions, answers and
    decisions, and who joined. It is derived from what the project holds, so it is the same on
    every node; a response that its repo has replaced since is not in it.
    """
    project = open_project(ctx, params.project_id)
    rows = store.recent_moments(
        ctx.db, params.project_id, _position(params.cursor), params.limit + 1
    )
    page, more = page_of(
        rows, params.limit, lambda moment: cursor_after(moment.at, f"{moment.subject}:{moment.id}")
    )
    return {"moments": _steps(ctx, params.project_id, project, page), **more}


@reads(
    "cacp/project/stateAt",
    StateAtParams,
    ProjectStateAt,
    wide=True,
    instead="it with a smaller limit",
)
def state_at(ctx: Context, params: StateAtParams) -> Json:
    """Return a project as it was at a time (`at`), or after the `change`-th change: its contracts
    by status with the steps that they waited for, its repos, and what was done at that time.
    `previous` and `next` are the times of the changes beside it. It is derived from what the
    project holds now; `unknown` says what is not kept of that time.
    """
    project = open_project(ctx, params.project_id)
    moments = store.moments(ctx.db, params.project_id)[::-1]
    times = sorted({moment.at for moment in moments})
    number, at = _chosen(params, times)
    members = Members.of(project.members)
    cards, lost = _cards_at(ctx, params.project_id, at)
    counts = store.packet_counts(ctx.db, params.project_id, at)
    changed_at = times[number - 1] if number else None
    done = [moment for moment in moments if moment.at == changed_at]
    repos = _repos_at(ctx, params.project_id, at)
    shown = {
        "projectId": params.project_id,
        "name": project.name,
        "at": iso(at),
        "changeCount": len(times),
        "change": number,
        "changedAt": _time(changed_at),
        "first": _time(times[0]),
        "last": _time(times[-1]),
        "previous": _time(times[number - 2]) if number > 1 else None,
        "next": _time(times[number]) if number < len(times) else None,
        "steps": _steps(ctx, params.project_id, project, done[:STEPS_MAX]),
        "progress": progress(cards),
        "columns": [
            shown_column(column, members) for column in domain.columns(cards, params.limit)
        ],
        "repos": repos,
        "questionCount": counts.open_questions,
        "decisionCount": counts.decisions,
        "packetCount": counts.packets,
        "unknown": [*_unknown(ctx, params.project_id, at, lost)],
    }
    return present(shown)


def _time(at: int | None) -> str | None:
    return None if at is None else iso(at)


def _chosen(params: StateAtParams, times: Sequence[int]) -> tuple[int, int]:
    """The number of the last change up to the wanted time, and that time. Raises InvalidInput."""
    if params.change is not None:
        if params.at is not None:
            raise InvalidInput("change: give either it or at", path="change")
        if params.change > len(times):
            raise InvalidInput(
                f"change: the project has changed at {len(times)} times", path="change"
            )
        return params.change, times[params.change - 1]
    at = times[-1] if params.at is None else stamp_of(params.at)
    return sum(time <= at for time in times), at


def _cards_at(ctx: Context, project_id: str, at: int) -> tuple[list[BoardCard], int]:
    """The contracts that were there at a time; and how many of their responses may be lost."""
    changed = store.facts_changed_after(ctx.db, project_id, at)
    cards: list[BoardCard] = []
    for card in store.cards(ctx.db, project_id):
        facts = changed.get(card.contract_id)
        past = card if facts is None else domain.card_at(project_id, card, facts, at)
        if past is not None:
            cards.append(past)
    return cards, sum(lost_to(facts, at) for facts in changed.values())


def _repos_at(ctx: Context, project_id: str, at: int) -> list[Json]:
    shown = []
    for repo in projects.repos(ctx.db, project_id):
        holder = holder_at(
            claims.every(ctx.db, project_id, repo.repo_id),
            claims.releases(ctx.db, project_id, repo.repo_id),
            at,
        )
        if holder is not None or repo.stamp <= at + CALL_SPREAD:
            shown.append(present({"repoId": repo.repo_id, "name": repo.name, "agentId": holder}))
    return shown


def _unknown(ctx: Context, project_id: str, at: int, lost: int) -> Iterator[str]:
    """What can't be known of a time."""
    if lost:
        yield (
            f"{lost} response{'s' * (lost > 1)} to versions of that time came later. A repo's "
            "response replaces its earlier one, so an earlier one may be missing here."
        )
    header = projects.header(ctx.db, project_id)
    if header is not None and header.stamp > at >= header.created_at:
        yield (
            f"The project's name, objective and status were last set at {iso(header.stamp)}; what "
            "they were before is not kept."
        )
    for repo in projects.repos(ctx.db, project_id):
        if repo.stamp > at + CALL_SPREAD:
            yield (
                f"Repo {repo.name} was last described at {iso(repo.stamp)}; whether it was there "
                "before is not kept, unless an agent held it."
            )
        ended = claims.releases(ctx.db, project_id, repo.repo_id)
        for claim in claims.every(ctx.db, project_id, repo.repo_id):
            release = ended.get(identity(claim.agent_id))
            if release is not None and at < release.released_at < claim.claimed_at:
                yield (
                    f"{claim.agent_id} held repo {repo.name} until {iso(release.released_at)}; "
                    "since when is not kept."
                )


# --- the steps of a project's story -------------------------------------------------------------


def _position(cursor: str | None) -> tuple[int, str, str]:
    """The moment after which a page begins. Raises InvalidInput."""
    if cursor is None:
        return NEWEST
    at, key = parse_cursor(cursor)
    subject, _, id = key.partition(":")
    return at, subject, id


def _steps(
    ctx: Context, project_id: str, project: Membership, moments: Sequence[StoryMoment]
) -> list[Json]:
    """The ProjectMoment objects of these moments."""
    steps = _ProjectSteps(ctx, project_id, project)
    return [present(step) for moment in moments for step in steps.of(moment)]


class _ProjectSteps:
    """Shows moments of a project. A contract's facts are read once."""

    def __init__(self, ctx: Context, project_id: str, project: Membership) -> None:
        self._ctx, self._project_id, self._project = ctx, project_id, project
        self._members = Members.of(project.members)
        self._contracts: dict[str, Any] = {}

    def of(self, moment: StoryMoment) -> Iterator[Json]:
        subject = {
            "timestamp": iso(moment.at),
            "subject": moment.subject,
            "id": moment.id,
        }
        how = {"contract": self._contract, "context": self._packet, "repo": self._repo}
        for step in how.get(moment.subject, self._lifecycle)(moment):
            yield subject | step | {"repo": self._members.name(step.get("repoId", ""))}

    def _contract(self, moment: StoryMoment) -> Iterator[Json]:
        if moment.id not in self._contracts:
            header = contracts.header_of(self._ctx.db, self._project_id, moment.id)
            events = timeline_of(contracts.facts_of(self._ctx.db, moment.id))
            self._contracts[moment.id] = header and header.name, events
        name, events = self._contracts[moment.id]
        for event in events:
            if event.at == moment.at:
                yield {
                    "name": name,
                    "step": event.step,
                    "version": event.version,
                    "round": event.round,
                    "repoId": event.repo_id,
                    "agentId": event.agent_id,
                    "note": event.note and excerpt(event.note),
                }

    def _packet(self, moment: StoryMoment) -> Iterator[Json]:
        stored = context_packets.signed(self._ctx.db, self._project_id, moment.id)
        if stored is None:
            return
        packet = orjson.loads(stored[0])
        step, member = _PACKET_STEPS.get(packet["type"], ("shared", ""))
        if step == "shared" and packet.get("reply_to"):
            step = "answered"
        content = packet["content"]
        yield {
            "name": packet["type"],
            "step": step,
            "repoId": packet["from_repo"],
            "agentId": packet["from_agent"],
            "note": excerpt(content.get(member, content)),
        }

    def _repo(self, moment: StoryMoment) -> Iterator[Json]:
        repo = {"name": self._members.name(moment.id), "repoId": moment.id}
        for claim in claims.every(self._ctx.db, self._project_id, moment.id):
            if claim.claimed_at == moment.at:
                yield {**repo, "step": "joined", "agentId": claim.agent_id}
        for release in claims.releases(self._ctx.db, self._project_id, moment.id).values():
            if release.released_at == moment.at:
                yield {**repo, "step": "released", "agentId": release.agent_id}

    def _lifecycle(self, moment: StoryMoment) -> Iterator[Json]:
        register = lifecycle.find(self._ctx.db, self._project_id)
        if register is not None and register.stamp == moment.at:
            step = "archived" if register.state == "archived" else "reopened"
            yield {"name": self._project.name, "step": step, "agentId": register.by}
            return
        creator = lifecycle.creator(self._ctx.db, self._project_id)
        yield {"name": self._project.name, "step": "created", "agentId": creator}


_PACKET_STEPS = {"question": ("asked", "question"), "decision": ("decided", "decision")}
"""The step of a packet by its type, and the member of its content that says it."""
