"""The location of a database: its folder, and the lock of the process that uses it."""

import errno
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from server.domain.errors import Unavailable

ATTEMPTS = 5
ATTEMPT_PAUSE = 0.02
"""Seconds between attempts: whoever asks whether a node runs holds the lock for an instant."""
ADDRESS_MAX = 1000
OTHERS = 0o077
"""The permission bits of other users."""


class ListenAddress(NamedTuple):
    """Where a node listens, as its settings name it."""

    host: str
    port: int


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

    for attempt in range(ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if attempt < ATTEMPTS - 1:
                time.sleep(ATTEMPT_PAUSE)
        except OSError:
            # Some network file systems have no locks.
            os.close(descriptor)
            return None
    else:
        os.close(descriptor)
        raise Unavailable("Another node runs on this database", reason="storage_locked")
    # A copied file may be open to others, and what it holds is the address of an earlier node.
    with suppress(OSError):
        os.fchmod(descriptor, 0o600)
    os.ftruncate(descriptor, 0)
    return descriptor


def announce(descriptor: int, address: ListenAddress) -> None:
    """Write where the node listens into the file that `lock` returned."""
    with suppress(OSError):
        os.pwrite(descriptor, json.dumps(address._asdict()).encode(), 0)


def announced(path: Path) -> ListenAddress | None:
    """Where the node that runs on `path` listens; None when none runs, or it has not said.

    An address counts only while its writer holds the lock, and only in a file of this user or of
    root that nobody else can open, and so lock: commands send their key there. A file that came
    with a cloned repository is open to others.
    """
    path = path.resolve()
    try:
        with path.with_name(f"{path.name}.lock").open("rb") as file:
            state, text = os.fstat(file.fileno()), file.read(ADDRESS_MAX)
        if sys.platform != "win32" and (
            state.st_uid not in (0, os.geteuid()) or state.st_mode & OTHERS
        ):
            return None
        written = json.loads(text)
        address = ListenAddress(str(written["host"]), int(written["port"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return address if is_locked(path) else None


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
