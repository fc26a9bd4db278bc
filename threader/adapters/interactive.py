"""CLIs that talk to a terminal (agent-threader-v2 §9 "Interactive CLIs").

The child gets a wide terminal. The manifest's `rescues` answer its questions, a bounded number of
times, and silence is bounded too. It is done when its output holds a complete contract.
"""

import asyncio
import fcntl
import os
import struct
import termios
import time
from contextlib import suppress
from enum import Enum, auto

import regex

from schemas.manifest import AdapterSpec
from threader.adapters.base import (
    HEALER,
    Adapter,
    AdapterCapabilities,
    ExecutionArtifact,
    PreparedInvocation,
    RunContext,
)
from threader.outcome import Ending
from threader.parsing import (
    HEAL_FENCE,
    RESULT_FENCE,
    Buffer,
    Fence,
    ParsedContract,
    last_block,
    parse_decision,
)
from threader.process import Exit, limited, stop_group
from threader.signatures import strip_ansi

ROWS, COLUMNS = 50, 8_000
"""Wide, so that no program wraps a line of JSON."""

QUIET_SEC = 0.3
SETTLED_SEC = 1.0
"""A program is taken to be ready when it has been quiet this long after showing something."""

SEARCH_SEC = 0.25
"""The time limit of one search for `ready`, which blocks all other tasks."""

SCREEN = 4_000
ENTER = "\r"
NEVER = "(?!)"
"""A pattern that nothing matches."""


class _Phase(Enum):
    STARTING = auto()
    """The prompt has to be typed once the child is ready."""
    WORKING = auto()
    """The child has its prompt."""


class _Idle(Exception):
    """No output, and no rescue left."""


def plain(log: bytes) -> bytes:
    """Terminal output as text: without control sequences, lines end with a newline."""
    text = strip_ansi(log.decode("utf-8", "replace")).replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "replace")


def is_ready(screen: str, spec: AdapterSpec, *, quiet: float, waited: float) -> bool:
    """Whether the prompt may be typed; both times in seconds.

    A program that takes over the terminal discards what was typed before. Raises TimeoutError when
    the pattern takes too long on this screen.
    """
    if waited >= spec.ready_sec:
        return True
    if spec.ready is not None:
        return regex.search(spec.ready, screen, timeout=SEARCH_SEC) is not None
    return bool(screen.strip()) and quiet >= SETTLED_SEC


