"""The one outgoing HTTP client (design §6): where it may go, how much it takes, how long it waits.

    client = HttpClient(url_problem, address_problem)
    await client.send("POST", url, content=…, headers=…)   any answer, as bytes
    await client.get(url), await client.post(url, body)     the JSON of a good answer
    await client.call(url, method, params)                  the result of a JSON-RPC call

Only http(s). A name is resolved once for each connection, each of its addresses is checked, and the
connection goes to one of them. No redirect is followed and no proxy used. The certificates of a
private authority are trusted through SSL_CERT_FILE.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

import orjson

from peers.errors import NotConnected, PeerRefused, PeerUnreachable, Problem, TooLong

if TYPE_CHECKING:
    import httpcore

SECONDS = 30.0
"""For a whole request and response, however slowly it trickles."""
ANSWER_MAX = 16 * 1024 * 1024
SAID_MAX = 300


class HttpAnswer(NamedTuple):
    """Any response but a redirect."""

    status: int
    body: bytes


class HttpClient:
    """Calls others by the rules of `url_problem` and `address_problem`.

    `seconds` and `answer_max` (bytes) limit a whole response.
    """

    def __init__(
        self,
        url_problem: Problem,
        address_problem: Problem,
        *,
        seconds: float = SECONDS,
        answer_max: int = ANSWER_MAX,
    ) -> None:
        self._url_problem = url_problem
        self._address_problem = address_problem
        self._seconds = seconds
        self._answer_max = answer_max
        self._opened: httpcore.AsyncConnectionPool | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()

    async def send(
        self,
        method: str,
        url: str,
        *,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """The response, whatever its status and body. Raises PeerUnreachable."""
        problem = self._url_problem(url)
        if problem is not None:
            raise PeerUnreachable(f"may not be called: {problem}")
        import httpcore

        try:
            async with asyncio.timeout(self._seconds):
                return await self._exchange(method, url, content, headers or {})
        except TimeoutError:
            raise PeerUnreachable(
                f"did not complete its response within {self._seconds:g} s"
            ) from None
        except (httpcore.ConnectError, httpcore.ConnectTimeout, OSError) as error:
            untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            why = ": its certificate is not trusted here" if untrusted else ""
            raise NotConnected(f"can't be reached{why}") from None
        except (httpcore.UnsupportedProtocol, ValueError):
            raise PeerUnreachable("can't be reached: its address is not an http(s) URL") from None
        except (httpcore.NetworkError, httpcore.ProtocolError):
            raise PeerUnreachable("closed the connection") from None

    async def get(self, url: str) -> Any:
        """The JSON at a URL. Raises CallError."""
        return _json(await self.send("GET", url))

    async def post(
        self, url: str, body: object, *, key: str | None = None, agent_id: str | None = None
    ) -> Any:
        """The JSON that answers a JSON body, given as an object or as bytes. `key` authenticates
        the caller, `agent_id` names it (CACP 2.0, Headers). Raises CallError."""
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        if agent_id is not None:
            headers["x-agent-id"] = agent_id
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        return _json(await self.send("POST", url, content=content, headers=headers))

    async def call(
        self,
        url: str,
        method: str,
        params: dict[str, Any],
        *,
        key: str | None = None,
        agent_id: str | None = None,
    ) -> Any:
        """The result of one JSON-RPC call. Raises CallError."""
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        return result_of(await self.post(url, request, key=key, agent_id=agent_id))

    async def _exchange(
        self, method: str, url: str, content: bytes, headers: Mapping[str, str]
    ) -> HttpAnswer:
        given = {
            "host": urlsplit(url).netloc,
            # A compressed response could be far larger than the bytes that are counted.
            "accept-encoding": "identity",
            "user-agent": "cacp-server",
            **headers,
        }
        sent = [(name.encode(), value.encode()) for name, value in given.items()]
        async with self._pool().stream(method, url, headers=sent, content=content) as response:
            if 300 <= response.status < 400:
                raise PeerUnreachable(f"redirects elsewhere (HTTP {response.status})")
            for name, value in response.headers:
                if name.lower() == b"content-encoding" and value.lower() != b"identity":
                    raise PeerUnreachable("answers compressed, which was not asked for")
            body = bytearray()
            async for chunk in response.aiter_stream():
                body += chunk
                if len(body) > self._answer_max:
                    raise TooLong(f"answers with more than {self._answer_max} bytes")
            return HttpAnswer(response.status, bytes(body))

    def _pool(self) -> "httpcore.AsyncConnectionPool":
        if self._opened is None:
            # Imported on first use: a node without peers doesn't need it.
            from peers.connections import pool

            self._opened = pool(self._address_problem)
        return self._opened


def result_of(answer: Any) -> Any:
    """The result in a JSON-RPC response. Raises PeerRefused for an error or an invalid response."""
    if isinstance(answer, dict) and "result" in answer:
        return answer["result"]
    if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
        raise refusal(200, answer)
    raise PeerRefused("doesn't answer with a JSON-RPC 2.0 response", status=200)


def refusal(status: int, body: Any) -> PeerRefused:
    """The error for a response that refuses, with the text of its JSON-RPC error, `detail` or
    `error`, cut short."""
    problem = (body.get("error") or body.get("detail")) if isinstance(body, dict) else None
    error = problem if isinstance(problem, dict) else {}
    words = error.get("message") if error else problem
    shown = f": {words[:SAID_MAX]}" if isinstance(words, str) else ""
    where = f" (HTTP {status})" if status != 200 else ""
    code = error.get("code")
    return PeerRefused(
        f"refuses{where}{shown}",
        status=status,
        code=code if isinstance(code, int) else 0,
        data=error.get("data"),
    )


def _json(answer: HttpAnswer) -> Any:
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        if answer.status < 400:
            reason = f"answers, but not with JSON (HTTP {answer.status})"
            raise PeerRefused(reason, status=answer.status) from None
        body = None
    if answer.status >= 400:
        raise refusal(answer.status, body)
    return body
