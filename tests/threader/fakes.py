"""Executables that behave like the real CLIs: their flags, their modes, their wrappings.

Each asks the bench's worker.sh what to say, and refuses flags that the real one does not know.
"""

import stat
import sys
from pathlib import Path
from typing import Any

ADAPTERS = [
    ("command", "text"),
    ("claude", "text"),
    ("claude", "json"),
    ("claude", "stream-json"),
    ("agent", "text"),
    ("agent", "json"),
    ("agent", "stream-json"),
    ("opencode", "text"),
    ("opencode", "stream-json"),
    ("interactive", "text"),
    ("acp", "text"),
]

_HEAD = """\
#!{python}
import json, os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
def ask(prompt):
    assert "Output contract" in prompt or "HEAL_DECISION_V2" in prompt, prompt[:200]
    return subprocess.run(["/bin/sh", here + "/worker.sh"], capture_output=True, text=True).stdout
def emit(value):
    print(json.dumps(value), flush=True)
"""

CLAUDE = (
    _HEAD
    + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-p", "--print", action="store_true", required=True)
parser.add_argument("--output-format", choices=["text", "json", "stream-json"], default="text")
parser.add_argument("--verbose", action="store_true")
parser.add_argument("--model")
parser.add_argument("prompt", nargs="?")
args = parser.parse_args()
prompt = args.prompt or sys.stdin.read()
text = ask(prompt)
result = {"type": "result", "subtype": "success", "is_error": False, "result": text,
          "session_id": "s", "num_turns": 1, "total_cost_usd": 0.01,
          "usage": {"input_tokens": 20, "cache_creation_input_tokens": 80,
                    "cache_read_input_tokens": 700, "output_tokens": 200}}
if args.output_format == "text":
    print(text)
elif args.output_format == "json":
    emit(result)
else:
    if not args.verbose:
        sys.exit("Error: When using --print, --output-format=stream-json requires --verbose")
    emit({"type": "system", "subtype": "init", "session_id": "s", "tools": ["Read"]})
    print("warning: something on stderr", file=sys.stderr, flush=True)
    say = lambda content: emit({"type": "assistant", "message": {"role": "assistant",
                                "content": content}, "session_id": "s"})
    say([{"type": "text", "text": "Let me read."}, {"type": "tool_use", "id": "t", "name": "Read",
         "input": {"file_path": "x"}}])
    emit({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result",
          "tool_use_id": "t", "content": "<<<TASK_RESULT_V2>>>\\n{}\\n<<<END_TASK_RESULT_V2>>>"}]}})
    say([{"type": "text", "text": text}])
    emit(result)
"""
)

AGENT = (
    _HEAD
    + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-p", "--print", action="store_true", required=True)
parser.add_argument("--output-format", choices=["text", "json", "stream-json"], default="text")
parser.add_argument("--trust", action="store_true", required=True)
parser.add_argument("--model")
parser.add_argument("prompt")
args = parser.parse_args()
text = ask(args.prompt)
result = {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 5,
          "result": text, "session_id": "s"}
if args.output_format == "text":
    print(text)
elif args.output_format == "json":
    emit(result)
else:
    emit({"type": "system", "subtype": "init", "cwd": os.getcwd(), "session_id": "s"})
    emit({"type": "user", "message": {"role": "user", "content": [{"type": "text",
          "text": args.prompt}]}, "session_id": "s"})
    emit({"type": "tool_call", "subtype": "started", "call_id": "c", "tool_call": {}})
    emit({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text",
          "text": text}]}, "session_id": "s"})
    emit(result)
"""
)

