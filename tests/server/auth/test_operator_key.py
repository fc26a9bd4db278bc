"""The operator key file beside a real database (design §7)."""

import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from server.auth import operator_key
from server.auth.key_file import UnusableKeyFile
from server.auth.operator_key import ensure, path_beside, read, replace
from server.store import keys
from server.store.connection import Connection
from server.store.sqlite.migrate import copy, prepare
from tests.support.located import connect


@pytest.fixture
def database(tmp_path: Path) -> Path:
    prepare(tmp_path / "cacp.db")
    return tmp_path / "cacp.db"


@pytest.fixture
def db(database: Path) -> Iterator[Connection]:
    with closing(connect(database)) as connection:
        yield connection


def is_valid(db: Connection, key: str) -> bool:
    return keys.is_operators(db, keys.hash_of(key.encode()))


def test_the_first_start_makes_it_and_later_ones_keep_it(db: Connection, database: Path) -> None:
    assert not keys.has_operator(db)
    assert ensure(db, database) == "made"
    key = read(database)
    assert key.startswith(keys.OPERATOR_PREFIX)
    assert keys.PATTERN.fullmatch(key.encode())
    assert stat.S_IMODE(path_beside(database).stat().st_mode) == 0o600
    assert is_valid(db, key)
    assert ensure(db, database) == "kept"
    assert read(database) == key


def test_it_is_no_key_of_an_agent(db: Connection, database: Path) -> None:
    """It neither lists among them nor lets an exposed node start."""
    ensure(db, database)
    assert not keys.every(db)
    assert not keys.any_active(db)
    assert keys.holder(db, keys.hash_of(read(database).encode())) is None


@pytest.mark.sqlite
def test_the_database_holds_its_hash_alone(db: Connection, database: Path) -> None:
    ensure(db, database)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    key = read(database).encode()
    assert key not in database.read_bytes()
    assert keys.hash_of(key).encode() in database.read_bytes()


def test_a_lost_file_is_made_again_and_the_lost_key_ends(db: Connection, database: Path) -> None:
    ensure(db, database)
    lost = read(database)
    path_beside(database).unlink()
    assert ensure(db, database) == "made"
    assert read(database) != lost
    assert not is_valid(db, lost)


def test_a_replaced_key_ends(db: Connection, database: Path) -> None:
    ensure(db, database)
    old = read(database)
    replace(db, database)
    assert is_valid(db, read(database))
    assert not is_valid(db, old)


@pytest.mark.sqlite
def test_a_restored_database_takes_the_files_key_not_a_replaced_one(
    db: Connection, database: Path, tmp_path: Path
) -> None:
    ensure(db, database)
    old = read(database)
    copy(database, tmp_path / "backup.db")
    replace(db, database)
    with closing(connect(tmp_path / "backup.db")) as restored:
        assert is_valid(restored, old)
        path_beside(database).rename(path_beside(tmp_path / "backup.db"))
        assert ensure(restored, tmp_path / "backup.db") == "taken"
        assert not is_valid(restored, old)


def test_a_copy_without_secrets_has_no_operator(
    db: Connection, database: Path, tmp_path: Path
) -> None:
    ensure(db, database)
    copy(database, tmp_path / "report.db", without_secrets=True)
    with closing(connect(tmp_path / "report.db")) as made:
        assert not keys.has_operator(made)
    hashed = keys.hash_of(read(database).encode()).encode()
    assert hashed not in (tmp_path / "report.db").read_bytes()


def test_another_kind_of_key_is_refused(db: Connection, database: Path) -> None:
    """An agent's key must not become the operator's."""
    path_beside(database).touch(mode=0o600)
    path_beside(database).write_text(keys.new_key())
    with pytest.raises(UnusableKeyFile, match="cacp keys operator --rotate"):
        ensure(db, database)
    assert not keys.has_operator(db)


def test_an_open_file_is_refused(db: Connection, database: Path) -> None:
    ensure(db, database)
    path_beside(database).chmod(0o640)
    with pytest.raises(UnusableKeyFile, match=r"open to others \(mode 0640\)"):
        ensure(db, database)


def test_where_no_file_can_be_written_it_says_so(db: Connection, database: Path) -> None:
    path_beside(database).with_name("cacp.db.operator-key.part").mkdir()
    with pytest.raises(UnusableKeyFile, match="can't be written"):
        ensure(db, database)
    assert not keys.has_operator(db)


def test_a_link_to_the_database_has_the_same_file(database: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(database)
    assert operator_key.path_beside(link) == path_beside(database)
