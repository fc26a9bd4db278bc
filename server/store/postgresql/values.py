"""Parameters of statements, as they are sent."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from server.store.postgresql.text import to_stored


class Values(NamedTuple):
    """Encoded parameters, and which of them are binary (1) when any is."""

    encoded: list[bytes | None]
    formats: list[int] | None


def encoded(values: Iterable[Any]) -> Values:
    """The parameters of a statement. Raises TypeError for a value of another kind than SQLite
    takes."""
    texts: list[bytes | None] = []
    binary: list[int] = []
    for value in values:
        kind = value.__class__
        if kind is str:
            texts.append(to_stored(value).encode())
        elif kind is int:
            texts.append(b"%d" % value)
        elif value is None:
            texts.append(None)
        elif kind is bytes:
            binary.append(len(texts))
            texts.append(value)
        else:
            texts.append(_other(value))
    if not binary:
        return Values(texts, None)
    formats = [0] * len(texts)
    for at in binary:
        formats[at] = 1
    return Values(texts, formats)


def _other(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"1" if value else b"0"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        return repr(value).encode()
    if isinstance(value, str):
        return to_stored(value).encode()
    raise TypeError(f"a parameter can't be a {type(value).__name__}")
