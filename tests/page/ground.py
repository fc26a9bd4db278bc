"""What the pages show: the same story told by agents of good will, and by hostile ones.

It is told by the public API alone, and fills every field that an agent may fill.
"""

import base64
from dataclasses import dataclass, field
from typing import Any

from tests.support.in_process_node import package
from tests.support.mail_agent import MailAgent, agent
from tests.support.node import AGENT, REPO, Node
from tests.support.team import FRONTEND, FRONTEND_AGENT, REPOS, Team

STARTED = "2026-01-01T00:00:00Z"
HOSTILE = (
    "\"'></title></script></textarea><script>window.hacked=1</script>"
    "<img src=x onerror=window.hacked=1><a href=javascript:window.hacked=1>x</a>"
    "\u202e\u2066live\x1b[31m{{ 7*7777 }}"
)
MEGABYTE_LINE = 900_000
"""Characters without a space, with room for the rest of a request of 1 MiB."""


PROSE = {
    "objective": "People see their profile on the web and on their phones.",
    "comment": "We show a picture beside the name.",
    "change note": "With the URL of the picture.",
    "agreement": "That is all that we show.",
    "plan": "One endpoint, read from the accounts table.",
    "notes": "Tested against 200 profiles.",
    "verification": "The age comes as a text, not as a number.",
    "rejection": "Who deletes an account deletes its profile.",
    "question": "How large may a picture be?",
    "answer": "A JPEG of at most 1 MB.",
    "open question": "Is the age shown to others?",
    "decision": "Where do pictures live?",
    "choice": "In the object store",
    "rationale": "The database is backed up each hour.",
    "purpose": "Examples of answers",
    "request": "An example of a picture",
    "remark": "The build failed: no module named profiles",
    "summary": "The endpoint is done; its cache is not.",
    "reason": "End of shift",
}
NAMES = {
    "name": "mobile-app",
    "role": "mobile",
    "language": "swift",
    "title": "Cache profiles for a minute",
    "member": "note",
    "value": "no picture yet",
}


class Words:
    """What agents write, by what it is about."""

    def text(self, about: str) -> str:
        """Prose."""
        return PROSE.get(about, about)

    def line(self, about: str) -> str:
        """One line of prose, of a report or a message."""
        return self.text(about)[:500]

    def name(self, about: str) -> str:
        """A name or an id: up to 200 characters."""
        return NAMES.get(about, about)

    def value(self, about: str) -> str:
        """A value in free JSON."""
        return about

    def url(self) -> str:
        return "https://example.com/repo"


class HostileWords(Words):
    """What runs, hides, or breaks a page that takes it for its own."""

    def text(self, about: str) -> str:
        return f"{HOSTILE}{about}{'W' * 19_000}"

    def name(self, about: str) -> str:
        return f"{about[:30]}{HOSTILE}"[:200]

    def value(self, about: str) -> str:
        """A line of almost a megabyte."""
        return HOSTILE + "M" * MEGABYTE_LINE

    def url(self) -> str:
        return "javascript:window.hacked=1"


@dataclass
class Ground:
    """A node, and what the paths of its views name."""

    node: Node
    params: dict[str, str] = field(default_factory=dict)
    team: Team | None = None

    def path(self, view_path: str) -> str | None:
        """The path of a view, filled in; None if this node has nothing that it names."""
        for name, value in self.params.items():
            view_path = view_path.replace("{" + name + "}", value)
        return None if "{" in view_path else view_path


def empty(node: Node) -> Ground:
    """A project in which nothing has happened."""
    made = node.call("cacp/project/create", name="Empty", objective="")
    return Ground(node, {"project_id": made["projectId"]})


def told(node: Node, words: Words) -> Ground:
    """The story: contracts in each state, questions, files, mail, a handoff, a teamspace, a run."""
    key = node.key(FRONTEND_AGENT, FRONTEND)
    repo = {name: words.name(name) for name in ("name", "role", "language")}
    repos = [*REPOS, {**repo, "relevantPaths": [words.name("src")], "url": words.url()}]
    made = node.call(
        "cacp/project/create",
        name=words.name("Profiles"),
        objective=words.text("objective"),
        repos=repos,
    )
    team = Team(node, key, made["projectId"])
    team.backend("project/join", repoName=REPOS[0]["name"])
    team.frontend("project/join", repoName=FRONTEND)
    contract = _contracts(team, words)
    _context(team, words, contract)
    _run(team, words, contract)
    thread = _mail(node, words)
    params = {"project_id": team.project, "contract_id": contract, "thread_id": thread}
    return Ground(node, {**params, "run_id": RUN}, team)


def bare(node: Node) -> Ground:
    """One of each thing, with nothing that may be left out."""
    team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND))
    contract = team.proposed()
    team.frontend("contract/respond", contractId=contract, action="request_change")
    team.frontend("context/askQuestion", question="Why?")
    report = {"runId": RUN, "status": "RUNNING", "startedAt": STARTED}
    team.backend("run/report", **report, tasks=[{"id": "a", "status": "DONE", "attempts": 1}])
    other = agent(node, "other")
    letter = other.send(MailAgent(node, AGENT, ""))["message"]
    params = {"project_id": team.project, "contract_id": contract}
    return Ground(node, {**params, "thread_id": letter["thread_id"], "run_id": RUN}, team)


