"""A client that knows the text of cacp-2.0 and nothing else walks all of it.

Its types are written down from the text, not taken from `schemas/`: members that the text marks `?`
may be absent and are never null, statuses are those that the text names, and what the text doesn't
name is passed over.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.node import Node
from tests.support.waiting import PATIENCE

Json = dict[str, Any]

# --- the text's Data Types ----------------------------------------------------------------------

CONTRACT_TYPES = [
    "api_endpoint",
    "event_schema",
    "data_model",
    "config_spec",
    "rpc_interface",
    "custom",
]
CONTEXT_TYPES = [
    "code_snippet",
    "type_definition",
    "api_spec",
    "error_catalog",
    "env_config",
    "test_case",
    "dependency_info",
    "implementation_status",
    "question",
    "decision",
]
CONTRACT_STATUS = {"proposed", "negotiating", "agreed", "implemented", "verified"}
TYPES: dict[str, Json] = {
    "Project": {
        "project_id": str,
        "name": str,
        "objective": str,
        "status": {"planning", "implementing", "integrating", "complete"},
        "repos": ["RepoContext"],
        "contracts": ["Contract"],
        "context_history": ["ContextPacket"],
        "created_at": str,
        "updated_at": str,
    },
    "RepoContext": {
        "repo_id": str,
        "name": str,
        "role": str,
        "language": str,
        "agent_id?": str,
        "agent_endpoint?": str,
    },
    "Contract": {
        "contract_id": str,
        "type": set(CONTRACT_TYPES),
        "name": str,
        "version": int,
        "status": CONTRACT_STATUS,
        "content": dict,
        "proposed_by": str,
        "implementations": [dict],
        "history": [dict],
        "created_at": str,
        "updated_at": str,
    },
    "ContextPacket": {
        "packet_id": str,
        "from_repo": str,
        "from_agent": str,
        "timestamp": str,
        "type": set(CONTEXT_TYPES),
        "content": dict,
        "related_contracts": [str],
        "reply_to?": str,
    },
}


def check(value: Any, type_: Any, where: str) -> None:
    """That a value is of a type of the text."""
    if isinstance(type_, str):
        type_ = TYPES[type_]
    if isinstance(type_, list):
        assert isinstance(value, list), where
        for place, item in enumerate(value):
            check(item, type_[0], f"{where}[{place}]")
    elif isinstance(type_, set):
        assert value in type_, f"{where}: {value}"
    elif isinstance(type_, dict):
        assert isinstance(value, dict), where
        for name, member in type_.items():
            bare = name.removesuffix("?")
            if bare == name or bare in value:
                assert bare in value, f"{where}.{bare} is missing"
                check(value[bare], member, f"{where}.{bare}")
    else:
        assert type(value) is type_, f"{where}: {value!r}"


def check_no_null(value: Any, where: str) -> None:
    """That nothing is null but what an agent wrote."""
    assert value is not None, where
    if isinstance(value, list):
        for item in value:
            check_no_null(item, f"{where}[]")
    elif isinstance(value, dict):
        for name, member in value.items():
            if name != "content":
                check_no_null(member, f"{where}.{name}")


# --- the client ---------------------------------------------------------------------------------


class Agent:
    """An agent as the text describes it: JSON-RPC to `POST /`, and the text's headers."""

    def __init__(self, node: Node, name: str, key: str | None) -> None:
        self.id = f"aid://example.com/{name}@1.0.0" if key else str(node.settings["agent_id"])
        self.repo = name
        self.url = node.url
        headers = {"X-Agent-ID": self.id}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self.http = httpx.Client(
            base_url=node.url, headers=headers, timeout=PATIENCE, trust_env=False
        )

    def answer(self, method: str, params: Any = None) -> Json:
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": "request-123"}
        answer: Json = self.http.post("/", json=request).json()
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == "request-123"
        return answer

    def __call__(self, method: str, result: Any = dict, /, **params: Any) -> Any:
        """The result of `cacp/METHOD`, which is of a type of the text."""
        answer = self.answer(f"cacp/{method}", params)
        assert "error" not in answer, answer
        check_no_null(answer["result"], method)
        check(answer["result"], result, method)
        return answer["result"]

    def refused(self, method: str, **params: Any) -> Json:
        """The error of a call that must not work."""
        error = self.answer(f"cacp/{method}", params)["error"]
        check(error, {"code": int, "message": str}, method)
        return dict(error)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("literal"), exchange=True) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="module")
def agents(node: Node) -> Iterator[dict[str, Agent]]:
    """The node's own agent for backend-api, and two with keys."""
    made = {"backend-api": Agent(node, "backend-api", None)}
    for name in ("frontend-app", "mobile-app"):
        made[name] = Agent(node, name, node.key(f"aid://example.com/{name}@1.0.0", name))
    yield made
    for agent in made.values():
        agent.http.close()


