"""The story that agents play: one feature in three repositories, from nothing to verified.

The test starts the agents, again and again, with the same words. It carries no message.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from comply.model.conversation import ModelAnswer, ModelRequest
from comply.model.server import Reply
from tests.feature.follower import Follower
from tests.feature.sheet import Sheet, Software
from tests.support.mesh import equal
from tests.support.node import Node
from tests.support.waiting import eventually

PROJECT = "Profiles"
BACKEND, MOBILE, FRONTEND = "backend-api", "mobile-app", "frontend-web"
"""In the order in which they work."""
ANSWER = "A picture is a URL of a JPEG of at most 1 MB"
ROUNDS = 15
"""In which each agent works once, at most. It takes a third of them."""
GO_ON = "Go on with your work."

REQUIRED = [
    (BACKEND, "proposed", 1),
    (FRONTEND, "change_requested", 1),
    (BACKEND, "updated", 2),
    (FRONTEND, "agreed", 2),
    (BACKEND, "completed", 2),
    (MOBILE, "completed", 2),
    (None, "failed", 2),
    (BACKEND, "completed", 2),
    (None, "verified", 2),
]
"""Who must have done what to which version, in this order; None is any of them."""

_INTERFACE = {
    "method": "GET",
    "path": "/profile",
    "responseBody": {"name": "string", "age": "integer"},
}
_REPOS = [
    {"name": name, "role": role, "language": language}
    for name, role, language in (
        (BACKEND, "backend", "python"),
        (FRONTEND, "frontend", "typescript"),
        (MOBILE, "mobile", "swift"),
    )
]


# --- the agents ---------------------------------------------------------------------------------


def opening(repo: str, *wishes: tuple[str, dict[str, Any]]) -> str:
    """A user's first words to the agent of a repository."""
    lines = [f"- {words} {json.dumps(details)}" for words, details in wishes]
    return "\n".join([f"You work on {repo}. First:", *lines, "Then go on with your work."])


def _takes(repo: str) -> tuple[str, dict[str, Any]]:
    return "Take your repository", {"repoName": repo, "project": PROJECT}


def sheets() -> list[Sheet]:
    """The goals of the agents. The interface lacks what the frontend needs, mobile has a question
    that only the backend can answer, and what the backend builds first has a fault."""
    software = Software(BACKEND, "the age comes back as a text, not as a number")
    project = {
        "name": PROJECT,
        "objective": "People see their profile on the web and on their phones.",
        "repos": _REPOS,
        "agreementPolicy": "all",
    }
    interface = {"type": "api_endpoint", "name": "Get a profile", "content": _INTERFACE}
    proposal = "Propose an interface", {**interface, "project": PROJECT}
    backend = Sheet(
        BACKEND,
        opening(BACKEND, ("Create a project", project), _takes(BACKEND), proposal),
        software,
        files=("api/profile.py",),
        answers={"picture": ANSWER},
    )
    mobile = Sheet(
        MOBILE,
        opening(MOBILE, _takes(MOBILE)),
        software,
        files=("Profile.swift",),
        question={"question": "How large is a picture at most?", "urgent": True},
    )
    frontend = Sheet(
        FRONTEND,
        opening(FRONTEND, _takes(FRONTEND)),
        software,
        files=("src/Profile.tsx",),
        needs={"responseBody": {"picture": "string"}},
    )
    return [backend, mobile, frontend]


class Worker(Protocol):
    """An agent that the test starts."""

    name: str
    node: Node
    key: str
    """Of its agent, for the test to look with its eyes."""

    def work(self, prompt: str) -> None:
        """One turn, with these words of its user."""


Hire = Callable[[Sheet, Node, Reply], Worker]
"""Makes the agent of a sheet, at a node, with this model."""


class Killing:
    """A model. When it first reports what it has built, its agent's node is killed before the call
    reaches it."""

    def __init__(self, reply: Reply, node: Node) -> None:
        self._reply, self._node, self._done = reply, node, False

    def __call__(self, request: ModelRequest) -> ModelAnswer:
        answer = self._reply(request)
        if answer.call is not None and "files" in answer.call.arguments and not self._done:
            self._done = True
            self._node.kill()
        return answer


# --- the play -----------------------------------------------------------------------------------


def play(nodes: Sequence[Node], hires: Sequence[Hire]) -> list[Follower]:
    """Let the agents, each at its node, work in turn until the feature is done, and check that all
    of the story has happened. Returns their models."""
    models = [Follower(sheet) for sheet in sheets()]
    workers = []
    for model, node, hire in zip(models, nodes, hires, strict=True):
        reply = Killing(model.reply, node) if model.sheet.repo == BACKEND else model.reply
        workers.append(hire(model.sheet, node, reply))
    _let_work(workers, [model.sheet.opening for model in models])
    for worker in workers:
        _check(worker)
    return models


def _let_work(workers: Sequence[Worker], openings: Sequence[str]) -> None:
    nodes = list({worker.node.url: worker.node for worker in workers}.values())
    for number in range(ROUNDS):
        for worker, words in zip(workers, openings, strict=True):
            worker.work(GO_ON if number else words)
            for node in nodes:
                if node.process is None:
                    node.restart()
            eventually(lambda: equal(*nodes))
        if all(map(_is_done, workers)):
            return
    left = {worker.name: _waiting(worker) for worker in workers}
    raise AssertionError(f"not done after {ROUNDS} rounds: {left}")


def _is_done(worker: Worker) -> bool:
    """Whether its only contract is verified, and nothing waits for it."""
    listed = _ask(worker, "contract/list")["contracts"]
    return [contract["status"] for contract in listed] == ["verified"] and not _waiting(worker)


def _check(worker: Worker) -> None:
    """That an agent sees all of the story at its node."""
    names = {repo["repo_id"]: repo["name"] for repo in _ask(worker, "project/get")["repos"]}
    (contract,) = _ask(worker, "contract/list")["contracts"]
    timeline = _ask(worker, "contract/timeline", contractId=contract["contractId"])["timeline"]
    happened = [(names[step["repoId"]], step["step"], step["version"]) for step in timeline]
    later = iter(happened)
    for name, *rest in REQUIRED:
        assert any(rest == other and name in (None, by) for by, *other in later), happened
    packets = _ask(worker, "context/list")["packets"]
    (question,) = [packet for packet in packets if packet["type"] == "question"]
    replies = [packet for packet in packets if packet.get("reply_to") == question["packet_id"]]
    assert [reply["content"] for reply in replies] == [{"answer": ANSWER}], packets
    # Nobody wrote mail: what was to be done followed from what the agents had done.
    assert worker.node.query("SELECT count(*) FROM messages") == [(0,)]


def _ask(worker: Worker, method: str, **params: Any) -> Any:
    """What an agent's node answers it about the only project."""
    listed = worker.node.call("cacp/project/list", key=worker.key, summary=True)
    (project,) = listed["projects"]
    given = {"projectId": project["projectId"], **params}
    return worker.node.call(f"cacp/{method}", key=worker.key, **given)


def _waiting(worker: Worker) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = worker.node.call("cacp/attention/list", key=worker.key)["items"]
    return items
