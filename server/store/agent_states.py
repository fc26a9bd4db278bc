"""What waits for each agent of this node, its keys, and where its mail is announced, for the
overview of agents. Each is one query for all agents."""

from collections import defaultdict
from typing import NamedTuple

from server.domain.agent_list import NO_WORK, WaitingWork
from server.domain.agents import identity
from server.store.connection import Connection
from server.store.keys import KeyTrust
from server.store.sql import SQL


class ActiveKeys(NamedTuple):
    """The newest active key of an agent, how many are active, and whether one of them is a human's.
    `projects` is the number of projects that the newest is limited to, 0 for no limit."""

    trust: KeyTrust
    created_at: int
    projects: int
    active: int
    human: bool


def work(db: Connection) -> dict[str, WaitingWork]:
    """What waits for each agent, by address; without those for whom nothing does."""
    waiting: dict[str, WaitingWork] = defaultdict(lambda: NO_WORK)
    holders: dict[str, dict[str, str]] = defaultdict(dict)
    for project_id, repo_id, agent_id in SQL.holders_of_repos(db):
        holders[project_id][repo_id] = identity(agent_id)
    for project_id, repo_id, not_repo, not_agent, *counts in SQL.open_items_of_repos(db):
        held = holders[project_id]
        if repo_id:
            concerned = {held.get(repo_id, "")}
        else:
            concerned = {address for repo, address in held.items() if repo != not_repo}
        items = WaitingWork(*counts)
        for address in concerned - {"", identity(not_agent)}:
            waiting[address] = waiting[address].plus(items)
    for address, count in SQL.open_handoffs_of_agents(db):
        waiting[address] = waiting[address].plus(WaitingWork(handoffs=count))
    for address, count in SQL.unread_of_agents(db):
        waiting[address] = waiting[address].plus(WaitingWork(mail=count))
    return dict(waiting)


def active_keys(db: Connection) -> dict[str, ActiveKeys]:
    """The active keys of each agent, by address."""
    known: dict[str, ActiveKeys] = {}
    for agent_id, trust, created_at, human, projects in SQL.active_keys(db):
        address = identity(agent_id)
        before = known.get(address)
        known[address] = ActiveKeys(
            trust,
            created_at,
            projects,
            active=1 + (before.active if before else 0),
            human=bool(human) or bool(before and before.human),
        )
    return known


def announced(db: Connection) -> set[str]:
    """The addresses of the agents that have a webhook."""
    return {address for (address,) in SQL.webhook_addresses(db)}
