"""A node's first key, and the refusal to be reachable from outside without any (design §6)."""

from server.auth import key_file
from server.settings import Settings
from server.store import keys
from server.store.connection import Connection

# A secret mounted by Kubernetes is readable by the pod's group, and must be.
_CLOSED_TO = 0o027


def register_key_file(db: Connection, settings: Settings, now: int) -> None:
    """Make the bootstrap key file if it is absent, and register its key for the node's own agent.

    Call it inside a transaction, before `check_exposed`. A revoked key stays revoked. Raises
    ValueError, with one line for the operator, when the file is unusable.
    """
    path = settings.bootstrap_key_file
    if path is None:
        return
    title = "The bootstrap key file"
    try:
        key_file.make(path, keys.new_key())
    except OSError as error:
        raise ValueError(f"{title} {path} can't be used: {error.strerror}") from None
    key = key_file.read(path, title, closed_to=_CLOSED_TO)
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
