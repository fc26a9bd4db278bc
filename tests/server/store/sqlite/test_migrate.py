"""Migrations, backups and epochs (design §3)."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from server.domain.errors import Unavailable
from server.store.sqlite import migrate
from server.store.sqlite import schema as schemas
from server.store.sqlite.connection import connect
from server.store.sqlite.migrate import copy, pending, prepare
from server.store.sqlite.schema import SchemaDamaged, migrations

NEXT = """
-- A note; with a semicolon.
ALTER TABLE peers ADD COLUMN note TEXT;
CREATE INDEX peers_by_note ON peers (note);
"""


FORMER = Path(__file__).with_name("former")
"""Migrations as they once were, where they are not so any more."""

BRANCHES = {
    "mesh": (3, "initial directory mesh"),
    "acp": (4, "initial directory mesh acp"),
    "conflicts": (4, "initial directory mesh conflicts"),
    "conflicts, numbered after mail": (8, "initial directory mesh conflicts"),
    "mail and conflicts": (8, "initial directory mesh acp conflicts"),
    "pushes": (6, "initial directory mesh acp pushes"),
    "mail between nodes, first form": (7, "initial directory mesh acp former:mail_between_nodes"),
    "mail between nodes": (7, "initial directory mesh acp mail_between_nodes"),
    "handoffs": (5, "initial directory mesh acp handoffs"),
    "handoffs and conflicts": (8, "initial directory mesh acp handoffs conflicts"),
    "handoffs, mail between nodes": (
        8,
        "initial directory mesh acp handoffs mail_between_nodes conflicts",
    ),
    "handoffs, pushes": (8, "initial directory mesh acp handoffs pushes conflicts"),
    "conflicts as the sixth": (6, "initial directory mesh acp handoffs conflicts"),
    "then mail between nodes": (
        7,
        "initial directory mesh acp handoffs conflicts mail_between_nodes",
    ),
    "then pushes": (8, "initial directory mesh acp handoffs conflicts pushes"),
    "both": (8, "initial directory mesh acp handoffs conflicts mail_between_nodes pushes"),
    "handoffs elsewhere": (
        9,
        "initial directory mesh acp handoffs conflicts mail_between_nodes pushes"
        " handoffs_elsewhere",
    ),
    "thread hops": (
        10,
        "initial directory mesh acp handoffs conflicts mail_between_nodes pushes handoffs_elsewhere"
        " thread_hops",
    ),
}
"""Every state in which a database was left before it recorded its migrations: the number that it
gives as its version, and what it had had."""


def former(path: Path, version: int, names: str) -> None:
    """Make a database as a build of then did, with a row of the user's."""
    known = {one.name: one.sql for one in migrations()}
    with closing(sqlite3.connect(path)) as db:
        for name in names.split():
            _, _, old = name.partition("former:")
            db.executescript((FORMER / f"{old}.sql").read_text() if old else known[name])
        db.execute("INSERT INTO meta VALUES ('schema_version', ?)", (str(version),))
        db.execute("INSERT INTO projects VALUES ('p', 'Kept', 'o', 'planning', 'any', 1, 1)")
        db.commit()


def elements(path: Path) -> schemas.Elements:
    with closing(connect(path)) as db:
        return schemas.elements(db)


def schema(path: Path) -> list[tuple[str, ...]]:
    with closing(connect(path)) as db:
        return db.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()


def rows(path: Path) -> list[str]:
    """All but the epoch, of which each database has its own."""
    with closing(connect(path)) as db:
        return [
            one for one in db.iterdump() if one.startswith("INSERT") and "VALUES('epoch'" not in one
        ]


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
        for source in schemas.MIGRATIONS.glob("*.sql"):
            (folder / source.name).write_text(source.read_text())
        for name, sql in more.items():
            (folder / f"{name.removeprefix('m')}.sql").write_text(sql)
        monkeypatch.setattr(schemas, "MIGRATIONS", folder)

    return upgrade


