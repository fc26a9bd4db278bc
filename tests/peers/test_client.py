"""The one outgoing client (design §6): where it may go, how much it takes, how long it waits."""

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trustme

from peers.client import HttpAnswer, HttpClient, refusal, result_of
from peers.errors import CallError, PeerRefused, PeerUnreachable, Problem
from tests.support.node import free_port
from tests.support.scripted_http import (
    Behaviour,
    ScriptedHttp,
    answer,
    endless,
    garbage,
    huge,
    silent,
)
from tests.support.waiting import PATIENCE

T = TypeVar("T")


def allow(value: str) -> None:
    """Nothing is wrong with it."""


def refuse(what: str) -> Problem:
    return lambda value: f"{value} is out of bounds" if what in value else None


def using(
    do: Callable[[HttpClient], Awaitable[T]],
    url_problem: Problem = allow,
    address: Problem = allow,
    seconds: float = PATIENCE,
) -> T:
    async def run() -> T:
        async with HttpClient(url_problem, address, seconds=seconds, answer_max=10_000) as client:
            return await do(client)

    return asyncio.run(run())


def send(url: str, url_problem: Problem = allow, address: Problem = allow) -> HttpAnswer:
    return using(lambda client: client.send("GET", url), url_problem, address)


def get(url: str) -> Any:
    return using(lambda client: client.get(url))


def post(url: str, body: object) -> Any:
    return using(lambda client: client.post(url, body, key="cacp_sk_secret"))


def test_any_answer_is_given_as_it_is() -> None:
    with ScriptedHttp(answer(b"\x00no JSON", 404)) as server:
        assert send(f"{server.url}/x/y?z=1") == (404, b"\x00no JSON")
        assert server.asked == ["/x/y?z=1"]


def test_it_sends_what_it_is_given() -> None:
    def echo(request: BaseHTTPRequestHandler) -> None:
        answer({"host": request.headers["host"], "x-signed": request.headers["x-signed"]})(request)

    with ScriptedHttp(echo) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        given = using(
            lambda client: client.send("POST", url, content=b"\x01", headers={"x-signed": "by us"})
        )
        heard = {"host": url.removeprefix("http://"), "x-signed": "by us"}
        assert (json.loads(given.body), server.sent) == (heard, ["\x01"])


def test_it_asks_for_json_and_gets_it() -> None:
    with ScriptedHttp(answer({"a": [1, None]})) as server:
        assert get(f"{server.url}/x") == {"a": [1, None]}


@pytest.mark.parametrize("body", [{"b": 1}, b'{"b":1}'])
def test_it_sends_json_and_a_key(body: object) -> None:
    def echo(request: BaseHTTPRequestHandler) -> None:
        answer(request.headers.get("authorization"))(request)

    with ScriptedHttp(echo) as server:
        assert post(server.url, body) == "Bearer cacp_sk_secret"
        assert json.loads(server.sent[0]) == {"b": 1}


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (answer({}, 302, location="http://169.254.169.254/"), "redirects elsewhere"),
        (answer({}, 308, location="/"), "redirects elsewhere"),
        (answer(gzip.compress(b" " * 10**6), content_encoding="gzip"), "compressed"),
        (answer(b" " * 10_001), "more than 10000 bytes"),
        (huge, "more than 10000 bytes"),
        (silent, "closed the connection"),
        (garbage, "closed the connection"),
    ],
)
def test_a_hostile_server_is_left_soon(behaviour: Behaviour, said: str) -> None:
    with ScriptedHttp(behaviour) as server, pytest.raises(PeerUnreachable, match=said):
        send(server.url)
    assert len(server.asked) == 1


def test_an_answer_that_has_no_end_is_left_in_time() -> None:
    def ask(client: HttpClient) -> Awaitable[HttpAnswer]:
        return client.send("GET", server.url)

    with (
        ScriptedHttp(endless) as server,
        pytest.raises(PeerUnreachable, match=r"not complete its response within 0\.5 s"),
    ):
        using(ask, seconds=0.5)
    assert len(server.asked) < 2, "it is not asked again"


def test_nobody_is_there() -> None:
    with pytest.raises(PeerUnreachable, match="can't be reached"):
        send(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(PeerUnreachable, match="no address is known"):
        send("http://nowhere.invalid/")


@pytest.mark.parametrize("url", ["", "ftp://127.0.0.1/", "http://", "http://[::1", "nonsense"])
def test_what_is_no_url_is_not_called(url: str) -> None:
    with pytest.raises(CallError):
        send(url)


def test_a_refused_url_is_not_called() -> None:
    with ScriptedHttp(answer({})) as server:
        with pytest.raises(PeerUnreachable, match=r"may not be called: .* is out of bounds"):
            send(f"{server.url}/secret", refuse("secret"))
        assert server.asked == []


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, {"error": {"message": "no"}}, "refuses (HTTP 400): no"),
        (400, {"detail": "gone"}, "refuses (HTTP 400): gone"),
        (409, {"error": "x" * 1_000}, "refuses (HTTP 409): " + "x" * 300),
        (400, {"detail": [{"loc": []}]}, "refuses (HTTP 400)"),
        (401, {"error": {"message": 5}}, "refuses (HTTP 401)"),
        (503, b"<html>", "refuses (HTTP 503)"),
        (200, b"[" * 9_000, "answers, but not with JSON (HTTP 200)"),
        (200, b"", "answers, but not with JSON (HTTP 200)"),
    ],
)
def test_a_refusal_as_words(status: int, body: object, said: str) -> None:
    with ScriptedHttp(answer(body, status)) as server, pytest.raises(PeerRefused) as refused:
        get(server.url)
    assert (str(refused.value), refused.value.status) == (said, status)


def test_a_json_rpc_call_gives_its_result_or_its_error() -> None:
    with ScriptedHttp(answer({"jsonrpc": "2.0", "result": [7], "id": 1})) as server:
        assert using(lambda client: client.call(server.url, "m", {"a": 1})) == [7]
        asked = json.loads(server.sent[0])
    assert asked == {"jsonrpc": "2.0", "method": "m", "params": {"a": 1}, "id": 1}
    error = {"code": -32602, "message": "no", "data": {"reason": "not_found"}}
    with pytest.raises(PeerRefused, match=r"^refuses: no$") as refused:
        result_of({"jsonrpc": "2.0", "error": error, "id": 1})
    assert (refused.value.code, refused.value.data) == (-32602, {"reason": "not_found"})
    odds: list[Any] = [None, [], {"id": 1}, "x", {"error": 7}]
    for odd in odds:
        with pytest.raises(PeerRefused):
            result_of(odd)


def test_a_refusal_has_a_code_only_if_it_is_one_of_json_rpc() -> None:
    assert refusal(400, {"error": {"code": "x", "data": 5}}).code == 0
    assert refusal(400, {"error": {"code": "x", "data": 5}}).data == {}


def test_a_certificate_is_checked_against_the_name_though_an_address_is_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority, certificate = tmp_path / "authority.pem", tmp_path / "localhost.pem"
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(str(authority))
    issuer.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    with ScriptedHttp(answer({}), certificate) as server:
        by_name = server.url.replace("127.0.0.1", "localhost")
        with pytest.raises(PeerUnreachable, match="certificate is not trusted"):
            send(by_name)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert send(by_name) == (200, b"{}")
        with pytest.raises(PeerUnreachable, match="certificate is not trusted"):
            send(server.url)
