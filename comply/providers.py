"""What a client offers an agent: files, terminals and permissions, jailed to the sandbox."""

import asyncio
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comply.matching import look_up
from comply.process import LAST_SECONDS, MARKER, OUTPUT_BYTES, close_pipes, exited, kill_group
from schemas.jsont import JsonObject, Policy

METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND = -32601, -32602, -32002
DENIED = -32001
"""Not -32000: an agent that passes that on would demand a login (Agent Client Protocol,
Authentication)."""
READING = frozenset({"read", "search", "fetch", "think"})
WRITING = READING | {"edit", "delete", "move"}
DEFAULT_OUTPUT_BYTES = 1 << 20
ENDED = {"exitCode": 0, "signal": None}
PROMISED: dict[str, Any] = {
    "terminal/output": {"output": "", "truncated": False, "exitStatus": ENDED},
    "terminal/wait_for_exit": ENDED,
    "terminal/kill": {},
    "terminal/release": {},
}
"""The answers of a terminal that a test's reply promised: its command ended and printed nothing."""


class ProviderError(Exception):
    """An error with which the client answers."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class Terminal:
    process: asyncio.subprocess.Process
    limit: int
    output: bytearray = field(default_factory=bytearray)
    truncated: bool = False
    reader: asyncio.Task[None] | None = None

    async def collect(self) -> None:
        """Keep the last `limit` bytes of what it prints."""
        assert self.process.stdout is not None
        while chunk := await self.process.stdout.read(65536):
            self.output += chunk
            if len(self.output) > self.limit:
                del self.output[: len(self.output) - self.limit]
                self.truncated = True

    def status(self) -> dict[str, Any] | None:
        code = self.process.returncode
        if code is None:
            return None
        if code < 0:
            return {"exitCode": None, "signal": signal.Signals(-code).name}
        return {"exitCode": code, "signal": None}


class Providers:
    """The client's side of one test. `answer` raises ProviderError."""

    def __init__(
        self, sandbox: Path, capabilities: JsonObject, policy: Policy, marker: str = ""
    ) -> None:
        self.marker = marker
        self.sandbox = sandbox.resolve()
        self.capabilities = capabilities
        self.policy = policy
        self.cancelled = False
        self.terminals: dict[str, Terminal] = {}
        self.promised: set[str] = set()
        """Terminals that a test's own reply has promised."""
        self.table = {
            "fs/read_text_file": ("fs.readTextFile", self.read),
            "fs/write_text_file": ("fs.writeTextFile", self.write),
            "session/request_permission": (None, self.permission),
            "elicitation/create": ("elicitation", self.elicit),
            "terminal/create": ("terminal", self.create),
            "terminal/output": ("terminal", self.output),
            "terminal/wait_for_exit": ("terminal", self.wait),
            "terminal/kill": ("terminal", self.kill),
            "terminal/release": ("terminal", self.release),
        }

    async def answer(self, method: str, params: Any) -> Any:
        capability, handler = self.table.get(method, (None, None))
        if handler is None or (capability is not None and not self.offers(capability)):
            raise ProviderError(METHOD_NOT_FOUND, f"{method} is not offered")
        if not isinstance(params, dict):
            raise ProviderError(INVALID_PARAMS, "params must be an object")
        try:
            if method in PROMISED and params["terminalId"] in self.promised:
                if method == "terminal/release":
                    self.promised.remove(params["terminalId"])
                return PROMISED[method]
            return await handler(params)
        except (KeyError, TypeError) as error:
            raise ProviderError(INVALID_PARAMS, f"missing or wrong: {error}") from None
        except OSError as error:
            raise ProviderError(
                INVALID_PARAMS, error.strerror or "the file can't be used"
            ) from None

    def offers(self, capability: str) -> bool:
        """Whether a capability is true or an object."""
        try:
            return look_up(self.capabilities, capability) not in (None, False)
        except KeyError:
            return False

    def inside(self, path: str) -> Path:
        wanted = Path(path)
        if not wanted.is_absolute():
            raise ProviderError(INVALID_PARAMS, "path must be absolute")
        if not wanted.resolve().is_relative_to(self.sandbox):
            raise ProviderError(DENIED, "path is outside the workspace")
        return wanted.resolve()

    def allow(self, *policies: Policy) -> None:
        if self.policy not in policies:
            raise ProviderError(DENIED, f"denied: the permission policy is {self.policy}")

    async def read(self, params: dict[str, Any]) -> Any:
        self.allow("read", "write", "yolo")
        path = self.inside(params["path"])
        if not path.exists():
            raise ProviderError(RESOURCE_NOT_FOUND, "No such file")
        if not path.is_file():
            # Reading a pipe would block every other test.
            raise ProviderError(INVALID_PARAMS, "path is not a file")
        if path.stat().st_size > OUTPUT_BYTES:
            raise ProviderError(INVALID_PARAMS, f"the file has more than {OUTPUT_BYTES >> 20} MiB")
        text = path.read_text(encoding="utf-8", errors="replace")
        start = max(0, (params.get("line") or 1) - 1)
        limit = params.get("limit")
        lines = text.splitlines(keepends=True)[start:]
        return {"content": "".join(lines if limit is None else lines[:limit])}

    async def write(self, params: dict[str, Any]) -> Any:
        self.allow("write", "yolo")
        path, content = self.inside(params["path"]), params["content"]
        if path.exists() and not path.is_file():
            raise ProviderError(INVALID_PARAMS, "path is not a file")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return {}

    async def permission(self, params: dict[str, Any]) -> Any:
        """Allow or reject once, by the policy; `cancelled` once the turn is cancelled (Agent Client
        Protocol, Cancellation)."""
        if self.cancelled:
            return {"outcome": {"outcome": "cancelled"}}
        kind = self.tool_call(params).get("kind") or "other"
        allowed = {"none": False, "read": kind in READING, "write": kind in WRITING, "yolo": True}
        wanted = "allow" if allowed[self.policy] else "reject"
        kinds = [f"{wanted}_once", f"{wanted}_always"]
        fitting = [option for option in params["options"] if option["kind"] in kinds]
        for option in sorted(fitting, key=lambda option: kinds.index(option["kind"])):
            return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        return {"outcome": {"outcome": "cancelled"}}

    def tool_call(self, params: dict[str, Any]) -> dict[str, Any]:
        """The tool call of a permission request; version 2 has it in `subject`."""
        call = params.get("toolCall") or (params.get("subject") or {}).get("toolCall")
        return call if isinstance(call, dict) else {}

    async def elicit(self, params: dict[str, Any]) -> Any:
        """Decline: no person is present to fill in a form."""
        if not self.offers(f"elicitation.{params['mode']}"):
            raise ProviderError(
                INVALID_PARAMS, f"elicitation of mode {params['mode']} is not offered"
            )
        return {"action": "decline"}

    async def create(self, params: dict[str, Any]) -> Any:
        self.allow("yolo")
        folder = self.inside(params.get("cwd") or str(self.sandbox))
        limit = min(params.get("outputByteLimit") or DEFAULT_OUTPUT_BYTES, OUTPUT_BYTES)
        given = {variable["name"]: variable["value"] for variable in params.get("env") or []}
        own = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.sandbox)}
        process = await asyncio.create_subprocess_exec(
            params["command"],
            *(params.get("args") or []),
            cwd=folder,
            env={**own, **given, MARKER: self.marker},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        terminal = Terminal(process, limit)
        terminal.reader = asyncio.create_task(terminal.collect())
        name = f"term-{len(self.terminals) + 1}"
        self.terminals[name] = terminal
        return {"terminalId": name}

    def terminal(self, params: dict[str, Any]) -> Terminal:
        terminal = self.terminals.get(params["terminalId"])
        if terminal is None:
            raise ProviderError(RESOURCE_NOT_FOUND, "the terminal does not exist")
        return terminal

    async def output(self, params: dict[str, Any]) -> Any:
        terminal = self.terminal(params)
        if terminal.process.returncode is not None and terminal.reader is not None:
            await asyncio.wait({terminal.reader}, timeout=LAST_SECONDS)
        text = terminal.output.decode(errors="replace")
        shown = {"output": text, "truncated": terminal.truncated}
        return shown | ({"exitStatus": status} if (status := terminal.status()) else {})

    async def wait(self, params: dict[str, Any]) -> Any:
        terminal = self.terminal(params)
        await exited(terminal.process)
        return terminal.status()

    async def kill(self, params: dict[str, Any]) -> Any:
        kill_group(self.terminal(params).process)
        return {}

    async def release(self, params: dict[str, Any]) -> Any:
        terminal = self.terminal(params)
        kill_group(terminal.process)
        await exited(terminal.process)
        close_pipes(terminal.process)
        del self.terminals[params["terminalId"]]
        return {}

    async def close(self) -> None:
        """End every terminal that the agent left open."""
        for terminal in self.terminals.values():
            kill_group(terminal.process)
            await exited(terminal.process)
            close_pipes(terminal.process)
            if terminal.reader is not None:
                terminal.reader.cancel()
