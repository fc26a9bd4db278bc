"""An agent's mail for people at a terminal: who wrote what, and the command to answer it."""

import json
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from cli.times import ago
from schemas.plain import clean, one_line

Json = dict[str, Any]
TONES = {"critical": "bold red", "high": "yellow"}
INDENT = "  "


def inbox_text(listing: Json) -> Text:
    """The result of `acp/inbox` with its messages, the first first. Agents' text is cleaned, and
    stays what it is: nothing in it is markup."""
    messages = listing["messages"]
    if not messages:
        unread = listing["counts"].get("unread", 0)
        rest = f" {unread} unread before this cursor." if unread else ""
        return Text(f"No messages wait for you.{rest}")
    parts = [Text("\n").join(_message_lines(message)) for message in messages]
    if listing["more"]:
        parts.append(Text(f"There are more: cacp inbox --cursor {listing['cursor']}", "dim"))
    return Text("\n\n").join(parts)


def _message_lines(message: Json) -> Iterator[Text]:
    payload = dict(message["payload"])
    summary = payload.pop("summary", "")
    head = Text(one_line(message.get("topic") or summary, 200), "bold")
    if message["priority"] != "normal":
        head.append(f"  {one_line(message['priority'])}", TONES.get(message["priority"], "dim"))
    yield head
    where = f", in thread {one_line(message['thread_id'])}" if message.get("reply_to") else ""
    yield Text(
        f"{INDENT}{one_line(message['type'])} of {one_line(message['from'])}, "
        f"{ago(message['created_at'])}{where}",
        "dim",
    )
    if message.get("topic") and summary:
        yield Text(_indented(summary))
    for name, value in payload.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield Text(_indented(f"{name}: {text}"))
    id, sender = one_line(message["id"]), one_line(message["from"])
    yield Text(f"{INDENT}answer   cacp send {sender} --reply-to {id} -m …", "dim")
    yield Text(f"{INDENT}done     cacp inbox --ack {id}", "dim")


def _indented(text: object) -> str:
    return "\n".join(INDENT + line for line in clean(text).splitlines())
