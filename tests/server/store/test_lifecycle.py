"""Archived and deleted projects as they are stored, and what a deletion removes."""

import sqlite3

from server.domain.lifecycle import Lifecycle
from server.store import alarms, lifecycle, projects
from server.store.alarms import Alarm
from server.store.projects import ProjectHeader
from tests.server.store.conftest import PROJECT

ARCHIVED = Lifecycle("archived", "Shop", "ana", 5)
DELETED = Lifecycle("deleted", "Shop", "ben", 6, "{}")


def test_one_register_for_each_project(db: sqlite3.Connection, project: ProjectHeader) -> None:
    assert lifecycle.find(db, PROJECT) is None
    for register in (ARCHIVED, DELETED):
        lifecycle.put(db, PROJECT, register)
        assert lifecycle.find(db, PROJECT) == register
    lifecycle.put(db, "other", ARCHIVED)
    assert lifecycle.deleted_of(db, [PROJECT, "other", "unknown"]) == {PROJECT}


def test_the_creator_is_known_where_it_was_created(
    db: sqlite3.Connection, project: ProjectHeader
) -> None:
    assert lifecycle.creator(db, PROJECT) is None
    projects.insert(db, project._replace(project_id="p2"), [], created_by="ana")
    assert lifecycle.creator(db, "p2") == "ana"


def test_archived_projects_can_be_left_out(db: sqlite3.Connection, project: ProjectHeader) -> None:
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
    db: sqlite3.Connection, project: ProjectHeader
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
