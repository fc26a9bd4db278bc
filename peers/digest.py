"""What differs between two nodes (design §7). Pure.

Every entity has a place of three hex digits, from the hash of its name, and a digest of what is
known of it. The digest of a shorter prefix is the XOR of those below it, so that one change
touches one sum for each level, whatever the order. Two nodes compare from the root down and
descend only where the sums differ.
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
    """All places in turn, from a number on; endless."""
    return (f"{number % PLACES:0{DEPTH}x}" for number in count(start))


def leaf(name: Name, state: Iterable[bytes]) -> str:
    """The digest of an entity: 32 hex digits over its name and the parts of its state, sorted."""
    parts = [hashlib.sha256(part).digest() for part in state]
    text = "\n".join(name).encode()
    return hashlib.sha256(text + b"".join(sorted(parts))).hexdigest()[:32]


def xor(one: str, other: str) -> str:
    return f"{int(one, 16) ^ int(other, 16):032x}"


def prefixes_of(place: str) -> list[str]:
    """Every prefix of a place whose sum it is part of, itself included."""
    return [place[:length] for length in range(1, DEPTH + 1)]


def differing(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """The prefixes whose sums differ; a sum that is absent is that of nothing."""
    every = sorted({*ours, *theirs})
    return [prefix for prefix in every if ours.get(prefix, NOTHING) != theirs.get(prefix, NOTHING)]


def lacking(ours: Mapping[Name, str], theirs: Iterable[DigestLeaf]) -> dict[Name, tuple[str, str]]:
    """What a peer knows otherwise than we do, projects before what is in them: our digest, and
    theirs."""
    differing = {
        name: (ours.get(name, NOTHING), one.digest)
        for one in theirs
        for name in [Name(one.entity, one.project_id, one.entity_id)]
        if ours.get(name, NOTHING) != one.digest
    }
    return dict(sorted(differing.items(), key=lambda one: (one[0].entity != "project", one[0])))
