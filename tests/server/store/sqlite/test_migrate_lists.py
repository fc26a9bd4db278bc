"""What databases from before the lists were alike on every node become (design §3, §7)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import orjson

from server.store import digests, files, keys
from server.store.files import File, FileRequestRow
from server.store.sqlite.schema import migrations


def test_packets_from_before_are_listed_by_their_own_time(tmp_path: Path) -> None:
    """0016: not by when they arrived."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        for one in migrations():
            if one.name == "lists_alike":
                db.executescript(
                    "INSERT INTO projects VALUES ('p', 'n', 'o', 'planning', 'any', 1, 1);"
                    "INSERT INTO packets (project_id, packet_id, type, stamp, document) VALUES"
                    " ('p', 'a', 'question', 7, '{\"timestamp\":"
                    '"2023-11-14T22:13:20.000042+00:00"}\'),'
                    " ('p', 'b', 'question', 9, '{}');"
                    "INSERT INTO packet_contracts VALUES ('p', 'c', 7, 'a'), ('p', 'c', 9, 'b');"
                )
            one.run(db)
        expected = [("a", 1_700_000_000_000_042), ("b", 9)]
        for table in ("packets", "packet_contracts"):
            rows = db.execute(f"SELECT packet_id, stamp FROM {table} ORDER BY 1")
            assert rows.fetchall() == expected


def test_files_from_before_are_whole_and_known_to_all(tmp_path: Path) -> None:
    """0017: content apart, a request fulfilled by what the file says, and all of it counted."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        db.execute("PRAGMA foreign_keys=ON")
        for one in migrations():
            if one.name == "files_between_nodes":
                db.executescript(
                    "INSERT INTO projects VALUES ('p', 'n', 'o', 'planning', 'any', 1, 1);"
                    "INSERT INTO files VALUES ('f', 'p', 'a.png', 'image/png', 2, 'ab',"
                    " 'For: x', '[]', 'backend', 'agent', 5, x'00ff');"
                    "INSERT INTO file_requests VALUES ('r1', 'p', 'web', 'x', NULL, 4, 'f'),"
                    " ('r2', 'p', 'web', 'y', 'png', 6, NULL);"
                    "INSERT INTO changes (at, origin, actor, action, entity, entity_id,"
                    " project_id, outcome) VALUES"
                    " (1, 'o', 'agent', 'm', 'project', 'p', 'p', 'created'),"
                    " (4, 'o', 'ann', 'm', 'file_request', 'r1', 'p', 'open'),"
                    " (5, 'o', 'agent', 'm', 'file', 'f', 'p', 'received'),"
                    " (6, 'o', 'bob', 'm', 'file_request', 'r2', 'p', 'open');"
                    "INSERT INTO meta VALUES ('digest_cursor', '4');"
                )
            one.run(db)
        file = File("f", "a.png", "image/png", 2, "ab", "For: x", "[]", "backend", "agent", "r1", 5)
        assert files.find(db, "p", "f") == file
        assert files.content(db, "p", file) == (b"\x00\xff", None)
        assert files.fulfilled_by(db, "p", "r1") == "f"
        assert files.request(db, "p", "r1") == FileRequestRow("r1", "web", "ann", "x", None, 4)
        waiting = files.open_requests(db, "p", 0, "", 9)
        assert waiting == [FileRequestRow("r2", "web", "bob", "y", "png", 6)]
        assert digests.is_behind(db)
        assert digests.catch_up(db)
        counted = db.execute("SELECT entity, entity_id FROM digests ORDER BY 2").fetchall()
        assert counted == [
            ("file", "f"),
            ("project", "p"),
            ("file_request", "r1"),
            ("file_request", "r2"),
        ]


def test_dead_letters_that_were_archived_before_are_listed(tmp_path: Path) -> None:
    """Those of senders here, each by a number that no other delivery has."""

    def document(sender: str, gate: str, *statuses: str) -> str:
        whole = {
            "message": {"from": sender, "priority": "normal", "policy": {"human_gate": gate}},
            "receipts": [
                {"recipient": f"aid://x/r{place}", "status": status}
                for place, status in enumerate(statuses)
            ],
        }
        return orjson.dumps(whole).decode()

    kept = {
        "m1": document("aid://x/a@1.0.0", "none", "expired", "read", "failed"),
        "m2": document("aid://x/b@2.0.0", "required", "failed"),
        "m3": document("aid://x/far@1.0.0", "none", "failed"),
        "m4": document("aid://x/a@1.0.0", "none", "failed"),
    }
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        for one in migrations():
            if one.name == "archived_before":
                db.executemany(
                    "INSERT INTO messages_archive (id, archived_at, document) VALUES (?, '', ?)",
                    kept.items(),
                )
                db.execute(
                    "INSERT INTO archived_dead_letters VALUES (2, 'm4', 'aid://x/r0', 'a', 0)"
                )
                db.execute("INSERT INTO homes VALUES ('aid://x/far', 'aid://x/node')")
                db.execute(
                    "INSERT INTO peers (agent_id, endpoint, trust, registered_at, last_seen)"
                    " VALUES ('aid://x/node@1.0.0', 'http://x', 'verified', 1, 1)"
                )
            one.run(db)
        rows = db.execute(
            "SELECT id, message_id, recipient, sender, open_to_humans FROM archived_dead_letters"
            " WHERE message_id <> 'm4' ORDER BY id"
        )
        assert rows.fetchall() == [
            (1, "m1", "aid://x/r0", "aid://x/a", 0),
            (3, "m1", "aid://x/r2", "aid://x/a", 0),
            (4, "m2", "aid://x/r0", "aid://x/b", 1),
        ]


def test_keys_from_before_stay_with_their_project(tmp_path: Path) -> None:
    """0029: or a key for one project would be one for all."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        for one in migrations():
            if one.name == "key_projects":
                db.executescript(
                    "INSERT INTO keys (key_id, hash, agent_id, repo, trust, created_at, project_id)"
                    " VALUES ('k1', 'h1', 'a', 'r', 'verified', 1, 'p'),"
                    " ('k2', 'h2', 'a', 'r', 'verified', 2, NULL);"
                )
            one.run(db)
        assert [one.projects for one in keys.every(db)] == [frozenset({"p"}), None]