class Feature:
    """A project of the text, with three repos of which two are joined."""

    def __init__(self, agents: dict[str, Agent]) -> None:
        self.backend, self.frontend, self.mobile = agents.values()
        made = self.backend(
            "project/create",
            {"projectId": str, "status": {"created"}, "repoCount": int},
            name="User Auth Feature",
            objective="Implement OAuth 2.0 login",
            repos=[{"name": name, "role": "r", "language": "l"} for name in agents],
        )
        self.at = {"projectId": made["projectId"]}
        self.join(self.frontend)

    def join(self, agent: Agent) -> None:
        where = {"repoName": agent.repo, "agentEndpoint": "http://127.0.0.1:8081"}
        agent("project/join", {"repoId": str, "status": {"joined"}}, **self.at, **where)

    def propose(self, type_: str = "api_endpoint") -> Json:
        """The place of a new contract."""
        content = {"method": "GET", "path": "/api/v1/users/profile", "example": None}
        made = self.backend(
            "contract/propose",
            {"contractId": str, "version": int, "status": {"proposed"}},
            **self.at,
            type=type_,
            name="Get User Profile",
            content=content,
        )
        return self.at | {"contractId": made["contractId"]}

    def respond(self, agent: Agent, contract: Json, action: str) -> str:
        """The status that `agent` is answered: all that the text says of it."""
        answer = {"status": str, "version": int}
        said = agent("contract/respond", answer, **contract, action=action, comment="c")
        return str(said["status"])

    def status(self, contract: Json) -> str:
        project = self.backend("project/get", "Project", **self.at)
        [found] = [
            one for one in project["contracts"] if one["contract_id"] == contract["contractId"]
        ]
        return str(found["status"])


@pytest.fixture
def feature(agents: dict[str, Agent]) -> Feature:
    return Feature(agents)


# --- Methods ------------------------------------------------------------------------------------


def test_a_feature_from_its_project_to_what_is_verified(feature: Feature) -> None:
    feature.join(feature.mobile)
    for type_ in CONTRACT_TYPES:
        contract = feature.propose(type_)
    assert feature.respond(feature.frontend, contract, "request_change") != "agreed"
    content = {"method": "GET", "path": "/v2"}
    updated = {"version": {2}, "status": {"proposed"}}
    feature.backend("contract/update", updated, **contract, content=content, changeNote="n")
    assert feature.respond(feature.frontend, contract, "agree") == "agreed"
    assert feature.status(contract) == "agreed"
    for agent in (feature.backend, feature.frontend, feature.mobile):
        agent("implementation/start", **contract, plan="SQLAlchemy")
        agent("implementation/complete", **contract, files=["src/routes/user.py"])
    assert feature.status(contract) == "implemented"
    feature.backend("implementation/verify", **contract, result="success", notes="passing")
    assert feature.status(contract) == "verified"


def test_a_client_that_reads_only_status_never_takes_a_contract_for_agreed(
    feature: Feature,
) -> None:
    feature.join(feature.mobile)
    for against in ("request_change", "reject"):
        contract = feature.propose()
        feature.respond(feature.mobile, contract, against)
        assert feature.respond(feature.frontend, contract, "agree") != "agreed"
        assert feature.status(contract) != "agreed"
        assert feature.respond(feature.mobile, contract, "agree") == "agreed"
        assert feature.status(contract) == "agreed"


VERIFIED = {"result": "success"}


def test_every_call_can_be_made_again(feature: Feature) -> None:
    contract = feature.propose()
    for action in ("reject", "request_change", "agree"):
        first = feature.respond(feature.frontend, contract, action)
        assert feature.respond(feature.frontend, contract, action) == first
    feature.join(feature.mobile)
    feature.join(feature.mobile)
    assert feature.respond(feature.mobile, contract, "agree") == "agreed"
    work: list[tuple[str, Json]] = [("start", {"plan": "p"}), ("complete", {"files": ["a"]})]
    steps = [
        (agent, f"implementation/{step}", params)
        for agent in (feature.backend, feature.frontend, feature.mobile)
        for step, params in work
    ]
    for agent, step, params in [*steps, (feature.mobile, "implementation/verify", VERIFIED)]:
        first = agent(step, **contract, **params)
        assert agent(step, **contract, **params) == first
    assert feature.respond(feature.mobile, contract, "agree") == "agreed"
    feature.frontend("implementation/complete", **contract, files=["a"])
    assert feature.status(contract) == "verified"


def test_context_of_every_type_and_what_is_asked_and_decided(feature: Feature) -> None:
    contract = feature.propose()
    shared = {"packetId": str, "status": {"shared"}}
    related = {"relatedContracts": [contract["contractId"]]}
    for type_ in CONTEXT_TYPES:
        feature.backend(
            "context/share", shared, **feature.at, type=type_, content={"x": None}, **related
        )
    asked = {"question": "JWT?", "options": ["JWT tokens"], "urgent": False}
    feature.frontend("context/askQuestion", **feature.at, **asked, **related)
    feature.frontend("context/askQuestion", **feature.at, question="Which?")
    decided = {"decision": "Auth", "chosen": "JWT", "rationale": "r", "implications": ["i"]}
    feature.backend("context/recordDecision", **feature.at, **decided, **related)
    found = feature.backend("project/get", "Project", **feature.at)["context_history"]
    assert len(found) == len(CONTEXT_TYPES) + 3
    assert "options" not in found[-2]["content"]


