"""A file that holds one key, on a real file system."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from server.auth import key_file
from server.auth.key_file import UnusableKeyFile
from server.store import keys

KEY = keys.new_key()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "secrets" / "first.key"


def read(file: Path, owner_like: Path | None = None) -> str:
    return key_file.read(file, "The file", closed_to=key_file.PRIVATE, owner_like=owner_like)


def test_what_was_written_is_read(file: Path) -> None:
    assert key_file.make(file, KEY)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read(file) == KEY


def test_a_file_that_is_there_stays(file: Path) -> None:
    key_file.make(file, KEY)
    assert not key_file.make(file, keys.new_key())
    assert read(file) == KEY


def test_a_replacement_leaves_nothing_of_the_old_file(file: Path, tmp_path: Path) -> None:
    """Neither its key nor its mode, nor what an interrupted replacement had left."""
    key_file.make(file, KEY)
    file.chmod(0o644)
    file.with_name("first.key.part").write_text("half a key")
    other = keys.new_key()
    key_file.replace(file, other, owner_like=tmp_path)
    assert read(file, tmp_path) == other
    assert [path.name for path in file.parent.iterdir()] == ["first.key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o644, 0o777])
def test_a_file_that_is_open_to_others_is_refused(file: Path, mode: int) -> None:
    key_file.make(file, KEY)
    file.chmod(mode)
    with pytest.raises(UnusableKeyFile, match=rf"mode {mode:04o}.*chmod 0600") as refusal:
        read(file)
    assert KEY not in str(refusal.value)


@pytest.mark.needs("root")
def test_a_file_of_another_user_is_refused(file: Path, tmp_path: Path) -> None:
    key_file.make(file, KEY)
    os.chown(file, 4_242, -1)
    with pytest.raises(UnusableKeyFile, match=r"another user \(uid 4242\)"):
        read(file, tmp_path)
    own = tmp_path / "cacp.db"
    own.touch()
    os.chown(own, 4_242, -1)
    assert read(file, own) == KEY, "root reads the file of the node's user"


@pytest.mark.needs("root")
def test_what_root_replaces_belongs_to_the_nodes_user(file: Path, tmp_path: Path) -> None:
    own = tmp_path / "cacp.db"
    own.touch()
    os.chown(own, 4_242, 4_243)
    key_file.replace(file, KEY, owner_like=own)
    assert (file.stat().st_uid, file.stat().st_gid) == (4_242, 4_243)


@pytest.mark.needs("root")
def test_root_gives_away_no_file_that_the_nodes_user_puts_in_its_place(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is the node's user's, who can swap the new file for a link at any moment."""
    own, roots = tmp_path / "cacp.db", tmp_path / "shadow"
    own.touch()
    os.chown(own, 4_242, 4_243)
    roots.write_text("of root")
    part = file.with_name("first.key.part")

    def swapped(folder: Path) -> None:
        part.unlink()
        part.symlink_to(roots)

    monkeypatch.setattr(key_file, "sync_folder", swapped_once(swapped))
    key_file.replace(file, KEY, owner_like=own)
    assert (roots.stat().st_uid, roots.stat().st_gid) == (0, 0)


def swapped_once(swap: Callable[[Path], None]) -> Callable[[Path], None]:
    """`swap` at the first call, nothing later."""
    calls = iter([swap])
    return lambda folder: next(calls, lambda folder: None)(folder)


def test_a_file_that_another_program_writes_is_not_taken(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the removal of an old part and the new one."""
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: None)
    key_file.make(file.with_name("first.key.part"), keys.new_key())
    with pytest.raises(FileExistsError):
        key_file.replace(file, KEY, owner_like=tmp_path)
    assert not file.exists()


def test_what_is_no_key_or_no_file_is_refused(file: Path, tmp_path: Path) -> None:
    key_file.make(file, "nothing")
    with pytest.raises(UnusableKeyFile, match="does not contain a key"):
        read(file)
    with pytest.raises(UnusableKeyFile, match="Is a directory"):
        read(tmp_path)
    with pytest.raises(UnusableKeyFile, match="No such file"):
        read(tmp_path / "none")
