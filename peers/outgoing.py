"""Outgoing HTTP by the rules of design §7: where it may go, how much it takes, how long it waits.

A name is resolved once per connection, every address that it has is checked, and the connection
goes to one of these: what was checked is what is called. No redirect is followed, no proxy used.
A private authority's certificates are trusted by SSL_CERT_FILE, as is the custom.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import httpx
import orjson

Check = Callable[[str], object]
"""Raises ValueError, in words for people, for a URL or an address that may not be called."""

ANSWER_MAX = 1024 * 1024
SECONDS = 10.0
CONNECTIONS = 20
SAID_MAX = 300


class NoAnswer(Exception):
    """Nothing that could be used came back. The text completes "the exchange …"."""


class Answer(NamedTuple):
    """A status that is no redirect, and the body's JSON."""

    status: int
    body: Any


def said_against(answer: Answer) -> str:
    """A refusal as words: what a JSON-RPC error, `detail` or `error` says, cut short."""
    body = answer.body if isinstance(answer.body, dict) else {}
    said = body.get("error") or body.get("detail")
    if isinstance(said, dict):
        said = said.get("message")
    shown = f": {said[:SAID_MAX]}" if isinstance(said, str) else ""
    return f"refuses (HTTP {answer.status}){shown}"


class Outgoing:
    """Asks for JSON, and takes `answer_max` bytes and `seconds` for all of an answer, at most."""

    def __init__(
        self,
        check_url: Check,
        check_address: Check,
        *,
        seconds: float = SECONDS,
        answer_max: int = ANSWER_MAX,
    ) -> None:
        self._check_url = check_url
        self._seconds = seconds
        self._answer_max = answer_max
        self._http = httpx.AsyncClient(
            transport=_Pinned(check_address),
            # A compressed answer could be far larger than what is counted.
            headers={"accept-encoding": "identity", "user-agent": "cacp-server"},
            timeout=seconds,
            follow_redirects=False,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, url: str) -> Answer:
        """The answer to GET `url`. Raises NoAnswer."""
        return await self._ask("GET", url)

    async def post(self, url: str, body: object, *, key: str | None = None) -> Answer:
        """The answer to POST `url` with JSON, by the holder of `key`. Raises NoAnswer."""
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        return await self._ask("POST", url, content=orjson.dumps(body), headers=headers)

    async def _ask(self, method: str, url: str, **how: Any) -> Answer:
        try:
            self._check_url(url)
            async with (
                asyncio.timeout(self._seconds),
                self._http.stream(method, url, **how) as response,
            ):
                return Answer(response.status_code, await self._body(response))
        except (TimeoutError, httpx.TimeoutException):
            raise NoAnswer(f"gave no whole answer in {self._seconds:g} s") from None
        except (OSError, httpx.ConnectError):
            raise NoAnswer("can't be reached") from None
        except (httpx.HTTPError, httpx.InvalidURL):
            raise NoAnswer("broke off") from None
        except ValueError as error:
            raise NoAnswer(f"may not be called: {error}") from None

    async def _body(self, response: httpx.Response) -> Any:
        if response.is_redirect:
            raise NoAnswer(f"redirects elsewhere (HTTP {response.status_code})")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise NoAnswer("answers compressed, which was not asked for")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._answer_max:
                raise NoAnswer(f"answers with more than {self._answer_max} bytes")
        try:
            return orjson.loads(bytes(body))
        except orjson.JSONDecodeError:
            raise NoAnswer(f"answers, but not with JSON (HTTP {response.status_code})") from None


class _Pinned(httpx.AsyncBaseTransport):
    """Connects to the addresses that were checked, under the name that was asked for."""

    def __init__(self, check_address: Check) -> None:
        self._check_address = check_address
        # A kept connection would be found by its address, and may belong to another name.
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        *others, last = await self._resolve(url.host, url.port)
        for address in others:
            request.url = url.copy_with(host=address)
            try:
                return await self._inner.handle_async_request(request)
            except httpx.ConnectError:
                continue
        request.url = url.copy_with(host=last)
        return await self._inner.handle_async_request(request)

    async def _resolve(self, host: str, port: int | None) -> list[str]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        for address in addresses:
            self._check_address(address)
        return addresses

    async def aclose(self) -> None:
        await self._inner.aclose()
