"""A connection to PostgreSQL with the interface of `server.store.connection`, over psycopg's pq
layer.

Statements are prepared once and sent in libpq's pipeline mode: one that returns no rows is sent
without waiting for its answer, which the next read or the commit collects. So a write function
costs a round trip for each of its reads only.
"""

import select
import time
from collections.abc import Callable, Iterable
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from server.store.postgresql.cursor import PgCursor, chunk_rows
from server.store.postgresql.errors import NodeMoved, NotReplicated, ServerSilent
from server.store.postgresql.insert_batches import REPEATED, InsertBatches
from server.store.postgresql.row_cache import KEPT, RowCache
from server.store.postgresql.statement import PgStatement, prepare
from server.store.postgresql.values import Values, encoded

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
CHUNK_ROWS = 4
"""The first rows that come of a stream; each may have a megabyte."""
UNANSWERED_MAX = 512
"""Statements sent before their answers are collected: neither side waits with full buffers."""

_OK, _TUPLES, _ERROR = pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.FATAL_ERROR
_SYNC = pq.ExecStatus.PIPELINE_SYNC


class PgConnection:
    """One connection, used by one thread at a time."""

    def __init__(self, url: str, *, seconds: float = ANSWER_SECONDS) -> None:
        self.row_factory: Any = None
        self.total_changes = 0
        self._changes_before = 0
        self._affected = 0
        """How many rows this transaction has changed, of what is answered."""
        self._stamp: int | None = None
        """The last stamp that this transaction gives out, once it is known."""
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
        self._prepared: dict[str, PgStatement] = {}
        self._names: dict[str, bytes] = {}
        """The server's names of statements, by their text."""
        self._last_name = 0
        self._unconfirmed: list[str] = []
        """Statements that the server may have refused to prepare."""
        self._is_writing = False
        self._cursors = 0
        self._rows = RowCache()
        self._inserts = InsertBatches(self._insert)
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
        prepared = self._known(sql)
        values = prepared.values(parameters)
        if self._is_writing:
            self._write(cursor, sql, prepared, values)
            return
        if self.in_transaction and self.row_factory is not None and prepared.returns:
            # Whoever counts the rows may end a large read early.
            self._stream(cursor, prepared, encoded(values))
            return
        self._send(prepared.text, encoded(values), cursor)
        self.total_changes += bool(prepared.writes)
        if prepared.returns or not self.in_transaction:
            self.settle()

    def _write(self, cursor: PgCursor, sql: str, prepared: PgStatement, values: Any) -> None:
        """Send a statement of a transaction that writes, or leave it to be sent with others."""
        if sql in KEPT:
            key = (sql, *values)
            kept = self._rows.find(key)
            if kept is None:
                self._inserts.before(prepared)
                self._send(prepared.text, encoded(values), cursor)
                self.settle()
                self._rows.keep(key, cursor.rows, prepared.reads)
            else:
                cursor.show(kept)
            return
        if prepared.writes:
            self.total_changes += 1
            if not self._rows.replaced(sql, values):
                self._rows.wrote(prepared.writes)
        if prepared.insert is not None:
            cursor.changes_one = True
            self._inserts.add(sql, prepared, encoded(values))
            return
        if sql in REPEATED:
            cursor.changes_one = True
            self._inserts.repeat(sql, prepared, values)
            return
        self._inserts.before(prepared)
        self._send(prepared.text, encoded(values), cursor)
        if prepared.returns:
            self.settle()

    def stream(self, sql: str, parameters: Any = (), /) -> PgCursor:
        """Run a statement that returns rows, in a transaction. They come a few at a time, as they
        are taken."""
        cursor, prepared = PgCursor(self), self._known(sql)
        self._stream(cursor, prepared, encoded(prepared.values(parameters)))
        return cursor

    def _stream(self, cursor: PgCursor, prepared: PgStatement, values: Values) -> None:
        self._cursors += 1
        name = f"rows_{self._cursors}"
        declared = f"DECLARE {name} NO SCROLL CURSOR FOR {prepared.text}"
        self._send_once(declared, values, None)
        rows = CHUNK_ROWS

        def more() -> bool:
            nonlocal rows
            self._send_once(f"FETCH {rows} FROM {name}", _NO_VALUES, cursor)
            self.settle()
            if len(cursor.rows) < rows:
                cursor.more = None
                self._send_once(f"CLOSE {name}", _NO_VALUES, None)
            rows = chunk_rows(rows, cursor.size)
            return bool(cursor.rows)

        cursor.more = more
        more()

    def _send_once(self, text: str, values: Values, cursor: PgCursor | None) -> None:
        """Send a statement that is of no use to prepare."""
        self._pg.send_query_params(text.encode(), values.encoded, None, values.formats)
        self._sent.append(cursor)

    def _insert(self, prepared: PgStatement, count: int, values: Values) -> None:
        self._send(prepared.text if count == 1 else prepared.of_rows(count), values, None)

    def _known(self, sql: str) -> PgStatement:
        prepared = self._prepared.get(sql)
        if prepared is None:
            prepared = self._prepared[sql] = prepare(sql)
        return prepared

    def _send(self, text: str, values: Values, cursor: PgCursor | None) -> None:
        """Send a statement, which the server prepares when it gets it for the first time."""
        if self.pooled:
            self._send_once(text, values, cursor)
        else:
            name = self._names.get(text)
            if name is None:
                self._last_name += 1
                name = self._names[text] = b"s%d" % self._last_name
                self._unconfirmed.append(text)
                self._pg.send_prepare(name, text.encode())
                self._sent.append(None)
            self._pg.send_query_prepared(name, values.encoded, values.formats)
            self._sent.append(cursor)
        if len(self._sent) >= UNANSWERED_MAX:
            self.settle()

    def _tell(self, sql: str, *values: Any) -> None:
        """Send a statement of whose rows there is nothing to know."""
        self._send(self._known(sql).text, encoded(values), None)

    # --- transactions ---------------------------------------------------------------------------

    def begin_writing(self) -> int:
        """Begin the only writing transaction of all replicas: waits for the lock of the row that
        holds the last stamp, and returns it."""
        self.in_transaction = True
        self._tell(_BEGIN)
        self._tell(_TRANSACTION_LIMITS, *_LIMITS)
        row = self.execute(_LOCK).fetchone()
        if row is None:
            raise NodeMoved("there is nothing to lock")
        stamp = int(row[0])
        self._rows.begin(stamp)
        self._is_writing = True
        self._stamp = None
        self._changes_before = self.total_changes
        self._affected = 0
        return stamp

    def begin_reading(self) -> None:
        """Begin a transaction that reads one snapshot; it is sent with the first read."""
        self.in_transaction = True
        self._tell(_SNAPSHOT)
        if self.pooled:
            self._tell(_TRANSACTION_LIMITS, *_LIMITS)

    def note(self, stamp: int, replica: str, number: int) -> None:
        """Store the last stamp that was given out, and that this is the replica's commit of this
        number; wake the other replicas at the commit."""
        self._stamp = stamp
        self._inserts.flush()
        self._tell(_NOTE, stamp)
        self._tell(_NUMBER, replica, number)
        self._tell(_NOTIFY, replica)

    def commit(self) -> None:
        """Commit. When it raises and the connection is cut, the outcome is not known; neither is it
        when it raises NotReplicated."""
        if self._is_writing and self._stamp is None and self.total_changes != self._changes_before:
            self._inserts.flush()
            self.settle()
            if self._affected:
                self._note_other()
        cursor = PgCursor(self)
        self._warnings.clear()
        self._send(_COMMIT, _NO_VALUES, cursor)
        self.settle()
        self.in_transaction = self._is_writing = False
        if cursor.tag != "COMMIT":
            raise psycopg.InternalError("the transaction had failed before its commit")
        if WARNING in self._warnings:
            raise NotReplicated("the wait for the standby was canceled")
        if self._stamp is not None:
            self._rows.committed(self._stamp)

    def _note_other(self) -> None:
        """Tell all replicas of what a program beside them commits, which gives out no stamps."""
        self._tell(_NOTE_OTHER)
        self._tell(_NOTIFY, "")
        self._rows.forget()

    def roll_back(self) -> None:
        """End a transaction, if there is one. The server ends that of a cut connection."""
        was_open, self.in_transaction = self.in_transaction, False
        self._is_writing = False
        self._inserts.forget()
        self._rows.rolled_back()
        if was_open and not self.is_cut:
            self._send(_ROLLBACK, _NO_VALUES, None)
            self.settle()

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
            for text in unconfirmed:
                self._names.pop(text, None)
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
                if status == _OK:
                    self._affected += int(result.command_tuples or 0)
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
_NOTE_OTHER = (
    # The first stamp of all is a time, from which a start may go on.
    "UPDATE cluster SET stamp = CASE stamp WHEN 0 THEN server_time() ELSE stamp + 1 END"
    " WHERE id = 1"
)
_NOTIFY = "SELECT pg_notify('cacp', ?)"
_NO_VALUES = Values([], None)

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
