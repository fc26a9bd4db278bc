"""CLIs that take one prompt and answer once: `command`, `claude`, `opencode`, `agent` (§9)."""

from typing import ClassVar

from threader.adapters.base import Adapter, RunContext
from threader.adapters.streams import any_text, claude_text, opencode_text, transcript
from threader.parsing import Buffer


class CommandAdapter(Adapter):
    """Any program: the prompt on stdin (or as the last argument), the answer on stdout.

    With a JSON `output`, it is read as the events of any CLI that has an adapter here.
    """

    id = "command"
    is_agent = False

    def arguments(self, ctx: RunContext) -> list[str]:
        return []

    def transcript(self, log: Buffer) -> Buffer:
        return log if self.spec.output == "text" else transcript(log, any_text)


class ClaudeAdapter(Adapter):
    """`claude -p`: print mode, the prompt on stdin or as the last argument."""

    id = "claude"
    default_command: ClassVar[tuple[str, ...]] = ("claude",)

    def arguments(self, ctx: RunContext) -> list[str]:
        argv = ["-p", "--output-format", self.spec.output]
        if self.spec.output == "stream-json":
            argv.append("--verbose")
        if self.spec.model:
            argv += ["--model", self.spec.model]
        return argv

    @property
    def reports_usage(self) -> bool:
        return self.spec.output != "text"

    def transcript(self, log: Buffer) -> Buffer:
        return log if self.spec.output == "text" else transcript(log, claude_text)


class AgentAdapter(Adapter):
    """Cursor's `agent -p`: like `claude`, with `--trust` for the workspace it is started in."""

    id = "agent"
    default_command: ClassVar[tuple[str, ...]] = ("agent",)
    default_prompt: ClassVar[str] = "argument"

    def arguments(self, ctx: RunContext) -> list[str]:
        argv = ["-p", "--output-format", self.spec.output, "--trust"]
        if self.spec.model:
            argv += ["--model", self.spec.model]
        return argv

    @property
    def reports_usage(self) -> bool:
        return False

    def transcript(self, log: Buffer) -> Buffer:
        return log if self.spec.output == "text" else transcript(log, claude_text)


class OpencodeAdapter(Adapter):
    """`opencode run`: the message on stdin or as the last argument, plain or JSON events."""

    id = "opencode"
    default_command: ClassVar[tuple[str, ...]] = ("opencode",)

    def arguments(self, ctx: RunContext) -> list[str]:
        argv = ["run", "--format", "default" if self.spec.output == "text" else "json"]
        if self.spec.model:
            argv += ["--model", self.spec.model]
        return argv

    @property
    def reports_usage(self) -> bool:
        return self.spec.output != "text"

    def transcript(self, log: Buffer) -> Buffer:
        return log if self.spec.output == "text" else transcript(log, opencode_text)
