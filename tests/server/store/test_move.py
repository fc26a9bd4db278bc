"""A whole node is moved from one kind of database to the other, and nothing of it is lost."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from server.domain.errors import Unavailable
from server.domain.location import DatabaseUrl, Location
from server.store import move as moving
from server.store import tokens
from server.store.move import MoveStep, move
from server.store.opening import connect, prepare
from server.store.portable import tables
from server.store.postgresql.transfer import PgTarget
from server.store.sqlite.file_lock import lock
from server.store.sqlite.migrate import prepare as prepare_file
from tests.support.in_process_node import ANA, BEN, InProcessNode
from tests.support.postgresql import drop, empty_database, execute
from tests.support.shop import Shop

pytestmark = pytest.mark.sqlite

HARD = "NUL \0, two \0\0, U+E000 \ue000, both \ue000\0\ue001\ue000\ue000, \U0001f600 \ufffe"


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """The file of a node with contracts, context, files, mail, a handoff, runs and peers."""
    with InProcessNode(tmp_path) as node:
        shop = Shop(node)
        shop.verified()
        shop.proposed("web", ("pay", "ios"))
        content = {"question": HARD}
        shop.call("api", "context/share", type="question", content=content)
        file = {"name": "a.txt", "content": "aGkK"}
        shop.call("api", "file/share", file=file)
        shop.call(
            "api", "run/report", runId="r", status="RUNNING", startedAt="2026-01-01T00:00:00Z"
        )
        node.accepted(ANA, BEN)
        node.call("acp/send", ANA, to=[BEN], type="knowledge.push", payload={"summary": HARD})
        node.db.execute(
            "INSERT INTO peers (agent_id, endpoint, trust, registered_at, last_seen, cursor)"
            " VALUES (?, 'http://127.0.0.1:1', 'verified', 1, 1, 3)",
            (HARD,),
        )
        # A number that was given to a row which is gone is not given again.
        node.db.execute("UPDATE sqlite_sequence SET seq = seq + 10 WHERE name = 'delivery_log'")
        tokens.node_secret(node.db)
        node.db.execute("INSERT INTO page_links VALUES ('c', 'k', 1, 1)")
    return tmp_path / "desk.db"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "moved" / "node.db"


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    made = empty_database()
    yield made
    drop(made)


def quiet(step: MoveStep) -> None:
    pass


def rows(location: Location) -> dict[str, list[tuple[Any, ...]]]:
    """All that is carried over."""
    with closing(connect(location)) as db:
        return {
            table: sorted(
                (
                    row
                    for row in db.execute(f"SELECT {', '.join(columns)} FROM {table}")
                    if table != "meta" or row[0] in ("epoch", "secret", "sure_time")
                ),
                key=repr,
            )
            for table, columns in tables().items()
        }


def epoch(location: Location) -> str:
    return str(dict(rows(location)["meta"])["epoch"])


def test_all_of_a_node_goes_there_and_back(former: Path, url: DatabaseUrl, file: Path) -> None:
    before = rows(former)
    assert sum(map(bool, before.values())) >= 25

    there = move(former, url, quiet)
    assert rows(url) == before
    assert there.damage is None
    prepared = prepare(url)
    assert ("epoch", prepared.epoch) in before["meta"]

    back = move(url, file, quiet)
    assert {name: table.digest for name, table in back.tables.items() if name != "meta"} == {
        name: table.digest for name, table in there.tables.items() if name != "meta"
    }
    assert rows(file) == before
    assert prepare(file).epoch == prepared.epoch


def test_each_column_of_each_table_is_carried(tmp_path: Path, url: DatabaseUrl, file: Path) -> None:
    """A row in every table, of values that a column of its type can hold."""
    former = tmp_path / "full.db"
    prepare_file(former)
    with closing(sqlite3.connect(former)) as db:
        for table, columns in tables().items():
            types = {name: kind for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table})")}
            row = [VALUES[types[column]] for column in columns]
            marks = ", ".join("?" * len(row))
            db.execute(
                f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", row
            )
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        db.commit()
    before = rows(former)
    move(former, url, quiet)
    move(url, file, quiet)
    assert rows(file) == before
    assert all(before.values())


VALUES = {"TEXT": HARD, "INTEGER": 2**63 - 1, "BIGINT": -(2**63), "BLOB": bytes(range(256))}


def test_numbers_are_not_given_twice(former: Path, url: DatabaseUrl, file: Path) -> None:
    def numbers(path: Path) -> list[Any]:
        with closing(sqlite3.connect(path)) as db:
            return db.execute("SELECT * FROM sqlite_sequence ORDER BY name").fetchall()

    before = numbers(former)
    move(former, url, quiet)
    wanted = dict(before)["delivery_log"]
    assert execute(url, "SELECT nextval('delivery_log_id_seq')") == [(wanted + 1,)]
    [[newest]] = execute(url, "SELECT max(seq) FROM changes")
    assert execute(url, "SELECT nextval('changes_seq_seq')") == [(newest + 1,)]
    [[stamp]] = execute(url, "SELECT stamp FROM cluster")
    assert stamp >= execute(url, "SELECT max(at) FROM changes")[0][0]
    move(url, file, quiet)
    assert dict(numbers(file)) == dict(before) | {"delivery_log": wanted + 1}


def test_what_was_moved_can_not_be_used_any_more(
    former: Path, url: DatabaseUrl, file: Path
) -> None:
    move(former, url, quiet)
    with pytest.raises(ValueError, match=f"The node was moved to {url.shown}: start it there"):
        prepare(former)
    with pytest.raises(ValueError, match=r"was moved to .* before: move it from there"):
        move(former, file, quiet)
    with closing(connect(url)) as replica:
        move(url, file, quiet)
        # A replica that was paused meanwhile.
        with pytest.raises(Exception, match="nothing to lock"):
            replica.execute("BEGIN IMMEDIATE")
    with pytest.raises(ValueError, match=f"The node was moved to {file}"):
        prepare(url)
    assert prepare(file).epoch


def test_a_copy_is_another_history(former: Path, url: DatabaseUrl) -> None:
    move(former, url, quiet, keep_source=True)
    assert prepare(former).epoch == epoch(former)
    assert prepare(url).epoch != epoch(former)
    assert rows(former)["page_links"]
    assert not rows(url)["page_links"]


@pytest.mark.parametrize("action", ["copy", "check"])
def test_an_interrupted_move_is_done_again(
    former: Path, url: DatabaseUrl, file: Path, action: str
) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(step: MoveStep) -> None:
        if (step.action, step.table) == (action, "messages"):
            raise Interrupted

    before = rows(former)
    with pytest.raises(Interrupted):
        move(former, url, interrupt)
    with pytest.raises(ValueError, match=r"unfinished copy of .*desk.db: run `cacp move` again"):
        prepare(url)
    move(former, url, quiet)
    with pytest.raises(Interrupted):
        move(url, file, interrupt)
    assert not file.exists()
    move(url, file, quiet)
    assert rows(file) == before


def test_a_move_that_ended_before_its_last_step_is_done_again(
    former: Path, url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(PgTarget, "finish", killed)
        with pytest.raises(Killed):
            move(former, url, quiet)
    for location in (former, url):
        with pytest.raises(ValueError, match=r"was moved|unfinished copy"):
            prepare(location)
    move(former, url, quiet)
    assert prepare(url).epoch


def test_a_difference_is_found(
    former: Path, url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = moving._check

    def altered(*given: Any, **named: Any) -> None:
        execute(url, "UPDATE repos SET language = 'COBOL' WHERE name = 'pay'")
        check(*given, **named)

    monkeypatch.setattr(moving, "_check", altered)
    with pytest.raises(ValueError, match="The table repos differs: 4 rows were read and 4"):
        move(former, url, quiet)
    assert prepare(former).epoch


def test_what_is_in_use_is_not_moved(former: Path, url: DatabaseUrl, file: Path) -> None:
    descriptor = lock(former)
    with pytest.raises(Unavailable, match="Another node runs"):
        move(former, url, quiet)
    assert descriptor is not None
    os.close(descriptor)
    move(former, url, quiet)
    prepare(url)
    execute(
        url,
        "INSERT INTO replicas (replica, address, version, seen_at, status)"
        " VALUES ('r', 'a', '1', now(), 'ok')",
    )
    with pytest.raises(Unavailable, match="1 replicas run on this database"):
        move(url, file, quiet)
    execute(url, "UPDATE replicas SET seen_at = now() - interval '2 minutes'")
    move(url, file, quiet)


def test_what_holds_a_node_is_not_overwritten(former: Path, url: DatabaseUrl, file: Path) -> None:
    prepare(url)
    with pytest.raises(ValueError, match="holds a node already"):
        move(former, url, quiet)
    prepare_file(file)
    with pytest.raises(ValueError, match="exists already"):
        move(former, file, quiet)
    with pytest.raises(ValueError, match="into itself"):
        move(former, former, quiet)
    with pytest.raises(ValueError, match="There is no database"):
        move(file.with_name("none"), url, quiet)


def test_progress_is_told(former: Path, url: DatabaseUrl) -> None:
    steps: list[MoveStep] = []
    result = move(former, url, steps.append)
    for action in ("copy", "check"):
        done = [step for step in steps if step[:2] == (action, "repos")]
        assert [(step.rows, step.total) for step in done] == [(0, 4), (4, 4)]
    assert result.tables["repos"].rows == 4
