"""Any agent that speaks the Agent Client Protocol over stdio, with the official SDK (§9).

Updates are logged as JSON lines. The agent may read the workspace; it may not write, and
permission for anything that changes files is refused: writes go through the result (§8).
"""

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import orjson
from acp import PROTOCOL_VERSION, Client, RequestError, connect_to_agent, text_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from threader.adapters.base import (
    Adapter,
    AdapterCapabilities,
    ExecutionArtifact,
    PreparedInvocation,
    RunContext,
)
from threader.adapters.streams import acp_text
from threader.outcome import Ending
from threader.parsing import Buffer
from threader.process import Exit, limited, stop_group

HARMLESS = frozenset({"read", "search", "fetch", "think"})
LINE_LIMIT = 64 * 1024 * 1024


class AcpClient:
    """The client's side of a session: reads files, refuses changes, logs updates."""

    def __init__(self, log: int, cwd: Path) -> None:
        self._log = log
        self._cwd = cwd.resolve()

    def note(self, **fields: object) -> None:
        os.write(self._log, orjson.dumps(fields, default=str) + b"\n")

    def on_connect(self, conn: object) -> None:
        return None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        content = getattr(update, "content", None)
        cost = getattr(update, "cost", None)
        self.note(
            update=update.session_update,
            text=getattr(content, "text", None),
            title=getattr(update, "title", None),
            **({"cost": cost.model_dump()} if cost else {}),
        )

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        wanted = "allow_once" if tool_call.kind in HARMLESS else "reject_once"
        chosen = next((option for option in options if option.kind == wanted), None)
        self.note(permission=tool_call.title, answer=wanted if chosen else "cancelled")
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        selected = AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return RequestPermissionResponse(outcome=selected)

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        target = (self._cwd / path).resolve()
        if not target.is_relative_to(self._cwd) or not target.is_file():
            raise RequestError.invalid_params({"path": "no such file in the workspace"})
        lines = target.read_text(errors="replace").splitlines(keepends=True)
        start = max(0, (line or 1) - 1)
        end = None if limit is None else start + limit
        return ReadTextFileResponse(content="".join(lines[start:end]))


class AcpAdapter(Adapter):
    id = "acp"
    capabilities = AdapterCapabilities(arg_prompt=False)

    def arguments(self, ctx: RunContext) -> list[str]:
        return []

    def transcript(self, log: Buffer) -> Buffer:
        return acp_text(log)

    async def execute(self, invocation: PreparedInvocation, ctx: RunContext) -> ExecutionArtifact:
        began = time.monotonic()
        log = os.open(ctx.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            ending, code = await self._run(invocation, ctx, log)
        finally:
            os.close(log)
        return ExecutionArtifact(ctx.log_path, Exit(ending, code, time.monotonic() - began))

    async def _run(
        self, invocation: PreparedInvocation, ctx: RunContext, log: int
    ) -> tuple[Ending, int | None]:
        try:
            process = await asyncio.create_subprocess_exec(
                *invocation.argv, cwd=invocation.cwd, env=dict(invocation.env),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
                start_new_session=True, limit=LINE_LIMIT,
            )  # fmt: skip
        except OSError as error:
            os.write(log, f"cannot start {invocation.argv[0]}: {error.strerror}\n".encode())
            return Ending.NOT_STARTED, None
        failed = False
        try:
            work = self._session(process, ctx, log)
            ending = await limited(work, log, invocation.timeout_sec, ctx.max_log_bytes)
        except (RequestError, ConnectionError, EOFError) as error:
            more = f" {error.data}" if isinstance(error, RequestError) and error.data else ""
            os.write(log, f"\nthe session failed: {error}{more}\n".encode())
            ending, failed = Ending.EXITED, True
        finally:
            await asyncio.shield(stop_group(process))
        return ending, (1 if failed else 0) if ending is Ending.EXITED else None

    async def _session(
        self, process: asyncio.subprocess.Process, ctx: RunContext, log: int
    ) -> None:
        client = AcpClient(log, ctx.cwd)
        # The rest of the interface belongs to capabilities that are not offered.
        offered = cast(Client, client)
        connection = connect_to_agent(offered, process.stdin, process.stdout)
        try:
            reading = FileSystemCapabilities(read_text_file=True, write_text_file=False)
            await connection.initialize(
                protocol_version=PROTOCOL_VERSION,
                client_capabilities=ClientCapabilities(fs=reading, terminal=False),
            )
            session = await connection.new_session(cwd=str(ctx.cwd), mcp_servers=[])
            prompt = text_block(ctx.prompt_path.read_text())
            answer = await connection.prompt(session_id=session.session_id, prompt=[prompt])
            usage = answer.usage and answer.usage.model_dump()
            client.note(stop_reason=answer.stop_reason, usage=usage)
        finally:
            with suppress(ConnectionError):
                await connection.close()
