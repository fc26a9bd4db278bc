"""Replicas are one node, so they must agree on who it is: its agent, its repo and its URL."""

import orjson

from server.store import changes
from server.store.connection import Connection
from server.store.sql import SQL

_NAME = "node"


def agree(db: Connection, own: dict[str, str]) -> None:
    """In a transaction that writes: note who this replica says that the node is, by the names of
    settings. Raises ValueError when replicas that run say something else; without them, the
    settings of the node have changed."""
    stored = SQL.meta_value(db, name=_NAME)
    known: dict[str, str] = orjson.loads(stored) if stored is not None else {}
    if known == own:
        return
    differing = {name: value for name, value in own.items() if known.get(name, value) != value}
    if differing and db.execute(_RUN).fetchone()[0]:
        name, value = next(iter(differing.items()))
        raise ValueError(
            f"Replicas of another node run on this database: their {name} is {known[name]}, and "
            f"here it is {value}. Replicas are one node: give them all the same, or stop the others"
        )
    changes.put_meta(db, _NAME, orjson.dumps(own).decode())


# As long as the lease of the background duty: a replica that was heard of since may run still.
_RUN = "SELECT count(*) FROM replicas WHERE seen_at > clock_timestamp() - interval '10 seconds'"
