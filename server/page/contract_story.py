"""A contract as its page tells it, from what the methods answer: who stands where, what is proven
and by whom, each version with what was said of it, and everything in order. Pure: JSON in, JSON
out."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from schemas.base import present
from schemas.plain import escaped
from server.domain.line_diff import json_lines, line_diff
from server.domain.story import packet_deed, step_deed
from server.domain.suggestion import suggested_content
from server.methods.cacp.contract_diff import wire_rows

Json = dict[str, Any]

ANSWERS = {"agreed", "change_requested", "rejected"}
WRITTEN = {"proposed", "updated"}
OUTCOMES = {
    "completed",
    "receipt_passed",
    "receipt_failed",
    "verified",
    "failed",
    "partly_verified",
}
WHY_MAX = 4_000
RAW_MAX = 200_000
"""Characters of a version's JSON that are shown; all of it is in the view's twin."""


def standing(overview: Json, timeline: Iterable[Json]) -> list[Json]:
    """Each party with its side, its answer to the current version, its work and its proof."""
    contract = overview["contract"]
    current = [step for step in timeline if step["version"] == contract["version"]]
    works = {work["repo_id"]: work for work in contract["implementations"]}
    return [
        party
        | {
            "answer": _answer(party["repoId"], contract, current),
            "work": works.get(party["repoId"]),
            "proof": proof(party["repoId"], overview, works.get(party["repoId"])),
        }
        for party in overview["parties"]
    ]


def _answer(repo_id: str, contract: Json, current: list[Json]) -> Json:
    """What a party said last to the current version."""
    for step in reversed(current):
        if step["repoId"] == repo_id and step["step"] in ANSWERS:
            return {"state": step["step"], "at": step["timestamp"]}
    return {"state": "author" if contract["proposed_by"] == repo_id else "waiting"}


def proof(repo_id: str, overview: Json, work: Json | None) -> Json:
    """Whether a party's work is proven: `state`, and the verifications that decide it.

    `state` is `unagreed`, `unbuilt`, `building`, `built`, `failed` (its work must be repaired),
    `own_word` (only it verified its work), `verified` (another party did, by word), `proven` (by
    receipts, which `by` has), or `refuted` (by failures that stand against it, which `by` has).
    """
    round = overview["round"]
    passed = [
        check
        for check in overview["verifications"]
        if check["round"] == round and check["result"] == "success"
    ]
    failed = [check for check in overview["verifications"] if check["result"] == "failure"]
    status = overview["contract"]["status"]
    state = "unbuilt"
    by: list[Json] = []
    receipts = [
        listed
        for listed in overview["receipts"]
        if listed["proves"] and listed["receipt"]["repo"] == repo_id
    ]
    lacking = [side for side in overview["unproven"] if side["repoId"] == repo_id]
    failures = [side["failure"] for side in lacking if "failure" in side]
    if status in ("proposed", "negotiating"):
        state = "unagreed"
    elif receipts and not lacking:
        state, by = "proven", receipts
    elif failures:
        state, by = "refuted", failures
    elif status == "verified" and passed:
        others = [check for check in passed if check["repoId"] != repo_id]
        state, by = ("verified", others) if others else ("own_word", passed)
    elif work is not None and work["status"] == "needs_revision":
        state, by = "failed", [check for check in failed if check["round"] == round - 1] or failed
    elif work is not None:
        state = "built" if work["status"] == "complete" else "building"
    return {"state": state, "by": by}


def versions(overview: Json, timeline: list[Json], limit: int) -> list[Json]:
    """The newest versions, the newest first: who wrote each and why, and what was answered, built
    and verified."""
    contract = overview["contract"]
    history = {version["version"]: version["content"] for version in contract.get("history", ())}
    history[contract["version"]] = contract["content"]
    authors = {
        version["version"]: version["proposed_by"] for version in contract.get("history", ())
    }
    authors[contract["version"]] = contract["proposed_by"]
    return [
        _version(number, authors[number], history[number], timeline)
        for number in sorted(history, reverse=True)[:limit]
    ]


def _version(number: int, author: str, content: Json, timeline: list[Json]) -> Json:
    steps = [step for step in timeline if step["version"] == number]
    written = [step for step in steps if step["step"] in WRITTEN and step["repoId"] == author]
    return {
        "version": number,
        "written": written[-1] if written else None,
        "responses": [_response(step, content) for step in steps if step["step"] in ANSWERS],
        "outcomes": [
            step | {"text": json_text(step.get("details"), WHY_MAX)}
            for step in steps
            if step["step"] in OUTCOMES
        ],
    }


def _response(step: Json, content: Json) -> Json:
    """An answer; its suggested change as text, and beside the version where it can be read as
    content."""
    suggested = step.get("details")
    if suggested is None:
        return step
    shown = step | {"text": json_text(suggested, WHY_MAX)}
    asked = suggested_content(content, suggested)
    if asked is not None:
        compared = line_diff(content, asked)
        shown |= {"rows": wire_rows(compared.rows), "moreRows": compared.more}
    return shown


def in_order(*kinds: Iterable[Json]) -> list[Json]:
    """Everything that was done and said, the newest first."""
    return sorted(chain(*kinds), key=lambda each: each["at"], reverse=True)


def deeds(timeline: Iterable[Json], names: Mapping[str, str]) -> Iterator[Json]:
    """What was done, as moments."""
    for step in timeline:
        deed = step_deed(step)
        about = {"at": step["timestamp"], "step": step["step"], "version": step["version"]}
        yield about | _said(step["repoId"], step["agentId"], deed.did, deed.why, names)


def packet_moment(packet: Json, names: Mapping[str, str]) -> Json:
    """What was said, as a moment."""
    deed = packet_deed(packet)
    about = {"at": packet["timestamp"], "step": packet["type"]}
    return about | _said(packet["from_repo"], packet["from_agent"], deed.did, deed.why, names)


def _said(repo_id: str, agent_id: str, did: str, why: str, names: Mapping[str, str]) -> Json:
    cut = why if len(why) <= WHY_MAX else f"{why[: WHY_MAX - 1]}…"
    who = {"repoId": repo_id, "name": names.get(repo_id), "agentId": agent_id}
    return present(who | {"did": did, "why": cut or None})


def raw(content: Json, version: int) -> Json:
    """A version's JSON as text to be copied, with how many characters are left out."""
    text = "\n".join(json_lines(content))
    return {
        "version": version,
        "text": escaped(text[:RAW_MAX]),
        "cut": max(0, len(text) - RAW_MAX),
        "content": content,
    }


def json_text(value: Any, most: int) -> str | None:
    """A value as text: a string as it is, the rest as JSON."""
    if value is None:
        return None
    text = value if isinstance(value, str) else "\n".join(json_lines(value))
    return escaped(text[:most]) + ("…" if len(text) > most else "")