class _Terminal:
    """The master side of a pseudo-terminal; all output is written to the log first."""

    def __init__(self, master: int, log: int) -> None:
        self._master = master
        self._log = log
        self._screen = b""
        self.fresh = False
        """Set on output; the reader resets it."""
        self.received = asyncio.Event()
        self.closed = False
        asyncio.get_running_loop().add_reader(master, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        os.write(self._log, data)
        self._screen = (self._screen + data)[-SCREEN:]
        self.fresh = True
        self.received.set()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().remove_reader(self._master)
            self.received.set()

    def screen(self) -> str:
        return plain(self._screen).decode()

    def note(self, text: str) -> None:
        """Write a line of the threader's own to the log."""
        os.write(self._log, f"\ncacp thread: {text}\n".encode())

    def clear(self) -> None:
        self._screen = b""

    async def type(self, keys: str) -> None:
        data = keys.encode()
        while data and not self.closed:
            with suppress(BlockingIOError):
                data = data[os.write(self._master, data) :]
            await asyncio.sleep(0)

    async def quiet(self, seconds: float) -> bool:
        """Wait for output; True when there was none for `seconds`."""
        self.received.clear()
        try:
            async with asyncio.timeout(seconds):
                await self.received.wait()
        except TimeoutError:
            return True
        return False


class InteractiveAdapter(Adapter):
    id = "interactive"
    capabilities = AdapterCapabilities(pty=True, interactive=True)

    def arguments(self, ctx: RunContext) -> list[str]:
        return ["--model", self.spec.model] if self.spec.model else []

    def environment(self, ctx: RunContext) -> dict[str, str]:
        return {"TERM": "xterm-256color", **super().environment(ctx)}

    @property
    def reports_usage(self) -> bool:
        return False

    def transcript(self, log: Buffer) -> Buffer:
        return plain(log[0 : len(log)])

    async def execute(self, invocation: PreparedInvocation, ctx: RunContext) -> ExecutionArtifact:
        began = time.monotonic()
        master, slave = os.openpty()
        os.set_blocking(master, False)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        log = os.open(ctx.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            ending, code = await self._session(invocation, ctx, master, slave, log)
        finally:
            os.close(log)
            os.close(master)
        return ExecutionArtifact(ctx.log_path, Exit(ending, code, time.monotonic() - began))

    async def _session(
        self, invocation: PreparedInvocation, ctx: RunContext, master: int, slave: int, log: int
    ) -> tuple[Ending, int | None]:
        try:
            process = await asyncio.create_subprocess_exec(
                *invocation.argv, cwd=invocation.cwd, env=dict(invocation.env),
                stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            os.write(log, f"cannot start {invocation.argv[0]}: {error.strerror}\n".encode())
            return Ending.NOT_STARTED, None
        finally:
            os.close(slave)
        terminal = _Terminal(master, log)
        has_to_type_prompt = invocation.stdin_path is not None
        try:
            work = self._converse(terminal, process, ctx, has_to_type_prompt=has_to_type_prompt)
            ending = await limited(work, log, invocation.timeout_sec, ctx.max_log_bytes)
        except _Idle:
            ending = Ending.IDLE
        finally:
            terminal.close()
            ended_itself = process.returncode is not None
            await asyncio.shield(stop_group(process))
        # Stopping a CLI whose answer is complete is not a failure of the CLI.
        code = process.returncode if ended_itself else 0
        return ending, code if ending is Ending.EXITED else None

    async def _converse(
        self,
        terminal: _Terminal,
        process: asyncio.subprocess.Process,
        ctx: RunContext,
        *,
        has_to_type_prompt: bool,
    ) -> None:
        """Talk to the child until it ends or has answered. Raises _Idle when it is stuck."""
        fence = HEAL_FENCE if ctx.task_id == HEALER else RESULT_FENCE
        phase = _Phase.STARTING if has_to_type_prompt else _Phase.WORKING
        rescues_used = 0
        spec = self.spec
        began = last_activity = time.monotonic()
        while not terminal.closed and process.returncode is None:
            if not await terminal.quiet(QUIET_SEC):
                last_activity = time.monotonic()
                continue
            if terminal.fresh and self._complete(ctx, fence):
                return
            terminal.fresh = False
            keys = self._answer(terminal.screen())
            now = time.monotonic()
            quiet = now - last_activity
            if keys is None and phase is _Phase.STARTING:
                try:
                    ready = is_ready(terminal.screen(), spec, quiet=quiet, waited=now - began)
                except TimeoutError:
                    wait = f"the prompt is typed after ready_sec ({spec.ready_sec:g} s)"
                    terminal.note(f"the pattern `ready` takes too long on this screen; {wait}")
                    ready, spec = False, spec.model_copy(update={"ready": NEVER})
                if ready:
                    phase, last_activity = _Phase.WORKING, now
                    terminal.clear()
                    instruction = f"Read the file {ctx.prompt_path} and do what it says."
                    await terminal.type(instruction + ENTER)
                continue
            if keys is None and quiet < self.spec.idle_sec:
                continue
            if rescues_used >= self.spec.max_rescues:
                raise _Idle
            rescues_used += 1
            last_activity = now
            terminal.clear()
            await terminal.type(keys if keys is not None else ENTER)
        await process.wait()

    def _answer(self, screen: str) -> str | None:
        return next((keys for text, keys in self.spec.rescues.items() if text in screen), None)

    def _complete(self, ctx: RunContext, fence: Fence) -> bool:
        """Whether the output holds a valid contract; an echoed example is not valid."""
        text = plain(ctx.log_path.read_bytes())
        if last_block(text, fence)[0] is None:
            return False
        if fence is HEAL_FENCE:
            return isinstance(parse_decision(text), ParsedContract)
        return isinstance(ctx.read_result(text, ctx.task_id), ParsedContract)
