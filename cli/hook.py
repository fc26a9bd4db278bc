"""`cacp hook`: what waits for an agent, shown at the turns of its session (acp-canonical §10).

It runs at each turn of an agent, so it imports little and never disturbs the agent: when the node
doesn't answer in time or refuses, it prints nothing and exits with status 0. `cacp hook AGENT
--check` says why. `cli.entry` calls it without importing the other commands.

What it prints on standard output:

    {"hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": TEXT}}
    {"decision": "block", "reason": TEXT}        when the agent stops; Gemini CLI: "deny"
    {"text": TEXT}                               opencode, for our plugin

Claude Code: https://code.claude.com/docs/en/hooks. Codex: https://developers.openai.com/codex/hooks;
it refuses unknown members. Gemini CLI: https://geminicli.com/docs/hooks/reference. opencode:
https://opencode.ai/docs/plugins.
"""

import _thread
import json
import os
import socket
import sys
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from cli.node_url import DEFAULT_URL

START, PROMPT, TOOL, STOP, FORGET = "start", "prompt", "tool", "stop", "forget"
_CODEX = {"SessionStart": START, "UserPromptSubmit": PROMPT, "PostToolUse": TOOL, "Stop": STOP}
EVENTS = {
    "claude": _CODEX,
    "codex": _CODEX,
    "gemini": {
        "SessionStart": START,
        "BeforeAgent": PROMPT,
        "AfterTool": TOOL,
        "AfterAgent": STOP,
        "PreCompress": FORGET,
    },
    "opencode": {
        "chat.message": PROMPT,
        "tool.execute.after": TOOL,
        "session.idle": STOP,
        "session.compacted": FORGET,
    },
}
"""The events of each agent, and what happens then: a session starts, a person has written, a tool
has run, the agent stops, the context is emptied."""
FORGETS = ("compact", "clear", "resume")
"""Ways to start a session in which earlier output may be gone from the context."""
SECONDS = 0.12
"""How long the node may take, so that the agent waits for 0.2 s at most. CACP_HOOK_SECONDS changes
it, for a node that is far away."""
SECONDS_MAX = 600
SIZE = 9_000
"""Characters of output: of more than 10,000 Claude Code shows only the beginning."""
QUIET = 60_000_000
"""Microseconds after an output in which the rest is not counted again."""
ANSWER_MAX = 4 * 1024 * 1024
KEPT_SECONDS = 30 * 24 * 3600
"""How long it is remembered which answer a session received."""

Json = dict[str, Any]


def main(words: list[str]) -> bool:
    """Run the hook that the words `AGENT [EVENT] [--url URL] [--key-file FILE]` name, and end the
    process. Returns False when there are other words, such as options of the command."""
    hook_call = parsed(words)
    if hook_call is None:
        return False
    # Whatever it is that takes long, such as the name of a host, the agent doesn't wait for it.
    _thread.start_new_thread(_end_later, (seconds(),))
    status = 0
    # Whatever is wrong is no matter of the agent, which would read a traceback.
    with suppress(Exception):
        status = run(*hook_call)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


_answered: list[bool] = []
"""Holds something once the node has answered: the rest takes no time worth mentioning."""


def _end_later(after: float) -> None:
    time.sleep(after)
    if not _answered:
        os._exit(0)


def parsed(words: list[str]) -> tuple[str, str | None, str, str | None] | None:
    """The arguments of `run` in a hook's words; None when there are other words."""
    options = {"--url": os.environ.get("CACP_URL"), "--key-file": None}
    rest: list[str] = []
    given = iter(words)
    for word in given:
        if word in options:
            options[word] = next(given, None)
        elif word.startswith("-"):
            return None
        else:
            rest.append(word)
    if not 1 <= len(rest) <= 2:
        return None
    key = key_of(options["--key-file"], os.environ.get("CACP_KEY"))
    return rest[0], rest[1] if len(rest) == 2 else None, options["--url"] or DEFAULT_URL, key


def key_of(file: str | None, key: str | None) -> str | None:
    """The key in a file, else the given one. One that can't be read is "": the node refuses it."""
    if file is None:
        return key or None
    try:
        with open(os.path.expanduser(file)) as text:
            return text.read(1000).strip()
    except (OSError, ValueError):
        return ""


def seconds() -> float:
    """How long the node may take."""
    try:
        given = float(os.environ["CACP_HOOK_SECONDS"])
    except (KeyError, ValueError):
        return SECONDS
    return given if 0 < given <= SECONDS_MAX else SECONDS


