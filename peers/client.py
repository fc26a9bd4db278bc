"""The one outgoing HTTP client (design §7): http(s) only, no redirects, limits on size and time.

A host is resolved once for each request, every address is checked, and the connection goes to the
very address that was checked: a name that resolves otherwise a moment later changes nothing.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import orjson

if TYPE_CHECKING:
    import httpx

SECONDS = 30.0
"""For a whole exchange, however slowly it trickles."""
CONNECT_SECONDS = 5.0
SIZE_MAX = 16 * 1024 * 1024

Problem = Callable[[str], str | None]
"""What is wrong with an endpoint or an address; None when it may be called."""


class PeerError(Exception):
    """A call that got no useful answer.

    PeerError
     ├── Unreachable     no answer: it is down, too slow, too long, or must not be called
     └── Refused         it answers with an error; `status`, `code` and `data` as far as given
    """


class Unreachable(PeerError):
    pass


class Refused(PeerError):
    def __init__(self, message: str, *, status: int, code: int = 0, data: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.data = data if isinstance(data, dict) else {}

    @property
    def reason(self) -> str | None:
        return self.data.get("reason")


class Answer(NamedTuple):
    status: int
    body: bytes


class Client:
    """Calls peers. `endpoint_problem` and `address_problem` are the node's rules."""

    def __init__(
        self,
        endpoint_problem: Problem,
        address_problem: Problem,
        *,
        seconds: float = SECONDS,
        size_max: int = SIZE_MAX,
    ) -> None:
        self._endpoint_problem = endpoint_problem
        self._address_problem = address_problem
        self._seconds = seconds
        self._size_max = size_max
        self._http: httpx.AsyncClient | None = None

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def get(self, url: str) -> Any:
        """The JSON at a URL. Raises PeerError."""
        return _json(await self._send("GET", url, b"", {}))

    async def post(self, url: str, body: object, key: str | None = None) -> Any:
        """The JSON that answers a JSON body. Raises PeerError."""
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        return _json(await self._send("POST", url, content, headers))

    async def call(
        self, url: str, method: str, params: dict[str, Any], key: str | None = None
    ) -> Any:
        """The result of one JSON-RPC call. Raises PeerError."""
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        return result_of(await self.post(url, request, key))

    async def _send(self, method: str, url: str, content: bytes, headers: dict[str, str]) -> Answer:
        import httpx

        try:
            async with asyncio.timeout(self._seconds):
                return await self._exchange(method, url, content, headers)
        except TimeoutError:
            raise Unreachable(f"no whole answer within {self._seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unreachable(_short(error)) from None

    async def _exchange(
        self, method: str, url: str, content: bytes, headers: dict[str, str]
    ) -> Answer:
        problem = self._endpoint_problem(url)
        if problem is not None:
            raise Unreachable(problem)
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = await self._resolved(host, port)
        shown = f"[{address}]" if ":" in address else address
        target = parts._replace(netloc=f"{shown}:{port}").geturl()
        async with self._client().stream(
            method,
            target,
            content=content,
            headers={**headers, "host": parts.netloc},
            extensions={"sni_hostname": host},
        ) as response:
            if 300 <= response.status_code < 400:
                raise Unreachable(f"it redirects (HTTP {response.status_code}): not followed")
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self._size_max:
                    raise Unreachable(f"its answer is longer than {self._size_max} bytes")
            return Answer(response.status_code, bytes(body))

    async def _resolved(self, host: str, port: int) -> str:
        """An address of the host that may be called. One that may not spoils the name."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise Unreachable(f"the name {host} can't be resolved") from None
        addresses = [str(entry[4][0]) for entry in found]
        for address in addresses:
            problem = self._address_problem(address)
            if problem is not None:
                raise Unreachable(problem)
        return addresses[0]

    def _client(self) -> "httpx.AsyncClient":
        import httpx

        if self._http is None:
            self._http = httpx.AsyncClient(
                timeout=httpx.Timeout(self._seconds, connect=CONNECT_SECONDS),
                follow_redirects=False,
                trust_env=False,
            )
        return self._http


def result_of(answer: Any) -> Any:
    """The result in a JSON-RPC answer. Raises Refused for an error, or for what is none."""
    if isinstance(answer, dict) and "result" in answer:
        return answer["result"]
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict):
        code = error.get("code")
        raise Refused(
            str(error.get("message"))[:300],
            status=200,
            code=code if isinstance(code, int) else 0,
            data=error.get("data"),
        )
    raise Refused("it doesn't answer as JSON-RPC 2.0 says", status=200)


def _json(answer: Answer) -> Any:
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        body = None
    if answer.status >= 400:
        if isinstance(body, dict) and isinstance(body.get("error"), dict):
            try:
                result_of(body)
            except Refused as refused:
                refused.status = answer.status
                raise
        raise Refused(f"HTTP {answer.status}", status=answer.status)
    if body is None:
        raise Refused(f"HTTP {answer.status}, and no JSON", status=answer.status)
    return body


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200] if str(error) else type(error).__name__
