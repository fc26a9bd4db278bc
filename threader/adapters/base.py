"""`adapter.v2` in Python (agent-threader-v2 §7, §9)."""

import mmap
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from schemas.heal_decision import HealDecision
from schemas.manifest import AdapterSpec, Manifest
from schemas.run_state import Usage
from schemas.task_result import TaskResult
from threader.adapters.usage import find_usage
from threader.parsing import Buffer, ParsedContract, ParserFailure, parse_decision, parse_result
from threader.process import MARKER, Exit, run_process

Result = TypeVar("Result")
ResultReader = Callable[[Buffer, str], ParsedContract[TaskResult] | ParserFailure]

HEALER = "@healer"
"""Stands for the healer in place of a task id; no task can have this id."""

MAX_ARGUMENT = 100_000
"""Linux refuses a single argument of 128 KiB; a longer prompt goes through a file."""


def child_environment(manifest: Manifest) -> dict[str, str]:
    """The environment of workers, healers and verification: all variables but the node's key."""
    hidden = manifest.node.key_env if manifest.node else None
    return {name: value for name, value in os.environ.items() if name != hidden}


@dataclass(frozen=True)
class RunContext:
    """Where and how one invocation runs. The child inherits `environ`."""

    task_id: str
    cwd: Path
    staging: Path
    prompt_path: Path
    log_path: Path
    timeout_sec: float
    max_log_bytes: int
    marker: str
    environ: Mapping[str, str]
    read_result: ResultReader = parse_result


@dataclass(frozen=True)
class PreparedInvocation:
    cwd: Path
    argv: list[str]
    env: Mapping[str, str]
    stdin_path: Path | None
    timeout_sec: float


@dataclass(frozen=True)
class ExecutionArtifact:
    """The result of an invocation: its log, and how it ended."""

    log_path: Path
    exit: Exit


@dataclass(frozen=True)
class AdapterHealth:
    ready: bool
    details: list[str]


@dataclass(frozen=True)
class AdapterCapabilities:
    stdin_prompt: bool = True
    arg_prompt: bool = True
    pty: bool = False
    interactive: bool = False


class Adapter(ABC):
    """One CLI. The shared parser reads its contracts from `transcript`."""

    id: ClassVar[str]
    is_agent: ClassVar[bool] = True
    """Whether it is the CLI of an agent, so that its errors may be attributed to a provider."""
    capabilities: ClassVar[AdapterCapabilities] = AdapterCapabilities()
    default_command: ClassVar[tuple[str, ...]] = ()
    default_prompt: ClassVar[str] = "stdin"

    def __init__(self, spec: AdapterSpec) -> None:
        self.spec = spec

    @property
    def command(self) -> list[str]:
        return list(self.spec.command or self.default_command)

    @property
    def reports_usage(self) -> bool:
        """Whether its log may report usage; False when it never does."""
        return True

    @abstractmethod
    def arguments(self, ctx: RunContext) -> list[str]:
        """The arguments after the command, without the prompt."""

    def environment(self, ctx: RunContext) -> dict[str, str]:
        return {
            **ctx.environ,
            **self.spec.env,
            MARKER: ctx.marker,
            "CACP_TASK_ID": ctx.task_id,
            "CACP_STAGING_DIR": str(ctx.staging),
            "CACP_PROMPT_FILE": str(ctx.prompt_path),
        }

    def prepare(self, ctx: RunContext) -> PreparedInvocation:
        """The concrete command line, with the prompt on stdin or as the last argument."""
        argv = [*self.command, *self.arguments(ctx), *self.spec.args]
        stdin_path: Path | None = ctx.prompt_path
        if (self.spec.prompt or self.default_prompt) == "argument":
            prompt = ctx.prompt_path.read_text()
            if len(prompt.encode()) > MAX_ARGUMENT:
                prompt = f"Read the file {ctx.prompt_path} and do what it says."
            argv.append(prompt)
            stdin_path = None
        return PreparedInvocation(ctx.cwd, argv, self.environment(ctx), stdin_path, ctx.timeout_sec)

    async def execute(self, invocation: PreparedInvocation, ctx: RunContext) -> ExecutionArtifact:
        ended = await run_process(
            invocation.argv,
            cwd=invocation.cwd,
            env=invocation.env,
            log_path=ctx.log_path,
            timeout_sec=invocation.timeout_sec,
            stdin_path=invocation.stdin_path,
            max_log_bytes=ctx.max_log_bytes,
        )
        return ExecutionArtifact(ctx.log_path, ended)

    def transcript(self, log: Buffer) -> Buffer:
        """The model's own text within the log; the log itself unless the CLI wraps it."""
        return log

    def extract_result(
        self, artifact: ExecutionArtifact, ctx: RunContext
    ) -> ParsedContract[TaskResult] | ParserFailure:
        return self._read(artifact, lambda text: ctx.read_result(text, ctx.task_id))

    def extract_decision(
        self, artifact: ExecutionArtifact
    ) -> ParsedContract[HealDecision] | ParserFailure:
        return self._read(artifact, parse_decision)

    def usage(self, artifact: ExecutionArtifact) -> Usage | None:
        """The tokens and cost that the CLI reports; None when it reports none."""
        return self._raw(artifact, find_usage)

    def _read(self, artifact: ExecutionArtifact, reader: Callable[[Buffer], Result]) -> Result:
        return self._raw(artifact, lambda log: reader(self.transcript(log)))

    @staticmethod
    def _raw(artifact: ExecutionArtifact, reader: Callable[[Buffer], Result]) -> Result:
        with ExitStack() as stack:
            file = stack.enter_context(artifact.log_path.open("rb"))
            if os.fstat(file.fileno()).st_size == 0:
                return reader(b"")
            return reader(stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))

    def healthcheck(self, environ: Mapping[str, str], cwd: Path) -> AdapterHealth:
        """Whether the executable can be found from `cwd`; nothing is run."""
        if not self.command:
            return AdapterHealth(False, [f"{self.id}: the manifest must give a command"])
        name = self.command[0]
        if "/" in name:
            name = str(cwd / name)
        executable = shutil.which(name, path={**environ, **self.spec.env}.get("PATH"))
        if executable is None:
            return AdapterHealth(
                False, [f"{self.id}: cannot find the executable {self.command[0]}"]
            )
        return AdapterHealth(True, [f"{self.id}: {executable}"])
