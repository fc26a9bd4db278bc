"""A node's first key, and the refusal to be reachable from outside without any (design §6)."""

import os
import sqlite3
from pathlib import Path

from server.settings import Settings
from server.store import keys

_SIZE_MAX = 1024


def register_key_file(db: sqlite3.Connection, settings: Settings, now: int) -> None:
    """Make the bootstrap key file if it is absent, and register its key for the node's own agent.

    Call it inside a transaction, before `check_exposed`. A revoked key stays revoked. Raises
    ValueError, with one line for the operator, when the file is unusable.
    """
    path = settings.bootstrap_key_file
    if path is None:
        return
    try:
        key = _made(path) or _read(path)
    except OSError as error:
        raise ValueError(f"The bootstrap key file {path} can't be used: {error.strerror}") from None
    keys.add(db, key, agent_id=settings.agent, repo=settings.repo, now=now)


def check_exposed(settings: Settings, has_keys: bool) -> None:
    """Raise ValueError when the node would be reachable from outside but no key exists."""
    if settings.is_local or has_keys or settings.mesh_tokens:
        return
    raise ValueError(
        f"The node would be reachable at {settings.url}, but no key exists. Make one with "
        f"`cacp keys create {settings.agent} --repo {settings.repo} --db {settings.db}`, or set "
        "CACP_BOOTSTRAP_KEY_FILE to a file that the first start makes, or listen on 127.0.0.1 and "
        "leave CACP_PUBLIC_URL unset"
    )


def _made(path: Path) -> str | None:
    """A new key in a new file that only its owner may read; None when the file exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return None
    key = keys.new_key()
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return key


def _read(path: Path) -> str:
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        # A secret mounted by Kubernetes is readable by the pod's group, and must be.
        if mode & 0o027:
            raise ValueError(
                f"The bootstrap key file {path} is open to others (mode {mode & 0o777:04o}); "
                f"close it with `chmod 0600 {path}`, and replace its key if others could read it"
            )
        content = file.read(_SIZE_MAX).strip()
    if not keys.PATTERN.fullmatch(content):
        raise ValueError(
            f"The bootstrap key file {path} does not contain a key; it should be one line, "
            "cacp_sk_ and 16 to 128 letters, digits, - and _. "
            "Remove it, and the next start makes one"
        )
    return content.decode()
