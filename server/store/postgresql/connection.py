"""A connection to PostgreSQL with the interface of `server.store.connection`, over psycopg's pq
layer.

Statements are prepared once and sent in libpq's pipeline mode: one that returns no rows is sent
without waiting for its answer, which the next read or the commit collects. So a write function
costs a round trip for each of its reads only.
"""

import re
import select
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from server.store.postgresql.dialect import Statement, translate
from server.store.postgresql.errors import NodeMoved, NotReplicated, ServerSilent
from server.store.postgresql.text import from_stored, to_stored
from server.store.sql import POSTGRESQL

Row = tuple[Any, ...]

CONNECT_SECONDS = 5
ANSWER_SECONDS = 10.0
"""How long the server may be silent before a connection is given up. Longer than its own limits,
which leave the connection usable."""
STATEMENT_MS = 8_000
IDLE_MS = 5_000
"""How long a writer may hold the lock without a statement, such as when its process is stopped."""
LOCK_MS = 7_000
"""Longer, so that the other replicas' callers wait for the end of such a writer."""
WARNING = b"01000"
"""What an administrator who cancels a commit's wait for a synchronous standby brings about: it took
place on this server, and may be lost with it."""
UNANSWERED_MAX = 512
"""Statements sent before their answers are collected: neither side waits with full buffers."""

_CHANGES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
_RETURNS = re.compile(
    r"\s*(--[^\n]*\s+)*(SELECT|WITH|VALUES|SHOW|LISTEN)\b|.*\bRETURNING\b", re.I | re.S
)
_WHOLE = re.compile(rb"-?\d+")

_OK, _TUPLES, _ERROR = pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.FATAL_ERROR
_SYNC, _ABORTED = pq.ExecStatus.PIPELINE_SYNC, pq.ExecStatus.PIPELINE_ABORTED


def _bool(value: bytes) -> int:
    return int(value == b"t")


def _text(value: bytes) -> str:
    return from_stored(value.decode())


def _numeric(value: bytes) -> int | float:
    return int(value) if _WHOLE.fullmatch(value) else float(value)


def _bytes(value: bytes) -> bytes:
    return bytes.fromhex(value[2:].decode())


DECODERS: dict[int, Callable[[bytes], Any]] = {
    16: _bool,
    17: _bytes,
    20: int,
    21: int,
    23: int,
    26: int,
    700: float,
    701: float,
    1700: _numeric,
}
"""How values are read, by the type's OID; others are texts."""


class _Prepared(NamedTuple):
    name: bytes | None
    """None where a pooler allows no statement to be prepared for long."""
    text: bytes
    names: tuple[str, ...] | None
    """The parameters in order; None for positional ones."""
    changes: bool
    returns: bool


class PgCursor:
    """The rows of a statement, or how many it changed."""

    def __init__(self, connection: "PgConnection") -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self._next = 0
        self._result: Any = None

    def execute(self, sql: str, parameters: Any = (), /) -> "PgCursor":
        self._connection.run(self, sql, parameters)
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> "PgCursor":
        for each in parameters:
            self._connection.run(self, sql, each)
        return self

    @property
    def rowcount(self) -> int:
        if self._result is None:
            self._connection.settle()
        return int(self._result.command_tuples or 0) if self._result is not None else -1

    @property
    def tag(self) -> str:
        """The server's name for what it did, such as COMMIT."""
        return self._result.command_status.decode() if self._result is not None else ""

    @property
    def description(self) -> list[tuple[str]] | None:
        result = self._result
        if result is None:
            return None
        return [(result.fname(column).decode(),) for column in range(result.nfields)]

    def answered(self, result: Any) -> None:
        """Take the server's answer."""
        self._result = result
        self._next = 0
        self._rows = []
        if result.status == _TUPLES:
            decoders: list[Callable[[bytes], Any]] = [
                DECODERS.get(result.ftype(at), _text) for at in range(result.nfields)
            ]
            value = result.get_value
            self._rows = [
                tuple(
                    None if (cell := value(row, at)) is None else decode(cell)
                    for at, decode in enumerate(decoders)
                )
                for row in range(result.ntuples)
            ]

    def fetchone(self) -> Any:
        if self._next >= len(self._rows):
            return None
        row = self._rows[self._next]
        self._next += 1
        factory = self._connection.row_factory
        return row if factory is None else factory(self, row)

    def fetchall(self) -> list[Any]:
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        self._rows = []


