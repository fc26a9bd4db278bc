"""A process under test: read fast and within bounds, and ended with all that it started."""

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
"""How long the last words of a process that has ended are read: another may hold its pipes open."""
LOOK_SECONDS = 0.1
KILL_ROUNDS = 20
MARKER = "CACP_COMPLY"
"""Stands in the environment of all that a test starts, and so tells whose a process is."""


class NotStarted(Exception):
    """The command can't be started; the message names it and says why."""


class Child:
    """A process in a group of its own.

    `heard` is given each line of its stdout, with its end; `ended`, once, why there will be no
    more: "exited with status 1". Its children end when it does, or are killed by `end`.
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
        """What it wrote too much of, if it did. That ended it."""
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
        """The end of what it wrote to stderr, and how much was before it."""
        gone = f"… {self._unkept} bytes before\n" if self._unkept else ""
        return gone + self._log.decode(errors="replace")

    @property
    def unread(self) -> int:
        """Bytes written to it that it has not read."""
        assert self.process.stdin is not None
        return self.process.stdin.transport.get_write_buffer_size()

    async def write(self, data: bytes) -> None:
        """To its stdin; what it no longer reads is lost."""
        assert self.process.stdin is not None
        with suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(data)
            await self.process.stdin.drain()

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def wait(self) -> None:
        """Until it has ended and all that it wrote is read."""
        await asyncio.shield(self._course)

    async def end(self, grace: float) -> None:
        """Close its stdin; kill what of it is left after `grace` seconds."""
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
        # At once: later, the number may be that of another's group.
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
        # A line that our end of it cut off says nothing about who wrote it.
        if any(parts) and not self.flood and not self._ending:
            self.heard(b"".join(parts))

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self._read(self.process.stderr):
            self._log += chunk
            self._unkept += max(0, len(self._log) - LOG_BYTES)
            del self._log[:-LOG_BYTES]

    async def _read(self, stream: asyncio.StreamReader) -> bytes:
        """The next piece; nothing at the end, or in a flood, which ends the process."""
        # A pipe that is always full would let nobody else have a turn.
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
    """Until a process has ended, though another may hold its pipes open."""
    # `Process.wait` waits for the pipes too.
    waiting = asyncio.create_task(process.wait())
    try:
        while process.returncode is None:
            await asyncio.wait({waiting}, timeout=LOOK_SECONDS)
    finally:
        waiting.cancel()


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """Those that another holds open would be left to the garbage collector."""
    process._transport.close()  # type: ignore[attr-defined]


def kill_group(process: asyncio.subprocess.Process) -> None:
    """SIGKILL to a process that runs, and to its group."""
    if process.returncode is None:
        _kill(process.pid)


def kill_marked(marker: str) -> None:
    """SIGKILL to every process that carries the marker, whatever group it moved to, until none
    does: one may start another meanwhile.

    Reads /proc: on systems without it, the group is all that is killed.
    """
    for _ in range(KILL_ROUNDS):
        found = _marked(marker)
        if not found:
            return
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_SECONDS / KILL_ROUNDS)


def _marked(marker: str) -> list[int]:
    wanted, found = f"{MARKER}={marker}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def _kill(group: int) -> None:
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
