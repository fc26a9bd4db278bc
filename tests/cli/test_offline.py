"""Working on a node's file, node up or down."""

import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import typer

from cli.offline import checked_name, transaction
from cli.terminal import REFUSED, USAGE
from server.domain.location import DatabaseUrl
from server.store import keys
from tests.support.located import connect, prepare
from tests.support.postgresql import drop, empty_database, execute


def ended(
    capsys: pytest.CaptureFixture[str], path: Path, *, create: bool | None = None
) -> tuple[int, str]:
    """The status and the line with which a command ends that can't open `path`."""
    with pytest.raises(typer.Exit) as end, transaction(path, create=create):
        pass
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    return end.value.exit_code, said


def test_makes_the_file_only_if_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deep" / "cacp.db"
    status, said = ended(capsys, path)
    assert (status, path.exists()) == (REFUSED, False)
    assert f"there is no database at {path}: " in said
    assert "--create" not in said, "it is not for this command"
    status, said = ended(capsys, path, create=False)
    assert (status, path.parent.exists()) == (REFUSED, False)
    assert str(path) in said
    assert "--create makes a new database there" in said
    with transaction(path, create=True) as node:
        assert keys.every(node.db) == []
    assert capsys.readouterr().err == f"cacp: created a new database {path}\n"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with transaction(path, create=True):
        pass
    assert capsys.readouterr().err == ""


def test_an_empty_file_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    path.touch()
    with transaction(path, create=True) as node:
        assert keys.every(node.db) == []


def test_keeps_nothing_of_a_command_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    with suppress(typer.Exit), transaction(path, create=True) as node:
        keys.add(node.db, keys.new_key(), agent_id="a", repo="r", now=1)
        raise typer.Exit(REFUSED)
    with transaction(path) as node:
        assert keys.every(node.db) == []


@pytest.mark.sqlite
def test_works_beside_a_node_that_has_the_file_open(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    prepare(path)
    with closing(connect(path)) as running:
        with transaction(path) as node:
            keys.add(node.db, keys.new_key(), agent_id="a", repo="r", now=1)
        assert len(keys.every(running)) == 1


@pytest.mark.parametrize("make", [True, False])
def test_refuses_what_is_no_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: bool
) -> None:
    path = tmp_path / "cacp.db"
    path.write_text("no database at all, but long enough to be looked into")
    assert ended(capsys, path, create=make)[0] == REFUSED
    assert ended(capsys, tmp_path, create=make)[0] == REFUSED


@pytest.mark.sqlite
def test_refuses_a_database_of_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.db"
    with closing(connect(path)) as other:
        other.execute("CREATE TABLE things (name TEXT)")
    with pytest.raises(typer.Exit) as end, transaction(path) as node:
        keys.every(node.db)
    assert end.value.exit_code == REFUSED
    assert "no such table" in capsys.readouterr().err


@pytest.mark.sqlite
def test_names_a_wrong_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACP_PORT", "high")
    status, said = ended(capsys, tmp_path / "cacp.db", create=True)
    assert (status, "CACP_PORT" in said) == (USAGE, True)
    prepare(tmp_path / "cacp.db")
    with pytest.raises(typer.Exit) as end, transaction(tmp_path / "cacp.db") as node:
        assert node.settings
    assert end.value.exit_code == USAGE


def test_the_file_is_that_of_cacp_db_or_of_this_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable, name in (("", "data/cacp.db"), ("team.db", "team.db")):
        monkeypatch.setenv("CACP_DB", variable)
        with pytest.raises(typer.Exit), transaction(None):
            pass
        assert f"no database at {tmp_path / name}: " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "a\x00", "a" * 201])
def test_a_name_can_stand_in_a_header(name: str) -> None:
    assert checked_name("aid://example.com/ä@1.0.0")
    with pytest.raises(typer.BadParameter):
        checked_name(name)


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    made = empty_database()
    yield made
    drop(made)


def test_makes_a_servers_tables_only_if_told(
    url: DatabaseUrl, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit), transaction(url):
        pass
    assert (
        capsys.readouterr().err
        == f"cacp: no node's database is at {url.shown}: name the right one\n"
    )
    with pytest.raises(typer.Exit), transaction(url, create=False):
        pass
    assert "--create makes it there" in capsys.readouterr().err
    with transaction(url, create=True) as node:
        assert keys.every(node.db) == []
    assert capsys.readouterr().err == f"cacp: created a new database {url.shown}\n"


def test_replicas_notice_what_a_command_writes(url: DatabaseUrl) -> None:
    """It is stamped after all that they have stamped."""
    with transaction(url, create=True):
        pass
    ahead = 4_000_000_000_000_000
    execute(url, "UPDATE cluster SET stamp = %s", ahead)
    with transaction(url) as node:
        assert node.shared
        assert node.now == ahead + 1
        keys.add(node.db, keys.new_key(), agent_id="a", repo="r", now=node.now)
    assert execute(url, "SELECT stamp FROM cluster") == [(ahead + 1,)]
    with suppress(typer.Exit), transaction(url) as node:
        keys.add(node.db, keys.new_key(), agent_id="b", repo="r", now=node.now)
        raise typer.Exit(REFUSED)
    with transaction(url) as node:
        assert [key.agent_id for key in keys.every(node.db)] == ["a"]
    assert execute(url, "SELECT stamp FROM cluster") == [(ahead + 1,)], "nothing was written"


def test_a_server_that_is_away_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), transaction("postgresql://me:secret@127.0.0.1:1/cacp"):
        pass
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("cacp: postgresql://me@127.0.0.1:1/cacp can't be used as a node's")
    assert "secret" not in line
