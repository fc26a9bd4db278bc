"""What a caller can do about an item of the overview."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from server.domain.attention.items import named
from server.domain.attention.overview import OpenItem

NUDGED_MAX = 3
"""The most agents that can be nudged about an item."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What a caller may do. `repos` has the repo that it acts for in each project."""

    agent: str
    repos: Mapping[str, str] = field(default_factory=dict)
    human: bool = False
    sends_mail: bool = False
    coordinates: bool = False
    owns: frozenset[str] = frozenset()
    """The projects whose repos it may release."""
    owns_all: bool = False
    """It may release the repos of all projects, and end the access of agents."""


class OverviewStep(NamedTuple):
    """An action's name, its method, and the params that follow from the item."""

    name: str
    method: str
    params: dict[str, Any]


def actions_of(item: OpenItem, may: Rights) -> list[OverviewStep]:
    """The actions that are open to the caller, the one that closes the item first."""
    return [*_closing(item, may), *_pressing(item, may)]


def _closing(item: OpenItem, may: Rights) -> Iterator[OverviewStep]:
    own = may.repos.get(item.project_id or "")
    if item.kind == "approve" and may.human:
        about = {"message_id": item.subject.id}
        yield OverviewStep("approve", "acp/approve", {**about, "decision": "approve"})
        yield OverviewStep("refuse", "acp/approve", {**about, "decision": "refuse"})
    elif item.subject.type == "contract" and own:
        yield from _responses(item, own, may)
    elif item.kind == "answer" and item.subject.type == "question":
        if own and all(party.repo_id != own for party in item.interested):
            shared = {"projectId": item.project_id, "replyTo": item.subject.id, "type": "decision"}
            yield OverviewStep("answer", "cacp/context/share", shared)
    elif item.kind == "answer" and any(party.agent == may.agent for party in item.must_act):
        reply = {
            "message_id": item.subject.id,
            "type": "knowledge.response",
            "payload": {"query_id": item.subject.id},
        }
        yield OverviewStep("answer_mail", "acp/respond", reply)


def _responses(item: OpenItem, own: str, may: Rights) -> Iterator[OverviewStep]:
    at = {"projectId": item.project_id, "contractId": item.subject.id, "version": item.version}
    asked = item.kind == "respond" and any(party.repo_id == own for party in item.must_act)
    if asked and item.by != may.agent:
        yield OverviewStep("agree", "cacp/contract/respond", {**at, "action": "agree"})
    if item.kind != "revise":
        change = {**at, "action": "request_change"}
        yield OverviewStep("request_change", "cacp/contract/respond", change)


def _pressing(item: OpenItem, may: Rights) -> Iterator[OverviewStep]:
    agents = dict.fromkeys(party.agent for party in item.must_act if party.agent)
    others = [agent for agent in agents if agent != may.agent]
    for agent in others[:NUDGED_MAX] if may.sends_mail else ():
        yield OverviewStep("nudge", "acp/send", _nudge(agent, item))
    about: dict[str, Any]
    if item.kind == "handoff" and item.reason == "escalated" and may.coordinates:
        about = {"action": "revoke", "handoff_id": item.subject.id}
        yield OverviewStep("revoke_handoff", "acp/handoff", about)
    if item.kind == "absent":
        if may.owns_all or item.project_id in may.owns:
            about = {"projectId": item.project_id, "repoName": item.subject.name}
            yield OverviewStep("release", "cacp/repo/release", about)
        if may.owns_all:
            about = {"agentId": item.must_act[0].agent}
            yield OverviewStep("revoke", "cacp/agent/revokeKeys", about)


def _nudge(agent: str, item: OpenItem) -> dict[str, Any]:
    return {
        "to": [agent],
        "type": "knowledge.push",
        "priority": "high",
        "topic": "nudge",
        "payload": {"summary": f"Please act, or say what stops you: {about_item(item)}"},
    }


def about_item(item: OpenItem) -> str:
    """What is open, in a line for the agent that must act."""
    version = "" if item.version is None else f" version {item.version}"
    place = "" if item.project is None else f" (project {named(item.project)})"
    return f"{item.kind} {named(item.subject.name)}{version}{place}"
