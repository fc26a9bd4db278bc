"""Signed statements: a node signs what its agents write (design §7).

A relay can't change what it passes on, because it can't sign for the author's node.
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
"""Levels of nesting that a statement adds to its content: its own and that of the body."""
SENT_MAX = 8 * 1024 * 1024
"""The most bytes of one fact, packet or repo as it is sent. It can't be sent in pieces, and nodes
accept bodies of 14 MiB by default."""


def check_sendable(content: Any, where: str = "content") -> str:
    """The digest (SHA-256, hex) of content that a caller writes.

    Raises InvalidInput or TooLarge, naming the place, when its nesting, its numbers or its size
    prevent that every node can sign, send and accept it.
    """
    text = canonical(content, where)
    _check_size(len(text), where)
    return hashlib.sha256(text).hexdigest()


def check_record(record: Any, where: str) -> None:
    """Raises TooLarge for a fact, packet or repo that is too large to be sent as a whole."""
    _check_size(len(orjson.dumps(record)), where)


def _check_size(size: int, where: str) -> None:
    if size > SENT_MAX:
        raise TooLarge(
            f"{where} takes {size} bytes when sent to other nodes, and {SENT_MAX} are allowed",
            limit=SENT_MAX,
            path=where,
        )


def statement(kind: str, place: str, body: dict[str, Any]) -> bytes:
    """The bytes that a node signs: the canonical JSON of kind, place and body.

    `place` is the contract of a fact, the project of a packet, the repo of a claim; signing it
    prevents moving a statement elsewhere. The depth limit allows all content that `check_sendable`
    accepts.
    """
    return canonical([kind, place, body], kind, MAX_DEPTH + ENVELOPE_DEPTH)


def written_at(body: dict[str, Any]) -> int:
    """The stamp of a signed body: of a fact or a register, of a packet, of a release, or of a
    claim's last renewal."""
    if "timestamp" in body:
        return stamp_of(body["timestamp"])
    for member in ("stamp", "released_at"):
        if member in body:
            return int(body[member])
    return int(max(body["claimed_at"], body["renewed_at"]))


def signer_of(signature: str | None, own: str) -> str:
    """The node that a stored signature (JSON) names; `own`, this node, where there is none."""
    return own if signature is None else str(orjson.loads(signature)["node"])


def may_speak(
    signature: Signature, author: str | None, *, author_is_node: bool, home: str | None
) -> bool:
    """Whether the node that signed may sign for the author.

    A node signs for itself, and for agents that are not nodes themselves and have no other `home`,
    the first node that signed for them. A statement without an author may come from any node of the
    mesh.
    """
    if author is None or same_agent(signature.node, author):
        return True
    if author_is_node:
        return False
    return home is None or same_agent(home, signature.node)
