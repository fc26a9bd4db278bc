"""Every method, tool and resource, and what a caller is shown whose key or token is for one
project (CACP 2.0, Headers).

A method that is not in these tables fails the test: whoever adds one decides.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from starlette.routing import Route

from schemas.facts import VersionFact
from server.app import make_app
from server.domain.canonical import digest
from server.mcp_tools.catalog import RESOURCES, TOOLS
from server.methods import METHODS
from server.methods.base import Reach
from server.serve import admission
from server.settings import Settings
from server.store import changes, contracts
from tests.cli.run import cacp
from tests.server.mcp_tools.test_endpoint import answer_of, post, using
from tests.support.located import connect, prepare
from tests.support.node import AGENT, Node, bearer
from tests.support.runner import UNSIGNED
from tests.support.shared_files import inline
from tests.support.team import FRONTEND, FRONTEND_AGENT, REPOS, Team

Json = dict[str, Any]

MARK = "ofthesecondproject"
"""In every name, id and content that is not of the caller's project."""
PEER = {"source_agent": "x"}
MAIL_LISTS = ("query", "threads", "handoffs", "teams", "approvals", "deadLetters", "channels")
REPO_GIVEN = {"name": "more", "role": "r", "language": "l"}
PACKET = {"from_repo": "r", "from_agent": "a", "timestamp": "2026-01-01T00:00:00Z", "content": {}}
FILE = inline(b"content", "file.txt")

