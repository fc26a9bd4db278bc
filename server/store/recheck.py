"""Is what is stored what was written? Row by row, for what SQLite's own check can't see.

The digests were counted when a row was new. Signatures prove nothing here: a node that has a new
key is not to blame for what it signed with the one before.
"""

import hashlib
import sqlite3
from typing import NamedTuple

import orjson

from peers import digest
from peers.digest import Name
from server.domain.canonical import digest as content_digest
from server.domain.errors import Refusal
from server.store import contracts, digests
from server.store.alarms import Alarm
from server.store.sql import SQL

FIRST = Name("", "", "")
"""Before every entity."""
WRITTEN_WHOLE = frozenset({"context", "file", "file_request"})
"""What is one row, which a write replaces: of the others it leaves parts as they are."""


class CheckedEntity(NamedTuple):
    """The content of a file, by its place in the table."""

    place: int
    project_id: str
    file_id: str
    sha256: str


def next_content(db: sqlite3.Connection, after: int) -> tuple[CheckedEntity, bool] | None:
    """The content that follows the one at a place, and whether it is what its SHA-256 says."""
    row = SQL.content_after(db, after=after)
    if row is None:
        return None
    found = CheckedEntity(*row[:4])
    return found, hashlib.sha256(row[4]).hexdigest() == found.sha256


def damaged_contents(db: sqlite3.Connection) -> list[CheckedEntity]:
    """Every content of a file that is not what its SHA-256 says. Reads all of them."""
    wrong: list[CheckedEntity] = []
    place = 0
    while (found := next_content(db, place)) is not None:
        kept, is_right = found
        place = kept.place
        if not is_right:
            wrong.append(kept)
    return wrong


class Wrong(NamedTuple):
    """An entity that is not what was written, and how that shows: the digest of what was written,
    and that of what is stored."""

    name: Name
    how: str
    sound: str
    damaged: str

    @property
    def about(self) -> str:
        """What an alarm for it is about."""
        return about(self.name)


def about(name: Name) -> str:
    return f"{name.entity} {name.project_id}/{name.entity_id}"


def entities(
    db: sqlite3.Connection, after: Name, limit: int
) -> tuple[list[Name], list[Wrong]] | None:
    """The entities that follow one, and those of them that are not what was written.

    None while changes are yet to be counted: then a difference says nothing.
    """
    if digests.is_behind(db):
        return None
    rows = SQL.digests_after(db, **after._asdict(), limit=limit)
    seen: list[Name] = []
    wrong: list[Wrong] = []
    for *at, held in rows:
        name = Name(*at)
        seen.append(name)
        found = _wrong(db, name, held)
        if found is not None:
            wrong.append(found)
    return seen, wrong


def one_wrong(db: sqlite3.Connection, name: Name) -> Wrong | None:
    """An entity, if it is not what was written; None also while changes are yet to be counted."""
    if digests.is_behind(db):
        return None
    return _wrong(db, name, digests.held_of(db, name))


def is_mended(db: sqlite3.Connection, name: Name, alarm: Alarm) -> bool:
    """Whether a damaged entity is what was written again, or was replaced whole.

    A write that only adds to it has its damage counted, so that the digest is no longer evidence.
    """
    if one_wrong(db, name) is not None:
        return False
    now = digests.leaf_of(db, name)
    if now == alarm.sound or alarm.sound == alarm.damaged:
        return True
    return name.entity in WRITTEN_WHOLE and now != alarm.damaged


def every_wrong(db: sqlite3.Connection) -> list[Wrong]:
    """All that is not what was written. Reads every row."""
    wrong: list[Wrong] = []
    after = FIRST
    while found := entities(db, after, 500):
        seen, more = found
        wrong += more
        if not seen:
            break
        after = seen[-1]
    return wrong


def sums_are_right(db: sqlite3.Connection) -> bool:
    """Whether the sums that nodes compare are those of the digests they are made of."""
    expected: dict[str, str] = {}
    for place, one in SQL.every_digest(db):
        for prefix in digest.prefixes_of(place):
            expected[prefix] = digest.xor(expected.get(prefix, digest.NOTHING), one)
    return not digest.differing(expected, dict(SQL.every_sum(db)))


def _wrong(db: sqlite3.Connection, name: Name, held: str) -> Wrong | None:
    stored = digests.leaf_of(db, name)
    if stored != held:
        return Wrong(name, "it is not what its digest was counted of", held, stored)
    facts = contracts.signed_facts(db, name.entity_id) if name.entity == "contract" else []
    if not all(_is_right(body) for body, _ in facts):
        return Wrong(name, "a version in it is not what its digest says", held, stored)
    return None


def _is_right(text: str) -> bool:
    """Whether a fact is whole, and a version's content what the agreement to it is bound to."""
    try:
        fact = orjson.loads(text)
        is_version = fact["kind"] == "version"
        return not is_version or bool(content_digest(fact["content"]) == fact["digest"])
    except Refusal:
        # An earlier release took what no node would sign: it has no digest to be compared with.
        return True
    except (ValueError, KeyError, TypeError):
        return False
