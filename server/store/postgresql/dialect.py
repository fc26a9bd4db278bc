"""The dialect that SQLite and PostgreSQL share, made PostgreSQL's own: parameters are numbered.

All else that differs is avoided in the SQL itself, or stands beside it as a statement of its own
(`server.store.sql`).
"""

import re
from typing import NamedTuple

_TOKENS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|::|:(?P<name>[A-Za-z_]\w*)|(?P<mark>\?)""",
    re.DOTALL,
)
"""What may hold something like a parameter, and parameters."""
_INDEXED = re.compile(r"\bINDEXED\s+BY\s+\w+\s*", re.IGNORECASE)


class Statement(NamedTuple):
    """A statement in PostgreSQL's dialect."""

    text: str
    names: tuple[str, ...] | None
    """The names of `$1`, `$2`, …; None when the parameters are positional."""


def translate(text: str) -> Statement:
    """Number the parameters: each `:name` has one number wherever it stands, each `?` its own.

    Raises ValueError when a text has both.
    """
    names: list[str] = []
    marks = 0

    def numbered(token: re.Match[str]) -> str:
        nonlocal marks
        if (name := token["name"]) is not None:
            if name not in names:
                names.append(name)
            return f"${names.index(name) + 1}"
        if token["mark"] is not None:
            marks += 1
            return f"${marks}"
        return token[0]

    numbered_text = _TOKENS.sub(numbered, _INDEXED.sub("", text))
    if names and marks:
        raise ValueError(f"parameters with and without names in: {text}")
    return Statement(numbered_text, None if marks else tuple(names))
