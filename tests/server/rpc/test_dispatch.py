"""JSON-RPC 2.0 as the node speaks it, over HTTP (CACP 2.0, Transport; design §5)."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from server.methods import METHODS
from tests.support.located import connect
from tests.support.node import Node, RpcError, check_result, error_of
from tests.support.team import FRONTEND, REPO, Team

LIST = {"jsonrpc": "2.0", "method": "cacp/project/list", "params": {"limit": 1}}


def answer(node: Node, request: Any, headers: dict[str, str] | None = None) -> Any:
    response = node.raw(json.dumps(request), headers or {})
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    return response.json()


def reason(answer: Any) -> Any:
    return answer["error"]["data"]["reason"]


def code(response: Any) -> int:
    assert response.keys() == {"jsonrpc", "error", "id"}
    assert response["jsonrpc"] == "2.0"
    return int(response["error"]["code"])


def count(node: Node) -> int:
    return int(node.query("SELECT count(*) FROM changes")[0][0])


# --- section 4: the request object --------------------------------------------------------------


@pytest.mark.parametrize("id", ["request-123", "", 0, 7, -7, 1.5, None, 2**63])
def test_the_id_is_echoed(node: Node, id: Any) -> None:
    """JSON-RPC 2.0, section 5: id must be the same as the value in the request."""
    given = answer(node, LIST | {"id": id})
    assert given["id"] == id
    assert type(given["id"]) is type(id)
    assert given.keys() == {"jsonrpc", "result", "id"}


@pytest.mark.parametrize("body", ["", "{", "nonsense", '{"jsonrpc": "2.0",}', "[1,", "NaN"])
def test_what_is_no_json_is_a_parse_error_with_id_null(node: Node, body: str) -> None:
    response = node.raw(body)
    assert response.status_code == 200
    assert (code(response.json()), response.json()["id"]) == (-32700, None)
    assert reason(response.json()) == "parse_error"


def test_a_body_that_is_no_utf8_is_a_parse_error(node: Node) -> None:
    assert code(node.raw(b'{"jsonrpc": "\xff"}').json()) == -32700


def test_deep_nesting_is_a_parse_error_and_no_crash(node: Node) -> None:
    assert code(node.raw("[" * 200_000).json()) == -32700


def test_no_request_is_too_deep_to_answer(team: Team) -> None:
    """Design §6: limits on JSON depth."""
    for depth in (60, 90, 120, 1000):
        content = '{"a":' * depth + "1" + "}" * depth
        params = f'{{"projectId":"{team.project}","type":"custom","name":"n","content":{content}}}'
        method = "cacp/contract/propose"
        body = f'{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":1}}'
        given = team.node.raw(body, {"idempotency-key": f"deep-{depth}"}).json()
        if depth == 60:
            assert "result" in given
        else:
            assert code(given) in (-32602, -32700)


@pytest.mark.parametrize("depth", [101, 300, 1_000])
def test_params_too_deep_to_be_written_back_are_refused_alone(team: Team, depth: int) -> None:
    """Design §6, limits on JSON depth; §5, errors in one batch member don't touch the others."""
    share = LIST | {
        "method": "cacp/context/share",
        "params": {"projectId": team.project, "type": "decision", "content": {"a": "DEEP"}},
        "id": 1,
    }
    body = json.dumps([share, LIST | {"id": 2}]).replace('"DEEP"', "[" * depth + "]" * depth)
    deep, flat = team.node.raw(body).json()
    assert deep["error"]["code"] == -32602
    assert "nested deeper than 100 levels" in deep["error"]["message"]
    assert "result" in flat


@pytest.mark.parametrize("request_", [1, "a", None, True, {}, {"id": 1}, {"jsonrpc": "2.0"}])
def test_what_is_no_request_is_invalid(node: Node, request_: Any) -> None:
    given = answer(node, request_)
    assert (code(given), reason(given)) == (-32600, "invalid_request")


def test_an_invalid_request_echoes_the_id_where_it_can_be_told(node: Node) -> None:
    assert answer(node, {"jsonrpc": "1.0", "method": "m", "id": 5})["id"] == 5
    assert answer(node, {"jsonrpc": "2.0", "method": "m", "id": {}})["id"] is None


def test_an_unknown_method_is_not_found(node: Node) -> None:
    given = answer(node, {"jsonrpc": "2.0", "method": "cacp/project/creat", "id": 1})
    assert (code(given), reason(given)) == (-32601, "method_not_found")
    assert "/methods" in given["error"]["message"]


def test_params_by_position_are_refused_clearly(node: Node) -> None:
    given = answer(node, LIST | {"params": [1], "id": 1})
    assert code(given) == -32602
    assert "by name" in given["error"]["message"]