PROJECT: dict[str, Json] = {
    "cacp/project/join": {"repoName": FRONTEND},
    **{f"cacp/project/{name}": {} for name in ("get", "board", "timeline", "stateAt")},
    "cacp/project/matrix": {"missing": True},
    "cacp/project/graph": {"contractId": "contract"},
    "cacp/project/updateStatus": {"status": "planning"},
    "cacp/project/updateVerificationPolicy": {"verificationPolicy": "receipt"},
    "cacp/project/addRepo": {"repo": REPO_GIVEN},
    "cacp/contract/propose": {"type": "api_endpoint", "name": "n", "content": {}},
    "cacp/contract/respond": {"contractId": "contract", "action": "agree"},
    "cacp/contract/update": {"contractId": "contract", "content": {}},
    "cacp/contract/get": {"contractId": "contract", "includeHistory": True},
    "cacp/contract/overview": {"contractId": "contract", "includeHistory": True},
    **{f"cacp/contract/{name}": {"contractId": "contract"} for name in ("diff", "compare")},
    "cacp/contract/timeline": {"contractId": "contract"},
    "cacp/contract/agreed": {},
    "cacp/context/share": {
        "type": "decision",
        "content": {},
        "relatedContracts": ["contract"],
        "replyTo": "packet",
    },
    "cacp/context/askQuestion": {"question": "q", "relatedContracts": ["contract"]},
    "cacp/context/recordDecision": {
        "decision": "d",
        "chosen": "c",
        "rationale": "r",
        "replyTo": "packet",
    },
    "cacp/context/list": {"contractId": "contract"},
    "cacp/context/getThread": {"packetId": "packet"},
    "cacp/implementation/start": {"contractId": "contract"},
    "cacp/implementation/complete": {"contractId": "contract"},
    "cacp/implementation/verify": {"contractId": "contract", "result": "success"},
    "cacp/implementation/getStatus": {"contractId": "contract"},
    "cacp/receipt/record": {"contractId": "contract", "receipt": UNSIGNED},
    "cacp/receipt/list": {"contractId": "contract"},
    "cacp/implementation/report": {"contractId": "contract", "report": "STATUS:ok"},
    "cacp/run/report": {"runId": "n", "status": "RUNNING", "startedAt": "2026-01-01T00:00:00Z"},
    "cacp/run/get": {"runId": "run"},
    "cacp/file/share": {"file": FILE, "relatedContracts": ["contract"]},
    "cacp/file/request": {"description": "d"},
    "cacp/repo/release": {"repoName": "r"},
    "cacp/repo/reassign": {"repoName": "r", "agentId": "a"},
    "cacp/project/syncState": PEER | {"state": {"project_id": "project"}},
    "cacp/file/list": {},
    "cacp/file/get": {"fileId": "file"},
    "cacp/project/sync": PEER,
    "cacp/contract/sync": PEER
    | {
        "contract": {
            "contract_id": "contract",
            "type": "api_endpoint",
            "name": "n",
            "version": 1,
            "status": "proposed",
            "content": {},
        }
    },
    "cacp/context/sync": PEER | {"packet": PACKET | {"packet_id": "packet", "type": "decision"}},
    "cacp/receipt/sync": PEER | {"receipts": {"contract_id": "contract", "facts": []}},
    "cacp/repo/sync": PEER | {"repo": REPO_GIVEN | {"repo_id": "repo"}},
    "cacp/file/sync": PEER
    | {
        "file": {
            "file_id": "file",
            "name": "n",
            "content_type": "t",
            "size": 1,
            "sha256": "0" * 64,
            "purpose": None,
            "related_contracts": [],
            "from_repo": "r",
            "from_agent": "a",
            "fulfils": None,
            "stamp": 1,
        },
        "signature": {"node": "n", "value": "v"},
    },
    "cacp/file/syncRequest": PEER
    | {
        "request": {
            "request_id": "request",
            "requested_by": "r",
            "from_agent": "a",
            "description": "d",
            "suggested_format": None,
            "stamp": 1,
        },
        "signature": {"node": "n", "value": "v"},
    },
    "cacp/sync/file": PEER | {"fileId": "file", "sha256": "0" * 64},
    **{f"cacp/{name}": {} for name in ("contract/list", "contract/conflicts", "file/listRequests")},
    **{f"cacp/{name}": {} for name in ("project/archive", "project/unarchive", "project/delete")},
}
"""Asked of the caller's own project alone. The params beside `projectId`; what is named as the kind
of a thing stands for the id of one."""
OWN: dict[str, Json] = {
    "cacp/search": {"query": MARK},
    "cacp/project/list": {},
    "cacp/activity/list": {"spans": 20},
    "cacp/attention/list": {},
    "cacp/run/list": {},
    "cacp/attention/claim": {"session": "s"},
    "cacp/attention/overview": {},
    "cacp/file/fulfillRequest": {"requestId": "request", "file": FILE},
}
"""Narrowed by the method itself."""
NOTHING: dict[str, Json] = {"rpc.discover": {}}
"""Nothing of any project is in it."""
NODE: dict[str, Json] = {
    "cacp/project/create": {"name": "n", "objective": "o"},
    "cacp/agent/list": {},
    "cacp/agent/revokeKeys": {"agentId": "aid://example.com/nobody"},
    "cacp/agent/overview": {},
    "cacp/sync/digest": PEER | {"prefixes": [""]},
    "cacp/sync/pull": PEER | {"entities": [["contract", "project", "contract"]]},
    **dict.fromkeys(("cacp/sync/bans", "cacp/sync/evidence", "acp/sync/handoff"), PEER),
    "cacp/peer/announce": {"agentId": "a", "endpoint": "http://127.0.0.1:1", "repoName": "r"},
    "acp/handoff": {"action": "list"},
    "acp/handoff/check": {"handoff_id": MARK, "package_hash": MARK, "commands": [{}]},
    "acp/team": {"action": "get", "team": MARK},
    "acp/send": {"to": [FRONTEND_AGENT], "type": "knowledge.push", "payload": {"summary": "s"}},
    "acp/respond": {"message_id": "message", "type": "system.ack", "payload": {}},
    "acp/status": {"to": [FRONTEND_AGENT], "state": "update", "summary": "s"},
    "acp/inbox": {"show": "all"},
    "acp/ack": {"message_ids": ["message"]},
    **{f"acp/{name}": {} for name in MAIL_LISTS},
    "acp/unsubscribe": {},
    "acp/thread": {"thread_id": "nothing"},
    "acp/approve": {"message_id": "message", "decision": "approve"},
    "acp/replay": {"message_id": "message"},
    "acp/claim": {"session_id": "s"},
    "acp/subscribe": {"url": "http://127.0.0.1:1"},
    "acp/sync/agents": PEER | {"listed": []},
    "acp/sync/mail": PEER,
}
"""The node as a whole: refused. Mail, teams and handoffs are an agent's, not a project's."""
TABLES: dict[Reach, dict[str, Json]] = {
    "project": PROJECT,
    "own": OWN,
    "nothing": NOTHING,
    "node": NODE,
}
PARAMS: dict[str, Json] = PROJECT | OWN | NOTHING | NODE
ENDS = {"cacp/project/archive", "cacp/project/delete"}
"""Not called about the caller's own project, which the tests share."""
READS = [name for name in PROJECT | OWN if METHODS[name].access == "read"]

