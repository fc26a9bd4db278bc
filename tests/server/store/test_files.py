"""Files, their contents, and requests for them, on disk."""

from typing import Any

import orjson
import pytest

from server.store import alarms, files
from server.store.connection import Connection
from server.store.files import File, FileContent, FileRequestRow
from server.store.projects import ProjectHeader
from server.store.sql import SQL
from tests.server.store.conftest import PROJECT

OWN = "aid://example.com/alpha@1.0.0"
SIGNED = '{"node":"aid://example.com/beta@2.0.0","value":"v"}'


def file(file_id: str, stamp: int = 1, **more: Any) -> File:
    made = File(
        file_id,
        "../a.png",
        "image/png",
        3,
        "ab",
        None,
        '["c1"]',
        "backend",
        "agent",
        fulfils=None,
        stamp=stamp,
    )
    return made._replace(**more)


def request(request_id: str, stamp: int) -> FileRequestRow:
    return FileRequestRow(request_id, "frontend", "agent", "Logo", "png", stamp)


def test_a_file_and_its_content_come_back_as_they_were(
    db: Connection, project: ProjectHeader
) -> None:
    content = bytes(range(256))
    files.put(db, PROJECT, file("f1"))
    assert files.content(db, PROJECT, file("f1")) is None
    files.put_content(db, PROJECT, file("f1"), FileContent(content, None))
    assert files.find(db, PROJECT, "f1") == file("f1")
    assert files.content(db, PROJECT, file("f1")) == (content, None)
    assert files.find(db, "other", "f1") is files.find(db, PROJECT, "f2") is None


def test_content_that_is_put_again_mends_what_was_damaged(
    db: Connection, project: ProjectHeader
) -> None:
    files.put_content(db, PROJECT, file("f1"), FileContent(b"right", None))
    db.execute("UPDATE file_contents SET content = ?", (b"\0",))
    about = files.alarm_of(PROJECT, "f1")
    alarms.begin(db, alarms.Alarm("content_corrupt", about, "d", 1))
    files.put_content(db, PROJECT, file("f1"), FileContent(b"right", None))
    assert files.content(db, PROJECT, file("f1")) == (b"right", None)
    assert alarms.every(db) == []
    files.drop_content(db, PROJECT, file("f1"))
    assert files.content(db, PROJECT, file("f1")) is None


def test_content_of_another_digest_is_not_the_files(db: Connection, project: ProjectHeader) -> None:
    files.put(db, PROJECT, file("f1"))
    files.put_content(db, PROJECT, file("f1"), FileContent(b"old", None))
    changed = file("f1", sha256="cd")
    files.put(db, PROJECT, changed)
    assert files.find(db, PROJECT, "f1") == changed
    assert files.content(db, PROJECT, changed) is None
    assert files.content(db, PROJECT, file("f1")) == (b"old", None), "and nothing is lost"


def test_files_are_listed_by_time_page_by_page(db: Connection, project: ProjectHeader) -> None:
    for name, stamp in (("f2", 1), ("f1", 1), ("f0", 2)):
        files.put(db, PROJECT, file(name, stamp))
    assert files.after(db, PROJECT, 0, "", 2) == [file("f1"), file("f2")]
    assert files.after(db, PROJECT, 1, "f2", 2) == [file("f0", 2)]


def test_a_summary_says_all_but_the_content() -> None:
    shown = orjson.loads(orjson.dumps(files.summary(file("f1", fulfils="r1"), OWN)))
    assert shown == {
        "fileId": "f1",
        "name": "../a.png",
        "contentType": "image/png",
        "size": 3,
        "sha256": "ab",
        "relatedContracts": ["c1"],
        "fromRepo": "backend",
        "fromAgent": "agent",
        "fulfils": "r1",
        "holder": "aid://example.com/alpha",
        "timestamp": "1970-01-01T00:00:00.000001+00:00",
    }
    theirs = files.summary(file("f1", signature=SIGNED), OWN)
    assert theirs["holder"] == "aid://example.com/beta", "who signed it has it"


