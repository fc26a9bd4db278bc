"""`cacp move`, as an operator sees it (`tests/server/store/test_move.py` looks at every row)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.terminal import REFUSED
from server.domain.location import DatabaseUrl
from server.store.opening import prepare
from tests.cli.run import cacp, on_terminal
from tests.support.postgresql import drop, empty_database

pytestmark = pytest.mark.sqlite


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    made = empty_database()
    yield made
    drop(made)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A node's file with a key."""
    path = tmp_path / "node.db"
    args = ("aid://example.com/a@1.0.0", "--repo", "a", "--create", "--db", str(path))
    assert cacp("keys", "create", *args).exit_code == 0
    return path


def keys_of(place: str) -> list[str]:
    return [
        key["keyId"] for key in json.loads(cacp("keys", "list", "--json", "--db", place).stdout)
    ]


def test_a_node_goes_there_and_back(file: Path, url: DatabaseUrl, tmp_path: Path) -> None:
    [key] = keys_of(str(file))
    done = cacp("move", "--from", f"sqlite:{file}", "--to", url)
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"from {file} to {url.shown} in" in done.stderr
    assert "The content matches its digests." in done.stderr
    assert keys_of(url) == [key]

    done = cacp("keys", "list", "--db", str(file))
    assert (done.exit_code, done.stdout) == (REFUSED, "")
    assert f"was moved to {url.shown}: start it there" in done.stderr

    back = tmp_path / "back.db"
    done = cacp("move", "--from", url, "--to", f"sqlite:{back}", "--json")
    result = json.loads(done.stdout)
    assert (result["from"], result["to"], result["damage"]) == (url.shown, str(back), None)
    assert {each["table"]: each["rows"] for each in result["tables"]}["keys"] == 1
    assert keys_of(str(back)) == [key]
    assert cacp("keys", "list", "--db", url).exit_code == REFUSED


def test_a_copy_leaves_the_source(file: Path, url: DatabaseUrl) -> None:
    before = prepare(file).epoch
    done = cacp("move", "--from", str(file), "--to", url, "--keep-source")
    assert (done.exit_code, done.stderr.startswith("Copied ")) == (0, True)
    assert keys_of(str(file)) == keys_of(url)
    assert prepare(url).epoch != before == prepare(file).epoch


def test_a_refusal_is_one_line(file: Path, url: DatabaseUrl) -> None:
    prepare(url)
    for source, target, why in (
        (str(file), url, "holds a node already"),
        (str(file), "postgresql://me:secret@127.0.0.1:1/x", "can't be reached"),
        (str(file), str(file), "into itself"),
        ("none.db", url, "There is no database at"),
        (str(file), "mysql://host/x", "should be a URL such as postgresql://"),
    ):
        done = cacp("move", "--from", source, "--to", target)
        assert done.exit_code != 0
        [line] = done.stderr.splitlines()
        assert why in line
        assert "secret" not in line


def test_a_terminal_shows_what_is_done(file: Path, url: DatabaseUrl) -> None:
    shown = on_terminal("move", "--from", str(file), "--to", url)
    assert "Moved" in shown
