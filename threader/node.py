"""Tells a CACP node how the run goes: a durable outbox, and one delivery at a time.

When the node is away, reports wait in the file and the run goes on; a later run or resume sends
what is left. A report is sent again only when its answer was not seen, with the same
Idempotency-Key.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import httpx
import orjson

from schemas.manifest import Manifest, NodeSpec
from schemas.run_state import RunState
from threader.files import write_atomic
from threader.reports import Call, all_calls, task_calls
from threader.run import Event

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LAST_CHANCE_SEC = 5.0


class Unreachable(Exception):
    """The node gave no answer, or one that asks to come back later."""


class Port(Protocol):
    """Where reports go."""

    async def methods(self) -> frozenset[str]:
        """What the node offers. Raises Unreachable."""

    async def call(self, call: Call, idempotency_key: str) -> dict[str, Any]:
        """The JSON-RPC answer, `result` or `error`. Raises Unreachable."""


class HttpNode:
    """A node over HTTP (CACP 2.0 "Transport")."""

    def __init__(self, spec: NodeSpec, client: httpx.AsyncClient) -> None:
        self._url = spec.url.rstrip("/")
        self._client = client
        self._headers = {"X-Agent-ID": spec.agent_id}
        if key := os.environ.get(spec.key_env):
            self._headers["Authorization"] = f"Bearer {key}"

    async def methods(self) -> frozenset[str]:
        answer = await self._send("GET", "/methods")
        listed = answer.get("methods") if isinstance(answer, dict) else answer
        return frozenset(name for name in listed or () if isinstance(name, str))

    async def call(self, call: Call, idempotency_key: str) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": call.method, "params": call.params}
        answer = await self._send("POST", "/", body, {"Idempotency-Key": idempotency_key})
        return answer if isinstance(answer, dict) else {}

    async def _send(
        self, verb: str, path: str, body: object = None, extra: dict[str, str] | None = None
    ) -> Any:
        headers = {**self._headers, **(extra or {})}
        try:
            response = await self._client.request(
                verb, self._url + path, json=body, headers=headers
            )
            answer = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise Unreachable(type(error).__name__) from None
        if response.status_code == 429 or response.status_code >= 500:
            raise Unreachable(f"HTTP {response.status_code}")
        return answer


class Outbox:
    """Reports on disk: one per line, and how many of them are delivered."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "outbox.jsonl"
        self._cursor = folder / "outbox.delivered"
        self._refused = folder / "outbox.refused.jsonl"
        self.calls: list[Call] = []
        self.delivered = 0
        if self._path.exists():
            whole = self._path.read_bytes()
            complete = whole[: whole.rfind(b"\n") + 1]
            if complete != whole:
                write_atomic(self._path, complete)
            self.calls = [Call(**orjson.loads(line)) for line in complete.splitlines()]
        if self._cursor.exists():
            self.delivered = int(self._cursor.read_text())
        self._keys = {call.key for call in self.calls}

    def put(self, calls: Iterable[Call]) -> bool:
        """Keep the calls that are new; True when there were any."""
        fresh = [call for call in calls if call.key not in self._keys]
        if not fresh:
            return False
        with self._path.open("ab") as file:
            for call in fresh:
                entry = {"key": call.key, "method": call.method, "params": call.params}
                file.write(orjson.dumps(entry) + b"\n")
            file.flush()
            os.fdatasync(file.fileno())
        self.calls += fresh
        self._keys |= {call.key for call in fresh}
        return True

    def next(self) -> Call | None:
        return self.calls[self.delivered] if self.delivered < len(self.calls) else None

    def settle(self, refusal: object = None) -> None:
        """The next call is dealt with; a refusal is kept for people to read."""
        if refusal is not None:
            with self._refused.open("ab") as file:
                key = self.calls[self.delivered].key
                file.write(orjson.dumps({"key": key, "refusal": refusal}, default=str) + b"\n")
        self.delivered += 1
        write_atomic(self._cursor, str(self.delivered).encode())


class NodeReporter:
    """Listens to a run and delivers beside it."""

    def __init__(
        self, manifest: Manifest, node: NodeSpec, folder: Path, port: Port, started_at: str
    ) -> None:
        self._manifest = manifest
        self._node = node
        self._definitions = {task.id: task for task in manifest.tasks}
        self._port = port
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._offered: frozenset[str] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.outbox = Outbox(folder)
        # With its start, a run that starts over is another: its reports are no repetition.
        identity = f"{node.project_id}\0{manifest.run_id}\0{folder}\0{started_at}"
        self._prefix = hashlib.sha256(identity.encode()).hexdigest()[:24]

    def catch_up(self, state: RunState) -> None:
        """Put in what a crash kept from the outbox."""
        if self.outbox.put(all_calls(self._manifest, state)):
            self._wake.set()

    def __call__(self, event: Event, state: RunState) -> None:
        calls: Iterable[Call] = ()
        if event.task_id is not None:
            definition = self._definitions[event.task_id]
            calls = task_calls(self._node, definition, state.tasks[event.task_id])
        elif event.kind in ("healed", "verdict", "ended"):
            calls = all_calls(self._manifest, state)
        if self.outbox.put(calls):
            self._wake.set()

    async def deliver_one(self) -> bool:
        """Deliver the next report; False when there is none. Raises Unreachable."""
        call = self.outbox.next()
        if call is None:
            return False
        if call.method == "acp/send":
            if self._offered is None:
                self._offered = await self._port.methods()
            if call.method not in self._offered:
                self.outbox.settle("the node does not offer acp/send")
                return True
        answer = await self._port.call(call, f"{self._prefix}-{call.key}")
        self.outbox.settle(answer.get("error"))
        return True

    async def _loop(self) -> None:
        pause = FIRST_PAUSE
        while True:
            self._wake.clear()
            try:
                while await self.deliver_one():
                    pause = FIRST_PAUSE
            except Unreachable:
                if self._closing.is_set():
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._closing.wait()
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            if self._closing.is_set():
                return
            await self._wake.wait()

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[None]:
        """Deliver while the body runs, and for a last moment after it."""
        loop = asyncio.create_task(self._loop())
        try:
            yield
        finally:
            self._closing.set()
            self._wake.set()
            await asyncio.wait({loop}, timeout=LAST_CHANCE_SEC)
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)
