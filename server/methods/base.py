"""Common parts of all methods: declaration, context, paging, and the party that acts in a
project."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, TypeVar
from uuid import UUID

from pydantic import BaseModel
from uuid_utils import uuid7

from peers.clock import after
from schemas.base import iso
from server.auth.authenticator import Caller
from server.domain.access import Access
from server.domain.agents import identity, same_agent
from server.domain.contract_steps import Party
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, Refusal
from server.node import Node, first_tick
from server.store import changes, claims, digests, lifecycle, projects
from server.store.connection import Connection
from server.store.database import Database
from server.store.files import File
from server.store.group_commit import Transaction
from server.store.projects import Membership
from server.util.wait_first import first

P = TypeVar("P", bound=BaseModel)
C = TypeVar("C")
R = TypeVar("R")
T = TypeVar("T")
Reach = Literal["project", "own", "nothing", "node"]
"""What a method shows or changes, for callers whose key or token is limited to some projects.

"project": the project that its params name, which must be one of the caller's. "own": whatever the
method narrows to the caller's projects. "nothing": no project's data. "node": the whole node, which
such callers are refused."""
PROJECT_DELETED = "project_deleted"
"""The reason of refusals that concern a deleted project; peers know it too."""


async def unchecked() -> None:
    """The access of a call of the node itself, which nobody takes away."""


@dataclass(slots=True)
class Context:
    """One call: the database (inside a transaction when the method writes), the caller, and the
    call's stamp (0 for reads). The stamp is close to the time; it may be smaller than a stamp that
    came in from a node whose clock is far ahead."""

    db: Connection
    caller: Caller
    node: Node
    method: str
    stamp: int
    transaction: Transaction | None = None
    """None for reads."""
    origin: str | None = None
    """The node that sent the change, when it came by sync."""
    sure: int = 0
    """The time that has certainly passed. Expiry and retention go by it rather than by a clock that
    may be years ahead (`peers.clock`)."""

    def __post_init__(self) -> None:
        if not self.sure:
            self.sure = (self.transaction and self.transaction.sure) or self.stamp

    @property
    def now(self) -> int:
        """The node's corrected time, microseconds since 1970. The stamp is ahead of it when a
        peer's clock is."""
        return (self.transaction and self.transaction.now) or self.stamp

    def after(self, known: int) -> int:
        """A stamp for a value that replaces one stamped `known`."""
        return after(self.stamp, known)

    def record(self, entity: str, entity_id: str, project_id: str | None, outcome: str) -> None:
        """Append this call's change of an entity to the change log."""
        seen = 0
        if self.transaction is not None:
            seen = self.transaction.seen
            if self.origin is None and entity in digests.KINDS:
                self.transaction.stored = max(self.transaction.stored, self.stamp)
        changes.append(
            self.db,
            # The next start reads the last stamp from here; it must not be smaller than any seen.
            at=max(self.stamp, seen),
            origin=self.origin or self.node.agent_id,
            actor=self.caller.agent_id,
            action=self.method,
            entity=entity,
            entity_id=entity_id,
            project_id=project_id,
            outcome=outcome,
        )


class RefusalGuard(Protocol):
    """How a family of methods treats its refusals."""

    @property
    def reason(self) -> str:
        """The reason of a refusal of invalid params."""

    def explain(self, refusal: Refusal) -> Refusal:
        """The refusal that callers of these methods receive."""

    def notes(self, refusal: Refusal) -> bool:
        """Whether `note` must be called for it, in its own transaction."""

    def note(self, ctx: Context, refusal: Refusal) -> None:
        """Record the refusal."""


class Fetch(Protocol):
    """Fetches a file's content from another node, and keeps a copy here if there is room."""

    async def __call__(self, project_id: str, file: File, *, direct: bool = False) -> bytes:
        """The checked content. `direct` asks only the node that holds it. Raises Refusal."""


@dataclass(frozen=True, slots=True)
class CallSession:
    """A call that may wait. It opens a transaction for each read and write."""

    database: Database
    caller: Caller
    node: Node
    method: str
    stopping: asyncio.Event
    """Set when the node stops: waiting calls answer at once."""
    fetch: Fetch | None = None
    """None for the node's own sessions, which fetch no files."""
    recheck_access: Callable[[], Awaitable[None]] = field(default=unchecked, repr=False)
    """Raises Unauthenticated or Forbidden when the caller has lost access. A method calls it after
    waiting, before it reads what it shows; the dispatcher calls it again before the answer."""

    async def read(self, function: Callable[[Context], T]) -> T:
        """Run a read of a few rows. Its context's stamp is the current time."""
        return await self.database.read(partial(self._reading, function))

    async def read_wide(self, function: Callable[[Context], T]) -> T:
        """Run a large read in a thread."""
        return await self.database.read_wide(partial(self._reading, function))

    def _reading(self, function: Callable[[Context], T], db: Connection) -> T:
        now, sure = self.database.now(), self.database.clock.sure()
        return function(Context(db, self.caller, self.node, self.method, now, sure=sure))

    async def write(self, function: Callable[[Context], T]) -> T:
        """Run a function in its own transaction; returns once that is on disk."""
        return await self.database.write(
            lambda transaction: function(
                Context(
                    transaction.connection,
                    self.caller,
                    self.node,
                    self.method,
                    transaction.stamp,
                    transaction,
                )
            )
        )

    async def until(self, event: asyncio.Event, seconds: float) -> None:
        """Wait until the event, the end of the node, or the given number of seconds."""
        await first(event, self.stopping, seconds=seconds)


