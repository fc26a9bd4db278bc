"""Values that a provider has told of: ids of what it made, to ask for what exists."""

import json
import re
from collections import defaultdict
from typing import Any

from contracts.openapi_parts import unnamed
from proof.exchange import OperationCheck
from proof.messages import WireAnswer, is_json, media_of

KEPT_MAX = 20
ITEMS_MAX = 5
_WRAPPERS = ("data", "items", "results", "result")


class Learned:
    """The values of path parameters, by the route before them and their name.

    `/users/{userId}` takes the `userId` or `id` of what `/users` answers.
    """

    def __init__(self, operations: list[OperationCheck]) -> None:
        self._wanted: dict[str, set[str]] = defaultdict(set)
        for check in operations:
            for name, before in _placeholders(check.operation.route):
                self._wanted[before].add(name)
        self._known: dict[tuple[str, str], list[Any]] = defaultdict(list)

    def learn(self, check: OperationCheck, answer: WireAnswer) -> None:
        """Take the values out of an answer with success."""
        before = unnamed(check.operation.route).rstrip("/")
        names = self._wanted.get(before)
        if not names or answer.status >= 300 or not is_json(media_of(answer.headers)):
            return
        try:
            objects = _objects(json.loads(answer.body))
        except (ValueError, RecursionError):
            return
        for name in names:
            kept = self._known[before, name]
            for given in objects:
                value = given.get(name, given.get("id"))
                if isinstance(value, str | int) and not isinstance(value, bool):
                    kept.append(value)
            del kept[:-KEPT_MAX]

    def known(self, check: OperationCheck) -> dict[str, tuple[Any, ...]]:
        """The values for an operation, by name of the parameter, each once."""
        values = {
            name: tuple(dict.fromkeys(self._known.get((before, name), ())))
            for name, before in _placeholders(check.operation.route)
        }
        return {name: known for name, known in values.items() if known}


def _placeholders(route: str) -> list[tuple[str, str]]:
    """Each placeholder of a route, with the unnamed route before it."""
    return [
        (match[1], unnamed(route[: match.start()]).rstrip("/"))
        for match in re.finditer(r"\{([^{}/]*)\}", route)
    ]


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects that an answer tells of: itself, or those in its list."""
    if isinstance(value, dict):
        inner = [value[name] for name in _WRAPPERS if isinstance(value.get(name), dict | list)]
        return [value, *(part for wrapped in inner for part in _objects(wrapped))]
    if isinstance(value, list):
        return [part for part in value[:ITEMS_MAX] if isinstance(part, dict)]
    return []
