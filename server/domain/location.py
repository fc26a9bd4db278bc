"""Where a node's database is: an SQLite file, or a database on a PostgreSQL server."""

from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

_SCHEMES = ("postgresql", "postgres")
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
        query = f"?{urlencode(kept)}" if kept else ""
        return f"{parts.scheme}://{netloc}{parts.path}{query}"


Location = Path | DatabaseUrl
"""A node's file, or the URL of its database."""


def location_of(url: str, path: Path) -> Location:
    """The database at a URL, or the file when there is none."""
    return DatabaseUrl(url) if url else path


def with_password(url: str, password: str) -> str:
    """The URL with a password, unless it has one."""
    parts = urlsplit(url)
    if parts.password is not None or "password" in dict(parse_qsl(parts.query)):
        return url
    return f"{url}{'&' if parts.query else '?'}password={quote(password, safe='')}"


def check_database_url(url: str) -> None:
    """Raises ValueError for what is neither empty nor the URL of a PostgreSQL database."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _SCHEMES and (parts.netloc or parts.path)
    except ValueError:
        usable = False
    if url and not usable:
        raise ValueError("should be a URL such as postgresql://user@host:5432/cacp")


def file_path(path: Path) -> Path:
    """The path of a node's file. Raises ValueError for a URL in its place."""
    if path.parts and path.parts[0].endswith(":") and len(path.parts[0]) > 2:
        raise ValueError("should be a file; --database (CACP_DATABASE_URL) takes a PostgreSQL URL")
    return path
