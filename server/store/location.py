"""Where a node's database is: an SQLite file, or a database on a PostgreSQL server."""

from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

DATABASE_SCHEMES = ("postgresql", "postgres")
_SECRET = {"password", "sslpassword", "passfile", "sslkey"}


class DatabaseUrl(str):
    """The URL of a database on a PostgreSQL server. Its password is not shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"DatabaseUrl({self.shown!r})"

    @property
    def shown(self) -> str:
        """The URL without what is secret in it."""
        parts = urlsplit(str(self))
        user, at, place = parts.netloc.rpartition("@")
        kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in _SECRET]
        netloc = f"{user.partition(':')[0]}{at}{place}"
        return urlunsplit(parts._replace(netloc=netloc, query=urlencode(kept)))


Location = Path | DatabaseUrl
"""A node's file, or the URL of its database."""
