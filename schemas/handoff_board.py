"""acp/handoffs and acp/teams: handoffs and teamspaces as lists that change nothing."""

from typing import Annotated

from pydantic import Field

from schemas.acp import ACPParams
from schemas.base import Count, Identifier, Result
from schemas.handoff import HandoffEvent, HandoffStatus, HandoffSummary
from schemas.teamspace import TeamRole, TeamspaceId, TeamspaceManifest, TeamTask


class HandoffsParams(ACPParams):
    status: HandoffStatus | None = None
    team: TeamspaceId | None = None
    task_id: Identifier | None = None
    steps: bool = False
    """With the steps of each."""
    cursor: Identifier | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ListedHandoff(Result):
    """A handoff and who has the task: its sender until it is accepted, then its receiver."""

    handoff: HandoffSummary
    owner: Identifier
    is_overdue: bool
    steps: list[HandoffEvent] | None = None


class HandoffsResult(Result):
    """Newest first."""

    handoffs: list[ListedHandoff]
    next_cursor: Identifier | None = None


class TeamsParams(ACPParams):
    limit: Annotated[int, Field(ge=1, le=100)] = 50
    cursor: TeamspaceId | None = None


class ListedTeam(Result):
    """A teamspace with its first tasks; `moreTasks` counts the others. `role` is the caller's."""

    manifest: TeamspaceManifest
    role: TeamRole | None = None
    tasks: list[TeamTask]
    more_tasks: Count


class TeamsResult(Result):
    """By the teamspaces' ids."""

    teams: list[ListedTeam]
    next_cursor: TeamspaceId | None = None
