"""Which caller may call what: every method and route, for each kind of caller (design §7).

What is asked for is never the caller's own: a project, mail, a teamspace and a handoff of two
other agents. A method or route that is not in these tables fails the test: whoever adds one
decides.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from server.app import make_app
from server.methods import METHODS
from server.page.views import VIEWS
from server.serve import admission
from server.settings import Settings
from tests.server.methods.test_base_scope import PARAMS
from tests.support.in_process_node import package
from tests.support.located import prepare
from tests.support.node import AGENT, REPO, Node, bearer
from tests.support.shared_files import inline

Json = dict[str, Any]
ANN = "aid://example.com/ann"
BEN = "aid://example.com/ben"


@dataclass(frozen=True)
class World:
    """What two agents have, one thing of each kind."""

    node: Node
    ids: dict[str, str]
    more: dict[str, Json]

    def params(self, call: str) -> Json:
        method = call.split(" ")[0]
        params: Json = self._placed(PARAMS[method] | self.more.get(method, {}) | MORE.get(call, {}))
        if "project_id" in METHODS[method].params.model_fields:
            params["projectId"] = self.ids["project"]
        return params

    def _placed(self, given: Any) -> Any:
        """Params with ids in place of the kinds of things."""
        if isinstance(given, dict):
            return {name: self._placed(value) for name, value in given.items()}
        if isinstance(given, list):
            return [self._placed(value) for value in given]
        return self.ids.get(given, given) if isinstance(given, str) else given


def world_on(node: Node, name: str, ann: str, ben: str) -> World:
    """`name` is in the ids that the world's owners choose."""
    repos = [{"name": repo, "role": "r", "language": "l"} for repo in ("web", "app", "free")]
    made = node.call("cacp/project/create", key=ann, name="n", objective="o", repos=repos)
    project = {"projectId": made["projectId"]}

    def as_ann(method: str, **params: Any) -> Any:
        return node.call(method, key=ann, **params)

    node.call("cacp/project/join", key=ben, **project, repoName="app")
    propose = {"type": "api_endpoint", "name": "n", "content": {}}
    contract = as_ann("cacp/contract/propose", **project, **propose)["contractId"]
    packet = as_ann("cacp/context/share", **project, type="decision", content={})["packetId"]
    file = as_ann("cacp/file/share", **project, file=inline(b"content", "f"))["fileId"]
    request = as_ann("cacp/file/request", **project, description="d")["requestId"]
    sending = {"to": [BEN], "type": "knowledge.push", "payload": {"summary": "s"}}
    gated = as_ann("acp/send", **sending, policy={"human_gate": "required"})["message"]["id"]
    team, task = f"team-{name}", f"task-{name}"
    as_ann("acp/team", action="create", team=team, name="n", purpose="p")
    given = {"to": BEN, "reason": "r", "package": package(task)}
    handoff = as_ann("acp/handoff", action="initiate", **given)["handoff"]["handoffId"]
    node.call("acp/handoff", key=ben, action="accept", handoff_id=handoff)
    peer = {"agentId": f"aid://example.com/peer-{name}", "endpoint": "http://127.0.0.1:1"}
    return World(
        node,
        {
            "project": made["projectId"],
            "contract": contract,
            "packet": packet,
            "file": file,
            "request": request,
            "message": gated,
            "peer": peer["agentId"],
        },
        {
            "cacp/project/join": {"repoName": "free"},
            "cacp/sync/pull": {
                "entities": [{"entity": "context", "project_id": "project", "entity_id": "packet"}]
            },
            "acp/sync/handoff": {"agent": BEN, "call": {"action": "get", "handoff_id": handoff}},
            "cacp/repo/reassign": {"repoName": "web", "agentId": AGENT},
            "cacp/repo/release": {"repoName": "web"},
            "cacp/project/addRepo": {"repo": {"name": "more", "role": "r", "language": "l"}},
            "cacp/project/sync": {"project": {"project_id": made["projectId"], "name": "n"}},
            "cacp/peer/announce": peer | {"repoName": f"repo-{name}"},
            "acp/send": {"to": [BEN]},
            "acp/status": {"to": [BEN]},
            "acp/team": {"team": team},
            "acp/handoff": {"action": "get", "handoff_id": handoff},
            "acp/handoff/check": {
                "handoff_id": handoff,
                "package_hash": "0" * 64,
                "commands": [{"exit_code": 0}],
            },
        },
    )


