"""The key of a connection: made in the node's database, or given in a file. The node knows it."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from cli.client import CallRefused, NodeClient, NodeUnreachable
from cli.connect_record import AgentConnection
from cli.key_file import place, read_key, write_private
from cli.keys import HolderOptions, MadeKey, make_key, revoke_key
from cli.node_url import location
from cli.terminal import REFUSED, UNREACHABLE, USAGE, fail

LOCAL = ("localhost", "127.0.0.1", "::1")


def node_agent(url: str) -> str:
    """The agent id of the node at a URL. Ends the command when no node answers."""
    try:
        with NodeClient(url) as node:
            return str(node.get("/health")["agentId"])
    except ValueError as error:
        fail(USAGE, str(error))
    except (NodeUnreachable, CallRefused, KeyError, TypeError) as error:
        known = str(error) if isinstance(error, NodeUnreachable) else f"{url} is not a CACP node"
        fail(UNREACHABLE, f"{known}. Nothing was changed")


def default_agent_id(node: str, repo: str) -> str:
    """The id of a repo's agent, in the domain of its node.

    >>> default_agent_id("aid://example.com/node@1.0.0", "frontend-app")
    'aid://example.com/frontend-app@1.0.0'
    """
    scheme, separator, rest = node.partition("://")
    domain = rest.partition("/")[0] if scheme == "aid" and separator else ""
    return f"aid://{domain or 'localhost'}/{repo}@1.0.0"


def is_known(url: str, key: str) -> bool:
    """Whether the node at a URL accepts a key. Ends the command when no node answers."""
    try:
        with NodeClient(url, key) as node:
            node.call("cacp/project/list", {"limit": 1})
    except NodeUnreachable as error:
        fail(UNREACHABLE, f"{error}. Nothing was changed")
    except CallRefused as error:
        # Whom it knows and refuses otherwise has a key that works: of a foreign peer, for example.
        reason = error.data.get("reason") if isinstance(error.data, dict) else None
        return reason not in ("unknown_key", "revoked_key", "malformed_key")
    return True


def usable_key(connection: AgentConnection) -> str | None:
    """The key in the connection's file, if the node accepts it."""
    try:
        key = read_key(connection.key_file)
    except ValueError as error:
        if place(connection.key_file).exists():
            fail(REFUSED, str(error))
        return None
    return key if is_known(connection.url, key) else None


def given_key(connection: AgentConnection, file: str) -> str:
    """The key in a person's file. Ends the command when it can't be used."""
    try:
        key = read_key(file)
    except ValueError as error:
        fail(USAGE, str(error))
    if not is_known(connection.url, key):
        fail(REFUSED, f"the node at {connection.url} doesn't accept the key in {file}")
    return key


def check_database(connection: AgentConnection) -> None:
    """End the command, before anything changes, when no key can be made for the connection."""
    if urlsplit(connection.url).hostname not in LOCAL:
        fail(
            USAGE,
            f"the node at {connection.url} is on another machine: there, make a key with `cacp "
            f"keys create {connection.agent_id} --repo {connection.repo}`, and give it here with "
            "--key-file",
        )
    if not _is_there(connection.db):
        fail(
            REFUSED,
            f"{connection.db} does not exist: name the database of the node at {connection.url} "
            "with --db, or give a key with --key-file",
        )


def new_key(connection: AgentConnection) -> MadeKey:
    """Make a key for the connection's agent. Ends the command, with the key revoked, when the node
    doesn't know it."""
    db = _named(str(connection.db))
    made = make_key(HolderOptions(connection.agent_id, connection.repo), db)
    if not is_known(connection.url, made.key):
        revoke_key(str(made.key_id), db)
        fail(
            REFUSED,
            f"the node at {connection.url} does not run on {connection.db}: a key that was made "
            f"there is unknown to it ({made.key_id}, revoked again). Name its database with --db",
        )
    connection.key_id = made.key_id
    return made


def keep(connection: AgentConnection, key: str) -> None:
    """Write the key to the connection's file. Raises OSError."""
    write_private(place(connection.key_file), f"{key}\n")


def revoke(connection: AgentConnection) -> str:
    """Revoke the key that was made for a connection. Returns what became of it."""
    if connection.key_id is None:
        return "The key was yours: it is not revoked, only its copy is removed."
    if not _is_there(connection.db):
        return f"{connection.key_id} can't be revoked: its database {connection.db} is gone."
    if revoke_key(connection.key_id, _named(str(connection.db))):
        return f"{connection.key_id} is revoked."
    return f"{connection.key_id} was revoked before."


def _is_there(db: str | None) -> bool:
    """Whether a connection's database can be looked for; that on a server can."""
    return db is not None and ("://" in db or Path(db).is_file())


def _named(db: str) -> str:
    """A connection's database, with the password of CACP_DATABASE_URL where it is that one: a
    connection's file has none."""
    place = location(None, os.environ)
    return db if isinstance(place, Path) or place.shown != db else str(place)
