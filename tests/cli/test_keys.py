"""`cacp keys` on a real file."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.keys import app
from server.store import keys
from server.store.database import connect

AGENT = "aid://example.com/frontend@1.0.0"
Run = Callable[..., Result]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cacp.db"


@pytest.fixture
def run(file: Path) -> Run:
    return lambda *words: CliRunner().invoke(app, words, env={"CACP_DB": str(file)})


def test_create_prints_the_key_alone_and_the_node_knows_it(run: Run, file: Path) -> None:
    done = run("create", AGENT, "--repo", "frontend-app")
    assert done.exit_code == 0
    key = done.stdout.removesuffix("\n")
    assert keys.PATTERN.fullmatch(key.encode())
    assert "Shown this once" in done.stderr
    assert key not in done.stderr
    with closing(connect(file)) as db:
        holder = keys.holder(db, keys.hash_of(key.encode()))
    assert holder == keys.Holder(AGENT, "frontend-app", "verified", None)


def test_create_in_json(run: Run) -> None:
    made = json.loads(
        run("create", AGENT, "--repo", "frontend-app", "--trust", "known", "--json").stdout
    )
    assert made.pop("key").startswith("cacp_sk_live_")
    assert made.pop("keyId").startswith("key_")
    assert made == {"agentId": AGENT, "repo": "frontend-app", "trust": "known", "human": False}


def test_list_shows_everything_but_the_key(run: Run) -> None:
    made = json.loads(run("create", AGENT, "--repo", "frontend-app", "--json").stdout)
    shown = run("list").stdout
    assert made["keyId"] in shown
    assert made["key"] not in shown
    (row,) = json.loads(run("list", "--json").stdout)
    assert set(row) == {"keyId", "agentId", "repo", "trust", "createdAt", "revokedAt", "human"}
    assert row["revokedAt"] is None


def test_revoke_is_for_good(run: Run) -> None:
    made = json.loads(run("create", AGENT, "--repo", "frontend-app", "--json").stdout)
    assert run("revoke", made["keyId"]).exit_code == 0
    (row,) = json.loads(run("list", "--json").stdout)
    assert row["revokedAt"]
    again = run("revoke", made["keyId"])
    assert again.exit_code == 1
    assert "no active key" in again.stderr


def test_db_wins_over_the_environment(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    assert run("create", AGENT, "--repo", "r", "--db", str(other)).exit_code == 0
    assert run("list", "--db", str(other)).exit_code == 0
    assert run("list").exit_code == 1


@pytest.mark.parametrize(
    "words",
    [
        ["create"],
        ["create", AGENT],
        ["create", "", "--repo", "r"],
        ["create", "two words", "--repo", "r"],
        ["create", AGENT, "--repo", ""],
        ["create", AGENT, "--repo", "r", "--trust", "full"],
        ["revoke"],
        ["destroy"],
    ],
)
def test_wrong_usage_makes_nothing(run: Run, file: Path, words: list[str]) -> None:
    assert run(*words).exit_code == 2
    assert not file.exists()


@pytest.mark.parametrize("command", ["create", "list", "revoke"])
def test_help_gives_an_example(run: Run, command: str) -> None:
    assert f"Example: cacp keys {command}" in run(command, "--help").stdout
