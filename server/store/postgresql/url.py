"""The URL of a PostgreSQL database, as people are shown it."""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

SCHEMES = ("postgresql", "postgres")
_SECRET = {"password", "sslpassword", "passfile", "sslkey"}


def without_password(url: str) -> str:
    """The URL without what is secret in it."""
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in _SECRET]
    netloc = f"{user.partition(':')[0]}{at}{place}"
    return urlunsplit(parts._replace(netloc=netloc, query=urlencode(kept)))