REFUSED_TOOLS = {
    *("cacp_project_create", "acp_send", "acp_respond", "acp_inbox", "acp_query", "acp_status"),
    *("acp_handoff", "acp_team", "cacp_agents"),
}
REFUSED_RESOURCES = {"acp://inbox"}


def test_every_method_is_decided_on() -> None:
    decided = {name: reach for reach, table in TABLES.items() for name in table}
    assert {name: method.reach for name, method in METHODS.items()} == decided


def test_every_tool_and_resource_is_decided_on() -> None:
    def whole(tool: str) -> bool:
        return any(METHODS[step].reach == "node" for step in TOOLS[tool].steps.values())

    assert {name for name in TOOLS if whole(name)} == REFUSED_TOOLS
    assert {one.uri for one in RESOURCES if whole(one.tool)} == REFUSED_RESOURCES


# --- a node with two projects -------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A project and one thing of each kind in it."""

    team: Team
    ids: dict[str, str]

    def params(self, given: Any, **other: str) -> Any:
        """Params with the ids of this project's things; those of `other` in their place."""
        if isinstance(given, dict):
            return {name: self.params(value, **other) for name, value in given.items()}
        if isinstance(given, list):
            return [self.params(value, **other) for value in given]
        ids = self.ids | other
        return ids.get(given, given) if isinstance(given, str) else given

    def call(self, method: str, **other: str) -> Json:
        """The params of a method about this project."""
        project = other.get("project", self.ids["project"])
        given: Json = self.params(PARAMS[method], **other)
        if method == "cacp/project/sync":
            return given | {"project": {"project_id": project, "name": "n"}}
        return given | ({"projectId": project} if method in PROJECT else {})


def filled(team: Team, word: str) -> World:
    """A project with one thing of each kind, each of which has `word` in what names it."""
    repo = {"name": f"repo-{word}", "role": word, "language": word}
    team.backend("project/addRepo", repo=repo)
    contract = team.agreed(name=word, content={"is": word})
    team.backend("implementation/start", contractId=contract, plan=word)
    update = team.proposed(name=f"{word} two", content={"is": word})
    changed = {"changed": word}
    team.backend("contract/update", contractId=update, content=changed, changeNote=word)
    _lose_a_race(team, update, word)
    question = team.frontend("context/askQuestion", question=word)["packetId"]
    packet = team.backend("context/share", type="api_spec", content={word: word}, replyTo=question)
    request = team.frontend("file/request", description=word)["requestId"]
    file = team.backend("file/share", file=inline(word.encode(), word), purpose=word)
    started = "2026-01-01T00:00:00Z"
    team.backend("run/report", runId=f"run-{word}", status="RUNNING", startedAt=started)
    ids = {
        "project": team.project,
        "contract": contract,
        "update": update,
        "question": question,
        "packet": packet["packetId"],
        "request": request,
        "file": file["fileId"],
        "repo": team.repo_id(f"repo-{word}"),
        "run": f"run-{word}",
    }
    return World(team, ids)


def _lose_a_race(team: Team, contract: str, word: str) -> None:
    """A version that another node wrote at the same time."""
    with closing(connect(team.node.db)) as db:
        facts = contracts.facts_of(db, contract)
        header = contracts.header_of(db, team.project, contract)
        assert header is not None
        version = next(
            fact for fact in facts.values() if isinstance(fact, VersionFact) and fact.version == 2
        )
        content = {"lost": word}
        lost = replace(
            version, digest=digest(content), content=content, stamp=version.stamp - 1, note=word
        )
        contracts.add(db, team.project, contract, header, facts, [lost])
        # The node sees what it holds as sound, as after a write of its own.
        changes.append(
            db,
            at=version.stamp,
            origin=AGENT,
            actor=AGENT,
            action="cacp/contract/sync",
            entity="contract",
            entity_id=contract,
            project_id=team.project,
            outcome="merged",
        )
    assert team.backend("contract/conflicts")["conflicts"]


