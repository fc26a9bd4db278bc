"""The location of a database: its folder, and the lock of the process that uses it."""

import errno
import os
import sys
from pathlib import Path

from server.domain.errors import Unavailable


def lock(path: Path) -> int | None:
    """Lock `path` for this process until it ends, and create its folder for this user only.

    Returns the descriptor of `NAME.lock` beside it, which holds the lock while it is open; None
    where the system has no such locks. The file is never deleted, because then two processes could
    lock two files of the same name. Raises Unavailable when another node holds the lock or the
    folder can't be used.
    """
    path = path.resolve()
    try:
        make_folder(path.parent)
        descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        closed = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        reason = "storage_read_only" if closed else "storage_failed"
        raise Unavailable(
            f"The database cannot be opened: {error.strerror}", reason=reason
        ) from error
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


def is_locked(path: Path) -> bool:
    """Whether a node runs on `path`; False where the system has no such locks."""
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
    """Create a folder for this user only, and its missing parents, so that they survive a power
    loss.

    SQLite syncs the folder of a database but not the folders above. Raises OSError.
    """
    folder = folder.absolute()
    missing = [ancestor for ancestor in (folder, *folder.parents) if not ancestor.exists()]
    for ancestor in reversed(missing):
        ancestor.mkdir(mode=0o700 if ancestor == folder else 0o777, exist_ok=True)
        sync_folder(ancestor.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that its entries survive a power loss. Raises OSError."""
    if sys.platform == "win32":
        # Windows has no such call; its file systems do it by themselves.
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
