"""`cacp backup` and `cacp export`, of a node that runs."""

import base64
import json
import re
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from server.domain.location import DatabaseUrl
from server.store.move import move
from server.store.opening import prepare
from tests.cli.run import cacp
from tests.support.node import Node
from tests.support.postgresql import drop, empty_database, execute
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team


@pytest.mark.sqlite
def test_a_backup_of_a_live_node_starts_as_a_node(tmp_path: Path, node: Node, team: Team) -> None:
    contract = team.proposed()
    copy = tmp_path / "copy" / "node.db"
    copy.parent.mkdir()
    done = cacp("backup", str(copy), "--db", str(node.db))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "Copied" in done.stderr
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [file.name for file in copy.parent.iterdir()] == ["node.db"]
    with Node(copy.parent) as restored:
        found = restored.call("cacp/contract/get", projectId=team.project, contractId=contract)
        assert found["status"] == "proposed"


@pytest.mark.sqlite
def test_a_backup_without_secrets_holds_none(tmp_path: Path) -> None:
    """Nothing of them is left in the file, not in free pages either."""
    own = tmp_path / "own"
    own.mkdir()
    with Node(own) as node:
        redacted_of(node, tmp_path)


def redacted_of(node: Node, tmp_path: Path) -> None:
    team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND))
    contract = team.proposed()
    live = team.node.db
    with closing(sqlite3.connect(live)) as db:
        db.execute(
            "INSERT INTO peers"
            " (agent_id, endpoint, trust, registered_at, last_seen, secret, key_id) VALUES"
            " ('p', 'http://p', 'verified', 1, 1, 'cacp_sk_of_a_peer', 'k')"
        )
        db.execute("INSERT INTO undelivered VALUES ('p', 'contract', 'p', 'c', 1, 5, 'why', 0)")
        db.execute("INSERT INTO invites VALUES ('i', 'secret-of-an-invite', 1, 2, NULL, NULL)")
        db.execute("INSERT INTO wanted_peers VALUES ('http://w', 'invite-of-another', NULL)")
        db.execute("INSERT INTO peer_api_keys VALUES ('http://f', 'key-of-a-foreign-peer')")
        db.commit()
        secrets = [hashed for (hashed,) in db.execute("SELECT hash FROM keys")]
        secrets += db.execute("SELECT value FROM meta WHERE name = 'secret'").fetchone()
    secrets += ["cacp_sk_of_a_peer", "secret-of-an-invite", "invite-of-another"]
    secrets.append("key-of-a-foreign-peer")
    whole, redacted = tmp_path / "whole.db", tmp_path / "redacted.db"
    done = cacp("backup", str(whole), "--db", str(live))
    assert "with its secrets: protect it" in done.stderr
    done = cacp("backup", "--without-secrets", str(redacted), "--db", str(live), "--json")
    assert json.loads(done.stdout)["secrets"] is False
    for secret in secrets:
        assert secret.encode() in whole.read_bytes()
        assert secret.encode() not in redacted.read_bytes()
    with closing(sqlite3.connect(redacted)) as db:
        assert (contract,) in db.execute("SELECT contract_id FROM contracts").fetchall()
        assert db.execute("SELECT * FROM undelivered").fetchall() == [], "it has no peers"


def test_a_backup_overwrites_nothing(tmp_path: Path, node: Node) -> None:
    copy = tmp_path / "copy.db"
    copy.write_text("mine")
    done = cacp("backup", str(copy), "--db", str(node.db))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "exists already" in done.stderr
    assert copy.read_text() == "mine"


@pytest.mark.sqlite
@pytest.mark.parametrize("command", ["backup", "export"])
def test_without_a_database_there_is_nothing_to_copy(tmp_path: Path, command: str) -> None:
    done = cacp(command, str(tmp_path / "out"), db=str(tmp_path / "none.db"))
    assert done.exit_code == 1
    assert "there is no database at" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.sqlite
