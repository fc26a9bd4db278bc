"""Files and requests for them, on disk."""

import sqlite3

import orjson

from server.store import files
from server.store.files import File, Request
from server.store.projects import Header
from tests.server.store.conftest import PROJECT


def file(file_id: str) -> File:
    return File(file_id, "../a.png", "image/png", 3, "ab", None, '["c1"]', "backend", "agent", 1)


def test_a_file_comes_back_byte_for_byte(db: sqlite3.Connection, project: Header) -> None:
    content = bytes(range(256))
    files.insert(db, PROJECT, file("f1"), content)
    assert files.whole(db, PROJECT, "f1") == (file("f1"), content)
    assert files.whole(db, "other", "f1") is None
    assert files.whole(db, PROJECT, "f2") is None


def test_files_are_listed_page_by_page(db: sqlite3.Connection, project: Header) -> None:
    for name in ("f2", "f1", "f3"):
        files.insert(db, PROJECT, file(name), b"")
    assert files.after(db, PROJECT, "", 2) == [file("f1"), file("f2")]
    assert files.after(db, PROJECT, "f2", 2) == [file("f3")]


def test_a_summary_says_all_but_the_content() -> None:
    assert orjson.loads(orjson.dumps(files.summary(file("f1")))) == {
        "fileId": "f1",
        "name": "../a.png",
        "contentType": "image/png",
        "size": 3,
        "sha256": "ab",
        "purpose": None,
        "relatedContracts": ["c1"],
        "fromRepo": "backend",
        "fromAgent": "agent",
        "timestamp": "1970-01-01T00:00:00.000001+00:00",
    }


def test_a_request_is_open_until_a_file_fulfils_it(db: sqlite3.Connection, project: Header) -> None:
    files.insert_request(db, PROJECT, "r1", "frontend", "Logo", "png", 1)
    files.insert_request(db, PROJECT, "r2", "frontend", "Font", None, 2)
    assert [one["requestId"] for one in files.open_requests(db, PROJECT)] == ["r1", "r2"]
    assert files.request(db, "r1") == Request(PROJECT, "Logo", None)
    files.insert(db, PROJECT, file("f1"), b"")
    files.fulfil(db, "r1", "f1")
    assert files.request(db, "r1") == Request(PROJECT, "Logo", "f1")
    assert [one["requestId"] for one in files.open_requests(db, PROJECT)] == ["r2"]
    assert files.request(db, "nothing") is None
