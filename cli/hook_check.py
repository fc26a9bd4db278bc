"""`cacp hook AGENT --check`: whether the hooks of an agent work, and if not, why.

A hook itself says nothing when something is wrong, because its agent would read it.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from cli import hook_install
from cli.client import CallRefused, NodeClient, NodeUnreachable
from cli.hook import EVENTS, parsed
from server.domain.doctor_check import DoctorCheck

SECONDS = 10.0
GOOD_SECONDS = 0.2
"""How long a hook may take before its agent seems slow."""
SESSION = "cacp hook --check"
NOTES = {
    "codex": "Codex runs new hooks once you have trusted them: /hooks in Codex",
    "gemini": "Gemini CLI runs the hooks of a folder once you have trusted the folder",
}


def hook_checks(agent: str, file: Path | None) -> Iterator[DoctorCheck]:
    """What is needed for an agent's hooks to work, in order; ends where something is broken. The
    hooks are those of `file`, else of this folder and of the user."""
    commands = []
    for path in [file] if file else [hook_install.file_of(agent, user=it) for it in (False, True)]:
        try:
            text = path.read_text() if path.exists() else None
            events = hook_install.installed(text, agent)
        except (OSError, ValueError) as error:
            yield DoctorCheck("settings", "broken", f"{path}: {error}", "correct the file")
            return
        if events:
            commands.append((path, events))
    if not commands:
        finding = f"{file or 'neither this folder nor your home'} has no hooks for {agent}"
        yield DoctorCheck("settings", "broken", finding, f"cacp hook {agent} --install")
        return
    for path, events in commands:
        yield _settings_check(agent, path, events)
    yield from _command_checks(next(iter(commands[0][1].values())))
    if agent in NOTES:
        yield DoctorCheck("trust", "ok", NOTES[agent])


def _settings_check(agent: str, path: Path, events: dict[str, list[str]]) -> DoctorCheck:
    missing = [event for event in EVENTS[agent] if event not in events]
    if missing:
        finding = f"{path} has no hook for {', '.join(missing)}"
        remedy = f"cacp hook {agent} --install --file {path}"
        return DoctorCheck("settings", "warning", finding, remedy)
    return DoctorCheck("settings", "ok", f"{path} has the hooks")


def _command_checks(words: list[str]) -> Iterator[DoctorCheck]:
    if shutil.which(words[0]) is None:
        finding = f"the hooks call {words[0]}, which is not there"
        yield DoctorCheck("command", "broken", finding, f"cacp hook {words[2]} --install")
        return
    hook_call = parsed(words[2:])
    if hook_call is None:
        finding = f"the hooks call {words[0]} with options that it doesn't have"
        yield DoctorCheck("command", "broken", finding, f"cacp hook {words[2]} --install")
        return
    if hook_call[3] == "":
        finding = "the file that the hooks read their key from is empty or can't be read"
        remedy = f"cacp hook {words[2]} --install --key-file FILE"
        yield DoctorCheck("key", "broken", finding, remedy)
        return
    node = _node_check(hook_call[2], hook_call[3])
    yield node
    if node.state != "broken":
        yield _time_check(words)


def _node_check(url: str, key: str | None) -> DoctorCheck:
    params = {"session": SESSION, "limit": 0}
    try:
        with NodeClient(url, key, SECONDS) as node:
            claim = node.call("cacp/attention/claim", params)
    except ValueError as error:
        return DoctorCheck("node", "broken", str(error), "install the hooks with the right --url")
    except NodeUnreachable as error:
        return DoctorCheck("node", "broken", str(error), "start it (cacp serve), or correct --url")
    except CallRefused as refused:
        remedy = "set CACP_KEY to the agent's key where you start it, or install with --key-file"
        return DoctorCheck("node", "broken", f"{url} refuses: {refused.message}", remedy)
    if claim["state"] != "available":
        finding = f"{url} doesn't show sessions what waits for them"
        return DoctorCheck("node", "broken", finding, "CACP_ACP_SESSION_INJECTION=true there")
    waiting = claim.get("summary") or "Nothing waits."
    return DoctorCheck("node", "ok", f"{url} answers {claim['address']}. {waiting}")


def _time_check(words: list[str]) -> DoctorCheck:
    """Run the hook as the agent does, in a session of its own."""
    given = json.dumps({"session_id": SESSION, "source": "startup"})
    started = time.monotonic()
    try:
        done = subprocess.run(
            words, input=given, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return DoctorCheck("hook", "broken", f"it does not run: {error}", "cacp doctor")
    took = time.monotonic() - started
    finding = f"it takes {took * 1000:.0f} ms"
    if done.returncode or done.stderr:
        finding = f"it ends with status {done.returncode}: {done.stderr[-500:]}"
        return DoctorCheck("hook", "broken", finding, f"cacp hook {words[2]} --install")
    if took > GOOD_SECONDS:
        remedy = "the agent waits for each; a node far away needs CACP_HOOK_SECONDS"
        return DoctorCheck("hook", "warning", finding, remedy)
    return DoctorCheck("hook", "ok", finding)