Run = Callable[[Any, Any], Any]
Around = Callable[[CallSession, Any, Callable[[], Awaitable[Any]]], Coroutine[Any, Any, Any]]
"""Takes the params and the write itself, calls it once, and returns the result."""
Wide = bool | Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Method:
    """A JSON-RPC method: its params, its result, and how it is run.

    `wide` reads run in a thread, some of them only for certain params; other reads take a few rows
    and run on the event loop. `large` methods accept bodies up to the limit for files. `waits`
    methods are coroutines that get a CallSession.
    """

    name: str
    params: type[BaseModel]
    result: Any
    access: Access
    run: Run
    summary: str
    writes: bool
    wide: Wide = False
    large: bool = False
    waits: bool = False
    guard: RefusalGuard | None = None
    instead: str = ""
    """The call to suggest when the answer is too large."""
    reach: Reach = "node"
    weight: Callable[[Any], int] | None = None
    """How many requests a call with these params counts as; None means one."""
    around: "Around | None" = None
    """What a write does before and after its transaction, that no other write should wait for."""


METHODS: dict[str, Method] = {}
"""Every method by name, in the order of the specification."""


def reads(
    name: str,
    params: type[P],
    result: Any,
    *,
    access: Access = "read",
    wide: Wide = False,
    guard: RefusalGuard | None = None,
    instead: str = "",
    reach: Reach | None = None,
) -> Callable[[Callable[[Context, P], Any]], Callable[[Context, P], Any]]:
    """Declare a method that changes nothing. `instead` is the call to suggest when the answer is
    too large."""
    how = {"writes": False, "wide": wide, "instead": instead}
    return _declare(name, params, result, access, guard, reach, **how)


def writes(
    name: str,
    params: type[P],
    result: Any,
    *,
    access: Access = "write",
    large: bool = False,
    guard: RefusalGuard | None = None,
    reach: Reach | None = None,
    weight: Callable[[P], int] | None = None,
    around: "Around | None" = None,
) -> Callable[[Callable[[Context, P], Any]], Callable[[Context, P], Any]]:
    """Declare a method that runs in one write transaction. It decides before it writes."""
    how = {"writes": True, "large": large, "weight": weight, "around": around}
    return _declare(name, params, result, access, guard, reach, **how)


def waits(
    name: str,
    params: type[P],
    result: Any,
    *,
    access: Access,
    guard: RefusalGuard | None = None,
    reach: Reach | None = None,
) -> Callable[
    [Callable[[CallSession, P], Coroutine[Any, Any, Any]]],
    Callable[[CallSession, P], Coroutine[Any, Any, Any]],
]:
    """Declare a method that may wait before it answers."""
    return _declare(name, params, result, access, guard, reach, writes=False, waits=True)


def _declare(
    name: str,
    params: type[P],
    result: Any,
    access: Access,
    guard: RefusalGuard | None,
    reach: Reach | None,
    **how: Any,
) -> Callable[[Callable[[C, P], R]], Callable[[C, P], R]]:
    """Without a declared reach, it is the project that the params name, else the whole node."""
    how |= {"guard": guard, "reach": reach or ("project" if names_project(params) else "node")}

    def declare(run: Callable[[C, P], R]) -> Callable[[C, P], R]:
        summary = " ".join((run.__doc__ or "").split("\n\n")[0].split())
        METHODS[name] = Method(name, params, result, access, run, summary, **how)
        return run

    return declare


def names_project(params: type[BaseModel]) -> bool:
    """Whether params of this type always name a project."""
    field = params.model_fields.get("project_id")
    return hasattr(params, "project_id") if field is None else field.is_required()


def new_id() -> str:
    """A UUIDv7: unique and ordered by time, which keeps inserts close together on disk."""
    return str(uuid7())


def free_id(ctx: Context, named: Callable[[UUID], str], is_taken: Callable[[str], bool]) -> str:
    """An unused id, derived by `named` from 64 unique bits in the order of time. (`new_id` repeats
    those bits within a millisecond.) A look whether it is taken is spared where it can't be."""
    while True:
        tick = ctx.node.ticks.next_tick(ctx.stamp)
        candidate = named(UUID(int=(tick >> 12) << 80 | 7 << 76 | (tick & 0xFFF) << 64))
        if tick == first_tick(ctx.stamp) or not is_taken(candidate):
            return candidate


