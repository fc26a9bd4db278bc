"""Gathers single-row inserts of a transaction and sends those that are alike as one statement of
many rows: a group of writes inserts into the same few tables, and the server spends more on a
statement than on a row. Statements that set or count the same row again and again go as one too."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from server.store.postgresql.statement import PgStatement
from server.store.postgresql.values import Values, encoded
from server.store.sql import SQL, plain

ROWS_MAX = 32
"""The most rows of one statement. Each power of two below is a statement of its own."""
PARENTS = {
    "archived_dead_letters": "messages_archive",
    "contracts": "projects",
    "delivery_log": "messages",
    "file_requests": "projects",
    "files": "projects",
    "handoff_control": "handoffs",
    "handoff_history": "handoffs",
    "key_projects": "keys",
    "mail_out": "messages",
    "mail_routes": "messages",
    "mail_sources": "messages",
    "packets": "projects",
    "repo_aliases": "repos",
    "repos": "projects",
    "tasks": "teamspaces",
    "team_log": "teamspaces",
    "team_members": "teamspaces",
    "thread_parties": "threads",
    "unanswered_queries": "messages",
    "workq_intents": "handoffs",
}
"""The tables to which others refer: what is inserted into them goes first."""
APART = frozenset({"attention_counts", "mailboxes", "send_rates"})
"""Tables without references and triggers: what else is written to them may go before inserts into
other tables that were asked for earlier."""


class Repeated(NamedTuple):
    """A statement that may come again and again for one row: which of its parameters name the row,
    and which is added up; without one the last stands for all."""

    row: tuple[int, ...]
    added: int | None = None


REPEATED = {
    plain(SQL.put_high_water): Repeated((1,)),
    plain(SQL.put_send_stamps): Repeated((0, 1)),
    plain(SQL.add_to_opening_count): Repeated((0, 1), added=2),
}
"""Statements that go as one for each row. All are about tables that stand apart."""

Send = Callable[[PgStatement, int, Values], None]
"""Sends a plain insert of so many rows."""


class InsertBatches:
    """The inserts of one connection that are not sent yet."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._rows: dict[str, tuple[PgStatement, list[Values]]] = {}
        self._repeated: dict[tuple[Any, ...], tuple[PgStatement, list[Any]]] = {}
        """Repeated statements and their parameters, by statement and row."""

    def add(self, sql: str, prepared: PgStatement, values: Values) -> None:
        """Take an insert of one row."""
        waiting = self._rows.get(sql)
        if waiting is None:
            if self._has(prepared.table):
                self.flush()
            waiting = self._rows[sql] = (prepared, [])
        waiting[1].append(values)
        if len(waiting[1]) >= ROWS_MAX:
            self.flush()

    def repeat(self, sql: str, prepared: PgStatement, values: Sequence[Any]) -> None:
        """Take a statement of REPEATED."""
        row, added = REPEATED[sql]
        key = (sql, *(values[at] for at in row))
        latest = list(values)
        if added is not None and key in self._repeated:
            latest[added] += self._repeated[key][1][added]
        self._repeated[key] = prepared, latest

    def before(self, prepared: PgStatement) -> None:
        """Send what must go before another statement."""
        if not self._rows and not self._repeated:
            return
        tables = prepared.writes | prepared.reads
        is_apart = not prepared.returns and prepared.writes and tables <= APART
        if not is_apart or any(map(self._has, tables)):
            self.flush()

    def flush(self) -> None:
        """Send all."""
        rows, self._rows = self._rows, {}
        for prepared, waiting in sorted(rows.values(), key=_generation):
            at = 0
            while at < len(waiting):
                count = 1 << (len(waiting) - at).bit_length() - 1
                self._send(prepared, count, _joined(waiting[at : at + count]))
                at += count
        repeated, self._repeated = self._repeated, {}
        for prepared, values in repeated.values():
            self._send(prepared, 1, encoded(values))

    def forget(self) -> None:
        """Send nothing of it: the transaction is over."""
        self._rows.clear()
        self._repeated.clear()

    def _has(self, table: str) -> bool:
        return any(prepared.table == table for prepared, _ in self._rows.values()) or any(
            prepared.table == table for prepared, _ in self._repeated.values()
        )


def _generation(waiting: tuple[PgStatement, list[Values]]) -> int:
    """How many tables are above that of the inserts, which go before it."""
    table, above = waiting[0].table, 0
    while (parent := PARENTS.get(table)) is not None:
        table, above = parent, above + 1
    return above


def _joined(rows: list[Values]) -> Values:
    encoded = [value for row in rows for value in row.encoded]
    if all(row.formats is None for row in rows):
        return Values(encoded, None)
    return Values(encoded, [form for row in rows for form in row.formats or [0] * len(row.encoded)])
