"""A database that replicas share, in memory: the rows of a duty, and a clock that tests set."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from server.domain import duty
from server.domain.duty import Lease
from server.domain.errors import Unavailable
from server.store.connection import Connection
from server.store.database import Database
from server.store.postgresql import duties


@dataclass
class Server:
    """`time` is in microseconds, for the server and for all steady clocks."""

    time: int = 10**15
    lease: Lease | None = None


@dataclass
class SharedOfTest:
    """What one replica has of the server; `away` while it can't reach it."""

    server: Server
    replica: str
    away: bool = False
    migration: str = "baseline"
    asked: list[str] = field(default_factory=list)

    def now(self) -> int:
        return self.server.time

    async def aside(self, function: Callable[[Connection], Any]) -> Any:
        if self.away:
            raise Unavailable("away", reason="storage_failed")
        return function(cast(Connection, self.server))

    def verify(self, connection: Connection, held: object) -> None:
        raise NotImplementedError


class ClockOfTest:
    def __init__(self, server: Server) -> None:
        self._server = server

    def steady(self) -> int:
        return self._server.time


class DatabaseOfTest:
    """As much of a `Database` as a duty needs."""

    def __init__(self, server: Server, replica: str) -> None:
        self.storage = self
        self.shared: SharedOfTest | None = SharedOfTest(server, replica)
        self.clock = ClockOfTest(server)

    def as_database(self) -> Database:
        return cast(Database, self)


def rows_in_memory(monkeypatch: Any) -> None:
    """Have the statements of `duties` work on a Server, as they do on a table."""

    def look(db: Any) -> tuple[Lease | None, int]:
        return db.lease, db.time

    def take(db: Any, seen: Lease | None, replica: str) -> int | None:
        if db.lease != seen:
            return None
        db.lease = duty.taken(seen, replica, db.time)
        return int(db.lease.epoch)

    def renew(db: Any, replica: str, epoch: int) -> bool:
        lease = db.lease
        if lease is None or lease[:2] != (replica, epoch) or lease.until <= db.time:
            return False
        db.lease = lease._replace(until=db.time + duty.LEASE)
        return True

    def release(db: Any, replica: str, epoch: int) -> None:
        if db.lease is not None and db.lease[:2] == (replica, epoch):
            db.lease = db.lease._replace(until=0)

    for function in (look, take, renew, release):
        monkeypatch.setattr(duties, function.__name__, function)