def mailed(team: Team) -> dict[str, str]:
    """Mail, a team, a task and a handoff of the caller's own agent."""
    node, key = team.node, team.key
    sent = node.call(
        "acp/send",
        to=[FRONTEND_AGENT],
        type="knowledge.push",
        payload={"summary": MARK},
        topic=MARK,
    )
    node.call("acp/team", key=key, action="create", team=MARK, name=MARK, purpose=MARK)
    node.call("acp/team", key=key, action="createTask", team=MARK, task_id=MARK, title=MARK)
    return {"message": sent["message"]["id"]}


@dataclass(frozen=True)
class Caller:
    """Who is for the first project alone; both projects have its agent."""

    node: Node
    headers: dict[str, str]
    own: World
    other: World
    before: dict[str, str]
    """What it was shown before there was another project."""

    def text(self, method: str, params: Json) -> str:
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        return self.node.raw(json.dumps(request), self.headers).text

    def shown(self, method: str, params: Json) -> str:
        """An answer, in which nothing may be of the other project but what was sent."""
        text = self.text(method, params)
        self.check(text, params)
        return text

    def check(self, text: str, sent: object = "") -> None:
        said = json.dumps(sent)
        for one in (MARK, *self.other.ids.values()):
            assert one in said or one not in text, f"{sent}: {text}"


CALLERS = ("key", "human", "peer", "token")


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Caller]]:
    with Node(tmp_path_factory.mktemp("scope"), exchange=True, requests_per_minute=0) as node:
        team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND))
        own = filled(team, "first")
        kinds = {"key": [], "human": ["--human"], "peer": ["--trust", "peer"]}
        headers = {name: bearer(bound(team, *more)) for name, more in kinds.items()}
        headers["token"] = {"x-project-token": team.token()}
        alone = {name: Caller(node, one, own, own, {}) for name, one in headers.items()}
        before = {name: looked(one) for name, one in alone.items()}
        made = node.call("cacp/project/create", name=MARK, objective=MARK, repos=REPOS)
        second = Team(node, team.key, made["projectId"])
        second.frontend("project/join", repoName=FRONTEND)
        other = filled(second, MARK)
        other.ids.update(mailed(second))
        yield {name: replace(one, other=other, before=before[name]) for name, one in alone.items()}


@pytest.fixture(params=CALLERS)
def caller(request: pytest.FixtureRequest, callers: dict[str, Caller]) -> Caller:
    return callers[request.param]


def bound(team: Team, *more: str) -> str:
    words = ["keys", "create", FRONTEND_AGENT, "--repo", FRONTEND, "--project", team.project]
    done = cacp(*words, *more, "--json", db=str(team.node.db))
    return str(json.loads(done.stdout)["key"])


def looked(caller: Caller) -> dict[str, str]:
    """All that a caller may read of its project, and of the node."""
    reads = {method: caller.text(method, caller.own.call(method)) for method in READS}
    # Whole in its answer: how much else there is would show in it.
    reads["/health"] = caller.node.http.get("/health", headers=caller.headers).text
    return reads


# --- what it is shown ---------------------------------------------------------------------------


def test_reads_are_the_same_as_if_there_were_no_other_project(caller: Caller) -> None:
    """Also in their counts."""
    after = looked(caller)
    assert after == caller.before
    for text in after.values():
        caller.check(text)
    listed = json.loads(after["cacp/project/list"])["result"]
    assert ([one["project_id"] for one in listed["projects"]], listed["total"]) == (
        [caller.own.ids["project"]],
        1,
    )


def refusal(caller: Caller, method: str, params: Json) -> Json:
    error: Json = json.loads(caller.shown(method, params))["error"]
    reasons = ("other_project", "not_a_peer", "insufficient_trust")
    assert error["data"]["reason"] in reasons, f"{method}: {error}"
    return error


def test_a_method_about_another_project_is_refused(caller: Caller) -> None:
    """Alike whether there is such a project or not."""
    for method in PROJECT:
        error = refusal(caller, method, caller.other.call(method))
        same = refusal(caller, method, caller.other.call(method, project=str(uuid4())))
        assert error == same, method


