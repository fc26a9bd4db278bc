"""A real node for tests: its own process, port and database.

with Node(tmp_path, repo="backend-api") as node:
    node.call("cacp/project/create", name="Login", objective="…")
"""

import json
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

import httpx
from pydantic import TypeAdapter

from server.auth import operator_key
from server.methods import METHODS
from server.store import keys
from server.store.connection import Connection
from tests.support.forkserver import UNLIMITED_SENDERS, ForkedProcess
from tests.support.located import connect, settings_of
from tests.support.waiting import PATIENCE

AGENT = "aid://example.com/backend@1.0.0"
REPO = "backend-api"
START_SECONDS = 60.0
STOP_SECONDS = 20.0
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of http:// only: to read the system's authorities takes longer than most tests."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")

WRITTEN = frozenset({"content", "currentContent", "details", "params", "payload"})
"""Members that hold what agents wrote, or nodes sign: in them null is a value."""


class RpcError(Exception):
    """A JSON-RPC error that the node answered with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{code} {message} {data}")
        self.code = code
        self.message = message
        self.data = data

    @property
    def reason(self) -> str | None:
        """`data.reason`, which tells cases of one code apart."""
        return self.data.get("reason") if isinstance(self.data, dict) else None


class Node:
    """A node process. Settings are those of `server.settings`, given as `CACP_*` variables, and
    `unlimited_senders`: no rate limits for senders of ACP messages."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.db = folder / "node.db"
        self.log_file = folder / "node.log"
        self.port = free_port()
        self._unlimited = bool(settings.pop("unlimited_senders", False))
        self.settings: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            **settings_of(self.db),
            "agent_id": AGENT,
            "repo": REPO,
            "role": "backend",
            "language": "python",
            **settings,
        }
        self.process: ForkedProcess | None = None
        self.http = self._client()

    # --- the process --------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.stop()
        self.http.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def env(self) -> dict[str, str]:
        """The environment of the process, and of `cacp` commands for it: no other CACP_*."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CACP_")}
        own = {f"CACP_{name.upper()}": str(value) for name, value in self.settings.items()}
        return clean | own | ({UNLIMITED_SENDERS: "1"} if self._unlimited else {})

    @property
    def log(self) -> str:
        """What the process wrote to stderr, over all its starts."""
        return self.log_file.read_text()

    def start(self, *, wait: bool = True, override: bool = True) -> Self:
        """Start the process and wait until it answers. Raises AssertionError with its log.

        File modes bind a process without `override`, also where the tests run as root.
        """
        self.process = ForkedProcess(["serve"], self.env, self.log_file, override=override)
        if wait:
            self._wait_for_life()
        return self

    def kill(self) -> None:
        """SIGKILL: no warning, no clean-up."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM, and wait until the process is done; its exit code."""
        return self._end(signal.SIGTERM)

    def restart(self) -> Self:
        """Start again on the same file and port, after `kill` or `stop` or instead of them."""
        if self.process is not None:
            self.stop()
        self.http.close()
        self.http = self._client()
        return self.start()

    def _end(self, with_signal: signal.Signals) -> int:
        assert self.process is not None, "the node does not run"
        process, self.process = self.process, None
        process.send_signal(with_signal)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the node did not stop:\n{self.log[-4000:]}") from None

    def _wait_for_life(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                self.process = None
                raise AssertionError(f"the node ended at once:\n{self.log[-4000:]}")
            try:
                if self.http.get("/live").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.02)
        self.kill()
        raise AssertionError(f"the node did not answer:\n{self.log[-4000:]}")

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False, verify=NO_TLS)

    # --- calls --------------------------------------------------------------------------------

    def call(self, method: str, /, *, key: str | None = None, **params: Any) -> Any:
        """The result of a call, which must fit the schema that the node publishes for it.

        Raises RpcError. Without a key the caller is the node's own agent.
        """
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        response = self.raw(json.dumps(request), bearer(key))
        answer = response.json()
        assert answer["jsonrpc"] == "2.0"
        if "error" in answer:
            raise error_of(answer)
        assert response.status_code == 200
        assert answer["id"] == 1
        check_result(method, answer["result"])
        return answer["result"]

    def raw(
        self, body: str | bytes, headers: dict[str, str] | Sequence[tuple[str, str]] = ()
    ) -> httpx.Response:
        """POST / with exactly this body. Content-Type is application/json unless given."""
        given = httpx.Headers(headers)
        given.setdefault("content-type", "application/json")
        return self.http.post("/", content=body, headers=given)

    def get(self, path: str, *, key: str | None = None, **params: str) -> httpx.Response:
        return self.http.get(path, params=params, headers=bearer(key))

    @contextmanager
    def events(
        self,
        *,
        key: str | None = None,
        token: str | None = None,
        last_event_id: str | None = None,
        **params: str,
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """GET /events as `{id, event, data}`, data decoded; waits a minute for each, at most."""
        given = {"x-project-token": token, "last-event-id": last_event_id}
        headers = bearer(key) | {name: value for name, value in given.items() if value is not None}
        with self.http.stream(
            "GET", "/events", params=params, headers=headers, timeout=PATIENCE
        ) as response:
            assert response.status_code == 200, response.read()
            lines = response.iter_lines()
            # The first comment says that the stream is open: changes from now on arrive.
            while not next(lines).startswith(":"):
                pass
            yield _events(lines)

    def metric(self, name: str) -> float:
        """A metric of the node, as it is now."""
        lines = self.get("/metrics").text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))

    # --- identity -----------------------------------------------------------------------------

    @property
    def operator(self) -> str:
        """The operator's key, from the file that the node made."""
        return operator_key.read(self.db)

    def key(
        self, agent: str, repo: str, trust: keys.KeyTrust = "verified", *, human: bool = False
    ) -> str:
        """A new key, entered into the node's database from outside; the node may run or not."""
        key = keys.new_key()
        with closing(self.reader()) as db:
            now = time.time_ns() // 1000
            keys.add(db, key, agent_id=agent, repo=repo, trust=trust, human=human, now=now)
        return key

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of the node's database, read from outside."""
        with closing(self.reader()) as db:
            return db.execute(sql, values).fetchall()

    def reader(self) -> Connection:
        """The node's database, from outside. To open it takes longer than most queries."""
        return connect(self.db)


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line == "":
            if "data" in event:
                yield event
            event = {}
        elif name in ("id", "event"):
            event[name] = value
        elif name == "data":
            event[name] = json.loads(value)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports(count: int) -> int:
    """The first of so many free ports in a row, none of which the system gives to clients."""
    while True:
        first = random.randrange(20_000, 32_000)
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def bearer(key: str | None) -> dict[str, str]:
    """The headers of a caller with this key (CACP 2.0, Headers)."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def error_of(answer: Any) -> RpcError:
    error = answer["error"]
    return RpcError(error["code"], error["message"], error.get("data"))


def check_result(method: str, result: object) -> None:
    """A result must be of the type that `METHODS`, and so /openrpc.json, declares for it.

    Times in it must be ISO 8601 UTC with six digits of fraction.
    """
    _declared(method).validate_json(json.dumps(result), strict=True, by_alias=True, by_name=False)
    if method.startswith(("cacp/", "acp/")):
        assert_no_null(result, method)
    for time_ in _times(result):
        assert TIME.fullmatch(time_), f"{method}: {time_}"


@cache
def _declared(method: str) -> TypeAdapter[Any]:
    return TypeAdapter(METHODS[method].result)


def assert_no_null(value: object, where: str) -> None:
    """What is optional is absent, never null (CACP 2.0, Data Types). What agents wrote stays."""
    if isinstance(value, list):
        for item in value:
            assert_no_null(item, f"{where}[]")
    elif isinstance(value, dict):
        for name, item in value.items():
            assert item is not None, f"{where}.{name} is null"
            if name not in WRITTEN:
                assert_no_null(item, f"{where}.{name}")


def _times(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _times(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name.endswith(("_at", "At", "timestamp")) and isinstance(item, str):
                yield item
            elif name != "content":
                yield from _times(item)