# --- section 4.1: notifications -----------------------------------------------------------------


def test_a_notification_is_carried_out_and_gets_204_and_no_body(team: Team) -> None:
    request = {
        "jsonrpc": "2.0",
        "method": "cacp/project/updateStatus",
        "params": {"projectId": team.project, "status": "integrating"},
    }
    response = team.node.raw(json.dumps(request))
    assert (response.status_code, response.content) == (204, b"")
    assert "content-length" not in response.headers
    assert team.backend("project/get")["status"] == "integrating"


@pytest.mark.parametrize(
    "request_",
    [
        {"jsonrpc": "2.0", "method": "no/such"},
        {"jsonrpc": "2.0", "method": "cacp/project/get", "params": {}},
        {"jsonrpc": "2.0", "method": "cacp/project/get", "params": ["x"]},
    ],
)
def test_a_notification_gets_no_answer_to_its_errors_either(node: Node, request_: Any) -> None:
    """JSON-RPC 2.0, section 4.1: the client would not be aware of any errors."""
    assert node.raw(json.dumps(request_)).status_code == 204


# --- section 6: batch ---------------------------------------------------------------------------


def test_an_empty_batch_is_an_invalid_request(node: Node) -> None:
    given = answer(node, [])
    assert (code(given), given["id"]) == (-32600, None)
    assert reason(given) == "invalid_request"


def test_a_batch_of_nonsense_is_answered_member_by_member(node: Node) -> None:
    given = answer(node, [1, 2, 3])
    assert [(code(one), one["id"]) for one in given] == [(-32600, None)] * 3


def test_a_batch_answers_each_member_but_notifications(node: Node) -> None:
    """The batch of JSON-RPC 2.0, section 7, with methods of this node."""
    given = answer(
        node,
        [
            LIST | {"id": "1"},
            LIST,
            {"foo": "boo"},
            {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
            {"jsonrpc": "2.0", "method": "cacp/project/get", "params": {}, "id": 9},
        ],
    )
    by_id = {one["id"]: one for one in given}
    assert len(given) == 4
    assert "projects" in by_id["1"]["result"]
    assert code(by_id[None]) == -32600
    assert code(by_id["5"]) == -32601
    assert code(by_id[9]) == -32602


def test_a_batch_of_notifications_gets_204(node: Node) -> None:
    response = node.raw(json.dumps([LIST, LIST]))
    assert (response.status_code, response.content) == (204, b"")


def test_a_refused_member_leaves_the_others_written(team: Team) -> None:
    """Design §5: errors in one batch member don't touch the others."""

    def propose(id: int, **params: Any) -> dict[str, Any]:
        given = {"projectId": team.project, "type": "custom", "name": "n", "content": {}} | params
        return {"jsonrpc": "2.0", "method": "cacp/contract/propose", "params": given, "id": id}

    given = answer(team.node, [propose(1), propose(2, parties=["nobody"]), propose(3)])
    assert ["result" in one for one in sorted(given, key=lambda one: one["id"])] == [1, 0, 1]
    assert len(team.backend("contract/list")["contracts"]) == 2


def test_a_batch_over_the_limit_is_too_large(node: Node) -> None:
    response = node.raw(json.dumps([LIST | {"id": n} for n in range(101)]))
    assert response.status_code == 413
    assert code(response.json()) == -32006
    assert response.json()["error"]["data"] == {"reason": "too_large", "limit": 100}


# --- params -------------------------------------------------------------------------------------


def refused(node: Node, method: str, key: str | None = None, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as error:
        node.call(method, key=key, **params)
    return error.value


def test_missing_and_unknown_params_are_named(node: Node) -> None:
    """CACP 2.0, Response Format: "Invalid params: projectId is required"."""
    error = refused(node, "cacp/project/get", project_id="x", why=1)
    assert error.code == -32602
    assert error.message.startswith("Invalid params: projectId is required")
    assert error.reason == "invalid_params"
    assert {"path": "projectId", "problem": "required"} in error.data["errors"]
    assert {"path": "why", "problem": "is not a param of this method"} in error.data["errors"]


def test_null_means_absent(team: Team) -> None:
    """Design §5: deployed clients send optional params as null."""
    contract = team.proposed(parties=None)
    team.frontend(
        "contract/respond", contractId=contract, action="agree", comment=None, suggestedChange=None
    )
    team.backend(
        "context/askQuestion", question="Which?", options=None, urgent=None, relatedContracts=None
    )
    team.backend("file/share", file={"name": "a", "content": "", "contentType": None}, purpose=None)
    team.backend(
        "project/addRepo",
        repo={"name": "x", "role": "y", "language": "z", "relevantPaths": None, "url": None},
    )
    told = team.backend("contract/timeline", contractId=contract)
    assert set(told["parties"]) == {team.repo_id(REPO), team.repo_id(FRONTEND)}
    assert told["timeline"][1].keys().isdisjoint({"note", "details"})
    [asked] = team.backend("project/get")["context_history"]
    assert asked["content"] == {"question": "Which?", "urgent": False}
    [shared] = team.backend("file/list")["files"]
    assert shared["contentType"] == "application/octet-stream"
    repo = team.repo("x")
    assert repo["relevant_paths"] == []
    assert "url" not in repo


def test_a_null_for_a_required_param_is_that_param_missing(node: Node) -> None:
    error = refused(node, "cacp/project/get", projectId=None)
    assert error.data["errors"] == [{"path": "projectId", "problem": "required"}]


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"limit": "5"}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 0}, "limit"),
        ({"summary": "yes"}, "summary"),
        ({"cursor": 5}, "cursor"),
    ],
)
def test_a_param_of_another_type_is_refused_not_guessed(
    node: Node, params: dict[str, Any], path: str
) -> None:
    error = refused(node, "cacp/project/list", **params)
    assert (error.code, [one["path"] for one in error.data["errors"]]) == (-32602, [path])


