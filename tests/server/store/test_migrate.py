"""Migrations, backups and epochs (design §4)."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from server.domain.errors import Unavailable
from server.store import migrate
from server.store.database import connect
from server.store.migrate import copy, migrations, prepare

NEXT = """
-- A note; with a semicolon.
ALTER TABLE peers ADD COLUMN note TEXT;
CREATE INDEX peers_by_note ON peers (note);
"""


def schema(path: Path) -> list[tuple[str, ...]]:
    with closing(connect(path)) as db:
        return db.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()


def value(path: Path, name: str) -> str | None:
    with closing(connect(path)) as db:
        row = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes this process a later release: its migrations, and those given besides."""

    def upgrade(**more: str) -> None:
        folder = tmp_path / "migrations"
        folder.mkdir(exist_ok=True)
        for source in Path(migrate.__file__).with_name("migrations").glob("*.sql"):
            (folder / source.name).write_text(source.read_text())
        for name, sql in more.items():
            (folder / f"{name.removeprefix('m')}.sql").write_text(sql)
        monkeypatch.setattr(migrate, "MIGRATIONS", folder)

    return upgrade


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_a_new_database_is_made_with_its_folder(tmp_path: Path) -> None:
    prepared = prepare(tmp_path / "deep" / "cacp.db")
    assert prepared.last_stamp == 0
    assert value(tmp_path / "deep" / "cacp.db", "epoch") == prepared.epoch


def test_the_schema_is_the_same_step_by_step_and_at_once(
    tmp_path: Path, release: Callable[..., None]
) -> None:
    """Design §4: a test builds the schema both ways and compares."""
    prepare(tmp_path / "steps.db")
    release(m9001_note=NEXT)
    prepare(tmp_path / "steps.db")
    prepare(tmp_path / "once.db")
    assert schema(tmp_path / "steps.db") == schema(tmp_path / "once.db")
    with closing(sqlite3.connect(tmp_path / "script.db")) as db:
        for _, sql in migrations():
            db.executescript(sql)
    tables = [(type_, name) for type_, name, _ in schema(tmp_path / "script.db")]
    assert tables == [(type_, name) for type_, name, _ in schema(tmp_path / "once.db")]


def test_threads_from_before_know_their_hops(tmp_path: Path) -> None:
    """0010: who was deep in a thread is still."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        for number, sql in migrations():
            if number == 10:
                db.executescript(
                    "INSERT INTO threads (thread_id, rounds) VALUES ('t', 2), ('purged', 9);"
                    "INSERT INTO messages (id, version, from_agent, to_agents_json, thread_id,"
                    " type, priority, payload_json, policy_json, payload_bytes, created_at, hop)"
                    " VALUES ('1', '1.0.0', 'a', '[]', 't', 'x', 'low', '{}', '{}', 2, 'now', 0),"
                    " ('2', '1.0.0', 'b', '[]', 't', 'x', 'low', '{}', '{}', 2, 'now', 7);"
                )
            db.executescript(sql)
        rows = db.execute("SELECT thread_id, rounds, hop, speaker FROM threads ORDER BY 1")
        assert rows.fetchall() == [("purged", 9, 0, None), ("t", 2, 7, None)]


def test_a_second_start_changes_nothing(path: Path) -> None:
    first = prepare(path)
    before = schema(path)
    assert prepare(path) == first
    assert schema(path) == before
    assert not list(path.parent.glob("*.before-*"))


def test_a_backup_is_made_before_a_database_is_changed(
    path: Path, release: Callable[..., None]
) -> None:
    """Design §4: migrations run at start, with a backup copy made first."""
    before = schema(path)
    release(m9001_note=NEXT)
    prepare(path)
    backup = path.with_name("cacp.db.before-9001")
    assert schema(backup) == before
    assert schema(path) != before
    assert not list(path.parent.glob("*.part"))


def test_a_migration_that_fails_changes_nothing_and_can_be_tried_again(
    path: Path, release: Callable[..., None]
) -> None:
    before = schema(path)
    release(m9001_note="CREATE TABLE more (a TEXT); SELECT nonsense;")
    for _ in range(2):
        with pytest.raises(Unavailable):
            prepare(path)
        assert schema(path) == before
    release(m9001_note=NEXT)
    prepare(path)
    assert schema(path) != before


def test_a_database_of_a_newer_release_is_refused(
    path: Path, release: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    release(m9001_note=NEXT)
    prepare(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="newer release"):
        prepare(path)


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    for create in ("CREATE TABLE bookmarks (a)", "CREATE TABLE meta (name, value)"):
        with closing(sqlite3.connect(path)) as db:
            db.execute(create)
        before = schema(path)
        with pytest.raises(ValueError, match="another program"):
            prepare(path)
        assert schema(path) == before


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.db"
    path.write_text("Dear all, " * 1000)
    with pytest.raises(Unavailable) as refused:
        prepare(path)
    assert refused.value.data["reason"] == "storage_corrupt"


def test_a_copy_gets_an_epoch_of_its_own_once(path: Path) -> None:
    """Design §4: the epoch is renewed when a backup is restored."""
    epoch = prepare(path).epoch
    restored = path.with_name("restored.db")
    copy(path, restored)
    assert prepare(path).epoch == epoch
    renewed = prepare(restored).epoch
    assert renewed != epoch
    assert prepare(restored).epoch == renewed


def test_a_copy_of_a_live_database_holds_what_is_committed(
    path: Path, db: sqlite3.Connection
) -> None:
    db.execute("INSERT INTO meta (name, value) VALUES ('a', 'committed')")
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE meta SET value = 'not yet' WHERE name = 'a'")
    target = path.with_name("copy.db")
    copy(path, target)
    db.execute("ROLLBACK")
    assert value(target, "a") == "committed"


def test_a_copy_overwrites_nothing(path: Path) -> None:
    target = path.with_name("copy.db")
    target.write_text("mine")
    with pytest.raises(FileExistsError):
        copy(path, target)
    assert target.read_text() == "mine"


def test_the_last_stamp_is_that_of_the_newest_change(path: Path, db: sqlite3.Connection) -> None:
    for at in (5, 7):
        db.execute(
            "INSERT INTO changes (at, origin, actor, action, entity, entity_id, outcome)"
            " VALUES (?, 'o', 'a', 'm', 'e', 'i', 'x')",
            (at,),
        )
    assert prepare(path).last_stamp == 7
