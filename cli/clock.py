"""`cacp clock`: what clocks that were wrong have stamped, and the node's own clock in doubt."""

from typing import Annotated

import typer

from cli.columns import print_columns
from cli.offline import transaction
from cli.options import DbOption, JsonOption
from cli.terminal import print_json
from cli.times import until
from schemas.plain import one_line

app = typer.Typer(
    name="clock",
    no_args_is_help=True,
    help="Repair the effects of wrong clocks, and confirm that this machine's clock is right.",
)


@app.command()
def deferred(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List messages of peers with stamps in the future: the node shows them when due.

    It lists at most a hundred.

    Example: cacp clock deferred --json
    """
    import orjson

    from schemas.stamps import iso
    from server.store import deferred, project_names

    with transaction(db) as node:
        names = project_names.every(node.db)
        rows = [
            {
                "dueAt": iso(message.due),
                "peer": message.source,
                "method": message.method,
                "projectId": orjson.loads(message.params).get("projectId"),
            }
            for message in deferred.each(node.db, node.now)
        ]
    if as_json:
        print_json(rows)
    else:
        print_columns(
            ("DUE", "PEER", "METHOD", "PROJECT"),
            [
                [
                    until(row["dueAt"]),
                    one_line(row["peer"]),
                    row["method"],
                    one_line(names.get(row["projectId"], row["projectId"] or "-")),
                ]
                for row in rows
            ],
            none="Nothing is deferred. `cacp doctor` checks the clocks",
        )


@app.command()
def accept(db: DbOption = None) -> None:
    """Accept the deferred messages now, and later ones with stamps up to the last of them.

    Works while the node runs: it shows them within seconds. Look at `cacp clock deferred` first:
    until that time, an entry with a stamp in the future wins over current writes, and lists show
    it last. Each node defers separately: run the command on each that does.

    Example: cacp clock accept
    """
    from schemas.stamps import iso
    from server.store import deferred

    with transaction(db) as node:
        last = deferred.ahead(node.db, node.now).until
        accepted = deferred.accept(node.db, node.now)
    if not accepted:
        typer.echo("Nothing is deferred.", err=True)
        return
    accepted_count = f"{accepted} message{'s' if accepted > 1 else ''}, due until {iso(last)}"
    typer.echo(f"accepted {accepted_count}: a running node shows them within seconds.", err=True)


@app.command()
def confirm(db: DbOption = None) -> None:
    """Confirm that this machine's clock is right.

    A node whose clock is more than three days from where the node left it is in doubt: until its
    clock is confirmed, no mail expires and nothing is archived or deleted. A peer whose clock
    agrees confirms it, and so does this command. Works while the node runs: it takes effect within
    seconds.

    Example: cacp clock confirm
    """
    from peers.clock import Sure
    from schemas.stamps import iso
    from server.store import stamps

    with transaction(db) as node:
        before = stamps.kept(node.db)
        stamps.keep(node.db, Sure(node.now))
    if before is None or not before.is_doubtful(node.now):
        typer.echo(f"This clock is not in doubt: it is {iso(node.now)}.", err=True)
        return
    typer.echo(
        f"confirmed: it is {iso(node.now)}. Within seconds a running node expires what is due, and "
        "archives what is old",
        err=True,
    )


@app.command()
def repair(
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Do it. Without --yes the command only says what it would do."),
    ] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restamp entries that this node stamped in the future and no other node has yet.

    A node does this itself when it first meets its peers: the command is for a node without peers.
    Entries that other nodes may have keep their stamps: they hide nothing, and later writes are
    stamped after them. It uses this machine's clock: set the clock first. Works while the node
    runs: `/health` follows within seconds.

    \b
    Examples:
      cacp clock repair
      cacp clock repair --yes
    """
    from server.store import unreceived_changes

    with transaction(db) as node:
        own, now = node.settings.agent, node.now
        ahead = unreceived_changes.count_ahead(node.db, node=own, now=now)
        moved = unreceived_changes.correct_by_operator(node.db, node=own, now=now) if yes else None
    if as_json:
        by = moved.by / 1e6 if moved else 0
        summary = {
            "repaired": yes,
            "bySeconds": by,
            "untaken": ahead.unreceived,
            "taken": ahead.received,
        }
        print_json(summary)
        return
    if not ahead.unreceived:
        typer.echo("Nothing to repair: nothing that only this node has is stamped ahead.")
    elif yes:
        typer.echo(
            f"Given new stamps: {_counted(ahead.unreceived)}. A running node sees it in seconds."
        )
    else:
        typer.echo(f"Would get new stamps: {_counted(ahead.unreceived)}. `--yes` does it.")
    if ahead.received:
        typer.echo(f"Unchanged, because other nodes may have it: {_counted(ahead.received)}.")


def _counted(kinds: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
