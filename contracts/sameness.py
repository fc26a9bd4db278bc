"""Which schemas of two documents are the same, with all that they refer to.

Most of what a new version of a document holds is as it was. What refers to nothing that changed
needs no comparison.
"""

from collections.abc import Iterator
from typing import Any

from contracts.json_text import text_of
from contracts.model import Interface, Located
from contracts.refs import Resolver

DEPTH_MAX = 200


class Sameness:
    """Two interfaces of one draft."""

    def __init__(self, before: Interface, after: Interface) -> None:
        self._resolvers = [
            Resolver(side.document, side.files, side.draft == "2020-12") for side in (before, after)
        ]
        self._known: dict[tuple[str, str], bool] = {}

    def same(self, before: Located, after: Located) -> bool:
        """Whether two schemas are certainly the same, at whatever places they stand."""
        if before.file != after.file or text_of(before.schema) != text_of(after.schema):
            return False
        return self._targets_same(before.schema, before.file)

    def _targets_same(self, schema: Any, file: str) -> bool:
        """Whether every reference in a schema leads to the same on both sides."""
        waiting = [(ref, file) for ref in references(schema)]
        opened: set[tuple[str, str]] = set()
        while waiting:
            ref, at = waiting.pop()
            if (at, ref) in opened or self._known.get((at, ref)):
                continue
            opened.add((at, ref))
            reference = Located({"$ref": ref}, (), at)
            was, now = (resolver.resolve(reference) for resolver in self._resolvers)
            if not isinstance(was, Located) or not isinstance(now, Located):
                return False
            if was.file != now.file:
                return False
            if was.path != now.path or text_of(was.schema) != text_of(now.schema):
                return False
            waiting += [(inner, was.file) for inner in references(was.schema)]
        self._known.update(dict.fromkeys(opened, True))
        return True


def references(schema: Any) -> Iterator[str]:
    """Every `$ref` in a schema. Anchors and ids within it are left to `resolve`."""
    waiting = [(schema, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > DEPTH_MAX:
            yield "#too-deep"
        elif isinstance(value, dict):
            for name, member in value.items():
                if name in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(member, str):
                    yield member
                elif isinstance(member, dict | list):
                    waiting.append((member, depth + 1))
        elif isinstance(value, list):
            waiting += [(member, depth + 1) for member in value if isinstance(member, dict | list)]
