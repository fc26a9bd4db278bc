"""`cacp keys operator` on a real file."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from server.auth import operator_key
from server.store import keys
from tests.cli.run import cacp
from tests.support.located import connect, prepare


@pytest.fixture
def database(tmp_path: Path) -> Path:
    prepare(tmp_path / "cacp.db")
    return tmp_path / "cacp.db"


def outcome(database: Path, *words: str) -> str:
    done = cacp("keys", "operator", *words, "--json", db=str(database))
    assert done.exit_code == 0, done.stderr
    shown = json.loads(done.stdout)
    assert Path(shown["file"]) == operator_key.path_beside(database)
    with closing(connect(database)) as db:
        key = operator_key.read(database).encode()
        assert keys.is_operators(db, keys.hash_of(key))
    return str(shown["outcome"])


def test_the_file_is_made_kept_taken_and_replaced(database: Path) -> None:
    assert [outcome(database), outcome(database)] == ["made", "kept"]
    first = operator_key.read(database)
    assert outcome(database, "--rotate") == "replaced"
    assert operator_key.read(database) != first
    operator_key.path_beside(database).write_text(first)
    assert outcome(database) == "taken"


def test_it_prints_the_path_alone_and_never_the_key(database: Path) -> None:
    done = cacp("keys", "operator", db=str(database))
    assert done.stdout == f"{operator_key.path_beside(database)}\n"
    assert "no longer valid" in done.stderr
    assert operator_key.read(database) not in done.stderr


def test_it_lists_no_keys_of_agents(database: Path) -> None:
    outcome(database)
    assert json.loads(cacp("keys", "list", "--json", db=str(database)).stdout) == []


def test_an_unusable_file_is_named_and_a_new_key_takes_its_place(database: Path) -> None:
    outcome(database)
    operator_key.path_beside(database).chmod(0o640)
    refused = cacp("keys", "operator", db=str(database))
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "open to others (mode 0640)" in refused.stderr
    assert outcome(database, "--rotate") == "replaced"


@pytest.mark.sqlite
def test_without_a_database_it_makes_none(tmp_path: Path) -> None:
    refused = cacp("keys", "operator", db=str(tmp_path / "none.db"))
    assert refused.exit_code == 1
    assert list(tmp_path.iterdir()) == []
