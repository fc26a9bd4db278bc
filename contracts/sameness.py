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
Reference = tuple[str, str]
"""The file that a `$ref` stands in, and its text."""


class Sameness:
    """Two interfaces of one draft."""

    def __init__(self, before: Interface, after: Interface) -> None:
        self._resolvers = [
            Resolver(side.document, side.files, side.draft == "2020-12") for side in (before, after)
        ]
        self._same: set[Reference] = set()
        self._led: dict[Reference, list[Reference] | None] = {}

    def same(self, before: Located, after: Located) -> bool:
        """Whether two schemas are certainly the same, at whatever places they stand."""
        if before.file != after.file or text_of(before.schema) != text_of(after.schema):
            return False
        return self._targets_same(before.schema, before.file)

    def _targets_same(self, schema: Any, file: str) -> bool:
        """Whether every reference in a schema leads to the same on both sides."""
        waiting = [(file, ref) for ref in references(schema)]
        opened: set[Reference] = set()
        while waiting:
            reference = waiting.pop()
            if reference in opened or reference in self._same:
                continue
            opened.add(reference)
            inner = self._inner(reference)
            if inner is None:
                return False
            waiting += inner
        self._same |= opened
        return True

    def _inner(self, reference: Reference) -> list[Reference] | None:
        """The references in what a reference leads to; None if that is not the same."""
        if reference not in self._led:
            at, ref = reference
            led = Located({"$ref": ref}, (), at)
            was, now = (resolver.resolve(led) for resolver in self._resolvers)
            self._led[reference] = (
                [(was.file, inner) for inner in references(was.schema)]
                if isinstance(was, Located)
                and isinstance(now, Located)
                and (was.file, was.path) == (now.file, now.path)
                and text_of(was.schema) == text_of(now.schema)
                else None
            )
        return self._led[reference]


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