MORE: dict[str, Json] = {
    "acp/handoff history": {"action": "history"},
    "acp/handoff list": {"action": "list", "role": "coordinator", "handoff_id": None},
    "acp/handoff revoke": {"action": "revoke", "detail": "d"},
    "acp/send to all": {"to": ["*"]},
    "cacp/repo/sync as a peer": {"source_agent": "peer"},
}
"""Calls of a method beside its own, with what they change in its params."""
LAST = (
    "cacp/project/join",
    "cacp/repo/reassign",
    "cacp/repo/release",
    "cacp/project/archive",
    "cacp/project/unarchive",
    "cacp/project/delete",
)
"""What changes who is a member, or whether there is a project."""
CALLS = [*(name for name in METHODS if name not in LAST), *MORE, *LAST]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("callers"), exchange=True, unlimited_senders=True) as node:
        yield node


@pytest.fixture(scope="module")
def headers(node: Node) -> dict[str, dict[str, str]]:
    """Each kind of caller."""
    return {
        "remote": {"x-forwarded-for": "203.0.113.9"},
        "keyless": {},
        "own": bearer(node.key(AGENT, REPO)),
        "agent": bearer(node.key("aid://example.com/cleo", "cleo")),
        "human": bearer(node.key("aid://example.com/hugh", "", human=True)),
        "operator": bearer(node.operator),
    }


