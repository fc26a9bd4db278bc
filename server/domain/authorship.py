"""Who may say what: a node signs what its agents write (design §7).

The words of another repo's agent pass through relays unharmed: a relay can't sign for their node.
"""

import hashlib
from typing import Any

import orjson

from schemas.base import stamp_of
from schemas.mesh import Signature
from server.domain.agents import same_agent
from server.domain.canonical import MAX_DEPTH, canonical
from server.domain.errors import TooLarge

ENVELOPE_DEPTH = 2
"""Levels that a statement adds to the content of what is said: its own, and that of the body."""
SENT_MAX = 8 * 1024 * 1024
"""Bytes of one fact, packet or repo as it is sent, at most: it can't be sent in pieces, and a node
takes bodies of 14 MiB by default."""


def check_sendable(content: Any, where: str = "content") -> str:
    """The digest of content that a caller writes.

    Raises InvalidInput or TooLarge, with the place, unless it can be signed, sent and taken by
    every node: its nesting, its numbers and its size.
    """
    said = canonical(content, where)
    _check_size(len(said), where)
    return hashlib.sha256(said).hexdigest()


def check_record(record: Any, where: str) -> None:
    """Raises TooLarge for a fact, packet or repo that is too large to be sent, though each of its
    members is allowed."""
    _check_size(len(orjson.dumps(record)), where)


def _check_size(size: int, where: str) -> None:
    if size > SENT_MAX:
        raise TooLarge(
            f"{where} has {size} bytes as it is sent to other nodes, {SENT_MAX} at most",
            limit=SENT_MAX,
            path=where,
        )


def statement(kind: str, place: str, body: dict[str, Any]) -> bytes:
    """What a node signs: the canonical JSON of `body`, of this kind, at this place.

    `place` is the contract of a fact, the project of a packet, the repo of a claim: so nothing
    that was said in one place can be moved to another. Content that `check_sendable` takes can be
    said: the limit of its depth is its own, whatever it stands in.
    """
    return canonical([kind, place, body], kind, MAX_DEPTH + ENVELOPE_DEPTH)


def written_at(body: dict[str, Any]) -> int:
    """The stamp of what a node signed: of a fact, a claim as it was last renewed, or a packet."""
    if "timestamp" in body:
        return stamp_of(body["timestamp"])
    found = body["stamp"] if "stamp" in body else max(body["claimed_at"], body["renewed_at"])
    return int(found)


def may_speak(
    signature: Signature, author: str | None, *, author_is_node: bool, home: str | None
) -> bool:
    """Whether the node that signed may speak for the author.

    A node speaks for itself, and for agents that are no nodes and that no other node has spoken
    for; `home` is the node that first did. What has no author, any node of the mesh may say.
    """
    if author is None or same_agent(signature.node, author):
        return True
    if author_is_node:
        return False
    return home is None or same_agent(home, signature.node)
