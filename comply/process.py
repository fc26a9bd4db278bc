"""A process under test: read within bounds, and ended with all that it started."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

OUTPUT_BYTES = 16 << 20
"""What a process may write in one test, to stdout and stderr together. More is a flood."""
OUTPUT_LINES = 20_000
"""How many lines of them may be on stdout."""
LOG_BYTES = 20_000
"""How much of the end of its stderr is kept."""
CHUNK_BYTES = 1 << 16
LINE_LIMIT = 64 << 20
LAST_SECONDS = 2.0
"""Seconds to read the rest of an ended process's output: another may hold its pipes open."""
LOOK_SECONDS = 0.1
KILL_ROUNDS = 20
MARKER = "CACP_COMPLY"
"""The environment variable that marks every process a test starts."""


class NotStarted(Exception):
    """The command can't be started; the message names it and says why."""


class Child:
    """A process in a group of its own.

    `heard` is called with each line of its stdout, newline included; `ended` once, with the reason
    why there will be no more, such as "exited with status 1". `end` kills its children too.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        marker: str,
        heard: Callable[[bytes], None],
        ended: Callable[[str], None],
    ) -> None:
        self.process = process
        self.marker = marker
        self.heard = heard
        self.ended = ended
        self.flood = ""
        """The limit of output that it exceeded, for which it was killed; else empty."""
        self._ending = False
        self._bytes = self._lines = 0
        self._log = bytearray()
        self._unkept = 0
        self._reading = [
            asyncio.create_task(self._read_lines()),
            asyncio.create_task(self._read_log()),
        ]
        self._exited = asyncio.create_task(self._exit())
        self._course = asyncio.create_task(self._follow())

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        marker: str,
        heard: Callable[[bytes], None],
        ended: Callable[[str], None],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> "Child":
        """Raises NotStarted."""
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env={**os.environ, **(env or {}), MARKER: marker},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=CHUNK_BYTES,
            )
        except OSError as error:
            raise NotStarted(f"can't start {argv[0]}: {error.strerror}") from None
        except ValueError:
            raise NotStarted(f"can't start {argv[0]!r}: it has a zero byte") from None
        return cls(process, marker, heard, ended)

    @property
    def log(self) -> str:
        """The end of its stderr, and how many bytes came before."""
        gone = f"… {self._unkept} bytes before\n" if self._unkept else ""
        return gone + self._log.decode(errors="replace")

    @property
    def unread(self) -> int:
        """Bytes written to it that it has not read."""
        assert self.process.stdin is not None
        return self.process.stdin.transport.get_write_buffer_size()

    async def write(self, data: bytes) -> None:
        """Write to its stdin; data that it no longer reads is lost."""
        assert self.process.stdin is not None
        with suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(data)
            await self.process.stdin.drain()

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def wait(self) -> None:
        """Wait until it has ended and all its output is read."""
        await asyncio.shield(self._course)

    async def end(self, grace: float) -> None:
        """Close its stdin, and kill what still runs after `grace` seconds."""
        self._ending = True
        self.close_stdin()
        await asyncio.wait({self._exited}, timeout=grace)
        kill_group(self.process)
        await asyncio.to_thread(kill_marked, self.marker)
        await asyncio.wait({self._exited, self._course}, timeout=LAST_SECONDS * 2)
        tasks = [*self._reading, self._exited, self._course]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        close_pipes(self.process)

    async def _follow(self) -> None:
        out, log = self._reading
        await asyncio.wait({self._exited, out}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({self._exited, out, log}, timeout=LAST_SECONDS)
        if out.done():
            out.result()
        self.ended(self._why())

    def _why(self) -> str:
        if self.flood:
            return f"wrote more than {self.flood}"
        status = self.process.returncode
        if status is None:
            return "closed its standard output"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"exited with status {status}"

    async def _exit(self) -> None:
        await exited(self.process)
        # At once: the number may be reused for another group later.
        _kill(self.process.pid)

    async def _read_lines(self) -> None:
        assert self.process.stdout is not None
        parts: list[bytes] = []
        while chunk := await self._read(self.process.stdout):
            first, *lines = chunk.split(b"\n")
            parts.append(first)
            for line in lines[: OUTPUT_LINES - self._lines]:
                self.heard(b"".join(parts) + b"\n")
                parts = [line]
            self._lines += len(lines)
            if self._lines > OUTPUT_LINES:
                self._overflow(f"{OUTPUT_LINES} lines")
                return
        # A line that is cut off because we ended the process is not the process's fault.
        if any(parts) and not self.flood and not self._ending:
            self.heard(b"".join(parts))

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self._read(self.process.stderr):
            self._log += chunk
            self._unkept += max(0, len(self._log) - LOG_BYTES)
            del self._log[:-LOG_BYTES]

    async def _read(self, stream: asyncio.StreamReader) -> bytes:
        """The next chunk; empty at the end, or after a flood, for which the process is killed."""
        # A pipe that is always full would starve the event loop's other tasks.
        await asyncio.sleep(0)
        chunk = await stream.read(CHUNK_BYTES)
        self._bytes += len(chunk)
        if self._bytes > OUTPUT_BYTES:
            self._overflow(f"{OUTPUT_BYTES >> 20} MiB")
        return b"" if self.flood else chunk

    def _overflow(self, bound: str) -> None:
        self.flood = self.flood or bound
        kill_group(self.process)


async def exited(process: asyncio.subprocess.Process) -> None:
    """Wait until a process has ended, even if another holds its pipes open."""
    # `Process.wait` waits for the pipes too.
    waiting = asyncio.create_task(process.wait())
    try:
        while process.returncode is None:
            await asyncio.wait({waiting}, timeout=LOOK_SECONDS)
    finally:
        waiting.cancel()


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """Close a process's pipes; those that another process holds open would leak otherwise."""
    process._transport.close()  # type: ignore[attr-defined]


def kill_group(process: asyncio.subprocess.Process) -> None:
    """SIGKILL to a process that runs, and to its group."""
    if process.returncode is None:
        _kill(process.pid)


def kill_marked(marker: str) -> None:
    """SIGKILL every process that carries the marker, whatever its group, until none is left.

    Reads /proc: on systems without it, only the group is killed.
    """
    for _ in range(KILL_ROUNDS):
        pids = _marked(marker)
        if not pids:
            return
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_SECONDS / KILL_ROUNDS)


def _marked(marker: str) -> list[int]:
    wanted, pids = f"{MARKER}={marker}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                pids.append(int(entry.name))
    return pids


def _kill(group: int) -> None:
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