def test_migrations_are_numbered_without_gaps() -> None:
    assert [one.number for one in migrations()] == list(range(1, len(migrations()) + 1))


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_database_of_every_former_state_is_brought_up_to_date(
    branch: str, path: Path, tmp_path: Path
) -> None:
    """One number has meant several migrations: what a database lacks is told by its tables."""
    old = tmp_path / "former.db"
    former(old, *BRANCHES[branch])
    prepare(old)
    assert elements(old) == elements(path)
    with closing(connect(old)) as db:
        assert db.execute("SELECT name FROM projects").fetchall() == [("Kept",)]
        assert pending(db) == []
    prepare(old)


def test_a_former_state_is_kept_as_a_copy_of_its_own(tmp_path: Path) -> None:
    old = tmp_path / "former.db"
    former(old, *BRANCHES["conflicts, numbered after mail"])
    prepare(old)
    assert old.with_name("former.db.before-0004_acp").exists()


def test_a_database_with_a_part_of_a_migration_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "former.db"
    former(old, *BRANCHES["thread hops"])
    with closing(connect(old)) as db:
        db.execute("DROP TABLE delivery_log")
    before = elements(old)
    with pytest.raises(SchemaDamaged, match="only a part of migration acp: table delivery_log and"):
        prepare(old)
    assert elements(old) == before


def test_a_database_that_lost_a_table_is_refused_at_start(path: Path) -> None:
    with closing(connect(path)) as db:
        db.execute("DROP INDEX packets_by_time")
        with pytest.raises(SchemaDamaged, match="lacks index packets_by_time, which initial made"):
            pending(db)
    with pytest.raises(SchemaDamaged, match="lacks index packets_by_time, which initial made"):
        prepare(path)


def test_what_an_operator_adds_is_no_damage(path: Path) -> None:
    with closing(connect(path)) as db:
        db.execute("CREATE INDEX mine ON packets (type)")
        db.execute("CREATE TABLE notes (text TEXT)")
    with_more = elements(path)
    prepare(path)
    assert elements(path) == with_more


def test_a_start_that_is_killed_at_once_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left that reads as another program's database."""
    path = tmp_path / "new.db"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "_record", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(path)
    prepare(path)
    prepare(tmp_path / "another.db")
    assert elements(path) == elements(tmp_path / "another.db")


def test_a_new_database_is_made_with_its_folder(tmp_path: Path) -> None:
    prepared = prepare(tmp_path / "deep" / "cacp.db")
    assert prepared.last_stamp == 0
    assert value(tmp_path / "deep" / "cacp.db", "epoch") == prepared.epoch


def test_the_schema_is_the_same_step_by_step_and_at_once(
    tmp_path: Path, release: Callable[..., None]
) -> None:
    """Design §3: a test builds the schema both ways and compares, with what is recorded of it."""
    first = migrations()[0]
    with closing(sqlite3.connect(tmp_path / "steps.db")) as db:
        db.executescript(first.sql)
        db.execute("INSERT INTO meta VALUES ('schema_version', '1')")
        db.commit()
    prepare(tmp_path / "steps.db")
    release(m9001_note=NEXT)
    prepare(tmp_path / "steps.db")
    prepare(tmp_path / "once.db")
    assert schema(tmp_path / "steps.db") == schema(tmp_path / "once.db")
    assert rows(tmp_path / "steps.db") == rows(tmp_path / "once.db")
    assert any("9001" in row for row in rows(tmp_path / "once.db"))


