"""cacp/agent/list and cacp/agent/overview: the agents that a caller can work with, and their state;
and the end of their keys."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Count, Cursor, Identifier, Params, Result, Timestamp


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


class AgentOverviewParams(Params):
    """`query`: only agents whose id, or a repo of whose, contains it."""

    query: Annotated[str, Field(max_length=200)] = ""
    limit: Annotated[int, Field(ge=1, le=100)] = 100
    cursor: Cursor | None = None


class AgentWork(Result):
    """What waits for an agent: `items` on the contracts and questions of its repos, `handoffs`
    whose next step may be its own, and unread messages (`mail`). `urgent` counts the urgent items;
    `since` is when the oldest item began to wait.
    """

    total: Count
    items: Count
    urgent: Count
    handoffs: Count
    mail: Count
    since: Timestamp | None = None


class AgentChannel(Result):
    """A channel by which mail reaches an agent. `paused_until`: pushes fail and are paused."""

    channel: Literal["inbox", "session", "channel", "wake"]
    paused_until: Timestamp | None = None


class AgentKey(Result):
    """The newest of an agent's active keys, never the key itself. `active` counts all of them;
    `project_count` is the number of projects that it is limited to, absent for all projects. Keys
    don't expire; they are revoked."""

    created_at: Timestamp
    trust: Literal["verified", "known", "peer", "runner"]
    active: Count
    project_count: Count | None = None


class AgentState(ListedAgent):
    """An agent as `ListedAgent`, with what waits for it and how it is reached.

    `is_node`: the node's own agent; `is_human`: a person. `work`, `channels` and `key` are shown to
    the operator, to humans, to the node's own agent, and to the agent itself; only the home node
    knows them.
    """

    is_node: bool
    is_human: bool | None = None
    work: AgentWork | None = None
    channels: list[AgentChannel] | None = None
    key: AgentKey | None = None


class AgentOverviewResult(Result):
    """`total` counts the agents that match, `awake` those that are known to be awake, `stalled`
    those that sleep while something waits for them, `elsewhere` those whose home is another node,
    which alone knows whether they are awake."""

    agents: list[AgentState]
    total: Count
    awake: Count
    stalled: Count
    elsewhere: Count
    next_cursor: Cursor | None = None
