"""The lifecycle of a project, and released claims on repos: the methods of callers."""

from typing import Literal

from schemas.base import Count, Identifier, Params, Result, Timestamp

LifecycleState = Literal["active", "archived", "deleted"]


class LifecycleParams(Params):
    project_id: Identifier


class ContentCounts(Result):
    """What a deletion removed on this node. `bytes` is the size of the files' contents."""

    contracts: Count
    packets: Count
    files: Count
    bytes: Count


class LifecycleResult(Result):
    """The project's state, and who set it when. `removed` is present when this call deleted it."""

    project_id: Identifier
    name: Identifier
    status: LifecycleState
    by: Identifier
    at: Timestamp
    removed: ContentCounts | None = None


class ReleaseRepoParams(Params):
    project_id: Identifier
    repo_name: Identifier


class ReleaseRepoResult(Result):
    """`former_agent_id` no longer holds the repo; `agent_id` holds it now, if anybody."""

    repo_id: Identifier
    repo_name: Identifier
    status: Literal["released"]
    former_agent_id: Identifier
    agent_id: Identifier | None = None


class ReassignRepoParams(Params):
    project_id: Identifier
    repo_name: Identifier
    agent_id: Identifier


class ReassignRepoResult(Result):
    """`former_agent_id` is absent when nobody held the repo."""

    repo_id: Identifier
    repo_name: Identifier
    status: Literal["reassigned"]
    agent_id: Identifier
    former_agent_id: Identifier | None = None
