"""Migrations of a database on PostgreSQL, by several replicas at once and beside older ones."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from server.domain.errors import Unavailable
from server.store.migration_file import MigrationFile
from server.store.postgresql import migrate
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import check_record, migrations, prepare
from server.store.sqlite import schema as sqlite_schema

NOTES = "-- needs: baseline\nALTER TABLE peers ADD COLUMN note TEXT;"
WITHOUT = "-- needs: notes\nALTER TABLE peers DROP COLUMN came_by;"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes this process another release: that of these migrations after the baseline."""

    def become(*more: str) -> None:
        folder = tmp_path / f"migrations{len(more)}"
        folder.mkdir(exist_ok=True)
        baseline = Path(migrate.__file__).with_name("migrations") / "0038_baseline.sql"
        (folder / baseline.name).write_text(baseline.read_text())
        for number, (name, sql) in enumerate(zip(("notes", "without"), more, strict=False), 39):
            (folder / f"{number:04d}_{name}.sql").write_text(sql)
        monkeypatch.setattr(migrate, "MIGRATIONS", folder)

    return become


@contextmanager
def connected(url: str) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(url, autocommit=True) as db:
        yield db


def ask(url: str, sql: str) -> list[Any]:
    with connected(url) as db:
        return db.execute(sql.encode()).fetchall()


def run(url: str, sql: str) -> None:
    with connected(url) as db:
        db.execute(sql.encode())


def seen(url: str, *, migration: str) -> None:
    """Note a replica that runs."""
    run(
        url,
        "INSERT INTO replicas (replica, address, version, migration, seen_at, status)"
        f" VALUES ('r', 'a', '1.0', '{migration}', now(), 'ok')",
    )


# --- the files --------------------------------------------------------------------------------


def test_each_migration_of_sqlite_has_its_counterpart() -> None:
    """A change of the schema is made on both, under one name."""
    ours = [(each.number, each.name) for each in migrations()]
    theirs = [(each.number, each.name) for each in sqlite_schema.migrations()]
    assert ours[0] == (38, "baseline")
    assert ours[1:] == [each for each in theirs if each[0] > 38]


def test_each_says_what_it_needs() -> None:
    names: list[str] = []
    for each in migrations():
        names.append(each.name)
        assert each.needs in names, f"{each.name} must begin with -- needs: MIGRATION"


# --- a new database ---------------------------------------------------------------------------


def test_an_empty_database_gets_its_tables_once(url: str) -> None:
    first = prepare(url)
    assert first.last_stamp == 0
    assert prepare(url).epoch == first.epoch
    assert ask(url, "SELECT name, needs FROM migrations") == [
        (each.name, each.needs) for each in migrations()
    ]
    assert len(ask(url, "SELECT 1 FROM meta WHERE name = 'secret'")) == 1


