"""What a test itself answers to the agent's requests (acpcomply, Agent→Client Requests)."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from comply.record import expected_of
from schemas.jsont import ComplianceTest, ExpectedMessage, JsonObject, Step


@dataclass(frozen=True, slots=True)
class Canned:
    """How one request is answered: `request` is the partial message that it meets."""

    request: JsonObject
    answer: JsonObject | None
    """`result` or `error` of the answer; None to have the real provider make it."""
    late: bool = False
    """Answered only when the step is done that comes after the window."""


def canned(test: ComplianceTest) -> list[Canned]:
    """The requests that the test replies to, and those that wait for the end of a turn.

    A request that a window expects just before the test cancels the turn is outstanding when that
    comes: otherwise there would be nothing to cancel.
    """
    return list(_canned(test.steps))


def _canned(steps: list[Step]) -> Iterator[Canned]:
    for number, step in enumerate(steps):
        cancelled = _cancels(steps[number + 1 :])
        for message in step.expect.messages if step.expect else []:
            if message.client_request is None:
                continue
            request = expected_of(message)[1]
            given, reply = _reply(message)
            if given:
                yield Canned(request, answer_of(reply), message.late)
            elif cancelled or message.late:
                yield Canned(request, None, late=True)


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


def _cancels(steps: list[Step]) -> bool:
    """Whether the next thing that is done cancels a turn."""
    step = next((one for one in steps if one.delay_ms is None), None)
    sent = step.send if step is not None else None
    return sent is not None and sent.get("method") == "session/cancel"
