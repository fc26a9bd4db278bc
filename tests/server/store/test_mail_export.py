"""The export of mail: complete and resumable (acp-canonical §9.1)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.domain.location import Location
from server.store import mail_export, mailboxes, messages
from server.store.connection import Connection
from server.store.mail_export import export
from server.store.sender_limits import audit
from tests.server.store.test_messages import AT, LATER, MESSAGE

BERT = "aid://x/b"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mail").mkdir()
    return tmp_path / "mail"


def fill(db: Connection, numbers: range) -> None:
    for number in numbers:
        messages.insert(db, MESSAGE._replace(id=f"m{number:04d}"), 15, "t")
        mailboxes.put(db, f"m{number:04d}", BERT, AT)


def lines(folder: Path, name: str) -> list[Any]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_all_is_there(db: Connection, location: Location, folder: Path) -> None:
    fill(db, range(3))
    audit(db, at=AT, actor="a", action="acp/send", outcome="accepted", detail={"x": 1})
    messages.archive(db, "m0000", b'{"message":{"id":"m0000"}}', LATER)
    assert export(location, folder) == {"messages": 2, "archive": 1, "audit": 1}
    assert [one["message"]["id"] for one in lines(folder, "messages")] == ["m0001", "m0002"]
    assert lines(folder, "messages")[0]["receipts"][0]["recipient"] == BERT
    assert lines(folder, "archive") == [{"message": {"id": "m0000"}}]
    assert lines(folder, "audit")[0]["detail"] == {"x": 1}


def test_a_second_run_adds_what_is_new_and_what_has_changed(
    db: Connection, location: Location, folder: Path
) -> None:
    fill(db, range(3))
    export(location, folder)
    assert export(location, folder) == {"messages": 0, "archive": 0, "audit": 0}
    messages.put_status(db, "m0001", "read", LATER)
    assert export(location, folder)["messages"] == 1
    last = {one["message"]["id"]: one["message"]["status"] for one in lines(folder, "messages")}
    assert last == {"m0000": "pending", "m0001": "read", "m0002": "pending"}


def test_a_run_that_broke_off_goes_on_where_it_was(
    db: Connection, location: Location, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, range(40))
    monkeypatch.setattr(mail_export, "LINES", 7)
    whole = mail_export._messages

    def breaks_off(db: Connection, last: Any) -> Iterator[Any]:
        for number, line in enumerate(whole(db, last)):
            if number == 18:
                raise KeyboardInterrupt
            yield line

    monkeypatch.setattr(mail_export, "_messages", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        export(location, folder)
    with (folder / "messages.jsonl").open("ab") as out:
        out.write(b'{"half')
    monkeypatch.setattr(mail_export, "_messages", whole)
    assert export(location, folder)["messages"] == 40 - 14
    ids = [one["message"]["id"] for one in lines(folder, "messages")]
    assert ids == [f"m{number:04d}" for number in range(40)]
