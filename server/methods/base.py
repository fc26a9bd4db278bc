"""What every method shares: its declaration, its context, and who acts in a project."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, TypeVar
from uuid import UUID

from pydantic import BaseModel
from uuid_utils import uuid7

from peers.clock import after
from server.auth.authenticator import Caller
from server.domain.agents import same_agent
from server.domain.contract import Party
from server.domain.errors import Forbidden, InvalidInput, NotFound, Refusal
from server.node import Node
from server.store import changes, digests, projects
from server.store.database import Database, Transaction
from server.store.files import File
from server.store.projects import Membership
from server.util.wait_first import first

P = TypeVar("P", bound=BaseModel)
C = TypeVar("C")
R = TypeVar("R")
T = TypeVar("T")
Access = Literal["read", "write", "sync"]
Reach = Literal["project", "own", "nothing", "node"]
"""What a method shows or changes, for callers whose key or token is for some projects alone: the
project that its params name, which must be one of theirs; what the method itself narrows to theirs;
nothing of any project; or the node as a whole, which is refused."""


def _unchecked() -> None:
    return


@dataclass(slots=True)
class Context:
    """One call: the database (inside a transaction when the method writes), the caller, and the
    call's stamp (0 for reads), which is close to the time: it may be before that of something seen,
    when that was far ahead."""

    db: sqlite3.Connection
    caller: Caller
    node: Node
    method: str
    stamp: int
    transaction: Transaction | None = None
    """None for reads."""
    origin: str | None = None
    """The node that the change comes from, when it came by sync."""
    sure: int = 0
    """The time that is sure to have come: what expires, ends or is forgotten goes by it, not by a
    clock that may be years ahead (`peers.clock`)."""

    def __post_init__(self) -> None:
        if not self.sure:
            self.sure = (self.transaction and self.transaction.sure) or self.stamp

    @property
    def now(self) -> int:
        """The node's time, corrected: microseconds since 1970. The stamp may be ahead of it, when
        a peer's clock is."""
        return (self.transaction and self.transaction.now) or self.stamp

    def after(self, known: int) -> int:
        """The stamp of what takes the place of something that is stamped `known`."""
        return after(self.stamp, known)

    def record(self, entity: str, entity_id: str, project_id: str | None, outcome: str) -> None:
        """Append to the change log what this call changed."""
        seen = 0
        if self.transaction is not None:
            seen = self.transaction.seen
            if self.origin is None and entity in digests.KINDS:
                self.transaction.stored = max(self.transaction.stored, self.stamp)
        changes.append(
            self.db,
            # A start reads the last stamp from here: it must not be behind what was seen.
            at=max(self.stamp, seen),
            origin=self.origin or self.node.agent_id,
            actor=self.caller.agent_id,
            action=self.method,
            entity=entity,
            entity_id=entity_id,
            project_id=project_id,
            outcome=outcome,
        )


class Guard(Protocol):
    """What a family of methods does with what it refuses."""

    @property
    def reason(self) -> str:
        """That of params that are wrong in themselves."""

    def explain(self, refusal: Refusal) -> Refusal:
        """The refusal as callers of these methods get it."""

    def notes(self, refusal: Refusal) -> bool:
        """Whether `note` is to be called, in a transaction of its own."""

    def note(self, ctx: Context, refusal: Refusal) -> None:
        """Write down what was refused."""


class Fetch(Protocol):
    """Fetches the content of a file from another node, and keeps it here if there is room."""

    async def __call__(self, project_id: str, file: File, *, direct: bool = False) -> bytes:
        """The content, checked. `direct`: from its holder alone. Raises Refusal."""


@dataclass(frozen=True, slots=True)
class Session:
    """A call that may wait: it reads and writes as often as it needs to, in between."""

    database: Database
    caller: Caller
    node: Node
    method: str
    stopping: asyncio.Event
    """The node stops: who waits answers now."""
    fetch: Fetch | None = None
    """None where no call comes from outside."""
    check_still: Callable[[], None] = field(default=_unchecked, repr=False)
    """Raises Unauthenticated or Forbidden when the caller may not do this any more. What has waited
    calls it before it looks at what it shows; it is called again before the answer."""

    def read(self, function: Callable[[Context], T]) -> T:
        """Run a read of a few rows. Its context's stamp is the time."""
        return self.database.read(partial(self._reading, function))

    async def read_wide(self, function: Callable[[Context], T]) -> T:
        """Run a read of much in a thread."""
        return await self.database.read_wide(partial(self._reading, function))

    def _reading(self, function: Callable[[Context], T], db: sqlite3.Connection) -> T:
        now, sure = self.database.now(), self.database.clock.sure()
        return function(Context(db, self.caller, self.node, self.method, now, sure=sure))

    async def write(self, function: Callable[[Context], T]) -> T:
        """Run a function in a transaction of its own, on disk when this returns."""
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
        """Wait for an event, for the end of the node, or for so many seconds."""
        await first(event, self.stopping, seconds=seconds)