def run(agent: str, event: str | None, url: str, key: str | None) -> int:
    """Answer the hook whose JSON is on standard input. Returns the exit status: 0, or 1 for wrong
    usage. Never 2, which would stop what the agent does."""
    try:
        given = json.loads(sys.stdin.buffer.read() or b"{}")
    except (ValueError, OSError):
        given = {}
    if not isinstance(given, dict):
        given = {}
    event = event or str(given.get("hook_event_name"))
    kind = EVENTS.get(agent, {}).get(event)
    if kind is None:
        print(f"cacp hook: {_usage(agent)}", file=sys.stderr)
        return 1
    # What the agent's subagents are shown, it doesn't see itself.
    if given.get("agent_id"):
        return 0
    try:
        params = question(kind, given)
        receipt = receipt_file(agent, params["session"])
        params["received"] = last_received(receipt, clean=kind == START)
        result = ask(url, key, params, seconds())
        _answered.append(True)
        reply = answer(agent, event, result, params["received"])
        if reply is not None:
            print(json.dumps(reply), flush=True)
            confirm(receipt, result["claim"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return 0


def _usage(agent: str) -> str:
    if agent not in EVENTS:
        return f"takes one of {', '.join(EVENTS)}"
    return f"takes for {agent} one of {', '.join(EVENTS[agent])}"


def question(kind: str, given: Json) -> Json:
    """The params of `cacp/attention/claim` for the JSON that a hook was given."""
    session = given.get("session_id")
    known = isinstance(session, str) and 0 < len(session) <= 200
    return {
        "session": session if known else "unnamed",
        "urgent": kind == STOP,
        "again": kind == FORGET or (kind == START and given.get("source") in FORGETS),
        "limit": 0 if kind == FORGET else 20,
        "size": SIZE,
        "format": "markdown",
    }


def answer(agent: str, event: str, result: Json, received: int | None) -> Json | None:
    """The hook's output for a result of `cacp/attention/claim`. None when there is nothing to show:
    what was shown before is counted only when a session starts, or a person has written and the
    session was shown nothing for a while."""
    kind = EVENTS[agent][event]
    text = result.get("text")
    if not text and kind in (START, PROMPT):
        shown_now = received and result["claim"] - received < QUIET
        text = None if shown_now else result.get("summary")
    if not text:
        return None
    if agent == "opencode":
        return {"text": text}
    if kind == STOP:
        return {"decision": "deny" if agent == "gemini" else "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


# --- the node -----------------------------------------------------------------------------------


def ask(url: str, key: str | None, params: Json, limit: float) -> Json:
    """The result of `cacp/attention/claim`. Raises OSError, ValueError, KeyError, TypeError."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    if parts.scheme not in ("http", "https") or (key is not None and not key.isprintable()):
        raise ValueError
    call = {"jsonrpc": "2.0", "method": "cacp/attention/claim", "params": params, "id": 1}
    body = json.dumps(call).encode()
    # To HTTP 1.0, a server answers without chunks and closes the connection.
    head = (
        f"POST {parts.path or '/'} HTTP/1.0\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    head += "\r\n" if key is None else f"Authorization: Bearer {key}\r\n\r\n"
    address = parts.hostname or "", parts.port or (443 if secure else 80)
    with socket.create_connection(address, limit) as plain:
        connection = _encrypted(plain, address[0]) if secure else plain
        connection.sendall(head.encode() + body)
        with connection.makefile("rb") as answered:
            content = answered.read(ANSWER_MAX).partition(b"\r\n\r\n")[2]
    result: Json = json.loads(content)["result"]
    return result


def _encrypted(plain: socket.socket, host: str) -> socket.socket:
    import ssl

    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


# --- what the session received ------------------------------------------------------------------


def receipt_file(agent: str, session: str) -> str:
    """Where it is remembered which answer a session received last."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    name = "".join(letter if letter.isalnum() else "-" for letter in session[:100])
    return os.path.join(state, "cacp", "hooks", f"{agent}-{name}")


def last_received(file: str, *, clean: bool = False) -> int | None:
    """The `claim` of the last answer that was printed; 0 before the first, and None when it can't
    be remembered. `clean` removes what belongs to sessions of long ago."""
    folder = os.path.dirname(file)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if clean:
            for entry in os.scandir(folder):
                if entry.stat().st_mtime < time.time() - KEPT_SECONDS:
                    os.unlink(entry)
        with open(file, "a+") as receipt:
            receipt.seek(0)
            return int(receipt.read(30) or 0)
    except (OSError, ValueError):
        return None


def confirm(file: str, claim: int) -> None:
    """Remember that an answer was printed. Raises OSError."""
    with open(file, "w") as receipt:
        receipt.write(str(claim))