def test_a_list_of_projects_is_of_all_of_them(agents: dict[str, Agent]) -> None:
    mine = [Feature(agents).at["projectId"] for _ in range(60)]
    listed = agents["backend-api"]("project/list", {"projects": ["Project"]})["projects"]
    assert [one["project_id"] for one in listed[:60]] == mine[::-1]


def test_errors_have_the_codes_of_the_text(node: Node, feature: Feature) -> None:
    def code(body: str) -> Any:
        return feature.backend.http.post(
            "/", content=body, headers={"content-type": "application/json"}
        ).json()["error"]["code"]

    assert code("{") == -32700
    assert code('{"jsonrpc": "2.0", "id": 1}') == -32600
    assert feature.backend.refused("no/such")["code"] == -32601
    error = feature.backend.refused("project/get")
    assert error["code"] == -32602
    assert error["message"] == "Invalid params: projectId is required"
    wrong = feature.backend.refused("project/create", name="n", objective="o", repos=["backend"])
    assert wrong["message"] == "Invalid params: repos.0 should be an object"
    assert "result" in feature.backend.answer("cacp/project/list", None)


# --- Discovery Endpoints, ADP -------------------------------------------------------------------


def test_discovery(node: Node, feature: Feature) -> None:
    def get(path: str, type_: Json) -> Any:
        found = feature.backend.http.get(path).json()
        check_no_null(found, path)
        check(found, type_, path)
        return found

    about = {
        "repo": str,
        "role": str,
        "language": str,
        "agentId": str,
        "supportedContractTypes": [set(CONTRACT_TYPES)],
        "supportedContextTypes": [set(CONTEXT_TYPES)],
    }
    card = {
        "name": str,
        "description": str,
        "version": {"2.0.0"},
        "url": {node.url},
        "protocols": {"cacp": {"2.0"}},
        "capabilities": [str],
        "extensions": {"cacp": about},
    }
    assert get("/.well-known/agent.json", card)["protocols"].keys() == {"cacp"}
    get("/health", {"status": {"healthy"}, "agentId": str, "repo": str, "peerCount": int})
    listed = get("/methods", {"methods": [str]})["methods"]
    assert "cacp/context/recordDecision" in listed
    for path in ("/v1/search/", "/v1/search"):
        query = {"query": "python backend", "filters": {"protocols": ["cacp"]}, "limit": 10}
        assert feature.backend.http.post(path, json=query).json()["results"], path


# --- Sync Methods -------------------------------------------------------------------------------


def test_a_peer_registers_and_sends_what_it_holds(tmp_path: Path) -> None:
    """What it sends is what it reads elsewhere: members that it doesn't have are absent."""
    with Node(tmp_path) as node, ExitStack() as stack:
        peer, own = Agent(node, "web", None), Agent(node, "backend-api", None)
        stack.callback(peer.http.close)
        stack.callback(own.http.close)
        me = {"agentId": "aid://example.com/web@1.0.0", "endpoint": "http://127.0.0.1:9"}
        peer.http.headers["X-Agent-ID"] = me["agentId"]
        peer.http.post("/peers/register", json=me | {"repoName": "web"}).raise_for_status()
        when = "2026-01-01T00:00:00"
        project = {
            "project_id": "f0ebc7e6-3b58-4d02-abb1-b63e1e0ba7ac",
            "name": "n",
            "objective": "o",
            "status": "planning",
            "repos": [
                {"repo_id": "w", "name": "web", "role": "frontend", "language": "typescript"}
                | {"agent_id": me["agentId"]}
            ],
            "contracts": [],
            "context_history": [],
            "created_at": when,
            "updated_at": when,
        }
        source = {"source_agent": me["agentId"]}
        peer("project/sync", project=project, **source)
        contract = {
            "contract_id": "695296cc-d05a-4f43-99cd-ec3b6197461b",
            "type": "api_endpoint",
            "name": "c",
            "version": 1,
            "status": "proposed",
            "content": {},
            "proposed_by": "w",
            "implementations": [],
            "history": [],
            "created_at": when,
            "updated_at": when,
        }
        at = {"projectId": project["project_id"]} | source
        peer("contract/sync", contract=contract, **at)
        packet = {
            "packet_id": "p",
            "from_repo": "w",
            "from_agent": me["agentId"],
            "timestamp": when,
            "type": "question",
            "content": {},
            "related_contracts": [],
        }
        peer("context/sync", packet=packet, **at)
        found = own("project/get", "Project", projectId=project["project_id"])
        assert [one["name"] for one in found["contracts"]] == ["c"]
        assert [one["packet_id"] for one in found["context_history"]] == ["p"]
        check_no_null(own.http.get("/peers").json(), "/peers")
        for line in _changes(own):
            check_no_null(json.loads(line), "/events")


def _changes(agent: Agent) -> list[str]:
    """What a stream of changes tells of the first three."""
    found: list[str] = []
    with agent.http.stream("GET", "/events", params={"after": "0"}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                found.append(line.removeprefix("data: "))
            if len(found) == 3:
                break
    return found
