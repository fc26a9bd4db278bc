"""What every method shares: its declaration, its context, and who acts in a project."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel
from uuid_utils import uuid7

from peers.clock import FUTURE_LIMIT, after
from peers.signing import SigningKey
from server.domain.acp.handoff import Rules as HandoffRules
from server.domain.acp.rules import Rules
from server.domain.agents import same_agent
from server.domain.contract import Party
from server.domain.errors import Forbidden, InvalidInput, NotFound, Refusal
from server.identity import Caller
from server.store import changes, digests, projects
from server.store.database import Database, Transaction
from server.store.files import File
from server.store.projects import Membership
from server.waiting import first

P = TypeVar("P", bound=BaseModel)
C = TypeVar("C")
R = TypeVar("R")
T = TypeVar("T")
Access = Literal["read", "write", "sync"]


async def _unasked(endpoint: str) -> None:
    return


@dataclass(frozen=True, slots=True)
class Node:
    """Who this node is, as its methods need to know it."""

    agent_id: str
    repo: str
    loopback: bool
    takes_unkeyed_peers: bool
    key: SigningKey
    url: str = ""
    future_limit: int = FUTURE_LIMIT
    """Microseconds that a stamp from elsewhere may be ahead of our time."""
    acp: Rules = field(default_factory=Rules)
    webhook_key: bytes = field(default=b"", repr=False)
    """What the secrets of webhooks are made from."""
    handoffs: HandoffRules = field(default_factory=HandoffRules)
    check_card: Callable[[str], Awaitable[None]] = field(default=_unasked, repr=False)
    """Refuses an agent that listens at a URL and speaks another CACP (`server.outgoing`)."""


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

    def read(self, function: Callable[[Context], T]) -> T:
        """Run a read of a few rows. Its context's stamp is the time."""
        return self.database.read(
            lambda db: function(
                Context(db, self.caller, self.node, self.method, self.database.now())
            )
        )

    async def read_wide(self, function: Callable[[Context], T]) -> T:
        """Run a read of much in a thread."""
        return await self.database.read_wide(
            lambda db: function(
                Context(db, self.caller, self.node, self.method, self.database.now())
            )
        )

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


@dataclass(frozen=True, slots=True)
class Method:
    """A JSON-RPC method: what it takes and gives, and how it is run.

    `wide` reads run in a thread; others are a few rows and run on the event loop.
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
    wide: bool = False
    large: bool = False
    waits: bool = False
    guard: Guard | None = None


METHODS: dict[str, Method] = {}
"""Every method by name, in the order of the specification."""


def reads(
    name: str,
    params: type[P],
    result: Any,
    *,
    access: Access = "read",
    wide: bool = False,
    guard: Guard | None = None,
) -> Callable[[Callable[[Context, P], Any]], Callable[[Context, P], Any]]:
    """Declare a method that changes nothing."""
    return _declare(name, params, result, access, guard, writes=False, wide=wide)


def writes(
    name: str,
    params: type[P],
    result: Any,
    *,
    access: Access = "write",
    large: bool = False,
    guard: Guard | None = None,
) -> Callable[[Callable[[Context, P], Any]], Callable[[Context, P], Any]]:
    """Declare a method that runs in one write transaction. It decides before it writes."""
    return _declare(name, params, result, access, guard, writes=True, large=large)


def waits(
    name: str, params: type[P], result: Any, *, access: Access, guard: Guard | None = None
) -> Callable[
    [Callable[[Session, P], Coroutine[Any, Any, Any]]],
    Callable[[Session, P], Coroutine[Any, Any, Any]],
]:
    """Declare a method that may wait before it answers."""
    return _declare(name, params, result, access, guard, writes=False, waits=True)


def _declare(
    name: str, params: type[P], result: Any, access: Access, guard: Guard | None, **how: bool
) -> Callable[[Callable[[C, P], R]], Callable[[C, P], R]]:
    def declare(run: Callable[[C, P], R]) -> Callable[[C, P], R]:
        summary = " ".join((run.__doc__ or "").split("\n\n")[0].split())
        METHODS[name] = Method(name, params, result, access, run, summary, guard=guard, **how)
        return run

    return declare


def new_id() -> str:
    """A UUIDv7: unique, and in the order of time, which keeps inserts close together."""
    return str(uuid7())


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
    """A project that the caller may see.

    Raises NotFound, or Forbidden when the caller's token is for another project.
    """
    check_scope(ctx, project_id)
    found = projects.membership(ctx.db, project_id)
    if found is None:
        raise NotFound(f"There is no project {project_id}", kind="project", projectId=project_id)
    return found


def check_scope(ctx: Context, project_id: str) -> None:
    """Raises Forbidden when the caller's token is for another project."""
    only = ctx.caller.project_id
    if only is not None and only != project_id:
        raise Forbidden(
            f"Your project token is for project {only}",
            reason="other_project",
            projectId=only,
        )


def check_unscoped(ctx: Context) -> None:
    """Raises Forbidden when the caller's token is for one project, and this is for none."""
    if ctx.caller.project_id is not None:
        raise Forbidden("Your project token is for one project", reason="other_project")


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
