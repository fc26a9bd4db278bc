"""Checks, row by row, that stored data is what was written, which SQLite's own check can't see.

The digests were counted when a row was new. Signatures are not checked here, because a node may
have signed with a former key.
"""

import hashlib
from typing import NamedTuple

import orjson

from peers import digest
from peers.digest import Name
from server.domain.canonical import digest as content_digest
from server.domain.errors import Refusal
from server.store import contracts, digests
from server.store.alarms import Alarm
from server.store.connection import Connection
from server.store.sql import SQL

FIRST = Name("", "", "")
"""Sorts before every entity."""
WRITTEN_WHOLE = frozenset({"context", "file", "file_request"})
"""Entities of one row, which a write replaces. Writes to others leave some of their rows
unchanged."""


class StoredContent(NamedTuple):
    """A stored file content."""

    project_id: str
    file_id: str
    sha256: str


FIRST_CONTENT = StoredContent("", "", "")
"""Sorts before every content."""


def next_content(db: Connection, after: StoredContent) -> tuple[StoredContent, bool] | None:
    """The content after one, and whether it matches its SHA-256; None when there is none."""
    row = SQL.content_after(db, **after._asdict())
    if row is None:
        return None
    entity = StoredContent(*row[:3])
    return entity, hashlib.sha256(row[3]).hexdigest() == entity.sha256


def damaged_contents(db: Connection) -> list[StoredContent]:
    """Every stored content that does not match its SHA-256. Reads all of them."""
    wrong: list[StoredContent] = []
    kept = FIRST_CONTENT
    while (following := next_content(db, kept)) is not None:
        kept, is_right = following
        if not is_right:
            wrong.append(kept)
    return wrong


class DamagedEntity(NamedTuple):
    """A damaged entity: how the damage shows, the digest of what was written (`sound`), and that of
    what is stored (`damaged`)."""

    name: Name
    how: str
    sound: str
    damaged: str

    @property
    def about(self) -> str:
        """The `about` of an alarm for the entity."""
        return about(self.name)


def about(name: Name) -> str:
    return f"{name.entity} {name.project_id}/{name.entity_id}"


def entities(
    db: Connection, after: Name, limit: int
) -> tuple[list[Name], list[DamagedEntity]] | None:
    """The entities after one, and the damaged ones among them.

    None while there are uncounted changes, as a difference then proves nothing.
    """
    if digests.is_behind(db):
        return None
    rows = SQL.digests_after(db, **after._asdict(), limit=limit)
    seen: list[Name] = []
    wrong: list[DamagedEntity] = []
    for *at, held in rows:
        name = Name(*at)
        seen.append(name)
        damage = _damage(db, name, held)
        if damage is not None:
            wrong.append(damage)
    return seen, wrong


def damage_of(db: Connection, name: Name) -> DamagedEntity | None:
    """The damage of an entity; None when it is sound, or while there are uncounted changes."""
    if digests.is_behind(db):
        return None
    return _damage(db, name, digests.held_of(db, name))


def is_mended(db: Connection, name: Name, alarm: Alarm) -> bool:
    """Whether a damaged entity is restored or was replaced as a whole.

    A write that only adds to it counts the damage into the digest, which then proves nothing.
    """
    if damage_of(db, name) is not None:
        return False
    now = digests.leaf_of(db, name)
    if now == alarm.sound or alarm.sound == alarm.damaged:
        return True
    return name.entity in WRITTEN_WHOLE and now != alarm.damaged


def damaged_entities(db: Connection) -> list[DamagedEntity]:
    """All damaged entities. Reads every row."""
    wrong: list[DamagedEntity] = []
    after = FIRST
    while page := entities(db, after, 500):
        seen, more = page
        wrong += more
        if not seen:
            break
        after = seen[-1]
    return wrong


def sums_are_right(db: Connection) -> bool:
    """Whether the sums that nodes compare match the digests that they are made of."""
    expected: dict[str, str] = {}
    for place, leaf in SQL.every_digest(db):
        for prefix in digest.prefixes_of(place):
            expected[prefix] = digest.xor(expected.get(prefix, digest.NOTHING), leaf)
    return not digest.differing(expected, dict(SQL.every_sum(db)))


def damage(db: Connection) -> str | None:
    """What content is damaged, in a few words; None when all is sound. Reads every row."""
    contents = len(damaged_contents(db))
    signed = len(damaged_entities(db))
    if contents or signed:
        return f"{contents} contents of files and {signed} entities are damaged"
    if not digests.is_behind(db) and not sums_are_right(db):
        return "the sums that nodes compare don't match the digests of the entities"
    return None


def _damage(db: Connection, name: Name, held: str) -> DamagedEntity | None:
    stored = digests.leaf_of(db, name)
    if stored != held:
        return DamagedEntity(name, "it differs from what its digest was counted from", held, stored)
    facts = contracts.signed_facts(db, name.entity_id) if name.entity == "contract" else []
    if not all(_is_right(body) for body, _ in facts):
        return DamagedEntity(
            name, "the content of a version does not match its digest", held, stored
        )
    return None


def _is_right(text: str) -> bool:
    """Whether a fact is complete, and a version's content matches the digest that agreements are
    bound to."""
    try:
        fact = orjson.loads(text)
        is_version = fact["kind"] == "version"
        return not is_version or bool(content_digest(fact["content"]) == fact["digest"])
    except Refusal:
        # An earlier release accepted content without a canonical form, which has no digest.
        return True
    except (ValueError, KeyError, TypeError):
        return False
