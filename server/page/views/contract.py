"""A contract: its state, its versions beside each other, and its story."""

from typing import Any

import orjson

from server.domain.errors import NotFound
from server.methods.cacp.contract_diff import content_difference
from server.page import contract_story as story
from server.page.acting import cannot_answer
from server.page.view import Page, PageCall, view

VERSIONS = 20
MOMENTS = 50
PACKETS = 200
"""The most context packets that are told."""
PACKETS_AT_ONCE = 20
PACKET_BYTES = 4 * 1024 * 1024
"""From how many bytes of packets on no more are read: each may have a megabyte."""
CONFLICTS = 5


@view(
    "contract",
    "/ui/projects/{project_id}/contracts/{contract_id}",
    title="Contract",
    kinds=("contract", "context", "repo", "conflict"),
)
def contract(call: PageCall) -> Page:
    """A contract's state, who must act, what is proven, its versions, and its story."""
    at = {"projectId": call.path["project_id"], "contractId": call.path["contract_id"]}
    overview = _asked(call, "cacp/contract/overview", **at, includeHistory=True)
    agreement = overview["contract"]
    timeline = call.ask("cacp/contract/timeline", **at)["timeline"]
    names = {step["repoId"]: step["name"] for step in timeline if "name" in step}
    names |= {party["repoId"]: party["name"] for party in overview["parties"] if "name" in party}
    context, leaves_out = _context(call, at, names)
    moments = story.in_order(story.deeds(timeline, names), context)
    after = _number(call, "after") or 0
    raw = _number(call, "raw")
    contents = {each["version"]: each["content"] for each in agreement["history"]}
    contents[agreement["version"]] = agreement["content"]
    shown = {name: value for name, value in agreement.items() if name not in ("history", "content")}
    return at | {
        "project": overview["projectName"],
        "contract": shown,
        "agreementPolicy": overview["agreementPolicy"],
        "verificationPolicy": overview["verificationPolicy"],
        "round": overview["round"],
        "parties": story.standing(overview, timeline),
        "awaited": _awaited(overview),
        "ownSteps": overview["ownSteps"],
        "unable": cannot_answer(call, at["projectId"]) if call.viewer.may_act else None,
        "versions": story.versions(overview, timeline, VERSIONS),
        "numbers": sorted(contents, reverse=True),
        "difference": _difference(call, at, contents),
        "conflictCount": overview["conflicts"],
        "conflicts": _conflicts(call, at, names) if overview["conflicts"] else [],
        "moments": moments[after : after + MOMENTS],
        "next": str(after + MOMENTS) if len(moments) > after + MOMENTS else None,
        "leavesOutContext": leaves_out,
        "raw": _raw(contents, raw or agreement["version"]),
        "isRaw": raw is not None,
    }


def _asked(call: PageCall, method: str, **params: Any) -> Any:
    """A result with the stored JSON in it read."""
    return orjson.loads(orjson.dumps(call.ask(method, **params)))


def _context(
    call: PageCall, at: dict[str, str], names: dict[str, str]
) -> tuple[list[dict[str, Any]], bool]:
    """The newest context of the contract as moments, and whether older context is left out. One
    packet is taken apart at a time: what is kept of it is short."""
    moments: list[dict[str, Any]] = []
    size, before = 0, None
    while len(moments) < PACKETS and size < PACKET_BYTES:
        listed = call.ask("cacp/context/list", **at, limit=PACKETS_AT_ONCE, before=before)
        stored = [orjson.dumps(packet) for packet in listed["packets"]]
        for document in reversed(stored):
            packet = orjson.loads(document)
            moments.append(story.packet_moment(packet, names))
            size += len(document)
            before = packet["packet_id"]
        if len(stored) < PACKETS_AT_ONCE:
            return moments, False
    return moments, True


def _number(call: PageCall, name: str) -> int | None:
    """A number of the query; what is none is left out."""
    given = call.query.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 8 else None


def _awaited(overview: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps that the contract waits for, with the agents of their repos."""
    agents = {party["repoId"]: party.get("agentId") for party in overview["parties"]}
    return [step | {"agentId": agents.get(step["repoId"])} for step in overview["awaitedSteps"]]


def _difference(call: PageCall, at: dict[str, str], contents: dict[int, Any]) -> Any:
    """Two versions beside each other; None while there is one."""
    if len(contents) == 1:
        return None
    chosen = {"from": _number(call, "from") or None, "to": _number(call, "to") or None}
    return call.ask("cacp/contract/diff", **at, **chosen)


def _conflicts(call: PageCall, at: dict[str, str], names: dict[str, str]) -> list[dict[str, Any]]:
    """Versions that lost a race, each beside the current one. Their contents are in
    cacp/contract/conflicts."""
    # As in server/methods/cacp/content_reading.py, by the first that needs it.
    from contracts.compare import compare
    from contracts.recognise import read

    lost = call.ask("cacp/contract/conflicts", **at)["conflicts"]
    return [
        {
            "version": each["version"],
            "currentVersion": each["currentVersion"],
            "repoId": each["proposedBy"],
            "name": names.get(each["proposedBy"]),
            "timestamp": each["timestamp"],
            "changeNotes": each.get("changeNotes"),
            "parties": [names.get(repo, repo) for repo in each["parties"]],
            "currentParties": [names.get(repo, repo) for repo in each["currentParties"]],
            "content": each["content"],
            **content_difference(
                compare(read(each["content"]), read(each["currentContent"])),
                each["content"],
                each["currentContent"],
            ),
        }
        for each in lost[-CONFLICTS:]
    ]


def _raw(contents: dict[int, Any], version: int) -> dict[str, Any]:
    if version not in contents:
        raise NotFound(f"The contract has no version {version}", kind="version")
    return story.raw(contents[version], version)
