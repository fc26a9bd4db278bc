"""What every method shares: who acts in a project, and how far a token reaches (design §5, §6)."""

import asyncio
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from server.methods import METHODS
from server.methods.base import CallSession, new_id
from tests.server.methods.refusals import refused
from tests.support.node import bearer, error_of
from tests.support.team import Team
from tests.support.waiting import PATIENCE


@pytest.fixture
def narrowed(team: Team) -> Callable[..., Any]:
    """Calls as the node's own agent, narrowed by a token to the team's project."""
    headers = {"x-project-token": team.token()}

    def call(method: str, /, **params: Any) -> Any:
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        answer = team.node.raw(json.dumps(request), headers).json()
        if "error" in answer:
            raise error_of(answer)
        return answer["result"]

    return call


def test_every_method_is_declared_whole() -> None:
    for name, method in METHODS.items():
        assert method.name == name
        assert method.summary
        assert not method.summary.endswith(("\n", " "))
        # Mail is read by its recipient alone, who must have the access to acknowledge it; whom one
        # can write to is for those who may write. What
        # waits writes in transactions of its own; who reads has a copy kept, no more. What is
        # fetched by comparing is for peers, and changes nothing.
        reads = name == "cacp/file/get"
        apart = {"cacp/sync/bans": "sync", "cacp/sync/evidence": "sync", "cacp/agent/list": "write"}
        apart["cacp/agent/overview"] = "write"
        if name in apart:
            assert (method.writes, method.access) == (False, apart[name])
            continue
        writes = method.writes or (method.waits and not reads)
        assert writes == (method.access != "read") or name.startswith("acp/")


def test_the_methods_of_the_specification_are_all_there() -> None:
    """CACP 2.0, Methods."""
    assert METHODS.keys() >= {
        "cacp/project/create",
        "cacp/project/join",
        "cacp/project/get",
        "cacp/project/list",
        "cacp/contract/propose",
        "cacp/contract/respond",
        "cacp/contract/update",
        "cacp/context/share",
        "cacp/context/askQuestion",
        "cacp/context/recordDecision",
        "cacp/implementation/start",
        "cacp/implementation/complete",
        "cacp/implementation/verify",
        "cacp/project/sync",
        "cacp/contract/sync",
        "cacp/context/sync",
    }


def test_the_methods_that_deployed_clients_call_are_all_there() -> None:
    """Design §5: deployed clients call more than the text lists."""
    assert METHODS.keys() >= {
        "cacp/contract/get",
        "cacp/contract/list",
        "cacp/contract/conflicts",
        "cacp/context/list",
        "cacp/context/getThread",
        "cacp/implementation/getStatus",
        "cacp/implementation/report",
        "cacp/project/updateStatus",
        "cacp/project/addRepo",
        "cacp/repo/sync",
        "cacp/peer/announce",
        "cacp/file/share",
        "cacp/file/request",
        "cacp/file/listRequests",
        "cacp/file/fulfillRequest",
    }


def test_ids_are_uuids_in_the_order_of_time() -> None:
    made = [new_id() for _ in range(100)]
    assert made == sorted(made)
    assert {UUID(one).version for one in made} == {7}


def test_an_unknown_project_is_not_found(team: Team) -> None:
    """-32602 with reason not_found."""
    missing = "00000000-0000-4000-8000-000000000000"
    calls: dict[str, dict[str, Any]] = {
        "project/get": {},
        "contract/list": {},
        "context/list": {},
        "contract/propose": {"type": "custom", "name": "n", "content": {}},
        "project/join": {"repoName": "frontend-app"},
        "project/updateStatus": {"status": "planning"},
    }
    for method, params in calls.items():
        with refused(-32602, "not_found", kind="project", projectId=missing):
            team.backend(method, **params, projectId=missing)


def test_who_holds_no_repo_reads_but_writes_nothing(team: Team) -> None:
    key = team.node.key("aid://example.com/stranger@1.0.0", "stranger")
    contract = team.proposed()
    at = {"projectId": team.project, "contractId": contract}
    assert team.node.call("cacp/contract/get", key=key, **at)["contract_id"] == contract
    with refused(-32003, "not_a_member"):
        team.node.call("cacp/contract/respond", key=key, **at, action="agree")


