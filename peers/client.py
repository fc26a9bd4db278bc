"""The one outgoing HTTP client (design §6): where it may go, how much it takes, how long it waits.

    client = Client(url_problem, address_problem)
    await client.send("POST", url, content=…, headers=…)   any answer, as bytes
    await client.get(url), await client.post(url, body)     the JSON of a good answer
    await client.call(url, method, params)                  the result of a JSON-RPC call

Only http(s). A name is resolved once for each connection, every address that it has is checked, and
the connection goes to one of these: what was checked is what is called. No redirect is followed, no
proxy used. A private authority's certificates are trusted by SSL_CERT_FILE, as is the custom.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

import orjson

from peers.errors import NotConnected, Problem, Refused, TooLong, Unreachable

if TYPE_CHECKING:
    import httpcore

SECONDS = 30.0
"""For a whole exchange, however slowly it trickles."""
ANSWER_MAX = 16 * 1024 * 1024
SAID_MAX = 300


class Answer(NamedTuple):
    """Any answer but a redirect."""

    status: int
    body: bytes


class Client:
    """Calls others by the rules of `url_problem` and `address_problem`.

    `seconds` and `answer_max` (bytes) are for all of an answer.
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
    ) -> Answer:
        """The answer, whatever its status and body. Raises Unreachable."""
        problem = self._url_problem(url)
        if problem is not None:
            raise Unreachable(f"may not be called: {problem}")
        import httpcore

        try:
            async with asyncio.timeout(self._seconds):
                return await self._exchange(method, url, content, headers or {})
        except TimeoutError:
            raise Unreachable(f"gave no whole answer in {self._seconds:g} s") from None
        except (httpcore.ConnectError, httpcore.ConnectTimeout, OSError) as error:
            untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            why = ": its certificate is not one that is trusted here" if untrusted else ""
            raise NotConnected(f"can't be reached{why}") from None
        except (httpcore.UnsupportedProtocol, ValueError):
            raise Unreachable("can't be reached: that is no URL of http or https") from None
        except (httpcore.NetworkError, httpcore.ProtocolError):
            raise Unreachable("broke off") from None

    async def get(self, url: str) -> Any:
        """The JSON at a URL. Raises CallError."""
        return _json(await self.send("GET", url))

    async def post(
        self, url: str, body: object, *, key: str | None = None, agent_id: str | None = None
    ) -> Any:
        """The JSON that answers a JSON body (or one in bytes) of the holder of `key`, in the name
        of `agent_id` (CACP 2.0, Headers).

        Raises CallError.
        """
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
    ) -> Answer:
        given = {
            "host": urlsplit(url).netloc,
            # A compressed answer could be far larger than what is counted.
            "accept-encoding": "identity",
            "user-agent": "cacp-server",
            **headers,
        }
        sent = [(name.encode(), value.encode()) for name, value in given.items()]
        async with self._pool().stream(method, url, headers=sent, content=content) as response:
            if 300 <= response.status < 400:
                raise Unreachable(f"redirects elsewhere (HTTP {response.status})")
            for name, value in response.headers:
                if name.lower() == b"content-encoding" and value.lower() != b"identity":
                    raise Unreachable("answers compressed, which was not asked for")
            body = bytearray()
            async for chunk in response.aiter_stream():
                body += chunk
                if len(body) > self._answer_max:
                    raise TooLong(f"answers with more than {self._answer_max} bytes")
            return Answer(response.status, bytes(body))

    def _pool(self) -> "httpcore.AsyncConnectionPool":
        if self._opened is None:
            # Imported on first use: a node without peers does without it.
            from peers.connections import pool

            self._opened = pool(self._address_problem)
        return self._opened


def result_of(answer: Any) -> Any:
    """The result in a JSON-RPC answer. Raises Refused for an error, or for what is none."""
    if isinstance(answer, dict) and "result" in answer:
        return answer["result"]
    if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
        raise refusal(200, answer)
    raise Refused("doesn't answer as JSON-RPC 2.0 says", status=200)


def refusal(status: int, body: Any) -> Refused:
    """An answer as a refusal, with what its JSON-RPC error, `detail` or `error` says, cut short."""
    said = (body.get("error") or body.get("detail")) if isinstance(body, dict) else None
    error = said if isinstance(said, dict) else {}
    words = error.get("message") if error else said
    shown = f": {words[:SAID_MAX]}" if isinstance(words, str) else ""
    where = f" (HTTP {status})" if status != 200 else ""
    code = error.get("code")
    return Refused(
        f"refuses{where}{shown}",
        status=status,
        code=code if isinstance(code, int) else 0,
        data=error.get("data"),
    )


def _json(answer: Answer) -> Any:
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        if answer.status < 400:
            said = f"answers, but not with JSON (HTTP {answer.status})"
            raise Refused(said, status=answer.status) from None
        body = None
    if answer.status >= 400:
        raise refusal(answer.status, body)
    return body
