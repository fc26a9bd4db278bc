"""The history of a project or contract as moments, in order. Pure: JSON in, moments out."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from server.domain.content_diff import content_diff

Json = dict[str, Any]

TONES = {
    "proposed": "yellow",
    "negotiating": "magenta",
    "agreed": "cyan",
    "implemented": "blue",
    "verified": "green",
}
"""The colour of each status of a contract, in the order in which a contract reaches them."""

_STEPS = {
    "proposed": ("proposes version {version}", "yellow"),
    "updated": ("writes version {version}", "yellow"),
    "change_requested": ("asks for a change to version {version}", "magenta"),
    "rejected": ("rejects version {version}", "red"),
    "agreed": ("agrees to version {version}", "cyan"),
    "started": ("starts to implement it", "blue"),
    "needs_revision": ("must revise its implementation", "red"),
    "completed": ("has implemented it", "blue"),
    "failed": ("verifies, and it fails", "red"),
    "partly_verified": ("verifies in part", "yellow"),
    "verified": ("verifies: it works together", "green"),
}


class Moment(NamedTuple):
    """One thing that a repo's agent did.

    `why` is in the agent's own words. The lines of `diff` begin with + or -, and show how the
    content changed.
    """

    at: str
    who: str
    did: str
    tone: str
    why: str = ""
    diff: tuple[str, ...] = ()


def contract_moments(
    contract: Json, timeline: Iterable[Json], packets: Iterable[Json], names: Mapping[str, str]
) -> list[Moment]:
    """A contract's steps and packets, the oldest first. `names` has each repo's name by its id."""
    contents = {version["version"]: version["content"] for version in contract.get("history", [])}
    contents[contract["version"]] = contract["content"]
    moments = [_step(entry, contents, names) for entry in timeline]
    return sorted([*moments, *packet_moments(packets, names)], key=lambda moment: moment.at)


def packet_moments(packets: Iterable[Json], names: Mapping[str, str]) -> list[Moment]:
    """The context packets as moments, in the given order."""
    return [
        Moment(
            packet["timestamp"],
            names.get(packet["from_repo"], packet["from_repo"]),
            *packet_said(packet),
        )
        for packet in packets
    ]


def packet_said(packet: Json) -> tuple[str, str, str]:
    """A packet as `did`, `tone` and `why` of a Moment."""
    content = packet["content"]
    if packet["type"] == "question":
        options = " / ".join(map(str, content.get("options") or []))
        asks = "asks urgently" if content.get("urgent") else "asks"
        question = str(content.get("question", ""))
        return asks, "white", f"{question} ({options})" if options else question
    if packet["type"] == "decision":
        return "decides", "white", _decided(content)
    did = "answers" if packet.get("reply_to") else f"shares {packet['type'].replace('_', ' ')}"
    return did, "white", _text_of(content)


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


def _step(entry: Json, contents: Mapping[int, Json], names: Mapping[str, str]) -> Moment:
    version = entry["version"]
    did, tone = _STEPS.get(entry["step"], (entry["step"], "white"))
    diff: tuple[str, ...] = ()
    if entry["step"] == "updated" and version in contents and version - 1 in contents:
        diff = content_diff(contents[version - 1], contents[version])
    if (entry.get("round") or 1) > 1:
        did += f" (round {entry['round']})"
    who = names.get(entry["repoId"], entry["repoId"])
    return Moment(entry["timestamp"], who, did.format(version=version), tone, _why(entry), diff)


def _why(entry: Json) -> str:
    details = entry.get("details")
    if entry["step"] == "completed" and isinstance(details, list):
        more = ", ".join(map(str, details))
    else:
        more = json.dumps(details, ensure_ascii=False) if details else ""
    return ": ".join(part for part in (entry.get("note") or "", more) if part)
