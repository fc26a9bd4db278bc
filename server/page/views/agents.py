"""The agents: who is awake, and what waits for whom."""

from server.page.view import Page, PageCall, view

QUERY_MAX = 200
SHOWN = 50


@view(
    "agents",
    "/ui/agents",
    title="Agents",
    kinds=("project", "repo", "contract", "context", "peer", "message", "handoff"),
)
def agents(call: PageCall) -> Page:
    """Who is awake, what waits for each agent, how mail reaches it, and how old its key is."""
    query = call.query.get("q", "")[:QUERY_MAX]
    listed = call.ask(
        "cacp/agent/overview", query=query, limit=SHOWN, cursor=call.query.get("after")
    )
    return {"query": query, **listed}
