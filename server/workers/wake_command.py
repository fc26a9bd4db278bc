"""Runs the commands that wake agents (acp-canonical §10, wake trigger).

A command comes from the operator's settings; nothing that agents send becomes part of it. It runs
without a shell and without the node's own variables, in its own process group, and gets:

    ACP_AGENT, ACP_MESSAGE_ID, ACP_PRIORITY, ACP_UNREAD    in its environment
    {"agent", "messageId", "priority", "unread"}           as JSON on its standard input

Exit status 0 means that the agent is awake. A command that takes too long is killed with its
process group. A command that exits in time may leave processes running, such as the agent. Its
output is discarded.
"""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress

import orjson

from server.methods.acp.push import Parcel

CONCURRENT_MAX = 4
"""How many commands may run concurrently."""


class WakeCommands:
    """`commands` maps an agent's address to the words of its command."""

    def __init__(self, commands: Mapping[str, Sequence[str]], seconds: float) -> None:
        self._commands = commands
        self._slots = asyncio.Semaphore(CONCURRENT_MAX)
        self._limit = seconds
        # A push may first wait for the commands before it, each no longer than the limit.
        self.seconds = seconds * 4

    async def push(self, parcel: Parcel) -> str | None:
        notice = {
            "agent": parcel.target.address,
            "messageId": parcel.envelope["id"],
            "priority": parcel.envelope["priority"],
            "unread": parcel.unread,
        }
        async with self._slots:
            return await self._run(self._commands[parcel.target.address], notice)

    async def close(self) -> None:
        """Does nothing: no resource stays open."""

    async def _run(self, words: Sequence[str], notice: dict[str, object]) -> str | None:
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env=environment(os.environ, notice),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"the wake command can't be run ({type(error).__name__})"
        try:
            async with asyncio.timeout(self._limit):
                await _send(process, orjson.dumps(notice))
                status = await process.wait()
        except TimeoutError:
            return f"the wake command took more than {self._limit:g} s"
        finally:
            if process.returncode is None:
                _kill(process)
                await process.wait()
        return None if status == 0 else f"the wake command ended with status {status}"


def environment(own: Mapping[str, str], notice: Mapping[str, object]) -> dict[str, str]:
    """The command's variables: the node's without its settings, and those of the notice."""
    kept = {name: value for name, value in own.items() if not name.startswith("CACP_")}
    return kept | {
        "ACP_AGENT": str(notice["agent"]),
        "ACP_MESSAGE_ID": str(notice["messageId"]),
        "ACP_PRIORITY": str(notice["priority"]),
        "ACP_UNREAD": str(notice["unread"]),
    }


async def _send(process: Process, text: bytes) -> None:
    assert process.stdin is not None
    # A command need not read its input.
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(text)
        await process.stdin.drain()
    process.stdin.close()


def _kill(process: Process) -> None:
    """Kill the process group. The process leads it, and was not reaped, so the id is still its
    own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
