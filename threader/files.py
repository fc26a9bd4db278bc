"""Durable files: atomic replacement, and locks that end with the process that holds them."""

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threader.errors import RunLocked


def write_atomic(path: Path, data: bytes) -> None:
    """Replace `path` by `data` so that a reader sees all of the old or all of the new (§10)."""
    temporary = path.with_name(f".{path.name}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fdatasync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)


def sync_folder(path: Path) -> None:
    """Make renames and removals in `path` survive a power loss."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def tail(path: Path, limit: int = 64 * 1024) -> str:
    """The last `limit` bytes of a text file; invalid UTF-8 is shown as replacement characters."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - limit))
            return file.read(limit).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def is_newer(path: Path, other: Path) -> bool:
    """Whether `path` exists and was last written no earlier than `other`."""
    try:
        return path.stat().st_mtime_ns >= other.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def remove_tree(folder: Path) -> None:
    """Remove `folder`, however deeply nested; what cannot be removed stays."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # before Python 3.13
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False, stderr=subprocess.DEVNULL)


def _lock(fd: int) -> None:
    """Raises BlockingIOError when another process holds the lock for more than a moment."""
    for _ in range(10):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


class RunLock:
    """Held while a process runs a manifest; the kernel drops it when the process dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self) -> None:
        """Raises RunLocked when another process holds it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock(fd)
        except BlockingIOError:
            holder = os.read(fd, 32).decode("ascii", "replace").strip()
            os.close(fd)
            raise RunLocked(f"process {holder or '(unknown)'} is running this manifest") from None
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        self._fd = fd

    def holder(self) -> str | None:
        """The id of the process that holds the lock, as it wrote it; None when none does."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(fd, 32).decode("ascii", "replace").strip() or "(unknown)"
        finally:
            os.close(fd)
        return None

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock during the body, if it is not held already. Raises RunLocked."""
        if self._fd is not None:
            yield
            return
        self.acquire()
        try:
            yield
        finally:
            self.release()


@contextmanager
def sole_user(folder: Path) -> Iterator[None]:
    """Keep runs of any other manifest out of `folder`. Raises RunLocked."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunLocked("another run works in this workspace; wait until it ends") from None
        yield
    finally:
        os.close(fd)