Run = Callable[[Any, Any], Any]
Wide = bool | Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Method:
    """A JSON-RPC method: what it takes and gives, and how it is run.

    `wide` reads run in a thread, some only with certain params; others are a few rows and run on
    the event loop.
    `large` methods may carry a body up to the limit for files. `waits` methods are coroutines, and
    are given a Session.
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
    guard: Guard | None = None
    instead: str = ""
    """What to call when its answer is too large."""
    reach: Reach = "node"
    weight: Callable[[Any], int] | None = None
    """As how many requests a call with these params counts; None is one."""


METHODS: dict[str, Method] = {}
"""Every method by name, in the order of the specification."""


def reads(
    name: str,
    params: type[P],
    result: Any,
    *,
    access: Access = "read",
    wide: Wide = False,
    guard: Guard | None = None,
    instead: str = "",
    reach: Reach | None = None,
) -> Callable[[Callable[[Context, P], Any]], Callable[[Context, P], Any]]:
    """Declare a method that changes nothing. `instead`: what to call when the answer is too
    large."""
    how = {"writes": False, "wide": wide, "instead": instead}
    return _declare(name, params, result, access, guard, reach, **how)


def writes(
    name: str,
    params: type[P],
    result: Any,
    *,
    access: Access = "write",
    large: bool = False,
    guard: Guard | None = None,
    reach: Reach | None = None,
    weight: Callable[[P], int] | None = None,
) -> Callable[[Callable[[Context, P], Any]], Callable[[Context, P], Any]]:
    """Declare a method that runs in one write transaction. It decides before it writes."""
    how = {"writes": True, "large": large, "weight": weight}
    return _declare(name, params, result, access, guard, reach, **how)


def waits(
    name: str, params: type[P], result: Any, *, access: Access, guard: Guard | None = None
) -> Callable[
    [Callable[[Session, P], Coroutine[Any, Any, Any]]],
    Callable[[Session, P], Coroutine[Any, Any, Any]],
]:
    """Declare a method that may wait before it answers."""
    return _declare(name, params, result, access, guard, None, writes=False, waits=True)


def _declare(
    name: str,
    params: type[P],
    result: Any,
    access: Access,
    guard: Guard | None,
    reach: Reach | None,
    **how: Any,
) -> Callable[[Callable[[C, P], R]], Callable[[C, P], R]]:
    """Who declares no reach reaches the project that the params name, else the whole node."""
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
    """A UUIDv7: unique, and in the order of time, which keeps inserts close together."""
    return str(uuid7())


def free_id(ctx: Context, named: Callable[[UUID], str], is_taken: Callable[[str], bool]) -> str:
    """An id that follows from its first 64 bits, which no other has: `new_id` gives many the same
    within a millisecond. They are in the order of time."""
    while True:
        tick = ctx.node.ticks.at(ctx.stamp)
        found = named(UUID(int=(tick >> 12) << 80 | 7 << 76 | (tick & 0xFFF) << 64))
        if not is_taken(found):
            return found


def cursor_after(stamp: int, id: str) -> str:
    """Where a page ended, for `nextCursor`."""
    return f"{stamp}.{id}"


def parse_cursor(cursor: str | None, first: tuple[int, str] = (0, "")) -> tuple[int, str]:
    """The stamp and the id where a page begins; `first` without a cursor. Raises InvalidInput."""
    if cursor is None:
        return first
    stamp, _, id = cursor.partition(".")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 19 and id):
        raise InvalidInput("cursor: not one that nextCursor gave", path="cursor")
    return int(stamp), id


def open_project(ctx: Context, project_id: str) -> Membership:
    """A project, as a method needs it to decide. Raises NotFound."""
    found = projects.membership(ctx.db, project_id)
    if found is None:
        raise NotFound(f"There is no project {project_id}", kind="project", projectId=project_id)
    return found


def party(ctx: Context, project_id: str, project: Membership) -> Party:
    """The repo that the caller acts for: the one that its key is for. The node's own agent, who has
    no key, acts for the repo of its name, else for the first that it holds.

    Raises Forbidden when it holds none.
    """
    caller = ctx.caller
    held = [
        member
        for member in project.members
        if member.agent_id is not None
        and same_agent(member.agent_id, caller.agent_id)
        and (caller.via == "local" or member.name == caller.repo)
    ]
    if not held:
        raise Forbidden(
            f"You hold no repo in project {project_id}: call cacp/project/join first",
            reason="not_a_member",
            repos=[member.name for member in project.members],
        )
    own = next((member for member in held if member.name == caller.repo), held[0])
    return Party(own.repo_id, caller.agent_id)


def check_member(ctx: Context, project_id: str, project: Membership) -> None:
    """Raises Forbidden unless the caller may change the project itself.

    Once somebody holds a repo of it, those who do may, and the node's own agent.
    """
    if ctx.caller.via != "local" and any(member.agent_id for member in project.members):
        party(ctx, project_id, project)