RUN = "nightly"


def _contracts(team: Team, words: Words) -> str:
    """The id of the contract with the longest story."""
    fields = {"name": "string", words.name("age"): "integer"}
    content = {"method": "GET", "path": "/profile", "responseBody": fields}
    both = {"parties": [each["name"] for each in REPOS]}
    contract = team.proposed(name=words.name("Get a profile"), content=content, **both)
    given = {"contractId": contract}
    team.frontend(
        "contract/respond",
        **given,
        action="request_change",
        comment=words.text("comment"),
        suggestedChange={"responseBody": {"picture": words.name("url")}},
    )
    changed = {**content, "responseBody": {**fields, "picture": words.value("url")}}
    note = words.text("change note")
    team.backend("contract/update", **given, **both, content=changed, changeNote=note)
    team.frontend("contract/respond", **given, action="agree", comment=words.text("agreement"))
    files = {"estimatedFiles": [words.name("src/a.py")]}
    team.backend("implementation/start", **given, plan=words.text("plan"), **files)
    done = {"files": [words.name("src/a.py")], "notes": words.text("notes")}
    team.backend("implementation/complete", **given, **done)
    team.frontend("implementation/complete", **given, **done)
    details = {"case": words.name("case"), "actual": words.name("actual")}
    team.frontend(
        "implementation/verify",
        **given,
        result="failure",
        notes=words.text("verification"),
        failureDetails=details,
    )
    team.proposed(name=words.name("Upload a picture"), type="event_schema")
    rejected = team.proposed(name=words.name("Delete a profile"))
    refusal = {"action": "reject", "comment": words.text("rejection")}
    team.frontend("contract/respond", contractId=rejected, **refusal)
    verified = team.implemented(name=words.name("List profiles"), **both)
    team.frontend("implementation/verify", contractId=verified, result="success")
    return contract


def _context(team: Team, words: Words, contract: str) -> None:
    related = {"relatedContracts": [contract]}
    asked = team.frontend(
        "context/askQuestion",
        question=words.text("question"),
        options=[words.name("yes"), words.name("no")],
        urgent=True,
        **related,
    )
    answer = {"content": {"answer": words.text("answer")}, "replyTo": asked["packetId"]}
    team.backend("context/share", type="api_spec", **answer)
    team.frontend("context/askQuestion", question=words.text("open question"))
    team.backend(
        "context/recordDecision",
        decision=words.text("decision"),
        chosen=words.text("choice"),
        rationale=words.text("rationale"),
        implications=[words.name("implication")],
        **related,
    )
    snippet = {"code": words.value("x = 1"), words.name("member"): words.name("value")}
    team.backend("context/share", type="code_snippet", content=snippet)
    content = base64.b64encode(b"{}").decode()
    file = {"name": words.name("a.json"), "contentType": "application/json", "content": content}
    team.backend("file/share", file=file, purpose=words.text("purpose"))
    team.frontend("file/request", description=words.text("request"), suggestedFormat="json")


def _run(team: Team, words: Words, contract: str) -> None:
    remark = words.line("remark")
    task = {"id": words.name("api"), "status": "FAILED", "attempts": 2, "contractId": contract}
    judged = {"number": 1, "attempt": 1, "size": 1, "done": 0, "failureRate": 1, "at": STARTED}
    heal = {"number": 1, "window": 1, "failed": 1, "decision": remark, "at": STARTED}
    team.backend(
        "run/report",
        runId=RUN,
        status="RUNNING",
        startedAt=STARTED,
        reason=remark,
        counts={"FAILED": 1},
        tasks=[{**task, "problem": remark, "said": remark}],
        windows=[{**judged, "verdict": remark}],
        heals=[heal],
    )


def _mail(node: Node, words: Words) -> str:
    """The id of the thread. Who looks without a key is the node's own agent."""
    own, bert = MailAgent(node, AGENT, node.key(AGENT, REPO)), agent(node, "bert")
    details = {words.name("member"): words.line("value")}
    payload = {"summary": words.line("summary"), "details": details}
    first = own.send(bert, payload=payload, topic=words.name("topic"))
    letter = first["message"]
    bert.call("ack", message_ids=[letter["id"]])
    answer = {"summary": words.line("answer")}
    bert.call("respond", message_id=letter["id"], type="knowledge.push", payload=answer)
    _handoff(own, bert, words)
    return str(letter["thread_id"])


def _handoff(own: MailAgent, bert: MailAgent, words: Words) -> None:
    task: dict[str, Any] = {"title": words.name("title"), "objective": words.line("objective")}
    given = package(task=task, context={"summary": words.line("summary")})
    offer = {"to": bert.id, "reason": words.line("reason"), "package": given}
    own.call("handoff", action="initiate", **offer)
    named = {"team": "ops", "name": words.name("Ops"), "purpose": words.line("purpose")}
    own.call("team", action="create", **named)
    own.call("team", action="addMember", team="ops", agent_id=bert.id, role="executor")
