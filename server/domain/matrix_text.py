"""How far repos are with contracts, in words and signs: the same on the page and in a terminal."""

from collections.abc import Mapping
from typing import Any

from schemas.matrix import AwaitedKind, CellState

SIGNS: Mapping[CellState, str] = {
    "awaited": "…",
    "objected": "✗",
    "agreed": "○",
    "building": "◔",
    "built": "●",
    "verified": "✓",
    "stale": "↺",
    "broken": "!",
}
"""A sign for each state: colour is never alone."""
MEANINGS: Mapping[CellState, str] = {
    "awaited": "must respond, or revise what others object to",
    "objected": "asked for a change, or rejected",
    "agreed": "agreed, not begun",
    "building": "is building it",
    "built": "has built it",
    "verified": "all have built it, and a verification passed",
    "stale": "built an older version",
    "broken": "a verification failed: must repair it",
}
DUTIES: Mapping[AwaitedKind, str] = {
    "respond": "respond",
    "revise": "revise",
    "implement": "build",
    "repair": "repair",
    "verify": "verify",
}
"""What is awaited of a party, as in "must build"; in the order in which it is done."""
Json = dict[str, Any]


def label(cell: Json) -> str:
    """A cell of cacp/project/matrix in a word or two.

    >>> label({"state": "stale", "version": 1}), label({"state": "awaited", "awaited": "revise"})
    ('stale v1', 'must revise')
    >>> label({"state": "stale", "version": 1, "awaited": "implement"})
    'stale v1, build'
    """
    awaited = cell.get("awaited")
    if cell["state"] == "awaited" and awaited:
        return f"must {DUTIES[awaited]}"
    if cell["state"] != "stale":
        return str(cell["state"])
    return f"stale v{cell['version']}" + (f", {DUTIES[awaited]}" if awaited else "")


def sentence(cell: Json, names: Mapping[str, str]) -> str:
    """A cell in full, without its repo. `names` has those of repos, by id.

    >>> cell = {"state": "built", "version": 2, "awaited": "verify", "side": "provider"}
    >>> sentence(cell | {"evidence": "word"}, {})
    'provider, has built it: version 2, by word; must verify'
    """
    text = f"{cell['side']}, {MEANINGS[cell['state']]}"
    if cell.get("evidence"):
        by = f" of {names.get(cell['by'], cell['by'])}" if "by" in cell else ""
        text += f": version {cell['version']}, by {cell['evidence']}{by}"
    awaited = cell.get("awaited")
    return f"{text}; must {DUTIES[awaited]}" if awaited and cell["state"] != "awaited" else text


def duties(awaited: Mapping[str, int]) -> str:
    """How many steps of each kind are awaited.

    >>> duties({"verify": 1, "respond": 2})
    '2 to respond, 1 to verify'
    """
    return ", ".join(
        f"{awaited[kind]} to {duty}" for kind, duty in DUTIES.items() if awaited.get(kind)
    )


def verdict(totals: Json) -> str:
    """Whether all contracts are verified and, if not, what is missing: one line.

    >>> totals = {"complete": False, "contracts": 3, "verified": 1, "awaited": {"implement": 2}}
    >>> verdict(totals)
    'Not yet: 1 of 3 contracts verified. Missing: 2 to build.'
    """
    if not totals["contracts"]:
        return "Not yet: there is no contract."
    if totals["complete"]:
        return f"Yes: all {totals['contracts']} contracts are verified, {_by(totals)}."
    missing = duties(totals["awaited"])
    known = f"Not yet: {totals['verified']} of {totals['contracts']} contracts verified."
    return f"{known} Missing: {missing}." if missing else known


def _by(totals: Json) -> str:
    """What all contracts are verified by.

    >>> _by({"contracts": 3, "proven": 2})
    "2 by runners' receipts, 1 by the word of agents"
    """
    proven, word = totals["proven"], totals["contracts"] - totals["proven"]
    if not proven:
        return "by the word of agents"
    receipts = "by runners' receipts"
    return f"{proven} {receipts}, {word} by the word of agents" if word else receipts