@pytest.mark.parametrize("command", ["backup", "export"])
def test_what_is_no_database_leaves_nothing_half_made(tmp_path: Path, command: str) -> None:
    (tmp_path / "bad.db").write_text("no database at all" * 50)
    done = cacp(command, str(tmp_path / "out"), db=str(tmp_path / "bad.db"))
    assert done.exit_code == 1
    assert "file is not a database" in done.stderr
    assert not (tmp_path / "out").is_file()
    assert not (tmp_path / "out.part").exists()


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path, node: Node) -> None:
    done = cacp("backup", str(tmp_path / "no" / "such" / "copy.db"), db=str(node.db))
    assert done.exit_code == 1
    assert done.stderr.endswith("copy.db can't be written: the folder does not exist\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.sqlite
def test_an_export_holds_all_but_the_secrets(tmp_path: Path, node: Node, team: Team) -> None:
    contract = team.agreed()
    team.backend("context/askQuestion", question="Why?", relatedContracts=[contract])
    content = base64.b64encode(b"\x00file").decode()
    team.backend("file/share", file={"name": "a.bin", "content": content})
    out = tmp_path / "dump"
    done = cacp("export", str(out), "--json", db=str(node.db))
    counts = json.loads(done.stdout)["lines"]

    found = {file.stem: _lines(file) for file in out.iterdir()}
    assert counts == {entity: len(lines) for entity, lines in found.items()}
    assert contract in [one["contract_id"] for one in found["contracts"]]
    assert {one["kind"] for one in found["facts"] if one["contract_id"] == contract} == {
        "version",
        "response",
    }
    assert content in [one["content"] for one in found["files"]]
    assert "Why?" in [one["content"].get("question") for one in found["packets"]]
    assert found["changes"][0]["seq"] == 1

    whole = "".join(file.read_text() for file in out.iterdir())
    with closing(sqlite3.connect(node.db)) as db:
        secrets = [row[0] for row in db.execute("SELECT hash FROM keys")]
        secrets += [row[0] for row in db.execute("SELECT value FROM meta WHERE name = 'secret'")]
    assert secrets
    assert not any(str(secret) in whole for secret in secrets)
    assert team.key not in whole


def test_an_export_says_what_it_wrote(tmp_path: Path, node: Node, team: Team) -> None:
    team.agreed()
    done = cacp("export", str(tmp_path / "dump"), db=str(node.db))
    assert re.search(r"^Wrote projects \(\d+\), repos \(\d+\), .* to .*dump\.$", done.stderr)


def test_an_export_fills_only_an_empty_folder(tmp_path: Path, node: Node) -> None:
    (tmp_path / "mine").touch()
    done = cacp("export", str(tmp_path), db=str(node.db))
    assert done.exit_code == 1
    assert "is not empty" in done.stderr
    (tmp_path / "mine").unlink()
    assert cacp("export", str(tmp_path), db=str(node.db)).exit_code == 0
    shutil.rmtree(tmp_path)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture
def moved(tmp_path: Path, node: Node, team: Team) -> Iterator[tuple[DatabaseUrl, str]]:
    """A copy of a running node on PostgreSQL, and a contract in it."""
    contract = team.proposed()
    copy, url = tmp_path / "copied.db", empty_database()
    assert cacp("backup", str(copy), "--db", str(node.db)).exit_code == 0
    move(copy, url, lambda step: None)
    yield url, contract
    drop(url)


@pytest.mark.sqlite
def test_a_backup_of_a_database_on_a_server_starts_as_a_node(
    tmp_path: Path, moved: tuple[DatabaseUrl, str], team: Team
) -> None:
    url, contract = moved
    before = prepare(url).epoch
    copy = tmp_path / "copy" / "node.db"
    copy.parent.mkdir()
    done = cacp("backup", str(copy), "--json", database_url=url)
    assert json.loads(done.stdout)["bytes"] == copy.stat().st_size
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [file.name for file in copy.parent.iterdir()] == ["node.db"]
    assert cacp("backup", str(copy), "--db", url).exit_code == 1, "it overwrites nothing"
    with Node(copy.parent) as restored:
        found = restored.call("cacp/contract/get", projectId=team.project, contractId=contract)
        assert found["status"] == "proposed"
        assert restored.query("SELECT value FROM meta WHERE name = 'epoch'") != [(before,)]
    assert execute(url, "SELECT value FROM meta WHERE name = 'epoch'") == [(before,)]


@pytest.mark.sqlite
def test_a_backup_of_a_server_without_secrets_holds_none(
    tmp_path: Path, moved: tuple[DatabaseUrl, str]
) -> None:
    url, _ = moved
    [[secret]] = execute(url, "SELECT value FROM meta WHERE name = 'secret'")
    [[key], *_] = execute(url, "SELECT hash FROM keys")
    for name, kept in (("whole.db", True), ("redacted.db", False)):
        options = () if kept else ("--without-secrets",)
        assert cacp("backup", str(tmp_path / name), *options, "--db", url).exit_code == 0
        content = (tmp_path / name).read_bytes()
        assert [part.encode() in content for part in (secret, key)] == [kept, kept]


@pytest.mark.sqlite
def test_an_export_is_the_same_from_both_kinds_of_database(
    tmp_path: Path, moved: tuple[DatabaseUrl, str]
) -> None:
    """From the file that is what was moved."""
    url, _ = moved
    for name, database in (("there", url), ("here", str(tmp_path / "copied.db"))):
        done = cacp("export", str(tmp_path / name), "--db", database)
        assert done.exit_code == 0, done.stderr
        assert (
            cacp("acp", "export", str(tmp_path / f"{name}-mail"), "--db", database).exit_code == 0
        )
    for here in (tmp_path / "here").iterdir():
        there = tmp_path / "there" / here.name
        assert sorted(there.read_bytes().splitlines()) == sorted(here.read_bytes().splitlines())
    assert (tmp_path / "here" / "contracts.jsonl").stat().st_size > 100
