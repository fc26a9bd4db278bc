"""Tests of a program that reads standard input, such as a wire parser: one run per `run` step."""

import asyncio
import json
import shlex
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import JsonValue

from comply.files import Case
from comply.process import Child, NotStarted
from comply.record import Transcript
from comply.run import to_its_end
from comply.target import HarnessError, SubjectUnreachable
from comply.template import fill
from schemas.jsont import ComplianceTest, JsonObject, JsontStep

RUN_SECONDS = 20.0


class Flood(Exception):
    """The command wrote more than a run may; the message names the limit."""


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
        """Raises SubjectUnreachable when the command can't be started."""
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

    async def clean(self) -> list[str]:
        return []

    async def close(self) -> None:
        """Nothing outlives its test."""


class CommandSession:
    """Runs of the command. Each is recorded as `output`: status, stdout, and its JSON if any."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.record = Transcript(unasked=False)
        self.variables: dict[str, JsonValue] = {"unique": uuid.uuid4().hex[:12]}
        self.log = ""

    async def start(self) -> None:
        """Each step starts the command."""

    async def act(self, step: JsontStep) -> None:
        if step.run is None:
            raise HarnessError("this step is not for a command")
        stdin = str(fill(step.run.stdin, self.variables))
        for frame in self.record.open():
            # Only the latest run can meet an expectation.
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
        """Status, stdout and stderr. Raises SubjectUnreachable, Flood, TimeoutError."""
        return await run(self.argv, stdin)

    async def close(self) -> str:
        return self.log


async def run(argv: list[str], stdin: bytes) -> tuple[int, str, str]:
    """Status, stdout and stderr of a command. Raises SubjectUnreachable, Flood, TimeoutError."""
    lines: list[bytes] = []
    try:
        child = await Child.start(
            argv, marker=uuid.uuid4().hex, heard=lines.append, ended=lambda why: None
        )
    except NotStarted as error:
        raise SubjectUnreachable(str(error)) from None
    try:
        async with asyncio.timeout(RUN_SECONDS):
            await child.write(stdin)
            child.close_stdin()
            await child.wait()
    finally:
        await to_its_end(child.end(0))
    if child.flood:
        raise Flood(child.flood)
    return child.process.returncode or 0, b"".join(lines).decode(errors="replace"), child.log