def test_things_of_another_project_are_as_if_there_were_none(caller: Caller) -> None:
    """The ids of its things beside the caller's own project, and ids that nobody has."""
    theirs = {kind: id for kind, id in caller.other.ids.items() if kind != "project"}
    none = {kind: str(uuid4()) for kind in theirs}
    for method in sorted({*PROJECT, *OWN} - ENDS):
        params = caller.own.call(method, **theirs)
        said = caller.shown(method, params)
        if params == caller.own.call(method):
            continue
        expected = caller.shown(method, caller.own.call(method, **none))
        for kind in theirs:
            said, expected = said.replace(theirs[kind], kind), expected.replace(none[kind], kind)
        assert said == expected, method


def test_a_method_about_the_whole_node_is_refused(caller: Caller) -> None:
    for method in NODE:
        refusal(caller, method, caller.other.call(method))
        refusal(caller, method, {})


def test_writes_show_nothing_of_another_project(caller: Caller) -> None:
    for method in sorted({*PROJECT, *OWN, *NOTHING} - ENDS):
        if method not in READS:
            caller.shown(method, caller.own.call(method))


def test_tools_and_resources(caller: Caller) -> None:
    def asked(message: Json) -> str:
        response = post(caller.node, message, **caller.headers)
        caller.check(response.text, message)
        return json.dumps(answer_of(response))

    for name, tool in TOOLS.items():
        for step, method in tool.steps.items():
            chosen = {tool.chooser: step} if tool.chooser else {}
            for world in (caller.own, caller.other):
                given = {k: v for k, v in world.call(method).items() if k not in tool.fixed}
                said = asked(using(name, **given | chosen))
            assert name not in REFUSED_TOOLS or '"isError": true' in said, said
    rpc = {"jsonrpc": "2.0", "id": 7}
    listed = json.loads(asked(rpc | {"method": "resources/list", "params": {}}))["result"]
    asked(rpc | {"method": "resources/templates/list", "params": {}})
    asked(rpc | {"method": "tools/list", "params": {}})
    assert any(caller.own.ids["project"] in one["uri"] for one in listed["resources"])
    for one in RESOURCES:
        for world in (caller.own, caller.other):
            ids = {f"{kind}Id": id for kind, id in world.ids.items()}
            read = rpc | {"method": "resources/read", "params": {"uri": one.uri.format(**ids)}}
            answer = json.loads(asked(read))
            # What waits for the caller is of its own projects, whatever the request names.
            refused = one.uri in REFUSED_RESOURCES
            refused |= world is caller.other and "{" in one.uri
            assert ("error" in answer) == refused, answer


def test_routes_that_are_read(caller: Caller, tmp_path: Path) -> None:
    settings = Settings(db=tmp_path / "cacp.db", exchange=True)
    app = make_app(settings, prepare(settings.db), b"secret" * 8, admission(settings))
    paths = [route.path for route in app.routes if isinstance(route, Route)]
    for path in set(paths) - {"/events"}:
        for id in (caller.other.ids["project"], FRONTEND_AGENT):
            address = re.sub(r"\{.*\}", id, path)
            caller.check(caller.node.http.get(address, headers=caller.headers).text, address)


def test_the_event_stream(caller: Caller) -> None:
    """From the beginning of the node on."""
    last = caller.own.team.backend("context/share", type="decision", content={})["packetId"]
    http, headers = caller.node.http, caller.headers
    seen: list[Json] = []
    key = headers.get("authorization", "").removeprefix("Bearer ") or None
    token = headers.get("x-project-token")
    with caller.node.events(key=key, token=token, after="0") as events:
        for event in events:
            caller.check(json.dumps(event))
            seen.append(event["data"])
            if event["data"]["entityId"] == last:
                break
    assert {one["projectId"] for one in seen} == {caller.own.ids["project"]}
    for asked in ({"project": caller.other.ids["project"]}, {"kind": "mail"}):
        answer = http.get("/events", params=asked, headers=headers)
        assert answer.status_code == 403, answer.text
        caller.check(answer.text, asked)
