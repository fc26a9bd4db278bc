"""The history of a project or contract as moments, in order. Pure: JSON in, moments out."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from server.domain.content_diff import content_diff
from server.domain.story import packet_deed, step_deed

Json = dict[str, Any]

TONES = {
    "proposed": "yellow",
    "negotiating": "magenta",
    "agreed": "cyan",
    "implemented": "blue",
    "verified": "green",
}
"""The colour of each status of a contract, in the order in which a contract reaches them."""

_STEP_TONES = {
    "proposed": "yellow",
    "updated": "yellow",
    "change_requested": "magenta",
    "rejected": "red",
    "agreed": "cyan",
    "started": "blue",
    "needs_revision": "red",
    "completed": "blue",
    "receipt_passed": "green",
    "receipt_failed": "red",
    "failed": "red",
    "partly_verified": "yellow",
    "verified": "green",
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
    deed = packet_deed(packet)
    return deed.did, "white", deed.why


def _step(entry: Json, contents: Mapping[int, Json], names: Mapping[str, str]) -> Moment:
    version = entry["version"]
    diff: tuple[str, ...] = ()
    if entry["step"] == "updated" and version in contents and version - 1 in contents:
        diff = content_diff(contents[version - 1], contents[version])
    deed = step_deed(entry)
    who = names.get(entry["repoId"], entry["repoId"])
    tone = _STEP_TONES.get(entry["step"], "white")
    return Moment(entry["timestamp"], who, deed.did, tone, deed.why, diff)
