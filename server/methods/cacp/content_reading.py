"""The contents of contracts, read in their dialect and compared: in a thread, as that may take
seconds, and never while the node's one writer waits.

What reads and compares is imported by the first call that needs it: a start would take a twentieth
longer.
"""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import orjson

from contracts.changes import ContractComparison
from contracts.json_text import path_text
from contracts.model import Interface
from schemas.contract import ContractType
from schemas.dialect import DialectName
from schemas.facts import VersionFact
from schemas.verification import PartyRole
from server.domain.errors import InvalidInput
from server.node import Node

SMALL = 8 * 1024
"""Bytes of content that are read at once: it takes a fraction of a millisecond."""
PLAIN: dict[str, Any] = {"dialect": "endpoint", "warnings": []}
"""What is said of a plain endpoint, which needn't be read."""
_COMPARING = threading.Lock()
"""One comparison at a time: two would take from each other, and from everything else, the one
interpreter that they share, and are often of the same versions."""
SHOWN = 20
"""Problems that a refusal names, and warnings that an answer does."""


async def checked(
    content: Mapping[str, Any], dialect: DialectName | None, type: ContractType | None
) -> Interface:
    """The content in its dialect. Raises InvalidInput if it is invalid in the one declared."""
    from contracts.recognise import is_parsed, read

    if len(orjson.dumps(content)) <= SMALL and not is_parsed(content, dialect):
        interface = read(content, dialect, type)
    else:
        interface = await asyncio.to_thread(read, content, dialect, type)
    check(interface, dialect)
    return interface


def check(interface: Interface, dialect: DialectName | None) -> None:
    """Raises InvalidInput for a content that is invalid in the dialect that was declared."""
    problems = interface.problems
    if problems:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        where = path_text(first.path)
        raise InvalidInput(
            f"content: is not valid {dialect}: at {where}: {first.why}{more}",
            reason="invalid_content",
            path=f"content{where[1:]}",
            problems=_notes(interface.problems),
        )


def how_read(interface: Interface) -> dict[str, Any]:
    """What a ReadContent says."""
    return {"dialect": interface.dialect, "warnings": _notes(interface.warnings)}


def _notes(problems: Any) -> list[dict[str, str]]:
    return [{"path": path_text(note.path), "why": note.why} for note in problems[:SHOWN]]


def compared(
    node: Node, type: ContractType, before: VersionFact, after: VersionFact
) -> ContractComparison:
    """Two versions compared; what was compared before is kept. It may take seconds."""
    from contracts.compare import compare
    from contracts.recognise import read

    key = (before.digest, before.dialect, after.digest, after.dialect, type)
    known = node.comparisons.get(key)
    if known is not None:
        return known
    with _COMPARING:
        known = node.comparisons.get(key)
        if known is None:
            known = compare(
                read(before.content, before.dialect, type), read(after.content, after.dialect, type)
            )
            node.comparisons.put(key, known)
        return known


def concerned(
    comparison: ContractComparison, roles: Mapping[str, PartyRole], author: str | None
) -> list[str]:
    """The parties that a change burdens: those of a side for which it is breaking or unknown."""
    burdened = {
        side
        for side, verdict in (("provider", comparison.provider), ("consumer", comparison.consumer))
        if verdict in ("breaking", "unknown")
    }
    return [
        name
        for name, role in roles.items()
        if name != author and (role in burdened or (role == "both" and burdened))
    ]
