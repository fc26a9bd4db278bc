"""What a person can do on the page: each action calls one JSON-RPC method as that person.

An action is a form's fields, and the params that they become. Who may do it is the method's own
decision; the page adds only that the caller must be a person.

A field must not have the name of a property of forms, such as `id`, which scripts would get in its
place: the morph took a form for another one, and lost what was typed in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.plain import one_line
from server.domain.errors import InvalidInput

Fields = Mapping[str, str]
Params = dict[str, Any]
SUMMARY_MAX = 300
"""Characters of what a message says in its summary; the rest goes into its details."""


@dataclass(frozen=True, slots=True)
class PageAction:
    """An action of the page. `done` says in a line what its result means."""

    name: str
    label: str
    method: str
    params: Callable[[Fields], Params]
    done: Callable[[Any], str]
    is_final: bool = False
    """What it does can't be undone: its button asks before."""


def _needed(fields: Fields, name: str) -> str:
    value = fields.get(name, "").strip()
    if not value:
        raise InvalidInput(f"{name}: say something here, it is needed", path=name)
    return value


def _optional(fields: Fields, *names: str) -> Params:
    return {name: fields[name].strip() for name in names if fields.get(name, "").strip()}


def _decision(decision: str) -> Callable[[Fields], Params]:
    def params(fields: Fields) -> Params:
        given = {"message_id": _needed(fields, "message_id"), "decision": decision}
        return given | _optional(fields, "comment")

    return params


def _answer(fields: Fields) -> Params:
    given = {
        "projectId": _needed(fields, "projectId"),
        "type": "decision",
        "content": {"answer": _needed(fields, "answer")},
        "replyTo": _needed(fields, "packetId"),
    }
    contract = _optional(fields, "contractId")
    return given | ({"relatedContracts": [contract["contractId"]]} if contract else {})


def _response(action: str) -> Callable[[Fields], Params]:
    def params(fields: Fields) -> Params:
        given: Params = {
            "projectId": _needed(fields, "projectId"),
            "contractId": _needed(fields, "contractId"),
            "version": _number(fields, "version"),
            "action": action,
        }
        if action == "request_change":
            return given | {"comment": _needed(fields, "comment")}
        return given | _optional(fields, "comment")

    return params


def _number(fields: Fields, name: str) -> int:
    text = _needed(fields, name)
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInput(f"{name}: should be a whole number", path=name)
    return int(text)


def _nudge(fields: Fields) -> Params:
    about = one_line(_needed(fields, "about"), SUMMARY_MAX)
    details = _optional(fields, "item", "projectId", "contractId", "comment")
    return {
        "to": [_needed(fields, "to")],
        "type": "knowledge.push",
        "priority": "high",
        "topic": "nudge",
        "payload": {
            "summary": f"A person asks you to act, or to say what stops you: {about}",
            "details": details | {"next": "cacp/attention/list shows what waits for you"},
        },
    }


def _mail_answer(fields: Fields) -> Params:
    asked, answer = _needed(fields, "message_id"), _needed(fields, "answer")
    payload = {"query_id": asked, "summary": one_line(answer, SUMMARY_MAX), "answer": answer}
    return {"message_id": asked, "type": "knowledge.response", "payload": payload}


def _revocation(fields: Fields) -> Params:
    return {
        "action": "revoke",
        "handoff_id": _needed(fields, "handoff_id"),
        "detail": _needed(fields, "detail"),
    }


def _message(fields: Fields) -> Params:
    text = _needed(fields, "text")
    payload: Params = {"summary": one_line(text, SUMMARY_MAX)}
    if payload["summary"] != text:
        payload["details"] = {"text": text}
    recipients = _needed(fields, "to").replace(",", " ").split()
    given = {"to": recipients, "type": "knowledge.push", "payload": payload}
    return given | _optional(fields, "priority", "topic", "thread_id", "reply_to", "team")


def _read(result: Any) -> str:
    count = sum(each["outcome"] in ("read", "already") for each in result["acked"])
    return f"{count} message{'' if count == 1 else 's'} marked as read."


def _to(result: Any) -> str:
    """The recipients of a message, and whether it waits for a human."""
    to = ", ".join(one_line(receipt["recipient"], 80) for receipt in result["receipts"][:3])
    more = len(result["receipts"]) - 3
    return to + (f" and {more} more" if more > 0 else "")


def _decided(result: Any) -> str:
    if "handoff" in result:
        return f"The handoff is {result['outcome']}, and {result['handoff']['status']} now."
    if result["outcome"] == "approved":
        return f"The message is approved, and goes to {_to(result)}."
    return "The message is refused, and goes to nobody."


def _responded(result: Any) -> str:
    at = f"version {result['version']}"
    if result["status"] == "change_requested":
        return f"You asked for a change of {at}. The contract is {result['contractStatus']} now."
    return f"You agreed to {at}. The contract is {result['contractStatus']} now."


def _sent(result: Any) -> str:
    if result.get("held") == "gate":
        return f"The message to {_to(result)} waits for a person's approval."
    return f"Sent to {_to(result)}."


def _released(result: Any) -> str:
    former, now = one_line(result["formerAgentId"], 80), result.get("agentId")
    taken = f"; {one_line(now, 80)} holds it now" if now else ", and free now"
    return f"Repo {one_line(result['repoName'], 80)} is released from {former}{taken}."


def _revoked(result: Any) -> str:
    count, agent = len(result["keyIds"]), one_line(result["agentId"], 80)
    return f"{count} key{'' if count == 1 else 's'} of {agent} revoked: it is refused from now on."


ACTIONS: dict[str, PageAction] = {
    action.name: action
    for action in (
        PageAction("approve", "Approve", "acp/approve", _decision("approve"), _decided),
        PageAction("refuse", "Refuse", "acp/approve", _decision("refuse"), _decided, is_final=True),
        PageAction(
            "answer",
            "Answer",
            "cacp/context/share",
            _answer,
            lambda result: "Your answer is shared with the project.",
        ),
        PageAction("answer-mail", "Answer", "acp/respond", _mail_answer, _sent),
        PageAction(
            "revoke-handoff",
            "Revoke handoff",
            "acp/handoff",
            _revocation,
            lambda result: f"The handoff is {result['handoff']['status']} now.",
            is_final=True,
        ),
        PageAction("agree", "Agree", "cacp/contract/respond", _response("agree"), _responded),
        PageAction(
            "request-change",
            "Request a change",
            "cacp/contract/respond",
            _response("request_change"),
            _responded,
        ),
        PageAction("nudge", "Nudge", "acp/send", _nudge, lambda result: f"Nudged {_to(result)}."),
        PageAction(
            "revoke",
            "Revoke keys",
            "cacp/agent/revokeKeys",
            lambda fields: {"agentId": _needed(fields, "agentId")},
            _revoked,
            is_final=True,
        ),
        PageAction(
            "release",
            "Release repo",
            "cacp/repo/release",
            lambda fields: {
                "projectId": _needed(fields, "projectId"),
                "repoName": _needed(fields, "repoName"),
            },
            _released,
            is_final=True,
        ),
        PageAction(
            "replay",
            "Send again",
            "acp/replay",
            lambda fields: {"message_id": _needed(fields, "message_id")},
            _sent,
        ),
        PageAction(
            "mark-read",
            "Mark as read",
            "acp/ack",
            lambda fields: {"message_ids": _needed(fields, "ids").split()},
            _read,
        ),
        PageAction("message", "Send", "acp/send", _message, _sent),
    )
}
"""Every action by name."""
