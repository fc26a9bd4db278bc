"""Reports a run to a CACP node: a durable outbox, and one delivery at a time.

While the node is unreachable or does not accept a report yet, reports wait on disk and the run goes
on. A later resume sends the rest, each with its original Idempotency-Key.
"""

import asyncio
import hashlib
import os
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import httpx
import orjson

from schemas.manifest import Manifest, NodeSpec
from schemas.run_state import RunState
from threader.events import RunEvent
from threader.outbox import Fate, Outbox, fate, group_of, refusal_text
from threader.reports import NodeCall, all_calls, paused_calls, task_calls
from threader.run_report import RUN_REPORT, run_report, waiting_for

RECEIPTS = "cacp/receipt/list"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LAST_CHANCE_SEC = 5.0
SHOW_SEC = 1.0
"""Between two reports of how the run stands, at least."""


class ServerUnreachable(Exception):
    """The node did not respond, or asked to try later."""


class Port(Protocol):
    """Where reports go."""

    async def methods(self) -> frozenset[str]:
        """What the node offers. Raises ServerUnreachable."""

    async def call(self, call: NodeCall, idempotency_key: str) -> dict[str, Any]:
        """The JSON-RPC response, with `result` or `error`. Raises ServerUnreachable."""


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
        if not isinstance(listed, list):
            raise ServerUnreachable("the server at its address lists no methods")
        return frozenset(name for name in listed if isinstance(name, str))

    async def call(self, call: NodeCall, idempotency_key: str) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": call.method, "params": call.params}
        answer = await self._send("POST", "/", body, {"Idempotency-Key": idempotency_key})
        if not isinstance(answer, dict) or not answer.keys() & {"result", "error"}:
            raise ServerUnreachable("the server at its address is not a node")
        return answer

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
            raise ServerUnreachable(type(error).__name__) from None
        if response.status_code in (401, 407):
            raise ServerUnreachable(f"the node rejects the key (HTTP {response.status_code})")
        if response.status_code == 429 or response.status_code >= 500:
            raise ServerUnreachable(f"HTTP {response.status_code}")
        return answer