OPENCODE = (
    _HEAD
    + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("verb", choices=["run"])
parser.add_argument("--format", choices=["default", "json"], default="default")
parser.add_argument("--model", "-m")
parser.add_argument("message", nargs="*")
args = parser.parse_args()
prompt = " ".join(args.message)
if not sys.stdin.isatty():
    prompt += "\\n" + sys.stdin.read()
text = ask(prompt)
if args.format == "default":
    print(text)
else:
    part = lambda kind, **fields: emit({"type": kind, "timestamp": 1, "sessionID": "s",
                                        "part": {"type": kind, **fields}})
    part("step_start")
    part("tool_use", tool="read", state={"output": "<<<TASK_RESULT_V2>>>\\n{}"})
    part("text", text=text)
    part("step_finish", reason="stop", cost=0.01, tokens={"input": 20, "output": 150,
         "reasoning": 50, "cache": {"read": 700, "write": 80}})
"""
)

INTERACTIVE = (
    _HEAD
    + """
import re, time
assert sys.stdin.isatty() and sys.stdout.isatty()
print("\\x1b[2J\\x1b[1;36mWelcome\\x1b[0m", flush=True)
print("Do you trust this folder? [y/N] ", end="", flush=True)
assert input().strip() == "y"
print("\\x1b[32m>\\x1b[0m ", end="", flush=True)
line = input()
path = re.search(r"Read the file (\\S+) and", line)[1]
print("\\x1b[2K\\x1b[33mthinking...\\x1b[0m", flush=True)
for line in ask(open(path).read()).splitlines():
    print("\\x1b[0m" + line, flush=True)
print("\\x1b[32m>\\x1b[0m ", end="", flush=True)
if "no fence" not in line:
    time.sleep(60)
"""
)

ACP = (
    _HEAD
    + """
import asyncio
import acp
class Fake(acp.Agent):
    def on_connect(self, conn):
        self.conn = conn
    async def initialize(self, protocol_version, client_capabilities=None, **_):
        assert not client_capabilities.fs.write_text_file
        return acp.InitializeResponse(protocol_version=protocol_version)
    async def new_session(self, cwd, mcp_servers=None, **_):
        assert os.path.isabs(cwd)
        return acp.NewSessionResponse(session_id="s")
    async def prompt(self, prompt, session_id, **_):
        text = ask(prompt[0].text)
        call = acp.start_tool_call("t", "edit a file", kind="edit")
        await self.conn.session_update(session_id=session_id, update=call)
        options = [{"optionId": "y", "name": "yes", "kind": "allow_once"},
                   {"optionId": "n", "name": "no", "kind": "reject_once"}]
        answer = await self.conn.request_permission(
            session_id=session_id, tool_call={"toolCallId": "t", "kind": "edit", "title": "edit"},
            options=[acp.schema.PermissionOption(**option) for option in options])
        assert answer.outcome.option_id == "n"
        thought = acp.update_agent_thought_text("<<<TASK_RESULT_V2>>>\\n{}")
        await self.conn.session_update(session_id=session_id, update=thought)
        for start in range(0, len(text), 40):
            chunk = acp.update_agent_message_text(text[start:start + 40])
            await self.conn.session_update(session_id=session_id, update=chunk)
        cost = acp.schema.Cost(amount=0.01, currency="USD")
        context = acp.schema.UsageUpdate(
            session_update="usage_update", used=900, size=200000, cost=cost)
        await self.conn.session_update(session_id=session_id, update=context)
        usage = acp.schema.Usage(total_tokens=1000, input_tokens=100, output_tokens=200,
                                 cached_read_tokens=700)
        return acp.PromptResponse(stop_reason="end_turn", usage=usage)
asyncio.run(acp.run_agent(Fake()))
"""
)

_PROGRAMS = {
    "claude": CLAUDE,
    "agent": AGENT,
    "opencode": OPENCODE,
    "interactive": INTERACTIVE,
    "acp": ACP,
}


def install(adapter: str, folder: Path) -> Path:
    """Write the fake of `adapter` into `folder`, next to worker.sh."""
    path = folder / f"fake-{adapter}"
    path.write_text(_PROGRAMS[adapter].replace("{python}", sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def adapter_spec(adapter: str, output: str, folder: Path) -> dict[str, Any]:
    if adapter == "command":
        return {"adapter": "command", "command": ["/bin/sh", str(folder / "worker.sh")]}
    spec: dict[str, Any] = {
        "adapter": adapter,
        "output": output,
        "command": [str(install(adapter, folder))],
    }
    if adapter == "interactive":
        spec |= {"rescues": {"[y/N]": "y\r"}, "idle_sec": 2.5, "max_rescues": 3}
    return spec
