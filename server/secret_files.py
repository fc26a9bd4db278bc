"""Secrets that a node is given as files, such as those of a container."""

from pathlib import Path
from typing import Any

from server.domain.location import check_database_url, with_password

SIZE_MAX = 4096
"""Bytes of a secret, at most."""


def read_secret(file: str | Path, variable: str) -> str:
    """The secret in a file that `variable` names, without white space around it. Raises ValueError
    with one line that names both."""
    try:
        with Path(file).open() as text:
            secret = text.read(SIZE_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise ValueError(f"{variable}: {file} can't be read: {why}") from None
    if not secret:
        raise ValueError(f"{variable}: {file} is empty")
    return secret


def database_url(url: str, password_file: str | Path | None) -> str:
    """The database's URL with the password in a file, unless the URL has one. Raises ValueError."""
    check_database_url(url)
    if not password_file:
        return url
    if not url:
        raise ValueError("CACP_DATABASE_PASSWORD_FILE needs CACP_DATABASE_URL")
    return with_password(url, read_secret(password_file, "CACP_DATABASE_PASSWORD_FILE"))


def with_secrets(values: dict[str, Any]) -> dict[str, Any]:
    """A node's settings, by name, with what is in the files that they name. Raises ValueError."""
    read: dict[str, Any] = {}
    if token_file := values.get("mesh_token_file"):
        if values.get("mesh_token"):
            raise ValueError("CACP_MESH_TOKEN and CACP_MESH_TOKEN_FILE are both given; drop one")
        read["mesh_token"] = read_secret(token_file, "CACP_MESH_TOKEN_FILE")
    if password_file := values.get("database_password_file"):
        read["database_url"] = database_url(str(values.get("database_url") or ""), password_file)
    return values | read