class NodeReporter:
    """Listens to a run and delivers its reports concurrently."""

    def __init__(
        self, manifest: Manifest, node: NodeSpec, folder: Path, port: Port, started_at: str
    ) -> None:
        self._manifest = manifest
        self._node = node
        self._definitions = {task.id: task for task in manifest.tasks}
        self._contracts = {
            task.id: task.contract_id for task in manifest.tasks if task.contract_id is not None
        }
        self._port = port
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._closing = asyncio.Event()
        self._offered: frozenset[str] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.outbox = Outbox(folder)
        # The start time makes a run that starts over another one, with reports of its own.
        identity = f"{node.project_id}\0{manifest.run_id}\0{folder}\0{started_at}"
        self._state: RunState | None = None
        self._waits = ""
        self._reported = b""
        self._prefix = hashlib.sha256(identity.encode()).hexdigest()[:24]

    def catch_up(self, state: RunState) -> None:
        """Put the reports into the outbox that a crash prevented."""
        self._state = state
        self._changed.set()
        if self.outbox.put(all_calls(self._manifest, state)):
            self._wake.set()

    def __call__(self, event: RunEvent, state: RunState) -> None:
        self._state, self._waits = state, waiting_for(event)
        self._changed.set()
        calls: Iterable[NodeCall] = ()
        if event.task_id is not None:
            definition = self._definitions[event.task_id]
            calls = task_calls(self._node, definition, state.tasks[event.task_id])
        elif event.kind in ("healed", "verdict", "ended"):
            calls = all_calls(self._manifest, state)
        elif event.kind == "blocked":
            calls = paused_calls(self._node, state, event.text)
        if self.outbox.put(calls):
            self._wake.set()

    async def deliver(self) -> bool:
        """Deliver what the node accepts; returns whether that is all. Raises ServerUnreachable."""
        blocked: set[str] = set()
        for call in self.outbox.pending():
            if group_of(call) not in blocked and not await self._deliver(call):
                blocked.add(group_of(call))
        return not blocked

    async def _deliver(self, call: NodeCall) -> bool:
        """Deliver one report; returns False when it has to wait."""
        if call.method == "acp/send" and not await self._offers(call.method):
            self.outbox.settle(call.key, "the node does not offer acp/send")
            return True
        if "commit" in call.params and not await self._asks_for_receipts(call):
            bare = {name: value for name, value in call.params.items() if name != "commit"}
            call = replace(call, params=bare)
        answer = await self._port.call(call, f"{self._prefix}-{call.key}")
        error = answer.get("error")
        outcome = fate(error)
        if outcome is Fate.ALL_WAIT:
            raise ServerUnreachable(f"the node responds: {refusal_text(error)}")
        if outcome is Fate.WAITS:
            self.outbox.wait(call.key, f"{call.method}: {refusal_text(error)}")
            return False
        self.outbox.settle(call.key, error)
        return True

    async def _asks_for_receipts(self, call: NodeCall) -> bool:
        """Whether receipts verify the contract that a call is about: only then its commit matters,
        and nodes of earlier releases don't take a completion that names one."""
        if not await self._offers(RECEIPTS):
            return False
        which = {name: call.params[name] for name in ("projectId", "contractId")}
        asked = NodeCall(f"receipts:{call.key}", RECEIPTS, which)
        answer = await self._port.call(asked, f"{self._prefix}-{asked.key}-{uuid.uuid4().hex[:8]}")
        if fate(answer.get("error")) is Fate.ALL_WAIT:
            raise ServerUnreachable(f"the node responds: {refusal_text(answer['error'])}")
        policy = (answer.get("result") or {}).get("verificationPolicy", "word")
        return bool(policy != "word")

    async def _offers(self, method: str) -> bool:
        if self._offered is None:
            self._offered = await self._port.methods()
        return method in self._offered

    async def show(self) -> None:
        """Tell the node how the run stands, if that has changed. The state itself is on disk, and
        the next report replaces this one, so it does not wait in the outbox. Raises
        ServerUnreachable."""
        if self._state is None or not await self._offers(RUN_REPORT):
            return
        call = run_report(self._node, self._state, self._waits, self._contracts)
        content = orjson.dumps(call.params)
        if content == self._reported:
            return
        digest = hashlib.sha256(content).hexdigest()[:16]
        key = f"{self._prefix}-{call.key}-{digest}-{uuid.uuid4().hex[:8]}"
        answer = await self._port.call(call, key)
        error = answer.get("error")
        if fate(error) is Fate.ALL_WAIT:
            raise ServerUnreachable(f"the node responds: {refusal_text(error)}")
        self.outbox.note_unseen(error and f"{call.method}: {refusal_text(error)}")
        self._reported = content

    async def _loop(self) -> None:
        pause = FIRST_PAUSE
        while True:
            self._wake.clear()
            closing = self._closing.is_set()
            woken = self._wake
            try:
                done = await self.deliver()
            except ServerUnreachable as error:
                self.outbox.all_wait(str(error))
                # New reports don't shorten the pause of an unreachable node.
                done, woken = False, self._closing
            if closing:
                return
            if done:
                pause = FIRST_PAUSE
                await self._wake.wait()
                continue
            await self._until(woken, pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _show_loop(self) -> None:
        """Show each state but those that follow each other within `SHOW_SEC`."""
        while True:
            self._changed.clear()
            closing = self._closing.is_set()
            try:
                await self.show()
            except ServerUnreachable as error:
                self.outbox.note_unseen(str(error))
                self._changed.set()
            if closing:
                return
            await self._until(self._closing, SHOW_SEC)
            await self._changed.wait()

    async def _until(self, event: asyncio.Event, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[None]:
        """Deliver while the body runs, and up to `LAST_CHANCE_SEC` after it."""
        loops = {asyncio.create_task(self._loop()), asyncio.create_task(self._show_loop())}
        try:
            yield
        finally:
            self._closing.set()
            self._wake.set()
            self._changed.set()
            await asyncio.wait(loops, timeout=LAST_CHANCE_SEC)
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