def cursor_after(stamp: int, id: str) -> str:
    """The `nextCursor` of a page whose last entry has this stamp and id."""
    return f"{stamp}.{id}"


def parse_cursor(cursor: str | None, first: tuple[int, str] = (0, "")) -> tuple[int, str]:
    """The stamp and id after which a page begins; `first` without a cursor. Raises
    InvalidInput."""
    if cursor is None:
        return first
    stamp, _, id = cursor.partition(".")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 19 and id):
        raise InvalidInput("cursor: must be a nextCursor that this method returned", path="cursor")
    return int(stamp), id


def page_of(
    rows: Sequence[R], limit: int, cursor_of: Callable[[R], Any]
) -> tuple[Sequence[R], dict[str, Any]]:
    """The first `limit` rows, and `{"nextCursor": …}` of the last one when more rows follow."""
    page = rows[:limit]
    return page, {"nextCursor": cursor_of(page[-1])} if len(rows) > limit else {}


def no_project(ctx: Context, project_id: str) -> NotFound:
    """The refusal for a project that is not here. Of a deleted one it says who deleted it, when."""
    deleted = lifecycle.find(ctx.db, project_id)
    if deleted is None:
        return NotFound(f"There is no project {project_id}", kind="project", projectId=project_id)
    at = iso(deleted.stamp)
    return NotFound(
        f"Project {deleted.name} ({project_id}) was deleted by {deleted.by} at {at}",
        reason=PROJECT_DELETED,
        kind="deleted_project",
        projectId=project_id,
        name=deleted.name,
        deletedBy=deleted.by,
        deletedAt=at,
    )


def open_project(ctx: Context, project_id: str) -> Membership:
    """The project's name, policy and members. Raises NotFound, and Conflict when a caller writes to
    an archived project. What other nodes send is joined with it nevertheless."""
    project = _membership(ctx, project_id)
    if project is None:
        raise no_project(ctx, project_id)
    if project.is_archived and ctx.transaction is not None and ctx.origin is None:
        raise _archived(ctx, project_id)
    return project


def _membership(ctx: Context, project_id: str) -> Membership | None:
    kept = ctx.transaction.memberships if ctx.transaction is not None else None
    known = kept.find(project_id) if kept is not None else None
    if known is not None:
        return known
    project = projects.membership(ctx.db, project_id)
    if kept is not None and project is not None:
        kept.keep(project_id, project)
    return project


def _archived(ctx: Context, project_id: str) -> Conflict:
    register = lifecycle.find(ctx.db, project_id)
    assert register is not None
    at = iso(register.stamp)
    return Conflict(
        f"Project {register.name} was archived by {register.by} at {at} and can only be read. To "
        "change it, the agent that created it or the operator of a node that takes part calls "
        f"cacp/project/unarchive, or `cacp project unarchive {project_id}`",
        reason="project_archived",
        projectId=project_id,
        archivedBy=register.by,
        archivedAt=at,
    )


def party(ctx: Context, project_id: str, project: Membership, *, instead: str = "") -> Party:
    """The repo that the caller acts for: that of its key. The node's own agent, which no key binds
    to one, acts for the repo of its name, else for the first that it holds.

    Raises Forbidden when the caller holds no repo; it then may do what `instead` says.
    """
    caller = ctx.caller
    held = [
        member
        for member in project.members
        if member.agent_id is not None
        and same_agent(member.agent_id, caller.agent_id)
        and (caller.is_own_agent or member.name == caller.repo)
    ]
    if not held:
        _check_not_released(ctx, project_id, project)
        raise Forbidden(
            f"You hold no repo in project {project_id}: call cacp/project/join first{instead}",
            reason="not_a_member",
            repos=[member.name for member in project.members],
        )
    own = next((member for member in held if member.name == caller.repo), held[0])
    return Party(own.repo_id, caller.agent_id)


def _check_not_released(ctx: Context, project_id: str, project: Membership) -> None:
    """Raises Forbidden when the caller held a repo that was released since."""
    for member in project.members:
        ended = claims.releases(ctx.db, project_id, member.repo_id)
        release = ended.get(identity(ctx.caller.agent_id))
        if release is None:
            continue
        at = iso(release.released_at)
        now = (
            f"{member.agent_id} holds it now"
            if member.agent_id
            else "Nobody holds it now: call cacp/project/join to hold it again"
        )
        raise Forbidden(
            f"Repo {member.name} was released from you by {release.by} at {at}. {now}",
            reason="repo_released",
            repo=member.name,
            releasedBy=release.by,
            releasedAt=at,
            heldBy=member.agent_id,
        )


def check_member(ctx: Context, project_id: str, project: Membership) -> None:
    """Raises Forbidden unless the caller may change the project itself: the operator always,
    anybody while no repo is held, and afterwards the holders of repos.
    """
    if ctx.caller.operator or not any(member.agent_id for member in project.members):
        return
    party(ctx, project_id, project, instead=", or use the operator's key (`cacp call --operator`)")