def test_what_is_signed_is_all_but_the_signature() -> None:
    one, asked = file("f1", signature=SIGNED), request("r1", 1)
    assert File.of(one.fact(), SIGNED) == one
    assert FileRequestRow.of(asked.fact(), None) == asked
    assert "signature" not in one.fact().model_dump()


def test_copies_make_room_for_others_and_what_is_our_own_stays(
    db: Connection, project: ProjectHeader
) -> None:
    """The copy that was asked for longest ago goes first."""
    for name, used_at in (("own", None), ("a", 1), ("b", 2), ("c", 3)):
        files.put_content(db, PROJECT, file(name), FileContent(b"123", used_at))
    files.touch(db, PROJECT, file("a"), 4)
    files.touch(db, PROJECT, file("own"), 4)
    assert files.copied_bytes(db) == 9

    def kept() -> list[str]:
        names = ("own", "a", "b", "c")
        return [name for name in names if files.content(db, PROJECT, file(name)) is not None]

    files.make_room(db, 9)
    assert kept() == ["own", "a", "b", "c"]
    files.make_room(db, 8)
    assert kept() == ["own", "a", "c"]
    files.make_room(db, 0)
    assert kept() == ["own"]
    assert files.copied_bytes(db) == 0


def test_a_request_is_open_until_a_file_fulfils_it(db: Connection, project: ProjectHeader) -> None:
    for number in (2, 1):
        files.put_request(db, PROJECT, request(f"r{number}", number))
    assert files.open_requests(db, PROJECT, 0, "", 9) == [request("r1", 1), request("r2", 2)]
    assert files.open_requests(db, PROJECT, 1, "r1", 9) == [request("r2", 2)]
    assert files.open_requests(db, PROJECT, 0, "", 1) == [request("r1", 1)]
    assert files.request(db, PROJECT, "r1") == request("r1", 1)
    assert files.fulfilled_by(db, PROJECT, "r1") is None
    files.put(db, PROJECT, file("later", 8, fulfils="r1"))
    files.put(db, PROJECT, file("f1", 7, fulfils="r1"))
    assert files.fulfilled_by(db, PROJECT, "r1") == "f1", "the first that does"
    assert files.open_requests(db, PROJECT, 0, "", 9) == [request("r2", 2)]


@pytest.mark.sqlite
def test_the_file_that_fulfils_a_request_is_found_by_its_index(db: Connection) -> None:
    given = {"project_id": PROJECT, "request_id": "r"}
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {SQL.fulfilling_file.sql}", given)]
    assert "files_by_request (project_id=? AND fulfils=?)" in plan[0]
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {SQL.export_file_requests.sql}")]
    assert any("files_by_request (project_id=? AND fulfils=?)" in step for step in plan)


def test_a_request_is_known_by_its_id_alone(db: Connection, project: ProjectHeader) -> None:
    files.put_request(db, PROJECT, request("r1", 1))
    assert files.project_of_request(db, "r1") == PROJECT
    assert files.project_of_request(db, "nothing") is None
    assert files.request(db, "other", "r1") is None


def test_only_what_is_our_own_is_stamped_anew(db: Connection, project: ProjectHeader) -> None:
    """`untaken`: what was stamped by a clock that was ahead, and nobody else has taken."""
    files.put(db, PROJECT, file("own", 9))
    files.put(db, PROJECT, file("theirs", 9, signature=SIGNED))
    files.put_request(db, PROJECT, request("asked", 9))
    for entity_id in ("own", "theirs", "asked", "nothing"):
        files.restamp(db, PROJECT, entity_id, lambda stamp: stamp - 4)
    assert files.find(db, PROJECT, "own") == file("own", 5)
    assert files.find(db, PROJECT, "theirs") == file("theirs", 9, signature=SIGNED)
    assert files.request(db, PROJECT, "asked") == request("asked", 5)
