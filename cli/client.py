"""The synchronous JSON-RPC client with which commands call a node (CACP 2.0, Transport)."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from cli.node_url import DEFAULT_URL as DEFAULT_URL
from cli.operator_key import local_operator_key
from cli.terminal import REFUSED, UNREACHABLE, USAGE, fail
from schemas.plain import one_line

if TYPE_CHECKING:
    import httpx

TIMEOUT = 30.0
BATCH = 100
UNAUTHENTICATED = 401
_KEY = re.compile(r"cacp_sk_[A-Za-z0-9_-]{16,128}")


class NodeError(Exception):
    """A call that gave no result.

    NodeError
     ├── NodeUnreachable    there is no node at the URL, or it doesn't answer
     │    └── NodeUnanswered    the call was sent: the node may have carried it out
     └── CallRefused        the node answered with an error
    """


class NodeUnreachable(NodeError):
    reason = "unreachable"
    """Of a tool's refusal (`server.mcp_tools.calls`)."""


class NodeUnanswered(NodeUnreachable):
    reason = "unanswered"


class CallRefused(NodeError):
    """`code` and `data` are those of the JSON-RPC error; `data` is None when it has none."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class NodeClient:
    """Calls one node. Raises NodeUnreachable and CallRefused; ValueError for a malformed URL or
    key."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        timeout: float = TIMEOUT,
        find_key: Callable[[], str | None] | None = None,
    ) -> None:
        """`find_key` is asked for a key when the node refuses a call without one."""
        import ssl

        import httpx

        try:
            parts = urlsplit(url)
            secure = parts.scheme == "https"
            near = parts.hostname in ("localhost", "127.0.0.1", "::1")
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError
        except ValueError:
            raise ValueError(f"{url} is not the URL of a node, such as {DEFAULT_URL}") from None
        if key and not _KEY.fullmatch(key):
            raise ValueError(
                "the key is malformed: it should be cacp_sk_ and 16 to 128 letters, digits, - and _"
            )
        self.url = url.rstrip("/")
        self._find_key = None if key else find_key
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=timeout,
            # A proxy must not stand between this machine and itself.
            trust_env=not near,
            # Reading the system's certificates takes longer than most calls; without TLS and a
            # proxy none is needed.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if near and not secure else True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        patience: float = 0.0,
        once: str | None = None,
    ) -> Any:
        """The result of one call. The node may take `patience` seconds longer than for others.
        `once` is an idempotency key, with which a call may be sent again that had no answer."""
        return _result(self._post(_request(method, params or {}, 1), patience=patience, once=once))

    def call_each(self, method: str, many: list[dict[str, Any]]) -> Iterator[Any]:
        """The results of one method for many params, in their order, in few requests."""
        for start in range(0, len(many), BATCH):
            requests = [
                _request(method, params, i) for i, params in enumerate(many[start:][:BATCH])
            ]
            answers = self._post(requests)
            if not isinstance(answers, list):
                _result(answers)
                raise NodeUnreachable(f"{self.url} doesn't answer batches as a CACP node does")
            for answer in sorted(answers, key=lambda response: int(response["id"])):
                yield _result(answer)

    def pages(self, method: str, params: dict[str, Any], member: str) -> Iterator[dict[str, Any]]:
        """Every item of the list `member` of a method whose results come in pages."""
        while True:
            page = self.call(method, params)
            yield from page[member]
            if not page.get("nextCursor"):
                return
            params = params | {"cursor": page["nextCursor"]}

    def get(self, path: str) -> Any:
        """The JSON at a path of the node; that of /health also when the node is unhealthy."""
        response = self._send("GET", path)
        body = self._json(response)
        if isinstance(body, dict) and "error" in body:
            _result(body)
        return body

    def post(self, path: str, body: object) -> Any:
        """The JSON that a path of the node answers to a POST of JSON."""
        answer = self._post(body, path)
        if isinstance(answer, dict) and "error" in answer:
            _result(answer)
        return answer

    @contextmanager
    def stream(
        self, path: str, headers: dict[str, str], silence: float
    ) -> Iterator[Iterator[bytes]]:
        """The chunks of a response that stays open. Raises NodeUnreachable when none has come for
        `silence` seconds."""
        import httpx

        try:
            with self._opened(path, headers, httpx.Timeout(TIMEOUT, read=silence)) as response:
                if response.status_code != 200:
                    response.read()
                    _result(self._json(response))
                yield response.iter_raw()
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def _post(
        self, body: object, path: str = "/", patience: float = 0.0, once: str | None = None
    ) -> Any:
        headers = {"Content-Type": "application/json"}
        if once is not None:
            headers["Idempotency-Key"] = once
        response = self._send(
            "POST",
            path,
            content=json.dumps(body).encode(),
            headers=headers,
            timeout=TIMEOUT + patience,
        )
        return self._json(response)

    def _send(self, method: str, path: str, **how: Any) -> "httpx.Response":
        import httpx

        try:
            response = self._http.request(method, path, **how)
            if response.status_code == UNAUTHENTICATED and self._takes_key():
                response = self._http.request(method, path, **how)
            return response
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None

    @contextmanager
    def _opened(
        self, path: str, headers: dict[str, str], timeout: "httpx.Timeout"
    ) -> Iterator["httpx.Response"]:
        with self._http.stream("GET", path, headers=headers, timeout=timeout) as response:
            if response.status_code != UNAUTHENTICATED or not self._takes_key():
                yield response
                return
        with self._http.stream("GET", path, headers=headers, timeout=timeout) as response:
            yield response

    def _takes_key(self) -> bool:
        """Whether there is a key to call with after a refusal; it is looked for once."""
        find_key, self._find_key = self._find_key, None
        key = find_key() if find_key is not None else None
        if key is not None:
            self._http.headers["Authorization"] = f"Bearer {key}"
        return key is not None

    def _json(self, response: "httpx.Response") -> Any:
        try:
            return response.json()
        except ValueError:
            raise NodeUnreachable(
                f"{self.url} answers, but not as a CACP node (HTTP {response.status_code})"
            ) from None

    def _unreachable(self, error: Exception) -> NodeUnreachable:
        import httpx

        if isinstance(error, httpx.ConnectError):
            return NodeUnreachable(f"no node answers at {self.url}; `cacp serve` starts one")
        unsent = isinstance(error, httpx.ConnectTimeout | httpx.InvalidURL)
        kind = NodeUnreachable if unsent else NodeUnanswered
        if isinstance(error, httpx.TimeoutException):
            return kind(f"{self.url} doesn't answer in time")
        return kind(f"{self.url} broke off: {one_line(error, 200) or type(error).__name__}")


