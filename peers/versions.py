"""Which peers a node can work with: those of its own major version (CACP 2.0, Versioning)."""

import re
from typing import Any

import orjson

SPOKEN = "2.0"
_MAJOR = re.compile(r"\s*(\d+)(?:\.\d+)*\s*", re.ASCII)


def version_problem(card: Any) -> str | None:
    """Why the agent of a card can't be worked with; None when it can, or its card doesn't say."""
    protocols = card.get("protocols") if isinstance(card, dict) else None
    spoken = protocols.get("cacp") if isinstance(protocols, dict) else None
    if spoken is None:
        return None
    found = _MAJOR.fullmatch(str(spoken)[:20])
    if found and found[1] == SPOKEN.partition(".")[0]:
        return None
    text = isinstance(spoken, str)
    said = f"{spoken[:20]!r}" if text else orjson.dumps(spoken, default=str).decode()[:20]
    return f"speaks CACP {said}, and this node {SPOKEN}: a peer must speak the same major version"