@pytest.fixture(scope="module")
def outcomes(node: Node, headers: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """By call, then by caller: "ok", or the reason of the refusal."""
    ann, ben = node.key(ANN, "web"), node.key(BEN, "app")
    outcomes: dict[str, dict[str, str]] = {call: {} for call in CALLS}
    for caller, given in headers.items():
        world = world_on(node, caller, ann, ben)
        for call in CALLS:
            method, params = call.split(" ")[0], world.params(call)
            request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
            answer = node.raw(json.dumps(request), given).json()
            error = answer.get("error")
            outcomes[call][caller] = "ok" if error is None else error["data"]["reason"]
    return outcomes


KINDS = ("keyless", "own", "agent", "human", "operator")
"""A program of this machine, the node's own agent with its key, another agent, a human, the
operator. The remote one, whose request came through a proxy, is always refused."""
ALL = ("ok",) * 5
MEMBERS = ("not_a_member",) * 5
MEMBERS_AND_OPERATOR = (*("not_a_member",) * 4, "ok")
OWNERS_AND_OPERATOR = (*("not_project_owner",) * 4, "ok")
PERSONS_AND_OPERATOR = (*("not_project_owner",) * 3, "ok", "ok")
COORDINATORS = (*("not_found",) * 3, "ok", "ok")
HUMANS = (*("not_human",) * 3, "ok", "not_human")
PARTIES = ("not_found",) * 5
RUNNERS_ONLY = ("receipt_edited",) * 5
"""Whoever brings it, a receipt counts by its runner's signature."""
KEYED_PEERS = ("unknown_peer", *("not_a_peer",) * 3, "unknown_peer")
PEERS_AT_THEIR_WORD = ("unknown_peer", *("not_a_peer",) * 3, "source_agent_mismatch")

EXPECTED: dict[str, tuple[str, ...]] = {
    "cacp/attention/list": MEMBERS,
    "cacp/search": ALL,
    "cacp/project/create": ALL,
    "cacp/project/join": ("ok", *("other_repo",) * 3, "ok"),
    "cacp/project/get": ALL,
    "cacp/project/matrix": ALL,
    "cacp/project/graph": ALL,
    "cacp/project/list": ALL,
    "cacp/project/board": ALL,
    "cacp/project/timeline": ALL,
    "cacp/project/stateAt": ALL,
    "cacp/activity/list": ALL,
    "cacp/project/updateStatus": MEMBERS_AND_OPERATOR,
    "cacp/project/updateVerificationPolicy": PERSONS_AND_OPERATOR,
    "cacp/project/addRepo": MEMBERS_AND_OPERATOR,
    "cacp/project/archive": OWNERS_AND_OPERATOR,
    "cacp/project/unarchive": OWNERS_AND_OPERATOR,
    "cacp/project/delete": OWNERS_AND_OPERATOR,
    "cacp/project/syncState": KEYED_PEERS,
    "cacp/repo/release": PERSONS_AND_OPERATOR,
    "cacp/repo/reassign": OWNERS_AND_OPERATOR,
    "cacp/agent/list": ALL,
    "cacp/agent/revokeKeys": (*("not_human",) * 3, "not_found", "not_found"),
    "cacp/agent/overview": ALL,
    "cacp/contract/propose": MEMBERS,
    "cacp/contract/respond": MEMBERS,
    "cacp/contract/update": MEMBERS,
    "cacp/contract/get": ALL,
    "cacp/contract/list": ALL,
    "cacp/contract/overview": ALL,
    "cacp/contract/diff": ALL,
    "cacp/contract/compare": ALL,
    "cacp/contract/agreed": ALL,
    "cacp/contract/timeline": ALL,
    "cacp/contract/conflicts": ALL,
    "cacp/context/share": MEMBERS,
    "cacp/context/askQuestion": MEMBERS,
    "cacp/context/recordDecision": MEMBERS,
    "cacp/context/list": ALL,
    "cacp/context/getThread": ALL,
    "cacp/implementation/start": MEMBERS,
    "cacp/implementation/complete": MEMBERS,
    "cacp/implementation/verify": MEMBERS,
    "cacp/implementation/getStatus": ALL,
    "cacp/implementation/report": MEMBERS,
    "cacp/receipt/record": RUNNERS_ONLY,
    "cacp/receipt/list": ALL,
    "cacp/file/share": MEMBERS,
    "cacp/file/request": MEMBERS,
    "cacp/file/listRequests": ALL,
    "cacp/file/fulfillRequest": MEMBERS,
    "cacp/file/list": ALL,
    "cacp/file/get": ALL,
    "cacp/run/report": MEMBERS,
    "cacp/run/list": ALL,
    "cacp/run/get": ("not_found",) * 5,
    "cacp/sync/digest": KEYED_PEERS,
    "cacp/sync/pull": KEYED_PEERS,
    "cacp/sync/bans": KEYED_PEERS,
    "cacp/sync/evidence": KEYED_PEERS,
    "cacp/project/sync": PEERS_AT_THEIR_WORD,
    "cacp/contract/sync": PEERS_AT_THEIR_WORD,
    "cacp/context/sync": PEERS_AT_THEIR_WORD,
    "cacp/receipt/sync": KEYED_PEERS,
    "cacp/repo/sync": PEERS_AT_THEIR_WORD,
    "cacp/repo/sync as a peer": ("ok", *PEERS_AT_THEIR_WORD[1:]),
    "cacp/file/sync": KEYED_PEERS,
    "cacp/file/syncRequest": KEYED_PEERS,
    "cacp/sync/file": KEYED_PEERS,
    "cacp/peer/announce": ("ok", *("not_a_peer",) * 3, "ok"),
    "rpc.discover": ALL,
    "acp/handoff": COORDINATORS,
    "acp/handoff/check": (*("not_found",) * 3, "not_waiting", "wrong_party"),
    "acp/handoff history": COORDINATORS,
    "acp/handoff list": (*("role_authority",) * 3, "ok", "ok"),
    "acp/handoff revoke": COORDINATORS,
    "acp/sync/handoff": KEYED_PEERS,
    "acp/team": PARTIES,
    "acp/send": ALL,
    "acp/send to all": (*("broadcast_not_allowed",) * 3, "ok", "ok"),
    "acp/respond": PARTIES,
    "acp/status": ALL,
    "acp/inbox": ALL,
    "acp/ack": ALL,
    "acp/query": ALL,
    "acp/threads": ALL,
    "acp/thread": PARTIES,
    "acp/handoffs": ALL,
    "acp/teams": ALL,
    "acp/approve": HUMANS,
    "acp/approvals": HUMANS,
    "acp/deadLetters": ALL,
    "acp/replay": (*("not_found",) * 3, "not_the_sender", "not_found"),
    "acp/claim": ALL,
    "cacp/attention/claim": ALL,
    "cacp/attention/overview": ALL,
    "acp/subscribe": ("channel_disabled",) * 5,
    "acp/unsubscribe": ALL,
    "acp/channels": ALL,
    "acp/sync/agents": ("invalid_params", *("not_a_peer",) * 3, "invalid_params"),
    "acp/sync/mail": KEYED_PEERS,
}
"""By call, for each of `KINDS`: "ok", or the reason of the refusal."""

PLACE = {"cacp/project/join", "cacp/repo/sync as a peer", "cacp/peer/announce"}
"""What a program of this machine may do without a key that the node's own agent may not with one:
claim any free repo, which its key binds to one, in its own name; and be a peer that has no key,
where CACP_TRUST_UNKEYED_PEERS says so."""


def test_every_call_is_decided_on(outcomes: dict[str, dict[str, str]]) -> None:
    assert {call: tuple(by[kind] for kind in KINDS) for call, by in outcomes.items()} == EXPECTED
    assert {by["remote"] for by in outcomes.values()} == {"forwarded"}


def test_without_a_key_a_program_is_the_nodes_own_agent_and_nothing_more() -> None:
    more = {call for call, (keyless, own, *_) in EXPECTED.items() if keyless == "ok" != own}
    assert more == PLACE


def test_the_operator_decides_nothing_in_a_humans_place() -> None:
    only_humans = {call for call, by in EXPECTED.items() if by[3] == "ok" != by[4]}
    assert only_humans == {"acp/approve", "acp/approvals"}


# --- routes -------------------------------------------------------------------------------------

PUBLIC = frozenset({"remote", *KINDS})
CALLERS = frozenset(KINDS)
OWN_AGENT = frozenset({"keyless", "own", "operator"})
REGISTERS = frozenset({"keyless", "operator"})
ROUTES: dict[str, frozenset[str]] = {
    "POST /": CALLERS,
    "POST /mcp": CALLERS,
    "GET /.well-known/agent.json": PUBLIC,
    "GET /.well-known/agent-card.json": PUBLIC,
    "GET /.well-known/cacp-challenge/{nonce}": PUBLIC,
    "GET /methods": PUBLIC,
    "GET /openrpc.json": PUBLIC,
    "GET /health": PUBLIC,
    "GET /live": PUBLIC,
    "GET /ready": PUBLIC,
    "GET /mesh": CALLERS,
    "GET /peers": CALLERS,
    "GET /metrics": CALLERS,
    "GET /events": CALLERS,
    "POST /peers/register": REGISTERS,
    "POST /peers/hello": PUBLIC,
    "POST /peers/confirm": PUBLIC,
    "POST /adp/search": CALLERS,
    "POST /adp/register": OWN_AGENT,
    "POST /adp/known": OWN_AGENT,
    "POST /known": PUBLIC,
    "POST /v1/search": CALLERS,
    "POST /v1/register": CALLERS,
    "GET /v1/agents": CALLERS,
    "GET /v1/agents/{aid:path}": CALLERS,
    "GET /": PUBLIC,
    "GET /ui": CALLERS,
    "GET /ui/{rest:path}": CALLERS,
    "GET /ui/events": CALLERS,
    "GET /ui/assets/{name}": PUBLIC,
    "GET /ui/sign-in": PUBLIC,
    "GET /ui/enter": PUBLIC,
    "POST /ui/sign-in": PUBLIC,
    "POST /ui/enter": PUBLIC,
    # A key alone is no session.
    "POST /ui/sign-out": frozenset(),
    "POST /ui/actions/{name}": frozenset(),
    "POST /ui/links": CALLERS - {"keyless"},
    **{f"GET {view.path}": CALLERS for view in VIEWS.values()},
    **{f"GET {view.path}.json": CALLERS for view in VIEWS.values()},
}
"""By HTTP method and path, who is let in."""


def test_every_route_is_decided_on(
    node: Node, headers: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    settings = Settings(db=tmp_path / "cacp.db", exchange=True)
    app = make_app(settings, prepare(settings.db), b"secret" * 8, admission(settings))
    admitted: dict[str, frozenset[str]] = {}
    for route in app.routes:
        assert isinstance(route, Route)
        path = re.sub(r"\{.*\}", "none", route.path)
        for verb in (route.methods or set()) - {"HEAD"}:
            place = f"{verb} {route.path.rstrip('/') or '/'}"
            admitted[place] = frozenset(
                kind for kind, given in headers.items() if lets_in(node, verb, path, given)
            )
    assert admitted == ROUTES


def lets_in(node: Node, verb: str, path: str, given: dict[str, str]) -> bool:
    """Whether a caller gets further than to its credentials, with a body that says nothing."""
    whole = given | {"content-type": "application/json", "accept": "application/json"}
    content = b"{}" if verb == "POST" else None
    with node.http.stream(verb, path, headers=whole, content=content) as answer:
        # 303 leads to the sign-in form.
        return answer.status_code not in (303, 401, 403)


def test_changes_of_mail_are_for_humans(node: Node, headers: dict[str, dict[str, str]]) -> None:
    path = "/events?kind=message"
    admitted = {kind for kind, given in headers.items() if lets_in(node, "GET", path, given)}
    assert admitted == {"human"}
