"""Idempotency-Key (design §3)."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.server.rpc.test_dispatch import LIST, answer, code, count
from tests.support.node import Node, bearer
from tests.support.team import CONTENT, Team


def propose(team: Team, idempotency_key: str, name: str = "n", key: str | None = None) -> Any:
    params = {"projectId": team.project, "type": "custom", "name": name, "content": CONTENT}
    request = {"jsonrpc": "2.0", "method": "cacp/contract/propose", "params": params, "id": 1}
    return answer(team.node, request, bearer(key) | {"idempotency-key": idempotency_key})


def test_a_retried_call_answers_what_the_first_one_did(team: Team) -> None:
    first = propose(team, "retry-1")
    before = count(team.node)
    assert propose(team, "retry-1") == first
    assert count(team.node) == before
    assert propose(team, "retry-2") != first


def test_retries_that_come_at_once_are_one_call(team: Team) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: propose(team, "at-once"), range(16)))
    assert [one["result"] for one in answers] == [answers[0]["result"]] * 16
    assert len(team.backend("contract/list")["contracts"]) == 1


def test_a_used_key_with_other_params_is_a_conflict(team: Team) -> None:
    propose(team, "other-params")
    given = propose(team, "other-params", name="another")
    assert code(given) == -32004
    assert given["error"]["data"]["reason"] == "idempotency_key_reused"


def test_keys_are_each_callers_own(team: Team) -> None:
    assert "result" in propose(team, "shared", key=team.key)
    assert "result" in propose(team, "shared", name="another")


def test_keys_are_each_repos_own_even_of_one_agent(team: Team) -> None:
    """An agent that holds two repos acts for each: one answer must not stand for both."""
    team.backend("project/addRepo", repo={"name": "second", "role": "r", "language": "l"})
    again = team.node.key("aid://example.com/frontend@1.0.0", "second")
    team.node.call("cacp/project/join", key=again, projectId=team.project, repoName="second")
    first = propose(team, "two-repos", key=team.key)["result"]["contractId"]
    second = propose(team, "two-repos", key=again)["result"]["contractId"]
    assert team.contract(first)["proposed_by"] == team.repo_id("frontend-app")
    assert team.contract(second)["proposed_by"] == team.repo_id("second")


def test_a_key_stands_for_each_member_of_a_batch(team: Team) -> None:
    params = {"projectId": team.project, "type": "custom", "name": "n", "content": {}}
    request = {"jsonrpc": "2.0", "method": "cacp/contract/propose", "params": params}
    batch = [request | {"id": 1}, request | {"id": 2}]
    first = answer(team.node, batch, {"idempotency-key": "batch"})
    assert answer(team.node, batch, {"idempotency-key": "batch"}) == first
    assert len({one["result"]["contractId"] for one in first}) == 2


def test_a_refusal_is_not_kept(team: Team) -> None:
    contract = team.proposed()
    request = {
        "jsonrpc": "2.0",
        "method": "cacp/implementation/start",
        "params": {"projectId": team.project, "contractId": contract},
        "id": 1,
    }
    assert code(answer(team.node, request, {"idempotency-key": "early"})) == -32602
    team.frontend("contract/respond", contractId=contract, action="agree")
    assert "result" in answer(team.node, request, {"idempotency-key": "early"})


def test_an_answer_is_kept_across_a_crash(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        team = Team.on(node, node.key("aid://example.com/frontend@1.0.0", "frontend-app"))
        first = propose(team, "crash")
        node.kill()
        node.restart()
        assert propose(team, "crash") == first
        assert propose(team, "crash", name="another")["error"]["code"] == -32004


def test_a_key_does_no_harm_to_a_read(team: Team) -> None:
    headers = {"idempotency-key": "read"}
    assert "result" in answer(team.node, LIST | {"id": 1}, headers)
    assert "result" in answer(team.node, LIST | {"id": 1, "params": {}}, headers)
