"""Full-text search over mail, context packets and contracts.

The index is FTS5's on SQLite (`server.store.sqlite.search_index`), vectors of words on PostgreSQL
(`server.store.postgresql.search_index`); both find the same.

Every write of a document adds its key to a queue, in the same transaction: triggers do it, for new
and expired mail the store does, which costs less. A worker (`server.workers.search_indexer`)
indexes what is in the queue, in small steps. The index is derived: `rebuild` makes it anew.

The index holds no text of its own. `search_docs` has what was indexed, which must be given to it
again when it is removed. Each document has words that say who may read it (its scope), so that a
search costs little whatever others have written; what counts is checked with each hit.
"""

import hashlib
import sqlite3
import zlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Literal, NamedTuple

import orjson

from schemas.acp import ACPPolicy
from server.domain import search as domain
from server.domain.acp.policy import is_open_to_humans
from server.domain.agents import identity
from server.domain.errors import Unavailable
from server.domain.search import ReadableScope, SearchQuery
from server.store import changes
from server.store.connection import Connection
from server.store.sql import SQL
from server.store.sqlite import search_index as sqlite_index

RULES = "1"
"""Changes with what is indexed of a document: the next start then builds the index anew."""
_RULES_KEY = "search_rules"
STEP_CHARACTERS = 100_000
"""A step of indexing ends after about as much text."""
NEWEST = 2**62

SearchKind = Literal["mail", "context", "contract"]


class IndexedText(NamedTuple):
    """What the index holds of a document."""

    title: str
    body: str
    scope: str


class SearchReader(NamedTuple):
    """What a caller may read: the mail of `address`, if it reads mail, and for a human what is open
    to humans; and the content of `projects`, None for all."""

    address: str | None
    human: bool
    projects: frozenset[str] | None


class SearchHit(NamedTuple):
    """A document that a query matches. `place` is its place in the order of hits."""

    place: int
    kind: SearchKind
    project_id: str
    entity_id: str
    title: str
    body: str


class ContractHit(NamedTuple):
    """A contract as a hit shows it; `updated_at` is a stamp."""

    name: str
    type: str
    status: str
    updated_at: int
    repo: str | None


def _index_of(db: Connection) -> ModuleType:
    """How the index is kept and asked in the database that is behind a connection."""
    if isinstance(db, sqlite3.Connection):
        return sqlite_index
    from server.store.postgresql import search_index as postgresql_index

    return postgresql_index


# --- keeping the index --------------------------------------------------------------------------


def is_ready(db: Connection) -> bool:
    """Whether there is an index, made by the rules of this release."""
    made = SQL.has_search_index(db) is not None
    return made and bool(SQL.meta_value(db, name=_RULES_KEY) == RULES)


def rebuild(db: Connection) -> None:
    """Make an empty index, and queue all there is for it."""
    SQL.drop_search_index(db)
    SQL.drop_search_docs(db)
    SQL.drop_search_queue(db)
    SQL.make_search_index(db)
    SQL.queue_all_for_search(db)
    changes.put_meta(db, _RULES_KEY, RULES)


def waiting(db: Connection) -> int:
    """About how many documents are not indexed yet, or not as they are now."""
    return int(SQL.search_queue_length(db))


def index_next(db: Connection, limit: int) -> None:
    """Index up to `limit` documents of the queue. An index that turns out to be damaged is made
    anew."""
    try:
        _index_next(db, limit)
    except sqlite3.DatabaseError as error:
        if not sqlite_index.is_at_fault(error):
            raise
        rebuild(db)


def _index_next(db: Connection, limit: int) -> None:
    index = _index_of(db)
    last, size = 0, 0
    removed: list[tuple[int, IndexedText]] = []
    added: dict[tuple[SearchKind, str, str], IndexedText | None] = {}
    for seq, kind, project_id, entity_id in SQL.search_queue_head(db, limit=limit):
        last = seq
        key = (kind, project_id, entity_id)
        if key in added:
            continue
        text = _text_of(db, *key)
        row = SQL.search_doc(db, kind=kind, project_id=project_id, entity_id=entity_id)
        known = _unpacked(row[1]) if row else None
        added[key] = None if known == text else text
        if known is not None and known != text:
            removed.append((row[0], known))
        size += len(text.body) if text else 0
        if size > STEP_CHARACTERS:
            break
    # Both in the order of their ids: FTS5 writes a segment whenever an id is smaller than the last.
    for id, former in sorted(removed):
        index.remove(db, id, **_columns(former))
        SQL.drop_search_doc(db, id=id)
    for (kind, project_id, entity_id), text in added.items():
        if text is not None:
            at = {"kind": kind, "project_id": project_id, "entity_id": entity_id}
            id = SQL.add_search_doc(db, **at, indexed=_packed(text))
            index.add(db, id, **_columns(text))
    SQL.drop_from_search_queue(db, seq=last)


def _columns(text: IndexedText) -> dict[str, str]:
    parts = domain.camel_parts(f"{text.title}\n{text.body}")
    return {"title": text.title, "body": text.body, "parts": parts, "scope": text.scope}


def _packed(text: IndexedText) -> bytes:
    # No control character is in a text that was made searchable.
    return zlib.compress("\0".join(text).encode(), 1)


def _unpacked(indexed: bytes) -> IndexedText:
    return IndexedText(*zlib.decompress(indexed).decode().split("\0"))


