"""What was done with a contract and said of it, in words that the CLI and the page share."""

import json
from typing import Any, NamedTuple

Json = dict[str, Any]

DEEDS = {
    "proposed": "proposes version {version}",
    "updated": "writes version {version}",
    "change_requested": "asks for a change to version {version}",
    "rejected": "rejects version {version}",
    "agreed": "agrees to version {version}",
    "started": "starts to implement it",
    "needs_revision": "must revise its implementation",
    "completed": "has implemented it",
    "receipt_passed": "is proven by a runner's receipt",
    "receipt_failed": "has a runner's receipt that proves nothing",
    "failed": "verifies, and it fails",
    "partly_verified": "verifies in part",
    "verified": "verifies: it works together",
}
"""What a repo did in each step of cacp/contract/timeline."""


EFFECTS = {
    "breaking": ", which breaks consumers",
    "unknown": "; whether it breaks consumers is unknown",
}


class Deed(NamedTuple):
    """What somebody did, in the words of this software; and why, in its author's own."""

    did: str
    why: str


def step_deed(entry: Json) -> Deed:
    """A step as cacp/contract/timeline gives it."""
    did = (DEEDS.get(entry["step"]) or str(entry["step"])).format(version=entry["version"])
    if (entry.get("round") or 1) > 1:
        did += f" (round {entry['round']})"
    return Deed(did + EFFECTS.get(entry.get("effect") or "", ""), _why(entry))


def packet_deed(packet: Json) -> Deed:
    """A context packet."""
    content = packet["content"]
    if packet["type"] == "question":
        options = " / ".join(map(str, content.get("options") or []))
        asks = "asks urgently" if content.get("urgent") else "asks"
        question = str(content.get("question", ""))
        return Deed(asks, f"{question} ({options})" if options else question)
    if packet["type"] == "decision":
        return Deed("decides", _decided(content))
    did = "answers" if packet.get("reply_to") else f"shares {packet['type'].replace('_', ' ')}"
    return Deed(did, _text_of(content))


def _decided(content: Json) -> str:
    """A decision as `cacp/context/recordDecision` writes it, or one of any other shape."""
    parts = [str(content[name]) for name in ("decision", "chosen") if content.get(name)]
    if not parts:
        return _text_of(content)
    rationale = content.get("rationale")
    return ": ".join(parts) + (f", because {rationale}" if rationale else "")


def _text_of(content: Json) -> str:
    texts = [value for value in content.values() if isinstance(value, str)]
    return texts[0] if len(content) == 1 and texts else json.dumps(content, ensure_ascii=False)


def _ran(receipt: Json) -> str:
    """What was run on what, and what came of it: a receipt's details of a timeline."""
    what = receipt.get("command") or receipt.get("tool")
    at = str(receipt.get("commit"))[:12]
    ended = str(receipt.get("outcome")).replace("_", " ")
    against = ", against a mock" if receipt.get("target") == "mock" else ""
    return f"{receipt.get('side')}: {what} at {at}{against}: {ended}"


def _why(entry: Json) -> str:
    details = entry.get("details")
    if entry["step"] == "completed" and isinstance(details, list):
        more = ", ".join(map(str, details))
    elif entry["step"].startswith("receipt_") and isinstance(details, dict):
        more = _ran(details)
    else:
        more = json.dumps(details, ensure_ascii=False) if details else ""
    return ": ".join(part for part in (entry.get("note") or "", more) if part)
