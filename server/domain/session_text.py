"""What waits for an agent, as text for its session. Texts of agents are data in it
(`server.domain.untrusted`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.attention import AttentionKind
from server.domain.attention import text
from server.domain.untrusted import WARNING

ITEM_MAX = 4_000
"""Characters of an item; the detail of a longer one is left to `cacp_attention`."""
FRAME = 1_000
"""Characters of the text around the entries, at most."""
HOW_TO_ACK = (
    "Acknowledge the messages that you have dealt with: `ack` of the tool `acp_inbox`, or `cacp "
    "inbox --ack ID`."
)
WHERE = "Tool `cacp_attention`, or in a shell, with your key in CACP_KEY, `cacp next`."


def item(given: Mapping[str, Any], place: int) -> str:
    """An attention item (`schemas.attention.AttentionItem`), with its number in the list."""
    whole = text.whole(given, place)
    if len(whole) <= ITEM_MAX:
        return whole
    return f"{text.brief(given, place)}\n\nIts details are long: {WHERE}"


def named(given: Mapping[str, Any]) -> str:
    """An item that is too long to be shown."""
    return f"## {given['kind']} ({given['urgency']})\n\nIt is long: {WHERE}"


def feed(texts: Sequence[str], rest: str, *, has_items: bool, has_mail: bool, urgent: bool) -> str:
    """What is shown to a session: entries, and the line about the rest. `urgent`: it keeps the
    agent from stopping."""
    title = "Before you stop, this is urgent" if urgent else "This waits for you"
    how = "Do what `next` says: that closes an item. " if has_items else ""
    parts = [f"# {title}: {len(texts)}\n\n{how}{WARNING}", *texts]
    parts += [HOW_TO_ACK] if has_mail else []
    return "\n\n".join([*parts, rest] if rest else parts)


def summary(counts: Mapping[AttentionKind, int], urgent: int, unread: int) -> str:
    """How much waits, in a line; empty when nothing does. `counts` are those of the kinds."""
    kinds = [f"{count} {kind}" for kind, count in sorted(counts.items()) if kind != "mail"]
    if unread:
        kinds.append(f"{unread} unread message{'s' if unread > 1 else ''}")
    if not kinds:
        return ""
    pressing = f" ({urgent} urgent)" if urgent else ""
    return f"Waiting in all: {', '.join(kinds)}{pressing}. {WHERE}"
