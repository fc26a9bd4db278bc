"""Inserts that are sent together leave what they would have left one by one."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.domain.identifiers import repo_id_for
from server.domain.location import DatabaseUrl
from server.store import changes, projects
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.insert_batches import (
    APART,
    PARENTS,
    REPEATED,
    ROWS_MAX,
    InsertBatches,
)
from server.store.postgresql.statement import PgStatement, prepare
from server.store.postgresql.values import Values, encoded
from server.store.projects import ProjectHeader, Repo
from server.store.sql import SQL, plain
from tests.support.postgresql import database

CHANGE = "INSERT INTO changes (at, origin) VALUES (?, ?)"
PROJECT = "INSERT INTO projects (project_id) VALUES (?)"
REPO = "INSERT INTO repos (project_id, repo_id) VALUES (?, ?)"
ALIAS = "INSERT INTO repo_aliases (project_id, repo_id) VALUES (?, ?)"
COUNT = "INSERT INTO attention_counts (kind, open) VALUES (?, ?)"
UPSERT_COUNT = f"{COUNT} ON CONFLICT (kind) DO UPDATE SET open = 1"

Sent = list[tuple[str, int, Values]]


@pytest.fixture(scope="module")
def url() -> Iterator[DatabaseUrl]:
    with database() as made:
        yield made


@pytest.fixture(scope="module")
def db(url: DatabaseUrl) -> Iterator[PgConnection]:
    with closing(PgConnection(url)) as connection:
        yield connection


def batches() -> tuple[InsertBatches, Sent]:
    """Batches, and what they send: tables, numbers of rows and values."""
    sent: Sent = []

    def send(statement: PgStatement, count: int, values: Values) -> None:
        sent.append((statement.table, count, values))

    return InsertBatches(send), sent


def add(inserts: InsertBatches, sql: str, *values: Any) -> None:
    inserts.add(sql, prepare(sql), encoded(values))


# --- what is sent ---------------------------------------------------------------------------------


def test_inserts_wait_for_others_and_go_as_one() -> None:
    inserts, sent = batches()
    add(inserts, CHANGE, 1, "a")
    add(inserts, CHANGE, 2, "b")
    assert sent == []
    inserts.flush()
    assert sent == [("changes", 2, Values([b"1", b"a", b"2", b"b"], None))]
    inserts.flush()
    assert len(sent) == 1


@pytest.mark.parametrize("count", range(1, 2 * ROWS_MAX + 2))
def test_statements_have_few_sizes(count: int) -> None:
    """Each is prepared once: powers of two, the largest first, and no more than the bound."""
    inserts, sent = batches()
    for number in range(count):
        add(inserts, CHANGE, number, "x")
    inserts.flush()
    sizes = [rows for _, rows, _ in sent]
    assert sum(sizes) == count
    assert all(size & (size - 1) == 0 and size <= ROWS_MAX for size in sizes)
    assert len(sizes) <= count // ROWS_MAX + count.bit_length()
    at = [value for _, _, values in sent for value in values.encoded[::2]]
    assert at == [b"%d" % number for number in range(count)]


def test_no_more_rows_wait_than_the_bound() -> None:
    inserts, sent = batches()
    for number in range(ROWS_MAX):
        assert sent == []
        add(inserts, CHANGE, number, "x")
    assert [rows for _, rows, _ in sent] == [ROWS_MAX]


def test_binary_values_are_marked_in_their_row() -> None:
    inserts, sent = batches()
    add(inserts, CHANGE, 1, "a")
    add(inserts, CHANGE, 2, b"\0")
    inserts.flush()
    assert sent == [("changes", 2, Values([b"1", b"a", b"2", b"\0"], [0, 0, 0, 1]))]


def test_a_transaction_that_is_over_sends_nothing_more() -> None:
    inserts, sent = batches()
    add(inserts, CHANGE, 1, "a")
    inserts.forget()
    inserts.flush()
    assert sent == []


# --- in which order -------------------------------------------------------------------------------


def test_parents_go_before_their_children_whichever_came_first() -> None:
    inserts, sent = batches()
    add(inserts, ALIAS, "known", "known")
    add(inserts, REPO, "known", "r1")
    add(inserts, CHANGE, 1, "a")
    add(inserts, PROJECT, "p")
    add(inserts, REPO, "p", "r2")
    add(inserts, ALIAS, "p", "r2")
    inserts.flush()
    assert [(table, rows) for table, rows, _ in sent] == [
        ("changes", 1),
        ("projects", 1),
        ("repos", 2),
        ("repo_aliases", 2),
    ]


def test_rows_of_one_table_keep_their_order() -> None:
    """The sequence of changes is that of the writes, also when their statements differ."""
    inserts, sent = batches()
    other = "INSERT INTO changes (at) VALUES (?)"
    for number, sql in enumerate([CHANGE, CHANGE, other, CHANGE, other, other]):
        add(inserts, sql, number, *(["x"] if sql == CHANGE else []))
    inserts.flush()
    assert [rows for _, rows, _ in sent] == [2, 1, 1, 2]
    numbers = [value for _, _, values in sent for value in values.encoded if value != b"x"]
    assert numbers == [b"%d" % number for number in range(6)]


@pytest.mark.parametrize(
    "after",
    [
        "SELECT 1 FROM meta",
        "UPDATE meta SET value = ?",
        "DELETE FROM changes",
        "INSERT INTO meta (name) VALUES (?) ON CONFLICT DO NOTHING",
        "INSERT INTO changes (at) SELECT 1",
        "SET LOCAL lock_timeout = 1",
        "UPDATE attention_counts SET open = 1 WHERE kind IN (SELECT origin FROM changes)",
    ],
)
def test_inserts_go_before_what_may_depend_on_them(after: str) -> None:
    inserts, sent = batches()
    add(inserts, CHANGE, 1, "a")
    inserts.before(prepare(after))
    assert len(sent) == 1


def test_what_stands_apart_goes_before_inserts_into_other_tables() -> None:
    inserts, sent = batches()
    add(inserts, CHANGE, 1, "a")
    inserts.before(prepare(UPSERT_COUNT))
    inserts.before(prepare(SQL.add_to_opening_count.sql))
    assert sent == []
    add(inserts, COUNT, "k", 1)
    inserts.before(prepare(UPSERT_COUNT))
    assert [table for table, _, _ in sent] == ["changes", "attention_counts"]


# --- what comes again and again -------------------------------------------------------------------


COUNTED, LATEST = plain(SQL.add_to_opening_count), plain(SQL.put_high_water)


def repeat(inserts: InsertBatches, sql: str, *values: Any) -> None:
    inserts.repeat(sql, prepare(sql), values)


def test_what_is_said_of_one_row_goes_as_one_statement() -> None:
    inserts, sent = batches()
    for number in (1, 2, 3):
        repeat(inserts, LATEST, number, "ann")
        repeat(inserts, COUNTED, "p", "respond", number)
    repeat(inserts, LATEST, 9, "ben")
    repeat(inserts, COUNTED, "p", "answer", -1)
    add(inserts, CHANGE, 1, "a")
    assert sent == []
    inserts.flush()
    assert sent[0][0] == "changes"
    assert [(table, rows, values.encoded) for table, rows, values in sent[1:]] == [
        ("mailboxes", 1, [b"3", b"ann"]),
        ("attention_counts", 1, [b"p", b"respond", b"6"]),
        ("mailboxes", 1, [b"9", b"ben"]),
        ("attention_counts", 1, [b"p", b"answer", b"-1"]),
    ]
    inserts.flush()
    assert len(sent) == 5


@pytest.mark.parametrize("after", ["SELECT open FROM attention_counts", UPSERT_COUNT])
def test_it_goes_before_what_may_depend_on_it(after: str) -> None:
    inserts, sent = batches()
    repeat(inserts, COUNTED, "p", "respond", 1)
    inserts.before(prepare(after))
    assert [table for table, _, _ in sent] == ["attention_counts"]


def test_an_insert_into_its_table_goes_after_it_when_it_came_after() -> None:
    inserts, sent = batches()
    repeat(inserts, COUNTED, "p", "respond", 1)
    add(inserts, COUNT, "k", 1)
    assert len(sent) == 1
    repeat(inserts, COUNTED, "p", "respond", 1)
    inserts.flush()
    assert [len(values.encoded) for _, _, values in sent] == [3, 2, 3], "the insert is between"


def test_nothing_of_it_is_left_of_a_transaction_that_is_over() -> None:
    inserts, sent = batches()
    repeat(inserts, COUNTED, "p", "respond", 1)
    inserts.forget()
    inserts.flush()
    assert sent == []


def test_it_is_about_tables_that_stand_apart() -> None:
    for sql in REPEATED:
        statement = prepare(sql)
        assert statement.writes <= APART, sql
        assert not statement.returns, sql


# --- what is said of the tables -------------------------------------------------------------------


def test_parents_are_the_foreign_keys_of_the_database(db: PgConnection) -> None:
    asked = (
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint"
        " WHERE contype = 'f'"
    )
    assert sorted(set(db.execute(asked).fetchall())) == sorted(PARENTS.items())


def test_tables_apart_have_no_references_and_no_triggers(db: PgConnection) -> None:
    triggers = "SELECT tgrelid::regclass::text FROM pg_trigger"
    with_triggers = {table for (table,) in db.execute(triggers)}
    assert with_triggers >= {"packets", "contracts"}
    assert not APART & with_triggers
    assert not APART & {*PARENTS, *PARENTS.values()}
    tables = {table for (table,) in db.execute("SELECT relname::text FROM pg_class")}
    assert tables >= {*APART, *PARENTS}


# --- any transaction ------------------------------------------------------------------------------

INSERT_ALIAS = "INSERT INTO repo_aliases (project_id, alias, repo_id) VALUES (?, ?, ?)"
INSERT_META = "INSERT INTO meta (name, value) VALUES (?, ?)"
UPSERT_META = f"{INSERT_META} ON CONFLICT (name) DO UPDATE SET value = meta.value || 'x'"
INSERT_COUNT = "INSERT INTO attention_counts (project_id, kind, open) VALUES (?, ?, ?)"
OTHER_CHANGE = """INSERT INTO changes (entity_id, at, origin, actor, action, entity, outcome)
                  VALUES (?, ?, ?, ?, ?, ?, ?)"""
RENAME = "UPDATE repos SET role = role || 'x' WHERE language = ?"
HISTORY = "SELECT entity_id FROM changes ORDER BY seq"


class Writing:
    """A transaction, statement by statement, in which each kind of statement may come next."""

    def __init__(self, db: PgConnection) -> None:
        self.db = db
        self.done = 0
        self.projects: list[str] = []
        self.boxes: list[str] = []
        self.put: set[str] = set()
        """Keys that an upsert may have taken before their insert."""

    def step(self, kind: str, number: int) -> str:
        """A statement of a kind, about a new row or one of those before; returns its result."""
        self.done += 1
        result = getattr(self, kind)(number, f"{kind}{self.done}")
        return f"{kind} {result}"

    def project(self, number: int, new: str) -> None:
        projects.insert(self.db, ProjectHeader(new, "name", "", "planning", "any", 1, 1), [])
        self.projects.append(new)

    def repo(self, number: int, new: str) -> None:
        project_id = self._chosen(number)
        id = repo_id_for(project_id, new)
        added = Repo(id, new, "backend", f"{number}", "[]", None, self.done)
        projects.insert_repo(self.db, project_id, added)
        if number % 2:
            self.db.execute(INSERT_ALIAS, (project_id, new, id))

    def orphan(self, number: int, new: str) -> None:
        """It is refused, and all before it."""
        self.db.execute(INSERT_ALIAS, (new, new, new))

    def change(self, number: int, new: str) -> None:
        append(self.db, new)

    def other_change(self, number: int, new: str) -> int:
        row = (new, 2, "n", "x", "y", "z", "" if number % 2 else "é\0")
        return self.db.execute(OTHER_CHANGE, row).rowcount

    def meta(self, number: int, new: str) -> int | None:
        if new in self.put:
            return None
        return self.db.execute(INSERT_META, (new, "")).rowcount

    def put_meta(self, number: int, new: str) -> None:
        self.put.add(f"meta{number}")
        self.db.execute(UPSERT_META, (f"meta{number}", ""))

    def count(self, number: int, new: str) -> None:
        if new not in self.put:
            self.db.execute(INSERT_COUNT, (new, "kind", 1))

    def put_count(self, number: int, new: str) -> None:
        self.put.add(f"count{number}")
        SQL.add_to_opening_count(self.db, project_id=f"count{number}", kind="kind", change=1)

    def repeated_count(self, number: int, new: str) -> int:
        self.put.add(f"count{number}")
        return self.db.execute(COUNTED, (f"count{number}", "kind", number)).rowcount

    def box(self, number: int, new: str) -> None:
        SQL.open_box(self.db, address=new, created_at="")
        self.boxes.append(new)

    def high_water(self, number: int, new: str) -> None:
        if self.boxes:
            box = self.boxes[number % len(self.boxes)]
            self.db.execute(LATEST, (self.done, box))

    def mailbox(self, number: int, new: str) -> object:
        return self.boxes and SQL.mailbox(self.db, address=self.boxes[-1])

    def rename(self, number: int, new: str) -> int:
        return self.db.execute(RENAME, (f"{number}",)).rowcount

    def remove(self, number: int, new: str) -> None:
        self.db.execute("DELETE FROM repo_aliases WHERE project_id = ?", (self._chosen(number),))
        self.db.execute("DELETE FROM repos WHERE project_id = ?", (self._chosen(number),))

    def membership(self, number: int, new: str) -> object:
        return projects.membership(self.db, self._chosen(number))

    def history(self, number: int, new: str) -> object:
        return self.db.execute(HISTORY).fetchall()

    def _chosen(self, number: int) -> str:
        if not self.projects:
            self.project(number, "first")
        return self.projects[number % len(self.projects)]


KINDS = [name for name in vars(Writing) if not name.startswith("_") and name != "step"]
RARE = {"orphan", "history", "remove", "rename", "membership", "mailbox"}
"""What comes seldom, so that more than a few inserts wait for each other."""
STEPS = st.tuples(
    st.sampled_from(KINDS + 5 * [kind for kind in KINDS if kind not in RARE]), st.integers(0, 20)
)


def append(db: PgConnection, id: str) -> None:
    changes.append(
        db,
        at=1,
        origin="node",
        actor="actor",
        action="did",
        entity="project",
        entity_id=id,
        project_id=None,
        outcome="done",
    )


def left(db: PgConnection) -> list[Any]:
    """What the tables hold, changes in their order."""
    ordered = {
        "SELECT entity_id, origin FROM changes ORDER BY seq",
        "SELECT project_id FROM projects ORDER BY 1",
        "SELECT project_id, repo_id, role FROM repos ORDER BY 1, 2",
        "SELECT alias, repo_id FROM repo_aliases ORDER BY 1, 2",
        "SELECT name, value FROM meta ORDER BY 1",
        "SELECT address, high_water FROM mailboxes ORDER BY 1",
        "SELECT project_id, kind, open FROM attention_counts ORDER BY 1, 2",
    }
    return [db.execute(sql).fetchall() for sql in sorted(ordered)]


def outcome(db: PgConnection, steps: list[tuple[str, int]], *, each: bool) -> list[Any]:
    """What a transaction of them returns and leaves; with `each`, when they are sent one by one.
    A transaction that fails leaves nothing."""
    db.begin_writing()
    writing, results = Writing(db), list[Any]()
    try:
        for step in steps:
            results.append(writing.step(*step))
            if each:
                db._inserts.flush()
        return [*results, left(db)]
    except psycopg.errors.ForeignKeyViolation:
        return []
    finally:
        db.roll_back()


@given(st.lists(STEPS, max_size=60))
@example([("change", 0)] * (ROWS_MAX + 3))
@example([("project", 0), ("repo", 0), ("project", 0), ("repo", 1)])
def test_any_transaction_leaves_what_it_would_leave_one_by_one(
    db: PgConnection, steps: list[tuple[str, int]]
) -> None:
    one_by_one = outcome(db, steps, each=True)
    assert outcome(db, steps, each=False) == one_by_one
    assert bool(one_by_one) == ("orphan" not in dict(steps))


def test_the_sequence_of_changes_is_that_of_the_writes(db: PgConnection) -> None:
    db.begin_writing()
    for number in range(100):
        append(db, f"{number}")
        if number % 7 == 0:
            changes.put_meta(db, "between", f"{number}")
    rows = db.execute("SELECT entity_id FROM changes ORDER BY seq").fetchall()
    db.roll_back()
    assert rows == [(f"{number}",) for number in range(100)]


def test_an_insert_says_at_once_that_it_changed_a_row(db: PgConnection) -> None:
    db.begin_writing()
    assert db.execute(INSERT_META, ("counted", "")).rowcount == 1
    assert db._inserts._rows, "it was not sent for that"
    db.roll_back()


def test_an_insert_that_is_refused_fails_what_is_asked_next(db: PgConnection) -> None:
    db.begin_writing()
    db.execute(INSERT_META, ("twice", ""))
    db.execute(INSERT_META, ("twice", ""))
    with pytest.raises(psycopg.errors.UniqueViolation):
        db.execute("SELECT 1").fetchone()
    db.roll_back()
    assert db.execute("SELECT count(*) FROM meta WHERE name = 'twice'").fetchone() == (0,)
