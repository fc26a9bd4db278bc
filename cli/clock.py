"""`cacp clock`: what was stamped by clocks that were wrong, and clocks that nobody stands by."""

from typing import Annotated

import typer

from cli.offline import DbOption, print_columns, transaction
from cli.terminal import JsonOption, print_json

app = typer.Typer(
    name="clock",
    no_args_is_help=True,
    help="Mend what wrong clocks have done, and confirm a right one.",
)


@app.command()
def deferred(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List what peers sent and this node does not show before it is due, a hundred at most.

    Example: cacp clock deferred --json
    """
    import orjson

    from schemas.base import iso
    from server.store import deferred

    with transaction(db) as node:
        rows = [
            {
                "dueAt": iso(one.due),
                "peer": one.source,
                "method": one.method,
                "projectId": orjson.loads(one.params).get("projectId"),
            }
            for one in deferred.each(node.db, node.now)
        ]
    if as_json:
        print_json(rows)
    else:
        print_columns(
            ("DUE", "PEER", "METHOD", "PROJECT"),
            [[value or "-" for value in row.values()] for row in rows],
            none="none: nothing that peers sent is deferred. `cacp doctor` looks at the clocks",
        )


@app.command()
def accept(db: DbOption = None) -> None:
    """Take in now what is deferred, and what comes with stamps up to the last of it.

    Works while the node runs: it takes them in within seconds. Look at `cacp clock deferred` first:
    a stamp wins over what is written at the same time elsewhere, and lists show it last until it is
    due. Other nodes defer for themselves: give the command on each that does.

    Example: cacp clock accept
    """
    from schemas.base import iso
    from server.store import deferred

    with transaction(db) as node:
        last = deferred.ahead(node.db, node.now).until
        accepted = deferred.accept(node.db, node.now)
    if not accepted:
        typer.echo("Nothing is deferred.", err=True)
        return
    told = f"{accepted} message{'s' if accepted > 1 else ''}, due until {iso(last)}"
    typer.echo(f"accepted {told}: a running node takes them in within seconds.", err=True)


@app.command()
def confirm(db: DbOption = None) -> None:
    """Confirm that this machine's clock is right.

    A node whose clock is more than three days from where it was ends nothing by it before somebody
    stands by it: no mail expires, nothing is archived or forgotten. A peer whose clock agrees
    does, and so does this command. Works while the node runs: it goes on within seconds.

    Example: cacp clock confirm
    """
    from peers.clock import Sure
    from schemas.base import iso
    from server.store import stamps

    with transaction(db) as node:
        before = stamps.kept(node.db)
        stamps.keep(node.db, Sure(node.now))
    if before is None or not before.is_doubtful(node.now):
        typer.echo(f"This clock was not in doubt: it is {iso(node.now)}.", err=True)
        return
    typer.echo(
        f"confirmed: it is {iso(node.now)}. A running node goes by it within seconds: what is over "
        "by now expires, and what is old is archived",
        err=True,
    )


@app.command()
def repair(
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it only tells.")] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stamp anew what this machine's clock stamped ahead of the time, where nobody else has it.

    A node does that by itself when it first meets its peers: this is for one that has none, and
    for before. What other nodes may have stays as it is: it hides nothing, and what is written
    from now on is stamped after it. Goes by this machine's clock: set that first. Works while the
    node runs: `/health` goes by it within seconds.

    \b
    Examples:
      cacp clock repair
      cacp clock repair --yes
    """
    from server.store import untaken

    with transaction(db) as node:
        own, now = node.settings.agent, node.now
        found = untaken.ahead(node.db, node=own, now=now)
        moved = untaken.repair(node.db, node=own, now=now) if yes else None
    if as_json:
        by = moved.by / 1e6 if moved else 0
        told = {"repaired": yes, "bySeconds": by, "untaken": found.untaken, "taken": found.taken}
        print_json(told)
        return
    if not found.untaken:
        typer.echo("Nothing to repair: nothing is stamped ahead that this node alone has.")
    elif yes:
        typer.echo(f"Stamped anew: {_counted(found.untaken)}. A running node sees it in seconds.")
    else:
        typer.echo(f"Would stamp anew: {_counted(found.untaken)}. `--yes` does it.")
    if found.taken:
        typer.echo(f"Stays, for other nodes may have it: {_counted(found.taken)}.")


def _counted(kinds: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