class PgConnection:
    """One connection, used by one thread at a time."""

    def __init__(self, url: str, *, seconds: float = ANSWER_SECONDS) -> None:
        self.row_factory: Any = None
        self.total_changes = 0
        self._conninfo = conninfo(url)
        self._seconds = seconds
        self.pooled = False
        """A pooler such as PgBouncer is in between, and may give each transaction another
        connection to the server: nothing may be set or prepared for longer than a transaction."""
        self.reopen()

    def reopen(self) -> None:
        """Connect, in place of a connection that was cut. Raises psycopg.OperationalError."""
        self.in_transaction = False
        self.is_cut = True
        self._names = 0
        self._statements: dict[str, _Prepared] = {}
        self._unconfirmed: list[str] = []
        """Statements that the server may have refused to prepare."""
        self._sent: list[PgCursor | None] = []
        self._warnings: set[bytes | None] = set()
        """SQLSTATEs of what the server said besides its answers."""
        self._pg = pq.PGconn.connect(self._conninfo)
        if self._pg.status != pq.ConnStatus.OK:
            message = self._pg.get_error_message()
            self._pg.finish()
            raise psycopg.OperationalError(message)
        self._pg.notice_handler = self._noticed
        self._pg.nonblocking = 1
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)
        # A pooler gives out numbers of its own, by which it knows what to cancel.
        self.pooled = self._asked(b"SELECT pg_backend_pid()") != self._pg.backend_pid
        self._pg.enter_pipeline_mode()
        self.is_cut = False
        if not self.pooled:
            self.execute(_SESSION_LIMITS, _LIMITS)

    def _asked(self, statement: bytes) -> int:
        """The number that a statement returns, before the first of a pipeline."""
        self._pg.send_query(statement)
        until, answers = time.monotonic() + self._seconds, []
        try:
            while True:
                self._await(until)
                result = self._pg.get_result()
                if result is None:
                    break
                answers.append(result)
        except psycopg.Error:
            self._pg.finish()
            raise
        if not answers or answers[0].status != _TUPLES:
            message = answers[0].get_error_message() if answers else "no answer"
            self._pg.finish()
            raise psycopg.OperationalError(message)
        return int(answers[0].get_value(0, 0) or 0)

    @property
    def server_version(self) -> int:
        """Such as 150004 for 15.4."""
        return self._pg.server_version

    # --- statements -----------------------------------------------------------------------------

    def cursor(self) -> PgCursor:
        return PgCursor(self)

    def execute(self, sql: str, parameters: Any = (), /) -> PgCursor:
        cursor = PgCursor(self)
        self.run(cursor, sql, parameters)
        return cursor

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> PgCursor:
        return PgCursor(self).executemany(sql, parameters)

    def run(self, cursor: PgCursor, sql: str, parameters: Any) -> None:
        """Send a statement, and wait for its rows if it returns any."""
        if (step := _STEPS.get(sql)) is not None:
            step(self)
            return
        prepared = self._statements.get(sql) or self._prepare(sql)
        values = (
            parameters if prepared.names is None else [parameters[name] for name in prepared.names]
        )
        self._send(prepared, values, cursor)
        if prepared.returns or not self.in_transaction:
            self.settle()

    def _prepare(self, sql: str) -> _Prepared:
        statement: Statement = translate(POSTGRESQL.get(sql, sql))
        text = statement.text.encode()
        if self.pooled:
            name = None
        else:
            self._names += 1
            name = b"s%d" % self._names
            self._pg.send_prepare(name, text)
            self._sent.append(None)
        prepared = _Prepared(
            name,
            text,
            statement.names,
            bool(_CHANGES.search(statement.text)),
            bool(_RETURNS.match(statement.text)),
        )
        self._statements[sql] = prepared
        self._unconfirmed.append(sql)
        return prepared

    def _send(self, prepared: _Prepared, values: Any, cursor: PgCursor | None) -> None:
        encoded: list[bytes | None] = []
        formats: list[int] | None = None
        for value in values:
            kind = value.__class__
            if kind is str:
                encoded.append(to_stored(value).encode())
            elif kind is int:
                encoded.append(b"%d" % value)
            elif value is None:
                encoded.append(None)
            elif kind is bytes:
                formats = formats or [0] * len(values)
                formats[len(encoded)] = 1
                encoded.append(value)
            else:
                encoded.append(_encoded(value))
        if prepared.name is None:
            self._pg.send_query_params(prepared.text, encoded, None, formats)
        else:
            self._pg.send_query_prepared(prepared.name, encoded, formats)
        self._sent.append(cursor)
        if prepared.changes:
            self.total_changes += 1
        if len(self._sent) >= UNANSWERED_MAX:
            self.settle()

    # --- transactions ---------------------------------------------------------------------------

    def begin_writing(self) -> int:
        """Begin the only writing transaction of all replicas: waits for the lock of the row that
        holds the last stamp, and returns it."""
        self._begin(_BEGIN)
        self._send(self._known(_TRANSACTION_LIMITS), _LIMITS, None)
        row = self.execute(_LOCK).fetchone()
        if row is None:
            raise NodeMoved("there is nothing to lock")
        return int(row[0])

    def begin_reading(self) -> None:
        """Begin a transaction that reads one snapshot; it is sent with the first read."""
        self._begin(_SNAPSHOT)
        if self.pooled:
            self._send(self._known(_TRANSACTION_LIMITS), _LIMITS, None)

    def _begin(self, text: str) -> None:
        self.in_transaction = True
        self._send(self._known(text), (), None)

    def _known(self, text: str) -> _Prepared:
        return self._statements.get(text) or self._prepare(text)

    def note(self, stamp: int, replica: str, number: int) -> None:
        """Store the last stamp that was given out, and that this is the replica's commit of this
        number; wake the other replicas at the commit."""
        self._send(self._known(_NOTE), (stamp,), None)
        self._send(self._known(_NUMBER), (replica, number), None)
        self._send(self._known(_NOTIFY), (replica,), None)

    def commit(self) -> None:
        """Commit. When it raises and the connection is cut, the outcome is not known; neither is it
        when it raises NotReplicated."""
        cursor = PgCursor(self)
        self._warnings.clear()
        self._send(self._known(_COMMIT), (), cursor)
        self.settle()
        self.in_transaction = False
        if cursor.tag != "COMMIT":
            raise psycopg.InternalError("the transaction had failed before its commit")
        if WARNING in self._warnings:
            raise NotReplicated("the wait for the standby was canceled")

    def roll_back(self) -> None:
        """End a transaction, if there is one. The server ends that of a cut connection."""
        if self.in_transaction and not self.is_cut:
            self.in_transaction = False
            self._send(self._known(_ROLLBACK), (), None)
            self.settle()
        self.in_transaction = False

    # --- the wire -------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait for the answers to all that was sent. Raises the first error among them."""
        if self.is_cut:
            raise psycopg.OperationalError("the connection is closed")
        sent, self._sent = self._sent, []
        try:
            self._pg.pipeline_sync()
            failed = self._collect(sent)
        except psycopg.Error:
            self.cut()
            raise
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        if failed is not None:
            for sql in unconfirmed:
                self._statements.pop(sql, None)
            if self._pg.status != pq.ConnStatus.OK:
                self.cut()
            raise psycopg.errors.error_from_result(failed)

    def _collect(self, sent: list[PgCursor | None]) -> Any:
        """Give the cursors their answers. Returns the first that is an error."""
        until = time.monotonic() + self._seconds
        failed = None
        commands = iter(sent)
        while True:
            try:
                self._await(until)
            except psycopg.OperationalError:
                if failed is None:
                    raise
                # The server has said why, before it closed the connection.
                self.cut()
                return failed
            result = self._pg.get_result()
            if result is None:
                self._check_open()
                continue
            status = result.status
            if status == _SYNC:
                return failed
            # A connection that ends has more errors than there were statements.
            cursor = next(commands, None)
            if status in (_OK, _TUPLES):
                if cursor is not None:
                    cursor.answered(result)
            elif status == _ERROR:
                failed = failed or result
                if self._pg.status != pq.ConnStatus.OK:
                    return failed

    def _check_open(self) -> None:
        if self._pg.status != pq.ConnStatus.OK:
            raise psycopg.OperationalError(self._pg.get_error_message())

    def _noticed(self, notice: Any) -> None:
        self._warnings.add(notice.error_field(pq.DiagnosticField.SQLSTATE))

    def _await(self, until: float) -> None:
        """Wait until an answer is there. Raises ServerSilent."""
        pg = self._pg
        unsent = pg.flush()
        while pg.is_busy() or unsent:
            self._poll.modify(
                pg.socket, select.POLLIN | select.POLLOUT if unsent else select.POLLIN
            )
            left = until - time.monotonic()
            if left <= 0 or not self._poll.poll(left * 1000):
                raise ServerSilent(f"no answer for {self._seconds:g} seconds")
            pg.consume_input()
            unsent = pg.flush()

    def cut(self) -> None:
        """Give the connection up, without waiting for the server."""
        self.is_cut = True
        self._pg.finish()

    def close(self) -> None:
        self.cut()


