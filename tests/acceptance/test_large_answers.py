"""No answer, and no set of answers, takes the node's memory or its event loop."""

import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.mcp_tools.pages import PAGE_MAX
from server.store import keys
from tests.support.located import connect
from tests.support.mcp_agent import Refused, over_http, run
from tests.support.node import NO_TLS, Node, RpcError, bearer
from tests.support.waiting import PATIENCE, eventually

MIB = 1024 * 1024
LIMIT = 16 * MIB
LARGE, FITTING = 60, 12
"""Contracts of a megabyte in two projects: one over the limit, one under it."""
CLIENTS = 6
MEMORY = 160 * MIB
"""What the process may grow by: not one answer for each client."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node whose answers have room for one at a time."""
    folder = tmp_path_factory.mktemp("large")
    with Node(folder, answer_limit=LIMIT, answer_budget=LIMIT) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="module")
def fitting(node: Node) -> str:
    return project(node, FITTING)


@pytest.fixture(scope="module")
def large(node: Node, fitting: str) -> str:
    return project(node, LARGE)


def project(node: Node, contracts: int) -> str:
    repos = [{"name": "backend-api", "role": "backend", "language": "python"}]
    made = node.call("cacp/project/create", name="P", objective="o", repos=repos)
    for number in range(contracts):
        given: dict[str, Any] = {
            "type": "custom",
            "name": f"c{number}",
            "content": {"text": "x" * 1_000_000},
        }
        node.call("cacp/contract/propose", projectId=made["projectId"], **given)
    return str(made["projectId"])


def body(project_id: str, *methods: str, **params: Any) -> bytes:
    calls = [
        {"jsonrpc": "2.0", "method": name, "params": {"projectId": project_id, **params}, "id": n}
        for n, name in enumerate(methods or ["cacp/project/get"])
    ]
    return json.dumps(calls if methods else calls[0]).encode()


def post(node: Node, content: bytes, key: str | None = None) -> Any:
    """A call on a connection of its own."""
    headers = {"content-type": "application/json", **(bearer(key) if key else {})}
    given = {"timeout": PATIENCE, "trust_env": False, "verify": NO_TLS}
    return httpx.post(node.url, content=content, headers=headers, **given).json()  # type: ignore[arg-type]


def memory(node: Node, which: str) -> int:
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return int(re.search(rf"{which}:\s+(\d+)", status)[1]) * 1024  # type: ignore[index]


