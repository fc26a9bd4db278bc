"""Teamspaces: the manifest, roles and `acp/team` (acp-canonical §8)."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from schemas.acp import ACPGivenArtifactRef, ACPParams, ACPStrict
from schemas.base import Count, Identifier, Result, Text, Timestamp
from schemas.handoff import Said, check_action

TeamRole = Literal["coordinator", "researcher", "executor", "reviewer", "integrator"]
TeamStatus = Literal["active", "closed"]
TaskKind = Literal["execution", "merge", "research", "review"]
TaskStatus = Literal["open", "blocked", "completed"]
TeamAction = Literal[
    "create",
    "close",
    "addMember",
    "removeMember",
    "changeRole",
    "createTask",
    "assign",
    "block",
    "unblock",
    "completeTask",
    "decide",
    "registerArtifact",
    "get",
    "list",
    "log",
]
TeamLog = Literal["messages", "handoffs", "roles", "decisions", "artifacts"]

TEAMSPACE_ID = r"^[a-z0-9][a-z0-9-]{0,63}$"
TeamspaceId = Annotated[str, StringConstraints(pattern=TEAMSPACE_ID)]
"""Names the teamspace's folder: 1 to 64 lower-case letters, digits and hyphens."""

MEMBERS_MAX = 200


class TeamMember(ACPStrict):
    agent_id: Identifier
    role: TeamRole


class TeamspaceManifest(ACPStrict):
    """What a teamspace is and who is in it (§8, §15.2)."""

    protocol: Literal["acp"]
    version: Literal["1.0.0"]
    teamspace_id: TeamspaceId
    name: Identifier
    purpose: Text
    status: TeamStatus
    created_by: Identifier
    created_at: Timestamp
    closed_at: Timestamp | None = None
    members: Annotated[list[TeamMember], Field(min_length=1, max_length=MEMBERS_MAX)]

    @model_validator(mode="after")
    def _has_a_coordinator(self) -> Self:
        if not any(member.role == "coordinator" for member in self.members):
            raise ValueError("members: a teamspace has one coordinator at least")
        return self


NEEDED: dict[TeamAction, tuple[str, ...]] = {
    "create": ("team", "name"),
    "close": ("team",),
    "addMember": ("team", "agent_id", "role"),
    "removeMember": ("team", "agent_id"),
    "changeRole": ("team", "agent_id", "role"),
    "createTask": ("team", "task_id", "title"),
    "assign": ("team", "task_id", "agent_id"),
    "block": ("team", "task_id", "code", "detail"),
    "unblock": ("team", "task_id"),
    "completeTask": ("team", "task_id"),
    "decide": ("team", "title", "detail"),
    "registerArtifact": ("team", "artifact_id", "ref"),
    "get": ("team",),
    "list": (),
    "log": ("team", "log"),
}
TAKEN: dict[TeamAction, tuple[str, ...]] = {
    "create": ("purpose", "members"),
    "close": ("detail",),
    "addMember": (),
    "removeMember": ("detail",),
    "changeRole": ("detail",),
    "createTask": ("kind", "high_risk", "agent_id", "detail"),
    "assign": ("detail",),
    "block": (),
    "unblock": ("detail",),
    "completeTask": ("detail",),
    "decide": ("task_id",),
    "registerArtifact": ("task_id", "detail"),
    "get": (),
    "list": ("status",),
    "log": ("cursor", "limit"),
}
"""The required and the optional params of each action."""


class TeamParams(ACPParams):
    """Params of `acp/team`; `action` says which of them are needed."""

    action: TeamAction
    team: TeamspaceId | None = None
    name: Identifier | None = None
    purpose: Text | None = None
    members: Annotated[list[TeamMember], Field(max_length=MEMBERS_MAX)] | None = None
    """Further members. The creator of the teamspace is its first coordinator."""
    agent_id: Identifier | None = None
    role: TeamRole | None = None
    task_id: Identifier | None = None
    title: Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"\S")] | None = (
        None
    )
    kind: TaskKind = "execution"
    high_risk: bool | None = None
    """Only the roles of §8.4 may mark it complete."""
    code: Identifier | None = None
    """The reason code of a block."""
    detail: Said | None = None
    artifact_id: Identifier | None = None
    ref: ACPGivenArtifactRef | None = None
    status: TeamStatus | None = None
    log: TeamLog | None = None
    cursor: Count | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100

    @model_validator(mode="after")
    def _fits_its_action(self) -> Self:
        check_action(self, self.action, NEEDED[self.action], TAKEN[self.action])
        return self


class TeamTask(Result):
    """A task of a teamspace, and its owner."""

    task_id: Identifier
    title: str
    kind: TaskKind
    high_risk: bool
    status: TaskStatus
    owner: Identifier | None = None
    block_code: Identifier | None = None
    block_detail: Text | None = None


class TeamSummary(Result):
    team: TeamspaceId
    name: Identifier
    status: TeamStatus
    role: TeamRole
    """The caller's role in it."""


class LogLine(Result):
    """A line of one of the log files of §8.2."""

    seq: int
    line: dict[str, object]


class TeamResult(Result):
    """The result of every action: the teamspace as it is now, or the objects listed."""

    manifest: TeamspaceManifest | None = None
    tasks: list[TeamTask] | None = None
    task: TeamTask | None = None
    teams: list[TeamSummary] | None = None
    lines: list[LogLine] | None = None
    next_cursor: int | None = None
