"""The operator's key: the credential for a node's administration, in a file beside its database
(design §7).

Whoever may write the database is its operator: `cacp serve` and `cacp keys` make the file again
when it is lost. The database keeps only the key's hash, so that a copy of it gives no power over
the node. The file decides: after a restore of an older database its key is valid again, and none
that was replaced before.
"""

from pathlib import Path
from typing import Literal

from server.auth import key_file
from server.auth.key_file import UnusableKeyFile
from server.store import keys
from server.store.connection import Connection

Outcome = Literal["kept", "made", "taken"]
"""What happened to the file: nothing; it was made; its key, unknown before, is valid now."""

TITLE = "The operator key file"


def path_beside(database: Path) -> Path:
    """The operator key file of a database."""
    database = database.resolve()
    return database.with_name(f"{database.name}.operator-key")


def ensure(db: Connection, database: Path) -> Outcome:
    """Make the file of `database` if it is absent, and its key the operator's. `db` is in a write
    transaction. Raises UnusableKeyFile."""
    path = path_beside(database)
    if not path.exists():
        replace(db, database)
        return "made"
    key = read(database)
    if keys.is_operators(db, keys.hash_of(key.encode())):
        return "kept"
    keys.put_operator(db, key)
    return "taken"


def replace(db: Connection, database: Path) -> None:
    """Make a new key the operator's; the one before ends. `db` is in a write transaction. Raises
    UnusableKeyFile."""
    path, key = path_beside(database), keys.new_operator_key()
    try:
        key_file.replace(path, key, owner_like=_owned_like(database))
    except OSError as error:
        raise UnusableKeyFile(f"{TITLE} {path} can't be written: {error.strerror}") from None
    # Where the file system keeps no modes the file is open to others, and its key not accepted.
    read(database)
    keys.put_operator(db, key)


def read(database: Path) -> str:
    """The key in the file of `database`. Raises UnusableKeyFile."""
    path = path_beside(database)
    key = key_file.read(path, TITLE, closed_to=key_file.PRIVATE, owner_like=_owned_like(database))
    if not key.startswith(keys.OPERATOR_PREFIX):
        raise UnusableKeyFile(
            f"{TITLE} {path} holds another key than an operator's, which begins with "
            f"{keys.OPERATOR_PREFIX}; `cacp keys operator --rotate` replaces it"
        )
    return key


def _owned_like(database: Path) -> Path:
    """What belongs to the owner of the database: its file, or its folder where replicas have it
    elsewhere."""
    return database if database.exists() else database.resolve().parent
