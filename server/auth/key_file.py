"""A file that holds one key, readable by its owner only."""

import errno
import os
import sys
from pathlib import Path

from server.store import keys
from server.store.sqlite.file_lock import sync_folder

_SIZE_MAX = 1024
PRIVATE = 0o077
"""The permission bits that a private file may not have."""


class UnusableKeyFile(ValueError):
    """A key file that can't be used; its message is one line for the operator."""


def make(path: Path, key: str, *, owner_like: Path | None = None) -> bool:
    """Write a key to a new file, and the folders above. Written by root, it belongs to the owner of
    `owner_like`, if given. False when the file exists. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "w") as file:
            if owner_like is not None and sys.platform != "win32" and os.geteuid() == 0:
                owner = owner_like.stat()
                # By the descriptor: whoever owns the folder may put a link in the file's place.
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return True


def replace(path: Path, key: str, *, owner_like: Path) -> None:
    """Write a key to a file, in one step that also replaces the file that was there. Written by
    root, it belongs to the owner of `owner_like`. Raises OSError."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    if not make(part, key, owner_like=owner_like):
        raise FileExistsError(errno.EEXIST, "another program writes it", str(part))
    part.replace(path)
    sync_folder(path.parent)


def read(path: Path, title: str, *, closed_to: int, owner_like: Path | None = None) -> str:
    """The key in a file. `title` names the file in a refusal. `closed_to`: permission bits that it
    may not have. With `owner_like` it must belong to this user, to root or to the owner of that
    file. Raises UnusableKeyFile, also for a file that can't be read."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            content = file.read(_SIZE_MAX).strip()
            owners = {0} if owner_like is None else {0, owner_like.stat().st_uid}
    except OSError as error:
        raise UnusableKeyFile(f"{title} {path} can't be used: {error.strerror}") from None
    # Windows has no such modes and owners.
    if sys.platform != "win32":
        if state.st_mode & closed_to:
            raise UnusableKeyFile(
                f"{title} {path} is open to others (mode {state.st_mode & 0o777:04o}); "
                f"close it with `chmod 0600 {path}`, and replace its key if others could read it"
            )
        if owner_like is not None and state.st_uid not in owners | {os.geteuid()}:
            raise UnusableKeyFile(
                f"{title} {path} belongs to another user (uid {state.st_uid}), who can read and "
                "replace it; it should belong to the owner of the database. Remove it"
            )
    if not keys.PATTERN.fullmatch(content):
        raise UnusableKeyFile(
            f"{title} {path} does not contain a key; it should be one line, "
            "cacp_sk_ and 16 to 128 letters, digits, - and _. "
            "Remove it, and the next start makes one"
        )
    return content.decode()
