"""Repos that an agent does not hold: those that wait for it, and those that it took in vain (design
§5)."""

from collections.abc import Iterator
from dataclasses import dataclass

from schemas.base import iso
from server.domain.agents import identity, same_agent
from server.domain.attention.items import (
    Actor,
    ItemSubject,
    NextStep,
    ProjectNames,
    WaitingItem,
    bounded,
    item_id,
    named,
)


@dataclass(frozen=True, slots=True)
class FreeRepoSubject:
    """A repo of the name for which an agent has its key, in a project where nobody holds it.
    `since` is a stamp."""

    project: ProjectNames
    repo_id: str
    objective: str
    since: int


def free_items(subject: FreeRepoSubject, who: Actor) -> Iterator[WaitingItem]:
    """The repo, until the agent holds one of the project."""
    project, name = subject.project, subject.project.repo(subject.repo_id)
    if project.project_id in who.repos:
        return
    params = {"projectId": project.project_id, "repoName": name}
    yield WaitingItem(
        item_id("join", project.project_id, subject.repo_id),
        "join",
        "normal",
        subject.since,
        ItemSubject("repo", subject.repo_id, name),
        f"Join project {named(project.name)} as repo {named(name)}: nobody works in it yet",
        {"objective": bounded(subject.objective)},
        (NextStep("cacp_project_join", "cacp/project/join", params),),
        project,
        subject.repo_id,
    )


@dataclass(frozen=True, slots=True)
class LostClaimSubject:
    """A claim that lost to `holder`'s. `has_written`: the loser has since written to the holder
    about it (`topic_of`). `lost_at` is a stamp."""

    project: ProjectNames
    repo_id: str
    agent_id: str
    holder: str
    lost_at: int
    has_written: bool


def topic_of(project_id: str, repo_id: str) -> str:
    """The topic of the loser's message to the holder, by which the node knows it."""
    return f"claim {item_id('conflict', project_id, repo_id)[-24:]}"


def items(subject: LostClaimSubject, who: Actor) -> Iterator[WaitingItem]:
    """The lost claim, if it is the agent's: until it holds a repo of the project, or has written to
    the holder. No call takes the repo from its holder."""
    project, repo_id = subject.project, subject.repo_id
    if not same_agent(subject.agent_id, who.agent_id) or same_agent(subject.holder, who.agent_id):
        return
    if subject.has_written or project.project_id in who.repos:
        return
    name = project.repo(repo_id)
    step = NextStep(
        "acp_send",
        "acp/send",
        {
            "to": [identity(subject.holder)],
            "type": "status.blocked",
            "topic": topic_of(project.project_id, repo_id),
            "payload": {"blocked_on": f"{subject.holder} holds repo {name}"},
        },
        {"payload.summary": "who of you works on the repo, in a line; ask your user if unsure"},
    )
    yield WaitingItem(
        item_id("conflict", "claim", project.project_id, repo_id, identity(subject.holder)),
        "conflict",
        "high",
        subject.lost_at,
        ItemSubject("repo", repo_id, name),
        f"Your claim of repo {named(name)} (project {named(project.name)}) lost to "
        f"{named(subject.holder)}, whose claim is earlier: settle it with them",
        {"holder": subject.holder, "claimedAt": iso(subject.lost_at)},
        (step,),
        project,
        repo_id,
    )