@pytest.mark.parametrize("name", ["origin", "self", "method", "given", "ü", "__class__"])
def test_no_name_of_a_param_means_anything_else(node: Node, name: str) -> None:
    unknown: dict[str, Any] = {name: 1}
    request = {"jsonrpc": "2.0", "method": "cacp/project/list", "params": unknown, "id": 1}
    error = error_of(answer(node, request))
    assert error.data["errors"] == [{"path": name, "problem": "is not a param of this method"}]


def test_the_input_is_not_repeated_in_an_error(node: Node) -> None:
    error = refused(node, "cacp/project/get", projectId=["secret-value"])
    assert "secret-value" not in str(error)


def test_many_problems_are_cut_short(node: Node) -> None:
    many: dict[str, Any] = {f"p{n}": n for n in range(50)}
    error = refused(node, "cacp/project/list", **many)
    assert "and 45 more" in error.message
    assert len(error.data["errors"]) == 20


# --- trust (CACP 2.0, Trust Levels) -------------------------------------------------------------


def test_a_known_caller_reads_and_does_not_write(team: Team) -> None:
    key = team.node.key("aid://example.com/known@1.0.0", "known-repo", trust="known")
    assert team.node.call("cacp/project/get", key=key, projectId=team.project)
    error = refused(team.node, "cacp/project/create", key, name="a", objective="b")
    assert (error.code, error.reason) == (-32003, "insufficient_trust")


# --- our own faults (-32000) ---------------------------------------------------------------------


def test_our_own_fault_is_answered_with_an_id_and_nothing_else_of_it(tmp_path: Path) -> None:
    """Design §5: -32000 only for our own faults, with an id to look up in the log."""
    with Node(tmp_path) as node:
        team = Team.on(node, node.key("aid://example.com/frontend@1.0.0", "frontend-app"))
        contract = team.proposed()
        with closing(connect(node.db)) as db:
            db.execute("UPDATE facts SET body = '{}'")
        before = count(node)
        params = {"contractId": contract, "projectId": team.project, "action": "reject"}
        error = refused(node, "cacp/contract/respond", **params)
        assert error.code == -32000
        assert error.data == {"reason": "internal_error", "id": error.data["id"]}
        assert error.data["id"] in error.message
        assert "Traceback" not in str(error)
        assert error.data["id"] in node.log
        assert "Traceback" in node.log
        assert count(node) == before
        assert team.contract(contract)["status"] == "proposed"
        assert node.get("/health").json()["status"] == "healthy"


# --- large bodies -------------------------------------------------------------------------------


def test_only_methods_that_carry_files_take_a_large_body(team: Team) -> None:
    error = refused(
        team.node,
        "cacp/contract/propose",
        projectId=team.project,
        type="custom",
        name="n",
        content={"text": "x" * 1_100_000},
    )
    assert (error.code, error.reason) == (-32006, "too_large")
    assert team.backend("file/share", file={"name": "a", "content": "QUJD" * 300_000})


# --- the harness itself -------------------------------------------------------------------------


def test_every_result_is_checked_against_its_declared_type() -> None:
    assert set(METHODS) >= {"cacp/project/create", "rpc.discover"}
    with pytest.raises(ValueError, match="repoCount"):
        check_result("cacp/project/create", {"projectId": "x", "status": "created"})
    with pytest.raises(ValueError, match="extra"):
        check_result("cacp/contract/respond", {"extra": 1})