def test_replicas_that_start_at_once_make_one_node(url: str) -> None:
    program = (
        "import sys; from server.store.postgresql.migrate import prepare;"
        "sys.stdin.readline(); print(prepare(sys.argv[1]).epoch)"
    )
    replicas = [
        subprocess.Popen(
            [sys.executable, "-c", program, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for replica in replicas:
        assert replica.stdin is not None
        replica.stdin.write("\n")
        replica.stdin.flush()
    epochs = {replica.communicate(timeout=60)[0] for replica in replicas}
    assert [replica.returncode for replica in replicas] == [0] * 4
    assert len(epochs) == 1


def test_the_last_stamp_is_that_of_all_replicas(url: str) -> None:
    prepare(url)
    run(url, "UPDATE cluster SET stamp = 7")
    assert prepare(url).last_stamp == 7


# --- releases beside each other ---------------------------------------------------------------


def test_an_older_release_goes_on_beside_what_is_only_added(
    url: str, release: Callable[..., None]
) -> None:
    release()
    before = prepare(url)
    with closing(PgConnection(url)) as older:
        # Its statements are prepared, and it is in the midst of a read.
        older.execute("BEGIN IMMEDIATE")
        assert older.execute("SELECT agent_id, cursor FROM peers").fetchall() == []
        older.execute("ROLLBACK")
        release(NOTES)
        assert migrate_pending(url) == ["notes"]
        assert prepare(url).epoch == before.epoch
        assert migrate_pending(url) == []
        older.begin_writing()
        older.execute(
            "INSERT INTO peers (agent_id, endpoint, trust, registered_at, last_seen)"
            " VALUES ('p', 'e', 't', 1, 1)"
        )
        older.commit()
        assert older.execute("SELECT agent_id, cursor FROM peers").fetchall() == [("p", 0)]
    release()
    assert prepare(url).epoch == before.epoch


def migrate_pending(url: str) -> list[str]:
    with closing(PgConnection(url)) as db:
        return migrate.pending(db)


def test_an_older_release_is_refused_what_it_can_not_do_without(
    url: str, release: Callable[..., None]
) -> None:
    release(NOTES, WITHOUT)
    prepare(url)
    release(NOTES)
    assert prepare(url).epoch
    release()
    with pytest.raises(ValueError, match="without needs a release that knows notes"):
        prepare(url)
    with pytest.raises(ValueError, match="A newer release wrote"):
        migrate_pending(url)


def test_what_older_replicas_use_is_not_taken_from_them(
    url: str, release: Callable[..., None]
) -> None:
    release(NOTES)
    prepare(url)
    seen(url, migration="baseline")
    release(NOTES, WITHOUT)
    with pytest.raises(Unavailable, match=r"waits for 1 replicas of an older release \(1\.0\)"):
        prepare(url)
    run(url, "UPDATE replicas SET migration = 'notes'")
    prepare(url)
    assert "without" in {name for (name,) in ask(url, "SELECT name FROM migrations")}


def test_a_migration_yields_to_whoever_uses_its_tables(
    url: str, release: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again, and holds up others in each attempt for LOCK_MS at most."""
    release()
    prepare(url)
    monkeypatch.setattr(migrate, "LOCK_MS", 20)
    paused, go_on = threading.Event(), threading.Event()

    def pause(seconds: float) -> None:
        paused.set()
        go_on.wait(30)

    monkeypatch.setattr(time, "sleep", pause)
    release(NOTES)
    with psycopg.connect(url) as reading:
        reading.execute("SELECT count(*) FROM peers")
        starting = threading.Thread(target=prepare, args=(url,))
        starting.start()
        assert paused.wait(30)
        # Meanwhile others write.
        run(url, "UPDATE cluster SET stamp = 1")
    go_on.set()
    starting.join(30)
    assert migrate_pending(url) == []


def test_a_migration_that_fails_changes_nothing(url: str, release: Callable[..., None]) -> None:
    release()
    prepare(url)
    release(f"{NOTES} SELECT 1 / 0;")
    with pytest.raises(Unavailable, match="division by zero"):
        prepare(url)
    release()
    prepare(url)
    assert ask(url, "SELECT 1 FROM information_schema.columns WHERE column_name = 'note'") == []


def test_a_migration_may_not_hold_up_the_replicas_for_long(
    url: str, release: Callable[..., None]
) -> None:
    release(f"{NOTES} SELECT pg_sleep(60);")
    with pytest.raises(Unavailable) as refused:
        prepare(url, statement_seconds=1)
    assert refused.value.data["reason"] == "storage_slow"


def test_what_is_derived_is_derived_anew_by_newer_rules_only(url: str) -> None:
    prepare(url)
    rules = "SELECT value FROM meta WHERE name = 'attention_rules'"
    [[own]] = ask(url, rules)
    for stored, then in (("0", own), ("99", "99")):
        run(url, f"UPDATE meta SET value = '{stored}' WHERE name = 'attention_rules'")
        prepare(url)
        assert ask(url, rules) == [(then,)]


# --- databases that are refused ---------------------------------------------------------------


def test_another_programs_database_is_refused(url: str) -> None:
    run(url, "CREATE TABLE theirs (x INTEGER)")
    with pytest.raises(ValueError, match="belongs to another program: it has a table theirs"):
        prepare(url)
    assert ask(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [("theirs",)]


def test_another_builds_database_is_refused() -> None:
    known = [MigrationFile(38, "baseline", "one text")]
    other = MigrationFile(38, "baseline", "another")
    had = [migrate.Recorded("baseline", other.digest, "baseline")]
    with pytest.raises(ValueError, match="its migration baseline differs"):
        check_record(had, known)


def test_a_user_without_rights_is_told_what_is_missing(url: str) -> None:
    name = url.rpartition("/")[2]
    host = url.removeprefix("postgresql://").rpartition("@")[2]
    run(url, f"CREATE ROLE {name} LOGIN")
    try:
        run(url, "REVOKE CREATE ON SCHEMA public FROM public")
        with pytest.raises(ValueError, match=f"The user {name} may not create tables"):
            prepare(f"postgresql://{name}@{host}")
        prepare(url)
        with pytest.raises(ValueError, match=f"The user {name} may not read and write"):
            prepare(f"postgresql://{name}@{host}")
        run(url, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}")
        assert prepare(f"postgresql://{name}@{host}").epoch
    finally:
        run(url, f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(Unavailable, match=r"can't be reached.*refused") as refused:
        prepare("postgresql://127.0.0.1:1/cacp")
    assert refused.value.data["reason"] == "storage_away"


def test_what_is_no_url_is_refused_without_being_quoted() -> None:
    with pytest.raises(ValueError, match="not one of PostgreSQL") as refused:
        prepare("postgresql://me:secret@127.0.0.1/cacp?nonsense=1")
    assert "secret" not in str(refused.value)


# --- copies -----------------------------------------------------------------------------------


def test_a_restored_copy_gets_a_new_epoch_once(url: str) -> None:
    before = prepare(url)
    run(url, "INSERT INTO page_links (code_hash, key_hash, made_at, expires_at) VALUES " + LINK)
    name = f"{url.rpartition('/')[2]}_copy"
    with connected(f"{url.rpartition('/')[0]}/postgres") as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {name.removesuffix('_copy')}".encode())
        try:
            copied = prepare(f"{url}_copy")
            assert copied.epoch != before.epoch
            assert prepare(f"{url}_copy").epoch == copied.epoch
            assert ask(f"{url}_copy", "SELECT 1 FROM page_links") == []
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    assert prepare(url).epoch == before.epoch
    assert len(ask(url, "SELECT 1 FROM page_links")) == 1


LINK = "('h', 'k', 1, 1)"


def test_a_standby_that_took_over_keeps_the_epoch_when_a_replica_went_on(url: str) -> None:
    before = prepare(url)
    other = "UPDATE meta SET value = left(value, -8) || '000000FF' WHERE name = 'database'"
    run(url, other)
    seen(url, migration="baseline")
    assert prepare(url).epoch == before.epoch
    # Recovered to an earlier time: who was seen then was seen before the server started.
    run(url, other)
    run(url, "UPDATE replicas SET seen_at = pg_postmaster_start_time() - interval '1 second'")
    assert prepare(url).epoch != before.epoch


def test_a_node_that_was_only_prepared_begins_at_the_present(url: str) -> None:
    """A replica that starts as another one has just made the database, or after `cacp migrate`: it
    goes on from the last stamp, and would else doubt its clock for a day."""
    before = int(ask(url, "SELECT extract(epoch FROM now()) * 1000000")[0][0])
    assert prepare(url).last_stamp == 0
    assert prepare(url).last_stamp >= before
