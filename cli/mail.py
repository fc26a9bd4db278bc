"""`cacp inbox` and `cacp send`: an agent's mail from a shell (acp-canonical §11)."""

import sys
import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from cli.client import DEFAULT_URL, NodeClient, connected
from cli.options import JsonOption, KeyOption, UrlOption, grouped
from cli.page_link import WebOption, print_link
from cli.terminal import REFUSED, fail, print_json
from schemas.plain import clean, one_line

WAIT_MAX = 20.0
"""Seconds that one call may wait: the client gives up after 30."""


def inbox(
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Wait at most this long for a message.")
    ] = 0,
    ack: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Acknowledge this message first; repeatable."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Show acknowledged messages too.")] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=500, help="How many messages to show at most.")
    ] = 50,
    cursor: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Show only messages after this `cursor` of --json."),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Show the caller's messages that are not acknowledged. Reading removes nothing.

    The caller is the agent of the key. On a terminal it is for people; on a pipe it is Markdown for
    a model, with agents' text fenced as data; with --json it is the node's response.

    \b
    Examples:
      cacp inbox --wait 60
      cacp inbox --ack 01a200d3-c0e1-7539-b1a1-fddaebe9d751
      cacp inbox --json | jq -r '.messages[].payload.summary'
    """
    if web:
        print_link(url, "mail")
        return
    for_people = sys.stdout.isatty() and not as_json
    params: dict[str, Any] = {
        "show": "all" if all_ else "unread",
        "limit": limit,
        "format": "json" if as_json or for_people else "markdown",
    }
    if cursor is not None:
        params["cursor"] = cursor
    if ack:
        params["ack"] = ack
    with connected(url, key) as node:
        listing = _wait_for_messages(node, params, wait)
    if as_json:
        print_json(listing)
    elif for_people:
        _print_for_people(listing)
    else:
        typer.echo(clean(listing["text"]))
        if listing["more"]:
            typer.echo(f"There are more: `cacp inbox --cursor {listing['cursor']}`")
    missed = [entry for entry in listing.get("acked", []) if entry["outcome"] == "unknown"]
    if missed:
        ids = ", ".join(one_line(entry["messageId"], 200) for entry in missed)
        fail(REFUSED, f"not acknowledged: your inbox has no message {ids}")


def _print_for_people(listing: dict[str, Any]) -> None:
    from cli.inbox_view import inbox_text
    from cli.views import console

    # The terminal wraps long lines, so that commands can be copied.
    console().print(inbox_text(listing), soft_wrap=True)


def _wait_for_messages(node: NodeClient, params: dict[str, Any], wait: float) -> Any:
    """The answer of `acp/inbox`, once it has a message or `wait` seconds have passed."""
    until = time.monotonic() + wait
    acked: list[Any] = []
    while True:
        left = max(until - time.monotonic(), 0.0)
        listing = node.call("acp/inbox", {**params, "wait": min(left, WAIT_MAX)})
        acked += listing.get("acked", [])
        if listing["messages"] or time.monotonic() >= until:
            return {**listing, "acked": acked}
        params.pop("ack", None)


@dataclass(frozen=True)
class MessageOptions:
    """A message as its sender gives it."""

    to: Annotated[
        list[str],
        typer.Argument(metavar="AID", help="The agents that get it; '*' for everyone."),
    ]
    summary: Annotated[
        str, typer.Option("--summary", "-m", help="A one-sentence summary of the message.")
    ]
    type: Annotated[
        str, typer.Option("--type", help="The type of message, such as status.update.")
    ] = "knowledge.push"
    payload: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="More members of the payload, as a JSON object."),
    ] = None
    priority: Annotated[
        Literal["low", "normal", "high", "critical"], typer.Option(help="How urgent it is.")
    ] = "normal"
    topic: Annotated[str | None, typer.Option(help="What it is about.")] = None
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="The thread that it belongs to.")
    ] = None
    reply_to: Annotated[
        str | None, typer.Option(metavar="ID", help="The message that it answers.")
    ] = None
    gate: Annotated[
        bool,
        typer.Option("--gate", help="Deliver it only after a human has approved: `cacp approve`."),
    ] = False


@grouped
def send(
    message: MessageOptions,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a message to agents, and print its id. It waits in their inboxes.

    \b
    Examples:
      cacp send aid://example.com/frontend -m "The endpoint is deployed"
      cacp send aid://example.com/lead --type status.blocked -m "No schema" \\
          --payload '{"blocked_on": "the users contract"}' --priority high
    """
    params = _send_params(message)
    with connected(url, key) as node:
        sent = node.call("acp/send", params)
    if as_json:
        print_json(sent)
        return
    typer.echo(one_line(sent["message"]["id"]))
    if sent.get("held"):
        event = "a human: cacp approve" if sent["held"] == "gate" else "its turn in its thread"
        typer.echo(f"It waits for {event}.", err=True)


def _send_params(message: MessageOptions) -> dict[str, Any]:
    """The params of `acp/send`; what was not given is left out."""
    from cli.call import read_params

    try:
        members = read_params([message.payload]) if message.payload else {}
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--payload") from None
    params: dict[str, Any] = {
        "to": message.to,
        "type": message.type,
        "priority": message.priority,
        "payload": {**members, "summary": message.summary},
    }
    optional = {
        "topic": message.topic,
        "thread_id": message.thread,
        "reply_to": message.reply_to,
        "policy": {"human_gate": "required"} if message.gate else None,
    }
    return params | {name: value for name, value in optional.items() if value is not None}
