"""Texts that PostgreSQL can't hold as they are. Its TEXT has no NUL, which JSON strings and so
names, notes and payloads may contain.

NUL is stored as two characters of Unicode's private use area, and the first of them is doubled:
what is read is what was written, equal texts stay equal, and a node on PostgreSQL holds the same
entities as its peers on SQLite.
"""

ESCAPE = "\ue000"
NUL = f"{ESCAPE}\ue001"


def to_stored(text: str) -> str:
    """The text as PostgreSQL can hold it."""
    if "\0" not in text and ESCAPE not in text:
        return text
    return text.replace(ESCAPE, ESCAPE * 2).replace("\0", NUL)


def from_stored(text: str) -> str:
    """The text that `to_stored` was given."""
    if ESCAPE not in text:
        return text
    parts = text.split(ESCAPE * 2)
    return ESCAPE.join(part.replace(NUL, "\0") for part in parts)