# --- what is indexed of each document -----------------------------------------------------------


def _text_of(
    db: Connection, kind: SearchKind, project_id: str, entity_id: str
) -> IndexedText | None:
    """What is to be indexed of a document as it is stored now; None when it is gone."""
    if kind == "mail":
        return _message_text(db, entity_id)
    at = {"project_id": project_id, "id": entity_id}
    document = (SQL.packet_to_index if kind == "context" else SQL.contract_to_index)(db, **at)
    if document is None:
        return None
    whole, scope = orjson.loads(document), f"{_KIND[kind]} {_project(project_id)}"
    if kind == "context":
        title, content = packet_title(whole), whole["content"]
    else:
        title = whole["name"]
        work = [
            {name: entry.get(name) for name in ("plan", "files", "notes") if entry.get(name)}
            for entry in whole["implementations"]
        ]
        notes = [note for (note,) in SQL.notes_to_index(db, id=entity_id) if note]
        content = [whole["content"], work, notes]
    return IndexedText(domain.searchable(title), domain.text_of(content), scope)


def _message_text(db: Connection, message_id: str) -> IndexedText | None:
    row = SQL.message_to_index(db, id=message_id)
    if row is None:
        return None
    topic, payload_json, from_agent, priority, policy_json = row
    payload = orjson.loads(payload_json)
    summary = str(payload.get("summary", ""))
    parties = {identity(from_agent), *(to for (to,) in SQL.recipients_to_index(db, id=message_id))}
    readers = [_address(address) for address in sorted(parties)]
    if is_open_to_humans(ACPPolicy.model_validate_json(policy_json), priority):
        readers.append(_OPEN)
    rest = {name: value for name, value in payload.items() if name != "summary"}
    return IndexedText(
        domain.searchable(topic or summary),
        domain.text_of([summary, rest]),
        " ".join([_KIND["mail"], *readers]),
    )


def packet_title(packet: dict[str, Any]) -> str:
    """A context packet's question or decision, else its first text."""
    content = packet["content"]
    texts = [content.get(name) for name in ("question", "decision", "summary", "title")]
    texts += content.values()
    return next((text for text in texts if isinstance(text, str) and text), packet["type"])


# --- searching ----------------------------------------------------------------------------------


def hits(
    db: Connection,
    query: SearchQuery,
    reader: SearchReader,
    kinds: Iterable[SearchKind],
    before: int | None,
    limit: int,
) -> list[SearchHit]:
    """The documents that match a query and that the reader may read, the latest first, after the
    one at the place `before`. Raises Unavailable (`search_damaged`)."""
    scope = _scope(reader, kinds)
    if not scope or SQL.has_search_index(db) is None:
        return []
    try:
        rows = list(
            SQL.search_hits(
                db,
                match=_index_of(db).expression(query, scope),
                before=NEWEST if before is None else before,
                address=reader.address,
                human=reader.human,
                limit=limit,
            )
        )
    except sqlite3.DatabaseError as error:
        if not sqlite_index.is_at_fault(error):
            raise
        raise Unavailable(
            "The search index is damaged; nothing else is. `cacp reindex` on the node's machine "
            "builds it anew",
            reason="search_damaged",
        ) from error
    return [_hit(*row) for row in rows]


def _hit(
    place: int, kind: SearchKind, project_id: str, entity_id: str, indexed: bytes
) -> SearchHit:
    text = _unpacked(indexed)
    return SearchHit(place, kind, project_id, entity_id, text.title, text.body)


def contract_hit(db: Connection, project_id: str, contract_id: str) -> ContractHit:
    return ContractHit(*SQL.contract_hit(db, project_id=project_id, contract_id=contract_id))


def _scope(reader: SearchReader, kinds: Iterable[SearchKind]) -> list[ReadableScope]:
    """What a document's scope may be for the reader; empty when it may read nothing of that."""
    wanted = set(kinds)
    readable = []
    if "mail" in wanted and reader.address is not None:
        openly = [_OPEN] if reader.human else []
        readable.append(ReadableScope((_KIND["mail"],), (_address(reader.address), *openly)))
    shared = tuple(_KIND[kind] for kind in _SHARED if kind in wanted)
    if shared and reader.projects is None:
        readable.append(ReadableScope(shared, None))
    elif shared and reader.projects:
        readable.append(ReadableScope(shared, tuple(map(_project, sorted(reader.projects)))))
    return readable


_KIND: dict[SearchKind, str] = {
    "mail": "kindmail",
    "context": "kindcontext",
    "contract": "kindcontract",
}
_OPEN = "opentohumans"
_SHARED: tuple[SearchKind, ...] = ("context", "contract")


def _address(address: str) -> str:
    return f"a{_hash(address)}"


def _project(project_id: str) -> str:
    return f"p{_hash(project_id)}"


def _hash(text: str) -> str:
    """A word for the index: ids and addresses would be split into several."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


# --- damage -------------------------------------------------------------------------------------


def damage(db: Connection) -> str | None:
    """What is wrong with the index; None when it is sound, or not made yet. Reads all of it, and
    writes nothing."""
    if SQL.has_search_index(db) is None:
        return None
    expected = {_KIND[kind]: count for kind, count in SQL.search_doc_counts(db)}
    try:
        counted = _index_of(db).counts(db, _KIND)
    except sqlite3.DatabaseError as error:
        return f"it can't be read: {error}"
    return None if counted == expected else "it holds other documents than it should"
