"""A node's first credential (design §6)."""

import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import SecretStr

from server.auth.bootstrap_key import check_exposed, register_key_file
from server.settings import Settings
from server.store import keys
from server.store.connection import Connection
from tests.support.located import connect, prepare


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    prepare(tmp_path / "cacp.db")
    with closing(connect(tmp_path / "cacp.db")) as connection:
        yield connection


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "secrets" / "first.key"


def settings(file: Path | None = None, host: str = "0.0.0.0") -> Settings:
    return Settings(host=host, repo="backend-api", bootstrap_key_file=file)


def written(file: Path, content: str, mode: int = 0o600) -> Path:
    file.parent.mkdir()
    file.write_text(content)
    file.chmod(mode)
    return file


def test_the_first_start_makes_a_key_that_only_its_owner_reads(db: Connection, file: Path) -> None:
    register_key_file(db, settings(file), 1)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    holder = keys.holder(db, keys.hash_of(file.read_bytes().strip()))
    assert holder == keys.Holder(
        "aid://localhost/backend-api@1.0.0", "backend-api", "verified", None
    )


def test_a_later_start_keeps_the_key(db: Connection, file: Path) -> None:
    register_key_file(db, settings(file), 1)
    content = file.read_bytes()
    register_key_file(db, settings(file), 2)
    assert file.read_bytes() == content
    assert len(keys.every(db)) == 1


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o440])
def test_a_given_key_is_taken(db: Connection, file: Path, mode: int) -> None:
    key = keys.new_key()
    register_key_file(db, settings(written(file, f"{key}\n", mode)), 1)
    assert keys.holder(db, keys.hash_of(key.encode()))


def test_a_revoked_key_stays_revoked(db: Connection, file: Path) -> None:
    register_key_file(db, settings(file), 1)
    keys.revoke(db, keys.every(db)[0].key_id, now=2)
    register_key_file(db, settings(file), 3)
    assert not keys.any_active(db)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o620, 0o777])
def test_a_file_that_is_open_to_others_is_refused(db: Connection, file: Path, mode: int) -> None:
    key = keys.new_key()
    with pytest.raises(ValueError, match=r"open to others.*chmod 0600") as refusal:
        register_key_file(db, settings(written(file, key, mode)), 1)
    assert key not in str(refusal.value)
    assert not keys.every(db)


@pytest.mark.parametrize("content", ["", "\n", "secret", "cacp_sk_short", "a\nb", "x" * 5_000])
def test_a_file_without_a_key_is_refused(db: Connection, file: Path, content: str) -> None:
    with pytest.raises(ValueError, match="does not contain a key") as refusal:
        register_key_file(db, settings(written(file, content)), 1)
    assert "secret" not in str(refusal.value).replace(str(file), "")


def test_what_is_no_file_is_refused(db: Connection, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can't be used: Is a directory"):
        register_key_file(db, settings(tmp_path), 1)


def test_no_setting_makes_no_key(db: Connection) -> None:
    register_key_file(db, settings(), 1)
    assert not keys.every(db)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "node.example"])
def test_a_node_that_is_reachable_from_outside_needs_a_key_to_start(host: str) -> None:
    check_exposed(settings(host=host), has_keys=True)
    with pytest.raises(ValueError, match="cacp keys create aid://localhost/backend-api"):
        check_exposed(settings(host=host), has_keys=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_node_on_loopback_needs_none(host: str) -> None:
    check_exposed(settings(host=host), has_keys=False)


def test_a_node_with_a_mesh_token_may_be_exposed() -> None:
    """Design §6: a key, a mesh token, or a bootstrap key file."""
    check_exposed(Settings(host="0.0.0.0", mesh_token=SecretStr("a" * 24)), False)
