"""`cacp approve` and `cacp acp`: what people do with agents' mail (acp-canonical §9.1, §12.8)."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, connected
from cli.options import DbOption, JsonOption, KeyOption, UrlOption
from cli.storage import private, reported, source_of
from cli.terminal import USAGE, fail, print_json
from schemas.plain import one_line

PAGE = 500

app = typer.Typer(
    name="acp", no_args_is_help=True, help="Approve and export the mail of a node's agents."
)


def approve(
    message_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="The message or handoff to decide on; by default list what waits."
        ),
    ] = None,
    refuse: Annotated[
        bool,
        typer.Option(
            "--refuse", help="Refuse it for good instead of approving it; its sender is notified."
        ),
    ] = False,
    comment: Annotated[str | None, typer.Option(help="Why; kept in the audit log.")] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the messages and handoffs that wait for a human, or approve or refuse one of them.

    Needs a human's key: `cacp keys create AID --human` creates one. Each node lists only what it
    holds itself.

    \b
    Examples:
      cacp approve
      cacp approve 01a200d3-c0e1-7539-b1a1-fddaebe9d751
      cacp approve 01a200d3-c0e1-7539-b1a1-fddaebe9d751 --refuse
    """
    if message_id is None:
        if refuse or comment is not None:
            fail(USAGE, "--refuse and --comment need the ID of a message or handoff")
        _list(url, key, as_json)
        return
    params = {"message_id": message_id, "decision": "refuse" if refuse else "approve"}
    if comment is not None:
        params["comment"] = comment
    with connected(url, key) as client:
        done = client.call("acp/approve", params)
    if as_json:
        print_json(done)
        return
    if done.get("handoff"):
        status = one_line(done["handoff"]["status"], 200)
        typer.echo(f"{done['outcome']}: handoff {message_id}, now {status}", err=True)
        return
    to = ", ".join(one_line(receipt["recipient"], 200) for receipt in done["receipts"])
    typer.echo(f"{done['outcome']}: {one_line(done['message']['id'], 200)} to {to}", err=True)


def _list(url: str, key: str | None, as_json: bool) -> None:
    with connected(url, key) as client:
        waiting = list(client.pages("acp/approvals", {"limit": PAGE}, "waiting"))
    if as_json:
        print_json(waiting)
    elif not waiting:
        typer.echo("Nothing waits for approval.")
    else:
        typer.echo("\n\n".join(map(_waiting_text, waiting)))


def _waiting_text(waiting: dict[str, Any]) -> str:
    from cli.times import ago

    to = ", ".join(one_line(agent, 200) for agent in waiting["to"])
    id = one_line(waiting["id"], 200)
    until = f", until {one_line(waiting['expiresAt'], 64)}" if waiting.get("expiresAt") else ""
    return (
        f"{one_line(waiting['subject'], 200)}\n"
        f"  {waiting['kind']} of {ago(waiting['since'])}, {waiting['priority']}{until}\n"
        f"  from {one_line(waiting['from'], 200)} to {to}\n"
        f"  cacp approve {id}"
    )


@app.command()
def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder to write to, or to update.")
    ],
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all messages, receipts and audit events as JSON Lines.

    Works while the node runs. Run it again to add what is new: a message that has changed is
    written again, and its last line is the valid one. It also continues an interrupted export.

    \b
    Examples:
      cacp acp export mail
      jq -r .message.from mail/messages.jsonl
    """
    from server.store.mail_export import export as run

    source = source_of(db)
    with reported(source, folder), private():
        folder.mkdir(parents=True, exist_ok=True)
        counts = run(source, folder)
    if as_json:
        print_json({"folder": str(folder), "lines": counts})
    else:
        wrote = ", ".join(f"{name} ({count:,})" for name, count in counts.items())
        typer.echo(f"Wrote to {folder}: {wrote}.", err=True)
