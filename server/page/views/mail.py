"""Mail: the threads of the viewer's mail, and one of them."""

from typing import Any

import orjson

from schemas.acp import ACPPriority
from server.domain.agents import identity
from server.domain.errors import InvalidInput
from server.page.view import Page, PageCall, view

THREADS = 50
LETTERS = 20
MESSAGES = 30
PRIORITIES: tuple[ACPPriority, ...] = ("normal", "high", "critical", "low")


@view("mail", "/ui/mail", title="Mail", kinds=("message",))
def mail(call: PageCall) -> Page:
    """The threads of the viewer's mail, newest first, and what could not be delivered; for a person
    also the mail of others that is open to humans."""
    after, own = call.query.get("after"), identity(call.caller.agent_id)
    shown = call.ask("acp/threads", limit=THREADS, cursor=after)
    letters: Page = {"letters": []}
    if after is None:
        letters = call.ask("acp/deadLetters", limit=LETTERS, cursor=_dead_after(call))
    return {
        "ownId": own,
        "isHuman": call.caller.human,
        "threads": shown["threads"],
        "nextCursor": shown.get("nextCursor"),
        "deadLetters": [_dead(letter, own) for letter in _plain(letters["letters"])],
        "moreDead": letters.get("nextCursor"),
        "priorities": PRIORITIES,
    }


def _dead_after(call: PageCall) -> int | None:
    given = call.query.get("dead")
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 16):
        raise InvalidInput("dead: must be the number of a dead letter", path="dead")
    return int(given)


def _dead(letter: dict[str, Any], own: str) -> dict[str, Any]:
    """A dead letter in short. Only its sender may send it again."""
    message, receipt = letter["message"], letter["receipt"]
    return {
        "messageId": message["id"],
        "from": message["from"],
        "to": receipt["recipient"],
        "topic": message.get("topic") or message["payload"].get("summary") or message["type"],
        "priority": message["priority"],
        "status": receipt["status"],
        "error": receipt.get("error"),
        "channel": letter["channel"],
        "at": message["created_at"],
        "isOwn": identity(message["from"]) == own,
    }


@view("thread", "/ui/mail/threads/{thread_id}", title="Thread", kinds=("message",))
def thread(call: PageCall) -> Page:
    """The messages of a thread in order, each with what became of it for every recipient."""
    shown = _plain(
        call.ask(
            "acp/thread",
            thread_id=call.path["thread_id"],
            limit=MESSAGES,
            cursor=call.query.get("after"),
        )
    )
    own, last = identity(call.caller.agent_id), shown["messages"][-1]
    parties = {identity(last["message"]["from"])}
    parties |= {receipt["recipient"] for receipt in last["receipts"]}
    return {
        **shown,
        "messages": [_message(entry) for entry in shown["messages"]],
        "topic": _topic(shown["messages"]),
        # One who only oversees a thread begins another with its parties.
        "replyTo": last["message"]["id"] if own in parties else None,
        "recipients": sorted(parties - {own}) or [own],
        "isLatest": "after" not in call.query,
        "unreadIds": [entry["message"]["id"] for entry in shown["messages"] if _unread(entry, own)],
    }


def _unread(entry: dict[str, Any], own: str) -> bool:
    """Whether a message came to the viewer, who has not acknowledged it."""
    return any(
        receipt["recipient"] == own and receipt["status"] in ("pending", "delivered")
        for receipt in entry["receipts"]
    )


def _message(entry: dict[str, Any]) -> dict[str, Any]:
    """A message with its payload taken apart: the summary, texts, and the rest as JSON."""
    message = entry["message"]
    payload = dict(message["payload"])
    summary = payload.pop("summary", "")
    texts = {name: value for name, value in payload.items() if isinstance(value, str)}
    rest = {name: value for name, value in payload.items() if name not in texts}
    more = orjson.dumps(rest, option=orjson.OPT_INDENT_2).decode() if rest else None
    return {**entry, "summary": summary, "texts": texts, "more": more}


def _topic(messages: list[dict[str, Any]]) -> str:
    first = messages[0]["message"]
    return str(first.get("topic") or first["payload"].get("summary") or first["type"])


def _plain(answer: Any) -> Any:
    """An answer whose parts are JSON already, as values."""
    return orjson.loads(orjson.dumps(answer))
