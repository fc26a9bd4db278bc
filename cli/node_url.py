"""Which node the commands call, when no --url or CACP_URL names one.

Imports little: it runs at the start of every command that calls a node.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from server.domain.location import Location

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_DB = "data/cacp.db"


class NodeUrl(NamedTuple):
    """A node's URL, and where it comes from, as people read it."""

    url: str
    source: str


def node_url(variables: Mapping[str, str]) -> NodeUrl:
    """The URL of the node that the variables name, of the one that runs on this folder's database,
    or the default. Raises ValueError when CACP_PORT is not a port."""
    return chosen_url(variables, running_url)


def chosen_url(variables: Mapping[str, str], running: "Callable[[Path], str | None]") -> NodeUrl:
    """`running` gives the URL of the node that runs on a database.

    >>> chosen_url({"CACP_PORT": "9000"}, lambda db: None)
    NodeUrl(url='http://127.0.0.1:9000', source='CACP_PORT')
    """
    if variables.get("CACP_URL"):
        return NodeUrl(variables["CACP_URL"], "CACP_URL")
    port = _port(variables.get("CACP_PORT") or "0")
    if port:
        return NodeUrl(own_url(variables.get("CACP_HOST") or "127.0.0.1", port), "CACP_PORT")
    db = database(variables)
    url = running(db)
    if url is not None:
        return NodeUrl(url, f"the node that runs on {db}")
    return NodeUrl(DEFAULT_URL, "the default")


def location(named: "str | Path | None", variables: Mapping[str, str]) -> "Location":
    """The database that a command works on: the file or the URL that is named, else that of
    CACP_DATABASE_URL, else this folder's file. Raises ValueError for a URL of something else, and
    for a file with a password that can't be read."""
    from pathlib import Path

    from server.domain.location import DatabaseUrl
    from server.secret_files import database_url

    wanted = named or variables.get("CACP_DATABASE_URL")
    if not wanted:
        return database(variables)
    if isinstance(wanted, Path):
        return wanted
    if "://" not in wanted:
        return Path(wanted)
    return DatabaseUrl(database_url(wanted, variables.get("CACP_DATABASE_PASSWORD_FILE")))


def database(variables: Mapping[str, str]) -> "Path":
    """The file of this folder's node. Beside it are the node's other files, also those of a replica
    whose database is elsewhere."""
    from pathlib import Path

    return Path(variables.get("CACP_DB") or DEFAULT_DB)


def running_url(db: "Path") -> str | None:
    """The URL of the node that runs on a database; None when none does."""
    from server.store.sqlite.file_lock import announced

    address = announced(db)
    return None if address is None else own_url(*address)


def own_url(host: str, port: int) -> str:
    """The URL at which this machine reaches a node that listens on `host`."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _port(text: str) -> int:
    """0 stands for a port that the node chooses itself."""
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 65536):
        raise ValueError(f"CACP_PORT should be a port from 0 to 65535, not {text}")
    return int(text)
