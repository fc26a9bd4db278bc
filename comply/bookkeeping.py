"""JSON-RPC's bookkeeping over what two sides said: which answer belongs to which request, and what
of the subject's is no message, answers twice, or answers nothing (JSON-RPC 2.0, §4 and §5).

Tests send wrong things on purpose: only what was heard is judged.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from schemas.jsont import JsonObject

Said = tuple[bool, JsonValue]
"""Whether we sent it, and the message. A line that is not JSON is its text."""
Id = tuple[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Entry:
    """What was said at `place`. `problem` is what JSON-RPC has against it.

    `request` is the one that it answers, or is itself; None for a notification.
    """

    place: int
    sent: bool
    message: JsonValue
    request: JsonObject | None = None
    problem: str | None = None


def follow(said: Iterable[Said]) -> Iterator[Entry]:
    """Every message in its turn."""
    ours, theirs = _Ids(), _Ids()
    for place, (sent, message) in enumerate(said):
        mine, other = (ours, theirs) if sent else (theirs, ours)
        try:
            request = _taken(message, mine, other)
        except _Wrong as wrong:
            if sent:
                ours.note_unreadable(message)
                yield Entry(place, sent, message)
            else:
                yield Entry(place, sent, message, problem=str(wrong))
        else:
            yield Entry(place, sent, message, request)


class _Wrong(Exception):
    """It breaks a rule of JSON-RPC."""


@dataclass(slots=True)
class _Ids:
    """The requests of one side, by id: those that wait for an answer, and those that had one."""

    waiting: dict[Id, list[JsonObject]] = field(default_factory=dict)
    answered: Counter[Id] = field(default_factory=Counter)
    unreadable: int = 0
    """Messages whose sender may be told, with the id null, that they can't be read."""

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
        """Of what a test sends wrong on purpose: it may be answered, by its id or by null."""
        for one in message if isinstance(message, list) else [message]:
            self.unreadable += 1
            if isinstance(one, dict) and _is_id(one.get("id")):
                self.ask(one)


def _taken(message: JsonValue, mine: _Ids, other: _Ids) -> JsonObject | None:
    """Note it; the request that it is or answers. Raises _Wrong."""
    if not isinstance(message, dict):
        what = "a list" if isinstance(message, list) else str(message)[:80]
        raise _Wrong(f"a line is no message: {what}")
    if message.get("jsonrpc") != "2.0":
        raise _Wrong('jsonrpc should be "2.0"')
    answers = [name for name in ("result", "error") if name in message]
    if "id" in message and not _is_id(message["id"]):
        raise _Wrong("id should be a string, a whole number or null")
    if "method" in message:
        return _called(message, answers, mine)
    if len(answers) != 1:
        both = "both result and error" if answers else "neither method nor result nor error"
        raise _Wrong(f"a message has {both}")
    if "id" not in message:
        raise _Wrong("an answer has no id")
    return other.answer(message)


def _called(message: JsonObject, answers: Sequence[str], mine: _Ids) -> JsonObject | None:
    """A request or notification."""
    method = message["method"]
    if not isinstance(method, str):
        raise _Wrong("method should be a string")
    if answers:
        raise _Wrong(f"{method} has a method and a {answers[0]}")
    if not isinstance(message.get("params", {}), dict | list | None):
        raise _Wrong(f"{method}: params should be an object or a list")
    if "id" not in message:
        return None
    if mine.waiting.get(_id(message)):
        raise _Wrong(f"{method} has the id {_shown(_id(message))} of a request that still waits")
    mine.ask(message)
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