@contextmanager
def unread(node: Node, content: bytes) -> Iterator[None]:
    """A caller that asks and reads nothing of the answer."""
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        caller.connect(("127.0.0.1", node.port))
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        caller.sendall(head + b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        eventually(lambda: node.metric("cacp_answers_bytes") > FITTING * 900_000)
        yield


def test_an_answer_over_the_limit_is_refused_and_says_what_to_call(node: Node, large: str) -> None:
    with pytest.raises(RpcError) as refused:
        node.call("cacp/project/get", projectId=large)
    assert refused.value.code == -32006
    assert refused.value.data == {
        "reason": "answer_too_large",
        "limit": LIMIT,
        "method": "cacp/project/get",
        "instead": "cacp/project/get with summary: true for a short form, cacp/contract/get for "
        "one contract, cacp/context/list for its context",
    }
    assert f"would be larger than {LIMIT} bytes. Call cacp/project/get with" in str(refused.value)
    assert len(node.call("cacp/contract/list", projectId=large)["contracts"]) == LARGE


def test_what_is_to_be_called_in_its_place_answers(node: Node, large: str) -> None:
    shown = node.call("cacp/project/get", projectId=large, summary=True)
    assert (shown["contractCount"], len(shown["contracts"])) == (LARGE, LARGE)


def test_conflicts_count_by_what_they_answer(node: Node, large: str) -> None:
    """The project holds far more than an answer may, and no conflict."""
    for one in node.call("cacp/contract/list", projectId=large)["contracts"]:
        given = {"projectId": large, "contractId": one["contractId"], "content": {"now": "small"}}
        node.call("cacp/contract/update", **given)
    assert node.call("cacp/contract/conflicts", projectId=large) == {"conflicts": []}


def test_a_list_of_projects_is_left_and_gone_on_with_behind_one_that_is_too_large(
    node: Node, large: str, fitting: str
) -> None:
    with pytest.raises(RpcError) as refused:
        node.call("cacp/project/list")
    assert refused.value.data["projectId"] == large
    rest = node.call("cacp/project/list", cursor=refused.value.data["nextCursor"])
    assert [one["project_id"] for one in rest["projects"]] == [fitting]


def test_many_who_read_what_is_too_large_take_no_memory_and_not_the_loop(
    node: Node, large: str
) -> None:
    before = memory(node, "VmRSS")
    with ThreadPoolExecutor(CLIENTS) as pool:
        reads = [pool.submit(post, node, body(large)) for _ in range(CLIENTS)]
        while not all(read.done() for read in reads):
            assert node.get("/live").status_code == 200
    assert {read.result()["error"]["data"]["reason"] for read in reads} == {"answer_too_large"}
    assert memory(node, "VmHWM") - before < MEMORY
    assert node.metric("cacp_answers_bytes") == 0


def test_many_who_read_what_fits_take_their_turns(node: Node, fitting: str) -> None:
    before = memory(node, "VmRSS")

    def read() -> int:
        while True:
            answer = post(node, body(fitting))
            if "result" in answer:
                return len(answer["result"]["contracts"])
            # The machine is slow: it is told to come back.
            assert answer["error"]["data"]["reason"] == "busy"
            time.sleep(answer["error"]["data"]["retryAfter"])

    with ThreadPoolExecutor(CLIENTS) as pool:
        reads = [pool.submit(read) for _ in range(CLIENTS)]
        while not all(one.done() for one in reads):
            assert node.get("/live").status_code == 200
    assert [one.result() for one in reads] == [FITTING] * CLIENTS
    assert memory(node, "VmHWM") - before < MEMORY
    eventually(lambda: node.metric("cacp_answers_bytes") == 0)


def test_a_batch_has_no_more_room_than_one_answer(node: Node, fitting: str) -> None:
    answers = post(node, body(fitting, "cacp/project/get", "cacp/project/get"))
    assert len(answers[0]["result"]["contracts"]) == FITTING
    assert answers[1]["error"]["data"]["reason"] == "answer_too_large"
    assert [one["id"] for one in answers] == [0, 1]


def test_small_reads_of_a_batch_are_bounded_together(node: Node, fitting: str) -> None:
    contract = node.call("cacp/contract/list", projectId=fitting)["contracts"][0]["contractId"]
    answers = post(node, body(fitting, *["cacp/contract/get"] * 30, contractId=contract))
    given = [one for one in answers if "result" in one]
    assert 0 < len(given) < 30
    assert sum(len(json.dumps(one)) for one in given) <= LIMIT + 2 * 1_000_000
    refused = [one["error"]["data"] for one in answers if "error" in one]
    assert {one["reason"] for one in refused} == {"answer_too_large"}


def test_who_reads_nothing_keeps_others_from_nothing_but_what_is_large(
    node: Node, fitting: str
) -> None:
    contract = node.call("cacp/contract/list", projectId=fitting)["contracts"][0]["contractId"]
    with ThreadPoolExecutor(1) as pool:
        with unread(node, body(fitting)):
            waits = pool.submit(post, node, body(fitting))
            eventually(lambda: waits.done() or node.metric("cacp_answers_waiting"))
            assert node.get("/live").status_code == 200
            assert node.call("cacp/contract/get", projectId=fitting, contractId=contract)
        answer = waits.result()
    # Refused only where the machine was slower than its turn.
    assert "result" in answer or answer["error"]["data"]["reason"] == "busy"
    eventually(lambda: node.metric("cacp_answers_bytes") == 0)
    assert "result" in post(node, body(fitting))


def test_who_waits_for_its_turn_with_a_key_that_is_revoked_is_shown_nothing(
    node: Node, fitting: str
) -> None:
    key = node.key("aid://x.example/a@1.0.0", "a")
    with ThreadPoolExecutor(1) as pool:
        with unread(node, body(fitting)):
            waits = pool.submit(post, node, body(fitting), key)
            eventually(lambda: waits.done() or node.metric("cacp_answers_waiting"))
            with closing(connect(node.db)) as db:
                keys.revoke(db, keys.every(db)[0].key_id, now=1)
        answer = waits.result()
    # Told that the node is busy only where the machine was slower than its turn.
    assert answer["error"]["data"]["reason"] in ("revoked_key", "busy")


def test_who_has_no_key_takes_nothing(tmp_path: Path) -> None:
    settings = {"public_url": "https://cacp.example", "bootstrap_key_file": tmp_path / "key"}
    with Node(tmp_path, **settings) as node:
        for path in ("/openrpc.json", "/methods?verbose=1", "/health", "/live"):
            assert node.http.get(path).status_code == 200
        assert node.raw(b'{"jsonrpc":"2.0","method":"rpc.discover","id":1}').status_code == 401
        key = node.key("aid://x.example/a@1.0.0", "a")
        node.http.headers.update(bearer(key))
        assert node.metric("cacp_answers_bytes") == 0


def test_what_is_too_large_for_a_model_is_shown_in_pieces_or_refused(node: Node) -> None:
    project_id = project(node, 0)
    for _ in range(9):
        content = {"text": "x" * 1_000_000}
        share = "cacp/context/share"
        node.call(share, projectId=project_id, type="code_snippet", content=content)

    async def look() -> None:
        async with over_http(node) as agent:
            with pytest.raises(Refused, match=r"larger than 8388608 bytes\. Call .* smaller limit"):
                await agent.use("cacp_context_list", projectId=project_id)
            shown = await agent.use("cacp_context_list", projectId=project_id, limit=1)
            assert len(shown) <= PAGE_MAX
            assert "x" * 50 in shown

    run(look)


def test_a_large_project_is_shown_to_models_in_short(node: Node, large: str) -> None:
    async def look() -> None:
        async with over_http(node) as agent:
            shown = await agent.use("cacp_project_get", projectId=large)
            assert shown.count("contractId") == LARGE
            assert len(shown) < 20_000

    run(look)
