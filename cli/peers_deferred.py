"""`cacp peers deferred`: messages of peers that this node can't apply yet (design §7)."""

from typing import Annotated, Any

import typer

from cli.columns import print_columns
from cli.offline import transaction
from cli.options import DbOption, JsonOption
from cli.terminal import REFUSED, USAGE, fail, print_json
from schemas.plain import one_line

WAITS = {"stamp": "its time", "project": "its project", "predecessor": "an earlier version"}
"""What a message waits for, by the reason that the store gives."""


def deferred(
    agent_id: Annotated[
        str | None,
        typer.Argument(metavar="AID", help="A peer; by default all peers, with counts."),
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Delete all deferred messages of this peer.")
    ] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the messages of peers that this node can't apply yet, and what each waits for.

    Without AID it counts them by peer; with AID it lists at most a hundred. Dropped messages
    return when the nodes compare, if the peer still has them: to stop a peer that floods this node,
    use `cacp peers ban`. Works while the node runs.

    \b
    Examples:
      cacp peers deferred
      cacp peers deferred aid://example.com/beta@1.0.0 --json
      cacp peers deferred aid://example.com/beta@1.0.0 --drop
    """
    from server.store import deferred as store

    if drop and agent_id is None:
        fail(USAGE, "--drop needs the AID of a peer")
    with transaction(db) as node:
        if agent_id is None:
            _print_shares(store.by_source(node.db), as_json)
        elif drop:
            _drop(node.db, agent_id)
        else:
            _print_messages(store.of_source(node.db, agent_id), agent_id, as_json)


def _drop(db: Any, agent_id: str) -> None:
    from server.store import deferred as store

    dropped = store.drop_all(db, agent_id)
    if not dropped:
        fail(
            REFUSED, f"no message of {agent_id} is deferred; `cacp peers deferred` lists the peers"
        )
    typer.echo(f"Dropped: {dropped}.", err=True)


def _print_shares(shares: list[Any], as_json: bool) -> None:
    from schemas.stamps import iso

    if as_json:
        print_json([share._asdict() | {"since": iso(share.since)} for share in shares])
        return
    rows = [
        [share.source, str(share.messages), str(share.bytes), iso(share.since)] for share in shares
    ]
    print_columns(("PEER", "MESSAGES", "BYTES", "SINCE"), rows, none="Nothing is deferred")


def _print_messages(messages: list[Any], agent_id: str, as_json: bool) -> None:
    from schemas.stamps import iso

    if as_json:
        times = [{"since": iso(message.since), "due": iso(message.due)} for message in messages]
        print_json(
            [message._asdict() | time for message, time in zip(messages, times, strict=True)]
        )
        return
    rows = [
        [
            iso(message.since),
            message.method,
            WAITS[message.reason],
            one_line(message.about) or "-",
            str(message.bytes),
        ]
        for message in messages
    ]
    heads = ("SINCE", "METHOD", "WAITS FOR", "OF", "BYTES")
    print_columns(heads, rows, none=f"No message of {agent_id} is deferred")
