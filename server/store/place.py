"""Where a database lies: its folder, and the process that has taken it."""

import errno
import os
import sys
from pathlib import Path

from server.domain.errors import Unavailable


def claim(path: Path) -> int | None:
    """Take `path` for this process, until it ends; make its folder, for this user alone.

    Returns the descriptor of `NAME.lock` beside it, which holds the claim while it is open; None
    where there are no such locks. The file stays: removing it would let two processes lock two
    files of one name. Raises Unavailable when another node has it, or the folder can't be used.
    """
    path = path.resolve()
    try:
        make_folder(path.parent)
        descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        closed = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        reason = "storage_read_only" if closed else "storage_failed"
        raise Unavailable("The database can't be used", reason=reason) from error
    if sys.platform == "win32":
        os.close(descriptor)
        return None
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Unavailable("Another node runs on this database", reason="storage_locked") from None
    except OSError:
        # Some network file systems have no locks.
        os.close(descriptor)
        return None
    return descriptor


def is_claimed(path: Path) -> bool:
    """Whether a node runs on `path`; False where there are no such locks."""
    if sys.platform == "win32":
        return False
    import fcntl

    path = path.resolve()
    try:
        descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def make_folder(folder: Path) -> None:
    """Make a folder, for this user alone, and those above it, so that they outlast a power loss.

    SQLite brings the names in the folder of a database to disk, and not those of the folders.
    Raises OSError.
    """
    folder = folder.absolute()
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700 if one == folder else 0o777, exist_ok=True)
        sync_folder(one.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder outlast a power loss. Raises OSError."""
    if sys.platform == "win32":
        # It has no such call: its file systems do it by themselves.
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