def test_threads_from_before_know_their_hops(tmp_path: Path) -> None:
    """Who was deep in a thread is still, as far as by its own messages."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        for one in migrations():
            if one.name == "thread_hops":
                db.executescript(
                    "INSERT INTO threads (thread_id, rounds) VALUES ('t', 2), ('purged', 9);"
                    "INSERT INTO messages (id, version, from_agent, to_agents_json, thread_id,"
                    " type, priority, payload_json, policy_json, payload_bytes, created_at, hop)"
                    " VALUES ('1', '1.0.0', 'aid://x/a@1.0.0', '[]', 't', 'x', 'low', '{}', '{}',"
                    " 2, 'now', 0),"
                    " ('2', '1.0.0', 'b', '[]', 't', 'x', 'low', '{}', '{}', 2, 'now', 7);"
                )
            one.run(db)
        rows = db.execute("SELECT name, alone FROM threads ORDER BY 1")
        assert rows.fetchall() == [("purged", None), ("t", None)]
        rows = db.execute("SELECT address, said, heard, sent FROM thread_parties ORDER BY 1")
        assert rows.fetchall() == [("aid://x/a", 0, None, 1), ("b", 2, None, 1)]


def test_documents_from_before_lose_their_nulls_and_contents_keep_theirs(tmp_path: Path) -> None:
    """absent_members: what is optional is absent, never null (CACP 2.0, Data Types)."""
    content = {"n": [1e-7, -0.0, 2**53 - 1, None], "ü": '"\u2028', "x": None}
    work: dict[str, Any] = {
        "repo_id": "r",
        "plan": None,
        "files": [],
        "notes": "n",
        "started_at": None,
    }
    packet = orjson.dumps({"packet_id": "p", "content": content, "reply_to": None}).decode()
    contract = orjson.dumps({"content": content, "implementations": [work, work | {"plan": "p"}]})
    history = orjson.dumps(
        [{"content": content, "change_notes": None}, {"content": content, "change_notes": "why"}]
    )
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        for one in migrations():
            if one.name == "absent_members":
                db.execute(
                    "INSERT INTO packets (project_id, packet_id, type, stamp, document)"
                    " VALUES ('p', 'p', 'decision', 1, ?)",
                    (packet,),
                )
                db.execute(
                    "INSERT INTO contracts (project_id, contract_id, type, name, version, status,"
                    " proposed_by, created_at, updated_at, document, history)"
                    " VALUES ('p', 'c', 'custom', 'n', 3, 'agreed', 'r', 1, 1, ?, ?)",
                    (contract.decode(), history.decode()),
                )
            one.run(db)
        [(found,)] = db.execute("SELECT document FROM packets")
        assert orjson.loads(found) == {"packet_id": "p", "content": content}
        [(found, former)] = db.execute("SELECT document, history FROM contracts")
        kept = {"repo_id": "r", "files": [], "notes": "n"}
        works = {"implementations": [kept, kept | {"plan": "p"}]}
        assert orjson.loads(found) == {"content": content} | works
        assert orjson.loads(former) == [
            {"content": content},
            {"content": content, "change_notes": "why"},
        ]


def test_threads_from_before_are_of_those_who_were_in_them(tmp_path: Path) -> None:
    """One that is named after its first message is known by it, also once that is purged."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        for one in migrations():
            if one.name == "threads_of_parties":
                db.executescript(
                    "INSERT INTO threads (thread_id, rounds) VALUES ('1', 2), ('3', 2), ('t', 1);"
                    "INSERT INTO messages_archive (id, archived_at, document) VALUES ('3', '', '');"
                    "INSERT INTO messages (id, version, from_agent, to_agents_json, thread_id,"
                    " type, priority, payload_json, policy_json, payload_bytes, created_at)"
                    " VALUES ('1', '1.0.0', 'a', '[]', '1', 'x', 'low', '{}', '{}', 2, 'now'),"
                    " ('2', '1.0.0', 'b', '[]', 't', 'x', 'low', '{}', '{}', 2, 'now');"
                )
            one.run(db)
        rows = db.execute("SELECT thread_id, name FROM threads ORDER BY name")
        assert rows.fetchall() == [("1", "1"), ("3", "3"), ("-t", "t")]
        rows = db.execute("SELECT id, thread FROM messages ORDER BY id")
        assert rows.fetchall() == [("1", "1"), ("2", "-t")]


def test_a_second_start_changes_nothing(path: Path) -> None:
    first = prepare(path)
    before = schema(path)
    assert prepare(path) == first
    assert schema(path) == before
    assert not list(path.parent.glob("*.before-*"))


def test_a_backup_is_made_before_a_database_is_changed(
    path: Path, release: Callable[..., None]
) -> None:
    """Design §3: migrations run at start, with a backup copy made first."""
    before = schema(path)
    release(m9001_note=NEXT)
    prepare(path)
    backup = path.with_name("cacp.db.before-9001_note")
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
    """Design §3: the epoch is renewed when a backup is restored."""
    epoch = prepare(path).epoch
    restored = path.with_name("restored.db")
    copy(path, restored)
    with closing(connect(restored)) as db:
        db.execute("INSERT INTO page_links VALUES ('code', 'key', 1, 2)")
    assert prepare(path).epoch == epoch
    renewed = prepare(restored).epoch
    assert renewed != epoch
    assert prepare(restored).epoch == renewed
    with closing(connect(restored)) as db:
        assert db.execute("SELECT count(*) FROM page_links").fetchone() == (0,), "nobody comes in"


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


