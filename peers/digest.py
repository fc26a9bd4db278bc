"""What differs between two nodes (design §7). Pure.

Every entity has a place of three hex digits, from the hash of its name, and a digest of its state.
The digest of a shorter prefix is the XOR of those below it, so that one change touches one sum on
each level, in whatever order changes come. Two nodes compare from the root down and descend only
where the sums differ.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from schemas.mesh import DigestLeaf

DEPTH = 3
PLACES = 16**DEPTH
HEX = "0123456789abcdef"
NOTHING = "0" * 32


class Name(NamedTuple):
    """What an entity is called on every node."""

    entity: str
    project_id: str
    entity_id: str


def place_of(name: Name) -> str:
    """The place of an entity: as many hex digits as the tree is deep."""
    return hashlib.sha256("\n".join(name).encode()).hexdigest()[:DEPTH]


def places(start: int) -> Iterator[str]:
    """All places in turn, from number `start` on; endless."""
    return (f"{number % PLACES:0{DEPTH}x}" for number in count(start))


def leaf(name: Name, state: Iterable[bytes]) -> str:
    """The digest of an entity: 32 hex digits over its name and the parts of its state, sorted."""
    parts = [hashlib.sha256(part).digest() for part in state]
    text = "\n".join(name).encode()
    return hashlib.sha256(text + b"".join(sorted(parts))).hexdigest()[:32]


def xor(left: str, right: str) -> str:
    return f"{int(left, 16) ^ int(right, 16):032x}"


def prefixes_of(place: str) -> list[str]:
    """The prefixes whose sums a place is part of, itself included."""
    return [place[:length] for length in range(1, DEPTH + 1)]


def differing(own_sums: Mapping[str, str], peer_sums: Mapping[str, str]) -> list[str]:
    """The prefixes whose sums differ; an absent sum counts as NOTHING."""
    every = sorted({*own_sums, *peer_sums})
    return [
        prefix
        for prefix in every
        if own_sums.get(prefix, NOTHING) != peer_sums.get(prefix, NOTHING)
    ]


def lacking(
    own_leaves: Mapping[Name, str], peer_leaves: Iterable[DigestLeaf]
) -> dict[Name, tuple[str, str]]:
    """The entities of a peer that differ or are missing here, projects first, each with the digest
    here and the peer's."""
    differing = {
        name: (own_leaves.get(name, NOTHING), leaf.digest)
        for leaf in peer_leaves
        for name in [Name(leaf.entity, leaf.project_id, leaf.entity_id)]
        if own_leaves.get(name, NOTHING) != leaf.digest
    }
    return dict(sorted(differing.items(), key=lambda item: (item[0].entity != "project", item[0])))
