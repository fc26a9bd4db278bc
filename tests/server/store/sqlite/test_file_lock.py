"""One node for a file, and a folder that outlasts a power loss."""

import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import pytest

from server.domain.errors import Unavailable
from server.store.sqlite.file_lock import (
    ATTEMPT_PAUSE,
    ListenAddress,
    announce,
    announced,
    is_locked,
    lock,
)
from server.store.sqlite.migrate import prepare


def test_a_file_is_claimed_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "data" / "node.db"
    held = lock(path)
    assert held is not None
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    (tmp_path / "other.db").symlink_to(path)
    for name in (path, tmp_path / "other.db"):
        with pytest.raises(Unavailable) as refused:
            lock(name)
        assert refused.value.data["reason"] == "storage_locked"
    os.close(held)
    again = lock(path)
    assert again is not None
    os.close(again)


def test_a_folder_that_is_a_file_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable) as refused:
        lock(tmp_path / "file" / "node.db")
    assert refused.value.data["reason"] == "storage_failed"


@pytest.mark.parametrize("make", [lock, prepare])
def test_the_names_of_new_folders_are_brought_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object]
) -> None:
    """SQLite syncs the folder of a database: not the one that the folder itself is named in."""
    synced: set[int] = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    made = make(tmp_path / "deep" / "data" / "node.db")
    if isinstance(made, int):
        os.close(made)
    assert synced >= {tmp_path.stat().st_ino, (tmp_path / "deep").stat().st_ino}


def test_whether_a_node_runs_on_a_file_is_seen_from_outside(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    assert not is_locked(path)
    held = lock(path)
    assert held is not None
    assert is_locked(path)
    os.close(held)
    assert not is_locked(path)
    assert lock(path) is not None, "to look takes nothing"


def test_where_a_node_listens_is_known_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    assert announced(path) is None
    held = lock(path)
    assert held is not None
    assert announced(path) is None, "it has not said yet"
    announce(held, ListenAddress("127.0.0.1", 9000))
    assert announced(path) == ("127.0.0.1", 9000)
    os.close(held)
    assert announced(path) is None, "what a node leaves behind misleads nobody"
    again = lock(path)
    assert again is not None
    assert announced(path) is None, "nor does it after the next start"
    os.close(again)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_an_address_in_a_file_that_others_can_lock_is_none(tmp_path: Path, mode: int) -> None:
    """A clone may bring such a file with the address of a stranger, and another user of the machine
    lock it: commands would send their key there."""
    path = tmp_path / "node.db"
    held = lock(path)
    assert held is not None
    announce(held, ListenAddress("stranger.example", 80))
    (tmp_path / "node.db.lock").chmod(mode)
    assert announced(path) is None
    os.close(held)
    again = lock(path)
    assert again is not None
    announce(again, ListenAddress("127.0.0.1", 9000))
    assert announced(path) == ("127.0.0.1", 9000), "a node closes the file"
    os.close(again)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": "h"}', '{"host": "h", "port": "x"}'])
def test_what_is_no_address_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "node.db"
    held = lock(path)
    assert held is not None
    (tmp_path / "node.db.lock").write_text(text)
    assert announced(path) is None
    os.close(held)


def test_a_node_starts_while_others_look_whether_it_runs(tmp_path: Path) -> None:
    """Whoever looks holds the lock for an instant."""
    path = tmp_path / "node.db"
    held = lock(path)
    assert held is not None
    os.close(held)
    looking = os.open(tmp_path / "node.db.lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    looked = Timer(ATTEMPT_PAUSE, os.close, [looking])
    looked.start()
    again = lock(path)
    looked.join()
    assert again is not None
    os.close(again)