_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_COMMIT = "COMMIT"
_ROLLBACK = "ROLLBACK"
_LIMITS = (LOCK_MS, STATEMENT_MS, IDLE_MS)
_SESSION_LIMITS = (
    "SELECT set_config('lock_timeout', ?, false), set_config('statement_timeout', ?, false),"
    " set_config('idle_in_transaction_session_timeout', ?, false)"
)
_TRANSACTION_LIMITS = _SESSION_LIMITS.replace("false", "true")
_LOCK = "SELECT stamp FROM cluster WHERE id = 1 FOR UPDATE"
_NOTE = "UPDATE cluster SET stamp = ? WHERE id = 1"
_NUMBER = (
    "INSERT INTO commits (replica, number, at) VALUES (?, ?, now()) ON CONFLICT (replica)"
    " DO UPDATE SET number = excluded.number, at = excluded.at"
)
_NOTIFY = "SELECT pg_notify('cacp', ?)"

_STEPS: dict[str, Callable[[PgConnection], Any]] = {
    "BEGIN IMMEDIATE": PgConnection.begin_writing,
    "BEGIN": PgConnection.begin_reading,
    "COMMIT": PgConnection.commit,
    "ROLLBACK": PgConnection.roll_back,
}
"""SQLite's words for transactions."""


def conninfo(url: str) -> bytes:
    """The URL with what keeps a dead server from hanging a connection, where it does not say so
    itself. Raises psycopg.ProgrammingError for a URL that is none."""
    given = conninfo_to_dict(url)
    kept: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
        "application_name": "cacp",
        "client_encoding": "UTF8",
    }
    if "," in str(given.get("host") or ""):
        # Of several servers, the one that takes writes now.
        kept["target_session_attrs"] = "read-write"
    return make_conninfo(**{**kept, **given}).encode()


def _encoded(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"1" if value else b"0"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        return repr(value).encode()
    if isinstance(value, str):
        return to_stored(value).encode()
    raise TypeError(f"a parameter can't be a {type(value).__name__}")
