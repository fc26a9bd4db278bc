"""Matches JSON-RPC answers to requests, and finds messages of the subject that are malformed, or
that answer a request twice or none at all (JSON-RPC 2.0, §4 and §5).

Tests send wrong messages on purpose, so only the subject's are judged.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from schemas.jsont import JsonObject

Said = tuple[bool, JsonValue]
"""Whether the runner sent it, and the message. A line that is not JSON is a string."""
Id = tuple[str, JsonValue]


@dataclass(frozen=True, slots=True)
class TrackedMessage:
    """The message at `place`. `problem` names the JSON-RPC rule that it breaks.

    `request` is the request that it answers, or the message itself if it is a request; None for a
    notification.
    """

    place: int
    sent: bool
    message: JsonValue
    request: JsonObject | None = None
    problem: str | None = None


def follow(messages: Iterable[Said]) -> Iterator[TrackedMessage]:
    """Every message, in order."""
    runner_ids, subject_ids = _Ids(), _Ids()
    for place, (sent, message) in enumerate(messages):
        own_ids, other_ids = (runner_ids, subject_ids) if sent else (subject_ids, runner_ids)
        try:
            request = _taken(message, own_ids, other_ids)
        except _Wrong as wrong:
            if sent:
                runner_ids.note_unreadable(message)
                yield TrackedMessage(place, sent, message)
            else:
                yield TrackedMessage(place, sent, message, problem=str(wrong))
        else:
            yield TrackedMessage(place, sent, message, request)


class _Wrong(Exception):
    """The message breaks a rule of JSON-RPC."""


@dataclass(slots=True)
class _Ids:
    """The requests of one side, by id: unanswered and answered."""

    waiting: dict[Id, list[JsonObject]] = field(default_factory=dict)
    answered: Counter[Id] = field(default_factory=Counter)
    unreadable: int = 0
    """Messages that may be answered by an error with the id null, since they can't be read."""

    def ask(self, message: JsonObject) -> None:
        self.waiting.setdefault(_id(message), []).append(message)

    def answer(self, message: JsonObject) -> JsonObject:
        key = _id(message)
        if waiting := self.waiting.get(key):
            self.answered[key] += 1
            return waiting.pop()
        if key[1] is None and "error" in message and self.unreadable:
            self.unreadable -= 1
            return {}
        if self.answered[key]:
            raise _Wrong(f"answers request {_shown(key)} again")
        raise _Wrong(f"answers request {_shown(key)}, which was never sent")

    def note_unreadable(self, message: JsonValue) -> None:
        """Note a message that is wrong on purpose: an answer may carry its id or null."""
        for part in message if isinstance(message, list) else [message]:
            self.unreadable += 1
            if isinstance(part, dict) and _is_id(part.get("id")):
                self.ask(part)


def _taken(message: JsonValue, own_ids: _Ids, other_ids: _Ids) -> JsonObject | None:
    """Record the message. Returns the request that it is or answers. Raises _Wrong."""
    if not isinstance(message, dict):
        what = "a list" if isinstance(message, list) else str(message)[:80]
        raise _Wrong(f"a line is not a message: {what}")
    if message.get("jsonrpc") != "2.0":
        raise _Wrong('jsonrpc should be "2.0"')
    answers = [name for name in ("result", "error") if name in message]
    if "id" in message and not _is_id(message["id"]):
        raise _Wrong("id should be a string, a whole number or null")
    if "method" in message:
        return _called(message, answers, own_ids)
    if len(answers) != 1:
        both = "both result and error" if answers else "neither method nor result nor error"
        raise _Wrong(f"a message has {both}")
    if "id" not in message:
        raise _Wrong("an answer has no id")
    return other_ids.answer(message)


def _called(message: JsonObject, answers: Sequence[str], own_ids: _Ids) -> JsonObject | None:
    """Record a request or notification. Returns the request, None for a notification."""
    method = message["method"]
    if not isinstance(method, str):
        raise _Wrong("method should be a string")
    if answers:
        raise _Wrong(f"{method} has a method and a {answers[0]}")
    if not isinstance(message.get("params", {}), dict | list | None):
        raise _Wrong(f"{method}: params should be an object or a list")
    if "id" not in message:
        return None
    if own_ids.waiting.get(_id(message)):
        raise _Wrong(f"{method} has the id {_shown(_id(message))} of a request that still waits")
    own_ids.ask(message)
    return message


def _is_id(id: JsonValue) -> bool:
    whole = isinstance(id, int) or (isinstance(id, float) and id.is_integer())
    return id is None or isinstance(id, str) or (whole and not isinstance(id, bool))


def _id(message: JsonObject) -> Id:
    """1 and 1.0 are one number; "1" is another id."""
    id = message.get("id")
    return "text" if isinstance(id, str) else "number", id


def _shown(key: Id) -> str:
    id = key[1]
    return "null" if id is None else f'"{id}"' if isinstance(id, str) else str(id)
