"""`cacp peers deferred`: what peers sent that this node can't take in yet (design §7)."""

from typing import Annotated, Any

import typer

from cli.offline import DbOption, print_columns, transaction
from cli.terminal import REFUSED, USAGE, JsonOption, fail, print_json
from schemas.plain import one_line

WAITS = {"stamp": "its time", "project": "its project", "predecessor": "what it follows on"}


def deferred(
    agent_id: Annotated[
        str | None, typer.Argument(metavar="[AID]", help="One peer; without it, each with a count.")
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Forget all that this peer has deferred.")
    ] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what peers sent and this node can't take in yet, and why; of one peer a hundred at most.

    What is dropped comes again with a comparison if the peer still has it, so end the exchange with
    a peer that floods: `cacp peers ban`. Works while the node runs.

    \b
    Examples:
      cacp peers deferred
      cacp peers deferred aid://example.com/beta@1.0.0 --json
      cacp peers deferred aid://example.com/beta@1.0.0 --drop
    """
    from server.store import deferred as store

    if drop and agent_id is None:
        fail(USAGE, "--drop needs the peer whose messages are to be forgotten")
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
        fail(REFUSED, f"nothing of {agent_id} is deferred; `cacp peers deferred` lists it")
    typer.echo(f"Dropped: {dropped}.", err=True)


def _print_shares(shares: list[Any], as_json: bool) -> None:
    from schemas.base import iso

    if as_json:
        print_json([one._asdict() | {"since": iso(one.since)} for one in shares])
        return
    rows = [[one.source, str(one.messages), str(one.bytes), iso(one.since)] for one in shares]
    print_columns(("PEER", "MESSAGES", "BYTES", "SINCE"), rows, none="none: nothing is deferred")


def _print_messages(messages: list[Any], agent_id: str, as_json: bool) -> None:
    from schemas.base import iso

    if as_json:
        times = [{"since": iso(one.since), "due": iso(one.due)} for one in messages]
        print_json([one._asdict() | time for one, time in zip(messages, times, strict=True)])
        return
    rows = [
        [iso(one.since), one.method, WAITS[one.reason], one_line(one.about) or "-", str(one.bytes)]
        for one in messages
    ]
    heads = ("SINCE", "METHOD", "WAITS FOR", "OF", "BYTES")
    print_columns(heads, rows, none=f"none: nothing of {agent_id} is deferred")
