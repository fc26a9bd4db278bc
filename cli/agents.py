"""`cacp agents`: who is awake, and what waits for whom."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, connected
from cli.columns import print_columns
from cli.options import JsonOption, KeyOption, UrlOption
from cli.page_link import WebOption, print_link
from cli.terminal import print_json
from schemas.plain import one_line

HEADS = ("AGENT", "STATE", "LAST SEEN", "WAITING", "REPOS", "CHANNELS", "KEY")
PAGE = 100


def agents(
    query: Annotated[
        str,
        typer.Argument(help="Only agents whose id, or a repo of whose, contains this."),
    ] = "",
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """List the agents: who is awake, what waits for each, how mail reaches it, and its key's age.

    Those that sleep while something waits for them come first. An agent is awake for five minutes
    after its last call; of an agent whose home is another node, only that node knows. With an
    agent's key, it tells what waits for that agent only.

    \b
    Examples:
      cacp agents
      cacp agents mobile
    """
    if web:
        print_link(url, "agents", **({"q": query} if query else {}))
        return
    with connected(url, key, oversees=True) as node:
        listed = list(node.pages("cacp/agent/overview", {"query": query, "limit": PAGE}, "agents"))
    if as_json:
        print_json(listed)
        return
    print_columns(
        HEADS,
        [_row(agent) for agent in listed],
        none="No agent matches" if query else "There are no agents",
        whole=["AGENT"],
    )


def _row(agent: dict[str, Any]) -> list[str]:
    from cli.times import ago

    seen, made = agent.get("lastSeen"), (agent.get("key") or {}).get("createdAt")
    return [
        one_line(agent["agentId"]),
        _state(agent),
        ago(seen) if seen else "-",
        _waiting(agent.get("work")),
        _repos(agent),
        ", ".join(map(_channel, agent.get("channels") or ())) or "-",
        ago(made) if made else "-",
    ]


def _state(agent: dict[str, Any]) -> str:
    if agent.get("node"):
        return f"at {one_line(agent['node'])}"
    return "awake" if agent.get("isAwake") else "asleep"


def _waiting(work: dict[str, Any] | None) -> str:
    """What waits for an agent; "-" where the caller may not know."""
    if work is None:
        return "-"
    counts = ((work["items"], "item"), (work["handoffs"], "handoff"), (work["mail"], "message"))
    parts = [f"{count} {noun}{'s' if count > 1 else ''}" for count, noun in counts if count]
    urgent = f" ({work['urgent']} urgent)" if work["urgent"] else ""
    return (", ".join(parts) or "nothing") + urgent


def _repos(agent: dict[str, Any]) -> str:
    names = dict.fromkeys(one_line(held["repo"]) for held in agent["repos"])
    more = [f"{agent['moreRepos']} more"] if agent["moreRepos"] else []
    return ", ".join([*names, *more]) or "-"


def _channel(channel: dict[str, Any]) -> str:
    return f"{channel['channel']} (paused)" if channel.get("pausedUntil") else channel["channel"]