def test_tasks_that_were_stuck_are_free(tmp_path: Path) -> None:
    """0011: an offer alone made its sender the owner for good; of two nodes, at both."""
    old = tmp_path / "old.db"
    with closing(sqlite3.connect(old)) as db:
        for one in migrations():
            if one.name == "free_tasks":
                db.executescript(STUCK)
            one.run(db)
        tasks = db.execute("SELECT task_id, chain, assigned FROM tasks ORDER BY 1").fetchall()
        elsewhere = db.execute("SELECT handoff_id, ended FROM handoffs_elsewhere ORDER BY 1")
        assert elsewhere.fetchall() == [("h7", 1), ("h8", 1), ("h9", 0)]
    assert tasks == [
        ("accepted", '["ana","ben"]', None),
        ("assigned", '["ben"]', "ben"),
        ("created", "[]", None),
        ("revoked", '["cleo"]', "cleo"),
    ]


def _handoff(handoff: str, task: str, status: str, *steps: str) -> str:
    return (
        "INSERT INTO handoffs (id, thread_id, task_id, from_agent, to_agent, title, reason,"
        " package_json, status, provenance_json, verification_json)"
        f" VALUES ('{handoff}', 't', '{task}', 'ana', 'ben', 'T', 'r', '{{}}', '{status}',"
        """ '{"handoff_chain":["ana"]}', '{}');"""
        + "".join(
            "INSERT INTO handoff_history (handoff_id, step, after_status, actor, role, at)"
            f" VALUES ('{handoff}', '{step}', 'x', 'a', 'r', 1800000000000000);"
            for step in steps
        )
    )


def _task(task: str, team: str, *logged: str) -> str:
    return (
        "INSERT INTO tasks VALUES"
        f""" ('{task}', {team}, 'T', 'execution', 0, 'open', '["ana"]', NULL, NULL, 'ana', 1);"""
        + "".join(
            "INSERT INTO team_log (team, log, line) VALUES ('core', 'decisions',"
            f""" '{{"at":"2026-01-01T00:00:00.000001+00:00","task_id":"{task}",{line}}}');"""
            for line in logged
        )
    )


STUCK = (
    "INSERT INTO teamspaces VALUES ('core', 'Core', '', 'active', 'ana', 1, NULL);"
    + _handoff("h1", "withdrawn", "rejected", "draft", "propose", "reject")
    + _task("withdrawn", "NULL")
    + _handoff("h2", "proposed", "proposed", "draft", "propose")
    + _task("proposed", "NULL")
    + _handoff("h3", "accepted", "completed", "accept", "pass", "complete")
    + _task("accepted", "NULL")
    + _handoff("h4", "closed", "closed", "accept", "pass", "complete", "close")
    + _task("closed", "NULL")
    + _handoff("h5", "revoked", "closed", "accept", "pass", "revoke")
    + _task("revoked", "'core'", '"event":"assign","owner":"cleo"')
    + _handoff("h6", "offered", "rejected", "propose", "reject")
    + _task("offered", "'core'")
    + _task("created", "'core'", '"event":"createTask"')
    + _task(
        "assigned",
        "'core'",
        '"event":"createTask","owner":"ana"',
        '"event":"assign","owner":"ben"',
        '"event":"block"',
    )
    + "".join(
        "INSERT INTO messages (id, from_agent, to_agents_json, type, payload_json, policy_json,"
        " payload_bytes, created_at)"
        f" VALUES ('m{handoff}', 'x', '[]', '{type}', '{payload}', '{{}}', 2, 'now');"
        f"INSERT INTO mail_sources VALUES ('m{handoff}', '{source}');"
        f"INSERT INTO handoffs_elsewhere VALUES ('{handoff}', 'ben', 't', 'far');"
        for handoff, type, payload, source in (
            ("h7", "handoff.reject", '{"handoff_id":"h7"}', "far"),
            ("h8", "status.complete", '{"details":{"handoff_id":"h8"}}', "far"),
            ("h9", "handoff.reject", '{"handoff_id":"h9"}', "another"),
        )
    )
)
