"""cacp/agent/list: the agents that a caller can work with."""

from typing import Any

from schemas.agent import ListAgentsParams, ListAgentsResult
from schemas.base import iso, present
from server.domain.agent_list import KnownAgent, known_agents
from server.domain.agents import identity
from server.methods.acp import route
from server.methods.base import Context, open_project, page_of, reads
from server.store import projects


@reads("cacp/agent/list", ListAgentsParams, ListAgentsResult, access="write", wide=True)
def list_(ctx: Context, params: ListAgentsParams) -> dict[str, Any]:
    """List the agents that the caller can work with, ordered by id: whether messages reach them,
    the repos that they hold, and when they last called this node. Agents of peers that accept mail
    are listed with their home node.
    """
    if params.project_id is not None:
        open_project(ctx, params.project_id)
    own = identity(ctx.caller.agent_id)
    # A read has no stamp of its own; the caller has just called.
    now = max(ctx.node.last_calls.values(), default=0)
    agents = known_agents(
        route.everyone(ctx),
        projects.held_repos(ctx.db, params.project_id),
        ctx.node.last_calls,
        own=own,
        holders_only=params.project_id is not None,
    )
    rows = [agent for agent in agents if agent.address > (params.cursor or "")]
    page, more = page_of(rows, params.limit, lambda agent: agent.address)
    return {"ownId": own, "agents": [listed_agent(agent, now) for agent in page], **more}


def listed_agent(agent: KnownAgent, now: int) -> dict[str, Any]:
    """An agent as schemas.agent.ListedAgent."""
    shown = {
        "agentId": agent.address,
        "node": agent.node,
        "hasMail": agent.has_mail,
        "lastSeen": None if agent.last_seen is None else iso(agent.last_seen),
        "isAwake": None if agent.node else agent.is_awake(now),
        "repos": [
            {"projectId": held.project_id, "project": held.project, "repo": held.repo}
            for held in agent.repos
        ],
        "moreRepos": agent.more_repos,
    }
    return present(shown)
