"""Outgoing calls (design §7): where they may go, how much they take, how long they wait."""

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from peers.outgoing import Answer, NoAnswer, Outgoing, said_against
from tests.hostile import Answering, Behaviour, answer, endless, garbage, huge, silent
from tests.node import free_port


def allow(value: str) -> None:
    pass


def refuse(what: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        if what in value:
            raise ValueError(f"{value} is out of bounds")

    return check


def get(
    url: str,
    *,
    check_url: Callable[[str], None] = allow,
    check_address: Callable[[str], None] = allow,
) -> Answer:
    async def ask() -> Answer:
        async with Outgoing(check_url, check_address, seconds=1.0, answer_max=10_000) as outgoing:
            return await outgoing.get(url)

    return asyncio.run(ask())


def test_it_asks_for_json_and_gets_it() -> None:
    with Answering(answer({"a": [1, None]}, 404)) as server:
        assert get(f"{server.url}/x/y") == (404, {"a": [1, None]})
        assert server.asked == ["/x/y"]


def test_it_sends_json_and_a_key() -> None:
    async def ask(url: str) -> Answer:
        async with Outgoing(allow, allow) as outgoing:
            return await outgoing.post(url, {"b": 1}, key="cacp_sk_secret")

    def echo(request: object) -> None:
        answer(request.headers.get("authorization"))(request)  # type: ignore[attr-defined,arg-type]

    with Answering(echo) as server:
        assert asyncio.run(ask(server.url)).body == "Bearer cacp_sk_secret"
        assert json.loads(server.sent[0]) == {"b": 1}


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (answer({}, 302, location="http://169.254.169.254/"), "redirects elsewhere"),
        (answer({}, 308, location="/"), "redirects elsewhere"),
        (answer(gzip.compress(b" " * 10**6), content_encoding="gzip"), "compressed"),
        (answer(b"<html>"), r"not with JSON \(HTTP 200\)"),
        (answer(b"[" * 9_000), "not with JSON"),
        (answer(b" " * 10_001), "more than 10000 bytes"),
        (huge, "more than 10000 bytes"),
        (endless, "no whole answer in 1 s"),
        (silent, "broke off"),
        (garbage, "broke off"),
    ],
)
def test_a_hostile_server_is_left_soon(behaviour: Behaviour, said: str) -> None:
    with Answering(behaviour) as server, pytest.raises(NoAnswer, match=said):
        get(server.url)
    assert len(server.asked) == 1


def test_nobody_is_there() -> None:
    with pytest.raises(NoAnswer, match="can't be reached"):
        get(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(NoAnswer, match="can't be reached"):
        get("http://nowhere.invalid/")


@pytest.mark.parametrize("url", ["", "ftp://127.0.0.1/", "http://", "http://[::1", "nonsense"])
def test_what_is_no_url_is_not_called(url: str) -> None:
    with pytest.raises(NoAnswer):
        get(url)


def test_a_refused_url_is_not_called() -> None:
    with Answering(answer({})) as server:
        with pytest.raises(NoAnswer, match=r"may not be called: .* is out of bounds"):
            get(f"{server.url}/secret", check_url=refuse("secret"))
        assert server.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_refused_address_is_not_called_whatever_its_name(host: str) -> None:
    """Design §7: what a name resolves to is checked, once per connection."""
    with Answering(answer({})) as server:
        url = server.url.replace("127.0.0.1", host)
        assert get(url) == (200, {})
        with pytest.raises(NoAnswer, match="is out of bounds"):
            get(url, check_address=refuse("127.0.0.1"))
        assert len(server.asked) == 1


def test_a_certificate_is_checked_against_the_name_though_an_address_is_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority, certificate = tmp_path / "authority.pem", tmp_path / "localhost.pem"
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(str(authority))
    issuer.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    with Answering(answer({}), certificate) as server:
        by_name = server.url.replace("127.0.0.1", "localhost")
        with pytest.raises(NoAnswer, match="can't be reached"):
            get(by_name)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert get(by_name) == (200, {})
        with pytest.raises(NoAnswer, match="can't be reached"):
            get(server.url)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "no"}}, "refuses (HTTP 400): no"),
        ({"detail": "gone"}, "refuses (HTTP 400): gone"),
        ({"error": "x" * 1_000}, "refuses (HTTP 400): " + "x" * 300),
        ({"detail": [{"loc": []}]}, "refuses (HTTP 400)"),
        ({"error": {"message": 5}}, "refuses (HTTP 400)"),
        (None, "refuses (HTTP 400)"),
    ],
)
def test_a_refusal_as_words(body: object, said: str) -> None:
    assert said_against(Answer(400, body)) == said
