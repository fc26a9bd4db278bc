"""Which peers a node can work with: those of its own major version (CACP 2.0, Versioning)."""

import re
from typing import Any

import orjson

SPOKEN = "2.0"
_MAJOR = re.compile(r"\s*(\d+)(?:\.\d+)*\s*", re.ASCII)


def version_problem(card: Any) -> str | None:
    """Why this node can't work with the agent of a card; None if it can, or the card has no
    version."""
    protocols = card.get("protocols") if isinstance(card, dict) else None
    spoken = protocols.get("cacp") if isinstance(protocols, dict) else None
    if spoken is None:
        return None
    match = _MAJOR.fullmatch(str(spoken)[:20])
    if match and match[1] == SPOKEN.partition(".")[0]:
        return None
    text = isinstance(spoken, str)
    quoted = f"{spoken[:20]!r}" if text else orjson.dumps(spoken, default=str).decode()[:20]
    return f"speaks CACP {quoted}, and this node {SPOKEN}: a peer must speak the same major version"
