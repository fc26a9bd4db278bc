"""Archived and deleted projects as they are stored, and what a deletion removes."""

import sqlite3
from contextlib import closing
from pathlib import Path

from server.domain.lifecycle import Lifecycle
from server.store import alarms, lifecycle, projects
from server.store.alarms import Alarm
from server.store.connection import Connection
from server.store.projects import ProjectHeader
from server.store.sqlite.schema import MIGRATIONS
from tests.server.store.conftest import PROJECT

ARCHIVED = Lifecycle("archived", "Shop", "ana", 5)
DELETED = Lifecycle("deleted", "Shop", "ben", 6, "{}")


def test_one_register_for_each_project(db: Connection, project: ProjectHeader) -> None:
    assert lifecycle.find(db, PROJECT) is None
    for register in (ARCHIVED, DELETED):
        lifecycle.put(db, PROJECT, register)
        assert lifecycle.find(db, PROJECT) == register
    lifecycle.put(db, "other", ARCHIVED)
    assert lifecycle.deleted_of(db, [PROJECT, "other", "unknown"]) == {PROJECT}


def test_the_creator_is_known_where_it_was_created(db: Connection, project: ProjectHeader) -> None:
    assert lifecycle.creator(db, PROJECT) is None
    projects.insert(db, project._replace(project_id="p2"), [], created_by="ana")
    assert lifecycle.creator(db, "p2") == "ana"


def test_archived_projects_can_be_left_out(db: Connection, project: ProjectHeader) -> None:
    lifecycle.put(db, PROJECT, ARCHIVED)
    assert projects.count(db) == 1
    assert projects.count(db, archived=False) == 0
    assert projects.headers_before(db, 2**63 - 1, "", 9, archived=False) == []
    membership = projects.membership(db, PROJECT)
    assert membership is not None
    assert membership.is_archived
    lifecycle.put(db, PROJECT, ARCHIVED._replace(state="active"))
    assert projects.count(db, archived=False) == 1


def test_a_deletion_removes_the_alarms_about_its_content(
    db: Connection, project: ProjectHeader
) -> None:
    for about in (f"context {PROJECT}/p", f"file content {PROJECT}/f", "context other/p"):
        alarms.begin(db, Alarm("content_corrupt", about, "d", 1))
    lifecycle.put(db, PROJECT, DELETED)
    assert lifecycle.remove_content(db, PROJECT) == {
        "contracts": 0,
        "packets": 0,
        "files": 0,
        "bytes": 0,
    }
    assert [alarm.about for alarm in alarms.every(db)] == ["context other/p"]
    assert projects.header(db, PROJECT) is None
    assert projects.known_of(db, [PROJECT, "unknown"]) == {PROJECT}


def test_the_migration_takes_the_creator_from_the_change_log(tmp_path: Path) -> None:
    """Of a project that another node created, none."""
    files = sorted(MIGRATIONS.glob("*.sql"))
    place = next(n for n, file in enumerate(files) if "project_lifecycle" in file.name)
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        db.create_function("digest_of_parties", 1, lambda body: "")
        for file in files[:place]:
            db.executescript(file.read_text())
        for id, action in (("own", "cacp/project/create"), ("theirs", "cacp/project/sync")):
            db.execute(
                "INSERT INTO projects VALUES (?, 'n', 'o', 'planning', 'any', 1, 1, NULL)", (id,)
            )
            db.execute(
                "INSERT INTO changes (at, origin, actor, action, entity, entity_id, project_id,"
                " outcome) VALUES (1, 'n', 'ana', ?, 'project', ?, ?, 'created')",
                (action, id, id),
            )
        db.executescript(files[place].read_text())
        assert [lifecycle.creator(db, id) for id in ("own", "theirs")] == ["ana", None]
