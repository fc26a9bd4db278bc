"""`cacp inbox`, `cacp send` and `cacp hook`: an agent's mail from a shell (acp-canonical §11)."""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.client import DEFAULT_URL, Client, KeyOption, NodeError, UrlOption, connected
from cli.terminal import REFUSED, USAGE, JsonOption, fail, print_json
from schemas.plain import clean, one_line

LONGEST = 20.0
"""Seconds of one call that waits: a client gives up after 30."""


def inbox(
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Wait so long for something to come.")
    ] = 0,
    ack: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Acknowledge this message first; may be given again."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also what was acknowledged.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Messages, at most.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Only what came after, as --json tells.")
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what came for the caller and is not acknowledged. Reading removes nothing.

    Without --json it is Markdown, in which what agents wrote is fenced as data.

    \b
    Examples:
      cacp inbox --wait 60
      cacp inbox --ack 01a200d3-c0e1-7539-b1a1-fddaebe9d751
      cacp inbox --json | jq -r '.messages[].payload.summary'
    """
    params: dict[str, Any] = {
        "show": "all" if all_ else "unread",
        "limit": limit,
        "format": "json" if as_json else "markdown",
    }
    if cursor is not None:
        params["cursor"] = cursor
    if ack:
        params["ack"] = ack
    with connected(url, key) as node:
        found = _listed(node, params, wait)
    if as_json:
        print_json(found)
    else:
        typer.echo(clean(found["text"]))
    missed = [one for one in found.get("acked", []) if one["outcome"] == "unknown"]
    if missed:
        ids = ", ".join(one_line(one["messageId"], 200) for one in missed)
        fail(REFUSED, f"not acknowledged, for no such message has come to you: {ids}")


def _listed(node: Client, params: dict[str, Any], wait: float) -> Any:
    until = time.monotonic() + wait
    acked: list[Any] = []
    while True:
        left = max(until - time.monotonic(), 0.0)
        found = node.call("acp/inbox", {**params, "wait": min(left, LONGEST)})
        acked += found.get("acked", [])
        if found["messages"] or time.monotonic() >= until:
            return {**found, "acked": acked}
        params.pop("ack", None)


def send(
    to: Annotated[list[str], typer.Argument(metavar="AID...", help="The agents; * for everyone.")],
    summary: Annotated[str, typer.Option("--summary", "-m", help="What it says, in brief.")],
    type_: Annotated[
        str, typer.Option("--type", help="The type of message, such as status.update.")
    ] = "knowledge.push",
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="More members of the payload, as an object.")
    ] = None,
    priority: Annotated[
        Literal["low", "normal", "high", "critical"], typer.Option(help="How urgent it is.")
    ] = "normal",
    topic: Annotated[str | None, typer.Option(help="What it is about.")] = None,
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="The thread that it belongs to.")
    ] = None,
    reply_to: Annotated[
        str | None, typer.Option(metavar="ID", help="The message that it answers.")
    ] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="A human lets it through first: `cacp approve`.")
    ] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a message to agents; it waits in their inboxes. Prints its id.

    \b
    Examples:
      cacp send aid://example.com/frontend -m "The endpoint is deployed"
      cacp send aid://example.com/lead --type status.blocked -m "No schema" \\
          --payload '{"blocked_on": "the users contract"}' --priority high
    """
    from cli.call import read_params

    try:
        more = read_params([payload]) if payload else {}
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--payload") from None
    params: dict[str, Any] = {
        "to": to,
        "type": type_,
        "priority": priority,
        "payload": {**more, "summary": summary},
    }
    given = {"topic": topic, "thread_id": thread, "reply_to": reply_to}
    params |= {name: value for name, value in given.items() if value is not None}
    if gate:
        params["policy"] = {"human_gate": "required"}
    with connected(url, key) as node:
        sent = node.call("acp/send", params)
    if as_json:
        print_json(sent)
        return
    typer.echo(one_line(sent["message"]["id"]))
    if sent.get("held"):
        waits = "a human: cacp approve" if sent["held"] == "gate" else "its turn in its thread"
        typer.echo(f"It waits for {waits}.", err=True)


def hook(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="claude or codex.")],
    event: Annotated[
        str | None,
        typer.Argument(
            metavar="[EVENT]",
            help="SessionStart, UserPromptSubmit, PostToolUse or Stop; by default the one that "
            "the JSON on standard input names.",
        ),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Enter the hooks into the agent's settings.")
    ] = False,
    user: Annotated[
        bool, typer.Option("--user", help="With --install: for all projects, in your home.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --install: the settings to change.")
    ] = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="With --install: print the settings, change nothing.")
    ] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
) -> None:
    """Tell Claude Code or Codex of new mail, as one of its lifecycle hooks.

    Reads the hook's JSON on standard input, and prints new mail in the form that the agent takes.
    Each message is shown once, and again when it is not acknowledged before its lease ends; at
    Stop, urgent mail keeps the agent going. Says nothing when there is none or the node is away.
    The node needs acp_session_injection; who asks is known by CACP_KEY.

    \b
    Examples:
      cacp hook claude --install
      cacp hook codex --install --user --print
      echo '{"session_id": "s1"}' | cacp hook claude SessionStart
    """
    if not install:
        from cli.hook import run

        raise typer.Exit(run(agent, event, url, key))
    _install(agent, file, user, only_print, None if url == DEFAULT_URL else url)
    _warn(url, key)


def _install(agent: str, file: Path | None, user: bool, only_print: bool, url: str | None) -> None:
    from cli import hook_install

    if agent not in hook_install.FILES:
        fail(USAGE, f"{agent}: there are claude and codex")
    file = file or hook_install.file_of(agent, user=user)
    try:
        if only_print:
            merged = hook_install.merged(hook_install.read(file), agent, url)
            typer.echo(hook_install.shown(merged), nl=False)
            return
        changed, backup = hook_install.install(file, agent, url)
    except ValueError as error:
        fail(REFUSED, f"{file} is not changed: {error}")
    except OSError as error:
        fail(REFUSED, f"{file} can't be changed: {error.strerror}")
    if not changed:
        typer.echo(f"{file} has the hooks already.", err=True)
        return
    kept = f"; the old one is {backup}" if backup else ""
    typer.echo(f"Entered the hooks into {file}{kept}.", err=True)


def _warn(url: str, key: str | None) -> None:
    """Say what is missing for the hooks to work, as far as the node tells."""
    try:
        with Client(url, key) as node:
            state = node.get("/health")["mail"]["session"]
    except (NodeError, ValueError, KeyError):
        typer.echo("The node doesn't answer yet; until it does, the hooks say nothing.", err=True)
        return
    if state != "available":
        typer.echo(
            "The node doesn't offer mail to sessions: set CACP_ACP_SESSION_INJECTION=true there.",
            err=True,
        )
