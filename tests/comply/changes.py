"""Mutants of a complete agent, generated: each says one kind of message otherwise than it should.

A change is data, so that `garbled.py` can make it in the agent's process. Whether it breaks a rule
is judged by the plain validator over the official schema, and by what JSON-RPC says of the frame.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from comply.frames import FOLDER
from comply.id_tracking import follow
from comply.record import Frame

Change = dict[str, Any]
"""`on`: method, tag and `answer` of the messages to change; `at` and `value`, or `frame`."""
FRAMES = (
    *("no jsonrpc", "old jsonrpc", "batch", "no json", "twice", "text before", "no member"),
    *("text id", "other id", "no id", "true id", "both", "neither", "bad error"),
)
"""What can be wrong with a frame, whatever it says."""
ANSWERS = frozenset(FRAMES[-7:]) | {"twice"}
VALUES: tuple[Any, ...] = (..., None, True, -7, 1.5, "comply", "", [], {}, [1], {"x": 1})
"""What may stand in a field's place; ... takes it out."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """`test` is one in which the agent says such a message."""

    change: Change
    test: str
    breaks: bool

    def __str__(self) -> str:
        return json.dumps(self.change)


def mutants(said: Mapping[str, Sequence[Frame]], version: int) -> list[Mutant]:
    """Every change of every kind of message that the agent said, by test."""
    schema = json.loads((FOLDER / f"v{version}.json").read_text())
    found: dict[str, Mutant] = {}
    for test, frames in said.items():
        talk = [frame for frame in frames if frame.kind != "mcp"]
        for entry in follow((frame.sent, frame.message) for frame in talk):
            message = entry.message
            if entry.sent or not isinstance(message, dict) or "error" in message:
                continue
            for mutant in _of(message, entry.request or {}, test, schema["$defs"]):
                found.setdefault(str(mutant), mutant)
    return list(found.values())


def _of(message: Change, request: Change, test: str, definitions: Any) -> Iterator[Mutant]:
    answer = "result" in message
    method = request.get("method") if answer else message["method"]
    update = message.get("params", {}).get("update", {}) if method == "session/update" else {}
    on = {"method": method, "answer": answer, "tag": update.get("sessionUpdate")}
    part = "result" if answer else "params"
    for frame in FRAMES:
        if (frame in ANSWERS) <= answer:
            yield Mutant({"on": on, "frame": frame}, test, breaks=True)
    definition = _definition(str(method), answer, definitions)
    if definition is None or part not in message:
        return
    plain = Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": definitions})
    for at in _places(message[part], ()):
        for value in VALUES:
            changed = put(message[part], at, value)
            if changed is not ... and changed != message[part]:
                given = {"out": True} if value is ... else {"value": value}
                change = {"on": on, "at": [part, *at], **given}
                yield Mutant(change, test, breaks=not plain.is_valid(changed))


def _definition(method: str, answer: bool, definitions: Any) -> str | None:
    ends = ("Response",) if answer else ("Request", "Notification")
    return next(
        (
            name
            for name, one in definitions.items()
            if one.get("x-method") == method and name.endswith(ends)
        ),
        None,
    )


def _places(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Every field and element below."""
    if not isinstance(value, dict | list):
        return
    keys: Any = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield (*place, key)
        yield from _places(value[key], (*place, key))


def put(value: Any, at: Sequence[Any], new: Any) -> Any:
    """A copy with another value at a place, or without it; ... when there is no such place."""
    copied = copy.deepcopy(value)
    inner = copied
    for key in at[:-1]:
        if not _has(inner, key):
            return ...
        inner = inner[key]
    if not _has(inner, at[-1]):
        return ...
    if new is ...:
        del inner[at[-1]]
    else:
        inner[at[-1]] = new
    return copied


def _has(value: Any, key: Any) -> bool:
    if isinstance(value, dict):
        return key in value
    return isinstance(value, list) and isinstance(key, int) and key < len(value)
