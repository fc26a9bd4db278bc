"""Project and RepoContext (CACP 2.0, Data Types; Project Methods)."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import (
    LIST_MAX,
    Cursor,
    Endpoint,
    Identifier,
    Params,
    Result,
    Strings,
    Text,
    Timestamp,
    WireObject,
)
from schemas.context import ContextPacket
from schemas.contract import (
    AgreementPolicy,
    Contract,
    ContractSummary,
)
from schemas.verification import VerificationPolicy

ProjectStatus = Literal["planning", "implementing", "integrating", "complete"]


class RepoContext(WireObject):
    """A repository that takes part in a project, and its agent."""

    repo_id: Identifier
    name: Identifier
    role: Identifier
    language: Identifier
    agent_id: Identifier | None = None
    agent_endpoint: Endpoint | None = None
    relevant_paths: Strings = []
    url: Text | None = None


class Project(WireObject):
    """A feature that spans repositories, with its repos, contracts and context."""

    project_id: Identifier
    name: Identifier
    objective: Text
    status: ProjectStatus
    agreement_policy: AgreementPolicy = "any"
    verification_policy: VerificationPolicy = "word"
    repos: list[RepoContext]
    contracts: list[Contract]
    context_history: list[ContextPacket]
    created_at: Timestamp
    updated_at: Timestamp
    archived_by: Identifier | None = None
    archived_at: Timestamp | None = None


class RepoParams(Params):
    """A repository as given to `project/create` and `project/addRepo`."""

    name: Identifier
    role: Identifier
    language: Identifier
    relevant_paths: Strings | None = None
    url: Text | None = None


class CreateProjectParams(Params):
    name: Identifier
    objective: Text
    repos: Annotated[list[RepoParams], Field(max_length=LIST_MAX)] = []
    agreement_policy: AgreementPolicy = "any"
    verification_policy: VerificationPolicy = "word"


class CreateProjectResult(Result):
    project_id: Identifier
    status: Literal["created"]
    repo_count: int


class JoinProjectParams(Params):
    project_id: Identifier
    repo_name: Identifier
    agent_endpoint: Endpoint | None = None


class JoinProjectResult(Result):
    repo_id: Identifier
    status: Literal["joined"]
    project_name: Identifier


class ProjectParams(Params):
    project_id: Identifier
    summary: bool = False
    """A summary: the contracts without their contents, the context without its packets."""
    cursor: Identifier | None = None
    """For a summary: `nextCursor` of the previous page."""


class ProjectOutline(Result):
    """The summary of a project: `contracts` has as many as fit on a page, by id."""

    project_id: Identifier
    name: Identifier
    objective: Text
    status: ProjectStatus
    agreement_policy: AgreementPolicy
    verification_policy: VerificationPolicy
    repos: list[RepoContext]
    contracts: list[ContractSummary]
    contract_count: int
    context_count: int
    created_at: Timestamp
    updated_at: Timestamp
    archived_by: Identifier | None = None
    archived_at: Timestamp | None = None
    next_cursor: Identifier | None = None


class ListProjectsParams(Params):
    limit: Annotated[int, Field(ge=1, le=500)] | None = None
    """The maximum number; by default 50 summaries, or as many whole projects as fit into 4 MB."""
    cursor: Cursor | None = None
    summary: bool = False
    include_archived: bool = False
    """List archived projects too."""


class ProjectSummary(Result):
    project_id: Identifier
    name: Identifier
    status: ProjectStatus
    repo_count: int
    contract_count: int
    verified_count: int
    """How many of the contracts are verified."""
    waiting_count: int
    """How many steps contracts and questions wait for."""
    created_at: Timestamp
    updated_at: Timestamp
    archived_by: Identifier | None = None
    archived_at: Timestamp | None = None


class ListProjectsResult(Result):
    projects: list[Project | ProjectSummary]
    total: int
    """The total number, over all pages."""
    next_cursor: Cursor | None = None
    more: Text | None = None
    """A text for clients that don't know cursors: that older projects follow, and how to ask."""


class UpdateProjectStatusParams(Params):
    project_id: Identifier
    status: ProjectStatus


class UpdateProjectStatusResult(Result):
    project_id: Identifier
    status: ProjectStatus


class UpdateVerificationPolicyParams(Params):
    project_id: Identifier
    verification_policy: VerificationPolicy


class UpdateVerificationPolicyResult(Result):
    project_id: Identifier
    verification_policy: VerificationPolicy


class AddRepoParams(Params):
    project_id: Identifier
    repo: RepoParams


class AddRepoResult(Result):
    repo_id: Identifier
    status: Literal["added"]
