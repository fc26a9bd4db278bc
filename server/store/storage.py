"""What a node's `Database` asks of the kind of database behind it: an SQLite file, or a PostgreSQL
server that replicas share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from server.domain.errors import Unavailable
from server.store.connection import Connection, ReadFunction
from server.store.metered import Count

if TYPE_CHECKING:
    # Commands prepare databases too, and both are slow to import.
    from server.store.projects import Membership
    from server.util.duty import HeldDuty
    from server.util.loops import Loops

T = TypeVar("T")

WIDE_READERS = 2
"""Wide reads that run at the same time, at least."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A database that is ready to use: its epoch, and its largest stamp."""

    epoch: str
    last_stamp: int


class Shared(Protocol):
    """What replicas have that share a database: what each of them tells the others goes past the
    lock of those who write."""

    replica: str
    """This process, among the replicas."""

    @property
    def migration(self) -> str:
        """The newest migration that this release knows."""

    def now(self) -> int:
        """The time of the database server: microseconds since 1970."""

    async def aside(self, function: Callable[[Connection], T]) -> T:
        """Run a function on a connection of its own, where each statement is a transaction; it may
        be run twice. Raises Unavailable, within some seconds."""

    def verify(self, connection: Connection, duty: "HeldDuty") -> None:
        """In a transaction that writes: raise Unavailable unless this replica still has the duty,
        which it then keeps until the transaction has ended."""


class KeptMemberships(Protocol):
    """Memberships of projects that are kept between transactions that write."""

    def find(self, project_id: str) -> "Membership | None":
        """That of a project, if it is known."""

    def keep(self, project_id: str, membership: "Membership", /) -> None:
        """Note what the transaction has read."""


class Storage(Protocol):
    """A kind of database. Its writer is one connection on one thread."""

    errors: tuple[type[Exception], ...]
    """What its driver raises."""

    @property
    def memberships(self) -> "KeptMemberships | None":
        """What the writer knows of projects already; None where its connection keeps rows."""

    @property
    def shared(self) -> Shared | None:
        """None for a database that one process has alone."""

    def unavailable(self, error: Exception) -> Unavailable:
        """The refusal for a driver's error, with a reason for programs."""

    async def open(self, loops: "Loops", news: Callable[[], None]) -> None:
        """Open the connections. `news` is to be called, on the event loop, when another process
        may have written. Raises what the driver raises, with nothing left open."""

    async def close(self) -> None:
        """Close the connections; nothing is waiting any more."""

    async def read(self, function: ReadFunction[T]) -> T:
        """Run a read of a few rows."""

    async def read_wide(self, function: ReadFunction[T], count: Count | None) -> T:
        """Run a read of many rows in a thread, on one consistent snapshot."""

    async def on_writer(self, function: Callable[[Connection], T]) -> T:
        """Run a function on the writer's thread, with its connection."""

    def begin(self, connection: Connection) -> int:
        """Begin the only transaction that may write. Returns the last stamp that another process
        has given out; 0 when there is none."""

    def commit(self, connection: Connection, stamp: int) -> None:
        """Commit; `stamp` is the last that was given out. Raises OutcomeUnknown, after
        which the group must not be run again."""

    def roll_back(self, connection: Connection) -> None:
        """End a transaction, if there is one."""

    def is_cut(self, connection: Connection) -> bool:
        """Whether the connection is of no use any more, so that to run each function of a failed
        group alone would fail as well."""

    def is_lost(self) -> bool:
        """Whether what is written now would be lost with this process."""

    def broken(self) -> str | None:
        """Why the database is of no use, seen without a query; None while it may be."""

    def is_short(self) -> bool:
        """Whether its disk is nearly full, where this machine can see it."""

    def wrote(self) -> None:
        """Note that a group was run."""

    def facts(self) -> dict[str, Any]:
        """What people are shown of it: its kind, and sizes in bytes where they are known."""
