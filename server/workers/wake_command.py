"""Runs the commands that wake agents (acp-canonical §10, wake trigger).

A command is the operator's, from the settings; nothing that is sent here becomes a part of it. It
is run without a shell and without the node's own variables, in a process group of its own, and
learns which message waits and how many:

    ACP_AGENT, ACP_MESSAGE_ID, ACP_PRIORITY, ACP_UNREAD    in its environment
    {"agent", "messageId", "priority", "unread"}           as JSON on its standard input

Exit status 0 says that the agent is awake. One that takes too long is killed, with all that it has
started; what it leaves behind when it ends by itself, such as the agent, is left alone. What it
prints goes nowhere.
"""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress

import orjson

from server.methods.acp.push import Parcel

TOGETHER = 4
"""Commands that run at once."""


class WakeCommands:
    """`commands` are lists of words by the agent's address."""

    def __init__(self, commands: Mapping[str, Sequence[str]], seconds: float) -> None:
        self._commands = commands
        self._room = asyncio.Semaphore(TOGETHER)
        self._limit = seconds
        # Who waits for room waits for others, each no longer than the limit.
        self.seconds = seconds * 4

    async def push(self, parcel: Parcel) -> str | None:
        told = {
            "agent": parcel.target.address,
            "messageId": parcel.envelope["id"],
            "priority": parcel.envelope["priority"],
            "unread": parcel.unread,
        }
        async with self._room:
            return await self._run(self._commands[parcel.target.address], told)

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _run(self, words: Sequence[str], told: dict[str, object]) -> str | None:
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env=environment(os.environ, told),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"the waking command can't be run ({type(error).__name__})"
        try:
            async with asyncio.timeout(self._limit):
                await _tell(process, orjson.dumps(told))
                status = await process.wait()
        except TimeoutError:
            return f"the waking command took more than {self._limit:g} s"
        finally:
            if process.returncode is None:
                _kill(process)
                await process.wait()
        return None if status == 0 else f"the waking command ended with status {status}"


def environment(own: Mapping[str, str], told: Mapping[str, object]) -> dict[str, str]:
    """The command's variables: the node's, but none of its settings, and what it is told."""
    kept = {name: value for name, value in own.items() if not name.startswith("CACP_")}
    return kept | {
        "ACP_AGENT": str(told["agent"]),
        "ACP_MESSAGE_ID": str(told["messageId"]),
        "ACP_PRIORITY": str(told["priority"]),
        "ACP_UNREAD": str(told["unread"]),
    }


async def _tell(process: Process, text: bytes) -> None:
    assert process.stdin is not None
    # A command need not read what it is told.
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(text)
        await process.stdin.drain()
    process.stdin.close()


def _kill(process: Process) -> None:
    """Kill its whole group; it is the leader, and has not been waited for yet."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
