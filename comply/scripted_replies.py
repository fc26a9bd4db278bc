"""Replies that a test gives to the agent's requests (acpcomply, Agent→Client Requests)."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from comply.record import expected_of
from schemas.jsont import ComplianceTest, ExpectedMessage, JsonObject, JsontStep


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """A reply to one request. `request` is the partial message that the request must match."""

    request: JsonObject
    answer: JsonObject | None
    """`result` or `error` of the answer; None when the real provider answers."""
    late: bool = False
    """Whether the answer waits for the step after the window."""


def scripted_replies(test: ComplianceTest) -> list[ScriptedReply]:
    """The requests that the test replies to, and those whose answers wait.

    A request expected just before the test cancels the turn is answered after the cancellation:
    otherwise there would be nothing to cancel.
    """
    return list(_scripted_replies(test.steps))


def _scripted_replies(steps: list[JsontStep]) -> Iterator[ScriptedReply]:
    for number, step in enumerate(steps):
        cancelled = _cancels(steps[number + 1 :])
        for message in step.expect.messages if step.expect else []:
            if message.client_request is None:
                continue
            request = expected_of(message)[1]
            given, reply = _reply(message)
            if given:
                yield ScriptedReply(request, answer_of(reply), message.late)
            elif cancelled or message.late:
                yield ScriptedReply(request, None, late=True)


def _reply(message: ExpectedMessage) -> tuple[bool, JsonValue]:
    """Whether there is a reply, beside the request or in it, and which."""
    if "reply" in message.model_fields_set:
        return True, message.reply
    request = message.client_request or {}
    return "reply" in request, request.get("reply")


def answer_of(reply: JsonValue) -> JsonObject:
    """`result` or `error` of an answer, from a reply that is one or that is the result itself."""
    if isinstance(reply, dict):
        named = reply.keys() - {"jsonrpc", "id"}
        if named in ({"result"}, {"error"}):
            return {name: reply[name] for name in named}
    return {"result": reply}


def _cancels(steps: list[JsontStep]) -> bool:
    """Whether the next step, delays aside, cancels a turn."""
    step = next((candidate for candidate in steps if candidate.delay_ms is None), None)
    sent = step.send if step is not None else None
    return sent is not None and sent.get("method") == "session/cancel"
