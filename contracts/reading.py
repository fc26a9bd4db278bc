"""What readers of JSON dialects share: they note what they can't read; their work is bounded."""

from collections.abc import Mapping
from typing import Any

from contracts.model import (
    DocumentProblem,
    Draft,
    Interface,
    Located,
    Operation,
)
from contracts.refs import Resolver, files_of
from contracts.work import Work
from schemas.dialect import DialectName
from schemas.plain import one_line

STEPS_MAX = 200_000
"""Parts of a document that are read, each time that they are referred to."""
NOTES_MAX = 100
SHOWN_MAX = 60
WHY_MAX = 400

BESIDE = frozenset({"dialect", "name", "title", "summary", "description", "version", "examples"})
"""Words for readers that stand beside a document which is text: a schema of GraphQL, `.proto`."""

HTTP_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


class ContentReading:
    """One content while it is read: its references, and what is wrong with it."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content
        self.files = files_of(content)
        self.resolver = Resolver(content, self.files)
        self.problems: list[DocumentProblem] = []
        self.warnings: list[DocumentProblem] = []
        self.unread: list[Located] = []
        self._work = Work(STEPS_MAX)

    def step(self) -> None:
        """Count one part that is read. Raises TooMuchWork at the end of the budget."""
        self._work.spend()

    def wrong(self, place: Located, why: str) -> None:
        """Note what can't be read, and that it was left out."""
        self.problems.append(DocumentProblem(place.path, in_file(place, why)))
        self.unread.append(place)

    def misfit(self, place: Located, why: str) -> None:
        """Note what is wrong and stands in the inner form all the same."""
        self.problems.append(DocumentProblem(place.path, in_file(place, why)))

    def warn(self, place: Located, why: str) -> None:
        self.warnings.append(DocumentProblem(place.path, in_file(place, why)))

    def leave(self, place: Located) -> None:
        """Note what the inner form has no place for."""
        self.unread.append(place)

    def follow(self, place: Located) -> Located | None:
        """What stands at a place, or where its `$ref` leads. None, and noted, if nowhere."""
        self.step()
        if not (isinstance(place.schema, dict) and isinstance(place.schema.get("$ref"), str)):
            return place
        target = self.resolver.resolve(place)
        if isinstance(target, Located):
            return target
        self.wrong(place, target.why)
        return None

    def members(self, place: Located, what: str) -> Mapping[str, Any] | None:
        """The members of an object at a place. None, and noted, if there is something else."""
        if isinstance(place.schema, dict):
            return place.schema
        self.wrong(place, f"{what} is an object; this is {shown(place.schema)}.")
        return None

    def interface(
        self,
        dialect: DialectName,
        draft: Draft,
        operations: list[Operation],
        schemes: Mapping[str, Any] | None = None,
        servers: tuple[str, ...] = (),
    ) -> Interface:
        return Interface(
            dialect,
            draft,
            tuple(operations),
            self.content,
            self.files,
            cut(self.problems),
            cut(self.warnings),
            schemes or {},
            servers,
            tuple(self.unread),
        )


def cut(notes: list[DocumentProblem]) -> tuple[DocumentProblem, ...]:
    """The first notes, and how many more there are."""
    listed = tuple(dict.fromkeys(notes[: NOTES_MAX * 10]))[:NOTES_MAX]
    more = len(notes) - len(listed)
    if len(notes) <= NOTES_MAX:
        return listed
    return (*listed, DocumentProblem((), f"{more} more like these are not listed."))


def at(place: Located, *names: str | int) -> Located:
    """The place below another, which must be there."""
    value = place.schema
    for name in names:
        value = value[name]
    return Located(value, (*place.path, *names), place.file)


def in_file(place: Located, why: str) -> str:
    return one_line(f"In {place.file[:SHOWN_MAX]}: {why}" if place.file else why, WHY_MAX)


def shown(value: Any) -> str:
    """A value as a message names it."""
    if isinstance(value, str):
        return f'"{one_line(value[: SHOWN_MAX + 1], SHOWN_MAX)}"'
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return one_line(str(value)[:SHOWN_MAX], SHOWN_MAX) if abs(value) < 1e30 else "a number"