@contextmanager
def connected(url: str, key: str | None, *, oversees: bool = False) -> Iterator[NodeClient]:
    """A client whose errors end the command with one line on stderr and its exit status.

    A command that `oversees` a node shows people what it holds: where the node wants a key and none
    is given, it calls with the operator's, if the node runs on this folder's database.
    """
    find_key = partial(local_operator_key, url) if oversees else None
    try:
        with NodeClient(url, key, find_key=find_key) as client:
            yield client
    except ValueError as error:
        fail(USAGE, str(error))
    except NodeUnreachable as error:
        fail(UNREACHABLE, str(error))
    except CallRefused as error:
        fail(REFUSED, f"{error.message} ({error.code}){_as_operator(error, key)}")


def _as_operator(error: CallRefused, key: str | None) -> str:
    """How the node's operator, refused for want of a key, makes this machine's file count."""
    data = error.data if isinstance(error.data, dict) else {}
    if key or data.get("reason") != "not_project_owner":
        return ""
    return ". As the operator, run it in the node's folder, or name its database with CACP_DB"


def _request(method: str, params: dict[str, Any], id: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": id}


def _result(answer: Any) -> Any:
    if isinstance(answer, dict) and "result" in answer:
        return answer["result"]
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict):
        raise CallRefused(error.get("code", 0), str(error.get("message")), error.get("data"))
    raise NodeUnreachable("the answer is not JSON-RPC 2.0: is it a CACP node?")
