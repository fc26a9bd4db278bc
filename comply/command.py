"""Tests of a program that reads standard input: a wire parser, one run of it per `run` step."""

import asyncio
import json
import shlex
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import JsonValue

from comply.files import Case
from comply.process import Child, NotStarted
from comply.record import Record
from comply.run import HarnessError, Unreachable, to_its_end
from comply.template import fill
from schemas.jsont import ComplianceTest, JsonObject, Step

RUN_SECONDS = 20.0


class Flood(Exception):
    """It writes more than any run may; the message says of what."""


@dataclass(slots=True)
class CommandTarget:
    """A command line, split as a shell splits it; no shell runs it."""

    line: str
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.line

    @property
    def argv(self) -> list[str]:
        return shlex.split(self.line)

    async def learn(self) -> None:
        """Raises Unreachable when the command can't be started."""
        with suppress(TimeoutError, Flood):
            await run(self.argv, b"")

    async def missing(self, test: ComplianceTest) -> str | None:
        if test.transport != "command":
            return f"is for {test.transport}, not for a command"
        return None

    def concerns(self, test: ComplianceTest) -> bool:
        return True

    async def open(self, case: Case) -> "CommandSession":
        return CommandSession(self.argv)

    async def close(self) -> None:
        """Nothing outlives its test."""


class CommandSession:
    """Runs of the command. Each is heard as `output`: status, stdout, and its JSON if it is."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.record = Record(unasked=False)
        self.variables: dict[str, JsonValue] = {"unique": uuid.uuid4().hex[:12]}
        self.log = ""

    async def start(self) -> None:
        """Each step starts the command."""

    async def act(self, step: Step) -> None:
        if step.run is None:
            raise HarnessError("this step is not for a command")
        stdin = str(fill(step.run.stdin, self.variables))
        for frame in self.record.open():
            # Only the latest run can meet what is said of it.
            frame.matched = True
        self.record.sent({"stdin": stdin}, "output")
        try:
            status, stdout, stderr = await self.run(stdin.encode())
        except TimeoutError:
            self.record.end(f"the command did not end within {RUN_SECONDS:g} s")
            return
        except Flood as flood:
            self.record.flood(f"the command wrote more than {flood}")
            return
        heard: JsonObject = {"status": status, "stdout": stdout}
        with suppress(ValueError, RecursionError):
            heard["json"] = json.loads(stdout)
        self.log += stderr
        self.record.heard(heard, "output")

    async def run(self, stdin: bytes) -> tuple[int, str, str]:
        """Status, stdout and stderr. Raises Unreachable, Flood, TimeoutError."""
        return await run(self.argv, stdin)

    async def close(self) -> str:
        return self.log


async def run(argv: list[str], stdin: bytes) -> tuple[int, str, str]:
    """Status, stdout and stderr of a command. Raises Unreachable, Flood, TimeoutError."""
    said: list[bytes] = []
    try:
        child = await Child.start(
            argv, marker=uuid.uuid4().hex, heard=said.append, ended=lambda why: None
        )
    except NotStarted as error:
        raise Unreachable(str(error)) from None
    try:
        async with asyncio.timeout(RUN_SECONDS):
            await child.write(stdin)
            child.close_stdin()
            await child.wait()
    finally:
        await to_its_end(child.end(0))
    if child.flood:
        raise Flood(child.flood)
    return child.process.returncode or 0, b"".join(said).decode(errors="replace"), child.log
