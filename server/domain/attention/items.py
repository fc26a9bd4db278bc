"""The parts of an attention item, whatever it is about."""

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from schemas.attention import AttentionKind, SubjectType, Urgency
from schemas.base import iso, present
from server.domain.agents import same_agent
from server.domain.untrusted import inline

URGENCIES: tuple[Urgency, ...] = ("urgent", "high", "normal", "low")
"""From the most urgent to the least."""
VALUE_MAX = 8_000
"""Characters of a value in an item's detail; the rest is cut."""
NAME_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Actor:
    """An agent that asks what waits for it. `repos` has the repo that it acts for in each project;
    `human`: its key is a human's."""

    agent_id: str
    repos: Mapping[str, str]
    human: bool = False


@dataclass(frozen=True, slots=True)
class ProjectNames:
    """A project with its repos' names by id."""

    project_id: str
    name: str
    repos: Mapping[str, str]

    def repo(self, repo_id: str) -> str:
        """A repo's name; its id while the repo is unknown here."""
        return self.repos.get(repo_id, repo_id)


class Opening(NamedTuple):
    """That something waits, and for whom: for `repo_id` of the project or, if that is empty, for
    every repo of it except `not_repo`. Never for `not_agent`, who could not take the step.

    `since` is a stamp. Openings follow from the facts of their subject alone, so a node may keep
    them until those change.
    """

    id: str
    kind: AttentionKind
    urgency: Urgency
    since: int
    project_id: str
    repo_id: str = ""
    not_repo: str = ""
    not_agent: str = ""

    def concerns(self, who: Actor) -> bool:
        own = who.repos.get(self.project_id)
        if own is None or own == self.not_repo or self.repo_id not in ("", own):
            return False
        return not (self.not_agent and same_agent(self.not_agent, who.agent_id))


@dataclass(frozen=True, slots=True)
class NextStep:
    """A call that closes an item (`schemas.attention.AttentionStep`)."""

    tool: str | None
    method: str
    params: Mapping[str, Any]
    fill: Mapping[str, str] = field(default_factory=dict)
    tool_params: Mapping[str, Any] = field(default_factory=dict)

    def wire(self) -> dict[str, Any]:
        return present(
            {
                "tool": self.tool,
                "method": self.method,
                "params": dict(self.params),
                "toolParams": dict(self.tool_params) or None,
                "fill": dict(self.fill) or None,
            }
        )


@dataclass(frozen=True, slots=True)
class ItemSubject:
    """What an item is about."""

    type: SubjectType
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """One thing that waits for an agent (`schemas.attention.AttentionItem`)."""

    id: str
    kind: AttentionKind
    urgency: Urgency
    since: int
    subject: ItemSubject
    summary: str
    detail: Mapping[str, Any]
    next: tuple[NextStep, ...]
    project: ProjectNames | None = None
    repo_id: str | None = None

    @property
    def rank(self) -> tuple[int, int, str]:
        """The order of lists: the most urgent first, then the oldest."""
        return rank_of(self.urgency, self.since, self.id)

    def wire(self) -> dict[str, Any]:
        return present(
            {
                "id": self.id,
                "kind": self.kind,
                "urgency": self.urgency,
                "projectId": self.project and self.project.project_id,
                "project": self.project and self.project.name,
                "repoId": self.repo_id,
                "subject": {
                    "type": self.subject.type,
                    "id": self.subject.id,
                    "name": self.subject.name,
                },
                "since": iso(self.since),
                "summary": self.summary,
                "detail": dict(self.detail),
                "next": [step.wire() for step in self.next],
            }
        )


def rank_of(urgency: Urgency, since: int, item_id: str) -> tuple[int, int, str]:
    return URGENCIES.index(urgency), since, item_id


def item_id(kind: str, *parts: object) -> str:
    """An id that changes with any of its parts. It holds no text of agents, whose ids and names may
    be anything."""
    text = orjson.dumps(parts, default=str)
    return f"{kind}-{hashlib.sha256(text).hexdigest()[:24]}"


def named(name: str) -> str:
    """A name that an agent has given, in a summary."""
    return inline(name, NAME_WIDTH)


def bounded(value: Any, most: int = VALUE_MAX) -> Any:
    """A value of an agent, or its beginning as text when it is longer than `most` characters of
    JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if len(text) <= most:
        return value
    return f"{text[:most]}… ({len(text) - most} more characters)"


T = TypeVar("T")


class ItemCache(Generic[T]):
    """What was made of subjects before. A key must differ whenever its subject does."""

    def __init__(self, most: int = 2_000) -> None:
        self._most = most
        self._items: dict[Hashable, T] = {}

    def get(self, key: Hashable) -> T | None:
        return self._items.get(key)

    def put(self, key: Hashable, item: T) -> None:
        if len(self._items) >= self._most:
            self._items.clear()
        self._items[key] = item
