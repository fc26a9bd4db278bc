"""Durable files and the run lock."""

import os
from pathlib import Path

import pytest

from threader.errors import RunLocked
from threader.files import (
    RunLock,
    is_newer,
    remove_tree,
    sole_user,
    sync_folder,
    tail,
    write_atomic,
)


def test_write_atomic_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_atomic(path, b"one")
    write_atomic(path, b"x" * 3_000_000)
    sync_folder(tmp_path)
    assert path.stat().st_size == 3_000_000
    assert list(tmp_path.iterdir()) == [path]


def test_tail(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"a" * 100 + b"\xffend")
    assert tail(tmp_path / "log", 4) == "�end"
    assert tail(tmp_path / "none") == ""


def test_the_lock_names_its_holder_and_can_be_taken_again(tmp_path: Path) -> None:
    first, second = RunLock(tmp_path / "lock"), RunLock(tmp_path / "lock")
    first.acquire()
    with pytest.raises(RunLocked, match=str(os.getpid())):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
    second.release()


def test_a_folder_has_one_user(tmp_path: Path) -> None:
    with sole_user(tmp_path), pytest.raises(RunLocked), sole_user(tmp_path):
        pass
    with sole_user(tmp_path):
        pass


def test_a_tree_deeper_than_the_stack_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    remove_tree(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_held_lock_may_be_held_again_and_goes_with_the_first(tmp_path: Path) -> None:
    lock, other = RunLock(tmp_path / "lock"), RunLock(tmp_path / "lock")
    with lock.held():
        with lock.held():
            pass
        with pytest.raises(RunLocked), other.held():
            pass
    with other.held():
        pass


def test_looking_at_a_lock_does_not_take_it(tmp_path: Path) -> None:
    lock, watcher = RunLock(tmp_path / "lock"), RunLock(tmp_path / "lock")
    assert watcher.holder() is None
    with lock.held():
        assert watcher.holder() == str(os.getpid())
    assert watcher.holder() is None
    lock.acquire()
    lock.release()


def test_what_is_newer(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    assert not is_newer(new, old)
    new.touch()
    os.utime(old, ns=(1, 1))
    assert is_newer(new, old)
    assert not is_newer(old, new)
