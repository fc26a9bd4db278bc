"""`cacp hook`: new mail at the turns of Claude Code and Codex (acp-canonical §10, session).

It runs at each turn of an agent, so it imports little and never disturbs the agent: when the node
doesn't answer or refuses, it prints nothing and exits with status 0. `cli.entry` calls it without
importing the other commands.

Both agents read the same JSON on standard output:

    {"hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": TEXT}}
    {"decision": "block", "reason": TEXT}                                         for Stop

Claude Code: https://code.claude.com/docs/en/hooks. Codex: https://developers.openai.com/codex/hooks;
it refuses unknown members. Codex's older `notify` reads no output, so it can't show mail.
"""

import json
import os
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from cli.node_url import DEFAULT_URL

AGENTS = ("claude", "codex")
CONTEXT_EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse")
"""Events whose output the agent adds to its context."""
EVENTS = (*CONTEXT_EVENTS, "Stop")
FORGETS = ("compact", "clear", "resume")
"""Ways to start a session in which earlier output may be gone from the context."""
SECONDS = 2.0
"""How long the node may take: the agent waits for its hooks."""
SIZE = 9_000
"""Characters of output: of more than 10,000 Claude Code shows only the beginning."""
ANSWER_MAX = 4 * 1024 * 1024
UNREAD = "Your inbox holds {count} that you have not acknowledged: `acp_inbox`, or `cacp inbox`."

Json = dict[str, Any]


def asked(words: list[str]) -> tuple[str, str | None, str, str | None] | None:
    """The arguments of `run` in the words `AGENT [EVENT] [--url URL]`. None when there are other
    words, such as options."""
    url = os.environ.get("CACP_URL") or DEFAULT_URL
    rest = list(words)
    if "--url" in rest[:-1]:
        place = rest.index("--url")
        url = rest[place + 1]
        rest = rest[:place] + rest[place + 2 :]
    if not 1 <= len(rest) <= 2 or any(word.startswith("-") for word in rest):
        return None
    return rest[0], rest[1] if len(rest) == 2 else None, url, os.environ.get("CACP_KEY") or None


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
    if agent not in AGENTS or event not in EVENTS:
        print(
            f"cacp hook: takes one of {', '.join(AGENTS)} and one of {', '.join(EVENTS)}",
            file=sys.stderr,
        )
        return 1
    try:
        params = question(event, given)
        result = None if params is None else ask(url, key, params)
        reply = None if result is None else answer(event, result)
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        reply = None
    if reply is not None:
        print(json.dumps(reply))
    return 0


def question(event: str, given: Json) -> Json | None:
    """The params of `acp/claim` for the JSON that a hook was given. None when it asks for nothing.

    At Stop it asks only for urgent mail, and for none when a hook already keeps the agent working.
    """
    if event == "Stop" and given.get("stop_hook_active"):
        return None
    session = given.get("session_id")
    known = isinstance(session, str) and 0 < len(session) <= 200
    return {
        "session_id": session if known else "unnamed",
        "urgent": event == "Stop",
        "again": event == "SessionStart" and given.get("source") in FORGETS,
        "size": SIZE,
        "format": "markdown",
    }


def answer(event: str, result: Json) -> Json | None:
    """The hook's output for a ClaimResult. None when there is nothing to show."""
    text = result.get("text")
    if event == "Stop":
        return {"decision": "block", "reason": text} if text else None
    unread = result["counts"]["unread"]
    available = result["capabilities"]["session"] == "available"
    if not text and event == "SessionStart" and unread and available:
        text = UNREAD.format(count=f"{unread} message{'s' if unread != 1 else ''}")
    if not text:
        return None
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def ask(url: str, key: str | None, params: Json) -> Json:
    """The result of `acp/claim`. Raises OSError, HTTPException, ValueError, KeyError, TypeError."""
    parts = urlsplit(url)
    make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=SECONDS)
    try:
        body = json.dumps({"jsonrpc": "2.0", "method": "acp/claim", "params": params, "id": 1})
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        connection.request("POST", parts.path or "/", body.encode(), headers)
        answer = json.loads(connection.getresponse().read(ANSWER_MAX))
    finally:
        connection.close()
    result: Json = answer["result"]
    return result
