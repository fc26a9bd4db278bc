"""cacp/agent/list, the agents that a caller can work with, and the end of their keys."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Count, Identifier, Params, Result, Timestamp


class ListAgentsParams(Params):
    """`project_id`: only agents that hold a repo of this project."""

    project_id: Identifier | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: Identifier | None = None


class AgentRepo(Result):
    """A repo that an agent holds, and its project."""

    project_id: Identifier
    project: Identifier
    repo: Identifier


class ListedAgent(Result):
    """An agent. `agent_id` has no version; messages to it reach every version.

    `node`: its home node, if that is another one, which alone knows when the agent was seen.
    `has_mail`: whether acp/send reaches it. `last_seen`: its last call since this node started;
    `is_awake`: that was within the last five minutes. `more_repos` counts repos left out of
    `repos`.
    """

    agent_id: Identifier
    node: Identifier | None = None
    has_mail: bool
    last_seen: Timestamp | None = None
    is_awake: bool | None = None
    repos: list[AgentRepo]
    more_repos: Count


class ListAgentsResult(Result):
    """`own_id` is the caller itself, which is not listed."""

    own_id: Identifier
    agents: list[ListedAgent]
    next_cursor: Identifier | None = None


class RevokeKeysParams(Params):
    agent_id: Identifier


class RevokeKeysResult(Result):
    """The keys of the agent that this call has ended."""

    agent_id: Identifier
    status: Literal["revoked"]
    key_ids: list[Identifier]