def test_an_agent_acts_in_any_of_its_versions(team: Team) -> None:
    """Design §5: compare agents without their version."""
    newer = team.node.key("aid://example.com/frontend@2.0.0", "frontend-app")
    contract = team.proposed()
    team.node.call(
        "cacp/contract/respond",
        key=newer,
        projectId=team.project,
        contractId=contract,
        action="agree",
    )
    assert team.contract(contract)["status"] == "agreed"


def test_a_token_reaches_one_project(team: Team, narrowed: Callable[..., Any]) -> None:
    """CACP 2.0, Headers: X-Project-Token."""
    other = Team.on(team.node, team.key)
    contract = other.proposed()
    request = other.frontend("file/request", description="logo")["requestId"]
    file = {"name": "a", "content": ""}
    assert narrowed("cacp/project/get", projectId=team.project)["project_id"] == team.project
    calls: dict[str, dict[str, Any]] = {
        "cacp/project/get": {},
        "cacp/project/join": {"repoName": "backend-api"},
        "cacp/project/updateStatus": {"status": "planning"},
        "cacp/project/addRepo": {"repo": {"name": "x", "role": "y", "language": "z"}},
        "cacp/contract/get": {"contractId": contract},
        "cacp/contract/list": {},
        "cacp/contract/conflicts": {},
        "cacp/contract/respond": {"contractId": contract, "action": "reject"},
        "cacp/implementation/getStatus": {"contractId": contract},
        "cacp/context/list": {},
        "cacp/context/getThread": {"packetId": "x"},
        "cacp/context/share": {"type": "decision", "content": {}},
        "cacp/file/list": {},
        "cacp/file/get": {"fileId": "x"},
        "cacp/file/share": {"file": file},
        "cacp/file/listRequests": {},
    }
    for method, params in calls.items():
        with refused(-32003, "other_project", projectIds=[team.project]):
            narrowed(method, projectId=other.project, **params)
    with refused(-32602, "not_found"):
        narrowed("cacp/file/fulfillRequest", requestId=request, file=file)
    other.backend("file/fulfillRequest", requestId=request, file=file)
    with refused(-32602, "not_found"):
        narrowed("cacp/file/fulfillRequest", requestId=request, file=file)


def test_a_token_shows_one_project_and_makes_none(team: Team, narrowed: Callable[..., Any]) -> None:
    Team.on(team.node, team.key)
    [listed] = narrowed("cacp/project/list")["projects"]
    assert listed["project_id"] == team.project
    with refused(-32003, "other_project"):
        narrowed("cacp/project/create", name="n", objective="o")


def test_a_token_registers_no_peer(narrowed: Callable[..., Any]) -> None:
    with refused(-32003, "other_project"):
        narrowed("cacp/peer/announce", agentId="aid://a.example/b@1", endpoint="http://127.0.0.1:1")


def test_what_is_no_token_is_refused(team: Team) -> None:
    response = team.node.raw("{}", bearer(team.key) | {"x-project-token": "nonsense"})
    error = error_of(response.json())
    assert (response.status_code, error.code, error.reason) == (401, -32001, "invalid_token")


@pytest.mark.parametrize("first", ["event", "stopping", "time"])
def test_a_session_waits_for_what_comes_first(first: str) -> None:
    """The end of the node ends a wait, too."""

    async def wait() -> None:
        event, stopping = asyncio.Event(), asyncio.Event()
        nothing: Any = None
        session = CallSession(nothing, nothing, nothing, "acp/inbox", stopping)
        until = session.until(event, 0.01 if first == "time" else 10 * PATIENCE)
        waiting = asyncio.create_task(until)
        await asyncio.sleep(0)
        assert not waiting.done(), "nothing has come yet"
        {"event": event, "stopping": stopping}.get(first, asyncio.Event()).set()
        await waiting

    asyncio.run(asyncio.wait_for(wait(), PATIENCE))


def test_contracts_proposed_in_one_batch_have_ids_of_their_own_in_that_order(team: Team) -> None:
    """They follow from half of their bits, and many fall into one millisecond."""
    params = {"projectId": team.project, "type": "custom", "content": {}}
    batch = [
        {
            "jsonrpc": "2.0",
            "method": "cacp/contract/propose",
            "params": params | {"name": f"n{number}"},
            "id": number,
        }
        for number in range(50)
    ]
    answers = sorted(team.node.raw(json.dumps(batch)).json(), key=lambda one: int(one["id"]))
    made = [one["result"]["contractId"] for one in answers]
    assert made == sorted(set(made))
