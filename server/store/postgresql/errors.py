"""What PostgreSQL's errors mean to a caller (its documentation, appendix A)."""

import psycopg

from server.domain.errors import Unavailable


class ServerSilent(psycopg.OperationalError):
    """The server did not answer in time; the connection is given up."""

    sqlstate = "57014"


class NodeMoved(psycopg.OperationalError):
    """The node was moved to another database while this replica did not run."""

    sqlstate = "MOVED"


class NotReplicated(psycopg.OperationalError):
    """A commit took place on this server only, though it was to be on a standby as well."""


WORDS = {
    "storage_full": "The database server's disk is full",
    "storage_read_only": "The database server takes no writes: it is read-only or a standby",
    "storage_crowded": "The database server has no connection left; retry in a few seconds",
    "storage_locked": "Another replica has been writing for too long; retry in a few seconds",
    "storage_slow": "The database server did not answer in time; retry in a few seconds",
    "storage_corrupt": "The database server reports damaged data; see its log",
    "storage_away": "The database server can't be reached; retry in a few seconds",
    "storage_moved": "The node was moved to another database: stop this replica",
    "storage_failed": "The database server refused a statement; see the node's log",
}
"""What a caller is told, by reason."""

_STATES = {
    "53100": "storage_full",
    "25006": "storage_read_only",
    "53300": "storage_crowded",
    "55P03": "storage_locked",
    "40P01": "storage_locked",
    "40001": "storage_locked",
    "57014": "storage_slow",
    "25P03": "storage_slow",
    "MOVED": "storage_moved",
    "XX001": "storage_corrupt",
    "XX002": "storage_corrupt",
}
_REFUSED = (
    ("too many clients", "storage_crowded"),
    ("too many connections", "storage_crowded"),
    ("connection slots are reserved", "storage_crowded"),
    ("no more connections allowed", "storage_crowded"),
    ("session is read-only", "storage_read_only"),
)
"""What a server, a pooler or libpq itself says of a connection that is refused, and the reason."""
_CLASSES = {"08": "storage_away", "57": "storage_away", "53": "storage_crowded"}


def reason_of(error: Exception) -> str:
    """The reason, for programs, of a driver's error."""
    state = getattr(error, "sqlstate", None) or ""
    if not state and isinstance(error, psycopg.OperationalError):
        # libpq gives no state of what kept it from connecting, only its words.
        message = str(error)
        return next((why for words, why in _REFUSED if words in message), "storage_away")
    return _STATES.get(state) or _CLASSES.get(state[:2]) or "storage_failed"


def unavailable(error: Exception) -> Unavailable:
    """The refusal for a driver's error, with a reason for programs."""
    reason = reason_of(error)
    if reason == "storage_failed":
        # It holds no values of parameters, and the caller is not told more than that it failed.
        # Slow to import, and seldom needed: commands ask databases too.
        import structlog

        message = next(iter(str(error).splitlines()), type(error).__name__)
        log = structlog.get_logger()
        log.error("database_refused", state=getattr(error, "sqlstate", None), error=message)
    return Unavailable(WORDS[reason], reason=reason)
